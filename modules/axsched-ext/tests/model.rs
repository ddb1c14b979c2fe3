//! Layer 2: the model of `axtask` and the conformance suite, and schedulers that are wrong on purpose.
//! A check that cannot fail proves nothing, so every kind of violation and every rule of the suite is
//! provoked here. The tests of the policies are in `policies.rs`, those of plans in `pbg_on_one_cpu.rs`.

// This file is long because each kind of violation has a scheduler that commits it.

mod common;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::{Promises, check};
use axsched_ext::model::{
    Config, CpuMask, Failure, Line, ModelScheduler, ModelTask, Op, Program, Report, State,
    Violation, run,
};
use axsched_ext::{
    BaseScheduler, CfsScheduler, CfsTask, FifoScheduler, FifoTask, RrScheduler, RrTask,
    SjfScheduler, SjfTask,
};
use common::{assert_golden, each_other_once, program, sjf_beside};
use proptest::test_runner::{TestError, TestRunner};

// ---------------------------------------------------------------------------
// Whole traces
// ---------------------------------------------------------------------------

fn fifo(config: &Config, main: &Program) -> Report {
    run(config, main, |_| FifoScheduler::new(), FifoTask::new).unwrap()
}

/// Runs a program under a round robin that preempts at every tick.
fn eager(config: &Config, main: &Program) -> Report {
    run(config, main, |_| RrScheduler::<_, 1>::new(), RrTask::new).unwrap()
}

#[test]
fn traces_are_as_in_the_golden_files() {
    type Case = (
        &'static str,
        usize,
        fn(&Config, &Program) -> Report,
        Vec<Op>,
    );
    let child = |ops: &[Op]| Op::spawn("child", ops.iter().cloned());
    let poll = [
        Op::SleepUntil {
            queue: 0,
            units: 12,
        },
        Op::Run(3),
    ];
    let timed = Op::Wait {
        queue: 0,
        timeout: Some(30),
    };
    let to_cpu_1 = Op::Migrate(CpuMask::one(1));
    let life = [Op::Run(3), Op::Yield, Op::Sleep(12)];
    let notifies = child(&[Op::notify(0)]);
    let cases: [Case; 5] = [
        ("life_of_a_task", 1, fifo, vec![child(&life), Op::Join(0)]),
        (
            "sleeping_poller",
            1,
            fifo,
            vec![
                Op::spawn("poller", poll),
                Op::Sleep(25),
                Op::notify(0),
                Op::Join(0),
            ],
        ),
        // The tick at 10 falls between main's poll and its parking.
        (
            "wake_between_poll_and_park",
            1,
            eager,
            vec![notifies.clone(), Op::Run(8), Op::wait(0)],
        ),
        // The tick at 10 takes the CPU from the helper before it has enqueued main.
        (
            "migration",
            2,
            eager,
            vec![Op::Run(8), to_cpu_1, Op::Run(1)],
        ),
        (
            "stale_timer",
            2,
            fifo,
            vec![notifies, timed, Op::DropHandle(0), Op::Sleep(90)],
        ),
    ];
    for (name, cpus, run, ops) in cases {
        let main = Program::new("main", ops);
        for (line, end) in Line::ALL.into_iter().zip(["", "-0.6"]) {
            let config = Config {
                line,
                ..Config::with_cpus(cpus)
            };
            let trace = run(&config, &main).trace.to_string();
            assert_golden(&format!("{name}{end}"), &trace);
        }
    }
}

