//! A sweep over the waits of `batch`, from folders of results as a matrix leaves them.

mod common;

use common::{Ended, Lab, Printed};

/// The result lines of a boot at a tick phase, with a phase for each average in ns.
fn lines(sched: &str, tick_phase: u16, phases: &[(&str, u64)]) -> String {
    let of_phase = |&(phase, ns): &(&str, u64)| {
        let printed = Printed {
            app: "batch",
            sched,
            phase,
            tick_phase,
            ns,
            srpt_bound_ns: 700_000_000,
        };
        printed.lines()
    };
    phases.iter().map(of_phase).collect()
}

struct Point {
    folder: String,
    /// What `SCHED_WAITS` was when it was made.
    built: u32,
    /// PBG's average in each boot, of which every one is at a tick phase of its own.
    pbg_ms: Vec<u64>,
    sources: &'static str,
}

fn point(waits: u32, pbg_ms: u64) -> Point {
    Point {
        folder: format!("target/lab-waits{waits}"),
        built: waits,
        pbg_ms: vec![pbg_ms],
        sources: "s",
    }
}

fn write(lab: &Lab, point: &Point) {
    let boots = |of: fn(u16, u64) -> String| {
        let boots = (0..).zip(&point.pbg_ms);
        let boots: Vec<_> = boots.map(|(i, ms)| of(i, ms * 1_000_000)).collect();
        boots.join("\n")
    };
    let sjf = boots(|i, ns| lines("sjf", i, &[("run", ns * 2)]));
    let pbg = boots(|i, ns| lines("pbg", i, &[("measure", ns * 3), ("replay", ns)]));
    let cells = [("sched_sjf", sjf), ("sched_pbg", pbg)];
    for (policy, lines) in cells {
        let cell = format!("{}/x86_64/batch/{policy}", point.folder);
        lab.write(&format!("{cell}.jsonl"), &lines);
        let origin = format!(
            r#"{{"fingerprint":"f","sources":"{}","command":"make run A=apps/batch SCHED_WAITS={}","runs":1,"tick_phases":[0]}}"#,
            point.sources, point.built
        );
        lab.write(&format!("{cell}.cell.json"), &origin);
    }
}

fn waits(lab: &Lab, folders: &[&str]) -> Ended {
    let paths: Vec<_> = folders.iter().map(|folder| lab.path(folder)).collect();
    let mut arguments = vec!["waits", "--out"];
    let out = lab.path("out");
    arguments.push(out.to_str().expect("text"));
    arguments.extend(paths.iter().map(|path| path.to_str().expect("text")));
    lab.run(&arguments)
}

/// Of these numbers of waits, with these averages of PBG in ms.
fn sweep(points: &[(u32, u64)]) -> (Lab, Ended) {
    let lab = Lab::new();
    let points: Vec<_> = points.iter().map(|(n, ms)| point(*n, *ms)).collect();
    for point in &points {
        write(&lab, point);
    }
    let folders: Vec<_> = points.iter().map(|point| point.folder.as_str()).collect();
    let end = waits(&lab, &folders);
    (lab, end)
}

#[test]
fn a_curve_without_a_cliff_is_a_table_a_file_and_a_chart() {
    // In any order: a sweep has its own.
    let (lab, end) = sweep(&[(2, 820), (1, 800), (16, 880)]);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(
        end.out,
        "\
The more often a job waits: batch on x86_64: average turnaround in ms (1 CPU, icount time, scale 1)

 waits        sjf       pbg   SRPT bound   pbg/SRPT   step, %
--------------------------------------------------------------
     1   1600.000   800.000      700.000     1.1429
     2   1640.000   820.000      700.000     1.1714     +2.50
    16   1760.000   880.000      700.000     1.2571     +7.32

2 steps of PBG, the largest 2.50 % a wait, from 1 to 2 waits (800.000 and 820.000 ms); allowed are 3.00 % a wait
"
    );
    let csv = lab.read("out/waits.csv");
    let expected = "\
arch,smp,timing,scale,waits,scheduler,figure,unit,value,min,mean,max,phases
x86_64,1,icount,1,1,sjf,average,ms,1600.000,1600.000,1600.000,1600.000,1
x86_64,1,icount,1,1,pbg,average,ms,800.000,800.000,800.000,800.000,1
x86_64,1,icount,1,1,pbg,SRPT bound,ms,700.000,700.000,700.000,700.000,1
x86_64,1,icount,1,2,sjf,";
    assert!(csv.starts_with(expected), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 3 * 3);
    assert!(lab.read("out/waits.svg").starts_with("<svg"));
    assert!(lab.exists("out/waits.png"));
}

