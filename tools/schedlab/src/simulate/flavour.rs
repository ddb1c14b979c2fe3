//! A recording as it is played: without the time that its own scheduler took.

use std::path::Path;

use anyhow::{Context, Result, bail};
use axsched_ext::{
    pbg::stored::{
        Architecture, Merger, Place, Program, StoredPhase, StoredProfile, StoredTask, Timing,
    },
    units::TaskKey,
};
use sched_sim::{
    aim::Aim,
    bound::waiting::Needs,
    calibrate::calibrate,
    play::Machine,
    policies::{Policy, Sharing},
    polls::polling,
    recorded::recorded,
    time::Clock,
    whatif::{Change, changed},
    workload::{Arrival, Workload},
};

use super::costs::Costs;
use crate::{cli::RecordingArgs, output::count, profile::read};

/// The time between two ticks of ArceOS, in nanoseconds, which a recording does not tell.
pub const TICK_NS: u64 = 10_000_000;

/// A recording of a kernel that preempts, or of one that does not. The two do different work: only
/// the first has guards that cost something.
pub struct Flavour {
    pub profile: StoredProfile,
    pub workload: Workload,
    /// One CPU, at the first phase of the tick.
    pub machine: Machine,
    /// The largest difference between a task's time and the recording's if its own policy is
    /// played, as a part of the recording's.
    pub rest: f64,
    /// The difference of the average turnaround from the recorded one then, in parts of that.
    pub off: f64,
    /// The number of times that all tasks then waited for each other, as the recording does not
    /// tell all waits.
    pub broken_waits: u64,
    /// The policy that ran while it was recorded.
    pub base: &'static Policy,
    /// The number of tasks that poll, but are simulated as they were recorded, as it is not known
    /// for which task they do.
    pub unknown_polls: usize,
    /// The tasks that poll.
    pollers: Vec<TaskKey>,
}

impl Flavour {
    /// Makes a flavour of a recording, beside the other one. `orders` is a profile of runs in different
    /// orders.
    fn of(
        profile: StoredProfile,
        other: Option<&StoredProfile>,
        orders: &StoredProfile,
        preempts: bool,
        is_metered: bool,
        costs: &Costs,
    ) -> Result<Self> {
        let arch = profile.header.architecture.name();
        let clock = Clock::of_frequency(profile.header.frequency_hz);
        let machine = Machine {
            cpus: 1,
            tick_ns: TICK_NS,
            phase_ns: 0,
            switch_ns: costs.switch_ns(arch, preempts)?,
            hook_ns: match is_metered {
                true => costs.instrument_ns(arch, preempts)?,
                false => 0,
            },
            clock,
            sharing: Sharing::default(),
            preempted_stay: profile.header.architecture == Architecture::Riscv64,
        };
        let workload = with_waits(&profile, other, orders);
        let polls = |task| polling(task, orders.header.frequency_hz).is_some();
        let pollers = orders.tasks.iter().filter(|task| polls(task));
        let pollers: Vec<TaskKey> = pollers.map(|task| task.key).collect();
        let known = workload
            .jobs
            .iter()
            .filter(|job| job.polls().next().is_some());
        let unknown_polls = pollers.len() - known.count();
        let base = ran(&profile, preempts).context("expected a recording under a known policy")?;
        let scheduler = match preempts {
            true => recorded_as(base),
            false => "pbg-coop measure",
        };
        let cost = costs.of_yield(arch, scheduler)?;
        let turnarounds = profile.tasks.iter().map(StoredTask::turnaround);
        let turnarounds_ns: Vec<f64> = turnarounds.map(|time| clock.ns(time.0 as f64)).collect();
        let calibrated = calibrate(&workload, &turnarounds_ns, base, &profile, &cost, &machine)?;
        Ok(Self {
            workload: calibrated.workload,
            rest: calibrated.rest,
            off: calibrated.off,
            broken_waits: calibrated.broken_waits,
            base,
            unknown_polls,
            pollers,
            profile,
            machine,
        })
    }
}

