//! SEC-014: an entry has changed since it was pinned.

use super::{Check, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    id: "SEC-014",
    severity: Severity::Warning,
    title: "with --pin, an entry has changed since it was pinned",
    why: "A server that was reviewed can change its texts later (a rug pull). `--pin FILE` writes names, descriptions, schemas and instructions on first use and compares later. A change is critical if the new text has a SEC finding that the old one had not, otherwise a warning with the difference. Accept a change by deleting the file, or by `--pin FILE --update-pin`.",
    bad: r#"{"name": "get_tide", "description": "Get the tide of a harbour, changed since it was pinned. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_tide", "description": "Get the tide of a harbour. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: None,
    check: Check::Catalogs,
};
