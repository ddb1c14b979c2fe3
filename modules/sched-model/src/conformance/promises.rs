//! The promises of a policy, and the result of the suite.

use std::fmt;

use crate::model::{Config, Failure, MaxWait, Program};

/// The facts that a bound on waiting may depend on.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// The number of all tasks of the run: programs, `main`, one `gc` per CPU, one helper per
    /// migration.
    pub tasks: u64,
    /// The longest time that a task computes while it forbids preemption.
    pub longest_guarded: u64,
    /// The [`Program::serial_time`] of `main`.
    pub serial_time: u64,
    /// True if a task [sets a priority](Program::has_priority_changes).
    pub has_priority_changes: bool,
    /// The machine on which they run.
    pub config: &'a Config,
}

impl<'a> Load<'a> {
    /// Returns the load of `main` and all that it spawns.
    pub fn of(main: &Program, config: &'a Config) -> Self {
        Self {
            tasks: (main.tasks() + config.cpus) as u64,
            longest_guarded: main.longest_guarded(),
            serial_time: main.serial_time(config),
            has_priority_changes: main.has_priority_changes(),
            config,
        }
    }
}

/// The facts on which a bound on the end of a job may depend. The job runs beside tasks that only
/// yield, on one CPU, and all are ready when it begins.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// The CPU time of the job, in ticks, rounded up.
    pub job_ticks: u64,
    /// The number of yielders, `gc` included.
    pub yielders: u64,
    /// The number of their yields in a tick.
    pub yields_per_tick: u64,
}

impl Beside {
    /// Returns the time in which each of the yielders runs once, in ticks, rounded up.
    pub fn round_ticks(&self) -> u64 {
        self.yielders.div_ceil(self.yields_per_tick)
    }
}

/// The promises of the policy under test beyond the rules, and the size of the test.
#[derive(Debug, Clone)]
pub struct Promises {
    /// Returns the longest wait of a ready task, by default without a bound. None is applied in
    /// rule 24, where a waker can take the CPU any number of times.
    pub max_wait: fn(&Load<'_>) -> MaxWait,
    /// Returns the number of ticks after which a job is done beside yielders. `None`, the default,
    /// is no bound, and rule 25 is not tried.
    pub done_beside: fn(&Beside) -> Option<u64>,
    /// True if the policy picks a task again that yielded, although others are ready. Only a plan
    /// may promise this.
    pub repick_after_yield: bool,
    /// The number of times in a row that `gc` may be picked while another task is ready.
    pub max_gc_streak: u64,
    /// The largest number of CPUs of the machines, 1 to 64.
    pub max_cpus: usize,
    /// The function that is told the time, as [`Config::on_time`].
    pub on_time: fn(u64),
    /// The number of random programs of rules 3, 26 and 27.
    pub random_programs: u32,
    /// The seed of these programs. The same seed gives the same programs.
    pub seed: u64,
}

impl Default for Promises {
    fn default() -> Self {
        Self {
            max_wait: |_| MaxWait::default(),
            done_beside: |_| None,
            repick_after_yield: false,
            max_gc_streak: 4,
            max_cpus: 4,
            on_time: |_| {},
            random_programs: 200,
            seed: 0,
        }
    }
}

/// The numbers of things that a passed [`check`](super::check) has tested, so that a test can assert that they are
/// enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// The number of rules that hold.
    pub rules: usize,
    /// The number of runs of the model.
    pub runs: u64,
    /// The number of tasks in all runs.
    pub tasks: u64,
    /// The number of picks that returned a task.
    pub dispatches: u64,
    /// The number of yields of all tasks.
    pub yields: u64,
    /// The number of preemptions of all tasks on the older line. On the newer one wakes force some, too.
    pub preemptions: u64,
    /// The number of wakes that had to wait for a CPU to finish switching away.
    pub wake_spins: u64,
}

/// The way in which a rule is broken.
#[derive(Debug, Clone)]
pub enum Broken {
    /// The scheduler, called by hand, gave a wrong answer.
    ByHand {
        /// The call that was made.
        call: String,
        /// The right answer.
        expected: String,
        /// The answer that it gave.
        found: String,
    },
    /// A run of the model failed.
    InModel {
        /// The machine that the model simulated.
        config: Box<Config>,
        /// The program that failed.
        program: Program,
        /// The failure of the run.
        failure: Box<Failure>,
    },
}

/// The first rule that does not hold.
#[derive(Clone)]
pub struct NotConformant {
    /// The rule's number in the [module docs](super).
    pub rule: usize,
    /// The rule's name there.
    pub name: &'static str,
    /// The way in which it is broken.
    pub broken: Broken,
}

impl fmt::Display for NotConformant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rule {}, {}, is broken", self.rule, self.name)?;
        match &self.broken {
            Broken::ByHand {
                call,
                expected,
                found,
            } => writeln!(f, "{call}: expected {expected}, found {found}"),
            Broken::InModel {
                config,
                program,
                failure,
            } => writeln!(f, "{failure}by {program:?}\non {config:?}"),
        }
    }
}

/// Formats as [`Display`](fmt::Display) does, so that a failed `unwrap()` can be read.
impl fmt::Debug for NotConformant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for NotConformant {}
