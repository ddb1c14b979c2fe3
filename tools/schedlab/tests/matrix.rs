//! Whole matrices, run by a make that only pretends.

mod common;

use std::{
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use common::{Ended, Lab, PROJECTS, assert_begins, assert_has};

const RR: &str = "--arch=x86_64 --app=realtime --policy=rr";

#[test]
fn matrix_fills_every_cell_and_runs_again_only_what_changed() {
    let lab = Lab::new();
    lab.shows("matrix --jobs=1");
    assert_eq!((lab.calls("build"), lab.calls("lab-boot")), (12, 12));
    lab.shows_file("target/lab/x86_64/realtime/sched_pbg.jsonl");
    lab.shows("matrix --jobs=1");
    lab.shows("matrix --jobs=1 --force --policy rr");
    lab.write("apps/yield/src/main.rs", "2");
    lab.shows("matrix --dry-run");
    assert_eq!(lab.calls("lab-boot"), 16);
    lab.shows("matrix --jobs=1");
    // An origin of another version of this program does not count.
    let origin = "target/lab/x86_64/realtime/sched_pbg.cell.json";
    lab.write(origin, &lab.read(origin).replace("tick_phases", "phases"));
    lab.shows("matrix --jobs=1");
    lab.matches("matrix/all");
}

#[test]
fn each_setting_has_its_own_folder_and_builds_come_first_in_real_time() {
    let lab = Lab::new();
    let cells = "--policy=rr,stock-rr --app yield --arch riscv64";
    lab.shows(&format!("matrix {cells} --scale 1000 --smp 2 --timeout 9"));
    assert!(lab.has_path("target/lab-scale1000-smp2/riscv64/yield/stock_rr.jsonl"));
    assert!(!lab.has_path("target/lab"));
    lab.shows_file("calls");
    lab.matches("matrix/setting");
}

#[test]
fn failed_cells_show_their_last_lines_and_are_run_again() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "panic");
    lab.shows("matrix --jobs=1 --arch x86_64 --app=realtime");
    lab.shows_file("target/lab/x86_64/realtime/sched_rr.failed.log");
    lab.behave("x86_64-realtime-sched_rr", "no-build");
    lab.shows(&format!("matrix {RR}"));
    lab.behave("x86_64-realtime-sched_rr", "good");
    lab.shows("matrix --arch x86_64 --app=realtime");
    lab.matches("matrix/failed");
    assert!(!lab.has_path("target/lab/x86_64/realtime/sched_rr.failed.log"));
}

#[test]
fn bad_results_of_a_guest_fail_its_cell() {
    let lab = Lab::new();
    for (what, more) in [
        ("not-passed", ""),
        ("garbage", ""),
        ("other-policy", ""),
        ("open-account", ""),
        ("no-account", ""),
        ("gc-spins", ""),
        ("gc-spins", "--smp=2"),
        ("four-percent", ""),
        // Several CPUs may have more outside the tasks, and a program may hold handles.
        ("four-percent", "--smp=2"),
        ("held", ""),
        ("gc-spins-later", "--phases=4"),
        ("deaf-to-phase", "--phases=4"),
        ("drift", "--phases=4 --repeat=2"),
        ("drift", "--repeat=3"),
        ("drift", "--repeat=3 --timing=real"),
    ] {
        lab.behave("x86_64-realtime-sched_rr", what);
        lab.write("calls", "");
        lab.shows(&format!("matrix --force {more} {RR}"));
        let is_kept = lab.has_path("target/lab/x86_64/realtime/sched_rr.jsonl");
        assert_eq!(is_kept, what == "held", "{what}");
        if what == "held" {
            lab.remove("target/lab/x86_64/realtime/sched_rr.jsonl");
        }
    }
    lab.matches("matrix/bad-results");
}

#[test]
fn wrong_options_are_refused_in_one_line() {
    let lab = Lab::new();
    for arguments in [
        "--policy lottery",
        "--app nope",
        "--make /no/such/make",
        "--project /",
        "--phases=8 --timing=real",
        "--smp=4 --timing=icount",
        "--shard 0/8",
        "--shard 9/8",
        "--shard 2",
        "--shard a/b",
        "--shard -1/2",
        "--shard 1/0",
        "--shard 1/8/2",
        "--shard 1/",
        "--shard=",
        "--scale 0",
        "--phases 0",
        "--phases 65",
        "--phases two",
        "--yields 0",
        "--yields 7",
    ] {
        lab.shows(&format!("matrix {arguments}"));
    }
    lab.matches("matrix/refused");
    assert_eq!(lab.calls("build"), 0);
    let mut nowhere = lab.command(&["matrix"]);
    let nowhere = nowhere.current_dir("/").output().expect("it starts");
    assert_begins(
        &Ended::from(nowhere).err,
        "schedlab: no scripts/lab.mk in this folder or above it",
    );
}

