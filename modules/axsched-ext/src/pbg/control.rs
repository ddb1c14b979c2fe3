//! What the calls decide, and how the scheduler learns of it.
//!
//! The scheduler is private to `axtask`, so a call leaves an order in a static
//! and says so in the *stance*, the one word that the scheduler looks at in each of
//! its calls anyway: it tells which of its ways to go. All that allocates is done
//! by the call.
//!
//! Neither side ever waits for the lock. A call that finds it taken answers
//! [`Error::Contended`]; a scheduler call (which may be an interrupt on top of
//! the call that holds it) looks again the next time. The stance changes while the
//! lock is still held, so no second call can come between an order and its stance;
//! the order is taken when its giver has run again and let go, and that is when the
//! giver has the CPU, which makes it the root.

use core::fmt;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

#[cfg(feature = "std")]
use alloc::boxed::Box;
use alloc::vec::Vec;
use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::measure::{LabelCell, Recorded, Recorder};
use super::plan::Plan;
use super::replay::{BEHIND_BEYOND, Table};
use super::reserved;
use super::stored::{
    self, Architecture, Expected, Header, Label, Mismatch, PolicyName, Program, ProgramName,
    StoredProfile, StoredTask, Timing,
};
use crate::clock::{Clock, CpuCounter};
use crate::syscall::Error;
use crate::units::{Counts, TaskKey};

/// The control behind [`syscall`](crate::syscall).
pub static CONTROL: Control = Control::new();

/// Where a scheduler finds its control. A type, not a reference: the system's is at
/// a fixed address, which saves a load in every call.
pub trait Mailbox {
    /// It.
    fn control() -> &'static Control;
}

/// The mailbox with [`CONTROL`].
pub struct System;

impl Mailbox for System {
    #[inline(always)]
    fn control() -> &'static Control {
        &CONTROL
    }
}

/// For tests: a mailbox with one control a thread, which can be renewed.
#[cfg(feature = "std")]
pub struct PerThread;

#[cfg(feature = "std")]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<Option<&'static Control>> = const { core::cell::Cell::new(None) };
}

#[cfg(feature = "std")]
impl PerThread {
    /// A new control for this thread, for good. Schedulers of before follow it, too,
    /// which only those may that are empty: their plan is the old one's.
    pub fn renew() -> &'static Control {
        let control = Box::leak(Box::default());
        OF_THREAD.set(Some(control));
        control
    }
}

#[cfg(feature = "std")]
impl Mailbox for PerThread {
    fn control() -> &'static Control {
        OF_THREAD.get().unwrap_or_else(Self::renew)
    }
}

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

/// What runs while PBG measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Round robin, with the slice of the fallback.
    #[default]
    RoundRobin,
    /// First in, first out: ticks preempt nobody. The record then has no
    /// preemptions in it, and a task that never gives way keeps the CPU.
    Fifo,
}

impl Base {
    /// The policy's short name, as a profile has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "rr",
            Self::Fifo => "fifo",
        }
    }
}

/// What becomes of a plan that is behind the measured run (rule 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behind {
    /// It is dropped, and the fallback policy goes on.
    #[default]
    GiveUp,
    /// It is followed, and the status says that it is behind.
    Keep,
}

/// What the library cannot know by itself of the program and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Which program runs.
    pub program: Program,
    /// Counts a second of the CPU's counter, in Hz; 0 is unknown.
    pub frequency_hz: u64,
    /// CPUs that are scheduled.
    pub cpus: u16,
    /// In which time the machine runs. A kernel cannot find out whether an emulator counts
    /// its instructions: who does not know says [`Timing::Unknown`], and no profile is
    /// refused for its time.
    pub timing: Timing,
}

/// Why a stored profile is not used. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not now.
    Call(Error),
    /// It cannot be read.
    Decode(stored::DecodeError),
    /// It is of no use here.
    Mismatch(Mismatch),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Decode(error) => error.fmt(f),
            Self::Mismatch(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LoadError {}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

/// How a task went its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// The plan did not know it.
    Unknown = 1,
    /// It used more time on the CPU than the plan can bear; in counts.
    Run = 2,
    /// It yielded more often than that.
    Yields = 3,
    /// It was the latest when the replay was found behind (rule 11): so many counts
    /// after its spawn it had not ended.
    Turnaround = 4,
}

