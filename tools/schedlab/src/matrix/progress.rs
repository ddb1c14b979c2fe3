//! The progress of a matrix: a line for each finished cell, and on a terminal a bar with the time
//! left.

use std::path::Path;

use anyhow::Result;
use indicatif::ProgressBar;

use crate::{
    Verdict,
    bar::bar,
    output::{count, print_line},
    project::Cell,
    record::Outcome,
    spread::{Spread, reach},
    store::Store,
};

/// The number of lines of a failed guest's console that are shown.
const LAST_LINES: usize = 12;

pub struct Progress {
    bar: ProgressBar,
    total: usize,
    kept: usize,
    good: usize,
    failed: Vec<String>,
    /// The cells that are being built or run, each with what is done.
    busy: Vec<(String, String)>,
}

impl Progress {
    pub fn new(total: usize, kept: usize) -> Self {
        Self {
            bar: bar(total),
            total,
            kept,
            good: 0,
            failed: Vec::new(),
            busy: Vec::new(),
        }
    }

    pub fn begin(&mut self, cell: &Cell, what: &str) {
        self.busy.retain(|(name, _)| *name != cell.to_string());
        self.busy.push((cell.to_string(), what.to_owned()));
        self.show_busy();
    }

    pub fn good(&mut self, cell: &Cell, outcomes: &[Outcome]) -> Result<()> {
        self.good += 1;
        let average = |outcome: &Outcome| outcome.last().avg_turnaround_ns as f64 / 1e6;
        let averages: Vec<_> = outcomes.iter().map(average).collect();
        let spread = match outcomes.first().is_some_and(Outcome::is_real) {
            true => Spread::of_boots(&averages),
            false => Spread::of(&averages),
        };
        let spread = spread.expect("a good cell was booted");
        let mut what = format!("average turnaround {:.3} ms", spread.middle());
        if spread.count > 1 {
            let reach = reach(&spread, |ms| format!("{ms:.3}"));
            what += &match spread.quartiles {
                None => format!(" {reach} over {} tick phases", spread.count),
                Some(_) => format!(" {reach}, the median of {} boots", spread.count),
            };
        }
        self.end(cell, "ok", &what)
    }

    pub fn bad(&mut self, cell: &Cell, why: &str, console: &[String], log: &Path) -> Result<()> {
        self.failed.push(cell.to_string());
        self.end(cell, "FAILED", why)?;
        self.bar.suspend(|| {
            let noise = |line: &&String| !line.trim().is_empty() && !line.starts_with("make:");
            let lines: Vec<_> = console.iter().filter(noise).collect();
            for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
                print_line(format_args!("        | {line}"))?;
            }
            print_line(format_args!("        all of it: {}", log.display()))
        })
    }

    pub fn stopped(&mut self, cell: &Cell) {
        self.busy.retain(|(name, _)| *name != cell.to_string());
    }

    /// Prints the closing lines, the first of which names the shard if there is one, and returns
    /// the verdict.
    pub fn finish(self, store: &Store, part: Option<&str>, interrupted: bool) -> Result<Verdict> {
        self.bar.finish_and_clear();
        if let Some(part) = part {
            print_line(part)?;
        }
        let Self {
            total,
            kept,
            good,
            failed,
            ..
        } = self;
        let not_run = total - good - failed.len();
        let mut summary = format!(
            "{}: {good} run, {kept} up to date, {} failed",
            count(total + kept, "cell"),
            failed.len()
        );
        if not_run > 0 {
            summary += &format!(", {not_run} not run");
        }
        print_line(format_args!(
            "{summary}; results in {}",
            store.root.display()
        ))?;
        if !failed.is_empty() {
            print_line(format_args!("failed: {}", failed.join(" ")))?;
        }
        if interrupted {
            print_line("interrupted; finished cells are kept")?;
            return Ok(Verdict::Interrupted);
        }
        Ok(if failed.is_empty() {
            Verdict::Good
        } else {
            Verdict::Bad
        })
    }

    fn end(&mut self, cell: &Cell, verdict: &str, what: &str) -> Result<()> {
        self.stopped(cell);
        self.bar.inc(1);
        let total = self.total.to_string();
        let done = self.good + self.failed.len();
        // The bar's own way of printing is silent without a terminal.
        self.bar.suspend(|| {
            print_line(format_args!(
                "{done:>width$}/{total} {verdict:<6} {cell:<34} {what}",
                width = total.len(),
                cell = cell.to_string()
            ))
        })?;
        self.show_busy();
        Ok(())
    }

    fn show_busy(&self) {
        let words: Vec<_> = self
            .busy
            .iter()
            .map(|(cell, what)| format!("{what} {cell}"))
            .collect();
        self.bar.set_message(words.join(", "));
    }
}
