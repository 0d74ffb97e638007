//! `mcptest init` on many servers of others: it writes a suite that passes, or shows why not.
//!
//! Nothing has a key, a database or the network: a server that needs one before it lists its tools
//! must be quoted, and no file may be left.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::parts;
use super::testbed::Testbed;

/// A server: its name, its registry, what is installed, its program and its arguments. `{folder}`
/// is a scratch folder with a git repository in `repo`.
struct Server {
    name: &'static str,
    registry: Registry,
    packages: &'static [&'static str],
    program: &'static str,
    arguments: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Registry {
    Npm,
    Pypi,
}

const fn npm(
    name: &'static str,
    packages: &'static [&'static str],
    program: &'static str,
    arguments: &'static [&'static str],
) -> Server {
    Server {
        name,
        registry: Registry::Npm,
        packages,
        program,
        arguments,
    }
}

const fn pypi(
    name: &'static str,
    packages: &'static [&'static str],
    program: &'static str,
    arguments: &'static [&'static str],
) -> Server {
    Server {
        name,
        registry: Registry::Pypi,
        packages,
        program,
        arguments,
    }
}

/// The servers of every end-to-end run: quick to install, and one that needs a key.
pub const SAMPLE: [&str; 3] = ["memory", "calculator", "slack"];

const SERVERS: [Server; 26] = [
    npm(
        "everything",
        &["@modelcontextprotocol/server-everything@2026.8.31"],
        "mcp-server-everything",
        &[],
    ),
    npm(
        "filesystem",
        &["@modelcontextprotocol/server-filesystem@2026.8.31"],
        "mcp-server-filesystem",
        &["{folder}"],
    ),
    npm(
        "memory",
        &["@modelcontextprotocol/server-memory@2026.8.31"],
        "mcp-server-memory",
        &[],
    ),
    npm(
        "sequential-thinking",
        &["@modelcontextprotocol/server-sequential-thinking@2026.8.31"],
        "mcp-server-sequential-thinking",
        &[],
    ),
    npm(
        "github",
        &["@modelcontextprotocol/server-github@2025.4.8"],
        "mcp-server-github",
        &[],
    ),
    npm(
        "gitlab",
        &["@modelcontextprotocol/server-gitlab@2025.4.25"],
        "mcp-server-gitlab",
        &[],
    ),
    npm(
        "google-maps",
        &["@modelcontextprotocol/server-google-maps@0.6.2"],
        "mcp-server-google-maps",
        &[],
    ),
    npm(
        "slack",
        &["@modelcontextprotocol/server-slack@2025.4.25"],
        "mcp-server-slack",
        &[],
    ),
    npm(
        "postgres",
        &["@modelcontextprotocol/server-postgres@0.6.2"],
        "mcp-server-postgres",
        &["postgresql://127.0.0.1:9/x"],
    ),
    npm(
        "brave-search",
        &["@brave/brave-search-mcp-server@2.1.4"],
        "brave-search-mcp-server",
        &["--transport", "stdio"],
    ),
    npm(
        "context7",
        &["@upstash/context7-mcp@4.1.1"],
        "context7-mcp",
        &[],
    ),
    npm(
        "airtable",
        &["airtable-mcp-server@1.14.0"],
        "airtable-mcp-server",
        &[],
    ),
    npm(
        "notion",
        &["@notionhq/notion-mcp-server@2.5.2"],
        "notion-mcp-server",
        &[],
    ),
    npm(
        "playwright",
        &["@playwright/mcp@0.0.83"],
        "playwright-mcp",
        &["--headless"],
    ),
    npm(
        "antv-chart",
        &["@antv/mcp-server-chart@0.9.10"],
        "mcp-server-chart",
        &[],
    ),
    npm("tavily", &["tavily-mcp@0.2.22"], "tavily-mcp", &[]),
    npm(
        "k8s-redhat",
        &["kubernetes-mcp-server@0.0.67"],
        "kubernetes-mcp-server",
        &[],
    ),
    pypi(
        "time",
        &["mcp-server-time==2026.10.19"],
        "mcp-server-time",
        &[],
    ),
    pypi(
        "fetch",
        &["mcp-server-fetch==2026.10.24"],
        "mcp-server-fetch",
        &[],
    ),
    pypi(
        "git",
        &["mcp-server-git==2026.10.19"],
        "mcp-server-git",
        &["--repository", "{folder}/repo"],
    ),
    pypi(
        "calculator",
        &["mcp-server-calculator==0.2.1"],
        "mcp-server-calculator",
        &[],
    ),
    pypi(
        "sqlite",
        &["mcp-server-sqlite==2025.4.25", "mcp<2"],
        "mcp-server-sqlite",
        &["--db-path", "{folder}/x.db"],
    ),
    pypi(
        "motherduck",
        &["mcp-server-motherduck==1.1.0"],
        "mcp-server-motherduck",
        &["--db-path", ":memory:", "--read-write"],
    ),
    pypi(
        "excel",
        &["excel-mcp-server==2.2.2"],
        "excel-mcp-server",
        &["stdio"],
    ),
    pypi(
        "word",
        &["office-word-mcp-server==1.1.11"],
        "word_mcp_server",
        &[],
    ),
    pypi(
        "redis",
        &["redis-mcp-server==0.5.1"],
        "redis-mcp-server",
        &[],
    ),
];

