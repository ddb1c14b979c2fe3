use super::*;
use crate::cost::figures::tests::sample;
use crate::project::Titles;
use crate::testing::{assert_golden, assert_has};

const FILE: &str = "\
policy,architecture,tasks,instructions,compiler
sched_fifo,x86_64,4,140.0,rustc 1
sched_fifo,x86_64,256,140.0,rustc 1
sched_pbg replay,x86_64,4,140.0,rustc 1
sched_pbg replay,x86_64,256,140.0,rustc 1
stock_fifo,x86_64,4,160.0,rustc 1
stock_fifo,x86_64,256,160.0,rustc 1
stock_rr,x86_64,4,200.0,rustc 1
stock_rr,x86_64,256,200.0,rustc 1
";

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn lists(policies: &str) -> Lists {
    Lists {
        policies: words(policies),
        apps: Vec::new(),
        arches: words("x86_64"),
        titles: Titles::new(),
    }
}

/// Each row has the costs with 4 and 256 tasks of FIFO, PBG's replay, stock FIFO and stock RR.
#[test]
fn growth_is_limited_by_instructions_or_by_the_ratio_to_stock() {
    let committed = Committed::parse(FILE).unwrap();
    let mut record = String::new();
    for (compiler, fifo, replay, stock_fifo, stock_rr) in [
        (
            "rustc 1",
            [140.4, 139.6],
            [140.5, 140.0],
            [160.0; 2],
            [200.0; 2],
        ),
        (
            "rustc 1",
            [140.0, 141.0],
            [140.0; 2],
            [160.0; 2],
            [200.0; 2],
        ),
        (
            "rustc 1",
            [140.0; 2],
            [140.6, 140.0],
            [160.0; 2],
            [200.0; 2],
        ),
        (
            "rustc 1",
            [140.0; 2],
            [140.0, 140.6],
            [160.0; 2],
            [200.0; 2],
        ),
        (
            "rustc 1",
            [140.0, 139.0],
            [140.0; 2],
            [160.0; 2],
            [200.0; 2],
        ),
        ("rustc 1", [140.0; 2], [140.0; 2], [160.0; 2], [210.0; 2]),
        // Both have grown by a tenth.
        ("rustc 2", [154.0; 2], [154.0; 2], [176.0; 2], [220.0; 2]),
        // Only stock has become faster.
        (
            "rustc 2",
            [140.0; 2],
            [140.0; 2],
            [156.8, 160.0],
            [196.0, 200.0],
        ),
        (
            "rustc 2",
            [141.2, 140.0],
            [140.0; 2],
            [160.0; 2],
            [200.0; 2],
        ),
        (
            "rustc 2",
            [141.5, 140.0],
            [140.0; 2],
            [160.0; 2],
            [200.0; 2],
        ),
        // The stock policies may move apart under another compiler.
        ("rustc 2", [140.0; 2], [147.0; 2], [160.0; 2], [210.0; 2]),
    ] {
        let figures = sample(&[
            ("sched_fifo", "run", fifo),
            ("sched_pbg", "replay", replay),
            ("stock_fifo", "run", stock_fifo),
            ("stock_rr", "run", stock_rr),
        ]);
        let all = committed.judge(&figures, &words("sched_fifo"), compiler);
        let all = all.unwrap();
        let report = report(&all, Path::new("gate.csv"));
        let verdict = if report.passed { "passed" } else { "failed" };
        let costs = format!("{fifo:?} {replay:?} {stock_fifo:?} {stock_rr:?}");
        record += &format!("{compiler}: {costs}: {verdict}{}\n", report.text);
    }
    assert_golden("cost/growth", record);
}

#[test]
fn policy_is_compared_with_the_stock_one_that_preempts_like_it() {
    for (policy, stock) in [
        ("sched_fifo", "stock_fifo"),
        ("sched_pbg_coop", "stock_fifo"),
        ("sched_pbg", "stock_rr"),
        ("stock_cfs", "stock_rr"),
        ("stock_rr", "stock_fifo"),
        ("stock_fifo", "stock_rr"),
    ] {
        assert_eq!(stock_of(policy), stock, "{policy}");
    }
    let all = words("sched_fifo sched_rr stock_fifo stock_rr");
    let found = with_stock(&words("sched_fifo"), &all);
    assert_eq!(found, ["sched_fifo", "stock_fifo", "stock_rr"]);
}

#[test]
fn figure_without_a_line_and_line_without_a_figure_do_not_pass() {
    let committed = Committed::parse(FILE).unwrap();
    let judge = |figures: &Figures| committed.judge(figures, &words("sched_fifo"), "rustc 1");
    let new = report(
        &judge(&sample(&[
            ("sched_new", "run", [100.0; 2]),
            ("sched_fifo", "run", [140.0; 2]),
        ]))
        .unwrap(),
        Path::new("gate.csv"),
    );
    let why = "cost-gate: new: sched_new on x86_64, 4 tasks: no figure before, 100.0 after\n";
    assert_has(&new.text, why);
    assert!(!new.passed);
    let half = Figures(sample(&[("sched_fifo", "run", [140.0; 2])]).0[..1].to_vec());
    let why = "sched_fifo on x86_64, 256 tasks: expected a figure, found none";
    assert_eq!(judge(&half).unwrap_err().to_string(), why);
    let free = sample(&[("sched_fifo", "run", [0.0; 2])]);
    let why = "sched_fifo on x86_64: expected a cost above 0, found 0";
    assert_eq!(judge(&free).unwrap_err().to_string(), why);
}

#[test]
fn update_writes_measured_figures_and_keeps_the_others_in_order() {
    let mut committed = Committed::parse(FILE).unwrap();
    let figures = sample(&[
        ("sched_fifo", "run", [138.0; 2]),
        ("sched_new", "run", [139.0; 2]),
    ]);
    let all = committed.judge(&figures, &[], "rustc 1").unwrap();
    committed.update(&all, &lists("sched_fifo sched_new stock_fifo stock_rr"));
    let expected = FILE
        .replace("sched_pbg replay", "sched_new")
        .replace(",140.0", ",139.0")
        .replace("fifo,x86_64,4,139.0", "fifo,x86_64,4,138.0")
        .replace("fifo,x86_64,256,139.0", "fifo,x86_64,256,138.0");
    assert_eq!(committed.csv().unwrap(), expected);
}

#[test]
fn one_architecture_has_one_compiler() {
    let committed = Committed::parse(FILE).unwrap();
    let all = "sched_fifo stock_fifo stock_rr";
    let check = |wanted: &str, compiler: &str| {
        let checked = committed.check_update(&lists(wanted), &words(all), compiler);
        checked.map_err(|error| error.to_string())
    };
    let why = "stock_rr on x86_64 is of `rustc 1`, and this is `rustc 2`; allowed is to update all policies at once";
    assert_eq!(check("sched_fifo stock_fifo", "rustc 2").unwrap_err(), why);
    assert_eq!(check("sched_fifo stock_fifo", "rustc 1"), Ok(()));
    assert_eq!(check(all, "rustc 2"), Ok(()));
    for (from, to) in [("rustc 1", "rustc 2"), ("140.0", "0"), ("256", "4")] {
        assert!(
            Committed::parse(&FILE.replacen(from, to, 1)).is_err(),
            "{to}"
        );
    }
}
