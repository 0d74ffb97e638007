//! The result of `run`, `score` and `report`: a verdict, a summary, and as much more as was asked
//! for.

use std::path::Path;

use mcptest_json::text::one_line;
use mcptest_report::ExitCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::{Call, ToolError};
use crate::child::Finished;
use crate::result_size::{self, RemainingSize};

/// The largest JSON report that is read, in bytes.
const MAX_REPORT: u64 = 256 << 20;

/// The number of problems that are listed of one test.
const MAX_PROBLEMS: usize = 12;

/// The extent of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Detail {
    /// The verdict and a line per test that did not pass.
    #[default]
    Summary,
    /// Also the assertions that failed, of every test that did not pass.
    Failures,
    /// Also every other test, and the figures of gates.
    All,
}

/// A judged run, or recorded runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Judged {
    /// The verdict over all tests: pass, fail, no_evidence or error. Absent for lists and
    /// comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub verdict: Option<String>,
    /// The exit code that the command line ends with. Absent for lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub exit_code: Option<i32>,
    /// The meaning of the exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub meaning: Option<String>,
    /// For reading: the verdict, and a line per test that did not pass with the command that
    /// reproduces it.
    pub summary: String,
    /// The tests, if details were asked for.
    pub tests: Vec<JudgedTest>,
    /// The id of the run in the history, for the tool `report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub run_id: Option<String>,
    /// The number of entries that did not fit.
    pub omitted: u64,
    /// The part that was left out, and the way to get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub notice: Option<String>,
}

/// A test of a report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JudgedTest {
    /// Its name, with the model if several run.
    pub name: String,
    /// pass, fail, no_evidence or error.
    pub verdict: String,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that passed.
    pub passed_runs: u64,
    /// Assertions that did not hold: expected, actual, reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub problems: Vec<String>,
    /// The figures of its gates.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(default)]
    pub figures: Map<String, Value>,
}

impl Call<'_> {
    /// The arguments for a report: one for programs, and one for reading.
    pub(crate) fn reporters(&self) -> Vec<String> {
        let file = |name: &str| self.scratch.path().join(name).display().to_string();
        vec![
            "--reporter".to_owned(),
            format!("json={}", file("report.json")),
            "--reporter".to_owned(),
            format!("agent={}", file("summary.txt")),
        ]
    }

    /// The result of a child that was started with [`Call::reporters`].
    ///
    /// # Errors
    /// It wrote no report.
    pub(crate) fn judged(&self, finished: &Finished, detail: Detail) -> Result<Judged, ToolError> {
        let summary = std::fs::read_to_string(self.scratch.path().join("summary.txt"));
        let (Ok(summary), Some(exit_code)) = (summary, finished.code) else {
            return Err(self.failure(finished));
        };
        let mut judged = Judged::text(&summary);
        let report = read(&self.scratch.path().join("report.json"))
            .map_err(|why| ToolError(format!("cannot read the report: {why}")))?;
        judged.verdict = report["verdict"].as_str().map(str::to_owned);
        // The exit code of `report` is its own; the verdict's is of interest.
        let of_report = report["exit_code"].as_i64();
        let code = of_report.and_then(|code| i32::try_from(code).ok());
        let code = code.unwrap_or(exit_code);
        judged.exit_code = Some(code);
        judged.meaning = Some(meaning(code).to_owned());
        if detail != Detail::Summary {
            let tests = report["tests"].as_array();
            let tests = tests
                .into_iter()
                .flatten()
                .filter(|test| detail == Detail::All || test["verdict"].as_str() != Some("pass"));
            let mut remaining = RemainingSize::beside(&judged);
            judged.tests = remaining.fit(tests.map(|test| JudgedTest::of(test, detail)));
            judged.omitted = remaining.omitted;
            if remaining.omitted > 0 {
                judged.notice = Some(format!(
                    "{} more tests did not fit; select tests by name, or read the JSON report of \
                     the command line",
                    remaining.omitted
                ));
            }
        }
        Ok(judged)
    }
}

impl Judged {
    /// A result that is only a summary.
    pub(crate) fn text(summary: &str) -> Self {
        let (summary, is_cut) = result_size::text(summary);
        Self {
            verdict: None,
            exit_code: None,
            meaning: None,
            summary,
            tests: Vec::new(),
            run_id: None,
            omitted: 0,
            notice: is_cut
                .then(|| "the summary is cut; use the command line for all of it".to_owned()),
        }
    }
}

