//! Make's own manners: its help, its names, what it says where it cannot work.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Result, ensure};

use super::helpers::{but_makes, commands_without, dry, exits, fails_with, folder};
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case> {
    vec![
        case("make: help", help),
        case("make: setup --check, all there", |context| {
            context
                .program("scripts/setup.sh")
                .args(["--check", "--bench"])
                .text()
                .map(drop)
        }),
        case("make: setup --check, QEMU missing", setup_missing),
        case("make: setup without sudo ends in one line", no_sudo),
        case(
            "make: what is saved in real time has names of its own",
            real_time_has_its_names,
        ),
        case("make: a folder with a blank in its name", blank_in_name),
        case("make: a boot without an image", |context| {
            let call = context
                .make(["lab-boot", "SCALE=123456789"])
                .args([folder("selftest")]);
            fails_with(call, "make build")
        }),
    ]
}

const VARIABLES: [&str; 28] = [
    "A",
    "ARCH",
    "FEATURES",
    "SMP",
    "BALANCE",
    "CPUS",
    "PROFILE",
    "LOG",
    "MODE",
    "MEM",
    "SCALE",
    "TIMING",
    "ACCEL",
    "QEMU_ARGS",
    "V",
    "TIMEOUT",
    "TICK_PHASE",
    "TRACE",
    "PROFILE_OUT",
    "PBG_PROFILE",
    "PBG_BASE",
    "BLK",
    "DISK",
    "T",
    "PORT",
    "LAB",
    "SELFTEST",
    "SCHED_YIELDS",
];

const GOALS: [&str; 24] = [
    "help",
    "setup",
    "new",
    "build",
    "run",
    "serve",
    "record",
    "matrix",
    "compare",
    "simulate",
    "advise",
    "profile",
    "trace",
    "cost",
    "docs",
    "stale",
    "test",
    "check",
    "soak",
    "interleavings",
    "lost-wakes",
    "sanitize",
    "mutants",
    "clean",
];

/// The help works whatever the variables say. One screen of 80 columns has every goal and policy; the
/// pages of the goals have every variable.
fn help(context: &Context) -> Result<()> {
    let wrong = ["ARCH=nonsense", "SMP=x"];
    let help = context.make(wrong).text()?;
    let lines = help.lines().count();
    ensure!(lines <= 40, "expected at most 40 lines, found {lines}");
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<_> = help.split(|c| !in_name(c)).collect();
    let policies = context.project.policies.iter().map(String::as_str);
    for word in policies.chain(GOALS) {
        ensure!(words.contains(&word), "not there: {word}");
    }
    let mut all = help.clone();
    for goal in GOALS {
        let page = format!("T={goal}");
        let page = context.make(["help", &page]).args(wrong).text()?;
        let title = format!("make {goal}");
        ensure!(
            page.starts_with(&title) || page == help,
            "expected the help of {goal}"
        );
        all += &page;
    }
    for name in VARIABLES {
        let begin = format!("{name}=");
        let is_there = all.lines().any(|line| {
            let words = line.strip_prefix("  ");
            words.is_some_and(|words| words.starts_with(&begin))
        });
        ensure!(is_there, "not there: {name}");
    }
    let long = all.lines().find(|line| line.chars().count() > 80);
    ensure!(long.is_none(), "longer than 80 columns: {long:?}");
    let variables = context.make(["-s", "lab-variables"]).text()?;
    ensure!(
        variables.split_whitespace().count() == VARIABLES.len(),
        "expected {} variables: {variables}",
        VARIABLES.len()
    );
    context.counts(GOALS.len());
    Ok(())
}

/// `--check` on a machine like this one without QEMU.
fn setup_missing(context: &Context) -> Result<()> {
    let bin = context.file("bin")?;
    let path = commands_without(&bin, |name| name.starts_with("qemu-system-"))?;
    let output = context
        .program("scripts/setup.sh")
        .args(["--check"])
        .env("PATH", path)
        .output()?;
    fs::remove_dir_all(bin)?;
    exits(&output, 1)?;
    let missing = "missing: qemu-system-x86_64, qemu-system-aarch64, qemu-system-riscv64";
    ensure!(output.text.contains(missing), "expected `{missing}`");
    Ok(())
}

/// Setup may install nothing: it says what is missing, and make no more than that it failed.
fn no_sudo(context: &Context) -> Result<()> {
    let tree = context.file("tree")?;
    fs::create_dir_all(&tree)?;
    let parts = [
        "-r",
        "Makefile",
        "Cargo.toml",
        "Cargo.lock",
        "scripts",
        "apps",
        &tree,
    ];
    context.program("cp").args(parts).text()?;
    let bin = context.file("bin")?;
    let path = commands_without(&bin, |name| {
        name.starts_with("qemu-system-") || name == "sudo" || name == "id"
    })?;
    let id = Path::new(&bin).join("id");
    let somebody = "#!/bin/sh\n[ \"$1\" = -u ] && echo 1000 || exec /usr/bin/id \"$@\"\n";
    fs::write(&id, somebody)?;
    fs::set_permissions(&id, fs::Permissions::from_mode(0o755))?;
    let said = context
        .make(["-C", &tree, "--no-print-directory", "run"])
        .env("PATH", path)
        .failure()?;
    fs::remove_dir_all(bin)?;
    let lines: Vec<_> = but_makes(&said).collect();
    ensure!(lines.len() == 1, "expected one line");
    ensure!(
        lines[0].starts_with("setup: missing: qemu-system-x86_64")
            && lines[0].contains("neither root nor sudo"),
        "expected what is missing, and why it stays so"
    );
    Ok(())
}

/// What is saved in real time does not replace what was counted.
fn real_time_has_its_names(context: &Context) -> Result<()> {
    let names = [
        ("BLK=y TIMING=real", "target/pbg/realtime-x86_64-real.img"),
        (
            "TIMING=real SCALE=10",
            "PROFILE_OUT='target/pbg/realtime-x86_64-scale10-real.pbg'",
        ),
        (
            "SCALE=10",
            "PROFILE_OUT='target/pbg/realtime-x86_64-scale10.pbg'",
        ),
    ];
    for (variables, name) in names {
        let said = dry(context, "run")
            .args(["A=realtime", "FEATURES=sched_pbg"])
            .args(variables.split(' '))
            .without("PROFILE_OUT")
            .text()?;
        ensure!(said.contains(name), "expected {name}");
    }
    // An empty name in the environment is for who wants no profile of a run.
    let recorded = ["FEATURES=sched_cfs", "SMP=2"];
    let said = dry(context, "record")
        .args(recorded)
        .args(["A=realtime"])
        .text()?;
    let name = "PROFILE_OUT='target/recordings/realtime-x86_64-cfs-smp2-real.pbg'";
    ensure!(said.contains(name), "expected {name}");
    Ok(())
}

/// A folder with a blank in its name, for every target.
fn blank_in_name(context: &Context) -> Result<()> {
    let tree = context.file("a b")?;
    fs::create_dir_all(&tree)?;
    context
        .program("cp")
        .args(["-r", "Makefile", "scripts", &tree])
        .text()?;
    for goal in ["help", "setup", "run", "matrix", "test", "clean"] {
        let said = context.make([goal]).within(&tree).failure()?;
        let text = "with a blank in its name; allowed is one without";
        ensure!(
            said.lines().count() == 1 && said.contains(text),
            "make {goal}: expected one line, `{text}`"
        );
    }
    Ok(())
}
