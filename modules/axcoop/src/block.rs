//! What a coroutine is in memory: one block, with a head that is the same for all and a body that
//! is its future first and its output afterwards.
//!
//! # Who may touch what
//!
//! - WORKER: the body, while the coroutine has not ended, is its worker's alone: the one that has
//!   begun a poll ([`State::begin`]). Which worker that is may change; what hands it over is the state
//!   and the queue.
//! - QUEUE: `next` is of who has to queue it ([`Woken::MustBeQueued`], by which there is exactly one),
//!   then of the inbox, and from there on, with `prev` and `level`, of who has the domain's turn.
//! - BOOKS: `base`, `lent` and writing `effective` are of who has the lock of the domain's books. The
//!   priorities are read by anybody: a byte each.
//! - JOIN: the output and the slot of the joiner's waker, below.
//! - REFERENCES: the coroutine is there as long as anybody refers to it: the domain until it has
//!   ended, the join handle, each waker, each loan ([`Ref`](crate::waker::Ref)). By then the body is
//!   empty and the joiner's place as well, so the last one gives back memory and does nothing else, which
//!   may be in an interrupt.
//! - SPARE: a block to which nobody refers may be kept for another coroutine ([`Spares`](crate::spares)).
//!   It keeps its slot, and `state` and `refs`, which are only ever changed as atomics, as who looks
//!   a name up may look at `refs` of a block that is another's by now (NAMES in
//!   [`books`](crate::books)). All else is written anew.
//!
//! # JOIN
//!
//! In `refs`, above the count:
//!
//! | bit | is set by | from then on |
//! |---|---|---|
//! | `JOINER` | the handle, after writing its waker into the slot | the slot is the worker's |
//! | `ENDED`, with `CANCELLED` or `PANICKED` if there is no output | the worker, after the future is gone and the output there | the output is the handle's, and the slot the worker's if `JOINER` was set |
//! | `DETACHED` | the handle that is dropped | an output is the worker's, who drops it; if `ENDED` was set, the handle's, who does |
//!
//! A handle that knows how the coroutine has ended, and has taken its output, need not say that it is
//! dropped. It takes `JOINER` back before it writes another waker, and leaves the slot alone if it
//! finds `ENDED` then.

use alloc::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::future::Future;
use core::mem::{ManuallyDrop, MaybeUninit, offset_of};
use core::pin::Pin;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, Waker};

use axcoop_summary::Priority;

use crate::cid::Place;
use crate::error::Ended;
use crate::lent::Lent;
use crate::state::State;
use crate::sync::{AtomicU32, Ordering};

/// The slot has a waker.
const JOINER: u32 = 1 << 31;
/// The coroutine has ended.
const ENDED: u32 = 1 << 30;
/// Nobody will ask for the output.
const DETACHED: u32 = 1 << 29;
/// It ended without an output.
const CANCELLED: u32 = 1 << 28;
const PANICKED: u32 = 1 << 27;
/// How often it is referred to.
const COUNT: u32 = PANICKED - 1;

/// The number of futures that can be ready in one poll of a coroutine: the next one gives way.
pub const POLL_BUDGET: u8 = 64;

/// [`Header::level`] of one that is in no level of the ready queues.
pub(crate) const APART: u8 = u8::MAX;

/// The head of a block: 64 bytes on a 64-bit target.
#[repr(C, align(16))]
pub(crate) struct Header {
    state: State,
    refs: AtomicU32,
    does: Cell<&'static Does>,
    /// QUEUE.
    pub(crate) next: Cell<*const Header>,
    pub(crate) prev: Cell<*const Header>,
    /// JOIN: the slot.
    joiner: Cell<MaybeUninit<Waker>>,
    /// BOOKS.
    lent: Cell<Lent>,
    place: Place,
    base: AtomicU8,
    effective: AtomicU8,
    /// The rest of the budget of its poll ([`budget`](crate::budget)). Only the worker that polls it
    /// uses it. An atomic, as safe code can poll a future with the waker of another coroutine.
    budget: AtomicU8,
    /// QUEUE: in which level, or [`APART`].
    pub(crate) level: Cell<u8>,
}

// Model checkers have atomics of another size.
const _: () = assert!(size_of::<Header>() <= 64 || size_of::<AtomicU32>() > 4);

/// What differs by the type of the future.
pub(crate) struct Does {
    /// Of the block.
    pub(crate) layout: Layout,
    /// Blocks of the same size and alignment have the same; [`NOT_KEPT`] if none are kept.
    pub(crate) size: u8,
    /// Where the body is, behind the head.
    body: usize,
    /// Polls the future; if it is ready, leaves the output in its place.
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Polled,
    drop_future: unsafe fn(NonNull<Header>),
    drop_output: unsafe fn(NonNull<Header>),
}

