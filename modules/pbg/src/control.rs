//! The calls, and the command that each leaves for the scheduler. The lock of this file orders the
//! calls. The lock of the plan on several CPUs is another one (`front::several_cpus`).
//!
//! The scheduler is private to `axtask`. So a call leaves a command in a static and says so in the
//! *mode byte*, which the scheduler reads in each of its calls anyway, to choose its path. The call
//! does all that allocates.
//!
//! MODE: only the mode byte holds the phase that PBG is in. While a command waits, the byte says so,
//! and the command holds the phase that comes next. Both change only under the lock.
//!
//! Neither side ever waits for the lock. A call that finds it taken returns [`Error::Contended`]. A
//! scheduler call may be an interrupt on top of the call that holds the lock, so it looks again the
//! next time. The command is taken when the task that gave it has released the lock and has the CPU.
//! That task becomes the root.
//!
//! GIVER: on several CPUs a call of another CPU may hold the lock at that moment. Then the tasks that
//! the giver spawns would be outside. So while a command waits, long calls of other tasks return
//! [`Error::Contended`], and the giver's CPU tries [`TRIES`] times.

use alloc::vec::Vec;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32};
use core::sync::atomic::{Ordering::Relaxed, Ordering::Release};

use spin::Once;
use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::counters::Counters;
use super::plan::Plan;
use super::replay::{OnSlowReplay, Prepared};
use super::status::{Mode, Status};
use pbg_profile::{
    self, Architecture, Expected, Label, Mismatch, PolicyName, Start, StoredProfile,
};
use pbg_record::cell::LabelCell;
use pbg_record::described::{About, described, header};
use pbg_record::error::Error;
use pbg_record::record::{Record, RecordRef};
use pbg_record::recorder::{MAX_CPUS, Recorder};
use sched_core::clock::{Clock, CpuCounter};

/// The policy that runs while PBG measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BasePolicy {
    /// Round robin, with the slice of the fallback.
    #[default]
    RoundRobin,
    /// First in, first out: no tick preempts. The record then has no preemptions, and a task that
    /// never gives way keeps the CPU.
    Fifo,
}

impl BasePolicy {
    /// Returns the policy's short name, as a profile has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "rr",
            Self::Fifo => "fifo",
        }
    }

    const fn policy_name(self) -> PolicyName {
        match PolicyName::new(self.name()) {
            Ok(name) => name,
            Err(_) => panic!(),
        }
    }
}

/// The reason why a stored profile is not used. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The call returned an error.
    Call(Error),
    /// The bytes are no valid profile.
    Decode(pbg_profile::DecodeError),
    /// The profile does not fit this program or machine.
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

/// Reads a stored profile that fits this architecture and `about`.
///
/// # Errors
/// Returns [`LoadError::Decode`] or [`LoadError::Mismatch`].
pub fn fitting_profile(bytes: &[u8], about: &About) -> Result<StoredProfile, LoadError> {
    let profile = pbg_profile::decode(bytes).map_err(LoadError::Decode)?;
    let expected = Expected {
        architecture: Architecture::HERE,
        program_hash: about.program.hash,
        timing: about.timing,
    };
    pbg_profile::check(&profile, &expected).map_err(LoadError::Mismatch)?;
    Ok(profile)
}

