//! Layer 2: every policy under the model of `axtask`, and the model under
//! schedulers that are wrong on purpose. A check that cannot fail proves
//! nothing, so every kind of violation is provoked here.

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use axsched_ext::cfs::CfsScheduler;
use axsched_ext::clock::{Clock, VirtualClock};
use axsched_ext::conformance::{Coverage, Promises, check};
use axsched_ext::model::{
    Config, CpuMask, Failure, MaxWait, ModelTask, Op, Program, Report, State, TaskId, Violation,
    run,
};
use axsched_ext::pbg::{ControlSource, Mode, PLAN_TICKS, PbgScheduler, PbgTask, PerThread, Status};
use axsched_ext::sjf::{self, SjfScheduler};
use axsched_ext::{BaseScheduler, CfsTask, FifoScheduler, FifoTask, RrScheduler, RrTask, SjfTask};
use common::on_add::OnAdd;
use common::several::{MEASURE_END, MEASURE_START, START_PBG, START_PBG_AND_KEEP, call_pbg, named};
use common::{
    Stock, a_slice_each, bounded, each_other_once, machine, passes, planned_beside, program,
    proptest_config, rr_beside, sjf_beside,
};
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

// ---------------------------------------------------------------------------
// The model itself: whole traces
// ---------------------------------------------------------------------------

fn fifo_trace(config: Config, ops: impl IntoIterator<Item = Op>) -> String {
    let main = Program::new("main", ops);
    let report = run(&config, &main, |_| FifoScheduler::new(), FifoTask::new).unwrap();
    report.trace.to_string()
}

/// Preempts at every tick.
fn eager_trace(config: Config, ops: impl IntoIterator<Item = Op>) -> String {
    let main = Program::new("main", ops);
    let made = |_| RrScheduler::<_, 1>::new();
    let report = run(&config, &main, made, RrTask::new).unwrap();
    report.trace.to_string()
}

fn notify(queue: u32) -> Op {
    let resched = false;
    Op::Notify { queue, resched }
}

fn wait(queue: u32) -> Op {
    let timeout = None;
    Op::Wait { queue, timeout }
}

#[test]
fn trace_of_spawn_yield_sleep_join_and_gc() {
    let child = Program::new("child", [Op::Run(3), Op::Yield, Op::Sleep(12)]);
    let trace = fifo_trace(Config::default(), [Op::Spawn(child), Op::Join(0)]);
    let expected = "\
0 c0 spawn gc#2 -> c0
0 c0 spawn child#3 -> c0
2 c0 block main#1
2 c0 dispatch gc#2
6 c0 block gc#2
6 c0 dispatch child#3
10 c0 tick child#3
12 c0 yield child#3
12 c0 dispatch child#3
14 c0 block child#3
14 c0 dispatch idle#0
30 c0 wake child#3 -> c0
30 c0 dispatch child#3
34 c0 exit child#3
35 c0 wake main#1 -> c0
35 c0 wake gc#2 -> c0
35 c0 dispatch main#1
39 c0 exit main#1
40 c0 tick main#1
41 c0 block main#1
41 c0 dispatch gc#2
44 c0 free child#3
45 c0 yield gc#2
45 c0 dispatch gc#2
47 c0 block gc#2
47 c0 dispatch idle#0
";
    assert_eq!(trace, expected);
}

#[test]
fn trace_of_a_poller_that_sleeps() {
    let (queue, units) = (0, 12);
    let poller = Program::new("poller", [Op::SleepUntil { queue, units }, Op::Run(3)]);
    let ops = [Op::Spawn(poller), Op::Sleep(25), notify(0), Op::Join(0)];
    let trace = fifo_trace(Config::default(), ops);
    let expected = "\
0 c0 spawn gc#2 -> c0
0 c0 spawn poller#3 -> c0
2 c0 block main#1
2 c0 dispatch gc#2
6 c0 block gc#2
6 c0 dispatch poller#3
10 c0 tick poller#3
10 c0 block poller#3
10 c0 dispatch idle#0
30 c0 wake poller#3 -> c0
30 c0 wake main#1 -> c0
30 c0 dispatch poller#3
35 c0 block poller#3
35 c0 dispatch main#1
40 c0 tick main#1
41 c0 block main#1
41 c0 dispatch idle#0
50 c0 wake poller#3 -> c0
50 c0 dispatch poller#3
58 c0 exit poller#3
59 c0 wake main#1 -> c0
59 c0 wake gc#2 -> c0
59 c0 dispatch main#1
62 c0 tick main#1
63 c0 exit main#1
65 c0 block main#1
65 c0 dispatch gc#2
68 c0 free poller#3
69 c0 yield gc#2
69 c0 dispatch gc#2
70 c0 tick gc#2
71 c0 block gc#2
71 c0 dispatch idle#0
";
    assert_eq!(trace, expected);
}

#[test]
fn trace_of_a_wake_between_poll_and_park() {
    let child = Program::new("child", [notify(0)]);
    // The tick at 10 falls between main's poll and its parking.
    let ops = [Op::Spawn(child), Op::Run(8), wait(0)];
    let trace = eager_trace(Config::default(), ops);
    let expected = "\
0 c0 spawn gc#2 -> c0
0 c0 spawn child#3 -> c0
10 c0 tick main#1 resched
10 c0 preempt main#1
10 c0 dispatch gc#2
14 c0 block gc#2
14 c0 dispatch child#3
18 c0 exit child#3
19 c0 wake gc#2 -> c0
19 c0 dispatch main#1
22 c0 tick main#1 resched
22 c0 preempt main#1
22 c0 dispatch gc#2
25 c0 yield gc#2
25 c0 dispatch main#1
28 c0 yield main#1
28 c0 dispatch gc#2
31 c0 tick gc#2 resched
31 c0 preempt gc#2
31 c0 dispatch main#1
35 c0 exit main#1
37 c0 block main#1
37 c0 dispatch gc#2
40 c0 tick gc#2 resched
40 c0 preempt gc#2
40 c0 dispatch gc#2
41 c0 free child#3
42 c0 yield gc#2
42 c0 dispatch gc#2
44 c0 block gc#2
44 c0 dispatch idle#0
";
    assert_eq!(trace, expected);
}

#[test]
fn trace_of_a_migration() {
    let config = Config {
        cpus: 2,
        ..Config::default()
    };
    // The tick at 10 takes the CPU from the helper before it has put main.
    let ops = [Op::Run(8), Op::Migrate(CpuMask::one(1)), Op::Run(1)];
    let trace = eager_trace(config, ops);
    let expected = "\
0 c0 spawn gc#2 -> c0
0 c1 spawn gc#4 -> c1
0 c1 dispatch gc#4
4 c1 block gc#4
4 c1 dispatch idle#3
9 c0 dispatch migration#5
12 c0 tick migration#5 resched
12 c0 preempt migration#5
12 c0 dispatch gc#2
16 c0 block gc#2
16 c0 dispatch migration#5
19 c0 migrate main#1 -> c1
20 c0 tick migration#5 resched
20 c0 preempt migration#5
20 c0 dispatch migration#5
21 c0 exit migration#5
22 c0 wake gc#2 -> c0
22 c0 dispatch gc#2
25 c0 free migration#5
25 c1 dispatch main#1
26 c0 yield gc#2
26 c0 dispatch gc#2
28 c0 block gc#2
28 c0 dispatch idle#0
29 c1 exit main#1
31 c1 block main#1
31 c1 dispatch idle#3
";
    assert_eq!(trace, expected);
}

