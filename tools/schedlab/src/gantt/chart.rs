//! The parts of a chart: panels of rows, and the share of a task in each column of pixels.

use sched_tests_results::{TaskLine, TraceLine};

use crate::{output::count, project::Titles, record::Traced, simulate::MODEL};

/// Panels one below the other, on one axis of time.
#[derive(Debug)]
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    /// The end of the task that ends last, of all panels.
    pub end_ns: u64,
    pub panels: Vec<Panel>,
}

/// The rows of one phase.
#[derive(Debug)]
pub struct Panel {
    pub title: String,
    pub average_ns: u64,
    /// The tasks in the order of submission.
    pub rows: Vec<Row>,
}

/// The row of one task. Times are since the start of its phase.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub submit_ns: u64,
    pub finish_ns: u64,
    pub turnaround_ns: u64,
    stays: Vec<Stay>,
    blocked: Vec<Stay>,
}

/// The time that a task was on a CPU, or blocked, between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stay {
    from_ns: u64,
    to_ns: u64,
    time_ns: u64,
}

/// Removes each phase in which PBG measures if its replay follows.
pub fn leave_out_measuring(all: &mut Vec<Traced>) {
    let is_replayed = |i: usize| {
        all.get(i + 1)
            .is_some_and(|(next, _)| (all[i].0.name(), next.name()) == ("measure", "replay"))
    };
    let replayed: Vec<bool> = (0..all.len()).map(is_replayed).collect();
    let mut replayed = replayed.into_iter();
    all.retain(|_| replayed.next() != Some(true));
}

impl Chart {
    /// Returns the chart of at least one phase. All phases belong to the same app and setting.
    pub fn new(all: &[Traced], titles: &Titles) -> Self {
        let run = &all[0].0.run;
        let panel = |traced| Panel::new(traced, titles);
        let panels: Vec<_> = all.iter().map(panel).collect();
        let rows = panels.iter().flat_map(|panel| &panel.rows);
        Self {
            title: format!(
                "When each task had the CPU: {} on {}",
                run.context.app, run.context.arch
            ),
            subtitle: format!(
                "{}, {}",
                count(run.context.smp as usize, "CPU"),
                match run.timing.as_str() {
                    MODEL => format!("model, scale {}", run.scale),
                    timing => format!(
                        "{timing} time{}, scale {}; traced, which itself takes some time",
                        if run.is_counted() {
                            " (1 ns is 1 instruction)"
                        } else {
                            ""
                        },
                        run.scale,
                    ),
                }
            ),
            end_ns: rows.map(|row| row.finish_ns).max().unwrap_or(0),
            panels,
        }
    }
}

impl Panel {
    fn new((phase, traces): &Traced, titles: &Titles) -> Self {
        Self {
            title: title(&phase.run.context.sched, phase.name(), titles),
            average_ns: phase.run.avg_turnaround_ns,
            rows: phase.tasks.iter().zip(traces).map(Row::new).collect(),
        }
    }
}

impl Row {
    fn new((task, trace): (&TaskLine, &TraceLine)) -> Self {
        let stay = |(i, &time_ns): (usize, &u64)| {
            let begin_ns = i as u64 * trace.bin_ns;
            let end_ns = begin_ns.saturating_add(trace.bin_ns);
            // It was on no CPU before its first run, nor after its end, nor did it block.
            let (from_ns, to_ns) = (begin_ns.max(task.first_run_ns), end_ns.min(task.finish_ns));
            let fits = from_ns < to_ns && to_ns - from_ns >= time_ns;
            Stay {
                from_ns: if fits { from_ns } else { begin_ns },
                to_ns: if fits { to_ns } else { end_ns },
                time_ns,
            }
        };
        let stays = |bins: &[u64]| {
            let used = bins.iter().enumerate().filter(|(_, ns)| **ns > 0);
            used.map(stay).collect()
        };
        Self {
            name: task.task.clone(),
            submit_ns: task.submit_ns,
            finish_ns: task.finish_ns,
            turnaround_ns: task.turnaround_ns,
            stays: stays(&trace.run_ns),
            blocked: stays(&trace.blocked_ns),
        }
    }

