//! YAML: both readers give the same tree, and what is written reads back.

use mcptest_yaml::{Document, DocumentLimits, write};
use serde_json::Value;

use crate::property::assert_located;

const NAME: &str = "file.yml";

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let limits = DocumentLimits::default();
    let full = Document::parse_in_full(NAME, input, &limits);
    let document = match (Document::parse(NAME, input, &limits), full) {
        (Ok(document), Ok(full)) => {
            assert_eq!(document.root(), full.root(), "the two readers disagree");
            document
        }
        (Err(problems), Err(_)) => return assert_located(&problems, NAME),
        (Ok(_), Err(problems)) => panic!("only the fast reader accepts it: {problems}"),
        (Err(problems), Ok(_)) => panic!("only the full reader accepts it: {problems}"),
    };
    let value = document.root().to_json();
    reads_back(&write::flow(&value), &value);
    if let Value::Object(entries) = &value {
        let mut text = String::new();
        write::mapping(&mut text, 0, entries);
        if !entries.is_empty() {
            reads_back(&text, &value);
        }
    }
}

fn reads_back(text: &str, value: &Value) {
    let limits = DocumentLimits::default();
    match Document::parse(NAME, text.as_bytes(), &limits) {
        Ok(document) => {
            let read = document.root().to_json();
            let same = mcptest_json::equal(&read, value);
            assert!(same, "{value} is written as {text:?} and read as {read}");
        }
        Err(problems) => panic!("{value} is written as {text:?}: {problems}"),
    }
}
