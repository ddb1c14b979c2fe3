//! The calls of `wrong-calls.txt`. Each fails within a second of CPU time, with one line that says
//! what is allowed.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

use super::{damage::resealed, helpers::program_lines};
use crate::frame::{Case, Context, case};

const TABLE: &str = "tests/system/wrong-calls.txt";

pub fn cases() -> Vec<Case<'static>> {
    let name = "make: calls that mean nothing get one line at once";
    // Alone, because it is timed by the CPU time of all children.
    vec![case(name, try_calls).alone()]
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
        let begin = children_time()?;
        let call = match call.split_once('$') {
            Some((variables, words)) => context
                .program("env")
                .args(format!("{variables} make {words}")),
            None => context.make(call),
        };
        let said = call.failure()?;
        let took = children_time()? - begin;
        context.say(format_args!("{} ms", took.as_millis()));
        ensure!(
            took < Duration::from_secs(1),
            "it took {} ms of the CPU",
            took.as_millis()
        );
        ensure!(program_lines(&said).count() == 1, "expected one line");
        ensure!(said.contains(want.trim()), "expected `{}`", want.trim());
        ensure!(said.contains("allowed"), "expected what is allowed");
    }
    context.counts(calls.len());
    Ok(())
}

/// Returns the CPU time of all programs that were called and have ended.
fn children_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.try_into()?))
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
