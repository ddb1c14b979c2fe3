//! Result lines: from what a guest printed to phases with their tasks.
//!
//! The contract ([`sched_tests_results`]) defines the lines. Here lines are found, put together
//! and checked against one another. `SCHED-TASK` and `SCHED-RUN` lines make a cell; a `SCHED-PBG`
//! line may stand among them. A `SCHED-TRACE` line is no figure and belongs to no cell.
//!
//! A cell may have been booted at several phases of the timer tick, or several times in real
//! time, where no two boots are the same. An empty line separates the lines of two boots. Boots
//! are in the order of their tick phases, or of time.

use std::{collections::HashSet, fmt::Display};

use anyhow::{Result, bail};
use sched_tests_results::{
    Context, Kind, PbgLine, ResultLine, RunLine, TaskLine, TickPhase, TraceLine,
};

/// The value of `timing` where time is the host's.
pub const REAL: &str = "real";

/// One run of a workload.
#[derive(Clone, Debug)]
pub struct Phase {
    pub tasks: Vec<TaskLine>,
    pub run: RunLine,
}

impl Phase {
    /// Returns its lines as a guest prints them.
    pub fn lines(&self) -> String {
        let tasks = self.tasks.iter().map(ResultLine::to_line);
        let lines = tasks.chain([self.run.to_line()]);
        lines.map(|line| line + "\n").collect()
    }

    /// Returns `run`, `measure` or `replay`.
    pub fn name(&self) -> &str {
        &self.run.context.phase
    }
}

/// All result lines of one boot: at least one phase, all of one cell.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub phases: Vec<Phase>,
    /// A line for each replay of a PBG profile, and for each profile that was refused, if such
    /// lines were kept.
    pub profiles: Vec<PbgLine>,
}

impl Outcome {
    /// Returns the totals of the last phase, which also say what holds for all phases.
    pub fn last(&self) -> &RunLine {
        &self
            .phases
            .last()
            .expect("parse() refuses an outcome without phases")
            .run
    }

    /// Returns the names of its phases, as `measure replay`.
    pub fn phase_names(&self) -> String {
        let names = self.phases.iter().map(Phase::name);
        names.collect::<Vec<_>>().join(" ")
    }

    /// Returns the point in a tick at which its phases started, if that was set.
    pub fn tick_phase(&self) -> Option<TickPhase> {
        self.last().tick_phase
    }

    /// Returns true if its time is the host's, which differs from boot to boot.
    pub fn is_real(&self) -> bool {
        self.last().timing == REAL
    }

    /// Returns true if all tasks followed PBG's plan to its end: every planned task came, no other
    /// task came, no task diverged, and the plan was not given up.
    pub fn is_followed(&self) -> bool {
        let whole = |line: &PbgLine| match line {
            PbgLine::Refused(_) => false,
            PbgLine::Followed(f) => {
                (f.matched, f.missing, f.unplanned, f.diverged) == (f.planned, 0, 0, 0)
                    && !f.dropped
            }
        };
        !self.profiles.is_empty() && self.profiles.iter().all(whole)
    }
}

/// Returns the lines of a console that are figures.
pub fn result_lines(console: &[String]) -> Vec<String> {
    let is_result = |line: &&String| split(line).is_some();
    console.iter().filter(is_result).cloned().collect()
}

/// Returns the lines of a console that are figures or say how PBG used a profile.
pub fn result_and_profile_lines(console: &[String]) -> Vec<String> {
    let is_kept =
        |line: &&String| split(line).is_some() || matches!(Kind::split(line), Some((Kind::Pbg, _)));
    console.iter().filter(is_kept).cloned().collect()
}

/// Returns the kind and the JSON of a line, if it holds figures of a cell.
pub fn split(line: &str) -> Option<(Kind, &str)> {
    Kind::split(line).filter(|(kind, _)| matches!(kind, Kind::Task | Kind::Run))
}

