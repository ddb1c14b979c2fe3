//! Whole matrices, run by a make that only pretends.

mod common;

use std::{
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use common::{Ended, Lab, PROJECTS, assert_begins, assert_ends, assert_has, assert_lacks};

#[test]
fn a_matrix_fills_every_cell_and_then_has_nothing_to_do() {
    let lab = Lab::new();
    let first = lab.call("matrix");
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_has(&first.out, "12/12 ok");
    assert_has(
        &first.out,
        "12 cells: 12 run, 0 up to date, 0 failed; results in ",
    );
    assert_eq!((lab.calls("build"), lab.calls("lab-boot")), (12, 12));

    let lines = lab.read("target/lab/x86_64/realtime/sched_pbg.jsonl");
    assert_eq!(lines.lines().count(), 6, "{lines}");
    assert!(
        lines.starts_with("SCHED-TASK {") && !lines.contains('\r'),
        "{lines}"
    );
    let origin = lab.read("target/lab/x86_64/realtime/sched_pbg.cell.json");
    let command =
        "make run A=apps/realtime ARCH=x86_64 FEATURES=sched_pbg SMP=1 SCALE=1 TIMING=icount";
    assert_has(&origin, command);

    let second = lab.call("matrix");
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_has(&second.out, "12 cells: 0 run, 12 up to date, 0 failed");
    assert_eq!(lab.calls("lab-boot"), 12);

    assert_eq!(lab.call("matrix --force --policy rr").code, Some(0));
    assert_eq!(lab.calls("lab-boot"), 16);
}

#[test]
fn only_what_changed_is_run_again() {
    let lab = Lab::new();
    lab.call("matrix");
    lab.write("apps/yield/src/main.rs", "2");
    let dry = lab.call("matrix --dry-run");
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert_eq!(
        dry.out.matches("make run A=apps/yield ").count(),
        6,
        "{}",
        dry.out
    );
    assert_ends(&dry.out, "6 cells to run, 6 up to date\n");
    assert_eq!(lab.calls("lab-boot"), 12, "a dry run runs nothing");
    let again = lab.call("matrix");
    assert_has(&again.out, "12 cells: 6 run, 6 up to date");
}

#[test]
fn a_part_of_the_matrix_in_another_setting_has_its_own_folder() {
    let lab = Lab::new();
    let cell = "--policy=rr,stock-rr --app yield --arch riscv64";
    let end = lab.call(&format!("matrix {cell} --scale 1000 --smp 2 --timeout 9"));
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(lab.exists("target/lab-scale1000-smp2/riscv64/yield/stock_rr.jsonl"));
    assert!(!lab.exists("target/lab"));
    let calls = lab.read("calls");
    assert_has(&calls, "lab-boot riscv64-yield-sched_rr 2 1000 real 9");
    assert_eq!(lab.calls("lab-boot"), 2);
    // Time is the host's: nothing is built while a guest runs.
    let order: Vec<_> = calls
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        order[order.len() - 4..],
        ["build", "build", "lab-boot", "lab-boot"]
    );
}

#[test]
fn a_failed_cell_shows_its_last_lines_and_the_others_still_run() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "panic");
    lab.behave("x86_64-yield-sched_rr", "no-build");
    let end = lab.call("matrix --arch x86_64");
    assert_eq!(end.code, Some(1), "{end:?}");
    for text in [
        "FAILED x86_64/realtime/sched_rr",
        "the guest panicked at src/main.rs:1 oh no",
        "        | console 30\n",
        "FAILED x86_64/yield/sched_rr",
        "        | error[E0425]: cannot find value\n",
        "6 cells: 4 run, 0 up to date, 2 failed",
        "failed: ",
    ] {
        assert_has(&end.out, text);
    }
    assert!(
        !end.out.contains("console 1\n") && !end.out.contains("make: ***"),
        "{}",
        end.out
    );
    assert_has(
        lab.read("target/lab/x86_64/realtime/sched_rr.failed.log"),
        "console 1\n",
    );

    // Failed cells are run again without being forced, and only those.
    lab.behave("x86_64-realtime-sched_rr", "good");
    lab.behave("x86_64-yield-sched_rr", "good");
    let end = lab.call("matrix --arch x86_64");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_has(&end.out, "6 cells: 2 run, 4 up to date, 0 failed");
    assert!(!lab.exists("target/lab/x86_64/realtime/sched_rr.failed.log"));
}

