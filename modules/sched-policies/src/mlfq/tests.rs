//! MLFQ rule by rule.

use super::*;
use sched_core::BaseScheduler;
use sched_core::clock::VirtualClock;
use sched_model::bench::{self, Handle, MigratingScheduler, TICK};

/// A period so long that no reset comes within a test that is not about resets.
const NO_RESET: u32 = 100_000;

type P<const RESET: u32 = NO_RESET> = Mlfq<&'static str, VirtualClock, RESET>;
type Bench<const RESET: u32 = NO_RESET> = bench::Bench<Adapter<P<RESET>>>;

fn level<const R: u32>(bench: &Bench<R>, task: &Handle<Adapter<P<R>>>) -> usize {
    bench.scheduler.policy().catch_up(task.policy_state())
}

/// Returns the number of the queue's last reset.
fn last_reset<const R: u32>(bench: &Bench<R>) -> u32 {
    bench.scheduler.policy().reset
}

/// Ticks until the next reset.
fn await_reset<const R: u32>(bench: &mut Bench<R>) {
    let before = last_reset(bench);
    while last_reset(bench) == before {
        bench.tick();
    }
}

/// Returns a bench that knows the length of a tick, on which the first of these tasks runs.
fn resetting<const R: u32>(names: &[&'static str]) -> Bench<R> {
    let mut bench = Bench::<R>::new();
    bench.trace("spawn teacher, block, tick, tick");
    bench.block();
    names.iter().for_each(|name| drop(bench.spawn(name)));
    bench.pick();
    bench
}

fn running(names: &[&'static str]) -> Bench {
    resetting(names)
}

#[test]
fn rule_1_the_highest_level_runs_first() {
    let mut bench = running(&["low", "high"]);
    let low = bench.current.clone().unwrap();
    bench.trace("tick>high");
    assert_eq!(level(&bench, &low), 1);
    bench.trace("yield>low (rule 8), tick>high");
}

#[test]
fn rule_2_a_new_task_starts_at_the_top() {
    let mut bench = running(&["old"]);
    bench.shares(50);
    let new = bench.spawn("new");
    assert_eq!(level(&bench, &new), 0);
    bench.trace("tick>new");
}

#[test]
fn rule_3_level_i_has_two_to_the_i_ticks() {
    let mut bench = running(&["a"]);
    let a = bench.current.clone().unwrap();
    for expected in 0..LEVELS {
        for tick in 0..1 << expected {
            assert_eq!(level(&bench, &a), expected, "tick {tick}");
            bench.tick();
        }
    }
    assert_eq!(level(&bench, &a), LEVELS - 1, "and there it stays");
}

#[test]
fn rule_3_at_the_lowest_level_tasks_run_in_turn() {
    let mut bench = running(&["a", "b"]);
    bench.shares(2 * 255);
    let had = bench.shares(8 * 128);
    assert_eq!((had["a"], had["b"]), (512, 512));
    bench.trace("127x tick>a, tick>b");
}

#[test]
fn rule_3_a_task_whose_allotment_a_tick_ends_goes_to_the_end_however_late_its_put_is() {
    let mut bench = running(&["a", "b", "c"]);
    let turns: [_; 9] = core::array::from_fn(|_| {
        let name = bench.name();
        let turn = (1..).find(|_| bench.late_tick() != name).unwrap();
        (name, turn)
    });
    let expected = [1, 2, 4].map(|ticks| ["a", "b", "c"].map(|name| (name, ticks)));
    assert_eq!(turns.as_slice(), expected.as_flattened());
    for _ in 0..3 * 255 {
        bench.late_tick();
    }
    let mut had = std::collections::BTreeMap::<_, u32>::new();
    for _ in 0..6 * 128 {
        *had.entry(bench.name()).or_default() += 1;
        bench.late_tick();
    }
    assert_eq!(had.into_values().collect::<Vec<_>>(), [256; 3]);
}

#[test]
fn rule_3_an_allotment_is_used_up_to_the_last_count() {
    for (run, expected) in [(TICK - 1, 0), (TICK, 1)] {
        let mut bench = running(&["a"]);
        let a = bench.current.clone().unwrap();
        bench.run(run);
        bench.yield_now();
        assert_eq!(level(&bench, &a), expected, "{run} counts");
    }
}

#[test]
fn rule_3_a_tick_is_not_longer_on_a_cpu_that_is_mostly_idle() {
    let mut bench = running(&["a", "b"]);
    bench.trace("block>b, block>idle");
    let b = bench.asleep("b").unwrap();
    for _ in 0..20 {
        // The CPU is idle, so no ticks come.
        bench.trace("+48t, +500, wake a, pick, tick, +500, block");
    }
    // The tick length that was learned while `a` ran sets the first allotment of `b`, a new task.
    bench.trace("wake b, wake a, pick>b, tick");
    assert_eq!(level(&bench, &b), 1);
}

#[test]
fn rule_4_giving_way_just_before_each_tick_does_not_help() {
    let mut bench = running(&["gamer"]);
    let gamer = bench.current.clone().unwrap();
    for tick in 0..20 {
        bench.trace("+999, yield, +1, interrupt");
        let used = (tick + 1) * TICK;
        let expected = (0..).find(|i| used < TICK * ((2 << i) - 1)).unwrap() as usize;
        assert!(level(&bench, &gamer).abs_diff(expected) <= 1, "tick {tick}");
    }
    assert!(level(&bench, &gamer) >= 4);
    // Blocking does not help, either.
    let mut bench = running(&["gamer"]);
    let gamer = bench.current.clone().unwrap();
    for _ in 0..20 {
        bench.trace("+999, block>idle, +1, wake gamer, pick");
    }
    assert!(level(&bench, &gamer) >= 4);
}

#[test]
fn rule_5_the_end_after_a_yield_or_wake_the_front_after_a_preemption() {
    let mut bench = running(&["a", "b", "c"]);
    bench.trace("yield>b, block>c, wake b, on>c, yield>a");
    bench.trace("+10, preempt>a (preempted with allotment left), yield>b, yield>c");
}

#[test]
fn rule_6_a_reset_finds_ready_running_and_sleeping_tasks() {
    let mut bench = resetting::<600>(&["sleeps", "ready", "runs"]);
    bench.shares(500);
    bench.tick_until("sleeps");
    let sleeps = bench.block();
    let all = [sleeps.clone(), bench.current.clone().unwrap()];
    assert!(all.iter().all(|task| level(&bench, task) > 3));
    await_reset(&mut bench);
    assert!(all.iter().all(|task| level(&bench, task) == 0));
    bench.wake(&sleeps);
    let had = bench.shares(3);
    assert_eq!(had.len(), 3, "all at level 0, a tick each: {had:?}");
}

#[test]
fn rule_6_a_reset_comes_after_its_period_and_gives_a_fresh_allotment() {
    let mut bench = resetting::<100>(&["a"]);
    let a = bench.current.clone().unwrap();
    await_reset(&mut bench);
    for _ in 0..5 {
        let before = last_reset(&bench);
        bench.shares(99);
        assert_eq!(last_reset(&bench), before);
        assert!(level(&bench, &a) > 3 && a.policy_state().used.load(Relaxed) > 0);
        bench.tick();
        assert_eq!(last_reset(&bench), before + LEVELS as u32);
        assert_eq!(level(&bench, &a), 0);
        assert_eq!(a.policy_state().used.load(Relaxed), 0);
    }
}

#[test]
fn rule_6_a_reset_keeps_the_order_of_waiting() {
    let mut bench = resetting::<20>(&["low", "lower"]);
    await_reset(&mut bench);
    bench.shares(19);
    bench.spawn("new");
    let was = bench.name();
    while bench.tick() == was {}
    assert_eq!(bench.name(), "new", "it was at level 0 before the other");
}

#[test]
fn rule_6_a_reset_finds_a_sleeper_that_wakes_on_another_queue() {
    let [mut old, mut new] = [["moves"], ["local"]].map(|names| resetting::<100>(&names));
    await_reset(&mut old);
    old.shares(40);
    let moves = old.block();
    let was = moves.policy_state().level();
    assert!(was > 3);
    new.shares(30);
    new.wake(&moves);
    assert_eq!(level(&new, &moves), was, "no reset has passed");
    new.tick_until("moves");
    let moves = new.block();
    new.shares(101);
    old.trace("spawn busy, pick");
    old.shares(3);
    old.wake(&moves);
    assert_eq!(level(&old, &moves), 0);
}

/// The wait counts from the wake on, over all queues in which the task waits.
#[test]
fn rule_6_a_task_that_is_handed_over_is_reset_if_it_waited_since_before_the_last_reset() {
    let mut queues = [&["sleeps", "a"][..], &["b"], &["c"]].map(resetting::<100>);
    let [old, new, other] = &mut queues;
    let reset_and_then = |bench: &mut Bench<100>, ticks| {
        while bench.scheduler.policy().ticks_since_reset != ticks {
            bench.tick();
        }
    };
    let hand_over = |from: &mut Bench<100>, to: &mut Bench<100>| {
        let given = from
            .scheduler
            .migrate_out(&|name| *name == "sleeps")
            .unwrap();
        to.scheduler.hand_over(given.clone());
        level(to, &given)
    };
    old.shares(80);
    old.tick_until("sleeps");
    let sleeps = old.block();
    let was = level(old, &sleeps);
    assert!(was > 2);
    reset_and_then(new, 10);
    reset_and_then(other, 15);
    old.wake(&sleeps);
    assert_eq!(hand_over(old, new), was, "that reset came while it slept");
    old.run(14 * TICK);
    assert_eq!(hand_over(new, other), was, "and that one, by a tick");
    old.run(TICK);
    assert_eq!(hand_over(other, new), 0, "this one came while it waited");
    assert_eq!(sleeps.policy_state().used.load(Relaxed), 0);
}

#[test]
fn rule_6_a_queue_that_has_not_seen_two_ticks_resets_no_task_that_comes() {
    let (mut old, mut new) = (resetting::<100>(&["moves"]), Bench::<100>::new());
    old.shares(5);
    let moves = old.block();
    let was = level(&old, &moves);
    assert!(was > 0);
    new.wake(&moves);
    assert_eq!(level(&new, &moves), was);
}

#[test]
fn rule_6_no_task_of_a_thousand_is_lost_over_a_reset() {
    let mut bench = resetting::<2000>(&[]);
    let tasks: Vec<_> = (0..1000).map(|_| bench.spawn("one of many")).collect();
    bench.pick();
    await_reset(&mut bench);
    await_reset(&mut bench);
    let mut left = std::collections::BTreeSet::new();
    while bench.name() != "idle" {
        left.insert(Arc::as_ptr(&bench.block()));
    }
    assert_eq!(left.len(), 1000);
    assert!(tasks.iter().all(|task| left.contains(&Arc::as_ptr(task))));
}

#[test]
fn rule_7_a_tick_preempts_for_a_higher_level_and_at_the_end_of_an_allotment() {
    let mut bench = running(&["a"]);
    bench.trace("20x tick>a (level 4, alone: no preemption), spawn high, on>a, tick>high");
    bench.trace("tick>high (its level 1 is above a's), 13x tick>high (level 3 is, too)");
    let turn = (1..).find(|_| bench.tick() == "a").unwrap();
    assert!(turn <= 16);
}

#[test]
fn rule_8_a_yielder_sits_out_one_pick() {
    let mut bench = running(&["works"]);
    bench.shares(40);
    bench.trace("spawn spins, tick>spins, +1, yield>works (though it is five levels lower)");
    bench.trace("tick>spins, block>works, yield>works (alone, it goes on)");
}

#[test]
fn rule_9_a_task_that_is_handed_over_keeps_its_level_and_has_seen_resets() {
    let (mut old, mut new) = (resetting::<100>(&["a", "b"]), resetting::<100>(&["local"]));
    new.shares(60);
    let given_level = |old: &mut Bench<100>, new: &mut Bench<100>| {
        let given = old.scheduler.migrate_out(&|_| true);
        let given = given.expect("one of the two is ready");
        new.wake(&given);
        let level = level(new, &given);
        new.scheduler.remove_task(&given);
        old.wake(&given);
        level
    };
    old.shares(70);
    assert!(given_level(&mut old, &mut new) > 2);
    await_reset(&mut old);
    assert_eq!(given_level(&mut old, &mut new), 0);
}

#[test]
fn bound_each_of_n_runs_again_within_a_reset_and_two_ticks_each() {
    for n in [2, 5, 50, 300] {
        let mut bench = resetting::<100>(&[]);
        let tasks: Vec<_> = (0..n).map(|_| bench.spawn("a hog")).collect();
        bench.pick();
        let waited = bench.longest_wait(&tasks, 5_000);
        assert!(waited <= 100 + 2 * n, "{n} tasks: {waited} ticks");
    }
}

#[test]
fn cost_no_call_takes_more_steps_than_documented_with_4096_tasks_on_all_levels() {
    let mut bench = resetting::<1>(&["runs"]);
    let policy = bench.scheduler.policy_mut();
    for i in 0..4096 {
        let task = Arc::new(MlfqTask::new("one of many"));
        policy.intervals.adopt(&task);
        policy.place(task.policy_state(), i % LEVELS);
        policy.push_back(task);
    }
    policy.allotments = Allotments::UNKNOWN; // so that all of them change at the tick
    let most = bench::most_steps(&mut bench, 100);
    assert!((2 * LEVELS..=3 * LEVELS).contains(&most), "{most}");
}

#[test]
fn priorities_are_refused() {
    assert!(!running(&["a"]).set_priority(0));
}

#[test]
fn a_level_is_empty_when_its_last_task_is_removed() {
    let mut bench = running(&["a", "b"]);
    bench.shares(20);
    let runs = bench.current.clone().unwrap();
    let ready = bench.scheduler.pick_next_task().unwrap();
    assert!(!Arc::ptr_eq(&ready, &runs) && level(&bench, &ready) > 1);
    bench.scheduler.put_prev_task(runs.clone(), true);
    assert!(bench.scheduler.remove_task(&runs).is_some());
    assert_eq!(bench.scheduler.policy().occupied, 0);
}

#[test]
fn a_tick_that_hits_main_lets_a_ready_task_go_before_it() {
    bench::assert_tick_preempts_main::<Adapter<P>>();
}
