//! Adds a folder under `apps/` to a copy of this tree. It is built, run and part of the matrix, and
//! leaves no trace when it is removed.

mod copy;

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{
    helpers::{expect_refusal, results},
    host::check_quotes,
};
use crate::{
    frame::{Case, Context, case},
    results::{Results, near},
};
use copy::Copy;

/// The resource of cases that work in the copy of the tree.
const COPY: &str = "the copy";

pub fn cases() -> [Case<'static>; 2] {
    let hello = case(
        "qemu: a folder under apps/ joins, and leaves no trace",
        add_hello,
    );
    let echo = case(
        "qemu: an ordinary program under apps/ joins where no result lines are needed",
        add_echo,
    );
    [hello.holds(COPY), echo.holds(COPY)]
}

fn add_hello(context: &Context) -> Result<()> {
    let tree = Copy::new(context)?;
    refuse_half_made(&tree)?;
    notice_older_manifest(&tree)?;
    tree.make("new A=apps/mine/hello").text()?;
    ensure!(tree.count_lines("hello")? < 60, "the template is long");
    let run = tree.make("run A=apps/mine/hello FEATURES=sched_pbg");
    let said = run.text()?;
    let copies = "Cargo.lock does not know apps/mine/hello: bringing a copy up to date";
    ensure!(said.contains(copies), "expected `{copies}`");
    ensure!(
        Results::of(&said)?.phase("replay")?.pass,
        "the replay has not passed"
    );
    tree.check_lint("hello")?;
    compare_unused_results(&tree)?;
    ensure!(tree.is_in_matrix("hello")?, "the lab does not know it");
    tree.check_tests("hello")?;
    let build = tree.make("build A=apps/mine/hello").env("CI", "y");
    let said = build.failure()?;
    ensure!(said.contains("in CI it must"), "expected what CI must do");
    fs::remove_dir_all(tree.path("apps/mine"))?;
    tree.check_unchanged()?;
    tree.make("build A=realtime").text()?;
    tree.check_unchanged()
}

/// Checks that a folder that is half an app is named in one line, before cargo is called.
fn refuse_half_made(tree: &Copy) -> Result<()> {
    let refuses = |text: &str| expect_refusal(tree.program("scripts/workspace.sh"), text);
    let half = tree.path("apps/mine/half");
    fs::create_dir_all(&half)?;
    refuses("apps/mine/half: no Cargo.toml")?;
    fs::copy(
        tree.path("apps/sched-tests/yield/Cargo.toml"),
        half.join("Cargo.toml"),
    )?;
    refuses("apps/mine/half: no src/main.rs")?;
    fs::create_dir(half.join("src"))?;
    for entry in fs::read_dir(tree.path("apps/sched-tests/yield/src"))? {
        let entry = entry?;
        fs::copy(entry.path(), half.join("src").join(entry.file_name()))?;
    }
    refuses("both are called yield")
}

/// Checks that a manifest is read again when it loses a dependency and its file's time is older.
fn notice_older_manifest(tree: &Copy) -> Result<()> {
    let half = tree.path("apps/mine/half");
    let manifest = half.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    // There is a crate of that name.
    let text = replaced(&text, "name = \"yield\"", "name = \"spin\"")?;
    fs::write(&manifest, &text)?;
    let workspace = || tree.program("scripts/workspace.sh").text();
    let said = workspace()?;
    ensure!(
        said.contains("does not know apps/mine/half"),
        "it knows apps/mine/half"
    );
    let time = fs::metadata(&manifest)?.modified()?;
    fs::write(&manifest, format!("{text}fnv = \"1\"\n"))?; // the last table is of dependencies
    workspace()?;
    let lock = fs::read_to_string(tree.path("target/workspace/Cargo.lock"))?;
    ensure!(
        lock.lines().any(|line| line == "name = \"fnv\""),
        "fnv is not in the lock file"
    );
    fs::write(&manifest, &text)?;
    fs::File::options()
        .write(true)
        .open(&manifest)?
        .set_modified(time)?;
    let said = workspace()?;
    ensure!(
        said.contains("bringing a copy up to date"),
        "an old manifest is not noticed"
    );
    Ok(fs::remove_dir_all(half)?)
}

