//! What the replay knows of one task of the plan: what is done, what remains (rule 5),
//! and how far it is beyond its record (rules 8 and 11).

use core::ops::Range;

use crate::plan::{PlannedTask, Step, Weight};
use crate::status::{Cause, Divergence};
use sched_core::units::{Counts, TaskKey};

/// Beyond how many times its planned time, or its planned yields, a task counts as
/// off plan (rule 8). Two, because what varies by less than that is the same
/// behaviour in another mood (another input, a cold cache), and demoting it would
/// cost more.
pub const OVERRUN_FACTOR: u64 = 2;

/// How many ticks must find a task beyond that before it is demoted (rule 8).
/// Two, because one may hit a task that was planned for less than a tick.
pub const OVERRUN_TICKS: u8 = 2;

/// Or how many times the CPU must go over from it to another when it is beyond
/// that: a task may run and block between ticks, and no tick ever meet it.
/// Sixteen, so that a task planned for next to nothing may be interrupted.
pub const OVERRUN_HANDOVERS: u8 = 16;

/// What a tick counts for, where a handover counts for one.
pub const OVERRUN_TICK_POINTS: u8 = OVERRUN_HANDOVERS / OVERRUN_TICKS;

/// The number in place of handovers of a task that was demoted for its yields.
const SPINS: u8 = OVERRUN_HANDOVERS + 1;

/// Yields that any task may make, however few were planned (rule 8): a lock that is
/// contended for once more is no other behaviour. Not many, as one that yields until
/// another has done its part would keep the CPU from that other.
pub const FREE_YIELDS: u64 = 64;

/// Of the time that a task is late, so many times what it has used beyond its record is its
/// own doing (rule 11). Who waits for another is hardly ever on the CPU; who has more to do
/// than recorded has at least a tenth of it, with the others of the fallback queue.
pub const LATE_BY_ITSELF: u64 = 64;

/// What is longer than recorded by one in so many parts is as recorded, for the order of
/// tasks (rule 5).
const NOISE: u64 = 4;

/// What the replay knows of a task of the plan.
pub struct Entry {
    pub key: TaskKey,
    /// The most time on the CPU in any recorded run, and the most yields.
    most: Counts,
    most_yields: u64,
    used: Counts,
    yields: u64,
    /// What was before it when its burst began. While no more than `sure` of the burst
    /// is done, both it and the task are within their record, and that much less is.
    ahead: Counts,
    sure: Counts,
    /// The burst that it is in: how long it should be, how much of it is done, and
    /// how many of the same length are to come.
    burst: Counts,
    done: Counts,
    repeats: u64,
    /// What it should use in all.
    run: Counts,
    /// How long it lived when it was measured, when it was spawned, and when it last gave
    /// the CPU away or was spawned. Unless it `is_ready` or runs, it may have ended then.
    turnaround: Counts,
    born: Counts,
    seen: Counts,
    /// Those of the table's steps that are to come after these.
    steps: Range<u32>,
    /// The ranks of its band.
    pub band: Range<u32>,
    /// The rank at which it is ready, or was last.
    pub stands_at: u32,
    pub children: u32,
    /// How far it has overrun its record, in handovers, up to [`OVERRUN_HANDOVERS`], where it
    /// is demoted (rule 8); or [`SPINS`].
    overrun: u8,
    has_come: bool,
    /// It is ready, in whichever queue.
    is_ready: bool,
    weight: Weight,
}

