//! Tests of COOP rule by rule. `any_order` tests all rules together against a model.

mod any_order;

use axcoop_summary::{DOMAINS, PRIORITIES};
use proptest::prelude::*;

use super::*;
use sched_core::BaseScheduler;
use sched_model::bench::{
    self, Handle, MigratingScheduler, assert_migrates_next_task, most_steps, steps,
    whatever_happens,
};

type S = CoopScheduler<&'static str, CoopPerThread>;
type Bench = bench::Bench<S>;

fn priority(p: usize) -> Priority {
    Priority::new(p)
}

/// Marks a coroutine of priority `p` ready in domain `d`.
fn mark(d: usize, p: usize) {
    CoopPerThread::summary().mark(DomainId::new(d), priority(p));
}

/// Clears the mark of priority `p` in domain `d`.
fn clear(d: usize, p: usize) {
    CoopPerThread::summary().clear(DomainId::new(d), priority(p));
}

fn coop(task: &Handle<S>) -> &CoopState {
    of(task).unwrap()
}

fn new(name: &'static str) -> Handle<S> {
    bench::task::<S>(name)
}

/// Returns a new task with a priority of its own.
fn with_priority(name: &'static str, p: usize) -> Handle<S> {
    let task = new(name);
    coop(&task).set_priority(priority(p));
    task
}

/// Returns a new worker of domain `d`.
fn worker(name: &'static str, d: usize) -> Handle<S> {
    let task = new(name);
    coop(&task).serve(DomainId::new(d));
    task
}

/// Clears all domains, spawns these tasks, and blocks `main`. The first one runs.
fn running(tasks: impl IntoIterator<Item = Handle<S>>) -> Bench {
    CoopPerThread::clear();
    let mut bench = Bench::new();
    let tasks = tasks.into_iter();
    tasks.for_each(|task| bench.scheduler.add_task(task));
    bench.block();
    bench
}

/// Blocks the running task until the CPU is idle. Returns the order in which the tasks ran.
fn drained(bench: &mut Bench) -> Vec<&'static str> {
    let mut names = Vec::new();
    while bench.current.is_some() {
        names.push(bench.name());
        bench.block();
    }
    names
}

#[test]
fn rule_1_the_most_urgent_priority_runs() {
    let levels = [("six", 6), ("two", 2), ("none", 4), ("zero", 0)];
    let mut bench = running(levels.map(|(name, p)| with_priority(name, p)));
    assert_eq!(drained(&mut bench), ["zero", "two", "none", "six"]);
}

#[test]
fn rule_1_a_priority_is_0_to_7_and_4_at_first() {
    let mut bench = running([new("a")]);
    let a = bench.current.clone().unwrap();
    assert_eq!(coop(&a).priority(), Priority::DEFAULT);
    for p in 0..PRIORITIES {
        assert!(bench.set_priority(p as isize));
        assert_eq!(coop(&a).priority(), priority(p));
    }
    for p in [-1, 8, 264, isize::MIN, isize::MAX] {
        assert!(!bench.set_priority(p));
        assert_eq!(coop(&a).priority(), priority(7));
    }
}

#[test]
fn rule_2_a_worker_is_as_urgent_as_its_domain_at_the_time_of_the_pick() {
    let mut bench = running([new("runs"), worker("worker", 3), new("four")]);
    mark(3, 2); // the scheduler is not told
    bench.trace("yield>worker");
    clear(3, 2);
    mark(3, 6);
    bench.trace("yield>four, yield>runs");
    mark(3, 4);
    bench.trace("yield>worker (it has waited longest)");
}

#[test]
fn rule_2_a_worker_with_nothing_ready_comes_after_all_other_tasks() {
    let tasks = [
        worker("idle", 0),
        worker("last", 7),
        with_priority("seven", 7),
    ];
    let mut bench = running(tasks);
    mark(1, 0); // another domain has ready coroutines
    assert_eq!(drained(&mut bench), ["seven", "idle", "last"]);
}

#[test]
fn rule_2_the_domain_with_the_most_urgent_coroutine_comes_first() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    assert_eq!(names.len(), DOMAINS);
    let mut bench = running([with_priority("first", 0)]);
    for (d, name) in names.into_iter().enumerate() {
        bench.scheduler.add_task(worker(name, d));
        mark(d, PRIORITIES - 1 - d);
        mark(d, 7);
    }
    bench.trace("block>h, block>g, block>f, block>e, block>d, block>c, block>b, block>a");
}

