//! Compares the executor with a model made of the standard library's queues. Random coroutines wake each other, change
//! priorities, donate, cancel, yield, wait and end. The whole order in which they are polled must agree.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::Poll;
use std::sync::Mutex;

use proptest::prelude::*;

use super::machine::{run, with_domain};
use crate::{CoroutineId, Donation, Priority, cancel, donate, set_priority, wake};

#[derive(Clone, Debug)]
enum Op {
    Wake(usize),
    SetPriority(usize, usize),
    Donate(usize, usize),
    /// Ends the oldest donation.
    Return,
    Cancel(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Yields,
    Waits,
    Ends,
}

/// The operations of a coroutine in a poll, and the end of that poll.
type Step = (Vec<Op>, Then);

#[derive(Clone, Debug)]
struct Script {
    priority: usize,
    steps: Vec<Step>,
}

const COROUTINES: usize = 5;

fn op() -> impl Strategy<Value = Op> {
    let n = 0..COROUTINES;
    prop_oneof![
        4 => n.clone().prop_map(Op::Wake),
        2 => (n.clone(), 0_usize..8).prop_map(|(n, to)| Op::SetPriority(n, to)),
        2 => (n.clone(), 0_usize..8).prop_map(|(n, to)| Op::Donate(n, to)),
        1 => Just(Op::Return),
        1 => n.prop_map(Op::Cancel),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let then = prop_oneof![4 => Just(Then::Yields), 4 => Just(Then::Waits), 1 => Just(Then::Ends)];
    let step = (prop::collection::vec(op(), 0..3), then);
    (0_usize..8, prop::collection::vec(step, 0..8))
        .prop_map(|(priority, steps)| Script { priority, steps })
}

/// An observed event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    Polled(usize),
    Cancelled(usize),
}

/// A coroutine of the model.
#[derive(Default)]
struct Model {
    base: usize,
    donated: Vec<usize>,
    steps: VecDeque<Step>,
    is_woken: bool,
    runs: bool,
    is_cancelled: bool,
    has_ended: bool,
    level: Option<usize>,
}

#[derive(Default)]
struct Executor {
    all: Vec<Model>,
    levels: [VecDeque<usize>; 8],
    inbox: VecDeque<usize>,
    moved: VecDeque<usize>,
    donations: VecDeque<(usize, usize)>,
    seen: Vec<Seen>,
}

impl Executor {
    fn effective(&self, of: usize) -> usize {
        let of = &self.all[of];
        of.donated.iter().copied().min().unwrap_or(7).min(of.base)
    }

    fn wake(&mut self, n: usize) {
        let of = &mut self.all[n];
        if !of.has_ended && !of.is_woken {
            of.is_woken = true;
            if !of.runs {
                self.arrive(n);
            }
        }
    }

    /// Queues a woken coroutine at once if a poll wakes it, the inbox is empty, and it is not more urgent than the
    /// running one. Otherwise it goes through the inbox (rule 4 of `worker`).
    fn arrive(&mut self, n: usize) {
        let polled = self.all.iter().find(|of| of.runs);
        let level = polled.and_then(|of| of.level);
        let is_first = self.inbox.is_empty() && self.moved.is_empty();
        match level {
            Some(level) if is_first && self.effective(n) >= level => self.enqueue(n),
            _ => self.inbox.push_back(n),
        }
    }

