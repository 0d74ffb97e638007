//! Agents that people install, as the subject of a suite (`agent:`): they must get the same figures
//! as the scripted model that makes the same calls, in parallel runs, and leave nothing behind.
//!
//! Their model is a script that a stand-in provider plays (`producers/scripted_llm.py`).

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::Checks;
use super::testbed::{Testbed, expect, report};
use crate::workspace;

/// The runs of each test, and of a sampled one.
pub(super) const RUNS: u32 = 10;
const SAMPLED_RUNS: u32 = 3;

/// A preset, and the settings that lead it to the stand-in.
pub(super) struct Subject {
    pub(super) preset: &'static str,
    model: &'static str,
    /// The path after the stand-in's address.
    path: &'static str,
    /// The variable with the key of its provider.
    pub(super) key: &'static str,
    /// True if it can be given faults: its turns are those of the script.
    faults: bool,
}

pub(super) const SUBJECTS: [Subject; 9] = [
    subject("claude-code", "claude-sonnet-4-5", "", "ANTHROPIC_API_KEY"),
    subject("codex", "gpt-5", "/v1", "OPENAI_API_KEY"),
    subject("gemini-cli", "gemini-2.5-flash", "", "GEMINI_API_KEY"),
    subject(
        "opencode",
        "anthropic/claude-sonnet-4-5",
        "/v1",
        "ANTHROPIC_API_KEY",
    ),
    subject("copilot", "gpt-5", "/v1", "COPILOT_PROVIDER_API_KEY"),
    subject(
        "claude-code-acp",
        "claude-sonnet-4-5",
        "",
        "ANTHROPIC_API_KEY",
    ),
    subject("codex-acp", "gpt-5", "/v1", "OPENAI_API_KEY"),
    subject("gemini-acp", "gemini-2.5-flash", "", "GEMINI_API_KEY"),
    subject(
        "opencode-acp",
        "anthropic/claude-sonnet-4-5",
        "/v1",
        "ANTHROPIC_API_KEY",
    ),
];

const fn subject(
    preset: &'static str,
    model: &'static str,
    path: &'static str,
    key: &'static str,
) -> Subject {
    Subject {
        preset,
        model,
        path,
        key,
        faults: matches!(preset.as_bytes(), b"claude-code" | b"codex"),
    }
}

/// The way in which an agent reaches its servers.
#[derive(Clone, Copy)]
enum Transport {
    /// It starts a command for each.
    Stdio,
    /// Each has an address.
    Http,
}

impl Transport {
    /// The value of `transport:`.
    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// Claude Code.
pub(super) fn claude_code() -> &'static Subject {
    &SUBJECTS[0]
}

/// The subjects that are checked with all others. Other checks install their programs, too.
pub(super) const SAMPLED: [&str; 2] = ["claude-code", "codex"];

/// Runs the checks. Ten agents in parallel take long: unless a name is given (`cargo xtask e2e
/// 'agent under test'`), two agents make a few runs.
pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    if checks.only.is_none() {
        for subject in SUBJECTS.iter().filter(|it| SAMPLED.contains(&it.preset)) {
            let name = format!(
                "agent under test {}: {SAMPLED_RUNS} runs score as the scripted model does",
                subject.preset
            );
            checks.check(&name, || {
                same_figures(testbed, subject, Transport::Stdio, SAMPLED_RUNS)
            });
        }
        checks.check(
            &format!("agent under test claude-code: {SAMPLED_RUNS} runs with servers by address"),
            || same_figures(testbed, claude_code(), Transport::Http, SAMPLED_RUNS),
        );
        return;
    }
    for subject in &SUBJECTS {
        let preset = subject.preset;
        checks.check(
            &format!("agent under test {preset}: {RUNS} runs score as the scripted model does"),
            || same_figures(testbed, subject, Transport::Stdio, RUNS),
        );
        checks.check(
            &format!("agent under test {preset}: {SAMPLED_RUNS} runs with servers by address"),
            || same_figures(testbed, subject, Transport::Http, SAMPLED_RUNS),
        );
        if subject.faults {
            checks.check(
                &format!("agent under test {preset}: it meets faults and distractors"),
                || faults_and_distractors(testbed, subject),
            );
        }
        checks.check(
            &format!("agent under test {preset}: failures are errors of the right kind"),
            || failures(testbed, subject),
        );
    }
}

