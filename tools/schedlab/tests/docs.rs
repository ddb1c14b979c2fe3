//! Pages whose figures come from a CSV file.

mod common;

use common::Lab;

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

#[test]
fn tables_are_written_and_each_difference_is_named_with_its_line() {
    let lab = Lab::new();
    lab.write("docs/results/t.csv", CSV);
    lab.write("docs/page.md", PAGE);
    lab.shows("docs --check @docs/page.md");
    assert_eq!(lab.read("docs/page.md"), PAGE, "a check writes nothing");
    lab.shows("docs @docs/page.md");
    lab.shows_file("docs/page.md");
    lab.shows("docs --check @docs/page.md");
    lab.shows("docs @docs/page.md");
    // The page changes, then the CSV file.
    let page = lab.read("docs/page.md");
    let other = page.replace("820.0", "819.0").replace("825.0", "824.0");
    lab.write("docs/page.md", &other);
    lab.shows("docs --check @docs/page.md");
    lab.write("docs/page.md", &page);
    lab.write("docs/results/t.csv", &CSV.replace("820.000", "821.000"));
    lab.shows("docs --check @docs/page.md");
    lab.matches("docs/tables");
}

#[test]
fn pages_that_cannot_be_right_are_refused() {
    let lab = Lab::new();
    lab.write("docs/results/t.csv", CSV);
    for page in [
        "# No mark\n",
        "<!-- table {\"title\": \"\"} -->\n<!-- end -->\n",
        &PAGE.replace("t.csv", "none.csv"),
        &format!("{PAGE}\n| not marked | 1.5 |\n"),
    ] {
        for more in ["--check", ""] {
            lab.write("docs/page.md", page);
            lab.shows(&format!("docs {more} @docs/page.md"));
        }
    }
    lab.matches("docs/refused");
}
