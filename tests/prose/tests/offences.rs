//! Deliberate offences are found, by line and rule, and nothing else is.

use std::{fs, path::Path};

use prose::{offences, rules::Rule, subject_offence};

/// Returns the numbers of the lines and rules that a sample breaks.
fn found(sample: &str) -> Vec<(usize, u8)> {
    let path = Path::new("tests/samples").join(sample);
    let content = fs::read_to_string(&path).expect("the sample can be read");
    let all = offences(sample, &content);
    all.iter()
        .map(|offence| (offence.line, offence.rule.number()))
        .collect()
}

#[test]
fn offences_of_rust_are_found() {
    let expected = [
        (3, 9),
        (5, 9),
        (9, 3),
        (12, 4),
        (16, 11),
        (19, 11),
        (25, 1),
        (26, 2),
    ];
    assert_eq!(found("names.rs"), expected);
}

#[test]
fn offences_of_a_page_are_found() {
    let expected = [
        (3, 1),
        (3, 7),
        (3, 2),
        (6, 2),
        (8, 8),
        (8, 5),
        (11, 1),
        (13, 1),
        (15, 5),
        (17, 8),
        (17, 2),
        (19, 0),
    ];
    assert_eq!(found("page.md"), expected);
}

#[test]
fn offences_of_a_script_are_found() {
    assert_eq!(found("script.sh"), [(2, 1), (2, 1)]);
}

#[test]
fn subject_of_a_commit_has_an_area_and_a_verb_and_fits() {
    let longest = format!("docs: {}", "a".repeat(66));
    for (subject, offence) in [
        ("axcoop: wake the last waiter", None),
        ("a, b: wake", None),
        (longest.as_str(), None),
        (&format!("{longest}a"), Some(Rule::Commit)),
        ("wake the last waiter", Some(Rule::Commit)),
        ("Docs: wake", Some(Rule::Commit)),
        ("docs: Wake", Some(Rule::Commit)),
    ] {
        assert_eq!(subject_offence(subject), offence, "{subject}");
    }
}
