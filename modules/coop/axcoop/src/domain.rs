//! One program's executor: its parts, the lookup by its number, and how coroutines come to its queues.
//! [`worker`](crate::run::worker) says what a worker does with them.

// This file is long because it has the words that all workers of a domain share, and every access to them.

use core::cell::UnsafeCell;
use core::future::Future;
use core::pin::pin;
use core::ptr::{self, NonNull};
#[cfg(not(loom))]
use core::sync::atomic::AtomicU32 as Generation;
use core::sync::atomic::{AtomicBool as Flag, AtomicPtr as Pointer, AtomicUsize as Counter};

use axcoop_summary::{Bits, DOMAINS, DomainId, PRIORITIES, Priority, Summary};

use crate::atomics::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::error::{DomainError, SpawnError, WorkerError};
use crate::lock::Lock;
use crate::run::inbox::{Inbox, Notes};
use crate::run::platform::{MAX_WORKERS, Platform, PollHook};
use crate::run::queue::{KeptToken, QueueLock, QueueToken};
use crate::run::ready::Ready;
use crate::run::worker_state::WorkerState;

use crate::state::Woken;
use crate::task::block::{self, Header, SIZES, Vtable};
use crate::task::free_list::FreeList;
use crate::task::id::CoroutineId;
use crate::task::registry::Registry;
use crate::task::table::{Directory, NoSlot};
use crate::time::timers::Timers;

/// One program's coroutines, and the workers that run them.
///
/// A domain is a static, or leaked. It must be [opened](Self::open) before anything is spawned.
pub struct Domain {
    pub(crate) id: DomainId,
    pub(crate) summary: &'static Summary,
    pub(crate) platform: &'static dyn Platform,
    /// The bits of more urgent work in other domains, and in this one, by the level that would run next.
    pub(crate) higher_priority_others: [Bits; PRIORITIES],
    pub(crate) higher_priority_self: [Bits; PRIORITIES + 1],
    /// Coroutines that were woken from outside.
    pub(crate) inbox: Inbox,
    /// Workers that are parked or about to park (bit mask): WAIT in [`worker`](crate::run::worker).
    pub(crate) sleepers: AtomicU32,
    /// Counts the changes of the workers that are requested and that serve.
    pub(crate) epoch: AtomicU32,
    /// The queue token.
    pub(crate) queue_lock: QueueLock,
    /// The [task](Platform::me) of the worker that keeps the token, or 0, and that worker. Only that task writes them,
    /// and only it reads the second.
    pub(crate) alone: AtomicUsize,
    pub(crate) alone_worker: AtomicPtr<WorkerState>,
    /// The ready queues. They belong to the holder of the token.
    pub(crate) ready: UnsafeCell<Ready>,
    /// The spare blocks of the worker that keeps the token. Without such a worker it is empty.
    pub(crate) free_list: UnsafeCell<FreeList>,
    /// The number of coroutines that have not ended.
    coroutines: Counter,
    pub(crate) directory: Directory,
    pub(crate) registry: Lock<Registry>,
    /// True once the system's clock has ticked, which means that it will tick again: KEEP in
    /// [`free_list`](crate::task::free_list).
    has_ticks: Flag,
    /// True if the registry may keep memory that the next tick has to free.
    may_keep: Flag,
    /// The timers of the domain's sleeping coroutines.
    pub(crate) timers: Timers,
    pub(crate) workers: [WorkerState; MAX_WORKERS],
}

// SAFETY: `ready` and `free_list` belong to the holder of the token. All else is atomic or locked.
unsafe impl Sync for Domain {}

/// The open domains, by their numbers.
///
/// CLOSE: the lock of its registry decides whether a domain is open. [`Domain::close`] reads and clears
/// [`Registry::is_open`] in one step, so one call closes a domain, and only that call frees the number.
#[cfg(not(loom))]
static OPEN: [Pointer<Domain>; DOMAINS] = [const { Pointer::new(ptr::null_mut()) }; DOMAINS];

/// The first generation for the next domain opened with each number, so that a [`CoroutineId`] is never used again.
#[cfg(not(loom))]
static LATER: [Generation; DOMAINS] = [const { Generation::new(0) }; DOMAINS];

