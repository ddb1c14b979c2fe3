//! The cases, and the choice of one.

mod awaits;
mod calls;
mod changed;
mod clock;
mod endings;
mod handle;
mod meter;
mod polls;
mod rewrite;
mod share;
mod tasks;
mod verdict;
mod yielders;

use alloc::{format, vec::Vec};

use sched_tests_common::{
    platform::println,
    runner::{print_heading, setting},
};
use verdict::{CHOICE, verdict};

const CASES: [(&str, fn()); 25] = [
    ("clock", clock::run),
    ("meter", meter::run),
    ("tasks", tasks::run),
    ("calls", calls::run),
    ("share-0", share::beside::<0>),
    ("share-1", share::beside::<1>),
    ("share-3", share::beside::<3>),
    ("share-9", share::beside::<9>),
    ("share-30", share::beside::<30>),
    ("handle", handle::run),
    ("yielders", yielders::run),
    ("awaits", awaits::run),
    ("rewrite", rewrite::run),
    ("changed-loops", changed::loops),
    ("changed-more", changed::more),
    ("changed-less", changed::less),
    ("changed-order", changed::order),
    ("changed-order-labelled", changed::order_labelled),
    ("poll-sleep", polls::small),
    ("poll-sleep-gate", polls::gate),
    ("poll-sleep-long", polls::long),
    ("poll-yield", polls::yields),
    ("panic", endings::panic),
    ("hang", endings::hang),
    ("fail", endings::fail),
];

/// Runs the case, or says which there are.
pub fn main() {
    match CASES.iter().find(|(case, _)| *case == CHOICE) {
        Some((_, run)) => {
            print_heading(&setting(&format!("selftest-{CHOICE}")));
            run();
        }
        None => {
            let known: Vec<_> = CASES.iter().map(|(case, _)| *case).collect();
            println!(
                "T={CHOICE}: no such case, choose one of {}\n",
                known.join(" ")
            );
            verdict(false);
        }
    }
}
