//! The gate: compares the cost of a yield with the project's committed figures.
//!
//! The figures are a CSV file. A line has a policy (and a phase of PBG), an architecture, a number
//! of tasks and the compiler that built the images. All lines of an architecture have the same
//! compiler, as the ratio to a stock line would mean nothing otherwise.
//!
//! - Under the same compiler counted time repeats to the digit, and a figure may grow by
//!   [`ALLOWED_INSTRUCTIONS`], which is less than one.
//! - Under another compiler all figures change. The ratio to the stock policy, measured in the same
//!   run, may grow by [`ALLOWED_PERCENT`].

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::figures::{Figure, Figures};
use crate::{cli::Arceos, distinct::distinct, grid, output::count, project::Lists};

/// Half of the least that a change can add.
const ALLOWED_INSTRUCTIONS: f64 = 0.5;
const ALLOWED_PERCENT: f64 = 1.0;
/// The numbers of tasks of the gate. One task does not switch, and more than 256 behave alike.
const SIZES: [usize; 2] = [4, 256];

/// A figure of the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Line {
    /// The policy, with the phase if it is PBG: `sched_pbg replay`.
    policy: String,
    architecture: String,
    tasks: usize,
    /// The cost of a yield.
    instructions: f64,
    compiler: String,
}

impl Line {
    /// Returns the policy's name without the phase.
    fn name(&self) -> &str {
        self.policy.split(' ').next().unwrap_or_default()
    }

    fn key(&self) -> (&str, &str, usize) {
        (&self.policy, &self.architecture, self.tasks)
    }
}

/// Returns the file of the figures of a line of ArceOS.
pub fn file(arceos: Arceos) -> &'static Path {
    Path::new(match arceos {
        Arceos::Old => "docs/results/cost-gate.csv",
        Arceos::Of2026 => "docs/results/cost-gate-0.6.csv",
    })
}

/// Returns the stock policy that a policy is compared with: the one that preempts like it. The
/// stock policies are compared with each other for information only: under another compiler one of
/// the two has grown, and this project cannot change that.
fn stock_of(policy: &str) -> &'static str {
    let preempts = !(policy.ends_with("fifo") || policy.ends_with("coop"));
    match (policy, preempts) {
        ("stock_rr", _) => "stock_fifo",
        ("stock_fifo", _) | (_, true) => "stock_rr",
        (_, false) => "stock_fifo",
    }
}

/// Returns these policies and the two stock ones for comparison, in the order of `all`.
pub fn with_stock(wanted: &[String], all: &[String]) -> Vec<String> {
    let chosen = |policy: &&String| {
        wanted.contains(policy) || ["stock_fifo", "stock_rr"].contains(&policy.as_str())
    };
    all.iter().filter(chosen).cloned().collect()
}

/// The figures of the file.
#[derive(Debug)]
pub struct Committed {
    lines: Vec<Line>,
}

/// A measured figure and the committed one.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    measured: Line,
    /// The figure of the file, if it has one.
    before: Option<f64>,
    rule: Rule,
}

/// The rule for the growth of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    SameCompiler,
    /// The name and the figures of the stock policy.
    Ratio {
        stock: &'static str,
        before: f64,
        after: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    AsBefore,
    More,
    Less,
    New,
}

impl Judged {
    /// Returns the growth and its limit: in instructions, or of a ratio in per cent. `None` if the
    /// file has no figure.
    fn growth(&self) -> Option<(f64, f64)> {
        let (before, after) = (self.before?, self.measured.instructions);
        Some(match self.rule {
            Rule::SameCompiler => (after - before, ALLOWED_INSTRUCTIONS),
            Rule::Ratio {
                before: stock_before,
                after: stock_after,
                ..
            } => {
                let (before, after) = (before / stock_before, after / stock_after);
                ((after / before - 1.0) * 100.0, ALLOWED_PERCENT)
            }
        })
    }

    fn change(&self) -> Change {
        // Figures are rounded to a tenth; the margin is for the binary fractions of the difference.
        match self.growth() {
            None => Change::New,
            Some((by, allowed)) if by > allowed + 1e-6 => Change::More,
            Some((by, allowed)) if by < -allowed - 1e-6 => Change::Less,
            Some(_) => Change::AsBefore,
        }
    }

