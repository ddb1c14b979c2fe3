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
//! - REFERENCES: the block lives as long as anybody refers to it: the domain until the coroutine has
//!   ended, the join handle, each waker, each loan. By then the body is empty and the slot as well,
//!   so the last one frees memory and does nothing else, which may be in an interrupt.
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
//! The handle takes `JOINER` back before it writes another waker, and leaves the slot alone if it
//! finds `ENDED` then.

use alloc::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::future::Future;
use core::mem::{ManuallyDrop, MaybeUninit, offset_of};
use core::pin::Pin;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use axcoop_summary::Priority;

use crate::cid::Place;
use crate::domain::Domain;
use crate::error::Ended;
use crate::lent::Lent;
use crate::state::{State, Woken};
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

/// [`Header::level`] of one that is in no level of the ready queues.
pub(crate) const APART: u8 = u8::MAX;

/// The head of a block: 64 bytes on a 64-bit target.
#[repr(C, align(16))]
pub(crate) struct Header {
    state: State,
    refs: AtomicU32,
    does: &'static Does,
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
    /// QUEUE: in which level, or [`APART`].
    pub(crate) level: Cell<u8>,
}

// Model checkers have atomics of another size.
const _: () = assert!(size_of::<Header>() <= 64 || size_of::<AtomicU32>() > 4);

/// What differs by the type of the future.
struct Does {
    layout: Layout,
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
        body: offset_of!(Self, body),
        poll: Self::poll,
        drop_future: Self::drop_future,
        drop_output: Self::drop_output,
    };

    /// Of the block: with the 16 bytes that an allocator puts before it a multiple of 32, as
    /// allocators give anyway, so that blocks of about the same size are of one class.
    const fn layout() -> Layout {
        const HEAD: usize = 16;
        const GRAIN: usize = 32;
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

/// A reference to a block that is counted: REFERENCES.
pub(crate) struct Ref(NonNull<Header>);

// SAFETY: what it gives access to is atomic, or under a protocol above; futures and outputs are
// `Send`, as spawning asks.
unsafe impl Send for Ref {}
// SAFETY: as above.
unsafe impl Sync for Ref {}

impl Ref {
    /// A reference of its own.
    ///
    /// # Safety
    /// The block lives.
    #[inline]
    pub(crate) unsafe fn to(header: NonNull<Header>) -> Self {
        // SAFETY: as promised.
        let was = unsafe { header.as_ref() }
            .refs
            .fetch_add(1, Ordering::Relaxed);
        // Half of what would run into the flags; who forgets wakers by the million ends here.
        assert!(was & COUNT < COUNT / 2, "too many wakers of one coroutine");
        Self(header)
    }

    /// A reference of its own to one that is referred to.
    pub(crate) fn of(header: &Header) -> Self {
        // SAFETY: who has the reference says that the block lives.
        unsafe { Self::to(header.into()) }
    }

    /// The reference that somebody has given up with [`into_raw`](Self::into_raw).
    ///
    /// # Safety
    /// There is such a one.
    #[inline]
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(crate) fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
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
        let was = self.refs.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(was & COUNT != 0);
        if was & COUNT == 1 {
            free(self.0);
        }
    }
}

/// REFERENCES: memory, and nothing else.
#[cold]
fn free(header: NonNull<Header>) {
    // SAFETY: it lives until below.
    let (domain, layout) = unsafe { (header.as_ref().domain(), header.as_ref().does.layout) };
    // Of atomics; those of a model checker have something to drop.
    // SAFETY: nobody refers to it.
    unsafe { ptr::drop_in_place(header.as_ptr()) };
    // SAFETY: of `make`, with this layout, and nobody refers to it.
    unsafe { domain.gives_back(header.cast(), layout) };
}

/// How large the block of a coroutine with this future is.
pub(crate) const fn layout_of<F: Future>() -> Layout {
    Block::<F>::layout()
}

