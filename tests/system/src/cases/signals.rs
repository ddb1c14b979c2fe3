//! Signals: nothing is left of a guest, and no profile is lost.

use std::{
    fs, process, thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;

use super::helpers::{ANY_ARCH, folder, selftest};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

pub fn cases() -> Vec<Case> {
    let to_make = [
        ("INT", Signal::SIGINT),
        ("TERM", Signal::SIGTERM),
        ("KILL", Signal::SIGKILL),
    ];
    let to_make = to_make.map(|(name, signal)| {
        case(
            format!("make: no QEMU left by {name} to make"),
            move |context| leaves_nothing(context, signal, false),
        )
    });
    let to_group = case("make: no QEMU left by Ctrl-C", |context| {
        leaves_nothing(context, Signal::SIGINT, true)
    });
    let killed = case("qemu: no profile is lost when QEMU is killed", killed);
    to_make
        .into_iter()
        .chain([to_group])
        .map(|case| case.boots("selftest hang", ANY_ARCH))
        .chain([killed.builds(ANY_ARCH)])
        .collect()
}

/// Looks ten times a second whether it is so.
fn wait_for(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(100));
    }
    is_so()
}

/// Processes with this word in their command line.
fn running(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Who ends while we look is not running.
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    found
}

/// A hanging guest whose make gets the signal, alone or with its group.
fn leaves_nothing(context: &Context, signal: Signal, is_group: bool) -> Result<()> {
    let mark = format!("sched-test-{signal}-{is_group}-{}", process::id());
    context
        .make(["build".to_owned(), folder("selftest")])
        .env("SELFTEST", "hang")
        .text()?;
    let out = context.file("console")?;
    // With interrupts not ignored, which they are where the tests run in the background.
    let mut make = context
        .program("env")
        .args(["--default-signal=INT", "make", "lab-boot"])
        .args([folder("selftest"), format!("QEMU_ARGS=-name {mark}")])
        .env("SELFTEST", "hang")
        .start(&out)?;
    let said = || String::from_utf8_lossy(&fs::read(&out).unwrap_or_default()).into_owned();
    let has_booted = || said().lines().any(|line| line.starts_with("smp = "));
    let mut is_over = || make.has_ended().is_ok_and(|ended| ended);
    wait_for(Duration::from_secs(90), || has_booted() || is_over());
    let has_booted = has_booted();
    context.say(said());
    ensure!(has_booted, "the guest has not booted");
    ensure!(
        running(&mark).len() >= 2,
        "expected QEMU and the script to run"
    );
    if is_group {
        make.signal_group(signal)?;
    } else {
        make.signal(signal)?;
    }
    // A busy host is late.
    wait_for(Duration::from_secs(30), || {
        make.has_ended().is_ok_and(|has_ended| has_ended) && running(&mark).is_empty()
    });
    let left = running(&mark);
    if !left.is_empty() {
        make.signal_group(Signal::SIGKILL)?; // whoever is left has its number still
        bail!("still there: {left:?}");
    }
    Ok(())
}

/// QEMU is killed while the profile is replaced, at ten moments; each next boot says what it
/// finds (the one of the first write may be half of one), and goes on.
fn killed(context: &Context) -> Result<()> {
    let image = context.file("disk.img")?;
    let with = [
        folder("selftest"),
        "FEATURES=sched_pbg".into(),
        "BLK=y".into(),
        format!("DISK={image}"),
    ];
    context
        .make(["build"])
        .args(&with)
        .env("SELFTEST", "rewrite")
        .text()?;
    for boot in 1..=10 {
        let out = context.file("console")?;
        let console =
            || String::from_utf8_lossy(&fs::read(&out).unwrap_or_default()).replace('\r', "");
        let mut make = context
            .make(["lab-boot"])
            .args(&with)
            .env("SELFTEST", "rewrite")
            .start(&out)?;
        let begun = |line: &str| {
            ["REWRITE 1", "REWRITE 2", "run: "]
                .iter()
                .any(|begin| line.starts_with(begin))
        };
        wait_for(Duration::from_secs(60), || {
            console().lines().any(begun) || make.has_ended().is_ok_and(|ended| ended)
        });
        thread::sleep(Duration::from_millis(some_number()? % 500));
        make.signal_group(Signal::SIGKILL)?;
        make.wait()?;
        // The others of its group are a moment later, and the image is theirs till then.
        wait_for(Duration::from_secs(5), || running(&image).is_empty());
        thread::sleep(Duration::from_millis(500));
        let console = console();
        context.say(format_args!("boot {boot}:\n{console}"));
        ensure!(!console.contains("panicked"), "boot {boot} panicked");
        ensure!(
            console.lines().any(|line| line.starts_with("REWRITE 1")),
            "nothing was written"
        );
        // What the kill cut off is no line.
        let whole = console.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let results = Results::of(whole)?;
        ensure!(
            results.runs.iter().any(|run| run.pass),
            "no phase has passed"
        );
    }
    let said = selftest(context, "rewrite").args(&with[1..]).text()?;
    ensure!(
        said.lines().any(|line| line == "REWRITE done"),
        "expected `REWRITE done`"
    );
    Ok(())
}

/// A number that is another one each time.
fn some_number() -> Result<u64> {
    Ok(std::time::SystemTime::UNIX_EPOCH
        .elapsed()?
        .subsec_nanos()
        .into())
}
