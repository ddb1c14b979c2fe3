//! Compares two folders of results, cell by cell.

use std::fmt::Write;

use anyhow::{Result, anyhow, bail};

use super::difference::{differences, last_phase};
use crate::{
    Verdict,
    cli::CompareArgs,
    output::{count, print},
    project::{Cell, short},
    store::{Store, write},
};

/// The number of differences of a cell that are shown without `--long`.
const ENOUGH: usize = 4;

pub fn compare(a: &Store, b: &Store, args: &CompareArgs) -> Result<Verdict> {
    if let Some(policy) = &args.against {
        return against(a, b, policy, args);
    }
    let mut cells = present(a, args)?;
    let in_a = cells.len();
    let mut only_b = present(b, args)?;
    only_b.retain(|cell| !cells.contains(cell));
    cells.extend(only_b);
    if cells.is_empty() {
        bail!(
            "{} and {}: expected results, found none",
            a.root.display(),
            b.root.display()
        );
    }

    let mut out = String::new();
    let (mut same, mut differ, mut alone) = (0, 0, 0);
    for (number, cell) in cells.iter().enumerate() {
        // Reading checks what is there; the texts are then compared.
        let (read_a, read_b) = (a.read(cell)?, b.read(cell)?);
        if read_a.is_none() || read_b.is_none() {
            alone += 1;
            let place = if number < in_a { a } else { b };
            writeln!(out, "{cell}: only in {}", place.root.display())?;
            continue;
        }
        let (text_a, text_b) = (
            a.lines(cell)?.unwrap_or_default(),
            b.lines(cell)?.unwrap_or_default(),
        );
        let found = differences(&text_a, &text_b).map_err(|e| anyhow!("{cell}: {e}"))?;
        if found.is_empty() {
            same += 1;
            continue;
        }
        differ += 1;
        let figures = if found.len() == 1 {
            "figure differs"
        } else {
            "figures differ"
        };
        writeln!(out, "{cell}: {} {figures}", found.len())?;
        show(&mut out, &found, args)?;
    }
    let verdict = if differ + alone == 0 {
        Verdict::Good
    } else {
        Verdict::Bad
    };
    writeln!(
        out,
        "{}: {same} identical, {differ} differ, {alone} only on one side",
        count(cells.len(), "cell")
    )?;
    print(&out)?;
    if let Some(folder) = &args.out {
        write(&folder.join("differences.txt"), &out)?;
    }
    Ok(verdict)
}

/// Compares the last phases of the first folder's cells with those of another policy in the
/// second. The verdict is good, as two policies are not expected to agree.
fn against(a: &Store, b: &Store, policy: &str, args: &CompareArgs) -> Result<Verdict> {
    let mut out = String::new();
    for cell in present(a, args)? {
        let other = Cell {
            policy: policy.to_owned(),
            ..cell.clone()
        };
        if a.read(&cell)?.is_none() || b.read(&other)?.is_none() {
            writeln!(out, "{cell}: no {policy} in {}", b.root.display())?;
            continue;
        }
        let last = |store: &Store, cell: &Cell| {
            let text = store.lines(cell)?.unwrap_or_default();
            last_phase(&text).map_err(|e| anyhow!("{cell}: {e}"))
        };
        let found = differences(&last(a, &cell)?, &last(b, &other)?);
        let found = found.map_err(|e| anyhow!("{cell}: {e}"))?;
        writeln!(
            out,
            "{cell} -> {policy}: {}",
            count(found.len(), "difference")
        )?;
        show(&mut out, &found, args)?;
    }
    print(&out)?;
    Ok(Verdict::Good)
}

/// Returns the cells of a folder that the options select.
fn present(store: &Store, args: &CompareArgs) -> Result<Vec<Cell>> {
    let is_wanted = |words: &[String], names: &[&str]| {
        words.is_empty() || words.iter().any(|word| names.contains(&word.as_str()))
    };
    let mut cells = store.contents()?;
    cells.retain(|[arch, app, policy]| {
        is_wanted(&args.select.arch, &[arch])
            && is_wanted(&args.app, &[app])
            && is_wanted(&args.select.policy, &[policy, &short(policy)])
    });
    let cell = |[arch, app, policy]: &[String; 3]| Cell::new(arch, app, policy);
    Ok(cells.iter().map(cell).collect())
}

fn show(out: &mut String, found: &[String], args: &CompareArgs) -> Result<()> {
    let shown = if args.long { found.len() } else { ENOUGH };
    for difference in found.iter().take(shown) {
        writeln!(out, "    {difference}")?;
    }
    if found.len() > shown {
        writeln!(
            out,
            "    … and {} more (--long shows them)",
            found.len() - shown
        )?;
    }
    Ok(())
}
