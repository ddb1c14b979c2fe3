//! CPUs that share the work. Other CPUs run the tasks that wait behind one that never yields, and a
//! yield that involves no other CPU costs as before.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{
    helpers::{ANY_ARCH, built_then_alone, expect_failure, has_replay, phases, results},
    trace::life_of,
};
use crate::{
    frame::{Case, Context, case},
    perfetto::Trace,
    project::Project,
    results::Results,
};

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let ours = || {
        let policies = project.policies.iter();
        policies.filter(|policy| policy.starts_with("sched_"))
    };
    let mut cases = Vec::new();
    for arch in project.in_turn(&project.arches, 0, 3) {
        // A third of the policies in turn on one architecture, and two on each other one.
        let policies: Vec<_> = match arch == ANY_ARCH {
            true => project.in_turn(ours(), 1, 3),
            false => ours()
                .filter(|policy| has_replay(policy))
                .take(1)
                .chain(ours().take(1))
                .collect(),
        };
        let name = format!("qemu: tasks behind one that never yields are done, {arch}");
        let check = move |context: &Context| {
            for policy in &policies {
                let call = context.make(format!("run A=hog SMP=4 ARCH={arch} FEATURES={policy}"));
                results(call)?.passed(phases(policy))?;
            }
            Ok(())
        };
        cases.push(case(name, check).boots("hog", arch));
    }
    let counted = project.in_turn(COUNTED, 2, 3);
    cases.extend([
        case(
            "qemu: tasks behind one that never yields wait if CPUs do not share the work",
            run_alone,
        )
        .boots("hog", ANY_ARCH),
        case(
            "qemu: a yield where several CPUs could share costs as on one, to a few instructions",
            move |context| compare_yields(context, &counted),
        )
        .boots("cost", ANY_ARCH),
        case(
            "qemu: make trace sees CPUs idle beside a ready task, and hardly if they share the work",
            compare_idling,
        )
        .builds(ANY_ARCH),
    ]);
    let name = "qemu: a wake while a CPU is idle sends one IPI, and waits for no tick";
    let wakes = case(name, measure_wakes);
    cases.extend(built_then_alone(wakes, ANY_ARCH, vec![wake()]));
    cases
}

/// Checks that the run ends at its timeout if the CPUs do not share the work.
fn run_alone(context: &Context) -> Result<()> {
    let call = context.make(format!(
        "run A=hog ARCH={ANY_ARCH} FEATURES=sched_rr,unbalanced"
    ));
    expect_failure(call.args("SMP=4 TIMEOUT=5"), "5 s")
}

/// Returns the image that measures wakes.
fn wake() -> String {
    format!("A=wake ARCH={ANY_ARCH} FEATURES=sched_rr SMP=2 SCALE=40")
}

/// Measures wakes before the CPUs are connected and after, in one boot. The times depend on the
/// host, but the wakes after are faster on every host.
fn measure_wakes(context: &Context) -> Result<()> {
    let found = results(context.make(format!("run {}", wake())))?;
    found.passed("before after")?;
    for queue in ["waker", "idle"] {
        let of = |phase: &str| {
            let mut lines = found.wakes.iter();
            let line = lines.find(|line| line.context.phase == phase && line.queue == queue);
            line.context("a line is missing")
        };
        let (before, after) = (of("before")?, of("after")?);
        for line in [before, after] {
            context.say(format_args!("{line:?}"));
            let in_bins: u64 = line.bins.iter().sum();
            ensure!(line.wakes > 0 && in_bins == line.wakes as u64, "{line:?}");
            let in_order = line.median_ns <= line.p99_ns && line.p99_ns <= line.worst_ns;
            ensure!(in_order && line.interrupts <= line.wakes as u64, "{line:?}");
        }
        ensure!(before.interrupts == 0 && after.most_interrupts == 1);
        ensure!(
            after.median_ns < before.median_ns,
            "{queue}: expected a median below {}, found {}",
            before.median_ns,
            after.median_ns
        );
    }
    Ok(())
}

/// Compares the time for which CPUs are idle beside a ready task. Also checks the trace, whose
/// reader refuses a task that is on two CPUs or runs without being ready.
fn compare_idling(context: &Context) -> Result<()> {
    let idle = |features: &str| -> Result<f64> {
        let call = context.make("trace A=realtime SMP=4 SCALE=10");
        let table = call.args(format!("FEATURES={features}")).text()?;
        let line = table
            .lines()
            .find_map(|line| line.strip_prefix("A CPU was idle while a task was ready for "));
        let line = line.context("no line of idle CPUs")?;
        context.say(format_args!("{features} {line}"));
        ensure!(line.contains(" samples, one each 0.1 ms."), "{line}");
        let percent = line.split_once(" ms, ").context("no percentage")?.1;
        let (percent, _) = percent.split_once(" %").context("no percentage")?;
        let log = "target/trace/realtime-x86_64-scale10-smp4-real-rr.log";
        let results = Results::of_file(log)?;
        results.passed("run")?;
        // The same file as `make trace` writes, without another boot.
        let file = context.file("shared.perfetto-trace")?;
        let schedlab = context.program("target/tool/schedlab");
        schedlab.args(format!("trace {log} --out {file}")).text()?;
        let trace = Trace::of(&fs::read(&file)?)?;
        let lives = trace.lives()?;
        for task in &results.tasks {
            let life = life_of(&trace, &lives, &task.task, "")?;
            // The file's times are rounded down at both ends of each stay.
            let off = life.run_ns.abs_diff(task.run_ns);
            ensure!(off <= 2 * life.dispatches, "{task:?} {life:?}");
        }
        Ok(percent.parse()?)
    };
    let (shared, alone) = (idle("sched_rr")?, idle("sched_rr,unbalanced")?);
    // A tenth where the host has time for it; other cases may run at the moment.
    ensure!(
        shared < alone / 2.0,
        "idle beside a ready task: {shared} % of the time, {alone} % if they do not share"
    );
    Ok(())
}

/// The most instructions that sharing may add to a yield, in each phase. The policies are the one
/// that is closest to the limit, and the two exceptions (`docs/several-cpus.md`). The gate takes one in
/// turn. Each takes two images, which run on one CPU. So the work of PBG's several CPUs is not in it.
const COUNTED: [(&str, &[f64]); 3] = [
    ("sched_sjf", &[8.0]),
    ("sched_rr", &[16.0]),
    ("sched_pbg", &[31.0, 32.0, 32.0]),
];

fn compare_yields(context: &Context, counted: &[(&str, &[f64])]) -> Result<()> {
    for (policy, most) in counted {
        // Returns the cost in each phase.
        let yields = |more: &str| -> Result<Vec<f64>> {
            let call = context.make(format!(
                "run A=cost ARCH={ANY_ARCH} FEATURES={policy},smp{more}"
            ));
            let found = results(call)?;
            let of_four = found.costs.iter().filter(|cost| cost.tasks == 4);
            of_four
                .map(|cost| cost.instructions_per_yield.context("no instructions"))
                .collect()
        };
        let (alone, shares) = (yields("")?, yields(",balanced")?);
        ensure!(
            alone.len() == most.len() && shares.len() == most.len() && alone != shares,
            "{policy}: {} phases, not all the same: {alone:?}, {shares:?}",
            most.len()
        );
        for ((alone, shares), most) in alone.into_iter().zip(shares).zip(*most) {
            ensure!(
                shares <= alone + most,
                "{policy}: {shares} instructions for {alone}, allowed are {most} more"
            );
        }
    }
    Ok(())
}
