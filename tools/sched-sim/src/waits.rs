//! Who waits for whom, as semaphores of the model: one for each pair of a waker and a waiter.
//!
//! A wake is a permit, so one that comes before its wait counts. That is what makes a recording
//! playable in another order: the n-th wait of a pair goes with its n-th wake, so any order that
//! keeps both sides' own can be played to the end. Where a recording has lost who woke whom
//! (another one each time, phases that were made coarser), wakes go in turn to those whose waits
//! have none; and who ends lets go all that wait for it.

use std::collections::BTreeMap;

use crate::workload::{Peer, Wakes, Workload};

/// The semaphores of a workload.
#[derive(Debug)]
pub struct Waits {
    /// By waker and waiter.
    queues: BTreeMap<(usize, Peer), Queue>,
}

#[derive(Debug)]
struct Queue {
    /// Its number in the model.
    number: u32,
    /// How many waits have no wake of their own.
    missing: u64,
}

impl Waits {
    /// Those of a workload, numbered from `first`.
    pub fn new(workload: &Workload, first: u32) -> Self {
        let waits = workload.waits().into_iter().zip(first..);
        let queue = |((pair, missing), number)| (pair, Queue { number, missing });
        let mut this = Self {
            queues: waits.map(queue).collect(),
        };
        for (waker, job) in workload.jobs.iter().enumerate() {
            for wakes in job.steps.iter().flat_map(|work| &work.wakes) {
                if let Some(whom) = wakes.whom
                    && let Some(queue) = this.queues.get_mut(&(waker, whom))
                {
                    queue.missing = queue.missing.saturating_sub(wakes.count);
                }
            }
        }
        this
    }

    /// Where this one waits for that one.
    ///
    /// # Panics
    /// If it never does.
    pub fn queue(&self, waker: usize, waiter: Peer) -> u32 {
        self.queues[&(waker, waiter)].number
    }

    /// All at which somebody waits for this task.
    pub fn of_waker(&self, waker: usize) -> impl Iterator<Item = u32> {
        self.pairs(waker).map(|(_, queue)| queue.number)
    }

    fn pairs(&self, waker: usize) -> impl Iterator<Item = (Peer, &Queue)> {
        let all = (waker, Peer::Main)..=(waker, Peer::Task(usize::MAX));
        let pairs = self.queues.range(all);
        pairs.map(|(&(_, waiter), queue)| (waiter, queue))
    }

    /// Whom a task wakes, wake by wake.
    pub fn waking(&self, waker: usize) -> Waking {
        let queues = self.pairs(waker);
        Waking {
            named: queues.map(|(whom, queue)| (whom, queue.number)).collect(),
            missing: self
                .pairs(waker)
                .filter(|(_, queue)| queue.missing > 0)
                .map(|(_, queue)| (queue.number, queue.missing))
                .collect(),
            turn: 0,
        }
    }
}

/// Where the next wakes of a task go.
#[derive(Debug)]
pub struct Waking {
    named: BTreeMap<Peer, u32>,
    /// Queues whose waits have no wake, and how many.
    missing: Vec<(u32, u64)>,
    turn: usize,
}

impl Waking {
    /// Where the next of these wakes goes, if anybody waits for it.
    pub fn next(&mut self, wakes: &Wakes) -> Option<u32> {
        match wakes.whom {
            Some(whom) => self.named.get(&whom).copied(),
            None => {
                let at = self.turn.checked_rem(self.missing.len())?;
                let (queue, left) = &mut self.missing[at];
                let queue = *queue;
                *left -= 1;
                match *left {
                    0 => drop(self.missing.remove(at)),
                    _ => self.turn = at + 1,
                }
                Some(queue)
            }
        }
    }
}
