//! The tasks, and an agent for each CPU.

extern crate alloc;

use alloc::{format, vec::Vec};

use axsched_ext::delegated::{Enclave, serve};
use delegated_common::{enclave, is_delegated, join, settings, spawn_agent};
use delegated_fifo::Fifo;
use sched_tests_common::{App, Task, platform, run, work};

/// Makes an enclave of one CPU, which an agent there serves.
fn served(cpu: usize) -> Enclave {
    let enclave = enclave(1 << cpu, settings());
    spawn_agent(enclave, cpu, |agent| {
        serve(agent, &mut Fifo::default(), axtask::yield_now);
    });
    enclave
}

/// The tasks, in the enclaves in turn if this is the delegated scheduler.
fn tasks(scale: u64) -> Vec<Task> {
    let rounds = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
    let cpus = 0..if is_delegated() { platform::cpus() } else { 0 };
    let enclaves: Vec<_> = cpus.map(served).collect();
    let task = |n: u64| {
        let enclave = enclaves.iter().cycle().nth(n as usize).copied();
        Task::new(format!("task{n}"), move |ctx| {
            enclave.and_then(join);
            (0..(20 * n / scale).max(1)).all(|_| {
                let right = work::spin(1, rounds) == work::jump(1, rounds);
                ctx.yield_now();
                right
            })
        })
    };
    (1..=8).map(task).collect()
}

pub fn main() {
    run(&App::new("fifo-per-cpu", tasks));
}
