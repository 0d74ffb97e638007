//! `mcptest doctor` and `tool_quality:` against servers that misbehave.

use serde_json::json;

use crate::support::{folder, mcptest, ran, run};

/// Chatters on standard output, advertises prompts and does not answer them, and lists entries that
/// are not tools.
const SLOPPY: &str = r#"
echo 'Server is starting'
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *server/discover*|*prompts/list*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
    *'"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"sloppy","version":"0.1"}}}\n' "$id" ;;
    *tools/list*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":["x",{"name":"a","annotations":{"readOnlyHint":null}},{"description":7}]}}\n' "$id" ;;
    *resources/list*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"resources":[]}}\n' "$id" ;;
    *resources/templates/list*)
      [ "$1" = ignores-templates ] ||
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Unknown"}}\n' "$id" ;;
  esac
done
"#;

#[test]
fn the_faults_of_a_sloppy_server_are_reported() {
    let dir = folder(&[("sloppy.sh", SLOPPY)]);
    let told = run(
        dir.path(),
        &[
            "doctor",
            "--lint-descriptions",
            "--format",
            "json",
            "--",
            "sh",
            "sloppy.sh",
        ],
    );
    assert_eq!(told.code, 1, "{}\n{}", told.stdout, told.stderr);
    let report = told.json();
    let server = &report["servers"][0];
    assert_eq!(server["startable"], true);
    assert_eq!(server["revision"], "2025-06-18");
    assert_eq!(server["server_info"]["name"], "sloppy");
    let kinds: Vec<&str> = server["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"capability_not_answered"), "{kinds:?}");
    assert!(
        server["problems"]
            .to_string()
            .contains("Server is starting")
    );
    let answered = |name: &str| {
        let all = server["capabilities"].as_array().unwrap();
        all.iter()
            .find(|capability| capability["name"] == name)
            .unwrap()["answered"]
            .clone()
    };
    assert_eq!(
        (answered("prompts"), answered("resources")),
        (json!(false), json!(true))
    );
    assert!(server["timing"]["handshake_ms"].is_u64() && server["timing"]["list_ms"].is_u64());
    // No entry is dropped.
    assert_eq!(server["tools"].as_array().unwrap().len(), 3);
    let rules = |index: usize| -> Vec<&str> {
        let all = report["lint"]["findings"].as_array().unwrap();
        all.iter()
            .filter(|finding| finding["index"] == index)
            .filter_map(|finding| finding["rule"].as_str())
            .collect()
    };
    assert_eq!(rules(0), ["TOOL-001"]);
    assert_eq!(rules(1), ["DESC-001", "DESC-011", "TOOL-002"]);
    assert_eq!(rules(2), ["DESC-001", "DESC-012", "TOOL-001", "TOOL-002"]);
    for format in ["pretty", "sarif", "github", "markdown"] {
        let told = run(
            dir.path(),
            &[
                "doctor",
                "--lint-descriptions",
                "--format",
                format,
                "--",
                "sh",
                "sloppy.sh",
            ],
        );
        assert_eq!(told.code, 1, "{format}\n{}", told.stderr);
    }
}

#[test]
fn a_server_that_ignores_an_optional_request_does_not_cost_the_whole_timeout() {
    let dir = folder(&[("sloppy.sh", SLOPPY)]);
    let arguments = ["doctor", "--timeout", "10m", "--format", "json", "--", "sh"];
    let problems = |options: &[&str]| {
        let all = [&arguments, &["sloppy.sh"][..], options].concat();
        let told = run(dir.path(), &all);
        told.json()["servers"][0]["problems"].to_string()
    };
    let unanswered = "`resources/templates/list` gets no answer";
    assert!(problems(&["ignores-templates"]).contains(unanswered));
    assert!(!problems(&[]).contains(unanswered));
}

#[test]
fn a_server_that_stays_silent_may_be_given_more_time() {
    let note = "note: `--timeout 2m` gives a server that is only slow more time";
    let dir = folder(&[("old.json", r#"{"tools": []}"#)]);
    for arguments in [
        &["doctor", "--timeout", "300ms", "--", "sleep", "600"][..],
        &[
            "diff",
            "old.json",
            "--timeout",
            "300ms",
            "--",
            "sleep",
            "600",
        ],
    ] {
        let told = run(dir.path(), arguments);
        assert_eq!(told.code, 2, "{}", told.stderr);
        assert!(told.stderr.contains(note), "{}", told.stderr);
    }
    let told = run(dir.path(), &["doctor", "--", "sh", "-c", "exit 1"]);
    assert_eq!(told.code, 2, "{}", told.stderr);
    assert!(!told.stderr.contains(note), "{}", told.stderr);
}

#[test]
fn an_end_in_the_middle_leaves_no_server() {
    let dir = folder(&[("silent.sh", "echo $$ > pid; exec sleep 60")]);
    let mut child = mcptest(dir.path())
        .args(["doctor", "--", "sh", "silent.sh"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid_file = dir.path().join("pid");
    let pid = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => std::thread::yield_now(),
        }
    };
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn quality_counts_malformed_entries_and_errors_are_no_failures() {
    let suite = r#"
servers:
  sloppy: { command: ["sh", "sloppy.sh"] }
  gone: { command: ["sh", "-c", "exit 3"] }
tool_quality:
  - name: malformed
    server: sloppy
    tags: [one]
    expect:
      - malformed_count: 4
      - min_score: 0
      - tool["a"].score: { ">": 0 }
  - { name: unreachable, server: gone, tags: [two] }
"#;
    let dir = folder(&[("sloppy.sh", SLOPPY), ("mcptest.yml", suite)]);
    let report = run(dir.path(), &["run", "--tag", "one", "--reporter", "json"]).json();
    assert_eq!(report["verdict"], "pass", "{report:#}");
    assert_eq!(report["tests"][0]["kind"], "tool_quality");
    let gate = &report["tests"][0]["gates"][0];
    assert_eq!(gate["block"], "tool_quality");
    assert!(gate["values"]["tool[\"a\"].score"].is_number());
    assert_eq!(gate["values"]["smells.invalid_annotation"], 1);
    let gone = run(dir.path(), &["run", "--tag", "two", "--reporter", "json"]);
    assert_eq!(gone.code, 2);
    assert_eq!(gone.json()["tests"][0]["verdict"], "error");
    // One row each.
    let pretty = run(dir.path(), &["run"]);
    assert_eq!(pretty.code, 2);
    let rows = pretty
        .stdout
        .lines()
        .filter(|line| line.starts_with("  PASS") || line.starts_with("  ERROR"));
    assert_eq!(rows.count(), 2, "{}", pretty.stdout);
}

#[test]
fn a_server_without_tools_is_no_evidence() {
    let suite = r#"
servers:
  empty: { command: ["mcptest", "mock", "--tools-from", "empty.json"] }
tool_quality:
  - { name: nothing, server: empty }
"#;
    let dir = folder(&[("empty.json", r#"{"tools": []}"#), ("mcptest.yml", suite)]);
    let ran = run(dir.path(), &["run", "--reporter", "json"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    assert_eq!(ran.json()["tests"][0]["verdict"], "no_evidence");
}

#[test]
fn waivers_by_default_file_and_denied_warnings() {
    let tool = r#"[{"name": "now", "description": "Get the current time. Returns an RFC 3339 text.", "inputSchema": {"type": "object"}}]"#;
    let waivers = "waivers:\n  - { rule: DESC-012, tool: n*, reason: old clients choke on them }\n";
    let dir = folder(&[("tools.json", tool)]);
    let lint = [
        "doctor",
        "--tools-from",
        "tools.json",
        "--lint-descriptions",
        "--deny",
        "warning",
    ];
    assert_eq!(run(dir.path(), &lint).code, 1);
    std::fs::write(dir.path().join("mcptest-lint.yml"), waivers).unwrap();
    let waived = run(dir.path(), &lint);
    assert_eq!(waived.code, 0, "{}", waived.stdout);
    assert!(waived.stdout.contains("old clients choke on them"));
    for (bad, words) in [
        (
            "waivers:\n  - { rule: DESC-12, reason: x }\n",
            "unknown rule `DESC-12`",
        ),
        ("waivers:\n  - { rule: DESC-012 }\n", "reason"),
        (
            "waivers:\n  - { rule: DESC-012, reason: \" \" }\n",
            "reason",
        ),
    ] {
        std::fs::write(dir.path().join("mcptest-lint.yml"), bad).unwrap();
        let refused = run(dir.path(), &lint);
        assert_eq!(refused.code, 2, "{bad}");
        assert!(refused.stderr.contains(words), "{bad}\n{}", refused.stderr);
    }
}

#[test]
fn fixes_are_written_and_leave_nothing_of_their_kind() {
    let tool = json!({"tools": [{"name": "set", "description": "Set a thing", "inputSchema": {"type": "object",
        "properties": {"to": {"type": "string", "description": "One of: on, off."}}}}]});
    let dir = folder(&[("tools.json", &format!("{tool:#}\n"))]);
    let fixed = ran(&mcptest(dir.path())
        .args([
            "doctor",
            "--tools-from",
            "tools.json",
            "--fix",
            "fixed.json",
        ])
        .output()
        .unwrap());
    assert_eq!(fixed.code, 0, "{}", fixed.stderr);
    assert!(
        fixed
            .stdout
            .starts_with("--- tools.json\n+++ fixed.json\n@@ "),
        "{}",
        fixed.stdout
    );
    let lint = run(
        dir.path(),
        &[
            "doctor",
            "--tools-from",
            "fixed.json",
            "--lint-descriptions",
            "--format",
            "json",
        ],
    );
    for rule in ["DESC-013", "SCH-001", "SCH-002"] {
        assert!(!lint.stdout.contains(rule), "{rule}\n{}", lint.stdout);
    }
    let again = run(
        dir.path(),
        &[
            "doctor",
            "--tools-from",
            "fixed.json",
            "--fix",
            "again.json",
        ],
    );
    assert_eq!(again.stdout, "");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("fixed.json"), read("again.json"));
}

/// A suite with one server, and the mock manifest of that server.
const DEFAULT_SUITE: [(&str, &str); 2] = [
    (
        "mcptest.yml",
        "servers:\n  clock:\n    command: [mcptest, mock, --tools-from, clock.yml]\ntools:\n  - {name: now, server: clock, tool: now}\n",
    ),
    (
        "clock.yml",
        "mock_server:\n  name: clock\n  tools:\n    - {name: now, description: Get the current time. Returns text., inputSchema: {type: object}, annotations: {}}\n",
    ),
];

#[test]
fn without_an_argument_the_suite_that_run_would_find_is_used() {
    let dir = folder(&DEFAULT_SUITE);
    for arguments in [
        &["doctor", "--lint-descriptions", "--format", "json"][..],
        &["doctor", "--server", "clock", "--format", "json"],
    ] {
        let found = run(dir.path(), arguments);
        assert_eq!(found.code, 0, "{}\n{}", found.stdout, found.stderr);
        let report = found.json();
        assert_eq!(report["servers"][0]["name"], "clock");
        assert_eq!(report["servers"][0]["tools"][0]["name"], "now");
    }
    let checked = run(dir.path(), &["validate"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(checked.stderr.contains("mcptest.yml: valid, 1 test"));
    // mcptest.yaml wins, as for `run`.
    std::fs::write(dir.path().join("mcptest.yaml"), "servers: 7\n").unwrap();
    for arguments in [&["doctor"][..], &["validate"]] {
        let refused = run(dir.path(), arguments);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        assert!(
            refused.stderr.contains("mcptest.yaml:1:"),
            "{}",
            refused.stderr
        );
    }
    let empty = folder(&[]);
    for arguments in [
        &["doctor"][..],
        &["doctor", "--server", "clock"],
        &["validate"],
    ] {
        let refused = run(empty.path(), arguments);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        assert!(
            refused.stderr.contains("neither mcptest.yaml nor"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn dollars_are_shown_for_the_models_that_are_named() {
    let dir = folder(&DEFAULT_SUITE);
    let shown = run(
        dir.path(),
        &["doctor", "--tools-from", "clock.yml", "--model", "gpt-4o"],
    );
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains(" with gpt-4o\n"), "{}", shown.stdout);
    let refused = run(
        dir.path(),
        &["doctor", "--tools-from", "clock.yml", "--model", "gpt-4p"],
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("did you mean `gpt-4o`?"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_mock_with_the_tools_of_a_server_is_not_counted_again() {
    let manifest = r"
mock_server:
  name: notes
  tools: [{ name: list_notes, description: List the titles of all notes. }]
";
    let suite = format!(
        "servers:\n  notes:\n    command: [{}, mock, --tools-from, mock.yml]\n  \
         notes-mock:\n    command: [mcptest, mock, --tools-from, mock.yml]\n",
        json!(env!("CARGO_BIN_EXE_mcptest"))
    );
    let dir = folder(&[("mcptest.yml", suite.as_str()), ("mock.yml", manifest)]);
    let told = run(dir.path(), &["doctor", "--format", "json"]);
    let report = told.json();
    assert_eq!(
        report["servers"].as_array().unwrap().len(),
        1,
        "{}",
        told.stderr
    );
    assert_eq!(report["servers"][0]["name"], "notes");
    assert_eq!(report["look_alikes"], json!([]));
    let note = "notes-mock is left out: a mock with the same tools as notes";
    assert!(told.stderr.contains(note), "{}", told.stderr);
    // It is inspected where it is named.
    let named = run(
        dir.path(),
        &["doctor", "--server", "notes-mock", "--format", "json"],
    );
    assert_eq!(named.json()["servers"][0]["name"], "notes-mock");
}
