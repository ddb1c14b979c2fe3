//! The tasks, and the agent that serves them.

extern crate alloc;

use alloc::vec::Vec;

use axsched_ext::delegated::{Enclave, serve};
use delegated_common::{all_cpus, enclave, is_delegated, settings, spawn_agent, yielding_task};
use delegated_fifo::Fifo;
use sched_tests_common::{App, Task, run};

/// Makes an enclave of all CPUs, which an agent on CPU 0 serves.
fn served() -> Enclave {
    let enclave = enclave(all_cpus(), settings());
    spawn_agent(enclave, 0, |agent| {
        serve(agent, &mut Fifo::default(), axtask::yield_now);
    });
    enclave
}

/// The tasks, in the enclave if this is the delegated scheduler.
fn tasks(scale: u64) -> Vec<Task> {
    let enclave = is_delegated().then(served);
    (1..=8).map(|n| yielding_task(n, scale, enclave)).collect()
}

pub fn main() {
    run(&App::new("fifo", tasks));
}
