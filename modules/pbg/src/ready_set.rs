//! The ready set: the ready tasks that follow the plan, each at a rank.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::task::{PbgState, PbgTask};
use pbg_profile::MAX_TASKS;
use pbg_record::error::{Error, boxed};
use sched_core::queue::Queue;

/// The most tasks at one rank that a returning task is compared with. The tasks at a rank are sorted by
/// the time before them, but only among this many. So a return to the ready set takes bounded time, and
/// the order behind them may be lost.
pub const MOST_PASSED: usize = 64;

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
        // By SUMMARY i is below 64. The remainder tells the compiler, which then omits a check.
        Some(i * 64 + self.words[i % 64].trailing_zeros() as usize)
    }

    /// Returns the first rank that is no lower than `rank`.
    fn first_from(&self, rank: usize) -> Option<usize> {
        let (i, bit) = (rank / 64, rank % 64);
        let here = self.words.get(i)? & (u64::MAX << bit);
        if here != 0 {
            return Some(i * 64 + here.trailing_zeros() as usize);
        }
        let later = self.summary & (u64::MAX << i) & !(1 << i);
        let next = (later != 0).then(|| later.trailing_zeros() as usize)?;
        Some(next * 64 + self.words[next].trailing_zeros() as usize)
    }

    #[cfg(test)]
    fn assert_valid(&self) {
        for (i, &word) in self.words.iter().enumerate() {
            assert_eq!(self.summary >> i & 1 == 1, word != 0, "SUMMARY at {i}");
        }
    }
}

/// Ready tasks, by the rank at which each stands. That is not always its own, as the time that it
/// has had moves it forward.
///
/// RANKS: a queue is not empty exactly if its rank is in `ranks`.
pub struct ReadySet<T> {
    ranks: RankSet,
    queues: Box<[Queue<T, PbgState>]>,
}

/// The memory of a rank, in bytes.
pub const RANK_BYTES: usize = size_of::<Queue<(), PbgState>>();

impl ReadySet<()> {
    /// Creates an empty set of this many ranks. The call that does so does not know the type of the
    /// tasks: see [`ReadySet::typed`].
    pub fn new(ranks: usize) -> Result<Self, Error> {
        Ok(Self {
            ranks: RankSet::EMPTY,
            queues: boxed((0..ranks).map(|_| Queue::new()))?,
        })
    }
}

impl<T> ReadySet<T> {
    /// Turns an empty set into one of tasks of another type.
    pub fn typed(empty: ReadySet<()>) -> Self {
        Self {
            ranks: RankSet::EMPTY,
            queues: Queue::typed(empty.queues), // establishes RANKS: all are empty
        }
    }

    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.ranks.summary == 0
    }

    /// Puts a task in at `rank`, behind [`MOST_PASSED`] others there, or before the first task for
    /// which `before` returns true.
    pub fn insert(
        &mut self,
        rank: usize,
        task: Arc<PbgTask<T>>,
        before: impl Fn(&PbgTask<T>) -> bool,
    ) {
        self.queues[rank].push_before(task, MOST_PASSED, before);
        self.ranks.insert(rank);
    }

    /// Puts a task in at `rank`, behind all others there.
    pub fn push_back(&mut self, rank: usize, task: Arc<PbgTask<T>>) {
        self.queues[rank].push_back(task);
        self.ranks.insert(rank);
    }

    /// Returns the first task of all.
    #[inline]
    pub fn first(&self) -> Option<&PbgTask<T>> {
        self.queues[self.ranks.first()?].first()
    }

    /// Takes the first task of all.
    #[inline]
    pub fn pop_first(&mut self) -> Option<Arc<PbgTask<T>>> {
        let rank = self.ranks.first()?;
        let queue = &mut self.queues[rank];
        let task = queue
            .pop_front()
            .expect("RANKS: a rank is in the set without a task");
        if queue.is_empty() {
            self.ranks.remove(rank);
        }
        Some(task)
    }

    /// Returns all tasks in order, each with the rank at which it stands.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &PbgTask<T>)> {
        let next = |rank: &usize| self.ranks.first_from(rank + 1);
        let ranks = core::iter::successors(self.ranks.first(), next);
        ranks.flat_map(|rank| self.queues[rank].iter().map(move |task| (rank, task)))
    }

    /// Takes the first task of all that is `wanted`. Linear in those before it.
    pub fn remove_first(
        &mut self,
        wanted: impl Fn(&PbgTask<T>) -> bool,
    ) -> Option<Arc<PbgTask<T>>> {
        let (rank, _) = self.iter().find(|(_, task)| wanted(task))?;
        self.remove(rank, wanted)
    }

    /// Takes the first task at `rank` out that is `wanted`.
    pub fn remove(
        &mut self,
        rank: usize,
        wanted: impl Fn(&PbgTask<T>) -> bool,
    ) -> Option<Arc<PbgTask<T>>> {
        let queue = &mut self.queues[rank];
        let task = queue.remove_first(wanted)?;
        if queue.is_empty() {
            self.ranks.remove(rank);
        }
        Some(task)
    }

    /// Returns the last rank.
    pub const fn last_rank(&self) -> usize {
        self.queues.len() - 1
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
                prop_assert_eq!(set.first_from(rank), model.range(rank..).next().copied());
            }
        }
    }
}
