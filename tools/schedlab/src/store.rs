//! The folder of results: `<arch>/<app>/<policy>.jsonl` holds the result lines
//! as they were printed, boot after boot (one for each tick phase, or in real time each that
//! was asked for) with an empty line between, `<policy>.cell.json` what they were made from. No dates and no places in
//! either, so that equal results are equal files.

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

/// What a cell's results were made from.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The fingerprint of sources, tools and variables; equal ones need no new run.
    pub fingerprint: String,
    /// The fingerprint of sources and tools only.
    pub sources: String,
    /// What that is a fingerprint of; not known of older results, which are no worse for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// The files that the image was built from; not known of older results, nor of older commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// The command that makes the same results by hand.
    pub command: String,
    /// How many runs gave these lines: that many agreed in counted time, at each tick phase;
    /// in real time the lines are those of all of them.
    pub runs: usize,
    /// A boot for each; none where time is not counted, as a tick then has no phase.
    /// The command makes the first, and with TICK_PHASE= any.
    pub tick_phases: Vec<TickPhase>,
}

/// Tools and sources apart, so that of two results it can be told in what they differ.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Inputs {
    /// The versions of the compiler, then of each architecture's QEMU.
    pub tools: Vec<String>,
    /// The fingerprint of the sources that reach every app's images.
    pub shared: String,
    /// The fingerprint of the app's own sources.
    pub own: String,
}

impl Inputs {
    /// The compiler's version, and each version that a QEMU has.
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
    /// Whether results of this origin hold all that those of another would.
    fn answers(&self, wanted: &Self) -> bool {
        let all_there = wanted
            .tick_phases
            .iter()
            .all(|phase| self.tick_phases.contains(phase));
        self.fingerprint == wanted.fingerprint && self.runs >= wanted.runs && all_there
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
        self.root
            .join(&cell.arch)
            .join(&cell.app.name)
            .join(format!("{}.{end}", cell.policy))
    }

    /// Where the whole console of a failed cell is kept.
    pub fn failed_log(&self, cell: &Cell) -> PathBuf {
        self.file(cell, "failed.log")
    }

    /// Makes the folder, if it is not there.
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("{} cannot be made", self.root.display()))
    }

    /// Whether the cell is here, made from the same, run as often and at these tick
    /// phases. Of an older schedlab, which knew no tick phases, no cell is; and one that kept
    /// a single boot of several in real time has that one.
    pub fn is_fresh(&self, cell: &Cell, wanted: &Origin) -> bool {
        let fresh = |origin: Origin| origin.answers(wanted);
        let has_boots = || match wanted.tick_phases[..] {
            [] => self.boots(cell) >= wanted.runs,
            _ => self.file(cell, "jsonl").is_file(),
        };
        self.origin(cell).is_some_and(fresh) && has_boots()
    }

    /// How many boots are kept of a cell; none if it cannot be read.
    fn boots(&self, cell: &Cell) -> usize {
        self.read(cell)
            .ok()
            .flatten()
            .map_or(0, |boots| boots.len())
    }

    /// What the cell was made from, if that can be told.
    pub fn origin(&self, cell: &Cell) -> Option<Origin> {
        serde_json::from_str(&fs::read_to_string(self.file(cell, "cell.json")).ok()?).ok()
    }

    /// The cell's result lines as they were printed, or `None` if it is not here.
    pub fn lines(&self, cell: &Cell) -> Result<Option<String>> {
        let path = self.file(cell, "jsonl");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| path.display().to_string()),
        }
    }

    /// The cell's figures, boot by boot, or `None` if it is not here. An error names
    /// file, line, what was expected and what was found.
    pub fn read(&self, cell: &Cell) -> Result<Option<Vec<Outcome>>> {
        let Some(text) = self.lines(cell)? else {
            return Ok(None);
        };
        let place = self.file(cell, "jsonl");
        let boots = parse_boots(&text).map_err(|e| anyhow!("{}:{e}", place.display()))?;
        for boot in &boots {
            belongs(boot, cell).map_err(|e| anyhow!("{}: {e}", place.display()))?;
        }
        Ok(Some(boots))
    }

    /// Keeps a cell, the lines of each of its boots. What it was made from is written last: a cell that was
    /// interrupted half-way is not taken for a finished one.
    pub fn write(&self, cell: &Cell, boots: &[Vec<String>], origin: &Origin) -> Result<()> {
        self.forget(cell)?;
        let mut json = serde_json::to_string_pretty(origin)?;
        json.push('\n');
        write(&self.file(cell, "jsonl"), text(boots))?;
        write(&self.file(cell, "cell.json"), &json)
    }

    /// Keeps the lines of a cell that nobody has booted: there is nothing that it was made
    /// from but the lines' own words.
    pub fn write_played(&self, cell: &Cell, lines: &str) -> Result<()> {
        self.forget(cell)?;
        write(&self.file(cell, "jsonl"), lines)
    }

    /// Keeps the console of a failed cell, and no results: older ones would
    /// stand in a table as if they were today's.
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

    /// The cells that are here, as `(arch, app, policy)`, sorted.
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

/// The lines of each boot, with an empty one between.
fn text(boots: &[Vec<String>]) -> String {
    let boots: Vec<_> = boots.iter().map(|lines| lines.join("\n") + "\n").collect();
    boots.join("\n")
}

