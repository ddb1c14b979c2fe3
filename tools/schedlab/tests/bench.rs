//! The tables of `make bench`, from what its harness and `sched-memory` print.

mod common;

use common::{Ended, Lab};

const MEMORY: &str = "\
scheduler,task_bytes,queue_bytes,ready_bytes
cfs,64,120,0.0
stock-cfs,32,328,48.6
";

/// A line of the harness: of 4,096 yields, what one costs.
fn line(scheduler: &str, tasks: u32, instructions: u64, misses: u64) -> String {
    let sum = |one: u64| one * 4096;
    format!(
        r#"{{"kind":"BinaryBenchmark","profiles":[{{"data":{{"parts":[{{"tool_run":{{"new":{{"command":"/t/sched-bench {scheduler} yield {tasks} 4096","part":1}}}}}}],"total":{{"metrics":{{"Ir":{{"values":{{"new":{}}}}},"D1mr":{{"values":{{"new":{}}}}},"D1mw":{{"values":{{"new":0}}}}}}}}}},"tool":"Callgrind"}}],"version":"7"}}
"#,
        sum(instructions),
        sum(misses)
    )
}

fn bench(lab: &Lab, counts: &str) -> Ended {
    lab.write("target/bench/counts.jsonl", counts);
    lab.write("target/bench/memory.csv", MEMORY);
    let path = |name: &str| lab.path(name).to_str().expect("text").to_owned();
    lab.run(&[
        "bench",
        &path("target/bench/counts.jsonl"),
        &path("target/bench/memory.csv"),
        "--out",
        &path("out"),
    ])
}

#[test]
fn the_figures_are_printed_written_and_drawn() {
    let lab = Lab::new();
    let counts = [
        line("cfs", 4, 293, 0),
        line("cfs", 4096, 453, 10),
        line("stock-cfs", 4, 214, 0),
        line("stock-cfs", 4096, 748, 2),
    ];
    let end = bench(&lab, &counts.concat());
    assert_eq!(end.code, Some(0), "{end:?}");
    let table = "\
 scheduler       4    4096
---------------------------
 cfs         293.0   453.0
 stock-cfs   214.0   748.0
";
    assert!(end.out.contains(table), "{}", end.out);
    let csv = lab.read("out/bench.csv");
    let begin = "\
arch,scheduler,operation,tasks,figure,value
x86_64,cfs,yield,4,instructions,293.0
x86_64,cfs,yield,4,l1d_misses,0.00
";
    let begin = begin.replace("x86_64", std::env::consts::ARCH);
    assert!(csv.starts_with(&begin), "{csv}");
    assert!(lab.read("out/bench.svg").starts_with("<svg"));
    assert!(
        lab.read("target/bench/bench.md")
            .contains("| cfs | 293.0 | 453.0 |")
    );
    assert!(lab.exists("target/bench/bench.png"));

    // A page has its tables from that file: costs beside bytes.
    let page = "\
<!-- given {\"csv\": \"bench.csv\"} -->
<!-- table {\"title\": \"scheduler\", \"rows\": \"scheduler\", \"columns\": [
    {\"title\": \"yield\", \"operation\": \"yield\", \"tasks\": \"4096\", \"figure\": \"instructions\"},
    {\"title\": \"bytes\", \"operation\": \"memory\", \"figure\": \"task_bytes\"}]} -->
<!-- end -->
";
    lab.write("out/page.md", page);
    let path = lab.path("out/page.md");
    let end = lab.run(&["docs", path.to_str().expect("text")]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let rows = "| cfs | 453.0 | 64 |\n| stock-cfs | 748.0 | 32 |\n";
    assert!(lab.read("out/page.md").contains(rows));
}

#[test]
fn what_callgrind_has_not_counted_is_an_error() {
    let lab = Lab::new();
    let good = line("cfs", 4, 293, 0);
    let end = bench(&lab, &(good + &line("cfs", 16, 0, 0)));
    assert_eq!(end.code, Some(2), "{end:?}");
    assert!(
        end.err.ends_with(
            "counts.jsonl: line 2: cfs yield: expected 4096 instructions or more, found 0\n"
        ),
        "{}",
        end.err
    );
    assert!(!lab.exists("out/bench.csv"));
}
