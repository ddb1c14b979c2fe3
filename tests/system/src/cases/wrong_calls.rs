//! The calls of `wrong-calls.txt`. Each fails within a second of CPU time, with one line that says
//! what is allowed.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{damage::resealed, helpers::program_lines};
use crate::frame::{Case, Context, case};

const TABLE: &str = "tests/system/wrong-calls.txt";
/// Calls its arguments, and prints their CPU time in seconds behind [`CPU_TIME`].
const TIMED: &str = "TIMEFORMAT='CPU time: %U %S'; time \"$@\"";
const CPU_TIME: &str = "CPU time: ";
/// The CPU time in which a wrong call fails, in seconds.
const LIMIT_S: f64 = 1.0;

pub fn cases() -> Vec<Case<'static>> {
    let name = "make: calls that mean nothing get one line at once";
    vec![case(name, try_calls)]
}

fn try_calls(context: &Context) -> Result<()> {
    let profiles = context.file("profiles")?;
    make_profiles(context, &profiles)?;
    let table = fs::read_to_string(TABLE)?;
    let is_call = |line: &&str| !line.starts_with('#');
    let calls: Vec<_> = table.lines().filter(is_call).collect();
    for line in &calls {
        let (call, want) = line
            .split_once('|')
            .with_context(|| format!("no | in: {line}"))?;
        let call = call.replace('@', &profiles);
        let timed = context.program("bash").args("-c").arg(TIMED).arg("bash");
        let said = match call.split_once('$') {
            Some((variables, words)) => timed.args(format!("env {variables} make {words}")),
            None => timed.args(format!("make {call}")),
        }
        .failure()?;
        let (said, took) = said.split_once(CPU_TIME).context("no CPU time")?;
        let took = took.split_whitespace().map(str::parse::<f64>);
        let took: f64 = took.sum::<Result<_, _>>()?;
        context.say(format_args!("{took} s"));
        ensure!(took < LIMIT_S, "it took {took} s of the CPU");
        ensure!(program_lines(said).count() == 1, "expected one line");
        ensure!(said.contains(want.trim()), "expected `{}`", want.trim());
        ensure!(said.contains("allowed"), "expected what is allowed");
    }
    context.counts(calls.len());
    Ok(())
}

/// Makes profiles for wrong calls: one of batch at SCALE=10 without a timing, and changed copies of
/// it. Builds the tool that reads them, so that no call has to.
fn make_profiles(context: &Context, folder: &str) -> Result<()> {
    let tool = "--quiet --profile tool --package pbg-save";
    context.cargo("build", tool).text()?;
    fs::create_dir_all(folder)?;
    let good = fs::read("modules/axsched-ext/tests/data/batch-x86_64.pbg")?;
    let file = |name: &str, bytes: &[u8]| fs::write(format!("{folder}/{name}.pbg"), bytes);
    file("batch", &good)?;
    file("real", &resealed(&good, 32, &[0x11]))?;
    file("riscv64", &resealed(&good, 32, &[0x22]))?;
    file("version3", &resealed(&good, 8, &[3]))?;
    let mut damaged = good.clone();
    damaged[60] = 0xff;
    file("damaged", &damaged)?;
    file("short", &good[..50])?;
    file("empty", &[])?;
    let pipe = context.program("mkfifo").arg(format!("{folder}/pipe.pbg"));
    pipe.text().map(drop)
}
