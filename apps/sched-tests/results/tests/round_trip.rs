//! Any line that is written is read back.

use proptest::prelude::*;
use sched_tests_results::*;

/// A name with any text in it.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9-]{0,12}", any::<String>()]
}

fn any_context() -> impl Strategy<Value = Context> {
    (text(), text(), 1u32..9, text(), text()).prop_map(|(app, arch, smp, sched, phase)| Context {
        app,
        arch,
        smp,
        sched,
        phase,
    })
}

/// To six decimals, as the guest rounds them.
fn fraction() -> impl Strategy<Value = f64> {
    (0..1u64 << 50).prop_map(|millionths| millionths as f64 / 1e6)
}

fn any_task() -> impl Strategy<Value = TaskLine> {
    let times = any::<[u64; 7]>();
    let optional = any::<(Option<u64>, Option<u64>)>();
    let all = (any_context(), text(), times, optional, any::<bool>());
    all.prop_map(|(context, task, times, optional, wrong)| TaskLine {
        context,
        task,
        submit_ns: times[0],
        first_run_ns: times[1],
        finish_ns: times[2],
        turnaround_ns: times[3],
        run_ns: times[4],
        dispatches: times[5],
        yields: times[6],
        groups: optional.0,
        run_in_window_ns: optional.1,
        wrong,
    })
}

fn any_run() -> impl Strategy<Value = RunLine> {
    let numbers = any::<([u64; 6], usize)>();
    let fractions = (fraction(), prop::option::of(fraction()));
    let tick_phase = prop::option::of(0u16..1000);
    let account = any::<[Option<u64>; 5]>();
    let flags = any::<[bool; 3]>();
    (
        any_context(),
        text(),
        numbers,
        fractions,
        tick_phase,
        account,
        flags,
    )
        .prop_map(
            |(
                context,
                timing,
                (numbers, tasks),
                (jain, ns_per_yield),
                tick_phase,
                account,
                flags,
            )| {
                RunLine {
                    context,
                    timing,
                    scale: numbers[0],
                    tasks,
                    avg_turnaround_ns: numbers[1],
                    max_turnaround_ns: numbers[2],
                    makespan_ns: numbers[3],
                    context_switches: numbers[4],
                    srpt_bound_ns: numbers[5],
                    jain,
                    ns_per_yield,
                    tick_phase: tick_phase.map(|phase| TickPhase::try_from(phase).unwrap()),
                    tasks_run_ns: account[0],
                    main_run_ns: account[1],
                    gc_run_ns: account[2],
                    rest_run_ns: account[3],
                    idle_ns: account[4],
                    holds_handles: flags[0],
                    traced: flags[1],
                    pass: flags[2],
                }
            },
        )
}

fn any_trace() -> impl Strategy<Value = TraceLine> {
    let bins = prop::collection::vec(any::<u64>(), 0..20);
    (any_context(), text(), any::<u64>(), bins.clone(), bins).prop_map(
        |(context, task, bin_ns, run_ns, blocked_ns)| TraceLine {
            context,
            task,
            bin_ns,
            run_ns,
            blocked_ns,
        },
    )
}

fn any_cost() -> impl Strategy<Value = CostLine> {
    let costs = (prop::option::of(fraction()), prop::option::of(fraction()));
    (any_context(), text(), any::<(u64, usize)>(), costs).prop_map(
        |(context, timing, (scale, tasks), costs)| CostLine {
            context,
            timing,
            scale,
            tasks,
            instructions_per_yield: costs.0,
            ns_per_yield: costs.1,
        },
    )
}

fn any_wake() -> impl Strategy<Value = WakeLine> {
    let bins = prop::collection::vec(any::<u64>(), 0..20);
    (
        any_context(),
        text(),
        text(),
        any::<[u64; 6]>(),
        any::<usize>(),
        bins,
    )
        .prop_map(|(context, timing, queue, numbers, wakes, bins)| WakeLine {
            context,
            timing,
            scale: numbers[0],
            queue,
            wakes,
            median_ns: numbers[1],
            p99_ns: numbers[2],
            worst_ns: numbers[3],
            bins,
            interrupts: numbers[4],
            most_interrupts: numbers[5],
        })
}

