//! Several runs become one profile.

use core::num::NonZeroU8;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::format;

use proptest::prelude::*;

use super::*;
use crate::*;
use sched_core::units::{Counts, TaskKey};

/// A place by its parent's key and its ordinal, as an index is local to a profile.
type PlaceByKey = Option<(Option<TaskKey>, u32)>;

/// Returns all that must not depend on an order: everything but the order of the tasks.
fn in_any_order(profile: &StoredProfile) -> (Header, BTreeMap<TaskKey, (StoredTask, PlaceByKey)>) {
    let of = |task: &StoredTask| {
        let place = match task.place {
            Place::Root { ordinal } => Some((None, ordinal)),
            Place::Child { parent, ordinal } => {
                Some((Some(profile.tasks[parent as usize].key), ordinal))
            }
            Place::Several => None,
        };
        let mut task = task.clone();
        task.place = Place::Several;
        name_by_key(&mut task, profile);
        (task.key, (task, place))
    };
    (profile.header, profile.tasks.iter().map(of).collect())
}

std::thread_local! {
    /// The keys that this thread has seen, each with its number.
    static KEYS: RefCell<Vec<TaskKey>> = const { RefCell::new(Vec::new()) };
}

fn number_of(key: TaskKey) -> u16 {
    KEYS.with_borrow_mut(|keys| {
        let known = keys.iter().position(|other| *other == key);
        known.unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        }) as u16
    })
}

/// Replaces the indices of wakers by numbers that mean the same in every profile.
fn name_by_key(task: &mut StoredTask, profile: &StoredProfile) {
    renumber(task, |index| {
        number_of(profile.tasks[usize::from(index)].key)
    });
}

fn renumber(task: &mut StoredTask, number: impl Fn(u16) -> u16) {
    let number = |index| Some(number(index));
    task.phases.renumber(number);
    task.spawned.after = task.spawned.after.renumbered(number);
}

/// Merges all runs of a task at once, as the page of the format defines it.
fn by_definition(profiles: &[StoredProfile]) -> StoredProfile {
    let (header, _) = in_any_order(&profiles[0]);
    let timings = || profiles.iter().map(|p| p.header.timing);
    let mut seen: BTreeMap<TaskKey, Vec<(u32, PlaceByKey, StoredTask)>> = BTreeMap::new();
    for profile in profiles {
        let (_, places) = in_any_order(profile);
        for (rank, task) in (0..).zip(&profile.tasks) {
            let place = places[&task.key].1;
            let of = seen.entry(task.key).or_default();
            let mut task = task.clone();
            name_by_key(&mut task, profile);
            of.push((rank, place, task));
        }
    }
    let mut order: Vec<_> = seen.iter().collect();
    order.sort_by_key(|(key, of)| (of.iter().map(|(rank, ..)| *rank).min(), **key));
    let index = |wanted: TaskKey| order.iter().position(|(key, _)| **key == wanted).unwrap();
    let tasks = order.iter().map(|(key, of)| {
        let all = || of.iter().map(|(_, _, task)| task);
        let place = match of[0].1 {
            Some((parent, ordinal)) if of.iter().all(|(_, place, _)| *place == of[0].1) => {
                match parent.map(index) {
                    None => Place::Root { ordinal },
                    Some(parent) => Place::Child {
                        parent: parent as u32,
                        ordinal,
                    },
                }
            }
            _ => Place::Several,
        };
        let figure = |i: usize| {
            let figures = all().map(|task| task.figures.to_array()[i]);
            figures.reduce(Figure::merged).unwrap()
        };
        let mut i = 0;
        let figures = [(); Figures::COUNT].map(|()| {
            i += 1;
            figure(i - 1)
        });
        let first = &of[0].2.phases;
        let alike = all().all(|task| task.phases.has_shape_of(first));
        let list = match alike {
            true => {
                let mut list = first.list.clone();
                for task in all().skip(1) {
                    list.iter_mut()
                        .zip(&task.phases.list)
                        .for_each(|(a, b)| a.add(b));
                }
                list
            }
            false => all().flat_map(|task| task.phases.list.clone()).collect(),
        };
        let phases = Phases {
            order: first.order,
            list,
        };
        let mut task = StoredTask {
            key: **key,
            label: all().find_map(|task| task.label),
            place,
            runs: all().map(|task| task.runs).sum(),
            priority: all().filter_map(|task| task.priority).min(),
            deadline: all().filter_map(|task| task.deadline).min(),
            varies: all().any(|task| task.varies),
            figures: Figures::from_array(figures),
            phases: if alike { phases } else { phases.coarsened() },
            spawned: all()
                .map(|task| task.spawned)
                .reduce(Spawned::merged)
                .unwrap(),
        };
        renumber(&mut task, |number| {
            let key = KEYS.with_borrow(|keys| keys[usize::from(number)]);
            index(key) as u16
        });
        task
    });
    StoredProfile {
        header: Header {
            timing: timings()
                .find(|t| *t != Timing::Unknown)
                .unwrap_or_default(),
            runs: profiles.iter().map(|p| p.header.runs).sum(),
            unrecorded: (profiles.iter()).fold(0, |sum, p| sum.saturating_add(p.header.unrecorded)),
            start: (profiles.iter().map(|p| p.header.start))
                .reduce(Start::merged)
                .unwrap(),
            ..header
        },
        tasks: tasks.collect(),
        order: None,
    }
}

