//! The memory of a coroutine: one block of a head and a body. The head has one layout for all coroutines. The body
//! holds the future first, and the output afterwards.
//!
//! # Owners and locks
//!
//! - WORKER: the body of a coroutine that has not ended belongs to the worker that has begun a poll
//!   ([`State::begin`]). Another worker may poll it next; the state and the queue hand it over.
//! - QUEUE: `next` belongs to the one caller that must queue the coroutine ([`Woken::MustBeQueued`]), then to the
//!   inbox. From there on `next`, `prev` and `level` belong to the holder of the domain's queue token.
//! - REGISTRY: `base`, `donations` and writes of `effective` need the lock of the domain's registry. Reads of the
//!   priorities need no lock: each is a byte.
//! - JOIN: the flags in `refs` say which party owns the output and the slot of the joiner's waker. The table below
//!   lists them.
//! - REFERENCES: a coroutine exists while it is referred to by the domain (until it has ended), its join handle, a
//!   waker or a donation ([`Ref`](crate::task::waker::Ref)). The last reference finds the body and the joiner's
//!   slot empty. It frees memory and does nothing else, so it may be dropped in an interrupt.
//! - SPARE: a block without references may be kept for another coroutine ([`FreeList`](crate::task::free_list)). It
//!   keeps its slot, `state` and `refs`. These two are only changed atomically, because a lookup of a name may read the
//!   `refs` of a block that another coroutine has by now (NAMES in [`registry`](crate::task::registry)). All else is
//!   written anew.
//!
//! # JOIN
//!
//! The flags in `refs`, above the count:
//!
//! | bit | set by | afterwards |
//! |---|---|---|
//! | `JOINER` | the handle, after writing its waker into the slot | the slot belongs to the worker |
//! | `ENDED`, with `CANCELLED` or `PANICKED` if there is no output | the worker, after dropping the future and writing the output | the output belongs to the handle, and the slot to the worker if `JOINER` was set |
//! | `DETACHED` | the handle, when it is dropped | the output belongs to the worker, or to the handle if `ENDED` was set; the owner drops it |
//!
//! A handle that knows how the coroutine has ended, and has taken its output, does not set `DETACHED`. It clears
//! `JOINER` before it writes another waker, and leaves the slot alone if it then finds `ENDED`.

// This file is long because the layout of a coroutine and all unsafe code that depends on it are here.

use alloc::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::future::Future;
use core::mem::{ManuallyDrop, MaybeUninit, offset_of};
use core::pin::Pin;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, Waker};

use axcoop_summary::Priority;

use crate::atomics::{AtomicU32, Ordering};
use crate::error::Ended;
use crate::state::State;
use crate::task::donations::Donations;
use crate::task::id::SlotIndex;
use crate::task::panics;

/// The slot has the joiner's waker.
const JOINER: u32 = 1 << 31;
/// The coroutine has ended.
const ENDED: u32 = 1 << 30;
/// The output is not wanted.
const DETACHED: u32 = 1 << 29;
/// The coroutine has ended without an output: it was cancelled, or it panicked.
const CANCELLED: u32 = 1 << 28;
const PANICKED: u32 = 1 << 27;
/// The reference count.
const COUNT: u32 = PANICKED - 1;

/// The number of futures that can be ready in one poll of a coroutine. The next one yields.
pub const POLL_BUDGET: u8 = 64;

/// [`Header::level`] of a coroutine that is in no ready queue.
pub(crate) const APART: u8 = u8::MAX;

/// The head of a block: 64 bytes on a 64-bit target.
#[repr(C, align(16))]
pub(crate) struct Header {
    state: State,
    refs: AtomicU32,
    vtable: Cell<&'static Vtable>,
    /// The block after this one in the inbox, in a ready queue or in a list of spare blocks (QUEUE, SPARE).
    pub(crate) next: Cell<*const Header>,
    /// The block before this one in a ready queue (QUEUE).
    pub(crate) prev: Cell<*const Header>,
    /// The slot of the joiner's waker (JOIN).
    joiner: Cell<MaybeUninit<Waker>>,
    /// The priorities that count: the coroutine's own, and the donations (REGISTRY).
    donations: Cell<Donations>,
    place: SlotIndex,
    base: AtomicU8,
    effective: AtomicU8,
    /// The rest of the budget of the current poll ([`budget`](crate::run::budget)). Only the worker that polls uses
    /// it. It is atomic because safe code can poll a future with the waker of another coroutine.
    budget: AtomicU8,
    /// The level of its ready queue, or [`APART`] (QUEUE).
    pub(crate) level: Cell<u8>,
}

