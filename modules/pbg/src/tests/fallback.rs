//! Who is outside the plan: rules 6 and 7.

use alloc::sync::Arc;

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;

#[test]
fn rule_6_unknown_tasks_and_second_comers_run_from_the_fallback_queue() {
    let mut cpu = replaying(&[("a", 10)]);
    cpu.spawn("a");
    cpu.spawn("one more");
    cpu.spawn("another");
    let status = cpu.status();
    assert_eq!((status.matched, status.unplanned), (1, 2));
    cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.spawn("child of a"); // a had none when it was measured
    assert_eq!(cpu.yield_now(), "a");
    cpu.block();
    assert_eq!(cpu.name(), "one more");
    assert_eq!(cpu.yield_now(), "another");
    assert_eq!(cpu.yield_now(), "child of a");
    assert_eq!(cpu.yield_now(), "one more", "round robin");
}

#[test]
fn rule_6_those_outside_keep_the_cpu_for_a_slice_while_nobody_else_is_ready() {
    let mut cpu = replaying(&[("planned", 10)]);
    cpu.control.label_next("unknown").unwrap();
    cpu.spawn("unknown");
    cpu.control.label_next("unknown, too").unwrap();
    cpu.spawn("unknown, too");
    cpu.block();
    let runs = cpu.current.clone().unwrap();
    for tick in 1..SLICE_TICKS {
        assert!(!cpu.scheduler.task_tick(&runs), "tick {tick}");
    }
    assert!(cpu.scheduler.task_tick(&runs));
}

#[test]
fn rule_6_a_label_that_is_taken_is_unknown() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.control.label_next("twin").unwrap();
    cpu.spawn("twin");
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    for unplanned in 0..2 {
        cpu.control.label_next("twin").unwrap();
        cpu.spawn("twin");
        let status = cpu.status();
        assert_eq!((status.matched, status.unplanned), (1, unplanned));
    }
}

#[test]
fn rule_6_nobody_counts_the_children_of_unknown_tasks() {
    let (mut cpu, _) = following(&[("a", 10)], &["unknown"]);
    cpu.block(); // a
    assert_eq!(cpu.name(), "unknown");
    cpu.spawn("child");
    assert_eq!((cpu.status().matched, cpu.status().unplanned), (1, 1));
    assert_eq!(cpu.yield_now(), "child");
}

#[test]
fn rule_6_a_plan_that_never_matches_is_round_robin() {
    let mut cpu = replaying(&[("a", 10)]);
    cpu.block(); // the root spawns nothing
    assert_eq!(cpu.name(), "idle");
    let mut cpu = replaying(&[("a", 10)]);
    let a = cpu.spawn("a");
    cpu.block();
    cpu.block(); // a exits at once
    drop(a);
    cpu.spawn("x"); // by a timer, say
    cpu.spawn("y");
    assert_eq!(cpu.pick(), "x");
    assert_eq!(cpu.yield_now(), "y");
    let turn: Vec<_> = (0..2 * SLICE_TICKS).map(|_| cpu.interrupt()).collect();
    assert_eq!(turn, ["y", "y", "y", "y", "x", "x", "x", "x", "x", "y"]);
}

#[test]
fn rule_7_tasks_outside_the_plan_have_a_tenth_and_no_more() {
    let (mut cpu, _) = following(&[("planned", 1_000_000)], &["late 1", "late 2"]);
    assert_eq!(cpu.name(), "planned");
    let had = cpu.shares(1000);
    assert_eq!(had["planned"], 900);
    assert_eq!((had["late 1"], had["late 2"]), (50, 50));
    assert_eq!(cpu.status().turns, 100);
}

#[test]
fn rule_7_each_of_n_runs_again_within_n_periods() {
    let n = 7;
    let mut cpu = replaying(&[("planned", 1_000_000_000)]);
    cpu.spawn("planned");
    let names = ["f0", "f1", "f2", "f3", "f4", "f5", "f6"];
    names.iter().for_each(|name| drop(cpu.spawn(name)));
    cpu.block();
    let mut last = std::collections::BTreeMap::new();
    for now in 0..5000usize {
        if cpu.tick() != "planned" {
            let since = now - last.insert(cpu.name(), now).unwrap_or(0);
            assert!(
                since <= n * (PLAN_TICKS as usize + 1),
                "{} waited {since} ticks",
                cpu.name()
            );
        }
    }
    assert_eq!(last.len(), n);
}

