//! The calls: recording, the profile, the plan, the replay.

use alloc::{boxed::Box, string::ToString, vec::Vec};
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use ax_task::{
    sched::{RtPriority, SchedulePolicy},
    thread::{ThreadBuilder, ThreadHandle, ThreadId, current},
};
use pbg::{BasePolicy, Error, LoadError, Mode, Plan, Status, StoreError};
use pbg_profile::{Label, PolicyName, StoredProfile};
use pbg_record::{
    About,
    cell::LabelCell,
    described::{described, header},
    recorder::Recorder,
};
use sched_core::{
    clock::{Clock, CpuCounter},
    units::TaskKey,
};
use spin::mutex::{SpinMutex, SpinMutexGuard};

use crate::{BASE_RANK, ROOT_RANK, WATCH_NS, replay::Replay};

/// The stack of the watcher.
const WATCHER_STACK_BYTES: usize = 16 * 1024;

const IDLE: u8 = 0;
const MEASURING: u8 = 1;
const REPLAYING: u8 = 2;

struct Inner {
    recorder: Option<&'static Recorder>,
    profile: Option<StoredProfile>,
    base: BasePolicy,
    /// The policy of the root before the measurement.
    before: SchedulePolicy,
}

/// PBG of this system.
pub static CONTROL: Control = Control {
    mode: AtomicU8::new(IDLE),
    root: AtomicU64::new(0),
    roots_children: AtomicU64::new(0),
    base: AtomicU8::new(0),
    recorder: AtomicPtr::new(core::ptr::null_mut()),
    replay: AtomicPtr::new(core::ptr::null_mut()),
    next_label: LabelCell::new(),
    inner: SpinMutex::new(Inner {
        recorder: None,
        profile: None,
        base: BasePolicy::RoundRobin,
        before: SchedulePolicy::Fair {
            nice: ax_task::sched::Nice::ZERO,
            mode: ax_task::sched::FairMode::Normal,
        },
    }),
};

/// The calls of PBG, and the state that the hooks see.
pub struct Control {
    mode: AtomicU8,
    /// The number of the root's thread.
    root: AtomicU64,
    roots_children: AtomicU64,
    /// 1 if a measurement runs under FIFO.
    base: AtomicU8,
    recorder: AtomicPtr<Recorder>,
    replay: AtomicPtr<Replay>,
    next_label: LabelCell,
    inner: SpinMutex<Inner>,
}

/// Returns the FIFO policy of this rank.
pub(crate) fn fifo(rank: u8) -> SchedulePolicy {
    SchedulePolicy::fifo(RtPriority::new(rank).expect("1 to 99 are ranks"))
}

