//! Consoles become files, and nothing of the user's is lost.

#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::{
    fs,
    num::NonZeroU8,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use axsched_ext::{
    pbg::stored::{Program, StoredProfile, Timing, decode, encode, write_frame},
    units::Counts,
};

fn profile(priority: Option<u8>, deadline: Option<u64>) -> Vec<u8> {
    let mut profile = profiles::profile("realtime", [0, 1].map(profiles::task));
    profile.tasks[1].priority = priority.and_then(NonZeroU8::new);
    profile.tasks[1].deadline = deadline.map(Counts);
    encode(&profile).expect("it is valid")
}

/// A folder with `console.log`, in which `profile` is.
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

    /// Whether it succeeded, its output and its errors.
    fn save(&self, file: &Path) -> (bool, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pbg-save"));
        command.arg(self.at("console.log")).arg(file);
        let output = command.output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

#[test]
fn a_profile_is_saved_and_an_unedited_one_replaced() {
    let new = profile(None, None);
    let folder = Folder::new(&new);
    let file = folder.at("pbg/a.pbg");
    let said = format!("{}, 2 tasks, {} bytes\n", file.display(), new.len());
    for old in [None, Some(new.clone()), Some(Vec::new())] {
        if let Some(old) = old {
            fs::write(&file, old).expect("a file");
        }
        assert_eq!(folder.save(&file), (true, said.clone(), String::new()));
        assert_eq!(folder.read("pbg/a.pbg"), new);
        assert_eq!(fs::read_dir(folder.at("pbg")).expect("a folder").count(), 1);
    }
}

#[test]
fn what_a_measurement_does_not_bring_back_is_kept() {
    let new = profile(None, None);
    let folder = Folder::new(&new);
    let file = folder.at("a.pbg");
    let save = |old: &[u8], name: &str| {
        fs::write(&file, old).expect("a file");
        let (good, _, errors) = folder.save(&file);
        let kept = format!("; it is kept as {}\n", folder.at(name).display());
        assert!(good && errors.ends_with(&kept), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert_eq!(folder.read("a.pbg"), new);
        assert_eq!(folder.read(name), old);
    };
    save(&profile(Some(1), None), "a.pbg.old");
    save(&profile(None, Some(5_000)), "a.pbg.old.2");
    save(&profile(Some(1), None), "a.pbg.old"); // it is there already
    save(b"no profile", "a.pbg.old.3");
    assert_eq!(folder.read("a.pbg.old"), profile(Some(1), None));

    // Of what the new one has there is nothing to lose, of anything else there is.
    let folder = Folder::new(&profile(Some(2), None));
    let file = folder.at("a.pbg");
    fs::write(&file, profile(Some(2), None)).expect("a file");
    assert_eq!(folder.save(&file).2, "");
    fs::write(&file, profile(Some(1), None)).expect("a file");
    assert_ne!(folder.save(&file).2, "");
}

/// What `--check` says of `file` for the guest of these words.
fn check(file: &Path, guest: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbg-save"));
    command.arg("--check").arg(file).args(guest.split(' '));
    let output = command.output().expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8(said).expect("it prints text"),
    )
}

#[test]
fn a_profile_for_another_guest_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("a.pbg");
    let write = |change: &dyn Fn(&mut StoredProfile)| {
        let mut profile = decode(&profile(None, None)).expect("it is valid");
        profile.header.program = Program::scaled("realtime", 10);
        change(&mut profile);
        fs::write(&file, encode(&profile).expect("valid")).expect("a file");
    };
    write(&|_| {});
    let good = (Some(0), String::new());
    assert_eq!(check(&file, "realtime x86_64 10 icount"), good);
    for (guest, why) in [
        (
            "realtime riscv64 10 icount",
            "of riscv64, found one of x86_64",
        ),
        (
            "batch x86_64 10 icount",
            "of `batch`, found one of `realtime`",
        ),
        (
            "realtime x86_64 1 icount",
            "of `realtime` at SCALE=1, found one at another",
        ),
        (
            "realtime x86_64 10 real",
            "measured in real time, found one in counted time",
        ),
    ] {
        let said = format!("expected a profile {why}\n");
        assert_eq!(check(&file, guest), (Some(1), said), "{guest}");
    }
    write(&|profile| profile.header.timing = Timing::Real);
    assert_eq!(check(&file, "realtime x86_64 10 real"), good);
    let said = "expected a profile measured in counted time, found one in real time\n";
    let refused = (Some(1), said.to_owned());
    assert_eq!(check(&file, "realtime x86_64 10 icount"), refused);
    // From before there were timings.
    write(&|profile| profile.header.timing = Timing::Unknown);
    for timing in ["real", "icount"] {
        let guest = format!("realtime x86_64 10 {timing}");
        assert_eq!(check(&file, &guest), good);
    }
}

#[test]
fn what_is_no_profile_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("a.pbg");
    let good = profile(None, None);
    let mut damaged = good.clone();
    damaged[40] ^= 1;
    let guest = "realtime x86_64 1 icount";
    for (bytes, why) in [
        (&b""[..], "not a profile: "),
        (b"no profile", "not a profile: "),
        (&good[..good.len() - 1], "truncated: "),
        (&damaged, "damaged: "),
    ] {
        fs::write(&file, bytes).expect("a file");
        let (code, said) = check(&file, guest);
        assert!(said.starts_with(why) && said.lines().count() == 1, "{said}");
        assert_eq!(code, Some(1));
    }
    // It has no end.
    let (code, said) = check(Path::new("/dev/zero"), guest);
    assert!(said.starts_with("not a profile: "), "{said}");
    assert_eq!(code, Some(1));
    assert_eq!(check(&folder.path().join("none"), guest).0, Some(1));
    for wrong in [
        "",
        "realtime",
        "realtime x86 1 icount",
        "a x86_64 1 icount 1",
    ] {
        assert_eq!(check(&file, wrong).0, Some(2), "{wrong}");
    }
}

#[test]
fn a_link_stays_one() {
    let new = profile(None, None);
    let folder = Folder::new(&new);
    fs::create_dir(folder.at("kept")).expect("a folder");
    let old = profile(Some(1), None);
    fs::write(folder.at("kept/a.pbg"), &old).expect("a file");
    symlink("kept/a.pbg", folder.at("a.pbg")).expect("a link");
    assert!(folder.save(&folder.at("a.pbg")).0);
    assert!(folder.at("a.pbg").is_symlink());
    assert_eq!(folder.read("kept/a.pbg"), new);
    assert_eq!(folder.read("kept/a.pbg.old"), old);
}

#[test]
fn what_is_no_file_is_refused_in_one_line() {
    let folder = Folder::new(&profile(None, None));
    let pipe = folder.at("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    for (file, found) in [(folder.0.path(), "a folder"), (&pipe, "a pipe")] {
        let said = format!(
            "{}: expected a regular file or nothing there, found {found}\n",
            file.display()
        );
        assert_eq!(folder.save(file), (false, said, String::new()));
    }
}
