//! CFS rule by rule.

use super::*;
use crate::BaseScheduler;
use crate::bench::{self, TICK};
use crate::clock::VirtualClock;

type Bench = bench::Bench<Cfs<&'static str, VirtualClock>>;

/// A count, as vruntime.
const ONE: u64 = 1 << FRACTION_BITS;

fn vruntime(bench: &Bench) -> u64 {
    bench.current.as_ref().unwrap().state().key().0
}

fn min(bench: &Bench) -> Key {
    bench.scheduler.policy().min_vruntime
}

#[test]
fn rule_1_vruntime_is_weighted_time_on_the_cpu() {
    assert_eq!(weighted(Counts(12345), NICE_0), 12345 * ONE);
    assert_eq!(weighted(Counts(88761), 0) >> FRACTION_BITS, 1023);
    assert!(weighted(Counts(1), 0) > 0, "a single count of the heaviest");
    assert_eq!(weighted(Counts(15), 39) >> FRACTION_BITS, 1023);
    let mut bench = Bench::running(&["a"]);
    bench.run(300);
    bench.yield_now();
    bench.run(40);
    let a = bench.block();
    bench.run(1_000_000); // asleep
    assert_eq!(a.state().key(), Key(340 * ONE));
}

#[test]
fn rule_1_shares_follow_the_weights() {
    let mut bench = Bench::running(&["nice 0", "nice 5"]);
    bench.yield_now();
    assert_eq!(bench.name(), "nice 5");
    assert!(bench.set_priority(5));
    let had = bench.shares(100_000);
    let ratio = had["nice 0"] as f64 / had["nice 5"] as f64;
    let weights = f64::from(WEIGHTS[20]) / f64::from(WEIGHTS[25]);
    assert!(
        (ratio / weights - 1.0).abs() < 0.01,
        "{ratio} for {weights}"
    );
}

#[test]
fn rule_1_a_year_without_a_tick_does_not_overflow() {
    let year_at_4_ghz = Counts(4_000_000_000 * 86_400 * 366);
    for nice in 0..40 {
        let charge = weighted(year_at_4_ghz, nice);
        let exact = u128::from(year_at_4_ghz.0) * 1024 * u128::from(ONE)
            / u128::from(WEIGHTS[nice as usize]);
        let exact = exact.min(1 << 62) as f64;
        assert!(
            (charge as f64 / exact - 1.0).abs() < 1e-6,
            "nice {}",
            nice as i32 - 20
        );
    }
}

#[test]
fn rule_2_the_smallest_vruntime_runs_ties_by_arrival() {
    let mut bench = Bench::running(&["a", "b", "c"]);
    assert_eq!(bench.name(), "a");
    bench.run(10);
    assert_eq!(bench.preempt(), "b");
    bench.run(5);
    assert_eq!(bench.preempt(), "c");
    bench.run(20);
    assert_eq!(bench.preempt(), "b", "5 is less than 10 and 20");
    bench.run(5);
    assert_eq!(bench.preempt(), "a", "10 and 10: a came first");
}

#[test]
fn rule_2_vruntime_may_wrap() {
    let mut policy = <Cfs<_, _> as Policy>::NEW;
    policy.min_vruntime = Key(u64::MAX - 2 * TICK * ONE);
    let mut bench = Bench::with(Adapter::with_policy(policy));
    let _both = ["a", "b"].map(|name| bench.spawn(name));
    bench.block();
    let had = bench.shares(1000);
    assert!(had["a"].abs_diff(had["b"]) <= 4, "{had:?}");
    assert!(min(&bench).0 < 1_000_000 * ONE, "it has wrapped");
}

#[test]
fn rule_3_min_vruntime_moves_on_every_call_and_never_back() {
    let mut bench = Bench::running(&["a", "b"]);
    let mut last = min(&bench);
    let mut moved = 0;
    for step in 0..1000 {
        match step % 5 {
            0 => drop(bench.yield_now()),
            1 => drop(bench.preempt()),
            2 if step % 3 == 0 => {
                let task = bench.block();
                bench.run(7);
                bench.wake(&task);
            }
            _ => drop(bench.tick()),
        }
        bench.run(3);
        assert!(min(&bench) >= last, "step {step}");
        moved += usize::from(min(&bench) > last);
        last = min(&bench);
    }
    assert!(moved > 300, "{moved}");
    // Alone, a task carries it along at each tick.
    let mut bench = Bench::running(&["alone"]);
    for tick in 1..100 {
        bench.tick();
        assert_eq!(min(&bench), Key(tick * TICK * ONE));
    }
}

#[test]
fn rule_4_a_late_task_owes_nothing_and_is_owed_nothing() {
    let mut bench = Bench::running(&["early"]);
    bench.shares(5000);
    bench.spawn("late");
    let had = bench.shares(100);
    assert!(had["early"].abs_diff(had["late"]) <= 4, "{had:?}");
}

#[test]
fn rule_5_a_sleeper_gets_a_tick_of_credit_however_long_it_slept() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    bench.tick();
    let sleeper = loop {
        if bench.name() == "sleeper" {
            break bench.block();
        }
        bench.tick();
    };
    bench.shares(5000);
    bench.wake(&sleeper);
    assert_eq!(
        min(&bench).after(sleeper.state().key()),
        (SLEEPER_CREDIT_TICKS * TICK * ONE) as i64
    );
    let had = bench.shares(100);
    assert!(had["sleeper"].abs_diff(had["worker"]) <= 4, "{had:?}");
}

