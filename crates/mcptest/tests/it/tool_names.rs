//! Tools that a suite names and no server offers: mistakes in the suite, not failures of the agent.

use serde_json::json;

use crate::support::{Ran, folder, run};

const MANIFEST: &str = "mock_server: {name: s, tools: [{name: search, response: {content: [x]}}, {name: order, response: {content: [y]}}]}";

const MOCK: &str = "mcptest";

/// The mock server behind another program: its tools are known only when it runs.
fn live() -> String {
    format!("env, {}", env!("CARGO_BIN_EXE_mcptest"))
}

/// A suite whose server is started with this program, and whose only test has these blocks.
fn suite(program: &str, blocks: &str) -> String {
    format!(
        "servers:
  s: {{command: [{program}, mock, --tools-from, m.yml]}}
agents:
  - name: a
    model: builtin/scripted
    servers: [s]
    prompt: p
    script: [[{{calls: [{{tool: search}}]}}, {{say: Done.}}]]
{blocks}"
    )
}

const TYPO: &str =
    "    tool_selection:\n      expected_tool: serch\n      min_selection_rate: 1.0\n";

fn has(ran: &Ran, part: &str) {
    let (out, err) = (&ran.stdout, &ran.stderr);
    assert!(
        out.contains(part) || err.contains(part),
        "no `{part}` in:\n{out}\n{err}"
    );
}

const MESSAGE: &str = "`tool_selection.expected_tool` names the tool `serch`, which";

