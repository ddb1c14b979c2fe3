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
        Architecture, Figure, Figures, Label, PolicyName, ProgramName, StoredOrder, StoredProfile,
        StoredTask, Timing, decode, encode, write_frame,
    },
    units::{Counts, TaskKey},
};
use common::{Ended, Lab, assert_begins};

/// Returns a profile of the README's program: `short1` is a label, the other names are paths.
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

type Change = fn(&mut StoredProfile);

/// Changes of the run in `a.pbg`, by the name of the file that has them.
const CHANGED: [(&str, Change); 9] = [
    ("a.pbg", |_| {}),
    ("b.pbg", |it| {
        it.tasks[1].figures.run = Figure::once(20_001_000)
    }),
    ("riscv.pbg", |it| {
        it.header.architecture = Architecture::Riscv64
    }),
    ("batch.pbg", |it| it.header.program.name = name("batch")),
    ("frame.pbg", |it| {
        it.header.program.name = name("PBG-PROFILE-BEGIN v1")
    }),
    ("real.pbg", |it| it.header.timing = Timing::Real),
    ("unknown-time.pbg", |it| it.header.timing = Timing::Unknown),
    ("fifo.pbg", |it| {
        it.header.policy = PolicyName::new("fifo").expect("short")
    }),
    ("shorter.pbg", |it| drop(it.tasks.remove(2))),
];

fn name(name: &str) -> ProgramName {
    ProgramName::new(name).expect("short")
}

/// Returns a lab with the profiles of [`CHANGED`], and with `a.pbg` in `console.log`.
fn lab() -> Lab {
    let lab = Lab::new();
    for (name, change) in CHANGED {
        let mut profile = realtime(19_001_000);
        change(&mut profile);
        write(&lab, name, &encode(&profile).expect("it is valid"));
    }
    let mut frame = String::new();
    write_frame(&bytes(&lab, "a.pbg"), &mut frame).expect("a string");
    let noisy = frame.replace('\n', "\r\n[  1.5] another line\r\n");
    lab.write("console.log", &format!("SeaBIOS\r\n{noisy}"));
    lab
}

fn write(lab: &Lab, name: &str, bytes: &[u8]) {
    fs::write(lab.path(name), bytes).expect("a file");
}

fn bytes(lab: &Lab, name: &str) -> Vec<u8> {
    fs::read(lab.path(name)).expect("a file")
}

fn read(lab: &Lab, name: &str) -> StoredProfile {
    decode(&bytes(lab, name)).expect("a profile")
}

#[test]
fn show_prints_a_table_or_json() {
    let lab = lab();
    lab.assert_session(
        "profile-show.txt",
        &["profile show @a.pbg", "profile show @a.pbg --json"],
    );
    let [file, console] =
        ["a.pbg", "console.log"].map(|name| lab.call(&format!("profile show @{name}")).out);
    assert_eq!(file, console);
}

#[test]
fn verify_prints_one_line_and_sets_the_status() {
    let lab = lab();
    let good = bytes(&lab, "a.pbg");
    write(&lab, "cut.pbg", &good[..60]);
    write(&lab, "empty.pbg", b"");
    write(&lab, "text.pbg", b"hello");
    let mut other = good.clone();
    other[8] = 9;
    write(&lab, "version.pbg", &other);
    let console = lab.read("console.log");
    let is_kept = |line: &&str| !line.contains("PROFILE 2 ");
    let lines: Vec<_> = console.lines().filter(is_kept).collect();
    lab.write("lost.log", &lines.join("\n"));
    lab.assert_session(
        "profile-verify.txt",
        &[
            "profile verify @a.pbg",
            "profile verify @console.log",
            "profile verify @frame.pbg",
            "profile verify @a.pbg --arch x86_64 --smp 1 --program 0123456789abcdef --timing icount",
            "profile verify @cut.pbg",
            "profile verify @empty.pbg",
            "profile verify @text.pbg",
            "profile verify @version.pbg",
            "profile verify @lost.log",
            "profile verify @missing.pbg",
            "profile verify @a.pbg --arch riscv64",
            "profile verify @a.pbg --arch riscv",
            "profile verify @a.pbg --smp 4",
            "profile verify @a.pbg --timing real",
            "profile verify @a.pbg --program 1",
            "profile verify @unknown-time.pbg --timing real",
        ],
    );
}