// Model checkers have atomics of another size.
const _: () = assert!(size_of::<Header>() <= 64 || size_of::<AtomicU32>() > 4);

/// The operations that depend on the type of the future.
pub(crate) struct Vtable {
    /// The layout of the block.
    pub(crate) layout: Layout,
    /// The class of the block's size and alignment, or [`NOT_KEPT`].
    pub(crate) size: u8,
    /// The offset of the body.
    body: usize,
    /// Polls the future. If it is ready, writes the output in its place.
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Polled,
    drop_future: unsafe fn(NonNull<Header>),
    drop_output: unsafe fn(NonNull<Header>),
}

/// The result of a poll.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    Pending,
    Ready,
    /// The future panicked, and has been dropped.
    Panicked,
}

/// A block and the [`HEAD`] of the allocator take a multiple of this.
const GRAIN: usize = 32;
const HEAD: usize = 16;
/// The number of size classes of which blocks are kept.
pub(crate) const SIZES: usize = 16;
/// [`Vtable::size`] of a block that is not kept.
pub(crate) const NOT_KEPT: u8 = SIZES as u8;

/// Returns the layout of the blocks of a size class.
pub(crate) const fn of_size(size: usize) -> Layout {
    match Layout::from_size_align((size + 1) * GRAIN - HEAD, HEAD) {
        Ok(layout) => layout,
        Err(_) => panic!("a small layout"),
    }
}

const fn kept_size(layout: Layout) -> u8 {
    let size = (layout.size() + HEAD) / GRAIN - 1;
    if size < SIZES && layout.align() == HEAD {
        size as u8
    } else {
        NOT_KEPT
    }
}

#[repr(C)]
struct Block<F: Future> {
    header: Header,
    body: UnsafeCell<Body<F>>,
}

#[repr(C)]
union Body<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<F::Output>,
}

impl<F: Future> Block<F> {
    const VTABLE: Vtable = Vtable {
        layout: Self::layout(),
        size: kept_size(Self::layout()),
        body: offset_of!(Self, body),
        poll: Self::poll,
        drop_future: Self::drop_future,
        drop_output: Self::drop_output,
    };

    /// Returns the layout of the block. With the allocator's 16 bytes it is a multiple of 32, which allocators round
    /// up to anyway, so that blocks of similar sizes share a class.
    const fn layout() -> Layout {
        let of = Layout::new::<Self>();
        let size = (of.size() + HEAD).next_multiple_of(GRAIN) - HEAD;
        match Layout::from_size_align(size, of.align()) {
            Ok(layout) => layout,
            Err(_) => panic!("a future of half the address space"),
        }
    }

    /// Returns the body of the block with this head.
    fn body(header: NonNull<Header>) -> *mut Body<F> {
        // SAFETY: the head is that of a `Block<F>`, as its `vtable` says.
        let body = unsafe { header.byte_add(offset_of!(Self, body)) };
        body.as_ptr().cast()
    }

    /// # Safety
    /// `header` is that of a `Block<F>` with a future, and the caller is its worker (WORKER).
    unsafe fn poll(header: NonNull<Header>, context: &mut Context<'_>) -> Polled {
        let body = Self::body(header);
        // SAFETY: the body is the future, and this is the only reference to it (WORKER). It stays where it is until it
        // is dropped.
        let future = unsafe { Pin::new_unchecked(&mut *(*body).future) };
        match panics::catch(|| future.poll(context)) {
            Ok(Poll::Pending) => Polled::Pending,
            Ok(Poll::Ready(output)) => {
                let drops = panics::catch(|| {
                    // SAFETY: as above, and it is not polled again.
                    unsafe { ManuallyDrop::drop(&mut (*body).future) }
                });
                if drops.is_err() {
                    let _ = panics::catch(|| drop(output));
                    return Polled::Panicked;
                }
                // SAFETY: the place is free, and large enough for either.
                unsafe { (*body).output = ManuallyDrop::new(output) };
                Polled::Ready
            }
            Err(panics::Panicked) => {
                // SAFETY: as above.
                unsafe { Self::drop_future(header) };
                Polled::Panicked
            }
        }
    }

