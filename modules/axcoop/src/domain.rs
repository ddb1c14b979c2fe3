//! One program's executor: what it is made of, how it is reached by its number, and how coroutines
//! come to its queues. What a worker does with them is in [`worker`](crate::worker).

use core::cell::UnsafeCell;
use core::future::Future;
use core::pin::pin;
use core::ptr::{self, NonNull};
#[cfg(not(loom))]
use core::sync::atomic::AtomicU32 as Generation;
use core::sync::atomic::{AtomicBool as Flag, AtomicPtr as Pointer, AtomicUsize as Counter};

use axcoop_summary::{Bits, DOMAINS, DomainId, PRIORITIES, Priority, Summary};

use crate::block::{self, Does, Header, SIZES};
use crate::books::Books;
use crate::cid::Cid;
use crate::error::{CpuError, DomainError, SpawnError};
use crate::inbox::{Inbox, Notes};
use crate::kernel::{Attendant, Kernel, MAX_WORKERS};
use crate::lock::Lock;
use crate::polling::Polling;
use crate::ready::Ready;
use crate::spares::Spares;
use crate::state::Woken;
use crate::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::table::{Directory, NoSlot};
use crate::timers::Timers;
use crate::turn::Turn;

/// One program's coroutines, and the workers that run them.
///
/// A domain is a static, or leaked, and has to be [opened](Self::open) before anything is spawned.
pub struct Domain {
    pub(crate) id: DomainId,
    pub(crate) summary: &'static Summary,
    pub(crate) kernel: &'static dyn Kernel,
    /// By the level of what would run next: what of other domains is more urgent, and what of this.
    pub(crate) elsewhere: [Bits; PRIORITIES],
    pub(crate) own: [Bits; PRIORITIES + 1],
    /// What comes from outside.
    pub(crate) inbox: Inbox,
    /// Workers that wait, or are about to, a bit each: WAIT in [`worker`](crate::worker).
    pub(crate) sleepers: AtomicU32,
    /// Is another number after each change of who shall serve.
    pub(crate) epoch: AtomicU32,
    /// Whose turn it is.
    pub(crate) turn: Turn,
    /// The [task](Kernel::me) of the worker that has the turn for good, or 0, and that worker. Only that
    /// task writes them, and only it reads the second.
    pub(crate) alone: AtomicUsize,
    pub(crate) alone_worker: AtomicPtr<Polling>,
    /// Of who has the turn.
    pub(crate) ready: UnsafeCell<Ready>,
    /// Of the worker that has the turn for good; without one, there are none.
    pub(crate) spares: UnsafeCell<Spares>,
    /// Coroutines that have not ended.
    coroutines: Counter,
    pub(crate) directory: Directory,
    pub(crate) books: Lock<Books>,
    /// Its system's clock has ticked, and so will tick again: KEEP in [`spares`](crate::spares).
    has_ticks: Flag,
    /// The books may keep memory for later, of which the next tick is to know.
    keeps: Flag,
    /// Who waits for a time.
    pub(crate) timers: Timers,
    pub(crate) workers: [Polling; MAX_WORKERS],
}

// SAFETY: `ready` and `spares` are of who has the turn; all else is atomic or locked.
unsafe impl Sync for Domain {}

/// The domains that are open, by their numbers.
///
/// CLOSE: whether a domain is open is decided with the lock of its books. [`Domain::close`] reads and clears
/// [`Books::is_open`] in one step, so one call closes a domain, and only that call frees the number.
#[cfg(not(loom))]
static OPEN: [Pointer<Domain>; DOMAINS] = [const { Pointer::new(ptr::null_mut()) }; DOMAINS];

/// For each number, the generation from which names go on when a domain of it is opened next: a [`Cid`]
/// never names a coroutine of another domain that has had the number.
#[cfg(not(loom))]
static LATER: [Generation; DOMAINS] = [const { Generation::new(0) }; DOMAINS];

// The same of one execution.
#[cfg(loom)]
loom::lazy_static! {
    static ref OPEN: [AtomicPtr<Domain>; DOMAINS] =
        core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
    static ref LATER: [AtomicU32; DOMAINS] = core::array::from_fn(|_| AtomicU32::new(0));
}

/// The domain that was opened last, whether or not it is still open: it is static, and so is its system.
static LAST: Pointer<Domain> = Pointer::new(ptr::null_mut());

