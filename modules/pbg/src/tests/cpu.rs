//! A [bench](sched_model::bench) with PBG on it, and the programs that the tests play there.

use alloc::collections::BTreeMap;
use core::ops::{Deref, DerefMut};

use crate::*;
use pbg_profile::{Program, ProgramName, StoredProfile, StoredTask};
use sched_core::clock::VirtualClock;
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
    /// A queue as `axtask` sets it up: `gc` is in it, `main` runs.
    pub fn boot() -> Self {
        let control = PerThread::renew();
        let mut bench = Bench::new();
        let gc = bench.spawn("gc");
        Self { bench, control, gc }
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

    pub fn measure_end(&self) -> Result<usize, Error> {
        self.control.measure_end_by::<VirtualClock>()
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
}

pub fn task(name: &'static str) -> Handle {
    bench::task::<Scheduler>(name)
}

/// Measures a program in which `main` spawns one task for each of `runs` and
/// each runs once for so long; `main` runs again afterwards.
pub fn measured(runs: &[(&'static str, u64)]) -> Cpu {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    for (name, _) in runs {
        cpu.spawn(name);
    }
    let main = cpu.block();
    assert_eq!(cpu.name(), "gc");
    cpu.block();
    for (name, run) in runs {
        assert_eq!(cpu.name(), *name);
        cpu.run(*run);
        cpu.block();
    }
    assert_eq!(cpu.name(), "idle");
    cpu.wake(&main);
    assert_eq!(cpu.pick(), "main");
    assert_eq!(cpu.measure_end(), Ok(runs.len()));
    cpu
}

/// The same, and then the replay begins.
pub fn replaying(runs: &[(&'static str, u64)]) -> Cpu {
    let cpu = measured(runs);
    assert_eq!(cpu.control.start_pbg(), Ok(runs.len()));
    cpu
}

/// A plan of these tasks is followed; all are ready with the first one running, `unknown` ones that the plan does
/// not know stand behind them, and `main`, the root, has blocked.
pub fn following(plan: &[(&'static str, u64)], unknown: &[&'static str]) -> (Cpu, Handle) {
    let mut cpu = replaying(plan);
    let planned = plan.iter().map(|(name, _)| *name);
    for name in planned.chain(unknown.iter().copied()) {
        cpu.spawn(name);
    }
    let main = cpu.block();
    (cpu, main)
}

pub fn runs(profile: &StoredProfile) -> Vec<u64> {
    let run = |task: &StoredTask| task.figures.run.total;
    profile.tasks.iter().map(run).collect()
}

/// Measures `a`, which blocks for `asleep` after each of `bursts` and then runs for 1,
/// and `b`, which runs for `run`.
pub fn with_a_task_that_blocks(bursts: &[u64], asleep: u64, run: u64) -> Cpu {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("a");
    cpu.spawn("b");
    let main = cpu.block();
    cpu.block(); // gc
    assert_eq!(cpu.name(), "a");
    for burst in bursts {
        cpu.run(*burst);
        let a = cpu.block();
        if cpu.name() == "b" {
            cpu.run(run);
            cpu.block();
        }
        cpu.run(asleep);
        cpu.wake(&a);
        assert_eq!(cpu.pick(), "a");
    }
    cpu.run(1);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    assert_eq!(cpu.measure_end(), Ok(2));
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    cpu
}

/// Edits the profile as a user would, and takes it over.
pub fn edited(cpu: &Cpu, edit: impl Fn(&mut [StoredTask])) {
    let mut profile = cpu.profile();
    edit(&mut profile.tasks);
    let bytes = pbg_profile::encode(&profile).unwrap();
    let about = cpu.about();
    assert_eq!(cpu.control.load(&bytes, &about), Ok(profile.tasks.len()));
}

/// The running task yields until it is demoted (rule 8).
pub fn demote(cpu: &mut Cpu) {
    let before = cpu.status().demoted;
    for _ in 0..=FREE_YIELDS {
        cpu.yield_now();
    }
    assert_eq!(cpu.status().demoted, before + 1);
}

pub const WRONG: [&str; 7] = ["w1", "w2", "w3", "w4", "w5", "w6", "w7"];
