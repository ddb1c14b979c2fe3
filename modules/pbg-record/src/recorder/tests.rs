use super::super::phase_list::RECORDED_PHASES;
use super::super::record::Burst;
use super::*;
use pbg_profile::{Ended, Figure, PhaseOrder, Spawned, StoredPhase, Wakes, Woken};

/// Records a task that makes these steps, each a kind and a run time, and waits 10 before each.
///
/// After its run, the task of kind `r` yields, `p` is preempted, `b` blocks for 100, and `.` exits.
fn played(steps: &[(char, u64)]) -> StoredTask {
    played_on(Recorder::leak().unwrap(), steps)
}

fn played_on(recorder: &'static Recorder, steps: &[(char, u64)]) -> StoredTask {
    recorder.clear();
    let mut now = 1000;
    let record = recorder.spawned(0, recorder.root(), None, Counts(now));
    for &(kind, run) in steps {
        now += 10;
        record.begin_interval(Counts(now));
        now += run;
        if kind == 'p' {
            record.preempted();
        }
        record.end_interval(Counts(now));
        if kind == 'b' {
            now += 100;
            recorder.woken(0, record, &IDLE, Counts(now));
        }
    }
    let (mut tasks, left_out) = recorder.read(Counts(now), |_| false).unwrap();
    assert_eq!((tasks.len(), left_out), (1, 0));
    tasks.remove(0)
}

fn phases(task: &StoredTask) -> Vec<(Ended, u64, u64, u64)> {
    let tuple = |p: &StoredPhase| (p.ended, p.intervals, p.run.0, p.blocked.0);
    task.phases.list.iter().map(tuple).collect()
}

/// The last burst adds two at most, and a list that grows cannot be refused.
#[test]
fn room_for_all_phases_is_asked_for_at_once() {
    let record = Recorder::leak().unwrap();
    let record = record.spawned(0, record.root(), None, Counts(0));
    record.begin_interval(Counts(0));
    let list = record.read_phases(1, Counts(1)).unwrap().list;
    assert_eq!(list.len(), 1);
    assert!(list.capacity() >= RECORDED_PHASES + 2);
}

#[test]
fn rule_3_run_ready_and_blocked_are_kept_apart() {
    let task = played(&[('r', 5), ('p', 7), ('r', 1), ('b', 20), ('r', 4), ('.', 3)]);
    let once = |figure: Figure| (figure.total, figure.least, figure.most);
    let each = task.figures.to_array().map(once);
    // run, ready, blocked, dispatches, yields, preemptions, blocks
    let expected = [40, 60, 100, 6, 3, 1, 1].map(|value| (value, value, value));
    assert_eq!(each, expected);
}

#[test]
fn rule_3_phases_tell_yields_blocks_and_the_exit() {
    let task = played(&[('r', 6), ('r', 6), ('b', 6), ('p', 2), ('.', 3)]);
    let expected = [
        (Ended::Yield, 2, 12, 0),
        (Ended::Block, 1, 6, 100),
        (Ended::Exit, 1, 5, 0),
    ];
    assert_eq!(phases(&task), expected);
}

#[test]
fn rule_3_the_last_run_interval_of_a_burst_is_told_from_those_before() {
    let task = played(&[('r', 50), ('r', 50), ('b', 2), ('r', 50), ('.', 3)]);
    let expected = [
        (Ended::Yield, 2, 100, 0),
        (Ended::Block, 1, 2, 100),
        (Ended::Yield, 1, 50, 0),
        (Ended::Exit, 1, 3, 0),
    ];
    assert_eq!(phases(&task), expected);
}

#[test]
fn rule_3_like_phases_are_one_and_a_change_begins_another() {
    let mut steps = [('b', 50); 100].to_vec();
    steps.extend([('b', 500); 10]);
    steps.push(('.', 1));
    let expected = [
        (Ended::Block, 100, 5000, 10_000),
        (Ended::Block, 10, 5000, 1000),
        (Ended::Exit, 1, 1, 0),
    ];
    assert_eq!(phases(&played(&steps)), expected);
}

