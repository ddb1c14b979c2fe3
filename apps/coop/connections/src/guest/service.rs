//! The ways in which a read waits.
//!
//! A read owns the caller's buffer while it is under way.
//!
//! | | a read that has to wait | |
//! |---|---|---|
//! | [`Operations`] | is another coroutine, which the device wakes; it copies the data and wakes the caller | KC |
//! | [`Direct`] | waits at the socket, and the device wakes the caller | no service |
//!
//! A unikernel makes the second one possible, which the reports do not have. The difference between the two is the cost
//! of the service itself.

use alloc::sync::Arc;
use core::{
    future::{Future, poll_fn},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use axcoop_arceos::{Domain, Priority};

use super::{
    connection::{Buffer, Connection},
    metered::Metered,
};

/// A way to read requests for a component.
pub trait Service: Copy + Send + Sync + 'static {
    /// Reads the next request into the buffer, and returns it. Returns none at the end, or without memory.
    fn read(
        &self,
        connection: &Arc<Connection>,
        buffer: Buffer,
    ) -> impl Future<Output = Option<Buffer>> + Send;
}

/// True if an operation had no memory since the last call.
static OUT_OF_MEMORY: AtomicBool = AtomicBool::new(false);

/// Returns true if an operation had no memory since the last call.
pub fn take_out_of_memory() -> bool {
    OUT_OF_MEMORY.swap(false, Relaxed)
}

/// Tries a read at once, and spawns a coroutine of this domain for one that has to wait, at the priority of its
/// connection.
#[derive(Clone, Copy)]
pub struct Operations(pub &'static Domain);

impl Service for Operations {
    async fn read(&self, connection: &Arc<Connection>, mut buffer: Buffer) -> Option<Buffer> {
        if let Some(is_read) = connection.socket.try_read(&mut buffer) {
            return is_read.then_some(buffer);
        }
        let of = connection.clone();
        let operation = async move {
            let is_read = poll_fn(|context| of.socket.poll_read(&mut buffer, context)).await;
            is_read.then_some(buffer)
        };
        let priority = Priority::new(connection.priority.into());
        match self.0.try_spawn(Metered::new(operation), priority) {
            Ok(operation) => operation.await.ok().flatten(),
            Err(_) => {
                OUT_OF_MEMORY.store(true, Relaxed);
                None
            }
        }
    }
}

/// Waits at the socket.
#[derive(Clone, Copy)]
pub struct Direct;

impl Service for Direct {
    async fn read(&self, connection: &Arc<Connection>, mut buffer: Buffer) -> Option<Buffer> {
        let socket = &connection.socket;
        let is_read = poll_fn(|context| socket.poll_read(&mut buffer, context)).await;
        is_read.then_some(buffer)
    }
}
