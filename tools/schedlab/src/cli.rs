//! The command line.

// This file is long because every option is declared here once, with its help.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use sched_sim::{aim::Aim, policies::Sharing};

use crate::{changes::Changes, distinct::distinct};

/// Runs every scheduler with every app on every architecture, and compares.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 90)]
pub struct Cli {
    #[command(flatten)]
    pub tree: TreeArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build and run policy × app × architecture; keep what the guests printed
    Matrix(MatrixArgs),
    /// Print the tables of a matrix and draw its figures, or compare two
    Compare(CompareArgs),
    /// Count the cost of a yield under each policy, and judge whether it grew
    Cost(CostArgs),
    /// Measure the cost of coroutines beside threads, under every policy
    CoopCost(CoopCostArgs),
    /// Print the results of `make cost A=connections`: coroutines beside threads
    Connections(ConnectionsArgs),
    /// Play a recording under every policy, on any number of CPUs, in virtual time
    Simulate(SimulateArgs),
    /// Say which policy to take for a recorded program, and why
    Advise(AdviseArgs),
    /// Find the best order of a recorded program's tasks, and write it into a profile for PBG
    Plan(PlanArgs),
    /// Boot tasks that do everything a task can do, at random, under every policy, and watch them
    Soak(SoakArgs),
    /// Draw when each task of a traced run had its CPU
    Gantt(GanttArgs),
    /// Write each switch of a run, or of a recording that is played, as a file for Perfetto, and
    /// print how long each task waited, and behind which
    Trace(TraceArgs),
    /// Write the tables of Markdown pages from the CSV files that they name
    Docs(DocsArgs),
    /// Say which rows of the published tables are out of date, and what makes them again
    Stale(StaleArgs),
    /// Show, verify, merge, edit and compare PBG's profiles of a program
    #[command(subcommand)]
    Profile(ProfileCommand),
}

/// The project and its make.
#[derive(Args, Debug)]
pub struct TreeArgs {
    /// The project's folder [default: the nearest one upwards with a scripts/lab.mk]
    #[arg(long, value_name = "DIR", global = true, display_order = 100)]
    pub project: Option<PathBuf>,
    /// The make program
    #[arg(
        long,
        value_name = "PROGRAM",
        global = true,
        display_order = 101,
        env = "MAKE",
        default_value = "make",
        hide_env = true
    )]
    pub make: PathBuf,
}

/// The cells; each may be a list with commas and may be repeated.
#[derive(Args, Debug)]
pub struct SelectArgs {
    /// Policies, as sched_rr, rr or stock-rr [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Architectures [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub arch: Vec<String>,
}

/// A line of ArceOS, by the version of its `axtask` or `ax-task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arceos {
    #[value(name = "0.3")]
    Old,
    #[value(name = "0.6")]
    Of2026,
}

/// The setting of all cells. It also names the folder of results.
#[derive(Args, Clone, Debug)]
pub struct SettingArgs {
    /// Divide every workload by this
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub scale: u64,
    /// CPUs of each guest, 1 to 8; more than 1 means real time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: u32,
    /// The guests' clock, either counted instructions or the host's [default: icount, if one CPU]
    #[arg(long, value_enum)]
    pub timing: Option<Timing>,
    /// The line of ArceOS
    #[arg(long, value_enum, default_value = "0.3")]
    pub arceos: Arceos,
}

/// The clock of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Timing {
    // Not documentation: it would make the help three times as long.
    // Instructions: the same on every run.
    Icount,
    // The host's time.
    Real,
}

/// The cells that are booted, and how.
#[derive(Args, Debug)]
pub struct BootArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub setting: SettingArgs,
    /// Guests at the same time [default: one per core, or one if time is real]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Seconds until a guest counts as hung [default: what make says]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
}

