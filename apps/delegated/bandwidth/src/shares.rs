//! The share of a group, simulated in virtual time. An agent has CPU 0, and the tasks have four others.

use std::cell::RefCell;
use std::ops::Range;

use delegated::simulate;
use delegated_bandwidth::Bandwidth;
use delegated_common::{Class, Served, Table, agent, config, now};
use sched_model::model::{CpuMask, Op, Program};

const CPUS: Range<usize> = 1..5;
const TASKS: usize = 40;
const TICK: u64 = 10_000_000;
const PERIOD: u64 = 100_000_000;
/// The work between two notes of a task.
const PIECE: u64 = 100_000;
/// A round of the agent's loop.
const ROUND: u64 = 5_000;

// The calls of the programs.
const MAKES: u32 = 0;
const ATTACHES: u32 = 1;
const DECIDES: u32 = 2;
const JOINS_GROUP: u32 = 3;
const JOINS: u32 = 4;
const NOTES_GROUP: u32 = 5;
const NOTES: u32 = 6;
const STOPS: u32 = 7;

static GROUP: Class = Class::new();

/// The state of a run.
struct State {
    budget: u64,
    served: Option<Served<Bandwidth>>,
    /// The times at which a piece was done, of the group and of the free task.
    pieces: [Vec<u64>; 2],
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

fn call(what: u32) {
    STATE.with_borrow_mut(|state| state.as_mut().expect("a run").call(what));
}

impl State {
    fn call(&mut self, what: u32) {
        let budget = self.budget;
        match (what, &mut self.served) {
            (MAKES, served) => *served = Some(Served::new((1 << CPUS.end) - 1, TICK)),
            (ATTACHES, Some(served)) => {
                served.attach(Bandwidth::new(PERIOD, budget, CPUS, now, &GROUP));
            }
            (DECIDES, Some(served)) => served.decide(),
            (JOINS, Some(served)) => drop(served.delegate()),
            (JOINS_GROUP, Some(served)) => GROUP.add(served.delegate()),
            (NOTES, Some(_)) => self.pieces[1].push(now()),
            (NOTES_GROUP, Some(_)) => self.pieces[0].push(now()),
            (STOPS, served) => *served = None,
            _ => {}
        }
    }
}

/// The shares of one CPU that were measured.
#[derive(Debug, PartialEq)]
pub struct Shares {
    /// The least and the largest of the group in any ten periods.
    pub group: [f64; 2],
    /// The share of the free task in all periods.
    pub free: f64,
}

/// Runs a group for `periods`, beside a free task. The budget is this share of one CPU.
pub fn run(share: f64, periods: u64) -> Shares {
    STATE.set(Some(State {
        budget: (share * PERIOD as f64) as u64,
        served: None,
        pieces: [vec![], vec![]],
    }));
    let task = |name: &str, joins: u32, notes: u32, work: u64| {
        let times = work / PIECE;
        Op::spawn(
            name,
            [
                Op::Migrate(CpuMask((1 << CPUS.end) - 2)),
                Op::Call(joins),
                Op::Yield,
                Op::Run(PIECE),
                Op::Call(notes),
                Op::Again { steps: 2, times },
            ],
        )
    };
    let length = periods * PERIOD;
    let mut main = vec![
        Op::Migrate(CpuMask::one(0)),
        Op::Sleep(3 * TICK),
        Op::Call(MAKES),
        agent(ATTACHES, DECIDES, ROUND, length * 11 / 10),
    ];
    let each = length * CPUS.len() as u64 / TASKS as u64;
    main.extend((0..TASKS).map(|_| task("limited", JOINS_GROUP, NOTES_GROUP, each)));
    main.push(task("free", JOINS, NOTES, length));
    main.extend([Op::Sleep(length), Op::Call(STOPS)]);
    main.extend((0..TASKS + 2).map(Op::Join));
    let config = config(CPUS.end, TICK, call);
    let ended = simulate::<Table>(&config, &Program::new("main", main));
    ended.unwrap_or_else(|failure| panic!("{failure}"));
    let [group, free] = STATE.take().expect("a run").pieces;
    let window = 10 * PERIOD;
    let begin = free[0];
    let end = group[group.len() - 1].min(free[free.len() - 1]);
    let share = |pieces: &[u64], from: u64, length: u64| {
        let done = pieces.partition_point(|time| *time < from + length)
            - pieces.partition_point(|time| *time < from);
        done as f64 * PIECE as f64 / length as f64
    };
    let windows = (begin..end - window).step_by(TICK as usize / 2);
    let shares: Vec<_> = windows.map(|from| share(&group, from, window)).collect();
    Shares {
        group: [
            shares.iter().copied().fold(f64::INFINITY, f64::min),
            shares.iter().copied().fold(0.0, f64::max),
        ],
        free: share(&free, begin, end - begin),
    }
}

pub fn main() {
    println!("40 tasks in a group beside a free one, on 4 CPUs; periods of 100 ms; % of one CPU\n");
    println!("| limit | group in any ten periods | free task |");
    println!("|--:|--:|--:|");
    for percent in [20, 80, 160, 240, 320] {
        let shares = run(f64::from(percent) / 100.0, 30);
        let [least, most] = shares.group.map(|share| 100.0 * share);
        println!(
            "| {percent} | {least:.1} to {most:.1} | {:.1} |",
            100.0 * shares.free
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The promise is the budget of one period in any ten, 10 %. A group that is preempted keeps within 1 %.
    #[test]
    #[cfg_attr(
        debug_assertions,
        ignore = "needs --release, as the layer for several CPUs"
    )]
    fn group_keeps_within_a_period_of_its_limit() {
        let shares = run(2.4, 15);
        let [least, most] = shares.group;
        assert!(least >= 0.99 * 2.4 && most <= 1.01 * 2.4, "{shares:?}");
        assert!(shares.free >= 0.98, "{shares:?}");
    }
}
