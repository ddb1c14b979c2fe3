//! A table on a terminal: the bound, and each policy beside it.

use sched_sim::{play::INTERRUPT_NS, policies::Sharing, whatif::Change};

use super::{cells::Play, flavour::Flavour};
use crate::{
    compare::Results,
    grid,
    output::count,
    record::Outcome,
    spread::{Spread, deviation, letters},
};

/// The average turnaround in ms, over the phases of the tick.
pub fn average(boots: &[Outcome]) -> Spread {
    let ms = |boot: &Outcome| boot.last().avg_turnaround_ns as f64 / 1e6;
    let values: Vec<f64> = boots.iter().map(ms).collect();
    Spread::of(&values).expect("a phase at least")
}

/// How far a figure is from its mean, in %, without the sign.
pub fn percent(spread: &Spread) -> String {
    deviation(spread).replace(['±', '%', ' '], "")
}

/// What was changed, in a line; none if nothing was.
pub fn what_if(changes: &[Change]) -> Vec<String> {
    let words: Vec<_> = changes.iter().map(ToString::to_string).collect();
    match words.is_empty() {
        true => Vec::new(),
        false => vec![format!("what if: {}", words.join("; "))],
    }
}

/// Under which of them CPUs share the work, in a line; none if they do under none.
fn who_shares(rows: &[Row]) -> Option<String> {
    let plays = || rows.iter().map(|row| row.play);
    let names = plays().filter(|play| play.shared() == Sharing::Balanced);
    let names: Vec<_> = names.map(Play::name).collect();
    (!names.is_empty()).then(|| {
        let stays = match plays().any(Play::preempted_stay) {
            true => "; who is preempted stays",
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

/// The policies on as many CPUs as the rows have. `over` says of how many runs, and the titles how
/// far the averages of these differ.
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
    for line in who_shares(rows).into_iter().chain(what_if(changes)) {
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

/// The policies, each with what it played at the phases of the tick.
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

/// What the figures are over phases of the tick.
pub const AT_PHASES: &str = "average, slowest (the task that took longest) and makespan are
means over the phases of the timer tick; ± %: how far the average at any of them is from the
mean at most; rows that share a letter have ranges that overlap. Nothing is claimed of single
tasks under policies that act on ticks.
";

/// What the figures are, and what all rest on.
pub fn legend(
    figures: &str,
    is_changed: bool,
    preemptive: &Flavour,
    cooperative: Option<&Flavour>,
) -> String {
    let mut out = "
The first row is the least average that any order of these tasks could reach on so many
CPUs if switching cost nothing; (coop): of the work as kernels do it that do not preempt, for
fifo, pbg-coop and stock-fifo. "
        .to_owned();
    out += figures;
    if is_changed {
        out += "\nPBG's plan is that of the recording, which knows nothing of what is changed.\n";
    }
    out += match preemptive.profile.header.start {
        None => {
            "
The recording does not say when tasks were spawned, nor for whom they waited: all of main's are
taken to be there at the start, those of others when these begin, and each wait for a sleep
as long as it was.
"
        }
        Some(_) => {
            "
What came after a sleep of main comes at that time whatever happens; what waited for a task waits
for it. A wait that did not happen, because what it was for was there already, is not recorded.
"
        }
    };
    let flavours = || cooperative.into_iter().chain([preemptive]);
    let rest = flavours().fold(0.0_f64, |rest, flavour| rest.max(flavour.rest));
    let broken: u64 = flavours().map(|flavour| flavour.broken_waits).sum();
    if broken > 0 {
        out += &format!(
            "Played as it was recorded, all tasks waited for each other {broken} times, and one was let go:\nthe recording does not say enough of who waits for whom, and these figures are far off.\n"
        );
    }
    out += &format!(
        "Played as it was recorded, no task's time is off by more than {:.2} %.\n",
        rest * 100.0
    );
    if cooperative.is_none() {
        out += "It is of a kernel that preempts; those that do not spend less on their guards.\n";
    }
    let unrecorded = preemptive.profile.header.unrecorded;
    if unrecorded > 0 {
        out += &format!("{unrecorded} tasks found it full and are not in it.\n");
    }
    out
}
