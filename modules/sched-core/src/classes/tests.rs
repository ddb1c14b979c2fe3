//! Tests of the classes, mostly against an exactly sorted list.

use super::*;
use crate::steps;
use crate::task::InitialState;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use proptest::prelude::*;
use std::vec::Vec;

struct State(AtomicU64);

impl InitialState for State {
    const INITIAL: Self = Self(AtomicU64::new(0));
}

impl Due for State {
    fn due(&self) -> Key {
        Key(self.0.load(Relaxed))
    }
}

type Entry = Arc<Task<usize, State>>;

fn task(id: usize, due: Key) -> Entry {
    let task = Arc::new(Task::<_, State>::new(id));
    task.policy_state().0.store(due.0, Relaxed);
    task
}

/// Shortest and longest waits of all classes, and what is between.
fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..2 * SHORTEST,
        (0..40u32, 0..1000u64).prop_map(|(shift, by)| ((1000 + by) << shift >> 10).min(LONGEST)),
        (0..CLASSES as u32).prop_map(|index| Class(index).shortest_and_width().0),
        (0..CLASSES as u32).prop_map(|index| {
            let (shortest, width) = Class(index).shortest_and_width();
            shortest + width - 1
        }),
    ]
}

#[test]
fn classes_follow_one_another_and_each_is_half_as_wide_as_its_shortest_wait() {
    let mut end = 0;
    for index in 0..CLASSES as u32 {
        let (shortest, width) = Class(index).shortest_and_width();
        assert_eq!(shortest, end, "class {index}");
        assert!(width <= (shortest / 2).max(SHORTEST));
        assert_eq!(Class::of(shortest), Class(index));
        assert_eq!(Class::of(shortest + width - 1), Class(index));
        end = shortest + width;
    }
    assert_eq!(end, LONGEST + 1);
}

/// An affinity may change while a task is handed over.
#[test]
fn found_task_is_taken_even_if_it_is_no_longer_wanted() {
    let mut queue = Classes::new();
    queue.push(task(7, Key(10)), Class::of(10));
    let is_given = core::cell::Cell::new(false);
    let found = queue.remove_first(|_| !is_given.get(), || !is_given.replace(true));
    assert_eq!(*found.unwrap().inner(), 7);
    assert_eq!(queue.assert_valid(), 0);
}

#[derive(Clone, Debug)]
enum Op {
    Push(u64),
    Pop,
    Remove(usize),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => wait().prop_map(Op::Push),
        3 => Just(Op::Pop),
        1 => (0..100usize).prop_map(Op::Remove),
        2 => wait().prop_map(Op::Pass),
    ]
}

proptest! {
    /// A popped task is due later than another by less than the width of the other's class. Tasks
    /// of one class, and tasks that are due at once, leave in order of arrival.
    #[test]
    fn a_popped_task_is_due_later_than_another_by_less_than_the_tolerance(
        start in prop_oneof![Just(0), Just(u64::MAX - LONGEST), any::<u64>()],
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let mut now = Key(start);
        let mut classes = Classes::new();
        // Sorted by due time, those that are due at once by arrival.
        let mut sorted: Vec<(Key, Class, Entry)> = Vec::new();
        for (id, op) in ops.into_iter().enumerate() {
            match op {
                Op::Push(wait) => {
                    let (due, class) = (now.later(wait), Class::of(wait));
                    let new = task(id, due);
                    classes.push(new.clone(), class);
                    let at = sorted.partition_point(|(other, ..)| *other <= due);
                    sorted.insert(at, (due, class, new));
                }
                Op::Pop => {
                    let first = classes.first_due();
                    let Some(popped) = classes.pop() else {
                        prop_assert!(sorted.is_empty() && first.is_none());
                        continue;
                    };
                    let at = sorted.iter().position(|(.., task)| Arc::ptr_eq(task, &popped));
                    let (due, class, _) = sorted.remove(at.unwrap());
                    prop_assert_eq!(first, Some(due));
                    for (other, its, task) in &sorted {
                        let (_, width) = its.shortest_and_width();
                        prop_assert!(due.after(*other) < width as i64);
                        let came_first = popped.inner() < task.inner();
                        prop_assert!(*its != class || came_first, "first come first served");
                        // The first task of a class is in exact order.
                        let is_first = !sorted
                            .iter()
                            .any(|(_, class, before)| class == its && before.inner() < task.inner());
                        if is_first && *its != class {
                            prop_assert!(due < *other || due == *other && came_first);
                        }
                    }
                }
                Op::Remove(which) => if !sorted.is_empty() {
                    let (.., task) = sorted.remove(which % sorted.len());
                    prop_assert!(classes.remove(&task).is_some());
                    prop_assert!(classes.remove(&task).is_none());
                },
                Op::Pass(time) => {
                    // No key may be half-way round the line behind another.
                    let all_near = sorted.iter().all(|(due, ..)| now.later(time).after(*due) < 1 << 60);
                    if all_near {
                        now = now.later(time);
                    }
                }
            }
            prop_assert_eq!(classes.assert_valid(), sorted.len());
        }
    }
}

#[test]
fn the_tolerance_is_reached_and_no_more() {
    let (shortest, width) = Class::of(10_000).shortest_and_width();
    let mut classes = Classes::new();
    classes.push(task(1, Key(shortest + width - 1)), Class::of(shortest));
    classes.push(task(2, Key(shortest)), Class::of(shortest));
    assert_eq!(classes.first_due(), Some(Key(shortest + width - 1)));
    assert_eq!(*classes.pop().unwrap().inner(), 1);
}

#[test]
fn among_tasks_due_at_once_the_first_to_come_is_removed_first() {
    let mut classes = Classes::new();
    let due = Key(10_000);
    classes.push(task(1, due), Class::of(10_000));
    classes.push(task(2, due), Class::FIRST);
    let order = [(); 2].map(|()| classes.remove_first(|_| true, || true));
    assert_eq!(order.map(|task| *task.unwrap().inner()), [1, 2]);
}

#[test]
fn no_call_takes_more_steps_than_documented_with_4096_tasks_in_all_classes() {
    let mut classes = Classes::new();
    let waits = || (0..CLASSES as u32).map(|index| Class(index).shortest_and_width().0);
    for (id, wait) in waits().cycle().take(4096).enumerate() {
        let task = task(id, Key(wait));
        let steps = steps::of(|| classes.push(task, Class::of(wait)));
        assert!(steps <= 3, "push: {steps}");
    }
    assert_eq!(steps::of(|| _ = classes.first_due()), CLASSES);
    while classes.assert_valid() > 0 {
        let steps = steps::of(|| _ = classes.pop());
        assert!(steps <= CLASSES + 2, "pop: {steps}");
    }
}
