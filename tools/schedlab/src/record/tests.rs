use sched_tests_results::{Followed, Refused};

use super::*;
use crate::testing::{assert_golden, assert_has};

fn context(app: &str, sched: &str, phase: &str) -> Context {
    Context {
        app: app.into(),
        arch: "x86_64".into(),
        smp: 1,
        sched: sched.into(),
        phase: phase.into(),
    }
}

/// Returns the lines of a phase with this average turnaround: `long` has twice that, `short`
/// none.
fn sample_phase(context: &Context, avg: u64) -> (Vec<TaskLine>, RunLine) {
    let task = |(name, turnaround): (&str, u64)| TaskLine {
        context: context.clone(),
        task: name.into(),
        finish_ns: turnaround,
        turnaround_ns: turnaround,
        run_ns: turnaround,
        dispatches: 3,
        yields: 50,
        ..TaskLine::default()
    };
    let run = RunLine {
        context: context.clone(),
        timing: "icount".into(),
        scale: 1,
        tasks: 2,
        avg_turnaround_ns: avg,
        max_turnaround_ns: avg,
        makespan_ns: avg,
        context_switches: 7,
        srpt_bound_ns: avg / 2,
        jain: 0.5,
        pass: true,
        ..RunLine::default()
    };
    ([("long", avg * 2), ("short", 0)].map(task).into(), run)
}

fn text_of((tasks, run): (Vec<TaskLine>, RunLine)) -> String {
    let lines = tasks.iter().map(ResultLine::to_line);
    lines
        .chain([run.to_line()])
        .map(|line| line + "\n")
        .collect()
}

/// Returns a cell with one phase for each of the given average turnarounds.
pub fn sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
    let phase = |(phase, avg): &(&str, u64)| sample_phase(&context(app, sched, phase), *avg);
    phases.iter().map(phase).map(text_of).collect()
}

/// Returns one boot of a cell at a tick phase, with an account that closes: 1 % is main's.
pub fn sample_at(tick_phase: u16, app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
    let phase = |(phase, avg): &(&str, u64)| {
        let (tasks, run) = sample_phase(&context(app, sched, phase), *avg);
        let main = avg / 100;
        let run = RunLine {
            tick_phase: Some(tick_phase.try_into().unwrap()),
            tasks_run_ns: Some(avg - main),
            main_run_ns: Some(main),
            gc_run_ns: Some(0),
            rest_run_ns: Some(0),
            idle_ns: Some(0),
            ..run
        };
        (tasks, run)
    };
    phases.iter().map(phase).map(text_of).collect()
}

/// Returns the errors of texts, each after what is wrong with it.
fn errors<T>(read: fn(&str) -> Result<T>, wrong: &[(&str, String)]) -> String {
    let error = |(what, text): &(&str, String)| match read(text) {
        Ok(_) => format!("{what}: no error\n"),
        Err(error) => format!("{what}: {error}\n"),
    };
    wrong.iter().map(error).collect()
}

