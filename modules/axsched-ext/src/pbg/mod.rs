//! PBG: program-behaviour-guided scheduling.
//!
//! A unikernel runs the same program again and again. The first run is
//! measured, the measurement becomes a plan, later runs follow the plan:
//! profile-guided optimisation, for the scheduler. The idea, the three calls
//! and the shortest-job-first order are from Qin Ruoyu's report on scheduling
//! in ArceOS (Tsinghua University, 2023), which took its cue from Mira (Guo, He
//! and Zhang, SOSP 2023); there the measurement was constants in the test programs.
//!
//! **Who is who**
//!  1. The task that makes a starting call is the root. A task's key is its
//!     parent's key and its place among its parent's spawns, so it is the same
//!     on every run. Only the root's descendants have keys; the root itself,
//!     `gc`, helpers, and tasks older than the call are outside. (A spawn from a
//!     timer callback counts as one of the task that was interrupted.)
//!
//! **Measuring**
//!  2. Before, while, and unless a plan is followed, the base policy runs: round
//!     robin with 5 ticks ([`rr`], its rules).
//!  3. Each recorded task's on-CPU time is the sum of its bursts. A burst begins
//!     when the task is dispatched and ends when it yields, is preempted, blocks
//!     or exits.
//!  4. At most [`MAX_TASKS`] tasks are recorded; later ones run, unrecorded.
//!
//! **Following the plan**
//!  5. Planned tasks are ranked shortest on-CPU time first, ties by the order in
//!     which they were spawned. Of the planned tasks that are ready, the one with
//!     the lowest rank runs: it keeps the CPU across its own yields, without a
//!     context switch, and a lower rank that becomes ready takes over at the next
//!     yield or tick. A blocked task is simply not ready.
//!  6. A task whose key is not in the plan, or is taken already, runs from the
//!     fallback queue, round robin, whenever no planned task is ready.
//!  7. While tasks outside the plan and planned ones are both ready, one of the
//!     former gets a turn after every [`PLAN_TICKS`] ticks, until it gives way or
//!     for a whole tick. So they have at least one tick in `PLAN_TICKS` + 1 if
//!     they can use it, and one of n of them runs again within n × (`PLAN_TICKS`
//!     + 1) ticks.
//!  8. A planned task found beyond [`OVERRUN_FACTOR`] times its planned time by
//!     [`OVERRUN_TICKS`] ticks, or at [`OVERRUN_HANDOVERS`] handovers of the CPU,
//!     is demoted: it runs from the fallback queue from then on, and the rest of
//!     the plan stands. So a planned task waits for its predecessors' planned
//!     time twice, and for each for that many ticks or handovers; and for the
//!     tenth of rule 7.
//!
//! **Cost.** Measuring adds to a switch one counter read and the update of two
//! records, about 75 instructions on x86_64. Following the plan, a
//! yield that keeps the CPU moves one pointer aside and back; other picks are a
//! find-first-set over two words, and the counter is read only when the CPU
//! changes hands.
//! Nothing allocates in pick, put or tick: the calls do.
//!
//! **Limits.** One CPU ([`syscall`](crate::syscall)). Ticks and preemption
//! (`axtask/preempt`) are needed for rules 7 and 8.

mod control;
mod measure;
mod plan;
mod profile;
mod replay;
pub mod stored;

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use control::{CONTROL, Control, Phase, Status};
pub use measure::MAX_TASKS;
pub use plan::{EQUAL_WITHIN, Late, Plan, PlannedTask, Step};
pub use profile::{Profile, TaskProfile};
pub use replay::{OVERRUN_FACTOR, OVERRUN_HANDOVERS, OVERRUN_TICKS, PLAN_TICKS};

use crate::clock::{Clock, CpuCounter};
use crate::event::{Adapter, Policy, Remember, Return, Tick};
use crate::queue::Queue;
use crate::rr::{self, RrState};
use crate::task::{Fresh, Task};
use crate::units::Counts;
use control::Order;
use measure::Recorder;
use replay::Replay;

/// Timer ticks in a slice of the base policy and of the fallback queue.
pub const SLICE_TICKS: usize = 5;

/// A task under [`PbgScheduler`].
pub type PbgTask<T> = Task<T, PbgState>;
/// The PBG scheduler; `C` is where it reads the time.
pub type PbgScheduler<T, C = CpuCounter> = Adapter<Pbg<T, C>>;

/// Which of the program's tasks somebody is, in the present epoch: an index
/// into the record or the plan, or one of two that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct Member(u32);

impl Member {
    const OUTSIDE: Self = Self(u32::MAX);
    const ROOT: Self = Self(u32::MAX - 1);

    /// The index of a recorded or planned task.
    #[inline]
    const fn index(self) -> Option<usize> {
        if self.0 < Self::ROOT.0 {
            Some(self.0 as usize)
        } else {
            None
        }
    }
}

