//! The life of a task. It takes steps that follow from its seed.

use alloc::{format, sync::Arc};
use core::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*},
    time::Duration,
};

use axtask::{AxCpuMask, AxTaskExt, TaskInner};
use kernel_guard::NoPreemptIrqSave;

use super::{
    clock::{MS, now_ns, sleep_until_ns},
    lock::{LOCKS, LOOK_AGAIN},
    random::{Random, seed_of},
    record::{Doing, Hook, PLACES, PLACES_OF, Record},
    watch,
};

const STACK_BYTES: usize = 16 * 1024;

/// The number of live tasks from which on no task spawns another.
pub const MOST_ALIVE: usize = 48;

/// The most children of a task.
const MOST_CHILDREN: u64 = 2;
/// The distance from main at which tasks have no children. The tasks that main spawns are at
/// distance 0.
const DEEPEST: u32 = 2;

/// The number of tasks that are alive, including those that main spawned.
pub static ALIVE: AtomicUsize = AtomicUsize::new(0);
/// The most tasks that were alive at once.
pub static MOST: AtomicUsize = AtomicUsize::new(0);
/// The number of tasks that have been spawned, which is also the last id.
pub static SPAWNED: AtomicU32 = AtomicU32::new(0);
/// The number of tasks that have ended their work.
pub static ENDED: AtomicU32 = AtomicU32::new(0);
/// The number of steps of each kind.
pub static STEPS: [AtomicU64; Doing::ALL.len()] = [const { AtomicU64::new(0) }; Doing::ALL.len()];
/// The number of waits that no task has ended before their limit.
pub static NOT_WOKEN: AtomicU64 = AtomicU64::new(0);
/// The number of priorities that the policy accepted.
pub static PRIORITIES: AtomicU64 = AtomicU64::new(0);
/// True if tasks forbid themselves the CPU that they run on (`Planted::Outside`).
pub static TO_BREAK_OUTSIDE: AtomicBool = AtomicBool::new(false);
/// True if tasks release their locks early (`Planted::Lock`).
pub static TO_BREAK_LOCK: AtomicBool = AtomicBool::new(false);

/// Returns the mask of all CPUs, a bit each.
pub fn all_cpus() -> u32 {
    u32::MAX >> (32 - axhal::cpu_num())
}

/// Spawns the task of this seed, at distance `depth` from main.
pub fn spawn(seed: u64, depth: u32, parent: Option<&Arc<Record>>) -> Arc<Record> {
    let parent = parent.cloned();
    let id = SPAWNED.fetch_add(1, Relaxed) + 1;
    let record = Arc::new(Record::new(id, parent, all_cpus()));
    if let Some(parent) = &record.parent {
        parent.children.fetch_add(1, Relaxed);
    }
    MOST.fetch_max(ALIVE.fetch_add(1, Relaxed) + 1, Relaxed);
    take_place(&record);
    let own = record.clone();
    spawn_recorded(&record, move || live(&own, seed, depth));
    record
}

/// Spawns a task that calls `act` and is known by `record`.
pub fn spawn_recorded(record: &Arc<Record>, act: impl FnOnce() + Send + 'static) {
    let mut task = TaskInner::new(act, format!("soak{}", record.id), STACK_BYTES);
    *task.task_ext_mut() = Some(AxTaskExt::from_impl(Hook(record.clone())));
    task.set_cpumask(mask_of(record.mask.load(Relaxed)));
    let task = axtask::spawn_task(task);
    *record.task.lock() = Some(Arc::downgrade(&task));
}

/// Gives a task a place, so that it is watched from now on.
pub fn take_place(record: &Arc<Record>) {
    let free = PLACES_OF.iter().any(|place| {
        let mut place = place.lock();
        let is_free = place.is_none();
        if is_free {
            *place = Some(record.clone());
        }
        is_free
    });
    assert!(free, "{PLACES} tasks are alive or not reclaimed");
}

pub fn mask_of(bits: u32) -> AxCpuMask {
    let mut mask = AxCpuMask::new();
    for cpu in 0..axhal::cpu_num() {
        mask.set(cpu, bits >> cpu & 1 != 0);
    }
    mask
}

