//! Bytes as lines of text, for a serial console that other code writes to as well.
//!
//! ```text
//! PBG-PROFILE-BEGIN v1 bytes=N lines=M crc=XXXXXXXX
//! PBG-PROFILE 1 iVBCRw0KGgo… 1a2b
//! …
//! PBG-PROFILE-END
//! ```
//!
//! Each line carries up to 48 bytes in Base64 and a check of its own. The check is the low 16
//! bits of the CRC-32 of its number, a blank and the Base64. `crc` is the CRC-32 of all the
//! Base64, one line after the other. (A CRC of the bytes would be of no use. A profile ends with
//! its own CRC, and the CRC of any such bytes is always the same.)

use alloc::vec::Vec;
use core::fmt::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::MAX_BYTES;
use sched_core::room::with_room;

/// The version of the framing that [`write_frame`] writes and [`read_frame`] reads.
pub const FRAME_VERSION: u32 = 1;
/// The number of bytes that a line carries. The last line may carry fewer.
pub const FRAME_BYTES_PER_LINE: usize = 48;

const BEGIN: &str = "PBG-PROFILE-BEGIN ";
const LINE: &str = "PBG-PROFILE ";
const END: &str = "PBG-PROFILE-END";
/// The number of characters of a whole line in Base64.
const TEXT: usize = FRAME_BYTES_PER_LINE.div_ceil(3) * 4;

/// The reason why a console text gives no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// No line begins a profile.
    NotFound,
    /// The line that begins a profile cannot be read.
    Begin {
        /// The line of the console text, counted from 1.
        line: usize,
    },
    /// The framing has another version.
    OtherVersion {
        /// The line of the console text, counted from 1.
        line: usize,
        /// The framing's version; [`FRAME_VERSION`] was expected.
        found: u32,
    },
    /// Lines of the block are missing or damaged.
    Incomplete {
        /// The number of lines of the block.
        lines: usize,
        /// The number of lines that are missing or damaged.
        missing: usize,
        /// The number of the first of those, counted from 1.
        first_missing: usize,
        /// The first line of the console text, counted from 1, that belongs to
        /// the block and is damaged.
        damaged: Option<usize>,
        /// The line of the console text where the block ends, or `None` if the text
        /// ends before.
        end: Option<usize>,
    },
    /// Two intact lines have the same number and different contents.
    Contradiction {
        /// The second one's line in the console text, counted from 1.
        line: usize,
        /// The number that both lines have.
        number: usize,
    },
    /// Every line is intact, but together they differ from what was written.
    Checksum {
        /// The checksum in the first line.
        expected: u32,
        /// The checksum of the other lines.
        found: u32,
    },
    /// There is no memory for the bytes.
    NoMemory,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotFound => write!(f, "expected a line {BEGIN}…, found none"),
            Self::Begin { line } => write!(
                f,
                "line {line}: expected {BEGIN}v1 bytes=N lines=M crc=XXXXXXXX, found a damaged one"
            ),
            Self::OtherVersion { line, found } => write!(
                f,
                "line {line}: expected framing of version {FRAME_VERSION}, found version {found}"
            ),
            Self::Incomplete {
                lines,
                missing,
                first_missing,
                damaged,
                end,
            } => {
                write!(
                    f,
                    "expected {lines} lines of a profile, found {}; the first missing is number {first_missing}",
                    lines - missing
                )?;
                if let Some(line) = damaged {
                    write!(f, "; line {line} is damaged")?;
                }
                if end.is_none() {
                    f.write_str("; the text ends before the profile does")?;
                }
                Ok(())
            }
            Self::Contradiction { line, number } => write!(
                f,
                "line {line}: expected number {number} as it was before, found another content"
            ),
            Self::Checksum { expected, found } => write!(
                f,
                "damaged: expected the checksum {expected:08x} of all lines, found {found:08x}"
            ),
            Self::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for FrameError {}

/// A line in a buffer, so that it goes out in one piece.
struct Line {
    bytes: [u8; 128],
    len: usize,
}

