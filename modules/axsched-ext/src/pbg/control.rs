//! What the calls decide, and how the scheduler learns of it.
//!
//! The scheduler is private to `axtask`, so a call leaves an order in a static
//! and moves the epoch on; the scheduler compares epochs when it is called next
//! and takes the order. All that allocates is done by the call.
//!
//! Neither side ever waits for the lock. A call that finds it taken answers
//! [`Error::Contended`]; a scheduler call (which may be an interrupt on top of
//! the call that holds it) looks again the next time. The epoch moves while the
//! lock is still held, so no second call can come between an order and its
//! epoch; the order is taken when its giver has run again and let go, and that
//! is when the giver has the CPU, which makes it the root.

use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::measure::Recorder;
use super::plan::Plan;
use super::profile::Profile;
use super::replay::Table;
use crate::syscall::Error;

/// The control behind [`syscall`](crate::syscall).
pub static CONTROL: Control = Control::new();

/// What PBG is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The base policy runs.
    #[default]
    Idle,
    /// The base policy runs and is recorded.
    Measuring,
    /// A plan is followed.
    Replaying,
}

/// How a replay has gone so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What PBG is doing.
    pub phase: Phase,
    /// Tasks in the plan.
    pub planned: u32,
    /// Tasks spawned that the plan knew.
    pub matched: u32,
    /// Children of the root or of planned tasks that the plan did not know.
    /// (Their own descendants are not counted: nobody knows them.)
    pub unplanned: u32,
    /// Planned tasks that ran far beyond their plan (rule 8).
    pub demoted: u32,
    /// Turns that the fallback queue got while planned tasks were ready (rule 7).
    pub turns: u32,
}

#[expect(clippy::large_enum_variant, reason = "one, and boxing it could abort")]
pub(super) enum Order {
    Stop,
    Measure(&'static Recorder),
    Replay(Table),
}

struct Inner {
    phase: Phase,
    recorder: Option<&'static Recorder>,
    profile: Option<Profile>,
    order: Option<Order>,
}

/// The counters of [`Status`]. There is one writer at a time, the scheduler or,
/// before a replay, the call, so relaxed loads and stores do; a reader sees each
/// exactly, though not all at one instant.
pub(super) struct Tally {
    pub planned: AtomicU32,
    pub matched: AtomicU32,
    pub unplanned: AtomicU32,
    pub demoted: AtomicU32,
    pub turns: AtomicU32,
}

impl Tally {
    const fn new() -> Self {
        Self {
            planned: AtomicU32::new(0),
            matched: AtomicU32::new(0),
            unplanned: AtomicU32::new(0),
            demoted: AtomicU32::new(0),
            turns: AtomicU32::new(0),
        }
    }
}

/// Counts one more.
#[inline]
pub(super) fn count(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// One PBG: its calls and the mailbox to its schedulers. There is one for the
/// system, [`CONTROL`]; tests make their own.
pub struct Control {
    /// Counts accepted calls, from 1; a queue that has seen none is at 0.
    epoch: AtomicU32,
    queues: AtomicU32,
    pub(super) tally: Tally,
    inner: SpinMutex<Inner>,
}

impl Control {
    /// Idle, without a profile.
    pub const fn new() -> Self {
        Self {
            epoch: AtomicU32::new(1),
            queues: AtomicU32::new(0),
            tally: Tally::new(),
            inner: SpinMutex::new(Inner {
                phase: Phase::Idle,
                recorder: None,
                profile: None,
                order: None,
            }),
        }
    }

    fn enter(&self) -> Result<SpinMutexGuard<'_, Inner>, Error> {
        self.inner.try_lock().ok_or(Error::Contended)
    }

    /// PBG runs on one CPU: see [`syscall`](crate::syscall).
    fn one_queue(&self) -> Result<(), Error> {
        if self.queues.load(Relaxed) > 1 {
            Err(Error::NotSupported)
        } else {
            Ok(())
        }
    }

    fn publish(&self, mut inner: SpinMutexGuard<'_, Inner>, phase: Phase, order: Order) {
        inner.phase = phase;
        inner.order = Some(order);
        self.epoch.fetch_add(1, Release); // under the lock: see the module documentation
    }

    /// See [`syscall::measure_start`](crate::syscall::measure_start).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn measure_start(&self) -> Result<(), Error> {
        let mut inner = self.enter()?;
        match inner.phase {
            Phase::Idle => {}
            Phase::Measuring => return Err(Error::AlreadyMeasuring),
            Phase::Replaying => return Err(Error::Replaying),
        }
        self.one_queue()?;
        let recorder = match inner.recorder {
            Some(recorder) => recorder,
            None => Recorder::leak()?,
        };
        inner.recorder = Some(recorder);
        self.publish(inner, Phase::Measuring, Order::Measure(recorder));
        Ok(())
    }

    /// See [`syscall::measure_end`](crate::syscall::measure_end).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn measure_end(&self) -> Result<usize, Error> {
        let mut inner = self.enter()?;
        let (Phase::Measuring, Some(recorder)) = (inner.phase, inner.recorder) else {
            return Err(Error::NotMeasuring);
        };
        let profile = match inner.order {
            // Nothing has been scheduled since the measurement began, and the
            // record is still that of the one before.
            Some(Order::Measure(_)) => Profile::default(),
            _ => Profile::of(recorder)?,
        };
        let tasks = profile.tasks().len();
        inner.profile = Some(profile);
        self.publish(inner, Phase::Idle, Order::Stop);
        Ok(tasks)
    }

    /// See [`syscall::start_pbg`](crate::syscall::start_pbg).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn start_pbg(&self) -> Result<usize, Error> {
        let inner = self.enter()?;
        match inner.phase {
            Phase::Idle => {}
            Phase::Measuring => return Err(Error::Measuring),
            Phase::Replaying => return Err(Error::AlreadyReplaying),
        }
        self.one_queue()?;
        let plan = Plan::shortest_first(inner.profile.as_ref().ok_or(Error::NoProfile)?)?;
        let tasks = plan.tasks().len();
        let table = Table::new(&plan)?;
        self.tally.planned.store(tasks as u32, Relaxed);
        self.publish(inner, Phase::Replaying, Order::Replay(table));
        Ok(tasks)
    }

    /// The profile of the last measurement that ended, if there is one.
    ///
    /// # Errors
    /// [`Error::Contended`], [`Error::NoMemory`].
    pub fn profile(&self) -> Result<Option<Profile>, Error> {
        let inner = self.enter()?;
        inner.profile.as_ref().map(Profile::try_clone).transpose()
    }

    /// What PBG is doing, and how the replay has gone so far.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn status(&self) -> Result<Status, Error> {
        let inner = self.enter()?;
        let tally = &self.tally;
        Ok(Status {
            phase: inner.phase,
            planned: tally.planned.load(Relaxed),
            matched: tally.matched.load(Relaxed),
            unplanned: tally.unplanned.load(Relaxed),
            demoted: tally.demoted.load(Relaxed),
            turns: tally.turns.load(Relaxed),
        })
    }

    #[inline(always)]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    pub(super) fn register_queue(&self) {
        self.queues.fetch_add(1, Relaxed);
    }

    /// The present epoch and the order that came with it, if nobody has taken
    /// that yet; `None` if a call is under way.
    pub(super) fn take_order(&self) -> Option<(u32, Option<Order>)> {
        let mut inner = self.inner.try_lock()?;
        Some((self.epoch.load(Acquire), inner.order.take()))
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