/// A provider that plays a script, until it is dropped.
pub(super) struct Provider {
    child: Child,
    pub(super) address: String,
    /// Outside the folder of the checks, whose processes must all end with each run.
    _folder: tempfile::TempDir,
}

impl Provider {
    pub(super) fn start(script: &Value) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("script.json");
        std::fs::write(&path, script.to_string())?;
        let program = workspace::root().join("xtask/src/e2e/producers/scripted_llm.py");
        let mut child = Command::new("python3")
            .arg(program)
            .arg(&path)
            .arg(folder.path().join("llm.jsonl"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the stand-in provider")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ");
        let address = address.context("the stand-in provider is not listening")?;
        Ok(Self {
            address: address.to_owned(),
            child,
            _folder: folder,
        })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn call(server: &str, tool: &str, args: Value) -> Value {
    json!({"server": server, "tool": tool, "args": args})
}

/// Two servers, a failed call, a call that is made twice.
pub(super) fn script() -> Value {
    let time = json!({
        "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"
    });
    json!({"turns": [
        {"say": "First the weather.", "calls": [call("weather", "get_weather", json!({"city": "Rome"}))]},
        {"calls": [call("weather", "delete-city", json!({"city": "Rome"}))]},
        {"say": "Now the time.", "calls": [call("time", "convert_time", time)]},
        {"calls": [call("weather", "get_weather", json!({"city": "Bern"}))]},
        {"say": "Bern has 22 degrees; Rome could not be deleted."},
    ]})
}

/// The same script for `builtin/scripted`.
fn scripted(script: &Value) -> Value {
    let turns = script["turns"].as_array().cloned().unwrap_or_default();
    let turn = |turn: &Value| {
        let calls = turn["calls"].as_array().cloned().unwrap_or_default();
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| {
                let tool = format!(
                    "{}.{}",
                    call["server"].as_str().unwrap_or_default(),
                    call["tool"].as_str().unwrap_or_default()
                );
                json!({"tool": tool, "args": call["args"]})
            })
            .collect();
        let mut played = json!({"calls": calls});
        if let Some(say) = turn.get("say") {
            played["say"] = say.clone();
        }
        played
    };
    json!([turns.iter().map(turn).collect::<Vec<_>>()])
}

/// The gates of both tests: all that do not count tokens.
fn gates() -> Map<String, Value> {
    let any = |server: &str, name: &str| json!({"server": server, "name": name, "args": "any"});
    let gates = json!({
        "expect": [
            {"tool_names": {"contains": "get_weather"}},
            {"final_response": {"contains": "Bern has 22 degrees"}},
        ],
        "equal_function_sets": {"classes": [
            {"name": "weather", "members": ["weather.get_weather"]},
            {"name": "time", "members": ["time.convert_time"]},
        ]},
        "tool_selection": {"expected_tool": "get_weather", "min_selection_rate": 1.0},
        "orchestration": {},
        "trajectory": {"mode": "strict", "calls": [
            any("weather", "get_weather"), any("weather", "delete-city"),
            any("time", "convert_time"), any("weather", "get_weather"),
        ]},
        "golden_path": {"calls": ["get_weather", "delete-city", "convert_time", "get_weather"],
                        "expect": [{"golden_path.penalty": {"<=": 1}}]},
        "reliability": {},
        "narrative": {},
    });
    gates.as_object().cloned().unwrap_or_default()
}

fn servers(testbed: &Testbed) -> Value {
    let weather = workspace::root().join("xtask/src/e2e/producers/weather.yml");
    json!({
        "weather": {"command": ["mcptest", "mock", "--tools-from", weather]},
        "time": {"command": [testbed.parts.time_bin.join("mcp-server-time"), "--local-timezone", "UTC"]},
    })
}

/// The suite's `agent:`.
pub(super) fn agent(subject: &Subject, provider: &Provider) -> Value {
    json!({
        "preset": subject.preset,
        "model": subject.model,
        "base_url": format!("{}{}", provider.address, subject.path),
        "api_key_env": subject.key,
        "timeout": "4m",
        // Ten agents start their servers in parallel.
        "startup_timeout": "3m",
    })
}

/// Runs a suite with the agent on PATH. Returns the report.
pub(super) fn run_suite(
    testbed: &Testbed,
    subject: &Subject,
    folder: &Path,
    suite: &Value,
) -> Result<Value> {
    let mut command = suite_command(testbed, subject, folder, suite)?;
    report(&testbed.finish(command.arg("--live"))?)
}

/// The command that runs a suite with the agent on PATH.
pub(super) fn suite_command(
    testbed: &Testbed,
    subject: &Subject,
    folder: &Path,
    suite: &Value,
) -> Result<Command> {
    let path = folder.join("suite.yml");
    std::fs::write(&path, format!("{suite:#}"))?;
    let path = path.to_string_lossy().into_owned();
    let mut command = testbed.mcptest(&["run", &path, "--reporter", "json"])?;
    let mut bins = vec![testbed.parts.agents_bin()?];
    if !SAMPLED.contains(&subject.preset) {
        bins.insert(0, testbed.parts.more_agents_bin()?);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = bins.into_iter().chain(std::env::split_paths(&paths));
    command
        .env("PATH", std::env::join_paths(paths)?)
        .env(subject.key, "sk-stand-in-0123456789");
    Ok(command)
}

/// The values of a test's gates, by target, without those that depend on tokens.
fn values(test: &Value) -> Map<String, Value> {
    let gates = test["gates"].as_array().cloned().unwrap_or_default();
    let all = gates.iter().filter_map(|gate| gate["values"].as_object());
    all.flatten()
        .filter(|(target, _)| !target.contains("token") && !target.contains("cost"))
        .map(|(target, value)| (target.clone(), value.clone()))
        .collect()
}

/// Each gate has the same value for the agent as for the scripted model.
fn same_figures(
    testbed: &Testbed,
    subject: &Subject,
    transport: Transport,
    runs: u32,
) -> Result<()> {
    let name = transport.name();
    let folder = testbed.scratch(&format!("under-test-{}-{name}", subject.preset))?;
    let provider = Provider::start(&script())?;
    let mut agent = agent(subject, &provider);
    agent["transport"] = name.into();
    let suite = comparison(&servers(testbed), &agent, runs);
    let report = run_suite(testbed, subject, &folder, &suite)?;
    compare(&report, runs)?;
    let version = report.pointer("/tests/0/runs/0/trace/agent/version");
    ensure!(
        version.is_some(),
        "the report does not name the agent's version"
    );
    Ok(())
}

/// A suite with an agent and the scripted model that makes the same calls.
pub(super) fn comparison(servers: &Value, agent: &Value, runs: u32) -> Value {
    let common = json!({"servers": ["weather", "time"], "prompt": "Please do it.", "runs": runs});
    let test = |name: &str, more: Value| {
        let mut test = gates();
        for part in [&common, &more] {
            test.extend(part.as_object().cloned().unwrap_or_default());
        }
        test.insert("name".to_owned(), name.into());
        Value::Object(test)
    };
    json!({
        "name": "agents under test",
        "servers": servers,
        "agents": [
            test("the agent", json!({"agent": agent})),
            test("the script", json!({"model": "builtin/scripted", "script": scripted(&script())})),
        ],
        "run_options": {"jobs": runs},
    })
}

/// Compares the two tests of the suite.
pub(super) fn compare(report: &Value, runs: u32) -> Result<()> {
    expect(report, "/tests/1/verdict", "pass")?;
    expect(report, "/tests/0/verdict", "pass")?;
    let (agent, script) = (values(&report["tests"][0]), values(&report["tests"][1]));
    ensure!(
        agent == script && agent.len() > 15,
        "the agent has {agent:?}, the script {script:?}"
    );
    let made = report["tests"][0]["runs"].as_array().map_or(0, Vec::len);
    ensure!(made == runs as usize, "{made} runs");
    Ok(())
}

/// A fault is met and recovered from; distractors are offered.
fn faults_and_distractors(testbed: &Testbed, subject: &Subject) -> Result<()> {
    let folder = testbed.scratch(&format!("under-test-{}-faults", subject.preset))?;
    let again = call("weather", "get_weather", json!({"city": "Rome"}));
    let script = json!({"turns": [
        {"calls": [again]}, {"calls": [again]}, {"say": "It is 22 degrees in Rome."},
    ]});
    let provider = Provider::start(&script)?;
    let suite = json!({
        "name": "faults",
        "servers": servers(testbed),
        "faults": [{"name": "flaky", "target": {"tool": "get_weather"},
                    "kind": "recover_after", "failures": 1}],
        "agents": [{
            "name": "recovers", "servers": ["weather"], "prompt": "What is the weather in Rome?",
            "agent": agent(subject, &provider), "runs": 2,
            "inject": ["flaky"],
            "recovery": {"max_detection_ms": 3000},
            "distractors": {"count": 4, "source": {"from": "catalog"}, "correct": ["weather.get_weather"]},
        }],
    });
    let report = run_suite(testbed, subject, &folder, &suite)?;
    expect(&report, "/tests/0/verdict", "pass")?;
    let found = values(&report["tests"][0]);
    for (target, value) in [("recovery.recovered", 1), ("distractors.accuracy", 100)] {
        ensure!(
            found.get(target) == Some(&value.into()),
            "{target} in {found:?}"
        );
    }
    let trace = &report["tests"][0]["runs"][0]["trace"];
    expect(trace, "/tool_results/0/fault", "flaky")?;
    let offered = trace["distractors"].as_array().map_or(0, Vec::len);
    ensure!(offered == 4, "{offered} distractors");
    Ok(())
}

/// A refused key, a server that cannot start, and an agent that is not installed.
fn failures(testbed: &Testbed, subject: &Subject) -> Result<()> {
    let folder = testbed.scratch(&format!("under-test-{}-failures", subject.preset))?;
    let provider = Provider::start(&json!({"turns": [
        {"status": 401, "calls": [call("weather", "get_weather", json!({"city": "Rome"}))]}
    ]}))?;
    let test = |name: &str, servers: Value, agent: Value| {
        json!({"name": name, "servers": servers, "prompt": "Please do it.", "agent": agent,
               "expect": [{"tool_names": {"contains": "get_weather"}}]})
    };
    let mut all = servers(testbed);
    all["dead"] = json!({"command": ["false"]});
    let suite = json!({
        "name": "failures",
        "servers": all,
        "agents": [
            test("login", json!(["weather"]), agent(subject, &provider)),
            test("server", json!(["dead"]), agent(subject, &provider)),
            test("missing", json!(["weather"]), json!({"command": ["no-such-agent", "{{prompt}}"]})),
        ],
    });
    let report = run_suite(testbed, subject, &folder, &suite)?;
    for (index, kind) in ["login", "server_missing", "not_started"]
        .iter()
        .enumerate()
    {
        expect(&report, &format!("/tests/{index}/verdict"), "error")?;
        expect(&report, &format!("/tests/{index}/runs/0/error/kind"), *kind)?;
    }
    Ok(())
}
