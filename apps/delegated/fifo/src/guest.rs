//! The tasks, and the agent that serves them.

extern crate alloc;

use alloc::{format, vec::Vec};

use axsched_ext::delegated::{Enclave, serve};
use delegated_common::{all_cpus, enclave, is_delegated, join, settings, spawn_agent};
use delegated_fifo::Fifo;
use sched_tests_common::{App, Task, run, work};

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
    let rounds = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
    let enclave = is_delegated().then(served);
    let task = |n: u64| {
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
    run(&App::new("fifo", tasks));
}
