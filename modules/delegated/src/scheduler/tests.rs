//! Calls of two or three CPUs in an order that is written down. `axtask` locks a queue for the put of a
//! yield and again for the pick, so another CPU may act in between.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::vec::Vec;

use sched_core::clock::VirtualClock;
use sched_smp::{ThreadSmpState, simulated_machine};

use super::*;
use crate::host::AgentPolicy;
use crate::message::Kinds;
use crate::status::TaskId;
use crate::table::ThreadTable;
use crate::{Agent, Enclave, Refusal, Settings, Stopped};

type Scheduler = SmpDelegatedScheduler<&'static str, VirtualClock, ThreadTable>;
type Named = Handle<&'static str, ThreadTable>;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    /// The affinity of all tasks (bit mask).
    static MAY_RUN: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The CPUs that were interrupted.
    static INTERRUPTED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// CPUs, each with its scheduler and the task whose stack it uses. All have picked, and found nothing.
struct Cpus {
    schedulers: Vec<Scheduler>,
    running: Vec<Option<Named>>,
}

impl Cpus {
    fn new(cpus: usize) -> Self {
        <ThreadTable>::renew();
        MAY_RUN.set(u64::MAX);
        let machine = Machine {
            this_cpu: || CPU.get(),
            current: || CURRENT.get(),
            interrupt: |cpu| INTERRUPTED.with_borrow_mut(|to| to.push(cpu)),
            may_run: |_, cpu| MAY_RUN.get() >> cpu & 1 != 0,
            ..simulated_machine(cpus)
        };
        // SAFETY: the state is new, and belongs to this thread. Each scheduler is called as its CPU.
        unsafe { ThreadSmpState::renew().connect(machine) };
        let mut new = Self {
            schedulers: (0..cpus).map(|_| Scheduler::new()).collect(),
            running: (0..cpus).map(|_| None).collect(),
        };
        (0..cpus).for_each(|cpu| assert_eq!(new.pick(cpu), None));
        INTERRUPTED.take();
        new
    }

    /// Lets a CPU call the scheduler of another one, or its own.
    fn call(&mut self, by: usize, of: usize) -> &mut Scheduler {
        let current = self.running[by].as_ref();
        CPU.set(by);
        CURRENT.set(current.map_or(ptr::null(), |task| Arc::as_ptr(task).cast()));
        &mut self.schedulers[of]
    }

    fn pick(&mut self, cpu: usize) -> Option<&'static str> {
        self.running[cpu] = self.call(cpu, cpu).pick_next_task();
        self.running[cpu].as_ref().map(|task| *task.inner())
    }

    /// Puts the running task back, whose stack the CPU uses until its next pick.
    fn put(&mut self, cpu: usize, preempt: bool) {
        let task = self.running[cpu].clone().unwrap();
        self.call(cpu, cpu).put_prev_task(task, preempt);
    }

    fn wake(&mut self, by: usize, on: usize, task: &Named) {
        self.call(by, on).put_prev_task(task.clone(), false);
    }

    fn tick(&mut self, cpu: usize) -> bool {
        let task = self.running[cpu].clone().unwrap();
        self.call(cpu, cpu).task_tick(&task)
    }

    /// Adds a task that a CPU of the enclave delegates, and lets it join.
    fn delegated(
        &mut self,
        enclave: &Enclave<ThreadTable>,
        on: usize,
        name: &'static str,
    ) -> (Named, TaskId) {
        let task = named(name);
        let id = enclave.delegate(&task).unwrap();
        self.wake(on, on, &task);
        (task, id)
    }

    /// Runs a task outside on a CPU.
    fn outside(&mut self, on: usize, name: &'static str) -> Named {
        let task = named(name);
        self.wake(on, on, &task);
        assert_eq!(self.pick(on), Some(name));
        task
    }

    /// Runs a task on a CPU, and makes it the agent of the enclave.
    fn attached(
        &mut self,
        enclave: &Enclave<ThreadTable>,
        on: usize,
        name: &'static str,
    ) -> (Named, Agent<ThreadTable>) {
        let task = self.outside(on, name);
        let agent = enclave.attach(&task, on).unwrap();
        (task, agent)
    }
}

