//! The output: a table for people, and a result line for each row.

use alloc::format;

use sched_tests_common::{
    platform::println,
    results::{ResultLine, Setting, context},
};
use sched_tests_results::ConnLine;

use super::{
    combination::Combination,
    run::{Load, Outcome, Served},
};

/// Prints the column headings of a phase.
pub fn heading(phase: &str) {
    println!("\n{phase}\n");
    println!(
        "{:>11}{:>7}{:>9}{:>10}{:>7}{:>10}{:>10}{:>10}{:>10}{:>9}{:>10}{:>7}{:>7}",
        "connections",
        "",
        "priority",
        "answers/s",
        "lost",
        "mean, us",
        "50 %, us",
        "99 %, us",
        "worst, us",
        "bytes/c",
        "ns/answer",
        "rest,%",
        "idle,%",
    );
}

/// Prints a run. Returns true if each request is accounted for, each answer is right, the CPU time adds up and the
/// memory was given back.
pub fn print(
    setting: &Setting,
    phase: &str,
    combination: Combination,
    load: &Load,
    outcome: &Outcome,
) -> bool {
    let all = line(setting, phase, combination, load, outcome, &outcome.all);
    if outcome.out_of_memory {
        println!(
            "{:>11}{:>7}  out of memory after {} of them",
            load.connections,
            combination.name(),
            outcome.started
        );
    } else {
        row(&all);
    }
    let mut lines = alloc::vec![all];
    if load.priorities > 1 {
        for (priority, served) in outcome.by_priority.iter().enumerate() {
            let of_all = line(setting, phase, combination, load, outcome, served);
            let of_one = ConnLine {
                priority: Some(priority as u8),
                components_ns: None,
                client_ns: None,
                rest_ns: None,
                idle_ns: None,
                polls: None,
                ..of_all
            };
            row(&of_one);
            lines.push(of_one);
        }
    }
    for line in &lines {
        println!("{}", line.to_line());
    }
    let is_right = is_right(&lines[0], outcome);
    if let Err(why) = &is_right {
        println!(
            "{phase}, {} {}: {why}",
            load.connections,
            combination.name()
        );
    }
    is_right.is_ok()
}

fn is_right(line: &ConnLine, outcome: &Outcome) -> Result<(), alloc::string::String> {
    let wrong = outcome.all.figures.wrong;
    if wrong > 0 {
        return Err(format!("{wrong} answers are wrong"));
    }
    if line.unanswered > 0 && !line.out_of_memory {
        return Err(format!("{} requests have no answer", line.unanswered));
    }
    if outcome.kept_bytes > 0 {
        return Err(format!("{} bytes were not given back", outcome.kept_bytes));
    }
    if let Some(account) = outcome.account {
        let sum = account.components_ns + account.client_ns + account.rest_ns + account.idle_ns;
        // To four ticks of the counter.
        if sum.abs_diff(line.window_ns) > line.window_ns / 1_000 {
            return Err(format!(
                "the CPU's {sum} ns are not the window's {} ns",
                line.window_ns
            ));
        }
    }
    Ok(())
}

fn row(line: &ConnLine) {
    let us = |ns: u64| format!("{}.{}", ns / 1_000, ns % 1_000 / 100);
    let percent = |ns: Option<u64>| {
        ns.map_or("-".into(), |ns| {
            let permille = ns * 1_000 / line.window_ns;
            format!("{}.{}", permille / 10, permille % 10)
        })
    };
    // The CPU time of an answer, without the client.
    let busy = (line.components_ns.zip(line.rest_ns)).map(|(own, rest)| own + rest);
    println!(
        "{:>11}{:>7}{:>9}{:>10}{:>7}{:>10}{:>10}{:>10}{:>10}{:>9}{:>10}{:>7}{:>7}",
        line.connections,
        line.combination,
        line.priority.map_or("".into(), |p| format!("{p}")),
        (u128::from(line.answered) * 1_000_000_000 / u128::from(line.window_ns)) as u64,
        line.lost,
        us(line.mean_ns),
        us(line.median_ns),
        us(line.p99_ns),
        us(line.worst_ns),
        line.peak_bytes / line.connections.max(1) as u64,
        busy.and_then(|ns| ns.checked_div(line.answered))
            .map_or("-".into(), |ns| format!("{ns}")),
        percent(line.rest_ns),
        percent(line.idle_ns),
    );
}

fn line(
    setting: &Setting,
    phase: &str,
    combination: Combination,
    load: &Load,
    outcome: &Outcome,
    served: &Served,
) -> ConnLine {
    let account = outcome.account;
    let (figures, latencies) = (&served.figures, &served.latencies);
    ConnLine {
        context: context(setting, phase),
        timing: setting.timing.into(),
        scale: setting.scale,
        combination: combination.name().into(),
        connections: served.connections,
        interval_ns: load.interval_ns,
        rounds: load.rounds,
        window_ns: load.window_ns,
        out_of_memory: outcome.out_of_memory,
        started: outcome.started,
        sent: figures.sent,
        answered: figures.answered,
        late: figures.late,
        lost: figures.lost,
        unanswered: figures.unanswered(),
        mean_ns: latencies.mean(),
        median_ns: latencies.percentile(50),
        p99_ns: latencies.percentile(99),
        worst_ns: latencies.percentile(100),
        waiting_bytes: outcome.waiting_bytes as u64,
        peak_bytes: outcome.peak_bytes as u64,
        components_ns: account.map(|account| account.components_ns),
        client_ns: account.map(|account| account.client_ns),
        rest_ns: account.map(|account| account.rest_ns),
        idle_ns: account.map(|account| account.idle_ns),
        polls: account.map(|account| account.polls),
        ..ConnLine::default()
    }
}
