//! A scheduler laboratory: every policy with every app on every architecture,
//! and the tables and figures that come out of it.
//!
//! - `schedlab matrix` builds and runs, and keeps what the guests printed
//! - `schedlab compare` reads that and prints the tables, or holds two folders
//!   of results against each other
//! - `schedlab cost` counts what a yield costs, and is the gate that says whether that grew
//! - `schedlab coop-cost` shows what coroutines cost beside threads
//! - `schedlab connections` shows how coroutines and threads serve connections
//! - `schedlab simulate` plays a recording under every policy on any number of CPUs
//! - `schedlab advise` says in one screen which policy to take, and why
//! - `schedlab soak` boots tasks at random under every policy, and watches that none waits for ever
//! - `schedlab docs` writes the tables of Markdown pages from CSV files, or checks them
//! - `schedlab gantt` draws when each task of a run had its CPU
//! - `schedlab trace` writes each switch of a run, or of a recording that is played, as a file
//!   for Perfetto, and prints how long each task waited, and for which other
//! - `schedlab stale` says which rows of the published tables are out of date
//! - `schedlab profile` shows, verifies, merges, edits and compares what PBG has
//!   recorded
//!
//! | module | its business |
//! |---|---|
//! | [`cli`] | what may be asked for |
//! | [`changes`] | what may be asked of a program in a changed world |
//! | [`project`] | where the project is, what it has, how its `make` is called |
//! | [`setting`] | what all cells of a matrix have in common |
//! | [`record`] | result lines: text to figures |
//! | [`account`] | who had the CPUs, and how much time may be outside the tasks |
//! | [`spread`] | a figure over several phases of the timer tick |
//! | [`store`] | the folder of results |
//! | [`boot`] | building and booting through make |
//! | [`matrix`] | running what has to be run |
//! | [`cost`] | what a yield costs, and the gate |
//! | [`coop_cost`] | what coroutines cost beside threads |
//! | [`compare`] | tables, figures, differences |
//! | [`connections`] | connections served by coroutines and by threads |
//! | [`simulate`] | a recording under every policy, in virtual time |
//! | [`advise`] | which policy for a recorded program |
//! | [`soak`] | tasks at random, for long or often |
//! | [`docs`] | the tables of Markdown pages |
//! | [`sources`] | what rows were made from, and which are out of date |
//! | [`digest`] | SHA-256 |
//! | [`gantt`] | the chart of a traced run |
//! | [`trace`] | each switch of a run |
//! | [`draw`] | what all charts have in common |
//! | [`grid`] | a table as text, Markdown and CSV |
//! | [`output`] | standard output and standard error |
//! | [`bar`] | how far something is |
//! | [`profile`] | PBG's profiles |
//! | [`verdict`] | how a subcommand ends |
//!
//! Exit status: 0 all is well; 1 a cell failed, is missing or differs, a yield costs more
//! than it did, a profile is bad or differs; 2 the question or a file was wrong; 130 interrupted.

mod account;
mod advise;
mod bar;
mod boot;
mod changes;
mod cli;
mod compare;
mod connections;
mod coop_cost;
mod cost;
mod digest;
mod distinct;
mod docs;
mod draw;
mod gantt;
mod grid;
mod matrix;
mod output;
mod profile;
mod project;
mod record;
mod setting;
mod simulate;
mod soak;
mod sources;
mod spread;
mod store;
#[cfg(test)]
mod testing;
mod trace;
mod verdict;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
pub use verdict::Verdict;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let verdict = match &cli.command {
        Command::Matrix(options) => matrix::matrix(&cli.tree, options),
        Command::Compare(options) => compare::compare(&cli.tree, options),
        Command::Cost(options) => cost::cost(&cli.tree, options),
        Command::CoopCost(options) => coop_cost::coop_cost(&cli.tree, options),
        Command::Connections(options) => connections::connections(&cli.tree, options),
        Command::Simulate(options) => simulate::simulate(&cli.tree, options),
        Command::Advise(options) => advise::advise(options),
        Command::Soak(options) => soak::soak(&cli.tree, options),
        Command::Docs(options) => docs::docs(options),
        Command::Gantt(options) => gantt::gantt(&cli.tree, options),
        Command::Trace(options) => trace::trace(&cli.tree, options),
        Command::Stale(options) => sources::stale(&cli.tree, options),
        Command::Profile(command) => profile::profile(command),
    };
    match verdict {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Ok(Verdict::Interrupted) => ExitCode::from(130),
        Err(error) => {
            output::note(format_args!("schedlab: {error:#}"));
            ExitCode::from(2)
        }
    }
}
