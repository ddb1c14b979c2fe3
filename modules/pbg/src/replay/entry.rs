//! One task of the plan during a replay.
//!
//! An entry counts the time that the task has had, the time that remains (rule 5), and how far the
//! task is beyond its record (rules 8 and 11). A tick, a handover and a count of yields *look* at
//! an entry, and demote the task if it is too far beyond its record. A demoted task runs from the
//! fallback queue for the rest of the replay.

use core::ops::Range;

use crate::plan::{PlannedTask, Step, Weight};
use crate::status::{Cause, Divergence};
use sched_core::units::{Counts, TaskKey};

/// A task is off plan beyond this many times its planned time or yields (rule 8). A smaller
/// difference is the same behaviour under other conditions, such as another input or a cold cache.
/// Demoting the task would then cost more than it saves.
pub const OVERRUN_FACTOR: u64 = 2;

/// The number of ticks that must find a task off plan before it is demoted (rule 8). One is not
/// enough, because it may hit a task that was planned for less than a tick.
pub const OVERRUN_TICKS: u8 = 2;

/// The number of handovers that demote a task instead of ticks, because no tick may ever hit a task
/// that runs and blocks between ticks. Sixteen leave room for interrupts of a task that was planned
/// for almost no time.
pub const OVERRUN_HANDOVERS: u8 = 16;

/// The points for which a tick counts. A handover counts for one.
pub const OVERRUN_TICK_POINTS: u8 = OVERRUN_HANDOVERS / OVERRUN_TICKS;

/// Marks a task that was demoted for its yields, in place of its points.
const SPINS: u8 = OVERRUN_HANDOVERS + 1;

/// Yields that any task may make, however few were planned (rule 8), because one more contended
/// lock is not another behaviour. The number is small because a task that yields until another has
/// done its part keeps the CPU from that task.
pub const UNPLANNED_YIELD_ALLOWANCE: u64 = 64;

/// The factor by which the time that a task has used beyond its record explains its own lateness
/// (rule 11). A task that waits for another is hardly ever on the CPU. A task that has more to do
/// than recorded shares at least a tenth of the CPU with the rest of the fallback queue.
pub const OVERRUN_LATENESS_FACTOR: u64 = 64;

/// A time that is longer than recorded by at most one part in this number counts as the recorded
/// time in the order of tasks (rule 5).
const NOISE: u64 = 4;

/// A task of the plan during a replay.
pub struct Entry {
    pub key: TaskKey,
    /// The most time on the CPU in any recorded run, and the most yields; `u64::MAX` if yields are
    /// not counted (rule 8).
    most: Counts,
    most_yields: u64,
    used: Counts,
    yields: u64,
    /// The work that was before it when its burst began. While no more than `sure` of the burst is done,
    /// both the burst and the task are within their record, and `done` is simply subtracted.
    ahead: Counts,
    sure: Counts,
    /// The present burst: its expected length, the part that is done, and the number of bursts of
    /// that length that follow.
    burst: Counts,
    done: Counts,
    repeats: u64,
    /// Its expected time on the CPU in all.
    run: Counts,
    /// Its measured turnaround, when it was spawned, and when it last gave the CPU away or was
    /// spawned. Unless it is ready or runs, it may have ended then.
    turnaround: Counts,
    born: Counts,
    seen: Counts,
    /// The steps of the table that come after these.
    steps: Range<u32>,
    /// The ranks of its band.
    pub band: Range<u32>,
    /// The rank at which it is ready, or was last.
    pub ready_rank: u32,
    pub children: u32,
    /// How far it has overrun its record, in points, up to [`OVERRUN_HANDOVERS`], at which it is
    /// demoted (rule 8); or [`SPINS`].
    overrun: u8,
    is_spawned: bool,
    /// The task is ready, in any queue.
    is_ready: bool,
    /// All tasks of its band are stages (rule 10 of the plan).
    pub is_among_stages: bool,
    weight: Weight,
}

/// Returns what remains of a time that was recorded as `recorded`, when `done` of it is done.
///
/// Beyond the record the rest is a guess. Up to a quarter, the excess is taken for noise and the
/// end for near. After that, the rest is taken to be as long as the part that is done. So the guess
/// doubles, and the task gives way to longer and longer ones (rule 5). (Four times that does better
/// if one task of several has grown, and far worse if all have doubled.)
const fn remaining_of(recorded: Counts, done: Counts) -> Counts {
    let noise = recorded.0.saturating_add(recorded.0 / NOISE);
    if done.0 <= recorded.0 {
        Counts(recorded.0 - done.0)
    } else if done.0 <= noise {
        Counts(noise - done.0)
    } else {
        done
    }
}

