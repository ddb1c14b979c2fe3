//! Builds and boots cells through make, for `schedlab matrix` and the commands on costs.
//!
//! One thread builds one image after the other, as cargo locks its folder anyway. Other threads
//! boot the finished images. In real time all builds come first and one guest runs at a time, or
//! they would disturb each other. Cells that are run several times then alternate with those of
//! their app and architecture, so that a slow minute of the host affects all rows of a table alike.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    sync::{
        Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use sched_tests_results::TickPhase;

use crate::{
    project::{Cell, Project, short},
    record::{Outcome, parse, result_and_profile_lines, result_lines},
    setting::Setting,
    sources::{self, Made, SourceList, Tree},
    store::check_cell,
};
pub use process_groups::Children;

/// The reason for missing figures.
pub enum Failure {
    /// The user stopped it.
    Stopped,
    /// The cell failed: the reason in a line, and all that was printed.
    Bad { why: String, console: Vec<String> },
}

impl Failure {
    /// Adds the place before the reason.
    pub fn at(mut self, place: &str) -> Self {
        if let Self::Bad { why, .. } = &mut self {
            why.insert_str(0, place);
        }
        self
    }
}

/// Returns make's variables for a cell.
pub fn variables(cell: &Cell, setting: &Setting) -> Vec<String> {
    let mut variables = vec![
        format!("A={}", cell.app.folder),
        format!("ARCH={}", cell.arch),
        format!("FEATURES={}", cell.policy),
    ];
    variables.extend(setting.variables());
    variables
}

/// The time in which QEMU's runner may end. It allows QEMU one second.
const GRACE: Duration = Duration::from_secs(4);

/// Returns the set of makes that build and boot. An interrupt of this program stops them.
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
    /// The seconds until a guest counts as hung; `None` is make's default.
    pub timeout: Option<u64>,
    /// The sources of the images, by the names of their cells.
    made: Mutex<BTreeMap<String, Made>>,
    /// The compiler and each QEMU; empty before the first build.
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
        if !self.project.can_list_sources() {
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
        // The files are read again for each image, as one may be edited between two builds.
        let tree = Tree::of(self.project.root.clone(), tools.clone());
        drop(tools);
        let scheduler = short(&cell.policy);
        let check = || self.check_left_out(&tree, &list, &scheduler, &console);
        if check().is_err() {
            // Another make may have built the same program since, in the same place.
            self.make("lab-sources", cell, None)?;
            check().map_err(bad)?;
        }
        tree.check_unchanged(&list, begin).map_err(bad)?;
        let stamp = tree.made(list, &[&scheduler]);
        let mut made = self.made.lock().expect("no thread panics with it");
        made.insert(cell.to_string(), stamp);
        Ok(())
    }

    /// Checks the program that make names.
    fn check_left_out(
        &self,
        tree: &Tree,
        list: &SourceList,
        scheduler: &str,
        console: &[String],
    ) -> Result<()> {
        // Older commits do not name it.
        let Some(program) = console
            .iter()
            .find_map(|line| line.strip_prefix("program: "))
        else {
            return Ok(());
        };
        let place = self.project.root.join(program);
        let program = fs::read(&place).with_context(|| place.display().to_string())?;
        tree.check_left_out(list, scheduler, &program)
    }

    /// Returns what the image of a built cell was made from; `None` if the project does not tell.
    pub fn made(&self, cell: &Cell) -> Option<Made> {
        let made = self.made.lock().expect("no thread panics with it");
        made.get(&cell.to_string()).cloned()
    }

    /// Boots the cell's image once and returns what the guest printed.
    pub fn boot(&self, cell: &Cell, tick_phase: Option<TickPhase>) -> Result<Vec<String>, Failure> {
        let variable = tick_phase.map(|phase| format!("TICK_PHASE={phase}"));
        self.make("lab-boot", cell, variable)
    }

    /// Returns the result lines of a boot and their figures. In real time the lines on PBG's
    /// profile are among them, as they may differ between boots.
    ///
    /// # Errors
    /// The lines belong to another cell, setting or tick phase, or a phase did not pass.
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
        check_cell(&outcome, cell).map_err(|e| e.to_string())?;
        let checked = self.setting.check_figures(outcome.last(), tick_phase);
        checked.map_err(|e| e.to_string())?;
        for phase in outcome.phases.iter().map(|phase| &phase.run) {
            if !phase.pass {
                return Err(format!("\"pass\":false in phase `{}`", phase.context.phase));
            }
        }
        Ok((lines, outcome))
    }

    /// Runs a make target for a cell and returns what it printed.
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
        // The last line of the project's scripts says what failed.
        let said = console
            .iter()
            .rev()
            .find_map(|line| line.strip_prefix("run: "));
        let why = said.map_or_else(|| format!("make {target}: {status}"), str::to_owned);
        Err(Failure::Bad { why, console })
    }

    /// Builds all cells and calls `run` for each cell in each round, with the results of the rounds
    /// before. A cell that fails has no further round. By default one cell per core runs at a time,
    /// in real time one. The caller's thread calls `follow` with each message and the index of its
    /// cell; if `follow` fails, all cells are stopped.
    pub fn all<T: Send>(
        &self,
        cells: &[Cell],
        workers: Option<usize>,
        rounds: usize,
        run: impl Fn(&Cell, &[T]) -> Result<T, Failure> + Sync,
        mut follow: impl FnMut(usize, Message<T>) -> Result<()>,
    ) -> Result<()> {
        let usual = || if self.setting.is_exact() { cores() } else { 1 };
        let (say, messages) = mpsc::channel();
        let (hand_over, built) = mpsc::channel();
        let queue = Queue {
            cells,
            built,
            turns: VecDeque::new(),
        };
        let (run, queue) = (&run, &Mutex::new(queue));
        thread::scope(|scope| {
            let builder = say.clone();
            scope.spawn(move || self.build_all(cells, &builder, hand_over));
            for _ in 0..workers.unwrap_or_else(usual) {
                let say = say.clone();
                scope.spawn(move || self.run_built(cells, run, rounds, queue, &say));
            }
            drop(say);
            messages
                .into_iter()
                .try_for_each(|(number, message)| follow(number, message))
                .inspect_err(|_| self.children.stop())
        })
    }

    /// Builds one image after the other and sends each to the runners, in real time all together
    /// at the end.
    fn build_all<T>(
        &self,
        cells: &[Cell],
        say: &Sender<(usize, Message<T>)>,
        hand_over: Sender<Vec<usize>>,
    ) {
        let mut built = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            if self.children.stopped() {
                return;
            }
            // The receiver is gone only after `follow` failed.
            let _ = say.send((number, Message::Begins(Step::Build)));
            match self.build(cell) {
                Err(failure) => drop(say.send((number, Message::Ends(Err(failure))))),
                Ok(()) if self.setting.is_exact() => drop(hand_over.send(vec![number])),
                Ok(()) => built.push(number),
            }
        }
        let _ = hand_over.send(built);
    }

    /// Runs the built cells until the builder has ended and the queue is empty.
    fn run_built<T>(
        &self,
        cells: &[Cell],
        run: impl Fn(&Cell, &[T]) -> Result<T, Failure>,
        rounds: usize,
        queue: &Mutex<Queue<T>>,
        say: &Sender<(usize, Message<T>)>,
    ) {
        let locked = || queue.lock().expect("no thread panics with it");
        loop {
            let next = locked().next();
            let Some((number, mut good)) = next else {
                return;
            };
            if self.children.stopped() {
                return;
            }
            let round = good.len() + 1;
            let _ = say.send((number, Message::Begins(Step::Run(round))));
            let message = match run(&cells[number], &good) {
                Err(failure) => Message::Ends(Err(failure)),
                Ok(one) => {
                    good.push(one);
                    if round < rounds {
                        let _ = say.send((number, Message::Waits));
                        locked().again(number, good);
                        continue;
                    }
                    Message::Ends(Ok(good))
                }
            };
            let _ = say.send((number, message));
        }
    }
}

