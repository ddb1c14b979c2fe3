//! The summary that a guest prints at its end, and the table of all boots.

use serde::Deserialize;

use crate::{
    grid,
    project::{Cell, short},
};

/// The beginning of the line.
const NAME: &str = "SCHED-SOAK ";

/// The part of a guest's summary that is shown. The app's `summary.rs` writes it.
#[derive(Debug, Deserialize)]
pub struct Summary {
    sched: String,
    arch: String,
    smp: u32,
    seed: u64,
    spawned: u64,
    ended: u64,
    steps: u64,
    migrations: u64,
    lost_wakes: u64,
    longest_wait_ms: u64,
    longest_wait_of: u64,
    longest_wait_in: String,
}

impl Summary {
    /// Reads the line of this boot. Refuses a console without one.
    pub fn of(console: &[String], cell: &Cell, smp: u32, seed: u64) -> Result<Self, String> {
        let mut lines = console.iter().filter_map(|line| line.strip_prefix(NAME));
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return Err(format!("expected one line {NAME}… of the guest"));
        };
        let summary: Self = serde_json::from_str(line).map_err(|why| format!("{NAME}: {why}"))?;
        let found = (&*summary.sched, &*summary.arch, summary.smp, summary.seed);
        let sched = short(&cell.policy);
        let expected = (&*sched, &*cell.arch, smp, seed);
        if found != expected {
            return Err(format!("expected a boot of {expected:?}, found {found:?}"));
        }
        if summary.spawned != summary.ended {
            let Self { spawned, ended, .. } = summary;
            return Err(format!("{spawned} tasks were spawned, {ended} have ended"));
        }
        Ok(summary)
    }
}

/// All boots of a cell.
pub struct Row {
    pub cell: Cell,
    pub failed: u64,
    summaries: Vec<Summary>,
}

impl Row {
    pub fn of(cell: &Cell) -> Self {
        Self {
            cell: cell.clone(),
            failed: 0,
            summaries: Vec::new(),
        }
    }

    pub fn passed(&mut self, summary: Summary) {
        self.summaries.push(summary);
    }

    fn sum(&self, of: impl Fn(&Summary) -> u64) -> String {
        self.summaries.iter().map(of).sum::<u64>().to_string()
    }

    /// Returns the longest wait of all boots, with its task.
    fn longest_wait(&self) -> String {
        let longest = (self.summaries.iter()).max_by_key(|summary| summary.longest_wait_ms);
        longest.map_or("-".to_owned(), |longest| {
            format!(
                "{} ms, task {} in {}",
                longest.longest_wait_ms, longest.longest_wait_of, longest.longest_wait_in
            )
        })
    }

    fn verdict(&self) -> String {
        match (self.summaries.len(), self.failed) {
            (0, 0) => "not booted".to_owned(),
            (passed, 0) => format!("{passed} passed"),
            (passed, failed) => format!("{failed} FAILED, {passed} passed"),
        }
    }
}

/// Returns a table with a line for each policy and architecture.
pub fn table(rows: &[Row]) -> String {
    let titles = [
        "arch",
        "policy",
        ">steps",
        ">spawned",
        ">moved",
        ">lost wakes",
        "longest wait",
        "boots",
    ];
    let of_row = |row: &Row| {
        [
            row.cell.arch.clone(),
            short(&row.cell.policy),
            row.sum(|summary| summary.steps),
            row.sum(|summary| summary.spawned),
            row.sum(|summary| summary.migrations),
            row.sum(|summary| summary.lost_wakes),
            row.longest_wait(),
            row.verdict(),
        ]
    };
    let table = grid::text(&titles, rows.iter().map(of_row), grid::WIDE);
    format!("\n{table}")
}

/// Returns the guest's report, or the last lines of a console without one.
pub fn report(console: &[String]) -> &[String] {
    const LAST: usize = 20;
    let begin = console.iter().position(|line| line.starts_with("soak: "));
    &console[begin.unwrap_or(console.len().saturating_sub(LAST))..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        project::App,
        testing::{assert_begins, assert_golden},
    };

    const LINE: &str = r#"SCHED-SOAK {"sched":"pbg-coop","arch":"x86_64","smp":4,"seed":7,"seconds":3,"rounds":2,"spawned":20,"ended":20,"steps":900,"migrations":12,"lost_wakes":1,"longest_wait_ms":31,"longest_wait_of":9,"longest_wait_in":"yield","pbg":{"planned":4}}"#;

    fn cell() -> Cell {
        Cell {
            arch: "x86_64".into(),
            app: App::in_folder("apps/sched-tests/soak").unwrap(),
            policy: "sched_pbg_coop".into(),
        }
    }

    fn read(console: &[&str], seed: u64) -> Result<Summary, String> {
        let console: Vec<_> = console.iter().map(|&line| line.to_owned()).collect();
        Summary::of(&console, &cell(), 4, seed)
    }

    #[test]
    fn console_has_one_line_of_its_boot() {
        assert_eq!(read(&["soak on 4 CPUs", LINE], 7).unwrap().steps, 900);
        let lost = LINE.replace(r#""ended":20"#, r#""ended":19"#);
        for (console, seed, expected) in [
            (&["soak on 4 CPUs"][..], 7, "expected one line"),
            (&[LINE, LINE], 7, "expected one line"),
            (&[LINE], 8, "expected a boot of"),
            (&[&lost], 7, "20 tasks were spawned, 19 have ended"),
        ] {
            assert_begins(read(console, seed).unwrap_err(), expected);
        }
    }

    #[test]
    fn table_has_the_longest_wait_of_all_boots_and_the_failures() {
        let mut row = Row::of(&cell());
        row.passed(read(&[LINE], 7).unwrap());
        let longer = LINE.replace(r#"ms":31"#, r#"ms":45"#);
        row.passed(read(&[&longer], 7).unwrap());
        row.failed = 1;
        assert_golden("soak.txt", table(&[row]));
    }

    #[test]
    fn report_begins_where_the_guest_has_found_something() {
        let console = ["boot", "soak: task 3 is ready", "CPU 0"].map(String::from);
        assert_eq!(report(&console), &console[1..]);
        assert_eq!(report(&console[..1]), &console[..1]);
    }
}