/// What PBG remembers of a task. Relaxed: see LOCK in [`task`](crate::task).
pub struct PbgState {
    slice: RrState<SLICE_TICKS>,
    /// The epoch and the [`Member`] of it that this task is. 0 is a task that was
    /// never added: `main`, or a migration helper.
    tag: AtomicU64,
}

impl PbgState {
    #[inline]
    fn set(&self, epoch: u32, member: Member) {
        self.tag
            .store((epoch as u64) << 32 | member.0 as u64, Relaxed);
    }
}

impl Fresh for PbgState {
    const FRESH: Self = Self {
        slice: RrState::FRESH,
        tag: AtomicU64::new(0),
    };
}

impl AsRef<RrState<SLICE_TICKS>> for PbgState {
    #[inline]
    fn as_ref(&self) -> &RrState<SLICE_TICKS> {
        &self.slice
    }
}

#[expect(
    clippy::large_enum_variant,
    reason = "one per CPU, and on the hot path"
)]
enum Mode<T> {
    Base,
    Measure(&'static Recorder),
    Replay(Replay<T>),
}

/// The task that has the CPU, or, until the next dispatch, the one that had it last.
struct Running {
    /// Compared, never followed; null is the idle task, and `main` before its first pick.
    address: *const (),
    member: Member,
    since: Counts,
}

/// See the [module documentation](self).
pub struct Pbg<T, C> {
    control: &'static Control,
    /// The epoch of `control` that this queue follows; 0 before its first task.
    epoch: u32,
    mode: Mode<T>,
    /// Every ready task in base mode; in replay, those that run from the fallback queue.
    queue: Queue<T, PbgState>,
    running: Running,
    /// KEEP: set only if the running task follows the plan, and nothing has
    /// become ready and no tick has asked for the CPU since it was dispatched.
    /// Then nobody can be before it, and when it yields it goes on at once.
    keeps: bool,
    /// The running task, between its yield and the pick that gives it the CPU back.
    held: Option<Arc<PbgTask<T>>>,
    /// Address of the root; null if that is `main` before its first pick.
    root: *const (),
    clock: PhantomData<C>,
}

// SAFETY: the raw pointers are compared only, the queue and the replay own
// their tasks, and `C` is only a name.
unsafe impl<T: Send + Sync, C> Send for Pbg<T, C> {}

impl<T, C: Clock> Pbg<T, C> {
    /// PBG under a control of its own, for tests: the calls go to `control`.
    pub const fn with_control(control: &'static Control) -> Self {
        Self {
            control,
            epoch: 0,
            mode: Mode::Base,
            queue: Queue::new(),
            running: Running {
                address: core::ptr::null(),
                member: Member::OUTSIDE,
                since: Counts::ZERO,
            },
            keeps: false,
            held: None,
            root: core::ptr::null(),
            clock: PhantomData,
        }
    }

    /// Follows what the calls have decided since the last look.
    ///
    /// Only `spawned` and `dispatch` look: until one of them comes, nothing
    /// happens that depends on it. The running task is still the caller then,
    /// which is how the root is known.
    #[inline(always)]
    fn follow(&mut self) {
        if self.control.epoch() != self.epoch {
            self.adopt();
        }
    }

    #[cold]
    fn adopt(&mut self) {
        // A call holds the lock at this moment: the epoch is left as it was, to
        // look again.
        let Some((epoch, order)) = self.control.take_order() else {
            return;
        };
        if self.epoch == 0 {
            self.control.register_queue(); // this is `gc`, the queue's first task
        }
        self.epoch = epoch;
        let Some(order) = order else { return };
        self.root = self.running.address;
        self.running.member = Member::ROOT;
        self.running.since = C::now();
        self.mode = match order {
            Order::Stop => Mode::Base,
            Order::Measure(recorder) => {
                // Here and not in the call: until now this queue may have written
                // into the record of the measurement before.
                recorder.clear();
                Mode::Measure(recorder)
            }
            Order::Replay(table) => Mode::Replay(Replay::new(table)),
        };
    }

    /// Who `task` is in this epoch.
    #[inline(always)]
    fn member(&self, task: &Arc<PbgTask<T>>) -> Member {
        let tag = task.state().tag.load(Relaxed);
        if (tag >> 32) as u32 == self.epoch {
            Member(tag as u32)
        } else {
            self.recognise(task, tag)
        }
    }

    /// A task that is older than the epoch is its root or outside.
    #[cold]
    fn recognise(&self, task: &Arc<PbgTask<T>>, tag: u64) -> Member {
        let is_root = if self.root.is_null() {
            // Then the root is `main`, which was never picked nor added, and keeps
            // the tag of such a task until it is picked: in the epochs until then it
            // must be found again. On one CPU no other task that was never added
            // comes back (migration helpers do, on several).
            if tag == 0 {
                return Member::ROOT;
            }
            false
        } else {
            Arc::as_ptr(task).cast() == self.root
        };
        let member = if is_root {
            Member::ROOT
        } else {
            Member::OUTSIDE
        };
        task.state().set(self.epoch, member);
        member
    }

