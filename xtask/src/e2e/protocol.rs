//! Resources, prompts, what servers ask of clients, tasks and cancellation: with the reference
//! server and the SDKs of others, in both eras of the protocol, over stdio and HTTP.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Checks;
use super::serving::{Serving, everything, everything_sse};
use super::suites::{passes, passes_at};
use super::testbed::Testbed;
use crate::workspace;

/// The suites, with the number of their tests.
const EVERYTHING: (&str, usize) = ("everything-protocol.yml", 32);
const PYTHON: (&str, usize) = ("python-sdk.yml", 25);
const PYTHON_STATELESS: (&str, usize) = ("python-sdk-stateless.yml", 3);
const FASTMCP: (&str, usize) = ("fastmcp-protocol.yml", 20);

const EVERYTHING_COMMAND: &str = r#"command: ["${E2E_NPM_BIN}/mcp-server-everything"]"#;

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for (suite, tests) in [EVERYTHING, PYTHON, PYTHON_STATELESS, FASTMCP] {
        checks.check(
            &format!("{suite}: {tests} tests pass, no process is left"),
            || {
                let report = passes(testbed, suite, tests)?;
                has_evidence(&report)
            },
        );
    }
    checks.check("python-sdk.yml: the same in revision 2025-11-25", || {
        let older = [("lifecycle: auto", "lifecycle: initialize")];
        passes_changed(testbed, PYTHON, &older)
    });
    checks.check("everything-protocol.yml: the same over HTTP", || {
        let (_, serving) = everything(testbed)?;
        let serving = serving.ready()?;
        let url = format!("url: {}", serving.url);
        passes_changed(testbed, EVERYTHING, &[(EVERYTHING_COMMAND, &url)])
    });
    checks.check("everything-protocol.yml: the same over HTTP+SSE", || {
        let serving = everything_sse(testbed)?.ready()?;
        let url = format!("url: {}", serving.sse_url());
        passes_changed(testbed, EVERYTHING, &[(EVERYTHING_COMMAND, &url)])
    });
    checks.check(
        "python-sdk.yml: the same over HTTP, in both eras of the protocol",
        || {
            let command = r#"command: ["${E2E_FASTMCP_PYTHON}", "${E2E_PYTHON_SDK_SERVER}"]"#;
            let older = ("lifecycle: auto", "lifecycle: initialize");
            let newer = ("lifecycle: auto", "lifecycle: discover");
            let found = ("lifecycle: discover", "lifecycle: auto");
            for (suite, lifecycle) in [(PYTHON, newer), (PYTHON, older), (PYTHON_STATELESS, found)]
            {
                // Tests change what it has.
                let serving = python(testbed)?.ready()?;
                let url = format!("url: {}", serving.url);
                let changes = [(command, url.as_str()), lifecycle];
                passes_changed(testbed, suite, &changes)?;
            }
            Ok(())
        },
    );
}

/// The server on the official SDK, on HTTP.
fn python(testbed: &Testbed) -> Result<Serving> {
    let script = workspace::root().join("xtask/src/e2e/python_sdk_server.py");
    Serving::start(|port| {
        let mut command = Command::new(&testbed.parts.fastmcp_python);
        command.arg(&script).arg(port.to_string());
        command
    })
}

/// A suite passes with changes of its text.
fn passes_changed(
    testbed: &Testbed,
    (suite, tests): (&str, usize),
    changes: &[(&str, &str)],
) -> Result<()> {
    let path = workspace::root().join("tests/e2e").join(suite);
    let mut text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    for (from, to) in changes {
        ensure!(text.contains(from), "{suite} has no `{from}`");
        text = text.replace(from, to);
    }
    let changed = testbed.scratch("changed")?.join(suite);
    std::fs::write(&changed, text).context("cannot write the suite")?;
    let report = passes_at(testbed, &path_text(&changed), tests)?;
    has_evidence(&report)
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Every request of a server is in the report, with its answer.
fn has_evidence(report: &Value) -> Result<()> {
    let mut requests = 0;
    for test in report["tests"].as_array().into_iter().flatten() {
        let messages = test["runs"][0]["trace"]["server_messages"].as_array();
        for message in messages.into_iter().flatten() {
            let method = message["method"].as_str().unwrap_or_default();
            if method.starts_with("notifications/") {
                continue;
            }
            requests += 1;
            ensure!(
                message.get("answer").is_some() || message.get("error").is_some(),
                "{}: {method} has no answer in the report",
                test["name"]
            );
        }
    }
    ensure!(requests > 0, "the report has no request of a server");
    Ok(())
}