/// Runs a task: its steps, the wait for its children, and its end.
fn live(own: &Arc<Record>, seed: u64, depth: u32) {
    watch::watch_this_cpu();
    let mut task = Life {
        own,
        random: Random::new(seed),
        seed,
        depth,
        spawned: 0,
    };
    let steps = 10 + task.random.below(120);
    for _ in 0..steps {
        task.step();
    }
    task.join();
    task.end();
}

struct Life<'a> {
    own: &'a Arc<Record>,
    random: Random,
    seed: u64,
    depth: u32,
    spawned: u64,
}

impl Life<'_> {
    fn step(&mut self) {
        match self.random.below(100) {
            0..22 => self.compute(),
            22..50 => self.run_step(Doing::Yield, axtask::yield_now),
            50..62 => self.sleep(),
            62..72 => self.wait(),
            72..80 => self.wake_any(),
            80..88 => self.use_lock(),
            88..91 => self.spawn_child(),
            91..93 => self.join(),
            93..95 => self.set_priority(),
            _ => self.change_affinity(),
        }
    }

    /// Begins a step of this kind, once it has checked that the task may run on its CPU.
    fn run_step<R>(&self, doing: Doing, act: impl FnOnce() -> R) -> R {
        let own = self.own;
        {
            // The task must not migrate between the two reads.
            let _guard = NoPreemptIrqSave::new();
            let (cpu, mask) = (axhal::percpu::this_cpu_id(), own.mask.load(Relaxed));
            if mask >> cpu & 1 == 0 {
                watch::OUTSIDE.store(own.id, Relaxed);
            }
            own.doing.store(doing as u8, Relaxed);
            own.step_ns.store(now_ns(), Relaxed);
        }
        watch::refuse_what_was_found();
        STEPS[doing as usize].fetch_add(1, Relaxed);
        act()
    }

    fn compute(&mut self) {
        // Most are short, and one in a hundred is longer than a slice.
        let rounds = match self.random.below(100) {
            0 => 20_000_000,
            1..10 => self.random.below(4_000_000),
            _ => self.random.below(200_000),
        };
        self.run_step(Doing::Compute, || black_box(spin(self.seed | 1, rounds)));
    }

    fn sleep(&mut self) {
        let until = now_ns() + (1 + self.random.below(20)) * MS;
        self.own.until_ns.store(until, Relaxed);
        self.run_step(Doing::Sleep, || sleep_until_ns(until));
    }

    /// Waits until another task wakes it, but for less than 100 ms.
    fn wait(&mut self) {
        let limit = now_ns() + (10 + self.random.below(90)) * MS;
        self.own.woken.store(false, Relaxed);
        self.own.wait.fetch_add(1, Release);
        let is_woken = self.run_step(Doing::Wait, || {
            self.wait_until(limit, || self.own.woken.load(Acquire))
        });
        if !is_woken {
            NOT_WOKEN.fetch_add(1, Relaxed);
        }
    }

    /// Waits until `holds` returns true, or until the limit. Returns true if it holds.
    fn wait_until(&self, limit_ns: u64, holds: impl Fn() -> bool) -> bool {
        loop {
            let now = now_ns();
            let wait = Duration::from_nanos(limit_ns.saturating_sub(now)).min(LOOK_AGAIN);
            let until = now + wait.as_nanos() as u64;
            self.own.until_ns.store(until, Relaxed);
            if !self.own.queue.wait_timeout_until(wait, &holds) {
                return true;
            }
            if now_ns() >= limit_ns {
                return holds();
            }
        }
    }

    fn wake_any(&mut self) {
        let from = self.random.below(PLACES as u64) as usize;
        self.run_step(Doing::Wake, || {
            let is_waiting = |record: &Arc<Record>| {
                record.doing.load(Relaxed) == Doing::Wait as u8 && !record.woken.load(Relaxed)
            };
            let found = (PLACES_OF.iter().cycle().skip(from).take(PLACES)).find_map(|place| {
                place
                    .lock()
                    .as_ref()
                    .filter(|found| is_waiting(found))
                    .cloned()
            });
            if let Some(found) = found {
                wake(&found);
            }
        });
    }

    fn use_lock(&mut self) {
        let lock = &LOCKS[self.random.below(LOCKS.len() as u64) as usize];
        let (within, rounds) = (self.random.below(8), self.random.below(20_000));
        let note_wait = || {
            let until = now_ns() + LOOK_AGAIN.as_nanos() as u64;
            self.own.until_ns.store(until, Relaxed);
        };
        let is_alone = self.run_step(Doing::Lock, || {
            lock.within(note_wait, || {
                black_box(spin(self.seed | 1, rounds));
                match within {
                    0 => {
                        let until = now_ns() + MS;
                        self.own.until_ns.store(until, Relaxed);
                        sleep_until_ns(until);
                    }
                    1..4 => axtask::yield_now(),
                    _ => {}
                }
                if TO_BREAK_LOCK.load(Relaxed) {
                    lock.release();
                    sleep_until_ns(now_ns() + 30 * MS);
                }
            })
        });
        if !is_alone {
            watch::found(self.own.id, "has met another within a lock");
        }
    }

    fn spawn_child(&mut self) {
        let more = self.depth < DEEPEST && self.spawned < MOST_CHILDREN;
        if more && ALIVE.load(Relaxed) < MOST_ALIVE {
            let seed = seed_of(self.seed, self.spawned);
            self.spawned += 1;
            self.run_step(Doing::Spawn, || {
                spawn(seed, self.depth + 1, Some(self.own));
            });
        }
    }

    /// Waits for its children, however long they take.
    fn join(&mut self) {
        let children = &self.own.children;
        self.own.woken.store(false, Relaxed);
        self.own.wait.fetch_add(1, Release);
        self.run_step(Doing::Join, || {
            self.wait_until(u64::MAX, || children.load(Acquire) == 0)
        });
    }

    fn set_priority(&mut self) {
        let priority = self.random.below(11) as isize - 5;
        self.run_step(Doing::Priority, || {
            if axtask::set_priority(priority) {
                PRIORITIES.fetch_add(1, Relaxed);
            }
        });
    }

    /// Changes the affinity to one CPU, to some or to all of them. Half of the times it then yields
    /// once and allows all CPUs again.
    fn change_affinity(&mut self) {
        let all = all_cpus();
        let n = axhal::cpu_num() as u64;
        let mask = match self.random.below(10) {
            0..4 => 1 << self.random.below(n),
            4..7 => (self.random.next() as u32 & all).max(1),
            _ => all,
        };
        let is_back = self.random.below(2) == 0;
        self.run_step(Doing::Affinity, || {
            self.set_affinity(mask);
            if is_back {
                axtask::yield_now();
                self.set_affinity(all);
            }
        });
        if TO_BREAK_OUTSIDE.load(Relaxed) {
            let _guard = NoPreemptIrqSave::new();
            self.own
                .mask
                .store(all & !(1 << axhal::percpu::this_cpu_id()), Relaxed);
        }
    }

    /// Sets the affinity to `mask`. Until the task has migrated it runs outside of its mask, but no
    /// step begins meanwhile.
    fn set_affinity(&self, mask: u32) {
        self.own.mask.store(mask, Relaxed);
        assert!(axtask::set_current_affinity(mask_of(mask)));
    }

    /// Ends the task's work, as its last step. `axtask` does the rest.
    fn end(self) {
        self.run_step(Doing::End, || {
            ENDED.fetch_add(1, Relaxed);
            ALIVE.fetch_sub(1, Relaxed);
            if let Some(parent) = &self.own.parent
                && parent.children.fetch_sub(1, AcqRel) == 1
            {
                wake(parent);
            }
        });
    }
}

/// Ends the wait that the task of this record is in.
fn wake(record: &Record) {
    let wait = record.wait.load(Acquire);
    record.woken.store(true, Release);
    record.queue.notify_one(false);
    record.notified_ns.store(now_ns(), Relaxed);
    record.notified.store(wait, Release);
}

/// Computes for `rounds` rounds of a few instructions.
pub fn spin(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(0x5851_f42d_4c95_7f2d));
    }
    x
}
