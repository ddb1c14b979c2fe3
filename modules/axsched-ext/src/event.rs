//! The one place that turns the trait's calls into typed events.
//!
//! [`BaseScheduler`] has four verbs for eight things that happen (see its
//! table). What a `put_prev_task` means, and that a task has blocked or exited
//! at all, can be told only by remembering who was picked last. [`Adapter`]
//! remembers; a [`Policy`] is told:
//!
//! | event | means | from |
//! |---|---|---|
//! | [`spawned`](Policy::spawned) | a new task is ready | `add_task` |
//! | [`returned`](Policy::returned) ([`Yielded`](Return::Yielded)) | the running task gave way | put of the running task |
//! | [`returned`](Policy::returned) ([`Preempted`](Return::Preempted)) | the running task was made to | the same, `preempt` |
//! | [`returned`](Policy::returned) ([`Woken`](Return::Woken)) | a blocked or migrated task is ready | put of another task |
//! | [`left`](Policy::left) | the running task blocked, exited or migrated away | pick without a put |
//! | [`dispatch`](Policy::dispatch) | somebody must run now | pick |
//! | [`ticked`](Policy::ticked) | a timer tick hit a running task | `task_tick` |
//!
//! A policy that does not care why a task returned names [`Forget`] as its
//! [`Policy::Memory`]; the bookkeeping then compiles to nothing.
//!
//! Two limits, both from the trait: `main` runs first without being picked, so
//! its first return counts as `Woken`; and a task that migrates away counts as
//! `left` at the next pick on the queue that it came from.

use alloc::sync::Arc;

use crate::base::BaseScheduler;
use crate::task::Task;

/// Why a task is ready again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// It ran, and gave the CPU away by itself.
    Yielded,
    /// It ran, and the CPU was taken from it.
    Preempted,
    /// It did not run: it was blocked, or came from another CPU's queue.
    Woken,
}

/// What shall happen after a timer tick.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// The running task goes on.
    Continue,
    /// The running task shall be preempted as soon as it may be.
    Reschedule,
}

impl Tick {
    /// [`Reschedule`](Tick::Reschedule) if `yes`.
    #[inline]
    pub const fn reschedule_if(yes: bool) -> Self {
        if yes {
            Self::Reschedule
        } else {
            Self::Continue
        }
    }
}

/// A scheduling policy: everything that decides, nothing that guesses.
///
/// Calls are serialised by the run queue's lock, with interrupts off. No method
/// may allocate, log, or keep a handle of a task that is not ready.
pub trait Policy {
    /// The wrapped task.
    type Inner;
    /// What the policy remembers of each task.
    type State;
    /// How much the adapter must remember: [`Remember`] or [`Forget`].
    type Memory: Memory;
    /// The name in ArceOS's boot log.
    const NAME: &'static str;
    /// The policy with no task in it.
    const NEW: Self;

    /// Whether [`keep`](Policy::keep) and [`kept`](Policy::kept) are for it.
    const KEEPS: bool = false;

    /// The running task yields, and the policy may take it: into its queue, or to let
    /// it go on at once. A short way for those who have one: what is refused goes the
    /// usual way.
    ///
    /// # Errors
    /// The task, if it is not taken.
    #[inline]
    fn keep(&mut self, task: TaskRef<Self>) -> Result<(), TaskRef<Self>> {
        Err(task)
    }
    /// The task that was taken to go on at once, at the pick that follows.
    #[inline]
    fn kept(&mut self) -> Option<TaskRef<Self>> {
        None
    }
    /// A new task is ready.
    fn spawned(&mut self, task: TaskRef<Self>);
    /// A known task is ready again.
    fn returned(&mut self, task: TaskRef<Self>, why: Why<Self>);
    /// The running task is gone: it blocked, exited or migrated. Its handle is
    /// not to be had. Told before the [`dispatch`](Policy::dispatch) that it causes.
    #[inline]
    fn left(&mut self) {}
    /// Takes out the task to run now.
    fn dispatch(&mut self) -> Option<TaskRef<Self>>;
    /// [`spawned`](Policy::spawned), for a policy that must know who runs meanwhile.
    #[inline]
    fn spawned_beside(&mut self, task: TaskRef<Self>, memory: &mut Self::Memory) {
        let _ = memory;
        self.spawned(task);
    }
    /// [`dispatch`](Policy::dispatch), for a policy that must know who ran until now.
    #[inline]
    fn dispatch_after(&mut self, memory: &Self::Memory) -> Option<TaskRef<Self>> {
        let _ = memory;
        self.dispatch()
    }
    /// A timer tick hit `running`.
    #[inline]
    fn ticked(&mut self, running: &TaskRef<Self>) -> Tick {
        let _ = running;
        Tick::Continue
    }
    /// Takes a ready task out; `None` if it is not in this queue. May be slow.
    fn remove(&mut self, task: &TaskRef<Self>) -> Option<TaskRef<Self>>;
    /// Sets a task's priority; false where the policy has none.
    #[inline]
    fn set_priority(&mut self, task: &TaskRef<Self>, priority: isize) -> bool {
        let _ = (task, priority);
        false
    }
}

