//! SJF rule by rule.

use super::*;
use proptest::prelude::*;
use sched_core::BaseScheduler;
use sched_core::classes::{CLASSES, SHORTEST};
use sched_core::clock::VirtualClock;
use sched_model::bench::{self, MigratingScheduler, TICK};

type P = Sjf<&'static str, VirtualClock>;
type Bench = bench::Bench<Adapter<P>>;
type Handle = bench::Handle<Adapter<P>>;

fn expected(task: &Handle) -> u64 {
    task.policy_state().expected.load(Relaxed)
}

/// Returns tasks that have each had a hundred bursts of their length. All are asleep, and the CPU
/// is idle.
fn taught<const N: usize>(bursts: [(&'static str, u64); N]) -> (Bench, [Handle; N]) {
    let mut bench = Bench::new();
    bench.block();
    let tasks = bursts.map(|(name, burst)| {
        let task = bench.spawn(name);
        for _ in 1..100 {
            bench.pick();
            bench.run(burst);
            bench.block();
            bench.wake(&task);
        }
        bench.pick();
        bench.run(burst);
        bench.trace("block");
        task
    });
    (bench, tasks)
}

#[test]
fn rule_1_a_burst_is_time_on_the_cpu_up_to_a_yield_or_block() {
    let mut bench = Bench::running(&["a"]);
    let a = bench.current.clone().unwrap();
    bench.trace("+100, preempt>a, +60, preempt>a");
    assert_eq!(expected(&a), 0, "not over yet");
    bench.trace("yield>a");
    assert_eq!(expected(&a), 160 / AVERAGE_WEIGHT);
    bench.trace("+320, block");
    assert_eq!(expected(&a), 10 + 320 / AVERAGE_WEIGHT);
    bench.trace("+1_000_000 (asleep), wake a, pick, +16, block");
    assert_eq!(expected(&a), 30 - 30 / 16 + 1);
}

#[test]
fn rule_1_a_burst_goes_on_when_its_task_migrates() {
    for ticks in [0, 2] {
        let [mut old, mut new] = [&["moves", "other"][..], &["local"]].map(Bench::running);
        for _ in 0..ticks {
            VirtualClock::advance(TICK);
            let running = old.current.clone().unwrap();
            old.scheduler.task_tick(&running);
        }
        old.run(300);
        let moves = old.current.take().unwrap();
        let data = moves.policy_state();
        new.wake(&moves); // a helper does this on the old CPU, before its pick
        old.pick();
        assert_eq!(data.used.load(Relaxed), ticks * TICK + 300);
        assert_eq!(expected(&moves), 0, "it is not over");
    }
    // At a tick the whole run has been charged already.
    let [mut old, mut new] = [&["moves", "other"][..], &["local"]].map(Bench::running);
    old.run(TICK);
    let moves = old.current.take().unwrap();
    old.scheduler.task_tick(&moves);
    let due = moves.policy_state().due();
    new.wake(&moves);
    assert_eq!(moves.policy_state().due(), due, "its due time stands");
}

#[test]
fn rule_2_the_average_converges_to_a_steady_burst() {
    let (_, [a]) = taught([("a", 16_000)]);
    assert!(expected(&a).abs_diff(16_000) < 200, "{}", expected(&a));
}

#[test]
fn rule_2_a_new_task_is_tried_first() {
    let (mut bench, _) = taught([("known", 1600)]);
    bench.trace("+1000, wake known, spawn new, pick>new");
}

/// A clock that moves while it is read, as it does in a kernel.
struct Reading;

impl Clock for Reading {
    fn now() -> Counts {
        VirtualClock::advance(40);
        VirtualClock::now()
    }
}

/// STEADY: the extra time of a change of class is not part of the next burst.
#[test]
fn steady_bursts_beside_a_border_of_classes_stay_in_one() {
    // The bursts come from above a border of classes, which is at 1,024 counts.
    for burst in 900..1_024 {
        let mut sjf = SjfScheduler::<(), Reading>::new();
        sjf.add_task(Arc::new(Task::new(())));
        let task = sjf.pick_next_task().unwrap();
        let class = || task.policy_state().class.load(Relaxed);
        for turn in 0..400 {
            let before = class();
            VirtualClock::advance(if turn < 100 { 1_400 } else { burst });
            sjf.put_prev_task(task.clone(), false);
            sjf.pick_next_task().unwrap();
            assert!(turn < 200 || class() == before, "burst {turn} of {burst}");
        }
    }
}

#[test]
fn rule_3_shortest_first_ties_by_arrival() {
    let (mut bench, _) = taught([("long", 9000), ("short", 100), ("middle", 5000)]);
    bench.trace("wake long, wake short, wake middle, pick>short, block>middle, block>long");
    Bench::running(&["a", "b", "c"]).trace("on>a, block>b");
}

#[test]
fn rule_3_a_waiting_task_is_overtaken_by_shorter_ones_and_not_for_ever() {
    let (mut bench, [long, ..]) = taught([("long", 10_000), ("short", 500), ("short", 500)]);
    let patience = PATIENCE * expected(&long);
    bench.trace("wake long, wake short, wake short");
    let began = VirtualClock::now();
    bench.pick();
    while bench.name() == "short" {
        bench.trace("+500, block, wake short");
    }
    let waited = (VirtualClock::now() - began).0;
    // Tasks that were due before it may still run. Later arrivals may not.
    let least = patience - 500 - PATIENCE * 500;
    let is_bounded = (least..=patience + 2 * 500).contains(&waited);
    assert!(is_bounded, "{waited} of {patience}");
}

#[test]
fn rule_3_the_picked_task_is_due_no_later_than_any_other_by_half_of_its_wait() {
    let bursts = [9_000, 7_000, 100, 300, 40_000, 20];
    let names = ["a", "b", "c", "d", "e", "f"];
    let taught_tasks: [_; 6] = core::array::from_fn(|i| (names[i], bursts[i]));
    let (mut bench, tasks) = taught(taught_tasks);
    // Each task comes at another time, and other tasks are still there each time.
    let mut came = std::collections::BTreeMap::new();
    let mut passed = 0;
    for step in 0..2_000_usize {
        let task = &tasks[step * 7 % 6];
        if bench.name() != *task.inner() && !came.contains_key(task.inner()) {
            bench.wake(task);
            let due = task.policy_state().due();
            let wait = due.after(Key(VirtualClock::now().0));
            came.insert(*task.inner(), (due, wait));
        }
        bench.run(100 + step as u64 * 37 % 400);
        if step % 3 > 0 {
            continue;
        }
        if bench.current.is_none() {
            bench.pick();
        } else {
            bench.block();
        }
        let Some((due, _)) = came.remove(bench.name()) else {
            continue;
        };
        for (other, wait) in came.values() {
            let tolerance = (wait / 2).max(SHORTEST as i64);
            assert!(due.after(*other) < tolerance, "step {step}");
            passed += usize::from(due > *other);
        }
    }
    assert!(passed > 0, "the order was always that of due times");
}

#[test]
fn rule_3_no_due_time_is_further_off_than_the_longest_wait() {
    let mut bench = Bench::running(&["a"]);
    let a = bench.current.clone().unwrap();
    let off = || a.policy_state().due().after(Key(VirtualClock::now().0)) as u64;
    for _ in 0..40 {
        bench.run(LONGEST);
        bench.yield_now();
        assert!(off() <= LONGEST);
    }
    assert_eq!(expected(&a), LONGEST_EXPECTED);
    bench.spawn("b");
    bench.run(LONGEST);
    bench.trace("yield>b");
    assert_eq!(off(), PATIENCE * LONGEST_EXPECTED);
    bench.block();
    // The burst is four times as long as expected, and another task is always ready.
    for _ in 0..4 {
        bench.spawn("c");
        bench.run(LONGEST_EXPECTED);
        bench.preempt();
        assert!(off() <= LONGEST);
        bench.scheduler.policy().ready.assert_valid();
        while bench.name() == "c" {
            bench.block();
        }
    }
}

#[test]
fn rule_3_a_burst_that_begins_alone_has_a_due_time_of_its_own() {
    let (mut bench, [job, _]) = taught([("job", TICK), ("short", 10)]);
    bench.trace("wake job, pick>job");
    // The burst is long. At each of its ticks another task waits, so the burst is charged.
    for _ in 0..50 {
        bench.trace("wake short, while job, +10, block");
    }
    bench.trace("yield>job (alone)");
    let due = VirtualClock::now().0 + PATIENCE * expected(&job);
    assert_eq!(job.policy_state().due(), Key(due));
}

#[test]
fn rule_4_and_5_a_tick_preempts_a_burst_that_outgrows_the_first_in_line() {
    let (mut bench, _) = taught([("lies", 100), ("waits", 5 * TICK)]);
    // It is preempted once it has used more than the other's expected burst. The other
    // arrived earlier, so that is after 5 ticks and not 6.
    bench.trace("wake lies, wake waits, pick>lies, 4x tick>lies, tick>waits");
}

#[test]
fn rule_4_a_preempted_task_keeps_its_due_time() {
    let (mut bench, [long, _]) = taught([("long", 10 * TICK), ("short", TICK / 2)]);
    let due = || long.policy_state().due();
    bench.trace("wake long, pick");
    let before = due();
    bench.trace("tick, wake short, tick>short");
    assert_eq!(due(), before, "2 of the 10 ticks that are expected");
    // It is not due before its return, however long it was overdue.
    bench.trace("while short, block, +1000t, wake long, +1000t, pick, preempt");
    assert_eq!(due(), Key(VirtualClock::now().0));
}

#[test]
fn rule_4_a_burst_that_has_outgrown_its_expectation_pays_for_each_tick_once() {
    let (mut bench, [long, _]) = taught([("long", 2 * TICK), ("spins", 16)]);
    bench.trace("wake long, pick, wake spins");
    for turn in 1..100 {
        assert_eq!(bench.name(), "long");
        let due = long.policy_state().due();
        bench.trace("+2t, preempt");
        let planned = if turn == 1 { expected(&long) } else { 0 };
        let over = 2 * TICK - planned;
        let later = due.later(PATIENCE * over).max(Key(VirtualClock::now().0));
        assert_eq!(long.policy_state().due(), later, "turn {turn}");
        while bench.name() != "long" {
            bench.trace("+16, yield");
        }
    }
}

#[test]
fn rule_4_time_without_another_ready_task_costs_nothing() {
    let mut bench = Bench::running(&["alone"]);
    let alone = bench.current.clone().unwrap();
    bench.shares(1000);
    let began = VirtualClock::now().0;
    assert_eq!(alone.policy_state().due(), Key(began));
    bench.trace("spawn spins, spawn spins too, tick");
    while bench.name() != "alone" {
        bench.trace("+16, yield");
    }
    // It has been charged for the one tick that hit it beside them.
    let passed = VirtualClock::now().0 - began;
    assert!(passed <= (2 + PATIENCE) * TICK, "{passed}");
}

#[test]
fn rule_4_a_task_that_migrates_takes_its_due_time_along() {
    let [mut old, mut new] = [&["moves", "stays"][..], &[]].map(Bench::running);
    old.shares(1);
    let moves = old.current.take().unwrap();
    let due = moves.policy_state().due();
    old.run(TICK);
    new.wake(&moves); // the helper does this, on the old CPU
    assert_eq!(moves.policy_state().due(), due.later(PATIENCE * TICK));
    assert_eq!(expected(&moves), 0, "the burst goes on");
}

#[test]
fn rule_5_a_shorter_arrival_preempts_at_the_next_tick() {
    let (mut bench, _) = taught([("long", 100 * TICK), ("short", 10)]);
    bench.trace("wake long, pick, tick, tick, wake short, on>long, tick>short");
}

#[test]
fn rule_5_an_overdue_task_gives_way_to_others_that_are_overdue() {
    let (mut bench, _) = taught([("long", 100 * TICK), ("other", 10)]);
    bench.trace("wake long, +1000t, wake other, pick>long (due for 200 ticks), tick, tick>other");
}

#[test]
fn rule_5_a_dispatched_task_has_a_whole_tick() {
    let (mut bench, _) = taught([("long", 100 * TICK), ("short", 10)]);
    bench.trace("wake long, +999, pick, wake short, +1");
    bench.trace("interrupt>long (after 1 count), tick>short");
    for _ in 0..3 {
        bench.trace("block>long, wake short, +1, interrupt>long, tick>short");
    }
}

#[test]
fn rule_6_a_yielder_sits_out_one_pick() {
    let (mut bench, _) = taught([("spins", 1), ("works", 50 * TICK)]);
    bench.trace("wake spins, wake works, pick>spins");
    for _ in 0..10 {
        bench.trace("+1, yield>works, +50t, yield>spins");
    }
    bench.trace("block>works, block>idle, wake spins, pick, yield>spins (alone, it goes on)");
}

#[test]
fn rule_7_a_task_that_is_handed_over_keeps_its_due_time() {
    let (mut old, [long, _]) = taught([("long", 100 * TICK), ("other", 10)]);
    let mut new = Bench::running(&["local"]);
    old.trace("wake long");
    let due = long.policy_state().due();
    for tick in 1..=3 {
        old.run(100 * TICK);
        new.run(tick);
        let given = old.scheduler.migrate_out(&|_| true).unwrap();
        new.scheduler.hand_over(given);
        assert_eq!(long.policy_state().due(), due, "it is not overdue");
        core::mem::swap(&mut old, &mut new);
    }
    old.run(1000 * TICK);
    let given = old.scheduler.migrate_out(&|_| true).unwrap();
    new.scheduler.hand_over(given);
    let now = Key(VirtualClock::now().0);
    assert_eq!(long.policy_state().due(), now, "at once");
}

#[test]
fn bound_no_task_waits_past_its_due_time_for_more_than_two_ticks_for_each_other() {
    let mut bench = Bench::running(&["gc-like", "three", "seven", "short"]);
    let mut dispatched = std::collections::BTreeMap::<_, u64>::new();
    for step in 0..50_000 {
        let name = bench.name();
        *dispatched.entry(name).or_default() += 1;
        let due = bench.current.as_ref().unwrap().policy_state().due();
        let late = Key(VirtualClock::now().0).after(due);
        assert!(
            late <= 2 * 4 * TICK as i64,
            "{name} is {late} late at {step}"
        );
        match name {
            "gc-like" => bench.run(1),
            "short" => bench.run(200),
            // A preempted task or not, it yields after this many ticks.
            "three" if (0..3).any(|_| bench.tick() != name) => continue,
            "seven" if (0..7).any(|_| bench.tick() != name) => continue,
            _ => {}
        }
        bench.yield_now();
    }
    let is_fair = dispatched.len() == 4 && dispatched.values().all(|&n| n > 10);
    assert!(is_fair, "{dispatched:?}");
}

/// Returns how long a job of `ticks` takes beside yielders with these bursts in turn, in ticks.
fn done_beside(yielders: usize, bursts: &[u64], ticks: u64) -> u64 {
    let mut bench = Bench::new();
    let job = bench.spawn("job");
    (0..yielders).for_each(|_| drop(bench.spawn("yielder")));
    bench.block();
    let mut bursts = bursts.iter().cycle();
    let (began, mut left) = (VirtualClock::now().0, ticks * TICK);
    // The job's work and the yielders' bursts are cut at each tick.
    while left > 0 {
        let now = VirtualClock::now().0;
        let to_tick = TICK - (now - began) % TICK;
        let current = bench.current.clone().unwrap();
        let is_job = Arc::ptr_eq(&current, &job);
        let run = if is_job {
            left
        } else {
            *bursts.next().unwrap()
        };
        let part = run.min(to_tick);
        bench.run(part);
        left -= if is_job { part } else { 0 };
        if part == to_tick {
            bench.interrupt();
        }
        let running = bench.current.as_ref();
        let stays = running.is_some_and(|now| Arc::ptr_eq(now, &current));
        if part == run && stays && !is_job {
            bench.yield_now();
        }
    }
    (VirtualClock::now().0 - began).div_ceil(TICK)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bound_a_burst_is_done_in_time_linear_in_its_length_and_the_tasks_beside_it(
        yielders in prop_oneof![1..4usize, Just(10), Just(100)],
        bursts in prop::collection::vec(prop_oneof![10..50u64, 1..3 * TICK], 1..12),
        ticks in 1..60u64,
    ) {
        let n = yielders as u64 + 1;
        let took = done_beside(yielders, &bursts, ticks);
        let shortest = ((ticks + 1) * SHORTEST).div_ceil(TICK);
        let bound = PATIENCE * ticks * 3 / 2 + (ticks + 1) * (2 * n + 1) + shortest;
        prop_assert!(took <= bound, "{took} of {bound} ticks");
    }

    #[test]
    fn bound_beside_busy_yielders_it_is_patience_times_its_length(
        yielders in prop_oneof![2..4usize, Just(10), Just(100)],
        burst in 10..40u64,
        ticks in 1..100u64,
    ) {
        let took = done_beside(yielders, &[burst], ticks);
        // A round of the yielders takes at most four ticks.
        let bound = PATIENCE * ticks + 4;
        prop_assert!(took <= bound, "{took} of {bound} ticks");
    }
}

#[test]
fn cost_no_call_takes_more_steps_than_documented_with_4096_tasks_in_all_classes() {
    let mut bench = Bench::running(&["runs"]);
    let now = VirtualClock::now();
    let policy = bench.scheduler.policy_mut();
    for i in 0..4096 {
        let task = Arc::new(SjfTask::new("one of many"));
        policy.intervals.adopt(&task);
        let (wait, _) = Class::from_index(i % CLASSES as u32).shortest_and_width();
        task.policy_state().set_due(Key(now.0).later(wait));
        policy.ready.push(task, Class::of(wait));
    }
    let most = bench::most_steps(&mut bench, 100);
    assert!((CLASSES..=CLASSES + 5).contains(&most), "{most}");
    bench.scheduler.policy().ready.assert_valid();
}

#[test]
fn priorities_are_refused() {
    assert!(!Bench::running(&["a"]).set_priority(0));
}

#[test]
fn a_tick_that_hits_main_lets_a_ready_task_go_before_it() {
    bench::assert_tick_preempts_main::<Adapter<P>>();
}
