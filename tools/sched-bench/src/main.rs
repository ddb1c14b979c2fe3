//! `sched-bench SCHEDULER OPERATION TASKS TIMES` plays a scene, for Callgrind to count.

mod arena;

use std::process::ExitCode;

use sched_bench::scene::Operation;
use sched_bench::schedulers::{self, Entry};

#[global_allocator]
static ARENA: arena::Arena = arena::Arena::new();

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match play(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sched-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn play(words: &[String]) -> Result<(), String> {
    let [scheduler, operation, tasks, times] = words else {
        return Err("expected SCHEDULER OPERATION TASKS TIMES".into());
    };
    let entry = schedulers::named(scheduler)?;
    let operation = operation_of(&entry, operation)?;
    let (tasks, times) = (number(tasks)?, number(times)?);
    ARENA.begin();
    (entry.play)(operation, tasks, times as u64);
    Ok(())
}

/// Returns the operation of this name, if the scheduler has it.
fn operation_of(entry: &Entry, name: &str) -> Result<Operation, String> {
    let found = entry.operations().find(|one| one.name() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = entry.operations().map(Operation::name).collect();
        format!(
            "{}: expected one of {}, found `{name}`",
            entry.name,
            names.join(" ")
        )
    })
}

fn number(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("expected a number from 1 on, found `{word}`"))
}
