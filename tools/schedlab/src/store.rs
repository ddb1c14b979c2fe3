//! The folder of results.
//!
//! `<arch>/<app>/<policy>.jsonl` holds the result lines as they were printed, boot after boot,
//! with an empty line between two boots. There is a boot for each tick phase, or in real time for
//! each repetition. `<policy>.cell.json` says what they were made from. Neither names dates or
//! places, so equal results are equal files.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use sched_tests_results::TickPhase;
use serde::{Deserialize, Serialize};

use crate::{
    project::{Cell, short},
    record::{Outcome, parse_boots},
    sources::Made,
};

/// The origin of a cell's results: inputs, command and number of runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The fingerprint of sources, tools and variables. Equal ones need no new run.
    pub fingerprint: String,
    /// The parts of that fingerprint.
    pub inputs: Inputs,
    /// The files that the image was built from. Older commits do not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// The command that makes the same results by hand.
    pub command: String,
    /// The number of runs. In counted time all agreed at each tick phase; in real time the
    /// lines are those of all of them.
    pub runs: usize,
    /// The tick phases of the boots; empty in real time, in which a tick has no phase. The command
    /// makes the first, and with TICK_PHASE= any.
    pub tick_phases: Vec<TickPhase>,
}

/// The tools and sources of a cell, apart, to say in which of them two results differ.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Inputs {
    /// The versions of the compiler, then of each architecture's QEMU.
    pub tools: Vec<String>,
    /// The fingerprint of the sources that reach every app's images.
    pub shared: String,
    /// The fingerprint of the app's own sources.
    pub own: String,
}

impl Inputs {
    /// Returns the compiler's version, and each version of QEMU once.
    pub fn versions(&self) -> (String, String) {
        let Some((compiler, emulators)) = self.tools.split_first() else {
            return Default::default();
        };
        let mut emulators = emulators.to_vec();
        emulators.dedup();
        (compiler.clone(), emulators.join(", "))
    }
}

impl Origin {
    /// Returns true if results of this origin contain all that those of the other would.
    fn answers(&self, wanted: &Self) -> bool {
        let mut phases = wanted.tick_phases.iter();
        self.fingerprint == wanted.fingerprint
            && self.runs >= wanted.runs
            && phases.all(|phase| self.tick_phases.contains(phase))
    }
}

/// A folder of results; it need not exist yet.
#[derive(Clone, Debug)]
pub struct Store {
    pub root: PathBuf,
}

impl Store {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn file(&self, cell: &Cell, end: &str) -> PathBuf {
        let folder = self.root.join(&cell.arch).join(&cell.app.name);
        folder.join(format!("{}.{end}", cell.policy))
    }

    /// Returns the file with the whole console of a failed cell.
    pub fn failed_log(&self, cell: &Cell) -> PathBuf {
        self.file(cell, "failed.log")
    }

