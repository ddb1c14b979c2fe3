//! A worker drains the inbox, picks the most urgent coroutine, polls it, and parks if there is none.
//!
//! 1. The first coroutine of the most urgent level is next. Within a level, coroutines run round robin.
//! 2. Before each poll, one load tells whether another domain has more urgent work. If so, the worker yields to other
//!    tasks. If the yield has no effect, because that work runs on another CPU or the scheduler does not regard it,
//!    the worker does not look again for 16 polls.
//! 3. After 256 polls it yields in any case. While there are timers, it looks at the clock after each 32 polls
//!    ([`timers`](crate::time::timers)).
//! 4. A worker that is alone keeps the queue token ([`queue`](crate::run::queue)), and leaves a coroutine in its level
//!    during the poll. If there are several workers, each takes the token to move the first coroutine out of its level,
//!    and puts it back when it takes out the next one. So the first free worker polls the next coroutine of rule 1, and
//!    a more urgent one begins at the end of the first poll. A worker that is alone queues a coroutine at once if a
//!    poll wakes it. Three kinds go through the inbox instead: coroutines woken in an interrupt, coroutines woken while
//!    the inbox is not empty, and coroutines more urgent than the running one.
//! 5. WAIT: a worker without work sets its bit in `sleepers`, looks once more, then parks. A waker first queues its
//!    coroutine, then looks at the bits, and unparks one worker at most. Both look by read-modify-writes of the same
//!    word, so one of them sees the other. A worker that leaves ready coroutines behind unparks another. So a coroutine
//!    waits beside a parked worker only while that is unparked. There is one exception: a worker that has just been
//!    added serves once the current poll of the only worker has ended.
//! 6. A priority stays marked in the summary while its last coroutine runs, because the worker is as urgent as that.
//!    Stale marks are cleared when a level becomes empty, before parking, and after 256 polls. Then the worker looks at
//!    the inbox once more (LOOK AGAIN in [`axcoop_summary`]).

// This file is long because it has the loop of a worker, alone and beside others.

use core::ptr;
use core::task::Waker;

use axcoop_summary::{Bits, DomainId, PRIORITIES};

use crate::atomics::Ordering;
use crate::domain::{self, Domain};
use crate::error::{DomainError, Ended};
use crate::run::inbox::Notes;
use crate::run::platform::PollHook;
use crate::run::queue::{KeptQueue, KeptToken, QueueToken};
use crate::run::worker_state::WorkerState;
use crate::state::{Begun, Suspended, Woken};
use crate::task::block::{APART, Header, Polled};
use crate::task::waker::{self, Ref};
use crate::time::timers::LOOK;

/// The polls between two yields (rule 3).
const BUDGET: u32 = 256;
/// The polls after a yield without effect (rule 2).
const QUIET: u32 = 16;
/// The number of coroutines that are queued with the token at a time, where there are several workers. It bounds the
/// time with interrupts off.
const BATCH: usize = 32;

/// The mode in which a worker serves.
enum Mode {
    Alone(KeptQueue),
    /// The worker serves beside others, until [`Domain::epoch`] differs from this.
    Shared(u32),
    Leaves,
}

/// The counters of rules 2 and 3.
#[derive(Clone, Copy)]
struct Polls {
    /// The polls until the worker looks at the clock, or yields.
    left: u32,
    /// The polls after `left` until the worker yields.
    more: u32,
    /// The bits of other domains to which the worker yields, by the level that would run next.
    heeds: &'static [Bits; PRIORITIES],
}

impl Polls {
    fn new(domain: &'static Domain) -> Self {
        let mut polls = Self {
            left: 0,
            more: BUDGET,
            heeds: &domain.higher_priority_others,
        };
        polls.refill(domain);
        polls
    }

    /// Takes the polls until the next look at the clock from the rest, or all of it.
    fn refill(&mut self, domain: &Domain) {
        self.left = if domain.timers.has_any() {
            self.more.min(LOOK)
        } else {
            self.more
        };
        self.more -= self.left;
    }

    /// Returns true if the worker must look at its rules before a poll of this level.
    #[inline]
    fn must_give_way(&mut self, domain: &Domain, level: usize) -> bool {
        self.left -= 1;
        self.left == 0 || domain.summary.any(self.heeds[level % PRIORITIES])
    }
}

static HEEDS_NONE: [Bits; PRIORITIES] = [Bits::NONE; PRIORITIES];

