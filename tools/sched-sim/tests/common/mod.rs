//! A machine, costs and profiles for the tests of played workloads.
#![allow(dead_code, reason = "each test binary uses its part")]

#[path = "../../../../modules/axsched-ext/tests/common/profiles.rs"]
pub mod profiles;
pub mod programs;

use sched_sim::{
    costs::YieldCost,
    play::Machine,
    policies::{Policy, Sharing},
    time::Clock,
};

pub const MS: u64 = 1_000_000;
pub const TICK_NS: u64 = 10 * MS;

/// Returns a machine of `cpus` CPUs that share nothing, with a counter of a gigahertz.
pub fn machine(cpus: usize) -> Machine {
    Machine {
        cpus,
        tick_ns: TICK_NS,
        phase_ns: 0,
        switch_ns: 40,
        hook_ns: 0,
        clock: Clock::of_frequency(1_000_000_000),
        sharing: Sharing::None,
        preempted_stay: false,
    }
}

pub fn costs() -> YieldCost {
    YieldCost::new([(1, 100.0), (4, 140.0)])
}

pub fn policy(name: &str) -> &'static Policy {
    Policy::named(name).expect("there is such a policy")
}