#[expect(clippy::large_enum_variant, reason = "one, and boxing it could abort")]
pub(super) enum Command {
    Stop,
    Measure(&'static Recorder),
    Replay(Prepared),
}

impl Command {
    const fn mode(&self) -> GlobalMode {
        match self {
            Self::Stop => GlobalMode::IDLE,
            Self::Measure(_) => GlobalMode::MEASURING,
            Self::Replay(_) => GlobalMode::REPLAYING,
        }
    }
}

/// The mode that the calls ask all queues to be in, which chooses the path of each scheduler call.
/// It is a number and not an `enum`: a pick compares the byte that it has loaded, and need not
/// convert it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GlobalMode(u8);

impl GlobalMode {
    /// The base policy runs.
    pub const IDLE: Self = Self(0);
    /// The base policy runs and is recorded.
    pub const MEASURING: Self = Self(1);
    /// A plan is followed.
    pub const REPLAYING: Self = Self(2);
    /// There is a command to be taken first.
    pub const COMMAND: Self = Self(3);
}

/// GIVER: the number of tries for the lock. It is more than a short call takes instructions.
const TRIES: u32 = 1_000;

struct Inner {
    base: BasePolicy,
    recorder: Option<&'static Recorder>,
    profile: Option<StoredProfile>,
    command: Option<Command>,
}

/// The machine, as the calls need it on several CPUs.
struct Connected {
    cpus: usize,
    /// The task that runs on the CPU that calls.
    current: fn() -> *const (),
}

/// The calls of PBG, and the state through which its schedulers learn of them. The system has one,
/// [`CONTROL`](super::CONTROL), and tests make their own.
pub struct Control {
    /// The mode byte: a [`GlobalMode`] (MODE).
    mode: AtomicU8,
    /// While measuring, the record of the task that has each CPU. Only the scheduler
    /// writes it.
    pub(super) running: [RecordRef; MAX_CPUS],
    queues: AtomicU32,
    /// The machine of several CPUs, once connected.
    connected: Once<Connected>,
    /// On several CPUs, the address of the task that gave the waiting command. It is only compared.
    giver: AtomicPtr<()>,
    fifo: AtomicBool,
    /// The label of the next spawn. It has no lock, since `spawned` may interrupt a call.
    next_label: LabelCell,
    pub(super) counters: Counters,
    inner: SpinMutex<Inner>,
}

impl Control {
    /// Creates a control that is idle and has no profile.
    pub const fn new() -> Self {
        Self {
            mode: AtomicU8::new(GlobalMode::IDLE.0),
            running: [const { RecordRef::nowhere() }; MAX_CPUS],
            queues: AtomicU32::new(0),
            connected: Once::new(),
            giver: AtomicPtr::new(ptr::null_mut()),
            fifo: AtomicBool::new(false),
            next_label: LabelCell::new(),
            counters: Counters::new(),
            inner: SpinMutex::new(Inner {
                base: BasePolicy::RoundRobin,
                recorder: None,
                profile: None,
                command: None,
            }),
        }
    }

    /// Connects `cpus` CPUs, which follow one plan from now on. `current` returns the running task
    /// of the calling CPU, at the address where its `Arc` keeps the scheduler's task. Only the first
    /// call has an effect.
    pub(super) fn connect(&self, cpus: usize, current: fn() -> *const ()) {
        self.connected.call_once(|| Connected { cpus, current });
    }

    /// Frees the profile and the waiting command, and returns the recorder: no call will use them.
    #[cfg(feature = "model")]
    pub(super) fn retire(&self) -> Option<&'static Recorder> {
        let mut inner = self.inner.lock();
        inner.profile = None;
        inner.command = None;
        inner.recorder.take()
    }

    /// Takes a recorder that nothing else uses.
    #[cfg(feature = "model")]
    pub(super) fn take_recorder(&self, recorder: Option<&'static Recorder>) {
        self.inner.lock().recorder = recorder;
    }

