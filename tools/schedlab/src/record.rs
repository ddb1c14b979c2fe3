//! Result lines: from what a guest printed to phases with their tasks.
//!
//! What a line says is the contract's ([`sched_tests_results`]). Here lines are found, put
//! together and checked against one another. `SCHED-TASK` and `SCHED-RUN` lines make a cell;
//! a `SCHED-PBG` line may stand among them, and a `SCHED-TRACE` line is no figure and
//! belongs to none.
//!
//! A cell may have been booted at several phases of the timer tick, or several times in real
//! time, where no two boots are the same. The lines of one boot follow those of another after
//! an empty line: in the order of their tick phases, or of the boots.

use std::{collections::HashSet, fmt};

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
    /// `run`, `measure` or `replay`.
    /// As a guest prints it.
    pub fn lines(&self) -> String {
        let tasks = self.tasks.iter().map(ResultLine::to_line);
        let lines = tasks.chain([self.run.to_line()]);
        lines.map(|line| line + "\n").collect()
    }

    pub fn name(&self) -> &str {
        &self.run.context.phase
    }
}

/// All that one boot had to say: at least one phase, all of one cell.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub phases: Vec<Phase>,
    /// What became of PBG's profile, where that was kept: a line for each replay and each
    /// profile that was refused.
    pub profiles: Vec<PbgLine>,
}

impl Outcome {
    /// What holds for all phases, and the last one's totals.
    pub fn last(&self) -> &RunLine {
        &self
            .phases
            .last()
            .expect("parse() refuses an outcome without phases")
            .run
    }

    /// `measure replay`.
    pub fn phase_names(&self) -> String {
        let names = self.phases.iter().map(Phase::name);
        names.collect::<Vec<_>>().join(" ")
    }

    /// Where in a tick its phases started, if that was set.
    pub fn tick_phase(&self) -> Option<TickPhase> {
        self.last().tick_phase
    }

    /// Whether its time is the host's, and so another in every boot.
    pub fn is_real(&self) -> bool {
        self.last().timing == REAL
    }

    /// Whether PBG's plan was followed by all and to its end: every planned task came, none
    /// that was not planned, none went its own way, and the plan was not given up.
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

/// What was wrong, where.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The number of the line, counted from 1.
    pub line: usize,
    pub expected: String,
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: expected {}, found {}",
            self.line, self.expected, self.found
        )
    }
}

impl std::error::Error for ParseError {}

/// The figures' lines among what a guest printed.
pub fn result_lines(console: &[String]) -> Vec<String> {
    let is_result = |line: &&String| split(line).is_some();
    console.iter().filter(is_result).cloned().collect()
}

/// The same, and what became of profiles.
pub fn result_and_profile_lines(console: &[String]) -> Vec<String> {
    let is_kept =
        |line: &&String| split(line).is_some() || matches!(Kind::split(line), Some((Kind::Pbg, _)));
    console.iter().filter(is_kept).cloned().collect()
}

/// The kind and the JSON of a line with figures of a cell.
pub fn split(line: &str) -> Option<(Kind, &str)> {
    Kind::split(line).filter(|(kind, _)| matches!(kind, Kind::Task | Kind::Run))
}

/// Reads the lines of one boot and checks that they belong together.
pub fn parse(text: &str) -> Result<Outcome, ParseError> {
    parse_boot(&numbered(text))
}

/// Reads a cell: the lines of each boot, at least one. All boots are of the same cell
/// and have the same phases; in counted time each has a tick phase of its own.
pub fn parse_boots(text: &str) -> Result<Vec<Outcome>, ParseError> {
    let lines = numbered(text);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for lines in lines
        .split(|(_, text)| text.trim().is_empty())
        .filter(|lines| !lines.is_empty())
    {
        let next = parse_boot(lines)?;
        if let (Some(first), Some(before)) = (outcomes.first(), outcomes.last()) {
            follows(lines[0].0, first, before, &next)?;
        }
        outcomes.push(next);
    }
    if outcomes.is_empty() {
        outcomes.push(parse_boot(&lines)?); // which says that there is nothing
    }
    Ok(outcomes)
}

