//! COOP rule by rule, and then all of them against a model.

mod any_order;

use axcoop_summary::{DOMAINS, PRIORITIES};
use proptest::prelude::*;

use super::*;
use sched_core::BaseScheduler;
use sched_model::bench::{
    self, Gives, Handle, gives_who_would_run, most_steps, steps, whatever_happens,
};

type S = CoopScheduler<&'static str, CoopPerThread>;
type Bench = bench::Bench<S>;

fn priority(p: usize) -> Priority {
    Priority::new(p)
}

/// Domain `d` has something of priority `p` ready.
fn mark(d: usize, p: usize) {
    CoopPerThread::summary().mark(DomainId::new(d), priority(p));
}

/// It has no more.
fn clear(d: usize, p: usize) {
    CoopPerThread::summary().clear(DomainId::new(d), priority(p));
}

fn coop(task: &Handle<S>) -> &CoopState {
    of(task).unwrap()
}

fn new(name: &'static str) -> Handle<S> {
    bench::task::<S>(name)
}

/// A new task with a priority of its own.
fn with_priority(name: &'static str, p: usize) -> Handle<S> {
    let task = new(name);
    coop(&task).set_priority(priority(p));
    task
}

/// A new worker of domain `d`.
fn worker(name: &'static str, d: usize) -> Handle<S> {
    let task = new(name);
    coop(&task).serve(DomainId::new(d));
    task
}

/// Nothing is ready in any domain, and main has spawned these and blocked; the first one runs.
fn running(tasks: impl IntoIterator<Item = Handle<S>>) -> Bench {
    CoopPerThread::clear();
    let mut bench = Bench::new();
    let tasks = tasks.into_iter();
    tasks.for_each(|task| bench.scheduler.add_task(task));
    bench.block();
    bench
}

/// Who runs until nobody is left.
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
    let levels = [
        ("six", 6),
        ("two", 2),
        ("seven", 7),
        ("none", 4),
        ("zero", 0),
    ];
    let mut bench = running(levels.map(|(name, p)| with_priority(name, p)));
    assert_eq!(drained(&mut bench), ["zero", "two", "none", "six", "seven"]);
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
fn rule_2_a_worker_is_as_urgent_as_what_is_ready_when_somebody_asks() {
    let mut bench = running([new("runs"), worker("worker", 3), new("four")]);
    mark(3, 2); // nobody is told
    assert_eq!(bench.yield_now(), "worker");
    clear(3, 2);
    mark(3, 6);
    assert_eq!(bench.yield_now(), "four");
    assert_eq!(bench.yield_now(), "runs");
    mark(3, 4);
    assert_eq!(bench.yield_now(), "worker", "it has waited longest");
}

#[test]
fn rule_2_who_has_nothing_ready_comes_after_all_others() {
    let tasks = [
        worker("idle", 0),
        worker("last", 7),
        with_priority("seven", 7),
    ];
    let mut bench = running(tasks);
    mark(1, 0); // of another domain
    assert_eq!(drained(&mut bench), ["seven", "idle", "last"]);
}

#[test]
fn rule_2_of_domains_the_one_with_the_most_urgent_comes_first() {
    CoopPerThread::clear();
    let mut bench = Bench::new();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for (d, name) in names.into_iter().enumerate() {
        bench.scheduler.add_task(worker(name, d));
        mark(d, PRIORITIES - 1 - d);
        mark(d, 7);
    }
    bench.block();
    assert_eq!(
        drained(&mut bench),
        ["h", "g", "f", "e", "d", "c", "b", "a"]
    );
    assert_eq!(names.len(), DOMAINS);
}

#[test]
fn rule_2_a_worker_preempted_in_a_poll_is_as_urgent_as_what_it_polls() {
    for says in [None, Some(3)] {
        let mut bench = running([worker("worker", 0)]);
        let three = with_priority("three", 3);
        mark(0, 3);
        bench.block();
        bench.wake(&worker("worker", 0));
        assert_eq!(bench.pick(), "worker");
        clear(0, 3); // it has taken it
        let this = bench.current.clone().unwrap();
        says.inspect(|&p| coop(&this).polls(Some(priority(p))));
        bench.wake(&three);
        bench.wake(&with_priority("one", 1));
        assert_eq!(bench.tick(), "one");
        bench.block();
        assert_eq!(bench.name(), "worker", "it goes on before its equals");
        // What it polls next is less urgent. Who does not say so is taken at its word until it
        // gives way.
        coop(&this).polls(Some(priority(5)));
        assert_eq!(bench.tick(), "three");
    }
}