#[test]
fn trace_of_a_stale_timer() {
    let config = Config {
        cpus: 2,
        ..Config::default()
    };
    let child = Program::new("child", [notify(0)]);
    let timeout = Some(30);
    let timed = Op::Wait { queue: 0, timeout };
    let ops = [Op::Spawn(child), timed, Op::DropHandle(0), Op::Sleep(90)];
    let trace = fifo_trace(config, ops);
    let expected = "\
0 c0 spawn gc#2 -> c0
0 c1 spawn gc#4 -> c1
0 c0 spawn child#5 -> c0
0 c1 dispatch gc#4
2 c0 block main#1
2 c0 dispatch gc#2
4 c1 block gc#4
4 c1 dispatch idle#3
6 c0 block gc#2
6 c0 dispatch child#5
10 c0 wake main#1 -> c1
10 c0 tick child#5
10 c0 exit child#5
11 c0 wake gc#2 -> c0
11 c0 dispatch gc#2
14 c0 yield gc#2
14 c0 dispatch gc#2
15 c0 yield gc#2
15 c0 dispatch gc#2
15 c1 dispatch main#1
16 c0 yield gc#2
16 c0 dispatch gc#2
17 c0 yield gc#2
17 c0 dispatch gc#2
18 c0 yield gc#2
18 c0 dispatch gc#2
19 c0 yield gc#2
19 c0 dispatch gc#2
20 c0 tick gc#2
20 c0 free child#5
21 c0 yield gc#2
21 c0 dispatch gc#2
21 c1 block main#1
21 c1 dispatch idle#3
23 c0 block gc#2
23 c0 dispatch idle#0
40 c0 wake main#1 -> c1
45 c1 dispatch main#1
49 c1 block main#1
49 c1 dispatch idle#3
115 c1 wake main#1 -> c0
120 c0 dispatch main#1
124 c0 exit main#1
126 c0 block main#1
126 c0 dispatch idle#0
";
    assert_eq!(trace, expected);
}

#[test]
fn a_waker_spins_until_the_sleeper_is_off_its_cpu() {
    let config = Config {
        cpus: 2,
        ..Config::default()
    };
    let child = Program::new("child", [notify(0)]);
    let spins = |after| {
        let spawns = [Op::Spawn(child.clone()), Op::Spawn(child.clone())];
        let main = Program::new("main", spawns.into_iter().chain([Op::Run(after), wait(0)]));
        let report = run(&config, &main, |_| FifoScheduler::new(), FifoTask::new).unwrap();
        report.wake_spins
    };
    // For 3 to 5, main is being left just when the child on CPU 1 notifies.
    assert_eq!([2, 3, 4, 5, 6].map(spins), [0, 1, 1, 1, 0]);
}

#[test]
fn a_report_adds_up() {
    let child = Program::new("child", [Op::Run(25), Op::Yield, Op::Sleep(5), Op::Run(10)]);
    let ops = [
        Op::Spawn(child.clone()),
        Op::Run(5),
        Op::Spawn(child),
        Op::Join(1),
    ];
    let main = Program::new("main", ops);
    let report = run(
        &Config::default(),
        &main,
        |_| FifoScheduler::new(),
        FifoTask::new,
    )
    .unwrap();
    let names: Vec<_> = report.tasks.iter().map(|t| t.label.to_string()).collect();
    assert_eq!(names, ["main#1", "gc#2", "child#3", "child#4"]);
    let child = &report.tasks[3];
    assert_eq!((child.submitted, child.yields, child.dispatches), (6, 1, 3));
    assert_eq!(child.turnaround(), Some(child.finished.unwrap() - 6));
    assert!(child.run_time >= 35 && child.run_time < 60, "{child:?}");
    assert!(
        child.max_wait >= 25,
        "it waits while the other child runs: {child:?}"
    );
    let picks: u64 = report.tasks.iter().map(|t| t.dispatches).sum();
    assert_eq!(report.dispatches, picks);
    assert_eq!(
        Some(report.makespan),
        report.tasks.iter().filter_map(|t| t.finished).max()
    );
}

// ---------------------------------------------------------------------------
// The model itself: schedulers that are wrong on purpose
// ---------------------------------------------------------------------------

/// What is wrong with a [`Faulty`].
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
            last: std::ptr::null(),
            picks: 0,
            empty_picks: 0,
            puts: 0,
            priorities: 0,
        }
    }
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
        let place = self.ready.iter().position(|t| Arc::ptr_eq(t, task));
        match (self.fault, place) {
            (Fault::RemovesTheAbsent, None) => Some(task.clone()),
            (Fault::KeepsTheRemoved, Some(_)) => Some(task.clone()),
            _ => self.ready.remove(place?),
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
        let next = self.ready.pop_front()?;
        self.last = Arc::as_ptr(&next);
        match self.fault {
            Fault::PicksOneThatLeft | Fault::HandsOutLeftOvers => self.stash = vec![next.clone()],
            Fault::KeepsThePicked => self.stash.push(next.clone()),
            Fault::LeaksThePicked if self.picks == 1 => std::mem::forget(next.clone()),
            _ => {}
        }
        Some(next)
    }

    fn put_prev_task(&mut self, task: Task, _preempt: bool) {
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
            _ => {}
        }
        self.ready.push_back(task);
    }

    fn task_tick(&mut self, _: &Task) -> bool {
        false
    }

    fn set_priority(&mut self, _: &Task, _: isize) -> bool {
        self.priorities += 1;
        self.fault == Fault::ChangesItsMindOnPriorities && self.priorities.is_multiple_of(2)
    }
}

fn faulty(fault: Fault, config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    run(config, main, |_| Faulty::new(fault), FifoTask::new)
}

/// A program in which everything happens, also while handles are held and not.
fn everything() -> Program {
    let yielder = Program::repeat("yielder", 20, &[Op::Run(2), Op::Yield]);
    let sleeper = Program::repeat("sleeper", 4, &[Op::Sleep(20), Op::Run(2)]);
    let dead = Program::new("dead", []);
    let mut ops = vec![Op::Spawn(dead), Op::Join(0)];
    ops.extend([
        Op::Spawn(yielder.clone()),
        Op::DropHandle(1),
        Op::Spawn(yielder),
    ]);
    ops.extend([Op::Spawn(sleeper), Op::Join(2), Op::Join(3)]);
    Program::new("main", ops)
}

