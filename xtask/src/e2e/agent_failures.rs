//! Failures of agents that people install, and of their servers and providers: each must end as a
//! row of its kind in bounded time, and leave no process behind.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Checks;
use super::agents_under_test::{self as subjects, Provider, SUBJECTS, Subject, call};
use super::testbed::{Testbed, expect, report};

/// The subjects of these checks. One of them speaks ACP.
const CHECKED: [&str; 3] = ["claude-code", "codex", "claude-code-acp"];

/// The limit of a run whose model never answers.
const HUNG_LIMIT: Duration = Duration::from_secs(15);

/// The time within which each run ends, with agents that start slowly on a busy machine.
const BOUND_MS: u64 = 60_000;

/// Runs the checks if a name is given: each agent is started a dozen times.
pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    if checks.only.is_none() {
        return;
    }
    for subject in SUBJECTS.iter().filter(|it| CHECKED.contains(&it.preset)) {
        let preset = subject.preset;
        checks.check(
            &format!("agent failures of {preset}: each is a row of its kind in bounded time"),
            || each_failure(testbed, subject),
        );
        checks.check(
            &format!("agent failures of {preset}: a killed agent is an error"),
            || killed(testbed, subject),
        );
    }
}

/// A way to fail, and the row that reports it.
struct Failure {
    name: &'static str,
    script: Value,
    server: &'static str,
    agent: Value,
    /// The kind of the error; `None` if the run is evidence.
    kind: Option<&'static str>,
    verdict: &'static str,
    /// A part of the message that names the cause or the remedy.
    message: &'static str,
}

fn failures(subject: &Subject, marker: &str) -> Vec<Failure> {
    let weather = call("weather", "get_weather", json!({"city": "Rome"}));
    let answer = json!({"turns": [{"calls": [weather]}, {"say": "It is 22 degrees in Rome."}]});
    let refused =
        |status: u16| json!({"turns": [{"status": status, "calls": [weather]}, {"say": "Done."}]});
    let evidence = |name, server, verdict| Failure {
        name,
        script: answer.clone(),
        server,
        agent: json!({}),
        kind: None,
        verdict,
        message: "",
    };
    let error = |name, script, kind, message| Failure {
        name,
        script,
        server: "weather",
        agent: json!({}),
        kind: Some(kind),
        verdict: "error",
        message,
    };
    let mut rejected = evidence("permission refused", "weather", "fail");
    rejected.agent = json!({"permissions": "reject"});
    let mut dead = error(
        "server that cannot start",
        answer.clone(),
        "server_missing",
        "the licence is missing",
    );
    dead.server = "dies";
    let mut unknown = error("login missing", answer.clone(), "login", subject.key);
    unknown.agent = json!({"api_key_env": "E2E_NO_SUCH_KEY"});
    unknown.message = "E2E_NO_SUCH_KEY";
    let hang = json!({"turns": [{"calls": [weather]}, {"wait": 600, "say": "Late."}]});
    let mut hung = error("hung agent", hang, "timeout", "`timeout`");
    hung.agent = json!({"timeout": format!("{}s", HUNG_LIMIT.as_secs())});
    let mut background = evidence("background process", "weather", "pass");
    let left = format!("sleep {marker} >/dev/null 2>&1 &");
    // The names and arguments of the agents' own shells.
    let shell = match subject.preset {
        "codex" => call("", "exec_command", json!({"cmd": left})),
        _ => call("", "Bash", json!({"command": left, "description": "Wait"})),
    };
    background.script =
        json!({"turns": [{"calls": [shell]}, {"calls": [weather]}, {"say": "Rome has 22."}]});
    vec![
        dead,
        evidence("slow server", "slow", "pass"),
        rejected,
        unknown,
        error("refused key", refused(401), "login", subject.key),
        error("rate limit", refused(429), "rate_limit", ""),
        evidence("hung tool", "hangs", "pass"),
        hung,
        background,
    ]
}

/// A mock of the weather server that starts late, dies from its second start on, or never answers.
fn servers(testbed: &Testbed, folder: &Path) -> Value {
    let manifest = crate::workspace::root().join("xtask/src/e2e/producers/weather.yml");
    let mock = format!(
        "exec '{}' mock --tools-from '{}'",
        testbed.program.display(),
        manifest.display()
    );
    let shell = |script: String| json!({"command": ["sh", "-c", script]});
    // The tools are listed once before any agent is started: from then on it does not start.
    let dies = format!(
        "if mkdir '{}'; then {mock}; fi; echo the licence is missing >&2; exit 1",
        folder.join("was-started").display()
    );
    let mut hangs = shell(format!("{mock} --fault hang"));
    hangs["timeout"] = "3s".into();
    json!({
        "weather": shell(mock.clone()),
        "slow": shell(format!("sleep 6; {mock}")),
        "dies": shell(dies),
        "hangs": hangs,
    })
}

