//! The gate: is what a yield costs still what the project's figures say?
//!
//! The figures are a CSV file, a line for each policy (and phase of PBG), architecture and
//! number of tasks, with the compiler that built the images. All lines of an architecture
//! are of one compiler, as the ratio to a stock line would mean nothing otherwise.
//!
//! - The same compiler: counted time repeats to the digit, so a figure may grow by
//!   [`ALLOWED_INSTRUCTIONS`], which is less than one.
//! - Another compiler: all figures move. What counts is the ratio to the stock policy,
//!   measured in the same run; it may grow by [`ALLOWED_PERCENT`].

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::figures::{Figure, Figures};
use crate::{grid, output::count, project::Lists};

/// Half of the least that a change can add.
const ALLOWED_INSTRUCTIONS: f64 = 0.5;
const ALLOWED_PERCENT: f64 = 1.0;
/// One task alone does not switch, and more than 256 are no other case.
const SIZES: [usize; 2] = [4, 256];

/// A committed figure.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Line {
    /// With the phase, if it is PBG: `sched_pbg replay`.
    policy: String,
    architecture: String,
    tasks: usize,
    /// What a yield costs.
    instructions: f64,
    compiler: String,
}

impl Line {
    fn is_of(&self, policy: &str, arch: &str) -> bool {
        name(&self.policy) == policy && self.architecture == arch
    }
}

/// The policy's name, without the phase.
fn name(policy: &str) -> &str {
    policy.split(' ').next().unwrap_or(policy)
}

/// The stock policy that a policy is held against: the one that preempts like it. The
/// stock policies are held against each other, for people to see: with another compiler one
/// of the two has grown, and nobody here could mend it.
fn stock_of(policy: &str) -> &'static str {
    let preempts = !(policy.ends_with("fifo") || policy.ends_with("coop"));
    match (policy, preempts) {
        ("stock_rr", _) => "stock_fifo",
        ("stock_fifo", _) | (_, true) => "stock_rr",
        (_, false) => "stock_fifo",
    }
}

/// These policies and the two stock ones that policies are held against, in the order of all.
pub fn with_stock(wanted: &[String], all: &[String]) -> Vec<String> {
    let chosen = |policy: &&String| {
        wanted.contains(policy) || ["stock_fifo", "stock_rr"].contains(&policy.as_str())
    };
    all.iter().filter(chosen).cloned().collect()
}

/// The figures in the file.
#[derive(Debug)]
pub struct Committed {
    lines: Vec<Line>,
}

/// A measured figure beside the committed one.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    policy: String,
    arch: String,
    tasks: usize,
    /// Nothing if the file has none.
    before: Option<f64>,
    after: f64,
    rule: Rule,
}

/// By how much the figure may grow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    SameCompiler,
    /// The stock policy's figures, which are of this name.
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
    /// By how many instructions or, of a ratio, per cent the figure may grow.
    const fn allowed(&self) -> f64 {
        match self.rule {
            Rule::SameCompiler => ALLOWED_INSTRUCTIONS,
            Rule::Ratio { .. } => ALLOWED_PERCENT,
        }
    }

    fn change(&self) -> Change {
        let Some(before) = self.before else {
            return Change::New;
        };
        let allowed = self.allowed();
        let by = match self.rule {
            Rule::SameCompiler => self.after - before,
            Rule::Ratio {
                before: stock_before,
                after: stock_after,
                ..
            } => {
                let (before, after) = (before / stock_before, self.after / stock_after);
                (after / before - 1.0) * 100.0
            }
        };
        // A tenth is what is printed: half of one is for the sum of two roundings.
        match by {
            by if by > allowed + 1e-6 => Change::More,
            by if by < -allowed - 1e-6 => Change::Less,
            _ => Change::AsBefore,
        }
    }

    /// Policy, architecture, before and after.
    fn sentence(&self) -> String {
        let Self {
            policy,
            arch,
            tasks,
            after,
            ..
        } = self;
        let place = format!("{policy} on {arch}, {tasks} tasks");
        let Some(before) = self.before else {
            return format!("{place}: no figure before, {after:.1} after");
        };
        let times = format!("{place}: {before:.1} instructions before, {after:.1} after");
        let allowed = self.allowed();
        match self.rule {
            Rule::SameCompiler => {
                format!("{times}: {:+.1}, allowed is {allowed:+.1}", after - before)
            }
            Rule::Ratio {
                stock,
                before: stock_before,
                after: stock_after,
            } => {
                let (before, after) = (before / stock_before, after / stock_after);
                format!(
                    "{times}, by another compiler; of {stock} {before:.4} before, {after:.4} after: {:+.2} %, allowed is {allowed:+.2} %",
                    (after / before - 1.0) * 100.0
                )
            }
        }
    }
}