fn violation_of(fault: Fault, config: &Config, main: &Program) -> Violation {
    let failure = faulty(fault, config, main).unwrap_err();
    assert!(!failure.trace.events.is_empty());
    failure.violation
}

#[test]
fn a_correct_scheduler_passes() {
    let report = faulty(Fault::Nothing, &Config::default(), &everything()).unwrap();
    assert!(
        report
            .tasks
            .iter()
            .all(|t| t.finished.is_some() || &*t.label.name == "gc")
    );
}

#[test]
fn a_dropped_task_is_lost() {
    let yielder = Program::new("yielder", [Op::Yield]);
    let other = Op::Spawn(Program::new("other", [Op::Run(5)]));
    let ops = [Op::Spawn(yielder), Op::DropHandle(0), other, Op::Sleep(50)];
    let main = Program::new("main", ops);
    let found = violation_of(Fault::DropsWhatIsPut, &Config::default(), &main);
    assert!(
        matches!(&found, Violation::Lost { task, found: 1 } if &*task.name == "yielder"),
        "{found}"
    );
}

#[test]
fn a_forgotten_wake_shows_as_idling() {
    let found = violation_of(Fault::ForgetsTheWoken, &Config::default(), &everything());
    let Violation::IdleWhileReady { cpu: 0, ready } = &found else {
        panic!("{found}");
    };
    assert_eq!(&*ready[0].name, "main");
}

#[test]
fn idling_beside_ready_tasks_is_found() {
    let fault = Fault::PicksNothingEveryThirdTime;
    let found = violation_of(fault, &Config::default(), &everything());
    assert!(matches!(found, Violation::IdleWhileReady { .. }), "{found}");
}

#[test]
fn a_duplicate_is_picked_when_not_ready() {
    let fault = Fault::DuplicatesWhatIsPut;
    let found = violation_of(fault, &Config::default(), &everything());
    assert!(
        matches!(
            found,
            Violation::NotReady {
                found: State::Blocked | State::Exited,
                ..
            }
        ),
        "{found}"
    );
}

#[test]
fn a_pick_of_a_task_that_just_left_is_not_ready() {
    let child = Program::new("child", [Op::Sleep(30)]);
    let ops = [Op::Spawn(child.clone()), Op::Spawn(child), Op::Sleep(1)];
    let fault = Fault::PicksOneThatLeft;
    let found = violation_of(fault, &Config::default(), &Program::new("main", ops));
    assert!(
        matches!(&found, Violation::NotReady { task, found: State::Blocked } if task.id.0 == 4),
        "{found}"
    );
}

#[test]
fn a_stranger_is_unknown() {
    let found = violation_of(Fault::PicksAStranger, &Config::default(), &everything());
    assert!(
        matches!(&found, Violation::Unknown { task } if &*task.name == "stranger"),
        "{found}"
    );
}

#[test]
fn a_kept_handle_of_a_dead_task_is_found() {
    let found = violation_of(Fault::KeepsThePicked, &Config::default(), &everything());
    assert!(
        matches!(&found, Violation::HandleKept { task, .. } if &*task.name == "dead"),
        "{found}"
    );
}

#[test]
fn a_handle_that_outlives_the_scheduler_is_found() {
    // The first task that is picked is gc, which does not die.
    let found = violation_of(Fault::LeaksThePicked, &Config::default(), &everything());
    assert!(
        matches!(&found, Violation::HandleKept { task, expected: 1, found: 2 } if &*task.name == "gc"),
        "{found}"
    );
}

#[test]
fn what_comes_out_after_the_end_is_left_over() {
    let child = Program::new("child", []);
    let main = Program::new("main", [Op::Spawn(child), Op::Run(1)]);
    let found = violation_of(Fault::HandsOutLeftOvers, &Config::default(), &main);
    assert!(
        matches!(&found, Violation::LeftOver { task, .. } if &*task.name == "gc"),
        "{found}"
    );
}

#[test]
fn a_yielding_task_must_not_be_picked_again() {
    let found = violation_of(Fault::PicksTheLastAgain, &Config::default(), &everything());
    assert!(matches!(found, Violation::Repicked { .. }), "{found}");
}

/// While main holds the handle of a dead task, gc yields and yields.
fn held() -> Program {
    let dead = Program::new("dead", []);
    let ops = [Op::Spawn(dead), Op::Join(0), Op::Sleep(15), Op::Run(5)];
    Program::new("main", ops)
}

#[test]
fn gc_must_not_be_picked_again_and_again() {
    let config = Config {
        repick_after_yield: true,
        ..Config::default()
    };
    let found = violation_of(Fault::PicksTheLastAgain, &config, &held());
    let Violation::GcMonopolises { streak, ready, .. } = &found else {
        panic!("{found}");
    };
    assert_eq!(
        (*streak, &*ready[0].name),
        (config.max_gc_streak + 1, "main")
    );
}

#[test]
fn a_program_that_makes_no_progress_does_not_finish() {
    let config = Config {
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        ..Config::default()
    };
    let found = violation_of(Fault::PicksTheLastAgain, &config, &held());
    assert!(
        matches!(&found, Violation::NotFinished { left, .. } if left.len() == 2),
        "{found}"
    );
}

#[test]
fn a_wait_beyond_the_bound_is_starvation() {
    let worker = |name| Program::repeat(name, 100, &[Op::Run(5), Op::Yield]);
    let main = Program::new("main", ["a", "b", "c"].map(|name| Op::Spawn(worker(name))));
    let dispatches = Config {
        repick_after_yield: true,
        max_wait: MaxWait {
            dispatches: Some(10),
            ..MaxWait::default()
        },
        ..Config::default()
    };
    let found = violation_of(Fault::PrefersTheNewest, &dispatches, &main);
    assert!(
        matches!(&found, Violation::Starved { dispatches: 11, .. }),
        "{found}"
    );

    // One that waits for another's long run is noticed while it still waits.
    let long = Op::Spawn(Program::new("long", [Op::Run(1000)]));
    let main = Program::new("main", [long, Op::Yield]);
    let time = Config {
        max_wait: MaxWait {
            time: Some(300),
            ..MaxWait::default()
        },
        ..Config::default()
    };
    let failure = faulty(Fault::Nothing, &time, &main).unwrap_err();
    assert!(
        matches!(&failure.violation, Violation::Starved { task, .. } if &*task.name == "main"),
        "{failure}"
    );
    assert!(failure.time < 400, "{failure}");
}

