//! One screen: a table with the best first, two sentences, and their basis.

use super::{
    advice::{Advice, BetterOrder, Question},
    evidence::{Differs, Work},
    rules::{Choice, Out, Row, SPREAD_PERCENT, best_without_plan, choose, shared},
};
use crate::{
    grid::{self, TERMINAL},
    output::count,
    spread::deviation,
};

/// The lines of a screen.
const SCREEN: usize = 24;
/// A smaller gain of another order is not worth a word.
const LEAST_GAIN: f64 = 0.005;

pub fn text(advice: &Advice) -> String {
    let choice = choose(&advice.rows);
    let sentences = [
        which(advice, choice.as_ref()),
        why(advice, choice.as_ref()),
        advice.order.as_ref().map_or(String::new(), gain),
        rests(advice),
    ];
    let said = sentences.iter().filter(|sentence| !sentence.is_empty());
    let said: String = said.map(|sentence| wrapped(sentence)).collect();
    // A title and an empty line, two lines of titles, and an empty line below.
    let rows = SCREEN.saturating_sub(said.lines().count() + 5);
    format!(
        "{}\n{}\n{said}",
        wrapped(&title(advice, rows)),
        table(advice, rows)
    )
}

/// Returns the title of a table that shows the best `rows`.
fn title(advice: &Advice, rows: usize) -> String {
    let what = match &advice.question {
        Question::Turnaround => "turnaround in ms".to_owned(),
        Question::OwnWork { own } => format!("turnaround of {} in ms", few(own)),
        Question::Shares { .. } => "the largest share of the CPU, in %".to_owned(),
    };
    let all = advice.rows.len();
    format!(
        "{} on {}, {}: {what} (model, {}{})",
        advice.program,
        advice.arch,
        count(advice.cpus, "CPU"),
        count(advice.phases, "tick phase"),
        match all > rows {
            true => format!("; the best {rows} of {all}"),
            false => String::new(),
        }
    )
}

fn table(advice: &Advice, most: usize) -> String {
    let is_time = !matches!(advice.question, Question::Shares { .. });
    let figure = if is_time { ">average" } else { ">largest" };
    let mut titles = vec!["scheduler", figure, ">± %", "~"];
    if is_time {
        titles.extend([">worst slowdown", ">Jain", ">switches"]);
    }
    titles.push("");
    let letters = shared(&advice.rows);
    let mut rows: Vec<(&Row, String)> = advice.rows.iter().zip(letters).collect();
    rows.sort_by(|a, b| a.0.figure.mean.total_cmp(&b.0.figure.mean));
    let row = |(row, letters): (&Row, String)| {
        let percent = deviation(&row.figure).replace(['±', '%', ' '], "");
        let figure = format!("{:.3}", row.figure.mean);
        let mut words = vec![row.name.clone(), figure, percent, letters];
        if is_time {
            words.extend([
                format!("{:.1}", row.worst_slowdown),
                format!("{:.4}", row.jain),
                format!("{:.0}", row.switches),
            ]);
        }
        words.push(row.is_out.map_or("", note).to_owned());
        words
    };
    grid::text(&titles, rows.into_iter().take(most).map(row), grid::WIDE)
}

/// Returns the note beside a row.
fn note(out: Out) -> &'static str {
    match out {
        Out::BehindOnQemu { .. } => "behind on QEMU",
        Out::BehindInModel { .. } => "behind",
        Out::Polling => "not known",
        Out::Fragile => "fragile",
    }
}

/// Returns the first sentence: which policy.
fn which(advice: &Advice, choice: Option<&Choice>) -> String {
    let Some(choice) = choice else {
        return "Nothing is left to take.".to_owned();
    };
    let rows = &advice.rows;
    let taken = &rows[choice.taken];
    let figure = amount(&advice.question, taken);
    let mut out = match &advice.question {
        Question::Turnaround => format!("Take {}: {figure} on average", taken.feature),
        Question::OwnWork { own } => format!(
            "{} as long as {} let, so what counts is when {} done among them: take {}, {figure}",
            tasks(&advice.differing, Work::AsLet, "runs", "run"),
            is_are(&advice.differing, Work::AsLet),
            few_are(own),
            taken.feature,
        ),
        Question::Shares { tasks: all } => format!(
            "All {all} tasks run as long as they are let{}, so no recording says when they are \
             done, and what counts is the share of each: take {}, under which none of them has more \
             than {figure} of the CPU, where {:.1} % is fair",
            example(&advice.differing),
            taken.feature,
            100.0 / (*all).max(advice.cpus) as f64
        ),
    };
    let without = best_without_plan(rows).filter(|_| taken.is_planned);
    let against = without.or(choice.next);
    if !choice.equals.is_empty() {
        let names: Vec<String> = choice
            .equals
            .iter()
            .map(|&i| rows[i].name.clone())
            .collect();
        out += &format!(
            "; {} {} equal to what the model knows",
            few(&names),
            if names.len() == 1 { "is" } else { "are" }
        );
    }
    let is_less = |i: &usize| !choice.equals.contains(i);
    if let Some(other) = against.filter(is_less).map(|i| &rows[i]) {
        out += &match &advice.question {
            Question::Shares { .. } => format!(
                "; the next, {}, lets one have {}",
                other.name,
                amount(&advice.question, other)
            ),
            _ => format!(
                "; {:.0} % less than {}, {}",
                (1.0 - taken.figure.mean / other.figure.mean) * 100.0,
                other.name,
                if without.is_some() {
                    "the best without a plan"
                } else {
                    "the next"
                }
            ),
        };
    }
    out + "."
}

