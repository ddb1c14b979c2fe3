//! Sixteen tasks in the queue of a CPU whose task never gives way: does another CPU run them?
//!
//! One task, `hog`, spawns sixteen workers, all of them into the queue of its own CPU, and then
//! lets them run on any CPU. Then it computes with preemption off and without a yield, until the
//! last worker is done. If other CPUs take the workers, that is after a fraction of their work
//! together. If none does, the workers never run, under any policy, and the run ends by its
//! timeout. The workers have no rows in the table, because the hog spawns them itself.
//!
//! On one CPU, where no other could run them, the hog yields while it waits.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::{format, sync::Arc, vec, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering::*};

use sched_tests_common::{App, Task, TaskCtx, platform, run, work};

const WORKERS: u64 = 16;

/// The work of each worker, in rounds: 10 ms under icount.
const ROUNDS: u64 = 10_000_000 / work::INSTRUCTIONS_PER_ROUND;

fn tasks(scale: u64) -> Vec<Task> {
    vec![Task::new("hog", move |ctx| hog(ctx, scale))]
}

fn hog(ctx: &TaskCtx, scale: u64) -> bool {
    let (done, right) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let rounds = (ROUNDS / scale).max(1);
    let others_run = || {
        for worker in 0..WORKERS {
            let (done, right) = (done.clone(), right.clone());
            platform::spawn_beside(&format!("worker{worker}"), move || {
                let is_right = work::spin(worker, rounds) == work::jump(worker, rounds);
                right.fetch_add(u64::from(is_right), Relaxed);
                done.fetch_add(1, Release);
            });
        }
        while done.load(Acquire) < WORKERS {
            if platform::cpus() == 1 {
                ctx.yield_now();
            }
            core::hint::spin_loop();
        }
    };
    match platform::cpus() {
        1 => others_run(),
        _ => platform::without_preemption(others_run),
    }
    right.load(Relaxed) == WORKERS
}

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&App {
        spawned_beside: WORKERS as usize,
        ..App::new("hog", tasks)
    });
}
