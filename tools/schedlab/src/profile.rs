//! `schedlab profile`: PBG's profiles of programs. The library defines the format and its rules; here
//! are the commands for people.

mod diff;
mod edit;
mod file;
mod fleet;
mod graph;
mod merge;
mod names;
mod quantity;
mod show;
mod variation;

use anyhow::{Result, bail, ensure};
use axsched_ext::pbg::stored::{self, Architecture, Expected, Timing, VERSION};

use crate::{
    Verdict,
    cli::{self, ProfileCommand, VerifyArgs},
    output::print_line,
};
use file::{examine, title};
pub use file::{read, save};

pub fn profile(command: &ProfileCommand) -> Result<Verdict> {
    match command {
        ProfileCommand::Show(args) => show::show(args),
        ProfileCommand::Verify(args) => verify(args),
        ProfileCommand::Merge(args) => merge::merge(args),
        ProfileCommand::Edit(args) => edit::edit(args),
        ProfileCommand::Diff(args) => diff::diff(args),
    }
}

fn verify(args: &VerifyArgs) -> Result<Verdict> {
    let arch = args.arch.as_deref().map(architecture).transpose()?;
    let timing = args.timing.map(|timing| match timing {
        cli::Timing::Icount => Timing::Counted,
        cli::Timing::Real => Timing::Real,
    });
    let place = args.file.display();
    let examined = examine(&args.file)?.and_then(|source| {
        let header = &source.profile.header;
        // A property without an option is as expected.
        let expected = Expected {
            architecture: arch.unwrap_or(header.architecture),
            program_hash: args.program.unwrap_or(header.program.hash),
            timing: timing.unwrap_or(header.timing),
        };
        stored::check(&source.profile, &expected)?;
        let (expected, found) = (args.smp.unwrap_or(header.cpus), header.cpus);
        ensure!(
            expected == found,
            "expected a profile of {expected} CPU(s), found one of {found}"
        );
        Ok(source)
    });
    let source = match examined {
        Ok(source) => source,
        Err(bad) => {
            print_line(format_args!("{place}: bad: {bad}"))?;
            return Ok(Verdict::Bad);
        }
    };
    let (title, bytes) = (title(&source.profile), source.bytes);
    let console = match source.is_console {
        true => ", in a console log",
        false => "",
    };
    print_line(format_args!(
        "{place}: good: {title}; version {VERSION}, {bytes} bytes{console}"
    ))?;
    Ok(Verdict::Good)
}

fn architecture(name: &str) -> Result<Architecture> {
    let known = Architecture::ALL.map(Architecture::name);
    match known.iter().position(|known| *known == name) {
        Some(at) => Ok(Architecture::ALL[at]),
        None => bail!("--arch: expected one of {}, found {name}", known.join(" ")),
    }
}

#[cfg(test)]
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

#[cfg(test)]
mod tests {
    use axsched_ext::{
        pbg::stored::{
            Ended, Figure, Figures, Label, Phases, Place, StoredPhase, StoredProfile, StoredTask,
        },
        units::{Counts, TaskKey},
    };

    use super::*;

    /// Returns a task of one run, in counts.
    pub fn task(place: Place, key: TaskKey, label: Option<&str>, counts: [u64; 3]) -> StoredTask {
        let [run, ready, blocked] = counts.map(Figure::once);
        StoredTask {
            key: label.map_or(key, TaskKey::labelled),
            label: label.map(|label| Label::new(label).unwrap()),
            place,
            figures: Figures {
                run,
                ready,
                blocked,
                dispatches: Figure::once(4),
                yields: Figure::once(2),
                preemptions: Figure::once(1),
                blocks: Figure::once(1),
            },
            phases: Phases {
                list: vec![StoredPhase::new(
                    Ended::Yield,
                    2,
                    Counts(counts[0]),
                    Counts(0),
                )],
                ..Phases::default()
            },
            ..profiles::task(0)
        }
    }

    /// Returns two children of the root, the second with a label and a child. 1 count is 1 ns.
    pub fn sample() -> StoredProfile {
        let root = |ordinal| Place::Root { ordinal };
        let below = Place::Child {
            parent: 1,
            ordinal: 0,
        };
        let worker = TaskKey::labelled("worker");
        profiles::profile(
            "realtime",
            [
                task(root(0), TaskKey::ROOT.child(0), None, [3_200_105_000, 0, 0]),
                task(
                    root(1),
                    worker,
                    Some("worker"),
                    [10_000_000, 20_000_000, 10_000_000],
                ),
                task(below, worker.child(0), None, [1_500, 500, 0]),
            ],
        )
    }
}
