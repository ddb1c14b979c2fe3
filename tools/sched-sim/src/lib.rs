//! Replays a recording under the real code of every policy, on 1 to 64 CPUs, in virtual time.
//!
//! | module | content |
//! |---|---|
//! | [`workload`] | a program, task by task |
//! | [`recorded`] | the workload of a recording |
//! | [`polls`] | the tasks that wait by polling, told by runs that differ |
//! | [`waits`] | the waits of tasks for each other |
//! | [`programs`] | a workload as programs of the model |
//! | [`policies`] | every policy of the list and of the registry |
//! | [`costs`] | the cost of a yield under each policy |
//! | [`play`] | the run of a workload under a policy |
//! | [`trace`] | the stays of tasks on CPUs in such a run |
//! | [`calibrate`] | a recording without the time of its own scheduler |
//! | [`vary`] | a workload with random changes |
//! | [`whatif`] | a workload with changes that the user asks for |
//! | [`bound`] | the least possible average turnaround |
//! | [`aim`] | the figures that an order can be made for |
//! | [`orders`] | orders of tasks by rules |
//! | [`search`] | the search for a better order |
//! | [`time`] | nanoseconds, and the counts that policies read |
//!
//! A run is a function of its arguments: two runs on two machines give the same bytes.
#![forbid(unsafe_code)]

pub mod aim;
pub mod bound;
pub mod calibrate;
pub mod costs;
pub mod orders;
pub mod play;
pub mod policies;
pub mod polls;
pub mod programs;
pub mod recorded;
pub mod search;
pub mod time;
pub mod trace;
pub mod vary;
pub mod waits;
pub mod whatif;
pub mod workload;
