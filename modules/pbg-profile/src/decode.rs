//! Decoding: from untrusted bytes to a profile.

// This file is long because it reads the whole format, in its order.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU8;

use super::encode::{
    CHECKSUM_BYTES, FIRST_PARENT, MAGIC, MAX_VARINT, MIN_BYTES, TIMING_SHIFT, flag,
};
use super::rules::{Broken, require, shared_key};
use super::{
    Architecture, Ended, Figure, Figures, Header, Kernel, MAX_BYTES, MAX_PHASES, MAX_TASKS,
    PhaseOrder, Phases, Place, Program, Rule, Spawned, Start, StoredOrder, StoredPhase,
    StoredProfile, StoredTask, Text, Timing, VERSION, Waker, Wakes, Woken,
};
use sched_core::room::with_room;
use sched_core::units::{Counts, TaskKey};

/// The bytes of a task that did nothing: parent, ordinal, flags, runs, figures, its spawn and the
/// number of phases.
const MIN_TASK_BYTES: usize = 4 + Figures::COUNT + 5 + 1;
const CPUS_AT: usize = 10;
/// The offset of the total length, in every version.
const LENGTH_AT: usize = 12;

/// The most memory, in bytes, that decoding takes for each byte given, whatever the bytes are.
pub const MEMORY_PER_BYTE: usize =
    (size_of::<StoredTask>() + size_of::<(TaskKey, u32)>()).div_ceil(MIN_TASK_BYTES);

// A phase takes at least four bytes, and less memory for each of them than a task does.
const _: () = assert!(size_of::<StoredPhase>() <= 4 * MEMORY_PER_BYTE);

/// The reason why bytes are no profile that this version can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes do not begin as a profile does.
    NotAProfile {
        /// The offset of the first byte that differs.
        offset: usize,
    },
    /// The profile has a version that this code does not read.
    OtherVersion {
        /// The profile's version; [`VERSION`] was expected.
        found: u16,
    },
    /// The end of the profile is missing.
    Truncated {
        /// The number of bytes that there should be, as far as that can be told.
        expected: usize,
        /// The number of bytes that there are.
        found: usize,
    },
    /// The bytes do not match their checksum, so they were damaged.
    Checksum {
        /// The checksum in the last four bytes of the profile.
        expected: u32,
        /// The checksum of its other bytes.
        found: u32,
    },
    /// The checksum is right but the contents break a rule, so the profile was never valid.
    Inconsistent {
        /// The offset of the bytes that break the rule.
        offset: usize,
        /// The rule that was expected to hold.
        rule: Rule,
        /// The number that breaks it.
        found: u64,
    },
    /// There is no memory for the profile.
    NoMemory,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotAProfile { offset } => write!(
                f,
                "not a profile: expected {:#04x} at byte {offset}, found something else",
                MAGIC.get(offset).copied().unwrap_or_default()
            ),
            Self::OtherVersion { found } => {
                write!(
                    f,
                    "expected a profile of version {VERSION}, found version {found}"
                )
            }
            Self::Truncated { expected, found } => {
                write!(f, "truncated: expected {expected} bytes, found {found}")
            }
            Self::Checksum { expected, found } => write!(
                f,
                "damaged: expected the checksum {expected:08x}, found {found:08x}"
            ),
            Self::Inconsistent {
                offset,
                rule,
                found,
            } => write!(
                f,
                "inconsistent at byte {offset}: expected {rule}, found {found}"
            ),
            Self::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Returns the profile in `bytes`, to which all of the bytes must belong.
