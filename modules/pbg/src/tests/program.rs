//! Who is who: rule 1.

use super::cpu::*;
use crate::task::Role;
use sched_core::BaseScheduler;
use sched_core::units::TaskKey;

#[test]
fn rule_1_keys_are_paths_of_spawns_from_the_root() {
    let mut cpu = Cpu::boot();
    cpu.spawn("older than the call");
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    let main = cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.spawn("of gc");
    cpu.block();
    assert_eq!(cpu.name(), "older than the call");
    cpu.spawn("of the older");
    cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.spawn("a/0");
    cpu.wake(&main);
    cpu.spawn("a/1");
    for expected in ["of gc", "of the older", "a/0", "main"] {
        cpu.block();
        assert_eq!(cpu.name(), expected);
    }
    cpu.spawn("b"); // the root goes on counting where it was
    cpu.measure_end().unwrap();
    let profile = cpu.profile();
    let a = TaskKey::ROOT.child(0);
    let keys: Vec<_> = profile.tasks.iter().map(|t| t.key).collect();
    assert_eq!(keys, [a, a.child(0), a.child(1), TaskKey::ROOT.child(1)]);
}

#[test]
fn rule_1_the_root_may_be_any_task() {
    let mut cpu = Cpu::boot();
    cpu.spawn("driver");
    cpu.block();
    let main_waits = cpu.block();
    assert_eq!(cpu.name(), "driver");
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    let driver = cpu.block(); // before the queue has looked twice
    assert_eq!(cpu.name(), "a");
    cpu.wake(&main_waits);
    cpu.wake(&driver);
    cpu.block();
    assert_eq!(cpu.name(), "gc", "the handle that waited");
    cpu.spawn("of gc");
    cpu.block();
    assert_eq!(cpu.name(), "driver");
    cpu.spawn("b");
    assert_eq!(cpu.measure_end(), Ok(2));
}

/// Two measurements without a pick in between: its address is forgotten, it is not.
#[test]
fn rule_1_the_root_is_still_the_root_of_the_measurement_after() {
    let mut cpu = Cpu::boot();
    cpu.spawn("driver");
    cpu.yield_now();
    assert_eq!(cpu.yield_now(), "driver");
    cpu.control.measure_start().unwrap();
    cpu.spawn("of the one before");
    cpu.measure_end().unwrap();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    while cpu.yield_now() != "driver" {}
    cpu.spawn("b");
    assert_eq!(cpu.measure_end(), Ok(2));
}

/// A tick may look at it, and so may an earlier measurement: it is still itself.
#[test]
fn rule_1_main_is_the_root_whatever_happened_before_its_first_pick() {
    for (ticks, measured_before) in [(0, false), (1, false), (0, true), (3, true)] {
        let mut cpu = Cpu::boot();
        for _ in 0..ticks {
            cpu.interrupt();
        }
        if measured_before {
            cpu.control.measure_start().unwrap();
            cpu.spawn("of the one before");
            let main = cpu.current.clone().unwrap();
            cpu.scheduler.task_tick(&main);
            cpu.measure_end().unwrap();
        }
        cpu.control.measure_start().unwrap();
        cpu.spawn("early");
        let main = cpu.block();
        cpu.wake(&main);
        while cpu.name() != "main" {
            cpu.yield_now();
        }
        cpu.spawn("late");
        cpu.yield_now();
        assert_eq!(cpu.measure_end(), Ok(2), "{ticks} {measured_before}");
    }
}

#[test]
fn rule_1_nobody_is_taken_for_the_root_or_for_a_stranger() {
    let roles = [Role::OUTSIDE, Role::ROOT, Role::UNKNOWN, Role::of(0)];
    for (i, a) in roles.iter().enumerate() {
        for (j, b) in roles.iter().enumerate() {
            assert_eq!(a == b, i == j, "{i} {j}");
        }
    }
}

#[test]
fn rule_1_a_label_that_a_stranger_sets_is_nobodys() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    let main = cpu.block();
    assert_eq!(cpu.yield_now(), "worker"); // gc stays
    cpu.run(10);
    cpu.block();
    cpu.wake(&main);
    while cpu.name() != "main" {
        cpu.yield_now();
    }
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    assert_eq!((cpu.status().matched, cpu.status().unplanned), (0, 0));
}

#[test]
fn rule_1_a_label_survives_another_order_of_spawns() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    for name in ["long", "short"] {
        cpu.control.label_next(name).unwrap();
        cpu.spawn(name);
    }
    cpu.spawn("third"); // without a label: the third of its parent all the same
    let main = cpu.block();
    cpu.block(); // gc
    for run in [100, 10, 1] {
        cpu.run(run);
        cpu.block();
    }
    cpu.wake(&main);
    cpu.pick();
    cpu.measure_end().unwrap();
    let keys: Vec<_> = cpu.profile().tasks.iter().map(|t| t.key).collect();
    let [long, short] = ["long", "short"].map(TaskKey::labelled);
    assert_eq!(keys, [long, short, TaskKey::ROOT.child(2)]);
    cpu.control.start_pbg().unwrap();
    for name in ["short", "long"] {
        cpu.control.label_next(name).unwrap();
        cpu.spawn(name);
    }
    cpu.spawn("third");
    assert_eq!((cpu.status().matched, cpu.status().unplanned), (3, 0));
    cpu.block();
    for expected in ["third", "short", "long"] {
        assert_eq!(cpu.name(), expected);
        cpu.block();
    }
}

/// `worker` has a label; the replay's program has another task to spawn it.
#[test]
fn rule_1_a_label_counts_under_an_unknown_parent() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("parent");
    let main = cpu.block();
    cpu.block(); // gc
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    cpu.block();
    cpu.run(10);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(2));
    cpu.control.start_pbg().unwrap();
    cpu.spawn("parent");
    cpu.spawn("new");
    cpu.block();
    cpu.block(); // parent
    assert_eq!(cpu.name(), "new");
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    cpu.spawn("of an unknown");
    let status = cpu.status();
    assert_eq!((status.matched, status.unplanned), (2, 1));
}

/// Two tasks with one label; one of them spawns one with a label of its own.
#[test]
fn rule_1_what_twins_spawn_is_planned_only_by_its_label() {
    let program = |cpu: &mut Cpu| {
        for _ in 0..2 {
            cpu.control.label_next("twin").unwrap();
            cpu.spawn("twin");
        }
        let main = cpu.block();
        while cpu.name() != "twin" {
            cpu.block();
        }
        cpu.control.label_next("child").unwrap();
        cpu.spawn("child");
        cpu.spawn("another");
        while cpu.name() != "idle" {
            cpu.run(10);
            cpu.block();
        }
        cpu.wake(&main);
        cpu.pick();
    };
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    program(&mut cpu);
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    program(&mut cpu);
    let status = cpu.status();
    assert_eq!((status.matched, status.missing()), (1, 0));
}
