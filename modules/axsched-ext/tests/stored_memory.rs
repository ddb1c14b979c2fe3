//! The memory of a stored profile: decoding takes no more than the bytes justify, whatever they contain, and running out
//! is an error everywhere.

#[path = "common/profiles.rs"]
mod profiles;

#[path = "common/memory.rs"]
mod memory;

use axsched_ext::pbg::Plan;
use axsched_ext::pbg::stored::*;
use axsched_ext::syscall::Error;
use axsched_ext::units::Counts;

use memory::{HELD, PEAK, refused_until_granted};

/// The most bytes that `call` held on top of what there was.
fn peak<R>(call: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = call();
    (result, (PEAK.get() - before) as usize)
}

fn profile(tasks: u32, phases: usize) -> StoredProfile {
    let phase = StoredPhase::new(Ended::Yield, 1, Counts(1), Counts(0));
    let task = |ordinal| StoredTask {
        phases: Phases {
            order: PhaseOrder::AsRun,
            list: vec![phase; phases],
        },
        ..profiles::task(ordinal)
    };
    profiles::profile("memory", (0..tasks).map(task))
}

/// Right length and checksum around whatever the contents are.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let total = (bytes.len() + 4) as u32;
    bytes[12..16].copy_from_slice(&total.to_le_bytes());
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn decoding_takes_what_the_bytes_justify() {
    for (tasks, phases) in [(4096, 0), (4096, 16), (100, 3), (1, 1)] {
        let bytes = encode(&profile(tasks, phases)).unwrap();
        let (decoded, peak) = peak(|| decode(&bytes));
        assert!(decoded.is_ok());
        assert!(
            peak <= bytes.len() * MEMORY_PER_BYTE,
            "{tasks}, {phases}: {peak}"
        );
        // Not by so much that the bound says nothing.
        assert!(phases > 0 || peak * 2 > bytes.len() * MEMORY_PER_BYTE || tasks < 100);
    }
    const { assert!(MEMORY_PER_BYTE <= 24) } // as the page of the format says
}

