//! A decision: which task runs next on a CPU.

use crate::status::{Status, TaskId};

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

    #[inline(always)]
    pub const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}
