//! PBG rule by rule, on one queue, with a clock moved by hand.

use super::stored::{Program, ProgramName, StoredProfile, StoredTask};
use super::*;
use crate::BaseScheduler;
use crate::clock::VirtualClock;
use crate::syscall::Error;
use crate::units::TaskKey;

type Handle = Arc<PbgTask<&'static str>>;

/// One CPU: a scheduler, its control, and the task that has the CPU.
struct Cpu {
    scheduler: PbgScheduler<&'static str, VirtualClock, PerThread>,
    control: &'static Control,
    current: Option<Handle>,
}

impl Cpu {
    /// A queue as `axtask` sets it up: `gc` is in it, `main` runs.
    fn boot() -> Self {
        let control = PerThread::renew();
        let mut scheduler = PbgScheduler::new();
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

    fn measure_end(&self) -> Result<usize, Error> {
        self.control.measure_end_by::<VirtualClock>()
    }

    fn about(&self) -> About {
        let program = Program {
            name: ProgramName::new("test").unwrap(),
            hash: 1,
        };
        About {
            program,
            frequency_hz: 1_000_000_000,
            cpus: 1,
            timing: stored::Timing::Counted,
        }
    }

    fn profile(&self) -> StoredProfile {
        let profile = self.control.profile(&self.about()).unwrap().unwrap();
        profile.validate().unwrap();
        profile
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
    assert_eq!(cpu.measure_end(), Ok(runs.len()));
    cpu
}

/// The same, and then the replay begins.
fn replaying(runs: &[(&'static str, u64)]) -> Cpu {
    let cpu = measured(runs);
    assert_eq!(cpu.control.start_pbg(), Ok(runs.len()));
    cpu
}

/// A plan of one task is followed, which has the CPU; one that it does not know is
/// ready, and `main`, the root, has blocked.
fn replaying_beside(name: &'static str, run: u64, unknown: &'static str) -> (Cpu, Handle) {
    let mut cpu = replaying(&[(name, run)]);
    cpu.spawn(name);
    cpu.spawn(unknown);
    let main = cpu.block();
    (cpu, main)
}

fn runs(profile: &StoredProfile) -> Vec<u64> {
    let run = |task: &StoredTask| task.figures.run.total;
    profile.tasks.iter().map(run).collect()
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
    cpu.measure_end().unwrap();
    let profile = cpu.profile();
    let a = TaskKey::ROOT.child(0);
    let keys: Vec<_> = profile.tasks.iter().map(|t| t.key).collect();
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
    assert_eq!(cpu.measure_end(), Ok(2));
}

/// Two measurements without a pick in between: its address is forgotten, it is not.
#[test]
fn rule_1_the_root_is_still_the_root_of_the_measurement_after() {
    let mut cpu = Cpu::boot();
    cpu.spawn("driver");
    cpu.yield_now();
    assert_eq!(cpu.yield_now(), "driver");
    cpu.control.measure_start().unwrap();
    cpu.spawn("of the one before");
    cpu.measure_end().unwrap();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    while cpu.yield_now() != "driver" {}
    cpu.spawn("b");
    assert_eq!(cpu.measure_end(), Ok(2));
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
            cpu.measure_end().unwrap();
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
        assert_eq!(cpu.measure_end(), Ok(2), "{ticks} {measured_before}");
    }
}

#[test]
fn rule_1_nobody_is_taken_for_the_root_or_for_a_stranger() {
    let members = [
        Member::OUTSIDE,
        Member::ROOT,
        Member::UNKNOWN,
        Member::of(0),
    ];
    for (i, a) in members.iter().enumerate() {
        for (j, b) in members.iter().enumerate() {
            assert_eq!(a == b, i == j, "{i} {j}");
        }
    }
}

#[test]
fn a_call_is_heard_at_the_next_pick_whoever_runs() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    let main = cpu.block();
    assert_eq!(cpu.control.stance(), Stance::MEASURE);
    cpu.wake(&main);
}

#[test]
fn from_that_pick_on_it_is_known_who_runs() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    let main = cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.spawn("a stranger's child");
    cpu.block();
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(0));
}

#[test]
fn a_profile_says_what_ran_while_it_was_measured() {
    for (base, name) in [(Base::RoundRobin, "rr"), (Base::Fifo, "fifo")] {
        assert_eq!(base.name(), name);
        let cpu = Cpu::boot();
        cpu.control.measure_start_under(base).unwrap();
        assert_eq!(cpu.measure_end(), Ok(0));
        assert_eq!(cpu.profile().header.policy.as_str(), name);
    }
}

#[test]
fn a_plan_can_be_looked_at_before_it_is_followed() {
    let cpu = measured(&[("long", 300), ("short", 100)]);
    let plan = cpu.control.plan().unwrap().unwrap();
    let keys: Vec<_> = plan.tasks().iter().map(|task| task.key).collect();
    assert_eq!(keys, [TaskKey::ROOT.child(1), TaskKey::ROOT.child(0)]);
    assert_eq!(Cpu::boot().control.plan(), Ok(None));
}

#[test]
fn the_systems_mailbox_has_the_control_of_the_calls() {
    assert!(core::ptr::eq(System::control(), &raw const CONTROL));
}

#[test]
fn an_error_says_what_its_cause_says() {
    let causes: [(LoadError, &str); 2] = [
        (
            LoadError::Call(Error::NoMemory),
            &std::format!("{}", Error::NoMemory),
        ),
        (
            LoadError::from(Error::Contended),
            &std::format!("{}", Error::Contended),
        ),
    ];
    for (error, cause) in causes {
        assert!(!cause.is_empty());
        assert_eq!(std::format!("{error}"), cause);
    }
}

#[test]
fn what_is_reserved_has_room() {
    assert!(reserved::<u64>(10).unwrap().capacity() >= 10);
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
    cpu.measure_end().unwrap();
    let profile = cpu.profile();
    let [a, b] = &profile.tasks[..] else {
        panic!("{profile:?}")
    };
    // run, ready, blocked; dispatches, yields, preemptions, blocks
    let figures = |task: &StoredTask| task.figures.each().map(|figure| figure.total);
    assert_eq!(figures(a), [15, 1_000_020, 0, 3, 1, 1, 0]);
    assert_eq!(figures(b), [60, 1_000_003, 1_000_012, 2, 0, 0, 1]);
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
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(runs(&cpu.profile()), [7]);
}

