//! Random calls on several CPUs, as `axtask` makes them. An IPI may be late or lost. After each call
//! the counts of the ready tasks agree with the queues. After all IPIs have arrived, no CPU idles
//! beside a ready task.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::vec::Vec;

use proptest::prelude::*;

use super::super::placement::may_have;
use super::*;
use crate::PerThread;
use crate::task::Reservation;
use sched_core::clock::VirtualClock;
use sched_smp::{ThreadSmpState, ThreadSmpStatePinned, simulated_machine};

/// The CPUs that a task may run on, as a bit mask.
type Mask = AtomicU64;
type Sched<S> = SmpPbgScheduler<Mask, VirtualClock, PerThread, S>;

thread_local! {
    static HERE: Cell<(usize, *const ())> = const { Cell::new((0, ptr::null())) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static IS_LOCKED: Cell<fn() -> bool> = const { Cell::new(|| false) };
}

/// Addresses of the idle task and of helpers, which no task has.
static NO_TASKS: [u64; 2] = [0; 2];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Ready,
    Blocked,
    Gone,
}

#[derive(Default, Clone)]
struct Cpu {
    current: Option<usize>,
    /// A helper runs on the CPU instead of `current`.
    helps: bool,
    leaving: Option<usize>,
    pending: bool,
    resched: bool,
    /// Its next call is the pick.
    picks: bool,
}

struct Walk<S: SmpStateSource + 'static> {
    scheds: Vec<Sched<S>>,
    tasks: Vec<(Handle<Mask>, State)>,
    stays: Vec<Option<usize>>,
    cpus: Vec<Cpu>,
    may_idle: bool,
    is_followed: bool,
    now: u64,
}

