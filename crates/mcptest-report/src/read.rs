//! Reading a JSON report back.

use serde::Deserialize;

use crate::model::{Report, SCHEMA_VERSION};

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
    #[error("the report has schema version {found}, and this mcptest reads version {SCHEMA_VERSION}")]
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
    // First: another version may have another shape, and complaints about the shape would mislead.
    let version: Version = serde_json::from_str(text)?;
    if version.schema_version != u64::from(SCHEMA_VERSION) {
        return Err(ReadError::OtherVersion {
            found: version.schema_version,
        });
    }
    Ok(serde_json::from_str(text)?)
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
        assert!(told(&"[".repeat(100_000)).contains("not a report"));
    }

    #[test]
    fn keys_of_later_versions_do_no_harm() {
        let text =
            r#"{"schema_version":1,"verdict":"pass","exit_code":0,"tests":[],"tool_selection":[],"later":{"a":1}}"#;
        assert_eq!(read(text), Ok(Report::conclude(Vec::new(), false)));
    }
}
