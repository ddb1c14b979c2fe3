//! A program that has changed since it was measured. It must finish with the right results, and the
//! divergence must be reported. Following the old plan may cost at most a tenth of the average
//! turnaround that the fallback policy alone has.
//!
//! One boot runs the changed program under round robin, measures the program as it
//! was, and replays the changed one by that plan.
//!
//! | case | what has changed | PBG knows tasks by |
//! |---|---|---|
//! | `changed-loops` | the long task is short, a short one long, the others as well | label |
//! | `changed-more` | one task more, spawned first | place |
//! | `changed-less` | one task less, the first | place |
//! | `changed-order` | the order of spawns, from last to first | place |
//! | `changed-order-labelled` | the same | label: nothing diverges |

use alloc::vec::Vec;

use axsched_ext::{pbg::CONTROL, syscall};
use sched_tests_common::{
    App, Task,
    platform::println,
    results::{Phase, Question},
    runner::{print_lines, run_phase, setting},
    work,
};

/// A task: its name, its yields, and the rounds of the loop before each. All tasks together take
/// about 0.7 s.
type Kind = (&'static str, u64, u64);

const ORIGINAL: [Kind; 5] = [
    ("long", 8, 25_000_000),
    ("short1", 2_000, 5_000),
    ("short2", 4_000, 5_000),
    ("short3", 8_000, 5_000),
    ("short4", 16_000, 5_000),
];
const MORE: Kind = ("new", 40, 2_500_000);
/// The factor by which each task's yields change, as a fraction.
const LOOPS: [(u64, u64); 5] = [(1, 8), (15, 1), (1, 2), (3, 1), (1, 4)];

/// The original, by place and by label, and the changed programs.
static WORKLOADS: [fn(u64) -> Vec<Task>; 7] = [
    |_| by_place(ORIGINAL.to_vec()),
    |_| by_label(ORIGINAL.to_vec()),
    |_| by_label(with_other_loops()),
    |_| by_place([&[MORE][..], &ORIGINAL].concat()),
    |_| by_place(ORIGINAL[1..].to_vec()),
    |_| by_place(ORIGINAL.into_iter().rev().collect()),
    |_| by_label(ORIGINAL.into_iter().rev().collect()),
];

fn with_other_loops() -> Vec<Kind> {
    let changed =
        |(kind, factor): (Kind, (u64, u64))| (kind.0, kind.1 * factor.0 / factor.1, kind.2);
    ORIGINAL.into_iter().zip(LOOPS).map(changed).collect()
}

fn by_label(kinds: Vec<Kind>) -> Vec<Task> {
    let task = |(name, yields, rounds)| {
        Task::new(name, move |ctx| {
            let x = (0..yields).fold(1, |x, _| {
                let x = work::spin(x, rounds);
                ctx.yield_now();
                x
            });
            x == work::jump(1, yields * rounds)
        })
        .yielding(yields)
    };
    kinds.into_iter().map(task).collect()
}

fn by_place(kinds: Vec<Kind>) -> Vec<Task> {
    by_label(kinds).into_iter().map(Task::unlabelled).collect()
}

pub fn loops() {
    run("selftest-changed-loops", 1, 2);
}
pub fn more() {
    run("selftest-changed-more", 0, 3);
}
pub fn less() {
    run("selftest-changed-less", 0, 4);
}
pub fn order() {
    run("selftest-changed-order", 0, 5);
}
pub fn order_labelled() {
    run("selftest-changed-order-labelled", 1, 6);
}

fn run(name: &'static str, original: usize, changed: usize) {
    let app = |which: usize| App {
        name,
        question: Question::Ends,
        tasks: WORKLOADS[which],
        holds_handles: false,
        spawned_beside: 0,
    };
    let alone = run_phase(&app(changed), "run");
    let planned = syscall::measure_start().and_then(|()| {
        let was = run_phase(&app(original), "measure");
        let recorded = syscall::measure_end()?;
        println!(
            "measured: {recorded} tasks, {}",
            if was.pass { "right" } else { "WRONG" }
        );
        syscall::start_pbg()
    });
    let mut replay = run_phase(&app(changed), "replay");
    let Ok(status) = CONTROL.status() else {
        println!("no status");
        return super::verdict(false);
    };
    println!("{status}");
    let [alone_ns, replay_ns] = [&alone, &replay].map(Phase::avg_turnaround_ns);
    println!("average turnaround {replay_ns} ns, under the fallback alone {alone_ns} ns\n");

    let differs = status.diverged() > 0 || status.missing() > 0;
    replay.pass &= planned == Ok(ORIGINAL.len())
        && replay_ns * 10 <= alone_ns * 11
        && differs != (changed == 6)
        && (status.diverged() == 0 || status.first.is_some());
    print_lines(&setting(name), &[alone, replay]);
}
