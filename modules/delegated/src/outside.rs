//! The tasks outside all enclaves: round robin, by the rules of [`rr`](sched_policies::rr).

use alloc::sync::Arc;
use core::cell::Cell;

use sched_core::base::BaseScheduler;
use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::queue::Queue;
use sched_policies::rr;
use sched_smp::{SmpStateSource, WorkSharing};

use crate::table::{SystemTable, TableSource};
use crate::task::{DelegatedState, DelegatedTask, SLICE_TICKS};

/// The policy of the tasks outside all enclaves.
pub struct Outside<T, M: TableSource = SystemTable> {
    ready: Queue<T, DelegatedState<M>>,
    /// The next tick is none, but an IPI.
    ignores_tick: Cell<bool>,
}

impl<T, M: TableSource> Outside<T, M> {
    /// Returns true if a task waits.
    #[inline(always)]
    pub const fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Makes the next tick count as none, or as one.
    pub fn ignore_tick(&self, ignore: bool) {
        self.ignores_tick.set(ignore);
    }
}

impl<T, M: TableSource> Policy for Outside<T, M> {
    type Inner = T;
    type State = DelegatedState<M>;
    const NAME: &'static str = "DELEGATED";
    const EVENTS: EventLevel = EventLevel::Reasons;
    const NEW: Self = Self {
        ready: Queue::new(),
        ignores_tick: Cell::new(false),
    };

    #[inline]
    fn spawned(&mut self, task: Arc<DelegatedTask<T, M>>) {
        self.ready.push_back(task);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<DelegatedTask<T, M>>, why: EnqueueReason) {
        let state = task.policy_state();
        if why == EnqueueReason::HandedOver && !state.slice().is_over() {
            return self.ready.push_back(task);
        }
        rr::requeue::<_, _, SLICE_TICKS>(&mut self.ready, task, why);
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<DelegatedTask<T, M>>> {
        self.ready.pop_front()
    }

    #[inline]
    fn ticked(&mut self, running: &Arc<DelegatedTask<T, M>>) -> Tick {
        if self.ignores_tick.take() {
            return Tick::Continue;
        }
        let state = running.policy_state();
        if state.is_demoted() {
            state.slice().expire();
        }
        state.slice().tick()
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        self.ready.remove_first(|task| may(task) && take_request())
    }

    fn remove(&mut self, task: &TaskRef<Self>) -> Option<TaskRef<Self>> {
        self.ready.remove(task)
    }
}

/// The scheduler of the tasks outside all enclaves, on one CPU or on one of several.
pub trait OutsideScheduler<T, M: TableSource>:
    BaseScheduler<SchedItem = Arc<DelegatedTask<T, M>>>
{
    /// The system has several CPUs.
    const SEVERAL: bool;
    /// An empty one.
    const NEW: Self;

    /// Returns the policy.
    fn policy(&self) -> &Outside<T, M>;
}

impl<T, M: TableSource> OutsideScheduler<T, M> for Adapter<Outside<T, M>> {
    const SEVERAL: bool = false;
    const NEW: Self = Self::new();

    #[inline(always)]
    fn policy(&self) -> &Outside<T, M> {
        self.policy()
    }
}

impl<T, M: TableSource, S: SmpStateSource> OutsideScheduler<T, M>
    for WorkSharing<Outside<T, M>, S>
{
    const SEVERAL: bool = true;
    const NEW: Self = Self::new();

    #[inline(always)]
    fn policy(&self) -> &Outside<T, M> {
        self.policy()
    }
}