/// The domain of a coroutine that there is.
#[inline]
pub(crate) fn open(domain: usize) -> &'static Domain {
    let domain = OPEN[domain % DOMAINS].load(Ordering::Relaxed);
    debug_assert!(!domain.is_null());
    // SAFETY: a domain stays open as long as there are blocks of it.
    unsafe { &*domain }
}

pub(crate) fn maybe_open(domain: usize) -> Option<&'static Domain> {
    // SAFETY: null, or a domain, which is static.
    unsafe { OPEN[domain].load(Ordering::Acquire).as_ref() }
}

/// Returns the domain that was opened last if it is open, and otherwise any that is. All domains know
/// the same system, so this leads to it from what belongs to no domain.
pub(crate) fn last_opened() -> Option<&'static Domain> {
    let last = LAST.load(Ordering::Acquire).cast_const();
    let mut open = (0..DOMAINS).filter_map(maybe_open);
    let by_number = open.clone().find(|&domain| ptr::eq(domain, last));
    by_number.or_else(|| open.next())
}

/// Returns the system, if any domain has ever been open.
#[inline]
pub(crate) fn system() -> Option<&'static dyn Kernel> {
    // SAFETY: null, or a domain, which is static.
    let domain = unsafe { LAST.load(Ordering::Acquire).as_ref() };
    domain.map(|domain| domain.kernel)
}

/// The domain of the coroutine that calls.
pub(crate) fn of_current() -> Option<&'static Domain> {
    current_header().map(|header| open(header.place().domain()))
}

/// The coroutine that calls, as it is until the poll ends that it calls from.
#[inline]
pub(crate) fn current_header<'a>() -> Option<&'a Header> {
    here()?.current()
}

/// The worker that calls.
#[inline]
pub(crate) fn here() -> Option<&'static Polling> {
    worker_here(system()?)
}

/// The worker that calls, on this system.
#[inline]
fn worker_here(kernel: &dyn Kernel) -> Option<&'static Polling> {
    // SAFETY: only workers set it, to themselves, and take it back when they leave.
    unsafe { kernel.here().cast::<Polling>().as_ref() }
}

impl Domain {
    /// A domain of this number, which says in `summary` what it has ready, on this system.
    #[cfg(not(loom))]
    pub const fn new(id: DomainId, summary: &'static Summary, kernel: &'static dyn Kernel) -> Self {
        Self {
            id,
            summary,
            kernel,
            elsewhere: elsewhere(id),
            own: own(id),
            inbox: Inbox::new(),
            sleepers: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            turn: Turn::new(),
            alone: AtomicUsize::new(0),
            alone_worker: AtomicPtr::new(ptr::null_mut()),
            ready: UnsafeCell::new(Ready::new()),
            spares: UnsafeCell::new(Spares::new()),
            coroutines: Counter::new(0),
            directory: Directory::new(),
            books: Lock::new(Books::new()),
            has_ticks: Flag::new(false),
            keeps: Flag::new(false),
            timers: Timers::new(),
            workers: [const { Polling::new() }; MAX_WORKERS],
        }
    }

    /// As in the other builds.
    #[cfg(loom)]
    pub fn new(id: DomainId, summary: &'static Summary, kernel: &'static dyn Kernel) -> Self {
        Self {
            id,
            summary,
            kernel,
            elsewhere: elsewhere(id),
            own: own(id),
            inbox: Inbox::new(),
            sleepers: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            turn: Turn::new(),
            alone: AtomicUsize::new(0),
            alone_worker: AtomicPtr::new(ptr::null_mut()),
            ready: UnsafeCell::new(Ready::new()),
            spares: UnsafeCell::new(Spares::new()),
            coroutines: Counter::new(0),
            directory: Directory::new(),
            books: Lock::new(Books::new()),
            has_ticks: Flag::new(false),
            keeps: Flag::new(false),
            timers: Timers::new(),
            workers: [const { Polling::new() }; MAX_WORKERS],
        }
    }

    /// Makes it known by its number. No worker serves it yet: [`alloc_cpu`](Self::alloc_cpu).
    ///
    /// # Errors
    /// [`DomainError::Taken`] if another of this number is open.
    pub fn open(&'static self) -> Result<(), DomainError> {
        self.inbox.note(Notes::SHARED);
        let this = ptr::from_ref(self).cast_mut();
        match OPEN[self.id.index()].compare_exchange(
            ptr::null_mut(),
            this,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            Ok(_) => {
                let later = LATER[self.id.index()].load(Ordering::Relaxed);
                LAST.store(this, Ordering::Release);
                self.books.with(self.kernel, |books| books.opens(later));
                Ok(())
            }
            Err(_) => Err(DomainError::Taken(self.id)),
        }
    }

