//! Encoding: from a profile to bytes.

use alloc::vec::Vec;
use core::fmt;

use super::rules::{Broken, Invalid};
use super::{
    Ended, Figure, Figures, Header, MAX_PHASES, MAX_TASKS, PhaseOrder, Place, Rule, StoredPhase,
    StoredProfile, StoredTask, Text, VERSION,
};
use sched_core::room::with_room;

/// The first bytes of a profile. As in PNG, the first byte is no ASCII, and a transfer as text
/// would spoil CR LF, ^Z and LF first.
pub(super) const MAGIC: [u8; 8] = *b"\x89PBG\r\n\x1a\n";
/// The number of bytes of the fixed part of the header.
pub(super) const FIXED_BYTES: usize = 35;
pub(super) const CHECKSUM_BYTES: usize = 4;
/// The bytes of the shortest profile: two names of a byte, three numbers, the start, no task.
pub(super) const MIN_BYTES: usize = FIXED_BYTES + 2 + 3 + 4 + CHECKSUM_BYTES;
/// The number of bytes of the longest 64-bit number.
pub(super) const MAX_VARINT: usize = 10;
/// The number of bytes of the longest 32-bit number.
const MAX_VARINT_32: usize = 5;

/// The most bytes of a header. It has two names, runs, unrecorded, the start, and two bytes for at
/// most 4,096 tasks.
pub(super) const MAX_HEADER_BYTES: usize =
    FIXED_BYTES + 64 + 16 + MAX_VARINT_32 + MAX_VARINT + (3 * MAX_FIGURE + 1) + 2;
/// The most bytes of a figure. Least and spread add up to a number of 64 bits, so at most one of
/// them needs ten bytes.
const MAX_FIGURE: usize = 3 * MAX_VARINT - 1;
/// The most bytes of a [`Waker`](super::Waker): at most 4,096 tasks and the four first numbers.
const MAX_WAKER: usize = 2;
/// The most bytes of a task. Line by line these are parent, ordinal, flags and runs, then key, label,
/// priority and deadline, then the figures, the spawn, and the phases.
pub(super) const MAX_TASK_BYTES: usize = (2 + MAX_VARINT_32 + 1 + MAX_VARINT_32)
    + (8 + 33 + 1 + MAX_VARINT)
    + Figures::COUNT * MAX_FIGURE
    + (4 * MAX_FIGURE + MAX_WAKER)
    + 1
    + MAX_PHASES * (1 + 3 * MAX_VARINT + MAX_WAKER + 1 + 2 * (MAX_WAKER + 2 * MAX_VARINT));

/// The size of the largest profile in bytes, about 6.4 MiB. It has 4,096 tasks with 16 phases
/// each, and every number at its largest. A profile of 48 tasks with 4 phases each has about
/// 4 KiB.
pub const MAX_BYTES: usize = MAX_HEADER_BYTES
    + MAX_TASKS * (MAX_TASK_BYTES + MAX_GROUP_BYTES)
    + MAX_CPUS_BYTES
    + CHECKSUM_BYTES;
/// The most bytes of a group, which is below 4,096.
const MAX_GROUP_BYTES: usize = 2;
/// The most bytes of a number of CPUs in an order.
const MAX_CPUS_BYTES: usize = 3;

/// The lowest bit of the timing in the byte of the architecture.
pub(super) const TIMING_SHIFT: u32 = 4;

/// The bits of a task's flags.
pub(super) mod flag {
    pub const KEY: u8 = 1 << 0;
    pub const LABEL: u8 = 1 << 1;
    pub const PRIORITY: u8 = 1 << 2;
    pub const DEADLINE: u8 = 1 << 3;
    pub const BY_ENDING: u8 = 1 << 4;
    pub const VARIES: u8 = 1 << 5;
    pub const ALL: u8 = KEY | LABEL | PRIORITY | DEADLINE | BY_ENDING | VARIES;
}

/// The first number of a [`Place`] that stands for a parent task.
pub(super) const FIRST_PARENT: u64 = 2;

/// The reason why a profile cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The profile breaks a rule.
    Inconsistent {
        /// The index of the task that breaks the rule, or `None` for the header.
        task: Option<usize>,
        /// The rule that was expected to hold.
        rule: Rule,
        /// The number that breaks it.
        found: u64,
    },
    /// There is no memory for the bytes.
    NoMemory,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inconsistent { task, rule, found } => {
                match task {
                    Some(index) => write!(f, "task {index}: ")?,
                    None => f.write_str("header: ")?,
                }
                write!(f, "expected {rule}, found {found}")
            }
            Self::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for EncodeError {}

impl From<Invalid> for EncodeError {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Broken(task, Broken { rule, found }) => {
                Self::Inconsistent { task, rule, found }
            }
            Invalid::NoMemory => Self::NoMemory,
        }
    }
}

impl StoredProfile {
    /// Checks that every [`Rule`] holds. This takes n log n comparisons for n tasks, and 16 bytes of
    /// memory for each during the call.
    ///
    /// # Errors
    /// Returns the first rule that does not hold, or [`EncodeError::NoMemory`].
    pub fn validate(&self) -> Result<(), EncodeError> {
        Ok(self.validity()?)
    }
}