#[test]
fn a_manifest_shows_a_wrong_name_before_anything_is_started() {
    let suite = suite(MOCK, TYPO);
    let dir = folder(&[("s.yml", &suite), ("m.yml", MANIFEST)]);
    let valid = run(dir.path(), &["validate", "s.yml"]);
    assert_eq!(valid.code, 0, "{}", valid.stderr);
    has(&valid, MESSAGE);
    has(&valid, "did you mean `search`?");
    has(&valid, "s.yml:10:22");
    has(&valid, "offered: `search`, `order`");
    // The same for `run`, which then judges the agent as before.
    let ran = run(dir.path(), &["run", "s.yml"]);
    has(&ran, MESSAGE);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    for command in ["validate", "run"] {
        let denied = run(dir.path(), &[command, "s.yml", "--deny-warnings"]);
        assert_eq!(denied.code, 2, "{command}: {}", denied.stderr);
        has(&denied, &format!("error: {MESSAGE}"));
    }
    // A manifest is also recognized with other flags of the mock server.
    let slow = suite.replace("m.yml]", "m.yml, --fault, slow]");
    std::fs::write(dir.path().join("s.yml"), slow).unwrap();
    has(&run(dir.path(), &["validate", "s.yml"]), MESSAGE);
    // A saved catalog is a source as well.
    let saved = json!({"tools": [{"name": "search"}, {"name": "order"}]}).to_string();
    std::fs::write(dir.path().join("m.yml"), saved).unwrap();
    has(&run(dir.path(), &["validate", "s.yml"]), MESSAGE);
    // Where the catalog is not known, nothing is said.
    std::fs::remove_file(dir.path().join("m.yml")).unwrap();
    let unknown = run(dir.path(), &["validate", "s.yml"]);
    assert!(
        !unknown.stderr.contains("names the tool"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn every_block_that_names_tools_is_checked() {
    let blocks = "    inject: [f, x, y]
    equal_function_sets: {classes: [{name: c, members: [search, n1]}]}
    tool_selection: {expected_tool: n2, min_selection_rate: 1.0}
    distractors: {count: 1, source: {from: near_duplicate, of: [n3]}, correct: [n4]}
    trajectory: {calls: [{name: n5}, {name: search, server: n6}]}
    trajectory_axes: {dependencies: [{producer: n7, consumer: n8}], order: [{first: n9, second: n10}]}
    golden_path: {calls: [search, n11]}
    tool_edges: {allowed: [n12], restricted: [n13], delegation: [{from: n14, to: n15}]}
    recovery: {max_detection_ms: 3000}
    token_efficiency: {classes: [{name: c, members: [order, n17]}]}
    narrative: {mutating_tools: [n18, order], readonly_tools: [search, n19]}
    injection: {}
faults:
  - {name: f, target: {tool: n16}, kind: hang}
attacks:
  - {name: x, target: {tool: search}, text: hi, goal: {calls: [{tool: order}, {tool: n20}]}}
  - {name: y, place: tool, target: {tool: leak}, text: hi, goal: {call: {tool: s.leak}}}
";
    let dir = folder(&[("s.yml", &suite(MOCK, blocks)), ("m.yml", MANIFEST)]);
    let valid = run(dir.path(), &["validate", "s.yml", "--format", "json"]);
    let report = valid.json();
    let messages: Vec<&str> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "warning" && problem["line"].is_u64())
        .filter_map(|problem| problem["message"].as_str())
        .filter(|message| message.contains("names the tool"))
        .collect();
    for number in 1..=20 {
        let name = if number == 6 {
            "`n6.search`".to_owned()
        } else {
            format!("`n{number}`")
        };
        let found = messages.iter().filter(|message| message.contains(&name));
        assert_eq!(found.count(), 1, "{name}: {messages:#?}");
    }
    assert_eq!(messages.len(), 20, "{messages:#?}");
    for key in [
        "`equal_function_sets.classes[0].members[1]`",
        "`tool_edges.delegation[0].to`",
        "`faults[0].target.tool`",
    ] {
        assert!(
            messages.iter().any(|message| message.contains(key)),
            "{key}"
        );
    }
}

#[test]
fn a_live_server_that_lacks_the_tool_is_an_error_before_the_first_request() {
    let dir = folder(&[("s.yml", &suite(&live(), TYPO)), ("m.yml", MANIFEST)]);
    let valid = run(dir.path(), &["validate", "s.yml"]);
    assert!(!valid.stderr.contains("names the tool"), "{}", valid.stderr);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let test = &ran.json()["tests"][0];
    assert_eq!(test["verdict"], "error");
    let trace = &test["runs"][0]["trace"];
    assert_eq!(trace["error"]["kind"], "suite");
    let message = trace["error"]["message"].as_str().unwrap();
    for part in [MESSAGE, "did you mean `search`?", "`order`", "s.yml:10:22"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(trace["tool_calls"].as_array().is_none_or(Vec::is_empty));
    // The mistake is not recorded: it would outlive its correction.
    let recorded = run(dir.path(), &["run", "s.yml", "--record"]);
    assert_eq!(recorded.code, 2, "{}", recorded.stdout);
    assert!(!dir.path().join("cassettes").exists());
}

#[test]
fn a_restricted_tool_that_does_not_exist_is_only_a_warning() {
    let blocks = "    tool_edges: {restricted: [delete_all]}\n";
    let dir = folder(&[("s.yml", &suite(&live(), blocks)), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    has(
        &ran,
        "`tool_edges.restricted[0]` names the tool `delete_all`",
    );
}

#[test]
fn names_of_tools_that_are_offered_raise_nothing() {
    for program in [MOCK, &live()] {
        for name in ["search", "s.search"] {
            let blocks = TYPO.replace("serch", name);
            let dir = folder(&[("s.yml", &suite(program, &blocks)), ("m.yml", MANIFEST)]);
            let ran = run(dir.path(), &["run", "s.yml"]);
            assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
            assert!(!ran.stderr.contains("names the tool"), "{}", ran.stderr);
        }
    }
    // A tool whose own name has a dot.
    let blocks = TYPO.replace("serch", "web.find");
    let suite_text = suite(&live(), &blocks).replace("tool: search", "tool: web.find");
    let manifest = MANIFEST.replace("name: search", "name: web.find");
    let dir = folder(&[("s.yml", &suite_text), ("m.yml", &manifest)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    // An injected distractor.
    let blocks = "    distractors: {count: 4, source: {from: near_duplicate, of: [search]}, correct: [search], seed: 1}\n";
    let with_distractors = suite(&live(), blocks);
    let dir = folder(&[("s.yml", &with_distractors), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let trace = &ran.json()["tests"][0]["runs"][0]["trace"];
    let fake = trace["distractors"][0].as_str().unwrap().to_owned();
    let blocks = format!(
        "{blocks}    tool_edges: {{restricted: [{fake}], delegation: [{{from: search, to: {fake}}}]}}\n"
    );
    std::fs::write(dir.path().join("s.yml"), suite(&live(), &blocks)).unwrap();
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert!(!ran.stderr.contains("names the tool"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("names the tool"), "{}", ran.stdout);
}

#[test]
fn a_bare_name_may_be_a_tool_of_the_server_that_is_not_known() {
    let two = |name: &str| {
        let blocks = TYPO.replace("serch", name);
        suite(MOCK, &blocks)
            .replace("servers: [s]", "servers: [s, t]")
            .replace(
                "agents:",
                &format!(
                    "  t: {{command: [{}, mock, --tools-from, m.yml]}}\nagents:",
                    live()
                ),
            )
    };
    let dir = folder(&[("s.yml", &two("serch")), ("m.yml", MANIFEST)]);
    let valid = run(dir.path(), &["validate", "s.yml"]);
    assert!(!valid.stderr.contains("names the tool"), "{}", valid.stderr);
    std::fs::write(dir.path().join("s.yml"), two("s.serch")).unwrap();
    let valid = run(dir.path(), &["validate", "s.yml"]);
    has(&valid, "names the tool `s.serch`");
    has(&valid, "did you mean `s.search`?");
}

#[test]
fn a_cassette_shows_a_wrong_name_without_a_server() {
    let right = suite(&live(), &TYPO.replace("serch", "search"));
    let dir = folder(&[("s.yml", &right), ("m.yml", MANIFEST)]);
    let recorded = run(dir.path(), &["run", "s.yml", "--record"]);
    assert_eq!(recorded.code, 0, "{}{}", recorded.stdout, recorded.stderr);
    std::fs::write(dir.path().join("s.yml"), suite(&live(), TYPO)).unwrap();
    std::fs::remove_file(dir.path().join("m.yml")).unwrap();
    let valid = run(dir.path(), &["validate", "s.yml"]);
    has(&valid, MESSAGE);
    has(&valid, "did you mean `search`?");
    let replayed = run(dir.path(), &["run", "s.yml"]);
    has(&replayed, MESSAGE);
    assert_eq!(replayed.code, 1, "{}", replayed.stdout);
}

#[test]
fn the_catalog_of_a_trace_shows_a_wrong_name() {
    let blocks = "agents:\n  - name: a\n    tool_selection: {expected_tool: serch, min_selection_rate: 1.0}\n";
    let tools = json!([{"server": "s", "name": "search"}, {"server": "s", "name": "order"}]);
    let call = json!([{"server": "s", "name": "search"}]);
    let trace = json!({"test": "a", "tool_calls": call, "catalog": tools});
    let bare = json!({"test": "a", "tool_calls": call});
    let score = |text: &str, traces: &[&serde_json::Value]| {
        let lines: Vec<String> = traces.iter().map(ToString::to_string).collect();
        let dir = folder(&[("s.yml", text), ("t.jsonl", &lines.join("\n"))]);
        run(dir.path(), &["score", "s.yml", "--trace", "t.jsonl"])
    };
    let scored = score(blocks, &[&trace, &trace]);
    has(
        &scored,
        "`tool_selection.expected_tool` names the tool `serch`, which no catalog",
    );
    has(&scored, "did you mean `search`?");
    assert_eq!(
        scored.stderr.matches("names the tool").count(),
        1,
        "{}",
        scored.stderr
    );
    assert_eq!(scored.code, 1, "{}", scored.stdout);
    let dir = folder(&[("s.yml", blocks), ("t.jsonl", &trace.to_string())]);
    let args = ["score", "s.yml", "--trace", "t.jsonl", "--deny-warnings"];
    assert_eq!(run(dir.path(), &args).code, 2);
    // A trace without a catalog may have been offered the tool.
    for traces in [&[&bare, &bare], &[&trace, &bare], &[&bare, &trace]] {
        let scored = score(blocks, traces);
        assert!(
            !scored.stderr.contains("names the tool"),
            "{}",
            scored.stderr
        );
    }
    // A name that is right.
    for right in ["search", "s.search"] {
        let scored = score(&blocks.replace("serch", right), &[&trace]);
        assert_eq!(scored.code, 0, "{}", scored.stdout);
        assert!(
            !scored.stderr.contains("names the tool"),
            "{}",
            scored.stderr
        );
    }
}
