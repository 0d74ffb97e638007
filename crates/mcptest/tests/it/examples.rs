//! Every suite under `examples`: accepted by us and by the published schema, with the verdict that
//! its name promises.

use mcptest_gates::GATES;

use crate::support::{files, root, run};

/// Mock manifests, benchmark specs and files that suites import are in the same folders as suites.
fn is_suite(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    let is_part = has("attacks:") && !has("agents:");
    !has("mock_server:") && !is_part && !is_bench(text)
}

fn is_bench(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("intents:"))
}

#[test]
fn each_runs_with_its_expected_verdict() {
    let examples = root().join("examples");
    let mut suites = 0;
    for path in files(&examples, "yml") {
        let text = std::fs::read_to_string(&path).unwrap();
        if !is_suite(&text) {
            continue;
        }
        suites += 1;
        // Agents with real models and services are not available; the suite can still be checked.
        if text.contains("pass_env:") || text.contains("- url: http://127.0.0.1") {
            let ran = run(&root(), &["validate", path.to_str().unwrap()]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            continue;
        }
        // Nor are the models themselves.
        if text.lines().any(|line| line.starts_with("providers:")) {
            let ran = run(&root(), &["validate", path.to_str().unwrap()]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            assert!(ran.stderr.contains("is not set"), "{}", ran.stderr);
            continue;
        }
        // A suite that shows failures has it in its name.
        let fails = path
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .contains("failing");
        let name = path.to_str().unwrap();
        let ran = run(&root(), &["run", name, "--reporter", "json"]);
        assert_eq!(
            ran.code,
            i32::from(fails),
            "{name}\n{}\n{}",
            ran.stdout,
            ran.stderr
        );
        let report = ran.json();
        assert_eq!(
            report["verdict"],
            if fails { "fail" } else { "pass" },
            "{name}"
        );
        assert!(
            report["tests"]
                .as_array()
                .is_some_and(|tests| !tests.is_empty()),
            "{name}"
        );
    }
    assert!(suites >= 2);
}

#[test]
fn the_published_schemas_accept_each() {
    let suite = jsonschema::validator_for(&mcptest_suite::suite_schema(GATES)).unwrap();
    let manifest = jsonschema::validator_for(&mcptest_mock::manifest_schema()).unwrap();
    let bench = jsonschema::validator_for(&mcptest_catalog::tool_bench::spec_schema()).unwrap();
    for path in files(&root().join("examples"), "yml") {
        let text = std::fs::read_to_string(&path).unwrap();
        let document = mcptest_yaml::Document::parse(
            "x",
            text.as_bytes(),
            &mcptest_yaml::DocumentLimits::default(),
        )
        .unwrap();
        // A part of a suite, to be imported, has the suite's keys.
        let is_manifest = text.lines().any(|line| line.starts_with("mock_server:"));
        let validator = match (is_bench(&text), is_manifest) {
            (true, _) => &bench,
            (false, true) => &manifest,
            (false, false) => &suite,
        };
        let errors: Vec<String> = validator
            .iter_errors(&document.root().to_json())
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn reports_are_byte_stable_and_fit_their_schema() {
    let validator = jsonschema::validator_for(&mcptest_report::report_schema()).unwrap();
    for suite in [
        "examples/quickstart/mcptest.yml",
        "examples/quickstart/failing.yml",
    ] {
        let once = || {
            run(
                &root(),
                &["run", suite, "--reporter", "json", "--no-timing"],
            )
            .stdout
        };
        let first = once();
        for _ in 0..5 {
            assert_eq!(first, once(), "{suite}");
        }
        let report = serde_json::from_str(&first).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&report)
            .map(|error| format!("{} {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new());
    }
}

#[test]
fn what_run_records_scores_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let traces = dir.path().join("traces.jsonl");
    let suite = "examples/quickstart/mcptest.yml";
    let live = run(
        &root(),
        &[
            "run",
            suite,
            "--reporter",
            "json",
            "--traces",
            traces.to_str().unwrap(),
        ],
    );
    let scored = run(
        &root(),
        &[
            "score",
            suite,
            "--reporter",
            "json",
            "--trace",
            traces.to_str().unwrap(),
        ],
    );
    assert_eq!((live.code, scored.code), (0, 0), "{}", scored.stderr);
    let gates = |report: serde_json::Value| -> Vec<serde_json::Value> {
        report["tests"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|test| test["kind"] == "agent")
            .map(|test| test["gates"].clone())
            .collect()
    };
    assert_eq!(gates(live.json()), gates(scored.json()));
}
