//! Turns the trait's calls into typed events.
//!
//! [`BaseScheduler`] has four verbs for eight events (see its table). The meaning of a
//! `put_prev_task`, and that a task has blocked or exited at all, follows only from the task that
//! was picked last. [`Adapter`] remembers that task, and calls the [`Policy`]:
//!
//! | method | means | from |
//! |---|---|---|
//! | [`spawned`](Policy::spawned) | a new task is ready | `add_task` |
//! | [`enqueue`](Policy::enqueue) ([`Yielded`](EnqueueReason::Yielded)) | the running task gave way | put of the running task |
//! | [`enqueue`](Policy::enqueue) ([`Preempted`](EnqueueReason::Preempted)) | the running task was made to | the same, `preempt` |
//! | [`enqueue`](Policy::enqueue) ([`Woken`](EnqueueReason::Woken)) | a blocked or migrated task is ready | put of another task |
//! | [`enqueue`](Policy::enqueue) ([`HandedOver`](EnqueueReason::HandedOver)) | a task that waited in another CPU's queue waits here | the crate `sched-smp` |
//! | [`current_left`](Policy::current_left) | the running task blocked, exited or migrated away | pick without a put |
//! | [`dispatch`](Policy::dispatch) | the CPU needs a task | pick |
//! | [`ticked`](Policy::ticked) | a timer tick hit a running task | `task_tick` |
//! | [`remove`](Policy::remove) | a ready task is taken out | `remove_task` |
//! | [`migrate_out`](Policy::migrate_out) | a ready task goes to another CPU | the crate `sched-smp` |
//! | [`set_priority`](Policy::set_priority) | a task gets a priority | `set_priority` |
//!
//! The policy chooses how much of this the adapter tracks, [`Policy::EVENTS`]. The rest compiles to
//! nothing.
//!
//! The trait sets two limits. `main` runs first without being picked, so its first return counts as
//! `Woken`. A task that migrates away counts as `current_left` at the next pick on its old queue.

use alloc::sync::Arc;

use crate::base::BaseScheduler;
use crate::task::Task;

/// The reason why a task is ready again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueReason {
    /// It ran, and gave the CPU away by itself.
    Yielded,
    /// It ran, and the CPU was taken from it.
    Preempted,
    /// It did not run: it was blocked, or `axtask` moved it to this queue.
    Woken,
    /// It did not run: it waited in the queue of another CPU, which has [handed it
    /// over](Policy::migrate_out) to this one. It has waited since then, and keeps the record of
    /// its wait: age, due time, level, the rest of a slice.
    HandedOver,
}

/// The decision after a timer tick.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Continue the running task.
    Continue,
    /// Preempt the running task as soon as possible.
    Reschedule,
}

impl Tick {
    /// Returns [`Reschedule`](Tick::Reschedule) if `yes`.
    #[inline]
    pub const fn reschedule_if(yes: bool) -> Self {
        if yes {
            Self::Reschedule
        } else {
            Self::Continue
        }
    }
}

/// The events that the adapter tracks for a policy. Each level includes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLevel {
    /// None: [`enqueue`](Policy::enqueue) is always called with [`EnqueueReason::Woken`] or
    /// [`EnqueueReason::HandedOver`], and [`current_left`](Policy::current_left) is not called.
    None,
    /// The reason of each `enqueue`. [`current_left`](Policy::current_left) is not called.
    Reasons,
    /// Also each [`current_left`](Policy::current_left).
    Departures,
}

/// A scheduling policy: it decides, and the adapter finds out what happened.
///
/// Calls are serialised by the run queue's lock, with interrupts off. No method
/// may allocate, log, or keep a handle of a task that is not ready.
pub trait Policy {
    /// The wrapped task.
    type Inner;
    /// The state of the policy in each task.
    type State;
    /// The name in ArceOS's boot log.
    const NAME: &'static str;
    /// Which events the adapter tracks for this policy.
    const EVENTS: EventLevel;
    /// The initial state: a policy without tasks.
    const NEW: Self;

