//! PBG rule by rule, on one queue, with a clock moved by hand.

use super::*;
use crate::BaseScheduler;
use crate::clock::VirtualClock;
use crate::syscall::Error;
use crate::units::TaskKey;

type Handle = Arc<PbgTask<&'static str>>;

/// One CPU: a scheduler, its control, and the task that has the CPU.
struct Cpu {
    scheduler: PbgScheduler<&'static str, VirtualClock>,
    control: &'static Control,
    current: Option<Handle>,
}

impl Cpu {
    /// A queue as `axtask` sets it up: `gc` is in it, `main` runs.
    fn boot() -> Self {
        let control: &'static Control = Box::leak(Box::default());
        let mut scheduler = Adapter::with_policy(Pbg::with_control(control));
        scheduler.add_task(task("gc"));
        Self {
            scheduler,
            control,
            current: Some(task("main")),
        }
    }

    fn name(&self) -> &'static str {
        self.current.as_ref().map_or("idle", |t| t.inner())
    }

    fn spawn(&mut self, name: &'static str) -> Handle {
        let new = task(name);
        self.scheduler.add_task(new.clone());
        new
    }

    fn run(&self, counts: u64) {
        VirtualClock::advance(counts);
    }

    fn pick(&mut self) -> &'static str {
        self.current = self.scheduler.pick_next_task();
        self.name()
    }

    fn yield_now(&mut self) -> &'static str {
        let current = self.current.take().expect("idle does not yield");
        self.scheduler.put_prev_task(current, false);
        self.pick()
    }

    fn preempt(&mut self) -> &'static str {
        let current = self.current.take().expect("idle is not preempted");
        self.scheduler.put_prev_task(current, true);
        self.pick()
    }

    /// Blocks or exits; the handle is how it can be woken.
    fn block(&mut self) -> Handle {
        let current = self.current.take().expect("idle does not block");
        self.pick();
        current
    }

    fn wake(&mut self, task: &Handle) {
        self.scheduler.put_prev_task(task.clone(), false);
    }

    /// A tick, and the preemption that it may cause.
    fn tick(&mut self) -> &'static str {
        let current = self.current.clone().expect("idle has no ticks");
        if self.scheduler.task_tick(&current) {
            return self.preempt();
        }
        self.name()
    }

    fn status(&self) -> Status {
        self.control.status().unwrap()
    }
}

fn task(name: &'static str) -> Handle {
    Arc::new(PbgTask::new(name))
}