impl Why {
    const ALL: [Self; 4] = [Self::Unknown, Self::Run, Self::Yields, Self::Turnaround];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown task",
            Self::Run => "run time",
            Self::Yields => "yields",
            Self::Turnaround => "turnaround",
        }
    }
}

/// The first task that went its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// How.
    pub why: Why,
    /// Who.
    pub task: TaskKey,
    /// The most that was recorded; 0 of an unknown task.
    pub expected: u64,
    /// What there was when it was noticed; 0 of an unknown task.
    pub found: u64,
}

/// How a replay has gone so far. Its `Display` is one JSON object in one line, with
/// stable keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What PBG is doing.
    pub phase: Phase,
    /// Tasks in the plan.
    pub planned: u32,
    /// Tasks spawned that the plan knew.
    pub matched: u32,
    /// Children of the root or of planned tasks that the plan did not know. (Of their
    /// own descendants only those with a label are counted: nobody knows the others.)
    pub unplanned: u32,
    /// Planned tasks that ran far beyond their plan (rule 8).
    pub demoted: u32,
    /// Whether the plan was given up (rules 10 and 11).
    pub dropped: bool,
    /// Whether the replay is slower than what was measured: a tick has found it so
    /// (rule 11), or `turnaround_permille` is above 1,000 by more than one in
    /// [`BEHIND_BEYOND`].
    pub behind: bool,
    /// How long the plan's tasks that have come lived, each from its spawn until it last gave
    /// the CPU away, in thousandths of how long they did when they were measured: after the
    /// last one's end, the average turnaround against the measured. 0 if none has come.
    pub turnaround_permille: u32,
    /// Turns that the fallback queue got while planned tasks were ready (rule 7).
    pub turns: u32,
    /// Tasks that no order could end by their latest time, when the plan was made.
    pub late: u32,
    /// The first task that went its own way.
    pub first: Option<Divergence>,
}

impl Status {
    /// Tasks of the plan that were not spawned (yet).
    pub const fn missing(&self) -> u32 {
        self.planned - self.matched
    }

    /// Tasks that went another way than planned.
    pub const fn diverged(&self) -> u32 {
        self.unplanned + self.demoted
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"{{"planned":{},"matched":{},"missing":{},"unplanned":{},"diverged":{},"demoted":{},"dropped":{},"turns":{},"late":{},"behind":{},"turnaround_permille":{}"#,
            self.planned,
            self.matched,
            self.missing(),
            self.unplanned,
            self.diverged(),
            self.demoted,
            self.dropped,
            self.turns,
            self.late,
            self.behind,
            self.turnaround_permille,
        )?;
        if let Some(first) = &self.first {
            write!(
                f,
                r#","why":"{}","task":"{}","expected":{},"found":{}"#,
                first.why.name(),
                first.task,
                first.expected,
                first.found
            )?;
        }
        f.write_str("}")
    }
}

