//! The header of a profile: the program, the machine and the runs that were measured.

use core::fmt;

use super::task::Figure;
use super::text::{PolicyName, ProgramName};
use sched_core::units::TaskKey;

/// The instruction set of the machine that a profile was measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Architecture {
    /// An architecture that has no number of its own.
    Other = 0,
    /// The 64-bit mode of x86, as in `ARCH=x86_64`.
    X86_64 = 1,
    /// RISC-V with 64 bits, as in `ARCH=riscv64`.
    Riscv64 = 2,
    /// Arm with 64 bits, as in `ARCH=aarch64`.
    Aarch64 = 3,
    /// LoongArch with 64 bits, as in `ARCH=loongarch64`.
    Loongarch64 = 4,
}

impl Architecture {
    /// All architectures, by their number in a profile.
    pub const ALL: [Self; 5] = [
        Self::Other,
        Self::X86_64,
        Self::Riscv64,
        Self::Aarch64,
        Self::Loongarch64,
    ];

    /// The architecture that this code was built for.
    pub const HERE: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "riscv64") {
        Self::Riscv64
    } else if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else if cfg!(target_arch = "loongarch64") {
        Self::Loongarch64
    } else {
        Self::Other
    };

    /// Returns the name of the architecture, as in `ARCH=`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::X86_64 => "x86_64",
            Self::Riscv64 => "riscv64",
            Self::Aarch64 => "aarch64",
            Self::Loongarch64 => "loongarch64",
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The kind of time in which a profile was measured. It says what a count of the profile is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Timing {
    /// The timing is unknown, and such a profile fits any.
    #[default]
    Unknown = 0,
    /// Real time: a count is a part of a second.
    Real = 1,
    /// Counted time, as with QEMU's `-icount`. A count is a number of instructions, and an
    /// idle CPU skips the time to the next event.
    Counted = 2,
}

impl Timing {
    /// All timings, by their number in a profile.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Real, Self::Counted];

    /// Returns the name of the timing in `TIMING=` and in result lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Real => "real",
            Self::Counted => "icount",
        }
    }

    /// Returns the timing of a profile that merges runs of both, or `None` if they do not merge.
    /// An unknown timing takes that of the other, so the result does not depend on the order of
    /// merging.
    pub const fn merged(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => Some(known),
            (Self::Real, Self::Real) | (Self::Counted, Self::Counted) => Some(self),
            (Self::Real, Self::Counted) | (Self::Counted, Self::Real) => None,
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown time",
            Self::Real => "real time",
            Self::Counted => "counted time",
        })
    }
}

/// The program that a profile was measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name that people read. Profiles of different names do not merge.
    pub name: ProgramName,
    /// A hash of what identifies the program. The caller chooses that, and only equality counts.
    pub hash: u64,
}

impl Program {
    /// Returns the program `name` with one part in `scale` of its work.
    ///
    /// A kernel that measures and a host that looks for a profile agree on the hash by calling
    /// this. The hash covers the name and the scale, but neither code nor counts. So a program
    /// that has changed can follow its old profile, and the replay says how far it got. At
    /// another scale all times differ, and a plan would be wrong throughout. A name that does
    /// not fit in a [`ProgramName`] becomes `unnamed`, and the hash covers all of the given name.
    pub fn scaled(name: &str, scale: u64) -> Self {
        const UNNAMED: ProgramName = match ProgramName::new("unnamed") {
            Ok(name) => name,
            Err(_) => panic!("a name"),
        };
        Self {
            name: ProgramName::new(name).unwrap_or(UNNAMED),
            hash: TaskKey::formatted(format_args!("{name} SCALE={scale}")).to_bits(),
        }
    }
}

/// The part of a profile that describes it as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The architecture of the machine that measured.
    pub architecture: Architecture,
    /// The kind of time in which the runs were measured.
    pub timing: Timing,
    /// Counts per second, in Hz; 0 is unknown. All times are in counts.
    pub frequency_hz: u64,
    /// The number of CPUs while measuring, at least 1.
    pub cpus: u16,
    /// The program that was measured.
    pub program: Program,
    /// The base policy that ran while measuring, such as `rr`.
    pub policy: PolicyName,
    /// The number of runs in the profile, at least 1.
    pub runs: u32,
    /// The number of tasks that found the record full, over all runs.
    pub unrecorded: u64,
    /// The circumstances in which the runs began.
    pub start: Start,
}

/// The circumstances in which the runs of a profile began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The time from one tick of the timer to the next, in counts; 0 if no two were seen.
    pub tick: Figure,
    /// The time from the last tick to the first spawn, in counts; 0 if no tick was seen.
    pub phase: Figure,
    /// The counter at the first spawn.
    pub age: Figure,
    /// The effect of a tick on the running task.
    pub kernel: Kernel,
}

impl Start {
    /// Returns the start of a profile that merges the runs of both.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            tick: self.tick.merged(other.tick),
            phase: self.phase.merged(other.phase),
            age: self.age.merged(other.age),
            kernel: self.kernel.merged(other.kernel),
        }
    }

    /// Returns the figures, in the order in which they are stored.
    pub const fn figures(&self) -> [Figure; 3] {
        [self.tick, self.phase, self.age]
    }
}

/// The behaviour of a kernel at a tick that asks for the CPU, as far as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernel {
    /// No tick asked for the CPU, or there were kernels of both kinds.
    #[default]
    Unknown = 0,
    /// A tick preempts the running task.
    Preemptive = 1,
    /// The running task keeps the CPU.
    Cooperative = 2,
}

impl Kernel {
    /// All kernels, by their number in a profile.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Preemptive, Self::Cooperative];

    /// Returns the kernel of a profile that merges runs on both. An unknown kernel makes the
    /// result unknown. Otherwise the result would depend on the order of merging, because a merge
    /// of both kinds is unknown, too.
    const fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Preemptive, Self::Preemptive) | (Self::Cooperative, Self::Cooperative) => self,
            _ => Self::Unknown,
        }
    }
}
