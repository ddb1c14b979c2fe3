//! What the layer is measured by: one queue that all CPUs share.
//!
//! `axtask` cannot have it, as it gives each CPU a queue and a scheduler of its own. In its
//! [model](sched_model::model) the schedulers of all CPUs may be handles of one policy: whichever CPU
//! picks takes the task that the policy would run first of all that are ready, and one that idles
//! is told of each that becomes ready. Looking costs nothing there, and no lock is waited for; a
//! switch costs what it costs where each CPU has a queue.
//!
//! - **In flight**: whoever picks a task that another CPU is still switching away from waits until
//!   that is over ([`Config::waits_in_flight`]).
//! - **Who may run on one CPU only**, as `gc`, is ready beside the queue, first in, first out. It
//!   runs when its CPU picks after a block or an exit, which is what `gc` waits for, or has
//!   nobody else.
//! - **What is of a CPU** and not of the queue, as who runs there, is exchanged before each call
//!   ([`Policy::exchange_cpu`]).

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::RefCell;
use std::vec::Vec;

use sched_core::base::BaseScheduler;
use sched_core::event::{Policy, Return, Running, TaskRef, Tick, Tracks};
use sched_core::task::{InitialState, Task};
use sched_model::model::{self, Config, Failure, ModelTask, Program, Report};

/// Whether a policy can be asked by several CPUs.
pub fn shares_one_queue<P: Policy>() -> bool {
    let (mut one, mut other) = (P::NEW, P::NEW);
    one.exchange_cpu(&mut other)
}

/// [`model::run`] with one policy that all CPUs share. `config` says that tasks go from queue to
/// queue ([`Config::stealing`]), that who picks waits for those in flight
/// ([`Config::waits_in_flight`]), and how soon who idles hears of a task
/// ([`Config::interrupts`]).
///
/// # Errors
/// The first [`Violation`](model::Violation) found.
///
/// # Panics
/// If the policy cannot be shared ([`shares_one_queue`]).
pub fn run_one_queue<P>(config: &Config, main: &Program) -> Result<Report, Box<Failure>>
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
{
    assert!(shares_one_queue::<P>(), "{} knows of one CPU", P::NAME);
    let cpus = (0..config.cpus).map(|_| Cpu::<P> {
        own: P::NEW,
        running: Running::NOBODY,
        idles: false,
        interrupted: false,
        only_here: VecDeque::new(),
    });
    let queue = Rc::new(RefCell::new(OneQueue {
        policy: P::NEW,
        cpus: cpus.collect(),
    }));
    let made = |_| Handle(queue.clone());
    model::run(config, main, made, Task::<ModelTask, P::State>::new)
}

/// What is of a CPU.
struct Cpu<P: Policy> {
    /// What of the policy is of this CPU, while another one's is in it.
    own: P,
    running: Running,
    /// Its last pick found nobody, and nobody has told it since of a task.
    idles: bool,
    /// It is told by an interrupt: no time passes with that.
    interrupted: bool,
    /// Those who are ready and may run here only.
    only_here: VecDeque<TaskRef<P>>,
}

/// The queue.
struct OneQueue<P: Policy> {
    policy: P,
    cpus: Vec<Cpu<P>>,
}

/// The scheduler of a CPU.
struct Handle<P: Policy>(Rc<RefCell<OneQueue<P>>>);

impl<P: Policy<Inner = ModelTask>> OneQueue<P> {
    /// Has a CPU call the policy.
    fn on<T>(&mut self, cpu: usize, call: impl FnOnce(&mut P) -> T) -> T {
        self.policy.exchange_cpu(&mut self.cpus[cpu].own);
        let told = call(&mut self.policy);
        self.policy.exchange_cpu(&mut self.cpus[cpu].own);
        told
    }

    /// The only CPU where this task may run, if there are others.
    fn only_cpu(&self, task: &TaskRef<P>) -> Option<usize> {
        let mut may_run = (0..self.cpus.len()).filter(|&cpu| model::may_run(task.inner(), cpu));
        match (may_run.next(), may_run.next()) {
            (Some(cpu), None) if self.cpus.len() > 1 => Some(cpu),
            _ => None,
        }
    }

