use axsched_ext::pbg::stored::{Figures, StoredPhase, merge};

use super::*;

use crate::recorded::tests::profiles;

const MS: u64 = 1_000_000;
const HZ: u64 = 1_000_000_000;

/// A task in one run: the time that it runs and its end in ms, its yields, and its blocks for the
/// timer.
struct Ran(u64, u64, u64, u64);

/// Returns a run of a program with these tasks, all of which come at its begin. A look takes 1 µs.
fn run(tasks: &[Ran]) -> StoredProfile {
    let task = |(ordinal, &Ran(run_ms, end_ms, yields, blocks)): (u32, &Ran)| {
        let run = run_ms * MS + 1_000 * (yields + blocks);
        let mut task = profiles::task(ordinal);
        task.figures = Figures {
            run: Figure::once(run),
            ready: Figure::once(end_ms * MS - run),
            dispatches: Figure::once(1 + yields + blocks),
            yields: Figure::once(yields),
            blocks: Figure::once(blocks),
            ..Figures::default()
        };
        let phase = |ended, intervals| StoredPhase::new(ended, intervals, Counts(run), Counts(0));
        let waits = StoredPhase {
            woken_by: Waker::Timer,
            ..phase(Ended::Block, blocks)
        };
        let all = [phase(Ended::Yield, yields), waits, phase(Ended::Exit, 1)];
        let list = all.into_iter().filter(|phase| phase.intervals > 0);
        task.phases.list = list.collect();
        task
    };
    profiles::profile("polls", (0..).zip(tasks).map(task))
}

/// Returns the tasks that poll and the tasks that they wait for, by two runs.
fn found(one: &[Ran], other: &[Ran]) -> Vec<(usize, Option<usize>)> {
    let both = merge(&[run(one), run(other)]).unwrap();
    let polls = |&task: &usize| polling(&both.tasks[task], HZ).is_some();
    let pollers = (0..both.tasks.len()).filter(polls);
    pollers.map(|task| (task, awaited(&both, task))).collect()
}

/// The app `polling` under FIFO and under RR: a long task, one of its pollers, and another task.
const FIFO: [Ran; 3] = [
    Ran(600, 600, 0, 0),
    Ran(20, 700, 20, 0),
    Ran(200, 1060, 200, 0),
];
const RR: [Ran; 3] = [
    Ran(600, 624, 0, 0),
    Ran(20, 724, 32, 0),
    Ran(200, 1060, 200, 0),
];

#[test]
fn task_that_yields_more_often_in_another_order_polls() {
    assert_eq!(found(&FIFO, &RR), [(1, Some(0))]);
    let both = merge(&[run(&FIFO), run(&RR)]).unwrap();
    let expected = Polling {
        by: Ended::Yield,
        look: Counts(1_000),
        least: 20,
    };
    assert_eq!(polling(&both.tasks[1], HZ), Some(expected));
}

#[test]
fn one_run_or_two_alike_tell_no_polls() {
    let one = run(&RR);
    assert!((0..3).all(|task| awaited(&one, task).is_none()));
    assert_eq!(found(&RR, &RR), []);
    let nearly = [Ran(600, 624, 0, 0), Ran(20, 724, 35, 0)];
    assert_eq!(found(&RR[..2], &nearly), [], "within a tenth");
}

#[test]
fn sleeps_are_polls_if_the_yields_are_equal_and_the_timer_ends_them() {
    let early = [Ran(600, 600, 0, 0), Ran(20, 620, 3, 4)];
    let late = [Ran(600, 900, 0, 0), Ran(20, 920, 3, 9)];
    assert_eq!(found(&early, &late), [(1, Some(0))]);
    let mut both = merge(&[run(&early), run(&late)]).unwrap();
    assert_eq!(
        polling(&both.tasks[1], HZ).map(|polling| (polling.by, polling.least)),
        Some((Ended::Block, 4))
    );
    let waits = &mut both.tasks[1].phases.list[1];
    waits.woken_by = Waker::Task(0);
    assert_eq!(polling(&both.tasks[1], HZ), None, "a task ends them");
}

#[test]
fn look_that_takes_long_is_work() {
    let more = [Ran(600, 624, 0, 0), Ran(22, 724, 32, 0)];
    assert_eq!(found(&FIFO[..2], &more), [], "0.17 ms each");
    assert_eq!(polling(&run(&RR).tasks[1], 0), None, "no frequency");
}

#[test]
fn awaited_task_is_the_last_that_ended_before_in_each_run_and_does_not_poll() {
    let tasks = |early, late, yields| {
        [
            Ran(1, early, 0, 0),
            Ran(1, late, 0, 0),
            // Another poller of the same.
            Ran(1, 49, yields, 0),
            Ran(1, 50, yields, 0),
            Ran(1, 60, 0, 0),
        ]
    };
    let polls = |awaited| [(2, awaited), (3, awaited)];
    assert_eq!(found(&tasks(10, 20, 5), &tasks(30, 40, 9)), polls(Some(1)));
    // The second task once ended after the pollers.
    assert_eq!(found(&tasks(10, 20, 5), &tasks(30, 55, 9)), polls(Some(0)));
    assert_eq!(found(&tasks(51, 20, 5), &tasks(30, 55, 9)), polls(None));
}
