//! The calls, and what all queues share.

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
    /// This task, on this CPU, counted from 0.
    ///
    /// # Panics
    /// If there can be no such CPU: `cpu` is not below [`MAX_CPUS`].
    pub fn new<S: Subject>(task: &RecordedTask<S>, cpu: usize) -> Self {
        assert!(cpu < MAX_CPUS, "CPU {cpu}: expected one below {MAX_CPUS}");
        let slot = ptr::from_ref(task.slot());
        Self { slot, cpu }
    }
}

/// The running task of the calling CPU, as far as it is recorded.
struct Runs {
    cpu: usize,
    record: &'static Record,
    /// The record of who was known to run there until this was asked.
    last: &'static Record,
}

impl Runs {
    const fn still(cpu: usize, record: &'static Record) -> Self {
        let last = record;
        Self { cpu, record, last }
    }
}

/// What is known of a CPU. It alone writes it, but where a measurement begins. Aligned, so that no
/// other CPU writes into the same line of the cache.
#[repr(align(64))]
struct Cpu {
    /// While measuring, the record of who was picked last, or is known to have come after.
    running: RecordRef,
    /// The slot of who was picked last; null at first, when `main` runs. Looked at where there is
    /// one queue and nobody has connected.
    picked: AtomicPtr<Slot>,
    /// The label of the next spawn.
    next_label: LabelCell,
}

/// In place of an idle task's slot.
static NOBODYS: Slot = Slot::new();

/// One recording: its calls, and what the layers around the schedulers share. There is one for
/// the system, [`RECORDING`](super::RECORDING); tests make their own.
pub struct Recording {
    /// Whether a measurement is under way.
    is_measuring: AtomicBool,
    /// Counts measurements, from 1, which is before the first: a slot's epoch.
    epoch: AtomicU32,
    /// `main` began the measurement before its first pick: it is known when it comes back.
    main_is_root: AtomicBool,
    queues: AtomicU32,
    policy: Once<&'static str>,
    here: Once<fn() -> Here>,
    /// Made by the first measurement.
    recorder: Once<&'static Recorder>,
    cpus: [Cpu; MAX_CPUS],
    /// The calls, one at a time, and the profile of the last measurement.
    profile: SpinMutex<Option<StoredProfile>>,
}

impl Recording {
    /// A recording that has not begun.
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

    /// From now on asks `here` who runs where a call comes from. Needed with several queues, and
    /// called before the first measurement. The first call counts.
    ///
    /// # Safety
    /// On whatever CPU and in whatever context it is called, from the first measurement on, `here`
    /// returns what [`Here::new`] makes of the task that runs there; in an interrupt that is the
    /// task that was interrupted. That task, which may be idle, is alive until the caller is back.
    pub unsafe fn connect(&self, here: fn() -> Here) {
        self.here.call_once(|| here);
    }

