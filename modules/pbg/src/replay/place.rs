//! Which ready task comes first, of those that a CPU may have, and where a task stands in the
//! order of the plan.

use super::{Handle, OnCpu, Replay};
use crate::caller::Caller;
use crate::task::{PbgTask, Role};
use sched_core::event::Tick;
use sched_core::units::Counts;

/// Where somebody stands in the plan's order: at which rank, and with how much before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(usize, Counts);

impl Place {
    /// The root's, when it goes first (rule 9).
    const FIRST: Self = Self(0, Counts::ZERO);
    /// Of those who follow no plan.
    pub const LAST: Self = Self(usize::MAX, Counts::ZERO);
}

impl<T> Replay<T> {
    /// A CPU acts again, whose task had `left` of what was granted. Returns what it has now: nothing, if
    /// the plan was dropped meanwhile.
    pub fn go_on(&mut self, here: &mut OnCpu, left: i64) -> i64 {
        if self.dropped {
            self.settle(here, left);
            here.granted = 0;
            return 0;
        }
        left
    }

    /// The place of a ready task in the plan's order, if it follows that, and if it goes first.
    pub fn place_of_ready(&self, task: &PbgTask<T>) -> Option<Place> {
        let role = task.policy_state().role();
        if role == Role::ROOT {
            let goes_first = self
                .root
                .get()
                .is_some_and(|root| core::ptr::eq(root, task));
            return goes_first.then_some(Place::FIRST);
        }
        self.follows(role).then(|| {
            let entry = &self.table.entries[role.rank()];
            Place(entry.stands_at as usize, entry.remains(Counts::ZERO))
        })
    }

    /// The place of who has that CPU; `None` if no task ends that before a tick: in its turn, and
    /// of the root, which may be about to spawn those that come before.
    pub fn place_of_running(&self, cpu: &OnCpu, now: Counts) -> Option<Place> {
        if cpu.turns.is_a_turn() || cpu.current == Role::ROOT {
            return None;
        }
        if !self.follows(cpu.current) {
            return Some(Place::LAST);
        }
        let rank = cpu.current.rank();
        let remains = self.table.entries[rank].remains(now - cpu.since);
        Some(Place(self.table.stands_at(rank, remains), remains))
    }

    /// Another CPU has interrupted this one, as a task has become ready that comes before the one
    /// that it runs.
    pub fn interrupted(&mut self, here: &mut OnCpu, by: impl Caller, now: Counts) -> Tick {
        let Some(running) = self.place_of_running(here, now) else {
            return Tick::Continue;
        };
        let first = self.root_if(by).or_else(|| self.first_ready(by));
        let Some(ready) = first.and_then(|task| self.place_of_ready(task)) else {
            return Tick::Continue;
        };
        if ready < running {
            here.granted = 0;
        }
        Tick::reschedule_if(ready < running)
    }

    /// Who is ready.
    #[cfg(test)]
    pub fn ready(&self) -> impl Iterator<Item = &PbgTask<T>> {
        let others = self.ready_set.iter().map(|(_, task)| task);
        others.chain(self.fallback.iter()).chain(self.root.get())
    }

    /// The root, if it goes first (rule 9) and is eligible.
    #[inline]
    pub(super) fn root_if(&self, by: impl Caller) -> Option<&PbgTask<T>> {
        self.root.get().filter(|root| by.may_have(*root))
    }

    /// The first eligible task by the plan.
    #[inline]
    pub(super) fn first_ready<E: Caller>(&self, by: E) -> Option<&PbgTask<T>> {
        if E::ALONE {
            return self.ready_set.first();
        }
        let ready = self.ready_set.iter().map(|(_, task)| task);
        { ready }.find(|task| by.may_have(*task))
    }

    /// Takes it.
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
