//! COOP: the scheduler that sees coroutines.
//!
//! A *worker* is a task that runs the coroutines of one *domain*. The ready coroutines of all
//! domains are in one word that the executor keeps up to date, the [summary](axcoop_summary). A
//! task becomes a worker by [`CoopState::serve`]. Priorities are 0, the most urgent, to 7.
//!
//!  1. **Order.** The task of the most urgent priority runs. A task that serves no domain has a
//!     priority of its own: 4, or 0 to 7 as set by `set_priority`.
//!  2. **Workers.** A worker has the priority of the most urgent coroutine that is ready in its
//!     domain at the time of the decision, not at the time of its put. A worker whose domain has
//!     nothing ready comes after all other tasks. The coroutine that a worker polls counts, too,
//!     while the worker runs or is preempted. That is the one that it [says](CoopState::set_polled), or
//!     else the one that it was picked for. The ready coroutines of its domain count for a
//!     preempted worker only if no other worker of the domain waits in this queue that could take
//!     them at once.
//!  3. **Slices.** Within a priority the task that has been ready longest runs, for a slice of
//!     [`SLICE_TICKS`] timer ticks (50 ms at 100 Hz).
//!  4. **Ticks.** A tick asks for rescheduling if a more urgent task is ready, or if the slice is
//!     over and a task of the same priority is ready. But if a tick ends a slice, and is the first
//!     since the task was picked, it leaves the task the CPU until the next tick. So a task makes
//!     progress even if it is picked again and again just before a tick, because more urgent tasks
//!     yield there.
//!  5. A task that is preempted within its slice keeps the rest of it, and its place before all
//!     others of its priority. A task whose slice is over, that yields or that wakes goes behind
//!     them with a new slice.
//!  6. **Yields.** A task that yields sits out one pick if another task is ready, however urgent it
//!     is itself. Then it is as ready as others. So a worker that yields because a more urgent
//!     coroutine is ready elsewhere gives its CPU to that. A worker that yields for nothing lets
//!     the next task run until that yields, blocks, or a tick comes.
//!  7. **Share.** Every [`SHARE_TICKS`]th tick of a queue with a waiting task is for the task that
//!     has waited longest there, whatever its priority. It is picked next. If others are more
//!     urgent, it has the CPU until the next tick, and then goes behind those of its priority.
//!  8. **Priority inheritance.** A priority that is [donated](CoopState::donate) to a task is its own
//!     while it is donated, if it is more urgent. For a ready task this counts from the next tick,
//!     block, exit or preemption of its CPU on, and the task keeps its place by waiting time.
//!  9. **Several CPUs.** Another CPU gets the task that would run first here among those that may
//!     run there (the crate `sched-smp`). It arrives there behind those of its priority, with the
//!     rest of its slice and the coroutine that it polls.
//!
//! Rules 1 and 2 are those of COPS and SharedScheduler (Zhao et al.), which order programs by the
//! most urgent coroutine of each. Theirs scan the programs for it at each timer tick, and leave
//! open how the less urgent make progress. Rule 3 is [RR](crate::rr)'s. Rule 8 is from Sha,
//! Rajkumar and Lehoczky, 1990.
//!
//! **Bound.** With n ready tasks each runs again within 10 × n + 5 ticks, whatever the priorities,
//! and within (n − 1) × 5 if all have the same. Each share of rule 7 goes to a task that has
//! waited longer, which then has waited less. A share may be up to a slice late, as an equal waits
//! for the end of a slice. Tasks that are less urgent than one that always runs have a tenth of
//! the CPU together.
//!
//! **Several CPUs.** Each has its own queue and its own order. With n tasks on all CPUs each runs
//! again within 20 × n + 10 ticks. That is the bound of its queue, and that of the queue that it is
//! handed over to, where it stays until it has run. There is no global order. If two urgent tasks
//! are in one queue, the second waits for the first, within the bound, while another CPU runs a
//! less urgent task. Only an idle CPU takes it at once. A domain with a worker on each CPU has that
//! order among its own coroutines all the same. Each of its workers takes the most urgent one at
//! its next await.
//!
//! **Cost.** A yield is one list operation for the put, and one for the pick with a find-first-set.
//! If workers wait, a pick also loads the summary once, does a second find-first-set, and looks at
//! the first task of each list of that priority. The scheduler is not called when a coroutine
//! becomes ready. Nothing allocates. No loop is over tasks, with these exceptions:
//!
//! - A tick looks at 24 lists when the share is due.
//! - A worker that is preempted in a poll is put among those of its domain in this queue.
//! - The next tick, block or preemption after a priority was donated looks at all ready tasks (rule
//!   8).
//! - So do `remove_task`, which `axtask` never calls, and rule 9.
//!
//! The policy needs `axtask/preempt`: without it ticks have no effect except for rule 7 at the next
//! yield or block.

