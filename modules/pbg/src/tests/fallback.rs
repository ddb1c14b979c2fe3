//! Tasks outside the plan: rules 6 and 7.

use alloc::sync::Arc;
use std::format;

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;

#[test]
fn rule_6_unknown_tasks_and_second_comers_run_from_the_fallback_queue() {
    let mut cpu = replaying(&[("a", 10)]);
    cpu.trace("spawn a, spawn one more, spawn another");
    assert_eq!(cpu.matches(), (1, 2));
    cpu.trace("block>a, spawn child of a (a had none when it was measured), yield>a");
    cpu.trace("block>one more, yield>another, yield>child of a, yield>one more (round robin)");
}

#[test]
fn rule_6_outsiders_have_whole_slices_while_no_planned_task_is_ready() {
    let mut cpu = replaying(&[("planned", 10)]);
    cpu.spawn_labelled(&["unknown", "unknown too"]);
    cpu.trace(&format!(
        "block>unknown, {}x interrupt>unknown",
        SLICE_TICKS - 1
    ));
    cpu.trace("interrupt>unknown too");
}

#[test]
fn rule_6_a_second_task_with_a_label_is_unknown() {
    let mut cpu = Cpu::measuring();
    cpu.spawn_labelled(&["twin"]);
    cpu.follow(1);
    for unplanned in 0..2 {
        cpu.spawn_labelled(&["twin"]);
        assert_eq!(cpu.matches(), (1, unplanned));
    }
}

#[test]
fn rule_6_children_of_unknown_tasks_are_not_counted() {
    let mut cpu = following(&[("a", 10)], &["unknown"]);
    cpu.trace("block>unknown, spawn child");
    assert_eq!(cpu.matches(), (1, 1));
    cpu.trace("yield>child");
}

#[test]
fn rule_6_a_plan_that_never_matches_is_round_robin() {
    replaying(&[("a", 10)]).trace("block>idle (the root spawns nothing)");
    let mut cpu = replaying(&[("a", 10)]);
    cpu.trace("spawn a, block>a, block>idle (a exits at once), spawn x (by a timer), spawn y");
    cpu.trace("pick>x, yield>y, 4x interrupt>y, 5x interrupt>x, interrupt>y");
}

#[test]
fn rule_7_outsiders_have_a_tenth_and_no_more() {
    let mut cpu = following(&[("planned", 1_000_000)], &["late 1", "late 2"]);
    assert_eq!(cpu.name(), "planned");
    let had = cpu.shares(1000);
    assert_eq!(had["planned"], 900);
    assert_eq!((had["late 1"], had["late 2"]), (50, 50));
    assert_eq!(cpu.status().turns, 100);
}

#[test]
fn rule_7_each_of_n_runs_again_within_n_periods() {
    let names = ["f0", "f1", "f2", "f3", "f4", "f5", "f6"];
    let mut cpu = following(&[("planned", 1_000_000_000)], &names);
    let mut last = std::collections::BTreeMap::new();
    for now in 0..5000usize {
        let name = cpu.tick();
        if name != "planned" {
            let since = now - last.insert(name, now).unwrap_or(0);
            let bound = names.len() * (PLAN_TICKS as usize + 1);
            assert!(since <= bound, "{name} waited {since} ticks");
        }
    }
    assert_eq!(last.len(), names.len());
}

/// The tick belongs to the queue: a task that gives way leaves the rest of it to the next.
#[test]
fn rule_7_a_turn_belongs_to_the_queue_until_the_tick() {
    let mut cpu = following(&[("planned", 1_000_000)], &["yields", "blocks", "computes"]);
    cpu.trace("reach yields, yield>blocks, block>computes, yield>yields (and around again)");
    cpu.trace("yield>computes, interrupt>planned, wake blocks, yield>planned (it is over)");
    assert_eq!(cpu.status().turns, 1);
}

#[test]
fn rule_7_a_task_that_is_alone_outside_the_plan_has_the_rest_of_its_tick() {
    beside_an_outsider().trace("reach outsider, 5x yield>outsider, interrupt>planned");
}

/// Both spin until the program has done something, and so have a dispatch and no more.
#[test]
fn rule_7_gc_and_the_root_leave_the_rest_of_a_turn_to_the_plan() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    let gc = cpu.gc.clone();
    cpu.spawn("planned");
    cpu.wake(&gc);
    let mut turns = Vec::new();
    for _ in 0..4 * PLAN_TICKS {
        let outside = cpu.interrupt();
        if outside != "planned" {
            turns.push(outside);
            cpu.trace("yield>planned (no second dispatch)");
        }
    }
    assert_eq!(turns, ["gc", "main", "gc", "main"]);
    // They take nothing from a task that has a claim, either.
    cpu.spawn("child of planned");
    let had = cpu.shares_beside(&["main", "gc"], 100);
    assert_eq!(had["child of planned"], 10);
}

#[test]
fn rule_7_a_task_demoted_for_its_yields_leaves_the_rest_of_a_turn_to_the_plan() {
    let mut cpu = following(&[("demoted", 10), ("planned", 1_000_000)], &[]);
    demote(&mut cpu);
    cpu.trace("reach demoted, yield>planned");
}

#[test]
fn rule_7_a_task_demoted_for_its_time_has_the_rest_of_its_tick() {
    let mut cpu = following(&[("demoted", 10), ("planned", 1_000_000)], &[]);
    cpu.trace("until planned");
    assert_eq!(cpu.status().demoted, 1);
    cpu.trace("reach demoted, yield>demoted");
}

