//! `schedlab advise`: which policy for this program, in one screen.
//!
//! recordings and consoles -> [`evidence`] -> the recordings under every policy
//! ([`simulate`](crate::simulate)) -> [`rules`] -> [`render`]

mod advice;
mod errors;
mod evidence;
mod render;
mod rules;

use anyhow::{Result, bail};
use axsched_ext::pbg::Status;
use sched_sim::{
    aim::Aim,
    orders::{Rule, orders},
    policies::{Policy, Sharing, policies},
    whatif::extended,
    workload::Job,
};
use sched_tests_results::{TaskLine, TickPhase};

use crate::{
    Verdict,
    cli::AdviseArgs,
    output::print,
    record::{Outcome, Phase},
    simulate::{Flavour, Flavours, Play, Watch, feature, on_all_cores},
    spread::Spread,
};
use advice::{Advice, BetterOrder, Question};
use errors::Errors;
use evidence::{Boot, Differs, Work, console, differing, recorded};
use rules::{Out, Replay, Row, SPREAD_PERCENT, best_without_plan, choose, is_fragile, refused};

/// The number of runs at random of each plan and of the best policy without one.
const SEEDS: u64 = 24;
/// Ends the line that reports Ctrl-C.
const NOT_YET: &str = "no advice yet";

pub fn advise(args: &AdviseArgs) -> Result<Verdict> {
    let mut flavours = Flavours::read(&args.source)?;
    let header = flavours.preemptive.profile.header;
    let (program, arch) = (header.program.name.to_string(), header.architecture.name());
    let errors = Errors::read(&args.errors, arch)?;
    let consoles = args.console.iter();
    let boots = consoles.filter_map(|file| console(file).transpose());
    let boots: Vec<Boot> = boots.collect::<Result<_>>()?;
    for boot in &boots {
        if boot.said.app != program {
            bail!(
                "--console: expected one of {program}, found one of {}",
                boot.said.app
            );
        }
    }
    let recordings = flavours.all().map(|of| recorded(&of.profile));
    let replays = boots.iter().map(|boot| boot.tasks.clone());
    let differing = differing(&recordings.chain(replays).collect::<Vec<_>>());
    let is_as_let = |name: &str| {
        let is_it = |one: &Differs| one.work == Work::AsLet && one.task == name;
        differing.iter().any(is_it)
    };
    let jobs = &flavours.preemptive.workload.jobs;
    let own: Vec<String> = jobs
        .iter()
        .map(|job| job.name.clone())
        .filter(|name| !is_as_let(name))
        .collect();
    let question = match own.len() {
        all if all == jobs.len() => Question::Turnaround,
        0 => Question::Shares { tasks: jobs.len() },
        _ => Question::OwnWork { own },
    };
    let lengths = jobs.iter().map(|job| job.run_ns() / 1e6);
    let lengths_ms = [
        lengths.clone().fold(f64::INFINITY, f64::min),
        lengths.fold(0.0, f64::max),
    ];
    let cooperative = flavours.all().last();
    let stretch_ms = cooperative.map_or(0.0, stretch_ms);
    let is_extended = |job: &Job| is_as_let(&job.name);
    let cpus = usize::from(args.cpus);
    let candidates: Vec<&Policy> = policies().iter().collect();
    let phases: Vec<TickPhase> = TickPhase::evenly(args.phases).collect();
    let tried = 3 * SEEDS as usize;
    let watch = Watch::new(candidates.len() * phases.len() + tried)?;
    let mut cells;
    // Extended tasks must take longer than the others do under any policy.
    let mut times = 4.0;
    loop {
        if question != Question::Turnaround {
            extend(&mut flavours, is_extended, times);
        }
        let played = play(&flavours, &candidates, &phases, cpus, &watch)?;
        let Some(played) = played else {
            watch.finish(NOT_YET);
            return Ok(Verdict::Interrupted);
        };
        let is_over = |outcome: &Outcome| is_long_enough(&outcome.phases[0], &question);
        let enough = played.iter().flatten().all(|(outcome, _)| is_over(outcome));
        cells = played;
        if enough || times > 60.0 {
            break;
        }
        times *= 4.0;
    }
    let polls = differing.iter().any(|one| one.work == Work::Polls);
    let rows = candidates.iter().zip(&cells).map(|(policy, cell)| {
        let figures: Vec<f64> = cell
            .iter()
            .map(|(outcome, _)| figure(&outcome.phases[0], &question, cpus))
            .collect();
        let mean = |of: &dyn Fn(&Phase) -> f64| {
            let all = cell.iter().map(|(outcome, _)| of(&outcome.phases[0]));
            all.sum::<f64>() / cell.len() as f64
        };
        let in_model = cell
            .iter()
            .find_map(|(_, status)| status.filter(|status| status.behind || status.dropped));
        // QEMU's replays are all on one CPU.
        let mut replays = boots.iter().filter(|_| cpus == 1);
        let boot = replays.find(|boot| boot.scheduler == policy.name());
        let on_qemu = boot.map(|boot| Replay {
            times: boot.replayed / boot.measured,
            behind: boot.said.behind || boot.said.slower,
            dropped: boot.said.dropped,
        });
        let in_model = in_model.map(|status| Replay {
            times: 0.0,
            behind: status.behind,
            dropped: status.dropped,
        });
        Row {
            name: policy.name().to_owned(),
            feature: feature(policy),
            figure: match boot.filter(|_| polls) {
                Some(boot) => Spread::of(&[boot.replayed]),
                None => Spread::of(&figures),
            }
            .expect("a phase at least"),
            on_qemu: boot.map(|boot| boot.replayed),
            error_percent: errors.of(policy.name()),
            worst_slowdown: mean(&|phase| worst_slowdown(phase, &question)),
            jain: mean(&|phase| phase.run.jain),
            switches: mean(&|phase| phase.run.context_switches as f64),
            is_planned: policy.is_planned(),
            preempts: policy.is_preemptive(),
            is_out: match policy.is_planned() {
                true => refused(on_qemu, in_model, polls),
                false => None,
            },
        }
    });
    let mut rows: Vec<Row> = rows.collect();
    if question == Question::Turnaround && !polls && cpus == 1 {
        raise_errors(&mut rows, &boots, &flavours)?;
    }
    if question == Question::Turnaround {
        let fragile = fragile(&rows, &flavours, cpus, &watch)?;
        for (row, _) in rows.iter_mut().zip(fragile).filter(|(_, fragile)| *fragile) {
            row.is_out = Some(Out::Fragile);
        }
    }
    let has_cooperative = flavours.cooperative.is_some();
    let is_known = |one: &Differs| flavours.is_known_to_poll(&one.task);
    let has_unknown_polls = differing
        .iter()
        .any(|one| one.work == Work::Polls && !is_known(one));
    let order = match question == Question::Turnaround && !has_unknown_polls {
        true => Some(better_order(flavours, cpus)?),
        false => None,
    };
    watch.finish(NOT_YET);
    if watch.stopped() {
        return Ok(Verdict::Interrupted);
    }
    let advice = Advice {
        program,
        arch: header.architecture.name().to_owned(),
        cpus,
        phases: phases.len(),
        question,
        rows,
        differing,
        boots,
        has_cooperative,
        has_unknown_polls,
        order,
        stretch_ms,
        lengths_ms,
    };
    print(render::text(&advice))?;
    Ok(Verdict::Good)
}

