//! A second of the guest's clock is a second, within one per cent.
//!
//! - The case prints `CLOCK-BEGIN`, sleeps 3 s and prints `CLOCK-END` with the guest's time in ns.
//!   A user who starts QEMU with `TIMING=real` can check it against a watch.
//! - Under icount a loop of known length must take 1 ns for each instruction.
//! - On x86_64, where the guest is told the rate of its clock, an independent timer is compared in
//!   both timings.

use core::time::Duration;

use sched_tests_common::{
    config::TIMING,
    platform::{Gate, now_ns, println, spawn},
    work,
};

use super::verdict;

#[cfg_attr(target_arch = "x86_64", path = "clock/pm_timer.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "clock/none.rs")]
mod second_timer;

/// The rounds of the loop: some 0.3 to 0.4 s under icount.
const ROUNDS: u64 = 100_000_000;

/// Runs the case.
pub fn run() {
    let second_timer = spawn("second timer", &Gate::opened(), second_timer::compare);
    println!("CLOCK-BEGIN");
    let begin_ns = now_ns();
    axtask::sleep(Duration::from_secs(3));
    let elapsed_ns = now_ns() - begin_ns;
    println!("CLOCK-END {elapsed_ns}");
    second_timer.join();

    let mut pass = judge("a sleep of 3 s, ns", elapsed_ns, 3_000_000_000);
    match second_timer::result() {
        Some((guest_ns, timer_ns)) => {
            pass &= judge(
                "guest's clock beside the ACPI PM timer, ns",
                guest_ns,
                timer_ns,
            );
        }
        None => println!("no second timer on this architecture"),
    }
    if TIMING == "icount" {
        let begin_ns = now_ns();
        core::hint::black_box(work::spin(1, ROUNDS));
        let elapsed_ns = now_ns() - begin_ns;
        let instructions = ROUNDS * work::INSTRUCTIONS_PER_ROUND;
        pass &= judge("a loop of known length, ns", elapsed_ns, instructions);
    }
    println!("");
    verdict(pass);
}

/// Prints `found` beside `expected`. Returns true if they are equal within one per cent.
fn judge(what: &str, found: u64, expected: u64) -> bool {
    let right = found.abs_diff(expected) <= expected / 100;
    let verdict = if right { "right" } else { "WRONG" };
    println!("{what}: found {found}, expected {expected}: {verdict}");
    right
}