impl Entry {
    /// Creates the entry of a task that has not been spawned; `steps` are those of the whole plan.
    /// `counts_yields` is true if rule 8 counts them.
    pub fn new(task: &PlannedTask, steps: &[Step], counts_yields: bool) -> Self {
        let mut entry = Self {
            key: task.key,
            most: task.most,
            most_yields: if counts_yields { task.yields } else { u64::MAX },
            used: Counts::ZERO,
            yields: 0,
            ahead: Counts::ZERO,
            sure: Counts::ZERO,
            burst: Counts::ZERO,
            done: Counts::ZERO,
            repeats: 0,
            run: task.run,
            turnaround: task.turnaround,
            born: Counts::ZERO,
            seen: Counts::ZERO,
            steps: task.steps.clone(),
            band: 0..0,
            ready_rank: 0,
            children: 0,
            overrun: 0,
            is_spawned: false,
            is_ready: false,
            is_among_stages: task.is_among_stages,
            weight: task.weight,
        };
        entry.next_burst(steps);
        entry
    }

    /// Notes the spawn. Returns the measured turnaround, or `None` if a task with this key was
    /// spawned before.
    pub fn spawned(&mut self, now: Counts) -> Option<Counts> {
        if core::mem::replace(&mut self.is_spawned, true) {
            return None;
        }
        (self.born, self.seen) = (now, now);
        self.is_ready = true;
        Some(self.turnaround)
    }

    /// Notes that the task is ready, in any queue.
    #[inline]
    pub const fn set_ready(&mut self) {
        self.is_ready = true;
    }

    /// Notes that it was taken out of its queue: it is neither ready nor running.
    pub const fn removed(&mut self) {
        self.is_ready = false;
    }

    /// Notes a dispatch. Returns how often it may yield before the replay has to look (rule 8).
    #[inline]
    pub const fn dispatched(&mut self) -> u64 {
        self.is_ready = false;
        if self.is_demoted() {
            return 0;
        }
        self.may_yield().saturating_sub(self.yields)
    }

    /// Charges `interval` since the last charge.
    #[inline]
    pub fn charge(&mut self, interval: Counts) {
        self.used += interval;
        self.done += interval;
    }

    /// Notes that it has given the CPU away. Returns the time since the last such moment, or since
    /// its spawn.
    #[inline]
    pub fn gave_away(&mut self, now: Counts) -> Counts {
        now - core::mem::replace(&mut self.seen, now)
    }

    /// Begins the next burst after a block, unless the task counts as one burst.
    pub fn woken(&mut self, steps: &[Step]) {
        if self.weight != Weight::WHOLE {
            self.next_burst(steps);
        }
    }

    /// Begins the next burst. After the last one, that is repeated.
    fn next_burst(&mut self, steps: &[Step]) {
        self.done = Counts::ZERO;
        if self.repeats > 0 {
            self.repeats -= 1;
        } else if let Some(next) = self.steps.next() {
            let Step { times, run } = steps[next as usize];
            self.repeats = times - 1;
            self.burst = run;
        }
        self.ahead = self.remaining_beyond_record(Counts::ZERO);
        let rest = self.run.0.saturating_sub(self.used.0);
        self.sure = Counts(rest).min(self.burst);
    }

    /// Returns the time that is before the task after `interval` more.
    #[inline]
    pub const fn remaining(&self, interval: Counts) -> Counts {
        let done = self.done.saturating_add(interval);
        if done.0 <= self.sure.0 {
            Counts(self.ahead.0 - done.0)
        } else {
            self.remaining_beyond_record(interval)
        }
    }

    /// Returns the time that is before the task after `interval` more, even if more than `sure` is
    /// done.
    #[inline]
    const fn remaining_beyond_record(&self, interval: Counts) -> Counts {
        let burst = remaining_of(self.burst, self.done.saturating_add(interval));
        let rest = remaining_of(self.run, self.used.saturating_add(interval));
        self.weight.before(burst, rest)
    }

    #[inline]
    pub const fn is_demoted(&self) -> bool {
        self.overrun >= OVERRUN_HANDOVERS
    }

    /// Returns true if it was demoted for its yields.
    pub const fn is_spinner(&self) -> bool {
        self.overrun == SPINS
    }

