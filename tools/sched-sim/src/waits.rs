//! Waits of tasks for each other as semaphores of the model, one for each pair of a waker and a
//! waiter.
//!
//! A wake is a permit, so a wake that comes before its wait is not lost. The n-th wait of a pair
//! takes the permit of its n-th wake. So a recording can be played to the end in any order that
//! keeps each task's own. Some wakes do not name the woken task: it was another one each time, or
//! phases were merged. Such wakes go in turn to the waits that have none. A task that ends releases
//! all its waiters.
//!
//! SLOT: A wait that did not happen is not recorded. If a task in the middle of a pipeline found
//! the next task waiting each time, it was never seen to wait for room. Played without such waits,
//! it would run ahead as far as the policy lets it. So the model assumes a buffer of one slot
//! between two tasks: the waker waits until the other task has taken the item that it was last
//! woken for. It does so if all of this is true:
//!
//! - There were at least `MANY` wakes, and each of them found the task waiting. If a buffer has
//!   more room, its task is ready at times, and that wake is not recorded.
//! - The waker never waits for that task. If it did, the recording would limit it by itself.
//! - Each of the waker's run intervals ends in a wait for another task, and has one such wake at
//!   most. So the waker makes its items from those of others, one by one, and is no source of
//!   requests.

use std::collections::{BTreeMap, BTreeSet};

use crate::workload::{Job, Peer, Then, Wakes, Work, Workload};

/// The semaphores of a workload.
#[derive(Debug)]
pub struct Waits {
    /// The queue at which the waiter waits, by waker and waiter.
    queues: BTreeMap<(usize, Peer), Queue>,
    /// The queue at which the waker waits until there is room, by waiter and waker (SLOT).
    room: BTreeMap<(usize, usize), u32>,
    /// The queue that has permits from the end of a task on, by the task. Others poll for that.
    ends: BTreeMap<usize, u32>,
}

/// A wake: a permit of one queue, after a wait at another (SLOT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// The queue at which the woken task waits.
    pub queue: u32,
    /// The queue at which its waker waits first.
    pub room: Option<u32>,
}

#[derive(Debug)]
struct Queue {
    /// Its number in the model.
    number: u32,
    /// The number of waits without a wake of their own.
    missing: u64,
}