    /// Takes the lock for a call that may take long. Fails while the command of another task waits
    /// (GIVER).
    fn enter(&self) -> Result<SpinMutexGuard<'_, Inner>, Error> {
        let inner = self.enter_for_short()?;
        match inner.command.is_none() || self.is_giver() {
            true => Ok(inner),
            false => Err(Error::Contended),
        }
    }

    fn enter_for_short(&self) -> Result<SpinMutexGuard<'_, Inner>, Error> {
        self.inner.try_lock().ok_or(Error::Contended)
    }

    /// Returns true if the running task of the calling CPU gave the command that waits. On one CPU
    /// it always has.
    fn is_giver(&self) -> bool {
        ptr::eq(self.giver.load(Relaxed), self.current())
    }

    /// Returns the running task of the calling CPU, on several CPUs; on one it is null.
    fn current(&self) -> *const () {
        let connected = self.connected.get();
        connected.map_or(ptr::null(), |connected| (connected.current)())
    }

    /// Returns an error if several CPUs schedule and PBG is not connected to them; see
    /// `axsched_ext::syscall`.
    fn one_queue(&self) -> Result<(), Error> {
        if self.queues.load(Relaxed) > 1 && self.connected.get().is_none() {
            Err(Error::NotSupported)
        } else {
            Ok(())
        }
    }

    /// Returns the phase of the waiting command, or else the phase that PBG is in (MODE).
    fn phase_under(&self, inner: &Inner) -> Mode {
        let waiting = inner.command.as_ref().map(Command::mode);
        match waiting.unwrap_or_else(|| self.global_mode()) {
            GlobalMode::MEASURING => Mode::Measuring,
            GlobalMode::REPLAYING => Mode::Replaying,
            _ => Mode::Idle,
        }
    }

    fn give(&self, mut inner: SpinMutexGuard<'_, Inner>, command: Command) {
        inner.command = Some(command);
        self.giver.store(self.current().cast_mut(), Relaxed);
        self.set_global_mode(GlobalMode::COMMAND);
    }

    /// Starts to measure under round robin; see `axsched_ext::syscall::measure_start`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn measure_start(&self) -> Result<(), Error> {
        self.measure_start_under(BasePolicy::RoundRobin)
    }

    /// Starts to measure under this base policy.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn measure_start_under(&self, base: BasePolicy) -> Result<(), Error> {
        let mut inner = self.enter()?;
        match self.phase_under(&inner) {
            Mode::Idle => {}
            Mode::Measuring => return Err(Error::AlreadyMeasuring),
            Mode::Replaying => return Err(Error::Replaying),
        }
        self.one_queue()?;
        let recorder = match inner.recorder {
            Some(recorder) => recorder,
            None => Recorder::leak()?,
        };
        inner.recorder = Some(recorder);
        inner.base = base;
        self.fifo.store(base == BasePolicy::Fifo, Relaxed);
        self.give(inner, Command::Measure(recorder));
        Ok(())
    }

    /// Ends the measurement and returns the number of recorded tasks; see
    /// `axsched_ext::syscall::measure_end`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn measure_end(&self) -> Result<usize, Error> {
        self.measure_end_by::<CpuCounter>()
    }

    /// Ends the measurement as [`measure_end`](Self::measure_end) does, by another clock, for tests.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn measure_end_by<C: Clock>(&self) -> Result<usize, Error> {
        let mut inner = self.enter()?;
        let (Mode::Measuring, Some(recorder)) = (self.phase_under(&inner), inner.recorder) else {
            return Err(Error::NotMeasuring);
        };
        let (tasks, unrecorded, start) = match inner.command {
            // Nothing has been scheduled since the measurement began, and the record is still that
            // of the measurement before.
            Some(Command::Measure(_)) => (Vec::new(), 0, Start::default()),
            _ => {
                let has_cpu = |record: &Record| {
                    let mut running = self.running.iter().map(RecordRef::get);
                    running.any(|of_cpu| ptr::eq(record, of_cpu))
                };
                let (tasks, left_out) = recorder.read(C::now(), has_cpu)?;
                (tasks, left_out + recorder.unrecorded(), recorder.start())
            }
        };
        let len = tasks.len();
        inner.profile = Some(StoredProfile {
            header: header(inner.base.policy_name(), unrecorded, start),
            tasks,
            order: None,
        });
        self.fifo.store(false, Relaxed);
        self.give(inner, Command::Stop);
        Ok(len)
    }

    /// Loads a stored profile in place of a measurement, for the plan of `start_pbg`. Returns the
    /// number of its tasks.
    ///
    /// # Errors
    /// Returns a [`LoadError`] if the bytes or the mode do not allow it. Nothing has changed then.
    pub fn load(&self, bytes: &[u8], about: &About) -> Result<usize, LoadError> {
        let profile = fitting_profile(bytes, about)?;
        let mut inner = self.enter()?;
        match self.phase_under(&inner) {
            Mode::Idle => {}
            Mode::Measuring => return Err(Error::Measuring.into()),
            Mode::Replaying => return Err(Error::Replaying.into()),
        }
        let tasks = profile.tasks.len();
        inner.profile = Some(profile);
        Ok(tasks)
    }

    /// Starts to follow the plan and returns its number of tasks; see
    /// `axsched_ext::syscall::start_pbg`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn start_pbg(&self) -> Result<usize, Error> {
        self.start_pbg_with(OnSlowReplay::DropPlan)
    }

    /// Starts to follow the plan, with a choice for a plan that is behind (rule 11).
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn start_pbg_with(&self, on_slow_replay: OnSlowReplay) -> Result<usize, Error> {
        let inner = self.enter()?;
        match self.phase_under(&inner) {
            Mode::Idle => {}
            Mode::Measuring => return Err(Error::Measuring),
            Mode::Replaying => return Err(Error::AlreadyReplaying),
        }
        self.one_queue()?;
        let profile = inner.profile.as_ref().ok_or(Error::NoProfile)?;
        let plan = Plan::of(profile)?;
        let tasks = plan.tasks().len();
        // Fewer CPUs than were measured take longer, which does not make the plan wrong.
        let here = self.connected.get().map_or(1, |connected| connected.cpus);
        let on_slow_replay = match here < usize::from(profile.header.cpus) {
            true => OnSlowReplay::KeepPlan,
            false => on_slow_replay,
        };
        let prepared = Prepared::new(&plan, on_slow_replay, here)?;
        self.counters.planned.store(tasks as u32, Relaxed);
        self.counters.late.store(plan.late().len() as u32, Relaxed);
        self.give(inner, Command::Replay(prepared));
        Ok(tasks)
    }

    /// Returns the plan that `start_pbg` would follow now, if there is a profile. It shows which
    /// tasks cannot be in time ([`Plan::late`]).
    ///
    /// # Errors
    /// Returns [`Error::Contended`] if another call is under way, or [`Error::NoMemory`].
    pub fn plan(&self) -> Result<Option<Plan>, Error> {
        let inner = self.enter()?;
        inner.profile.as_ref().map(Plan::of).transpose()
    }

    /// Returns the present profile as data, if there is one. It is that of the last measurement that
    /// ended, with `about` in its header, or the loaded one.
    ///
    /// # Errors
    /// Returns [`Error::Contended`] if another call is under way, or [`Error::NoMemory`].
    pub fn profile(&self, about: &About) -> Result<Option<StoredProfile>, Error> {
        let inner = self.enter()?;
        let Some(profile) = &inner.profile else {
            return Ok(None);
        };
        described(profile, about).map(Some)
    }

    /// Gives a label to the next task that is spawned; see `axsched_ext::syscall::label_next`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn label_next(&self, label: &str) -> Result<(), Error> {
        let label = Label::new(label).map_err(|_| Error::BadLabel)?;
        self.next_label.set(Some(&label));
        Ok(())
    }

    /// Takes the label for the task that is being spawned.
    pub(super) fn take_label(&self) -> Option<Label> {
        let label = self.next_label.get()?;
        self.next_label.set(None);
        Some(label)
    }

    /// Returns the phase that PBG is in, and the progress of the replay.
    ///
    /// # Errors
    /// Returns [`Error::Contended`] if another call is under way.
    pub fn status(&self) -> Result<Status, Error> {
        let inner = self.enter_for_short()?;
        Ok(self.counters.status(self.phase_under(&inner)))
    }

    #[inline(always)]
    pub(super) fn global_mode(&self) -> GlobalMode {
        GlobalMode(self.mode.load(Relaxed))
    }

    fn set_global_mode(&self, mode: GlobalMode) {
        self.mode.store(mode.0, Release);
    }

    /// Returns true if a tick preempts under the base policy.
    pub(super) fn is_base_preemptive(&self) -> bool {
        !self.fifo.load(Relaxed)
    }

    pub(super) fn register_queue(&self) {
        self.queues.fetch_add(1, Relaxed);
    }

    /// Takes the command that waits and sets its mode, unless a call is under way. On several CPUs
    /// only the CPU of the giver takes it. Returns the giver too, which is null on one CPU.
    pub(super) fn take_command(&self) -> Option<(Command, *const ())> {
        let giver = self.giver.load(Relaxed);
        if !ptr::eq(giver, self.current()) {
            return None;
        }
        let tries = if giver.is_null() { 1 } else { TRIES };
        let mut inner = (0..tries).find_map(|_| self.inner.try_lock())?;
        let command = inner.command.take()?;
        self.set_global_mode(command.mode());
        Some((command, giver))
    }

    /// Runs `interrupt` on top of a call that is under way.
    #[cfg(test)]
    pub(super) fn on_top_of_a_call<R>(&self, interrupt: impl FnOnce() -> R) -> R {
        let _inner = self.inner.lock();
        interrupt()
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
