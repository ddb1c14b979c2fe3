//! Assertions about texts, which show the whole text when they fail.

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
