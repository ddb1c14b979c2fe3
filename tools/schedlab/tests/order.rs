//! `schedlab order`, on folders of results that no guest has printed.

mod common;

use common::{Ended, Lab, Printed};

const APPS: [&str; 4] = ["realtime", "unequal", "occupy", "batch"];
const COST: &str = "\
arch,smp,timing,scale,scheduler,tasks,unit,value,min,mean,max,phases
";

fn lines(app: &str, sched: &str, boot: u16, average_ms: u64) -> String {
    let ns = average_ms * 1_000_000;
    let printed = Printed {
        app,
        sched,
        phase: "run",
        tick_phase: boot * 125,
        ns,
        srpt_bound_ns: ns,
    };
    printed.lines()
}

/// The results of a folder, of two boots: this average, and 10 ms more; made with `variable`.
fn write(lab: &Lab, folder: &str, average_ms: u64, variable: &str) {
    let mut costs = COST.to_owned();
    for (policy, sched) in [("sched_cfs", "cfs"), ("sched_eevdf", "eevdf")] {
        for app in APPS {
            let cell = format!("{folder}/x86_64/{app}/{policy}");
            let boots = [0, 1].map(|i| lines(app, sched, i, average_ms + 10 * u64::from(i)));
            lab.write(&format!("{cell}.jsonl"), &boots.join("\n"));
            let origin = format!(
                r#"{{"fingerprint":"f","sources":"s","command":"make run A=apps/{app}{variable}","runs":1,"tick_phases":[0,125]}}"#
            );
            lab.write(&format!("{cell}.cell.json"), &origin);
        }
        for tasks in [1, 4, 64, 256, 1024, 4096] {
            costs += &format!(
                "x86_64,1,icount,1,{sched},{tasks},instructions,{average_ms}.0,{average_ms}.0,{average_ms}.0,{average_ms}.0,1\n"
            );
        }
    }
    lab.write(&format!("{folder}/cost.csv"), &costs);
}

fn order(lab: &Lab) -> Ended {
    let [buckets, exact, out] =
        ["lab-order-buckets", "lab-order-exact", "out"].map(|folder| lab.path(folder));
    let words = [&buckets, &exact, &out].map(|path| path.to_str().expect("text"));
    lab.run(&["order", "--out", words[2], words[0], words[1]])
}

#[test]
fn both_orders_are_a_table_and_a_file() {
    let lab = Lab::new();
    write(&lab, "lab-order-buckets", 290, "");
    write(&lab, "lab-order-exact", 590, " SCHED_ORDER=exact");
    let end = order(&lab);
    assert_eq!(end.code, Some(0), "{end:?}");
    let expected = "\
x86_64: order by buckets and exact order

 app        figure    unit                     ";
    assert!(end.out.starts_with(expected), "{}", end.out);
    let csv = lab.read("out/order.csv");
    let of_cfs = |line: &&str| line.contains(",realtime,cfs") || line.contains(",cost,cfs");
    let lines: Vec<_> = csv.lines().filter(of_cfs).collect();
    assert_eq!(
        lines,
        [
            "x86_64,realtime,cfs,average,ms,290.000,290.000,295.000,300.000,2",
            "x86_64,realtime,cfs,Jain,,0.500000,0.500000,0.500000,0.500000,2",
            "x86_64,cost,cfs,4,instructions,290.0,290.0,290.0,290.0,1",
            "x86_64,cost,cfs,256,instructions,290.0,290.0,290.0,290.0,1",
            "x86_64,cost,cfs,4096,instructions,290.0,290.0,290.0,290.0,1",
            "x86_64,realtime,cfs-exact,average,ms,590.000,590.000,595.000,600.000,2",
            "x86_64,realtime,cfs-exact,Jain,,0.500000,0.500000,0.500000,0.500000,2",
            "x86_64,cost,cfs-exact,4,instructions,590.0,590.0,590.0,590.0,1",
            "x86_64,cost,cfs-exact,256,instructions,590.0,590.0,590.0,590.0,1",
            "x86_64,cost,cfs-exact,4096,instructions,590.0,590.0,590.0,590.0,1",
        ]
    );
    assert_eq!(csv.lines().count(), 1 + 4 * (4 * 2 + 3));
}

#[test]
fn results_of_the_other_order_are_refused() {
    for (first, second, sentence) in [
        (
            "",
            "",
            "expected results made with SCHED_ORDER=exact, found some of `make run A=apps/realtime`",
        ),
        (
            " SCHED_ORDER=exact",
            " SCHED_ORDER=exact",
            "expected results made without SCHED_ORDER=exact, found some of `make run A=apps/realtime SCHED_ORDER=exact`",
        ),
    ] {
        let lab = Lab::new();
        write(&lab, "lab-order-buckets", 290, first);
        write(&lab, "lab-order-exact", 590, second);
        let end = order(&lab);
        assert_eq!(end.code, Some(2), "{end:?}");
        assert!(end.err.contains(sentence), "{}", end.err);
    }
}

#[test]
fn a_cost_that_is_missing_is_named() {
    let lab = Lab::new();
    write(&lab, "lab-order-buckets", 290, "");
    write(&lab, "lab-order-exact", 590, " SCHED_ORDER=exact");
    lab.write("lab-order-exact/cost.csv", COST);
    let end = order(&lab);
    assert_eq!(end.code, Some(2), "{end:?}");
    assert!(
        end.err
            .contains("cost.csv: expected cfs on x86_64 with 4 tasks, found none"),
        "{}",
        end.err
    );
}
