//! Profiles of very many boots of a program, merged in little memory.

mod common;
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use axsched_ext::{
    pbg::stored::{
        Architecture, Ended as PhaseEnded, Figure, Figures, PhaseOrder, Phases, Program,
        StoredPhase, StoredProfile, StoredTask, decode, encode, merge,
    },
    units::Counts,
};
use common::{Ended, Lab, assert_ends, assert_has};

/// Boot `number` of a program with `tasks` tasks, whose run times differ from boot to boot: by
/// up to 1 % of the first task's, 2 % of the second's, and so on.
fn boot(number: u64, tasks: u32, phases: usize) -> StoredProfile {
    let task = |ordinal: u32| {
        let task = u64::from(ordinal + 1);
        // From 0 to 100, in an order that looks like none.
        let off = (number * 7919 + task * 104_729) % 101;
        let run = task * 1_000_000 + task * task * 100 * off;
        let phase = StoredPhase::new(
            PhaseEnded::Yield,
            task,
            Counts(run / phases as u64),
            Counts(0),
        );
        StoredTask {
            figures: Figures {
                run: Figure::once(run),
                ready: Figure::once(run / 3),
                dispatches: Figure::once(task * phases as u64),
                yields: Figure::once(task * phases as u64),
                ..Figures::default()
            },
            phases: Phases {
                order: PhaseOrder::AsRun,
                list: vec![phase; phases],
            },
            ..profiles::task(ordinal)
        }
    };
    profiles::profile("fleet", (0..tasks).map(task))
}

fn write(folder: &Path, name: &str, profile: &StoredProfile) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(folder).expect("a folder");
    fs::write(&path, encode(profile).expect("it is valid")).expect("a file");
    path
}

fn read(path: &Path) -> StoredProfile {
    decode(&fs::read(path).expect("a file")).expect("a profile")
}

/// `schedlab profile merge` of files of the lab.
fn merged(lab: &Lab, line: &str) -> Ended {
    let word = |word: &str| format!(" {}{word}", if word.starts_with('-') { "" } else { "@" });
    let words: String = line.split(' ').map(word).collect();
    let mut end = lab.call(&format!("profile merge{words}"));
    let folder = format!("{}/", lab.path("").display()).replace("//", "/");
    end.out = end.out.replace(&folder, "");
    end.err = end.err.replace(&folder, "");
    end
}

#[test]
fn a_fleet_merges_to_what_its_boots_are_at_once() {
    let lab = Lab::new();
    let boots: Vec<_> = (0..500).map(|number| boot(number, 64, 4)).collect();
    for (number, boot) in boots.iter().enumerate() {
        write(&lab.path("fleet"), &format!("{number:03}.pbg"), boot);
    }
    let end = merged(&lab, "fleet --out all.pbg");
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""), "{end:?}");
    let expected = merge(&boots).expect("they merge");
    assert_eq!(read(&lab.path("all.pbg")), expected);
    assert_has(&end.out, "; 500 runs, 64 tasks; ");

    let row = end
        .out
        .lines()
        .find(|line| line.trim_start().starts_with("63 "));
    let row: Vec<_> = row.expect("a row").split_whitespace().collect();
    let last = &expected.tasks[63].figures.run;
    let (mean, runs) = (last.total as f64 / 500.0, 500.0);
    let squares: f64 = (boots.iter())
        .map(|boot| boot.tasks[63].figures.run.total as f64 - mean)
        .map(|off| off * off)
        .sum();
    let percent = (squares / (runs - 1.0)).sqrt() / mean * 100.0;
    let shown = [
        "63".to_owned(),
        "500".to_owned(),
        format!("{:.3}", mean / 1e6),
        format!("{:.3}", last.least as f64 / 1e6),
        format!("{:.3}", last.most as f64 / 1e6),
        format!("{percent:.2}"),
    ];
    assert_eq!(row, shown, "{}", end.out);
    let most = format!(", most for 63: {percent:.2} %.\n");
    assert_ends(&end.out, &most);
}