#[test]
fn rule_3_shorter_is_a_change_too() {
    let mut steps = [('b', 500); 10].to_vec();
    steps.extend([('b', 50); 100]);
    steps.push(('.', 1));
    let expected = [
        (Ended::Block, 10, 5000, 1000),
        (Ended::Block, 100, 5000, 10_000),
        (Ended::Exit, 1, 1, 0),
    ];
    assert_eq!(phases(&played(&steps)), expected);
}

#[test]
fn rule_3_a_task_that_has_not_run_has_not_blocked() {
    let recorder = Recorder::leak().unwrap();
    recorder.clear();
    let record = recorder.spawned(0, recorder.root(), None, Counts(1000));
    recorder.woken(0, record, &IDLE, Counts(1005)); // it only changes queues
    record.begin_interval(Counts(1010));
    record.end_interval(Counts(1015));
    recorder.woken(0, record, &IDLE, Counts(1115));
    recorder.woken(0, record, &IDLE, Counts(1130)); // and again
    let (tasks, _) = recorder.read(Counts(1140), |_| false).unwrap();
    let figures = tasks[0].figures.to_array().map(|figure| figure.total);
    assert_eq!(figures, [5, 10, 100, 1, 0, 0, 1]);
    assert_eq!(phases(&tasks[0]), [(Ended::Block, 1, 5, 100)]);
}

#[test]
fn rule_3_the_time_of_a_burst_is_shared_without_overflow() {
    let burst = Burst {
        run: 1 << 62,
        intervals: 1025,
        preemptions: 1,
    };
    let wakes = Wakes::default();
    let [yields, last] = burst.split(Ended::Block, 7, Counts::ZERO, wakes);
    assert_eq!((yields.run.0, last.run.0), (1023 << 52, 1 << 52));
}

#[test]
fn rule_3_a_record_that_is_used_again_says_nothing_of_the_task_before() {
    let recorder = Recorder::leak().unwrap();
    let before: Vec<_> = (0..100)
        .flat_map(|i| [('r', 1 << (i % 9)), ('p', 3), ('b', 1)])
        .collect();
    played_on(recorder, &before);
    let again = &recorder.records[0];
    recorder.spawned(0, again, None, Counts(1));
    let steps = [('r', 6), ('p', 2), ('b', 6), ('.', 3)];
    assert_eq!(played_on(recorder, &steps), played(&steps));
    let child = recorder.spawned(0, again, None, Counts(1));
    let key = TaskKey::ROOT.child(0).child(0);
    assert_eq!(child.key(), key);
}

#[test]
fn rule_4_a_table_that_was_full_is_empty_again() {
    let recorder = Recorder::leak().unwrap();
    for _ in 0..2 {
        recorder.clear();
        assert_eq!(recorder.unrecorded(), 0);
        for _ in 0..MAX_TASKS + 2 {
            recorder.spawned(0, recorder.root(), None, Counts(1));
        }
        assert_eq!(recorder.unrecorded(), 2);
    }
}

#[test]
fn rule_4_a_record_that_is_full_coarsens() {
    let steps: Vec<_> = (0..100)
        .flat_map(|i| [('r', 1 << (i % 9)), ('b', 1)])
        .chain([('.', 7)])
        .collect();
    let task = played(&steps);
    assert_eq!(task.phases.order, PhaseOrder::ByEnding);
    let endings: Vec<_> = phases(&task).iter().map(|p| (p.0, p.1)).collect();
    let expected = [(Ended::Yield, 100), (Ended::Block, 100), (Ended::Exit, 1)];
    assert_eq!(endings, expected);
    let sum: u64 = phases(&task).iter().map(|p| p.2).sum();
    assert_eq!(sum, task.figures.run.total, "no time is lost");
}

const TICK: u64 = 1_000_000;

/// The time of the tick after those that [`ticking`] has seen.
const NEXT: u64 = (EVEN_TICKS + 2) * TICK;

/// A recorder that knows how evenly ticks come, and its tasks: the first has the CPU.
fn ticking(tasks: usize) -> (&'static Recorder, Vec<&'static Record>, u64) {
    let recorder = Recorder::leak().unwrap();
    recorder.clear();
    (1..NEXT / TICK).for_each(|n| recorder.tick(0, false, Counts(n * TICK)));
    let now = NEXT - TICK + 7;
    let tasks: Vec<_> = (0..tasks)
        .map(|_| recorder.spawned(0, recorder.root(), None, Counts(now)))
        .collect();
    recorder.root().end_interval(Counts(now));
    tasks[0].begin_interval(Counts(now));
    // All others have run, and block.
    for task in &tasks[1..] {
        task.begin_interval(Counts(now));
        task.end_interval(Counts(now));
    }
    (recorder, tasks, now)
}