fn each_failure(testbed: &Testbed, subject: &Subject) -> Result<()> {
    let folder = testbed.scratch(&format!("agent-failures-{}", subject.preset))?;
    // No other process waits for this number of seconds.
    let marker = format!("86{:07}", std::process::id());
    let failures = failures(subject, &marker);
    let providers: Vec<Provider> = failures
        .iter()
        .map(|failure| Provider::start(&failure.script))
        .collect::<Result<_>>()?;
    let tests: Vec<Value> = failures
        .iter()
        .zip(&providers)
        .map(|(failure, provider)| {
            let mut agent = subjects::agent(subject, provider);
            for (key, value) in failure.agent.as_object().into_iter().flatten() {
                agent[key] = value.clone();
            }
            json!({
                "name": failure.name, "servers": [failure.server], "agent": agent,
                "prompt": "What is the weather in Rome?",
                "expect": [{"tool_names": {"contains": "get_weather"}}],
            })
        })
        .collect();
    let suite = json!({
        "name": "failures", "servers": servers(testbed, &folder), "agents": tests,
        "run_options": {"jobs": 3},
    });
    let report = subjects::run_suite(testbed, subject, &folder, &suite)?;
    ensure!(
        alive(&marker).is_empty(),
        "the background process is still there"
    );
    for (index, failure) in failures.iter().enumerate() {
        judge(&report, index, failure).with_context(|| failure.name)?;
    }
    expect(
        &report,
        "/tests/6/runs/0/trace/tool_results/0/error_kind",
        "timeout",
    )
}

fn judge(report: &Value, index: usize, failure: &Failure) -> Result<()> {
    let at = |path: &str| format!("/tests/{index}{path}");
    expect(report, &at("/verdict"), failure.verdict)?;
    let kind = failure.kind.map_or(Value::Null, Value::from);
    expect(report, &at("/runs/0/error/kind"), kind)?;
    let message = report.pointer(&at("/runs/0/error/message"));
    let message = message.and_then(Value::as_str).unwrap_or_default();
    ensure!(
        message.contains(failure.message),
        "{:?} is not in the message: {message}",
        failure.message
    );
    let times = report.pointer("/timing/tests").and_then(Value::as_array);
    let took = times
        .into_iter()
        .flatten()
        .find(|test| test["name"] == failure.name);
    let took = took.and_then(|test| test["duration_ms"].as_u64());
    let took = took.context("the report has no duration")?;
    ensure!(took < BOUND_MS, "the run took {took} ms");
    Ok(())
}

/// The agent is killed while it waits for its model.
fn killed(testbed: &Testbed, subject: &Subject) -> Result<()> {
    let folder = testbed.scratch(&format!("agent-killed-{}", subject.preset))?;
    let weather = call("weather", "get_weather", json!({"city": "Rome"}));
    let script = json!({"turns": [{"calls": [weather]}, {"wait": 600, "say": "Late."}]});
    let provider = Provider::start(&script)?;
    let seen = folder.join("seen.jsonl");
    let manifest = crate::workspace::root().join("xtask/src/e2e/producers/weather.yml");
    let server =
        json!({"command": ["mcptest", "mock", "--tools-from", manifest, "--record", seen]});
    let suite = json!({
        "name": "killed", "servers": {"weather": server},
        "agents": [{
            "name": "killed", "servers": ["weather"], "prompt": "What is the weather in Rome?",
            "agent": subjects::agent(subject, &provider),
            "expect": [{"tool_names": {"contains": "get_weather"}}],
        }],
    });
    let mut command = subjects::suite_command(testbed, subject, &folder, &suite)?;
    // Agents of other programs are none of ours.
    let others = agents(subject);
    let mut running = testbed.start(&mut command)?;
    running.wait_until("a call of the agent", || {
        std::fs::read_to_string(&seen).is_ok_and(|seen| seen.contains("tools/call"))
    })?;
    let began = Instant::now();
    for pid in agents(subject).difference(&others) {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let report = report(&running.wait()?)?;
    ensure!(
        began.elapsed() < Duration::from_secs(30),
        "the run ended {:?} after its agent",
        began.elapsed()
    );
    expect(&report, "/tests/0/verdict", "error")?;
    expect(&report, "/tests/0/runs/0/error/kind", "crashed")?;
    let left = agents(subject).difference(&others).count();
    ensure!(left == 0, "{left} processes of the agent are still there");
    Ok(())
}

/// The processes of an agent, by the arguments that all of them have.
fn agents(subject: &Subject) -> HashSet<Pid> {
    match subject.preset {
        "claude-code-acp" => alive("claude-agent-acp"),
        _ => alive("What is the weather in Rome?"),
    }
}

/// The processes whose arguments contain a string.
fn alive(argument: &str) -> HashSet<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return HashSet::new();
    };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let words = std::fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            words.contains(argument).then_some(pid)
        })
        .collect()
}
