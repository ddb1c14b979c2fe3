//! From figures to text: the result lines, the table for people, the totals.
//!
//! Pure functions; times are whole nanoseconds from the start of the phase.
//!
//! The lines are a contract with the programs that read them: one `SCHED-TASK`
//! line for each task and phase, one `SCHED-RUN` line for each phase, one `SCHED-PBG`
//! line for each replay and each profile that was refused, and from the app `cost` one
//! `SCHED-COST` line for each figure; JSON after the first blank. Keys may be added,
//! never renamed.
//!
//! An image built with `TRACE=y` prints a `SCHED-TRACE` line for each task and phase,
//! too: `run_ns` is the time that the task had on a CPU in each bin of `bin_ns` since
//! the start of the phase, a list that ends with the last bin that has any; its sum
//! is the task's `run_ns`. Its `SCHED-RUN` lines have `"traced":true`.

mod account;
mod srpt;
mod table;

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use axsched_ext::pbg::{self, Status};
use serde::Serialize;

pub use account::{Account, Unmetered};
pub use srpt::srpt_average_ns;
pub use table::table;
use table::{ms, ratio};

use crate::{trace::Timeline, work};

/// What holds for a whole run of an application.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The application.
    pub app: &'a str,
    /// The architecture.
    pub arch: &'a str,
    /// The number of CPUs.
    pub smp: usize,
    /// The policy.
    pub sched: &'a str,
    /// What the clock counts.
    pub timing: &'a str,
    /// What the workload's counts were divided by.
    pub scale: u64,
}

/// The figures of one task in one phase.
#[derive(Clone, Debug)]
pub struct TaskResult {
    /// The task's name.
    pub name: String,
    /// When it was about to be spawned, or for a late arrival when that was due.
    pub submit_ns: u64,
    /// When it first got a CPU.
    pub first_run_ns: u64,
    /// When it was done.
    pub finish_ns: u64,
    /// How long it was on a CPU.
    pub run_ns: u64,
    /// How much of that lies in the window, where there is one.
    pub run_in_window_ns: Option<u64>,
    /// How often it got a CPU from somebody else.
    pub dispatches: u64,
    /// How often it yielded.
    pub yields: u64,
    /// How many groups of its work it finished, if that was left to it.
    pub groups: Option<u64>,
    /// Whether its computation and its own figures came out right.
    pub ok: bool,
    /// When it was on a CPU, if that was traced.
    pub timeline: Option<Timeline>,
}

impl TaskResult {
    /// From submission to the end.
    pub fn turnaround_ns(&self) -> u64 {
        self.finish_ns.saturating_sub(self.submit_ns)
    }
}

/// What an application asks: it decides what Jain's index is taken over, and which
/// figure stands beside the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// When is each task done? Jain's index is about the ends.
    Ends,
    /// When is this one done? Jain's index is about the ends.
    EndOf(&'static str),
    /// How is the CPU shared within so many nanoseconds of the start? Jain's index
    /// is about the time on a CPU in that window.
    Shares {
        /// The length of the window.
        window_ns: u64,
    },
    /// What does a yield cost, where each comes after a loop of so many rounds?
    /// Jain's index is about the ends.
    YieldCost {
        /// The length of the loop.
        rounds: u64,
    },
}

impl Question {
    /// The length of the window, if the question is about one.
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
    /// What the application asks.
    pub question: Question,
    /// At which phase of the timer tick it started, in thousandths of the tick's period,
    /// if that was chosen.
    pub tick_phase: Option<u64>,
    /// Where the CPU time went, if it is known.
    pub account: Option<Account>,
    /// Main held handles of tasks that had ended.
    pub holds_handles: bool,
    /// The verdict of the one who ran it.
    pub pass: bool,
}

impl Default for Phase {
    /// A phase without tasks, figures and a verdict.
    fn default() -> Self {
        Self {
            name: "run",
            tasks: Vec::new(),
            context_switches: 0,
            question: Question::Ends,
            tick_phase: None,
            account: None,
            holds_handles: false,
            pass: false,
        }
    }
}

