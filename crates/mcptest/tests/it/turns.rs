//! `turns:`: further messages of the user, live, recorded, replayed and scored.

use crate::support::{folder, root, run};

const SUITE: &str = r#"
servers:
  issues: { command: [mcptest, mock, --tools-from, issues.yml] }
agents:
  - name: confirms
    model: builtin/scripted
    servers: [issues]
    prompt: Close it.
    runs: 2
    turns:
      - { say: "Yes, close it.", when: { final_response: { contains: "?" } } }
      - { say: Thanks. }
    script:
      - - { say: "Shall I?" }
        - { calls: [{ tool: close_issue, args: { number: 17 } }] }
        - { say: Done. }
        - { say: Bye. }
      - - { say: Done. }
    expect:
      - tool_calls: { length: { "<=": 1 } }
"#;

fn manifest() -> String {
    std::fs::read_to_string(root().join("examples/servers/issues.yml")).unwrap()
}

#[test]
fn a_message_that_is_not_reached_fails_the_run_live_replayed_and_scored() {
    let dir = folder(&[("s.yml", SUITE), ("issues.yml", &manifest())]);
    let live = run(
        dir.path(),
        &["run", "s.yml", "--record", "--reporter", "json"],
    );
    assert_eq!(live.code, 1, "{}", live.stderr);
    let runs = live.json()["tests"][0]["runs"].clone();
    assert_eq!(runs[0]["verdict"], "pass");
    let turns = runs[0]["trace"]["conversation"]["turns"]
        .as_array()
        .unwrap()
        .clone();
    let said: Vec<&str> = turns
        .iter()
        .filter(|turn| turn["role"] == "user")
        .map(|turn| turn["content"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["Close it.", "Yes, close it.", "Thanks."]);
    assert_eq!(runs[0]["trace"]["final_response"], "Bye.");
    assert_eq!(runs[1]["verdict"], "fail");
    let failed = &runs[1]["assertions"][0];
    assert_eq!(failed["target"], "turns[0].when.final_response");
    assert_eq!(failed["actual"], "Done.");
    assert_eq!(runs[1]["trace"]["unsaid_turn"]["turn"], 0);

    let replayed = run(
        dir.path(),
        &["run", "s.yml", "--replay-only", "--reporter", "json"],
    );
    assert_eq!(replayed.json()["tests"][0]["runs"], runs);
    let cassette = "cassettes/s.yml/confirms.json";
    let scored = run(
        dir.path(),
        &["score", "s.yml", "--trace", cassette, "--reporter", "json"],
    );
    assert_eq!(scored.code, 1, "{}", scored.stderr);
    let scored = scored.json()["tests"][0]["runs"].clone();
    for (scored, live) in scored
        .as_array()
        .unwrap()
        .iter()
        .zip(runs.as_array().unwrap())
    {
        assert_eq!(scored["assertions"], live["assertions"]);
        assert_eq!(scored["verdict"], live["verdict"]);
    }

    // Another condition is another test: the recording no longer matches.
    let changed = SUITE.replace("contains: \"?\"", "contains: \"!\"");
    std::fs::write(dir.path().join("s.yml"), changed).unwrap();
    let stale = run(dir.path(), &["run", "s.yml", "--replay-only"]);
    assert_eq!(stale.code, 2, "{}", stale.stdout);
}

#[test]
fn conditions_are_checked_at_load() {
    let suite = SUITE.replace(
        "final_response: { contains: \"?\" }",
        "final_respons: { contains: \"?\" }",
    );
    let dir = folder(&[("s.yml", &suite), ("issues.yml", &manifest())]);
    let ran = run(dir.path(), &["validate", "s.yml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("s.yml:11:"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("did you mean `final_response`?"),
        "{}",
        ran.stderr
    );

    // The condition of an agent is reported once, at its place, whatever refers to it.
    let suite = r#"
servers: { issues: { command: [mcptest, mock, --tools-from, issues.yml] } }
agents:
  - name: a
    model: builtin/lexical
    servers: [issues]
    prompt: List the issues.
    turns: [{ say: x, when: { final_response: { llm-judge: { rubric: x, threshold: 1, model: builtin/lexical } } } }]
tests:
  - { name: one, agent: a, expect: [{ final_response: x }] }
  - { name: two, agent: a, expect: [{ final_response: x }] }
"#;
    let dir = folder(&[("s.yml", suite), ("issues.yml", &manifest())]);
    let ran = run(dir.path(), &["validate", "s.yml"]);
    assert_eq!(ran.code, 2);
    let count = ran.stderr.matches("asks a model").count();
    assert_eq!(count, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("s.yml:8:"), "{}", ran.stderr);
}