#[test]
fn merge_has_the_runs_of_all() {
    let lab = lab();
    lab.assert_session(
        "profile-merge.txt",
        &[
            "profile merge @console.log @b.pbg -o @both.pbg",
            "profile show @both.pbg",
            "profile merge @both.pbg -o @again.pbg",
            "profile merge @a.pbg @riscv.pbg --out @none.pbg",
            "profile merge @a.pbg @batch.pbg --out @none.pbg",
        ],
    );
    let short1 = &read(&lab, "both.pbg").tasks[1];
    assert_eq!((short1.runs, short1.figures.run.mean(2)), (2, 19_501_000));
    assert!(!lab.has_path("none.pbg"));
}

#[test]
fn writing_a_profile_leaves_files_with_similar_names_alone() {
    let lab = lab();
    let merge = |out: &str| lab.call(&format!("profile merge @a.pbg @b.pbg -o @{out}"));
    // Both begin as `both.pbg` does.
    lab.write("both.new", "the user's");
    lab.write("both.pbg.new", "the user's");
    assert_eq!(merge("both.pbg").code, Some(0));
    assert_eq!(lab.read("both.new"), "the user's");
    assert_eq!(lab.read("both.pbg.new"), "the user's");

    // `edit` in place, through a link.
    symlink("a.pbg", lab.path("link.pbg")).expect("a link");
    let end = lab.call("profile edit @link.pbg --task=0 --priority=3");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(lab.path("link.pbg").is_symlink());
    assert_eq!(read(&lab, "a.pbg").tasks[0].priority, NonZeroU8::new(3));
}

#[test]
fn closed_standard_output_is_no_error_and_a_full_one_is() {
    let lab = lab();
    let words = |line| lab.words(line);
    for line in [
        "profile show @a.pbg --json",
        "profile show @a.pbg",
        "profile verify @a.pbg",
        "profile diff @a.pbg @a.pbg",
        "matrix",
        "compare",
    ] {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let mut command = lab.command(&words(line));
        command
            .stdout(writer.try_clone().expect("a pipe"))
            .stderr(writer);
        let status = command.status().expect("it starts");
        assert_eq!(status.code(), Some(0), "{line}");
    }
    // The output is dropped; everything else is done.
    assert!(lab.has_path("target/lab/x86_64/yield/sched_rr.jsonl"));

    let full = File::options().write(true).open("/dev/full");
    let mut command = lab.command(&words("profile show @a.pbg"));
    command.stdout(full.expect("a device"));
    let end = Ended::from(command.output().expect("it starts"));
    let said =
        "schedlab: standard output cannot be written: No space left on device (os error 28)\n";
    assert_eq!((end.code, end.err.as_str()), (Some(2), said));
}

