//! `schedlab stale`: names the rows of the published tables that are out of date, with the commands
//! that make them again.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};

use super::{
    ledger::Ledger,
    rows::{Group, Published, RowKey, features, file_name},
    tree::Tree,
};
use crate::{
    Verdict,
    cli::{StaleArgs, TreeArgs},
    digest::digest,
    output::{count, print_line},
    project::Project,
};

pub fn stale(tree: &TreeArgs, args: &StaleArgs) -> Result<Verdict> {
    let project = Project::find(tree)?;
    let tree = Tree::new(&project)?;
    let ledger = Ledger::read(&args.folder)?;
    let mut files: Vec<_> = fs::read_dir(&args.folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .with_context(|| args.folder.display().to_string())?;
    files.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    files.sort();
    let (mut cells, mut out_of_date, mut statistics) = (0, 0, 0);
    for path in &files {
        let Some(published) = Published::among(file_name(path))? else {
            continue;
        };
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let (stale, fresh) = divided(path, published, &text, &ledger, &tree)?;
        cells += stale.len() + fresh.len();
        if let Some(seed) = &args.sample {
            if published == Published::Tables {
                for key in sample(seed, &fresh) {
                    let feature = features([&key.scheduler].into_iter());
                    print_line(format_args!(
                        "A={} ARCH={} FEATURES={feature}",
                        key.app, key.arch
                    ))?;
                }
            }
            continue;
        }
        let is_of_real_time = published.is_statistics();
        for (of, group) in published.groups(&text, &stale)? {
            let is_of_group = |key: &&RowKey| key.arch == of.arch && key.app == of.app;
            let keys = stale.iter().filter(is_of_group);
            let rows = keys.count();
            if is_of_real_time && !args.release {
                statistics += rows;
            } else {
                out_of_date += rows;
            }
            print_line(line(path, published, &of, &group))?;
        }
    }
    if args.sample.is_some() {
        return Ok(Verdict::Good);
    }
    let mut verdict = format!(
        "stale: {out_of_date} of {} out of date",
        count(cells, "cell")
    );
    if statistics > 0 {
        verdict += &format!("; {statistics} more of real time, which count for a release");
    }
    print_line(verdict)?;
    Ok(match out_of_date {
        0 => Verdict::Good,
        _ => Verdict::Bad,
    })
}

/// Returns the cells of a published file that are up to date.
pub fn up_to_date(csv: &Path, project: &Project) -> Result<BTreeSet<RowKey>> {
    // Cells of real time are compared with those of the same hour.
    let kind = Published::named(file_name(csv)).filter(|kind| !kind.is_statistics());
    let Some(published) = kind else {
        return Ok(BTreeSet::new());
    };
    let ledger = Ledger::read(csv.parent().unwrap_or(Path::new("")))?;
    let text = fs::read_to_string(csv).with_context(|| csv.display().to_string())?;
    let (_, fresh) = divided(csv, published, &text, &ledger, &Tree::new(project)?)?;
    Ok(fresh)
}

/// Returns the cells of a published file that are out of date, and the others.
fn divided(
    path: &Path,
    published: Published,
    text: &str,
    ledger: &Ledger,
    tree: &Tree,
) -> Result<(BTreeSet<RowKey>, BTreeSet<RowKey>)> {
    let is_stale = |key: &RowKey| {
        let made = ledger.made(file_name(path), key);
        made.is_none_or(|made| tree.hash(&made.list, &published.schedulers(key)) != made.hash)
    };
    let keys = published.keys(text);
    let keys = keys.with_context(|| path.display().to_string())?;
    Ok(keys.into_iter().partition(is_stale))
}

/// One cell of this number is measured again.
const ONE_IN: usize = 20;

/// Returns one cell in [`ONE_IN`] of one architecture, rounded up: those with the least hash
/// together with the seed, so that another seed selects others.
fn sample<'k>(seed: &str, cells: &'k BTreeSet<RowKey>) -> Vec<&'k RowKey> {
    let of_seed = |words: &str| digest(format!("{seed} {words}"));
    let arches: BTreeSet<_> = cells.iter().map(|key| &key.arch).collect();
    let Some(arch) = arches.into_iter().min_by_key(|arch| of_seed(arch)) else {
        return Vec::new();
    };
    let mut here: Vec<_> = cells.iter().filter(|key| key.arch == *arch).collect();
    here.sort_by_cached_key(|key| of_seed(&format!("{} {} {}", key.arch, key.app, key.scheduler)));
    here.truncate(here.len().div_ceil(ONE_IN));
    here
}

fn line(path: &Path, published: Published, of: &RowKey, group: &Group) -> String {
    let path = path.display().to_string();
    let mut rows = of.app.clone();
    for (before, words) in [
        (" on ", of.arch.clone()),
        (" under ", group.schedulers.join(" ")),
    ] {
        if !words.trim().is_empty() {
            rows += &format!("{before}{words}");
        }
    }
    let command = published.command(&path, of, group);
    format!("{path}: {rows}: out of date; `{command}` makes them again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_one_in_twenty_of_an_architecture_and_reaches_each_cell() {
        let cell = |i: usize| {
            let arch = ["aarch64", "riscv64", "x86_64"][i % 3];
            RowKey::new(arch, &format!("app{}", i % 11), &format!("sched{}", i / 11))
        };
        let cells: BTreeSet<_> = (0..396).map(cell).collect();
        let of_arch = |arch: &str| cells.iter().filter(|key| key.arch == arch).count();
        let mut seen = BTreeSet::new();
        for seed in 0..1_000 {
            let seed = format!("{seed:x}");
            let found = sample(&seed, &cells);
            assert_eq!(found, sample(&seed, &cells));
            assert!(found.iter().all(|key| key.arch == found[0].arch));
            assert_eq!(found.len(), of_arch(&found[0].arch).div_ceil(20));
            seen.extend(found);
        }
        assert_eq!(seen.len(), cells.len());
        assert!(sample("a", &BTreeSet::new()).is_empty());
    }
}
