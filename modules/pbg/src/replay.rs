//! Following a plan: the ready tasks, the time that each has had, and the end of a plan that is
//! wrong.
//!
//! A [`Replay`] holds every ready task in one of three places. The ready set is in the order of the
//! plan, and the fallback queue runs round robin. A root that goes first is in a slot of its own.
//! [`OnCpu`] is the state of a replay on one CPU. It has the role of the running task, the time up
//! to which that task is charged, the turns, and the granted yields.
//!
//! The scheduler holds only the number of yields after which the running task still goes on at
//! once. It takes that number from [`OnCpu::granted`] after each call. Before each call but a
//! removal it calls [`Replay::settle`] with the number that is left.
//!
//! | file | part | rules of the [crate](crate) |
//! |---|---|---|
//! | `table` | the plan, prepared by the call that starts the replay | |
//! | `entry` | one task of the plan: its time, its yields, how far it is beyond its record | 5, 8 |
//! | `place` | where a task stands in the order, and which eligible task is first | 5 |
//! | `fallback` | the queue of the tasks outside the plan | 6 |
//! | `turns` | when the fallback queue and the root have the CPU | 7, 9 |
//! | `watch` | whether the replay is later than the measured run | 11 |
//!
//! **When a plan is dropped.** Only [`Replay::tick`] drops a plan. It does so if more than two
//! thirds of the plan's tasks are demoted (rule 10). It also does so if the replay is behind the
//! measured run, unless the plan must be kept (rule 11). The ready tasks then go to the fallback
//! queue, and round robin runs. A dropped plan is never followed again.

// This file is long because it has all methods that change a replay. The files below have its parts.

mod entry;
mod fallback;
mod place;
mod table;
mod turns;
mod watch;

use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;

pub use entry::{
    OVERRUN_FACTOR, OVERRUN_HANDOVERS, OVERRUN_LATENESS_FACTOR, OVERRUN_TICKS,
    UNPLANNED_YIELD_ALLOWANCE,
};
pub use place::PlanPosition;
pub use table::ENTRY_BYTES;
pub use table::Prepared;
pub use turns::PLAN_TICKS;
pub use watch::OnSlowReplay;

use super::caller::Caller;
use super::counters::{Counters, add, increment};
use super::ready_set::{MOST_PASSED, ReadySet};
use super::status::{Cause, Divergence};
use super::task::{PbgState, PbgTask, Role};
use entry::OVERRUN_TICK_POINTS;
use fallback::Fallback;
use pbg_profile::Label;
use pbg_record::record::OUTSIDE;
use sched_core::event::{EnqueueReason, Tick};
use sched_core::queue::{Queue, Slot};
use sched_core::units::{Counts, TaskKey};
use table::Table;
use turns::{Turn, Turns};
use watch::Watch;

type Handle<T> = Arc<PbgTask<T>>;

/// A plan that a scheduler of tasks `T` follows.
pub struct Replay<T> {
    table: Table,
    /// The ready tasks that follow the plan.
    ready_set: ReadySet<T>,
    /// The other ready tasks.
    fallback: Fallback<T>,
    /// The root, if it woke and goes first (rule 9).
    root: Slot<T, PbgState>,
    root_children: u32,
    watch: Watch,
    dropped: bool,
    counters: &'static Counters,
}

/// The state of a replay on one CPU.
pub struct OnCpu {
    turns: Turns,
    /// The role of the running task, or of the last one, and since when its time is not charged.
    current: Role,
    since: Counts,
    /// The yields that the running task may still make without the replay, as last settled. 0 once
    /// a task has become ready or a tick wants the CPU.
    granted: i64,
}

impl OnCpu {
    /// Creates the state of a CPU that has run a task of `role` since `now`, by no choice of the
    /// replay.
    pub const fn since(now: Counts, role: Role) -> Self {
        Self {
            turns: Turns::NEW,
            current: role,
            since: now,
            granted: 0,
        }
    }
}

impl OnCpu {
    /// Returns how often the running task may yield and go on at once (KEEP in
    /// [`grant`](super::grant)).
    #[inline]
    pub const fn granted(&self) -> i64 {
        self.granted
    }
}

impl<T> Replay<T> {
    /// Starts a replay. The tasks in `fallback` are ready and older than it.
    pub fn new(
        prepared: Prepared,
        fallback: Queue<T, PbgState>,
        counters: &'static Counters,
    ) -> Self {
        Self {
            table: prepared.table,
            ready_set: ReadySet::typed(prepared.ready_set),
            fallback: Fallback::new(fallback),
            root: Slot::EMPTY,
            root_children: 0,
            watch: prepared.watch,
            dropped: false,
            counters,
        }
    }

