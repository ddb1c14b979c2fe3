//! Building and booting cells through make: what `schedlab matrix` and `schedlab cost`
//! have in common.
//!
//! One thread builds, one image after the other, as cargo locks its folder
//! anyway; others boot what is finished. Where time is the host's, all builds
//! come first and guests run alone, or they would measure each other.

use std::{
    sync::{
        Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use anyhow::Result;
use sched_tests_results::TickPhase;

use crate::{
    project::{Cell, Project},
    record::{Outcome, parse, result_lines},
    setting::Setting,
    store::belongs,
};
pub use process_groups::Children;

/// Why there are no figures.
pub enum Failure {
    /// The user stopped it.
    Stopped,
    /// Why, in a line, and all that was printed.
    Bad { why: String, console: Vec<String> },
}

impl Failure {
    /// The same, with the place before the reason.
    pub fn at(self, place: &str) -> Self {
        match self {
            Self::Bad { why, console } => Self::Bad {
                why: format!("{place}{why}"),
                console,
            },
            Self::Stopped => Self::Stopped,
        }
    }
}

/// What make is told about a cell.
pub fn variables(cell: &Cell, setting: &Setting) -> Vec<String> {
    let mut variables = vec![
        format!("A={}", cell.app.folder),
        format!("ARCH={}", cell.arch),
        format!("FEATURES={}", cell.policy),
    ];
    variables.extend(setting.variables());
    variables
}

/// For QEMU's runner to end in good order; it allows QEMU one second itself.
const GRACE: Duration = Duration::from_secs(4);

/// The makes that build and boot, and are stopped when somebody interrupts schedlab.
pub fn children() -> Result<Children> {
    let children = Children::new(GRACE);
    children.catch_signals()?;
    Ok(children)
}

/// Builds and boots cells of one setting.
pub struct Booter<'a> {
    pub project: &'a Project,
    pub children: &'a Children,
    pub setting: &'a Setting,
    /// Seconds until a guest counts as hung, if it is not what make has by itself.
    pub timeout: Option<u64>,
}

impl Booter<'_> {
    pub fn build(&self, cell: &Cell) -> Result<(), Failure> {
        self.make("build", cell, None).map(drop)
    }

    /// What the guest printed in one boot of the cell's image.
    pub fn boot(&self, cell: &Cell, tick_phase: Option<TickPhase>) -> Result<Vec<String>, Failure> {
        let variable = tick_phase.map(|phase| format!("TICK_PHASE={phase}"));
        self.make("justrun", cell, variable)
    }

    /// The result lines of a boot that make was content with, and what they say: they are
    /// the cell's, of this setting and tick phase, and every phase passed.
    pub fn judge(
        &self,
        cell: &Cell,
        tick_phase: Option<TickPhase>,
        console: &[String],
    ) -> Result<(Vec<String>, Outcome), String> {
        let lines = result_lines(console);
        let outcome = parse(&lines.join("\n")).map_err(|e| format!("result line {e}"))?;
        belongs(&outcome, cell).map_err(|e| e.to_string())?;
        let made = self.setting.made(outcome.last(), tick_phase);
        made.map_err(|e| e.to_string())?;
        for phase in outcome.phases.iter().map(|phase| &phase.run) {
            if !phase.pass {
                return Err(format!("\"pass\":false in phase `{}`", phase.context.phase));
            }
        }
        Ok((lines, outcome))
    }

    /// What a make target printed, if it succeeded.
    fn make(
        &self,
        target: &str,
        cell: &Cell,
        variable: Option<String>,
    ) -> Result<Vec<String>, Failure> {
        let mut arguments = vec!["-s".to_owned(), target.to_owned()];
        arguments.extend(variables(cell, self.setting));
        arguments.extend(variable);
        arguments.extend(self.timeout.map(|seconds| format!("TIMEOUT={seconds}")));
        let mut console = Vec::new();
        let make = self.project.make(&arguments);
        let end = (self.children).run(make, None, |line| console.push(line.to_owned()));
        if self.children.stopped() {
            return Err(Failure::Stopped);
        }
        let status = end.map_err(|error| Failure::Bad {
            why: format!("make {target}: {error:#}"),
            console: Vec::new(),
        })?;
        if status.success() {
            return Ok(console);
        }
        // The project's scripts say what went wrong as their last own line.
        let said = console
            .iter()
            .rev()
            .find_map(|line| line.strip_prefix("run: "));
        let why = said.map_or_else(|| format!("make {target}: {status}"), str::to_owned);
        Err(Failure::Bad { why, console })
    }

    /// Builds all jobs and runs each by `run`, so many at the same time [default: one per
    /// core; one if time is real]. `follow` hears of everything, on the caller's thread;
    /// when it fails, all is given up.
    pub fn all<J: Job + Send, T: Send>(
        &self,
        jobs: Vec<J>,
        workers: Option<usize>,
        run: impl Fn(&J) -> Result<T, Failure> + Sync,
        mut follow: impl FnMut(Message<J, T>) -> Result<()>,
    ) -> Result<()> {
        let usual = || if self.setting.is_exact() { cores() } else { 1 };
        let (say, messages) = mpsc::channel();
        let (hand_over, built) = mpsc::channel();
        let (run, built) = (&run, &Mutex::new(built));
        thread::scope(|scope| {
            let builder = say.clone();
            scope.spawn(move || self.build_all(jobs, &builder, hand_over));
            for _ in 0..workers.unwrap_or_else(usual) {
                let say = say.clone();
                scope.spawn(move || self.run_built(run, built, &say));
            }
            drop(say);
            messages
                .into_iter()
                .try_for_each(&mut follow)
                .inspect_err(|_| self.children.stop())
        })
    }

    /// Builds one image after the other and hands them over.
    fn build_all<J: Job, T>(
        &self,
        jobs: Vec<J>,
        say: &Sender<Message<J, T>>,
        hand_over: Sender<J>,
    ) {
        let mut built = Vec::new();
        for job in jobs {
            if self.children.stopped() {
                return;
            }
            // Nobody listens any more only when everything is being given up.
            let _ = say.send(Message::Begins(job.cell().clone(), "build"));
            match self.build(job.cell()) {
                Err(failure) => drop(say.send(Message::Ends(job, Err(failure)))),
                Ok(()) if self.setting.is_exact() => drop(hand_over.send(job)),
                Ok(()) => built.push(job),
            }
        }
        for job in built {
            drop(hand_over.send(job));
        }
    }

    /// Runs what was built until nothing more comes.
    fn run_built<J: Job, T>(
        &self,
        run: impl Fn(&J) -> Result<T, Failure>,
        built: &Mutex<Receiver<J>>,
        say: &Sender<Message<J, T>>,
    ) {
        loop {
            // The lock is held while waiting: whoever has it gets the next one.
            let job = built.lock().expect("no thread panics with it").recv();
            let Ok(job) = job else { return };
            if self.children.stopped() {
                return;
            }
            let _ = say.send(Message::Begins(job.cell().clone(), "run"));
            let result = run(&job);
            let _ = say.send(Message::Ends(job, result));
        }
    }
}

/// A cell to be built and run, and what its caller wants to remember of it.
pub trait Job {
    fn cell(&self) -> &Cell;
}

impl Job for Cell {
    fn cell(&self) -> &Cell {
        self
    }
}

/// What the threads that build and run report.
pub enum Message<J, T> {
    /// A build or a run of this cell begins.
    Begins(Cell, &'static str),
    /// The job has ended, well or not.
    Ends(J, Result<T, Failure>),
}

/// How many guests run at the same time if they do not disturb each other.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}