#[test]
fn rule_4_tasks_that_share_a_label_count_as_unrecorded() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    for _ in 0..2 {
        cpu.control.label_next("twin").unwrap();
        cpu.spawn("twin");
    }
    cpu.spawn("other");
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(cpu.profile().header.unrecorded, 2);
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
    assert_eq!(cpu.measure_end(), Ok(MAX_TASKS));
    assert_eq!(cpu.profile().header.unrecorded, 50);
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
    for _ in 0..FREE_YIELDS {
        assert_eq!(cpu.yield_now(), "short", "kept across its own yields");
    }
    let blocked = cpu.block();
    assert!(Arc::ptr_eq(&blocked, &short));
    assert_eq!(cpu.name(), "middle", "a blocked task is not ready");
    cpu.wake(&blocked);
    assert_eq!(cpu.name(), "middle");
    assert_eq!(cpu.yield_now(), "short", "takes over at the next yield");
    let blocked = cpu.block();
    assert_eq!(cpu.name(), "middle");
    cpu.wake(&blocked);
    assert_eq!(cpu.tick(), "short", "takes over at the next tick");
    cpu.spawn("unknown");
    cpu.block();
    cpu.block();
    assert_eq!(cpu.name(), "long");
    cpu.block();
    assert_eq!(
        cpu.name(),
        "unknown",
        "the fallback runs when no planned task is ready"
    );
    drop(main);
    assert_eq!(cpu.status().matched, 3);
    drop(long);
}

/// Shortest remaining time first: of the running task, only what is left counts.
#[test]
fn rule_5_a_late_arrival_is_compared_with_what_remains_of_the_running_task() {
    for (done, takes_over) in [(0, true), (49, true), (50, false), (99, false)] {
        let mut cpu = replaying(&[("long", 100), ("late", 50)]);
        cpu.spawn("long");
        let main = cpu.block();
        assert_eq!(cpu.name(), "long");
        cpu.run(done);
        cpu.wake(&main);
        assert_eq!(cpu.yield_now(), "main", "rule 9");
        cpu.spawn("late");
        cpu.block();
        let expected = if takes_over { "late" } else { "long" };
        assert_eq!(cpu.name(), expected, "after {done}");
        cpu.block();
        assert_ne!(cpu.name(), expected, "and then the other");
    }
}

#[test]
fn rule_5_a_preempted_task_stands_where_what_remains_of_it_belongs() {
    let mut cpu = replaying(&[("a", 100), ("b", 60), ("c", 10)]);
    cpu.spawn("a");
    let main = cpu.block();
    cpu.run(50); // 50 remain: before b, behind c
    cpu.wake(&main);
    cpu.yield_now();
    cpu.spawn("b");
    cpu.spawn("c");
    cpu.block();
    for expected in ["c", "a", "b", "idle"] {
        assert_eq!(cpu.name(), expected);
        if expected != "idle" {
            cpu.block();
        }
    }
}

/// Between the same two lengths of the plan, so that both stand at one place.
#[test]
fn rule_5_at_one_place_too_the_one_with_the_least_before_it_has_the_cpu() {
    for (done, has_the_cpu) in [(120, "b"), (150, "a"), (200, "a")] {
        let mut cpu = replaying(&[("short", 10), ("b", 900), ("a", 1000)]);
        cpu.spawn("short");
        let b = cpu.spawn("b");
        cpu.spawn("a");
        cpu.block();
        assert_eq!(cpu.name(), "short");
        cpu.block();
        assert_eq!(cpu.name(), "b");
        cpu.run(50); // 850 remain
        cpu.block();
        assert_eq!(cpu.name(), "a");
        cpu.run(done);
        cpu.wake(&b);
        let running = cpu.current.clone().unwrap();
        let asks = cpu.scheduler.task_tick(&running);
        assert_eq!(asks, has_the_cpu == "b", "not without need, after {done}");
        assert_eq!(cpu.preempt(), has_the_cpu, "after {done}");
    }
}

#[test]
fn rule_5_of_equals_who_ran_goes_on_and_who_wakes_goes_last() {
    let mut cpu = replaying(&[("a", 100), ("b", 100)]);
    cpu.spawn("a");
    cpu.spawn("b");
    cpu.block();
    assert_eq!(cpu.name(), "a");
    let a = cpu.block();
    assert_eq!(cpu.name(), "b");
    cpu.wake(&a);
    assert_eq!(cpu.yield_now(), "b");
    let b = cpu.block();
    let a = cpu.block();
    assert_eq!(cpu.name(), "idle");
    cpu.wake(&b);
    cpu.wake(&a);
    assert_eq!(cpu.pick(), "b");
}

#[test]
fn rule_5_a_shorter_child_takes_over_at_the_next_yield() {
    let mut cpu = Cpu::boot();
    for replaying in [false, true] {
        if replaying {
            assert_eq!(cpu.control.start_pbg(), Ok(2));
        } else {
            cpu.control.measure_start().unwrap();
        }
        cpu.spawn("parent");
        let main = cpu.block();
        if cpu.name() == "gc" {
            cpu.block();
        }
        assert_eq!(cpu.name(), "parent");
        cpu.spawn("child");
        if replaying {
            assert_eq!(cpu.yield_now(), "child");
            return;
        }
        cpu.run(100);
        cpu.block();
        cpu.run(1);
        cpu.block();
        cpu.wake(&main);
        cpu.pick();
        assert_eq!(cpu.measure_end(), Ok(2));
    }
}

/// Somebody becomes ready between a yield and its pick.
#[test]
fn rule_5_who_has_yielded_and_waits_for_its_pick_may_still_lose_the_cpu() {
    let mut cpu = replaying(&[("long", 100), ("short", 1)]);
    cpu.spawn("long");
    cpu.spawn("short");
    cpu.block();
    let short = cpu.block();
    let long = cpu.current.take().unwrap();
    cpu.scheduler.put_prev_task(long, false);
    cpu.wake(&short);
    assert_eq!(cpu.pick(), "short");
    cpu.block();
    assert_eq!(cpu.name(), "long");
}

/// Measures `a`, which blocks for `asleep` after each of `bursts` and then runs for 1,
/// and `b`, which runs for `run`.
fn with_a_task_that_blocks(bursts: &[u64], asleep: u64, run: u64) -> Cpu {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    cpu.spawn("b");
    let main = cpu.block();
    cpu.block(); // gc
    assert_eq!(cpu.name(), "a");
    for burst in bursts {
        cpu.run(*burst);
        let a = cpu.block();
        if cpu.name() == "b" {
            cpu.run(run);
            cpu.block();
        }
        cpu.run(asleep);
        cpu.wake(&a);
        assert_eq!(cpu.pick(), "a");
    }
    cpu.run(1);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(2));
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    cpu
}

#[test]
fn rule_5_a_server_is_ordered_by_its_next_burst() {
    let bursts = [[10; 20], [300; 20]].concat();
    let mut cpu = with_a_task_that_blocks(&bursts, 1_000_000, 100);
    cpu.spawn("a");
    let b = cpu.spawn("b");
    cpu.block();
    for (i, burst) in bursts.iter().enumerate() {
        let first = if *burst < 100 { "a" } else { "b" };
        assert_eq!(cpu.name(), first, "burst {i}");
        if first == "b" {
            cpu.run(1);
            cpu.block(); // for once, out of the way
            cpu.run(*burst);
            let a = cpu.block();
            cpu.wake(&b);
            cpu.pick();
            cpu.wake(&a);
        } else {
            cpu.run(*burst);
            let a = cpu.block();
            assert_eq!(cpu.name(), "b");
            cpu.wake(&a);
        }
        cpu.yield_now();
    }
}

