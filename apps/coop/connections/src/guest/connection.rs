//! A connection: the server's socket, and the client at its other end.
//!
//! The client is open loop: a request comes when it is due, whether or not the one before was answered. With an
//! interval of 0 it is closed: the next request comes with the answer. Its network takes no time, and loses requests
//! for which a socket has no room, which are counted.
//!
//! **Account.** Each request is answered within the window, late, lost or unanswered; [`Client::figures`] has all
//! four, and their sum is the number sent.

use alloc::{boxed::Box, collections::VecDeque, sync::Arc, vec::Vec};
use core::{
    mem,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};

use kspin::SpinNoIrq;
use sched_tests_common::platform::now_ns;

use super::{
    account::{self, Owner},
    mailbox::{Mailbox, leave},
};
use crate::message::Message;

/// The number of requests that a socket holds.
const SOCKET_ROOM: usize = 4;
/// The number of buffers of a connection: one waits for the next request while the other one is in use.
const BUFFERS: usize = 2;

/// The buffer that an operation owns while it is under way.
pub type Buffer = Box<Message>;

/// The time in which a run's requests are due, in ns since boot; both 0 before it starts.
#[derive(Default)]
pub struct Window {
    start_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl Window {
    /// Sets the beginning and the end.
    pub fn set(&self, start_ns: u64, end_ns: u64) {
        self.start_ns.store(start_ns, Relaxed);
        self.end_ns.store(end_ns, Relaxed);
    }

    /// Returns the end.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.load(Relaxed)
    }
}

/// A connection, and the mailboxes between its three components.
pub struct Connection {
    /// The number of the connection, from 0.
    pub number: usize,
    /// Its priority, 0 the most urgent.
    pub priority: u8,
    /// The server's end.
    pub socket: Socket,
    /// The client's end.
    pub client: Client,
    /// From the receiver to the handler.
    pub requests: Mailbox<Buffer>,
    /// From the handler to the sender.
    pub answers: Mailbox<Buffer>,
    /// From the sender back to the receiver.
    pub free: Mailbox<Buffer>,
}

impl Connection {
    /// Makes a connection, whose client has room for this many latencies before it allocates.
    pub fn new(
        number: usize,
        priority: u8,
        window: &Arc<Window>,
        is_closed_loop: bool,
        latencies: usize,
    ) -> Arc<Self> {
        let free = Mailbox::new(BUFFERS);
        (0..BUFFERS).for_each(|_| free.put(Buffer::new(Message::EMPTY)));
        Arc::new(Self {
            number,
            priority,
            socket: Socket::new(),
            client: Client {
                window: window.clone(),
                is_closed_loop,
                line: SpinNoIrq::new(Line {
                    latencies: Vec::with_capacity(latencies),
                    ..Line::default()
                }),
            },
            requests: Mailbox::new(BUFFERS),
            answers: Mailbox::new(BUFFERS),
            free,
        })
    }

    /// Delivers the client's next request, which was due at `due_ns`.
    pub fn request(&self, due_ns: u64) {
        let number = self.client.take_number();
        if !self
            .socket
            .deliver(Message::request(self.number, number, due_ns))
        {
            self.client.line.lock().lost += 1;
        }
    }

    /// Takes the server's answer; in a closed loop the next request comes at once.
    pub fn answer(&self, answer: &Message) {
        let now = now_ns();
        let was = account::hand_to(Owner::Client);
        self.client.record(self.number, answer, now);
        if self.client.is_closed_loop && now < self.client.window.end_ns() {
            self.request(now);
        }
        account::hand_to(was);
    }
}

/// The queue between the device and the reader.
pub struct Socket(SpinNoIrq<Queue>);

struct Queue {
    messages: VecDeque<Message>,
    reader: Option<Waker>,
    is_closed: bool,
}

impl Socket {
    fn new() -> Self {
        Self(SpinNoIrq::new(Queue {
            messages: VecDeque::with_capacity(SOCKET_ROOM),
            reader: None,
            is_closed: false,
        }))
    }

