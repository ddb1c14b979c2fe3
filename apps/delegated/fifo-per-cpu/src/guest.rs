//! The tasks, and an agent for each CPU.

extern crate alloc;

use alloc::vec::Vec;

use axsched_ext::delegated::{Enclave, serve};
use delegated_common::{enclave, is_delegated, settings, spawn_agent, yielding_task};
use delegated_fifo::Fifo;
use sched_tests_common::{App, Task, platform, run};

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
    let cpus = 0..if is_delegated() { platform::cpus() } else { 0 };
    let enclaves: Vec<_> = cpus.map(served).collect();
    let of = |n: u64| enclaves.iter().cycle().nth(n as usize).copied();
    (1..=8).map(|n| yielding_task(n, scale, of(n))).collect()
}

pub fn main() {
    run(&App::new("fifo-per-cpu", tasks));
}
