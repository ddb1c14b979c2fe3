//! The stored profile: there and back, and what is refused.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};

use proptest::collection::vec;
use proptest::prelude::*;

use super::encode::{MAX_HEADER_BYTES, MAX_TASK_BYTES};
use super::*;

fn header() -> Header {
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
    }
}

pub(in crate::pbg) fn phase(ended: Ended, intervals: u64, run: u64, blocked: u64) -> StoredPhase {
    StoredPhase {
        ended,
        intervals,
        run: Counts(run),
        blocked: Counts(blocked),
    }
}

/// A task of one run with `run` counts and nothing else to tell.
fn task(place: Place, key: TaskKey, run: u64) -> StoredTask {
    StoredTask {
        key,
        label: None,
        place,
        runs: 1,
        priority: None,
        latest: None,
        figures: Figures {
            run: Figure::once(run),
            dispatches: Figure::once(1),
            ..Figures::default()
        },
        phases: Phases::default(),
    }
}

pub(in crate::pbg) fn child_of_root(ordinal: u32, run: u64) -> StoredTask {
    let key = TaskKey::ROOT.child(ordinal);
    task(Place::Root { ordinal }, key, run)
}

fn labelled(label: &str, ordinal: u32, run: u64) -> StoredTask {
    StoredTask {
        label: Some(Label::new(label).unwrap()),
        ..task(Place::Root { ordinal }, TaskKey::labelled(label), run)
    }
}

/// One of everything.
fn sample() -> StoredProfile {
    let mut first = child_of_root(0, 300);
    first.phases.list = vec![
        phase(Ended::Yield, 100, 200, 0),
        phase(Ended::Block, 3, 90, 5_000),
        phase(Ended::Exit, 1, 10, 0),
    ];
    first.figures.blocked = Figure::once(5_000);
    let mut second = labelled("io worker", 1, 1 << 40);
    second.priority = NonZeroU8::new(3);
    second.latest = Some(Counts(50_000_000));
    second.phases = Phases {
        order: PhaseOrder::ByEnding,
        list: vec![
            phase(Ended::Preemption, 7, 1 << 40, 0),
            phase(Ended::Block, u64::MAX, u64::MAX, u64::MAX),
        ],
    };
    let mut third = task(
        Place::Child {
            parent: 1,
            ordinal: 2,
        },
        second.key.child(2),
        0,
    );
    third.runs = 3;
    third.figures.ready = Figure {
        total: 60,
        least: 10,
        most: 30,
    };
    third.figures.dispatches = Figure {
        total: 3,
        least: 1,
        most: 1,
    };
    let mut fourth = labelled("wanderer", 0, 5);
    fourth.place = Place::Several;
    StoredProfile {
        header: Header {
            runs: 3,
            unrecorded: 300,
            ..header()
        },
        tasks: vec![first, second, third, fourth],
    }
}

pub(in crate::pbg) fn of(tasks: Vec<StoredTask>) -> StoredProfile {
    StoredProfile {
        header: header(),
        tasks,
    }
}

/// `bytes` with a length and checksum that are right: what somebody would make
/// who knows the format and means no good.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let total = (bytes.len() + 4) as u32;
    bytes[12..16].copy_from_slice(&total.to_le_bytes());
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// The bytes without their checksum, to be changed and sealed again.
fn opened(profile: &StoredProfile) -> Vec<u8> {
    let mut bytes = encode(profile).unwrap();
    bytes.truncate(bytes.len() - 4);
    bytes
}

/// Refused, or something that is a profile through and through.
fn refused_or_valid(bytes: &[u8]) {
    if let Ok(profile) = decode(bytes) {
        assert_eq!(encode(&profile).as_deref(), Ok(bytes));
    }
}

/// Numbers that differ (Knuth's MMIX generator), the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

// --- Profiles of all kinds --------------------------------------------------

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        (0..64u32, any::<u64>()).prop_map(|(shift, n)| n >> shift),
        Just(u64::MAX)
    ]
}

fn figure(runs: u32) -> impl Strategy<Value = Figure> {
    let several = vec(number(), runs as usize);
    several.prop_map(|values| {
        let figures = values.into_iter().map(Figure::once);
        figures.reduce(Figure::merged).unwrap()
    })
}

fn phases() -> impl Strategy<Value = Phases> {
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
    /// A task whose place is still open, and whether it has a label.
    fn anyone(most_runs: u32)(runs in 1..=most_runs)(
        runs in Just(runs),
        figures in [(); Figures::COUNT].map(|()| figure(runs)),
        phases in phases(),
        priority in any::<u8>(),
        latest in proptest::option::of(number()),
    ) -> StoredTask {
        StoredTask {
            runs,
            figures: Figures::of(figures),
            phases,
            priority: NonZeroU8::new(priority),
            latest: latest.map(Counts),
            ..child_of_root(0, 0)
        }
    }
}