    /// Returns the share of each of `count` columns of time, `column_ns` wide, in which the task
    /// was on a CPU; 1 is all. Within a bin its time is taken to be spread evenly.
    pub fn shares(&self, column_ns: f64, count: usize) -> Vec<f64> {
        shares(&self.stays, column_ns, count)
    }

    /// Returns the columns, from and to, in which it was blocked for longer than it was on a CPU or
    /// waited for one.
    pub fn blocked(&self, column_ns: f64, count: usize) -> Vec<(i32, i32)> {
        let most = shares(&self.blocked, column_ns, count)
            .into_iter()
            .map(|share| f64::from(u8::from(share > 0.5)))
            .collect::<Vec<_>>();
        let blocks = blocks(&most, 1).into_iter();
        blocks.map(|(from, to, _)| (from, to)).collect()
    }
}

fn shares(stays: &[Stay], column_ns: f64, count: usize) -> Vec<f64> {
    let mut shares = vec![0.0; count];
    for stay in stays {
        let (from, to) = (
            stay.from_ns as f64 / column_ns,
            stay.to_ns as f64 / column_ns,
        );
        let density = stay.time_ns as f64 / (stay.to_ns - stay.from_ns) as f64;
        let columns = from as usize..(to.ceil() as usize).min(count);
        for column in columns {
            let inside = to.min(column as f64 + 1.0) - from.max(column as f64);
            shares[column] += inside * density;
        }
    }
    shares
}

/// Returns blocks of neighbours of the same height: from, to, height. A height of 0 is left out,
/// and a share that is not 0 is at least 1 high.
pub fn blocks(shares: &[f64], full: i32) -> Vec<(i32, i32, i32)> {
    let height = |share: f64| {
        let least = i32::from(share > 0.0);
        ((share * f64::from(full)).round() as i32).clamp(least, full)
    };
    let mut blocks: Vec<(i32, i32, i32)> = Vec::new();
    for (column, &share) in (0..).zip(shares) {
        match (blocks.last_mut(), height(share)) {
            (_, 0) => {}
            (Some((_, to, last)), now) if *to == column && *last == now => *to += 1,
            (_, now) => blocks.push((column, column + 1, now)),
        }
    }
    blocks
}

