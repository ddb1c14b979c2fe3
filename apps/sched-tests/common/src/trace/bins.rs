//! A trace of bounded size for a run of any length: a fixed number of bins, whose
//! width doubles when the run goes beyond the last. Each then takes the time of
//! two, so that no time is lost, only where in the bin it was.
//!
//! As in the meter, one CPU at a time writes, with interrupts off, and what is
//! read afterwards is ordered by the meter's `on_cpu`: everything is `Relaxed`.
//! Memory is allocated with the recorder, never in a context switch.

use alloc::{boxed::Box, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::Timeline;

/// 4 KiB for a task; a long run ends in the second half of them. Even, so that
/// pairs come out.
const BINS: usize = 512;

/// Keeps the time on the CPU by when it was; in ticks of the hardware counter.
pub(crate) struct Bins {
    start_ticks: u64,
    width_ticks: AtomicU64,
    run_ticks: Box<[AtomicU64]>,
    is_closed: AtomicBool,
}

impl Bins {
    /// Bins from `start_ticks` on, each `bin_ticks` wide at first, which is not 0.
    pub(crate) fn new(start_ticks: u64, bin_ticks: u64) -> Self {
        assert_ne!(bin_ticks, 0, "the width of a bin");
        Self {
            start_ticks,
            width_ticks: AtomicU64::new(bin_ticks),
            run_ticks: (0..BINS).map(|_| AtomicU64::new(0)).collect(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Forgets what was kept.
    pub(crate) fn clear(&self) {
        self.run_ticks.iter().for_each(|bin| bin.store(0, Relaxed));
    }

    /// Adds a stay on the CPU, not before the start.
    pub(crate) fn stay(&self, entered: u64, left: u64) {
        if self.is_closed.load(Relaxed) {
            return;
        }
        let mut from = entered.saturating_sub(self.start_ticks);
        let end = left.saturating_sub(self.start_ticks);
        while end > self.width_ticks.load(Relaxed).saturating_mul(BINS as u64) {
            self.coarsen();
        }
        let width = self.width_ticks.load(Relaxed);
        while from < end {
            let bin = from / width;
            let to = ((bin + 1).saturating_mul(width)).min(end);
            add(&self.run_ticks[bin as usize], to - from);
            from = to;
        }
    }

    /// Keeps nothing from now on: the work is done, and what the task does on its
    /// way out is in no other figure either.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }

    /// What was kept. Ticks are converted from the start on and not bin by bin, so
    /// that what rounding takes from one bin it gives to the next.
    pub(crate) fn timeline(&self, to_ns: impl Fn(u64) -> u64) -> Option<Timeline> {
        let mut ticks = 0;
        let run_ns = self.run_ticks.iter().map(|bin| {
            let before = to_ns(ticks);
            ticks += bin.load(Relaxed);
            to_ns(ticks) - before
        });
        let mut run_ns: Vec<u64> = run_ns.collect();
        let used = run_ns.iter().rposition(|&ns| ns > 0).map_or(0, |i| i + 1);
        run_ns.truncate(used);
        Some(Timeline {
            bin_ns: to_ns(self.width_ticks.load(Relaxed)),
            run_ns,
        })
    }

    /// Two bins become one, in the first half.
    fn coarsen(&self) {
        for i in 0..BINS / 2 {
            let [a, b] = [2 * i, 2 * i + 1].map(|from| self.run_ticks[from].swap(0, Relaxed));
            self.run_ticks[i].store(a + b, Relaxed);
        }
        let width = self.width_ticks.load(Relaxed);
        self.width_ticks.store(width.saturating_mul(2), Relaxed);
    }
}

impl Default for Bins {
    fn default() -> Self {
        Self::new(0, 1)
    }
}

/// A plain addition, as in the meter.
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Relaxed) + amount, Relaxed);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timeline(bins: &Bins) -> Timeline {
        bins.timeline(|ticks| ticks).expect("it is kept")
    }

    fn after(stays: &[(u64, u64)]) -> Timeline {
        let bins = Bins::new(1_000, 10);
        for &(entered, left) in stays {
            bins.stay(1_000 + entered, 1_000 + left);
        }
        timeline(&bins)
    }

    #[test]
    fn a_stay_is_cut_at_the_bins() {
        let kept = after(&[(3, 5), (8, 34)]);
        assert_eq!((kept.bin_ns, kept.run_ns), (10, vec![4, 10, 10, 4]));
        assert!(after(&[]).run_ns.is_empty());
        assert!(after(&[(20, 20)]).run_ns.is_empty());
    }

    #[test]
    fn the_last_bin_is_used_before_bins_become_wider() {
        let end = 10 * BINS as u64;
        let kept = after(&[(0, 4), (end - 1, end)]);
        assert_eq!((kept.bin_ns, kept.run_ns.len()), (10, BINS));
        let kept = after(&[(0, 4), (13, 15), (end, end + 1)]);
        assert_eq!((kept.bin_ns, kept.run_ns.len()), (20, BINS / 2 + 1));
        assert_eq!((kept.run_ns[0], kept.run_ns[BINS / 2]), (6, 1));
    }

    #[test]
    fn a_run_of_any_length_fits() {
        let bins = Bins::new(0, 1);
        bins.stay(7, 9);
        bins.stay(u64::MAX - 5, u64::MAX);
        let kept = timeline(&bins);
        assert_eq!(kept.run_ns.iter().sum::<u64>(), 7);
        assert_eq!(kept.run_ns[0], 2);
    }

    #[test]
    fn what_comes_after_the_end_or_before_a_restart_is_not_kept() {
        let bins = Bins::new(0, 10);
        bins.stay(0, 7);
        bins.clear();
        bins.stay(12, 15);
        bins.close();
        bins.stay(15, 18);
        assert_eq!(timeline(&bins).run_ns, [0, 3]);
    }

    proptest! {
        /// Against a list of all ticks on the CPU, in whatever unit is asked for.
        #[test]
        fn bins_are_the_stays_sorted_by_time(
            pieces in prop::collection::vec((0u64..900, 0u64..900), 0..40),
            bin_ticks in 1u64..50,
            (times, over) in (1u64..2_000, 1u64..2_000),
        ) {
            let start = 12_345;
            let bins = Bins::new(start, bin_ticks);
            let mut now = 0;
            let mut on_cpu = Vec::new();
            for (away, stay) in pieces {
                now += away;
                bins.stay(start + now, start + now + stay);
                on_cpu.extend(now..now + stay);
                now += stay;
            }
            let to_ns = |ticks| ticks * times / over;

            let kept = timeline(&bins);
            let mut model = vec![0; BINS];
            for tick in &on_cpu {
                model[(tick / kept.bin_ns) as usize] += 1;
            }
            let used = model.iter().rposition(|&n| n > 0).map_or(0, |i| i + 1);
            prop_assert_eq!(&kept.run_ns, &model[..used]);
            let doublings = kept.bin_ns / bin_ticks;
            prop_assert!(kept.bin_ns.is_multiple_of(bin_ticks) && doublings.is_power_of_two());
            let last = on_cpu.last().map_or(0, |tick| tick + 1);
            prop_assert!(doublings == 1 || last > kept.bin_ns / 2 * BINS as u64, "no wider than needed");

            let converted = bins.timeline(to_ns).expect("it is kept");
            prop_assert_eq!(converted.run_ns.iter().sum::<u64>(), to_ns(on_cpu.len() as u64));
        }
    }
}