/// A policy's handle of a task.
pub type TaskRef<P> = Arc<Task<<P as Policy>::Inner, <P as Policy>::State>>;
/// What a policy is told of a task's return.
pub type Why<P> = <<P as Policy>::Memory as Memory>::Why;

/// What the adapter remembers between calls.
pub trait Memory {
    /// What it can say of a task's return.
    type Why;
    /// Nothing has been picked yet.
    const NEW: Self;
    /// The task at this address is running from now on; null is the idle task.
    fn dispatched(&mut self, task: *const ());
    /// This task came back.
    fn returned(&mut self, task: *const (), preempt: bool) -> Self::Why;
    /// Whether the running task went away without coming back.
    fn left(&self) -> bool;
    /// Whether this, if it comes back by itself, yields: without noting it.
    fn yields(&self, task: *const ()) -> bool {
        let _ = task;
        false
    }
}

/// Remembers nothing, costs nothing, says nothing.
pub struct Forget;

impl Memory for Forget {
    type Why = ();
    const NEW: Self = Self;
    #[inline(always)]
    fn dispatched(&mut self, _: *const ()) {}
    #[inline(always)]
    fn returned(&mut self, _: *const (), _: bool) {}
    #[inline(always)]
    fn left(&self) -> bool {
        false
    }
}

/// Remembers the running task's address.
///
/// An address, never a handle: a handle of a task that exits would keep the
/// `gc` task spinning. It is compared, never followed, since a task that
/// migrated may be gone. A new task at the address of a dead one cannot be
/// mistaken for it, because the pick that follows a death overwrites the
/// address before the new task can come back. (A task that migrates away leaves
/// without a pick; until its helper's pick its address stands, and a task that
/// came here at that address would count as having yielded. That is possible
/// with several CPUs only, and harmless to the policies that look.)
///
/// A policy that does not ask who [`left`](Policy::left) says `Remember<false>`
/// and saves the bookkeeping of it: then a return only has to be compared when
/// the answer matters, which is when `preempt` is set.
pub struct Remember<const DEPARTURES: bool = true> {
    /// Null while idle and before the first pick; with `DEPARTURES` also between
    /// a return and the next pick.
    running: *const (),
}

// SAFETY: the pointer is only compared, never followed.
unsafe impl<const DEPARTURES: bool> Send for Remember<DEPARTURES> {}

impl Remember<false> {
    /// The address of the task that runs, or ran last; null if that is the idle
    /// task, or `main` before its first pick.
    #[inline]
    pub(crate) const fn running(&self) -> *const () {
        self.running
    }

    /// The running task's next return is to be told as [`Woken`](Return::Woken), as
    /// if it had come from elsewhere: so the policy gets to look at who it is.
    pub(crate) const fn forget(&mut self) {
        self.running = core::ptr::null();
    }
}

impl<const DEPARTURES: bool> Memory for Remember<DEPARTURES> {
    type Why = Return;
    const NEW: Self = Self {
        running: core::ptr::null(),
    };

    #[inline(always)]
    fn dispatched(&mut self, task: *const ()) {
        self.running = task;
    }

    #[inline(always)]
    fn returned(&mut self, task: *const (), preempt: bool) -> Return {
        if !core::ptr::eq(task, self.running) {
            // Whatever the flag says: a waker may ask for rescheduling.
            return Return::Woken;
        }
        if DEPARTURES {
            self.running = core::ptr::null();
        }
        if preempt {
            Return::Preempted
        } else {
            Return::Yielded
        }
    }

    #[inline(always)]
    fn left(&self) -> bool {
        DEPARTURES && !self.running.is_null()
    }

    #[inline(always)]
    fn yields(&self, task: *const ()) -> bool {
        core::ptr::eq(task, self.running)
    }
}

/// A [`BaseScheduler`] that drives a [`Policy`].
pub struct Adapter<P: Policy> {
    policy: P,
    memory: P::Memory,
}

impl<P: Policy> Adapter<P> {
    /// An empty scheduler.
    pub const fn new() -> Self {
        Self::with_policy(P::NEW)
    }

