//! A connection: the server's socket, and the client at its other end.
//!
//! The client is open loop: a request comes when it is due, whether or not the one before was answered. With
//! an interval of 0 it is closed: the next request comes with the answer. Its network takes no time, and loses
//! what a full socket has no room for, which is counted.
//!
//! **Account.** Each request is answered within the window, or late, or lost, or unanswered;
//! [`Client::figures`] has all four, and what was sent is their sum.

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

/// The requests that a socket keeps.
const SOCKET_ROOM: usize = 4;
/// The buffers of a connection: one waits for the next request while the other one is on its way.
const BUFFERS: usize = 2;

/// What an operation owns while it is under way.
pub type Buffer = Box<Message>;

/// When a run's requests are due, since boot; both 0 before it starts.
#[derive(Default)]
pub struct Window {
    start_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl Window {
    /// It is from here to there.
    pub fn set(&self, start_ns: u64, end_ns: u64) {
        self.start_ns.store(start_ns, Relaxed);
        self.end_ns.store(end_ns, Relaxed);
    }

    /// When it ends.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.load(Relaxed)
    }
}

/// A connection, and what its three components hand to each other.
pub struct Connection {
    /// Its number, from 0.
    pub number: usize,
    /// How urgent it is, 0 most.
    pub priority: u8,
    /// The server's end.
    pub socket: Socket,
    /// The client's.
    pub client: Client,
    /// From the receiver to the handler.
    pub requests: Mailbox<Buffer>,
    /// From the handler to the sender.
    pub answers: Mailbox<Buffer>,
    /// From the sender back to the receiver.
    pub free: Mailbox<Buffer>,
}

impl Connection {
    /// A connection, whose client has room for so many latencies before it allocates.
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

    /// The client's next request comes, which was due then.
    pub fn request(&self, due_ns: u64) {
        let number = self.client.sends();
        if !self
            .socket
            .deliver(Message::request(self.number, number, due_ns))
        {
            self.client.line.lock().lost += 1;
        }
    }

    /// The server's answer leaves; in a closed loop the next request comes at once.
    pub fn answer(&self, answer: &Message) {
        let now = now_ns();
        let was = account::hand_to(Owner::Client);
        self.client.takes(self.number, answer, now);
        if self.client.is_closed_loop && now < self.client.window.end_ns() {
            self.request(now);
        }
        account::hand_to(was);
    }
}

/// What is between the device and who reads.
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

    /// A message comes from the network, also in an interrupt; false if there is no room for it.
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

    /// Nothing more comes: who reads learns that.
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

    /// Copies the next message, if there is one; `Some(false)` if none will come.
    pub fn try_read(&self, buffer: &mut Message) -> Option<bool> {
        let mut queue = self.0.lock();
        queue.read(buffer)
    }

    /// The same, and wakes the caller later if there is none.
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

/// The other end.
pub struct Client {
    window: Arc<Window>,
    is_closed_loop: bool,
    line: SpinNoIrq<Line>,
}

/// What the client knows.
#[derive(Default)]
struct Line {
    sent: u32,
    lost: u64,
    answered: u64,
    late: u64,
    wrong: u64,
    latencies: Vec<u64>,
    /// The number of the answer that came last, and one.
    next: u32,
}

/// What became of the requests of a connection.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Those that were due.
    pub sent: u64,
    /// Answered within the window.
    pub answered: u64,
    /// Answered after it.
    pub late: u64,
    /// Those that the socket had no room for.
    pub lost: u64,
    /// Answers that were not the product, or came in another order than their requests.
    pub wrong: u64,
    /// From the time that a request was due to its answer, of all answers.
    pub latencies: Vec<u64>,
}

impl Figures {
    /// Those that were not answered.
    pub fn unanswered(&self) -> u64 {
        self.sent - self.lost - self.answered - self.late
    }

    /// Adds those of another connection.
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
    /// Returns the number of the next request.
    fn sends(&self) -> u32 {
        let mut line = self.line.lock();
        line.sent += 1;
        line.sent - 1
    }

    fn takes(&self, connection: usize, answer: &Message, now_ns: u64) {
        let is_late = now_ns > self.window.end_ns();
        // Numbers between were lost.
        let is_right = answer.answers(connection, answer.number);
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

    /// Whether there is a request that was neither lost nor answered.
    pub fn waits(&self) -> bool {
        let line = self.line.lock();
        u64::from(line.sent) > line.lost + line.answered + line.late
    }

    /// What became of its requests until now. Its latencies are given away.
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