/// What has come of a poll.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    Pending,
    Ready,
    /// The future panicked, and is gone.
    Panicked,
}

/// A block's size, with the [`HEAD`] that an allocator puts before it, is a multiple of this.
const GRAIN: usize = 32;
const HEAD: usize = 16;
/// How many sizes of blocks are kept.
pub(crate) const SIZES: usize = 16;
/// [`Does::size`] of a block that is not.
pub(crate) const NOT_KEPT: u8 = SIZES as u8;

/// The layout of all blocks of a size that is kept.
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
    const DOES: Does = Does {
        layout: Self::layout(),
        size: kept_size(Self::layout()),
        body: offset_of!(Self, body),
        poll: Self::poll,
        drop_future: Self::drop_future,
        drop_output: Self::drop_output,
    };

    /// Of the block: with the 16 bytes that an allocator puts before it a multiple of 32, as
    /// allocators give anyway, so that blocks of about the same size are of one class.
    const fn layout() -> Layout {
        let of = Layout::new::<Self>();
        let size = (of.size() + HEAD).next_multiple_of(GRAIN) - HEAD;
        match Layout::from_size_align(size, of.align()) {
            Ok(layout) => layout,
            Err(_) => panic!("a future of half the address space"),
        }
    }

    /// The body of the block with this head.
    fn body(header: NonNull<Header>) -> *mut Body<F> {
        // SAFETY: the head is that of a `Block<F>`, as its `does` says.
        let body = unsafe { header.byte_add(offset_of!(Self, body)) };
        body.as_ptr().cast()
    }

    /// # Safety
    /// The head of a `Block<F>` with a future; WORKER.
    unsafe fn poll(header: NonNull<Header>, context: &mut Context<'_>) -> Polled {
        let body = Self::body(header);
        // SAFETY: WORKER: it is the future, and this is the only reference. It stays where it is
        // until it is dropped.
        let future = unsafe { Pin::new_unchecked(&mut *(*body).future) };
        match crate::panics::caught(|| future.poll(context)) {
            Ok(Poll::Pending) => Polled::Pending,
            Ok(Poll::Ready(output)) => {
                let drops = crate::panics::caught(|| {
                    // SAFETY: as above; nobody polls it any more.
                    unsafe { ManuallyDrop::drop(&mut (*body).future) }
                });
                if drops.is_err() {
                    let _ = crate::panics::caught(|| drop(output));
                    return Polled::Panicked;
                }
                // SAFETY: the place is free, and large enough for either.
                unsafe { (*body).output = ManuallyDrop::new(output) };
                Polled::Ready
            }
            Err(crate::panics::Panicked) => {
                // SAFETY: as above.
                unsafe { Self::drop_future(header) };
                Polled::Panicked
            }
        }
    }

    /// # Safety
    /// The head of a `Block<F>` with a future; WORKER. It is not touched afterwards.
    unsafe fn drop_future(header: NonNull<Header>) {
        let body = Self::body(header);
        // What a destructor that panics has to say it has said; the future is gone.
        let _ = crate::panics::caught(|| {
            // SAFETY: as promised.
            unsafe { ManuallyDrop::drop(&mut (*body).future) }
        });
    }

    /// # Safety
    /// The head of a `Block<F>` with an output, which is the caller's; it is not touched afterwards.
    unsafe fn drop_output(header: NonNull<Header>) {
        let body = Self::body(header);
        let _ = crate::panics::caught(|| {
            // SAFETY: as promised.
            unsafe { ManuallyDrop::drop(&mut (*body).output) }
        });
    }
}

/// What is done with a coroutine of this future.
pub(crate) const fn does<F: Future>() -> &'static Does {
    const { &Block::<F>::DOES }
}

/// Makes a spare block (SPARE) of memory.
///
/// # Safety
/// `memory` is of this layout, and the caller's.
pub(crate) unsafe fn make(
    memory: NonNull<u8>,
    does: &'static Does,
    place: Place,
) -> NonNull<Header> {
    let header: NonNull<Header> = memory.cast();
    // SAFETY: as promised.
    unsafe {
        header.write(Header {
            state: State::queued(),
            refs: AtomicU32::new(0),
            does: Cell::new(does),
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            joiner: Cell::new(MaybeUninit::uninit()),
            lent: Cell::new(Lent::only(Priority::DEFAULT)),
            place,
            base: AtomicU8::new(0),
            effective: AtomicU8::new(0),
            budget: AtomicU8::new(0),
            level: Cell::new(APART),
        });
    }
    header
}

