//! The figures of two runs side by side: another commit's, or another policy's.

use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::CellAlignment;
use serde::Deserialize;

use super::figures::Figures;
use crate::grid;

/// A line of the CSV that a run wrote; its other columns do not matter here.
#[derive(Clone, Debug, Deserialize)]
pub struct Before {
    arch: String,
    scheduler: String,
    tasks: usize,
    mean: f64,
}

pub fn read(path: &Path) -> Result<Vec<Before>> {
    let place = || path.display().to_string();
    let mut reader = csv::Reader::from_path(path).with_context(place)?;
    let lines = reader.deserialize().collect::<Result<_, _>>();
    lines.with_context(place)
}

/// A line for each figure that both have. Where they have no scheduler in common, as they
/// are of two policies, the last of each counts: of PBG, its replay.
pub fn text(before: &[Before], after: &Figures) -> String {
    let mut table = grid::plain();
    table.set_header(["scheduler", "tasks", "before", "after", "by", "%"]);
    for arch in after.arches() {
        let rows = after.rows(arch);
        let of_arch = || before.iter().filter(|line| line.arch == arch);
        let in_both = |name: &str| of_arch().any(|line| line.scheduler == name);
        let mut pairs: Vec<_> = rows
            .iter()
            .filter(|(name, _)| in_both(name))
            .map(|row| (row.0.as_str(), row))
            .collect();
        if pairs.is_empty()
            && let (Some(first), Some(second)) = (of_arch().next_back(), rows.last())
        {
            pairs.push((&first.scheduler, second));
        }
        for (first, (second, figures)) in pairs {
            let label = if first == second {
                second.clone()
            } else {
                format!("{first} -> {second}")
            };
            for figure in figures {
                let known = |line: &&Before| line.scheduler == first && line.tasks == figure.tasks;
                let Some(line) = of_arch().find(known) else {
                    continue;
                };
                let now = figure.spread().mean;
                let by = now - line.mean;
                table.add_row([
                    label.clone(),
                    figure.tasks.to_string(),
                    format!("{:.1}", line.mean),
                    format!("{now:.1}"),
                    format!("{by:+.1}"),
                    format!("{:+.2}", by / line.mean * 100.0),
                ]);
            }
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("\ndifference:\n\n{}", grid::text(&table, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::figures::tests::sample;

    fn before(scheduler: &str, mean: f64) -> Before {
        Before {
            arch: "x86_64".into(),
            scheduler: scheduler.into(),
            tasks: 4,
            mean,
        }
    }

    #[test]
    fn the_same_policy_is_paired_phase_by_phase() {
        let after = sample(&[
            ("sched_pbg", "idle", [197.0; 2]),
            ("sched_pbg", "replay", [139.0; 2]),
        ]);
        let expected = "
difference:

 scheduler    tasks   before   after     by       %
----------------------------------------------------
 pbg idle         4    196.0   197.0   +1.0   +0.51
 pbg replay       4    140.0   139.0   -1.0   -0.71
";
        let text = text(
            &[before("pbg idle", 196.0), before("pbg replay", 140.0)],
            &after,
        );
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn of_two_policies_the_last_phases_are_paired() {
        let after = sample(&[("sched_rr", "run", [178.0; 2])]);
        let text = text(
            &[before("pbg idle", 197.0), before("pbg replay", 139.0)],
            &after,
        );
        assert!(
            text.contains(" pbg replay -> rr       4    139.0   178.0   +39.0   +28.06\n"),
            "{text}"
        );
        assert!(!text.contains("idle"), "{text}");
    }
}
