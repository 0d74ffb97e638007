//! The official conformance suite against our mock server and `mcptest mcp` over HTTP, and against
//! our client, held to a strict list of expected failures: one that starts to pass must leave the
//! list.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::Checks;
use super::testbed::Testbed;
use crate::workspace;

const MANIFEST: &str = "tests/e2e/conformance.yml";
const EXPECTED: &str = "tests/e2e/conformance-expected-failures.txt";

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for revision in ["2025-11-25", "2026-07-28"] {
        checks.check(&format!("conformance: the mock, {revision}"), || {
            mock(testbed, revision)
        });
        checks.check(&format!("conformance: mcptest mcp, {revision}"), || {
            itself(testbed, revision)
        });
        checks.check(&format!("conformance: the client, {revision}"), || {
            client(testbed, revision)
        });
    }
    checks.check(
        "conformance: the client, authorization of 2025-03-26",
        || old_authorization(testbed),
    );
}

/// A server that is ended when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program that the scenarios test.
#[derive(Clone, Copy)]
enum Tested {
    /// The mock server, which has all tools that the suite asks for.
    Server,
    /// `mcptest mcp`, which has its own tools only.
    Itself,
    Client,
}

impl Tested {
    /// The name in the list of expected failures.
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Itself => "mcp",
            Self::Client => "client",
        }
    }

    /// The command of the conformance suite.
    fn command(self) -> &'static str {
        match self {
            Self::Server | Self::Itself => "server",
            Self::Client => "client",
        }
    }
}

fn mock(testbed: &Testbed, revision: &str) -> Result<()> {
    let arguments = ["mock", "--tools-from", MANIFEST, "--http", "0"];
    served(testbed, Tested::Server, revision, &arguments)
}

fn itself(testbed: &Testbed, revision: &str) -> Result<()> {
    served(testbed, Tested::Itself, revision, &["mcp", "--http", "0"])
}

/// Runs the scenarios against a server of ours.
fn served(testbed: &Testbed, tested: Tested, revision: &str, arguments: &[&str]) -> Result<()> {
    let mut server = testbed
        .mcptest(arguments)?
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the server")?;
    let stderr = server.stderr.take();
    let _server = Server(server);
    let mut line = String::new();
    BufReader::new(stderr.context("no stderr")?).read_line(&mut line)?;
    let url = line
        .trim()
        .strip_prefix("listening on ")
        .with_context(|| format!("the server says: {line}"))?;

    suite(testbed, tested, revision, &["--url", url])
}

fn client(testbed: &Testbed, revision: &str) -> Result<()> {
    let driver = workspace::build_example("mcptest-wire", "conformance_client")?;
    suite(
        testbed,
        Tested::Client,
        revision,
        &["--command", &driver.to_string_lossy()],
    )
}

/// The scenarios of revision 2025-03-26, which no list of requirements has: servers without
/// metadata of the protected resource.
fn old_authorization(testbed: &Testbed) -> Result<()> {
    let driver = workspace::build_example("mcptest-wire", "conformance_client")?;
    let bin = testbed.parts.conformance_bin()?;
    let path = std::env::var("PATH").unwrap_or_default();
    for scenario in [
        "auth/2025-03-26-oauth-metadata-backcompat",
        "auth/2025-03-26-oauth-endpoint-fallback",
    ] {
        let output = Command::new(bin.join("conformance"))
            .args(["client", "--command", &driver.to_string_lossy()])
            .args(["--scenario", scenario, "--spec-version", "2025-03-26", "-o"])
            .arg(testbed.scratch("conformance-2025-03-26")?)
            .env("PATH", format!("{}:{path}", bin.display()))
            .stdin(Stdio::null())
            .output()
            .context("cannot run the conformance suite")?;
        // A single scenario is reported on standard error.
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{scenario}: {text}");
        ensure!(text.contains("0 failed, 0 warnings"), "{scenario}: {text}");
    }
    Ok(())
}

/// Runs what a revision requires and compares it with what is expected.
fn suite(testbed: &Testbed, tested: Tested, revision: &str, arguments: &[&str]) -> Result<()> {
    let bin = testbed.parts.conformance_bin()?;
    let results = testbed.scratch(&format!("conformance-{}-{revision}", tested.name()))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(bin.join("conformance"))
        .arg(tested.command())
        .args(arguments)
        .args(["--requirements", revision, "-o"])
        .arg(&results)
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null())
        .output()
        .context("cannot run the conformance suite")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (passed, failed) = outcomes(&results, tested).with_context(|| text.clone().into_owned())?;
    let expected = expected(tested, revision)?;
    let surprising: Vec<_> = failed.difference(&expected).collect();
    let repaired: Vec<_> = expected.difference(&failed).collect();
    ensure!(
        surprising.is_empty(),
        "not in {EXPECTED}: {surprising:?}\n{}",
        text.split("SUMMARY ===").last().unwrap_or_default()
    );
    ensure!(
        repaired.is_empty(),
        "pass now, remove them from {EXPECTED}: {repaired:?}"
    );
    println!(
        "     {} scenarios, {} checks passed; {} scenarios fail as expected",
        passed.len(),
        passed.values().sum::<usize>(),
        failed.len()
    );
    Ok(())
}

/// The scenarios in which everything passed, each with the number of checks, and those in which
/// something failed.
fn outcomes(results: &Path, tested: Tested) -> Result<(BTreeMap<String, usize>, BTreeSet<String>)> {
    let (mut passed, mut failed) = (BTreeMap::new(), BTreeSet::new());
    let mut folders = vec![results.to_owned()];
    while let Some(folder) = folders.pop() {
        let file = folder.join("checks.json");
        if !file.exists() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                folders.extend(path.is_dir().then_some(path));
            }
            continue;
        }
        let scenario = scenario(&folder, results, tested)?;
        let checks: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let count = |status: &str| {
            checks
                .iter()
                .filter(|check| check["status"] == status)
                .count()
        };
        if count("FAILURE") > 0 {
            failed.insert(scenario);
        } else {
            passed.insert(scenario, count("SUCCESS"));
        }
    }
    ensure!(passed.values().sum::<usize>() > 0, "no check ran");
    Ok((passed, failed))
}

/// The scenario of a folder `server-SCENARIO-2026-11-15T22-05-15-831Z`, or without the prefix for
/// the client's; a scenario may have a folder in its name.
fn scenario(folder: &Path, results: &Path, tested: Tested) -> Result<String> {
    let name = folder.strip_prefix(results)?.to_string_lossy().into_owned();
    let name = match tested {
        Tested::Server | Tested::Itself => name.strip_prefix("server-").unwrap_or(&name),
        Tested::Client => &name,
    };
    Ok(name[..name.len().saturating_sub("-2026-11-15T22-05-15-831Z".len())].to_owned())
}

/// The scenarios that may fail, and must.
fn expected(tested: Tested, revision: &str) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(workspace::root().join(EXPECTED))?;
    let mut found = BTreeSet::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [of_leg, of_revision, scenario] = words[..] else {
            bail!(
                "{EXPECTED} has a line that is not `server|mcp|client REVISION SCENARIO`: {line}"
            );
        };
        if (of_leg, of_revision) == (tested.name(), revision) {
            found.insert(scenario.to_owned());
        }
    }
    Ok(found)
}
