//! The task that polls the network for all waiters.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::pin;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};
use core::task::{Context, Waker};
use core::time::Duration;

use axcoop::Priority;
use futures_util::task::AtomicWaker;

use crate::backoff::{Backoff, Rest};
use crate::connection::{self, Connection};
use crate::poller_wakeup;
use crate::ports::{self, Listens};
use crate::priority;
use crate::stack::{self, Socket};
use crate::system::{self, now};
use crate::wire::NoNetwork;

/// The packets received before the sockets are looked at.
const BATCH: usize = 64;
/// The time between two looks at the deadlines while nothing changes.
const DEADLINES: Duration = Duration::from_millis(5);

/// Counters of the poller since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Rounds of receiving and sending packets.
    pub rounds: u64,
    /// Packets that were received.
    pub packets: u64,
    /// Looks at a connection with a waiter.
    pub looks: u64,
    /// Wakes of waiters.
    pub wakes: u64,
    /// Sleeps between two rounds.
    pub sleeps: u64,
}

static ROUNDS: AtomicU64 = AtomicU64::new(0);
static PACKETS: AtomicU64 = AtomicU64::new(0);
static LOOKS: AtomicU64 = AtomicU64::new(0);
static WAKES: AtomicU64 = AtomicU64::new(0);
static SLEEPS: AtomicU64 = AtomicU64::new(0);

/// Returns the counters so far.
pub fn statistics() -> Statistics {
    Statistics {
        rounds: ROUNDS.load(Relaxed),
        packets: PACKETS.load(Relaxed),
        looks: LOOKS.load(Relaxed),
        wakes: WAKES.load(Relaxed),
        sleeps: SLEEPS.load(Relaxed),
    }
}

/// Takes the card and starts the poller, unless that is done. Listening and connecting do so by themselves; this call
/// returns the reason of a failure.
///
/// # Errors
/// [`NoNetwork`].
pub fn start() -> Result<(), NoNetwork> {
    const NOT_YET: u8 = 0;
    const UNDER_WAY: u8 = 1;
    const DONE: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(NOT_YET);
    loop {
        match STATE.compare_exchange(NOT_YET, UNDER_WAY, Acquire, Acquire) {
            Ok(_) => break,
            Err(DONE) => return Ok(()),
            Err(_) => system::yield_now(),
        }
    }
    let started = stack::start();
    if started.is_ok() {
        system::spawn(run);
    }
    STATE.store(if started.is_ok() { DONE } else { NOT_YET }, Release);
    started
}

pub(crate) struct Poller {
    /// The connections with waiters.
    connections: Vec<Arc<Connection>>,
    listeners: Vec<Arc<dyn Listens>>,
    looked: Duration,
    backoff: Backoff,
    /// The wakers of the round, with their priorities.
    woken: Vec<(Priority, Waker)>,
    /// Empty between rounds, like `woken`: kept for its memory.
    fetched: Vec<(Socket, SocketAddr)>,
}

/// The action of the poller between two rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The poller yields to other tasks.
    Yield,
    /// The poller sleeps until a ring, or for this long.
    Sleep(Option<Duration>),
}

fn run() {
    priority::set_domain(system::serve_domain());
    let mut poller = Poller::new();
    let sleeper = Arc::new(Sleeper::default());
    loop {
        match poller.turn() {
            Pause::Yield => system::yield_now(),
            Pause::Sleep(rest) => system::block_on(sleep(&sleeper, rest)),
        }
    }
}

/// Marks the poller's priority before it wakes the poller (rule 4 of [`priority`]).
#[derive(Default)]
pub(crate) struct Sleeper {
    task: AtomicWaker,
}

#[cfg(test)]
impl Sleeper {
    /// Wakes the poller when the time of a sleep is over.
    pub fn end_sleep(self: &Arc<Self>) {
        self.wake_by_ref();
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        priority::mark();
        self.task.wake();
    }
}

/// Sleeps until a ring, or for this long.
pub(crate) async fn sleep(sleeper: &Arc<Sleeper>, rest: Option<Duration>) {
    SLEEPS.fetch_add(1, Relaxed);
    priority::clear_marks();
    let waker = Waker::from(sleeper.clone());
    let mut sleep = pin!(system::rest(rest, poller_wakeup::wait_for_ring()));
    poll_fn(|context| {
        sleeper.task.register(context.waker());
        sleep.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await;
}

impl Poller {
    pub fn new() -> Self {
        Self {
            connections: Vec::new(),
            listeners: Vec::new(),
            looked: Duration::ZERO,
            backoff: Backoff::default(),
            woken: Vec::new(),
            fetched: Vec::new(),
        }
    }

    /// Makes a round, and returns the action before the next one.
    pub fn turn(&mut self) -> Pause {
        let rung = poller_wakeup::take_ring();
        let did = self.round();
        ROUNDS.fetch_add(1, Relaxed);
        priority::end_round();
        if self.has_nothing_to_watch() {
            return Pause::Sleep(None);
        }
        match self.backoff.after_round(now(), rung || did) {
            Rest::Yield => Pause::Yield,
            Rest::Sleep(rest) => Pause::Sleep(Some(rest)),
        }
    }

    pub fn has_nothing_to_watch(&self) -> bool {
        self.listeners.is_empty() && !stack::has_sockets()
    }

    /// Receives and sends packets, then wakes the waiters that are ready. Returns true if there was activity.
    fn round(&mut self) -> bool {
        let (mut packets, mut has_changed) = (0, false);
        while packets < BATCH
            && let Some(changed) = stack::receive()
        {
            packets += 1;
            has_changed |= changed;
        }
        has_changed |= stack::transmit();
        PACKETS.fetch_add(packets as u64, Relaxed);
        let now = now();
        let look = poller_wakeup::take_look() | has_changed;
        ports::append_new_ports(&mut self.listeners);
        connection::append_newly_listed(&mut self.connections);
        let mut did = packets > 0;
        if look || now.saturating_sub(self.looked) >= DEADLINES {
            self.looked = now;
            did |= self.look(now);
        }
        did
    }

    /// Looks at all connections with waiters, and wakes those that are ready.
    fn look(&mut self, now: Duration) -> bool {
        let Self {
            connections,
            listeners,
            woken,
            fetched,
            ..
        } = self;
        let mut has_come = false;
        listeners.retain(|listening| {
            let came = listening.look(now, fetched, &mut |priority, waker| {
                woken.push((priority, waker))
            });
            has_come |= came == Some(true);
            came.is_some()
        });
        connections.retain(|connection| connection.is_waited_for());
        LOOKS.fetch_add(connections.len() as u64, Relaxed);
        let mut next = connections.iter();
        stack::readiness(
            connections.iter().map(|connection| connection.socket()),
            |reads, writes| {
                let connection = next.next().expect("as many as there are sockets");
                connection.wake([reads, writes], now, |priority, waker| {
                    woken.push((priority, waker))
                });
            },
        );
        stack::clear_lingering();
        let woke = !woken.is_empty();
        WAKES.fetch_add(woken.len() as u64, Relaxed);
        // Stable: those of one priority stay in the order in which they were listed.
        woken.sort_by_key(|(priority, _)| *priority);
        woken.drain(..).for_each(|(_, waker)| waker.wake());
        woke || has_come
    }
}