/// Whether these figures are the cell's: a wrong one means that the build took
/// another policy or app than it was told, or that a file was misplaced.
pub fn belongs(outcome: &Outcome, cell: &Cell) -> Result<()> {
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

/// What is in a folder; nothing if it is none.
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

/// Writes a file whole or not at all, and its folder; refuses what is no file.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    pbg_save::write(path, contents).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::sample;

    fn cell() -> Cell {
        Cell::new("x86_64", "realtime", "sched_rr")
    }

    fn origin() -> Origin {
        Origin {
            fingerprint: "f".into(),
            sources: "s".into(),
            inputs: None,
            made: None,
            command: "make run".into(),
            runs: 2,
            tick_phases: TickPhase::evenly(1).collect(),
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("lab"));
        (folder, store)
    }

    fn lines(sched: &str) -> Vec<String> {
        sample("realtime", sched, &[("run", 100)])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn wanted(fingerprint: &str, runs: usize, phases: u16) -> Origin {
        Origin {
            fingerprint: fingerprint.into(),
            runs,
            tick_phases: TickPhase::evenly(phases).collect(),
            ..origin()
        }
    }

    #[test]
    fn a_cell_is_fresh_only_with_its_fingerprint_and_enough_runs() {
        let (_folder, store) = store();
        assert!(!store.is_fresh(&cell(), &wanted("f", 1, 1)));
        store.write(&cell(), &[lines("rr")], &origin()).unwrap();
        assert!(store.is_fresh(&cell(), &wanted("f", 2, 1)));
        assert!(!store.is_fresh(&cell(), &wanted("f", 3, 1)));
        assert!(!store.is_fresh(&cell(), &wanted("g", 1, 1)));
        assert_eq!(store.origin(&cell()), Some(origin()));
        let found = [["x86_64", "realtime", "sched_rr"].map(String::from)];
        assert_eq!(store.contents().unwrap(), found);
        assert_eq!(
            store.lines(&cell()).unwrap().unwrap(),
            lines("rr").join("\n") + "\n"
        );
    }

    #[test]
    fn more_tick_phases_answer_for_fewer_and_not_the_reverse() {
        let (_folder, store) = store();
        let keep = |phases| {
            let origin = wanted("f", 1, phases);
            store.write(&cell(), &[lines("rr")], &origin).unwrap();
        };
        keep(8);
        for phases in [1, 2, 4, 8] {
            assert!(store.is_fresh(&cell(), &wanted("f", 1, phases)), "{phases}");
        }
        for phases in [3, 16] {
            assert!(
                !store.is_fresh(&cell(), &wanted("f", 1, phases)),
                "{phases}"
            );
        }
        keep(1);
        assert!(!store.is_fresh(&cell(), &wanted("f", 1, 8)));
    }

    #[test]
    fn in_real_time_as_many_boots_answer_as_are_kept() {
        let (_folder, store) = store();
        let real: Vec<String> = (lines("rr").iter())
            .map(|line| line.replace("icount", "real"))
            .collect();
        let of = |runs| Origin {
            tick_phases: Vec::new(),
            ..wanted("f", runs, 1)
        };
        store
            .write(&cell(), &vec![real.clone(); 3], &of(3))
            .unwrap();
        assert_eq!(store.read(&cell()).unwrap().unwrap().len(), 3);
        let fresh = [1, 2, 3, 4].map(|runs| store.is_fresh(&cell(), &of(runs)));
        assert_eq!(fresh, [true, true, true, false]);
        // Three runs of which a former schedlab kept the first.
        store.write(&cell(), &[real], &of(3)).unwrap();
        let fresh = [1, 3].map(|runs| store.is_fresh(&cell(), &of(runs)));
        assert_eq!(fresh, [true, false]);
    }

    #[test]
    fn a_cell_of_before_there_were_tick_phases_is_not_up_to_date() {
        let (_folder, store) = store();
        store.write(&cell(), &[lines("rr")], &origin()).unwrap();
        let path = store.file(&cell(), "cell.json");
        let old = fs::read_to_string(&path).unwrap();
        let mut old: serde_json::Value = serde_json::from_str(&old).unwrap();
        old.as_object_mut().unwrap().remove("tick_phases");
        fs::write(&path, old.to_string()).unwrap();
        assert!(!store.is_fresh(&cell(), &wanted("f", 1, 1)));
        assert!(store.read(&cell()).unwrap().is_some());
    }

    #[test]
    fn a_failure_leaves_its_log_and_no_figures() {
        let (_folder, store) = store();
        store.write(&cell(), &[lines("rr")], &origin()).unwrap();
        store.write_failed(&cell(), &["panic".into()]).unwrap();
        assert!(store.read(&cell()).unwrap().is_none());
        assert!(!store.is_fresh(&cell(), &wanted("f", 1, 1)));
        assert_eq!(
            fs::read_to_string(store.failed_log(&cell())).unwrap(),
            "panic\n"
        );
        store.write(&cell(), &[lines("rr")], &origin()).unwrap();
        assert!(!store.failed_log(&cell()).exists());
    }

    #[test]
    fn a_bad_file_is_named_with_its_line() {
        let (folder, store) = store();
        let mut bad = lines("rr");
        bad.insert(1, "noise".into());
        store.write(&cell(), &[bad], &origin()).unwrap();
        let place = folder.path().join("lab/x86_64/realtime/sched_rr.jsonl");
        assert_eq!(
            store.read(&cell()).unwrap_err().to_string(),
            format!(
                "{}:2: expected SCHED-TASK {{…}} or SCHED-RUN {{…}}, found `noise`",
                place.display()
            )
        );
        store.write(&cell(), &[lines("fifo")], &origin()).unwrap();
        assert_eq!(
            store.read(&cell()).unwrap_err().to_string(),
            format!(
                "{}: expected results with sched `rr`, found `fifo`",
                place.display()
            )
        );
    }
}