/// On the newer line the CPU that a woken task is leaving puts it. If it stays there, the next task is
/// forced off the CPU.
#[test]
fn late_wake_is_put_by_the_other_cpu_which_picks_again() {
    let config = Config {
        line: Line::AxTask06,
        switch_cost: 20,
        tick_period: 1_000,
        ..Config::with_cpus(2)
    };
    let to_cpu_1 = Op::Migrate(CpuMask::one(1));
    let other = Op::spawn("other", [to_cpu_1.clone(), Op::Run(3_000)]);
    let sleeper = [to_cpu_1, Op::Run(40), Op::wait(0)];
    let played = |after| {
        let wakes = [Op::Run(after), Op::notify(0), Op::Join(1)];
        let spawns = [
            other.clone(),
            Op::spawn("sleeper", sleeper.clone()),
            Op::Yield,
        ];
        eager(
            &config,
            &Program::new("main", spawns.into_iter().chain(wakes)),
        )
    };
    let lines = |report: Report| {
        let lines = report
            .trace
            .events
            .into_iter()
            .map(|event| event.to_string());
        lines.collect::<Vec<_>>()
    };
    let is_forced = |line: &String| line.contains(" force ");
    let mut all = (0..4_000).map(|after| lines(played(after)));
    let late = all.find(|lines| lines.iter().any(is_forced));
    let late = late.expect("a wake in a switch");
    let at = late.iter().position(is_forced).expect("it was there");
    let what = |line: &String| line.split_once(' ').expect("a time").1.to_owned();
    let around: Vec<_> = late[at - 4..=at + 1].iter().map(what).collect();
    let expected = [
        "c1 dispatch other#5",
        "c0 block main#1",
        "c0 dispatch idle#0",
        "c1 wake sleeper#6 -> c1",
        "c1 force other#5",
        "c1 dispatch sleeper#6",
    ];
    assert_eq!(around, expected);
}

#[test]
fn waker_spins_until_the_sleeper_is_off_its_cpu() {
    let spins = |after| {
        let child = || Op::spawn("child", [Op::notify(0)]);
        let ops = [child(), child(), Op::Run(after), Op::wait(0)];
        fifo(&Config::with_cpus(2), &Program::new("main", ops)).wake_spins
    };
    // For 3 to 5, main is being left just when the child on CPU 1 notifies.
    assert_eq!([2, 3, 4, 5, 6].map(spins), [0, 1, 1, 1, 0]);
}

#[test]
fn report_adds_up() {
    let child = [Op::Run(25), Op::Yield, Op::Sleep(5), Op::Run(10)];
    let child = || Op::spawn("child", child.clone());
    let ops = [child(), Op::Run(5), child(), Op::Join(1)];
    let report = fifo(&Config::default(), &Program::new("main", ops));
    let names: Vec<_> = report.tasks.iter().map(|t| t.label.to_string()).collect();
    assert_eq!(names, ["main#1", "gc#2", "child#3", "child#4"]);
    let child = &report.tasks[3];
    assert_eq!((child.submitted, child.yields, child.dispatches), (6, 1, 3));
    assert_eq!(child.turnaround(), Some(child.finished.unwrap() - 6));
    assert!(child.run_time >= 35 && child.run_time < 60, "{child:?}");
    // It waits while the other child runs.
    assert!(child.max_wait >= 25, "{child:?}");
    let picks: u64 = report.tasks.iter().map(|t| t.dispatches).sum();
    assert_eq!(report.dispatches, picks);
    let ends = report.tasks.iter().filter_map(|t| t.finished);
    assert_eq!(Some(report.makespan), ends.max());
}

// ---------------------------------------------------------------------------
// Schedulers that are wrong on purpose
// ---------------------------------------------------------------------------

/// The fault of a [`Faulty`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    DropsWhatIsAdded,
    DropsWhatIsPut,
    ForgetsTheWoken,
    DuplicatesWhatIsPut,
    PicksTheLastAgain,
    PicksOneThatLeft,
    PicksNothingEveryThirdTime,
    PicksAStranger,
    PrefersTheNewest,
    /// A preempted task waits while two others are ready, for up to 2,000 picks.
    PrefersYieldersToThePreempted,
    KeepsThePicked,
    LeaksThePicked,
    HandsOutLeftOvers,
    RemovesTheAbsent,
    KeepsTheRemoved,
    LosesALoneTaskInTime,
    ExpectsAPickFirst,
    NeedsNoInit,
    ChangesItsMindOnPriorities,
}

/// A FIFO with a [`Fault`].
struct Faulty {
    fault: Fault,
    ready: VecDeque<Task>,
    stash: Vec<Task>,
    preempted: VecDeque<Task>,
    last: *const FifoTask<ModelTask>,
    picks: u32,
    empty_picks: u32,
    puts: u32,
    priorities: u32,
}

type Task = Arc<FifoTask<ModelTask>>;

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            ready: VecDeque::new(),
            stash: Vec::new(),
            preempted: VecDeque::new(),
            last: std::ptr::null(),
            picks: 0,
            empty_picks: 0,
            puts: 0,
            priorities: 0,
        }
    }
}

fn remove(queue: &mut VecDeque<Task>, task: &Task) -> Option<Task> {
    let place = queue.iter().position(|t| Arc::ptr_eq(t, task))?;
    queue.remove(place)
}

