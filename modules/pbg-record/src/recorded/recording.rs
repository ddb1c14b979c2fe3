//! The calls of a recording, and the state that all queues share.

use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use spin::Once;
use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::task::{RecordedTask, Slot, Subject};
use crate::cell::LabelCell;
use crate::described::{described, header};
use crate::record::{IDLE, OUTSIDE, Record, RecordRef};
use crate::recorder::{MAX_CPUS, Recorder};
use crate::{About, Error};
use pbg_profile::{Label, PolicyName, StoredProfile};
use sched_core::clock::{Clock, CpuCounter};
use sched_core::units::Counts;

/// The running task of the calling CPU.
#[derive(Clone, Copy)]
pub struct Here {
    slot: *const Slot,
    cpu: usize,
}

impl Here {
    /// Creates a value for this running task, on this CPU, counted from 0.
    ///
    /// # Panics
    /// Panics if `cpu` is not below [`MAX_CPUS`].
    pub fn new<S: Subject>(task: &RecordedTask<S>, cpu: usize) -> Self {
        assert!(cpu < MAX_CPUS, "CPU {cpu}: expected one below {MAX_CPUS}");
        let slot = ptr::from_ref(task.slot());
        Self { slot, cpu }
    }
}

/// The record of the running task of the calling CPU.
struct RunningHere {
    cpu: usize,
    record: &'static Record,
    /// The record of the task that was known to run there before this look.
    last: &'static Record,
}

impl RunningHere {
    const fn unchanged(cpu: usize, record: &'static Record) -> Self {
        let last = record;
        Self { cpu, record, last }
    }
}

/// The state of one CPU. Only that CPU writes it, except where a measurement begins. It is aligned so
/// that no other CPU writes to the same cache line.
#[repr(align(64))]
struct Cpu {
    /// While measuring, the record of the task that was picked last, or of a helper seen after it.
    running: RecordRef,
    /// The slot of the task that was picked last; null at first, when `main` runs. It is used if
    /// there is one queue and `connect` was not called.
    picked: AtomicPtr<Slot>,
    /// The label of the next spawn.
    next_label: LabelCell,
}

/// Stands for the slot of an idle task.
static IDLE_SLOT: Slot = Slot::new();

/// One recording: its calls, and the state that the layers around the schedulers share. The system
/// has one, [`RECORDING`](super::RECORDING), and tests make their own.
pub struct Recording {
    /// A measurement is under way.
    is_measuring: AtomicBool,
    /// The epoch of slots, which counts measurements. It is 1 before the first measurement.
    epoch: AtomicU32,
    /// `main` began the measurement before its first pick. It is recognised when it comes back.
    main_is_root: AtomicBool,
    queues: AtomicU32,
    policy: Once<&'static str>,
    here: Once<fn() -> Here>,
    /// The table of records, which the first measurement makes.
    recorder: Once<&'static Recorder>,
    cpus: [Cpu; MAX_CPUS],
    /// The profile of the last measurement. Its lock admits one call at a time.
    profile: SpinMutex<Option<StoredProfile>>,
}

impl Recording {
    /// Creates a recording that has not begun.
    pub const fn new() -> Self {
        Self {
            is_measuring: AtomicBool::new(false),
            epoch: AtomicU32::new(1),
            main_is_root: AtomicBool::new(false),
            queues: AtomicU32::new(0),
            policy: Once::new(),
            here: Once::new(),
            recorder: Once::new(),
            cpus: [const {
                Cpu {
                    running: RecordRef::nowhere(),
                    picked: AtomicPtr::new(ptr::null_mut()),
                    next_label: LabelCell::new(),
                }
            }; MAX_CPUS],
            profile: SpinMutex::new(None),
        }
    }

    /// Sets the function that returns the running task of the calling CPU. It is needed with several
    /// queues, and must be set before the first measurement. Only the first call has an effect.
    ///
    /// # Safety
    /// From the first measurement on, `here` must return what [`Here::new`] makes of the task that
    /// runs on the calling CPU. This must hold on every CPU and in every context. In an interrupt
    /// it is the task that was interrupted. That task, which may be idle, must be alive until the
    /// caller has returned.
    pub unsafe fn connect(&self, here: fn() -> Here) {
        self.here.call_once(|| here);
    }

