//! The header of a measurement, and the facts that the caller adds before it is a profile.

use super::error::{Error, reserved};
use pbg_profile::{
    Architecture, Header, Phases, PolicyName, Program, ProgramName, Start, StoredOrder,
    StoredProfile, StoredTask, Timing,
};

/// The facts about the program and the machine that the library cannot find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The program that runs.
    pub program: Program,
    /// Counts a second of the CPU's counter, in Hz; 0 is unknown.
    pub frequency_hz: u64,
    /// The number of CPUs that are scheduled.
    pub cpus: u16,
    /// The kind of time in which the machine runs. A kernel cannot find out whether an emulator
    /// counts its instructions. With [`Timing::Unknown`] no profile is refused for its timing.
    pub timing: Timing,
}

impl About {
    /// Describes the program `name` with all of its work, on one CPU, in an unknown timing.
    ///
    /// `frequency_hz` is the frequency of the CPU's counter. If it is 0, which is unknown, the
    /// profile has counts in place of times. A program that is no test program of this tree knows
    /// no more than this.
    pub fn program(name: &str, frequency_hz: u64) -> Self {
        Self {
            program: Program::scaled(name, 1),
            frequency_hz,
            cpus: 1,
            timing: Timing::Unknown,
        }
    }
}

/// Returns the header of a measurement under `policy`. The frequency is unknown until a caller asks
/// for the profile and supplies it ([`described`]).
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

/// Returns a copy of the profile. If its frequency is unknown, as in a measurement, `about` goes into
/// its header.
pub fn described(profile: &StoredProfile, about: &About) -> Result<StoredProfile, Error> {
    let mut copy = StoredProfile {
        header: profile.header,
        tasks: reserved(profile.tasks.len())?,
        order: None,
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
    if let Some(order) = &profile.order {
        let mut groups = reserved(order.groups.len())?;
        groups.extend_from_slice(&order.groups);
        copy.order = Some(StoredOrder {
            cpus: order.cpus,
            groups,
        });
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
