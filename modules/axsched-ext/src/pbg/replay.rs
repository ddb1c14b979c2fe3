//! Following a plan: the ready set over ranks, and the watch over reality.
//!
//! A [`Table`] is made by the call, in one go, and never grows. It is not
//! generic, because the call does not know the task type; the pointers in its
//! slots get their type from the [`Replay`] that takes it over. That is the only
//! unsafe code of PBG.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

use super::control::{Control, count};
use super::measure::MAX_TASKS;
use super::plan::Plan;
use super::{Member, PbgTask};
use crate::event::Tick;
use crate::syscall::Error;
use crate::units::{Counts, TaskKey};

/// Ticks that pass while a task outside the plan is ready before one gets a turn
/// of a whole tick (rule 7): such tasks have at least a tenth of the CPU. Enough
/// for `main` and `gc` to go on, little enough that a plan loses at most a ninth
/// of its time even to a task that takes all it can get.
pub const PLAN_TICKS: u32 = 9;

/// Beyond how many times its planned time a task counts as off plan (rule 8).
/// Two, because what varies by less than that is the same behaviour in another
/// mood (another input, a cold cache), and demoting it would cost more.
pub const OVERRUN_FACTOR: u64 = 2;

/// How many ticks must find a task beyond that before it is demoted (rule 8).
/// Two, because one may hit a task that was planned for less than a tick.
pub const OVERRUN_TICKS: u8 = 2;

/// Or how many times the CPU must go over from it to another when it is beyond
/// that: a task may run and block between ticks, and no tick ever meet it.
/// Sixteen, so that a task planned for next to nothing may be interrupted.
pub const OVERRUN_HANDOVERS: u8 = 16;

/// What a tick counts for, where a handover counts for one.
const OVERRUN_TICK_POINTS: u8 = OVERRUN_HANDOVERS / OVERRUN_TICKS;

/// A set of ranks below [`MAX_TASKS`], two levels of one word each: insert,
/// remove and first cost a constant number of instructions. 520 bytes.
///
/// SUMMARY: bit i of `summary` is set exactly if `words[i]` is not zero.
struct RankSet {
    summary: u64,
    words: [u64; 64],
}

const _: () = assert!(MAX_TASKS == 64 * 64, "RankSet has two levels of 64");

impl RankSet {
    const EMPTY: Self = Self {
        summary: 0,
        words: [0; 64],
    };

    #[inline]
    const fn insert(&mut self, rank: usize) {
        self.words[rank / 64] |= 1 << (rank % 64);
        self.summary |= 1 << (rank / 64);
    }

    #[inline]
    const fn remove(&mut self, rank: usize) {
        let word = &mut self.words[rank / 64];
        *word &= !(1 << (rank % 64));
        if *word == 0 {
            self.summary &= !(1 << (rank / 64));
        }
    }

    #[inline]
    const fn first(&self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let i = self.summary.trailing_zeros() as usize;
        // The mask says to the compiler what SUMMARY says to us: i is below 64.
        Some(i * 64 + self.words[i % 64].trailing_zeros() as usize)
    }

    #[cfg(test)]
    fn assert_valid(&self) {
        for (i, &word) in self.words.iter().enumerate() {
            assert_eq!(self.summary >> i & 1 == 1, word != 0, "SUMMARY at {i}");
        }
    }
}

/// What the replay knows of the task at one rank.
struct Entry {
    key: TaskKey,
    planned: Counts,
    used: Counts,
    children: u32,
    /// Up to [`OVERRUN_HANDOVERS`], where the task is demoted (rule 8).
    overrun: u8,
    taken: bool,
}

impl Entry {
    #[inline]
    const fn demoted(&self) -> bool {
        self.overrun >= OVERRUN_HANDOVERS
    }

    /// Rule 8: `used` has been looked at, for so many `points`. Whether the task
    /// is demoted by this.
    #[inline]
    fn watch(&mut self, used: Counts, points: u8) -> bool {
        if self.demoted() || used <= self.planned.saturating_mul(OVERRUN_FACTOR) {
            return false;
        }
        self.overrun += points;
        self.demoted()
    }
}

