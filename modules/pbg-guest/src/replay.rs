//! The threads of the plan during a replay: their ranks, and what they have used.
//!
//! ONE CPU: hooks run with interrupts off, and calls in threads. Each figure has one writer at a time, so all is
//! `Relaxed`.

use alloc::vec::Vec;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use pbg::{
    BEHIND_FRACTION, Cause, Divergence, Error, Mode, OVERRUN_FACTOR, OVERRUN_TICKS, Plan, Status,
};
use sched_core::units::{Counts, TaskKey};

use crate::ROOT_RANK;

/// The FIFO rank of the task at this place of the plan, from 0 (rule 4).
fn rank(place: usize) -> u8 {
    let first = ROOT_RANK - 1;
    first - place.min(usize::from(first) - 1) as u8
}

/// A task of the plan.
pub(crate) struct Entry {
    pub(crate) key: TaskKey,
    pub(crate) rank: u8,
    most: Counts,
    turnaround: Counts,
    /// The number of its thread; 0 before it is spawned.
    pub(crate) thread: AtomicU64,
    spawned: AtomicU64,
    began: AtomicU64,
    used: AtomicU64,
    /// When it last left the CPU.
    left: AtomicU64,
    is_over: AtomicBool,
    /// How often it was found beyond its record.
    looks: AtomicU8,
    is_fair: AtomicBool,
}

/// The memory of a task during a replay.
const ENTRY_BYTES: usize = 104;
const _: () = assert!(size_of::<Entry>() <= ENTRY_BYTES);

impl Entry {
    /// Begins a run interval.
    pub(crate) fn enter(&self, now: Counts) {
        self.began.store(now.0, Relaxed);
    }

    /// Ends a run interval; `exits` is true if it is the last.
    pub(crate) fn leave(&self, now: Counts, exits: bool) {
        let ran = now.0.wrapping_sub(self.began.load(Relaxed));
        self.used.store(self.used.load(Relaxed) + ran, Relaxed);
        self.left.store(now.0, Relaxed);
        self.is_over.store(exits, Relaxed);
    }

    /// Returns the number of its thread while that has its rank.
    pub(crate) fn ranked_thread(&self) -> Option<u64> {
        let thread = self.thread.load(Relaxed);
        let is_ranked = thread != 0 && !self.is_over.load(Relaxed) && !self.is_fair.load(Relaxed);
        is_ranked.then_some(thread)
    }

    pub(crate) fn note_fair(&self) {
        self.is_fair.store(true, Relaxed);
    }
}

/// The state of a replay.
pub(crate) struct Replay {
    /// The tasks of the plan, by key.
    pub(crate) entries: Vec<Entry>,
    late: u32,
    unplanned: AtomicU32,
    demoted: AtomicU32,
    pub(crate) is_dropped: AtomicBool,
    has_first: AtomicBool,
    first: [AtomicU64; 4],
}

impl Replay {
    /// Makes the replay of a plan.
    pub(crate) fn of(plan: &Plan) -> Result<Self, Error> {
        let mut entries = Vec::new();
        entries
            .try_reserve_exact(plan.tasks().len())
            .map_err(|_| Error::NoMemory)?;
        entries.extend(plan.tasks().iter().enumerate().map(|(place, task)| Entry {
            key: task.key,
            rank: rank(place),
            most: task.most,
            turnaround: task.turnaround,
            thread: AtomicU64::new(0),
            spawned: AtomicU64::new(0),
            began: AtomicU64::new(0),
            used: AtomicU64::new(0),
            left: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            looks: AtomicU8::new(0),
            is_fair: AtomicBool::new(false),
        }));
        entries.sort_unstable_by_key(|entry| entry.key);
        Ok(Self {
            entries,
            late: plan.late().len() as u32,
            unplanned: AtomicU32::new(0),
            demoted: AtomicU32::new(0),
            is_dropped: AtomicBool::new(false),
            has_first: AtomicBool::new(false),
            first: [const { AtomicU64::new(0) }; 4],
        })
    }

