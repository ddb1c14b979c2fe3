//! Make itself: its help, the names of its files, and its messages where it cannot work.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Result, ensure};

use super::helpers::{expect_failure, expect_status, link_commands_without, program_lines};
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    vec![
        case("make: help", help),
        case("make: setup --check, all there", |context| {
            let call = context.program("scripts/setup.sh").args("--check --test");
            call.text().map(drop)
        }),
        case("make: setup --check, QEMU missing", setup_missing),
        case("make: setup without sudo ends in one line", no_sudo),
        case(
            "make: what is saved in real time has names of its own",
            real_time_has_its_names,
        ),
        case("make: a folder with a blank in its name", blank_in_name),
        case("make: a boot without an image", |context| {
            let call = context.make("lab-boot SCALE=123456789 A=selftest");
            expect_failure(call, "make build")
        }),
    ]
}

const GOALS: &str = "help setup new build run serve record matrix compare simulate advise profile \
                     trace cost docs stale test check soak interleavings lost-wakes sanitize \
                     mutants clean";

const VARIABLES: &str = "A ARCH FEATURES SMP CPUS PROFILE LOG MODE MEM SCALE TIMING ACCEL \
                         QEMU_ARGS V TIMEOUT TICK_PHASE TRACE PROFILE_OUT PBG_BASE BLK DISK T PORT ARCEOS \
                         LAB";

/// The help works whatever the variables say. One screen of 80 columns has every goal and
/// policy; the pages of the goals have every variable.
fn help(context: &Context) -> Result<()> {
    let help_on = |page| {
        let call = context.make(format!("help {page} ARCH=nonsense SMP=x"));
        call.text()
    };
    let screen = context.make("ARCH=nonsense SMP=x").text()?;
    let lines = screen.lines().count();
    ensure!(lines <= 40, "expected at most 40 lines, found {lines}");
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<_> = screen.split(|c| !in_name(c)).collect();
    let goals: Vec<_> = GOALS.split_whitespace().collect();
    let policies = context.project.policies.iter().map(String::as_str);
    for word in policies.chain(goals.iter().copied()) {
        ensure!(words.contains(&word), "not there: {word}");
    }
    let mut all = screen.clone();
    for goal in &goals {
        let page = help_on(format!("T={goal}"))?;
        ensure!(
            page.starts_with(&format!("make {goal}")) || page == screen,
            "expected the help of {goal}"
        );
        all += &page;
    }
    let variables: BTreeSet<_> = VARIABLES.split_whitespace().collect();
    for (what, names) in [("goals", goals.len()), ("variables", variables.len())] {
        ensure!(names <= 25, "expected at most 25 {what}, found {names}");
    }
    let known = context.project.variables.iter().map(String::as_str);
    ensure!(
        variables == known.collect(),
        "expected these variables: {VARIABLES}"
    );
    for name in variables {
        let begin = format!("  {name}=");
        let is_there = all.lines().any(|line| line.starts_with(&begin));
        ensure!(is_there, "not there: {name}");
    }
    let long = all.lines().find(|line| line.chars().count() > 80);
    ensure!(long.is_none(), "longer than 80 columns: {long:?}");
    context.counts(goals.len());
    Ok(())
}

/// Checks that `--check` names QEMU on a machine without it.
fn setup_missing(context: &Context) -> Result<()> {
    let bin = context.file("bin")?;
    let path = link_commands_without(&bin, |name| name.starts_with("qemu-system-"))?;
    let call = context.program("scripts/setup.sh").args("--check");
    let output = call.env("PATH", path).output()?;
    fs::remove_dir_all(bin)?;
    expect_status(&output, 1)?;
    let missing = "missing: qemu-system-x86_64, qemu-system-aarch64, qemu-system-riscv64";
    ensure!(output.text.contains(missing), "expected `{missing}`");
    Ok(())
}

/// Checks that setup says what is missing if it may install nothing. Make adds only that it failed.
fn no_sudo(context: &Context) -> Result<()> {
    let tree = context.file("tree")?;
    fs::create_dir_all(&tree)?;
    let parts = format!("-r Makefile Cargo.toml Cargo.lock scripts apps {tree}");
    context.program("cp").args(parts).text()?;
    let bin = context.file("bin")?;
    let path = link_commands_without(&bin, |name| {
        name.starts_with("qemu-system-") || name == "sudo" || name == "id"
    })?;
    let id = Path::new(&bin).join("id");
    let not_root = "#!/bin/sh\n[ \"$1\" = -u ] && echo 1000 || exec /usr/bin/id \"$@\"\n";
    fs::write(&id, not_root)?;
    fs::set_permissions(&id, fs::Permissions::from_mode(0o755))?;
    let call = context.make(format!("-C {tree} --no-print-directory run"));
    let output = call.env("PATH", path).failure()?;
    fs::remove_dir_all(bin)?;
    let lines: Vec<_> = program_lines(&output).collect();
    ensure!(lines.len() == 1, "expected one line");
    ensure!(
        lines[0].starts_with("setup: missing: qemu-system-x86_64")
            && lines[0].contains("neither root nor sudo"),
        "expected what is missing, and why it stays so"
    );
    Ok(())
}

/// Checks that files saved in real time do not replace those of counted time.
fn real_time_has_its_names(context: &Context) -> Result<()> {
    let names = [
        (
            "run FEATURES=sched_pbg BLK=y TIMING=real",
            "target/pbg/realtime-x86_64-real.img",
        ),
        (
            "run FEATURES=sched_pbg TIMING=real SCALE=10",
            "PROFILE_OUT='target/pbg/realtime-x86_64-scale10-real.pbg'",
        ),
        (
            "run FEATURES=sched_pbg SCALE=10",
            "PROFILE_OUT='target/pbg/realtime-x86_64-scale10.pbg'",
        ),
        (
            "record FEATURES=sched_cfs SMP=2",
            "PROFILE_OUT='target/recordings/realtime-x86_64-cfs-smp2-real.pbg'",
        ),
    ];
    for (words, name) in names {
        let mut call = context.make(format!("-n {words} A=realtime"));
        // An empty name in the environment asks for no profile of a run, but not of a recording.
        if words.starts_with("run") {
            call = call.without("PROFILE_OUT");
        }
        ensure!(call.text()?.contains(name), "expected {name}");
    }
    Ok(())
}

/// Checks that every goal refuses a folder with a blank in its name.
fn blank_in_name(context: &Context) -> Result<()> {
    let tree = context.file("a b")?;
    fs::create_dir_all(&tree)?;
    let copy = context.program("cp").args("-r Makefile scripts");
    copy.arg(&tree).text()?;
    for goal in ["help", "setup", "run", "matrix", "test", "clean"] {
        let output = context.make(goal).within(&tree).failure()?;
        let text = "with a blank in its name; allowed is one without";
        ensure!(
            output.lines().count() == 1 && output.contains(text),
            "make {goal}: expected one line, `{text}`"
        );
    }
    Ok(())
}
