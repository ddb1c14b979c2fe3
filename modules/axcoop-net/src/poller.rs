//! The one task that owns the network (rule 1).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use core::task::{Poll, Waker};
use core::time::Duration;

use axnet::TcpSocket;
use futures_util::task::AtomicWaker;
use kspin::SpinNoIrq;

use crate::backoff::{Backoff, Rest};
use crate::connection::Connection;
use crate::listener::Listening;
use crate::operation::now;

/// How long a closed connection's socket stays, so that what it had written arrives.
pub const LINGER: Duration = Duration::from_secs(1);
/// How many of them at most: 8 MiB.
pub const LINGERING: usize = 64;

/// What others have put there for the poller.
static INBOX: SpinNoIrq<Inbox> = SpinNoIrq::new(Inbox::new());
/// Somebody has rung, and no round has begun since.
static RUNG: AtomicBool = AtomicBool::new(false);
static BELL: AtomicWaker = AtomicWaker::new();

struct Inbox {
    connections: Vec<Arc<Connection>>,
    listeners: Vec<Arc<Listening>>,
    closed: Vec<TcpSocket>,
}

impl Inbox {
    const fn new() -> Self {
        Self { connections: Vec::new(), listeners: Vec::new(), closed: Vec::new() }
    }
}

/// What the poller has done since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Polls of the interface, with a look at each connection that was waited for.
    pub rounds: u64,
    /// How many looks these were.
    pub looks: u64,
    /// How many were woken.
    pub wakes: u64,
    /// How often it slept.
    pub sleeps: u64,
}

static ROUNDS: AtomicU64 = AtomicU64::new(0);
static LOOKS: AtomicU64 = AtomicU64::new(0);
static WAKES: AtomicU64 = AtomicU64::new(0);
static SLEEPS: AtomicU64 = AtomicU64::new(0);

/// What the poller has done so far.
pub fn statistics() -> Statistics {
    Statistics {
        rounds: ROUNDS.load(Relaxed),
        looks: LOOKS.load(Relaxed),
        wakes: WAKES.load(Relaxed),
        sleeps: SLEEPS.load(Relaxed),
    }
}

/// Begins it, if that has not been done.
pub(crate) fn start() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if !STARTED.swap(true, Relaxed) {
        axtask::spawn_with_name(run, "axcoop-net".into());
    }
}

/// A round is to follow, soon.
pub(crate) fn ring() {
    // Who rang before has woken it, or it has not slept since.
    if !RUNG.swap(true, AcqRel) {
        BELL.wake();
    }
}

pub(crate) fn list(connection: Arc<Connection>) {
    INBOX.lock().connections.push(connection);
    ring();
}

pub(crate) fn listen(listening: Arc<Listening>) {
    INBOX.lock().listeners.push(listening);
    ring();
}

pub(crate) fn close(socket: TcpSocket) {
    INBOX.lock().closed.push(socket);
    ring();
}

struct Poller {
    /// Those that somebody waits for.
    connections: Vec<Arc<Connection>>,
    listeners: Vec<Arc<Listening>>,
    /// Closed, the oldest first, and since when.
    lingering: VecDeque<(Duration, TcpSocket)>,
    /// Who is to be woken after the round, and how urgently.
    ready: Vec<(u8, Waker)>,
}

fn run() {
    let mut poller = Poller {
        connections: Vec::new(),
        listeners: Vec::new(),
        lingering: VecDeque::new(),
        ready: Vec::new(),
    };
    let mut backoff = Backoff::default();
    loop {
        // Before the round, so that a ring in the middle of it makes another.
        let rung = RUNG.swap(false, AcqRel);
        let did = poller.round();
        ROUNDS.fetch_add(1, Relaxed);
        if poller.has_nothing_to_watch() {
            sleep(None);
            continue;
        }
        match backoff.after_round(now(), rung || did) {
            Rest::Yield => axtask::yield_now(),
            Rest::Sleep(rest) => sleep(Some(rest)),
        }
    }
}

/// Until somebody rings, or so long.
fn sleep(rest: Option<Duration>) {
    SLEEPS.fetch_add(1, Relaxed);
    let rung = poll_fn(|context| {
        BELL.register(context.waker());
        // After registering: who rings from here on wakes us.
        if RUNG.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    });
    // Late or not, a round follows.
    let _ = axtask::future::block_on(axtask::future::timeout(rest, rung));
}

impl Poller {
    fn has_nothing_to_watch(&self) -> bool {
        self.connections.is_empty() && self.listeners.is_empty() && self.lingering.is_empty()
    }

    /// Packets in and out, then whoever is ready because of them. Whether anything was to be done.
    fn round(&mut self) -> bool {
        axnet::poll_interfaces();
        let now = now();
        let mut did = false;
        {
            let mut inbox = INBOX.lock();
            self.connections.append(&mut inbox.connections);
            self.listeners.append(&mut inbox.listeners);
            if !inbox.closed.is_empty() {
                let closed = core::mem::take(&mut inbox.closed);
                drop(inbox);
                for socket in closed {
                    // Fails only for a socket that is closed already.
                    let _ = socket.shutdown();
                    self.lingering.push_back((now, socket));
                }
            }
        }
        let ready = &mut self.ready;
        self.listeners.retain(|listening| {
            let has_come = listening.look(now, |priority, waker| ready.push((priority, waker)));
            did |= has_come == Some(true);
            has_come.is_some()
        });
        LOOKS.fetch_add(self.connections.len() as u64, Relaxed);
        self.connections
            .retain(|connection| connection.look(now, |priority, waker| ready.push((priority, waker))));
        while let Some((since, _)) = self.lingering.front()
            && (self.lingering.len() > LINGERING || now.saturating_sub(*since) >= LINGER)
        {
            self.lingering.pop_front();
        }
        did |= !self.ready.is_empty();
        WAKES.fetch_add(self.ready.len() as u64, Relaxed);
        // Stable: those of one priority in the order in which they came.
        self.ready.sort_by_key(|(priority, _)| *priority);
        self.ready.drain(..).for_each(|(_, waker)| waker.wake());
        did
    }
}
