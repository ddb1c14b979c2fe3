//! CFS rule by rule.

use proptest::prelude::*;

use super::*;
use crate::fair::{self, Fair};
use sched_core::BaseScheduler;
use sched_core::clock::VirtualClock;
use sched_core::event::TaskRef;
use sched_core::nice::{FRACTION_BITS, WEIGHTS};
use sched_model::bench::{self, TICK};

type Policy = Cfs<&'static str, VirtualClock>;
type Bench = bench::Bench<Adapter<Policy>>;
type Handle = bench::Handle<Adapter<Policy>>;

trait Valid {
    fn assert_valid(&mut self);
}

impl Valid for Bench {
    fn assert_valid(&mut self) {
        self.scheduler.policy_mut().assert_valid();
    }
}

/// A count, as vruntime.
const ONE: u64 = 1 << FRACTION_BITS;

fn vruntime(bench: &Bench) -> u64 {
    bench.current.as_ref().unwrap().key().0
}

fn min(bench: &Bench) -> Key {
    bench.scheduler.policy().min_vruntime
}

#[test]
fn rule_1_vruntime_is_weighted_time_on_the_cpu() {
    let mut bench = Bench::running(&["a"]);
    bench.run(300);
    bench.yield_now();
    bench.run(40);
    let a = bench.block();
    bench.run(1_000_000); // asleep
    assert_eq!(a.key(), Key(340 * ONE));
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
    let mut policy = <Policy as sched_core::event::Policy>::NEW;
    policy.min_vruntime = Key(u64::MAX - 2 * TICK * ONE);
    let mut bench = Bench::with(Adapter::with_policy(policy));
    let _both = ["a", "b"].map(|name| bench.spawn(name));
    bench.block();
    let had = bench.shares(1000);
    assert!(had["a"].abs_diff(had["b"]) <= 4, "{had:?}");
    assert!(min(&bench).0 < 1_000_000 * ONE, "it has wrapped");
}

#[test]
fn rule_3_min_vruntime_moves_on_and_never_back() {
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
fn rule_3_min_vruntime_waits_for_the_running_task() {
    let mut bench = Bench::running(&["a", "b", "c"]);
    bench.run(100);
    let a = bench.block();
    bench.run(10);
    assert_eq!(bench.preempt(), "c");
    bench.run(20);
    assert_eq!(bench.preempt(), "b");
    // b runs with 10, c is the first in line with 20, and a comes with 100.
    bench.wake(&a);
    assert_eq!(min(&bench), Key(10 * ONE));
    bench.run(5);
    bench.interrupt();
    assert_eq!(min(&bench), Key(15 * ONE));
}

#[test]
fn rule_4_a_late_task_has_just_had_a_turn_and_no_more() {
    let mut bench = Bench::running(&["early"]);
    bench.shares(5000);
    let late = bench.spawn("late");
    let turn = (GRANULARITY_TICKS * TICK * ONE) as i64;
    assert_eq!(late.key().after(min(&bench)), turn);
    let had = bench.shares(100);
    assert!(had["early"].abs_diff(had["late"]) <= 4, "{had:?}");
}

/// Each worker spawns the next, works and exits, so that two or three are ready.
#[test]
fn rule_4_a_chain_of_spawns_starves_nobody() {
    for (chains, work) in [(1, 10), (1, 900), (2, 900), (2, 2500)] {
        let mut bench = Bench::running(&["victim", "first"]);
        bench.tick_until("victim");
        bench.tick_while("victim"); // it has had its turn, and is ahead
        for _ in 1..chains {
            bench.spawn("link");
        }
        let (mut clock, mut waited) = (0, 0);
        while bench.name() != "victim" {
            bench.spawn("link");
            for _ in 0..work / 10 {
                bench.run(10);
                clock += 10;
                if clock % TICK == 0 {
                    waited += 1;
                    bench.interrupt();
                }
            }
            if bench.name() != "victim" {
                bench.block(); // exits
            }
            assert!(waited <= 12, "{chains} chains of {work}: {waited} ticks");
        }
    }
}

#[test]
fn rule_5_a_sleeper_gets_a_tick_of_credit_however_long_it_slept() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    bench.tick();
    bench.tick_until("sleeper");
    let sleeper = bench.block();
    bench.shares(5000);
    bench.wake(&sleeper);
    assert_eq!(
        min(&bench).after(sleeper.key()),
        (SLEEPER_CREDIT_TICKS * TICK * ONE) as i64
    );
    let had = bench.shares(100);
    assert!(had["sleeper"].abs_diff(had["worker"]) <= 4, "{had:?}");
}

