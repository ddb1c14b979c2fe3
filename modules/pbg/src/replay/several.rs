//! Following a plan on several CPUs, which have one ready set: who comes before whom.

use super::{Handle, OnCpu, Replay};
use sched_core::event::Tick;
use crate::cpus::Cpus;
use crate::task::{PbgTask, Role};
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
    /// Exchanges what is known of the CPU that acts for what is known of another.
    pub fn exchange(&mut self, other: &mut OnCpu) {
        core::mem::swap(&mut self.here, other);
    }

    /// A CPU acts again, whose task had `left` of what was granted. Returns what it has now: nothing, if
    /// the plan was dropped meanwhile.
    pub fn go_on(&mut self, left: i64) -> i64 {
        if self.dropped {
            self.settle(left);
            self.here.granted = 0;
            return 0;
        }
        left
    }

    /// The place of a ready task in the plan's order, if it follows that, and if it goes first.
    pub fn place_of_ready(&self, task: &PbgTask<T>) -> Option<Place> {
        let role = task.state().role();
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

    /// The same of the CPU that acts.
    pub fn place_here(&self, now: Counts) -> Option<Place> {
        self.place_of_running(&self.here, now)
    }

    /// Another CPU has interrupted this one, as somebody has become ready who comes before who runs.
    pub fn interrupted<M: Cpus>(&mut self, now: Counts) -> Tick {
        let Some(running) = self.place_here(now) else {
            return Tick::Continue;
        };
        let root = self.root.get().filter(|root| M::may_have(root));
        let first = || self.first_here::<M>();
        let Some(ready) = root
            .or_else(first)
            .and_then(|task| self.place_of_ready(task))
        else {
            return Tick::Continue;
        };
        if ready < running {
            self.here.granted = 0;
        }
        Tick::reschedule_if(ready < running)
    }

    /// Who is ready.
    #[cfg(test)]
    pub fn ready(&self) -> impl Iterator<Item = &PbgTask<T>> {
        let others = self.ready_set.iter().map(|(_, task)| task);
        others.chain(self.fallback.iter()).chain(self.root.get())
    }

    /// Whether the root goes first (rule 9), and the CPU that acts may have it.
    #[inline]
    pub(super) fn is_root_here<M: Cpus>(&self) -> bool {
        match M::TOGETHER {
            true => self.root.get().is_some_and(M::may_have),
            false => !self.root.is_empty(),
        }
    }

    /// Who comes first by the plan of those whom the CPU that acts may have.
    pub(super) fn first_here<M: Cpus>(&self) -> Option<&PbgTask<T>> {
        let ready = self.ready_set.iter().map(|(_, task)| task);
        { ready }.find(|task| M::may_have(task))
    }

    /// The first of the fallback queue whom the CPU that acts may have.
    pub(super) fn is_fallback_here<M: Cpus>(&self) -> bool {
        match M::TOGETHER {
            true => self.fallback.find(M::may_have).is_some(),
            false => !self.fallback.is_empty(),
        }
    }

    /// Who runs next, of those whom the CPU that acts may have. Nobody else may be there: then its
    /// turn does not begin.
    pub(super) fn take_next_here<M: Cpus>(&mut self) -> Option<Handle<T>> {
        let may_go_on = |task: &PbgTask<T>| M::may_have(task) && self.has_claim(task);
        if self.here.turns.is_fallback_turn() && self.fallback.find(may_go_on).is_some() {
            return super::first::<T, M>(&mut self.fallback); // rule 7
        }
        let root = self.is_root_here::<M>().then(|| self.root.take()).flatten();
        self.here.turns.dispatch(root.is_some());
        if root.is_some() {
            return root;
        }
        if !self.here.turns.is_due()
            && let Some(task) = self.ready_set.remove_first(M::may_have)
        {
            return Some(task);
        }
        if let Some(task) = super::first::<T, M>(&mut self.fallback) {
            if self.here.turns.serve_fallback() && !self.ready_set.is_empty() {
                super::increment(&self.counters.turns);
            }
            return Some(task);
        }
        self.ready_set.remove_first(M::may_have)
    }
}
