//! References to coroutines, and the wakers made of them.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::task::{Context, RawWaker, RawWakerVTable, Waker};

use crate::domain::{self, Domain};
use crate::state::Woken;
use crate::task::block::{Header, Polled};

/// A counted reference to a coroutine: REFERENCES in [`block`](crate::task::block).
pub(crate) struct Ref(NonNull<Header>);

// SAFETY: all that it reaches is atomic, or under a protocol of `block`. Spawning requires that futures and outputs are
// `Send`.
unsafe impl Send for Ref {}
// SAFETY: as above.
unsafe impl Sync for Ref {}

impl Ref {
    /// Returns a new reference to a coroutine that the caller has or borrows a reference to.
    #[inline]
    pub(crate) fn of(header: &Header) -> Self {
        header.add_ref();
        Self(header.into())
    }

    /// Returns the reference given up with [`into_raw`](Self::into_raw), or counted for the caller.
    ///
    /// # Safety
    /// There is such a reference.
    #[inline]
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self(header)
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> NonNull<Header> {
        self.0
    }

    fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }

    /// Returns the reference in a coroutine's waker, or the waker if it is another one.
    #[inline]
    pub(crate) fn of_waker(waker: Waker) -> Result<Self, Waker> {
        match of_waker(&waker) {
            // The waker's reference becomes this one.
            Some(_) => Ok(Self(at(ManuallyDrop::new(waker).data()))),
            None => Err(waker),
        }
    }

    /// Returns the domain of the coroutine.
    #[inline]
    pub(crate) fn domain(&self) -> &'static Domain {
        domain_of(self)
    }

    /// Wakes the coroutine.
    #[inline]
    pub(crate) fn wake(&self) {
        wake(self);
    }

    /// Cancels the coroutine.
    pub(crate) fn cancel(&self) {
        match self.state().cancel() {
            Woken::MustBeQueued => self.domain().enqueue(self),
            Woken::Already => {}
        }
    }
}

impl core::ops::Deref for Ref {
    type Target = Header;

    #[inline]
    fn deref(&self) -> &Header {
        // SAFETY: the block lives as long as this reference.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Ref {
    #[inline]
    fn drop(&mut self) {
        if self.drop_ref() {
            // SAFETY: that was the last reference (REFERENCES).
            unsafe { return_block(self.0) };
        }
    }
}

/// Gives a block without references back to its domain.
///
/// # Safety
/// There is no reference to it.
#[inline(never)]
unsafe fn return_block(header: NonNull<Header>) {
    // SAFETY: there is no reference to it, as promised. It exists until the domain takes it back.
    unsafe { domain_of(header.as_ref()).return_block(header) };
}

/// Returns the domain of a coroutine.
#[inline]
pub(crate) fn domain_of(header: &Header) -> &'static Domain {
    domain::open(header.place().domain())
}

#[inline]
fn wake(header: &Header) {
    match header.state().wake() {
        Woken::MustBeQueued => domain_of(header).enqueue(header),
        Woken::Already => {}
    }
}

/// Polls a coroutine.
///
/// # Safety
/// The caller is the coroutine's worker (WORKER), and the body has a future.
#[inline]
pub(crate) unsafe fn poll(header: &Header) -> Polled {
    let raw = RawWaker::new(ptr::from_ref(header).cast(), &WAKER);
    // SAFETY: the vtable is that of blocks. The waker is neither counted nor dropped: the domain's reference outlives
    // the poll.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw) });
    let mut context = Context::from_waker(&waker);
    // SAFETY: as promised.
    unsafe { header.poll(&mut context) }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |header| {
        // SAFETY: a waker has a reference, or borrows that of the poll.
        let reference = Ref::of(unsafe { at(header).as_ref() });
        RawWaker::new(reference.into_raw().as_ptr().cast_const().cast(), &WAKER)
    },
    |header| {
        // SAFETY: the reference of this waker.
        unsafe { Ref::from_raw(at(header)) }.wake();
    },
    |header| {
        // SAFETY: a waker has a reference.
        wake(unsafe { at(header).as_ref() });
    },
    // SAFETY: the reference of this waker.
    |header| drop(unsafe { Ref::from_raw(at(header)) }),
);

/// Returns the head that a waker has as its data.
#[inline]
fn at(header: *const ()) -> NonNull<Header> {
    // SAFETY: all wakers of this vtable are made from heads.
    unsafe { NonNull::new_unchecked(header.cast_mut().cast()) }
}

/// Returns the head of the coroutine that a waker wakes, if it wakes one.
#[inline]
pub(crate) fn of_waker(waker: &Waker) -> Option<&Header> {
    let is_ours = ptr::eq(waker.vtable(), &WAKER);
    // SAFETY: a waker has a reference, or borrows that of the poll.
    is_ours.then(|| unsafe { at(waker.data()).as_ref() })
}

/// Returns a waker of this coroutine.
#[inline]
pub(crate) fn of(header: &Header) -> Waker {
    let raw = Ref::of(header).into_raw().as_ptr().cast_const();
    // SAFETY: the vtable is that of blocks, and the waker has the reference.
    unsafe { Waker::from_raw(RawWaker::new(raw.cast(), &WAKER)) }
}

/// Wakes the task that polls with this waker. A coroutine most likely is the running one, which takes a few
/// instructions less.
#[inline]
pub(crate) fn wake_self(waker: &Waker) {
    let Some(header) = of_waker(waker) else {
        return waker.wake_by_ref();
    };
    if !header.state().wake_running() {
        wake_other(header);
    }
}

/// Wakes a coroutine that does not run, or has been woken already.
#[cold]
#[inline(never)]
fn wake_other(header: &Header) {
    wake(header);
}