/// Makes a block with two references, of which one is the result: that of the domain and that of
/// the handle.
///
/// # Safety
/// `memory` is of the size and alignment of [`layout_of`], and the caller's.
pub(crate) unsafe fn make<F: Future>(
    memory: NonNull<u8>,
    future: F,
    place: Place,
    priority: Priority,
) -> NonNull<Header> {
    let block: NonNull<Block<F>> = memory.cast();
    let base = priority.index() as u8;
    let header = Header {
        state: State::queued(),
        refs: AtomicU32::new(2),
        does: const { &Block::<F>::DOES },
        next: Cell::new(ptr::null()),
        prev: Cell::new(ptr::null()),
        joiner: Cell::new(MaybeUninit::uninit()),
        lent: Cell::new(Lent::only(priority)),
        place,
        base: AtomicU8::new(base),
        effective: AtomicU8::new(base),
        level: Cell::new(APART),
    };
    // SAFETY: as promised.
    unsafe {
        block.write(Block {
            header,
            body: UnsafeCell::new(Body {
                future: ManuallyDrop::new(future),
            }),
        });
    }
    block.cast()
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
    pub(crate) fn domain(&self) -> &'static Domain {
        crate::domain::open(self.place.domain())
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

    /// # Safety
    /// WORKER, and it has a future.
    #[inline]
    pub(crate) unsafe fn poll(&self) -> Polled {
        let this = NonNull::from(self);
        let raw = RawWaker::new(this.as_ptr().cast_const().cast(), &WAKER);
        // SAFETY: the vtable is that of blocks. It is not counted, and not dropped: the domain's
        // reference is there as long as the poll.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw) });
        let mut context = Context::from_waker(&waker);
        // SAFETY: as promised.
        unsafe { (self.does.poll)(this, &mut context) }
    }

    /// # Safety
    /// WORKER, and it has a future, which is gone then.
    pub(crate) unsafe fn drop_future(&self) {
        // SAFETY: as promised.
        unsafe { (self.does.drop_future)(NonNull::from(self)) }
    }

    /// Somebody wakes it.
    #[inline]
    pub(crate) fn wake(&self) {
        match self.state.wake() {
            Woken::MustBeQueued => self.arrives(),
            Woken::Already => {}
        }
    }

    /// Somebody cancels it.
    pub(crate) fn cancel(&self) {
        match self.state.cancel() {
            Woken::MustBeQueued => self.arrives(),
            Woken::Already => {}
        }
    }

    /// Has its domain queue it.
    pub(crate) fn arrives(&self) {
        self.domain().arrives(self);
    }

    /// JOIN: it has ended, so or with an output; whom to wake for that, once it is not touched any
    /// more.
    ///
    /// # Safety
    /// WORKER, once: the future is gone, and the output is there if `without` is none.
    #[must_use]
    pub(crate) unsafe fn ended(&self, without: Option<Ended>) -> Option<Waker> {
        let how = match without {
            None => 0,
            Some(Ended::Cancelled) => CANCELLED,
            Some(Ended::Panicked) => PANICKED,
        };
        let was = self.refs.fetch_or(ENDED | how, Ordering::AcqRel);
        let joiner = (was & JOINER != 0).then(|| {
            // SAFETY: JOIN: a waker is there, and it is the worker's.
            unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() }
        });
        if was & DETACHED != 0 && without.is_none() {
            // SAFETY: JOIN: nobody else will take it.
            unsafe { (self.does.drop_output)(NonNull::from(self)) };
        }
        joiner
    }

    /// JOIN: whether there is anything to wait for.
    pub(crate) fn has_ended(&self) -> bool {
        self.refs.load(Ordering::Acquire) & ENDED != 0
    }

    /// How it has ended, if it has.
    fn ending(refs: u32) -> Option<Result<(), Ended>> {
        match refs & (ENDED | CANCELLED | PANICKED) {
            0 => None,
            ENDED => Some(Ok(())),
            how if how & CANCELLED != 0 => Some(Err(Ended::Cancelled)),
            _ => Some(Err(Ended::Panicked)),
        }
    }

    /// JOIN, of the handle: whether it has ended, and how; if not, `waker` will be woken then.
    ///
    /// # Safety
    /// Called by the handle alone.
    pub(crate) unsafe fn joins(&self, waker: &Waker) -> Option<Result<(), Ended>> {
        let mut refs = self.refs.load(Ordering::Acquire);
        if refs & JOINER != 0 && refs & ENDED == 0 {
            refs = self.refs.fetch_and(!JOINER, Ordering::AcqRel);
            if refs & ENDED == 0 {
                // SAFETY: JOIN: it is the handle's again.
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        if refs & ENDED == 0 {
            self.joiner.set(MaybeUninit::new(waker.clone()));
            refs = self.refs.fetch_or(JOINER, Ordering::AcqRel);
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
    pub(crate) unsafe fn takes_output<T>(&self) -> T {
        let of = self.does.body;
        // SAFETY: as promised.
        unsafe { NonNull::from(self).byte_add(of).cast::<T>().read() }
    }

    /// JOIN: the handle is dropped. `has_output`: it has not taken it.
    ///
    /// # Safety
    /// Called by the handle alone, as the last thing.
    pub(crate) unsafe fn detaches(&self, has_output: bool) {
        let mut refs = self.refs.load(Ordering::Acquire);
        if refs & JOINER != 0 && refs & ENDED == 0 {
            refs = self.refs.fetch_and(!JOINER, Ordering::AcqRel);
            if refs & ENDED == 0 {
                // SAFETY: JOIN: it is the handle's again.
                drop(unsafe { self.joiner.replace(MaybeUninit::uninit()).assume_init() });
            }
        }
        let refs = self.refs.fetch_or(DETACHED, Ordering::AcqRel);
        if has_output && Self::ending(refs) == Some(Ok(())) {
            // SAFETY: JOIN: it is there, and the handle's.
            unsafe { (self.does.drop_output)(NonNull::from(self)) };
        }
    }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |header| {
        // SAFETY: a waker has a reference, or the poll has that lends it.
        let reference = unsafe { Ref::to(at(header)) };
        RawWaker::new(reference.into_raw().as_ptr().cast_const().cast(), &WAKER)
    },
    |header| {
        // SAFETY: the reference of this waker.
        unsafe { Ref::from_raw(at(header)) }.wake();
    },
    |header| {
        // SAFETY: a waker has a reference.
        unsafe { at(header).as_ref() }.wake();
    },
    // SAFETY: the reference of this waker.
    |header| drop(unsafe { Ref::from_raw(at(header)) }),
);

/// The head that a waker has as its data.
#[inline]
fn at(header: *const ()) -> NonNull<Header> {
    // SAFETY: all wakers of this vtable are made from heads.
    unsafe { NonNull::new_unchecked(header.cast_mut().cast()) }
}

/// The head of the coroutine whose waker it is, if it is one's.
#[inline]
pub(crate) fn of_waker(waker: &Waker) -> Option<&Header> {
    let is_ours = ptr::eq(waker.vtable(), &WAKER);
    // SAFETY: a waker has a reference, or the poll has that lends it.
    is_ours.then(|| unsafe { at(waker.data()).as_ref() })
}

/// Wakes who polls with this waker. If it is a coroutine, then most likely this one, which runs: a
/// few instructions less.
#[inline]
pub(crate) fn wake_self(waker: &Waker) {
    let Some(header) = of_waker(waker) else {
        return waker.wake_by_ref();
    };
    if !header.state.wake_running() {
        header.wake();
    }
}

const _: () = assert!(align_of::<Header>() >= 8, "tags in the inbox's word");
