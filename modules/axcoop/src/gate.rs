//! What a [`Mutex`](crate::Mutex), a [`Semaphore`](crate::Semaphore) and a [`channel`](crate::channel) have
//! in common: a state under a lock, tickets in it, and futures that wait for them.
//!
//! 1. The state is changed under its lock, with interrupts off, a short time each: so an interrupt may do
//!    whatever does not wait. After each change it [settles](Gate::settle), still under the lock: who is first
//!    has its tickets.
//! 2. What may take longer, or may be another's code, is done without the lock: waking, cloning and dropping
//!    wakers, moving coroutines to another level, dropping what was in the state.
//! 3. A settling does one thing at a time, so that the time under the lock is bounded; it is
//!    called until there is nothing more to do.
//! 4. The futures are polled by coroutines, and by threads that wait; not in interrupts.
//! 5. How interrupts are disabled is known from when the first domain is opened on, also when it is closed
//!    again. Before, no interrupt may do any of this.

use core::cell::Cell;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::budget::within_budget;
use crate::domain;
use crate::lock::Lock;
use crate::waiters::{self, NoTicket, Node, Tickets, Turn};
use crate::waker::Ref;

/// A state with tickets.
pub(crate) trait Gate {
    /// Does one thing that is to be done after a change, and says what is left for later (rules 1 to 3).
    fn settle(&mut self) -> Later;
}

/// Where in a state the tickets are that somebody waits for.
pub(crate) trait Side {
    type Gate: Gate;

    fn tickets(gate: &mut Self::Gate) -> &mut Tickets;
}

/// What is done without the lock (rule 2).
#[must_use]
#[derive(Default)]
pub(crate) struct Later {
    /// Somebody has been granted what it waits for, or is refused.
    pub(crate) wakes: [Option<Waker>; 2],
    /// Their priority has changed.
    pub(crate) moves: [Option<Ref>; 2],
    /// Not referred to any more.
    pub(crate) drops: [Option<Ref>; 3],
}

impl Later {
    /// Does it, and returns whether there may be more to settle.
    #[inline]
    fn run(self) -> bool {
        let Self {
            wakes,
            moves,
            drops: _,
        } = self;
        let mut is_more = false;
        for header in moves.into_iter().flatten() {
            header.domain().moves(&header);
        }
        for waker in wakes.into_iter().flatten() {
            is_more = true;
            waker.wake();
        }
        is_more
    }
}

/// Calls this with the lock.
#[inline]
pub(crate) fn locked<G, R>(gate: &Lock<G>, on: impl FnOnce(&mut G) -> R) -> R {
    match domain::system() {
        Some(kernel) => gate.with(kernel, on),
        // Rule 5: threads at most want it, too, and each of them goes on.
        None => gate.with_masked(on),
    }
}

/// Changes the state.
pub(crate) fn change<G: Gate, R>(gate: &Lock<G>, on: impl FnOnce(&mut G) -> R) -> R {
    let (result, mut later) = locked(gate, |gate| (on(gate), gate.settle()));
    while later.run() {
        later = locked(gate, G::settle);
    }
    result
}

/// There will be no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Waits for tickets.
pub(crate) struct Wait<'a, S: Side> {
    gate: &'a Lock<S::Gate>,
    /// It may be in the list, or have been granted something: then the node is under the lock.
    is_listed: Cell<bool>,
    wants: usize,
    node: Node,
}

// SAFETY: WAITERS in `waiters`: the node is touched under the lock once it is listed, before and
// `is_listed` always by who polls or drops the future, which is one at a time; the state is under the lock.
unsafe impl<S: Side> Send for Wait<'_, S> where S::Gate: Send {}
// SAFETY: there is nothing to be done with a reference.
unsafe impl<S: Side> Sync for Wait<'_, S> where S::Gate: Send {}

impl<'a, S: Side> Wait<'a, S> {
    pub(crate) const fn new(gate: &'a Lock<S::Gate>, wants: usize) -> Self {
        Self {
            gate,
            is_listed: Cell::new(false),
            wants,
            node: Node::new(wants),
        }
    }

    /// Once it has its tickets, calls this with the state, under the same lock. It is not to be polled
    /// again then.
    pub(crate) fn poll<R>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        has: impl FnOnce(&mut S::Gate) -> R,
    ) -> Poll<Result<R, Refused>> {
        within_budget(context, |context| {
            // Others have pointers to the node: from here on there are shared references only.
            let this = self.into_ref().get_ref();
            let who = domain::current_header();
            let level = waiters::level_of(who);
            let mut has = Some(has);
            // Under a lock no waker is cloned: it asks once without one, and if it has to wait, with one.
            let mut asked = change(this.gate, |gate| {
                this.asks(gate, level, context.waker(), &mut None, &mut has)
            });
            if let Asked::WantsWaker = asked {
                // The waker that comes back is dropped without the lock as well.
                let mut mine = Some((context.waker().clone(), who.map(Ref::of)));
                asked = change(this.gate, |gate| {
                    this.asks(gate, level, context.waker(), &mut mine, &mut has)
                });
                this.is_listed.set(true);
            }
            let result = match asked {
                Asked::Waits => return Poll::Pending,
                Asked::Has(result) => Ok(result),
                Asked::Refused => Err(Refused),
                Asked::WantsWaker => unreachable!("it has one"),
            };
            this.is_listed.set(false);
            Poll::Ready(result)
        })
    }

    /// `mine`: the waker and the coroutine that it waits with from now on, or those that it has had.
    fn asks<R>(
        &self,
        gate: &mut S::Gate,
        level: usize,
        waker: &Waker,
        mine: &mut Option<(Waker, Option<Ref>)>,
        has: &mut Option<impl FnOnce(&mut S::Gate) -> R>,
    ) -> Asked<R> {
        let node = &self.node;
        let tickets = S::tickets(gate);
        match node.turn() {
            Turn::Granted => {
                tickets.settles(node);
                return Asked::has(gate, has);
            }
            Turn::Refused => {
                tickets.settles(node);
                return Asked::Refused;
            }
            Turn::Waits => {
                if node.level() != level {
                    tickets.moves(node, level);
                }
                if mine.is_none() && node.will_wake(waker) {
                    return Asked::Waits;
                }
            }
            Turn::Apart => match tickets.take(self.wants, level) {
                Ok(()) => return Asked::has(gate, has),
                Err(NoTicket::Closed) => return Asked::Refused,
                Err(NoTicket::Wait) => {}
            },
        }
        let Some((waker, who)) = mine.take() else {
            return Asked::WantsWaker;
        };
        let had = (node.waker.replace(Some(waker)), node.who.replace(who));
        if let (Some(waker), who) = had {
            *mine = Some((waker, who));
        }
        if node.turn() == Turn::Apart {
            // SAFETY: the future is pinned, and `drop` takes it out.
            unsafe { tickets.wait(node, level) };
        }
        Asked::Waits
    }
}

/// What has come of asking for tickets.
enum Asked<R> {
    Has(R),
    Refused,
    Waits,
    WantsWaker,
}

impl<R> Asked<R> {
    fn has<G>(gate: &mut G, has: &mut Option<impl FnOnce(&mut G) -> R>) -> Self {
        let has = has.take().expect("who has its tickets asks for no more");
        Self::Has(has(gate))
    }
}

impl<S: Side> Drop for Wait<'_, S> {
    fn drop(&mut self) {
        if self.is_listed.get() {
            change(self.gate, |gate| S::tickets(gate).leaves(&self.node));
        }
    }
}
