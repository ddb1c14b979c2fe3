//! Profiles as files and in console logs: shown, verified, merged, edited, compared.

mod common;
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::{
    fs::{self, File},
    io::pipe,
    num::NonZeroU8,
    os::unix::fs::symlink,
};

use axsched_ext::{
    pbg::stored::{
        Architecture, Figure, Figures, Label, PolicyName, ProgramName, StoredProfile, StoredTask,
        Timing, decode, encode, write_frame,
    },
    units::{Counts, TaskKey},
};
use common::{Ended, Lab, assert_begins, assert_has};

/// The README's program, as one run of it was: short1 is a label, the rest are paths.
fn realtime(run_of_short1: u64) -> StoredProfile {
    let runs = [3_200_105_000, run_of_short1, 36_001_000];
    let task = |(ordinal, run): (u32, u64)| {
        let label = (ordinal == 1).then_some("short1");
        StoredTask {
            key: label.map_or(TaskKey::ROOT.child(ordinal), TaskKey::labelled),
            label: label.map(|label| Label::new(label).expect("short")),
            figures: Figures {
                run: Figure::once(run),
                ready: Figure::once(3_200_000_000 - u64::from(ordinal)),
                dispatches: Figure::once(50_001),
                yields: Figure::once(50_000),
                blocks: Figure::once(1),
                ..Figures::default()
            },
            ..profiles::task(ordinal)
        }
    };
    profiles::profile("realtime", (0..).zip(runs).map(task))
}

/// A place with `a.pbg` and `b.pbg`, two runs, and `console.log` with the first.
fn lab() -> Lab {
    let lab = Lab::new();
    for (name, run) in [("a.pbg", 19_001_000), ("b.pbg", 20_001_000)] {
        let bytes = encode(&realtime(run)).expect("it is valid");
        fs::write(lab.path(name), &bytes).expect("a file");
    }
    let mut frame = String::new();
    write_frame(&encode(&realtime(19_001_000)).expect("valid"), &mut frame).expect("a string");
    let noisy = frame.replace('\n', "\r\n[  1.5] another line\r\n");
    lab.write("console.log", &format!("SeaBIOS\r\n{noisy}"));
    lab
}

fn read(lab: &Lab, name: &str) -> StoredProfile {
    decode(&fs::read(lab.path(name)).expect("a file")).expect("a profile")
}

/// Runs `schedlab profile`; words that are files are those of the lab.
fn profile(lab: &Lab, line: &str) -> Ended {
    let is_file = |word: &str| word.contains(".pbg") || word.contains(".log");
    let word = |word| format!(" {}{word}", if is_file(word) { "@" } else { "" });
    let words: String = line.split(' ').map(word).collect();
    let mut end = lab.call(&format!("profile{words}"));
    let folder = format!("{}/", lab.path("").display()).replace("//", "/");
    end.out = end.out.replace(&folder, "");
    end.err = end.err.replace(&folder, "");
    end
}

const TITLE: &str = "realtime (0123456789abcdef) on x86_64, 1 CPU, in counted time, under rr";

#[test]
fn show_is_a_table_whatever_the_profile_came_in() {
    let lab = lab();
    let end = profile(&lab, "show a.pbg");
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""), "{end:?}");
    assert_begins(
        &end.out,
        format!("{TITLE}; 1 run, 3 tasks\nTimes are in ms.\n\n"),
    );
    // Times and counts in two parts, as all of them are wider than a terminal.
    let rows = |label: &str| -> Vec<Vec<&str>> {
        let rows = end
            .out
            .lines()
            .filter(|line| line.trim().starts_with(label));
        rows.map(|row| row.split_whitespace().collect()).collect()
    };
    let times = [
        "short1",
        "19.001",
        "3200.000",
        "0.000",
        "::::::::::::::::::::",
    ];
    let counts = ["short1", "50001", "50000", "0", "1"];
    assert_eq!(rows("short1"), [&times[..], &counts]);
    assert_eq!(rows("0 ")[0][4], "##########::::::::::");
    assert_eq!(profile(&lab, "show console.log").out, end.out);

    let json = profile(&lab, "show a.pbg --json").out;
    assert_has(&json, r#""task": "short1""#);
}

