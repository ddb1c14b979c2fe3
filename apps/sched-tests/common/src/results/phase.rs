//! The figures of a phase of an application, task by task and as a whole.

use alloc::{string::String, vec::Vec};

use sched_tests_results::{Account, COUNTED};

use super::srpt_average_ns;
use crate::{events::Logs, trace::Timeline, work};

/// The setting of a run of an application, the same in each of its phases.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The name of the application.
    pub app: &'a str,
    /// The name of the architecture.
    pub arch: &'a str,
    /// The number of CPUs.
    pub smp: usize,
    /// The name of the policy.
    pub sched: &'a str,
    /// The unit of time: `icount` or `real`.
    pub timing: &'a str,
    /// The divisor of the workload's counts.
    pub scale: u64,
}

/// The question of an application. It decides which figures Jain's index is about, and whether a yield
/// has a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// When is each task done? Jain's index is about the ends.
    Ends,
    /// How is the CPU shared within a window from the start of the phase? Jain's index is
    /// about the time on a CPU in that window.
    Shares {
        /// The length of the window, in nanoseconds.
        window_ns: u64,
    },
    /// What does a yield cost, where each comes after a loop? Jain's index is about the
    /// ends.
    YieldCost {
        /// The rounds of the loop before each yield.
        rounds: u64,
    },
}

impl Question {
    /// Returns the length of the window, if the question is about one.
    pub fn window_ns(self) -> Option<u64> {
        match self {
            Self::Shares { window_ns } => Some(window_ns),
            _ => None,
        }
    }
}

/// One run of the workload.
#[derive(Clone, Debug)]
pub struct Phase {
    /// `run`, or under PBG `measure` and `replay`.
    pub name: &'static str,
    /// The tasks in the order of submission.
    pub tasks: Vec<TaskResult>,
    /// Switches with a task of the workload at either end.
    pub context_switches: u64,
    /// The question of the application.
    pub question: Question,
    /// The phase of the timer tick at which the workload started, in thousandths of the tick's
    /// period, if that was chosen.
    pub tick_phase: Option<u64>,
    /// Where the CPU time went, if it is known.
    pub account: Option<Account>,
    /// True if main held handles of tasks that had ended.
    pub holds_handles: bool,
    /// Each switch of its tasks, if that was kept.
    pub events: Logs,
    /// True if the runner found all results and figures right.
    pub pass: bool,
}

impl Default for Phase {
    /// Makes a phase without tasks, figures and a verdict.
    fn default() -> Self {
        Self {
            name: "run",
            tasks: Vec::new(),
            context_switches: 0,
            question: Question::Ends,
            tick_phase: None,
            account: None,
            holds_handles: false,
            events: Logs::default(),
            pass: false,
        }
    }
}

impl Phase {
    /// Returns the average turnaround, rounded down.
    pub fn avg_turnaround_ns(&self) -> u64 {
        let sum: u128 = self
            .tasks
            .iter()
            .map(|t| u128::from(t.turnaround_ns()))
            .sum();
        (sum / self.tasks.len().max(1) as u128) as u64
    }

    /// Returns the longest turnaround.
    pub fn max_turnaround_ns(&self) -> u64 {
        self.tasks
            .iter()
            .map(TaskResult::turnaround_ns)
            .max()
            .unwrap_or(0)
    }

    /// Returns the time from the start of the phase to the last end, which is the time of the
    /// [account](Self::account). The phase starts when the first task is about to be submitted.
    pub fn makespan_ns(&self) -> u64 {
        self.tasks.iter().map(|t| t.finish_ns).max().unwrap_or(0)
    }

    /// Returns the average turnaround of these tasks on `cpus` CPUs by [`srpt_average_ns`].
    pub fn srpt_bound_ns(&self, cpus: usize) -> u64 {
        let jobs: Vec<_> = self.tasks.iter().map(|t| (t.submit_ns, t.run_ns)).collect();
        srpt_average_ns(&jobs, cpus)
    }

    /// Returns Jain's fairness index, to six decimals.
    pub fn jain(&self) -> f64 {
        jain(self.tasks.iter().map(|t| match self.question {
            Question::Shares { .. } => t.run_in_window_ns.unwrap_or(0),
            _ => t.finish_ns,
        }))
    }

    /// Returns the makespan without the loops, for each yield, to three decimals. It includes the
    /// yield, its context switch, the call around the loop, and a share of all else, such as ticks.
    ///
    /// Returns `None` unless that is the question. Also returns `None` in real time, because a loop
    /// has a known price in instructions only, and on several CPUs, because their times overlap.
    pub fn ns_per_yield(&self, setting: &Setting) -> Option<f64> {
        let Question::YieldCost { rounds } = self.question else {
            return None;
        };
        let yields: u64 = self.tasks.iter().map(|t| t.yields).sum();
        if setting.timing != COUNTED || setting.smp != 1 || yields == 0 {
            return None;
        }
        let loops_ns = yields * work::instructions(rounds);
        let rest_ns = self.makespan_ns().checked_sub(loops_ns)?;
        let thousandths = (rest_ns * 1_000 + yields / 2) / yields;
        Some(thousandths as f64 / 1e3)
    }
}

