//! A lock that a coroutine may hold while it waits for something else.
//!
//! 1. One at a time has the value. Who waits has it in the order of [`waiters`](crate::waiters): the most
//!    urgent first, and of one priority who came first. The lock goes from one to the next directly, so
//!    nobody overtakes who has been granted it; and if that one has gone, it goes on to the next.
//! 2. INHERITANCE: as long as somebody waits, the coroutine that has the lock is lent the most urgent
//!    waiter's priority ([`loan`](crate::loan)). So nobody between the two, in priority, keeps the urgent one
//!    waiting, for longer than the holder has the lock.
//! 3. If the holder waits for another lock, or for a coroutine, it lends on what it has been lent: it is
//!    polled when that changes, link by link.
//! 4. The loan is given back when the lock is let go, and the next holder is lent the priority of who
//!    still waits.
//! 5. A thread is lent nothing, and counts as [`Priority::DEFAULT`](crate::Priority::DEFAULT) when it waits.
//!
//! Priority inheritance: Sha, Rajkumar and Lehoczky, "Priority Inheritance Protocols", 1990. There is no
//! protection from a deadlock, of two coroutines that wait for each other's locks; as long as it lasts, they keep what
//! was lent to them (CYCLE in [`loan`](crate::loan)).

use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::block::{APART, Header};
use crate::domain;
use crate::gate::{Gate, Later, Side, Wait, change};
use crate::loan;
use crate::lock::Lock;
use crate::waiters::Tickets;
use crate::waker::Ref;

/// A value that one coroutine, or thread, has at a time, also while it awaits something.
///
/// Who waits for it lends the holder its priority. For what is done without awaiting anything, a lock of
/// the system is cheaper.
///
/// ```
/// # use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST, yield_now};
/// use axcoop::Mutex;
///
/// # static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
/// static TOTAL: Mutex<u64> = Mutex::new(0);
///
/// # PROGRAM.open()?;
/// # PROGRAM.alloc_cpu(2)?;
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

// SAFETY: the value is of who has the guard, one at a time (rule 1).
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// Who has it, and who waits.
struct State {
    /// One, for the value.
    tickets: Tickets,
    /// The coroutine that has it, if one does.
    holder: Option<Ref>,
    /// Rule 2: to whom, and which level.
    loan: Option<(Ref, u8)>,
}

impl State {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self {
            tickets: Tickets::new(1),
            holder: None,
            loan: None,
        }
    }

    /// It is this coroutine's now, or a thread's. What is returned is to be dropped without the lock.
    fn is_held_by(&mut self, who: Option<&Header>) -> Option<Ref> {
        let held = self.holder.as_deref().map(ptr::from_ref);
        if held == who.map(ptr::from_ref) {
            return None;
        }
        core::mem::replace(&mut self.holder, who.map(Ref::of))
    }
}

impl Gate for State {
    fn settle(&mut self) -> Later {
        let mut later = Later::default();
        if self.tickets.free() != 0 {
            // Who had it has let it go, or was granted it and has gone.
            later.drops[2] = self.holder.take();
        }
        if let Some(node) = self.tickets.grants() {
            self.holder = node.who.take();
            later.wakes[0] = node.waker.take();
        }
        // Rule 4.
        let holder = self.holder.as_deref().map(ptr::from_ref);
        let is_anothers =
            |loan: &mut (Ref, u8)| holder.is_none_or(|holder| !ptr::eq(holder, &*loan.0));
        if let Some((to, level)) = self.loan.take_if(is_anothers) {
            let (_, moves) = loan::notes_change(&to, level, APART);
            match moves {
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
        let lent = self.loan.as_ref().map_or(APART, |&(_, level)| level);
        if wanted != lent {
            let (now, moves) = loan::notes_change(holder, lent, wanted);
            if moves {
                later.moves[1] = Some(Ref::of(holder));
            }
            match &mut self.loan {
                Some((_, level)) if now != APART => *level = now,
                Some(_) => later.drops[1] = self.loan.take().map(|(to, _)| to),
                None if now != APART => self.loan = Some((Ref::of(holder), now)),
                None => {}
            }
        }
        later
    }
}

/// The tickets of a [`State`].
enum Holding {}

impl Side for Holding {
    type Gate = State;

    fn tickets(state: &mut State) -> &mut Tickets {
        &mut state.tickets
    }
}

impl<T> Mutex<T> {
    /// With this value, held by nobody.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self {
            state: Lock::new(State::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the value, and has it as long as the guard is there.
    ///
    /// Dropping the future is all that it takes to stop waiting.
    ///
    /// **Cost.** No allocation; a short time under a lock, the same however many wait. Not in an interrupt.
    pub fn lock(&self) -> Locking<'_, T> {
        Locking {
            mutex: self,
            wait: Wait::new(&self.state, 1),
        }
    }

    /// The value, if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let who = domain::current_header();
        let level = crate::waiters::level_of(who);
        let before = change(&self.state, |state| {
            state.tickets.take(1, level).map(|()| state.is_held_by(who))
        });
        before.ok().map(|_| MutexGuard { mutex: self })
    }

    /// As [`lock`](Self::lock), for a thread, which waits.
    ///
    /// # Panics
    /// In a coroutine, which would stop all others of its worker; and if no domain is open and it has to
    /// wait: there is nothing to wait with.
    pub fn lock_blocking(&self) -> MutexGuard<'_, T> {
        domain::assert_may_block("lock_blocking", "`lock`");
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        domain::block_on(self.lock())
    }

    /// The value: who has the only reference need not wait.
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
        let who = domain::current_header();
        let has = this.wait.poll(context, |state| state.is_held_by(who));
        has.map(|before| {
            drop(before.expect("a mutex is never closed"));
            MutexGuard { mutex: this.mutex }
        })
    }
}

/// A [`Mutex`]'s value, until it is dropped. It may be sent to another coroutine: the loans go on to the one
/// that has locked it.
#[must_use = "the mutex is unlocked when it is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: it is as good as a reference to the value.
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