impl Waits {
    /// Creates the semaphores of a workload, numbered from `first`.
    pub fn new(workload: &Workload, first: u32) -> Self {
        let mut numbers = first..;
        let waits = workload.waits();
        let slots = waits.keys().filter_map(|&(waker, waiter)| match waiter {
            Peer::Task(waiter) if has_slot(workload, &waits, waker, waiter) => {
                Some((waiter, waker))
            }
            Peer::Task(_) | Peer::Main => None,
        });
        let room = slots.zip(&mut numbers).collect();
        let polled: BTreeSet<usize> = workload.jobs.iter().flat_map(Job::polls).collect();
        let ends = polled.into_iter().zip(&mut numbers).collect();
        let queue = |((pair, missing), number)| (pair, Queue { number, missing });
        let mut this = Self {
            queues: waits.into_iter().zip(numbers).map(queue).collect(),
            room,
            ends,
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

    /// Returns the queue at which `waiter` waits for `waker`.
    ///
    /// # Panics
    /// If `waiter` never waits for it.
    pub fn queue(&self, waker: usize, waiter: Peer) -> u32 {
        self.queues[&(waker, waiter)].number
    }

    /// Returns the queue that has permits when this task has ended.
    ///
    /// # Panics
    /// If no task polls for that.
    pub fn end(&self, task: usize) -> u32 {
        self.ends[&task]
    }

    /// Returns all queues at which tasks wait for this one.
    pub fn of_task(&self, task: usize) -> impl Iterator<Item = u32> {
        let room = self.room.range((task, 0)..=(task, usize::MAX));
        let wakes = self.pairs(task).map(|(_, queue)| queue.number);
        let end = self.ends.get(&task).copied();
        wakes.chain(room.map(|(_, &queue)| queue)).chain(end)
    }

    /// Returns the queue at which `waker` waits until `waiter` has taken the item that it was last
    /// woken for (SLOT).
    pub fn room(&self, waker: usize, waiter: usize) -> Option<u32> {
        self.room.get(&(waiter, waker)).copied()
    }

    /// Returns the queues of all slots, each of which has a permit at first (SLOT).
    pub fn rooms(&self) -> impl Iterator<Item = u32> {
        self.room.values().copied()
    }

    fn wake(&self, waker: usize, whom: Peer, queue: &Queue) -> Wake {
        Wake {
            queue: queue.number,
            room: match whom {
                Peer::Task(waiter) => self.room(waker, waiter),
                Peer::Main => None,
            },
        }
    }

    fn pairs(&self, waker: usize) -> impl Iterator<Item = (Peer, &Queue)> {
        let all = (waker, Peer::Main)..=(waker, Peer::Task(usize::MAX));
        let pairs = self.queues.range(all);
        pairs.map(|(&(_, waiter), queue)| (waiter, queue))
    }

    /// Returns the wakes of a task, one by one.
    pub fn waking(&self, waker: usize) -> Waking {
        let queues = self.pairs(waker);
        Waking {
            named: queues
                .map(|(whom, queue)| (whom, self.wake(waker, whom, queue)))
                .collect(),
            missing: self
                .pairs(waker)
                .filter(|(_, queue)| queue.missing > 0)
                .map(|(_, queue)| (queue.number, queue.missing))
                .collect(),
            turn: 0,
        }
    }
}

/// The number of wakes that do not all find the woken task waiting by accident.
const MANY: u64 = 64;

/// Returns true if there is a buffer of one slot between the two tasks (SLOT).
fn has_slot(
    workload: &Workload,
    waits: &BTreeMap<(usize, Peer), u64>,
    waker: usize,
    waiter: usize,
) -> bool {
    let whom = Peer::Task(waiter);
    let steps = &workload.jobs[waker].steps;
    let woken = |work: &Work| {
        let of = work.wakes.iter().filter(|wakes| wakes.whom == Some(whom));
        of.map(|wakes| wakes.count).sum::<u64>()
    };
    let times = waits[&(waker, whom)];
    times >= MANY
        && steps.iter().map(woken).sum::<u64>() == times
        && !waits.contains_key(&(waiter, Peer::Task(waker)))
        && steps.iter().all(|work| match work.then {
            Then::Wait(_) | Then::Exit => woken(work) <= work.times,
            Then::Spawn(_) => true,
            Then::Yield | Then::Sleep(_) | Then::Poll { .. } => false,
        })
}

/// The next wakes of a task.
#[derive(Debug)]
pub struct Waking {
    named: BTreeMap<Peer, Wake>,
    /// The queues with waits that have no wake, each with the number of these waits.
    missing: Vec<(u32, u64)>,
    turn: usize,
}

impl Waking {
    /// Returns the next of these wakes, if a task waits for it.
    pub fn next(&mut self, wakes: &Wakes) -> Option<Wake> {
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
                Some(Wake { queue, room: None })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Arrival;

    fn wakes(task: usize, count: u64) -> Wakes {
        Wakes {
            count,
            whom: Some(Peer::Task(task)),
            after_ns: 1.0,
        }
    }

    /// Returns a source, a filter that wakes the sink `woken` times, and a sink that waits for the
    /// filter `waits` times.
    fn pipeline(woken: u64, waits: u64) -> Workload {
        let job = |steps| Job {
            name: "job".to_owned(),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps: vec![steps, Work::new(1, 1.0, Then::Exit)],
        };
        let mut source = Work::new(MANY, 1.0, Then::Wait(1));
        source.wakes[0] = wakes(1, MANY);
        let mut filter = Work::new(MANY, 1.0, Then::Wait(0));
        filter.wakes = [wakes(0, MANY), wakes(2, woken)];
        let sink = Work::new(waits, 1.0, Then::Wait(1));
        Workload {
            gc_look_ns: None,
            jobs: vec![job(source), job(filter), job(sink)],
        }
    }

    fn rooms(workload: &Workload) -> Vec<u32> {
        Waits::new(workload, 1).rooms().collect()
    }

    #[test]
    fn waker_that_found_the_other_waiting_each_time_waits_for_room() {
        let waits = Waits::new(&pipeline(MANY, MANY), 1);
        let room = waits.room(1, 2).expect("a slot");
        assert_eq!(waits.rooms().collect::<Vec<_>>(), [room]);
        let wake = waits.waking(1).next(&wakes(2, 1)).unwrap();
        assert_eq!(wake.room, Some(room));
        assert_eq!(wake.queue, waits.queue(1, Peer::Task(2)));
        assert!(
            waits.of_task(2).any(|queue| queue == room),
            "a sink that ends releases the filter"
        );
        // Source and filter wait for each other in the recording's own words.
        assert_eq!((waits.room(0, 1), waits.room(1, 0)), (None, None));
    }

    #[test]
    fn wakes_that_found_it_ready_and_sources_of_requests_have_no_slot() {
        assert_eq!(rooms(&pipeline(MANY - 1, MANY - 1)).len(), 0, "too few");
        assert_eq!(rooms(&pipeline(MANY + 1, MANY)).len(), 0, "one too many");
        for then in [Then::Yield, Then::Sleep(1.0)] {
            let mut workload = pipeline(MANY, MANY);
            workload.jobs[1].steps.insert(0, Work::new(1, 1.0, then));
            assert_eq!(rooms(&workload).len(), 0, "{then:?}");
        }
        let mut two_by_two = pipeline(MANY, MANY);
        two_by_two.jobs[1].steps[0].times = MANY / 2;
        assert_eq!(rooms(&two_by_two).len(), 0, "two at a time");
    }
}