/// CPUs of which CPU 0 has a task of an enclave, and the one with number `on` runs its agent. `mask` has the CPUs
/// of the enclave.
fn with_task(cpus: usize, mask: u64, on: usize) -> (Cpus, Agent<ThreadTable>, Named, TaskId) {
    let mut cpus = Cpus::new(cpus);
    let enclave = enclave(mask, Kinds::ALL);
    let (_, agent) = cpus.attached(&enclave, on, "agent");
    let (handle, task) = cpus.delegated(&enclave, 0, "task");
    (cpus, agent, handle, task)
}

fn named(name: &'static str) -> Named {
    Arc::new(DelegatedTask::new(name))
}

fn enclave(cpus: u64, sends: Kinds) -> Enclave<ThreadTable> {
    let settings = Settings {
        sends,
        ..Settings::new(1000)
    };
    Enclave::new(cpus, settings).unwrap()
}

/// An idle CPU requests a task, and an agent kicks the CPU that is to answer. One interrupt arrives.
#[test]
fn request_that_comes_with_a_kick_is_answered() {
    let mut cpus = Cpus::new(2);
    for (cpu, name) in [(0, "blocks"), (1, "running"), (1, "waits")] {
        cpus.call(cpu, cpu).add_task(named(name));
        if name != "waits" {
            assert_eq!(cpus.pick(cpu), Some(name));
        }
    }
    assert_eq!(cpus.pick(0), None);
    <ThreadTable>::table().cpus[1].kicked.store(true, Relaxed);
    assert!(!cpus.tick(1));
    assert_eq!(cpus.pick(0), Some("waits"));
}

/// A decision and a task outside wait for the CPU (rule 7).
#[test]
fn idle_cpu_of_an_enclave_runs_the_task_outside_and_then_that_of_the_decision() {
    let (mut cpus, agent, _, task) = with_task(2, 1, 1);
    assert_eq!(cpus.pick(0), None);
    INTERRUPTED.take();
    assert_eq!(agent.plan(0, &[task]), 1);
    assert_eq!(INTERRUPTED.take(), [0]);
    cpus.wake(0, 0, &named("outside"));
    assert_eq!(cpus.pick(0), Some("outside"));
    assert_eq!(agent.plan(0, &[task]), 1);
    assert!(!cpus.tick(0));
    cpus.put(0, false);
    assert_eq!(cpus.pick(0), Some("task"));
}

/// An idle CPU asks for a task. It is sent one, and an agent decides for it.
#[test]
fn idle_cpu_runs_a_task_that_it_was_sent_before_that_of_a_decision() {
    let (mut cpus, agent, _, task) = with_task(3, 1, 1);
    cpus.outside(2, "busy");
    assert_eq!(cpus.pick(0), None);
    cpus.call(2, 2).add_task(named("waits"));
    cpus.tick(2);
    assert_eq!(agent.plan(0, &[task]), 1);
    for _ in 0..2 {
        assert_eq!(cpus.pick(0), Some("waits"));
        cpus.put(0, false);
    }
}

/// A task outside runs on a CPU that was idle, and yields while a decision waits. Two other CPUs ask for tasks.
#[test]
fn task_outside_that_yields_on_a_cpu_that_was_idle_is_held() {
    let (mut cpus, agent, _, task) = with_task(3, 1, 1);
    cpus.outside(2, "busy");
    assert_eq!(cpus.pick(0), None);
    assert_eq!(agent.plan(0, &[task]), 1);
    for name in ["outside", "second"] {
        cpus.wake(0, 0, &named(name));
    }
    assert_eq!(cpus.pick(0), Some("outside"));
    cpus.put(0, false);
    assert_eq!(cpus.pick(0), Some("task"));
    assert_eq!([cpus.pick(1), cpus.pick(2)], [None, None]);
    cpus.tick(0);
    let others = [cpus.pick(1), cpus.pick(2)];
    assert!(others.contains(&Some("second")), "{others:?}");
}

