//! Whose profile it is.

use std::string::ToString;

use super::*;
use crate::*;
use sched_core::units::TaskKey;

#[test]
fn a_profile_of_something_else_is_refused_with_the_reason() {
    let profile = sample();
    let mut expected = Expected {
        architecture: Architecture::X86_64,
        program_hash: 0x0123_4567_89ab_cdef,
        timing: Timing::Counted,
    };
    assert_eq!(check(&profile, &expected), Ok(()));
    let says = |expected: &Expected| check(&profile, expected).unwrap_err().to_string();
    expected.timing = Timing::Real;
    assert_eq!(
        says(&expected),
        "expected a profile measured in real time, found one in counted time"
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
fn a_profile_of_more_or_fewer_cpus_is_not() {
    let mut profile = sample();
    profile.header.cpus = 4;
    let expected = Expected {
        architecture: Architecture::X86_64,
        program_hash: 0x0123_4567_89ab_cdef,
        timing: Timing::Counted,
    };
    assert_eq!(check(&profile, &expected), Ok(()));
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
