//! The rows of a published table that stay beside new ones.
//!
//! A table is drawn and written with all its rows. Those of schedulers that were not measured come
//! from the published file, if they are up to date.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, bail};

use super::{
    render::{TASK, TOTAL},
    table::{Row, Table},
};
use crate::{
    docs::Data,
    output::note,
    project::{Project, short},
    sources::{RowKey, up_to_date},
};

/// Adds to each table the rows of a published file whose schedulers have no results.
///
/// # Errors
/// Such a row is out of date.
pub fn keep(
    tables: &mut [Table],
    csv: &Path,
    policies: &[String],
    project: &Project,
) -> Result<()> {
    let place = || csv.display().to_string();
    let fresh = up_to_date(csv, project)?;
    let published = Data::read(csv).with_context(place)?;
    for table in tables {
        let kept = table.keep(&published, policies, &fresh);
        let kept = kept.with_context(place)?;
        if !kept.is_empty() {
            let (app, arch, kept) = (&table.app, &table.arch, kept.join(" "));
            note(format_args!("{}: {app} on {arch}: kept {kept}", place()));
        }
    }
    Ok(())
}

impl Table {
    /// Adds the rows of schedulers without results, and returns their names.
    fn keep(
        &mut self,
        published: &Data,
        policies: &[String],
        fresh: &BTreeSet<RowKey>,
    ) -> Result<Vec<String>> {
        let mut rows = std::mem::take(&mut self.rows);
        let mut kept = Vec::new();
        for policy in policies {
            let label = short(policy);
            // PBG may have several rows: `pbg`, `pbg (measuring)`.
            let is_of = |row: &Row| row.label.split(' ').next() == Some(&label);
            let (mut own, others): (Vec<_>, _) = rows.into_iter().partition(is_of);
            rows = others;
            let has_results = own.iter().any(|row| row.values.iter().any(Option::is_some));
            if !has_results && let Some(row) = self.published(published, &label)? {
                if !fresh.contains(&RowKey::new(&self.arch, &self.app, &label)) {
                    bail!(
                        "has rows of {label} for {} on {} that are out of date or of real time, and none were measured: measure these, too",
                        self.app,
                        self.arch
                    );
                }
                let counts = row.values.iter().flatten().map(|value| value.count);
                let counts: Vec<_> = counts
                    .chain([*self.boots.start(), *self.boots.end()])
                    .collect();
                let (fewest, most) = (counts.iter().min(), counts.iter().max());
                self.boots = *fewest.unwrap_or(&1)..=*most.unwrap_or(&1);
                own = vec![row];
                kept.push(label);
            }
            self.rows.append(&mut own);
        }
        Ok(kept)
    }

    /// Returns the published row of a scheduler; `None` if there is none with a figure.
    fn published(&self, published: &Data, label: &str) -> Result<Option<Row>> {
        let values = self.columns.iter().enumerate().map(|(i, column)| {
            let kind = if i < self.tasks { TASK } else { TOTAL };
            let (smp, scale) = (self.smp.to_string(), self.scale.to_string());
            let of = [
                ("arch", &*self.arch),
                ("app", &self.app),
                ("smp", &smp),
                ("timing", &self.timing),
                ("scale", &scale),
                ("scheduler", label),
                ("kind", kind),
                ("figure", &column.title),
            ];
            let of = of
                .map(|(name, word)| (name.to_owned(), word.to_owned()))
                .into();
            // A file of totals has no figures of tasks.
            match published.has(&of)? {
                true => Ok(published.figure(&of)?.map(|figure| figure.spread)),
                false => Ok(None),
            }
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let row = Row {
            label: label.to_owned(),
            stock: label.starts_with("stock-"),
            competes: true,
            values,
        };
        Ok(row.values.iter().any(Option::is_some).then_some(row))
    }
}