    /// Settles the yields: `left` of the granted ones are left, and the rest were made.
    #[inline]
    pub fn settle(&mut self, here: &mut OnCpu, left: i64) {
        debug_assert!(
            (0..=here.granted).contains(&left),
            "{left} yields are left of {}",
            here.granted
        );
        let made = (here.granted - left) as u64;
        if made > 0 {
            here.granted = left;
            self.yielded(here, made);
        }
    }

    /// Adds `task`, which the running task has spawned.
    pub fn spawned(
        &mut self,
        here: &mut OnCpu,
        task: Handle<T>,
        epoch: u32,
        label: Option<&Label>,
        now: Counts,
    ) {
        here.granted = 0;
        let role = self.role_of_new(here, label, now);
        task.policy_state().set(epoch, role, &OUTSIDE);
        if self.is_planned(role) {
            let rank = role.rank();
            self.insert_at(rank, rank, task, false); // equal ones by rank, so by arrival
        } else {
            self.fallback.push_back(task);
        }
    }

    /// Adds `task`, which has woken or has come from another queue.
    pub fn woken(&mut self, here: &mut OnCpu, task: Handle<T>, role: Role) {
        here.granted = 0;
        self.set_ready(role);
        if self.is_planned(role) {
            let rank = role.rank();
            self.table.entries[rank].woken(&self.table.steps);
            return self.insert_by_remaining(rank, task, false);
        }
        // (It may have the CPU: then it was forgotten, and only gives way.)
        let is_woken_root = role == Role::ROOT && here.current != Role::ROOT;
        if is_woken_root && !self.dropped && here.turns.take_root_turn() {
            self.root.put(task); // rule 9
        } else {
            self.fallback.requeue(task, EnqueueReason::Woken);
        }
    }

    /// Requeues the running task. It keeps its place, before the tasks with the same remaining time
    /// that have not run yet.
    pub fn gave_way(&mut self, here: &mut OnCpu, task: Handle<T>, why: EnqueueReason, now: Counts) {
        self.charge(here, now);
        here.granted = 0;
        if why == EnqueueReason::Yielded {
            self.yielded(here, 1);
        }
        self.set_ready(here.current);
        if self.is_planned(here.current) {
            self.insert_by_remaining(here.current.rank(), task, true);
        } else {
            self.fallback.requeue(task, why);
        }
    }

    /// Takes the task that has the CPU from `now` on out of its queue.
    pub fn pick(&mut self, here: &mut OnCpu, by: impl Caller, now: Counts) -> Option<Handle<T>> {
        let next = self.take_next(here, by);
        let role = next
            .as_ref()
            .map_or(Role::OUTSIDE, |task| task.policy_state().role());
        self.charge(here, now);
        if role != here.current {
            self.handed_over(here, now);
        }
        here.current = role;
        here.granted = self.grant(here);
        next
    }

    /// Handles a tick that hits the running task, which is `task`.
    pub fn tick(
        &mut self,
        here: &mut OnCpu,
        by: impl Caller,
        task: &PbgTask<T>,
        now: Counts,
    ) -> Tick {
        if self.is_refuted() || self.is_behind(here, now) {
            self.drop_plan(here); // from this tick on, round robin runs
            return task.policy_state().slice.tick();
        }
        if self.is_planned(here.current) {
            let tick = self.tick_planned(here, by, now);
            if !self.is_planned(here.current) {
                task.policy_state().slice.expire(); // demoted: to the end of the queue
            }
            if tick == Tick::Reschedule {
                here.granted = 0;
            }
            return tick;
        }
        if self.ready_set.is_empty() {
            here.turns.tick_alone();
            let tick = task.policy_state().slice.tick();
            return if self.root_if(by).is_some() {
                Tick::Reschedule // rule 9
            } else {
                tick
            };
        }
        let turn = here.turns.tick_outside();
        if turn == Turn::Begins {
            increment(&self.counters.turns);
        }
        if turn == Turn::Over {
            task.policy_state().slice.expire();
        }
        Tick::reschedule_if(turn == Turn::Over)
    }

    /// Takes `task` out if it is ready here.
    pub fn remove(&mut self, task: &Handle<T>) -> Option<Handle<T>> {
        if self.root.holds(task) {
            return self.root.take();
        }
        // It may belong to another scheduler, with a longer plan.
        let rank = task.policy_state().role().index();
        let Some(entry) = rank.and_then(|rank| self.table.entries.get_mut(rank)) else {
            return self.fallback.remove(task);
        };
        let is_it = |other: &PbgTask<T>| core::ptr::eq(other, Arc::as_ptr(task));
        let found = (self.ready_set.remove(entry.ready_rank as usize, is_it))
            .or_else(|| self.fallback.remove(task))?;
        entry.removed();
        Some(found)
    }

    /// Returns true if a task of `role` runs by the plan, and not from the fallback queue.
    #[inline]
    fn is_planned(&self, role: Role) -> bool {
        !self.dropped
            && role
                .index()
                .is_some_and(|rank| !self.table.entries[rank].is_demoted())
    }

