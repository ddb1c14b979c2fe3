//! The watch over the whole replay: whether it is behind the measured run (rule 11).
//!
//! Each tick looks at [`LOOKS_A_TICK`] tasks of the plan. When a round has seen all, the sum of
//! their lateness is compared with the bound of rule 11.

use core::mem::take;

use super::entry::Entry;
use crate::status::{BEHIND_FRACTION, Divergence};
use crate::task::Role;
use sched_core::units::Counts;

/// The number of tasks that a tick looks at for rule 11, so that a large plan costs no more.
const LOOKS_A_TICK: usize = 64;

/// The consequence for a plan that is behind the measured run (rule 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnSlowReplay {
    /// Drop it, and go on with round robin.
    #[default]
    DropPlan,
    /// Keep it, and say in the status that it is behind. Rule 10 may still drop it.
    KeepPlan,
}

/// A round over all tasks, some of them at each tick.
pub struct Watch {
    pub on_slow_replay: OnSlowReplay,
    found_behind: bool,
    /// The rank at which the round goes on.
    next: u32,
    /// The sum of the lateness of the tasks before that rank, and of the time that they have used
    /// beyond their records.
    lateness: i128,
    surplus: Counts,
    /// The largest lateness, and its rank.
    most_late: (i128, u32),
    /// The time that unknown tasks have used.
    unknown: Counts,
    /// The sum of lateness that rule 11 allows, without the tick for each task.
    allowed: Counts,
    /// The time of the last tick, and the shortest time between two ticks.
    ticked: Option<Counts>,
    tick: Counts,
}

impl Watch {
    /// Creates a watch over tasks with this measured turnaround in all.
    pub const fn new(on_slow_replay: OnSlowReplay, measured: Counts) -> Self {
        Self {
            on_slow_replay,
            found_behind: false,
            next: 0,
            lateness: 0,
            surplus: Counts::ZERO,
            most_late: (0, 0),
            unknown: Counts::ZERO,
            allowed: Counts(measured.0 / BEHIND_FRACTION),
            ticked: None,
            tick: Counts(u64::MAX),
        }
    }

    /// Charges `interval` to the tasks that the plan does not know.
    #[inline]
    pub fn charge_unknown(&mut self, interval: Counts) {
        self.unknown += interval;
    }

    /// Looks at the next tasks at a tick, which hits a task of role `current` that has run for
    /// `interval` since it was charged last. Returns the divergence of the task that is late by the
    /// most, if this is the first tick that finds the replay behind.
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
            if entry.is_spawned() {
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
        // Work that the measured run did not have would have made all its tasks late, too.
        let mut new = take(&mut self.surplus).saturating_add(self.unknown);
        if current == Role::UNKNOWN {
            new += interval;
        }
        // A sleep ends at a tick in any order of tasks, so each task may be a tick late.
        let each = new.saturating_add(self.tick);
        let excused = each.saturating_mul(entries.len() as u64);
        if lateness <= i128::from(self.allowed.0) + i128::from(excused.0) {
            return None;
        }
        self.found_behind = true;
        Some(entries[most_late as usize].divergence_as_most_late(now))
    }
}