/// Whose weight is next to a half: before it are 248, 199, 150, 100 and 1.
fn with_a_task_between_job_and_server() -> (Cpu, Handle) {
    let mut cpu = with_a_task_that_blocks(&[100; 4], 1604, 180);
    cpu.spawn("a");
    let b = cpu.spawn("b");
    cpu.block();
    (cpu, b)
}

#[test]
fn rule_5_between_job_and_server_a_part_of_what_follows_counts() {
    let (mut cpu, b) = with_a_task_between_job_and_server();
    for i in 0..4 {
        // b has 180 before it, less 1 each time that it is first.
        let first = if i < 2 { "b" } else { "a" };
        assert_eq!(cpu.name(), first, "stretch {i}");
        if first == "b" {
            cpu.run(1);
            cpu.block();
        }
        assert_eq!(cpu.name(), "a");
        cpu.run(100);
        let a = cpu.block();
        if first == "b" {
            cpu.wake(&b);
            cpu.pick();
        }
        cpu.wake(&a);
        cpu.yield_now();
    }
}

/// Of the stretch nobody knows how much remains, and as long again is guessed; of the
/// task it is known.
#[test]
fn rule_5_beyond_its_stretch_a_task_still_has_what_follows() {
    for (done, takes_over) in [(99, false), (110, false), (140, true), (150, true)] {
        let (mut cpu, b) = with_a_task_between_job_and_server();
        cpu.block(); // b
        assert_eq!(cpu.name(), "a");
        cpu.run(done);
        cpu.wake(&b);
        let expected = if takes_over { "b" } else { "a" };
        assert_eq!(cpu.tick(), expected, "after {done}");
    }
}

#[test]
fn rule_5_a_job_is_ordered_by_all_that_remains_of_it_however_soon_it_waits() {
    // 331 in all, though never more than 10 at first, against 100.
    let mut cpu = with_a_task_that_blocks(&[10, 300, 20], 10, 100);
    cpu.spawn("a");
    cpu.spawn("b");
    cpu.block();
    assert_eq!(cpu.name(), "b");
    let b = cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.run(240); // 91 remain, to be compared with 100
    let a = cpu.block();
    cpu.wake(&b);
    assert_eq!(cpu.pick(), "b");
    cpu.wake(&a);
    assert_eq!(cpu.yield_now(), "a");
}

#[test]
fn rule_5_beyond_its_record_a_task_gives_way_to_more_and_more() {
    // A quarter is noise; and rule 8 is far.
    for (next, at) in [(10_500, 13), (12_000, 13), (17_000, 18)] {
        let mut cpu = replaying(&[("over", 10_000), ("next", next)]);
        cpu.spawn("over");
        cpu.spawn("next");
        cpu.block();
        assert_eq!(cpu.name(), "over");
        let turn = (1..)
            .find(|_| {
                cpu.run(1000);
                cpu.tick() != "over"
            })
            .unwrap();
        assert_eq!((turn, cpu.status().demoted), (at, 0), "{next}");
    }
}

/// Edits the profile as a user would, and takes it over.
fn edited(cpu: &Cpu, edit: impl Fn(&mut [StoredTask])) {
    let mut profile = cpu.profile();
    edit(&mut profile.tasks);
    let bytes = stored::encode(&profile).unwrap();
    let about = cpu.about();
    assert_eq!(cpu.control.load(&bytes, &about), Ok(profile.tasks.len()));
}

#[test]
fn rule_5_a_priority_goes_strictly_first() {
    let mut cpu = measured(&[("short", 1), ("urgent", 1000), ("middle", 50)]);
    edited(&cpu, |tasks| {
        tasks[1].priority = core::num::NonZeroU8::new(1)
    });
    assert_eq!(cpu.control.start_pbg(), Ok(3));
    cpu.spawn("short");
    cpu.spawn("urgent");
    cpu.spawn("middle");
    cpu.block();
    for expected in ["urgent", "short", "middle"] {
        assert_eq!(cpu.name(), expected);
        cpu.run(500); // what remains of it is compared with none of the others
        assert_eq!(cpu.yield_now(), expected);
        cpu.block();
    }
}

#[test]
fn rule_5_latest_times_are_kept_and_those_that_cannot_be_are_told() {
    let mut cpu = measured(&[("short", 10), ("due", 100), ("middle", 50)]);
    edited(&cpu, |tasks| tasks[1].latest = Some(Counts(120)));
    let plan = cpu.control.plan().unwrap().unwrap();
    assert!(plan.late().is_empty());
    assert_eq!(cpu.control.start_pbg(), Ok(3));
    for name in ["short", "due", "middle"] {
        cpu.spawn(name);
    }
    cpu.block();
    for expected in ["short", "due", "middle"] {
        assert_eq!(cpu.name(), expected);
        cpu.block();
    }
    assert_eq!(cpu.status().late, 0);

    let cpu = measured(&[("a", 100), ("b", 100)]);
    edited(&cpu, |tasks| {
        tasks
            .iter_mut()
            .for_each(|task| task.latest = Some(Counts(100)))
    });
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    assert_eq!(cpu.status().late, 1);
}

#[test]
fn rule_1_a_label_that_a_stranger_sets_is_nobodys() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    let main = cpu.block();
    assert_eq!(cpu.yield_now(), "worker"); // gc stays
    cpu.run(10);
    cpu.block();
    cpu.wake(&main);
    while cpu.name() != "main" {
        cpu.yield_now();
    }
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    assert_eq!((cpu.status().matched, cpu.status().unplanned), (0, 0));
}

#[test]
fn rule_1_a_label_survives_another_order_of_spawns() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    for name in ["long", "short"] {
        cpu.control.label_next(name).unwrap();
        cpu.spawn(name);
    }
    cpu.spawn("third"); // without a label: the third of its parent all the same
    let main = cpu.block();
    cpu.block(); // gc
    for run in [100, 10, 1] {
        cpu.run(run);
        cpu.block();
    }
    cpu.wake(&main);
    cpu.pick();
    cpu.measure_end().unwrap();
    let keys: Vec<_> = cpu.profile().tasks.iter().map(|t| t.key).collect();
    let [long, short] = ["long", "short"].map(TaskKey::labelled);
    assert_eq!(keys, [long, short, TaskKey::ROOT.child(2)]);
    cpu.control.start_pbg().unwrap();
    for name in ["short", "long"] {
        cpu.control.label_next(name).unwrap();
        cpu.spawn(name);
    }
    cpu.spawn("third");
    assert_eq!((cpu.status().matched, cpu.status().unplanned), (3, 0));
    cpu.block();
    for expected in ["third", "short", "long"] {
        assert_eq!(cpu.name(), expected);
        cpu.block();
    }
}

