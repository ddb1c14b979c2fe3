//! From figures to text: the result lines, the table for people, the totals.
//!
//! Pure functions; times are whole nanoseconds. What stands in the lines is said by
//! [`sched_tests_results`], which tools read them with.
//!
//! | part | of |
//! |---|---|
//! | `phase` | the figures of a phase and of its tasks, and what follows from them |
//! | `report` | what became of a profile |
//! | `lines` | the result lines, for programs |
//! | `table` | the table, for people |
//! | `srpt` | the bound that an average is held against |
//! | `numbers` | how people read a time and a ratio |

mod lines;
mod numbers;
mod phase;
mod report;
mod srpt;
mod table;

pub use lines::{context, cost_line, event_lines, pbg_line, run_line, task_line, trace_lines};
pub use phase::{Phase, Question, Setting, TaskResult};
pub use report::{Fate, Replay, Report};
pub use sched_tests_results::{Account, ResultLine};
pub use srpt::srpt_average_ns;
pub use table::table;
