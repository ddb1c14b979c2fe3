//! An ordinary ArceOS program: threads of `axstd`, and a clock. The only part of this kit in it is
//! the recorder. It prints what the threads did to the console, and `make run` saves that.
//!
//! | thread | what it does |
//! |---|---|
//! | `sieve` | counts the primes below 2,000,000 |
//! | `sort` | sorts 50,000 numbers, 10 times |
//! | `walk` | takes each number below 100,000 to 1 (Collatz) |
//! | `words` | counts the words of a text that it makes line by line, and yields after each |
//!
//! Under a policy other than PBG, or on several CPUs, nothing is recorded, and the program says so.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate axstd as std;

extern crate alloc;

use alloc::{format, vec, vec::Vec};
use axsched_ext::pbg::About;
use axsched_ext::syscall::{measure_end, measure_start, print_profile};
use std::time::{Duration, Instant};
use std::{print, println, thread};

fn sieve(below: usize) -> usize {
    let mut composite = vec![false; below];
    let mut primes = 0;
    for n in 2..below {
        if !composite[n] {
            primes += 1;
            (n * n..below)
                .step_by(n)
                .for_each(|at| composite[at] = true);
        }
    }
    primes
}

/// Sorts `numbers` numbers, `times` times, other ones each time. Returns the greatest of their
/// medians.
fn sort(numbers: u32, times: u32) -> usize {
    let median = |time: u32| {
        let scattered = |n: u32| (n + numbers * time).wrapping_mul(0x9e37_79b1);
        let mut sorted: Vec<_> = (0..numbers).map(scattered).collect();
        sorted.sort_unstable();
        sorted[sorted.len() / 2] as usize
    };
    (0..times).map(median).max().unwrap_or(0)
}

/// Returns the most steps that a number below `below` takes to 1 (Collatz).
fn walk(below: u64) -> usize {
    let steps = |from: u64| {
        let next = |n: &u64| match *n {
            1 => None,
            n if n.is_multiple_of(2) => Some(n / 2),
            n => Some(3 * n + 1),
        };
        core::iter::successors(Some(from), next).count() - 1
    };
    (1..below).map(steps).max().unwrap_or(0)
}

fn words(lines: usize) -> usize {
    let count = |line| {
        let text =
            format!("{line} bottles on the wall, {line} bottles; take one down, pass it around");
        thread::yield_now();
        text.split_whitespace().count()
    };
    (0..lines).map(count).sum()
}

/// A thread's name, its work, and the result that the work must have.
type Work = (&'static str, fn() -> usize, usize);

const THREADS: [Work; 4] = [
    ("sieve", || sieve(2_000_000), 148_933),
    ("sort", || sort(50_000, 10), 2_147_595_800),
    ("walk", || walk(100_000), 350),
    ("words", || words(2_000), 26_000),
];

/// Runs the threads. Returns for each how long after the start it was done.
fn workload() -> [(&'static str, Duration); THREADS.len()] {
    let start = Instant::now();
    let threads = THREADS.map(|(name, work, expected)| {
        thread::spawn(move || {
            assert_eq!(work(), expected, "{name}");
            (name, start.elapsed())
        })
    });
    threads.map(|thread| thread.join().unwrap())
}

/// Returns the rate of the CPU's counter in Hz, which turns the record's counts into times.
fn counter_hz() -> u64 {
    #[cfg(target_os = "none")]
    return std::os::arceos::modules::axhal::time::nanos_to_ticks(1_000_000_000);
    #[cfg(not(target_os = "none"))]
    0
}

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    let recorded = measure_start();
    for (name, after) in workload() {
        println!("{name} was done after {after:?}");
    }
    if let Err(why) = recorded {
        println!("nothing was recorded: {why}");
        return;
    }
    measure_end().unwrap();
    let about = About::program(env!("CARGO_PKG_NAME"), counter_hz());
    print_profile(&about, |line| print!("{line}")).unwrap();
}

#[test]
fn the_threads_come_out_right() {
    assert_eq!(workload().len(), THREADS.len());
}