/// Whether a boot can stand after another in a cell.
fn follows(
    line: usize,
    first: &Outcome,
    before: &Outcome,
    next: &Outcome,
) -> Result<(), ParseError> {
    same_cell(line, first.last(), next.last())?;
    same(line, "phases", &first.phase_names(), &next.phase_names())?;
    match (before.tick_phase(), next.tick_phase()) {
        (None, None) if first.is_real() => Ok(()),
        (Some(before), Some(next)) if before < next => Ok(()),
        (Some(before), next) => Err(error(
            line,
            &format!("a tick_phase beyond {before}"),
            next.map_or("none".into(), |next| next.to_string()),
        )),
        (None, _) => Err(error(
            line,
            "one boot, as it has no tick_phase",
            "another".into(),
        )),
    }
}

fn numbered(text: &str) -> Vec<(usize, &str)> {
    (1..).zip(text.lines()).collect()
}

fn parse_boot(lines: &[(usize, &str)]) -> Result<Outcome, ParseError> {
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
            _ => return Err(error(line, "SCHED-TASK {…} or SCHED-RUN {…}", quote(text))),
        }
    }
    for (line, run) in runs {
        let name = &run.context.phase;
        if phases.iter().any(|phase| phase.name() == name) {
            return Err(error(
                line,
                "one SCHED-RUN line per phase",
                format!("another for phase `{name}`"),
            ));
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
        return Err(error(
            *line,
            "a SCHED-RUN line for each phase",
            format!("none for phase `{}`", task.context.phase),
        ));
    }
    if phases.is_empty() {
        return Err(error(last, "a SCHED-RUN line", "none".into()));
    }
    Ok(Outcome { phases, profiles })
}

/// Reads what a guest printed in one boot that was traced: each phase, with the trace
/// of each of its tasks, in their order.
pub fn parse_traced(console: &str) -> Result<Vec<(Phase, Vec<TraceLine>)>, ParseError> {
    // What is no result is an empty line, so that the numbers are those of the file.
    let mut results = String::new();
    let mut traces: Vec<(usize, TraceLine)> = Vec::new();
    for (line, text) in (1..).zip(console.lines()) {
        if split(text).is_some() {
            results += text;
        } else if let Some((Kind::Trace, text)) = Kind::split(text) {
            traces.push((line, json(line, text)?));
        }
        results.push('\n');
    }
    let outcome = parse(&results)?;
    let mut phases = Vec::new();
    for phase in outcome.phases {
        let mut own = Vec::new();
        for task in &phase.tasks {
            let name = phase.name();
            let is_its = |t: &TraceLine| t.context.phase == name && t.task == task.task;
            let Some(i) = traces.iter().position(|(_, trace)| is_its(trace)) else {
                let expected = format!(
                    "a SCHED-TRACE line for task `{}` in phase `{name}` (`make run TRACE=y` prints them)",
                    task.task
                );
                return Err(error(
                    console.lines().count().max(1),
                    &expected,
                    "none".into(),
                ));
            };
            let (line, trace) = traces.remove(i);
            traced(line, &trace, task)?;
            own.push(trace);
        }
        phases.push((phase, own));
    }
    if let Some((line, trace)) = traces.first() {
        let found = format!(
            "another for task `{}` in phase `{}`",
            trace.task, trace.context.phase
        );
        return Err(error(
            *line,
            "one SCHED-TRACE line per task and phase",
            found,
        ));
    }
    Ok(phases)
}