/// Returns the title of the policy if it is known, its name, and the phase in words if there are
/// several.
fn title(sched: &str, phase: &str, titles: &Titles) -> String {
    let name = match phase {
        "run" => sched.to_owned(),
        "measure" => format!("{sched}, measuring"),
        "replay" => format!("{sched}, following its plan"),
        _ => format!("{sched}, {phase}"),
    };
    let (stock, short) = match sched.strip_prefix("stock-") {
        Some(short) => ("Stock axsched's ", short),
        None => ("", sched),
    };
    match titles.get(short) {
        Some(title) => format!("{stock}{title} ({name})"),
        None => name,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::{
        record::{parse_traced, tests::traced_sample},
        testing::assert_golden,
    };

    /// Returns RR, and PBG in its two phases.
    pub fn three_phases() -> Vec<Traced> {
        [
            ("rr", &[("run", 3_000_000)][..]),
            ("pbg", &[("measure", 3_500_000), ("replay", 100_000)]),
        ]
        .into_iter()
        .flat_map(|(sched, phases)| {
            parse_traced(&traced_sample("realtime", sched, phases)).unwrap()
        })
        .collect()
    }

    /// Returns the row of a task with these times, and bins of 10 ns.
    fn row(first_run_ns: u64, finish_ns: u64, run_ns: &[u64], blocked_ns: &[u64]) -> Row {
        let (phase, traces) = &three_phases()[0];
        let (mut task, mut trace) = (phase.tasks[0].clone(), traces[0].clone());
        (task.first_run_ns, task.finish_ns) = (first_run_ns, finish_ns);
        (trace.bin_ns, trace.run_ns) = (10, run_ns.into());
        trace.blocked_ns = blocked_ns.into();
        Row::new((&task, &trace))
    }

    #[test]
    fn columns_of_any_width_hold_the_time_of_the_bins() {
        let row = row(3, 67, &[7, 0, 10, 1, 0, 5, 6], &[]);
        for column_ns in [1.0, 3.7, 10.0, 25.0, 80.0] {
            let shares = row.shares(column_ns, (80.0f64 / column_ns).ceil() as usize);
            let run: f64 = shares.iter().sum::<f64>() * column_ns;
            assert!((run - 29.0).abs() < 1e-9, "{column_ns}: {run}");
            assert!(shares.iter().all(|share| *share < 1.0 + 1e-9), "{shares:?}");
        }
        let percent = |share: f64| (share * 100.0).round();
        let shares: Vec<_> = row.shares(20.0, 4).into_iter().map(percent).collect();
        assert_eq!(shares, [35.0, 55.0, 25.0, 30.0]);
    }

    #[test]
    fn column_is_blocked_if_most_of_it_was() {
        let row = row(0, 70, &[10, 4, 0, 0, 0, 10], &[0, 6, 10, 10, 4]);
        assert_eq!(row.blocked(10.0, 7), [(1, 4)]);
        assert_eq!(row.blocked(20.0, 4), [(1, 2)]);
    }

    #[test]
    fn bar_begins_and_ends_with_its_task_and_not_with_the_bin() {
        let shares = row(3, 17, &[7, 7], &[]).shares(1.0, 20);
        let full: Vec<_> = (0..20).filter(|&i| shares[i] > 0.99).collect();
        assert_eq!(full, (3..17).collect::<Vec<_>>());
        assert_eq!(shares.iter().filter(|&&share| share > 0.0).count(), 14);
        // Times that were rounded on the way are drawn nevertheless.
        assert_eq!(row(3, 9, &[7], &[]).shares(10.0, 1), [0.7]);
    }

    #[test]
    fn neighbours_of_one_height_are_one_block() {
        let shares = [0.0, 1.0, 1.0, 0.001, 0.002, 0.0, 0.5, 1.2];
        assert_eq!(
            blocks(&shares, 20),
            [(1, 3, 20), (3, 5, 1), (6, 7, 10), (7, 8, 20)]
        );
        assert_eq!(blocks(&[], 20), []);
    }

    #[test]
    fn measuring_is_left_out_if_its_replay_follows() {
        let mut all = [three_phases(), three_phases()].concat();
        all.pop();
        leave_out_measuring(&mut all);
        let names: Vec<_> = all.iter().map(|(phase, _)| phase.name()).collect();
        assert_eq!(names, ["run", "replay", "run", "measure"]);
    }

    #[test]
    fn titles_name_the_app_and_each_panel_the_policy_and_the_phase() {
        let known: Titles = [("rr", "RR: in turn"), ("pbg", "PBG: by a plan")]
            .map(|(policy, title)| (policy.to_owned(), title.to_owned()))
            .into();
        let chart = Chart::new(&three_phases(), &known);
        let mut found = format!("{}, to {} ns\n", chart.title, chart.end_ns);
        for panel in &chart.panels {
            let turnaround_ns = panel.rows[0].turnaround_ns;
            let (title, average_ns) = (&panel.title, panel.average_ns);
            found += &format!("{title}: average {average_ns}, first {turnaround_ns} ns\n");
        }
        for (sched, phase) in [
            ("stock-rr", "run"),
            ("lottery", "run"),
            ("lottery", "replay"),
        ] {
            found += &format!("{}\n", title(sched, phase, &known));
        }
        assert_golden("gantt-titles.txt", &found);
    }
}