    /// Adds a new task, which is ready.
    fn spawned(&mut self, task: TaskRef<Self>);
    /// Adds a known task that is ready again. Under [`EventLevel::None`] `why` does not say that it
    /// ran.
    fn enqueue(&mut self, task: TaskRef<Self>, why: EnqueueReason);
    /// Notes that the running task has blocked, exited or migrated. The trait hands out no handle
    /// of it. Called before the [`dispatch`](Policy::dispatch) that it causes, and only under
    /// [`EventLevel::Departures`].
    #[inline]
    fn current_left(&mut self) {}
    /// Takes the task to run now out of the queue.
    fn dispatch(&mut self) -> Option<TaskRef<Self>>;
    /// Handles a timer tick that hit `running`.
    #[inline]
    fn ticked(&mut self, running: &TaskRef<Self>) -> Tick {
        let _ = running;
        Tick::Continue
    }
    /// Takes a ready task out of the queue. Returns `None` if it is not in this queue. It may be
    /// slow.
    fn remove(&mut self, task: &TaskRef<Self>) -> Option<TaskRef<Self>>;
    /// Takes out a ready task for another CPU: the one that would run next here, among those that
    /// `may` accepts. It may be slow. By default it takes none, so that tasks stay where they are.
    ///
    /// It calls `take_request` when it has found that task, and takes it out only if that returns
    /// true. So a task that stays has lost nothing. A policy may try another task after a refusal.
    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        let _ = (may, take_request);
        None
    }
    /// Sets a task's priority. Returns false if the policy has none.
    #[inline]
    fn set_priority(&mut self, task: &TaskRef<Self>, priority: isize) -> bool {
        let _ = (task, priority);
        false
    }
}

/// A predicate on a policy's tasks.
pub type May<'a, P> = dyn Fn(&Task<<P as Policy>::Inner, <P as Policy>::State>) -> bool + 'a;

/// A policy's handle of a task.
pub type TaskRef<P> = Arc<Task<<P as Policy>::Inner, <P as Policy>::State>>;

/// The running task of a queue's CPU: the address of the task that was picked last.
///
/// It is an address, never a handle: a handle of a task that exits would keep the `gc` task
/// spinning. It is compared, never followed, since a task that migrated may be gone. A new task at
/// the address of a dead one cannot be mistaken for it. The pick that follows a death overwrites
/// the address before the new task can come back.
///
/// A task that migrates away leaves without a pick, so its address is still known until its
/// helper's pick. A task that comes here meanwhile at that address counts as having yielded. That
/// is possible only with several CPUs, and harmless to the policies that look. PBG on several CPUs
/// asks the machine which task runs.
pub struct Running {
    /// Null while idle, before the first pick, and after it was forgotten.
    address: *const (),
}

// SAFETY: the pointer is only compared, never followed.
unsafe impl Send for Running {}

impl Running {
    /// The state before the first pick.
    pub const NONE: Self = Self {
        address: core::ptr::null(),
    };

    /// A value that equals no task, for a CPU that idles or runs a task that was never picked.
    pub const UNTRACKED: Self = Self {
        address: core::ptr::dangling(),
    };

    /// Restores the task at this address, from [`address`](Self::address).
    #[inline(always)]
    pub const fn at(address: *const ()) -> Self {
        Self { address }
    }

    /// Returns true if the task was [forgotten](Self::forget) since the last pick.
    #[inline(always)]
    pub fn is_forgotten(&self) -> bool {
        self.address.is_null()
    }

    /// Returns true if a task that was picked is known to run.
    #[inline(always)]
    pub fn is_tracked(&self) -> bool {
        !self.is_forgotten() && !core::ptr::eq(self.address, Self::UNTRACKED.address)
    }

    /// Notes the task that a pick has chosen; `None` is the idle task.
    #[inline(always)]
    pub fn picked<T, S>(&mut self, task: Option<&Arc<Task<T, S>>>) {
        self.address = task.map_or(core::ptr::null(), address);
    }

    /// Notes `task` as the one that was picked last.
    #[inline(always)]
    pub fn set_task<T, S>(&mut self, task: &Arc<Task<T, S>>) {
        self.address = address(task);
    }

    /// Returns true if `task` was picked last.
    #[inline(always)]
    pub fn is<T, S>(&self, task: &Arc<Task<T, S>>) -> bool {
        core::ptr::eq(address(task), self.address)
    }

