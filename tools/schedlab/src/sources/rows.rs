//! The published files: the cells of their rows, and the commands that make them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result, bail};

use crate::{
    distinct::distinct,
    project::{Cell, short},
};

/// The cell that a row belongs to, in the words of its file. A word that a file does not have is
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    pub arch: String,
    pub app: String,
    /// As result lines call it.
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

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    Tables,
    /// Its rows are statistics.
    FourCpus,
    Cost,
    CoopCost,
    Connections,
    Simulate,
}

/// The name of the file that says what rows were made from.
pub const LEDGER: &str = "sources.csv";
/// The limits of `make cost LAB=--gate`, which measures against them each time: not figures.
const LIMITS: &str = "cost-gate.csv";

/// A CSV file, read.
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

    /// Returns the word of a row in a column; nothing if there is none.
    fn word<'r>(&self, row: &'r csv::StringRecord, column: &str) -> &'r str {
        let place = self.header.iter().position(|name| name == column);
        place.and_then(|place| row.get(place)).unwrap_or_default()
    }
}

/// Cells that are made again together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// In the order of the file.
    pub schedulers: Vec<String>,
    /// At how many phases of the tick they are published.
    phases: BTreeMap<u16, Vec<String>>,
    /// True if they are all that the file has of this app and architecture.
    pub is_whole: bool,
}

impl Published {
    /// The kind of the file with this name, if it is one that is published.
    pub fn named(file: &str) -> Option<Self> {
        Some(match file {
            "tables.csv" => Self::Tables,
            "four-cpus.csv" => Self::FourCpus,
            "cost.csv" => Self::Cost,
            "coop-cost.csv" => Self::CoopCost,
            "connections.csv" => Self::Connections,
            "simulate.csv" => Self::Simulate,
            _ => return None,
        })
    }

    /// The same for a file that lies among published ones; `None` if it holds no figures.
    pub fn among(file: &str) -> Result<Option<Self>> {
        match Self::named(file) {
            None if ![LIMITS, LEDGER].contains(&file) => bail!(
                "{file}: expected a file whose rows say what they were made from, found another; tools/schedlab/src/sources/rows.rs names those that there are"
            ),
            kind => Ok(kind),
        }
    }

    pub const fn is_statistics(self) -> bool {
        matches!(self, Self::FourCpus)
    }

    fn key(self, text: &Text, row: &csv::StringRecord) -> RowKey {
        let word = |column| text.word(row, column);
        let (arch, app, scheduler) = (word("arch"), word("app"), word("scheduler"));
        match self {
            Self::Tables | Self::FourCpus | Self::Simulate => RowKey::new(arch, app, scheduler),
            // `pbg idle`, `pbg measure` and `pbg replay` are of one image.
            Self::Cost => {
                let scheduler = scheduler.split(' ').next().unwrap_or_default();
                RowKey::new(arch, "cost", scheduler)
            }
            Self::CoopCost => RowKey::new(arch, "coop-cost", scheduler),
            Self::Connections => RowKey::new(arch, "connections", scheduler),
        }
    }

    /// The cells of a file's rows, each once, in the order of the file.
    pub fn keys(self, text: &str) -> Result<Vec<RowKey>> {
        let text = Text::read(text)?;
        Ok(distinct(text.rows.iter().map(|row| self.key(&text, row))))
    }

    /// Those of them that are in `stale`, by architecture and app.
    pub fn groups(self, text: &str, stale: &BTreeSet<RowKey>) -> Result<Vec<(RowKey, Group)>> {
        let text = Text::read(text)?;
        let mut groups: Vec<(RowKey, Group)> = Vec::new();
        for row in &text.rows {
            let key = self.key(&text, row);
            let of = RowKey::new(&key.arch, &key.app, "");
            let place = groups.iter().position(|(other, _)| *other == of);
            let place = place.unwrap_or_else(|| {
                let group = Group {
                    is_whole: true,
                    ..Group::default()
                };
                groups.push((of, group));
                groups.len() - 1
            });
            let group = &mut groups[place].1;
            let phases = text.word(row, "phases").parse().unwrap_or(1);
            add(
                group.phases.entry(phases).or_default(),
                key.scheduler.clone(),
            );
            match stale.contains(&key) {
                true => add(&mut group.schedulers, key.scheduler),
                false => group.is_whole = false,
            }
        }
        groups.retain(|(_, group)| !group.schedulers.is_empty());
        Ok(groups)
    }

