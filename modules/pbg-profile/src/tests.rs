//! The stored profile: to bytes and back, and the profiles that are refused.

mod bytes;
mod check;
mod frame;
mod merging;
mod rules;

use core::num::NonZeroU8;
use std::string::String;

use proptest::collection::vec;

use super::*;
use crate::samples::*;
use sched_core::units::{Counts, TaskKey};

fn labelled(label: &str, ordinal: u32, run: u64) -> StoredTask {
    StoredTask {
        label: Some(Label::new(label).unwrap()),
        ..task(Place::Root { ordinal }, TaskKey::labelled(label), run)
    }
}

/// Returns a profile with one of everything.
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
    second.deadline = Some(Counts(50_000_000));
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
    let mut profile = with_starts(StoredProfile {
        header: Header {
            runs: 3,
            unrecorded: 300,
            ..header()
        },
        tasks: vec![first, second, third, fourth],
        order: None,
    });
    let block = &mut profile.tasks[0].phases.list[1];
    (block.woken_by, block.wakes) = (
        Waker::Task(3),
        Wakes::of([woken(Waker::Task(2), 3, 70), woken(Waker::Root, 1, 5)]),
    );
    let waits = &mut profile.tasks[1].phases.list[1];
    (waits.woken_by, waits.wakes) = (Waker::Outside, Wakes::of([woken(Waker::Unknown, 1, 0)]));
    profile
}

/// Returns `bytes` with the right length and checksum, as an attacker who knows the format would
/// make them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let total = (bytes.len() + 4) as u32;
    bytes[12..16].copy_from_slice(&total.to_le_bytes());
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Returns the bytes of a profile without their checksum, to be changed and sealed again.
fn opened(profile: &StoredProfile) -> Vec<u8> {
    let mut bytes = encode(profile).unwrap();
    bytes.truncate(bytes.len() - 4);
    bytes
}

/// Checks that `bytes` are refused, or are a profile that encodes to the same bytes.
fn refused_or_valid(bytes: &[u8]) {
    if let Ok(profile) = decode(bytes) {
        assert_eq!(encode(&profile).as_deref(), Ok(bytes));
    }
}

/// Checks that `found`, a line for each case, is what the golden file `src/tests/<name>.txt` says.
/// `GOLDEN=write cargo test -p pbg-profile` rewrites the files.
fn assert_golden(name: &str, found: &[String]) {
    let path = std::format!("{}/src/tests/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let found = found.join("\n") + "\n";
    if std::env::var_os("GOLDEN").is_some_and(|golden| golden == "write") {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap(), "{path}");
}

/// Random numbers (Knuth's MMIX generator) that are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}