    /// Returns why `task` comes back. `preempt` counts only for the running task: a waker may ask
    /// for rescheduling, too.
    #[inline(always)]
    pub fn enqueue_reason<T, S>(&self, task: &Arc<Task<T, S>>, preempt: bool) -> EnqueueReason {
        if !self.is(task) {
            EnqueueReason::Woken
        } else if preempt {
            EnqueueReason::Preempted
        } else {
            EnqueueReason::Yielded
        }
    }

    /// Returns the address of the task that was picked last, or null.
    #[inline(always)]
    pub const fn address(&self) -> *const () {
        self.address
    }

    /// Forgets the running task. A task that returns then counts as
    /// [`Woken`](EnqueueReason::Woken), as if it had come from another queue.
    #[inline(always)]
    pub const fn forget(&mut self) {
        *self = Self::NONE;
    }
}

#[inline(always)]
fn address<T, S>(task: &Arc<Task<T, S>>) -> *const () {
    Arc::as_ptr(task).cast()
}

/// A [`BaseScheduler`] that drives a [`Policy`].
pub struct Adapter<P: Policy> {
    policy: P,
    /// The task that was picked last. Under [`EventLevel::Departures`] it is forgotten from a
    /// return to the next pick, so a task that is still known at a pick has left.
    running: Running,
}

impl<P: Policy> Adapter<P> {
    /// Creates an empty scheduler.
    pub const fn new() -> Self {
        Self::with_policy(P::NEW)
    }

    /// Creates a scheduler around a policy that has been set up by hand.
    pub const fn with_policy(policy: P) -> Self {
        Self {
            policy,
            running: Running::NONE,
        }
    }

    /// Returns the name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        P::NAME
    }

    /// Returns the policy inside, for tests that call it without the scheduler around it.
    #[cfg(feature = "std")]
    pub const fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// Returns the policy inside, for tests and statistics.
    pub const fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: Policy> Default for Adapter<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Policy> BaseScheduler for Adapter<P> {
    type SchedItem = TaskRef<P>;

    fn init(&mut self) {}

    #[inline]
    fn add_task(&mut self, task: Self::SchedItem) {
        self.policy.spawned(task);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        // The running task is not ready, though a policy that tracks departures may keep its
        // handle.
        if P::EVENTS == EventLevel::Departures && self.running.is(task) {
            return None;
        }
        self.policy.remove(task)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        if P::EVENTS == EventLevel::Departures && !self.running.address().is_null() {
            self.policy.current_left();
        }
        let next = self.policy.dispatch();
        if P::EVENTS != EventLevel::None {
            self.running.picked(next.as_ref());
        }
        next
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        let why = match P::EVENTS {
            EventLevel::None => EnqueueReason::Woken,
            EventLevel::Reasons | EventLevel::Departures => {
                self.running.enqueue_reason(&prev, preempt)
            }
        };
        if P::EVENTS == EventLevel::Departures && why != EnqueueReason::Woken {
            self.running.forget();
        }
        self.policy.enqueue(prev, why);
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

    /// A policy that records its events, and picks in order of arrival.
    struct Diary {
        events: Vec<String>,
        ready: Vec<Arc<Task<u32, ()>>>,
    }

    impl Policy for Diary {
        type Inner = u32;
        type State = ();
        const NAME: &'static str = "diary";
        const EVENTS: EventLevel = EventLevel::Departures;
        const NEW: Self = Self {
            events: Vec::new(),
            ready: Vec::new(),
        };

        fn spawned(&mut self, task: TaskRef<Self>) {
            self.events.push(format!("spawned {}", task.inner()));
            self.ready.push(task);
        }
        fn enqueue(&mut self, task: TaskRef<Self>, why: EnqueueReason) {
            self.events.push(format!("{why:?} {}", task.inner()));
            self.ready.push(task);
        }
        fn current_left(&mut self) {
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
    fn each_call_becomes_the_event_that_it_means() {
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
        s.pick_next_task(); // main blocks, no task is left
        s.pick_next_task(); // the idle task asks again: no task has left
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