#[test]
fn what_a_guest_says_is_not_believed_blindly() {
    for (what, expected) in [
        ("not-passed", "\"pass\":false in phase `run`"),
        (
            "garbage",
            "result line 1: expected the keys of a result line (SCHED-RUN: EOF while parsing a value",
        ),
        (
            "other-policy",
            "expected results with sched `rr`, found `other`",
        ),
        (
            "open-account",
            "phase `run`: the account of the CPU time does not close: tasks 1.600 + main 0.010 + gc 0.010 + rest 0.000 + idle 0.010 = 1.630 ms, expected 1 x 2.000 ms within 1 %",
        ),
        (
            "no-account",
            "phase `run`: expected an account of the CPU time, found no tasks_run_ns",
        ),
        (
            "gc-spins",
            "phase `run`: gc had the CPU: 14.00 % of the time is outside the tasks (gc 13.50 %, main 0.50 %, rest 0.00 %), allowed are 2 %",
        ),
        (
            "four-percent",
            "phase `run`: gc had the CPU: 4.00 % of the time is outside the tasks (gc 2.00 %, main 1.00 %, rest 1.00 %), allowed are 2 %",
        ),
    ] {
        let lab = Lab::new();
        lab.behave("x86_64-realtime-sched_rr", what);
        let end = lab.call(&format!("matrix {RR}"));
        assert_eq!(end.code, Some(1), "{end:?}");
        assert!(end.out.contains(expected), "{what}: {}", end.out);
        assert!(!lab.exists("target/lab/x86_64/realtime/sched_rr.jsonl"));
    }
}

#[test]
fn repeated_runs_must_agree_if_time_is_counted() {
    let lab = Lab::new();
    let matrix = |more: &str| lab.call(&format!("matrix {RR} --repeat 3 {more}"));
    let good = matrix("");
    assert_eq!((good.code, lab.calls("lab-boot")), (Some(0), 3), "{good:?}");
    assert!(
        matrix("").out.contains("0 run, 1 up to date"),
        "three runs are known"
    );

    lab.behave("x86_64-realtime-sched_rr", "drift");
    let bad = matrix("--force");
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert_has(&bad.out, "run 2 differs from run 1: run long: finish_ns ");

    let real = matrix("--timing real");
    assert_eq!(real.code, Some(0), "{real:?}");
}

#[test]
fn wrong_questions_get_one_line() {
    let lab = Lab::new();
    for (arguments, expected) in [
        (
            "matrix --policy lottery",
            "schedlab: --policy lottery: expected some of sched_rr sched_pbg stock_rr\n",
        ),
        (
            "matrix --make /no/such/make",
            "schedlab: `/no/such/make -s lab-variables` cannot be started: No such file or directory (os error 2)\n",
        ),
        (
            "matrix --project /",
            "schedlab: --project /: expected a folder with scripts/lab.mk, found none there\n",
        ),
        (
            "matrix --phases=8 --timing=real",
            "schedlab: --phases 8 --smp 1 --timing real: only counted time starts at a phase of the tick; allowed are --phases 1 or --smp 1 --timing icount\n",
        ),
    ] {
        let end = lab.call(arguments);
        assert_eq!((end.code, end.err.as_str()), (Some(2), expected));
    }
    assert_eq!(lab.call("matrix --scale 0").code, Some(2));
    for phases in ["0", "65", "two"] {
        let end = lab.call(&format!("matrix --phases {phases}"));
        assert_eq!((end.code, lab.calls("build")), (Some(2), 0), "{end:?}");
        assert!(end.err.contains("1..=64") || phases == "two", "{}", end.err);
    }
    let nowhere = lab
        .command(&["matrix"])
        .current_dir("/")
        .output()
        .expect("it starts");
    assert_begins(
        &Ended::from(nowhere).err,
        "schedlab: no scripts/lab.mk in this folder or above it",
    );
}

