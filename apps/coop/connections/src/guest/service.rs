//! The service's side: what performs a read or a write.
//!
//! An operation owns the caller's buffer while it is under way. It is tried at once, as a system call of the
//! report's is, whose answer says whether there is anything to wait for. One that has to wait waits for the
//! data, copies it, and has the caller go on:
//!
//! | | a read that has to wait | |
//! |---|---|---|
//! | [`KernelCoroutines`] | a coroutine, which the device wakes | KC |
//! | [`Trying`] | the calling thread tries and yields until the data is there | KT of KTUT |
//! | [`Polling`] | one thread tries all that wait in turn, yields, and tries again | KT of KTUC |
//! | [`Direct`] | the caller waits at the socket itself, and the device wakes it | no service |
//!
//! The client's network takes what is written at once, so no write waits.
//!
//! In the report a thread in a system call has a stack in the kernel beside its own, and is one thread all the
//! same. A unikernel's has one stack: it is the caller who tries.
//!
//! The last is what a unikernel makes possible and the report does not have: it is there to tell what the
//! service itself costs.

use alloc::{sync::Arc, vec::Vec};
use core::{
    future::{Future, poll_fn},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use axcoop_arceos::{Domain, Priority};

use super::{
    account::{self, Owner},
    connection::{Buffer, Connection},
    mailbox::Mailbox,
    memory::OutOfMemory,
    metered::Metered,
    program,
};
use crate::message::Message;

/// What a component asks to read and write for it.
pub trait Service: Clone + Send + Sync + 'static {
    /// Reads the next request into the buffer; nothing if there will be none.
    fn read(
        &self,
        connection: &Arc<Connection>,
        buffer: Buffer,
    ) -> impl Future<Output = Option<Buffer>> + Send;

    /// Writes an answer; returns the buffer.
    fn write(
        &self,
        connection: &Arc<Connection>,
        answer: Buffer,
    ) -> impl Future<Output = Buffer> + Send;

    /// Whether there is a thread of its own, which [`close`](Self::close) ends.
    const HAS_THREAD: bool = false;

    /// No operation will be asked for any more.
    fn close(&self) {}
}

/// An operation had no memory.
static HAD_NO_MEMORY: AtomicBool = AtomicBool::new(false);

/// Whether an operation had no memory since this was asked last.
pub fn had_no_memory() -> bool {
    HAD_NO_MEMORY.swap(false, Relaxed)
}

/// A coroutine for each operation that has to wait, or for each, with the priority of its connection.
#[derive(Clone, Copy)]
pub struct KernelCoroutines {
    /// Whose.
    pub domain: &'static Domain,
    /// Whether an operation is tried first.
    pub tries_first: bool,
}

impl KernelCoroutines {
    async fn perform<T: Send + 'static>(
        &self,
        connection: &Connection,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let priority = Priority::new(connection.priority.into());
        match self.domain.try_spawn(Metered::new(operation), priority) {
            Ok(operation) => operation.await.ok(),
            Err(_) => {
                HAD_NO_MEMORY.store(true, Relaxed);
                None
            }
        }
    }
}

impl Service for KernelCoroutines {
    async fn read(&self, connection: &Arc<Connection>, mut buffer: Buffer) -> Option<Buffer> {
        if self.tries_first
            && let Some(is_read) = connection.socket.try_read(&mut buffer)
        {
            return is_read.then_some(buffer);
        }
        let of = connection.clone();
        let operation = async move {
            let is_read = poll_fn(|context| of.socket.poll_read(&mut buffer, context)).await;
            is_read.then_some(buffer)
        };
        self.perform(connection, operation).await.flatten()
    }

    async fn write(&self, connection: &Arc<Connection>, answer: Buffer) -> Buffer {
        if self.tries_first {
            connection.answer(&answer);
            return answer;
        }
        let of = connection.clone();
        let operation = async move {
            of.answer(&answer);
            answer
        };
        let written = self.perform(connection, operation).await;
        // Without memory the request stays unanswered, and the run says that there was none.
        written.unwrap_or_else(|| Buffer::new(Message::EMPTY))
    }
}

/// The calling thread tries and yields.
#[derive(Clone, Copy)]
pub struct Trying;

impl Service for Trying {
    async fn read(&self, connection: &Arc<Connection>, mut buffer: Buffer) -> Option<Buffer> {
        let socket = &connection.socket;
        if let Some(is_read) = socket.try_read(&mut buffer) {
            return is_read.then_some(buffer);
        }
        let was = account::hand_to(Owner::Rest);
        while !socket.is_ready() {
            account::yields();
            axtask::yield_now();
        }
        account::hand_to(was);
        let is_read = socket.try_read(&mut buffer);
        is_read.expect("nobody else reads it").then_some(buffer)
    }

    async fn write(&self, connection: &Arc<Connection>, answer: Buffer) -> Buffer {
        connection.answer(&answer);
        answer
    }
}

/// The caller waits at the socket.
#[derive(Clone, Copy)]
pub struct Direct;

impl Service for Direct {
    async fn read(&self, connection: &Arc<Connection>, mut buffer: Buffer) -> Option<Buffer> {
        let socket = &connection.socket;
        let is_read = poll_fn(|context| socket.poll_read(&mut buffer, context)).await;
        is_read.then_some(buffer)
    }

    async fn write(&self, connection: &Arc<Connection>, answer: Buffer) -> Buffer {
        connection.answer(&answer);
        answer
    }
}

/// One thread performs the reads of all that have to wait.
#[derive(Clone)]
pub struct Polling(Arc<Desk>);

/// Where reads are handed in and given back.
struct Desk {
    submitted: Mailbox<(Arc<Connection>, Buffer)>,
    /// Of each connection.
    done: Vec<Mailbox<Option<Buffer>>>,
}

impl Polling {
    /// Starts the thread, for so many connections.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn start(connections: usize) -> Result<Self, OutOfMemory> {
        let desk = Arc::new(Desk {
            submitted: Mailbox::new(connections),
            done: (0..connections).map(|_| Mailbox::new(1)).collect(),
        });
        program::start_thread(desk.clone().serve(connections))?;
        Ok(Self(desk))
    }
}

impl Service for Polling {
    async fn read(&self, connection: &Arc<Connection>, mut buffer: Buffer) -> Option<Buffer> {
        if let Some(is_read) = connection.socket.try_read(&mut buffer) {
            return is_read.then_some(buffer);
        }
        self.0.submitted.put((connection.clone(), buffer));
        self.0.done[connection.number].take().await?
    }

    async fn write(&self, connection: &Arc<Connection>, answer: Buffer) -> Buffer {
        connection.answer(&answer);
        answer
    }

    const HAS_THREAD: bool = true;

    fn close(&self) {
        self.0.submitted.close();
    }
}

impl Desk {
    async fn serve(self: Arc<Self>, room: usize) {
        let mut under_way = Vec::with_capacity(room);
        loop {
            if under_way.is_empty() {
                let Some(read) = self.submitted.take().await else {
                    break;
                };
                under_way.push(read);
            }
            while let Some(read) = self.submitted.try_take() {
                under_way.push(read);
            }
            let before = under_way.len();
            for (connection, mut buffer) in
                under_way.extract_if(.., |(connection, _)| connection.socket.is_ready())
            {
                let was = account::poll_begins();
                let is_read = connection.socket.try_read(&mut buffer);
                let read = is_read.expect("nobody else reads it").then_some(buffer);
                self.done[connection.number].put(read);
                account::hand_to(was);
            }
            if under_way.len() == before {
                account::yields();
            }
            axtask::yield_now();
        }
        program::ends();
    }
}
