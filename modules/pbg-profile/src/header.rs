//! What holds for a whole profile: of which program it is, and where it was measured.

use core::fmt;

use super::task::Figure;
use super::text::{PolicyName, ProgramName};
use sched_core::units::TaskKey;

/// What a processor understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Architecture {
    /// None of the following.
    Other = 0,
    /// 64-bit x86.
    X86_64 = 1,
    /// 64-bit RISC-V.
    Riscv64 = 2,
    /// 64-bit Arm.
    Aarch64 = 3,
    /// 64-bit LoongArch.
    Loongarch64 = 4,
}

impl Architecture {
    /// All, by their number in a profile.
    pub const ALL: [Self; 5] = [
        Self::Other,
        Self::X86_64,
        Self::Riscv64,
        Self::Aarch64,
        Self::Loongarch64,
    ];

    /// The one that this code was built for.
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

    /// Its name, as in `ARCH=`.
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

/// In which time a profile was measured, which says what a count of it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Timing {
    /// Unknown. Such a profile fits any.
    #[default]
    Unknown = 0,
    /// Real time: a count is a part of a second.
    Real = 1,
    /// Counted time, as of QEMU's `-icount`: a count is a number of instructions, and an
    /// idle CPU waits for nothing.
    Counted = 2,
}

impl Timing {
    /// All, by their number in a profile.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Real, Self::Counted];

    /// As `TIMING=` and result lines have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Real => "real",
            Self::Counted => "icount",
        }
    }

    /// Of what was measured in both; `None` if that cannot be one profile. What is unknown
    /// takes the other's: then this depends on no order, as merging does not.
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

/// Which program a profile is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// For people; profiles of different names do not merge.
    pub name: ProgramName,
    /// Of what makes it this program: the caller says, and only equality counts.
    pub hash: u64,
}

impl Program {
    /// The program `name` with an n-th of its work, n = `scale`: who measures and who looks
    /// for a profile agree on its hash here, in a kernel and on a host.
    ///
    /// The hash is of the name and the scale, not of code or counts: a program that has
    /// changed shall be able to follow its old profile, and the replay says how far it got.
    /// At another scale all times differ, and a plan would be wrong throughout. A name that
    /// does not fit ([`ProgramName`]) is `unnamed`, and its hash is of all of it.
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

/// What holds for a whole profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where it was measured.
    pub architecture: Architecture,
    /// In which time it was measured.
    pub timing: Timing,
    /// Counts per second, in Hz; 0 is unknown. All times are in counts.
    pub frequency_hz: u64,
    /// CPUs while measuring, at least 1.
    pub cpus: u16,
    /// What was measured.
    pub program: Program,
    /// The policy that ran meanwhile, as `rr`.
    pub policy: PolicyName,
    /// How many runs are in it, at least 1.
    pub runs: u32,
    /// Tasks that found the record full, over all runs.
    pub unrecorded: u64,
    /// How the runs began.
    pub start: Start,
}

/// How the runs of a profile began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// From one tick of the timer to the next, in counts; 0 where no two were seen.
    pub tick: Figure,
    /// From the last tick to the first spawn, in counts; 0 where none was seen.
    pub phase: Figure,
    /// The counter at the first spawn.
    pub age: Figure,
    /// Whether ticks preempted.
    pub kernel: Kernel,
}

impl Start {
    /// Both together.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            tick: self.tick.merged(other.tick),
            phase: self.phase.merged(other.phase),
            age: self.age.merged(other.age),
            kernel: self.kernel.merged(other.kernel),
        }
    }

    /// The figures, in the order in which they are stored.
    pub const fn figures(&self) -> [Figure; 3] {
        [self.tick, self.phase, self.age]
    }
}

/// What a kernel does at a tick that asks for the CPU, as far as that was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernel {
    /// Nobody was asked, or there were kernels of both kinds.
    #[default]
    Unknown = 0,
    /// A tick preempts the running task.
    Preemptive = 1,
    /// The running task keeps the CPU.
    Cooperative = 2,
}

impl Kernel {
    /// All, by their number in a profile.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Preemptive, Self::Cooperative];

    /// Of what was measured on both. One that is not known hides the other's, or the order of
    /// merging would tell.
    const fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Preemptive, Self::Preemptive) | (Self::Cooperative, Self::Cooperative) => self,
            _ => Self::Unknown,
        }
    }
}
