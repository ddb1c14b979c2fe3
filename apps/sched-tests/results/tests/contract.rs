//! The lines as they are documented, byte by byte, and the lines that a reader accepts or refuses.

use sched_tests_results::*;

fn context() -> Context {
    Context {
        app: "realtime".into(),
        arch: "x86_64".into(),
        smp: 1,
        sched: "pbg".into(),
        phase: "replay".into(),
    }
}

fn task() -> TaskLine {
    TaskLine {
        context: context(),
        task: "short1".into(),
        submit_ns: 10,
        first_run_ns: 11,
        finish_ns: 1000,
        turnaround_ns: 990,
        run_ns: 500,
        dispatches: 2,
        yields: 7,
        ..TaskLine::default()
    }
}

fn run() -> RunLine {
    RunLine {
        context: context(),
        timing: COUNTED.into(),
        scale: 1,
        tasks: 2,
        avg_turnaround_ns: 1995,
        max_turnaround_ns: 3000,
        makespan_ns: 3001,
        context_switches: 9,
        srpt_bound_ns: 1500,
        jain: 0.8,
        pass: true,
        ..RunLine::default()
    }
}

const HEAD: &str = r#"{"app":"realtime","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay""#;

/// The line is written so and read back.
fn is_as_documented<T: ResultLine + PartialEq + std::fmt::Debug>(line: &T, json: &str) {
    let expected = format!("{} {json}", T::KIND);
    assert_eq!(line.to_line(), expected);
    assert_eq!(T::read(&expected).as_ref(), Ok(line));
}

#[test]
fn task_lines_are_as_documented() {
    let keys = r#","task":"short1","submit_ns":10,"first_run_ns":11,"finish_ns":1000,"turnaround_ns":990,"run_ns":500,"dispatches":2,"yields":7"#;
    is_as_documented(&task(), &format!("{HEAD}{keys}}}"));
    let more = TaskLine {
        groups: Some(3),
        run_in_window_ns: Some(4),
        wrong: true,
        ..task()
    };
    let added = r#","groups":3,"run_in_window_ns":4,"wrong":true"#;
    is_as_documented(&more, &format!("{HEAD}{keys}{added}}}"));
}