    /// Looks at the task after `interval` more, for this many `points` (rule 8). Returns the
    /// divergence if that demotes the task.
    #[inline]
    pub fn check_overrun(&mut self, interval: Counts, points: u8) -> Option<Divergence> {
        let used = self.used.saturating_add(interval);
        if self.is_demoted() || used <= self.most.saturating_mul(OVERRUN_FACTOR) {
            return None;
        }
        self.overrun = self.overrun.saturating_add(points).min(OVERRUN_HANDOVERS);
        self.is_demoted().then_some(Divergence {
            cause: Cause::Run,
            task: self.key,
            expected: self.most.0,
            found: used.0,
        })
    }

    /// Counts yields (rule 8). Returns the divergence if they demote it.
    #[inline]
    pub fn yielded(&mut self, times: u64) -> Option<Divergence> {
        self.yields = self.yields.saturating_add(times);
        if self.yields <= self.may_yield() || self.is_demoted() {
            return None;
        }
        self.overrun = SPINS;
        Some(Divergence {
            cause: Cause::Yields,
            task: self.key,
            expected: self.most_yields,
            found: self.yields,
        })
    }

    /// Returns the number of yields that the task may make in all (rule 8).
    #[inline]
    const fn may_yield(&self) -> u64 {
        self.most_yields
            .saturating_mul(OVERRUN_FACTOR)
            .saturating_add(UNPLANNED_YIELD_ALLOWANCE)
    }

    /// Returns true if it has been spawned.
    #[inline]
    pub const fn is_spawned(&self) -> bool {
        self.is_spawned
    }

    #[inline]
    pub const fn born(&self) -> Counts {
        self.born
    }

    /// Returns the time that it has used beyond its record, with the present interval.
    #[inline]
    pub fn surplus(&self, interval: Option<Counts>) -> Counts {
        let used = self.used.saturating_add(interval.unwrap_or(Counts::ZERO));
        Counts(used.0.saturating_sub(self.run.0))
    }

    /// Returns the lateness of the task at `now`, which is negative if the task is early.
    ///
    /// It is the time that the task has lived, less the time that it had lived by then in the
    /// measured run. A late task's own overrun is taken off it (rule 11). `interval` is its run since
    /// the last charge, if it has the CPU.
    #[inline]
    pub fn lateness(&self, now: Counts, interval: Option<Counts>) -> i128 {
        let age = now - self.born;
        let lived = if self.is_ready || interval.is_some() {
            age
        } else {
            self.seen - self.born
        };
        if lived <= self.turnaround {
            return i128::from(lived.0) - i128::from(age.min(self.turnaround).0);
        }
        let own = self
            .surplus(interval)
            .saturating_mul(OVERRUN_LATENESS_FACTOR);
        i128::from((lived - self.turnaround).0.saturating_sub(own.0))
    }

    /// Returns the divergence of the task with the largest lateness (rule 11).
    pub fn divergence_as_most_late(&self, now: Counts) -> Divergence {
        Divergence {
            cause: Cause::Turnaround,
            task: self.key,
            expected: self.turnaround.0,
            found: (now - self.born).0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine handovers and a tick are one point beyond the limit, which is the mark of a task that
    /// spins (rule 8).
    #[test]
    fn a_task_that_is_demoted_for_its_time_does_not_count_as_one_that_spins() {
        let task = PlannedTask {
            key: TaskKey::ROOT.child(0),
            band: 0,
            is_among_stages: false,
            sort_key: Counts(1),
            run: Counts(1),
            most: Counts(1),
            turnaround: Counts(1),
            yields: 0,
            weight: Weight::WHOLE,
            steps: 0..1,
        };
        let step = Step {
            times: 1,
            run: Counts(1),
        };
        let mut entry = Entry::new(&task, &[step], true);
        entry.charge(Counts(3));
        for _ in 0..9 {
            assert_eq!(entry.check_overrun(Counts::ZERO, 1), None);
        }
        assert!(
            entry
                .check_overrun(Counts::ZERO, OVERRUN_TICK_POINTS)
                .is_some()
        );
        assert!(entry.is_demoted() && !entry.is_spinner());
    }

    #[test]
    fn remaining_time_beyond_the_record_is_noise_and_then_doubles() {
        for (done, remaining) in [(0, 100), (99, 1), (100, 0), (101, 24), (125, 0), (126, 126)] {
            assert_eq!(
                remaining_of(Counts(100), Counts(done)),
                Counts(remaining),
                "{done}"
            );
        }
    }
}