#[test]
fn the_users_environment_does_not_reach_the_cells() {
    let lab = Lab::new();
    assert_eq!(lab.call("matrix --app=yield").code, Some(0));
    let environment = lab.read("environment");
    assert!(
        environment.lines().any(|line| line == "PROFILE_OUT="),
        "{environment}"
    );
    for name in PROJECTS.iter().chain(&["SCALE", "MAKEFLAGS"]) {
        let found = environment
            .lines()
            .find(|line| line.starts_with(&format!("{name}=")));
        assert_eq!(found, None);
    }
    let origin = |folder: &str| lab.read(&format!("{folder}/x86_64/yield/sched_rr.cell.json"));
    assert!(!origin("target/lab").contains("SCHED_YIELDS"));

    // The folder is named after what is built in.
    let end = lab.call("matrix --app=yield --results @target/lab-yields77");
    assert_eq!(end.code, Some(0), "{end:?}");
    let origin = origin("target/lab-yields77");
    assert_has(&origin, "TIMING=icount SCHED_YIELDS=77\"");
}

const RR: &str = "--arch=x86_64 --app=realtime --policy=rr";

#[test]
fn a_program_may_hold_handles_and_several_cpus_may_have_more_outside() {
    for (what, more, code) in [
        ("held", "--smp=1", 0),
        ("four-percent", "--smp=1", 1),
        ("four-percent", "--smp=2", 0),
        ("gc-spins", "--smp=2", 1),
    ] {
        let lab = Lab::new();
        lab.behave("x86_64-realtime-sched_rr", what);
        let end = lab.call(&format!("matrix {more} {RR}"));
        assert_eq!(end.code, Some(code), "{what} {more}: {end:?}");
    }
}

#[test]
fn a_cell_is_built_once_and_booted_at_every_tick_phase() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "wide");
    let matrix = |more: &str| lab.call(&format!("matrix {RR} {more}"));
    let dry = matrix("--phases=3 --dry-run");
    let command = "FEATURES=sched_rr SMP=1 SCALE=1 TIMING=icount # and with TICK_PHASE= 333 666\n";
    assert_has(&dry.out, command);
    let end = matrix("--phases=4 --repeat=2");
    assert_eq!(end.code, Some(0), "{end:?}");
    let ok = "x86_64/realtime/sched_rr           average turnaround 2.375 ms ±15.79 % over 4 tick phases\n";
    assert_has(&end.out, ok);
    let calls = lab.read("calls");
    let calls: Vec<_> = calls
        .lines()
        .filter_map(|line| line.split_once(" x86_64-realtime-sched_rr 1 1 icount "))
        .collect();
    let (build, boots) = calls.split_first().expect("it was built");
    assert_eq!(*build, ("build", ""));
    let at: Vec<_> = boots.iter().map(|(_, at)| at.trim()).collect();
    let expected = [
        "at 0", "at 0", "at 250", "at 250", "at 500", "at 500", "at 750", "at 750",
    ];
    assert_eq!(at, expected);

    let lines = lab.read("target/lab/x86_64/realtime/sched_rr.jsonl");
    let boots: Vec<_> = lines.split("\n\n").collect();
    assert_eq!(boots.len(), 4, "{lines}");
    assert!(
        boots[2].contains("\"avg_turnaround_ns\":2500000,"),
        "{lines}"
    );
    let origin = lab.read("target/lab/x86_64/realtime/sched_rr.cell.json");
    let words: String = origin.split_whitespace().collect();
    assert!(
        words.contains("\"tick_phases\":[0,250,500,750]"),
        "{origin}"
    );
}

#[test]
fn several_tick_phases_answer_for_one_and_not_the_reverse() {
    let lab = Lab::new();
    let fresh = |phases: &str| {
        let end = lab.call(&format!("matrix --phases {phases} {RR}"));
        assert_eq!(end.code, Some(0), "{end:?}");
        end.out.contains("0 run, 1 up to date")
    };
    assert!(!fresh("1"));
    assert!(!fresh("8"), "one boot is not eight");
    assert!(fresh("1") && fresh("4") && fresh("8"));
    assert!(!fresh("3"), "none of the eight is at 333");
    assert!(!fresh("8"));
}