    /// The command that makes the cells of a group again, in the file `csv`.
    pub fn command(self, csv: &str, of: &RowKey, group: &Group) -> String {
        let folder = csv.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let RowKey { arch, app, .. } = of;
        let features = features(group.schedulers.iter());
        match self {
            // A table is made as a whole: which rows are the best, and its picture, are of all.
            Self::Tables => {
                let several = group.phases.len() > 1;
                let matrix = |(phases, schedulers): (&u16, &Vec<String>)| {
                    let some = match several {
                        true => format!(" FEATURES={}", self::features(schedulers.iter())),
                        false => String::new(),
                    };
                    let at = match phases {
                        1 => String::new(),
                        phases => format!(" LAB='--phases {phases}'"),
                    };
                    format!("make matrix A={app} ARCH={arch}{some}{at}")
                };
                let matrices: Vec<_> = group.phases.iter().map(matrix).collect();
                format!(
                    "{} && make compare A={app} ARCH={arch} LAB='--out {folder}'",
                    matrices.join(" && ")
                )
            }
            Self::FourCpus => format!(
                "make matrix SMP=4 A={app} ARCH={arch} LAB='--repeat 10' && make compare SMP=4 A={app} ARCH={arch} LAB='--totals {csv}'"
            ),
            Self::Cost => {
                let cost = |(phases, schedulers): (&u16, &Vec<String>)| {
                    let are = schedulers
                        .iter()
                        .filter(|name| group.schedulers.contains(name));
                    let mut are = are.peekable();
                    are.peek()?;
                    let some = match group.is_whole && group.phases.len() == 1 {
                        true => String::new(),
                        false => format!(" FEATURES={}", self::features(are)),
                    };
                    let at = match phases {
                        1 => String::new(),
                        phases => format!("--phases {phases} "),
                    };
                    Some(format!("make cost ARCH={arch}{some} LAB='{at}--csv {csv}'"))
                };
                let costs: Vec<_> = group.phases.iter().filter_map(cost).collect();
                costs.join(" && ")
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
                format!("make simulate A={app} ARCH={arch} LAB='--check --errors {csv}'")
            }
        }
    }

    /// Returns the unit that is replaced as a whole: for tables and four CPUs all rows of an app.
    fn unit(self, text: &Text, row: &csv::StringRecord) -> RowKey {
        let key = self.key(text, row);
        match self {
            Self::Tables | Self::FourCpus => RowKey::new(&key.arch, &key.app, ""),
            _ => key,
        }
    }
}

/// The name of a file in its folder.
pub fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

fn add(words: &mut Vec<String>, word: String) {
    if !words.contains(&word) {
        words.push(word);
    }
}

/// As make calls them.
pub fn features<'s>(schedulers: impl Iterator<Item = &'s String>) -> String {
    let feature = |scheduler: &String| match scheduler.replace('-', "_") {
        stock if stock.starts_with("stock_") => stock,
        ours => format!("sched_{ours}"),
    };
    schedulers.map(feature).collect::<Vec<_>>().join(",")
}

