//! From a recording that is played to [`Timeline`]s.

use std::num::NonZeroUsize;

use anyhow::Result;
use sched_sim::{
    policies::Policy,
    trace::{Left as How, Traced, Who},
};
use sched_tests_results::TickPhase;

use super::timeline::{Left, Stay, Teller, Thread, ThreadKind, Timeline, Wake};
use crate::{
    cli::ModelArgs,
    distinct::distinct,
    output::count,
    record::Phase,
    simulate::{Costs, Flavour, chosen, follows_plan, of_one_program, recording, trace},
};

/// What is played, each policy on each number of CPUs.
pub struct Plays {
    pub runs: Vec<Run>,
    /// At least that of the policies: see [`flavour`](Self::flavour).
    preemptive: Option<Flavour>,
    cooperative: Option<Flavour>,
    costs: Costs,
    scale: u64,
    tick_phase: TickPhase,
    most: NonZeroUsize,
}

/// A policy on so many CPUs.
#[derive(Clone, Copy)]
pub struct Run {
    pub cpus: usize,
    policy: &'static Policy,
}

impl Plays {
    pub fn new(args: &ModelArgs) -> Result<Self> {
        let policies = chosen(&args.policy)?;
        let source = &args.source;
        let costs = Costs::read(&source.costs, &source.results)?;
        let profile = recording(&source.recording, source)?;
        let other = match &args.cooperative {
            Some(file) => Some(recording(file, source)?),
            None => None,
        };
        if let Some(other) = &other {
            of_one_program(&source.recording, &profile, other)?;
        }
        // What no policy needs is not calibrated, which takes as long as to play some.
        let is_needed = |preempts| {
            let mut policies = policies.iter();
            policies.any(|policy| policy.is_preemptive() == preempts)
        };
        let flavour = |profile, preempts| Flavour::of(profile, preempts, source.metered, &costs);
        let other = other.filter(|_| is_needed(false));
        let is_for_all = other.is_none() || is_needed(true);
        let cooperative = other.map(|other| flavour(other, false)).transpose()?;
        let preemptive = is_for_all.then(|| flavour(profile, true)).transpose()?;
        let runs = distinct(args.cpus.iter().copied().map(usize::from)).into_iter();
        let runs = runs.flat_map(|cpus| policies.iter().map(move |policy| Run { cpus, policy }));
        Ok(Self {
            runs: runs.collect(),
            preemptive,
            cooperative,
            costs,
            scale: source.scale,
            tick_phase: TickPhase::try_from(args.tick_phase).map_err(anyhow::Error::msg)?,
            most: args.most,
        })
    }

    fn flavour(&self, policy: &Policy) -> &Flavour {
        let cooperative = self.cooperative.as_ref();
        cooperative
            .filter(|_| !policy.is_preemptive())
            .or(self.preemptive.as_ref())
            .expect("it was needed")
    }

    /// As a guest's file is called, but for the word `model`.
    pub fn file_name(&self, run: Run) -> String {
        let header = &self.flavour(run.policy).profile.header;
        let scaled = match self.scale {
            1 => String::new(),
            scale => format!("-scale{scale}"),
        };
        let (policy, cpus) = (run.policy.name(), run.cpus);
        let (program, arch) = (&header.program.name, header.architecture);
        format!("{program}-{arch}{scaled}-cpus{cpus}-{policy}-model")
    }

    pub fn play(&self, run: Run) -> Result<(Phase, Timeline)> {
        let Run { cpus, policy } = run;
        let flavour = self.flavour(policy);
        let set = (cpus, self.tick_phase, self.scale);
        let (phase, traced) = trace(policy, set, flavour, &self.costs, self.most)?;
        let plan = match (policy.follows_plan(), follows_plan(policy, cpus)) {
            (true, true) => ", replay,",
            (true, false) => " (no plan)",
            (false, _) => "",
        };
        let (program, name) = (&phase.run.context.app, policy.name());
        let name = format!(
            "{program} under {name}{plan} on {} (model)",
            count(cpus, "CPU")
        );
        let timeline = timeline(name, &phase, traced);
        Ok((phase, timeline))
    }
}

/// A run as it was traced, whose result lines are those of `phase`.
fn timeline(name: String, phase: &Phase, traced: Traced) -> Timeline {
    let cpus = phase.run.context.smp as usize;
    let place = |who| match who {
        Who::Main => 0,
        Who::Gc(cpu) => 1 + 2 * cpu,
        Who::Idle(cpu) => 2 + 2 * cpu,
        Who::Task(task) => 1 + 2 * cpus + task,
    };
    let stays = traced.stays.into_iter().map(|stay| Stay {
        cpu: stay.cpu as u32,
        thread: place(stay.who),
        from_ns: stay.from_ns,
        to_ns: stay.to_ns,
        left: match (stay.who, stay.left) {
            (Who::Task(_), Some(left)) => match left {
                // The helper of a migration keeps it ready.
                How::Yielded | How::Migrated => Left::Yielded,
                How::Preempted => Left::Preempted,
                How::Blocked => Left::Blocked,
                How::Exited => Left::Ended,
            },
            _ => Left::Unknown,
        },
    });
    let wakes = traced.wakes.into_iter().map(|wake| Wake {
        at_ns: wake.at_ns,
        thread: place(Who::Task(wake.task)),
        cpu: wake.cpu as u32,
        to: wake.to as u32,
        by: place(wake.by),
    });
    Timeline {
        name,
        start_ns: traced.start_ns,
        end_ns: traced.end_ns,
        cpus: cpus as u32,
        threads: threads(phase, cpus),
        stays: stays.collect(),
        wakes: wakes.collect(),
        lost: traced.lost,
        teller: Teller::Model,
    }
}

/// Main, each CPU's gc and idle, and the tasks: called as those of a guest.
fn threads(phase: &Phase, cpus: usize) -> Vec<Thread> {
    let thread = |name: String, kind| Thread { name, kind };
    let of_cpu = |cpu: usize| {
        let of = |name: &str| match cpus {
            1 => name.to_owned(),
            _ => format!("{name}/{cpu}"),
        };
        [
            thread(of("gc"), ThreadKind::System),
            thread(of("idle"), ThreadKind::Idle),
        ]
    };
    let tasks = phase.tasks.iter().map(|task| {
        let submit_ns = task.submit_ns;
        thread(task.task.clone(), ThreadKind::Task { submit_ns })
    });
    let main = thread("main".to_owned(), ThreadKind::System);
    let system = (0..cpus).flat_map(of_cpu);
    [main].into_iter().chain(system).chain(tasks).collect()
}