#[derive(Args, Debug)]
pub struct MatrixArgs {
    #[command(flatten)]
    pub boot: BootArgs,
    /// Apps, by name or folder [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub app: Vec<String>,
    /// Run each cell N times: counted time must give the same lines each time, of real time every
    /// boot is kept, and the cells of an app take turns
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroUsize,
    /// Boot each cell at K phases of the timer tick, evenly over it; K is 1 to 64
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub phases: u16,
    /// Yields of each task of the app yield [default: 100000]
    #[arg(long, value_name = "N")]
    pub yields: Option<NonZeroU64>,
    /// Only shard K of N, for N machines with another K each; as 2/8
    #[arg(long, value_name = "K/N", allow_hyphen_values = true)]
    pub shard: Option<String>,
    /// Run cells again whose inputs did not change
    #[arg(long)]
    pub force: bool,
    /// Say what would be run, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Where results go [default: target/lab, and -scaleN, -smpN, -real, -yieldsN after it]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct CostArgs {
    #[command(flatten)]
    pub boot: BootArgs,
    /// The app that measures
    #[arg(long, value_name = "FOLDER", default_value = "apps/sched-tests/cost")]
    pub app: String,
    /// Boot each cell at K phases of the timer tick, evenly over it; K is 1 to 64
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub phases: u16,
    /// Where the figures go as CSV. Beside a sources.csv the rows of other cells stay [default:
    /// target/cost/cost.csv]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Judge the figures by these committed ones instead of printing tables, and measure the stock
    /// policies, too [default of FILE: docs/results/cost-gate.csv, and
    /// on the ArceOS of 2026 cost-gate-0.6.csv there]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["csv", "scale", "smp", "timing", "phases"]
    )]
    pub gate: Option<Option<PathBuf>>,
    /// Write the measured figures into that file
    #[arg(long, requires = "gate")]
    pub update: bool,
}

#[derive(Args, Debug)]
pub struct CoopCostArgs {
    #[command(flatten)]
    pub boot: BootArgs,
    /// Where the figures go as CSV. Beside a sources.csv the rows of other cells stay [default:
    /// target/coop-cost.csv]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct SoakArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub setting: SettingArgs,
    /// How long each boot is, in the guest's minutes [default: 3 seconds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub minutes: Option<u64>,
    /// Boots of each policy, each with a seed of its own [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub boots: Option<u64>,
    /// The seed of the first boot. Each further boot adds 1 [default: at random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    pub seed: Option<u64>,
    /// No task may wait for more than this number of seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=999))]
    pub bound: u64,
    /// Plant a fault, to see that it is found
    #[arg(long, value_enum)]
    pub plant: Option<Planted>,
    /// Seconds until a guest counts as hung [default: two minutes more than it is to take]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
}

/// A fault of a soak, with the number that the app's `orders.rs` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Planted {
    // Not documentation: it would make the help three times as long.
    // A task is pinned to a CPU whose running task never gives it up.
    Stall = 1,
    // A task says that it may not run where it runs.
    Outside = 2,
    // Tasks release locks that others have.
    Lock = 3,
}

/// A recording that is played, and its costs.
#[derive(Args, Debug)]
pub struct RecordingArgs {
    /// A profile that PBG measured in a kernel that preempts; for trace also the console log of
    /// `make run TRACE=events`
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// A profile of the same program in a kernel that does not preempt, for policies that do not
    #[arg(long, value_name = "FILE")]
    pub cooperative: Option<PathBuf>,
    /// Refuse a recording of another program
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// Refuse a recording of another architecture
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// The divisor of the workload when it was recorded
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub scale: u64,
    /// The program is one of the test programs, whose instrument takes its part of a switch
    #[arg(long)]
    pub metered: bool,
    /// Refuse a recording with more run intervals, wakes and ticks: each is played dozens of times
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub steps: u64,
    /// The cost of a yield: the CSV file of `make cost`
    #[arg(long, value_name = "FILE", default_value = "docs/results/cost.csv")]
    pub costs: PathBuf,
    /// The cost of the instrument follows from it: the CSV file of `make compare`
    #[arg(long, value_name = "FILE", default_value = "docs/results/tables.csv")]
    pub results: PathBuf,
}

/// The policies and CPUs that a recording is played on.
#[derive(Args, Debug)]
pub struct PlayedArgs {
    #[command(flatten)]
    pub source: RecordingArgs,
    /// Policies, as sched_rr, rr or stock-rr [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Numbers of CPUs, each 1 to 64
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub cpus: Vec<u8>,
    /// Share the work among several CPUs, as axsched/balanced does, under our policies
    #[arg(long, value_name = "y|n", default_value = "y", value_parser = sharing)]
    pub balance: Sharing,
}

impl PlayedArgs {
    /// Returns the numbers of CPUs, each once.
    pub fn cpus(&self) -> Vec<usize> {
        distinct(self.cpus.iter().copied().map(usize::from))
    }
}

#[derive(Args, Debug)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub played: PlayedArgs,
    /// Play each cell at K phases of the timer tick, evenly over it; K is 1 to 64
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub phases: u16,
    #[command(flatten)]
    pub changes: Changes,
    /// Play each cell N times, every task's time and the start changed at random; 1 to 100000
    #[arg(long, value_name = "N", requires = "spread", conflicts_with = "phases", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub seeds: Option<u64>,
    /// The most by which a task's time may differ then: 50%, at most 1000%
    #[arg(long, value_name = "P%", requires = "seeds", value_parser = spread)]
    pub spread: Option<u32>,
    /// Also print what QEMU measured on one CPU, of this folder of results or this published table
    #[arg(long, value_name = "DIR|CSV", conflicts_with_all = ["task", "run", "add", "arrivals", "seeds"])]
    pub check: Option<PathBuf>,
    /// Also write how far both are from each other into this CSV file, in place of what it has of
    /// this program and architecture
    #[arg(long, value_name = "FILE", requires = "check")]
    pub errors: Option<PathBuf>,
    /// Also write tables.md, tables.csv, the figures and each run's result lines there; with
    /// --seeds seeds.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Reads make's word for the sharing of several CPUs.