/// Makes memory again of a spare block, to which nothing leads any more.
///
/// # Safety
/// It is the caller's; it is not touched afterwards.
pub(crate) unsafe fn unmake(header: NonNull<Header>) -> NonNull<u8> {
    // Atomics of a model checker have something to drop.
    // SAFETY: as promised.
    unsafe { ptr::drop_in_place(header.as_ptr()) };
    header.cast()
}

/// Makes a coroutine of a spare block, with two references: that of the domain and that of the handle.
///
/// # Safety
/// The block is the caller's, and of the size of `does::<F>()`.
#[inline]
pub(crate) unsafe fn begin<F: Future>(header: NonNull<Header>, future: F, priority: Priority) {
    // SAFETY: as promised: what is not atomic is the caller's, and there is room for it.
    unsafe {
        let this = header.as_ref();
        this.does.set(does::<F>());
        this.lent.set(Lent::only(priority));
        this.base.store(priority.index() as u8, Ordering::Relaxed);
        (this.effective).store(priority.index() as u8, Ordering::Relaxed);
        debug_assert!(this.level.get() == APART);
        this.state.queues();
        (*Block::<F>::body(header)).future = ManuallyDrop::new(future);
        // Whoever counts one more sees all of this (NAMES).
        this.refs.store(2, Ordering::Release);
    }
}

