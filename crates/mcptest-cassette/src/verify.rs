//! Checking a cassette for defects.

use mcptest_redact::redact::Redactor;
use serde::Serialize;

use crate::format::Cassette;
use crate::traces::traces;
use mcptest_redact::volatile::unexplained;

/// A defect of a cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CassetteFinding {
    /// True if the cassette cannot be used.
    pub error: bool,
    /// The defect, in one line.
    #[serde(rename = "words")]
    pub message: String,
}

impl CassetteFinding {
    /// Creates a finding that makes the cassette unusable.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            error: true,
            message: message.into(),
        }
    }
}

/// Returns the defects of a cassette: missing runs, edits, secrets, runs that do not replay.
#[must_use]
pub fn verify(cassette: &Cassette, redactor: &Redactor) -> Vec<CassetteFinding> {
    let mut found = Vec::new();
    if !cassette.is_complete() {
        let (has, planned) = (cassette.runs.len(), cassette.planned);
        found.push(CassetteFinding::error(format!(
            "{has} of {planned} runs are recorded"
        )));
    }
    if cassette.fingerprint != cassette.subject.fingerprint() {
        found.push(CassetteFinding::error(
            "the fingerprint does not match the subject: the file was edited",
        ));
    }
    let dirty: Vec<String> = (1..)
        .zip(cassette.to_text().lines())
        .filter(|(_, line)| !redactor.is_clean(line))
        .map(|(number, _): (usize, _)| number.to_string())
        .collect();
    if !dirty.is_empty() {
        let lines = dirty
            .iter()
            .take(10)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        found.push(CassetteFinding::error(format!("secrets in line {lines}")));
    }
    for run in &cassette.runs {
        let table = cassette
            .volatile_of(run.run)
            .map(|of| of.values.clone())
            .unwrap_or_default();
        let value = serde_json::to_value((&run.models, &run.calls)).unwrap_or_default();
        let missing = unexplained(&value, &table);
        if !missing.is_empty() {
            let names = missing
                .iter()
                .take(5)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            found.push(CassetteFinding::error(format!(
                "run {}: no recorded value for {names}",
                run.run
            )));
        }
        if let Some(error) = run.first_error() {
            let message = format!(
                "run {} was recorded with an error ({})",
                run.run,
                error.kind.as_str()
            );
            found.push(CassetteFinding {
                error: false,
                message,
            });
        }
    }
    match traces(cassette.clone()) {
        Err(error) => found.push(CassetteFinding::error(error.to_string())),
        Ok(traces) => {
            for (run, trace) in cassette.runs.iter().zip(&traces) {
                if let (Some(error), None) = (&trace.error, run.first_error()) {
                    let first = error.message.lines().next().unwrap_or_default();
                    found.push(CassetteFinding::error(format!(
                        "run {} does not replay: {first}",
                        run.run
                    )));
                }
            }
        }
    }
    found
}