fn any_coop() -> impl Strategy<Value = CoopLine> {
    let texts = (text(), text(), text());
    let figures = (
        fraction(),
        prop::option::of(fraction()),
        prop::option::of(fraction()),
        prop::option::of(fraction()),
    );
    (any_context(), texts, any::<(u64, usize, bool)>(), figures).prop_map(
        |(context, (timing, figure, unit), (scale, among, pass), figures)| CoopLine {
            context,
            timing,
            scale,
            figure,
            among,
            unit,
            coroutines: figures.0,
            threads: figures.1,
            ratio: figures.2,
            limit: figures.3,
            pass,
        },
    )
}

fn any_conn() -> impl Strategy<Value = ConnLine> {
    let account = prop::option::of(any::<[u64; 5]>());
    let of_all = (any::<[u64; 14]>(), any::<[usize; 2]>(), any::<bool>());
    (
        any_context(),
        [text(), text()],
        of_all,
        any::<Option<u8>>(),
        account,
    )
        .prop_map(
            |(
                context,
                [timing, combination],
                (numbers, counts, out_of_memory),
                priority,
                account,
            )| {
                let of = |at: usize| account.map(|account| account[at]);
                ConnLine {
                    context,
                    timing,
                    scale: numbers[0],
                    combination,
                    connections: counts[0],
                    priority,
                    interval_ns: numbers[1],
                    rounds: numbers[2],
                    window_ns: numbers[3],
                    out_of_memory,
                    started: counts[1],
                    sent: numbers[4],
                    answered: numbers[5],
                    late: numbers[6],
                    lost: numbers[7],
                    unanswered: numbers[8],
                    mean_ns: numbers[9],
                    median_ns: numbers[10],
                    p99_ns: numbers[11],
                    worst_ns: numbers[12],
                    waiting_bytes: numbers[13],
                    peak_bytes: numbers[0],
                    components_ns: of(0),
                    client_ns: of(1),
                    rest_ns: of(2),
                    idle_ns: of(3),
                    polls: of(4),
                }
            },
        )
}

fn any_pbg() -> impl Strategy<Value = PbgLine> {
    let origin = (text(), text(), text());
    let first = prop::option::of((text(), text(), any::<(u64, u64)>()));
    let followed = (any::<[u32; 9]>(), any::<[bool; 3]>(), first, any::<u64>());
    (origin, prop::result::maybe_ok(followed, text())).prop_map(|((app, arch, from), fate)| {
        match fate {
            Err(refused) => PbgLine::Refused(Refused {
                app,
                arch,
                from,
                refused,
            }),
            Ok((counts, flags, first, measured_avg_turnaround_ns)) => PbgLine::Followed(Followed {
                app,
                arch,
                from,
                planned: counts[0],
                matched: counts[1],
                missing: counts[2],
                unplanned: counts[3],
                diverged: counts[4],
                demoted: counts[5],
                dropped: flags[0],
                turns: counts[6],
                late: counts[7],
                behind: flags[1],
                turnaround_permille: counts[8],
                first: first.map(|(why, task, (expected, found))| Divergence {
                    why,
                    task,
                    expected,
                    found,
                }),
                measured_avg_turnaround_ns,
                slower: flags[2],
            }),
        }
    })
}

fn assert_round_trip<T: ResultLine + PartialEq + std::fmt::Debug>(
    line: &T,
) -> Result<(), TestCaseError> {
    let text = line.to_line();
    prop_assert_eq!(text.lines().count(), 1);
    let read = T::read(&text);
    prop_assert_eq!(read.as_ref(), Ok(line));
    Ok(())
}

proptest! {
    #[test]
    fn written_lines_are_read_back(
        task in any_task(),
        run in any_run(),
        trace in any_trace(),
        cost in any_cost(),
        wake in any_wake(),
        coop in any_coop(),
        conn in any_conn(),
        pbg in any_pbg(),
    ) {
        assert_round_trip(&task)?;
        assert_round_trip(&run)?;
        assert_round_trip(&trace)?;
        assert_round_trip(&cost)?;
        assert_round_trip(&wake)?;
        assert_round_trip(&coop)?;
        assert_round_trip(&conn)?;
        assert_round_trip(&pbg)?;
    }
}