#[test]
fn environment_of_the_user_does_not_reach_the_cells() {
    let lab = Lab::new();
    lab.good("matrix --app=yield");
    let environment = lab.read("environment");
    let value = |name: &str| {
        let mut lines = environment.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    assert_eq!(value("PROFILE_OUT"), Some(""));
    for name in PROJECTS.iter().chain(&["SCALE", "MAKEFLAGS"]) {
        assert_eq!(value(name), None, "{name}");
    }
    lab.good("matrix --app=yield --yields 77");
    let origin = lab.read("target/lab-yields77/x86_64/yield/sched_rr.cell.json");
    assert_has(&origin, "TIMING=icount T=77\"");
}

#[test]
fn cell_is_built_once_and_booted_at_every_tick_phase() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "wide");
    let matrix = |more: &str| lab.shows(&format!("matrix {RR} {more}"));
    matrix("--phases=3 --dry-run");
    matrix("--phases=4 --repeat=2");
    lab.shows_file("target/lab/x86_64/realtime/sched_rr.jsonl");
    let origin = lab.read("target/lab/x86_64/realtime/sched_rr.cell.json");
    let words: String = origin.split_whitespace().collect();
    assert_has(words, "\"tick_phases\":[0,250,500,750]");
    // More phases and runs answer for fewer, and not the reverse.
    for more in [
        "--phases=2 --repeat=2",
        "--phases=1",
        "--repeat=3",
        "--phases=8",
        "--phases=4",
    ] {
        matrix(more);
    }
    matrix("--phases=3");
    lab.shows_file("calls");
    lab.matches("matrix/tick-phases");
}

#[test]
fn boots_in_real_time_are_all_kept_and_the_cells_of_an_app_alternate() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "boots");
    lab.shows("matrix --smp=4 --arch=x86_64 --policy=rr,pbg --repeat=4");
    lab.shows_file("calls");
    lab.shows_file("target/lab-smp4/x86_64/realtime/sched_rr.jsonl");
    // More boots answer for fewer, and not the reverse.
    for repeat in [1, 3, 4, 5, 2] {
        let cell = "--smp=4 --arch=x86_64 --policy=rr --app=realtime";
        lab.shows(&format!("matrix {cell} --repeat {repeat}"));
    }
    // Counted time keeps one of several runs, without the lines on the profile.
    lab.good("matrix --arch=x86_64 --policy=pbg --repeat=2");
    lab.shows_file("target/lab/x86_64/realtime/sched_pbg.jsonl");
    lab.matches("matrix/real-time");
}

#[test]
fn boot_that_fails_in_real_time_fails_its_cell_and_no_other() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "fails-in-boot-2");
    lab.behave("x86_64-realtime-sched_pbg", "unmeasured-in-boot-3");
    lab.shows("matrix --smp=2 --arch=x86_64 --app=realtime --repeat=3");
    lab.shows_file("calls");
    lab.matches("matrix/real-time-failed");
    assert!(!lab.has_path("target/lab-smp2/x86_64/realtime/sched_rr.jsonl"));
    assert!(lab.has_path("target/lab-smp2/x86_64/realtime/sched_rr.failed.log"));
}

#[test]
fn boots_in_real_time_are_compared_by_their_medians() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "boots");
    lab.behave("x86_64-realtime-sched_pbg", "misses-in-boot-2");
    let cells = "--smp=4 --arch=x86_64 --app=realtime";
    lab.good(&format!("matrix --repeat=4 {cells}"));
    lab.shows(&format!("compare --out @report {cells}"));
    lab.shows_file("report/tables.csv");
    lab.write(
        "report/page.md",
        "<!-- table {\"csv\": \"tables.csv\", \"figure\": \"average\", \"title\": \"ms\",\n\
         \"rows\": \"scheduler\", \"columns\": \"arch\", \"decimals\": 1} -->\n<!-- end -->\n",
    );
    lab.good("docs @report/page.md");
    lab.shows_file("report/page.md");
    lab.matches("matrix/real-time-compared");
}

/// Starts a matrix of two cells, one of which hangs, and waits until it does.
fn hanging(lab: &Lab, how: &str) -> (Child, String) {
    lab.behave("x86_64-realtime-stock_rr", how);
    let line = "matrix --arch=x86_64 --app=realtime --policy=rr,stock-rr --jobs=1";
    let child = lab
        .command(&lab.words(line))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let end = Instant::now() + Duration::from_secs(20);
    while lab.read("running").is_empty() {
        assert!(
            Instant::now() < end,
            "the guest did not start: {}",
            lab.read("calls")
        );
        sleep(Duration::from_millis(20));
    }
    (child, lab.read("running").trim().to_owned())
}

/// Returns true if the process exists and is no zombie.
fn is_alive(number: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Returns true if the process ends within five seconds. A process closes its files, by which
/// its end is known, a moment before it is gone.
fn ends_soon(number: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while is_alive(number) && Instant::now() < end {
        sleep(Duration::from_millis(10));
    }
    !is_alive(number)
}

#[test]
fn interrupt_keeps_finished_cells_and_leaves_no_guest() {
    for (how, signal) in [("hang", "-INT"), ("hang", "-TERM"), ("deaf", "-INT")] {
        let lab = Lab::new();
        let (child, guest) = hanging(&lab, how);
        assert!(is_alive(&guest));
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(killed.expect("kill is there").success());
        let end = Ended::from(child.wait_with_output().expect("it ends"));
        assert_eq!(end.code, Some(130), "{end:?}");
        assert!(
            ends_soon(&guest),
            "{how} {signal}: the guest is still there"
        );
        assert_has(
            &end.out,
            "2 cells: 1 run, 0 up to date, 0 failed, 1 not run",
        );
        assert!(lab.has_path("target/lab/x86_64/realtime/sched_rr.jsonl"));
        assert!(!lab.has_path("target/lab/x86_64/realtime/stock_rr.jsonl"));

        lab.behave("x86_64-realtime-stock_rr", "good");
        let again = lab.call("matrix --arch=x86_64 --app=realtime --policy=rr,stock-rr");
        assert_has(&again.out, "2 cells: 1 run, 1 up to date");
    }
}
