//! The system of the tests: the test lets time pass and makes the rounds.

use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use core::task::{Context, Waker};
use core::time::Duration;
use std::thread;

use axcoop::DomainId;

static MILLIS: AtomicU64 = AtomicU64::new(1);
/// The largest piece of memory that is free.
static FREE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The number of bytes that was asked for last.
static ASKED: AtomicUsize = AtomicUsize::new(0);

pub fn now() -> Duration {
    Duration::from_millis(MILLIS.load(SeqCst))
}

/// Lets a millisecond pass.
pub fn pass_tick() {
    pass(Duration::from_millis(1));
}

/// Lets time pass, in whole milliseconds.
pub fn pass(time: Duration) {
    MILLIS.fetch_add(time.as_millis() as u64, SeqCst);
}

pub fn has_memory(bytes: usize) -> bool {
    ASKED.store(bytes, SeqCst);
    bytes <= FREE.load(SeqCst)
}

/// Sets the size of the largest free piece of memory.
pub fn set_free(bytes: usize) {
    FREE.store(bytes, SeqCst);
}

/// Returns the number of bytes that was asked for last.
pub fn asked() -> usize {
    ASKED.load(SeqCst)
}

pub fn yield_now() {
    thread::yield_now();
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let core::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::yield_now();
    }
}

pub fn spawn(_: fn()) {}

pub fn serve_domain() -> Option<DomainId> {
    None
}

/// Waits until a test rings, or wakes the poller as a tick would.
pub async fn rest(_: Option<Duration>, rung: impl Future<Output = ()>) {
    rung.await;
}