/// Longer than half the line of vruntime, and beside a task of nice 19 already
/// after hours.
#[test]
fn rule_5_however_long_means_for_years() {
    for (nice, days) in [(0, 1), (0, 27), (0, 400), (19, 1), (19, 30)] {
        let mut bench = Bench::running(&["sleeper", "worker"]);
        bench.shares(20);
        bench.tick_until("sleeper");
        let sleeper = bench.block();
        bench.set_priority(nice);
        for _ in 0..days * 24 {
            bench.run(3_600_000_000_000); // an hour at 1 GHz
            bench.interrupt();
        }
        bench.shares(20);
        bench.wake(&sleeper);
        let waited = (0..).find(|_| bench.tick() == "sleeper").unwrap();
        assert!(waited <= 4, "{waited} ticks, nice {nice}, {days} days");
    }
}

#[test]
fn rule_5_a_tick_is_no_longer_where_the_cpu_is_mostly_idle() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    let sleeper = bench.block();
    bench.shares(5000);
    let worker = bench.block();
    for _ in 0..20 {
        bench.run(49 * TICK - TICK / 2); // idle, so no ticks
        bench.wake(&worker);
        bench.pick();
        bench.tick();
        bench.run(TICK / 2);
        bench.block();
    }
    bench.wake(&worker);
    bench.pick();
    bench.wake(&sleeper);
    let tasks = [sleeper, worker];
    let waited = bench.longest_wait(&tasks, 1000);
    assert!(waited <= 6, "{waited}");
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
fn rule_6_a_yield_forgives_no_debt() {
    let mut bench = Bench::running(&["yields", "waits"]);
    bench.shares(20);
    for ticks in [1, 3, 10, 50] {
        bench.tick_until("yields");
        let yields = bench.current.clone().unwrap();
        bench.run(ticks * TICK); // with interrupts off, say
        let charged = yields.key().later(ticks * TICK * ONE);
        let first = bench.scheduler.policy().ready.first_key().unwrap();
        assert_eq!(bench.yield_now(), "waits");
        assert_eq!(yields.key(), charged.max(first));
        let mut ran = 0;
        while bench.name() == "waits" && ran < 1000 {
            bench.tick();
            ran += 1;
        }
        let debt = charged.after(first) / (TICK * ONE) as i64;
        assert!(
            (debt..1000).contains(&ran),
            "{ticks} ticks: {debt} of debt, the other ran for {ran}"
        );
    }
}

/// How far a task is ahead of its queue's virtual time.
fn lag(task: &Handle) -> i64 {
    let time = VirtualTime::find(RunIntervals::home(task)).expect("it has been on a queue");
    task.key().after(time.at(VirtualClock::now()))
}

/// `a` and `b` by a thousandth of a tick or less apart.
fn about(a: i64, b: i64) -> bool {
    a.abs_diff(b) <= TICK * ONE / 1000
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
        assert!(
            about(lag(&moves), before),
            "{ticks}: {before}, {}",
            lag(&moves)
        );
        assert!(ticks < 2 || before > 0, "it has just run");
        let had = new.shares(100);
        assert!(had["local"].abs_diff(had["moves"]) <= 6, "{had:?}");
        // And back, where time has gone on meanwhile.
        new.tick_until("moves");
        new.tick();
        let moves = new.block();
        old.shares(1000);
        old.interrupt();
        old.wake(&moves);
        let had = old.shares(100);
        assert!(had["stays"].abs_diff(had["moves"]) <= 6, "{had:?}");
    }
}