impl BaseScheduler for Faulty {
    type SchedItem = Task;

    fn init(&mut self) {
        if self.fault == Fault::NeedsNoInit {
            self.fault = Fault::DropsWhatIsAdded;
        }
    }

    fn add_task(&mut self, task: Task) {
        if self.fault != Fault::DropsWhatIsAdded {
            self.ready.push_back(task);
        }
    }

    fn remove_task(&mut self, task: &Task) -> Option<Task> {
        let is_ready = self.ready.iter().any(|t| Arc::ptr_eq(t, task));
        match (self.fault, is_ready) {
            (Fault::RemovesTheAbsent, false) => Some(task.clone()),
            (Fault::KeepsTheRemoved, true) => Some(task.clone()),
            _ => remove(&mut self.ready, task).or_else(|| remove(&mut self.preempted, task)),
        }
    }

    fn pick_next_task(&mut self) -> Option<Task> {
        self.picks += 1;
        self.empty_picks = if self.ready.is_empty() {
            self.empty_picks + 1
        } else {
            0
        };
        match self.fault {
            Fault::PicksNothingEveryThirdTime if self.picks.is_multiple_of(3) => return None,
            Fault::PicksAStranger if self.picks == 4 => {
                return Some(Arc::new(FifoTask::new(ModelTask::new(1, "stranger"))));
            }
            Fault::PicksOneThatLeft if self.picks == 4 => return self.stash.pop(),
            Fault::HandsOutLeftOvers if self.empty_picks == 2 => return self.stash.pop(),
            Fault::PrefersTheNewest => {
                let newest = |task: &&Task| task.id();
                let newest = self.ready.iter().max_by_key(newest)?.clone();
                return self.remove_task(&newest);
            }
            _ => {}
        }
        let next = match self.ready.len() < 2 || self.picks.is_multiple_of(2_000) {
            true => self.preempted.pop_front(),
            false => None,
        };
        let next = next.or_else(|| self.ready.pop_front())?;
        self.last = Arc::as_ptr(&next);
        match self.fault {
            Fault::PicksOneThatLeft | Fault::HandsOutLeftOvers => self.stash = vec![next.clone()],
            Fault::KeepsThePicked => self.stash.push(next.clone()),
            Fault::LeaksThePicked if self.picks == 1 => std::mem::forget(next.clone()),
            _ => {}
        }
        Some(next)
    }

    fn put_prev_task(&mut self, task: Task, preempt: bool) {
        self.puts += 1;
        match self.fault {
            Fault::DropsWhatIsPut => return,
            Fault::LosesALoneTaskInTime if self.puts > 1_000 && self.ready.is_empty() => return,
            Fault::ExpectsAPickFirst if self.picks == 0 => return,
            Fault::ForgetsTheWoken if Arc::as_ptr(&task) != self.last => {
                self.stash.push(task);
                return;
            }
            Fault::DuplicatesWhatIsPut => self.ready.push_back(task.clone()),
            Fault::PicksTheLastAgain if Arc::as_ptr(&task) == self.last => {
                self.ready.push_front(task);
                return;
            }
            Fault::PrefersYieldersToThePreempted if preempt => {
                self.preempted.push_back(task);
                return;
            }
            _ => {}
        }
        self.ready.push_back(task);
    }

    fn task_tick(&mut self, _: &Task) -> bool {
        self.fault == Fault::PrefersYieldersToThePreempted && !self.ready.is_empty()
    }

    fn set_priority(&mut self, _: &Task, _: isize) -> bool {
        self.priorities += 1;
        self.fault == Fault::ChangesItsMindOnPriorities && self.priorities.is_multiple_of(2)
    }
}

fn faulty(fault: Fault, config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    run(config, main, |_| Faulty::new(fault), FifoTask::new)
}

/// Returns a program in which everything happens, also while handles are held and not.
fn everything() -> Program {
    let yielder = Program::repeat("yielder", 20, &[Op::Run(2), Op::Yield]);
    let sleeper = Program::repeat("sleeper", 4, &[Op::Sleep(20), Op::Run(2)]);
    let mut ops = vec![Op::spawn("dead", []), Op::Join(0)];
    ops.extend([Op::Spawn(yielder.clone()), Op::DropHandle(1)]);
    ops.extend([Op::Spawn(yielder), Op::Spawn(sleeper)]);
    ops.extend([Op::Join(2), Op::Join(3)]);
    Program::new("main", ops)
}

