//! A profile has one form only: bytes that break a rule are refused.

use std::format;

use super::*;
use crate::*;
use sched_core::units::{Counts, TaskKey};

/// Where the contents of `of(vec![…])` begin: runs, unrecorded, tick, phase, age, kernel, count, tasks.
const RUNS_AT: usize = 35 + 8 + 2;
const COUNT_AT: usize = RUNS_AT + 2 + 4;
const TASK_AT: usize = COUNT_AT + 1;

/// Returns the rule that the bytes of `profile` break after `change`, with the checksum set right, and
/// where.
fn rule(profile: &StoredProfile, change: impl FnOnce(&mut Vec<u8>)) -> (usize, Rule) {
    let mut bytes = opened(profile);
    change(&mut bytes);
    match decode(&sealed(bytes)) {
        Err(DecodeError::Inconsistent { offset, rule, .. }) => (offset, rule),
        other => panic!("expected a broken rule, found {other:?}"),
    }
}

#[test]
fn bytes_in_another_form_are_refused() {
    let one = of(vec![child_of_root(0, 5)]);
    // parent, ordinal, flags, runs, 7 figures, 4 figures of the spawn and a waker, phases
    let task = [0, 0, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
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
    assert_eq!(in_task(2, &[0x40]), (TASK_AT + 2, Rule::Flags));
    assert_eq!(in_task(3, &[0]), (TASK_AT, Rule::TaskRuns));
    // With two runs a figure is three numbers.
    const TWO_RUNS: &[u8] = &[
        2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(in_task(3, TWO_RUNS), (TASK_AT, Rule::TaskRuns));
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
            bytes[TASK_AT + 18] = 0;
        },
    );
    assert_eq!(twice, (TASK_AT + 17, Rule::KeyUnique));
    // An order may follow the last task: CPUs, and a group for each task.
    let order = |bytes: &'static [u8]| rule(&one, |profile| profile.extend(bytes));
    assert_eq!(order(&[1]), (TASK_AT + 18, Rule::Complete));
    assert_eq!(order(&[0, 0]), (TASK_AT + 17, Rule::OrderCpus));
    assert_eq!(order(&[1, 1]), (TASK_AT + 17, Rule::OrderGroups));
    assert_eq!(order(&[0x80, 0x80, 4, 0]), (TASK_AT + 17, Rule::Fits));
    assert_eq!(order(&[1, 0x80, 0x80, 4]), (TASK_AT + 18, Rule::Fits));
    assert_eq!(order(&[1, 0, 0]), (TASK_AT + 19, Rule::Nothing));

    // Phases.
    let phases = |list: &'static [u8]| in_task(16, list);
    assert_eq!(phases(&[17]), (TASK_AT + 16, Rule::PhaseCount));
    assert_eq!(phases(&[1, 4, 1, 1]), (TASK_AT + 17, Rule::PhaseEnded));
    assert_eq!(phases(&[1, 0, 0, 1, 0]), (TASK_AT, Rule::PhaseIntervals));
    assert_eq!(
        phases(&[2, 3, 1, 1, 0, 0, 1, 1, 0]),
        (TASK_AT, Rule::PhaseExit)
    );
    assert_eq!(phases(&[1, 2, 1, 1]), (TASK_AT + 20, Rule::Complete));
    for list in [
        &[0][..],
        &[2, 1, 1, 1, 0, 0, 1, 1, 0],
        &[2, 0, 1, 1, 0, 0, 1, 1, 0],
    ] {
        let unordered = rule(&one, |bytes| {
            bytes[TASK_AT + 2] = 0x10;
            bytes.splice(TASK_AT + 16.., list.iter().copied());
        });
        assert_eq!(unordered, (TASK_AT, Rule::PhaseOrder));
    }
}

