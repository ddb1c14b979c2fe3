//! A queue's virtual time, where the other queues can read it.
//!
//! A scheduler call holds its own queue's lock. It cannot reach the queue that a task comes from.
//! The part of that queue that it must know is here, under a lock of its own. LEAF: that lock is
//! held for a few instructions, with interrupts off like every call that takes it, and no other
//! lock is taken meanwhile.
//!
//! This is the virtual time of generalised processor sharing (Parekh and Gallager, 1993). Its speed
//! is that of the CPU over the weight of the ready and running tasks. Memory: 64 bytes for each
//! queue. The first `CELLS` of them are static.

use alloc::boxed::Box;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spin::{mutex::SpinMutex, once::Once};

use crate::nice::{FRACTION_BITS, LONGEST_CHARGE, NORMAL_WEIGHT};
use crate::ordered::Key;
use crate::run_interval::QueueId;
use crate::units::Counts;

/// The virtual time of one queue. It has a cache line of its own, since every CPU has one.
#[repr(align(64))]
pub struct VirtualTime {
    /// The queue that owns this cell, or [`QueueId::NONE`]. Relaxed: a reader has the queue's name
    /// from a task that was there, so the locks of that task's moves order the two accesses.
    owner: AtomicU32,
    state: SpinMutex<State>,
}

/// The result of a move of the virtual time.
pub struct Moved {
    /// The distance that it would have moved without bounds.
    pub by: u64,
    /// The virtual time now.
    pub to: Key,
}

struct State {
    /// The virtual time at `since`, as vruntime.
    time: Key,
    since: Counts,
    /// The sum of the weights of the ready and running tasks.
    weight: u64,
    /// The CPU time of tasks that migrated while they ran, which the owner does not know of yet.
    taken_along: Counts,
}

impl State {
    const START: Self = Self {
        time: Key(0),
        since: Counts::ZERO,
        weight: 0,
        taken_along: Counts::ZERO,
    };

    /// Returns how far this much service moves the virtual time.
    fn moved_by(&self, served: Counts) -> u64 {
        let served = u128::from(served.0.min(LONGEST_CHARGE.0));
        let weighted = served * u128::from(NORMAL_WEIGHT << FRACTION_BITS);
        weighted.checked_div(self.weight.into()).unwrap_or(0) as u64
    }
}

/// The number of static cells. A machine with at most this many CPUs allocates nothing.
const CELLS: usize = 64;

struct Cells {
    cells: [VirtualTime; CELLS],
    /// The next cells, for tests that have more queues than a machine has CPUs.
    more: Once<Box<Cells>>,
}

impl Cells {
    const fn new() -> Self {
        Self {
            cells: [const { VirtualTime::new() }; CELLS],
            more: Once::new(),
        }
    }
}

static FIRST: Cells = Cells::new();

impl VirtualTime {
    const fn new() -> Self {
        Self {
            owner: AtomicU32::new(QueueId::NONE.0),
            state: SpinMutex::new(State::START),
        }
    }

    /// Returns the cell of a queue, or `None` if the queue is gone or is none. Linear in the
    /// queues.
    pub fn find(queue: QueueId) -> Option<&'static Self> {
        if queue == QueueId::NONE {
            return None;
        }
        core::iter::successors(Some(&FIRST), |cells| cells.more.get().map(|more| &**more))
            .flat_map(|cells| &cells.cells)
            .find(|cell| cell.owner.load(Relaxed) == queue.0)
    }

    /// Claims a free cell for a queue that has none.
    fn claim(queue: QueueId) -> &'static Self {
        let free = QueueId::NONE.0;
        let claims = |cell: &&Self| {
            let claim = cell.owner.compare_exchange(free, queue.0, Relaxed, Relaxed);
            claim.is_ok()
        };
        let mut cells = &FIRST;
        loop {
            if let Some(cell) = cells.cells.iter().find(claims) {
                *cell.state.lock() = State::START;
                return cell;
            }
            cells = cells.more.call_once(|| Box::new(Cells::new()));
        }
    }

    /// Returns the virtual time at `now`, which any CPU may ask. Since the owner last moved it,
    /// some task has run there if any was ready.
    pub fn at(&self, now: Counts) -> Key {
        let state = self.state.lock();
        state.time.later(state.moved_by(now - state.since))
    }

    /// Moves the virtual time for the service that the owner has charged, as far as it stays
    /// `within`.
    fn advance(&self, now: Counts, served: i64, within: RangeInclusive<Key>) -> Moved {
        let mut state = self.state.lock();
        let taken_along = core::mem::take(&mut state.taken_along);
        // Negative where the counters of two CPUs disagree.
        let served = served.wrapping_add(taken_along.0 as i64).max(0) as u64;
        let by = state.moved_by(Counts(served));
        let time = state.time.later(by);
        state.time = time.max(*within.start()).min(*within.end());
        state.since = now;
        let to = state.time;
        Moved { by, to }
    }

    /// Returns the sum of the weights of the tasks that are ready or run here, for tests.
    #[cfg(feature = "std")]
    pub fn weight(&self) -> u64 {
        self.state.lock().weight
    }

    /// Adds the weight of a task that is ready here from now on.
    pub fn join(&self, weight: u64) {
        self.state.lock().weight += weight;
    }

    /// Replaces the weight of one of those tasks.
    pub fn reweigh(&self, from: u64, to: u64) {
        self.leave(from);
        self.join(to);
    }

    /// Subtracts the weight of a task that was ready here, or ran, and is gone.
    pub fn leave(&self, weight: u64) {
        self.leave_running(weight, Counts::ZERO);
    }

    /// Subtracts the weight of a task that migrated while it ran. Its CPU time `had` is charged
    /// elsewhere. It counts when this cell is moved next, as if the remaining tasks had shared it.
    pub fn leave_running(&self, weight: u64, had: Counts) {
        let mut state = self.state.lock();
        state.taken_along += had;
        debug_assert!(state.weight >= weight, "more leave than have joined");
        state.weight = state.weight.saturating_sub(weight);
    }
}

