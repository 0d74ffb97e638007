//! Clients that we did not write, on the official SDKs for Python and TypeScript: against our mock
//! server, and through our proxy to servers that we did not write either.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::serving::{self, Serving};
use super::testbed::{Testbed, expect, report};
use super::{Checks, inspector};
use crate::workspace;

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for sdk in Sdk::ALL {
        let name = sdk.name();
        checks.check(&format!("{name}: our mock over stdio and HTTP"), || {
            mock(testbed, sdk)
        });
        checks.check(
            &format!("{name}: an agent under test, servers by command and by address"),
            || under_test(testbed, sdk),
        );
        checks.check(
            &format!("{name}: through the proxy to server-everything, stdio and HTTP"),
            || {
                let (command, serving) = serving::everything(testbed)?;
                let calls = json!([
                    ["echo", {"message": "täst 🙂"}],
                    ["get-sum", {"a": 2, "b": 40}],
                    ["get-sum", {"a": "two"}],
                ]);
                proxied(testbed, sdk, &command, serving, &calls)
            },
        );
        checks.check(
            &format!("{name}: through the proxy to FastMCP, stdio and HTTP"),
            || {
                let (command, serving) = serving::fastmcp(testbed)?;
                let calls = json!([
                    ["find_book", {"title": "Emma"}],
                    ["find_book", {"title": "Ulysses"}],
                    ["speak_revision", {}],
                    ["close_library", {"hour": 8}],
                ]);
                proxied(testbed, sdk, &command, serving, &calls)
            },
        );
    }
}

/// An SDK, and how it opens a session.
#[derive(Clone, Copy, PartialEq)]
enum Sdk {
    Python,
    PythonLegacy,
    TypeScript,
    /// The first line of the SDK, which knows no other way.
    TypeScriptLegacy,
}

impl Sdk {
    const ALL: [Self; 4] = [
        Self::Python,
        Self::PythonLegacy,
        Self::TypeScript,
        Self::TypeScriptLegacy,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Python => "Python SDK",
            Self::PythonLegacy => "Python SDK with initialize",
            Self::TypeScript => "TypeScript SDK 2",
            Self::TypeScriptLegacy => "TypeScript SDK 1",
        }
    }

    fn era(self) -> &'static str {
        match self {
            Self::Python | Self::TypeScript => "auto",
            Self::PythonLegacy | Self::TypeScriptLegacy => "legacy",
        }
    }

    fn command(self, testbed: &Testbed) -> Result<Command> {
        let script = |name: &str| workspace::root().join("xtask/src/e2e").join(name);
        match self {
            Self::Python | Self::PythonLegacy => {
                let mut command = Command::new(testbed.parts.mcp_python()?);
                command.arg(script("sdk_client.py"));
                Ok(command)
            }
            Self::TypeScript | Self::TypeScriptLegacy => {
                // A script finds the packages that are beside it.
                let here = testbed.parts.typescript_folder()?.join("sdk_client.mjs");
                std::fs::copy(script("sdk_client.mjs"), &here).context("cannot copy the script")?;
                let mut command = Command::new("node");
                command.arg(here);
                Ok(command)
            }
        }
    }

    /// A server for the SDK: an address, or a command with its arguments.
    fn session(self, testbed: &Testbed, server: &Value, calls: &Value) -> Result<Value> {
        let plan = json!({"server": server, "calls": calls});
        let mut command = self.command(testbed)?;
        let finished = testbed.finish(command.args([self.era(), &plan.to_string()]))?;
        finished.expect_code(0)?;
        report(&finished)
    }
}

