//! Agents that we did not write, in front of a server that we did not write, with our proxy between
//! them: what they did is recorded and scored.
//!
//! The agent's provider is a stand-in on loopback that plays fixed answers. Where the machine
//! allows it, all of it runs in a separate network namespace, which has nothing but loopback.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::testbed::{Testbed, expect, report};

const SUITE: &str = "tests/e2e/proxied-agent.yml";

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for agent in [Agent::Claude, Agent::Gemini] {
        checks.check(
            &format!("{}: its trace through the proxy scores", agent.name()),
            || right_choice(testbed, agent),
        );
        checks.check(
            &format!("{}: a distractor is refused and counted", agent.name()),
            || wrong_choice(testbed, agent),
        );
    }
}

#[derive(Clone, Copy)]
enum Agent {
    /// Claude Code.
    Claude,
    /// Gemini CLI.
    Gemini,
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Gemini => "gemini",
        }
    }

    /// The name by which its model calls a tool of the server `everything`.
    fn wire_name(self, tool: &str) -> String {
        match self {
            Self::Claude => format!("mcp__everything__{tool}"),
            Self::Gemini => format!("mcp_everything_{tool}"),
        }
    }
}

/// It calls the tool that was meant.
fn right_choice(testbed: &Testbed, agent: Agent) -> Result<()> {
    let trace = session(testbed, agent, "echo")?;
    let (recorded, scored) = score(testbed, &trace)?;
    expect(&recorded, "/tool_calls/0/name", "echo")?;
    expect(
        &recorded,
        "/tool_results/0/content/0/text",
        "Echo: hello from an agent",
    )?;
    let offered = recorded["catalog"].as_array().map_or(0, Vec::len);
    ensure!(offered > 4, "{offered} tools were offered");
    expect(&scored, "/exit_code", 0)?;
    expect(&scored, "/tests/0/verdict", "pass")?;
    for gate in [0, 1] {
        expect(&scored, &format!("/tests/0/gates/{gate}/verdict"), "pass")?;
    }
    Ok(())
}

/// It calls a tool that no server has.
fn wrong_choice(testbed: &Testbed, agent: Agent) -> Result<()> {
    let first = session(testbed, agent, "echo")?;
    let first: Value = serde_json::from_str(&std::fs::read_to_string(first)?)?;
    // The same seed gives the same ones again.
    let fake = first.pointer("/distractors/0").and_then(Value::as_str);
    let fake = fake
        .and_then(|id| id.strip_prefix("everything."))
        .context("no distractor")?;
    let (recorded, scored) = score(testbed, &session(testbed, agent, fake)?)?;
    expect(&recorded, "/tool_calls/0/name", fake)?;
    expect(&recorded, "/tool_results/0/is_error", true)?;
    expect(&scored, "/exit_code", 1)?;
    let gates = scored.pointer("/tests/0/gates").and_then(Value::as_array);
    let gate = gates.and_then(|gates| gates.iter().find(|gate| gate["block"] == "distractors"));
    let gate = gate.context("no distractors in the report")?;
    expect(gate, "/values/distractors.chose_distractor", 1)?;
    expect(gate, "/values/distractors.accuracy", 0)
}

