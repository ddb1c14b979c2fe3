//! The account of CPU time: components and operations, the client, idle time, and the rest.
//!
//! Time is charged to the owner that was handed the CPU last. A component or an operation owns it from the beginning
//! of its poll to the end. The client owns it while an interrupt delivers due requests, and while it checks an
//! answer. Idle time runs from when the CPU had nothing to do until the interrupt that ends it. The rest is the way
//! from one owner to the next: an executor or `axtask`. So the four add up to all time, to the tick of the counter.
//! The switch after the last poll before an idle CPU counts as idle.
//!
//! The steps of a component that make the next one ready are in its own time: the wake of a coroutine, or of a
//! thread, which takes more.
//!
//! **Limits.** The account is kept on one CPU. Each of several would have its own, and a poll on one says nothing
//! about how long others were idle.
//!
//! **Cost.** Two readings of the counter a poll, with interrupts off, in each combination alike.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use axhal::time::{current_ticks, ticks_to_nanos};
use kernel_guard::{BaseGuard, IrqSave};

/// The owner of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Owner {
    /// A component or an operation.
    Component,
    /// The client, or its device.
    Client,
    /// The way from one owner to the next.
    Rest,
    /// No task: the CPU is idle.
    Idle,
}

const OWNERS: [Owner; 4] = [Owner::Component, Owner::Client, Owner::Rest, Owner::Idle];

/// The time up to which all is charged, in ticks.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// The owner since then.
static OWNER: AtomicU8 = AtomicU8::new(Owner::Rest as u8);
static BOOKED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static POLLS: AtomicU64 = AtomicU64::new(0);
/// The times and the number of polls when the account was closed.
static CLOSED: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
/// The id of the idle task, or 0 until it is seen.
static IDLE: AtomicU64 = AtomicU64::new(0);

/// Returns true if there is an account.
#[inline]
pub fn is_kept() -> bool {
    axhal::cpu_num() == 1
}

/// The account of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Nanoseconds of components and operations.
    pub components_ns: u64,
    /// Nanoseconds of the client.
    pub client_ns: u64,
    /// Nanoseconds of the rest.
    pub rest_ns: u64,
    /// Nanoseconds of idle time.
    pub idle_ns: u64,
    /// Polls of components and operations.
    pub polls: u64,
}

/// Charges the time so far and sets the owner. Interrupts are off, so there is one writer at a time.
fn book(to: Owner) -> Owner {
    let now = current_ticks();
    let was = OWNERS[usize::from(OWNER.load(Relaxed)) % OWNERS.len()];
    add(&BOOKED[was as usize], now.wrapping_sub(UNTIL.load(Relaxed)));
    UNTIL.store(now, Relaxed);
    OWNER.store(to as u8, Relaxed);
    was
}

/// Adds without a read-modify-write: there is one writer at a time.
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Hands the CPU to an owner; returns the previous one.
#[inline]
pub fn hand_to(owner: Owner) -> Owner {
    if !is_kept() {
        return owner;
    }
    let interrupts = IrqSave::acquire();
    let was = book(owner);
    IrqSave::release(interrupts);
    was
}

/// Begins a poll; returns the previous owner.
#[inline]
pub fn begin_poll() -> Owner {
    if is_kept() {
        add(&POLLS, 1);
    }
    hand_to(Owner::Component)
}

/// Begins the device's interrupt; returns the owner that it has interrupted.
pub fn begin_interrupt() -> Owner {
    if !is_kept() {
        return Owner::Client;
    }
    if is_idle() {
        OWNER.store(Owner::Idle as u8, Relaxed);
        book(Owner::Client);
        return Owner::Rest; // the woken task is on its way
    }
    book(Owner::Client)
}

/// Returns true if the interrupt has come while the CPU was idle.
fn is_idle() -> bool {
    let current = axtask::current();
    let id = current.id().as_u64();
    match IDLE.load(Relaxed) {
        0 if current.name() == "idle" => {
            IDLE.store(id, Relaxed);
            true
        }
        idle => id == idle,
    }
}

/// Begins a window. Called in an interrupt.
pub fn open() {
    if is_kept() {
        book(Owner::Client);
        let all = BOOKED.iter().chain([&POLLS]);
        all.for_each(|counter| counter.store(0, Relaxed));
    }
}

/// Ends the window. Called in an interrupt.
pub fn close() {
    if is_kept() {
        book(Owner::Client);
        let all = BOOKED.iter().chain([&POLLS]);
        (CLOSED.iter().zip(all))
            .for_each(|(kept, counter)| kept.store(counter.load(Relaxed), Relaxed));
    }
}

/// Returns the account of the last window, if there is one.
pub fn closed() -> Option<Account> {
    let of = |at: usize| CLOSED[at].load(Relaxed);
    let ns = |owner: Owner| ticks_to_nanos(of(owner as usize));
    is_kept().then(|| Account {
        components_ns: ns(Owner::Component),
        client_ns: ns(Owner::Client),
        rest_ns: ns(Owner::Rest),
        idle_ns: ns(Owner::Idle),
        polls: of(4),
    })
}
