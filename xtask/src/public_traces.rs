//! Checks on public recorded runs, which are not part of this repository: `cargo xtask
//! public-traces FOLDER`.
//!
//! The folder holds `tau-airline.native.jsonl` (80 runs: 20 tasks, four trials each, with a
//! `reward`), the same runs as tau-bench published them (`tau-airline.raw.json`), and
//! `livemcpbench.native.jsonl`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use mcptest_formats::Input;
use mcptest_trace::trace::{self, Trace};
use serde_json::{Value, json};

use crate::workspace::{self, Profile};

/// Unbiased pass^1..4 over these 20 tasks, computed apart from this program with exact fractions.
const PASS_HAT: [f64; 4] = [0.25, 7.0 / 60.0, 0.1, 0.1];
/// The airline runs whose closing message is not true: both claim checked bags, and neither called
/// `update_reservation_baggages`.
const MAX_UNTRUTHFUL: usize = 2;

/// Runs all checks. Returns false if one failed.
pub fn run(folder: &Path) -> Result<bool> {
    let program = workspace::build(Profile::Dev)?;
    let airline = folder.join("tau-airline.native.jsonl");
    let benchmark = folder.join("livemcpbench.native.jsonl");
    let testbed = Testbed {
        program: &program,
        scratch: tempfile::tempdir()?,
    };
    let read = testbed.read_tau_bench(folder, &airline);
    let checks: [(&str, Result<()>); 6] = [
        (
            "unbiased pass^k on the airline tasks",
            testbed.pass_hat(&airline),
        ),
        ("narrative on the airline runs", testbed.narrative(&airline)),
        (
            "the reader of tau-bench gives the native runs",
            read.as_ref()
                .map(|_| ())
                .map_err(|error| anyhow::anyhow!("{error:#}")),
        ),
        (
            "unbiased pass^k and narrative on what it reads",
            read.and_then(|read| {
                testbed.pass_hat(&read)?;
                testbed.narrative(&read)
            }),
        ),
        (
            "every gate on the airline runs, twice the same bytes",
            testbed.stable(&airline),
        ),
        (
            "every gate on the benchmark runs, twice the same bytes",
            testbed.stable(&benchmark),
        ),
    ];
    let mut failed = 0;
    for (name, outcome) in &checks {
        match outcome {
            Ok(()) => println!("ok    {name}"),
            Err(error) => {
                failed += 1;
                println!("FAIL  {name}: {error:#}");
            }
        }
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    Ok(failed == 0)
}

struct Testbed<'a> {
    program: &'a Path,
    scratch: tempfile::TempDir,
}

