//! Runs an agent once, from the command line: `run_agent AGENT.yml PROMPT [SERVER=COMMAND…]`.
//!
//! `AGENT.yml` has the same form as `agent:` in a suite. `{run_dir}` in a command is the folder of
//! the run. A further message of the user follows each `--then`. Prints the outcome as JSON.
#![allow(clippy::print_stdout)]

use std::collections::VecDeque;
use std::time::Instant;

use mcptest_agents::{Agent, AgentFile, AgentTask, NextTurn, RunFolders, ServerLaunch, run};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(prompt)) = (args.next(), args.next()) else {
        return Err("usage: run_agent AGENT.yml PROMPT [SERVER=COMMAND…] [--then MESSAGE]".into());
    };
    let bytes = std::fs::read(&file)?;
    let (written, _) = mcptest_yaml::from_bytes::<AgentFile>(&file, &bytes)
        .map_err(|problems| problems.to_string())?;
    let agent = Agent::resolve(&written).map_err(|problems| format!("{problems:#?}"))?;
    let folders = RunFolders::create(&std::env::temp_dir(), None)?;
    let folder = folders.run_dir().to_string_lossy().into_owned();
    let mut servers = Vec::new();
    let mut further = VecDeque::new();
    while let Some(arg) = args.next() {
        if arg == "--then" {
            further.extend(args.next());
        } else if let Some((name, command)) = arg.split_once('=') {
            let command = command.replace("{run_dir}", &folder);
            servers.push(ServerLaunch::Stdio {
                name: name.to_owned(),
                argv: command.split(' ').map(str::to_owned).collect(),
                env: Vec::new(),
            });
        }
    }
    let mut next = |_: String| -> std::pin::Pin<Box<dyn Future<Output = Option<String>> + Send>> {
        let message = further.pop_front();
        Box::pin(std::future::ready(message))
    };
    let next: &mut NextTurn<'_> = &mut next;
    let variables = |name: &str| std::env::var(name).ok();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let started = Instant::now();
    let outcome = runtime.block_on(run(
        &agent,
        AgentTask {
            prompt: &prompt,
            system: None,
            model: None,
            test: "example",
            run: 1,
            servers: &servers,
            turns: Some(next),
            suite_dir: std::path::Path::new("."),
            folders: &folders,
            variables: &variables,
        },
    ));
    let error = outcome.error.as_ref();
    let report = json!({
        "seconds": started.elapsed().as_secs_f64(),
        "ended": outcome.ended,
        "error": error.map(|error| [error.kind.as_str(), error.message.as_str()]),
        "final": outcome.final_response,
        "turns": outcome.turns.iter().map(|turn| &turn.content).collect::<Vec<_>>(),
        "tokens": outcome.tokens.map(|it| [it.input, it.output, it.cached, it.total]),
        "cost": outcome.cost_usd,
        "stop": outcome.stop,
        "exit": format!("{:?}", outcome.exit),
        "version": outcome.version,
        "builtin_calls": outcome.builtin_calls.iter().map(|call| json!({
            "name": call.name, "args": call.args, "is_error": call.is_error,
            "result": call.result, "turn": call.turn,
        })).collect::<Vec<_>>(),
        "failed_servers": outcome.failed_servers,
        "stderr": outcome.stderr_tail,
    });
    println!("{}", serde_json::to_string_pretty(&report)?);
    if let Ok(folder) = std::env::var("KEEP") {
        std::fs::write(format!("{folder}/stream"), &outcome.stream)?;
        for entry in std::fs::read_dir(folders.run_dir())?.flatten() {
            if entry.file_type()?.is_file() {
                std::fs::copy(
                    entry.path(),
                    format!("{folder}/{}", entry.file_name().to_string_lossy()),
                )?;
            }
        }
    }
    Ok(())
}
