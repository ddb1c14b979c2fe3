//! What a worker does: it takes in what has arrived, picks the most urgent, polls it, and waits if
//! there is nothing.
//!
//! 1. The first of the most urgent level is next. Of one level all have their turn before any has
//!    another.
//! 2. Before each poll, one load tells whether another domain has something more urgent; if so, the
//!    worker gives way to other tasks. If that is in vain, as what is more urgent runs on another CPU
//!    or the scheduler does not care, it does not ask again for 16 polls.
//! 3. After 256 polls it gives way in any case. While there are timers, it looks at the clock after
//!    each 32 of them ([`timers`](crate::timers)).
//! 4. A worker that is alone has the turn for good ([`turn`](crate::turn)), and leaves a coroutine
//!    in its level while it polls it. With several, each takes the first one out in its turn, and puts it
//!    back in the turn in which it takes out the next. So they are served in the order of rule 1 by
//!    whoever is free first; one that is more urgent than what runs is begun when the first poll ends.
//!    What an alone worker itself wakes, in a poll, it puts where it belongs at once; not in an
//!    interrupt that has hit it, nor if something came before by the inbox, nor if it is more urgent than
//!    what is polled: that the worker has to notice, for which it looks at the inbox.
//! 5. WAIT: a worker without work says so (`sleepers`), then looks once more, then waits. Who
//!    brings something brings it first, then looks whether one waits, and has at most one go on. Both
//!    look by read-modify-writes of the same word, so one of them sees the other. A worker that leaves
//!    something behind has another go on, so nobody waits while something is ready but for the time that
//!    takes, and, after a second worker has been asked for, until the first poll of the first has ended.
//! 6. A priority stays marked in the summary while the last coroutine of it runs: its worker is as
//!    urgent as that. What is marked and not there is cleared when a level becomes empty, before
//!    waiting, and after 256 polls, and then looked for once more (LOOK AGAIN in
//!    [`axcoop_summary`]).

use core::ptr;
use core::task::Waker;

use axcoop_summary::{Bits, DomainId, PRIORITIES};

use crate::block::{APART, Header, Polled};
use crate::domain::{self, Domain};
use crate::error::{DomainError, Ended};
use crate::inbox::Notes;
use crate::kernel::Attendant;
use crate::polling::Polling;
use crate::ready::Ready;
use crate::state::{Begun, Suspended, Woken};
use crate::sync::Ordering;
use crate::timers::LOOK;
use crate::waker::{self, Ref};

/// Rule 3.
const BUDGET: u32 = 256;
/// Rule 2.
const QUIET: u32 = 16;
/// How many are queued in one turn where there are several workers: what bounds the time with
/// interrupts off.
const BATCH: usize = 32;

/// How a worker serves.
enum Mode {
    Alone,
    /// Until this is another number: [`Domain::epoch`].
    Shared(u32),
    Leaves,
}

/// Rules 2 and 3.
#[derive(Clone, Copy)]
struct Polls {
    /// Until it looks at the clock, or gives way.
    left: u32,
    /// Until it gives way, after those.
    more: u32,
    /// Bits of other domains that it gives way to, by the level of what would run.
    heeds: &'static [Bits; PRIORITIES],
}

impl Polls {
    fn new(domain: &'static Domain) -> Self {
        let mut polls = Self {
            left: 0,
            more: BUDGET,
            heeds: &domain.elsewhere,
        };
        polls.goes_on(domain);
        polls
    }

    /// Some of what is left of the budget, or all of it.
    fn goes_on(&mut self, domain: &Domain) {
        self.left = if domain.timers.has_any() {
            self.more.min(LOOK)
        } else {
            self.more
        };
        self.more -= self.left;
    }

    /// Whether to give way before a poll of this level.
    #[inline]
    fn must_give_way(&mut self, domain: &Domain, level: usize) -> bool {
        self.left -= 1;
        self.left == 0 || domain.summary.any(self.heeds[level % PRIORITIES])
    }
}

static HEEDS_NOBODY: [Bits; PRIORITIES] = [Bits::NONE; PRIORITIES];

/// Runs a domain's coroutines as its worker of this number, until there shall be fewer.
/// Called by the task that [`Kernel::start`](crate::Kernel::start) has started, and by nobody else. That waits in
/// [`Kernel::park`](crate::Kernel::park).
///
/// # Panics
/// If the domain is not open, or has not asked for this worker, or the worker serves already; and in a
/// coroutine.
pub fn serve(domain: DomainId, number: usize) {
    Server::new(domain, number).serves();
}

