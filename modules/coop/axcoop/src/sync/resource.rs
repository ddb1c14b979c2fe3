//! The common part of a [`Mutex`](crate::Mutex), a [`Semaphore`](crate::Semaphore) and a
//! [`channel`](crate::sync::channel): a state under a lock, permits in it, and futures that wait for permits.
//!
//! 1. The state is changed under its lock, for a short time, with interrupts off. So an interrupt may make every
//!    change that does not wait. After each change the state is [settled](Resource::settle) under the same lock: the
//!    first waiter is granted its permits.
//! 2. Work that may take longer, or is foreign code, runs without the lock: waking, cloning and dropping wakers,
//!    moving coroutines to another level, dropping values of the state.
//! 3. One settling does one thing, so that the time under the lock is bounded. It is called until there is nothing
//!    more to do.
//! 4. Coroutines poll the futures, and threads that wait; interrupts do not.
//! 5. How to disable interrupts is known once any domain has been opened, even if closed since. Before that, an
//!    interrupt must not do any of this.

use core::cell::Cell;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::domain;
use crate::lock::Lock;
use crate::run::budget::within_budget;
use crate::sync::waiters::{self, NoTicket, Node, Tickets, WaitState};
use crate::task::waker::Ref;

/// A state with permits.
pub(crate) trait Resource {
    /// Does one thing that follows a change, and returns what is left for later (rules 1 to 3).
    fn settle(&mut self) -> Later;
}

/// The permits of a state that one kind of waiter waits for.
pub(crate) trait Side {
    type Resource: Resource;

    fn tickets(resource: &mut Self::Resource) -> &mut Tickets;
}

/// Work that is done without the lock (rule 2).
#[must_use]
#[derive(Default)]
pub(crate) struct Later {
    /// Wakers of waiters that have been granted their permits, or are refused.
    pub(crate) wakes: [Option<Waker>; 2],
    /// Coroutines whose priority has changed.
    pub(crate) moves: [Option<Ref>; 2],
    /// References that are dropped.
    pub(crate) drops: [Option<Ref>; 3],
}

impl Later {
    /// Does the work, and returns true if there may be more to settle.
    #[inline]
    fn run(self) -> bool {
        let Self {
            wakes,
            moves,
            drops: _,
        } = self;
        let mut is_more = false;
        for header in moves.into_iter().flatten() {
            header.domain().request_move(&header);
        }
        for waker in wakes.into_iter().flatten() {
            is_more = true;
            waker.wake();
        }
        is_more
    }
}

/// Calls a closure with the lock.
#[inline]
pub(crate) fn locked<G, R>(resource: &Lock<G>, on: impl FnOnce(&mut G) -> R) -> R {
    match domain::system() {
        Some(platform) => resource.with(platform, on),
        // Rule 5: only threads can contend for it, and each of them makes progress.
        None => resource.with_masked(on),
    }
}

/// Changes the state, and settles it.
pub(crate) fn change<G: Resource, R>(resource: &Lock<G>, on: impl FnOnce(&mut G) -> R) -> R {
    let (result, mut later) = locked(resource, |resource| (on(resource), resource.settle()));
    while later.run() {
        later = locked(resource, G::settle);
    }
    result
}

/// The resource is closed: there will be no more permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// A wait for permits.
pub(crate) struct Wait<'a, S: Side> {
    resource: &'a Lock<S::Resource>,
    /// The node may be in the wait queue, or have been granted permits: then it is under the lock.
    is_listed: Cell<bool>,
    wanted: usize,
    node: Node,
}

// SAFETY: a listed node is touched under the lock (WAITERS in `waiters`). Before that only the owner touches it, which
// polls or drops the future, one call at a time. Only the owner touches `is_listed`. The state is under the lock.
unsafe impl<S: Side> Send for Wait<'_, S> where S::Resource: Send {}
// SAFETY: a shared reference has no operations.
unsafe impl<S: Side> Sync for Wait<'_, S> where S::Resource: Send {}

