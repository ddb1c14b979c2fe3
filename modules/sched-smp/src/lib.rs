//! A layer around any policy that keeps several CPUs busy: none idles beside a ready task.
//!
//! `axtask` gives each CPU a run queue, deals tasks out in turn, and that is all: a CPU whose queue
//! is empty sleeps until its tick, whatever waits elsewhere. A [`Balanced`] is a policy's scheduler
//! that does something about it, for every policy alike:
//!
//!  1. **Who idles says so.** A CPU whose pick finds nobody is *hungry*, and asks the CPU with most
//!     tasks waiting for one.
//!  2. **The owner hands over.** No CPU touches the queue of another. Who is asked takes a task out
//!     itself, at its next tick, which the interrupt that comes with the request makes come at
//!     once, and posts it to who asked; if it has none that may run there, it passes the request
//!     on to the next of those that nobody has asked.
//!  3. **Of the tasks that wait, the one that would run next here** and may run there is handed
//!     over: so that several queues come as near as they can to one that all CPUs share.
//!  4. **A spawn or wake that comes to a busy CPU's queue while another one is hungry** is posted
//!     there, if the task may run there; one that comes to the queue of an idle CPU stays, and
//!     that CPU is interrupted. One interrupt for each, and none for a CPU that has one under way.
//!  5. **Requests and posts are levels,** not edges: what an interrupt is lost for is found at the
//!     next tick of who was to get it, and an interrupt that comes twice finds nothing.
//!
//!  6. **Turns.** A CPU in whose queue fewer wait than in another's is hungry, too, from its tick
//!     on, and asks nobody: who has more waiting sees it at its own tick and hands one over. Where
//!     the numbers are one apart at last, it is in turn that CPUs have the longer queue, so that
//!     all tasks get on alike, as in one queue. Whoever idles comes first.
//!  7. **A task that comes to the queue of a CPU on which it may not run is sent on,** to one that
//!     idles and may have it, or else to the one of those that may with fewest waiting. `axtask` chooses
//!     a queue for a wake before it sees whether the task is blocked: another wake may come
//!     first, the task change its affinity and block again, and the first wake then puts it where it
//!     was allowed before. Any number may be on the way to a CPU, which takes them in at its next
//!     tick, or pick, and is interrupted for that.
//!
//! AGE: a task that is handed over has waited, and is no wake: the next policy is told
//! [`HandedOver`](sched_core::event::Return::HandedOver), and keeps what the task has of its wait. A
//! policy takes a task out only once the request is this CPU's to answer
//! ([`Policy::give`](sched_core::event::Policy::give)), so that no task comes back and has lost its place.
//!
//! GUEST: a task that is handed over and does not run at once stays until it has run there, for 128
//! ticks and 16 for each that waited before it at most; until then that CPU is not hungry for another. Else a task that waits could go
//! from queue to queue and run in none. And no longer: it would be tied to whom it shares that CPU
//! with, as a task that yields often to one that does not. So puts and picks are looked at
//! while a guest waits, as a put is for who is WANTED.
//!
//! IN FLIGHT: a task that was put back is in the queue and still on its CPU until that CPU's switch
//! is over. What a queue's owner gives away it gives at a tick, by when the switch before is over;
//! and a task that is woken or spawned is on no CPU. So nobody is posted who is still on a CPU.
//!
//! WANTED: who runs may give its CPU to a task that may run there only, and wait beside one that
//! idles. So while others are hungry and only such tasks wait, a put of who runs is looked at: if
//! somebody idles who may have it, the CPU interrupts itself, and hands it over when it has been left.
//! If nobody may, whoever comes next is WANTED: who runs may be allowed more CPUs by the time that it
//! gives way. A put of who was not picked, as `main` at first, is looked at in any case.
//!
//! STAYS: on riscv64 a task that was preempted runs next where it was, as the trap has saved which
//! CPU that is ([`SharedSource::PREEMPTED_STAY`]): who yields or blocks may be handed over, and who is
//! preempted waits for its own CPU, and has whoever comes next be WANTED. A policy that preempts much leaves others idle for that there.
//!
//! HUNGRY: whoever clears a CPU's bit, and finds that it was set, owes it a task and is the only
//! one to post one; who is hungry and finds its bit cleared waits for it. So a place for one task
//! is enough.
//!
//! SEEN: a CPU sets its bit before it looks how many tasks wait elsewhere, and who puts a task into
//! a busy CPU's queue counts it there before it looks for bits once more, all in one order
//! (`SeqCst`). So one of the two sees the other. That it idles, and is not only short of tasks, it
//! says before that, in the same order.
//!
//! A policy says whom it gives away ([`Policy::give`](sched_core::event::Policy::give)); under one that
//! gives nobody, rules 2, 3 and 6 do nothing, and spawns and wakes are balanced all the same.
//!
//! **Bound.** On machines whose interrupts arrive, under a policy that gives, a CPU idles beside a
//! task that waits and may run there for as long as one interrupt takes for each CPU that is asked,
//! and one for the answer: cpus + 1 of them at most, and one more for a task that is sent on. If they
//! are lost, a tick each.
//! **Interrupts:** one for each spawn or wake at most, by rule 7 two, and for each time that somebody
//! is WANTED; one for each CPU that is asked, when a CPU begins to idle, and one for the answer. By rule 6
//! one a tick at most of a CPU with a shorter queue, and none where numbers are equal.
//! [`Shared::interrupts`] counts them. Who is asked may have nobody but tasks that may run there only, as `gc`: that is found
//! out by asking. How long a task waits is the policy's bound for
//! several CPUs, which counts the tasks of all of them. A task that is
//! handed over runs at once or is a GUEST, so it waits in one other queue at most before it runs.
//!
//! A CPU takes part from its first pick or tick on, after it was connected: until then nobody knows
//! of its queue.
//!
//! **What it needs.** The machine: how many CPUs there are, which one this is, how to interrupt
//! another and where a task may run: a [`Machine`], connected once ([`Shared::connect`]). Until
//! then, and with one CPU, all is as without the layer.
//!
//! **Cost.** A yield pays for knowing who runs: a store and a comparison in the put, and the same
//! in the pick, which policies that hear of departures ([`Tracks::Departures`](sched_core::event::Tracks::Departures)) pay in any case.
//! Yields beside a GUEST that has not run go out of line: in a queue in turn, one for each that waits.
//! So do those between tasks that may run there only, while others idle. All else is on the way of
//! spawns, wakes, ticks and idling; a spawn or wake asks the machine once more where the task may run, for
//! rule 7. No loop is longer than the number of CPUs, but for the search of
//! [`Policy::give`](sched_core::event::Policy::give) and those who were sent here. Nothing allocates.
//!
//! The owner handing over rather than the thief taking, and requests as levels, are as in the
//! work-requesting of Cilk's descendants (Acar, Charguéraud and Rainey, "Scheduling parallel
//! programs by work stealing with private deques", PPoPP 2013); that nobody idles beside a ready
//! task is work conservation as Lozi et al. miss it in Linux (EuroSys 2016).

#![cfg_attr(not(any(test, feature = "model")), no_std)]

extern crate alloc;

#[cfg(all(test, loom))]
mod interleavings;
mod layer;
mod shared;
#[cfg(feature = "model")]
mod simulated;
#[cfg(test)]
mod tests;

pub use layer::{Balanced, OnSeveralCpus};
#[cfg(feature = "model")]
pub use shared::SharedPerThread;
#[cfg(all(feature = "model", feature = "preempted_stay"))]
pub use shared::SharedWherePreemptedStay;
pub use shared::{MAX_CPUS, Machine, SHARED, Shared, SharedSource, SystemShared};
#[cfg(feature = "model")]
pub use simulated::{machine as simulated_machine, run_balanced};
