//! The rows of single traces, which are written while traces are scored.

use mcptest_events::log::redact_json;
use mcptest_redact::redact::Redactor;
use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::{RunError, Verdict};
use serde::Serialize;
use serde_json::{Map, Value};

/// The row of one trace, apart from its file and line.
#[derive(Serialize)]
pub(super) struct TraceRow<'a> {
    pub test: &'a str,
    pub model: Option<&'a str>,
    /// The recorded number of the run.
    pub run: Option<u64>,
    pub verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a RunError>,
    pub calls: u32,
    pub errors: u32,
    pub tokens: Option<u64>,
    pub assertions: &'a [Assertion],
    /// For each gate, its figures over this run alone.
    pub gates: Map<String, Value>,
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
