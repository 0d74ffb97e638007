//! The folders of a run, a task, and a fake agent.

use std::future::ready;
use std::path::Path;
use std::pin::Pin;

use mcptest_agents::{
    Agent, AgentFile, AgentOutcome, AgentTask, NextTurn, RunFolders, ServerLaunch, run,
};

/// The folders of a run.
pub fn folders() -> RunFolders {
    RunFolders::create(&std::env::temp_dir(), None).unwrap()
}

pub fn agent(text: &str) -> Agent {
    let (file, _) = mcptest_yaml::from_bytes::<AgentFile>("agent.yml", text.as_bytes())
        .unwrap_or_else(|problems| panic!("{problems}"));
    Agent::resolve(&file).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// An agent that is a shell script, with further keys.
pub fn script(script: &str, keys: &str) -> Agent {
    let command = serde_json::json!(["/bin/sh", "-c", script, "agent", "{{prompt}}"]);
    agent(&format!("{{name: fake, command: {command}, {keys}}}"))
}

/// The same as an ACP agent.
pub fn acp_script(script: &str, keys: &str) -> Agent {
    let command = serde_json::json!(["/bin/sh", "-c", script]);
    agent(&format!("{{name: fake, acp: {command}, {keys}}}"))
}

pub fn weather() -> Vec<ServerLaunch> {
    vec![ServerLaunch::Stdio {
        name: "weather".into(),
        argv: vec!["weather-server".into(), "--fast".into()],
        env: vec![("TOKEN".into(), "t".into())],
    }]
}

/// Runs an agent in these folders, with further messages.
pub async fn run_in(folders: &RunFolders, agent: &Agent, further: &[&str]) -> AgentOutcome {
    let servers = weather();
    let mut further: Vec<String> = further
        .iter()
        .rev()
        .map(|text| (*text).to_owned())
        .collect();
    let mut next = |_: String| -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
        Box::pin(ready(further.pop()))
    };
    let next: &mut NextTurn<'_> = &mut next;
    let variables = |name: &str| match name {
        "PATH" => std::env::var("PATH").ok(),
        "PASSED" => Some("yes".to_owned()),
        "KEY" => Some("k-1".to_owned()),
        "HOME" => Some("/nonexistent-home".to_owned()),
        _ => None,
    };
    let task = AgentTask {
        prompt: "What is the weather?",
        system: None,
        model: None,
        test: "t",
        run: 3,
        servers: &servers,
        turns: Some(next),
        suite_dir: std::path::Path::new("."),
        folders,
        variables: &variables,
    };
    is_send(run(agent, task)).await
}

/// The runner spawns runs as tasks.
fn is_send<F: Future + Send>(future: F) -> F {
    future
}

pub async fn outcome(agent: &Agent) -> AgentOutcome {
    run_in(&folders(), agent, &[]).await
}

/// The kind of the run's error.
pub fn kind(outcome: &AgentOutcome) -> &'static str {
    outcome
        .error
        .as_ref()
        .map_or("none", |error| error.kind.as_str())
}

/// The processes that refer to a folder.
pub fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let stat = read("stat");
        let is_zombie = stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'));
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.parse::<u32>().is_ok()
            && pid != std::process::id().to_string()
            && !is_zombie
            && (read("cmdline").contains(&folder) || read("environ").contains(&folder))
        {
            found.push(format!("{pid}: {}", read("cmdline")));
        }
    }
    found
}
