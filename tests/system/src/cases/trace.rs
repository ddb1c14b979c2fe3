//! Traces: the times at which each task had its CPU, and each switch.

use std::{collections::BTreeMap, fs};

use crate::{
    frame::{Case, Context, case},
    perfetto::{Life, Trace},
    project::Project,
    results::Results,
};
use anyhow::{Context as _, Result, ensure};

pub fn cases<'a>(project: &'a Project) -> Vec<Case<'a>> {
    let of_arch = |arch: &'a String| {
        let name = format!("qemu: realtime {arch} sched_pbg, traced");
        case(name, move |context| check_bins(context, arch)).builds(arch)
    };
    let arches = project.in_turn(&project.arches, 2, 3);
    let mut cases: Vec<_> = arches.into_iter().map(of_arch).collect();
    let name = "qemu: realtime x86_64 sched_rr and sched_pbg, each switch";
    cases.push(case(name, replay_switches).builds("x86_64"));
    let name = "make: trace CPUS=1,4,64, each switch of the model";
    cases.push(case(name, replay_model_switches));
    cases
}

/// Replays the files for Perfetto and compares them with the result lines. Each thread's times must
/// agree to the nanosecond, without a gap from its submission to its end.
fn replay_switches(context: &Context) -> Result<()> {
    let call = context.make("trace SCALE=100 FEATURES=sched_rr,sched_pbg");
    call.text()?;
    for (policy, phases) in [("rr", 1), ("pbg", 2)] {
        let file = |ending| format!("target/trace/realtime-x86_64-scale100-{policy}.{ending}");
        let results = Results::of_file(&file("log"))?;
        ensure!(
            results.runs.len() == phases && results.tasks.len() == 5 * phases,
            "{policy}: expected {phases} phases of five tasks"
        );
        let trace = Trace::of(&fs::read(file("perfetto-trace"))?)?;
        check_booted(context, &results, &trace).with_context(|| policy.to_owned())?;
    }
    Ok(())
}

/// Checks the trace of a simulated recording whose tasks also wait. It boots nothing.
fn replay_model_switches(context: &Context) -> Result<()> {
    const CPUS: [u32; 3] = [1, 4, 64];
    const POLICIES: [&str; 3] = ["rr", "pbg", "stock-cfs"];
    let out = context.file("traces")?;
    let call = context.make("trace A=batch SCALE=10 CPUS=1,4,64");
    let table = call
        .args("PROFILE=modules/axsched-ext/tests/data/batch-x86_64.pbg")
        .args(format!(
            "FEATURES=sched_rr,sched_pbg,stock_cfs LAB='--out {out}'"
        ))
        .text()?;
    for cpus in CPUS {
        for policy in POLICIES {
            let name = format!("{out}/batch-x86_64-scale10-cpus{cpus}-{policy}-model");
            let results = Results::of_file(&format!("{name}.log"))?;
            ensure!(results.runs.len() == 1, "{name}: expected one phase");
            let trace = Trace::of(&fs::read(format!("{name}.perfetto-trace"))?)?;
            let late = check_simulated(context, &results, &trace).with_context(|| name.clone())?;
            // Only these are due at a time. Main spawns the others when it comes to them.
            let is_due = |name: &&str| ["sort1", "multiply6"].contains(name);
            ensure!(late.iter().all(is_due), "{name}: spawned late: {late:?}");
            let (_, process) = trace.threads.values().next().context("no thread")?;
            ensure!(process.ends_with("(model)"), "{name}: {process}");
            ensure!(table.contains(process), "not in the table: {process}");
        }
    }
    let idle = |line: &&str| line.starts_with("A CPU was idle while a task was ready");
    ensure!(table.lines().filter(idle).count() == CPUS.len() * POLICIES.len());
    fs::remove_dir_all(out).context("the traces")
}

/// Returns the times of the only thread of this name; in a file of several phases, of the one
/// in this phase.
pub fn life_of(
    trace: &Trace,
    lives: &BTreeMap<i32, Life>,
    thread: &str,
    phase: &str,
) -> Result<Life> {
    let mut pids = trace.threads.iter();
    let found = pids.find(|(_, (name, process))| name == thread && process.ends_with(phase));
    let (pid, _) = found.with_context(|| format!("no thread {thread} {phase}"))?;
    Ok(lives.get(pid).copied().unwrap_or_default())
}

/// Checks that no time of a thread is missing.
fn check_gaps(thread: &str, life: &Life) -> Result<()> {
    let sum = life.run_ns + life.ready_ns + life.blocked_ns;
    let lived_ns = life.end_ns - life.first_ns;
    ensure!(sum == lived_ns, "{thread}: a gap: {life:?}");
    Ok(())
}

