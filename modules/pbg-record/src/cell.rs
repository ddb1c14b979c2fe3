//! Numbers and labels that one writer at a time changes while others read them.
//! Relaxed: see LOCK in [`task`](sched_core::task).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use pbg_profile::Label;

/// A number with one writer at a time.
#[derive(Default)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn add(&self, by: u64) {
        self.set(self.get().wrapping_add(by));
    }
}

/// A label or none, with one writer at a time. The length is written last, so that an
/// interrupt finds the whole label or none.
pub struct LabelCell {
    len: AtomicU64,
    bytes: [Word; 4],
}

impl Default for LabelCell {
    fn default() -> Self {
        Self::new()
    }
}

impl LabelCell {
    /// Creates a cell without a label.
    pub const fn new() -> Self {
        Self {
            len: AtomicU64::new(0),
            bytes: [const { Word::new(0) }; 4],
        }
    }

    /// Replaces the label by this one, or by none.
    pub fn set(&self, label: Option<&Label>) {
        let text = label.map_or(&[][..], |label| label.as_str().as_bytes());
        let mut bytes = [0; 32];
        bytes[..text.len()].copy_from_slice(text);
        self.len.store(0, Release);
        for (word, bytes) in self.bytes.iter().zip(bytes.as_chunks().0) {
            word.set(u64::from_le_bytes(*bytes));
        }
        self.len.store(text.len() as u64, Release);
    }

    /// Returns the label, if there is one.
    pub fn get(&self) -> Option<Label> {
        let len = self.len.load(Relaxed) as usize;
        if len == 0 {
            return None;
        }
        let mut bytes = [0; 32];
        for (word, bytes) in self.bytes.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = word.get().to_le_bytes();
        }
        Label::new(core::str::from_utf8(bytes.get(..len)?).ok()?).ok()
    }
}
