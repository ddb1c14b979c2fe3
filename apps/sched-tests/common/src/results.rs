//! From figures to result lines, and the totals.
//!
//! Pure functions; times are whole nanoseconds. [`sched_tests_results`] documents the lines, reads
//! them for tools, and makes the table for people from them.
//!
//! | part | of |
//! |---|---|
//! | `phase` | the figures of a phase and of its tasks, and what follows from them |
//! | `lines` | the result lines, for programs |
//! | `srpt` | the bound that an average is held against |

mod lines;
mod phase;
mod srpt;

pub use lines::{
    context, cost_line, event_lines, followed_line, phase_lines, refused_line, trace_lines,
};
pub use phase::{Phase, Question, Setting, TaskResult};
pub use sched_tests_results::{Account, ResultLine};
pub use srpt::srpt_average_ns;