impl<S: SmpStateSource + 'static> Walk<S> {
    fn all() -> &'static System<Mask, VirtualClock, PerThread, S> {
        Sched::<S>::connected().unwrap().1
    }

    fn new(n: usize) -> Self {
        PerThread::renew();
        ThreadSmpState::renew();
        SENT.take();
        let machine = Machine {
            this_cpu: || HERE.get().0,
            current: || HERE.get().1,
            interrupt: |cpu| {
                assert!(!IS_LOCKED.get()(), "interrupts are sent without the lock");
                SENT.with_borrow_mut(|sent| sent.push(cpu));
            },
            // SAFETY: the callers pass the tasks below.
            may_run: |task, cpu| unsafe { (*task.cast::<Mask>()).load(Relaxed) } >> cpu & 1 != 0,
            ..simulated_machine(n)
        };
        // SAFETY: the control and the state are new, and no other code finds them.
        unsafe { Sched::<S>::connect(machine) };
        IS_LOCKED.set(|| Self::all().locked.is_locked());
        let mut walk = Self {
            scheds: (0..n).map(|_| Sched::<S>::new()).collect(),
            tasks: Vec::new(),
            stays: Vec::new(),
            cpus: vec![Cpu::default(); n],
            may_idle: false,
            is_followed: false,
            now: 0,
        };
        (0..n).for_each(|c| walk.pick(c));
        walk
    }

    fn at(&self, t: usize) -> *const () {
        Arc::as_ptr(&self.tasks[t].0).cast()
    }

    /// Lets this CPU make the next call.
    fn here(&mut self, c: usize) {
        self.now += 1;
        VirtualClock::set(self.now);
        let cpu = &mut self.cpus[c];
        if !cpu.picks {
            cpu.leaving = None;
        }
        let at = match (cpu.helps, cpu.current) {
            (true, _) => ptr::from_ref(&NO_TASKS[1]).cast(),
            (_, None) => ptr::from_ref(&NO_TASKS[0]).cast(),
            (_, Some(t)) => self.at(t),
        };
        HERE.set((c, at));
    }

    fn deliver_ipis(&mut self) {
        for c in SENT.take() {
            self.cpus[c].pending = true;
        }
        self.check();
    }

    fn pick(&mut self, c: usize) {
        self.here(c);
        // The put that kept the task has checked its affinity.
        let was_kept = Self::all().grants[c].has_kept();
        let next = self.scheds[c].pick_next_task();
        let before = self.cpus[c].current.take();
        self.cpus[c].picks = false;
        self.cpus[c].resched = false;
        self.cpus[c].helps = false;
        if let Some(next) = next {
            let t = (self.tasks.iter()).position(|(task, _)| Arc::ptr_eq(task, &next));
            let t = t.unwrap();
            assert_eq!(self.tasks[t].1, State::Ready, "picked on {c}: {t}");
            let elsewhere = |(other, cpu): (usize, &Cpu)| {
                other != c && (cpu.leaving == Some(t) || cpu.current == Some(t))
            };
            assert!(
                !self.cpus.iter().enumerate().any(elsewhere),
                "{t} is still on a CPU"
            );
            let stays = self.stays[t].take();
            assert!(stays.is_none_or(|stays| stays == c));
            let may_run = next.inner().load(Relaxed) >> c & 1 != 0 || stays == Some(c);
            assert!(
                may_run || before == Some(t) || was_kept,
                "{t} may not run on {c}"
            );
            self.tasks[t].1 = State::Running;
            self.cpus[c].current = Some(t);
        }
        if before != self.cpus[c].current {
            self.cpus[c].leaving = before;
        }
        self.deliver_ipis();
        if self.cpus[c].current.is_none() {
            let machine = Sched::<S>::connected().unwrap().0;
            let mut ready = self.ready();
            assert!(
                !ready.any(|task| may_have(machine, task, c)),
                "{c} idles beside a ready task"
            );
        }
    }

    /// Returns the ready tasks.
    fn ready(&self) -> impl Iterator<Item = &Handle<Mask>> {
        let ready = (self.tasks.iter()).filter(|(_, state)| *state == State::Ready);
        ready.map(|(task, _)| task).filter(|task| {
            let at = Arc::as_ptr(task).cast_mut();
            !(Self::all().grants.iter()).any(|own| own.is_kept_at(at))
        })
    }

    fn put(&mut self, c: usize, preempt: bool) {
        let t = self.cpus[c].current.unwrap();
        self.here(c);
        self.tasks[t].1 = State::Ready;
        if preempt && S::PREEMPTED_STAY {
            self.stays[t] = Some(c);
        }
        let task = self.tasks[t].0.clone();
        let member = self.scheds[c].member.as_ref();
        let is_alone = !preempt && member.is_some_and(|member| member.is_alone(&task));
        self.scheds[c].put_prev_task(task, preempt);
        self.cpus[c].picks = true;
        self.deliver_ipis();
        if is_alone {
            let machine = Sched::<S>::connected().unwrap().0;
            assert!(
                !self.ready().any(|task| may_have(machine, task, c)),
                "{t} goes on, though a task waits"
            );
        }
    }

    fn interrupt(&mut self, c: usize) {
        self.here(c);
        self.cpus[c].pending = false;
        let Some(t) = self.cpus[c].current else {
            return self.pick(c);
        };
        let task = self.tasks[t].0.clone();
        self.cpus[c].resched |= self.scheds[c].task_tick(&task);
        self.deliver_ipis();
    }

    fn step(&mut self, op: u8, c: usize, t: usize, q: usize, mask: u64) {
        let n = self.cpus.len();
        let (c, q) = (c % n, q % n);
        if self.cpus[c].picks {
            return self.pick(c);
        }
        let current = self.cpus[c].current;
        let t = (!self.tasks.is_empty()).then(|| t % self.tasks.len());
        let mask = match mask & ((1 << n) - 1) {
            0 => (1 << n) - 1,
            mask => mask,
        };
        match (op, current) {
            (0, _) if self.tasks.len() < 9 => {
                let task = Arc::new(PbgTask::new(Mask::new(mask)));
                self.tasks.push((task.clone(), State::Ready));
                self.stays.push(None);
                self.here(c);
                self.scheds[q].add_task(task);
                self.deliver_ipis();
                if current.is_none() {
                    self.pick(c); // it was in an interrupt
                }
            }
            (1..=4, Some(_)) => self.put(c, false),
            (5, Some(t)) => {
                self.here(c);
                self.tasks[t].1 = State::Blocked;
                self.cpus[c].picks = true;
            }
            (6 | 7, _) => {
                let Some(t) = t else { return };
                let on = |cpu: &Cpu| cpu.leaving == Some(t) || cpu.current == Some(t);
                if self.tasks[t].1 == State::Blocked && !self.cpus.iter().any(on) {
                    self.here(c);
                    self.tasks[t].1 = State::Ready;
                    let task = self.tasks[t].0.clone();
                    self.scheds[q].put_prev_task(task, false);
                    self.deliver_ipis();
                    if current.is_none() {
                        self.pick(c); // it was in an interrupt
                    }
                }
            }
            (8, _) => self.interrupt(c),
            (9 | 10, _) if self.cpus[c].pending => self.interrupt(c),
            (11, _) if self.cpus[c].pending => {
                self.cpus[c].pending = false;
                self.may_idle = true;
            }
            (12, Some(_)) if self.cpus[c].resched => self.put(c, true),
            (13, Some(t)) => {
                // A helper moves it to another CPU.
                let others = ((1 << n) - 1) & !(1 << c);
                self.tasks[t].0.inner().store(others, Relaxed);
                self.here(c);
                self.tasks[t].1 = State::Ready;
                self.cpus[c].current = None;
                self.cpus[c].helps = true;
                self.here(c);
                let task = self.tasks[t].0.clone();
                self.scheds[if q == c { (c + 1) % n } else { q }].put_prev_task(task, false);
                self.cpus[c].picks = true;
                self.deliver_ipis();
            }
            (14, _) => {
                let Some(t) = t else { return };
                self.here(c);
                let task = self.tasks[t].0.clone();
                let removed = self.scheds[c].remove_task(&task);
                if removed.is_some() {
                    assert_eq!(self.tasks[t].1, State::Ready);
                    self.tasks[t].1 = State::Gone;
                }
                // A task that is kept between its put and its pick is not found.
                let at = Arc::as_ptr(&task);
                let kept = Self::all().grants.iter().any(|own| own.is_kept_at(at));
                assert!(kept || self.tasks[t].1 != State::Ready, "{t} was not found");
                self.check();
            }
            (15, _) => {
                let Some(t) = t else { return };
                self.tasks[t].0.inner().store(mask, Relaxed);
                self.may_idle = true;
            }
            (16, Some(_)) => {
                self.here(c);
                let control = PerThread::control();
                if q.is_multiple_of(2) {
                    let _ = control.measure_start();
                } else {
                    let _ = control.measure_end_by::<VirtualClock>();
                    if !self.is_followed {
                        self.is_followed = control.start_pbg().is_ok();
                    }
                }
            }
            (17, Some(t)) => {
                self.here(c);
                self.tasks[t].1 = State::Gone; // it exits
                self.cpus[c].picks = true;
            }
            _ => self.now += mask,
        }
    }

    /// Asserts COUNTED, PLACED and LEFT.
    fn check(&self) {
        let all = Self::all();
        let locked = all.locked.lock();
        let ready: Vec<*const PbgTask<Mask>> = locked.engine.ready().map(ptr::from_ref).collect();
        assert_eq!(ready.len(), self.ready().count(), "no task is lost");
        // SAFETY: the tasks are in a queue.
        let held: Vec<Reservation> = ready
            .iter()
            .map(|&task| unsafe { &*task }.policy_state().reservation())
            .collect();
        let free = held.iter().filter(|held| held.only().is_none()).count();
        assert_eq!(
            (locked.placement.free(), all.free.load(Relaxed)),
            (free as u32, free as u32)
        );
        for c in 0..self.cpus.len() {
            let known = &locked.placement.cpus[c];
            let here = held
                .iter()
                .filter(|held| held.only().is_some_and(|(cpu, _)| cpu == c));
            assert_eq!(known.held, here.count() as u32);
            assert!(
                all.grants[c].held.load(Relaxed) >= known.held,
                "never too low"
            );
            for task in [known.left, known.asked_for] {
                assert!(task.is_null() || ready.contains(&task));
            }
            assert!(known.asked || known.asked_for.is_null());
        }
        for (&task, &held) in ready.iter().zip(&held) {
            let awaited_by = |c: &usize| held == Reservation::reserved_for(*c);
            if let Some(c) = (0..self.cpus.len()).find(awaited_by) {
                let known = &locked.placement.cpus[c];
                assert!(known.asked && known.idles && ptr::eq(known.asked_for, task));
            }
        }
        assert_eq!(locked.placement.to_interrupt, 0);
    }

    fn settle(&mut self) {
        if self.may_idle {
            for _ in 0..2 {
                for c in 0..self.cpus.len() {
                    while self.cpus[c].picks {
                        self.pick(c);
                    }
                    self.interrupt(c);
                }
            }
        }
        for round in 0.. {
            assert!(round < 100, "interrupts without an end");
            let busy = (0..self.cpus.len())
                .find(|&c| self.cpus[c].picks || self.cpus[c].pending || self.cpus[c].resched);
            let Some(c) = busy else { break };
            if self.cpus[c].picks {
                self.pick(c);
            } else if self.cpus[c].pending {
                self.interrupt(c);
            } else {
                self.put(c, true);
            }
        }
        for (c, cpu) in self.cpus.iter().enumerate() {
            for (t, (task, state)) in self.tasks.iter().enumerate() {
                let may_run = task.inner().load(Relaxed) >> c & 1 != 0;
                let beside = *state == State::Ready && may_run && self.stays[t].is_none();
                assert!(
                    cpu.current.is_some() || !beside,
                    "{c} idles beside {t}: {:?}",
                    task.policy_state().reservation()
                );
            }
        }
    }
}

fn walked<S: SmpStateSource + 'static>(
    n: usize,
    ops: &[(u8, usize, usize, usize, u64)],
    all: bool,
) {
    let mut walk = Walk::<S>::new(n);
    for &(op, c, t, q, mask) in ops {
        // Replace the steps that let an idle CPU wait for its tick.
        let op = if !all && matches!(op, 11 | 15) { 1 } else { op };
        walk.step(op, c, t, q, mask);
    }
    walk.settle();
    drop(walk);
    // SAFETY: the walk is dropped, and no other code uses the state.
    unsafe { Sched::<S>::retire() };
    PerThread::retire();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400,
        failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn placement_agrees_with_the_queues_after_random_calls(
        n in 2..=4usize, all in any::<bool>(), stay in any::<bool>(),
        ops in prop::collection::vec((0..20u8, 0..4usize, 0..9usize, 0..4usize, 0..16u64), 0..160),
    ) {
        if stay { walked::<ThreadSmpStatePinned>(n, &ops, all) } else { walked::<ThreadSmpState>(n, &ops, all) }
    }
}
