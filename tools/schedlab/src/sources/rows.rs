//! The published files: the cells of their rows, and the commands that make them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Result, bail};

use crate::{
    distinct::{distinct, entry},
    grid,
    project::{Cell, short},
};

/// The cell of a row, in the words of its file. A word that the file does not have is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    pub arch: String,
    pub app: String,
    /// The scheduler's name in result lines.
    pub scheduler: String,
}

impl RowKey {
    pub fn new(arch: &str, app: &str, scheduler: &str) -> Self {
        Self {
            arch: arch.to_owned(),
            app: app.to_owned(),
            scheduler: scheduler.to_owned(),
        }
    }

    /// Returns the key of the rows of a cell.
    pub fn of(cell: &Cell) -> Self {
        Self::new(&cell.arch, &cell.app.name, &short(&cell.policy))
    }
}

/// A kind of published file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    Tables,
    /// The totals of tables that are not in the first file, and the variable of make that they need.
    Totals(&'static str),
    /// Figures of real time, which are statistics.
    FourCpus,
    Cost,
    CoopCost,
    Connections,
    Simulate,
}

/// The name of the file that says what rows were made from.
pub const LEDGER: &str = "sources.csv";
/// The limits of `make cost LAB=--gate`, which are no figures, on each line of ArceOS.
const LIMITS: [&str; 2] = ["cost-gate.csv", "cost-gate-0.6.csv"];

/// The content of a CSV file.
struct Text {
    header: csv::StringRecord,
    rows: Vec<csv::StringRecord>,
}

impl Text {
    fn read(text: &str) -> Result<Self> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        Ok(Self {
            header: reader.headers()?.clone(),
            rows: reader.records().collect::<Result<_, _>>()?,
        })
    }

    /// Returns the word of a row in a column; empty if there is none.
    fn word<'r>(&self, row: &'r csv::StringRecord, column: &str) -> &'r str {
        let place = self.header.iter().position(|name| name == column);
        place.and_then(|place| row.get(place)).unwrap_or_default()
    }
}

/// Cells that are measured again together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The schedulers that are out of date, in the order of the file.
    pub schedulers: Vec<String>,
    /// All schedulers, by the number of their tick phases.
    phases: BTreeMap<u16, Vec<String>>,
    /// True if the file has rows of this app and architecture that are up to date.
    has_others: bool,
}

impl Group {
    /// Returns the commands for the cells that are out of date, one for each number of tick phases.
    /// `command` gets the variable that names the schedulers, if they are not all, and the number.
    fn at_phases(&self, command: impl Fn(&str, u16) -> String) -> String {
        let is_part = self.has_others || self.phases.len() > 1;
        let command = |(phases, all): (&u16, &Vec<String>)| {
            let stale = features(all.iter().filter(|name| self.schedulers.contains(name)));
            let some = match is_part {
                true => format!(" FEATURES={stale}"),
                false => String::new(),
            };
            (!stale.is_empty()).then(|| command(&some, *phases))
        };
        let commands: Vec<_> = self.phases.iter().filter_map(command).collect();
        commands.join(" && ")
    }
}

impl Published {
    /// Returns the kind of the file with this name; `None` if it is not a published one.
    pub fn named(file: &str) -> Option<Self> {
        Some(match file {
            "tables.csv" => Self::Tables,
            "arceos-0.6.csv" => Self::Totals(" ARCEOS=0.6"),
            // The programs with agents.
            "delegated.csv" => Self::Totals(""),
            "four-cpus.csv" => Self::FourCpus,
            "cost.csv" => Self::Cost,
            "coop-cost.csv" => Self::CoopCost,
            "connections.csv" => Self::Connections,
            "simulate.csv" => Self::Simulate,
            _ => return None,
        })
    }

    /// Returns the kind of a file in a folder of published files; `None` if it has no figures.
    ///
    /// # Errors
    /// The file has no known name.
    pub fn among(file: &str) -> Result<Option<Self>> {
        match Self::named(file) {
            None if file != LEDGER && !LIMITS.contains(&file) => bail!(
                "{file}: expected a published file of a known kind, found another; tools/schedlab/src/sources/rows.rs has the kinds"
            ),
            kind => Ok(kind),
        }
    }