/// Checks that a program that does not use its results does the same work. The compiler warns of an
/// unused result, but not of `let _`.
fn compare_unused_results(tree: &Copy) -> Result<()> {
    let work = || -> Result<u64> {
        let results = results(tree.make("run A=hello FEATURES=sched_rr"))?;
        results.phase("run")?.tasks_run_ns.context("no account")
    };
    let used = work()?;
    let main = tree.path("apps/mine/hello/src/main.rs");
    let text = fs::read_to_string(&main)?;
    let call = "x = work::spin(x, ROUNDS);";
    let text = replaced(&text, call, &call.replace("x =", "let _ ="))?;
    let text = replaced(&text, "let mut x", "let x")?;
    let with_end = |line: &str| match line.find("x == work::jump") {
        Some(at) => format!("{}true\n", &line[..at]),
        None => format!("{line}\n"),
    };
    fs::write(&main, text.lines().map(with_end).collect::<String>())?;
    let unused = work()?;
    ensure!(
        near(used, unused, 1000),
        "{unused} ns of work, {used} if the results are used"
    );
    Ok(())
}

/// Adds a program without the helpers. It runs faster by its plan, and goals that need its result
/// lines refuse it.
fn add_echo(context: &Context) -> Result<()> {
    let tree = Copy::new(context)?;
    tree.make("new A=apps/mine/echo LAB=--plain").text()?;
    let manifest = tree.path("apps/mine/echo/Cargo.toml");
    check_quotes(context, "toml", &manifest)?;
    ensure!(tree.count_lines("echo")? < 95, "the template is long");
    let said = tree.make("run A=echo FEATURES=sched_pbg").text()?;
    let (measured, replayed) = said.lines().find_map(averages).context("no averages")?;
    context.say(format_args!("{replayed} of {measured} ms"));
    ensure!(
        0 < replayed && replayed * 10 <= measured * 9,
        "{replayed} of {measured} ms"
    );
    check_status(&said)?;
    tree.check_tests("echo")?;
    tree.check_lint("echo")?;
    ensure!(!tree.is_in_matrix("echo")?, "the lab knows it");
    let refuses = |words: &str, text| expect_refusal(tree.make(format!("-n {words}")), text);
    let no_rows = "apps/mine/echo does without sched-tests-common";
    refuses("matrix A=realtime,echo", no_rows)?;
    refuses("trace A=apps/mine/echo", no_rows)?;
    refuses("run A=echo SCALE=10", "SCALE=10: not of apps/mine/echo")?;
    let text = fs::read_to_string(&manifest)?;
    let mut lines: Vec<_> = text.lines().collect();
    lines.retain(|line| !line.contains("sched_sjf"));
    fs::write(&manifest, lines.join("\n") + "\n")?;
    refuses("run A=echo FEATURES=sched_sjf", "has no feature sched_sjf")?;
    fs::remove_dir_all(tree.path("apps/mine"))?;
    tree.check_unchanged()
}

/// Returns the whole milliseconds of `done after 9.4ms on average; by the plan, after 5.1ms`.
fn averages(line: &str) -> Option<(u64, u64)> {
    let (measured, replayed) = line
        .strip_prefix("done after ")?
        .split_once(" on average; by the plan, after ")?;
    let whole = |time: &str| time.strip_suffix("ms")?.split('.').next()?.parse().ok();
    Some((whole(measured)?, whole(replayed)?))
}

/// Checks the status of PBG that the program prints: all tasks followed the plan.
fn check_status(said: &str) -> Result<()> {
    let json = said.lines().find_map(|line| line.strip_prefix("PBG says "));
    let status: serde_json::Value = serde_json::from_str(json.context("PBG says nothing")?)?;
    let found = ["planned", "matched", "diverged", "dropped", "behind"].map(|key| &status[key]);
    let is_good = *found[0] == 3 && *found[1] == 3 && *found[2] == 0;
    ensure!(
        is_good && *found[3] == false && *found[4] == false,
        "{status}"
    );
    Ok(())
}

fn replaced(text: &str, old: &str, new: &str) -> Result<String> {
    ensure!(text.contains(old), "not there: {old}");
    Ok(text.replace(old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_read() {
        let line = "done after 94.5ms on average; by the plan, after 51ms";
        assert_eq!(averages(line), Some((94, 51)));
        assert_eq!(averages("done after 94.5ms"), None);
    }
}
