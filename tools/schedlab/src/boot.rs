//! Building and booting cells through make: what `schedlab matrix` and `schedlab cost`
//! have in common.
//!
//! One thread builds, one image after the other, as cargo locks its folder
//! anyway; others boot what is finished. Where time is the host's, all builds
//! come first and guests run alone, or they would measure each other. Cells that are run
//! several times then take turns, each with those of its app and architecture, so that a slow
//! minute of the host meets all rows of a table alike.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use sched_tests_results::TickPhase;

use crate::{
    project::{Cell, Project},
    record::{Outcome, parse, result_and_profile_lines, result_lines},
    setting::Setting,
    sources::{self, Made, SourceList, Tree},
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
    /// The sources of the images, by the names of their cells.
    made: Mutex<BTreeMap<String, Made>>,
    /// The compiler and each QEMU; empty until the first image was built.
    tools: Mutex<Vec<String>>,
}

impl<'a> Booter<'a> {
    pub fn new(
        project: &'a Project,
        children: &'a Children,
        setting: &'a Setting,
        timeout: Option<u64>,
    ) -> Self {
        Self {
            project,
            children,
            setting,
            timeout,
            made: Mutex::default(),
            tools: Mutex::default(),
        }
    }

    pub fn build(&self, cell: &Cell) -> Result<(), Failure> {
        if !self.project.tells_sources() {
            return self.make("build", cell, None).map(drop);
        }
        let begin = SystemTime::now();
        let console = self.make("lab-sources", cell, None)?;
        let bad = |error: anyhow::Error| Failure::Bad {
            why: format!("make lab-sources: {error:#}"),
            console: console.clone(),
        };
        let list = SourceList::of_make(&console).map_err(bad)?;
        let mut tools = self.tools.lock().expect("no thread panics with it");
        if tools.is_empty() {
            *tools = sources::tools(self.project).map_err(bad)?;
        }
        // Read anew for each image: a file may be edited between two.
        let tree = Tree::of(self.project.root.clone(), tools.clone());
        drop(tools);
        let stamp = tree.made_since(list, begin).map_err(bad)?;
        let mut made = self.made.lock().expect("no thread panics with it");
        made.insert(cell.to_string(), stamp);
        Ok(())
    }

    /// Returns what the image of a built cell was made from; `None` if the project does not tell.
    pub fn made(&self, cell: &Cell) -> Option<Made> {
        let made = self.made.lock().expect("no thread panics with it");
        made.get(&cell.to_string()).cloned()
    }

    /// What the guest printed in one boot of the cell's image.
    pub fn boot(&self, cell: &Cell, tick_phase: Option<TickPhase>) -> Result<Vec<String>, Failure> {
        let variable = tick_phase.map(|phase| format!("TICK_PHASE={phase}"));
        self.make("lab-boot", cell, variable)
    }

