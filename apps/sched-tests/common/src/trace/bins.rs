//! A trace of bounded size for a run of any length. It has a fixed number of bins, whose width
//! doubles when the run goes beyond the last. Each bin then takes the time of two. So no time is
//! lost, only where in the bin it was.
//!
//! **Blocked.** When a task is switched away, `axtask` says whether it is blocked. It does not
//! report when the task wakes. So the recorder looks at each timer tick, before ArceOS wakes the
//! tasks that have slept enough. A task counts as blocked until the last tick that found it
//! blocked. For a sleeping task this is exact, because only ticks wake it. A task that another one
//! woke may have been blocked for up to a tick longer. If no tick came in between, it counts as
//! blocked until it got its CPU.
//!
//! As in the meter, one CPU at a time writes, with interrupts off, and the reader has waited for
//! the end of the task's work. So everything is `Relaxed`. Memory is allocated with the recorder,
//! never in a context switch.

use alloc::{boxed::Box, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::Timeline;

/// The number of bins: 4 KiB for each of a task's two lists. A long run ends in the second half of
/// them. The number is even, so that bins can be joined in pairs.
const BINS: usize = 512;

/// The times on the CPU and the blocked times of a task, in ticks of the hardware counter.
pub(crate) struct Bins {
    start_ticks: u64,
    width_ticks: AtomicU64,
    run_ticks: Box<[AtomicU64]>,
    blocked_ticks: Box<[AtomicU64]>,
    /// When the task left its CPU blocked; 0 if it is not.
    blocked_since: AtomicU64,
    /// The last tick that found it blocked; 0 is none.
    seen_blocked: AtomicU64,
    is_closed: AtomicBool,
}

impl Bins {
    /// Makes bins from `start_ticks` on. Each is `bin_ticks` wide at first, which is not 0.
    pub(crate) fn new(start_ticks: u64, bin_ticks: u64) -> Self {
        assert_ne!(bin_ticks, 0, "the width of a bin");
        Self {
            start_ticks,
            width_ticks: AtomicU64::new(bin_ticks),
            run_ticks: (0..BINS).map(|_| AtomicU64::new(0)).collect(),
            blocked_ticks: (0..BINS).map(|_| AtomicU64::new(0)).collect(),
            blocked_since: AtomicU64::new(0),
            seen_blocked: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Empties all bins, for an account that starts anew.
    pub(crate) fn clear(&self) {
        let bins = self.run_ticks.iter().chain(&self.blocked_ticks);
        bins.for_each(|bin| bin.store(0, Relaxed));
    }

    /// Adds a stay on the CPU, which did not begin before the start.
    pub(crate) fn stay(&self, entered: u64, left: u64) {
        if !self.is_closed.load(Relaxed) {
            self.keep(&self.run_ticks, entered, left);
        }
    }

    /// Notes that the task has left its CPU, blocked or not.
    pub(crate) fn left(&self, now: u64, is_blocked: impl FnOnce() -> bool) {
        if !self.is_closed.load(Relaxed) && is_blocked() {
            self.blocked_since.store(now, Relaxed);
            self.seen_blocked.store(0, Relaxed);
        }
    }

    /// Notes at a timer tick whether the task is blocked.
    pub(crate) fn ticked(&self, now: u64, is_blocked: impl FnOnce() -> bool) {
        if self.blocked_since.load(Relaxed) != 0 && is_blocked() {
            self.seen_blocked.store(now, Relaxed);
        }
    }

    /// Notes that the task has got a CPU, and adds the time for which it was blocked.
    pub(crate) fn entered(&self, now: u64) {
        let since = self.blocked_since.swap(0, Relaxed);
        if since != 0 {
            let until = match self.seen_blocked.load(Relaxed) {
                0 => now,
                seen => seen,
            };
            self.keep(&self.blocked_ticks, since, until);
        }
    }

    /// Adds the time from `entered` to `left` to `bins`.
    fn keep(&self, bins: &[AtomicU64], entered: u64, left: u64) {
        let mut from = entered.saturating_sub(self.start_ticks);
        let end = left.saturating_sub(self.start_ticks);
        while end > self.width_ticks.load(Relaxed).saturating_mul(BINS as u64) {
            self.coarsen();
        }
        let width = self.width_ticks.load(Relaxed);
        while from < end {
            let bin = from / width;
            let to = ((bin + 1).saturating_mul(width)).min(end);
            add(&bins[bin as usize], to - from);
            from = to;
        }
    }

    /// Keeps nothing from now on: the work is done. No other figure includes what the task does on
    /// its way out.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }

    /// Returns what was kept, in nanoseconds. Running sums are converted and not single bins, so
    /// what rounding takes from one bin it gives to the next.
    pub(crate) fn timeline(&self, to_ns: impl Fn(u64) -> u64) -> Option<Timeline> {
        let in_ns = |bins: &[AtomicU64]| {
            let mut ticks = 0;
            let each = bins.iter().map(|bin| {
                let before = to_ns(ticks);
                ticks += bin.load(Relaxed);
                to_ns(ticks) - before
            });
            let mut each: Vec<u64> = each.collect();
            let used = each.iter().rposition(|&ns| ns > 0).map_or(0, |i| i + 1);
            each.truncate(used);
            each
        };
        Some(Timeline {
            bin_ns: to_ns(self.width_ticks.load(Relaxed)),
            run_ns: in_ns(&self.run_ticks),
            blocked_ns: in_ns(&self.blocked_ticks),
        })
    }

    /// Joins the bins in pairs, in the first half.
    fn coarsen(&self) {
        for bins in [&self.run_ticks, &self.blocked_ticks] {
            for i in 0..BINS / 2 {
                let [a, b] = [2 * i, 2 * i + 1].map(|from| bins[from].swap(0, Relaxed));
                bins[i].store(a + b, Relaxed);
            }
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

/// Adds without a locked instruction, as in the meter.
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
    fn stays_after_the_end_or_before_a_restart_are_not_kept() {
        let bins = Bins::new(0, 10);
        bins.stay(0, 7);
        bins.clear();
        bins.stay(12, 15);
        bins.close();
        bins.stay(15, 18);
        assert_eq!(timeline(&bins).run_ns, [0, 3]);
    }

    #[test]
    fn sleeping_task_is_blocked_until_the_tick_that_wakes_it() {
        let bins = Bins::new(1_000, 10);
        bins.left(1_005, || true);
        bins.ticked(1_010, || true);
        bins.ticked(1_020, || true);
        // The tick at 1,020 has woken it, so it is ready at the next.
        bins.ticked(1_030, || false);
        bins.entered(1_037);
        assert_eq!(timeline(&bins).blocked_ns, [5, 10]);
    }

    #[test]
    fn task_woken_between_two_ticks_is_blocked_until_it_runs() {
        let bins = Bins::new(1_000, 10);
        bins.left(1_012, || true);
        bins.entered(1_017);
        bins.left(1_025, || false);
        bins.ticked(1_030, || panic!("it is not blocked"));
        bins.entered(1_031);
        bins.close();
        bins.left(1_040, || true);
        bins.entered(1_050);
        assert_eq!(timeline(&bins).blocked_ns, [0, 5]);
    }

    #[test]
    fn both_kinds_of_bins_are_as_wide() {
        let bins = Bins::new(0, 1);
        bins.left(3, || true);
        bins.entered(8);
        bins.stay(8, 2 * BINS as u64);
        let kept = timeline(&bins);
        assert_eq!((kept.bin_ns, &kept.blocked_ns[..]), (2, &[0, 1, 2, 2][..]));
        assert_eq!(kept.run_ns.iter().sum::<u64>(), 2 * BINS as u64 - 8);
    }

    proptest! {
        /// Compares the bins with a list of all ticks on the CPU, in any unit of time.
        #[test]
        fn bins_are_the_stays_sorted_by_time(
            pieces in prop::collection::vec((0u64..900, prop_oneof![1 => Just(0), 9 => 0u64..900]), 0..40),
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
            // An empty stay at the end widens the bins like any other.
            prop_assert!(doublings == 1 || now > kept.bin_ns / 2 * BINS as u64, "no wider than needed");

            let converted = bins.timeline(to_ns).expect("it is kept");
            prop_assert_eq!(converted.run_ns.iter().sum::<u64>(), to_ns(on_cpu.len() as u64));
        }
    }
}
