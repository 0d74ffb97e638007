//! `list`, `call` and `catalog`: servers by name, from suites, configurations, addresses and
//! command lines.

use serde_json::json;

use crate::init::NOTES;
use crate::support::{HttpMock, folder, mcptest, ran, root, run};

const SUITE: &str = "servers:\n  notes: {command: [mcptest, mock, --tools-from, server.yml]}\n  broken: {command: [sh, -c, 'echo KEY missing >&2; exit 1']}\n";
const CONFIG: &str = r#"{"mcpServers": {"notes": {"command": "mcptest", "args": ["mock", "--tools-from", "server.yml"]}}}"#;

fn notes() -> tempfile::TempDir {
    folder(&[
        ("server.yml", NOTES),
        ("mcptest.yml", SUITE),
        ("clients.json", CONFIG),
    ])
}

const LISTED: &str = "notes  notes 1.2, speaks 2026-07-28\n  tools (4)\n    list_notes()       List the titles of all notes\n    read_note(title)   Read the text of the note with this title\n    write_note(title)  Write a note\n    purge()            Remove everything\n";

#[test]
fn servers_are_listed_from_every_source() {
    let dir = notes();
    let server = HttpMock::start(dir.path(), "server.yml");
    for args in [
        vec!["list", "--server", "notes"],
        vec!["list", "mcptest.yml", "--server", "notes"],
        vec!["list", "clients.json"],
        vec!["list", "--from", "clients.json"],
        vec!["list", "--suite", "mcptest.yml", "--server", "notes"],
    ] {
        let listed = run(dir.path(), &args);
        assert_eq!(
            (listed.code, listed.stdout.as_str()),
            (0, LISTED),
            "{args:?}: {}",
            listed.stderr
        );
    }
    let address = run(dir.path(), &["list", "--url", &server.url]);
    assert!(
        address.stdout.ends_with(&LISTED["notes".len()..]),
        "{}",
        address.stdout
    );
    let command = run(
        dir.path(),
        &[
            "list",
            "--",
            "mcptest",
            "mock",
            "--tools-from",
            "server.yml",
        ],
    );
    assert!(
        command.stdout.starts_with("mcptest  notes 1.2"),
        "{}",
        command.stdout
    );
    let file = run(dir.path(), &["list", "--tools-from", "server.yml"]);
    assert!(file.stdout.contains("read_note(title)"), "{}", file.stdout);
}

#[test]
fn a_server_that_does_not_start_is_listed_with_its_reason() {
    let dir = notes();
    let listed = run(dir.path(), &["list"]);
    assert_eq!(listed.code, 2);
    assert!(
        listed.stdout.contains("broken\n  does not start:")
            && listed.stdout.contains("KEY missing"),
        "{}",
        listed.stdout
    );
    assert!(listed.stdout.contains(LISTED), "{}", listed.stdout);
    let machine = run(dir.path(), &["list", "--format", "json"]).json();
    assert_eq!(machine["servers"][0]["name"], "broken");
    assert_eq!(machine["servers"][0]["error"]["kind"], "server_crash");
    assert_eq!(
        machine["servers"][1]["tools"][1]["inputSchema"]["required"],
        json!(["title"])
    );
    assert_eq!(machine["servers"][1]["error"], json!(null));
}

#[test]
fn a_list_that_a_server_does_not_give_is_an_error() {
    let server = r#"while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"the index is broken"}}' ;;
    *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"unknown"}}' ;;
  esac
done"#;
    let dir = tempfile::tempdir().unwrap();
    let listed = run(dir.path(), &["list", "--", "sh", "-c", server]);
    assert_eq!(listed.code, 2, "{}", listed.stdout);
    assert!(
        listed.stdout.contains("error: `tools` is advertised")
            && listed.stdout.contains("the index is broken"),
        "{}",
        listed.stdout
    );
    assert!(
        !listed.stdout.contains("lists nothing"),
        "{}",
        listed.stdout
    );
    let machine = run(
        dir.path(),
        &["list", "--format", "json", "--", "sh", "-c", server],
    );
    assert_eq!(machine.code, 2);
    let problem = &machine.json()["servers"][0]["problems"][0];
    assert_eq!(problem["kind"], "capability_not_answered");
}

