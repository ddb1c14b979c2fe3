//! Measuring: rules 2 to 4.

use super::cpu::*;
use crate::*;
use pbg_profile::StoredTask;

#[test]
fn rule_2_round_robin_runs_unless_a_plan_is_followed() {
    let mut cpu = Cpu::boot();
    cpu.trace("spawn a, spawn b");
    for measuring in [false, true] {
        if measuring {
            cpu.control.measure_start().unwrap();
        }
        let start = cpu.name();
        let turns: Vec<_> = (0..3 * 4 * SLICE_TICKS).map(|_| cpu.interrupt()).collect();
        // Every 5th tick changes the task, and all four run in turn.
        for (i, name) in turns.iter().enumerate() {
            let before = if i == 0 { start } else { turns[i - 1] };
            let is_over = (i + 1) % SLICE_TICKS == 0;
            assert_eq!(name != &before, is_over, "tick {i} of {turns:?}");
        }
        assert_eq!(turns[4 * SLICE_TICKS - 1], start);
    }
}

#[test]
fn rule_2_under_fifo_no_tick_preempts_while_measuring() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start_under(BasePolicy::Fifo).unwrap();
    cpu.trace("spawn a, block>gc, block>a, spawn b");
    cpu.trace(&std::format!("{}x interrupt>a", 3 * SLICE_TICKS));
    cpu.measure_end().unwrap();
    assert_eq!(cpu.profile().header.policy.as_str(), "fifo");
    cpu.trace("interrupt>b (the slice is long over)");
}

#[test]
fn rule_3_a_run_interval_ends_at_yield_preemption_block_and_exit() {
    let mut cpu = Cpu::measuring();
    cpu.trace("spawn a, spawn b, +1_000_000 (the root's own time counts for no task), block>gc");
    cpu.trace("block>a, +3, yield>b, +20, block>a, +5");
    cpu.trace(&std::format!("{}x interrupt>a", SLICE_TICKS - 1));
    cpu.trace("interrupt>a (preempted, and alone), +7, block>idle, +1_000_000, wake b, pick>b");
    cpu.trace("+40, block (b exits)");
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
    cpu.trace("spawn c, block>c, +7, block, wake main, pick");
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(runs(&cpu.profile()), [7]);
}

#[test]
fn rule_4_tasks_that_share_a_label_count_as_unrecorded() {
    let mut cpu = Cpu::measuring();
    cpu.spawn_labelled(&["twin", "twin"]);
    cpu.spawn("other");
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(cpu.profile().header.unrecorded, 2);
}

#[test]
fn rule_4_tasks_beyond_the_table_run_unrecorded() {
    const ALL: usize = MAX_TASKS + 50;
    let mut cpu = Cpu::measuring();
    cpu.spawn_all([("many"); ALL]);
    cpu.trace("block>gc, block");
    for _ in 0..ALL {
        assert_eq!(cpu.name(), "many");
        cpu.run(1);
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
    assert_eq!(cpu.measure_end(), Ok(MAX_TASKS));
    assert_eq!(cpu.profile().header.unrecorded, 50);
    // And they are unknown when the plan is followed.
    cpu.trace("wake main, pick");
    assert_eq!(cpu.control.start_pbg(), Ok(MAX_TASKS));
    cpu.spawn_all([("many"); ALL]);
    assert_eq!(cpu.matches(), (MAX_TASKS as u32, 50));
    cpu.block();
    for _ in 0..ALL {
        assert_eq!(cpu.name(), "many");
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
}
