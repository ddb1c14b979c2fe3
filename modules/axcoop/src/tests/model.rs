//! The executor against a model of it made of the standard library's queues: random coroutines that
//! wake each other, change priorities, lend, cancel, yield, wait and end, and the whole order in
//! which they are polled.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::Poll;
use std::sync::Mutex;

use proptest::prelude::*;

use super::machine::{run, with_domain};
use crate::{Cid, Loan, Priority, cancel, lend, set_priority, wake};

#[derive(Clone, Debug)]
enum Op {
    Wake(usize),
    SetPriority(usize, usize),
    Lend(usize, usize),
    /// The first loan that there is.
    Return,
    Cancel(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Yields,
    Waits,
    Ends,
}

/// What a coroutine does in a poll.
type Step = (Vec<Op>, Then);

#[derive(Clone, Debug)]
struct Script {
    priority: usize,
    steps: Vec<Step>,
}

const COROUTINES: usize = 5;

fn op() -> impl Strategy<Value = Op> {
    let who = 0..COROUTINES;
    prop_oneof![
        4 => who.clone().prop_map(Op::Wake),
        2 => (who.clone(), 0_usize..8).prop_map(|(who, to)| Op::SetPriority(who, to)),
        2 => (who.clone(), 0_usize..8).prop_map(|(who, to)| Op::Lend(who, to)),
        1 => Just(Op::Return),
        1 => who.prop_map(Op::Cancel),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let then = prop_oneof![4 => Just(Then::Yields), 4 => Just(Then::Waits), 1 => Just(Then::Ends)];
    let step = (prop::collection::vec(op(), 0..3), then);
    (0_usize..8, prop::collection::vec(step, 0..8))
        .prop_map(|(priority, steps)| Script { priority, steps })
}

/// What is seen of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    Polled(usize),
    Cancelled(usize),
}

/// One of the model's coroutines.
#[derive(Default)]
struct Model {
    base: usize,
    lent: Vec<usize>,
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
    loans: VecDeque<(usize, usize)>,
    seen: Vec<Seen>,
}

impl Executor {
    fn effective(&self, of: usize) -> usize {
        let of = &self.all[of];
        of.lent.iter().copied().min().unwrap_or(7).min(of.base)
    }

    fn wakes(&mut self, who: usize) {
        let of = &mut self.all[who];
        if !of.has_ended && !of.is_woken {
            of.is_woken = true;
            if !of.runs {
                self.arrives(who);
            }
        }
    }

    /// Rule 4 of the worker: at once, if it is the worker that wakes it, nothing came before by the
    /// inbox, and it is not more urgent than what is polled.
    fn arrives(&mut self, who: usize) {
        let polled = self.all.iter().find(|of| of.runs);
        let level = polled.and_then(|of| of.level);
        let is_first = self.inbox.is_empty() && self.moved.is_empty();
        match level {
            Some(level) if is_first && self.effective(who) >= level => self.queues(who),
            _ => self.inbox.push_back(who),
        }
    }

    fn changes(&mut self, who: usize, change: impl FnOnce(&mut Model)) {
        let was = self.effective(who);
        change(&mut self.all[who]);
        if self.effective(who) != was && !self.all[who].has_ended {
            if !self.moved.contains(&who) {
                self.moved.push_back(who);
            }
            self.wakes(who);
        }
    }

    fn does(&mut self, op: &Op) {
        match *op {
            Op::Wake(who) => self.wakes(who),
            Op::SetPriority(who, to) if !self.all[who].has_ended => {
                self.changes(who, |of| of.base = to);
            }
            Op::Lend(who, level) if !self.all[who].has_ended => {
                self.loans.push_back((who, level));
                self.changes(who, |of| of.lent.push(level));
            }
            Op::Return => {
                if let Some((who, level)) = self.loans.pop_front() {
                    self.changes(who, |of| {
                        let at = of.lent.iter().position(|&of| of == level).unwrap();
                        of.lent.remove(at);
                    });
                }
            }
            Op::Cancel(who) if !self.all[who].has_ended => {
                self.all[who].is_cancelled = true;
                self.wakes(who);
            }
            _ => {}
        }
    }

