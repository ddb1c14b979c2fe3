//! Profiles are saved from consoles without losing the user's edits, and checked.

#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::{
    fs,
    num::{NonZero, NonZeroU8},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use axsched_ext::{
    pbg::stored::{
        Ended, Label, Program, StoredOrder, StoredPhase, Timing, Waker, decode, encode, write_frame,
    },
    units::{Counts, TaskKey},
};

fn profile(priority: Option<u8>, deadline: Option<u64>) -> Vec<u8> {
    let mut profile = profiles::profile("realtime", [0, 1].map(profiles::task));
    profile.tasks[1].priority = priority.and_then(NonZeroU8::new);
    profile.tasks[1].deadline = deadline.map(Counts);
    encode(&profile).expect("it is valid")
}

/// Calls the program. Returns its status, its output and its errors.
fn call(change: impl FnOnce(&mut Command) -> &mut Command) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbg-save"));
    let output = change(&mut command).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A folder with `console.log`, which has `profile` in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(profile: &[u8]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder for the test"));
        let mut frame = String::new();
        write_frame(profile, &mut frame).expect("a string");
        fs::write(folder.at("console.log"), frame).expect("a file");
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).expect("a file")
    }

    fn save(&self, file: &Path) -> (Option<i32>, String, String) {
        call(|command| command.arg(self.at("console.log")).arg(file))
    }
}

#[test]
fn profile_is_saved_and_unedited_one_is_replaced() {
    let new = profile(None, None);
    let folder = Folder::new(&new);
    let file = folder.at("pbg/a.pbg");
    let said = format!("{}, 2 tasks, {} bytes\n", file.display(), new.len());
    for old in [None, Some(new.clone()), Some(Vec::new())] {
        if let Some(old) = old {
            fs::write(&file, old).expect("a file");
        }
        assert_eq!(folder.save(&file), (Some(0), said.clone(), String::new()));
        assert_eq!(folder.read("pbg/a.pbg"), new);
        assert_eq!(fs::read_dir(folder.at("pbg")).expect("a folder").count(), 1);
    }
}

