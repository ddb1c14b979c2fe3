//! Each rule has a test of its name; `conforms` runs the suite that holds for every policy.

use std::sync::Arc;

use sched_core::BaseScheduler;
use sched_model::conformance::{Promises, check};
use sched_model::model::MaxWait;

use super::*;

#[test]
fn conforms() {
    let promises = Promises {
        max_wait: |load| MaxWait {
            dispatches: Some(load.tasks),
            ..MaxWait::default()
        },
        ..Promises::default()
    };
    check(&promises, |_cpu| PaceScheduler::new(), PaceTask::new).unwrap();
}

fn scheduler_with(tasks: u32) -> PaceScheduler<u32> {
    let mut scheduler = PaceScheduler::new();
    (0..tasks).for_each(|i| scheduler.add_task(Arc::new(PaceTask::new(i))));
    scheduler
}

#[test]
fn rule_1_order_of_readiness() {
    let mut scheduler = scheduler_with(3);
    for (expected, preempt) in [(0, true), (1, false), (2, true), (0, false)] {
        let task = scheduler.pick_next_task().unwrap();
        assert_eq!(*task.inner(), expected);
        scheduler.put_prev_task(task, preempt);
    }
}

#[test]
fn rule_2_slice_shrinks_as_more_tasks_are_ready() {
    for (ready, ticks) in [(2, 6), (3, 4), (5, 2), (12, 1), (20, 1)] {
        let mut scheduler = scheduler_with(ready);
        for _ in 0..2 {
            let task = scheduler.pick_next_task().unwrap();
            assert!((1..ticks).all(|_| !scheduler.task_tick(&task)), "{ready}");
            assert!(scheduler.task_tick(&task), "{ready}");
            scheduler.put_prev_task(task, true);
        }
    }
}

#[test]
fn rule_2_lone_task_is_never_preempted() {
    let mut scheduler = scheduler_with(2);
    let blocked = scheduler.pick_next_task().unwrap();
    let other = scheduler.pick_next_task().unwrap();
    assert!((0..100).all(|_| !scheduler.task_tick(&other)));
    assert!(scheduler.remove_task(&blocked).is_none());
}