/// Runs a domain's coroutines as its worker of this number, until fewer workers are requested. Only a task that
/// [`Platform::start`](crate::Platform::start) has started calls it. It parks with
/// [`Platform::park`](crate::Platform::park).
///
/// # Panics
/// If the domain is not open, or has not requested this worker, or the worker serves already; and in a coroutine.
pub fn serve(domain: DomainId, number: usize) {
    Server::new(domain, number).serve();
}

/// A worker that returns when it must park. It is for a system whose tasks wait by returning, as a future's `poll`
/// does. [`serve`](fn@serve) calls it and [`Platform::park`](crate::Platform::park) in a loop.
///
/// Only the task that has made the server uses it, and [runs](Self::run) it until it leaves. Between two runs that task
/// neither spawns nor wakes a coroutine of the domain: it would queue the coroutine as its worker, without unparking
/// another. If the server is dropped before it leaves, the domain has a worker that does nothing.
#[must_use = "a worker that does not run serves no coroutine"]
pub struct Server {
    domain: &'static Domain,
    number: usize,
    polls: Polls,
    /// The queue token, if this worker keeps it.
    kept: Option<KeptQueue>,
    /// The park that the next run ends, if the worker is parked.
    waits: Option<Waits>,
}

/// The result of [`Server::run`].
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// There is nothing to do. It must be run again after an [unpark](crate::Platform::unpark) since the last run, or
    /// at this time in [`Platform::now`](crate::Platform::now)'s nanoseconds. It may be run earlier.
    Waits {
        /// The time, or `None` to park until an unpark.
        until: Option<u64>,
    },
    /// It is no worker any more, and must not be run again.
    Leaves,
}

/// State carried across one park.
struct Waits {
    until: Option<u64>,
    poll_hook: Option<&'static dyn PollHook>,
}

impl Server {
    /// Makes the calling task a worker.
    ///
    /// # Panics
    /// Under the same conditions as [`serve`](fn@serve).
    pub fn new(domain: DomainId, number: usize) -> Self {
        match domain::maybe_open(domain.index()) {
            Some(domain) => Self::of(domain, number),
            None => panic!("{}", DomainError::NotOpen(domain)),
        }
    }

    fn of(domain: &'static Domain, number: usize) -> Self {
        let platform = domain.platform;
        assert!(platform.here().is_null(), "a worker serves already");
        let may_begin = domain
            .registry
            .with(platform, |registry| registry.begin_worker(number));
        // While it serves, the domain stays open, and this worker's state is its own.
        assert!(
            may_begin,
            "worker {number} of domain {} was not asked for",
            domain.id.index()
        );
        platform.set_here(ptr::from_ref(&domain.workers[number]).cast());
        Self {
            domain,
            number,
            polls: Polls::new(domain),
            kept: None,
            waits: None,
        }
    }

    /// Serves until it must park, or fewer workers are requested.
    pub fn run(&mut self) -> Served {
        let (domain, number) = (self.domain, self.number);
        let worker = &domain.workers[number];
        if let Some(waits) = self.waits.take() {
            domain.resume_after_park(number, waits);
        }
        loop {
            let kept = match &self.kept {
                Some(kept) => kept,
                None => match domain.mode(number) {
                    Mode::Alone(kept) => {
                        domain.set_owner(worker);
                        self.kept.insert(kept)
                    }
                    Mode::Shared(epoch) => {
                        match domain.run_shared(number, worker, &mut self.polls, epoch) {
                            Some(waits) => return self.park(waits),
                            None => continue,
                        }
                    }
                    Mode::Leaves => break,
                },
            };
            if let Some(waits) = kept.token().run_alone(number, worker, &mut self.polls) {
                return self.park(waits);
            }
            if let Some(kept) = self.kept.take() {
                domain.release_queue(worker, kept);
            }
        }
        domain.platform.set_here(ptr::null());
        Served::Leaves
    }

    /// Serves until it leaves.
    fn serve(&mut self) {
        while let Served::Waits { until } = self.run() {
            (self.domain.platform).park(self.domain.id, self.number, until);
        }
    }

    fn park(&mut self, waits: Waits) -> Served {
        let until = waits.until;
        self.waits = Some(waits);
        Served::Waits { until }
    }
}

impl Domain {
    /// Runs this worker on the calling thread, as [`serve`](fn@serve) does.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the tests of the library need it")]
    pub(crate) fn serve(&'static self, number: usize) {
        Server::of(self, number).serve();
    }