#[test]
fn verify_is_one_line_and_a_status() {
    let lab = lab();
    let bytes = fs::read(lab.path("a.pbg")).expect("a file");
    let good = format!(
        "good: {TITLE}; 1 run, 3 tasks; version 1, {} bytes",
        bytes.len()
    );
    let says = |words: &str| {
        let end = profile(&lab, words);
        assert_eq!(
            (end.err.as_str(), end.out.lines().count()),
            ("", 1),
            "{end:?}"
        );
        (end.code, end.out)
    };
    assert_eq!(says("verify a.pbg"), (Some(0), format!("a.pbg: {good}\n")));
    assert_eq!(
        says("verify console.log"),
        (Some(0), format!("console.log: {good}, in a console log\n"))
    );
    let here = "--arch x86_64 --smp 1 --program 0123456789abcdef";
    assert_eq!(says(&format!("verify a.pbg {here}")).0, Some(0));

    let bad = |name: &str, bytes: &[u8], reason: &str| {
        fs::write(lab.path(name), bytes).expect("a file");
        assert_eq!(
            says(&format!("verify {name}")),
            (Some(1), format!("{name}: bad: {reason}\n"))
        );
    };
    let len = bytes.len();
    bad(
        "cut.pbg",
        &bytes[..60],
        &format!("truncated: expected {len} bytes, found 60"),
    );
    bad(
        "empty.pbg",
        b"",
        "not a profile: expected 0x89 at byte 0, found something else",
    );
    bad(
        "text.pbg",
        b"hello",
        "not a profile: expected 0x89 at byte 0, found something else",
    );
    let mut other = bytes.clone();
    other[8] = 9;
    bad(
        "other.pbg",
        &other,
        "expected a profile of version 1 to 2, found version 9",
    );
    let console = lab.read("console.log");
    let lines: Vec<_> = console
        .lines()
        .filter(|line| !line.contains("PROFILE 2 "))
        .collect();
    let frame = len.div_ceil(48);
    bad(
        "lost.log",
        lines.join("\n").as_bytes(),
        &format!(
            "expected {frame} lines of a profile, found {}; the first missing is number 2",
            frame - 1
        ),
    );
    let elsewhere = |option: &str, value: &str, reason: &str| {
        assert_eq!(
            says(&format!("verify a.pbg {option} {value}")),
            (
                Some(1),
                format!("a.pbg: bad: expected a profile {reason}\n")
            )
        );
    };
    elsewhere("--arch", "riscv64", "of riscv64, found one of x86_64");
    elsewhere("--smp", "4", "of 4 CPU(s), found one of 1");
    let other_time = "measured in real time, found one in counted time";
    elsewhere("--timing", "real", other_time);
    let end = profile(&lab, "verify --timing icount a.pbg");
    assert_eq!(end.code, Some(0), "{end:?}");
    let mut from_before = realtime(1);
    from_before.header.timing = Timing::Unknown;
    fs::write(lab.path("old.pbg"), encode(&from_before).expect("valid")).expect("a file");
    let end = profile(&lab, "verify --timing real old.pbg");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_has(&end.out, ", in unknown time, ");
    elsewhere(
        "--program",
        "1",
        "of the program with hash 0000000000000001, found one of `realtime`, 0123456789abcdef",
    );
}