    /// Returns the place in the plan of a task with this key that is spawned at `now`, as `thread`. Returns
    /// `None` if the plan does not know it, or if the key is taken (rule 5).
    pub(crate) fn spawned(&self, key: TaskKey, thread: u64, now: Counts) -> Option<&Entry> {
        let found = self.entries.binary_search_by_key(&key, |entry| entry.key);
        let entry = found.ok().map(|index| &self.entries[index]);
        let Some(entry) = entry.filter(|entry| entry.thread.load(Relaxed) == 0) else {
            self.unplanned
                .store(self.unplanned.load(Relaxed) + 1, Relaxed);
            self.diverged(Cause::Unknown, key, 0, 0);
            return None;
        };
        entry.thread.store(thread, Relaxed);
        entry.spawned.store(now.0, Relaxed);
        entry.left.store(now.0, Relaxed);
        Some(entry)
    }

    /// Returns the tasks that this look finds beyond their record, for the second time (rule 6).
    pub(crate) fn overrun(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| {
            let used = entry.used.load(Relaxed);
            let bound = entry.most.saturating_mul(OVERRUN_FACTOR);
            if entry.ranked_thread().is_none() || used <= bound.0 {
                return false;
            }
            let looks = entry.looks.load(Relaxed) + 1;
            entry.looks.store(looks, Relaxed);
            looks == OVERRUN_TICKS
        })
    }

    /// Counts a task that has become fair by rule 6. Returns true if this drops the plan (rule 7).
    pub(crate) fn demoted(&self, entry: &Entry) -> bool {
        entry.note_fair();
        let demoted = self.demoted.load(Relaxed) + 1;
        self.demoted.store(demoted, Relaxed);
        self.diverged(
            Cause::Run,
            entry.key,
            entry.most.0,
            entry.used.load(Relaxed),
        );
        3 * demoted as usize > 2 * self.entries.len()
    }

    /// Returns true if all tasks of the plan have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.entries.iter().all(|entry| entry.is_over.load(Relaxed))
    }

    /// Keeps the first divergence.
    fn diverged(&self, cause: Cause, key: TaskKey, expected: u64, found: u64) {
        if !self.has_first.load(Relaxed) {
            let words = [cause as u64, key.to_bits(), expected, found];
            for (cell, word) in self.first.iter().zip(words) {
                cell.store(word, Relaxed);
            }
            self.has_first.store(true, Release);
        }
    }

    /// Returns how the replay goes.
    pub(crate) fn status(&self) -> Status {
        let first = self.has_first.load(Acquire).then(|| {
            let [cause, key, expected, found] =
                self.first.each_ref().map(|word| word.load(Relaxed));
            Divergence {
                cause: if cause == Cause::Run as u64 {
                    Cause::Run
                } else {
                    Cause::Unknown
                },
                task: TaskKey::from_bits(key),
                expected,
                found,
            }
        });
        let come = || (self.entries.iter()).filter(|entry| entry.thread.load(Relaxed) != 0);
        let lived = |entry: &Entry| entry.left.load(Relaxed) - entry.spawned.load(Relaxed);
        let lived: u128 = come().map(|entry| u128::from(lived(entry))).sum();
        let measured: u128 = come().map(|entry| u128::from(entry.turnaround.0)).sum();
        let permille = (lived * 1_000).checked_div(measured).unwrap_or(0);
        Status {
            mode: Mode::Replaying,
            planned: self.entries.len() as u32,
            matched: come().count() as u32,
            unplanned: self.unplanned.load(Relaxed),
            demoted: self.demoted.load(Relaxed),
            dropped: self.is_dropped.load(Relaxed),
            behind: permille > u128::from(1_000 + 1_000 / BEHIND_FRACTION),
            turnaround_permille: u32::try_from(permille).unwrap_or(u32::MAX),
            turns: 0,
            late: self.late,
            first,
        }
    }
}

#[cfg(test)]
mod tests;