/// A program that spawns `tasks`, some with labels, in counted time or one that nobody has
/// said. Runs of it merge: they have keys in common, and labelled tasks at different places.
pub(in crate::pbg) fn profile() -> impl Strategy<Value = StoredProfile> {
    let runs = 1..4u32;
    runs.prop_flat_map(|runs| {
        let tasks = vec((anyone(runs), any::<prop::sample::Index>(), 0..6u32), 0..12);
        let timing = prop_oneof![Just(Timing::Unknown), Just(Timing::Counted)];
        (Just(runs), timing, tasks, number())
    })
    .prop_map(|(runs, timing, tasks, unrecorded)| {
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
        profile
    })
}

// --- There and back ---------------------------------------------------------

#[test]
fn a_profile_survives_its_bytes() {
    for profile in [sample(), of(vec![]), of(vec![child_of_root(7, 1)])] {
        let bytes = encode(&profile).unwrap();
        assert_eq!(decode(&bytes), Ok(profile));
    }
}

proptest! {
    #[test]
    fn any_profile_survives_its_bytes(profile in profile()) {
        let bytes = encode(&profile).unwrap();
        prop_assert_eq!(decode(&bytes), Ok(profile));
    }

    #[test]
    fn any_bytes_are_refused_or_a_profile(contents in vec(any::<u8>(), 0..200)) {
        refused_or_valid(&contents);
        // Behind a good header and under a good checksum.
        let mut bytes = opened(&of(vec![]));
        bytes.pop();
        bytes.extend(contents);
        refused_or_valid(&sealed(bytes));
    }
}

#[test]
fn the_largest_profile_is_as_large_as_stated() {
    let mut largest = of(Vec::new());
    largest.header.program.name = ProgramName::new(&"n".repeat(64)).unwrap();
    largest.header.policy = PolicyName::new(&"p".repeat(16)).unwrap();
    largest.header.runs = u32::MAX;
    largest.header.unrecorded = u64::MAX;
    let figure = Figure {
        total: u64::MAX,
        least: 1 << 63,
        most: u64::MAX,
    };
    for index in 0..MAX_TASKS as u32 {
        largest.tasks.push(StoredTask {
            key: TaskKey::from_bits(index as u64),
            label: Some(Label::new(&"l".repeat(32)).unwrap()),
            place: match index {
                0 => Place::Root { ordinal: u32::MAX },
                _ => Place::Child {
                    parent: index - 1,
                    ordinal: u32::MAX,
                },
            },
            runs: u32::MAX,
            priority: NonZeroU8::new(255),
            latest: Some(Counts(u64::MAX)),
            figures: Figures::of([figure; 7]),
            phases: Phases {
                order: PhaseOrder::AsRun,
                list: vec![phase(Ended::Block, u64::MAX, u64::MAX, u64::MAX); MAX_PHASES],
            },
        });
    }
    let bytes = encode(&largest).unwrap();
    // The first 126 parents take one byte and not two.
    assert_eq!(bytes.len() + 127, MAX_BYTES);
    assert_eq!(MAX_BYTES, MAX_HEADER_BYTES + 4096 * MAX_TASK_BYTES + 4);
    assert!((3_000_000..3_300_000).contains(&MAX_BYTES), "{MAX_BYTES}");
    assert_eq!(decode(&bytes), Ok(largest));
}

// --- Damage -----------------------------------------------------------------

#[test]
fn every_flipped_byte_is_refused() {
    let bytes = encode(&sample()).unwrap();
    for at in 0..bytes.len() {
        for flip in 1..=255 {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            assert!(decode(&damaged).is_err(), "byte {at} ^ {flip}");
        }
    }
}