/// Measures a program in which `main` spawns one task for each of `runs` and
/// each runs once for so long; `main` runs again afterwards.
fn measured(runs: &[(&'static str, u64)]) -> Cpu {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    for (name, _) in runs {
        cpu.spawn(name);
    }
    let main = cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.block();
    for (name, run) in runs {
        assert_eq!(cpu.name(), *name);
        cpu.run(*run);
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
    cpu.wake(&main);
    assert_eq!(cpu.pick(), "main");
    assert_eq!(cpu.control.measure_end(), Ok(runs.len()));
    cpu
}

/// The same, and then the replay begins.
fn replaying(runs: &[(&'static str, u64)]) -> Cpu {
    let cpu = measured(runs);
    assert_eq!(cpu.control.start_pbg(), Ok(runs.len()));
    cpu
}

fn runs(profile: &Profile) -> Vec<u64> {
    profile.tasks().iter().map(|t| t.run.0).collect()
}

#[test]
fn rule_1_keys_are_paths_of_spawns_from_the_root() {
    let mut cpu = Cpu::boot();
    cpu.spawn("older than the call");
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    let main = cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.spawn("of gc");
    cpu.block();
    assert_eq!(cpu.name(), "older than the call");
    cpu.spawn("of the older");
    cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.spawn("a/0");
    cpu.wake(&main);
    cpu.spawn("a/1");
    for expected in ["of gc", "of the older", "a/0", "main"] {
        cpu.block();
        assert_eq!(cpu.name(), expected);
    }
    cpu.spawn("b"); // the root goes on counting where it was
    cpu.control.measure_end().unwrap();
    let profile = cpu.control.profile().unwrap().unwrap();
    let a = TaskKey::ROOT.child(0);
    let keys: Vec<_> = profile.tasks().iter().map(|t| t.key).collect();
    assert_eq!(keys, [a, a.child(0), a.child(1), TaskKey::ROOT.child(1)]);
}

#[test]
fn rule_1_the_root_may_be_any_task() {
    let mut cpu = Cpu::boot();
    cpu.spawn("driver");
    cpu.block();
    let main_waits = cpu.block();
    assert_eq!(cpu.name(), "driver");
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    let driver = cpu.block(); // before the queue has looked twice
    assert_eq!(cpu.name(), "a");
    cpu.wake(&main_waits);
    cpu.wake(&driver);
    cpu.block();
    assert_eq!(cpu.name(), "gc", "the handle that waited");
    cpu.spawn("of gc");
    cpu.block();
    assert_eq!(cpu.name(), "driver");
    cpu.spawn("b");
    assert_eq!(cpu.control.measure_end(), Ok(2));
}

/// A tick may look at it, and so may an earlier measurement: it is still itself.
#[test]
fn rule_1_main_is_the_root_whatever_happened_before_its_first_pick() {
    for (ticks, measured_before) in [(0, false), (1, false), (0, true), (3, true)] {
        let mut cpu = Cpu::boot();
        for _ in 0..ticks {
            cpu.tick();
        }
        if measured_before {
            cpu.control.measure_start().unwrap();
            cpu.spawn("of the one before");
            let main = cpu.current.clone().unwrap();
            cpu.scheduler.task_tick(&main);
            cpu.control.measure_end().unwrap();
        }
        cpu.control.measure_start().unwrap();
        cpu.spawn("early");
        let main = cpu.block();
        cpu.wake(&main);
        while cpu.name() != "main" {
            cpu.yield_now();
        }
        cpu.spawn("late");
        cpu.yield_now();
        assert_eq!(
            cpu.control.measure_end(),
            Ok(2),
            "{ticks} {measured_before}"
        );
    }
}

#[test]
fn rule_2_round_robin_runs_unless_a_plan_is_followed() {
    let mut cpu = Cpu::boot();
    for name in ["a", "b"] {
        cpu.spawn(name);
    }
    for measuring in [false, true] {
        if measuring {
            cpu.control.measure_start().unwrap();
        }
        let start = cpu.name();
        let turns: Vec<_> = (0..3 * 4 * SLICE_TICKS).map(|_| cpu.tick()).collect();
        // Every 5th tick changes the task, and all four take turns.
        for (i, name) in turns.iter().enumerate() {
            let before = if i == 0 { start } else { turns[i - 1] };
            assert_eq!(
                name != &before,
                (i + 1) % SLICE_TICKS == 0,
                "tick {i} of {turns:?}"
            );
        }
        assert_eq!(turns[4 * SLICE_TICKS - 1], start);
    }
}

#[test]
fn rule_3_a_burst_ends_at_yield_preemption_block_and_exit() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    let b = cpu.spawn("b");
    cpu.run(1_000_000); // the root's own time is nobody's
    cpu.block();
    cpu.block(); // gc
    cpu.run(3);
    assert_eq!(cpu.yield_now(), "b");
    cpu.run(20);
    cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.run(5);
    (1..SLICE_TICKS).for_each(|_| assert_eq!(cpu.tick(), "a"));
    assert_eq!(cpu.tick(), "a", "preempted, and alone");
    cpu.run(7);
    cpu.block();
    assert_eq!(cpu.name(), "idle");
    cpu.run(1_000_000); // idle time is nobody's
    cpu.wake(&b);
    assert_eq!(cpu.pick(), "b");
    cpu.run(40);
    cpu.block(); // b exits
    cpu.control.measure_end().unwrap();
    let profile = cpu.control.profile().unwrap().unwrap();
    let [a, b] = profile.tasks() else {
        panic!("{profile:?}")
    };
    assert_eq!(
        (a.run.0, a.dispatches, a.yields, a.preemptions, a.departures),
        (15, 2, 1, 1, 1)
    );
    assert_eq!(
        (b.run.0, b.dispatches, b.yields, b.preemptions, b.departures),
        (60, 2, 0, 0, 2)
    );
}

#[test]
fn rule_3_a_second_measurement_starts_from_nothing() {
    let mut cpu = measured(&[("a", 10), ("b", 20)]);
    cpu.control.measure_start().unwrap();
    cpu.spawn("c");
    let main = cpu.block();
    cpu.run(7);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.control.measure_end(), Ok(1));
    assert_eq!(runs(&cpu.control.profile().unwrap().unwrap()), [7]);
}

#[test]
fn rule_4_tasks_beyond_the_table_run_unrecorded() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    let all: Vec<_> = (0..MAX_TASKS + 50).map(|_| cpu.spawn("many")).collect();
    cpu.block();
    cpu.block(); // gc
    for _ in &all {
        assert_eq!(cpu.name(), "many");
        cpu.run(1);
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
    assert_eq!(cpu.control.measure_end(), Ok(MAX_TASKS));
    assert_eq!(cpu.control.profile().unwrap().unwrap().unrecorded(), 50);
    // And so it is when the plan is followed.
    let main = task("main again");
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.control.start_pbg(), Ok(MAX_TASKS));
    (0..MAX_TASKS + 50).for_each(|_| drop(cpu.spawn("many")));
    assert_eq!(
        (cpu.status().matched, cpu.status().unplanned),
        (MAX_TASKS as u32, 50)
    );
    cpu.block();
    for _ in 0..MAX_TASKS + 50 {
        assert_eq!(cpu.name(), "many");
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
}

#[test]
fn rule_5_the_shortest_ready_task_runs_and_keeps_the_cpu() {
    let mut cpu = replaying(&[("long", 100), ("short", 1), ("middle", 50)]);
    let long = cpu.spawn("long");
    let short = cpu.spawn("short");
    cpu.spawn("middle");
    let main = cpu.block();
    assert_eq!(cpu.name(), "short");
    for _ in 0..1000 {
        assert_eq!(cpu.yield_now(), "short", "kept across its own yields");
    }
    let blocked = cpu.block();
    assert!(Arc::ptr_eq(&blocked, &short));
    assert_eq!(cpu.name(), "middle", "a blocked task is not ready");
    cpu.wake(&blocked);
    assert_eq!(cpu.name(), "middle");
    assert_eq!(cpu.yield_now(), "short", "takes over at the next yield");
    cpu.wake(&main);
    let blocked = cpu.block();
    assert_eq!(cpu.name(), "middle");
    cpu.wake(&blocked);
    assert_eq!(cpu.tick(), "short", "takes over at the next tick");
    cpu.block();
    cpu.block();
    assert_eq!(cpu.name(), "long");
    cpu.block();
    assert_eq!(
        cpu.name(),
        "main",
        "the fallback runs when no planned task is ready"
    );
    assert_eq!(cpu.status().matched, 3);
    drop(long);
}

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
fn rule_6_a_plan_that_never_matches_is_round_robin() {
    let mut cpu = replaying(&[("a", 10)]);
    cpu.block(); // the root spawns nothing
    assert_eq!(cpu.name(), "idle");
    let mut cpu = replaying(&[("a", 10)]);
    let a = cpu.spawn("a");
    cpu.block();
    cpu.block(); // a exits at once
    drop(a);
    cpu.wake(&task("x"));
    cpu.wake(&task("y"));
    assert_eq!(cpu.pick(), "x");
    assert_eq!(cpu.yield_now(), "y");
    let turn: Vec<_> = (0..2 * SLICE_TICKS).map(|_| cpu.tick()).collect();
    assert_eq!(turn, ["y", "y", "y", "y", "x", "x", "x", "x", "x", "y"]);
}

/// Plays `ticks` ticks of 1000 counts and counts who had them.
fn shares(cpu: &mut Cpu, ticks: usize) -> std::collections::BTreeMap<&'static str, usize> {
    let mut had = std::collections::BTreeMap::new();
    for _ in 0..ticks {
        cpu.run(1000);
        *had.entry(cpu.name()).or_default() += 1;
        cpu.tick();
    }
    had
}

#[test]
fn rule_7_tasks_outside_the_plan_have_a_tenth_and_no_more() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    cpu.spawn("late 1");
    cpu.spawn("late 2");
    cpu.block();
    assert_eq!(cpu.name(), "planned");
    let had = shares(&mut cpu, 1000);
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
        cpu.run(1000);
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

#[test]
fn rule_7_a_turn_ends_when_its_task_gives_way() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    cpu.spawn("gc-like");
    cpu.block();
    let mut turns = 0;
    for _ in 0..1000 {
        cpu.run(1000);
        if cpu.tick() == "gc-like" {
            turns += 1;
            assert_eq!(cpu.yield_now(), "planned", "no second turn");
        }
    }
    assert_eq!(turns, 1000 / PLAN_TICKS as usize);
}