    fn enter(&self) -> Result<SpinMutexGuard<'_, Option<StoredProfile>>, Error> {
        self.profile.try_lock().ok_or(Error::Contended)
    }

    /// See `axsched_ext::syscall::measure_start`.
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
        // The caller is the root. It runs, so nobody else writes its slot.
        let slot = if let Some(here) = self.here.get() {
            here().slot
        } else {
            self.cpus[0].running.set(recorder.root());
            self.cpus[0].picked.load(Relaxed).cast_const()
        };
        self.main_is_root.store(slot.is_null(), Relaxed);
        // SAFETY: if there is one, it is that of the task that makes this call: by the promise of
        // `connect`, or as the last that was picked on the only queue.
        if let Some(slot) = unsafe { slot.as_ref() } {
            slot.set(epoch, recorder.root());
        }
        self.is_measuring.store(true, Release);
        Ok(())
    }

    /// See `axsched_ext::syscall::measure_end`.
    ///
    /// # Errors
    /// See the table in `axsched_ext::syscall`.
    pub fn measure_end(&self) -> Result<usize, Error> {
        self.measure_end_by::<CpuCounter>()
    }

    /// The same by another clock, for tests.
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
        });
        self.is_measuring.store(false, Release);
        Ok(len)
    }

    /// See `axsched_ext::syscall::label_next`. The spawn has to come from the
    /// same CPU.
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

    /// The profile of the last measurement that has ended, if there is one; `about` goes into its
    /// header.
    ///
    /// # Errors
    /// [`Error::Contended`], [`Error::NoMemory`].
    pub fn profile(&self, about: &About) -> Result<Option<StoredProfile>, Error> {
        let profile = self.enter()?;
        let profile = profile.as_ref();
        profile.map(|profile| described(profile, about)).transpose()
    }

    /// Whether a measurement is under way.
    #[inline(always)]
    pub fn is_measuring(&self) -> bool {
        self.is_measuring.load(Acquire)
    }

    /// A queue is there, with this policy.
    pub(super) fn register_queue(&self, policy: &'static str) {
        self.policy.call_once(|| policy);
        self.queues.fetch_add(1, Relaxed);
    }

    fn recorder(&self) -> &'static Recorder {
        self.recorder.get().expect("a measurement has one")
    }

    /// Where a call comes from.
    pub(super) fn cpu_here(&self) -> usize {
        self.here.get().map_or(0, |here| here().cpu)
    }

    /// Returns the calling CPU, and its running task.
    ///
    /// A migration helper runs without having been picked: then who was picked has left its CPU,
    /// and its run interval ends.
    fn running_here(&self, now: Counts) -> Runs {
        let Some(here) = self.here.get() else {
            return Runs::still(0, self.cpus[0].running.get());
        };
        let here = here();
        let running = &self.cpus[here.cpu].running;
        let last = running.get();
        if ptr::eq(last, &IDLE) {
            return Runs::still(here.cpu, last); // until the next pick
        }
        // SAFETY: the task that runs here is alive, by the promise of `connect`.
        let slot = unsafe { &*here.slot };
        let record = slot.record(self.epoch.load(Relaxed));
        if !ptr::eq(last, record) {
            last.ends(now);
            running.set(record);
        }
        Runs {
            cpu: here.cpu,
            record,
            last,
        }
    }

    /// The record of a task that comes back.
    #[inline]
    fn known(&self, slot: &Slot) -> &'static Record {
        let epoch = self.epoch.load(Relaxed);
        if slot.is_new() && self.main_is_root.load(Relaxed) {
            slot.set(epoch, self.recorder().root());
        }
        slot.record(epoch)
    }

    /// A task is added that has this slot.
    pub(super) fn added(&self, slot: &Slot, now: impl FnOnce() -> Counts) {
        let epoch = self.epoch.load(Relaxed);
        if !self.is_measuring() {
            return slot.set(epoch, &OUTSIDE);
        }
        let now = now();
        let Runs { cpu, record, .. } = self.running_here(now);
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

    /// While measuring, a task comes back, to the queue of the CPU `of_queue`, if that is known.
    #[inline]
    pub(super) fn put_back(
        &self,
        slot: &Slot,
        preempt: bool,
        of_queue: Option<usize>,
        now: impl FnOnce() -> Counts,
    ) {
        let record = slot.record(self.epoch.load(Relaxed));
        // Those without a record share one, and who seems to be of them may be `main`.
        let is_recorded = !ptr::eq(record, &OUTSIDE);
        let is_running = |cpu: usize| ptr::eq(record, self.cpus[cpu].running.get());
        if !preempt && is_recorded && of_queue.is_some_and(is_running) {
            return; // it yields, of which a record has no count
        }
        self.put_otherwise(slot, preempt, now());
    }

    /// A task comes back, and does not yield, as far as its queue can tell.
    #[inline(never)]
    fn put_otherwise(&self, slot: &Slot, preempt: bool, now: Counts) {
        let record = self.known(slot);
        let runs = self.running_here(now);
        if !ptr::eq(runs.record, record) {
            if !ptr::eq(runs.last, record) {
                self.recorder().woken(runs.cpu, record, runs.record, now);
            } // else it is moved from here
        } else if preempt {
            self.recorder().preempted(runs.cpu, record);
        }
    }

    /// While measuring, whoever runs on `cpu` gives way; before the pick.
    #[inline(always)]
    pub(super) fn leaves(&self, cpu: usize, now: Counts) {
        self.cpus[cpu].running.get().ends(now);
    }

    /// While measuring, a pick on `cpu` has chosen the task with this slot, or nobody.
    #[inline(always)]
    pub(super) fn runs(&self, cpu: usize, slot: Option<&Slot>, now: Counts) {
        let record = match slot {
            Some(slot) => slot.record(self.epoch.load(Relaxed)),
            None => &IDLE,
        };
        record.begins(now);
        self.cpus[cpu].running.set(record);
    }

    /// A pick has chosen the task with this slot, or nobody: who that was has to be known where
    /// there is one queue and nobody has connected.
    #[inline(always)]
    pub(super) fn picked(&self, slot: Option<&Slot>) {
        if !self.here.is_completed() {
            let slot = ptr::from_ref(slot.unwrap_or(&NOBODYS)).cast_mut();
            self.cpus[0].picked.store(slot, Relaxed);
        }
    }

    /// While measuring, a tick has hit the task that runs here.
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