impl Flavour {
    /// Returns the deadline of each task since its spawn, in nanoseconds.
    pub fn deadlines_ns(&self) -> Vec<Option<f64>> {
        let tasks = self.profile.tasks.iter();
        let deadline = tasks.map(|task| {
            let counts = task.deadline.filter(|deadline| deadline.0 != u64::MAX)?;
            Some(self.machine.clock.ns(counts.0 as f64))
        });
        deadline.collect()
    }

    /// Returns a lower bound of a figure under any policy. It leaves the waits of tasks for each other
    /// out if the recording does not tell enough about them.
    pub fn bound(&self, aim: Aim, cpus: usize) -> f64 {
        let needs = match self.broken_waits {
            0 => Needs::of(&self.workload, TICK_NS),
            _ => None,
        };
        aim.bound(&self.workload, needs.as_ref(), &self.deadlines_ns(), cpus)
    }
}

/// The recordings of a program, and what they are played at.
pub struct Flavours {
    /// The recording of a kernel that preempts.
    pub preemptive: Flavour,
    /// The recording of a kernel that does not.
    pub cooperative: Option<Flavour>,
    /// True if only one run is known, which does not tell polls from other yields.
    pub is_one_order: bool,
    pub costs: Costs,
    /// The divisor of the workload.
    pub scale: u64,
}

impl Flavours {
    pub fn read(args: &RecordingArgs) -> Result<Self> {
        let costs = Costs::read(&args.costs, &args.results)?;
        let profile = recording(&args.recording, args)?;
        let other = match &args.cooperative {
            Some(file) => {
                let other = recording(file, args)?;
                check_program(&args.recording, &profile, &other)?;
                Some(other)
            }
            None => None,
        };
        // A kernel that does not preempt runs the tasks in another order. Recordings under other
        // policies than PBG's base policy do not merge.
        let mut orders = Merger::default();
        orders.add(&profile)?;
        if let Some(other) = &other {
            let _ = orders.add(other);
        }
        let orders = orders.finish()?;
        let of = |profile: &StoredProfile, other, preempts| {
            Flavour::of(
                profile.clone(),
                other,
                &orders,
                preempts,
                args.metered,
                &costs,
            )
        };
        let cooperative = other.as_ref();
        let cooperative = cooperative.map(|other| of(other, Some(&profile), false));
        Ok(Self {
            cooperative: cooperative.transpose()?,
            preemptive: of(&profile, other.as_ref(), true)?,
            is_one_order: orders.header.runs == 1,
            costs,
            scale: args.scale,
        })
    }