impl<'a, S: Side> Wait<'a, S> {
    pub(crate) const fn new(resource: &'a Lock<S::Resource>, wanted: usize) -> Self {
        Self {
            resource,
            is_listed: Cell::new(false),
            wanted,
            node: Node::new(wanted),
        }
    }

    /// Calls a closure with the state once it has its permits, under the same lock. The wait must not be polled again
    /// after that.
    pub(crate) fn poll<R>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        on_grant: impl FnOnce(&mut S::Resource) -> R,
    ) -> Poll<Result<R, Refused>> {
        within_budget(context, |context| {
            // The wait queue has pointers to the node: from here on there are shared references only.
            let this = self.into_ref().get_ref();
            let coroutine = domain::current_header();
            let level = waiters::level_of(coroutine);
            let mut on_grant = Some(on_grant);
            // No waker is cloned under the lock: the first attempt has none, and the second, if it has to wait, has
            // one.
            let mut asked = change(this.resource, |resource| {
                this.ask(resource, level, context.waker(), &mut None, &mut on_grant)
            });
            if let Asked::WantsWaker = asked {
                // The waker that comes back is dropped without the lock, too.
                let mut mine = Some((context.waker().clone(), coroutine.map(Ref::of)));
                asked = change(this.resource, |resource| {
                    this.ask(resource, level, context.waker(), &mut mine, &mut on_grant)
                });
                this.is_listed.set(true);
            }
            let result = match asked {
                Asked::Waits => return Poll::Pending,
                Asked::Granted(result) => Ok(result),
                Asked::Refused => Err(Refused),
                Asked::WantsWaker => unreachable!("it has one"),
            };
            this.is_listed.set(false);
            Poll::Ready(result)
        })
    }

    /// Asks for permits. `mine` is the waker and the coroutine that it waits with from now on; it comes back with the
    /// previous ones.
    fn ask<R>(
        &self,
        resource: &mut S::Resource,
        level: usize,
        waker: &Waker,
        mine: &mut Option<(Waker, Option<Ref>)>,
        on_grant: &mut Option<impl FnOnce(&mut S::Resource) -> R>,
    ) -> Asked<R> {
        let node = &self.node;
        let tickets = S::tickets(resource);
        match node.state() {
            WaitState::Granted => {
                tickets.end_wait(node);
                return Asked::granted(resource, on_grant);
            }
            WaitState::Refused => {
                tickets.end_wait(node);
                return Asked::Refused;
            }
            WaitState::Waits => {
                if node.level() != level {
                    tickets.move_to(node, level);
                }
                if mine.is_none() && node.will_wake(waker) {
                    return Asked::Waits;
                }
            }
            WaitState::Apart => match tickets.take(self.wanted, level) {
                Ok(()) => return Asked::granted(resource, on_grant),
                Err(NoTicket::Closed) => return Asked::Refused,
                Err(NoTicket::Wait) => {}
            },
        }
        let Some((waker, coroutine)) = mine.take() else {
            return Asked::WantsWaker;
        };
        let had = (
            node.waker.replace(Some(waker)),
            node.coroutine.replace(coroutine),
        );
        if let (Some(waker), coroutine) = had {
            *mine = Some((waker, coroutine));
        }
        if node.state() == WaitState::Apart {
            // SAFETY: the future is pinned, and `drop` takes the node out.
            unsafe { tickets.wait(node, level) };
        }
        Asked::Waits
    }
}

/// The result of asking for permits.
enum Asked<R> {
    Granted(R),
    Refused,
    Waits,
    WantsWaker,
}

impl<R> Asked<R> {
    fn granted<G>(resource: &mut G, on_grant: &mut Option<impl FnOnce(&mut G) -> R>) -> Self {
        let on_grant = on_grant
            .take()
            .expect("a wait that has its permits asks for no more");
        Self::Granted(on_grant(resource))
    }
}

impl<S: Side> Drop for Wait<'_, S> {
    fn drop(&mut self) {
        if self.is_listed.get() {
            change(self.resource, |resource| {
                S::tickets(resource).remove(&self.node)
            });
        }
    }
}
