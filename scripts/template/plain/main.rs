//! Three threads that count primes. Under PBG they run twice: measured, then by the plan.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate axstd as std;

use axsched_ext::pbg::{About, CONTROL};
use axsched_ext::syscall::{label_next, measure_end, measure_start, print_profile, start_pbg};
use std::time::{Duration, Instant};
use std::{print, println, thread};

/// Each thread's name, the number that it counts up to, and how many primes there are below it.
const THREADS: [(&str, u32, usize); 3] = [
    ("long", 1_000_000, 78_498),
    ("middle", 300_000, 25_997),
    ("short", 100_000, 9_592),
];

fn primes(below: u32) -> usize {
    let composite = |n: u32| (2..=n.isqrt()).any(|d| n.is_multiple_of(d));
    (2..below).filter(|n| !composite(*n)).count()
}

/// Runs the threads. Returns the average time after which they were done.
fn workload() -> Duration {
    let start = Instant::now();
    let threads = THREADS.map(|(name, below, expected)| {
        let _ = label_next(name); // an error under other policies, which have no use for it
        thread::spawn(move || {
            assert_eq!(primes(below), expected); // used, or the compiler might leave it out
            start.elapsed()
        })
    });
    let done = threads.map(|thread| thread.join().unwrap());
    done.iter().sum::<Duration>() / done.len() as u32
}

/// Returns the rate of the CPU's counter in Hz, which turns the profile's counts into times.
fn counter_hz() -> u64 {
    #[cfg(target_os = "none")]
    return std::os::arceos::modules::axhal::time::nanos_to_ticks(1_000_000_000);
    #[cfg(not(target_os = "none"))]
    0
}

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    if let Err(why) = measure_start() {
        println!("done after {:?} on average ({why})", workload());
        return;
    }
    let measured = workload();
    measure_end().unwrap();
    start_pbg().unwrap();
    let replayed = workload();
    println!("done after {measured:?} on average; by the plan, after {replayed:?}");
    println!("PBG says {}", CONTROL.status().unwrap());
    let about = About::program(env!("CARGO_PKG_NAME"), counter_hz());
    print_profile(&about, |line| print!("{line}")).unwrap();
}

#[test]
fn there_are_168_primes_below_1000() {
    assert_eq!(primes(1_000), 168);
}