/// The figures of one task in one phase. Points in time count from the start of the phase.
#[derive(Clone, Debug)]
pub struct TaskResult {
    /// The task's name.
    pub name: String,
    /// The time at which the task was about to be spawned. For a late arrival, the time at which it
    /// was due.
    pub submit_ns: u64,
    /// The time at which it first got a CPU.
    pub first_run_ns: u64,
    /// The time at which its work was done.
    pub finish_ns: u64,
    /// The time for which it was on a CPU until then.
    pub run_ns: u64,
    /// The part of that time in the window, if there is one.
    pub run_in_window_ns: Option<u64>,
    /// The number of times that it got a CPU from another task until then.
    pub dispatches: u64,
    /// The number of its yields.
    pub yields: u64,
    /// The number of groups of work that it finished, if that was left to the task.
    pub groups: Option<u64>,
    /// True if its computation came out right and its figures can be true.
    pub ok: bool,
    /// The times on a CPU and the blocked times, if they were traced.
    pub timeline: Option<Timeline>,
}

impl TaskResult {
    /// Returns the time from submission to the end.
    pub fn turnaround_ns(&self) -> u64 {
        self.finish_ns.saturating_sub(self.submit_ns)
    }
}

/// Jain's index (Σx)² / (n·Σx²), to six decimals: 1 when all are equal, 1/n when
/// one has everything. 1 if there is nothing to share.
fn jain(values: impl Iterator<Item = u64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    let sum: f64 = values.clone().map(|x| x as f64).sum();
    let squares: f64 = values.map(|x| x as f64 * x as f64).sum();
    if squares == 0.0 {
        return 1.0;
    }
    // `core` has no `round`; the index is never negative.
    (sum * sum / (n * squares) * 1e6 + 0.5) as u64 as f64 / 1e6
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const SETTING: Setting = Setting {
        app: "realtime",
        arch: "x86_64",
        smp: 1,
        sched: "pbg",
        timing: "icount",
        scale: 1,
    };

    /// Two tasks that do not wait for each other.
    pub fn phase() -> Phase {
        let task = |name: &str, submit_ns, finish_ns, run_ns| TaskResult {
            name: name.into(),
            submit_ns,
            first_run_ns: submit_ns,
            finish_ns,
            run_ns,
            run_in_window_ns: None,
            dispatches: 2,
            yields: 7,
            groups: None,
            ok: true,
            timeline: None,
        };
        Phase {
            name: "replay",
            tasks: [
                task("long", 0, 3_000, 2_000),
                task("short1", 10, 1_000, 500),
            ]
            .into(),
            context_switches: 9,
            pass: true,
            ..Phase::default()
        }
    }

    #[test]
    fn a_yield_costs_what_is_left_of_the_makespan() {
        let mut phase = phase();
        assert_eq!(phase.ns_per_yield(&SETTING), None);
        phase.question = Question::YieldCost { rounds: 10 };
        let loops_ns = 14 * work::instructions(10);
        phase.tasks[0].finish_ns = loops_ns + 1_000;
        phase.tasks[1].finish_ns = loops_ns;
        // 1000 / 14
        assert_eq!(phase.ns_per_yield(&SETTING), Some(71.429));
    }

    #[test]
    fn a_yield_has_no_price_where_loops_have_none() {
        let mut phase = phase();
        phase.question = Question::YieldCost { rounds: 10 };
        phase.tasks[0].finish_ns = 1_000_000;
        let real = Setting {
            timing: "real",
            ..SETTING
        };
        let two_cpus = Setting { smp: 2, ..SETTING };
        assert!(phase.ns_per_yield(&SETTING).is_some());
        assert_eq!(phase.ns_per_yield(&real), None);
        assert_eq!(phase.ns_per_yield(&two_cpus), None);
        phase.question = Question::YieldCost { rounds: 1_000_000 };
        assert_eq!(phase.ns_per_yield(&SETTING), None, "less than the loops");
        phase.tasks.clear();
        assert_eq!(phase.ns_per_yield(&SETTING), None, "no yields");
    }

    #[test]
    fn jain_is_1_for_equals_and_1_over_n_for_a_monopoly() {
        assert_eq!(jain([5, 5, 5, 5].into_iter()), 1.0);
        assert_eq!(jain([5, 0, 0, 0].into_iter()), 0.25);
        assert_eq!(jain([0, 0].into_iter()), 1.0);
        assert_eq!(jain([u64::MAX, u64::MAX].into_iter()), 1.0);
        assert_eq!(jain([1, 2].into_iter()), 0.9);
    }
}