#[test]
fn a_cliff_fails_with_what_was_found_and_what_is_allowed() {
    let (lab, end) = sweep(&[(14, 860), (15, 874), (16, 1043), (17, 1000)]);
    assert_eq!(end.code, Some(1), "{end:?}");
    let last: Vec<_> = end.out.lines().rev().take(3).collect();
    assert_eq!(
        last,
        [
            "3 steps of PBG, the largest 19.34 % a wait, from 15 to 16 waits (874.000 and 1043.000 ms); allowed are 3.00 % a wait; 2 are more",
            "PBG: allowed are 3.00 % a wait, found 4.30 % a wait, from 16 to 17 waits (1043.000 and 1000.000 ms)",
            "PBG: allowed are 3.00 % a wait, found 19.34 % a wait, from 15 to 16 waits (874.000 and 1043.000 ms)",
        ]
    );
    assert!(lab.exists("out/waits.svg"), "to be looked at");
}

#[test]
fn over_several_tick_phases_the_mean_is_judged() {
    let lab = Lab::new();
    // At the first tick phase nothing changes.
    for (waits, other_ms) in [(1, 800), (2, 860)] {
        let mut point = point(waits, 800);
        point.pbg_ms.push(other_ms);
        write(&lab, &point);
    }
    let end = waits(&lab, &["target/lab-waits1", "target/lab-waits2"]);
    assert_eq!(end.code, Some(1), "{end:?}");
    for text in [
        "scale 1, mean over 2 tick phases)\n",
        "found 3.75 % a wait, from 1 to 2 waits (800.000 and 830.000 ms)\n",
    ] {
        assert!(end.out.contains(text), "{}", end.out);
    }
    let csv = lab.read("out/waits.csv");
    let pbg = "x86_64,1,icount,1,2,pbg,average,ms,800.000,800.000,830.000,860.000,2\n";
    assert!(csv.contains(pbg), "{csv}");
    // One with fewer is of another sweep.
    write(&lab, &point(2, 800));
    let end = waits(&lab, &["target/lab-waits1", "target/lab-waits2"]);
    assert_eq!(end.code, Some(2), "{end:?}");
    assert!(
        end.err
            .contains("found some of x86_64, SMP=1 TIMING=icount SCALE=1, tick phases: 1")
    );
}

#[test]
fn a_page_is_checked_against_the_file() {
    let (lab, _) = sweep(&[(1, 800), (2, 820)]);
    let page = "\
<!-- given {\"csv\": \"waits.csv\"} -->
<!-- table {\"title\": \"waits\", \"rows\": \"waits\", \"columns\": [
    {\"title\": \"PBG\", \"scheduler\": \"pbg\", \"figure\": \"average\"},
    {\"title\": \"bound\", \"figure\": \"SRPT bound\"}]} -->
<!-- end -->
";
    lab.write("out/page.md", page);
    let path = lab.path("out/page.md");
    let end = lab.run(&["docs", path.to_str().expect("text")]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let rows = "
| waits | PBG | bound |
|---|--:|--:|
| 1 | 800.000 | 700.000 |
| 2 | 820.000 | 700.000 |
";
    assert!(lab.read("out/page.md").contains(rows));
}

#[test]
fn what_makes_no_curve_is_refused_in_a_line() {
    let second = |change: fn(&mut Point)| {
        let lab = Lab::new();
        write(&lab, &point(1, 800));
        let mut other = point(2, 810);
        change(&mut other);
        write(&lab, &other);
        let end = waits(&lab, &["target/lab-waits1", &other.folder]);
        assert_eq!((end.code, end.err.lines().count()), (Some(2), 1), "{end:?}");
        assert!(!lab.exists("out/waits.csv"));
        end.err
    };
    for (err, expected) in [
        (
            second(|other| other.built = 4),
            "lab-waits2: x86_64/batch/sched_sjf: expected results made with SCHED_WAITS=2, found some of `make run A=apps/batch SCHED_WAITS=4`\n",
        ),
        (
            second(|other| other.built = 22),
            "expected results made with SCHED_WAITS=2, found some of",
        ),
        (
            second(|other| other.sources = "other"),
            "SCALE=1, tick phases: 1, sources s, as in ",
        ),
        (
            second(|other| other.folder = "target/lab".into()),
            "target/lab: expected a folder whose name ends in -waits and a number\n",
        ),
    ] {
        assert!(err.contains(expected), "{err}");
    }
    let lab = Lab::new();
    write(&lab, &point(1, 800));
    for (folders, expected) in [
        (
            &["target/lab-waits1", "target/lab-waits2"][..],
            "lab-waits2: x86_64/batch/sched_sjf: expected results, found none\n",
        ),
        (
            &["target/lab-waits1", "target/lab-waits1"],
            "expected results of two numbers of waits or more, found 1\n",
        ),
    ] {
        let end = waits(&lab, folders);
        assert_eq!(end.code, Some(2), "{end:?}");
        assert!(end.err.ends_with(expected), "{}", end.err);
    }
}
