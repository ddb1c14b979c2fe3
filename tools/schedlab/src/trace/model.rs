//! A recording that is played as [`Timeline`]s.

use std::num::NonZeroUsize;

use anyhow::Result;
use sched_sim::{
    policies::{Policy, Sharing},
    trace::{Left as How, Thread, Traced},
};
use sched_tests_results::TickPhase;

use super::timeline::{Left, Stay, Teller, Timeline, Wake, threads};
use crate::{
    cli::TraceArgs,
    output::count,
    record::Phase,
    setting::scaled,
    simulate::{Flavours, Play, chosen},
};

/// The runs that are played, each policy on each number of CPUs.
pub struct Plays {
    pub runs: Vec<Run>,
    flavours: Flavours,
    sharing: Sharing,
    tick_phase: TickPhase,
    most: NonZeroUsize,
}

/// A policy on a number of CPUs.
#[derive(Clone, Copy)]
pub struct Run {
    cpus: usize,
    policy: &'static Policy,
}

impl Plays {
    pub fn new(args: &TraceArgs) -> Result<Self> {
        let of = &args.played;
        let policies = chosen(&of.policy)?;
        let runs = of.cpus().into_iter();
        let runs = runs.flat_map(|cpus| policies.iter().map(move |policy| Run { cpus, policy }));
        Ok(Self {
            runs: runs.collect(),
            flavours: Flavours::read(&of.source)?,
            sharing: of.balance,
            tick_phase: TickPhase::try_from(args.tick_phase).map_err(anyhow::Error::msg)?,
            most: args.most,
        })
    }

    /// Returns the name of a run's file: that of a guest's, but for the word `model`.
    pub fn file_name(&self, run: Run) -> String {
        let header = &self.flavours.of(run.policy).profile.header;
        let scaled = scaled(self.flavours.scale);
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
        let sharing = self.sharing;
        let play = Play::new(policy, cpus, &self.flavours, sharing)?;
        let (phase, traced) = play.traced(self.tick_phase, self.most)?;
        let plan = match (policy.is_planned(), policy.is_planned_on(cpus, sharing)) {
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
        let timeline = timeline(name, cpus, tasks.collect(), traced);
        Ok((phase, timeline))
    }
}

/// Returns a traced run of tasks with these names and times of submission. A task that is due while
/// main waits for a CPU counts as submitted then, but is not ready before main spawns it.
fn timeline(name: String, cpus: usize, mut tasks: Vec<(String, u64)>, traced: Traced) -> Timeline {
    // In reverse, so that the first wake of a task, which is its spawn, stays.
    for wake in traced.wakes.iter().rev() {
        tasks[wake.task].1 = wake.at_ns;
    }
    let place = |thread| match thread {
        Thread::Main => 0,
        Thread::Gc(cpu) => 1 + 2 * cpu,
        Thread::Idle(cpu) => 2 + 2 * cpu,
        Thread::Task(task) => 1 + 2 * cpus + task,
    };
    let stays = traced.stays.into_iter().map(|stay| Stay {
        cpu: stay.cpu as u32,
        thread: place(stay.thread),
        from_ns: stay.from_ns,
        to_ns: stay.to_ns,
        left: match (stay.thread, stay.left) {
            (Thread::Task(_), Some(left)) => match left {
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
        thread: place(Thread::Task(wake.task)),
        cpu: wake.cpu as u32,
        to: wake.to as u32,
        by: place(wake.by),
    });
    Timeline {
        name,
        start_ns: traced.start_ns,
        end_ns: traced.end_ns,
        cpus: cpus as u32,
        threads: threads(cpus, &["gc", "idle"], tasks.into_iter()),
        stays: stays.collect(),
        wakes: wakes.collect(),
        held: Vec::new(), // it has no gate
        lost: traced.lost,
        teller: Teller::Model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::assert_golden,
        trace::{
            sched::{Report, lost},
            timeline::tests::in_words,
        },
    };
    use sched_sim::{
        costs::YieldCost,
        play::{Machine, play_traced},
        time::Clock,
        workload::{Arrival, Job, Then, Work, Workload},
    };

    const MS: u64 = 1_000_000;

    /// Plays tasks that each run once, for a number of ms, under FIFO.
    fn played(cpus: usize, tasks: &[(&str, u64, Arrival)]) -> Timeline {
        let job = |&(name, ms, arrival): &(&str, u64, Arrival)| Job {
            name: name.to_owned(),
            label: None,
            parent: None,
            arrival,
            steps: vec![Work::new(1, (ms * MS) as f64, Then::Exit)],
        };
        let workload = Workload {
            gc_look_ns: None,
            jobs: tasks.iter().map(job).collect(),
        };
        let machine = Machine {
            cpus,
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
        timeline("by hand".to_owned(), cpus, tasks.collect(), traced)
    }

    /// Main is on CPU 0, and its own wake-up was put there. So `a` goes to CPU 1, which looks into
    /// its queue at its next tick, half a tick later. Then `b` goes to CPU 0, and `c` behind `a`.
    ///
    /// | ms | 0 to 5 | to 10 | to 45 | to 65 |
    /// |---|---|---|---|---|
    /// | CPU 0 | `b` | `b` | idle | idle |
    /// | CPU 1 | idle | `a` | `a` | `c` |
    /// | ready | `a`, `c` | `c` | `c` | |
    #[test]
    fn idle_cpu_takes_no_task_from_the_queue_of_another() {
        let at_once = Arrival::After(0.0);
        let tasks = [("a", 40, at_once), ("b", 10, at_once), ("c", 20, at_once)];
        let mut timeline = played(2, &tasks);
        let mut text = in_words(&timeline) + &Report::new(&timeline).text();
        timeline.lost = 2;
        text += &lost(&timeline).unwrap();
        assert_golden("trace-model.txt", &text);
    }

    /// `b` is due at 5 ms, and main spawns it when `a` has ended.
    #[test]
    fn task_is_ready_from_its_spawn_although_it_was_due_before() {
        let late = Arrival::At(5.0 * MS as f64);
        let timeline = played(1, &[("a", 40, Arrival::After(0.0)), ("b", 10, late)]);
        let spawned = timeline.wakes.last().unwrap().at_ns;
        assert!(spawned >= 40 * MS);
        let intervals = timeline.states().into_iter().next_back().unwrap();
        assert_eq!(intervals[0].from_ns, spawned);
    }
}
