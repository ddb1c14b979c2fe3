//! When each task had its CPU, and each switch.

use std::{collections::BTreeMap, fs};

use crate::{
    frame::{Case, Context, case},
    perfetto::{Life, Trace},
    project::Project,
    results::Results,
};
use anyhow::{Context as _, Result, ensure};

pub fn cases(project: &Project) -> Vec<Case> {
    let of_arch = |arch: &String| {
        let on = arch.clone();
        let name = format!("qemu: realtime {arch} sched_pbg, traced");
        case(name, move |context| traced(context, &on)).builds(arch)
    };
    let mut cases: Vec<_> = project.arches.iter().map(of_arch).collect();
    let each_switch = case(
        "qemu: realtime x86_64 sched_rr and sched_pbg, each switch",
        switches,
    );
    cases.push(each_switch.builds("x86_64"));
    cases
}

/// The files for Perfetto, by a reader that knows nothing of their writer, beside the result
/// lines: each thread's times to the nanosecond, from its submission to its end without a gap,
/// and never two on the CPU.
fn switches(context: &Context) -> Result<()> {
    context
        .make(["trace", "SCALE=100", "FEATURES=sched_rr,sched_pbg"])
        .text()?;
    for (policy, phases) in [("rr", 1), ("pbg", 2)] {
        let file = |ending| format!("target/trace/realtime-x86_64-scale100-{policy}.{ending}");
        let results = Results::of(&fs::read_to_string(file("log"))?.replace('\r', ""))?;
        ensure!(
            results.runs.len() == phases && results.tasks.len() == 5 * phases,
            "{policy}: expected {phases} phases of five tasks"
        );
        let trace = Trace::of(&fs::read(file("perfetto-trace"))?)?;
        ensure!(!trace.has_lost, "{policy}: events were lost");
        holds(context, &results, &trace).with_context(|| policy.to_owned())?;
    }
    Ok(())
}

fn holds(context: &Context, results: &Results, trace: &Trace) -> Result<()> {
    let lives = trace.lives()?;
    let life = |phase: &str, thread: &str| -> Result<Life> {
        let is_its = |(name, process): &(String, String)| {
            name == thread && (results.runs.len() == 1 || process.ends_with(&format!(", {phase}")))
        };
        let pid = trace.threads.iter().find(|(_, names)| is_its(names));
        let (pid, _) = pid.with_context(|| format!("no thread {thread} in {phase}"))?;
        Ok(lives.get(pid).copied().unwrap_or_default())
    };
    for task in &results.tasks {
        let life = life(&task.context.phase, &task.task)?;
        context.say(format_args!(
            "{} {} {life:?}",
            task.context.phase, task.task
        ));
        let expected = (task.run_ns, task.dispatches, task.turnaround_ns);
        let found = (life.run_ns, life.dispatches, life.end_ns - life.first_ns);
        ensure!(
            expected == found,
            "{}: expected run time, dispatches and turnaround {expected:?}, found {found:?}",
            task.task
        );
        let sum = life.run_ns + life.ready_ns + life.blocked_ns;
        ensure!(sum == task.turnaround_ns, "{}: a gap: {life:?}", task.task);
    }
    for run in &results.runs {
        let of = |thread| life(&run.context.phase, thread).map(|life| Some(life.run_ns));
        let found = (of("main")?, of("gc")?);
        let expected = (run.main_run_ns, run.gc_run_ns);
        ensure!(
            expected == found,
            "main and gc: expected {expected:?}, found {found:?}"
        );
    }
    Ok(())
}

/// For each SCHED-TASK line one SCHED-TRACE line, whose bins add up to the task's `run_ns` to
/// the nanosecond; and a chart of it.
fn traced(context: &Context, arch: &str) -> Result<()> {
    let chart = context.file("chart.svg")?;
    let variables = [format!("ARCH={arch}"), format!("GANTT_OUT={chart}")];
    context
        .make(["gantt", "SCALE=100", "FEATURES=sched_pbg", "LAB=--long"])
        .args(variables)
        .text()?;
    let console = format!("target/gantt/realtime-{arch}-scale100-sched_pbg.log");
    let results = Results::of(&fs::read_to_string(console)?.replace('\r', ""))?;
    ensure!(
        results.runs.iter().filter(|run| run.traced).count() == 2,
        "expected two phases"
    );
    ensure!(
        results.tasks.len() == 10 && results.traces.len() == 10,
        "expected ten tasks"
    );
    let mut sums = BTreeMap::new();
    for trace in &results.traces {
        let who = (&trace.context.phase, &trace.task);
        let sum: u64 = trace.run_ns.iter().sum();
        ensure!(sums.insert(who, sum).is_none(), "twice: {who:?}");
    }
    for task in &results.tasks {
        let who = (&task.context.phase, &task.task);
        let traced = sums.get(&who).copied();
        context.say(format_args!("{who:?} {} {traced:?}", task.run_ns));
        ensure!(task.run_ns > 0 && traced == Some(task.run_ns), "{who:?}");
    }
    let drawn = fs::read_to_string(&chart)?;
    ensure!(
        drawn.contains("following its plan"),
        "the chart does not say what it shows"
    );
    let png = fs::read(chart.replace(".svg", ".png"))?;
    ensure!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "no PNG file");
    Ok(())
}