/// One session of the agent, whose model calls the tool and then answers. Gives the trace.
fn session(testbed: &Testbed, agent: Agent, tool: &str) -> Result<PathBuf> {
    let folder = testbed.scratch(&format!("{}-{tool}", agent.name()))?;
    let trace = folder.join("run.json");
    let fixtures = json!({"fixtures": [
        {"match": {"userMessage": "echo please", "hasToolResult": true}, "response": {"content": "The server said it back."}},
        {"match": {"userMessage": "echo please"}, "response": {"toolCalls": [
            {"name": agent.wire_name(tool), "arguments": {"message": "hello from an agent"}},
        ]}},
    ]});
    write(&folder.join("fixtures.json"), &fixtures)?;
    let block =
        json!({"count": 4, "source": {"from": "near_duplicate", "of": ["echo"]}, "seed": 7});
    write(&folder.join("distractors.json"), &block)?;
    let server = testbed.parts.npm_bin.join("mcp-server-everything");
    let proxied = json!({
        "command": testbed.program,
        "args": [
            "proxy", "--server", "everything", "--test", "echoes", "--record", &trace,
            "--distractors", folder.join("distractors.json"), "--", &server,
        ],
    });
    let bin = testbed.parts.agents_bin()?;
    let command = match agent {
        Agent::Claude => {
            write(
                &folder.join("mcp.json"),
                &json!({"mcpServers": {"everything": proxied}}),
            )?;
            format!(
                "ANTHROPIC_BASE_URL=http://127.0.0.1:$PORT ANTHROPIC_API_KEY=sk-ant-fake CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
                 DISABLE_AUTOUPDATER=1 '{}' -p 'echo please' --mcp-config mcp.json --strict-mcp-config --allowedTools '{}'",
                bin.join("claude").display(),
                agent.wire_name(tool)
            )
        }
        Agent::Gemini => {
            let mut proxied = proxied;
            proxied["trust"] = true.into();
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": false},
                "mcpServers": {"everything": proxied},
            });
            std::fs::create_dir_all(folder.join(".gemini"))?;
            write(&folder.join(".gemini/settings.json"), &settings)?;
            format!(
                "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$PORT GEMINI_API_KEY=fake '{}' -p 'echo please' -m gemini-2.5-flash \
                 --approval-mode yolo --skip-trust",
                bin.join("gemini").display()
            )
        }
    };
    // The stand-in takes a free port and prints it.
    let script = format!(
        "[ \"$1\" = alone ] && ip link set lo up\n\
         PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])')\n\
         '{}' -p $PORT -f fixtures.json --strict --log-level warn >provider.log 2>&1 &\n\
         PROVIDER=$!\n\
         trap 'kill $PROVIDER' EXIT\n\
         until python3 -c \"import socket; socket.create_connection(('127.0.0.1', $PORT)).close()\" 2>/dev/null; do\n\
           kill -0 $PROVIDER || exit 99\n\
           sleep 0.1\n\
         done\n\
         {command} </dev/null || exit\n\
         # An agent may end before what it started has.\n\
         while grep -qs \"$PWD/[r]un.json\" /proc/[0-9]*/cmdline; do sleep 0.1; done\n",
        testbed.parts.aimock_bin()?.join("llmock").display()
    );
    std::fs::write(folder.join("session.sh"), script)?;
    let mut shell = if has_namespaces() {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "bash", "session.sh", "alone"]);
        unshare
    } else {
        let mut bash = Command::new("bash");
        bash.arg("session.sh");
        bash
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Nothing of whoever runs this reaches the agent.
    shell
        .current_dir(&folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", &folder);
    let finished = testbed.finish(&mut shell)?;
    ensure!(
        finished.code == Some(0) && finished.stdout.contains("The server said it back."),
        "the agent did not finish ({:?})\nstdout: {}\nstderr: {}\nprovider: {}",
        finished.code,
        finished.stdout,
        finished.stderr,
        std::fs::read_to_string(folder.join("provider.log")).unwrap_or_default()
    );
    Ok(trace)
}

/// Returns true if this user may create a network namespace.
pub(super) fn has_namespaces() -> bool {
    let tried = Command::new("unshare")
        .args(["--net", "ip", "link", "set", "lo", "up"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

fn write(path: &Path, value: &Value) -> Result<()> {
    std::fs::write(path, value.to_string())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The trace and the report on it.
fn score(testbed: &Testbed, trace: &Path) -> Result<(Value, Value)> {
    let recorded = serde_json::from_str(&std::fs::read_to_string(trace)?)?;
    let scored = testbed.run(&[
        "score",
        SUITE,
        "--reporter=json",
        "--trace",
        &trace.to_string_lossy(),
    ])?;
    Ok((recorded, report(&scored)?))
}