#[test]
fn boots_that_do_not_belong_are_named_and_may_be_left_out() {
    let lab = Lab::new();
    let fleet = lab.path("fleet");
    let boots = [0, 1, 2].map(|number| boot(number, 3, 1));
    for (number, boot) in boots.iter().enumerate() {
        write(&fleet, &format!("{number}.pbg"), boot);
    }
    let stray = |name: &str, change: &dyn Fn(&mut StoredProfile)| {
        let mut other = boot(7, 3, 1);
        change(&mut other);
        write(&fleet, name, &other)
    };
    stray("arch.pbg", &|p| {
        p.header.architecture = Architecture::Riscv64
    });
    stray("scale.pbg", &|p| p.header.program.hash += 1);
    stray("text.pbg", &|p| {
        p.header.program = Program::scaled("other", 1)
    });
    let cut = stray("cut.log", &|_| ());
    let bytes = fs::read(&cut).expect("a file");
    fs::write(&cut, &bytes[..40]).expect("a file");
    let reasons = [
        "arch.pbg: expected the architecture x86_64, found riscv64".to_owned(),
        format!("cut.log: truncated: expected {} bytes, found 40", bytes.len()),
        "scale.pbg: expected `fleet` with hash 0123456789abcdef, found it with 0123456789abcdf0, as at another SCALE".to_owned(),
        format!(
            "text.pbg: expected the program with hash 0123456789abcdef, found `other`, {:016x}",
            Program::scaled("other", 1).hash
        ),
    ];

    let end = merged(&lab, "fleet -o all.pbg");
    let mut said: String = reasons
        .iter()
        .map(|reason| format!("fleet/{reason}\n"))
        .collect();
    said +=
        "schedlab: 4 of 7 profiles do not belong with fleet/0.pbg; --leave-out merges the others\n";
    assert_eq!((end.code, end.out.as_str(), end.err), (Some(2), "", said));
    assert!(!lab.exists("all.pbg"));

    let end = merged(&lab, "fleet --leave-out -o all.pbg");
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""), "{end:?}");
    assert_eq!(
        read(&lab.path("all.pbg")),
        merge(&boots).expect("they merge")
    );
    let mut said = "\nleft out: 4 of 7 profiles, which do not belong with fleet/0.pbg\n".to_owned();
    said.extend(reasons.iter().map(|reason| format!("    fleet/{reason}\n")));
    assert_ends(&end.out, &said);

    // The first says what belongs, wherever the others are; and nothing may.
    let end = merged(&lab, "fleet/arch.pbg fleet --leave-out -o one.pbg");
    assert_has(&end.out, "left out: 6 of 7 profiles");
    let end = merged(&lab, "fleet/cut.log --leave-out -o none.pbg");
    let said = format!("schedlab: fleet/{}\n", reasons[1]);
    assert_eq!((end.code, end.err), (Some(2), said));
}

#[test]
fn output_in_a_list_is_left_out_with_one_warning() {
    let lab = Lab::new();
    let paths = [0, 1].map(|n| write(&lab.path("fleet"), &format!("{n}.pbg"), &boot(n, 2, 1)));
    let out = lab.path("fleet/all.pbg");
    let list = paths
        .iter()
        .chain([&out, &out])
        .map(|path| format!("{}\n", path.display()));
    lab.write("list.txt", &list.collect::<String>());
    let words = "--from-list list.txt -o fleet/all.pbg";
    let warning = "--from-list list.txt: left out fleet/all.pbg, which is the output: its runs would be counted twice\n";
    // The first time there is no such file yet.
    for _ in 0..3 {
        let end = merged(&lab, words);
        assert_eq!((end.code, end.err.as_str()), (Some(0), warning));
        assert_eq!(read(&out).header.runs, 2);
    }
    // An input that is named by itself is meant: a profile that runs are added to.
    let end = merged(&lab, "fleet/all.pbg fleet/1.pbg -o fleet/all.pbg");
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
    assert_eq!(read(&out).header.runs, 3);
}

