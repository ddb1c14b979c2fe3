//! A recording under every policy: what is printed and written, and what is refused.

mod common;
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use axsched_ext::{
    pbg::stored::{
        Architecture, Ended as RunEnded, Figure, Figures, Label, Phases, PolicyName, Program,
        StoredPhase, StoredProfile, StoredTask, Timing, encode,
    },
    units::{Counts, TaskKey},
};
use common::{Ended, Lab, Printed, assert_has, assert_lacks};

const MS: u64 = 1_000_000;

/// Three tasks of 80, 40 and 20 ms that yield once in the middle, the long one first.
fn recording() -> StoredProfile {
    let task = |(ordinal, name): (u32, &str)| {
        let run = (80 * MS) >> ordinal;
        let phase = |ended| StoredPhase::new(ended, 1, Counts(run / 2), Counts::ZERO);
        StoredTask {
            key: TaskKey::labelled(name),
            label: Some(Label::new(name).expect("short")),
            figures: Figures {
                run: Figure::once(run),
                ready: Figure::once(500 * MS),
                dispatches: Figure::once(2),
                yields: Figure::once(1),
                ..Figures::default()
            },
            phases: Phases {
                list: vec![phase(RunEnded::Yield), phase(RunEnded::Exit)],
                ..Phases::default()
            },
            ..profiles::task(ordinal)
        }
    };
    let tasks = (0..).zip(["long", "middle", "short"]).map(task);
    let mut profile = profiles::profile("three", tasks);
    profile.header.program = Program::scaled("three", 1);
    profile
}

fn save(lab: &Lab, name: &str, profile: &StoredProfile) {
    fs::write(lab.path(name), encode(profile).expect("it is valid")).expect("a file");
}

const COSTS: &str = "--costs #docs/results/cost.csv --results #docs/results/tables.csv";

/// Runs `schedlab simulate` with the committed costs.
fn simulate(lab: &Lab, line: &str) -> Ended {
    lab.call(&format!("simulate {COSTS} {line}"))
}

/// The second word of the row that begins so, in the n-th table.
fn average(ended: &Ended, table: usize, scheduler: &str) -> f64 {
    let table = ended
        .out
        .split("turnaround in ms")
        .nth(table + 1)
        .expect("a table");
    let row = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(scheduler));
    let word = row.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("{scheduler}: {table}"))
}

#[test]
fn every_policy_is_beside_the_bound_and_two_runs_print_the_same() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let runs = [(); 2].map(|()| simulate(&lab, "@three.pbg --cpus 1,2 --app three"));
    let [one, two] = &runs;
    assert_eq!((one.code, one.err.as_str()), (Some(0), ""));
    assert_eq!(one.out, two.out);
    // 20, then 60, then 140; and on two CPUs 20, 40 and 100.
    let least = [220.0 / 3.0, 160.0 / 3.0];
    assert!((average(one, 0, "SRPT") - least[0]).abs() < 0.01);
    assert!((average(one, 1, "shortest first") - least[1]).abs() < 0.01);
    macro_rules! names {
        ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
            [$(stringify!($module)),*]
        };
    }
    let ours = axsched_ext::for_each_policy!(names);
    let without_plan = ours.into_iter().filter(|name| *name != "pbg");
    let policies: Vec<_> = without_plan.chain(["stock-fifo", "stock-cfs"]).collect();
    for (table, least) in least.into_iter().enumerate() {
        for policy in &policies {
            let found = average(one, table, &format!("{policy} "));
            assert!(found >= least, "{policy}: {found}");
        }
    }
    let replay = average(one, 0, "pbg ");
    assert!((replay / least[0] - 1.0).abs() < 0.001, "{replay}");
    // On several CPUs, too, the plan is shortest first.
    let together = average(one, 1, "pbg ");
    assert!((together / least[1] - 1.0).abs() < 0.03, "{together}");
    assert_has(&one.out, "does not say when tasks were spawned");
}