fn wakers(recorder: &'static Recorder, now: u64) -> Vec<Vec<Waker>> {
    let (tasks, _) = recorder.read(Counts(now), |_| false).unwrap();
    let of = |task: &StoredTask| {
        let list = task.phases.list.iter();
        list.filter(|phase| phase.ended == Ended::Block)
            .map(|phase| phase.woken_by)
            .collect()
    };
    tasks.iter().map(of).collect()
}

fn wakes(recorder: &'static Recorder, now: u64) -> Wakes {
    let (tasks, _) = recorder.read(Counts(now), |_| false).unwrap();
    let wakes = tasks[0].phases.list.iter().map(|phase| phase.wakes);
    wakes.fold(Wakes::default(), Wakes::merged)
}

#[test]
fn a_wake_is_the_timers_if_a_tick_follows_closely_even_after_others() {
    let (recorder, tasks, _) = ticking(12);
    let close = TICK / WAKE_TICK_RATIO;
    let mut now = NEXT - 11 * close;
    for task in &tasks[1..] {
        recorder.woken(0, task, tasks[0], Counts(now));
        now += close;
    }
    recorder.tick(0, false, Counts(now));
    let found = wakers(recorder, now);
    assert!(found[0].is_empty());
    assert!(
        found[1..].iter().all(|by| by[..] == [Waker::Timer]),
        "{found:?}"
    );
    assert_eq!(wakes(recorder, now), Wakes::default());
}

#[test]
fn a_wake_is_a_tasks_if_no_tick_follows_closely_and_counts_as_one_of_its() {
    let close = TICK / WAKE_TICK_RATIO;
    for (gap, is_timers) in [(close, true), (close + 1, false)] {
        let (recorder, tasks, now) = ticking(3);
        recorder.woken(0, tasks[1], tasks[0], Counts(now));
        // It says what the first one was; what it is itself the tick says.
        let later = NEXT - gap;
        recorder.woken(0, tasks[2], tasks[0], Counts(later));
        recorder.tick(0, false, Counts(NEXT));
        let by = if is_timers {
            Waker::Timer
        } else {
            Waker::Task(0)
        };
        assert_eq!(
            wakers(recorder, NEXT + TICK),
            [vec![], vec![Waker::Task(0)], vec![by]]
        );
        // The first was when it began, the second when it had run until then.
        let woken = [(1, now), (2, later)].map(|(index, at)| Woken {
            whom: Waker::Task(index),
            count: 1,
            after: Counts(at - now),
        });
        let expected = Wakes::of(woken.into_iter().take(2 - usize::from(is_timers)));
        assert_eq!(wakes(recorder, NEXT + TICK), expected);
    }
}

/// The first of these ticks is late, and the second comes in time.
#[test]
fn uneven_ticks_allow_a_wake_to_come_earlier_before_its_tick() {
    let least = TICK / WAKE_TICK_RATIO;
    for (late, close) in [(0, least), (3 * least, 3 * least), (TICK / 3, TICK / 64)] {
        for (gap, by) in [(close, Waker::Timer), (close + 2, Waker::Task(0))] {
            let (recorder, tasks, _) = ticking(2);
            recorder.tick(0, false, Counts(NEXT + late));
            recorder.tick(0, false, Counts(NEXT + TICK));
            recorder.woken(0, tasks[1], tasks[0], Counts(NEXT + 2 * TICK - gap));
            recorder.tick(0, false, Counts(NEXT + 2 * TICK));
            assert_eq!(
                wakers(recorder, NEXT + 3 * TICK)[1],
                [by],
                "{gap} before a tick, {late}"
            );
        }
    }
}

#[test]
fn limit_is_wide_until_it_is_known_how_evenly_ticks_come() {
    let [least, most] = [WAKE_TICK_RATIO, UNEVEN_TICK_RATIO].map(|ratio| TICK / ratio);
    for (known, close) in [(0, most), (EVEN_TICKS - 1, most), (EVEN_TICKS, least)] {
        let ticks = Ticks::new();
        (0..=known).for_each(|n| ticks.came(Counts((n + 1) * TICK)));
        assert_eq!(ticks.close(TICK), close, "{known} times between ticks");
    }
}