/// A run in the model, and PBG's status of its plan.
type Run = (Outcome, Option<Status>);

/// Plays each policy at each phase. Returns `None` after Ctrl-C.
fn play(
    flavours: &Flavours,
    candidates: &[&Policy],
    phases: &[TickPhase],
    cpus: usize,
    watch: &Watch,
) -> Result<Option<Vec<Vec<Run>>>> {
    let plays = candidates
        .iter()
        .map(|policy| Play::new(policy, cpus, flavours, Sharing::Balanced));
    let plays: Vec<Play> = plays.collect::<Result<_>>()?;
    let runs = on_all_cores(plays.len() * phases.len(), watch, |i| {
        plays[i / phases.len()].with_plan_at(phases[i % phases.len()])
    });
    let Some(runs) = runs.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let runs: Vec<_> = runs.into_iter().collect::<Result<_>>()?;
    let cells = runs.chunks(phases.len()).map(<[_]>::to_vec);
    Ok(Some(cells.collect()))
}

/// Returns the gain of the orders that `make plan` begins with, at one phase of the tick.
fn better_order(flavours: Flavours, cpus: usize) -> Result<BetterOrder> {
    let policy = Policy::named("pbg").expect("a policy of the list");
    let first = TickPhase::evenly(1).next().expect("a phase");
    let mut flavours = flavours.with_pollers_marked();
    let marked = flavours.preemptive.profile.clone();
    flavours.forget_replays();
    let pbg = Play::new(policy, cpus, &flavours, Sharing::Balanced)?;
    let planned = pbg.with_order_at(None, first)?.average_ns();
    let mut best = (Rule::Waits.name(), 0.0);
    for (rule, order) in orders(&marked, cpus)? {
        let gain = 1.0 - pbg.with_order_at(Some(&order), first)?.average_ns() / planned;
        if gain > best.1 {
            best = (rule.name(), gain);
        }
    }
    let bound = flavours.preemptive.bound(Aim::Average, cpus);
    Ok(BetterOrder {
        best,
        planned_ms: planned / 1e6,
        most: 1.0 - bound / planned,
    })
}

/// Returns the longest run interval, in ms.
fn stretch_ms(flavour: &Flavour) -> f64 {
    let works = flavour.workload.jobs.iter().flat_map(|job| &job.steps);
    works.map(|work| work.run_ns).fold(0.0, f64::max) / 1e6
}