/// A plan made ready to be followed. 56 bytes a task and 600 in all, the latter
/// inside the scheduler: a box of its own would be one more load on the way.
pub struct Table {
    entries: Box<[Entry]>,
    /// (key, rank), sorted by key.
    by_key: Box<[(TaskKey, u32)]>,
    /// By rank: the ready task, as `Arc::into_raw` gave it, or null.
    ///
    /// SLOTS: a slot is not null exactly if its rank is in `ready`, and then it
    /// owns one handle of a `PbgTask<T>` for the `T` of the `Replay` around it.
    slots: Box<[*const ()]>,
    ready: RankSet,
    root_children: u32,
    /// Ticks since a task outside the plan had its last turn, or since there was
    /// none ready (rule 7).
    plan_ticks: u32,
    /// The fallback queue's turn has come (rule 7).
    turn_due: bool,
    /// The running task, which is outside the plan, has its turn of a whole tick.
    in_turn: bool,
}

// SAFETY: until a `Replay` takes the table over, all slots are null.
unsafe impl Send for Table {}

fn boxed<A>(items: impl ExactSizeIterator<Item = A>) -> Result<Box<[A]>, Error> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(items.len())
        .map_err(|_| Error::NoMemory)?;
    vec.extend(items);
    Ok(vec.into_boxed_slice())
}

impl Table {
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let tasks = plan.tasks();
        let mut by_key = boxed(
            tasks
                .iter()
                .enumerate()
                .map(|(rank, task)| (task.key, rank as u32)),
        )?;
        by_key.sort_unstable_by_key(|&(key, _)| key);
        Ok(Self {
            entries: boxed(tasks.iter().map(|task| Entry {
                key: task.key,
                planned: task.run,
                used: Counts::ZERO,
                children: 0,
                overrun: 0,
                taken: false,
            }))?,
            by_key,
            slots: boxed(tasks.iter().map(|_| core::ptr::null()))?,
            ready: RankSet::EMPTY,
            root_children: 0,
            plan_ticks: 0,
            turn_due: false,
            in_turn: false,
        })
    }
}

/// A plan that is being followed by a scheduler of tasks `T`.
pub struct Replay<T> {
    table: Table,
    owns: PhantomData<Arc<PbgTask<T>>>,
}

impl<T> Replay<T> {
    /// Takes a table over.
    pub fn new(table: Table) -> Self {
        // Establishes SLOTS for this T.
        assert!(
            table.slots.iter().all(|slot| slot.is_null()),
            "a table is followed once"
        );
        Self {
            table,
            owns: PhantomData,
        }
    }

    /// A task was spawned by `parent`; says which member it is (rules 1 and 6).
    pub fn spawned(&mut self, parent: Member, control: &Control) -> Member {
        let table = &mut self.table;
        let (key, children) = match parent.index() {
            Some(rank) => {
                let entry = &mut table.entries[rank];
                (entry.key, &mut entry.children)
            }
            None if parent == Member::ROOT => (TaskKey::ROOT, &mut table.root_children),
            None => {
                return Member::OUTSIDE;
            }
        };
        let key = key.child(*children);
        *children = children.wrapping_add(1);
        if let Ok(found) = table.by_key.binary_search_by_key(&key, |&(key, _)| key) {
            let rank = table.by_key[found].1;
            let entry = &mut table.entries[rank as usize];
            if !core::mem::replace(&mut entry.taken, true) {
                count(&control.tally.matched);
                return Member(rank);
            }
        }
        count(&control.tally.unplanned);
        Member::OUTSIDE
    }

    /// Whether `member` runs by the plan, and not from the fallback queue.
    #[inline]
    pub fn follows(&self, member: Member) -> bool {
        member
            .index()
            .is_some_and(|rank| !self.table.entries[rank].demoted())
    }

    /// `task`, which the plan knows as `member`, is ready.
    #[inline]
    pub fn ready(&mut self, member: Member, task: Arc<PbgTask<T>>) {
        let rank = member.0 as usize;
        let slot = &mut self.table.slots[rank];
        assert!(slot.is_null(), "rank {rank} is ready twice");
        *slot = Arc::into_raw(task).cast();
        self.table.ready.insert(rank);
    }

    /// Takes the ready task with the lowest rank, unless it is the fallback
    /// queue's turn and somebody is `waiting` there.
    #[inline]
    pub fn take_first(&mut self, waiting: bool) -> Option<(Member, Arc<PbgTask<T>>)> {
        if self.table.turn_due && waiting {
            return None;
        }
        let rank = self.table.ready.first()?;
        self.table.in_turn = false;
        Some((Member(rank as u32), self.take(rank)))
    }

