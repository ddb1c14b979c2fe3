//! Waiting for a coroutine's output.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker, ready};

use crate::block::APART;
use crate::budget;
use crate::cid::Cid;
use crate::domain::assert_may_block;
use crate::error::Ended;
use crate::loan;
use crate::waker::{self, Ref};

/// The output of a coroutine, for who awaits it. If it is dropped, the coroutine goes on.
///
/// While a more urgent coroutine awaits it, that one lends its priority. A coroutine that awaits it by reference, as in
/// `timeout(time, &mut handle)`, and leaves it lends on until the handle is dropped, or awaited by another. (A combinator that polls
/// only what was woken, as `FuturesUnordered`, passes on what its coroutine is lent later only when it
/// polls the handle.)
#[must_use = "a coroutine runs by itself; `drop` says that nobody wants its output"]
pub struct JoinHandle<T> {
    header: Ref,
    cid: Cid,
    /// What it has lent, or [`APART`].
    lent: u8,
    has_output: bool,
    output: PhantomData<fn() -> T>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(header: Ref, cid: Cid) -> Self {
        Self {
            header,
            cid,
            lent: APART,
            has_output: true,
            output: PhantomData,
        }
    }

    /// Which coroutine it is.
    pub fn cid(&self) -> Cid {
        self.cid
    }

    /// Whether it has ended: then this is ready at once.
    pub fn is_finished(&self) -> bool {
        self.header.has_ended()
    }

    /// As [`cancel`](crate::cancel); nothing happens if it has ended.
    pub fn cancel(&self) {
        self.header.cancel();
    }

    /// Blocks the calling thread until the coroutine has ended.
    ///
    /// # Errors
    /// It has ended without an output.
    ///
    /// # Panics
    /// In a coroutine, which would stop all others of its worker: it has to await the handle.
    pub fn join(self) -> Result<T, Ended> {
        assert_may_block("join", "the handle");
        let mut output = None;
        (self.header.domain().kernel()).block_on(pin!(async { output = Some(self.await) }));
        output.expect("the kernel waits until the future is done")
    }

    #[inline]
    fn lends(&mut self, level: u8) {
        if self.lent != level {
            self.lends_other(level);
        }
    }

    #[inline(never)]
    fn lends_other(&mut self, level: u8) {
        self.lent = loan::changes(&self.header, self.lent, level);
    }

    /// It has not ended when this is called; if it has meanwhile, how.
    #[inline(never)]
    fn waits(&mut self, waker: &Waker) -> Option<Result<(), Ended>> {
        let who = waker::of_waker(waker);
        let mine = || match who {
            Some(header) => waker::of(header),
            None => waker.clone(),
        };
        // SAFETY: this is the handle.
        let how = unsafe { self.header.joins(mine) };
        if how.is_none() {
            let level = match who {
                Some(header) => header.effective() as u8,
                None => loan::of_who_calls(),
            };
            // What is not more urgent than its own is not worth a lock.
            let level = if usize::from(level) < self.header.base() {
                level
            } else {
                APART
            };
            self.lends(level);
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
            None => self.waits(context.waker()),
            how => how,
        };
        let Some(how) = how else {
            return Poll::Pending;
        };
        ready!(budget::spend(context.waker()));
        self.lends(APART);
        self.has_output = false;
        // SAFETY: it is a `T`, there, and this handle's.
        Poll::Ready(how.map(|()| unsafe { self.header.takes_output() }))
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        self.lends(APART);
        if self.has_output {
            // SAFETY: this is the handle, and it is not used any more.
            unsafe { self.header.detaches() };
        }
    }
}
