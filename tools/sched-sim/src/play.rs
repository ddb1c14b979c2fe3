//! Plays a workload under a policy.
//!
//! Its [`programs`](crate::programs) are played by the model of `axtask`
//! ([`axsched_ext::model`]), whose time unit is a nanosecond here. The time of the results begins
//! when main spawns the first task. What a switch costs is of the table of costs; a tick, a wake
//! and a spawn cost what a call does.

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
    trace::{Traced, Who},
    workload::{Arrival, Workload},
};

/// The machine that a workload is played on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// 1 to 64.
    pub cpus: usize,
    /// The time between two ticks, in nanoseconds.
    pub tick_ns: u64,
    /// How long after a tick the tasks are submitted, in nanoseconds, less than a tick.
    pub phase_ns: u64,
    /// What a switch from one task to another takes itself, in nanoseconds.
    pub switch_ns: u64,
    /// What the program's own instrument takes in it, in nanoseconds.
    pub hook_ns: u64,
    /// The counter that policies read.
    pub clock: Clock,
    /// What the CPUs share, under policies that can.
    pub sharing: Sharing,
    /// A task that was preempted has to go on where it was, as on riscv64.
    pub preempted_stay: bool,
}

/// How long an interrupt of another CPU takes to arrive, in nanoseconds. On QEMU it was seen to take
/// 15,000 to 80,000.
pub const INTERRUPT_NS: u64 = 20_000;

/// What a task came to. Times in nanoseconds since the first was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Its name.
    pub name: String,
    /// When it was submitted: spawned, or due if main was late.
    pub submit_ns: u64,
    /// When it first got a CPU.
    pub first_run_ns: u64,
    /// When it had ended.
    pub finish_ns: u64,
    /// How long it had a CPU.
    pub run_ns: u64,
    /// How often it got a CPU from another task.
    pub dispatches: u64,
    /// How often it yielded.
    pub yields: u64,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The tasks, in the order of the workload.
    pub tasks: Vec<Played>,
    /// Switches with a task of the workload at either end.
    pub switches: u64,
    /// How often all tasks waited for each other, and one was let go: the recording does not say
    /// enough of who waits for whom.
    pub broken_waits: u64,
    /// What PBG says of the plan that it followed; `None` where nobody followed one.
    pub plan: Option<Status>,
}

impl Outcome {
    /// The average turnaround.
    pub fn average_ns(&self) -> f64 {
        let turnaround = |task: &Played| (task.finish_ns - task.submit_ns) as f64;
        self.tasks.iter().map(turnaround).sum::<f64>() / self.tasks.len() as f64
    }
}

/// Why a workload cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The model found that the policy broke a rule, or the workload never ends.
    #[error("{policy}: {failure}")]
    Failed {
        /// The policy.
        policy: &'static str,
        /// What was found.
        failure: Box<Failure>,
    },
    /// The plan cannot be made of the recording.
    #[error("{policy}: the recording makes no plan: {why}")]
    NoPlan {
        /// The policy.
        policy: &'static str,
        /// What was found.
        why: String,
    },
}

/// What a pick costs is told apart up to so many tasks.
const MOST_TASKS: u64 = 1 << 13;
/// Plays `workload` once under `policy`; one that follows a plan follows that of `plan`.
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

/// The same run, and who had which CPU when: its first `most` switches and wakes, whose log takes
/// 16 bytes each while it is played.
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
    let traced = Traced::new(&report.log, &whos(&report), start_ns);
    Ok((outcome, traced))
}

/// What it came to, the model's report, and when the first task was submitted.
fn play_logged(
    workload: &Workload,
    policy: &Policy,
    plan: &StoredProfile,
    costs: &YieldCost,
    machine: &Machine,
    log_records: usize,
) -> Result<(Outcome, Report, u64), PlayError> {
    machine.clock.install();
    if policy.follows_plan() {
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
    let programs = Programs::new(workload, policy.follows_plan());
    let main = programs.main(machine.tick_ns, machine.phase_ns);
    let report = policy
        .run(machine.sharing, &config, &main)
        .map_err(|failure| PlayError::Failed {
            policy: policy.name(),
            failure,
        })?;
    let mut plan = None;
    if policy.follows_plan() {
        let status = PerThread::control().status();
        PerThread::retire();
        plan = status
            .ok()
            .filter(|_| policy.follows_plan_on(machine.cpus, machine.sharing));
        if plan.is_some_and(|status| status.planned == 0) {
            return Err(PlayError::NoPlan {
                policy: policy.name(),
                why: "start_pbg was refused".to_owned(),
            });
        }
    }
    // Those of the workload, in the order in which they were spawned.
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

/// Of a task of the workload, which one it is.
fn number(task: &TaskReport) -> Option<usize> {
    let number = task.label.name.strip_prefix(MARK)?;
    Some(number.parse().expect("its number is its name"))
}

/// Who each task of the model is, by its id.
fn whos(report: &Report) -> Vec<Who> {
    let idle = &report.log.idle;
    let mut whos = vec![Who::Main; idle.len() + report.tasks.len()];
    for (cpu, id) in idle.iter().enumerate() {
        whos[id.0] = Who::Idle(cpu);
    }
    // Each CPU's is made with that CPU.
    let mut gcs = 0;
    for task in &report.tasks {
        whos[task.label.id.0] = match number(task) {
            Some(number) => Who::Task(number),
            None if task.label.id == TaskId::MAIN => Who::Main,
            None => {
                gcs += 1;
                Who::Gc(gcs - 1)
            }
        };
    }
    whos
}

/// What PBG knows a task by.
fn label(number: usize) -> String {
    format!("{MARK}{number}")
}

/// Makes this the recording that PBG's plan is of.
fn load(profile: &StoredProfile) -> Result<(), String> {
    // What is played is its machine, not this one; and a task is who has its number, whatever
    // it was known by.
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
        // On several CPUs that share nothing PBG says no, and its fallback runs.
        let _ = control.start_pbg();
        return;
    }
    // The label is one: see `load`.
    let _ = control.label_next(&label(what as usize));
}
