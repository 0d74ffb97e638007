//! Whether a cassette is what it should be.

use mcptest_redact::redact::Redactor;
use serde::Serialize;

use crate::format::Cassette;
use crate::traces::traces;
use mcptest_redact::volatile::unexplained;

/// Something about a cassette that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it makes the cassette unfit.
    pub error: bool,
    /// In one line.
    pub words: String,
}

fn error(words: String) -> Finding {
    Finding { error: true, words }
}

/// Looks for what is missing, left over, or does not fit together.
#[must_use]
pub fn verify(cassette: &Cassette, redactor: &Redactor) -> Vec<Finding> {
    let mut found = Vec::new();
    if !cassette.is_complete() {
        let (has, planned) = (cassette.runs.len(), cassette.planned);
        found.push(error(format!("{has} of {planned} runs are recorded")));
    }
    if cassette.fingerprint != cassette.subject.fingerprint() {
        found.push(error(
            "the fingerprint is not that of the subject: the file was edited".to_owned(),
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
        found.push(error(format!("there is a secret in line {lines}")));
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
            found.push(error(format!(
                "run {}: nothing tells what {names} stands for",
                run.run
            )));
        }
        if let Some(broke) = run.broke() {
            let words = format!(
                "run {} was recorded with an error ({})",
                run.run,
                broke.kind.as_str()
            );
            found.push(Finding {
                error: false,
                words,
            });
        }
    }
    match traces(cassette.clone()) {
        Err(words) => found.push(error(words)),
        Ok(traces) => {
            for (run, trace) in cassette.runs.iter().zip(&traces) {
                if let (Some(broke), None) = (&trace.error, run.broke()) {
                    let first = broke.message.lines().next().unwrap_or_default();
                    found.push(error(format!("run {} does not replay: {first}", run.run)));
                }
            }
        }
    }
    found
}
