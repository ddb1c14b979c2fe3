//! Through a console.

use core::fmt;
use std::format;
use std::string::{String, ToString};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::*;

fn framed(bytes: &[u8]) -> String {
    let mut text = String::new();
    write_frame(bytes, &mut text).unwrap();
    text
}

fn read(text: &str) -> Result<Vec<u8>, FrameError> {
    read_frame(text.as_bytes())
}

#[test]
fn a_frame_has_these_lines() {
    let text = framed(b"The quick brown fox jumps over the lazy dog, again and again.");
    // The output of Python's base64 and zlib.
    let expected = "\
PBG-PROFILE-BEGIN v1 bytes=61 lines=2 crc=4505a40b
PBG-PROFILE 1 VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZywgYWdh abb0
PBG-PROFILE 2 aW4gYW5kIGFnYWluLg== 65cc
PBG-PROFILE-END
";
    assert_eq!(text, expected);
    assert!(has_frame(text.as_bytes()) && !has_frame(b"PBG recorded 5 tasks"));
}

/// The output gets whole lines, so that other text comes in between.
#[test]
fn each_line_is_written_at_once() {
    struct Pieces(Vec<String>);
    impl fmt::Write for Pieces {
        fn write_str(&mut self, piece: &str) -> fmt::Result {
            self.0.push(piece.to_string());
            Ok(())
        }
    }
    let bytes = encode(&sample()).unwrap();
    let mut pieces = Pieces(Vec::new());
    write_frame(&bytes, &mut pieces).unwrap();
    let pieces = pieces.0;
    assert_eq!(pieces.len(), bytes.len().div_ceil(FRAME_BYTES_PER_LINE) + 2);
    let is_line = |piece: &String| piece.ends_with('\n') && piece.len() < 100;
    assert!(pieces.iter().all(is_line));
    assert_eq!(pieces.concat(), framed(&bytes));
}

#[test]
fn a_frame_survives_a_console() {
    let bytes = encode(&sample()).unwrap();
    let text = framed(&bytes);
    assert_eq!(read(&text), Ok(bytes.clone()));
    assert_eq!(read(&text.replace('\n', "\r\n")), Ok(bytes.clone()));
    // Other text comes in between, before a line and after it.
    let mixed: String = (text.lines())
        .map(|line| format!("[ 0.5] tick\r\nno line feed{line} \x1b[m and on\r\n\u{fffd}\r\n"))
        .collect();
    assert_eq!(read(&mixed), Ok(bytes.clone()));
    let mut raw = b"\xff\xfe \n".to_vec();
    raw.extend(text.as_bytes());
    assert_eq!(read_frame(&raw), Ok(bytes.clone()));
    // Every line twice, every line in another order, the end lost.
    let mut lines: Vec<_> = text.lines().collect();
    let end = lines.pop().unwrap();
    let twice: Vec<_> = lines
        .iter()
        .flat_map(|line| [*line; 2])
        .chain([end])
        .collect();
    assert_eq!(read(&twice.join("\n")), Ok(bytes.clone()));
    assert_eq!(read(&lines.join("\n")), Ok(bytes.clone()));
    lines[1..].reverse();
    assert_eq!(read(&lines.join("\n")), Ok(bytes.clone()));
    // The last one counts, whatever comes before it.
    let cut = &text[..text.len() / 2];
    let older = framed(&encode(&of(Vec::new())).unwrap());
    assert_eq!(read(&format!("{older}{cut}\n{text}")), Ok(bytes));
}

#[test]
fn a_damaged_frame_says_what_is_missing() {
    let bytes = encode(&sample()).unwrap();
    let text = framed(&bytes);
    let lines: Vec<_> = text.lines().collect();
    let count = lines.len() - 2;
    assert!(count >= 4);
    // Lines that are whole, of another profile.
    let mut other = sample();
    other.header.program.hash = 1;
    let other = framed(&encode(&other).unwrap());
    let foreign = other.lines().nth(1).unwrap();
    let with = |name: &str, change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        change(&mut lines);
        format!("{name}: {}", read(&lines.join("\n")).unwrap_err())
    };
    let lost = (1..=count).map(|lost| {
        let remove = |lines: &mut Vec<String>| drop(lines.remove(lost));
        with(&format!("line {} lost", lost + 1), &remove)
    });
    let found = [
        with("other text", &|lines| lines[2].insert_str(30, "[tick]")),
        with("cut", &|lines| lines.truncate(3)),
        with("begin cut", &|lines| lines[0].truncate(30)),
        with("version 2", &|lines| {
            lines[0] = lines[0].replace("v1", "v2")
        }),
        with("begin lost", &|lines| drop(lines.remove(0))),
        with("foreign line", &|lines| {
            lines.insert(3, foreign.to_string())
        }),
        with("line replaced", &|lines| lines[1] = foreign.to_string()),
    ];
    assert_golden("frame", &lost.chain(found).collect::<Vec<_>>());
}

#[test]
fn a_frame_of_more_than_a_profile_can_have_is_refused() {
    let begin = |bytes: usize| {
        let lines = bytes.div_ceil(FRAME_BYTES_PER_LINE);
        read(&format!(
            "PBG-PROFILE-BEGIN v1 bytes={bytes} lines={lines} crc=00000000"
        ))
    };
    assert!(matches!(
        begin(MAX_BYTES),
        Err(FrameError::Incomplete { .. })
    ));
    for bytes in [0, MAX_BYTES + 1] {
        assert_eq!(begin(bytes), Err(FrameError::Begin { line: 1 }));
    }
}

/// One character is changed anywhere: reading returns the same bytes, or an error.
#[test]
fn no_changed_character_gets_through() {
    let bytes = encode(&sample()).unwrap();
    let text = framed(&bytes).into_bytes();
    for at in 0..text.len() {
        let near = [text[at] ^ 1, text[at] ^ 0x20, 0xff];
        for to in b"A7 \n=".iter().copied().chain(near) {
            let mut damaged = text.clone();
            damaged[at] = to;
            if let Ok(found) = read_frame(&damaged) {
                assert_eq!(found, bytes, "byte {at} as {to:#04x}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_a_frame(text in "[PBG0-9=+/A-Za-z \r\n-]{0,400}") {
        let _ = read(&text);
        let _ = read(&format!("PBG-PROFILE-BEGIN v1 bytes=90 lines=2 crc=0\nPBG-PROFILE {text}"));
    }

    #[test]
    fn any_bytes_survive_a_frame(bytes in vec(any::<u8>(), 1..500)) {
        prop_assert_eq!(read(&framed(&bytes)), Ok(bytes));
    }
}