    fn mode(&'static self, number: usize) -> Mode {
        self.registry.with(self.platform, |registry| {
            if number >= registry.wanted {
                registry.remove_worker(number);
                self.notify_workers();
                if registry.serving == 0 {
                    // No worker will park, which would free them otherwise.
                    registry.trim(self.platform, &self.directory);
                }
                Mode::Leaves
            } else if registry.wanted == 1 && registry.serving == 1 {
                // It is worker 0.
                let kept = self.keep_queue();
                self.inbox.unnote(Notes::SHARED);
                Mode::Alone(kept)
            } else {
                // Under the lock: a later change, before it serves, changes the epoch.
                Mode::Shared(self.epoch.load(Ordering::Acquire))
            }
        })
    }

    /// Becomes the only worker, which keeps the token.
    fn set_owner(&'static self, worker: &WorkerState) {
        (self.alone_worker).store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
        self.alone.store(self.platform.me(), Ordering::Relaxed);
    }

    fn release_queue(&'static self, worker: &WorkerState, kept: KeptQueue) {
        worker.set_current(None);
        self.alone.store(0, Ordering::Relaxed);
        kept.token().clear_free_list();
        kept.release();
        self.unpark_all();
    }

    /// Looks at the clock, or yields (rules 2 and 3).
    #[cold]
    fn give_way(&'static self, polls: &mut Polls) {
        let is_quiet = ptr::eq(polls.heeds, &HEEDS_NONE);
        if polls.left != 0 {
            // Another domain has more urgent work.
            self.platform.yield_now();
            if self.is_less_urgent() {
                *polls = Polls {
                    left: QUIET,
                    more: 0,
                    heeds: &HEEDS_NONE,
                };
            }
            return;
        } else if polls.more != 0 {
            self.timers.check_clock(self.platform);
            return polls.refill(self);
        } else {
            self.timers.check_clock(self.platform);
            *polls = Polls::new(self);
            // Also after the 16 polls of rule 2: while another domain has more urgent work, the 256 polls do not end.
            if self.is_poll_hook_late() {
                self.run_poll_hook();
            }
            if is_quiet {
                polls.left -= QUIET;
                return;
            }
        }
        self.platform.yield_now();
    }

    /// Returns true if a yield had no effect (rule 2): another domain still has more urgent work than all that is here
    /// now. There may be more urgent work here than before: other tasks of this domain have run.
    fn is_less_urgent(&self) -> bool {
        let here = self.summary.of(self.id);
        here.is_some_and(|here| self.summary.any(self.higher_priority_others[here.index()]))
    }

    /// Returns the limits of a park. The worker has set its bit in `sleepers`, and has looked once more, also at the
    /// clock.
    fn park_limits(&'static self) -> Waits {
        let poll_hook = self.registry.with(self.platform, |registry| {
            if !self.defer_to_tick() {
                registry.trim(self.platform, &self.directory);
            }
            registry.poll_hook
        });
        let hook_until = poll_hook.and_then(|poll_hook| poll_hook.until());
        let until = hook_until
            .into_iter()
            .chain(self.timers.next(self.platform))
            .min();
        Waits { until, poll_hook }
    }

    /// Takes the steps that follow a park.
    fn resume_after_park(&'static self, number: usize, waits: Waits) {
        self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
        self.timers.check_clock(self.platform);
        // The hook may be another one by now, or none.
        if waits.poll_hook.is_some() {
            self.run_poll_hook();
        }
    }

    fn run_poll_hook(&'static self) {
        let poll_hook = self
            .registry
            .with(self.platform, |registry| registry.poll_hook);
        if let Some(poll_hook) = poll_hook {
            poll_hook.run(self.id);
        }
    }

    fn is_poll_hook_late(&self) -> bool {
        let poll_hook = self
            .registry
            .with(self.platform, |registry| registry.poll_hook);
        let until = poll_hook.and_then(|poll_hook| poll_hook.until());
        until.is_some_and(|until| until <= self.platform.now())
    }

    /// Handles the last poll of a coroutine that is out of the queues.
    #[must_use]
    fn finish_polled(&self, header: &'static Header, polled: Polled) -> Option<Waker> {
        let without = match polled {
            Polled::Pending => unreachable!("it has not ended"),
            Polled::Ready => None,
            Polled::Panicked => Some(Ended::Panicked),
        };
        self.finish(header, without)
    }

