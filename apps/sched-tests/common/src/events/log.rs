//! The log of one CPU, in memory of a fixed size.
//!
//! **Order.** Only its CPU writes a log, with interrupts off. Main reads it when all tasks of the
//! phase are reclaimed. So all accesses are `Relaxed`. The bytes are atomic so that no `unsafe` is
//! needed. This costs nothing, because a relaxed store is a plain store.

use alloc::{boxed::Box, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

use sched_tests_results::events::{MOST_BYTES, Record, What};

/// A log, which is empty and closed at first.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Log {
    bytes: Box<[AtomicU8]>,
    is_open: AtomicBool,
    /// The number of bytes that are written.
    used: AtomicUsize,
    /// The time of the last record that was kept, in ticks of the hardware counter.
    last_ticks: AtomicU64,
    kept: AtomicU64,
    lost: AtomicU64,
}

/// The contents of a log, and how many records it has kept and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub bytes: Vec<u8>,
    pub kept: u64,
    pub lost: u64,
}

impl Log {
    /// Makes a log with room for `room_bytes` bytes.
    pub(crate) fn new(room_bytes: usize) -> Self {
        Self {
            bytes: (0..room_bytes).map(|_| AtomicU8::new(0)).collect(),
            ..Self::default()
        }
    }

    /// Begins anew at `now`, in ticks.
    pub(crate) fn open(&self, now: u64) {
        self.used.store(0, Relaxed);
        self.kept.store(0, Relaxed);
        self.lost.store(0, Relaxed);
        self.last_ticks.store(now, Relaxed);
        self.is_open.store(true, Relaxed);
    }

    /// Keeps nothing from now on. Another CPU may call this.
    pub(crate) fn close(&self) {
        self.is_open.store(false, Relaxed);
    }

    /// Keeps a record while the log is open. Once a record has found no room, no later one is kept,
    /// because the time of each is relative to the record before.
    #[inline]
    pub(crate) fn record(&self, who: u64, what: What, now: u64) {
        if !self.is_open.load(Relaxed) {
            return;
        }
        let used = self.used.load(Relaxed);
        let Some(room) = self.bytes.get(used..used + MOST_BYTES) else {
            self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
            return;
        };
        let delta = now.saturating_sub(self.last_ticks.load(Relaxed));
        let mut end = used;
        Record::pack(who, what, delta, |byte| {
            // `pack` writes at most `MOST_BYTES`, for which there is room. The compiler cannot know
            // that.
            if let Some(place) = room.get(end - used) {
                place.store(byte, Relaxed);
            }
            end += 1;
        });
        self.used.store(end, Relaxed);
        self.last_ticks.store(now, Relaxed);
        self.kept.store(self.kept.load(Relaxed) + 1, Relaxed);
    }

    /// Returns a copy of the contents.
    pub(crate) fn written(&self) -> Written {
        let used = &self.bytes[..self.used.load(Relaxed)];
        Written {
            bytes: used.iter().map(|byte| byte.load(Relaxed)).collect(),
            kept: self.kept.load(Relaxed),
            lost: self.lost.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sched_tests_results::events::unpack;

    use super::*;

    fn log(room_bytes: usize) -> Log {
        let log = Log::new(room_bytes);
        log.open(1_000);
        log
    }

    #[test]
    fn closed_log_keeps_nothing() {
        let log = Log::new(100);
        log.record(4, What::Yielded, 5);
        assert_eq!(log.written(), Written::default());
        log.open(10);
        log.record(4, What::Yielded, 15);
        log.close();
        log.record(4, What::Yielded, 25);
        let written = log.written();
        assert_eq!(
            (&*written.bytes, written.kept, written.lost),
            (&[34, 5][..], 1, 0)
        );
        log.open(30);
        assert_eq!(
            log.written(),
            Written::default(),
            "the next phase has a log of its own"
        );
    }

    proptest! {
        /// Fills a log beyond its room. It keeps the first records, and counts the others as lost.
        #[test]
        fn records_beyond_the_room_are_counted_as_lost(
            room_bytes in 0usize..400,
            events in prop::collection::vec((0u64..40, 0u64..1 << 20), 0..120),
        ) {
            let log = log(room_bytes);
            let mut now = 1_000;
            let mut all = Vec::new();
            for (who, delta) in events {
                now += delta;
                log.record(who, What::Blocked, now);
                all.push((who, now - 1_000));
            }
            let written = log.written();
            prop_assert!(written.bytes.len() <= room_bytes);
            prop_assert_eq!(written.kept + written.lost, all.len() as u64);
            let kept = unpack(&written.bytes).expect("whole records");
            let kept: Vec<_> = kept.iter().map(|record| (record.who, record.at_ticks)).collect();
            prop_assert_eq!(&kept[..], &all[..written.kept as usize]);
            let full = room_bytes.saturating_sub(written.bytes.len()) < MOST_BYTES;
            prop_assert!(written.lost == 0 || full, "there was room");
        }
    }
}