#[test]
fn rule_2_under_fifo_no_tick_preempts_while_measuring() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start_under(Base::Fifo).unwrap();
    cpu.spawn("a");
    cpu.block();
    cpu.block(); // gc
    cpu.spawn("b");
    (0..3 * SLICE_TICKS).for_each(|_| assert_eq!(cpu.tick(), "a"));
    cpu.measure_end().unwrap();
    assert_eq!(cpu.profile().header.policy.as_str(), "fifo");
    assert_eq!(cpu.tick(), "b", "the slice is long over");
}

/// `worker` has a label; the replay's program has another task to spawn it.
#[test]
fn rule_1_a_label_counts_under_an_unknown_parent() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("parent");
    let main = cpu.block();
    cpu.block(); // gc
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    cpu.block();
    cpu.run(10);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(2));
    cpu.control.start_pbg().unwrap();
    cpu.spawn("parent");
    cpu.spawn("new");
    cpu.block();
    cpu.block(); // parent
    assert_eq!(cpu.name(), "new");
    cpu.control.label_next("worker").unwrap();
    cpu.spawn("worker");
    cpu.spawn("of an unknown");
    let status = cpu.status();
    assert_eq!((status.matched, status.unplanned), (2, 1));
}

/// Two tasks with one label; one of them spawns one with a label of its own.
#[test]
fn rule_1_what_twins_spawn_is_planned_only_by_its_label() {
    let program = |cpu: &mut Cpu| {
        for _ in 0..2 {
            cpu.control.label_next("twin").unwrap();
            cpu.spawn("twin");
        }
        let main = cpu.block();
        while cpu.name() != "twin" {
            cpu.block();
        }
        cpu.control.label_next("child").unwrap();
        cpu.spawn("child");
        cpu.spawn("another");
        while cpu.name() != "idle" {
            cpu.run(10);
            cpu.block();
        }
        cpu.wake(&main);
        cpu.pick();
    };
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    program(&mut cpu);
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    program(&mut cpu);
    let status = cpu.status();
    assert_eq!((status.matched, status.missing()), (1, 0));
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
    let mut cpu = replaying(&[("a", 10)]);
    cpu.spawn("a");
    cpu.spawn("unknown");
    cpu.block();
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

/// One that another has turned down is nobody's, and one that nobody waits for is none.
#[test]
fn rule_7_a_turn_that_was_given_back_is_over() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    cpu.spawn("outsider");
    cpu.block();
    while cpu.tick() != "outsider" {}
    assert_eq!(cpu.yield_now(), "planned");
    let planned = cpu.block();
    cpu.wake(&planned);
    assert_eq!(cpu.tick(), "planned", "the first tick of the next period");
    let more = (1..).find(|_| cpu.tick() == "outsider").unwrap();
    assert_eq!(more, PLAN_TICKS - 1);
}

/// Ticks that preempt nobody: the task gives way as soon as it yields.
#[test]
fn rule_7_a_turn_that_is_due_begins_at_a_yield() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    cpu.spawn("outsider");
    cpu.block();
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
    cpu.tick();
    cpu.spawn("another");
    assert_eq!(cpu.yield_now(), "planned");
}

#[test]
fn rule_7_where_no_planned_task_is_ready_a_turn_is_not_counted() {
    let mut cpu = replaying(&[("planned", 1_000_000)]);
    cpu.spawn("planned");
    cpu.spawn("outsider");
    cpu.block();
    let planned = cpu.current.clone().unwrap();
    for _ in 0..PLAN_TICKS {
        cpu.scheduler.task_tick(&planned);
    }
    cpu.block();
    assert_eq!((cpu.name(), cpu.status().turns), ("outsider", 0));
}

#[test]
fn rule_7_an_empty_fallback_queue_saves_no_turns_up() {
    let mut cpu = replaying(&[("planned", 1_000_000_000)]);
    cpu.spawn("planned");
    cpu.block();
    assert_eq!(shares(&mut cpu, 500)["planned"], 500);
    cpu.spawn("late");
    let first = (1..).find(|_| cpu.tick() == "late").unwrap();
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
            cpu.tick();
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
    let mut cpu = replaying(&[("runaway", 5_000), ("next", 60_000), ("last", 70_000)]);
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
    let mut cpu = measured(&[("blocks", 10)]);
    cpu.control.start_pbg_with(Behind::Keep).unwrap(); // asleep for so long
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
    let mut cpu = replaying(&[("evades", 10), ("waits", 1_000_000_000)]);
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
fn rule_8_a_task_demoted_at_its_first_tick_goes_there_too() {
    let mut cpu = replaying(&[("runaway", 10), ("planned", 1_000_000_000)]);
    cpu.spawn("runaway");
    cpu.block();
    for _ in 1..OVERRUN_HANDOVERS {
        cpu.run(1000);
        let runaway = cpu.block();
        cpu.wake(&runaway);
        assert_eq!((cpu.pick(), cpu.status().demoted), ("runaway", 0));
    }
    cpu.spawn("patient");
    cpu.run(1000);
    assert_eq!((cpu.tick(), cpu.status().demoted), ("patient", 1));
}

#[test]
fn rule_8_a_task_that_yields_far_more_than_recorded_is_demoted() {
    let mut cpu = replaying(&[("yielder", 1_000_000), ("next", 2_000_000)]);
    cpu.spawn("yielder");
    cpu.spawn("next");
    cpu.block();
    for _ in 0..FREE_YIELDS {
        assert_eq!(cpu.yield_now(), "yielder");
    }
    assert_eq!(cpu.status().demoted, 0);
    assert_eq!(cpu.yield_now(), "next");
    let first = cpu.status().first.unwrap();
    assert_eq!(cpu.status().demoted, 1);
    assert_eq!(
        (first.why, first.task, first.expected, first.found),
        (Why::Yields, TaskKey::ROOT.child(0), 0, FREE_YIELDS + 1)
    );
    assert_eq!(cpu.yield_now(), "next");
}

#[test]
fn rule_8_recorded_yields_may_be_twice_as_many() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("yielder");
    let main = cpu.block();
    cpu.block(); // gc
    (0..100).for_each(|_| assert_eq!(cpu.yield_now(), "yielder"));
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(1));
    cpu.control.start_pbg().unwrap();
    cpu.spawn("yielder");
    cpu.spawn("unknown");
    cpu.block();
    let may = OVERRUN_FACTOR * 100 + FREE_YIELDS;
    (0..may).for_each(|_| assert_eq!(cpu.yield_now(), "yielder"));
    assert_eq!(cpu.yield_now(), "unknown");
}

/// What was granted and not used is not counted when the task loses the CPU.
#[test]
fn rule_8_yields_before_a_preemption_are_counted_once() {
    let mut cpu = replaying(&[("yielder", 1_000_000)]);
    cpu.spawn("yielder");
    cpu.spawn("unknown");
    cpu.block();
    for _ in 0..FREE_YIELDS / 3 {
        for _ in 0..3 {
            assert_eq!(cpu.yield_now(), "yielder");
        }
        assert_eq!(cpu.preempt(), "yielder");
    }
    assert_eq!(cpu.status().demoted, 0);
    for _ in 0..FREE_YIELDS % 3 {
        assert_eq!(cpu.yield_now(), "yielder");
    }
    assert_eq!(cpu.yield_now(), "unknown", "one too many");
}

