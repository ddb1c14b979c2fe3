//! Runs an application and prints what came out: the table for people, then the result lines.
//!
//! Under PBG the workload runs twice in one boot, once recorded and once replayed. If a profile was
//! kept, it is only replayed. Under any other policy it runs once. Only the main task prints, so no
//! line is broken by another.

use alloc::vec::Vec;

use sched_tests_results::{COUNTED, PbgLine, PhaseLines, table};

pub use crate::run_phase::run_phase;
use crate::{
    app::{App, Task, TaskCtx},
    config::{ARCH, EVENTS, RECORDED, SCALE, TRACED},
    kept,
    pbg::{self, AppResult},
    platform::{self, println},
    recorded,
    results::{self, Phase, ResultLine, Setting},
};

/// Runs `app` in the phases that the policy asks for and prints the results.
/// On the host a failed check is also the program's exit status.
pub fn run(app: &App) {
    print_heading(&setting(app.name));
    run_headed(app);
}

/// Runs `app` without printing the heading, which the caller has printed.
pub fn run_headed(app: &App) {
    let setting = setting(app.name);
    platform::connect_cpus();
    if platform::TIMING != COUNTED {
        warm_up();
    }
    let mut result = match setting.sched {
        "pbg" | "pbg-coop" => pbg::run(app),
        _ if RECORDED => recorded::run(app),
        _ => AppResult::of_phase(run_phase(app, "run")),
    };
    let lines = lines(&setting, &result.phases);
    println!("{}", table(&lines));
    for profile in &result.profiles {
        // The phase that followed it is the last one.
        if let (PbgLine::Followed(followed), Some(replay)) = (profile, lines.last())
            && let Some(remark) = followed.remark(replay.run.avg_turnaround_ns)
        {
            println!("{remark}");
        }
    }
    print(&setting, &result.phases, &lines);
    if EVENTS {
        for phase in &mut result.phases {
            results::event_lines(&setting, phase, |line| println!("{}", line.to_line()));
        }
    }
    for profile in &result.profiles {
        println!("{}", profile.to_line());
    }
    if let Some(profile) = &result.measured {
        kept::print_frame(profile);
    }
    platform::finish(result.phases.iter().all(|phase| phase.pass));
}

/// Runs a few tasks that only yield, so that all code between the spawn of a task and its end has
/// run once. In real time the first time takes milliseconds longer, because QEMU translates code
/// before it runs. That would show in a short phase. Where instructions are counted there is no
/// difference.
fn warm_up() {
    let tasks = |_| {
        let yields = |ctx: &TaskCtx| {
            (0..100).for_each(|_| ctx.yield_now());
            true
        };
        let yielder = |_| Task::new("warm-up", yields).unlabelled();
        (0..2 * platform::cpus()).map(yielder).collect()
    };
    run_phase(&App::new("warm-up", tasks), "warm-up");
}

/// Returns the setting of every phase of the application called `app` in this build.
pub fn setting(app: &str) -> Setting<'_> {
    Setting {
        app,
        arch: ARCH,
        smp: platform::cpus(),
        sched: platform::SCHED,
        timing: platform::TIMING,
        scale: SCALE,
    }
}

/// Prints a heading for the user that says what is about to run.
pub fn print_heading(setting: &Setting) {
    println!(
        "{} on {}, {} CPU{}, scheduler {}, {} time, SCALE={}\n",
        setting.app,
        setting.arch,
        setting.smp,
        if setting.smp == 1 { "" } else { "s" },
        setting.sched,
        setting.timing,
        setting.scale,
    );
    if TRACED {
        println!("Traced: with what it costs to note when each task has its CPU.\n");
    }
    if RECORDED {
        println!("Recorded: with what it costs to record.\n");
    }
    if EVENTS {
        println!("Traced: with what it costs to note each switch.\n");
    }
}

/// Prints the table of these phases for people.
pub fn print_table(setting: &Setting, phases: &[Phase]) {
    println!("{}", table(&lines(setting, phases)));
}

/// Prints the result lines: all tasks first, then their traces, then the phases.
pub fn print_lines(setting: &Setting, phases: &[Phase]) {
    print(setting, phases, &lines(setting, phases));
}

fn lines(setting: &Setting, phases: &[Phase]) -> Vec<PhaseLines> {
    let phases = phases.iter();
    phases
        .map(|phase| results::phase_lines(setting, phase))
        .collect()
}

fn print(setting: &Setting, phases: &[Phase], lines: &[PhaseLines]) {
    for task in lines.iter().flat_map(|phase| &phase.tasks) {
        println!("{}", task.to_line());
    }
    for phase in phases {
        for line in results::trace_lines(setting, phase) {
            println!("{}", line.to_line());
        }
    }
    for phase in lines {
        println!("{}", phase.run.to_line());
    }
}