#[test]
fn policies_phases_and_files_are_as_asked_for() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let asked = "--policy rr,sched_pbg --phases 3 --scale 7 --out @report";
    let ended = simulate(&lab, &format!("@three.pbg {asked}"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_has(&ended.out, "(model, 3 tick phases)");
    assert_lacks(&ended.out, "cfs");
    let csv = lab.read("report/tables.csv");
    let rows: Vec<_> = csv
        .lines()
        .filter(|line| line.contains(",total,average,"))
        .collect();
    assert_eq!(rows.len(), 2, "{csv}");
    assert!(rows[0].starts_with("x86_64,three,1,model,7,rr,"), "{csv}");
    assert!(rows[1].ends_with(",3"), "{csv}");
}

#[test]
fn a_recording_without_preemption_is_for_those_that_do_without() {
    let lab = Lab::new();
    let (one, mut other) = (recording(), recording());
    for task in &mut other.tasks {
        task.figures.run = Figure::once(task.figures.run.total / 2);
        task.phases
            .list
            .iter_mut()
            .for_each(|phase| phase.run.0 /= 2);
    }
    save(&lab, "one.pbg", &one);
    save(&lab, "other.pbg", &other);
    let both = simulate(&lab, "@one.pbg --cooperative @other.pbg");
    let ratio = average(&both, 0, "fifo ") / average(&both, 0, "rr ");
    assert!(ratio < 0.6, "{}", both.out);
    let alone = simulate(&lab, "@one.pbg");
    assert_has(&alone.out, "It is of a kernel that preempts");
    assert_has(&both.out, "SRPT (coop)");
    assert_lacks(&alone.out, "SRPT (coop)");
    assert_lacks(&both.out, "It is of a kernel that preempts");
}

/// The words of the row that begins so, in the first table after `title`.
fn row(ended: &Ended, title: &str, scheduler: &str) -> Vec<String> {
    let table = ended.out.split_once(title).expect("a table").1;
    let row = table
        .lines()
        .find(|line| line.split_whitespace().next() == Some(scheduler));
    let words = row
        .unwrap_or_else(|| panic!("{scheduler}: {table}"))
        .split_whitespace();
    words.map(str::to_owned).collect()
}

#[test]
fn what_is_printed_is_what_is_written() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let asked = "@three.pbg --cpus 1,2 --policy rr,cfs --out @report";
    let ended = simulate(&lab, asked);
    let csv = lab.read("report/tables.csv");
    for (cpus, title) in [("1", "1 CPU:"), ("2", "2 CPUs:")] {
        for policy in ["rr", "cfs"] {
            // scheduler average ±% [~] avg/bound slowest makespan switches Jain
            let words = row(&ended, title, policy);
            let at = |from_end: usize| {
                words[words.len() - from_end]
                    .parse::<f64>()
                    .expect("a figure")
            };
            let written = |figure: &str| {
                let begin = format!("x86_64,three,{cpus},model,1,{policy},total,{figure},");
                let line = csv.lines().find(|line| line.starts_with(&begin));
                let fields: Vec<_> = line.expect(&begin).split(',').collect();
                fields[11].parse::<f64>().expect("a mean")
            };
            for (figure, from_end, within) in [
                ("makespan", 3, 0.001),
                ("switches", 2, 0.5),
                ("Jain", 1, 0.0001),
                // What switching takes is in the one and not in the other.
                ("avg/SRPT", 5, 0.01),
            ] {
                let (printed, written) = (at(from_end), written(figure));
                let off = (printed - written).abs();
                assert!(
                    off <= within,
                    "{policy} {figure}: {printed}, {written}\n{}",
                    ended.out
                );
            }
            assert!(at(2) >= 3.0 && at(2) < 100.0, "switches: {}", at(2));
        }
    }
    assert_lacks(lab.read("report/tables.md"), "run the matrix again");
}

/// Whoever recorded: PBG's base policy, or the layer around another one. Three tasks that never
/// wait take what they take.
#[test]
fn a_recording_may_be_of_any_policy() {
    let lab = Lab::new();
    let mut recorded = recording();
    for policy in ["cfs", "stock-rr"] {
        recorded.header.policy = PolicyName::new(policy).expect("short");
        save(&lab, "any.pbg", &recorded);
        let ended = simulate(&lab, "@any.pbg --policy rr");
        assert_eq!(ended.code, Some(0), "{policy}: {}", ended.err);
        let average = average(&ended, 0, "rr ");
        assert!((60.0..130.0).contains(&average), "{policy}: {average}");
    }
}