    /// Gives back what it has, and its number. Everything has to have ended before, and nobody may
    /// hold a handle or a waker any more.
    ///
    /// # Errors
    /// [`DomainError::InUse`] if not, and [`DomainError::NotOpen`].
    pub fn close(&'static self) -> Result<(), DomainError> {
        let later = self.books.with(self.kernel, |books| {
            // CLOSE.
            if !books.is_open {
                return Err(DomainError::NotOpen(self.id));
            }
            books.forgets_gone(self.kernel);
            // SAFETY: anybody may ask how many there are.
            let spares = unsafe { &*self.spares.get() }.count();
            let blocks = books.blocks().saturating_sub(spares);
            let timers = self.timers.set(self.kernel);
            if blocks != 0 || books.serving != 0 || timers != 0 {
                return Err(DomainError::InUse {
                    coroutines: blocks.max(timers),
                    workers: books.serving.count_ones() as usize,
                });
            }
            Ok(books.closes(self.kernel, &self.directory))
        })?;
        // The call that opens the next one sees these writes, as it sees that the number is free.
        LATER[self.id.index()].store(later, Ordering::Relaxed);
        self.summary.clear_all(Bits::own(self.id));
        OPEN[self.id.index()].store(ptr::null_mut(), Ordering::Release);
        Ok(())
    }

    /// Frees its number whatever there may be: of a test that has failed.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the tests of the library need it")]
    pub(crate) fn abandons(&self) {
        OPEN[self.id.index()].store(ptr::null_mut(), Ordering::Release);
    }

