//! A coding agent that we did not write repairs a suite with the tools of `mcptest mcp`.
//!
//! mcptest itself runs the agent (`agent: {preset: claude-code}`), so its proxy is the witness of
//! the calls. The agent's model is a script that a stand-in provider plays.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::agents_under_test::{Provider, agent, claude_code, run_suite};
use super::testbed::{Testbed, expect};

/// A suite with a misspelt key, and an expectation that does not hold.
const BROKEN: &str = "\
servers:
  helpdesk:
    command: [mcptest, mock, --preset, tidy]
tools:
  - name: a ticket is found
    server: helpdesk
    tool: get_ticket
    argss: { number: 1042 }
    expect:
      - result.structuredContent: { contains: { state: closed } }
";

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check("mcptest mcp: Claude Code repairs a suite with it", || {
        repairs(testbed)
    });
}

fn repairs(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("coding-agent")?;
    let project = folder.join("project");
    std::fs::create_dir_all(&project)?;
    let file = project.join("mcptest.yml");
    std::fs::write(&file, BROKEN)?;
    let mcp = |tool: &str, args: Value| json!({"server": "mcptest", "tool": tool, "args": args});
    let edit = |command: String| json!({"server": "", "tool": "Bash", "args": {"command": command, "description": "Edit the suite"}});
    let replace =
        |from: &str, to: &str| edit(format!("sed -i 's/{from}/{to}/' '{}'", file.display()));
    let script = json!({"turns": [
        {"say": "I read how suites work.", "calls": [mcp("explain", json!({"topic": "suites"}))]},
        {"calls": [mcp("validate", json!({}))]},
        {"say": "A key is misspelt.", "calls": [replace("argss", "args")]},
        {"calls": [mcp("validate", json!({}))]},
        {"calls": [mcp("run", json!({"detail": "failures"}))]},
        {"say": "The ticket is open.", "calls": [replace("closed", "open")]},
        {"calls": [mcp("run", json!({}))]},
        {"say": "The suite is valid and passes."},
    ]});
    let provider = Provider::start(&script)?;
    let subject = claude_code();
    let suite = json!({
        "name": "a coding agent",
        "servers": {"mcptest": {"command": ["mcptest", "mcp", "--root", project]}},
        "agents": [{
            "name": "repairs a suite",
            "agent": agent(subject, &provider),
            "servers": ["mcptest"],
            "prompt": "Please repair the suite.",
            "expect": [
                {"final_response": {"contains": "valid and passes"}},
                {"tool_results[*].is_error": {"every": {"exact": false}}},
            ],
        }],
    });
    let report = run_suite(testbed, subject, &folder, &suite)?;
    expect(&report, "/tests/0/verdict", "pass")?;
    let trace = &report["tests"][0]["runs"][0]["trace"];
    let calls = trace["tool_calls"].as_array().cloned().unwrap_or_default();
    let results = trace["tool_results"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // The agent's own calls (Bash) are in the trace, too.
    let of_server: Vec<(&Value, &Value)> = calls
        .iter()
        .filter(|call| call["server"] == "mcptest")
        .filter_map(|call| {
            let result = results
                .iter()
                .find(|result| result["call_id"] == call["id"])?;
            Some((call, result))
        })
        .collect();
    let names: Vec<&Value> = of_server.iter().map(|(call, _)| &call["name"]).collect();
    ensure!(
        names == ["explain", "validate", "validate", "run", "run"],
        "it called {names:?}"
    );
    for (number, pointer, wanted) in [
        (1, "/valid", json!(false)),
        (1, "/diagnostics/0/line", json!(8)),
        (2, "/valid", json!(true)),
        (3, "/verdict", json!("fail")),
        (4, "/verdict", json!("pass")),
    ] {
        expect(&of_server[number].1["structured_content"], pointer, wanted)?;
    }
    let repaired = std::fs::read_to_string(&file)?;
    ensure!(
        repaired.contains("args: {") && repaired.contains("state: open"),
        "the suite is {repaired}"
    );
    ensure!(
        !project.join(".mcptest").exists(),
        "a read-only server left a history"
    );
    Ok(())
}