#[test]
fn rule_7_a_turn_that_was_given_back_is_over() {
    let mut cpu = beside_an_outsider();
    cpu.trace("reach outsider, block>planned, wake outsider, block>outsider, wake planned");
    cpu.trace("interrupt>planned (the first tick of the next period)");
    let rest = PLAN_TICKS - 2;
    cpu.trace(&format!("{rest}x interrupt>planned, interrupt>outsider"));
}

#[test]
fn rule_7_a_turn_ends_with_its_tick_also_while_no_planned_task_is_ready() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    let planned = cpu.spawn("planned");
    cpu.trace("spawn outsider, block>planned, reach outsider");
    cpu.scheduler.remove_task(&planned).unwrap();
    cpu.trace("interrupt>outsider");
    cpu.wake(&planned);
    cpu.trace("yield>planned");
}

/// Ticks that preempt no task: it gives way as soon as it yields.
#[test]
fn rule_7_a_turn_that_is_due_begins_at_a_yield() {
    let mut cpu = beside_an_outsider();
    let planned = cpu.current.clone().unwrap();
    assert!((1..PLAN_TICKS).all(|_| !cpu.scheduler.task_tick(&planned)));
    cpu.trace("yield>planned");
    assert!(cpu.scheduler.task_tick(&planned));
    cpu.trace("yield>outsider");
}

#[test]
fn rule_7_a_turn_of_a_task_that_is_removed_does_not_begin() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    let outsider = cpu.spawn("outsider");
    cpu.block();
    let planned = cpu.current.clone().unwrap();
    for _ in 0..PLAN_TICKS {
        cpu.scheduler.task_tick(&planned);
    }
    cpu.scheduler.remove_task(&outsider).unwrap();
    cpu.trace("interrupt, spawn another, yield>planned");
}

#[test]
fn rule_7_a_turn_is_not_counted_while_no_planned_task_is_ready() {
    let mut cpu = beside_an_outsider();
    let planned = cpu.current.clone().unwrap();
    for _ in 0..PLAN_TICKS {
        cpu.scheduler.task_tick(&planned);
    }
    cpu.trace("block>outsider");
    assert_eq!(cpu.status().turns, 0);
}

#[test]
fn rule_7_an_empty_fallback_queue_saves_no_turns_up() {
    let mut cpu = following(&[("planned", 1_000_000_000)], &[]);
    let rest = PLAN_TICKS - 1;
    cpu.trace("500x tick>planned, spawn late");
    cpu.trace(&format!("{rest}x interrupt>planned, interrupt>late"));
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
        for _ in 0..1000 {
            let mut left = 1000;
            if cpu.name() == "planned" {
                left -= run_before_block;
                cpu.run(run_before_block);
                cpu.trace("block>outsider");
            }
            cpu.run(left);
            had += left;
            // The timer wakes the sleeper first, and then the tick comes.
            if cpu.asleep("planned").is_some() {
                cpu.trace("wake planned");
            }
            cpu.interrupt();
        }
        let fair = 1_000_000 / u64::from(PLAN_TICKS + 1);
        assert!(had >= fair, "{had} of 1,000,000");
        assert!(!cpu.status().dropped);
    }
}

/// Eight ticks, then a block: the outsider's moment is not its turn.
#[test]
fn rule_7_a_moment_without_planned_tasks_is_not_a_turn() {
    let mut cpu = beside_an_outsider();
    let (mut had, mut ticks) = (0, 0);
    while ticks < 1000 {
        for _ in 0..PLAN_TICKS - 1 {
            had += u32::from(cpu.name() == "outsider");
            cpu.tick();
            ticks += 1;
        }
        if cpu.name() == "planned" {
            cpu.trace("block>outsider, +1, wake planned");
        }
    }
    assert!(had >= ticks / (PLAN_TICKS + 1), "{had} of {ticks} ticks");
}

/// Twenty others, and a root that wakes just before each of their turns.
#[test]
fn rule_7_one_of_many_runs_again_in_time() {
    const OTHERS: usize = 20;
    let mut cpu = replaying(&[("planned", 1 << 40)]);
    cpu.spawn("planned");
    let others: Vec<Handle> = (0..OTHERS).map(|_| cpu.spawn("other")).collect();
    cpu.trace("block");
    let (mut last, mut longest, mut planned_ticks) = ([0; OTHERS], 0, 0);
    for tick in 1..3000 {
        cpu.run(1000);
        let is_planned = cpu.name() == "planned";
        planned_ticks = if is_planned { planned_ticks + 1 } else { 0 };
        if planned_ticks == PLAN_TICKS {
            cpu.trace("wake main");
        }
        cpu.interrupt();
        if cpu.name() == "main" {
            cpu.trace("+1, block");
        }
        let current = cpu.current.as_ref().unwrap();
        if let Some(i) = others.iter().position(|other| Arc::ptr_eq(current, other)) {
            if last[i] > 0 {
                longest = longest.max(tick - last[i]);
            }
            last[i] = tick;
        }
    }
    assert!(last.iter().all(|&tick| tick > 0), "{last:?}");
    let most = OTHERS as u32 * (PLAN_TICKS + 2);
    assert!(longest <= most, "{longest} of {most}");
    assert!(longest > most - PLAN_TICKS, "it is sharp: {longest}");
}