    /// The open domain of this number.
    pub fn of(id: DomainId) -> Option<&'static Self> {
        maybe_open(id.index())
    }

    /// Its number.
    pub fn id(&self) -> DomainId {
        self.id
    }

    /// The system that it runs on.
    pub fn kernel(&self) -> &'static dyn Kernel {
        self.kernel
    }

    /// How many coroutines have not ended.
    pub fn coroutines(&self) -> usize {
        self.coroutines.load(Ordering::Relaxed)
    }

    /// A spare block for a coroutine, by the books.
    #[inline(never)]
    pub(crate) fn admits(&self, does: &'static Does) -> Result<Spare, SpawnError> {
        let admitted = self.books.with(self.kernel, |books| {
            // Under the lock with which it is closed: as long as there is the block, it is open.
            match books.is_open {
                true => Some(books.admits(self.kernel, &self.directory, self.id, does)),
                false => None,
            }
        });
        match admitted {
            Some(Ok((header, generation))) => Ok(Spare::new(header, generation)),
            Some(Err(NoSlot::OutOfMemory(bytes))) => Err(SpawnError::OutOfMemory { bytes }),
            Some(Err(NoSlot::TooMany)) => Err(SpawnError::TooMany),
            None => Err(SpawnError::NotOpen(self.id)),
        }
    }

    /// The system's clock has ticked: those whose time has come are woken (rule 5 of [`timers`](crate::timers)).
    /// Called in its interrupt, or elsewhere, by one CPU for each domain; a system without ticks does without.
    ///
    /// **Cost.** Two loads and a store if nobody is due and nothing was kept since the last tick. Otherwise a wake of each who is
    /// due, 32 at most: further ones are left to the worker that has been woken for these; and what is kept for later
    /// is given back.
    pub fn clock_ticked(&'static self) {
        self.timers.ticks(self.kernel);
        self.has_ticks.store(true, Ordering::Relaxed);
        if self.keeps.load(Ordering::Relaxed) {
            self.trims_at_tick();
        }
    }

    /// KEEP in [`spares`](crate::spares): gives back what the books have kept since the last tick.
    #[cold]
    fn trims_at_tick(&self) {
        // Before the lock: who keeps something has it, and says so then; what comes later is said later.
        self.keeps.store(false, Ordering::Relaxed);
        self.books.with(self.kernel, |books| {
            books.trims(self.kernel, &self.directory)
        });
    }

    /// KEEP in [`spares`](crate::spares): whether what the books keep may stay until the next tick, which is
    /// told of it. If not, the caller gives it back. With the lock of the books.
    #[must_use]
    pub(crate) fn leaves_it_to_the_tick(&self) -> bool {
        let has_ticks = self.has_ticks.load(Ordering::Relaxed);
        if has_ticks {
            self.keeps.store(true, Ordering::Relaxed);
        }
        has_ticks
    }

    /// CLOCK in [`budget`](crate::budget).
    pub(crate) fn looks_at_clock(&self) {
        self.timers.looks_at_clock(self.kernel);
    }

    /// A coroutine begins.
    #[inline]
    pub(crate) fn counts_one(&self) {
        self.coroutines.fetch_add(1, Ordering::Relaxed);
    }

    /// A coroutine has ended.
    #[inline]
    pub(crate) fn forgets_one(&self) {
        self.coroutines.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sets how many workers serve the domain. With fewer than before, the last ones leave when
    /// their polls have ended; with 0 nothing runs until there are some again.
    ///
    /// # Errors
    /// Too many, or the system has not started all of them; those that it has serve. Or the domain is
    /// not open.
    pub fn alloc_cpu(&'static self, workers: usize) -> Result<(), CpuError> {
        if workers > MAX_WORKERS {
            return Err(CpuError::TooMany(workers));
        }
        let new = self.books.with(self.kernel, |books| {
            if !books.is_open {
                return None;
            }
            let wanted = ((1_u64 << workers) - 1) as u32;
            let new = wanted & !books.serving;
            books.wanted = workers;
            books.serving |= new;
            self.changes_workers();
            Some(new)
        });
        let Some(mut new) = new else {
            return Err(CpuError::NotOpen(self.id));
        };
        self.unparks_all();
        while new != 0 {
            let number = new.trailing_zeros() as usize;
            if self.kernel.start(self.id, number).is_err() {
                let serving = self.books.with(self.kernel, |books| {
                    books.serving &= !new;
                    // Others may have asked for fewer since.
                    books.wanted = books.wanted.min(number);
                    self.changes_workers();
                    books.serving.count_ones() as usize
                });
                self.unparks_all();
                return Err(CpuError::OutOfMemory {
                    wanted: workers,
                    serving,
                });
            }
            new &= new - 1;
        }
        Ok(())
    }

    /// Has all workers look who of them shall serve, and how; under the lock of the books.
    pub(crate) fn changes_workers(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.inbox.note(Notes::SHARED);
    }

    /// Has a worker call this between two polls, when asked to, and after each time that it has waited;
    /// and no worker wait for longer than it says. One that was set before is not called any more; a call
    /// that has begun may still be under way.
    pub fn set_attendant(&'static self, attendant: Option<&'static dyn Attendant>) {
        self.books
            .with(self.kernel, |books| books.attendant = attendant);
        // One that waits has not asked this one until when.
        if attendant.is_some() {
            self.unparks_one();
        }
    }

    /// Has a worker call the attendant soon; also in an interrupt.
    pub fn call_attendant(&'static self) {
        self.inbox.note(Notes::CALL);
        self.unparks_one();
    }

    /// Somebody wakes a coroutine of this domain.
    #[inline]
    pub(crate) fn wakes(&'static self, header: &Header) {
        match header.state().wake() {
            Woken::MustBeQueued => self.arrives(header),
            Woken::Already => {}
        }
    }

    /// A coroutine has become ready, and it is the caller who queues it (rule 1 of
    /// [`state`](crate::state)).
    #[inline]
    pub(crate) fn arrives(&'static self, header: &Header) {
        let level = header.effective();
        match self.alone_here() {
            Some(alone) => alone.arrives(header, level),
            None => self.arrives_by_inbox(header, level),
        }
    }

    /// Rule 4 of [`worker`](crate::worker): whether who calls is the worker that has the turn for good, and is
    /// not in an interrupt. Then the queues are its own to change, and so are the spare blocks.
    #[inline]
    pub(crate) fn alone_here(&'static self) -> Option<Alone> {
        let alone = self.alone.load(Ordering::Relaxed);
        (alone != 0 && self.kernel.me() == alone).then_some(Alone(self))
    }

    /// Queues it. In the turn.
    #[inline]
    pub(crate) fn queues(&self, ready: &Ready, header: &'static Header) {
        self.queues_at(ready, header, header.effective());
    }

    #[inline]
    fn queues_at(&self, ready: &Ready, header: &'static Header, level: usize) {
        if ready.push(header, level) {
            self.marks(level);
        }
    }

    #[inline(never)]
    fn marks(&self, level: usize) {
        self.summary.mark(self.id, Priority::new(level));
    }

    #[inline(never)]
    fn arrives_by_inbox(&'static self, header: &Header, level: usize) {
        self.inbox.push(header);
        self.marks(level);
        self.unparks_one();
    }

    /// One that waits goes on, if there is any: one at most. That of the lowest number: those that are to leave have
    /// the highest ones, and none of them goes on in place of one that stays and waits.
    #[inline]
    pub(crate) fn unparks_one(&'static self) {
        let sleepers = self.sleepers.load(Ordering::Relaxed);
        if sleepers != 0 {
            self.unparks(sleepers);
        }
    }

    /// One of these goes on, or of those that wait by now.
    pub(crate) fn unparks(&'static self, mut sleepers: u32) {
        while sleepers != 0 {
            let number = sleepers.trailing_zeros();
            let was = self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
            if was >> number & 1 != 0 {
                return self.kernel.unpark(self.id, number as usize);
            }
            sleepers = was;
        }
    }

    /// All that wait go on.
    pub(crate) fn unparks_all(&'static self) {
        let mut sleepers = self.sleepers.swap(0, Ordering::AcqRel);
        while sleepers != 0 {
            let number = sleepers.trailing_zeros();
            self.kernel.unpark(self.id, number as usize);
            sleepers &= sleepers - 1;
        }
    }

    /// A block is spare.
    ///
    /// # Safety
    /// Nobody refers to it.
    #[inline]
    pub(crate) unsafe fn gives_back(&'static self, header: NonNull<Header>) {
        // SAFETY: as promised.
        let size = unsafe { header.as_ref() }.does().size;
        match self.alone_here() {
            // SAFETY: as promised.
            Some(alone) if unsafe { alone.spares().keeps(size, header) } => {}
            // SAFETY: as promised.
            _ => unsafe { self.gives_back_by_books(header) },
        }
    }

    /// # Safety
    /// As of [`gives_back`](Self::gives_back).
    #[cold]
    unsafe fn gives_back_by_books(&self, header: NonNull<Header>) {
        // SAFETY: as promised.
        let layout = unsafe { header.as_ref() }.does().layout;
        let is_kept = self.books.with(self.kernel, |books| {
            // KEEP in `spares`. A worker that waits has given back what was kept, and says that it waits before
            // that. (One whose bit was taken back will wait again.)
            let will_trim = self.leaves_it_to_the_tick()
                || books.serving & !self.sleepers.load(Ordering::Acquire) != 0;
            // SAFETY: as promised.
            unsafe { books.takes_back(self.kernel, &self.directory, header, will_trim) }
        });
        if !is_kept {
            // SAFETY: its slot does not lead to it any more.
            let memory = unsafe { block::unmake(header) };
            // SAFETY: of `admits`, with this layout or, if it was another's before, one of the same size.
            unsafe { self.kernel.dealloc(memory.as_ptr(), layout) };
        }
    }

    /// Gives back the spare blocks of the worker that has the turn for good, which is who calls.
    pub(crate) fn clears_spares(&self) {
        // SAFETY: it is the owner that calls, and nothing that this calls comes back here.
        let spares = unsafe { &*self.spares.get() };
        if spares.count() == 0 {
            return;
        }
        for size in 0..SIZES as u8 {
            self.books.with(self.kernel, |books| {
                books.clears_of(self.kernel, spares, size)
            });
        }
    }

    /// Changes what counts for a coroutine's priority. If that changes it, it is moved, and polled,
    /// so that it passes on to whom it waits for what it has been lent.
    pub(crate) fn changes(&'static self, header: &Header, change: impl FnOnce(&Header) -> bool) {
        if self.notes_change(header, change) {
            self.moves(header);
        }
    }

    /// The first half of [`changes`](Self::changes), for who has a lock and wakes nobody before letting it
    /// go: returns whether the second half, [`moves`](Self::moves), is to be done.
    #[must_use]
    pub(crate) fn notes_change(
        &'static self,
        header: &Header,
        change: impl FnOnce(&Header) -> bool,
    ) -> bool {
        self.books
            .with(self.kernel, |books| change(header) && books.moves(header))
    }

    /// Has a worker move, and poll, one that is listed as having another priority.
    pub(crate) fn moves(&'static self, header: &Header) {
        let level = header.effective();
        self.inbox.note(Notes::MOVES);
        self.marks(level);
        self.wakes(header);
        // The wake of one that has ended meanwhile does nothing, and it is listed all the same.
        if header.has_ended() {
            self.unparks_one();
        }
    }
}

