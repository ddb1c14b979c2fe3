//! Yielding to other coroutines of the domain.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::task::waker;

/// Lets all other ready coroutines run that are at least as urgent.
#[inline]
pub fn yield_now() -> YieldNow {
    YieldNow { has_yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct YieldNow {
    has_yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.has_yielded {
            return Poll::Ready(());
        }
        self.has_yielded = true;
        waker::wake_self(context.waker());
        Poll::Pending
    }
}