#[test]
fn bytes_of_starts_and_wakers_in_another_form_are_refused() {
    let mut task = child_of_root(0, 5);
    task.phases.list = vec![phase(Ended::Block, 1, 5, 7)];
    let mut one = with_starts(of(vec![task]));
    let block = &mut one.tasks[0].phases.list[0];
    (block.woken_by, block.wakes) = (Waker::Task(0), Wakes::of([woken(Waker::Root, 2, 9)]));
    one.header.start = Start::default();
    // After runs and unrecorded: the tick, its phase, the age, the kernel.
    let start_at = RUNS_AT + 2;
    assert_eq!(opened(&one)[start_at..start_at + 4], [0, 0, 0, 0]);
    // The task has parent, ordinal, flags, runs and 7 figures. Its spawn has the time, the parent's
    // run, blocks and wake, and the waker. A phase has its ending, the number of run intervals, run,
    // blocked, the waker, and the number of woken tasks. A woken task has its number, the number of
    // wakes, and the time.
    let task_at = start_at + 4 + 1;
    let bytes = [
        0, 0, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 5, 7, 4, 1, 3, 2, 9,
    ];
    assert_eq!(opened(&one)[task_at..], bytes);
    let set = |at: usize, to: &'static [u8]| {
        rule(&one, |bytes| {
            bytes.splice(at..at + 1, to.iter().copied());
        })
    };
    assert_eq!(set(start_at + 3, &[3]), (start_at + 3, Rule::Kernel));
    let in_task = |at, to| (set(task_at + at, to).0 - task_at, set(task_at + at, to).1);
    // A profile of one task has no task 1, and no number exceeds 16 bits.
    assert_eq!(in_task(15, &[5]), (0, Rule::Waker));
    assert_eq!(in_task(15, &[0x84, 0x80, 4]), (15, Rule::Waker));
    assert_eq!(in_task(21, &[5]), (0, Rule::Waker));
    assert_eq!(in_task(23, &[5]), (0, Rule::Waker));
    assert_eq!(in_task(23, &[0x84, 0x80, 4]), (23, Rule::Waker));
    // A woken task is the program's, woken at least once, and in order; an unknown one is alone.
    assert_eq!(in_task(23, &[1]), (23, Rule::PhaseWakes));
    assert_eq!(in_task(23, &[2]), (23, Rule::PhaseWakes));
    assert_eq!(in_task(24, &[0]), (24, Rule::PhaseWakes));
    assert_eq!(in_task(22, &[3]), (22, Rule::PhaseWakes));
    assert_eq!(in_task(22, &[0]), (23, Rule::OrderGroups));
    assert_eq!(in_task(22, &[2, 0, 1, 1]), (23, Rule::PhaseWakes));
    assert_eq!(in_task(22, &[2, 4, 1, 1]), (26, Rule::PhaseWakes));
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
            bytes.extend([0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
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
fn a_figure_that_no_runs_can_give_is_refused() {
    let mut three = of(vec![child_of_root(0, 5)]);
    three.header.runs = 3;
    three.tasks[0].runs = 3;
    let mut with = |total, least, most| {
        let figure = Figure { total, least, most };
        three.tasks[0].figures = Figures::from_array([figure; 7]);
        encode(&three).is_ok()
    };
    assert!(with(30, 10, 10) && with(40, 10, 20) && with(50, 10, 20));
    assert!(!with(31, 10, 10) && !with(39, 10, 20) && !with(51, 10, 20) && !with(30, 20, 10));
    assert!(with(u64::MAX, u64::MAX, u64::MAX) && with(u64::MAX, 0, u64::MAX));
    // And in bytes, where a spread may also leave the range of numbers. The three figures of the
    // header have two more bytes each.
    let task_at = TASK_AT + 6;
    let bad = rule(
        &{
            with(40, 10, 20);
            three
        },
        |bytes| bytes[task_at + 4] = 39,
    );
    assert_eq!(bad, (task_at, Rule::Figure));
}

#[test]
fn a_profile_that_breaks_a_rule_is_not_encoded() {
    type Change = fn(&mut StoredProfile);
    let changes: [(&str, Change); 14] = [
        ("no CPU", |p| p.header.cpus = 0),
        ("no run", |p| p.header.runs = 0),
        ("too many tasks", |p| {
            p.tasks = vec![child_of_root(0, 0); MAX_TASKS + 1];
        }),
        ("its own parent", |p| {
            let (parent, ordinal) = (2, 0);
            p.tasks[2].place = Place::Child { parent, ordinal };
        }),
        ("more runs than all", |p| p.tasks[2].runs = 4),
        ("a task of no run", |p| p.tasks[2].runs = 0),
        ("a total below the least", |p| {
            p.tasks[0].figures.run.total = 7
        }),
        ("17 phases", |p| {
            p.tasks[0].phases.list = vec![phase(Ended::Yield, 1, 1, 0); 17];
        }),
        ("blocked after a yield", |p| {
            p.tasks[0].phases.list[0].blocked = Counts(9);
        }),
        ("spawned after no task of it", |p| {
            p.tasks[0].spawned.after = Waker::Task(4);
        }),
        ("a waker after a yield", |p| {
            p.tasks[0].phases.list[0].woken_by = Waker::Timer;
        }),
        ("it woke the timer", |p| {
            p.tasks[0].phases.list[0].wakes = Wakes::of([woken(Waker::Timer, 1, 1)]);
        }),
        ("a tick below the least", |p| {
            p.header.start.tick.total = 1;
        }),
        ("a key twice", |p| p.tasks[3].key = p.tasks[0].key),
    ];
    let refused = changes.iter().map(|(name, change)| {
        let mut profile = sample();
        change(&mut profile);
        let error = profile.validate().unwrap_err();
        assert_eq!(encode(&profile), Err(error));
        format!("{name}: {error}")
    });
    assert_golden("refused", &refused.collect::<Vec<_>>());
}

#[test]
fn order_with_a_gap_or_without_a_task_is_refused() {
    let with = |tasks: u32, groups: &[u16]| {
        let mut profile = of((0..tasks).map(|i| child_of_root(i, 5)).collect());
        profile.order = Some(StoredOrder {
            cpus: 1,
            groups: groups.to_vec(),
        });
        profile.validate()
    };
    let refused = |found| {
        Err(EncodeError::Inconsistent {
            task: None,
            rule: Rule::OrderGroups,
            found,
        })
    };
    assert_eq!(with(3, &[1, 0, 1]), Ok(()));
    assert_eq!(with(3, &[2, 0, 2]), refused(1));
    assert_eq!(with(3, &[1, 1, 2]), refused(0));
    assert_eq!(with(3, &[0, 1, 3]), refused(3));
    assert_eq!(with(3, &[0, 1]), refused(2));
    assert_eq!(with(0, &[]), refused(0));
}