    /// A scheduler around a policy that has been set up by hand.
    pub const fn with_policy(policy: P) -> Self {
        Self {
            policy,
            memory: P::Memory::NEW,
        }
    }

    /// The name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        P::NAME
    }

    #[cfg(test)]
    pub(crate) const fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// The policy inside, for tests and statistics.
    pub const fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: Policy> Default for Adapter<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[inline(always)]
fn address<T, S>(task: &Arc<Task<T, S>>) -> *const () {
    Arc::as_ptr(task).cast()
}

impl<P: Policy> BaseScheduler for Adapter<P> {
    type SchedItem = TaskRef<P>;

    fn init(&mut self) {}

    #[inline]
    fn add_task(&mut self, task: Self::SchedItem) {
        self.policy.spawned_beside(task, &mut self.memory);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        self.policy.remove(task)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        if P::KEEPS
            && let Some(task) = self.policy.kept()
        {
            return Some(task); // it is who is remembered
        }
        if self.memory.left() {
            self.policy.left();
        }
        let next = self.policy.dispatch_after(&self.memory);
        self.memory
            .dispatched(next.as_ref().map_or(core::ptr::null(), address));
        next
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        let mut prev = prev;
        if P::KEEPS && !preempt && self.memory.yields(address(&prev)) {
            match self.policy.keep(prev) {
                Ok(()) => return,
                Err(refused) => prev = refused,
            }
        }
        let why = self.memory.returned(address(&prev), preempt);
        self.policy.returned(prev, why);
    }

    #[inline]
    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        self.policy.ticked(current) == Tick::Reschedule
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        self.policy.set_priority(task, prio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Writes down what it is told; picks in order of arrival.
    struct Diary {
        events: Vec<String>,
        ready: Vec<Arc<Task<u32, ()>>>,
    }

    impl Policy for Diary {
        type Inner = u32;
        type State = ();
        type Memory = Remember;
        const NAME: &'static str = "diary";
        const NEW: Self = Self {
            events: Vec::new(),
            ready: Vec::new(),
        };

        fn spawned(&mut self, task: TaskRef<Self>) {
            self.events.push(format!("spawned {}", task.inner()));
            self.ready.push(task);
        }
        fn returned(&mut self, task: TaskRef<Self>, why: Return) {
            self.events.push(format!("{why:?} {}", task.inner()));
            self.ready.push(task);
        }
        fn left(&mut self) {
            self.events.push("left".into());
        }
        fn dispatch(&mut self) -> Option<TaskRef<Self>> {
            let next = (!self.ready.is_empty()).then(|| self.ready.remove(0));
            self.events.push(match &next {
                Some(task) => format!("dispatch {}", task.inner()),
                None => "idle".into(),
            });
            next
        }
        fn ticked(&mut self, running: &TaskRef<Self>) -> Tick {
            self.events.push(format!("tick {}", running.inner()));
            Tick::Reschedule
        }
        fn remove(&mut self, _: &TaskRef<Self>) -> Option<TaskRef<Self>> {
            None
        }
    }

    #[test]
    fn the_scheduler_has_the_name_of_its_policy() {
        assert_eq!(Adapter::<Diary>::scheduler_name(), "diary");
    }

    #[test]
    fn the_whole_life_of_a_queue() {
        let mut s = Adapter::<Diary>::new();
        let main = Arc::new(Task::new(0));
        s.add_task(Arc::new(Task::new(1))); // gc
        s.add_task(Arc::new(Task::new(2)));
        s.put_prev_task(main.clone(), false); // main yields without ever being picked
        let gc = s.pick_next_task().unwrap();
        assert!(s.task_tick(&gc));
        s.put_prev_task(gc, true); // preempted
        let two = s.pick_next_task().unwrap();
        s.put_prev_task(two, false); // yields
        assert_eq!(*s.pick_next_task().unwrap().inner(), 0);
        let gc = s.pick_next_task().unwrap(); // main blocks
        s.put_prev_task(main, true); // woken, with a request to reschedule
        drop(gc);
        s.pick_next_task(); // gc exits, 2 runs
        s.pick_next_task(); // 2 exits, main runs
        s.pick_next_task(); // main blocks, nobody is left
        s.pick_next_task(); // the idle task asks again: nobody has left
        let expected = [
            "spawned 1",
            "spawned 2",
            "Woken 0",
            "dispatch 1",
            "tick 1",
            "Preempted 1",
            "dispatch 2",
            "Yielded 2",
            "dispatch 0",
            "left",
            "dispatch 1",
            "Woken 0",
            "left",
            "dispatch 2",
            "left",
            "dispatch 0",
            "left",
            "idle",
            "idle",
        ];
        assert_eq!(s.policy().events, expected);
    }
}
