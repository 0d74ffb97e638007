//! Reading a JSON report back.

use serde::Deserialize;

use crate::model::{Report, SCHEMA_VERSION};

/// The deepest nesting that is read. What a server answered may itself be nested to the limit of
/// its reader (128), and stands some levels deep in a report.
const DEEPEST: usize = 512;

/// Why a text is no report that this version reads.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not a report.
    #[error("{line}:{column}: not a report of mcptest: {message}")]
    NotAReport {
        /// Where reading ended, from 1.
        line: usize,
        /// Where reading ended, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// Of another time.
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
        let words = error.to_string();
        // The place has its own fields.
        let message = words
            .rsplit_once(" at line ")
            .map_or(words.as_str(), |(message, _)| message);
        Self::NotAReport {
            line: error.line(),
            column: error.column(),
            message: message.to_owned(),
        }
    }
}

/// Reads what the `json` reporter wrote.
///
/// # Errors
/// Text that is no report, or of a version that this one does not know.
pub fn read(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    if let Some((line, column)) = too_deep(text) {
        return Err(ReadError::NotAReport {
            line,
            column,
            message: format!("nested deeper than {DEEPEST} levels"),
        });
    }
    // First: another version may have another shape, and complaints about the shape would mislead.
    let version: Version = parse(text)?;
    if version.schema_version != u64::from(SCHEMA_VERSION) {
        return Err(ReadError::OtherVersion {
            found: version.schema_version,
        });
    }
    Ok(parse(text)?)
}

/// As `from_str`, without its limit to the depth, which is checked before.
fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Line and column of the first bracket that opens one level too many.
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
            b'[' | b'{' if depth == DEEPEST => return Some((line, at - line_start + 1)),
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

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            told(r#"{"schema_version": 7, "tests": 5}"#),
            "the report has schema version 7, and this mcptest reads version 1"
        );
        assert_eq!(
            told("{\n  \"tests\": []}"),
            "2:14: not a report of mcptest: missing field `schema_version`"
        );
        assert_eq!(
            told(r#"{"schema_version": 1, "verdict": "pass"}"#),
            "1:40: not a report of mcptest: missing field `exit_code`"
        );
        assert!(told("").starts_with("1:0: not a report of mcptest: EOF"));
        // Deeper than any report: an error, not the end of the stack.
        assert_eq!(
            told(&format!("\n {}", "[".repeat(100_000))),
            "2:514: not a report of mcptest: nested deeper than 512 levels"
        );
        assert!(told(&format!("\"{}\\\"[\"", "[".repeat(1000))).contains("invalid type: string"));
    }

    #[test]
    fn whatever_a_server_may_answer_can_be_read_back() {
        let mut report = crate::samples::report(1);
        let mut deep = serde_json::json!("end");
        for _ in 0..200 {
            deep = serde_json::json!([deep]);
        }
        report.tests[0].runs[0]
            .trace
            .extra
            .insert("deep".to_owned(), deep);
        let text = crate::reporter::json::pretty_json(&report);
        let again = read(&text).unwrap();
        assert_eq!(crate::reporter::json::pretty_json(&again), text);
    }

    #[test]
    fn keys_of_later_versions_do_no_harm() {
        let text = r#"{"schema_version":1,"verdict":"pass","exit_code":0,"tests":[],"tool_selection":[],"later":{"a":1}}"#;
        assert_eq!(read(text), Ok(Report::conclude(Vec::new(), false)));
    }
}
