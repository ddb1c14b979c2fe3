//! A scheduler laboratory: every policy with every app on every architecture, and the tables and
//! figures that come out of it. [`cli::Command`] lists the subcommands.
//!
//! | module | contents |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`changes`] | changes of a recorded program |
//! | [`project`] | the project: its place, its lists, its `make` |
//! | [`setting`] | the setting of all cells of a matrix |
//! | [`record`] | result lines: text to figures |
//! | [`account`] | the CPU time of the tasks, and how much may be outside them |
//! | [`spread`] | a figure over several phases of the timer tick |
//! | [`store`] | the folder of results |
//! | [`boot`] | building and booting through make |
//! | [`matrix`] | running the cells that have to be run |
//! | [`cost`] | the cost of a yield, and the gate |
//! | [`coop_cost`] | the cost of coroutines beside threads |
//! | [`compare`] | tables, figures, differences |
//! | [`connections`] | connections served by coroutines and by threads |
//! | [`simulate`] | a recording under every policy, in virtual time |
//! | [`advise`] | which policy for a recorded program |
//! | [`plan`] | the best order of a recorded program's tasks |
//! | [`soak`] | tasks at random, for long or often |
//! | [`docs`] | the tables of Markdown pages |
//! | [`sources`] | the sources of rows, and the rows that are out of date |
//! | [`digest`] | SHA-256 |
//! | [`gantt`] | the chart of a traced run |
//! | [`trace`] | each switch of a run |
//! | [`draw`] | the common parts of all charts |
//! | [`grid`] | a table as text, Markdown and CSV |
//! | [`output`] | standard output and standard error |
//! | [`bar`] | the bar of progress |
//! | [`profile`] | PBG's profiles |
//! | [`verdict`] | how a subcommand ends |
//!
//! | exit status | meaning |
//! |--:|---|
//! | 0 | all is well |
//! | 1 | a cell failed, is missing or differs |
//! | 1 | a yield costs more than it did |
//! | 1 | a profile is bad or differs |
//! | 2 | the question or a file was wrong |
//! | 130 | interrupted |

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
mod plan;
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
        Command::Plan(options) => plan::plan(options),
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
