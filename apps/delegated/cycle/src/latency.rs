//! Measures in real time how long a task on another CPU, which idles, waits after a decision or a wake.

use alloc::{format, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};

use axsched_ext::delegated::{Agent, Commit, Settings, State, Status, TaskId};
use axstd::sync::Mutex;
use axtask::WaitQueue;
use delegated_common::{enclave, join, settings, spawn_agent, spawn_on};
use sched_tests_common::platform::{now_ns, println};

/// The number of times that are measured.
const TIMES: usize = 500;
/// The pause before each, in which the CPU becomes idle.
const PAUSE_NS: u64 = 300_000;
/// The upper ends of the bins, in us; the last bin has the rest.
const BINS_US: [u64; 9] = [10, 20, 50, 100, 150, 200, 500, 1_000, 10_000];

/// The task that is measured.
#[derive(Default)]
struct Sample {
    /// The task blocks, and does not yield.
    blocks: bool,
    wakes: WaitQueue,
    has_begun: AtomicBool,
    is_woken: AtomicBool,
    began_ns: AtomicU64,
    has_ended: AtomicBool,
    waits_ns: Mutex<Vec<u64>>,
    /// The length of `waits_ns`.
    count: AtomicUsize,
}

impl Sample {
    fn task(&self) {
        self.has_begun.store(true, Release);
        while !self.has_ended.load(Acquire) {
            match self.blocks {
                true => self.wakes.wait_until(|| self.is_woken.swap(false, AcqRel)),
                false => axtask::yield_now(),
            }
            let end_ns = now_ns();
            // 0 is a turn that was not measured.
            let began_ns = self.began_ns.swap(0, AcqRel);
            if began_ns != 0 {
                self.waits_ns.lock().push(end_ns - began_ns);
                self.count.fetch_add(1, AcqRel);
            }
        }
    }

    /// Reads messages until the task is ready, and returns it.
    fn next_ready(agent: &mut Agent) -> TaskId {
        loop {
            match agent.read() {
                Some(message) if message.kind().is_ready() => return message.task(),
                _ => core::hint::spin_loop(),
            }
        }
    }

    /// Waits until the task waits, and then for the pause.
    fn settle(&self, agent: &mut Agent, task: TaskId) {
        let waits = |status: Status| match self.blocks {
            true => status.state() == State::Blocked,
            false => status.is_ready(),
        };
        while !agent.status(task).is_some_and(waits) {
            core::hint::spin_loop();
        }
        let until_ns = now_ns() + PAUSE_NS;
        while now_ns() < until_ns {
            core::hint::spin_loop();
        }
        while agent.read().is_some() {}
    }

    fn serve(&self, agent: &mut Agent) {
        let mut task = Self::next_ready(agent);
        // Once without a measure, until it is in its loop.
        assert!(agent.commit(Commit::new(task, 1)).is_ok());
        while !self.has_begun.load(Acquire) {
            core::hint::spin_loop();
        }
        for n in 0..TIMES {
            while self.count.load(Acquire) < n {
                core::hint::spin_loop();
            }
            self.settle(agent, task);
            if self.blocks {
                self.is_woken.store(true, Release);
            }
            self.began_ns.store(now_ns(), Release);
            if self.blocks {
                self.wakes.notify_one(false);
                task = Self::next_ready(agent);
            }
            let committed = agent.commit(Commit::new(task, 1));
            assert!(committed.is_ok(), "{committed:?}");
        }
        while self.count.load(Acquire) < TIMES {
            core::hint::spin_loop();
        }
        self.has_ended.store(true, Release);
        self.is_woken.store(true, Release);
        self.wakes.notify_one(false);
    }
}

fn measure_one(name: &str, blocks: bool) {
    let sample = Arc::new(Sample {
        blocks,
        ..Sample::default()
    });
    let settings = Settings {
        limit: None,
        ..settings()
    };
    let enclave = enclave(3, settings);
    let task = spawn_on(1, "sample", {
        let sample = Arc::clone(&sample);
        move || {
            let joined = join(enclave);
            assert!(joined.is_some(), "there is a slot");
            sample.task();
        }
    });
    let agent = spawn_agent(enclave, 0, {
        let sample = Arc::clone(&sample);
        move |agent| sample.serve(agent)
    });
    agent.join();
    task.join();
    let mut waits_ns = sample.waits_ns.lock();
    waits_ns.sort_unstable();
    let of_100 =
        |percent: usize| waits_ns[(waits_ns.len() * percent / 100).min(waits_ns.len() - 1)];
    println!(
        "\n{name}, us: median {:.1}, 90 % {:.1}, 99 % {:.1}, of {}",
        of_100(50) as f64 / 1e3,
        of_100(90) as f64 / 1e3,
        of_100(99) as f64 / 1e3,
        waits_ns.len()
    );
    let mut counted = 0;
    for bin_us in BINS_US.into_iter().chain([u64::MAX / 1_000]) {
        let within = waits_ns.partition_point(|wait_ns| *wait_ns <= bin_us * 1_000);
        if within > counted {
            let label = match bin_us {
                ..=10_000 => format!("to {bin_us}"),
                _ => "more".into(),
            };
            let bar = "#".repeat((within - counted).div_ceil(10));
            println!("{label:>10}{:>6} {bar}", within - counted);
        }
        counted = within;
    }
}

/// Prints the waits after a decision and after a wake.
pub fn measure() {
    measure_one("from a decision until its task runs", false);
    measure_one("from a wake until the task runs", true);
    println!("");
}