/// The outcome of a server.
pub struct Tried {
    name: &'static str,
    package: &'static str,
    pub outcome: Outcome,
}

pub enum Outcome {
    /// The suite passes: the tools of the server, and the last line of `run`.
    Passes { tools: String, tests: String },
    /// It shows why not: the words of the server.
    Explained(String),
    /// Neither.
    Wrong(String),
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, package, .. } = self;
        match &self.outcome {
            Outcome::Passes { tools, tests } => {
                write!(f, "| {name} | `{package}` | {tools} | {tests} |")
            }
            Outcome::Explained(words) => {
                write!(
                    f,
                    "| {name} | `{package}` | does not start: {words} | nothing written |"
                )
            }
            Outcome::Wrong(reason) => write!(f, "| {name} | `{package}` | WRONG | {reason} |"),
        }
    }
}

/// Tries servers, all or those with these names, and prints a table. True if none is wrong.
pub fn run(names: &[&str]) -> Result<bool> {
    for name in names {
        ensure!(
            SERVERS.iter().any(|server| server.name == *name),
            "unknown server `{name}`"
        );
    }
    let testbed = Testbed::set_up()?;
    println!("| server | package | tools | tests |\n|---|---|---|---|");
    let mut good = true;
    for server in SERVERS
        .iter()
        .filter(|server| names.is_empty() || names.contains(&server.name))
    {
        let tried = attempt(&testbed, server)?;
        println!("{tried}");
        good &= !matches!(tried.outcome, Outcome::Wrong(_));
    }
    testbed.clean_up();
    Ok(good)
}

/// Tries one server.
pub fn try_server(testbed: &Testbed, name: &str) -> Result<Tried> {
    let server = SERVERS.iter().find(|server| server.name == name);
    attempt(
        testbed,
        server.with_context(|| format!("unknown server `{name}`"))?,
    )
}

fn attempt(testbed: &Testbed, server: &'static Server) -> Result<Tried> {
    let place = testbed.folder.join("../servers").join(server.name);
    let bin = match server.registry {
        Registry::Npm => parts::npm(&place, server.packages)?,
        Registry::Pypi => parts::venv(&place, server.packages)?,
    };
    let folder = testbed.scratch(&format!("server-{}", server.name))?;
    let data = data_folder(testbed)?;
    let program = bin.join(server.program).to_string_lossy().into_owned();
    let arguments = server
        .arguments
        .iter()
        .map(|word| word.replace("{folder}", &data.to_string_lossy()));
    let mut init = vec![
        "init".to_owned(),
        "--yes".to_owned(),
        "--attacks".to_owned(),
    ];
    init.extend(["--ci", "none", "--"].map(str::to_owned));
    init.push(program);
    init.extend(arguments);
    let step = |words: &[String]| -> Result<_> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = testbed.mcptest(&words)?;
        command.current_dir(&folder);
        testbed.finish(&mut command)
    };
    let outcome = 'outcome: {
        let made = step(&init)?;
        if made.code == Some(2) {
            let left = std::fs::read_dir(&folder)?.count();
            let words = reason(&made.stderr);
            break 'outcome match words {
                Some(words) if left == 0 => Outcome::Explained(words),
                _ => Outcome::Wrong(format!("{left} files left: {}", made.stderr)),
            };
        }
        if made.code != Some(0) {
            break 'outcome Outcome::Wrong(made.stderr);
        }
        let validated = step(&["validate", "--deny-warnings"].map(str::to_owned))?;
        if validated.code != Some(0) {
            break 'outcome Outcome::Wrong(validated.stderr);
        }
        let played = step(&["run", "--no-history"].map(str::to_owned))?;
        let last = played.stdout.trim_end().lines().last().unwrap_or_default();
        let tests = last.split(" in ").next().unwrap_or(last).to_owned();
        if played.code != Some(0) {
            break 'outcome Outcome::Wrong(format!("{}{}", played.stdout, played.stderr));
        }
        let first = made.stdout.lines().next().unwrap_or_default();
        let tools = first.split_once(": ").map_or(first, |(_, rest)| rest);
        Outcome::Passes {
            tools: tools.to_owned(),
            tests,
        }
    };
    Ok(Tried {
        name: server.name,
        package: server.packages[0],
        outcome,
    })
}

/// The first line of the server's stderr in a message.
fn reason(stderr: &str) -> Option<String> {
    let (_, own) = stderr.split_once("the end of its stderr:\n")?;
    let line = own.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(160).collect())
}

/// A folder that servers may read, with a git repository.
fn data_folder(testbed: &Testbed) -> Result<PathBuf> {
    let folder = testbed.scratch("server-data")?;
    let repository = folder.join("repo");
    if !repository.join(".git").exists() {
        std::fs::create_dir_all(&repository)?;
        std::fs::write(repository.join("a.txt"), "one\n")?;
        for words in [
            &["init", "--quiet"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=e2e",
                "-c",
                "user.email=e2e@example.com",
                "commit",
                "--quiet",
                "--message=one",
            ],
        ] {
            let status = Command::new("git")
                .args(words)
                .current_dir(&repository)
                .status()
                .context("cannot run git")?;
            if !status.success() {
                bail!("git {words:?} failed");
            }
        }
    }
    Ok(folder)
}