    /// # Safety
    /// `header` is that of a `Block<F>` with a future, and the caller is its worker (WORKER). It is not touched
    /// afterwards.
    unsafe fn drop_future(header: NonNull<Header>) {
        let body = Self::body(header);
        // A destructor that panics has printed its message; the future is gone.
        let _ = panics::catch(|| {
            // SAFETY: as promised.
            unsafe { ManuallyDrop::drop(&mut (*body).future) }
        });
    }

    /// # Safety
    /// `header` is that of a `Block<F>` with an output, which belongs to the caller. It is not touched afterwards.
    unsafe fn drop_output(header: NonNull<Header>) {
        let body = Self::body(header);
        let _ = panics::catch(|| {
            // SAFETY: as promised.
            unsafe { ManuallyDrop::drop(&mut (*body).output) }
        });
    }
}

/// Returns the operations for coroutines of this future.
pub(crate) const fn vtable<F: Future>() -> &'static Vtable {
    const { &Block::<F>::VTABLE }
}

/// Makes a spare block (SPARE) in memory.
///
/// # Safety
/// `memory` has the layout of `vtable`, and belongs to the caller.
pub(crate) unsafe fn make(
    memory: NonNull<u8>,
    vtable: &'static Vtable,
    place: SlotIndex,
) -> NonNull<Header> {
    let header: NonNull<Header> = memory.cast();
    // SAFETY: as promised.
    unsafe {
        header.write(Header {
            state: State::queued(),
            refs: AtomicU32::new(0),
            vtable: Cell::new(vtable),
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            joiner: Cell::new(MaybeUninit::uninit()),
            donations: Cell::new(Donations::only(Priority::DEFAULT)),
            place,
            base: AtomicU8::new(0),
            effective: AtomicU8::new(0),
            budget: AtomicU8::new(0),
            level: Cell::new(APART),
        });
    }
    header
}

/// Turns a spare block, to which nothing leads any more, back into memory.
///
/// # Safety
/// The block belongs to the caller, and is not touched afterwards.
pub(crate) unsafe fn unmake(header: NonNull<Header>) -> NonNull<u8> {
    // Atomics of a model checker have something to drop.
    // SAFETY: as promised.
    unsafe { ptr::drop_in_place(header.as_ptr()) };
    header.cast()
}

/// Makes a coroutine in a spare block, with two references: those of the domain and of the handle.
///
/// # Safety
/// The block belongs to the caller, and has the size class of `vtable::<F>()`.
#[inline]
pub(crate) unsafe fn begin<F: Future>(header: NonNull<Header>, future: F, priority: Priority) {
    // SAFETY: as promised, the caller owns all that is not atomic, and there is room for the future.
    unsafe {
        let this = header.as_ref();
        this.vtable.set(vtable::<F>());
        this.donations.set(Donations::only(priority));
        this.base.store(priority.index() as u8, Ordering::Relaxed);
        (this.effective).store(priority.index() as u8, Ordering::Relaxed);
        debug_assert!(this.level.get() == APART);
        this.state.mark_queued();
        (*Block::<F>::body(header)).future = ManuallyDrop::new(future);
        // A lookup that takes a reference sees all of this (NAMES).
        this.refs.store(2, Ordering::Release);
    }
}

impl Header {
    #[inline]
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    #[inline]
    pub(crate) fn place(&self) -> SlotIndex {
        self.place
    }

