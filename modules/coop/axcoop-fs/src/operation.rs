//! A blocking function, as a future and as a blocking call.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use axcoop::{JoinHandle, Mutex, Priority};

use crate::system;

/// Rule 3: held during each operation.
static ONE: Mutex<()> = Mutex::new(());

/// An operation on a file, which a coroutine awaits or a thread does.
#[must_use = "nothing happens until it is awaited, or waited for"]
pub struct Operation<F, T> {
    at: Option<Priority>,
    stage: Stage<F, T>,
}

enum Stage<F, T> {
    /// The function, with all that it needs.
    Made(F),
    HandedOver(JoinHandle<T>),
    Over,
}

// Nothing in it is pinned: the function is called by value.
impl<F, T> Unpin for Operation<F, T> {}

impl<F, T> Operation<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn new(run: F) -> Self {
        Self {
            at: None,
            stage: Stage::Made(run),
        }
    }

    /// Sets its priority, 0 (first) to 7, in place of that of the awaiting coroutine unless that is more urgent.
    /// Outside a coroutine it is 4.
    pub fn at(mut self, priority: u8) -> Self {
        self.at = Some(Priority::new(priority.min(7).into()));
        self
    }

    /// Does the operation on the calling thread, at that thread's priority.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker; and if it has been polled.
    #[track_caller]
    pub fn wait(mut self) -> T {
        axcoop::assert_may_block("wait", "the operation");
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Made(run) => {
                let _one = ONE.lock_blocking();
                run()
            }
            _ => panic!("it has been handed over: await it"),
        }
    }
}

impl<F, T> Future for Operation<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = T;

    /// # Panics
    /// If it was ready before; if there is no pool, or no memory for the operation.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Stage::Made(_) = self.stage
            && let Stage::Made(run) = core::mem::replace(&mut self.stage, Stage::Over)
        {
            let of_caller = || axcoop::current_priority().unwrap_or_default();
            let priority = self.at.unwrap_or_else(of_caller);
            let operation = async move {
                let _one = ONE.lock().await;
                // From here on it awaits nothing, so that it cannot be cancelled (rule 4).
                run()
            };
            self.stage = Stage::HandedOver(system::pool().spawn(operation, priority));
        }
        let Stage::HandedOver(handle) = &mut self.stage else {
            panic!("it is polled after it was ready");
        };
        // The handle donates the priority of the awaiting coroutine to the operation (rule 2).
        Pin::new(handle).poll(context).map(|done| {
            self.stage = Stage::Over;
            done.expect("only the drop of this future cancels it")
        })
    }
}

impl<F, T> Drop for Operation<F, T> {
    fn drop(&mut self) {
        // Rule 4.
        if let Stage::HandedOver(handle) = &self.stage {
            handle.cancel();
        }
    }
}

/// Hands a function to the pool without waiting for it.
pub(crate) fn later(run: impl FnOnce() + Send + 'static) {
    let priority = axcoop::current_priority().unwrap_or_default();
    let operation = async move {
        let _one = ONE.lock().await;
        run();
    };
    drop(system::pool().spawn(operation, priority));
}
