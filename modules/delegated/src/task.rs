//! The state that the scheduler keeps in each task.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use sched_core::task::{InitialState, Task};
use sched_policies::rr::RrState;

use crate::status::State;
use crate::table::{Slot, SystemTable, TableSource};

/// A task under [`DelegatedScheduler`](crate::DelegatedScheduler).
pub type DelegatedTask<T, M = SystemTable> = Task<T, DelegatedState<M>>;

/// Marks the link of a task that departs.
pub const DEPARTS: usize = 1;
/// Marks the link of an agent's task. The other bits count agents.
pub const AGENT: usize = 2;
/// Both marks of a link.
pub const MARKS: usize = DEPARTS | AGENT;

/// The state in a task.
pub struct DelegatedState<M: TableSource = SystemTable> {
    /// Null for a task outside every enclave. Otherwise its slot, or [`AGENT`].
    link: AtomicPtr<Slot>,
    /// Its slices last one tick, since it was the agent of an enclave that ended.
    is_demoted: AtomicBool,
    slice: RrState<SLICE_TICKS>,
    table: PhantomData<fn() -> M>,
}

/// The time slice of tasks outside all enclaves, in ticks.
pub const SLICE_TICKS: usize = sched_policies::rr::SLICE_TICKS;

impl<M: TableSource> DelegatedState<M> {
    #[inline(always)]
    pub(crate) fn link(&self) -> *mut Slot {
        self.link.load(Relaxed)
    }

    pub(crate) fn set_link(&self, link: *mut Slot) {
        self.link.store(link, Relaxed);
    }

    /// Changes the link if it still is `from`.
    pub(crate) fn change_link(&self, from: *mut Slot, to: *mut Slot) -> bool {
        (self.link)
            .compare_exchange(from, to, Relaxed, Relaxed)
            .is_ok()
    }

    /// Sets the link of a task outside all enclaves. Returns false if the task has one already.
    pub(crate) fn enter(&self, slot: &Slot) -> bool {
        self.change_link(ptr::null_mut(), ptr::from_ref(slot).cast_mut())
    }

    pub(crate) fn slice(&self) -> &RrState<SLICE_TICKS> {
        &self.slice
    }

    pub(crate) fn is_demoted(&self) -> bool {
        self.is_demoted.load(Relaxed)
    }

    pub(crate) fn demote(&self) {
        self.is_demoted.store(true, Relaxed);
    }
}

impl<M: TableSource> InitialState for DelegatedState<M> {
    const INITIAL: Self = Self {
        link: AtomicPtr::new(ptr::null_mut()),
        is_demoted: AtomicBool::new(false),
        slice: RrState::INITIAL,
        table: PhantomData,
    };
}

impl<M: TableSource> AsRef<RrState<SLICE_TICKS>> for DelegatedState<M> {
    #[inline]
    fn as_ref(&self) -> &RrState<SLICE_TICKS> {
        &self.slice
    }
}

/// The last handle of the task is gone, so it is dead. This may be at any time and on any CPU, but in
/// no scheduler call.
impl<M: TableSource> Drop for DelegatedState<M> {
    fn drop(&mut self) {
        let link = *self.link.get_mut();
        if link.addr() & AGENT != 0 {
            return crate::enclave::agent_died::<M>(link.addr());
        }
        // SAFETY: it is null, or a slot of the table, which is never freed.
        let Some(slot) = (unsafe { link.map_addr(|at| at & !MARKS).as_ref() }) else {
            return;
        };
        let enclave = slot.enclave();
        if !enclave.is_active() {
            return M::table().free_slot(slot);
        }
        let status = slot.status();
        slot.word.set(status.next(State::Gone, status.cpu()));
        M::table().bury(slot);
        crate::enclave::tell::<M>(enclave, false);
    }
}

/// Returns the task under this policy if it is one, and `None` under any other policy. The argument
/// is what `axtask`'s handle of a task points to.
pub fn of<T: 'static>(task: &dyn core::any::Any) -> Option<&DelegatedTask<T>> {
    task.downcast_ref()
}