    /// Returns a sentence with the policy, the architecture and both figures.
    fn sentence(&self) -> String {
        let (policy, arch, tasks) = self.measured.key();
        let after = self.measured.instructions;
        let place = format!("{policy} on {arch}, {tasks} tasks");
        let Some((before, (by, allowed))) = self.before.zip(self.growth()) else {
            return format!("{place}: no figure before, {after:.1} after");
        };
        let figures = format!("{place}: {before:.1} instructions before, {after:.1} after");
        match self.rule {
            Rule::SameCompiler => format!("{figures}: {by:+.1}, allowed is {allowed:+.1}"),
            Rule::Ratio {
                stock,
                before: stock_before,
                after: stock_after,
            } => format!(
                "{figures}, by another compiler; of {stock} {:.4} before, {:.4} after: {by:+.2} %, allowed is {allowed:+.2} %",
                before / stock_before,
                after / stock_after
            ),
        }
    }
}

impl Committed {
    /// Reads the file. If `or_none` is true, it need not exist.
    pub fn read(path: &Path, or_none: bool) -> Result<Self> {
        if or_none && !path.exists() {
            return Ok(Self { lines: Vec::new() });
        }
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines: Vec<Line> = Vec::new();
        for line in csv::Reader::from_reader(text.as_bytes()).deserialize() {
            let line: Line = line?;
            let (policy, arch, tasks) = line.key();
            let place = format!("{policy} on {arch}");
            if line.instructions.is_nan() || line.instructions <= 0.0 {
                let found = line.instructions;
                bail!("{place}: expected instructions above 0, found {found}");
            }
            let of_arch = || lines.iter().filter(|other| other.architecture == arch);
            if let Some(other) = of_arch().find(|other| other.compiler != line.compiler) {
                bail!(
                    "{place}: expected the compiler of the other lines, `{}`, found `{}`",
                    other.compiler,
                    line.compiler
                );
            }
            if of_arch().any(|other| other.key() == line.key()) {
                bail!("{place}: expected one line for {tasks} tasks, found another");
            }
            lines.push(line);
        }
        Ok(Self { lines })
    }

    pub fn csv(&self) -> Result<String> {
        let mut out = csv::Writer::from_writer(Vec::new());
        for line in &self.lines {
            out.serialize(line)?;
        }
        Ok(String::from_utf8(out.into_inner()?)?)
    }

    /// Refuses an update of some lines of an architecture if the others have another compiler,
    /// before anything is built.
    pub fn check_update(&self, wanted: &Lists, all: &[String], compiler: &str) -> Result<()> {
        for line in &self.lines {
            let is_in = |policies: &[String]| policies.iter().any(|policy| policy == line.name());
            let stays = is_in(all) && !is_in(&wanted.policies);
            if stays && wanted.arches.contains(&line.architecture) && line.compiler != compiler {
                bail!(
                    "{} on {} is of `{}`, and this is `{compiler}`; allowed is to update all policies at once",
                    line.policy,
                    line.architecture,
                    line.compiler
                );
            }
        }
        Ok(())
    }

    /// Compares each measured figure with its line.
    ///
    /// # Errors
    /// A policy was measured, and one of its lines has no figure.
    pub fn judge(
        &self,
        figures: &Figures,
        policies: &[String],
        compiler: &str,
    ) -> Result<Vec<Judged>> {
        let mut all: Vec<Judged> = Vec::new();
        for figure in figures
            .0
            .iter()
            .filter(|figure| SIZES.contains(&figure.tasks))
        {
            let measured = Line {
                policy: figure.policy_and_phase(),
                architecture: figure.arch.clone(),
                tasks: figure.tasks,
                instructions: rounded(figure),
                compiler: compiler.to_owned(),
            };
            let (policy, arch, after) = (&measured.policy, &figure.arch, measured.instructions);
            if after <= 0.0 {
                bail!("{policy} on {arch}: expected a cost above 0, found {after}");
            }
            let before = self.line(measured.key());
            let rule = match before {
                Some(line) if line.compiler != compiler => self.ratio(figures, figure)?,
                _ => Rule::SameCompiler,
            };
            all.push(Judged {
                measured,
                before: before.map(|line| line.instructions),
                rule,
            });
        }
        let arches = figures.arches();
        for line in &self.lines {
            let (policy, arch, tasks) = line.key();
            let is_wanted = policies.iter().any(|policy| policy == line.name());
            let is_measured = all.iter().any(|judged| judged.measured.key() == line.key());
            if is_wanted && arches.contains(&arch) && !is_measured {
                bail!("{policy} on {arch}, {tasks} tasks: expected a figure, found none");
            }
        }
        Ok(all)
    }

