//! A lock that blocks the tasks that wait for it, for a limited time at once.

use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::*},
    time::Duration,
};

use axtask::WaitQueue;

/// The longest time of a wait, after which it looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A lock over a plain number, which counts its releases.
pub struct Lock {
    is_held: AtomicBool,
    freed: WaitQueue,
    counted: UnsafeCell<u64>,
    /// The same number, counted without the lock.
    expected: AtomicU64,
}

// SAFETY: only the task that has set `is_held` touches `counted`. This program tests that no other
// task does.
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

    /// Takes the lock, calls `act`, and releases the lock. Calls `note_wait` before each wait. Returns
    /// false if another task was within the lock meanwhile.
    #[must_use = "it says whether the lock is one"]
    pub fn within(&self, note_wait: impl Fn(), act: impl FnOnce()) -> bool {
        let take = || {
            (self.is_held)
                .compare_exchange(false, true, Acquire, Relaxed)
                .is_ok()
        };
        loop {
            note_wait();
            if !self.freed.wait_timeout_until(LOOK_AGAIN, take) {
                break;
            }
        }
        // SAFETY: this task has set `is_held`.
        let counted = unsafe { self.counted.get().read_volatile() };
        act();
        // SAFETY: as before.
        let is_alone = unsafe { self.counted.get().read_volatile() } == counted;
        // SAFETY: as before.
        unsafe { self.counted.get().write_volatile(counted + 1) };
        self.expected.fetch_add(1, Relaxed);
        self.release();
        is_alone
    }

    /// Releases the lock and wakes a task that waits for it.
    pub fn release(&self) {
        self.is_held.store(false, Release);
        self.freed.notify_one(false);
    }

    /// Returns the number of releases, and how many of them were counted under the lock. Called
    /// while no task holds the lock.
    pub fn counts(&self) -> (u64, u64) {
        // SAFETY: no task holds the lock, so none changes the number.
        let counted = unsafe { self.counted.get().read_volatile() };
        (self.expected.load(Relaxed), counted)
    }
}