#[test]
fn boots_at_several_tick_phases_are_one_cell() {
    let at = |tick_phase, avg| sample_at(tick_phase, "realtime", "rr", &[("run", avg)]);
    let both = |one: &String, other: &String| format!("{one}\n{other}");
    let (first, second) = (at(0, 100), at(125, 300));
    let cell = parse_boots(&both(&first, &second)).unwrap();
    let found: Vec<_> = cell
        .iter()
        .map(|boot| (boot.tick_phase().map(u16::from), boot.last().makespan_ns))
        .collect();
    assert_eq!(found, [(Some(0), 100), (Some(125), 300)]);
    assert_eq!(cell[1].last().main_run_ns, Some(3));

    let old = sample("realtime", "rr", &[("run", 100)]);
    let wrong = [
        ("the same tick phase", both(&second, &second)),
        ("a second boot without one", both(&first, &old)),
        ("two boots without one", both(&old, &old)),
        (
            "another app",
            both(&first, &sample_at(9, "yield", "rr", &[("run", 100)])),
        ),
        (
            "other phases",
            both(&first, &sample_at(9, "realtime", "rr", &[("replay", 100)])),
        ),
        ("no boot", String::new()),
        (
            "a line of the second boot",
            both(&first, &second.replace("SCHED-RUN", "SCHED-RAN")),
        ),
        (
            "a tick phase beyond the tick",
            first.replace(r#""tick_phase":0"#, r#""tick_phase":1000"#),
        ),
    ];
    assert_golden("record-boots.txt", errors(parse_boots, &wrong));
}

#[test]
fn boots_in_real_time_say_whether_the_plan_was_followed() {
    let boot = |avg| sample("realtime", "pbg", &[("run", avg)]).replace("icount", "real");
    let followed = |change: &dyn Fn(&mut Followed)| {
        let mut followed = Followed {
            planned: 5,
            matched: 5,
            ..Followed::default()
        };
        change(&mut followed);
        boot(100) + &PbgLine::Followed(followed).to_line() + "\n"
    };
    let refused = boot(100) + &PbgLine::Refused(Refused::default()).to_line() + "\n";
    let boots = [
        followed(&|_| {}),
        followed(&|f| (f.matched, f.missing) = (4, 1)),
        followed(&|f| (f.unplanned, f.diverged) = (1, 1)),
        followed(&|f| (f.demoted, f.diverged) = (1, 1)),
        followed(&|f| f.dropped = true),
        refused,
        boot(100),
    ];
    let cell = parse_boots(&boots.join("\n")).unwrap();
    let found: Vec<_> = cell.iter().map(Outcome::is_followed).collect();
    assert_eq!(found, [true, false, false, false, false, false, false]);
    // Not a boot beside one that has a tick phase.
    let at = sample_at(0, "realtime", "pbg", &[("run", 1)]).replace("icount", "real");
    let fails = parse_boots(&format!("{}\n{at}", boot(1))).unwrap_err();
    assert_has(fails.to_string(), "expected one boot");
}

/// Returns the console of a traced [`sample`]: `long` is on the CPU all the time.
pub fn traced_sample(app: &str, sched: &str, phases: &[(&str, u64)]) -> String {
    let mut console = "SeaBIOS\r\n".to_owned();
    for (phase, avg) in phases {
        for (task, bins) in [("long", vec![50; *avg as usize / 25]), ("short", vec![])] {
            let line = TraceLine {
                context: context(app, sched, phase),
                task: task.into(),
                bin_ns: 50,
                run_ns: bins,
                blocked_ns: vec![],
            };
            console += &(line.to_line() + "\r\n");
        }
    }
    console + &sample(app, sched, phases).replace('\n', "\r\n")
}

#[test]
fn traces_come_with_their_tasks() {
    let console = traced_sample("realtime", "pbg", &[("measure", 200), ("replay", 100)]);
    let phases = parse_traced(&console).unwrap();
    let found = phases.iter().map(|(phase, traces)| {
        let bins: Vec<_> = traces.iter().map(|t| t.run_ns.len()).collect();
        (phase.name(), traces[0].task.as_str(), bins)
    });
    let expected = [
        ("measure", "long", vec![8, 0]),
        ("replay", "long", vec![4, 0]),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn wrong_traces_are_refused_with_their_line() {
    let good = traced_sample("realtime", "rr", &[("run", 100)]);
    let third = good.lines().nth(2).unwrap();
    let wrong = [
        ("less time", good.replace("50,50]", "50,49]")),
        (
            "no trace of a task",
            good.replacen("SCHED-TRACE", "SCHED-TRICK", 1),
        ),
        ("two traces of a task", format!("{good}{third}\n")),
        ("another machine", good.replacen("x86_64", "riscv64", 1)),
        (
            "empty bins",
            good.replacen("\"bin_ns\":50", "\"bin_ns\":0", 1),
        ),
        (
            "a trace lacks a key",
            good.replacen("\"bin_ns\":50,", "", 1),
        ),
        (
            "a run lacks a key",
            good.replace("\"makespan_ns\":100,", ""),
        ),
    ];
    assert_golden("record-traces.txt", errors(parse_traced, &wrong));
}

#[test]
fn phases_come_with_their_tasks_and_added_keys_are_let_through() {
    let text = sample("realtime", "pbg", &[("measure", 200), ("replay", 100)])
        .replace(r#""yields":50"#, r#""yields":50,"new":{"x":[1]}"#)
        .replace(r#""pass""#, r#""ns_per_yield":162.5,"pass""#);
    let outcome = parse(&text).unwrap();
    assert_eq!(outcome.phases.len(), 2);
    let replay = &outcome.phases[1];
    assert_eq!(replay.name(), "replay");
    assert_eq!(replay.run.avg_turnaround_ns, 100);
    assert_eq!(outcome.last().ns_per_yield, Some(162.5));
    let names: Vec<_> = replay.tasks.iter().map(|t| t.task.as_str()).collect();
    assert_eq!(names, ["long", "short"]);
    assert_eq!(replay.tasks[0].groups, None);
    let text = text.replace(r#""new""#, r#""groups":11,"new""#);
    assert_eq!(parse(&text).unwrap().phases[0].tasks[1].groups, Some(11));
}

#[test]
fn wrong_figures_are_refused_with_their_line() {
    let good = sample("realtime", "rr", &[("run", 100)]);
    let lines: Vec<_> = good.lines().collect();
    let wrong = [
        ("another line", format!("{good}\nwhat is this\n")),
        (
            "a key is missing",
            good.replace(r#""makespan_ns":100,"#, ""),
        ),
        ("nothing", String::new()),
        ("no run", lines[..2].join("\n")),
        ("a task is missing", lines[1..].join("\n")),
        ("another machine", good.replacen("x86_64", "riscv64", 1)),
        ("a task twice", good.replace("short", "long")),
        ("a run twice", format!("{good}{}", lines[2])),
    ];
    assert_golden("record-figures.txt", errors(parse, &wrong));
}

#[test]
fn result_lines_are_found_among_others() {
    let console = [
        "boot",
        "SCHED-TASK {}",
        " SCHED-RUN {}",
        "SCHED-PBG {}",
        "SCHED-RUN {}",
    ]
    .map(String::from);
    assert_eq!(result_lines(&console), ["SCHED-TASK {}", "SCHED-RUN {}"]);
    assert_eq!(
        result_and_profile_lines(&console),
        ["SCHED-TASK {}", "SCHED-PBG {}", "SCHED-RUN {}"]
    );
}
