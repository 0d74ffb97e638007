//! The programs of `examples/own-agents`, each on another SDK, as agents under test: they must get
//! the figures of the scripted model that makes the same calls.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::agents_under_test::{Provider, RUNS, compare, comparison, script};
use super::testbed::{Testbed, report};
use crate::workspace;

const EXAMPLE: &str = "examples/own-agents";

/// Runs the checks if a name is given: ten agents in parallel take long.
pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    if checks.only.is_none() {
        return;
    }
    for (index, name) in ["openai-agents", "langgraph", "claude-agent-sdk"]
        .into_iter()
        .enumerate()
    {
        checks.check(
            &format!("own agent under test {name}: {RUNS} runs score as the scripted model does"),
            || same_figures(testbed, index, name),
        );
    }
    checks.check(
        &format!("own agent under test over HTTP: {RUNS} runs score as the scripted model does"),
        || same_figures_of_the_service(testbed),
    );
}

fn same_figures(testbed: &Testbed, index: usize, name: &str) -> Result<()> {
    let python: PathBuf = match name {
        "langgraph" => testbed.parts.langgraph_python()?,
        "claude-agent-sdk" => testbed.parts.claude_sdk_python()?,
        _ => testbed.parts.openai_agents_python()?,
    };
    let example = workspace::root().join(EXAMPLE);
    let agent = agent_of(&example.join("mcptest.yml"), index)?;
    ensure!(agent["name"] == name, "the example has {}", agent["name"]);
    // The programs are beside the suite.
    let folder = testbed.scratch(&format!("own-agent-{name}"))?;
    for entry in std::fs::read_dir(&example)? {
        let path = entry?.path();
        if let Some(file) = path
            .file_name()
            .filter(|_| path.extension() == Some("py".as_ref()))
        {
            std::fs::copy(&path, folder.join(file))?;
        }
    }
    let suite = folder.join("suite.yml");
    std::fs::write(
        &suite,
        format!("{:#}", comparison(&servers(), &agent, RUNS)),
    )?;
    let provider = Provider::start(&script())?;
    let suite = suite.to_string_lossy().into_owned();
    let mut command = testbed.mcptest(&["run", &suite, "--reporter", "json", "--live"])?;
    command
        .env("PYTHON", python)
        .env("OPENAI_BASE_URL", format!("{}/v1", provider.address))
        .env("OPENAI_API_KEY", "sk-stand-in-0123456789")
        .env("ANTHROPIC_BASE_URL", &provider.address)
        .env("ANTHROPIC_API_KEY", "sk-stand-in-0123456789");
    compare(&report(&testbed.finish(&mut command)?)?, RUNS)
}

/// The example's service, which is started here, as the agent of a suite.
fn same_figures_of_the_service(testbed: &Testbed) -> Result<()> {
    let example = workspace::root().join(EXAMPLE);
    let mut agent = agent_of(&example.join("http.yml"), 0)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    agent["url"] = format!("http://127.0.0.1:{port}/chat").into();
    let provider = Provider::start(&script())?;
    let mut service = Service(
        Command::new(testbed.parts.openai_agents_python()?)
            .arg(example.join("http_agent.py"))
            .arg(port.to_string())
            .env("OPENAI_BASE_URL", format!("{}/v1", provider.address))
            .env("OPENAI_API_KEY", "sk-stand-in-0123456789")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the service")?,
    );
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(service.0.try_wait()?.is_none(), "the service ended");
        std::thread::sleep(Duration::from_millis(100));
    }
    let folder = testbed.scratch("own-service")?;
    let suite = folder.join("suite.yml");
    std::fs::write(
        &suite,
        format!("{:#}", comparison(&servers(), &agent, RUNS)),
    )?;
    let suite = suite.to_string_lossy().into_owned();
    let mut command = testbed.mcptest(&["run", &suite, "--reporter", "json", "--live"])?;
    compare(&report(&testbed.finish(&mut command)?)?, RUNS)
}

/// A process that is killed when it is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two mock servers. LangGraph starts a server for each call, so they must start quickly.
fn servers() -> Value {
    let mock = |name: &str| {
        let file = workspace::root().join(format!("xtask/src/e2e/producers/{name}.yml"));
        json!({"command": ["mcptest", "mock", "--tools-from", file]})
    };
    json!({"weather": mock("weather"), "time": mock("time")})
}

/// An agent of the example's test, as written.
fn agent_of(suite: &Path, index: usize) -> Result<Value> {
    let text = std::fs::read(suite).with_context(|| format!("cannot read {}", suite.display()))?;
    let limits = mcptest_yaml::DocumentLimits::default();
    let document = mcptest_yaml::Document::parse(EXAMPLE, &text, &limits)
        .map_err(|problem| anyhow::anyhow!("{problem:?}"))?;
    let document = document.root().to_json();
    let agent = document.pointer(&format!("/agents/0/agent/{index}"));
    agent.cloned().context("the example has fewer agents")
}
