//! Every scene under Callgrind, a process for each. The schedulers are all, or those that
//! `BENCH_SCHEDULERS` names in the environment, a list with blanks.
#![allow(missing_docs, reason = "the macros make public items")]

use std::env;

use gungraun::prelude::*;
use gungraun::{
    Bench, BinaryBenchmark, BinaryBenchmarkGroup, Callgrind, Command, EntryPoint,
    binary_benchmark_group, main,
};
use sched_bench::schedulers::{self, Entry};
use sched_bench::{TASKS, measured};

/// Operations of a scene. The cost of one is the sum, divided by this.
const TIMES: u64 = 4_096;

/// The simulated caches, which do not depend on the host: bytes, ways, bytes of a line.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

fn wanted_schedulers() -> Vec<Entry> {
    let Ok(names) = env::var("BENCH_SCHEDULERS") else {
        return schedulers::all();
    };
    let named = |name| schedulers::named(name).unwrap_or_else(|error| panic!("{error}"));
    names.split(' ').map(named).collect()
}

fn scenes(group: &mut BinaryBenchmarkGroup) {
    for entry in wanted_schedulers() {
        // Names are identifiers here. Readers of the results go by the command.
        let mut of_scheduler = BinaryBenchmark::new(entry.name.replace('-', "_"));
        for operation in entry.operations() {
            for tasks in TASKS {
                let mut command = Command::new(env!("CARGO_BIN_EXE_sched-bench"));
                command.args([entry.name, operation.name()]);
                command.args([tasks.to_string(), TIMES.to_string()]);
                of_scheduler.bench(Bench::new(format!("{operation}_{tasks}")).command(command));
            }
        }
        group.binary_benchmark(of_scheduler);
    }
}

binary_benchmark_group!(
    name = calls,
    benchmarks = |group: &mut BinaryBenchmarkGroup| scenes(group)
);

main!(
    config = BinaryBenchmarkConfig::default().tool(
        Callgrind::with_args(CACHES)
            .entry_point(EntryPoint::Custom(measured::COLLECTED.to_owned()))
    ),
    binary_benchmark_groups = calls
);
