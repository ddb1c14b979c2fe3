//! Random programs under random agents, on the machine of the model. The model finds a task that is
//! lost, that runs twice, or that is still on another CPU.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use delegated::{
    Agent, AgentPolicy, Commit, DelegatedTask, Enclave, End, Kind, Kinds, MAX_DECISIONS, MAX_TASKS,
    Message, Refusal, Refused, Settings, State, Stopped, TableSource, TaskId, ThreadTable, decide,
    simulate,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sched_core::clock::VirtualClock;
use sched_model::model::{
    self, Config, CpuMask, Failure, ModelTask, Op, Program, Report, TaskReport,
};
use sched_smp::ThreadSmpStatePinned;

const TICK: u64 = 1000;

/// The ways in which an agent behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    /// It runs tasks in the order in which they become ready.
    Fifo,
    /// The same, by plans.
    Plans,
    /// It decides by groups: all or none.
    Groups,
    /// It fills all CPUs with decisions about all tasks.
    Floods,
    /// It reads messages, and decides nothing.
    Silent,
    /// It never reads a message.
    Blind,
    /// It never runs the task that came first.
    Starves,
    /// It commits any task to any CPU, dead, foreign and blocked ones as well.
    Random,
    /// It ends at once.
    Ends,
    /// Its task ends at once, and the [`Agent`] is not dropped.
    Dies,
    /// It computes without end.
    Hangs,
    /// It sleeps between its decisions.
    Sleeps,
    /// It computes for ticks between its decisions and its wait.
    Slow,
    /// The policy decides on the fast path.
    Fast,
    /// The same, by a policy that also chooses tasks of other enclaves, dead ones, and none.
    FastLies,
    /// It serves all tasks but the first, and then asks for what it may not get.
    Asks,
}
use Behaviour::*;

const ALL: [Behaviour; 14] = [
    Fifo, Floods, Plans, Groups, Silent, Blind, Starves, Random, Ends, Hangs, Sleeps, Slow, Fast,
    FastLies,
];

/// The agents that serve all tasks.
const SERVE: [Behaviour; 9] = [
    Fifo, Floods, Plans, Groups, Random, Sleeps, Slow, Fast, FastLies,
];

#[derive(Default)]
struct Queue(VecDeque<TaskId>);

impl AgentPolicy for Queue {
    fn told(&mut self, message: Message) {
        match message.kind() {
            Kind::REDISCOVER => self.0.clear(),
            kind if kind.is_ready() => self.0.push_back(message.task()),
            _ => {}
        }
    }
    fn choose(&mut self, _: usize) -> Option<TaskId> {
        self.0.pop_front()
    }
}

/// Chooses a task of which nothing is known before each that is ready.
#[derive(Default)]
struct Liar {
    queue: Queue,
    choices: u32,
}

impl Liar {
    /// Returns one of 16 identities.
    fn lie(n: u32) -> TaskId {
        let (index, generation) = (n % 4, n / 4 % 4);
        TaskId::from_bits(generation << 16 | index << 5)
    }
}

impl AgentPolicy for Liar {
    fn told(&mut self, message: Message) {
        self.queue.told(message);
    }
    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        self.choices += 1;
        match self.choices % 2 {
            0 => Some(Self::lie(self.choices / 2)),
            _ => self.queue.choose(cpu),
        }
    }
}

/// An enclave under test.
struct Subject<M: TableSource> {
    behaviour: Behaviour,
    enclave: Enclave<M>,
    agent: Option<Agent<M>>,
    queue: Queue,
    first: Option<TaskId>,
    seen: Vec<TaskId>,
    /// The sequence number of the last message about each task.
    seqs: HashMap<TaskId, u32>,
    rng: u64,
}

/// The enclaves of a run, on any kind of machine.
trait Subjects {
    /// Does what the current task of the model asks for.
    fn call(&mut self, what: u32);
    /// Returns the reason why the first enclave has ended.
    fn ended_by(&self) -> Option<End>;
}

thread_local! {
    static SUBJECTS: RefCell<Option<Box<dyn Subjects>>> = const { RefCell::new(None) };
    static SETUP: RefCell<Setup> = const { RefCell::new(Setup::DEFAULT) };
}