#[test]
fn wakes_that_a_preemption_follows_closely_are_doubtful() {
    let close = TICK / WAKE_TICK_RATIO;
    for (gap, is_doubtful) in [(close, true), (close + 1, false)] {
        let (recorder, tasks, now) = ticking(3);
        let first = now + 100;
        recorder.woken(0, tasks[1], tasks[0], Counts(first));
        recorder.woken(0, tasks[2], tasks[0], Counts(first));
        recorder.preempted(0, tasks[0], Counts(first + gap));
        tasks[0].end_interval(Counts(first + gap));
        let found = wakers(recorder, now + TICK);
        assert_eq!(found, [vec![], vec![Waker::Task(0)], vec![Waker::Task(0)]]);
        let woken = |whom, count, after| Woken {
            whom,
            count,
            after: Counts(after),
        };
        let expected = match is_doubtful {
            true => Wakes::of([woken(Waker::Unknown, 2, 2 * (100 + gap))]),
            false => Wakes::of([1, 2].map(|task| woken(Waker::Task(task), 1, 100))),
        };
        assert_eq!(wakes(recorder, now + TICK), expected, "after {gap}");
    }
}

/// No tick or wake has come after the last wake of a task that has exited. Another task seems to have
/// ended that wait.
#[test]
fn open_burst_does_not_hide_the_waker_of_those_before() {
    for last in [0, 1] {
        let (recorder, tasks, mut now) = ticking(3);
        for nth in 0..10 {
            let others = if nth % 2 == 0 { 10 } else { 1000 };
            tasks[2].begin_interval(Counts(now));
            tasks[2].end_interval(Counts(now + others));
            now += 2000;
            let waker = tasks[if nth == 9 { last } else { 0 }];
            recorder.woken(0, tasks[2], waker, Counts(now));
        }
        tasks[2].begin_interval(Counts(now));
        tasks[2].end_interval(Counts(now + 10));
        let (tasks, _) = recorder.read(Counts(now + 10), |_| false).unwrap();
        let phases = &tasks[2].phases;
        assert_eq!(phases.order, PhaseOrder::ByEnding);
        let waits = phases.list.iter().find(|phase| phase.ended == Ended::Block);
        let waits = waits.unwrap();
        assert_eq!((waits.intervals, waits.woken_by), (10, Waker::Task(0)));
    }
}

/// One wakes another and blocks at once. Only the wake of the one that is preempted is in doubt.
#[test]
fn preemption_leaves_wakes_of_another_task_beyond_doubt() {
    let (recorder, tasks, now) = ticking(4);
    recorder.woken(0, tasks[2], tasks[0], Counts(now + 10));
    tasks[0].end_interval(Counts(now + 10));
    tasks[1].begin_interval(Counts(now + 10));
    recorder.woken(0, tasks[3], tasks[1], Counts(now + 20));
    recorder.preempted(0, tasks[1], Counts(now + 30));
    tasks[1].end_interval(Counts(now + 30));
    let found = wakers(recorder, now + TICK);
    assert_eq!(found[2..], [[Waker::Task(0)], [Waker::Task(1)]]);
    let (read, _) = recorder.read(Counts(now + TICK), |_| false).unwrap();
    let by = |task: usize| read[task].phases.list.last().unwrap().wakes;
    let woken = |whom, after| Woken {
        whom,
        count: 1,
        after: Counts(after),
    };
    assert_eq!(by(0), Wakes::of([woken(Waker::Task(2), 10)]));
    assert_eq!(by(1), Wakes::of([woken(Waker::Unknown, 20)]));
}

#[test]
fn cleared_recorder_tells_nothing_of_the_run_before() {
    let (recorder, _, _) = ticking(1);
    recorder.clear();
    assert_eq!(recorder.start(), Start::default());
}