#[test]
fn rule_2_what_a_worker_says_that_it_polls_counts_when_it_wakes_too() {
    for (says, first) in [(Some(priority(1)), "worker"), (None, "two")] {
        let mut bench = running([worker("worker", 0), worker("other", 1)]);
        mark(0, 1);
        bench.preempt();
        clear(0, 1);
        let this = bench.current.clone().unwrap();
        assert_eq!(bench.name(), "worker");
        coop(&this).polls(says);
        bench.block(); // in the poll, for a lock of tasks
        assert_eq!(bench.name(), "other");
        bench.wake(&with_priority("two", 2));
        bench.wake(&this);
        bench.block();
        assert_eq!(bench.name(), first);
    }
}

#[test]
fn rule_2_what_is_ready_counts_for_one_in_a_poll_if_nobody_else_could_take_it() {
    let of_five = || {
        let mut bench = running([worker("polls", 0), with_priority("six", 6)]);
        mark(0, 5);
        bench.yield_now();
        assert_eq!(bench.name(), "polls");
        clear(0, 5);
        bench.wake(&with_priority("three", 3));
        bench.wake(&with_priority("two", 2));
        assert_eq!(bench.tick(), "two");
        mark(0, 1);
        bench
    };
    // The coroutine of priority 1 waits for the end of that poll.
    let mut bench = of_five();
    assert_eq!(bench.tick(), "polls");
    // Another worker can run it at once, and the poll waits for its turn.
    let mut bench = of_five();
    bench.wake(&worker("free", 0));
    assert_eq!(bench.tick(), "free");
    clear(0, 1);
    bench.block();
    assert_eq!(drained(&mut bench), ["two", "three", "polls", "six"]);
}