#[test]
fn correct_scheduler_passes() {
    let report = faulty(Fault::Nothing, &Config::default(), &everything()).unwrap();
    let mut programs = report.tasks.iter().filter(|t| &*t.label.name != "gc");
    assert!(programs.all(|t| t.finished.is_some()));
}

#[test]
fn each_fault_is_found_and_named() {
    type Case = (Fault, Config, Program, fn(&Violation) -> bool);
    let main = |ops: &[Op]| Program::new("main", ops.iter().cloned());
    let child = |ops: &[Op]| Op::spawn("child", ops.iter().cloned());
    // A child is lost while another one runs.
    let lost = [
        child(&[Op::Yield]),
        Op::DropHandle(0),
        Op::spawn("other", [Op::Run(5)]),
        Op::Sleep(50),
    ];
    let sleepers = [
        child(&[Op::Sleep(30)]),
        child(&[Op::Sleep(30)]),
        Op::Sleep(1),
    ];
    // While main holds the handle of a dead task, gc yields again and again.
    let held = [
        Op::spawn("dead", []),
        Op::Join(0),
        Op::Sleep(15),
        Op::Run(5),
    ];
    let workers = ["a", "b", "c"].map(|name| Program::repeat(name, 100, &[Op::Run(5), Op::Yield]));
    let default = Config::default();
    let may_repick = Config {
        repick_after_yield: true,
        ..Config::default()
    };
    let gc_may_spin = Config {
        max_gc_streak: u64::MAX,
        ..may_repick.clone()
    };
    let mut ten_dispatches = may_repick.clone();
    ten_dispatches.max_wait.dispatches = Some(10);
    let cases: Vec<Case> = vec![
        (
            Fault::DropsWhatIsPut,
            default.clone(),
            main(&lost),
            |found| matches!(found, Violation::Lost { task, found: 1 } if &*task.name == "child"),
        ),
        (
            Fault::ForgetsTheWoken,
            default.clone(),
            everything(),
            |found| matches!(found, Violation::IdleWhileReady { cpu: 0, ready } if &*ready[0].name == "main"),
        ),
        (
            Fault::PicksNothingEveryThirdTime,
            default.clone(),
            everything(),
            |found| matches!(found, Violation::IdleWhileReady { .. }),
        ),
        (
            Fault::DuplicatesWhatIsPut,
            default.clone(),
            everything(),
            |found| {
                matches!(
                    found,
                    Violation::NotReady {
                        found: State::Blocked | State::Exited,
                        ..
                    }
                )
            },
        ),
        (
            Fault::PicksOneThatLeft,
            default.clone(),
            main(&sleepers),
            |found| matches!(found, Violation::NotReady { task, found: State::Blocked } if task.id.0 == 4),
        ),
        (
            Fault::PicksAStranger,
            default.clone(),
            everything(),
            |found| matches!(found, Violation::Unknown { task } if &*task.name == "stranger"),
        ),
        (
            Fault::KeepsThePicked,
            default.clone(),
            everything(),
            |found| matches!(found, Violation::HandleKept { task, .. } if &*task.name == "dead"),
        ),
        // The first task that is picked is gc, which does not end.
        (
            Fault::LeaksThePicked,
            default.clone(),
            everything(),
            |found| matches!(found, Violation::HandleKept { task, expected: 1, found: 2 } if &*task.name == "gc"),
        ),
        (
            Fault::HandsOutLeftOvers,
            default.clone(),
            main(&[child(&[]), Op::Run(1)]),
            |found| matches!(found, Violation::LeftOver { task, .. } if &*task.name == "gc"),
        ),
        (
            Fault::PicksTheLastAgain,
            default.clone(),
            everything(),
            |found| matches!(found, Violation::Repicked { .. }),
        ),
        (
            Fault::PicksTheLastAgain,
            may_repick,
            main(&held),
            |found| matches!(found, Violation::GcMonopolises { streak: 17, ready, .. } if &*ready[0].name == "main"),
        ),
        (
            Fault::PicksTheLastAgain,
            gc_may_spin,
            main(&held),
            |found| matches!(found, Violation::NotFinished { left, .. } if left.len() == 2),
        ),
        (
            Fault::PrefersTheNewest,
            ten_dispatches,
            main(&workers.map(Op::Spawn)),
            |found| matches!(found, Violation::Starved { dispatches: 11, .. }),
        ),
        // These two are faults of the program.
        (
            Fault::Nothing,
            default.clone(),
            main(&[Op::wait(0)]),
            |found| matches!(found, Violation::Deadlock { .. }),
        ),
        (
            Fault::Nothing,
            default,
            main(&[Op::PreemptOff, Op::Sleep(5)]),
            |found| matches!(found, Violation::BlockedUnderGuard { .. }),
        ),
    ];
    for (fault, config, main, is_it) in cases {
        let failure = faulty(fault, &config, &main).unwrap_err();
        assert!(is_it(&failure.violation), "{fault:?}: {failure}");
        assert!(!failure.trace.events.is_empty(), "{fault:?}");
    }
}

