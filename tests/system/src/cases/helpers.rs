//! Steps that several groups of cases share.

use std::{fs, os::unix::fs::symlink, path::Path};

use anyhow::{Result, ensure};

use crate::{
    frame::{self, Call, Case, Context, Output},
    results::Results,
};

/// The architecture of cases that do not depend on it.
pub const ANY_ARCH: &str = "x86_64";
/// The architecture of cases in real time that do not depend on it. It builds for counted and for real
/// time in one folder, and x86_64 does not.
pub const REAL_ARCH: &str = "riscv64";
/// The policy whose programs have agents.
pub const DELEGATED: &str = "sched_delegated";

/// Prepares `make run` of an app under PBG.
pub fn pbg<'a>(context: &'a Context, app: &str) -> Call<'a> {
    context.make(format!("run A={app} FEATURES=sched_pbg"))
}

/// Makes the case run alone, and one before it that builds these images beside other cases. An image is
/// the words of make for it.
pub fn built_then_alone<'a>(case: Case<'a>, arch: &str, images: Vec<String>) -> [Case<'a>; 2] {
    let name = format!("{}, images", case.name);
    let built = frame::case(name, move |context| {
        images.iter().try_for_each(|image| {
            let build = context.make(format!("build {image}"));
            build.text().map(drop)
        })
    });
    [built.builds(arch), case.alone()]
}

/// Prepares a goal of make with the app that misbehaves on request.
pub fn selftest<'a>(context: &'a Context, goal: &str, case: &str) -> Call<'a> {
    let call = context.make(format!("{goal} A=selftest"));
    call.args(format!("T={case}"))
}

/// Returns the words of `FEATURES=` that name these policies.
pub fn list(policies: &[&String]) -> String {
    let names: Vec<_> = policies.iter().map(|policy| policy.as_str()).collect();
    names.join(",")
}

/// Returns the result lines of a call, which must succeed.
pub fn results(call: Call) -> Result<Results> {
    Results::of(&call.text()?)
}

/// Runs the agents that misbehave by this call of make. Each must behave as its phase says.
pub fn run_faults(make: Call) -> Result<()> {
    let run = format!("run A=apps/delegated/faults FEATURES={DELEGATED} SCALE=4");
    let said = make.args(run).text()?;
    ensure!(said.contains("replaced"), "not all faults ran");
    Ok(())
}

/// Returns true if a policy measures in one phase and replays in the next.
pub fn has_replay(policy: &str) -> bool {
    policy.starts_with("sched_pbg")
}

/// Returns the phases that an app has under a policy.
pub fn phases(policy: &str) -> &'static str {
    if has_replay(policy) {
        "measure replay"
    } else {
        "run"
    }
}

/// Checks that a call fails, and that its last line is the runner's and has this text. Lines of
/// make do not count.
pub fn expect_failure(call: Call, text: &str) -> Result<()> {
    let output = call.failure()?;
    let last = program_lines(&output).last().unwrap_or_default();
    ensure!(
        last.starts_with("run: ") && last.contains(text),
        "expected `run: … {text} …`, found `{last}`"
    );
    Ok(())
}

/// Checks that a call fails with one line, which has this text and says what is allowed.
pub fn expect_refusal(call: Call, text: &str) -> Result<()> {
    let output = call.failure()?;
    ensure!(output.lines().count() == 1, "expected one line");
    ensure!(output.contains(text), "expected `{text}`");
    ensure!(output.contains("allowed"), "expected what is allowed");
    Ok(())
}

/// Returns the lines of an output that are not make's own.
pub fn program_lines(output: &str) -> impl DoubleEndedIterator<Item = &str> {
    output.lines().filter(|line| !line.starts_with("make: "))
}

/// Returns the last line of an output, or an empty one.
pub fn last_line(output: &str) -> &str {
    output.lines().last().unwrap_or_default()
}

/// Checks the exit status of a failed call.
pub fn expect_status(output: &Output, status: i32) -> Result<()> {
    ensure!(
        output.status.code() == Some(status),
        "expected exit status {status}, found {}",
        output.status
    );
    Ok(())
}

/// Links all commands of this machine into a folder, except those that `is_missing` names. Returns
/// a `PATH` of that folder and cargo's.
pub fn link_commands_without(folder: &str, is_missing: impl Fn(&str) -> bool) -> Result<String> {
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    for from in ["/usr/bin", "/bin"] {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            let link = folder.join(&name);
            if !is_missing(&name.to_string_lossy()) && !link.is_symlink() {
                symlink(entry.path(), link)?;
            }
        }
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or(format!("{home}/.cargo"));
    let folder = fs::canonicalize(folder)?;
    Ok(format!("{}:{cargo}/bin", folder.display()))
}
