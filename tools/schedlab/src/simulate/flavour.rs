//! A recording as it is played: less what its own scheduler took.

use std::path::Path;

use anyhow::{Result, bail};
use axsched_ext::pbg::stored::{Program, StoredProfile, Timing};
use sched_sim::{
    calibrate::calibrate, play::Machine, policies::Policy, time::Clock, workload::Workload,
};

use super::costs::Costs;
use crate::{cli::RecordingArgs, profile::read};

/// The time between two ticks of ArceOS, in nanoseconds. A recording does not say it.
pub const TICK_NS: u64 = 10_000_000;

/// What was recorded by kernels that preempt, or by those that do not: they do different work,
/// as guards cost something in the one and nothing in the other.
pub struct Flavour {
    pub profile: StoredProfile,
    pub workload: Workload,
    /// One CPU, at the first phase of the tick.
    pub machine: Machine,
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
        };
        let recorded = Workload::recorded(&profile, clock, TICK_NS);
        // What ran then: without preemption the base policy's slices end nothing.
        let (base, policy) = match preempts {
            true => ("rr", "pbg"),
            false => ("fifo", "pbg-coop"),
        };
        let base = Policy::named(base).expect("a policy of the list");
        let cost = costs.of_yield(arch, &format!("{policy} measure"))?;
        let calibrated = calibrate(&recorded, base, &profile, &cost, &machine)?;
        Ok(Self {
            workload: calibrated.workload,
            profile,
            machine,
        })
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
    if header.timing == Timing::Real {
        bail!(
            "{file}: expected a recording in counted time, found one in real time, where a count is no instruction"
        );
    }
    if profile.tasks.is_empty() {
        bail!("{file}: expected a recording with tasks, found none");
    }
    Ok(profile)
}