    #[inline]
    fn take(&mut self, rank: usize) -> Arc<PbgTask<T>> {
        self.table.ready.remove(rank);
        let raw = core::mem::replace(&mut self.table.slots[rank], core::ptr::null());
        assert!(
            !raw.is_null(),
            "rank {rank} is in the ready set without a task"
        );
        // SAFETY: by SLOTS the pointer came from `Arc::into_raw` of this type in
        // `ready`, and the slot's handle goes over to the result.
        unsafe { Arc::from_raw(raw.cast()) }
    }

    /// Whether a planned task is ready.
    #[inline]
    pub const fn any_ready(&self) -> bool {
        self.table.ready.summary != 0
    }

    /// The fallback queue is served now, whether its turn has come or no planned
    /// task is ready.
    #[inline]
    pub fn fallback_turn(&mut self, control: &Control) {
        if core::mem::replace(&mut self.table.turn_due, false) {
            self.begin_turn(control);
        }
    }

    fn begin_turn(&mut self, control: &Control) {
        self.table.plan_ticks = 0;
        self.table.in_turn = true;
        if self.any_ready() {
            count(&control.tally.turns);
        }
    }

    /// A burst of `member` ended: the CPU goes over to another.
    #[inline]
    pub fn ran(&mut self, member: Member, burst: Counts, control: &Control) {
        if let Some(rank) = member.index() {
            let entry = &mut self.table.entries[rank];
            entry.used += burst;
            if entry.watch(entry.used, 1) {
                count(&control.tally.demoted);
            }
        }
    }

    /// A tick hit `member`, which follows the plan and has run for `burst` since
    /// it got the CPU; `waiting` is whether the fallback queue has somebody.
    pub fn ticked(
        &mut self,
        member: Member,
        burst: Counts,
        waiting: bool,
        control: &Control,
    ) -> Tick {
        let table = &mut self.table;
        let rank = member.0 as usize;
        let mut tick = Tick::Continue;

        let entry = &mut table.entries[rank];
        if entry.watch(entry.used.saturating_add(burst), OVERRUN_TICK_POINTS) {
            count(&control.tally.demoted); // rule 8
            tick = Tick::Reschedule;
        }
        if table.ready.first().is_some_and(|first| first < rank) {
            tick = Tick::Reschedule; // rule 5
        }
        if waiting {
            table.plan_ticks += 1;
            if table.plan_ticks >= PLAN_TICKS {
                table.turn_due = true; // rule 7
                tick = Tick::Reschedule;
            }
        } else {
            // Nobody saves up turns by arriving late.
            table.plan_ticks = 0;
            table.turn_due = false;
        }
        tick
    }

    /// A tick hit a task outside the plan while a planned one is ready. It gives
    /// way, unless its turn begins with this tick: a planned task that blocks
    /// before every tick must not take the ticks' worth from it (rule 7).
    pub fn ticked_outside(&mut self, control: &Control) -> Tick {
        if !core::mem::replace(&mut self.table.in_turn, false) {
            self.table.plan_ticks += 1;
            if self.table.plan_ticks >= PLAN_TICKS {
                self.begin_turn(control);
                return Tick::Continue;
            }
        }
        Tick::Reschedule
    }

    /// Takes `task` out if it is ready by the plan.
    pub fn remove(&mut self, member: Member, task: &Arc<PbgTask<T>>) -> Option<Arc<PbgTask<T>>> {
        let rank = member.index()?;
        let is_here = self.table.slots[rank] == Arc::as_ptr(task).cast();
        is_here.then(|| self.take(rank))
    }
}

impl<T> Drop for Replay<T> {
    fn drop(&mut self) {
        while let Some(rank) = self.table.ready.first() {
            drop(self.take(rank));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_rank_set_is_an_ordered_set(ops in prop::collection::vec((0..2u8, 0..MAX_TASKS), 0..300)) {
            let (mut set, mut model) = (RankSet::EMPTY, BTreeSet::new());
            for (op, rank) in ops {
                // Few distinct ranks, at both ends and in the middle, so that removals hit.
                let rank = [rank, rank % 3, MAX_TASKS - 1 - rank % 3][rank % 3];
                if op == 0 {
                    set.insert(rank);
                    model.insert(rank);
                } else {
                    set.remove(rank);
                    model.remove(&rank);
                }
                set.assert_valid();
                prop_assert_eq!(set.first(), model.first().copied());
            }
        }
    }
}
