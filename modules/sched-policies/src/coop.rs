//! COOP: the scheduler that sees coroutines.
//!
//! A *worker* is a task that runs the coroutines of one *domain*; what each domain has ready stands
//! in one word that its executor keeps up to date, the [summary](axcoop_summary). A task becomes
//! a worker by [`CoopState::serve`]. Priorities are 0, the most urgent, to 7.
//!
//!  1. **Order.** The task of the most urgent priority runs. A task that serves no domain has one of
//!     its own: 4, or what `set_priority` sets, 0 to 7.
//!  2. **Workers.** A worker has the priority of the most urgent coroutine that is ready in its
//!     domain *when somebody asks*, not when it was put; one whose domain has nothing ready comes
//!     after all others. Of one that polls, what it polls counts, too: as it
//!     [says](CoopState::polls), or else what it was picked for, while it runs or is preempted. What
//!     is ready in the domain of one that is preempted counts for it if none of the domain's
//!     other workers waits in this queue that could take it at once.
//!  3. **Turns.** Of one priority who has been ready longest runs, for a slice of
//!     [`SLICE_TICKS`] timer ticks (50 ms at 100 Hz).
//!  4. **Ticks.** A tick asks for rescheduling if somebody more urgent is ready, or if the slice is
//!     over and one of the same priority is. But one that takes the last of a slice, and is the first
//!     since the task was picked, leaves it the CPU until the next: so who is picked again and again
//!     just before a tick, as others that are more urgent yield there, gets on all the same.
//!  5. A task that is preempted within its slice keeps what is left of it, and its place before
//!     all others of its priority. One whose slice is over, that yields or that wakes goes behind
//!     them with a new slice.
//!  6. **Yields.** A task that yields sits out one pick if anybody else is ready, however urgent it
//!     is itself; then it is as ready as others. So a worker that yields because something more
//!     urgent is ready elsewhere gives its CPU to that; one that yields for nothing has the next one
//!     run, until it yields, blocks, or a tick comes.
//!  7. **Share.** Every [`SHARE_TICKS`]th tick of a queue in which somebody waits is for who has
//!     waited longest there, whatever its priority: it is picked next, and if others are more
//!     urgent, it has the CPU until the next tick, and then goes behind those of its priority.
//!  8. **Lent.** A priority that is [lent](CoopState::lend) to a task is its own as long, if it is more
//!     urgent. Of a ready task this counts from the next tick, block, exit or preemption of its CPU
//!     on, and it keeps its turn.
//!  9. **Several CPUs.** Another CPU is given the task that would run first here, of those that may
//!     run there (the crate `sched-smp`). It arrives there behind those of its priority, with
//!     the rest of its slice, and polls what it polled.
//!
//! Rules 1 and 2 are those of COPS and SharedScheduler (Zhao et al.), which order programs by the most
//! urgent coroutine of each; theirs scan the programs for it at each timer tick, and leave open what
//! becomes of the less urgent. Rule 3 is [RR](crate::rr)'s, rule 8 priority inheritance (Sha,
//! Rajkumar and Lehoczky, 1990).
//!
//! **Bound.** n ready tasks: each runs again within 10 × n + 5 ticks, whatever the priorities, and
//! within (n − 1) × 5 if all have the same. Each share of rule 7 goes to one that has waited longer,
//! which then has waited less; it may be up to a slice late, as who is next among equals waits for the
//! end of a slice. Those who are less urgent than one that always runs have a tenth of the CPU
//! together.
//!
//! **Several CPUs.** Each has its own queue and its own order. With n tasks on all CPUs each runs
//! again within 20 × n + 10 ticks: the bound of its queue, and that of the queue that it is handed
//! over to, where it stays until it has run. There is no order over all: of two urgent tasks
//! that were put into one queue the second waits for the first, at most as the bound says, while
//! another CPU runs something less urgent, and an idle CPU is the only one that takes it at
//! once. A domain with a worker on each CPU has that order among its own coroutines all the same, as
//! each of its workers takes the most urgent one at its next await.
//!
//! **Cost.** A yield is one list operation for the put and one for the pick, a find-first-set, and,
//! where workers wait, one load of the summary, a second find-first-set, and a look at the first of
//! each list of that priority. Nothing is told to the scheduler when a coroutine becomes ready. No
//! loop is over tasks, with these exceptions: a tick looks at 24 lists when the share is due; who is
//! midway in a poll as it is preempted is put among those of its domain that are so in this queue;
//! the next tick, block or preemption after somebody has lent something looks at all ready tasks
//! (rule 8); and so do `remove_task`, which `axtask` never calls, and rule 9. Nothing allocates. Needs
//! `axtask/preempt`, without which ticks have no effect but for rule 7 at the next yield or block.

mod level;
mod ready;
mod source;
mod task;

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Acquire;

use sched_core::event::{Adapter, May, Policy, Return, TaskRef, Tick, Tracks};
use sched_core::queue::Slot;
use sched_core::task::Task;

pub use crate::rr::SLICE_TICKS;
pub use axcoop_summary::{DomainId, NoSuchPriority, Priority};
#[cfg(feature = "std")]
pub use source::CoopPerThread;
pub use source::{CoopSource, SystemCoop};
pub use task::{CoopState, Lent, TooManyLenders, of};

