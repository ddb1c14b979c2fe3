//! What was counted: the harness's results to one cost for each scheduler, operation and number
//! of tasks.
//!
//! The harness, gungraun, prints a JSON object for each process that Callgrind ran. Which scene
//! it was is in the command: `…/sched-bench SCHEDULER OPERATION TASKS TIMES`.

use std::env::consts::ARCH;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::distinct::distinct;

/// The operations in the order of the tables, and what each is.
pub const OPERATIONS: [(&str, &str); 6] = [
    ("yield", "a put and the pick after it"),
    ("add", "a spawn"),
    ("put", "a wake-up"),
    ("pick", "after a task has blocked"),
    ("tick", "of the timer"),
    ("renice", "of the running task"),
];

/// What one call costs, on average.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// `rr`, `stock-rr`.
    pub scheduler: String,
    pub operation: String,
    pub tasks: usize,
    pub instructions: f64,
    /// Reads and writes that miss the first-level data cache.
    pub misses: f64,
}

/// In bytes.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Memory {
    pub scheduler: String,
    #[serde(rename = "task_bytes")]
    pub task: usize,
    #[serde(rename = "queue_bytes")]
    pub queue: usize,
    #[serde(rename = "ready_bytes")]
    pub ready: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    pub arch: String,
    /// In the order in which they were run.
    pub costs: Vec<Cost>,
    /// Of the schedulers that have costs.
    pub memory: Vec<Memory>,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            // What Callgrind runs is the host's.
            arch: ARCH.to_owned(),
            costs: Vec::new(),
            memory: Vec::new(),
        }
    }
}

impl Bench {
    /// Takes what the harness printed.
    pub fn add_counts(&mut self, text: &str) -> Result<()> {
        for (number, line) in (1..).zip(text.lines()) {
            let cost = cost(line).with_context(|| format!("line {number}"))?;
            self.costs.push(cost);
        }
        ensure!(
            !self.costs.is_empty(),
            "expected results of the harness, found none"
        );
        Ok(())
    }

    /// Takes what `sched-memory` printed.
    pub fn add_memory(&mut self, text: &str) -> Result<()> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let all: Vec<Memory> = reader.deserialize().collect::<Result<_, _>>()?;
        for scheduler in self.schedulers() {
            let found = all.iter().find(|memory| memory.scheduler == scheduler);
            let found = found.with_context(|| format!("expected {scheduler}, found none"))?;
            self.memory.push(found.clone());
        }
        Ok(())
    }

    /// Each scheduler once.
    pub fn schedulers(&self) -> Vec<String> {
        distinct(self.costs.iter().map(|cost| cost.scheduler.clone()))
    }

    /// Each number of tasks once.
    pub fn sizes(&self) -> Vec<usize> {
        distinct(self.costs.iter().map(|cost| cost.tasks))
    }

    /// The costs of a scheduler's operation, by the number of tasks.
    pub fn row(&self, scheduler: &str, operation: &str) -> Vec<&Cost> {
        let is_meant = |cost: &&Cost| cost.scheduler == scheduler && cost.operation == operation;
        self.costs.iter().filter(is_meant).collect()
    }
}

/// What the harness says of one process; the rest of it does not matter here.
#[derive(Deserialize)]
struct Summary {
    profiles: Vec<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    parts: Vec<Part>,
    total: Total,
}

#[derive(Deserialize)]
struct Part {
    tool_run: Sides<ToolRun>,
}

#[derive(Deserialize)]
struct ToolRun {
    command: String,
}

#[derive(Deserialize)]
struct Total {
    metrics: Metrics,
}

/// Callgrind's names.
#[derive(Deserialize)]
struct Metrics {
    #[serde(rename = "Ir")]
    instructions: Metric,
    #[serde(rename = "D1mr")]
    read_misses: Metric,
    #[serde(rename = "D1mw")]
    write_misses: Metric,
}

#[derive(Deserialize)]
struct Metric {
    values: Sides<u64>,
}

/// This run, beside an older one if there is any.
#[derive(Deserialize)]
struct Sides<T> {
    new: T,
}

