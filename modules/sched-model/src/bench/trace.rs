//! Traces: the events on a [`Bench`] and the task that runs after each, as one line of text.

use alloc::sync::Arc;
use std::borrow::ToOwned;
use std::format;
use std::string::String;

use super::{Bench, Handle, Scheduler, TICK};

impl<S: Scheduler> Bench<S> {
    /// Simulates the steps of `trace`, which are separated by commas. After each step that names a
    /// task it checks that this task runs. Text in parentheses is a remark.
    ///
    /// | step | what happens |
    /// |---|---|
    /// | `on>a` | nothing: `a` runs |
    /// | `yield>a`, `preempt>a`, `block>a` | the running task gives the CPU away, and `a` runs then |
    /// | `pick>a` | the idle CPU picks `a` |
    /// | `tick>a` | [`tick`](Self::tick): time passes, the tick comes, and `a` runs then |
    /// | `interrupt>a` | [`interrupt`](Self::interrupt): the tick comes, and no time has passed |
    /// | `until a`, `while a` | ticks come until `a` runs, or runs no longer |
    /// | `reach a` | interrupts come until `a` runs, without time in between |
    /// | `wake a`, `spawn a` | a task that a trace has blocked, or a new one, is ready |
    /// | `+300`, `+2t` | 300 counts or 2 ticks' time pass without a tick |
    ///
    /// `idle` stands for an idle CPU. Without `>`, any task may run after the step. `64x yield>a`
    /// is the step `yield>a` 64 times.
    ///
    /// # Panics
    /// If another task runs than the trace says.
    #[track_caller]
    pub fn trace(&mut self, trace: &str) {
        let steps = without_remarks(trace);
        for (number, step) in steps.split(',').map(str::trim).enumerate() {
            let (times, step) = step.split_once("x ").unwrap_or(("1", step));
            let times: u64 = times.parse().expect("how often a step is played");
            let (verb, expected) = match step.split_once('>') {
                Some((verb, expected)) => (verb, Some(expected)),
                None => (step, None),
            };
            for time in 1..=times {
                self.step(verb);
                if let Some(expected) = expected {
                    let place = format!("step {number}, time {time}, `{step}`, of {trace}");
                    assert_eq!(self.name(), expected, "{place}");
                }
            }
        }
    }

    /// Returns the task of this name that a trace has blocked.
    pub fn asleep(&self, name: &str) -> Option<Handle<S>> {
        let mut asleep = self.asleep.iter();
        asleep.find(|task| *task.inner() == name).cloned()
    }

    #[track_caller]
    fn step(&mut self, step: &str) {
        let (verb, name) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "on" => {}
            "yield" => _ = self.yield_now(),
            "preempt" => _ = self.preempt(),
            "block" => {
                let blocked = self.block();
                self.asleep.push(blocked);
            }
            "pick" => _ = self.pick(),
            "tick" => _ = self.tick(),
            "interrupt" => _ = self.interrupt(),
            "reach" => while self.interrupt() != name {},
            "until" => self.tick_until(name),
            "while" => self.tick_while(name),
            "wake" => {
                let woken = self.asleep(name);
                let woken = woken.unwrap_or_else(|| panic!("no trace has blocked `{name}`"));
                self.asleep.retain(|task| !Arc::ptr_eq(task, &woken));
                self.wake(&woken);
            }
            "spawn" => _ = self.spawn(name.to_owned().leak()),
            _ => self.run(counts(step)),
        }
    }
}

fn without_remarks(trace: &str) -> String {
    let mut depth = 0;
    let is_step = |letter: &char| {
        depth += i32::from(*letter == '(');
        let is_step = depth == 0;
        depth -= i32::from(*letter == ')');
        is_step
    };
    trace.chars().filter(is_step).collect()
}

/// Returns the time of a step such as `+300` or `+2t`.
#[track_caller]
fn counts(step: &str) -> u64 {
    let number = step.trim_start_matches('+').trim_end_matches('t');
    let number: u64 = match number.replace('_', "").parse() {
        Ok(number) if step.starts_with('+') => number,
        _ => panic!("no trace has a step `{step}`"),
    };
    number * if step.ends_with('t') { TICK } else { 1 }
}
