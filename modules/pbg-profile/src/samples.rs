//! Profiles for tests, made by hand or at random.

use core::num::NonZeroU8;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use sched_core::units::{Counts, TaskKey};

use super::*;

/// Returns the header of one run of `realtime` under `rr`, on one CPU at 1 GHz.
pub fn header() -> Header {
    Header {
        architecture: Architecture::X86_64,
        timing: Timing::Counted,
        frequency_hz: 1_000_000_000,
        cpus: 1,
        program: Program {
            name: ProgramName::new("realtime").unwrap(),
            hash: 0x0123_4567_89ab_cdef,
        },
        policy: PolicyName::new("rr").unwrap(),
        runs: 1,
        unrecorded: 0,
        start: Start::default(),
    }
}

/// Returns a phase of `intervals` run intervals, with its times in counts.
pub fn phase(ended: Ended, intervals: u64, run: u64, blocked: u64) -> StoredPhase {
    StoredPhase::new(ended, intervals, Counts(run), Counts(blocked))
}

/// Returns a task of one run with `run` counts and no other event than its dispatch.
pub fn task(place: Place, key: TaskKey, run: u64) -> StoredTask {
    StoredTask {
        key,
        label: None,
        place,
        runs: 1,
        priority: None,
        deadline: None,
        varies: false,
        figures: Figures {
            run: Figure::once(run),
            dispatches: Figure::once(1),
            ..Figures::default()
        },
        phases: Phases::default(),
        spawned: Spawned::default(),
    }
}

/// Returns a task that the root spawned as its `ordinal`th, with `run` counts.
pub fn child_of_root(ordinal: u32, run: u64) -> StoredTask {
    let key = TaskKey::ROOT.child(ordinal);
    task(Place::Root { ordinal }, key, run)
}

/// Returns `count` wakes of one task, `after` counts of run time in all.
pub fn woken(whom: Waker, count: u64, after: u64) -> Woken {
    Woken {
        whom,
        count,
        after: Counts(after),
    }
}

/// Returns `profile` with the start of its runs, on a kernel that preempts, and the spawn of each
/// task.
pub fn with_starts(mut profile: StoredProfile) -> StoredProfile {
    let runs = u64::from(profile.header.runs);
    let same = |value: u64| Figure {
        total: value * runs,
        least: value,
        most: value,
    };
    profile.header.start = Start {
        tick: same(10_000_000),
        phase: same(1234),
        age: same(1 << 33),
        kernel: Kernel::Preemptive,
    };
    for (n, task) in (0..).zip(&mut profile.tasks) {
        let runs = u64::from(task.runs);
        let same = |value: u64| Figure {
            total: value * runs,
            least: value,
            most: value,
        };
        task.spawned = Spawned {
            at: same(n * 1_000_000),
            parent_run: same(n * 500),
            parent_blocks: same(n),
            parent_woken: same(n * 7),
            after: if n == 0 { Waker::Unknown } else { Waker::Timer },
        };
    }
    profile
}

/// Returns a profile of these tasks under [`header`].
pub fn of(tasks: Vec<StoredTask>) -> StoredProfile {
    StoredProfile {
        header: header(),
        tasks,
        order: None,
    }
}

/// Returns an order of the tasks of a profile by these numbers, or none if it has no tasks.
pub fn ordered(profile: &StoredProfile, cpus: u16, numbers: &[u16]) -> Option<StoredOrder> {
    let numbers: Vec<u16> = numbers
        .iter()
        .cycle()
        .take(profile.tasks.len())
        .copied()
        .collect();
    let mut distinct = numbers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let group = |number: &u16| distinct.partition_point(|other| other < number) as u16;
    let groups: Vec<u16> = numbers.iter().map(group).collect();
    (!groups.is_empty()).then_some(StoredOrder { cpus, groups })
}

/// Gives numbers of every size, small ones and the largest more often.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        (0..64u32, any::<u64>()).prop_map(|(shift, n)| n >> shift),
        Just(u64::MAX)
    ]
}

/// Gives figures that `runs` runs have merged into.
pub fn figure(runs: u32) -> impl Strategy<Value = Figure> {
    let several = vec(number(), runs as usize);
    several.prop_map(|values| {
        let figures = values.into_iter().map(Figure::once);
        figures.reduce(Figure::merged).unwrap()
    })
}

/// Gives any waker. A task has an index below `tasks`.
pub fn waker(tasks: u16) -> impl Strategy<Value = Waker> {
    let named = [Waker::Unknown, Waker::Timer, Waker::Outside, Waker::Root];
    prop_oneof![
        proptest::sample::select(named.to_vec()),
        (0..tasks).prop_map(Waker::Task)
    ]
}

