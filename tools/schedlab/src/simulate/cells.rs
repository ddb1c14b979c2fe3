//! A cell: a policy on a number of CPUs, whose runs become result lines.

use std::num::NonZeroUsize;

use anyhow::Result;
use axsched_ext::pbg::{
    Status,
    stored::{StoredOrder, StoredProfile},
};
use sched_sim::{
    costs::YieldCost,
    play::{Machine, Outcome as Played, Played as Task, play, play_traced},
    policies::{Policy, Sharing},
    trace::Traced,
    vary::{phase_ns, varied},
    workload::Workload,
};
use sched_tests_results::{Context, RunLine, TaskLine, TickPhase};

use super::flavour::{Flavour, Flavours, TICK_NS};
use crate::{
    compare::Results,
    project::Cell,
    record::{Outcome, Phase},
};

/// The value of `timing` in the lines of a simulation.
pub const MODEL: &str = "model";

/// Returns the feature of a policy, as `sched_rr` or `stock_rr`.
pub fn feature(policy: &Policy) -> String {
    let name = policy.name().replace('-', "_");
    match name.starts_with("stock_") {
        true => name,
        false => format!("sched_{name}"),
    }
}

/// A recording under a policy, ready to be played.
pub struct Play<'a> {
    pub policy: &'a Policy,
    pub cpus: usize,
    pub flavour: &'a Flavour,
    sharing: Sharing,
    cost: YieldCost,
    context: Context,
    scale: u64,
}

/// The figures of a run with a seed.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// The bound of the changed work, in ms, as are the next three.
    pub bound: f64,
    pub average: f64,
    pub slowest: f64,
    pub makespan: f64,
    pub switches: f64,
    pub jain: f64,
}

impl<'a> Play<'a> {
    pub fn new(
        policy: &'a Policy,
        cpus: usize,
        flavours: &'a Flavours,
        sharing: Sharing,
    ) -> Result<Self> {
        let flavour = flavours.of(policy);
        let header = &flavour.profile.header;
        let arch = header.architecture.name();
        let name = policy.name();
        let (row, phase) = match (policy.is_planned_on(cpus, sharing), policy.is_planned()) {
            (true, _) => (format!("{name} replay"), "replay"),
            (false, true) => (format!("{name} idle"), "run"),
            (false, false) => (name.to_owned(), "run"),
        };
        Ok(Self {
            policy,
            cpus,
            flavour,
            sharing,
            cost: flavours.costs.of_yield(arch, &row)?,
            context: Context {
                app: header.program.name.to_string(),
                arch: arch.to_owned(),
                smp: cpus as u32,
                sched: policy.name().to_owned(),
                phase: phase.to_owned(),
            },
            scale: flavours.scale,
        })
    }

    /// Returns the way in which several CPUs share the work under this policy.
    pub const fn shared(&self) -> Sharing {
        match self.cpus > 1 && self.policy.can_share(self.sharing) {
            true => self.sharing,
            false => Sharing::None,
        }
    }

    /// Returns true if a preempted task has to stay on its CPU although others might take it.
    pub const fn preempted_stay(&self) -> bool {
        matches!(self.shared(), Sharing::Balanced) && self.flavour.machine.preempted_stay
    }

    /// Returns the run that was recorded: PBG while it measures as `scheduler`, which is `pbg` or
    /// `pbg-coop`, played with its base policy. `None` if there is no such recording.
    pub fn measuring(scheduler: &str, flavours: &'a Flavours) -> Result<Option<Self>> {
        let Some(flavour) = flavours.recorded_as(scheduler) else {
            return Ok(None);
        };
        let arch = flavour.profile.header.architecture.name();
        let cost = flavours
            .costs
            .of_yield(arch, &format!("{scheduler} measure"))?;
        let run = Self::new(flavour.base, 1, flavours, Sharing::None)?;
        Ok(Some(Self {
            cost,
            flavour,
            ..run
        }))
    }

    /// Plays it at a phase of the tick.
    pub fn at(&self, tick_phase: TickPhase) -> Result<Outcome> {
        Ok(self.with_plan_at(tick_phase)?.0)
    }

