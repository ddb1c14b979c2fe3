use std::cell::Cell;

use super::*;
use crate::{record::tests::sample, testing::assert_golden, trace::timeline::tests::in_words};
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

/// Consoles, each read to timelines or to an error.
#[test]
fn a_log_is_a_timeline_or_is_refused() {
    let good = console(&RECORDS, |_| {});
    let slower = |head: &mut EventsLine| head.counter_hz = 500_000_000;
    let gate = [
        (LONG, What::Woken, 2),
        (MAIN, What::Booked, 10),
        (LONG, What::Blocked, 20),
        (LONG, What::Woken, 25),
        (MAIN, What::Booked, 30),
        (LONG, What::LetIn, 40),
        (SHORT, What::LetIn, 40),
        (SHORT, What::Done, 40),
        (LONG, What::Done, 240),
    ];
    let mut woken_before_it_left = gate;
    woken_before_it_left[2..4].copy_from_slice(&[(LONG, What::Woken, 15), gate[2]]);
    let other_arch = |head: &mut EventsLine| head.context.arch = "riscv64".into();
    let second_cpu = console(&RECORDS, |head| head.cpu = 1);
    let second_cpu = second_cpu
        .replace("SCHED-TASK", "")
        .replace("SCHED-RUN", "");
    let cases = [
        ("one CPU", good.clone()),
        (
            "a clock of two nanoseconds",
            console(&RECORDS, slower).replace("\"run_ns\":200", "\"run_ns\":400"),
        ),
        ("tasks are let in by a gate", console(&gate, |_| {})),
        (
            "a task is woken at the gate before it has left its CPU",
            console(&woken_before_it_left, |_| {}),
        ),
        ("a full log", console(&RECORDS[..6], |head| head.lost = 6)),
        (
            "less time",
            good.replace("\"run_ns\":200", "\"run_ns\":201"),
        ),
        (
            "no events",
            good.split("SCHED-EVENTS").next().unwrap().to_owned(),
        ),
        ("a CPU that the run does not have", good + &second_cpu),
        ("another machine", console(&RECORDS, other_arch)),
        (
            "an unknown task",
            console(&[(FIRST_TASK + 2, What::Done, 5)], |_| {}),
        ),
        ("a task is not done", console(&RECORDS[..11], |_| {})),
    ];
    let mut all = String::new();
    for (what, console) in cases {
        let found = match timelines(&console) {
            Ok(timelines) => timelines.iter().map(|(_, it)| in_words(it)).collect(),
            Err(error) => format!("{error:#}\n"),
        };
        all += &format!("- {what}\n{found}");
    }
    assert_golden("trace-guest.txt", &all);
}

/// The log of a waker that never leaves its CPU has wakes and no stay.
#[test]
fn stay_ends_looks_at_each_record_once() {
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
