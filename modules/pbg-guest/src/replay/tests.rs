use pbg_profile::samples::{child_of_root, of};

use super::*;

/// Returns the replay of children of the root that ran for 1, 2, 3 and so on.
fn replay(tasks: u32) -> Replay {
    let profile = of((0..tasks)
        .map(|ordinal| child_of_root(ordinal, u64::from(ordinal) + 1))
        .collect());
    Replay::of(&Plan::of(&profile).unwrap()).unwrap()
}

fn spawn(replay: &Replay, ordinal: u32, now: u64) -> Option<&Entry> {
    let thread = u64::from(ordinal) + 1;
    replay.spawned(TaskKey::ROOT.child(ordinal), thread, Counts(now))
}

fn run(entry: &Entry, from: u64, to: u64) {
    entry.enter(Counts(from));
    entry.leave(Counts(to), false);
}

#[test]
fn rule_4_the_first_has_rank_98_and_the_rest_share_rank_1() {
    let ranks = [0, 1, 96, 97, 98, 4095].map(rank);
    assert_eq!(ranks, [98, 97, 2, 1, 1, 1]);
    let replay = replay(3);
    let ranks = [0, 1, 2].map(|ordinal| spawn(&replay, ordinal, 0).unwrap().rank);
    assert_eq!(ranks, [98, 97, 96]);
}

#[test]
fn rule_5_a_key_is_known_once() {
    let replay = replay(2);
    assert!(spawn(&replay, 0, 0).is_some());
    assert!(spawn(&replay, 0, 0).is_none(), "taken");
    assert!(spawn(&replay, 2, 0).is_none(), "unknown");
    let status = replay.status();
    assert_eq!((status.matched, status.unplanned), (1, 2));
    assert_eq!(status.first.unwrap().cause, Cause::Unknown);
}

#[test]
fn rule_6_two_looks_must_find_a_task_beyond_twice_its_record() {
    let replay = replay(3);
    let entry = spawn(&replay, 2, 0).unwrap();
    run(entry, 0, 6); // twice 3
    assert_eq!([0, 1, 2].map(|_| replay.overrun().count()), [0, 0, 0]);
    run(entry, 10, 11);
    assert_eq!([0, 1, 2].map(|_| replay.overrun().count()), [0, 1, 0]);
    assert!(!replay.demoted(entry));
    assert_eq!(entry.ranked_thread(), None);
    let first = replay.status().first.unwrap();
    assert_eq!(
        (first.cause, first.expected, first.found),
        (Cause::Run, 3, 7)
    );
}

#[test]
fn rule_6_a_task_that_has_ended_is_left_alone() {
    let replay = replay(1);
    let entry = spawn(&replay, 0, 0).unwrap();
    entry.enter(Counts(0));
    entry.leave(Counts(100), true);
    assert_eq!([0, 1].map(|_| replay.overrun().count()), [0, 0]);
    assert!(replay.is_over());
}

#[test]
fn rule_7_the_plan_is_dropped_beyond_two_thirds() {
    let replay = replay(6);
    let dropped: Vec<_> = (0..5)
        .map(|ordinal| replay.demoted(spawn(&replay, ordinal, 0).unwrap()))
        .collect();
    assert_eq!(dropped, [false, false, false, false, true]);
    assert_eq!(replay.status().demoted, 5);
}

#[test]
fn a_slower_replay_is_behind() {
    let profile = of((0..2)
        .map(|ordinal| {
            let mut task = child_of_root(ordinal, 100);
            task.figures.ready = pbg_profile::Figure::once(900);
            task
        })
        .collect());
    let replay = Replay::of(&Plan::of(&profile).unwrap()).unwrap();
    let [first, second] = [0, 1].map(|ordinal| spawn(&replay, ordinal, 0).unwrap());
    run(first, 0, 1_000);
    run(second, 1_000, 1_100);
    let status = replay.status();
    assert_eq!((status.turnaround_permille, status.behind), (1_050, false));
    run(second, 1_100, 1_102);
    let status = replay.status();
    assert_eq!((status.turnaround_permille, status.behind), (1_051, true));
}