#[test]
fn every_flipped_byte_under_a_good_checksum_is_refused_or_valid() {
    let bytes = opened(&sample());
    for at in 0..bytes.len() {
        for flip in 1..=255 {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            refused_or_valid(&sealed(damaged));
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = encode(&sample()).unwrap();
    assert_eq!(decode(&[]), Err(DecodeError::NotAProfile { offset: 0 }));
    for len in 1..bytes.len() {
        let expected = if len < 16 { 44 } else { bytes.len() };
        assert_eq!(
            decode(&bytes[..len]),
            Err(DecodeError::Truncated {
                expected,
                found: len
            })
        );
    }
    for len in 16..bytes.len() {
        refused_or_valid(&sealed(bytes[..len].to_vec()));
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(
        decode(&longer).unwrap_err().to_string(),
        format!(
            "inconsistent at byte {}: expected nothing more, found 1",
            bytes.len()
        )
    );
}

/// 10,000 times 2 to 16 bytes anywhere, or a piece moved elsewhere.
#[test]
fn random_corruptions_are_refused_or_valid() {
    let whole = encode(&sample()).unwrap();
    let open = opened(&sample());
    let mut random = Numbers(1);
    for n in 0..10_000 {
        let mut bytes = if n % 2 == 0 {
            whole.clone()
        } else {
            open.clone()
        };
        if random.below(4) == 0 {
            let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
            let len = random.below(bytes.len() - from.max(to));
            bytes.copy_within(from..from + len, to);
        }
        for _ in 0..2 + random.below(15) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        match n % 2 {
            0 => assert!(bytes == whole || decode(&bytes).is_err(), "{n}"),
            _ => refused_or_valid(&sealed(bytes)),
        }
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let good = encode(&sample()).unwrap();
    let says = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
    assert_eq!(
        says(b"\x89PNG\r\n\x1a\n"),
        "not a profile: expected 0x42 at byte 2, found something else"
    );
    let mut other = good.clone();
    other[8] = 2;
    assert_eq!(
        says(&other),
        "expected a profile of version 1, found version 2"
    );
    assert_eq!(
        says(&good[..50]),
        format!("truncated: expected {} bytes, found 50", good.len())
    );
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let sum = u32::from_le_bytes(*good.last_chunk().unwrap());
    assert_eq!(
        says(&damaged),
        format!(
            "damaged: expected the checksum {:08x}, found {sum:08x}",
            sum ^ 1 << 24
        )
    );
    let mut endless = good.clone();
    endless[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        says(&endless),
        "inconsistent at byte 12: expected the size of a profile, found 4294967295"
    );
}

// --- One form only ----------------------------------------------------------

/// Where the contents of `of(vec![…])` begin: runs, unrecorded, count, tasks.
const RUNS_AT: usize = 35 + 8 + 2;
const COUNT_AT: usize = RUNS_AT + 2;
const TASK_AT: usize = COUNT_AT + 1;

/// What is said of `profile` with `change` made and the checksum set right.
fn rule(profile: &StoredProfile, change: impl FnOnce(&mut Vec<u8>)) -> (usize, Rule) {
    let mut bytes = opened(profile);
    change(&mut bytes);
    match decode(&sealed(bytes)) {
        Err(DecodeError::Inconsistent { offset, rule, .. }) => (offset, rule),
        other => panic!("expected a broken rule, found {other:?}"),
    }
}

#[test]
fn what_is_not_in_its_one_form_is_refused() {
    let one = of(vec![child_of_root(0, 5)]);
    // parent, ordinal, flags, runs, 7 figures, phases
    let task = [0, 0, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(opened(&one)[TASK_AT..], task);
    let set = |at: usize, to: &'static [u8]| {
        rule(&one, |bytes| {
            bytes.splice(at..at + 1, to.iter().copied());
        })
    };
    let in_task = |at, to| set(TASK_AT + at, to);

    // Numbers longer than they need be, or larger than their field.
    assert_eq!(set(RUNS_AT, &[0x81, 0]), (RUNS_AT, Rule::Shortest));
    assert_eq!(in_task(4, &[0x85, 0x80, 0]), (TASK_AT + 4, Rule::Shortest));
    let beyond_64 = &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
    assert_eq!(in_task(4, beyond_64), (TASK_AT + 4, Rule::Fits));
    let endless = &[0xff; 11];
    assert_eq!(in_task(4, endless), (TASK_AT + 4, Rule::Fits));
    let beyond_32 = &[0x80, 0x80, 0x80, 0x80, 0x10];
    assert_eq!(in_task(1, beyond_32), (TASK_AT + 1, Rule::Fits));
    assert_eq!(set(RUNS_AT, beyond_32), (RUNS_AT, Rule::Fits));

    // The header.
    assert_eq!(set(32, &[5]), (32, Rule::Architecture));
    assert_eq!(set(32, &[0x1f]), (32, Rule::Architecture));
    assert_eq!(set(32, &[0x31]), (32, Rule::Timing));
    assert_eq!(set(32, &[0x41]), (32, Rule::Timing));
    assert_eq!(set(32, &[0xa1]), (32, Rule::Timing));
    assert_eq!(set(10, &[0]), (10, Rule::Cpus));
    assert_eq!(set(33, &[0]), (35, Rule::Text));
    assert_eq!(set(33, &[65]), (35, Rule::Complete));
    assert_eq!(set(34, &[17]), (43, Rule::Text));
    assert_eq!(set(35, &[0xff]), (35, Rule::Text));
    assert_eq!(set(35, b"\n"), (35, Rule::Text));
    assert_eq!(set(RUNS_AT, &[0]), (RUNS_AT, Rule::Runs));
    assert_eq!(set(COUNT_AT, &[2]), (COUNT_AT, Rule::Tasks));
    assert_eq!(set(COUNT_AT, &[0]), (TASK_AT - 1 + 1, Rule::Nothing));

    // Tasks.
    assert_eq!(in_task(0, &[2]), (TASK_AT, Rule::Parent));
    assert_eq!(in_task(2, &[0x20]), (TASK_AT + 2, Rule::Flags));
    assert_eq!(in_task(3, &[0]), (TASK_AT, Rule::TaskRuns));
    // (More than one run: what was a figure is three numbers.)
    assert_eq!(
        in_task(3, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (TASK_AT, Rule::TaskRuns)
    );
    let given = TaskKey::ROOT.child(0).to_bits().to_le_bytes();
    let stored = rule(&one, |bytes| {
        bytes[TASK_AT + 2] = 1;
        bytes.splice(TASK_AT + 4..TASK_AT + 4, given);
    });
    assert_eq!(stored, (TASK_AT + 4, Rule::KeyStored));
    let no_key = rule(&one, |bytes| {
        bytes.splice(TASK_AT..TASK_AT + 2, [1]);
        bytes.push(0); // or there would be no room for a task
    });
    assert_eq!(no_key, (TASK_AT + 3, Rule::KeyStored));
    let no_label = rule(&one, |bytes| {
        bytes[TASK_AT + 2] = 2;
        bytes.insert(TASK_AT + 4, 0);
    });
    assert_eq!(no_label, (TASK_AT + 5, Rule::Text));
    let no_priority = rule(&one, |bytes| {
        bytes[TASK_AT + 2] = 4;
        bytes.insert(TASK_AT + 4, 0);
    });
    assert_eq!(no_priority, (TASK_AT + 4, Rule::Priority));
    let twice = rule(
        &of(vec![child_of_root(0, 5), child_of_root(1, 6)]),
        |bytes| {
            bytes[TASK_AT + 13] = 0;
        },
    );
    assert_eq!(twice, (TASK_AT + 12, Rule::KeyUnique));
    assert_eq!(in_task(11, &[0, 0]), (TASK_AT + 12, Rule::Nothing));

    // Phases.
    let phases = |list: &'static [u8]| in_task(11, list);
    assert_eq!(phases(&[17]), (TASK_AT + 11, Rule::PhaseCount));
    assert_eq!(phases(&[1, 4, 1, 1]), (TASK_AT + 12, Rule::PhaseEnded));
    assert_eq!(phases(&[1, 0, 0, 1]), (TASK_AT, Rule::PhaseIntervals));
    assert_eq!(phases(&[2, 3, 1, 1, 0, 1, 1]), (TASK_AT, Rule::PhaseExit));
    assert_eq!(phases(&[1, 2, 1, 1]), (TASK_AT + 15, Rule::Complete));
    for list in [&[0][..], &[2, 1, 1, 1, 0, 1, 1], &[2, 0, 1, 1, 0, 1, 1]] {
        let unordered = rule(&one, |bytes| {
            bytes[TASK_AT + 2] = 0x10;
            bytes.splice(TASK_AT + 11.., list.iter().copied());
        });
        assert_eq!(unordered, (TASK_AT, Rule::PhaseOrder));
    }
}

#[test]
fn more_tasks_than_are_recorded_are_refused() {
    let with = |tasks: usize| {
        let mut bytes = opened(&of(Vec::new()));
        bytes.pop(); // the count
        let long = |number: usize| [number as u8 | 0x80, (number >> 7) as u8];
        bytes.extend(long(tasks));
        for ordinal in 0..tasks {
            bytes.push(0);
            match ordinal {
                0..128 => bytes.push(ordinal as u8),
                _ => bytes.extend(long(ordinal)),
            }
            bytes.extend([0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        decode(&sealed(bytes)).map(|profile| profile.tasks.len())
    };
    assert_eq!(with(MAX_TASKS), Ok(MAX_TASKS));
    let refused = DecodeError::Inconsistent {
        offset: COUNT_AT,
        rule: Rule::Tasks,
        found: MAX_TASKS as u64 + 1,
    };
    assert_eq!(with(MAX_TASKS + 1), Err(refused));
}

#[test]
fn a_figure_that_no_runs_can_have_given_is_refused() {
    let mut three = of(vec![child_of_root(0, 5)]);
    three.header.runs = 3;
    three.tasks[0].runs = 3;
    let mut with = |total, least, most| {
        let figure = Figure { total, least, most };
        three.tasks[0].figures = Figures::of([figure; 7]);
        encode(&three).is_ok()
    };
    assert!(with(30, 10, 10) && with(40, 10, 20) && with(50, 10, 20));
    assert!(!with(31, 10, 10) && !with(39, 10, 20) && !with(51, 10, 20) && !with(30, 20, 10));
    assert!(with(u64::MAX, u64::MAX, u64::MAX) && with(u64::MAX, 0, u64::MAX));
    // And in bytes, where a spread may also leave the range of numbers.
    let bad = rule(
        &{
            with(40, 10, 20);
            three
        },
        |bytes| bytes[TASK_AT + 4] = 39,
    );
    assert_eq!(bad, (TASK_AT, Rule::Figure));
}

#[test]
fn what_breaks_a_rule_is_not_encoded() {
    let refused = |change: fn(&mut StoredProfile)| {
        let mut profile = sample();
        change(&mut profile);
        let error = profile.validate().unwrap_err();
        assert_eq!(encode(&profile), Err(error));
        error.to_string()
    };
    assert_eq!(
        refused(|p| p.header.cpus = 0),
        "header: expected at least 1 CPU, found 0"
    );
    assert_eq!(
        refused(|p| p.header.runs = 0),
        "header: expected at least 1 run, found 0"
    );
    assert_eq!(
        refused(|p| p.tasks = vec![child_of_root(0, 0); MAX_TASKS + 1]),
        "header: expected at most 4096 tasks, and bytes for each, found 4097"
    );
    assert_eq!(
        refused(|p| p.tasks[2].place = Place::Child {
            parent: 2,
            ordinal: 0
        }),
        "task 2: expected a parent among the tasks before, found 2"
    );
    assert_eq!(
        refused(|p| p.tasks[2].runs = 4),
        "task 2: expected a task seen in 1 to all runs, found 4"
    );
    assert_eq!(
        refused(|p| p.tasks[2].runs = 0),
        "task 2: expected a task seen in 1 to all runs, found 0"
    );
    assert_eq!(
        refused(|p| p.tasks[0].figures.run.total = 7),
        "task 0: expected a total between what the least and the most allow, found 7"
    );
    assert_eq!(
        refused(|p| p.tasks[0].phases.list = vec![phase(Ended::Yield, 1, 1, 0); 17]),
        "task 0: expected at most 16 phases, found 17"
    );
    assert_eq!(
        refused(|p| p.tasks[0].phases.list[0].blocked = Counts(9)),
        "task 0: expected blocked time only after a block, found 9"
    );
    assert_eq!(
        refused(|p| p.tasks[3].key = p.tasks[0].key),
        format!(
            "task 3: expected a key that no other task has, found {}",
            TaskKey::ROOT.child(0).to_bits()
        )
    );
}

// --- Whose profile it is ----------------------------------------------------

#[test]
fn a_profile_of_something_else_is_refused_with_the_reason() {
    let profile = sample();
    let mut expected = Expected {
        architecture: Architecture::X86_64,
        program_hash: 0x0123_4567_89ab_cdef,
        cpus: 1,
        timing: Timing::Counted,
    };
    assert_eq!(check(&profile, &expected), Ok(()));
    let says = |expected: &Expected| check(&profile, expected).unwrap_err().to_string();
    expected.timing = Timing::Real;
    assert_eq!(
        says(&expected),
        "expected a profile measured in real time, found one in counted time"
    );
    expected.cpus = 2;
    assert_eq!(
        says(&expected),
        "expected a profile of 2 CPU(s), found one of 1"
    );
    expected.program_hash = 1;
    assert_eq!(
        says(&expected),
        "expected a profile of the program with hash 0000000000000001, \
         found one of `realtime`, 0123456789abcdef"
    );
    expected.architecture = Architecture::Riscv64;
    assert_eq!(
        says(&expected),
        "expected a profile of riscv64, found one of x86_64"
    );
}

#[test]
fn a_program_is_its_name_and_its_scale() {
    let hash = |name: &str, scale| Program::scaled(name, scale).hash;
    assert_ne!(hash("realtime", 1), hash("batch", 1));
    assert_ne!(hash("realtime", 1), hash("realtime", 10));
    // Profiles outlive a build: this number must not change.
    assert_eq!(
        hash("realtime", 1),
        TaskKey::labelled("realtime SCALE=1").to_bits()
    );
    assert_eq!(Program::scaled("realtime", 1).name.as_str(), "realtime");
    let [a, b] = ["a", "b"].map(|end| Program::scaled(&("long".repeat(20) + end), 1));
    assert_eq!((a.name, a.name.as_str()), (b.name, "unnamed"));
    assert_ne!(a.hash, b.hash);
}

#[test]
fn a_time_that_nobody_has_said_fits_every_other() {
    let fits = |profile, machine| {
        let mut of_it = sample();
        of_it.header.timing = profile;
        let expected = Expected {
            architecture: Architecture::X86_64,
            program_hash: 0x0123_4567_89ab_cdef,
            cpus: 1,
            timing: machine,
        };
        check(&of_it, &expected)
    };
    let known = [Timing::Real, Timing::Counted];
    for a in Timing::ALL {
        assert_eq!(fits(a, a), Ok(()));
        assert_eq!(fits(a, Timing::Unknown), Ok(()));
        assert_eq!(fits(Timing::Unknown, a), Ok(()));
    }
    for [found, expected] in [known, [known[1], known[0]]] {
        let mismatch = Mismatch::Timing { expected, found };
        assert_eq!(fits(found, expected), Err(mismatch));
    }
}

/// Profiles from before there were timings have nothing in those bits.
#[test]
fn a_profile_from_before_is_of_unknown_time() {
    for (timing, byte) in Timing::ALL.into_iter().zip([0x01, 0x11, 0x21]) {
        let mut profile = sample();
        profile.header.timing = timing;
        let bytes = encode(&profile).unwrap();
        assert_eq!(bytes[32], byte, "{timing}");
        assert_eq!(decode(&bytes), Ok(profile));
    }
}

// --- Merging ----------------------------------------------------------------

/// A place by its parent's key and its ordinal, as an index says nothing elsewhere.
type PlaceByKey = Option<(Option<TaskKey>, u32)>;

/// All that is said to depend on no order: everything but the order of the tasks.
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
        (task.key, (task, place))
    };
    (profile.header, profile.tasks.iter().map(of).collect())
}

proptest! {
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
        prop_assert_eq!(merged(&[&a]), a);
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
    third.tasks[0].latest = Some(Counts(100));
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
        (first.priority, first.latest),
        (NonZeroU8::new(4), Some(Counts(100)))
    );
}

#[test]
fn phases_merge_step_by_step_or_by_ending() {
    let with = |list: Vec<StoredPhase>| {
        let mut task = child_of_root(0, 1);
        task.phases.list = list;
        of(vec![task])
    };
    let a = with(vec![
        phase(Ended::Block, 1, 10, 100),
        phase(Ended::Yield, 5, 50, 0),
    ]);
    let b = with(vec![
        phase(Ended::Block, 3, 20, 300),
        phase(Ended::Yield, 5, 70, 0),
    ]);
    let c = with(vec![
        phase(Ended::Yield, 1, 1, 0),
        phase(Ended::Block, 1, 1, 1),
        phase(Ended::Yield, 1, 1, 0),
        phase(Ended::Exit, 1, 1, 0),
    ]);
    let phases = |profiles: &[&StoredProfile]| {
        let profiles: Vec<_> = profiles.iter().map(|p| (*p).clone()).collect();
        merge(&profiles).unwrap().tasks[0].phases.clone()
    };
    assert_eq!(
        phases(&[&a, &b]),
        Phases {
            order: PhaseOrder::AsRun,
            list: vec![
                phase(Ended::Block, 4, 30, 400),
                phase(Ended::Yield, 10, 120, 0)
            ],
        }
    );
    // The same steps, but in one of them nobody knows their order.
    let ends = vec![phase(Ended::Yield, 5, 50, 0), phase(Ended::Exit, 1, 1, 0)];
    let ordered = with(ends);
    let mut coarse = ordered.clone();
    coarse.tasks[0].phases.order = PhaseOrder::ByEnding;
    let order = PhaseOrder::ByEnding;
    assert_eq!(phases(&[&ordered, &coarse]).order, order);
    assert_eq!(phases(&[&coarse, &ordered]).order, order);
    assert_eq!(
        phases(&[&a, &b, &c]),
        Phases {
            order: PhaseOrder::ByEnding,
            list: vec![
                phase(Ended::Yield, 12, 122, 0),
                phase(Ended::Block, 5, 31, 401),
                phase(Ended::Exit, 1, 1, 0)
            ],
        }
    );
    let mean = phase(Ended::Block, 4, 30, 400);
    assert_eq!(
        (mean.mean_run(), mean.mean_blocked()),
        (Counts(7), Counts(100))
    );
}

/// Each below the other in one of the runs: no parent may stand after its child.
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

#[test]
fn profiles_that_do_not_belong_together_do_not_merge() {
    let says = |change: fn(&mut StoredProfile)| {
        let mut other = sample();
        change(&mut other);
        merge(&[sample(), other]).unwrap_err().to_string()
    };
    assert_eq!(merge(&[]), Err(MergeError::Nothing));
    assert_eq!(
        says(|p| p.header.program.hash += 1),
        "profile 1: expected the program with hash 0123456789abcdef, \
         found `realtime`, 0123456789abcdf0"
    );
    assert_eq!(
        says(|p| p.header.program.name = ProgramName::new("batch").unwrap()),
        "profile 1: expected the name of profile 0, found `batch` for the same program"
    );
    assert_eq!(
        says(|p| p.header.architecture = Architecture::Aarch64),
        "profile 1: expected the architecture x86_64, found aarch64"
    );
    assert_eq!(
        says(|p| p.header.frequency_hz = 0),
        "profile 1: expected counts of 1000000000 Hz, found 0 Hz"
    );
    assert_eq!(
        says(|p| p.header.cpus = 4),
        "profile 1: expected 1 CPU(s), found 4"
    );
    assert_eq!(
        says(|p| p.header.timing = Timing::Real),
        "profile 1: expected a run in counted time, found one in real time"
    );
    assert_eq!(
        says(|p| p.header.policy = PolicyName::new("cfs").unwrap()),
        "profile 1: expected a run under rr, found one under cfs"
    );
    assert_eq!(
        says(|p| p.tasks[1].label = Some(Label::new("other").unwrap())),
        format!(
            "profile 1: expected the label `io worker` for task {}, found `other`",
            TaskKey::labelled("io worker")
        )
    );
    assert_eq!(
        says(|p| p.header.runs = u32::MAX),
        "expected fewer than 2^32 runs together, found more"
    );
    assert_eq!(
        says(|p| p.header.cpus = 0),
        "profile 1: header: expected at least 1 CPU, found 0"
    );
    assert_eq!(
        says(|p| p.tasks = (0..4096).map(|i| child_of_root(i + 9, 0)).collect()),
        "expected at most 4096 tasks together, found 4100"
    );
    let many = |tasks: u32| of((0..tasks).map(|i| child_of_root(i, 0)).collect());
    let more = |tasks| of(vec![child_of_root(tasks, 0)]);
    assert!(merge(&[many(4095), more(4095)]).is_ok());
    assert_eq!(
        merge(&[many(4096), more(4096)]),
        Err(MergeError::TooManyTasks { found: 4097 })
    );
}

/// Whatever their order and grouping: those of unknown time take that of the others, and
/// what was measured in both times is no profile.
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

// --- Through a console ------------------------------------------------------

fn framed(bytes: &[u8]) -> String {
    let mut text = String::new();
    write_frame(bytes, &mut text).unwrap();
    text
}

fn read(text: &str) -> Result<Vec<u8>, FrameError> {
    read_frame(text.as_bytes())
}

#[test]
fn a_frame_is_these_lines() {
    let text = framed(b"The quick brown fox jumps over the lazy dog, again and again.");
    // What Python's base64 and zlib make of it.
    let expected = "\
PBG-PROFILE-BEGIN v1 bytes=61 lines=2 crc=4505a40b
PBG-PROFILE 1 VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZywgYWdh abb0
PBG-PROFILE 2 aW4gYW5kIGFnYWluLg== 65cc
PBG-PROFILE-END
";
    assert_eq!(text, expected);
    assert!(has_frame(text.as_bytes()) && !has_frame(b"PBG recorded 5 tasks"));
}

/// Whatever it is written to gets whole lines, so that others come in between.
#[test]
fn each_line_is_written_at_once() {
    struct Pieces(Vec<String>);
    impl fmt::Write for Pieces {
        fn write_str(&mut self, piece: &str) -> fmt::Result {
            self.0.push(piece.to_string());
            Ok(())
        }
    }
    let bytes = encode(&sample()).unwrap();
    let mut pieces = Pieces(Vec::new());
    write_frame(&bytes, &mut pieces).unwrap();
    assert_eq!(
        pieces.0.len(),
        bytes.len().div_ceil(FRAME_BYTES_PER_LINE) + 2
    );
    assert!(
        pieces
            .0
            .iter()
            .all(|piece| piece.ends_with('\n') && piece.len() < 100)
    );
    assert_eq!(pieces.0.concat(), framed(&bytes));
}

#[test]
fn a_frame_survives_a_console() {
    let bytes = encode(&sample()).unwrap();
    let text = framed(&bytes);
    assert_eq!(read(&text), Ok(bytes.clone()));
    assert_eq!(read(&text.replace('\n', "\r\n")), Ok(bytes.clone()));
    // Others write in between, before a line and after it.
    let mixed: String = (text.lines())
        .map(|line| format!("[ 0.5] tick\r\nno line feed{line} \x1b[m and on\r\n\u{fffd}\r\n"))
        .collect();
    assert_eq!(read(&mixed), Ok(bytes.clone()));
    let mut raw = b"\xff\xfe \n".to_vec();
    raw.extend(text.as_bytes());
    assert_eq!(read_frame(&raw), Ok(bytes.clone()));
    // Every line twice, every line in another order, the end lost.
    let mut lines: Vec<_> = text.lines().collect();
    let end = lines.pop().unwrap();
    let twice: Vec<_> = lines
        .iter()
        .flat_map(|line| [*line; 2])
        .chain([end])
        .collect();
    assert_eq!(read(&twice.join("\n")), Ok(bytes.clone()));
    assert_eq!(read(&lines.join("\n")), Ok(bytes.clone()));
    lines[1..].reverse();
    assert_eq!(read(&lines.join("\n")), Ok(bytes.clone()));
    // The last one counts, whatever stands before it.
    let cut = &text[..text.len() / 2];
    let older = framed(&encode(&of(Vec::new())).unwrap());
    assert_eq!(read(&format!("{older}{cut}\n{text}")), Ok(bytes));
}

#[test]
fn a_damaged_frame_says_what_is_missing() {
    let bytes = encode(&sample()).unwrap();
    let text = framed(&bytes);
    let lines: Vec<_> = text.lines().collect();
    let count = lines.len() - 2;
    assert!(count >= 4);
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        change(&mut lines);
        read(&lines.join("\n")).unwrap_err().to_string()
    };
    let found = count - 1;
    for lost in 1..=count {
        assert_eq!(
            with(&|lines| drop(lines.remove(lost))),
            format!(
                "expected {count} lines of a profile, found {found}; the first missing is number {lost}"
            )
        );
    }
    assert_eq!(
        with(&|lines| lines[2].insert_str(30, "[tick]")),
        format!(
            "expected {count} lines of a profile, found {found}; the first missing is number 2; line 3 is damaged"
        )
    );
    assert_eq!(
        with(&|lines| lines.truncate(3)),
        format!(
            "expected {count} lines of a profile, found 2; the first missing is number 3; the text ends before the profile does"
        )
    );
    assert_eq!(
        with(&|lines| lines[0].truncate(30)),
        "line 1: expected PBG-PROFILE-BEGIN v1 bytes=N lines=M crc=XXXXXXXX, found a damaged one"
    );
    assert_eq!(
        with(&|lines| lines[0] = lines[0].replace("v1", "v2")),
        "line 1: expected framing of version 1, found version 2"
    );
    assert_eq!(
        with(&|lines| drop(lines.remove(0))),
        "expected a line PBG-PROFILE-BEGIN …, found none"
    );
    // Lines that are whole, of another profile.
    let mut other = sample();
    other.header.program.hash = 1;
    let other = framed(&encode(&other).unwrap());
    let foreign = other.lines().nth(1).unwrap();
    assert_eq!(
        with(&|lines| lines.insert(3, foreign.to_string())),
        "line 4: expected number 1 as it was before, found another content"
    );
    assert!(
        with(&|lines| lines[1] = foreign.to_string())
            .starts_with("damaged: expected the checksum ")
    );
}

#[test]
fn a_frame_of_more_than_a_profile_can_have_is_refused() {
    let begin = |bytes: usize| {
        let lines = bytes.div_ceil(FRAME_BYTES_PER_LINE);
        read(&format!(
            "PBG-PROFILE-BEGIN v1 bytes={bytes} lines={lines} crc=00000000"
        ))
    };
    assert!(matches!(
        begin(MAX_BYTES),
        Err(FrameError::Incomplete { .. })
    ));
    for bytes in [0, MAX_BYTES + 1] {
        assert_eq!(begin(bytes), Err(FrameError::Begin { line: 1 }));
    }
}

/// One character anywhere: what comes out is what went in, or an error.
#[test]
fn no_changed_character_gets_through() {
    let bytes = encode(&sample()).unwrap();
    let text = framed(&bytes).into_bytes();
    for at in 0..text.len() {
        for to in [
            b'A',
            b'7',
            b' ',
            b'\n',
            b'=',
            0xff,
            text[at] ^ 1,
            text[at] ^ 0x20,
        ] {
            let mut damaged = text.clone();
            damaged[at] = to;
            if let Ok(found) = read_frame(&damaged) {
                assert_eq!(found, bytes, "byte {at} as {to:#04x}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_a_frame(text in "[PBG0-9=+/A-Za-z \r\n-]{0,400}") {
        let _ = read(&text);
        let _ = read(&format!("PBG-PROFILE-BEGIN v1 bytes=90 lines=2 crc=0\nPBG-PROFILE {text}"));
    }

    #[test]
    fn any_bytes_survive_a_frame(bytes in vec(any::<u8>(), 1..500)) {
        prop_assert_eq!(read(&framed(&bytes)), Ok(bytes));
    }
}