fn amount(question: &Question, row: &Row) -> String {
    match question {
        Question::Shares { .. } => format!("{:.1} %", row.figure.mean),
        _ => format!("{:.3} ms", row.figure.mean),
    }
}

/// Returns the second sentence: why.
fn why(advice: &Advice, choice: Option<&Choice>) -> String {
    let rows = &advice.rows;
    let Some(taken) = choice.map(|choice| &rows[choice.taken]) else {
        return "Each of them was behind what was measured.".to_owned();
    };
    let mut reasons = Vec::new();
    if taken.is_planned {
        reasons.extend(of_plan(advice, taken));
    } else {
        reasons.extend(against_plan(advice));
        let next = choice.and_then(|choice| choice.next).map(|i| &rows[i]);
        let often = next.filter(|next| next.switches > 1.1 * taken.switches);
        if let Some(next) = often {
            reasons.push(format!(
                "it switches {:.0} times, {} {:.0}",
                taken.switches, next.name, next.switches
            ));
        }
        if reasons.is_empty() {
            reasons.push("no policy switches much less, and no plan of PBG's is better".to_owned());
        }
    }
    if !taken.preempts {
        reasons.push(format!(
            "its kernel does not preempt, so a task that computes keeps the CPU for up to {:.3} ms",
            advice.stretch_ms
        ));
    }
    format!("Why: {}.", reasons.join("; "))
}

/// Returns the gains of a plan.
fn of_plan(advice: &Advice, taken: &Row) -> Vec<String> {
    let mut reasons = Vec::new();
    let [shortest, longest] = advice.lengths_ms;
    let Some(other) = best_without_plan(&advice.rows).map(|i| &advice.rows[i]) else {
        return reasons;
    };
    reasons.push(match longest > 1.25 * shortest {
        true => format!(
            "the recording says how long tasks take, {shortest:.3} to {longest:.3} ms of computing, \
             and the short ones go first"
        ),
        false => format!(
            "its tasks take {longest:.3} ms of computing each, and are done one after the other, \
             not all at the end"
        ),
    });
    if other.switches > 10.0 * taken.switches {
        reasons.push(format!(
            "a task that yields keeps the CPU, {:.0} switches and not {:.0}",
            taken.switches, other.switches
        ));
    }
    if pollers(&advice.differing).next().is_some() {
        reasons.push(format!(
            "{} by polling, but on QEMU the replay was ahead all the same",
            tasks(&advice.differing, Work::Polls, "waits", "wait"),
        ));
    }
    reasons
}

/// Returns the reason for which no plan is taken.
fn against_plan(advice: &Advice) -> Option<String> {
    let planned = || advice.rows.iter().filter(|row| row.is_planned);
    // The best plan stands for all.
    let best = planned().min_by(|a, b| a.figure.mean.total_cmp(&b.figure.mean))?;
    let polling = pollers(&advice.differing).next().is_some();
    let waits = match polling {
        true => format!(
            "{} by polling, so how often they look depends on the order: ",
            tasks(&advice.differing, Work::Polls, "waits", "wait"),
        ),
        false => String::new(),
    };
    let Some(out) = best.is_out else {
        let ms = best.on_qemu.filter(|_| polling)?;
        return Some(format!("{waits}PBG's replay on QEMU took {ms:.3} ms"));
    };
    let why = match out {
        Out::BehindOnQemu { times, given_up } => format!(
            "PBG will not help, its replay on QEMU took {times:.2} times as long as what was measured{}",
            if given_up { " and was given up" } else { "" }
        ),
        Out::BehindInModel { given_up } => format!(
            "PBG will not help, its plan is behind what was measured{}",
            if given_up { " and given up" } else { "" }
        ),
        Out::Polling => "whether PBG helps, a replay would have to say".to_owned(),
        Out::Fragile => format!(
            "PBG's plan is fragile, no better than this if every task's time differs by up to \
             {SPREAD_PERCENT} %"
        ),
    };
    Some(waits + &why)
}

