//! Changes of a recorded program (what if), as options of a command line.
//!
//! `--run` and `--add` apply to the task of the last `--task` before them or, without one, to all
//! tasks. So the order of these options counts, and a list of values for each is not enough.

use clap::{
    ArgMatches, Args, Command, Error, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use sched_sim::whatif::{Amount, Change, times};

/// The changes in the order of the options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes(pub Vec<Change>);

/// The options as clap knows them.
#[derive(Args)]
struct Words {
    /// The task that --run and --add after this change, until the next --task
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,
    /// This task, or without --task every task, computes longer or shorter: +20%, -50%, x2, =30ms
    #[arg(long, value_name = "CHANGE", allow_hyphen_values = true, value_parser = |text: &str| text.parse::<Amount>())]
    run: Vec<Amount>,
    /// There are N more of this task, or without --task of main's tasks in turn; N is 1 to 4096
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    add: Vec<u16>,
    /// Tasks that come late come this many times as late: x2
    #[arg(long, value_name = "xN", value_parser = times)]
    arrivals: Vec<f64>,
}

/// An option and its value.
enum Word {
    Task(String),
    Run(Amount),
    Add(u16),
    Arrivals(f64),
}

impl Args for Changes {
    fn augment_args(command: Command) -> Command {
        Words::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Words::augment_args_for_update(command)
    }
}

impl FromArgMatches for Changes {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let words = Words::from_arg_matches(matches)?;
        let mut all: Vec<(usize, Word)> = Vec::new();
        let places = |id| matches.indices_of(id).into_iter().flatten();
        all.extend(places("task").zip(words.task.into_iter().map(Word::Task)));
        all.extend(places("run").zip(words.run.into_iter().map(Word::Run)));
        all.extend(places("add").zip(words.add.into_iter().map(Word::Add)));
        all.extend(places("arrivals").zip(words.arrivals.into_iter().map(Word::Arrivals)));
        all.sort_by_key(|(place, _)| *place);
        let (mut changes, mut task) = (Vec::new(), None);
        let mut of_no_use: Option<String> = None;
        for (_, word) in all {
            match word {
                Word::Task(name) => {
                    refuse_idle(of_no_use.take())?;
                    of_no_use = Some(name.clone());
                    task = Some(name);
                }
                Word::Run(amount) => {
                    of_no_use = None;
                    let task = task.clone();
                    changes.push(Change::Run { task, amount });
                }
                Word::Add(copies) => {
                    of_no_use = None;
                    let (task, copies) = (task.clone(), usize::from(copies));
                    changes.push(Change::Add { task, copies });
                }
                Word::Arrivals(times) => changes.push(Change::Arrivals { times }),
            }
        }
        refuse_idle(of_no_use)?;
        Ok(Self(changes))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Refuses a `--task` without a change.
fn refuse_idle(task: Option<String>) -> Result<(), Error> {
    let Some(name) = task else { return Ok(()) };
    let mut error = Error::new(ErrorKind::MissingRequiredArgument);
    let missing = format!("--run or --add after --task {name}");
    error.insert(
        ContextKind::InvalidArg,
        ContextValue::Strings(vec![missing]),
    );
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        changes: Changes,
    }

    fn read(text: &str) -> Result<Vec<Change>, String> {
        let cli = Cli::try_parse_from(["what"].into_iter().chain(text.split_whitespace()));
        let read = cli.map(|cli| cli.changes.0);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn change_applies_to_the_task_before_it() {
        let text = "--run x2 --task a --run +20% --add 3 --arrivals x2 --task b --add 1 --run -50%";
        let run = |task: Option<&str>, times| Change::Run {
            task: task.map(str::to_owned),
            amount: Amount::Times(times),
        };
        let add = |task: &str, copies| Change::Add {
            task: Some(task.to_owned()),
            copies,
        };
        let expected = [
            run(None, 2.0),
            run(Some("a"), 1.2),
            add("a", 3),
            Change::Arrivals { times: 2.0 },
            add("b", 1),
            run(Some("b"), 0.5),
        ];
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn task_without_a_change_is_refused() {
        for text in [
            "--task a",
            "--task a --task b --run x2",
            "--run x2 --task a",
        ] {
            assert_has(read(text).unwrap_err(), "--run or --add after --task a");
        }
        let why = read("--task a --run 2").unwrap_err();
        assert_has(&why, "expected +20%, -50%, x2 or =30ms");
        assert_has(read("--add 0").unwrap_err(), "0 is not in 1..=4096");
        assert_has(read("--arrivals 2").unwrap_err(), "expected x2");
    }
}