impl Line {
    fn send(out: &mut impl Write, line: fmt::Arguments<'_>) -> fmt::Result {
        let mut this = Self {
            bytes: [0; 128],
            len: 0,
        };
        this.write_fmt(line)?;
        this.write_str("\n")?;
        // The bytes come from `str`s, so they are UTF-8.
        out.write_str(core::str::from_utf8(&this.bytes[..this.len]).unwrap_or_default())
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len());
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// Returns the Base64 of at most a line of bytes.
fn base64<'a>(bytes: &[u8], room: &'a mut [u8; TEXT]) -> &'a str {
    // There is room for a line, and Base64 is ASCII.
    let len = STANDARD.encode_slice(bytes, room).unwrap_or_default();
    core::str::from_utf8(&room[..len]).unwrap_or_default()
}

fn check_of_all(bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for chunk in bytes.chunks(FRAME_BYTES_PER_LINE) {
        crc.update(base64(chunk, &mut [0; TEXT]).as_bytes());
    }
    crc.finalize()
}

/// Returns the short check of the text between a line's prefix and its check.
fn check_of_line(text: &[u8]) -> u16 {
    crc32fast::hash(text) as u16
}

/// Writes `bytes`, an [encoded](super::encode) profile, as lines of text, each
/// with one call of `write_str` and ended by a line feed.
///
/// A byte takes about 1.7 characters. Allocates nothing.
///
/// # Errors
/// Returns an error only if `out` does.
pub fn write_frame(bytes: &[u8], out: &mut impl Write) -> fmt::Result {
    let lines = bytes.len().div_ceil(FRAME_BYTES_PER_LINE);
    let crc = check_of_all(bytes);
    Line::send(
        out,
        format_args!(
            "{BEGIN}v{FRAME_VERSION} bytes={} lines={lines} crc={crc:08x}",
            bytes.len()
        ),
    )?;
    for (number, chunk) in (1..).zip(bytes.chunks(FRAME_BYTES_PER_LINE)) {
        let mut room = [0; TEXT];
        let text = base64(chunk, &mut room);
        let mut checked = Line {
            bytes: [0; 128],
            len: 0,
        };
        write!(checked, "{number} {text}")?;
        let check = check_of_line(&checked.bytes[..checked.len]);
        Line::send(out, format_args!("{LINE}{number} {text} {check:04x}"))?;
    }
    Line::send(out, format_args!("{END}"))
}

/// Returns true if a console text has a profile in it, whole or not.
pub fn has_frame(console: &[u8]) -> bool {
    after(console, BEGIN).is_some()
}

/// Returns the bytes of the last profile in a console text.
///
/// Other lines may stand between those of the profile. A line may end with CR LF, and have other
/// text before the prefix or after the check. Lines may come twice or in another order. The text
/// is read three times. This takes 1 bit of memory for each line and, once all lines are there,
/// memory for the bytes.
///
/// # Errors
/// Returns the first [`FrameError`] found.
pub fn read_frame(console: &[u8]) -> Result<Vec<u8>, FrameError> {
    let lines = || (1..).zip(console.split(|byte| *byte == b'\n'));
    let (begin, frame) = lines()
        .filter_map(|(line, text)| Some((line, after(text, BEGIN)?)))
        .last()
        .ok_or(FrameError::NotFound)?;
    let frame = Frame::read(begin, frame)?;
    let end = lines()
        .skip(begin)
        .find(|(_, text)| after(text, END).is_some())
        .map(|(line, _)| line);
    let inside = || {
        lines()
            .skip(begin)
            .take_while(|(line, _)| Some(*line) != end)
            .filter_map(|(line, text)| Some((line, after(text, LINE)?)))
    };

    let mut room = [0; FRAME_BYTES_PER_LINE];
    let mut seen = Seen::new(frame.lines)?;
    let mut damaged = None;
    for (line, text) in inside() {
        match frame.line(text, &mut room) {
            Some((number, _)) => seen.insert(number),
            None => damaged = damaged.or(Some(line)),
        }
    }
    if let Some(first_missing) = seen.first_missing() {
        return Err(FrameError::Incomplete {
            lines: frame.lines,
            missing: frame.lines - seen.count,
            first_missing,
            damaged,
            end,
        });
    }

    let mut bytes = with_room(frame.bytes).ok_or(FrameError::NoMemory)?;
    bytes.resize(frame.bytes, 0);
    let mut seen = Seen::new(frame.lines)?;
    for (line, text) in inside() {
        let Some((number, found)) = frame.line(text, &mut room) else {
            continue; // damaged, but an intact copy exists
        };
        let start = (number - 1) * FRAME_BYTES_PER_LINE;
        let place = &mut bytes[start..start + found.len()];
        if !seen.has(number) {
            seen.insert(number);
            place.copy_from_slice(found);
        } else if place != found {
            return Err(FrameError::Contradiction { line, number });
        }
    }
    let (expected, found) = (frame.crc, check_of_all(&bytes));
    if expected != found {
        return Err(FrameError::Checksum { expected, found });
    }
    Ok(bytes)
}

