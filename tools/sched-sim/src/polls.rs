//! Tasks that wait by polling: they look at something, yield or sleep, and look again.
//!
//! A record has no polls, only yields and sleeps. The number of a task's looks depends on the order
//! in which the others ran. So one run tells nothing, and several runs in different orders do:
//!
//! 1. A task polls by yields if their number differs by more than a tenth of the most between its
//!    runs.
//! 2. A task polls by sleeps if it yields as often in each run, blocks for the timer alone, and the
//!    number of these waits differs in this way.
//! 3. A look takes less than 0.1 ms. This tells a look from work that depends on the order.
//! 4. A poller waits for the end of another task that is no poller. It is the last of those that
//!    ended before the poller in each run.
//!
//! Rule 4 is a guess: the task may have set its flag earlier than at its end. A poller with work
//! left after its last look ends later than a task that ended meanwhile.

use axsched_ext::{
    pbg::stored::{Ended, Figure, StoredProfile, StoredTask, Waker},
    units::Counts,
};

/// The looks of a task that polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// The end of a run interval with a look: [`Ended::Yield`] or [`Ended::Block`].
    pub by: Ended,
    /// The time of a look on the CPU, with that of the switch.
    pub look: Counts,
    /// The number of such run intervals in the run that had the fewest. They count as work.
    pub least: u64,
}

/// The most time of a look is a second over this number.
const LOOKS_PER_SECOND: u64 = 10_000;

/// Returns how a task polls, if its runs show that it does (rules 1 to 3). The counter's frequency is
/// in Hz.
pub fn polling(task: &StoredTask, frequency_hz: u64) -> Option<Polling> {
    let figures = &task.figures;
    let differs = |figure: Figure| figure.spread() > figure.most / 10;
    let mut blocks = task.phases.list.iter();
    let (by, figure) = if differs(figures.yields) {
        (Ended::Yield, figures.yields)
    } else if figures.yields.spread() == 0
        && differs(figures.blocks)
        && blocks.all(|phase| phase.ended != Ended::Block || phase.woken_by == Waker::Timer)
    {
        (Ended::Block, figures.blocks)
    } else {
        return None;
    };
    let look = figures.run.spread() / figure.spread();
    (look < frequency_hz / LOOKS_PER_SECOND).then_some(Polling {
        by,
        look: Counts(look),
        least: figure.least,
    })
}

/// Returns the index of the task for whose end this task polls (rule 4); `None` if it does not poll,
/// or if the runs do not tell.
pub fn awaited(profile: &StoredProfile, poller: usize) -> Option<usize> {
    let polls = |task: &StoredTask| polling(task, profile.header.frequency_hz).is_some();
    let task = &profile.tasks[poller];
    if !polls(task) {
        return None;
    }
    let end = ended(task);
    let mut last: Option<(u64, usize)> = None;
    for (index, other) in profile.tasks.iter().enumerate() {
        let other_end = ended(other);
        let is_before = other.runs == task.runs
            && other_end.least <= end.least
            && other_end.total <= end.total
            && other_end.most <= end.most;
        if is_before && last.is_none_or(|(total, _)| total < other_end.total) && !polls(other) {
            last = Some((other_end.total, index));
        }
    }
    last.map(|(_, index)| index)
}

/// Returns the time from the first spawn to the end of a task. The sum over its runs is exact. Least
/// and most are those of the parts, which may be from different runs.
fn ended(task: &StoredTask) -> Figure {
    let figures = &task.figures;
    let parts = [task.spawned.at, figures.run, figures.ready, figures.blocked];
    let sum = |of: fn(Figure) -> u64| parts.into_iter().map(of).fold(0, u64::saturating_add);
    Figure {
        total: sum(|part| part.total),
        least: sum(|part| part.least),
        most: sum(|part| part.most),
    }
}

#[cfg(test)]
mod tests;
