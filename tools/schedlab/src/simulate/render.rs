//! A table on a terminal: the bound, and each policy beside it.

use sched_sim::{play::INTERRUPT_NS, policies::Sharing, whatif::Change};

use super::{
    cells::Play,
    flavour::{Flavour, Flavours},
};
use crate::{
    compare::Results,
    grid,
    output::count,
    record::Outcome,
    spread::{Spread, deviation, letters},
};

/// Returns the average turnaround in ms, over the phases of the tick.
pub fn average(boots: &[Outcome]) -> Spread {
    let ms = |boot: &Outcome| boot.last().avg_turnaround_ns as f64 / 1e6;
    let values: Vec<f64> = boots.iter().map(ms).collect();
    Spread::of(&values).expect("a phase at least")
}

/// Returns the largest distance of a figure from its mean, in %, without the sign.
pub fn percent(spread: &Spread) -> String {
    deviation(spread).replace(['±', '%', ' '], "")
}

/// Returns the changes in a line; no line if there are none.
pub fn what_if(changes: &[Change]) -> Vec<String> {
    let words: Vec<_> = changes.iter().map(ToString::to_string).collect();
    match words.is_empty() {
        true => Vec::new(),
        false => vec![format!("what if: {}", words.join("; "))],
    }
}

/// Returns the policies under which CPUs share the work, in a line; `None` if there are none.
fn sharing_policies(rows: &[Row]) -> Option<String> {
    let plays = || rows.iter().map(|row| row.play);
    let names = plays().filter(|play| play.shared() == Sharing::Balanced);
    let names: Vec<_> = names.map(Play::name).collect();
    (!names.is_empty()).then(|| {
        let stays = match plays().any(Play::preempted_stay) {
            true => "; a preempted task stays on its CPU",
            false => "",
        };
        let (names, us) = (names.join(" "), INTERRUPT_NS / 1000);
        format!("CPUs share the work under {names}; an interrupt takes {us} µs{stays}")
    })
}

/// A policy, the figures of its bound, and its own.
pub struct Row<'a> {
    pub play: &'a Play<'a>,
    pub bound: Vec<String>,
    pub figures: Vec<String>,
}

/// Returns the table of policies on one number of CPUs. `over` says over how many runs it is, and
/// the titles name the two figures of how far the averages of these differ.
pub fn table(
    rows: &[Row],
    over: &str,
    titles: [&str; 2],
    preemptive: &Flavour,
    changes: &[Change],
) -> String {
    let (header, cpus) = (&preemptive.profile.header, rows[0].play.cpus);
    let mut out = format!(
        "{} on {}, {}: turnaround in ms (model, {over})\n",
        header.program.name,
        header.architecture,
        count(cpus, "CPU"),
    );
    for line in sharing_policies(rows).into_iter().chain(what_if(changes)) {
        out += &(line + "\n");
    }
    let named = |name: String, words: &[String]| {
        let mut words = [&[name], words].concat();
        words.resize(9, String::new());
        words
    };
    // Kernels that do not preempt do less work, so their rows have a bound of their own.
    let bounds = [(true, ""), (false, " (coop)")].map(|(is_preemptive, end)| {
        let its = |row: &&Row| std::ptr::eq(row.play.flavour, preemptive) == is_preemptive;
        let row = rows.iter().find(its)?;
        let kind = row.play.flavour.workload.bound(cpus).kind;
        Some(named(format!("{}{end}", kind.name()), &row.bound))
    });
    let policies = rows.iter().map(|row| named(row.play.name(), &row.figures));
    let [one, other] = titles;
    let titles = [
        "scheduler",
        ">average",
        one,
        other,
        ">avg/bound",
        ">slowest",
        ">makespan",
        ">switches",
        ">Jain",
    ];
    let lines = bounds.into_iter().flatten().chain(policies);
    out + "\n" + &grid::text(&titles, lines, grid::WIDE)
}

