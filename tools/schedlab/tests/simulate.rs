//! A recording under every policy: what is printed and written, and what is refused.

// This file is long because all sessions of one command are here.

mod common;
#[path = "../../../modules/axsched-ext/tests/common/profiles.rs"]
mod profiles;

use std::fs;

use axsched_ext::{
    pbg::stored::{
        Architecture, Ended as RunEnded, Figure, Figures, Label, Phases, Place, PolicyName,
        Program, StoredPhase, StoredProfile, StoredTask, Timing, encode,
    },
    units::{Counts, TaskKey},
};
use common::{Ended, Lab, Printed, assert_begins, assert_ends, assert_has, assert_lacks};

const MS: u64 = 1_000_000;

/// Returns three tasks of 80, 40 and 20 ms that yield once in the middle, the long one first.
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

/// Saves a [`recording`] that is changed so.
fn save(lab: &Lab, name: &str, change: impl FnOnce(&mut StoredProfile)) {
    let mut profile = recording();
    change(&mut profile);
    fs::write(lab.path(name), encode(&profile).expect("it is valid")).expect("a file");
}

const COSTS: &str = "--costs #docs/results/cost.csv --results #docs/results/tables.csv";

/// Runs `schedlab simulate` with the committed costs.
fn simulate(lab: &Lab, line: &str) -> Ended {
    lab.call(&format!("simulate {COSTS} {line}"))
}

/// Returns the words of a row after its name, in the first table after `title`.
fn row(ended: &Ended, title: &str, scheduler: &str) -> Vec<String> {
    let table = ended.out.split_once(title).expect("a table").1;
    let name = format!("{scheduler} ");
    let row = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(&name));
    let words = row.unwrap_or_else(|| panic!("{scheduler}: {table}"));
    words.split_whitespace().map(str::to_owned).collect()
}

/// Returns the average turnaround of a row, on `cpus` CPUs.
fn average_on(ended: &Ended, cpus: &str, scheduler: &str) -> f64 {
    let average = &row(ended, cpus, scheduler)[0];
    average
        .parse()
        .unwrap_or_else(|_| panic!("{scheduler}: {average}"))
}

fn average(ended: &Ended, scheduler: &str) -> f64 {
    average_on(ended, "1 CPU:", scheduler)
}

/// Returns a lab with the [`recording`] in `three.pbg`.
fn lab() -> Lab {
    let lab = Lab::new();
    save(&lab, "three.pbg", |_| {});
    lab
}

/// The policies that are simulated with a plan, and not at all.
const APART: [&str; 2] = ["pbg", "delegated"];

#[track_caller]
fn assert_near(found: f64, expected: f64, within: f64) {
    let off = (found - expected).abs();
    assert!(off < within, "{found}, expected {expected}");
}

#[test]
fn every_policy_is_beside_the_bound_and_two_runs_print_the_same() {
    let lab = lab();
    let runs = [(); 2].map(|()| simulate(&lab, "@three.pbg --cpus 1,2 --app three"));
    let [one, two] = &runs;
    assert_eq!((one.code, one.err.as_str()), (Some(0), ""));
    assert_eq!(one.out, two.out);
    macro_rules! names {
        ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
            [$(stringify!($module)),*]
        };
    }
    let ours = axsched_ext::for_each_policy!(names);
    let without_plan = ours.into_iter().filter(|name| !APART.contains(name));
    let policies: Vec<_> = without_plan.chain(["stock-fifo", "stock-cfs"]).collect();
    for (cpus, bound, least, plan_is_within) in [
        // 20, then 60, then 140; and on two CPUs 20, 40 and 100.
        ("1 CPU:", "SRPT", 220.0 / 3.0, 0.001),
        ("2 CPUs:", "shortest first", 160.0 / 3.0, 0.03),
    ] {
        assert_near(average_on(one, cpus, bound), least, 0.01);
        for policy in &policies {
            let found = average_on(one, cpus, policy);
            assert!(found >= least, "{policy}: {found}");
        }
        // The plan is shortest first.
        assert_near(average_on(one, cpus, "pbg") / least, 1.0, plan_is_within);
    }
    assert_has(&one.out, "A wait that did not happen");
}