/// A task changes its affinity, and is preempted before it migrates. Its agent has chosen it again.
#[test]
fn task_that_leaves_its_enclave_in_flight_runs_nowhere_else_before_it_has_landed() {
    let (mut cpus, agent, _, task) = with_task(3, 1, 1);
    assert_eq!(agent.plan(0, &[task, task]), 2);
    assert_eq!(cpus.pick(0), Some("task"));
    MAY_RUN.set(0b100);
    cpus.put(0, true);
    assert!(cpus.call(0, 0).pick_next_task().is_none());
    assert_eq!(cpus.pick(2), None, "CPU 0 still uses the stack");
    assert_eq!(cpus.pick(0), None);
    assert_eq!(cpus.pick(2), Some("task"));
}

/// A helper on CPU 0 moves a task to CPU 1, and one there moves it back before CPU 0 picks.
#[test]
fn task_that_comes_back_before_the_next_pick_is_not_in_flight() {
    let (mut cpus, agent, handle, task) = with_task(3, 0b11, 2);
    for (from, to) in [(0, 1), (1, 0)] {
        assert_eq!(agent.plan(from, &[task]), 1);
        assert_eq!(cpus.pick(from), Some("task"));
        cpus.running[from] = Some(named("helper")); // not picked
        cpus.wake(from, to, &handle);
    }
    assert_eq!(agent.plan(0, &[task]), 1);
    assert_eq!(cpus.pick(0), Some("task"));
}

/// An agent is replaced by one on another CPU between its put and the pick.
#[test]
fn agent_that_is_replaced_in_flight_runs_nowhere_else_before_it_has_landed() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::ALL);
    let (_, _first) = cpus.attached(&enclave, 0, "first");
    let second = cpus.outside(1, "second");
    cpus.put(0, false);
    let _second = enclave.replace(&second, 1).unwrap();
    cpus.put(1, false);
    assert_eq!(cpus.pick(1), Some("second"), "it is told of the tasks");
    cpus.put(1, false);
    assert!(cpus.call(0, 0).pick_next_task().is_none());
    assert_eq!(cpus.pick(1), None, "CPU 0 still uses the stack");
    assert_eq!(cpus.pick(0), Some("first"));
}

/// Another task becomes the agent, on another CPU, and reads that it has to find the tasks. The first one
/// goes on to read.
#[test]
fn messages_that_a_replaced_agent_has_read_are_found_anew() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::ALL);
    let (_, mut first) = cpus.attached(&enclave, 0, "first");
    let second = cpus.outside(1, "second");
    let mut second = enclave.replace(&second, 1).unwrap();
    let kinds = |agent: &mut Agent<_>| -> Vec<_> {
        let messages = core::iter::from_fn(|| agent.read());
        messages.map(|message| message.kind()).collect()
    };
    assert_eq!(kinds(&mut second), [Kind::REDISCOVER]);
    cpus.delegated(&enclave, 0, "task");
    assert_eq!(kinds(&mut first), []);
    assert_eq!(kinds(&mut second), [Kind::REDISCOVER, Kind::FOUND]);
    drop(first);
    assert_eq!(kinds(&mut second), [Kind::REDISCOVER, Kind::FOUND]);
}

/// The agent is replaced while it waits.
#[test]
fn agent_that_is_replaced_does_not_return_from_its_wait_to_read() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::ALL);
    let (_, first) = cpus.attached(&enclave, 0, "first");
    let (task, mut second) = (named("second"), None);
    let replaced = || second = enclave.replace(&task, 1).ok();
    assert_eq!(first.wait(replaced), Err(Stopped::Replaced));
    assert!(second.is_some());
}