#[test]
fn a_folder_without_a_suite_uses_its_configuration() {
    let dir = folder(&[("server.yml", NOTES), (".mcp.json", CONFIG)]);
    for args in [
        vec!["list"],
        vec!["doctor"],
        vec!["doctor", "--server", "notes"],
        vec!["catalog", "show", "notes"],
        vec!["catalog", "show"],
        vec!["call", "notes", "list_notes"],
    ] {
        let found = run(dir.path(), &args);
        assert_eq!(found.code, 0, "{args:?}: {}", found.stderr);
    }
    let empty = folder(&[]);
    for args in [
        vec!["list"],
        vec!["doctor"],
        vec!["call", "x", "y"],
        vec!["catalog", "save"],
    ] {
        let found = run(empty.path(), &args);
        assert_eq!(found.code, 2, "{args:?}");
        assert!(
            found.stderr.contains("no configuration of an MCP client"),
            "{args:?}: {}",
            found.stderr
        );
    }
}

#[test]
fn a_tool_is_called_with_typed_arguments() {
    let server = "mock_server:\n  name: echo\n  tools:\n    - name: echo\n      input_schema: { type: object, properties: { n: { type: integer }, tags: { type: array, items: { type: string } }, o: { type: object, properties: { flag: { type: boolean } } } } }\n      response: { structured_content: { args: \"${args}\" } }\n";
    let dir = folder(&[("server.yml", server), ("mcptest.yml", SUITE)]);
    let called = run(
        dir.path(),
        &[
            "call",
            "notes",
            "echo",
            "n=5",
            "tags=a",
            "tags=b",
            "o.flag=true",
            "x:=[1]",
            "--json",
        ],
    );
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert_eq!(
        called.json()["structuredContent"]["args"],
        json!({"n": 5, "tags": ["a", "b"], "o": {"flag": true}, "x": [1]})
    );
    assert!(
        called.stderr.contains("`echo` has no argument `x`"),
        "{}",
        called.stderr
    );
    let based = run(
        dir.path(),
        &[
            "call",
            "notes",
            "echo",
            "--args",
            "{\"n\": 1, \"tags\": []}",
            "n=2",
            "--format",
            "json",
        ],
    );
    assert_eq!(
        based.json()["structuredContent"]["args"],
        json!({"n": 2, "tags": []})
    );
    for (args, words) in [
        (
            vec!["call", "notes", "echo", "n=many"],
            "`n=many`: expected an integer",
        ),
        (
            vec!["call", "notes", "echo", "what"],
            "expected `name=value`",
        ),
        (
            vec!["call", "notes", "echo", "--args", "[1]"],
            "takes a JSON object",
        ),
        (
            vec!["call", "notes", "echo", "--args", "{"],
            "not valid JSON",
        ),
        (vec!["call", "notes"], "no tool is named"),
        (vec!["call", "nots", "echo"], "did you mean `notes`?"),
        (vec!["call", "broken", "echo"], "KEY missing"),
    ] {
        let refused = run(dir.path(), &args);
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stdout);
        assert!(
            refused.stderr.contains(words),
            "{args:?}: {}",
            refused.stderr
        );
    }
}