/// A worker that serves from one wait to the next: for a system whose tasks wait by returning, as `poll`
/// does, and so need nothing anew for each wait. [`serve`](fn@serve) is this and
/// [`Kernel::park`](crate::Kernel::park).
///
/// It is all used by the task that has made it, which [runs](Self::run) it until it leaves, and neither spawns nor
/// wakes a coroutine of the domain between two runs: what its worker does is queued without telling anybody. One that
/// is dropped before leaves its domain with a worker that does nothing.
#[must_use = "a worker that does not run serves nobody"]
pub struct Server {
    domain: &'static Domain,
    number: usize,
    polls: Polls,
    /// It has the turn for good.
    is_alone: bool,
    /// It waits, and this has to be done when it goes on.
    waits: Option<Waits>,
}

/// What [`Server::run`] has come to.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// There is nothing to do: it is to be run again when it was [unparked](crate::Kernel::unpark) since
    /// the last run, or when this time in [`Kernel::now`](crate::Kernel::now)'s nanoseconds has come. It may be
    /// run earlier.
    Waits {
        /// None is never.
        until: Option<u64>,
    },
    /// It is no worker any more, and not to be run again.
    Leaves,
}

/// Of one wait.
struct Waits {
    until: Option<u64>,
    attendant: Option<&'static dyn Attendant>,
}

impl Server {
    /// Makes a worker of the calling task.
    ///
    /// # Panics
    /// As [`serve`](fn@serve).
    pub fn new(domain: DomainId, number: usize) -> Self {
        match domain::maybe_open(domain.index()) {
            Some(domain) => Self::of(domain, number),
            None => panic!("{}", DomainError::NotOpen(domain)),
        }
    }

    fn of(domain: &'static Domain, number: usize) -> Self {
        let kernel = domain.kernel;
        assert!(kernel.here().is_null(), "a worker serves already");
        let may_begin = domain.books.with(kernel, |books| books.begins(number));
        // As long as it serves the domain stays open, and what is this worker's is no other's.
        assert!(
            may_begin,
            "worker {number} of domain {} was not asked for",
            domain.id.index()
        );
        kernel.set_here(ptr::from_ref(&domain.workers[number]).cast());
        Self {
            domain,
            number,
            polls: Polls::new(domain),
            is_alone: false,
            waits: None,
        }
    }

    /// Serves until there is nothing to do, or there shall be fewer workers.
    pub fn run(&mut self) -> Served {
        let (domain, number) = (self.domain, self.number);
        let worker = &domain.workers[number];
        if let Some(waits) = self.waits.take() {
            domain.has_waited(number, waits);
        }
        loop {
            if !self.is_alone {
                match domain.mode(number) {
                    Mode::Alone => {
                        domain.begins_alone(worker);
                        self.is_alone = true;
                    }
                    Mode::Shared(epoch) => {
                        match domain.shared(number, worker, &mut self.polls, epoch) {
                            Some(waits) => return self.waits(waits),
                            None => continue,
                        }
                    }
                    Mode::Leaves => break,
                }
            }
            match domain.alone(number, worker, &mut self.polls) {
                Some(waits) => return self.waits(waits),
                None => domain.ends_being_alone(worker),
            }
            self.is_alone = false;
        }
        domain.kernel.set_here(ptr::null());
        Served::Leaves
    }

    /// Until it leaves.
    fn serves(&mut self) {
        while let Served::Waits { until } = self.run() {
            (self.domain.kernel).park(self.domain.id, self.number, until);
        }
    }

    fn waits(&mut self, waits: Waits) -> Served {
        let until = waits.until;
        self.waits = Some(waits);
        Served::Waits { until }
    }
}

impl Domain {
    /// As [`serve`](fn@serve).
    #[cfg(test)]
    #[allow(dead_code, reason = "only the tests of the library need it")]
    pub(crate) fn serve(&'static self, number: usize) {
        Server::of(self, number).serves();
    }