#[test]
fn what_qemu_measured_stands_beside_it() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let alone = simulate(&lab, "@three.pbg --policy rr,cfs");
    let ns = (average(&alone, 0, "rr ") * 1e6 / 1.1) as u64;
    let lines = |sched, ns| {
        let printed = Printed {
            app: "three",
            sched,
            phase: "run",
            tick_phase: 0,
            ns,
            srpt_bound_ns: ns,
        };
        printed.lines()
    };
    lab.write("results/x86_64/three/sched_rr.jsonl", &lines("rr", ns));
    let check = "@three.pbg --policy rr,cfs --check @results";
    let ended = simulate(&lab, check);
    let words = row(&ended, "Average turnaround, ms", "rr");
    assert!(words.contains(&"+10.00".to_owned()), "{words:?}");
    assert!(!words.contains(&"overlap".to_owned()), "{words:?}");
    let same = (average(&alone, 0, "rr ") * 1e6).round() as u64;
    lab.write("results/x86_64/three/sched_rr.jsonl", &lines("rr", same));
    let words = row(&simulate(&lab, check), "Average turnaround, ms", "rr");
    assert!(
        words.contains(&"+0.00".to_owned()) || words.contains(&"-0.00".to_owned()),
        "{words:?}"
    );
}

#[test]
fn tasks_that_others_spawn_have_no_bound_but_their_length() {
    let lab = Lab::new();
    let mut chain = recording();
    for i in 1..3 {
        let (parent, ordinal) = (i - 1, 0);
        chain.tasks[i as usize].place = axsched_ext::pbg::stored::Place::Child { parent, ordinal };
    }
    save(&lab, "chain.pbg", &chain);
    let ended = simulate(&lab, "@chain.pbg");
    assert!(
        (average(&ended, 0, "mean length") - 140.0 / 3.0).abs() < 0.01,
        "{}",
        ended.out
    );
}

#[test]
fn what_cannot_be_played_is_refused_in_a_line() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let changed = |name: &str, change: fn(&mut StoredProfile)| {
        let mut profile = recording();
        change(&mut profile);
        save(&lab, name, &profile);
    };
    changed("real.pbg", |profile| profile.header.timing = Timing::Real);
    changed("empty.pbg", |profile| profile.tasks.clear());
    changed("other.pbg", |profile| {
        profile.header.architecture = Architecture::Riscv64
    });
    changed("smp.pbg", |profile| profile.header.cpus = 4);
    changed("lottery.pbg", |profile| {
        profile.header.policy = PolicyName::new("lottery").expect("short");
    });
    changed("still.pbg", |profile| {
        for task in &mut profile.tasks {
            task.figures.run = Figure::once(0);
            task.phases
                .list
                .iter_mut()
                .for_each(|phase| phase.run.0 = 0);
        }
    });
    changed("slash.pbg", |profile| {
        profile.header.program = Program::scaled("a/b", 1)
    });
    changed("loong.pbg", |profile| {
        profile.header.architecture = Architecture::Loongarch64
    });
    lab.write("no.pbg", "nothing");
    for (arguments, part) in [
        (
            "@three.pbg --app four",
            "expected a recording of four at scale 1, found one of three",
        ),
        ("@three.pbg --app three --scale 2", "at scale 2"),
        ("@real.pbg", "found one in real time"),
        (
            "@empty.pbg",
            "expected a recording with tasks that have run, found none",
        ),
        ("@no.pbg", "no.pbg: "),
        ("@missing.pbg", "missing.pbg"),
        ("@loong.pbg", "loongarch64"),
        (
            "@three.pbg --arch riscv64",
            "expected a recording on riscv64, found one on x86_64",
        ),
        (
            "@smp.pbg",
            "expected a recording of one CPU, found one of 4",
        ),
        (
            "@lottery.pbg",
            "expected a recording under a known policy that follows no plan, found one under lottery",
        ),
        (
            "@still.pbg",
            "expected a recording with tasks that have run, found none",
        ),
        (
            "@slash.pbg",
            "expected a program's name without a slash, found a/b",
        ),
        (
            "@three.pbg --cooperative @other.pbg",
            "expected a recording of three on riscv64",
        ),
        (
            "@three.pbg --policy lottery",
            "--policy lottery: expected some of ",
        ),
        ("@three.pbg --cpus 0", "0 is not in 1..=64"),
        (
            "@three.pbg --check nowhere",
            "nowhere: expected results of three on one CPU",
        ),
        (
            "@three.pbg --task four --run x2",
            "--task four: expected one of long middle short",
        ),
        ("@three.pbg --task long", "--run or --add after --task long"),
        ("@three.pbg --run 20%", "expected +20%, -50%, x2"),
        (
            "@three.pbg --arrivals x2",
            "--arrivals: expected a recording that has tasks come late",
        ),
        (
            "@three.pbg --add 4096 --add 4096 --add 4096 --add 4096",
            "--add: expected 16384 tasks at most",
        ),
        ("@three.pbg --run x2 --check d", "cannot be used with"),
        ("@three.pbg --balance yes", "[possible values: y, n]"),
        ("@three.pbg --seeds 2", "--spread"),
        ("@three.pbg --seeds 2 --spread 1001%", "from 0% to 1000%"),
    ] {
        let ended = simulate(&lab, arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
    }
}