impl Phase {
    /// The average turnaround, rounded down.
    pub fn avg_turnaround_ns(&self) -> u64 {
        let sum: u128 = self
            .tasks
            .iter()
            .map(|t| u128::from(t.turnaround_ns()))
            .sum();
        (sum / self.tasks.len().max(1) as u128) as u64
    }

    /// The longest turnaround.
    pub fn max_turnaround_ns(&self) -> u64 {
        self.tasks
            .iter()
            .map(TaskResult::turnaround_ns)
            .max()
            .unwrap_or(0)
    }

    /// From the start of the phase, when the first task is about to be submitted, to the last
    /// end: the time that the [account](Self::account) is of.
    pub fn makespan_ns(&self) -> u64 {
        self.tasks.iter().map(|t| t.finish_ns).max().unwrap_or(0)
    }

    /// What [`srpt_average_ns`] says about these tasks on `cpus` CPUs.
    pub fn srpt_bound_ns(&self, cpus: usize) -> u64 {
        let jobs: Vec<_> = self.tasks.iter().map(|t| (t.submit_ns, t.run_ns)).collect();
        srpt_average_ns(&jobs, cpus)
    }

    /// Jain's fairness index, to six decimals.
    pub fn jain(&self) -> f64 {
        jain(self.tasks.iter().map(|t| match self.question {
            Question::Shares { .. } => t.run_in_window_ns.unwrap_or(0),
            _ => t.finish_ns,
        }))
    }

    /// What is left for each yield when the loops are taken off the makespan, to
    /// three decimals: the yield and its context switch, the call around the loop,
    /// and a share of all else, such as ticks. `None` unless that is the question,
    /// and where it has no answer: in real time, since a loop has a known price in
    /// instructions only, and on several CPUs, whose times overlap.
    pub fn ns_per_yield(&self, setting: &Setting) -> Option<f64> {
        let Question::YieldCost { rounds } = self.question else {
            return None;
        };
        let yields: u64 = self.tasks.iter().map(|t| t.yields).sum();
        if setting.timing != "icount" || setting.smp != 1 || yields == 0 {
            return None;
        }
        let loops_ns = yields * work::instructions(rounds);
        let rest_ns = self.makespan_ns().checked_sub(loops_ns)?;
        let thousandths = (rest_ns * 1_000 + yields / 2) / yields;
        Some(thousandths as f64 / 1e3)
    }
}

/// Jain's index (Σx)² / (n·Σx²), to six decimals: 1 when all are equal, 1/n when
/// one has everything. 1 if there is nothing to share.
pub fn jain(values: impl Iterator<Item = u64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    let sum: f64 = values.clone().map(|x| x as f64).sum();
    let squares: f64 = values.map(|x| x as f64 * x as f64).sum();
    if squares == 0.0 {
        return 1.0;
    }
    // `core` has no `round`; the index is never negative.
    (sum * sum / (n * squares) * 1e6 + 0.5) as u64 as f64 / 1e6
}

/// The `SCHED-TASK` line of one task.
pub fn task_line(setting: &Setting, phase: &Phase, task: &TaskResult) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        task: &'a str,
        submit_ns: u64,
        first_run_ns: u64,
        finish_ns: u64,
        turnaround_ns: u64,
        run_ns: u64,
        dispatches: u64,
        yields: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        groups: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        run_in_window_ns: Option<u64>,
    }
    phase_line(
        "SCHED-TASK",
        setting,
        phase.name,
        &Line {
            task: &task.name,
            submit_ns: task.submit_ns,
            first_run_ns: task.first_run_ns,
            finish_ns: task.finish_ns,
            turnaround_ns: task.turnaround_ns(),
            run_ns: task.run_ns,
            dispatches: task.dispatches,
            yields: task.yields,
            groups: task.groups,
            run_in_window_ns: task.run_in_window_ns,
        },
    )
}

/// The `SCHED-TRACE` lines of a phase: one for each task that was traced.
pub fn trace_lines(setting: &Setting, phase: &Phase) -> impl Iterator<Item = String> {
    #[derive(Serialize)]
    struct Line<'a> {
        task: &'a str,
        bin_ns: u64,
        run_ns: &'a [u64],
        blocked_ns: &'a [u64],
    }
    phase.tasks.iter().filter_map(move |task| {
        let timeline = task.timeline.as_ref()?;
        Some(phase_line(
            "SCHED-TRACE",
            setting,
            phase.name,
            &Line {
                task: &task.name,
                bin_ns: timeline.bin_ns,
                run_ns: &timeline.run_ns,
                blocked_ns: &timeline.blocked_ns,
            },
        ))
    })
}

