//! The switch events of a phase: how a guest packs them, and the lines that carry them.
//!
//! Each CPU has a log of its own. A log is a row of [`Record`]s in the order of their times,
//! packed: two LEB128 numbers each, `who` × 8 + `what`, and the ticks of the hardware counter since
//! the record before (of the first: since the start of the phase). With up to 12 tasks and less
//! than 128 ticks between that is 2 bytes, with less than 16,384 it is 3.
//!
//! **All time is somebody's.** A record that [ends a stay](What::ends_a_stay) gives the
//! time since the one before it that did so to `who`; there is no time between two stays.
//!
//! **The lines.** A log is cut into pieces of [`PIECE_BYTES`], each a line, in their order.
//! Each says how long the whole log is and what its CRC-32 is, so that a console that was cut
//! or garbled is noticed: [`Log::collect`].

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::{Context, Kind, ResultLine};

/// The version of the packing that [`EventsLine::version`] has.
pub const EVENTS_VERSION: u32 = 1;

/// How many bytes of a log a line has at most.
pub const PIECE_BYTES: usize = 6 * 1024;

/// The most bytes that a record takes.
pub const MOST_BYTES: usize = 2 * LEB128_BYTES;

/// The most bytes of a 64-bit number, 7 bits in each.
const LEB128_BYTES: usize = 10;

/// The `who` of the main task.
pub const MAIN: u64 = 0;
/// The `who` of the kernel's `gc` of that CPU.
pub const GC: u64 = 1;
/// The `who` of a CPU that has nothing to do.
pub const IDLE: u64 = 2;
/// The `who` of any other task that carries no meter.
pub const OTHER: u64 = 3;
/// The `who` of the first task of the phase; the next has the next number, in the order of
/// the `SCHED-TASK` lines.
pub const FIRST_TASK: u64 = 4;

/// The event that a [`Record`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Until now somebody without a meter was on the CPU; how it left is not known.
    Booked = 0,
    /// It left the CPU to wait for something.
    Blocked = 1,
    /// It left the CPU of its own accord, and is ready.
    Yielded = 2,
    /// It was taken off the CPU, and is ready.
    Preempted = 3,
    /// It left the CPU for good.
    Ended = 4,
    /// It goes on, and its account begins here: of several CPUs, tasks wait at a gate first.
    LetIn = 5,
    /// It goes on, and its work is done: the end of its account.
    Done = 6,
    /// It became ready: it was spawned or woken. Who was on this CPU did it, or an interrupt
    /// that hit it. Ends no stay.
    Woken = 7,
}

impl What {
    const ALL: [Self; 8] = [
        Self::Booked,
        Self::Blocked,
        Self::Yielded,
        Self::Preempted,
        Self::Ended,
        Self::LetIn,
        Self::Done,
        Self::Woken,
    ];

    /// Whether the time until this record is `who`'s: always, but for [`Woken`](Self::Woken).
    pub const fn ends_a_stay(self) -> bool {
        !matches!(self, Self::Woken)
    }
}

/// One event on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, in ticks of the hardware counter since the start of the phase.
    pub at_ticks: u64,
    /// [`MAIN`], [`GC`], [`IDLE`], [`OTHER`] or from [`FIRST_TASK`] on; at most
    /// [`MOST_WHO`](Self::MOST_WHO).
    pub who: u64,
    /// What happened.
    pub what: What,
}

impl Record {
    /// The greatest `who` that can be packed.
    pub const MOST_WHO: u64 = u64::MAX >> 3;

    /// Packs a record that comes `delta_ticks` after the one before it, byte by byte: at most
    /// [`MOST_BYTES`] of them.
    #[inline]
    pub fn pack(who: u64, what: What, delta_ticks: u64, mut put: impl FnMut(u8)) {
        leb128(who << 3 | what as u64, &mut put);
        leb128(delta_ticks, &mut put);
    }
}

#[inline]
fn leb128(mut number: u64, put: &mut impl FnMut(u8)) {
    while number >= 0x80 {
        put(number as u8 | 0x80);
        number >>= 7;
    }
    put(number as u8);
}

/// Unpacks the records of a log.
pub fn unpack(bytes: &[u8]) -> Result<Vec<Record>, EventsError> {
    let (mut rest, mut at_ticks) = (bytes.iter(), 0u64);
    let mut records = Vec::new();
    while !rest.as_slice().is_empty() {
        let place = bytes.len() - rest.len();
        let record = number(&mut rest).and_then(|head| {
            at_ticks = at_ticks.checked_add(number(&mut rest)?)?;
            Some(Record {
                at_ticks,
                who: head >> 3,
                what: What::ALL[(head & 7) as usize],
            })
        });
        records.push(record.ok_or(EventsError::NoRecord { place })?);
    }
    Ok(records)
}

/// A number of at most 64 bits.
fn number<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let mut number = 0;
    for i in 0..LEB128_BYTES {
        let byte = *bytes.next()?;
        let bits = u64::from(byte & 0x7f);
        if bits << (7 * i) >> (7 * i) != bits {
            return None;
        }
        number |= bits << (7 * i);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A piece of the log of one CPU in one phase. All but `offset` and `data` are the same in
/// each piece of a log.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct EventsLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The CPU, from 0.
    pub cpu: u32,
    /// The version of the packing, [`EVENTS_VERSION`].
    pub version: u32,
    /// The rate of the hardware counter, in Hz, at least 1.
    pub counter_hz: u64,
    /// When the phase started, since boot.
    pub start_ns: u64,
    /// How many records the log has.
    pub records: u64,
    /// How many records there was no room for, all after those that are there.
    pub lost: u64,
    /// How many bytes the log has.
    pub bytes: u64,
    /// The CRC-32 (IEEE 802.3) of these bytes.
    pub crc32: u32,
    /// Where in the log this piece begins, in bytes.
    pub offset: u64,
    /// The piece, in base64 (RFC 4648, with padding): at most [`PIECE_BYTES`] bytes. Empty only
    /// if the log is.
    pub data: String,
}

