//! The order within a class (rules 5, 6 and 8).

use alloc::collections::BinaryHeap;
use core::ops::Range;

use super::weight::Weight;
use pbg_profile::StoredTask;
use sched_core::units::Counts;

/// Times before tasks that differ by at most one part in this number are equal (rule 5).
///
/// Equal tasks are hardly ever measured as equal. One more timer interrupt or a cold cache
/// would make tasks change places from one profile to the next. The number is 64 because
/// that costs almost nothing where the difference was meant. Take n tasks of s to s + s/64
/// in any order. All their pairs together differ by at most n²/4 × s/64, and the least sum
/// of turnarounds is above n²/2 × s. So the average turnaround is less than 1/128 above
/// the least.
pub const TIE_FRACTION: u64 = 64;

/// A task on its way to its rank.
pub struct Candidate {
    /// Its priority; [`NO_PRIORITY`] without one (rule 2).
    pub class: u16,
    /// Its group, by the tasks that wait for each other (rule 3).
    pub group: u16,
    /// Its place among the profile's tasks, which are in the order of arrival.
    pub place: u16,
    pub sort_key: Counts,
    pub weight: Weight,
    pub steps: Range<u32>,
    /// The time by which its CPU time must be over, counted from the start of the plan. It is
    /// the deadline less the most time that the task was blocked, or [`NO_DUE`].
    pub due: u64,
    pub late: bool,
    /// It hands data over to another task (rule 10).
    pub is_stage: bool,
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

/// The length and the arrival of a task, and its place among the candidates of its class. The
/// largest is the longest task and, of equally long ones, the last to arrive.
pub type Longest = (Counts, u32, u32);

/// Returns the user's deadline, if there is one that can be missed.
pub fn deadline(task: &StoredTask) -> Option<Counts> {
    task.deadline.filter(|deadline| deadline.0 != NO_DUE)
}

/// Returns the most CPU time of a task, which is its length where promises are made.
pub fn most(task: &StoredTask) -> Counts {
    Counts(task.figures.run.most)
}

/// Cuts a class that is sorted by `sort_key` into groups of equal tasks, and sorts each group
/// by arrival (rule 5).
///
/// A group reaches from the shortest task that is left to the longest that counts as equal
/// to it. Equality of pairs would not do: a and b could be equal, and b and c, but not a and c.
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

/// Takes the due time from the fewest tasks possible, so that all the others can be in time
/// (rule 8). The class begins at `start` and is left sorted by due time. `longest` is passed only
/// for its memory.
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
            break; // the tasks after it have none either
        }
        let most = most(&stored[place as usize]);
        end += most.0 as u128;
        longest.push((most, place.into(), i as u32)); // has room for every task of the profile
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

/// Puts a class in the order of rule 6, from the end. The class begins at `start` and is sorted
/// by due time, and some order of it has all tasks in time.
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
        // The earlier the end, the more tasks may be last.
        while let Some(task) = class[..unseen].last()
            && (task.due == NO_DUE || task.due as u128 >= end)
        {
            unseen -= 1;
            longest.push((length(task), task.place.into(), unseen as u32));
        }
        let (most, _, last) = (longest.pop()).expect("some order has every task in time");
        class[last as usize].rank = rank as u32;
        end -= most.0 as u128;
    }
    class.sort_unstable_by_key(|task| task.rank);
}