#[test]
fn rule_2_a_worker_preempted_in_a_poll_is_as_urgent_as_what_it_polls() {
    for says in [None, Some(3)] {
        let mut bench = running([worker("worker", 0)]);
        mark(0, 3);
        bench.trace("block, wake worker, pick>worker");
        clear(0, 3); // the worker has taken the coroutine
        let this = bench.current.clone().unwrap();
        says.inspect(|&p| coop(&this).set_polled(Some(priority(p))));
        bench.wake(&with_priority("three", 3));
        bench.wake(&with_priority("one", 1));
        bench.trace("tick>one, block>worker (it goes on before its equals)");
        // The coroutine that it polls next is less urgent. A worker that does not say so keeps its
        // level until it gives way.
        coop(&this).set_polled(Some(priority(5)));
        bench.trace("tick>three");
    }
}

#[test]
fn rule_2_what_a_worker_says_that_it_polls_counts_when_it_wakes_too() {
    for (says, first) in [(Some(priority(1)), "worker"), (None, "two")] {
        let mut bench = running([worker("worker", 0), worker("other", 1)]);
        mark(0, 1);
        bench.preempt();
        clear(0, 1);
        coop(bench.current.as_ref().unwrap()).set_polled(says);
        bench.trace("block>other (in the poll, for a lock of tasks)");
        bench.wake(&with_priority("two", 2));
        bench.trace("wake worker, block");
        assert_eq!(bench.name(), first);
    }
}

