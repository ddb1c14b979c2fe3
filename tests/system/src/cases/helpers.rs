//! What several groups of cases do.

use std::{fs, os::unix::fs::symlink, path::Path};

use anyhow::{Result, ensure};

use crate::{
    frame::{Call, Context, Output},
    results::Results,
};

/// The architecture for what is no matter of the architecture.
pub const ANY_ARCH: &str = "x86_64";

/// `app` of the test programs as `A=` has it.
pub fn folder(app: &str) -> String {
    format!("A=apps/sched-tests/{app}")
}

/// `make run` of an app under PBG.
pub fn pbg<'a>(context: &'a Context, app: &str) -> Call<'a> {
    context
        .make(["run", "FEATURES=sched_pbg"])
        .args([folder(app)])
}

/// The app that misbehaves on request.
pub fn selftest<'a>(context: &'a Context, case: &str) -> Call<'a> {
    let call = context.make(["run".to_owned(), folder("selftest")]);
    call.env("SELFTEST", case)
}

/// The result lines of a call that succeeds.
pub fn results(call: Call) -> Result<Results> {
    Results::of(&call.text()?)
}

/// The call fails, and its last words but make's are the runner's, with this text.
pub fn fails_with(call: Call, text: &str) -> Result<()> {
    let said = call.failure()?;
    let last = but_makes(&said).last().unwrap_or_default();
    ensure!(
        last.starts_with("run: ") && last.contains(text),
        "expected `run: … {text} …`, found `{last}`"
    );
    Ok(())
}

/// Make refuses the call in one line, with this text and what is allowed; so nothing was built.
pub fn refused(call: Call, text: &str) -> Result<()> {
    fails_in_one_line(call, text)
}

/// The call fails with one line, which has this text and says what is allowed.
pub fn fails_in_one_line(call: Call, text: &str) -> Result<()> {
    let said = call.failure()?;
    ensure!(said.lines().count() == 1, "expected one line");
    ensure!(said.contains(text), "expected `{text}`");
    ensure!(said.contains("allowed"), "expected what is allowed");
    Ok(())
}

/// `make -n GOAL`.
pub fn dry<'a>(context: &'a Context, goal: &str) -> Call<'a> {
    context.make(["-n", goal])
}

/// The lines of an answer that are not make's own.
pub fn but_makes(said: &str) -> impl DoubleEndedIterator<Item = &str> {
    said.lines().filter(|line| !line.starts_with("make: "))
}

/// The failed call's status is this.
pub fn exits(output: &Output, status: i32) -> Result<()> {
    ensure!(
        output.status.code() == Some(status),
        "expected exit status {status}, found {}",
        output.status
    );
    Ok(())
}

/// A folder with all commands of this machine but those that `is_missing`; and a `PATH` of it.
pub fn commands_without(folder: &str, is_missing: impl Fn(&str) -> bool) -> Result<String> {
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
    Ok(format!(
        "{}:{cargo}/bin",
        fs::canonicalize(folder)?.display()
    ))
}