/// One queue for all CPUs, with no regard to who may be taken out.
struct Shared {
    ready: Rc<RefCell<VecDeque<Task>>>,
    own: VecDeque<Task>,
    /// Which tasks everybody may take.
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
        let mut ready = self.ready.borrow_mut();
        let place = ready.iter().position(|t| Arc::ptr_eq(t, task))?;
        ready.remove(place)
    }
    fn pick_next_task(&mut self) -> Option<Task> {
        self.own
            .pop_front()
            .or_else(|| self.ready.borrow_mut().pop_front())
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

fn shared(stealing: bool, shares: fn(&Task) -> bool) -> Result<Report, Box<Failure>> {
    let config = Config {
        cpus: 3,
        stealing,
        ..Config::default()
    };
    let worker = |n| Program::repeat("worker", n, &[Op::Run(3), Op::Yield]);
    let main = Program::new("main", [10, 20, 30, 40].map(|n| Op::Spawn(worker(n))));
    let ready = Rc::default();
    let made = |_| Shared {
        ready: Rc::clone(&ready),
        own: VecDeque::new(),
        shares,
    };
    run(&config, &main, made, FifoTask::new)
}

fn is_gc(task: &Task) -> bool {
    &*task.label().name == "gc"
}

#[test]
fn a_task_of_another_queue_may_not_be_picked() {
    let found = shared(false, |task| !is_gc(task)).unwrap_err().violation;
    assert!(
        matches!(found, Violation::NotQueuedHere { found: Some(_), .. }),
        "{found}"
    );
}

#[test]
fn a_stolen_task_must_be_allowed_here() {
    let found = shared(true, |_| true).unwrap_err().violation;
    assert!(
        matches!(&found, Violation::WrongCpu { task, .. } if &*task.name == "gc"),
        "{found}"
    );
}

#[test]
fn a_stolen_task_must_have_left_its_cpu() {
    let found = shared(true, |task| !is_gc(task)).unwrap_err().violation;
    assert!(matches!(found, Violation::StillOnCpu { .. }), "{found}");
}

#[test]
fn faults_of_the_program_are_told_from_faults_of_the_scheduler() {
    let config = Config::default();
    let main = Program::new("main", [wait(0)]);
    let found = violation_of(Fault::Nothing, &config, &main);
    assert!(matches!(found, Violation::Deadlock { .. }), "{found}");

    let main = Program::new("main", [Op::PreemptOff, Op::Sleep(5)]);
    let found = violation_of(Fault::Nothing, &config, &main);
    assert!(
        matches!(found, Violation::BlockedUnderGuard { .. }),
        "{found}"
    );

    let bad: [fn(&mut Config); 4] = [
        |config| config.cpus = 0,
        |config| config.cpus = 65,
        |config| config.tick_period = 0,
        |config| config.call_cost = 0,
    ];
    for spoil in bad {
        let mut config = Config::default();
        spoil(&mut config);
        let found = faulty(Fault::Nothing, &config, &main)
            .unwrap_err()
            .violation;
        assert!(matches!(found, Violation::BadConfig { .. }), "{found}");
    }
}

#[test]
fn a_failure_says_who_when_what_and_how_it_came() {
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
fn a_failing_program_shrinks_to_what_matters() {
    let mut runner = TestRunner::deterministic();
    let found = runner.run(&program(), |main| {
        let result = faulty(Fault::DuplicatesWhatIsPut, &Config::default(), &main);
        result
            .map(drop)
            .map_err(|failure| TestCaseError::fail(failure.to_string()))
    });
    let Err(TestError::Fail(_, main)) = found else {
        panic!("{found:?}");
    };
    assert!(main.ops.len() <= 1, "{main:?}");
}

#[test]
fn the_suite_names_the_rule_that_each_fault_breaks() {
    let broken = |fault| {
        let promises = Promises {
            max_wait: each_other_once,
            ..Promises::default()
        };
        let result = check(&promises, |_| Faulty::new(fault), FifoTask::new);
        result.map_or_else(|error| error.name, |_| "none")
    };
    let expected = [
        (Fault::Nothing, "none"),
        (Fault::DropsWhatIsAdded, "empty_pick_is_none"),
        (Fault::DropsWhatIsPut, "put_and_pick_conserve"),
        (Fault::ForgetsTheWoken, "put_and_pick_conserve"),
        (Fault::DuplicatesWhatIsPut, "put_and_pick_conserve"),
        (Fault::PicksTheLastAgain, "yielders_take_turns"),
        (Fault::PicksOneThatLeft, "empty_pick_is_none"),
        (
            Fault::PicksNothingEveryThirdTime,
            "every_add_is_picked_once",
        ),
        (Fault::PicksAStranger, "empty_pick_is_none"),
        (Fault::PrefersTheNewest, "yielders_take_turns"),
        (Fault::KeepsThePicked, "the_dead_are_let_go"),
        (Fault::LeaksThePicked, "drop_releases_the_queued"),
        (Fault::HandsOutLeftOvers, "empty_pick_is_none"),
        (Fault::RemovesTheAbsent, "remove_of_absent_is_none"),
        (Fault::KeepsTheRemoved, "put_and_pick_conserve"),
        (
            Fault::LosesALoneTaskInTime,
            "a_lone_task_may_be_ticked_for_ever",
        ),
        (Fault::ExpectsAPickFirst, "a_put_needs_no_pick_before"),
        (Fault::NeedsNoInit, "init_is_harmless"),
        (
            Fault::ChangesItsMindOnPriorities,
            "any_priority_is_answered",
        ),
    ];
    for (fault, rule) in expected {
        assert_eq!(broken(fault), rule, "{fault:?}");
    }
}

/// SJF as it was: the due time of a preempted task is computed anew, at each
/// preemption, from all that its burst has had. For one queue.
#[derive(Default)]
struct DueAnew {
    /// By due time, then by arrival.
    ready: BTreeMap<(u64, u64), Task>,
    arrivals: u64,
    yielder: Option<Task>,
    /// Who has the CPU, and since when it has not been charged.
    running: Option<(TaskId, u64)>,
    ticked: bool,
    /// Each task's expected burst, and what the present one has had.
    known: BTreeMap<TaskId, (u64, u64)>,
}

impl DueAnew {
    const PATIENCE: u64 = 16;

    fn due(&self, task: TaskId) -> u64 {
        let &(expected, used) = self.known.get(&task).unwrap_or(&(0, 0));
        VirtualClock::now().0 + Self::PATIENCE * expected.max(used)
    }

    fn charge(&mut self) {
        if let Some((task, since)) = &mut self.running {
            let now = VirtualClock::now().0;
            self.known.entry(*task).or_default().1 += now - *since;
            *since = now;
        }
    }

    fn learn(&mut self, task: TaskId) {
        let (expected, used) = self.known.entry(task).or_default();
        *expected -= *expected / sjf::AVERAGE_WEIGHT;
        *expected += *used / sjf::AVERAGE_WEIGHT;
        *used = 0;
    }
}

impl BaseScheduler for DueAnew {
    type SchedItem = Task;

    fn init(&mut self) {}
    fn add_task(&mut self, task: Task) {
        self.arrivals += 1;
        let key = (self.due(task.id()), self.arrivals);
        self.ready.insert(key, task);
    }
    fn remove_task(&mut self, task: &Task) -> Option<Task> {
        let aside = self.yielder.take_if(|aside| Arc::ptr_eq(aside, task));
        let key = self.ready.iter().find(|(_, t)| Arc::ptr_eq(t, task));
        let key = key.map(|(key, _)| *key);
        aside.or_else(|| self.ready.remove(&key?))
    }
    fn pick_next_task(&mut self) -> Option<Task> {
        self.charge();
        if let Some((left, _)) = self.running.take() {
            self.learn(left);
        }
        let first = self.ready.pop_first().map(|(_, task)| task);
        let next = match (first, self.yielder.take()) {
            (Some(first), Some(yielder)) => {
                self.add_task(yielder);
                first
            }
            (first, yielder) => first.or(yielder)?,
        };
        self.running = Some((next.id(), VirtualClock::now().0));
        self.ticked = false;
        Some(next)
    }
    fn put_prev_task(&mut self, task: Task, preempt: bool) {
        let ran = self.running.is_some_and(|(id, _)| id == task.id());
        if ran {
            self.charge();
            self.running = None;
        }
        if ran && !preempt {
            self.learn(task.id());
            self.yielder = Some(task);
        } else {
            self.add_task(task);
        }
    }
    fn task_tick(&mut self, current: &Task) -> bool {
        self.charge();
        let whole = std::mem::replace(&mut self.ticked, true);
        let first = self.ready.first_key_value();
        whole && first.is_some_and(|(&(due, _), _)| due < self.due(current.id()))
    }
    fn set_priority(&mut self, _: &Task, _: isize) -> bool {
        false
    }
}

/// By every rule before it is all right, that on the streaks of `gc` included.
#[test]
fn the_suite_finds_yielders_that_lock_out_a_job() {
    let promises = Promises {
        done_beside: sjf_beside,
        max_cpus: 1,
        on_time: VirtualClock::set,
        ..Promises::default()
    };
    let found = check(&promises, |_| DueAnew::default(), FifoTask::new).unwrap_err();
    assert_eq!(found.name, "a_job_gets_done_beside_yielders");
}

#[test]
fn the_suite_finds_queues_that_are_not_independent() {
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
// PBG and the registry's, held against the suite and against random programs; all
// policies of the list are in `policies.rs`
// ---------------------------------------------------------------------------

/// What a check must have gone through to count.
fn assert_thorough(coverage: &Coverage, tasks: u64, cpus: usize) {
    assert_eq!(coverage.rules, 27);
    let enough = coverage.tasks > tasks && coverage.yields > 3 * tasks;
    assert!(enough, "{coverage:?}");
    assert_eq!(coverage.wake_spins > 0, cpus > 1, "{coverage:?}");
}

/// The average turnaround, in ticks, of a long task with bursts of 20 ticks and four
/// that yield all the time, as in `realtime`; and of a long task with bursts of two
/// ticks beside two with bursts of two fifths of one, as in `occupy`.
fn turnarounds<S, W>(made: impl Fn(usize) -> S, wrap: impl Fn(ModelTask) -> W) -> (u64, u64)
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    const TICK: u64 = 1_000;
    let config = Config {
        tick_period: TICK,
        on_time: VirtualClock::set,
        ..Config::default()
    };
    let average = |tasks: Vec<Program>, of: &[&str]| {
        let mut ops = vec![Op::PreemptOff];
        ops.extend(tasks.iter().cloned().map(Op::Spawn));
        ops.extend((0..tasks.len()).map(Op::DropHandle));
        ops.push(Op::PreemptOn);
        let report = run(&config, &Program::new("main", ops), &made, &wrap).unwrap();
        let ended = |name: &&str| report.task(name).unwrap().turnaround().unwrap();
        of.iter().map(ended).sum::<u64>() / of.len() as u64 / TICK
    };
    let bursts = |name, n, units| Program::repeat(name, n, &[Op::Run(units), Op::Yield]);
    let names = ["long", "short1", "short2", "short3", "short4"];
    let realtime = vec![
        bursts("long", 8, 20 * TICK),
        bursts("short1", 500, 6),
        bursts("short2", 1_000, 3),
        bursts("short3", 2_000, 2),
        bursts("short4", 5_000, 1),
    ];
    let occupy = vec![
        bursts("long", 80, 2 * TICK),
        bursts("short1", 4_000, 2 * TICK / 5),
        bursts("short2", 4_000, 2 * TICK / 5),
    ];
    (average(realtime, &names), average(occupy, &["long"]))
}

#[test]
fn short_bursts_overtake_under_sjf_and_a_long_task_gets_on() {
    let sjf = turnarounds(|_| SjfScheduler::<_, VirtualClock>::new(), SjfTask::new);
    let due_anew = turnarounds(|_| DueAnew::default(), FifoTask::new);
    let cfs = turnarounds(|_| CfsScheduler::<_, VirtualClock>::new(), CfsTask::new);
    let rr = turnarounds(|_| RrScheduler::<_, 5>::new(), RrTask::new);
    let all = format!("{sjf:?} {due_anew:?} {cfs:?} {rr:?}");
    assert!(
        sjf.0 <= due_anew.0 && sjf.0 < cfs.0 && cfs.0 < rr.0,
        "{all}"
    );
    assert!(3 * sjf.1 < due_anew.1, "{all}");
}

type PbgUnderTest = PbgScheduler<ModelTask, VirtualClock, PerThread>;

/// One control per machine, whose first CPU makes it.
fn pbg_machine(cpu: usize) -> PbgUnderTest {
    if cpu == 0 {
        PerThread::renew();
    }
    PbgUnderTest::new()
}

/// Takes a step of PBG when `gc`, its first task, is in the queue: as `main` would, first thing.
fn with_first(
    cpu: usize,
    first: fn(&mut PbgUnderTest, &Arc<PbgTask<ModelTask>>),
) -> impl BaseScheduler<SchedItem = Arc<PbgTask<ModelTask>>> {
    let mut first = Some(first);
    OnAdd {
        scheduler: pbg_machine(cpu),
        on_add: move |scheduler: &mut _, task: &_| {
            if let Some(first) = first.take() {
                first(scheduler, task);
            }
        },
    }
}

/// Measures a program by hand, in which `main` has four children, the last of
/// them the shortest, and each of these has two; then follows that plan.
fn plan_by_hand(scheduler: &mut PbgUnderTest, gc: &Arc<PbgTask<ModelTask>>) {
    let task = |id, name| Arc::new(PbgTask::new(ModelTask::new(id, name)));
    call_pbg(MEASURE_START);
    (1..=4).for_each(|id| scheduler.add_task(task(id, "child")));
    // Each pick says that the task before has left for good.
    scheduler.pick_next_task();
    for id in 1..=4 {
        scheduler.pick_next_task();
        scheduler.add_task(task(10 * id, "grandchild"));
        scheduler.add_task(task(10 * id + 1, "grandchild"));
        VirtualClock::advance(100 - 20 * id as u64);
    }
    while scheduler.pick_next_task().is_some() {
        VirtualClock::advance(10);
    }
    call_pbg(MEASURE_END);
    let plan = PerThread::control().plan().unwrap().unwrap();
    assert_eq!(plan.tasks().len(), 12);
    scheduler.put_prev_task(gc.clone(), false);
    call_pbg(START_PBG);
}

#[test]
fn pbg_conforms_while_idle() {
    let promises = Promises {
        max_wait: a_slice_each,
        done_beside: rr_beside,
        on_time: VirtualClock::set,
        ..Promises::default()
    };
    let coverage = check(&promises, pbg_machine, PbgTask::new).unwrap();
    assert_thorough(&coverage, 2_000, 4);
}

#[test]
fn pbg_conforms_while_measuring() {
    let promises = Promises {
        max_wait: a_slice_each,
        done_beside: rr_beside,
        on_time: VirtualClock::set,
        max_cpus: 1,
        // Each machine leaks a record.
        random_programs: 60,
        ..Promises::default()
    };
    let coverage = check(
        &promises,
        |cpu| with_first(cpu, |_, _| call_pbg(MEASURE_START)),
        PbgTask::new,
    )
    .unwrap();
    assert_thorough(&coverage, 500, 1);
}

#[test]
fn pbg_conforms_while_following_a_plan() {
    let promises = Promises {
        done_beside: planned_beside::<12>,
        on_time: VirtualClock::set,
        max_cpus: 1,
        repick_after_yield: true,
        random_programs: 60,
        ..Promises::default()
    };
    let coverage = check(&promises, |cpu| with_first(cpu, plan_by_hand), PbgTask::new).unwrap();
    assert_thorough(&coverage, 500, 1);
}

/// `first` measured, then `then` under the plan that this makes.
fn measured_then_replayed(first: &Program, then: &Program) -> Program {
    let mut ops = vec![Op::Call(MEASURE_START)];
    ops.extend(first.ops.iter().cloned());
    ops.extend([Op::Call(MEASURE_END), Op::Call(START_PBG)]);
    ops.extend(then.ops.iter().cloned());
    Program::new("main", ops)
}

fn pbg_config(config: Config) -> Config {
    Config {
        cpus: 1,
        repick_after_yield: true,
        on_time: VirtualClock::set,
        on_call: call_pbg,
        ..config
    }
}

fn run_pbg(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    run(config, main, pbg_machine, PbgTask::new)
}

#[test]
fn pbg_replays_shortest_first_and_switches_less() {
    let worker = |n, run| Program::repeat("worker", n, &[Op::Run(run), Op::Yield]);
    let workers = [
        worker(100, 30),
        worker(20, 10),
        worker(60, 10),
        worker(40, 10),
    ];
    let count = workers.len();
    let spawns = workers.into_iter().map(Op::Spawn);
    let phase = |offset: usize| {
        spawns
            .clone()
            .chain((0..count).map(move |n| Op::Join(offset + n)))
    };
    let first = Program::new("main", phase(0));
    let both = measured_then_replayed(&first, &Program::new("main", phase(count)));

    let config = pbg_config(Config::default());
    let one = run_pbg(
        &config,
        &measured_then_replayed(&first, &Program::new("main", [])),
    )
    .unwrap();
    let two = run_pbg(&config, &both).unwrap();
    let replayed: Vec<_> = two.tasks.iter().skip(2 + count).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&n| replayed[n].finished);
    assert_eq!(order, [1, 3, 2, 0], "shortest first");
    let replay_switches = two.switches - one.switches;
    assert!(
        2 * replay_switches < one.switches,
        "{replay_switches} of {}",
        one.switches
    );
    let status = PerThread::control().status().unwrap();
    assert_eq!(
        (status.mode, status.matched, status.demoted),
        (Mode::Replaying, 4, 0)
    );
}

#[test]
fn pbg_replay_gives_unplanned_tasks_the_turn_it_promises() {
    let long = Program::repeat("long", 500, &[Op::Run(9), Op::Yield]);
    let visitor = Program::repeat("visitor", 30, &[Op::Run(2), Op::Yield]);
    let first = Program::new("main", [Op::Spawn(long.clone()), Op::Join(0)]);
    let visitors = [(); 3].map(|()| Op::Spawn(visitor.clone()));
    let then = [Op::Spawn(long), Op::DropHandle(0)]
        .into_iter()
        .chain(visitors);
    let main = measured_then_replayed(&first, &Program::new("main", then));
    let config = pbg_config(Config::default());
    let report = run_pbg(&config, &main).unwrap();

    // Four wait at most: main or gc, and the visitors. The tick may be a burst late.
    let bound = 5 * (u64::from(PLAN_TICKS) + 1) * config.tick_period + 50;
    let waits = |name| {
        let tasks = report.tasks.iter().filter(move |t| &*t.label.name == name);
        tasks.map(|t| t.max_wait).max().unwrap()
    };
    for name in ["visitor", "gc"] {
        assert!(
            (1..=bound).contains(&waits(name)),
            "{name} waited {} of {bound}",
            waits(name)
        );
    }
    let status = PerThread::control().status().unwrap();
    assert_eq!((status.matched, status.unplanned), (1, 3));
    assert!(status.turns > 40, "{status:?}");
}

#[test]
fn pbg_replay_stops_favouring_a_task_far_beyond_its_plan() {
    let task = |name, n| Op::Spawn(Program::repeat(name, n, &[Op::Run(5), Op::Yield]));
    let (short, middle, long) = (task("short", 3), task("middle", 20), task("short", 500));
    let first = Program::new("main", [short, middle.clone(), Op::Join(0), Op::Join(1)]);
    let main = measured_then_replayed(&first, &Program::new("main", [long, middle]));
    let report = run_pbg(&pbg_config(Config::default()), &main).unwrap();

    let [short, middle] = &report.tasks[4..] else {
        panic!("{:?}", report.tasks);
    };
    assert!(short.run_time > 2_500 && middle.run_time > 100);
    // Some ticks until the short one is found out, and then it is its turn.
    assert!(middle.turnaround().unwrap() < 400, "{middle:?}");
    assert_eq!(PerThread::control().status().unwrap().demoted, 1);
}

/// The tick of the scenes that follow; a unit of time is a microsecond then.
const TICK_MICROS: u64 = 10_000;

/// What becomes of a program of `tasks`: spawns them all, waits for all, keeps no handle.
fn all_at_once(tasks: &[Vec<Op>], handles: usize) -> Program {
    let done = Op::Notify {
        queue: 0,
        resched: false,
    };
    let mut ops = Vec::new();
    for (place, task) in tasks.iter().enumerate() {
        let task = task.iter().cloned().chain([done.clone()]);
        ops.push(Op::Spawn(Program::new("task", task)));
        ops.push(Op::DropHandle(handles + place));
    }
    let wait = Op::Wait {
        queue: 0,
        timeout: None,
    };
    ops.extend(tasks.iter().map(|_| wait.clone()));
    Program::new("main", ops)
}

/// The turnarounds of `then` under the plan of `first`, and under round robin.
fn planned_and_unplanned(first: &[Vec<Op>], then: &[Vec<Op>]) -> [Vec<u64>; 2] {
    let config = pbg_config(Config {
        tick_period: TICK_MICROS,
        ..Config::default()
    });
    let turnarounds = |report: Report| {
        let turnarounds = named(&report, "task").map(|task| task.turnaround().unwrap());
        turnarounds.take(then.len()).collect()
    };
    let unplanned = turnarounds(run_pbg(&config, &all_at_once(then, 0)).unwrap());
    let (first, then) = (all_at_once(first, 0), all_at_once(then, first.len()));
    let planned = run_pbg(&config, &measured_then_replayed(&first, &then)).unwrap();
    [turnarounds(planned), unplanned]
}

/// Rule 10, on the keeping side: a task that the plan does not know fills the time in
/// which the planned ones sleep, and they lose nothing by it.
#[test]
fn pbg_replay_keeps_its_plan_beside_an_unknown_task_that_fills_the_gaps() {
    let server = |i: u64| {
        let answer = [Op::Run(2000 + 500 * i), Op::Sleep(15_000)];
        Program::repeat("server", 150, &answer).ops.to_vec()
    };
    let servers: Vec<_> = (0..4).map(server).collect();
    let with_filler = [&servers[..], &[vec![Op::Run(2_000_000)]]].concat();
    let [planned, unplanned] = planned_and_unplanned(&servers, &with_filler);
    let status = PerThread::control().status().unwrap();
    assert_eq!((status.unplanned, status.dropped), (1, false));
    // 3,479 and 4,420 ms on average; were the plan dropped, 4,327.
    let [planned, unplanned]: [u64; 2] = [planned, unplanned].map(|all| all.iter().sum());
    assert!(planned * 100 <= unplanned * 80, "{planned}, {unplanned}");
}

/// And on the dropping side: all tasks take three times as long as recorded.
#[test]
fn pbg_replay_of_a_program_that_has_trebled_is_within_a_tenth_of_round_robin() {
    let jobs = |times: u64| -> Vec<_> {
        let length = |i: u64| times * (20_000 + 5_000 * i * i);
        (0..10).map(|i| vec![Op::Run(length(i))]).collect()
    };
    let [planned, unplanned] = planned_and_unplanned(&jobs(1), &jobs(3));
    let status = PerThread::control().status().unwrap();
    assert_eq!((status.demoted, status.dropped), (7, true));
    // 2,484 and 2,552 ms on average; were it kept, 2,992.
    let [planned, unplanned]: [u64; 2] = [planned, unplanned].map(|all| all.iter().sum());
    assert!(planned * 10 <= unplanned * 11, "{planned}, {unplanned}");
}

/// A program whose tasks wait for one another by polling, in milliseconds: workers, and
/// pollers that sleep for a tick until theirs is done, and may have work of their own then.
/// `n` chooses it; the wait queues are those from `first_queue` on.
fn polling(n: u64, first_queue: u32) -> Vec<Vec<Op>> {
    let rng = &mut Rng(n);
    let mut tasks = Vec::new();
    // From shorter than a tick to longer than a slice of round robin.
    let longest = [8, 40, 300, 48][n as usize % 4];
    // In every fourth program, one for which many wait.
    let gate = (n % 4 == 3).then(|| first_queue + rng.below(3) as u32);
    for queue in first_queue..first_queue + 2 + rng.below(10) as u32 {
        let resched = false;
        let work = Op::Run((1 + rng.below(longest)) * 1000);
        tasks.push(vec![work, Op::Notify { queue, resched }]);
        let pollers = match gate {
            Some(gate) => 24 * u64::from(queue == gate),
            None => [0, 0, 1, 1, 2, 8][rng.below(6) as usize],
        };
        for _ in 0..pollers {
            let units = 1000;
            let mut poller = vec![Op::Run(5), Op::SleepUntil { queue, units }];
            if rng.below(3) == 0 {
                poller.push(Op::Run((1 + rng.below(longest)) * 1000));
            }
            let at = rng.below(tasks.len() as u64 + 1) as usize;
            tasks.insert(at, poller);
        }
    }
    tasks
}

/// SplitMix64, as in `units`.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// The turnarounds of polling program `n` measured and replayed, each added up, and what the
/// status says.
fn measured_and_replayed(n: u64, start: u32) -> ([u64; 2], Status) {
    let (first, again) = (polling(n, 1), polling(n, 101));
    let config = pbg_config(Config {
        tick_period: TICK_MICROS,
        ..Config::default()
    });
    let mut ops = vec![Op::Call(MEASURE_START)];
    ops.extend(all_at_once(&first, 0).ops.iter().cloned());
    ops.extend([Op::Call(MEASURE_END), Op::Call(start)]);
    ops.extend(all_at_once(&again, first.len()).ops.iter().cloned());
    let report = run_pbg(&config, &Program::new("main", ops)).unwrap();
    let named = report.tasks.iter().filter(|t| &*t.label.name == "task");
    let turnarounds: Vec<_> = named.map(|task| task.turnaround().unwrap()).collect();
    let [measured, replayed] = [0, 1].map(|i| {
        let phase = &turnarounds[i * first.len()..][..first.len()];
        phase.iter().sum()
    });
    ([measured, replayed], PerThread::control().status().unwrap())
}

/// Rule 11 over polling programs: whatever is slower than it was measured by more than a
/// twentieth is told, and to give the plan up costs little. (On average over the 300 the replay
/// takes 0.673 times as long as what was measured. 11 are slower, by up to 1.34. Two are given
/// up, which take 1.05 and 1.34 in place of 0.98 and 1.23.)
#[test]
fn pbg_replay_that_is_slower_than_measured_is_told_and_given_up() {
    let (mut slower, mut dropped) = (0, 0);
    let [mut sum, mut sum_if_kept] = [0.0, 0.0];
    for n in 0..300 {
        let ([measured, replayed], status) = measured_and_replayed(n, START_PBG);
        let is_slower = replayed * 20 > measured * 21;
        assert!(status.behind || !is_slower, "program {n}: {status}");
        let ([_, kept], if_kept) = measured_and_replayed(n, START_PBG_AND_KEEP);
        assert!(!if_kept.dropped, "program {n}: {if_kept}");
        let [replayed, kept] = [replayed, kept].map(|sum| sum as f64 / measured as f64);
        assert!(replayed <= 1.1 * kept, "program {n}: {replayed}, {kept}");
        slower += u32::from(is_slower);
        dropped += u32::from(status.dropped);
        sum += replayed;
        sum_if_kept += kept;
    }
    assert!((1..=20).contains(&slower), "{slower}");
    assert!((1..=10).contains(&dropped), "{dropped}");
    assert!(sum <= 1.001 * sum_if_kept, "{sum}, {sum_if_kept}");
}

/// How long the jobs of the app `batch` take, in milliseconds, which of them wait, and
/// when they arrive.
#[rustfmt::skip]
const BATCH: [(u64, bool, u64); 32] = [
    (11, false, 0), (83, true, 0), (647, false, 0), (33, false, 200),
    (252, false, 0), (13, true, 0), (98, false, 0), (5, false, 400),
    (38, false, 0), (285, true, 0), (15, false, 0), (115, false, 600),
    (6, false, 0), (43, true, 0), (338, false, 0), (17, false, 800),
    (133, false, 0), (7, true, 0), (53, false, 0), (405, false, 1000),
    (20, false, 0), (152, true, 0), (8, false, 0), (61, false, 1200),
    (469, false, 0), (23, true, 0), (181, false, 0), (9, false, 1400),
    (71, false, 0), (550, true, 0), (29, false, 0), (215, false, 1600),
];

/// What those jobs of `BATCH` are that wait.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// They wait as often as is said, for 20 ms each time.
    Jobs,
    /// Every second is a server instead: 200 answers of 1 ms, 10 ms apart.
    JobsAndServers,
}