/// One number of a recording that is large makes the model play for minutes.
#[test]
fn recording_of_too_many_steps_is_refused_with_its_task() {
    let lab = Lab::new();
    let run_for = |profile: &mut StoredProfile, counts| {
        profile.tasks[2].phases.list[1].run = Counts(counts);
    };
    let refused = |name: &str, found: &str, what: &str, change: &dyn Fn(&mut StoredProfile)| {
        let mut profile = recording();
        change(&mut profile);
        save(&lab, name, &profile);
        for command in ["simulate", "advise"] {
            let end = lab.call(&format!("{command} {COSTS} @{name}"));
            let line = format!(
                "{name}: expected at most 2000000 run intervals, wakes and ticks in a run, found {found}: {what}; --steps allows more\n"
            );
            assert_eq!((end.code, end.out.as_str()), (Some(2), ""), "{end:?}");
            assert!(end.err.ends_with(&line), "{}\n{line}", end.err);
        }
    };
    // 20,000 s at 1,000 counts a microsecond are 2,000,000 ticks; the others run for 13 in all.
    refused(
        "long.pbg",
        "2000019",
        "task `short` has 2 run intervals and 0 wakes, runs for 20000.010 s and waits until 0.000 s",
        &|profile| run_for(profile, 20_000_000 * MS),
    );
    refused(
        "asleep.pbg",
        "1844674407391",
        "task `long` has 2 run intervals and 0 wakes, runs for 0.080 s and waits until 18446744073.710 s",
        &|profile| {
            let task = &mut profile.tasks[0];
            task.phases.list[0].ended = RunEnded::Block;
            task.phases.list[0].blocked = Counts(u64::MAX);
            task.figures.blocked = Figure::once(u64::MAX);
            task.figures.blocks = Figure::once(1);
            task.figures.yields = Figure::once(0);
        },
    );
    refused(
        "busy.pbg",
        "2000019",
        "task `long` has 2000001 run intervals and 0 wakes, runs for 0.080 s and waits until 0.000 s",
        &|profile| {
            let task = &mut profile.tasks[0];
            task.phases.list[0].intervals = 2_000_000;
            task.figures.dispatches = Figure::once(2_000_001);
            task.figures.yields = Figure::once(2_000_000);
        },
    );
    // Six run intervals, and 14 ticks.
    save(&lab, "three.pbg", &recording());
    for (steps, code) in [("20", 0), ("19", 2)] {
        let words = format!("@three.pbg --policy rr --phases 1 --steps {steps}");
        let ended = simulate(&lab, &words);
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

#[test]
fn what_is_changed_is_said_and_played_and_the_plan_is_the_old_one() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    // 80, 40 and 20; now 8, 40 and 20.
    let ended = simulate(&lab, "@three.pbg --task long --run -90%");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let least = (8.0 + 28.0 + 68.0) / 3.0;
    assert!((average(&ended, 0, "SRPT") - least).abs() < 0.01);
    // It still has the long one last: 20, 60, 68.
    let old_order = (20.0 + 60.0 + 68.0) / 3.0;
    assert!(
        (average(&ended, 0, "pbg ") - old_order).abs() < 0.1,
        "{}",
        ended.out
    );
    assert_has(&ended.out, "what if: run time of long × 0.1\n");
    assert_has(&ended.out, "PBG's plan is that of the recording");

    // More of the short one, and a longer one: three of 20, 40, and 160.
    let asked = "@three.pbg --task short --add 2 --task long --run x2";
    let ended = simulate(&lab, asked);
    let least = (20.0 + 40.0 + 60.0 + 100.0 + 260.0) / 5.0;
    assert!(
        (average(&ended, 0, "SRPT") - least).abs() < 0.01,
        "{}",
        ended.out
    );
    assert_has(
        &ended.out,
        "what if: 2 more of short; run time of long × 2\n",
    );
    assert_lacks(&simulate(&lab, "@three.pbg").out, "what if");
}

#[test]
fn result_lines_are_read_as_those_of_guests() {
    let lab = Lab::new();
    let mut profile = recording();
    // The folder of a program that the lab has.
    profile.header.program = Program::scaled("realtime", 1);
    save(&lab, "three.pbg", &profile);
    let asked = "@three.pbg --policy rr,pbg,stock-rr --cpus 1,2 --add 1 --out @report";
    let ended = simulate(&lab, asked);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_has(
        lab.read("report/tables.md"),
        "what if: 1 more of main's tasks, in turn",
    );
    for (cpus, folder) in [("1", "results"), ("2", "results-smp2")] {
        let file = format!("report/{folder}/x86_64/realtime/sched_rr.jsonl");
        let lines = lab.read(&file);
        assert_has(&lines, r#""timing":"model""#);
        assert_has(&lines, r#""task":"long+1""#);
        assert_eq!(lines.matches("SCHED-RUN").count(), 8, "{lines}");
        // The same table from the lines as from the runs.
        let cells = "--app=realtime --arch=x86_64 --out @compared";
        let again = lab.call(&format!("compare @report/{folder} {cells}"));
        assert_eq!(again.code, Some(0), "{} {}", again.err, again.out);
        let begin = format!("x86_64,realtime,{cpus},");
        let of_cpus = |csv: String| -> Vec<String> {
            let lines = csv.lines().filter(|line| line.starts_with(&begin));
            lines.map(str::to_owned).collect()
        };
        let [from_lines, from_runs] =
            ["compared", "report"].map(|folder| of_cpus(lab.read(&format!("{folder}/tables.csv"))));
        assert!(!from_runs.is_empty());
        assert_eq!(from_lines, from_runs);
    }
}

#[test]
fn many_seeds_give_a_mean_and_what_nine_of_ten_are_within() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let by_seed = |spread: &str| {
        let words = format!("@three.pbg --seeds 40 --spread {spread} --out @report");
        simulate(&lab, &words)
    };
    let none = by_seed("0%");
    assert_eq!(none.code, Some(0), "{}", none.err);
    assert_has(&none.out, "(model, 40 seeds, spread 0 %)");
    assert!((average(&none, 0, "SRPT") - 220.0 / 3.0).abs() < 0.01);
    let [one, two] = [(); 2].map(|()| by_seed("50%"));
    assert_eq!(one.out, two.out);
    for policy in ["rr", "pbg", "stock-cfs"] {
        // scheduler average 5% 95%
        let words = row(&one, "turnaround in ms", policy);
        let [mean, low, high] = [1, 2, 3].map(|i| words[i].parse::<f64>().expect("a figure"));
        assert!(low < mean && mean < high, "{policy}: {words:?}");
        let begin = format!("x86_64,three,1,model,40,50,{policy},average,");
        let csv = lab.read("report/seeds.csv");
        let line = csv.lines().find_map(|line| line.strip_prefix(&begin));
        let written: Vec<f64> = line
            .expect(&begin)
            .split(',')
            .map(|word| word.parse().expect("a figure"))
            .collect();
        for (printed, written) in [mean, low, high].into_iter().zip(written) {
            assert!((printed - written).abs() < 0.001, "{printed}, {written}");
        }
    }
}

#[test]
fn an_interrupt_keeps_the_seeds_that_all_policies_have() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let words = format!("simulate {COSTS} @three.pbg --seeds 100000 --spread 50");
    let mut child = lab
        .command(&lab.words(&words))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Where there is no terminal, a line says after three seconds how far it is.
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    // Of 12 policies.
    const ALL: &str = " of 1200000 runs";
    assert!(first.ends_with(ALL), "{first}");
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill is there").success());
    let last = lines.last().expect("a line").expect("text");
    assert!(last.starts_with("interrupted after "), "{last}");
    assert!(
        last.ends_with(&format!("{ALL}; what is done is kept")),
        "{last}"
    );
    let ended = Ended::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_has(&ended.out, " seeds, spread 50 %)");
    assert!(average(&ended, 0, "stock-cfs ") > 73.0);
}

#[test]
fn plan_is_worth_less_the_further_the_work_is_from_it() {
    let lab = Lab::new();
    save(&lab, "three.pbg", &recording());
    let over_bound = |spread| {
        let words = format!("@three.pbg --policy=pbg --seeds=60 --spread {spread}");
        let end = simulate(&lab, &words);
        assert_eq!(end.code, Some(0), "{}", end.err);
        average(&end, 0, "pbg ") / average(&end, 0, "SRPT")
    };
    let [none, some, much] = ["0", "40", "1000"].map(over_bound);
    assert!((none - 1.0).abs() < 0.001, "{none}");
    // Within 1.41 of each other three tasks that double in length keep their order.
    assert!((some - 1.0).abs() < 0.001, "{some}");
    assert!(much > 1.05, "{much}");
}

/// The committed recordings of a program, played with these options.
fn batch_at_once(options: &str) -> Ended {
    let file = "#tools/schedlab/tests/recordings/batch-at-once";
    let files = format!("{file}.pbg --cooperative {file}-coop.pbg --metered");
    let ended = simulate(&Lab::new(), &format!("{files} {options}"));
    assert_eq!(ended.code, Some(0), "{options:?}: {}", ended.err);
    ended
}

/// As it was before CPUs could share: stock policies and PBG, one CPU, and `BALANCE=n`.
#[test]
fn who_does_not_share_plays_as_axtask_has_it() {
    let figures = |ended: &Ended, policy: &str| {
        let words = row(ended, "4 CPUs", policy);
        // average ± % ~ avg/bound slowest makespan
        let at = |from_end: usize| words[words.len() - from_end].clone();
        [words[1].clone(), at(3)]
    };
    let several = "--cpus 4 --policy rr,cfs,stock-rr";
    let alone = batch_at_once(&format!("{several} --balance n"));
    assert_lacks(&alone.out, "share the work");
    assert_eq!(figures(&alone, "rr"), ["509.430", "1395.702"]);
    assert_eq!(figures(&alone, "cfs"), ["460.080", "1395.990"]);
    let shared = batch_at_once(several);
    let said = "CPUs share the work under rr cfs; an interrupt takes 20 µs\n";
    assert_has(&shared.out, said);
    assert_eq!(shared.out, batch_at_once(several).out);
    assert_eq!(figures(&shared, "stock-rr"), figures(&alone, "stock-rr"));
    assert_ne!(figures(&shared, "rr"), figures(&alone, "rr"));
    let one = ["y", "n"]
        .map(|balance| batch_at_once(&format!("--policy rr,cfs --balance {balance}")).out);
    assert_eq!(one[0], one[1]);
}