fn pollers(differing: &[Differs]) -> impl Iterator<Item = &Differs> {
    differing.iter().filter(|one| one.work == Work::Polls)
}

/// Returns the gain of `make plan`; nothing if no order gains much.
fn gain(order: &BetterOrder) -> String {
    if order.most < LEAST_GAIN {
        return String::new();
    }
    let (rule, gain) = order.best;
    let at_most = format!("{:.1} %", order.most * 100.0);
    match gain >= LEAST_GAIN {
        true => format!(
            "make plan finds a better order: {rule} takes {:.3} ms, {:.1} % less than pbg, and no order \
             more than {at_most} less.",
            order.planned_ms * (1.0 - gain),
            gain * 100.0
        ),
        false => format!(
            "make plan may find a better order, but none takes more than {at_most} less than pbg."
        ),
    }
}

/// Returns the basis of the figures.
fn rests(advice: &Advice) -> String {
    let off = advice.rows.iter().map(|row| row.error_percent);
    let mut out = format!(
        "Rests on {}, in counted time; the model is off by up to {:.1} %{}, to which rows with a letter \
         in common are equal",
        match advice.has_cooperative {
            true => "a boot with preemption and one without",
            false => "one recording, with preemption",
        },
        off.fold(0.0, f64::max),
        match advice.cpus {
            1 => "",
            _ => " on one CPU, and on several CPUs this is not known",
        }
    );
    let seen = advice.boots.iter();
    let seen = seen.map(|boot| format!("{:.3} ms ({})", boot.replayed, boot.scheduler));
    let seen: Vec<String> = seen.collect();
    if !seen.is_empty() && advice.question == Question::Turnaround && advice.cpus == 1 {
        out += &format!("; replays on QEMU: {}", seen.join(", "));
    }
    if advice.has_unknown_polls {
        out += "; the model polls as often as was recorded";
    }
    if advice.boots.is_empty() {
        out += "; no console of a replay, so whether tasks do the same under every policy is not known";
    }
    out + "."
}

/// Returns the tasks with this work and the verb, as `short1 and short2 run`.
fn tasks(differing: &[Differs], work: Work, one: &str, many: &str) -> String {
    let names = names(differing, work);
    let verb = if names.len() == 1 { one } else { many };
    format!("{} {verb}", few(&names))
}

fn is_are(differing: &[Differs], work: Work) -> &'static str {
    match names(differing, work).len() {
        1 => "it is",
        _ => "they are",
    }
}

fn names(differing: &[Differs], work: Work) -> Vec<String> {
    let meant = differing.iter().filter(|one| one.work == work);
    meant.map(|one| one.task.clone()).collect()
}

/// Returns up to three names, and the number of others.
fn few(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} others", rest.len()),
    }
}

fn few_are(names: &[String]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", few(names))
}

/// Returns the task that differs most between the runs.
fn example(differing: &[Differs]) -> String {
    let ratio = |one: &&Differs| one.run_ms[1] / one.run_ms[0].max(0.001);
    let most = differing
        .iter()
        .max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    most.map_or(String::new(), |one| {
        let [least, most] = one.run_ms;
        format!(
            " ({} had {least:.0} ms in one run and {most:.0} in another)",
            one.task
        )
    })
}

/// Breaks a text into lines that fit a terminal.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    // A number and its unit stay together.
    let text = text.replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms");
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = word.chars().count();
        if width > 0 && width + 1 + wide > TERMINAL {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out += word;
        width += wide;
    }
    out.replace('\u{a0}', " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_a_terminal_and_keep_a_unit_with_its_number() {
        let long = "word ".repeat(19);
        let lines = wrapped(&format!("{long}1000 % and"));
        assert_eq!(lines, format!("{}\n1000 % and\n", long.trim_end()));
        let lines = wrapped(&format!("{long}100 % and"));
        assert_eq!(lines, format!("{long}100 %\nand\n"));
        assert_eq!(wrapped("a b"), "a b\n");
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let names = |n: u32| few(&(1..=n).map(|i| i.to_string()).collect::<Vec<_>>());
        assert_eq!(
            [1, 2, 3, 4].map(names),
            ["1", "1 and 2", "1, 2 and 3", "1, 2 and 2 others"]
        );
    }
}