/// The rows of a published file, `old`, with those of `new` in the place of what was there of the
/// same cells, or behind all if nothing was. No scheduler of a table may be lost.
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
        let unit = published.unit(&now, row);
        match ours.iter_mut().find(|(other, _)| *other == unit) {
            Some((_, rows)) => rows.push(row),
            None => ours.push((unit, vec![row])),
        }
    }
    let there = published.keys(new)?;
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(&now.header)?;
    let mut written = BTreeSet::new();
    for row in &before.rows {
        let unit = published.unit(&before, row);
        let Some((_, rows)) = ours.iter().find(|(other, _)| *other == unit) else {
            out.write_record(row)?;
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
        if written.insert(unit) {
            rows.iter().try_for_each(|row| out.write_record(*row))?;
        }
    }
    for (_, rows) in ours.iter().filter(|(unit, _)| !written.contains(unit)) {
        rows.iter().try_for_each(|row| out.write_record(*row))?;
    }
    let text = out.into_inner().context("a buffer takes all")?;
    Ok(String::from_utf8(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "\
arch,app,scheduler,figure,value,phases
x86_64,yield,rr,average,1,8
x86_64,yield,rr,makespan,2,8
x86_64,yield,stock-rr,average,3,8
x86_64,batch,rr,average,4,8
riscv64,yield,rr,average,5,8
riscv64,yield,stock-rr,average,6,1
";

    fn stale(keys: &[(&str, &str, &str)]) -> BTreeSet<RowKey> {
        let key = |(arch, app, scheduler): &(&str, &str, &str)| RowKey::new(arch, app, scheduler);
        keys.iter().map(key).collect()
    }

    fn commands(published: Published, text: &str, keys: &[(&str, &str, &str)]) -> Vec<String> {
        let groups = published.groups(text, &stale(keys)).unwrap();
        let command = |(of, group): &(RowKey, Group)| published.command("d/x.csv", of, group);
        groups.iter().map(command).collect()
    }

    #[test]
    fn table_is_made_as_a_whole_at_the_phases_it_has() {
        let keys = [("x86_64", "yield", "rr"), ("riscv64", "yield", "stock-rr")];
        assert_eq!(
            commands(Published::Tables, TABLES, &keys),
            [
                "make matrix A=yield ARCH=x86_64 LAB='--phases 8' && make compare A=yield ARCH=x86_64 LAB='--out d'",
                "make matrix A=yield ARCH=riscv64 FEATURES=stock_rr && make matrix A=yield ARCH=riscv64 FEATURES=sched_rr LAB='--phases 8' && make compare A=yield ARCH=riscv64 LAB='--out d'",
            ]
        );
    }

    #[test]
    fn cost_is_made_for_the_policies_that_are_out_of_date() {
        let text = "arch,scheduler,tasks\nx86_64,pbg idle,1\nx86_64,pbg replay,1\nx86_64,rr,1\n";
        let of = |keys: &[_]| commands(Published::Cost, text, keys);
        let (pbg, rr) = (("x86_64", "cost", "pbg"), ("x86_64", "cost", "rr"));
        assert_eq!(
            of(&[pbg]),
            ["make cost ARCH=x86_64 FEATURES=sched_pbg LAB='--csv d/x.csv'"]
        );
        assert_eq!(
            of(&[pbg, rr]),
            ["make cost ARCH=x86_64 LAB='--csv d/x.csv'"]
        );
    }

    #[test]
    fn cost_is_made_at_the_phases_it_has() {
        let text = "arch,scheduler,phases\nx86_64,pbg idle,8\nx86_64,pbg replay,8\nx86_64,rr,1\n";
        let of = |keys: &[_]| commands(Published::Cost, text, keys);
        let (pbg, rr) = (("x86_64", "cost", "pbg"), ("x86_64", "cost", "rr"));
        let of_pbg = "make cost ARCH=x86_64 FEATURES=sched_pbg LAB='--phases 8 --csv d/x.csv'";
        let of_rr = "make cost ARCH=x86_64 FEATURES=sched_rr LAB='--csv d/x.csv'";
        assert_eq!(of(&[pbg]), [of_pbg]);
        assert_eq!(of(&[rr]), [of_rr]);
        assert_eq!(of(&[rr, pbg]), [format!("{of_rr} && {of_pbg}")]);
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
        assert!(
            error.contains("has rows of stock-rr for yield on x86_64"),
            "{error}"
        );
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