impl Testbed<'_> {
    /// The JSON report of scoring a file of traces with a suite.
    fn score(&self, suite: &Value, traces: &Path, more: &[&str]) -> Result<String> {
        let file = self.scratch.path().join("suite.yml");
        // JSON is YAML.
        std::fs::write(&file, suite.to_string())?;
        let output = Command::new(self.program)
            .args(["score", "--reporter", "json"])
            .arg(&file)
            .args(more)
            .arg("--trace")
            .arg(traces)
            .output()
            .context("cannot run mcptest")?;
        let code = output.status.code();
        ensure!(
            matches!(code, Some(0 | 1 | 3)),
            "exit code {code:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).context("the report is not UTF-8")
    }

    fn pass_hat(&self, traces: &Path) -> Result<()> {
        for (k, wanted) in (1..).zip(PASS_HAT) {
            let tests: Vec<Value> = (0..20)
                .map(|task| json!({"name": format!("airline-{task:02}"), "expect": [{"trace.reward": 1}], "reliability": {"k": k}}))
                .collect();
            let report: Value =
                serde_json::from_str(&self.score(&json!({"agents": tests}), traces, &[])?)?;
            let values: Vec<f64> = gates(&report, "reliability")
                .filter_map(|gate| gate["values"]["reliability.passhat_k_unbiased"].as_f64())
                .collect();
            ensure!(
                values.len() == 20,
                "{} of 20 tasks have a figure",
                values.len()
            );
            let mean = values.iter().sum::<f64>() / 20.0;
            ensure!(
                (mean - wanted).abs() < 1e-12,
                "pass^{k} is {mean}, not {wanted}"
            );
        }
        Ok(())
    }

    /// Reads the published file, compares it with the native one run by run, and writes it with
    /// the names of the native one.
    fn read_tau_bench(&self, folder: &Path, native: &Path) -> Result<PathBuf> {
        let raw = std::fs::read(folder.join("tau-airline.raw.json"))?;
        let input = Input::parse(&raw)?;
        let reader = mcptest_formats::detect(&input)?;
        ensure!(
            reader.format().name == "tau-bench",
            "detected as {}",
            reader.format().name
        );
        let mut read = reader.read(&input)?;
        let mut native = trace::read(&std::fs::read_to_string(native)?)?;
        for one in &mut read {
            let task: u64 = one.test.as_deref().unwrap_or_default().parse()?;
            one.test = Some(format!("airline-{task:02}").into());
        }
        let key = |one: &Trace| (one.test.clone(), one.run);
        read.sort_by_key(key);
        native.sort_by_key(key);
        ensure!(
            read.len() == native.len(),
            "{} runs, not {}",
            read.len(),
            native.len()
        );
        for (read, native) in read.iter().zip(&native) {
            // The model used some ids twice. The native file has the last result of such an id for
            // each of its calls, so its flags are compared where all ids differ.
            let ids: HashSet<String> = read
                .tool_calls
                .iter()
                .map(|call| format!("{:?}", call.id()))
                .collect();
            let flags = ids.len() == read.tool_calls.len();
            ensure!(
                facts(read, flags) == facts(native, flags),
                "{:?}: the runs differ",
                key(native)
            );
        }
        let path = self.scratch.path().join("read.jsonl");
        let lines: Vec<String> = read
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<_, _>>()?;
        std::fs::write(&path, lines.join("\n"))?;
        Ok(path)
    }

    fn narrative(&self, traces: &Path) -> Result<()> {
        let suite = json!({"agents": [{"name": "all", "narrative": {}}]});
        let report: Value =
            serde_json::from_str(&self.score(&suite, traces, &["--test", "all"])?)?;
        let failed = gates(&report, "narrative")
            .next()
            .and_then(|gate| gate["detail"]["failed_runs"].as_array().cloned());
        let failed = failed.context("the report has no list of runs that failed")?;
        ensure!(
            failed.len() <= MAX_UNTRUTHFUL,
            "{} of 80 runs are called untruthful: {failed:?}",
            failed.len()
        );
        Ok(())
    }

    fn stable(&self, traces: &Path) -> Result<()> {
        let classes = json!([{"name": "any", "members": ["get_user_details", "route"]}]);
        let suite = json!({"agents": [{
            "name": "all",
            "equal_function_sets": {"classes": classes},
            "tool_selection": {"expected_tool": "get_user_details", "min_selection_rate": 0.1},
            "orchestration": {},
            "token_efficiency": {"classes": classes},
            "trajectory": {"mode": "unordered", "calls": [{"name": "get_user_details"}]},
            "trajectory_axes": {"order": [{"first": "get_user_details", "second": "book_reservation"}]},
            "golden_path": {"calls": ["get_user_details"]},
            "stability": {},
            "reliability": {},
            "narrative": {},
            "tool_edges": {"restricted": ["transfer_to_human_agents"]},
        }]});
        let first = self.score(&suite, traces, &["--test", "all"])?;
        ensure!(
            first == self.score(&suite, traces, &["--test", "all"])?,
            "two reports differ"
        );
        Ok(())
    }
}

/// The facts of a run that both forms record; with or without the error flags of results.
fn facts(trace: &Trace, flags: bool) -> Value {
    let results = trace.results_by_call();
    let calls: Vec<Value> = trace
        .tool_calls
        .iter()
        .zip(results)
        .map(|(call, result)| {
            let failed = result.and_then(|one| one.is_error).filter(|_| flags);
            json!([call.name(), call.args(), failed])
        })
        .collect();
    let turns = trace.conversation.turns.iter().flatten();
    let said: Vec<String> = turns
        .filter(|turn| turn.role.as_deref() == Some("assistant"))
        .map(|turn| turn.text())
        .filter(|text| !text.is_empty())
        .collect();
    json!([trace.test, trace.run, trace.extra("reward"), calls, said])
}

fn gates<'a>(report: &'a Value, block: &'a str) -> impl Iterator<Item = &'a Value> {
    let tests = report["tests"].as_array().into_iter().flatten();
    tests.filter_map(move |test| {
        test["gates"]
            .as_array()?
            .iter()
            .find(|gate| gate["block"] == block)
    })
}