    /// Returns true if a task of the fallback queue may use the rest of a turn (rule 7). The other
    /// tasks only spin until the program has made progress, for which it needs the CPU itself.
    fn has_claim(&self, task: &PbgTask<T>) -> bool {
        let role = task.policy_state().role();
        let is_spinner = role
            .index()
            .is_some_and(|rank| self.table.entries[rank].is_spinner());
        !(task.policy_state().is_gc() || role == Role::ROOT || is_spinner)
    }

    /// Notes that the task of `role` is ready, by the plan or not.
    #[inline]
    fn set_ready(&mut self, role: Role) {
        if let Some(rank) = role.index() {
            self.table.entries[rank].set_ready();
        }
    }

    /// Returns the role of a task that the running task has spawned (rules 1 and 6).
    fn role_of_new(&mut self, here: &OnCpu, label: Option<&Label>, now: Counts) -> Role {
        let parent = match here.current.index() {
            Some(rank) => {
                let entry = &mut self.table.entries[rank];
                Some((entry.key, &mut entry.children))
            }
            None if here.current == Role::ROOT => Some((TaskKey::ROOT, &mut self.root_children)),
            None => None,
        };
        let by_path = parent.map(|(key, children)| {
            let ordinal = *children;
            *children = children.wrapping_add(1);
            key.child(ordinal)
        });
        let key = match (label, by_path) {
            (Some(label), _) if here.current != Role::OUTSIDE => TaskKey::labelled(label.as_str()),
            (_, Some(key)) => key,
            _ => return here.current, // outside the plan, or unknown as its parent is
        };
        if let Some(rank) = self.table.rank_of(key)
            && let Some(turnaround) = self.table.entries[rank as usize].spawned(now)
        {
            increment(&self.counters.matched);
            add(&self.counters.measured, turnaround);
            return Role::of(rank);
        }
        increment(&self.counters.unplanned);
        self.counters.diverged(Divergence {
            cause: Cause::Unknown,
            task: key,
            expected: 0,
            found: 0,
        });
        Role::UNKNOWN
    }

    fn insert_by_remaining(&mut self, rank: usize, task: Handle<T>, first: bool) {
        let remaining = self.table.entries[rank].remaining(Counts::ZERO);
        let at = self.table.ready_rank_of(rank, remaining);
        self.insert_at(rank, at, task, first);
    }

    /// Inserts the task of rank `rank` at the rank `at`. Among tasks with the same remaining time it
    /// becomes the first if `first` is true, and otherwise the last.
    fn insert_at(&mut self, rank: usize, at: usize, task: Handle<T>, first: bool) {
        let entries = &mut self.table.entries;
        entries[rank].ready_rank = at as u32;
        let remaining = entries[rank].remaining(Counts::ZERO);
        self.ready_set.insert(at, task, |other| {
            let theirs = entries[other.policy_state().role().rank()].remaining(Counts::ZERO);
            if first {
                remaining <= theirs
            } else {
                remaining < theirs
            }
        });
    }

    /// Takes the task that runs next: the root by rule 9, or the first task by the plan, or one of
    /// the fallback queue. That queue is next in its turn, and if no other task is ready. If it has
    /// no eligible task, its turn does not begin.
    #[inline]
    fn take_next(&mut self, here: &mut OnCpu, by: impl Caller) -> Option<Handle<T>> {
        let may_go_on = |task: &PbgTask<T>| by.may_have(task) && self.has_claim(task);
        if here.turns.is_fallback_turn() && self.fallback.find(may_go_on).is_some() {
            return self.fallback.take_first(by); // rule 7: the rest of the tick
        }
        let root = self
            .root_if(by)
            .is_some()
            .then(|| self.root.take())
            .flatten();
        here.turns.dispatch(root.is_some());
        if root.is_some() {
            return root;
        }
        if !here.turns.is_due()
            && let Some(task) = self.take_first_ready(by)
        {
            return Some(task);
        }
        if let Some(task) = self.fallback.take_first(by) {
            if here.turns.serve_fallback() && !self.ready_set.is_empty() {
                increment(&self.counters.turns);
            }
            return Some(task);
        }
        self.take_first_ready(by)
    }

    /// Charges the running task up to now.
    #[inline]
    fn charge(&mut self, here: &mut OnCpu, now: Counts) {
        let interval = now - core::mem::replace(&mut here.since, now);
        if let Some(rank) = here.current.index() {
            self.table.entries[rank].charge(interval);
        } else if here.current == Role::UNKNOWN {
            self.watch.charge_unknown(interval);
        }
    }