/// Extends the tasks that run until they are stopped to `times` the recorded time of all tasks
/// together.
fn extend(flavours: &mut Flavours, is_extended: impl Fn(&Job) -> bool, times: f64) {
    for flavour in flavours.all_mut() {
        let recorded = &flavour.profile.tasks;
        let runs = recorded
            .iter()
            .map(|task| task.figures.run.mean(task.runs) as f64);
        let ns = flavour.machine.clock.ns(runs.sum());
        flavour.workload = extended(&flavour.workload, &is_extended, times * ns);
    }
}

/// Returns true if the extended tasks ended after all others.
fn is_long_enough(phase: &Phase, question: &Question) -> bool {
    let Question::OwnWork { own } = question else {
        return true;
    };
    let ends = |is_own: bool| {
        let meant = move |task: &&TaskLine| own.contains(&task.task) == is_own;
        phase.tasks.iter().filter(meant).map(|task| task.finish_ns)
    };
    ends(true).max() <= ends(false).min()
}

/// Returns the figure that is compared; less is better.
fn figure(phase: &Phase, question: &Question, cpus: usize) -> f64 {
    let mean_ms = |tasks: Vec<&TaskLine>| {
        let sum: u64 = tasks.iter().map(|task| task.turnaround_ns).sum();
        sum as f64 / tasks.len() as f64 / 1e6
    };
    match question {
        Question::Turnaround => mean_ms(phase.tasks.iter().collect()),
        Question::OwnWork { own } => {
            let is_own = |task: &&TaskLine| own.contains(&task.task);
            mean_ms(phase.tasks.iter().filter(is_own).collect())
        }
        // All have the same work, so the first to end had the largest share.
        Question::Shares { .. } => {
            let first = phase.tasks.iter().min_by_key(|task| task.finish_ns);
            first.map_or(0.0, |task| {
                task.run_ns as f64 / task.finish_ns as f64 / cpus as f64 * 100.0
            })
        }
    }
}

/// Returns the largest ratio of a task's turnaround to its own time on a CPU.
fn worst_slowdown(phase: &Phase, question: &Question) -> f64 {
    let is_meant = |task: &&TaskLine| match question {
        Question::OwnWork { own } => own.contains(&task.task),
        _ => true,
    };
    let slowdown = |task: &TaskLine| task.turnaround_ns as f64 / task.run_ns.max(1) as f64;
    let all = phase.tasks.iter().filter(is_meant).map(slowdown);
    all.fold(0.0, f64::max)
}

/// Raises the errors of the rows to the distance of the model from what QEMU measured of this
/// program. For plans that is the distance of the replay. For other policies it is that of the
/// measured run, which has no plan. Both runs began at the first phase of the tick.
fn raise_errors(rows: &mut [Row], boots: &[Boot], flavours: &Flavours) -> Result<()> {
    let off = |model: f64, qemu: f64| (model / qemu - 1.0).abs() * 100.0;
    let [mut planned, mut others] = [0.0_f64; 2];
    for boot in boots {
        let Some(measured) = Play::measuring(&boot.scheduler, flavours)? else {
            continue;
        };
        let first = TickPhase::evenly(1).next().expect("a phase");
        let measured = measured.at(first)?.last().avg_turnaround_ns;
        others = others.max(off(measured as f64 / 1e6, boot.measured));
        let replay = rows.iter().find(|row| row.name == boot.scheduler);
        let replay = replay.map_or(0.0, |row| off(row.figure.first, boot.replayed));
        planned = planned.max(replay);
    }
    for row in rows {
        let here = if row.is_planned { planned } else { others };
        row.error_percent = row.error_percent.max(here);
    }
    Ok(())
}

/// Returns for each row true if its plan is fragile. Only plans that may be taken are tried.
fn fragile(rows: &[Row], flavours: &Flavours, cpus: usize, watch: &Watch) -> Result<Vec<bool>> {
    let mut fragile = vec![false; rows.len()];
    let (Some(choice), Some(other)) = (choose(rows), best_without_plan(rows)) else {
        return Ok(fragile);
    };
    if !rows[choice.taken].is_planned {
        return Ok(fragile);
    }
    let averages = |row: &Row| -> Result<Vec<f64>> {
        let policy = Policy::named(&row.name).expect("a policy of the list");
        let play = Play::new(policy, cpus, flavours, Sharing::Balanced)?;
        let spread = f64::from(SPREAD_PERCENT) / 100.0;
        let runs = on_all_cores(SEEDS as usize, watch, |seed| {
            play.by_seed(spread, seed as u64)
        });
        let runs = runs.into_iter().flatten();
        runs.map(|run| Ok(run?.average)).collect()
    };
    let without = averages(&rows[other])?;
    for (row, fragile) in rows.iter().zip(&mut fragile) {
        if row.is_planned && row.is_out.is_none() {
            let with = averages(row)?;
            *fragile = !watch.stopped() && is_fragile(&with, &without);
        }
    }
    Ok(fragile)
}
