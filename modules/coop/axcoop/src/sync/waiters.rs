//! The wait queue of a counted resource: a lock, room, messages. It is ordered by priority.
//!
//! 1. TICKETS: the resource is counted in permits, here called tickets. The first waiter is granted its permits as
//!    soon as there are enough, in the same step. From then on they are its own.
//! 2. ORDER: the most urgent waiter is first. Within a priority, the order is that of arrival. A newcomer that is more
//!    urgent than all waiters is served first. Any other queues, even if there are enough permits for it (no barging).
//! 3. A waiter that is polled with another priority than before moves to the end of that level. (A coroutine whose
//!    priority changes is polled.)
//! 4. CANCEL: a waiter that gives up is removed, and the next one may be first. If it has been granted permits, they
//!    go to the next one.
//! 5. CLOSED: once the resource is closed, all waiters are refused, and all later ones. Permits granted before stay
//!    granted.
//! 6. A thread waits at [`Priority::DEFAULT`].
//!
//! WAITERS: all of a node is under the lock of its tickets ([`resource`](crate::sync::resource)). Nothing is allocated:
//! the node is in the future that waits, which does not move.

use core::cell::Cell;
use core::marker::PhantomPinned;
use core::ptr;
use core::task::Waker;

use axcoop_summary::{PRIORITIES, Priority};

use crate::task::block::Header;
use crate::task::waker::Ref;

/// The state of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// It is in the wait queue.
    Waits,
    /// It has its permits (rule 1).
    Granted,
    /// It is refused (rule 5).
    Refused,
    /// It is in no wait queue, and has no answer to take.
    Apart,
}

/// A waiter's place in the wait queue, which is a part of the future that waits.
pub(crate) struct Node {
    next: Cell<*const Node>,
    prev: Cell<*const Node>,
    /// The waker of the waiter.
    pub(crate) waker: Cell<Option<Waker>>,
    /// The coroutine that waits, or none for a thread.
    pub(crate) coroutine: Cell<Option<Ref>>,
    /// The number of permits that it wants.
    wanted: Cell<usize>,
    level: Cell<u8>,
    state: Cell<WaitState>,
    _pinned: PhantomPinned,
}

impl Node {
    pub(crate) const fn new(wanted: usize) -> Self {
        Self {
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            waker: Cell::new(None),
            coroutine: Cell::new(None),
            wanted: Cell::new(wanted),
            level: Cell::new(0),
            state: Cell::new(WaitState::Apart),
            _pinned: PhantomPinned,
        }
    }

    pub(crate) fn state(&self) -> WaitState {
        self.state.get()
    }

    pub(crate) fn level(&self) -> usize {
        self.level.get().into()
    }

    /// Returns true if it has this waker, or an equal one.
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        let mine = self.waker.take();
        let will = mine.as_ref().is_some_and(|mine| mine.will_wake(waker));
        self.waker.set(mine);
        will
    }
}

/// The permits of a resource, and its waiters.
pub(crate) struct Tickets {
    /// The permits that are neither taken nor granted.
    free: usize,
    is_closed: bool,
    /// The levels with a waiter (bit mask).
    some: u8,
    /// A ring for each level (rule 2).
    heads: [*const Node; PRIORITIES],
}

// SAFETY: the holder of the lock may touch the nodes from any thread (WAITERS).
unsafe impl Send for Tickets {}

/// Why permits cannot be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTicket {
    Wait,
    Closed,
}

impl Tickets {
    pub(crate) const fn new(free: usize) -> Self {
        Self {
            free,
            is_closed: false,
            some: 0,
            heads: [ptr::null(); PRIORITIES],
        }
    }