///
/// Every profile has one form: bytes that decode are the bytes to which the result encodes. The
/// bytes are read twice, and n tasks take n log n comparisons. The memory is at most
/// [`MEMORY_PER_BYTE`] bytes for each byte given.
///
/// # Errors
/// Returns the first [`DecodeError`], in the order in which they are listed there.
pub fn decode(bytes: &[u8]) -> Result<StoredProfile, DecodeError> {
    let body = envelope(bytes)?;
    let mut reader = Reader { bytes: body, at: 0 };
    let header = header(&mut reader)?;

    let at = reader.at;
    let count = reader.number()?;
    let room = (body.len() - reader.at) / MIN_TASK_BYTES;
    require(count <= room.min(MAX_TASKS) as u64, Rule::Tasks, count)
        .map_err(|broken| broken.at(at))?;
    let count = count as usize;
    let mut tasks: Vec<StoredTask> = with_room(count).ok_or(DecodeError::NoMemory)?;
    let mut keys: Vec<(TaskKey, u32)> = with_room(count).ok_or(DecodeError::NoMemory)?;
    for _ in 0..count {
        let at = reader.at;
        let task = task(&mut reader, &tasks)?;
        task.validate(&header, &tasks, count)
            .map_err(|broken| broken.at(at))?;
        keys.push((task.key, at as u32));
        tasks.push(task);
    }
    let order = match reader.at < body.len() && count > 0 {
        true => Some(order(&mut reader, count)?),
        false => None,
    };
    let left = body.len() - reader.at;
    require(left == 0, Rule::Nothing, left as u64).map_err(|broken| broken.at(reader.at))?;
    if let Some((key, at)) = shared_key(&mut keys) {
        return Err(DecodeError::Inconsistent {
            offset: at as usize,
            rule: Rule::KeyUnique,
            found: key.to_bits(),
        });
    }
    Ok(StoredProfile {
        header,
        tasks,
        order,
    })
}

impl Broken {
    const fn at(self, offset: usize) -> DecodeError {
        DecodeError::Inconsistent {
            offset,
            rule: self.rule,
            found: self.found,
        }
    }
}

/// Checks the parts that are the same in every version: magic, version, length and checksum.
/// Returns the bytes before the checksum.
fn envelope(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    if let Some(offset) = (0..MAGIC.len()).find(|&i| bytes.get(i).is_some_and(|b| *b != MAGIC[i])) {
        return Err(DecodeError::NotAProfile { offset });
    }
    if bytes.is_empty() {
        return Err(DecodeError::NotAProfile { offset: 0 });
    }
    let truncated = |expected| DecodeError::Truncated {
        expected,
        found: bytes.len(),
    };
    let Some(version) = bytes.get(8..10) else {
        return Err(truncated(MIN_BYTES));
    };
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version != VERSION {
        return Err(DecodeError::OtherVersion { found: version });
    }
    let Some(total) = bytes.get(LENGTH_AT..LENGTH_AT + 4) else {
        return Err(truncated(MIN_BYTES));
    };
    let total = u32::from_le_bytes([total[0], total[1], total[2], total[3]]) as usize;
    require(
        (MIN_BYTES..=MAX_BYTES).contains(&total),
        Rule::Size,
        total as u64,
    )
    .map_err(|broken| broken.at(LENGTH_AT))?;
    if bytes.len() < total {
        return Err(truncated(total));
    }
    require(
        bytes.len() == total,
        Rule::Nothing,
        (bytes.len() - total) as u64,
    )
    .map_err(|broken| broken.at(total))?;
    // This cannot fail, because `total` is at least `MIN_BYTES`.
    let Some((body, sum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(truncated(MIN_BYTES));
    };
    let (expected, found) = (u32::from_le_bytes(*sum), crc32fast::hash(body));
    if expected != found {
        return Err(DecodeError::Checksum { expected, found });
    }
    Ok(body)
}

/// The bytes, and the offset up to which they have been read.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, at: usize, rule: Rule, found: u64) -> Result<T, DecodeError> {
        Err(Broken { rule, found }.at(at))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes[self.at..].get(..len) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => self.fail(self.at, Rule::Complete, (self.bytes.len() - self.at) as u64),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads a number in LEB128, in its shortest form only.
    fn number(&mut self) -> Result<u64, DecodeError> {
        let start = self.at;
        let mut number = 0;
        for i in 0..MAX_VARINT {
            let byte = self.byte()?;
            let bits = (byte & 0x7f) as u64;
            // The tenth byte may have only one bit of a 64-bit number.
            if i == MAX_VARINT - 1 && byte > 1 {
                return self.fail(start, Rule::Fits, byte as u64);
            }
            number |= bits << (7 * i);
            if byte & 0x80 == 0 {
                if byte == 0 && i > 0 {
                    return self.fail(start, Rule::Shortest, number);
                }
                return Ok(number);
            }
        }
        // The loop returns at the tenth byte, so this is not reached.
        self.fail(start, Rule::Fits, number)
    }

    fn number_32(&mut self) -> Result<u32, DecodeError> {
        let at = self.at;
        let number = self.number()?;
        u32::try_from(number).or_else(|_| self.fail(at, Rule::Fits, number))
    }

    fn text<const N: usize>(&mut self, len: u8) -> Result<Text<N>, DecodeError> {
        let at = self.at;
        let bytes = self.take(len as usize)?;
        let text = core::str::from_utf8(bytes).map(Text::new);
        match text {
            Ok(Ok(text)) => Ok(text),
            _ => self.fail(at, Rule::Text, len as u64),
        }
    }
}

