//! A decision: which task runs next on a CPU.

use crate::status::{State, Status, TaskId};

/// A decision, packed into an odd number: the sequence number of the task, the task, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision(pub u64);

impl Decision {
    const VALID: u64 = 1;
    /// It is refused if the agent has been told something that wakes it.
    pub const UNLESS_TOLD: u64 = 2;
    /// It preempts the delegated task that runs there.
    pub const PREEMPTS: u64 = 4;
    /// The sequence number does not matter.
    pub const ANY_SEQ: u64 = 8;

    #[inline(always)]
    pub const fn new(task: TaskId, seq: u32, flags: u64) -> Self {
        Self((seq as u64) << 32 | task.to_bits() as u64 | flags | Self::VALID)
    }

    /// Returns the decision for a task, whatever its sequence number is.
    #[inline(always)]
    pub const fn any(task: TaskId) -> Self {
        Self::new(task, 0, Self::ANY_SEQ)
    }

    #[inline(always)]
    pub const fn task(self) -> TaskId {
        TaskId::from_bits(self.0 as u32)
    }

    /// Returns true if the task is the one that was meant, and is ready.
    #[inline(always)]
    pub const fn allows(self, status: Status) -> bool {
        // The sequence number and the generation are at the same place in both.
        let differs = (self.0 ^ status.0) >> 16;
        let differs = match self.0 & Self::ANY_SEQ {
            0 => differs,
            _ => differs & 0xffff,
        };
        differs == 0 && status.is_ready()
    }

    /// Returns what [`allows`](Self::allows) does, on the only CPU. That is CPU 0, where a ready task is neither
    /// in flight nor has to stay.
    #[inline(always)]
    pub const fn allows_alone(self, status: Status) -> bool {
        let differs = (self.0 & !0xffff | State::Ready as u64) ^ status.0;
        let differs = match self.0 & Self::ANY_SEQ {
            0 => differs,
            _ => differs as u32 as u64,
        };
        differs == 0
    }

    #[inline(always)]
    pub const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// The task that the agent of a CPU lets run there next, packed into a number that is not 0: its identity, with
/// [`State::Ready`] in place of flags. So without the index it is what the status says if that task is ready
/// on the only CPU, which is CPU 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextTask(pub u32);

impl NextTask {
    pub const NONE: Self = Self(0);

    #[inline(always)]
    pub const fn of(task: TaskId) -> Self {
        Self(task.to_bits() | State::Ready as u32)
    }

    #[inline(always)]
    pub const fn task(self) -> Option<TaskId> {
        match self.0 {
            0 => None,
            bits => Some(TaskId::from_bits(bits)),
        }
    }

    /// Returns true if the status is that of this task, ready on the only CPU.
    #[inline(always)]
    pub const fn is_ready_alone(self, status: Status) -> bool {
        status.0 as u32 == self.0 & !TaskId::INDEX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::FLAG_BITS;

    /// The shorter checks for one CPU say the same as the one for several.
    #[test]
    fn decision_allows_the_same_tasks_on_the_only_cpu() {
        use State::{Blocked, Free, Gone, Joining, Ready, Running};

        let statuses: Vec<_> = [Free, Joining, Running, Blocked, Ready, Gone]
            .into_iter()
            .flat_map(|state| [(state, 1), (state, 2)])
            .flat_map(|(state, generation)| {
                [7, 8].map(|seq| Status::new(generation, state, 0, seq))
            })
            .collect();
        for (status, of) in statuses
            .iter()
            .flat_map(|&a| statuses.iter().map(move |&b| (a, b)))
        {
            let task = TaskId::at(5 << FLAG_BITS, of);
            for flags in [0, Decision::ANY_SEQ, Decision::PREEMPTS] {
                let decision = Decision::new(task, of.seq(), flags);
                assert_eq!(decision.allows(status), decision.allows_alone(status));
            }
            let is_ready = Decision::any(task).allows(status);
            let is_next = NextTask::of(task).is_ready_alone(status);
            assert_eq!(
                [is_ready; 2],
                [status.is_ready_alone(task), is_next],
                "{task:?}: {status:?}"
            );
        }
    }
}
