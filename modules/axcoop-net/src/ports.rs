//! The ports that somebody listens to, as the poller knows them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::task::Waker;
use core::time::Duration;

use axcoop::Priority;
use kspin::SpinNoIrq;

use crate::bell;
use crate::stack::Socket;

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

/// The poller is to look at this port in each round.
pub(crate) fn listen(port: Arc<dyn Listens>) {
    PORTS.lock().push(port);
    bell::ring(Priority::DEFAULT);
}

/// Of the poller: the ports that it does not know yet.
pub(crate) fn new_ports(ports: &mut Vec<Arc<dyn Listens>>) {
    ports.append(&mut PORTS.lock());
}