/// Separates a console into figures, and its other result lines with their numbers. In the text of
/// the figures each other line is empty, so that line numbers are those of the console.
pub fn separate(console: &str) -> (String, Vec<(usize, Kind, &str)>) {
    let (mut figures, mut others) = (String::new(), Vec::new());
    for (number, line) in (1..).zip(console.lines()) {
        if split(line).is_some() {
            figures += line;
        } else if let Some((kind, json)) = Kind::split(line) {
            others.push((number, kind, json));
        }
        figures.push('\n');
    }
    (figures, others)
}

/// Reads the lines of one boot and checks that they belong together.
pub fn parse(text: &str) -> Result<Outcome> {
    parse_boot(&numbered(text))
}

/// Reads the lines of a cell, which has at least one boot. All boots belong to the same cell and
/// have the same phases. In counted time each has a tick phase of its own.
pub fn parse_boots(text: &str) -> Result<Vec<Outcome>> {
    let lines = numbered(text);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for lines in lines
        .split(|(_, text)| text.trim().is_empty())
        .filter(|lines| !lines.is_empty())
    {
        let next = parse_boot(lines)?;
        if let (Some(first), Some(before)) = (outcomes.first(), outcomes.last()) {
            check_order(lines[0].0, first, before, &next)?;
        }
        outcomes.push(next);
    }
    if outcomes.is_empty() {
        outcomes.push(parse_boot(&lines)?); // an error, as there are no lines
    }
    Ok(outcomes)
}

/// Refuses a boot that cannot stand after `before` in a cell.
fn check_order(line: usize, first: &Outcome, before: &Outcome, next: &Outcome) -> Result<()> {
    same_cell(line, first.last(), next.last())?;
    same(line, "phases", &first.phase_names(), &next.phase_names())?;
    match (before.tick_phase(), next.tick_phase()) {
        (None, None) if first.is_real() => Ok(()),
        (Some(before), Some(next)) if before < next => Ok(()),
        (Some(before), next) => {
            let found = next.map_or("none".into(), |next| next.to_string());
            refuse(line, format_args!("a tick_phase beyond {before}"), found)
        }
        (None, _) => refuse(line, "one boot, as it has no tick_phase", "another"),
    }
}

fn numbered(text: &str) -> Vec<(usize, &str)> {
    (1..).zip(text.lines()).collect()
}

fn parse_boot(lines: &[(usize, &str)]) -> Result<Outcome> {
    let mut tasks: Vec<(usize, TaskLine)> = Vec::new();
    let mut phases: Vec<Phase> = Vec::new();
    let mut runs: Vec<(usize, RunLine)> = Vec::new();
    let mut profiles = Vec::new();
    let mut last = 1;
    for &(line, text) in lines.iter().filter(|(_, text)| !text.trim().is_empty()) {
        last = line;
        match Kind::split(text) {
            Some((Kind::Task, text)) => tasks.push((line, json(line, text)?)),
            Some((Kind::Run, text)) => runs.push((line, json(line, text)?)),
            Some((Kind::Pbg, text)) => profiles.push(json(line, text)?),
            _ => return refuse(line, "SCHED-TASK {…} or SCHED-RUN {…}", quote(text)),
        }
    }
    for (line, run) in runs {
        let name = &run.context.phase;
        if phases.iter().any(|phase| phase.name() == name) {
            let found = format_args!("another for phase `{name}`");
            return refuse(line, "one SCHED-RUN line per phase", found);
        }
        let first = phases.first().map_or(&run, |p| &p.run);
        same_cell(line, first, &run)?;
        let tick_phase = |run: &RunLine| run.tick_phase.map_or("none".into(), |p| p.to_string());
        same(line, "tick_phase", &tick_phase(first), &tick_phase(&run))?;
        let (own, others) = tasks
            .into_iter()
            .partition(|(_, t)| t.context.phase == *name);
        tasks = others;
        phases.push(phase(line, run, own)?);
    }
    if let Some((line, task)) = tasks.first() {
        let found = format_args!("none for phase `{}`", task.context.phase);
        return refuse(*line, "a SCHED-RUN line for each phase", found);
    }
    if phases.is_empty() {
        return refuse(last, "a SCHED-RUN line", "none");
    }
    Ok(Outcome { phases, profiles })
}

