//! The bell, by which the poller is told that it has something to do.

use core::sync::atomic::{AtomicBool, Ordering::*};
use core::task::Poll;

use axcoop::Priority;
use futures_util::task::AtomicWaker;

use crate::priority;

/// True if a ring has come and no round has begun since.
static RUNG: AtomicBool = AtomicBool::new(false);
/// True if there are waiters that the poller has not seen.
static LOOK: AtomicBool = AtomicBool::new(false);
static BELL: AtomicWaker = AtomicWaker::new();

/// Requests a round soon, at this priority.
pub(crate) fn ring(priority: Priority) {
    priority::note_ring(priority);
    // An earlier ring has woken it, or it has not slept since.
    if !RUNG.swap(true, AcqRel) {
        BELL.wake();
    }
}

/// Requests a look at the waiters, at this priority.
pub(crate) fn look_again(priority: Priority) {
    LOOK.store(true, Release);
    ring(priority);
}

/// Takes the ring, and returns true if there was one. The poller calls it before a round, so that a ring during the
/// round makes another one.
pub(crate) fn take_ring() -> bool {
    // A note that comes before the ring belongs to the round that answers it.
    priority::begin_round();
    RUNG.swap(false, AcqRel)
}

/// Takes the request for a look, and returns true if there was one. Called by the poller; later waiters ring for
/// another round.
pub(crate) fn take_look() -> bool {
    LOOK.swap(false, AcqRel)
}

/// Waits for a ring. Called by the poller.
pub(crate) async fn wait_for_ring() {
    core::future::poll_fn(|context| {
        BELL.register(context.waker());
        // After registering: a ring from here on wakes it.
        if RUNG.load(Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