/// Checks that run time and switches are those of the result lines. A thread exists from its
/// spawn until it has left its CPU, a few calls after the end of its work. Returns the tasks that
/// main spawned after they were due.
fn check_simulated<'a>(
    context: &Context,
    results: &'a Results,
    trace: &Trace,
) -> Result<Vec<&'a str>> {
    const CALLS_NS: u64 = 10_000;
    ensure!(!trace.has_lost, "events were lost");
    let lives = trace.lives()?;
    // The first task is spawned at the start.
    let first = &results.tasks[0];
    let start_ns = life_of(trace, &lives, &first.task, "")?.first_ns - first.submit_ns;
    let mut late = Vec::new();
    for task in &results.tasks {
        let name = &task.task;
        let life = life_of(trace, &lives, name, "")?;
        context.say(format_args!("{name} {life:?}"));
        let expected = (task.run_ns, task.dispatches);
        let found = (life.run_ns, life.dispatches);
        ensure!(
            expected == found,
            "{name}: expected run time and dispatches {expected:?}, found {found:?}"
        );
        check_gaps(name, &life)?;
        let due_ns = start_ns + task.submit_ns;
        ensure!(
            life.first_ns >= due_ns,
            "{name}: spawned before {due_ns}: {life:?}"
        );
        if life.first_ns > due_ns {
            late.push(name.as_str());
        }
        let after_ns = (life.end_ns - due_ns).checked_sub(task.turnaround_ns);
        let is_left = after_ns.is_some_and(|ns| ns < CALLS_NS);
        ensure!(is_left, "{name}: {task:?} {life:?}");
    }
    let all: u64 = lives.values().map(|life| life.run_ns).sum();
    let end_ns = lives.values().map(|life| life.end_ns).max().unwrap_or(0);
    let smp = u64::from(results.runs[0].context.smp);
    ensure!(
        all == smp * (end_ns - start_ns),
        "a CPU with less: {all} of all"
    );
    Ok(late)
}

/// Checks that run time, switches and turnaround are those of the result lines, and the run time
/// of main and of the gc as well.
fn check_booted(context: &Context, results: &Results, trace: &Trace) -> Result<()> {
    ensure!(!trace.has_lost, "events were lost");
    let lives = trace.lives()?;
    let life = |phase: &str, thread: &str| match results.runs.len() {
        1 => life_of(trace, &lives, thread, ""),
        _ => life_of(trace, &lives, thread, &format!(", {phase}")),
    };
    for task in &results.tasks {
        let (phase, name) = (&task.context.phase, &task.task);
        let life = life(phase, name)?;
        context.say(format_args!("{phase} {name} {life:?}"));
        let expected = (task.run_ns, task.dispatches, task.turnaround_ns);
        let found = (life.run_ns, life.dispatches, life.end_ns - life.first_ns);
        ensure!(
            expected == found,
            "{name}: expected run time, dispatches and turnaround {expected:?}, found {found:?}"
        );
        check_gaps(name, &life)?;
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

/// Checks that each SCHED-TASK line has one SCHED-TRACE line, whose bins add up to the task's
/// `run_ns` to the nanosecond, and that there is a chart.
fn check_bins(context: &Context, arch: &str) -> Result<()> {
    let chart = context.file("chart.svg")?;
    let call = context.make("trace TRACE=y SCALE=100 FEATURES=sched_pbg");
    call.args(format!("ARCH={arch} LAB='--long --out {chart}'"))
        .text()?;
    let log = format!("target/trace/realtime-{arch}-scale100-pbg-drawn.log");
    let results = Results::of_file(&log)?;
    let phases = results.runs.iter().filter(|run| run.traced).count();
    ensure!(phases == 2, "expected two phases, found {phases}");
    let tasks = (results.tasks.len(), results.traces.len());
    ensure!(tasks == (10, 10), "expected ten tasks, found {tasks:?}");
    let mut sums = BTreeMap::new();
    for trace in &results.traces {
        let task = (&trace.context.phase, &trace.task);
        let sum: u64 = trace.run_ns.iter().sum();
        ensure!(sums.insert(task, sum).is_none(), "twice: {task:?}");
    }
    for line in &results.tasks {
        let task = (&line.context.phase, &line.task);
        let traced = sums.get(&task).copied();
        context.say(format_args!("{task:?} {} {traced:?}", line.run_ns));
        ensure!(line.run_ns > 0 && traced == Some(line.run_ns), "{task:?}");
    }
    ensure!(
        fs::read_to_string(&chart)?.contains("following its plan"),
        "the chart does not say what it shows"
    );
    Ok(())
}