    pub const fn is_statistics(self) -> bool {
        matches!(self, Self::FourCpus)
    }

    /// Returns the schedulers whose code the figures of a row depend on. A recording that the model
    /// plays was made under PBG.
    pub fn schedulers(self, key: &RowKey) -> Vec<&str> {
        let others: &[&str] = match self {
            Self::Simulate => &["pbg"],
            _ => &[],
        };
        [&[&*key.scheduler], others].concat()
    }

    fn key(self, text: &Text, row: &csv::StringRecord) -> RowKey {
        let word = |column| text.word(row, column);
        let (arch, app, scheduler) = (word("arch"), word("app"), word("scheduler"));
        match self {
            Self::Tables | Self::Totals(_) | Self::FourCpus | Self::Simulate => {
                RowKey::new(arch, app, scheduler)
            }
            // `pbg idle`, `pbg measure` and `pbg replay` have one image.
            Self::Cost => {
                let scheduler = scheduler.split(' ').next().unwrap_or_default();
                RowKey::new(arch, "cost", scheduler)
            }
            Self::CoopCost => RowKey::new(arch, "coop-cost", scheduler),
            Self::Connections => RowKey::new(arch, "connections", scheduler),
        }
    }

    /// Returns the cells of a file's rows, each once, in the order of the file.
    pub fn keys(self, text: &str) -> Result<Vec<RowKey>> {
        let text = Text::read(text)?;
        Ok(distinct(text.rows.iter().map(|row| self.key(&text, row))))
    }

    /// Returns the cells of a file that are in `stale`, by architecture and app.
    pub fn groups(self, text: &str, stale: &BTreeSet<RowKey>) -> Result<Vec<(RowKey, Group)>> {
        let text = Text::read(text)?;
        let mut groups: Vec<(RowKey, Group)> = Vec::new();
        for row in &text.rows {
            let key = self.key(&text, row);
            let group = entry(&mut groups, RowKey::new(&key.arch, &key.app, ""));
            let phases = text.word(row, "phases").parse().unwrap_or(1);
            let is_stale = stale.contains(&key);
            group.has_others |= !is_stale;
            let of_phases = group.phases.entry(phases).or_default();
            let of_group = is_stale.then_some(&mut group.schedulers);
            for words in [Some(of_phases), of_group].into_iter().flatten() {
                if !words.contains(&key.scheduler) {
                    words.push(key.scheduler.clone());
                }
            }
        }
        groups.retain(|(_, group)| !group.schedulers.is_empty());
        Ok(groups)
    }

    /// Returns the command that measures the cells of a group again, for the file `csv`.
    pub fn command(self, csv: &str, of: &RowKey, group: &Group) -> String {
        let folder = csv.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let RowKey { arch, app, .. } = of;
        let features = features(group.schedulers.iter());
        // The cells that are out of date, if they are not all.
        let cells = match group.has_others {
            true => format!("A={app} ARCH={arch} FEATURES={features}"),
            false => format!("A={app} ARCH={arch}"),
        };
        match self {
            Self::Tables => {
                let matrix = |some: &str, phases: u16| {
                    let at = match phases {
                        1 => String::new(),
                        phases => format!(" LAB='--phases {phases}'"),
                    };
                    format!("make matrix A={app} ARCH={arch}{some}{at}")
                };
                let matrices = group.at_phases(matrix);
                format!("{matrices} && make compare {cells} LAB='--out {folder}'")
            }
            Self::Totals(line) => format!(
                "make matrix{line} {cells} && make compare{line} {cells} LAB='--totals {csv}'"
            ),
            // It is made as a whole: its cells take turns, as a slow minute concerns all of them.
            Self::FourCpus => format!(
                "make matrix SMP=4 A={app} ARCH={arch} LAB='--repeat 10' && make compare SMP=4 A={app} ARCH={arch} LAB='--totals {csv}'"
            ),
            Self::Cost => {
                let cost = |some: &str, phases: u16| {
                    let at = match phases {
                        1 => String::new(),
                        phases => format!("--phases {phases} "),
                    };
                    format!("make cost ARCH={arch}{some} LAB='{at}--csv {csv}'")
                };
                group.at_phases(cost)
            }
            Self::CoopCost => {
                format!("make cost A=coop-cost ARCH={arch} FEATURES={features} LAB='--csv {csv}'")
            }
            Self::Connections => {
                format!(
                    "make cost A=connections ARCH={arch} FEATURES={features} SCALE=10 LAB='--csv {csv}'"
                )
            }
            Self::Simulate => {
                format!("make simulate {cells} LAB='--check={folder}/tables.csv --errors {csv}'")
            }
        }
    }

