//! The waker of a task, and the tasks that a task wakes.

use sched_core::units::Counts;

/// The source of the wake that ended a task's wait, as far as a scheduler can see it. A scheduler
/// sees when a task is woken, and which task runs at that time.
///
/// Two cases are hidden. A task that finds what it needs does not block, so no wake is recorded. A
/// device that interrupts a task is taken for that task, and one that interrupts an idle CPU for
/// the timer. A timer that wakes a task between two ticks is taken for the task that it interrupts. If
/// it preempts that task, that task does not name the woken one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// The waker is not known, or was not the same each time.
    #[default]
    Unknown,
    /// The timer, after a sleep or at the end of a timeout.
    Timer,
    /// A task that does not belong to the program.
    Outside,
    /// The root task of the program.
    Root,
    /// The task of the profile with this index.
    Task(u16),
}

/// The first number of a [`Waker`] that is a task.
const FIRST_TASK: u64 = 4;

impl Waker {
    /// Returns the number of the waker in a profile.
    pub const fn number(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Timer => 1,
            Self::Outside => 2,
            Self::Root => 3,
            Self::Task(index) => FIRST_TASK + index as u64,
        }
    }

    /// Returns the waker with this number, if there is one.
    pub const fn of_number(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Unknown,
            1 => Self::Timer,
            2 => Self::Outside,
            3 => Self::Root,
            task if task - FIRST_TASK <= u16::MAX as u64 => Self::Task((task - FIRST_TASK) as u16),
            _ => return None,
        })
    }

    /// Returns this waker if the other is the same, and otherwise [`Waker::Unknown`].
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }

    /// Returns this waker with another number if it is a task. A task without a number becomes
    /// unknown.
    #[must_use]
    pub fn renumbered(self, number: impl Fn(u16) -> Option<u16>) -> Self {
        match self {
            Self::Task(index) => number(index).map_or(Self::Unknown, Self::Task),
            other => other,
        }
    }
}

/// The wakes of one task by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// The woken task, which is the root or a task of the profile. It is [`Waker::Unknown`] if more
    /// than two tasks were woken, or if a wake may have been an interrupt's.
    pub whom: Waker,
    /// The number of wakes.
    pub count: u64,
    /// The time from the start of the run interval to each wake, summed over the wakes, in counts.
    pub after: Counts,
}

/// The tasks that a task has woken. Up to two are told apart, and of more only the sum is kept.
///
/// Two suffice for a task in the middle of a pipeline, which wakes the tasks before and behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes([Woken; 2]);

impl Wakes {
    /// No task was woken.
    pub const NONE: Self = {
        const NOBODY: Woken = Woken {
            whom: Waker::Unknown,
            count: 0,
            after: Counts::ZERO,
        };
        Self([NOBODY; 2])
    };

    /// Returns the wakes of these tasks, each of which was woken at least once. More than two tasks
    /// become one sum.
    pub fn of(woken: impl IntoIterator<Item = Woken>) -> Self {
        woken.into_iter().fold(Self::NONE, Self::and)
    }

    /// Returns the woken tasks, in the order of their numbers in a profile.
    pub fn iter(&self) -> impl Iterator<Item = &Woken> {
        self.0.iter().filter(|woken| woken.count > 0)
    }

    /// Splits the wakes in time: returns the first `first` parts in `of`, and the rest.
    pub fn split(self, first: u64, of: u64) -> [Self; 2] {
        let share = |whole: u64| {
            let part = u128::from(whole) * u128::from(first) / u128::from(of.max(1));
            part as u64
        };
        let earlier = self.0.map(|woken| match share(woken.count) {
            0 => Woken::default(),
            count => Woken {
                count,
                after: Counts(share(woken.after.0)),
                ..woken
            },
        });
        let rest = |i: usize| {
            let (all, part) = (self.0[i], earlier[i]);
            match all.count - part.count {
                0 => Woken::default(),
                count => Woken {
                    count,
                    after: all.after - part.after,
                    ..all
                },
            }
        };
        [
            Self(earlier).in_order(),
            Self([rest(0), rest(1)]).in_order(),
        ]
    }

    /// Returns the wakes of both.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        other.iter().fold(self, |sum, woken| sum.and(*woken))
    }

    /// Adds the wakes of one task.
    fn and(mut self, other: Woken) -> Self {
        let add = |sum: &mut Woken| {
            sum.count = sum.count.saturating_add(other.count);
            sum.after = sum.after.saturating_add(other.after);
        };
        let [one, two] = &mut self.0;
        let are_named =
            other.whom != Waker::Unknown && (one.count == 0 || one.whom != Waker::Unknown);
        match () {
            () if one.count == 0 => *one = other,
            () if are_named && one.whom == other.whom => add(one),
            () if are_named && two.count == 0 => *two = other,
            () if are_named && two.whom == other.whom => add(two),
            // There are more than two tasks, or one is unknown. Only the sum is kept.
            () => {
                add(one);
                one.count = one.count.saturating_add(two.count);
                one.after = one.after.saturating_add(two.after);
                one.whom = Waker::Unknown;
                *two = Woken::default();
            }
        }
        self.in_order()
    }

    /// Sorts the tasks by their numbers, so that equal wakes are equal values.
    fn in_order(mut self) -> Self {
        let [one, two] = &mut self.0;
        let is_out_of_order = match (one.count, two.count) {
            (_, 0) => false,
            (0, _) => true,
            _ => one.whom.number() > two.whom.number(),
        };
        if is_out_of_order {
            core::mem::swap(one, two);
        }
        self
    }

    /// Returns these wakes with another number for each task. Tasks without a number become
    /// unknown.
    #[must_use]
    pub fn renumbered(self, number: impl Fn(u16) -> Option<u16>) -> Self {
        self.iter().fold(Self::default(), |sum, woken| {
            let whom = woken.whom.renumbered(&number);
            sum.and(Woken { whom, ..*woken })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::{Ended, StoredPhase};

    fn woken(task: u16, count: u64, after: u64) -> Woken {
        Woken {
            whom: Waker::Task(task),
            count,
            after: Counts(after),
        }
    }

    /// Counts and times are rounded down in the first part, and the second has the rest.
    #[test]
    fn wakes_are_split_with_their_times() {
        let wakes = Wakes::of([woken(2, 4, 10), woken(5, 1, 7)]);
        let parts = [
            Wakes::of([woken(2, 1, 2)]),
            Wakes::of([woken(2, 3, 8), woken(5, 1, 7)]),
        ];
        assert_eq!(wakes.split(1, 4), parts);
    }

    #[test]
    fn phase_names_its_wakers_and_the_tasks_that_it_woke_by_their_new_numbers() {
        let named = |task: u16| StoredPhase {
            woken_by: Waker::Task(task),
            wakes: Wakes::of([woken(task + 1, 3, 30)]),
            ..StoredPhase::new(Ended::Block, 3, Counts(100), Counts(50))
        };
        assert_eq!(named(1).renumbered(|task| Some(task + 10)), named(11));
    }
}