    /// Creates the folder if it does not exist.
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("{} cannot be made", self.root.display()))
    }

    /// Returns true if the cell has results from the same inputs, with as many runs and at these
    /// tick phases.
    pub fn is_fresh(&self, cell: &Cell, wanted: &Origin) -> bool {
        let origin = self.origin(cell);
        origin.is_some_and(|origin| origin.answers(wanted)) && self.file(cell, "jsonl").is_file()
    }

    /// Returns what the cell was made from; `None` if its file is absent or of another version.
    pub fn origin(&self, cell: &Cell) -> Option<Origin> {
        serde_json::from_str(&fs::read_to_string(self.file(cell, "cell.json")).ok()?).ok()
    }

    /// Returns the cell's result lines as they were printed, or `None` if there are none.
    pub fn lines(&self, cell: &Cell) -> Result<Option<String>> {
        let path = self.file(cell, "jsonl");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| path.display().to_string()),
        }
    }

    /// Returns the cell's figures, boot by boot, or `None` if there are none.
    ///
    /// # Errors
    /// A line is wrong: the error names file, line, what was expected and what was found.
    pub fn read(&self, cell: &Cell) -> Result<Option<Vec<Outcome>>> {
        let Some(text) = self.lines(cell)? else {
            return Ok(None);
        };
        let place = self.file(cell, "jsonl");
        let boots = parse_boots(&text).map_err(|e| anyhow!("{}:{e}", place.display()))?;
        for boot in &boots {
            check_cell(boot, cell).map_err(|e| anyhow!("{}: {e}", place.display()))?;
        }
        Ok(Some(boots))
    }

    /// Writes the lines of each boot of a cell. The origin is written last, so a cell that was
    /// interrupted is not taken for a finished one.
    pub fn write(&self, cell: &Cell, boots: &[Vec<String>], origin: &Origin) -> Result<()> {
        self.forget(cell)?;
        let mut json = serde_json::to_string_pretty(origin)?;
        json.push('\n');
        write(&self.file(cell, "jsonl"), text(boots))?;
        write(&self.file(cell, "cell.json"), &json)
    }

    /// Writes the lines of a cell that was simulated, and so has no origin.
    pub fn write_played(&self, cell: &Cell, lines: &str) -> Result<()> {
        self.forget(cell)?;
        write(&self.file(cell, "jsonl"), lines)
    }

    /// Writes the console of a failed cell and removes its results: tables would show old ones as
    /// if they were new.
    pub fn write_failed(&self, cell: &Cell, console: &[String]) -> Result<()> {
        self.forget(cell)?;
        write(&self.failed_log(cell), &(console.join("\n") + "\n"))
    }

    fn forget(&self, cell: &Cell) -> Result<()> {
        for end in ["cell.json", "jsonl", "failed.log"] {
            let path = self.file(cell, end);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(e).with_context(|| path.display().to_string());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the cells with results, as `[arch, app, policy]`, sorted.
    pub fn contents(&self) -> Result<Vec<[String; 3]>> {
        if !self.root.is_dir() {
            bail!(
                "{}: expected a folder of results, found none",
                self.root.display()
            );
        }
        let mut found = Vec::new();
        for arch in names(&self.root)? {
            for app in names(&self.root.join(&arch))? {
                for file in names(&self.root.join(&arch).join(&app))? {
                    if let Some(policy) = file.strip_suffix(".jsonl") {
                        found.push([arch.clone(), app.clone(), policy.to_owned()]);
                    }
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Joins the lines of boots, with an empty line between two boots.
fn text(boots: &[Vec<String>]) -> String {
    let boots: Vec<_> = boots.iter().map(|lines| lines.join("\n") + "\n").collect();
    boots.join("\n")
}

/// Refuses figures of another cell, which mean that the build took another policy or app than it
/// was told, or that a file was misplaced.
pub fn check_cell(outcome: &Outcome, cell: &Cell) -> Result<()> {
    let run = &outcome.last().context;
    for (key, expected, found) in [
        ("arch", &cell.arch, &run.arch),
        ("app", &cell.app.name, &run.app),
        ("sched", &short(&cell.policy), &run.sched),
    ] {
        if expected != found {
            bail!("expected results with {key} `{expected}`, found `{found}`");
        }
    }
    Ok(())
}

/// Returns the names of a folder's entries; none if it is not a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()
        .with_context(|| folder.display().to_string())
}

/// Writes a file whole or not at all, and creates its folder. Refuses a path that is no file.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    pbg_save::write(path, contents).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::sample;

    fn origin(fingerprint: &str, runs: usize, phases: u16) -> Origin {
        Origin {
            fingerprint: fingerprint.into(),
            inputs: Inputs::default(),
            made: None,
            command: "make run".into(),
            runs,
            tick_phases: TickPhase::evenly(phases).collect(),
        }
    }

    #[test]
    fn cell_is_fresh_with_its_fingerprint_and_as_many_runs_and_tick_phases() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("lab"));
        let cell = Cell::new("x86_64", "realtime", "sched_rr");
        let lines = sample("realtime", "rr", &[("run", 100)]);
        let written = origin("f", 2, 8);
        assert!(!store.is_fresh(&cell, &written));
        store
            .write(&cell, &[vec![lines.trim_end().into()]], &written)
            .unwrap();
        for (fingerprint, runs, phases, is_fresh) in [
            ("f", 2, 8, true),
            ("f", 1, 4, true),
            ("f", 1, 1, true),
            ("g", 1, 1, false),
            ("f", 3, 1, false),
            ("f", 1, 3, false),
            ("f", 1, 16, false),
        ] {
            let wanted = origin(fingerprint, runs, phases);
            assert_eq!(store.is_fresh(&cell, &wanted), is_fresh, "{wanted:?}");
        }
        assert_eq!(store.origin(&cell), Some(written.clone()));
        let found = [["x86_64", "realtime", "sched_rr"].map(String::from)];
        assert_eq!(store.contents().unwrap(), found);
        assert_eq!(store.lines(&cell).unwrap(), Some(lines));
        store.write_failed(&cell, &["panic".into()]).unwrap();
        assert!(store.read(&cell).unwrap().is_none() && !store.is_fresh(&cell, &written));
        store.write(&cell, &[], &written).unwrap();
        assert!(!store.failed_log(&cell).exists());
    }
}
