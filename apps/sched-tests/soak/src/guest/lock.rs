//! A lock that sleeps, whose waits have limits.

use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::*},
    time::Duration,
};

use axtask::WaitQueue;

/// How long a wait lasts at most before it looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Guards a plain number, which counts its releases.
pub struct Lock {
    is_held: AtomicBool,
    freed: WaitQueue,
    counted: UnsafeCell<u64>,
    /// The same number, counted without the lock.
    expected: AtomicU64,
}

// SAFETY: `counted` is touched by who has set `is_held` only; that nobody else does so is what is tested.
unsafe impl Sync for Lock {}

/// The locks that tasks take.
pub static LOCKS: [Lock; 3] = [const { Lock::new() }; 3];

impl Lock {
    const fn new() -> Self {
        Self {
            is_held: AtomicBool::new(false),
            freed: WaitQueue::new(),
            counted: UnsafeCell::new(0),
            expected: AtomicU64::new(0),
        }
    }

    /// Does this while no other task is in here, or says that one was; `waits` is called before each
    /// wait.
    #[must_use = "it says whether the lock is one"]
    pub fn within(&self, waits: impl Fn(), does: impl FnOnce()) -> bool {
        let take = || {
            (self.is_held)
                .compare_exchange(false, true, Acquire, Relaxed)
                .is_ok()
        };
        loop {
            waits();
            if !self.freed.wait_timeout_until(LOOK_AGAIN, take) {
                break;
            }
        }
        // SAFETY: this task has set `is_held`.
        let counted = unsafe { self.counted.get().read_volatile() };
        does();
        // SAFETY: as before.
        let is_alone = unsafe { self.counted.get().read_volatile() } == counted;
        // SAFETY: as before.
        unsafe { self.counted.get().write_volatile(counted + 1) };
        self.expected.fetch_add(1, Relaxed);
        self.release();
        is_alone
    }

    /// Lets another task in.
    pub fn release(&self) {
        self.is_held.store(false, Release);
        self.freed.notify_one(false);
    }

    /// How often it was released, and how often that was counted. Called while nobody has it.
    pub fn counts(&self) -> (u64, u64) {
        // SAFETY: nobody has it.
        let counted = unsafe { self.counted.get().read_volatile() };
        (self.expected.load(Relaxed), counted)
    }
}
