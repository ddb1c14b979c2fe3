//! The messages that an agent gets.

use core::fmt;

use crate::ring::Words;
use crate::status::{State, Status, TaskId};

/// The event that a message reports.
// It is a number and not an enum, so that an agent reads it without a check. Those after which the task is
// ready come first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind(u8);

impl Kind {
    /// The task has come to the enclave, and is ready.
    pub const NEW: Self = Self(0);
    /// It was blocked, and is ready.
    pub const WOKEN: Self = Self(1);
    /// It gave the CPU away by itself, and is ready.
    pub const YIELDED: Self = Self(2);
    /// The CPU was taken from it, and it is ready.
    pub const PREEMPTED: Self = Self(3);
    /// A decision about it was refused, because its affinity excludes that CPU. It is ready.
    pub const AFFINITY: Self = Self(4);
    /// A decision about it was refused, because the agent had been told of something new
    /// ([`Commit::unless_told`](crate::Commit::unless_told)). It is ready.
    pub const RECALLED: Self = Self(5);
    /// It was found in the enclave after messages were lost, or by a new agent, and is ready.
    pub const FOUND: Self = Self(6);
    /// It has blocked or exited.
    pub const BLOCKED: Self = Self(7);
    /// It has left the enclave.
    pub const DEPARTED: Self = Self(8);
    /// It is dead.
    pub const DEAD: Self = Self(9);
    /// A timer tick hit it while it ran.
    pub const TICK: Self = Self(10);
    /// Messages were lost, or the agent is new: each ready task follows as [`FOUND`](Kind::FOUND).
    pub const REDISCOVER: Self = Self(11);

    /// Returns true if the task is ready by this message, and waits for a decision.
    #[inline(always)]
    pub const fn is_ready(self) -> bool {
        self.0 <= Self::FOUND.0
    }

    /// Returns the bit of the kind in a set.
    #[inline(always)]
    pub(crate) const fn bit(self) -> u64 {
        1 << self.0
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 12] = [
            "NEW",
            "WOKEN",
            "YIELDED",
            "PREEMPTED",
            "AFFINITY",
            "RECALLED",
            "FOUND",
            "BLOCKED",
            "DEPARTED",
            "DEAD",
            "TICK",
            "REDISCOVER",
        ];
        f.write_str(NAMES.get(usize::from(self.0)).unwrap_or(&"unknown"))
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(pub(crate) u32);

impl Kinds {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The set of all kinds.
    pub const ALL: Self = Self(u32::MAX);
    /// The kinds after which the task is ready.
    pub const READY: Self = Self((1 << (Kind::FOUND.0 + 1)) - 1);

    /// Returns the set with one kind more.
    pub const fn and(self, kind: Kind) -> Self {
        Self(self.0 | kind.bit() as u32)
    }

    /// Returns the set without a kind.
    pub const fn without(self, kind: Kind) -> Self {
        Self(self.0 & !(kind.bit() as u32))
    }

    /// Returns true if the kind is in the set.
    #[inline(always)]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() as u32 != 0
    }
}

/// A message about a task. It fits into two registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The status word, with the kind in place of the state.
    event: u64,
    /// The run time above the place of the task.
    run: u64,
}

impl Message {
    /// Creates a message about a task without run time, for a policy.
    pub(crate) const fn recalled(task: TaskId, cpu: usize) -> Self {
        let status = Status::new(task.generation(), State::Free, cpu, 0);
        let place = task.to_bits() & 0xffff;
        Self::from_words(Self::to_words(
            status,
            State::Free as u8,
            Kind::RECALLED,
            place,
            0,
        ))
    }

    /// Returns the message that begins a rediscovery.
    pub(crate) const fn rediscover(cpu: usize) -> Words {
        let status = Status::new(0, State::Free, cpu, 0);
        Self::to_words(status, State::Free as u8, Kind::REDISCOVER, 0, 0)
    }

    /// Packs the message into two words. No message has two words that are 0. `state` is that of the status.
    #[inline(always)]
    pub(crate) const fn to_words(
        status: Status,
        state: u8,
        kind: Kind,
        place: u32,
        run: u64,
    ) -> Words {
        let event = status.0 - state as u64 + kind.0 as u64;
        [event, run << 16 | place as u64]
    }

    #[inline(always)]
    pub(crate) const fn from_words([event, run]: Words) -> Self {
        Self { event, run }
    }

    /// Returns what happened.
    #[inline(always)]
    pub const fn kind(self) -> Kind {
        Kind(self.event as u8)
    }

    /// Returns the task. It means nothing in [`Kind::REDISCOVER`].
    #[inline(always)]
    pub const fn task(self) -> TaskId {
        TaskId::at(self.run as u32 & 0xffff, Status(self.event))
    }

    /// Returns the sequence number of the task. Messages from several CPUs may come in another order; the
    /// higher number is later. [`Agent::read`](crate::Agent::read) leaves out those that a later one
    /// has overtaken.
    #[inline(always)]
    pub const fn seq(self) -> u32 {
        Status(self.event).seq()
    }

    /// Returns the CPU on which it happened. For [`Kind::AFFINITY`] it is the CPU that refused the task, or the
    /// one on which the task has to stay ([`State::Stays`]).
    #[inline(always)]
    pub const fn cpu(self) -> usize {
        Status(self.event).cpu()
    }

    /// Returns the time for which the task has run since it came, in counts of the CPU's counter, modulo 2^48.
    #[inline(always)]
    pub const fn run(self) -> u64 {
        self.run >> 16
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {:?} on CPU {}, {}, after {}",
            self.kind(),
            self.task(),
            self.cpu(),
            self.seq(),
            self.run()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_the_fields_that_were_packed() {
        let task = TaskId::from_bits(0xabcd << 16 | 2047 << 5);
        let recalled = Message::recalled(task, 63);
        assert_eq!((recalled.kind(), recalled.task()), (Kind::RECALLED, task));
        assert_eq!((recalled.cpu(), recalled.seq(), recalled.run()), (63, 0, 0));
        let status = Status::new(0xabcd, State::Ready, 63, u32::MAX);
        let run = (1 << 48) - 1;
        let words = Message::to_words(status, State::Ready as u8, Kind::TICK, 2047 << 5, run);
        let tick = Message::from_words(words);
        assert_eq!((tick.kind(), tick.task()), (Kind::TICK, task));
        assert_eq!((tick.cpu(), tick.seq(), tick.run()), (63, u32::MAX, run));
    }
}
