//! The status word of a delegated task, which an agent reads without a call.

use core::fmt;

/// The bits of an index.
pub const INDEX_BITS: u32 = 11;
/// The lowest bits of an identity, which are free for flags of a decision.
pub const FLAG_BITS: u32 = 5;

/// A delegated task: the index of its slot, and the generation of that slot. A slot is used again
/// with the next generation, so the identity of a dead task matches no other before 65,536 more
/// tasks have had its slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TaskId(u32);

impl TaskId {
    /// The bits of the index.
    pub(crate) const INDEX: u32 = ((1 << INDEX_BITS) - 1) << FLAG_BITS;

    /// Joins the place of a slot, which is its index above the flags, and the generation of its status.
    #[inline(always)]
    pub(crate) const fn at(place: u32, status: Status) -> Self {
        Self(status.0 as u32 & !0xffff | place)
    }

    /// Returns the index of the slot, below [`MAX_TASKS`](crate::MAX_TASKS). No two tasks that are
    /// alive have the same.
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 >> FLAG_BITS & ((1 << INDEX_BITS) - 1)) as usize
    }

    /// Returns the generation of the slot.
    #[inline(always)]
    pub(crate) const fn generation(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the identity as one number.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the identity of this number. Any number is allowed; one that names no task is refused
    /// where it is used.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & !((1 << FLAG_BITS) - 1))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index(), self.generation())
    }
}

/// The state of a delegated task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// The slot has no task.
    Free = 0,
    /// The task was delegated, and has not come to the scheduler since.
    Joining = 1,
    /// It runs on its CPU.
    Running = 2,
    /// It is blocked, or it has exited.
    Blocked = 3,
    /// It is ready, and its CPU may still be on its stack. Only that CPU may run it before its next
    /// scheduler call.
    InFlight = 4,
    /// It is ready.
    Ready = 5,
    /// It is ready, and has to run on its CPU, which preempted it.
    Stays = 6,
    /// It is dead or has departed. Its slot is freed when the agent has read the message.
    Gone = 7,
}

/// A status word: sequence number, generation, CPU and state of a task.
// The sequence number is at the top, so an addition to it reaches nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub(crate) u64);

impl Status {
    /// One message more.
    const NEXT: u64 = 1 << 32;

    /// Packs a word.
    #[inline(always)]
    pub(crate) const fn new(generation: u16, state: State, cpu: usize, seq: u32) -> Self {
        Self((seq as u64) << 32 | (generation as u64) << 16 | (cpu as u64) << 8 | state as u64)
    }

    /// Returns the number of messages about the task, modulo 2^32.
    #[inline(always)]
    pub const fn seq(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the state.
    #[inline(always)]
    pub const fn state(self) -> State {
        match self.0 as u8 {
            0 => State::Free,
            1 => State::Joining,
            2 => State::Running,
            3 => State::Blocked,
            4 => State::InFlight,
            5 => State::Ready,
            6 => State::Stays,
            _ => State::Gone,
        }
    }

    /// Returns the state as a number.
    #[inline(always)]
    pub(crate) const fn state_bits(self) -> u8 {
        self.0 as u8
    }

    /// Returns the CPU on which it runs, or ran last.
    #[inline(always)]
    pub const fn cpu(self) -> usize {
        (self.0 >> 8 & 0xff) as usize
    }

    /// Returns the generation of the slot.
    #[inline(always)]
    pub const fn generation(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the word of a running task that is ready again on its CPU, with the next sequence
    /// number.
    #[inline(always)]
    pub(crate) const fn returned(self, state: State) -> Self {
        Self(
            self.0
                .wrapping_add(Self::NEXT + state as u64 - State::Running as u64),
        )
    }

    /// Returns true if the generation is that of this task. Then no later task has the slot.
    #[inline(always)]
    pub(crate) const fn is_of(self, task: TaskId) -> bool {
        // The generation is at the same place in both.
        (self.0 as u32 ^ task.0) >> 16 == 0
    }

    /// Returns true if the task waits for a CPU.
    #[inline(always)]
    pub const fn is_ready(self) -> bool {
        (self.0 as u8).wrapping_sub(State::InFlight as u8) <= 2
    }

    /// Returns true if the task is this one and is ready, on the only CPU. That is CPU 0, where a ready task
    /// is neither in flight nor has to stay.
    #[inline(always)]
    pub(crate) const fn is_ready_alone(self, task: TaskId) -> bool {
        self.0 as u32 == task.0 & !0xffff | State::Ready as u32
    }

    /// Returns the word of a task that is ready and begins to run where it ran before.
    #[inline(always)]
    pub(crate) const fn run_again(self) -> Self {
        Self(self.0 - (State::Ready as u64 - State::Running as u64))
    }

    /// Returns the word with another state on this CPU, and the next sequence number.
    #[inline(always)]
    pub(crate) const fn next(self, state: State, cpu: usize) -> Self {
        Self::new(self.generation(), state, cpu, self.seq().wrapping_add(1))
    }

    /// Returns the word with another state on this CPU, and the same sequence number.
    #[inline(always)]
    pub(crate) const fn with(self, state: State, cpu: usize) -> Self {
        Self::new(self.generation(), state, cpu, self.seq())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, cpu, seq) = (self.state(), self.cpu(), self.seq());
        write!(f, "{state:?} on CPU {cpu}, {seq}")
    }
}
