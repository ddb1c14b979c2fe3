//! A lock that a coroutine may hold while it awaits something.
//!
//! 1. One holder at a time has the value. Waiters are served in the order of [`waiters`](crate::sync::waiters): the
//!    most urgent first, and in order of arrival within a priority. The lock passes directly to the next waiter, so it
//!    is not overtaken. If that waiter has gone, the lock passes on.
//! 2. INHERITANCE: while there are waiters, the most urgent one donates its priority to the holder
//!    ([`donation`](crate::sync::donation)). So a coroutine of a priority in between delays the urgent one no longer
//!    than the holder has the lock.
//! 3. A holder that waits for another lock, or for a coroutine, passes on the donation. It is polled when that
//!    changes, link by link.
//! 4. The donation ends when the lock is released, and the remaining waiters donate to the next holder.
//! 5. A thread receives no donation, and waits at [`Priority::DEFAULT`](crate::Priority::DEFAULT).
//!
//! Priority inheritance: Sha, Rajkumar and Lehoczky, "Priority Inheritance Protocols", 1990. There is no protection
//! from deadlock. Coroutines that wait for each other's locks keep the donations while that lasts (CYCLE in
//! [`donation`](crate::sync::donation)).

use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::domain;
use crate::lock::Lock;
use crate::sync::donation;
use crate::sync::resource::{Later, Resource, Side, Wait, change};
use crate::sync::waiters::Tickets;
use crate::task::block::{APART, Header};
use crate::task::waker::Ref;

/// A value that one coroutine, or thread, holds at a time, also while it awaits something.
///
/// A waiter donates its priority to the holder. For work that awaits nothing, a lock of the system is cheaper.
///
/// ```
/// # use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST, yield_now};
/// use axcoop::Mutex;
///
/// # static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
/// static TOTAL: Mutex<u64> = Mutex::new(0);
///
/// # PROGRAM.open()?;
/// # PROGRAM.set_workers(2)?;
/// async fn add(n: u64) {
///     let mut total = TOTAL.lock().await;
///     let was = *total;
///     yield_now().await;
///     *total = was + n;
/// }
/// let adds: Vec<_> = (1..=10).map(|n| PROGRAM.spawn(add(n), Priority::DEFAULT)).collect();
/// for add in adds {
///     add.join()?;
/// }
/// assert_eq!(*TOTAL.lock_blocking(), 55);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Mutex<T: ?Sized> {
    state: Lock<State>,
    value: UnsafeCell<T>,
}

// SAFETY: the value belongs to the holder of the guard, one at a time (rule 1).
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// The holder and the waiters.
struct State {
    /// One permit, for the value.
    tickets: Tickets,
    /// The coroutine that holds the lock, if a coroutine does.
    holder: Option<Ref>,
    /// Rule 2: the coroutine that receives the donation, and its level.
    donation: Option<(Ref, u8)>,
}

impl State {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self {
            tickets: Tickets::new(1),
            holder: None,
            donation: None,
        }
    }

    /// Makes a coroutine, or a thread, the holder. The result must be dropped without the lock.
    fn set_holder(&mut self, coroutine: Option<&Header>) -> Option<Ref> {
        let held = self.holder.as_deref().map(ptr::from_ref);
        if held == coroutine.map(ptr::from_ref) {
            return None;
        }
        core::mem::replace(&mut self.holder, coroutine.map(Ref::of))
    }
}

impl Resource for State {
    fn settle(&mut self) -> Later {
        let mut later = Later::default();
        if self.tickets.free() != 0 {
            // The previous holder has released it, or was granted it and has gone.
            later.drops[2] = self.holder.take();
        }
        if let Some(node) = self.tickets.grant_first() {
            self.holder = node.coroutine.take();
            later.wakes[0] = node.waker.take();
        }
        // Rule 4.
        let holder = self.holder.as_deref().map(ptr::from_ref);
        let is_of_other =
            |donation: &mut (Ref, u8)| holder.is_none_or(|holder| !ptr::eq(holder, &*donation.0));
        if let Some((to, level)) = self.donation.take_if(is_of_other) {
            let (_, must_move) = donation::record_change(&to, level, APART);
            match must_move {
                true => later.moves[0] = Some(to),
                false => later.drops[0] = Some(to),
            }
        }
        // Rule 2.
        let Some(holder) = &self.holder else {
            return later;
        };
        let wanted = self
            .tickets
            .first_level()
            .map_or(APART, |level| level as u8);
        let donated = self.donation.as_ref().map_or(APART, |&(_, level)| level);
        if wanted != donated {
            let (now, must_move) = donation::record_change(holder, donated, wanted);
            if must_move {
                later.moves[1] = Some(Ref::of(holder));
            }
            match &mut self.donation {
                Some((_, level)) if now != APART => *level = now,
                Some(_) => later.drops[1] = self.donation.take().map(|(to, _)| to),
                None if now != APART => self.donation = Some((Ref::of(holder), now)),
                None => {}
            }
        }
        later
    }
}

/// The permits of a [`State`].
enum Holding {}

impl Side for Holding {
    type Resource = State;

    fn tickets(state: &mut State) -> &mut Tickets {
        &mut state.tickets
    }
}

impl<T> Mutex<T> {
    /// Makes an unlocked mutex with this value.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self {
            state: Lock::new(State::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the value. The guard holds it.
    ///
    /// Dropping the future ends the wait.
    ///
    /// **Cost.** No allocation; a short time under a lock, the same for any number of waiters. Must not be called in
    /// an interrupt.
    pub fn lock(&self) -> Locking<'_, T> {
        Locking {
            mutex: self,
            wait: Wait::new(&self.state, 1),
        }
    }

    /// Returns the value if it is not held.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let coroutine = domain::current_header();
        let level = crate::sync::waiters::level_of(coroutine);
        let before = change(&self.state, |state| {
            state
                .tickets
                .take(1, level)
                .map(|()| state.set_holder(coroutine))
        });
        before.ok().map(|_| MutexGuard { mutex: self })
    }

    /// Blocks the calling thread until it has the value.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker. Also if it has to wait while no domain is open: there is no system
    /// to wait with.
    pub fn lock_blocking(&self) -> MutexGuard<'_, T> {
        domain::assert_may_block("lock_blocking", "`lock`");
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        domain::block_on(self.lock())
    }

    /// Returns the value without locking: the only reference need not wait.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => f.field("value", &&*guard).finish(),
            None => f.finish_non_exhaustive(),
        }
    }
}

pin_project! {
    /// The future of [`Mutex::lock`].
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Locking<'a, T: ?Sized> {
        mutex: &'a Mutex<T>,
        #[pin]
        wait: Wait<'a, Holding>,
    }
}

impl<'a, T: ?Sized> Future for Locking<'a, T> {
    type Output = MutexGuard<'a, T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let coroutine = domain::current_header();
        let has = this.wait.poll(context, |state| state.set_holder(coroutine));
        has.map(|before| {
            drop(before.expect("a mutex is never closed"));
            MutexGuard { mutex: this.mutex }
        })
    }
}

/// The value of a [`Mutex`] until it is dropped. It may be sent to another coroutine: the donations go to the one that
/// has locked it.
#[must_use = "the mutex is unlocked when it is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: it is equivalent to a reference to the value.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: rule 1.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 1.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        change(&self.mutex.state, |state| state.tickets.give(1));
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
