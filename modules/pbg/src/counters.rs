//! The counters of a replay, which the calls read.

use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use super::status::{BEHIND_FRACTION, Cause, Divergence, Mode, Status};
use sched_core::units::{Counts, TaskKey};

/// The counters of [`Status`]. There is one writer at a time: the scheduler or, before a replay,
/// the call. So relaxed loads and stores suffice. A reader sees each counter exactly, though not
/// all at one instant.
pub struct Counters {
    pub planned: AtomicU32,
    pub late: AtomicU32,
    pub matched: AtomicU32,
    pub unplanned: AtomicU32,
    pub demoted: AtomicU32,
    pub turns: AtomicU32,
    pub dropped: AtomicBool,
    pub behind: AtomicBool,
    /// The sum of the measured turnarounds of the planned tasks that were spawned, in counts.
    pub measured: AtomicU64,
    /// The sum of the times from the spawn of each of these tasks until it last gave the CPU away,
    /// in counts.
    pub lived: AtomicU64,
    /// A [`Cause`], or 0. It is written after the three words that follow.
    cause: AtomicU8,
    task: AtomicU64,
    expected: AtomicU64,
    found: AtomicU64,
}

impl Counters {
    pub const fn new() -> Self {
        Self {
            planned: AtomicU32::new(0),
            late: AtomicU32::new(0),
            matched: AtomicU32::new(0),
            unplanned: AtomicU32::new(0),
            demoted: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            dropped: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            measured: AtomicU64::new(0),
            lived: AtomicU64::new(0),
            cause: AtomicU8::new(0),
            task: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }

    /// Keeps the first divergence.
    #[cold]
    pub fn diverged(&self, divergence: Divergence) {
        if self.cause.load(Relaxed) == 0 {
            self.task.store(divergence.task.to_bits(), Relaxed);
            self.expected.store(divergence.expected, Relaxed);
            self.found.store(divergence.found, Relaxed);
            self.cause.store(divergence.cause as u8, Release);
        }
    }

    /// Counts a demotion.
    #[cold]
    pub fn count_demoted(&self, divergence: Divergence) {
        increment(&self.demoted);
        self.diverged(divergence);
    }

    /// Returns the status of the replay so far; PBG is in the phase `mode`.
    pub fn status(&self, mode: Mode) -> Status {
        let [lived, measured] = [&self.lived, &self.measured].map(|sum| sum.load(Relaxed));
        let permille = (u128::from(lived) * 1000).checked_div(measured.into());
        let is_slower = u128::from(lived) * u128::from(BEHIND_FRACTION)
            > u128::from(measured) * u128::from(BEHIND_FRACTION + 1);
        Status {
            mode,
            planned: self.planned.load(Relaxed),
            matched: self.matched.load(Relaxed),
            unplanned: self.unplanned.load(Relaxed),
            demoted: self.demoted.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            behind: self.behind.load(Relaxed) || is_slower,
            turnaround_permille: permille.unwrap_or(0).try_into().unwrap_or(u32::MAX),
            turns: self.turns.load(Relaxed),
            late: self.late.load(Relaxed),
            first: self.first(),
        }
    }

    fn first(&self) -> Option<Divergence> {
        let cause = self.cause.load(Acquire);
        let cause = Cause::ALL.into_iter().find(|&known| known as u8 == cause)?;
        Some(Divergence {
            cause,
            task: TaskKey::from_bits(self.task.load(Relaxed)),
            expected: self.expected.load(Relaxed),
            found: self.found.load(Relaxed),
        })
    }
}

/// Adds one to a counter that has no other writer.
#[inline]
pub fn increment(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Adds a time to a sum that has no other writer, and stops at the largest time.
#[inline]
pub fn add(sum: &AtomicU64, time: Counts) {
    sum.store(sum.load(Relaxed).saturating_add(time.0), Relaxed);
}
