//! The scheduler of one CPU.
//!
//! A put and a pick first look at the [grant](crate::grant): a task that yields within its budget
//! is kept, and the pick returns it. All other calls go to the [engine](crate::engine) with
//! [`Alone`] as the calling CPU.

use alloc::sync::Arc;

use sched_core::base::BaseScheduler;
use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::{EnqueueReason, Tick};

use crate::caller::Alone;
use crate::engine::{Cpu, Engine};
use crate::grant::Grant;
use crate::source::{ControlSource, SystemControl};
use crate::task::PbgTask;

/// The PBG scheduler, as the [crate documentation](crate) has it; `C` is where it reads
/// the time, `M` where it finds its control.
///
/// It is not a [`Policy`](sched_core::event::Policy): a scheduler that keeps the CPU across a yield
/// handles the put and the pick that follows together, and needs no event for either.
// The grant is first: its address is that of the scheduler, and a pick need not compute it.
#[repr(C)]
pub struct PbgScheduler<T, C = CpuCounter, M = SystemControl> {
    grant: Grant<T>,
    /// The queue has had its first task, which is its CPU's `gc`.
    has_gc: bool,
    cpu: Cpu,
    engine: Engine<T, C, M>,
}

impl<T, C, M> PbgScheduler<T, C, M> {
    /// Creates an empty scheduler.
    pub const fn new() -> Self {
        Self {
            grant: Grant::new(),
            has_gc: false,
            cpu: Cpu::new(),
            engine: Engine::new(),
        }
    }

    /// Marks the first task that is added to this queue, which is its CPU's `gc`. Returns true if
    /// `task` is that.
    pub(super) fn mark_gc(&mut self, task: &PbgTask<T>) -> bool {
        let is_gc = !core::mem::replace(&mut self.has_gc, true);
        if is_gc {
            task.policy_state().mark_gc();
        }
        is_gc
    }

    /// Takes a ready task out for another scheduler.
    ///
    /// # Panics
    /// Panics if this scheduler follows a plan, whose tasks would be lost.
    pub(super) fn pop(&mut self) -> Option<Arc<PbgTask<T>>> {
        assert!(
            !self.engine.is_replaying(),
            "connected while one CPU follows a plan by itself, whose tasks would be lost"
        );
        self.engine.pop()
    }

    /// Returns the name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        "PBG"
    }
}

// Not inlined, so that `axtask` can inline the caller; and with the scheduler and the task where
// the caller has them, so that they need not be moved.
impl<T, C: Clock, M: ControlSource> PbgScheduler<T, C, M> {
    #[inline(never)]
    fn put_yielded(&mut self, prev: Arc<PbgTask<T>>) {
        self.engine.put_yielded(prev);
    }

    #[inline(never)]
    fn put_otherwise(&mut self, prev: Arc<PbgTask<T>>, why: EnqueueReason) {
        self.engine
            .put(&mut self.cpu, &self.grant, Alone, prev, why);
    }
}

impl<T, C, M> Default for PbgScheduler<T, C, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, C: Clock, M: ControlSource> BaseScheduler for PbgScheduler<T, C, M> {
    type SchedItem = Arc<PbgTask<T>>;

    fn init(&mut self) {}

    #[inline]
    fn add_task(&mut self, task: Arc<PbgTask<T>>) {
        if self.mark_gc(&task) {
            M::control().register_queue();
        }
        self.engine.add(&mut self.cpu, &self.grant, Alone, task);
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Arc<PbgTask<T>>, preempt: bool) {
        if !preempt && self.grant.is_running(&prev) {
            let budget = self.grant.budget();
            if budget > 0 {
                self.grant.set_budget(budget - 1);
                return self.grant.keep(prev); // rule 5
            }
            if budget < 0 {
                return self.put_yielded(prev);
            }
        }
        let why = self.grant.enqueue_reason(&prev, preempt);
        self.put_otherwise(prev, why);
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Arc<PbgTask<T>>> {
        if let Some(task) = self.grant.take_kept() {
            return Some(task); // it is the one that runs
        }
        self.engine.pick(&mut self.cpu, &self.grant, Alone)
    }

    #[inline]
    fn task_tick(&mut self, current: &Arc<PbgTask<T>>) -> bool {
        self.engine.tick(&mut self.cpu, &self.grant, Alone, current) == Tick::Reschedule
    }

    fn remove_task(&mut self, task: &Arc<PbgTask<T>>) -> Option<Arc<PbgTask<T>>> {
        if self.grant.is_kept(task) {
            return self.grant.take_kept();
        }
        self.engine.remove(task)
    }

    fn set_priority(&mut self, _: &Arc<PbgTask<T>>, _: isize) -> bool {
        false
    }
}
