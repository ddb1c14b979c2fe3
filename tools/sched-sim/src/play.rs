//! Plays a workload under a policy.
//!
//! Its [`programs`](crate::programs) are played by the model of `axtask` ([`axsched_ext::model`]),
//! whose time unit is a nanosecond here. The time of the results begins when main spawns the first
//! task. The cost of a switch is in the table of costs; a tick, a wake and a spawn cost as much as
//! a call.

use std::num::NonZeroUsize;

use axsched_ext::{
    model::{Config, Failure, Report, TaskId, TaskReport},
    pbg::{
        About, ControlSource, PerThread, Status,
        stored::{Architecture, Label, StoredProfile, encode},
    },
    units::TaskKey,
};

use crate::{
    costs::YieldCost,
    policies::{Policy, Sharing},
    programs::{MARK, Programs, START},
    time::{Clock, set_now},
    trace::{Thread, Traced},
    workload::{Arrival, Workload},
};

/// The machine that a workload is played on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The number of CPUs, 1 to 64.
    pub cpus: usize,
    /// The time between two ticks, in nanoseconds.
    pub tick_ns: u64,
    /// The time from a tick to the submission of the tasks, in nanoseconds, less than a tick.
    pub phase_ns: u64,
    /// The time of the switch itself from one task to another, in nanoseconds.
    pub switch_ns: u64,
    /// The time of the program's own instrument in a switch, in nanoseconds.
    pub hook_ns: u64,
    /// The counter that policies read.
    pub clock: Clock,
    /// The way in which the CPUs share their work, under policies that can.
    pub sharing: Sharing,
    /// True if a preempted task must run next on the CPU that it was on, as on riscv64.
    pub preempted_stay: bool,
}

/// The delay of an IPI, in nanoseconds. On QEMU 15,000 to 80,000 were measured.
pub const INTERRUPT_NS: u64 = 20_000;

/// The result of a task. Times are in nanoseconds since the first was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The name of the task in the workload.
    pub name: String,
    /// The time at which it was spawned, or was due if main was late.
    pub submit_ns: u64,
    /// The time at which it first got a CPU.
    pub first_run_ns: u64,
    /// The time at which it ended.
    pub finish_ns: u64,
    /// The time for which it had a CPU.
    pub run_ns: u64,
    /// The number of times that it got a CPU from another task.
    pub dispatches: u64,
    /// The number of its yields.
    pub yields: u64,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The tasks, in the order of the workload.
    pub tasks: Vec<Played>,
    /// Switches with a task of the workload at either end.
    pub switches: u64,
    /// The number of times that all tasks waited for each other, and one was let go. If it is not
    /// 0, the recording does not tell enough about the waits.
    pub broken_waits: u64,
    /// The status of PBG; `None` if no plan was followed.
    pub plan: Option<Status>,
}

impl Outcome {
    /// Returns the average turnaround.
    pub fn average_ns(&self) -> f64 {
        let turnaround = |task: &Played| (task.finish_ns - task.submit_ns) as f64;
        self.tasks.iter().map(turnaround).sum::<f64>() / self.tasks.len() as f64
    }
}

/// The reason why a workload cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The model found that the policy broke a rule, or the workload never ends.
    #[error("{policy}: {failure}")]
    Failed {
        /// The name of the policy that was played.
        policy: &'static str,
        /// The failure that the model reports.
        failure: Box<Failure>,
    },
    /// The plan cannot be made of the recording.
    #[error("{policy}: the recording makes no plan: {why}")]
    NoPlan {
        /// The name of the policy that needs the plan.
        policy: &'static str,
        /// The reason that PBG gives.
        why: String,
    },
}

/// The cost of a pick grows with the number of tasks up to this one.
const MOST_TASKS: u64 = 1 << 13;

/// Plays `workload` once under `policy`. A policy that follows a plan takes it from `plan`.
///
/// # Errors
/// See [`PlayError`].
pub fn play(
    workload: &Workload,
    policy: &Policy,
    plan: &StoredProfile,
    costs: &YieldCost,
    machine: &Machine,
) -> Result<Outcome, PlayError> {
    let (outcome, ..) = play_logged(workload, policy, plan, costs, machine, 0)?;
    Ok(outcome)
}

/// Plays `workload` like [`play`], and returns the trace of its first `most` switches and wakes as
/// well. Their log takes 16 bytes each during the run.
///
/// # Errors
/// See [`PlayError`].
pub fn play_traced(
    workload: &Workload,
    policy: &Policy,
    plan: &StoredProfile,
    costs: &YieldCost,
    machine: &Machine,
    most: NonZeroUsize,
) -> Result<(Outcome, Traced), PlayError> {
    let (outcome, report, start_ns) =
        play_logged(workload, policy, plan, costs, machine, most.get())?;
    let traced = Traced::new(&report.log, &threads(&report), start_ns);
    Ok((outcome, traced))
}

