//! The order of a plan: rule 5.

use super::cpu::*;
use crate::*;
use core::num::NonZeroU8;
use sched_core::BaseScheduler;
use sched_core::units::Counts;

#[test]
fn rule_5_the_shortest_ready_task_runs_and_keeps_the_cpu() {
    let mut cpu = following(&[("long", 100), ("short", 1), ("middle", 50)], &[]);
    cpu.trace(&std::format!(
        "on>short, {UNPLANNED_YIELD_ALLOWANCE}x yield>short"
    ));
    cpu.trace("block>middle (a blocked task is not ready), wake short, on>middle");
    cpu.trace("yield>short (it takes over at the next yield), block>middle, wake short");
    cpu.trace("interrupt>short (and at the next tick), spawn unknown, block, block>long");
    cpu.trace("block>unknown (the fallback queue runs when no planned task is ready)");
    assert_eq!(cpu.status().matched, 3);
}

/// Shortest remaining time first: only what is left of the running task counts.
#[test]
fn rule_5_a_late_arrival_is_compared_with_what_remains_of_the_running_task() {
    for (done, first, second) in [
        (0, "late", "long"),
        (49, "late", "long"),
        (50, "long", "late"),
        (99, "long", "late"),
    ] {
        let mut cpu = replaying(&[("long", 100), ("late", 50)]);
        cpu.trace(&std::format!("spawn long, block>long, +{done}, wake main"));
        cpu.trace("yield>main (rule 9), spawn late");
        cpu.trace(&std::format!("block>{first}, block>{second}"));
    }
}

#[test]
fn rule_5_a_preempted_task_stands_where_what_remains_of_it_belongs() {
    let mut cpu = replaying(&[("a", 100), ("b", 60), ("c", 10)]);
    cpu.trace("spawn a, block, +50 (50 remain: before b, behind c), wake main, yield>main");
    cpu.trace("spawn b, spawn c, block>c, block>a, block>b, block>idle");
}

/// The rest of both is between the same two lengths of the plan, so both stand at one rank.
#[test]
fn rule_5_at_one_rank_the_task_with_the_least_before_it_runs() {
    for (done, runs) in [(120, "b"), (150, "a"), (200, "a")] {
        let mut cpu = following(&[("short", 10), ("b", 900), ("a", 1000)], &[]);
        cpu.trace("on>short, block>b, +50 (850 remain), block>a");
        cpu.run(done);
        cpu.trace("wake b");
        let running = cpu.current.clone().unwrap();
        let asks = cpu.scheduler.task_tick(&running);
        assert_eq!(asks, runs == "b", "not without need, after {done}");
        assert_eq!(cpu.preempt(), runs, "after {done}");
    }
}

#[test]
fn rule_5_of_equals_the_running_task_goes_on_and_a_woken_one_is_last() {
    let mut cpu = following(&[("a", 100), ("b", 100)], &[]);
    cpu.trace("on>a, block>b, wake a, yield>b, block>a, block>idle, wake b, wake a, pick>b");
}

#[test]
fn rule_5_a_shorter_child_takes_over_at_the_next_yield() {
    let mut cpu = Cpu::measuring();
    cpu.trace("spawn parent, block>gc, block>parent, spawn child, +100, block>child, +1, block");
    cpu.trace("wake main, pick");
    cpu.follow(2);
    cpu.trace("spawn parent, block>parent, spawn child, yield>child");
}

#[test]
fn rule_5_a_task_between_its_yield_and_its_pick_may_lose_the_cpu() {
    let mut cpu = following(&[("long", 100), ("short", 1)], &[]);
    cpu.trace("block>long");
    let long = cpu.current.take().unwrap();
    cpu.scheduler.put_prev_task(long, false);
    cpu.trace("wake short, pick>short, block>long");
}