#[test]
fn what_fails_at_one_tick_phase_fails_the_cell_and_says_where() {
    for (what, expected) in [
        (
            "gc-spins-later",
            "tick phase 500: phase `run`: gc had the CPU: 14.00 %",
        ),
        (
            "deaf-to-phase",
            "tick phase 250: expected results with tick_phase `250`, found `0`",
        ),
        ("drift", "tick phase 0: run 2 differs from run 1: "),
    ] {
        let lab = Lab::new();
        lab.behave("x86_64-realtime-sched_rr", what);
        let end = lab.call(&format!("matrix --phases=4 --repeat=2 {RR}"));
        assert_eq!(end.code, Some(1), "{end:?}");
        assert!(end.out.contains(expected), "{what}: {}", end.out);
        assert!(!lab.exists("target/lab/x86_64/realtime/sched_rr.jsonl"));
    }
}

/// The boots in real time that the fake make was asked for, in their order.
fn booted(lab: &Lab) -> Vec<String> {
    let calls = lab.read("calls");
    let boots = calls
        .lines()
        .filter_map(|call| call.strip_prefix("lab-boot "));
    boots
        .filter_map(|call| call.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn in_real_time_every_boot_is_kept_and_the_cells_of_an_app_take_turns() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "boots");
    let matrix = |more: &str| {
        let end = lab.call(&format!("matrix --smp=4 --arch=x86_64 {more}"));
        assert_eq!(end.code, Some(0), "{end:?}");
        end.out
    };
    let out = matrix("--policy=rr,pbg --repeat=4");
    let ok = "ok     x86_64/realtime/sched_rr           average turnaround 3.500 ms (2.000 to 10.000), the median of 4 boots\n";
    assert!(out.contains(ok), "{out}");
    let turns = |app: &str| {
        let turn = ["sched_rr", "sched_pbg"].map(|policy| format!("x86_64-{app}-{policy}"));
        vec![turn; 4].concat()
    };
    assert_eq!(booted(&lab), [turns("realtime"), turns("yield")].concat());
    assert_eq!(lab.calls("build"), 4, "each is built once, and before");
    assert_lacks(
        lab.read("calls").rsplit_once("build").unwrap().0,
        "lab-boot",
    );

    let lines = lab.read("target/lab-smp4/x86_64/realtime/sched_rr.jsonl");
    let boots: Vec<_> = lines.split("\n\n").collect();
    assert_eq!(boots.len(), 4, "{lines}");
    for (boot, average) in boots.iter().zip([10, 2, 3, 4]) {
        let average = format!("\"avg_turnaround_ns\":{average}000000,");
        assert!(boot.contains(&average), "{lines}");
    }
    // As many boots answer for fewer, and not the reverse.
    for (repeat, run) in [("1", 0), ("3", 0), ("4", 0), ("5", 1), ("2", 0)] {
        let out = matrix(&format!("--policy=rr --app=realtime --repeat {repeat}"));
        assert!(
            out.contains(&format!("1 cell: {run} run")),
            "{repeat}: {out}"
        );
    }
    let counted = "target/lab/x86_64/realtime/sched_pbg.jsonl";
    lab.call("matrix --arch=x86_64 --policy=pbg --repeat=2");
    assert!(!lab.read(counted).is_empty());
    assert!(!lab.read(counted).contains("\n\n") && !lab.read(counted).contains("SCHED-PBG"));
}