/// Yields are counted whether or not they keep the CPU, and across blocks.
#[test]
fn rule_8_yields_before_a_block_count_too() {
    let mut cpu = replaying(&[("yielder", 1_000_000)]);
    cpu.spawn("yielder");
    cpu.block();
    for round in 0.. {
        for _ in 0..FREE_YIELDS / 4 {
            cpu.yield_now();
        }
        let asleep = cpu.block();
        if cpu.status().demoted == 1 {
            assert_eq!(round, 4);
            break;
        }
        cpu.wake(&asleep);
        cpu.pick();
    }
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
        cpu.tick();
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

/// It runs off the plan for so long that the last handover, to the root, is too many.
#[test]
fn rule_8_a_task_demoted_while_it_is_ready_leaves_its_place() {
    let (mut cpu, main) = replaying_beside("evades", 10, "outsider");
    cpu.run(30);
    for _ in 1..OVERRUN_HANDOVERS {
        let evades = cpu.block();
        cpu.wake(&evades);
        while cpu.name() != "evades" {
            cpu.yield_now();
        }
    }
    assert_eq!(cpu.status().demoted, 0);
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    assert_eq!(cpu.status().demoted, 1);
    cpu.block();
    assert_eq!(
        cpu.name(),
        "outsider",
        "who was in the fallback queue before"
    );
    assert_eq!(cpu.yield_now(), "evades");
}

#[test]
fn rule_8_yields_before_a_block_are_not_granted_again() {
    let mut cpu = replaying(&[("yielder", 1_000_000), ("next", 2_000_000)]);
    cpu.spawn("yielder");
    cpu.spawn("next");
    cpu.block();
    (1..FREE_YIELDS).for_each(|_| assert_eq!(cpu.yield_now(), "yielder"));
    let asleep = cpu.block();
    cpu.wake(&asleep);
    assert_eq!(cpu.yield_now(), "yielder");
    assert_eq!(cpu.yield_now(), "yielder");
    assert_eq!(cpu.yield_now(), "next");
}

#[test]
fn rule_8_yields_before_somebody_wakes_count_too() {
    let mut cpu = replaying(&[("yielder", 1_000_000), ("sleeper", 2_000_000)]);
    cpu.spawn("yielder");
    cpu.spawn("sleeper");
    cpu.block();
    let yielder = cpu.block();
    let sleeper = cpu.block();
    cpu.wake(&yielder);
    cpu.pick();
    for i in 0..FREE_YIELDS {
        if i == FREE_YIELDS / 2 {
            cpu.wake(&sleeper);
        }
        assert_eq!(cpu.yield_now(), "yielder");
    }
    assert_eq!(cpu.yield_now(), "sleeper");
    assert_eq!(cpu.status().demoted, 1);
}

#[test]
fn rule_8_the_first_who_went_its_own_way_is_told() {
    let mut cpu = replaying(&[("a", 10)]);
    cpu.spawn("a");
    cpu.spawn("unknown");
    cpu.block();
    for _ in 0..=FREE_YIELDS {
        cpu.yield_now();
    }
    assert_eq!((cpu.status().unplanned, cpu.status().demoted), (1, 1));
    let first = cpu.status().first.unwrap();
    let unknown = TaskKey::ROOT.child(1);
    assert_eq!((first.why, first.task), (Why::Unknown, unknown));
}

#[test]
fn rule_9_the_root_goes_first_when_it_wakes() {
    let (mut cpu, main) = replaying_beside("a", 1_000_000, "unknown");
    cpu.wake(&main);
    assert_eq!(cpu.name(), "a");
    assert_eq!(
        cpu.tick(),
        "main",
        "at the next tick, before a and the unknown"
    );
    assert_eq!(cpu.tick(), "a", "and for no longer than to the one after");
    let main = main.clone();
    while cpu.name() != "main" {
        cpu.tick();
    }
    cpu.block();
    while cpu.name() != "a" {
        cpu.tick();
    }
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main", "or at the next yield");
}

#[test]
fn rule_9_the_root_goes_first_also_while_only_others_run() {
    let (mut cpu, main) = replaying_beside("a", 1_000_000, "unknown");
    cpu.block(); // a
    assert_eq!(cpu.name(), "unknown");
    // A waker may ask for rescheduling, too.
    cpu.scheduler.put_prev_task(main.clone(), true);
    assert_eq!(cpu.tick(), "main");
    cpu.block();
    assert_eq!(cpu.name(), "unknown");
}

#[test]
fn rule_9_a_turn_that_somebody_gave_up_is_not_the_roots() {
    let (mut cpu, main) = replaying_beside("planned", 1_000_000, "outsider");
    (1..PLAN_TICKS).for_each(|_| assert_eq!(cpu.tick(), "planned"));
    cpu.wake(&main);
    assert_eq!(cpu.tick(), "main");
    let main = cpu.block();
    assert_eq!(cpu.name(), "outsider");
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    assert_ne!(cpu.tick(), "main");
}

#[test]
fn rule_9_a_root_that_is_removed_takes_its_turn_with_it() {
    let (mut cpu, main) = replaying_beside("a", 1_000_000, "unknown");
    cpu.wake(&main);
    let removed = cpu.scheduler.remove_task(&main).expect("it is ready");
    assert!(Arc::ptr_eq(&main, &removed));
    assert_eq!(cpu.tick(), "a", "and the unknown has not got it");
}

#[test]
fn rule_9_the_root_goes_first_once_between_two_ticks_that_hit_planned_tasks() {
    let (mut cpu, main) = replaying_beside("planned", 1_000_000, "outsider");
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    let main = cpu.block();
    let planned = cpu.block();
    assert_eq!(cpu.name(), "outsider");
    cpu.wake(&planned);
    assert_eq!(cpu.tick(), "planned", "it has hit the outsider");
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "planned");
    cpu.scheduler.remove_task(&main).unwrap();
    cpu.tick();
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
}

#[test]
fn rule_9_the_turn_that_comes_while_the_root_goes_first_is_for_the_others() {
    let (mut cpu, main) = replaying_beside("planned", 1_000_000, "outsider");
    (1..PLAN_TICKS).for_each(|_| assert_eq!(cpu.tick(), "planned"));
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    assert_eq!(cpu.tick(), "outsider");
}

