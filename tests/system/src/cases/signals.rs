//! Signals: they leave no process of a guest, and lose no profile.

use std::{
    fs, process, thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;

use super::helpers::{ANY_ARCH, selftest};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

pub fn cases() -> Vec<Case<'static>> {
    let guests = [
        ("INT to make", Signal::SIGINT, false),
        ("TERM to make", Signal::SIGTERM, false),
        ("KILL to make", Signal::SIGKILL, false),
        ("Ctrl-C", Signal::SIGINT, true),
    ];
    let guests = guests.map(|(name, signal, is_group)| {
        let name = format!("make: no QEMU left by {name}");
        let check = move |context: &Context| stop_guest(context, signal, is_group);
        case(name, check).boots("selftest hang", ANY_ARCH)
    });
    let killed = case(
        "qemu: no profile is lost when QEMU is killed",
        kill_while_saving,
    );
    let killed = killed.builds(ANY_ARCH);
    guests.into_iter().chain([killed]).collect()
}

/// Waits until `is_so` returns true, at most for `limit`.
fn wait_for(limit: Duration, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_so() && Instant::now() < end {
        thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the command lines of processes that contain this word.
fn running(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    // A process that ends meanwhile cannot be read, and does not count.
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    found
}

/// Returns what is in a console so far.
fn console(file: &str) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\r', "")
}

/// Sends a signal to the make of a hanging guest, alone or with its group. No process may be left.
fn stop_guest(context: &Context, signal: Signal, is_group: bool) -> Result<()> {
    let mark = format!("sched-test-{signal}-{is_group}-{}", process::id());
    selftest(context, "build", "hang").text()?;
    let out = context.file("console")?;
    // Interrupts are ignored where the tests run in the background, but not here.
    let call = context.program("env").args("--default-signal=INT make");
    let mut make = call
        .args(format!(
            "lab-boot A=selftest T=hang QEMU_ARGS='-name {mark}'"
        ))
        .start(&out)?;
    let has_booted = || console(&out).lines().any(|line| line.starts_with("smp = "));
    wait_for(Duration::from_secs(90), || {
        has_booted() || make.has_ended().is_ok_and(|ended| ended)
    });
    let has_booted = has_booted();
    context.say(console(&out));
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
    // On a busy host this takes a while.
    wait_for(Duration::from_secs(30), || {
        make.has_ended().is_ok_and(|ended| ended) && running(&mark).is_empty()
    });
    let left = running(&mark);
    if !left.is_empty() {
        make.signal_group(Signal::SIGKILL)?; // a process that is left keeps the number of the group
        bail!("still there: {left:?}");
    }
    Ok(())
}

/// Kills QEMU at ten moments while it replaces the profile. Each next boot reports what it finds
/// (half a profile, if that was the first write), and continues.
fn kill_while_saving(context: &Context) -> Result<()> {
    let image = context.file("disk.img")?;
    let rewrite = |goal: &str| {
        let call = selftest(context, goal, "rewrite").args("FEATURES=sched_pbg BLK=y");
        call.args(format!("DISK={image}"))
    };
    rewrite("build").text()?;
    let out = context.file("console")?;
    for boot in 1..=10 {
        let mut make = rewrite("lab-boot").start(&out)?;
        let begins = ["REWRITE 1", "REWRITE 2", "run: "];
        let has_begun = |line: &str| begins.iter().any(|begin| line.starts_with(begin));
        wait_for(Duration::from_secs(60), || {
            console(&out).lines().any(has_begun) || make.has_ended().is_ok_and(|ended| ended)
        });
        // The moment differs in each boot.
        let random = SystemTime::UNIX_EPOCH.elapsed()?.subsec_nanos();
        thread::sleep(Duration::from_millis(u64::from(random) % 500));
        make.signal_group(Signal::SIGKILL)?;
        make.wait()?;
        // The others of its group end a moment later, and write to the image until then.
        wait_for(Duration::from_secs(5), || running(&image).is_empty());
        thread::sleep(Duration::from_millis(500));
        let console = console(&out);
        context.say(format_args!("boot {boot}:\n{console}"));
        ensure!(!console.contains("panicked"), "boot {boot} panicked");
        ensure!(
            console.lines().any(|line| line.starts_with("REWRITE 1")),
            "nothing was written"
        );
        // The last line may be cut off.
        let whole = console.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let results = Results::of(whole)?;
        ensure!(
            results.runs.iter().any(|run| run.pass),
            "no phase has passed"
        );
    }
    ensure!(
        rewrite("run")
            .text()?
            .lines()
            .any(|line| line == "REWRITE done"),
        "expected `REWRITE done`"
    );
    Ok(())
}
