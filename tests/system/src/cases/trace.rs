//! When each task had its CPU.

use std::{collections::BTreeMap, fs};

use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};
use anyhow::{Result, ensure};

pub fn cases(project: &Project) -> Vec<Case> {
    let of_arch = |arch: &String| {
        let on = arch.clone();
        let name = format!("qemu: realtime {arch} sched_pbg, traced");
        case(name, move |context| traced(context, &on)).builds(arch)
    };
    project.arches.iter().map(of_arch).collect()
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
