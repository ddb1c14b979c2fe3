//! Assertions about texts, which show the whole text when they fail.
#![allow(
    dead_code,
    reason = "the unit tests and each file of tests/ use some of them"
)]

use std::{env, fs, path::Path};

/// Fails unless the text is that of the file `tests/golden/NAME`. `GOLDEN=write cargo test`
/// writes the file instead.
#[track_caller]
pub fn assert_golden(name: &str, text: impl AsRef<str>) {
    let text = text.as_ref();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(name);
    if env::var_os("GOLDEN").is_some_and(|golden| golden == "write") {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let mut lines = (1..).zip(expected.lines().zip(text.lines()));
    let first = lines.find(|(_, (expected, found))| expected != found);
    assert!(
        text == expected,
        "{name}: {first:?} differs; GOLDEN=write writes what was found:\n{text}"
    );
}

/// Fails unless the text has the part.
#[track_caller]
pub fn assert_has(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    assert!(text.contains(part), "expected `{part}` in\n{text}");
}

/// Fails if the text has the part.
#[track_caller]
pub fn assert_lacks(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    assert!(!text.contains(part), "expected no `{part}` in\n{text}");
}

/// Fails unless the text begins with the part.
#[track_caller]
pub fn assert_begins(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    let begins = text.starts_with(part);
    assert!(begins, "expected `{part}` at the beginning of\n{text}");
}

/// Fails unless the text ends with the part.
#[track_caller]
pub fn assert_ends(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    assert!(
        text.ends_with(part),
        "expected `{part}` at the end of\n{text}"
    );
}
