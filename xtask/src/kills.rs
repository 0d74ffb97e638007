//! Kills runs at random moments, then shows and resumes them.
//!
//! After each kill, `mcptest report` must show every run that had finished, and `mcptest run
//! --resume` must complete to the report of an undisturbed run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use mcptest_numbers::random::SplitMix64;
use serde_json::Value;

use crate::workspace::{self, Profile};

const DEFAULT_KILLS: u32 = 200;

const MANIFEST: &str = "
mock_server:
  name: desk
  tools:
    - name: search
      description: search the web
      response: { before: [{ wait_ms: 10 }], content: [found] }
";

const SUITE: &str = "
servers: { s: { command: [mcptest, mock, --tools-from, m.yml] } }
run_options: { jobs: 2 }
agents:
  - name: searches
    model: builtin/scripted
    servers: [s]
    prompt: search
    runs: 20
    script:
      - - { calls: [{ tool: search }], usage: { input: 10, output: 2 } }
        - { say: Found., usage: { input: 20, output: 3 } }
      - - { say: I do not know., usage: { input: 10, output: 2 } }
    expect: [{ final_response: { exists: true } }]
    tool_selection: { expected_tool: search, min_selection_rate: 0.5 }
    stability: { expect: [{ stability.score: { '>=': 101 } }] }
    reliability: {}
tools:
  - { name: direct, server: s, tool: search, expect: [{ result.text: found }] }
  - { name: wrong, server: s, tool: search, expect: [{ result.text: lost }] }
";

const RUN: [&str; 5] = ["run", "s.yml", "--reporter", "json", "--no-timing"];

/// Kills this number of runs. Returns true if all of them could be shown and resumed.
pub fn run(kills: Option<u32>) -> Result<bool> {
    let kills = kills.unwrap_or(DEFAULT_KILLS);
    let program = workspace::build(Profile::Dev)?;
    let began = Instant::now();
    let folder = suite_folder()?;
    let undisturbed = mcptest(&program, folder.path(), &RUN)?;
    let took = u64::try_from(began.elapsed().as_millis())?;
    ensure!(
        undisturbed.status.code() == Some(1),
        "the undisturbed run failed: {}",
        String::from_utf8_lossy(&undisturbed.stderr)
    );
    let mut random = SplitMix64::new(9);
    let (mut early, mut late, mut resumed) = (0, 0, 0);
    for kill in 1..=kills {
        let folder = suite_folder()?;
        let mut running = Command::new(&program)
            .current_dir(folder.path())
            .args(RUN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        std::thread::sleep(Duration::from_millis(random.below(took * 11 / 10)));
        running.kill()?;
        running.wait()?;
        let text = match log(folder.path()) {
            Some(log) => std::fs::read_to_string(log)?,
            None => String::new(),
        };
        if !text.contains('\n') {
            early += 1;
        } else if text.contains("{\"ended\":") {
            late += 1;
        } else {
            resumed += 1;
            check(&program, folder.path(), &text, &undisturbed.stdout)
                .with_context(|| format!("after kill {kill}"))?;
        }
    }
    println!(
        "{kills} kills: {resumed} runs were shown and resumed, {early} had not begun, {late} had ended"
    );
    Ok(resumed > 0)
}

fn check(program: &Path, folder: &Path, log: &str, undisturbed: &[u8]) -> Result<()> {
    let finished = log
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n') && line.starts_with("{\"run_finished\""))
        .count();
    let shown = mcptest(program, folder, &["report", "--reporter", "json"])?;
    ensure!(
        shown.status.success(),
        "`mcptest report` failed: {}",
        String::from_utf8_lossy(&shown.stderr)
    );
    let report: Value = serde_json::from_slice(&shown.stdout)?;
    let tests = report["tests"].as_array().context("no tests")?;
    let runs: usize = tests
        .iter()
        .filter_map(|test| test["runs"].as_array().map(Vec::len))
        .sum();
    ensure!(
        runs == finished,
        "{finished} runs had finished, {runs} are shown"
    );
    ensure!(report["interrupted"] == true, "not marked as interrupted");
    let resumed = mcptest(program, folder, &["run", "--resume"])?;
    ensure!(
        resumed.stdout == undisturbed,
        "the resumed report differs: {}",
        String::from_utf8_lossy(&resumed.stderr)
    );
    Ok(())
}

fn suite_folder() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("s.yml"), SUITE)?;
    std::fs::write(folder.path().join("m.yml"), MANIFEST)?;
    Ok(folder)
}

fn log(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder.join(".mcptest/history")).ok()?;
    Some(entries.next()?.ok()?.path())
}

fn mcptest(program: &Path, folder: &Path, arguments: &[&str]) -> Result<Output> {
    Command::new(program)
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))
}
