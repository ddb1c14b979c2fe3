//! CPUs that share the work: it is done by others if its own CPU never gets to it, and a yield that
//! has nothing to do with that costs as before.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use sched_tests_results::WakeLine;

use super::helpers::{ANY_ARCH, fails_with, folder, results};
use crate::{
    frame::{Call, Case, Context, case},
    perfetto::Trace,
    project::Project,
    results::Results,
};

pub fn cases(project: &Project) -> Vec<Case> {
    let ours = project.policies.iter().filter(|p| p.starts_with("sched_"));
    let ours: Vec<String> = ours.cloned().collect();
    let mut cases: Vec<_> = (project.arches.iter())
        .map(|arch| {
            // Each policy somewhere, and all of them here.
            let here: Vec<_> = match arch == ANY_ARCH {
                true => ours.clone(),
                false => ours
                    .iter()
                    .filter(|p| replays(p))
                    .take(1)
                    .chain(ours.first())
                    .cloned()
                    .collect(),
            };
            let name =
                format!("qemu: what waits behind a task that never gives way is done, {arch}");
            let on = arch.clone();
            case(name, move |context| is_done(context, &on, &here)).boots("hog", arch)
        })
        .collect();
    cases.extend([
        case(
            "qemu: and is not if the CPUs do not share the work",
            is_not_done,
        )
        .boots("hog", ANY_ARCH),
        case(
            "qemu: a yield where several CPUs could share costs as on one, to a few instructions",
            cheap,
        )
        .boots("cost", ANY_ARCH),
        case(
            "qemu: a wake while a CPU idles is one interrupt, and waits for no tick",
            wakes,
        )
        .builds(ANY_ARCH)
        .alone_after(|context| wake(context, "build").text().map(drop)),
        case(
            "qemu: make trace sees CPUs idle beside a ready task, and hardly if they share the work",
            seldom_idle,
        )
        .builds(ANY_ARCH),
    ]);
    cases
}

fn is_done(context: &Context, arch: &str, policies: &[String]) -> Result<()> {
    for policy in policies {
        let call = context.make(["run", "SMP=4"]).args([
            folder("hog"),
            format!("ARCH={arch}"),
            format!("FEATURES={policy}"),
        ]);
        let phases = if replays(policy) {
            "measure replay"
        } else {
            "run"
        };
        results(call)?.passed(phases)?;
    }
    Ok(())
}

fn replays(policy: &str) -> bool {
    policy.starts_with("sched_pbg")
}

fn is_not_done(context: &Context) -> Result<()> {
    let call = context
        .make([
            "run",
            "SMP=4",
            "BALANCE=n",
            "FEATURES=sched_rr",
            "TIMEOUT=5",
        ])
        .args([folder("hog"), format!("ARCH={ANY_ARCH}")]);
    fails_with(call, "5 s")
}

fn wake<'a>(context: &'a Context, goal: &str) -> Call<'a> {
    let few = ["SMP=2", "SCALE=40", "FEATURES=sched_rr"];
    let call = context.make([goal.to_owned(), folder("wake"), format!("ARCH={ANY_ARCH}")]);
    call.args(few)
}

/// Before the CPUs are connected and after, in one boot. How long it takes is the host's affair, but
/// not which of the two is longer.
fn wakes(context: &Context) -> Result<()> {
    let found = results(wake(context, "run"))?;
    found.passed("before after")?;
    for queue in ["waker", "idle"] {
        let of = |phase: &str| {
            let mut lines = found.wakes.iter();
            let is_it = |line: &&WakeLine| line.context.phase == phase && line.queue == queue;
            lines.find(is_it).context("a line is missing")
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

/// Tasks that go from queue to queue are where the trace says: its reader would find one that is on
/// two CPUs, or runs without being ready. It is the same run that `make trace` counts.
fn seldom_idle(context: &Context) -> Result<()> {
    let idle = |balance: &str| -> Result<f64> {
        let of = ["A=realtime", "SMP=4", "SCALE=10", "FEATURES=sched_rr"];
        let table = context.make(["trace"]).args(of).args([balance]).text()?;
        let line = table
            .lines()
            .find_map(|line| line.strip_prefix("A CPU was idle while a task was ready for "));
        let line = line.context("no line of idle CPUs")?;
        context.say(format_args!("{balance} {line}"));
        ensure!(line.contains(" samples, one each 0.1 ms."), "{line}");
        let percent = line.split_once(" ms, ").context("no percentage")?.1;
        let (percent, _) = percent.split_once(" %").context("no percentage")?;
        let log = "target/trace/realtime-x86_64-scale10-smp4-real-rr.log";
        let results = Results::of(&fs::read_to_string(log)?.replace('\r', ""))?;
        results.passed("run")?;
        // What `make trace` makes of it, without another boot.
        let file = context.file("shared.perfetto-trace")?;
        let schedlab = context.program("target/tool/schedlab");
        schedlab.args(["trace", log, "--out", &file]).text()?;
        let trace = Trace::of(&fs::read(&file)?)?;
        let lives = trace.lives()?;
        for task in &results.tasks {
            let its = |(_, (name, _)): &(&i32, &(String, String))| *name == task.task;
            let (pid, _) = trace.threads.iter().find(its).context("no such thread")?;
            let life = lives.get(pid).context("it did nothing")?;
            // The file's times are rounded down, of each stay at both ends.
            let off = life.run_ns.abs_diff(task.run_ns);
            ensure!(off <= 2 * life.dispatches, "{task:?} {life:?}");
        }
        Ok(percent.parse()?)
    };
    let (shared, alone) = (idle("BALANCE=y")?, idle("BALANCE=n")?);
    // A tenth where the host has time for it; others may be tested at the moment.
    ensure!(
        shared < alone / 2.0,
        "idle beside a ready task: {shared} % of the time, {alone} % if they do not share"
    );
    Ok(())
}

/// Instructions that a yield may take more, in each phase: of the one that is closest to the limit, and of the
/// two that are exceptions (`docs/several-cpus.md`). Each is two images. They run on one CPU: what PBG
/// does on several is not in it.
const COUNTED: [(&str, &[f64]); 3] = [
    ("sched_sjf", &[8.0]),
    ("sched_rr", &[16.0]),
    ("sched_pbg", &[31.0, 32.0, 32.0]),
];

fn cheap(context: &Context) -> Result<()> {
    for (policy, most) in COUNTED {
        // In each phase.
        let yields = |more: &[&str]| -> Result<Vec<f64>> {
            let call = context.make(["run"]).args([
                folder("cost"),
                format!("ARCH={ANY_ARCH}"),
                format!("FEATURES={policy},smp"),
            ]);
            let found = results(call.args(more.iter().map(ToString::to_string)))?;
            let of_four = found.costs.iter().filter(|cost| cost.tasks == 4);
            of_four
                .map(|cost| cost.instructions_per_yield.context("no instructions"))
                .collect()
        };
        let (alone, shares) = (yields(&[])?, yields(&["BALANCE=y"])?);
        ensure!(
            alone.len() == most.len() && shares.len() == most.len() && alone != shares,
            "{policy}: {} phases, not all the same: {alone:?}, {shares:?}",
            most.len()
        );
        for ((alone, shares), most) in alone.into_iter().zip(shares).zip(most) {
            ensure!(
                shares <= alone + most,
                "{policy}: {shares} instructions for {alone}, allowed are {most} more"
            );
        }
    }
    Ok(())
}