/// Returns the outcome, the model's report, and the time at which the first task was submitted.
fn play_logged(
    workload: &Workload,
    policy: &Policy,
    plan: &StoredProfile,
    costs: &YieldCost,
    machine: &Machine,
    log_records: usize,
) -> Result<(Outcome, Report, u64), PlayError> {
    machine.clock.install();
    if policy.is_planned() {
        load(plan).map_err(|why| PlayError::NoPlan {
            policy: policy.name(),
            why,
        })?;
    }
    let tasks = workload.jobs.len() as u64;
    let alone_ns = costs.alone_ns().round().max(1.0) as u64;
    let by_load = (0..=MOST_TASKS.ilog2()).map(|load| {
        let pick = costs.kept_ns(1 << load, machine.switch_ns as f64) - costs.alone_ns();
        pick.round().max(0.0) as u64
    });
    let config = Config {
        cpus: machine.cpus,
        preempt: policy.is_preemptive(),
        tick_period: machine.tick_ns,
        call_cost: alone_ns,
        switch_cost: machine.switch_ns + machine.hook_ns,
        gc_look_cost: workload.gc_look_ns.unwrap_or(0.0).round() as u64,
        pick_cost_by_load: by_load.collect(),
        on_time: set_now,
        on_call,
        repick_after_yield: true,
        stealing: true,
        interrupts: |_| [Some(INTERRUPT_NS), None],
        preempted_stay: machine.preempted_stay && machine.sharing == Sharing::Balanced,
        time_limit: Some(u64::MAX / 4),
        trace_events: 0,
        breaks_deadlocks: true,
        log_records,
        is_checked: false,
        ..Config::default()
    };
    let programs = Programs::new(workload, policy.is_planned());
    let main = programs.main(machine.tick_ns, machine.phase_ns);
    let report = policy
        .run(machine.sharing, &config, &main)
        .map_err(|failure| PlayError::Failed {
            policy: policy.name(),
            failure,
        })?;
    let mut plan = None;
    if policy.is_planned() {
        let status = PerThread::control().status();
        PerThread::retire();
        plan = status
            .ok()
            .filter(|_| policy.is_planned_on(machine.cpus, machine.sharing));
        if plan.is_some_and(|status| status.planned == 0) {
            return Err(PlayError::NoPlan {
                policy: policy.name(),
                why: "start_pbg was refused".to_owned(),
            });
        }
    }
    // The tasks of the workload, in its order.
    let mut spawned: Vec<&TaskReport> = Vec::with_capacity(workload.jobs.len());
    spawned.extend(report.tasks.iter().filter(|task| number(task).is_some()));
    assert_eq!(spawned.len() as u64, tasks, "all tasks have been spawned");
    spawned.sort_by_key(|task| number(task));
    let start = spawned.iter().map(|task| task.submitted).min().unwrap_or(0);
    let played = workload.jobs.iter().zip(spawned).map(|(job, task)| {
        let since = |time: Option<u64>| time.expect("it has ended") - start;
        Played {
            name: job.name.clone(),
            submit_ns: match (job.parent, job.arrival) {
                (None, Arrival::At(due_ns)) => due_ns.round() as u64,
                _ => task.submitted - start,
            },
            first_run_ns: since(task.first_run),
            finish_ns: since(task.finished),
            run_ns: task.run_time,
            dispatches: task.switches,
            yields: task.yields,
        }
    });
    let outcome = Outcome {
        tasks: played.collect(),
        switches: report.program_switches,
        broken_waits: report.broken_waits,
        plan,
    };
    Ok((outcome, report, start))
}

/// Returns the number of a task of the workload.
fn number(task: &TaskReport) -> Option<usize> {
    let number = task.label.name.strip_prefix(MARK)?;
    Some(number.parse().expect("its number is its name"))
}

/// Returns the tasks of the model by their ids.
fn threads(report: &Report) -> Vec<Thread> {
    let idle = &report.log.idle;
    let mut threads = vec![Thread::Main; idle.len() + report.tasks.len()];
    for (cpu, id) in idle.iter().enumerate() {
        threads[id.0] = Thread::Idle(cpu);
    }
    // The model creates the gc tasks in the order of their CPUs.
    let mut gcs = 0;
    for task in &report.tasks {
        threads[task.label.id.0] = match number(task) {
            Some(number) => Thread::Task(number),
            None if task.label.id == TaskId::MAIN => Thread::Main,
            None => {
                gcs += 1;
                Thread::Gc(gcs - 1)
            }
        };
    }
    threads
}

/// Returns the label by which PBG knows a task.
fn label(number: usize) -> String {
    format!("{MARK}{number}")
}

/// Loads the recording from which PBG makes its plan.
fn load(profile: &StoredProfile) -> Result<(), String> {
    // The machine that is played is not this one, and a task is known by its number alone.
    let mut here = profile.clone();
    here.header.architecture = Architecture::HERE;
    for (i, task) in here.tasks.iter_mut().enumerate() {
        let name = label(i);
        task.key = TaskKey::labelled(&name);
        task.label = Some(Label::new(&name).map_err(|error| error.to_string())?);
    }
    let bytes = encode(&here).map_err(|error| error.to_string())?;
    let about = About {
        cpus: here.header.cpus,
        program: here.header.program,
        timing: here.header.timing,
        frequency_hz: here.header.frequency_hz,
    };
    let loaded = PerThread::renew().load(&bytes, &about);
    loaded.map(drop).map_err(|error| error.to_string())
}

fn on_call(what: u32) {
    let control = PerThread::control();
    if what == START {
        // PBG refuses several CPUs that share nothing, and its base policy runs.
        let _ = control.start_pbg();
        return;
    }
    // `load` has checked the label.
    let _ = control.label_next(&label(what as usize));
}