#[test]
fn run_lines_are_as_documented() {
    let keys = r#","timing":"icount","scale":1,"tasks":2,"avg_turnaround_ns":1995,"max_turnaround_ns":3000,"makespan_ns":3001,"context_switches":9,"srpt_bound_ns":1500,"jain":0.8"#;
    is_as_documented(&run(), &format!(r#"{HEAD}{keys},"pass":true}}"#));
    let more = RunLine {
        ns_per_yield: Some(71.429),
        tick_phase: Some(TickPhase::try_from(125).unwrap()),
        tasks_run_ns: Some(2500),
        main_run_ns: Some(1),
        gc_run_ns: Some(2),
        rest_run_ns: Some(3),
        idle_ns: Some(494),
        holds_handles: true,
        traced: true,
        pass: false,
        ..run()
    };
    let added = r#","ns_per_yield":71.429,"tick_phase":125,"tasks_run_ns":2500,"main_run_ns":1,"gc_run_ns":2,"rest_run_ns":3,"idle_ns":494,"holds_handles":true,"traced":true,"pass":false"#;
    is_as_documented(&more, &format!("{HEAD}{keys}{added}}}"));
}

#[test]
fn trace_lines_are_as_documented() {
    let line = TraceLine {
        context: context(),
        task: "short1".into(),
        bin_ns: 400,
        run_ns: [0, 390, 110].into(),
        blocked_ns: [].into(),
    };
    let keys = r#","task":"short1","bin_ns":400,"run_ns":[0,390,110],"blocked_ns":[]"#;
    is_as_documented(&line, &format!("{HEAD}{keys}}}"));
}

#[test]
fn cost_lines_are_as_documented() {
    let line = CostLine {
        context: context(),
        timing: COUNTED.into(),
        scale: 1,
        tasks: 4,
        instructions_per_yield: Some(202.0),
        ns_per_yield: None,
    };
    let keys = r#","timing":"icount","scale":1,"tasks":4,"instructions_per_yield":202.0"#;
    is_as_documented(&line, &format!("{HEAD}{keys}}}"));
    let real = CostLine {
        timing: "real".into(),
        instructions_per_yield: None,
        ns_per_yield: Some(0.0),
        ..line
    };
    let keys = r#","timing":"real","scale":1,"tasks":4,"ns_per_yield":0.0"#;
    is_as_documented(&real, &format!("{HEAD}{keys}}}"));
}

#[test]
fn wake_lines_are_as_documented() {
    let line = WakeLine {
        context: context(),
        timing: "real".into(),
        scale: 1,
        queue: "idle".into(),
        wakes: 1_000,
        median_ns: 60_000,
        p99_ns: 90_000,
        worst_ns: 400_000,
        bins: [0, 0, 1_000].into(),
        interrupts: 999,
        most_interrupts: 1,
    };
    let keys = r#","timing":"real","scale":1,"queue":"idle","wakes":1000,"median_ns":60000,"#;
    let more = r#""p99_ns":90000,"worst_ns":400000,"bins":[0,0,1000],"#;
    let most = r#""interrupts":999,"most_interrupts":1"#;
    is_as_documented(&line, &format!("{HEAD}{keys}{more}{most}}}"));
}

#[test]
fn coop_lines_are_as_documented() {
    let line = CoopLine {
        context: context(),
        timing: COUNTED.into(),
        scale: 1,
        figure: "switch".into(),
        among: 100_000,
        unit: "instructions".into(),
        coroutines: 76.5,
        threads: Some(160.0),
        ratio: Some(0.478),
        limit: Some(0.5),
        pass: true,
    };
    let keys = r#","timing":"icount","scale":1,"figure":"switch","among":100000,"#;
    let more = r#""unit":"instructions","coroutines":76.5,"#;
    let beside = r#""threads":160.0,"ratio":0.478,"limit":0.5,"#;
    is_as_documented(&line, &format!("{HEAD}{keys}{more}{beside}\"pass\":true}}"));
    let alone = CoopLine {
        threads: None,
        ratio: None,
        limit: None,
        pass: false,
        ..line
    };
    is_as_documented(&alone, &format!("{HEAD}{keys}{more}\"pass\":false}}"));
}

#[test]
fn conn_lines_are_as_documented() {
    let line = ConnLine {
        context: context(),
        timing: COUNTED.into(),
        scale: 1,
        combination: "kcuc".into(),
        connections: 64,
        interval_ns: 100_000_000,
        rounds: 1,
        window_ns: 5_000,
        started: 64,
        sent: 10,
        answered: 6,
        late: 1,
        lost: 2,
        unanswered: 1,
        mean_ns: 17,
        median_ns: 16,
        p99_ns: 18,
        worst_ns: 19,
        waiting_bytes: 800,
        peak_bytes: 900,
        components_ns: Some(2_000),
        client_ns: Some(500),
        rest_ns: Some(500),
        idle_ns: Some(2_000),
        polls: Some(70),
        ..ConnLine::default()
    };
    let load = r#","timing":"icount","scale":1,"combination":"kcuc","connections":64,"interval_ns":100000000,"rounds":1,"window_ns":5000"#;
    let served = r#","started":64,"sent":10,"answered":6,"late":1,"lost":2,"unanswered":1,"mean_ns":17,"median_ns":16,"p99_ns":18,"worst_ns":19,"waiting_bytes":800,"peak_bytes":900"#;
    let account =
        r#","components_ns":2000,"client_ns":500,"rest_ns":500,"idle_ns":2000,"polls":70"#;
    is_as_documented(&line, &format!("{HEAD}{load}{served}{account}}}"));
    let of_one = ConnLine {
        priority: Some(0),
        out_of_memory: true,
        components_ns: None,
        client_ns: None,
        rest_ns: None,
        idle_ns: None,
        polls: None,
        ..line
    };
    let load = load.replace(r#":64,"i"#, r#":64,"priority":0,"i"#);
    let out = r#","out_of_memory":true"#;
    is_as_documented(&of_one, &format!("{HEAD}{load}{out}{served}}}"));
}

fn followed() -> Followed {
    Followed {
        app: "realtime".into(),
        arch: "x86_64".into(),
        from: "boot".into(),
        planned: 5,
        matched: 4,
        missing: 1,
        unplanned: 2,
        diverged: 3,
        demoted: 1,
        dropped: false,
        turns: 9,
        late: 0,
        behind: true,
        turnaround_permille: 1051,
        first: None,
        measured_avg_turnaround_ns: 1000,
        slower: true,
    }
}

#[test]
fn pbg_lines_are_as_documented() {
    let head = r#"{"app":"realtime","arch":"x86_64","from":"#;
    let refused = PbgLine::Refused(Refused {
        app: "realtime".into(),
        arch: "x86_64".into(),
        from: "disk".into(),
        refused: "found `a\"b`".into(),
    });
    is_as_documented(
        &refused,
        &format!(r#"{head}"disk","refused":"found `a\"b`"}}"#),
    );

    let keys = r#""boot","planned":5,"matched":4,"missing":1,"unplanned":2,"diverged":3,"demoted":1,"dropped":false,"turns":9,"late":0,"behind":true,"turnaround_permille":1051"#;
    let own = r#","measured_avg_turnaround_ns":1000,"slower":true"#;
    is_as_documented(
        &PbgLine::Followed(followed()),
        &format!("{head}{keys}{own}}}"),
    );
    let diverged = PbgLine::Followed(Followed {
        first: Some(Divergence {
            why: "run time".into(),
            task: "27f818c3c18b0cda".into(),
            expected: 10,
            found: 21,
        }),
        ..followed()
    });
    let first = r#","why":"run time","task":"27f818c3c18b0cda","expected":10,"found":21"#;
    is_as_documented(&diverged, &format!("{head}{keys}{first}{own}}}"));
}

#[test]
fn unknown_keys_are_ignored() {
    let line = task().to_line().replace("{", r#"{"new":{"x":[1.5]},"#);
    assert_eq!(TaskLine::read(&line), Ok(task()));
    let line = PbgLine::Followed(followed()).to_line();
    let more = line.replace("{", r#"{"new":null,"#);
    assert_eq!(PbgLine::read(&more), PbgLine::read(&line));
}

#[test]
fn all_missing_keys_are_named_with_the_kind_of_the_line() {
    let fails = |line: &str| RunLine::read(line).unwrap_err().to_string();
    let without = run()
        .to_line()
        .replace(r#""makespan_ns":3001,"#, "")
        .replace(r#""app":"realtime","#, "");
    assert_eq!(fails(&without), "SCHED-RUN lacks `app`, `makespan_ns`");
    assert!(
        fails("SCHED-RUN {}").starts_with("SCHED-RUN lacks `app`, `arch`, `avg_turnaround_ns`")
    );

    let followed = PbgLine::Followed(followed()).to_line();
    let fails = |line: &str| PbgLine::read(line).unwrap_err().to_string();
    assert_eq!(
        fails(&followed.replace(r#""planned":5,"#, "")),
        "SCHED-PBG lacks `planned`"
    );
    assert_eq!(
        fails(r#"SCHED-PBG {"refused":"x","from":"disk"}"#),
        "SCHED-PBG lacks `app`, `arch`"
    );
}

#[test]
fn a_line_that_is_none_or_damaged_says_what_is_wrong() {
    let fails = |line: &str| RunLine::read(line).unwrap_err().to_string();
    for other in [
        "",
        "SCHED-RUN",
        " SCHED-RUN {}",
        "SCHED-RUNS {}",
        &task().to_line(),
    ] {
        assert_eq!(fails(other), "no SCHED-RUN line", "{other}");
    }
    assert_eq!(
        fails("SCHED-RUN [1]"),
        "SCHED-RUN: invalid type: sequence, expected a map"
    );
    let cut = &run().to_line()[..40];
    assert!(
        fails(cut).starts_with("SCHED-RUN: EOF while parsing"),
        "{}",
        fails(cut)
    );
    let bad = run().to_line().replace(r#""scale":1"#, r#""scale":-1"#);
    assert!(
        fails(&bad).contains("invalid value: integer `-1`, expected u64"),
        "{}",
        fails(&bad)
    );
    let twice = run()
        .to_line()
        .replace(r#""scale":1"#, r#""scale":1,"scale":2"#);
    assert_eq!(fails(&twice), "SCHED-RUN: duplicate field `scale`");
    let twice = run().to_line().replace(r#""smp":1"#, r#""smp":1,"smp":1"#);
    assert_eq!(fails(&twice), "SCHED-RUN: duplicate field `smp`");
    let beyond = run()
        .to_line()
        .replace(r#""jain""#, r#""tick_phase":1000,"jain""#);
    assert!(fails(&beyond).contains("a tick phase is 0 to 999, not 1000"));
}

#[test]
fn event_lines_are_as_documented() {
    let head = events::EventsLine {
        context: context(),
        counter_hz: 1_000_000_000,
        start_ns: 7,
        records: 1,
        lost: 2,
        ..events::EventsLine::default()
    };
    let log = events::Log::new(head, vec![34, 5]);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 1);
    is_as_documented(
        &lines[0],
        &format!(
            "{HEAD}{}",
            r#","cpu":0,"version":1,"counter_hz":1000000000,"start_ns":7,"records":1,"lost":2,"bytes":2,"crc32":2516688976,"offset":0,"data":"IgU="}"#
        ),
    );
}

#[test]
fn a_line_may_end_as_a_console_has_it() {
    assert_eq!(TaskLine::read(&(task().to_line() + "\r\n")), Ok(task()));
}

#[test]
fn each_kind_has_a_tag_of_its_own() {
    for kind in Kind::ALL {
        let line = format!("{kind} {{}}");
        assert_eq!(Kind::split(&line), Some((kind, "{}")));
    }
    for other in ["SCHED-COSTS {}", "SCHED-TASK", "boot", ""] {
        assert_eq!(Kind::split(other), None);
    }
}