    fn queues(&mut self, who: usize) {
        let level = self.effective(who);
        self.all[who].level = Some(level);
        self.levels[level].push_back(who);
    }

    fn leaves(&mut self, who: usize) {
        let level = self.all[who].level.take().unwrap();
        self.levels[level].retain(|&of| of != who);
    }

    fn takes_in(&mut self) {
        while let Some(who) = self.inbox.pop_front() {
            self.queues(who);
        }
        while let Some(who) = self.moved.pop_front() {
            let level = self.effective(who);
            if self.all[who].level.is_some_and(|of| of != level) {
                self.leaves(who);
                self.queues(who);
            }
        }
    }

    fn runs(&mut self) {
        loop {
            self.takes_in();
            let Some(level) = self.levels.iter().position(|of| !of.is_empty()) else {
                break;
            };
            let who = self.levels[level][0];
            self.all[who].is_woken = false;
            self.all[who].runs = true;
            let mut then = Then::Ends;
            if self.all[who].is_cancelled {
                self.seen.push(Seen::Cancelled(who));
            } else {
                self.seen.push(Seen::Polled(who));
                if let Some((ops, after)) = self.all[who].steps.pop_front() {
                    ops.iter().for_each(|op| self.does(op));
                    then = after;
                }
            }
            self.all[who].runs = false;
            match then {
                Then::Yields => self.all[who].is_woken = true,
                Then::Waits => {}
                Then::Ends => self.all[who].has_ended = true,
            }
            if then != Then::Ends && self.all[who].is_woken {
                self.levels[level].rotate_left(1);
            } else {
                self.leaves(who);
            }
        }
    }
}

/// What the coroutines of the executor share.
#[derive(Default)]
struct Shared {
    cids: Vec<Cid>,
    loans: VecDeque<Loan>,
    seen: Vec<Seen>,
}

fn does(shared: &Mutex<Shared>, op: &Op) {
    let cid = |who: usize| shared.lock().unwrap().cids[who];
    // Who has ended is no matter.
    match *op {
        Op::Wake(who) => drop(wake(cid(who))),
        Op::SetPriority(who, to) => drop(set_priority(cid(who), Priority::new(to))),
        Op::Lend(who, level) => {
            if let Ok(loan) = lend(cid(who), Priority::new(level)) {
                shared.lock().unwrap().loans.push_back(loan);
            }
        }
        Op::Return => {
            let loan = shared.lock().unwrap().loans.pop_front();
            drop(loan);
        }
        Op::Cancel(who) => drop(cancel(cid(who))),
    }
}

/// Says so when a future is dropped that has not ended by itself.
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

fn plays(scripts: &[Script]) {
    let mut model = Executor::default();
    with_domain(|domain, _| {
        let shared = Arc::new(Mutex::new(Shared::default()));
        for (who, script) in scripts.iter().enumerate() {
            let mut steps: VecDeque<_> = script.steps.clone().into();
            model.all.push(Model {
                base: script.priority,
                steps: steps.clone(),
                is_woken: true,
                ..Model::default()
            });
            model.inbox.push_back(who);
            let of = shared.clone();
            let mut ends = Ends(who, shared.clone(), false);
            let handle = domain.spawn(
                async move {
                    poll_fn(|context| {
                        of.lock().unwrap().seen.push(Seen::Polled(who));
                        let Some((ops, then)) = steps.pop_front() else {
                            return Poll::Ready(());
                        };
                        ops.iter().for_each(|op| does(&of, op));
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
        // Whoever waits is woken from outside until all have ended.
        for _ in 0..10 {
            run(domain);
            model.runs();
            for who in 0..scripts.len() {
                does(&shared, &Op::Wake(who));
                model.does(&Op::Wake(who));
            }
        }
        assert_eq!(shared.lock().unwrap().seen, model.seen);
        assert!(model.all.iter().all(|of| of.has_ended));
        let loans = core::mem::take(&mut shared.lock().unwrap().loans);
        drop(loans);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn the_order_of_polls_is_the_models(
        scripts in prop::collection::vec(script(), COROUTINES..=COROUTINES)
    ) {
        plays(&scripts);
    }
}
