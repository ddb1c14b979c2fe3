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
pub mod tests;
