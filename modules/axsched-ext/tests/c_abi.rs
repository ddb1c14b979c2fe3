//! The C header says what the Rust side does.

use std::collections::BTreeMap;
use std::process::Command;

use axsched_ext::syscall::{Error, sys_measure_end, sys_measure_start, sys_start_pbg};

const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include/axsched_ext.h");

const ALL: [(Error, &str); 12] = [
    (Error::NotBuiltIn, "ENOSYS"),
    (Error::NotSupported, "EOPNOTSUPP"),
    (Error::NotConnected, "ENOTCONN"),
    (Error::AlreadyMeasuring, "EALREADY"),
    (Error::NotMeasuring, "EINVAL"),
    (Error::NoProfile, "ENODATA"),
    (Error::Measuring, "EBUSY"),
    (Error::Replaying, "EBUSY"),
    (Error::AlreadyReplaying, "EALREADY"),
    (Error::NoMemory, "ENOMEM"),
    (Error::Contended, "EAGAIN"),
    (Error::BadLabel, "EILSEQ"),
];

/// `#define AXSCHED_<name> (<number>)` in the header.
fn defines() -> BTreeMap<String, i32> {
    let header = std::fs::read_to_string(HEADER).unwrap();
    let numbers = header.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("#define AXSCHED_E")?.split_once(' ')?;
        let number = rest.trim().strip_prefix('(')?.split(')').next()?;
        Some((format!("E{name}"), number.parse().unwrap()))
    });
    numbers.collect()
}

#[test]
fn every_errno_stands_in_the_header_and_no_other() {
    let mut defines = defines();
    for (error, name) in ALL {
        assert_eq!(defines.get(name), Some(&error.errno()), "{error:?}");
    }
    for (_, name) in ALL {
        defines.remove(name);
    }
    assert!(defines.is_empty(), "never returned: {defines:?}");
}

/// On a Linux host, its own C library is the authority on the numbers.
#[test]
fn the_numbers_are_linux_errnos() {
    let names: Vec<_> = defines().into_iter().collect();
    let checks: String = names
        .iter()
        .map(|(name, number)| format!("_Static_assert(-{name} == {number}, \"{name}\");\n"))
        .collect();
    let program = format!("#include <errno.h>\n{checks}");
    compile("errno", &program);
}

#[test]
fn the_header_is_plain_c_and_links_by_name() {
    let program = format!(
        "#include \"{HEADER}\"\n#include \"{HEADER}\"\n\
         int (*calls[])(void) = {{ sys_measure_start, sys_measure_end, sys_start_pbg }};\n\
         int (*label)(const char *) = sys_label_next;\n"
    );
    compile("header", &program);
}

fn compile(name: &str, program: &str) {
    let source = format!("{}/{name}.c", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&source, program).unwrap();
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&cc)
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            &source,
        ])
        .output()
        .unwrap_or_else(|e| panic!("{cc}: {e}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The host's build has no PBG selected.
#[test]
#[cfg(not(feature = "sched_pbg"))]
fn without_pbg_every_call_answers_enosys() {
    for call in [sys_measure_start, sys_measure_end, sys_start_pbg] {
        assert_eq!(call(), -38);
    }
}

/// With it, the calls reach the one control there is.
#[test]
#[cfg(feature = "sched_pbg")]
fn with_pbg_the_calls_count_and_refuse() {
    assert_eq!(sys_measure_end(), -22);
    assert_eq!(sys_start_pbg(), -61);
    assert_eq!(sys_measure_start(), 0);
    assert_eq!(sys_measure_start(), -114);
    assert_eq!(sys_start_pbg(), -16);
    assert_eq!(sys_measure_end(), 0);
    assert_eq!(sys_start_pbg(), 0);
    assert_eq!(sys_start_pbg(), -114);
    assert_eq!(sys_measure_start(), -16);
}