#[expect(clippy::large_enum_variant, reason = "one, and boxing it could abort")]
pub(super) enum Order {
    Stop,
    Measure(&'static Recorder),
    Replay(Table),
}

/// Which way the scheduler's calls go. A number and not an `enum`: a pick compares
/// the byte that it has loaded, and nothing has to be made of it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stance(u8);

impl Stance {
    /// The base policy.
    pub const BASE: Self = Self(0);
    /// The base policy, recorded.
    pub const MEASURE: Self = Self(1);
    /// A plan.
    pub const REPLAY: Self = Self(2);
    /// There is an order to be taken first.
    pub const ORDER: Self = Self(3);
}

struct Inner {
    phase: Phase,
    base: Base,
    recorder: Option<&'static Recorder>,
    profile: Option<StoredProfile>,
    order: Option<Order>,
}

/// The counters of [`Status`]. There is one writer at a time, the scheduler or,
/// before a replay, the call, so relaxed loads and stores do; a reader sees each
/// exactly, though not all at one instant.
pub(super) struct Tally {
    planned: AtomicU32,
    late: AtomicU32,
    pub matched: AtomicU32,
    pub unplanned: AtomicU32,
    pub demoted: AtomicU32,
    pub turns: AtomicU32,
    pub dropped: AtomicBool,
    pub behind: AtomicBool,
    /// How long the planned tasks that have come were measured to live together, and
    /// have lived by when each last gave the CPU away, in counts.
    pub measured: AtomicU64,
    pub lived: AtomicU64,
    /// A [`Why`], or 0; written after the three that follow.
    why: AtomicU8,
    task: AtomicU64,
    expected: AtomicU64,
    found: AtomicU64,
}

impl Tally {
    const fn new() -> Self {
        Self {
            planned: AtomicU32::new(0),
            late: AtomicU32::new(0),
            matched: AtomicU32::new(0),
            unplanned: AtomicU32::new(0),
            demoted: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            dropped: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            measured: AtomicU64::new(0),
            lived: AtomicU64::new(0),
            why: AtomicU8::new(0),
            task: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }

    /// Keeps the first divergence.
    #[cold]
    pub fn diverged(&self, why: Why, task: TaskKey, expected: u64, found: u64) {
        if self.why.load(Relaxed) == 0 {
            self.task.store(task.to_bits(), Relaxed);
            self.expected.store(expected, Relaxed);
            self.found.store(found, Relaxed);
            self.why.store(why as u8, Release);
        }
    }

    fn first(&self) -> Option<Divergence> {
        let why = self.why.load(Acquire);
        let why = Why::ALL.into_iter().find(|&w| w as u8 == why)?;
        Some(Divergence {
            why,
            task: TaskKey::from_bits(self.task.load(Relaxed)),
            expected: self.expected.load(Relaxed),
            found: self.found.load(Relaxed),
        })
    }
}

/// Counts one more.
#[inline]
pub(super) fn count(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Adds a time; stops at the largest.
#[inline]
pub(super) fn add(sum: &AtomicU64, time: Counts) {
    sum.store(sum.load(Relaxed).saturating_add(time.0), Relaxed);
}

/// One PBG: its calls and the mailbox to its schedulers. There is one for the
/// system, [`CONTROL`]; tests make their own.
pub struct Control {
    stance: AtomicU8,
    /// While measuring, the record of the task that has the CPU. Only the scheduler
    /// writes it.
    pub(super) running: Recorded,
    queues: AtomicU32,
    fifo: AtomicBool,
    /// For the next spawn. Without a lock: `spawned` may interrupt a call.
    next_label: LabelCell,
    pub(super) tally: Tally,
    inner: SpinMutex<Inner>,
}

impl Control {
    /// Idle, without a profile.
    pub const fn new() -> Self {
        Self {
            stance: AtomicU8::new(Stance::BASE.0),
            running: Recorded::nowhere(),
            queues: AtomicU32::new(0),
            fifo: AtomicBool::new(false),
            next_label: LabelCell::new(),
            tally: Tally::new(),
            inner: SpinMutex::new(Inner {
                phase: Phase::Idle,
                base: Base::RoundRobin,
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
        self.set_stance(Stance::ORDER); // under the lock: see the module documentation
    }

    /// See [`syscall::measure_start`](crate::syscall::measure_start).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn measure_start(&self) -> Result<(), Error> {
        self.measure_start_under(Base::RoundRobin)
    }

    /// The same, under a base policy of choice.
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn measure_start_under(&self, base: Base) -> Result<(), Error> {
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
        inner.base = base;
        self.fifo.store(base == Base::Fifo, Relaxed);
        self.publish(inner, Phase::Measuring, Order::Measure(recorder));
        Ok(())
    }

    /// See [`syscall::measure_end`](crate::syscall::measure_end).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn measure_end(&self) -> Result<usize, Error> {
        self.measure_end_by::<CpuCounter>()
    }

    /// The same by another clock, for tests.
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn measure_end_by<C: Clock>(&self) -> Result<usize, Error> {
        let mut inner = self.enter()?;
        let (Phase::Measuring, Some(recorder)) = (inner.phase, inner.recorder) else {
            return Err(Error::NotMeasuring);
        };
        let (tasks, unrecorded) = match inner.order {
            // Nothing has been scheduled since the measurement began, and the
            // record is still that of the one before.
            Some(Order::Measure(_)) => (Vec::new(), 0),
            _ => {
                let (tasks, left_out) = recorder.read(C::now(), self.running.get())?;
                (tasks, left_out + recorder.unrecorded())
            }
        };
        let len = tasks.len();
        inner.profile = Some(StoredProfile {
            header: header(inner.base, unrecorded),
            tasks,
        });
        self.fifo.store(false, Relaxed);
        self.publish(inner, Phase::Idle, Order::Stop);
        Ok(len)
    }

    /// Takes a stored profile over, in place of a measurement: `start_pbg` plans it.
    /// Returns the number of tasks in it.
    ///
    /// # Errors
    /// [`LoadError`]; nothing has changed then.
    pub fn load(&self, bytes: &[u8], about: &About) -> Result<usize, LoadError> {
        let profile = stored::decode(bytes).map_err(LoadError::Decode)?;
        let expected = Expected {
            architecture: Architecture::HERE,
            program_hash: about.program.hash,
            cpus: about.cpus,
            timing: about.timing,
        };
        stored::check(&profile, &expected).map_err(LoadError::Mismatch)?;
        let mut inner = self.enter()?;
        match inner.phase {
            Phase::Idle => {}
            Phase::Measuring => return Err(Error::Measuring.into()),
            Phase::Replaying => return Err(Error::Replaying.into()),
        }
        let tasks = profile.tasks.len();
        inner.profile = Some(profile);
        Ok(tasks)
    }

    /// See [`syscall::start_pbg`](crate::syscall::start_pbg).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn start_pbg(&self) -> Result<usize, Error> {
        self.start_pbg_with(Behind::GiveUp)
    }

    /// The same, with a say in what becomes of a plan that is behind (rule 11).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn start_pbg_with(&self, when_behind: Behind) -> Result<usize, Error> {
        let inner = self.enter()?;
        match inner.phase {
            Phase::Idle => {}
            Phase::Measuring => return Err(Error::Measuring),
            Phase::Replaying => return Err(Error::AlreadyReplaying),
        }
        self.one_queue()?;
        let plan = Plan::of(inner.profile.as_ref().ok_or(Error::NoProfile)?)?;
        let tasks = plan.tasks().len();
        let table = Table::new(&plan, when_behind)?;
        self.tally.planned.store(tasks as u32, Relaxed);
        self.tally.late.store(plan.late().len() as u32, Relaxed);
        self.publish(inner, Phase::Replaying, Order::Replay(table));
        Ok(tasks)
    }

    /// The plan that `start_pbg` would follow now, if there is a profile: to see who
    /// cannot be in time ([`Plan::late`]).
    ///
    /// # Errors
    /// [`Error::Contended`], [`Error::NoMemory`].
    pub fn plan(&self) -> Result<Option<Plan>, Error> {
        let inner = self.enter()?;
        inner.profile.as_ref().map(Plan::of).transpose()
    }

    /// The present profile as data, if there is one: of the last measurement that
    /// ended, in which case `about` goes into its header, or the one that was loaded.
    ///
    /// # Errors
    /// [`Error::Contended`], [`Error::NoMemory`].
    pub fn profile(&self, about: &About) -> Result<Option<StoredProfile>, Error> {
        let inner = self.enter()?;
        let Some(profile) = &inner.profile else {
            return Ok(None);
        };
        let mut copy = StoredProfile {
            header: profile.header,
            tasks: reserved(profile.tasks.len())?,
        };
        if copy.header.frequency_hz == 0 {
            copy.header.program = about.program;
            copy.header.frequency_hz = about.frequency_hz;
            copy.header.cpus = about.cpus;
            copy.header.timing = about.timing;
        }
        for task in &profile.tasks {
            copy.tasks.push(copied(task)?);
        }
        Ok(Some(copy))
    }

    /// See [`syscall::label_next`](crate::syscall::label_next).
    ///
    /// # Errors
    /// See the table in [`syscall`](crate::syscall).
    pub fn label_next(&self, label: &str) -> Result<(), Error> {
        let label = Label::new(label).map_err(|_| Error::BadLabel)?;
        self.next_label.set(Some(&label));
        Ok(())
    }

    /// The label for the task that is being spawned, once.
    pub(super) fn take_label(&self) -> Option<Label> {
        let label = self.next_label.get()?;
        self.next_label.set(None);
        Some(label)
    }

    /// What PBG is doing, and how the replay has gone so far.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn status(&self) -> Result<Status, Error> {
        let inner = self.enter()?;
        let tally = &self.tally;
        let [lived, measured] = [&tally.lived, &tally.measured].map(|sum| sum.load(Relaxed));
        let permille = (u128::from(lived) * 1000).checked_div(measured.into());
        let is_slower = u128::from(lived) * u128::from(BEHIND_BEYOND)
            > u128::from(measured) * u128::from(BEHIND_BEYOND + 1);
        Ok(Status {
            phase: inner.phase,
            planned: tally.planned.load(Relaxed),
            matched: tally.matched.load(Relaxed),
            unplanned: tally.unplanned.load(Relaxed),
            demoted: tally.demoted.load(Relaxed),
            dropped: tally.dropped.load(Relaxed),
            behind: tally.behind.load(Relaxed) || is_slower,
            turnaround_permille: permille.unwrap_or(0).try_into().unwrap_or(u32::MAX),
            turns: tally.turns.load(Relaxed),
            late: tally.late.load(Relaxed),
            first: tally.first(),
        })
    }