#[test]
fn starvation_is_found_while_the_task_still_waits() {
    let long = Op::spawn("long", [Op::Run(1000)]);
    let main = Program::new("main", [long, Op::Yield]);
    let mut config = Config::default();
    config.max_wait.time = Some(300);
    let failure = faulty(Fault::Nothing, &config, &main).unwrap_err();
    assert!(
        matches!(&failure.violation, Violation::Starved { task, .. } if &*task.name == "main"),
        "{failure}"
    );
    assert!(failure.time < 400, "{failure}");
}

#[test]
fn impossible_machine_is_refused() {
    let bad: [fn(&mut Config); 4] = [
        |config| config.cpus = 0,
        |config| config.cpus = 65,
        |config| config.tick_period = 0,
        |config| config.call_cost = 0,
    ];
    for spoil in bad {
        let mut config = Config::default();
        spoil(&mut config);
        let failure = faulty(Fault::Nothing, &config, &Program::new("main", [])).unwrap_err();
        let is_it = matches!(failure.violation, Violation::BadConfig { .. });
        assert!(is_it, "{failure}");
    }
}

/// One queue for all CPUs, which ignores where a task may run.
struct Shared {
    ready: Rc<RefCell<VecDeque<Task>>>,
    own: VecDeque<Task>,
    /// Returns true if every CPU may pick the task.
    shares: fn(&Task) -> bool,
}

impl BaseScheduler for Shared {
    type SchedItem = Task;

    fn init(&mut self) {}
    fn add_task(&mut self, task: Task) {
        if (self.shares)(&task) {
            self.ready.borrow_mut().push_back(task);
        } else {
            self.own.push_back(task);
        }
    }
    fn remove_task(&mut self, task: &Task) -> Option<Task> {
        remove(&mut self.ready.borrow_mut(), task)
    }
    fn pick_next_task(&mut self) -> Option<Task> {
        let own = self.own.pop_front();
        own.or_else(|| self.ready.borrow_mut().pop_front())
    }
    fn put_prev_task(&mut self, task: Task, _: bool) {
        self.add_task(task);
    }
    fn task_tick(&mut self, _: &Task) -> bool {
        false
    }
    fn set_priority(&mut self, _: &Task, _: isize) -> bool {
        false
    }
}

#[test]
fn shared_queue_that_ignores_where_tasks_may_run_is_found() {
    type Case = (bool, fn(&Task) -> bool, fn(&Violation) -> bool);
    let is_no_gc: fn(&Task) -> bool = |task| &*task.label().name != "gc";
    let cases: [Case; 3] = [
        (false, is_no_gc, |found| {
            matches!(found, Violation::NotQueuedHere { found: Some(_), .. })
        }),
        // A task that was stolen must be allowed on the CPU, and must have left its own.
        (
            true,
            |_| true,
            |found| matches!(found, Violation::WrongCpu { task, .. } if &*task.name == "gc"),
        ),
        (true, is_no_gc, |found| {
            matches!(found, Violation::StillOnCpu { .. })
        }),
    ];
    let worker = |n| Program::repeat("worker", n, &[Op::Run(3), Op::Yield]);
    let main = Program::new("main", [10, 20, 30, 40].map(|n| Op::Spawn(worker(n))));
    for (stealing, shares, is_it) in cases {
        let config = Config {
            stealing,
            ..Config::with_cpus(3)
        };
        let ready = Rc::default();
        let made = |_| Shared {
            ready: Rc::clone(&ready),
            own: VecDeque::new(),
            shares,
        };
        let failure = run(&config, &main, made, FifoTask::new).unwrap_err();
        assert!(is_it(&failure.violation), "{failure}");
    }
}