#[test]
fn rule_3_equals_have_turns_whatever_they_serve() {
    let mut bench = running([new("a"), worker("b", 0), new("c"), worker("d", 1)]);
    mark(0, 4);
    mark(1, 4);
    bench.tick(); // alone in its level until then
    let turns = bench.turns(|bench| bench.tick());
    assert!(
        turns[1..].iter().all(|&turn| turn == SLICE_TICKS as u64),
        "{turns:?}"
    );
    let order: Vec<_> = (0..8).map(|_| bench.yield_now()).collect();
    assert_eq!(order[..4], order[4..]);
    let mut names = order[..4].to_vec();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn rule_4_a_tick_preempts_for_somebody_more_urgent_and_for_nobody_else() {
    let mut bench = running([new("runs"), worker("worker", 0), with_priority("five", 5)]);
    let had = bench.shares(SHARE_TICKS as usize - 1);
    assert_eq!(had["runs"], had.values().sum(), "{had:?}");
    let mut bench = running([new("runs"), worker("worker", 0)]);
    assert_eq!(bench.tick(), "runs");
    mark(0, 3); // nobody is told
    assert_eq!(bench.tick(), "worker");
    // It has three itself, and so is not behind one of another domain with as much.
    bench.wake(&worker("other", 1));
    mark(1, 3);
    assert_eq!(bench.tick(), "worker");
    mark(1, 2);
    assert_eq!(bench.tick(), "other");
}

#[test]
fn rule_4_who_runs_is_as_urgent_as_what_its_domain_has_got_ready() {
    let mut bench = running([worker("runs", 0), worker("other", 1)]);
    mark(0, 5);
    mark(1, 6);
    bench.yield_now();
    bench.yield_now();
    assert_eq!(bench.name(), "runs");
    coop(bench.current.as_ref().unwrap()).polls(Some(priority(5)));
    mark(1, 2);
    mark(0, 2);
    assert_eq!(
        bench.tick(),
        "runs",
        "it has one of two itself, for its next await"
    );
    clear(0, 2);
    assert_eq!(bench.tick(), "other");
}

#[test]
fn rule_4_who_is_always_picked_just_before_a_tick_gets_on() {
    let mut bench = running([with_priority("yields", 0), with_priority("runs", 7)]);
    let mut whole = 0;
    for _ in 0..1000 {
        if bench.name() == "yields" {
            assert_eq!(bench.yield_now(), "runs");
        } else {
            whole += 1;
        }
        bench.tick();
    }
    assert!((150..300).contains(&whole), "{whole}");
}

#[test]
fn rule_5_within_its_slice_a_preempted_task_keeps_its_place_and_else_it_goes_behind() {
    let urgent = with_priority("urgent", 0);
    let preempted = |ticks| {
        let mut bench = running([new("a"), new("b")]);
        (0..ticks).for_each(|_| assert_eq!(bench.tick(), "a"));
        bench.wake(&urgent);
        assert_eq!(bench.tick(), "urgent");
        bench.block();
        bench
    };
    let mut bench = preempted(2);
    assert_eq!(bench.name(), "a");
    assert_eq!(
        [(); 2].map(|()| bench.tick()),
        ["a", "b"],
        "five ticks in all"
    );
    let mut bench = preempted(4);
    assert_eq!(bench.name(), "b", "its slice was over");
    assert_eq!(bench.yield_now(), "a");
    let a = bench.block();
    bench.wake(&new("c"));
    bench.wake(&a);
    assert_eq!(bench.yield_now(), "c");
    assert_eq!(bench.block().inner(), &"c");
    assert_eq!(bench.name(), "a");
    assert_eq!(
        [(); 5].map(|()| bench.tick()),
        ["a", "a", "a", "a", "b"],
        "a new slice"
    );
}

#[test]
fn rule_6_who_yields_sits_out_one_pick() {
    let mut bench = running([
        with_priority("a", 0),
        with_priority("b", 0),
        with_priority("c", 7),
    ]);
    assert_eq!([(); 4].map(|()| bench.yield_now()), ["b", "a", "b", "a"]);
    bench.yield_now();
    let b = bench.block();
    assert_eq!(bench.yield_now(), "c", "whoever is ready");
    assert_eq!(bench.yield_now(), "a");
    drop(b);
    assert_eq!(drained(&mut bench), ["a", "c"]);
    let mut bench = running([new("alone")]);
    assert_eq!(bench.yield_now(), "alone");
}

#[test]
fn rule_6_a_worker_that_gives_way_gives_it_to_who_is_more_urgent() {
    let mut bench = running([
        worker("runs", 0),
        worker("idle", 2),
        worker("other", 1),
        new("four"),
    ]);
    mark(0, 3);
    assert_eq!(bench.yield_now(), "runs");
    assert!(!CoopPerThread::summary().is_more_urgent_elsewhere(DomainId::new(0), priority(3)));
    mark(1, 1);
    assert!(CoopPerThread::summary().is_more_urgent_elsewhere(DomainId::new(0), priority(3)));
    assert_eq!(bench.yield_now(), "other");
    clear(1, 1);
    bench.block(); // it parks
    assert_eq!(bench.name(), "runs");
}

#[test]
fn rule_7_who_has_waited_longest_has_a_tick_in_ten() {
    let mut bench = running([
        with_priority("urgent", 0),
        with_priority("five", 5),
        worker("idle", 0),
        with_priority("seven", 7),
    ]);
    bench.tick();
    let had = bench.shares(3000);
    assert_eq!(had["urgent"], 2700, "{had:?}");
    assert_eq!(
        [had["five"], had["idle"], had["seven"]],
        [100; 3],
        "{had:?}"
    );
    // Among those who yield, too.
    let tasks = [
        with_priority("a", 0),
        with_priority("b", 0),
        with_priority("last", 7),
    ];
    let mut bench = running(tasks);
    bench.tick();
    let mut last = 0;
    for _ in 0..1000 {
        match bench.name() {
            "last" => last += 1,
            _ => (0..3).for_each(|_| _ = bench.yield_now()),
        }
        bench.tick();
    }
    assert_eq!(last, 100);
}

#[test]
fn rule_7_shares_that_nobody_took_in_time_are_gone() {
    let mut bench = running([with_priority("urgent", 0), with_priority("seven", 7)]);
    let urgent = bench.current.clone().unwrap();
    // Preemption is forbidden for three shares and a half.
    (0..35).for_each(|_| _ = bench.scheduler.task_tick(&urgent));
    assert_eq!(bench.preempt(), "seven");
    let had = bench.shares(10);
    assert_eq!((had["urgent"], had["seven"]), (9, 1));
}

/// A task that was last on another queue may look as if it had been preempted here
/// (see `event::Running`).
#[test]
fn rule_5_the_number_of_an_arrival_elsewhere_counts_for_nothing() {
    let mut ready = Ready::NEW;
    let task = new("elsewhere");
    task.policy_state().set_stamp(9);
    ready.goes_on(task);
    assert_eq!(ready.assert_valid(), 1);
}

#[test]
fn rule_7_equals_keep_their_slices() {
    let mut bench = running([new("a"), new("b"), new("c")]);
    let (a, b) = (bench.current.clone().unwrap(), "b");
    assert_eq!(bench.tick(), "a");
    assert_eq!(bench.yield_now(), b); // out of step with the shares
    let turns = bench.turns(|bench| bench.tick());
    assert!(
        turns.iter().all(|&turn| turn == SLICE_TICKS as u64),
        "{turns:?}"
    );
    drop(a);
}

/// Rule 7, and the bound: whatever the priorities are, and however they change.
#[test]
fn the_bound_on_waiting_holds_for_all_priorities() {
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
                let runs = tasks
                    .iter()
                    .position(|task| Arc::ptr_eq(task, &current))
                    .unwrap();
                for (i, last) in last.iter_mut().enumerate() {
                    let bound = SHARE_TICKS as usize * n + SLICE_TICKS;
                    assert!(
                        i == runs || now - *last <= bound,
                        "{i} of {n}: {}",
                        now - *last
                    );
                }
                last[runs] = now;
                bench.set_priority(random(8) as isize);
                let (d, p) = (random(8) as usize, random(8) as usize);
                match random(2) {
                    0 => mark(d, p),
                    _ => clear(d, p),
                }
                match random(4) {
                    0 => _ = bench.yield_now(),
                    _ => {
                        now += 1;
                        bench.tick();
                    }
                }
            }
        }
    }
}

