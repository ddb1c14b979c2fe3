//! CFS rule by rule.

// The file is long because every rule has its tests here.

use proptest::prelude::*;

use super::*;
use crate::fair::{self, Fair, ONE};
use sched_core::BaseScheduler;
use sched_core::clock::VirtualClock;
use sched_core::event::TaskRef;
use sched_model::bench::{self, TICK};

type Policy = Cfs<&'static str, VirtualClock>;
type Bench = bench::Bench<Adapter<Policy>>;
type Handle = bench::Handle<Adapter<Policy>>;

/// The length of a tick, as vruntime.
const TICK_ONE: u64 = TICK * ONE;

trait Scene {
    fn assert_valid(&mut self);

    /// Returns the queue's `min_vruntime`.
    fn min(&self) -> Key;

    /// Returns the vruntime of the running task, in counts.
    fn vruntime(&self) -> u64;

    /// Takes the running task off the queue, as a migration does before a pick has seen it.
    fn begin_migration(&mut self) -> Handle;
}

impl Scene for Bench {
    fn assert_valid(&mut self) {
        self.scheduler.policy_mut().assert_valid();
    }

    fn min(&self) -> Key {
        self.scheduler.policy().min_vruntime
    }

    fn vruntime(&self) -> u64 {
        self.current.as_ref().expect("a task runs").key().0 / ONE
    }

    fn begin_migration(&mut self) -> Handle {
        self.current.take().expect("a task runs")
    }
}

/// Returns the virtual time of the task's queue.
fn virtual_time(task: &Handle) -> Key {
    let time = VirtualTime::find(RunIntervals::home(task)).expect("it has been on a queue");
    time.at(VirtualClock::now())
}

/// Returns how far a task is ahead of its queue's virtual time.
fn lag(task: &Handle) -> i64 {
    task.key().after(virtual_time(task))
}

/// Checks that `a` and `b` are a thousandth of a tick or less apart.
#[track_caller]
fn assert_about(a: i64, b: i64) {
    assert!(a.abs_diff(b) <= TICK_ONE / 1000, "{a} and {b}");
}

/// Checks that two tasks had the same of 100 ticks, give or take `apart`.
#[track_caller]
fn assert_equal_shares(bench: &mut Bench, [a, b]: [&str; 2], apart: usize) {
    let had = bench.shares(100);
    assert!(had[a].abs_diff(had[b]) <= apart, "{had:?}");
}

#[test]
fn rule_1_vruntime_is_weighted_time_on_the_cpu() {
    let mut bench = Bench::running(&["a"]);
    bench.trace("+300, yield>a, +40");
    let a = bench.block();
    bench.run(1_000_000); // asleep
    assert_eq!(a.key(), Key(340 * ONE));
}

#[test]
fn rule_1_shares_follow_the_weights() {
    fair::shares_follow_weights::<Policy>();
}

#[test]
fn rule_2_the_smallest_vruntime_runs_ties_by_arrival() {
    let mut bench = Bench::running(&["a", "b", "c"]);
    bench.trace("on>a, +10, preempt>b, +5, preempt>c, +20, preempt>b (5 is less than 10 and 20)");
    bench.trace("+5, preempt>a (10 and 10: a came first)");
}

#[test]
fn rule_2_vruntime_may_wrap() {
    let mut policy = <Policy as sched_core::event::Policy>::NEW;
    policy.min_vruntime = Key(u64::MAX - 2 * TICK_ONE);
    let mut bench = Bench::with(Adapter::with_policy(policy));
    bench.trace("spawn a, spawn b, block");
    let had = bench.shares(1000);
    assert!(had["a"].abs_diff(had["b"]) <= 4, "{had:?}");
    assert!(bench.min().0 < 1_000_000 * ONE, "it has wrapped");
}

#[test]
fn rule_2_the_smallest_vruntime_runs_to_one_bucket() {
    let (apart, width) = fair::order::<Policy>();
    assert!(apart > width / 2 && width > 1, "{apart} of {width}");
    assert_eq!(fair::order::<Exact>(), (0, 1));
}

#[test]
fn rule_3_min_vruntime_moves_on_and_never_back() {
    let mut bench = Bench::running(&["a", "b"]);
    let mut last = bench.min();
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
        assert!(bench.min() >= last, "step {step}");
        moved += usize::from(bench.min() > last);
        last = bench.min();
    }
    assert!(moved > 300, "{moved}");
    // A task that runs alone moves `min_vruntime` at each tick.
    let mut bench = Bench::running(&["alone"]);
    for tick in 1..100 {
        bench.tick();
        assert_eq!(bench.min(), Key(tick * TICK_ONE));
    }
}

