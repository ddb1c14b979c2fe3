//! A job that parses JSON documents into trees and writes them back.

use alloc::string::String;
use core::fmt::Write;

use serde_json::Value;

use super::Numbers;

const RECORDS: usize = 12;
const PARTS: usize = 4;

/// Parses a new document each time.
pub struct Parse(pub Numbers);

impl super::Work for Parse {
    fn unit(&mut self) -> bool {
        let (text, sum) = document(&mut self.0);
        is_tree_of(&text, sum)
    }
}

/// Returns a document as the library would write it, and the sum of the numbers in it.
fn document(numbers: &mut Numbers) -> (String, u64) {
    let mut text = String::new();
    let mut sum = 0;
    let mut number = || {
        let number = numbers.below(1_000_000);
        sum += number as u64;
        number
    };
    for record in 0..RECORDS {
        let opening = if record == 0 { '[' } else { ',' };
        let (cost, first) = (number(), number());
        write!(
            text,
            r#"{opening}{{"cost":{cost},"name":"job {record}","parts":[{first}"#
        )
        .expect("a string grows");
        for _ in 1..PARTS {
            write!(text, ",{}", number()).expect("a string grows");
        }
        text.push_str("]}");
    }
    text.push(']');
    (text, sum)
}

/// Returns true if `text` is parsed to a tree whose numbers have this sum, and the tree is written
/// as the same text.
fn is_tree_of(text: &str, sum: u64) -> bool {
    serde_json::from_str(text)
        .is_ok_and(|tree| sum_of(&tree) == sum && serde_json::to_string(&tree).unwrap() == text)
}

fn sum_of(tree: &Value) -> u64 {
    match tree {
        Value::Number(number) => number.as_u64().unwrap_or(0),
        Value::Array(values) => values.iter().map(sum_of).sum(),
        Value::Object(fields) => fields.values().map(sum_of).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_from_the_document_is_found() {
        let (text, sum) = document(&mut Numbers::new(1));
        assert!(is_tree_of(&text, sum));
        assert!(!is_tree_of(&text, sum + 1), "the sum");
        assert!(!is_tree_of(&text[1..], sum), "not JSON");
        assert!(!is_tree_of(&text.replace(':', ": "), sum), "the text");
    }
}
