//! The service's side: what performs a read or a write.
//!
//! Each operation owns the caller's buffer while it is under way, waits for the data, copies it, and has the
//! caller go on.
//!
//! | | a read | |
//! |---|---|---|
//! | [`KernelCoroutines`] | a coroutine of the kernel's domain, which the device wakes | KC |
//! | [`Trying`] | the calling thread tries and yields until the data is there | KT of KTUT |
//! | [`Polling`] | one thread tries all operations under way in turn, yields, and tries again | KT of KTUC |
//! | [`Direct`] | the caller waits at the socket itself, and the device wakes it | no service |
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
    components::{Buffer, Metered},
    connection::Connection,
    mailbox::Mailbox,
    memory::OutOfMemory,
    program,
};

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

/// A coroutine for each operation, with the priority of its connection.
#[derive(Clone, Copy)]
pub struct KernelCoroutines(pub &'static Domain);

impl KernelCoroutines {
    async fn perform<T: Send + 'static>(
        &self,
        connection: &Connection,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let priority = Priority::new(connection.priority.into());
        match self.0.try_spawn(Metered::new(operation), priority) {
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
        let of = connection.clone();
        let operation = async move {
            let is_read = poll_fn(|context| of.socket.poll_read(&mut buffer, context)).await;
            is_read.then_some(buffer)
        };
        self.perform(connection, operation).await.flatten()
    }

    async fn write(&self, connection: &Arc<Connection>, answer: Buffer) -> Buffer {
        let of = connection.clone();
        let operation = async move {
            of.answer(&answer);
            answer
        };
        let written = self.perform(connection, operation).await;
        // Without memory the request stays unanswered, and the run says that there was none.
        written.unwrap_or_else(|| Buffer::new(crate::message::Message::EMPTY))
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

/// One thread performs the operations of all.
#[derive(Clone)]
pub struct Polling(Arc<Desk>);

/// Where operations are handed in and given back.
struct Desk {
    submitted: Mailbox<Operation>,
    /// Of each connection its reads and its writes, of which there is one at a time.
    done: Vec<[Mailbox<Option<Buffer>>; 2]>,
}

struct Operation {
    connection: Arc<Connection>,
    what: What,
    buffer: Buffer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Read,
    Write,
}

impl Polling {
    /// Starts the thread, for so many connections.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn start(connections: usize) -> Result<Self, OutOfMemory> {
        let done = (0..connections).map(|_| [Mailbox::new(1), Mailbox::new(1)]);
        let desk = Arc::new(Desk {
            submitted: Mailbox::new(2 * connections),
            done: done.collect(),
        });
        program::start_thread(desk.clone().serve(2 * connections))?;
        Ok(Self(desk))
    }

    async fn perform(
        &self,
        connection: &Arc<Connection>,
        what: What,
        buffer: Buffer,
    ) -> Option<Buffer> {
        self.0.submitted.put(Operation {
            connection: connection.clone(),
            what,
            buffer,
        });
        self.0.done[connection.number][what as usize].take().await?
    }
}

impl Service for Polling {
    async fn read(&self, connection: &Arc<Connection>, buffer: Buffer) -> Option<Buffer> {
        self.perform(connection, What::Read, buffer).await
    }

    async fn write(&self, connection: &Arc<Connection>, answer: Buffer) -> Buffer {
        let written = self.perform(connection, What::Write, answer).await;
        written.expect("a write ends")
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
                let Some(operation) = self.submitted.take().await else {
                    break;
                };
                under_way.push(operation);
            }
            while let Some(operation) = self.submitted.try_take() {
                under_way.push(operation);
            }
            let before = under_way.len();
            for operation in under_way.extract_if(.., |operation| operation.is_ready()) {
                let was = account::poll_begins();
                self.perform(operation);
                account::hand_to(was);
            }
            if under_way.len() == before {
                account::yields();
            }
            axtask::yield_now();
        }
        program::ends();
    }

    fn perform(&self, operation: Operation) {
        let Operation {
            connection,
            what,
            mut buffer,
        } = operation;
        let done = match what {
            What::Read => {
                let is_read = connection.socket.try_read(&mut buffer);
                is_read.expect("it is ready").then_some(buffer)
            }
            What::Write => {
                connection.answer(&buffer);
                Some(buffer)
            }
        };
        self.done[connection.number][what as usize].put(done);
    }
}

impl Operation {
    fn is_ready(&self) -> bool {
        self.what == What::Write || self.connection.socket.is_ready()
    }
}
