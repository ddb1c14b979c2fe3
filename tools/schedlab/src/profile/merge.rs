//! `schedlab profile merge`: makes one profile of several runs of a program, on one machine or on ten
//! thousand. One file is in memory at a time.

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

/// The number of files that an error names.
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

/// The runs so far, and the files that were left out.
#[derive(Default)]
struct Fleet {
    merger: Merger,
    variation: Variation,
    /// The first run: the others must be of the same program and machine.
    first: Option<(PathBuf, Header)>,
    /// The files that are no run of that program and machine, with the reasons.
    others: Vec<String>,
}

impl Fleet {
    /// Adds a file, or the reason for which it does not belong. A file that cannot be read is an
    /// error.
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
            // One profile is to blame. Other errors are about all together.
            Err(error) if error.profile().is_some() => {
                self.others
                    .push(format!("{}: {}", place(), self.reason(error, &profile)));
            }
            Err(error) => return Err(error).with_context(place),
        }
        Ok(())
    }

    /// Returns the library's reason without the number of the profile, as files have names.
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

    /// Refuses files that do not belong, and names them.
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
