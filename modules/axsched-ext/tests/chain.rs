//! A long chain of tasks that spawn each other takes memory in proportion to its length.

#[path = "common/memory.rs"]
mod memory;

use axsched_ext::{
    RrScheduler, RrTask,
    model::{Config, Op, Program, run},
};
use memory::{HELD, PEAK};

/// Returns a chain of `tasks` tasks, main included, in which each spawns the next.
fn chain(tasks: usize) -> Program {
    let ops = |program: Option<Program>| {
        let spawn = program.map(|program| [Op::Spawn(program), Op::DropHandle(0)]);
        spawn.into_iter().flatten().chain([Op::Run(5)])
    };
    let link = |program: Option<Program>, _| Some(Program::new("link", ops(program)));
    (0..tasks).fold(None, link).expect("a task at least")
}

/// Returns the most bytes that a chain held at once while it was made, run and dropped.
fn peak(tasks: usize) -> isize {
    let before = HELD.get();
    PEAK.set(before);
    let main = chain(tasks);
    assert_eq!(main.tasks(), tasks);
    let config = Config {
        trace_events: 0,
        is_checked: false,
        ..Config::default()
    };
    let report = run(&config, &main, |_| RrScheduler::<_, 5>::new(), RrTask::new).unwrap();
    // The report also has `gc`.
    assert_eq!(report.tasks.len(), tasks + 1);
    assert!(report.tasks.iter().all(|task| task.run_time > 0));
    drop((main, report));
    assert_eq!(HELD.get(), before);
    PEAK.get() - before
}

/// On a test's stack of 2 MiB, too: nothing is called once inside the other for each task.
#[test]
fn a_chain_of_4096_tasks_takes_memory_by_its_length() {
    let [half, all] = [2_048, 4_096].map(peak);
    println!("{half} and {all} bytes at most");
    assert!(all < half * 2 + half / 10, "{half} and {all} bytes");
}
