//! Calls that hang in a server: evidence if the server still answers, else an error.

use crate::support::{folder, run};

const MANIFEST: &str = "\
mock_server:
  name: web
  tools:
    - name: search
      description: Searches.
      input_schema: { type: object }
      response: { content: [{ type: text, text: found }] }
";

/// A suite whose agent calls `search` twice, against this server.
fn suite(command: &str) -> String {
    format!(
        "\
servers:
  web:
    command: {command}
    timeout: 300ms
agents:
  - name: searches again
    model: builtin/scripted
    servers: [web]
    prompt: Search.
    script:
      - - calls: [{{tool: web.search}}]
        - calls: [{{tool: web.search}}]
        - say: Done.
    recovery:
      max_detection_ms: 300
      require_clean_timeout: true
"
    )
}

#[test]
fn issue_10_a_fault_of_the_mock_is_evidence_that_the_agent_can_recover_from() {
    // (fault, exit code, recovered)
    for (fault, code, recovered) in [
        ("recover-after:1", 0, 1),
        ("hang", 1, 0),
        ("slow:60000", 1, 0),
    ] {
        let command = format!("[mcptest, mock, --tools-from, web.yml, --fault, {fault}]");
        let dir = folder(&[("web.yml", MANIFEST), ("suite.yml", &suite(&command))]);
        let ran = run(dir.path(), &["run", "suite.yml", "--reporter", "json"]);
        assert_eq!(ran.code, code, "{fault}: {} {}", ran.stdout, ran.stderr);
        let test = &ran.json()["tests"][0];
        let first = &test["runs"][0]["trace"]["tool_results"][0];
        assert_eq!(first["error_kind"], "timeout", "{fault}: {first}");
        assert_eq!(first["is_error"], true);
        assert_eq!(first["timeout_ms"], 300);
        assert_eq!(test["runs"][0]["trace"]["final_response"], "Done.");
        let values = &test["gates"][0]["values"];
        assert_eq!(values["recovery.recovered"], recovered, "{fault}: {values}");
        assert_eq!(values["recovery.clean_timeout"], 1);
    }
}

#[test]
fn issue_10_a_server_that_answers_nothing_any_more_is_an_error() {
    // Nothing reaches the server any more after the first call.
    let script = format!(
        "while read -r line; do case $line in *tools/call*) sleep 60;; esac; \
         printf '%s\\n' \"$line\"; done | {} mock --tools-from web.yml",
        env!("CARGO_BIN_EXE_mcptest")
    );
    let suite = suite(&serde_json::json!(["sh", "-c", script]).to_string());
    let dir = folder(&[("web.yml", MANIFEST), ("suite.yml", &suite)]);
    let ran = run(dir.path(), &["run", "suite.yml", "--reporter", "json"]);
    assert_eq!(ran.code, 2, "{} {}", ran.stdout, ran.stderr);
    let run = &ran.json()["tests"][0]["runs"][0];
    assert_eq!(run["error"]["kind"], "timeout", "{run}");
}
