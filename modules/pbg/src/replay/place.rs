//! The position of a task in the order of the plan, and the first ready task that a CPU may run.
//!
//! Places are compared to decide whether a ready task preempts the running one: at a tick, and
//! on several CPUs when a task becomes ready or an IPI arrives.

use super::{Handle, OnCpu, Replay};
use crate::caller::Caller;
use crate::task::{PbgTask, Role};
use sched_core::event::Tick;
use sched_core::units::Counts;

/// A position in the order of the plan: the rank, and the time before the task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanPosition(usize, Counts);

impl PlanPosition {
    /// The position of the root when it goes first (rule 9).
    const FIRST: Self = Self(0, Counts::ZERO);
    /// The position of a task outside the plan.
    pub const LAST: Self = Self(usize::MAX, Counts::ZERO);
}

impl<T> Replay<T> {
    /// Returns the grant of a CPU that acts again, whose task had `left` of it: nothing, if the
    /// plan was dropped meanwhile.
    pub fn go_on(&mut self, here: &mut OnCpu, left: i64) -> i64 {
        if self.dropped {
            self.settle(here, left);
            here.granted = 0;
            return 0;
        }
        left
    }

    /// Returns the position of a ready task in the order of the plan, if it follows that or goes
    /// first.
    pub fn position_of_ready(&self, task: &PbgTask<T>) -> Option<PlanPosition> {
        let role = task.policy_state().role();
        if role == Role::ROOT {
            let goes_first = self
                .root
                .get()
                .is_some_and(|root| core::ptr::eq(root, task));
            return goes_first.then_some(PlanPosition::FIRST);
        }
        self.is_planned(role).then(|| {
            let entry = &self.table.entries[role.rank()];
            PlanPosition(entry.ready_rank as usize, entry.remaining(Counts::ZERO))
        })
    }

    /// Returns the position of the running task of `cpu`. `None` if no task may preempt it before a
    /// tick: in a turn, and for the root, which may be about to spawn tasks that come first.
    pub fn position_of_running(&self, cpu: &OnCpu, now: Counts) -> Option<PlanPosition> {
        if cpu.turns.is_a_turn() || cpu.current == Role::ROOT {
            return None;
        }
        if !self.is_planned(cpu.current) {
            return Some(PlanPosition::LAST);
        }
        let rank = cpu.current.rank();
        let remaining = self.table.entries[rank].remaining(now - cpu.since);
        Some(PlanPosition(
            self.table.ready_rank_of(rank, remaining),
            remaining,
        ))
    }

    /// Returns the position before which a task preempts the running one of `cpu` between ticks.
    /// That is its own, or among stages the first of its band (rule 10 of the plan).
    pub fn position_to_preempt(&self, cpu: &OnCpu, now: Counts) -> Option<PlanPosition> {
        let running = self.position_of_running(cpu, now)?;
        if !self.is_planned(cpu.current) {
            return Some(running);
        }
        let entry = &self.table.entries[cpu.current.rank()];
        Some(match entry.is_among_stages {
            true => PlanPosition(entry.band.start as usize, Counts::ZERO),
            false => running,
        })
    }

    /// Handles an IPI: a task has become ready that preempts the running one.
    pub fn interrupted(&mut self, here: &mut OnCpu, by: impl Caller, now: Counts) -> Tick {
        let Some(running) = self.position_to_preempt(here, now) else {
            return Tick::Continue;
        };
        let first = self.root_if(by).or_else(|| self.first_ready(by));
        let Some(ready) = first.and_then(|task| self.position_of_ready(task)) else {
            return Tick::Continue;
        };
        if ready < running {
            here.granted = 0;
        }
        Tick::reschedule_if(ready < running)
    }

    /// Returns all ready tasks.
    #[cfg(test)]
    pub fn ready(&self) -> impl Iterator<Item = &PbgTask<T>> {
        let others = self.ready_set.iter().map(|(_, task)| task);
        others.chain(self.fallback.iter()).chain(self.root.get())
    }

    /// Returns the root, if it goes first (rule 9) and is eligible.
    #[inline]
    pub(super) fn root_if(&self, by: impl Caller) -> Option<&PbgTask<T>> {
        self.root.get().filter(|root| by.may_have(*root))
    }

    /// Returns the first eligible task by the plan.
    #[inline]
    pub(super) fn first_ready<E: Caller>(&self, by: E) -> Option<&PbgTask<T>> {
        if E::ALONE {
            return self.ready_set.first();
        }
        let ready = self.ready_set.iter().map(|(_, task)| task);
        { ready }.find(|task| by.may_have(*task))
    }

    /// Takes the first eligible task by the plan.
    #[inline]
    pub(super) fn take_first_ready<E: Caller>(&mut self, by: E) -> Option<Handle<T>> {
        if E::ALONE {
            return self.ready_set.pop_first();
        }
        self.ready_set.remove_first(|task| by.may_have(task))
    }

    /// Returns true if the fallback queue has an eligible task.
    #[inline]
    pub(super) fn has_fallback(&self, by: impl Caller) -> bool {
        self.fallback.find(|task| by.may_have(task)).is_some()
    }
}
