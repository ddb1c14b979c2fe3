//! The profile: what a run has shown, as plain data.

use alloc::vec::Vec;

use super::measure::Recorder;
use crate::syscall::Error;
use crate::units::{Counts, TaskKey};

/// What one task did while it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProfile {
    /// Who it is, on every run.
    pub key: TaskKey,
    /// Its time on the CPU.
    pub run: Counts,
    /// How often the CPU went over to it.
    pub dispatches: u64,
    /// How often it yielded.
    pub yields: u64,
    /// How often it was preempted.
    pub preemptions: u64,
    /// How often it left by itself: blocks, and its exit.
    pub departures: u64,
}

/// A measured run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    tasks: Vec<TaskProfile>,
    unrecorded: usize,
    ambiguous: usize,
}

impl Profile {
    pub(super) fn of(recorder: &Recorder) -> Result<Self, Error> {
        Self::new(recorder.read()?, recorder.unrecorded())
    }

    /// A profile of `tasks`, given in the order in which they were spawned.
    ///
    /// Tasks that share a key (see [`TaskKey`] on how unlikely that is) are left
    /// out, since none of them could be told from the others. Cost: n log n, and
    /// 8 bytes a task for the call.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(mut tasks: Vec<TaskProfile>, unrecorded: usize) -> Result<Self, Error> {
        // Sorting a list of keys, not the tasks: their order is meant.
        let mut keys: Vec<TaskKey> = Vec::new();
        keys.try_reserve_exact(tasks.len())
            .map_err(|_| Error::NoMemory)?;
        keys.extend(tasks.iter().map(|task| task.key));
        keys.sort_unstable();
        let shared = |key: &TaskKey| {
            let first = keys.partition_point(|k| k < key);
            keys.get(first + 1) == Some(key)
        };
        let before = tasks.len();
        tasks.retain(|task| !shared(&task.key));
        let ambiguous = before - tasks.len();
        Ok(Self {
            tasks,
            unrecorded,
            ambiguous,
        })
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut tasks = Vec::new();
        tasks
            .try_reserve_exact(self.tasks.len())
            .map_err(|_| Error::NoMemory)?;
        tasks.extend_from_slice(&self.tasks);
        Ok(Self { tasks, ..*self })
    }

    /// The tasks, in the order in which they were spawned.
    pub fn tasks(&self) -> &[TaskProfile] {
        &self.tasks
    }

    /// How many children of recorded tasks the record could not hold. (Their own
    /// descendants are not counted: nobody knows them.)
    pub const fn unrecorded(&self) -> usize {
        self.unrecorded
    }

    /// How many tasks were left out because they shared a key.
    pub const fn ambiguous(&self) -> usize {
        self.ambiguous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(key: TaskKey) -> TaskProfile {
        TaskProfile {
            key,
            run: Counts(1),
            dispatches: 1,
            yields: 0,
            preemptions: 0,
            departures: 1,
        }
    }

    #[test]
    fn tasks_that_share_a_key_are_left_out_and_counted() {
        let [a, b, c] = [0, 1, 2].map(|i| TaskKey::ROOT.child(i));
        let profile = Profile::new(vec![task(b), task(a), task(c), task(a)], 3).unwrap();
        let keys: Vec<_> = profile.tasks().iter().map(|t| t.key).collect();
        assert_eq!(keys, [b, c]);
        assert_eq!((profile.ambiguous(), profile.unrecorded()), (2, 3));
    }
}