    fn mode(&'static self, number: usize) -> Mode {
        self.books.with(self.kernel, |books| {
            if number >= books.wanted {
                books.leaves(number);
                self.changes_workers();
                if books.serving == 0 {
                    // Nobody will wait, which is when it is given back otherwise.
                    books.trims(self.kernel, &self.directory);
                }
                Mode::Leaves
            } else if books.wanted == 1 && books.serving == 1 {
                // It is number 0.
                self.turn.takes_for_good();
                self.inbox.unnote(Notes::SHARED);
                Mode::Alone
            } else {
                // With the lock: what changes afterwards, before it serves, is another epoch.
                Mode::Shared(self.epoch.load(Ordering::Acquire))
            }
        })
    }

    /// It is the only worker, and has the turn for good.
    fn begins_alone(&'static self, worker: &Polling) {
        (self.alone_worker).store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
        self.alone.store(self.kernel.me(), Ordering::Relaxed);
    }

    /// Serves while it is the only worker: between [`begins_alone`](Self::begins_alone) and
    /// [`ends_being_alone`](Self::ends_being_alone). Returns how it has to wait; none if it is not the only one any
    /// more.
    #[inline(never)]
    fn alone(&'static self, number: usize, worker: &Polling, polls: &mut Polls) -> Option<Waits> {
        // SAFETY: it has the turn, until `ends_being_alone`.
        let ready = unsafe { &*self.ready.get() };
        // A copy of its own, which is on this call's stack: a switch counts in it.
        let mut here = *polls;
        let waits = loop {
            if self.inbox.has_any() {
                if self.inbox.notes().has(Notes::SHARED) {
                    break None;
                }
                self.takes_in(ready);
            }
            match ready.first() {
                PRIORITIES => {
                    let waits = self.idles(number, ready);
                    if waits.is_some() {
                        break waits;
                    }
                }
                level => self.runs(worker, ready, &mut here, level),
            }
        };
        *polls = here;
        waits
    }

    fn ends_being_alone(&'static self, worker: &Polling) {
        worker.polls(None);
        self.alone.store(0, Ordering::Relaxed);
        self.clears_spares();
        self.turn.gives_up();
        self.unparks_all();
    }

    /// Polls who is in the most urgent level, until another may be that, or there is something else
    /// to do. What is more urgent comes by the inbox, so as long as that is empty and coroutines
    /// yield, there is nothing to look for: this is the whole of a switch.
    #[inline]
    fn runs(&'static self, worker: &Polling, ready: &Ready, polls: &mut Polls, level: usize) {
        let heeds = polls.heeds[level];
        let mut header = ready.head(level);
        loop {
            polls.left -= 1;
            if polls.left == 0 || self.summary.any(heeds) {
                return self.gives_way_alone(worker, ready, polls);
            }
            worker.polls(Some(header));
            if header.state().begin() == Begun::Cancel {
                return self.cancels_alone(worker, ready, header);
            }
            // SAFETY: WORKER: it has begun.
            let polled = unsafe { waker::poll(header) };
            if polled == Polled::Pending && header.state().is_woken() {
                header = ready.turn(level, header);
                if self.inbox.has_any() {
                    worker.polls(None);
                    return;
                }
                continue;
            }
            match polled {
                Polled::Pending => self.suspends_alone(worker, ready, header),
                Polled::Ready => self.ends_alone(worker, ready, header),
                Polled::Panicked => self.panics_alone(worker, ready, header),
            }
            if self.inbox.has_any() || ready.first() != level {
                return;
            }
            header = ready.head(level);
        }
    }

    #[cold]
    fn idles(&'static self, number: usize, ready: &Ready) -> Option<Waits> {
        self.settles(ready);
        match ready.some() {
            0 => self.waits(number, ready),
            _ => None,
        }
    }

    #[cold]
    fn gives_way_alone(&'static self, worker: &Polling, ready: &Ready, polls: &mut Polls) {
        worker.polls(None);
        self.settles(ready);
        self.gives_way(polls);
    }

    #[inline(never)]
    fn ends_alone(&'static self, worker: &Polling, ready: &Ready, header: &'static Header) {
        self.leaves_alone(worker, ready, header, None);
    }

    #[cold]
    fn panics_alone(&'static self, worker: &Polling, ready: &Ready, header: &'static Header) {
        self.leaves_alone(worker, ready, header, Some(Ended::Panicked));
    }

    #[cold]
    fn cancels_alone(&'static self, worker: &Polling, ready: &Ready, header: &'static Header) {
        // SAFETY: WORKER: it has begun, and it is not polled any more.
        unsafe { header.drop_future() };
        self.leaves_alone(worker, ready, header, Some(Ended::Cancelled));
    }

