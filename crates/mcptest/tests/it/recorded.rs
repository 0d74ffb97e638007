//! Values in recordings: secrets, and times that are numbers.

use std::path::Path;

use serde_json::Value;

use crate::support::{folder, mcptest, ran, run};

const SUITE: &str = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - name: a
    model: builtin/scripted
    servers: [s]
    prompt: p
    script: [[{calls: [{tool: read}]}, {say: Done.}]]
    expect:
      - tool_results[0].structured_content.price: 1763258400
";

/// A server whose clock is fixed at this moment.
fn manifest(now: u64) -> String {
    format!(
        "mock_server: {{name: s, tools: [{{name: read, response: {{content: ['{{\"created_at\": {now}}}'], structured_content: {{created_at: {now}, price: 1763258400}}}}}}]}}"
    )
}

fn cassette(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("cassettes/s.yml/a.json")).unwrap();
    let mut cassette: Value = serde_json::from_str(&text).unwrap();
    cassette.as_object_mut().unwrap().remove("volatile");
    cassette
}

#[test]
fn a_time_that_is_a_number_makes_no_difference() {
    let dir = folder(&[("s.yml", SUITE), ("m.yml", &manifest(1_763_258_400))]);
    let live = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--record",
            "--no-timing",
            "--reporter",
            "json",
        ],
    );
    assert_eq!(live.code, 0, "{}{}", live.stdout, live.stderr);
    let replayed = run(
        dir.path(),
        &["run", "s.yml", "--no-timing", "--reporter", "json"],
    );
    assert_eq!(replayed.stdout, live.stdout);
    let first = cassette(dir.path());
    std::fs::write(dir.path().join("m.yml"), manifest(1_763_262_000)).unwrap();
    // The recorded model continues with what the live server returns now.
    let half = run(
        dir.path(),
        &["run", "s.yml", "--replay", "model", "--reporter", "json"],
    );
    assert_eq!(half.code, 0, "{}{}", half.stdout, half.stderr);
    let structured =
        &half.json()["tests"][0]["runs"][0]["trace"]["tool_results"][0]["structured_content"];
    assert_eq!(structured["created_at"], 1_763_262_000);
    assert_eq!(run(dir.path(), &["run", "s.yml", "--record"]).code, 0);
    assert_eq!(cassette(dir.path()), first);
    // A number that no key calls a time is a number.
    let changed = manifest(1_763_262_000).replace("price: 1763258400", "price: 1763258401");
    std::fs::write(dir.path().join("m.yml"), changed).unwrap();
    let differs = run(dir.path(), &["run", "s.yml", "--replay", "model"]);
    assert_eq!(differs.code, 2, "{}", differs.stdout);
}

#[test]
fn a_failed_expectation_on_a_secret_has_a_reason() {
    let suite = SUITE.replace(
        "tool_results[0].structured_content.price: 1763258400",
        "tool_results[0].content[0].text: 'I am s3cr3t-value'",
    );
    let manifest = "mock_server: {name: s, tools: [{name: read, response: I am s3cr3t-value}]}";
    let dir = folder(&[("s.yml", &suite), ("m.yml", manifest)]);
    let run = |args: &[&str]| {
        let mut command = mcptest(dir.path());
        ran(&command
            .env("MY_TOKEN", "s3cr3t-value")
            .args(args)
            .output()
            .unwrap())
    };
    assert_eq!(run(&["run", "s.yml"]).code, 0, "live, it holds");
    let recorded = run(&["run", "s.yml", "--record", "--no-timing"]);
    assert_eq!(recorded.code, 1);
    let words = "the values differ; a secret in it is shown as `[redacted]`: runs that are recorded or replayed are judged without secrets";
    assert!(recorded.stdout.contains(words), "{}", recorded.stdout);
    let replayed = run(&["run", "s.yml", "--no-timing"]);
    assert_eq!(replayed.stdout, recorded.stdout);
}
