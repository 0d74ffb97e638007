//! The reports in third-party readers: a JUnit parser and a Markdown parser from PyPI.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Checks;
use super::lab::Lab;
use super::parts;
use crate::workspace;

/// Readers of what the reporters write.
const READERS: [&str; 2] = ["junitparser==5.0.3", "markdown-it-py==4.3.0"];

/// One test per outcome, with names that try to become markup.
const SUITE: &str = "tests/e2e/reports/hostile.yml";

pub fn run(lab: &Lab, checks: &mut Checks<'_>) {
    checks.check(
        "junit: a third-party parser reads every outcome and attempt",
        || junit(lab),
    );
    checks.check(
        "markdown: hostile text stays text for a third-party parser",
        || markdown(lab),
    );
}

fn junit(lab: &Lab) -> Result<()> {
    let read = read(lab, "junit")?;
    let wanted = json!({
        "suites": [{"tests": 6, "failures": 2, "errors": 1, "skipped": 1}],
        "cases": [
            {"name": "flaky </testcase><testcase name=\"fake\">", "result": [], "attempts": ["flakyFailure"]},
            {"name": "fails ![x](http://example.com/x.png) <script>alert(1)</script> [builtin/scripted]", "result": ["failure"], "attempts": ["rerunFailure", "rerunFailure"]},
            {"name": "fails ![x](http://example.com/x.png) <script>alert(1)</script> [builtin/lexical]", "result": ["failure"], "attempts": ["rerunFailure", "rerunFailure"]},
            {"name": "nothing expected *bold* _it_ ~~gone~~ $x^2$ [link](javascript:alert(1))", "result": ["skipped"], "attempts": []},
            {"name": "broken  \\u{7} \\u{202e}", "result": ["error"], "attempts": []},
            {"name": "fine @someone #1", "result": [], "attempts": []}
        ]
    });
    ensure!(read == wanted, "read:   {read}\nwanted: {wanted}");
    Ok(())
}

fn markdown(lab: &Lab) -> Result<()> {
    let read = read(lab, "markdown")?;
    // Headings, lists, tables, code and emphasis of our own; `<br>` between the lines of a cell.
    let html = read["html"].as_array().context("no list of markup")?;
    ensure!(
        html.iter().all(|markup| markup == "<br>"),
        "markup came through: {read}"
    );
    for kind in ["link_open", "image", "s_open", "em_open", "html_block"] {
        ensure!(
            read["kinds"].get(kind).is_none(),
            "{kind} came through: {read}"
        );
    }
    ensure!(read["kinds"]["table_open"] == 2, "{read}");
    let rows = read["rows"].as_array().context("no rows")?;
    ensure!(
        rows.iter().all(|cells| *cells == 3 || *cells == 5),
        "a cell was broken: {read}"
    );
    Ok(())
}

/// Runs the suite with a reporter, and gives what the reader says about the file.
fn read(lab: &Lab, reporter: &str) -> Result<Value> {
    let file = lab.scratch("readers")?.join(reporter);
    let target = format!("--reporter={reporter}={}", file.display());
    // An error among the outcomes: could not run as asked.
    lab.run(&["run", SUITE, &target])?.expect_code(2)?;
    let folder = workspace::target_directory()?.join("e2e/readers");
    let python = parts::venv(&folder, &READERS)?.join("python");
    let output = Command::new(&python)
        .arg(workspace::root().join("xtask/src/e2e/readers.py"))
        .arg(reporter)
        .arg::<&Path>(&file)
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    ensure!(
        output.status.success(),
        "the reader failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("the reader did not answer in JSON")
}