#[test]
fn a_boot_that_fails_in_real_time_fails_its_cell_and_no_other() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "fails-in-boot-2");
    lab.behave("x86_64-realtime-sched_pbg", "unmeasured-in-boot-3");
    let end = lab.call("matrix --smp=2 --arch=x86_64 --app=realtime --repeat=3");
    assert_eq!(end.code, Some(1), "{end:?}");
    for why in [
        "FAILED x86_64/realtime/sched_rr           boot 2 of 3: \"pass\":false in phase `run`\n",
        "FAILED x86_64/realtime/sched_pbg          boot 3 of 3: expected phases `measure replay`, found `run`\n",
    ] {
        assert_has(&end.out, why);
    }
    assert_has(&end.out, "3 cells: 1 run, 0 up to date, 2 failed");
    let boots = |policy: &str| {
        booted(&lab)
            .iter()
            .filter(|cell| cell.ends_with(policy))
            .count()
    };
    assert_eq!(
        (boots("sched_rr"), boots("stock_rr")),
        (2, 3),
        "it has no third boot"
    );
    assert!(!lab.exists("target/lab-smp2/x86_64/realtime/sched_rr.jsonl"));
    assert!(lab.exists("target/lab-smp2/x86_64/realtime/sched_rr.failed.log"));
}

#[test]
fn boots_in_real_time_are_compared_by_their_medians() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "boots");
    lab.behave("x86_64-realtime-sched_pbg", "misses-in-boot-2");
    let cells = "--smp=4 --arch=x86_64 --app=realtime";
    let end = lab.call(&format!("matrix --repeat=4 {cells}"));
    assert_eq!(end.code, Some(0), "{end:?}");
    let end = lab.call(&format!("compare --out @report {cells}"));
    assert_eq!(end.code, Some(0), "{end:?}");
    for text in [
        "realtime on x86_64: turnaround in ms (4 CPUs, real time, scale 1, 4 boots)\n",
        "4 boots in real time: the median, the least and the most\n",
        "pbg: the plan was followed to its end, by all planned tasks and no others, in 3 of 4 boots\n",
    ] {
        assert_has(&end.out, text);
    }
    let csv = lab.read("report/tables.csv");
    let row = "x86_64,realtime,4,real,1,rr,total,average,ms,10.000,2.000,2.750,3.500,5.500,10.000,4.750,4\n";
    assert_has(&csv, row);
    // What the docs make of it.
    lab.write(
        "report/page.md",
        "<!-- table {\"csv\": \"tables.csv\", \"figure\": \"average\", \"title\": \"ms\",\n\
         \"rows\": \"scheduler\", \"columns\": \"arch\", \"decimals\": 1} -->\n<!-- end -->\n",
    );
    let end = lab.call("docs @report/page.md");
    assert_eq!(end.code, Some(0), "{end:?}");
    let page = lab.read("report/page.md");
    assert_has(&page, "\n| rr | 3.5 (2.0 to 10.0) |\n");
}

/// Starts a matrix of two cells of which one hangs, and waits until it does.
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

/// Whether that process is still there, and not just waiting to be noticed.
fn alive(number: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Whether it goes. A process closes its files, by which its end is known, a
/// moment before it is gone.
fn goes(number: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while alive(number) && Instant::now() < end {
        sleep(Duration::from_millis(10));
    }
    !alive(number)
}

#[test]
fn an_interrupt_keeps_what_is_finished_and_leaves_no_guest_behind() {
    for (how, signal) in [("hang", "-INT"), ("hang", "-TERM"), ("deaf", "-INT")] {
        let lab = Lab::new();
        let (child, guest) = hanging(&lab, how);
        assert!(alive(&guest));
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(killed.expect("kill is there").success());
        let end = Ended::from(child.wait_with_output().expect("it ends"));
        assert_eq!(end.code, Some(130), "{end:?}");
        assert!(goes(&guest), "{how} {signal}: the guest is still there");
        assert_has(
            &end.out,
            "2 cells: 1 run, 0 up to date, 0 failed, 1 not run",
        );
        assert!(lab.exists("target/lab/x86_64/realtime/sched_rr.jsonl"));
        assert!(!lab.exists("target/lab/x86_64/realtime/stock_rr.jsonl"));

        lab.behave("x86_64-realtime-stock_rr", "good");
        let again = lab.call("matrix --arch=x86_64 --app=realtime --policy=rr,stock-rr");
        assert_has(&again.out, "2 cells: 1 run, 1 up to date");
    }
}