/// The worker that has the turn for good calls, not in an interrupt: the queues are its own to change, and
/// the spare blocks.
#[derive(Clone, Copy)]
pub(crate) struct Alone(&'static Domain);

impl Alone {
    #[inline]
    fn ready(self) -> &'static Ready {
        // SAFETY: it is the worker that calls, and it has the turn; `Ready` rule 4.
        unsafe { &*self.0.ready.get() }
    }

    #[inline]
    fn spares(self) -> &'static Spares {
        // SAFETY: it is the owner that calls, and nothing that they call comes back here.
        unsafe { &*self.0.spares.get() }
    }

    /// As [`Domain::arrives`], of one of this level.
    #[inline]
    pub(crate) fn arrives(self, header: &Header, level: usize) {
        if self.may_queue_at_once(level) {
            // SAFETY: QUEUE: it is for the caller to queue, and lives, as it has not ended.
            (self.0).queues_at(self.ready(), unsafe { &*ptr::from_ref(header) }, level);
        } else {
            self.0.arrives_by_inbox(header, level);
        }
    }

    /// Rule 4 of [`worker`](crate::worker), of one of this level.
    #[inline]
    fn may_queue_at_once(self, level: usize) -> bool {
        // SAFETY: it is the worker that calls, which has said where it is.
        let polling = unsafe { &*self.0.alone_worker.load(Ordering::Relaxed) };
        let polled = polling.current();
        !self.0.inbox.has_any()
            && polled.is_none_or(|polled| level >= usize::from(polled.level.get()))
    }

    /// A spare block of this size.
    #[inline]
    pub(crate) fn takes_spare(self, size: u8) -> Option<Spare> {
        let header = self.spares().takes(size)?;
        // SAFETY: a spare block is there, and its slot is taken, by this worker or by who has sent it
        // the coroutine that has had the block before.
        let slot = unsafe { self.0.directory.slot(header.as_ref().place().index()) };
        match slot.next_generation() {
            Some(generation) => Some(Spare::new(header, generation)),
            None => {
                // SAFETY: a spare one.
                unsafe { self.0.gives_back_by_books(header) };
                None
            }
        }
    }
}