impl Header {
    #[inline]
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    #[inline]
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    #[inline]
    pub(crate) fn does(&self) -> &'static Does {
        self.does.get()
    }

    /// REFERENCES: one more, of somebody who has one, or has one lent.
    #[inline]
    pub(crate) fn refers(&self) {
        let was = self.refs.fetch_add(1, Ordering::Relaxed);
        // Half of what would run into the flags; who forgets wakers by the million ends here.
        assert!(was & COUNT < COUNT / 2, "too many wakers of one coroutine");
    }

    /// REFERENCES: one less; returns whether it was the last.
    #[inline]
    #[must_use]
    pub(crate) fn unrefers(&self) -> bool {
        let was = self.refs.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(was & COUNT != 0);
        was & COUNT == 1
    }

    /// REFERENCES: one more if the coroutine has not ended, whichever it is.
    ///
    /// # Safety
    /// The block is there, a spare one, or a coroutine's.
    #[must_use]
    pub(crate) unsafe fn refers_if_any(header: NonNull<Self>) -> bool {
        // SAFETY: as promised; nothing but `refs` is looked at (SPARE).
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

    /// The level that it has to stand in.
    #[inline]
    pub(crate) fn effective(&self) -> usize {
        self.effective.load(Ordering::Relaxed) as usize
    }

    /// Its own priority.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.load(Ordering::Relaxed) as usize
    }

    /// Changes what counts for its priority, and returns whether that has changed.
    ///
    /// # Safety
    /// BOOKS: the caller has the lock.
    pub(crate) unsafe fn change(&self, change: impl FnOnce(&mut Lent)) -> bool {
        let mut lent = self.lent.get();
        change(&mut lent);
        self.lent.set(lent);
        let effective = lent.most_urgent();
        self.effective.swap(effective as u8, Ordering::Relaxed) as usize != effective
    }

    /// Gives it another priority of its own, and returns whether the effective one has changed.
    ///
    /// # Safety
    /// BOOKS: the caller has the lock.
    pub(crate) unsafe fn set_base(&self, priority: Priority) -> bool {
        let was = self.base() as u8;
        self.base.store(priority.index() as u8, Ordering::Relaxed);
        // SAFETY: as promised.
        unsafe { self.change(|lent| lent.moves_base(was.into(), priority.index())) }
    }

    /// Returns the rest of the budget of its poll.
    #[inline]
    pub(crate) fn budget(&self) -> u8 {
        self.budget.load(Ordering::Relaxed)
    }

    /// Takes one from the budget; returns false if nothing is left.
    #[inline]
    #[must_use]
    pub(crate) fn spends(&self) -> bool {
        let left = self.budget().checked_sub(1);
        if let Some(left) = left {
            self.budget.store(left, Ordering::Relaxed);
        }
        left.is_some()
    }

    /// # Safety
    /// WORKER, and it has a future.
    #[inline]
    pub(crate) unsafe fn poll(&self, context: &mut Context<'_>) -> Polled {
        self.budget.store(POLL_BUDGET, Ordering::Relaxed);
        // SAFETY: as promised.
        unsafe { (self.does.get().poll)(NonNull::from(self), context) }
    }

    /// # Safety
    /// WORKER, and it has a future, which is gone then.
    pub(crate) unsafe fn drop_future(&self) {
        // SAFETY: as promised.
        unsafe { (self.does.get().drop_future)(NonNull::from(self)) }
    }

    /// JOIN: it has ended, so or with an output; whom to wake for that, once it is not touched any
    /// more.
    ///
    /// # Safety
    /// WORKER, once: the future is gone, and the output is there if `without` is none.
    #[must_use]
    #[inline]
    pub(crate) unsafe fn ended(&self, without: Option<Ended>) -> Option<Waker> {
        let how = match without {
            None => 0,
            Some(Ended::Cancelled) => CANCELLED,
            Some(Ended::Panicked) => PANICKED,
        };
        // None of these is set: a sum takes fewer instructions.
        let was = self.refs.fetch_add(ENDED | how, Ordering::AcqRel);
        let joiner = (was & JOINER != 0).then(|| {
            // SAFETY: JOIN: a waker is there, and it is the worker's.
            unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() }
        });
        if was & DETACHED != 0 && without.is_none() {
            // SAFETY: JOIN: nobody else will take it.
            unsafe { (self.does.get().drop_output)(NonNull::from(self)) };
        }
        joiner
    }

    /// JOIN: whether there is anything to wait for.
    pub(crate) fn has_ended(&self) -> bool {
        self.refs.load(Ordering::Acquire) & ENDED != 0
    }

    /// How it has ended, if it has.
    #[inline]
    fn ending(refs: u32) -> Option<Result<(), Ended>> {
        match refs & (ENDED | CANCELLED | PANICKED) {
            0 => None,
            ENDED => Some(Ok(())),
            how if how & CANCELLED != 0 => Some(Err(Ended::Cancelled)),
            _ => Some(Err(Ended::Panicked)),
        }
    }

    /// JOIN: whether it has ended, and how.
    #[inline]
    pub(crate) fn how_it_ended(&self) -> Option<Result<(), Ended>> {
        Self::ending(self.refs.load(Ordering::Acquire))
    }

    /// JOIN, of the handle: whether it has ended, and how; if not, `waker` will be woken then.
    ///
    /// # Safety
    /// Called by the handle alone.
    #[inline]
    pub(crate) unsafe fn joins(&self, waker: impl FnOnce() -> Waker) -> Option<Result<(), Ended>> {
        let mut refs = self.refs.load(Ordering::Acquire);
        if refs & JOINER != 0 && refs & ENDED == 0 {
            refs = self.refs.fetch_and(!JOINER, Ordering::AcqRel);
            if refs & ENDED == 0 {
                // SAFETY: JOIN: it is the handle's again.
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        if refs & ENDED == 0 {
            self.joiner.set(MaybeUninit::new(waker()));
            // It is not set: a sum takes fewer instructions.
            refs = self.refs.fetch_add(JOINER, Ordering::AcqRel);
            if refs & ENDED != 0 {
                // SAFETY: the worker found no `JOINER`, so the slot is the handle's.
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        Self::ending(refs)
    }

    /// JOIN: the output.
    ///
    /// # Safety
    /// It is a `T`, the coroutine has ended with one, and it is the caller's. It is not touched
    /// afterwards.
    #[inline]
    pub(crate) unsafe fn takes_output<T>(&self) -> T {
        let of = self.does.get().body;
        // SAFETY: as promised.
        unsafe { NonNull::from(self).byte_add(of).cast::<T>().read() }
    }

    /// JOIN: the handle is dropped, and has not been told how it has ended.
    ///
    /// # Safety
    /// Called by the handle alone, as the last thing.
    #[inline(never)]
    pub(crate) unsafe fn detaches(&self) {
        let mut refs = self.refs.load(Ordering::Acquire);
        if refs & JOINER != 0 && refs & ENDED == 0 {
            refs = self.refs.fetch_and(!JOINER, Ordering::AcqRel);
            if refs & ENDED == 0 {
                // SAFETY: JOIN: it is the handle's again.
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        let refs = self.refs.fetch_add(DETACHED, Ordering::AcqRel);
        if Self::ending(refs) == Some(Ok(())) {
            // SAFETY: JOIN: it is there, and the handle's.
            unsafe { (self.does.get().drop_output)(NonNull::from(self)) };
        }
    }
}

const _: () = assert!(align_of::<Header>() >= 8, "tags in the inbox's word");