#[test]
fn failure_tells_the_time_the_task_and_the_events_before() {
    let main = Program::new("main", [Op::Run(7), Op::Yield]);
    let failure = faulty(Fault::DropsWhatIsPut, &Config::default(), &main).unwrap_err();
    let expected = "\
at 7: main#1 was put back: expected the scheduler to own it, found 1 owner(s) in all
0 c0 spawn gc#2 -> c0
7 c0 yield main#1
7 c0 dispatch gc#2
";
    assert_eq!(failure.to_string(), expected);
}

#[test]
fn failing_program_shrinks_to_one_step() {
    let mut runner = TestRunner::deterministic();
    let found = runner.run(&program(), |main| {
        common::passes(faulty(
            Fault::DuplicatesWhatIsPut,
            &Config::default(),
            &main,
        ))
    });
    let Err(TestError::Fail(_, main)) = found else {
        panic!("{found:?}");
    };
    assert!(main.ops.len() <= 1, "{main:?}");
}

// ---------------------------------------------------------------------------
// The suite
// ---------------------------------------------------------------------------

#[test]
fn suite_names_the_rule_that_each_fault_breaks() {
    let broken = |fault| {
        let promises = Promises {
            max_wait: each_other_once,
            ..Promises::default()
        };
        let result = check(&promises, |_| Faulty::new(fault), FifoTask::new);
        result.map_or_else(|error| error.name, |_| "none")
    };
    use Fault::*;
    let expected = [
        (Nothing, "none"),
        (DropsWhatIsAdded, "empty_pick_is_none"),
        (DropsWhatIsPut, "put_and_pick_conserve"),
        (ForgetsTheWoken, "put_and_pick_conserve"),
        (DuplicatesWhatIsPut, "put_and_pick_conserve"),
        (PicksTheLastAgain, "yielders_take_turns"),
        (PicksOneThatLeft, "empty_pick_is_none"),
        (PicksNothingEveryThirdTime, "every_add_is_picked_once"),
        (PicksAStranger, "empty_pick_is_none"),
        (PrefersTheNewest, "yielders_take_turns"),
        (KeepsThePicked, "the_dead_are_let_go"),
        (LeaksThePicked, "drop_releases_the_queued"),
        (HandsOutLeftOvers, "empty_pick_is_none"),
        (RemovesTheAbsent, "remove_of_absent_is_none"),
        (KeepsTheRemoved, "put_and_pick_conserve"),
        (LosesALoneTaskInTime, "a_lone_task_may_be_ticked_for_ever"),
        (ExpectsAPickFirst, "a_put_needs_no_pick_before"),
        (NeedsNoInit, "init_is_harmless"),
        (ChangesItsMindOnPriorities, "any_priority_is_answered"),
    ];
    for (fault, rule) in expected {
        assert_eq!(broken(fault), rule, "{fault:?}");
    }
}

/// The policy keeps every rule before that one, including the limit on the streaks of `gc`. The job ends, but
/// too late.
#[test]
fn suite_finds_yielders_that_lock_out_a_job() {
    let promises = Promises {
        done_beside: sjf_beside,
        ..Promises::default()
    };
    let made = |_| Faulty::new(Fault::PrefersYieldersToThePreempted);
    let found = check(&promises, made, FifoTask::new).unwrap_err();
    assert_eq!(found.name, "a_job_gets_done_beside_yielders", "{found}");
    assert!(found.to_string().contains("its end after"), "{found}");
}

#[test]
fn suite_finds_queues_that_are_not_independent() {
    let mut queue: Weak<RefCell<VecDeque<Task>>> = Weak::new();
    let made = |cpu| {
        let ready = match queue.upgrade() {
            Some(ready) if cpu > 0 => ready,
            _ => Rc::default(),
        };
        queue = Rc::downgrade(&ready);
        Shared {
            ready,
            own: VecDeque::new(),
            shares: |_| true,
        }
    };
    let broken = check(&Promises::default(), made, FifoTask::new).unwrap_err();
    assert_eq!(broken.name, "queues_are_independent");
}

// ---------------------------------------------------------------------------
// SJF beside other policies
// ---------------------------------------------------------------------------

