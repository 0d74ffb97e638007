//! `mcptest agents`.

use std::fmt::Write as _;
use std::time::Duration;

use mcptest_agents::{
    Agent, AgentKind, AgentTask, CheckReport, Preset, RunFolders, StandIn, preset, presets,
};
use mcptest_json::text::one_line;
use mcptest_report::ExitCode;
use mcptest_yaml::suggest;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::{
    AgentsArgs, AgentsCheckArgs, AgentsCommand, AgentsListArgs, AgentsShowArgs, Format,
};
use crate::failure::Failure;
use crate::output::Output;

/// The answer of the stand-in for the model.
const ANSWER: &str = "I am ready.";

pub fn agents(args: &AgentsArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        AgentsCommand::List(args) => list(args, output),
        AgentsCommand::Show(args) => show(args, output),
        AgentsCommand::Check(args) => check(args, output),
    }
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    preset(name).ok_or_else(|| {
        let near = suggest(name, presets().iter().map(|preset| preset.name));
        let hint = near.map_or_else(
            || "`mcptest agents list` lists the presets".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let name = one_line(name);
        Failure::Message(format!("there is no preset `{name}`; {hint}"))
    })
}

fn resolve(preset: &Preset) -> Result<Agent, Failure> {
    let file = preset.file()?;
    Agent::resolve(&file).map_err(|problems| {
        let messages: Vec<String> = problems.into_iter().map(|one| one.message).collect();
        Failure::Message(format!("preset `{}`: {}", preset.name, messages.join("; ")))
    })
}

fn kind(agent: &Agent) -> &'static str {
    match agent.kind() {
        AgentKind::Command => "command",
        AgentKind::Acp => "acp",
        AgentKind::Http => "http",
    }
}

fn list(args: &AgentsListArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut rows = Vec::new();
    for preset in presets() {
        rows.push((preset, resolve(preset)?));
    }
    let text = match args.how.format {
        Format::Json => {
            let row = |(preset, agent): &(&Preset, Agent)| {
                json!({
                    "name": preset.name,
                    "about": agent.about(),
                    "kind": kind(agent),
                    "tested": agent.tested(),
                })
            };
            let rows: Value = rows.iter().map(row).collect();
            format!("{rows:#}\n")
        }
        Format::Pretty => {
            let width = rows.iter().map(|(preset, _)| preset.name.len()).max();
            let width = width.unwrap_or(0);
            let mut out = String::new();
            for (preset, agent) in &rows {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    out,
                    "{:<width$}  {}  (tested with {})",
                    preset.name,
                    agent.about().unwrap_or_default(),
                    agent.tested().unwrap_or("no version"),
                );
            }
            out
        }
    };
    output.result(&text);
    Ok(ExitCode::Passed)
}

fn show(args: &AgentsShowArgs, output: &Output) -> Result<ExitCode, Failure> {
    output.result(find(&args.name)?.source);
    Ok(ExitCode::Passed)
}

/// The result of checking an agent.
struct AgentCheck {
    name: &'static str,
    installation: CheckReport,
    /// The problem of the turn; `None` if it worked.
    problem: Option<String>,
}

fn check(args: &AgentsCheckArgs, output: &Output) -> Result<ExitCode, Failure> {
    let found: Vec<&'static Preset> = args
        .names
        .iter()
        .map(|name| find(name))
        .collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let mut checks = Vec::new();
    for preset in found {
        checks.push(runtime.block_on(check_one(preset, args.timeout))?);
    }
    mcptest_runner::kill_all();
    output.result(&match args.how.format {
        Format::Json => {
            let all: Value = checks.iter().map(as_json).collect();
            format!("{all:#}\n")
        }
        Format::Pretty => checks.iter().map(lines).collect(),
    });
    let works = checks.iter().all(|check| check.problem.is_none());
    Ok(if works {
        ExitCode::Passed
    } else {
        ExitCode::CouldNotRun
    })
}

async fn check_one(preset: &'static Preset, limit: Duration) -> Result<AgentCheck, Failure> {
    let stand_in = StandIn::start(ANSWER)
        .await
        .map_err(|error| format!("cannot open a port on the loopback interface: {error}"))?;
    let mut file = preset.file()?;
    file.base_url = Some(format!("{}/v1", stand_in.base_url()));
    let agent = Agent::resolve(&file).map_err(|problems| {
        let messages: Vec<String> = problems.into_iter().map(|one| one.message).collect();
        Failure::Message(messages.join("; "))
    })?;
    let key = file.api_key_env.clone();
    let variables = |name: &str| match key.as_deref() {
        Some(key) if key == name => Some("stand-in".to_owned()),
        _ => std::env::var(name).ok(),
    };
    let tmp = std::env::temp_dir();
    let mut check = AgentCheck {
        name: preset.name,
        installation: mcptest_agents::check(&agent, &variables, &tmp).await,
        problem: None,
    };
    if let Some(program) = &check.installation.missing {
        check.problem = Some(format!("`{program}` is not on PATH: install it first"));
        return Ok(check);
    }
    // The keys of a real account are not for a check without network.
    let variables = |name: &str| match name {
        "PATH" | "HOME" | "XDG_CACHE_HOME" => std::env::var(name).ok(),
        name => variables(name).filter(|_| key.as_deref() == Some(name)),
    };
    let folders = RunFolders::create(&tmp, None)
        .map_err(|error| format!("cannot prepare the folders of the turn: {error}"))?;
    let task = AgentTask {
        prompt: "Are you ready?",
        system: None,
        model: None,
        test: "check",
        run: 1,
        servers: &[],
        turns: None,
        suite_dir: std::path::Path::new("."),
        folders: &folders,
        variables: &variables,
    };
    check.problem = match timeout(limit, mcptest_agents::run(&agent, task)).await {
        Err(_) => Some(format!("no end of the turn within {} s", limit.as_secs())),
        Ok(outcome) => match (outcome.error, outcome.final_response) {
            (Some(error), _) => {
                let stderr = outcome.stderr_tail.join("\n");
                Some(format!(
                    "{}: {}\n{stderr}",
                    error.kind.as_str(),
                    error.message
                ))
            }
            (None, Some(answer)) if answer.contains(ANSWER) => None,
            (None, answer) => Some(format!(
                "it did not repeat the model's answer: {}",
                one_line(&answer.unwrap_or_default())
            )),
        },
    };
    Ok(check)
}

fn as_json(check: &AgentCheck) -> Value {
    json!({
        "name": check.name,
        "tested": check.installation.tested,
        "installed": check.installation.missing.is_none(),
        "version": check.installation.version,
        "works": check.problem.is_none(),
        "problem": check.problem,
    })
}

fn lines(check: &AgentCheck) -> String {
    let mut out = String::new();
    let verdict = match check.problem {
        None => "works",
        Some(_) if check.installation.missing.is_some() => "not installed",
        Some(_) => "does not work",
    };
    let CheckReport {
        version, tested, ..
    } = &check.installation;
    let version = version.as_deref().unwrap_or("version unknown");
    let tested = tested.as_deref().unwrap_or("no version");
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{}: {verdict}  ({version}; tested with {tested})",
        check.name
    );
    for line in check.problem.iter().flat_map(|problem| problem.lines()) {
        let _ = writeln!(out, "  {}", one_line(line));
    }
    out
}
