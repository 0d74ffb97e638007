//! The official conformance suite against our mock server over HTTP, held to a strict list of expected failures: one that starts to pass must
//! leave the list.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Checks;
use super::lab::Lab;
use crate::workspace;

const MANIFEST: &str = "tests/e2e/conformance.yml";
const EXPECTED: &str = "tests/e2e/conformance-expected-failures.txt";

pub fn run(lab: &Lab, checks: &mut Checks<'_>) {
    for revision in ["2025-11-25", "2026-07-28"] {
        checks.check(&format!("conformance: the mock, {revision}"), || check(lab, revision));
    }
}

/// Ends the mock on every way out.
struct Mock(Child);

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn check(lab: &Lab, revision: &str) -> Result<()> {
    let bin = lab.parts.conformance_bin()?;
    let mut mock = lab
        .mcptest(&["mock", "--tools-from", MANIFEST, "--http", "0"])?
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the mock")?;
    let stderr = mock.stderr.take();
    let _mock = Mock(mock);
    let mut line = String::new();
    BufReader::new(stderr.context("no stderr")?).read_line(&mut line)?;
    let url = line
        .trim()
        .strip_prefix("listening on ")
        .with_context(|| format!("the mock says: {line}"))?;

    let results = lab.scratch(&format!("conformance-{revision}"))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(bin.join("conformance"))
        .args(["server", "--url", url, "--requirements", revision, "-o"])
        .arg(&results)
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null())
        .output()
        .context("cannot run the conformance suite")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "a scored scenario fails ({})\n{}",
        output.status,
        text.split("=== SUMMARY ===").last().unwrap_or_default()
    );
    let (passed, failed) = outcomes(&results)?;
    let expected = expected(revision)?;
    let surprising: Vec<_> = failed.difference(&expected).collect();
    let repaired: Vec<_> = expected.difference(&failed).collect();
    ensure!(surprising.is_empty(), "not in {EXPECTED}: {surprising:?}");
    ensure!(
        repaired.is_empty(),
        "pass now, remove them from {EXPECTED}: {repaired:?}"
    );
    println!(
        "     {passed} checks passed, {} scenarios fail as expected",
        failed.len()
    );
    Ok(())
}

/// How many checks passed, and the scenarios in which one failed.
fn outcomes(results: &Path) -> Result<(usize, BTreeSet<String>)> {
    let (mut passed, mut failed) = (0, BTreeSet::new());
    for entry in std::fs::read_dir(results)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // `server-SCENARIO-2026-11-15T22-05-15-831Z`
        let scenario = name.strip_prefix("server-").unwrap_or(&name);
        let scenario = &scenario[..scenario.len().saturating_sub("-2026-11-15T22-05-15-831Z".len())];
        let text = std::fs::read_to_string(entry.path().join("checks.json"))?;
        let checks: Vec<Value> = serde_json::from_str(&text)?;
        for check in checks {
            match check["status"].as_str() {
                Some("SUCCESS") => passed += 1,
                Some("FAILURE") => {
                    failed.insert(scenario.to_owned());
                }
                _ => {}
            }
        }
    }
    ensure!(passed > 0, "no check ran");
    Ok((passed, failed))
}

/// The scenarios that may fail, and must.
fn expected(revision: &str) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(workspace::root().join(EXPECTED))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.filter_map(|line| line.split_whitespace().collect::<Vec<_>>().try_into().ok());
    Ok(words
        .filter(|[of, _]: &[&str; 2]| *of == revision)
        .map(|[_, scenario]| scenario.to_owned())
        .collect())
}