/// Twice as much time is no more than twice, nor are 64 yields beyond that. In real time, neither are a
/// quarter of the turnaround and 20 ms, nor six times the time if three CPUs share a core. Tasks that sleep as
/// long each time may together have a tenth more dispatches and one each.
#[test]
fn task_that_did_much_more_in_its_replay_varies() {
    // The waits for the timer and for others, and the length of each.
    let tasks = [
        ("time", [0, 0, 0]),
        ("yields", [0, 0, 0]),
        ("sleeps", [15, 5, 100]),
        ("sleeps less", [3, 0, 75]),
        ("sleeps longer", [15, 5, 134]),
        ("waits", [14, 5, 100]),
        ("sleeps twice", [2, 0, 100]),
        ("same", [0, 0, 0]),
        ("unseen", [0, 0, 0]),
    ];
    let profile_tasks = tasks.into_iter().zip(0..).map(|((name, waits), i)| {
        let mut task = profiles::task(i);
        task.key = TaskKey::labelled(name);
        task.label = Some(Label::new(name).expect("it is short"));
        let [timers, others, each] = waits;
        for (count, by) in [(timers, Waker::Timer), (others, Waker::Task(0))] {
            if count > 0 {
                let mut phase =
                    StoredPhase::new(Ended::Block, count, Counts(count), Counts(count * each));
                phase.woken_by = by;
                task.phases.list.insert(0, phase);
            }
        }
        task
    });
    let mut profile = profiles::profile("realtime", profile_tasks);
    let smp = 3 * thread::available_parallelism().map_or(1, NonZero::get);
    let line = |phase: &str, task: &str, [run, yields, dispatches]: [u64; 3]| {
        format!(
            "SCHED-TASK {{\"app\":\"a\",\"smp\":{smp},\"phase\":\"{phase}\",\"task\":\"{task}\",\"turnaround_ns\":1600,\"run_ns\":{run},\"dispatches\":{dispatches},\"yields\":{yields}}}\n"
        )
    };
    let mut with = |timing: Timing, times: [u64; 2], yields: u64, dispatches: u64| {
        let measured = tasks.map(|(name, _)| line("measure", name, [times[0], 10, 20]));
        profile.header.timing = timing;
        let folder = Folder::new(&encode(&profile).expect("it is valid"));
        let console = fs::read_to_string(folder.at("console.log")).expect("a file");
        let replayed = [
            line("replay", "time", [times[1], 10, 20]),
            line("replay", "yields", [100, yields, 90]),
            line("replay", "sleeps", [100, 10, 28]),
            line("replay", "sleeps less", [100, 10, dispatches]),
            line("replay", "sleeps longer", [100, 10, 23]),
            line("replay", "waits", [100, 10, 90]),
            line("replay", "sleeps twice", [100, 10, 90]),
            line("replay", "same", [90, 9, 19]),
            line("replay", "other", [900, 900, 900]),
        ];
        let text = format!("{}{}{console}", measured.concat(), replayed.concat());
        fs::write(folder.at("console.log"), text).expect("a file");
        let file = folder.at("a.pbg");
        let (code, said, _) = folder.save(&file);
        let saved = decode(&folder.read("a.pbg")).expect("a profile");
        let varying = saved.tasks.iter().filter(|task| task.varies);
        let varying: Vec<String> = varying
            .map(|task| task.label.as_ref().expect("it has one").as_str().to_owned())
            .collect();
        let is_said = said.contains("(4 of which varied with the order)");
        (code, is_said, varying)
    };
    for (timing, measured, most) in [
        (Timing::Counted, 100, 200),
        (Timing::Real, 100, 20_000_500),
        (Timing::Real, 100_000_000, 600_000_000),
    ] {
        let varying = ["time", "yields", "sleeps", "sleeps less"].map(String::from);
        let found = with(timing, [measured, most + 1], 85, 19);
        assert_eq!(found, (Some(0), true, varying.to_vec()));
        assert_eq!(
            with(timing, [measured, most], 84, 18),
            (Some(0), false, Vec::new())
        );
    }
}