    /// Hands the CPU over from the running task to another. If that demotes the task and it is
    /// ready, it leaves the ready set (rule 8).
    #[inline]
    fn handed_over(&mut self, here: &OnCpu, now: Counts) {
        let Some(rank) = here.current.index() else {
            return;
        };
        let entry = &mut self.table.entries[rank];
        add(&self.counters.lived, entry.gave_away(now));
        let Some(divergence) = entry.check_overrun(Counts::ZERO, 1) else {
            return;
        };
        let at = entry.ready_rank as usize;
        self.counters.count_demoted(divergence);
        let current = here.current;
        if let Some(demoted) =
            (self.ready_set).remove(at, |task| task.policy_state().role() == current)
        {
            self.fallback.requeue(demoted, EnqueueReason::Yielded);
        }
    }

    /// Returns how often the running task, which has just been dispatched, may yield and go on.
    #[inline]
    fn grant(&mut self, here: &OnCpu) -> i64 {
        let Some(rank) = here.current.index() else {
            return 0;
        };
        let may_yield = self.table.entries[rank].dispatched();
        if self.dropped {
            return 0;
        }
        may_yield.min(i64::MAX as u64) as i64
    }

    /// Counts yields of the running task (rule 8).
    #[inline]
    fn yielded(&mut self, here: &OnCpu, times: u64) {
        if let Some(rank) = here.current.index()
            && let Some(divergence) = self.table.entries[rank].yielded(times)
        {
            self.counters.count_demoted(divergence);
        }
    }

    /// Handles a tick that hits the running task, which follows the plan.
    fn tick_planned(&mut self, here: &mut OnCpu, by: impl Caller, now: Counts) -> Tick {
        let rank = here.current.rank();
        let interval = now - here.since;
        let mut tick = Tick::reschedule_if(self.root_if(by).is_some()); // rule 9

        let overrun = self.table.entries[rank].check_overrun(interval, OVERRUN_TICK_POINTS);
        if let Some(divergence) = overrun {
            self.counters.count_demoted(divergence);
            tick = Tick::Reschedule; // rule 8
        }
        let first = self.first_ready(by);
        let first = first.and_then(|task| self.position_of_ready(task));
        if let (Some(first), Some(running)) = (first, self.position_of_running(here, now))
            && first < running
        {
            tick = Tick::Reschedule; // rule 5
        }
        if here.turns.tick_planned(self.has_fallback(by)) {
            tick = Tick::Reschedule; // rule 7
        }
        tick
    }

    /// Returns true if the plan is followed and is wrong about more than two thirds of its tasks
    /// (rule 10).
    fn is_refuted(&self) -> bool {
        let demoted = self.counters.demoted.load(Relaxed) as usize;
        !self.dropped && 3 * demoted > 2 * self.table.entries.len()
    }

    /// Returns true if a tick finds the replay behind the measured run, and the plan is dropped for
    /// that (rule 11).
    fn is_behind(&mut self, here: &OnCpu, now: Counts) -> bool {
        if self.dropped {
            return false;
        }
        let (current, interval) = (here.current, now - here.since);
        let found = (self.watch).tick(&self.table.entries, current, interval, now);
        let Some(divergence) = found else {
            return false;
        };
        self.counters.behind.store(true, Relaxed);
        self.counters.diverged(divergence);
        if self.watch.on_slow_replay == OnSlowReplay::KeepPlan {
            return false;
        }
        self.late_first(now);
        true
    }

    /// Drops the plan: the ready tasks go to the fallback queue in their order, and the root before
    /// them. Once, and linear.
    #[cold]
    fn drop_plan(&mut self, here: &mut OnCpu) {
        here.granted = 0;
        self.dropped = true;
        self.counters.dropped.store(true, Relaxed);
        if let Some(root) = self.root.take() {
            self.fallback.push_back(root);
        }
        while let Some(task) = self.ready_set.pop_first() {
            self.fallback.push_back(task);
        }
    }

    /// Moves the ready tasks that are late at `now` before the others, in order of arrival. The
    /// others stay by rank. Once, and linear.
    #[cold]
    fn late_first(&mut self, now: Counts) {
        let (mut late, mut others) = (Queue::new(), Queue::new());
        while let Some(task) = self.ready_set.pop_first() {
            let entries = &self.table.entries;
            let entry = &entries[task.policy_state().role().rank()];
            if entry.lateness(now, None) > 0 {
                let came_before = |other: &PbgTask<T>| {
                    entry.born() < entries[other.policy_state().role().rank()].born()
                };
                late.push_before(task, MOST_PASSED, came_before);
            } else {
                others.push_back(task);
            }
        }
        let last = self.ready_set.last_rank();
        for (at, mut group) in [(0, late), (last, others)] {
            while let Some(task) = group.pop_front() {
                let rank = task.policy_state().role().rank();
                self.table.entries[rank].ready_rank = at as u32;
                self.ready_set.push_back(at, task);
            }
        }
    }
}