/// Returns a profile as it is after a merge with no other: without an order.
fn merged_alone(profile: &StoredProfile) -> StoredProfile {
    StoredProfile {
        order: None,
        ..profile.clone()
    }
}

proptest! {
    #[test]
    fn one_at_a_time_is_as_all_at_once_and_as_in_pairs(
        runs in vec(profile(), 1..6),
        stranger in profile(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut stranger = stranger;
        stranger.header.cpus += 1;
        let mut merger = Merger::default();
        for (number, run) in runs.iter().enumerate() {
            prop_assert_eq!(merger.add(run), Ok(()));
            // One that is refused leaves no trace.
            if number == at.index(runs.len()) {
                prop_assert_eq!(merger.add(&stranger).unwrap_err().profile(), Some(number + 1));
            }
        }
        let merged = merger.finish().unwrap();
        prop_assert_eq!(&merged, &by_definition(&runs));
        let pairs = runs[1..].iter().fold(merged_alone(&runs[0]), |sum, run| {
            merge(&[sum, run.clone()]).unwrap()
        });
        prop_assert_eq!(in_any_order(&merged), in_any_order(&pairs));
    }

    #[test]
    fn merging_depends_on_no_order(a in profile(), b in profile(), c in profile()) {
        let merged = |profiles: &[&StoredProfile]| {
            let profiles: Vec<_> = profiles.iter().map(|p| (*p).clone()).collect();
            merge(&profiles).unwrap()
        };
        let all = merged(&[&a, &b, &c]);
        prop_assert_eq!(all.validate(), Ok(()));
        prop_assert_eq!(decode(&encode(&all).unwrap()), Ok(all.clone()));
        // The order of the profiles changes nothing at all.
        prop_assert_eq!(&merged(&[&c, &a, &b]), &all);
        prop_assert_eq!(&merged(&[&b, &a, &c]), &all);
        // Which two come first changes the order of the tasks at most.
        let left = merged(&[&merged(&[&a, &b]), &c]);
        let right = merged(&[&a, &merged(&[&b, &c])]);
        prop_assert_eq!(in_any_order(&left), in_any_order(&all));
        prop_assert_eq!(in_any_order(&right), in_any_order(&all));
        prop_assert_eq!(merged(&[&a]), merged_alone(&a));
    }
}

#[test]
fn a_merged_task_has_the_sums_and_the_extremes() {
    let run = |ordinals: &[(u32, u64)]| {
        of(ordinals
            .iter()
            .map(|&(o, run)| child_of_root(o, run))
            .collect())
    };
    let mut second = run(&[(0, 30), (1, 7)]);
    second.tasks[0].priority = NonZeroU8::new(9);
    let mut third = run(&[(0, 50)]);
    third.tasks[0].priority = NonZeroU8::new(4);
    third.tasks[0].deadline = Some(Counts(100));
    let merged = merge(&[run(&[(0, 10)]), second, third]).unwrap();
    assert_eq!(merged.header.runs, 3);
    let [first, late] = &merged.tasks[..] else {
        panic!("{merged:?}")
    };
    assert_eq!((first.runs, late.runs), (3, 1));
    let figure = first.figures.run;
    assert_eq!((figure.total, figure.least, figure.most), (90, 10, 50));
    assert_eq!((figure.mean(3), figure.spread()), (30, 40));
    assert_eq!(late.figures.run, Figure::once(7));
    assert_eq!(
        (first.priority, first.deadline),
        (NonZeroU8::new(4), Some(Counts(100)))
    );
}

#[test]
fn phases_merge_step_by_step_or_by_ending() {
    use Ended::{Block, Exit, Yield};
    use PhaseOrder::{AsRun, ByEnding};
    let phases = |order, list: &[(Ended, u64, u64, u64)]| Phases {
        order,
        list: list
            .iter()
            .map(|&(e, n, run, blocked)| phase(e, n, run, blocked))
            .collect(),
    };
    let with = |order, list: &[(Ended, u64, u64, u64)]| {
        let mut task = child_of_root(0, 1);
        task.phases = phases(order, list);
        of(vec![task])
    };
    let a = with(AsRun, &[(Block, 1, 10, 100), (Yield, 5, 50, 0)]);
    let b = with(AsRun, &[(Block, 3, 20, 300), (Yield, 5, 70, 0)]);
    let ends = [
        (Yield, 1, 1, 0),
        (Block, 1, 1, 1),
        (Yield, 1, 1, 0),
        (Exit, 1, 1, 0),
    ];
    let c = with(AsRun, &ends);
    let merged = |profiles: &[&StoredProfile]| {
        let profiles: Vec<_> = profiles.iter().map(|p| (*p).clone()).collect();
        merge(&profiles).unwrap().tasks[0].phases.clone()
    };
    let step_by_step = phases(AsRun, &[(Block, 4, 30, 400), (Yield, 10, 120, 0)]);
    assert_eq!(merged(&[&a, &b]), step_by_step);
    // The same steps, but in one of them their order is unknown.
    let [ordered, coarse] =
        [AsRun, ByEnding].map(|order| with(order, &[(Yield, 5, 50, 0), (Exit, 1, 1, 0)]));
    assert_eq!(merged(&[&ordered, &coarse]).order, ByEnding);
    assert_eq!(merged(&[&coarse, &ordered]).order, ByEnding);
    let by_ending = [(Yield, 12, 122, 0), (Block, 5, 31, 401), (Exit, 1, 1, 0)];
    assert_eq!(merged(&[&a, &b, &c]), phases(ByEnding, &by_ending));
    let mean = phase(Block, 4, 30, 400);
    assert_eq!(
        (mean.mean_run(), mean.mean_blocked()),
        (Counts(7), Counts(100))
    );
}

/// Each is below the other in one of the runs. No parent may come after its child.
#[test]
fn tasks_that_changed_places_merge_without_a_circle() {
    let run = |first: &str, second: &str| {
        let mut below = labelled(second, 0, 1);
        below.place = Place::Child {
            parent: 0,
            ordinal: 0,
        };
        let mut last = child_of_root(5, 1);
        last.place = Place::Child {
            parent: 1,
            ordinal: 0,
        };
        last.key = below.key.child(0);
        of(vec![labelled(first, 0, 1), below, last])
    };
    let merged = merge(&[run("x", "y"), run("y", "x")]).unwrap();
    assert_eq!(merged.validate(), Ok(()));
    let by = |label: &str| {
        let key = TaskKey::labelled(label);
        merged.tasks.iter().find(|task| task.key == key).unwrap()
    };
    assert_eq!(
        (by("x").place, by("y").place),
        (Place::Several, Place::Several)
    );
    let of_y = merged
        .tasks
        .iter()
        .find(|t| t.key == by("y").key.child(0))
        .unwrap();
    let Place::Child { parent, ordinal: 0 } = of_y.place else {
        panic!("{of_y:?}")
    };
    assert_eq!(merged.tasks[parent as usize].key, by("y").key);
}

/// A different label is found only when tasks before it could have been added.
#[test]
fn a_task_that_does_not_belong_keeps_the_others_of_its_profile_out() {
    let mut other = sample();
    other.tasks[1].label = Some(Label::new("other").unwrap());
    let mut merger = Merger::default();
    merger.add(&sample()).unwrap();
    assert_eq!(merger.add(&other).unwrap_err().profile(), Some(1));
    other.tasks[1].label = None;
    other = of(vec![child_of_root(0, 300)]);
    other.header.runs = u32::MAX;
    assert_eq!(merger.add(&other), Err(MergeError::TooManyRuns));
    assert_eq!(merger.finish(), Ok(sample()));
    assert_eq!(Merger::default().finish(), Err(MergeError::Nothing));
}

#[test]
fn profiles_that_do_not_belong_together_do_not_merge() {
    type Change = fn(&mut StoredProfile);
    let changes: [(&str, Change); 11] = [
        ("another program", |p| p.header.program.hash += 1),
        ("another name", |p| {
            p.header.program.name = ProgramName::new("batch").unwrap();
        }),
        ("another architecture", |p| {
            p.header.architecture = Architecture::Aarch64;
        }),
        ("another clock", |p| p.header.frequency_hz = 0),
        ("more CPUs", |p| p.header.cpus = 4),
        ("real time", |p| p.header.timing = Timing::Real),
        ("another policy", |p| {
            p.header.policy = PolicyName::new("cfs").unwrap();
        }),
        ("another label", |p| {
            p.tasks[1].label = Some(Label::new("other").unwrap());
        }),
        ("too many runs", |p| {
            p.header.start = Start::default();
            p.header.runs = u32::MAX;
        }),
        ("no CPU", |p| p.header.cpus = 0),
        ("too many tasks", |p| {
            p.tasks = (0..4096).map(|i| child_of_root(i + 9, 0)).collect();
        }),
    ];
    let refused = changes.iter().map(|(name, change)| {
        let mut other = sample();
        change(&mut other);
        format!("{name}: {}", merge(&[sample(), other]).unwrap_err())
    });
    assert_golden("merging", &refused.collect::<Vec<_>>());
    assert_eq!(merge(&[]), Err(MergeError::Nothing));
    let many = |tasks: u32| of((0..tasks).map(|i| child_of_root(i, 0)).collect());
    let more = |tasks| of(vec![child_of_root(tasks, 0)]);
    assert!(merge(&[many(4095), more(4095)]).is_ok());
    assert_eq!(
        merge(&[many(4096), more(4096)]),
        Err(MergeError::TooManyTasks { found: 4097 })
    );
}

/// Profiles of unknown time take that of the others, and runs in real and counted time do not merge.
#[test]
fn times_merge_in_any_order_and_grouping() {
    let of_time = |timing| {
        let mut profile = sample();
        profile.header.timing = timing;
        profile
    };
    let timing = |merged: &Result<StoredProfile, MergeError>| match merged {
        Ok(profile) => Some(profile.header.timing),
        Err(MergeError::Timing { .. }) => None,
        Err(other) => panic!("{other}"),
    };
    let pair = |a: Result<StoredProfile, MergeError>, b| a.and_then(|a| merge(&[a, b]));
    for a in Timing::ALL {
        for b in Timing::ALL {
            for c in Timing::ALL {
                let all = [a, b, c];
                let known = |time| all.contains(&time);
                let expected = match (known(Timing::Real), known(Timing::Counted)) {
                    (true, true) => None,
                    (true, false) => Some(Timing::Real),
                    (false, true) => Some(Timing::Counted),
                    (false, false) => Some(Timing::Unknown),
                };
                let [a, b, c] = all.map(of_time);
                let at_once = merge(&[a.clone(), b.clone(), c.clone()]);
                assert_eq!(timing(&at_once), expected, "{all:?}");
                let grouped = pair(merge(&[a, b]), c);
                assert_eq!(timing(&grouped), expected, "{all:?}");
            }
        }
    }
    let blamed = merge(&[Timing::Unknown, Timing::Counted, Timing::Real].map(of_time));
    assert_eq!(blamed.unwrap_err().profile(), Some(2));
}