#[test]
fn rule_3_min_vruntime_waits_for_the_running_task() {
    let mut bench = Bench::running(&["a", "b", "c"]);
    bench.trace("+100, block>b, +10, preempt>c, +20, preempt>b");
    // b runs with 10, c is the first in line with 20, and a wakes with 100.
    bench.trace("wake a");
    assert_eq!(bench.min(), Key(10 * ONE));
    bench.trace("+5, interrupt");
    assert_eq!(bench.min(), Key(15 * ONE));
}

/// A task leaves an idle queue for one with vruntimes far ahead. Before the old queue's next pick
/// the helper wakes another task there.
#[test]
fn rule_3_a_task_that_migrates_takes_its_vruntime_along() {
    let mut old = Bench::running(&["moves", "sleeper"]);
    let mut new = Bench::running(&["local"]);
    old.shares(20);
    new.shares(5000);
    old.trace("until sleeper, block>moves");
    let moves = old.begin_migration();
    let before = old.min();
    new.interrupt();
    new.wake(&moves);
    old.trace("wake sleeper");
    let by = old.min().after(before);
    assert!(by <= (3 * TICK_ONE) as i64, "{by}");
}

#[test]
fn rule_4_a_late_task_starts_as_if_it_had_just_run() {
    let mut bench = Bench::running(&["early"]);
    bench.shares(5000);
    let late = bench.spawn("late");
    let granularity = (GRANULARITY_TICKS * TICK_ONE) as i64;
    assert_eq!(late.key().after(bench.min()), granularity);
    assert_equal_shares(&mut bench, ["early", "late"], 4);
}

#[test]
fn rule_4_a_chain_of_spawns_starves_no_task() {
    fair::chains_of_spawns::<Policy>(|chains, _, waited| {
        assert!(waited <= 12, "{chains} chains: {waited} ticks");
    });
}

#[test]
fn rule_5_a_sleeper_gets_a_tick_of_credit_however_long_it_slept() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    bench.tick();
    bench.tick_until("sleeper");
    let sleeper = bench.block();
    bench.shares(5000);
    bench.wake(&sleeper);
    let credit = (SLEEPER_CREDIT_TICKS * TICK_ONE) as i64;
    assert_eq!(bench.min().after(sleeper.key()), credit);
    assert_equal_shares(&mut bench, ["sleeper", "worker"], 4);
}

/// The sleeps are longer than half the line of vruntime, which a task of nice 19 passes in hours.
#[test]
fn rule_5_a_sleeper_waits_only_ticks_after_years() {
    for (nice, days) in [(0, 1), (0, 27), (0, 400), (19, 1), (19, 30)] {
        let mut bench = Bench::running(&["sleeper", "worker"]);
        bench.shares(20);
        bench.trace("until sleeper, block>worker");
        bench.set_priority(nice);
        for _ in 0..days * 24 {
            bench.trace("+3_600_000_000_000 (an hour at 1 GHz), interrupt");
        }
        bench.shares(20);
        bench.trace("wake sleeper");
        let waited = (0..).find(|_| bench.tick() == "sleeper").unwrap();
        assert!(waited <= 4, "{waited} ticks, nice {nice}, {days} days");
    }
}

#[test]
fn rule_5_a_tick_is_not_longer_on_a_cpu_that_is_mostly_idle() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    let sleeper = bench.block();
    bench.shares(5000);
    let worker = bench.block();
    for _ in 0..20 {
        bench.run(49 * TICK - TICK / 2); // idle, so no ticks
        bench.wake(&worker);
        bench.trace("pick>worker, tick>worker, +500");
        bench.block();
    }
    bench.wake(&worker);
    bench.pick();
    bench.wake(&sleeper);
    let waited = bench.longest_wait(&[sleeper, worker], 1000);
    assert!(waited <= 6, "{waited}");
}

#[test]
fn rule_6_a_yield_goes_behind_the_first_in_line() {
    let mut bench = Bench::running(&["yields", "waits"]);
    bench.trace("+10, preempt>waits, +10_000, preempt>yields (9,990 behind), yield>waits");
}

