//! `wrong-calls.txt`: each call gets one line of an answer, which says what is allowed, within a
//! second of the CPU, and a status.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

use super::{damage::resealed, helpers::but_makes};
use crate::frame::{Case, Context, case};

const TABLE: &str = "tests/system/wrong-calls.txt";

pub fn cases() -> Vec<Case<'static>> {
    let name = "make: calls that mean nothing get one line at once";
    // Alone, as its time counts, and is that of all children.
    vec![case(name, wrong_calls).alone()]
}

fn wrong_calls(context: &Context) -> Result<()> {
    let profiles = context.file("profiles")?;
    fixtures(context, &profiles)?;
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
        ensure!(but_makes(&said).count() == 1, "expected one line");
        ensure!(said.contains(want.trim()), "expected `{}`", want.trim());
        ensure!(said.contains("allowed"), "expected what is allowed");
    }
    context.counts(calls.len());
    Ok(())
}

/// Returns the CPU time of all programs that were called and are over.
fn children_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.try_into()?))
}

/// Makes profiles for wrong calls: one of batch at SCALE=10, which does not say of which time it
/// is, and damaged copies of it. Builds the tool that reads them, which a call would build first.
fn fixtures(context: &Context, folder: &str) -> Result<()> {
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