#[test]
fn edit_sets_priorities_and_deadlines() {
    let lab = lab();
    lab.assert_session(
        "profile-edit.txt",
        &[
            "profile edit @a.pbg --task short1 --priority 1 --deadline 50ms -o @c.pbg",
            "profile show @c.pbg",
            // Nothing is written.
            "profile edit @a.pbg --task nobody --priority 1",
            "profile edit @a.pbg --task 2 --deadline soon",
            "profile edit @a.pbg --task 2 --deadline -5ms",
            "profile edit @a.pbg --task 2 --priority -1",
            "profile edit @a.pbg --task 2 --priority 256",
            "profile edit @a.pbg --task 2",
            "profile edit @console.log --task 2 --priority 1",
        ],
    );
    assert_eq!(read(&lab, "a.pbg"), realtime(19_001_000));
    assert_begins(lab.read("console.log"), "SeaBIOS");
    let set = |task: usize, file: &str| {
        let task = &read(&lab, file).tasks[task];
        (task.priority.map_or(0, NonZeroU8::get), task.deadline)
    };
    assert_eq!(set(1, "c.pbg"), (1, Some(Counts(50_000_000))));

    // In place, several tasks, by key and path; and back.
    let key = TaskKey::ROOT.child(0).to_string();
    for (words, of_0, of_2) in [
        (
            &*format!("--task {key} --task 2 --priority 7"),
            (7, None),
            (7, None),
        ),
        (
            "--task=0 --deadline 5000counts",
            (7, Some(Counts(5000))),
            (7, None),
        ),
        (
            "--task=0 --priority=0 --deadline=none",
            (0, None),
            (7, None),
        ),
        ("--task=2 --priority none", (0, None), (0, None)),
    ] {
        let end = lab.call(&format!("profile edit @a.pbg {words}"));
        assert_eq!(end.code, Some(0), "{end:?}");
        assert_eq!((set(0, "a.pbg"), set(2, "a.pbg")), (of_0, of_2), "{words}");
    }
    assert_eq!(read(&lab, "a.pbg"), realtime(19_001_000));
}

/// The times of the two differ, as one is measured in real time.
#[test]
fn edit_takes_over_the_order_of_the_same_tasks() {
    let lab = lab();
    let mut planned = realtime(19_001_000);
    let groups = vec![2, 0, 1];
    planned.order = Some(StoredOrder { cpus: 4, groups });
    write(&lab, "planned.pbg", &encode(&planned).expect("valid"));
    lab.assert_session(
        "profile-order.txt",
        &[
            "profile edit @real.pbg --order @planned.pbg",
            "profile edit @a.pbg --order @b.pbg",
            "profile edit @shorter.pbg --order @planned.pbg",
            "profile edit @riscv.pbg --order @planned.pbg",
            "profile edit @a.pbg --order @planned.pbg --priority 1",
        ],
    );
    let real = read(&lab, "real.pbg");
    assert_eq!(real.order, planned.order);
    assert_eq!(real.header.timing, Timing::Real);
    assert_eq!(read(&lab, "a.pbg"), realtime(19_001_000));
}

#[test]
fn diff_names_what_changed() {
    let lab = lab();
    let mut other_clock = realtime(19_001_000);
    other_clock.header.frequency_hz = 1;
    write(
        &lab,
        "other-clock.pbg",
        &encode(&other_clock).expect("valid"),
    );
    lab.assert_session(
        "profile-diff.txt",
        &[
            "profile diff @a.pbg @console.log",
            "profile diff @a.pbg @b.pbg",
            "profile diff @a.pbg @b.pbg --percent 6",
            "profile diff @a.pbg @b.pbg --percent=-1",
            "profile diff @a.pbg @shorter.pbg",
            "profile diff @shorter.pbg @a.pbg",
            "profile diff @a.pbg @fifo.pbg",
            "profile diff @a.pbg @real.pbg",
            "profile diff @a.pbg @other-clock.pbg",
        ],
    );
}

#[test]
fn unreadable_files_are_refused_in_one_line() {
    let lab = lab();
    lab.write("text.log", "a console without one\n");
    fs::create_dir(lab.path("folder.pbg")).expect("a folder");
    let large = File::create(lab.path("large.log")).expect("a file");
    large.set_len(100 << 20).expect("a sparse file");
    lab.assert_session(
        "profile-refused.txt",
        &[
            "profile show @text.log",
            "profile merge @a.pbg -o @none.pbg @text.log",
            "profile edit --task 0 --priority 1 @text.log",
            "profile diff @a.pbg @text.log",
            "profile show @missing.pbg",
            "profile merge @a.pbg -o @none.pbg @missing.pbg",
            "profile edit --task 0 --priority 1 @missing.pbg",
            "profile diff @a.pbg @missing.pbg",
            "profile show @large.log",
            "profile verify @large.log",
            "profile show /dev/zero",
            "profile merge @a.pbg @b.pbg -o @folder.pbg",
        ],
    );
    assert!(!lab.has_path("none.pbg"));
}
