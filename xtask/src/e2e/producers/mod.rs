//! Agents and SDKs that we did not write, run on the spot: the logs that they leave must say the
//! same as our proxy, which recorded the calls on their way to the servers.
//!
//! The model is a script that a stand-in provider plays (`scripted_llm.py`); its log has the tokens
//! that it reported. Where the machine allows it, all of it runs in a network namespace with
//! nothing but loopback. `cargo xtask fixtures` makes the committed fixtures of the readers from
//! the same sessions.

mod compare;
mod recipes;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::agents::has_namespaces;
use super::processes;
use super::testbed::Testbed;
use crate::workspace;

pub use recipes::{PRODUCERS, Producer};

/// A file that a producer leaves, and the parts of a trace that it has.
#[derive(Clone, Copy)]
pub struct Output {
    /// The format that must be detected.
    pub format: &'static str,
    /// The place in the session's folder; `*` stands for any name.
    pub path: &'static str,
    /// The name of its fixture after that of the script.
    pub fixture: &'static str,
    /// True if it names servers.
    pub servers: bool,
    /// True if it shows which results are errors.
    pub errors: bool,
    /// True if it has tokens.
    pub tokens: bool,
    /// True if it has the turns of calls.
    pub turns: bool,
}

impl Output {
    /// An output with all parts.
    pub const fn new(format: &'static str, path: &'static str, fixture: &'static str) -> Self {
        Self {
            format,
            path,
            fixture,
            servers: true,
            errors: true,
            tokens: true,
            turns: true,
        }
    }
}

/// A session of a producer that has ended.
pub struct Session {
    pub folder: PathBuf,
    /// Removes the folder when the session is dropped.
    _temporary: tempfile::TempDir,
    pub script: Value,
    /// The traces of the proxies before the servers.
    pub recorded: Vec<Value>,
    /// The runs that the session has.
    pub runs: usize,
}

/// The start of the names of sessions' folders.
const PREFIX: &str = "mcptest-producer-";

/// The name of the script that every run of the end-to-end checks plays.
const SAMPLE: &str = "turns";

/// The producer that every run of the end-to-end checks plays. The others need long downloads, and
/// are played by `cargo xtask e2e 'its logs'`.
const SAMPLED_PRODUCER: &str = "codex";

pub(super) fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for producer in &PRODUCERS {
        let is_sampled = checks.only.is_some() || producer.name == SAMPLED_PRODUCER;
        if is_sampled && producer.scripts.contains(&SAMPLE) {
            checks.check(
                &format!(
                    "{}: its logs read as the proxy recorded them",
                    producer.name
                ),
                || check(testbed, producer, SAMPLE).map(|_| ()),
            );
        }
    }
}

/// Runs all scripts of a producer, or of all, and writes the fixtures of the readers.
pub fn write_fixtures(only: Option<&str>) -> Result<bool> {
    let testbed = Testbed::set_up()?;
    let mut written = 0;
    for producer in &PRODUCERS {
        if only.is_some_and(|only| only != producer.name) {
            continue;
        }
        for script in producer.scripts {
            println!("{} {script}", producer.name);
            let session = check(&testbed, producer, script)
                .with_context(|| format!("{} with the script {script}", producer.name))?;
            for output in producer.outputs {
                let from = find(&session.folder, output.path)?;
                let name = format!("{}{script}.{}", producer.prefix, output.fixture);
                let folder = workspace::root()
                    .join("crates/mcptest-formats/tests/fixtures")
                    .join(output.format);
                std::fs::create_dir_all(&folder)?;
                tidy::write(&testbed, &session.folder, &from, &folder.join(name))?;
                written += 1;
            }
        }
    }
    testbed.clean_up();
    let names: Vec<&str> = PRODUCERS.iter().map(|producer| producer.name).collect();
    ensure!(
        written > 0,
        "no such producer: expected one of {}",
        names.join(", ")
    );
    println!("{written} fixtures");
    Ok(true)
}

/// Runs a session and compares its logs with what the proxy recorded.
fn check(testbed: &Testbed, producer: &Producer, script: &str) -> Result<Session> {
    let session = session(testbed, producer, script)?;
    for output in producer.outputs {
        let file = find(&session.folder, output.path)?;
        compare::check(&session, output, &file)
            .with_context(|| format!("{} of {}", output.format, file.display()))?;
    }
    Ok(session)
}