/// It sleeps and wakes all the time; the others have their share.
#[test]
fn rule_9_a_root_that_wakes_all_the_time_takes_nobodys_turn() {
    let (mut cpu, main) = replaying_beside("planned", 1_000_000_000, "outsider");
    let mut asleep = Some(main);
    let mut had = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        // The timer wakes it first, and then the tick comes.
        if let Some(main) = asleep.take() {
            cpu.wake(&main);
        }
        cpu.tick();
        let mut left = 1000;
        if cpu.name() == "main" {
            *had.entry("main").or_insert(0) += 900;
            cpu.run(900);
            left -= 900;
            asleep = Some(cpu.block());
        }
        *had.entry(cpu.name()).or_insert(0) += left;
        cpu.run(left);
    }
    let fair = 1_000_000 / u64::from(PLAN_TICKS + 1);
    assert!(had["outsider"] >= fair / 2, "{had:?}"); // the root is an outsider, too
    assert!(had["planned"] > 0, "{had:?}");
}

/// The running task yields until it is demoted (rule 8).
fn demote(cpu: &mut Cpu) {
    let before = cpu.status().demoted;
    for _ in 0..=FREE_YIELDS {
        cpu.yield_now();
    }
    assert_eq!(cpu.status().demoted, before + 1);
}

#[test]
fn rule_10_the_plan_is_dropped_when_most_of_its_tasks_are_demoted() {
    let mut cpu = replaying(&[("a", 1), ("b", 2), ("c", 1 << 40), ("d", 1 << 41)]);
    for name in ["a", "b", "c", "d"] {
        cpu.spawn(name);
    }
    cpu.block();
    for name in ["a", "b"] {
        assert_eq!(cpu.name(), name);
        demote(&mut cpu);
    }
    // Two of four is not most; these have their tenth.
    let had = shares(&mut cpu, 1000);
    assert_eq!((had["a"], had["b"], had["c"]), (50, 50, 900));
    while cpu.name() != "c" {
        cpu.tick();
    }
    demote(&mut cpu);
    assert_eq!((cpu.name(), cpu.status().dropped), ("d", false));
    cpu.tick();
    let status = cpu.status();
    assert!(status.dropped);
    assert_eq!(status.first.unwrap().why, Why::Yields);
    // Round robin from now on, with whole slices and all tasks.
    let had = shares(&mut cpu, 100);
    assert!(had.values().all(|&ticks| ticks == 25), "{had:?}");
    assert_eq!(cpu.status().demoted, 3);
}

