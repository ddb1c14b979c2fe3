//! The library and the tools on the host.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use crate::frame::{Case, Context, case};

/// Suites of `cargo test`: the name, and the words behind `-p`.
const SUITES: [(&str, &str); 15] = [
    ("sched-core", "sched-core"),
    ("sched-policies", "sched-policies"),
    ("sched-smp, sched-model", "sched-smp -p sched-model"),
    (
        "pbg, pbg-record, pbg-profile",
        "pbg -p pbg-record -p pbg-profile",
    ),
    // Without the debug assertions, as the page says.
    (
        "delegated and its programs",
        "delegated -p delegated-shinjuku -p delegated-bandwidth --profile tool",
    ),
    ("axsched-ext", "axsched-ext"),
    (
        "axsched-ext with sched_pbg",
        "axsched-ext --features sched_pbg --test c_abi",
    ),
    ("axcoop", "axcoop -p axcoop-summary"),
    (
        "axcoop-net, axcoop-fs, http-load and apps/coop",
        "axcoop-net -p axcoop-fs -p http-common -p connections -p coop-cost -p services \
         -p http-load --features axcoop-net/embedded-io",
    ),
    ("sched-tests-common", "sched-tests-common"),
    ("sched-tests-results", "sched-tests-results"),
    ("batch", "batch"),
    ("pipeline", "pipeline"),
    (
        "sched-sim, schedlab, pbg-save, sched-bench",
        "sched-sim -p schedlab -p pbg-save -p sched-bench --profile tool",
    ),
    (
        "system-tests, process-groups, prose",
        "system-tests -p process-groups -p prose --profile tool",
    ),
];

pub fn cases() -> Vec<Case<'static>> {
    let suites = SUITES.map(|(name, words)| suite(name, words));
    let others = [
        case("host: a policy of one's own conforms", test_own_policy).holds(HOST_CARGO),
        case(
            "host: the tables of the docs are those of their CSV files",
            |context| context.make("docs LAB=--check").text().map(drop),
        ),
        case(
            "host: docs/your-program.md quotes the template",
            |context| check_quotes(context, "rust", Path::new("scripts/template/plain/main.rs")),
        ),
        case(
            "host: interleavings of what CPUs share without a lock",
            explore,
        )
        .holds(HOST_CARGO),
        case("host: two policies do not compile", refuse_two_policies).holds(HOST_CARGO),
        case("host: axtask uses the local axsched", check_shim),
    ];
    suites.into_iter().chain(others).collect()
}

/// The resource of cases that build for the host: two builds wait for each other.
pub const HOST_CARGO: &str = "cargo of the host";

/// Makes the case of a package's tests. It counts each of them.
fn suite<'a>(name: &str, words: impl Into<String>) -> Case<'a> {
    let words = words.into();
    let check = move |context: &Context| {
        let call = context.cargo("test", format!("-p {words}"));
        count_tests(context, &call.text()?)
    };
    case(format!("host: {name}"), check).holds(HOST_CARGO)
}

/// Makes the case of the tests of a user's own app.
pub fn own_suite<'a>(app: &str) -> Case<'a> {
    suite(app, app)
}

/// Tests the example of docs/new-policy.md, which has a workspace and a lock file of its own.
fn test_own_policy(context: &Context) -> Result<()> {
    let call = context.program(&context.project.cargo);
    let said = call
        .args("test --locked --workspace --manifest-path examples/pace/Cargo.toml")
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

/// Returns the number of tests that passed, over all programs of an output.
fn tests_passed(said: &str) -> usize {
    let passed = |line: &str| {
        let counts = line.strip_prefix("test result: ok. ")?;
        counts.split_once(" passed")?.0.parse::<usize>().ok()
    };
    said.lines().filter_map(passed).sum()
}

/// Checks that the blocks of docs/your-program.md in a language, from its second half on, are
/// lines of the file.
pub fn check_quotes(context: &Context, language: &str, file: &Path) -> Result<()> {
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

/// Returns the lines of a page's blocks in these languages, without empty ones.
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

/// Explores every order of up to three preemptions, a small part of what `make interleavings`
/// explores without that bound. Each scenario counts.
fn explore(context: &Context) -> Result<()> {
    let call = context.make("interleavings");
    let said = call.env("LOOM_MAX_PREEMPTIONS", "3").text()?;
    let is_scenario = |line: &&str| line.ends_with(" executions");
    let scenarios = said.lines().filter(is_scenario).count();
    ensure!(scenarios > 0, "no scenario was explored");
    context.counts(scenarios);
    Ok(())
}

/// Checks that the library refuses two policies, and names both.
fn refuse_two_policies(context: &Context) -> Result<()> {
    let both = "-p axsched-ext --features sched_fifo,sched_rr";
    let said = context.cargo("check", both).failure()?;
    let names_both = |line: &str| {
        line.starts_with("error") && line.contains("sched_fifo") && line.contains("sched_rr")
    };
    ensure!(
        said.lines().any(names_both),
        "expected an error that names both"
    );
    Ok(())
}

/// Checks that axtask depends on our axsched, not on the registry's.
fn check_shim(context: &Context) -> Result<()> {
    let words = "-p axtask --depth 1 --edges normal --target x86_64-unknown-none";
    let tree = context.cargo("tree", words).text()?;
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
    fn tests_of_all_programs_are_counted() {
        let said = "test result: ok. 12 passed; 0 failed; 0 ignored\nother\n\
                    test result: ok. 3 passed; 0 failed; 1 ignored\n\
                    test result: FAILED. 5 passed; 1 failed\n";
        assert_eq!(tests_passed(said), 15);
        assert_eq!(tests_passed(""), 0);
    }

    #[test]
    fn blocks_are_found_by_language() {
        let page = "a\n```rust\none\n\ntwo\n```\nb\n```toml\nthree\n```\n```\nfour\n```\n";
        assert_eq!(blocks(page, |of| of == "rust"), ["one", "two"]);
        assert_eq!(blocks(page, |of| of == "toml"), ["three"]);
        assert_eq!(blocks(page, |_| true), ["one", "two", "three", "four"]);
    }
}
