//! The three PBG calls in every wrong order, from Rust and through the C ABI. Each refusal has the
//! documented errno and changes nothing. In between, the right order must still work, with the
//! right number of tasks.

use alloc::format;

use axsched_ext::{
    pbg::CONTROL,
    syscall::{self, Error},
};
use sched_tests_common::{
    kept,
    platform::{self, Gate, println, spawn},
};

use super::verdict;

// The C ABI as a C program links to it, not by way of Rust's paths.
// SAFETY: the signatures are those of `axsched_ext.h`, and a call has no precondition.
unsafe extern "C" {
    safe fn sys_measure_start() -> i32;
    safe fn sys_measure_end() -> i32;
    safe fn sys_start_pbg() -> i32;
}

#[derive(Clone, Copy, Debug)]
enum Call {
    MeasureStart,
    MeasureEnd,
    StartPbg,
}
use Call::*;

#[derive(Clone, Copy, Debug)]
enum By {
    Rust,
    C,
}
use By::*;

impl Call {
    /// Makes the call. Returns an error as its errno.
    fn make(self, by: By) -> i32 {
        let rust = |result: Result<usize, Error>| {
            result.map_or_else(Error::errno, |tasks| i32::try_from(tasks).unwrap())
        };
        match (self, by) {
            (MeasureStart, Rust) => rust(syscall::measure_start().map(|()| 0)),
            (MeasureEnd, Rust) => rust(syscall::measure_end()),
            (StartPbg, Rust) => rust(syscall::start_pbg()),
            (MeasureStart, C) => sys_measure_start(),
            (MeasureEnd, C) => sys_measure_end(),
            (StartPbg, C) => sys_start_pbg(),
        }
    }
}

/// The number of tasks of the workload that is measured.
const TASKS: i32 = 3;

/// Runs the case.
pub fn run() {
    println!(
        "{:10}{:14}{:6}{:>8}{:>10}",
        "while", "call", "from", "found", "expected"
    );
    let pass = match platform::SCHED {
        "pbg" if platform::cpus() == 1 || platform::IS_BALANCED => every_order(),
        "pbg" => {
            refused("idle", MeasureStart, Error::NotSupported)
                & refused("idle", MeasureEnd, Error::NotMeasuring)
                & refused("idle", StartPbg, Error::NotSupported)
        }
        _ => {
            [
                MeasureStart,
                MeasureEnd,
                StartPbg,
                StartPbg,
                MeasureEnd,
                MeasureStart,
            ]
            .map(|call| refused("idle", call, Error::NotBuiltIn))
                == [true; 6]
        }
    };
    println!("");
    verdict(pass);
}

/// Makes every call in every state: idle, measuring, idle with a profile, replaying.
fn every_order() -> bool {
    let before = refused("idle", MeasureEnd, Error::NotMeasuring)
        & refused("idle", StartPbg, Error::NoProfile)
        & accepted("idle", MeasureStart, Rust, 0)
        & refused("measuring", MeasureStart, Error::AlreadyMeasuring)
        & refused("measuring", StartPbg, Error::Measuring);
    workload();
    let between = refused("measuring", StartPbg, Error::Measuring)
        & accepted("measuring", MeasureEnd, C, TASKS)
        & refused("idle", MeasureEnd, Error::NotMeasuring)
        // Once more from the start: a new measurement takes the old one's place.
        & accepted("idle", MeasureStart, C, 0)
        & accepted("measuring", MeasureEnd, Rust, 0)
        & accepted("idle", MeasureStart, Rust, 0);
    workload();
    let replaying = accepted("measuring", MeasureEnd, Rust, TASKS)
        & accepted("idle", StartPbg, C, TASKS)
        & refused("replaying", StartPbg, Error::AlreadyReplaying)
        & refused("replaying", MeasureStart, Error::Replaying)
        & refused("replaying", MeasureEnd, Error::NotMeasuring);
    workload();
    before & between & replaying & refused("replaying", StartPbg, Error::AlreadyReplaying)
}

/// Returns true if the call is refused with `error` from both languages, and changes nothing.
fn refused(during: &str, call: Call, error: Error) -> bool {
    [Rust, C].map(|by| {
        let before = state();
        let found = call.make(by);
        show(during, call, by, found, error.errno(), state() == before)
    }) == [true; 2]
}

/// Returns true if the call is accepted, answers `expected` and changes the state.
fn accepted(during: &str, call: Call, by: By, expected: i32) -> bool {
    let before = state();
    let found = call.make(by);
    show(during, call, by, found, expected, state() != before)
}

/// Returns all that a call may change.
fn state() -> impl PartialEq {
    let about = kept::about("selftest-calls");
    (CONTROL.status(), CONTROL.profile(&about))
}

/// Prints one row. Returns true if all of it is right.
fn show(during: &str, call: Call, by: By, found: i32, expected: i32, effect_right: bool) -> bool {
    let (call, by) = (format!("{call:?}"), format!("{by:?}"));
    let remark = match (found == expected, effect_right) {
        (true, true) => "",
        (false, _) => "  WRONG",
        (true, false) => "  WRONG EFFECT",
    };
    println!("{during:10}{call:14}{by:6}{found:>8}{expected:>10}{remark}");
    remark.is_empty()
}

fn workload() {
    let gate = Gate::opened();
    let tasks = [(); TASKS as usize].map(|()| spawn("worker", &gate, axtask::yield_now));
    for task in tasks {
        task.join();
    }
}
