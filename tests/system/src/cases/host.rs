//! The library and the tools on the host.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case> {
    vec![
        suite("host: sched-core", &["sched-core"]),
        suite("host: sched-policies", &["sched-policies"]),
        suite(
            "host: sched-smp, sched-model",
            &["sched-smp", "--package", "sched-model"],
        ),
        suite(
            "host: pbg, pbg-record, pbg-profile",
            &["pbg", "--package", "pbg-record", "--package", "pbg-profile"],
        ),
        suite("host: axsched-ext", &["axsched-ext"]),
        case("host: a policy of one's own conforms", own_policy).holds(HOST_CARGO),
        suite(
            "host: axsched-ext with sched_pbg",
            &["axsched-ext", "--features", "sched_pbg", "--test", "c_abi"],
        ),
        suite("host: axcoop", &["axcoop", "--package", "axcoop-summary"]),
        suite(
            "host: axcoop-net, axcoop-fs, http-load and apps/coop",
            &[
                "axcoop-net",
                "--package",
                "axcoop-fs",
                "--package",
                "http-common",
                "--package",
                "connections",
                "--package",
                "coop-cost",
                "--package",
                "services",
                "--package",
                "http-load",
                "--features",
                "axcoop-net/embedded-io",
            ],
        ),
        suite("host: sched-tests-common", &["sched-tests-common"]),
        suite("host: sched-tests-results", &["sched-tests-results"]),
        suite("host: batch", &["batch"]),
        suite("host: pipeline", &["pipeline"]),
        suite(
            "host: schedlab, pbg-save, sched-bench",
            &[
                "schedlab",
                "--package",
                "pbg-save",
                "--package",
                "sched-bench",
                "--profile",
                "tool",
            ],
        ),
        suite(
            "host: tests/system, what runs the tests",
            &[
                "system-tests",
                "--package",
                "process-groups",
                "--profile",
                "tool",
            ],
        ),
        case(
            "host: the tables of the docs are those of their CSV files",
            |context| context.make(["docs", "LAB=--check"]).text().map(drop),
        ),
        case(
            "host: docs/your-program.md quotes the template",
            quotes_template,
        ),
        case("host: what CPUs touch without a lock", interleavings).holds(HOST_CARGO),
        case("host: two policies do not compile", two_policies).holds(HOST_CARGO),
        case("host: axtask uses the local axsched", local_shim),
    ]
}

/// Two builds for the host wait for each other.
pub const HOST_CARGO: &str = "cargo of the host";

/// A package's tests, each of which counts.
pub fn suite(name: &str, arguments: &'static [&'static str]) -> Case {
    case(name, move |context| host_tests(context, arguments)).holds(HOST_CARGO)
}

/// The tests of an app of the user's own.
pub fn own_suite(app: &str) -> Case {
    let package = app.to_owned();
    case(format!("host: {app}"), move |context| {
        host_tests(context, &[&package])
    })
    .holds(HOST_CARGO)
}

fn host_tests(context: &Context, arguments: &[&str]) -> Result<()> {
    let said = context
        .cargo("test")
        .args(["--package"])
        .args(arguments)
        .text()?;
    count_tests(context, &said)
}

/// Tests the example of docs/new-policy.md, which has a workspace and a lock file of its own.
fn own_policy(context: &Context) -> Result<()> {
    let said = context
        .program(&context.project.cargo)
        .args(["test", "--locked", "--workspace", "--manifest-path"])
        .args(["examples/pace/Cargo.toml"])
        .text()?;
    ensure!(
        said.contains("test tests::conforms ... ok"),
        "the conformance suite did not run"
    );
    count_tests(context, &said)
}

fn count_tests(context: &Context, said: &str) -> Result<()> {
    let tests = tests_passed(said);
    ensure!(tests > 0, "no test has passed");
    context.counts(tests);
    Ok(())
}

/// The sum over all programs of tests.
fn tests_passed(said: &str) -> usize {
    let passed = |line: &str| {
        let counts = line.strip_prefix("test result: ok. ")?;
        counts.split_once(" passed")?.0.parse::<usize>().ok()
    };
    said.lines().filter_map(passed).sum()
}

fn quotes_template(context: &Context) -> Result<()> {
    quotes(context, "rust", Path::new("scripts/template/plain/main.rs"))
}

/// The blocks of docs/your-program.md in a language, from its second half on, are lines of the
/// file.
pub fn quotes(context: &Context, language: &str, file: &Path) -> Result<()> {
    let page = fs::read_to_string("docs/your-program.md")?;
    let second = page.find("\n## An ordinary").context("no second half")?;
    let text = fs::read_to_string(file)?;
    let quoted = blocks(&page[second..], |of| of == language);
    ensure!(!quoted.is_empty(), "no block of {language}");
    for line in quoted {
        ensure!(text.contains(line), "not in {}: {line}", file.display());
        context.say(line);
    }
    Ok(())
}

/// The lines, but empty ones, of a page's blocks in these languages.
pub fn blocks(page: &str, is_meant: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut of = None;
    for line in page.lines() {
        match (of, line.strip_prefix("```")) {
            (None, Some(language)) => of = Some(language),
            (Some(_), Some(_)) => of = None,
            (Some(language), None) if is_meant(language) && !line.is_empty() => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// In every order of up to three preemptions, a small part of what `make interleavings` explores without that bound.
/// Each scenario counts.
fn interleavings(context: &Context) -> Result<()> {
    let said = context
        .make(["interleavings"])
        .env("LOOM_MAX_PREEMPTIONS", "3")
        .text()?;
    let is_scenario = |line: &&str| line.ends_with(" executions");
    let scenarios = said.lines().filter(is_scenario).count();
    ensure!(scenarios > 0, "no scenario was explored");
    context.counts(scenarios);
    Ok(())
}

/// The library refuses them, naming both.
fn two_policies(context: &Context) -> Result<()> {
    let said = context
        .cargo("check")
        .args([
            "--package",
            "axsched-ext",
            "--features",
            "sched_fifo,sched_rr",
        ])
        .failure()?;
    let names_both = |line: &str| {
        line.starts_with("error") && line.contains("sched_fifo") && line.contains("sched_rr")
    };
    ensure!(
        said.lines().any(names_both),
        "expected an error that names both"
    );
    Ok(())
}

/// axtask sits on ours, not on the registry's.
fn local_shim(context: &Context) -> Result<()> {
    let tree = context
        .cargo("tree")
        .args(["--package", "axtask", "--depth", "1", "--edges", "normal"])
        .args(["--target", "x86_64-unknown-none"])
        .text()?;
    let is_local = |line: &str| line.contains(" axsched v") && line.contains("modules/axsched)");
    ensure!(
        tree.lines().any(is_local),
        "expected axsched of modules/axsched"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_all_programs_are_counted() {
        let said = "test result: ok. 12 passed; 0 failed; 0 ignored\nother\n\
                    test result: ok. 3 passed; 0 failed; 1 ignored\n\
                    test result: FAILED. 5 passed; 1 failed\n";
        assert_eq!(tests_passed(said), 15);
        assert_eq!(tests_passed(""), 0);
    }

    #[test]
    fn a_block_is_of_its_language() {
        let page = "a\n```rust\none\n\ntwo\n```\nb\n```toml\nthree\n```\n```\nfour\n```\n";
        assert_eq!(blocks(page, |of| of == "rust"), ["one", "two"]);
        assert_eq!(blocks(page, |of| of == "toml"), ["three"]);
        assert_eq!(blocks(page, |_| true), ["one", "two", "three", "four"]);
    }
}