    /// It has ended. Whoever awaits it is queued before it leaves its level, which so does not become
    /// empty for nothing.
    #[inline(always)]
    fn leaves_alone(
        &'static self,
        worker: &Polling,
        ready: &Ready,
        header: &'static Header,
        without: Option<Ended>,
    ) {
        worker.polls(None);
        self.forgets_one();
        header.state().finish();
        // SAFETY: WORKER, and its future is gone, one way or the other.
        if let Some(joiner) = unsafe { header.ended(without) } {
            self.wakes_joiner(ready, joiner);
        }
        let is_empty = ready.remove(header);
        // SAFETY: the domain's reference, and it is not used any more.
        drop(unsafe { Ref::from_raw(header.into()) });
        if is_empty {
            self.emptied(ready);
        }
    }

    /// Its poll has ended pending, without a wake so far.
    #[inline(never)]
    fn suspends_alone(&'static self, worker: &Polling, ready: &Ready, header: &'static Header) {
        worker.polls(None);
        // Before it can be idle it has to be out of its level: then it is another's.
        let level = usize::from(header.level.get());
        let is_empty = ready.remove(header);
        match header.state().suspend() {
            Suspended::Queued => drop(ready.push(header, level)),
            Suspended::Idle if is_empty => self.emptied(ready),
            Suspended::Idle => {}
        }
    }

    /// Rule 4, of who has awaited one that has ended; nobody is polled.
    #[inline(always)]
    fn wakes_joiner(&'static self, ready: &Ready, joiner: Waker) {
        let joiner = match Ref::of_waker(joiner) {
            Ok(joiner) => joiner,
            Err(joiner) => return joiner.wake(),
        };
        if joiner.place().domain() != self.id.index() || self.inbox.has_any() {
            return joiner.wake();
        }
        if joiner.state().wake() == Woken::MustBeQueued {
            // SAFETY: QUEUE: it is for the caller to queue, and lives, as it has not ended.
            self.queues(ready, unsafe { joiner.as_raw().as_ref() });
        }
    }

    /// A level is empty. What has arrived meanwhile may belong there.
    #[inline(never)]
    fn emptied(&'static self, ready: &Ready) {
        if self.inbox.has_more() {
            self.takes_in(ready);
        }
        self.settles(ready);
    }

    /// Queues what has arrived.
    fn takes_in(&'static self, ready: &Ready) {
        let arrived = self.inbox.take();
        let notes = arrived.notes;
        for header in arrived {
            self.queues(ready, header);
        }
        if notes.has(Notes::MOVES) {
            while self.moves_one(ready) {}
        }
        if notes.has(Notes::CALL) {
            self.attends();
        }
    }

    /// Moves one whose priority has changed to its level, if it is in another; false if there is none.
    fn moves_one(&self, ready: &Ready) -> bool {
        self.books.with(self.kernel, |books| {
            books.next_moved(self.kernel, |header| {
                let (from, to) = (usize::from(header.level.get()), header.effective());
                if header.level.get() != APART && from != to {
                    ready.remove(header);
                    self.queues(ready, header);
                }
            })
        })
    }

    /// Rule 6: clears what is more urgent than anything that is here.
    fn settles(&'static self, ready: &Ready) {
        while self.summary.any(self.own[ready.urgency()]) {
            self.summary.clear_all(self.own[ready.urgency()]);
            if !self.inbox.looks() {
                break;
            }
            self.takes_in(ready);
        }
    }

    /// Rules 2 and 3.
    #[cold]
    fn gives_way(&'static self, polls: &mut Polls) {
        let is_quiet = ptr::eq(polls.heeds, &HEEDS_NOBODY);
        if polls.left != 0 {
            // Something is more urgent elsewhere.
            self.kernel.yield_now();
            if self.is_less_urgent() {
                *polls = Polls {
                    left: QUIET,
                    more: 0,
                    heeds: &HEEDS_NOBODY,
                };
            }
            return;
        } else if polls.more != 0 {
            self.timers.looks_at_clock(self.kernel);
            return polls.goes_on(self);
        } else {
            self.timers.looks_at_clock(self.kernel);
            *polls = Polls::new(self);
            // Also after the 16 polls of rule 2: as long as something is more urgent elsewhere, nothing
            // else comes to its end.
            if self.is_attendant_late() {
                self.attends();
            }
            if is_quiet {
                polls.left -= QUIET;
                return;
            }
        }
        self.kernel.yield_now();
    }