fn header(reader: &mut Reader) -> Result<Header, DecodeError> {
    reader.take(MAGIC.len() + 2)?; // and the version
    let cpus = u16::from_le_bytes(reader.array()?);
    reader.take(4)?; // the length
    let frequency_hz = u64::from_le_bytes(reader.array()?);
    let hash = u64::from_le_bytes(reader.array()?);
    let byte = reader.byte()?;
    let (architecture, timing) = (byte & ((1 << TIMING_SHIFT) - 1), byte >> TIMING_SHIFT);
    let Some(&architecture) = Architecture::ALL.get(architecture as usize) else {
        return reader.fail(reader.at - 1, Rule::Architecture, architecture as u64);
    };
    let Some(&timing) = Timing::ALL.get(timing as usize) else {
        return reader.fail(reader.at - 1, Rule::Timing, timing as u64);
    };
    let (name, policy) = (reader.byte()?, reader.byte()?);
    let program = Program {
        name: reader.text(name)?,
        hash,
    };
    let policy = reader.text(policy)?;
    let at = reader.at;
    let (runs, unrecorded) = (reader.number_32()?, reader.number()?);
    let header = Header {
        architecture,
        timing,
        frequency_hz,
        cpus,
        program,
        policy,
        runs,
        unrecorded,
        start: start(reader, runs)?,
    };
    header.validate().map_err(|broken| match broken.rule {
        Rule::Cpus => broken.at(CPUS_AT),
        _ => broken.at(at),
    })?;
    Ok(header)
}

fn start(reader: &mut Reader, runs: u32) -> Result<Start, DecodeError> {
    let mut figures = [Figure::default(); 3];
    for one in &mut figures {
        *one = figure(reader, runs)?;
    }
    let [tick, phase, age] = figures;
    let kernel = reader.byte()?;
    let Some(&kernel) = Kernel::ALL.get(kernel as usize) else {
        return reader.fail(reader.at - 1, Rule::Kernel, kernel as u64);
    };
    Ok(Start {
        tick,
        phase,
        age,
        kernel,
    })
}

/// Reads a task from its bytes. The caller checks the rules with `validate`.
fn task(reader: &mut Reader, before: &[StoredTask]) -> Result<StoredTask, DecodeError> {
    let start = reader.at;
    let place = match reader.number()? {
        0 => Place::Root {
            ordinal: reader.number_32()?,
        },
        1 => Place::Several,
        number => Place::Child {
            parent: u32::try_from(number - FIRST_PARENT)
                .or_else(|_| reader.fail(start, Rule::Fits, number))?,
            ordinal: reader.number_32()?,
        },
    };
    let at = reader.at;
    let flags = reader.byte()?;
    require(flags & !flag::ALL == 0, Rule::Flags, flags as u64).map_err(|broken| broken.at(at))?;
    let has = |bit| flags & bit != 0;
    let runs = reader.number_32()?;

    let at = reader.at;
    let given = place.key(before).map_err(|broken| broken.at(start))?;
    let stored = if has(flag::KEY) {
        Some(TaskKey::from_bits(u64::from_le_bytes(reader.array()?)))
    } else {
        None
    };
    let (Some(key), true) = (stored.or(given), stored != given) else {
        let found = stored.map_or(0, TaskKey::to_bits);
        return reader.fail(at, Rule::KeyStored, found);
    };
    let label = if has(flag::LABEL) {
        let len = reader.byte()?;
        Some(reader.text(len)?)
    } else {
        None
    };
    let priority = if has(flag::PRIORITY) {
        let at = reader.at;
        let priority = NonZeroU8::new(reader.byte()?);
        require(priority.is_some(), Rule::Priority, 0).map_err(|broken| broken.at(at))?;
        priority
    } else {
        None
    };
    let deadline = if has(flag::DEADLINE) {
        Some(Counts(reader.number()?))
    } else {
        None
    };
    let mut figures = [Figure::default(); Figures::COUNT];
    for one in &mut figures {
        *one = figure(reader, runs)?;
    }
    let spawned = spawned(reader, runs)?;
    Ok(StoredTask {
        key,
        label,
        place,
        runs,
        priority,
        deadline,
        varies: has(flag::VARIES),
        figures: Figures::from_array(figures),
        phases: phases(reader, has(flag::BY_ENDING))?,
        spawned,
    })
}

