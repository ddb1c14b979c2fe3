//! Pages whose figures come from a CSV file.

mod common;

use common::{Ended, Lab};

const CSV: &str = "\
arch,scheduler,figure,value,min,mean,max,phases
x86_64,rr,average,1683.866,1683.866,1690.000,1696.134,8
x86_64,cfs,average,818.200,810.000,820.000,830.000,8
x86_64,sjf,average,825.000,815.000,825.000,835.000,8
";

const PAGE: &str = "\
# Results

<!-- given {\"csv\": \"results/t.csv\", \"figure\": \"average\"} -->
<!-- table {\"title\": \"ms\", \"rows\": \"scheduler\", \"columns\": \"arch\",
    \"decimals\": 1, \"compare\": \"rows\"} -->
<!-- end -->
";

fn lab(page: &str) -> Lab {
    let lab = Lab::new();
    lab.write("docs/results/t.csv", CSV);
    lab.write("docs/page.md", page);
    lab
}

fn docs(lab: &Lab, more: &[&str]) -> Ended {
    let page = lab.path("docs/page.md");
    let page = page.to_str().expect("text");
    lab.run(&[&["docs"], more, &[page]].concat())
}

#[test]
fn tables_are_written_and_then_agree_with_their_file() {
    let lab = lab(PAGE);
    let before = docs(&lab, &["--check"]);
    assert_eq!(before.code, Some(1), "{before:?}");
    assert_eq!(lab.read("docs/page.md"), PAGE, "a check writes nothing");
    let written = docs(&lab, &[]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let expected = "\
| ms | x86_64 |
|---|--:|
| rr | 1,690.0 ±0.36 % |
| cfs | 820.0 ±1.22 % <sup>a</sup> |
| sjf | 825.0 ±1.21 % <sup>a</sup> |
<!-- end -->
";
    let page = lab.read("docs/page.md");
    assert!(page.ends_with(expected), "{page}");
    let check = docs(&lab, &["--check"]);
    assert_eq!(
        (check.code, check.out.as_str()),
        (Some(0), "1 marked table, all as the CSV files have them\n")
    );
    assert_eq!(docs(&lab, &[]).out, check.out, "nothing is left to write");
}

#[test]
fn a_figure_that_is_not_the_files_is_named_with_its_line() {
    let lab = lab(PAGE);
    docs(&lab, &[]);
    let page = lab.read("docs/page.md");
    lab.write(
        "docs/page.md",
        &page.replace("820.0", "819.0").replace("825.0", "824.0"),
    );
    let end = docs(&lab, &["--check"]);
    let path = lab.path("docs/page.md");
    let path = path.display();
    assert_eq!(
        (end.code, end.out),
        (
            Some(1),
            format!(
                "{path}:9: expected `| cfs | 820.0 ±1.22 % <sup>a</sup> |`, found `| cfs | 819.0 ±1.22 % <sup>a</sup> |`\n\
                 {path}:10: expected `| sjf | 825.0 ±1.21 % <sup>a</sup> |`, found `| sjf | 824.0 ±1.21 % <sup>a</sup> |`\n\
                 2 lines are not as the CSV files have them\n"
            )
        )
    );
    // The other way round, too: the file changes and the page stays.
    lab.write("docs/page.md", &page);
    lab.write("docs/results/t.csv", &CSV.replace("820.000", "821.000"));
    assert_eq!(docs(&lab, &["--check"]).code, Some(1));
}

#[test]
fn a_page_without_marks_or_with_a_wrong_one_gets_one_line() {
    for (page, expected) in [
        (
            "# Nothing\n",
            "docs/page.md: expected marked tables, found none\n",
        ),
        (
            "<!-- table {\"title\": \"\"} -->\n<!-- end -->\n",
            "docs/page.md: line 1: table: expected other words: missing field `csv`\n",
        ),
        (
            &PAGE.replace("t.csv", "none.csv"),
            "docs/results/none.csv: No such file or directory (os error 2)\n",
        ),
    ] {
        let lab = lab(page);
        let end = docs(&lab, &["--check"]);
        assert_eq!(end.code, Some(2), "{end:?}");
        assert!(end.err.ends_with(expected), "{}", end.err);
        assert_eq!(end.err.lines().count(), 1, "{}", end.err);
    }
}

#[test]
fn an_unmarked_figure_fails_whether_pages_are_checked_or_written() {
    let lab = lab(&format!("{PAGE}\n| ms | 1.5 |\n"));
    for (more, line) in [(&[][..], 8), (&["--check"], 13)] {
        let end = docs(&lab, more);
        assert_eq!(end.code, Some(1), "{end:?}");
        let found = format!(
            ":{line}: expected a figure of a table to be marked with its CSV file, found `1.5`\n"
        );
        assert!(end.out.contains(&found), "{}", end.out);
        assert!(
            end.out
                .ends_with("1 line is not as the CSV files have them\n"),
            "{}",
            end.out
        );
    }
}