    /// Rule 2: whether giving way was in vain, as another domain still has something more urgent than all that
    /// there is here now. That may have become more urgent meanwhile: who works for this domain has been polled.
    fn is_less_urgent(&self) -> bool {
        let here = self.summary.of(self.id);
        here.is_some_and(|here| self.summary.any(self.elsewhere[here.index()]))
    }

    /// Rule 5, of one that is alone: how it has to wait; none if there is something to do after all.
    fn waits(&'static self, number: usize, ready: &Ready) -> Option<Waits> {
        self.sleepers.fetch_or(1 << number, Ordering::AcqRel);
        // Whom this wakes is queued at once (rule 4), and does not come by the inbox.
        self.timers.looks_at_clock(self.kernel);
        // The note that it is not alone any more counts as well.
        if ready.some() != 0 || self.inbox.looks() || self.inbox.has_any() {
            self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
            return None;
        }
        self.clears_spares();
        Some(self.will_wait())
    }

    /// How long it has to wait, after it has said so and looked, at the clock, too.
    fn will_wait(&'static self) -> Waits {
        let attendant = self.books.with(self.kernel, |books| {
            if !self.leaves_it_to_the_tick() {
                books.trims(self.kernel, &self.directory);
            }
            books.attendant
        });
        let attended = attendant.and_then(|attendant| attendant.until());
        let until = attended
            .into_iter()
            .chain(self.timers.next(self.kernel))
            .min();
        Waits { until, attendant }
    }

    /// It goes on.
    fn has_waited(&'static self, number: usize, waits: Waits) {
        self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
        self.timers.looks_at_clock(self.kernel);
        // It may be another by now, or none.
        if waits.attendant.is_some() {
            self.attends();
        }
    }

    fn attends(&'static self) {
        let attendant = self.books.with(self.kernel, |books| books.attendant);
        if let Some(attendant) = attendant {
            attendant.attend(self.id);
        }
    }

    fn is_attendant_late(&self) -> bool {
        let attendant = self.books.with(self.kernel, |books| books.attendant);
        let until = attendant.and_then(|attendant| attendant.until());
        until.is_some_and(|until| until <= self.kernel.now())
    }

    /// The last poll of one that is out of the queues has come to this.
    #[must_use]
    fn ends(&self, header: &'static Header, polled: Polled) -> Option<Waker> {
        let without = match polled {
            Polled::Pending => unreachable!("it has not ended"),
            Polled::Ready => None,
            Polled::Panicked => Some(Ended::Panicked),
        };
        self.finishes(header, without)
    }

    /// One that is out of the queues has ended. Returns whom to wake for it.
    #[inline]
    #[must_use]
    fn finishes(&self, header: &'static Header, without: Option<Ended>) -> Option<Waker> {
        self.forgets_one();
        header.state().finish();
        // SAFETY: WORKER, and its future is gone, one way or the other.
        let joiner = unsafe { header.ended(without) };
        // SAFETY: the domain's reference, and it is not used any more.
        drop(unsafe { Ref::from_raw(header.into()) });
        joiner
    }