/// The program is the agent of a suite, in parallel runs. What it sees is what the report says.
fn under_test(testbed: &Testbed, sdk: Sdk) -> Result<()> {
    let manifest = inspector::in_folder(testbed, inspector::WEATHER)?;
    let folder = testbed.scratch(&format!("sdk-agent-{}", sdk.name().replace(' ', "-")))?;
    let client = sdk.command(testbed)?;
    let words: Vec<String> = std::iter::once(client.get_program())
        .chain(client.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let agent = |transport: &str, server: &str| {
        let plan = r#"{"server": SERVER, "calls": [["get_weather", {"city": "Rome"}], ["get_weather", {"city": "Oslo"}]]}"#;
        let plan = json!({"each": "servers", "args": [plan.replace("SERVER", server)]});
        let mut command: Vec<Value> = words.iter().map(|word| json!(word)).collect();
        command.extend([json!(sdk.era()), plan]);
        json!({
            "name": transport,
            "agent": {"command": command, "transport": transport,
                      "output": {"format": "json", "final": "answers[1].text[0]"}},
            "servers": ["weather"],
            "prompt": "What is the weather?",
            "runs": 5,
            "inject": ["once"],
            "expect": [
                {"final_response": "It is 22 degrees and sunny in Oslo."},
                {"tool_names": {"exact": ["get_weather", "get_weather"]}},
                {"tool_calls[0].server": "weather"},
                {"tool_results[0].is_error": true},
                {"tool_results[1].is_error": false},
            ],
        })
    };
    let suite = json!({
        "name": "clients on SDKs",
        "servers": {"weather": {"command": [testbed.program, "mock", "--tools-from", manifest]}},
        "faults": [{
            "name": "once", "target": {"tool": "get_weather"}, "kind": "recover_after", "failures": 1,
        }],
        "agents": [agent("stdio", "{{argv|json}}"), agent("http", "{{url|json}}")],
        "run_options": {"jobs": 5},
    });
    let path = folder.join("suite.yml");
    std::fs::write(&path, format!("{suite:#}"))?;
    let path = path.to_string_lossy().into_owned();
    let mut command = testbed.mcptest(&["run", &path, "--reporter", "json"])?;
    let report = report(&testbed.finish(&mut command)?)?;
    expect(&report, "/tests/0/verdict", "pass")?;
    expect(&report, "/tests/1/verdict", "pass")?;
    let runs = report["tests"][1]["runs"].as_array().map_or(0, Vec::len);
    ensure!(runs == 5, "{runs} runs");
    Ok(())
}

fn mock(testbed: &Testbed, sdk: Sdk) -> Result<()> {
    let manifest = inspector::in_folder(testbed, inspector::WEATHER)?;
    let calls = json!([["get_weather", {"city": "Oslo"}], ["get_weather", {"town": "Oslo"}], ["no_such_tool", {}]]);
    let command = json!([testbed.program, "mock", "--tools-from", manifest]);
    let over_stdio = sdk.session(testbed, &command, &calls)?;
    expect(
        &over_stdio,
        "/answers/0/text/0",
        "It is 22 degrees and sunny in Oslo.",
    )?;
    expect(&over_stdio, "/answers/0/isError", false)?;
    expect(&over_stdio, "/answers/1/isError", true)?;
    expect(&over_stdio, "/answers/2/error", -32602)?;
    expect(
        &over_stdio,
        "/tools/0/inputSchema/required",
        json!(["city"]),
    )?;
    let wanted = match sdk {
        Sdk::Python | Sdk::TypeScript => json!("2026-07-28"),
        Sdk::PythonLegacy => json!("2025-11-25"),
        // It does not report it.
        Sdk::TypeScriptLegacy => Value::Null,
    };
    expect(&over_stdio, "/revision", wanted)?;
    let serving = serving::mock(testbed, inspector::WEATHER)?;
    let over_http = sdk.session(testbed, &json!(serving.ready()?.url), &calls)?;
    same(&over_stdio, &over_http)
}

/// Through the proxy everything is as without it, and the trace has every call.
fn proxied(
    testbed: &Testbed,
    sdk: Sdk,
    command: &[String],
    serving: Serving,
    calls: &Value,
) -> Result<()> {
    let serving = serving.ready()?;
    let ways = [
        (json!(command), [&["--".to_owned()], command].concat()),
        (
            json!(serving.url),
            vec!["--url".to_owned(), serving.url.clone()],
        ),
    ];
    for (direct, behind) in ways {
        let wanted = sdk.session(testbed, &direct, calls)?;
        let trace = trace_file(testbed)?;
        let mut proxy = vec![
            testbed.program.to_string_lossy().into_owned(),
            "proxy".to_owned(),
        ];
        proxy.extend(["--server", "real", "--record"].map(str::to_owned));
        proxy.push(trace.to_string_lossy().into_owned());
        proxy.extend(behind);
        let seen = sdk.session(testbed, &json!(proxy), calls)?;
        same(&wanted, &seen)?;
        let text = std::fs::read_to_string(&trace).context("there is no trace")?;
        let trace: Value = serde_json::from_str(&text).context("the trace is not valid JSON")?;
        let pairs = |pair: &Value| json!([pair["name"], pair["args"]]);
        let recorded: Vec<Value> = list(&trace["tool_calls"]).iter().map(pairs).collect();
        ensure!(
            json!(recorded) == *calls,
            "the trace has the calls {recorded:?}"
        );
        let failed = |result: &Value| result["is_error"] == true;
        let failures: Vec<bool> = list(&trace["tool_results"]).iter().map(failed).collect();
        let answers: Vec<bool> = list(&wanted["answers"])
            .iter()
            .map(|answer| answer["isError"] != false)
            .collect();
        ensure!(
            failures == answers,
            "the trace has the results {}",
            trace["tool_results"]
        );
        ensure!(
            list(&trace["catalog"]).len() == list(&wanted["tools"]).len(),
            "the trace has the catalog {}",
            trace["catalog"]
        );
    }
    Ok(())
}

/// A place for a trace, with nothing there.
fn trace_file(testbed: &Testbed) -> Result<PathBuf> {
    let trace = testbed.scratch("sdk-clients")?.join("trace.json");
    if trace.exists() {
        std::fs::remove_file(&trace)?;
    }
    Ok(trace)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn same(one: &Value, other: &Value) -> Result<()> {
    // The first line of the TypeScript SDK has the revision over HTTP only.
    for part in ["/tools", "/answers"] {
        ensure!(
            one.pointer(part) == other.pointer(part),
            "{part} of the session is not the same\n{one}\n{other}"
        );
    }
    Ok(())
}