#[test]
fn huge_counts_allocate_nothing_large() {
    let empty = {
        let mut bytes = encode(&profile(0, 0)).unwrap();
        bytes.truncate(bytes.len() - 5); // the checksum, and the count
        bytes
    };
    for count in [
        &[0x80, 0x20][..],
        &[0xff, 0x1f],
        &[0xff; 9],
        b"\xff\xff\xff\xff\x0f",
    ] {
        for padding in [0, 1, 11, 12, 1000] {
            let mut bytes = empty.clone();
            bytes.extend(count);
            bytes.resize(bytes.len() + padding, 1);
            let bytes = sealed(bytes);
            let (result, peak) = peak(|| decode(&bytes));
            assert!(result.is_err());
            assert_eq!(peak, 0, "{count:?} and {padding}: {result:?}");
        }
    }
    let mut endless = sealed(empty);
    endless[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let (result, held) = peak(|| decode(&endless));
    assert_eq!((result.is_err(), held), (true, 0));

    let text = format!(
        "PBG-PROFILE-BEGIN v1 bytes={MAX_BYTES} lines={} crc=00000000\n",
        MAX_BYTES.div_ceil(FRAME_BYTES_PER_LINE)
    );
    let (result, peak) = peak(|| read_frame(text.as_bytes()));
    assert!(
        matches!(result, Err(FrameError::Incomplete { .. })),
        "{result:?}"
    );
    assert!(peak < 18_000, "{peak}"); // a bit a line
}

#[test]
fn every_allocation_may_fail() {
    let mut original = profile(20, 3);
    original.tasks[7].phases.list.pop();
    let mut other = profile(21, 3);
    other.tasks[3].phases.list.pop();
    let bytes = refused_until_granted(EncodeError::NoMemory, || (), || encode(&original));
    let decoded = refused_until_granted(DecodeError::NoMemory, || (), || decode(&bytes));
    assert_eq!(decoded, original);
    let both = [original, other];
    let merged = refused_until_granted(MergeError::NoMemory, || (), || merge(&both));
    assert_eq!(merged.tasks.len(), 21);
    let mut text = String::new();
    write_frame(&bytes, &mut text).unwrap();
    let found = refused_until_granted(FrameError::NoMemory, || (), || read_frame(text.as_bytes()));
    assert_eq!(found, bytes);
}

#[test]
fn any_number_of_runs_merges_in_the_memory_of_a_few() {
    // The runs have different lengths and phases, so that they differ in every way that matters.
    let runs: Vec<_> = (0..8)
        .map(|n| {
            let mut run = profile(64 - n, 16);
            (run.tasks.iter_mut().skip(n as usize).step_by(3))
                .for_each(|task| task.phases.list.truncate(n as usize));
            run
        })
        .collect();
    let merged = |count| {
        peak(|| {
            let mut merger = Merger::default();
            for run in runs.iter().cycle().take(count) {
                merger.add(run).unwrap();
            }
            merger.finish().unwrap()
        })
    };
    let (few, of_few) = merged(8);
    let (many, of_many) = merged(800);
    assert_eq!((few.tasks.len(), few.header.runs), (64, 8));
    assert_eq!((many.tasks.len(), many.header.runs), (64, 800));
    assert_eq!(of_few, of_many);
}

#[test]
fn a_plan_takes_what_is_stated_or_is_refused() {
    let mut profile = profile(1000, 16);
    for task in &mut profile.tasks {
        // Stretches of their own, and blocked in between, so that there are as many steps
        // as can be.
        task.figures.blocked = Figure::once(1_000_000);
        (task.phases.list.iter_mut()).for_each(|phase| {
            phase.ended = Ended::Block;
            phase.intervals = 2;
        });
    }
    let (plan, bytes) = peak(|| Plan::of(&profile));
    assert_eq!(plan.unwrap().steps().len(), 16_000);
    assert_eq!(bytes, 1000 * (64 + 16 * 16 + 40));
    for (ordinal, task) in profile.tasks.iter_mut().enumerate() {
        task.figures.run = Figure::once(1 + ordinal as u64);
        task.figures.blocked = Figure::default();
        task.deadline = Some(Counts(1)); // one may have that
    }
    let (plan, bytes) = peak(|| Plan::of(&profile));
    assert_eq!(plan.as_ref().map(|plan| plan.late().len()), Ok(999));
    assert_eq!(bytes, 1000 * (64 + 16 * 16 + 40 + 16) + 999 * 24);
    let refused = refused_until_granted(Error::NoMemory, || (), || Plan::of(&profile));
    assert_eq!(Ok(refused), plan);
}

/// Returns a profile in which each task but every fourth waits for the exit of an earlier one.
fn profile_with_waits(tasks: u16) -> StoredProfile {
    let waker = |i: u16| (!i.is_multiple_of(4)).then(|| i.wrapping_mul(40_503) % i);
    let mut profile = profile(tasks.into(), 0);
    for i in 0..tasks {
        let task = &mut profile.tasks[usize::from(i)];
        let run = 1 + u64::from(i) * 7 % 100;
        task.figures.run = Figure::once(run);
        let mut block = StoredPhase::new(Ended::Block, 1, Counts(0), Counts(1));
        block.woken_by = waker(i).map_or(Waker::Timer, Waker::Task);
        let mut exit = StoredPhase::new(Ended::Exit, 1, Counts(run), Counts(0));
        let woken = (i + 1..tasks).filter(|&other| waker(other) == Some(i));
        exit.wakes = Wakes::of(woken.map(|other| Woken {
            whom: Waker::Task(other),
            count: 1,
            after: Counts(run),
        }));
        task.phases.list = vec![block, exit];
    }
    profile
}

#[test]
fn a_plan_of_tasks_that_wait_takes_what_is_stated_or_is_refused() {
    let profile = profile_with_waits(256);
    let (plan, bytes) = peak(|| Plan::of(&profile));
    let plan = plan.unwrap();
    assert!(
        plan.tasks().last().unwrap().band > 128,
        "most are a group of their own"
    );
    assert!(bytes <= 64 << 10, "{bytes}");
    let refused = refused_until_granted(Error::NoMemory, || (), || Plan::of(&profile));
    assert_eq!(refused, plan);
}

#[test]
fn writing_a_frame_allocates_nothing() {
    struct Nowhere;
    impl std::fmt::Write for Nowhere {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            Ok(())
        }
    }
    let bytes = encode(&profile(100, 3)).unwrap();
    assert_eq!(peak(|| write_frame(&bytes, &mut Nowhere)), (Ok(()), 0));
}
