//! Connections served by coroutines and by threads, in counted time.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case> {
    let name =
        "connections: coroutines answer as many as threads, and still when those have no memory";
    vec![case(name, coroutines_serve).boots("connections", ANY_ARCH)]
}

/// The numbers of connections, as in the app.
const CONNECTIONS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 96, 1_024];

fn coroutines_serve(context: &Context) -> Result<()> {
    let file = context.file("connections.csv")?;
    let said = context
        .make(["cost", "A=connections", "SCALE=50", "FEATURES=sched_fifo"])
        .args([format!("ARCH={ANY_ARCH}"), format!("LAB=--csv {file}")])
        .text()?;
    ensure!(
        said.contains("out of memory after"),
        "expected threads to run out of memory"
    );
    let csv = fs::read_to_string(&file)?;
    let of =
        |phase: &str, combination: &str, connections: u32, figure: &str| -> Result<Option<f64>> {
            let wanted = format!(",fifo,{phase},{combination},{connections},all,{figure},");
            let line = csv.lines().find(|line| line.contains(&wanted));
            let line = line.with_context(|| format!("expected a line with `{wanted}`"))?;
            let value = line.rsplit(',').next().unwrap_or_default();
            Ok(match value {
                "" => None,
                value => Some(value.parse()?),
            })
        };
    for connections in CONNECTIONS {
        let [coroutines, threads] =
            ["kcuc", "ut"].map(|side| of("full", side, connections, "answers/s"));
        let coroutines = coroutines?.context("coroutines have memory")?;
        match threads? {
            Some(threads) => ensure!(
                coroutines >= threads,
                "{connections}: {coroutines} answers a second of coroutines, {threads} of threads"
            ),
            None => ensure!(
                connections == 1_024,
                "{connections}: threads have no memory"
            ),
        }
        let lost = of("paced", "kcuc", connections, "lost")?;
        ensure!(lost == Some(0.0), "{connections}: coroutines lost {lost:?}");
    }
    context.counts(CONNECTIONS.len());
    Ok(())
}
