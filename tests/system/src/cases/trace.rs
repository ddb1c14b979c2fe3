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
    cases.push(case(
        "make: trace CPUS=1,4,64, each switch of what is played",
        switches_of_the_model,
    ));
    cases
}

/// The files for Perfetto, replayed beside the result lines: each thread's times to the nanosecond, from its submission to its end without a gap,
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

/// The same of a recording that is played, whose tasks wait, too: it boots nothing.
fn switches_of_the_model(context: &Context) -> Result<()> {
    const CPUS: [u32; 3] = [1, 4, 64];
    const POLICIES: [&str; 3] = ["rr", "pbg", "stock-cfs"];
    let out = context.file("traces")?;
    let of = ["A=batch", "SCALE=10", "CPUS=1,4,64"];
    let recording = "PROFILE=modules/axsched-ext/tests/data/batch-x86_64.pbg";
    let policies = "FEATURES=sched_rr,sched_pbg,stock_cfs";
    let table = context
        .make(["trace"])
        .args(of)
        .args([recording, policies, &format!("LAB=--out {out}")])
        .text()?;
    for (cpus, policy) in CPUS
        .iter()
        .flat_map(|cpus| POLICIES.map(|name| (cpus, name)))
    {
        let name = format!("{out}/batch-x86_64-scale10-cpus{cpus}-{policy}-model");
        let results = Results::of(&fs::read_to_string(format!("{name}.log"))?)?;
        ensure!(results.runs.len() == 1, "{name}: expected one phase");
        let trace = Trace::of(&fs::read(format!("{name}.perfetto-trace"))?)?;
        played(context, &results, &trace).with_context(|| name.clone())?;
        let (_, (_, process)) = trace.threads.iter().next().context("no thread")?;
        ensure!(process.ends_with("(model)"), "{name}: {process}");
        ensure!(table.contains(process), "not in the table: {process}");
    }
    let idle = |line: &&str| line.starts_with("A CPU was idle while a task was ready");
    ensure!(table.lines().filter(idle).count() == CPUS.len() * POLICIES.len());
    fs::remove_dir_all(out).context("the traces")
}

/// Time on a CPU and switches are those of the lines; it is there at the submission, and from
/// then on without a gap until it has left its CPU, a few calls after its work was done.
fn played(context: &Context, results: &Results, trace: &Trace) -> Result<()> {
    const CALLS_NS: u64 = 10_000;
    ensure!(!trace.has_lost, "events were lost");
    let lives = trace.lives()?;
    let life = |thread: &str| -> Result<Life> {
        let pid = trace.threads.iter().find(|(_, (name, _))| name == thread);
        let (pid, _) = pid.with_context(|| format!("no thread {thread}"))?;
        lives.get(pid).copied().context("it did nothing")
    };
    let mut first_ns = Vec::new();
    for task in &results.tasks {
        let life = life(&task.task)?;
        context.say(format_args!("{} {life:?}", task.task));
        let expected = (task.run_ns, task.dispatches);
        let found = (life.run_ns, life.dispatches);
        ensure!(
            expected == found,
            "{}: expected run time and dispatches {expected:?}, found {found:?}",
            task.task
        );
        let lived_ns = life.end_ns - life.first_ns;
        let sum = life.run_ns + life.ready_ns + life.blocked_ns;
        ensure!(sum == lived_ns, "{}: a gap: {life:?}", task.task);
        let after_ns = lived_ns.checked_sub(task.turnaround_ns);
        let is_left = after_ns.is_some_and(|ns| ns < CALLS_NS);
        ensure!(is_left, "{}: {task:?} {life:?}", task.task);
        first_ns.push(life.first_ns - task.submit_ns);
    }
    first_ns.dedup();
    ensure!(first_ns.len() == 1, "several starts: {first_ns:?}");
    let all: u64 = lives.values().map(|life| life.run_ns).sum();
    let end_ns = lives.values().map(|life| life.end_ns).max().unwrap_or(0);
    let smp = u64::from(results.runs[0].context.smp);
    ensure!(
        all == smp * (end_ns - first_ns[0]),
        "a CPU with less: {all} of all"
    );
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
    let variables = [format!("ARCH={arch}"), format!("LAB=--long --out {chart}")];
    context
        .make(["trace", "TRACE=y", "SCALE=100", "FEATURES=sched_pbg"])
        .args(variables)
        .text()?;
    let console = format!("target/trace/realtime-{arch}-scale100-pbg-drawn.log");
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
    Ok(())
}
