//! The measurement and its output.

use alloc::{vec, vec::Vec};

use axcoop_arceos::{Domain, Options};
use sched_tests_common::{
    config::SCALE,
    platform::println,
    results::{Phase, ResultLine, Setting},
    runner::{print_heading, print_lines, setting},
};

use crate::{
    figures::{Figure, HEADING, Limit},
    memory::{self, Connections},
    turns::{self, BATCH, per_turn},
};

/// The numbers of coroutines that yield.
const AMONG: [usize; 6] = [2, 4, 64, 1_024, 10_000, 100_000];
/// From this number on they must cost the same.
const SPREAD_FROM: usize = 4;
/// The number of threads that yield: under most policies the cost does not depend on it.
const THREADS: usize = 4;
/// The yields that the second round has more than the first, of all together.
const YIELDS: u64 = 1 << 20;
/// The turns of the other figures.
const SPAWNS: u64 = 1 << 14;
const BATCHES: u64 = 1 << 5;
const WAKES: u64 = 1 << 15;
/// The coroutines of each size whose memory is measured: of 16 sizes 10,000 together.
const OF_A_SIZE: usize = 625;
/// The memory that may be left: the slots that a domain keeps in reserve, and what `axtask` keeps of tasks that are
/// gone.
const LEFT_BYTES: f64 = 4_096.0;

const PHASE: &str = "run";

/// Measures everything once and prints the results.
pub fn main() {
    let setting = setting("coop-cost");
    print_heading(&setting);
    let domain = match Options::new("cost").workers(1).open() {
        Ok(domain) => domain,
        Err(why) => {
            println!("No domain: {why}\n");
            return print_lines(&setting, &[phase(false)]);
        }
    };
    // First, because memory that others have taken from the page allocator does not return there.
    let [coroutines, threads] = memory::connections(domain);
    let mut figures = of_connections(coroutines, threads);
    let beside = memory::beside_a_future(domain, OF_A_SIZE);
    figures.push(of_memory(beside.unwrap_or(f64::NAN)));
    figures.extend(of_time(&setting, domain));
    println!("{HEADING}");
    for figure in &figures {
        println!("{}", figure.row());
    }
    println!("");
    for figure in &figures {
        println!("{}", figure.line(&setting, PHASE).to_line());
    }
    let are_served = coroutines.all_served && threads.all_served;
    if !are_served {
        println!("Not all have come to their ends: {coroutines:?}, threads: {threads:?}\n");
    }
    let pass = are_served && beside.is_some() && figures.iter().all(Figure::pass);
    print_lines(&setting, &[phase(pass)]);
}

fn of_connections(coroutines: Connections, threads: Connections) -> Vec<Figure> {
    let fitted = Figure {
        what: "connections",
        among: 3 * coroutines.fitted,
        unit: "connections",
        coroutines: coroutines.fitted as f64,
        threads: Some(threads.fitted as f64),
        limit: Some(Limit::AtLeast(60.0)),
    };
    let left = Figure {
        what: "left",
        among: 3 * coroutines.fitted,
        unit: "bytes",
        coroutines: coroutines.left_bytes as f64,
        threads: None,
        limit: Some(Limit::AtMost(LEFT_BYTES)),
    };
    vec![fitted, left]
}

fn of_memory(bytes: f64) -> Figure {
    Figure {
        what: "memory",
        among: OF_A_SIZE,
        unit: "bytes",
        coroutines: bytes,
        threads: None,
        limit: Some(Limit::AtMost(128.0)),
    }
}

fn of_time(setting: &Setting, domain: &'static Domain) -> Vec<Figure> {
    let turns = |turns: u64| (turns / SCALE).max(1);
    let yields = |among: usize| turns(YIELDS / among as u64);
    let thread = per_turn(yields(THREADS), THREADS as u64, |yields| {
        turns::threads_yield(THREADS, yields)
    });
    let switches: Vec<_> = (AMONG.into_iter())
        .map(|among| {
            let cost = per_turn(yields(among), among as u64, |yields| {
                turns::coroutines_yield(domain, among, yields)
            });
            (among, cost)
        })
        .collect();
    let of_switch =
        |&(among, cost): &(usize, f64)| Figure::of_time(setting, "switch", among, cost, thread);
    let mut figures: Vec<_> = switches.iter().map(of_switch).collect();
    let many = switches.iter().filter(|(among, _)| *among >= SPREAD_FROM);
    let most = AMONG[AMONG.len() - 1];
    figures.push(Figure::spread(setting, most, many.map(|(_, cost)| *cost)));
    figures.push(Figure::of_time(
        setting,
        "spawn",
        1,
        per_turn(turns(SPAWNS), 1, |turns| {
            turns::coroutines_spawn(domain, turns)
        }),
        per_turn(turns(SPAWNS), 1, turns::threads_spawn),
    ));
    figures.push(Figure::of_time(
        setting,
        "batch",
        BATCH,
        per_turn(turns(BATCHES), BATCH as u64, |turns| {
            turns::coroutines_spawn_batch(domain, turns)
        }),
        per_turn(turns(BATCHES), BATCH as u64, turns::threads_spawn_batch),
    ));
    figures.push(Figure::of_time(
        setting,
        "wake",
        2,
        per_turn(turns(WAKES), 1, |turns| {
            turns::coroutines_wake(domain, turns)
        }),
        per_turn(turns(WAKES), 1, turns::threads_wake),
    ));
    figures
}

/// Returns a phase without rows.
fn phase(pass: bool) -> Phase {
    Phase {
        name: PHASE,
        pass,
        ..Phase::default()
    }
}