/// A task outside computes there.
#[test]
fn agent_that_is_replaced_while_it_waits_is_woken() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::NONE);
    let (_, _first) = cpus.attached(&enclave, 0, "first");
    MAY_RUN.set(1);
    cpus.call(0, 0).add_task(named("outside"));
    let mut names = Vec::new();
    for _ in 0..12 {
        cpus.put(0, false);
        names.push(cpus.pick(0));
    }
    assert_eq!(names[10..], [Some("outside"); 2], "{names:?}");
    let second = named("second");
    CPU.set(1);
    let _second = enclave.replace(&second, 1).unwrap();
    assert_eq!(INTERRUPTED.take().last(), Some(&0));
    assert!(!cpus.tick(0));
    cpus.put(0, false);
    let next = [cpus.pick(0), {
        cpus.put(0, false);
        cpus.pick(0)
    }];
    assert!(next.contains(&Some("first")), "{next:?}");
}

/// A task serves two enclaves. It is replaced in one, and becomes the agent there again.
#[test]
fn agent_that_was_replaced_ends_nothing_though_its_task_is_the_agent_again() {
    let mut cpus = Cpus::new(2);
    let [one, other] = [1, 2].map(|mask| enclave(mask, Kinds::ALL));
    let (task, first) = cpus.attached(&one, 0, "task");
    let _other = other.attach(&task, 0).unwrap();
    let second = named("second");
    let second = (one.replace(&second, 1).unwrap(), second);
    let third = one.replace(&task, 0).unwrap();
    drop((first, second));
    assert_eq!(third.check(), Ok(()));
}

/// A task that is in flight on CPU 0 leaves its enclave there. CPU 1 waits for the end of the flight.
#[test]
fn cpu_that_waits_for_a_flight_is_woken_if_the_task_leaves_its_enclave() {
    let (mut cpus, agent, _, task) = with_task(3, 0b11, 2);
    assert_eq!(agent.plan(0, &[task, task]), 2);
    assert_eq!(cpus.pick(0), Some("task"));
    MAY_RUN.set(0b100);
    cpus.put(0, true);
    assert_eq!(agent.plan(1, &[task]), 1);
    assert_eq!(cpus.pick(1), None);
    INTERRUPTED.take();
    assert!(cpus.call(0, 0).pick_next_task().is_none());
    assert!(INTERRUPTED.take().contains(&1));
}

type Alone = DelegatedScheduler<&'static str, VirtualClock, ThreadTable>;

/// Returns the scheduler of the only CPU, and tasks of these names. The first one runs.
fn alone(names: [&'static str; 2]) -> (Alone, [Named; 2]) {
    <ThreadTable>::renew();
    ThreadSmpState::renew();
    let mut scheduler = Alone::new();
    assert!(scheduler.pick_next_task().is_none(), "the CPU joins");
    let tasks = names.map(named);
    for task in &tasks {
        scheduler.add_task(task.clone());
    }
    assert_eq!(pick(&mut scheduler, None), Some(names[0]));
    (scheduler, tasks)
}

/// The only CPU. One task serves an enclave, and waits. The other one runs outside.
struct Served {
    scheduler: Alone,
    first: Named,
    second: Named,
    enclave: Enclave<ThreadTable>,
    agent: Agent<ThreadTable>,
}

impl Served {
    fn new(sends: Kinds) -> Self {
        let (mut scheduler, [first, second]) = alone(["first", "second"]);
        let enclave = enclave(1, sends);
        let mut agent = enclave.attach(&first, 0).unwrap();
        while agent.read().is_some() {}
        for (put, next) in [(&first, "second"), (&second, "first"), (&first, "second")] {
            assert_eq!(pick(&mut scheduler, Some(put)), Some(next));
        }
        Self {
            scheduler,
            first,
            second,
            enclave,
            agent,
        }
    }
}

/// Picks the next task, after a put of the one that yields.
fn pick(scheduler: &mut Alone, put: Option<&Named>) -> Option<&'static str> {
    if let Some(task) = put {
        scheduler.put_prev_task(task.clone(), false);
    }
    scheduler.pick_next_task().map(|task| *task.inner())
}

