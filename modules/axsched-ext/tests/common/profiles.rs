//! The least profile that a test can start from: of the tests here and of the tools.
#![allow(dead_code, reason = "each test binary uses its part")]

use axsched_ext::{
    pbg::stored::{
        Architecture, Figures, Header, Phases, Place, PolicyName, Program, ProgramName, Spawned,
        Start, StoredProfile, StoredTask, Timing,
    },
    units::TaskKey,
};

/// One run of `program` under RR on x86_64, where a count is a nanosecond and an instruction.
pub fn header(program: &str) -> Header {
    Header {
        architecture: Architecture::X86_64,
        timing: Timing::Counted,
        frequency_hz: 1_000_000_000,
        cpus: 1,
        program: Program {
            name: ProgramName::new(program).expect("a short name"),
            hash: 0x0123_4567_89ab_cdef,
        },
        policy: PolicyName::new("rr").expect("a short name"),
        runs: 1,
        unrecorded: 0,
        start: Start::default(),
    }
}

/// The child of the root with this ordinal, of one run, without figures.
pub fn task(ordinal: u32) -> StoredTask {
    StoredTask {
        key: TaskKey::ROOT.child(ordinal),
        label: None,
        place: Place::Root { ordinal },
        runs: 1,
        priority: None,
        deadline: None,
        varies: false,
        figures: Figures::default(),
        phases: Phases::default(),
        spawned: Spawned::default(),
    }
}

/// A run of `program` with these tasks.
pub fn profile(program: &str, tasks: impl IntoIterator<Item = StoredTask>) -> StoredProfile {
    StoredProfile {
        header: header(program),
        tasks: tasks.into_iter().collect(),
        order: None,
    }
}