/// The `SCHED-RUN` line of a phase.
pub fn run_line(setting: &Setting, phase: &Phase) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        timing: &'a str,
        scale: u64,
        tasks: usize,
        avg_turnaround_ns: u64,
        max_turnaround_ns: u64,
        makespan_ns: u64,
        context_switches: u64,
        srpt_bound_ns: u64,
        jain: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ns_per_yield: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tick_phase: Option<u64>,
        #[serde(flatten)]
        account: Option<Parts>,
        #[serde(skip_serializing_if = "Option::is_none")]
        holds_handles: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        traced: Option<bool>,
        pass: bool,
    }
    #[derive(Serialize)]
    struct Parts {
        tasks_run_ns: u64,
        main_run_ns: u64,
        gc_run_ns: u64,
        rest_run_ns: u64,
        idle_ns: u64,
    }
    let parts = |account: Account| Parts {
        tasks_run_ns: account.tasks_run_ns,
        main_run_ns: account.main_run_ns,
        gc_run_ns: account.gc_run_ns,
        rest_run_ns: account.rest_run_ns,
        idle_ns: account.idle_ns,
    };
    phase_line(
        "SCHED-RUN",
        setting,
        phase.name,
        &Line {
            timing: setting.timing,
            scale: setting.scale,
            tasks: phase.tasks.len(),
            avg_turnaround_ns: phase.avg_turnaround_ns(),
            max_turnaround_ns: phase.max_turnaround_ns(),
            makespan_ns: phase.makespan_ns(),
            context_switches: phase.context_switches,
            srpt_bound_ns: phase.srpt_bound_ns(setting.smp),
            jain: phase.jain(),
            ns_per_yield: phase.ns_per_yield(setting),
            tick_phase: phase.tick_phase,
            account: phase.account.map(parts),
            holds_handles: phase.holds_handles.then_some(true),
            traced: phase
                .tasks
                .iter()
                .any(|t| t.timeline.is_some())
                .then_some(true),
            pass: phase.pass,
        },
    )
}

/// The `SCHED-COST` line: what one of the yields costs with so many tasks that do
/// nothing else, to one decimal. Under counted time a nanosecond is an instruction,
/// and the key says so.
pub fn cost_line(setting: &Setting, phase: &str, tasks: usize, ns_per_yield: f64) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        timing: &'a str,
        scale: u64,
        tasks: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions_per_yield: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ns_per_yield: Option<f64>,
    }
    // `core` has no `round`; a cost is never negative.
    let cost = (ns_per_yield * 10.0 + 0.5) as u64 as f64 / 10.0;
    let counted = setting.timing == "icount";
    phase_line(
        "SCHED-COST",
        setting,
        phase,
        &Line {
            timing: setting.timing,
            scale: setting.scale,
            tasks,
            instructions_per_yield: counted.then_some(cost),
            ns_per_yield: (!counted).then_some(cost),
        },
    )
}

/// What became of a profile.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where it came from.
    pub from: &'static str,
    /// How it was followed, or why it was refused.
    pub fate: Fate,
}

/// How a profile was followed, or why it was not.
#[derive(Clone, Debug)]
pub enum Fate {
    /// How.
    Followed(Replay),
    /// The reason.
    Refused(String),
}

/// How a profile was followed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// By the scheduler.
    pub status: Status,
    /// The average turnaround of the run that the profile is of.
    pub measured_ns: u64,
    /// That of the replay.
    pub replayed_ns: u64,
}

/// A replay is called slower than the measured run if its average turnaround is longer by
/// more than one in so many: as PBG itself has it.
const SLOWER_BY: u64 = pbg::BEHIND_BEYOND;

impl Replay {
    /// Whether it was slower than what was measured.
    pub fn is_slower(&self) -> bool {
        u128::from(self.replayed_ns) * u128::from(SLOWER_BY)
            > u128::from(self.measured_ns) * u128::from(SLOWER_BY + 1)
    }

