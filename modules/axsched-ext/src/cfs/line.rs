//! A queue's virtual time, where the other queues can read it.
//!
//! A scheduler call has its own queue's lock; the queue that a task comes from is out of
//! its reach. What it must know of that one stands here, under a lock of its own. LEAF:
//! that is held for a few instructions, with interrupts off like every call that takes
//! it, and nothing else is locked meanwhile.
//!
//! This is the virtual time of generalised processor sharing (Parekh and Gallager,
//! 1993): its speed is that of the CPU over the weight of those who are ready. Memory:
//! 64 bytes a queue, and those of the first [`LINES`] are there from the start.

use alloc::boxed::Box;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spin::{mutex::SpinMutex, once::Once};

use super::scale::{FRACTION_BITS, MEMORY, NORMAL_WEIGHT};
use crate::burst::QueueId;
use crate::ordered::Key;
use crate::units::Counts;

/// The virtual time of one queue. Alone on its cache line, since every CPU has its own.
#[repr(align(64))]
pub(super) struct Line {
    /// Whose it is, or [`QueueId::NONE`]. Relaxed: who looks for a queue has the name
    /// from a task that was there, so the locks of that task's moves order the two.
    owner: AtomicU32,
    state: SpinMutex<State>,
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
        let served = u128::from(served.0.min(MEMORY.0));
        let weighted = served * u128::from(NORMAL_WEIGHT << FRACTION_BITS);
        weighted.checked_div(self.weight.into()).unwrap_or(0) as u64
    }
}

/// For so many queues, which is so many CPUs, nothing is ever allocated.
const LINES: usize = 64;

struct Lines {
    lines: [Line; LINES],
    /// The next, for tests that have more queues than a machine has CPUs.
    more: Once<Box<Lines>>,
}

impl Lines {
    const fn new() -> Self {
        Self {
            lines: [const { Line::new() }; LINES],
            more: Once::new(),
        }
    }
}

static FIRST: Lines = Lines::new();

impl Line {
    const fn new() -> Self {
        Self {
            owner: AtomicU32::new(QueueId::NONE.0),
            state: SpinMutex::new(State::START),
        }
    }

    /// The line of a queue; `None` if it is gone or was none. Linear in the queues.
    pub(super) fn find(queue: QueueId) -> Option<&'static Self> {
        if queue == QueueId::NONE {
            return None;
        }
        core::iter::successors(Some(&FIRST), |lines| lines.more.get().map(|more| &**more))
            .flat_map(|lines| &lines.lines)
            .find(|line| line.owner.load(Relaxed) == queue.0)
    }

    /// A free one, for a queue that has none.
    fn claim(queue: QueueId) -> &'static Self {
        let free = QueueId::NONE.0;
        let claims = |line: &&Self| {
            let claim = line.owner.compare_exchange(free, queue.0, Relaxed, Relaxed);
            claim.is_ok()
        };
        let mut lines = &FIRST;
        loop {
            if let Some(line) = lines.lines.iter().find(claims) {
                *line.state.lock() = State::START;
                return line;
            }
            lines = lines.more.call_once(|| Box::new(Lines::new()));
        }
    }

    /// The virtual time at `now`, on whatever CPU that is: since its owner last moved
    /// it, somebody ran there if anybody was ready.
    pub(super) fn at(&self, now: Counts) -> Key {
        let state = self.state.lock();
        state.time.later(state.moved_by(now - state.since))
    }

    /// The owner has charged so much, which moves the virtual time as far as it stays
    /// `within`. Returns how far it would have moved.
    pub(super) fn moves(&self, now: Counts, served: i64, within: RangeInclusive<Key>) -> u64 {
        let mut state = self.state.lock();
        let taken_along = core::mem::take(&mut state.taken_along);
        // Negative where the counters of two CPUs disagree.
        let served = served.wrapping_add(taken_along.0 as i64).max(0) as u64;
        let by = state.moved_by(Counts(served));
        let time = state.time.later(by);
        state.time = time.max(*within.start()).min(*within.end());
        state.since = now;
        by
    }

    #[cfg(test)]
    pub(super) fn weight(&self) -> u64 {
        self.state.lock().weight
    }

    /// A task of this weight is ready here now.
    pub(super) fn join(&self, weight: u64) {
        self.state.lock().weight += weight;
    }

    /// A task of this weight was ready here, or ran, and is gone.
    pub(super) fn leave(&self, weight: u64) {
        self.leave_running(weight, Counts::ZERO);
    }

    /// It has migrated while it ran, after so much that is charged elsewhere. That counts
    /// when this line is moved next, as if it had been shared by those who are left.
    pub(super) fn leave_running(&self, weight: u64, had: Counts) {
        let mut state = self.state.lock();
        state.taken_along += had;
        debug_assert!(state.weight >= weight, "more leave than have joined");
        state.weight = state.weight.saturating_sub(weight);
    }
}

/// A queue's hold of its line: from its first task until it is dropped.
pub(super) struct OwnLine(Option<&'static Line>);

impl OwnLine {
    pub(super) const NEW: Self = Self(None);

    pub(super) fn of(&mut self, queue: QueueId) -> &'static Line {
        self.0.get_or_insert_with(|| Line::claim(queue))
    }
}

impl Drop for OwnLine {
    fn drop(&mut self) {
        if let Some(line) = self.0 {
            line.owner.store(QueueId::NONE.0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_a_line_of_its_own_until_it_is_dropped() {
        // Names that no queue of another test has.
        let names = || (0..200).map(|i| QueueId(u32::MAX - i));
        let own = |name| {
            let mut own = OwnLine::NEW;
            own.of(name).join(u64::from(name.0));
            own
        };
        let lines: Vec<_> = names().map(own).collect();
        for name in names() {
            let line = Line::find(name).expect("it is held");
            assert_eq!(line.weight(), u64::from(name.0));
        }
        drop(lines);
        for name in names() {
            assert!(Line::find(name).is_none());
            let mut again = OwnLine::NEW;
            let line = again.of(name);
            assert_eq!(
                (line.weight(), line.at(Counts(1))),
                (0, Key(0)),
                "from the start"
            );
        }
        assert!(Line::find(QueueId::NONE).is_none());
    }

    #[test]
    fn virtual_time_is_service_over_weight() {
        let unit = 1 << FRACTION_BITS;
        let mut own = OwnLine::NEW;
        let line = own.of(QueueId(u32::MAX - 1000));
        let all = Key(0)..=Key(1 << 62);
        assert_eq!(
            line.moves(Counts(10), 10, all.clone()),
            0,
            "nobody is there"
        );
        line.join(NORMAL_WEIGHT);
        assert_eq!(line.moves(Counts(30), 20, all.clone()), 20 * unit);
        line.join(3 * NORMAL_WEIGHT);
        assert_eq!(line.at(Counts(70)), Key(30 * unit), "and a quarter of 40");
        assert_eq!(
            line.at(Counts(20)),
            Key(20 * unit),
            "another CPU's counter is behind"
        );
        line.leave(2 * NORMAL_WEIGHT);
        let within = Key(21 * unit)..=Key(22 * unit);
        assert_eq!(line.moves(Counts(70), 40, within.clone()), 20 * unit);
        assert_eq!(line.at(Counts(70)), Key(22 * unit));
        assert_eq!(line.moves(Counts(71), 0, all), 0);
        let later = Key(25 * unit)..=Key(30 * unit);
        line.moves(Counts(71), 0, later);
        assert_eq!(line.at(Counts(71)), Key(25 * unit));
        assert!(
            line.moves(Counts(72), i64::MAX, within) > 0,
            "ages do not overflow"
        );
    }
}
