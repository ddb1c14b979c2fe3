//! The rounds, and the agent that serves them.

use alloc::{format, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering::*};

use axsched_ext::delegated::{Enclave, Settings, serve};
use axstd::sync::Mutex;
use delegated_common::{all_cpus, begin, enclave, join, phase, settings, spawn_agent};
use sched_tests_common::{
    config::SCALE,
    platform::{now_ns, println},
    runner::print_lines,
    work,
};

use crate::policy::Planned;

const TASKS: u64 = 8;

/// Runs the tasks once. Returns the average turnaround, in ns.
fn run_round(enclave: Enclave) -> u64 {
    let rounds = 1_000_000 / work::INSTRUCTIONS_PER_ROUND;
    let sum_ns = Arc::new(AtomicU64::new(0));
    let begin_ns = now_ns();
    let tasks: Vec<_> = (1..=TASKS)
        .rev()
        .map(|n| {
            let sum_ns = Arc::clone(&sum_ns);
            let body = move || {
                join(enclave);
                for _ in 0..(20 * n / SCALE).max(1) {
                    assert_eq!(work::spin(1, rounds), work::jump(1, rounds));
                    axtask::yield_now();
                }
                sum_ns.fetch_add(now_ns() - begin_ns, Relaxed);
            };
            axtask::spawn_raw(body, format!("task{n}"), 32 * 1024)
        })
        .collect();
    for task in tasks {
        task.join();
    }
    sum_ns.load(Relaxed) / TASKS
}

/// Runs the tasks once under this policy. Returns the average turnaround, in ns, and the policy.
fn serve_round(mut policy: Planned) -> (u64, Planned) {
    // By a plan a long task waits for all that are shorter, so there is no watchdog.
    let settings = Settings {
        limit: None,
        ..settings()
    };
    let enclave = enclave(all_cpus(), settings);
    let served = Arc::new(Mutex::new(None));
    let agent = spawn_agent(enclave, 0, {
        let served = Arc::clone(&served);
        move |agent| {
            serve(agent, &mut policy, axtask::yield_now);
            *served.lock() = Some(policy);
        }
    });
    let average_ns = run_round(enclave);
    enclave.end();
    agent.join();
    let policy = served.lock().take().expect("the agent has ended");
    (average_ns, policy)
}

pub fn main() {
    let Some(setting) = begin("planned") else {
        return;
    };
    println!("average turnaround, ms\n");
    let (measured_ns, policy) = serve_round(Planned::default());
    println!("measured {:10.1}", measured_ns as f64 / 1e6);
    let (planned_ns, _) = serve_round(policy.plan());
    println!("planned  {:10.1}\n", planned_ns as f64 / 1e6);
    let is_ahead = planned_ns < measured_ns;
    print_lines(
        &setting,
        &[phase("measured", true), phase("planned", is_ahead)],
    );
}