    pub fn all(&self) -> impl Iterator<Item = &Flavour> {
        [&self.preemptive].into_iter().chain(&self.cooperative)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Flavour> {
        let first = [&mut self.preemptive].into_iter();
        first.chain(&mut self.cooperative)
    }

    /// Changes the workloads. The recording, and with it the plan, stays.
    pub fn change(&mut self, changes: &[Change]) -> Result<()> {
        for flavour in self.all_mut() {
            flavour.workload = changed(&flavour.workload, changes)?;
        }
        Ok(())
    }

    /// Returns the number of tasks that poll, and are not known to wait for another.
    pub fn unknown_polls(&self) -> usize {
        self.all().map(|of| of.unknown_polls).max().unwrap_or(0)
    }

    /// Returns true if this task is simulated as one that polls until another has ended.
    pub fn is_known_to_poll(&self, task: &str) -> bool {
        let mut jobs = self.all().flat_map(|of| &of.workload.jobs);
        jobs.any(|job| job.name == task && job.polls().next().is_some())
    }

    /// Notes the tasks that poll as those whose work varies with the order, for the plan.
    #[must_use]
    pub fn with_pollers_marked(mut self) -> Self {
        for Flavour {
            profile, pollers, ..
        } in self.all_mut()
        {
            let tasks = profile.tasks.iter_mut();
            tasks.for_each(|task| task.varies |= pollers.contains(&task.key));
        }
        self
    }

    /// Takes back what a replay has shown, so that the plan is that of the boot that recorded.
    pub fn forget_replays(&mut self) {
        for flavour in self.all_mut() {
            let tasks = flavour.profile.tasks.iter_mut();
            tasks.for_each(|task| task.varies = false);
        }
    }

    /// Returns the one that was recorded under this scheduler, `pbg` or `pbg-coop`.
    pub fn recorded_as(&self, scheduler: &str) -> Option<&Flavour> {
        match scheduler {
            "pbg" => Some(&self.preemptive),
            _ => self.cooperative.as_ref(),
        }
    }

    /// Returns the one that is played under this policy.
    pub fn of(&self, policy: &Policy) -> &Flavour {
        match &self.cooperative {
            Some(cooperative) if !policy.is_preemptive() => cooperative,
            _ => &self.preemptive,
        }
    }
}

/// Refuses two recordings that are not of the same program on the same architecture.
fn check_program(file: &Path, one: &StoredProfile, other: &StoredProfile) -> Result<()> {
    let [one, other] = [&one.header, &other.header];
    if (one.program, one.architecture) != (other.program, other.architecture) {
        bail!(
            "{}: expected a recording of {} on {}, as that of --cooperative is; found one of {} on {}",
            file.display(),
            other.program.name,
            other.architecture,
            one.program.name,
            one.architecture
        );
    }
    Ok(())
}

/// A recording lacks waits if the other has them between tasks that never wait for each other here, and
/// they are at least one in this many of its waits. Fewer happen by chance, as when a buffer is full for
/// once.
const MISSED: u64 = 10;

/// Returns the workload of a recording. A wait that did not happen is not recorded. So if the other
/// recording has all waits of this one and many more, the tasks do what they did there, in their own
/// time.
fn with_waits(
    profile: &StoredProfile,
    other: Option<&StoredProfile>,
    orders: &StoredProfile,
) -> Workload {
    let of = |profile: &StoredProfile| {
        let clock = Clock::of_frequency(profile.header.frequency_hz);
        recorded(profile, orders, clock, TICK_NS)
    };
    let own = of(profile);
    let keys = |of: &StoredProfile| of.tasks.iter().map(|task| task.key).collect::<Vec<_>>();
    let Some(other) = other.filter(|other| keys(other) == keys(profile)) else {
        return own;
    };
    let mut other = of(other);
    let (waits_of_own, waits_of_other) = (own.waits(), other.waits());
    let has_all = waits_of_own
        .keys()
        .all(|pair| waits_of_other.contains_key(pair));
    let missed = waits_of_other
        .iter()
        .filter(|(pair, _)| !waits_of_own.contains_key(pair));
    let missed: u64 = missed.map(|(_, waits)| waits).sum();
    if !has_all || missed == 0 || missed * MISSED < waits_of_other.values().sum() {
        return own;
    }
    for (job, own) in other.jobs.iter_mut().zip(&own.jobs) {
        if job.work_ns() > 0.0 {
            job.scale(own.work_ns() / job.work_ns());
        }
        if !matches!(job.arrival, Arrival::When(_)) {
            job.arrival = own.arrival;
        }
    }
    other
}

/// Returns the policy that ran. Without preemption that is FIFO, as time slices end nothing.
fn ran(profile: &StoredProfile, preempts: bool) -> Option<&'static Policy> {
    match preempts {
        true => base(profile),
        false => Policy::named("fifo"),
    }
}

/// Returns the policy of the header: a base policy of PBG's, or another one within the recording
/// layer.
fn base(profile: &StoredProfile) -> Option<&'static Policy> {
    let base = Policy::named(profile.header.policy.as_str())?;
    (!base.is_planned()).then_some(base)
}

