//! Reading JSON reports.

use serde::Deserialize;

use crate::model::{Report, SCHEMA_VERSION};

/// The deepest nesting of a readable report. A server's answer may be nested to the limit of its
/// reader (128), and is some levels deep in a report.
const MAX_DEPTH: usize = 512;

/// A string that is not a readable report.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not a report.
    #[error("{line}:{column}: not a report of mcptest: {message}")]
    NotAReport {
        /// The line of the defect, from 1.
        line: usize,
        /// The column of the defect, from 1.
        column: usize,
        /// A description of the defect.
        message: String,
    },
    /// A report of another version.
    #[error(
        "the report has schema version {found}, and this mcptest reads version {SCHEMA_VERSION}"
    )]
    OtherVersion {
        /// Its version.
        found: u64,
    },
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The position has its own fields.
        let message = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(message, _)| message);
        Self::NotAReport {
            line: error.line(),
            column: error.column(),
            message: message.to_owned(),
        }
    }
}

/// Reads the output of the `json` reporter.
///
/// # Errors
/// A string that is not a report, or a report of another version.
pub fn read(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    if let Some((line, column)) = too_deep(text) {
        return Err(ReadError::NotAReport {
            line,
            column,
            message: format!("nested deeper than {MAX_DEPTH} levels"),
        });
    }
    // First: another version may have another shape, and errors about the shape would mislead.
    let version: Version = parse(text)?;
    if version.schema_version != u64::from(SCHEMA_VERSION) {
        return Err(ReadError::OtherVersion {
            found: version.schema_version,
        });
    }
    Ok(parse(text)?)
}

/// Parses like `from_str`, without its depth limit: [`too_deep`] has its own.
fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The line and column of the first bracket that is nested too deeply.
fn too_deep(text: &str) -> Option<(usize, usize)> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let (mut line, mut line_start) = (1, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'\n' => (line, line_start) = (line + 1, at + 1),
            b'[' | b'{' if depth == MAX_DEPTH => return Some((line, at - line_start + 1)),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(report: &Report) -> String {
        let mut out = Vec::new();
        crate::reporter::json::write_pretty(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn errors_have_positions() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"schema_version": 7, "tests": 5}"#),
            "the report has schema version 7, and this mcptest reads version 1"
        );
        assert_eq!(
            error("{\n  \"tests\": []}"),
            "2:14: not a report of mcptest: missing field `schema_version`"
        );
        assert_eq!(
            error(r#"{"schema_version": 1, "verdict": "pass"}"#),
            "1:40: not a report of mcptest: missing field `exit_code`"
        );
        assert!(error("").starts_with("1:0: not a report of mcptest: EOF"));
        // Deeper than any report: an error, not a stack overflow.
        assert_eq!(
            error(&format!("\n {}", "[".repeat(100_000))),
            "2:514: not a report of mcptest: nested deeper than 512 levels"
        );
        assert!(error(&format!("\"{}\\\"[\"", "[".repeat(1000))).contains("invalid type: string"));
    }

    #[test]
    fn deep_answers_of_servers_can_be_read_back() {
        let mut report = crate::samples::report(1);
        let mut deep = serde_json::json!("end");
        for _ in 0..200 {
            deep = serde_json::json!([deep]);
        }
        report.tests[0].runs[0]
            .trace
            .extra
            .insert("deep".to_owned(), deep);
        let text = written(&report);
        let again = read(&text).unwrap();
        assert_eq!(written(&again), text);
    }

    #[test]
    fn unknown_keys_are_ignored() {
        let text = r#"{"schema_version":1,"verdict":"pass","exit_code":0,"tests":[],"tool_selection":[],"later":{"a":1}}"#;
        assert_eq!(read(text), Ok(Report::conclude(Vec::new(), false)));
    }
}