#[test]
fn rule_6_a_yield_forgives_no_debt() {
    let mut bench = Bench::running(&["yields", "waits"]);
    bench.shares(20);
    for ticks in [1, 3, 10, 50] {
        bench.tick_until("yields");
        let yields = bench.current.clone().unwrap();
        bench.run(ticks * TICK); // with interrupts off, say
        let charged = yields.key().later(ticks * TICK_ONE);
        let first = bench.scheduler.policy().ready.first_key().unwrap();
        bench.trace("yield>waits");
        assert_eq!(yields.key(), charged.max(first));
        let ran = (0..1000).find(|_| bench.tick() != "waits").unwrap_or(1000) + 1;
        let debt = charged.after(first) / TICK_ONE as i64;
        assert!(
            (debt..1000).contains(&ran),
            "{ticks} ticks: {debt} of debt, {ran} to the other"
        );
    }
}

#[test]
fn rule_7_a_task_that_changes_queues_keeps_its_lag() {
    let mut old = Bench::running(&["moves", "stays"]);
    old.shares(10_000);
    let mut new = Bench::running(&["local"]);
    new.shares(3);
    for ticks in [0, 1, 3, 7] {
        old.tick_until("moves");
        old.run(ticks * TICK);
        let moves = old.block();
        let before = lag(&moves);
        new.interrupt(); // as on a machine, where each has its ticks
        new.wake(&moves);
        assert_about(lag(&moves), before);
        assert!(ticks < 2 || before > 0, "it has just run");
        assert_equal_shares(&mut new, ["local", "moves"], 6);
        // The task goes back after more time has passed.
        new.trace("until moves, tick");
        let moves = new.block();
        old.shares(1000);
        old.interrupt();
        old.wake(&moves);
        assert_equal_shares(&mut old, ["stays", "moves"], 6);
    }
}

/// The debt does not shrink with real time, nor with the virtual time of the new queue.
#[test]
fn rule_7_a_debt_is_worked_off_at_the_old_queues_speed() {
    for hogs in [1, 4, 16] {
        let mut old = Bench::running(&["moves"]);
        let mut new = Bench::running(&["local", "local"]);
        new.shares(20);
        (0..hogs).for_each(|_| _ = old.spawn("hog"));
        old.shares(20 * hogs as usize);
        old.trace("until moves, +30t");
        let moves = old.block();
        let debt = lag(&moves);
        old.shares(8 * hogs as usize);
        // Eight rounds, give or take the distance of the virtual time from the hogs' vruntimes.
        let left = lag(&moves);
        let width = GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS;
        let worked_off = debt - left - (8 * TICK_ONE) as i64;
        assert!(
            worked_off.unsigned_abs() <= width * TICK_ONE,
            "{hogs}: {worked_off}"
        );
        assert!(left > 0, "{hogs} hogs: {left}");
        new.interrupt();
        new.wake(&moves);
        assert_about(lag(&moves), left);
    }
}

#[test]
fn rule_7_a_task_that_migrates_while_it_runs_is_charged_once() {
    let mut old = Bench::running(&["moves", "stays"]);
    let mut new = Bench::running(&["local"]);
    new.shares(20);
    old.shares(20);
    old.tick_until("moves");
    let before = lag(old.current.as_ref().unwrap());
    old.run(500);
    let moves = old.begin_migration();
    new.wake(&moves); // the helper does this, on the old CPU
    // The virtual time of two tasks has moved by 250 of the 500.
    assert_about(lag(&moves), before + 250 * ONE as i64);
    let charged = moves.key();
    old.trace("+100, pick>stays (the helper exits, and the old queue sees that a task has left)");
    assert_eq!(moves.key(), charged);
}

#[test]
fn rule_7_virtual_time_is_shared_by_the_tasks_that_are_ready_at_each_moment() {
    for migrates in [false, true] {
        let mut old = Bench::running(&["hog", "sleeper", "stays"]);
        old.shares(20);
        old.tick_until("sleeper");
        let sleeper = old.block();
        old.trace("tick, until hog");
        let start = virtual_time(&sleeper);
        old.run(500);
        old.wake(&sleeper);
        let at_wake = virtual_time(&sleeper).after(start);
        assert_about(at_wake, 250 * ONE as i64);
        if migrates {
            let hog = old.begin_migration();
            Bench::running(&["local"]).wake(&hog);
            old.pick();
        }
        old.trace("+500, interrupt");
        let ready = if migrates { 2 } else { 3 };
        let more = virtual_time(&sleeper).after(start) - at_wake;
        assert_about(more, (500 * ONE / ready) as i64);
    }
}