    /// Tells one that idles that somebody is ready: the one that acts, or else the first.
    fn tell(&mut self, acts: usize, may: impl Fn(usize) -> bool) {
        let idles = |cpu: &usize| self.cpus[*cpu].idles && may(*cpu);
        let Some(cpu) = [acts].into_iter().chain(0..self.cpus.len()).find(idles) else {
            return;
        };
        self.cpus[cpu].idles = false;
        if cpu != acts {
            self.cpus[cpu].interrupted = true;
            model::interrupt(cpu);
        }
    }

    /// A task is ready that was on no CPU, or, as `main` at first, was not picked.
    fn becomes_ready(&mut self, task: TaskRef<P>, is_new: bool) {
        let acts = acts();
        if let Some(only) = self.only_cpu(&task) {
            if model::here().is_some_and(|(_, current)| current == Arc::as_ptr(&task).cast()) {
                self.cpus[acts].running.forget(); // it has been put back
            }
            self.cpus[only].only_here.push_back(task);
            return self.tell(acts, |cpu| cpu == only);
        }
        self.on(acts, |policy| match is_new {
            true => policy.spawned(task),
            false => policy.returned(task, Return::Woken),
        });
        self.tell(acts, |_| true);
    }

    fn pick(&mut self) -> Option<TaskRef<P>> {
        let cpu = acts();
        // Of a task that has been put back the policy has to hear who runs now.
        let follows_a_put = self.cpus[cpu].running.is_forgotten();
        if P::TRACKS == Tracks::Departures && self.cpus[cpu].running.is_somebody() {
            self.on(cpu, P::left);
        }
        let only_here = match follows_a_put {
            true => None,
            false => self.cpus[cpu].only_here.pop_front(),
        };
        let (next, running) = match only_here {
            Some(task) => (Some(task), Running::ELSEWHERE),
            None => match self.on(cpu, P::dispatch) {
                Some(task) => {
                    let mut running = Running::NOBODY;
                    running.picked_somebody(&task);
                    (Some(task), running)
                }
                None => (self.cpus[cpu].only_here.pop_front(), Running::ELSEWHERE),
            },
        };
        let here = &mut self.cpus[cpu];
        here.running = running;
        here.idles = next.is_none();
        here.interrupted = false;
        next
    }

    fn put(&mut self, task: TaskRef<P>, preempt: bool) {
        let cpu = acts();
        if !self.cpus[cpu].running.is(&task) {
            return self.becomes_ready(task, false);
        }
        let why = match (P::TRACKS, preempt) {
            (Tracks::Nothing, _) => Return::Woken,
            (_, true) => Return::Preempted,
            (_, false) => Return::Yielded,
        };
        self.cpus[cpu].running.forget();
        self.on(cpu, |policy| policy.returned(task, why));
    }

    fn tick(&mut self, current: &TaskRef<P>) -> bool {
        let cpu = acts();
        let was_interrupted = core::mem::take(&mut self.cpus[cpu].interrupted);
        if was_interrupted || self.only_cpu(current).is_some() {
            return false;
        }
        self.on(cpu, |policy| policy.ticked(current)) == Tick::Reschedule
    }
}

/// The CPU that acts.
fn acts() -> usize {
    model::here().expect("a machine of the model runs").0
}

impl<P: Policy<Inner = ModelTask>> BaseScheduler for Handle<P> {
    type SchedItem = Arc<Task<ModelTask, P::State>>;

    fn init(&mut self) {}

    fn add_task(&mut self, task: Self::SchedItem) {
        self.0.borrow_mut().becomes_ready(task, true);
    }

    /// `axtask` never calls it, and neither does its model.
    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        let mut queue = self.0.borrow_mut();
        queue.on(acts(), |policy| policy.remove(task))
    }

    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        self.0.borrow_mut().pick()
    }

    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        self.0.borrow_mut().put(prev, preempt);
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        self.0.borrow_mut().tick(current)
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        let mut queue = self.0.borrow_mut();
        queue.on(acts(), |policy| policy.set_priority(task, prio))
    }
}