/// Returns the table of policies that were played at phases of the tick.
pub fn at_phases(cells: &[&(&Play, Results)], preemptive: &Flavour, changes: &[Change]) -> String {
    let averages = cells.iter().map(|cell| Some(average(&cell.1.outcomes)));
    let shared = letters(&averages.collect::<Vec<_>>());
    let rows = cells.iter().zip(shared).map(|((play, cell), letters)| {
        let (average, boots) = (average(&cell.outcomes), &cell.outcomes);
        let least = play.flavour.workload.bound(play.cpus).average_ns / 1e6;
        let mean = |figure: fn(&Outcome) -> f64| {
            boots.iter().map(figure).sum::<f64>() / boots.len() as f64
        };
        let figures = vec![
            format!("{:.3}", average.mean),
            percent(&average),
            letters,
            format!("{:.3}", average.mean / least),
            format!("{:.3}", mean(|b| b.last().max_turnaround_ns as f64 / 1e6)),
            format!("{:.3}", mean(|b| b.last().makespan_ns as f64 / 1e6)),
            format!("{:.0}", mean(|b| b.last().context_switches as f64)),
            format!("{:.4}", mean(|b| b.last().jain)),
        ];
        Row {
            play,
            bound: vec![format!("{least:.3}")],
            figures,
        }
    });
    let rows: Vec<_> = rows.collect();
    let over = count(cells[0].1.outcomes.len(), "tick phase");
    table(&rows, &over, [">± %", "~"], preemptive, changes)
}

/// The meaning of the figures over phases of the tick.
pub const AT_PHASES: &str = "average, slowest (the task that took longest) and makespan are
means over the phases of the timer tick; ± %: how far the average at any of them is from the
mean at most; rows that share a letter have ranges that overlap. Nothing is claimed about single
tasks under policies that act on ticks.
";

/// The difference of the average from the recorded one, in %, from which on no figure can be
/// trusted.
const FAR_PERCENT: f64 = 2.0;

/// Returns the meaning of the figures, and what all of them rest on.
pub fn legend(figures: &str, is_changed: bool, flavours: &Flavours) -> String {
    let mut out = "
The first row is the least average that any order of these tasks could reach on this number of
CPUs if switching cost nothing; (coop): of the work in kernels that do not preempt, for fifo,
pbg-coop and stock-fifo. "
        .to_owned();
    out += figures;
    if is_changed {
        out += "\nPBG's plan is that of the recording, which does not know the changes.\n";
    }
    out += "
A task that came after a sleep of main comes at that time in any case; a task that waited for
another waits for it. A wait that did not happen, as its end was there already, is not recorded.
";
    let header = &flavours.preemptive.profile.header;
    let rest = flavours.all().fold(0.0_f64, |rest, of| rest.max(of.rest));
    let broken: u64 = flavours.all().map(|of| of.broken_waits).sum();
    if broken > 0 {
        out += &format!(
            "Played as it was recorded, all tasks waited for each other {broken} times, and one was let go:\nthe recording does not tell enough about which task waits for which, and these figures are far off.\n"
        );
    }
    let off = flavours.all().map(|of| of.off * 100.0);
    let off = off.fold(
        0.0_f64,
        |most, off| if off.abs() > most.abs() { off } else { most },
    );
    out += &format!(
        "Played as it was recorded, no task's time is off by more than {:.2} %, and the average by {off:+.2} %.\n",
        rest * 100.0
    );
    if off.abs() > FAR_PERCENT {
        out += "That is far: the recording does not tell how these tasks depend on each other.\n";
    }
    let unknown = flavours.unknown_polls();
    let mut tasks = flavours.preemptive.profile.tasks.iter();
    if unknown > 0 {
        let unknown = count(unknown, "task");
        out += &format!(
            "{unknown} poll, and the recordings do not tell for what: these figures are far off.\n"
        );
    } else if flavours.is_one_order && tasks.any(|task| task.figures.yields.total > 0) {
        out += "One run does not tell if tasks that yield poll. If they do, these figures are far off.\n";
    }
    if flavours.cooperative.is_none() {
        out += "It was made in a kernel that preempts; kernels without preemption spend less on guards.\n";
    }
    if header.unrecorded > 0 {
        let unrecorded = header.unrecorded;
        out += &format!("{unrecorded} tasks found it full and are not in it.\n");
    }
    out
}
