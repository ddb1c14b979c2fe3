//! The helpers, which work under `axtask` only.

extern crate alloc;

use alloc::string::String;
use core::{ops::Deref, time::Duration};

use axsched_ext::delegated::{self, Agent, DelegatedTask, Enclave, Refusal, Settings, TaskId};
use axtask::{AxCpuMask, AxTaskRef, TaskInner};
use sched_tests_common::{
    Task,
    platform::{self, println},
    results::{Phase, Setting},
    runner::{print_heading, setting},
    work,
};

/// The stack of an agent. A policy is ordinary code, which may need much.
const STACK_BYTES: usize = 64 * 1024;

/// Calls `with` with the calling task. Returns `None` under any other scheduler.
pub fn current<R>(with: impl FnOnce(&DelegatedTask<TaskInner>) -> R) -> Option<R> {
    let current = axtask::current();
    let task: &AxTaskRef = &current;
    delegated::of(task.deref()).map(with)
}

/// Returns true if the scheduler of this image is the delegated one.
pub fn is_delegated() -> bool {
    current(|_| ()).is_some()
}

/// Returns the default settings.
pub fn settings() -> Settings {
    Settings::new(platform::counter_hz() / 100)
}

/// Returns all CPUs (bit mask).
pub fn all_cpus() -> u64 {
    u64::MAX >> (64 - platform::cpus())
}

/// Makes an enclave, as soon as the CPUs have joined.
///
/// # Panics
/// If it is refused for another reason.
pub fn enclave(cpus: u64, settings: Settings) -> Enclave {
    loop {
        match Enclave::new(cpus, settings) {
            Ok(enclave) => return enclave,
            Err(Refusal::Cpu(_) | Refusal::NoEnclave) => platform::sleep(Duration::from_millis(1)),
            Err(refusal) => panic!("{refusal}"),
        }
    }
}

/// Spawns a task that runs on one CPU only.
pub fn spawn_on(cpu: usize, name: &str, body: impl FnOnce() + Send + 'static) -> AxTaskRef {
    let task = TaskInner::new(body, String::from(name), STACK_BYTES);
    task.set_cpumask(AxCpuMask::one_shot(cpu));
    axtask::spawn_task(task)
}

/// Spawns the agent of an enclave on one of its CPUs. If the enclave has an agent, this one replaces
/// it.
pub fn spawn_agent(
    enclave: Enclave,
    cpu: usize,
    serve: impl FnOnce(&mut Agent) + Send + 'static,
) -> AxTaskRef {
    spawn_on(cpu, "agent", move || {
        // The enclave may have ended meanwhile.
        if let Some(Ok(mut agent)) = current(|task| enclave.replace(task, cpu)) {
            serve(&mut agent);
        }
    })
}

/// Delegates the calling task, which joins by a yield. Returns `None` if it is refused.
pub fn join(enclave: Enclave) -> Option<TaskId> {
    join_with(enclave, |_| ())
}

/// Delegates the calling task as [`join`] does, and calls `with` before it joins.
pub fn join_with(enclave: Enclave, with: impl FnOnce(TaskId)) -> Option<TaskId> {
    let joined = current(|task| enclave.delegate(task))?.ok();
    joined.map(with);
    axtask::yield_now();
    joined
}

/// Returns a task that computes for `20 * n` ms, divided by `scale`, and yields after each. It joins the
/// enclave, if there is one.
pub fn yielding_task(n: u64, scale: u64, enclave: Option<Enclave>) -> Task {
    let rounds = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
    Task::new(alloc::format!("task{n}"), move |ctx| {
        enclave.and_then(join);
        (0..(20 * n / scale).max(1)).all(|_| {
            let right = work::spin(1, rounds) == work::jump(1, rounds);
            ctx.yield_now();
            right
        })
    })
}

/// Prints the heading of a program that runs under this scheduler only, and connects the CPUs. Returns
/// `None` under any other.
pub fn begin(app: &'static str) -> Option<Setting<'static>> {
    let setting = setting(app);
    print_heading(&setting);
    platform::connect_cpus();
    if !is_delegated() {
        println!("This needs FEATURES=sched_delegated.\n");
        return None;
    }
    Some(setting)
}

/// Returns a phase that has no figures.
pub fn phase(name: &'static str, pass: bool) -> Phase {
    Phase {
        name,
        pass,
        ..Phase::default()
    }
}
