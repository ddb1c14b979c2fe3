//! Plays a workload under a policy.
//!
//! The program is played by the model of `axtask` ([`axsched_ext::model`]), whose time unit is
//! a nanosecond here. Main runs for some ticks first, so that every policy knows how long a
//! tick is, sleeps until one, and then submits all tasks, none of which may start before the
//! last is there on CPU 0; the time of the results begins there. Then it waits at a latch until all
//! have ended. What a switch costs is of the table of costs; a tick, a wake and a
//! spawn cost what a call does.

use axsched_ext::{
    model::{Config, Failure, Op, Program, TaskReport},
    pbg::{
        About, ControlSource, PerThread, Status,
        stored::{Architecture, Label, StoredProfile, encode},
    },
    units::TaskKey,
};

use crate::{
    costs::YieldCost,
    policies::Policy,
    time::{Clock, set_now},
    workload::{Job, Then, Work, Workload},
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
}

/// What a task came to. Times in nanoseconds since the first was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Its name.
    pub name: String,
    /// When it was spawned.
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
/// The wait queue at which main waits for all.
const ALL_DONE: u8 = 0;
/// How many ticks main runs before the tasks come.
const WARM_UP_TICKS: u64 = 4;

/// In place of a task's number: follow the plan.
const START: u32 = u32::MAX;

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
        time_limit: Some(u64::MAX / 4),
        trace_events: 0,
        is_checked: false,
        ..Config::default()
    };
    let main = main_program(workload, policy, machine);
    let report = policy
        .run(&config, &main)
        .map_err(|failure| PlayError::Failed {
            policy: policy.name(),
            failure,
        })?;
    let mut plan = None;
    if policy.follows_plan() {
        let status = PerThread::control().status();
        PerThread::retire();
        plan = status.ok().filter(|_| machine.cpus == 1);
        if plan.is_some_and(|status| status.planned == 0) {
            return Err(PlayError::NoPlan {
                policy: policy.name(),
                why: "start_pbg was refused".to_owned(),
            });
        }
    }
    // Those of the workload, in the order in which they were spawned.
    let mut spawned: Vec<&TaskReport> = Vec::with_capacity(workload.jobs.len());
    spawned.extend(
        report
            .tasks
            .iter()
            .filter(|task| task.label.name.starts_with(MARK)),
    );
    assert_eq!(spawned.len() as u64, tasks, "all tasks have been spawned");
    let number = |task: &&TaskReport| task.label.name[MARK.len()..].parse::<usize>();
    spawned.sort_by_key(|task| number(task).expect("its number is its name"));
    let start = spawned.iter().map(|task| task.submitted).min().unwrap_or(0);
    let played = workload.jobs.iter().zip(spawned).map(|(job, task)| {
        let since = |time: Option<u64>| time.expect("it has ended") - start;
        Played {
            name: job.name.clone(),
            submit_ns: task.submitted - start,
            first_run_ns: since(task.first_run),
            finish_ns: since(task.finished),
            run_ns: task.run_time,
            dispatches: task.switches,
            yields: task.yields,
        }
    });
    Ok(Outcome {
        tasks: played.collect(),
        switches: report.program_switches,
        plan,
    })
}

/// The name of a task of the workload in the model begins so, and goes on with its number.
const MARK: &str = "job ";

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
        // On several CPUs PBG says no, and its fallback runs.
        let _ = control.start_pbg();
        return;
    }
    // The label is one: see `load`.
    let _ = control.label_next(&label(what as usize));
}

/// What main does: see the head of this file.
fn main_program(workload: &Workload, policy: &Policy, machine: &Machine) -> Program {
    let tick = machine.tick_ns;
    // It begins with the first tick a whole one away, and wakes at a tick.
    let mut ops = vec![
        Op::Run(WARM_UP_TICKS * tick + tick / 2),
        Op::Sleep(tick / 4),
    ];
    if policy.follows_plan() {
        ops.push(Op::Call(START));
        // The scheduler takes the call up when its giver next has the CPU.
        ops.push(Op::Yield);
    }
    ops.extend([Op::Run(machine.phase_ns), Op::PreemptOff]);
    let children = |of: Option<usize>| {
        (0..workload.jobs.len()).filter(move |&i| workload.jobs[i].parent == of)
    };
    for (nth, i) in children(None).enumerate() {
        ops.extend(spawn(workload, i, policy));
        ops.push(Op::DropHandle(nth));
    }
    ops.push(Op::PreemptOn);
    let (queue, timeout) = (ALL_DONE, None);
    ops.push(Op::Wait { queue, timeout });
    Program::new("main", ops)
}

fn spawn(workload: &Workload, i: usize, policy: &Policy) -> Vec<Op> {
    let mut ops = Vec::new();
    if policy.follows_plan() {
        ops.push(Op::Call(i as u32));
    }
    ops.push(Op::Spawn(program(workload, i, policy)));
    ops
}

/// What a task does: it spawns its children first, since nobody has noted when it did.
fn program(workload: &Workload, i: usize, policy: &Policy) -> Program {
    let job: &Job = &workload.jobs[i];
    let mut ops = Vec::new();
    let children = (0..workload.jobs.len()).filter(|&child| workload.jobs[child].parent == Some(i));
    for (nth, child) in children.enumerate() {
        ops.extend(spawn(workload, child, policy));
        ops.push(Op::DropHandle(nth));
    }
    for &Work {
        times,
        run_ns,
        then,
    } in &job.steps
    {
        let run = Op::Run(run_ns.round() as u64);
        let steps = match then {
            Then::Yield => vec![run, Op::Yield],
            Then::Sleep(ns) => vec![run, Op::Sleep(ns.round() as u64)],
            Then::Exit => vec![run],
        };
        let len = steps.len();
        ops.extend(steps);
        if times > 1 {
            ops.push(Op::Again {
                steps: len,
                times: times - 1,
            });
        }
    }
    let of = workload.jobs.len() as u64;
    ops.push(Op::CountDown {
        queue: ALL_DONE,
        of,
    });
    Program::new(&format!("{MARK}{i}"), ops)
}
