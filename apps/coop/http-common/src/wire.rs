//! A connection of `axcoop-net` as a transport. It is the same for coroutines, which await, and for
//! threads, which block on the whole course of a connection.

use alloc::vec::Vec;
use core::future::Future;
use core::time::Duration;

use axcoop_net::{Error, Operation, TcpStream};

use crate::{Transport, Trouble};

/// The port on which the servers listen, which `make serve` forwards.
pub const PORT: u16 = 5555;

/// Who serves connections: what it can do besides waiting.
pub trait Place: Send {
    /// Lets others go first.
    fn pause(&mut self) -> impl Future<Output = ()> + Send;
    /// What follows is of this priority, 0 first.
    fn set_priority(&mut self, priority: u8);
}

/// A connection and who serves it.
pub struct Wire<P>(pub TcpStream, pub P);

fn trouble(error: Error) -> Trouble {
    if error == Error::TimedOut {
        Trouble::Late
    } else {
        Trouble::Broken
    }
}

impl<P: Place> Transport for Wire<P> {
    fn now(&self) -> Duration {
        axhal::time::monotonic_time()
    }

    async fn read(&mut self, into: Vec<u8>, until: Duration) -> (Result<usize, Trouble>, Vec<u8>) {
        let within = until.saturating_sub(self.now());
        let (read, buffer) = self.0.read(into).within(within).await;
        (read.map_err(trouble), buffer)
    }

    async fn write_all(&mut self, bytes: Vec<u8>, until: Duration) -> Result<(), Trouble> {
        let within = until.saturating_sub(self.now());
        let (written, _) = self.0.write_all(bytes).within(within).await;
        written.map_err(trouble)
    }

    async fn pause(&mut self) {
        self.1.pause().await;
    }

    fn set_priority(&mut self, priority: u8) {
        self.1.set_priority(priority);
    }
}