    /// Puts a task where it waits for its turn.
    fn make_ready(&mut self, task: Arc<PbgTask<T>>, why: Return) {
        let member = self.member(&task);
        match &mut self.mode {
            Mode::Base => {}
            Mode::Measure(recorder) => recorder.returned(member, why),
            Mode::Replay(replay) if replay.follows(member) => return replay.ready(member, task),
            Mode::Replay(_) => {}
        }
        rr::requeue(&mut self.queue, task, why);
    }

    /// `task` has the CPU from now on. Measured time begins.
    #[inline]
    fn running(&mut self, task: Option<&Arc<PbgTask<T>>>, now: Counts) {
        self.running = match task {
            Some(task) => Running {
                address: Arc::as_ptr(task).cast(),
                member: self.member(task),
                since: now,
            },
            None => Running {
                address: core::ptr::null(),
                member: Member::OUTSIDE,
                since: now,
            },
        };
    }
}

impl<T, C: Clock> Policy for Pbg<T, C> {
    type Inner = T;
    type State = PbgState;
    type Memory = Remember;
    const NAME: &'static str = "PBG";
    const NEW: Self = Self::with_control(&CONTROL);

    fn spawned(&mut self, task: Arc<PbgTask<T>>) {
        self.follow();
        self.keeps = false;
        let parent = self.running.member;
        let member = match &mut self.mode {
            Mode::Base => Member::OUTSIDE,
            Mode::Measure(recorder) => recorder.spawned(parent),
            Mode::Replay(replay) => replay.spawned(parent, self.control),
        };
        task.state().set(self.epoch, member);
        match &mut self.mode {
            Mode::Replay(replay) if replay.follows(member) => replay.ready(member, task),
            _ => self.queue.push_back(task),
        }
    }

    #[inline]
    fn returned(&mut self, task: Arc<PbgTask<T>>, why: Return) {
        if self.keeps && why == Return::Yielded {
            self.held = Some(task); // rule 5
        } else {
            self.keeps = false;
            self.make_ready(task, why);
        }
    }

    #[inline]
    fn left(&mut self) {
        if let Mode::Measure(recorder) = &self.mode {
            recorder.left(self.running.member);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<PbgTask<T>>> {
        self.follow();
        if let Some(task) = self.held.take() {
            if self.keeps {
                return Some(task);
            }
            // Another CPU has added a task since the yield.
            self.make_ready(task, Return::Yielded);
        }
        self.keeps = false;
        let next = match &mut self.mode {
            Mode::Base => {
                let next = self.queue.pop_front();
                self.running.address = next
                    .as_ref()
                    .map_or(core::ptr::null(), |t| Arc::as_ptr(t).cast());
                return next;
            }
            Mode::Measure(recorder) => {
                let recorder = *recorder;
                let now = C::now();
                recorder.ran(self.running.member, now - self.running.since);
                let last = self.running.address;
                let next = self.queue.pop_front();
                self.running(next.as_ref(), now);
                if self.running.address != last {
                    recorder.dispatched(self.running.member);
                }
                return next;
            }
            Mode::Replay(replay) => match replay.take_first(!self.queue.is_empty()) {
                Some((member, task)) => {
                    self.keeps = replay.follows(member);
                    if member == self.running.member {
                        return Some(task); // its burst goes on
                    }
                    Some(task)
                }
                None => {
                    replay.fallback_turn(self.control);
                    self.queue.pop_front()
                }
            },
        };
        let now = C::now();
        if let Mode::Replay(replay) = &mut self.mode {
            replay.ran(self.running.member, now - self.running.since, self.control);
        }
        self.running(next.as_ref(), now);
        next
    }

    fn ticked(&mut self, running: &Arc<PbgTask<T>>) -> Tick {
        let member = self.member(running);
        let Mode::Replay(replay) = &mut self.mode else {
            return running.state().slice.tick();
        };
        if replay.follows(member) {
            let burst = C::now() - self.running.since;
            let tick = replay.ticked(member, burst, !self.queue.is_empty(), self.control);
            self.keeps &= tick == Tick::Continue;
            if !replay.follows(member) {
                running.state().slice.end_turn(); // demoted: to the end of the queue
            }
            return tick;
        }
        if !replay.any_ready() {
            return running.state().slice.tick();
        }
        let tick = replay.ticked_outside(self.control);
        if tick == Tick::Reschedule {
            running.state().slice.end_turn();
        }
        tick
    }

    fn remove(&mut self, task: &Arc<PbgTask<T>>) -> Option<Arc<PbgTask<T>>> {
        let held = self.held.take_if(|held| Arc::ptr_eq(held, task));
        if held.is_some() {
            return held;
        }
        let member = self.member(task);
        if let Mode::Replay(replay) = &mut self.mode
            && let Some(task) = replay.remove(member, task)
        {
            return Some(task);
        }
        self.queue.remove(task)
    }
}

#[cfg(test)]
mod tests;
