use super::*;
use crate::clock::VirtualClock;

impl Accounted for Account {
    fn account(&self) -> &Account {
        self
    }
}

#[test]
fn an_interval_begins_where_the_last_one_ended() {
    let mut intervals = RunIntervals::new();
    let [a, b] = ["a", "b"].map(|name| Arc::new(Task::<_, Account>::new(name)));
    intervals.adopt(&a);
    intervals.adopt(&b);
    let mut had = Counts::ZERO;
    let pick = |intervals: &mut RunIntervals<_, _>, task| {
        VirtualClock::advance(3); // between a put and its pick
        intervals.begin(task, intervals.now::<VirtualClock>());
        VirtualClock::advance(10);
    };
    VirtualClock::set(100);
    pick(&mut intervals, &a);
    assert!(intervals.ran_here(&a, EnqueueReason::Yielded));
    had += intervals.end(&a, VirtualClock::now());
    intervals.let_go();
    pick(&mut intervals, &b);
    had += intervals.left(VirtualClock::now()).unwrap().1;
    pick(&mut intervals, &a);
    had += intervals.end(&a, VirtualClock::now());
    intervals.let_go();
    assert_eq!(had, VirtualClock::now() - Counts(103), "all but the start");
    intervals.begin_or_idle::<VirtualClock>(None);
    VirtualClock::advance(1000);
    intervals.arrived(&b, EnqueueReason::Woken, VirtualClock::now());
    pick(&mut intervals, &b);
    let (_, interval) = intervals.left(VirtualClock::now()).unwrap();
    assert_eq!(interval, Counts(10), "idle time belongs to no task");
}

/// MIGRATION: this queue lets go of its old handle when the task comes back.
#[test]
fn a_task_that_comes_back_before_the_pick_has_not_left() {
    let [mut here, mut there] = [RunIntervals::new(), RunIntervals::new()];
    let task = Arc::new(Task::<_, Account>::new("task"));
    here.adopt(&task);
    here.begin(&task, Counts(10));
    let arrived = there.arrived(&task, EnqueueReason::Woken, Counts(15));
    assert_eq!((arrived.ran, arrived.interval), (true, Counts(5)));
    there.removed(&task);
    here.arrived(&task, EnqueueReason::Woken, Counts(20));
    assert!(here.left(Counts(30)).is_none());
    here.begin(&task, Counts(30));
    assert_eq!(here.left(Counts(33)).unwrap().1, Counts(3));
}

#[test]
fn a_year_without_a_tick_counts_as_the_longest_charge() {
    let year_at_4_ghz = 4_000_000_000 * 86_400 * 366;
    for (since, now, counts) in [
        (5, 5 + LONGEST_CHARGE.0 - 1, LONGEST_CHARGE.0 - 1),
        (5, 5 + LONGEST_CHARGE.0, LONGEST_CHARGE.0),
        (5, 6 + LONGEST_CHARGE.0, LONGEST_CHARGE.0),
        (5, year_at_4_ghz, LONGEST_CHARGE.0),
        (u64::MAX, 1, 2),
        (5, 3, 0), // another CPU's counter is behind
    ] {
        assert_eq!(
            interval(since, Counts(now)),
            Counts(counts),
            "{since} {now}"
        );
    }
}

#[test]
fn a_yielder_is_set_aside_until_the_pick_and_no_other_task_is() {
    let mut intervals = RunIntervals::new();
    let task = Arc::new(Task::<_, Account>::new("a"));
    intervals.adopt(&task);
    intervals.begin(&task, Counts(100));
    assert_eq!(intervals.end(&task, Counts(110)), Counts(10));
    intervals.set_aside(&task);
    let (yielder, when) = intervals.take_yielder().unwrap();
    assert!(Arc::ptr_eq(&yielder, &task) && when == Counts(110));
    intervals.begin(&task, when);
    intervals.end(&task, Counts(120));
    intervals.let_go();
    assert!(intervals.take_yielder().is_none(), "it was preempted");
    intervals.set_aside_again(task.clone());
    let removed = intervals.remove_yielder(&task);
    assert!(removed.is_some() && intervals.take_yielder().is_none());
    drop((yielder, removed));
    assert_eq!(Arc::strong_count(&task), 1);
}

#[test]
#[should_panic(expected = "YIELDER")]
fn a_task_that_does_not_run_is_not_set_aside() {
    let mut intervals = RunIntervals::new();
    let [a, b] = ["a", "b"].map(|name| Arc::new(Task::<_, Account>::new(name)));
    intervals.adopt(&a);
    intervals.begin(&a, Counts(100));
    intervals.set_aside(&b);
}

fn learn(ticks: impl IntoIterator<Item = u64>) -> u64 {
    let mut length = TickLength::new();
    ticks.into_iter().for_each(|at| length.tick(Counts(at)));
    length.length().0
}

#[test]
fn a_tick_is_learned_from_two_and_idle_gaps_do_not_matter() {
    assert_eq!(learn([5]), 0);
    assert_eq!(learn([5, 105]), 100);
    assert_eq!(
        learn([0, 5000, 5100, 5200, 9200, 9300, 9400, 9500, 9600, 9700]),
        100
    );
}

#[test]
fn ticks_before_and_after_idling_are_not_a_ticks_length_apart() {
    let mut length = TickLength::new();
    for at in (0..100).map(|i| i * 5000) {
        length.tick(Counts(at));
        length.tick(Counts(at + 100));
        length.idle();
    }
    assert_eq!(length.length().0, 100);
    length.tick(Counts(1_000_000));
    assert_eq!(length.length().0, 100);
}

#[test]
fn within_a_window_the_length_stays_and_is_the_shortest_at_its_end() {
    // Seven distances of a window, then the eighth.
    let begin = [0, 100, 200, 280, 380, 480, 580, 680];
    assert_eq!(learn(begin), 100);
    assert_eq!(learn(begin.into_iter().chain([780])), 80);
    assert_eq!(learn(begin.into_iter().chain([740])), 60);
}

#[test]
fn a_late_tick_is_forgotten_after_a_window() {
    let regular = (1..=20).map(|i| i * 100);
    assert_eq!(learn([0, 90].into_iter().chain(regular)), 100);
}