    /// A word to people where the plan was none to follow.
    pub fn remark(&self) -> Option<String> {
        if !self.is_slower() && !self.status.behind {
            return None;
        }
        let plan = if self.status.dropped {
            "gave its plan up"
        } else {
            "followed its plan to the end"
        };
        Some(format!(
            "PBG was behind the measured run and {plan}: average turnaround {} ms, measured {} ({} times as long).\n",
            ms(self.replayed_ns),
            ms(self.measured_ns),
            ratio(self.replayed_ns, self.measured_ns),
        ))
    }
}

/// The `SCHED-PBG` line of a report.
pub fn pbg_line(setting: &Setting, report: &Report) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        app: &'a str,
        arch: &'a str,
        from: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<&'a str>,
    }
    let (replay, refused) = match &report.fate {
        Fate::Followed(replay) => (Some(replay), None),
        Fate::Refused(why) => (None, Some(&**why)),
    };
    let head = line(
        "SCHED-PBG",
        &Line {
            app: setting.app,
            arch: setting.arch,
            from: report.from,
            refused,
        },
    );
    let Some(replay) = replay else { return head };
    let status = replay.status.to_string();
    format!(
        r#"{},{},"measured_avg_turnaround_ns":{},"slower":{}}}"#,
        head.trim_end_matches('}'),
        status.trim_matches(['{', '}']),
        replay.measured_ns,
        replay.is_slower(),
    )
}

/// A line of a phase: the keys that all of these begin with, then `fields`.
fn phase_line(tag: &str, setting: &Setting, phase: &str, fields: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, F> {
        app: &'a str,
        arch: &'a str,
        smp: usize,
        sched: &'a str,
        phase: &'a str,
        #[serde(flatten)]
        fields: &'a F,
    }
    line(
        tag,
        &Line {
            app: setting.app,
            arch: setting.arch,
            smp: setting.smp,
            sched: setting.sched,
            phase,
            fields,
        },
    )
}

