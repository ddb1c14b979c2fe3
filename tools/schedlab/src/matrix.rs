//! `schedlab matrix`: runs what has to be run.
//!
//! One thread builds, one image after the other, as cargo locks its folder
//! anyway; others boot what is finished. Where time is the host's, all builds
//! come first and guests run alone, or they would measure each other.

mod children;
mod fingerprint;
mod progress;
mod run;

use std::{
    sync::{
        Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use anyhow::Result;

use crate::{
    Verdict,
    cli::{MatrixArgs, TreeArgs},
    output::{count, print_line},
    project::{Cell, Project},
    record::Outcome,
    setting::Setting,
    store::{Origin, Store},
};
use children::Children;
use fingerprint::Fingerprints;
use progress::Progress;
use run::{Failure, Runner};

/// A cell that has to be run.
struct Job {
    cell: Cell,
    origin: Origin,
}

/// What the threads say.
enum Message {
    /// A build or a run of this cell begins.
    Begins(Cell, &'static str),
    /// The cell is done.
    Ends(Job, Result<Good, Failure>),
}

/// What came out of a cell: one of each for every boot.
struct Good {
    lines: Vec<Vec<String>>,
    outcomes: Vec<Outcome>,
}

pub fn matrix(tree: &TreeArgs, args: &MatrixArgs) -> Result<Verdict> {
    let project = Project::find(tree)?;
    let setting = Setting::new(&args.setting);
    setting.check()?;
    let tick_phases = setting.tick_phases(args.phases)?;
    let results = args
        .results
        .clone()
        .unwrap_or_else(|| project.root.join("target").join(setting.folder()));
    let setting = setting.for_folder(&results);
    let lists = project.lists()?;
    let cells: Vec<Cell> = lists.select(&args.select)?.cells().collect();
    let store = Store::new(results);
    let fingerprints = Fingerprints::new(&project, &lists)?;

    let total = cells.len();
    let mut jobs = Vec::new();
    for cell in cells {
        let mut variables = variables(&cell, &setting);
        let sources = fingerprints.sources(&cell.app);
        let fingerprint = fingerprint::of(&sources, &variables);
        variables.insert(0, "make run".into());
        let origin = Origin {
            fingerprint,
            sources,
            command: variables.join(" "),
            runs: args.repeat.get(),
            tick_phases: tick_phases.clone(),
        };
        if args.force || !store.is_fresh(&cell, &origin) {
            jobs.push(Job { cell, origin });
        }
    }
    let kept = total - jobs.len();
    if args.dry_run {
        // To be typed as it stands: the shell takes the rest for a comment.
        let words: Vec<_> = tick_phases.iter().map(ToString::to_string).collect();
        let at = match words.len() {
            0 | 1 => String::new(),
            _ => format!(" # and with TICK_PHASE= {}", words[1..].join(" ")),
        };
        for job in &jobs {
            print_line(format_args!("{}{at}", job.origin.command))?;
        }
        print_line(format_args!(
            "{} to run, {kept} up to date",
            count(jobs.len(), "cell")
        ))?;
        return Ok(Verdict::Good);
    }

    let children = Children::new()?;
    let runner = Runner {
        project: &project,
        children: &children,
        setting: &setting,
        repeat: args.repeat.get(),
        timeout: args.timeout,
    };
    let workers = args
        .jobs
        .map_or_else(|| if setting.is_exact() { cores() } else { 1 }, Into::into);
    let mut progress = Progress::new(jobs.len(), kept);
    let (say, messages) = mpsc::channel();
    let (hand_over, built) = mpsc::channel();
    let (runner, built) = (&runner, &Mutex::new(built));
    thread::scope(|scope| -> Result<()> {
        let builder = say.clone();
        scope.spawn(move || build(runner, jobs, &builder, hand_over));
        for _ in 0..workers {
            let say = say.clone();
            scope.spawn(move || boot(runner, built, &say));
        }
        drop(say);
        follow(&messages, &store, &mut progress).inspect_err(|_| children.stop())
    })?;
    progress.finish(&store, children.stopped())
}

/// Builds one image after the other and hands them over.
fn build(runner: &Runner, jobs: Vec<Job>, say: &Sender<Message>, hand_over: Sender<Job>) {
    let mut built = Vec::new();
    for job in jobs {
        if runner.children.stopped() {
            return;
        }
        // Nobody listens any more only when everything is being given up.
        let _ = say.send(Message::Begins(job.cell.clone(), "build"));
        match runner.build(&job.cell) {
            Err(failure) => drop(say.send(Message::Ends(job, Err(failure)))),
            Ok(()) if runner.setting.is_exact() => drop(hand_over.send(job)),
            Ok(()) => built.push(job),
        }
    }
    for job in built {
        drop(hand_over.send(job));
    }
}

/// Boots what was built until nothing more comes.
fn boot(runner: &Runner, built: &Mutex<Receiver<Job>>, say: &Sender<Message>) {
    loop {
        // The lock is held while waiting: whoever has it gets the next one.
        let job = built.lock().expect("no thread panics with it").recv();
        let Ok(job) = job else { return };
        if runner.children.stopped() {
            return;
        }
        let _ = say.send(Message::Begins(job.cell.clone(), "run"));
        let result = runner.run(&job.cell, &job.origin.tick_phases);
        let _ = say.send(Message::Ends(job, result));
    }
}

/// Keeps and shows what the threads say, until they are all gone.
fn follow(messages: &Receiver<Message>, store: &Store, progress: &mut Progress) -> Result<()> {
    for message in messages {
        match message {
            Message::Begins(cell, what) => progress.begins(&cell, what),
            Message::Ends(job, Ok(good)) => {
                store.write(&job.cell, &good.lines, &job.origin)?;
                progress.good(&job.cell, &good.outcomes)?;
            }
            Message::Ends(job, Err(Failure::Stopped)) => progress.stopped(&job.cell),
            Message::Ends(job, Err(Failure::Bad { why, console })) => {
                store.write_failed(&job.cell, &console)?;
                progress.bad(&job.cell, &why, &console, &store.failed_log(&job.cell))?;
            }
        }
    }
    Ok(())
}

/// What make is told about a cell.
fn variables(cell: &Cell, setting: &Setting) -> Vec<String> {
    let mut variables = vec![
        format!("A={}", cell.app.folder),
        format!("ARCH={}", cell.arch),
        format!("FEATURES={}", cell.policy),
    ];
    variables.extend(setting.variables());
    variables
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}