impl ResultLine for EventsLine {
    const KIND: Kind = Kind::Events;
}

/// The log of one CPU in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Whose log it is: a line without `offset` and `data`.
    pub head: EventsLine,
    /// The packed records.
    pub bytes: Vec<u8>,
}

impl Log {
    /// A log with its length and checksum. The `head` says the rest.
    pub fn new(head: EventsLine, bytes: Vec<u8>) -> Self {
        let head = EventsLine {
            version: EVENTS_VERSION,
            bytes: bytes.len() as u64,
            crc32: crc32fast::hash(&bytes),
            offset: 0,
            data: String::new(),
            ..head
        };
        Self { head, bytes }
    }

    /// The lines that carry it, at least one.
    pub fn lines(&self) -> impl Iterator<Item = EventsLine> {
        let count = self.bytes.len().div_ceil(PIECE_BYTES).max(1);
        (0..count).map(move |i| {
            let rest = &self.bytes[i * PIECE_BYTES..];
            EventsLine {
                offset: (i * PIECE_BYTES) as u64,
                data: STANDARD.encode(&rest[..rest.len().min(PIECE_BYTES)]),
                ..self.head.clone()
            }
        })
    }

    /// Puts the lines of one log together, in the order in which they were printed.
    ///
    /// # Errors
    /// There is none; they are not of one log; one is missing, twice or out of order; the
    /// version is another; the data is not what was written.
    pub fn collect(lines: impl IntoIterator<Item = EventsLine>) -> Result<Self, EventsError> {
        let mut log: Option<Self> = None;
        for line in lines {
            if line.version != EVENTS_VERSION {
                return Err(EventsError::OtherVersion(line.version));
            }
            let (offset, data) = (line.offset, line.data);
            let head = EventsLine {
                offset: 0,
                data: String::new(),
                ..line
            };
            let log = log.get_or_insert_with(|| Self {
                head: head.clone(),
                bytes: Vec::new(),
            });
            if log.head != head {
                return Err(EventsError::OtherLog);
            }
            let expected = log.bytes.len() as u64;
            if offset != expected {
                return Err(EventsError::NotNext {
                    expected,
                    found: offset,
                });
            }
            let piece = STANDARD.decode(data);
            log.bytes
                .extend(piece.map_err(|error| EventsError::NoBase64(error.to_string()))?);
        }
        let log = log.ok_or(EventsError::Nothing)?;
        let (expected, found) = (log.head.bytes, log.bytes.len() as u64);
        if expected != found {
            return Err(EventsError::NotNext { expected, found });
        }
        match crc32fast::hash(&log.bytes) {
            found if found == log.head.crc32 => Ok(log),
            found => Err(EventsError::Damaged {
                expected: log.head.crc32,
                found,
            }),
        }
    }

    /// Its records.
    ///
    /// # Errors
    /// The bytes are no records, or not as many as the line says.
    pub fn records(&self) -> Result<Vec<Record>, EventsError> {
        let records = unpack(&self.bytes)?;
        let (expected, found) = (self.head.records, records.len() as u64);
        if expected != found {
            return Err(EventsError::OtherCount { expected, found });
        }
        Ok(records)
    }
}

/// Why lines are no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsError {
    /// There is no line.
    Nothing,
    /// The packing is another one.
    OtherVersion(u32),
    /// Two lines do not have the same keys.
    OtherLog,
    /// A piece is missing, twice or out of order, or the last is.
    NotNext {
        /// Where the next piece begins, or the log ends.
        expected: u64,
        /// Where it does.
        found: u64,
    },
    /// A piece cannot be decoded.
    NoBase64(String),
    /// The checksum is another one.
    Damaged {
        /// The one of the line.
        expected: u32,
        /// The one of the bytes.
        found: u32,
    },
    /// There is no record at that byte.
    NoRecord {
        /// From the beginning of the log.
        place: usize,
    },
    /// There are more or fewer records.
    OtherCount {
        /// As the line says.
        expected: u64,
        /// In the bytes.
        found: u64,
    },
}

impl fmt::Display for EventsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "expected SCHED-EVENTS lines, found none"),
            Self::OtherVersion(found) => {
                write!(f, "expected version {EVENTS_VERSION}, found {found}")
            }
            Self::OtherLog => write!(f, "expected lines of one log, found another's"),
            Self::NotNext { expected, found } => {
                write!(f, "expected byte {expected} of the log, found {found}")
            }
            Self::NoBase64(why) => write!(f, "expected base64: {why}"),
            Self::Damaged { expected, found } => {
                write!(
                    f,
                    "expected the CRC-32 {expected:#010x}, found {found:#010x}"
                )
            }
            Self::NoRecord { place } => write!(f, "expected a record at byte {place}, found none"),
            Self::OtherCount { expected, found } => {
                write!(f, "expected {expected} records, found {found}")
            }
        }
    }
}

impl core::error::Error for EventsError {}

#[cfg(test)]
mod tests;
