//! A profile that is replaced on the disk again and again, until a test kills the machine. First
//! each boot says what the boot before has left on the disk. That must never be worse than a
//! refused profile.

use alloc::vec::Vec;

use sched_tests_common::{
    kept::{self, Found, Origin},
    platform::{self, Gate, println},
};

/// The number of tasks, enough for a profile of several sectors.
const TASKS: usize = 64;
/// The number of times that the profile is replaced, if the machine is not killed.
const TIMES: usize = 40;

/// Runs the case.
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
