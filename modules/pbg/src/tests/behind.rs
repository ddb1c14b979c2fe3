//! A plan that is slower: rule 11.

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;
use sched_core::units::TaskKey;

/// Measures a gate of 10 ticks, `waiting` tasks that wait for it, and two that are shorter than the
/// gate.
fn measured_with_a_gate(waiting: usize) -> Cpu {
    let mut runs = vec![("gate", 10 * TICK)];
    runs.extend(vec![("waits", 10); waiting]);
    runs.extend([("short", 9 * TICK); 2]);
    measured(&runs)
}

/// Replays it: the waiting tasks look first, and again at each tick, in vain, while the shorter
/// tasks run. Returns which of 18 ticks found the replay behind, if one did.
fn replayed_with_a_gate(cpu: &mut Cpu, waiting: usize) -> Option<u64> {
    cpu.trace("spawn gate, +1");
    cpu.spawn_all(vec!["waits"; waiting]);
    cpu.trace("spawn short, spawn short");
    cpu.block(); // main
    let mut found = None;
    for tick in 1..=18 {
        while cpu.name() == "waits" {
            cpu.trace("block");
        }
        cpu.trace("on>short, +1t");
        if tick == 9 {
            cpu.block(); // the first has ended, just before the tick
        }
        while cpu.asleep("waits").is_some() {
            cpu.trace("wake waits");
        }
        cpu.interrupt();
        if cpu.status().first.is_some() {
            found = found.or(Some(tick));
        }
        if cpu.status().dropped {
            break;
        }
    }
    found
}

#[test]
fn rule_11_a_plan_that_is_behind_the_measured_run_is_dropped() {
    // The measured turnarounds are 10,000 for the gate, 10,010 to 10,030, 19,030 and 28,030. A
    // twentieth of their sum is 4,356. After 13 ticks the gate and the tasks that wait for it are
    // late by 3,000 each, less 60 in all. The first short task was early by 4,000, so the sum is
    // 7,940. After 14 ticks it is 10,940, which is above 4,356 and six ticks.
    let mut cpu = measured_with_a_gate(3);
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    let status = cpu.status();
    assert!(status.dropped && status.demoted == 0, "{status}");
    let first = status.first.unwrap();
    let gate = TaskKey::ROOT.child(0);
    assert_eq!((first.cause, first.task), (Cause::Turnaround, gate));
    assert_eq!((first.expected, first.found), (10 * TICK, 14 * TICK + 1));

    // The running task has a slice; then the late tasks run, in order of arrival.
    cpu.trace(&std::format!("on>short, {}x interrupt", SLICE_TICKS - 1));
    cpu.trace("on>gate, yield>waits, yield>waits, yield>waits, yield>short, yield>gate");
}

#[test]
fn rule_11_a_large_plan_is_looked_at_in_parts() {
    // 73 tasks are two ticks' looks. The first round in which 64 of them are late by 3,000
    // and seven by 4,000 is above a twentieth of 758,445 and 73 ticks: 13 and 14.
    let mut cpu = measured_with_a_gate(70);
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 70), Some(14));
}

#[test]
fn rule_11_the_plan_stays_if_the_call_or_the_user_asks_for_it() {
    for (on_slow_replay, has_priorities) in [
        (OnSlowReplay::KeepPlan, false),
        (OnSlowReplay::DropPlan, true),
    ] {
        let mut cpu = measured_with_a_gate(3);
        if has_priorities {
            edited(&cpu, |tasks| {
                for task in &mut tasks[1..] {
                    task.priority = core::num::NonZeroU8::new(1);
                }
            });
        }
        cpu.control.start_pbg_with(on_slow_replay).unwrap();
        assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
        assert!(!cpu.status().dropped);
    }
}

