//! The rows of single traces, which are written while traces are scored.

use mcptest_events::log::redact_json;
use mcptest_redact::redact::Redactor;
use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::{RunError, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A line of `score --out`: the score of one trace.
#[derive(Serialize, JsonSchema)]
struct ScoreRow<'a> {
    /// The trace file; `-` for standard input.
    file: &'a str,
    /// The line on which the trace begins, from 1; `null` if the file does not consist of lines.
    line: Option<u64>,
    #[serde(flatten)]
    row: TraceRow<'a>,
}

/// The row of one trace, apart from its file and line.
#[derive(Serialize, JsonSchema)]
pub(super) struct TraceRow<'a> {
    /// The test.
    pub test: &'a str,
    /// The model, if the trace names one.
    pub model: Option<&'a str>,
    /// The recorded number of the run.
    pub run: Option<u64>,
    /// The verdict on the run's own assertions.
    pub verdict: Verdict,
    /// The reason why the run could not be completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a RunError>,
    /// The number of tool calls.
    pub calls: u32,
    /// The number of tool results that are errors.
    pub errors: u32,
    /// The reported total of tokens.
    pub tokens: Option<u64>,
    /// The test's assertions on the run.
    pub assertions: &'a [Assertion],
    /// For each gate, its figures over this run alone. A figure that one run does not define is
    /// absent.
    pub gates: Map<String, Value>,
}

/// The JSON Schema of a line of `score --out`.
#[must_use]
pub fn score_row_schema() -> Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<ScoreRow<'_>>()
        .to_value();
    mcptest_json::schema::join_description_lines(&mut schema);
    schema["title"] = "mcptest score row".into();
    schema
}

/// The figures of gates. A figure that one run does not define is left out.
pub(super) fn figures(gates: Vec<GateOutcome>) -> Map<String, Value> {
    let defined = |gate: GateOutcome| {
        let values = gate.values.into_iter();
        let values: Map<String, Value> = values.filter(|(_, value)| !value.is_null()).collect();
        (gate.block, values.into())
    };
    gates.into_iter().map(defined).collect()
}

/// The rows of a part of a file. Where the part begins in the file is known only when the parts
/// before it are.
#[derive(Default)]
pub(super) struct PartRows {
    /// The JSON of all rows, each without its opening brace.
    text: Vec<u8>,
    /// For each row, its line in the part and the end of its text.
    rows: Vec<(Option<usize>, usize)>,
}

impl PartRows {
    /// Adds a row, without secrets.
    pub fn push(&mut self, line: Option<usize>, row: &TraceRow<'_>, redactor: &Redactor) {
        // Strings, numbers and JSON values can always be written.
        let json = serde_json::to_string(row).unwrap_or_default();
        let clean = redact_json(&json, redactor).unwrap_or(json);
        let text = clean.strip_prefix('{').unwrap_or("}");
        self.text.extend_from_slice(text.as_bytes());
        self.rows.push((line, self.text.len()));
    }

    /// The rows as lines. `file` is JSON; `before` is the number of lines before the part.
    pub fn lines(&self, file: &str, before: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + self.rows.len() * (file.len() + 32));
        let mut start = 0;
        for (line, end) in &self.rows {
            let line = line.map_or(Value::Null, |line| (before + line + 1).into());
            out.extend_from_slice(format!("{{\"file\":{file},\"line\":{line},").as_bytes());
            out.extend_from_slice(&self.text[start..*end]);
            out.push(b'\n');
            start = *end;
        }
        out
    }
}