/// A task that moves from queue to queue without running neither gains nor loses.
#[test]
fn rule_7_lag_stays_over_repeated_moves() {
    let mut queues = [2, 5, 9].map(|hogs| Bench::running(&["hog"; 9][..hogs]));
    (0..200).for_each(|_| bench::all_tick(&mut queues));
    let traveller = queues[0].block();
    for debt_ticks in [6, 3] {
        let to = (debt_ticks * TICK_ONE as i64 - lag(&traveller)) as u64;
        traveller.set_key(traveller.key().later(to));
        let start = lag(&traveller);
        for to in [1, 2, 0, 2, 1, 0] {
            queues[to].wake(&traveller);
            assert_about(lag(&traveller), start);
            assert!(queues[to].scheduler.remove_task(&traveller).is_some());
        }
    }
}

/// A debt is worked off by waiting, so the task does not pay it again elsewhere.
#[test]
fn rule_7_lag_is_measured_at_the_time_of_the_move() {
    let mut old = Bench::running(&["moves", "stays"]);
    let mut new = Bench::running(&["local"]);
    old.shares(20);
    new.shares(20);
    old.tick_until("moves");
    assert!(old.set_priority(19));
    old.trace("while moves, until moves");
    let moves = old.begin_migration();
    assert_eq!(moves.key().after(old.min()), 0);
    new.interrupt();
    new.wake(&moves);
    assert!(moves.key() <= new.min());
}

#[test]
fn rule_7_the_virtual_time_has_the_weight_of_the_ready_and_running_tasks() {
    let mut bench = Bench::running(&["runs"]);
    let (runs, ready) = (bench.current.clone().unwrap(), bench.spawn("ready"));
    let weight_after = |bench: &mut Bench, task: &Handle, nice| {
        assert!(bench.scheduler.set_priority(task, nice));
        bench.scheduler.policy_mut().time().weight()
    };
    let of = fair::weight;
    assert_eq!(weight_after(&mut bench, &ready, 5), of(0) + of(5));
    assert_eq!(weight_after(&mut bench, &runs, 3), of(3) + of(5));
    let runs = bench.block();
    assert_eq!(weight_after(&mut bench, &runs, 7), of(5), "asleep");
    bench.wake(&runs);
    assert_eq!(bench.scheduler.policy_mut().time().weight(), of(5) + of(7));
}

proptest! {
    #[test]
    fn rule_7_a_task_counts_where_it_is_ready(steps in bench::steps()) {
        bench::whatever_happens(steps, Bench::assert_valid);
    }
}

#[test]
fn rule_8_a_charge_by_set_priority_is_kept_over_a_migration() {
    let mut old = Bench::running(&["moves"]);
    let mut new = Bench::running(&["local"]);
    old.shares(3);
    new.shares(3);
    old.run(900);
    old.set_priority(0);
    let moves = old.begin_migration();
    let lag = moves.key().after(old.min());
    new.interrupt();
    new.wake(&moves);
    assert_eq!(moves.key().after(new.min()), lag);
}

#[test]
fn rule_8_nice_values_are_checked() {
    bench::assert_nice_range::<Adapter<Policy>>();
}

#[test]
fn rule_8_a_change_of_nice_keeps_the_charge() {
    let mut bench = Bench::running(&["a", "b"]);
    bench.run(1024);
    assert!(bench.set_priority(19));
    assert_eq!(bench.vruntime(), 1024, "by the old weight");
    bench.run(15);
    for _ in 0..100 {
        assert!(bench.set_priority(0));
        assert_eq!(bench.vruntime(), 1024 + 1023, "by the new one, and once");
    }
}

#[test]
fn rule_8_repeated_set_priority_starves_no_task() {
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

/// The running task gives way when it has gone from two ticks behind to two ahead.
#[test]
fn rule_9_a_tick_preempts_with_a_granularity() {
    for tick in [Bench::tick, Bench::late_tick] {
        let turns = Bench::running(&["a", "b"]).turns(tick);
        let is_steady = |&turn: &u64| turn == 2 * GRANULARITY_TICKS;
        assert!(turns[5..].iter().all(is_steady), "{turns:?}");
    }
}

#[test]
fn rule_9_the_granularity_is_in_ticks_of_the_running_tasks_weight() {
    let mut bench = Bench::running(&["light", "normal"]);
    bench.shares(20);
    bench.tick_until("light");
    assert!(bench.set_priority(10)); // a tenth of the weight
    bench.trace("tick, while light, tick, until light");
    // After one tick of its own it is nine of the other's ticks ahead.
    bench.trace("tick>light");
}

#[test]
fn rule_9_a_waker_preempts_at_the_next_tick_and_not_before() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    bench.trace("tick, tick, until sleeper, block>worker");
    bench.shares(20);
    bench.trace("wake sleeper, on>worker, tick>sleeper (a tick of credit and a tick of run)");
}