// One for each execution of loom.
#[cfg(loom)]
loom::lazy_static! {
    static ref OPEN: [AtomicPtr<Domain>; DOMAINS] =
        core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
    static ref LATER: [AtomicU32; DOMAINS] = core::array::from_fn(|_| AtomicU32::new(0));
}

/// The domain that was opened last, even if it is closed since: domains and their system are `'static`.
static LAST: Pointer<Domain> = Pointer::new(ptr::null_mut());

/// Returns the domain of an existing coroutine.
#[inline]
pub(crate) fn open(domain: usize) -> &'static Domain {
    let domain = OPEN[domain % DOMAINS].load(Ordering::Relaxed);
    debug_assert!(!domain.is_null());
    // SAFETY: a domain stays open while it has blocks.
    unsafe { &*domain }
}

pub(crate) fn maybe_open(domain: usize) -> Option<&'static Domain> {
    // SAFETY: null, or a domain, which is static.
    unsafe { OPEN[domain].load(Ordering::Acquire).as_ref() }
}

/// Returns the domain that was opened last if it is open, or else any open one. All domains have the same system, to
/// which this leads where no domain is known.
pub(crate) fn last_opened() -> Option<&'static Domain> {
    let last = LAST.load(Ordering::Acquire).cast_const();
    let mut open = (0..DOMAINS).filter_map(maybe_open);
    let by_number = open.clone().find(|&domain| ptr::eq(domain, last));
    by_number.or_else(|| open.next())
}

/// Returns the system, if any domain has ever been opened.
#[inline]
pub(crate) fn system() -> Option<&'static dyn Platform> {
    // SAFETY: null, or a domain, which is static.
    let domain = unsafe { LAST.load(Ordering::Acquire).as_ref() };
    domain.map(|domain| domain.platform)
}

/// Returns the domain of the calling coroutine.
pub(crate) fn of_current() -> Option<&'static Domain> {
    current_header().map(|header| open(header.place().domain()))
}

/// Returns the calling coroutine, which stays valid until its poll ends.
#[inline]
pub(crate) fn current_header<'a>() -> Option<&'a Header> {
    here()?.current()
}

/// Returns the calling worker.
#[inline]
pub(crate) fn here() -> Option<&'static WorkerState> {
    worker_here(system()?)
}

/// Returns the calling worker of this system.
#[inline]
fn worker_here(platform: &dyn Platform) -> Option<&'static WorkerState> {
    // SAFETY: only workers set it, to themselves, and take it back when they leave.
    unsafe { platform.here().cast::<WorkerState>().as_ref() }
}

impl Domain {
    /// Makes a domain of this number, which marks its ready priorities in `summary` and runs on `platform`.
    #[cfg(not(loom))]
    pub const fn new(
        id: DomainId,
        summary: &'static Summary,
        platform: &'static dyn Platform,
    ) -> Self {
        Self {
            id,
            summary,
            platform,
            higher_priority_others: higher_priority_others(id),
            higher_priority_self: higher_priority_self(id),
            inbox: Inbox::new(),
            sleepers: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            queue_lock: QueueLock::new(),
            alone: AtomicUsize::new(0),
            alone_worker: AtomicPtr::new(ptr::null_mut()),
            ready: UnsafeCell::new(Ready::new()),
            free_list: UnsafeCell::new(FreeList::new()),
            coroutines: Counter::new(0),
            directory: Directory::new(),
            registry: Lock::new(Registry::new()),
            has_ticks: Flag::new(false),
            may_keep: Flag::new(false),
            timers: Timers::new(),
            workers: [const { WorkerState::new() }; MAX_WORKERS],
        }
    }

    /// Makes a domain, as in the other builds.
    #[cfg(loom)]
    pub fn new(id: DomainId, summary: &'static Summary, platform: &'static dyn Platform) -> Self {
        Self {
            id,
            summary,
            platform,
            higher_priority_others: higher_priority_others(id),
            higher_priority_self: higher_priority_self(id),
            inbox: Inbox::new(),
            sleepers: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            queue_lock: QueueLock::new(),
            alone: AtomicUsize::new(0),
            alone_worker: AtomicPtr::new(ptr::null_mut()),
            ready: UnsafeCell::new(Ready::new()),
            free_list: UnsafeCell::new(FreeList::new()),
            coroutines: Counter::new(0),
            directory: Directory::new(),
            registry: Lock::new(Registry::new()),
            has_ticks: Flag::new(false),
            may_keep: Flag::new(false),
            timers: Timers::new(),
            workers: [const { WorkerState::new() }; MAX_WORKERS],
        }
    }