#[test]
fn rule_8_a_lent_priority_counts_for_who_runs_and_who_wakes() {
    let mut bench = running([new("runs"), with_priority("two", 2)]);
    assert_eq!(bench.name(), "two");
    let holder = with_priority("holder", 6);
    let lent = coop(&holder).lend_by::<CoopPerThread>(priority(1)).unwrap();
    bench.wake(&holder);
    assert_eq!(bench.tick(), "holder", "it was blocked");
    assert_eq!(bench.tick(), "holder");
    drop(lent);
    assert_eq!(
        bench.tick(),
        "two",
        "what is given back counts at once for who runs"
    );
}

#[test]
fn rule_8_a_ready_task_is_moved_when_its_lender_blocks_and_keeps_its_turn() {
    let holder = with_priority("holder", 6);
    let others = [("a", 6), ("last", 6), ("three", 3)];
    let [a, last, three] = others.map(|(name, p)| with_priority(name, p));
    let mut bench = running([a, holder.clone(), last, three]);
    bench.wake(&with_priority("urgent", 0));
    assert_eq!(bench.tick(), "urgent");
    // It waits for what `holder` has, whom one of medium priority keeps from it.
    let _lent = coop(&holder).lend_by::<CoopPerThread>(priority(3)).unwrap();
    bench.block();
    assert_eq!(drained(&mut bench), ["holder", "three", "a", "last"]);
}

#[test]
fn rule_8_on_another_cpu_it_counts_from_the_next_tick() {
    let holder = with_priority("holder", 7);
    let mut bench = running([new("runs"), holder.clone(), new("waits")]);
    let _lent = coop(&holder).lend_by::<CoopPerThread>(priority(2)).unwrap();
    assert_eq!(bench.yield_now(), "waits", "a yield does not look");
    assert_eq!(bench.tick(), "holder");
}

#[test]
fn rule_8_what_is_given_back_while_the_task_is_ready_counts_when_it_has_run() {
    let holder = with_priority("holder", 7);
    let mut bench = running([new("runs"), holder.clone(), new("waits")]);
    let lent = coop(&holder).lend_by::<CoopPerThread>(priority(4)).unwrap();
    bench.tick();
    drop(lent);
    assert_eq!(
        bench.yield_now(),
        "holder",
        "it has waited longer than `waits`"
    );
    bench.yield_now();
    assert_eq!(bench.yield_now(), "runs");
    // Given back before anybody looked: nothing happens.
    drop(coop(&holder).lend_by::<CoopPerThread>(priority(0)).unwrap());
    bench.tick();
    assert_eq!(bench.yield_now(), "waits");
    bench.scheduler.policy().ready.assert_valid();
}

