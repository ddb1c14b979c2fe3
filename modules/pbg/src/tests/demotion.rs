//! Who overruns it: rule 8.

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;
use sched_core::units::TaskKey;

#[test]
fn rule_8_a_task_far_beyond_its_plan_is_demoted_and_the_rest_stands() {
    let (mut cpu, _) = following(
        &[("runaway", 5_000), ("next", 60_000), ("last", 70_000)],
        &[],
    );
    // Beyond twice 5,000 at the 11th tick of 1,000; demoted at the second that says so.
    let turn = (1..).find(|_| cpu.tick() != "runaway").unwrap();
    assert_eq!(turn, 12);
    assert_eq!((cpu.name(), cpu.status().demoted), ("next", 1));
    // From now on it has the share of a task outside the plan.
    let had = cpu.shares(10);
    assert_eq!((had["next"], had["runaway"]), (9, 1));
    cpu.block();
    assert_eq!(cpu.name(), "last");
    cpu.block();
    assert_eq!(cpu.name(), "runaway", "and it is not lost");
    assert_eq!(cpu.yield_now(), "runaway");
}

#[test]
fn rule_8_running_as_planned_is_never_demoted() {
    let (mut cpu, _) = following(&[("steady", 10_000)], &[]);
    for _ in 0..20 {
        // Up to twice the plan, in bursts cut by yields and ticks.
        cpu.tick();
        cpu.yield_now();
    }
    assert_eq!(cpu.status().demoted, 0);
}

#[test]
fn rule_8_time_before_a_block_counts_too() {
    let mut cpu = measured(&[("blocks", 10)]);
    cpu.control.start_pbg_with(Behind::Keep).unwrap(); // asleep for so long
    cpu.spawn("blocks");
    cpu.block();
    for _ in 0..3 {
        cpu.run(8);
        let blocked = cpu.block();
        cpu.run(1_000_000); // asleep
        cpu.wake(&blocked);
        cpu.pick();
    }
    assert_eq!(cpu.interrupt(), "blocks");
    assert_eq!(
        cpu.status().demoted,
        0,
        "24 of 10: the first tick to find it so"
    );
    cpu.interrupt();
    assert_eq!(cpu.status().demoted, 1);
}

#[test]
fn rule_8_a_task_that_no_tick_ever_meets_is_demoted_too() {
    let (mut cpu, _) = following(&[("evades", 10), ("waits", 1_000_000_000)], &[]);
    for handover in 1..=OVERRUN_HANDOVERS {
        assert_eq!(
            (cpu.name(), cpu.status().demoted),
            ("evades", 0),
            "{handover}"
        );
        cpu.run(900);
        let asleep = cpu.block();
        assert_eq!(cpu.name(), "waits");
        cpu.wake(&asleep);
        cpu.yield_now();
    }
    assert_eq!((cpu.name(), cpu.status().demoted), ("waits", 1));
}

#[test]
fn rule_8_a_demoted_task_goes_to_the_end_of_the_queue() {
    let (mut cpu, _) = following(&[("runaway", 10), ("planned", 1_000_000_000)], &["patient"]);
    while cpu.name() != "patient" {
        cpu.tick();
        assert!(
            cpu.name() != "runaway" || cpu.status().demoted == 0,
            "it has jumped the queue"
        );
    }
}

#[test]
fn rule_8_a_task_demoted_at_its_first_tick_goes_there_too() {
    let mut cpu = replaying(&[("runaway", 10), ("planned", 1_000_000_000)]);
    cpu.spawn("runaway");
    cpu.block();
    for _ in 1..OVERRUN_HANDOVERS {
        cpu.run(1000);
        let runaway = cpu.block();
        cpu.wake(&runaway);
        assert_eq!((cpu.pick(), cpu.status().demoted), ("runaway", 0));
    }
    cpu.spawn("patient");
    assert_eq!((cpu.tick(), cpu.status().demoted), ("patient", 1));
}

#[test]
fn rule_8_a_task_that_yields_far_more_than_recorded_is_demoted() {
    let (mut cpu, _) = following(&[("yielder", 1_000_000), ("next", 2_000_000)], &[]);
    for _ in 0..FREE_YIELDS {
        assert_eq!(cpu.yield_now(), "yielder");
    }
    assert_eq!(cpu.status().demoted, 0);
    assert_eq!(cpu.yield_now(), "next");
    let first = cpu.status().first.unwrap();
    assert_eq!(cpu.status().demoted, 1);
    assert_eq!(
        (first.cause, first.task, first.expected, first.found),
        (Cause::Yields, TaskKey::ROOT.child(0), 0, FREE_YIELDS + 1)
    );
    assert_eq!(cpu.yield_now(), "next");
}