/// Not by the time since, and not by that of the queue it comes to.
#[test]
fn rule_7_a_debt_is_worked_off_at_the_old_queues_speed() {
    for hogs in [1, 4, 16] {
        let mut old = Bench::running(&["moves"]);
        let mut new = Bench::running(&["local", "local"]);
        new.shares(20);
        for _ in 0..hogs {
            old.spawn("hog");
        }
        old.shares(20 * hogs as usize);
        old.tick_until("moves");
        old.run(30 * TICK);
        let moves = old.block();
        let debt = lag(&moves);
        old.shares(8 * hogs as usize);
        // Eight rounds, give or take what the virtual time may differ from the hogs'.
        let left = lag(&moves);
        let width = GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS;
        let worked_off = debt - left - (8 * TICK * ONE) as i64;
        assert!(
            worked_off.unsigned_abs() <= width * TICK * ONE,
            "{hogs} hogs: {worked_off}"
        );
        assert!(left > 0, "{hogs} hogs: {left}");
        new.interrupt();
        new.wake(&moves);
        assert!(
            about(lag(&moves), left),
            "{hogs} hogs: {left}, {}",
            lag(&moves)
        );
    }
}

#[test]
fn rule_7_a_task_that_migrates_while_it_runs_is_charged_once() {
    let mut old = Bench::running(&["moves", "stays"]);
    let mut new = Bench::running(&["local"]);
    new.shares(20);
    old.shares(20);
    old.tick_until("moves");
    let moves = old.current.clone().unwrap();
    let before = lag(&moves);
    old.run(500);
    old.current = None;
    new.wake(&moves); // by the helper, on the old CPU
    // Of the 500, the virtual time of two tasks has had 250.
    assert!(
        about(lag(&moves), before + 250 * ONE as i64),
        "{before}, {}",
        lag(&moves)
    );
    let charged = moves.key();
    old.run(100);
    old.pick(); // the helper exits; the old queue sees that somebody has left
    assert_eq!((old.name(), moves.key()), ("stays", charged));
    let virtual_time = |bench: &Bench| {
        let current = bench.current.as_ref().unwrap();
        VirtualTime::find(RunIntervals::home(current))
            .unwrap()
            .at(VirtualClock::now())
    };
    // It counts there no more, and here it does.
    for (bench, ready) in [(&mut old, 1), (&mut new, 2)] {
        bench.tick();
        let start = virtual_time(bench);
        bench.run(TICK);
        assert_eq!(
            virtual_time(bench).after(start),
            (TICK * ONE / ready) as i64
        );
    }
}

/// Where the queue of this task is.
fn virtual_time(task: &Handle) -> Key {
    let time = VirtualTime::find(RunIntervals::home(task)).expect("it has been on a queue");
    time.at(VirtualClock::now())
}

#[test]
fn rule_7_virtual_time_is_shared_by_who_is_ready_at_each_moment() {
    for migrates in [false, true] {
        let mut old = Bench::running(&["hog", "sleeper", "stays"]);
        old.shares(20);
        old.tick_until("sleeper");
        let sleeper = old.block();
        old.tick();
        old.tick_until("hog");
        let start = virtual_time(&sleeper);
        old.run(500);
        old.wake(&sleeper);
        let at_wake = virtual_time(&sleeper).after(start);
        assert!(about(at_wake, 250 * ONE as i64), "{at_wake} for two");
        if migrates {
            let hog = old.current.take().unwrap();
            Bench::running(&["local"]).wake(&hog);
            old.pick();
        }
        old.run(500);
        old.interrupt();
        let ready = if migrates { 2 } else { 3 };
        let more = virtual_time(&sleeper).after(start) - at_wake;
        assert!(
            about(more, (500 * ONE / ready) as i64),
            "{more} for {ready}"
        );
    }
}

/// A chain of moves: from queue to queue with nothing run in between, a task neither
/// gains nor loses.
#[test]
fn rule_7_moves_add_up() {
    let mut queues: Vec<_> = [2, 5, 9]
        .map(|hogs| Bench::running(&["hog"; 9][..hogs]))
        .into();
    for _ in 0..200 {
        bench::all_tick(&mut queues);
    }
    let traveller = queues[0].block();
    for debt_ticks in [6, 3] {
        let key = traveller.key();
        let to = (debt_ticks * (TICK * ONE) as i64 - lag(&traveller)) as u64;
        traveller.set_key(key.later(to));
        let start = lag(&traveller);
        for to in [1, 2, 0, 2, 1, 0] {
            queues[to].wake(&traveller);
            assert!(
                about(lag(&traveller), start),
                "{start}, {}",
                lag(&traveller)
            );
            let moved = queues[to].scheduler.remove_task(&traveller);
            assert!(moved.is_some(), "it has not run, and goes on from here");
        }
    }
}

