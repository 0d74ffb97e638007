//! Every broken suite under `tests/bad`, with the complaints that it must give beside it
//! (`NAME.stderr`). Set `UPDATE_GOLDEN=1` to write them again.

use std::io::Write as _;

use mcptest_gates::GATES;
use mcptest_yaml::{CompiledSchema, Diagnostics, Document, DocumentLimits};

use crate::support::{files, folder, mcptest, ran, root, run};

#[test]
fn each_is_refused_with_all_its_problems_and_their_places() {
    let dir = root().join("tests/bad");
    let suites = files(&dir, "yml");
    assert!(suites.len() > 15);
    for suite in suites {
        let name = suite
            .strip_prefix(&dir)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let ran = run(&dir, &["validate", &name]);
        assert_eq!(ran.code, 2, "{name}");
        assert_eq!(ran.stdout, "", "{name}");
        assert!(
            ran.stderr.contains(&format!("{name}:")),
            "{name} has no place:\n{}",
            ran.stderr
        );
        let golden = suite.with_extension("stderr");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &ran.stderr).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(
            ran.stderr, expected,
            "{name}: run with UPDATE_GOLDEN=1 if this is meant"
        );
    }
}

#[test]
fn the_json_form_has_the_same_places() {
    let dir = root().join("tests/bad");
    let report = run(
        &dir,
        &["validate", "shape/unknown-key.yml", "--format", "json"],
    )
    .json();
    assert_eq!(report["valid"], false);
    let first = &report["diagnostics"][0];
    assert_eq!((&first["line"], &first["column"]), (&2.into(), &14.into()));
    assert_eq!(first["label"], "did you mean `command`?");
    assert_eq!(report["diagnostics"].as_array().unwrap().len(), 3);
    assert_eq!(report["tests"], serde_json::json!([]));
}

#[test]
fn the_json_form_lists_the_tests_as_reports_name_them() {
    let suite = "tests/docs/models.yml";
    let valid = run(&root(), &["validate", suite, "--format", "json"]).json();
    let report = run(
        &root(),
        &["run", suite, "--no-history", "--reporter", "json"],
    )
    .json();
    let labels = |list: &serde_json::Value| -> Vec<(String, String)> {
        let text = |test: &serde_json::Value, key| test[key].as_str().unwrap().to_owned();
        let tests = list.as_array().unwrap().iter();
        tests
            .map(|test| (text(test, "label"), text(test, "model")))
            .collect()
    };
    assert_eq!(labels(&valid["tests"]), labels(&report["tests"]));
    assert_eq!(valid["tests"].as_array().unwrap().len(), 2);
    assert_eq!(valid["tests"][0]["file"], suite);
}

#[test]
fn the_published_schema_refuses_what_we_refuse_for_its_shape() {
    let schema = mcptest_suite::suite_schema(GATES);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for suite in files(&root().join("tests/bad/shape"), "yml") {
        let bytes = std::fs::read(&suite).unwrap();
        let document = Document::parse("x", &bytes, &DocumentLimits::default()).unwrap();
        assert!(
            !validator.is_valid(&document.root().to_json()),
            "{} is accepted",
            suite.display()
        );
    }
}