#[test]
fn rule_3_equals_run_in_turn_whatever_they_serve() {
    let mut bench = running([new("a"), worker("b", 0), new("c"), worker("d", 1)]);
    mark(0, 4);
    mark(1, 4);
    bench.tick(); // until now the first task was alone at its level
    let turns = bench.turns(Bench::tick);
    let is_slice = |&turn: &u64| turn == SLICE_TICKS as u64;
    assert!(turns[1..].iter().all(is_slice), "{turns:?}");
    let order: Vec<_> = (0..8).map(|_| bench.yield_now()).collect();
    assert_eq!(order[..4], order[4..]);
    let mut names = order[..4].to_vec();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn rule_4_a_tick_preempts_for_a_more_urgent_task_only() {
    let mut bench = running([new("runs"), worker("worker", 0), with_priority("five", 5)]);
    let had = bench.shares(SHARE_TICKS as usize - 1);
    assert_eq!(had["runs"], had.values().sum(), "{had:?}");
    let mut bench = running([new("runs"), worker("worker", 0)]);
    bench.trace("tick>runs");
    mark(0, 3); // the scheduler is not told
    bench.trace("tick>worker");
    // The worker's own level is 3, so a worker of another domain with level 3 does not preempt it.
    bench.wake(&worker("other", 1));
    mark(1, 3);
    bench.trace("tick>worker");
    mark(1, 2);
    bench.trace("tick>other");
}

#[test]
fn rule_4_a_task_that_is_always_picked_just_before_a_tick_makes_progress() {
    let mut bench = running([with_priority("yields", 0), with_priority("runs", 7)]);
    let mut whole = 0;
    for _ in 0..1000 {
        match bench.name() {
            "yields" => bench.trace("yield>runs"),
            _ => whole += 1,
        }
        bench.tick();
    }
    assert!((150..300).contains(&whole), "{whole}");
}

#[test]
fn rule_5_a_preempted_task_keeps_its_place_within_its_slice_and_else_goes_behind() {
    let preempted = |after: &str| {
        let mut bench = running([new("a"), new("b")]);
        bench.trace(after);
        bench.wake(&with_priority("urgent", 0));
        bench.trace("tick>urgent, block");
        bench
    };
    preempted("2x tick>a").trace("on>a, tick>a, tick>b (five ticks in all)");
    let mut bench = preempted("4x tick>a");
    bench.trace("on>b (the slice was over), yield>a, block>b");
    bench.wake(&new("c"));
    bench.trace("wake a, yield>c, block>a, 4x tick>a (a new slice), tick>b");
}

/// A task that was last on another queue may look as if it had been preempted here
/// (see `event::Running`).
#[test]
fn rule_5_the_number_of_an_arrival_on_another_queue_has_no_effect() {
    let mut ready = Ready::NEW;
    let task = new("elsewhere");
    task.policy_state().set_stamp(9);
    ready.push_front(task);
    assert_eq!(ready.assert_valid(), 1);
}

#[test]
fn rule_6_a_yielder_sits_out_one_pick() {
    let tasks = [("a", 0), ("b", 0), ("c", 7)];
    let mut bench = running(tasks.map(|(name, p)| with_priority(name, p)));
    bench.trace("yield>b, yield>a, yield>b, yield>a, yield>b, block>a");
    bench.trace("yield>c (whatever is ready), yield>a, block>c, block>idle");
    running([new("alone")]).trace("yield>alone");
}

#[test]
fn rule_6_a_worker_gives_way_to_a_more_urgent_domain() {
    let tasks = [worker("runs", 0), worker("idle", 2), worker("other", 1)];
    let mut bench = running(tasks);
    let is_more_urgent_elsewhere =
        || CoopPerThread::summary().is_more_urgent_elsewhere(DomainId::new(0), priority(3));
    mark(0, 3);
    assert!(!is_more_urgent_elsewhere());
    mark(1, 1);
    assert!(is_more_urgent_elsewhere());
    bench.trace("yield>other");
    clear(1, 1);
    bench.trace("block>runs");
}

#[test]
fn rule_7_the_task_that_has_waited_longest_has_a_tick_in_ten() {
    let levels = [("urgent", 0), ("five", 5), ("seven", 7)];
    let tasks = levels.map(|(name, p)| with_priority(name, p));
    let mut bench = running(tasks.into_iter().chain([worker("idle", 0)]));
    bench.tick();
    let had = bench.shares(3000);
    assert_eq!(had["urgent"], 2700, "{had:?}");
    assert_eq!(
        [had["five"], had["idle"], had["seven"]],
        [100; 3],
        "{had:?}"
    );
    // The same share comes among tasks that yield.
    let tasks = [("a", 0), ("b", 0), ("last", 7)];
    let mut bench = running(tasks.map(|(name, p)| with_priority(name, p)));
    bench.tick();
    let mut last = 0;
    for _ in 0..1000 {
        match bench.name() {
            "last" => last += 1,
            _ => bench.trace("3x yield"),
        }
        bench.tick();
    }
    assert_eq!(last, 100);
}

#[test]
fn rule_7_a_share_that_no_task_takes_in_time_is_lost() {
    let mut bench = running([with_priority("urgent", 0), with_priority("seven", 7)]);
    let urgent = bench.current.clone().unwrap();
    // Preemption is disabled for three shares and a half.
    (0..35).for_each(|_| _ = bench.scheduler.task_tick(&urgent));
    bench.trace("preempt>seven");
    let had = bench.shares(10);
    assert_eq!((had["urgent"], had["seven"]), (9, 1));
}

/// Tests rule 7 and the bound together.
#[test]
fn the_bound_on_waiting_holds_for_all_priorities_however_they_change() {
    let mut seed = 1_u64;
    let mut random = |n: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    for n in 2..12 {
        for workers in [0, n / 2] {
            let made = |i| match i < workers {
                true => worker("task", i % DOMAINS),
                false => new("task"),
            };
            let tasks: Vec<_> = (0..n).map(made).collect();
            let mut bench = running(tasks.iter().cloned());
            let mut last = vec![0; n];
            let mut now = 0;
            while now < 2000 {
                let current = bench.current.clone().unwrap();
                let is_current = |task| Arc::ptr_eq(task, &current);
                let runs = tasks.iter().position(is_current).unwrap();
                last[runs] = now;
                let waited = last.iter().map(|last| now - last).max().unwrap();
                let bound = SHARE_TICKS as usize * n + SLICE_TICKS;
                assert!(waited <= bound, "one of {n}: {waited}");
                bench.set_priority(random(8) as isize);
                let (d, p) = (random(8) as usize, random(8) as usize);
                match random(2) {
                    0 => mark(d, p),
                    _ => clear(d, p),
                }
                if random(4) == 0 {
                    bench.yield_now();
                } else {
                    now += 1;
                    bench.tick();
                }
            }
        }
    }
}

#[test]
fn rule_8_a_donated_priority_counts_for_running_and_waking_tasks() {
    let mut bench = running([new("runs"), with_priority("two", 2)]);
    let holder = with_priority("holder", 6);
    let donation = coop(&holder)
        .donate_by::<CoopPerThread>(priority(1))
        .unwrap();
    bench.wake(&holder);
    bench.trace("on>two, tick>holder (it was blocked), tick>holder");
    drop(donation);
    bench.trace("tick>two (a returned priority counts at once for the running task)");
}

#[test]
fn rule_8_a_ready_task_is_moved_when_its_donor_blocks_and_keeps_its_place() {
    let holder = with_priority("holder", 6);
    let others = [("a", 6), ("last", 6), ("three", 3)];
    let [a, last, three] = others.map(|(name, p)| with_priority(name, p));
    let mut bench = running([a, holder.clone(), last, three]);
    bench.wake(&with_priority("urgent", 0));
    bench.trace("tick>urgent");
    // `urgent` waits for `holder`, which would come after the tasks of medium priority.
    let _donation = coop(&holder)
        .donate_by::<CoopPerThread>(priority(3))
        .unwrap();
    bench.block();
    assert_eq!(drained(&mut bench), ["holder", "three", "a", "last"]);
}

#[test]
fn rule_8_a_priority_returned_while_the_task_is_ready_counts_when_it_has_run() {
    let holder = with_priority("holder", 7);
    let mut bench = running([new("runs"), holder.clone(), new("waits")]);
    let donate = |p| {
        coop(&holder)
            .donate_by::<CoopPerThread>(priority(p))
            .unwrap()
    };
    let donation = donate(4);
    bench.tick();
    drop(donation);
    bench.trace("yield>holder (it has waited longer than `waits`), yield, yield>runs");
    // A priority that is returned before the scheduler has looked has no effect.
    drop(donate(0));
    bench.trace("tick, yield>waits");
    bench.scheduler.policy().ready.assert_valid();
}

#[test]
fn rule_9_the_first_task_that_may_run_there_is_handed_over() {
    let tasks = [new("runs"), worker("worker", 0), with_priority("two", 2)];
    let mut bench = running(tasks.into_iter().chain([new("four")]));
    assert_eq!(bench.name(), "two");
    let mut give = |may: &dyn Fn(&&'static str) -> bool| {
        let given = bench.scheduler.migrate_out(may);
        given.map(|task| *task.inner())
    };
    mark(0, 4);
    assert_eq!(give(&|name| *name != "runs"), Some("worker"));
    assert_eq!(give(&|name| *name == "gc"), None);
    let rest = [(); 3].map(|()| give(&|_| true));
    assert_eq!(rest, [Some("runs"), Some("four"), None]);
}

#[test]
fn rule_9_a_task_whose_slice_is_over_arrives_with_a_new_one() {
    let over = new("over");
    (0..SLICE_TICKS).for_each(|_| _ = coop(&over).tick());
    let mut bench = running([new("runs")]);
    bench.scheduler.hand_over(over);
    bench.tick_until("over");
    assert_eq!(bench.turns(Bench::tick)[0], SLICE_TICKS as u64);
}

#[test]
fn rule_9_while_a_share_is_due_the_task_that_has_waited_longest_is_handed_over() {
    let tasks = [("zero", 0), ("seven", 7), ("one", 1)];
    let mut bench = running(tasks.map(|(name, p)| with_priority(name, p)));
    let zero = bench.current.clone().unwrap();
    let mut given = |ticks| {
        (0..ticks).for_each(|_| _ = bench.scheduler.task_tick(&zero));
        *bench.scheduler.migrate_out(&|_| true).unwrap().inner()
    };
    assert_eq!([given(SHARE_TICKS), given(0)], ["seven", "one"]);
}

#[test]
fn rule_9_a_worker_preempted_in_a_poll_keeps_the_level_of_its_coroutine() {
    let mut bench = running([worker("worker", 0), new("runs")]);
    mark(0, 2);
    bench.trace("yield>worker");
    clear(0, 2);
    bench.wake(&with_priority("one", 1));
    bench.trace("tick>one");
    let given = bench.scheduler.migrate_out(&|_| true).unwrap();
    let mut other = running([new("four"), with_priority("three", 3)]);
    other.scheduler.hand_over(given);
    // The coroutine that it polls counts for one pick, and no longer once it yields.
    other.trace("tick>worker, yield>three");
    let fresh = other.scheduler.migrate_out(&|name| *name == "worker");
    bench.scheduler.hand_over(fresh.unwrap());
    bench.wake(&with_priority("seven", 7));
    bench.block();
    assert_eq!(drained(&mut bench), ["runs", "seven", "worker"]);
}

#[test]
fn tasks_of_other_policies_have_no_coop_state() {
    use crate::{FifoTask, RrTask};
    assert!(of(&RrTask::<u32>::new(0)).is_none());
    assert!(of(&FifoTask::new(0)).is_none());
    assert!(of(&CoopTask::new(0)).is_some());
}

#[test]
fn no_call_is_longer_with_more_tasks() {
    let of = |n: usize| {
        let tasks = (0..n).map(|i| match i % 2 {
            0 => with_priority("own", i % PRIORITIES),
            _ => worker("worker", i % DOMAINS),
        });
        let mut bench = running(tasks.collect::<Vec<_>>());
        (0..DOMAINS).for_each(|d| mark(d, d));
        most_steps(&mut bench, 200)
    };
    // The bound covers a look at each list when a share is due.
    let (few, many) = (of(24), of(2400));
    assert!(few <= many && many <= 40, "{few} and {many}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_task_is_lost_whatever_happens(steps in steps()) {
        CoopPerThread::clear();
        whatever_happens::<S>(steps, |bench| _ = bench.scheduler.policy().ready.assert_valid());
    }

    #[test]
    fn rule_9_the_task_that_would_run_first_is_handed_over(steps in steps()) {
        CoopPerThread::clear();
        assert_migrates_next_task::<S>(&steps);
    }
}
