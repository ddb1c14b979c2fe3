//! `Recorded`: a scheduler that passes every call on to a policy, and records it.

use alloc::sync::Arc;
use core::marker::PhantomData;

use super::source::{RecordingSource, SystemRecording};
use super::task::{RecordedTask, Subject, lent, of_policy, recorded};
use sched_core::base::BaseScheduler;
use sched_core::clock::{Clock, CpuCounter};

/// The policy of `S`, recorded as the [module documentation](super) describes. `C` is the clock, and
/// `M` finds the recording.
pub struct Recorded<S: Subject, C = CpuCounter, M = SystemRecording> {
    policy: S::Scheduler,
    /// The CPU of this queue, known since the first measured pick.
    cpu: Option<usize>,
    registered: bool,
    types: PhantomData<fn() -> (C, M)>,
}

impl<S: Subject, C, M> Recorded<S, C, M> {
    /// Creates the policy without tasks.
    pub fn new() -> Self {
        Self {
            policy: S::scheduler(),
            cpu: None,
            registered: false,
            types: PhantomData,
        }
    }

    /// Returns the policy's name.
    pub const fn scheduler_name() -> &'static str {
        S::NAME
    }
}

impl<S: Subject, C, M> Default for Recorded<S, C, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Subject, C: Clock, M: RecordingSource> BaseScheduler for Recorded<S, C, M> {
    type SchedItem = Arc<RecordedTask<S>>;

    fn init(&mut self) {
        self.policy.init();
    }

    fn add_task(&mut self, task: Self::SchedItem) {
        if !self.registered {
            self.registered = true; // this is `gc`, the queue's first task
            M::recording().register_queue(S::NAME);
        }
        M::recording().added(task.slot(), C::now);
        self.policy.add_task(of_policy(task));
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        self.policy.remove_task(&lent(task)).map(recorded)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        if M::recording().is_measuring() {
            return self.pick_measured();
        }
        let next = self.policy.pick_next_task().map(recorded::<S>);
        M::recording().picked(next.as_ref().map(|next| next.slot()));
        next
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        if M::recording().is_measuring() {
            M::recording().put_back(prev.slot(), preempt, self.cpu, C::now);
        }
        self.policy.put_prev_task(of_policy(prev), preempt);
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        let asks = self.policy.task_tick(&lent(current));
        if M::recording().is_measuring() {
            M::recording().ticked(asks, C::now());
        }
        asks
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        self.policy.set_priority(&lent(task), prio)
    }
}

impl<S: Subject, C: Clock, M: RecordingSource> Recorded<S, C, M> {
    /// Picks and records the switch. As in PBG's measurement the clock is read first, so the time of
    /// the pick itself is charged to the next task.
    #[inline(never)]
    fn pick_measured(&mut self) -> Option<Arc<RecordedTask<S>>> {
        let recording = M::recording();
        let cpu = *self.cpu.get_or_insert_with(|| recording.cpu_here());
        let now = C::now();
        recording.end_interval(cpu, now);
        let next = self.policy.pick_next_task().map(recorded::<S>);
        let slot = next.as_ref().map(|next| next.slot());
        recording.begin_interval(cpu, slot, now);
        recording.picked(slot);
        next
    }
}