    fn change(&mut self, n: usize, change: impl FnOnce(&mut Model)) {
        let was = self.effective(n);
        change(&mut self.all[n]);
        if self.effective(n) != was && !self.all[n].has_ended {
            if !self.moved.contains(&n) {
                self.moved.push_back(n);
            }
            self.wake(n);
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Wake(n) => self.wake(n),
            Op::SetPriority(n, to) if !self.all[n].has_ended => {
                self.change(n, |of| of.base = to);
            }
            Op::Donate(n, level) if !self.all[n].has_ended => {
                self.donations.push_back((n, level));
                self.change(n, |of| of.donated.push(level));
            }
            Op::Return => {
                if let Some((n, level)) = self.donations.pop_front() {
                    self.change(n, |of| {
                        let at = of.donated.iter().position(|&of| of == level).unwrap();
                        of.donated.remove(at);
                    });
                }
            }
            Op::Cancel(n) if !self.all[n].has_ended => {
                self.all[n].is_cancelled = true;
                self.wake(n);
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, n: usize) {
        let level = self.effective(n);
        self.all[n].level = Some(level);
        self.levels[level].push_back(n);
    }

    fn dequeue(&mut self, n: usize) {
        let level = self.all[n].level.take().unwrap();
        self.levels[level].retain(|&of| of != n);
    }

    fn drain_inbox(&mut self) {
        while let Some(n) = self.inbox.pop_front() {
            self.enqueue(n);
        }
        while let Some(n) = self.moved.pop_front() {
            let level = self.effective(n);
            if self.all[n].level.is_some_and(|of| of != level) {
                self.dequeue(n);
                self.enqueue(n);
            }
        }
    }

    fn run_all(&mut self) {
        loop {
            self.drain_inbox();
            let Some(level) = self.levels.iter().position(|of| !of.is_empty()) else {
                break;
            };
            let n = self.levels[level][0];
            self.all[n].is_woken = false;
            self.all[n].runs = true;
            let mut then = Then::Ends;
            if self.all[n].is_cancelled {
                self.seen.push(Seen::Cancelled(n));
            } else {
                self.seen.push(Seen::Polled(n));
                if let Some((ops, after)) = self.all[n].steps.pop_front() {
                    ops.iter().for_each(|op| self.apply(op));
                    then = after;
                }
            }
            self.all[n].runs = false;
            match then {
                Then::Yields => self.all[n].is_woken = true,
                Then::Waits => {}
                Then::Ends => self.all[n].has_ended = true,
            }
            if then != Then::Ends && self.all[n].is_woken {
                self.levels[level].rotate_left(1);
            } else {
                self.dequeue(n);
            }
        }
    }
}

/// The state that the coroutines of the executor share.
#[derive(Default)]
struct Shared {
    cids: Vec<CoroutineId>,
    donations: VecDeque<Donation>,
    seen: Vec<Seen>,
}

fn apply(shared: &Mutex<Shared>, op: &Op) {
    let cid = |n: usize| shared.lock().unwrap().cids[n];
    // A stale name is no error here.
    match *op {
        Op::Wake(n) => drop(wake(cid(n))),
        Op::SetPriority(n, to) => drop(set_priority(cid(n), Priority::new(to))),
        Op::Donate(n, level) => {
            if let Ok(donation) = donate(cid(n), Priority::new(level)) {
                shared.lock().unwrap().donations.push_back(donation);
            }
        }
        Op::Return => {
            let donation = shared.lock().unwrap().donations.pop_front();
            drop(donation);
        }
        Op::Cancel(n) => drop(cancel(cid(n))),
    }
}

/// Notes the drop of a future that has not ended by itself.
struct Ends(usize, Arc<Mutex<Shared>>, bool);

impl Ends {
    fn by_itself(&mut self) {
        self.2 = true;
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if !self.2 {
            self.1.lock().unwrap().seen.push(Seen::Cancelled(self.0));
        }
    }
}

/// Runs the scripts on the executor and on the model, and compares the orders of polls.
fn compare(scripts: &[Script]) {
    let mut model = Executor::default();
    with_domain(|domain, _| {
        let shared = Arc::new(Mutex::new(Shared::default()));
        for (n, script) in scripts.iter().enumerate() {
            let mut steps: VecDeque<_> = script.steps.clone().into();
            model.all.push(Model {
                base: script.priority,
                steps: steps.clone(),
                is_woken: true,
                ..Model::default()
            });
            model.inbox.push_back(n);
            let of = shared.clone();
            let mut ends = Ends(n, shared.clone(), false);
            let handle = domain.spawn(
                async move {
                    poll_fn(|context| {
                        of.lock().unwrap().seen.push(Seen::Polled(n));
                        let Some((ops, then)) = steps.pop_front() else {
                            return Poll::Ready(());
                        };
                        ops.iter().for_each(|op| apply(&of, op));
                        match then {
                            Then::Yields => context.waker().wake_by_ref(),
                            Then::Waits => {}
                            Then::Ends => return Poll::Ready(()),
                        }
                        Poll::Pending
                    })
                    .await;
                    ends.by_itself();
                },
                Priority::new(script.priority),
            );
            shared.lock().unwrap().cids.push(handle.cid());
        }
        // Waiting coroutines are woken from outside until all have ended.
        for _ in 0..10 {
            run(domain);
            model.run_all();
            for n in 0..scripts.len() {
                apply(&shared, &Op::Wake(n));
                model.apply(&Op::Wake(n));
            }
        }
        assert_eq!(shared.lock().unwrap().seen, model.seen);
        assert!(model.all.iter().all(|of| of.has_ended));
        let donations = core::mem::take(&mut shared.lock().unwrap().donations);
        drop(donations);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn order_of_polls_agrees_with_the_model(
        scripts in prop::collection::vec(script(), COROUTINES..=COROUTINES)
    ) {
        compare(&scripts);
    }
}