    /// Plays it at a phase of the tick. Also returns PBG's status of the plan that it followed.
    pub fn with_plan_at(&self, tick_phase: TickPhase) -> Result<(Outcome, Option<Status>)> {
        let played = self.played(&self.flavour.workload, start_ns(tick_phase))?;
        let phases = vec![self.phase(&played, tick_phase)];
        let outcome = Outcome {
            phases,
            profiles: Vec::new(),
        };
        Ok((outcome, played.plan))
    }

    /// Plays it at a phase of the tick. Also returns its first `most` switches and wakes.
    pub fn traced(&self, tick_phase: TickPhase, most: NonZeroUsize) -> Result<(Phase, Traced)> {
        let Flavour {
            workload, profile, ..
        } = self.flavour;
        let machine = self.machine(start_ns(tick_phase));
        let (played, traced) =
            play_traced(workload, self.policy, profile, &self.cost, &machine, most)?;
        Ok((self.phase(&played, tick_phase), traced))
    }

    /// Plays it with each task's time and the start changed at random, the times by up to
    /// `spread`.
    pub fn by_seed(&self, spread: f64, seed: u64) -> Result<Seeded> {
        let workload = varied(&self.flavour.workload, spread, seed);
        let played = self.played(&workload, phase_ns(TICK_NS, seed))?;
        let tasks = || played.tasks.iter();
        let most = |of: fn(&Task) -> u64| tasks().map(of).max().unwrap_or(0) as f64 / 1e6;
        Ok(Seeded {
            bound: workload.bound(self.cpus).average_ns / 1e6,
            average: played.average_ns() / 1e6,
            slowest: most(|task| task.finish_ns - task.submit_ns),
            makespan: most(|task| task.finish_ns),
            switches: played.switches as f64,
            jain: jain(tasks().map(|task| task.finish_ns as f64)),
        })
    }

    /// Plays it at a phase of the tick, and returns what the model says. A plan takes the tasks in
    /// `order`, if there is one.
    pub fn with_order_at(
        &self,
        order: Option<&StoredOrder>,
        tick_phase: TickPhase,
    ) -> Result<Played> {
        let plan = StoredProfile {
            order: order.cloned(),
            ..self.flavour.profile.clone()
        };
        let (workload, machine) = (&self.flavour.workload, self.machine(start_ns(tick_phase)));
        Ok(play(workload, self.policy, &plan, &self.cost, &machine)?)
    }

    /// Returns its name in tables: that of the policy, and a mark if it is PBG without a plan.
    pub fn name(&self) -> String {
        let name = self.policy.name();
        match self.policy.is_planned() && !self.policy.is_planned_on(self.cpus, self.sharing) {
            true => format!("{name} (no plan)"),
            false => name.to_owned(),
        }
    }

    /// Returns its outcomes as results of its cell.
    pub fn results(&self, outcomes: Vec<Outcome>) -> Results {
        Results {
            cell: Cell::new(&self.context.arch, &self.context.app, &feature(self.policy)),
            outcomes,
            sources: None,
        }
    }

    fn played(&self, workload: &Workload, phase_ns: u64) -> Result<Played> {
        let (plan, machine) = (&self.flavour.profile, self.machine(phase_ns));
        Ok(play(workload, self.policy, plan, &self.cost, &machine)?)
    }

    fn machine(&self, phase_ns: u64) -> Machine {
        Machine {
            cpus: self.cpus,
            phase_ns,
            sharing: self.sharing,
            ..self.flavour.machine.clone()
        }
    }

    fn phase(&self, played: &Played, tick_phase: TickPhase) -> Phase {
        let (context, workload) = (&self.context, &self.flavour.workload);
        let tasks = played.tasks.iter().map(|task| TaskLine {
            context: context.clone(),
            task: task.name.clone(),
            submit_ns: task.submit_ns,
            first_run_ns: task.first_run_ns,
            finish_ns: task.finish_ns,
            turnaround_ns: task.finish_ns - task.submit_ns,
            run_ns: task.run_ns,
            dispatches: task.dispatches,
            yields: task.yields,
            ..TaskLine::default()
        });
        let tasks: Vec<TaskLine> = tasks.collect();
        let count = tasks.len() as u64;
        let runs_ns = tasks.iter().map(|task| task.run_ns);
        let turnarounds = || tasks.iter().map(|task| task.turnaround_ns);
        let run = RunLine {
            context: context.clone(),
            timing: MODEL.to_owned(),
            scale: self.scale,
            tasks: tasks.len(),
            avg_turnaround_ns: turnarounds().sum::<u64>() / count,
            max_turnaround_ns: turnarounds().max().unwrap_or(0),
            makespan_ns: tasks.iter().map(|task| task.finish_ns).max().unwrap_or(0),
            context_switches: played.switches,
            srpt_bound_ns: workload.bound_of(runs_ns, self.cpus).average_ns as u64,
            jain: jain(tasks.iter().map(|task| task.finish_ns as f64)),
            tick_phase: Some(tick_phase),
            pass: true,
            ..RunLine::default()
        };
        Phase { tasks, run }
    }
}

