//! `schedlab plan`: the best order of a recorded program's tasks, as a profile that PBG follows.
//!
//! recordings -> the orders of [`sched_sim::orders`], and the policies without a plan -> a search
//! from the best order -> [`render`] and a profile

mod render;

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use axsched_ext::pbg::stored::{StoredOrder, StoredProfile};
use sched_sim::{
    aim::Aim,
    orders::{groups, order, orders},
    policies::{Policy, Sharing, policies},
    search::{Found, search},
};
use sched_tests_results::TickPhase;

use crate::{
    Verdict,
    cli::PlanArgs,
    output::{count, note, print},
    profile::save,
    setting::scaled,
    simulate::{Flavours, Play, Watch, on_all_cores},
};

/// The number of phases of the tick over which orders are compared in the end.
const PHASES: u16 = 8;
/// A later order of the table is taken if its figure is below this part of an earlier one's. A smaller
/// gain is noise, and the orders of PBG's own rule follow a changed program better.
const ENOUGH: f64 = 0.999;
/// Ends the line that reports Ctrl-C.
const BEST_SO_FAR: &str = "the best order so far is kept";
const NO_ORDER: &str = "no order yet";

/// All that is printed.
struct Planned<'a> {
    args: &'a PlanArgs,
    profile: &'a StoredProfile,
    /// The name of each order and its value, in the order of the table.
    orders: Vec<(&'static str, f64)>,
    /// The place of the best order in the list.
    best: usize,
    /// The best policy without a plan, and its value.
    without: (&'static str, f64),
    bound: f64,
    /// The orders that the search has played.
    plays: usize,
    out: PathBuf,
}

pub fn plan(args: &PlanArgs) -> Result<Verdict> {
    let flavours = Flavours::read(&args.source)?.with_pollers_marked();
    let recorded = &flavours.preemptive;
    let aim = args.aim;
    if aim == Aim::Deadlines
        && recorded
            .profile
            .tasks
            .iter()
            .all(|task| task.deadline.is_none())
    {
        bail!(
            "{}: --aim deadlines: expected a task with a deadline, found none; `schedlab profile edit` sets them",
            args.source.recording.display()
        );
    }
    let cpus = usize::from(args.cpus);
    let phases: Vec<TickPhase> = TickPhase::evenly(PHASES).collect();
    let by_rules = orders(&recorded.profile, cpus).context("the orders of the recording")?;
    let without: Vec<&Policy> = policies()
        .iter()
        .filter(|policy| !policy.is_planned())
        .collect();
    let rows = by_rules.len() + without.len();
    let watch = Watch::new(rows * phases.len() + args.plays)?;

    let pbg = Policy::named("pbg").expect("a policy of the list");
    let pbg = Play::new(pbg, cpus, &flavours, Sharing::Balanced)?;
    let others = without
        .iter()
        .map(|policy| Play::new(policy, cpus, &flavours, Sharing::Balanced));
    let others: Vec<Play> = others.collect::<Result<_>>()?;
    let value = |play: &Play, order: Option<&StoredOrder>, phase| value(aim, play, order, phase);
    let played = on_all_cores(rows * phases.len(), &watch, |i| {
        let (row, phase) = (i / phases.len(), phases[i % phases.len()]);
        match by_rules.get(row) {
            Some((_, order)) => value(&pbg, Some(order), phase),
            None => value(&others[row - by_rules.len()], None, phase),
        }
    });
    let Some(played) = played.into_iter().collect::<Option<Vec<_>>>() else {
        watch.finish(NO_ORDER);
        return Ok(Verdict::Interrupted);
    };
    let played: Vec<f64> = played.into_iter().collect::<Result<_>>()?;
    let means: Vec<f64> = played.chunks(phases.len()).map(mean).collect();
    let (of_rules, of_others) = means.split_at(by_rules.len());
    let best_rule = first_of_best(of_rules);

    // The search compares at the first phase.
    let start = Found {
        groups: groups(&by_rules[best_rule].1),
        value: played[best_rule * phases.len()],
    };
    let judge = Judge::new(&watch, args.seconds);
    let found = search(&start, args.plays, args.seed, |groups| {
        judge.play(|| value(&pbg, Some(&order(groups, cpus)), phases[0]))
    });
    let plays = judge.end()?;
    let mut table: Vec<(&str, f64)> = by_rules
        .iter()
        .zip(of_rules)
        .map(|((rule, _), value)| (rule.name(), *value))
        .collect();
    let mut searched = (by_rules[best_rule].1.clone(), of_rules[best_rule]);
    for found in found.iter().filter(|found| found.value < start.value) {
        let order = order(&found.groups, cpus);
        let at = phases.iter().map(|&phase| value(&pbg, Some(&order), phase));
        let mean = mean(&at.collect::<Result<Vec<f64>>>()?);
        if mean < searched.1 {
            searched = (order, mean);
        }
    }
    watch.finish(BEST_SO_FAR);
    table.push(("search", searched.1));
    let best = first_of_best(&table.iter().map(|row| row.1).collect::<Vec<f64>>());
    let taken = match by_rules.get(best) {
        Some((_, order)) => order.clone(),
        None => searched.0,
    };

    let best_without = first_least(of_others);
    let profile = StoredProfile {
        order: Some(taken),
        ..recorded.profile.clone()
    };
    let planned = Planned {
        args,
        profile: &profile,
        orders: table,
        best,
        without: (without[best_without].name(), of_others[best_without]),
        // A kernel without preemption does a little less work.
        bound: flavours
            .all()
            .map(|flavour| flavour.bound(aim, cpus))
            .fold(f64::INFINITY, f64::min),
        plays,
        out: args.out.clone().unwrap_or_else(|| file(&profile, args)),
    };
    save(&planned.out, &profile)?;
    print(render::text(&planned))?;
    match watch.stopped() {
        true => Ok(Verdict::Interrupted),
        false => Ok(Verdict::Good),
    }
}

/// Returns the value of a run under a policy, with this order if it follows a plan.
fn value(aim: Aim, play: &Play, order: Option<&StoredOrder>, phase: TickPhase) -> Result<f64> {
    let outcome = play.with_order_at(order, phase)?;
    let flavour = play.flavour;
    Ok(aim.value(&outcome, &flavour.workload, &flavour.deadlines_ns()))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the place of the first value that no later one is [`ENOUGH`] below.
fn first_of_best(values: &[f64]) -> usize {
    let least = values[first_least(values)];
    let is_best = |value: &f64| *value * ENOUGH <= least;
    values.iter().position(is_best).expect("there is a value")
}

/// Returns the place of the least value, the first of several.
fn first_least(values: &[f64]) -> usize {
    let values = values.iter().enumerate();
    let least = values.min_by(|one, other| one.1.total_cmp(other.1));
    least.expect("there is a value").0
}

/// Returns the file that the profile goes to if the user names none.
fn file(profile: &StoredProfile, args: &PlanArgs) -> PathBuf {
    let header = &profile.header;
    let (app, arch) = (header.program.name, header.architecture.name());
    let mut name = format!("{app}-{arch}{}", scaled(args.source.scale));
    if args.cpus > 1 {
        name += &format!("-smp{}", args.cpus);
    }
    Path::new("target/plans").join(name + ".pbg")
}

/// The judge of a search, which Ctrl-C, a time or an error ends.
struct Judge<'a> {
    watch: &'a Watch,
    seconds: Option<u64>,
    until: Option<Instant>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plays: usize,
    is_cut: bool,
    error: Option<anyhow::Error>,
}

impl<'a> Judge<'a> {
    fn new(watch: &'a Watch, seconds: Option<u64>) -> Self {
        let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        Self {
            watch,
            seconds,
            until,
            state: Mutex::default(),
        }
    }

    /// Plays an order, unless the search has ended.
    fn play(&self, play: impl FnOnce() -> Result<f64>) -> Option<f64> {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        if is_late || self.watch.stopped() {
            self.state().is_cut |= is_late;
            return None;
        }
        let value = play();
        self.watch.one_more();
        let mut state = self.state();
        state.plays += 1;
        match value {
            Ok(value) => Some(value),
            Err(error) => {
                state.error.get_or_insert(error);
                None
            }
        }
    }

    /// Returns the number of orders that were played.
    fn end(self) -> Result<usize> {
        let state = self.state.into_inner().unwrap_or_default();
        if let Some(error) = state.error {
            return Err(error);
        }
        if let (true, Some(seconds)) = (state.is_cut, self.seconds) {
            note(format_args!(
                "--seconds {seconds} ended the search after {}; another machine may find another order",
                count(state.plays, "play")
            ));
        }
        Ok(state.plays)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