#[test]
fn merge_has_the_runs_of_all() {
    let lab = lab();
    let end = profile(&lab, "merge console.log b.pbg -o both.pbg");
    assert_eq!(end.code, Some(0), "{end:?}");
    let bytes = fs::read(lab.path("both.pbg")).expect("a file").len();
    let expected = format!(
        "both.pbg: {TITLE}; 2 runs, 3 tasks; {bytes} bytes

 task     runs  run, ms: mean     least      most  CV, %
--------------------------------------------------------
 0           2       3200.105  3200.105  3200.105   0.00
 short1      2         19.501    19.001    20.001   3.63
 2           2         36.001    36.001    36.001   0.00

CV: the standard deviation of a task's run time over its mean.
Run times vary by 0.00 % (the median over the tasks), most for short1: 3.63 %.
"
    );
    assert_eq!(end.out, expected);
    let short1 = &read(&lab, "both.pbg").tasks[1];
    assert_eq!((short1.runs, short1.figures.run.mean(2)), (2, 19_501_000));
    let shown = profile(&lab, "show both.pbg").out;
    assert_has(&shown, " 19.501 ± 0.500 ");

    // A profile of several runs counts with their mean, which is less than is known.
    let end = profile(&lab, "merge both.pbg -o again.pbg");
    let said = "Some profiles are of several runs, which count with their mean: the runs differ by more.\n";
    assert_has(&end.out, said);

    let mut other = realtime(1);
    other.header.architecture = Architecture::Riscv64;
    fs::write(lab.path("riscv.pbg"), encode(&other).expect("valid")).expect("a file");
    let end = profile(&lab, "merge a.pbg riscv.pbg --out none.pbg");
    assert_eq!(
        (end.code, end.err.as_str()),
        (
            Some(2),
            "schedlab: riscv.pbg: expected the architecture x86_64, found riscv64\n"
        )
    );
    other = realtime(1);
    other.header.program.name = ProgramName::new("batch").expect("short");
    fs::write(lab.path("batch.pbg"), encode(&other).expect("valid")).expect("a file");
    let end = profile(&lab, "merge a.pbg batch.pbg --out none.pbg");
    assert_eq!(
        end.err,
        "schedlab: batch.pbg: expected the name `realtime`, found `batch` for the same program\n"
    );
    assert!(!lab.exists("none.pbg"));
}

#[test]
fn a_file_is_written_beside_nothing_but_itself() {
    let lab = lab();
    let merge = |out: &str| profile(&lab, &format!("merge a.pbg b.pbg -o {out}"));
    // Both begin as `both.pbg` does.
    lab.write("both.new", "the user's");
    lab.write("both.pbg.new", "the user's");
    assert_eq!(merge("both.pbg").code, Some(0));
    assert_eq!(lab.read("both.new"), "the user's");
    assert_eq!(lab.read("both.pbg.new"), "the user's");

    fs::create_dir(lab.path("folder.pbg")).expect("a folder");
    let end = merge("folder.pbg");
    assert_eq!(
        (end.code, end.err.as_str()),
        (
            Some(2),
            "schedlab: folder.pbg cannot be written: expected a regular file or nothing there, found a folder\n"
        )
    );
    // `edit` in place, through a link.
    symlink("a.pbg", lab.path("link.pbg")).expect("a link");
    let end = profile(&lab, "edit link.pbg --task=0 --priority=3");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(lab.path("link.pbg").is_symlink());
    assert_eq!(read(&lab, "a.pbg").tasks[0].priority, NonZeroU8::new(3));
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let lab = lab();
    let file = lab.path("a.pbg");
    let file = file.to_str().expect("text");
    for words in [
        &["profile", "show", file, "--json"][..],
        &["profile", "show", file],
        &["profile", "verify", file],
        &["profile", "diff", file, file],
        &["matrix"],
        &["compare"],
    ] {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let mut command = lab.command(words);
        command
            .stdout(writer.try_clone().expect("a pipe"))
            .stderr(writer);
        let status = command.status().expect("it starts");
        assert_eq!(status.code(), Some(0), "{words:?}");
    }
    // What was to be printed is not all that was to be done.
    assert!(lab.exists("target/lab/x86_64/yield/sched_rr.jsonl"));

    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let end = lab
        .command(&["profile", "show", file])
        .stdout(full)
        .output();
    let end = Ended::from(end.expect("it starts"));
    assert_eq!(
        (end.code, end.err.as_str()),
        (
            Some(2),
            "schedlab: standard output cannot be written: No space left on device (os error 28)\n"
        )
    );
}