/// Returns two average turnarounds in ticks. The first set of tasks is a long one with bursts of 20
/// ticks and four that yield all the time, as in `realtime`. The second is a long one with bursts of
/// two ticks beside two with bursts of two fifths of a tick, as in `occupy`.
fn turnarounds<S: ModelScheduler>(
    made: impl Fn(usize) -> S,
    wrap: impl Fn(ModelTask) -> S::Task,
) -> (u64, u64) {
    const TICK: u64 = 1_000;
    let config = Config {
        tick_period: TICK,
        on_time: VirtualClock::set,
        ..Config::default()
    };
    let average = |tasks: &[(&str, usize, u64)], of: &[&str]| {
        let task = |&(name, n, units): &(&str, usize, u64)| {
            Op::Spawn(Program::repeat(name, n, &[Op::Run(units), Op::Yield]))
        };
        let mut ops = vec![Op::PreemptOff];
        ops.extend(tasks.iter().map(task));
        ops.extend((0..tasks.len()).map(Op::DropHandle));
        ops.push(Op::PreemptOn);
        let report = run(&config, &Program::new("main", ops), &made, &wrap).unwrap();
        let ended = |name: &&str| report.task(name).unwrap().turnaround().unwrap();
        of.iter().map(ended).sum::<u64>() / of.len() as u64 / TICK
    };
    let realtime = [
        ("long", 8, 20 * TICK),
        ("short1", 500, 6),
        ("short2", 1_000, 3),
        ("short3", 2_000, 2),
        ("short4", 5_000, 1),
    ];
    let occupy = [
        ("long", 80, 2 * TICK),
        ("short1", 4_000, 2 * TICK / 5),
        ("short2", 4_000, 2 * TICK / 5),
    ];
    let all = realtime.map(|task| task.0);
    (average(&realtime, &all), average(&occupy, &["long"]))
}

#[test]
fn short_bursts_overtake_under_sjf_and_a_long_task_gets_on() {
    let sjf = turnarounds(|_| SjfScheduler::<_, VirtualClock>::new(), SjfTask::new);
    let cfs = turnarounds(|_| CfsScheduler::<_, VirtualClock>::new(), CfsTask::new);
    let rr = turnarounds(|_| RrScheduler::<_, 5>::new(), RrTask::new);
    let all = format!("{sjf:?} {cfs:?} {rr:?}");
    assert!(sjf.0 <= 90 && sjf.0 < cfs.0 && cfs.0 < rr.0, "{all}");
    // If each preemption computed the due time of its task anew, it would take 3,384 ticks.
    assert!(sjf.1 < 3_384 / 3, "{all}");
}

#[test]
fn yielding_poller_computes_before_each_look() {
    let poller = |look| {
        let poll = Op::spawn("poller", [Op::YieldUntil { queue: 0, look }]);
        let round = [Op::Run(5), Op::Yield];
        let worker = [&round[..], &round, &[Op::notify(0)]].concat();
        let ops = [
            Op::PreemptOff,
            poll,
            Op::spawn("worker", worker),
            Op::PreemptOn,
            Op::Join(0),
        ];
        let config = Config {
            tick_period: 1_000,
            ..Config::default()
        };
        let report = fifo(&config, &Program::new("main", ops));
        let poller = report.task("poller").unwrap();
        (poller.yields, poller.run_time)
    };
    let (yields, at_once) = poller(0);
    assert_eq!(yields, 3);
    // The last look sees the permit.
    assert_eq!(poller(7), (3, at_once + 4 * 7));
}

#[test]
fn look_of_gc_takes_time_of_its_own() {
    let worker = |gc_look_cost| {
        let round = [Op::Run(5), Op::Yield, Op::Run(5)];
        let ops = [
            Op::PreemptOff,
            Op::spawn("dead", []),
            Op::spawn("worker", round),
            Op::PreemptOn,
            Op::Join(1),
        ];
        let config = Config {
            tick_period: 10_000,
            gc_look_cost,
            ..Config::default()
        };
        let report = fifo(&config, &Program::new("main", ops));
        let worker = report.task("worker").unwrap();
        (worker.run_time, worker.finished.unwrap())
    };
    let (run_time, finished) = worker(0);
    // gc looks once at the dead task, whose handle main has, before the worker goes on.
    assert_eq!(worker(100), (run_time, finished + 100));
}