/// No message is sent, and the task that has replaced the agent blocks at once.
#[test]
fn agent_that_is_replaced_while_it_waits_runs() {
    let mut served = Served::new(Kinds::NONE);
    let _second = served.enclave.replace(&served.second, 0).unwrap();
    assert_eq!(pick(&mut served.scheduler, None), Some("first"));
}

/// STALE: the task that has replaced the agent blocks. A decision is followed first, and a message waits then.
#[test]
fn agent_that_is_replaced_while_it_waits_is_outside() {
    let mut served = Served::new(Kinds::ALL);
    let task = named("task");
    let id = served.enclave.delegate(&task).unwrap();
    served.scheduler.put_prev_task(task.clone(), false);
    assert_eq!(served.agent.plan(0, &[id]), 1);
    let _second = served.enclave.replace(&served.second, 0).unwrap();
    assert_eq!(pick(&mut served.scheduler, None), Some("task"));
    let next = pick(&mut served.scheduler, Some(&task));
    assert_eq!(next, Some("first"));
    assert!(served.first.policy_state().link().is_null());
}

/// STALE: the next enclave there has a fast path, and then neither that nor an agent.
#[test]
fn agent_that_waits_when_its_enclave_ends_is_outside() {
    let mut served = Served::new(Kinds::NONE);
    served.enclave.end();
    let enclave = enclave(1, Kinds::ALL);
    be_fast(&enclave);
    let task = named("task");
    enclave.delegate(&task).unwrap();
    served.scheduler.put_prev_task(task.clone(), false);
    assert_eq!(pick(&mut served.scheduler, None), Some("first"));
    assert_eq!(pick(&mut served.scheduler, None), Some("task"));
    enclave.set_fast_path(None).unwrap();
    assert_eq!(pick(&mut served.scheduler, Some(&task)), None);
}

/// The next picks need not look for an agent.
#[test]
fn agent_that_ends_its_enclave_and_blocks_leaves_nothing_urgent() {
    let (mut scheduler, [agent, _other]) = alone(["agent", "other"]);
    drop(enclave(1, Kinds::ALL).attach(&agent, 0));
    let urgent = || <ThreadTable>::table().cpus[0].urgent.load(Relaxed);
    assert_ne!(urgent(), 0);
    scheduler.task_tick(&agent);
    assert_eq!(pick(&mut scheduler, None), Some("other"));
    assert_eq!(urgent(), 0);
}

/// A message waits for an agent whose enclave ends. The next one there has a fast path.
#[test]
fn bell_that_no_agent_hears_falls_silent() {
    let mut served = Served::new(Kinds::ALL);
    let [old, task] = ["old", "task"].map(named);
    served.enclave.delegate(&old).unwrap();
    served.scheduler.put_prev_task(old, false);
    let bell = || <ThreadTable>::table().cpus[0].bell.has_rung();
    assert!(bell());
    served.enclave.end();
    let enclave = enclave(1, Kinds::ALL);
    be_fast(&enclave);
    enclave.delegate(&task).unwrap();
    served.scheduler.put_prev_task(task.clone(), false);
    while pick(&mut served.scheduler, None) != Some("task") {}
    assert_eq!(pick(&mut served.scheduler, Some(&task)), Some("task"));
    assert!(!bell());
}

/// The fast path takes the place of the agent, and gives it back. An agent may not be told of yields.
#[test]
fn yield_is_sent_to_the_agent_again_when_the_fast_path_ends() {
    for (sends, is_plain) in [(Kinds::ALL, true), (Kinds::NONE, false)] {
        let served = Served::new(sends);
        let enclave = &served.enclave;
        let route = &<ThreadTable>::table().enclaves[0].route;
        let paths = || [PLAIN, FAST].map(|bit| route.load(Relaxed) & bit != 0);
        assert_eq!(paths(), [is_plain, false]);
        be_fast(enclave);
        assert_eq!(paths(), [false, true]);
        enclave.set_fast_path(None).unwrap();
        assert_eq!(paths(), [is_plain, false]);
        enclave.end();
        assert_eq!(crate::table::rerouted(route.load(Relaxed), true), 0);
    }
}