    fn line(&self, key: (&str, &str, usize)) -> Option<&Line> {
        self.lines.iter().find(|line| line.key() == key)
    }

    /// Returns the rule with the figures of the stock policy.
    fn ratio(&self, figures: &Figures, figure: &Figure) -> Result<Rule> {
        let stock = stock_of(&figure.policy);
        let key = (stock, &*figure.arch, figure.tasks);
        let mut after = figures.0.iter();
        let after = after.find(|other| (&*other.policy, &*other.arch, other.tasks) == key);
        let (Some(before), Some(after)) = (self.line(key), after) else {
            bail!(
                "{stock} on {}: expected figures to compare {} with, found none",
                figure.arch,
                figure.policy
            );
        };
        Ok(Rule::Ratio {
            stock,
            before: before.instructions,
            after: rounded(after),
        })
    }

    /// Replaces the lines of the measured policies, and removes those of unknown policies.
    pub fn update(&mut self, measured: &[Judged], all: &Lists) {
        let policy = |line: &Line| (line.name().to_owned(), line.architecture.clone());
        let replaced: Vec<_> = measured
            .iter()
            .map(|judged| policy(&judged.measured))
            .collect();
        self.lines.retain(|line| {
            !replaced.contains(&policy(line)) && all.policies.iter().any(|p| p == line.name())
        });
        self.lines
            .extend(measured.iter().map(|judged| judged.measured.clone()));
        let place = |all: &[String], one: &str| all.iter().position(|other| other == one);
        // The sort is stable: phases and sizes stay in the order of the measurement.
        self.lines.sort_by_key(|line| {
            (
                place(&all.arches, &line.architecture),
                place(&all.policies, line.name()),
            )
        });
    }
}

/// Returns the figure with the decimals of the file.
fn rounded(figure: &Figure) -> f64 {
    (figure.spread().mean * 10.0).round() / 10.0
}

/// Returns a table for each architecture, with both figures for each number of tasks.
pub fn text(all: &[Judged]) -> String {
    let table = |arch: &str| {
        let row = |judged: &Judged| {
            let after = judged.measured.instructions;
            let or_empty = |text: Option<String>| text.unwrap_or_default();
            let word = match judged.change() {
                Change::AsBefore => "",
                Change::More => "more",
                Change::Less => "less",
                Change::New => "new",
            };
            [
                judged.measured.policy.clone(),
                judged.measured.tasks.to_string(),
                or_empty(judged.before.map(|before| format!("{before:.1}"))),
                format!("{after:.1}"),
                or_empty(
                    judged
                        .before
                        .map(|before| format!("{:+.1}", after - before)),
                ),
                word.to_owned(),
            ]
        };
        let titles = ["policy", ">tasks", ">before", ">after", ">by", ""];
        let rows = all
            .iter()
            .filter(|judged| judged.measured.architecture == arch)
            .map(row);
        let table = grid::text(&titles, rows, grid::WIDE);
        format!("{arch}: instructions per yield\n\n{table}")
    };
    let arches = distinct(all.iter().map(|judged| &*judged.measured.architecture));
    arches.into_iter().map(table).collect::<Vec<_>>().join("\n")
}

/// The report of the gate.
pub struct Report {
    pub text: String,
    pub passed: bool,
}

/// Returns a sentence for each figure that has changed, and a summary.
pub fn report(all: &[Judged], path: &Path) -> Report {
    let mut text = String::from("\n");
    let of = |change: Change| all.iter().filter(move |judged| judged.change() == change);
    for (change, word) in [
        (Change::More, "more"),
        (Change::New, "new"),
        (Change::Less, "less"),
    ] {
        for judged in of(change) {
            let _ = writeln!(text, "cost-gate: {word}: {}", judged.sentence());
        }
    }
    let [same, more, less, new] = [Change::AsBefore, Change::More, Change::Less, Change::New]
        .map(|change| of(change).count());
    let advice = match more + less + new {
        0 => String::new(),
        _ => format!(
            "; LAB='--gate --update' writes them into {}",
            path.display()
        ),
    };
    let figures = count(all.len(), "figure");
    let _ = writeln!(
        text,
        "cost-gate: {figures}: {same} as before, {more} more, {less} less, {new} without a line{advice}"
    );
    let is_ours = |judged: &&Judged| {
        judged.rule == Rule::SameCompiler || !judged.measured.policy.starts_with("stock_")
    };
    Report {
        text,
        passed: of(Change::More).filter(is_ours).count() + new == 0,
    }
}

#[cfg(test)]
mod tests;