/// The enclaves of a run.
#[derive(Clone, Debug)]
struct Setup {
    cpus: usize,
    /// A preempted task has to stay on its CPU.
    stays: bool,
    /// The CPUs and the agent of each.
    enclaves: Vec<(u64, Behaviour)>,
    ring: usize,
    limit: Option<u64>,
    wakes: Kinds,
    /// Time passes between the put and the pick of a yield.
    has_gaps: bool,
    seed: u64,
}

impl Setup {
    const DEFAULT: Self = Self {
        cpus: 1,
        stays: false,
        enclaves: Vec::new(),
        ring: 256,
        limit: Some(10 * TICK),
        wakes: Kinds::NONE,
        has_gaps: true,
        seed: 1,
    };

    /// Returns the time between the put and the pick of a yield: mostly none, and sometimes enough for a
    /// few calls of another CPU.
    fn pick_delay(&self, n: u64) -> u64 {
        let random = (n ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        match self.has_gaps && self.cpus > 1 {
            true => (random % 16).saturating_sub(8) * (random >> 8 & 7),
            false => 0,
        }
    }
}

// The calls of a program. The lowest digit is the enclave.
const BEGIN: u32 = 0;
const DELEGATE: u32 = 10;
const ATTACH: u32 = 20;
const REPLACE: u32 = 30;
const STEP: u32 = 40;
const END: u32 = 50;
const DEPART: u32 = 60;
const DETACH: u32 = 70;
const ASK: u32 = 80;
const ASK_AGAIN: u32 = 90;
const LOOK: u32 = 100;
const JOIN: u32 = 110;

fn current<M: TableSource>() -> (usize, &'static DelegatedTask<ModelTask, M>) {
    let (cpu, task) = model::here().unwrap();
    // SAFETY: the current task of the model is of this type, and alive while it calls.
    (cpu, unsafe { &*task.cast() })
}

fn call(what: u32) {
    SUBJECTS.with_borrow_mut(|subjects| subjects.as_mut().unwrap().call(what));
}

impl<M: TableSource> Subjects for Vec<Subject<M>> {
    fn call(&mut self, what: u32) {
        let number = (what % 10) as usize;
        let (cpu, task) = current::<M>();
        if SETUP.with_borrow(|setup| setup.cpus > 1) {
            assert!(!M::smp_state().is_idle(cpu), "CPU {cpu} runs a task");
        }
        match what / 10 * 10 {
            BEGIN => begin(self),
            DELEGATE => drop(self[number].enclave.delegate(task)),
            ATTACH => self[number].take(|enclave| enclave.attach(task, cpu).ok()),
            REPLACE => self[number].take(|enclave| enclave.replace(task, cpu).ok()),
            STEP => self[number].step(),
            END => {
                self[number].enclave.end();
                self[number].agent = None;
            }
            DEPART => Enclave::depart(task),
            DETACH => self[number].agent = None,
            ASK => ask(self),
            ASK_AGAIN => ask_again(self),
            LOOK => self[1].look(),
            JOIN => assert_eq!(self[number].enclave.delegate(task).err(), None),
            _ => unreachable!(),
        }
    }