/// Whether a trace can be that of this task: no time is lost in it.
fn traced(line: usize, trace: &TraceLine, task: &TaskLine) -> Result<(), ParseError> {
    same_context(line, &task.context, &trace.context)?;
    if trace.bin_ns == 0 {
        return Err(error(line, "bins wider than 0 ns", "0".into()));
    }
    let sum: u128 = trace.run_ns.iter().copied().map(u128::from).sum();
    if sum != u128::from(task.run_ns) {
        let expected = format!("bins with {} ns, as the task's run_ns says", task.run_ns);
        return Err(error(line, &expected, sum.to_string()));
    }
    let bins = trace.run_ns.len().max(trace.blocked_ns.len()) as u64;
    if bins.checked_mul(trace.bin_ns).is_none() {
        return Err(error(
            line,
            "bins of less than 2^64 ns",
            format!("{bins} bins"),
        ));
    }
    Ok(())
}

/// The phase of a `SCHED-RUN` line, from its own tasks.
fn phase(line: usize, run: RunLine, tasks: Vec<(usize, TaskLine)>) -> Result<Phase, ParseError> {
    let mut names = HashSet::new();
    for (line, task) in &tasks {
        same_context(*line, &run.context, &task.context)?;
        if !names.insert(task.task.clone()) {
            return Err(error(
                *line,
                "one line per task and phase",
                format!("another for task `{}`", task.task),
            ));
        }
    }
    if tasks.len() != run.tasks {
        let expected = format!(
            "{} SCHED-TASK lines for phase `{}`",
            run.tasks, run.context.phase
        );
        return Err(error(line, &expected, tasks.len().to_string()));
    }
    let tasks = tasks.into_iter().map(|(_, task)| task).collect();
    Ok(Phase { tasks, run })
}

fn json<T: ResultLine>(line: usize, text: &str) -> Result<T, ParseError> {
    T::from_json(text).map_err(|why| {
        error(
            line,
            &format!("the keys of a result line ({why})"),
            quote(text),
        )
    })
}

/// Whether two phases are of the same cell in the same setting.
fn same_cell(line: usize, first: &RunLine, run: &RunLine) -> Result<(), ParseError> {
    same_context(line, &first.context, &run.context)?;
    same(line, "timing", &first.timing, &run.timing)?;
    same(line, "scale", &first.scale, &run.scale)
}

/// Whether two lines are of the same cell, whichever their phases.
fn same_context(line: usize, first: &Context, next: &Context) -> Result<(), ParseError> {
    same(line, "app", &first.app, &next.app)?;
    same(line, "arch", &first.arch, &next.arch)?;
    same(line, "sched", &first.sched, &next.sched)?;
    same(line, "smp", &first.smp, &next.smp)
}

fn same<T: PartialEq + fmt::Display>(
    line: usize,
    key: &str,
    expected: &T,
    found: &T,
) -> Result<(), ParseError> {
    if expected == found {
        return Ok(());
    }
    Err(error(
        line,
        &format!("{key} `{expected}`"),
        format!("`{found}`"),
    ))
}

fn error(line: usize, expected: &str, found: String) -> ParseError {
    ParseError {
        line,
        expected: expected.to_owned(),
        found,
    }
}

/// The beginning of a line, for an error that must stay one line itself.
fn quote(text: &str) -> String {
    const ENOUGH: usize = 60;
    let visible = |c: char| if c.is_control() { '·' } else { c };
    let start: String = text.chars().take(ENOUGH).map(visible).collect();
    let more = if text.chars().nth(ENOUGH).is_some() {
        "…"
    } else {
        ""
    };
    format!("`{start}{more}`")
}

#[cfg(test)]
pub mod tests {
    use sched_tests_results::{Followed, Refused};

    use super::*;
    use crate::testing::{assert_begins, assert_has};

    fn context(app: &str, sched: &str, phase: &str) -> Context {
        Context {
            app: app.into(),
            arch: "x86_64".into(),
            smp: 1,
            sched: sched.into(),
            phase: phase.into(),
        }
    }

    /// The lines of a phase with this average turnaround: `long` has twice that, `short` none.
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

