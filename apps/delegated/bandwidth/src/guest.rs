//! The tasks, and the agent that serves them.

extern crate alloc;

use alloc::{format, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicBool, Ordering::*},
    time::Duration,
};

use axsched_ext::clock::{Clock, CpuCounter};
use axsched_ext::delegated::{Agent, AgentPolicy, Kind, Kinds, Settings, decide};
use delegated_bandwidth::Bandwidth;
use delegated_common::{
    Class, all_cpus, begin, enclave, join, join_with, phase, settings, spawn_agent,
};
use sched_tests_common::{
    config::SCALE,
    platform::{self, now_ns, println},
    runner::print_lines,
    work,
};

const TASKS: u64 = 8;
const PERIOD_MS: u64 = 100;
const PERCENT: u64 = 60;
/// The work of the group on each CPU.
const WORK_MS: u64 = 1_200;

static GROUP: Class = Class::new();

/// Serves an enclave. While all tasks wait for the next period, the agent sleeps.
fn serve(agent: &mut Agent) {
    let period = platform::counter_hz() * PERIOD_MS / 1_000;
    let cpus = platform::cpus();
    let budget = period * cpus as u64 * PERCENT / 100;
    let now = || CpuCounter::now().0;
    let mut policy = Bandwidth::new(period, budget, 0..cpus, now, &GROUP);
    loop {
        while let Some(message) = agent.read() {
            policy.told(message);
        }
        decide(agent, &mut policy);
        let waited = match policy.sleeps_until() {
            None => agent.wait(axtask::yield_now),
            Some(until) => agent.wait(|| {
                let left_us = until.saturating_sub(now()) * 1_000_000 / platform::counter_hz();
                axtask::sleep(Duration::from_micros(left_us));
            }),
        };
        if waited.is_err() {
            return;
        }
    }
}

/// Computes for this long.
fn compute(ms: u64) {
    for _ in 0..ms {
        let _ = work::spin(1, 1_000_000 / work::INSTRUCTIONS_PER_ROUND);
    }
}

pub fn main() {
    let Some(setting) = begin("bandwidth") else {
        return;
    };
    let settings = Settings {
        limit: None,
        sends: Kinds::ALL,
        wakes: Kinds::READY.and(Kind::TICK),
        ..settings()
    };
    let enclave = enclave(all_cpus(), settings);
    let agent = spawn_agent(enclave, 0, serve);
    let cpus = platform::cpus() as u64;
    let work_ms = WORK_MS * cpus / TASKS / SCALE;
    let begin_ns = now_ns();
    let group: Vec<_> = (0..TASKS)
        .map(|n| {
            let body = move || {
                join_with(enclave, |task| GROUP.add(task));
                compute(work_ms);
            };
            axtask::spawn_raw(body, format!("limited{n}"), 32 * 1024)
        })
        .collect();
    let has_ended = Arc::new(AtomicBool::new(false));
    let free = {
        let has_ended = Arc::clone(&has_ended);
        let body = move || {
            join(enclave);
            while !has_ended.load(Relaxed) {
                compute(1);
                axtask::sleep(Duration::from_millis(9));
            }
        };
        axtask::spawn_raw(body, "free".into(), 32 * 1024)
    };
    for task in group {
        task.join();
    }
    let took_ms = (now_ns() - begin_ns) / 1_000_000;
    has_ended.store(true, Relaxed);
    free.join();
    enclave.end();
    agent.join();
    // The budget of the first period is there at once.
    let least_ms = (work_ms * TASKS / cpus * 100 / PERCENT).saturating_sub(PERIOD_MS);
    let pass = took_ms >= least_ms;
    println!(
        "{work_ms} ms in each of {TASKS} tasks, {PERCENT} % of {cpus} CPUs: {took_ms} ms, at least {least_ms}\n"
    );
    print_lines(&setting, &[phase("limited", pass)]);
}
