//! Promises of MLFQ; and the same where it resets so often that each test sees it.

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::{Beside, Load, Promises};
use axsched_ext::mlfq::RESET_TICKS;
use axsched_ext::model::{MaxWait, ModelTask};
use axsched_ext::{MlfqScheduler, MlfqTask};
use proptest::prelude::*;

use crate::common::{late_ticks, machine, program, proptest_config};

/// Twice the turn level by level, and no reset before the end.
pub const TURNS: &str = "a2 b1 a2 b2 a4 b4 a8 b8 a10 s2 a5 b15";

pub fn promises() -> Promises {
    promises_of::<RESET_TICKS>()
}

fn promises_of<const RESET: u32>() -> Promises {
    Promises {
        max_wait: waits::<RESET>,
        done_beside: beside::<RESET>,
        ..Promises::default()
    }
}

fn waits<const RESET: u32>(load: &Load<'_>) -> MaxWait {
    let bound = || late_ticks(load, u64::from(RESET) + 2 * load.tasks);
    MaxWait {
        time: load.config.preempt.then(bound),
        ..MaxWait::default()
    }
}

/// An equal share of each level, and the longest wait.
fn beside<const RESET: u32>(beside: &Beside) -> Option<u64> {
    let tasks = beside.yielders + 1;
    Some(beside.job_ticks * tasks + u64::from(RESET) + 2 * tasks)
}

const OFTEN: u32 = 20;

fn resets_often(_cpu: usize) -> MlfqScheduler<ModelTask, VirtualClock, OFTEN> {
    MlfqScheduler::new()
}

#[test]
fn conforms_with_frequent_resets() {
    crate::conforms(&promises_of::<OFTEN>(), true, resets_often, MlfqTask::new);
}

#[test]
fn a_reset_begins_anew() {
    assert_eq!(
        crate::turns(resets_often, MlfqTask::new),
        "a2 b1 a2 b2 a4 b4 a6 b1 a2 b2 a4 b4 a7 b1 s1 a2 b2 s1 a2 b13"
    );
}

proptest! {
    #![proptest_config(proptest_config(150))]

    #[test]
    fn runs_any_program_with_frequent_resets(config in machine(), main in program()) {
        crate::runs(config, &main, &promises_of::<OFTEN>(), resets_often, MlfqTask::new)?;
    }
}