/// A program of these jobs, of which those that wait do so `waits` times.
/// `main` spawns each when it is due, and waits for all.
fn batch(waiting: Waiting, waits: u64, handles: usize) -> Program {
    let mut due: Vec<_> = BATCH.iter().collect();
    due.sort_by_key(|job| job.2); // stable
    let mut now = 0;
    let mut ops = Vec::new();
    let mut waiters = 0;
    for (place, &&(run_ms, does_wait, due_ms)) in due.iter().enumerate() {
        if due_ms > now {
            ops.push(Op::Sleep((due_ms - now) * 1000));
            now = due_ms;
        }
        waiters += usize::from(does_wait);
        let (waits, sleep, run) = match waiting {
            _ if !does_wait => (0, 0, run_ms * 1000),
            Waiting::JobsAndServers if waiters % 2 == 0 => (199, 10_000, 1000),
            _ => (waits, 20_000, run_ms * 1000 / (waits + 1)),
        };
        let mut job = vec![Op::Run(run)];
        for _ in 0..waits {
            job.extend([Op::Sleep(sleep), Op::Run(run)]);
        }
        job.push(Op::Notify {
            queue: 0,
            resched: false,
        });
        ops.push(Op::Spawn(Program::new("task", job)));
        ops.push(Op::DropHandle(handles + place));
    }
    let wait = Op::Wait {
        queue: 0,
        timeout: None,
    };
    ops.extend(BATCH.iter().map(|_| wait.clone()));
    Program::new("main", ops)
}