    /// Serves beside others. Returns how it has to wait; none if it has to ask again how it serves.
    fn shared(
        &'static self,
        number: usize,
        worker: &Polling,
        polls: &mut Polls,
        epoch: u32,
    ) -> Option<Waits> {
        // What it has polled last, in which level, and whether it has to be queued.
        let mut polled: Option<(usize, Option<&'static Header>)> = None;
        // It has said that it waits.
        let mut is_sleeper = false;
        loop {
            let has_more = match is_sleeper {
                true => self.inbox.looks(),
                false => self.inbox.has_more(),
            };
            if has_more {
                self.takes_in_by_turns();
            }
            let leaves = self.epoch.load(Ordering::Acquire) != epoch;
            let step = self.in_turn(|ready| {
                if let Some((level, back)) = polled.take() {
                    ready.stops(level);
                    if let Some(header) = back {
                        self.queues(ready, header);
                    }
                }
                let level = ready.first();
                let step = if leaves {
                    Step::Leaves
                } else if level == PRIORITIES {
                    Step::Nothing
                } else if polls.must_give_way(self, level) {
                    Step::GivesWay
                } else {
                    let header = ready.head(level);
                    ready.remove(header);
                    ready.begins(level);
                    Step::Polls(header, level)
                };
                let stale = self.own[ready.urgency()];
                let clears = self.summary.any(stale);
                if clears {
                    self.summary.clear_all(stale);
                }
                (step, ready.some() != 0, clears)
            });
            let (step, leaves_some, clears) = match step {
                Some(step) => step,
                // Rule 5: another has the turn for good, and gives it up when its poll has ended.
                None if leaves => (Step::Leaves, false, false),
                None => (Step::Nothing, false, false),
            };
            // Rule 6.
            let must_look = clears && self.inbox.looks();
            if must_look {
                self.takes_in_by_turns();
            }
            if !matches!(step, Step::Nothing) {
                // Rule 5. What it has taken in since it picked is left behind, too: whoever was told of that
                // may have looked before it was queued, and wait again.
                let mut leaves_some = leaves_some || must_look;
                if is_sleeper {
                    let was = self.sleepers.fetch_and(!(1 << number), Ordering::AcqRel);
                    is_sleeper = false;
                    // Who has it go on may have brought something after it looked.
                    leaves_some |= was >> number & 1 == 0 && self.inbox.has_more();
                }
                // No sooner: it would be itself that goes on.
                if leaves_some {
                    self.unparks_one();
                }
            }
            match step {
                Step::Polls(header, level) => {
                    polled = Some((level, self.polls_shared(header, worker)));
                }
                Step::GivesWay => self.gives_way(polls),
                Step::Leaves => return None,
                // Whoever was told of it may have looked before it was queued, and wait again: so this
                // one must not wait before it has looked for it (rule 5).
                Step::Nothing if must_look => {}
                Step::Nothing if !is_sleeper => {
                    self.sleepers.fetch_or(1 << number, Ordering::AcqRel);
                    is_sleeper = true;
                }
                Step::Nothing => {
                    // Whom this wakes comes by the inbox, and then this worker does not wait.
                    self.timers.looks_at_clock(self.kernel);
                    return Some(self.will_wait());
                }
            }
        }
    }

    /// Polls one that is out of the queues, and returns it if it has to be queued again.
    fn polls_shared(
        &'static self,
        header: &'static Header,
        worker: &Polling,
    ) -> Option<&'static Header> {
        worker.polls(Some(header));
        if header.state().begin() == Begun::Cancel {
            // SAFETY: WORKER: it has begun, and it is not polled any more.
            unsafe { header.drop_future() };
            worker.polls(None);
            if let Some(joiner) = self.finishes(header, Some(Ended::Cancelled)) {
                joiner.wake();
            }
            return None;
        }
        // SAFETY: WORKER: it has begun.
        let polled = unsafe { waker::poll(header) };
        worker.polls(None);
        if polled != Polled::Pending {
            if let Some(joiner) = self.ends(header, polled) {
                joiner.wake();
            }
            return None;
        }
        let is_queued = header.state().is_woken() || header.state().suspend() == Suspended::Queued;
        is_queued.then_some(header)
    }

    /// Queues what has arrived, so many in one turn.
    fn takes_in_by_turns(&'static self) {
        // If another has the turn for good, so has it what has arrived. If not, nobody will as long as
        // this one serves.
        if self.in_turn(|_| ()).is_none() {
            return;
        }
        let arrived = self.inbox.take();
        let mut moves = arrived.notes.has(Notes::MOVES);
        let calls = arrived.notes.has(Notes::CALL);
        let mut arrived = arrived.peekable();
        while moves || arrived.peek().is_some() {
            let turn = self.in_turn(|ready| {
                let mut batch = 0..BATCH;
                while batch.next().is_some()
                    && let Some(header) = arrived.next()
                {
                    self.queues(ready, header);
                }
                while moves && batch.next().is_some() {
                    moves = self.moves_one(ready);
                }
            });
            assert!(turn.is_some(), "another worker has the turn for good");
        }
        if calls {
            self.attends();
        }
    }

    /// Calls this with the queues, in this worker's turn; none if it is another's for good.
    fn in_turn<R>(&self, on: impl FnOnce(&Ready) -> R) -> Option<R> {
        self.turn.shortly(self.kernel, || {
            // SAFETY: it has the turn.
            on(unsafe { &*self.ready.get() })
        })
    }
}

/// What a worker beside others does next.
enum Step {
    Polls(&'static Header, usize),
    GivesWay,
    Nothing,
    Leaves,
}
