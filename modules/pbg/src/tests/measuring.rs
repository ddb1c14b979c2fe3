//! Measuring: rules 2 to 4.

use super::cpu::*;
use crate::*;
use pbg_profile::StoredTask;

#[test]
fn rule_2_round_robin_runs_unless_a_plan_is_followed() {
    let mut cpu = Cpu::boot();
    for name in ["a", "b"] {
        cpu.spawn(name);
    }
    for measuring in [false, true] {
        if measuring {
            cpu.control.measure_start().unwrap();
        }
        let start = cpu.name();
        let turns: Vec<_> = (0..3 * 4 * SLICE_TICKS).map(|_| cpu.interrupt()).collect();
        // Every 5th tick changes the task, and all four take turns.
        for (i, name) in turns.iter().enumerate() {
            let before = if i == 0 { start } else { turns[i - 1] };
            assert_eq!(
                name != &before,
                (i + 1) % SLICE_TICKS == 0,
                "tick {i} of {turns:?}"
            );
        }
        assert_eq!(turns[4 * SLICE_TICKS - 1], start);
    }
}

#[test]
fn rule_3_a_run_interval_ends_at_yield_preemption_block_and_exit() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    let b = cpu.spawn("b");
    cpu.run(1_000_000); // the root's own time is nobody's
    cpu.block();
    cpu.block(); // gc
    cpu.run(3);
    assert_eq!(cpu.yield_now(), "b");
    cpu.run(20);
    cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.run(5);
    (1..SLICE_TICKS).for_each(|_| assert_eq!(cpu.interrupt(), "a"));
    assert_eq!(cpu.interrupt(), "a", "preempted, and alone");
    cpu.run(7);
    cpu.block();
    assert_eq!(cpu.name(), "idle");
    cpu.run(1_000_000); // idle time is nobody's
    cpu.wake(&b);
    assert_eq!(cpu.pick(), "b");
    cpu.run(40);
    cpu.block(); // b exits
    cpu.measure_end().unwrap();
    let profile = cpu.profile();
    let [a, b] = &profile.tasks[..] else {
        panic!("{profile:?}")
    };
    // run, ready, blocked; dispatches, yields, preemptions, blocks
    let figures = |task: &StoredTask| task.figures.to_array().map(|figure| figure.total);
    assert_eq!(figures(a), [15, 1_000_020, 0, 3, 1, 1, 0]);
    assert_eq!(figures(b), [60, 1_000_003, 1_000_012, 2, 0, 0, 1]);
}

#[test]
fn rule_3_a_second_measurement_starts_from_nothing() {
    let mut cpu = measured(&[("a", 10), ("b", 20)]);
    cpu.control.measure_start().unwrap();
    cpu.spawn("c");
    let main = cpu.block();
    cpu.run(7);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(runs(&cpu.profile()), [7]);
}

#[test]
fn rule_4_tasks_that_share_a_label_count_as_unrecorded() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    for _ in 0..2 {
        cpu.control.label_next("twin").unwrap();
        cpu.spawn("twin");
    }
    cpu.spawn("other");
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(cpu.profile().header.unrecorded, 2);
}

#[test]
fn rule_4_tasks_beyond_the_table_run_unrecorded() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    let all: Vec<_> = (0..MAX_TASKS + 50).map(|_| cpu.spawn("many")).collect();
    cpu.block();
    cpu.block(); // gc
    for _ in &all {
        assert_eq!(cpu.name(), "many");
        cpu.run(1);
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
    assert_eq!(cpu.measure_end(), Ok(MAX_TASKS));
    assert_eq!(cpu.profile().header.unrecorded, 50);
    // And so it is when the plan is followed.
    let main = task("main again");
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.control.start_pbg(), Ok(MAX_TASKS));
    (0..MAX_TASKS + 50).for_each(|_| drop(cpu.spawn("many")));
    assert_eq!(
        (cpu.status().matched, cpu.status().unplanned),
        (MAX_TASKS as u32, 50)
    );
    cpu.block();
    for _ in 0..MAX_TASKS + 50 {
        assert_eq!(cpu.name(), "many");
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
}

#[test]
fn rule_2_under_fifo_no_tick_preempts_while_measuring() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start_under(BasePolicy::Fifo).unwrap();
    cpu.spawn("a");
    cpu.block();
    cpu.block(); // gc
    cpu.spawn("b");
    (0..3 * SLICE_TICKS).for_each(|_| assert_eq!(cpu.interrupt(), "a"));
    cpu.measure_end().unwrap();
    assert_eq!(cpu.profile().header.policy.as_str(), "fifo");
    assert_eq!(cpu.interrupt(), "b", "the slice is long over");
}
