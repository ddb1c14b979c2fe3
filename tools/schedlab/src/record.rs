//! Result lines: from what a guest printed to figures.
//!
//! One `SCHED-TASK` line for each task and phase, one `SCHED-RUN` line for each
//! phase; if it was traced, one `SCHED-TRACE` line for each task and phase, which is
//! no figure and belongs to no cell. JSON after the first blank; times in nanoseconds. Keys may be added,
//! so unknown ones are let through.

use std::{collections::HashSet, fmt};

use serde::{Deserialize, de::DeserializeOwned};

const TASK: &str = "SCHED-TASK ";
const RUN: &str = "SCHED-RUN ";
const TRACE: &str = "SCHED-TRACE ";

/// One task in one phase: the keys that tables are made from. The others are
/// required to be there, as the lines are a contract.
#[derive(Clone, Debug, Deserialize)]
#[allow(dead_code)] // a missing key is an error, read or not
pub struct TaskLine {
    pub app: String,
    pub arch: String,
    pub smp: u32,
    pub sched: String,
    pub phase: String,
    pub task: String,
    pub submit_ns: u64,
    pub first_run_ns: u64,
    pub finish_ns: u64,
    pub turnaround_ns: u64,
    pub run_ns: u64,
    pub dispatches: u64,
    pub yields: u64,
    /// Groups of work done, where an app counts them.
    pub groups: Option<u64>,
}

/// One phase as a whole.
#[derive(Clone, Debug, Deserialize)]
#[allow(dead_code)] // as above
pub struct RunLine {
    pub app: String,
    pub arch: String,
    pub smp: u32,
    pub sched: String,
    pub phase: String,
    pub timing: String,
    pub scale: u64,
    pub tasks: usize,
    pub avg_turnaround_ns: u64,
    pub max_turnaround_ns: u64,
    pub makespan_ns: u64,
    pub context_switches: u64,
    pub srpt_bound_ns: u64,
    pub jain: f64,
    pub pass: bool,
    /// The cost of a yield, where an app knows it better than the makespan does.
    pub ns_per_yield: Option<f64>,
}

/// When one task had its CPU in one phase.
#[derive(Clone, Debug, Deserialize)]
pub struct TraceLine {
    pub app: String,
    pub arch: String,
    pub smp: u32,
    pub sched: String,
    pub phase: String,
    pub task: String,
    /// How wide a bin is.
    pub bin_ns: u64,
    /// The time on a CPU in each, from the start of the phase.
    pub run_ns: Vec<u64>,
}

/// One run of a workload.
#[derive(Clone, Debug)]
pub struct Phase {
    pub tasks: Vec<TaskLine>,
    pub run: RunLine,
}

/// All that one boot had to say: at least one phase, all of one cell.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub phases: Vec<Phase>,
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
}

/// What was wrong, where.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Counted from 1.
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

/// The result lines among what a guest printed.
pub fn result_lines(console: &[String]) -> Vec<String> {
    let is_result = |line: &&String| line.starts_with(TASK) || line.starts_with(RUN);
    console.iter().filter(is_result).cloned().collect()
}

/// A result line's kind and JSON.
pub fn split(line: &str) -> Option<(&'static str, &str)> {
    [TASK, RUN]
        .into_iter()
        .find_map(|kind| Some((kind.trim_end(), line.strip_prefix(kind)?)))
}