#[test]
fn a_name_may_look_like_a_frame_and_a_file_be_too_large() {
    let lab = lab();
    let mut other = realtime(1);
    other.header.program.name = ProgramName::new("PBG-PROFILE-BEGIN v1").expect("short");
    fs::write(lab.path("c.pbg"), encode(&other).expect("valid")).expect("a file");
    let end = profile(&lab, "verify c.pbg");
    assert_begins(&end.out, "c.pbg: good: PBG-PROFILE-BEGIN v1 (");

    let large = File::create(lab.path("large.log")).expect("a file");
    large.set_len(100 << 20).expect("a sparse file");
    for (command, file, found) in [
        ("show", "large.log", 100 << 20),
        ("verify", "large.log", 100 << 20),
        ("show", "/dev/zero", (64 << 20) + 1),
    ] {
        let end = profile(&lab, &format!("{command} {file}"));
        let said =
            format!("schedlab: {file}: expected at most 67108864 bytes (64 MiB), found {found}\n");
        assert_eq!((end.code, end.err), (Some(2), said));
    }
}

#[test]
fn edit_sets_what_the_user_knows() {
    let lab = lab();
    let edit = |words: &str| profile(&lab, &format!("edit a.pbg {words}"));
    let end = edit("--task short1 --priority 1 --deadline 50ms -o c.pbg");
    assert_eq!(
        (end.code, end.out.as_str()),
        (
            Some(0),
            "short1: priority none, deadline none -> priority 1, deadline 50.000 ms\n"
        ),
        "{end:?}"
    );
    assert_eq!(read(&lab, "a.pbg"), realtime(19_001_000));
    let task = &read(&lab, "c.pbg").tasks[1];
    assert_eq!(task.priority.map(|p| p.get()), Some(1));
    assert_eq!(task.deadline, Some(Counts(50_000_000)));
    let shown = profile(&lab, "show c.pbg").out;
    assert!(
        shown
            .lines()
            .any(|l| l.contains("short1") && l.trim().ends_with(" 1    50.000")),
        "{shown}"
    );

    // In place, several tasks, by key and path; and back.
    let key = TaskKey::ROOT.child(0).to_string();
    let end = edit(&format!("--task {key} --task 2 --priority 7"));
    assert_eq!(end.code, Some(0), "{end:?}");
    let priorities = |lab: &Lab| -> Vec<u8> {
        let tasks = read(lab, "a.pbg").tasks;
        tasks
            .iter()
            .map(|t| t.priority.map_or(0, |p| p.get()))
            .collect()
    };
    assert_eq!(priorities(&lab), [7, 0, 7]);
    assert_eq!(edit("--task=0 --priority=0 --deadline=none").code, Some(0));
    assert_eq!(edit("--task=2 --priority none").code, Some(0));
    assert_eq!(read(&lab, "a.pbg"), realtime(19_001_000));

    // A deadline, and none again.
    for deadline in ["5000counts", "none"] {
        assert_eq!(
            edit(&format!("--task=0 --deadline {deadline}")).code,
            Some(0)
        );
        let set = read(&lab, "a.pbg").tasks[0].deadline;
        assert_eq!(set, (deadline != "none").then_some(Counts(5000)));
    }

    for (words, reason) in [
        (
            "--task nobody --priority 1",
            "schedlab: --task: expected a label, key or path of the profile, found `nobody`; it has 0 short1 2\n",
        ),
        (
            "--task 2 --deadline soon",
            "schedlab: --deadline: expected a time as 50ms, 1.5s, 20us, 100ns or 5000counts, found `soon`\n",
        ),
        (
            "--task 2 --deadline -5ms",
            "schedlab: --deadline: expected a time as 50ms, 1.5s, 20us, 100ns or 5000counts, found `-5ms`\n",
        ),
        (
            "--task 2 --priority -1",
            "schedlab: --priority: expected a whole number from 1 to 255, or none, found `-1`\n",
        ),
        (
            "--task 2 --priority 256",
            "schedlab: --priority: expected a whole number from 1 to 255, or none, found `256`\n",
        ),
    ] {
        let end = edit(words);
        assert_eq!(
            (end.code, end.err.as_str(), end.out.as_str()),
            (Some(2), reason, "")
        );
    }
    assert_eq!(edit("--task 2").code, Some(2), "nothing to do");
    let end = profile(&lab, "edit console.log --task 2 --priority 1");
    assert_eq!(
        (end.code, end.err.as_str()),
        (
            Some(2),
            "schedlab: console.log: expected --out, as a console log is not overwritten with a profile; found none\n"
        )
    );
    assert_begins(lab.read("console.log"), "SeaBIOS");
}