/// Returns the time from a tick to the beginning of a run at this phase.
fn start_ns(tick_phase: TickPhase) -> u64 {
    TICK_NS * u64::from(u16::from(tick_phase)) / 1000
}

/// Returns Jain's index, to six decimals.
fn jain(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let sum: f64 = values.clone().sum();
    let squares: f64 = values.clone().map(|value| value * value).sum();
    let n = values.count() as f64;
    (sum * sum / (n * squares) * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::{cmp::Reverse, thread};

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// The average and the makespan of `batch-at-once` in ms, on 2, 4 and 8 CPUs that share one queue.
    /// They were measured on 26 November 2026 with an option that is deleted (ADR 0026).
    const ONE_QUEUE: [(&str, [[f64; 2]; 3]); 4] = [
        ("fifo", [[939.2, 2203.5], [465.8, 1194.7], [243.4, 776.9]]),
        ("rr", [[959.3, 2244.7], [476.5, 1210.9], [248.3, 785.2]]),
        ("cfs", [[859.8, 2240.1], [433.0, 1175.7], [233.8, 776.2]]),
        ("eevdf", [[960.6, 2236.5], [481.3, 1225.6], [251.8, 775.5]]),
    ];

    /// Orders the tasks so that one CPU gets all the longest ones if tasks go to the CPUs in turn.
    fn deal_badly(workload: &mut Workload, cpus: usize) {
        let jobs = &mut workload.jobs;
        jobs.sort_by_key(|job| Reverse(job.run_ns() as u64));
        let others = jobs.split_off(jobs.len().div_ceil(cpus));
        let mut longest = std::mem::take(jobs).into_iter();
        for others in others.chunks(cpus - 1) {
            jobs.extend(longest.next());
            jobs.extend_from_slice(others);
        }
        jobs.extend(longest);
    }

    /// CPUs that share the work come close to one queue, whichever CPU each task starts on.
    #[test]
    fn cpus_that_share_are_close_to_one_queue() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let recording = "tools/schedlab/tests/recordings/batch-at-once";
        let words = format!(
            "schedlab simulate {root}/{recording}.pbg --cooperative {root}/{recording}-coop.pbg \
             --metered --costs {root}/docs/results/cost.csv --results {root}/docs/results/tables.csv"
        );
        let Command::Simulate(args) = Cli::parse_from(words.split(' ')).command else {
            panic!("it simulates");
        };
        let source = &args.played.source;
        let close = |cpus: usize, is_dealt: bool| {
            let mut flavours = Flavours::read(source).unwrap();
            if is_dealt {
                for flavour in flavours.all_mut() {
                    deal_badly(&mut flavour.workload, cpus);
                }
            }
            for (name, one_queue) in ONE_QUEUE {
                let policy = Policy::named(name).unwrap();
                let play = Play::new(policy, cpus, &flavours, Sharing::Balanced).unwrap();
                let mut sums = [0.0; 2];
                for tick_phase in TickPhase::evenly(8) {
                    let outcome = play.at(tick_phase).unwrap();
                    let run = outcome.last();
                    sums[0] += run.avg_turnaround_ns as f64 / 8e6;
                    sums[1] += run.makespan_ns as f64 / 8e6;
                }
                let one_queue = one_queue[cpus.ilog2() as usize - 1];
                for (found, one_queue) in sums.into_iter().zip(one_queue) {
                    let words = format!("{name}, {cpus} CPUs, dealt badly: {is_dealt}");
                    assert!(found <= 1.05 * one_queue, "{words}: {found} {one_queue}");
                }
            }
        };
        thread::scope(|scope| {
            for cpus in [2, 4, 8] {
                for is_dealt in [false, true] {
                    scope.spawn(move || close(cpus, is_dealt));
                }
            }
        });
    }
}