    /// Makes the domain known by its number. No worker serves it yet: [`set_workers`](Self::set_workers).
    ///
    /// # Errors
    /// [`DomainError::Taken`] if another domain of this number is open.
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
                self.registry
                    .with(self.platform, |registry| registry.open(later));
                Ok(())
            }
            Err(_) => Err(DomainError::Taken(self.id)),
        }
    }

    /// Frees the memory and the number of the domain.
    ///
    /// # Errors
    /// [`DomainError::InUse`] if there is a coroutine, a handle, a waker, a timer or a worker left, and
    /// [`DomainError::NotOpen`].
    pub fn close(&'static self) -> Result<(), DomainError> {
        let later = self.registry.with(self.platform, |registry| {
            // CLOSE.
            if !registry.is_open {
                return Err(DomainError::NotOpen(self.id));
            }
            registry.forget_gone(self.platform);
            // SAFETY: any thread may read the count.
            let free_list = unsafe { &*self.free_list.get() }.count();
            let blocks = registry.blocks().saturating_sub(free_list);
            let timers = self.timers.count(self.platform);
            if blocks != 0 || registry.serving != 0 || timers != 0 {
                return Err(DomainError::InUse {
                    coroutines: blocks.max(timers),
                    workers: registry.serving.count_ones() as usize,
                });
            }
            Ok(registry.close(self.platform, &self.directory))
        })?;
        // The call that opens the next domain sees these writes, because it sees that the number is free.
        LATER[self.id.index()].store(later, Ordering::Relaxed);
        self.summary.clear_all(Bits::own(self.id));
        OPEN[self.id.index()].store(ptr::null_mut(), Ordering::Release);
        Ok(())
    }

    /// Frees the number in any case, after a test that has failed.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the tests of the library need it")]
    pub(crate) fn abandon(&self) {
        OPEN[self.id.index()].store(ptr::null_mut(), Ordering::Release);
    }

    /// Returns the open domain of this number.
    pub fn of(id: DomainId) -> Option<&'static Self> {
        maybe_open(id.index())
    }

    /// Returns the number of the domain.
    pub fn id(&self) -> DomainId {
        self.id
    }

    /// Returns the system that it runs on.
    pub fn platform(&self) -> &'static dyn Platform {
        self.platform
    }

    /// Returns the number of coroutines that have not ended.
    pub fn coroutines(&self) -> usize {
        self.coroutines.load(Ordering::Relaxed)
    }

    /// Takes a spare block for a coroutine from the registry.
    #[inline(never)]
    pub(crate) fn take_block(&self, vtable: &'static Vtable) -> Result<Spare, SpawnError> {
        let admitted = self.registry.with(self.platform, |registry| {
            // Under the lock with which it is closed: while the block exists, the domain is open.
            match registry.is_open {
                true => Some(registry.take_block(self.platform, &self.directory, self.id, vtable)),
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

    /// Wakes the sleepers whose time has come (rule 5 of `timers`). The system calls it at each tick
    /// of its clock, in the interrupt or elsewhere, from one CPU for each domain. A system without ticks does not
    /// call it.
    ///
    /// **Cost.** Two loads and a store if no timer is due and nothing was kept since the last tick. Otherwise a wake
    /// for each due timer, 32 at most, and the memory kept for later is freed. A woken worker handles further timers.
    pub fn clock_ticked(&'static self) {
        self.timers.handle_tick(self.platform);
        self.has_ticks.store(true, Ordering::Relaxed);
        if self.may_keep.load(Ordering::Relaxed) {
            self.trim_at_tick();
        }
    }

    /// Frees what the registry has kept since the last tick (KEEP in [`free_list`](crate::task::free_list)).
    #[cold]
    fn trim_at_tick(&self) {
        // Before the lock is taken: a block kept under the lock sets the flag there, and one kept later sets it
        // again.
        self.may_keep.store(false, Ordering::Relaxed);
        self.registry.with(self.platform, |registry| {
            registry.trim(self.platform, &self.directory)
        });
    }

    /// Returns true if kept blocks may stay until the next tick, which is told of them (KEEP in
    /// [`free_list`](crate::task::free_list)). If not, the caller frees them. The caller holds the registry's lock.
    #[must_use]
    pub(crate) fn defer_to_tick(&self) -> bool {
        let has_ticks = self.has_ticks.load(Ordering::Relaxed);
        if has_ticks {
            self.may_keep.store(true, Ordering::Relaxed);
        }
        has_ticks
    }

    /// Wakes the coroutines whose timers are due (CLOCK in [`budget`](crate::run::budget)).
    pub(crate) fn check_clock(&self) {
        self.timers.check_clock(self.platform);
    }

    /// Counts a coroutine that begins.
    #[inline]
    pub(crate) fn inc_live(&self) {
        self.coroutines.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a coroutine that has ended.
    #[inline]
    pub(crate) fn dec_live(&self) {
        self.coroutines.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sets the number of workers that serve the domain. If there are fewer than before, the last ones leave when their
    /// polls have ended. With 0 nothing runs.
    ///
    /// # Errors
    /// If there are too many, the domain is not open, or the system could not start all of them. Those that it has
    /// started serve.
    pub fn set_workers(&'static self, workers: usize) -> Result<(), WorkerError> {
        if workers > MAX_WORKERS {
            return Err(WorkerError::TooMany(workers));
        }
        let new = self.registry.with(self.platform, |registry| {
            if !registry.is_open {
                return None;
            }
            let wanted = ((1_u64 << workers) - 1) as u32;
            let new = wanted & !registry.serving;
            registry.wanted = workers;
            registry.serving |= new;
            self.notify_workers();
            Some(new)
        });
        let Some(mut new) = new else {
            return Err(WorkerError::NotOpen(self.id));
        };
        self.unpark_all();
        while new != 0 {
            let number = new.trailing_zeros() as usize;
            if self.platform.start(self.id, number).is_err() {
                let serving = self.registry.with(self.platform, |registry| {
                    registry.serving &= !new;
                    // Fewer may have been requested since.
                    registry.wanted = registry.wanted.min(number);
                    self.notify_workers();
                    registry.serving.count_ones() as usize
                });
                self.unpark_all();
                return Err(WorkerError::OutOfMemory {
                    wanted: workers,
                    serving,
                });
            }
            new &= new - 1;
        }
        Ok(())
    }

    /// Makes all workers check whether and how they serve. The caller holds the registry's lock.
    pub(crate) fn notify_workers(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.inbox.note(Notes::SHARED);
    }

    /// Sets a hook that a worker calls between two polls when requested, and after each park, and that bounds the
    /// time of a park. The hook set before is not called any more; a call that has begun may still be under way.
    pub fn set_poll_hook(&'static self, poll_hook: Option<&'static dyn PollHook>) {
        self.registry
            .with(self.platform, |registry| registry.poll_hook = poll_hook);
        // A parked worker does not know the limit of this one.
        if poll_hook.is_some() {
            self.unpark_one();
        }
    }

    /// Makes a worker call the poll hook soon. May be called in an interrupt.
    pub fn request_poll_hook(&'static self) {
        self.inbox.note(Notes::CALL);
        self.unpark_one();
    }

    /// Wakes a coroutine of this domain.
    #[inline]
    pub(crate) fn wake(&'static self, header: &Header) {
        match header.state().wake() {
            Woken::MustBeQueued => self.enqueue(header),
            Woken::Already => {}
        }
    }

    /// Queues a coroutine that has become ready, which the caller must do (rule 1 of [`state`](crate::state)).
    #[inline]
    pub(crate) fn enqueue(&'static self, header: &Header) {
        let level = header.effective();
        match self.local_queue() {
            Some(alone) => alone.enqueue(header, level),
            None => self.enqueue_remote(header, level),
        }
    }

    /// Returns the right to change the queues and the spare blocks, if the caller is the worker that keeps the token,
    /// outside an interrupt (rule 4 of [`worker`](crate::run::worker)).
    #[inline]
    pub(crate) fn local_queue(&'static self) -> Option<LocalQueue> {
        let alone = self.alone.load(Ordering::Relaxed);
        (alone != 0 && self.platform.me() == alone).then_some(LocalQueue(self))
    }

    #[inline(never)]
    fn mark_ready(&self, level: usize) {
        self.summary.mark(self.id, Priority::new(level));
    }

    #[inline(never)]
    fn enqueue_remote(&'static self, header: &Header, level: usize) {
        self.inbox.push(header);
        self.mark_ready(level);
        self.unpark_one();
    }

    /// Unparks the parked worker with the lowest number, if any is parked. Workers that must leave have the highest
    /// numbers, so none of them is unparked in place of one that stays.
    #[inline]
    pub(crate) fn unpark_one(&'static self) {
        let sleepers = self.sleepers.load(Ordering::Relaxed);
        if sleepers != 0 {
            self.unpark_one_of(sleepers);
        }
    }

    /// Unparks one of these workers, or of those that are parked by now.
    pub(crate) fn unpark_one_of(&'static self, mut sleepers: u32) {
        while sleepers != 0 {
            let number = sleepers.trailing_zeros();
            let was = self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
            if was >> number & 1 != 0 {
                return self.platform.unpark(self.id, number as usize);
            }
            sleepers = was;
        }
    }

    /// Unparks all workers.
    pub(crate) fn unpark_all(&'static self) {
        let mut sleepers = self.sleepers.swap(0, Ordering::AcqRel);
        while sleepers != 0 {
            let number = sleepers.trailing_zeros();
            self.platform.unpark(self.id, number as usize);
            sleepers &= sleepers - 1;
        }
    }

    /// Takes back a block without references.
    ///
    /// # Safety
    /// There is no reference to it.
    #[inline]
    pub(crate) unsafe fn return_block(&'static self, header: NonNull<Header>) {
        // SAFETY: as promised.
        let size = unsafe { header.as_ref() }.vtable().size;
        match self.local_queue() {
            // SAFETY: as promised.
            Some(alone) if unsafe { alone.free_list().keep(size, header) } => {}
            // SAFETY: as promised.
            _ => unsafe { self.return_block_locked(header) },
        }
    }

    /// # Safety
    /// As for [`return_block`](Self::return_block).
    #[cold]
    unsafe fn return_block_locked(&self, header: NonNull<Header>) {
        // SAFETY: as promised.
        let layout = unsafe { header.as_ref() }.vtable().layout;
        let is_kept = self.registry.with(self.platform, |registry| {
            // KEEP in `free_list`. A parked worker has freed what was kept, and has set its bit before. A worker whose
            // bit was cleared will park again.
            let will_trim = self.defer_to_tick()
                || registry.serving & !self.sleepers.load(Ordering::Acquire) != 0;
            // SAFETY: as promised.
            unsafe { registry.return_block(self.platform, &self.directory, header, will_trim) }
        });
        if !is_kept {
            // SAFETY: its slot does not lead to it any more.
            let memory = unsafe { block::unmake(header) };
            // SAFETY: it comes from `take_block`, with this layout or one of the same size class.
            unsafe { self.platform.dealloc(memory.as_ptr(), layout) };
        }
    }

    /// Changes the parts of a coroutine's priority. If the effective one changes, the coroutine is moved and polled,
    /// so that it passes a donation on to what it waits for.
    pub(crate) fn change_priority(
        &'static self,
        header: &Header,
        change: impl FnOnce(&Header) -> bool,
    ) {
        if self.record_change(header, change) {
            self.request_move(header);
        }
    }

    /// Does the first half of [`change_priority`](Self::change_priority), for a caller with a lock that wakes nothing
    /// before it lets go. Returns true if the second half, [`request_move`](Self::request_move), must be called.
    #[must_use]
    pub(crate) fn record_change(
        &'static self,
        header: &Header,
        change: impl FnOnce(&Header) -> bool,
    ) -> bool {
        self.registry.with(self.platform, |registry| {
            change(header) && registry.list_moved(header)
        })
    }

    /// Makes a worker move, and poll, a coroutine that is listed with a new priority.
    pub(crate) fn request_move(&'static self, header: &Header) {
        let level = header.effective();
        self.inbox.note(Notes::MOVES);
        self.mark_ready(level);
        self.wake(header);
        // A coroutine that has ended meanwhile is still listed, and its wake does nothing.
        if header.has_ended() {
            self.unpark_one();
        }
    }
}

impl QueueToken<'_> {
    /// Queues a coroutine.
    #[inline]
    pub(crate) fn enqueue(self, header: &'static Header) {
        self.enqueue_at(header, header.effective());
    }

    #[inline]
    fn enqueue_at(self, header: &'static Header, level: usize) {
        if self.push(header, level) {
            self.domain.mark_ready(level);
        }
    }
}

impl KeptToken<'_> {
    /// Frees the spare blocks of this worker.
    pub(crate) fn clear_free_list(self) {
        let domain = self.domain;
        // SAFETY: the owner calls, and nothing called from here comes back here.
        let free_list = unsafe { &*domain.free_list.get() };
        if free_list.count() == 0 {
            return;
        }
        for size in 0..SIZES as u8 {
            domain.registry.with(domain.platform, |registry| {
                registry.clear_list(domain.platform, free_list, size)
            });
        }
    }
}

/// The right of the worker that keeps the token, outside an interrupt, to change the queues and the spare blocks.
#[derive(Clone, Copy)]
pub(crate) struct LocalQueue(&'static Domain);

impl LocalQueue {
    #[inline]
    fn queue(self) -> QueueToken<'static> {
        // SAFETY: the worker calls, and it holds the token.
        unsafe { QueueToken::of(self.0) }
    }

    #[inline]
    fn free_list(self) -> &'static FreeList {
        // SAFETY: the owner calls, and nothing called from there comes back here.
        unsafe { &*self.0.free_list.get() }
    }

    /// Does what [`Domain::enqueue`] does, for a coroutine of this level.
    #[inline]
    pub(crate) fn enqueue(self, header: &Header, level: usize) {
        if self.may_queue_at_once(level) {
            // SAFETY: the caller must queue it (QUEUE), and it lives because it has not ended.
            (self.queue()).enqueue_at(unsafe { &*ptr::from_ref(header) }, level);
        } else {
            self.0.enqueue_remote(header, level);
        }
    }

    /// Returns true if a coroutine of this level may be queued at once (rule 4 of [`worker`](crate::run::worker)).
    #[inline]
    fn may_queue_at_once(self, level: usize) -> bool {
        // SAFETY: the worker calls, and has stored its address.
        let polling = unsafe { &*self.0.alone_worker.load(Ordering::Relaxed) };
        let polled = polling.current();
        !self.0.inbox.has_any()
            && polled.is_none_or(|polled| level >= usize::from(polled.level.get()))
    }

    /// Takes a spare block of this size class.
    #[inline]
    pub(crate) fn take_spare(self, size: u8) -> Option<Spare> {
        let header = self.free_list().take(size)?;
        // SAFETY: a spare block exists, and its slot was taken by this worker or by the sender of the block's last
        // coroutine.
        let slot = unsafe { self.0.directory.slot(header.as_ref().place().index()) };
        match slot.next_generation() {
            Some(generation) => Some(Spare::new(header, generation)),
            None => {
                // SAFETY: a spare block has no references.
                unsafe { self.0.return_block_locked(header) };
                None
            }
        }
    }
}

/// A spare block, and the name of its next coroutine.
pub(crate) struct Spare {
    pub(crate) header: NonNull<Header>,
    pub(crate) cid: CoroutineId,
}

impl Spare {
    #[inline]
    fn new(header: NonNull<Header>, generation: u32) -> Self {
        // SAFETY: a spare block is there.
        let place = unsafe { header.as_ref() }.place();
        Self {
            header,
            cid: CoroutineId { place, generation },
        }
    }
}

const fn higher_priority_others(id: DomainId) -> [Bits; PRIORITIES] {
    let mut of = [Bits::NONE; PRIORITIES];
    let mut level = 0;
    while level < PRIORITIES {
        of[level] = Bits::elsewhere_above(id, Priority::new(level));
        level += 1;
    }
    of
}

const fn higher_priority_self(id: DomainId) -> [Bits; PRIORITIES + 1] {
    let mut of = [Bits::own(id); PRIORITIES + 1];
    let mut level = 0;
    while level < PRIORITIES {
        of[level] = Bits::own_above(id, Priority::new(level));
        level += 1;
    }
    of
}

/// Panics in a coroutine. A function `this` that blocks the calling thread calls it first: in a coroutine it would
/// block the worker, and the coroutine has to await `that` instead.
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

/// Blocks the calling thread until a future is ready, and returns its output.
///
/// # Panics
/// If no domain is open: there is no system to wait with.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let domain =
        last_opened().expect("a thread waits with an open domain's platform: none is open");
    let mut output = None;
    domain
        .platform
        .block_on(pin!(async { output = Some(future.await) }));
    output.expect("the platform waits until the future is done")
}
