//! The facts about a program that advice rests on.

use super::{
    evidence::{Boot, Differs},
    rules::Row,
};

/// The figure that policies are compared by.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Average turnaround, in ms.
    Turnaround,
    /// Average turnaround of the tasks that end by themselves, among others that do not.
    OwnWork { own: Vec<String> },
    /// The largest share of the CPUs that a task gets, in %.
    Shares { tasks: usize },
}

/// All facts about a program.
pub struct Advice {
    pub program: String,
    pub arch: String,
    pub cpus: usize,
    pub phases: usize,
    pub question: Question,
    /// In the order of tables.
    pub rows: Vec<Row>,
    /// The tasks whose work depends on the policy.
    pub differing: Vec<Differs>,
    pub boots: Vec<Boot>,
    pub has_cooperative: bool,
    /// True if tasks poll, and it is not known for what.
    pub has_unknown_polls: bool,
    /// The gain of an order of `make plan`, if a plan may be taken.
    pub order: Option<BetterOrder>,
    /// The longest run interval of a task in a kernel that does not preempt, in ms.
    pub stretch_ms: f64,
    /// The shortest and the longest computing time of a task, in ms.
    pub lengths_ms: [f64; 2],
}

/// The gain of another order of the tasks than that of PBG's plan, as parts of the plan's average.
#[derive(Clone, Debug, PartialEq)]
pub struct BetterOrder {
    /// The best of the rules that `make plan` tries, by its name in the table, and its gain.
    pub best: (&'static str, f64),
    /// The plan's average, in ms.
    pub planned_ms: f64,
    /// No order gains more.
    pub most: f64,
}
