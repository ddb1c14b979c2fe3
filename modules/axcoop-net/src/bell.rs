//! How the poller is told that it has something to do.

use core::sync::atomic::{AtomicBool, Ordering::*};
use core::task::Poll;

use axcoop::Priority;
use futures_util::task::AtomicWaker;

use crate::urgency;

/// Somebody has rung, and no round has begun since.
static RUNG: AtomicBool = AtomicBool::new(false);
/// Somebody waits who did not when the poller looked last.
static LOOK: AtomicBool = AtomicBool::new(false);
static BELL: AtomicWaker = AtomicWaker::new();

/// A round is to follow, soon, and is as urgent as this.
pub(crate) fn ring(priority: Priority) {
    urgency::rings(priority);
    // Who rang before has woken it, or it has not slept since.
    if !RUNG.swap(true, AcqRel) {
        BELL.wake();
    }
}

/// Somebody waits for a connection, so urgently.
pub(crate) fn look_again(priority: Priority) {
    LOOK.store(true, Release);
    ring(priority);
}

/// Of the poller, before a round, so that a ring in the middle of it makes another: whether somebody has
/// rung.
pub(crate) fn answer() -> bool {
    // What is noted before the ring is of the round that answers it.
    urgency::begins_round();
    RUNG.swap(false, AcqRel)
}

/// Of the poller: whether somebody waits who did not before. Those who come from here on ring for another
/// round.
pub(crate) fn is_to_look() -> bool {
    LOOK.swap(false, AcqRel)
}

/// Of the poller: until somebody rings.
pub(crate) async fn rung() {
    core::future::poll_fn(|context| {
        BELL.register(context.waker());
        // After registering: who rings from here on wakes us.
        if RUNG.load(Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
