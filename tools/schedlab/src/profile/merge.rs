//! `schedlab profile merge`: several runs of a program, of one machine or of ten thousand, to
//! one profile. One file is in memory at a time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use axsched_ext::pbg::stored::{Header, MergeError, Merger, StoredProfile};

use super::{
    file::{examine, save, title},
    fleet,
    variation::Variation,
};
use crate::{
    Verdict,
    cli::MergeArgs,
    output::{count, note, print, print_line},
};

/// How many of the files that do not belong are named in an error.
const ENOUGH: usize = 20;

pub fn merge(args: &MergeArgs) -> Result<Verdict> {
    let files = fleet::files(args)?;
    let mut fleet = Fleet::default();
    for path in &files {
        fleet.add(path)?;
    }
    if !args.leave_out || fleet.first.is_none() {
        fleet.all_belong(files.len())?;
    }
    let merged = fleet.merger.finish()?;
    let bytes = save(&args.out, &merged)?;
    let (place, title) = (args.out.display(), title(&merged));
    print_line(format_args!("{place}: {title}; {bytes} bytes"))?;
    if merged.header.runs > 1 {
        print(format_args!("\n{}", fleet.variation.text(&merged)))?;
    }
    if let (Some((first, _)), false) = (&fleet.first, fleet.others.is_empty()) {
        print_line(format_args!(
            "\nleft out: {} of {}, which do not belong with {}",
            fleet.others.len(),
            count(files.len(), "profile"),
            first.display()
        ))?;
        for other in &fleet.others {
            print_line(format_args!("    {other}"))?;
        }
    }
    Ok(Verdict::Good)
}

/// The runs so far, and what was not taken for one of them.
#[derive(Default)]
struct Fleet {
    merger: Merger,
    variation: Variation,
    /// What was taken first: the others must be of the same program and machine.
    first: Option<(PathBuf, Header)>,
    /// A file that is no run of that program there, and why.
    others: Vec<String>,
}

impl Fleet {
    /// What cannot be read is an error; what does not belong is kept in mind.
    fn add(&mut self, path: &Path) -> Result<()> {
        let place = || path.display().to_string();
        let profile = match examine(path)? {
            Ok(source) => source.profile,
            Err(bad) => {
                self.others.push(format!("{}: {bad}", place()));
                return Ok(());
            }
        };
        match self.merger.add(&profile) {
            Ok(()) => {
                self.variation.add(&profile);
                if self.first.is_none() {
                    self.first = Some((path.to_owned(), profile.header));
                }
            }
            // Of which one is to blame. The others are of all together.
            Err(error) if error.profile().is_some() => {
                self.others
                    .push(format!("{}: {}", place(), self.reason(error, &profile)));
            }
            Err(error) => return Err(error).with_context(place),
        }
        Ok(())
    }

    /// Files have names, which say more than the library's numbers.
    fn reason(&self, error: MergeError, profile: &StoredProfile) -> String {
        let found = profile.header.program;
        match (error, &self.first) {
            (MergeError::Name { .. }, Some((_, first))) => format!(
                "expected the name `{}`, found `{}` for the same program",
                first.program.name, found.name
            ),
            (MergeError::Program { expected, .. }, Some((_, first)))
                if first.program.name == found.name =>
            {
                format!(
                    "expected `{}` with hash {expected:016x}, found it with {:016x}, as at another SCALE",
                    found.name, found.hash
                )
            }
            _ => {
                let number = error.profile().map(|number| format!("profile {number}: "));
                let what = error.to_string();
                let plain = number.and_then(|number| Some(what.strip_prefix(&number)?.to_owned()));
                plain.unwrap_or(what)
            }
        }
    }

    /// An error that names what does not belong.
    fn all_belong(&self, files: usize) -> Result<()> {
        match &self.others[..] {
            [] => Ok(()),
            [one] => Err(anyhow!("{one}")),
            several => {
                for other in several.iter().take(ENOUGH) {
                    note(other);
                }
                if several.len() > ENOUGH {
                    note(format_args!("… and {} more", several.len() - ENOUGH));
                }
                let first = match &self.first {
                    None => bail!("expected a profile, found none in {}", count(files, "file")),
                    Some((first, _)) => first.display(),
                };
                bail!(
                    "{} of {} do not belong with {first}; --leave-out merges the others",
                    several.len(),
                    count(files, "profile")
                )
            }
        }
    }
}
