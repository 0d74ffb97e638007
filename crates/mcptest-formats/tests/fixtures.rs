//! Every fixture is detected as its format, and gives the native traces in `tests/expected`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p mcptest-formats` writes them after an intended change.

use std::fs;
use std::path::{Path, PathBuf};

use mcptest_formats::{Input, READERS, by_name, detect};

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
        assert!(has || name == "native", "{name} has no fixture");
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