    #[inline]
    pub(crate) fn vtable(&self) -> &'static Vtable {
        self.vtable.get()
    }

    /// Takes one more reference, for a caller that has or borrows one (REFERENCES).
    #[inline]
    pub(crate) fn add_ref(&self) {
        let was = self.refs.fetch_add(1, Ordering::Relaxed);
        // The limit is half of the count, long before the count reaches the flags. A program that
        // leaks millions of wakers ends here.
        assert!(was & COUNT < COUNT / 2, "too many wakers of one coroutine");
    }

    /// Drops a reference, and returns true if it was the last (REFERENCES).
    #[inline]
    #[must_use]
    pub(crate) fn drop_ref(&self) -> bool {
        let was = self.refs.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(was & COUNT != 0);
        was & COUNT == 1
    }

    /// Takes a reference, unless the block is spare or its coroutine has ended (REFERENCES). By now that coroutine may
    /// be another one than the caller expects.
    ///
    /// # Safety
    /// The block exists, spare or not.
    #[must_use]
    pub(crate) unsafe fn try_add_ref(header: NonNull<Self>) -> bool {
        // SAFETY: the block exists, as promised, and only `refs` is read (SPARE).
        let refs = unsafe { &(*header.as_ptr()).refs };
        let mut was = refs.load(Ordering::Relaxed);
        while was & ENDED == 0 && was & COUNT != 0 {
            assert!(was & COUNT < COUNT / 2, "too many wakers of one coroutine");
            match refs.compare_exchange_weak(was, was + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => was = now,
            }
        }
        false
    }

    /// Returns the level at which it must be queued.
    #[inline]
    pub(crate) fn effective(&self) -> usize {
        self.effective.load(Ordering::Relaxed) as usize
    }

    /// Returns its own priority.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.load(Ordering::Relaxed) as usize
    }

    /// Changes the parts of its priority, and returns true if the effective one has changed.
    ///
    /// # Safety
    /// REGISTRY: the caller holds the lock.
    pub(crate) unsafe fn change(&self, change: impl FnOnce(&mut Donations)) -> bool {
        let mut donations = self.donations.get();
        change(&mut donations);
        self.donations.set(donations);
        let effective = donations.most_urgent();
        self.effective.swap(effective as u8, Ordering::Relaxed) as usize != effective
    }

    /// Sets its own priority, and returns true if the effective one has changed.
    ///
    /// # Safety
    /// REGISTRY: the caller holds the lock.
    pub(crate) unsafe fn set_base(&self, priority: Priority) -> bool {
        let was = self.base() as u8;
        self.base.store(priority.index() as u8, Ordering::Relaxed);
        // SAFETY: as promised.
        unsafe { self.change(|donations| donations.move_base(was.into(), priority.index())) }
    }

    /// Returns what is left of the budget of its poll.
    #[inline]
    pub(crate) fn budget(&self) -> u8 {
        self.budget.load(Ordering::Relaxed)
    }

    /// Takes one from the budget. Returns false if nothing is left.
    #[inline]
    #[must_use]
    pub(crate) fn spend(&self) -> bool {
        let left = self.budget().checked_sub(1);
        if let Some(left) = left {
            self.budget.store(left, Ordering::Relaxed);
        }
        left.is_some()
    }

    /// # Safety
    /// The caller is the coroutine's worker (WORKER), and the body has a future.
    #[inline]
    pub(crate) unsafe fn poll(&self, context: &mut Context<'_>) -> Polled {
        self.budget.store(POLL_BUDGET, Ordering::Relaxed);
        // SAFETY: as promised.
        unsafe { (self.vtable.get().poll)(NonNull::from(self), context) }
    }

    /// # Safety
    /// WORKER, and it has a future, which is dropped.
    pub(crate) unsafe fn drop_future(&self) {
        // SAFETY: as promised.
        unsafe { (self.vtable.get().drop_future)(NonNull::from(self)) }
    }

    /// Marks the coroutine as ended (JOIN), with the output or `without` one. Returns the waker to wake once the
    /// coroutine is not touched any more.
    ///
    /// # Safety
    /// The coroutine's worker calls this once (WORKER). The future is dropped, and the output is written if `without`
    /// is none.
    #[must_use]
    #[inline]
    pub(crate) unsafe fn mark_ended(&self, without: Option<Ended>) -> Option<Waker> {
        let how = match without {
            None => 0,
            Some(Ended::Cancelled) => CANCELLED,
            Some(Ended::Panicked) => PANICKED,
        };
        // None of these bits is set: an addition takes fewer instructions.
        let was = self.refs.fetch_add(ENDED | how, Ordering::AcqRel);
        let joiner = (was & JOINER != 0).then(|| {
            // SAFETY: the slot has a waker, which belongs to the worker (JOIN).
            unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() }
        });
        if was & DETACHED != 0 && without.is_none() {
            // SAFETY: the handle is gone, so the output belongs to the worker (JOIN).
            unsafe { (self.vtable.get().drop_output)(NonNull::from(self)) };
        }
        joiner
    }

    /// Returns true if the coroutine has ended (JOIN).
    pub(crate) fn has_ended(&self) -> bool {
        self.refs.load(Ordering::Acquire) & ENDED != 0
    }

    /// Returns how it has ended, if it has.
    #[inline]
    fn ending(refs: u32) -> Option<Result<(), Ended>> {
        match refs & (ENDED | CANCELLED | PANICKED) {
            0 => None,
            ENDED => Some(Ok(())),
            how if how & CANCELLED != 0 => Some(Err(Ended::Cancelled)),
            _ => Some(Err(Ended::Panicked)),
        }
    }

    /// Returns how the coroutine has ended, if it has (JOIN).
    #[inline]
    pub(crate) fn how_it_ended(&self) -> Option<Result<(), Ended>> {
        Self::ending(self.refs.load(Ordering::Acquire))
    }

    /// Returns how the coroutine has ended, for its handle (JOIN). If it has not, `waker` will be woken at its end.
    ///
    /// # Safety
    /// Called by the handle alone.
    #[inline]
    pub(crate) unsafe fn set_joiner(
        &self,
        waker: impl FnOnce() -> Waker,
    ) -> Option<Result<(), Ended>> {
        let mut refs = self.refs.load(Ordering::Acquire);
        if refs & JOINER != 0 && refs & ENDED == 0 {
            refs = self.refs.fetch_and(!JOINER, Ordering::AcqRel);
            if refs & ENDED == 0 {
                // SAFETY: the slot belongs to the handle again (JOIN).
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        if refs & ENDED == 0 {
            self.joiner.set(MaybeUninit::new(waker()));
            // The bit is not set: an addition takes fewer instructions.
            refs = self.refs.fetch_add(JOINER, Ordering::AcqRel);
            if refs & ENDED != 0 {
                // SAFETY: the worker found no `JOINER`, so the slot is the handle's.
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        Self::ending(refs)
    }

    /// Returns the output (JOIN).
    ///
    /// # Safety
    /// The coroutine has ended with an output of type `T`, which belongs to the caller. It is not touched afterwards.
    #[inline]
    pub(crate) unsafe fn take_output<T>(&self) -> T {
        let of = self.vtable.get().body;
        // SAFETY: as promised.
        unsafe { NonNull::from(self).byte_add(of).cast::<T>().read() }
    }

    /// Drops the claim of a handle that does not know how the coroutine has ended (JOIN).
    ///
    /// # Safety
    /// Called by the handle alone, as its last call.
    #[inline(never)]
    pub(crate) unsafe fn detach(&self) {
        let mut refs = self.refs.load(Ordering::Acquire);
        if refs & JOINER != 0 && refs & ENDED == 0 {
            refs = self.refs.fetch_and(!JOINER, Ordering::AcqRel);
            if refs & ENDED == 0 {
                // SAFETY: the slot belongs to the handle again (JOIN).
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        let refs = self.refs.fetch_add(DETACHED, Ordering::AcqRel);
        if Self::ending(refs) == Some(Ok(())) {
            // SAFETY: the output is written, and belongs to the handle (JOIN).
            unsafe { (self.vtable.get().drop_output)(NonNull::from(self)) };
        }
    }
}

const _: () = assert!(align_of::<Header>() >= 8, "tags in the inbox's word");
