//! `schedlab matrix`: runs what has to be run ([`crate::boot`]), and keeps what came out.

mod fingerprint;
mod progress;
mod run;
mod shard;

use anyhow::Result;

use crate::{
    Verdict,
    boot::{self, Booter, Failure, Message, Step, variables},
    cli::{MatrixArgs, TreeArgs},
    output::{count, print_line},
    project::{Cell, Project},
    setting::Setting,
    store::{Origin, Store},
};
use fingerprint::Fingerprints;
use progress::Progress;
use run::Good;
use shard::Shard;

/// A cell that has to be run.
struct Job {
    cell: Cell,
    origin: Origin,
}

impl boot::Job for Job {
    fn cell(&self) -> &Cell {
        &self.cell
    }
}

pub fn matrix(tree: &TreeArgs, args: &MatrixArgs) -> Result<Verdict> {
    let shard: Option<Shard> = args.shard.as_deref().map(str::parse).transpose()?;
    let project = Project::find(tree)?;
    let setting = Setting::new(&args.boot.setting);
    setting.check()?;
    let tick_phases = setting.tick_phases(args.phases)?;
    let results = args
        .results
        .clone()
        .unwrap_or_else(|| project.root.join("target").join(setting.folder()));
    let setting = setting.for_folder(&results);
    let lists = project.lists()?;
    let mut cells: Vec<Cell> = lists
        .select(&args.boot.select, &args.app)?
        .cells()
        .collect();
    let part = shard.map(|shard| {
        let whole = cells.len();
        cells.retain(|cell| shard.has(cell));
        format!("shard {shard}: {} of {}", cells.len(), count(whole, "cell"))
    });
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
            inputs: Some(fingerprints.inputs(&cell.app)),
            made: None, // it is not built yet
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
        if let Some(part) = part {
            print_line(part)?;
        }
        print_line(format_args!(
            "{} to run, {kept} up to date",
            count(jobs.len(), "cell")
        ))?;
        return Ok(Verdict::Good);
    }

    if part.is_some() {
        // It may have no cell, and its folder is named for `compare` all the same.
        store.create()?;
    }
    let children = boot::children()?;
    let booter = Booter::new(&project, &children, &setting, args.boot.timeout);
    let mut progress = Progress::new(jobs.len(), kept);
    let repeat = args.repeat.get();
    // In counted time the boots of a cell must agree, in real time each counts.
    let rounds = if setting.is_exact() { 1 } else { repeat };
    booter.all(
        jobs,
        args.boot.jobs.map(Into::into),
        rounds,
        |job: &Job, before| match setting.is_exact() {
            true => run::counted(&booter, &job.cell, &job.origin.tick_phases, repeat),
            false => run::real(&booter, &job.cell, before, rounds),
        },
        |message| follow(message, rounds, &booter, &store, &mut progress),
    )?;
    progress.finish(&store, part.as_deref(), children.stopped())
}

/// Keeps and shows what is said of the cells.
fn follow(
    message: Message<Job, Good>,
    rounds: usize,
    booter: &Booter,
    store: &Store,
    progress: &mut Progress,
) -> Result<()> {
    match message {
        Message::Begins(cell, Step::Build) => progress.begins(&cell, "build"),
        Message::Begins(cell, Step::Run(_)) if rounds == 1 => progress.begins(&cell, "run"),
        Message::Begins(cell, Step::Run(round)) => {
            progress.begins(&cell, &format!("boot {round} of {rounds} of"));
        }
        Message::Waits(cell) => progress.stopped(&cell),
        Message::Ends(job, Ok(good)) => {
            let good = Good::joined(good);
            let origin = Origin {
                made: booter.made(&job.cell),
                ..job.origin
            };
            store.write(&job.cell, &good.lines, &origin)?;
            progress.good(&job.cell, &good.outcomes)?;
        }
        Message::Ends(job, Err(Failure::Stopped)) => progress.stopped(&job.cell),
        Message::Ends(job, Err(Failure::Bad { why, console })) => {
            store.write_failed(&job.cell, &console)?;
            progress.bad(&job.cell, &why, &console, &store.failed_log(&job.cell))?;
        }
    }
    Ok(())
}