/// What remains of something that was recorded to take `recorded`, when `done` of it
/// is. Beyond what was recorded nobody knows. Up to a quarter it is taken for noise, and
/// the end to be near; then to need as much again as it has had, as one doubles a guess
/// that was too low, so that a task gives way to more and more (rule 5). (Four times that
/// does better where one task of several has grown, and far worse where all have doubled.)
const fn remains_of(recorded: Counts, done: Counts) -> Counts {
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
    /// The entry of a task that has not come yet; `steps` are those of the whole plan.
    pub fn new(task: &PlannedTask, steps: &[Step]) -> Self {
        let mut entry = Self {
            key: task.key,
            most: task.most,
            most_yields: task.yields,
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
            stands_at: 0,
            children: 0,
            overrun: 0,
            has_come: false,
            is_ready: false,
            weight: task.weight,
        };
        entry.next_burst(steps);
        entry
    }

    /// The task is spawned. Returns how long it was measured to live; `None` if one with its
    /// key has come before.
    pub fn spawned(&mut self, now: Counts) -> Option<Counts> {
        if core::mem::replace(&mut self.has_come, true) {
            return None;
        }
        (self.born, self.seen) = (now, now);
        self.is_ready = true;
        Some(self.turnaround)
    }

    /// It is ready, in whichever queue.
    #[inline]
    pub const fn becomes_ready(&mut self) {
        self.is_ready = true;
    }

    /// It was taken out of its queue: it is not ready, and has not got the CPU.
    pub const fn removed(&mut self) {
        self.is_ready = false;
    }

    /// It has the CPU. Returns how often it may yield before somebody has to look (rule 8).
    #[inline]
    pub const fn dispatched(&mut self) -> u64 {
        self.is_ready = false;
        if self.is_demoted() {
            return 0;
        }
        self.may_yield().saturating_sub(self.yields)
    }

    /// It has had the CPU for `interval` since it was charged last.
    #[inline]
    pub fn charge(&mut self, interval: Counts) {
        self.used += interval;
        self.done += interval;
    }

    /// It has given the CPU away. Returns how long after the last time, or its spawn.
    #[inline]
    pub fn gave_away(&mut self, now: Counts) -> Counts {
        now - core::mem::replace(&mut self.seen, now)
    }

    /// A block has ended.
    pub fn woken(&mut self, steps: &[Step]) {
        if self.weight != Weight::WHOLE {
            self.next_burst(steps);
        }
    }

    /// The next burst begins. The last is repeated.
    fn next_burst(&mut self, steps: &[Step]) {
        self.done = Counts::ZERO;
        if self.repeats > 0 {
            self.repeats -= 1;
        } else if let Some(next) = self.steps.next() {
            let Step { times, run } = steps[next as usize];
            self.repeats = times - 1;
            self.burst = run;
        }
        self.ahead = self.remains_beyond(Counts::ZERO);
        let rest = self.run.0.saturating_sub(self.used.0);
        self.sure = Counts(rest).min(self.burst);
    }

    /// What is before it after `interval` more.
    #[inline]
    pub const fn remains(&self, interval: Counts) -> Counts {
        let done = self.done.saturating_add(interval);
        if done.0 <= self.sure.0 {
            Counts(self.ahead.0 - done.0)
        } else {
            self.remains_beyond(interval)
        }
    }

    /// The same without `sure`, whatever has been done.
    #[inline]
    const fn remains_beyond(&self, interval: Counts) -> Counts {
        let burst = remains_of(self.burst, self.done.saturating_add(interval));
        let rest = remains_of(self.run, self.used.saturating_add(interval));
        self.weight.before(burst, rest)
    }

    #[inline]
    pub const fn is_demoted(&self) -> bool {
        self.overrun >= OVERRUN_HANDOVERS
    }

    /// Returns true if it was demoted for its yields.
    pub const fn spins(&self) -> bool {
        self.overrun == SPINS
    }

    /// Rule 8: somebody looks, after `interval` more, for so many `points`. Returns how it
    /// diverges, if it is demoted by this.
    #[inline]
    pub fn look(&mut self, interval: Counts, points: u8) -> Option<Divergence> {
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

    /// Rule 8: it has yielded so often since it was last told. Returns how it diverges, if
    /// it is demoted by this.
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

    /// The yields that it may make in all (rule 8).
    #[inline]
    const fn may_yield(&self) -> u64 {
        self.most_yields
            .saturating_mul(OVERRUN_FACTOR)
            .saturating_add(FREE_YIELDS)
    }

    /// Whether it has been spawned.
    #[inline]
    pub const fn has_come(&self) -> bool {
        self.has_come
    }

    #[inline]
    pub const fn born(&self) -> Counts {
        self.born
    }

    /// What it has used beyond its record, with the interval that it is in.
    #[inline]
    pub fn surplus(&self, interval: Option<Counts>) -> Counts {
        let used = self.used.saturating_add(interval.unwrap_or(Counts::ZERO));
        Counts(used.0.saturating_sub(self.run.0))
    }

    /// How much later it is at `now` than it was when it was measured, or earlier:
    /// by how much it adds to what all tasks have lived, less what they had lived by then in
    /// the measured run. `interval` is what it has run for since it was charged last, if it
    /// has the CPU.
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
        let own = self.surplus(interval).saturating_mul(LATE_BY_ITSELF);
        i128::from((lived - self.turnaround).0.saturating_sub(own.0))
    }

    /// The divergence of the task that is late by the most of all (rule 11).
    pub fn diverges_as_most_late(&self, now: Counts) -> Divergence {
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

    /// Rule 8. Nine handovers and a tick are one point beyond the limit, as a task has that spins.
    #[test]
    fn a_task_that_is_demoted_for_its_time_does_not_count_as_one_that_spins() {
        let task = PlannedTask {
            key: TaskKey::ROOT.child(0),
            band: 0,
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
        let mut entry = Entry::new(&task, &[step]);
        entry.charge(Counts(3));
        for _ in 0..9 {
            assert_eq!(entry.look(Counts::ZERO, 1), None);
        }
        assert!(entry.look(Counts::ZERO, OVERRUN_TICK_POINTS).is_some());
        assert!(entry.is_demoted() && !entry.spins());
    }

    #[test]
    fn what_remains_is_noise_at_first_and_then_as_much_again() {
        for (done, remains) in [(0, 100), (99, 1), (100, 0), (101, 24), (125, 0), (126, 126)] {
            assert_eq!(
                remains_of(Counts(100), Counts(done)),
                Counts(remains),
                "{done}"
            );
        }
    }
}