fn sharing(text: &str) -> Result<Sharing, String> {
    match text {
        "y" => Ok(Sharing::Balanced),
        "n" => Ok(Sharing::None),
        _ => Err("expected y or n".to_owned()),
    }
}

/// Reads `50%`, or the number alone.
fn spread(text: &str) -> Result<u32, String> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit());
    let number = digits.parse().ok().filter(|n| is_plain && *n <= 1000);
    number.ok_or_else(|| "expected 50% or the like, from 0% to 1000%".to_owned())
}

#[derive(Args, Debug)]
pub struct AdviseArgs {
    #[command(flatten)]
    pub source: RecordingArgs,
    /// The console of a boot that recorded one of them and replayed it; may be repeated
    #[arg(long, value_name = "FILE")]
    pub console: Vec<PathBuf>,
    /// The number of CPUs, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub cpus: u8,
    /// Play each policy at K phases of the timer tick, evenly over it; K is 1 to 64
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub phases: u16,
    /// How far the model is from QEMU: a CSV file
    #[arg(long, value_name = "FILE", default_value = "docs/results/simulate.csv")]
    pub errors: PathBuf,
}

#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub source: RecordingArgs,
    /// The number of CPUs, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub cpus: u8,
    /// The figure that the order makes small: the average turnaround, the makespan, the worst
    /// turnaround over its task's CPU time, or the time beyond deadlines
    #[arg(long, value_name = "FIGURE", default_value = "average", value_parser = aims())]
    pub aim: Aim,
    /// Search by playing this number of orders; 0 to 1000000
    #[arg(long, value_name = "N", default_value = "2000", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1_000_000))]
    pub plays: usize,
    /// The seed of the search. The same seed finds the same order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// End the search after this number of seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: Option<u64>,
    /// Where the profile goes [default: target/plans/PROGRAM-ARCH.pbg, and -scaleN, -smpN in it]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Reads the name of an aim.
fn aims() -> impl TypedValueParser<Value = Aim> {
    let names = PossibleValuesParser::new(Aim::ALL.map(|(name, _)| name));
    names.map(|name| {
        let aim = Aim::ALL.into_iter().find(|(known, _)| *known == name);
        aim.expect("a possible value").1
    })
}

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// A folder of results [default: target/lab, and -scaleN, -smpN, -real after it]
    #[arg(value_name = "A")]
    pub first: Option<PathBuf>,
    /// A second one: say which figures differ, and by how much
    #[arg(value_name = "B", conflicts_with = "strict")]
    pub second: Option<PathBuf>,
    /// Folders with a part of the results each, as the shards of a matrix; may be repeated
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "first")]
    pub results: Vec<PathBuf>,
    /// These may be of different compilers, QEMUs or source trees; say of which
    #[arg(long, requires = "results")]
    pub mixed: bool,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Apps, by name or folder [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub app: Vec<String>,
    #[command(flatten)]
    pub setting: SettingArgs,
    /// Also write tables.md, tables.csv and the figures there. Beside a sources.csv the tables.csv
    /// keeps what it has of other apps, architectures and policies, the figures there are renewed,
    /// and no tables.md is written
    #[arg(long, value_name = "DIR", overrides_with = "out")]
    pub out: Option<PathBuf>,
    /// Also write the figures of whole runs into this CSV file; beside a sources.csv it keeps what
    /// it has of others
    #[arg(long, value_name = "FILE.csv")]
    pub totals: Option<PathBuf>,
    /// More rows: PBG while it measures, or every difference between two folders
    #[arg(long)]
    pub long: bool,
    /// Compare each cell with that of this policy in the second folder; for PBG, its replay
    #[arg(long, value_name = "POLICY", requires = "second")]
    pub against: Option<String>,
    /// A missing cell is an error
    #[arg(long)]
    pub strict: bool,
}

#[derive(Args, Debug)]
pub struct GanttArgs {
    /// Console logs of `make run TRACE=y`, all of one app and setting; a panel for
    /// each phase, in this order
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Where the chart goes
    #[arg(long, short, value_name = "CHART.svg", overrides_with = "out")]
    pub out: PathBuf,
    /// A panel for PBG while it measures, too
    #[arg(long)]
    pub long: bool,
}

