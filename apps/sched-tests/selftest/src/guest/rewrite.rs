//! A profile that is replaced on the disk again and again, for somebody to pull the
//! plug. What the next boot finds is said first, and must never be worse than
//! a refused profile.

use alloc::vec::Vec;

use sched_tests_common::{
    kept::{self, Found, Origin},
    platform::{self, Gate, println},
};

/// Enough for a profile of several sectors.
const TASKS: usize = 64;
/// How often it is replaced, if nobody pulls the plug.
const TIMES: usize = 40;

/// See the module's documentation.
pub fn run() {
    let about = kept::about("selftest-rewrite");
    match kept::start(&about) {
        Found::Nothing => println!("REWRITE found nothing"),
        Found::Started { origin, tasks } => {
            assert!(origin == Origin::Disk && tasks == TASKS, "another profile");
            println!("REWRITE found {tasks} tasks");
            super::verdict(true);
            rewrite(&kept::measured(&about).expect("what was found can be kept"));
            return;
        }
        Found::Refused { why, .. } => println!("REWRITE refused: {why}"),
    }
    axsched_ext::syscall::measure_start().expect("it can be measured");
    let gate = Gate::opened();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| platform::spawn("task", &gate, platform::yield_now))
        .collect();
    for task in tasks {
        task.join();
    }
    axsched_ext::syscall::measure_end().expect("it was measured");
    super::verdict(true);
    rewrite(&kept::measured(&about).expect("it can be kept"));
}

fn rewrite(profile: &[u8]) {
    for time in 1..=TIMES {
        println!("REWRITE {time}");
        let saved = kept::save(profile).expect("BLK=y");
        saved.expect("the disk takes it");
    }
    println!("REWRITE done");
}