/// Returns the part of a line that follows `mark`.
fn after<'a>(line: &'a [u8], mark: &str) -> Option<&'a [u8]> {
    let at = line
        .windows(mark.len())
        .position(|w| w == mark.as_bytes())?;
    Some(&line[at + mark.len()..])
}

/// The contents of the first line.
struct Frame {
    bytes: usize,
    lines: usize,
    crc: u32,
}

impl Frame {
    fn read(line: usize, text: &[u8]) -> Result<Self, FrameError> {
        let damaged = FrameError::Begin { line };
        let mut words = text.split(u8::is_ascii_whitespace);
        let mut word = |key: &str| {
            let word = core::str::from_utf8(words.next()?).ok()?;
            word.strip_prefix(key)
        };
        let version = word("v").and_then(|v| v.parse().ok()).ok_or(damaged)?;
        if version != FRAME_VERSION {
            return Err(FrameError::OtherVersion {
                line,
                found: version,
            });
        }
        let mut number = |key: &str, radix| {
            word(key)
                .and_then(|word| u32::from_str_radix(word, radix).ok())
                .ok_or(damaged)
        };
        let this = Self {
            bytes: number("bytes=", 10)? as usize,
            lines: number("lines=", 10)? as usize,
            crc: number("crc=", 16)?,
        };
        let fits = (1..=MAX_BYTES).contains(&this.bytes)
            && this.lines == this.bytes.div_ceil(FRAME_BYTES_PER_LINE);
        if fits { Ok(this) } else { Err(damaged) }
    }

    /// Returns the number of an intact line, from 1, and its bytes.
    fn line<'a>(
        &self,
        text: &[u8],
        room: &'a mut [u8; FRAME_BYTES_PER_LINE],
    ) -> Option<(usize, &'a [u8])> {
        let mut blanks = text
            .iter()
            .enumerate()
            .filter_map(|(at, byte)| (*byte == b' ').then_some(at));
        let (first, second) = (blanks.next()?, blanks.next()?);
        let check = core::str::from_utf8(text.get(second + 1..second + 5)?).ok()?;
        if u16::from_str_radix(check, 16).ok()? != check_of_line(&text[..second]) {
            return None;
        }
        let number: usize = core::str::from_utf8(&text[..first]).ok()?.parse().ok()?;
        let before = number.checked_sub(1)? * FRAME_BYTES_PER_LINE;
        let expected = self.bytes.checked_sub(before)?.min(FRAME_BYTES_PER_LINE);
        let len = STANDARD.decode_slice(&text[first + 1..second], room).ok()?;
        (len > 0 && len == expected).then(|| (number, &room[..len]))
    }
}

/// The set of lines that have been seen.
struct Seen {
    bits: Vec<u8>,
    lines: usize,
    count: usize,
}

impl Seen {
    fn new(lines: usize) -> Result<Self, FrameError> {
        let bytes = lines.div_ceil(8);
        let mut bits = with_room(bytes).ok_or(FrameError::NoMemory)?;
        bits.resize(bytes, 0);
        Ok(Self {
            bits,
            lines,
            count: 0,
        })
    }

    fn has(&self, number: usize) -> bool {
        self.bits[(number - 1) / 8] >> ((number - 1) % 8) & 1 != 0
    }

    fn insert(&mut self, number: usize) {
        self.count += usize::from(!self.has(number));
        self.bits[(number - 1) / 8] |= 1 << ((number - 1) % 8);
    }

    fn first_missing(&self) -> Option<usize> {
        (1..=self.lines).find(|number| !self.has(*number))
    }
}