#[test]
fn names_may_come_from_a_list_and_count_once() {
    let lab = Lab::new();
    let fleet = lab.path("fleet");
    let paths = [0, 1, 2].map(|n| write(&fleet, &format!("{n}.pbg"), &boot(n, 2, 1)));
    let list = paths
        .each_ref()
        .map(|path| format!("{}\n", path.display()))
        .concat();
    lab.write("list.txt", &format!("{list}\n  \n{list}"));
    let runs = |end: Ended| {
        assert_eq!(end.code, Some(0), "{end:?}");
        read(&lab.path("all.pbg")).header.runs
    };
    assert_eq!(runs(merged(&lab, "--from-list list.txt -o all.pbg")), 3);
    let all = "fleet/2.pbg fleet --from-list list.txt -o all.pbg";
    assert_eq!(runs(merged(&lab, all)), 3);
    let words = "profile merge --from-list=- -o @all.pbg";
    let mut child = lab
        .command(&lab.words(words))
        .stdin(fs::File::open(lab.path("list.txt")).expect("a file"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.wait().expect("it ends");
    assert_eq!(runs(child.wait_with_output().expect("it ended").into()), 3);

    lab.write("blank.txt", "\n\n");
    lab.write("empty/readme", "");
    for (words, line) in [
        (
            "--from-list blank.txt -o none.pbg",
            "--from-list blank.txt: expected the names of profiles, one on each line, found none",
        ),
        (
            "--from-list no.txt -o none.pbg",
            "--from-list no.txt: No such file or directory (os error 2)",
        ),
        (
            "empty -o none.pbg",
            "empty: expected files whose names end in .pbg or .log, found none",
        ),
        (
            "fleet -o fleet/all.pbg",
            "--out fleet/all.pbg: expected a place outside of fleet, whose profiles are merged, as the next merge would count its runs again",
        ),
    ] {
        let end = merged(&lab, words);
        assert_eq!(
            (end.code, end.err),
            (Some(2), format!("schedlab: {line}\n"))
        );
    }
    assert_eq!(merged(&lab, "-o none.pbg").code, Some(2));
}

/// Runs a merge that may not have more than so much memory, in KiB: not even reserve it.
fn merged_within(kib: u32, folder: &Path, out: &Path) -> Ended {
    let script = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args([
            "-c",
            &script,
            env!("CARGO_BIN_EXE_schedlab"),
            "profile",
            "merge",
        ])
        .args([folder, Path::new("--out"), out])
        .output();
    output.expect("it starts").into()
}

/// As many as would take 200 MiB and more together.
#[test]
fn one_boot_at_a_time_is_in_memory() {
    let lab = Lab::new();
    let folder = lab.path("fleet");
    let large = boot(0, 4096, 16);
    let first = write(&folder, "0.pbg", &large);
    let task = size_of::<StoredTask>() + 16 * size_of::<StoredPhase>();
    let count = (200 << 20) / (4096 * task) + 1;
    for number in 1..count {
        let name = format!("{number}.pbg");
        fs::hard_link(&first, folder.join(name)).expect("a link");
    }
    let out = lab.path("all.pbg");
    let end = merged_within(96 << 10, &folder, &out);
    assert_eq!(end.code, Some(0), "{end:?}");
    let merged = read(&out);
    assert_eq!(
        (merged.header.runs as usize, merged.tasks.len()),
        (count, 4096)
    );
}

/// `cargo test --profile tool -p schedlab --test fleet -- --ignored --nocapture`; the boots
/// stay in `target/tmp/fleet`, for `make profile LAB='merge target/tmp/fleet -o all.pbg'`.
#[test]
#[ignore = "a benchmark: writes 10,000 files"]
#[expect(clippy::print_stderr, reason = "the time is for who runs it by hand")]
fn ten_thousand_boots_of_64_tasks_take_64_mib() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet");
    for number in 0..10_000 {
        write(&folder, &format!("{number:04}.pbg"), &boot(number, 64, 8));
    }
    let begin = Instant::now();
    let end = merged_within(64 << 10, &folder, &folder.with_extension("merged.pbg"));
    assert_eq!(end.code, Some(0), "{end:?}");
    eprintln!("merged in {:.2} s", begin.elapsed().as_secs_f64());
}
