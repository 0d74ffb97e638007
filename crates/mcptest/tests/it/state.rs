//! `setup:`, `after:` and `teardown:` of agent tests: calls on the run's own sessions, their place
//! in traces and cassettes, and what is an error.

use serde_json::Value;

use crate::support::{Ran, folder, run};

const SHOP: &str = r#"
mock_server:
  name: shop
  database:
    schema: "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)"
    rows: { orders: [{ id: 1, status: open }] }
  tools:
    - name: add_order
      input_schema: { type: object, properties: { status: { type: string } }, required: [status] }
      sql: "INSERT INTO orders (status) VALUES (:status) RETURNING id"
    - name: cancel_order
      input_schema: { type: object, properties: { id: { type: integer } }, required: [id] }
      sql: "UPDATE orders SET status = 'cancelled' WHERE id = :id AND status = 'open' RETURNING id, status"
      expect_rows: 1
      error: "order ${args.id} cannot be cancelled"
    - name: remove_order
      input_schema: { type: object, properties: { id: { type: integer } }, required: [id] }
      sql: "DELETE FROM orders WHERE id = :id"
      expect_rows: 1
"#;

/// A suite whose agent cancels order 2, with these further keys.
fn suite(keys: &str) -> String {
    format!(
        r#"
servers:
  shop: {{ command: [mcptest, mock, --tools-from, shop.yml, --record, requests.jsonl] }}
agents:
  - name: cancels
    model: builtin/scripted
    servers: [shop]
    prompt: Cancel the order.
    script: [[{{ calls: [{{ tool: cancel_order, args: {{ id: 2 }} }}] }}, {{ say: Done. }}]]
{keys}"#
    )
}

fn ran(keys: &str, args: &[&str]) -> (tempfile::TempDir, Ran) {
    let dir = folder(&[("s.yml", &suite(keys)), ("shop.yml", SHOP)]);
    let mut all = vec!["run", "s.yml", "--reporter", "json"];
    all.extend(args);
    let ran = run(dir.path(), &all);
    (dir, ran)
}

const WHOLE: &str = r#"
    runs: 3
    setup:
      - { tool: add_order, args: { status: open }, save: { id: "result.structuredContent.rows[0].id" } }
    after:
      - sql: SELECT id, status FROM orders WHERE id = :id
        args: { id: "${saved.id}" }
        expect: [{ rows: { exact: [{ id: 2, status: cancelled }] } }]
      - { tool: cancel_order, args: { id: "${saved.id}" }, expect: [{ result.is_error: true }] }
      - { tool: cancel_order, args: { id: 1 } }
    teardown:
      - { tool: remove_order, args: { id: "${saved.id}" } }
"#;

