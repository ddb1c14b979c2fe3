//! `schedlab soak`: boots the app soak under every policy, for a time or a number of times, and
//! reports the boots that failed.
//!
//! Boots run one after the other: guests with several CPUs in real time would take the host's from
//! each other. The orders of a boot, above all its seed, go to `scripts/qemu-run.sh` by the
//! environment, as one image is booted with many seeds.

mod summary;

use std::{
    hash::{BuildHasher, RandomState},
    path::PathBuf,
};

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    Verdict,
    boot::{self, Children, Failure},
    cli::{SoakArgs, TreeArgs},
    output::{note, print, print_line},
    project::{App, Cell, Project},
    setting::Setting,
    store::write,
};
use summary::{Row, Summary};

/// The largest first seed. With those of all boots, seeds have no more digits than an image has room
/// for.
const SEEDS: u64 = 4_000_000_000;

/// The seconds of one boot, without `--minutes`.
const SECONDS_OF_BOOTS: u64 = 3;

/// The seconds that a guest may take beyond its time, for its own boot and on a busy host.
const MORE_SECONDS: u64 = 120;

/// The seconds that a second of counted time may take.
const COUNTED_TAKES: u64 = 30;

/// All boots of all cells.
struct Soak<'a> {
    project: &'a Project,
    children: &'a Children,
    args: &'a SoakArgs,
    setting: Setting,
    seconds: u64,
    boots: u64,
    seed: u64,
}

/// The app that is booted.
const APP: &str = "apps/sched-tests/soak";

pub fn soak(tree: &TreeArgs, args: &SoakArgs) -> Result<Verdict> {
    let project = Project::find(tree)?;
    let setting = Setting::new(&args.setting);
    setting.check()?;
    let mut lists = project.lists()?;
    lists.policies.retain(|policy| policy.starts_with("sched_"));
    lists.apps = vec![App::in_folder(APP)?];
    let wanted = lists.select(&args.select, &[])?;
    let cells: Vec<Cell> = wanted.cells().collect();
    let children = boot::children()?;
    let soak = Soak {
        project: &project,
        children: &children,
        args,
        setting,
        seconds: args
            .minutes
            .map_or(SECONDS_OF_BOOTS, |minutes| minutes * 60),
        boots: args.boots.unwrap_or(1),
        seed: match args.seed {
            Some(seed) => seed,
            None => RandomState::new().hash_one("soak") % SEEDS + 1,
        },
    };
    soak.announce(cells.len())?;

    // All builds come first: time is the host's.
    let mut rows: Vec<Row> = Vec::new();
    for cell in &cells {
        let mut row = Row::of(cell);
        if !children.stopped()
            && let Err(Failure::Bad { why, console }) = soak.make("build", cell, None)
        {
            soak.report_failure(cell, None, &why, &console)?;
            row.failed += 1;
        }
        rows.push(row);
    }
    for row in &mut rows {
        if row.failed == 0 {
            soak.boots_of(row)?;
        }
    }
    print(summary::table(&rows))?;
    Ok(match () {
        () if children.stopped() => Verdict::Interrupted,
        () if rows.iter().any(|row| row.failed > 0) => Verdict::Bad,
        () => Verdict::Good,
    })
}

