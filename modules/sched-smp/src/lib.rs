//! A layer around any policy that keeps several CPUs busy: no CPU idles beside a ready task.
//!
//! `axtask` gives each CPU a run queue and deals tasks out in rotation. A CPU whose queue is empty
//! sleeps until its tick, even if tasks wait in other queues. A [`WorkSharing`] is a policy's
//! scheduler that shares the work, in the same way for every policy. PBG alone does it in its own
//! way, with one queue for all CPUs (`pbg::SmpPbgScheduler`):
//!
//!  1. **An idle CPU asks for work.** A CPU whose pick finds no task *requests* one, and asks the
//!     CPU with the most waiting tasks for one.
//!  2. **The owner hands over.** No CPU touches the queue of another. The asked CPU dequeues a task
//!     at its next tick, which the request's IPI triggers at once, and posts it to the requester.
//!     If it has no task that may run there, it passes the request on to a CPU that was not asked
//!     yet.
//!  3. **The task that would run next here** and may run there is handed over, so that several
//!     queues come close to one queue that all CPUs share.
//!  4. **A spawn or wake at a busy CPU while another CPU requests a task** is posted there, if the
//!     task may run there. One at an idle CPU stays, and that CPU gets an IPI. Each is one IPI, and
//!     none for a CPU that has one pending.
//!  5. **Requests and posts are level-triggered.** If an IPI is lost, the target finds them at its
//!     next tick. Until then no further IPI goes to that CPU, because one counts as pending. An
//!     IPI that comes twice finds nothing, and counts as a tick.
//!  6. **Balance.** A CPU whose queue is shorter than another's also requests a task, from its tick
//!     on, and asks no CPU. A CPU with a longer queue sees the request at its own tick and hands a
//!     task over. If the lengths cannot be equal, they differ by one, and the extra task moves
//!     from CPU to CPU. So all tasks progress alike, as in one queue. Idle CPUs come first.
//!  7. **A spawned or woken task at a CPU on which it may not run is sent on.** It goes to an idle
//!     CPU that may run it, or else to the allowed CPU with the fewest waiting tasks. A task that
//!     waits already is not looked at again. If its affinity changes then, it runs where it is
//!     until it blocks, unless an allowed CPU is handed it first. `axtask` chooses a queue for a
//!     wake before it sees whether the task is blocked. Another wake may come first, and the task
//!     may change its affinity and block again. The first wake then uses the old affinity. Any
//!     number of tasks may be on the way to a CPU, which takes them at its next tick or pick, and
//!     gets an IPI for that.
//!
//! AGE: a task that is handed over has waited, and is no wake. The next policy is told
//! [`HandedOver`](sched_core::event::EnqueueReason::HandedOver), and keeps the task's record of its
//! wait. A CPU first takes over the request. Only then does its policy dequeue the task
//! ([`Policy::migrate_out`](sched_core::event::Policy::migrate_out)). If another CPU was faster,
//! the task was never dequeued and keeps its place.
//!
//! RETAINED: a task that is handed over and does not run at once is retained until it has run
//! there. That lasts for at most 128 ticks, and 16 more for each task that waited before it. Until
//! then that CPU requests no other task. Without this limit a task that waits could go from queue
//! to queue and run in none. A longer limit would pin the task to a CPU whose current task rarely
//! yields. So puts and picks take the slow path while a RETAINED task waits, as a put does for
//! HANDOFF.
//!
//! IN FLIGHT: a task that was put back is in the queue and still on its CPU until that CPU's switch
//! is over. A queue's owner gives tasks away at a tick, and the switch before is over by then. A
//! task that is woken or spawned is on no CPU. So no posted task is still on a CPU.
//!
//! HANDOFF: the running task may yield to a pinned task. Then it may wait here while another CPU
//! idles. So while other CPUs request tasks and only such tasks wait, a put of the running task
//! takes the slow path. If an idle CPU may run it, this CPU interrupts itself, and hands the task
//! over when it has been left. If none may, the next task is watched, since the running task may be
//! allowed more CPUs by the time that it gives way. A put of a task that was not picked, as `main`
//! at first, takes the slow path in any case.
//!
//! STAYS: on riscv64 a preempted task runs next on the same CPU, since the trap has saved that CPU
//! ([`SmpStateSource::PREEMPTED_STAY`]). A task that yields or blocks may be handed over. A
//! preempted task waits for its own CPU, and the next task is watched for HANDOFF. So there a
//! policy that preempts much leaves other CPUs idle.
//!
//! REQUEST: the CPU that clears another CPU's bit, and finds that it was set, owes that CPU a task
//! and is the only one to post one. A requesting CPU that finds its bit cleared waits for the task.
//! So a place for one task is enough.
//!
//! SEEN: a CPU sets its bit before it looks how many tasks wait in other queues. A CPU that
//! enqueues a task at a busy CPU counts it there before it looks for bits again. All these accesses
//! are in one order (`SeqCst`), so one of the two sees the other. A CPU that requests because it
//! idles first publishes that it idles, in the same order. A CPU that requests for a shorter queue
//! publishes nothing more.
//!
//! The policy chooses the tasks that it gives away
//! ([`Policy::migrate_out`](sched_core::event::Policy::migrate_out)). Under a policy that gives
//! none, rules 2, 3 and 6 do nothing. Spawns and wakes are shared all the same.
//!
//! **Bound.** It holds on machines whose IPIs arrive, under a policy that gives tasks away. A CPU
//! idles beside a waiting task that may run there for at most the time of cpus + 1 IPIs. That is
//! one for each CPU that is asked, and one for the answer. A task that is sent on needs one more. A
//! lost IPI costs a tick instead.
//!
//! **IPIs:** one for each spawn or wake at most, two by rule 7, and one for each HANDOFF. When a
//! CPU begins to idle, one for each CPU that is asked, and one for the answer. By rule 6 at most
//! one a tick for a CPU with a shorter queue, and none where lengths are equal.
//! [`SmpState::interrupts`] counts them. The asked CPU may have only pinned tasks, such as `gc`.
//! The requester cannot see that, so it has to ask.
//!
//! **Waits.** The wait of a task is bounded by the policy's bound for several CPUs, which counts
//! the tasks of all of them. A task that is handed over runs at once or is RETAINED. So it waits in
//! at most one other queue before it runs.
//!
//! A CPU takes part from its first pick or tick after it was connected. Other CPUs do not know of
//! its queue before.
//!
//! **Requirements.** A [`Machine`] tells the number of CPUs and the calling CPU, interrupts another
//! CPU, and tells where a task may run. It is connected once ([`SmpState::connect`]). Until then,
//! and with one CPU, the layer does nothing.
//!
//! **Cost.** A yield pays for tracking the running task: a store and a comparison in the put, and
//! the same in the pick. Policies that hear of departures
//! ([`EventLevel::Departures`](sched_core::event::EventLevel::Departures)) pay that in any case.
//! Yields beside a RETAINED task that has not run take the slow path: in a queue in rotation, one
//! for each task that waits. So do those between pinned tasks while other CPUs idle. The rest is in
//! the paths of spawns, wakes, ticks and idling. A spawn or wake asks the machine once more where
//! the task may run, for rule 7. No loop is longer than the number of CPUs, except for the search
//! of [`Policy::migrate_out`](sched_core::event::Policy::migrate_out) and the tasks that were sent
//! here. Nothing allocates.
//!
//! **Sources.** The owner hands over, the thief does not take, and requests are levels. That is as
//! in the work-requesting of Cilk's descendants (Acar, Charguéraud and Rainey, "Scheduling parallel
//! programs by work stealing with private deques", PPoPP 2013). A machine on which no CPU idles
//! beside a ready task is work-conserving, which Lozi et al. miss in Linux (EuroSys 2016).

#![cfg_attr(not(any(test, feature = "model")), no_std)]

extern crate alloc;

#[cfg(all(test, loom))]
mod interleavings;
mod layer;
#[cfg(feature = "model")]
mod simulated;
mod smp_state;
#[cfg(test)]
mod tests;

pub use layer::{SmpVariant, WorkSharing};
#[cfg(feature = "model")]
pub use simulated::{machine as simulated_machine, run_balanced};
#[cfg(feature = "model")]
pub use smp_state::ThreadSmpState;
#[cfg(all(feature = "model", feature = "preempted_stay"))]
pub use smp_state::ThreadSmpStatePinned;
pub use smp_state::{MAX_CPUS, Machine, SMP_STATE, SmpState, SmpStateSource, SystemSmpState};
