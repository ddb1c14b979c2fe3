//! Connections served by coroutines and by threads, in counted time.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    let name =
        "connections: coroutines answer as many as threads, and more when threads have no memory";
    vec![case(name, compare_servers).boots("connections", ANY_ARCH)]
}

/// The numbers of connections, as in the app.
const CONNECTIONS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 96, 1_024];

fn compare_servers(context: &Context) -> Result<()> {
    let file = context.file("connections.csv")?;
    let call = context.make(format!("cost A=connections SCALE=50 ARCH={ANY_ARCH}"));
    let said = call
        .args(format!("FEATURES=sched_fifo LAB='--csv {file}'"))
        .text()?;
    ensure!(
        said.contains("out of memory after"),
        "expected threads to run out of memory"
    );
    let csv = fs::read_to_string(&file)?;
    let of = |columns: &str, figure: &str| -> Result<Option<f64>> {
        let wanted = format!(",fifo,{columns},all,{figure},");
        let line = csv.lines().find(|line| line.contains(&wanted));
        let line = line.with_context(|| format!("expected a line with `{wanted}`"))?;
        let value = line.rsplit(',').next().filter(|value| !value.is_empty());
        Ok(value.map(str::parse).transpose()?)
    };
    for number in CONNECTIONS {
        let coroutines = of(&format!("full,kcuc,{number}"), "answers/s")?;
        let coroutines = coroutines.context("coroutines have memory")?;
        match of(&format!("full,ut,{number}"), "answers/s")? {
            Some(threads) => ensure!(
                coroutines >= threads,
                "{number}: {coroutines} answers a second of coroutines, {threads} of threads"
            ),
            None => ensure!(number == 1_024, "{number}: threads have no memory"),
        }
        let lost = of(&format!("paced,kcuc,{number}"), "lost")?;
        ensure!(lost == Some(0.0), "{number}: coroutines lost {lost:?}");
    }
    context.counts(CONNECTIONS.len());
    Ok(())
}
