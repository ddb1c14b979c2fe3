//! Scheduling that a task of the program decides.
//!
//! The scheduler tells an *agent* what happened, in messages. The agent says which task runs on which CPU,
//! in decisions. The agent is a task, so its policy is ordinary code: it may allocate, log, hang and be
//! replaced, and no task is lost.
//!
//! 1. **An enclave** is a set of CPUs and of tasks under one agent ([`Enclave`]). A CPU is in one enclave
//!    at most. All tasks outside run under round robin, on every CPU.
//! 2. **A task joins** at its next put after [`Enclave::delegate`]. Until then it is outside.
//! 3. **Messages** report each change of a task, with the sequence number that its status word has from
//!    then on ([`Kind`]). Each CPU has a ring for each enclave.
//! 4. **No loss is silent.** If a ring is full, the agent is told to rediscover, and finds each ready task
//!    again.
//! 5. **Decisions** wait in a ring for each CPU, which follows them without the agent ([`Agent::commit`],
//!    [`Agent::plan`]). The CPU checks each one when it follows it: the identity, the sequence number, the
//!    state, the enclave and the affinity. A refused decision makes the agent run again, or is told.
//! 6. **The agent runs** when its CPU has no decision and a message waits. A message that wakes
//!    ([`Settings::wakes`]) lets it run before decisions, at most twice in a row, and preempts a delegated
//!    task.
//! 7. **Tasks outside never starve.** On a CPU of an enclave, a task outside runs after each turn of the
//!    agent or of a delegated task, for at most a time slice.
//! 8. **In flight.** A task that was put back may be on its CPU until that CPU's next call of its own. No
//!    other CPU runs it before.
//! 9. **The watchdog** ends the enclave at the first tick at which a task has been ready for longer than the
//!    limit ([`Settings::limit`]). So does the end of the agent. Its tasks go on under round robin. A former
//!    agent that has to be preempted gets slices of one tick.
//! 10. **The fast path** ([`Enclave::set_fast_path`]) calls the same policy within the scheduler, in place
//!     of an agent.
//!
//! **Bound.** With the watchdog, a delegated task waits for at most its limit and a tick until it runs or
//! goes to round robin.
//!
//! **Cost.** A task outside all enclaves pays two comparisons in a yield. No call of a scheduler allocates.
//! A decision costs the same with 1 and with 1,024 tasks. The watchdog and the end of an enclave look at all
//! slots that were ever used, at most [`MAX_TASKS`].
//!
//! **Limits.** A task is dead for the agent when its last handle is gone, which may be late. The agent
//! is pinned to its CPU.
//!
//! **Sources.** Messages, sequence numbers, transactions and enclaves are those of ghOSt (Humphries et al.,
//! SOSP 2021). Delegation to tasks is older: CPU inheritance scheduling (Ford and Susarla, OSDI 1996).
#![cfg_attr(not(any(test, feature = "model")), no_std)]
// The unit tests have no loom; tests/interleavings.rs has.
#![cfg(not(all(test, loom)))]

extern crate alloc;

mod agent;
mod decision;
mod enclave;
mod handshake;
mod host;
mod message;
mod outside;
mod queue;
mod ring;
mod scheduler;
#[cfg(feature = "model")]
mod simulated;
mod status;
mod table;
mod task;

pub use agent::{Agent, Commit, Refused, Stopped, Ticket};
pub use enclave::{Enclave, End, Refusal, Report, Settings};
pub use host::{AgentPolicy, decide, serve};
pub use message::{Kind, Kinds, Message};
pub use outside::Outside;
pub use queue::TaskQueue;
pub use ring::{MAX_DECISIONS, MAX_MESSAGES};
pub use scheduler::{Delegated, DelegatedScheduler, SmpDelegatedScheduler};
#[cfg(feature = "model")]
pub use simulated::simulate;
pub use status::{State, Status, TaskId};
#[cfg(any(test, feature = "model"))]
pub use table::ThreadTable;
pub use table::{MAX_ENCLAVES, MAX_TASKS, SystemTable, TABLE, TableSource};
pub use task::{DelegatedState, DelegatedTask, of};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
