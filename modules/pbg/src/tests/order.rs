//! The order of a plan: rule 5.

use alloc::sync::Arc;

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;
use sched_core::units::Counts;

#[test]
fn rule_5_the_shortest_ready_task_runs_and_keeps_the_cpu() {
    let mut cpu = replaying(&[("long", 100), ("short", 1), ("middle", 50)]);
    let long = cpu.spawn("long");
    let short = cpu.spawn("short");
    cpu.spawn("middle");
    let main = cpu.block();
    assert_eq!(cpu.name(), "short");
    for _ in 0..FREE_YIELDS {
        assert_eq!(cpu.yield_now(), "short", "kept across its own yields");
    }
    let blocked = cpu.block();
    assert!(Arc::ptr_eq(&blocked, &short));
    assert_eq!(cpu.name(), "middle", "a blocked task is not ready");
    cpu.wake(&blocked);
    assert_eq!(cpu.name(), "middle");
    assert_eq!(cpu.yield_now(), "short", "takes over at the next yield");
    let blocked = cpu.block();
    assert_eq!(cpu.name(), "middle");
    cpu.wake(&blocked);
    assert_eq!(cpu.interrupt(), "short", "takes over at the next tick");
    cpu.spawn("unknown");
    cpu.block();
    cpu.block();
    assert_eq!(cpu.name(), "long");
    cpu.block();
    assert_eq!(
        cpu.name(),
        "unknown",
        "the fallback runs when no planned task is ready"
    );
    drop(main);
    assert_eq!(cpu.status().matched, 3);
    drop(long);
}

/// Shortest remaining time first: of the running task, only what is left counts.
#[test]
fn rule_5_a_late_arrival_is_compared_with_what_remains_of_the_running_task() {
    for (done, takes_over) in [(0, true), (49, true), (50, false), (99, false)] {
        let mut cpu = replaying(&[("long", 100), ("late", 50)]);
        cpu.spawn("long");
        let main = cpu.block();
        assert_eq!(cpu.name(), "long");
        cpu.run(done);
        cpu.wake(&main);
        assert_eq!(cpu.yield_now(), "main", "rule 9");
        cpu.spawn("late");
        cpu.block();
        let expected = if takes_over { "late" } else { "long" };
        assert_eq!(cpu.name(), expected, "after {done}");
        cpu.block();
        assert_ne!(cpu.name(), expected, "and then the other");
    }
}

#[test]
fn rule_5_a_preempted_task_stands_where_what_remains_of_it_belongs() {
    let mut cpu = replaying(&[("a", 100), ("b", 60), ("c", 10)]);
    cpu.spawn("a");
    let main = cpu.block();
    cpu.run(50); // 50 remain: before b, behind c
    cpu.wake(&main);
    cpu.yield_now();
    cpu.spawn("b");
    cpu.spawn("c");
    cpu.block();
    for expected in ["c", "a", "b", "idle"] {
        assert_eq!(cpu.name(), expected);
        if expected != "idle" {
            cpu.block();
        }
    }
}

/// Between the same two lengths of the plan, so that both stand at one place.
#[test]
fn rule_5_at_one_place_too_the_one_with_the_least_before_it_has_the_cpu() {
    for (done, has_the_cpu) in [(120, "b"), (150, "a"), (200, "a")] {
        let mut cpu = replaying(&[("short", 10), ("b", 900), ("a", 1000)]);
        cpu.spawn("short");
        let b = cpu.spawn("b");
        cpu.spawn("a");
        cpu.block();
        assert_eq!(cpu.name(), "short");
        cpu.block();
        assert_eq!(cpu.name(), "b");
        cpu.run(50); // 850 remain
        cpu.block();
        assert_eq!(cpu.name(), "a");
        cpu.run(done);
        cpu.wake(&b);
        let running = cpu.current.clone().unwrap();
        let asks = cpu.scheduler.task_tick(&running);
        assert_eq!(asks, has_the_cpu == "b", "not without need, after {done}");
        assert_eq!(cpu.preempt(), has_the_cpu, "after {done}");
    }
}

#[test]
fn rule_5_of_equals_who_ran_goes_on_and_who_wakes_goes_last() {
    let (mut cpu, _) = following(&[("a", 100), ("b", 100)], &[]);
    assert_eq!(cpu.name(), "a");
    let a = cpu.block();
    assert_eq!(cpu.name(), "b");
    cpu.wake(&a);
    assert_eq!(cpu.yield_now(), "b");
    let b = cpu.block();
    let a = cpu.block();
    assert_eq!(cpu.name(), "idle");
    cpu.wake(&b);
    cpu.wake(&a);
    assert_eq!(cpu.pick(), "b");
}

#[test]
fn rule_5_a_shorter_child_takes_over_at_the_next_yield() {
    let mut cpu = Cpu::boot();
    for replaying in [false, true] {
        if replaying {
            assert_eq!(cpu.control.start_pbg(), Ok(2));
        } else {
            cpu.control.measure_start().unwrap();
        }
        cpu.spawn("parent");
        let main = cpu.block();
        if cpu.name() == "gc" {
            cpu.block();
        }
        assert_eq!(cpu.name(), "parent");
        cpu.spawn("child");
        if replaying {
            assert_eq!(cpu.yield_now(), "child");
            return;
        }
        cpu.run(100);
        cpu.block();
        cpu.run(1);
        cpu.block();
        cpu.wake(&main);
        cpu.pick();
        assert_eq!(cpu.measure_end(), Ok(2));
    }
}

/// Somebody becomes ready between a yield and its pick.
#[test]
fn rule_5_who_has_yielded_and_waits_for_its_pick_may_still_lose_the_cpu() {
    let (mut cpu, _) = following(&[("long", 100), ("short", 1)], &[]);
    let short = cpu.block();
    let long = cpu.current.take().unwrap();
    cpu.scheduler.put_prev_task(long, false);
    cpu.wake(&short);
    assert_eq!(cpu.pick(), "short");
    cpu.block();
    assert_eq!(cpu.name(), "long");
}