    fn enter(&self) -> Result<SpinMutexGuard<'_, Option<StoredProfile>>, Error> {
        self.profile.try_lock().ok_or(Error::Contended)
    }

    /// Starts a measurement whose root is the caller; see `axsched_ext::syscall::measure_start`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn measure_start(&self) -> Result<(), Error> {
        let _one_at_a_time = self.enter()?;
        if self.is_measuring() {
            return Err(Error::AlreadyMeasuring);
        }
        if self.policy.get().is_none() {
            return Err(Error::NotBuiltIn); // no layer is in use
        }
        if self.here.get().is_none() && self.queues.load(Relaxed) > 1 {
            return Err(Error::NotConnected);
        }
        let recorder = *self.recorder.try_call_once(Recorder::leak)?;
        recorder.clear();
        for cpu in &self.cpus {
            cpu.running.set(&OUTSIDE);
            cpu.next_label.set(None);
        }
        let epoch = self.epoch.load(Relaxed).wrapping_add(1).max(2);
        self.epoch.store(epoch, Relaxed);
        // The caller is the root. It runs, so no other code writes its slot.
        let slot = if let Some(here) = self.here.get() {
            here().slot
        } else {
            self.cpus[0].running.set(recorder.root());
            self.cpus[0].picked.load(Relaxed).cast_const()
        };
        self.main_is_root.store(slot.is_null(), Relaxed);
        // SAFETY: a slot that is not null belongs to the task that makes this call. `connect` promises
        // that, or the task is the last that was picked on the only queue.
        if let Some(slot) = unsafe { slot.as_ref() } {
            slot.set(epoch, recorder.root());
        }
        self.is_measuring.store(true, Release);
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
        let mut profile = self.enter()?;
        let (true, Some(recorder)) = (self.is_measuring(), self.recorder.get()) else {
            return Err(Error::NotMeasuring);
        };
        let name = self.policy.get().copied().unwrap_or_default();
        let policy = PolicyName::new(name).map_err(|_| Error::BadLabel)?;
        // On several CPUs the running task may change while it is read.
        let alone = self
            .here
            .get()
            .is_none()
            .then(|| self.cpus[0].running.get());
        let has_cpu = |record: &Record| alone.is_some_and(|alone| ptr::eq(record, alone));
        let (tasks, left_out) = recorder.read(C::now(), has_cpu)?;
        let len = tasks.len();
        let unrecorded = left_out + recorder.unrecorded();
        *profile = Some(StoredProfile {
            header: header(policy, unrecorded, recorder.start()),
            tasks,
            order: None,
        });
        self.is_measuring.store(false, Release);
        Ok(len)
    }

    /// Gives a label to the next task that is spawned from the calling CPU; see
    /// `axsched_ext::syscall::label_next`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn label_next(&self, label: &str) -> Result<(), Error> {
        let label = Label::new(label).map_err(|_| Error::BadLabel)?;
        if self.is_measuring() {
            let cpu = self.here.get().map_or(0, |here| here().cpu);
            self.cpus[cpu].next_label.set(Some(&label));
        }
        Ok(())
    }

    /// Returns the profile of the last measurement that has ended, if there is one. `about` goes into
    /// its header.
    ///
    /// # Errors
    /// Returns [`Error::Contended`] if another call is under way, or [`Error::NoMemory`].
    pub fn profile(&self, about: &About) -> Result<Option<StoredProfile>, Error> {
        let profile = self.enter()?;
        let profile = profile.as_ref();
        profile.map(|profile| described(profile, about)).transpose()
    }

    /// Returns true if a measurement is under way.
    #[inline(always)]
    pub fn is_measuring(&self) -> bool {
        self.is_measuring.load(Acquire)
    }

    /// Counts a queue, which has this policy.
    pub(super) fn register_queue(&self, policy: &'static str) {
        self.policy.call_once(|| policy);
        self.queues.fetch_add(1, Relaxed);
    }

    fn recorder(&self) -> &'static Recorder {
        self.recorder.get().expect("a measurement has one")
    }

    /// Returns the calling CPU, or 0 if `connect` was not called.
    pub(super) fn cpu_here(&self) -> usize {
        self.here.get().map_or(0, |here| here().cpu)
    }

    /// Returns the calling CPU, and the record of its running task.
    ///
    /// A migration helper runs without having been picked. Then the task that was picked has left its
    /// CPU, and this ends its run interval.
    fn running_here(&self, now: Counts) -> RunningHere {
        let Some(here) = self.here.get() else {
            return RunningHere::unchanged(0, self.cpus[0].running.get());
        };
        let here = here();
        let running = &self.cpus[here.cpu].running;
        let last = running.get();
        if ptr::eq(last, &IDLE) {
            return RunningHere::unchanged(here.cpu, last); // until the next pick
        }
        // SAFETY: the task that runs here is alive, by the promise of `connect`.
        let slot = unsafe { &*here.slot };
        let record = slot.record(self.epoch.load(Relaxed));
        if !ptr::eq(last, record) {
            last.end_interval(now);
            running.set(record);
        }
        RunningHere {
            cpu: here.cpu,
            record,
            last,
        }
    }

    /// Returns the record of a task that comes back to a queue.
    #[inline]
    fn known(&self, slot: &Slot) -> &'static Record {
        let epoch = self.epoch.load(Relaxed);
        if slot.is_new() && self.main_is_root.load(Relaxed) {
            slot.set(epoch, self.recorder().root());
        }
        slot.record(epoch)
    }

    /// Notes that the task with this slot is added to a queue. While measuring, that is a spawn.
    pub(super) fn added(&self, slot: &Slot, now: impl FnOnce() -> Counts) {
        let epoch = self.epoch.load(Relaxed);
        if !self.is_measuring() {
            return slot.set(epoch, &OUTSIDE);
        }
        let now = now();
        let RunningHere { cpu, record, .. } = self.running_here(now);
        let next_label = &self.cpus[cpu].next_label;
        let label = next_label.get();
        if label.is_some() {
            next_label.set(None);
        }
        slot.set(
            epoch,
            self.recorder().spawned(cpu, record, label.as_ref(), now),
        );
    }

    /// Notes, while measuring, that a task comes back to the queue of the CPU `of_queue`, if that CPU
    /// is known.
    #[inline]
    pub(super) fn put_back(
        &self,
        slot: &Slot,
        preempt: bool,
        of_queue: Option<usize>,
        now: impl FnOnce() -> Counts,
    ) {
        let record = slot.record(self.epoch.load(Relaxed));
        // All tasks without a record share one, and `main` has that one until it is recognised.
        let is_recorded = !ptr::eq(record, &OUTSIDE);
        let is_running = |cpu: usize| ptr::eq(record, self.cpus[cpu].running.get());
        if !preempt && is_recorded && of_queue.is_some_and(is_running) {
            return; // it yields, and a record does not count yields
        }
        self.put_otherwise(slot, preempt, now());
    }

    /// Notes a task that comes back and does not seem to yield. It is woken, preempted or moved.
    #[inline(never)]
    fn put_otherwise(&self, slot: &Slot, preempt: bool, now: Counts) {
        let record = self.known(slot);
        let here = self.running_here(now);
        if !ptr::eq(here.record, record) {
            if !ptr::eq(here.last, record) {
                self.recorder().woken(here.cpu, record, here.record, now);
            } // otherwise a helper moves it away from this CPU
        } else if preempt {
            self.recorder().preempted(here.cpu, record, now);
        }
    }

    /// Ends the run interval of the running task on `cpu`, while measuring and before a pick.
    #[inline(always)]
    pub(super) fn end_interval(&self, cpu: usize, now: Counts) {
        self.cpus[cpu].running.get().end_interval(now);
    }

    /// Begins, while measuring, the run interval of the task that a pick on `cpu` has chosen. Without
    /// a slot the CPU is idle.
    #[inline(always)]
    pub(super) fn begin_interval(&self, cpu: usize, slot: Option<&Slot>, now: Counts) {
        let record = match slot {
            Some(slot) => slot.record(self.epoch.load(Relaxed)),
            None => &IDLE,
        };
        record.begin_interval(now);
        self.cpus[cpu].running.set(record);
    }

    /// Keeps the slot of the task that a pick has chosen, if there was one. The slot identifies the
    /// running task if there is one queue and `connect` was not called.
    #[inline(always)]
    pub(super) fn picked(&self, slot: Option<&Slot>) {
        if !self.here.is_completed() {
            let slot = ptr::from_ref(slot.unwrap_or(&IDLE_SLOT)).cast_mut();
            self.cpus[0].picked.store(slot, Relaxed);
        }
    }

    /// Notes, while measuring, a tick that has hit the running task of the calling CPU.
    pub(super) fn ticked(&self, asks: bool, now: Counts) {
        let cpu = self.running_here(now).cpu;
        self.recorder().tick(cpu, asks, now);
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self::new()
    }
}