    /// Ends a coroutine that is out of the queues. Returns the awaiter to wake.
    #[inline]
    #[must_use]
    fn finish(&self, header: &'static Header, without: Option<Ended>) -> Option<Waker> {
        self.dec_live();
        header.state().finish();
        // SAFETY: this worker has begun the last poll (WORKER), and the future is dropped by now.
        let joiner = unsafe { header.mark_ended(without) };
        // SAFETY: the domain's reference, and it is not used any more.
        drop(unsafe { Ref::from_raw(header.into()) });
        joiner
    }

    /// Serves beside other workers. Returns how to park, or none once the epoch has changed.
    fn run_shared(
        &'static self,
        number: usize,
        worker: &WorkerState,
        polls: &mut Polls,
        epoch: u32,
    ) -> Option<Waits> {
        // The level of the last poll, and its coroutine if that must be queued again.
        let mut polled: Option<(usize, Option<&'static Header>)> = None;
        // True if this worker has set its bit in `sleepers`.
        let mut is_sleeper = false;
        loop {
            let has_more = match is_sleeper {
                true => self.inbox.has_more_synced(),
                false => self.inbox.has_more(),
            };
            if has_more {
                self.drain_inbox_shared();
            }
            let must_leave = self.epoch.load(Ordering::Acquire) != epoch;
            let step = self.with_queue(|queue| {
                if let Some((level, back)) = polled.take() {
                    queue.uncount_poll(level);
                    if let Some(header) = back {
                        queue.enqueue(header);
                    }
                }
                let level = queue.first();
                let step = if must_leave {
                    Step::Leaves
                } else if level == PRIORITIES {
                    Step::Nothing
                } else if polls.must_give_way(self, level) {
                    Step::GivesWay
                } else {
                    let header = queue.head(level);
                    queue.remove(header);
                    queue.count_poll(level);
                    Step::Polls(header, level)
                };
                let stale = self.higher_priority_self[queue.urgency()];
                let has_stale = self.summary.any(stale);
                if has_stale {
                    self.summary.clear_all(stale);
                }
                (step, queue.some() != 0, has_stale)
            });
            let (step, leaves_some, has_stale) = match step {
                Some(step) => step,
                // Rule 5: another worker keeps the token, and releases it when its poll has ended.
                None if must_leave => (Step::Leaves, false, false),
                None => (Step::Nothing, false, false),
            };
            // Rule 6.
            let must_look = has_stale && self.inbox.has_more_synced();
            if must_look {
                self.drain_inbox_shared();
            }
            if !matches!(step, Step::Nothing) {
                // Rule 5. Coroutines queued since the pick are left behind, too: a worker that was unparked for one may
                // have looked before it was queued, and park again.
                let mut leaves_some = leaves_some || must_look;
                if is_sleeper {
                    let was = self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
                    is_sleeper = false;
                    // The waker that has unparked it may have pushed something after the look.
                    leaves_some |= was >> number & 1 == 0 && self.inbox.has_more();
                }
                // Not before its own bit is cleared, or it might unpark itself.
                if leaves_some {
                    self.unpark_one();
                }
            }
            match step {
                Step::Polls(header, level) => {
                    polled = Some((level, self.poll_shared(header, worker)));
                }
                Step::GivesWay => self.give_way(polls),
                Step::Leaves => return None,
                // A worker that was unparked for a coroutine of the inbox may have looked before it was queued, and
                // park again. So this one must look once more before it parks (rule 5).
                Step::Nothing if must_look => {}
                Step::Nothing if !is_sleeper => {
                    self.sleepers.fetch_or(1 << number, Ordering::AcqRel);
                    is_sleeper = true;
                }
                Step::Nothing => {
                    // A coroutine woken by this goes through the inbox and unparks a worker, which may be this one.
                    self.timers.check_clock(self.platform);
                    return Some(self.park_limits());
                }
            }
        }
    }

    /// Polls a coroutine that is out of the queues, and returns it if it must be queued again.
    fn poll_shared(
        &'static self,
        header: &'static Header,
        worker: &WorkerState,
    ) -> Option<&'static Header> {
        worker.set_current(Some(header));
        if header.state().begin() == Begun::Cancel {
            // SAFETY: this worker has begun a poll, so the body is its own (WORKER). It is not polled again.
            unsafe { header.drop_future() };
            worker.set_current(None);
            if let Some(joiner) = self.finish(header, Some(Ended::Cancelled)) {
                joiner.wake();
            }
            return None;
        }
        // SAFETY: this worker has begun a poll, so the body is its own (WORKER).
        let polled = unsafe { waker::poll(header) };
        worker.set_current(None);
        if polled != Polled::Pending {
            if let Some(joiner) = self.finish_polled(header, polled) {
                joiner.wake();
            }
            return None;
        }
        let is_queued = header.state().is_woken() || header.state().suspend() == Suspended::Queued;
        is_queued.then_some(header)
    }

