//! How the poller is told that it has something to do.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering::*};
use core::task::{Poll, Waker};
use core::time::Duration;

use axcoop::Priority;
use futures_util::task::AtomicWaker;
use kspin::SpinNoIrq;

use crate::stack::Socket;
use crate::urgency;

/// A port, as the poller sees it.
pub(crate) trait Listens: Send + Sync {
    /// One look of the poller. Takes in whoever has come, and hands out who is to be woken; says
    /// whether anybody has come, and nothing if it is closed. `fetched` is empty before and after.
    fn look(
        &self,
        now: Duration,
        fetched: &mut Vec<(Socket, SocketAddr)>,
        woken: &mut dyn FnMut(Priority, Waker),
    ) -> Option<bool>;
}

/// Ports that the poller does not know yet.
static PORTS: SpinNoIrq<Vec<Arc<dyn Listens>>> = SpinNoIrq::new(Vec::new());
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

/// The poller is to look at this port in each round.
pub(crate) fn listen(port: Arc<dyn Listens>) {
    PORTS.lock().push(port);
    ring(Priority::DEFAULT);
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

/// Of the poller: the ports that it does not know yet.
pub(crate) fn new_ports(ports: &mut Vec<Arc<dyn Listens>>) {
    ports.append(&mut PORTS.lock());
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