#[test]
fn rule_11_a_mover_starts_no_earlier_than_the_entry_line() {
    let mut queues = [&["mover", "hog"][..], &["hog"; 16]].map(Bench::running);
    (0..200).for_each(|_| bench::all_tick(&mut queues));
    queues[0].tick_until("mover");
    queues[1].interrupt();
    let mover = queues[0].block();
    let width = (GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS) * TICK_ONE;
    let (mut entry, mut time, mut checked) = (Key(0), Key(0), 0);
    for _ in 0..200 {
        bench::all_tick(&mut queues);
        let policy = queues[1].scheduler.policy();
        let now = virtual_time(queues[1].current.as_ref().unwrap());
        let behind = queues[1].min().after(policy.entry);
        assert!(behind <= width as i64 && -behind <= (ENTRY_TICKS * TICK_ONE) as i64);
        let moved = now.after(time);
        let is_steady = moved.abs_diff((TICK_ONE / 16) as i64) <= TICK_ONE / 1000;
        if is_steady && behind < width as i64 {
            assert_about(policy.entry.after(entry), moved / 2);
            checked += 1;
        }
        (entry, time) = (policy.entry, now);
        // A mover from far behind starts at the entry line.
        mover.set_key(mover.key().later((1000 * TICK_ONE).wrapping_neg()));
        queues[1].wake(&mover);
        let floor = (queues[1].min()).later((SLEEPER_CREDIT_TICKS * TICK_ONE).wrapping_neg());
        let entry_line = queues[1].scheduler.policy().entry;
        assert_eq!(mover.key(), entry_line.max(floor));
        queues[1].scheduler.remove_task(&mover);
        queues[0].wake(&mover);
        queues[0].scheduler.remove_task(&mover);
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn bound_each_of_n_equal_tasks_runs_again() {
    let turn = 2 * GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS + 1;
    fair::equals_run_again_within::<Policy>(|n| (n - 1) * turn);
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

#[test]
fn a_tick_that_hits_main_lets_a_ready_task_go_before_it() {
    bench::assert_tick_preempts_main::<Adapter<Policy>>();
}

type Exact = Cfs<&'static str, VirtualClock, Ordered<&'static str, CfsState>>;

impl<Q: ByKey<&'static str, CfsState>> Fair for Cfs<&'static str, VirtualClock, Q> {
    fn width(&self) -> u64 {
        Key(u64::MAX).after(self.ready.floor(Key(u64::MAX))) as u64 + 1
    }

    fn intervals(&self) -> &RunIntervals<&'static str, Keyed<CfsState>> {
        &self.intervals
    }

    fn vruntime(task: &TaskRef<Self>) -> (Key, Factor) {
        (task.key(), share(task).factor())
    }

    type Ready = Vec<Key>;

    fn ready(&self) -> Vec<Key> {
        let ready = self.ready.tasks().into_iter();
        ready.map(KeyedTask::key).collect()
    }

    /// Checks rule 2: no ready task is ahead of `next` by the width of a bucket or more.
    fn check_next(&self, ready: &Vec<Key>, next: &TaskRef<Self>) -> u64 {
        let first = ready.iter().min().copied().unwrap_or(next.key());
        let apart = next.key().after(first);
        assert!((0..self.width() as i64).contains(&apart), "rule 2: {apart}");
        apart as u64
    }
}

#[test]
fn order_shares_are_by_weight_and_lag_is_at_most_a_bucket_more() {
    fair::hogs::<Policy, Exact>();
}

#[test]
fn order_a_bucket_takes_nothing_from_sleepers() {
    fair::sleepers::<Policy, Exact>();
}

#[test]
fn order_with_uneven_bursts_lag_is_at_most_a_bucket_more() {
    fair::uneven::<Policy, Exact>(&fair::Bounds {
        wait: 6.5,
        share: 0.15,
    });
}

/// A pick takes the first task out, and puts a yielder in: two walks down the tree.
#[test]
fn cost_is_bounded_beside_4096_tasks() {
    let longest = fair::steps::<Policy, Exact>(2);
    assert!(longest.iter().all(|&steps| steps > 40), "{longest:?}");
}