/// The next event decides, and here it is the tick.
#[test]
fn preemption_by_a_tick_leaves_no_doubt() {
    let (recorder, tasks, now) = ticking(2);
    recorder.woken(0, tasks[1], tasks[0], Counts(4 * TICK));
    recorder.tick(0, true, Counts(4 * TICK));
    recorder.preempted(0, tasks[0], Counts(4 * TICK));
    tasks[0].end_interval(Counts(4 * TICK));
    assert_eq!(wakers(recorder, now + 2 * TICK)[1], [Waker::Timer]);
    assert_eq!(wakes(recorder, now + 2 * TICK), Wakes::NONE);
}

/// A phase has no preemptions, so the place of a wake counts from the last yield or block.
#[test]
fn wake_after_a_preemption_counts_all_cpu_time_of_the_burst() {
    for (is_preempted, expected) in [(true, 37), (false, 7)] {
        let (recorder, tasks, now) = ticking(2);
        if is_preempted {
            tasks[0].preempted();
        }
        tasks[0].end_interval(Counts(now + 30));
        tasks[0].begin_interval(Counts(now + 100));
        recorder.woken(0, tasks[1], tasks[0], Counts(now + 107));
        let woken = wakes(recorder, now + 2 * TICK);
        let after: Vec<u64> = woken.iter().map(|woken| woken.after.0).collect();
        assert_eq!(after, [expected], "{is_preempted}");
    }
}

/// It runs at once elsewhere, blocks, and is woken from there, while nothing happens where it
/// was woken first.
#[test]
fn a_wake_that_is_pending_on_one_cpu_is_settled_by_the_next_from_another() {
    let (recorder, tasks, now) = ticking(4);
    (1..=3).for_each(|n| recorder.tick(1, false, Counts(n * TICK)));
    recorder.woken(0, tasks[1], tasks[0], Counts(now));
    tasks[1].begin_interval(Counts(now + 1));
    tasks[1].end_interval(Counts(now + 2));
    recorder.woken(1, tasks[1], tasks[2], Counts(now + 3));
    recorder.tick(0, false, Counts(now + 4)); // close, and too late
    recorder.tick(1, false, Counts(now + 5));
    let found = wakers(recorder, now + TICK);
    assert_eq!(found[1], [Waker::Task(0), Waker::Timer]);
}

#[test]
fn a_running_task_is_recognised_by_its_record() {
    let recorder = Recorder::leak().unwrap();
    recorder.clear();
    let record = recorder.spawned(0, recorder.root(), None, Counts(1000));
    let run = |now| {
        let (tasks, _) = recorder.read(Counts(now), |_| false).unwrap();
        tasks[0].figures.run.total
    };
    record.begin_interval(Counts(1010));
    assert_eq!(run(1017), 7);
    record.end_interval(Counts(1020));
    assert_eq!(run(2000), 10);
    record.begin_interval(Counts(2000));
    assert_eq!(run(2005), 15);
}

#[test]
fn a_wake_of_an_idle_cpu_is_the_timers_and_one_of_an_outsider_is_outside() {
    let (recorder, tasks, now) = ticking(3);
    recorder.woken(0, tasks[1], &IDLE, Counts(now));
    recorder.woken(0, tasks[2], &OUTSIDE, Counts(now + TICK / 2));
    recorder.spawned(0, recorder.root(), None, Counts(now + TICK / 2 + 1));
    let found = wakers(recorder, now + TICK);
    assert_eq!(found[1..3], [[Waker::Timer], [Waker::Outside]]);
}

#[test]
fn a_spawn_is_recorded_with_what_the_parent_had_done_by_then() {
    let (recorder, tasks, now) = ticking(1);
    let root = recorder.root();
    tasks[0].end_interval(Counts(now + 100));
    // The root had run since the first spawn; now it waits for the task, twice.
    root.begin_interval(Counts(now + 100));
    root.end_interval(Counts(now + 130));
    tasks[0].begin_interval(Counts(now + 130));
    recorder.woken(0, root, tasks[0], Counts(now + 500));
    tasks[0].end_interval(Counts(now + 520));
    root.begin_interval(Counts(now + 520));
    recorder.spawned(0, root, None, Counts(now + 525));
    let (tasks, _) = recorder
        .read(Counts(now + 600), |of| ptr::eq(of, root))
        .unwrap();
    let spawned = tasks.iter().map(|task| task.spawned);
    let told = |spawned: Spawned| (spawned.figures().map(|figure| figure.total), spawned.after);
    let found: Vec<_> = spawned.map(told).collect();
    assert_eq!(
        found,
        [
            ([0; 4], Waker::Unknown),
            ([525, 35, 1, 500], Waker::Task(0))
        ]
    );
    let start = recorder.start();
    let figures = start.figures().map(|figure| figure.total);
    assert_eq!(figures, [TICK, 7, now]);
}

