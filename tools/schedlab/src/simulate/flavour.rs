//! A recording as it is played: less what its own scheduler took.

use std::path::Path;

use anyhow::{Context, Result, bail};
use axsched_ext::pbg::stored::{Architecture, Place, Program, StoredPhase, StoredProfile, Timing};
use sched_sim::{
    calibrate::calibrate,
    play::Machine,
    policies::{Policy, Sharing},
    recorded::recorded,
    time::Clock,
    whatif::{Change, changed},
    workload::Workload,
};

use super::costs::Costs;
use crate::{cli::RecordingArgs, output::count, profile::read};

/// The time between two ticks of ArceOS, in nanoseconds. A recording does not say it.
pub const TICK_NS: u64 = 10_000_000;

/// What was recorded by kernels that preempt, or by those that do not: they do different work,
/// as guards cost something in the one and nothing in the other.
pub struct Flavour {
    pub profile: StoredProfile,
    pub workload: Workload,
    /// One CPU, at the first phase of the tick.
    pub machine: Machine,
    /// How far a task's time is from the recording's at most when its own policy is played, in
    /// parts of it.
    pub rest: f64,
    /// How often all its tasks waited for each other then: it does not say enough of for whom.
    pub broken_waits: u64,
    /// The policy that ran while it was recorded.
    base: &'static Policy,
}

impl Flavour {
    pub fn of(
        profile: StoredProfile,
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
        let workload = recorded(&profile, clock, TICK_NS);
        let base = ran(&profile, preempts).context("expected a recording under a known policy")?;
        let scheduler = match preempts {
            true => recorded_as(base),
            false => "pbg-coop measure",
        };
        let cost = costs.of_yield(arch, scheduler)?;
        let calibrated = calibrate(&workload, base, &profile, &cost, &machine)?;
        Ok(Self {
            workload: calibrated.workload,
            rest: calibrated.rest,
            broken_waits: calibrated.broken_waits,
            base,
            profile,
            machine,
        })
    }

    /// The policy that ran while it was recorded.
    pub const fn base(&self) -> &'static Policy {
        self.base
    }

    /// The recording, and so the plan, stays.
    fn changed(self, changes: &[Change]) -> Result<Self> {
        Ok(Self {
            workload: changed(&self.workload, changes)?,
            ..self
        })
    }
}

/// The recordings of a program.
pub struct Flavours {
    /// Of a kernel that preempts.
    pub preemptive: Flavour,
    /// Of one that does not.
    pub cooperative: Option<Flavour>,
}

impl Flavours {
    pub fn read(args: &RecordingArgs, cooperative: Option<&Path>, costs: &Costs) -> Result<Self> {
        let profile = recording(&args.recording, args)?;
        let cooperative = match cooperative {
            Some(file) => {
                let other = recording(file, args)?;
                of_one_program(&args.recording, &profile, &other)?;
                Some(Flavour::of(other, false, args.metered, costs)?)
            }
            None => None,
        };
        Ok(Self {
            preemptive: Flavour::of(profile, true, args.metered, costs)?,
            cooperative,
        })
    }

    /// The same program in a changed world.
    pub fn changed(self, changes: &[Change]) -> Result<Self> {
        let cooperative = self.cooperative.map(|flavour| flavour.changed(changes));
        Ok(Self {
            preemptive: self.preemptive.changed(changes)?,
            cooperative: cooperative.transpose()?,
        })
    }

    /// The one that was recorded under this scheduler, `pbg` or `pbg-coop`.
    pub fn recorded_as(&self, scheduler: &str) -> Option<&Flavour> {
        match scheduler {
            "pbg" => Some(&self.preemptive),
            _ => self.cooperative.as_ref(),
        }
    }

    /// The one that is played under this policy.
    pub fn of(&self, policy: &Policy) -> &Flavour {
        match &self.cooperative {
            Some(cooperative) if !policy.is_preemptive() => cooperative,
            _ => &self.preemptive,
        }
    }
}

/// Refuses two recordings that are not of the same program on the same architecture.
pub fn of_one_program(file: &Path, one: &StoredProfile, other: &StoredProfile) -> Result<()> {
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

/// What ran: without preemption the base policy's slices end nothing.
fn ran(profile: &StoredProfile, preempts: bool) -> Option<&'static Policy> {
    match preempts {
        true => base(profile),
        false => Policy::named("fifo"),
    }
}

/// What ran while it was recorded: a base policy of PBG's, or another that was recorded by the
/// layer around it.
fn base(profile: &StoredProfile) -> Option<&'static Policy> {
    let base = Policy::named(profile.header.policy.as_str())?;
    (!base.follows_plan()).then_some(base)
}

/// The row of costs of what ran then. Of a policy within the recording layer there is none: what
/// that takes in a switch stays in the tasks' time (`docs/simulate.md`).
fn recorded_as(base: &'static Policy) -> &'static str {
    match base.name() {
        "rr" | "fifo" => "pbg measure",
        other => other,
    }
}

/// The steps of a recording: those that the model takes in a run of it.
struct Steps {
    /// Run intervals and wakes of all tasks, and ticks of one CPU until the last task has ended,
    /// if the waits of a task begin after those of its parent.
    total: f64,
    /// The task that adds most, and by what.
    most: String,
}

impl Steps {
    fn of(profile: &StoredProfile) -> Self {
        let clock = Clock::of_frequency(profile.header.frequency_hz);
        let (mut steps, mut run_ns, mut last_ns) = (0.0, 0.0, 0.0_f64);
        let (mut largest, mut most) = (0.0, String::new());
        // Until when a task waits, by its place.
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
                Place::Root { .. } | Place::Several => task.spawned.map_or(0.0, |spawned| {
                    let latest = spawned.parent_run.total.max(spawned.parent_woken.total);
                    clock.ns(latest as f64) / runs
                }),
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

/// The recording in a file, if it is one that can be played.
pub fn recording(file: &Path, args: &RecordingArgs) -> Result<StoredProfile> {
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
