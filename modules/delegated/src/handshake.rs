//! The words by which two CPUs agree without a lock: the status word of a task, and the bell of an agent.
//!
//! DEKKER: each side writes its own word and then reads that of the other, with a `SeqCst` fence in
//! between. So at least one side sees what the other has written, and acts.
//!
//! **Source.** The pattern is that of Dekker's algorithm (Dijkstra, "Cooperating sequential processes", 1965).

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};

#[cfg(not(all(test, loom)))]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};

use crate::status::Status;

/// The status word of a task, and the CPUs that wait until the task has landed. A task that was put back
/// is in flight until its CPU has left its stack.
#[cfg_attr(all(test, loom), derive(Default))]
pub struct StatusWord {
    word: AtomicU64,
    /// The CPUs that wait for the end of the flight (bit mask).
    wanted_by: AtomicU64,
}

impl StatusWord {
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            wanted_by: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub fn get(&self) -> Status {
        Status(self.word.load(Acquire))
    }

    #[inline(always)]
    pub fn set(&self, status: Status) {
        self.word.store(status.0, Release);
    }

    /// Changes the status if it is still `from`.
    #[inline(always)]
    pub fn change(&self, from: Status, to: Status) -> bool {
        (self.word.compare_exchange(from.0, to.0, AcqRel, Acquire)).is_ok()
    }

    /// Makes a CPU wait for the end of the flight. Returns false if the status is another one already
    /// (DEKKER).
    pub fn await_landing(&self, cpu: usize, status: Status) -> bool {
        self.wanted_by.fetch_or(1 << cpu, Relaxed);
        fence(SeqCst);
        self.get() == status
    }

    /// Takes the CPUs that wait for the end of the flight (bit mask), after the status was changed
    /// (DEKKER).
    #[inline(always)]
    pub fn take_waiters(&self) -> u64 {
        fence(SeqCst);
        match self.wanted_by.load(Relaxed) {
            0 => 0,
            _ => self.wanted_by.swap(0, Relaxed),
        }
    }

    /// Forgets the CPUs that wait. The word is that of a new task.
    pub fn forget_waiters(&self) {
        self.wanted_by.store(0, Relaxed);
    }
}

/// The bell of the agent that is attached to a CPU.
#[cfg_attr(all(test, loom), derive(Default))]
pub struct Bell {
    /// A message waits.
    rung: AtomicBool,
    /// The agent waits, and its CPU has nothing else to do in its enclave.
    waits: AtomicBool,
}

impl Bell {
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            rung: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        }
    }

    /// Tells that a message waits, after it was written. Returns true if the agent's CPU has to be
    /// interrupted (DEKKER).
    #[inline(always)]
    pub fn ring(&self) -> bool {
        // It is a swap so that the agent, which sees only the last CPU that rang, sees the messages of
        // those before as well.
        self.rung.swap(true, AcqRel);
        fence(SeqCst);
        self.waits.load(Relaxed)
    }

    /// Tells that a message waits. The CPU that calls is the agent's, and the only one.
    #[inline(always)]
    pub fn ring_here(&self) {
        self.rung.store(true, Relaxed);
    }

    /// Returns true if a message waits.
    #[inline(always)]
    pub fn has_rung(&self) -> bool {
        self.rung.load(Relaxed)
    }

    /// Makes the agent wait. Returns true if a message waits, so that the agent has to run (DEKKER).
    pub fn wait(&self) -> bool {
        self.waits.store(true, Relaxed);
        fence(SeqCst);
        self.rung.load(Relaxed)
    }

    /// Ends the wait of the agent, which runs.
    #[inline(always)]
    pub fn end_wait(&self) {
        self.waits.store(false, Relaxed);
    }

    /// Silences the bell, before the agent reads its messages.
    #[inline(always)]
    pub fn silence(&self) {
        self.rung.swap(false, Acquire);
    }

    /// Silences the bell. The CPU that calls is the agent's, and the only one.
    #[inline(always)]
    pub fn silence_here(&self) {
        self.rung.store(false, Relaxed);
    }
}
