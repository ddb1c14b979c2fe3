//! The stored profile: what PBG has learned of a program, as plain data that
//! outlives the boot, with its binary form, its way through a console, and how
//! several runs become one.
//!
//! | | |
//! |---|---|
//! | [`encode`], [`decode`] | to bytes and back; every byte is checked, no input panics |
//! | [`write_frame`], [`read_frame`] | the bytes as lines of text, for a serial console |
//! | [`merge`] | several runs of a program to one profile |
//! | [`check`] | whether a profile is of this program on this machine |
//!
//! The format is described byte by byte in `docs/profile-format.md`. Nothing here
//! is `unsafe`, reads a clock or is called by a scheduler; running out of memory
//! is an error, never an abort.
#![forbid(unsafe_code)]

mod decode;
mod encode;
mod frame;
mod merge;
mod rules;
#[cfg(test)]
pub(super) mod tests;
mod text;

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU8;

pub use decode::{DecodeError, MEMORY_PER_BYTE, decode};
pub use encode::{EncodeError, encode};
pub use frame::{
    FRAME_BYTES_PER_LINE, FRAME_VERSION, FrameError, has_frame, read_frame, write_frame,
};
pub use merge::{MergeError, merge};
pub use rules::Rule;
pub use text::{Label, PolicyName, ProgramName, Text, TextError};

use crate::units::{Counts, TaskKey};

/// The version that [`encode`] writes, and the only one that [`decode`] reads.
pub const VERSION: u16 = 1;
/// The most tasks in a profile: as many as are recorded and planned.
pub const MAX_TASKS: usize = 4096;
/// The most phases of a task. A recorder that finds more makes them coarser
/// ([`Phases::coarsened`]).
pub const MAX_PHASES: usize = 16;
/// No profile is larger, in bytes: about 3.0 MiB, which 4,096 tasks with 16
/// phases each and every number at its largest would need. One of 48 tasks with
/// 4 phases each has about 3 KiB.
pub const MAX_BYTES: usize =
    encode::MAX_HEADER_BYTES + MAX_TASKS * encode::MAX_TASK_BYTES + encode::CHECKSUM_BYTES;

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

    /// As `ARCH=` has it.
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
    /// Nobody has said. Such a profile fits any.
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
    /// In which time.
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
}

/// A profile, of one run or several.
///
/// The fields are open; what must hold between them are [`Rule`]s, and
/// [`validate`](Self::validate) tells. [`encode`] and [`merge`] refuse what
/// breaks one, [`decode`] never returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredProfile {
    /// What holds for all of it.
    pub header: Header,
    /// At most [`MAX_TASKS`], in the order in which they were spawned: parents
    /// before their children.
    pub tasks: Vec<StoredTask>,
}

/// Where a task stands in the tree of spawns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A child of the root, its `ordinal`-th spawn, counted from 0.
    Root {
        /// How many the root had spawned before.
        ordinal: u32,
    },
    /// A child of another task of the profile.
    Child {
        /// That task's index, below this one's.
        parent: u32,
        /// How many it had spawned before.
        ordinal: u32,
    },
    /// Not at the same place in all runs: only its label tells who it is.
    Several,
}

/// A task of a profile.
///
/// The seven figures are kept so that merging is exact: see [`Figure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// Who it is, on every run; no other task of the profile has the same.
    pub key: TaskKey,
    /// What the program called it.
    pub label: Option<Label>,
    /// Who spawned it.
    pub place: Place,
    /// In how many runs it was seen: from 1 to the profile's runs.
    pub runs: u32,
    /// The user's: tasks of priority 1 go strictly before those of priority 2,
    /// and so on to 255; all of them strictly before the rest, who have none.
    pub priority: Option<NonZeroU8>,
    /// The user's: the latest tolerable end, counted from the task's spawn.
    pub latest: Option<Counts>,
    /// What it did.
    pub figures: Figures,
    /// How it did it.
    pub phases: Phases,
}