impl JudgedTest {
    fn of(test: &Value, detail: Detail) -> Self {
        let text = |key: &str| test[key].as_str().unwrap_or_default();
        let runs = test["runs"].as_array().map_or(&[][..], Vec::as_slice);
        let gates = test["gates"].as_array().map_or(&[][..], Vec::as_slice);
        let passed = runs.iter().filter(|run| run["verdict"] == "pass").count();
        let mut problems = Vec::new();
        for run in runs {
            let place = match runs.len() {
                1 => String::new(),
                _ => format!("run {}: ", run["index"]),
            };
            if let Some(error) = run.get("error").filter(|error| !error.is_null()) {
                problems.push(format!("{place}error: {}", compact(error)));
            }
            problems.extend(failed_assertions(run).map(|why| format!("{place}{why}")));
            if run["verdict"] != "pass" && test["kind"] == "agent" {
                problems.push(format!("{place}called {}", calls(&run["trace"])));
            }
        }
        for gate in gates {
            let block = gate["block"].as_str().unwrap_or_default();
            problems.extend(failed_assertions(gate).map(|why| format!("{block}: {why}")));
            if let Some(why) = gate["no_evidence"].as_str() {
                problems.push(format!("{block}: no evidence: {why}"));
            }
        }
        if let Some(why) = test["no_evidence"].as_str() {
            problems.push(format!("no evidence: {why}"));
        }
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        let mut problems: Vec<String> = problems
            .iter()
            .map(|problem| result_size::short(&one_line(problem)))
            .collect();
        if more > 0 {
            problems.push(format!("and {more} more"));
        }
        let mut figures = Map::new();
        if detail == Detail::All {
            for values in gates.iter().filter_map(|gate| gate["values"].as_object()) {
                // Lists, such as a curve, are in the report.
                let plain = values
                    .iter()
                    .filter(|(_, value)| !value.is_array() && !value.is_object());
                figures.extend(plain.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        let label = test["label"].as_str().unwrap_or_else(|| text("name"));
        Self {
            name: result_size::short(&one_line(label)),
            verdict: text("verdict").to_owned(),
            // A summary has totals in place of runs.
            runs: test["run_totals"]["runs"]
                .as_u64()
                .unwrap_or(runs.len() as u64),
            passed_runs: test["run_totals"]["passed"]
                .as_u64()
                .unwrap_or(passed as u64),
            problems,
            figures,
        }
    }
}

/// The assertions of a run or gate that did not hold, each in one line.
fn failed_assertions(of: &Value) -> impl Iterator<Item = String> {
    let assertions = of["assertions"].as_array().into_iter().flatten();
    let failed = assertions.filter(|assertion| assertion["passed"] == Value::Bool(false));
    failed.map(|assertion| {
        let reason = assertion["reason"].as_str();
        format!(
            "{}: expected {}, actual {}{}",
            assertion["target"].as_str().unwrap_or_default(),
            compact(&assertion["matcher"]),
            compact(&assertion["actual"]),
            reason.map_or_else(String::new, |reason| format!(" ({reason})")),
        )
    })
}

/// The calls of a run, in order, with their arguments.
fn calls(trace: &Value) -> String {
    let results = trace["tool_results"].as_array().into_iter().flatten();
    let failed: Vec<&Value> = results
        .filter(|result| result["is_error"] == Value::Bool(true))
        .map(|result| &result["call_id"])
        .collect();
    let calls = trace["tool_calls"].as_array().into_iter().flatten();
    let calls: Vec<String> = calls
        .map(|call| {
            let name = call["name"].as_str().unwrap_or_default();
            let is_error = !call["id"].is_null() && failed.contains(&&call["id"]);
            let error = if is_error { " (error)" } else { "" };
            format!("{name} {}{error}", compact(&call["args"]))
        })
        .collect();
    match calls.is_empty() {
        true => "no tool".to_owned(),
        false => calls.join(", "),
    }
}

/// A value in a message: a string as it is, everything else as JSON, shortened.
fn compact(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    mcptest_json::text::shorten(&text, 160)
}

fn meaning(code: i32) -> &'static str {
    let known = ExitCode::ALL
        .into_iter()
        .find(|(known, _)| i32::from(u8::from(*known)) == code);
    known.map_or("unknown", |(_, meaning)| meaning)
}

fn read(path: &Path) -> Result<Value, String> {
    let length = std::fs::metadata(path)
        .map_err(|error| error.to_string())?
        .len();
    if length > MAX_REPORT {
        return Err("it is too large for a tool; use the command line".to_owned());
    }
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