/// Its debt is worked off by waiting: it does not pay again elsewhere.
#[test]
fn rule_7_the_distance_is_that_of_now() {
    let mut old = Bench::running(&["moves", "stays"]);
    let mut new = Bench::running(&["local"]);
    old.shares(20);
    new.shares(20);
    old.tick_until("moves");
    assert!(old.set_priority(19));
    old.tick_while("moves");
    old.tick_until("moves");
    let moves = old.current.take().unwrap();
    assert_eq!(moves.key().after(min(&old)), 0);
    new.interrupt();
    new.wake(&moves);
    assert!(moves.key() <= min(&new));
}

/// A task leaves an idle queue for one whose vruntimes are far ahead; before the old queue's next
/// pick somebody wakes there, by the helper.
#[test]
fn rule_3_who_migrates_takes_its_vruntime_along() {
    let mut old = Bench::running(&["moves", "sleeper"]);
    let mut new = Bench::running(&["local"]);
    old.shares(20);
    new.shares(5000);
    old.tick_until("sleeper");
    let sleeper = old.block();
    let moves = old.current.take().unwrap();
    let before = min(&old);
    new.interrupt();
    new.wake(&moves);
    old.wake(&sleeper);
    let by = min(&old).after(before);
    assert!(by <= (3 * TICK * ONE) as i64, "{by}");
}

#[test]
fn rule_8_a_charge_by_set_priority_moves_along() {
    let mut old = Bench::running(&["moves"]);
    let mut new = Bench::running(&["local"]);
    old.shares(3);
    new.shares(3);
    old.run(900);
    old.set_priority(0);
    let moves = old.current.take().unwrap();
    let lag = moves.key().after(min(&old));
    new.interrupt();
    new.wake(&moves);
    assert_eq!(moves.key().after(min(&new)), lag);
}