impl StoredTask {
    /// From its spawn to its end, on average over its runs: its time on a CPU, ready and
    /// blocked.
    pub fn turnaround(&self) -> Counts {
        let Figures {
            run,
            ready,
            blocked,
            ..
        } = self.figures;
        let parts = [run, ready, blocked].map(|part| Counts(part.mean(self.runs)));
        parts.into_iter().fold(Counts::ZERO, Counts::saturating_add)
    }
}

/// What a task did, as figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Time on a CPU, in counts.
    pub run: Figure,
    /// Time ready and waiting for a CPU, in counts.
    pub ready: Figure,
    /// Time blocked, in counts.
    pub blocked: Figure,
    /// How many run intervals it had: how often a CPU was given to it, again included.
    pub dispatches: Figure,
    /// How often it yielded.
    pub yields: Figure,
    /// How often it was preempted.
    pub preemptions: Figure,
    /// How often it blocked and was woken.
    pub blocks: Figure,
}

impl Figures {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// What they are called, in the order of [`each`](Self::each).
    pub const NAMES: [&'static str; Self::COUNT] = [
        "run",
        "ready",
        "blocked",
        "dispatches",
        "yields",
        "preemptions",
        "blocks",
    ];

    /// All of them, in the order in which they are stored.
    pub const fn each(&self) -> [Figure; Self::COUNT] {
        [
            self.run,
            self.ready,
            self.blocked,
            self.dispatches,
            self.yields,
            self.preemptions,
            self.blocks,
        ]
    }

    /// The opposite of [`each`](Self::each).
    pub const fn of(each: [Figure; Self::COUNT]) -> Self {
        let [run, ready, blocked, dispatches, yields, preemptions, blocks] = each;
        Self {
            run,
            ready,
            blocked,
            dispatches,
            yields,
            preemptions,
            blocks,
        }
    }
}

/// A quantity over the runs in which a task was seen.
///
/// Total, least and most rather than mean and deviation: these merge exactly, in
/// any order, with an addition and two comparisons. Totals stop at 2^64 − 1 (at
/// 1 GHz after 584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    /// The sum over the runs.
    pub total: u64,
    /// The value of the run that had the least.
    pub least: u64,
    /// The value of the run that had the most.
    pub most: u64,
}

impl Figure {
    /// The figure of one run.
    pub const fn once(value: u64) -> Self {
        Self {
            total: value,
            least: value,
            most: value,
        }
    }

    /// The mean over `runs` (the task's), rounded down; 0 for no runs.
    pub const fn mean(self, runs: u32) -> u64 {
        match runs {
            0 => 0,
            runs => self.total / runs as u64,
        }
    }

    /// From the least to the most: 0 if all runs were alike.
    pub const fn spread(self) -> u64 {
        self.most.saturating_sub(self.least)
    }

    /// The figure over the runs of both.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            total: self.total.saturating_add(other.total),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// How a run interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ended {
    /// The task yielded.
    Yield = 0,
    /// It was preempted.
    Preemption = 1,
    /// It blocked.
    Block = 2,
    /// It exited.
    Exit = 3,
}

impl Ended {
    /// All, by their number in a profile.
    pub const ALL: [Self; 4] = [Self::Yield, Self::Preemption, Self::Block, Self::Exit];
}

/// Run intervals of a task, one after the other, that ended alike and took about as long.
///
/// Sums and not means, over the runs in which the task was seen: they merge exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPhase {
    /// How each of them ended.
    pub ended: Ended,
    /// How many there were, at least 1. Divide by the task's runs for one run.
    pub intervals: u64,
    /// Their time on a CPU, in counts.
    pub run: Counts,
    /// The time blocked after them, in counts; 0 unless they ended so.
    pub blocked: Counts,
}

impl StoredPhase {
    /// A run interval, on average, rounded down.
    pub const fn mean_run(&self) -> Counts {
        Counts(match self.intervals {
            0 => 0,
            intervals => self.run.0 / intervals,
        })
    }

    /// The time blocked after one of them, on average, rounded down.
    pub const fn mean_blocked(&self) -> Counts {
        Counts(match self.intervals {
            0 => 0,
            intervals => self.blocked.0 / intervals,
        })
    }

    fn add(&mut self, other: &Self) {
        self.intervals = self.intervals.saturating_add(other.intervals);
        self.run += other.run;
        self.blocked += other.blocked;
    }
}