/// An agent is replaced while it chooses.
#[test]
fn agent_that_was_replaced_takes_no_decision_of_the_next() {
    let mut served = Served::new(Kinds::ALL);
    let [one, other] = ["one", "other"].map(named);
    let ids = [&one, &other].map(|task| {
        served.scheduler.put_prev_task(task.clone(), false);
        served.enclave.delegate(task).unwrap()
    });
    let second = served.enclave.replace(&served.second, 0).unwrap();
    assert_eq!(second.run_next(ids[0]), None);
    assert_eq!(served.agent.run_next(ids[1]), None);
    assert_eq!(second.run_next(ids[1]), Some(ids[0]));
}

/// An agent is replaced between its put and the pick. It would have gone before the decision.
#[test]
fn decision_is_followed_if_the_agent_that_would_go_first_is_replaced() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::ALL);
    let (_, first) = cpus.attached(&enclave, 0, "first");
    let (_, task) = cpus.delegated(&enclave, 0, "task");
    assert_eq!(first.plan(0, &[task]), 1);
    cpus.put(0, true);
    let second = named("second");
    let _second = enclave.replace(&second, 1).unwrap();
    assert_eq!(cpus.pick(0), Some("task"));
}

/// Rule 6: another CPU wakes the agent between the put of a task and the pick. A decision waits.
#[test]
fn agent_that_is_woken_within_a_yield_goes_first() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::NONE);
    let (agent_task, mut agent) = cpus.attached(&enclave, 0, "agent");
    let (_, task) = cpus.delegated(&enclave, 0, "task");
    while agent.read().is_some() {}
    assert_eq!(agent.plan(0, &[task, task]), 2);
    assert_eq!(cpus.pick(0), Some("task"), "the agent has blocked");
    cpus.put(0, false);
    cpus.wake(1, 0, &agent_task);
    assert_eq!(cpus.pick(0), Some("agent"));
}

#[test]
fn agent_does_not_replace_itself() {
    let mut cpus = Cpus::new(1);
    let enclave = enclave(1, Kinds::ALL);
    let (task, agent) = cpus.attached(&enclave, 0, "agent");
    assert_eq!(enclave.replace(&task, 0).err(), Some(Refusal::HasAgent));
    assert_eq!(agent.check(), Ok(()));
}

/// Chooses tasks in the order in which they become ready.
#[derive(Default)]
struct Fifo(VecDeque<TaskId>);

impl AgentPolicy for Fifo {
    fn told(&mut self, message: Message) {
        if message.kind().is_ready() {
            self.0.push_back(message.task());
        }
    }
    fn choose(&mut self, _: usize) -> Option<TaskId> {
        self.0.pop_front()
    }
}

/// Lets a policy on the fast path decide, in a call of CPU 0.
fn be_fast(enclave: &Enclave<ThreadTable>) {
    CPU.set(0);
    let policy = Box::new(Fifo::default());
    enclave.set_fast_path(Some(policy)).unwrap();
}

/// Three CPUs have nothing to do. One of them hands tasks over, by messages to the fast path.
#[test]
fn each_task_of_the_fast_path_gets_a_free_cpu() {
    let mut cpus = Cpus::new(3);
    let enclave = enclave(0b111, Kinds::ALL);
    (0..3).for_each(|cpu| assert_eq!(cpus.pick(cpu), None));
    cpus.delegated(&enclave, 0, "first");
    INTERRUPTED.take();
    be_fast(&enclave);
    let mut interrupted = INTERRUPTED.take();
    interrupted.sort();
    assert_eq!(interrupted, [1, 2], "a task waited before");
    assert_eq!(cpus.pick(0), Some("first"));
    (1..3).for_each(|cpu| assert_eq!(cpus.pick(cpu), None));
    cpus.delegated(&enclave, 0, "second");
    cpus.delegated(&enclave, 0, "third");
    assert_eq!(INTERRUPTED.take(), [1, 2]);
    assert_eq!(cpus.pick(1), Some("second"));
    assert_eq!(cpus.pick(2), Some("third"));
}