#[test]
fn policies_phases_and_files_are_as_asked_for() {
    let lab = lab();
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
fn policies_that_do_not_preempt_play_the_cooperative_recording() {
    let lab = lab();
    save(&lab, "half.pbg", |profile| {
        for task in &mut profile.tasks {
            task.figures.run = Figure::once(task.figures.run.total / 2);
            let phases = task.phases.list.iter_mut();
            phases.for_each(|phase| phase.run.0 /= 2);
        }
    });
    let both = simulate(&lab, "@three.pbg --cooperative @half.pbg");
    let ratio = average(&both, "fifo") / average(&both, "rr");
    assert!(ratio < 0.6, "{}", both.out);
    let alone = simulate(&lab, "@three.pbg");
    assert_has(&alone.out, "It was made in a kernel that preempts");
    assert_has(&both.out, "SRPT (coop)");
    assert_lacks(&alone.out, "SRPT (coop)");
    assert_lacks(&both.out, "It was made in a kernel that preempts");
}

#[test]
fn the_table_and_the_csv_file_have_the_same_figures() {
    let lab = lab();
    let asked = "@three.pbg --cpus 1,2 --policy rr,cfs --out @report";
    let ended = simulate(&lab, asked);
    let csv = lab.read("report/tables.csv");
    for (cpus, title) in [("1", "1 CPU:"), ("2", "2 CPUs:")] {
        for policy in ["rr", "cfs"] {
            // average ±% [~] avg/bound slowest makespan switches Jain
            let words = row(&ended, title, policy);
            for (figure, from_end, within) in [
                ("makespan", 3, 0.001),
                ("switches", 2, 0.5),
                ("Jain", 1, 0.0001),
                // The bound in the CSV file has the time of switches in it, the other does not.
                ("avg/SRPT", 5, 0.01),
            ] {
                let printed: f64 = words[words.len() - from_end].parse().expect("a figure");
                let begin = format!("x86_64,three,{cpus},model,1,{policy},total,{figure},");
                let line = csv.lines().find(|line| line.starts_with(&begin));
                let written = line.expect(&begin).split(',').nth(11).expect("a mean");
                assert_near(printed, written.parse().expect("a figure"), within + 1e-9);
                let is_possible = figure != "switches" || (3.0..100.0).contains(&printed);
                assert!(is_possible, "switches: {printed}");
            }
        }
    }
    assert_lacks(lab.read("report/tables.md"), "run the matrix again");
}

/// PBG's base policy, or the layer around another policy. Three tasks that never wait take the
/// time that they take.
#[test]
fn a_recording_may_be_of_any_policy() {
    let lab = Lab::new();
    for policy in ["cfs", "stock-rr"] {
        save(&lab, "any.pbg", |profile| {
            profile.header.policy = PolicyName::new(policy).expect("short");
        });
        let ended = simulate(&lab, "@any.pbg --policy rr");
        assert_eq!(ended.code, Some(0), "{policy}: {}", ended.err);
        let average = average(&ended, "rr");
        assert!((60.0..130.0).contains(&average), "{policy}: {average}");
    }
}

#[test]
fn check_prints_the_difference_from_qemu() {
    let lab = lab();
    let alone = simulate(&lab, "@three.pbg --policy rr,cfs");
    let model_ns = average(&alone, "rr") * 1e6;
    for (ns, differences, overlap) in [
        (model_ns / 1.1, ["+10.00"; 2], false),
        (model_ns.round(), ["+0.00", "-0.00"], true),
    ] {
        let printed = Printed {
            app: "three",
            sched: "rr",
            phase: "run",
            tick_phase: 0,
            ns: ns as u64,
            srpt_bound_ns: ns as u64,
        };
        lab.write("results/x86_64/three/sched_rr.jsonl", &printed.lines());
        let ended = simulate(&lab, "@three.pbg --policy rr,cfs --check @results");
        let words = row(&ended, "Average turnaround, ms", "rr");
        let has = |word: &str| words.iter().any(|found| found == word);
        assert!(differences.into_iter().any(has), "{words:?}");
        assert!(overlap || !has("overlap"), "{words:?}");
    }
}

/// A boot at one phase of the tick is compared with the run at that phase, several with all runs.
#[test]
fn check_takes_a_published_table() {
    let lab = lab();
    let play = |phases| format!("@three.pbg --policy cfs --phases {phases}");
    let [first, mean] = [1, 8].map(|phases| average(&simulate(&lab, &play(phases)), "cfs"));
    let apart = (first / mean - 1.0).abs();
    assert!(apart > 0.002, "{first}, {mean}");
    for (phases, model) in [(1, first), (8, mean)] {
        let table = format!(
            "arch,app,smp,timing,scale,scheduler,kind,figure,unit,value,min,mean,max,phases\n\
             x86_64,three,1,icount,1,cfs,total,average,ms,{model},90,{model},120,{phases}\n"
        );
        lab.write("table.csv", &table);
        let ended = simulate(&lab, "@three.pbg --policy rr,cfs --check @table.csv");
        let words = row(&ended, "Average turnaround, ms", "cfs");
        let difference: f64 = words[words.len() - 2].parse().unwrap_or(f64::NAN);
        assert!(difference.abs() < 0.1, "{words:?}");
    }
}

/// A boot that measures by itself does not know what its replay will show.
#[test]
fn check_plans_as_the_boot_that_recorded() {
    let lab = lab();
    // Behind the long one, which ended before it in the measured run.
    save(&lab, "varies.pbg", |profile| {
        profile.tasks[2].varies = true;
        profile.tasks[2].figures.ready = Figure::once(600 * MS);
    });
    lab.write(
        "table.csv",
        "arch,app,smp,timing,scale,scheduler,kind,figure,unit,value,min,mean,max,phases\n\
         x86_64,three,1,icount,1,pbg,total,average,ms,73.3,73.3,73.3,73.3,8\n",
    );
    for (words, average_ms) in [("", 100.0), ("--check @table.csv", 73.33)] {
        let ended = simulate(&lab, &format!("@varies.pbg --policy pbg {words}"));
        assert_near(average(&ended, "pbg"), average_ms, 0.1);
    }
}

#[test]
fn tasks_that_others_spawn_have_no_bound_but_their_length() {
    let lab = Lab::new();
    save(&lab, "chain.pbg", |chain| {
        for i in 1..3 {
            let (parent, ordinal) = (i - 1, 0);
            chain.tasks[i as usize].place = Place::Child { parent, ordinal };
        }
    });
    let ended = simulate(&lab, "@chain.pbg");
    assert_near(average(&ended, "mean length"), 140.0 / 3.0, 0.01);
}

#[test]
fn recordings_and_options_that_do_not_fit_are_refused() {
    let lab = lab();
    let riscv = |it: &mut StoredProfile| it.header.architecture = Architecture::Riscv64;
    save(&lab, "riscv.pbg", riscv);
    save(&lab, "real.pbg", |it| it.header.timing = Timing::Real);
    save(&lab, "empty.pbg", |it| it.tasks.clear());
    save(&lab, "smp.pbg", |it| it.header.cpus = 4);
    let lottery = PolicyName::new("lottery").expect("short");
    save(&lab, "lottery.pbg", |it| it.header.policy = lottery);
    save(&lab, "still.pbg", |it| {
        for task in &mut it.tasks {
            task.figures.run = Figure::once(0);
            let phases = task.phases.list.iter_mut();
            phases.for_each(|phase| phase.run.0 = 0);
        }
    });
    save(&lab, "slash.pbg", |it| {
        it.header.program = Program::scaled("a/b", 1);
    });
    let loong = |it: &mut StoredProfile| it.header.architecture = Architecture::Loongarch64;
    save(&lab, "loong.pbg", loong);
    lab.write("no.pbg", "nothing");
    let lines = [
        "@three.pbg --app four",
        "@three.pbg --app three --scale 2",
        "@three.pbg --arch riscv64",
        "@real.pbg",
        "@empty.pbg",
        "@no.pbg",
        "@missing.pbg",
        "@loong.pbg",
        "@smp.pbg",
        "@lottery.pbg",
        "@still.pbg",
        "@slash.pbg",
        "@three.pbg --cooperative @riscv.pbg",
        "@three.pbg --policy lottery",
        "@three.pbg --cpus 0",
        "@three.pbg --check nowhere",
        "@three.pbg --task four --run x2",
        "@three.pbg --task long",
        "@three.pbg --run 20%",
        "@three.pbg --arrivals x2",
        "@three.pbg --add 4096 --add 4096 --add 4096 --add 4096",
        "@three.pbg --run x2 --check d",
        "@three.pbg --balance yes",
        "@three.pbg --seeds 2",
        "@three.pbg --seeds 2 --spread 1001%",
    ];
    assert_refused(&lab, "simulate-refused.txt", &["simulate"], &lines);
}

/// Fails unless each command refuses each line as the golden file has it.
fn assert_refused(lab: &Lab, golden: &str, commands: &[&str], lines: &[&str]) {
    let each = lines.iter().flat_map(|line| {
        let of = move |command| format!("{command} {line} {COSTS}");
        commands.iter().map(of)
    });
    let each: Vec<_> = each.collect();
    let each: Vec<_> = each.iter().map(String::as_str).collect();
    lab.assert_session(golden, &each);
}

/// One large number in a recording would make the model play for minutes.
#[test]
fn recording_of_too_many_steps_is_refused_with_its_task() {
    let lab = lab();
    // 20,000 s at 1,000 counts a microsecond are 2,000,000 ticks; the others run for 13 in all.
    save(&lab, "long.pbg", |profile| {
        profile.tasks[2].phases.list[1].run = Counts(20_000_000 * MS);
    });
    save(&lab, "asleep.pbg", |profile| {
        let task = &mut profile.tasks[0];
        task.phases.list[0].ended = RunEnded::Block;
        task.phases.list[0].blocked = Counts(u64::MAX);
        task.figures.blocked = Figure::once(u64::MAX);
        task.figures.blocks = Figure::once(1);
        task.figures.yields = Figure::once(0);
    });
    save(&lab, "busy.pbg", |profile| {
        let task = &mut profile.tasks[0];
        task.phases.list[0].intervals = 2_000_000;
        task.figures.dispatches = Figure::once(2_000_001);
        task.figures.yields = Figure::once(2_000_000);
    });
    let lines = ["@long.pbg", "@asleep.pbg", "@busy.pbg"];
    assert_refused(&lab, "simulate-steps.txt", &["simulate", "advise"], &lines);
    // Six run intervals, and 14 ticks.
    for (steps, code) in [("20", 0), ("19", 2)] {
        let words = format!("@three.pbg --policy rr --phases 1 --steps {steps}");
        let ended = simulate(&lab, &words);
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

#[test]
fn changes_are_printed_and_played_and_the_plan_is_the_old_one() {
    let lab = lab();
    // 80, 40 and 20; now 8, 40 and 20.
    let ended = simulate(&lab, "@three.pbg --task long --run -90%");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_near(average(&ended, "SRPT"), (8.0 + 28.0 + 68.0) / 3.0, 0.01);
    // It still has the long one last.
    assert_near(average(&ended, "pbg"), (20.0 + 60.0 + 68.0) / 3.0, 0.1);
    assert_has(&ended.out, "what if: run time of long × 0.1\n");
    assert_has(&ended.out, "PBG's plan is that of the recording");

    // More of the short one, and a longer one: three of 20, 40, and 160.
    let asked = "@three.pbg --task short --add 2 --task long --run x2";
    let ended = simulate(&lab, asked);
    let least = (20.0 + 40.0 + 60.0 + 100.0 + 260.0) / 5.0;
    assert_near(average(&ended, "SRPT"), least, 0.01);
    let said = "what if: 2 more of short; run time of long × 2\n";
    assert_has(&ended.out, said);
    assert_lacks(&simulate(&lab, "@three.pbg").out, "what if");
}

#[test]
fn result_lines_are_read_as_those_of_guests() {
    let lab = Lab::new();
    // The folder of a program that the lab has.
    save(&lab, "three.pbg", |profile| {
        profile.header.program = Program::scaled("realtime", 1);
    });
    let asked = "@three.pbg --policy rr,pbg,stock-rr --cpus 1,2 --add 1 --out @report";
    let ended = simulate(&lab, asked);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let changed = "what if: 1 more of main's tasks, in turn";
    assert_has(lab.read("report/tables.md"), changed);
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
        let [from_lines, from_runs] = ["compared", "report"].map(|folder| -> Vec<String> {
            let csv = lab.read(&format!("{folder}/tables.csv"));
            let lines = csv.lines().filter(|line| line.starts_with(&begin));
            lines.map(str::to_owned).collect()
        });
        assert!(!from_runs.is_empty());
        assert_eq!(from_lines, from_runs);
    }
}

#[test]
fn seeds_give_a_mean_and_the_range_of_nine_in_ten() {
    let lab = lab();
    let by_seed = |spread: &str| {
        let words = format!("@three.pbg --seeds 40 --spread {spread} --out @report");
        simulate(&lab, &words)
    };
    let none = by_seed("0%");
    assert_eq!(none.code, Some(0), "{}", none.err);
    assert_has(&none.out, "(model, 40 seeds, spread 0 %)");
    assert_near(average(&none, "SRPT"), 220.0 / 3.0, 0.01);
    let [one, two] = [(); 2].map(|()| by_seed("50%"));
    assert_eq!(one.out, two.out);
    let figures = |words: &[String]| -> Vec<f64> {
        let figures = words.iter().map(|word| word.parse().expect("a figure"));
        figures.collect()
    };
    for policy in ["rr", "pbg", "stock-cfs"] {
        // average 5% 95%
        let printed = figures(&row(&one, "turnaround in ms", policy)[..3]);
        let [mean, low, high] = printed[..] else {
            panic!("{printed:?}")
        };
        assert!(low < mean && mean < high, "{policy}: {printed:?}");
        let begin = format!("x86_64,three,1,model,40,50,{policy},average,");
        let csv = lab.read("report/seeds.csv");
        let line = csv.lines().find_map(|line| line.strip_prefix(&begin));
        let words: Vec<_> = line.expect(&begin).split(',').map(str::to_owned).collect();
        for (printed, written) in printed.into_iter().zip(figures(&words)) {
            assert_near(printed, written, 0.001);
        }
    }
}

#[test]
fn an_interrupt_keeps_the_seeds_that_all_policies_have() {
    let lab = lab();
    let words = format!("simulate {COSTS} @three.pbg --seeds 100000 --spread 50");
    let (first, last, ended) = lab.interrupted(&words);
    // 100,000 runs of each of the 12 policies.
    const ALL: &str = " of 1200000 runs";
    assert!(first.ends_with(ALL), "{first}");
    assert_begins(&last, "interrupted after ");
    assert_ends(&last, format!("{ALL}; what is done is kept"));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_has(&ended.out, " seeds, spread 50 %)");
    assert!(average(&ended, "stock-cfs") > 73.0);
}

#[test]
fn plan_is_worth_less_the_further_the_work_is_from_it() {
    let lab = lab();
    let over_bound = |spread| {
        let words = format!("@three.pbg --policy=pbg --seeds=60 --spread {spread}");
        let end = simulate(&lab, &words);
        assert_eq!(end.code, Some(0), "{}", end.err);
        average(&end, "pbg") / average(&end, "SRPT")
    };
    let [none, some, much] = ["0", "40", "1000"].map(over_bound);
    assert_near(none, 1.0, 0.001);
    // Within 1.41 of each other three tasks that double in length keep their order.
    assert_near(some, 1.0, 0.001);
    assert!(much > 1.05, "{much}");
}

/// Plays the committed recordings of a program with these options.
fn batch_at_once(options: &str) -> Ended {
    let file = "#tools/schedlab/tests/recordings/batch-at-once";
    let files = format!("{file}.pbg --cooperative {file}-coop.pbg --metered");
    let ended = simulate(&Lab::new(), &format!("{files} {options}"));
    assert_eq!(ended.code, Some(0), "{options:?}: {}", ended.err);
    ended
}

/// The figures are those from before CPUs could share the work: with `--balance n`, of stock
/// policies, and on one CPU.
#[test]
fn cpus_that_share_nothing_play_as_axtask_does() {
    let figures = |ended: &Ended, policy: &str| {
        let words = row(ended, "4 CPUs", policy);
        // average ± % ~ avg/bound slowest makespan switches Jain
        [words[0].clone(), words[words.len() - 3].clone()]
    };
    let several = "--cpus 4 --policy rr,cfs,stock-rr";
    let alone = batch_at_once(&format!("{several} --balance n"));
    assert_lacks(&alone.out, "share the work");
    assert_eq!(figures(&alone, "rr"), ["509.430", "1395.702"]);
    assert_eq!(figures(&alone, "cfs"), ["459.464", "1395.990"]);
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