#[test]
fn rule_5_a_server_is_ordered_by_its_next_burst() {
    let bursts = [[10; 20], [300; 20]].concat();
    let mut cpu = with_a_task_that_blocks(&bursts, 1_000_000, 100);
    cpu.trace("spawn a, spawn b, block");
    for burst in bursts {
        match burst {
            10 => cpu.trace("on>a, +10, block>b, wake a, yield"),
            // `b` is out of the way for once.
            _ => cpu.trace("on>b, +1, block>a, +300, block, wake b, pick, wake a, yield"),
        }
    }
}

/// Returns a CPU with a task whose weight is close to a half. The time before it is 248 at first,
/// then 199, 150, 100 and 1.
fn with_a_task_between_job_and_server() -> Cpu {
    let mut cpu = with_a_task_that_blocks(&[100; 4], 1604, 180);
    cpu.trace("spawn a, spawn b, block");
    cpu
}

#[test]
fn rule_5_between_job_and_server_a_part_of_what_follows_counts() {
    let mut cpu = with_a_task_between_job_and_server();
    // `b` has 180 before it, less 1 each time that it is first.
    for _ in 0..2 {
        cpu.trace("on>b, +1, block>a, +100, block, wake b, pick, wake a, yield");
    }
    for _ in 0..2 {
        cpu.trace("on>a, +100, block, wake a, yield");
    }
}

/// The rest of the burst is unknown, and as much again is guessed. The rest of the task is known.
#[test]
fn rule_5_beyond_its_burst_a_task_still_has_what_follows() {
    for (done, runs) in [(99, "a"), (110, "a"), (140, "b"), (150, "b")] {
        let mut cpu = with_a_task_between_job_and_server();
        cpu.trace(&std::format!(
            "on>b, block>a, +{done}, wake b, interrupt>{runs}"
        ));
    }
}

#[test]
fn rule_5_a_job_is_ordered_by_all_that_remains_of_it_however_soon_it_waits() {
    // 331 in all, though never more than 10 at first, against 100.
    let mut cpu = with_a_task_that_blocks(&[10, 300, 20], 10, 100);
    cpu.trace("spawn a, spawn b, block>b, block>a, +240 (91 remain, to be compared with 100)");
    cpu.trace("block, wake b, pick>b, wake a, yield>a");
}

#[test]
fn rule_5_beyond_its_record_a_task_gives_way_to_longer_and_longer_ones() {
    // A quarter is noise; and rule 8 is far.
    for (next, at) in [(10_500, 13), (12_000, 13), (17_000, 18)] {
        let mut cpu = following(&[("over", 10_000), ("next", next)], &[]);
        assert_eq!(cpu.name(), "over");
        let turn = (1..).find(|_| cpu.tick() != "over").unwrap();
        assert_eq!((turn, cpu.status().demoted), (at, 0), "{next}");
    }
}

#[test]
fn rule_5_a_priority_goes_strictly_first() {
    let mut cpu = measured(&[("short", 1), ("urgent", 1000), ("middle", 50)]);
    edited(&cpu, |tasks| tasks[1].priority = NonZeroU8::new(1));
    assert_eq!(cpu.control.start_pbg(), Ok(3));
    // The rest of a task after 500 is compared with none of the others.
    cpu.trace("spawn short, spawn urgent, spawn middle, block>urgent, +500, yield>urgent");
    cpu.trace("block>short, +500, yield>short, block>middle, +500, yield>middle");
}

#[test]
fn rule_5_deadlines_are_kept_and_those_that_cannot_be_are_reported() {
    let mut cpu = measured(&[("short", 10), ("due", 100), ("middle", 50)]);
    edited(&cpu, |tasks| tasks[1].deadline = Some(Counts(120)));
    assert!(cpu.control.plan().unwrap().unwrap().late().is_empty());
    assert_eq!(cpu.control.start_pbg(), Ok(3));
    cpu.trace("spawn short, spawn due, spawn middle, block>short, block>due, block>middle");
    assert_eq!(cpu.status().late, 0);

    let cpu = measured(&[("a", 100), ("b", 100)]);
    edited(&cpu, |tasks| {
        for task in tasks {
            task.deadline = Some(Counts(100));
        }
    });
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    assert_eq!(cpu.status().late, 1);
}