    /// Returns the unit of replacement: of a table all rows of an app.
    fn unit(self, text: &Text, row: &csv::StringRecord) -> RowKey {
        let key = self.key(text, row);
        match self {
            Self::Tables | Self::Totals(_) | Self::FourCpus => RowKey::new(&key.arch, &key.app, ""),
            _ => key,
        }
    }
}

/// Returns the name of a file in its folder.
pub fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// Returns the schedulers as make's features.
pub fn features<'s>(schedulers: impl Iterator<Item = &'s String>) -> String {
    let feature = |scheduler: &String| match scheduler.replace('-', "_") {
        stock if stock.starts_with("stock_") => stock,
        ours => format!("sched_{ours}"),
    };
    schedulers.map(feature).collect::<Vec<_>>().join(",")
}

/// Returns the rows of a published file, `old`, in which the rows of `new` replace those of the
/// same cells. Rows of new cells come last.
///
/// # Errors
/// `new` lacks a scheduler of a table, whose rows are written together.
pub fn merged(file: &str, old: &str, new: &str) -> Result<String> {
    let Some(published) = Published::named(file) else {
        return Ok(new.to_owned());
    };
    let (before, now) = (Text::read(old)?, Text::read(new)?);
    if before.header != now.header {
        let columns: Vec<_> = now.header.iter().collect();
        bail!("{file}: expected the columns {}", columns.join(","));
    }
    let mut ours: Vec<(RowKey, Vec<&csv::StringRecord>)> = Vec::new();
    for row in &now.rows {
        entry(&mut ours, published.unit(&now, row)).push(row);
    }
    let there = published.keys(new)?;
    let mut rows = Vec::new();
    for row in &before.rows {
        let unit = published.unit(&before, row);
        let Some((_, replacing)) = ours.iter_mut().find(|(other, _)| *other == unit) else {
            rows.push(row);
            continue;
        };
        let key = published.key(&before, row);
        if !there.contains(&key) {
            bail!(
                "{file}: has rows of {} for {} on {}, and none were measured; a table is made as a whole",
                key.scheduler,
                key.app,
                key.arch
            );
        }
        rows.append(replacing);
    }
    rows.extend(ours.into_iter().flat_map(|(_, rows)| rows));
    grid::csv(&now.header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;

    const TABLES: &str = "\
arch,app,scheduler,figure,value,phases
x86_64,yield,rr,average,1,8
x86_64,yield,rr,makespan,2,8
x86_64,yield,stock-rr,average,3,8
x86_64,batch,rr,average,4,8
riscv64,yield,rr,average,5,8
riscv64,yield,stock-rr,average,6,1
";

    const COST: &str = "\
arch,scheduler,phases
x86_64,pbg idle,8
x86_64,pbg replay,8
x86_64,rr,1
";

    /// Each file, the stale cells, and the commands that measure them again.
    #[test]
    fn command_measures_stale_cells_at_the_phases_of_the_file() {
        let (pbg, rr) = (("x86_64", "cost", "pbg"), ("x86_64", "cost", "rr"));
        let one_phase = COST.replace(",8", ",1");
        let of_pbg = "make cost ARCH=x86_64 FEATURES=sched_pbg LAB='--phases 8 --csv d/x.csv'";
        let of_rr = "make cost ARCH=x86_64 FEATURES=sched_rr LAB='--csv d/x.csv'";
        for (published, text, keys, expected) in [
            (
                Published::Tables,
                TABLES,
                &[("x86_64", "yield", "rr"), ("riscv64", "yield", "stock-rr")][..],
                "make matrix A=yield ARCH=x86_64 FEATURES=sched_rr LAB='--phases 8' && make compare A=yield ARCH=x86_64 FEATURES=sched_rr LAB='--out d'\n\
                 make matrix A=yield ARCH=riscv64 FEATURES=stock_rr && make compare A=yield ARCH=riscv64 FEATURES=stock_rr LAB='--out d'",
            ),
            (
                Published::Tables,
                TABLES,
                &[
                    ("riscv64", "yield", "rr"),
                    ("riscv64", "yield", "stock-rr"),
                    ("x86_64", "batch", "rr"),
                ],
                "make matrix A=batch ARCH=x86_64 LAB='--phases 8' && make compare A=batch ARCH=x86_64 LAB='--out d'\n\
                 make matrix A=yield ARCH=riscv64 FEATURES=stock_rr && make matrix A=yield ARCH=riscv64 FEATURES=sched_rr LAB='--phases 8' && make compare A=yield ARCH=riscv64 LAB='--out d'",
            ),
            (
                Published::Simulate,
                TABLES,
                &[("x86_64", "yield", "rr")],
                "make simulate A=yield ARCH=x86_64 FEATURES=sched_rr LAB='--check=d/tables.csv --errors d/x.csv'",
            ),
            (
                Published::Totals(""),
                TABLES,
                &[("riscv64", "yield", "rr")],
                "make matrix A=yield ARCH=riscv64 FEATURES=sched_rr && make compare A=yield ARCH=riscv64 FEATURES=sched_rr LAB='--totals d/x.csv'",
            ),
            (
                Published::named("arceos-0.6.csv").unwrap(),
                TABLES,
                &[("riscv64", "yield", "rr")],
                "make matrix ARCEOS=0.6 A=yield ARCH=riscv64 FEATURES=sched_rr && make compare ARCEOS=0.6 A=yield ARCH=riscv64 FEATURES=sched_rr LAB='--totals d/x.csv'",
            ),
            (
                Published::Cost,
                &one_phase,
                &[pbg],
                "make cost ARCH=x86_64 FEATURES=sched_pbg LAB='--csv d/x.csv'",
            ),
            (
                Published::Cost,
                &one_phase,
                &[pbg, rr],
                "make cost ARCH=x86_64 LAB='--csv d/x.csv'",
            ),
            (Published::Cost, COST, &[pbg], of_pbg),
            (Published::Cost, COST, &[rr], of_rr),
            (
                Published::Cost,
                COST,
                &[rr, pbg],
                &format!("{of_rr} && {of_pbg}"),
            ),
        ] {
            let key =
                |(arch, app, scheduler): &(&str, &str, &str)| RowKey::new(arch, app, scheduler);
            let stale = keys.iter().map(key).collect();
            let groups = published.groups(text, &stale).unwrap();
            let command = |(of, group): &(RowKey, Group)| published.command("d/x.csv", of, group);
            let commands: Vec<_> = groups.iter().map(command).collect();
            assert_eq!(commands.join("\n"), expected);
        }
    }

    #[test]
    fn rows_of_other_cells_are_kept_and_none_is_lost() {
        let new = "arch,app,scheduler,figure,value,phases\nx86_64,yield,rr,average,7,8\nx86_64,yield,stock-rr,average,8,8\nx86_64,held,rr,average,9,8\n";
        assert_eq!(
            merged("tables.csv", TABLES, new).unwrap(),
            "\
arch,app,scheduler,figure,value,phases
x86_64,yield,rr,average,7,8
x86_64,yield,stock-rr,average,8,8
x86_64,batch,rr,average,4,8
riscv64,yield,rr,average,5,8
riscv64,yield,stock-rr,average,6,1
x86_64,held,rr,average,9,8
"
        );
        let part = "arch,app,scheduler,figure,value,phases\nx86_64,yield,rr,average,7,8\n";
        let error = merged("tables.csv", TABLES, part).unwrap_err().to_string();
        assert_has(error, "has rows of stock-rr for yield on x86_64");
        assert!(merged("tables.csv", TABLES, "arch\n").is_err());
        assert_eq!(merged("other.csv", TABLES, part).unwrap(), part);
    }

    #[test]
    fn file_without_a_kind_is_refused_among_published_ones() {
        assert!(Published::among("new.csv").is_err());
        assert_eq!(Published::among("cost-gate.csv").unwrap(), None);
        assert_eq!(Published::among("sources.csv").unwrap(), None);
    }
}