/// Reads the order of `count` tasks.
fn order(reader: &mut Reader, count: usize) -> Result<StoredOrder, DecodeError> {
    let at = reader.at;
    let number_16 = |reader: &mut Reader| {
        let at = reader.at;
        let number = reader.number()?;
        u16::try_from(number).or_else(|_| reader.fail(at, Rule::Fits, number))
    };
    let cpus = number_16(reader)?;
    let mut groups = with_room(count).ok_or(DecodeError::NoMemory)?;
    for _ in 0..count {
        groups.push(number_16(reader)?);
    }
    let order = StoredOrder { cpus, groups };
    order.validate(count).map_err(|broken| broken.at(at))?;
    Ok(order)
}

fn spawned(reader: &mut Reader, runs: u32) -> Result<Spawned, DecodeError> {
    let mut figures = [Figure::default(); 4];
    for one in &mut figures {
        *one = figure(reader, runs)?;
    }
    let [at, parent_run, parent_blocks, parent_woken] = figures;
    Ok(Spawned {
        at,
        parent_run,
        parent_blocks,
        parent_woken,
        after: waker(reader)?,
    })
}

fn wakes(reader: &mut Reader) -> Result<Wakes, DecodeError> {
    let at = reader.at;
    let count = reader.byte()?;
    require(count <= 2, Rule::PhaseWakes, count as u64).map_err(|broken| broken.at(at))?;
    let mut wakes = Wakes::NONE;
    let mut last = None;
    for number in 0..count {
        let at = reader.at;
        let whom = waker(reader)?;
        // The tasks are in order, and an unknown one is alone.
        let is_next = match (last, whom) {
            (None, Waker::Unknown) => count == 1,
            (None, Waker::Root | Waker::Task(_)) => true,
            (Some(last), whom) => last < whom.number(),
            (None, Waker::Timer | Waker::Outside) => false,
        };
        require(is_next, Rule::PhaseWakes, whom.number()).map_err(|broken| broken.at(at))?;
        last = Some(whom.number());
        let at = reader.at;
        let woken = Woken {
            whom,
            count: reader.number()?,
            after: Counts(reader.number()?),
        };
        require(woken.count > 0, Rule::PhaseWakes, 0).map_err(|broken| broken.at(at))?;
        wakes = wakes.merged(Wakes::of([woken]));
        debug_assert_eq!(wakes.iter().count(), usize::from(number) + 1);
    }
    Ok(wakes)
}

fn waker(reader: &mut Reader) -> Result<Waker, DecodeError> {
    let at = reader.at;
    let number = reader.number()?;
    match Waker::of_number(number) {
        Some(waker) => Ok(waker),
        None => reader.fail(at, Rule::Waker, number),
    }
}

fn figure(reader: &mut Reader, runs: u32) -> Result<Figure, DecodeError> {
    let total = reader.number()?;
    if runs <= 1 {
        return Ok(Figure::once(total));
    }
    let least = reader.number()?;
    let at = reader.at;
    let spread = reader.number()?;
    let Some(most) = least.checked_add(spread) else {
        return reader.fail(at, Rule::Fits, spread);
    };
    Ok(Figure { total, least, most })
}

fn phases(reader: &mut Reader, by_ending: bool) -> Result<Phases, DecodeError> {
    let at = reader.at;
    let count = reader.byte()? as usize;
    require(count <= MAX_PHASES, Rule::PhaseCount, count as u64).map_err(|broken| broken.at(at))?;
    let mut list = with_room(count).ok_or(DecodeError::NoMemory)?;
    for _ in 0..count {
        let at = reader.at;
        let ended = reader.byte()?;
        let Some(&ended) = Ended::ALL.get(ended as usize) else {
            return reader.fail(at, Rule::PhaseEnded, ended as u64);
        };
        let (intervals, run) = (reader.number()?, Counts(reader.number()?));
        let blocked = Counts(match ended {
            Ended::Block => reader.number()?,
            _ => 0,
        });
        let mut phase = StoredPhase::new(ended, intervals, run, blocked);
        if ended == Ended::Block {
            phase.woken_by = waker(reader)?;
        }
        phase.wakes = wakes(reader)?;
        list.push(phase);
    }
    let order = if by_ending {
        PhaseOrder::ByEnding
    } else {
        PhaseOrder::AsRun
    };
    Ok(Phases { order, list })
}