#[test]
fn an_error_of_the_server_is_exit_code_1() {
    let dir = notes();
    let server = HttpMock::start(dir.path(), "server.yml");
    let good = run(dir.path(), &["call", "notes", "read_note", "title=milk"]);
    assert_eq!(
        (good.code, good.stdout.as_str()),
        (0, "Buy milk.\n"),
        "{}",
        good.stderr
    );
    for args in [
        vec!["call", "notes", "read_note", "title=none"],
        vec!["call", "read_note", "title=none", "--url", &server.url],
        vec!["call", &server.url, "read_note", "title=none"],
        vec![
            "call",
            "notes",
            "read_note",
            "title=none",
            "--from",
            "clients.json",
        ],
        vec![
            "call",
            "read_note",
            "title=none",
            "--",
            "mcptest",
            "mock",
            "--tools-from",
            "server.yml",
        ],
    ] {
        let failed = run(dir.path(), &args);
        assert_eq!(failed.code, 1, "{args:?}: {}", failed.stderr);
        assert_eq!(failed.stdout, "There is no note none.\n", "{args:?}");
    }
    let refused = run(dir.path(), &["call", "notes", "read_notes", "--json"]);
    assert_eq!(refused.code, 1);
    assert_eq!(refused.json()["error"]["code"], -32602);
    assert!(
        refused
            .stderr
            .contains("lists no tool `read_notes`; did you mean `read_note`?"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_saved_catalog_is_stable_and_accepted_everywhere() {
    let dir = notes();
    let save = |file: &str| {
        let saved = run(dir.path(), &["catalog", "save", "notes", "--output", file]);
        assert_eq!(saved.code, 0, "{}", saved.stderr);
        std::fs::read_to_string(dir.path().join(file)).unwrap()
    };
    let first = save("a.json");
    assert_eq!(first, save("b.json"));
    let from_config = run(dir.path(), &["catalog", "save", "--from", "clients.json"]);
    assert_eq!(from_config.stdout, first);
    let bench = root().join("examples/tool-description-bench/bench.yml");
    std::fs::copy(bench, dir.path().join("bench.yml")).unwrap();
    for (args, code) in [
        (vec!["doctor", "--tools-from", "a.json"], 0),
        (
            vec!["diff", "a.json", "server:notes", "--suite", "mcptest.yml"],
            0,
        ),
        (
            vec!["diff", "a.json", "server:notes", "--from", "clients.json"],
            0,
        ),
        (vec!["catalog", "show", "a.json"], 0),
        (vec!["list", "--tools-from", "a.json"], 0),
        (
            vec![
                "call",
                "list_notes",
                "--",
                "mcptest",
                "mock",
                "--tools-from",
                "a.json",
            ],
            0,
        ),
    ] {
        let used = run(dir.path(), &args);
        assert_eq!(used.code, code, "{args:?}: {}{}", used.stdout, used.stderr);
    }
    let shown = run(dir.path(), &["catalog", "show", "a.json"]);
    assert!(shown.stdout.contains("  read_note(title)\n    Read the text of the note with this title.\n    title: string\n"), "{}", shown.stdout);
    // The mock has the name of the server, not that of the file.
    let imitated = run(
        dir.path(),
        &["list", "--", "mcptest", "mock", "--tools-from", "a.json"],
    );
    assert!(
        imitated.stdout.starts_with("mcptest  notes 1.2,"),
        "{}",
        imitated.stdout
    );
    for args in [
        vec!["catalog", "save", "broken", "--output", "c.json"],
        vec!["catalog", "show", "missing.json"],
        vec!["catalog", "save", "--output", "c.json"],
    ] {
        let refused = run(dir.path(), &args);
        assert_eq!(refused.code, 2, "{args:?}");
        assert!(!dir.path().join("c.json").exists());
    }
}

#[test]
fn a_saved_catalog_has_no_secrets() {
    let server = "mock_server:\n  name: leaky\n  instructions: \"Use the key ${args.x}.\"\n  tools:\n    - { name: get, description: The token is s3cr3t-from-the-environment. }\n";
    let dir = folder(&[("server.yml", server), ("mcptest.yml", SUITE)]);
    let saved = mcptest(dir.path())
        .args(["catalog", "save", "notes", "--output", "a.json"])
        .env("MY_TOKEN", "s3cr3t-from-the-environment")
        .output()
        .unwrap();
    assert_eq!(ran(&saved).code, 0, "{}", ran(&saved).stderr);
    let text = std::fs::read_to_string(dir.path().join("a.json")).unwrap();
    assert!(
        text.contains("[redacted]") && !text.contains("s3cr3t"),
        "{text}"
    );
}