    /// A cell with one phase for each of the given average turnarounds.
    pub fn sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
        let phase = |(phase, avg): &(&str, u64)| sample_phase(&context(app, sched, phase), *avg);
        phases.iter().map(phase).map(text_of).collect()
    }

    /// One boot of a cell at a tick phase, with an account that closes: 1 % is main's.
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

    #[test]
    fn boots_at_several_tick_phases_are_one_cell() {
        let boots = |texts: &[String]| parse_boots(&texts.join("\n"));
        let at = |tick_phase, avg| sample_at(tick_phase, "realtime", "rr", &[("run", avg)]);
        let cell = boots(&[at(0, 100), at(125, 300)]).unwrap();
        let found: Vec<_> = cell
            .iter()
            .map(|boot| (boot.tick_phase().map(u16::from), boot.last().makespan_ns))
            .collect();
        assert_eq!(found, [(Some(0), 100), (Some(125), 300)]);
        assert_eq!(cell[1].last().main_run_ns, Some(3));

        let fails = |texts: &[String]| boots(texts).unwrap_err().to_string();
        assert_eq!(
            fails(&[at(125, 100), at(125, 100)]),
            "5: expected a tick_phase beyond 125, found 125"
        );
        assert_eq!(
            fails(&[at(0, 100), sample("realtime", "rr", &[("run", 100)])]),
            "5: expected a tick_phase beyond 0, found none"
        );
        let old = sample("realtime", "rr", &[("run", 100)]);
        assert_eq!(
            fails(&[old.clone(), old]),
            "5: expected one boot, as it has no tick_phase, found another"
        );
        assert_eq!(
            fails(&[at(0, 100), sample_at(9, "yield", "rr", &[("run", 100)])]),
            "5: expected app `realtime`, found `yield`"
        );
        assert_eq!(
            fails(&[
                at(0, 100),
                sample_at(9, "realtime", "rr", &[("replay", 100)])
            ]),
            "5: expected phases `run`, found `replay`"
        );
        assert_eq!(fails(&[]), "1: expected a SCHED-RUN line, found none");
        // A place in the file, not in the boot.
        let bad = at(125, 100).replace("SCHED-RUN", "SCHED-RAN");
        assert_begins(fails(&[at(0, 100), bad]), "7: expected SCHED-TASK");
        assert_has(
            fails(&[at(0, 100).replace(r#""tick_phase":0"#, r#""tick_phase":1000"#)]),
            "a tick phase is 0 to 999, not 1000",
        );
    }

    #[test]
    fn in_real_time_boots_stand_in_their_order_with_what_became_of_the_profile() {
        let boot = |avg| sample("realtime", "pbg", &[("run", avg)]).replace("icount", "real");
        let followed = Followed {
            planned: 5,
            matched: 5,
            ..Followed::default()
        };
        let with = |change: &dyn Fn(&mut Followed)| {
            let mut followed = followed.clone();
            change(&mut followed);
            boot(100) + &PbgLine::Followed(followed).to_line() + "\n"
        };
        let refused = boot(100) + &PbgLine::Refused(Refused::default()).to_line() + "\n";
        let boots = [
            with(&|_| {}),
            with(&|f| (f.matched, f.missing) = (4, 1)),
            with(&|f| (f.unplanned, f.diverged) = (1, 1)),
            with(&|f| (f.demoted, f.diverged) = (1, 1)),
            with(&|f| f.dropped = true),
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

    /// The same, traced, as a console has it: `long` is on the CPU all the time.
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
        let what = |(phase, traces): &(Phase, Vec<TraceLine>)| {
            let bins: Vec<_> = traces.iter().map(|t| t.run_ns.len()).collect();
            (phase.name().to_owned(), traces[0].task.clone(), bins)
        };
        assert_eq!(
            phases.iter().map(what).collect::<Vec<_>>(),
            [
                ("measure".to_owned(), "long".to_owned(), vec![8, 0]),
                ("replay".to_owned(), "long".to_owned(), vec![4, 0])
            ]
        );
    }

    #[test]
    fn a_trace_that_cannot_be_is_refused_where_it_is() {
        let good = traced_sample("realtime", "rr", &[("run", 100)]);
        let fails = |text: &str| parse_traced(text).unwrap_err().to_string();
        assert_eq!(
            fails(&good.replace("50,50]", "50,49]")),
            "2: expected bins with 200 ns, as the task's run_ns says, found 199"
        );
        assert_eq!(
            fails(&good.replacen("SCHED-TRACE", "SCHED-TRICK", 1)),
            "6: expected a SCHED-TRACE line for task `long` in phase `run` (`make run TRACE=y` prints them), found none"
        );
        let third = good.lines().nth(2).unwrap();
        assert_eq!(
            fails(&format!("{good}{third}\n")),
            "7: expected one SCHED-TRACE line per task and phase, found another for task `short` in phase `run`"
        );
        assert_eq!(
            fails(&good.replacen("x86_64", "riscv64", 1)),
            "2: expected arch `x86_64`, found `riscv64`"
        );
        assert_eq!(
            fails(&good.replacen("\"bin_ns\":50", "\"bin_ns\":0", 1)),
            "2: expected bins wider than 0 ns, found 0"
        );
        assert_begins(
            fails(&good.replacen("\"bin_ns\":50,", "", 1)),
            "2: expected the keys",
        );
        assert_begins(
            fails(&good.replace("\"makespan_ns\":100,", "")),
            "6: expected the keys",
        );
    }

    #[test]
    fn phases_come_with_their_tasks_in_order() {
        let outcome = parse(&sample(
            "realtime",
            "pbg",
            &[("measure", 200), ("replay", 100)],
        ))
        .unwrap();
        assert_eq!(outcome.phases.len(), 2);
        let replay = &outcome.phases[1];
        assert_eq!(replay.name(), "replay");
        assert_eq!(replay.run.avg_turnaround_ns, 100);
        let names: Vec<_> = replay.tasks.iter().map(|t| t.task.as_str()).collect();
        assert_eq!(names, ["long", "short"]);
        assert_eq!(replay.tasks[0].groups, None);
    }

    #[test]
    fn added_keys_are_let_through_and_known_ones_read() {
        let text = sample("yield", "rr", &[("run", 100)])
            .replace(
                r#""yields":50"#,
                r#""yields":50,"groups":11,"new":{"x":[1]}"#,
            )
            .replace(r#""pass""#, r#""ns_per_yield":162.5,"pass""#);
        let outcome = parse(&text).unwrap();
        assert_eq!(outcome.phases[0].tasks[1].groups, Some(11));
        assert_eq!(outcome.last().ns_per_yield, Some(162.5));
    }

    #[test]
    fn errors_name_line_expectation_and_finding() {
        let good = sample("realtime", "rr", &[("run", 100)]);
        let fails = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            fails(&format!("{good}\nwhat is this\n")),
            "5: expected SCHED-TASK {…} or SCHED-RUN {…}, found `what is this`"
        );
        assert_eq!(
            fails(&good.replace(r#""makespan_ns":100,"#, "")),
            format!(
                "3: expected the keys of a result line (SCHED-RUN lacks `makespan_ns`), found `{}…`",
                r#"{"app":"realtime","arch":"x86_64","smp":1,"sched":"rr","phas"#
            )
        );
        assert_eq!(fails(""), "1: expected a SCHED-RUN line, found none");
        let cut: String = good.lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(
            fails(&cut),
            "1: expected a SCHED-RUN line for each phase, found none for phase `run`"
        );
        assert_eq!(
            fails(&good.lines().skip(1).collect::<Vec<_>>().join("\n")),
            "2: expected 2 SCHED-TASK lines for phase `run`, found 1"
        );
        assert_eq!(
            fails(&good.replacen("x86_64", "riscv64", 1)),
            "1: expected arch `x86_64`, found `riscv64`"
        );
        assert_eq!(
            fails(&good.replace("short", "long")),
            "2: expected one line per task and phase, found another for task `long`"
        );
        assert_eq!(
            fails(&format!("{good}{}", good.lines().nth(2).unwrap())),
            "4: expected one SCHED-RUN line per phase, found another for phase `run`"
        );
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
