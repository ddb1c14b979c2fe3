//! A queue's virtual time, where the other queues can read it.
//!
//! A scheduler call has its own queue's lock; the queue that a task comes from is out of
//! its reach. What it must know of that one stands here, under a lock of its own. LEAF:
//! that is held for a few instructions, with interrupts off like every call that takes
//! it, and nothing else is locked meanwhile.
//!
//! This is the virtual time of generalised processor sharing (Parekh and Gallager,
//! 1993): its speed is that of the CPU over the weight of those who are ready. Memory:
//! 64 bytes a queue, and those of the first `CELLS` are there from the start.

use alloc::boxed::Box;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spin::{mutex::SpinMutex, once::Once};

use crate::nice::{FRACTION_BITS, LONGEST_CHARGE, NORMAL_WEIGHT};
use crate::ordered::Key;
use crate::run_interval::QueueId;
use crate::units::Counts;

/// The virtual time of one queue. Alone on its cache line, since every CPU has its own.
#[repr(align(64))]
pub struct VirtualTime {
    /// Whose it is, or [`QueueId::NONE`]. Relaxed: who looks for a queue has the name
    /// from a task that was there, so the locks of that task's moves order the two.
    owner: AtomicU32,
    state: SpinMutex<State>,
}

/// What a move of the virtual time came to.
pub struct Moved {
    /// How far it would have moved without bounds.
    pub by: u64,
    /// Where it is now.
    pub to: Key,
}

struct State {
    /// The virtual time at `since`, as vruntime.
    time: Key,
    since: Counts,
    /// The sum of those who are ready or run.
    weight: u64,
    /// What those had who migrated while they ran, and the owner does not know of.
    taken_along: Counts,
}

impl State {
    const START: Self = Self {
        time: Key(0),
        since: Counts::ZERO,
        weight: 0,
        taken_along: Counts::ZERO,
    };

    /// How far so much service moves the virtual time.
    fn moved_by(&self, served: Counts) -> u64 {
        let served = u128::from(served.0.min(LONGEST_CHARGE.0));
        let weighted = served * u128::from(NORMAL_WEIGHT << FRACTION_BITS);
        weighted.checked_div(self.weight.into()).unwrap_or(0) as u64
    }
}

/// For so many queues, which is so many CPUs, nothing is ever allocated.
const CELLS: usize = 64;

struct Cells {
    cells: [VirtualTime; CELLS],
    /// The next, for tests that have more queues than a machine has CPUs.
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

    /// The cell of a queue; `None` if it is gone or was none. Linear in the queues.
    pub fn find(queue: QueueId) -> Option<&'static Self> {
        if queue == QueueId::NONE {
            return None;
        }
        core::iter::successors(Some(&FIRST), |cells| cells.more.get().map(|more| &**more))
            .flat_map(|cells| &cells.cells)
            .find(|cell| cell.owner.load(Relaxed) == queue.0)
    }

    /// A free one, for a queue that has none.
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

    /// The virtual time at `now`, on whatever CPU that is: since its owner last moved
    /// it, somebody ran there if anybody was ready.
    pub fn at(&self, now: Counts) -> Key {
        let state = self.state.lock();
        state.time.later(state.moved_by(now - state.since))
    }

    /// The owner has charged so much, which moves the virtual time as far as it stays
    /// `within`.
    fn moves(&self, now: Counts, served: i64, within: RangeInclusive<Key>) -> Moved {
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

    /// A task of this weight is ready here now.
    pub fn join(&self, weight: u64) {
        self.state.lock().weight += weight;
    }

    /// One of those has another weight from now on.
    pub fn reweigh(&self, from: u64, to: u64) {
        self.leave(from);
        self.join(to);
    }

    /// A task of this weight was ready here, or ran, and is gone.
    pub fn leave(&self, weight: u64) {
        self.leave_running(weight, Counts::ZERO);
    }

    /// It has migrated while it ran, after so much that is charged elsewhere. That counts
    /// when this cell is moved next, as if it had been shared by those who are left.
    pub fn leave_running(&self, weight: u64, had: Counts) {
        let mut state = self.state.lock();
        state.taken_along += had;
        debug_assert!(state.weight >= weight, "more leave than have joined");
        state.weight = state.weight.saturating_sub(weight);
    }
}

/// A queue's hold of its virtual time: from its first task until it is dropped.
pub struct QueueTime {
    cell: Option<&'static VirtualTime>,
    /// What has been charged since the virtual time was last moved, in counts, less what
    /// had been counted then and was not charged.
    served: i64,
}

impl QueueTime {
    /// The hold of a queue that has had no task.
    pub const NEW: Self = Self {
        cell: None,
        served: 0,
    };

    /// Where all can read it; `queue` is who holds this.
    pub fn of(&mut self, queue: QueueId) -> &'static VirtualTime {
        self.cell.get_or_insert_with(|| VirtualTime::claim(queue))
    }

    /// A task was charged so much here. It counts when the virtual time is moved next.
    #[inline]
    pub fn charged(&mut self, run: Counts) {
        self.served = self.served.wrapping_add(run.0 as i64);
    }

    /// What has been charged moves the virtual time, and so does what runs and is not
    /// charged yet; it is taken off when it is.
    pub fn moves(
        &mut self,
        queue: QueueId,
        now: Counts,
        uncharged: Counts,
        within: RangeInclusive<Key>,
    ) -> Moved {
        let served = self.served.wrapping_add(uncharged.0 as i64);
        self.served = (uncharged.0 as i64).wrapping_neg();
        self.of(queue).moves(now, served, within)
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
            cell.moves(Counts(10), 10, all.clone()).by,
            0,
            "nobody is there"
        );
        cell.join(NORMAL_WEIGHT);
        assert_eq!(cell.moves(Counts(30), 20, all.clone()).by, 20 * unit);
        cell.join(3 * NORMAL_WEIGHT);
        assert_eq!(cell.at(Counts(70)), Key(30 * unit), "and a quarter of 40");
        assert_eq!(
            cell.at(Counts(20)),
            Key(20 * unit),
            "another CPU's counter is behind"
        );
        cell.leave(2 * NORMAL_WEIGHT);
        let within = Key(21 * unit)..=Key(22 * unit);
        assert_eq!(cell.moves(Counts(70), 40, within.clone()).by, 20 * unit);
        assert_eq!(cell.at(Counts(70)), Key(22 * unit));
        assert_eq!(cell.moves(Counts(71), 0, all).by, 0);
        let later = Key(25 * unit)..=Key(30 * unit);
        assert_eq!(cell.moves(Counts(71), 0, later).to, Key(25 * unit));
        assert_eq!(cell.at(Counts(71)), Key(25 * unit));
        assert!(
            cell.moves(Counts(72), i64::MAX, within).by > 0,
            "ages do not overflow"
        );
    }
}