    /// Returns the number of permits that are neither taken nor granted.
    pub(crate) fn free(&self) -> usize {
        self.free
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the level of the first waiter, or none without waiters.
    pub(crate) fn first_level(&self) -> Option<usize> {
        (self.some != 0).then(|| self.some.trailing_zeros() as usize)
    }

    /// Takes this many permits at once, if the newcomer is first (rule 2).
    pub(crate) fn take(&mut self, wanted: usize, level: usize) -> Result<(), NoTicket> {
        let is_first = self.first_level().is_none_or(|first| level < first);
        if is_first && self.free >= wanted {
            self.free -= wanted;
            return Ok(());
        }
        // Granted permits are not free, so a newcomer may have what is left.
        match self.is_closed {
            true => Err(NoTicket::Closed),
            false => Err(NoTicket::Wait),
        }
    }

    /// Returns true if this many more permits fit.
    pub(crate) fn has_room_for(&self, tickets: usize) -> bool {
        self.free.checked_add(tickets).is_some()
    }

    /// Adds this many permits. Those for which there is [no room](Self::has_room_for) are lost: a panic would leave the
    /// lock taken.
    pub(crate) fn give(&mut self, tickets: usize) {
        self.free = self.free.saturating_add(tickets);
    }

    /// Queues a waiter as the last of its level.
    ///
    /// # Safety
    /// The node is neither moved nor dropped until it no longer [waits](WaitState::Waits).
    pub(crate) unsafe fn wait(&mut self, node: &Node, level: usize) {
        debug_assert!(node.state() != WaitState::Waits);
        node.state.set(WaitState::Waits);
        self.link(node, level);
    }

    /// Moves a waiter to another level (rule 3).
    pub(crate) fn move_to(&mut self, node: &Node, level: usize) {
        self.unlink(node);
        self.link(node, level);
    }

    /// Removes a waiter (rule 4).
    pub(crate) fn remove(&mut self, node: &Node) {
        match node.state.replace(WaitState::Apart) {
            WaitState::Waits => self.unlink(node),
            WaitState::Granted => self.give(node.wanted.get()),
            WaitState::Refused | WaitState::Apart => {}
        }
    }

    /// Ends a wait that has been granted or refused.
    pub(crate) fn end_wait(&mut self, node: &Node) {
        debug_assert!(node.state() != WaitState::Waits);
        node.state.set(WaitState::Apart);
    }

    /// Grants the first waiter its permits if there are enough, or refuses one waiter if the tickets are closed. Must
    /// be called after each change, until it returns none. The node lives until the lock is released.
    pub(crate) fn grant_first(&mut self) -> Option<&Node> {
        let level = self.first_level()?;
        // SAFETY: a node stays in the queue until it is removed.
        let node = unsafe { &*self.heads[level] };
        if self.free >= node.wanted.get() {
            self.free -= node.wanted.get();
            node.state.set(WaitState::Granted);
        } else if self.is_closed {
            node.state.set(WaitState::Refused);
        } else {
            return None;
        }
        self.unlink(node);
        Some(node)
    }

    /// Closes the tickets (rule 5).
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    fn link(&mut self, node: &Node, level: usize) {
        node.level.set(level as u8);
        let head = &mut self.heads[level];
        // SAFETY: as in `grant_first`.
        match unsafe { head.as_ref() } {
            None => {
                node.next.set(node);
                node.prev.set(node);
                *head = node;
                self.some |= 1 << level;
            }
            Some(first) => {
                let last = first.prev.replace(node);
                node.next.set(first);
                node.prev.set(last);
                // SAFETY: as in `grant_first`.
                unsafe { &*last }.next.set(node);
            }
        }
    }

    fn unlink(&mut self, node: &Node) {
        let level = node.level();
        let (next, prev) = (node.next.get(), node.prev.get());
        if ptr::eq(next, node) {
            self.heads[level] = ptr::null();
            self.some &= !(1 << level);
            return;
        }
        // SAFETY: as in `grant_first`.
        unsafe {
            (*next).prev.set(prev);
            (*prev).next.set(next);
        }
        if ptr::eq(self.heads[level], node) {
            self.heads[level] = next;
        }
    }
}

/// Returns the level at which a coroutine, or a thread, waits (rule 6).
pub(crate) fn level_of(coroutine: Option<&Header>) -> usize {
    coroutine.map_or(Priority::DEFAULT.index(), |coroutine| coroutine.effective())
}

#[cfg(all(test, not(loom)))]
impl Tickets {
    pub(crate) fn assert_valid(&self) {
        for (level, &head) in self.heads.iter().enumerate() {
            assert_eq!(!head.is_null(), self.some >> level & 1 != 0);
            let mut at = head;
            // SAFETY: as in `grant_first`.
            while let Some(node) = unsafe { at.as_ref() } {
                assert_eq!((node.level(), node.state()), (level, WaitState::Waits));
                // SAFETY: as in `grant_first`.
                assert!(ptr::eq(unsafe { &*node.next.get() }.prev.get(), node));
                at = node.next.get();
                if ptr::eq(at, head) {
                    break;
                }
            }
        }
    }
}
