//! Servers over HTTP+SSE, the transport of revision 2024-11-05, that other people made: found and
//! asked for, in suites, `doctor`, and behind the proxy.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::serving::{Serving, everything_sse};
use super::testbed::{Testbed, expect, report};
use crate::workspace;

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check("HTTP+SSE: server-everything", || {
        let serving = everything_sse(testbed)?;
        let call = json!({"tool": "echo", "args": {"message": "täst 🙂"}, "text": "täst 🙂"});
        works(testbed, &serving, &call)
    });
    checks.check("HTTP+SSE: the Python SDK", || {
        let python = testbed.parts.mcp_python()?;
        let script = workspace::root().join("xtask/src/e2e/sse_server.py");
        let serving = Serving::start(|port| {
            let mut command = Command::new(&python);
            command.arg(&script).arg(port.to_string());
            command
        })?;
        let call = json!({"tool": "find_book", "args": {"title": "Emma"}, "text": "1815"});
        works(testbed, &serving, &call)
    });
}

fn works(testbed: &Testbed, serving: &Serving, call: &Value) -> Result<()> {
    let url = serving.sse_url();
    let folder = testbed.scratch("sse")?;
    let file = folder.join("suite.yml").to_string_lossy().into_owned();
    let test = |server: &str| {
        json!({"name": server, "server": server, "tool": call["tool"], "args": call["args"],
               "expect": [{"result.content[0].text": {"contains": call["text"]}}]})
    };
    let suite = json!({
        "servers": {
            "found": {"url": url},
            "asked": {"url": url, "transport": "sse"},
            "other": {"url": url, "transport": "streamable_http"},
        },
        "tools": [test("found"), test("asked"), test("other")],
    });
    std::fs::write(&file, suite.to_string())?;
    let finished = testbed.run(&["run", &file, "--reporter=json"])?;
    let report = report(&finished)?;
    expect(&report, "/tests/0/verdict", "pass")?;
    expect(&report, "/tests/1/verdict", "pass")?;
    expect(&report, "/tests/2/verdict", "error")?;
    let doctor = testbed.run(&["doctor", "--url", &url])?;
    doctor.expect_code(0)?;
    ensure!(
        doctor.stdout.contains("the server speaks HTTP+SSE only"),
        "{}",
        doctor.stdout
    );
    proxied(testbed, &url, call)
}

/// A client on the official SDK, which speaks stdio to the proxy.
fn proxied(testbed: &Testbed, url: &str, call: &Value) -> Result<()> {
    let record: PathBuf = testbed.scratch("sse")?.join("trace.json");
    let program = testbed.program.to_string_lossy().into_owned();
    let record = record.to_string_lossy().into_owned();
    let server = [&program, "proxy", "--url", url, "--record", &record].map(String::from);
    let plan = json!({"server": server, "calls": [[call["tool"], call["args"]]]});
    let output = Command::new(testbed.parts.mcp_python()?)
        .arg(workspace::root().join("xtask/src/e2e/sdk_client.py"))
        .args(["legacy", &plan.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seen: Value = serde_json::from_str(&text).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{text}{errors}")
    })?;
    let wanted = call["text"].as_str().unwrap_or_default();
    let answer = seen["answers"][0]["text"][0].as_str().unwrap_or_default();
    ensure!(answer.contains(wanted), "{seen}");
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(record)?)?;
    ensure!(trace["tool_calls"][0]["name"] == call["tool"], "{trace}");
    Ok(())
}
