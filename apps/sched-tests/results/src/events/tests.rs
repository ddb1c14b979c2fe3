use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use super::*;

fn pack(records: &[Record]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for record in records {
        Record::pack(record.who, record.what, record.at_ticks - last, |byte| {
            bytes.push(byte);
        });
        last = record.at_ticks;
    }
    bytes
}

fn log(bytes: Vec<u8>) -> Log {
    let head = EventsLine {
        counter_hz: 1_000_000_000,
        records: 7,
        ..EventsLine::default()
    };
    Log::new(head, bytes)
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let who = prop_oneof![0..12u64, 0..=Record::MOST_WHO];
    let delta = prop_oneof![0..200u64, 0..1u64 << 40];
    prop::collection::vec((who, 0..8usize, delta), 0..300).prop_map(|parts| {
        let mut at_ticks = 0;
        let record = |(who, what, delta)| {
            at_ticks += delta;
            Record {
                at_ticks,
                who,
                what: What::ALL[what],
            }
        };
        parts.into_iter().map(record).collect()
    })
}

#[test]
fn a_yield_of_one_of_twelve_tasks_takes_three_bytes() {
    let yielded = |who, at_ticks| Record {
        at_ticks,
        who,
        what: What::Yielded,
    };
    assert_eq!(pack(&[yielded(FIRST_TASK + 11, 127)]), [15 << 3 | 2, 127]);
    assert_eq!(pack(&[yielded(FIRST_TASK + 11, 16_383)]).len(), 3);
    assert_eq!(pack(&[yielded(FIRST_TASK + 12, 16_384)]).len(), 5);
    let most = pack(&[yielded(Record::MOST_WHO, u64::MAX)]);
    assert_eq!(most.len(), MOST_BYTES);
    assert_eq!(unpack(&most), Ok(vec![yielded(Record::MOST_WHO, u64::MAX)]));
}

#[test]
fn cut_or_oversized_record_is_refused() {
    let place = |bytes: &[u8]| unpack(bytes).map_err(|error| error.to_string());
    let none = |place| {
        Err(alloc::format!(
            "expected a record at byte {place}, found none"
        ))
    };
    assert_eq!(place(&[34, 5, 34]), none(2));
    assert_eq!(place(&[34, 0x80]), none(0));
    // A number of 65 bits, and a time that overflows 64.
    assert_eq!(place(&[&[34][..], &[0xff; 9], &[2]].concat()), none(0));
    let all = [&[34][..], &[0xff; 9], &[1]].concat();
    assert_eq!(place(&[&all[..], &[34, 1]].concat()), none(11));
}

#[test]
fn a_log_without_records_has_a_line() {
    let empty = log(Vec::new());
    let lines: Vec<_> = empty.lines().collect();
    assert_eq!((lines.len(), &*lines[0].data), (1, ""));
    assert_eq!(Log::collect(lines), Ok(empty));
    assert_eq!(Log::collect([]), Err(EventsError::Nothing));
}

#[test]
fn a_console_that_was_cut_is_refused() {
    let log = log(vec![34; 2 * PIECE_BYTES + 10]);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 3);
    let refused = |lines: &[EventsLine]| Log::collect(lines.to_vec()).unwrap_err().to_string();
    assert_eq!(
        refused(&lines[..2]),
        "expected byte 12298 of the log, found 12288"
    );
    assert_eq!(
        refused(&lines[1..]),
        "expected byte 0 of the log, found 6144"
    );
    let change = |change: fn(&mut EventsLine)| {
        let mut lines = lines.clone();
        change(&mut lines[1]);
        refused(&lines)
    };
    assert!(change(|line| line.data.replace_range(0..4, "AAAA")).contains("the CRC-32 0x"));
    assert!(change(|line| line.data.truncate(9)).contains("base64"));
    assert!(change(|line| line.cpu = 1).contains("another's"));
    assert_eq!(
        change(|line| line.version = 2),
        "expected version 1, found 2"
    );
    let miscounted = log.records().unwrap_err().to_string();
    assert_eq!(miscounted, "expected 7 records, found 6149");
}

proptest! {
    #[test]
    fn unpacking_returns_the_packed_records(records in records()) {
        let bytes = pack(&records);
        prop_assert!(bytes.len() <= records.len() * MOST_BYTES);
        prop_assert_eq!(unpack(&bytes), Ok(records));
    }

    #[test]
    fn a_log_comes_back_from_its_lines(length in 0..3 * PIECE_BYTES, step in 1..251usize) {
        let log = log((0..length).map(|i| (i * step / 3) as u8).collect());
        let lines = log.lines().map(|line| line.to_line());
        let read: Vec<_> = lines.map(|line| EventsLine::read(&line).unwrap()).collect();
        prop_assert_eq!(Log::collect(read), Ok(log));
    }

    /// Unpacks arbitrary bytes. The outcome is a refusal or a log, and never a panic.
    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(records) = unpack(&bytes) {
            prop_assert!(pack(&records).len() <= bytes.len());
        }
    }
}
