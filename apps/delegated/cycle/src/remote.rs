//! Counts a decision for another CPU: what it takes there, and at the agent.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use axsched_ext::clock::{Clock, CpuCounter};
use axsched_ext::delegated::{Agent, Commit, Settings, TaskId};
use delegated_common::{enclave, join, settings, spawn_agent, spawn_on};
use sched_tests_common::platform::{connect_cpus, println};

/// The numbers of tasks that are ready beside the two that run in turn.
const SPINNERS: [usize; 3] = [0, 5, 10];
/// The decisions that are measured.
const DECISIONS: usize = 200;
/// The time between a switch and the next decision.
const PAUSE: u64 = 20_000;

/// The task that runs on CPU 1, by its identity.
static RUNS: AtomicU64 = AtomicU64::new(0);
/// The time at which the last decision was made.
static MADE: AtomicU64 = AtomicU64::new(0);
/// The least times from a decision until its task runs: on an idle CPU, and in place of another task after
/// that had taken its own place.
static TARGETS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Returns the time in counts. Under `-icount shift=0` a count of x86_64 is an instruction.
fn now() -> u64 {
    CpuCounter::now().0
}

/// Reads the time until the end, and notes the switches to this task.
fn spin(own: TaskId) {
    let own = u64::from(own.to_bits());
    let mut was_preempted = false;
    while !HAS_ENDED.load(Relaxed) {
        let before = RUNS.load(Relaxed);
        if before != own {
            let taken = now() - MADE.load(Relaxed);
            if before == 0 {
                TARGETS[0].fetch_min(taken, Relaxed);
            } else if was_preempted {
                TARGETS[1].fetch_min(taken, Relaxed);
            }
            was_preempted = true;
            RUNS.store(own, Relaxed);
        }
    }
}

/// Lets two tasks run in turn on CPU 1. Returns the least time that a decision took here.
fn decide_in_turn(agent: &mut Agent, tasks: usize) -> u64 {
    let mut ready = Vec::new();
    while ready.len() < tasks {
        while let Some(message) = agent.read() {
            if message.kind().is_ready() && !ready.contains(&message.task()) {
                ready.push(message.task());
            }
        }
        core::hint::spin_loop();
    }
    let (mut least, mut stamp) = (u64::MAX, u64::MAX);
    for n in 0..DECISIONS {
        let task = ready[n % 2];
        let commit = Commit {
            preempts: true,
            ..Commit::new(task, 1)
        };
        let begin = now();
        let committed = agent.commit(commit);
        let end = now();
        MADE.store(end, Relaxed);
        core::hint::spin_loop();
        assert!(committed.is_ok(), "{committed:?}");
        least = least.min(end - begin);
        let begin = now();
        stamp = stamp.min(now() - begin);
        while RUNS.load(Relaxed) != u64::from(task.to_bits()) {
            core::hint::spin_loop();
        }
        let until = now() + PAUSE + n as u64; // at another step of the loops
        while now() < until {
            while agent.read().is_some() {}
            core::hint::spin_loop();
        }
    }
    least - stamp
}

/// Prints the cost at the agent and on the other CPU.
pub fn measure() {
    connect_cpus();
    println!("instructions of a decision for another CPU, by the number of ready tasks beside\n");
    println!("{:10}{:>10}{:>10}{:>10}", "beside", "agent", "idle", "busy");
    for spinners in SPINNERS {
        HAS_ENDED.store(false, Relaxed);
        RUNS.store(0, Relaxed);
        for least in &TARGETS {
            least.store(u64::MAX, Relaxed);
        }
        let settings = Settings {
            limit: None,
            ..settings()
        };
        let enclave = enclave(3, settings);
        let body = move || {
            let joined = join(enclave);
            spin(joined.expect("there is a slot"));
        };
        let tasks: Vec<_> = (0..2 + spinners)
            .map(|_| spawn_on(1, "spins", body))
            .collect();
        let cost = alloc::sync::Arc::new(AtomicU64::new(0));
        let agent = spawn_agent(enclave, 0, {
            let (cost, count) = (cost.clone(), 2 + spinners);
            move |agent| {
                cost.store(decide_in_turn(agent, count), Relaxed);
                HAS_ENDED.store(true, Relaxed);
            }
        });
        agent.join();
        for task in tasks {
            task.join();
        }
        let [idle, busy] = TARGETS.each_ref().map(|least| least.load(Relaxed));
        let agent = cost.load(Relaxed);
        println!("{spinners:<10}{agent:>10}{idle:>10}{busy:>10}");
    }
}