#[test]
fn a_tick_is_the_mean_of_those_with_none_missed_between() {
    let ticks = Ticks::new();
    assert_eq!((ticks.period(), ticks.phase(Counts(5))), (0, 0));
    // Three were missed at first, and two later.
    for at in [1_000, 5_000, 6_010, 7_000, 10_000, 10_990] {
        ticks.came(Counts(at));
    }
    assert_eq!(ticks.period(), (1_010 + 990 + 990) / 3);
    assert_eq!(ticks.phase(Counts(10_990 + 2 * 996 + 5)), 5);
}

#[test]
fn a_kernel_is_preemptive_after_a_preemption_and_cooperative_after_ignored_ticks() {
    let (recorder, tasks, now) = ticking(1);
    assert_eq!(recorder.start().kernel, Kernel::Unknown);
    recorder.tick(0, true, Counts(now));
    assert_eq!(recorder.start().kernel, Kernel::Unknown);
    recorder.tick(0, true, Counts(now + TICK));
    assert_eq!(recorder.start().kernel, Kernel::Cooperative);
    recorder.preempted(0, tasks[0], Counts(now + TICK));
    assert_eq!(recorder.start().kernel, Kernel::Preemptive);
}

#[test]
fn rule_4_a_full_record_forgets_wakers_first() {
    // Two take turns to end its waits: more phases than there is room for.
    let (recorder, tasks, now) = ticking(3);
    recorder.woken(0, tasks[2], &IDLE, Counts(now));
    let mut at = now;
    for n in 0..20 {
        tasks[2].begin_interval(Counts(at));
        at += 100;
        tasks[2].end_interval(Counts(at));
        recorder.woken(
            0,
            tasks[2],
            tasks[n % 2],
            Counts(at + TICK / 100 * n as u64),
        );
        at += TICK;
    }
    let (read, _) = recorder.read(Counts(at), |_| false).unwrap();
    let list = &read[2].phases.list;
    assert_eq!(read[2].phases.order, PhaseOrder::AsRun);
    let found: Vec<_> = list.iter().map(|p| (p.intervals, p.woken_by)).collect();
    assert_eq!(found, [(1, Waker::Timer), (20, Waker::Unknown)]);
}

#[test]
fn a_run_interval_that_is_still_open_counts_until_now() {
    let recorder = Recorder::leak().unwrap();
    recorder.clear();
    let record = recorder.spawned(0, recorder.root(), None, Counts(1000));
    record.begin_interval(Counts(1010));
    let (tasks, _) = recorder
        .read(Counts(1017), |of| ptr::eq(of, record))
        .unwrap();
    let figures = tasks[0].figures;
    assert_eq!((figures.run.total, figures.ready.total), (7, 10));
}

#[test]
fn tasks_that_share_a_key_are_left_out_with_their_children() {
    let recorder = Recorder::leak().unwrap();
    recorder.clear();
    let label = Label::new("twin").unwrap();
    let spawn = |parent, label| recorder.spawned(0, parent, label, Counts(1));
    let root = recorder.root();
    let by_itself = Label::new("by itself").unwrap();
    let first = spawn(root, Some(&label));
    let child = spawn(first, None);
    spawn(child, None);
    spawn(child, Some(&by_itself));
    let other = spawn(root, None);
    spawn(root, Some(&label));
    spawn(other, None);
    let (tasks, left_out) = recorder.read(Counts(2), |_| false).unwrap();
    let keys: Vec<_> = tasks.iter().map(|task| task.key).collect();
    let other = TaskKey::ROOT.child(1);
    let expected = [TaskKey::labelled("by itself"), other, other.child(0)];
    assert_eq!(keys, expected);
    assert_eq!(tasks[0].place, Place::Several);
    let (parent, ordinal) = (1, 0);
    assert_eq!(tasks[2].place, Place::Child { parent, ordinal });
    assert_eq!(left_out, 4);
}