    #[inline(always)]
    pub(super) fn stance(&self) -> Stance {
        Stance(self.stance.load(Relaxed))
    }

    pub(super) fn set_stance(&self, stance: Stance) {
        self.stance.store(stance.0, Release);
    }

    /// Whether a tick preempts under the base policy.
    pub(super) fn base_ticks(&self) -> bool {
        !self.fifo.load(Relaxed)
    }

    pub(super) fn register_queue(&self) {
        self.queues.fetch_add(1, Relaxed);
    }

    /// The order that has been left, if nobody has taken it yet and no call is under
    /// way.
    pub(super) fn take_order(&self) -> Option<Order> {
        self.inner.try_lock()?.order.take()
    }
}

/// What a measurement knows by itself: the frequency is unknown until somebody asks
/// for the profile and says it.
fn header(base: Base, unrecorded: u64) -> Header {
    const UNNAMED: ProgramName = match ProgramName::new("program") {
        Ok(name) => name,
        Err(_) => panic!(),
    };
    const NAMES: [PolicyName; 2] = match (PolicyName::new("rr"), PolicyName::new("fifo")) {
        (Ok(rr), Ok(fifo)) => [rr, fifo],
        _ => panic!(),
    };
    Header {
        architecture: Architecture::HERE,
        timing: Timing::Unknown,
        frequency_hz: 0,
        cpus: 1,
        program: Program {
            name: UNNAMED,
            hash: 0,
        },
        policy: NAMES[base as usize],
        runs: 1,
        unrecorded,
    }
}

fn copied(task: &StoredTask) -> Result<StoredTask, Error> {
    let mut list = reserved(task.phases.list.len())?;
    list.extend_from_slice(&task.phases.list);
    let phases = stored::Phases {
        order: task.phases.order,
        list,
    };
    Ok(StoredTask { phases, ..*task })
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_json_object() {
        let status = Status {
            phase: Phase::Replaying,
            planned: 5,
            matched: 4,
            unplanned: 2,
            demoted: 1,
            turns: 9,
            behind: true,
            turnaround_permille: 1051,
            first: Some(Divergence {
                why: Why::Run,
                task: TaskKey::ROOT.child(0),
                expected: 10,
                found: 21,
            }),
            ..Status::default()
        };
        let expected = r#"{"planned":5,"matched":4,"missing":1,"unplanned":2,"diverged":3,"demoted":1,"dropped":false,"turns":9,"late":0,"behind":true,"turnaround_permille":1051,"why":"run time","task":"27f818c3c18b0cda","expected":10,"found":21}"#;
        assert_eq!(std::format!("{status}"), expected);
    }

    #[test]
    fn a_label_is_taken_once_and_checked() {
        let control = Control::new();
        assert_eq!(control.take_label(), None);
        for bad in ["", "a\nb", "a label that is far too long for the 32 bytes"] {
            assert_eq!(control.label_next(bad), Err(Error::BadLabel));
        }
        control.label_next("wörker").unwrap();
        assert_eq!(control.label_next(""), Err(Error::BadLabel)); // changes nothing
        assert_eq!(control.take_label(), Label::new("wörker").ok());
        assert_eq!(control.take_label(), None);
    }
}
