//! The plan of a recording: the table, the profile that is written, and what ends the search.

mod common;
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::fs;

use axsched_ext::{
    pbg::stored::{
        Ended as RunEnded, Figure, Figures, Label, Phases, Program, StoredPhase, StoredProfile,
        StoredTask, Waker, Wakes, Woken, decode, encode,
    },
    units::{Counts, TaskKey},
};
use common::{Ended, Lab, assert_begins, assert_has, assert_lacks};

const MS: u64 = 1_000_000;
const PLAN: &str = "plan --costs #docs/results/cost.csv --results #docs/results/tables.csv";

/// Returns a task of one run interval, after it has waited for `waits`, at whose end it wakes
/// `wakes`.
fn task(
    ordinal: u32,
    name: &str,
    run_ms: u64,
    waits: Option<u16>,
    wakes: Option<u16>,
) -> StoredTask {
    let run = run_ms * MS;
    let mut list = Vec::new();
    list.extend(waits.map(|waker| StoredPhase {
        woken_by: Waker::Task(waker),
        ..StoredPhase::new(RunEnded::Block, 1, Counts(200), Counts(60 * MS))
    }));
    list.push(StoredPhase {
        wakes: Wakes::of(wakes.map(|whom| Woken {
            whom: Waker::Task(whom),
            count: 1,
            after: Counts(run),
        })),
        ..StoredPhase::new(RunEnded::Exit, 1, Counts(run), Counts::ZERO)
    });
    let blocks = u64::from(waits.is_some());
    StoredTask {
        key: TaskKey::labelled(name),
        label: Some(Label::new(name).expect("short")),
        figures: Figures {
            run: Figure::once(run + 200 * blocks),
            ready: Figure::once(500 * MS),
            blocked: Figure::once(60 * MS * blocks),
            dispatches: Figure::once(1 + blocks),
            blocks: Figure::once(blocks),
            ..Figures::default()
        },
        phases: Phases {
            list,
            ..Phases::default()
        },
        ..profiles::task(ordinal)
    }
}

/// Returns a recording in which `report` waits for `load`.
fn recording() -> StoredProfile {
    let tasks = [
        task(0, "load", 30, None, Some(1)),
        task(1, "report", 10, Some(0), None),
        task(2, "middle", 25, None, None),
        task(3, "long", 35, None, None),
    ];
    let mut profile = profiles::profile("waits", tasks);
    profile.header.program = Program::scaled("waits", 1);
    profile
}

/// Returns a lab with the [`recording`], changed so, in `waits.pbg`.
fn lab(change: impl FnOnce(&mut StoredProfile)) -> Lab {
    let lab = Lab::new();
    let mut profile = recording();
    change(&mut profile);
    save(&lab, "waits.pbg", &profile);
    lab
}

fn save(lab: &Lab, name: &str, profile: &StoredProfile) {
    let bytes = encode(profile).expect("it is valid");
    fs::write(lab.path(name), bytes).expect("a file");
}

fn plan(lab: &Lab, options: &str) -> Ended {
    lab.good(&format!("{PLAN} @waits.pbg --out @plan.pbg {options}"))
}

/// Returns the value of a row of the table.
fn value(ended: &Ended, name: &str) -> f64 {
    let rows = ended.out.lines().map(str::trim);
    let mut rows = rows.filter_map(|line| line.strip_prefix(name));
    let row = rows
        .next()
        .unwrap_or_else(|| panic!("{name}: {}", ended.out));
    let value = row.split_whitespace().find_map(|word| word.parse().ok());
    value.unwrap_or_else(|| panic!("{row}"))
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(off < 0.05, "{found}, expected {expected}");
}

fn written(lab: &Lab) -> StoredProfile {
    decode(&fs::read(lab.path("plan.pbg")).expect("a file")).expect("a profile")
}

#[test]
fn best_order_is_written_and_two_runs_do_the_same() {
    let lab = lab(|_| {});
    let ended = plan(&lab, "--plays 100");
    assert_begins(
        &ended.out,
        "waits on x86_64, 1 CPU: average turnaround in ms (model, ",
    );
    // They end at 30, 40, 65 and 100; without the wait known at 25, 55, 65 and 100.
    assert_near(value(&ended, "(bound)"), 58.75);
    assert_near(value(&ended, "rule "), 58.75);
    assert_near(value(&ended, "search "), 58.75);
    assert_near(value(&ended, "without waits "), 61.25);
    assert_has(&ended.out, ", the best without a plan ");
    assert_lacks(&ended.out, "long paths first");
    assert_has(&ended.out, "in 100 plays with seed 1.\n");
    assert_has(&ended.out, "Written is the order `rule`.");
    let run = "make run A=waits FEATURES=sched_pbg PROFILE=";
    assert_has(&ended.out, run);
    let order = written(&lab).order.expect("an order");
    assert_eq!((order.cpus, &order.groups[..]), (1, &[0, 1, 2, 2][..]));
    let expected = StoredProfile {
        order: Some(order),
        ..recording()
    };
    assert_eq!(written(&lab), expected, "nothing else changed");

    let bytes = fs::read(lab.path("plan.pbg")).expect("a file");
    assert_eq!(plan(&lab, "--plays 100").out, ended.out);
    assert_eq!(fs::read(lab.path("plan.pbg")).expect("a file"), bytes);
    // A plan of a plan is that of the recording.
    let again = lab.good(&format!("{PLAN} @plan.pbg --out @plan.pbg --plays 100"));
    assert_eq!(again.out, ended.out);
}