    fn ended_by(&self) -> Option<End> {
        self[0].enclave.report().map(|report| report.end)
    }
}

fn begin<M: TableSource>(subjects: &mut Vec<Subject<M>>) {
    let setup = SETUP.with_borrow(Clone::clone);
    for &(cpus, behaviour) in &setup.enclaves {
        let settings = Settings {
            ring: setup.ring,
            limit: setup.limit,
            wakes: setup.wakes,
            ..Settings::new(TICK)
        };
        let enclave = Enclave::new(cpus, settings).unwrap();
        match behaviour {
            Fast => drop(enclave.set_fast_path(Some(Box::new(Queue::default())))),
            FastLies => drop(enclave.set_fast_path(Some(Box::new(Liar::default())))),
            _ => {}
        }
        subjects.push(Subject {
            behaviour,
            enclave,
            agent: None,
            queue: Queue::default(),
            first: None,
            seen: Vec::new(),
            seqs: HashMap::new(),
            rng: setup.seed | 1,
        });
    }
}

impl<M: TableSource> Subject<M> {
    /// Takes an agent that was attached.
    fn take(&mut self, attach: impl FnOnce(Enclave<M>) -> Option<Agent<M>>) {
        if let Some(agent) = attach(self.enclave) {
            self.agent = Some(agent);
            self.queue.0.clear();
            self.seqs.clear();
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        self.rng % below
    }

    /// Notes a message. Those of one task come in the order of their sequence numbers.
    fn note(&mut self, message: Message) {
        self.queue.told(message);
        if message.kind() == Kind::REDISCOVER {
            return;
        }
        self.first.get_or_insert(message.task());
        self.seen.push(message.task());
        let may_repeat = [Kind::TICK, Kind::FOUND].contains(&message.kind());
        if let Some(before) = self.seqs.insert(message.task(), message.seq()) {
            let least = before.wrapping_add(u32::from(!may_repeat));
            let is_later = message.seq().wrapping_sub(least) as i32 >= 0;
            assert!(is_later, "{message:?} after number {before}");
        }
    }

    /// Asserts that the task of which the agent was told has not run.
    fn look(&self) {
        let agent = self.agent.as_ref().unwrap();
        assert_eq!(self.seen.len(), 1, "{:?}", self.seen);
        let is_ready = agent.status(self.seen[0]).unwrap().is_ready();
        assert!(is_ready, "it has run");
    }

    /// Does one round of the agent's loop, without the wait.
    fn step(&mut self) {
        if self.behaviour == Blind {
            return;
        }
        let Some(mut agent) = self.agent.take() else {
            return;
        };
        while let Some(message) = agent.read() {
            self.note(message);
        }
        let cpus: Vec<_> = (0..64).filter(|&cpu| agent.is_free(cpu)).collect();
        match self.behaviour {
            Silent | Blind | Ends | Dies | Hangs | Fast | FastLies => {}
            Fifo | Sleeps | Slow => decide(&agent, &mut self.queue),
            Starves | Asks => {
                self.queue.0.retain(|task| Some(*task) != self.first);
                decide(&agent, &mut self.queue);
            }
            Plans => {
                for cpu in cpus {
                    let tasks: Vec<_> = (0..3).filter_map(|_| self.queue.choose(cpu)).collect();
                    let added = agent.plan(cpu, &tasks);
                    let has_stopped = agent.check().is_err();
                    assert!(has_stopped || added == tasks.len(), "the ring was empty");
                }
            }
            Floods => {
                self.seen.truncate(20);
                for cpu in (0..64).filter(|cpu| agent.cpus() >> cpu & 1 != 0) {
                    for _ in 0..4 {
                        agent.plan(cpu, &self.seen);
                    }
                    if let Some(task) = self.queue.choose(cpu)
                        && agent.commit(Commit::new(task, cpu)).is_err()
                    {
                        self.queue.0.push_front(task);
                    }
                }
            }
            Groups => {
                let tasks: Vec<_> = cpus
                    .iter()
                    .map_while(|&cpu| self.queue.choose(cpu))
                    .collect();
                let group = tasks.iter().zip(&cpus);
                let group: Vec<_> = group.map(|(&task, &cpu)| Commit::new(task, cpu)).collect();
                if agent.commit_all(&group).is_err() {
                    self.queue.0.extend(tasks);
                    decide(&agent, &mut self.queue);
                }
            }
            Random => {
                for _ in 0..4 {
                    let task = match self.random(4) {
                        0 => TaskId::from_bits(self.random(1 << 32) as u32),
                        _ if self.seen.is_empty() => continue,
                        _ => {
                            let at = self.random(self.seen.len() as u64);
                            self.seen[at as usize]
                        }
                    };
                    let commit = Commit {
                        unless_told: self.random(2) == 0,
                        preempts: self.random(2) == 0,
                        ..Commit::new(task, self.random(9) as usize)
                    };
                    match self.random(8) {
                        0 => drop(agent.run_next(task)),
                        1 => drop(agent.plan(commit.cpu, &[task, task])),
                        2 => {
                            if let Ok(ticket) = agent.commit(commit) {
                                agent.withdraw(ticket);
                            }
                        }
                        _ => drop(agent.commit(commit)),
                    }
                }
                // It serves at last, or the watchdog would end it in each run.
                decide(&agent, &mut self.queue);
            }
        }
        self.agent = Some(agent);
    }
}

/// Returns the program of an agent.
fn agent(number: u32, behaviour: Behaviour, cpu: usize, steps: u64) -> Program {
    let attach = [Op::Migrate(CpuMask::one(cpu)), Op::Call(ATTACH + number)];
    let step = Op::Call(STEP + number);
    let round = match behaviour {
        Ends | Dies => vec![],
        Hangs => vec![Op::Run(30 * TICK)],
        Sleeps => vec![step, Op::Yield, Op::Sleep(TICK / 2)],
        Slow => vec![step, Op::Run(5 * TICK / 2), Op::Yield],
        Asks => vec![step, Op::Sleep(TICK)],
        _ => vec![step, Op::Run(2), Op::Yield],
    };
    let again = match round.len() {
        0 => vec![],
        steps_of_round => vec![Op::Again {
            steps: steps_of_round,
            times: steps,
        }],
    };
    let end = match behaviour {
        Hangs => 3,
        Asks => 10,
        Sleeps | Slow => steps.min(400),
        _ => steps,
    };
    let again = again.into_iter().map(|op| match op {
        Op::Again { steps, .. } => Op::Again { steps, times: end },
        op => op,
    });
    let asks = match behaviour {
        Asks => vec![Op::Call(ASK), Op::Yield, Op::Call(ASK_AGAIN)],
        _ => vec![],
    };
    let detach = match behaviour {
        Dies => vec![],
        _ => vec![Op::Call(DETACH + number)],
    };
    let parts = [attach.to_vec(), round, again.collect(), asks, detach];
    Program::new("agent", parts.concat())
}

/// Returns all CPUs (bit mask).
const fn all(cpus: usize) -> u64 {
    u64::MAX >> (64 - cpus)
}

/// Runs a program on this machine, with the enclaves of a setup.
fn run(setup: &Setup, tasks: Vec<Program>, steps: u64) -> Result<Report, Box<Failure>> {
    match setup.stays {
        true => run_on::<ThreadTable<ThreadSmpStatePinned>>(setup, tasks, steps),
        false => run_on::<ThreadTable>(setup, tasks, steps),
    }
}

fn run_on<M: TableSource>(
    setup: &Setup,
    tasks: Vec<Program>,
    steps: u64,
) -> Result<Report, Box<Failure>> {
    SETUP.replace(setup.clone());
    SUBJECTS.set(Some(Box::new(Vec::<Subject<M>>::new())));
    let config = Config {
        cpus: setup.cpus,
        tick_period: TICK,
        stealing: true,
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        on_time: VirtualClock::set,
        on_call: call,
        switch_cost: if setup.seed.is_multiple_of(3) { 40 } else { 2 },
        pick_delays: |n| SETUP.with_borrow(|setup| setup.pick_delay(n)),
        preempted_stay: setup.stays,
        time_limit: Some(2_000 * TICK),
        ..Config::default()
    };
    let mut ops = vec![Op::Sleep(3 * TICK), Op::Call(BEGIN)];
    let enclaves = setup.enclaves.iter().enumerate();
    let agents = enclaves.filter(|(_, (_, behaviour))| ![Fast, FastLies].contains(behaviour));
    for (number, (cpus, behaviour)) in agents.clone() {
        let cpu = cpus.trailing_zeros() as usize;
        ops.push(Op::Spawn(agent(number as u32, *behaviour, cpu, steps)));
        // A task is dead when its last handle is gone.
        ops.extend((*behaviour == Dies).then_some(Op::DropHandle(number)));
    }
    let alive = agents
        .clone()
        .filter(|(_, (_, behaviour))| *behaviour != Dies);
    let first = agents.count();
    let count = tasks.len();
    ops.extend(tasks.into_iter().map(Op::Spawn));
    for task in first..first + count {
        ops.extend([Op::Join(task), Op::DropHandle(task)]);
    }
    ops.extend((0..setup.enclaves.len()).map(|number| Op::Call(END + number as u32)));
    for (agent, _) in alive {
        ops.extend([Op::Join(agent), Op::DropHandle(agent)]);
    }
    let main = Program::new("main", ops);
    simulate::<M>(&config, &main)
}

/// A task of an enclave. `cpus` is the number of CPUs.
fn worker(enclave: u32, cpus: usize) -> impl Strategy<Value = Program> {
    let op = prop_oneof![
        4 => (1..2 * TICK).prop_map(Op::Run),
        4 => Just(Op::Yield),
        2 => (1..3 * TICK).prop_map(Op::Sleep),
        1 => Just(Op::Migrate(CpuMask::first(64))),
        1 => (0..8usize).prop_map(|cpu| Op::Migrate(CpuMask(1 << cpu | 1))),
        1 => (0..cpus).prop_map(|cpu| Op::Migrate(CpuMask::one(cpu))),
        1 => (1..TICK).prop_map(move |units| Op::spawn("child", [Op::Call(DELEGATE + enclave), Op::Yield, Op::Run(units)])),
        1 => Just(Op::Call(DEPART)),
        1 => Just(Op::Call(DELEGATE + enclave)),
    ];
    (any::<bool>(), prop::collection::vec(op, 1..25)).prop_map(move |(is_delegated, ops)| {
        let delegate = is_delegated.then_some(Op::Call(DELEGATE + enclave));
        Program::new("worker", delegate.into_iter().chain(ops))
    })
}

fn setups(cpus: usize) -> impl Strategy<Value = Setup> {
    let behaviour = || prop::sample::select(&ALL[..]);
    let enclaves = match cpus {
        1 => behaviour().prop_map(|one| vec![(1, one)]).boxed(),
        _ => prop_oneof![
            behaviour().prop_map(move |one| vec![(all(cpus), one)]),
            behaviour().prop_map(move |one| vec![(all(cpus) & !1, one)]),
            (behaviour(), behaviour()).prop_map(|(one, two)| vec![(1, one), (2, two)]),
        ]
        .boxed(),
    };
    let ring = prop::sample::select(&[1usize, 2, 256][..]);
    let wakes = prop::sample::select(&[Kinds::NONE, Kinds::READY, Kinds::ALL][..]);
    let rest = (ring, wakes, any::<(u64, bool, bool)>());
    (enclaves, rest).prop_map(
        move |(enclaves, (ring, wakes, (seed, is_watched, stays)))| {
            // Without the watchdog nothing hides a task that an agent does not get back.
            let all_serve = enclaves
                .iter()
                .all(|(_, behaviour)| SERVE.contains(behaviour));
            Setup {
                cpus,
                stays: stays && cpus > 1,
                enclaves,
                ring,
                limit: Setup::DEFAULT.limit.filter(|_| is_watched || !all_serve),
                wakes,
                has_gaps: true,
                seed,
            }
        },
    )
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn runs(cpus: usize) -> impl Strategy<Value = (Setup, Vec<Program>)> {
    setups(cpus).prop_flat_map(move |setup| {
        let last = setup.enclaves.len() as u32 - 1;
        let tasks = prop::collection::vec(
            (0..=last).prop_flat_map(move |enclave| worker(enclave, cpus)),
            1..9,
        );
        (Just(setup), tasks)
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_agent_on_one_cpu((setup, tasks) in runs(1)) {
        run(&setup, tasks, 4_000).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }

    // The layer for several CPUs asserts there that a CPU which found no task gets one by a post only.
    #[cfg_attr(debug_assertions, ignore = "needs --release")]
    #[test]
    fn any_agent_on_two_cpus((setup, tasks) in runs(2)) {
        run(&setup, tasks, 4_000).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }

    // The layer for several CPUs asserts there that a CPU which found no task gets one by a post only.
    #[cfg_attr(debug_assertions, ignore = "needs --release")]
    #[test]
    fn any_agent_on_four_cpus((setup, tasks) in runs(4)) {
        run(&setup, tasks, 4_000).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }
}

#[test]
#[ignore = "slow without optimisation: make soak"]
fn any_agent_over_a_million_dispatches() {
    for cpus in [1, 2, 4, 8] {
        let (programs, dispatches) = (AtomicU64::new(0), AtomicU64::new(0));
        // Each thread has a model of its own.
        let soak = || {
            let mut runner = TestRunner::new(cases());
            while dispatches.load(Relaxed) < 1_000_000 {
                let (setup, tasks) = runs(cpus).new_tree(&mut runner).unwrap().current();
                let ended = run(&setup, tasks.clone(), 4_000);
                let report =
                    ended.unwrap_or_else(|failure| panic!("{setup:?} {tasks:?}: {failure}"));
                programs.fetch_add(1, Relaxed);
                let is_random =
                    |task: &&TaskReport| ["worker", "child"].contains(&&*task.label.name);
                let random = report.tasks.iter().filter(is_random);
                dispatches.fetch_add(random.map(|task| task.dispatches).sum(), Relaxed);
                SUBJECTS.set(None);
                // SAFETY: the run has succeeded, so its tasks and schedulers are gone, and so are the
                // agents.
                unsafe { <ThreadTable>::retire() };
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(soak);
            }
        });
        let [programs, dispatches] = [programs, dispatches].map(AtomicU64::into_inner);
        println!("{cpus} CPUs: {programs} programs, {dispatches} dispatches of their tasks");
    }
}

/// Returns a worker that yields so often.
fn yields(times: u64) -> Program {
    let ops = [
        Op::Call(DELEGATE),
        Op::Yield,
        Op::Run(10),
        Op::Yield,
        Op::Again { steps: 2, times },
    ];
    Program::new("worker", ops)
}

/// Returns the reason why the first enclave has ended.
fn ended_by() -> Option<End> {
    SUBJECTS.with_borrow(|subjects| subjects.as_ref().unwrap().ended_by())
}

#[test]
fn honest_agent_serves_until_the_end_without_its_watchdog() {
    for cpus in [1, 2, 4] {
        for behaviour in [Fifo, Plans, Groups, Sleeps, Fast] {
            let setup = Setup {
                cpus,
                enclaves: vec![(all(cpus), behaviour)],
                limit: None,
                ..Setup::DEFAULT
            };
            let tasks = (0..6).map(|_| yields(50)).collect();
            run(&setup, tasks, 20_000).unwrap_or_else(|e| panic!("{behaviour:?}, {cpus}: {e}"));
            assert_eq!(ended_by(), Some(End::Asked), "{behaviour:?} on {cpus}");
        }
    }
}

/// Checks rule 7. All others have joined when the task comes that is outside. Each CPU picks one of them
/// while it waits.
#[test]
fn task_outside_waits_for_one_turn_of_others() {
    let cases = [1, 2]
        .into_iter()
        .flat_map(|cpus| [Fifo, Plans, Groups, Fast].map(|b| (cpus, b)));
    for (cpus, behaviour) in cases {
        let setup = Setup {
            cpus,
            enclaves: vec![(all(cpus), behaviour)],
            has_gaps: false,
            ..Setup::DEFAULT
        };
        let mut tasks: Vec<_> = (0..6).map(|_| yields(1_000)).collect();
        let again = Op::Again {
            steps: 1,
            times: 50,
        };
        let outside = Op::spawn("outside", [Op::Yield, again]);
        tasks.push(Program::new(
            "spawns",
            [Op::Sleep(3 * TICK), outside, Op::Join(0)],
        ));
        let report =
            run(&setup, tasks, 20_000).unwrap_or_else(|e| panic!("{behaviour:?}, {cpus}: {e}"));
        let is_outside = |task: &&TaskReport| &*task.label.name == "outside";
        let outside = report.tasks.iter().find(is_outside).unwrap();
        let waited = outside.max_wait_dispatches;
        assert!(waited <= cpus as u64, "{behaviour:?}, {cpus}: {waited}");
    }
}

#[test]
fn agent_that_does_not_serve_is_ended_by_the_watchdog() {
    for cpus in [1, 2, 4] {
        for behaviour in [Silent, Blind, Starves, Hangs] {
            let setup = Setup {
                cpus,
                enclaves: vec![(all(cpus), behaviour)],
                ..Setup::DEFAULT
            };
            let tasks = (0..6).map(|_| yields(50)).collect();
            run(&setup, tasks, 20_000).unwrap_or_else(|e| panic!("{behaviour:?}, {cpus}: {e}"));
            assert_eq!(ended_by(), Some(End::Watchdog), "{behaviour:?} on {cpus}");
        }
    }
}

#[test]
fn agent_that_ends_leaves_its_tasks_to_round_robin() {
    for (cpus, behaviour) in [1, 2, 4]
        .into_iter()
        .flat_map(|cpus| [(cpus, Ends), (cpus, Dies)])
    {
        let setup = Setup {
            cpus,
            enclaves: vec![(all(cpus), behaviour)],
            limit: None,
            ..Setup::DEFAULT
        };
        let tasks = (0..6).map(|_| yields(50)).collect();
        run(&setup, tasks, 0).unwrap_or_else(|e| panic!("{behaviour:?}, {cpus}: {e}"));
        assert_eq!(ended_by(), Some(End::AgentLeft), "{behaviour:?} on {cpus}");
    }
}

/// A task wakes while the agent is preempted, after it has read its messages.
#[test]
fn agent_that_was_preempted_after_it_read_is_still_told() {
    let setup = Setup {
        enclaves: vec![(1, Slow)],
        limit: None,
        ..Setup::DEFAULT
    };
    let sleeps = [
        Op::Call(DELEGATE),
        Op::Yield,
        Op::Sleep(7 * TICK / 2),
        Op::Again {
            steps: 1,
            times: 20,
        },
    ];
    let outside = Program::new("outside", [Op::Run(200 * TICK)]);
    let tasks = vec![Program::new("worker", sleeps), outside];
    run(&setup, tasks, 400).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ended_by(), Some(End::Asked));
}

/// Asks for decisions that cannot be made. Each is refused with its reason.
fn ask<M: TableSource>(subjects: &mut [Subject<M>]) {
    let (cpu, task) = current::<M>();
    let (subject, other) = (&subjects[0], &subjects[1]);
    let agent = subject.agent.as_ref().unwrap();
    let in_state = |state| {
        let mut seen = subject.seen.iter();
        *seen
            .find(|&&id| agent.status(id).unwrap().state() == state)
            .unwrap()
    };
    let (ready, blocked) = (in_state(State::Ready), in_state(State::Blocked));
    let seq = agent.status(ready).unwrap().seq();
    let of = |task| Commit::new(task, cpu);
    let dead = TaskId::from_bits(ready.to_bits() ^ 1 << 31);
    let stale = Commit {
        seq: Some(seq.wrapping_sub(1)),
        ..of(ready)
    };
    let refused = [
        (of(other.seen[0]), Refused::NoTask),
        (of(dead), Refused::NoTask),
        (of(blocked), Refused::NotReady),
        (stale, Refused::Stale),
        (Commit::new(ready, cpu + 1), Refused::Cpu),
    ];
    for (commit, why) in refused {
        assert_eq!(agent.commit(commit).err(), Some(why), "{commit:?}");
        let group = [of(ready), commit];
        assert_eq!(agent.commit_all(&group), Err((1, why)));
    }
    let twice = agent.commit_all(&[of(ready), of(ready)]);
    assert_eq!(twice, Err((1, Refused::NotReady)));
    assert_eq!(agent.plan(cpu + 1, &[ready]), 0);
    assert!(agent.is_free(cpu), "a decision was made");
    assert_eq!(
        subject.enclave.attach(task, cpu).err(),
        Some(Refusal::HasAgent)
    );
    assert_eq!(subject.enclave.delegate(task).err(), Some(Refusal::Taken));
    // The task of the other enclave is left out. The ready one runs once, as each decision has its
    // sequence number.
    assert_eq!(agent.plan(cpu, &[other.seen[0]]), 1);
    let made = (1..=MAX_DECISIONS).take_while(|_| agent.commit(of(ready)).is_ok());
    assert_eq!(made.count(), MAX_DECISIONS - 1);
    assert_eq!(agent.commit(of(ready)).err(), Some(Refused::Full));
}

/// Looks at what the decisions of [`ask`] did, and asks an enclave that has ended.
fn ask_again<M: TableSource>(subjects: &mut [Subject<M>]) {
    let other = subjects[1].agent.as_ref().unwrap();
    subjects[1].look();
    assert_eq!(
        other.cpu(),
        1,
        "a task became the agent, on a CPU that has one"
    );
    let subject = &mut subjects[0];
    let mut agent = subject.agent.take().unwrap();
    let yielded = core::iter::from_fn(|| agent.read()).filter(|told| told.kind() == Kind::YIELDED);
    let yielded: Vec<_> = yielded.collect();
    assert_eq!(yielded.len(), 1, "{yielded:?}");
    let ready = yielded[0].task();
    subject.enclave.end();
    assert_eq!(agent.check(), Err(Stopped::Ended));
    let commit = agent.commit(Commit::new(ready, agent.cpu()));
    assert_eq!(commit.err(), Some(Refused::Stopped));
    assert_eq!(agent.plan(agent.cpu(), &[ready]), 0);
    let (cpu, task) = current::<M>();
    assert_eq!(
        subject.enclave.attach(task, cpu).err(),
        Some(Refusal::Ended)
    );
    assert_eq!(subject.enclave.delegate(task).err(), Some(Refusal::Ended));
}

/// Runs tasks in two enclaves, the first under this agent, and a silent one beside it.
fn run_beside_silent(behaviour: Behaviour, tasks: Vec<Program>) {
    let setup = Setup {
        cpus: 2,
        enclaves: vec![(1, behaviour), (2, Silent)],
        limit: Some(50 * TICK),
        ..Setup::DEFAULT
    };
    run(&setup, tasks, 20).unwrap_or_else(|e| panic!("{behaviour:?}: {e}"));
}

/// Returns a task that joins after some ticks, and sleeps.
fn sleeps(enclave: u32) -> Program {
    let ops = [
        Op::Sleep(3 * TICK),
        Op::Call(DELEGATE + enclave),
        Op::Yield,
        Op::Sleep(100 * TICK),
    ];
    Program::new("worker", ops)
}

#[test]
fn decision_that_cannot_be_followed_is_refused_with_its_reason() {
    let replaces = [
        Op::Migrate(CpuMask::one(0)),
        Op::Sleep(3 * TICK),
        Op::Call(REPLACE + 1),
    ];
    let replaces = Program::new("worker", replaces);
    run_beside_silent(Asks, vec![yields(10), sleeps(0), sleeps(1), replaces]);
}

#[test]
fn fast_path_runs_no_task_of_another_enclave() {
    let is_named = (0..16).any(|n| format!("{:?}", Liar::lie(n)) == "1.1");
    assert!(is_named, "the second task is among the lies");
    let looks = Program::new("worker", [Op::Sleep(20 * TICK), Op::Call(LOOK)]);
    run_beside_silent(FastLies, vec![yields(1_000), sleeps(1), looks]);
}

/// A task that did not leave could not join again, and a dead task that kept its slot would leave too few
/// of them.
#[test]
fn task_that_departs_or_dies_leaves_its_slot() {
    for (cpus, behaviour) in [(1, Fifo), (1, Fast), (2, Fifo), (2, Fast)] {
        let setup = Setup {
            cpus,
            enclaves: vec![(all(cpus), behaviour)],
            ..Setup::DEFAULT
        };
        let departs = [Op::Call(JOIN), Op::Yield, Op::Call(DEPART), Op::Yield];
        let child = |n| {
            let child = departs.iter().cloned().chain([Op::Call(JOIN), Op::Yield]);
            [Op::spawn("child", child), Op::Join(n), Op::DropHandle(n)]
        };
        let tasks = vec![Program::new("worker", (0..MAX_TASKS + 10).flat_map(child))];
        run(&setup, tasks, 100_000).unwrap_or_else(|e| panic!("{behaviour:?}, {cpus}: {e}"));
    }
}