mod level;
mod ready;
mod source;
mod task;

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Acquire;

use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::queue::Slot;
use sched_core::task::Task;

pub use crate::rr::SLICE_TICKS;
pub use axcoop_summary::{DomainId, NoSuchPriority, Priority};
#[cfg(feature = "std")]
pub use source::CoopPerThread;
pub use source::{CoopSource, SystemCoop};
pub use task::{CoopState, TaskDonation, TooManyDonors, of};

use level::Level;
use ready::Ready;

/// A task under [`CoopScheduler`].
pub type CoopTask<T> = Task<T, CoopState>;
/// The scheduler that sees coroutines. `S` names the summary of the ready ones.
pub type CoopScheduler<T, S = SystemCoop> = Adapter<Coop<T, S>>;

/// The period of the share, in ticks (rule 7).
pub const SHARE_TICKS: u32 = 10;

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Coop<T, S> {
    ready: Ready<T>,
    /// The task that gave way since the last pick and sits out the next one. It has yielded (rule
    /// 6), or was preempted for a share, which is not for the task that has just run (rule 7).
    aside: Slot<T, CoopState>,
    is_aside_preempted: bool,
    /// True if a tick has hit the running task since it was picked (rule 4).
    has_ticked: bool,
    /// The number of ticks with a waiting task since the last share was due (rule 7).
    ticks: u32,
    /// The number of donations that have been seen (rule 8).
    donations: u64,
    source: PhantomData<fn() -> S>,
}

impl<T, S: CoopSource> Coop<T, S> {
    /// Returns the ready priorities of all domains, as of now.
    #[inline(always)]
    fn summary() -> u64 {
        S::summary().bits()
    }

    #[inline]
    const fn is_share_due(&self) -> bool {
        self.ticks >= SHARE_TICKS
    }

    #[cold]
    #[inline(never)]
    fn enqueue_woken(&mut self, task: Arc<CoopTask<T>>) {
        self.ready.push_back(task, EnqueueReason::Woken);
    }

    #[cold]
    #[inline(never)]
    fn enqueue_handed_over(&mut self, task: Arc<CoopTask<T>>) {
        self.ready.push_back(task, EnqueueReason::HandedOver);
    }

    #[cold]
    #[inline(never)]
    fn enqueue_preempted(&mut self, task: Arc<CoopTask<T>>) {
        if self.is_share_due() {
            self.is_aside_preempted = true;
            self.aside.put(task);
        } else {
            self.requeue_preempted(task);
        }
    }

    /// Requeues a preempted task (rule 5).
    fn requeue_preempted(&mut self, task: Arc<CoopTask<T>>) {
        match task.policy_state().is_over() {
            true => self.ready.push_back(task, EnqueueReason::Preempted),
            false => self.ready.push_front(task),
        }
    }

    /// Picks the task that has waited longest (rule 7).
    #[cold]
    #[inline(never)]
    fn dispatch_by_share(&mut self) -> Option<Arc<CoopTask<T>>> {
        let was_preempted = core::mem::take(&mut self.is_aside_preempted);
        let summary = Self::summary();
        let Some((next, level)) = self.ready.take_oldest(summary) else {
            let aside = self.aside.take()?;
            if !was_preempted {
                aside.policy_state().renew();
            }
            return Some(aside);
        };
        // A share that came late does not put off the next one. A share that no task took in time
        // is lost.
        self.ticks = (self.ticks - SHARE_TICKS).min(SHARE_TICKS - 1);
        if let Some(aside) = self.aside.take() {
            match was_preempted {
                true => self.requeue_preempted(aside),
                false => self.ready.push_back(aside, EnqueueReason::Yielded),
            }
        }
        if self.ready.most_urgent(summary) < level {
            next.policy_state().limit_to_one_tick();
        }
        Some(next)
    }