/// Reads the lines of one boot and checks that they belong together.
pub fn parse(text: &str) -> Result<Outcome, ParseError> {
    let mut tasks: Vec<(usize, TaskLine)> = Vec::new();
    let mut phases: Vec<Phase> = Vec::new();
    let mut runs: Vec<(usize, RunLine)> = Vec::new();
    let mut last = 1;
    for (line, text) in (1..)
        .zip(text.lines())
        .filter(|(_, text)| !text.trim().is_empty())
    {
        last = line;
        match split(text) {
            Some(("SCHED-TASK", text)) => tasks.push((line, json(line, text)?)),
            Some((_, text)) => runs.push((line, json(line, text)?)),
            None => return Err(error(line, "SCHED-TASK {…} or SCHED-RUN {…}", quote(text))),
        }
    }
    for (line, run) in runs {
        if phases.iter().any(|p| p.run.phase == run.phase) {
            return Err(error(
                line,
                "one SCHED-RUN line per phase",
                format!("another for phase `{}`", run.phase),
            ));
        }
        let first = phases.first().map_or(&run, |p| &p.run);
        same(line, "app", &first.app, &run.app)?;
        same(line, "arch", &first.arch, &run.arch)?;
        same(line, "sched", &first.sched, &run.sched)?;
        same(line, "smp", &first.smp, &run.smp)?;
        same(line, "timing", &first.timing, &run.timing)?;
        same(line, "scale", &first.scale, &run.scale)?;
        let (own, others) = tasks.into_iter().partition(|(_, t)| t.phase == run.phase);
        tasks = others;
        phases.push(phase(line, run, own)?);
    }
    if let Some((line, task)) = tasks.first() {
        return Err(error(
            *line,
            "a SCHED-RUN line for each phase",
            format!("none for phase `{}`", task.phase),
        ));
    }
    if phases.is_empty() {
        return Err(error(last, "a SCHED-RUN line", "none".into()));
    }
    Ok(Outcome { phases })
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
        } else if let Some(text) = text.strip_prefix(TRACE) {
            traces.push((line, json(line, text)?));
        }
        results.push('\n');
    }
    let outcome = parse(&results)?;
    let mut phases = Vec::new();
    for phase in outcome.phases {
        let mut own = Vec::new();
        for task in &phase.tasks {
            let is_its = |t: &TraceLine| t.phase == task.phase && t.task == task.task;
            let Some(i) = traces.iter().position(|(_, trace)| is_its(trace)) else {
                let expected = format!(
                    "a SCHED-TRACE line for task `{}` in phase `{}` (`make run TRACE=y` prints them)",
                    task.task, task.phase
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
            trace.task, trace.phase
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
    same(line, "app", &task.app, &trace.app)?;
    same(line, "arch", &task.arch, &trace.arch)?;
    same(line, "sched", &task.sched, &trace.sched)?;
    same(line, "smp", &task.smp, &trace.smp)?;
    if trace.bin_ns == 0 {
        return Err(error(line, "bins wider than 0 ns", "0".into()));
    }
    let sum: u128 = trace.run_ns.iter().copied().map(u128::from).sum();
    if sum != u128::from(task.run_ns) {
        let expected = format!("bins with {} ns, as the task's run_ns says", task.run_ns);
        return Err(error(line, &expected, sum.to_string()));
    }
    let bins = trace.run_ns.len() as u64;
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
        same(*line, "app", &run.app, &task.app)?;
        same(*line, "arch", &run.arch, &task.arch)?;
        same(*line, "sched", &run.sched, &task.sched)?;
        same(*line, "smp", &run.smp, &task.smp)?;
        if !names.insert(task.task.clone()) {
            return Err(error(
                *line,
                "one line per task and phase",
                format!("another for task `{}`", task.task),
            ));
        }
    }
    if tasks.len() != run.tasks {
        let expected = format!("{} SCHED-TASK lines for phase `{}`", run.tasks, run.phase);
        return Err(error(line, &expected, tasks.len().to_string()));
    }
    let tasks = tasks.into_iter().map(|(_, task)| task).collect();
    Ok(Phase { tasks, run })
}

fn json<T: DeserializeOwned>(line: usize, text: &str) -> Result<T, ParseError> {
    serde_json::from_str(text).map_err(|e| {
        // serde's place is within the JSON text, and that is always its line 1.
        let what = e.to_string();
        let what = what.split(" at line 1 ").next().unwrap_or(&what);
        error(
            line,
            &format!("the keys of a result line ({what})"),
            quote(text),
        )
    })
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
    use super::*;

    /// A cell with one phase for each of the given average turnarounds.
    pub fn sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
        let mut text = String::new();
        for (phase, avg) in phases {
            for (task, turnaround) in [("long", avg * 2), ("short", 0)] {
                text += &format!(
                    r#"SCHED-TASK {{"app":"{app}","arch":"x86_64","smp":1,"sched":"{sched}","phase":"{phase}","task":"{task}","submit_ns":0,"first_run_ns":0,"finish_ns":{turnaround},"turnaround_ns":{turnaround},"run_ns":{turnaround},"dispatches":3,"yields":50}}"#
                );
                text += "\n";
            }
            text += &format!(
                r#"SCHED-RUN {{"app":"{app}","arch":"x86_64","smp":1,"sched":"{sched}","phase":"{phase}","timing":"icount","scale":1,"tasks":2,"avg_turnaround_ns":{avg},"max_turnaround_ns":{avg},"makespan_ns":{avg},"context_switches":7,"srpt_bound_ns":{},"jain":0.5,"pass":true}}"#,
                avg / 2
            );
            text += "\n";
        }
        text
    }

    /// The same, traced, as a console has it: `long` is on the CPU all the time.
    pub fn traced_sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
        let mut console = "SeaBIOS\r\n".to_owned();
        for (phase, avg) in phases {
            for (task, bins) in [("long", vec![50; *avg as usize / 25]), ("short", vec![])] {
                console += &format!(
                    "SCHED-TRACE {{\"app\":\"{app}\",\"arch\":\"x86_64\",\"smp\":1,\"sched\":\"{sched}\",\"phase\":\"{phase}\",\"task\":\"{task}\",\"bin_ns\":50,\"run_ns\":{bins:?}}}\r\n"
                );
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
            (phase.run.phase.clone(), traces[0].task.clone(), bins)
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
            fails(&good.replace("50, 50]", "50, 49]")),
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
        assert!(fails(&good.replacen("\"bin_ns\":50,", "", 1)).starts_with("2: expected the keys"));
        assert!(
            fails(&good.replace("\"makespan_ns\":100,", "")).starts_with("6: expected the keys")
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
        assert_eq!(replay.run.phase, "replay");
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
                "3: expected the keys of a result line (missing field `makespan_ns`), found `{}…`",
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
        let console = ["boot", "SCHED-TASK {}", " SCHED-RUN {}", "SCHED-RUN {}"].map(String::from);
        assert_eq!(result_lines(&console), ["SCHED-TASK {}", "SCHED-RUN {}"]);
    }
}
