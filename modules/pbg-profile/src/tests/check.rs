//! Whether a profile belongs to this program and machine.

use std::format;

use super::*;
use crate::*;
use sched_core::units::TaskKey;

/// The machine and the program of [`sample`].
const EXPECTED: Expected = Expected {
    architecture: Architecture::X86_64,
    program_hash: 0x0123_4567_89ab_cdef,
    timing: Timing::Counted,
};

#[test]
fn a_profile_of_something_else_is_refused_with_the_reason() {
    let profile = sample();
    assert_eq!(check(&profile, &EXPECTED), Ok(()));
    let mut expected = EXPECTED;
    let says = |name: &str, expected: &Expected| {
        format!("{name}: {}", check(&profile, expected).unwrap_err())
    };
    expected.timing = Timing::Real;
    let timing = says("real time", &expected);
    expected.program_hash = 1;
    let program = says("another program", &expected);
    expected.architecture = Architecture::Riscv64;
    assert_golden(
        "check",
        &[timing, program, says("another architecture", &expected)],
    );
}

#[test]
fn a_profile_of_more_or_fewer_cpus_is_accepted() {
    let mut profile = sample();
    profile.header.cpus = 4;
    assert_eq!(check(&profile, &EXPECTED), Ok(()));
}

#[test]
fn a_program_is_its_name_and_its_scale() {
    let hash = |name: &str, scale| Program::scaled(name, scale).hash;
    assert_ne!(hash("realtime", 1), hash("batch", 1));
    assert_ne!(hash("realtime", 1), hash("realtime", 10));
    // Profiles outlive a build: this number must not change.
    let stable = TaskKey::labelled("realtime SCALE=1").to_bits();
    assert_eq!(hash("realtime", 1), stable);
    assert_eq!(Program::scaled("realtime", 1).name.as_str(), "realtime");
    let [a, b] = ["a", "b"].map(|end| Program::scaled(&("long".repeat(20) + end), 1));
    assert_eq!((a.name, a.name.as_str()), (b.name, "unnamed"));
    assert_ne!(a.hash, b.hash);
}

#[test]
fn an_unknown_time_fits_every_other() {
    let fits = |found, timing| {
        let mut profile = sample();
        profile.header.timing = found;
        check(&profile, &Expected { timing, ..EXPECTED })
    };
    for found in Timing::ALL {
        for expected in Timing::ALL {
            let is_unknown = [found, expected].contains(&Timing::Unknown);
            let result = match is_unknown || found == expected {
                true => Ok(()),
                false => Err(Mismatch::Timing { expected, found }),
            };
            assert_eq!(fits(found, expected), result);
        }
    }
}

/// Profiles from before there were timings have 0 in those bits.
#[test]
fn a_profile_without_a_timing_is_of_unknown_time() {
    for (timing, byte) in Timing::ALL.into_iter().zip([0x01, 0x11, 0x21]) {
        let mut profile = sample();
        profile.header.timing = timing;
        let bytes = encode(&profile).unwrap();
        assert_eq!(bytes[32], byte, "{timing}");
        assert_eq!(decode(&bytes), Ok(profile));
    }
}
