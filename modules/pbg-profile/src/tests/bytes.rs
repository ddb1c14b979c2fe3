//! Profiles are written as bytes and read back, and damaged bytes are refused.

use core::num::NonZeroU8;
use std::format;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::encode::{MAX_HEADER_BYTES, MAX_TASK_BYTES};
use crate::*;
use sched_core::units::{Counts, TaskKey};

#[test]
fn a_profile_survives_its_bytes() {
    let empty = of(vec![]);
    let one = of(vec![child_of_root(7, 1)]);
    for profile in [sample(), empty, one] {
        let bytes = encode(&profile).unwrap();
        assert_eq!(bytes[8..10], VERSION.to_le_bytes());
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
    largest.header.start = Start {
        tick: figure,
        phase: figure,
        age: figure,
        kernel: Kernel::Preemptive,
    };
    let last = Waker::Task(MAX_TASKS as u16 - 1);
    let before_last = Waker::Task(MAX_TASKS as u16 - 2);
    let longest = StoredPhase {
        woken_by: last,
        wakes: Wakes::of([before_last, last].map(|whom| woken(whom, u64::MAX, u64::MAX))),
        ..phase(Ended::Block, u64::MAX, u64::MAX, u64::MAX)
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
            deadline: Some(Counts(u64::MAX)),
            varies: true,
            figures: Figures::from_array([figure; 7]),
            phases: Phases {
                order: PhaseOrder::AsRun,
                list: vec![longest; MAX_PHASES],
            },
            spawned: Spawned {
                at: figure,
                parent_run: figure,
                parent_blocks: figure,
                parent_woken: figure,
                after: last,
            },
        });
    }
    largest.order = Some(StoredOrder {
        cpus: u16::MAX,
        groups: (0..MAX_TASKS as u16).collect(),
    });
    let bytes = encode(&largest).unwrap();
    // The first 126 parents and the first 128 groups take one byte and not two.
    assert_eq!(bytes.len() + 127 + 128, MAX_BYTES);
    let order = 3 + 4096 * 2;
    assert_eq!(
        MAX_BYTES,
        MAX_HEADER_BYTES + 4096 * MAX_TASK_BYTES + order + 4
    );
    assert!((6_600_000..6_800_000).contains(&MAX_BYTES), "{MAX_BYTES}");
    assert_eq!(decode(&bytes), Ok(largest));
}

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
        let expected = if len < 16 { 48 } else { bytes.len() };
        let found = len;
        let truncated = DecodeError::Truncated { expected, found };
        assert_eq!(decode(&bytes[..len]), Err(truncated));
    }
    for len in 16..bytes.len() {
        refused_or_valid(&sealed(bytes[..len].to_vec()));
    }
}

/// 10,000 times, 2 to 16 bytes are changed anywhere, or a piece is moved.
#[test]
fn random_corruptions_are_refused_or_valid() {
    let whole = encode(&sample()).unwrap();
    let open = opened(&sample());
    let mut random = Numbers(1);
    for n in 0..10_000 {
        let mut bytes = [&whole, &open][n % 2].clone();
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
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        format!("{name}: {}", decode(&bytes).unwrap_err())
    };
    let found = [
        with("an image", &|bytes| *bytes = b"\x89PNG\r\n\x1a\n".to_vec()),
        with("version 1", &|bytes| bytes[8] = 1),
        with("version 3", &|bytes| bytes[8] = 3),
        with("cut", &|bytes| bytes.truncate(50)),
        with("longer", &|bytes| bytes.push(0)),
        with("another checksum", &|bytes| *bytes.last_mut().unwrap() ^= 1),
        with("endless", &|bytes| {
            bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        }),
    ];
    assert_golden("bytes", &found);
}