#[test]
fn search_takes_the_aim_that_is_asked_for() {
    let lab = lab(|profile| profile.tasks[3].deadline = Some(Counts(70 * MS)));
    let late = plan(&lab, "--aim deadlines --plays 200");
    assert_has(&late.out, "time beyond deadlines, of all tasks, in ms");
    assert_near(value(&late, "(bound)"), 0.0);
    assert_near(value(&late, "rule "), 0.0);
    assert_near(value(&late, "rule, task by task"), 30.0);

    // On two CPUs the chain of 40 beside 60, or 50 beside 50.
    let makespan = plan(&lab, "--aim makespan --cpus 2 --plays 200");
    assert_near(value(&makespan, "(bound)"), 50.0);
    let [searched, plain] = ["search ", "without waits "].map(|name| value(&makespan, name));
    assert!(searched <= plain, "{}", makespan.out);
    assert_has(&makespan.out, "FEATURES=sched_pbg SMP=2 PROFILE=");
    assert_eq!(written(&lab).order.expect("an order").cpus, 2);

    // `report` needs 40 and computes 10.
    let slowdown = plan(&lab, "--aim slowdown --plays 200");
    assert_near(value(&slowdown, "(bound)"), 4.0);
    assert!(value(&slowdown, "search ") >= 4.0, "{}", slowdown.out);
}

/// Without preemption `load` ends before `report` looks, so that recording has no wait.
#[test]
fn policies_without_preemption_have_the_waits_of_the_other_recording() {
    let lab = lab(|_| {});
    let mut other = recording();
    other.tasks[0].phases.list[0].wakes = Wakes::default();
    other.tasks[1].phases.list.remove(0);
    save(&lab, "coop.pbg", &other);
    let [alone, both] = ["", "--cooperative @coop.pbg"]
        .map(|other| plan(&lab, &format!("--cpus 2 --plays 0 {other}")));
    for row in ["fifo, the best without a plan ", "(bound)"] {
        assert_near(value(&both, row), value(&alone, row));
    }
}

/// `middle` looks whether `long` has ended, and yields. It ends last, and how often it looks depends on
/// the order.
#[test]
fn task_that_polls_goes_behind_the_one_that_it_waits_for() {
    let with_looks = |looks: u64| {
        move |profile: &mut StoredProfile| {
            let middle = &mut profile.tasks[2];
            let run = looks * 1_000; // each takes a microsecond
            middle.figures.run = Figure::once(25 * MS + run);
            middle.figures.ready = Figure::once(520 * MS);
            middle.figures.yields = Figure::once(looks);
            let look = StoredPhase::new(RunEnded::Yield, looks, Counts(run), Counts::ZERO);
            middle.phases.list.insert(0, look);
        }
    };
    let lab = lab(with_looks(1_000));
    let mut other = recording();
    with_looks(10)(&mut other);
    save(&lab, "coop.pbg", &other);
    let after_long = |other: &str| {
        let ended = plan(&lab, &format!("--plays 0 {other}"));
        let groups = written(&lab).order.expect("an order").groups;
        let gain = value(&ended, "without waits ") - value(&ended, "rule ");
        (groups[2] > groups[3], gain > 5.0)
    };
    assert_eq!(after_long(""), (false, false), "one order tells nothing");
    assert_eq!(after_long("--cooperative @coop.pbg"), (true, true));
}

#[test]
fn default_file_names_program_architecture_scale_and_cpus() {
    let lab = lab(|profile| profile.header.program = Program::scaled("waits", 10));
    let line = format!("{PLAN} @waits.pbg --scale 10 --cpus 2 --plays 0");
    let ended = lab.good(&line);
    // The lab runs its commands in this folder.
    let file = "target/plans/waits-x86_64-scale10-smp2.pbg";
    assert!(lab.has_path(&format!("apps/realtime/{file}")));
    // Time is real there, so the order goes into a profile that was measured so.
    let measured = "target/pbg/waits-x86_64-scale10-real.pbg";
    assert_has(&ended.out, format!("'edit {measured} --order {file}'"));
    assert_has(&ended.out, format!("SCALE=10 SMP=2 PROFILE={measured}"));
    assert_has(&ended.out, "in 0 plays");
}

#[test]
fn questions_without_an_answer_are_refused() {
    let lab = lab(|_| {});
    lab.assert_session(
        "plan-refused.txt",
        &[
            &format!("{PLAN} @waits.pbg --aim deadlines"),
            &format!("{PLAN} @waits.pbg --app realtime"),
            &format!("{PLAN} @missing.pbg"),
        ],
    );
    for (option, part) in [
        (
            "--aim average2",
            "possible values: average, makespan, slowdown, deadlines",
        ),
        ("--cpus 65", "65 is not in 1..=64"),
        ("--plays 1000001", "is not in 0..=1000000"),
        ("--seconds 0", "is not in 1..="),
        ("--seed x", "invalid digit"),
    ] {
        let ended = lab.call(&format!("{PLAN} @waits.pbg {option}"));
        assert_eq!(ended.code, Some(2), "{option}");
        assert_has(&ended.err, part);
    }
    assert!(!lab.has_path("apps/realtime/target/plans"));
}

#[test]
fn time_and_an_interrupt_end_the_search_and_keep_the_best() {
    let lab = lab(|_| {});
    let ended = plan(&lab, "--plays 1000000 --seconds 1");
    assert_has(&ended.err, "--seconds 1 ended the search after ");
    assert_near(value(&ended, "search "), 58.75);

    let words = format!("{PLAN} @waits.pbg --out @stopped.pbg --plays 1000000");
    let (first, last, ended) = lab.interrupted(&words);
    assert_has(&first, " of 1000");
    assert_begins(&last, "interrupted after ");
    assert_has(&last, "the best order so far is kept");
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_near(value(&ended, "search "), 58.75);
    let bytes = fs::read(lab.path("stopped.pbg")).expect("a file");
    assert!(decode(&bytes).expect("a profile").order.is_some());
}