impl Soak<'_> {
    fn announce(&self, cells: usize) -> Result<()> {
        let boots = match self.boots {
            1 => "one boot".to_owned(),
            boots => format!("{boots} boots"),
        };
        let seeds = match self.boots {
            1 => format!("seed {}", self.seed),
            boots => format!("seeds {} to {}", self.seed, self.seed + boots - 1),
        };
        print_line(format_args!(
            "soak: {boots} of {} s of each of {cells} on SMP={}, {seeds}",
            self.seconds, self.args.setting.smp
        ))
    }

    /// Boots a cell the number of times that was asked for, also after a boot that failed.
    fn boots_of(&self, row: &mut Row) -> Result<()> {
        for boot in 0..self.boots {
            if self.children.stopped() {
                return Ok(());
            }
            let seed = self.seed + boot;
            if boot == 0 {
                note(format_args!(
                    "soak: {} on {}",
                    row.cell.policy, row.cell.arch
                ));
            }
            let judged = self
                .make("lab-boot", &row.cell, Some(seed))
                .and_then(|console| {
                    let setting = &self.args.setting;
                    match Summary::of(&console, &row.cell, setting.smp, seed) {
                        Ok(summary) => Ok(summary),
                        Err(why) => Err(Failure::Bad { why, console }),
                    }
                });
            match judged {
                Ok(summary) => row.passed(summary),
                Err(Failure::Stopped) => return Ok(()),
                Err(Failure::Bad { why, console }) => {
                    row.failed += 1;
                    self.report_failure(&row.cell, Some(seed), &why, &console)?;
                }
            }
        }
        Ok(())
    }

    /// Prints the report of the guest, the file with the rest, and the command that repeats it.
    fn report_failure(
        &self,
        cell: &Cell,
        seed: Option<u64>,
        why: &str,
        console: &[String],
    ) -> Result<()> {
        let arch = &cell.arch;
        let boot = seed.map_or("build".to_owned(), |seed| format!("seed{seed}"));
        let file = PathBuf::from(format!("target/soak/{arch}-{}-{boot}.log", cell.policy));
        write(&self.project.root.join(&file), console.join("\n") + "\n")?;
        for line in summary::report(console) {
            note(format_args!("        | {line}"));
        }
        note(format_args!(
            "soak: {cell}: {why} (all of it: {})",
            file.display()
        ));
        if let Some(seed) = seed {
            note(format_args!(
                "soak: once more: make soak {}",
                self.again(cell, seed)
            ));
        }
        Ok(())
    }

    /// Returns the words for make that boot a cell once with this seed.
    fn again(&self, cell: &Cell, seed: u64) -> String {
        let mut options = match self.args.minutes {
            Some(minutes) => format!("--minutes {minutes}"),
            None => "--boots 1".to_owned(),
        };
        options += &format!(" --seed {seed}");
        if let Some(planted) = self.args.plant {
            let planted = planted.to_possible_value().expect("no fault is skipped");
            let (planted, bound) = (planted.get_name(), self.args.bound);
            options += &format!(" --plant {planted} --bound {bound}");
        }
        let mut words = vec![format!("LAB='{options}'")];
        words.extend(
            self.variables(cell)
                .into_iter()
                .filter(|word| !word.starts_with("A=")),
        );
        words.join(" ")
    }

    fn variables(&self, cell: &Cell) -> Vec<String> {
        let mut variables = vec![
            format!("A={}", cell.app.folder),
            format!("ARCH={}", cell.arch),
            format!("FEATURES={}", cell.policy),
        ];
        let of_plain_apps = |variable: &String| !variable.starts_with("SCALE=");
        variables.extend(self.setting.variables().into_iter().filter(of_plain_apps));
        variables
    }

    /// Runs a make target and returns what it printed.
    fn make(&self, goal: &str, cell: &Cell, seed: Option<u64>) -> Result<Vec<String>, Failure> {
        let usual = match self.setting.is_exact() {
            true => self.seconds * COUNTED_TAKES + MORE_SECONDS,
            false => self.seconds + self.args.bound + MORE_SECONDS,
        };
        let mut words = vec!["-s".to_owned(), goal.to_owned()];
        words.extend(self.variables(cell));
        words.push(format!("TIMEOUT={}", self.args.timeout.unwrap_or(usual)));
        let mut make = self.project.make(&words);
        if let Some(seed) = seed {
            let planted = self.args.plant.map_or(0, |planted| planted as u32);
            let orders = format!("{seed} {} {} {planted}", self.seconds, self.args.bound);
            make.env("SOAK_ORDERS", orders);
        }
        let mut console = Vec::new();
        let end = (self.children).run(make, None, |line| console.push(line.to_owned()));
        if self.children.stopped() {
            return Err(Failure::Stopped);
        }
        let why = match end {
            Ok(status) if status.success() => return Ok(console),
            Ok(status) => {
                let begins = |name| move |line: &String| Some(line.strip_prefix(name)?.to_owned());
                (console.iter().find_map(begins("soak: ")))
                    .or_else(|| console.iter().rev().find_map(begins("run: ")))
                    .unwrap_or_else(|| format!("make {goal}: {status}"))
            }
            Err(error) => format!("make {goal}: {error:#}"),
        };
        Err(Failure::Bad { why, console })
    }
}