/// A busy CPU wakes a task, and the queue of an idle one is chosen.
#[test]
fn cpu_whose_queue_gets_a_task_of_the_fast_path_is_interrupted() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(0b11, Kinds::ALL);
    be_fast(&enclave);
    cpus.delegated(&enclave, 1, "busy");
    assert_eq!(cpus.pick(0), Some("busy"));
    assert_eq!(cpus.pick(1), None);
    INTERRUPTED.take();
    let task = named("task");
    enclave.delegate(&task).unwrap();
    cpus.wake(0, 1, &task);
    assert_eq!(INTERRUPTED.take(), [1]);
    assert_eq!(cpus.pick(1), Some("task"));
}

/// A CPU that runs a task outside wakes one into the queue of another that does so. The third is idle.
#[test]
fn idle_cpu_goes_before_those_that_run_tasks_outside() {
    let mut cpus = Cpus::new(3);
    let enclave = enclave(0b111, Kinds::ALL);
    be_fast(&enclave);
    (0..3).for_each(|cpu| assert_eq!(cpus.pick(cpu), None));
    let _outside = [0, 1].map(|cpu| cpus.outside(cpu, "outside"));
    INTERRUPTED.take();
    let task = named("task");
    enclave.delegate(&task).unwrap();
    cpus.wake(0, 1, &task);
    assert_eq!(INTERRUPTED.take(), [2]);
    assert_eq!(cpus.pick(2), Some("task"));
}

/// The state of a task that is gone when its enclave has ended.
#[test]
fn task_that_is_buried_after_the_end_leaves_its_slot() {
    let mut cpus = Cpus::new(1);
    let first = enclave(1, Kinds::ALL);
    let (_task, id) = cpus.delegated(&first, 0, "task");
    let table = <ThreadTable>::table();
    let slot = &table.slots[id.index()];
    first.end();
    slot.word.set(slot.status().with(State::Gone, 0));
    table.bury(slot);
    assert_eq!(slot.status().state(), State::Free);
    assert_eq!(slot.enclave().members.load(Relaxed), 0);
}

/// Another CPU has written a message of a task, which is gone. Its slot has the next task.
#[test]
fn message_of_a_task_whose_slot_is_used_again_is_left_out() {
    let mut cpus = Cpus::new(2);
    let enclave = enclave(1, Kinds::ALL);
    let (_, mut agent) = cpus.attached(&enclave, 0, "agent");
    let (_gone, id) = cpus.delegated(&enclave, 0, "gone");
    while agent.read().is_some() {}
    let table = <ThreadTable>::table();
    let slot = &table.slots[id.index()];
    let late = slot.words(Kind::BLOCKED, slot.status());
    table.free_slot(slot);
    let (_next, next) = cpus.delegated(&enclave, 0, "next");
    assert_eq!(next.index(), id.index());
    assert!(slot.enclave().messages[1].push(late));
    let read: Vec<_> = core::iter::from_fn(|| agent.read()).collect();
    assert_eq!(read.len(), 1, "{read:?}");
    assert_eq!(read[0].task(), next);
}

/// A call on an enclave works on, though the enclave has ended and has no task.
#[test]
fn words_that_are_pinned_begin_no_other_enclave() {
    let _cpus = Cpus::new(1);
    let words = &<ThreadTable>::table().enclaves[0];
    let begins = || {
        enclave(1, Kinds::ALL).end();
        words.generation.load(Relaxed)
    };
    assert_eq!(begins(), 1);
    let pinned = Pinned::new(words);
    assert_eq!(begins(), 1);
    drop(pinned);
    assert_eq!(begins(), 2);
}
