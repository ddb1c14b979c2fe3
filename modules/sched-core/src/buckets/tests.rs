use super::*;
use crate::steps;
use proptest::prelude::*;

type Entry = Arc<KeyedTask<usize, ()>>;

fn insert(queue: &mut Buckets<usize, ()>, id: usize, key: u64, around: u64) {
    queue.insert(Arc::new(KeyedTask::new(id)), Key(key), Key(around));
}

/// The length of a tick, and the width that follows from it: a quarter of it, as vruntime.
const TICK: Counts = Counts(1 << 10);
const WIDTH: u64 = 1 << (10 - 2 + FRACTION_BITS);

fn fitted() -> Buckets<usize, ()> {
    let mut queue = Buckets::NEW;
    queue.fit(TICK);
    queue
}

#[derive(Clone, Debug)]
enum Step {
    /// Inserts a key at this distance from `around`, in eighths of a width.
    Insert(i64),
    Pop,
    Remove(usize),
    /// Moves `around` on by this distance, in eighths of a width.
    Move(u64),
    /// Fits the queue to a tick of this length, in eighths of the first one.
    Fit(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (-40..400_i64).prop_map(Step::Insert),
        1 => (-10_000..10_000_i64).prop_map(Step::Insert),
        5 => Just(Step::Pop),
        1 => (0..300_usize).prop_map(Step::Remove),
        1 => (0..600_u64).prop_map(Step::Move),
        1 => (1..64_u64).prop_map(Step::Fit),
    ]
}

proptest! {
    /// Compares the queue with a vector in order of arrival, with keys around a wrap of the line.
    #[test]
    fn two_tasks_leave_out_of_order_only_if_they_are_less_than_a_width_apart(
        steps in prop::collection::vec(step(), 0..400)
    ) {
        let (mut queue, mut model) = (fitted(), Vec::<Entry>::new());
        let mut around = Key(0).later((1000 * WIDTH).wrapping_neg());
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(at) => {
                    let key = around.later((at * (WIDTH / 8) as i64) as u64);
                    let task = Arc::new(KeyedTask::new(id));
                    model.push(task.clone());
                    queue.insert(task, key, around);
                }
                Step::Pop => {
                    let first = model.iter().map(|task| task.key()).min();
                    let (next, floor) = (queue.next_key(), queue.first_key());
                    let width = 1 << queue.shift;
                    let popped = queue.pop();
                    prop_assert_eq!(popped.is_some(), first.is_some());
                    prop_assert_eq!(popped.as_ref().map(|task| task.key()), next);
                    if let (Some(popped), Some(first), Some(floor)) = (popped, first, floor) {
                        prop_assert!((0..width).contains(&popped.key().after(first)));
                        prop_assert!((0..width).contains(&first.after(floor)));
                        let at = model.iter().position(|task| Arc::ptr_eq(task, &popped));
                        model.remove(at.expect("it was there"));
                    }
                }
                Step::Remove(which) => {
                    if let Some(task) = model.get(which).cloned() {
                        prop_assert!(queue.remove(&task).is_some());
                        prop_assert!(queue.remove(&task).is_none());
                        model.remove(which);
                    }
                }
                Step::Move(by) => around = around.later(by * (WIDTH / 8)),
                Step::Fit(tick) => queue.fit(Counts(TICK.0 / 8 * tick)),
            }
            queue.assert_valid();
            prop_assert_eq!(queue.is_empty(), model.is_empty());
            let (inside, outside) = queue.places();
            prop_assert_eq!(inside + outside, model.len());
        }
    }
}

#[test]
fn a_bucket_is_first_come_first_served() {
    let mut queue = fitted();
    let keys = [WIDTH - 1, WIDTH, 3, WIDTH + 7, 3, 0];
    for (id, key) in keys.into_iter().enumerate() {
        insert(&mut queue, id, key, 0);
    }
    let order: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
    let order: Vec<_> = order.iter().map(|task| *task.inner()).collect();
    assert_eq!(order, [0, 2, 4, 5, 1, 3]);
}

#[test]
fn the_window_slides_on_and_the_rest_waits_in_the_tree() {
    let mut queue = fitted();
    let far = 47 * WIDTH;
    for (key, around, places) in [
        (0, 0, (1, 0)),
        (far, 0, (2, 0)),
        (far + WIDTH, 0, (2, 1)), // beyond its end
        (17 * WIDTH, 0, (3, 1)),
        (far + WIDTH, WIDTH, (4, 1)),           // it slides by a bucket
        (far + 17 * WIDTH, 17 * WIDTH, (4, 2)), // not past the first, which is at 0
        (WIDTH.wrapping_neg(), 0, (4, 3)),      // it never goes back
    ] {
        insert(&mut queue, 0, key, around);
        queue.assert_valid();
        assert_eq!(queue.places(), places, "{}", key as i64 / WIDTH as i64);
    }
}

/// An affinity may change while a task is handed over.
#[test]
fn found_task_is_taken_even_if_it_is_no_longer_wanted() {
    for keys in [[5 * WIDTH, 7 * WIDTH], [400 * WIDTH, 5 * WIDTH]] {
        let mut queue = fitted();
        for (id, key) in keys.into_iter().enumerate() {
            insert(&mut queue, id, key, 0);
        }
        let is_given = core::cell::Cell::new(false);
        let is_first = |task: &KeyedTask<usize, ()>| !is_given.get() && *task.inner() == 0;
        let agrees = || !is_given.replace(true);
        let found = queue.remove_first(&is_first, &agrees).unwrap();
        assert_eq!(*found.inner(), 0);
        queue.assert_valid();
    }
}