/// The average turnaround of the last 32 tasks, in microseconds.
fn average(report: &Report) -> u64 {
    let turnarounds = named(report, "task").map(|task| task.turnaround().unwrap());
    turnarounds.take(BATCH.len()).sum::<u64>() / BATCH.len() as u64
}

/// Whether a task is more of a job or of a server changes little by little: a wait more
/// for each of eight jobs, or of four beside four servers, changes the average turnaround
/// by a fiftieth at most (it is 1.14 and 0.48 %).
#[test]
fn pbg_replay_has_no_cliff_in_the_number_of_waits() {
    let config = pbg_config(Config {
        tick_period: TICK_MICROS,
        ..Config::default()
    });
    for waiting in [Waiting::Jobs, Waiting::JobsAndServers] {
        let mut last = None;
        for waits in 0..=64 {
            let first = batch(waiting, waits, 0);
            let both = measured_then_replayed(&first, &batch(waiting, waits, BATCH.len()));
            let planned = average(&run_pbg(&config, &both).unwrap());
            let status = PerThread::control().status().unwrap();
            assert!(
                !status.behind && !status.dropped,
                "{waiting:?}, {waits}: {status}"
            );
            let made = |_| SjfScheduler::<_, VirtualClock>::new();
            let sjf = average(&run(&config, &first, made, SjfTask::new).unwrap());
            let at = format!("{waiting:?}, {waits} waits");
            assert!(planned < sjf, "{at}: {planned}, SJF {sjf}");
            let before = last.replace(planned).unwrap_or(planned);
            let step = planned.abs_diff(before);
            assert!(50 * step <= before, "{at}: {planned} after {before}");
        }
    }
}

