//! The state of PBG in each task.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use pbg_record::record::{Record, RecordRef};
use sched_core::task::{InitialState, Task};
use sched_policies::rr::RrState;

/// Timer ticks in a slice of the base policy and of the fallback queue.
pub const SLICE_TICKS: usize = 5;

/// A task under [`PbgScheduler`](super::PbgScheduler).
pub type PbgTask<T> = Task<T, PbgState>;

/// The role of a task while a plan is followed: a rank, or one of three without a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Role(u32);

impl Role {
    /// A task outside the program.
    pub const OUTSIDE: Self = Self(u32::MAX);
    pub const ROOT: Self = Self(u32::MAX - 1);
    /// A task of the program that is not in the plan.
    pub const UNKNOWN: Self = Self(u32::MAX - 2);

    pub const fn of(rank: u32) -> Self {
        Self(rank)
    }

    #[inline]
    pub const fn index(self) -> Option<usize> {
        if self.0 < Self::UNKNOWN.0 {
            Some(self.0 as usize)
        } else {
            None
        }
    }

    /// Returns the rank of a role that has one.
    #[inline]
    pub const fn rank(self) -> usize {
        self.0 as usize
    }
}

/// The CPUs that may run a ready task, on several CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Reservation(u32);

impl Reservation {
    /// Each CPU that its affinity allows.
    pub const NONE: Self = Self(0);

    const UNTIL_SWITCHED: u32 = 1;
    const PINNED: u32 = 2;
    const RESERVED: u32 = 3;

    const fn new(cpu: usize, how: u32) -> Self {
        Self(4 * cpu as u32 + how)
    }

    const fn cpu(self) -> usize {
        self.0 as usize / 4
    }

    /// Only this CPU, which has not left the task yet, if its affinity allows that.
    pub const fn until_switched(cpu: usize) -> Self {
        Self::new(cpu, Self::UNTIL_SWITCHED)
    }

    /// Only this CPU, whatever its affinity has become: the task goes on there before anything
    /// else.
    pub const fn pinned(cpu: usize) -> Self {
        Self::new(cpu, Self::PINNED)
    }

    /// As [`Self::NONE`], but it is reserved for this CPU, which is idle and was asked to take it.
    pub const fn reserved_for(cpu: usize) -> Self {
        Self::new(cpu, Self::RESERVED)
    }

    /// Returns the only CPU that may run it, if there is one, and true if its affinity is ignored.
    pub const fn only(self) -> Option<(usize, bool)> {
        match self.0 % 4 {
            Self::UNTIL_SWITCHED => Some((self.cpu(), false)),
            Self::PINNED => Some((self.cpu(), true)),
            _ => None,
        }
    }

    /// Returns true if it is reserved for a CPU other than this one.
    pub const fn is_reserved_but_for(self, cpu: usize) -> bool {
        self.0 % 4 == Self::RESERVED && self.cpu() != cpu
    }
}

/// The state of PBG in a task. Relaxed: see LOCK in [`task`](sched_core::task).
///
/// KNOWN: the `epoch` of a task in a queue is its queue's, and the rest belongs to that epoch. 0 is a
/// task that was never added: `main`, or a migration helper.
pub struct PbgState {
    pub(super) slice: RrState<SLICE_TICKS>,
    pub(super) epoch: AtomicU32,
    /// The number in a [`Role`].
    role: AtomicU32,
    pub(super) record: RecordRef,
    /// The number in a [`Reservation`].
    reservation: AtomicU32,
    /// PLACE, of the fallback queue.
    place: AtomicU32,
    /// It is its CPU's `gc`, from its first `add_task` on.
    is_gc: AtomicBool,
}

impl PbgState {
    pub(super) fn set(&self, epoch: u32, role: Role, record: &'static Record) {
        self.epoch.store(epoch, Relaxed);
        self.role.store(role.0, Relaxed);
        self.record.set(record);
    }

    #[inline]
    pub(super) fn role(&self) -> Role {
        Role(self.role.load(Relaxed))
    }

    pub(super) fn place(&self) -> u32 {
        self.place.load(Relaxed)
    }

    pub(super) fn set_place(&self, place: u32) {
        self.place.store(place, Relaxed);
    }

    pub(super) fn mark_gc(&self) {
        self.is_gc.store(true, Relaxed);
    }

    pub(super) fn is_gc(&self) -> bool {
        self.is_gc.load(Relaxed)
    }

    pub(super) fn reservation(&self) -> Reservation {
        Reservation(self.reservation.load(Relaxed))
    }

    pub(super) fn reserve(&self, reservation: Reservation) {
        self.reservation.store(reservation.0, Relaxed);
    }
}

impl InitialState for PbgState {
    const INITIAL: Self = Self {
        slice: RrState::INITIAL,
        epoch: AtomicU32::new(0),
        role: AtomicU32::new(Role::OUTSIDE.0),
        record: RecordRef::nowhere(),
        reservation: AtomicU32::new(0),
        place: AtomicU32::new(0),
        is_gc: AtomicBool::new(false),
    };
}

impl AsRef<RrState<SLICE_TICKS>> for PbgState {
    #[inline]
    fn as_ref(&self) -> &RrState<SLICE_TICKS> {
        &self.slice
    }
}