#[test]
fn diff_names_what_changed() {
    let lab = lab();
    let end = profile(&lab, "diff a.pbg console.log");
    assert_eq!(
        (end.code, end.out.as_str()),
        (
            Some(0),
            "3 and 3 tasks: 0 new, 0 gone, 0 changed, 3 alike within 5 %\n"
        ),
        "{end:?}"
    );
    let end = profile(&lab, "diff a.pbg b.pbg");
    assert_eq!(
        (end.code, end.out.as_str()),
        (
            Some(1),
            "short1: run 19.001 ms -> 20.001 ms (+5.3 %)\n\
             3 and 3 tasks: 0 new, 0 gone, 1 changed, 2 alike within 5 %\n"
        ),
        "{end:?}"
    );
    assert_eq!(profile(&lab, "diff a.pbg b.pbg --percent 6").code, Some(0));

    let mut shorter = realtime(19_001_000);
    shorter.tasks.remove(2);
    fs::write(lab.path("c.pbg"), encode(&shorter).expect("valid")).expect("a file");
    assert_begins(&profile(&lab, "diff a.pbg c.pbg").out, "gone: 2\n");
    assert_begins(&profile(&lab, "diff c.pbg a.pbg").out, "new: 2\n");

    let end = profile(&lab, "diff a.pbg c.pbg").out;
    let counts = "3 and 2 tasks: 0 new, 1 gone, 0 changed, 2 alike within 5 %\n";
    assert!(end.ends_with(counts), "{end}");

    let mut other = realtime(19_001_000);
    other.header.policy = PolicyName::new("fifo").expect("short");
    fs::write(lab.path("d.pbg"), encode(&other).expect("valid")).expect("a file");
    let end = profile(&lab, "diff a.pbg d.pbg");
    let title = |policy| format!("{}{policy}; 1 run, 3 tasks", TITLE.replace("rr", ""));
    let alike = "3 and 3 tasks: 0 new, 0 gone, 0 changed, 3 alike within 5 %";
    assert_eq!(
        (end.code, end.out),
        (
            Some(1),
            format!("{} -> {}\n{alike}\n", title("rr"), title("fifo"))
        )
    );

    let mut other = realtime(19_001_000);
    other.header.timing = Timing::Real;
    fs::write(lab.path("e.pbg"), encode(&other).expect("valid")).expect("a file");
    let end = profile(&lab, "diff a.pbg e.pbg");
    let title = |time| format!("{}; 1 run, 3 tasks", TITLE.replace("counted", time));
    assert_eq!(
        (end.code, end.out),
        (
            Some(1),
            format!("{} -> {}\n{alike}\n", title("counted"), title("real"))
        )
    );

    shorter.header.frequency_hz = 1;
    fs::write(lab.path("c.pbg"), encode(&shorter).expect("valid")).expect("a file");
    let end = profile(&lab, "diff a.pbg c.pbg");
    assert_eq!(
        (end.code, end.err.as_str()),
        (
            Some(2),
            "schedlab: c.pbg: expected counts of 1000000000 Hz as in a.pbg, found 1 Hz\n"
        )
    );
}

#[test]
fn what_is_no_file_or_no_profile_is_one_line() {
    let lab = lab();
    lab.write("text.log", "a console without one\n");
    for command in [
        "show",
        "merge a.pbg -o none.pbg",
        "edit --task 0 --priority 1",
        "diff a.pbg",
    ] {
        for (file, reason) in [
            (
                "text.log",
                "not a profile: expected 0x89 at byte 0, found something else",
            ),
            ("missing.pbg", "No such file or directory (os error 2)"),
        ] {
            let end = profile(&lab, &format!("{command} {file}"));
            assert_eq!(
                (end.code, end.out.as_str(), end.err),
                (Some(2), "", format!("schedlab: {file}: {reason}\n")),
                "{command:?}"
            );
        }
    }
    assert_eq!(profile(&lab, "verify missing.pbg").code, Some(2));
    assert!(!lab.exists("none.pbg"));
}