fn line(tag: &str, fields: &impl Serialize) -> String {
    // Strings, integers and finite floats under fixed keys: nothing can fail.
    let json = serde_json::to_string(fields).expect("result fields serialise");
    format!("{tag} {json}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting {
        app: "realtime",
        arch: "x86_64",
        smp: 1,
        sched: "pbg",
        timing: "icount",
        scale: 1,
    };

    #[test]
    fn pbg_lines() {
        let line = |fate| pbg_line(&SETTING, &Report { from: "disk", fate });
        let head = r#"SCHED-PBG {"app":"realtime","arch":"x86_64","from":"disk","#;
        for (replayed_ns, slower) in [(1_050, false), (1_051, true)] {
            let replay = replay_of(replayed_ns);
            let status = replay.status.to_string();
            let keys = status.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            let own = format!(r#","measured_avg_turnaround_ns":1000,"slower":{slower}}}"#);
            let line = line(Fate::Followed(replay.clone()));
            assert_eq!(line, format!("{head}{keys}{own}"));
        }
        assert_eq!(
            line(Fate::Refused("found `a\"b`".into())),
            r#"SCHED-PBG {"app":"realtime","arch":"x86_64","from":"disk","refused":"found `a\"b`"}"#
        );
    }

    fn replay_of(replayed_ns: u64) -> Replay {
        Replay {
            status: Status::default(),
            measured_ns: 1_000,
            replayed_ns,
        }
    }

    #[test]
    fn people_are_told_of_a_replay_that_is_slower() {
        assert_eq!(replay_of(1_050).remark(), None);
        let told = |replay: &Replay| replay.remark().unwrap();
        let mut replay = replay_of(1_051_000);
        replay.measured_ns = 1_000_000;
        let figures = "average turnaround 1.051 ms, measured 1.000 (1.0510 times as long).\n";
        let to_the_end = "PBG was behind the measured run and followed its plan to the end";
        assert_eq!(told(&replay), format!("{to_the_end}: {figures}"));
        replay.status.dropped = true;
        assert!(told(&replay).contains("and gave its plan up: "));
        // It made up for it.
        replay.replayed_ns = 900_000;
        assert_eq!(replay.remark(), None);
        replay.status.behind = true;
        assert!(told(&replay).contains("(0.9000 times as long)"));
    }

    fn phase() -> Phase {
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
    fn task_lines_are_as_documented() {
        let phase = phase();
        assert_eq!(
            task_line(&SETTING, &phase, &phase.tasks[1]),
            r#"SCHED-TASK {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","task":"short1","submit_ns":10,"first_run_ns":10,"finish_ns":1000,"turnaround_ns":990,"run_ns":500,"dispatches":2,"yields":7}"#
        );
    }

    #[test]
    fn run_lines_are_as_documented() {
        // The bound: short1 runs from 10 to 510, long is done at 2500.
        assert_eq!(
            run_line(&SETTING, &phase()),
            r#"SCHED-RUN {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","timing":"icount","scale":1,"tasks":2,"avg_turnaround_ns":1995,"max_turnaround_ns":3000,"makespan_ns":3000,"context_switches":9,"srpt_bound_ns":1500,"jain":0.8,"pass":true}"#
        );
    }

    #[test]
    fn the_account_stands_in_the_run_line() {
        let mut phase = phase();
        phase.tick_phase = Some(125);
        phase.holds_handles = true;
        phase.account = Some(Account {
            tasks_run_ns: 2_500,
            main_run_ns: 1,
            gc_run_ns: 2,
            rest_run_ns: 3,
            idle_ns: 494,
            available_ns: 3_000,
            cpus: 1,
        });
        let line = run_line(&SETTING, &phase);
        let end = r#","tick_phase":125,"tasks_run_ns":2500,"main_run_ns":1,"gc_run_ns":2,"rest_run_ns":3,"idle_ns":494,"holds_handles":true,"pass":true}"#;
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn trace_lines_are_as_documented() {
        let mut phase = phase();
        assert_eq!(trace_lines(&SETTING, &phase).count(), 0);
        phase.tasks[1].timeline = Some(Timeline {
            bin_ns: 400,
            run_ns: [0, 390, 110].into(),
            blocked_ns: [0, 0, 20].into(),
        });
        let lines: Vec<_> = trace_lines(&SETTING, &phase).collect();
        assert_eq!(
            lines,
            [
                r#"SCHED-TRACE {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","task":"short1","bin_ns":400,"run_ns":[0,390,110],"blocked_ns":[0,0,20]}"#
            ]
        );
        let line = run_line(&SETTING, &phase);
        assert!(line.ends_with(r#","traced":true,"pass":true}"#), "{line}");
    }

    #[test]
    fn what_is_asked_for_comes_with_it() {
        let mut phase = phase();
        phase.question = Question::Shares { window_ns: 1_000 };
        for (task, run_ns) in phase.tasks.iter_mut().zip([200, 100]) {
            task.groups = Some(7);
            task.run_in_window_ns = Some(run_ns);
        }
        let line = task_line(&SETTING, &phase, &phase.tasks[0]);
        assert!(
            line.ends_with(r#""yields":7,"groups":7,"run_in_window_ns":200}"#),
            "{line}"
        );
        // Over 200 and 100, not over the times run or the ends.
        let line = run_line(&SETTING, &phase);
        assert!(line.ends_with(r#""jain":0.9,"pass":true}"#), "{line}");
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
        let line = run_line(&SETTING, &phase);
        assert!(
            line.ends_with(r#","ns_per_yield":71.429,"pass":true}"#),
            "{line}"
        );
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
    fn cost_lines_are_as_documented() {
        assert_eq!(
            cost_line(&SETTING, "idle", 4, 201.96),
            r#"SCHED-COST {"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"idle","timing":"icount","scale":1,"tasks":4,"instructions_per_yield":202.0}"#
        );
        let real = Setting {
            timing: "real",
            ..SETTING
        };
        let line = cost_line(&real, "idle", 4, 0.04);
        assert!(line.ends_with(r#""tasks":4,"ns_per_yield":0.0}"#), "{line}");
    }

    #[test]
    fn a_phase_without_tasks_has_a_line_too() {
        let empty = Phase {
            tasks: [].into(),
            pass: false,
            ..phase()
        };
        let line = run_line(&SETTING, &empty);
        assert!(
            line.ends_with(r#""srpt_bound_ns":0,"jain":1.0,"pass":false}"#),
            "{line}"
        );
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
