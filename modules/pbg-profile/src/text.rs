//! Short texts in place, so that a profile needs no allocation for each.

use core::fmt;
use core::str::FromStr;

/// The label of a task, of at most 32 bytes.
pub type Label = Text<32>;
/// The name of a program, of at most 64 bytes.
pub type ProgramName = Text<64>;
/// The name of a policy, of at most 16 bytes.
pub type PolicyName = Text<16>;

/// A text of 1 to `N` bytes of UTF-8, where `N` is at most 255. It has no control characters,
/// because these could disturb the console or the table in which it is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    len: u8,
    /// Zero from `len` on, so that equal texts are equal bytes.
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// Creates a copy of `text`.
    ///
    /// # Errors
    /// Returns a [`TextError`] if it is empty, too long, or has a control character.
    pub const fn new(text: &str) -> Result<Self, TextError> {
        const { assert!(N <= u8::MAX as usize) }
        let from = text.as_bytes();
        if from.is_empty() {
            return Err(TextError::Empty);
        }
        if from.len() > N {
            return Err(TextError::TooLong {
                most: N,
                found: from.len(),
            });
        }
        let mut bytes = [0; N];
        let mut i = 0;
        while i < from.len() {
            // C0 and DEL are bytes of their own; C1 is C2 80 to C2 9F.
            let c1 = from[i] == 0xc2 && i + 1 < from.len() && from[i + 1] < 0xa0;
            if from[i] < 0x20 || from[i] == 0x7f || c1 {
                return Err(TextError::Control { at: i });
            }
            bytes[i] = from[i];
            i += 1;
        }
        Ok(Self {
            len: from.len() as u8,
            bytes,
        })
    }

    /// Returns the text as a string slice.
    pub fn as_str(&self) -> &str {
        // The bytes come from a `str`, so the default is never used.
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl<const N: usize> FromStr for Text<N> {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::new(text)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// It is empty.
    Empty,
    /// It has too many bytes.
    TooLong {
        /// How many bytes fit.
        most: usize,
        /// How many bytes there were.
        found: usize,
    },
    /// There is a control character in it.
    Control {
        /// The index of that character's first byte.
        at: usize,
    },
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("expected at least 1 byte, found none"),
            Self::TooLong { most, found } => {
                write!(f, "expected at most {most} bytes, found {found}")
            }
            Self::Control { at } => {
                write!(f, "expected no control character, found one at byte {at}")
            }
        }
    }
}

impl core::error::Error for TextError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_was_made_from_or_refused_with_the_reason() {
        for good in ["a", "rr", "größe 3", "0123456789abcdef", "\u{a0}"] {
            let text = PolicyName::new(good).unwrap();
            assert_eq!(text.as_str(), good);
            assert_eq!(
                std::format!("{text} {text:?}"),
                std::format!("{good} {good:?}")
            );
        }
        assert_eq!(PolicyName::new(""), Err(TextError::Empty));
        let long = TextError::TooLong {
            most: 16,
            found: 17,
        };
        assert_eq!(PolicyName::new("0123456789abcdefg"), Err(long));
        for control in ["ab\n", "ab\u{7f}", "ab\u{80}", "ab\u{9f}c", "ab\0"] {
            assert_eq!(PolicyName::new(control), Err(TextError::Control { at: 2 }));
        }
    }
}