/// FILE is the console log of `make run TRACE=events`, or a recording that is played: only a
/// recording has the other options.
#[derive(Args, Debug)]
pub struct TraceArgs {
    #[command(flatten)]
    pub played: PlayedArgs,
    /// The phase of the timer tick at which the tasks come, in thousandths: 0 to 999
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=999))]
    pub tick_phase: u16,
    /// Keep the first N switches and wakes of a run, and count the others
    #[arg(long, value_name = "N", default_value = "4000000")]
    pub most: NonZeroUsize,
    /// The folder that the files go to; or, of one run, a file that ends in .perfetto-trace
    #[arg(
        long,
        short,
        value_name = "DIR",
        overrides_with = "out",
        default_value = "target/trace"
    )]
    pub out: PathBuf,
    /// Also draw them, as gantt does
    #[arg(long, value_name = "CHART.svg")]
    pub picture: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ConnectionsArgs {
    /// Consoles of the app connections
    #[arg(value_name = "CONSOLE", required = true)]
    pub consoles: Vec<PathBuf>,
    /// Where the figures go, one in a line; beside a sources.csv the rows of other cells stay
    #[arg(long, value_name = "FILE", overrides_with = "csv")]
    pub csv: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DocsArgs {
    /// Pages with marked tables
    #[arg(value_name = "PAGE.md", required = true)]
    pub pages: Vec<PathBuf>,
    /// Write nothing; a line that is not as its CSV file has it is an error
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Debug)]
pub struct StaleArgs {
    /// The folder of the CSV files
    #[arg(value_name = "DIR", default_value = "docs/results")]
    pub folder: PathBuf,
    /// As for a release: rows of real time must be up to date as well
    #[arg(long)]
    pub release: bool,
    /// Print cells of tables.csv that are up to date, to be measured again: one in twenty of an
    /// architecture, which SEED decides
    #[arg(long, value_name = "SEED", conflicts_with = "release")]
    pub sample: Option<String>,
}

/// A FILE is a profile, or a console log with a profile in it (the last one counts).
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Print a table of its tasks
    Show(ShowArgs),
    /// Say whether it is whole, and of this program and machine if they are given
    Verify(VerifyArgs),
    /// Make one profile of several runs of a program
    Merge(MergeArgs),
    /// Set a task's priority or deadline
    Edit(EditArgs),
    /// Say which tasks are new, gone or changed
    Diff(DiffArgs),
}

#[derive(Args, Debug)]
pub struct ShowArgs {
    /// A profile or a console log
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print all of it as JSON, times in counts
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// A profile or a console log
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// It must be of this architecture
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// It must be of the program with this hash, 16 hexadecimal digits
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub program: Option<u64>,
    /// It must be of this number of CPUs
    #[arg(long, value_name = "N")]
    pub smp: Option<u16>,
    /// It must have been measured in this time, or not say in which
    #[arg(long, value_enum)]
    pub timing: Option<Timing>,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["files", "from_list"]))]
pub struct MergeArgs {
    /// Profiles or console logs, or folders with files *.pbg and *.log; the first says of
    /// which program and machine the others must be
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Also those whose names are in this file, one on each line; - is standard input
    #[arg(long, value_name = "LIST")]
    pub from_list: Option<PathBuf>,
    /// Where the merged profile goes
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Leave out what does not belong, and say what; without this it is an error
    #[arg(long)]
    pub leave_out: bool,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["priority", "deadline", "order"]))]
pub struct EditArgs {
    /// A profile or a console log
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The task's label, key or path as 0.2; may be repeated
    #[arg(long, value_name = "TASK", required_unless_present = "order")]
    pub task: Vec<String>,
    /// Take the order of this profile of the same tasks, as `make plan` writes it
    #[arg(long, value_name = "FILE")]
    pub order: Option<PathBuf>,
    /// 1 goes strictly before 2, and so on to 255, and that before all without;
    /// none (or 0) takes it away
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "task")]
    pub priority: Option<String>,
    /// Its deadline, from its spawn: as 50ms, 1.5s, 20us, 100ns,
    /// 5000counts, or none
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        requires = "task"
    )]
    pub deadline: Option<String>,
    /// Where the changed profile goes [default: into FILE, if that is a profile]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// A profile or a console log
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// Another, to compare it with
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// A mean that differs by no more than this is no change
    #[arg(long, value_name = "P", default_value_t = 5.0, value_parser = percent)]
    pub percent: f64,
}

fn hash(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(|e| e.to_string())
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..f64::INFINITY).contains(&percent) => Ok(percent),
        _ => Err("expected a number from 0".into()),
    }
}