/// Runs a producer with a script.
fn session(testbed: &Testbed, producer: &Producer, script: &str) -> Result<Session> {
    // Outside every checkout: agents read the instructions in the folders above theirs.
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
    let kept = folder.path().canonicalize()?;
    let (temporary, folder) = (folder, kept);
    let here = workspace::root().join("xtask/src/e2e/producers");
    let text = std::fs::read_to_string(here.join(format!("scripts/{script}.json")))?;
    write(&folder.join("script.json"), &text)?;
    let servers = servers(testbed, &folder, &here);
    let recipe = (producer.recipe)(testbed, &folder, &servers)?;
    for (name, content) in &recipe.files {
        write(&folder.join(name), content)?;
    }
    for name in ["home", "cwd", "tmp"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    let files: Vec<&str> = recipe.files.iter().map(|(name, _)| name.as_str()).collect();
    // The address of the stand-in goes to where the files and the command have `@BASE@`.
    let script_text = format!(
        "[ \"$1\" = alone ] && ip link set lo up\n\
         python3 '{llm}' script.json llm.jsonl >llm.out 2>llm.err &\n\
         LLM=$!\n\
         trap 'kill $LLM' EXIT\n\
         until BASE=$(sed -n 's/^listening on //p' llm.out) && [ -n \"$BASE\" ]; do\n\
           kill -0 $LLM || exit 99\n\
           sleep 0.1\n\
         done\n\
         for FILE in {files}; do sed -i \"s#@BASE@#$BASE#g\" \"$FILE\"; done\n\
         export BASE {environment}\n\
         PROMPT='Please do it.'\n\
         RUN=$PWD\n\
         cd cwd\n\
         {command}\n\
         CODE=$?\n\
         # An agent may end before what it started has.\n\
         while grep -qs \"$RUN/[w]eather.json\\|$RUN/[t]ime.json\" /proc/[0-9]*/cmdline; do\n\
           sleep 0.1\n\
         done\n\
         exit $CODE\n",
        llm = here.join("scripted_llm.py").display(),
        files = files.join(" "),
        environment = recipe.environment.replace("@BASE@", "$BASE"),
        command = recipe.command,
    );
    write(&folder.join("session.sh"), &script_text)?;
    let mut shell = if has_namespaces() {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "bash", "session.sh", "alone"]);
        unshare
    } else {
        let mut bash = Command::new("bash");
        bash.arg("session.sh");
        bash
    };
    // Nothing of whoever runs this reaches the producer.
    shell
        .current_dir(&folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.join("home"))
        .env("TMPDIR", folder.join("tmp"));
    let finished = processes::run(&mut shell, &folder.to_string_lossy())?;
    let script: Value = serde_json::from_str(&text)?;
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    ensure!(
        finished.code == Some(0) || compare::is_refused(&script),
        "the producer failed ({:?})\nstdout: {}\nstderr: {}{}\nprovider: {}",
        finished.code,
        read("stdout"),
        read("stderr"),
        finished.stderr,
        read("llm.err")
    );
    let recorded = servers
        .iter()
        .map(|(name, _)| {
            let text = std::fs::read_to_string(folder.join(format!("{name}.json")))
                .with_context(|| format!("the proxy before {name} recorded nothing"))?;
            Ok(serde_json::from_str(&text)?)
        })
        .collect::<Result<_>>()?;
    Ok(Session {
        folder,
        _temporary: temporary,
        script,
        recorded,
        runs: recipe.runs,
    })
}

/// The commands of the servers, each behind a recording proxy.
fn servers(testbed: &Testbed, folder: &Path, here: &Path) -> Vec<(&'static str, Vec<String>)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let program = text(&testbed.program);
    let mock = vec![
        program.clone(),
        "mock".to_owned(),
        "--tools-from".to_owned(),
        text(&here.join("weather.yml")),
    ];
    let time = vec![
        text(&testbed.parts.time_bin.join("mcp-server-time")),
        "--local-timezone".to_owned(),
        "UTC".to_owned(),
    ];
    let proxied = |name: &'static str, command: Vec<String>| {
        let record = text(&folder.join(format!("{name}.json")));
        let proxy = [
            &program, "proxy", "--server", name, "--record", &record, "--",
        ];
        let proxy = proxy.iter().map(|word| (*word).to_owned());
        (name, proxy.chain(command).collect())
    };
    vec![proxied("weather", mock), proxied("time", time)]
}

/// The `mcpServers` object of the servers.
fn mcp_servers(servers: &[(&'static str, Vec<String>)]) -> Value {
    let each = servers.iter().map(|(name, command)| {
        let (program, arguments) = command.split_at(1);
        (
            (*name).to_owned(),
            json!({"command": program[0], "args": arguments}),
        )
    });
    Value::Object(each.collect())
}

fn write(path: &Path, content: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// The only file of a session with this path, in which `*` stands for any name.
fn find(folder: &Path, path: &str) -> Result<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for part in path.split('/') {
        let mut next = Vec::new();
        for folder in found {
            if part == "*" {
                if let Ok(entries) = std::fs::read_dir(&folder) {
                    next.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
                }
            } else {
                next.push(folder.join(part));
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    match found.as_slice() {
        [one] => Ok(one.clone()),
        other => bail!("{} files are {path}", other.len()),
    }
}