#[test]
fn rule_8_a_worker_can_be_lent_something_too() {
    let holder = worker("holder", 0);
    let mut bench = running([new("runs"), holder.clone(), worker("other", 0)]);
    let lent = coop(&holder).lend_by::<CoopPerThread>(priority(1)).unwrap();
    assert_eq!(bench.tick(), "holder");
    bench.yield_now();
    assert_eq!(bench.yield_now(), "holder", "and as long as it is lent");
    drop(lent);
    bench.yield_now();
    bench.block();
    assert_eq!(bench.name(), "other", "it is as others of its domain");
}

#[test]
fn rule_9_the_first_that_may_is_given() {
    let mut bench = running([
        new("runs"),
        worker("worker", 0),
        with_priority("two", 2),
        new("four"),
    ]);
    assert_eq!(bench.name(), "two");
    let mut give = |may: &dyn Fn(&str) -> bool| {
        let given = bench
            .scheduler
            .policy_mut()
            .give(&|task| may(task.inner()), &|| true);
        given.map(|task| *task.inner())
    };
    mark(0, 4);
    assert_eq!(give(&|name| name != "runs"), Some("worker"));
    assert_eq!(give(&|name| name == "gc"), None);
    assert_eq!(
        [(); 3].map(|()| give(&|_| true)),
        [Some("runs"), Some("four"), None]
    );
}

#[test]
fn rule_9_a_task_whose_slice_is_over_arrives_with_a_new_one() {
    let over = new("over");
    (0..SLICE_TICKS).for_each(|_| _ = coop(&over).tick());
    let mut bench = running([new("runs")]);
    bench.scheduler.hand_over(over);
    bench.tick_until("over");
    let turns = bench.turns(|bench| bench.tick());
    assert_eq!(turns[0], SLICE_TICKS as u64);
}

#[test]
fn rule_9_while_a_share_is_due_the_task_that_has_waited_longest_is_given() {
    let mut bench =
        running([("zero", 0), ("seven", 7), ("one", 1)].map(|(name, p)| with_priority(name, p)));
    let zero = bench.current.clone().unwrap();
    let mut given = |ticks| {
        (0..ticks).for_each(|_| _ = bench.scheduler.task_tick(&zero));
        let given = bench.scheduler.give(&|_| true).unwrap();
        *given.inner()
    };
    assert_eq!(given(SHARE_TICKS), "seven");
    assert_eq!(given(0), "one");
}

#[test]
fn rule_9_a_worker_preempted_in_a_poll_takes_what_it_polls_along() {
    let mut bench = running([worker("worker", 0), new("runs")]);
    mark(0, 2);
    bench.yield_now();
    assert_eq!(bench.name(), "worker");
    clear(0, 2);
    bench.wake(&with_priority("one", 1));
    assert_eq!(bench.tick(), "one");
    let given = bench
        .scheduler
        .policy_mut()
        .give(&|_| true, &|| true)
        .unwrap();
    let mut other = running([new("four"), with_priority("three", 3)]);
    other.scheduler.hand_over(given);
    assert_eq!(other.tick(), "worker");
    // Once only, and not what it has given up.
    assert_eq!(other.yield_now(), "three");
    let fresh = other
        .scheduler
        .policy_mut()
        .give(&|task| *task.inner() == "worker", &|| true);
    bench.scheduler.hand_over(fresh.unwrap());
    bench.wake(&with_priority("seven", 7));
    bench.block();
    assert_eq!(drained(&mut bench), ["runs", "seven", "worker"]);
}

/// The tasks of this library are found under the other policies to be none of these.
#[test]
fn what_a_layer_says_is_nothing_under_other_policies() {
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
    // A look at each list, when a share is due.
    let (few, many) = (of(24), of(2400));
    assert!(few <= many && many <= 40, "{few} and {many}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_whatever_happens(steps in steps()) {
        CoopPerThread::clear();
        whatever_happens::<S>(steps, |bench| _ = bench.scheduler.policy().ready.assert_valid());
    }

    #[test]
    fn rule_9_who_would_run_is_given(steps in steps()) {
        CoopPerThread::clear();
        gives_who_would_run::<S>(&steps);
    }
}
