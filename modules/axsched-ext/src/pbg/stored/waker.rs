//! Who makes a task ready again.

/// What ended a task's wait, as far as a scheduler can see it: it sees when a task is woken, and
/// who has the CPU then.
///
/// A task that would have waited, had what it waits for not been there already, does not
/// appear anywhere: nobody woke it. And a device that interrupts a task is taken for that task,
/// one that interrupts an idle CPU for the timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waker {
    /// Not said, or not the same each time.
    #[default]
    Unknown,
    /// The timer: it slept, or its patience was over.
    Timer,
    /// A task that is none of the program's.
    Outside,
    /// The root.
    Root,
    /// The task of the profile with this index.
    Task(u16),
}

/// The first number of a [`Waker`] that is a task.
const FIRST_TASK: u64 = 4;

impl Waker {
    /// Its number in a profile.
    pub(in crate::pbg) const fn number(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Timer => 1,
            Self::Outside => 2,
            Self::Root => 3,
            Self::Task(index) => FIRST_TASK + index as u64,
        }
    }

    /// The one with this number, if there is one.
    pub(in crate::pbg) const fn of_number(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Unknown,
            1 => Self::Timer,
            2 => Self::Outside,
            3 => Self::Root,
            task if task - FIRST_TASK <= u16::MAX as u64 => Self::Task((task - FIRST_TASK) as u16),
            _ => return None,
        })
    }

    /// What is known if it was this one and that one.
    #[must_use]
    pub(in crate::pbg) fn merged(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }

    /// The same with another number for each task; a task that has none is not known.
    #[must_use]
    pub(in crate::pbg) fn renumbered(self, number: impl Fn(u16) -> Option<u16>) -> Self {
        match self {
            Self::Task(index) => number(index).map_or(Self::Unknown, Self::Task),
            other => other,
        }
    }
}

/// How often somebody has woken others, and whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// How often: tasks of the profile, and the root.
    pub count: u64,
    /// Whom: [`Waker::Unknown`] if it was not always the same or nobody, else [`Waker::Root`]
    /// or [`Waker::Task`].
    pub whom: Waker,
}

impl Wakes {
    /// Both together.
    #[must_use]
    pub(in crate::pbg) fn merged(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            whom: match (self.count, other.count) {
                (0, _) => other.whom,
                (_, 0) => self.whom,
                _ => self.whom.merged(other.whom),
            },
        }
    }
}
