//! `schedlab matrix`: runs the cells that are not up to date ([`crate::boot`]) and stores their
//! results.

mod fingerprint;
mod progress;
mod run;
mod shard;

use anyhow::{Result, bail};

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

pub fn matrix(tree: &TreeArgs, args: &MatrixArgs) -> Result<Verdict> {
    let shard: Option<Shard> = args.shard.as_deref().map(str::parse).transpose()?;
    let project = Project::find(tree)?;
    let setting = Setting::new(&args.boot.setting).with_yields(args.yields);
    setting.check()?;
    let tick_phases = setting.tick_phases(args.phases)?;
    let results = args
        .results
        .clone()
        .unwrap_or_else(|| project.root.join("target").join(setting.folder()));
    let lists = project.lists()?;
    let mut cells: Vec<Cell> = lists
        .select(&args.boot.select, &args.app)?
        .cells()
        .collect();
    if let (Some(yields), Some(cell)) =
        (args.yields, cells.iter().find(|it| it.app.name != "yield"))
    {
        bail!(
            "--yields {yields}: only the app yield has them, found {}; allowed is --app yield",
            cell.app.name
        );
    }
    let part = shard.map(|shard| {
        let whole = cells.len();
        cells.retain(|cell| shard.has(cell));
        format!("shard {shard}: {} of {}", cells.len(), count(whole, "cell"))
    });
    let store = Store::new(results);
    let fingerprints = Fingerprints::new(&project, &lists)?;

    let total = cells.len();
    let (mut jobs, mut origins) = (Vec::new(), Vec::new());
    for cell in cells {
        let mut variables = variables(&cell, &setting);
        let fingerprint = fingerprints.cell(&cell.app, &variables);
        variables.insert(0, "make run".into());
        let origin = Origin {
            fingerprint,
            inputs: fingerprints.inputs(&cell.app),
            made: None, // known after the build
            command: variables.join(" "),
            runs: args.repeat.get(),
            tick_phases: tick_phases.clone(),
        };
        if args.force || !store.is_fresh(&cell, &origin) {
            jobs.push(cell);
            origins.push(origin);
        }
    }
    let kept = total - jobs.len();
    if args.dry_run {
        // The line can be typed as it is: the shell takes the rest for a comment.
        let words: Vec<_> = tick_phases.iter().map(ToString::to_string).collect();
        let at = match words.len() {
            0 | 1 => String::new(),
            _ => format!(" # and with TICK_PHASE= {}", words[1..].join(" ")),
        };
        for origin in &origins {
            print_line(format_args!("{}{at}", origin.command))?;
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
        // A shard may have no cell, and `compare` reads its folder all the same.
        store.create()?;
    }
    let children = boot::children()?;
    let booter = Booter::new(&project, &children, &setting, args.boot.timeout);
    let mut progress = Progress::new(jobs.len(), kept);
    let repeat = args.repeat.get();
    // In counted time the boots of a cell must agree; in real time each is a figure of its own.
    let rounds = if setting.is_exact() { 1 } else { repeat };
    booter.all(
        &jobs,
        args.boot.jobs.map(Into::into),
        rounds,
        |cell, before| match setting.is_exact() {
            true => run::counted(&booter, cell, &tick_phases, repeat),
            false => run::real(&booter, cell, before, rounds),
        },
        |number, message| {
            let cell = &jobs[number];
            match message {
                Message::Begins(Step::Build) => progress.begin(cell, "build"),
                Message::Begins(Step::Run(_)) if rounds == 1 => progress.begin(cell, "run"),
                Message::Begins(Step::Run(round)) => {
                    progress.begin(cell, &format!("boot {round} of {rounds} of"));
                }
                Message::Waits | Message::Ends(Err(Failure::Stopped)) => progress.stopped(cell),
                Message::Ends(Ok(good)) => {
                    let good = Good::joined(good);
                    let origin = &mut origins[number];
                    origin.made = booter.made(cell);
                    store.write(cell, &good.lines, origin)?;
                    progress.good(cell, &good.outcomes)?;
                }
                Message::Ends(Err(Failure::Bad { why, console })) => {
                    store.write_failed(cell, &console)?;
                    progress.bad(cell, &why, &console, &store.failed_log(cell))?;
                }
            }
            Ok(())
        },
    )?;
    progress.finish(&store, part.as_deref(), children.stopped())
}
