//! The keys of a suite and their effects.

use serde_json::{Value, json};

use crate::support::{folder, mcptest, ran, run};

const MANIFEST: &str = "
mock_server:
  name: s
  tools:
    - {name: search, description: search the web for pages, input_schema: {type: object, required: [q], properties: {q: {type: string}}}, response: 'found ${args.q}'}
    - {name: fetch, description: fetch one page, input_schema: {type: object}, response: page}
";

fn rows(report: &Value) -> Vec<&str> {
    let tests = report["tests"].as_array().unwrap().iter();
    tests
        .flat_map(|test| test["runs"].as_array().unwrap())
        .filter_map(|run| run["name"].as_str())
        .collect()
}

#[test]
fn both_shapes_inheritance_and_who_is_a_test() {
    let suite = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - {name: searcher, model: builtin/lexical, server: s, prompt: search for cats, runs: 2}
  - name: judged itself
    model: builtin/lexical
    servers: s
    user_prompt: search for dogs
    expect: [{tool_names: {exact: [search]}}]
tests:
  - name: searches
    type: agent
    agent: searcher
    expect: [{'tool_calls[0].name': search}]
  - name: searches otherwise
    agent: searcher
    runs: 0
    prompt: fetch the page
    expect: [{'tool_calls[0].name': fetch}]
";
    let dir = folder(&[("mcptest.yaml", suite), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        rows(&ran.json()),
        [
            "judged itself",
            "searches #1",
            "searches #2",
            "searches otherwise"
        ]
    );
}

#[test]
fn each_model_has_its_own_row() {
    let suite = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - name: pick
    models: [builtin/lexical, builtin/scripted]
    servers: [s]
    prompt: search for cats
    runs: 2
    script: [[{calls: [{tool: search, args: {q: cats}}]}, {say: ok}]]
    equal_function_sets: {classes: [{name: c, members: [search]}]}
";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let report = run(
        dir.path(),
        &["run", "--config", "s.yml", "--reporter", "json"],
    )
    .json();
    assert_eq!(
        rows(&report),
        [
            "pick [builtin/lexical] #1",
            "pick [builtin/lexical] #2",
            "pick [builtin/scripted] #1",
            "pick [builtin/scripted] #2"
        ]
    );
    assert_eq!(report["tests"].as_array().unwrap().len(), 2);
}

#[test]
fn imports_and_variables() {
    let main = "
imports: [shared/servers.yml]
variables: {animal: cats, wanted: 2, manifest: m.yml}
agents:
  - {name: a, model: builtin/lexical, servers: [s], prompt: 'search for \"${animal}\"', runs: '${wanted}', expect: [{'tool_calls[0].args': {exact: {q: cats}}}]}
";
    let servers = "
variables: {manifest: wrong.yml}
servers: {s: {command: [mcptest, mock, --tools-from, '${CONFIG_DIR}/../${manifest}'], env: {N: 1}}}
";
    let dir = folder(&[("s.yml", main), ("m.yml", MANIFEST)]);
    std::fs::create_dir(dir.path().join("shared")).unwrap();
    std::fs::write(dir.path().join("shared/servers.yml"), servers).unwrap();
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(rows(&ran.json()), ["a #1", "a #2"]);
}