/// The indices of the built cells in the order in which they run, each with the results of its
/// rounds so far.
struct Queue<'a, T> {
    cells: &'a [Cell],
    built: Receiver<Vec<usize>>,
    turns: VecDeque<(usize, Vec<T>)>,
}

impl<T> Queue<'_, T> {
    /// Takes the next cell, or waits for the builder if the queue is empty. The caller holds the
    /// lock meanwhile, and [`Self::again`] waits for it. That wait is short: cells with several
    /// rounds are in real time, in which the builder has ended.
    fn next(&mut self) -> Option<(usize, Vec<T>)> {
        while self.turns.is_empty() {
            let built = self.built.recv().ok()?.into_iter();
            self.turns.extend(built.map(|number| (number, Vec::new())));
        }
        self.turns.pop_front()
    }

    /// Queues another round of a cell, behind the other cells of its app and architecture.
    fn again(&mut self, number: usize, good: Vec<T>) {
        let table = |number: usize| {
            let cell = &self.cells[number];
            (&cell.app.name, &cell.arch)
        };
        let mut turns = self.turns.iter();
        let behind = turns.rposition(|(other, _)| table(*other) == table(number));
        let place = behind.map_or(0, |last| last + 1);
        self.turns.insert(place, (number, good));
    }
}

/// A message of the threads that build and run, about a cell.
pub enum Message<T> {
    /// A build or a run begins.
    Begins(Step),
    /// A run has succeeded, and another comes later.
    Waits,
    /// The cell has ended, with the results of all rounds or the reason for a failure.
    Ends(Result<Vec<T>, Failure>),
}

/// A step of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Build,
    /// The round, counted from 1.
    Run(usize),
}

/// Returns the number of cores: that many guests run at a time if time is counted.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}
