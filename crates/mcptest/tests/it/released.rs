//! Files of released versions (`tests/released`), which this version must still read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ran, root, run};

/// The folders of all released versions.
fn versions() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("tests/released"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// A copy of a version's files, so that nothing is written beside them.
fn copy(from: &Path) -> tempfile::TempDir {
    fn all(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let to = to.join(path.file_name().unwrap());
            if path.is_dir() {
                all(&path, &to);
            } else {
                std::fs::copy(&path, &to).unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    all(from, dir.path());
    dir
}

/// The verdicts of tests and gates, by their names.
fn verdicts(report: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found = BTreeMap::from([("all".to_owned(), text(&report["verdict"]))]);
    for test in report["tests"].as_array().unwrap() {
        let label = text(&test["label"]);
        for gate in test["gates"].as_array().into_iter().flatten() {
            found.insert(
                format!("{label}: {}", text(&gate["block"])),
                text(&gate["verdict"]),
            );
        }
        found.insert(label, text(&test["verdict"]));
    }
    found
}

/// Runs a check over every version, with the verdicts of its report.
fn each(check: impl Fn(&Path, &BTreeMap<String, String>)) {
    for version in versions() {
        let dir = copy(&version);
        let report = std::fs::read(dir.path().join("report.json")).unwrap();
        let expected = verdicts(&serde_json::from_slice(&report).unwrap());
        // Two tests, and at least one gate.
        assert!(expected.len() >= 4, "{}: {expected:?}", version.display());
        check(dir.path(), &expected);
    }
}

fn json(dir: &Path, args: &[&str]) -> Ran {
    let mut all = args.to_vec();
    all.extend(["--reporter", "json"]);
    run(dir, &all)
}

#[test]
fn suites_and_cassettes_run_as_they_did() {
    each(|dir, expected| {
        let args = ["run", "mcptest.yml", "--replay-only", "--no-history"];
        assert_eq!(&verdicts(&json(dir, &args).json()), expected);
        // Without its cassettes, the suite runs live.
        std::fs::remove_dir_all(dir.join("cassettes")).unwrap();
        let args = ["run", "mcptest.yml", "--no-history"];
        assert_eq!(&verdicts(&json(dir, &args).json()), expected);
    });
}

#[test]
fn cassettes_are_complete() {
    each(|dir, _| {
        let verified = run(dir, &["cassette", "verify", "cassettes"]);
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    });
}

#[test]
fn traces_are_scored_as_they_were() {
    each(|dir, expected| {
        let args = ["score", "mcptest.yml", "--trace", "traces.jsonl"];
        let scored = verdicts(&json(dir, &args).json());
        assert!(scored.len() > 2, "{scored:?}");
        for (name, verdict) in scored {
            assert_eq!(Some(&verdict), expected.get(&name), "{name}");
        }
    });
}

#[test]
fn reports_are_shown_and_compared() {
    each(|dir, expected| {
        let shown = json(dir, &["report", "report.json"]).json();
        assert_eq!(&verdicts(&shown), expected);
        let args = ["run", "mcptest.yml", "--replay-only", "--no-history"];
        let now = json(dir, &args);
        std::fs::write(dir.join("now.json"), now.stdout).unwrap();
        let compared = run(dir, &["report", "now.json", "--compare", "report.json"]);
        assert_eq!(compared.code, 0, "{}{}", compared.stdout, compared.stderr);
    });
}

#[test]
fn event_logs_are_folded() {
    each(|dir, expected| {
        let log = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
        let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let id = first["begun"]["id"].as_str().unwrap();
        let history = dir.join(".mcptest/history");
        std::fs::create_dir_all(&history).unwrap();
        std::fs::write(history.join(format!("{id}.jsonl")), &log).unwrap();
        assert_eq!(&verdicts(&json(dir, &["report"]).json()), expected);
    });
}
