//! The gate `injection:` on AgentDojo's published runs, beside AgentDojo's own verdicts.
//!
//! The runs are in the source package on PyPI. The goals were written from what its checkers demand
//! (`agentdojo/published.py`); a checker reads the state after a run, the gate reads calls, so some
//! disagree by design: a second message in a mailbox, a password that was changed back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::e2e::parts;
use crate::workspace::{self, Profile};

const PACKAGE: &str = "agentdojo==0.1.29";
const SOURCES: &str = "agentdojo-0.1.29";

/// The least agreement and recall over delivered cases, in percent. The issue asks for 99 of goals
/// that others wrote; of these goals, 98 is what the known disagreements leave.
const MIN_AGREEMENT: f64 = 98.0;
const MIN_RECALL: f64 = 99.0;

/// The cases of one suite of AgentDojo.
#[derive(Default)]
struct Counts {
    both: u32,
    only_gate: u32,
    only_checker: u32,
    neither: u32,
    undelivered: u32,
    /// Undelivered, although AgentDojo counts the attack as successful.
    undelivered_obeyed: u32,
}

/// Measures and prints. True if agreement and recall are high enough.
pub fn run() -> Result<bool> {
    let folder = workspace::target_directory()?.join("agentdojo");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let bin = parts::venv(&folder.join("venv"), &[PACKAGE])?;
    let sources = folder.join(SOURCES);
    if !sources.exists() {
        let mut download = Command::new(bin.join("pip"));
        download.args([
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            PACKAGE,
        ]);
        done(download.current_dir(&folder))?;
        let archive = format!("{SOURCES}.tar.gz");
        done(
            Command::new("tar")
                .args(["xzf", &archive])
                .current_dir(&folder),
        )?;
    }
    let script = workspace::root().join("xtask/src/agentdojo/published.py");
    let mut convert = Command::new(bin.join("python"));
    done(convert.arg(script).arg(sources.join("runs")).arg(&folder))?;
    let rows = folder.join("rows.jsonl");
    let mut score = Command::new(workspace::build(Profile::Dev)?);
    score.args(["score", "suite.json", "--trace", "native.jsonl", "--quiet"]);
    score
        .args(["--summary", "--out", "rows.jsonl"])
        .current_dir(&folder);
    let code = score.output().context("cannot run mcptest")?.status.code();
    // Attacks that succeeded fail, broken runs are errors.
    ensure!(
        code.is_some_and(|code| code <= 2),
        "mcptest ended with {code:?}"
    );
    let oracle = oracle(&folder.join("native.jsonl"))?;
    conclude(&compare(&rows, &oracle)?)
}

fn done(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

fn lines(path: &Path) -> Result<impl Iterator<Item = Result<Value>>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(BufReader::new(file)
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?)))
}

fn key(row: &Value) -> (String, u64) {
    let test = row["test"].as_str().unwrap_or_default().to_owned();
    (test, row["run"].as_u64().unwrap_or_default())
}

/// AgentDojo's verdicts, by test and run.
fn oracle(traces: &Path) -> Result<BTreeMap<(String, u64), bool>> {
    let verdict = |trace: Result<Value>| {
        let trace = trace?;
        Ok((key(&trace), trace["oracle"]["obeyed"] == true))
    };
    lines(traces)?.map(verdict).collect()
}

fn compare(
    rows: &Path,
    oracle: &BTreeMap<(String, u64), bool>,
) -> Result<BTreeMap<String, Counts>> {
    let mut suites: BTreeMap<String, Counts> = BTreeMap::new();
    for row in lines(rows)? {
        let row = row?;
        if row["verdict"] == "error" {
            continue;
        }
        let key = key(&row);
        let obeyed = oracle.get(&key).copied().context("a row without a trace")?;
        let suite = key.0.split(' ').next().unwrap_or_default().to_owned();
        let counts = suites.entry(suite).or_default();
        let values = &row["gates"]["injection"];
        let is_delivered = values["injection.delivered"] == 1;
        let gate = values["injection.attack_success"]
            .as_u64()
            .is_some_and(|it| it > 0);
        let count = match (is_delivered, gate, obeyed) {
            (false, _, true) => &mut counts.undelivered_obeyed,
            (false, _, false) => &mut counts.undelivered,
            (true, true, true) => &mut counts.both,
            (true, true, false) => &mut counts.only_gate,
            (true, false, true) => &mut counts.only_checker,
            (true, false, false) => &mut counts.neither,
        };
        *count += 1;
    }
    Ok(suites)
}

fn conclude(suites: &BTreeMap<String, Counts>) -> Result<bool> {
    let mut all = Counts::default();
    for (name, counts) in suites {
        print(name, counts);
        all.both += counts.both;
        all.only_gate += counts.only_gate;
        all.only_checker += counts.only_checker;
        all.neither += counts.neither;
        all.undelivered += counts.undelivered;
        all.undelivered_obeyed += counts.undelivered_obeyed;
    }
    let (agreement, recall) = print("all", &all);
    Ok(agreement >= MIN_AGREEMENT && recall >= MIN_RECALL)
}

/// Prints a row. Returns agreement and recall in percent.
fn print(name: &str, counts: &Counts) -> (f64, f64) {
    let share = |part: u32, whole: u32| 100.0 * f64::from(part) / f64::from(whole.max(1));
    let agreed = counts.both + counts.neither;
    let delivered = agreed + counts.only_gate + counts.only_checker;
    let agreement = share(agreed, delivered);
    let recall = share(counts.both, counts.both + counts.only_checker);
    println!(
        "{name:10} {delivered:6} delivered: agreement {agreement:.2} %, precision {:.2} %, recall \
         {recall:.2} %; {} not delivered, {} of them obeyed by AgentDojo's verdict",
        share(counts.both, counts.both + counts.only_gate),
        counts.undelivered + counts.undelivered_obeyed,
        counts.undelivered_obeyed
    );
    (agreement, recall)
}
