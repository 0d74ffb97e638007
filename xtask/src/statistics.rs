//! Compares the statistics of `report --compare` with scipy and statsmodels, on random pairs of
//! reports: Newcombe's intervals, Fisher's exact p, and the adjustment of Benjamini and Hochberg.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use mcptest_numbers::random::SplitMix64;
use mcptest_report::compare::compare;
use serde_json::{Value, json};

use crate::e2e::parts;
use crate::workspace;

/// The other implementations.
const PACKAGES: [&str; 2] = ["scipy==1.17.1", "statsmodels==0.15.0"];
/// The greatest difference between two implementations.
const TOLERANCE: f64 = 1e-9;

/// The flags of the command.
pub struct Options {
    pairs: u64,
    seed: u64,
}

impl Options {
    /// Reads the flags; `None` if one is not known.
    pub fn parse(flags: &[&str]) -> Option<Self> {
        let mut options = Self {
            pairs: 1000,
            seed: 1,
        };
        for pair in flags.chunks(2) {
            let [name, value] = pair else { return None };
            let value = value.parse().ok()?;
            match *name {
                "--pairs" => options.pairs = value,
                "--seed" => options.seed = value,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Runs the comparison. Returns true if all values agree.
pub fn run(options: &Options) -> Result<bool> {
    let &Options { pairs, seed } = options;
    let mut random = SplitMix64::new(seed);
    let compared = (0..pairs).map(|_| random_comparison(&mut random));
    let compared = compared.collect::<Result<Vec<Value>>>()?;
    let rates: usize = compared
        .iter()
        .map(|it| it.as_array().map_or(0, Vec::len))
        .sum();
    let began = Instant::now();
    let worst = oracle(&Value::Array(compared))?;
    println!(
        "{pairs} pairs of reports with {rates} rates (seed {seed}), {:.1} s; greatest differences: {worst}",
        began.elapsed().as_secs_f64()
    );
    let differences = worst.as_object().context("the oracle did not answer")?;
    let agrees = |value: &Value| value.as_f64().is_some_and(|it| it <= TOLERANCE);
    Ok(differences.len() == 4 && differences.values().all(agrees))
}

/// The rates of a comparison of two random reports with the same tests.
fn random_comparison(random: &mut SplitMix64) -> Result<Value> {
    let tests = 1 + random.below(12);
    let mut report = || {
        let tests: Vec<Value> = (0..tests).map(|at| random_test(random, at)).collect();
        let report = json!({
            "schema_version": 1, "verdict": "pass", "exit_code": 0, "tests": tests,
            "tool_selection": [],
        });
        mcptest_report::read(report.to_string()).context("a random report")
    };
    let (old, new) = (report()?, report()?);
    let comparison = serde_json::to_value(compare(&old, &new))?;
    let rates = comparison["rates"].as_array().context("no rates")?;
    ensure!(rates.len() as u64 == tests, "every test has a rate");
    let side = |side: &Value| json!([side["passed"], side["runs"]]);
    let rates = rates.iter().map(|rate| {
        let found = &rate["statistics"];
        json!({
            "old": side(&rate["old"]), "new": side(&rate["new"]),
            "lower": found["lower"], "upper": found["upper"],
            "p_value": found["p_value"], "p_adjusted": found["p_adjusted"],
        })
    });
    Ok(rates.collect())
}

/// A test with 1 to 60 runs. Rates of 0 and 1 are as frequent as those between.
fn random_test(random: &mut SplitMix64, at: u64) -> Value {
    let runs = 1 + random.below(60);
    let passed = match random.below(4) {
        0 => 0,
        1 => runs,
        _ => random.below(runs + 1),
    };
    json!({
        "name": format!("test {at}"), "kind": "agent", "model": null, "label": format!("test {at}"),
        "suite": "random", "verdict": "pass", "runs": [], "gates": [],
        "run_totals": {
            "runs": runs, "passed": passed, "failed": runs - passed, "no_evidence": 0, "errors": 0,
            "calls": 0, "failed_calls": 0, "tokens": 0, "runs_with_tokens": 0,
        },
    })
}

/// Has the other implementations compute the same, and returns the greatest differences.
fn oracle(compared: &Value) -> Result<Value> {
    let folder = workspace::target_directory()?.join("e2e/statistics");
    let python = parts::venv(&folder, &PACKAGES)?.join("python");
    let mut child = Command::new(&python)
        .arg(workspace::root().join("xtask/src/statistics_oracle.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", python.display()))?;
    let mut input = child.stdin.take().context("no input")?;
    input.write_all(compared.to_string().as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "the oracle failed");
    serde_json::from_slice(&output.stdout).context("the oracle did not answer in JSON")
}
