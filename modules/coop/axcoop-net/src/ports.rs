//! The ports with a listener, as the poller knows them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::task::Waker;
use core::time::Duration;

use axcoop::Priority;
use kspin::SpinNoIrq;

use crate::poller_wakeup;
use crate::stack::Socket;

/// A port, as the poller sees it.
pub(crate) trait Listens: Send + Sync {
    /// Takes the new connections of the stack, and hands out the waker of a waiter that is ready or late. Returns true
    /// if a connection has come, and none if the port is closed. `fetched` is empty before and after.
    fn look(
        &self,
        now: Duration,
        fetched: &mut Vec<(Socket, SocketAddr)>,
        woken: &mut dyn FnMut(Priority, Waker),
    ) -> Option<bool>;
}

/// The ports that the poller does not know yet.
static PORTS: SpinNoIrq<Vec<Arc<dyn Listens>>> = SpinNoIrq::new(Vec::new());

/// Makes the poller look at this port in each round.
pub(crate) fn listen(port: Arc<dyn Listens>) {
    PORTS.lock().push(port);
    poller_wakeup::ring(Priority::DEFAULT);
}

/// Adds the ports that the poller does not know yet to its list. Called by the poller.
pub(crate) fn append_new_ports(ports: &mut Vec<Arc<dyn Listens>>) {
    ports.append(&mut PORTS.lock());
}