impl Committed {
    /// Reads the file; where it is to be written, it need not be there yet.
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
            let (policy, arch) = (&line.policy, &line.architecture);
            if line.instructions.is_nan() || line.instructions <= 0.0 {
                bail!(
                    "{policy} on {arch}: expected instructions above 0, found {}",
                    line.instructions
                );
            }
            if let Some(other) = lines.iter().find(|other| other.architecture == *arch) {
                let (expected, found) = (&other.compiler, &line.compiler);
                if expected != found {
                    bail!(
                        "{policy} on {arch}: expected the compiler of the other lines, `{expected}`, found `{found}`"
                    );
                }
            }
            let same = |other: &Line| {
                (&other.policy, &other.architecture, other.tasks) == (policy, arch, line.tasks)
            };
            if lines.iter().any(same) {
                bail!(
                    "{policy} on {arch}: expected one line for {} tasks, found another",
                    line.tasks
                );
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

    /// Refuses to write some lines of an architecture with a compiler that the others are
    /// not of, before anything is built.
    pub fn check_update(&self, wanted: &Lists, all: &[String], compiler: &str) -> Result<()> {
        for line in &self.lines {
            let stays = all.iter().any(|policy| policy == name(&line.policy))
                && !wanted
                    .policies
                    .iter()
                    .any(|policy| policy == name(&line.policy));
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

    /// Holds each measured figure against its line. A line whose figure was not measured
    /// is an error if its policy was.
    pub fn judge(
        &self,
        figures: &Figures,
        policies: &[String],
        compiler: &str,
    ) -> Result<Vec<Judged>> {
        let mut all = Vec::new();
        let gated = |figure: &&Figure| SIZES.contains(&figure.tasks);
        for figure in figures.0.iter().filter(gated) {
            let (policy, after) = (figure.policy_and_phase(), rounded(figure));
            if after <= 0.0 {
                bail!(
                    "{policy} on {}: expected a cost above 0, found {after}",
                    figure.arch
                );
            }
            let before = self.line(&policy, &figure.arch, figure.tasks);
            let rule = match before {
                Some(line) if line.compiler != compiler => self.ratio(figures, figure)?,
                _ => Rule::SameCompiler,
            };
            all.push(Judged {
                policy,
                arch: figure.arch.clone(),
                tasks: figure.tasks,
                before: before.map(|line| line.instructions),
                after,
                rule,
            });
        }
        for arch in figures.arches() {
            for policy in policies {
                for line in self.lines.iter().filter(|line| line.is_of(policy, arch)) {
                    let measured = |judged: &Judged| {
                        (&judged.policy, &*judged.arch, judged.tasks)
                            == (&line.policy, arch, line.tasks)
                    };
                    if !all.iter().any(measured) {
                        bail!(
                            "{} on {arch}, {} tasks: expected a figure, found none",
                            line.policy,
                            line.tasks
                        );
                    }
                }
            }
        }
        Ok(all)
    }

    fn line(&self, policy: &str, arch: &str, tasks: usize) -> Option<&Line> {
        self.lines
            .iter()
            .find(|line| (&*line.policy, &*line.architecture, line.tasks) == (policy, arch, tasks))
    }

    /// The stock policy's figures, before and now.
    fn ratio(&self, figures: &Figures, figure: &Figure) -> Result<Rule> {
        let stock = stock_of(&figure.policy);
        let before = self.line(stock, &figure.arch, figure.tasks);
        let after = figures.0.iter().find(|other| {
            (&*other.policy, &other.arch, other.tasks) == (stock, &figure.arch, figure.tasks)
        });
        let (Some(before), Some(after)) = (before, after) else {
            bail!(
                "{stock} on {}: expected figures to hold {} against, found none",
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

    /// Takes the measured figures over; lines of policies that there are no more go.
    pub fn update(&mut self, measured: &[Judged], compiler: &str, all: &Lists) {
        let is_measured = |line: &Line| {
            let of = |judged: &Judged| line.is_of(name(&judged.policy), &judged.arch);
            measured.iter().any(of)
        };
        let is_left = |line: &Line| {
            all.policies
                .iter()
                .any(|policy| policy == name(&line.policy))
        };
        self.lines
            .retain(|line| !is_measured(line) && is_left(line));
        self.lines.extend(measured.iter().map(|judged| Line {
            policy: judged.policy.clone(),
            architecture: judged.arch.clone(),
            tasks: judged.tasks,
            instructions: judged.after,
            compiler: compiler.to_owned(),
        }));
        let place = |all: &[String], one: &str| all.iter().position(|other| other == one);
        // Stable: phases and sizes stay in the order in which they were measured.
        self.lines.sort_by_key(|line| {
            (
                place(&all.arches, &line.architecture),
                place(&all.policies, name(&line.policy)),
            )
        });
    }
}

/// As it stands in the file.
fn rounded(figure: &Figure) -> f64 {
    (figure.spread().mean * 10.0).round() / 10.0
}

/// A table for each architecture: before and after, for each number of tasks.
pub fn text(all: &[Judged]) -> String {
    let mut tables = Vec::new();
    let arches: Vec<&str> = {
        let mut seen = BTreeSet::new();
        all.iter()
            .map(|j| &*j.arch)
            .filter(|arch| seen.insert(*arch))
            .collect()
    };
    for arch in arches {
        let row = |judged: &Judged| {
            let before = judged
                .before
                .map_or(String::new(), |before| format!("{before:.1}"));
            let by = judged.before.map_or(String::new(), |before| {
                format!("{:+.1}", judged.after - before)
            });
            let word = match judged.change() {
                Change::AsBefore => "",
                Change::More => "more",
                Change::Less => "less",
                Change::New => "new",
            };
            [
                judged.policy.clone(),
                judged.tasks.to_string(),
                before,
                format!("{:.1}", judged.after),
                by,
                word.to_owned(),
            ]
        };
        let titles = ["policy", ">tasks", ">before", ">after", ">by", ""];
        let rows = all.iter().filter(|judged| judged.arch == arch).map(row);
        let table = grid::text(&titles, rows, grid::WIDE);
        tables.push(format!("{arch}: instructions per yield\n\n{table}"));
    }
    tables.join("\n")
}

/// The last words of the gate.
pub struct Says {
    pub text: String,
    pub passed: bool,
}

/// A sentence for each figure that is not as before, and a summary.
pub fn says(all: &[Judged], path: &Path) -> Says {
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
    let number = |change| of(change).count();
    let (more, new, less) = (
        number(Change::More),
        number(Change::New),
        number(Change::Less),
    );
    let advice = if more + new + less > 0 {
        format!(
            "; LAB='--gate --update' writes them into {}",
            path.display()
        )
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "cost-gate: {}: {} as before, {more} more, {less} less, {new} without a line{advice}",
        count(all.len(), "figure"),
        number(Change::AsBefore),
    );
    let is_ours = |judged: &&Judged| {
        judged.rule == Rule::SameCompiler || !judged.policy.starts_with("stock_")
    };
    Says {
        text,
        passed: of(Change::More).filter(is_ours).count() + new == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::figures::tests::sample;
    use crate::project::Titles;

    const FILE: &str = "\
policy,architecture,tasks,instructions,compiler
sched_fifo,x86_64,4,140.0,rustc 1
sched_fifo,x86_64,256,140.0,rustc 1
stock_fifo,x86_64,4,160.0,rustc 1
stock_fifo,x86_64,256,160.0,rustc 1
stock_rr,x86_64,4,200.0,rustc 1
stock_rr,x86_64,256,200.0,rustc 1
";
    const POLICIES: [&str; 2] = ["sched_fifo", "stock_fifo"];

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    fn lists(policies: &[&str]) -> Lists {
        Lists {
            policies: words(policies),
            apps: Vec::new(),
            arches: words(&["x86_64"]),
            titles: Titles::new(),
        }
    }

    /// What the gate says of these costs of FIFO and stock FIFO, each of 4 and 256 tasks; stock
    /// RR is always as far from stock FIFO.
    fn gate(fifo: [f64; 2], stock: [f64; 2], compiler: &str) -> Says {
        let figures = sample(&[
            ("sched_fifo", "run", fifo),
            ("stock_fifo", "run", stock),
            ("stock_rr", "run", stock.map(|cost| cost * 1.25)),
        ]);
        let committed = Committed::parse(FILE).unwrap();
        let all = committed
            .judge(&figures, &words(&POLICIES), compiler)
            .unwrap();
        says(&all, Path::new("gate.csv"))
    }

    #[test]
    fn of_the_same_compiler_half_an_instruction_more_is_allowed() {
        let same = gate([140.4, 139.6], [160.0; 2], "rustc 1");
        assert!(
            same.passed
                && same
                    .text
                    .ends_with("6 figures: 6 as before, 0 more, 0 less, 0 without a line\n"),
            "{}",
            same.text
        );
        assert!(gate([140.5, 140.0], [160.0; 2], "rustc 1").passed);
        let more = gate([140.0, 141.0], [160.0; 2], "rustc 1");
        assert!(!more.passed);
        let sentence = "cost-gate: more: sched_fifo on x86_64, 256 tasks: 140.0 instructions before, 141.0 after: +1.0, allowed is +0.5\n";
        assert!(more.text.contains(sentence), "{}", more.text);
    }

    #[test]
    fn a_replay_is_held_to_the_same_as_all_others() {
        let mut committed = Committed::parse(FILE).unwrap();
        let replay = |costs| sample(&[("sched_pbg", "replay", costs)]);
        let lists = lists(&["sched_pbg", "stock_fifo", "stock_rr"]);
        let before = committed.judge(&replay([140.0; 2]), &[], "rustc 1");
        committed.update(&before.unwrap(), "rustc 1", &lists);
        let passes = |costs| {
            let judged = committed.judge(&replay(costs), &[], "rustc 1").unwrap();
            says(&judged, Path::new("gate.csv")).passed
        };
        assert!(passes([140.5, 140.5]));
        assert!(!passes([140.6, 140.0]));
        assert!(!passes([140.0, 140.6]), "of 256 tasks as well");
    }

    #[test]
    fn an_improvement_is_told_and_passes() {
        let less = gate([140.0, 139.0], [160.0; 2], "rustc 1");
        assert!(less.passed);
        let sentence = "cost-gate: less: sched_fifo on x86_64, 256 tasks: 140.0 instructions before, 139.0 after: -1.0,";
        assert!(less.text.contains(sentence), "{}", less.text);
        assert!(
            less.text
                .ends_with("; LAB='--gate --update' writes them into gate.csv\n"),
            "{}",
            less.text
        );
    }

    #[test]
    fn of_another_compiler_the_ratio_to_stock_counts() {
        // 10 % more of both: as before.
        assert!(gate([154.0, 154.0], [176.0; 2], "rustc 2").passed);
        // As many as before, where stock needs 2 % less.
        let more = gate([140.0, 140.0], [156.8, 160.0], "rustc 2");
        assert!(!more.passed);
        let sentence = "more: sched_fifo on x86_64, 4 tasks: 140.0 instructions before, 140.0 after, by another compiler; of stock_fifo 0.8750 before, 0.8929 after: +2.04 %, allowed is +1.00 %\n";
        assert!(more.text.contains(sentence), "{}", more.text);
        assert!(gate([141.2, 140.0], [160.0; 2], "rustc 2").passed);
        assert!(!gate([141.5, 140.0], [160.0; 2], "rustc 2").passed);
    }

    #[test]
    fn of_another_compiler_the_stock_rows_do_not_fail_for_being_further_apart() {
        let figures = sample(&[
            ("stock_fifo", "run", [160.0; 2]),
            ("stock_rr", "run", [210.0; 2]),
        ]);
        let committed = Committed::parse(
            "policy,architecture,tasks,instructions,compiler\n\
             stock_fifo,x86_64,4,160.0,rustc 1\nstock_fifo,x86_64,256,160.0,rustc 1\n\
             stock_rr,x86_64,4,200.0,rustc 1\nstock_rr,x86_64,256,200.0,rustc 1\n",
        )
        .unwrap();
        let wanted = words(&["stock_fifo", "stock_rr"]);
        let says = |compiler: &str| {
            let judged = committed.judge(&figures, &wanted, compiler).unwrap();
            says(&judged, Path::new("gate.csv"))
        };
        let other = says("rustc 2");
        assert!(
            other.passed && other.text.contains("2 more"),
            "{}",
            other.text
        );
        assert!(!says("rustc 1").passed);
    }

    #[test]
    fn a_policy_is_held_against_the_stock_one_that_preempts_like_it() {
        for (policy, stock) in [
            ("sched_fifo", "stock_fifo"),
            ("sched_pbg_coop", "stock_fifo"),
            ("sched_pbg", "stock_rr"),
            ("stock_cfs", "stock_rr"),
            ("stock_rr", "stock_fifo"),
            ("stock_fifo", "stock_rr"),
        ] {
            assert_eq!(stock_of(policy), stock, "{policy}");
        }
        let all = words(&["sched_fifo", "sched_rr", "stock_fifo", "stock_rr"]);
        assert_eq!(
            with_stock(&words(&["sched_fifo"]), &all),
            ["sched_fifo", "stock_fifo", "stock_rr"]
        );
    }

    #[test]
    fn what_has_no_line_or_no_figure_does_not_pass() {
        let committed = Committed::parse(FILE).unwrap();
        let new = sample(&[("sched_new", "run", [100.0; 2])]);
        let all = committed
            .judge(&new, &words(&["sched_new"]), "rustc 1")
            .unwrap();
        let says = says(&all, Path::new("gate.csv"));
        let sentence =
            "cost-gate: new: sched_new on x86_64, 4 tasks: no figure before, 100.0 after\n";
        assert!(
            !says.passed && says.text.contains(sentence),
            "{}",
            says.text
        );
        let half = Figures(sample(&[("sched_fifo", "run", [140.0; 2])]).0[..1].to_vec());
        let error = committed
            .judge(&half, &words(&["sched_fifo"]), "rustc 1")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "sched_fifo on x86_64, 256 tasks: expected a figure, found none"
        );
        let none = sample(&[("sched_fifo", "run", [0.0; 2])]);
        assert!(committed.judge(&none, &[], "rustc 1").is_err());
    }

    #[test]
    fn an_update_writes_what_was_measured_and_keeps_the_rest() {
        let mut committed = Committed::parse(FILE).unwrap();
        let figures = sample(&[
            ("sched_fifo", "run", [138.0; 2]),
            ("sched_pbg", "replay", [139.0; 2]),
        ]);
        let all = committed.judge(&figures, &[], "rustc 1").unwrap();
        let lists = lists(&["sched_fifo", "sched_pbg", "stock_fifo"]);
        committed.update(&all, "rustc 1", &lists);
        let expected = "\
policy,architecture,tasks,instructions,compiler
sched_fifo,x86_64,4,138.0,rustc 1
sched_fifo,x86_64,256,138.0,rustc 1
sched_pbg replay,x86_64,4,139.0,rustc 1
sched_pbg replay,x86_64,256,139.0,rustc 1
stock_fifo,x86_64,4,160.0,rustc 1
stock_fifo,x86_64,256,160.0,rustc 1
";
        assert_eq!(committed.csv().unwrap(), expected);
    }

    #[test]
    fn one_architecture_has_one_compiler() {
        let committed = Committed::parse(FILE).unwrap();
        let all = words(&["sched_fifo", "stock_fifo", "stock_rr"]);
        let refused = committed.check_update(&lists(&POLICIES), &all, "rustc 2");
        assert_eq!(
            refused.unwrap_err().to_string(),
            "stock_rr on x86_64 is of `rustc 1`, and this is `rustc 2`; allowed is to update all policies at once"
        );
        assert!(
            committed
                .check_update(&lists(&POLICIES), &all, "rustc 1")
                .is_ok()
        );
        assert!(
            committed
                .check_update(
                    &lists(&["sched_fifo", "stock_fifo", "stock_rr"]),
                    &all,
                    "rustc 2"
                )
                .is_ok()
        );
        let mixed = FILE.replacen("rustc 1", "rustc 2", 1);
        assert!(Committed::parse(&mixed).is_err());
        assert!(Committed::parse(&FILE.replacen("140.0", "0", 1)).is_err());
        assert!(Committed::parse(&FILE.replacen("256", "4", 1)).is_err());
    }

    #[test]
    fn the_table_says_before_and_after() {
        let committed = Committed::parse(FILE).unwrap();
        let figures = sample(&[("sched_fifo", "run", [140.0, 141.0])]);
        let all = committed.judge(&figures, &[], "rustc 1").unwrap();
        let expected = "\
x86_64: instructions per yield

 policy       tasks   before   after     by
---------------------------------------------------
 sched_fifo       4    140.0   140.0   +0.0
 sched_fifo     256    140.0   141.0   +1.0   more
";
        assert_eq!(text(&all), expected, "{}", text(&all));
    }
}