/// A phase, and the trace of each of its tasks in their order.
pub type Traced = (Phase, Vec<TraceLine>);

/// Reads the console of one boot that was traced.
pub fn parse_traced(console: &str) -> Result<Vec<Traced>> {
    let (figures, others) = separate(console);
    let mut traces: Vec<(usize, TraceLine)> = Vec::new();
    for (line, kind, text) in others {
        if kind == Kind::Trace {
            traces.push((line, json(line, text)?));
        }
    }
    let mut phases = Vec::new();
    for phase in parse(&figures)?.phases {
        let mut own = Vec::new();
        for task in &phase.tasks {
            let name = phase.name();
            let is_its = |t: &TraceLine| t.context.phase == name && t.task == task.task;
            let Some(i) = traces.iter().position(|(_, trace)| is_its(trace)) else {
                let expected = format_args!(
                    "a SCHED-TRACE line for task `{}` in phase `{name}` (`make run TRACE=y` prints them)",
                    task.task
                );
                return refuse(console.lines().count().max(1), expected, "none");
            };
            let (line, trace) = traces.remove(i);
            check_trace(line, &trace, task)?;
            own.push(trace);
        }
        phases.push((phase, own));
    }
    if let Some((line, trace)) = traces.first() {
        let (task, phase) = (&trace.task, &trace.context.phase);
        let found = format_args!("another for task `{task}` in phase `{phase}`");
        return refuse(*line, "one SCHED-TRACE line per task and phase", found);
    }
    Ok(phases)
}

/// Refuses a trace that is not of this task, or whose bins lack some of the task's time.
fn check_trace(line: usize, trace: &TraceLine, task: &TaskLine) -> Result<()> {
    same_context(line, &task.context, &trace.context)?;
    if trace.bin_ns == 0 {
        return refuse(line, "bins wider than 0 ns", 0);
    }
    let sum: u128 = trace.run_ns.iter().copied().map(u128::from).sum();
    if sum != u128::from(task.run_ns) {
        let expected = format_args!("bins with {} ns, as the task's run_ns says", task.run_ns);
        return refuse(line, expected, sum);
    }
    let bins = trace.run_ns.len().max(trace.blocked_ns.len()) as u64;
    if bins.checked_mul(trace.bin_ns).is_none() {
        return refuse(
            line,
            "bins of less than 2^64 ns",
            format_args!("{bins} bins"),
        );
    }
    Ok(())
}

/// Returns the phase of a `SCHED-RUN` line with its own tasks.
fn phase(line: usize, run: RunLine, tasks: Vec<(usize, TaskLine)>) -> Result<Phase> {
    let mut names = HashSet::new();
    for (line, task) in &tasks {
        same_context(*line, &run.context, &task.context)?;
        if !names.insert(task.task.clone()) {
            let found = format_args!("another for task `{}`", task.task);
            return refuse(*line, "one line per task and phase", found);
        }
    }
    if tasks.len() != run.tasks {
        let (tasks, phase) = (run.tasks, &run.context.phase);
        let expected = format_args!("{tasks} SCHED-TASK lines for phase `{phase}`");
        return refuse(line, expected, names.len());
    }
    let tasks = tasks.into_iter().map(|(_, task)| task).collect();
    Ok(Phase { tasks, run })
}

fn json<T: ResultLine>(line: usize, text: &str) -> Result<T> {
    T::from_json(text).or_else(|why| {
        let expected = format_args!("the keys of a result line ({why})");
        refuse(line, expected, quote(text))
    })
}

/// Refuses two phases that are not of the same cell in the same setting.
fn same_cell(line: usize, first: &RunLine, run: &RunLine) -> Result<()> {
    same_context(line, &first.context, &run.context)?;
    same(line, "timing", &first.timing, &run.timing)?;
    same(line, "scale", &first.scale, &run.scale)
}

