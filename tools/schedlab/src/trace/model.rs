//! From a recording that is played to [`Timeline`]s.

use std::num::NonZeroUsize;

use anyhow::Result;
use sched_sim::{
    policies::{Policy, Sharing},
    trace::{Left as How, Traced, Who},
};
use sched_tests_results::TickPhase;

use super::timeline::{Left, Stay, Teller, Thread, ThreadKind, Timeline, Wake};
use crate::{
    cli::SwitchesArgs,
    output::count,
    record::Phase,
    simulate::{Costs, Flavour, Play, chosen, of_one_program, recording},
};

/// What is played, each policy on each number of CPUs.
pub struct Plays {
    pub runs: Vec<Run>,
    /// At least that of the policies: see [`flavour`](Self::flavour).
    preemptive: Option<Flavour>,
    cooperative: Option<Flavour>,
    costs: Costs,
    scale: u64,
    sharing: Sharing,
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
    pub fn new(args: &SwitchesArgs) -> Result<Self> {
        let of = &args.played;
        let policies = chosen(&of.policy)?;
        let source = &of.source;
        let costs = Costs::read(&source.costs, &source.results)?;
        let profile = recording(&source.recording, source)?;
        let other = match &of.cooperative {
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
        let runs = of.cpus().into_iter();
        let runs = runs.flat_map(|cpus| policies.iter().map(move |policy| Run { cpus, policy }));
        Ok(Self {
            runs: runs.collect(),
            preemptive,
            cooperative,
            costs,
            scale: source.scale,
            sharing: of.sharing(),
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
        let alone = match cpus > 1 && self.sharing == Sharing::None {
            true => "-unbalanced",
            false => "",
        };
        let (program, arch) = (&header.program.name, header.architecture);
        format!("{program}-{arch}{scaled}-cpus{cpus}-{policy}{alone}-model")
    }

    pub fn play(&self, run: Run) -> Result<(Phase, Timeline)> {
        let Run { cpus, policy } = run;
        let flavour = self.flavour(policy);
        let sharing = self.sharing;
        let play = Play::new(policy, cpus, self.scale, flavour, &self.costs, sharing)?;
        let (phase, traced) = play.traced(self.tick_phase, self.most)?;
        let plan = match (policy.follows_plan(), policy.follows_plan_on(cpus, sharing)) {
            (true, true) => ", replay,",
            (true, false) => " (no plan)",
            (false, _) => "",
        };
        let (program, name) = (&phase.run.context.app, policy.name());
        let name = format!(
            "{program} under {name}{plan} on {}{} (model)",
            count(cpus, "CPU"),
            match (cpus, play.shared()) {
                (1, _) | (_, Sharing::Balanced) => "",
                _ => ", which share nothing",
            }
        );
        let tasks = phase.tasks.iter();
        let tasks = tasks.map(|task| (task.task.clone(), task.submit_ns));
        let timeline = timeline(name, cpus, tasks, traced);
        Ok((phase, timeline))
    }
}

/// A run as it was traced, of tasks with these names that were submitted then.
fn timeline(
    name: String,
    cpus: usize,
    tasks: impl Iterator<Item = (String, u64)>,
    traced: Traced,
) -> Timeline {
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
        threads: threads(cpus, tasks),
        stays: stays.collect(),
        wakes: wakes.collect(),
        held: Vec::new(), // it has no gate
        lost: traced.lost,
        teller: Teller::Model,
    }
}

/// Main, each CPU's gc and idle, and the tasks: called as those of a guest.
fn threads(cpus: usize, tasks: impl Iterator<Item = (String, u64)>) -> Vec<Thread> {
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
    let tasks = tasks.map(|(name, submit_ns)| thread(name, ThreadKind::Task { submit_ns }));
    let main = thread("main".to_owned(), ThreadKind::System);
    let system = (0..cpus).flat_map(of_cpu);
    [main].into_iter().chain(system).chain(tasks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;
    use crate::trace::sched::Report;
    use sched_sim::{
        costs::YieldCost,
        play::{Machine, play_traced},
        time::Clock,
        workload::{Arrival, Job, Then, Work, Workload},
    };

    const MS: u64 = 1_000_000;

    /// Tasks that each run once, for so many ms, under FIFO on two CPUs.
    fn played(tasks: &[(&str, u64)]) -> Timeline {
        let job = |&(name, ms): &(&str, u64)| Job {
            name: name.to_owned(),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps: vec![Work::new(1, (ms * MS) as f64, Then::Exit)],
        };
        let workload = Workload {
            jobs: tasks.iter().map(job).collect(),
        };
        let machine = Machine {
            cpus: 2,
            tick_ns: 10 * MS,
            phase_ns: 0,
            switch_ns: 40,
            hook_ns: 0,
            clock: Clock::of_frequency(1_000_000_000),
            sharing: Sharing::None,
            preempted_stay: false,
        };
        // FIFO follows none.
        let plan = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../modules/axsched-ext/tests/data/batch-x86_64.pbg"
        );
        let plan = crate::profile::read(plan.as_ref()).unwrap().profile;
        let costs = YieldCost::new([(1, 100.0)]);
        let fifo = Policy::named("fifo").unwrap();
        let (outcome, traced) =
            play_traced(&workload, fifo, &plan, &costs, &machine, NonZeroUsize::MAX).unwrap();
        let tasks = outcome.tasks.into_iter();
        let tasks = tasks.map(|task| (task.name, task.submit_ns));
        timeline("by hand".to_owned(), 2, tasks, traced)
    }

    /// Main is on CPU 0, and its own wake-up was put there: `a` goes to CPU 1, which looks into its
    /// queue at its tick, half a tick later; `b` to CPU 0, `c` behind `a`.
    ///
    /// | ms | 0 to 5 | to 10 | to 45 | to 65 |
    /// |---|---|---|---|---|
    /// | CPU 0 | `b` | `b` | idle | idle |
    /// | CPU 1 | idle | `a` | `a` | `c` |
    /// | ready | `a`, `c` | `c` | `c` | |
    #[test]
    fn an_idle_cpu_leaves_alone_what_is_in_anothers_queue() {
        let timeline = played(&[("a", 40), ("b", 10), ("c", 20)]);
        let on_cpu = |cpu, thread: &str| {
            let is_it = |stay: &&Stay| {
                stay.cpu == cpu
                    && timeline.threads[stay.thread].name == thread
                    && stay.to_ns - stay.from_ns > MS
            };
            let stays: Vec<_> = timeline.stays.iter().filter(is_it).collect();
            assert_eq!(stays.len(), 1, "{thread}");
            (stays[0].from_ns, stays[0].to_ns)
        };
        let near = |(from_ns, to_ns): (u64, u64), from_ms: u64, to_ms: u64| {
            // A few switches and calls are between.
            let is_near = |ns: u64, ms: u64| ns.abs_diff(ms * MS) < 10_000;
            assert!(
                is_near(from_ns, from_ms) && is_near(to_ns, to_ms),
                "{from_ns} {to_ns}"
            );
        };
        let idle = [on_cpu(0, "idle/0"), on_cpu(1, "idle/1")];
        near(on_cpu(0, "b"), 0, 10);
        near(idle[0], 10, 65);
        near(idle[1], 0, 5);
        near(on_cpu(1, "a"), 5, 45);
        near(on_cpu(1, "c"), 45, 65);
        let c_ready_to = on_cpu(1, "c").0;
        // CPU 1 was idle before it was told of anything, too.
        let ns = (idle[1].1 - timeline.wakes[0].at_ns) + (c_ready_to - idle[0].0);
        assert!(ns.abs_diff(40 * MS) < 10_000, "{ns}");
        let text = Report::new(&timeline).text();
        let percent = ns as f64 * 100.0 / (2 * timeline.end_ns) as f64;
        let expected = format!(
            "idle while a task was ready for {:.3} ms, {percent:.3} % of {:.3} ms on 2 CPUs;",
            ns as f64 / 1e6,
            timeline.end_ns as f64 / 1e6,
        );
        assert!(text.contains(&expected), "{expected}\n{text}");
        assert!(percent > 30.0);
    }

    #[test]
    fn a_model_is_said_to_be_full_as_such() {
        let mut timeline = played(&[("a", 1)]);
        timeline.lost = 2;
        let text = Report::new(&timeline).text();
        assert_has(&text, "by hand: the model's log was full; 2 events lost");
    }
}
