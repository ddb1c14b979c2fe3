//! Whose the CPU time is: of the components and operations, of the client, of nobody, and what is left.
//!
//! Time goes to whoever was said to have the CPU last. A component and an operation has it from the
//! beginning of its poll to the end; the client while an interrupt delivers what is due, and while it checks an
//! answer; nobody from when the CPU stopped having anything to do until the interrupt that finds it so. What
//! is left is the way from one to the next: an executor or `axtask`.
//! So the four add up to all time, to the tick of the counter. Of what is left, what comes after the last poll
//! before the CPU idles counts as idle: a switch.
//!
//! What a component does so that the next one goes on is in its own time: the wake of a coroutine, or of a
//! thread, which takes more.
//!
//! **Where it is kept.** On one CPU. On several each would have its own, and a component that polls there
//! says nothing about how long others had nothing to do.
//!
//! **What it costs.** Two readings of the counter a poll, with interrupts off, in each combination alike.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use axhal::time::{current_ticks, ticks_to_nanos};
use kernel_guard::{BaseGuard, IrqSave};

/// Who has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Owner {
    /// A component or an operation.
    Component,
    /// The client, or its device.
    Client,
    /// Somebody on the way from one to the next.
    Rest,
    /// Nobody.
    Idle,
}

const OWNERS: [Owner; 4] = [Owner::Component, Owner::Client, Owner::Rest, Owner::Idle];

/// Until when all is booked, in ticks.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// Who has the CPU since then.
static OWNER: AtomicU8 = AtomicU8::new(Owner::Rest as u8);
static BOOKED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static POLLS: AtomicU64 = AtomicU64::new(0);
/// What was booked and counted when the account was closed.
static CLOSED: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
/// The id of the task that runs when there is nothing to do, once it was met.
static IDLE: AtomicU64 = AtomicU64::new(0);

/// Whether there is an account.
#[inline]
pub fn is_kept() -> bool {
    axhal::cpu_num() == 1
}

/// What the account says of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Nanoseconds of components and operations.
    pub components_ns: u64,
    /// Of the client.
    pub client_ns: u64,
    /// Of what is left.
    pub rest_ns: u64,
    /// Of nobody.
    pub idle_ns: u64,
    /// Polls of components and operations.
    pub polls: u64,
}

/// Interrupts are off: each of the CPU's owners is written by one at a time.
fn book(to: Owner) -> Owner {
    let now = current_ticks();
    let was = OWNERS[usize::from(OWNER.load(Relaxed)) % OWNERS.len()];
    add(&BOOKED[was as usize], now.wrapping_sub(UNTIL.load(Relaxed)));
    UNTIL.store(now, Relaxed);
    OWNER.store(to as u8, Relaxed);
    was
}

/// A plain addition: there is one writer at a time.
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// From now on the CPU is this owner's; returns whose it was.
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

/// A poll begins; returns whose the CPU was.
#[inline]
pub fn poll_begins() -> Owner {
    if is_kept() {
        add(&POLLS, 1);
    }
    hand_to(Owner::Component)
}

/// The device's interrupt begins; returns whose the CPU was, or will be again.
pub fn interrupt_begins() -> Owner {
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

/// Whether the interrupt has come while the CPU had nothing to do.
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

/// A window begins now; in an interrupt.
pub fn open() {
    if is_kept() {
        book(Owner::Client);
        let all = BOOKED.iter().chain([&POLLS]);
        all.for_each(|counter| counter.store(0, Relaxed));
    }
}

/// The window ends now; in an interrupt.
pub fn close() {
    if is_kept() {
        book(Owner::Client);
        let all = BOOKED.iter().chain([&POLLS]);
        (CLOSED.iter().zip(all))
            .for_each(|(kept, counter)| kept.store(counter.load(Relaxed), Relaxed));
    }
}

/// What the last window's account says, if there is one.
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