#[test]
fn what_cannot_be_committed_is_refused_too() {
    let dir = folder(&[]);
    let file = dir.path().join("s.yml");
    let refused = |bytes: &[u8], words: &str| {
        std::fs::File::create(&file)
            .unwrap()
            .write_all(bytes)
            .unwrap();
        let ran = run(dir.path(), &["validate", "s.yml"]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(ran.stderr.contains("s.yml:"), "{}", ran.stderr);
    };
    refused(b"name: \xff\xfe", "not UTF-8");
    refused(&vec![b'#'; 10 * 1024 * 1024], "the limit is 8 MiB");
    refused(
        "- ".repeat(100_000).as_bytes(),
        "nested deeper than 64 levels",
    );
    refused(
        "{a: ".repeat(100_000).as_bytes(),
        "nested deeper than 64 levels",
    );
    refused(b"\x00\x01\x02", "s.yml:");
    // Half a megabyte of small values is no problem; a million and one are.
    refused(
        format!("variables: {{a: [{}]}}", "1,".repeat(1_000_001)).as_bytes(),
        "more than 1000000 values",
    );
}

#[test]
fn a_missing_suite_or_a_wrong_invocation_is_exit_2() {
    let dir = folder(&[]);
    for (args, words) in [
        (&["run", "nowhere.yml"][..], "no such file"),
        (&["run"][..], "neither mcptest.yaml nor mcptest.yml"),
        (&["run", "."][..], "no suite"),
        (&["validate", "nowhere.yml"][..], "no such file"),
        (
            &["score", "nowhere.yml", "--trace", "x"][..],
            "no such file",
        ),
        (&["run", "--no-such-flag"][..], "unexpected argument"),
        (&["run", "--timeout", "5"][..], "not a duration"),
        (
            &["run", "x.yml", "--reporter", "xml"][..],
            "unknown reporter `xml`; known are pretty, json",
        ),
        (
            &["run", "x.yml", "--reporter", "json", "--reporter", "pretty"][..],
            "share standard output",
        ),
        (
            &["mock", "--tools-from", "nowhere.yml"][..],
            "`nowhere.yml`: no such file",
        ),
        (&["frobnicate"][..], "unrecognized subcommand"),
    ] {
        let ran = run(dir.path(), args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
}

#[test]
fn random_bytes_never_panic() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    // Through the library: a process per case would be slow.
    let mut runner = TestRunner::new(Config {
        cases: 2 * Config::default().cases,
        source_file: Some(file!()),
        ..Config::default()
    });
    let yamlish = "[a-c:\\-\\[\\]{}&*!|>'\"#%@, \n\t0-9$~<]{0,60}";
    runner
        .run(
            &prop_oneof![
                yamlish.prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..60)
            ],
            |bytes| {
                if let Ok(document) = Document::parse("x", &bytes, &DocumentLimits::default()) {
                    let schema = CompiledSchema::compile(&mcptest_suite::suite_schema(GATES));
                    let _ = Diagnostics(schema.problems(&document)).to_string();
                }
                Ok(())
            },
        )
        .unwrap();
}

#[test]
fn a_secret_from_the_environment_is_not_shown() {
    let dir = folder(&[(
        "s.yml",
        "servers: {s: {command: [sh, -c, 'echo leaked $K >&2; exit 1'], env: {API_KEY: '${MY_API_KEY}', K: '${MY_API_KEY}'}}}\ntools: [{name: t, server: s, tool: x, args: {k: '${MY_API_KEY}'}}]\n",
    )]);
    for reporter in ["pretty", "json", "html"] {
        let mut command = mcptest(dir.path());
        command
            .args([
                "run",
                "s.yml",
                "--reporter",
                reporter,
                "--traces",
                "t.jsonl",
            ])
            .env("MY_API_KEY", "sk-very-secret-1");
        let ran = ran(&command.output().unwrap());
        assert_eq!(ran.code, 2);
        assert!(
            !ran.stdout.contains("very-secret") && !ran.stderr.contains("very-secret"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        assert!(
            reporter == "html" || ran.stdout.contains("leaked [redacted]"),
            "{}",
            ran.stdout
        );
        assert!(
            !std::fs::read_to_string(dir.path().join("t.jsonl"))
                .unwrap()
                .contains("very-secret")
        );
    }
}

#[test]
fn a_secret_in_a_complaint_about_the_suite_is_not_shown() {
    let dir = folder(&[(
        "s.yml",
        "agents: [{name: a, model: '${MY_API_KEY}', servers: [s], prompt: p, runs: '${MY_API_KEY}'}]\n",
    )]);
    let output = mcptest(dir.path())
        .args(["validate", "s.yml"])
        .env("MY_API_KEY", "sk-very-secret-1")
        .output()
        .unwrap();
    let ran = ran(&output);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("[redacted]") && !ran.stderr.contains("very-secret"),
        "{}",
        ran.stderr
    );
}
