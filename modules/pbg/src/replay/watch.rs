//! The watch over the replay as a whole (rule 11): whether it is behind what was measured.

use core::mem::take;

use super::entry::Entry;
use crate::status::{BEHIND_BEYOND, Divergence};
use crate::task::Role;
use sched_core::units::Counts;

/// The tasks that a tick looks at for rule 11, so that it takes no longer in a large plan.
const LOOKS_A_TICK: usize = 64;

/// What becomes of a plan that is behind the measured run (rule 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behind {
    /// It is dropped, and the fallback policy goes on.
    #[default]
    GiveUp,
    /// It is not dropped for that, and the status says that it is behind. Rule 10 may
    /// still drop it.
    Keep,
}

/// A round over all tasks, some of them at each tick.
pub struct Watch {
    pub when_behind: Behind,
    found_behind: bool,
    /// The rank that the round has come to.
    next: u32,
    /// By how much the tasks before it are late together, and what they have used beyond
    /// their record.
    lateness: i128,
    surplus: Counts,
    /// By how much the one is late that is late by the most, and its rank.
    most_late: (i128, u32),
    /// What unknown tasks have used.
    unknown: Counts,
    /// By how much all may be late together, but for the ticks.
    allowed: Counts,
    /// When a tick came last, and the shortest time between two.
    ticked: Option<Counts>,
    tick: Counts,
}

impl Watch {
    /// A watch over tasks whose measured turnaround was `measured` together.
    pub const fn new(when_behind: Behind, measured: Counts) -> Self {
        Self {
            when_behind,
            found_behind: false,
            next: 0,
            lateness: 0,
            surplus: Counts::ZERO,
            most_late: (0, 0),
            unknown: Counts::ZERO,
            allowed: Counts(measured.0 / BEHIND_BEYOND),
            ticked: None,
            tick: Counts(u64::MAX),
        }
    }

    /// A task that is unknown to the plan has had the CPU for `interval`.
    #[inline]
    pub fn charge_unknown(&mut self, interval: Counts) {
        self.unknown += interval;
    }

    /// A tick hits the task whose role is `current`, which has run for `interval` since it was
    /// charged last. Returns how the task diverges that is late by the most, if this is the
    /// first tick that finds the replay behind.
    #[inline]
    pub fn tick(
        &mut self,
        entries: &[Entry],
        current: Role,
        interval: Counts,
        now: Counts,
    ) -> Option<Divergence> {
        if self.found_behind {
            return None;
        }
        if let Some(last) = self.ticked.replace(now)
            && now > last
        {
            self.tick = self.tick.min(now - last);
        }
        let first = self.next as usize;
        let end = entries.len().min(first + LOOKS_A_TICK);
        for (rank, entry) in (first as u32..).zip(&entries[first..end]) {
            if entry.has_come() {
                let interval = (current == Role::of(rank)).then_some(interval);
                let lateness = entry.lateness(now, interval);
                self.lateness += lateness;
                self.surplus += entry.surplus(interval);
                self.most_late = self.most_late.max((lateness, rank));
            }
        }
        self.next = end as u32;
        if end < entries.len() {
            return None;
        }
        self.next = 0;
        let (lateness, (_, most_late)) = (take(&mut self.lateness), take(&mut self.most_late));
        // What the measured run did not have would have made all that are there late, too.
        let mut new = take(&mut self.surplus).saturating_add(self.unknown);
        if current == Role::UNKNOWN {
            new += interval;
        }
        // And a sleep lasts until a tick, in whatever order they run.
        let each = new.saturating_add(self.tick);
        let excused = each.saturating_mul(entries.len() as u64);
        if lateness <= i128::from(self.allowed.0) + i128::from(excused.0) {
            return None;
        }
        self.found_behind = true;
        Some(entries[most_late as usize].diverges_as_most_late(now))
    }
}