/// The tick belongs to the queue: whatever gives way leaves the rest of it to the next.
#[test]
fn rule_7_a_turn_is_the_queues_until_the_tick() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    let outsiders = ["yields", "blocks", "computes"].map(|name| cpu.spawn(name));
    cpu.block();
    while cpu.interrupt() != "yields" {}
    assert_eq!(cpu.yield_now(), "blocks");
    cpu.block();
    assert_eq!(cpu.name(), "computes");
    assert_eq!(cpu.yield_now(), "yields", "and around again");
    assert_eq!(cpu.yield_now(), "computes");
    assert_eq!(cpu.interrupt(), "planned");
    cpu.wake(&outsiders[1]);
    assert_eq!(cpu.yield_now(), "planned", "it is over");
    assert_eq!(cpu.status().turns, 1);
}

#[test]
fn rule_7_a_task_that_is_alone_outside_the_plan_has_the_rest_of_its_tick() {
    let (mut cpu, _) = following(&[("planned", 1_000_000)], &["outsider"]);
    while cpu.interrupt() != "outsider" {}
    (0..5).for_each(|_| assert_eq!(cpu.yield_now(), "outsider"));
    assert_eq!(cpu.interrupt(), "planned");
}

/// Each spins until the program has done something, and so has a dispatch and no more.
#[test]
fn rule_7_gc_and_the_root_leave_the_rest_of_a_turn_to_the_plan() {
    let mut cpu = measured(&[("planned", 1_000_000)]);
    let gc = cpu.gc.clone();
    cpu.control.start_pbg().unwrap();
    cpu.spawn("planned");
    cpu.wake(&gc);
    let mut turns = Vec::new();
    for _ in 0..4 * PLAN_TICKS {
        let outside = cpu.interrupt();
        if outside != "planned" {
            turns.push(outside);
            assert_eq!(cpu.yield_now(), "planned", "no second dispatch");
        }
    }
    assert_eq!(turns, ["gc", "main", "gc", "main"]);
    // They take nothing from one that has a claim, either.
    cpu.spawn("child of planned");
    let had = cpu.shares_beside(&["main", "gc"], 100);
    assert_eq!(had["child of planned"], 10);
}

#[test]
fn rule_7_a_task_that_was_demoted_for_its_yields_leaves_the_rest_to_the_plan() {
    let (mut cpu, _) = following(&[("demoted", 10), ("planned", 1_000_000)], &[]);
    demote(&mut cpu);
    while cpu.interrupt() != "demoted" {}
    assert_eq!(cpu.yield_now(), "planned");
}

#[test]
fn rule_7_a_task_that_was_demoted_for_its_time_has_the_rest_of_its_tick() {
    let (mut cpu, _) = following(&[("demoted", 10), ("planned", 1_000_000)], &[]);
    cpu.tick_until("planned");
    assert_eq!(cpu.status().demoted, 1);
    while cpu.interrupt() != "demoted" {}
    assert_eq!(cpu.yield_now(), "demoted");
}

/// One that another has turned down is over, and one that nobody waits for is none.
#[test]
fn rule_7_a_turn_that_was_given_back_is_over() {
    let (mut cpu, _) = following(&[("planned", 1_000_000)], &["outsider"]);
    while cpu.interrupt() != "outsider" {}
    let outsider = cpu.block();
    assert_eq!(cpu.name(), "planned");
    cpu.wake(&outsider);
    let planned = cpu.block();
    cpu.wake(&planned);
    assert_eq!(
        cpu.interrupt(),
        "planned",
        "the first tick of the next period"
    );
    let more = (1..).find(|_| cpu.interrupt() == "outsider").unwrap();
    assert_eq!(more, PLAN_TICKS - 1);
}

#[test]
fn rule_7_a_turn_ends_with_its_tick_also_while_no_planned_task_is_ready() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    let planned = cpu.spawn("planned");
    cpu.spawn("outsider");
    cpu.block();
    while cpu.interrupt() != "outsider" {}
    cpu.scheduler.remove_task(&planned).unwrap();
    assert_eq!(cpu.interrupt(), "outsider");
    cpu.wake(&planned);
    assert_eq!(cpu.yield_now(), "planned");
}

/// Ticks that preempt nobody: the task gives way as soon as it yields.
#[test]
fn rule_7_a_turn_that_is_due_begins_at_a_yield() {
    let (mut cpu, _) = following(&[("planned", 1_000_000)], &["outsider"]);
    let planned = cpu.current.clone().unwrap();
    for _ in 1..PLAN_TICKS {
        assert!(!cpu.scheduler.task_tick(&planned));
    }
    assert_eq!(cpu.yield_now(), "planned");
    assert!(cpu.scheduler.task_tick(&planned));
    assert_eq!(cpu.yield_now(), "outsider");
}

