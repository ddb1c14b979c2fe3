//! Merges of the profiles of many boots of a program, in little memory.

mod common;
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
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

/// Returns boot `number` of a program with `tasks` tasks. Run times differ between boots: by up to
/// 1 % for the first task, 2 % for the second, and so on.
fn boot(number: u64, tasks: u32, phases: usize) -> StoredProfile {
    let task = |ordinal: u32| {
        let task = u64::from(ordinal + 1);
        // From 0 to 100, in no apparent order.
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

#[test]
fn fleet_merges_to_the_same_as_its_boots_at_once() {
    let lab = Lab::new();
    let boots: Vec<_> = (0..500).map(|number| boot(number, 64, 4)).collect();
    for (number, boot) in boots.iter().enumerate() {
        write(&lab.path("fleet"), &format!("{number:03}.pbg"), boot);
    }
    let end = lab.good("profile merge @fleet --out @all.pbg");
    assert_eq!(end.err, "");
    let expected = merge(&boots).expect("they merge");
    assert_eq!(read(&lab.path("all.pbg")), expected);
    assert_has(&end.out, "; 500 runs, 64 tasks; ");

    let mut lines = end.out.lines();
    let row = lines.find(|line| line.trim_start().starts_with("63 "));
    let row: Vec<_> = row.expect("a row").split_whitespace().collect();
    let last = &expected.tasks[63].figures.run;
    let (mean, runs) = (last.total as f64 / 500.0, 500.0);
    let squares: f64 = (boots.iter())
        .map(|boot| boot.tasks[63].figures.run.total as f64 - mean)
        .map(|off| off * off)
        .sum();
    let percent = (squares / (runs - 1.0)).sqrt() / mean * 100.0;
    let [mean, least, most] = [mean, last.least as f64, last.most as f64].map(|ns| ns / 1e6);
    let shown = format!("63 500 {mean:.3} {least:.3} {most:.3} {percent:.2}");
    assert_eq!(row.join(" "), shown, "{}", end.out);
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

    lab.shows("profile merge @fleet -o @all.pbg");
    assert!(!lab.has_path("all.pbg"));
    lab.shows("profile merge @fleet --leave-out -o @all.pbg");
    assert_eq!(
        read(&lab.path("all.pbg")),
        merge(&boots).expect("they merge")
    );
    // The first decides which belong, and they may be none.
    lab.shows("profile merge @fleet/arch.pbg @fleet --leave-out -o @one.pbg");
    lab.shows("profile merge @fleet/cut.log --leave-out -o @none.pbg");
    lab.matches("fleet/left-out");
}

#[test]
fn names_may_come_from_a_list_and_count_once() {
    let lab = Lab::new();
    let fleet = lab.path("fleet");
    let paths = [0, 1, 2].map(|n| write(&fleet, &format!("{n}.pbg"), &boot(n, 2, 1)));
    let list = paths.map(|path| format!("{}\n", path.display())).concat();
    lab.write("list.txt", &format!("{list}\n  \n{list}"));
    let runs = |path: &str| read(&lab.path(path)).header.runs;
    for words in [
        "--from-list @list.txt",
        "@fleet/2.pbg @fleet --from-list @list.txt",
    ] {
        lab.good(&format!("profile merge {words} -o @all.pbg"));
        assert_eq!(runs("all.pbg"), 3);
    }
    let mut command = lab.command(&lab.words("profile merge --from-list=- -o @input.pbg"));
    let list = fs::File::open(lab.path("list.txt")).expect("a file");
    let end = Ended::from(command.stdin(list).output().expect("it starts"));
    assert_eq!((end.code, runs("input.pbg")), (Some(0), 3), "{end:?}");

    // The output in a list is left out with a warning. The first time it does not exist yet.
    let out = format!("{}\n", lab.path("fleet/all.pbg").display());
    lab.write(
        "with-output.txt",
        &format!("{}{out}{out}", lab.read("list.txt")),
    );
    for _ in 0..3 {
        lab.shows("profile merge --from-list @with-output.txt -o @fleet/all.pbg");
        assert_eq!(runs("fleet/all.pbg"), 3);
    }
    // An output that is an argument is an input, too: a profile that runs are added to.
    lab.shows("profile merge @fleet/all.pbg @fleet/1.pbg -o @fleet/all.pbg");
    assert_eq!(runs("fleet/all.pbg"), 4);

    lab.write("blank.txt", "\n\n");
    lab.write("empty/readme", "");
    for words in [
        "--from-list @blank.txt -o @none.pbg",
        "--from-list @no.txt -o @none.pbg",
        "@empty -o @none.pbg",
        "@fleet -o @fleet/all.pbg",
        "-o @none.pbg",
    ] {
        lab.shows(&format!("profile merge {words}"));
    }
    lab.matches("fleet/lists");
}

/// Runs a merge that may reserve no more than `kib` KiB of memory.
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

/// All boots together would take more than 200 MiB.
#[test]
fn merge_has_one_boot_in_memory_at_a_time() {
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
#[expect(clippy::print_stderr, reason = "a benchmark prints its time")]
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
