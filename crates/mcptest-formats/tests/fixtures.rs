//! Every fixture is detected as its format, and gives the native traces in `tests/expected`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p mcptest-formats` writes them after an intended change.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};

use mcptest_formats::{Input, READERS, by_name, detect};
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// The fixtures: the name of the format, the name of the file, its bytes.
fn fixtures() -> Vec<(String, String, Vec<u8>)> {
    let mut found = Vec::new();
    for format in fs::read_dir(folder("fixtures")).unwrap() {
        let format = format.unwrap();
        if !format.file_type().unwrap().is_dir() {
            continue;
        }
        for file in fs::read_dir(format.path()).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            if name != "README.md" && file.file_type().unwrap().is_file() {
                let format = format.file_name().into_string().unwrap();
                found.push((format, name, fs::read(file.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_fixture_gives_its_traces() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (format, name, bytes) in fixtures() {
        let input = Input::parse(&bytes).unwrap_or_else(|error| panic!("{format}/{name}: {error}"));
        let reader = detect(&input).unwrap_or_else(|error| panic!("{format}/{name}: {error}"));
        assert_eq!(reader.format().name, format, "{name}");
        let traces = reader
            .read(&input)
            .unwrap_or_else(|error| panic!("{format}/{name}: {error}"));
        let lines: String = traces
            .iter()
            .map(|trace| serde_json::to_string(trace).unwrap() + "\n")
            .collect();
        let path = folder("expected")
            .join(&format)
            .join(format!("{name}.native.jsonl"));
        if update {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &lines).unwrap();
        }
        let wanted = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            lines, wanted,
            "{format}/{name}: see UPDATE_GOLDEN in CONTRIBUTING.md"
        );
        // What was read is a native trace file.
        assert_eq!(
            mcptest_trace::trace::read(&lines).unwrap(),
            traces,
            "{format}/{name}"
        );
    }
}

#[test]
fn every_format_has_a_fixture() {
    let fixtures = fixtures();
    for reader in READERS {
        let name = reader.format().name;
        let has = fixtures.iter().any(|(format, ..)| format == name);
        assert_ne!(has, name == "native", "{name}: has a fixture: {has}");
    }
}

#[test]
fn a_file_of_lines_can_be_read_part_by_part() {
    for (format, name, bytes) in fixtures() {
        let Ok(input) = Input::parse(&bytes) else {
            continue;
        };
        let reader = by_name(&format).unwrap();
        if reader.grouping(&input) != mcptest_formats::Grouping::Document {
            continue;
        }
        let whole = reader.read(&input).unwrap();
        let mut parts = Vec::new();
        for document in input.documents() {
            let line = serde_json::to_vec(&document.value).unwrap();
            let part = Input::parse_at(&line, document.line).unwrap();
            parts.extend(reader.read(&part).unwrap());
        }
        assert_eq!(whole, parts, "{format}/{name}");
    }
}

#[test]
fn names_are_unique_and_unknown_ones_are_refused() {
    let mut names: Vec<_> = READERS.iter().map(|reader| reader.format().name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), READERS.len());
    let error = by_name("csv").err().unwrap().to_string();
    assert!(
        error.starts_with("unknown format `csv`: expected one of native, "),
        "{error}"
    );
}

/// A change of an input: a place (as a fraction of 2^16), the bytes to remove there, and those to
/// insert.
fn change() -> impl Strategy<Value = (u16, usize, Vec<u8>)> {
    let token = prop::sample::select(vec![
        "null",
        "{}",
        "[]",
        "\"",
        "{",
        "]",
        ",",
        ":",
        "-1",
        "1e400",
        "\\u0000",
        "\n",
        "\u{feff}",
        "\"type\":\"tool_use\",",
        "\"role\":\"assistant\",",
        "\"id\":null,",
        "\"tool_calls\":[",
    ]);
    let inserted = prop_oneof![
        Just(Vec::new()),
        token.prop_map(|token| token.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..4),
    ];
    (any::<u16>(), 0_usize..40, inserted)
}

fn changed(bytes: &[u8], changes: &[(u16, usize, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, removed, inserted) in changes {
        let at = usize::from(*place) * bytes.len() / usize::from(u16::MAX).max(1);
        let at = at.min(bytes.len());
        let end = (at + removed).min(bytes.len());
        bytes.splice(at..end, inserted.iter().copied());
    }
    bytes
}

proptest! {
    #[test]
    fn no_change_of_a_fixture_breaks_a_reader(
        fixture in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 0..6),
    ) {
        let fixtures = fixtures();
        let (_, _, bytes) = fixture.get(&fixtures);
        let bytes = changed(bytes, &changes);
        let _ = Input::head(&bytes).map(|head| head.map(|head| detect(&head).map(|_| ())));
        let (lines, _) = Input::parse_lines(&bytes, 1);
        let input = Input::parse(&bytes).unwrap_or(lines);
        if let Err(error) = detect(&input) {
            let message = error.to_string();
            let hostile = message.contains(['\u{1b}', '\u{202e}']);
            prop_assert!(!hostile, "{message}");
        }
        for reader in READERS {
            let _ = reader.grouping(&input);
            match reader.read(&input) {
                Ok(traces) => {
                    for trace in traces {
                        let text = serde_json::to_string(&trace).unwrap();
                        let again = mcptest_trace::trace::read(&text);
                        prop_assert_eq!(again.unwrap(), vec![trace], "{}", reader.format().name);
                    }
                }
                Err(error) => {
                    let message = error.to_string();
                    let lines = message.lines().count();
                    prop_assert!(lines == 1 && !message.contains('\u{1b}'), "{message}");
                }
            }
        }
    }
}