#[test]
fn rule_5_a_server_is_ordered_by_its_next_burst() {
    let bursts = [[10; 20], [300; 20]].concat();
    let mut cpu = with_a_task_that_blocks(&bursts, 1_000_000, 100);
    cpu.spawn("a");
    let b = cpu.spawn("b");
    cpu.block();
    for (i, burst) in bursts.iter().enumerate() {
        let first = if *burst < 100 { "a" } else { "b" };
        assert_eq!(cpu.name(), first, "burst {i}");
        if first == "b" {
            cpu.run(1);
            cpu.block(); // for once, out of the way
            cpu.run(*burst);
            let a = cpu.block();
            cpu.wake(&b);
            cpu.pick();
            cpu.wake(&a);
        } else {
            cpu.run(*burst);
            let a = cpu.block();
            assert_eq!(cpu.name(), "b");
            cpu.wake(&a);
        }
        cpu.yield_now();
    }
}

/// Whose weight is next to a half: before it are 248, 199, 150, 100 and 1.
fn with_a_task_between_job_and_server() -> (Cpu, Handle) {
    let mut cpu = with_a_task_that_blocks(&[100; 4], 1604, 180);
    cpu.spawn("a");
    let b = cpu.spawn("b");
    cpu.block();
    (cpu, b)
}

#[test]
fn rule_5_between_job_and_server_a_part_of_what_follows_counts() {
    let (mut cpu, b) = with_a_task_between_job_and_server();
    for i in 0..4 {
        // b has 180 before it, less 1 each time that it is first.
        let first = if i < 2 { "b" } else { "a" };
        assert_eq!(cpu.name(), first, "burst {i}");
        if first == "b" {
            cpu.run(1);
            cpu.block();
        }
        assert_eq!(cpu.name(), "a");
        cpu.run(100);
        let a = cpu.block();
        if first == "b" {
            cpu.wake(&b);
            cpu.pick();
        }
        cpu.wake(&a);
        cpu.yield_now();
    }
}

/// Of the burst nobody knows how much remains, and as long again is guessed; of the
/// task it is known.
#[test]
fn rule_5_beyond_its_burst_a_task_still_has_what_follows() {
    for (done, takes_over) in [(99, false), (110, false), (140, true), (150, true)] {
        let (mut cpu, b) = with_a_task_between_job_and_server();
        cpu.block(); // b
        assert_eq!(cpu.name(), "a");
        cpu.run(done);
        cpu.wake(&b);
        let expected = if takes_over { "b" } else { "a" };
        assert_eq!(cpu.interrupt(), expected, "after {done}");
    }
}

#[test]
fn rule_5_a_job_is_ordered_by_all_that_remains_of_it_however_soon_it_waits() {
    // 331 in all, though never more than 10 at first, against 100.
    let mut cpu = with_a_task_that_blocks(&[10, 300, 20], 10, 100);
    cpu.spawn("a");
    cpu.spawn("b");
    cpu.block();
    assert_eq!(cpu.name(), "b");
    let b = cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.run(240); // 91 remain, to be compared with 100
    let a = cpu.block();
    cpu.wake(&b);
    assert_eq!(cpu.pick(), "b");
    cpu.wake(&a);
    assert_eq!(cpu.yield_now(), "a");
}

#[test]
fn rule_5_beyond_its_record_a_task_gives_way_to_more_and_more() {
    // A quarter is noise; and rule 8 is far.
    for (next, at) in [(10_500, 13), (12_000, 13), (17_000, 18)] {
        let (mut cpu, _) = following(&[("over", 10_000), ("next", next)], &[]);
        assert_eq!(cpu.name(), "over");
        let turn = (1..).find(|_| cpu.tick() != "over").unwrap();
        assert_eq!((turn, cpu.status().demoted), (at, 0), "{next}");
    }
}

#[test]
fn rule_5_a_priority_goes_strictly_first() {
    let mut cpu = measured(&[("short", 1), ("urgent", 1000), ("middle", 50)]);
    edited(&cpu, |tasks| {
        tasks[1].priority = core::num::NonZeroU8::new(1)
    });
    assert_eq!(cpu.control.start_pbg(), Ok(3));
    cpu.spawn("short");
    cpu.spawn("urgent");
    cpu.spawn("middle");
    cpu.block();
    for expected in ["urgent", "short", "middle"] {
        assert_eq!(cpu.name(), expected);
        cpu.run(500); // what remains of it is compared with none of the others
        assert_eq!(cpu.yield_now(), expected);
        cpu.block();
    }
}

#[test]
fn rule_5_latest_times_are_kept_and_those_that_cannot_be_are_told() {
    let mut cpu = measured(&[("short", 10), ("due", 100), ("middle", 50)]);
    edited(&cpu, |tasks| tasks[1].deadline = Some(Counts(120)));
    let plan = cpu.control.plan().unwrap().unwrap();
    assert!(plan.late().is_empty());
    assert_eq!(cpu.control.start_pbg(), Ok(3));
    for name in ["short", "due", "middle"] {
        cpu.spawn(name);
    }
    cpu.block();
    for expected in ["short", "due", "middle"] {
        assert_eq!(cpu.name(), expected);
        cpu.block();
    }
    assert_eq!(cpu.status().late, 0);

    let cpu = measured(&[("a", 100), ("b", 100)]);
    edited(&cpu, |tasks| {
        tasks
            .iter_mut()
            .for_each(|task| task.deadline = Some(Counts(100)))
    });
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    assert_eq!(cpu.status().late, 1);
}
