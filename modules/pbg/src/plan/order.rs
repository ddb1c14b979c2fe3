//! The order within a class (rules 5, 6 and 8).

use alloc::collections::BinaryHeap;
use core::ops::Range;

use super::weight::Weight;
use pbg_profile::StoredTask;
use sched_core::units::Counts;

/// First bursts that differ by at most one in so many are equal (rule 5).
///
/// What is meant to be equal is hardly ever measured as equal: a timer interrupt
/// more or a cold cache, and tasks would change places from one profile to the
/// next. 64, as that costs next to nothing where the difference was meant: n tasks
/// of s to s + s/64, in any order, have an average turnaround less than 1/128 above
/// the least, as all their pairs together differ by at most n²/4 × s/64 and the
/// least sum of turnarounds is above n²/2 × s.
pub const TIE_FRACTION: u64 = 64;

/// A task on its way to its rank.
pub struct Candidate {
    /// Its priority; [`NO_PRIORITY`] without one (rule 2).
    pub class: u16,
    /// Its place among the profile's tasks: its arrival.
    pub place: u32,
    pub sort_key: Counts,
    pub weight: Weight,
    pub steps: Range<u32>,
    /// When its CPU time must be over, counted from the start of the plan, or
    /// [`NO_DUE`]: its deadline less the most that it was blocked.
    pub due: u64,
    pub late: bool,
    /// Its place in a class with deadlines.
    pub rank: u32,
}

pub const NO_PRIORITY: u16 = u8::MAX as u16 + 1;
pub const NO_DUE: u64 = u64::MAX;

#[cfg(target_pointer_width = "64")]
const _: () = {
    use core::mem::size_of;
    assert!(size_of::<Candidate>() == 40 && size_of::<Longest>() == 16);
};

/// A task by its length and arrival, and its place among the candidates of its
/// class. The largest is the longest, and of those the last to arrive.
pub type Longest = (Counts, u32, u32);

/// The user's deadline, if there is one that can be missed.
pub fn deadline(task: &StoredTask) -> Option<Counts> {
    task.deadline.filter(|deadline| deadline.0 != NO_DUE)
}

/// The most CPU time of a task: how long it is where promises are made.
pub fn most(task: &StoredTask) -> Counts {
    Counts(task.figures.run.most)
}

/// Rule 5, for a class sorted by `sort_key`: cuts it into groups, each from the
/// shortest task that is left to the longest that counts as equal to it. So
/// "equal" is a matter of the group, and not of pairs, which would have a and b
/// equal and b and c, but not a and c.
pub fn equal_by_arrival(class: &mut [Candidate]) {
    let mut rest = class;
    while let Some(shortest) = rest.first().map(|task| task.sort_key) {
        let allowed = shortest.saturating_add(Counts(shortest.0 / TIE_FRACTION));
        let equal = rest.partition_point(|task| task.sort_key <= allowed);
        let (group, longer) = rest.split_at_mut(equal);
        for task in group.iter_mut() {
            task.sort_key = shortest;
        }
        group.sort_unstable_by_key(|task| task.place);
        rest = longer;
    }
}

/// Rule 8, for a class that begins at `start`: as few tasks as can be lose their
/// due time, so that the others can all be in time. Leaves the class sorted by due
/// time. `longest` is there for its memory.
pub fn give_up_late(
    class: &mut [Candidate],
    stored: &[StoredTask],
    start: u128,
    longest: &mut BinaryHeap<Longest>,
) {
    class.sort_unstable_by_key(|task| (task.due, task.place));
    longest.clear();
    let mut end = start;
    for i in 0..class.len() {
        let Candidate { due, place, .. } = class[i];
        if due == NO_DUE {
            break; // and so have those after it
        }
        let most = most(&stored[place as usize]);
        end += most.0 as u128;
        longest.push((most, place, i as u32)); // has room for every task of the profile
        if end > due as u128
            && let Some((most, _, given_up)) = longest.pop()
        {
            end -= most.0 as u128;
            class[given_up as usize].late = true;
        }
    }
    for task in class.iter_mut().filter(|task| task.late) {
        task.due = NO_DUE;
    }
    class.sort_unstable_by_key(|task| (task.due, task.place));
}

/// Rule 6, for a class that begins at `start` and is sorted by due time, of which
/// some order has all in time: puts the class in order, from the end.
pub fn longest_last(
    class: &mut [Candidate],
    stored: &[StoredTask],
    start: u128,
    longest: &mut BinaryHeap<Longest>,
) {
    longest.clear();
    let length = |task: &Candidate| most(&stored[task.place as usize]);
    let lengths = class.iter().map(|task| length(task).0 as u128);
    let mut end = start + lengths.sum::<u128>();
    let mut unseen = class.len();
    for rank in (0..class.len()).rev() {
        // The earlier the end, the more may be there.
        while let Some(task) = class[..unseen].last()
            && (task.due == NO_DUE || task.due as u128 >= end)
        {
            unseen -= 1;
            longest.push((length(task), task.place, unseen as u32));
        }
        let (most, _, last) = (longest.pop()).expect("some order has every task in time");
        class[last as usize].rank = rank as u32;
        end -= most.0 as u128;
    }
    class.sort_unstable_by_key(|task| task.rank);
}