proptest! {
    #![proptest_config(proptest_config(150))]

    #[test]
    fn stock_fifo_runs_any_program(config in machine(), main in program()) {
        let config = bounded(config, &main, each_other_once);
        let made = |_| Stock(axsched_upstream::FifoScheduler::new());
        passes(run(&config, &main, made, axsched_upstream::FifoTask::new))?;
    }

    #[test]
    fn stock_rr_runs_any_program(config in machine(), main in program()) {
        let config = bounded(config, &main, a_slice_each);
        let made = |_| Stock(axsched_upstream::RRScheduler::<_, 5>::new());
        passes(run(&config, &main, made, axsched_upstream::RRTask::new))?;
    }

    #[test]
    fn fifo_and_stock_fifo_are_the_same(config in machine(), main in program()) {
        let ours = run(&config, &main, |_| FifoScheduler::new(), FifoTask::new);
        let made = |_| Stock(axsched_upstream::FifoScheduler::new());
        let theirs = run(&config, &main, made, axsched_upstream::FifoTask::new);
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn rr_and_stock_rr_are_the_same(config in machine(), main in program()) {
        // A waker that asks for rescheduling is where stock mixes two things up.
        let config = Config { wake_resched: false, ..config };
        let ours = run(&config, &main, |_| RrScheduler::<_, 5>::new(), RrTask::new);
        let made = |_| Stock(axsched_upstream::RRScheduler::<_, 5>::new());
        let theirs = run(&config, &main, made, axsched_upstream::RRTask::new);
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn pbg_runs_any_program(config in machine(), main in program()) {
        let config = Config { on_time: VirtualClock::set, ..config };
        let config = bounded(config, &main, a_slice_each);
        passes(run_pbg(&config, &main))?;
    }

    #[test]
    fn pbg_measures_and_replays_any_program(config in machine(), main in program()) {
        let main = measured_then_replayed(&main, &main);
        passes(run_pbg(&pbg_config(config), &main))?;
    }

    #[test]
    fn pbg_survives_the_plan_of_another_program(
        config in machine(),
        first in program(),
        then in program(),
    ) {
        let main = measured_then_replayed(&first, &then);
        passes(run_pbg(&pbg_config(config), &main))?;
    }
}
