//! A plan that is slower: rule 11.

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;
use sched_core::units::TaskKey;

/// Measured: a gate of 10 ticks, so many who wait for it, and two shorter than the gate.
fn measured_with_a_gate(waiting: usize) -> Cpu {
    let mut runs = vec![("gate", 10 * TICK)];
    runs.extend(vec![("waits", 10); waiting]);
    runs.extend([("short", 9 * TICK); 2]);
    measured(&runs)
}

/// Replayed: those who wait look first, and again at each tick, in vain, while the shorter
/// ones run. Says which of 18 ticks found the replay behind, if one did.
fn replayed_with_a_gate(cpu: &mut Cpu, waiting: usize) -> Option<u64> {
    cpu.spawn("gate");
    cpu.run(1);
    (0..waiting).for_each(|_| drop(cpu.spawn("waits")));
    cpu.spawn("short");
    cpu.spawn("short");
    cpu.block(); // main
    let mut asleep = Vec::new();
    let mut found = None;
    for tick in 1..=18 {
        while cpu.name() == "waits" {
            asleep.push(cpu.block());
        }
        assert_eq!(cpu.name(), "short", "{tick}");
        cpu.run(TICK);
        if tick == 9 {
            cpu.block(); // the first has ended, just before the tick
        }
        asleep.drain(..).for_each(|waits| cpu.wake(&waits));
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
fn rule_11_a_replay_behind_what_was_measured_is_given_up() {
    // The measured turnarounds are 10,000 of the gate, 10,010 to 10,030, 19,030 and
    // 28,030: a twentieth of their sum is 4,356. After 13 ticks the gate and those who wait
    // for it are late by 3,000 each, less 60 in all, and the first short one was early by
    // 4,000: 7,940. After 14 it is 10,940, above 4,356 and six ticks.
    let mut cpu = measured_with_a_gate(3);
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    let status = cpu.status();
    assert!(status.dropped && status.demoted == 0, "{status}");
    let first = status.first.unwrap();
    let gate = TaskKey::ROOT.child(0);
    assert_eq!((first.cause, first.task), (Cause::Turnaround, gate));
    assert_eq!((first.expected, first.found), (10 * TICK, 14 * TICK + 1));

    // Who has the CPU has a slice; then those who are late, as they came.
    for _ in 1..SLICE_TICKS {
        assert_eq!(cpu.name(), "short");
        cpu.interrupt();
    }
    let order = ["waits", "waits", "waits", "short", "gate"];
    assert_eq!(cpu.name(), "gate");
    assert_eq!(order.map(|_| cpu.yield_now()), order);
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
fn rule_11_the_plan_stays_if_the_call_says_so() {
    let mut cpu = measured_with_a_gate(3);
    cpu.control.start_pbg_with(Behind::Keep).unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_11_the_plan_stays_if_the_user_has_asked_for_its_order() {
    let mut cpu = measured_with_a_gate(3);
    edited(&cpu, |tasks| {
        for task in &mut tasks[1..] {
            task.priority = core::num::NonZeroU8::new(1);
        }
    });
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    assert!(!cpu.status().dropped);
}

/// A planned task waits for an unknown one, which the measured run did not have.
#[test]
fn rule_11_what_unknown_tasks_take_is_not_counted() {
    let (mut cpu, _main) = following(&[("a", 10)], &["unknown"]);
    let a = cpu.block();
    for _ in 0..100 {
        assert_eq!(cpu.name(), "unknown");
        cpu.tick();
    }
    cpu.wake(&a);
    cpu.interrupt();
    assert!(!cpu.status().behind, "{}", cpu.status());
    // But what nobody does is.
    cpu.yield_now();
    let a = cpu.block();
    cpu.block(); // the unknown one
    cpu.run(100 * TICK);
    cpu.wake(&a);
    cpu.pick();
    cpu.interrupt();
    assert!(cpu.status().behind, "{}", cpu.status());
}

/// Who is blocked and who has ended after fewer blocks than recorded look alike: neither gets
/// later, and the blocked one counts once it wakes.
#[test]
fn rule_11_a_task_that_may_have_ended_does_not_get_later() {
    // `a` blocks eight times and lives for 8,091; all together may be 405 late.
    let mut cpu = with_a_task_that_blocks(&[10; 8], TICK, 10);
    cpu.spawn("a");
    let main = cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.run(10);
    let a = cpu.block();
    cpu.run(200 * TICK);
    cpu.wake(&main);
    cpu.pick();
    cpu.spawn("b");
    cpu.block();
    for _ in 0..3 {
        cpu.run(1);
        assert_eq!(cpu.interrupt(), "b");
    }
    assert!(!cpu.status().behind, "{}", cpu.status());
    cpu.wake(&a);
    cpu.interrupt();
    assert!(cpu.status().behind, "{}", cpu.status());
}

#[test]
fn rule_11_a_task_that_was_removed_does_not_get_later() {
    // Measured turnarounds of 10 and 100,010: together they may be 5,001 and two ticks late.
    let mut cpu = replaying(&[("a", 10), ("b", 100 * TICK)]);
    let a = cpu.spawn("a");
    cpu.spawn("b");
    cpu.scheduler.remove_task(&a).expect("it is ready");
    cpu.block(); // main
    for _ in 0..50 {
        assert_eq!(cpu.tick(), "b");
    }
    assert!(!cpu.status().behind, "{}", cpu.status());
    // Put back, it is ready, and has lived for 50 ticks.
    cpu.wake(&a);
    cpu.interrupt();
    assert!(cpu.status().behind, "{}", cpu.status());
}

/// In one burst, which has not been charged yet.
#[test]
fn rule_11_what_is_beyond_a_record_is_not_counted() {
    let (mut cpu, _) = following(&[("over", 10 * TICK)], &[]);
    for _ in 0..19 {
        assert_eq!(cpu.tick(), "over");
    }
    assert!(!cpu.status().dropped, "{}", cpu.status());
}

/// One has ten times as much to do, is demoted, and gets a turn now and then. It alone is
/// later than all together may be.
#[test]
fn rule_11_who_has_more_to_do_is_late_by_itself() {
    let mut left = [("grown", 20), ("b", 100), ("c", 100)];
    let mut cpu = replaying(&[("grown", 2 * TICK), ("b", 100 * TICK), ("c", 100 * TICK)]);
    for (name, _) in left {
        cpu.spawn(name);
    }
    cpu.block();
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
    cpu.spawn("a");
    cpu.spawn("b");
    cpu.block();
    assert_eq!(cpu.name(), "b");
    cpu.run(100);
    let b = cpu.block();
    assert_eq!(cpu.status().turnaround_permille, 47); // 100
    cpu.run(1000);
    let a = cpu.block();
    assert_eq!(cpu.status().turnaround_permille, 571); // and 1100
    cpu.wake(&b);
    cpu.pick();
    cpu.run(5);
    cpu.block();
    assert_eq!(cpu.status().turnaround_permille, 1050); // 1105 and 1100
    assert!(!cpu.status().behind, "not by more than a twentieth: 2205");
    cpu.wake(&a);
    cpu.pick();
    cpu.run(1);
    cpu.block();
    assert!(cpu.status().behind, "{}", cpu.status());
}
