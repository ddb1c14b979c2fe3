//! The tasks, and the agent that serves them.

extern crate alloc;

use alloc::{format, vec::Vec};

use axsched_ext::clock::{Clock, CpuCounter};
use axsched_ext::delegated::{Enclave, Kind, Kinds, Settings, serve};
use delegated_common::{Class, all_cpus, enclave, is_delegated, join_with, settings, spawn_agent};
use delegated_shinjuku::Shinjuku;
use sched_tests_common::{App, Task, platform, run, work};

/// The tasks of the second class.
static SECOND: Class = Class::new();

/// Makes an enclave of all CPUs, which an agent on CPU 0 serves. Each tick and each task that is ready wakes
/// the agent.
fn served() -> Enclave {
    let settings = Settings {
        sends: Kinds::ALL,
        wakes: Kinds::READY.and(Kind::TICK),
        ..settings()
    };
    let enclave = enclave(all_cpus(), settings);
    spawn_agent(enclave, 0, |agent| {
        let quantum = platform::counter_hz() / 100;
        let mut policy = Shinjuku::new(quantum, all_cpus(), || CpuCounter::now().0, &SECOND);
        serve(agent, &mut policy, axtask::yield_now);
    });
    enclave
}

/// Two tasks that compute for long, six for a short time, and two of the second class.
fn tasks(scale: u64) -> Vec<Task> {
    let rounds = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
    let enclave = is_delegated().then(served);
    let task = |name: &str, n: u64, work_ms: u64| {
        let is_second = name == "second";
        Task::new(format!("{name}{n}"), move |ctx| {
            if let Some(enclave) = enclave {
                join_with(enclave, |task| {
                    if is_second {
                        SECOND.add(task);
                    }
                });
            }
            let is_right = |_| work::spin(1, rounds) == work::jump(1, rounds);
            let is_done = (0..(work_ms / scale).max(1)).all(is_right);
            ctx.yield_now();
            is_done
        })
    };
    let second = (1..=2).map(|n| task("second", n, 100));
    let long = (1..=2).map(|n| task("long", n, 200));
    let short = (1..=6).map(|n| task("short", n, 4));
    second.chain(long).chain(short).collect()
}

pub fn main() {
    run(&App::new("shinjuku", tasks));
}