#[test]
fn rule_7_a_turn_of_one_who_is_gone_is_nobodys() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    let outsider = cpu.spawn("outsider");
    cpu.block();
    let planned = cpu.current.clone().unwrap();
    for _ in 0..PLAN_TICKS {
        cpu.scheduler.task_tick(&planned);
    }
    cpu.scheduler.remove_task(&outsider).unwrap();
    cpu.interrupt();
    cpu.spawn("another");
    assert_eq!(cpu.yield_now(), "planned");
}

#[test]
fn rule_7_where_no_planned_task_is_ready_a_turn_is_not_counted() {
    let (mut cpu, _) = following(&[("planned", 1_000_000)], &["outsider"]);
    let planned = cpu.current.clone().unwrap();
    for _ in 0..PLAN_TICKS {
        cpu.scheduler.task_tick(&planned);
    }
    cpu.block();
    assert_eq!((cpu.name(), cpu.status().turns), ("outsider", 0));
}

#[test]
fn rule_7_an_empty_fallback_queue_saves_no_turns_up() {
    let (mut cpu, _) = following(&[("planned", 1_000_000_000)], &[]);
    assert_eq!(cpu.shares(500)["planned"], 500);
    cpu.spawn("late");
    let first = (1..).find(|_| cpu.interrupt() == "late").unwrap();
    assert_eq!(first, PLAN_TICKS);
}

/// A planned task that gives way just before the tick, every time: the tick hits
/// the outsider, and must not always take the CPU from it.
#[test]
fn rule_7_a_planned_task_that_blocks_before_every_tick_takes_no_more() {
    for run_before_block in [500, 900, 990] {
        let mut cpu = measured(&[("planned", 1_000_000_000)]);
        cpu.spawn("outsider"); // and not of the program: rule 10 must not help
        cpu.control.start_pbg().unwrap();
        cpu.spawn("planned");
        cpu.block();
        let mut had = 0;
        let mut asleep = None;
        for _ in 0..1000 {
            if cpu.name() == "planned" {
                cpu.run(run_before_block);
                asleep = Some(cpu.block());
                assert_eq!(cpu.name(), "outsider");
                cpu.run(1000 - run_before_block);
                had += 1000 - run_before_block;
            } else {
                cpu.run(1000);
                had += 1000;
            }
            // The timer wakes the sleeper first, and then the tick comes.
            if let Some(task) = asleep.take() {
                cpu.wake(&task);
            }
            cpu.interrupt();
        }
        assert!(
            had >= 1_000_000 / u64::from(PLAN_TICKS + 1),
            "{had} of 1,000,000"
        );
        assert!(!cpu.status().dropped);
    }
}

/// Eight ticks, then a block: the outsider's moment is not its turn.
#[test]
fn rule_7_a_moment_without_planned_tasks_is_no_turn() {
    let (mut cpu, _) = following(&[("planned", 1_000_000_000)], &["outsider"]);
    let (mut had, mut ticks) = (0, 0);
    while ticks < 1000 {
        for _ in 0..PLAN_TICKS - 1 {
            had += u64::from(cpu.name() == "outsider") * 1000;
            cpu.tick();
            ticks += 1;
        }
        if cpu.name() == "planned" {
            let planned = cpu.block();
            cpu.run(1); // the outsider's moment
            cpu.wake(&planned);
        }
    }
    assert!(
        had >= ticks * 1000 / u64::from(PLAN_TICKS + 1),
        "{had} of {ticks} ticks"
    );
}

/// Twenty others, and a root that wakes just before each of their turns.
#[test]
fn rule_7_one_of_many_runs_again_in_time() {
    const OTHERS: usize = 20;
    let mut cpu = replaying(&[("planned", 1 << 40)]);
    cpu.spawn("planned");
    let others: Vec<Handle> = (0..OTHERS).map(|_| cpu.spawn("other")).collect();
    let main = cpu.block();
    let (mut last, mut longest, mut planned_ticks) = ([0; OTHERS], 0, 0);
    for tick in 1..3000 {
        cpu.run(1000);
        planned_ticks = if cpu.name() == "planned" {
            planned_ticks + 1
        } else {
            0
        };
        if planned_ticks == PLAN_TICKS {
            cpu.wake(&main);
        }
        cpu.interrupt();
        if cpu.name() == "main" {
            cpu.run(1);
            cpu.block();
        }
        let current = cpu.current.as_ref();
        let Some(i) = others
            .iter()
            .position(|other| current.is_some_and(|current| Arc::ptr_eq(current, other)))
        else {
            continue;
        };
        if last[i] > 0 {
            longest = longest.max(tick - last[i]);
        }
        last[i] = tick;
    }
    assert!(last.iter().all(|&tick| tick > 0), "{last:?}");
    let most = OTHERS as u32 * (PLAN_TICKS + 2);
    assert!(longest <= most, "{longest} of {most}");
    assert!(longest > most - PLAN_TICKS, "it is sharp: {longest}");
}