#[test]
fn rule_8_nice_values_are_checked() {
    bench::checks_nice_values::<Adapter<Policy>>();
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

/// A turn ends when the runner, from two ticks behind, is two ahead.
#[test]
fn rule_9_a_tick_preempts_with_a_granularity() {
    for late in [false, true] {
        let mut bench = Bench::running(&["a", "b"]);
        let turns = bench.turns(if late { Bench::late_tick } else { Bench::tick });
        let steady = &turns[5..];
        assert!(
            steady.iter().all(|&turn| turn == 2 * GRANULARITY_TICKS),
            "late {late}: {turns:?}"
        );
    }
}

#[test]
fn rule_9_the_granularity_is_in_ticks_of_the_runners_weight() {
    let mut bench = Bench::running(&["light", "normal"]);
    bench.shares(20);
    bench.tick_until("light");
    assert!(bench.set_priority(10)); // a tenth of the weight
    bench.tick();
    bench.tick_while("light");
    bench.tick();
    bench.tick_until("light");
    // One tick makes it nine of the other's ahead, and is one of its own.
    assert_eq!(bench.tick(), "light");
}

#[test]
fn rule_9_a_waker_preempts_at_the_next_tick_and_not_before() {
    let mut bench = Bench::running(&["sleeper", "worker"]);
    bench.tick();
    bench.tick();
    bench.tick_until("sleeper");
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
fn rule_11_a_mover_starts_no_earlier_than_the_entry_line() {
    let mut queues = vec![
        Bench::running(&["mover", "hog"]),
        Bench::running(&["hog"; 16]),
    ];
    for _ in 0..200 {
        bench::all_tick(&mut queues);
    }
    queues[0].tick_until("mover");
    queues[1].interrupt();
    let mover = queues[0].block();
    let width = (GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS) * TICK * ONE;
    let (mut entry, mut virtual_time, mut checked) = (Key(0), Key(0), 0);
    for _ in 0..200 {
        bench::all_tick(&mut queues);
        let policy = queues[1].scheduler.policy();
        let hog = queues[1].current.as_ref().unwrap();
        let now = VirtualTime::find(RunIntervals::home(hog))
            .unwrap()
            .at(VirtualClock::now());
        let behind = min(&queues[1]).after(policy.entry);
        assert!(behind <= width as i64 && -behind <= (ENTRY_TICKS * TICK * ONE) as i64);
        let (by, half) = (policy.entry.after(entry), now.after(virtual_time) / 2);
        if about(now.after(virtual_time), (TICK * ONE / 16) as i64) && behind < width as i64 {
            assert!(
                about(by, half),
                "{by} where the virtual time moves by twice {half}"
            );
            checked += 1;
        }
        (entry, virtual_time) = (policy.entry, now);
        // From an age behind, it starts there.
        mover.set_key(mover.key().later((1000 * TICK * ONE).wrapping_neg()));
        queues[1].wake(&mover);
        let floor = min(&queues[1]).later((SLEEPER_CREDIT_TICKS * TICK * ONE).wrapping_neg());
        let entry_line = queues[1].scheduler.policy().entry;
        assert_eq!(mover.key(), entry_line.max(floor));
        queues[1].scheduler.remove_task(&mover);
        queues[0].wake(&mover);
        queues[0].scheduler.remove_task(&mover);
    }
    assert!(checked > 50, "{checked}");
}

proptest! {
    /// Whatever happens, each queue's virtual time is that of those who are there.
    #[test]
    fn rule_7_a_task_counts_where_it_is_ready(steps in bench::steps()) {
        bench::whatever_happens(steps, Bench::assert_valid);
    }
}

#[test]
fn bound_each_of_n_equal_tasks_runs_again() {
    for n in 2..12 {
        let mut bench = Bench::new();
        let tasks: Vec<_> = (0..n).map(|_| bench.spawn("a hog")).collect();
        bench.block();
        let waited = bench.longest_wait(&tasks, 5_000);
        let bound = (n - 1) * (2 * GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS + 1);
        assert!(waited <= bound, "{n} tasks: {waited} of {bound} ticks");
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

#[test]
fn rule_7_the_virtual_time_has_the_weight_of_those_who_are_ready_or_run() {
    let mut bench = Bench::running(&["runs"]);
    let (runs, ready) = (bench.current.clone().unwrap(), bench.spawn("ready"));
    let mut weight_after = |task: &Handle, nice| {
        assert!(bench.scheduler.set_priority(task, nice));
        bench.scheduler.policy_mut().time().weight()
    };
    let of = |nice: usize| u64::from(WEIGHTS[20 + nice]);
    assert_eq!(weight_after(&ready, 5), of(0) + of(5));
    assert_eq!(weight_after(&runs, 3), of(3) + of(5));
    let runs = bench.block();
    assert!(bench.scheduler.set_priority(&runs, 7));
    assert_eq!(
        bench.scheduler.policy_mut().time().weight(),
        of(5),
        "asleep"
    );
    bench.wake(&runs);
    assert_eq!(bench.scheduler.policy_mut().time().weight(), of(5) + of(7));
}

#[test]
fn a_tick_that_hits_main_lets_whoever_is_ready_go_before_it() {
    bench::hits_main::<Adapter<Policy>>();
}

type Exact = Cfs<&'static str, VirtualClock, Ordered<&'static str, CfsState>>;

impl<Q: ByKey<&'static str, CfsState>> Fair for Cfs<&'static str, VirtualClock, Q> {
    fn width(&self) -> u64 {
        Key(u64::MAX).after(self.ready.floor(Key(u64::MAX))) as u64 + 1
    }

    fn ahead(&self, task: &TaskRef<Self>) -> i64 {
        let time = VirtualTime::find(RunIntervals::home(task)).expect("it is on a queue");
        let now = VirtualClock::now();
        let runs = self
            .intervals
            .running()
            .is_some_and(|runs| core::ptr::eq(runs, &raw const **task));
        let run = if runs {
            self.intervals.uncharged(now)
        } else {
            Counts::ZERO
        };
        let vruntime = task.key().later(share(task).factor().times(run));
        vruntime.after(time.at(now))
    }

    type Ready = Vec<Key>;

    fn ready(&self) -> Vec<Key> {
        let ready = self.ready.tasks().into_iter();
        ready.map(KeyedTask::key).collect()
    }

    /// Rule 2.
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

#[test]
fn rule_2_the_smallest_vruntime_runs_to_one_bucket() {
    let (apart, width) = fair::order::<Policy>();
    assert!(apart > width / 2 && width > 1, "{apart} of {width}");
    assert_eq!(fair::order::<Exact>(), (0, 1));
}

/// A pick takes the first out, and puts a yielder in.
#[test]
fn cost_is_bounded_beside_4096_tasks() {
    let longest = fair::steps::<Policy, Exact>(2);
    assert!(longest.iter().all(|&steps| steps > 40), "{longest:?}");
}