/// Returns the row of costs of the policy that ran. A policy within the recording layer has none:
/// the layer's time in a switch stays in the tasks' time (`docs/simulate.md`).
fn recorded_as(base: &'static Policy) -> &'static str {
    match base.name() {
        "rr" | "fifo" => "pbg measure",
        other => other,
    }
}

/// The number of steps that the model takes in a run of a recording.
struct Steps {
    /// Run intervals and wakes of all tasks, and ticks of one CPU until the last task has ended,
    /// if the waits of a task begin after those of its parent.
    total: f64,
    /// The task that adds most, and its figures.
    most: String,
}

impl Steps {
    fn of(profile: &StoredProfile) -> Self {
        let clock = Clock::of_frequency(profile.header.frequency_hz);
        let (mut steps, mut run_ns, mut last_ns) = (0.0, 0.0, 0.0_f64);
        let (mut largest, mut most) = (0.0, String::new());
        // The end of each task's waits, by its index.
        let mut waited_ns: Vec<f64> = Vec::with_capacity(profile.tasks.len());
        for (i, task) in profile.tasks.iter().enumerate() {
            let runs = f64::from(task.runs);
            let sum =
                |of: fn(&StoredPhase) -> f64| task.phases.list.iter().map(of).sum::<f64>() / runs;
            let intervals = sum(|phase| phase.intervals as f64);
            let all_woken = task.phases.list.iter().flat_map(|phase| phase.wakes.iter());
            let wakes = all_woken.fold(0.0, |all, woken| all + woken.count as f64) / runs;
            let own_run_ns = clock.ns(sum(|phase| phase.run.0 as f64));
            let own_waits_ns = clock.ns(sum(|phase| phase.blocked.0 as f64));
            let begins_ns = match task.place {
                Place::Child { parent, .. } => waited_ns[parent as usize],
                Place::Root { .. } | Place::Several => {
                    let spawned = &task.spawned;
                    let latest = spawned.parent_run.total.max(spawned.parent_woken.total);
                    clock.ns(latest as f64) / runs
                }
            };
            waited_ns.push(begins_ns + own_waits_ns);
            last_ns = last_ns.max(begins_ns + own_waits_ns);
            run_ns += own_run_ns;
            steps += intervals + wakes;
            let own = intervals + wakes + (begins_ns + own_waits_ns + own_run_ns) / TICK_NS as f64;
            if own > largest {
                largest = own;
                let name = task
                    .label
                    .map_or(format!("number {i}"), |label| format!("`{label}`"));
                most = format!(
                    "task {name} has {} and {}, runs for {:.3} s and waits until {:.3} s",
                    count(intervals as usize, "run interval"),
                    count(wakes as usize, "wake"),
                    own_run_ns / 1e9,
                    (begins_ns + own_waits_ns) / 1e9
                );
            }
        }
        Self {
            total: steps + (run_ns + last_ns) / TICK_NS as f64,
            most,
        }
    }
}

/// Reads a recording, and refuses one that cannot be played.
fn recording(file: &Path, args: &RecordingArgs) -> Result<StoredProfile> {
    let profile = read(file)?.profile;
    let (header, file) = (&profile.header, file.display());
    if let Some(app) = &args.app
        && header.program != Program::scaled(app, args.scale)
    {
        bail!(
            "{file}: expected a recording of {app} at scale {}, found one of {} ({:016x}); A= and SCALE= say of what it is",
            args.scale,
            header.program.name,
            header.program.hash
        );
    }
    if let Some(arch) = &args.arch
        && header.architecture.name() != arch
    {
        bail!(
            "{file}: expected a recording on {arch}, found one on {}; ARCH= says on which it is",
            header.architecture
        );
    }
    if header.timing == Timing::Real {
        bail!(
            "{file}: expected a recording in counted time, found one in real time, where a count is no instruction"
        );
    }
    if header.cpus != 1 {
        bail!(
            "{file}: expected a recording of one CPU, found one of {}",
            header.cpus
        );
    }
    if base(&profile).is_none() {
        bail!(
            "{file}: expected a recording under a known policy that follows no plan, found one under {}",
            header.policy
        );
    }
    if header.program.name.to_string().contains(['/', '\\']) {
        bail!(
            "{file}: expected a program's name without a slash, found {}",
            header.program.name
        );
    }
    let runs = profile
        .tasks
        .iter()
        .map(|task| task.figures.run.mean(task.runs));
    if runs.sum::<u64>() == 0 {
        bail!("{file}: expected a recording with tasks that have run, found none");
    }
    let steps = Steps::of(&profile);
    if steps.total > args.steps as f64 {
        bail!(
            "{file}: expected at most {} run intervals, wakes and ticks in a run, found {:.0}: {}; --steps allows more",
            args.steps,
            steps.total,
            steps.most
        );
    }
    Ok(profile)
}