/// What is left of a plan may be all that matters: two of three is not enough.
#[test]
fn rule_10_two_thirds_are_not_most() {
    let mut cpu = replaying(&[("a", 1), ("b", 2), ("c", 1 << 40)]);
    for name in ["a", "b", "c"] {
        cpu.spawn(name);
    }
    cpu.block();
    demote(&mut cpu);
    demote(&mut cpu);
    assert_eq!(shares(&mut cpu, 1000)["c"], 900);
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_an_unknown_task_that_runs_while_the_others_sleep_drops_nothing() {
    let (mut cpu, main) = replaying_beside("planned", 1 << 40, "unknown");
    for _ in 1..PLAN_TICKS {
        let planned = cpu.block();
        (0..100).for_each(|_| assert_eq!(cpu.tick(), "unknown"));
        cpu.wake(&planned);
        assert_eq!(cpu.tick(), "planned", "at once, every time");
    }
    cpu.block();
    cpu.spawn("and what it spawns");
    shares(&mut cpu, 1000);
    assert!(!cpu.status().dropped);
    drop(main);
}

#[test]
fn rule_10_a_program_that_keeps_to_the_plan_never_loses_it() {
    let mut cpu = replaying(&[("a", 1_000_000_000)]);
    cpu.spawn("a");
    cpu.spawn("unknown");
    cpu.block();
    let had = shares(&mut cpu, 1000);
    assert_eq!(had["unknown"], 100, "a tenth is no drift");
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_neither_outsiders_nor_the_root_drop_it() {
    let mut cpu = measured(&[("a", 1000)]);
    cpu.spawn("older than the call");
    cpu.control.start_pbg().unwrap();
    cpu.spawn("a");
    let main = cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.block();
    (0..100).for_each(|_| assert_eq!(cpu.tick(), "older than the call"));
    assert!(!cpu.status().dropped);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    (0..100).for_each(|_| assert_eq!(cpu.tick(), "main"));
    assert!(!cpu.status().dropped);
}

const WRONG: [&str; 7] = ["w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// A plan of ten tasks, of which the first seven are demoted; the next, `a`, runs, and
/// `b` and `c` are ready behind it, spawned in another order. The next tick drops it.
fn about_to_drop_its_plan() -> (Cpu, Handle) {
    let wrong = WRONG.map(|name| (name, 1));
    let right = [("c", 3000), ("a", 1000), ("b", 2000)];
    let all = [&wrong[..], &right].concat();
    let mut cpu = replaying(&all);
    for (name, _) in all {
        cpu.spawn(name);
    }
    let main = cpu.block();
    for (name, _) in wrong {
        assert_eq!(cpu.name(), name);
        demote(&mut cpu);
    }
    assert_eq!(cpu.name(), "a");
    (cpu, main)
}

#[test]
fn rule_10_what_was_ready_goes_to_the_end_by_rank_and_the_root_behind_it() {
    let (mut cpu, main) = about_to_drop_its_plan();
    cpu.tick();
    assert!(cpu.status().dropped);
    cpu.wake(&main);
    let mut order = Vec::new();
    while cpu.name() != "idle" {
        order.push(cpu.name());
        cpu.block();
    }
    let expected = [&["a"], &WRONG[..], &["b", "c", "main"]].concat();
    assert_eq!(order, expected);
}

#[test]
fn rule_10_who_has_the_cpu_when_the_plan_is_dropped_keeps_it_across_no_yield() {
    let (mut cpu, _main) = about_to_drop_its_plan();
    assert_eq!(cpu.yield_now(), "a");
    assert_eq!(cpu.tick(), "a", "its slice is not over");
    for expected in [&WRONG[..], &["b", "c", "a", "w1"]].concat() {
        assert_eq!(cpu.yield_now(), expected);
    }
}

#[test]
fn rule_10_the_tick_that_drops_the_plan_is_the_first_of_a_slice() {
    let (mut cpu, _main) = about_to_drop_its_plan();
    for _ in 1..SLICE_TICKS {
        assert_eq!(cpu.tick(), "a");
    }
    assert_eq!(cpu.tick(), "w1");
}

#[test]
fn rule_10_no_task_is_lost_when_the_plan_is_dropped() {
    let names: Vec<(&'static str, u64)> = (0..50).map(|i| ("planned", 1000 + i)).collect();
    let mut cpu = replaying(&names);
    let all: Vec<_> = names.iter().map(|(name, _)| cpu.spawn(name)).collect();
    cpu.spawn("unknown");
    cpu.block();
    // Off the plan by the other way: every one of them runs for ever.
    let dropped = (0..10_000).any(|_| {
        cpu.run(1000);
        cpu.tick();
        cpu.status().dropped
    });
    assert!(dropped);
    let mut ended = 0;
    while cpu.name() != "idle" {
        ended += u64::from(cpu.name() == "planned");
        cpu.block();
    }
    assert_eq!(ended, 50);
    assert!(all.iter().all(|task| Arc::strong_count(task) == 1));
}

#[test]
fn rule_10_a_root_that_waits_to_go_first_is_not_lost_either() {
    let (mut cpu, main) = replaying_beside("planned", 1_000_000, "unknown");
    demote(&mut cpu);
    assert_eq!(cpu.name(), "unknown");
    cpu.wake(&main);
    cpu.tick();
    assert!(cpu.status().dropped);
    for expected in ["unknown", "planned", "main", "idle"] {
        assert_eq!(cpu.name(), expected);
        if expected != "idle" {
            cpu.block();
        }
    }
}

/// The tick of the scenes for rule 11, in counts.
const TICK: u64 = 1000;

/// Measured: a gate of 10 ticks, so many who wait for it, and two shorter than the gate.
fn measured_with_a_gate(waiting: usize) -> Cpu {
    let mut runs = vec![("gate", 10 * TICK)];
    runs.extend(vec![("waits", 10); waiting]);
    runs.extend([("short", 9 * TICK); 2]);
    measured(&runs)
}

/// Replayed: those who wait look first, and again at each tick, in vain, while the shorter
/// ones run. Says which of 18 ticks found the replay behind, if one did.
fn replayed_with_a_gate(cpu: &mut Cpu, waiting: usize) -> Option<u64> {
    cpu.spawn("gate");
    cpu.run(1);
    (0..waiting).for_each(|_| drop(cpu.spawn("waits")));
    cpu.spawn("short");
    cpu.spawn("short");
    cpu.block(); // main
    let mut asleep = Vec::new();
    let mut found = None;
    for tick in 1..=18 {
        while cpu.name() == "waits" {
            asleep.push(cpu.block());
        }
        assert_eq!(cpu.name(), "short", "{tick}");
        cpu.run(TICK);
        if tick == 9 {
            cpu.block(); // the first has ended, just before the tick
        }
        asleep.drain(..).for_each(|waits| cpu.wake(&waits));
        cpu.tick();
        if cpu.status().first.is_some() {
            found = found.or(Some(tick));
        }
        if cpu.status().dropped {
            break;
        }
    }
    found
}

#[test]
fn rule_11_a_replay_behind_what_was_measured_is_given_up() {
    // The measured turnarounds are 10,000 of the gate, 10,010 to 10,030, 19,030 and
    // 28,030: a twentieth of their sum is 4,356. After 13 ticks the gate and those who wait
    // for it are late by 3,000 each, less 60 in all, and the first short one was early by
    // 4,000: 7,940. After 14 it is 10,940, above 4,356 and six ticks.
    let mut cpu = measured_with_a_gate(3);
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    let status = cpu.status();
    assert!(status.dropped && status.demoted == 0, "{status}");
    let first = status.first.unwrap();
    let gate = TaskKey::ROOT.child(0);
    assert_eq!((first.why, first.task), (Why::Turnaround, gate));
    assert_eq!((first.expected, first.found), (10 * TICK, 14 * TICK + 1));

    // Who has the CPU has a slice; then those who are late, as they came.
    for _ in 1..SLICE_TICKS {
        assert_eq!(cpu.name(), "short");
        cpu.tick();
    }
    let order = ["waits", "waits", "waits", "short", "gate"];
    assert_eq!(cpu.name(), "gate");
    assert_eq!(order.map(|_| cpu.yield_now()), order);
}

#[test]
fn rule_11_a_large_plan_is_looked_at_in_parts() {
    // 73 tasks are two ticks' looks. The first round in which 64 of them are late by 3,000
    // and seven by 4,000 is above a twentieth of 758,445 and 73 ticks: 13 and 14.
    let mut cpu = measured_with_a_gate(70);
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 70), Some(14));
}

#[test]
fn rule_11_the_plan_stays_if_the_call_says_so() {
    let mut cpu = measured_with_a_gate(3);
    cpu.control.start_pbg_with(Behind::Keep).unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_11_the_plan_stays_if_the_user_has_asked_for_its_order() {
    let mut cpu = measured_with_a_gate(3);
    edited(&cpu, |tasks| {
        for task in &mut tasks[1..] {
            task.priority = core::num::NonZeroU8::new(1);
        }
    });
    cpu.control.start_pbg().unwrap();
    assert_eq!(replayed_with_a_gate(&mut cpu, 3), Some(14));
    assert!(!cpu.status().dropped);
}

/// A planned task waits for an unknown one, which the measured run did not have.
#[test]
fn rule_11_what_unknown_tasks_take_is_not_counted() {
    let (mut cpu, _main) = replaying_beside("a", 10, "unknown");
    let a = cpu.block();
    for _ in 0..100 {
        assert_eq!(cpu.name(), "unknown");
        cpu.run(TICK);
        cpu.tick();
    }
    cpu.wake(&a);
    cpu.tick();
    assert!(!cpu.status().behind, "{}", cpu.status());
    // But what nobody does is.
    cpu.yield_now();
    let a = cpu.block();
    cpu.block(); // the unknown one
    cpu.run(100 * TICK);
    cpu.wake(&a);
    cpu.pick();
    cpu.tick();
    assert!(cpu.status().behind, "{}", cpu.status());
}

/// In one burst, which has not been charged yet.
#[test]
fn rule_11_what_is_beyond_a_record_is_not_counted() {
    let mut cpu = replaying(&[("over", 10 * TICK)]);
    cpu.spawn("over");
    cpu.block();
    for _ in 0..19 {
        cpu.run(TICK);
        assert_eq!(cpu.tick(), "over");
    }
    assert!(!cpu.status().dropped, "{}", cpu.status());
}

/// One has ten times as much to do, is demoted, and gets a turn now and then. It alone is
/// later than all together may be.
#[test]
fn rule_11_who_has_more_to_do_is_late_by_itself() {
    let mut left = [("grown", 20), ("b", 100), ("c", 100)];
    let mut cpu = replaying(&[("grown", 2 * TICK), ("b", 100 * TICK), ("c", 100 * TICK)]);
    for (name, _) in left {
        cpu.spawn(name);
    }
    cpu.block();
    while cpu.name() != "idle" {
        cpu.run(TICK);
        let task = left.iter_mut().find(|task| task.0 == cpu.name()).unwrap();
        task.1 -= 1;
        if task.1 == 0 {
            cpu.block();
        } else {
            cpu.tick();
        }
        assert!(!cpu.status().dropped, "{left:?}: {}", cpu.status());
    }
    assert_eq!((left.map(|task| task.1), cpu.status().demoted), ([0; 3], 1));
}

#[test]
fn rule_11_the_status_tells_how_long_all_have_lived() {
    // Measured: a from 0 to 1000, b from 0 to 1100, in all 2100.
    let mut cpu = replaying(&[("a", 1000), ("b", 100)]);
    assert_eq!(cpu.status().turnaround_permille, 0);
    cpu.spawn("a");
    cpu.spawn("b");
    cpu.block();
    assert_eq!(cpu.name(), "b");
    cpu.run(100);
    let b = cpu.block();
    assert_eq!(cpu.status().turnaround_permille, 47); // 100
    cpu.run(1000);
    let a = cpu.block();
    assert_eq!(cpu.status().turnaround_permille, 571); // and 1100
    cpu.wake(&b);
    cpu.pick();
    cpu.run(5);
    cpu.block();
    assert_eq!(cpu.status().turnaround_permille, 1050); // 1105 and 1100
    assert!(!cpu.status().behind, "not by more than a twentieth: 2205");
    cpu.wake(&a);
    cpu.pick();
    cpu.run(1);
    cpu.block();
    assert!(cpu.status().behind, "{}", cpu.status());
}

#[test]
fn a_profile_goes_out_and_comes_back_in() {
    let first = measured(&[("long", 100), ("short", 1)]);
    let bytes = stored::encode(&first.profile()).unwrap();
    let mut cpu = Cpu::boot();
    assert_eq!(cpu.control.load(&bytes, &cpu.about()), Ok(2));
    assert_eq!(cpu.profile(), first.profile(), "nothing is lost on the way");
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    assert_eq!(
        cpu.control.load(&bytes, &cpu.about()),
        Err(LoadError::Call(Error::Replaying))
    );
    cpu.spawn("long");
    cpu.spawn("short");
    assert_eq!(cpu.status().matched, 2);
    cpu.yield_now();
    assert_eq!(cpu.name(), "short");
}

#[test]
fn a_profile_that_is_refused_changes_nothing() {
    let cpu = measured(&[("a", 10)]);
    let before = cpu.profile();
    let mut bytes = stored::encode(&before).unwrap();
    let about = cpu.about();
    let refused = |bytes: &[u8], about: &About| cpu.control.load(bytes, about).unwrap_err();
    let mut other = about;
    other.program.hash += 1;
    assert!(matches!(refused(&bytes, &other), LoadError::Mismatch(_)));
    other = About { cpus: 2, ..about };
    assert!(matches!(refused(&bytes, &other), LoadError::Mismatch(_)));
    let (expected, found) = (stored::Timing::Real, stored::Timing::Counted);
    other = About {
        timing: expected,
        ..about
    };
    let mismatch = stored::Mismatch::Timing { expected, found };
    assert_eq!(refused(&bytes, &other), LoadError::Mismatch(mismatch));
    bytes[20] ^= 1;
    assert!(matches!(refused(&bytes, &about), LoadError::Decode(_)));
    assert_eq!(cpu.profile(), before);
    cpu.control.start_pbg().unwrap();
}

#[test]
fn a_profile_of_another_architecture_or_while_measuring_is_refused() {
    let cpu = measured(&[("a", 10)]);
    let mut profile = cpu.profile();
    let good = stored::encode(&profile).unwrap();
    profile.header.architecture = stored::Architecture::Other;
    let other = stored::encode(&profile).unwrap();
    let found = cpu.control.load(&other, &cpu.about());
    let is_architecture = |error| {
        let LoadError::Mismatch(mismatch) = error else {
            return false;
        };
        matches!(mismatch, stored::Mismatch::Architecture { .. })
    };
    assert!(found.is_err_and(is_architecture));
    cpu.control.measure_start().unwrap();
    let busy = Err(LoadError::Call(Error::Measuring));
    assert_eq!(cpu.control.load(&good, &cpu.about()), busy);
}

#[test]
fn a_loaded_profile_says_where_it_was_measured() {
    let mut profile = measured(&[("a", 10)]).profile();
    profile.header.frequency_hz = 62_500_000;
    profile.header.timing = stored::Timing::Unknown;
    profile.header.program.name = ProgramName::new("as it was").unwrap();
    let cpu = Cpu::boot();
    let bytes = stored::encode(&profile).unwrap();
    cpu.control.load(&bytes, &cpu.about()).unwrap();
    assert_eq!(cpu.profile(), profile);
}

#[test]
fn a_measurement_in_which_nothing_was_scheduled_is_empty() {
    let mut cpu = measured(&[("a", 10), ("b", 20)]);
    cpu.control.measure_start().unwrap();
    assert_eq!(cpu.measure_end(), Ok(0));
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
    cpu.measure_end().unwrap();
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
    assert_eq!(cpu.measure_end(), Ok(2), "new and its child");
}

#[test]
fn calls_in_a_wrong_order_are_refused_and_change_nothing() {
    let mut cpu = Cpu::boot();
    let control = cpu.control;
    assert_eq!(cpu.measure_end(), Err(Error::NotMeasuring));
    assert_eq!(control.start_pbg(), Err(Error::NoProfile));
    assert_eq!(control.status().unwrap(), Status::default());
    control.measure_start().unwrap();
    assert_eq!(control.measure_start(), Err(Error::AlreadyMeasuring));
    assert_eq!(control.start_pbg(), Err(Error::Measuring));
    cpu.spawn("a"); // recorded, whatever was refused
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(cpu.measure_end(), Err(Error::NotMeasuring));
    assert_eq!(control.start_pbg(), Ok(1));
    assert_eq!(control.start_pbg(), Err(Error::AlreadyReplaying));
    assert_eq!(control.measure_start(), Err(Error::Replaying));
    assert_eq!(cpu.measure_end(), Err(Error::NotMeasuring));
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
    let mut second: PbgScheduler<_, VirtualClock, PerThread> = PbgScheduler::new();
    second.add_task(task("gc 1"));
    assert_eq!(cpu.control.measure_start(), Err(Error::NotSupported));
    cpu.spawn("a");
    assert_eq!(cpu.yield_now(), "gc");
    assert_eq!(*second.pick_next_task().unwrap().inner(), "gc 1");
}

#[test]
fn several_queues_follow_no_plan_either() {
    let cpu = measured(&[("a", 10)]);
    let mut second: PbgScheduler<_, VirtualClock, PerThread> = PbgScheduler::new();
    second.add_task(task("gc 1"));
    assert_eq!(cpu.control.start_pbg(), Err(Error::NotSupported));
    assert_eq!(cpu.status().phase, Phase::Idle);
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
fn remove_finds_a_task_that_stands_elsewhere_than_by_its_rank() {
    let mut cpu = replaying(&[("long", 100), ("short", 50)]);
    let long = cpu.spawn("long");
    cpu.block();
    cpu.run(80);
    cpu.block();
    cpu.wake(&long); // 20 remain
    assert!(cpu.scheduler.remove_task(&long).is_some());
}

#[test]
fn remove_finds_a_task_between_its_yield_and_its_pick() {
    let mut cpu = replaying(&[("a", 100)]);
    let a = cpu.spawn("a");
    cpu.block();
    let current = cpu.current.take().unwrap();
    cpu.scheduler.put_prev_task(current, false);
    assert!(cpu.scheduler.remove_task(&a).is_some());
    assert_eq!(cpu.pick(), "idle");
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
