//! What a measurement knows by itself, and what it has to be told before it is a profile.

use super::error::{Error, reserved};
use pbg_profile::{
    Architecture, Header, Phases, PolicyName, Program, ProgramName, Start, StoredProfile,
    StoredTask, Timing,
};

/// What the library cannot know by itself of the program and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Which program runs.
    pub program: Program,
    /// Counts a second of the CPU's counter, in Hz; 0 is unknown.
    pub frequency_hz: u64,
    /// CPUs that are scheduled.
    pub cpus: u16,
    /// In which time the machine runs. A kernel cannot find out whether an emulator counts
    /// its instructions: who does not know says [`Timing::Unknown`], and no profile is
    /// refused for its time.
    pub timing: Timing,
}

impl About {
    /// The program `name`, all of its work, on one CPU whose counter counts so often a second
    /// (0 is unknown, and its profile has counts in place of times), in a time that nobody
    /// has told: what a program knows that is no test program of this tree.
    pub fn program(name: &str, frequency_hz: u64) -> Self {
        Self {
            program: Program::scaled(name, 1),
            frequency_hz,
            cpus: 1,
            timing: Timing::Unknown,
        }
    }
}

/// What a measurement under `policy` knows by itself: the frequency is unknown until somebody
/// asks for the profile and says it.
pub fn header(policy: PolicyName, unrecorded: u64, start: Start) -> Header {
    const UNNAMED: ProgramName = match ProgramName::new("program") {
        Ok(name) => name,
        Err(_) => panic!(),
    };
    Header {
        architecture: Architecture::HERE,
        timing: Timing::Unknown,
        frequency_hz: 0,
        cpus: 1,
        program: Program {
            name: UNNAMED,
            hash: 0,
        },
        policy,
        runs: 1,
        unrecorded,
        start,
    }
}

/// The same profile; a measurement with what has to be told in its header.
pub fn described(profile: &StoredProfile, about: &About) -> Result<StoredProfile, Error> {
    let mut copy = StoredProfile {
        header: profile.header,
        tasks: reserved(profile.tasks.len())?,
    };
    if copy.header.frequency_hz == 0 {
        copy.header.program = about.program;
        copy.header.frequency_hz = about.frequency_hz;
        copy.header.cpus = about.cpus;
        copy.header.timing = about.timing;
    }
    for task in &profile.tasks {
        copy.tasks.push(copied(task)?);
    }
    Ok(copy)
}

fn copied(task: &StoredTask) -> Result<StoredTask, Error> {
    let mut list = reserved(task.phases.list.len())?;
    list.extend_from_slice(&task.phases.list);
    let phases = Phases {
        order: task.phases.order,
        list,
    };
    Ok(StoredTask { phases, ..*task })
}