    /// Queues the coroutines of the inbox, a batch with each token.
    fn drain_inbox_shared(&'static self) {
        // A worker that keeps the token also drains the inbox. If none does, none will while this one serves.
        if self.with_queue(|_| ()).is_none() {
            return;
        }
        let arrived = self.inbox.take();
        let mut has_moves = arrived.notes.has(Notes::MOVES);
        let is_hook_requested = arrived.notes.has(Notes::CALL);
        let mut arrived = arrived.peekable();
        while has_moves || arrived.peek().is_some() {
            let queued = self.with_queue(|queue| {
                let mut batch = 0..BATCH;
                while batch.next().is_some()
                    && let Some(header) = arrived.next()
                {
                    queue.enqueue(header);
                }
                while has_moves && batch.next().is_some() {
                    has_moves = queue.move_one();
                }
            });
            assert!(queued.is_some(), "another worker keeps the queue token");
        }
        if is_hook_requested {
            self.run_poll_hook();
        }
    }
}

impl QueueToken<'_> {
    /// Moves a listed coroutine to its new level, if it is queued in another one. Returns false if the list is empty.
    fn move_one(self) -> bool {
        self.domain.registry.with(self.domain.platform, |registry| {
            registry.take_moved(self.domain.platform, |header| {
                let (from, to) = (usize::from(header.level.get()), header.effective());
                if header.level.get() != APART && from != to {
                    self.remove(header);
                    self.enqueue(header);
                }
            })
        })
    }
}

