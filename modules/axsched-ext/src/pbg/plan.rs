//! The plan: a pure function of the profile.

use alloc::vec::Vec;

use super::measure::MAX_TASKS;
use super::profile::{Profile, TaskProfile};
use crate::syscall::Error;
use crate::units::{Counts, TaskKey};

/// One task of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedTask {
    /// Who it is.
    pub key: TaskKey,
    /// The time on the CPU that it is expected to use.
    pub run: Counts,
}

/// An order of tasks; the place in it is the rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    tasks: Vec<PlannedTask>,
}

impl Plan {
    /// Shortest on-CPU time first, ties by the order of spawning (rule 5).
    ///
    /// For tasks that are all there at the start and never block, this order has
    /// the least average turnaround of all on one CPU (Smith, 1956). Of a profile
    /// with more than [`MAX_TASKS`] tasks the longest are left to the fallback.
    ///
    /// # Errors
    /// [`Error::NoMemory`]. Cost: n log n, 16 bytes a task and 4 for the call.
    pub fn shortest_first(profile: &Profile) -> Result<Self, Error> {
        let profiles = profile.tasks();
        let mut order: Vec<u32> = Vec::new();
        let mut tasks = Vec::new();
        order
            .try_reserve_exact(profiles.len())
            .map_err(|_| Error::NoMemory)?;
        order.extend(0..profiles.len() as u32);
        // By (run, place) rather than by a stable sort, which allocates and aborts.
        order.sort_unstable_by_key(|&place| (profiles[place as usize].run, place));
        order.truncate(MAX_TASKS);
        tasks
            .try_reserve_exact(order.len())
            .map_err(|_| Error::NoMemory)?;
        tasks.extend(order.iter().map(|&place| {
            let TaskProfile { key, run, .. } = profiles[place as usize];
            PlannedTask { key, run }
        }));
        Ok(Self { tasks })
    }

    /// The tasks by rank.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(runs: &[u64]) -> Profile {
        let task = |(i, &run): (usize, &u64)| TaskProfile {
            key: TaskKey::ROOT.child(i as u32),
            run: Counts(run),
            dispatches: 1,
            yields: 0,
            preemptions: 0,
            departures: 1,
        };
        Profile::new(runs.iter().enumerate().map(task).collect(), 0).unwrap()
    }

    #[test]
    fn rule_5_shortest_first_ties_by_spawning() {
        let plan = Plan::shortest_first(&profile(&[9, 3, 5, 3, 0])).unwrap();
        let order: Vec<_> = plan.tasks().iter().map(|t| t.run.0).collect();
        assert_eq!(order, [0, 3, 3, 5, 9]);
        assert_eq!(plan.tasks()[1].key, TaskKey::ROOT.child(1));
        assert_eq!(plan.tasks()[2].key, TaskKey::ROOT.child(3));
    }

    #[test]
    fn rule_4_the_longest_beyond_the_limit_are_left_out() {
        let runs: Vec<u64> = (0..MAX_TASKS as u64 + 10).rev().collect();
        let plan = Plan::shortest_first(&profile(&runs)).unwrap();
        assert_eq!(plan.tasks().len(), MAX_TASKS);
        assert_eq!(
            plan.tasks().last().unwrap().run,
            Counts(MAX_TASKS as u64 - 1)
        );
    }
}
