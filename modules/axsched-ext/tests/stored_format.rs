//! The example in `docs/profile-format.md` is a profile, byte by byte.

#[path = "common/profiles.rs"]
mod profiles;

use axsched_ext::pbg::stored::*;
use axsched_ext::units::Counts;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile-format.md");
    std::fs::read_to_string(path).unwrap()
}

/// The bytes of the page's dump: lines of an offset, two blanks, bytes, two blanks, words.
fn dump() -> Vec<u8> {
    let page = page();
    let (_, example) = page.split_once("## A worked example").unwrap();
    let (_, lines) = example.split_once("```text\n").unwrap();
    let (lines, _) = lines.split_once("\n```").unwrap();
    let mut bytes = Vec::new();
    for line in lines.lines() {
        let columns: Vec<_> = line.trim_start().splitn(3, "  ").collect();
        assert_eq!(columns[0].parse(), Ok(bytes.len()), "{line}");
        let byte = |word| u8::from_str_radix(word, 16).unwrap();
        bytes.extend(columns[1].split(' ').map(byte));
    }
    bytes
}

fn example() -> StoredProfile {
    let phase = |ended, intervals, run| StoredPhase::new(ended, intervals, Counts(run), Counts(0));
    let task = StoredTask {
        figures: Figures {
            run: Figure::once(300),
            ready: Figure::once(40),
            dispatches: Figure::once(3),
            yields: Figure::once(2),
            ..Figures::default()
        },
        phases: Phases {
            order: PhaseOrder::AsRun,
            list: vec![phase(Ended::Yield, 2, 200), phase(Ended::Exit, 1, 100)],
        },
        ..profiles::task(0)
    };
    profiles::profile("demo", [task])
}

#[test]
fn the_example_is_what_is_written() {
    assert_eq!(encode(&example()).unwrap(), dump());
    assert_eq!(decode(&dump()), Ok(example()));
}

#[test]
fn the_sizes_are_those_of_the_code() {
    let page = page();
    for text in [
        "so a profile takes at most 6,705,379 bytes",
        "| 48 to 6,705,379 |",
        "at most 4,096 tasks with 16 phases each",
        "A task takes 17 to 1,635 bytes",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!((MAX_BYTES, MAX_TASKS, MAX_PHASES), (6_705_379, 4096, 16));
    assert_eq!(VERSION, 2);
}