/// Refuses two lines that are not of the same cell; their phases may differ.
fn same_context(line: usize, first: &Context, next: &Context) -> Result<()> {
    same(line, "app", &first.app, &next.app)?;
    same(line, "arch", &first.arch, &next.arch)?;
    same(line, "sched", &first.sched, &next.sched)?;
    same(line, "smp", &first.smp, &next.smp)
}

fn same<T: PartialEq + Display>(line: usize, key: &str, expected: &T, found: &T) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let [expected, found] = [expected, found].map(|value| format!("`{value}`"));
    refuse(line, format_args!("{key} {expected}"), found)
}

/// Returns the error of a line, with its number counted from 1.
fn refuse<T>(line: usize, expected: impl Display, found: impl Display) -> Result<T> {
    bail!("{line}: expected {expected}, found {found}")
}

/// Returns the beginning of a line, for an error that must stay one line itself.
fn quote(text: &str) -> String {
    const ENOUGH: usize = 60;
    let visible = |c: char| if c.is_control() { '·' } else { c };
    let start: String = text.chars().take(ENOUGH).map(visible).collect();
    let more = match text.chars().nth(ENOUGH) {
        Some(_) => "…",
        None => "",
    };
    format!("`{start}{more}`")
}

#[cfg(test)]
pub mod tests {
    use sched_tests_results::{Followed, Refused};

    use super::*;
    use crate::testing::{assert_golden, assert_has};

    fn context(app: &str, sched: &str, phase: &str) -> Context {
        Context {
            app: app.into(),
            arch: "x86_64".into(),
            smp: 1,
            sched: sched.into(),
            phase: phase.into(),
        }
    }

    /// Returns the lines of a phase with this average turnaround: `long` has twice that, `short`
    /// none.
    fn sample_phase(context: &Context, avg: u64) -> (Vec<TaskLine>, RunLine) {
        let task = |(name, turnaround): (&str, u64)| TaskLine {
            context: context.clone(),
            task: name.into(),
            finish_ns: turnaround,
            turnaround_ns: turnaround,
            run_ns: turnaround,
            dispatches: 3,
            yields: 50,
            ..TaskLine::default()
        };
        let run = RunLine {
            context: context.clone(),
            timing: "icount".into(),
            scale: 1,
            tasks: 2,
            avg_turnaround_ns: avg,
            max_turnaround_ns: avg,
            makespan_ns: avg,
            context_switches: 7,
            srpt_bound_ns: avg / 2,
            jain: 0.5,
            pass: true,
            ..RunLine::default()
        };
        ([("long", avg * 2), ("short", 0)].map(task).into(), run)
    }

    fn text_of((tasks, run): (Vec<TaskLine>, RunLine)) -> String {
        let lines = tasks.iter().map(ResultLine::to_line);
        lines
            .chain([run.to_line()])
            .map(|line| line + "\n")
            .collect()
    }