    /// Delivers a message from the network, also in an interrupt. Returns false if there is no room for it.
    fn deliver(&self, message: Message) -> bool {
        let reader = {
            let mut queue = self.0.lock();
            if queue.messages.len() == SOCKET_ROOM {
                return false;
            }
            queue.messages.push_back(message);
            queue.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
        true
    }

    /// Ends the stream, and tells the reader.
    pub fn close(&self) {
        let reader = {
            let mut queue = self.0.lock();
            queue.is_closed = true;
            queue.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Copies the next message, if there is one. Returns `Some(false)` at the end of the stream.
    pub fn try_read(&self, buffer: &mut Message) -> Option<bool> {
        let mut queue = self.0.lock();
        queue.read(buffer)
    }

    /// Copies the next message. If there is none, the caller will be woken.
    pub fn poll_read(&self, buffer: &mut Message, context: &Context) -> Poll<bool> {
        let mut queue = self.0.lock();
        match queue.read(buffer) {
            Some(done) => Poll::Ready(done),
            None => {
                leave(&mut queue.reader, context.waker());
                Poll::Pending
            }
        }
    }
}

impl Queue {
    fn read(&mut self, buffer: &mut Message) -> Option<bool> {
        match self.messages.pop_front() {
            Some(message) => {
                *buffer = message;
                Some(true)
            }
            None => self.is_closed.then_some(false),
        }
    }
}

/// The other end of a connection.
pub struct Client {
    window: Arc<Window>,
    is_closed_loop: bool,
    line: SpinNoIrq<Line>,
}

/// The state of the client.
#[derive(Default)]
struct Line {
    sent: u32,
    lost: u64,
    answered: u64,
    late: u64,
    wrong: u64,
    latencies: Vec<u64>,
    /// The number of the last answer, plus 1.
    next: u32,
}

/// The counts of a connection's requests.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Requests that were due.
    pub sent: u64,
    /// Requests answered within the window.
    pub answered: u64,
    /// Requests answered after it.
    pub late: u64,
    /// Requests for which the socket had no room.
    pub lost: u64,
    /// Answers that were not the product, or came in another order than their requests.
    pub wrong: u64,
    /// The times from when a request was due to its answer, of all answers.
    pub latencies: Vec<u64>,
}

impl Figures {
    /// Returns the number of requests that were not answered.
    pub fn unanswered(&self) -> u64 {
        self.sent - self.lost - self.answered - self.late
    }

    /// Adds the counts of another connection.
    pub fn add(&mut self, mut other: Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.late += other.late;
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.latencies.append(&mut other.latencies);
    }
}

impl Client {
    /// Counts the next request, and returns its number.
    fn take_number(&self) -> u32 {
        let mut line = self.line.lock();
        line.sent += 1;
        line.sent - 1
    }

    fn record(&self, connection: usize, answer: &Message, now_ns: u64) {
        let is_late = now_ns > self.window.end_ns();
        // Requests with numbers in between were lost.
        let is_right = answer.is_answer_to(connection, answer.number);
        let mut line = self.line.lock();
        if !is_right || answer.number < line.next {
            line.wrong += 1;
        }
        line.next = answer.number + 1;
        line.latencies.push(now_ns.saturating_sub(answer.due_ns));
        if is_late {
            line.late += 1;
        } else {
            line.answered += 1;
        }
    }

    /// Returns true if there is a request that was neither lost nor answered.
    pub fn is_waiting(&self) -> bool {
        let line = self.line.lock();
        u64::from(line.sent) > line.lost + line.answered + line.late
    }

    /// Returns the counts so far. Its latencies are moved out.
    pub fn figures(&self) -> Figures {
        let mut line = self.line.lock();
        Figures {
            sent: line.sent.into(),
            answered: line.answered,
            late: line.late,
            lost: line.lost,
            wrong: line.wrong,
            latencies: mem::take(&mut line.latencies),
        }
    }
}