fn cost(line: &str) -> Result<Cost> {
    let Summary { profiles } =
        serde_json::from_str(line).context("expected a result of the harness")?;
    let [Profile { data }] = &profiles[..] else {
        bail!("expected one profile, found {}", profiles.len());
    };
    let [part] = &data.parts[..] else {
        bail!("expected one process, found {}", data.parts.len());
    };
    let command = &part.tool_run.new.command;
    let words: Vec<_> = command.split(' ').collect();
    let [_, scheduler, operation, tasks, times] = words[..] else {
        bail!("expected PROGRAM SCHEDULER OPERATION TASKS TIMES, found `{command}`");
    };
    ensure!(
        OPERATIONS.iter().any(|(name, _)| *name == operation),
        "expected an operation, found `{operation}`"
    );
    let number = |word: &str| {
        let number = word.parse::<u32>().ok().filter(|number| *number > 0);
        number.with_context(|| format!("expected a number, found `{word}` in `{command}`"))
    };
    let (tasks, times) = (number(tasks)?, number(times)?);
    let metrics = &data.total.metrics;
    let per_call = |events: u64| events as f64 / f64::from(times);
    let instructions = metrics.instructions.values.new;
    // A call has an instruction at least: where there is none, Callgrind has not found the
    // functions that it was to count.
    ensure!(
        instructions >= times.into(),
        "{scheduler} {operation}: expected {times} instructions or more, found {instructions}"
    );
    Ok(Cost {
        scheduler: scheduler.to_owned(),
        operation: operation.to_owned(),
        tasks: tasks as usize,
        instructions: per_call(instructions),
        misses: per_call(metrics.read_misses.values.new + metrics.write_misses.values.new),
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// What the harness prints, of 1,000 calls.
    fn line(scene: &str, instructions: u64, misses: [u64; 2]) -> String {
        let [read, write] = misses;
        format!(
            r#"{{"id":"x","profiles":[{{"data":{{"parts":[{{"metrics":{{}},"tool_run":{{"new":{{"command":"/a/sched-bench {scene} 1000","pid":1}}}}}}],"total":{{"metrics":{{"Ir":{{"values":{{"new":{instructions},"old":7}}}},"D1mr":{{"values":{{"new":{read}}}}},"D1mw":{{"values":{{"new":{write}}}}}}}}}}},"tool":"Callgrind"}}]}}"#
        )
    }

    /// With 4 and with 1,024 tasks, a yield: instructions, and misses with the more tasks.
    pub fn sample(schedulers: &[(&str, [u64; 2], u64)]) -> Bench {
        let mut text = String::new();
        let mut memory = "scheduler,task_bytes,queue_bytes,ready_bytes\n".to_owned();
        for (scheduler, [few, many], misses) in schedulers {
            text += &line(&format!("{scheduler} yield 4"), few * 1000, [0, 0]);
            text.push('\n');
            let scene = format!("{scheduler} yield 1024");
            text += &line(&scene, many * 1000, [misses * 400, misses * 600]);
            text.push('\n');
            memory += &format!("{scheduler},24,328,48.6\n");
        }
        let mut bench = Bench {
            arch: "x86_64".into(),
            ..Bench::default()
        };
        bench.add_counts(&text).unwrap();
        bench.add_memory(&memory).unwrap();
        bench
    }

    #[test]
    fn what_one_call_costs_is_the_sum_divided_by_the_calls() {
        let mut bench = Bench::default();
        bench
            .add_counts(&line("stock-cfs put 256", 378_100, [700, 70]))
            .unwrap();
        assert_eq!(
            bench.costs,
            [Cost {
                scheduler: "stock-cfs".into(),
                operation: "put".into(),
                tasks: 256,
                instructions: 378.1,
                misses: 0.77,
            }]
        );
    }

    #[test]
    fn what_is_no_result_is_refused_with_its_line() {
        let refused = |text: &str| {
            let error = Bench::default().add_counts(text).unwrap_err();
            format!("{error:#}")
        };
        let good = line("rr add 4", 11_000, [0, 0]);
        for (text, expected) in [
            (String::new(), "expected results of the harness, found none"),
            (
                format!("{good}\nnonsense"),
                "line 2: expected a result of the harness: expected ident",
            ),
            (
                good.replace("D1mw", "D1"),
                "line 1: expected a result of the harness: missing field `D1mw`",
            ),
            (
                line("rr add", 11_000, [0, 0]),
                "expected PROGRAM SCHEDULER OPERATION TASKS TIMES, found `/a/sched-bench rr add 1000`",
            ),
            (
                line("rr sing 4", 11_000, [0, 0]),
                "expected an operation, found `sing`",
            ),
            (
                line("rr add four", 11_000, [0, 0]),
                "expected a number, found `four` in ",
            ),
            (
                line("rr add 4", 0, [0, 0]),
                "rr add: expected 1000 instructions or more, found 0",
            ),
        ] {
            let found = refused(&text);
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn every_scheduler_has_its_memory() {
        let mut bench = Bench::default();
        bench.add_counts(&line("rr add 4", 11_000, [0, 0])).unwrap();
        let header = "scheduler,task_bytes,queue_bytes,ready_bytes\n";
        let error = bench.add_memory(&format!("{header}fifo,8,24,0.0\n"));
        assert_eq!(error.unwrap_err().to_string(), "expected rr, found none");
        let both = format!("{header}fifo,8,24,0.0\nrr,16,24,0.0\n");
        bench.add_memory(&both).unwrap();
        assert_eq!(bench.memory.len(), 1, "what was not run has no row");
        assert_eq!(bench.memory[0].task, 16);
    }
}