/// The file is a link, which stays one; old files are kept where it points to.
#[test]
fn edits_and_other_files_are_kept() {
    let new = profile(None, None);
    let folder = Folder::new(&new);
    let file = folder.at("a.pbg");
    fs::create_dir(folder.at("kept")).expect("a folder");
    symlink("kept/a.pbg", &file).expect("a link");
    for (old, name) in [
        (profile(Some(1), None), "kept/a.pbg.old"),
        (profile(None, Some(5_000)), "kept/a.pbg.old.2"),
        (profile(Some(1), None), "kept/a.pbg.old"), // it is there already
        (b"no profile".to_vec(), "kept/a.pbg.old.3"),
    ] {
        fs::write(&file, &old).expect("a file");
        let (code, _, errors) = folder.save(&file);
        let kept = format!("; it is kept as {}\n", folder.at(name).display());
        assert!(code == Some(0) && errors.ends_with(&kept), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert_eq!(folder.read("kept/a.pbg"), new);
        assert_eq!(folder.read(name), old);
        assert!(file.is_symlink());
    }
    assert_eq!(folder.read("kept/a.pbg.old"), profile(Some(1), None));

    // Only edits that the new profile does not have can be lost.
    let folder = Folder::new(&profile(Some(2), None));
    let file = folder.at("a.pbg");
    for (priority, is_kept) in [(2, false), (1, true)] {
        fs::write(&file, profile(Some(priority), None)).expect("a file");
        assert_eq!(!folder.save(&file).2.is_empty(), is_kept, "{priority}");
    }
}

/// Returns the status of `--check` for the guest of these words, and all that it says.
fn check(file: &Path, guest: &str) -> (Option<i32>, String) {
    let words = guest.split(' ');
    let (code, output, errors) = call(|command| command.arg("--check").arg(file).args(words));
    (code, output + &errors)
}

#[test]
fn check_refuses_another_guest_and_unusable_bytes_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("a.pbg");
    let with = |timing: Option<Timing>| {
        let mut profile = decode(&profile(None, None)).expect("it is valid");
        profile.header.program = Program::scaled("realtime", 10);
        profile.header.timing = timing.unwrap_or(profile.header.timing);
        encode(&profile).expect("it is valid")
    };
    let (good, real) = (with(None), with(Some(Timing::Real)));
    let old = with(Some(Timing::Unknown)); // from before there were timings
    let mut damaged = good.clone();
    damaged[40] ^= 1;
    let mut ordered = decode(&good).expect("it is valid");
    let groups = vec![0; ordered.tasks.len()];
    ordered.order = Some(StoredOrder { cpus: 4, groups });
    let ordered = encode(&ordered).expect("it is valid");
    let usage = "pbg-save: expected CONSOLE FILE, or --check";
    let its_own = "realtime x86_64 10 icount";
    for (bytes, guest, code, begin) in [
        (&good[..], its_own, 0, ""),
        (
            &good,
            "realtime riscv64 10 icount",
            1,
            "expected a profile of riscv64, found one of x86_64\n",
        ),
        (
            &good,
            "batch x86_64 10 icount",
            1,
            "expected a profile of `batch`, found one of `realtime`\n",
        ),
        (
            &good,
            "realtime x86_64 1 icount",
            1,
            "expected a profile of `realtime` at SCALE=1, found one at another\n",
        ),
        (
            &good,
            "realtime x86_64 10 real",
            1,
            "expected a profile measured in real time, found one in counted time\n",
        ),
        (&real, "realtime x86_64 10 real", 0, ""),
        (
            &real,
            its_own,
            1,
            "expected a profile measured in counted time, found one in real time\n",
        ),
        (&old, "realtime x86_64 10 real", 0, ""),
        (&old, its_own, 0, ""),
        (b"", its_own, 1, "not a profile: "),
        (b"no profile", its_own, 1, "not a profile: "),
        (&good[..good.len() - 1], its_own, 1, "truncated: "),
        (&damaged, its_own, 1, "damaged: "),
        (&good, "", 2, usage),
        (&good, "realtime", 2, usage),
        (&good, "realtime x86 10 icount", 2, usage),
        (&good, "realtime x86_64 10 icount one", 2, usage),
        (&good, "realtime x86_64 10 icount 1 1", 2, usage),
        (&good, "realtime x86_64 10 icount 1", 0, ""),
        (&ordered, its_own, 0, ""),
        (&ordered, "realtime x86_64 10 icount 4", 0, ""),
        (&ordered, "realtime x86_64 10 icount 1", 0, "PROFILE="),
    ] {
        fs::write(&file, bytes).expect("a file");
        let (found, said) = check(&file, guest);
        assert!(said.starts_with(begin), "{guest}: {said}");
        let lines = usize::from(!begin.is_empty());
        assert_eq!((found, said.lines().count()), (Some(code), lines), "{said}");
    }
    // It has no end.
    let (code, said) = check(Path::new("/dev/zero"), its_own);
    assert!(
        code == Some(1) && said.starts_with("not a profile: "),
        "{said}"
    );
    assert_eq!(check(&folder.path().join("none"), its_own).0, Some(1));
}

#[test]
fn output_that_is_no_file_is_refused_in_one_line() {
    let folder = Folder::new(&profile(None, None));
    let pipe = folder.at("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    for (file, found) in [(folder.0.path(), "a folder"), (&pipe, "a pipe")] {
        let said = format!(
            "{}: expected a regular file or nothing there, found {found}\n",
            file.display()
        );
        assert_eq!(folder.save(file), (Some(1), said, String::new()));
    }
}