#[test]
fn folders_filters_and_tags() {
    let one = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\ntools: [{name: alpha, server: s, tool: fetch, tags: [quick]}, {name: beta, server: s, tool: fetch}]\n";
    let two = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\ntools: [{name: gamma, server: s, tool: fetch, tags: [quick]}]\n";
    let dir = folder(&[("1.yml", one), ("2.yaml", two), ("m.yml", MANIFEST)]);
    let names = |args: &[&str]| -> Vec<String> {
        let mut all = vec!["run", ".", "--reporter", "json"];
        all.extend(args);
        let report = run(dir.path(), &all).json();
        rows(&report).iter().map(ToString::to_string).collect()
    };
    assert_eq!(names(&[]), ["alpha", "beta", "gamma"]);
    assert_eq!(
        names(&["--filter", "a", "--tag", "quick"]),
        ["alpha", "gamma"]
    );
    assert_eq!(names(&["--filter", "beta"]), ["beta"]);
    let none = run(dir.path(), &["run", ".", "--filter", "zzz"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no tests to run"), "{}", none.stderr);
}

#[test]
fn what_a_model_does_wrong_is_one_row_and_touches_no_other() {
    let suite = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}, t: {command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - name: odd
    model: builtin/scripted
    servers: [s, t]
    prompt: p
    max_turns: 3
    script:
      - - {calls: [{tool: invented, args: {}}, {tool: s.search, args: '{broken'}, {tool: t.search, args: {}}, {tool: t__fetch}]}
        - {calls: [{tool: s.search, args: {q: x}, caller: {type: code_execution_20250825, tool_id: srv}}]}
        - {calls: [{tool: s.fetch}]}
    expect:
      - tool_calls[*].name: {exact: [invented, search, search, fetch, search, fetch]}
      - tool_calls[*].server: {exact: [null, s, t, t, s, s]}
      - tool_calls[1].args: '{broken'
      - tool_calls[4].caller.type: {regex: ^code_execution}
      - tool_results[*].is_error: {exact: [true, true, true, false, false, false]}
      - tool_calls[-1].turn: 3
      - final_response: {exists: false}
  - {name: fine, model: builtin/lexical, servers: [s, t], prompt: search for cats, expect: [{tool_calls: {length: 1}}]}
";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn direct_calls_see_results_and_errors() {
    let suite = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
tools:
  - {name: ok, server: s, tool: search, args: {q: x}, expect: [{result.text: found x}, {result.is_error: false}, {'result.content[*].type': {every: {exact: text}}}, {error: null}]}
  - {name: unknown tool, server: s, tool: nope, expect: [{error.code: -32602}, {error.message: {contains: nope}}, {result: null}]}
  - {name: bounded, server: s, tool: fetch, expect: {assertions: [{result.text: page}], max_duration_ms: 60000}}
  - {name: too slow, server: s, tool: fetch, expect: {max_duration_ms: 0}}
  - {name: by default no error, server: s, tool: nope}
";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let report = run(dir.path(), &["run", "s.yml", "--reporter", "json"]).json();
    let verdicts: Vec<&str> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|test| test["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["pass", "pass", "pass", "fail", "fail"]);
    assert_eq!(
        report["tests"][3]["runs"][0]["assertions"][2]["target"],
        "duration_ms"
    );
    assert_eq!(
        report["tests"][4]["runs"][0]["assertions"][0],
        json!({"target": "error", "matcher": {"exact": null}, "actual": {"code": -32602, "message": "Unknown tool: nope"}, "passed": false, "default": true, "reason": "server `s` lists no tool `nope`"})
    );
}

#[test]
fn a_test_that_expects_nothing_has_no_evidence() {
    let suite = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\nagents: [{name: a, model: builtin/lexical, servers: [s], prompt: search}]\n";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stdout.contains("the test expects nothing"),
        "{}",
        ran.stdout
    );
}

#[test]
fn runs_share_a_server_or_have_their_own() {
    // The server writes a line per start.
    let suite = |isolation: &str| {
        format!(
            "servers: {{s: {{command: [bash, -c, 'echo start >> starts; exec \"$0\" mock --tools-from m.yml', '{}'], isolation: {isolation}}}}}
agents: [{{name: a, model: builtin/lexical, servers: [s], prompt: search for cats, runs: 4, expect: [{{tool_calls: {{length: 1}}}}]}}]\n",
            env!("CARGO_BIN_EXE_mcptest")
        )
    };
    for (isolation, starts) in [("shared", 1), ("run", 4)] {
        let dir = folder(&[("s.yml", &suite(isolation)), ("m.yml", MANIFEST)]);
        let ran = run(dir.path(), &["run", "s.yml"]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let seen = std::fs::read_to_string(dir.path().join("starts"))
            .unwrap()
            .lines()
            .count();
        assert_eq!(seen, starts, "{isolation}");
    }
}

#[test]
fn reports_go_where_they_are_sent() {
    let suite = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\ntools: [{name: a, server: s, tool: fetch}]\n";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let ran = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--reporter",
            "pretty",
            "--reporter",
            "json=r.json",
        ],
    );
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("1 test: 1 passed"));
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(report["schema_version"], 1);
    assert!(report["timing"]["runs"][0]["duration_ms"].is_u64());
    let unwritable = run(
        dir.path(),
        &["run", "s.yml", "--reporter", "json=no/such/folder/r.json"],
    );
    assert_eq!(unwritable.code, 2);
    assert!(
        unwritable
            .stderr
            .contains("cannot write `no/such/folder/r.json`"),
        "{}",
        unwritable.stderr
    );
}

#[test]
fn colour_only_where_it_is_welcome() {
    let suite = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\ntools: [{name: a, server: s, tool: fetch}]\n";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    assert!(!run(dir.path(), &["run", "s.yml"]).stdout.contains('\u{1b}'));
    assert!(
        run(dir.path(), &["run", "s.yml", "--color", "always"])
            .stdout
            .contains('\u{1b}')
    );
    let never = mcptest(dir.path())
        .args(["run", "s.yml", "--color", "never"])
        .output()
        .unwrap();
    assert!(!ran(&never).stdout.contains('\u{1b}'));
}

#[test]
fn completions_and_schemas_are_printed() {
    let dir = folder(&[]);
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            run(dir.path(), &["completions", shell])
                .stdout
                .contains("mcptest"),
            "{shell}"
        );
    }
    for what in ["suite", "mock", "report", "comparison", "trend", "trace"] {
        let schema = run(dir.path(), &["schema", what]).json();
        assert!(jsonschema::meta::is_valid(&schema), "{what}");
    }
}
