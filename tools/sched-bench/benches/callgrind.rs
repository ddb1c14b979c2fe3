//! Every scene under Callgrind, a process for each: of all schedulers, operations and numbers of
//! tasks, or of those that the environment names in `BENCH_SCHEDULERS` and `BENCH_TASKS`, lists
//! with blanks or commas.
#![allow(missing_docs, reason = "of what the macros make")]

use std::env;

use gungraun::prelude::*;
use gungraun::{
    Bench, BinaryBenchmark, BinaryBenchmarkGroup, Callgrind, Command, EntryPoint,
    binary_benchmark_group, main,
};
use sched_bench::schedulers::{self, Entry};
use sched_bench::{TASKS, measured};

/// How often a scene has its operation. What one costs is the sum of all, divided by this.
const TIMES: u64 = 4_096;

/// The caches that are simulated, whatever the host has: bytes, ways, bytes of a line.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

/// The words of a variable, if it is there.
fn words(variable: &str) -> Option<Vec<String>> {
    let words = env::var(variable).ok()?;
    Some(words.split([',', ' ']).map(str::to_owned).collect())
}

fn wanted_schedulers() -> Vec<Entry> {
    let Some(names) = words("BENCH_SCHEDULERS") else {
        return schedulers::all();
    };
    let named = |name: &String| schedulers::named(name).unwrap_or_else(|error| panic!("{error}"));
    names.iter().map(named).collect()
}

fn wanted_tasks() -> Vec<usize> {
    let Some(numbers) = words("BENCH_TASKS") else {
        return TASKS.into();
    };
    let number = |word: &String| word.parse().expect("BENCH_TASKS: numbers");
    numbers.iter().map(number).collect()
}

fn scenes(group: &mut BinaryBenchmarkGroup) {
    for entry in wanted_schedulers() {
        // Names are identifiers here. Who reads the results goes by the command.
        let mut of_scheduler = BinaryBenchmark::new(entry.name.replace('-', "_"));
        for operation in entry.operations() {
            for tasks in wanted_tasks() {
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