    /// Moves ready tasks up if a priority was donated since the last look (rule 8).
    #[inline]
    fn look_for_donations(&mut self) {
        let donations = S::donations().load(Acquire);
        if donations != self.donations {
            self.donations = donations;
            self.ready.move_up();
        }
    }

    #[inline(never)]
    fn dispatch_after_no_yield(&mut self) -> Option<Arc<CoopTask<T>>> {
        self.look_for_donations();
        self.ready.take_first(Self::summary)
    }

    /// Returns the level of the running task (rules 1, 2 and 8).
    fn level_of_running(running: &CoopTask<T>, summary: u64) -> Level {
        let state = running.policy_state();
        match state.served() {
            None => state.level(),
            Some(domain) => state.running_level(domain, summary),
        }
    }
}

impl<T, S: CoopSource> Policy for Coop<T, S> {
    type Inner = T;
    type State = CoopState;
    const NAME: &'static str = "COOP";
    const EVENTS: EventLevel = EventLevel::Reasons;
    const NEW: Self = Self {
        ready: Ready::NEW,
        aside: Slot::EMPTY,
        is_aside_preempted: false,
        has_ticked: false,
        ticks: 0,
        donations: 0,
        source: PhantomData,
    };

    fn spawned(&mut self, task: Arc<CoopTask<T>>) {
        self.ready.push_back(task, EnqueueReason::Woken);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<CoopTask<T>>, why: EnqueueReason) {
        // All but yields is out of line, so that `axtask` can inline the rest.
        match why {
            EnqueueReason::Yielded => self.aside.put(task), // rule 6
            EnqueueReason::Preempted => self.enqueue_preempted(task),
            EnqueueReason::Woken => self.enqueue_woken(task),
            EnqueueReason::HandedOver => self.enqueue_handed_over(task),
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<CoopTask<T>>> {
        self.has_ticked = false;
        if self.is_share_due() {
            return self.dispatch_by_share();
        }
        let Some(yielder) = self.aside.take() else {
            return self.dispatch_after_no_yield();
        };
        let Some(next) = self.ready.take_first(Self::summary) else {
            yielder.policy_state().renew();
            return Some(yielder);
        };
        self.ready.push_back_yielded(yielder);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<CoopTask<T>>) -> Tick {
        let is_first = !core::mem::replace(&mut self.has_ticked, true);
        let takes_last = running.policy_state().tick();
        if self.ready.is_empty() {
            return Tick::Continue;
        }
        self.look_for_donations();
        self.ticks += 1;
        let summary = Self::summary();
        let level = Self::level_of_running(running, summary);
        let most_urgent = self.ready.most_urgent(summary);
        let is_over = running.policy_state().is_over();
        // Rule 4.
        if most_urgent < level {
            return Tick::reschedule_if(!(is_first && takes_last));
        }
        if most_urgent == level && is_over {
            return Tick::Reschedule;
        }
        // Rule 7. An equal waits for the end of the slice.
        let is_behind = |oldest: Level| oldest > level;
        Tick::reschedule_if(
            self.is_share_due() && self.ready.oldest_level(summary).is_some_and(is_behind),
        )
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        self.look_for_donations();
        let summary = Self::summary();
        let by_share = match self.is_share_due() {
            true => self
                .ready
                .take_oldest_if(summary, |task| may(task) && take_request()),
            false => None,
        };
        by_share
            .or_else(|| self.ready.take_first_of(summary, may, take_request))
            .or_else(|| {
                let is_claimed = self.aside.get().is_some_and(may) && take_request();
                is_claimed.then(|| self.aside.take())?
            })
    }

    fn remove(&mut self, task: &Arc<CoopTask<T>>) -> Option<Arc<CoopTask<T>>> {
        if self.aside.holds(task) {
            return self.aside.take();
        }
        self.ready.remove(task)
    }

    fn set_priority(&mut self, task: &Arc<CoopTask<T>>, priority: isize) -> bool {
        let number = usize::try_from(priority).ok();
        let priority = number.and_then(|number| Priority::try_from(number).ok());
        priority.is_some_and(|priority| {
            task.policy_state().set_priority(priority);
            true
        })
    }
}

#[cfg(test)]
mod tests;