    /// Returns a cell with one phase for each of the given average turnarounds.
    pub fn sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
        let phase = |(phase, avg): &(&str, u64)| sample_phase(&context(app, sched, phase), *avg);
        phases.iter().map(phase).map(text_of).collect()
    }

    /// Returns one boot of a cell at a tick phase, with an account that closes: 1 % is main's.
    pub fn sample_at(tick_phase: u16, app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
        let phase = |(phase, avg): &(&str, u64)| {
            let (tasks, run) = sample_phase(&context(app, sched, phase), *avg);
            let main = avg / 100;
            let run = RunLine {
                tick_phase: Some(tick_phase.try_into().unwrap()),
                tasks_run_ns: Some(avg - main),
                main_run_ns: Some(main),
                gc_run_ns: Some(0),
                rest_run_ns: Some(0),
                idle_ns: Some(0),
                ..run
            };
            (tasks, run)
        };
        phases.iter().map(phase).map(text_of).collect()
    }

    /// Returns the errors of texts, each after what is wrong with it.
    fn errors<T>(read: fn(&str) -> Result<T>, wrong: &[(&str, String)]) -> String {
        let error = |(what, text): &(&str, String)| match read(text) {
            Ok(_) => format!("{what}: no error\n"),
            Err(error) => format!("{what}: {error}\n"),
        };
        wrong.iter().map(error).collect()
    }

    #[test]
    fn boots_at_several_tick_phases_are_one_cell() {
        let at = |tick_phase, avg| sample_at(tick_phase, "realtime", "rr", &[("run", avg)]);
        let both = |one: &String, other: &String| format!("{one}\n{other}");
        let (first, second) = (at(0, 100), at(125, 300));
        let cell = parse_boots(&both(&first, &second)).unwrap();
        let found: Vec<_> = cell
            .iter()
            .map(|boot| (boot.tick_phase().map(u16::from), boot.last().makespan_ns))
            .collect();
        assert_eq!(found, [(Some(0), 100), (Some(125), 300)]);
        assert_eq!(cell[1].last().main_run_ns, Some(3));

        let old = sample("realtime", "rr", &[("run", 100)]);
        let wrong = [
            ("the same tick phase", both(&second, &second)),
            ("a second boot without one", both(&first, &old)),
            ("two boots without one", both(&old, &old)),
            (
                "another app",
                both(&first, &sample_at(9, "yield", "rr", &[("run", 100)])),
            ),
            (
                "other phases",
                both(&first, &sample_at(9, "realtime", "rr", &[("replay", 100)])),
            ),
            ("no boot", String::new()),
            (
                "a line of the second boot",
                both(&first, &second.replace("SCHED-RUN", "SCHED-RAN")),
            ),
            (
                "a tick phase beyond the tick",
                first.replace(r#""tick_phase":0"#, r#""tick_phase":1000"#),
            ),
        ];
        assert_golden("record-boots.txt", errors(parse_boots, &wrong));
    }

    #[test]
    fn boots_in_real_time_say_whether_the_plan_was_followed() {
        let boot = |avg| sample("realtime", "pbg", &[("run", avg)]).replace("icount", "real");
        let followed = |change: &dyn Fn(&mut Followed)| {
            let mut followed = Followed {
                planned: 5,
                matched: 5,
                ..Followed::default()
            };
            change(&mut followed);
            boot(100) + &PbgLine::Followed(followed).to_line() + "\n"
        };
        let refused = boot(100) + &PbgLine::Refused(Refused::default()).to_line() + "\n";
        let boots = [
            followed(&|_| {}),
            followed(&|f| (f.matched, f.missing) = (4, 1)),
            followed(&|f| (f.unplanned, f.diverged) = (1, 1)),
            followed(&|f| (f.demoted, f.diverged) = (1, 1)),
            followed(&|f| f.dropped = true),
            refused,
            boot(100),
        ];
        let cell = parse_boots(&boots.join("\n")).unwrap();
        let found: Vec<_> = cell.iter().map(Outcome::is_followed).collect();
        assert_eq!(found, [true, false, false, false, false, false, false]);
        // Not a boot beside one that has a tick phase.
        let at = sample_at(0, "realtime", "pbg", &[("run", 1)]).replace("icount", "real");
        let fails = parse_boots(&format!("{}\n{at}", boot(1))).unwrap_err();
        assert_has(fails.to_string(), "expected one boot");
    }

    /// Returns the console of a traced [`sample`]: `long` is on the CPU all the time.
    pub fn traced_sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
        let mut console = "SeaBIOS\r\n".to_owned();
        for (phase, avg) in phases {
            for (task, bins) in [("long", vec![50; *avg as usize / 25]), ("short", vec![])] {
                let line = TraceLine {
                    context: context(app, sched, phase),
                    task: task.into(),
                    bin_ns: 50,
                    run_ns: bins,
                    blocked_ns: vec![],
                };
                console += &(line.to_line() + "\r\n");
            }
        }
        console + &sample(app, sched, phases).replace('\n', "\r\n")
    }

    #[test]
    fn traces_come_with_their_tasks() {
        let console = traced_sample("realtime", "pbg", &[("measure", 200), ("replay", 100)]);
        let phases = parse_traced(&console).unwrap();
        let found = phases.iter().map(|(phase, traces)| {
            let bins: Vec<_> = traces.iter().map(|t| t.run_ns.len()).collect();
            (phase.name(), traces[0].task.as_str(), bins)
        });
        let expected = [
            ("measure", "long", vec![8, 0]),
            ("replay", "long", vec![4, 0]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn wrong_traces_are_refused_with_their_line() {
        let good = traced_sample("realtime", "rr", &[("run", 100)]);
        let third = good.lines().nth(2).unwrap();
        let wrong = [
            ("less time", good.replace("50,50]", "50,49]")),
            (
                "no trace of a task",
                good.replacen("SCHED-TRACE", "SCHED-TRICK", 1),
            ),
            ("two traces of a task", format!("{good}{third}\n")),
            ("another machine", good.replacen("x86_64", "riscv64", 1)),
            (
                "empty bins",
                good.replacen("\"bin_ns\":50", "\"bin_ns\":0", 1),
            ),
            (
                "a trace lacks a key",
                good.replacen("\"bin_ns\":50,", "", 1),
            ),
            (
                "a run lacks a key",
                good.replace("\"makespan_ns\":100,", ""),
            ),
        ];
        assert_golden("record-traces.txt", errors(parse_traced, &wrong));
    }

    #[test]
    fn phases_come_with_their_tasks_and_added_keys_are_let_through() {
        let text = sample("realtime", "pbg", &[("measure", 200), ("replay", 100)])
            .replace(r#""yields":50"#, r#""yields":50,"new":{"x":[1]}"#)
            .replace(r#""pass""#, r#""ns_per_yield":162.5,"pass""#);
        let outcome = parse(&text).unwrap();
        assert_eq!(outcome.phases.len(), 2);
        let replay = &outcome.phases[1];
        assert_eq!(replay.name(), "replay");
        assert_eq!(replay.run.avg_turnaround_ns, 100);
        assert_eq!(outcome.last().ns_per_yield, Some(162.5));
        let names: Vec<_> = replay.tasks.iter().map(|t| t.task.as_str()).collect();
        assert_eq!(names, ["long", "short"]);
        assert_eq!(replay.tasks[0].groups, None);
        let text = text.replace(r#""new""#, r#""groups":11,"new""#);
        assert_eq!(parse(&text).unwrap().phases[0].tasks[1].groups, Some(11));
    }

    #[test]
    fn wrong_figures_are_refused_with_their_line() {
        let good = sample("realtime", "rr", &[("run", 100)]);
        let lines: Vec<_> = good.lines().collect();
        let wrong = [
            ("another line", format!("{good}\nwhat is this\n")),
            (
                "a key is missing",
                good.replace(r#""makespan_ns":100,"#, ""),
            ),
            ("nothing", String::new()),
            ("no run", lines[..2].join("\n")),
            ("a task is missing", lines[1..].join("\n")),
            ("another machine", good.replacen("x86_64", "riscv64", 1)),
            ("a task twice", good.replace("short", "long")),
            ("a run twice", format!("{good}{}", lines[2])),
        ];
        assert_golden("record-figures.txt", errors(parse, &wrong));
    }

    #[test]
    fn result_lines_are_found_among_others() {
        let console = [
            "boot",
            "SCHED-TASK {}",
            " SCHED-RUN {}",
            "SCHED-PBG {}",
            "SCHED-RUN {}",
        ]
        .map(String::from);
        assert_eq!(result_lines(&console), ["SCHED-TASK {}", "SCHED-RUN {}"]);
        assert_eq!(
            result_and_profile_lines(&console),
            ["SCHED-TASK {}", "SCHED-PBG {}", "SCHED-RUN {}"]
        );
    }
}
