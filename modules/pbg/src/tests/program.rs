//! Which task is which: rule 1.

use super::cpu::*;
use crate::task::Role;
use sched_core::BaseScheduler;
use sched_core::units::TaskKey;

#[test]
fn rule_1_keys_are_paths_of_spawns_from_the_root() {
    let mut cpu = Cpu::boot();
    cpu.spawn("older");
    cpu.control.measure_start().unwrap();
    cpu.trace("spawn a, block>gc, spawn of gc, block>older, spawn of older");
    cpu.trace("block>a, spawn a/0, wake main, spawn a/1, block>of gc, block>of older");
    cpu.trace("block>a/0, block>main, spawn b (the root goes on counting where it was)");
    cpu.measure_end().unwrap();
    let a = TaskKey::ROOT.child(0);
    assert_eq!(
        cpu.keys(),
        [a, a.child(0), a.child(1), TaskKey::ROOT.child(1)]
    );
}

#[test]
fn rule_1_the_root_may_be_any_task() {
    let mut cpu = Cpu::boot();
    cpu.trace("spawn driver, block>gc, block>driver");
    cpu.control.measure_start().unwrap();
    cpu.trace("spawn a, block>a (before the queue has looked twice), wake gc, wake driver");
    cpu.trace("block>gc, spawn of gc, block>driver, spawn b");
    assert_eq!(cpu.measure_end(), Ok(2));
}

/// Two measurements without a pick in between: the address of the root is forgotten, its role is
/// not.
#[test]
fn rule_1_the_root_is_still_the_root_of_the_measurement_after() {
    let mut cpu = Cpu::boot();
    cpu.trace("spawn driver, yield>gc, yield>driver");
    cpu.control.measure_start().unwrap();
    cpu.spawn("of the one before");
    cpu.measure_end().unwrap();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    while cpu.yield_now() != "driver" {}
    cpu.spawn("b");
    assert_eq!(cpu.measure_end(), Ok(2));
}

/// A tick, or an earlier measurement, may have looked at it.
#[test]
fn rule_1_main_is_the_root_whatever_happened_before_its_first_pick() {
    for (ticks, measured_before) in [(0, false), (1, false), (0, true), (3, true)] {
        let mut cpu = Cpu::boot();
        cpu.trace(&std::format!("{ticks}x interrupt"));
        if measured_before {
            cpu.control.measure_start().unwrap();
            cpu.spawn("of the one before");
            let main = cpu.current.clone().unwrap();
            cpu.scheduler.task_tick(&main);
            cpu.measure_end().unwrap();
        }
        cpu.control.measure_start().unwrap();
        cpu.trace("spawn early, block, wake main");
        while cpu.yield_now() != "main" {}
        cpu.trace("spawn late, yield");
        assert_eq!(cpu.measure_end(), Ok(2), "{ticks} {measured_before}");
    }
}

#[test]
fn rule_1_roles_are_distinct() {
    let roles = [Role::OUTSIDE, Role::ROOT, Role::UNKNOWN, Role::of(0)];
    for (i, a) in roles.iter().enumerate() {
        for (j, b) in roles.iter().enumerate() {
            assert_eq!(a == b, i == j, "{i} {j}");
        }
    }
}

#[test]
fn rule_1_a_label_set_by_an_outsider_has_no_effect() {
    let mut cpu = Cpu::measuring();
    cpu.spawn_labelled(&["worker"]);
    cpu.trace("block>gc, yield>worker, +10, block, wake main, yield>main");
    cpu.follow(1);
    cpu.trace("block>gc");
    cpu.spawn_labelled(&["worker"]);
    assert_eq!(cpu.matches(), (0, 0));
}

#[test]
fn rule_1_a_label_survives_another_order_of_spawns() {
    let mut cpu = Cpu::measuring();
    cpu.spawn_labelled(&["long", "short"]);
    cpu.trace("spawn third (without a label: the third of its parent all the same)");
    cpu.trace("block>gc, block>long, +100, block>short, +10, block>third, +1, block");
    cpu.trace("wake main, pick");
    cpu.measure_end().unwrap();
    let [long, short] = ["long", "short"].map(TaskKey::labelled);
    assert_eq!(cpu.keys(), [long, short, TaskKey::ROOT.child(2)]);
    cpu.control.start_pbg().unwrap();
    cpu.spawn_labelled(&["short", "long"]);
    cpu.spawn("third");
    assert_eq!(cpu.matches(), (3, 0));
    cpu.trace("block>third, block>short, block>long");
}

/// `worker` has a label, and another task spawns it in the replay.
#[test]
fn rule_1_a_label_counts_under_an_unknown_parent() {
    let mut cpu = Cpu::measuring();
    cpu.trace("spawn parent, block>gc, block>parent");
    cpu.spawn_labelled(&["worker"]);
    cpu.trace("block>worker, +10, block, wake main, pick");
    cpu.follow(2);
    cpu.trace("spawn parent, spawn new, block>parent, block>new");
    cpu.spawn_labelled(&["worker"]);
    cpu.spawn("of an unknown");
    assert_eq!(cpu.matches(), (2, 1));
}

/// Two tasks have one label, and one of them spawns a task with a label of its own.
#[test]
fn rule_1_children_of_twins_are_planned_only_by_label() {
    let program = |cpu: &mut Cpu| {
        cpu.spawn_labelled(&["twin", "twin"]);
        cpu.trace("block");
        while cpu.name() != "twin" {
            cpu.block();
        }
        cpu.spawn_labelled(&["child"]);
        cpu.spawn("another");
        while cpu.name() != "idle" {
            cpu.trace("+10, block");
        }
        cpu.trace("wake main, pick");
    };
    let mut cpu = Cpu::measuring();
    program(&mut cpu);
    cpu.follow(1);
    program(&mut cpu);
    let status = cpu.status();
    assert_eq!((status.matched, status.missing()), (1, 0));
}