/// Returns `profile` with the start of its runs, and with wakers and wakes that come from
/// `numbers` in place of its own.
pub fn with_wakers(profile: StoredProfile, numbers: &[(u64, Waker, Waker)]) -> StoredProfile {
    let mut profile = with_starts(profile);
    let tasks = profile.tasks.len();
    let exists = |waker| match waker {
        Waker::Task(index) => Waker::Task(index % tasks as u16),
        other => other,
    };
    let mut numbers = numbers.iter().cycle();
    let mut next = || {
        let &(number, one, other) = numbers.next().unwrap();
        (number, exists(one), exists(other))
    };
    for task in &mut profile.tasks {
        let (_, after, _) = next();
        task.spawned.after = after;
        for phase in &mut task.phases.list {
            let (count, by, whom) = next();
            if phase.ended == Ended::Block {
                phase.woken_by = by;
            }
            let whom = match whom {
                Waker::Timer => Waker::Unknown,
                Waker::Outside => continue, // it woke no task
                whom => whom,
            };
            let several = [
                woken(whom, count.max(1), count / 3),
                woken(Waker::Root, 2, 7),
            ];
            phase.wakes = Wakes::of(several.into_iter().take(1 + (count % 2) as usize));
        }
    }
    profile
}

/// Gives phases in the order in which they ran, or one for each ending.
pub fn phases() -> impl Strategy<Value = Phases> {
    let one = (0..3usize, number(), number(), number());
    let exit = proptest::option::of((number(), number()));
    (vec(one, 0..MAX_PHASES), exit, any::<bool>()).prop_map(|(list, exit, coarse)| {
        let phase_of = |(ended, intervals, run, blocked): (usize, u64, u64, u64)| {
            let ended = Ended::ALL[ended];
            let blocked = if ended == Ended::Block { blocked } else { 0 };
            phase(ended, intervals.max(1), run, blocked)
        };
        let mut list: Vec<_> = list.into_iter().map(phase_of).collect();
        list.extend(exit.map(|(intervals, run)| phase(Ended::Exit, intervals.max(1), run, 0)));
        let phases = Phases {
            order: PhaseOrder::AsRun,
            list,
        };
        if coarse && !phases.list.is_empty() {
            phases.coarsened()
        } else {
            phases
        }
    })
}

prop_compose! {
    /// Gives a task that has no place and no label yet.
    pub fn anyone(most_runs: u32)(runs in 1..=most_runs)(
        runs in Just(runs),
        figures in [(); Figures::COUNT].map(|()| figure(runs)),
        phases in phases(),
        priority in any::<u8>(),
        deadline in proptest::option::of(number()),
        varies in any::<bool>(),
    ) -> StoredTask {
        StoredTask {
            runs,
            figures: Figures::from_array(figures),
            phases,
            priority: NonZeroU8::new(priority),
            deadline: deadline.map(Counts),
            varies,
            ..child_of_root(0, 0)
        }
    }
}

/// Gives a profile of a program that spawns up to 11 tasks, some with labels, in counted time or
/// in an unknown one. Such profiles merge. They have keys in common, and labelled tasks at
/// different places.
pub fn profile() -> impl Strategy<Value = StoredProfile> {
    let runs = 1..4u32;
    runs.prop_flat_map(|runs| {
        let tasks = vec((anyone(runs), any::<prop::sample::Index>(), 0..6u32), 0..12);
        let timing = prop_oneof![Just(Timing::Unknown), Just(Timing::Counted)];
        let wakers = proptest::option::weighted(0.8, vec((number(), waker(12), waker(12)), 1..20));
        let order = proptest::option::of((1..=u16::MAX, vec(0..12u16, 12)));
        (Just(runs), timing, tasks, number(), wakers, order)
    })
    .prop_map(|(runs, timing, tasks, unrecorded, wakers, order)| {
        let mut profile = of(Vec::new());
        profile.header.timing = timing;
        profile.header.runs = runs;
        profile.header.unrecorded = unrecorded;
        for (mut task, parent, label) in tasks {
            let ordinal = label;
            let before = profile.tasks.len() as u32;
            let parent = parent.index(before as usize + 1) as u32;
            task.place = match before {
                n if parent == n => Place::Root { ordinal },
                _ => Place::Child { parent, ordinal },
            };
            task.key = match task.place.key(&profile.tasks) {
                Ok(Some(key)) => key,
                _ => unreachable!("the parent stands before"),
            };
            if label < 3 {
                let name = ["a", "größe", "a label of thirty-two bytes, yes"][label as usize];
                task.label = Some(Label::new(name).unwrap());
                task.key = TaskKey::labelled(name);
                if label == 1 && task.runs > 1 {
                    task.place = Place::Several;
                }
            }
            if profile.tasks.iter().all(|other| other.key != task.key) {
                profile.tasks.push(task);
            }
        }
        profile.order = order.and_then(|(cpus, groups)| ordered(&profile, cpus, &groups));
        match wakers {
            Some(wakers) => with_wakers(profile, &wakers),
            None => profile,
        }
    })
}