#[test]
fn rule_7_an_empty_fallback_queue_saves_no_turns_up() {
    let mut cpu = replaying(&[("planned", 1_000_000_000)]);
    cpu.spawn("planned");
    let main = cpu.block();
    assert_eq!(shares(&mut cpu, 500)["planned"], 500);
    cpu.wake(&main);
    let first = (1..).find(|_| cpu.tick() == "main").unwrap();
    assert_eq!(first, PLAN_TICKS);
}

/// A planned task that gives way just before the tick, every time: the tick hits
/// the outsider, and must not always take the CPU from it.
#[test]
fn rule_7_a_planned_task_that_blocks_before_every_tick_takes_no_more() {
    for run_before_block in [500, 900, 990] {
        let mut cpu = replaying(&[("planned", 1_000_000_000)]);
        cpu.spawn("planned");
        cpu.spawn("outsider");
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
            cpu.tick();
        }
        assert!(
            had >= 1_000_000 / u64::from(PLAN_TICKS + 1),
            "{had} of 1,000,000"
        );
    }
}

/// Eight ticks, then a block: the outsider's moment is not its turn.
#[test]
fn rule_7_a_moment_without_planned_tasks_is_no_turn() {
    let mut cpu = replaying(&[("planned", 1_000_000_000)]);
    cpu.spawn("planned");
    cpu.spawn("outsider");
    cpu.block();
    let (mut had, mut ticks) = (0, 0);
    while ticks < 1000 {
        for _ in 0..PLAN_TICKS - 1 {
            had += u64::from(cpu.name() == "outsider") * 1000;
            cpu.run(1000);
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

#[test]
fn rule_8_a_task_far_beyond_its_plan_is_demoted_and_the_rest_stands() {
    let mut cpu = replaying(&[("runaway", 5_000), ("next", 6_000), ("last", 7_000)]);
    cpu.spawn("runaway");
    cpu.spawn("next");
    cpu.spawn("last");
    cpu.block();
    // Beyond twice 5,000 at the 11th tick of 1,000; demoted at the second that says so.
    let turn = (1..)
        .find(|_| {
            cpu.run(1000);
            cpu.tick() != "runaway"
        })
        .unwrap();
    assert_eq!(turn, 12);
    assert_eq!((cpu.name(), cpu.status().demoted), ("next", 1));
    // From now on it has the share of a task outside the plan.
    let had = shares(&mut cpu, 10);
    assert_eq!((had["next"], had["runaway"]), (9, 1));
    cpu.block();
    assert_eq!(cpu.name(), "last");
    cpu.block();
    assert_eq!(cpu.name(), "runaway", "and it is not lost");
    assert_eq!(cpu.yield_now(), "runaway");
}

#[test]
fn rule_8_running_as_planned_is_never_demoted() {
    let mut cpu = replaying(&[("steady", 10_000)]);
    cpu.spawn("steady");
    cpu.block();
    for _ in 0..20 {
        cpu.run(1000); // up to twice the plan, in bursts cut by yields and ticks
        cpu.tick();
        cpu.yield_now();
    }
    assert_eq!(cpu.status().demoted, 0);
}

#[test]
fn rule_8_time_before_a_block_counts_too() {
    let mut cpu = replaying(&[("blocks", 10)]);
    cpu.spawn("blocks");
    cpu.block();
    for _ in 0..3 {
        cpu.run(8);
        let blocked = cpu.block();
        cpu.run(1_000_000); // asleep
        cpu.wake(&blocked);
        cpu.pick();
    }
    assert_eq!(cpu.tick(), "blocks");
    assert_eq!(
        cpu.status().demoted,
        0,
        "24 of 10: the first tick to find it so"
    );
    cpu.tick();
    assert_eq!(cpu.status().demoted, 1);
}

#[test]
fn rule_8_a_task_that_no_tick_ever_meets_is_demoted_too() {
    let mut cpu = replaying(&[("evades", 10), ("waits", 1000)]);
    cpu.spawn("evades");
    cpu.spawn("waits");
    cpu.block();
    for handover in 1..=OVERRUN_HANDOVERS {
        assert_eq!(
            (cpu.name(), cpu.status().demoted),
            ("evades", 0),
            "{handover}"
        );
        cpu.run(900);
        let asleep = cpu.block();
        assert_eq!(cpu.name(), "waits");
        cpu.wake(&asleep);
        cpu.yield_now();
    }
    assert_eq!((cpu.name(), cpu.status().demoted), ("waits", 1));
}

#[test]
fn rule_8_a_demoted_task_goes_to_the_end_of_the_queue() {
    let mut cpu = replaying(&[("runaway", 10), ("planned", 1_000_000_000)]);
    cpu.spawn("runaway");
    cpu.spawn("planned");
    cpu.spawn("patient");
    cpu.block();
    while cpu.name() != "patient" {
        cpu.run(1000);
        cpu.tick();
        assert!(
            cpu.name() != "runaway" || cpu.status().demoted == 0,
            "it has jumped the queue"
        );
    }
}

#[test]
fn a_measurement_in_which_nothing_was_scheduled_is_empty() {
    let mut cpu = measured(&[("a", 10), ("b", 20)]);
    cpu.control.measure_start().unwrap();
    assert_eq!(cpu.control.measure_end(), Ok(0));
    assert_eq!(cpu.control.start_pbg(), Ok(0));
    cpu.spawn("a");
    assert_eq!(cpu.status().unplanned, 1);
    assert_eq!(cpu.yield_now(), "a");
}

/// What the old measurement's tasks still do does not get into the new record.
#[test]
fn a_new_measurement_starts_from_nothing_even_at_once() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("old");
    cpu.control.measure_end().unwrap();
    cpu.control.measure_start().unwrap();
    cpu.spawn("new");
    let main = cpu.block();
    for expected in ["gc", "old", "new"] {
        assert_eq!(cpu.name(), expected);
        cpu.spawn("child");
        cpu.run(100);
        cpu.block();
    }
    cpu.wake(&main);
    while cpu.name() != "main" {
        cpu.block();
    }
    assert_eq!(cpu.control.measure_end(), Ok(2), "new and its child");
}

#[test]
fn calls_in_a_wrong_order_are_refused_and_change_nothing() {
    let mut cpu = Cpu::boot();
    let control = cpu.control;
    assert_eq!(control.measure_end(), Err(Error::NotMeasuring));
    assert_eq!(control.start_pbg(), Err(Error::NoProfile));
    assert_eq!(control.status().unwrap(), Status::default());
    control.measure_start().unwrap();
    assert_eq!(control.measure_start(), Err(Error::AlreadyMeasuring));
    assert_eq!(control.start_pbg(), Err(Error::Measuring));
    cpu.spawn("a"); // recorded, whatever was refused
    assert_eq!(control.measure_end(), Ok(1));
    assert_eq!(control.measure_end(), Err(Error::NotMeasuring));
    assert_eq!(control.start_pbg(), Ok(1));
    assert_eq!(control.start_pbg(), Err(Error::AlreadyReplaying));
    assert_eq!(control.measure_start(), Err(Error::Replaying));
    assert_eq!(control.measure_end(), Err(Error::NotMeasuring));
    cpu.spawn("a");
    assert_eq!(
        cpu.status(),
        Status {
            phase: Phase::Replaying,
            planned: 1,
            matched: 1,
            ..Status::default()
        }
    );
}

#[test]
fn several_queues_are_refused() {
    let mut cpu = Cpu::boot();
    let mut second: PbgScheduler<_, VirtualClock> =
        Adapter::with_policy(Pbg::with_control(cpu.control));
    second.add_task(task("gc 1"));
    assert_eq!(cpu.control.measure_start(), Err(Error::NotSupported));
    cpu.spawn("a");
    assert_eq!(cpu.yield_now(), "gc");
    assert_eq!(*second.pick_next_task().unwrap().inner(), "gc 1");
}

#[test]
fn a_dropped_scheduler_releases_the_tasks_of_both_queues() {
    let mut cpu = replaying(&[("a", 1), ("b", 2)]);
    let tasks = ["a", "b", "outside"].map(|name| cpu.spawn(name));
    assert!(tasks.iter().all(|t| Arc::strong_count(t) == 2));
    drop(cpu);
    assert!(tasks.iter().all(|t| Arc::strong_count(t) == 1));
}

#[test]
fn remove_finds_planned_and_fallback_tasks_and_no_others() {
    let mut cpu = replaying(&[("a", 1), ("b", 2)]);
    let [a, b, outside] = ["a", "b", "outside"].map(|name| cpu.spawn(name));
    assert!(cpu.scheduler.remove_task(&task("stranger")).is_none());
    for t in [&a, &outside] {
        assert!(Arc::ptr_eq(&cpu.scheduler.remove_task(t).unwrap(), t));
        assert!(cpu.scheduler.remove_task(t).is_none());
    }
    cpu.block();
    assert_eq!(cpu.name(), "b");
    assert!(cpu.scheduler.remove_task(&b).is_none(), "it runs");
    cpu.block();
    assert_eq!(cpu.name(), "idle");
    cpu.wake(&a);
    assert_eq!(cpu.pick(), "a");
}