/// In which order phases stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseOrder {
    /// As they ran.
    #[default]
    AsRun,
    /// One for each way to end, whenever that was: what is left of runs that
    /// went differently.
    ByEnding,
}

/// What a task did, run interval by run interval, run-length compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// What the order of the list says.
    pub order: PhaseOrder,
    /// At most [`MAX_PHASES`]; none if nobody recorded them.
    pub list: Vec<StoredPhase>,
}

impl Phases {
    /// Whether these are the same steps, however long each took.
    fn has_shape_of(&self, other: &Self) -> bool {
        let steps = |phases: &[StoredPhase]| phases.len();
        self.order == other.order
            && steps(&self.list) == steps(&other.list)
            && (self.list.iter().zip(&other.list)).all(|(a, b)| a.ended == b.ended)
    }

    /// The same run intervals without their order: at most four phases, by how they
    /// ended. Allocates nothing.
    ///
    /// This is how phases are added that do not match step by step. It loses
    /// what it must and no more, so that merging depends on no order: if all
    /// profiles have the same steps, the sums are step by step, and otherwise by
    /// ending, whichever two come first.
    #[must_use]
    pub fn coarsened(mut self) -> Self {
        self.order = PhaseOrder::ByEnding;
        // A stable order is not needed (equal endings are added up), a sort that
        // allocates is not wanted.
        self.list.sort_unstable_by_key(|phase| phase.ended);
        self.list.dedup_by(|later, kept| {
            let same = later.ended == kept.ended;
            if same {
                kept.add(later);
            }
            same
        });
        self
    }
}

/// The program and machine that a profile is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Of the machine.
    pub architecture: Architecture,
    /// Of the program; see [`Program::hash`].
    pub program_hash: u64,
    /// CPUs that will be scheduled.
    pub cpus: u16,
    /// In which time it runs; all fit [`Timing::Unknown`].
    pub timing: Timing,
}

/// Why a good profile is of no use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It was measured on another architecture, whose counts mean something else.
    Architecture {
        /// This machine's.
        expected: Architecture,
        /// The profile's.
        found: Architecture,
    },
    /// It is of another program, or of another version of it.
    Program {
        /// This program's hash.
        expected: u64,
        /// The profile's program.
        found: Program,
    },
    /// It was measured on more or fewer CPUs.
    Cpus {
        /// This machine's.
        expected: u16,
        /// The profile's.
        found: u16,
    },
    /// It was measured in another time, whose counts mean something else.
    Timing {
        /// This machine's.
        expected: Timing,
        /// The profile's.
        found: Timing,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { expected, found } => write!(
                f,
                "expected a profile of the program with hash {expected:016x}, found one of `{}`, {:016x}",
                found.name, found.hash
            ),
            Self::Architecture { expected, found } => {
                write!(f, "expected a profile of {expected}, found one of {found}")
            }
            Self::Cpus { expected, found } => write!(
                f,
                "expected a profile of {expected} CPU(s), found one of {found}"
            ),
            Self::Timing { expected, found } => write!(
                f,
                "expected a profile measured in {expected}, found one in {found}"
            ),
        }
    }
}

impl core::error::Error for Mismatch {}

/// Whether `profile` may be used for `expected`.
///
/// # Errors
/// The first [`Mismatch`], in the order in which they are listed there.
pub fn check(profile: &StoredProfile, expected: &Expected) -> Result<(), Mismatch> {
    let Header {
        program,
        architecture,
        cpus,
        timing,
        ..
    } = profile.header;
    if architecture != expected.architecture {
        return Err(Mismatch::Architecture {
            expected: expected.architecture,
            found: architecture,
        });
    }
    if program.hash != expected.program_hash {
        return Err(Mismatch::Program {
            expected: expected.program_hash,
            found: program,
        });
    }
    if cpus != expected.cpus {
        return Err(Mismatch::Cpus {
            expected: expected.cpus,
            found: cpus,
        });
    }
    if timing.merged(expected.timing).is_none() {
        return Err(Mismatch::Timing {
            expected: expected.timing,
            found: timing,
        });
    }
    Ok(())
}
