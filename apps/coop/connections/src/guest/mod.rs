//! The experiments and their output.
//!
//! | module | contents |
//! |---|---|
//! | [`run`] | one run: connections, their components, requests, and their counts |
//! | [`connection`] | the socket and the client at its other end |
//! | [`device`] | requests come when they are due |
//! | [`combination`] | components, and the way their reads wait |
//! | [`components`] | receivers, handlers and senders |
//! | [`program`] | a component is a coroutine or a thread |
//! | [`service`] | the way a read waits |
//! | [`mailbox`] | the queue from one component to the next |
//! | [`account`] | the account of CPU time |
//! | [`metered`] | a future whose polls are in the account |
//! | [`memory`] | the memory in use, and whether there is some |
//! | [`lines`] | the result lines and the tables |

mod account;
mod combination;
mod components;
mod connection;
mod device;
mod lines;
mod mailbox;
mod memory;
mod metered;
mod program;
mod run;
mod service;

use alloc::{vec, vec::Vec};
use core::hint::black_box;

use axcoop_arceos::{Domain, Options};
use sched_tests_common::{
    config::SCALE,
    platform::{self, now_ns, println},
    results::{Phase, Setting},
    runner::{print_heading, print_lines, setting},
};

use crate::message::{FACTOR, Message, multiply};
use combination::Combination;
use program::{Coroutines, Threads};
use run::{Load, Outcome, run};
use service::{Direct, Operations};

/// The numbers of connections: the report's, and 1,024.
const CONNECTIONS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 96, 1_024];
/// The time between two requests of a connection, and the length of the window, as in the report.
const INTERVAL_NS: u64 = 100_000_000;
const PACED_NS: u64 = 5_000_000_000;
/// The length of the window in which requests come as fast as they are answered.
const FULL_NS: u64 = 1_000_000_000;

/// The experiment with priorities, as in the report: the numbers of connections and priorities.
const PRIORITY_CONNECTIONS: usize = 64;
const PRIORITIES: u8 = 8;
const PRIORITY_INTERVAL_NS: u64 = 50_000_000;

/// Serves `load` by this combination; its coroutines belong to `domain`.
fn serve(domain: &'static Domain, combination: Combination, load: &Load) -> Outcome {
    match combination {
        Combination::Kcuc => run(load, &Coroutines(domain), Operations(domain)),
        Combination::Uc => run(load, &Coroutines(domain), Direct),
        Combination::Ut => run(load, &Threads, Direct),
    }
}

/// Runs all experiments and prints the results.
pub fn main() {
    let setting = setting("connections");
    print_heading(&setting);
    platform::connect_cpus();
    device::start();
    // Workers have no name, as threads have none here: `axtask` formats the name of the task that it wakes.
    let domain = Options::new("").open().expect("a domain at boot");
    let mut phases = vec![];
    for (name, load) in [("paced", paced as fn(usize) -> Load), ("full", full)] {
        let mut pass = true;
        lines::heading(name);
        for connections in CONNECTIONS {
            for combination in Combination::ALL {
                let load = load(connections);
                let outcome = serve(domain, combination, &load);
                pass &= lines::print(&setting, name, combination, &load, &outcome);
            }
        }
        phases.push(phase(name, pass));
    }
    phases.extend(priorities(&setting, domain));
    println!("");
    print_lines(&setting, &phases);
}

/// Returns a phase without tasks of its own.
fn phase(name: &'static str, pass: bool) -> Phase {
    Phase {
        name,
        pass,
        ..Phase::default()
    }
}

/// Returns the load in which each connection sends a request at a fixed interval.
fn paced(connections: usize) -> Load {
    let requests = (PACED_NS / INTERVAL_NS / SCALE).max(2);
    Load {
        connections,
        priorities: 1,
        senders: 1,
        interval_ns: INTERVAL_NS,
        requests,
        rounds: 1,
        window_ns: requests * INTERVAL_NS,
    }
}

/// Returns the load in which each connection sends its next request after an answer.
fn full(connections: usize) -> Load {
    Load {
        connections,
        priorities: 1,
        senders: 1,
        interval_ns: 0,
        requests: 1,
        rounds: 1,
        window_ns: (FULL_NS / SCALE).max(FULL_NS / 10),
    }
}

/// Runs 64 connections of 8 priorities: with enough CPU time, with too little, and with only those for which too
/// little is enough.
fn priorities(setting: &Setting, domain: &'static Domain) -> Vec<Phase> {
    // 1.5 times the capacity of the CPUs.
    let due_per_s = PRIORITY_CONNECTIONS as u64 * 1_000_000_000 / PRIORITY_INTERVAL_NS;
    let cpu_ns_per_s = 1_000_000_000 * platform::cpus() as u64;
    let rounds = (cpu_ns_per_s * 3 / 2 / due_per_s / round_ns()).max(1);
    // Each priority asks for 1.5 / 8 of it.
    let urgent = PRIORITIES * 2 / 3;
    let requests = (PACED_NS / PRIORITY_INTERVAL_NS / SCALE).max(4);
    let short = Load {
        connections: PRIORITY_CONNECTIONS,
        priorities: PRIORITIES,
        senders: PRIORITIES,
        interval_ns: PRIORITY_INTERVAL_NS,
        requests,
        rounds,
        window_ns: requests * PRIORITY_INTERVAL_NS,
    };
    let enough = Load {
        interval_ns: 2 * PRIORITY_INTERVAL_NS,
        requests: requests.div_ceil(2),
        window_ns: requests.div_ceil(2) * 2 * PRIORITY_INTERVAL_NS,
        ..short
    };
    let alone = Load {
        senders: urgent,
        ..short
    };
    let mut phases = vec![];
    for (name, load) in [
        ("priorities-enough", enough),
        ("priorities-short", short),
        ("priorities-alone", alone),
    ] {
        lines::heading(name);
        let outcome = serve(domain, Combination::Kcuc, &load);
        let pass = lines::print(setting, name, Combination::Kcuc, &load, &outcome);
        phases.push(phase(name, pass));
    }
    phases
}

/// Returns the time of a multiplication.
fn round_ns() -> u64 {
    const TIMES: u64 = 1_000;
    let request = Message::request(0, 0, 0);
    let start_ns = now_ns();
    for _ in 0..TIMES {
        black_box(multiply(black_box(&request.matrix), &FACTOR));
    }
    ((now_ns() - start_ns) / TIMES).max(1)
}