/// The steps of a worker that has the domain alone.
impl KeptToken<'_> {
    /// Serves while it is the only worker. Returns how to park, or none if it is no longer the only one.
    #[inline(never)]
    fn run_alone(self, number: usize, worker: &WorkerState, polls: &mut Polls) -> Option<Waits> {
        // A copy on this call's stack: a switch counts in it.
        let mut here = *polls;
        let waits = loop {
            if self.domain.inbox.has_any() {
                if self.domain.inbox.notes().has(Notes::SHARED) {
                    break None;
                }
                self.drain_inbox();
            }
            match self.first() {
                PRIORITIES => {
                    let waits = self.idle(number);
                    if waits.is_some() {
                        break waits;
                    }
                }
                level => self.run_level(worker, &mut here, level),
            }
        };
        *polls = here;
        waits
    }

    /// Polls the coroutines of the most urgent level until another level may be more urgent, or there is other work.
    /// More urgent coroutines arrive through the inbox. While that is empty and coroutines yield, there is nothing else
    /// to check: one pass of the loop is the whole of a switch.
    #[inline]
    fn run_level(self, worker: &WorkerState, polls: &mut Polls, level: usize) {
        let heeds = polls.heeds[level];
        let mut header = self.head(level);
        loop {
            polls.left -= 1;
            if polls.left == 0 || self.domain.summary.any(heeds) {
                return self.give_way_alone(worker, polls);
            }
            worker.set_current(Some(header));
            if header.state().begin() == Begun::Cancel {
                return self.finish_cancelled(worker, header);
            }
            // SAFETY: this worker has begun a poll, so the body is its own (WORKER).
            let polled = unsafe { waker::poll(header) };
            if polled == Polled::Pending && header.state().is_woken() {
                header = self.rotate(level, header);
                if self.domain.inbox.has_any() {
                    worker.set_current(None);
                    return;
                }
                continue;
            }
            match polled {
                Polled::Pending => self.suspend_owned(worker, header),
                Polled::Ready => self.finish_ready(worker, header),
                Polled::Panicked => self.finish_panicked(worker, header),
            }
            if self.domain.inbox.has_any() || self.first() != level {
                return;
            }
            header = self.head(level);
        }
    }

    #[cold]
    fn idle(self, number: usize) -> Option<Waits> {
        self.clear_stale_marks();
        match self.some() {
            0 => self.prepare_park(number),
            _ => None,
        }
    }

    #[cold]
    fn give_way_alone(self, worker: &WorkerState, polls: &mut Polls) {
        worker.set_current(None);
        self.clear_stale_marks();
        self.domain.give_way(polls);
    }

    #[inline(never)]
    fn finish_ready(self, worker: &WorkerState, header: &'static Header) {
        self.finish_owned(worker, header, None);
    }

    #[cold]
    fn finish_panicked(self, worker: &WorkerState, header: &'static Header) {
        self.finish_owned(worker, header, Some(Ended::Panicked));
    }

    #[cold]
    fn finish_cancelled(self, worker: &WorkerState, header: &'static Header) {
        // SAFETY: this worker has begun a poll, so the body is its own (WORKER). It is not polled again.
        unsafe { header.drop_future() };
        self.finish_owned(worker, header, Some(Ended::Cancelled));
    }

    /// Ends a coroutine. Its awaiter is queued before it leaves its level, so that the level does not become empty in
    /// between.
    #[inline(always)]
    fn finish_owned(self, worker: &WorkerState, header: &'static Header, without: Option<Ended>) {
        worker.set_current(None);
        self.domain.dec_live();
        header.state().finish();
        // SAFETY: this worker has begun the last poll (WORKER), and the future is dropped by now.
        if let Some(joiner) = unsafe { header.mark_ended(without) } {
            self.wake_joiner(joiner);
        }
        let is_empty = self.remove(header);
        // SAFETY: the domain's reference, and it is not used any more.
        drop(unsafe { Ref::from_raw(header.into()) });
        if is_empty {
            self.handle_empty_level();
        }
    }

    /// Ends a poll that was pending, without a wake so far.
    #[inline(never)]
    fn suspend_owned(self, worker: &WorkerState, header: &'static Header) {
        worker.set_current(None);
        // A coroutine that becomes idle belongs to its next waker, so it leaves its level first.
        let level = usize::from(header.level.get());
        let is_empty = self.remove(header);
        match header.state().suspend() {
            Suspended::Queued => drop(self.push(header, level)),
            Suspended::Idle if is_empty => self.handle_empty_level(),
            Suspended::Idle => {}
        }
    }

    /// Queues the awaiter of a coroutine that has ended (rule 4). No coroutine is being polled.
    #[inline(always)]
    fn wake_joiner(self, joiner: Waker) {
        let joiner = match Ref::of_waker(joiner) {
            Ok(joiner) => joiner,
            Err(joiner) => return joiner.wake(),
        };
        if joiner.place().domain() != self.domain.id.index() || self.domain.inbox.has_any() {
            return joiner.wake();
        }
        if joiner.state().wake() == Woken::MustBeQueued {
            // SAFETY: the caller must queue it (QUEUE), and it lives because it has not ended.
            self.enqueue(unsafe { joiner.as_raw().as_ref() });
        }
    }

    /// Handles an empty level. A coroutine in the inbox may belong there.
    #[inline(never)]
    fn handle_empty_level(self) {
        if self.domain.inbox.has_more() {
            self.drain_inbox();
        }
        self.clear_stale_marks();
    }

    /// Queues the coroutines of the inbox.
    fn drain_inbox(self) {
        let arrived = self.domain.inbox.take();
        let notes = arrived.notes;
        for header in arrived {
            self.enqueue(header);
        }
        if notes.has(Notes::MOVES) {
            while self.move_one() {}
        }
        if notes.has(Notes::CALL) {
            self.domain.run_poll_hook();
        }
    }

    /// Clears marks that are more urgent than anything here (rule 6).
    fn clear_stale_marks(self) {
        while self
            .domain
            .summary
            .any(self.domain.higher_priority_self[self.urgency()])
        {
            self.domain
                .summary
                .clear_all(self.domain.higher_priority_self[self.urgency()]);
            if !self.domain.inbox.has_more_synced() {
                break;
            }
            self.drain_inbox();
        }
    }

    /// Prepares a park of the only worker (rule 5). Returns how to park, or none if there is something to do after all.
    fn prepare_park(self, number: usize) -> Option<Waits> {
        self.domain.sleepers.fetch_or(1 << number, Ordering::AcqRel);
        // A coroutine woken by this is queued at once (rule 4), and does not go through the inbox.
        self.domain.timers.check_clock(self.domain.platform);
        // The note that it is no longer alone counts as well.
        if self.some() != 0 || self.domain.inbox.has_more_synced() || self.domain.inbox.has_any() {
            self.domain
                .sleepers
                .fetch_and(!(1 << number), Ordering::AcqRel);
            return None;
        }
        self.clear_free_list();
        Some(self.domain.park_limits())
    }
}

/// The next step of a worker beside others.
enum Step {
    Polls(&'static Header, usize),
    GivesWay,
    Nothing,
    Leaves,
}