impl Control {
    fn enter(&self) -> Result<SpinMutexGuard<'_, Inner>, Error> {
        self.inner.try_lock().ok_or(Error::Contended)
    }

    /// Returns the calling thread, or an error if there is more than one CPU.
    fn caller() -> Result<ThreadHandle, Error> {
        let caller = current::current_thread_handle().map_err(|_| Error::NotSupported)?;
        let cpus = caller.affinity().map_err(|_| Error::NotSupported)?;
        match cpus.topology_len() {
            1 => Ok(caller),
            _ => Err(Error::NotSupported),
        }
    }

    /// Makes the calling thread the root, of the highest rank.
    fn take_root(&self, caller: &ThreadHandle) -> Result<(), Error> {
        caller
            .set_policy(fifo(ROOT_RANK))
            .map_err(|_| Error::NotSupported)?;
        self.root.store(caller.id().as_u64(), Relaxed);
        self.roots_children.store(0, Relaxed);
        Ok(())
    }

    /// Starts to measure the threads that the caller and its descendants spawn from now on.
    ///
    /// # Errors
    /// Returns an error if a measurement or a replay is under way, if there is no memory, or if there are several
    /// CPUs. Nothing has changed then.
    pub fn measure_start_under(&self, base: BasePolicy) -> Result<(), Error> {
        let mut inner = self.enter()?;
        match self.mode.load(Relaxed) {
            IDLE => {}
            MEASURING => return Err(Error::AlreadyMeasuring),
            _ if self.has_replayed() => {}
            _ => return Err(Error::Replaying),
        }
        let caller = Self::caller()?;
        let recorder = match inner.recorder {
            Some(recorder) => recorder,
            None => Recorder::leak()?,
        };
        inner.recorder = Some(recorder);
        inner.base = base;
        inner.before = caller.base_policy();
        self.take_root(&caller)?;
        recorder.clear();
        self.base.store(u8::from(base == BasePolicy::Fifo), Relaxed);
        self.recorder
            .store((&raw const *recorder).cast_mut(), Relaxed);
        self.mode.store(MEASURING, Release);
        Ok(())
    }

    /// Ends the measurement, and returns the number of recorded tasks. The caller gets the policy back that it
    /// had before.
    ///
    /// # Errors
    /// Returns an error if none is under way, or if there is no memory.
    pub fn measure_end(&self) -> Result<usize, Error> {
        let mut inner = self.enter()?;
        let (MEASURING, Some(recorder)) = (self.mode.load(Relaxed), inner.recorder) else {
            return Err(Error::NotMeasuring);
        };
        let (tasks, left_out) = recorder.read(CpuCounter::now(), |_| false)?;
        let policy = match inner.base {
            BasePolicy::RoundRobin => "guest-rr",
            BasePolicy::Fifo => "guest-fifo",
        };
        let policy = PolicyName::new(policy).expect("a name of a policy");
        let unrecorded = left_out + recorder.unrecorded();
        let len = tasks.len();
        inner.profile = Some(StoredProfile {
            header: header(policy, unrecorded, recorder.start()),
            tasks,
            order: None,
        });
        self.mode.store(IDLE, Release);
        let caller = Self::caller()?;
        caller
            .set_policy(inner.before)
            .map_err(|_| Error::NotSupported)?;
        Ok(len)
    }

    /// Loads a stored profile in place of a measurement. Returns the number of its tasks.
    ///
    /// # Errors
    /// Returns a [`LoadError`] if the bytes or the mode do not allow it. Nothing has changed then.
    pub fn load(&self, bytes: &[u8], about: &About) -> Result<usize, LoadError> {
        let profile = pbg::fitting_profile(bytes, about)?;
        let mut inner = self.enter()?;
        match self.mode.load(Relaxed) {
            IDLE => {}
            MEASURING => return Err(Error::Measuring.into()),
            _ if self.has_replayed() => {}
            _ => return Err(Error::Replaying.into()),
        }
        let tasks = profile.tasks.len();
        inner.profile = Some(profile);
        Ok(tasks)
    }

    /// Starts to follow the plan, and returns its number of tasks. The replay lasts until all of them have ended, or
    /// the plan is dropped. Its memory, 104 bytes a task, is not freed.
    ///
    /// # Errors
    /// Returns an error if there is no profile, if a measurement or a replay is under way, if there is no memory,
    /// or if there are several CPUs. Nothing has changed then.
    pub fn start_pbg(&self) -> Result<usize, Error> {
        let inner = self.enter()?;
        match self.mode.load(Relaxed) {
            IDLE => {}
            MEASURING => return Err(Error::Measuring),
            _ if self.has_replayed() => {}
            _ => return Err(Error::AlreadyReplaying),
        }
        let caller = Self::caller()?;
        let profile = inner.profile.as_ref().ok_or(Error::NoProfile)?;
        let replay: &'static Replay = Box::leak(Box::new(Replay::of(&Plan::of(profile)?)?));
        self.take_root(&caller)?;
        self.replay.store((&raw const *replay).cast_mut(), Relaxed);
        self.mode.store(REPLAYING, Release);
        let watcher = ThreadBuilder::new("pbg-watcher".to_string())
            .stack_size(WATCHER_STACK_BYTES)
            .policy(fifo(ROOT_RANK));
        let watcher = watcher.spawn(|| watch(replay));
        watcher.map_err(|_| Error::NoMemory)?.detach();
        Ok(replay.entries.len())
    }

    /// Returns the plan that [`start_pbg`](Self::start_pbg) would follow now, if there is a profile.
    ///
    /// # Errors
    /// Returns [`Error::Contended`] or [`Error::NoMemory`].
    pub fn plan(&self) -> Result<Option<Plan>, Error> {
        let inner = self.enter()?;
        inner.profile.as_ref().map(Plan::of).transpose()
    }

    /// Returns the present profile as data, if there is one. `about` goes into the header of a measurement.
    ///
    /// # Errors
    /// Returns [`Error::Contended`] or [`Error::NoMemory`].
    pub fn profile(&self, about: &About) -> Result<Option<StoredProfile>, Error> {
        let inner = self.enter()?;
        let Some(profile) = &inner.profile else {
            return Ok(None);
        };
        described(profile, about).map(Some)
    }

    /// Returns the present profile as bytes.
    ///
    /// # Errors
    /// Returns an error if there is none, or if no machine can be as `about` says.
    pub fn profile_bytes(&self, about: &About) -> Result<Vec<u8>, StoreError> {
        let profile = self.profile(about)?.ok_or(Error::NoProfile)?;
        pbg_profile::encode(&profile).map_err(StoreError::Encode)
    }

    /// Gives a label to the next thread that is spawned, which becomes its key.
    ///
    /// # Errors
    /// Returns [`Error::BadLabel`].
    pub fn label_next(&self, label: &str) -> Result<(), Error> {
        let label = Label::new(label).map_err(|_| Error::BadLabel)?;
        self.next_label.set(Some(&label));
        Ok(())
    }

    /// Returns the phase that PBG is in, and the progress of the replay.
    ///
    /// # Errors
    /// Returns none yet: the result is as in the crate `pbg`.
    pub fn status(&self) -> Result<Status, Error> {
        if let Some(replay) = self.replaying() {
            return Ok(replay.status());
        }
        let mode = match self.measuring() {
            Some(_) => Mode::Measuring,
            None => Mode::Idle,
        };
        Ok(Status {
            mode,
            ..Status::default()
        })
    }

    /// Takes the label for the thread that is being spawned.
    pub(crate) fn take_label(&self) -> Option<Label> {
        let label = self.next_label.get()?;
        self.next_label.set(None);
        Some(label)
    }

    /// Returns the recorder while a measurement is under way.
    #[inline]
    pub(crate) fn measuring(&self) -> Option<&'static Recorder> {
        if self.mode.load(Acquire) != MEASURING {
            return None;
        }
        // SAFETY: it was stored before the mode, and is never freed.
        unsafe { self.recorder.load(Relaxed).as_ref() }
    }

    /// Returns true if the replay that has begun is over.
    fn has_replayed(&self) -> bool {
        let is_over = |replay: &Replay| replay.is_dropped.load(Relaxed) || replay.is_over();
        self.replaying().is_some_and(is_over)
    }

    /// Returns the replay, if it has begun.
    pub(crate) fn replaying(&self) -> Option<&'static Replay> {
        if self.mode.load(Acquire) != REPLAYING {
            return None;
        }
        // SAFETY: it was stored before the mode, and is never freed.
        unsafe { self.replay.load(Relaxed).as_ref() }
    }

    /// Returns the policy of the threads that are measured.
    pub(crate) fn base_policy(&self) -> SchedulePolicy {
        let rank = RtPriority::new(BASE_RANK).expect("1 to 99 are ranks");
        match self.base.load(Relaxed) {
            0 => SchedulePolicy::round_robin(rank),
            _ => SchedulePolicy::fifo(rank),
        }
    }

    /// Returns true if this thread is the root.
    pub(crate) fn is_root(&self, thread: ThreadId) -> bool {
        self.root.load(Relaxed) == thread.as_u64()
    }

    /// Returns the key of the root's next child.
    pub(crate) fn roots_next_key(&self) -> TaskKey {
        TaskKey::ROOT.child(self.roots_children.fetch_add(1, Relaxed) as u32)
    }
}

/// Looks for tasks beyond their record until the replay ends (rules 6 and 7).
fn watch(replay: &Replay) {
    let make_fair = |thread: u64| {
        let id = ThreadId::from_parts(thread as u32, (thread >> 32) as u32);
        // A thread that has ended meanwhile is not found.
        if let Ok(thread) = ThreadHandle::lookup(id) {
            let _ = thread.set_policy(SchedulePolicy::default());
        }
    };
    while !replay.is_over() {
        current::sleep(core::time::Duration::from_nanos(WATCH_NS));
        let mut is_dropped = false;
        for entry in replay.overrun() {
            if let Some(thread) = entry.ranked_thread() {
                make_fair(thread);
                is_dropped |= replay.demoted(entry);
            }
        }
        if is_dropped {
            replay.is_dropped.store(true, Relaxed);
            for entry in &replay.entries {
                if let Some(thread) = entry.ranked_thread() {
                    make_fair(thread);
                    entry.note_fair();
                }
            }
            return;
        }
    }
}