/// A queue's hold on its virtual time, from its first task until the queue is dropped.
pub struct QueueTime {
    cell: Option<&'static VirtualTime>,
    /// The service charged since the virtual time was last moved, in counts, less the uncharged
    /// service that the last move included.
    served: i64,
}

impl QueueTime {
    /// The hold of a queue that has not had a task yet.
    pub const NEW: Self = Self {
        cell: None,
        served: 0,
    };

    /// Returns the cell that all queues can read. `queue` names the queue that holds this.
    pub fn of(&mut self, queue: QueueId) -> &'static VirtualTime {
        self.cell.get_or_insert_with(|| VirtualTime::claim(queue))
    }

    /// Adds a charge to a task of this queue. It counts when the virtual time is moved next.
    #[inline]
    pub fn charged(&mut self, run: Counts) {
        self.served = self.served.wrapping_add(run.0 as i64);
    }

    /// Moves the virtual time for the service charged since the last move, and for `uncharged`,
    /// which the running task has had so far. The next move takes `uncharged` off, since it has
    /// been charged by then.
    pub fn advance(
        &mut self,
        queue: QueueId,
        now: Counts,
        uncharged: Counts,
        within: RangeInclusive<Key>,
    ) -> Moved {
        let served = self.served.wrapping_add(uncharged.0 as i64);
        self.served = (uncharged.0 as i64).wrapping_neg();
        self.of(queue).advance(now, served, within)
    }
}

impl Drop for QueueTime {
    fn drop(&mut self) {
        if let Some(cell) = self.cell {
            cell.owner.store(QueueId::NONE.0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_a_cell_of_its_own_until_it_is_dropped() {
        // Names that no queue of another test has.
        let names = || (0..200).map(|i| QueueId(u32::MAX - i));
        let own = |name| {
            let mut own = QueueTime::NEW;
            own.of(name).join(u64::from(name.0));
            own
        };
        let cells: Vec<_> = names().map(own).collect();
        for name in names() {
            let cell = VirtualTime::find(name).expect("it is held");
            assert_eq!(cell.weight(), u64::from(name.0));
        }
        drop(cells);
        for name in names() {
            assert!(VirtualTime::find(name).is_none());
            let mut again = QueueTime::NEW;
            let cell = again.of(name);
            assert_eq!(
                (cell.weight(), cell.at(Counts(1))),
                (0, Key(0)),
                "from the start"
            );
        }
        assert!(VirtualTime::find(QueueId::NONE).is_none());
    }

    #[test]
    fn virtual_time_is_service_over_weight() {
        let unit = 1 << FRACTION_BITS;
        let mut own = QueueTime::NEW;
        let cell = own.of(QueueId(u32::MAX - 1000));
        let all = Key(0)..=Key(1 << 62);
        assert_eq!(
            cell.advance(Counts(10), 10, all.clone()).by,
            0,
            "no task is there"
        );
        cell.join(NORMAL_WEIGHT);
        assert_eq!(cell.advance(Counts(30), 20, all.clone()).by, 20 * unit);
        cell.join(3 * NORMAL_WEIGHT);
        assert_eq!(cell.at(Counts(70)), Key(30 * unit), "and a quarter of 40");
        assert_eq!(
            cell.at(Counts(20)),
            Key(20 * unit),
            "another CPU's counter is behind"
        );
        cell.leave(2 * NORMAL_WEIGHT);
        let within = Key(21 * unit)..=Key(22 * unit);
        assert_eq!(cell.advance(Counts(70), 40, within.clone()).by, 20 * unit);
        assert_eq!(cell.at(Counts(70)), Key(22 * unit));
        assert_eq!(cell.advance(Counts(71), 0, all).by, 0);
        let later = Key(25 * unit)..=Key(30 * unit);
        assert_eq!(cell.advance(Counts(71), 0, later).to, Key(25 * unit));
        assert_eq!(cell.at(Counts(71)), Key(25 * unit));
        assert!(
            cell.advance(Counts(72), i64::MAX, within).by > 0,
            "ages do not overflow"
        );
    }
}
