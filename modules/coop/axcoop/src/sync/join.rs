//! Waiting for the output of a coroutine.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker, ready};

use crate::domain::assert_may_block;
use crate::error::Ended;
use crate::run::budget;
use crate::sync::donation;
use crate::task::block::APART;
use crate::task::id::CoroutineId;
use crate::task::waker::{self, Ref};

/// The output of a coroutine. If the handle is dropped, the coroutine goes on.
///
/// A more urgent coroutine that awaits the handle donates its priority. If it awaits by reference, as in `timeout(time,
/// &mut handle)`, and leaves, it donates until the handle is dropped or another coroutine awaits it. (A combinator that
/// polls only woken futures, as `FuturesUnordered`, passes a later donation on only when it polls the handle.)
#[must_use = "a coroutine runs by itself; `drop` says that its output is not needed"]
pub struct JoinHandle<T> {
    header: Ref,
    cid: CoroutineId,
    /// The level that it donates, or [`APART`].
    donated: u8,
    has_output: bool,
    output: PhantomData<fn() -> T>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(header: Ref, cid: CoroutineId) -> Self {
        Self {
            header,
            cid,
            donated: APART,
            has_output: true,
            output: PhantomData,
        }
    }

    /// Returns the name of the coroutine.
    pub fn cid(&self) -> CoroutineId {
        self.cid
    }

    /// Returns true if the coroutine has ended: then the handle is ready at once.
    pub fn is_finished(&self) -> bool {
        self.header.has_ended()
    }

    /// Cancels the coroutine, as [`cancel`](crate::cancel) does. Does nothing if it has ended.
    pub fn cancel(&self) {
        self.header.cancel();
    }

    /// Blocks the calling thread until the coroutine has ended.
    ///
    /// # Errors
    /// [`Ended`] if it has ended without an output.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker: it has to await the handle.
    pub fn join(self) -> Result<T, Ended> {
        assert_may_block("join", "the handle");
        let mut output = None;
        (self.header.domain().platform()).block_on(pin!(async { output = Some(self.await) }));
        output.expect("the platform waits until the future is done")
    }

    #[inline]
    fn donate(&mut self, level: u8) {
        if self.donated != level {
            self.change_donation(level);
        }
    }

    #[inline(never)]
    fn change_donation(&mut self, level: u8) {
        self.donated = donation::change(&self.header, self.donated, level);
    }

    /// Waits for a coroutine that had not ended. Returns how it has ended if it has meanwhile.
    #[inline(never)]
    fn wait(&mut self, waker: &Waker) -> Option<Result<(), Ended>> {
        let coroutine = waker::of_waker(waker);
        let mine = || match coroutine {
            Some(header) => waker::of(header),
            None => waker.clone(),
        };
        // SAFETY: this is the handle.
        let how = unsafe { self.header.set_joiner(mine) };
        if how.is_none() {
            let level = match coroutine {
                Some(header) => header.effective() as u8,
                None => donation::current_level(),
            };
            // A donation that is not more urgent than the priority of its receiver is not worth a lock.
            let level = if usize::from(level) < self.header.base() {
                level
            } else {
                APART
            };
            self.donate(level);
        }
        how
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Ended>;

    /// # Panics
    /// If it has been ready before.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.has_output, "a handle is polled after it was ready");
        let how = match self.header.how_it_ended() {
            None => self.wait(context.waker()),
            how => how,
        };
        let Some(how) = how else {
            return Poll::Pending;
        };
        ready!(budget::spend(context.waker()));
        self.donate(APART);
        self.has_output = false;
        // SAFETY: the output is a `T`, is written, and belongs to this handle.
        Poll::Ready(how.map(|()| unsafe { self.header.take_output() }))
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        self.donate(APART);
        if self.has_output {
            // SAFETY: this is the handle, and it is not used any more.
            unsafe { self.header.detach() };
        }
    }
}
