//! Make's own manners: its help, its names, what it says where it cannot work.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

use super::helpers::{but_makes, commands_without, dry, exits, fails_with, folder};
use crate::{
    frame::{Case, Context, case},
    project::folders_in,
};

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
        case("make: a folder below says where to call it", elsewhere),
        case("make: a folder with a blank in its name", blank_in_name),
        case("make: justrun without an image", |context| {
            let call = context
                .make(["justrun", "SCALE=123456789"])
                .args([folder("selftest")]);
            fails_with(call, "make build")
        }),
    ]
}

const VARIABLES: [&str; 32] = [
    "A",
    "KIND",
    "ARCH",
    "FEATURES",
    "SMP",
    "BALANCE",
    "CPUS",
    "PROFILE",
    "CHECK",
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
    "JOBS",
    "MINUTES",
    "BOOTS",
    "SEED",
    "SELFTEST",
    "SCHED_YIELDS",
    "PORT",
];

const GOALS: [&str; 36] = [
    "setup",
    "build",
    "run",
    "justrun",
    "serve",
    "http-test",
    "record",
    "matrix",
    "compare",
    "simulate",
    "advise",
    "profile",
    "gantt",
    "trace",
    "sched",
    "cost",
    "coop-cost",
    "cost-gate",
    "connections",
    "bench",
    "docs-tables",
    "docs-check",
    "stale",
    "test",
    "test-list",
    "mutants",
    "fuzz",
    "soak",
    "interleavings",
    "audit",
    "clippy",
    "fmt",
    "doc",
    "clean",
    "prepush",
    "new",
];

/// Whatever the variables say, and to be read at 80 columns.
fn help(context: &Context) -> Result<()> {
    let help = context.make(["ARCH=nonsense", "SMP=x"]).text()?;
    for name in VARIABLES {
        let begin = format!("  {name}=");
        ensure!(
            help.lines().any(|line| line.starts_with(&begin)),
            "not there: {name}"
        );
    }
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<_> = help.split(|c| !in_name(c)).collect();
    let policies = context.project.policies.iter().map(String::as_str);
    for word in policies.chain(GOALS) {
        ensure!(words.contains(&word), "not there: {word}");
    }
    let long = help.lines().find(|line| line.chars().count() > 80);
    ensure!(long.is_none(), "longer than 80 columns: {long:?}");
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

/// In every folder that make may be called in by mistake.
fn elsewhere(context: &Context) -> Result<()> {
    let mut folders: Vec<PathBuf> = vec!["apps".into(), "scripts".into(), "docs".into()];
    for above in [
        "apps/sched-tests",
        "apps/examples",
        "modules",
        "tools",
        "tests",
    ] {
        folders.push(above.into());
        folders.extend(folders_in(Path::new(above))?);
    }
    let where_to = format!("allowed is make -C {} run", context.project.root.display());
    for folder in &folders {
        let said = context.make(["run"]).within(folder).failure()?;
        ensure!(
            said.contains(&where_to),
            "{}: expected `{where_to}`",
            folder.display()
        );
    }
    context.counts(folders.len());
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