use level::Level;
use ready::Ready;

/// A task under [`CoopScheduler`].
pub type CoopTask<T> = Task<T, CoopState>;
/// The scheduler that sees coroutines; `S` is where it finds which are ready.
pub type CoopScheduler<T, S = SystemCoop> = Adapter<Coop<T, S>>;

/// Rule 7: every so many ticks.
pub const SHARE_TICKS: u32 = 10;

/// See the [module documentation](self).
pub struct Coop<T, S> {
    ready: Ready<T>,
    /// Who gave way since the last pick and is not to be picked: it has yielded (rule 6), or was
    /// preempted for a share, which is not for who has just run (rule 7).
    aside: Slot<T, CoopState>,
    is_aside_preempted: bool,
    /// A tick has hit who runs since it was picked (rule 4).
    has_ticked: bool,
    /// Ticks with somebody waiting since the last share was due (rule 7).
    ticks: u32,
    /// How many lendings have been seen (rule 8).
    lendings: u64,
    source: PhantomData<fn() -> S>,
}

impl<T, S: CoopSource> Coop<T, S> {
    /// What is ready in all domains, now.
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
    fn wakes(&mut self, task: Arc<CoopTask<T>>) {
        self.ready.arrives(task, Return::Woken);
    }

    #[cold]
    #[inline(never)]
    fn is_handed_over(&mut self, task: Arc<CoopTask<T>>) {
        self.ready.arrives(task, Return::HandedOver);
    }

    #[cold]
    #[inline(never)]
    fn is_preempted(&mut self, task: Arc<CoopTask<T>>) {
        if self.is_share_due() {
            self.is_aside_preempted = true;
            self.aside.put(task);
        } else {
            self.goes_on(task);
        }
    }

    /// Rule 5, of who was preempted.
    fn goes_on(&mut self, task: Arc<CoopTask<T>>) {
        match task.policy_state().is_over() {
            true => self.ready.arrives(task, Return::Preempted),
            false => self.ready.goes_on(task),
        }
    }

    /// Rule 7.
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
        // A share that came late does not put off the next one; one that nobody took is gone.
        self.ticks = (self.ticks - SHARE_TICKS).min(SHARE_TICKS - 1);
        if let Some(aside) = self.aside.take() {
            match was_preempted {
                true => self.goes_on(aside),
                false => self.ready.arrives(aside, Return::Yielded),
            }
        }
        if self.ready.most_urgent(summary) < level {
            next.policy_state().has_one_tick();
        }
        Some(next)
    }

    /// Rule 8.
    #[inline]
    fn look_for_lent(&mut self) {
        let lendings = S::lendings().load(Acquire);
        if lendings != self.lendings {
            self.lendings = lendings;
            self.ready.move_up();
        }
    }

    #[inline(never)]
    fn dispatch_after_no_yield(&mut self) -> Option<Arc<CoopTask<T>>> {
        self.look_for_lent();
        self.ready.take_first(Self::summary)
    }

    /// Rules 1, 2 and 8, of who runs.
    fn runs_at(running: &CoopTask<T>, summary: u64) -> Level {
        let state = running.policy_state();
        match state.served() {
            None => state.level(),
            Some(domain) => state.runs_at(domain, summary),
        }
    }
}

impl<T, S: CoopSource> Policy for Coop<T, S> {
    type Inner = T;
    type State = CoopState;
    const NAME: &'static str = "COOP";
    const TRACKS: Tracks = Tracks::Returns;
    const NEW: Self = Self {
        ready: Ready::NEW,
        aside: Slot::EMPTY,
        is_aside_preempted: false,
        has_ticked: false,
        ticks: 0,
        lendings: 0,
        source: PhantomData,
    };

    fn spawned(&mut self, task: Arc<CoopTask<T>>) {
        self.ready.arrives(task, Return::Woken);
    }

    #[inline]
    fn returned(&mut self, task: Arc<CoopTask<T>>, why: Return) {
        // What is no yield is out of line, so that `axtask` can inline the rest.
        match why {
            Return::Yielded => self.aside.put(task), // rule 6
            Return::Preempted => self.is_preempted(task),
            Return::Woken => self.wakes(task),
            Return::HandedOver => self.is_handed_over(task),
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
        self.ready.yields(yielder);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<CoopTask<T>>) -> Tick {
        let is_first = !core::mem::replace(&mut self.has_ticked, true);
        let takes_last = running.policy_state().tick();
        if self.ready.is_empty() {
            return Tick::Continue;
        }
        self.look_for_lent();
        self.ticks += 1;
        let summary = Self::summary();
        let level = Self::runs_at(running, summary);
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

    fn give(&mut self, may: &May<'_, Self>, claims: &dyn Fn() -> bool) -> Option<TaskRef<Self>> {
        self.look_for_lent();
        let summary = Self::summary();
        let by_share = match self.is_share_due() {
            true => self
                .ready
                .take_oldest_if(summary, |task| may(task) && claims()),
            false => None,
        };
        by_share
            .or_else(|| self.ready.take_first_of(summary, may, claims))
            .or_else(|| {
                let is_claimed = self.aside.get().is_some_and(may) && claims();
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
