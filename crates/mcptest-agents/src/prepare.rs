//! The preparation of a run: its values, environment and files.

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::task::{AgentTask, ServerLaunch};
use crate::values::{Values, mcp_json};

/// The name of the file with the servers, in the folder of the run.
const MCP_JSON_FILE: &str = "mcp.json";

/// The values of a run.
pub(crate) fn values<'v>(
    agent: &'v Agent,
    servers: &'v [ServerLaunch],
    task: &AgentTask<'_>,
) -> Values<'v> {
    let folders = task.folders;
    let mut run = Map::new();
    let mut set = |name: &str, value: Value| {
        run.insert(name.to_owned(), value);
    };
    let path = |path: PathBuf| Value::from(path.to_string_lossy());
    set("prompt", prompt(agent, task).into());
    set("system", task.system.into());
    set("model", task.model.or(agent.model()).into());
    set("suite_dir", path(task.suite_dir.to_owned()));
    set("run_dir", path(folders.run_dir().to_owned()));
    set("home", path(folders.home()));
    set("cwd", path(folders.cwd()));
    set("tmp", path(folders.tmp()));
    set("cache", path(cache(agent, task)));
    set("base_url", agent.base_url.as_deref().into());
    let key = agent.api_key_env.as_deref().and_then(task.variables);
    set("api_key", key.into());
    set("mcp_json_file", path(folders.run_dir().join(MCP_JSON_FILE)));
    set("run", task.run.into());
    set("test", task.test.into());
    set("turn", 1.into());
    set("history", Value::Array(Vec::new()));
    // An agent that gives up on a server must still have time to report it.
    let server_start = agent.startup_timeout / 3 * 2;
    for (name, limit) in [
        ("call_timeout", agent.call_timeout),
        ("server_start_timeout", server_start),
        // For agents with one limit for both.
        ("server_timeout", agent.call_timeout.max(server_start)),
    ] {
        set(&format!("{name}_s"), limit.as_secs().max(1).into());
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        set(&format!("{name}_ms"), millis.into());
    }
    Values::new(agent, servers, run)
}

/// The prompt. An agent that has no place for the system prompt gets it before the prompt.
fn prompt(agent: &Agent, task: &AgentTask<'_>) -> String {
    match task.system {
        Some(system) if !agent.uses("system") => format!("{system}\n\n{}", task.prompt),
        _ => task.prompt.to_owned(),
    }
}

/// The cache folder: that of the run, or one that all runs of the agent share.
fn cache(agent: &Agent, task: &AgentTask<'_>) -> PathBuf {
    let own = task.folders.home().join(".cache");
    if !agent.shared_cache {
        return own;
    }
    let caches = (task.variables)("XDG_CACHE_HOME")
        .filter(|path| path.starts_with('/'))
        .map(PathBuf::from)
        .or_else(|| (task.variables)("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let name = agent.preset.as_deref().unwrap_or("agent");
    match caches.map(|caches| caches.join("mcptest").join("agents").join(name)) {
        Some(shared) if std::fs::create_dir_all(&shared).is_ok() => shared,
        _ => own,
    }
}

/// The whole environment of the agent.
pub(crate) fn environment(
    agent: &Agent,
    task: &AgentTask<'_>,
    values: &Values<'_>,
) -> Vec<(String, String)> {
    let home = task.folders.home();
    let in_home = |folder: &str| home.join(folder).to_string_lossy().into_owned();
    let mut env = vec![
        ("HOME".to_owned(), in_home("")),
        (
            "TMPDIR".to_owned(),
            task.folders.tmp().to_string_lossy().into_owned(),
        ),
        ("XDG_CONFIG_HOME".to_owned(), in_home(".config")),
        ("XDG_DATA_HOME".to_owned(), in_home(".local/share")),
        ("XDG_STATE_HOME".to_owned(), in_home(".local/state")),
        (
            "XDG_CACHE_HOME".to_owned(),
            cache(agent, task).to_string_lossy().into_owned(),
        ),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("NO_COLOR".to_owned(), "1".to_owned()),
    ];
    env[0].1 = home.to_string_lossy().into_owned();
    for name in std::iter::once("PATH").chain(agent.pass_env.iter().map(String::as_str)) {
        if let Some(value) = (task.variables)(name) {
            env.push((name.to_owned(), value));
        }
    }
    for (name, template) in &agent.env {
        if let Some(value) = values.text_if_set(template) {
            env.retain(|(known, _)| known != name);
            env.push((name.clone(), value));
        }
    }
    env
}

/// Writes the files of the run.
pub(crate) fn write_files(
    agent: &Agent,
    task: &AgentTask<'_>,
    values: &Values<'_>,
) -> io::Result<()> {
    if agent.uses("mcp_json_file") {
        let path = task.folders.run_dir().join(MCP_JSON_FILE);
        let content = mcp_json(task.servers).to_string();
        task.folders
            .write(&path.to_string_lossy(), content.as_bytes())?;
    }
    for (path, content) in &agent.files {
        let content = values.text(content);
        if !content.is_empty() {
            task.folders.write(&values.text(path), content.as_bytes())?;
        }
    }
    Ok(())
}