/// A spare block, and the name of the coroutine that shall have it.
pub(crate) struct Spare {
    pub(crate) header: NonNull<Header>,
    pub(crate) cid: Cid,
}

impl Spare {
    #[inline]
    fn new(header: NonNull<Header>, generation: u32) -> Self {
        // SAFETY: a spare block is there.
        let place = unsafe { header.as_ref() }.place();
        Self {
            header,
            cid: Cid { place, generation },
        }
    }
}

const fn elsewhere(id: DomainId) -> [Bits; PRIORITIES] {
    let mut of = [Bits::NONE; PRIORITIES];
    let mut level = 0;
    while level < PRIORITIES {
        of[level] = Bits::elsewhere_above(id, Priority::new(level));
        level += 1;
    }
    of
}

const fn own(id: DomainId) -> [Bits; PRIORITIES + 1] {
    let mut of = [Bits::own(id); PRIORITIES + 1];
    let mut level = 0;
    while level < PRIORITIES {
        of[level] = Bits::own_above(id, Priority::new(level));
        level += 1;
    }
    of
}

/// Panics in a coroutine: for a function `this` that blocks the calling thread. A coroutine that blocks stops all
/// others of its worker; it awaits `that` instead.
///
/// # Panics
/// In a coroutine.
#[track_caller]
pub fn assert_may_block(this: &str, that: &str) {
    assert!(
        here().is_none(),
        "a coroutine awaits {that}: `{this}` would block its worker"
    );
}

/// Has the calling thread wait for a future.
///
/// # Panics
/// If no domain is open: there is nothing to wait with.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let domain = last_opened().expect("a thread waits with an open domain's kernel: none is open");
    let mut output = None;
    domain
        .kernel
        .block_on(pin!(async { output = Some(future.await) }));
    output.expect("the kernel waits until the future is done")
}