#[test]
fn rule_8_recorded_yields_may_be_twice_as_many() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("yielder");
    let main = cpu.block();
    cpu.block(); // gc
    (0..100).for_each(|_| assert_eq!(cpu.yield_now(), "yielder"));
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    cpu.spawn("yielder");
    cpu.spawn("unknown");
    cpu.block();
    let may = OVERRUN_FACTOR * 100 + FREE_YIELDS;
    (0..may).for_each(|_| assert_eq!(cpu.yield_now(), "yielder"));
    assert_eq!(cpu.yield_now(), "unknown");
}

/// What was granted and not used is not counted when the task loses the CPU.
#[test]
fn rule_8_yields_before_a_preemption_are_counted_once() {
    let (mut cpu, _) = following(&[("yielder", 1_000_000)], &["unknown"]);
    for _ in 0..FREE_YIELDS / 3 {
        for _ in 0..3 {
            assert_eq!(cpu.yield_now(), "yielder");
        }
        assert_eq!(cpu.preempt(), "yielder");
    }
    assert_eq!(cpu.status().demoted, 0);
    for _ in 0..FREE_YIELDS % 3 {
        assert_eq!(cpu.yield_now(), "yielder");
    }
    assert_eq!(cpu.yield_now(), "unknown", "one too many");
}

/// Yields are counted whether or not they keep the CPU, and across blocks.
#[test]
fn rule_8_yields_before_a_block_count_too() {
    let (mut cpu, _) = following(&[("yielder", 1_000_000)], &[]);
    for round in 0.. {
        for _ in 0..FREE_YIELDS / 4 {
            cpu.yield_now();
        }
        let asleep = cpu.block();
        if cpu.status().demoted == 1 {
            assert_eq!(round, 4);
            break;
        }
        cpu.wake(&asleep);
        cpu.pick();
    }
}

/// It runs off the plan for so long that the last handover, to the root, is too many.
#[test]
fn rule_8_a_task_demoted_while_it_is_ready_leaves_its_place() {
    let (mut cpu, main) = following(&[("evades", 10)], &["outsider"]);
    cpu.run(30);
    for _ in 1..OVERRUN_HANDOVERS {
        let evades = cpu.block();
        cpu.wake(&evades);
        while cpu.name() != "evades" {
            cpu.yield_now();
        }
    }
    assert_eq!(cpu.status().demoted, 0);
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    assert_eq!(cpu.status().demoted, 1);
    cpu.block();
    assert_eq!(
        cpu.name(),
        "outsider",
        "who was in the fallback queue before"
    );
    assert_eq!(cpu.yield_now(), "evades");
}

#[test]
fn rule_8_yields_before_a_block_are_not_granted_again() {
    let (mut cpu, _) = following(&[("yielder", 1_000_000), ("next", 2_000_000)], &[]);
    (1..FREE_YIELDS).for_each(|_| assert_eq!(cpu.yield_now(), "yielder"));
    let asleep = cpu.block();
    cpu.wake(&asleep);
    assert_eq!(cpu.yield_now(), "yielder");
    assert_eq!(cpu.yield_now(), "yielder");
    assert_eq!(cpu.yield_now(), "next");
}

#[test]
fn rule_8_yields_before_somebody_wakes_count_too() {
    let (mut cpu, _) = following(&[("yielder", 1_000_000), ("sleeper", 2_000_000)], &[]);
    let yielder = cpu.block();
    let sleeper = cpu.block();
    cpu.wake(&yielder);
    cpu.pick();
    for i in 0..FREE_YIELDS {
        if i == FREE_YIELDS / 2 {
            cpu.wake(&sleeper);
        }
        assert_eq!(cpu.yield_now(), "yielder");
    }
    assert_eq!(cpu.yield_now(), "sleeper");
    assert_eq!(cpu.status().demoted, 1);
}

#[test]
fn rule_8_the_first_who_went_its_own_way_is_told() {
    let (mut cpu, _) = following(&[("a", 10)], &["unknown"]);
    for _ in 0..=FREE_YIELDS {
        cpu.yield_now();
    }
    assert_eq!((cpu.status().unplanned, cpu.status().demoted), (1, 1));
    let first = cpu.status().first.unwrap();
    let unknown = TaskKey::ROOT.child(1);
    assert_eq!((first.cause, first.task), (Cause::Unknown, unknown));
}

/// On several CPUs another may put somebody between a yield that keeps the CPU and its pick.
#[test]
fn rule_8_a_yield_counts_once_whoever_is_put_before_its_pick() {
    let (mut cpu, main) = following(&[("yields", 1_000_000)], &[]);
    for made in 1..=FREE_YIELDS {
        let yields = cpu.current.take().unwrap();
        cpu.scheduler.put_prev_task(yields, false);
        cpu.wake(&main);
        cpu.scheduler.remove_task(&main).expect("it is ready");
        assert_eq!(cpu.pick(), "yields");
        assert_eq!(cpu.status().demoted, 0, "after {made} yields");
    }
    cpu.yield_now();
    assert_eq!(cpu.status().demoted, 1);
}
