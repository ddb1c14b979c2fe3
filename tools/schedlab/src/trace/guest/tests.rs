use std::cell::Cell;

use super::*;
use crate::{
    record::tests::sample,
    testing::assert_has,
    trace::timeline::{Interval, State},
};
use sched_tests_results::RunLine;

const LONG: u64 = FIRST_TASK;
const SHORT: u64 = FIRST_TASK + 1;

/// `long` runs for 200 ns in three stays, `short` not at all.
const RECORDS: [(u64, What, u64); 12] = [
    (LONG, What::Woken, 2),
    (SHORT, What::Woken, 4),
    (MAIN, What::Booked, 10),
    (LONG, What::Blocked, 60),
    (LONG, What::Woken, 80),
    (IDLE, What::Booked, 90),
    (IDLE, What::Booked, 100),
    (SHORT, What::Done, 100),
    (SHORT, What::Ended, 105),
    (LONG, What::Preempted, 155),
    (GC, What::Booked, 160),
    (LONG, What::Done, 260),
];

fn console(records: &[(u64, What, u64)], change: impl FnOnce(&mut EventsLine)) -> String {
    let figures = sample("realtime", "rr", &[("run", 100)]);
    let run = figures.lines().find_map(|line| RunLine::read(line).ok());
    let (mut bytes, mut last) = (Vec::new(), 0);
    for &(who, what, at) in records {
        Record::pack(who, what, at - last, |byte| bytes.push(byte));
        last = at;
    }
    let mut head = EventsLine {
        context: run.expect("a sample has a run").context,
        counter_hz: 1_000_000_000,
        start_ns: 7,
        records: records.len() as u64,
        ..EventsLine::default()
    };
    change(&mut head);
    let log = Log::new(head, bytes);
    figures
        + &log
            .lines()
            .map(|line| line.to_line() + "\r\n")
            .collect::<String>()
}

fn one(console: &str) -> Timeline {
    let mut timelines = timelines(console).unwrap();
    assert_eq!(timelines.len(), 1);
    timelines.remove(0).1
}

#[test]
fn a_log_is_a_timeline() {
    let timeline = one(&console(&RECORDS, |_| {}));
    assert_eq!(timeline.name, "realtime under rr");
    assert_eq!((timeline.start_ns, timeline.end_ns), (7, 260));
    let name = |thread: usize| timeline.threads[thread].name.as_str();
    let stays = timeline
        .stays
        .iter()
        .map(|s| (name(s.thread), s.to_ns, s.left));
    assert_eq!(
        stays.collect::<Vec<_>>(),
        [
            ("main", 10, Left::Unknown),
            ("long", 60, Left::Blocked),
            ("idle", 100, Left::Unknown),
            ("short", 100, Left::Ended),
            // What it needs to end is in no account of a task.
            ("rest", 105, Left::Unknown),
            ("long", 155, Left::Preempted),
            ("gc", 160, Left::Unknown),
            ("long", 260, Left::Ended),
        ]
    );
    let wakes = timeline
        .wakes
        .iter()
        .map(|w| (name(w.thread), w.at_ns, name(w.by)));
    assert_eq!(
        wakes.collect::<Vec<_>>(),
        [
            ("long", 0, "main"),
            ("short", 0, "main"),
            ("long", 80, "idle")
        ]
    );
    let blocked = |states: &[Interval]| -> Vec<_> {
        let blocked = states.iter().filter(|i| i.state == State::Blocked);
        blocked.map(|i| (i.from_ns, i.to_ns)).collect()
    };
    assert_eq!(blocked(&timeline.states()[0]), [(60, 80)]);
}

#[test]
fn ticks_of_any_clock_become_nanoseconds() {
    let slower = |head: &mut EventsLine| head.counter_hz = 500_000_000;
    let figures = console(&RECORDS, slower).replace("\"run_ns\":200", "\"run_ns\":400");
    assert_eq!(one(&figures).end_ns, 520);
}