/// A planned task waits for an unknown one, which the measured run did not have.
#[test]
fn rule_11_time_of_unknown_tasks_is_not_counted_and_idle_time_is() {
    let mut cpu = following(&[("a", 10)], &["unknown"]);
    cpu.trace("block>unknown, 100x tick>unknown, wake a, interrupt");
    assert!(!cpu.status().behind, "{}", cpu.status());
    cpu.trace("yield>a, block>unknown, block, +100t, wake a, pick, interrupt");
    assert!(cpu.status().behind, "{}", cpu.status());
}

/// A blocked task and one that has ended after fewer blocks than recorded look alike: neither gets
/// later, and the blocked one counts once it wakes.
#[test]
fn rule_11_a_task_that_may_have_ended_does_not_get_later() {
    // `a` blocks eight times and lives for 8,091; all together may be 405 late.
    let mut cpu = with_a_task_that_blocks(&[10; 8], TICK, 10);
    cpu.trace("spawn a, block>a, +10, block, +200t, wake main, pick, spawn b, block");
    cpu.trace("+1, interrupt>b, +1, interrupt>b, +1, interrupt>b");
    assert!(!cpu.status().behind, "{}", cpu.status());
    cpu.trace("wake a, interrupt");
    assert!(cpu.status().behind, "{}", cpu.status());
}

#[test]
fn rule_11_a_task_that_was_removed_does_not_get_later() {
    // Measured turnarounds of 10 and 100,010: together they may be 5,001 and two ticks late.
    let mut cpu = replaying(&[("a", 10), ("b", 100 * TICK)]);
    let a = cpu.spawn("a");
    cpu.spawn("b");
    cpu.scheduler.remove_task(&a).expect("it is ready");
    cpu.trace("block>b, 50x tick>b");
    assert!(!cpu.status().behind, "{}", cpu.status());
    // Put back, it is ready, and has lived for 50 ticks.
    cpu.wake(&a);
    cpu.interrupt();
    assert!(cpu.status().behind, "{}", cpu.status());
}

/// In one burst, which has not been charged yet.
#[test]
fn rule_11_time_beyond_a_record_is_not_counted() {
    let mut cpu = following(&[("over", 10 * TICK)], &[]);
    cpu.trace("19x tick>over");
    assert!(!cpu.status().dropped, "{}", cpu.status());
}

/// One has ten times as much to do, is demoted, and gets a turn now and then. It alone is
/// later than all together may be.
#[test]
fn rule_11_a_task_that_has_grown_does_not_drop_the_plan_by_its_lateness() {
    let mut left = [("grown", 20), ("b", 100), ("c", 100)];
    let mut cpu = following(
        &[("grown", 2 * TICK), ("b", 100 * TICK), ("c", 100 * TICK)],
        &[],
    );
    while cpu.name() != "idle" {
        cpu.run(TICK);
        let task = left.iter_mut().find(|task| task.0 == cpu.name()).unwrap();
        task.1 -= 1;
        if task.1 == 0 {
            cpu.block();
        } else {
            cpu.interrupt();
        }
        assert!(!cpu.status().dropped, "{left:?}: {}", cpu.status());
    }
    assert_eq!((left.map(|task| task.1), cpu.status().demoted), ([0; 3], 1));
}

#[test]
fn rule_11_the_status_tells_how_long_all_have_lived() {
    // Measured: a from 0 to 1000, b from 0 to 1100, in all 2100.
    let mut cpu = replaying(&[("a", 1000), ("b", 100)]);
    assert_eq!(cpu.status().turnaround_permille, 0);
    for (trace, permille) in [
        ("spawn a, spawn b, block>b, +100, block", 47), // 100
        ("+1000, block", 571),                          // and 1100
        ("wake b, pick, +5, block", 1050),              // 1105 and 1100
    ] {
        cpu.trace(trace);
        assert_eq!(cpu.status().turnaround_permille, permille);
    }
    assert!(!cpu.status().behind, "not by more than a twentieth: 2205");
    cpu.trace("wake a, pick, +1, block");
    assert!(cpu.status().behind, "{}", cpu.status());
}
