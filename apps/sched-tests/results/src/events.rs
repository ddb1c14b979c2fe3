//! The switch events of a phase: how a guest packs them, and the lines that carry them.
//!
//! Each CPU has its own log, a row of [`Record`]s in the order of their times. A record is packed
//! as two LEB128 numbers. The first is `who` × 8 + `what`. The second is the time in ticks of the
//! hardware counter since the record before, or since the start of the phase. With up to 12 tasks a
//! record takes 2 bytes after less than 128 ticks, and 3 bytes after less than 16,384.
//!
//! **All time has an owner.** A record that [ends a stay](What::ends_a_stay) gives `who` the time
//! since the last record that did so. There is no time between two stays.
//!
//! **The lines.** A log is cut into pieces of [`PIECE_BYTES`], one a line, in their order. Each
//! line gives the length and the CRC-32 of the whole log, so that a console that was cut or garbled
//! is noticed ([`Log::collect`]).

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

/// The most bytes of a log that a line carries.
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
    /// Until now a task without a meter was on the CPU, or none. How it left is not known.
    Booked = 0,
    /// It left the CPU to wait for something.
    Blocked = 1,
    /// It left the CPU of its own accord, and is ready.
    Yielded = 2,
    /// It was taken off the CPU, and is ready.
    Preempted = 3,
    /// It left the CPU for good.
    Ended = 4,
    /// It goes on, and its account begins here. On several CPUs, tasks wait at a gate first.
    LetIn = 5,
    /// It goes on, and its work is done, so its account ends here.
    Done = 6,
    /// It became ready: it was spawned or woken. The task on this CPU did that, or an interrupt
    /// that hit this task. The record ends no stay.
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

    /// Returns true if the time until this record belongs to `who`: always, except for
    /// [`Woken`](Self::Woken).
    pub const fn ends_a_stay(self) -> bool {
        !matches!(self, Self::Woken)
    }
}

/// One event on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time of the event, in ticks of the hardware counter since the start of the phase.
    pub at_ticks: u64,
    /// The task of the event, or [`IDLE`]: [`MAIN`], [`GC`], [`OTHER`] or a number from
    /// [`FIRST_TASK`] on, at most [`MOST_WHO`](Self::MOST_WHO).
    pub who: u64,
    /// The event that `who` had.
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

/// Reads a number of at most 64 bits. Returns `None` if there is none.
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
    /// The start of the phase, since boot.
    pub start_ns: u64,
    /// The number of records in the log.
    pub records: u64,
    /// The number of records that found no room. All of them come after those in the log.
    pub lost: u64,
    /// The length of the log, in bytes.
    pub bytes: u64,
    /// The CRC-32 (IEEE 802.3) of these bytes.
    pub crc32: u32,
    /// The place in the log at which this piece begins, in bytes.
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
    /// The line without `offset` and `data`, which says which CPU and phase the log belongs to.
    pub head: EventsLine,
    /// The packed records.
    pub bytes: Vec<u8>,
}

impl Log {
    /// Makes a log with its length and checksum. The `head` gives the rest.
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

    /// Returns the lines that carry the log, at least one.
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
    /// Fails if there is no line, if the lines are not those of one log, or if one is missing,
    /// repeated or out of order. Also fails if the version is another, or if the data is not what
    /// was written.
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

    /// Unpacks the records of the log.
    ///
    /// # Errors
    /// Fails if the bytes are no records, or not as many as the line says.
    pub fn records(&self) -> Result<Vec<Record>, EventsError> {
        let records = unpack(&self.bytes)?;
        let (expected, found) = (self.head.records, records.len() as u64);
        if expected != found {
            return Err(EventsError::OtherCount { expected, found });
        }
        Ok(records)
    }
}

/// The reason why lines are no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsError {
    /// There is no line.
    Nothing,
    /// The version of the packing is another one.
    OtherVersion(u32),
    /// Two lines are not from the same log.
    OtherLog,
    /// A piece is missing, repeated or out of order.
    NotNext {
        /// The byte at which the next piece must begin, or the log must end.
        expected: u64,
        /// The byte at which it does.
        found: u64,
    },
    /// A piece cannot be decoded.
    NoBase64(String),
    /// The checksum does not fit the bytes.
    Damaged {
        /// The checksum in the line.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// There is no record at that byte.
    NoRecord {
        /// The byte, from the beginning of the log.
        place: usize,
    },
    /// There are more or fewer records than the line says.
    OtherCount {
        /// The number in the line.
        expected: u64,
        /// The number in the bytes.
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