#[test]
fn tasks_behind_a_gate_begin_when_they_are_let_in() {
    let records = [
        (LONG, What::Woken, 2),
        (MAIN, What::Booked, 10),
        (LONG, What::Blocked, 20),
        (MAIN, What::Booked, 30),
        (LONG, What::Woken, 25),
        (LONG, What::LetIn, 40),
        (SHORT, What::LetIn, 40),
        (SHORT, What::Done, 40),
        (LONG, What::Done, 240),
    ];
    let mut records = records.to_vec();
    records.sort_by_key(|(_, _, at)| *at);
    let timeline = one(&console(&records, |_| {}));
    let states = timeline.states();
    let long: Vec<_> = states[0].iter().map(|i| (i.from_ns, i.to_ns)).collect();
    assert_eq!(long, [(0, 40), (40, 240)]);
    // Not ready are `long` from 10 to 20 on the CPU and to 25 blocked, and from 30 on, and `short` from
    // 40 on, all on the CPU.
    let held = |timeline: &Timeline| -> Vec<_> {
        let held = timeline.held.iter().map(|held| (held.from_ns, held.to_ns));
        held.filter(|(from, to)| from < to).collect()
    };
    assert_eq!(held(&timeline), [(10, 20), (20, 25), (30, 40)]);
    // Who is woken on its way out is ready again as it is out.
    let place = |what, at| records.iter().position(|r| *r == (LONG, what, at)).unwrap();
    let (blocked, woken) = (place(What::Blocked, 20), place(What::Woken, 25));
    records[woken].2 = 15;
    records.swap(blocked, woken);
    records.sort_by_key(|(_, _, at)| *at);
    assert_eq!(held(&one(&console(&records, |_| {}))), [(10, 20), (30, 40)]);
}

#[test]
fn a_full_log_ends_where_it_was_full() {
    let timeline = one(&console(&RECORDS[..6], |head| head.lost = 6));
    assert_eq!((timeline.end_ns, timeline.lost), (90, 6));
    let last = timeline.stays.last().unwrap();
    assert_eq!((last.to_ns, last.left), (90, Left::Unknown));
}

#[test]
fn a_log_that_is_not_the_runs_is_refused() {
    let fails = |console: &str| format!("{:#}", timelines(console).unwrap_err());
    let good = console(&RECORDS, |_| {});
    let longer = good.replace("\"run_ns\":200", "\"run_ns\":201");
    assert_has(
        fails(&longer),
        "expected stays of 201 ns until its work is done, as run_ns says, found 200",
    );
    let cut = good.split("SCHED-EVENTS").next().unwrap();
    assert_has(
        fails(cut),
        "(`make run TRACE=events` prints them): expected SCHED-EVENTS lines, found none",
    );
    let second_cpu = console(&RECORDS, |head| head.cpu = 1);
    assert_has(
        fails(
            &(good.clone()
                + &second_cpu
                    .replace("SCHED-TASK", "")
                    .replace("SCHED-RUN", "")),
        ),
        "CPU 1",
    );
    let other = console(&RECORDS, |head| head.context.arch = "riscv64".into());
    assert_has(fails(&other), "riscv64");
    let third = console(&[(FIRST_TASK + 2, What::Done, 5)], |_| {});
    assert_has(fails(&third), "expected tasks 0 to 1, found 2");
    let undone = console(&RECORDS[..11], |_| {});
    assert_has(fails(&undone), "task `long`");
}

/// A waker that never leaves its CPU: the log has wakes and no stay.
#[test]
fn wakes_without_a_stay_are_each_looked_at_once() {
    let woken = |at_ticks| Record {
        who: LONG,
        what: What::Woken,
        at_ticks,
    };
    let mut records: Vec<Record> = (1..=10_000).map(woken).collect();
    let looked_at = Cell::new(0);
    let counted = |records: &[Record]| {
        looked_at.set(0);
        stay_ends(
            records
                .iter()
                .inspect(|_| looked_at.set(looked_at.get() + 1)),
        )
    };
    assert_eq!(counted(&records), [None; 10_000]);
    assert_eq!(looked_at.get(), 10_000);
    let end = Record {
        who: MAIN,
        what: What::Booked,
        at_ticks: 10_001,
    };
    records.push(end);
    records.push(woken(10_002));
    let ends = counted(&records);
    assert_eq!(looked_at.get(), 10_002);
    assert_eq!(ends[..10_001], [Some(end); 10_001]);
    assert_eq!(ends[10_001], None);
}