#[test]
fn calls_around_a_run_see_its_own_session() {
    let (dir, live) = ran(WHOLE, &["--record", "--jobs", "3"]);
    assert_eq!(live.code, 0, "{}\n{}", live.stdout, live.stderr);
    let runs = live.json()["tests"][0]["runs"].clone();
    for run in runs.as_array().unwrap() {
        // Each run starts with the rows of the manifest, so its order has the same id.
        let after = &run["trace"]["after"];
        assert_eq!(after[0]["rows"][0]["id"], 2, "{run}");
        assert_eq!(after[1]["result"]["text"], "order 2 cannot be cancelled");
        assert_eq!(after[0]["args"]["id"], 2);
        let targets: Vec<&str> = run["assertions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["target"].as_str().unwrap())
            .collect();
        assert_eq!(
            targets,
            [
                "after[0].rows",
                "after[1].result.is_error",
                "after[2].error",
                "after[2].result.is_error"
            ]
        );
        // The agent's own calls are only its own.
        assert_eq!(run["trace"]["tool_calls"].as_array().unwrap().len(), 1);
        let stages: Vec<&str> = run["trace"]["fixtures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["stage"].as_str().unwrap())
            .collect();
        assert_eq!(stages, ["setup", "teardown"]);
    }
    let requests = std::fs::read_to_string(dir.path().join("requests.jsonl")).unwrap();
    assert!(!requests.contains("mcptest/query"), "{requests}");

    // A replay and a score judge the recorded answers.
    let broken = suite(WHOLE).replace("shop.yml", "gone.yml");
    std::fs::write(dir.path().join("s.yml"), &broken).unwrap();
    let replayed = run(
        dir.path(),
        &["run", "s.yml", "--replay-only", "--reporter", "json"],
    );
    assert_eq!(replayed.code, 0, "{}\n{}", replayed.stdout, replayed.stderr);
    let cassette = "cassettes/s.yml/cancels.json";
    let score = |expected: i32| -> Value {
        let scored = run(
            dir.path(),
            &["score", "s.yml", "--trace", cassette, "--reporter", "json"],
        );
        assert_eq!(
            scored.code, expected,
            "{}\n{}",
            scored.stdout, scored.stderr
        );
        scored.json()
    };
    score(0);
    // Changed assertions need no new recording; a changed call does.
    let other = broken.replace("status: cancelled }] }", "status: shipped }] }");
    std::fs::write(dir.path().join("s.yml"), &other).unwrap();
    let failed = run(
        dir.path(),
        &["run", "s.yml", "--replay-only", "--reporter", "json"],
    );
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert_eq!(
        score(1)["tests"][0]["runs"][0]["assertions"][0]["passed"],
        false
    );
    let other = broken.replace("SELECT id, status FROM orders", "SELECT status FROM orders");
    std::fs::write(dir.path().join("s.yml"), &other).unwrap();
    let stale = run(dir.path(), &["run", "s.yml", "--replay-only"]);
    assert_eq!(stale.code, 2, "{}", stale.stdout);
    // The trace has no answer to the changed call: no evidence, never a pass.
    assert_eq!(score(3)["tests"][0]["runs"][0]["verdict"], "no_evidence");
}

#[test]
fn a_wrong_outcome_fails_the_run_with_its_call() {
    let (_, failed) = ran(
        "    after: [{ sql: \"SELECT status FROM orders WHERE id = 1\", expect: [{ \"rows[0].status\": cancelled }] }]",
        &[],
    );
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let report = failed.json();
    let assertion = &report["tests"][0]["runs"][0]["assertions"][0];
    assert_eq!(assertion["target"], "after[0].rows[0].status");
    assert_eq!(assertion["actual"], "open");
    let reason = assertion["reason"].as_str().unwrap();
    assert!(
        reason.ends_with("`SELECT status FROM orders WHERE id = 1` on `shop`"),
        "{reason}"
    );
}

#[test]
fn a_setup_that_fails_is_an_error_and_no_failure_of_the_agent() {
    let cases = [
        (
            "    setup: [{ tool: cancel_order, args: { id: 9 } }]",
            "setup call 1, `shop.cancel_order`: it failed: order 9 cannot be cancelled",
        ),
        (
            "    setup: [{ sql: SELECT count(*) AS n FROM orders, expect: [{ \"rows[0].n\": 7 }] }]",
            "`rows[0].n` does not hold",
        ),
        (
            "    teardown: [{ tool: remove_order, args: { id: 9 } }]",
            "teardown call 1, `shop.remove_order`: it failed: expected 1 row, found 0",
        ),
        (
            "    after: [{ sql: SELECT nosuch FROM orders, expect: [{ rows: { length: 1 } }] }]",
            "no such column: nosuch",
        ),
        (
            "    after: [{ sql: DELETE FROM orders RETURNING id, expect: [{ rows: { length: 1 } }] }]",
            "only a query that changes nothing is allowed here",
        ),
    ];
    for (keys, words) in cases {
        let keys = format!("{keys}\n    expect: [{{ tool_names: {{ length: 1 }} }}]");
        let (_, ran) = ran(&keys, &[]);
        assert_eq!(ran.code, 2, "{keys}: {}\n{}", ran.stdout, ran.stderr);
        let report = ran.json();
        let error = &report["tests"][0]["runs"][0]["error"];
        assert_eq!(error["kind"], "fixture", "{error}");
        assert!(
            error["message"].as_str().unwrap().contains(words),
            "{error}"
        );
    }
}

#[test]
fn only_a_mock_with_a_database_answers_queries() {
    let plain = "mock_server: { name: shop, tools: [{ name: cancel_order, response: ok }] }";
    let keys = "    after: [{ sql: SELECT 1 AS a, expect: [{ \"rows[0].a\": 1 }] }]";
    let dir = folder(&[("s.yml", &suite(keys)), ("shop.yml", plain)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("not a mock with a `database`"),
        "{}",
        ran.stdout
    );
}

#[test]
fn mistakes_in_calls_are_found_at_load() {
    let cases = [
        (
            "    after: [{ tool: a, sql: b }]",
            "a call needs either `tool` or `sql`",
        ),
        (
            "    after: [{ args: {} }]",
            "a call needs either `tool` or `sql`",
        ),
        (
            "    after: [{ sql: SELECT 1 AS a }]",
            "a query needs `expect` or `save`",
        ),
        (
            "    after: [{ server: shp, tool: a }]",
            "unknown server `shp`",
        ),
        (
            "    after: [{ sql: SELECT 1 AS a, expect: [{ result.text: x }] }]",
            "unknown target `result.text`",
        ),
        (
            "    after: [{ tool: a, args: { id: \"${saved.id}\" } }]",
            "no value is saved as `id` before this call",
        ),
        (
            "    after: [{ tool: a, expect: [{ result.text: { llm-judge: { rubric: x, threshold: 1, model: builtin/lexical } } }] }]",
            "asks a model",
        ),
    ];
    for (keys, words) in cases {
        let dir = folder(&[("s.yml", &suite(keys)), ("shop.yml", SHOP)]);
        let ran = run(dir.path(), &["validate", "s.yml"]);
        assert_eq!(ran.code, 2, "{keys}");
        assert!(ran.stderr.contains(words), "{keys}: {}", ran.stderr);
        assert!(ran.stderr.contains("s.yml:10:"), "{}", ran.stderr);
    }
}