    /// The result lines of a boot that make was content with, and what they say: they are
    /// the cell's, of this setting and tick phase, and every phase passed. In real time what
    /// became of PBG's profile is among them, as it may be another in each boot.
    pub fn judge(
        &self,
        cell: &Cell,
        tick_phase: Option<TickPhase>,
        console: &[String],
    ) -> Result<(Vec<String>, Outcome), String> {
        let lines = match self.setting.is_exact() {
            true => result_lines(console),
            false => result_and_profile_lines(console),
        };
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

    /// Builds all jobs and runs each by `run` in so many rounds, which is given what came out of
    /// those before. So many run at the same time [default: one per core; one if time is
    /// real]. A job whose run fails has no further round. `follow` hears of everything, on the
    /// caller's thread; when it fails, all is given up.
    pub fn all<J: Job + Send, T: Send>(
        &self,
        jobs: Vec<J>,
        workers: Option<usize>,
        rounds: usize,
        run: impl Fn(&J, &[T]) -> Result<T, Failure> + Sync,
        mut follow: impl FnMut(Message<J, T>) -> Result<()>,
    ) -> Result<()> {
        let usual = || if self.setting.is_exact() { cores() } else { 1 };
        let (say, messages) = mpsc::channel();
        let (hand_over, built) = mpsc::channel();
        let (run, queue) = (&run, &Mutex::new(Queue::new(built)));
        thread::scope(|scope| {
            let builder = say.clone();
            scope.spawn(move || self.build_all(jobs, &builder, hand_over));
            for _ in 0..workers.unwrap_or_else(usual) {
                let say = say.clone();
                scope.spawn(move || self.run_built(run, rounds, queue, &say));
            }
            drop(say);
            messages
                .into_iter()
                .try_for_each(&mut follow)
                .inspect_err(|_| self.children.stop())
        })
    }

    /// Builds one image after the other and hands them over, all together if time is real.
    fn build_all<J: Job, T>(
        &self,
        jobs: Vec<J>,
        say: &Sender<Message<J, T>>,
        hand_over: Sender<Vec<J>>,
    ) {
        let mut built = Vec::new();
        for job in jobs {
            if self.children.stopped() {
                return;
            }
            // Nobody listens any more only when everything is being given up.
            let _ = say.send(Message::Begins(job.cell().clone(), Step::Build));
            match self.build(job.cell()) {
                Err(failure) => drop(say.send(Message::Ends(job, Err(failure)))),
                Ok(()) if self.setting.is_exact() => drop(hand_over.send(vec![job])),
                Ok(()) => built.push(job),
            }
        }
        let _ = hand_over.send(built);
    }

    /// Runs what was built until nothing more comes.
    fn run_built<J: Job, T>(
        &self,
        run: impl Fn(&J, &[T]) -> Result<T, Failure>,
        rounds: usize,
        queue: &Mutex<Queue<J, T>>,
        say: &Sender<Message<J, T>>,
    ) {
        let locked = || queue.lock().expect("no thread panics with it");
        loop {
            let next = locked().next();
            let Some(Turn { job, mut good }) = next else {
                return;
            };
            if self.children.stopped() {
                return;
            }
            let round = good.len() + 1;
            let _ = say.send(Message::Begins(job.cell().clone(), Step::Run(round)));
            match run(&job, &good) {
                Err(failure) => drop(say.send(Message::Ends(job, Err(failure)))),
                Ok(one) => {
                    good.push(one);
                    if round == rounds {
                        let _ = say.send(Message::Ends(job, Ok(good)));
                    } else {
                        let _ = say.send(Message::Waits(job.cell().clone()));
                        locked().again(Turn { job, good });
                    }
                }
            }
        }
    }
}

/// A job that was built, and what has come out of its rounds so far.
struct Turn<J, T> {
    job: J,
    good: Vec<T>,
}

/// What is to be run, the next one first.
struct Queue<J, T> {
    built: Receiver<Vec<J>>,
    turns: VecDeque<Turn<J, T>>,
}

impl<J: Job, T> Queue<J, T> {
    fn new(built: Receiver<Vec<J>>) -> Self {
        Self {
            built,
            turns: VecDeque::new(),
        }
    }

    /// The next one; waits for the builder if nothing else is left. Whoever waits holds the
    /// lock, and a job that another one brings back then waits as well: the builder is never
    /// far, as in real time it has handed over all at once.
    fn next(&mut self) -> Option<Turn<J, T>> {
        while self.turns.is_empty() {
            let built = self.built.recv().ok()?.into_iter();
            self.turns.extend(built.map(|job| Turn {
                job,
                good: Vec::new(),
            }));
        }
        self.turns.pop_front()
    }

    /// Another round of it, behind all of its app and architecture and before the others.
    fn again(&mut self, turn: Turn<J, T>) {
        let cell = turn.job.cell();
        let is_with = |other: &Turn<J, T>| {
            let other = other.job.cell();
            (&other.app.name, &other.arch) == (&cell.app.name, &cell.arch)
        };
        let behind = self.turns.iter().rposition(is_with).map_or(0, |i| i + 1);
        self.turns.insert(behind, turn);
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
    Begins(Cell, Step),
    /// A run of it has ended well, and another comes later.
    Waits(Cell),
    /// The job has ended: what came out of each round, or why one failed.
    Ends(J, Result<Vec<T>, Failure>),
}

/// What is being done with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Build,
    /// Which round, counted from 1.
    Run(usize),
}

/// How many guests run at the same time if they do not disturb each other.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}
