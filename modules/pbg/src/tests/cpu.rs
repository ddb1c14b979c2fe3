//! A [bench](sched_model::bench) with PBG on it, and the programs that the tests play there.

use alloc::collections::BTreeMap;
use core::ops::{Deref, DerefMut};

use crate::*;
use pbg_profile::{Program, ProgramName, StoredProfile, StoredTask};
use sched_core::clock::VirtualClock;
use sched_core::units::TaskKey;
pub use sched_model::bench::TICK;
use sched_model::bench::{self, Bench};

type Scheduler = PbgScheduler<&'static str, VirtualClock, PerThread>;

impl bench::Scheduler for Scheduler {
    type State = PbgState;
}

pub type Handle = bench::Handle<Scheduler>;

/// A bench with PBG on it, and its control.
pub struct Cpu {
    bench: Bench<Scheduler>,
    pub control: &'static Control,
    pub gc: Handle,
}

impl Deref for Cpu {
    type Target = Bench<Scheduler>;
    fn deref(&self) -> &Bench<Scheduler> {
        &self.bench
    }
}

impl DerefMut for Cpu {
    fn deref_mut(&mut self) -> &mut Bench<Scheduler> {
        &mut self.bench
    }
}

impl Cpu {
    /// Sets up a queue as `axtask` does: `gc` is in it, and `main` runs.
    pub fn boot() -> Self {
        let control = PerThread::renew();
        let mut bench = Bench::new();
        let gc = bench.spawn("gc");
        Self { bench, control, gc }
    }

    /// Boots, and starts to measure.
    pub fn measuring() -> Self {
        let cpu = Self::boot();
        cpu.control.measure_start().unwrap();
        cpu
    }

    /// Spawns tasks with these labels, which are their names, too.
    pub fn spawn_labelled(&mut self, labels: &[&'static str]) {
        for label in labels {
            self.control.label_next(label).unwrap();
            self.spawn(label);
        }
    }

    /// Spawns tasks with these names.
    pub fn spawn_all(&mut self, names: impl IntoIterator<Item = &'static str>) {
        names.into_iter().for_each(|name| drop(self.spawn(name)));
    }

    /// Returns how many of the next `ticks` ticks each task has, where those of `yielders` yield
    /// as soon as they have the CPU.
    pub fn shares_beside(
        &mut self,
        yielders: &[&str],
        ticks: usize,
    ) -> BTreeMap<&'static str, usize> {
        let mut had = BTreeMap::new();
        for _ in 0..ticks {
            while yielders.contains(&self.name()) {
                self.yield_now();
            }
            *had.entry(self.name()).or_default() += 1;
            self.tick();
        }
        had
    }

    pub fn status(&self) -> Status {
        self.control.status().unwrap()
    }

    /// Returns how many spawned tasks the plan knows, and how many it does not.
    pub fn matches(&self) -> (u32, u32) {
        let status = self.status();
        (status.matched, status.unplanned)
    }

    pub fn measure_end(&self) -> Result<usize, Error> {
        self.control.measure_end_by::<VirtualClock>()
    }

    /// Ends the measurement, which has recorded `tasks` tasks, and starts to follow its plan.
    pub fn follow(&self, tasks: usize) {
        assert_eq!(self.measure_end(), Ok(tasks));
        assert_eq!(self.control.start_pbg(), Ok(tasks));
    }

    pub fn about(&self) -> About {
        let program = Program {
            name: ProgramName::new("test").unwrap(),
            hash: 1,
        };
        About {
            program,
            frequency_hz: 1_000_000_000,
            cpus: 1,
            timing: pbg_profile::Timing::Counted,
        }
    }

    pub fn profile(&self) -> StoredProfile {
        let profile = self.control.profile(&self.about()).unwrap().unwrap();
        profile.validate().unwrap();
        profile
    }

    /// Returns the keys of the recorded tasks.
    pub fn keys(&self) -> Vec<TaskKey> {
        self.profile().tasks.iter().map(|task| task.key).collect()
    }
}

pub fn task(name: &'static str) -> Handle {
    bench::task::<Scheduler>(name)
}

/// Measures a program in which `main` spawns one task for each of `runs`, which runs once for that
/// long. `main` runs again afterwards.
pub fn measured(runs: &[(&'static str, u64)]) -> Cpu {
    let mut cpu = Cpu::measuring();
    cpu.spawn_all(runs.iter().map(|run| run.0));
    cpu.trace("block>gc, block");
    for (name, run) in runs {
        assert_eq!(cpu.name(), *name);
        cpu.run(*run);
        cpu.block();
    }
    cpu.trace("on>idle, wake main, pick>main");
    assert_eq!(cpu.measure_end(), Ok(runs.len()));
    cpu
}

/// Measures the same program, and starts to follow its plan.
pub fn replaying(runs: &[(&'static str, u64)]) -> Cpu {
    let cpu = measured(runs);
    assert_eq!(cpu.control.start_pbg(), Ok(runs.len()));
    cpu
}

/// Follows a plan of these tasks. All are ready with the first one running, the tasks of `unknown`,
/// which are not in the plan, are ready behind them, and `main`, the root, is asleep.
pub fn following(plan: &[(&'static str, u64)], unknown: &[&'static str]) -> Cpu {
    let mut cpu = replaying(plan);
    cpu.spawn_all(plan.iter().map(|(name, _)| *name));
    cpu.spawn_all(unknown.iter().copied());
    cpu.trace("block");
    cpu
}

/// Follows a plan of one long task, which runs, beside a task that is not in the plan.
pub fn beside_an_outsider() -> Cpu {
    following(&[("planned", 1_000_000_000)], &["outsider"])
}

pub fn runs(profile: &StoredProfile) -> Vec<u64> {
    let run = |task: &StoredTask| task.figures.run.total;
    profile.tasks.iter().map(run).collect()
}

/// Measures `a`, which blocks for `asleep` after each of `bursts` and then runs for 1, and `b`,
/// which runs for `run`.
pub fn with_a_task_that_blocks(bursts: &[u64], asleep: u64, run: u64) -> Cpu {
    let mut cpu = Cpu::measuring();
    cpu.trace("spawn a, spawn b, block>gc, block>a");
    for burst in bursts {
        cpu.run(*burst);
        cpu.trace("block");
        if cpu.name() == "b" {
            cpu.run(run);
            cpu.block();
        }
        cpu.run(asleep);
        cpu.trace("wake a, pick>a");
    }
    cpu.run(1);
    cpu.block();
    cpu.trace("wake main, pick");
    cpu.follow(2);
    cpu
}

/// Edits the profile as a user would, and loads it.
pub fn edited(cpu: &Cpu, edit: impl Fn(&mut [StoredTask])) {
    let mut profile = cpu.profile();
    edit(&mut profile.tasks);
    let bytes = pbg_profile::encode(&profile).unwrap();
    let about = cpu.about();
    assert_eq!(cpu.control.load(&bytes, &about), Ok(profile.tasks.len()));
}

/// Demotes the running task, which yields until rule 8 applies.
pub fn demote(cpu: &mut Cpu) {
    let before = cpu.status().demoted;
    cpu.trace(&std::format!("{}x yield", UNPLANNED_YIELD_ALLOWANCE + 1));
    assert_eq!(cpu.status().demoted, before + 1);
}