/// Returns the bytes of `profile`. They are at most [`MAX_BYTES`](super::MAX_BYTES), and equal for
/// equal profiles. The profile is read twice, once to know the size.
///
/// # Errors
/// Returns an [`EncodeError`] if the profile breaks a rule or there is no memory.
pub fn encode(profile: &StoredProfile) -> Result<Vec<u8>, EncodeError> {
    profile.validate()?;
    let mut size = Size(CHECKSUM_BYTES);
    write(profile, 0, &mut size);
    let mut bytes: Vec<u8> = with_room(size.0).ok_or(EncodeError::NoMemory)?;
    write(profile, size.0 as u32, &mut bytes);
    let checksum = crc32fast::hash(&bytes);
    bytes.put(&checksum.to_le_bytes());
    Ok(bytes)
}

/// A receiver of bytes: it stores or only counts them.
trait Sink {
    fn put(&mut self, bytes: &[u8]);

    /// Puts a number in LEB128, which has seven bits a byte, the lowest first.
    fn number(&mut self, mut number: u64) {
        let mut bytes = [0; MAX_VARINT];
        let mut len = 0;
        loop {
            bytes[len] = number as u8 & 0x7f;
            number >>= 7;
            len += 1;
            if number == 0 {
                break;
            }
            bytes[len - 1] |= 0x80;
        }
        self.put(&bytes[..len]);
    }
}

struct Size(usize);

impl Sink for Size {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

impl Sink for Vec<u8> {
    /// Appends the bytes, for which [`encode`] has reserved room.
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Writes a valid profile without its checksum.
fn write(profile: &StoredProfile, total: u32, out: &mut impl Sink) {
    header(&profile.header, total, out);
    out.number(profile.tasks.len() as u64);
    for (index, one) in profile.tasks.iter().enumerate() {
        task(one, &profile.tasks[..index], out);
    }
    if let Some(order) = &profile.order {
        out.number(order.cpus.into());
        order
            .groups
            .iter()
            .for_each(|&group| out.number(group.into()));
    }
}

fn header(header: &Header, total: u32, out: &mut impl Sink) {
    let name = |text: &[u8]| [text.len() as u8];
    out.put(&MAGIC);
    out.put(&VERSION.to_le_bytes());
    out.put(&header.cpus.to_le_bytes());
    out.put(&total.to_le_bytes());
    out.put(&header.frequency_hz.to_le_bytes());
    out.put(&header.program.hash.to_le_bytes());
    out.put(&[header.architecture as u8 | (header.timing as u8) << TIMING_SHIFT]);
    out.put(&name(header.program.name.as_bytes()));
    out.put(&name(header.policy.as_bytes()));
    out.put(header.program.name.as_bytes());
    out.put(header.policy.as_bytes());
    out.number(header.runs as u64);
    out.number(header.unrecorded);
    for one in header.start.figures() {
        figure(one, header.runs, out);
    }
    out.put(&[header.start.kernel as u8]);
}

fn figure(figure: Figure, runs: u32, out: &mut impl Sink) {
    out.number(figure.total);
    // In one run, least and most are the total.
    if runs > 1 {
        out.number(figure.least);
        out.number(figure.spread());
    }
}

fn label<const N: usize>(text: &Text<N>, out: &mut impl Sink) {
    out.put(&[text.as_bytes().len() as u8]);
    out.put(text.as_bytes());
}

fn task(task: &StoredTask, before: &[StoredTask], out: &mut impl Sink) {
    let given = task.place.key(before).ok().flatten() == Some(task.key);
    let mut flags = 0;
    for (set, bit) in [
        (!given, flag::KEY),
        (task.label.is_some(), flag::LABEL),
        (task.priority.is_some(), flag::PRIORITY),
        (task.deadline.is_some(), flag::DEADLINE),
        (task.phases.order == PhaseOrder::ByEnding, flag::BY_ENDING),
        (task.varies, flag::VARIES),
    ] {
        flags |= if set { bit } else { 0 };
    }
    match task.place {
        Place::Root { ordinal } => {
            out.number(0);
            out.number(ordinal as u64);
        }
        Place::Several => out.number(1),
        Place::Child { parent, ordinal } => {
            out.number(FIRST_PARENT + parent as u64);
            out.number(ordinal as u64);
        }
    }
    out.put(&[flags]);
    out.number(task.runs as u64);
    if !given {
        out.put(&task.key.to_bits().to_le_bytes());
    }
    if let Some(text) = &task.label {
        label(text, out);
    }
    if let Some(priority) = task.priority {
        out.put(&[priority.get()]);
    }
    if let Some(deadline) = task.deadline {
        out.number(deadline.0);
    }
    for one in task.figures.to_array() {
        figure(one, task.runs, out);
    }
    for one in task.spawned.figures() {
        figure(one, task.runs, out);
    }
    out.number(task.spawned.after.number());
    out.put(&[task.phases.list.len() as u8]);
    for one in &task.phases.list {
        phase(one, out);
    }
}

fn phase(phase: &StoredPhase, out: &mut impl Sink) {
    out.put(&[phase.ended as u8]);
    out.number(phase.intervals);
    out.number(phase.run.0);
    if phase.ended == Ended::Block {
        out.number(phase.blocked.0);
        out.number(phase.woken_by.number());
    }
    out.put(&[phase.wakes.iter().count() as u8]);
    for woken in phase.wakes.iter() {
        out.number(woken.whom.number());
        out.number(woken.count);
        out.number(woken.after.0);
    }
}