#[test]
fn rule_6_a_yield_goes_behind_the_first_in_line() {
    let mut bench = Bench::running(&["yields", "waits"]);
    bench.run(10);
    assert_eq!(bench.preempt(), "waits");
    bench.run(10_000);
    assert_eq!(bench.preempt(), "yields", "9,990 behind");
    assert_eq!(bench.yield_now(), "waits", "all the same");
}

#[test]
fn rule_7_a_task_that_changes_queues_keeps_its_distance_only() {
    let (mut old, mut new) = (
        Bench::running(&["moves", "stays"]),
        Bench::running(&["local"]),
    );
    old.shares(10_000);
    while old.name() != "moves" {
        old.tick();
    }
    old.run(3 * TICK);
    let moves = old.block();
    let lag = moves.state().key().after(min(&old));
    assert!(lag > 0, "it has just run");
    new.shares(3); // charges the local task for the time that has passed
    new.wake(&moves);
    assert_eq!(moves.state().key().after(min(&new)), lag);
    let had = new.shares(100);
    assert!(had["local"].abs_diff(had["moves"]) <= 6, "{had:?}");
    // And back, where time has gone on meanwhile.
    while new.name() != "moves" {
        new.tick();
    }
    let moves = new.block();
    old.shares(1000);
    old.wake(&moves);
    let had = old.shares(100);
    assert!(had["stays"].abs_diff(had["moves"]) <= 6, "{had:?}");
}

#[test]
fn rule_7_a_task_that_migrates_while_it_runs_is_charged_once() {
    let (mut old, mut new) = (
        Bench::running(&["moves", "stays"]),
        Bench::running(&["local"]),
    );
    old.run(500);
    let moves = old.current.take().unwrap();
    new.wake(&moves); // by the helper, on the old CPU
    let charged = moves.state().key();
    assert_eq!(charged, Key(500 * ONE));
    old.run(100);
    old.pick(); // the helper exits; the old queue sees that somebody has left
    assert_eq!((old.name(), moves.state().key()), ("stays", charged));
}

#[test]
fn rule_8_nice_values_are_checked() {
    let mut bench = Bench::running(&["a"]);
    for nice in -20..=19 {
        assert!(bench.set_priority(nice));
    }
    for nice in [-21, 20, isize::MIN, isize::MAX] {
        assert!(!bench.set_priority(nice));
    }
}

#[test]
fn rule_8_a_change_of_nice_keeps_the_charge() {
    let mut bench = Bench::running(&["a", "b"]);
    bench.run(1024);
    assert!(bench.set_priority(19));
    assert_eq!(vruntime(&bench), 1024 * ONE, "by the old weight");
    bench.run(15);
    assert!(bench.set_priority(0));
    assert_eq!(
        vruntime(&bench) >> FRACTION_BITS,
        1024 + 1023,
        "by the new one"
    );
    for _ in 0..100 {
        bench.set_priority(0);
    }
    assert_eq!(vruntime(&bench) >> FRACTION_BITS, 1024 + 1023);
}

#[test]
fn rule_8_repeating_it_starves_nobody() {
    let mut bench = Bench::running(&["greedy", "modest"]);
    let mut had = [0, 0];
    for _ in 0..200_000 {
        let greedy = bench.name() == "greedy";
        had[usize::from(greedy)] += 1;
        if greedy {
            bench.set_priority(-20);
        }
        bench.tick();
    }
    let ratio = f64::from(had[1]) / f64::from(had[0]);
    assert!(ratio < 1.1 * 88761.0 / 1024.0, "{ratio}");
}

#[test]
fn rule_9_a_tick_preempts_with_a_granularity() {
    let mut bench = Bench::running(&["a", "b"]);
    bench.shares(20);
    let mut changes = 0;
    let mut last = bench.name();
    for _ in 0..1000 {
        let now = bench.tick();
        changes += usize::from(now != last);
        last = now;
    }
    assert!(
        (200..=500).contains(&changes),
        "{changes} changes in 1000 ticks"
    );
}

#[test]
fn rule_9_a_waker_preempts_at_the_next_tick_and_not_before() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    bench.tick();
    bench.tick();
    while bench.name() != "sleeper" {
        bench.tick();
    }
    let sleeper = bench.block();
    bench.shares(20);
    bench.wake(&sleeper);
    assert_eq!(bench.name(), "worker");
    assert_eq!(
        bench.tick(),
        "sleeper",
        "a tick of credit and a tick of run"
    );
}

#[test]
fn bound_each_of_n_equal_tasks_runs_again() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut bench = Bench::running(&names);
    let bound = (names.len() as u64 - 1) * (GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS + 1);
    let mut last = std::collections::BTreeMap::from(names.map(|name| (name, 0)));
    for now in 0..10_000 {
        let waited = now - last.insert(bench.name(), now).unwrap();
        assert!(
            waited <= bound + 1,
            "{} waited {waited} ticks",
            bench.name()
        );
        bench.tick();
    }
}

#[test]
fn a_re_added_task_is_found_by_remove() {
    let mut bench = Bench::running(&["a", "b"]);
    bench.run(500);
    let a = bench.current.clone().unwrap();
    bench.preempt();
    let mut s = bench.scheduler;
    assert!(s.remove_task(&a).is_some());
    s.add_task(a.clone());
    assert!(s.remove_task(&a).is_some());
    assert!(s.remove_task(&a).is_none());
}