#[test]
fn the_first_that_is_wanted_may_be_outside_the_window() {
    let mut queue = fitted();
    let keys = [
        5 * WIDTH,
        (40 * WIDTH).wrapping_neg(),
        200 * WIDTH,
        7 * WIDTH,
    ];
    for (id, key) in keys.into_iter().enumerate() {
        insert(&mut queue, id, key, 0);
    }
    assert_eq!(queue.places(), (2, 2));
    for wanted in 0..4 {
        let is_wanted = |task: &KeyedTask<usize, ()>| *task.inner() == wanted;
        assert!(queue.remove_first(&is_wanted, &|| false).is_none());
    }
    assert_eq!(queue.places(), (2, 2), "none is taken");
    let order: Vec<_> = core::iter::from_fn(|| queue.remove_first(&|_| true, &|| true))
        .map(|task| *task.inner())
        .collect();
    assert_eq!(order, [1, 0, 3, 2]);
}

#[test]
fn a_width_fits_the_tick_and_changes_when_the_ring_is_empty() {
    let mut queue = Buckets::NEW;
    insert(&mut queue, 0, 5, 0);
    assert_eq!(queue.places(), (0, 1), "no tick is known");
    queue.fit(TICK);
    insert(&mut queue, 1, 6, 0);
    assert_eq!((queue.places(), 1 << queue.shift), ((1, 1), WIDTH));
    queue.fit(Counts(TICK.0 * 4 / 3));
    insert(&mut queue, 2, 7, 0);
    assert_eq!(
        queue.places(),
        (2, 1),
        "a quarter or three sixteenths, it is all one"
    );
    queue.fit(Counts(TICK.0 * 16));
    insert(&mut queue, 3, 8, 0);
    assert_eq!(queue.places(), (2, 2), "closed");
    let order: Vec<_> = (0..3)
        .filter_map(|_| queue.pop())
        .map(|task| *task.inner())
        .collect();
    assert_eq!(order, [0, 1, 2], "by key, and 8 waits in the tree");
    insert(&mut queue, 4, 9, 0);
    assert_eq!((queue.places(), 1 << queue.shift), ((1, 1), 16 * WIDTH));
    for tick in 1..100_000 {
        let mut queue = Buckets::<usize, ()>::NEW;
        queue.fit(Counts(tick));
        insert(&mut queue, 0, 0, 0);
        let (width, tick) = (1_u64 << queue.shift, tick << FRACTION_BITS);
        assert!(tick < 8 * width && 2 * width <= tick, "{tick}: {width}");
        assert_eq!(queue.places(), (1, 0));
    }
}

/// With 4,096 tasks in any buckets a call takes a walk down the tree and a bucket. (Only `remove`
/// takes more, by contract, and `axtask` never removes a task.)
#[test]
fn no_call_takes_more_steps_than_a_walk_down_the_tree() {
    const FAR: u64 = 1 << 40;
    type At = fn(u64) -> (u64, u64);
    let arrangements: [(&str, usize, At); 6] = [
        ("all in one bucket", 4096, |_| (5, 0)),
        ("each in another bucket", 4096, |i| (i % 40 * WIDTH, 0)),
        ("all far ahead", 0, |i| (FAR + i * WIDTH, 0)),
        ("all far behind", 0, |i| (FAR.wrapping_neg() - i, 0)),
        ("all of one key, far ahead", 0, |_| (FAR, 0)),
        // It slides as far as the first task, which stays. The rest are beyond its end.
        ("a window that slides", 64, |i| (i * WIDTH, i * WIDTH)),
    ];
    for (name, inside, at) in arrangements {
        let (mut queue, mut most) = (fitted(), 0);
        let put = |queue: &mut Buckets<_, _>, i: u64| {
            let (key, around) = at(i);
            let task = Arc::new(KeyedTask::new(0));
            steps::of(|| queue.insert(task, Key(key), Key(around)))
        };
        for i in 0..4096 {
            most = put(&mut queue, i).max(most);
        }
        queue.assert_valid();
        assert_eq!(queue.places(), (inside, 4096 - inside), "{name}");
        // The length of a tick changes while the queue is full.
        most = steps::of(|| queue.fit(Counts(TICK.0 * 16))).max(most);
        most = put(&mut queue, 0).max(most);
        while !queue.is_empty() {
            let looks = steps::of(|| (queue.first_key(), queue.next_key()));
            assert_eq!(looks, 0, "{name}");
            most = steps::of(|| queue.pop()).max(most);
        }
        assert!(most <= steps::DEPTH + 1, "{name}: {most}");
        assert!(inside == 4096 || most > 10, "{name}: only {most}");
    }
    let mut queue = fitted();
    let tasks = [(); 4096].map(|()| Arc::new(KeyedTask::new(0)));
    for task in &tasks {
        queue.insert(task.clone(), Key(5), Key(0));
    }
    let linear = steps::of(|| queue.remove(&tasks[4095]));
    assert!(linear >= 4095, "the contract of `remove`: {linear}");
}
