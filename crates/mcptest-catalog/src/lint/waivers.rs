//! Accepted findings, each with a reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, Severity};

/// A file of accepted findings.
///
/// ```yaml
/// waivers:
///   - rule: DESC-012
///     tool: legacy_*
///     reason: frozen until the next major version
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-mcptest-expected" = "a mapping with the key `waivers:`"))]
pub struct WaiverFile {
    /// The accepted findings.
    pub waivers: Vec<Waiver>,
}

/// An accepted finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The rule, such as `DESC-012`.
    pub rule: String,
    /// The tool; `*` matches any characters. Default: every tool.
    #[serde(default)]
    pub tool: Option<String>,
    /// The reason.
    #[schemars(length(min = 1))]
    pub reason: String,
}

impl Waiver {
    fn covers(&self, finding: &Finding) -> bool {
        let rule_matches = finding
            .rule
            .as_deref()
            .is_some_and(|rule| rule.eq_ignore_ascii_case(&self.rule));
        rule_matches
            && self
                .tool
                .as_deref()
                .is_none_or(|tool| glob(tool, &finding.tool))
    }
}

/// Marks accepted findings, and returns the waivers that matched nothing.
pub fn apply<'a>(waivers: &'a [Waiver], findings: &mut [Finding]) -> Vec<&'a Waiver> {
    let mut used = vec![false; waivers.len()];
    for finding in findings
        .iter_mut()
        .filter(|finding| finding.severity != Severity::Pass)
    {
        for (waiver, used) in waivers.iter().zip(&mut used) {
            if waiver.covers(finding) {
                *used = true;
                finding.waived.get_or_insert_with(|| waiver.reason.clone());
            }
        }
    }
    waivers
        .iter()
        .zip(used)
        .filter(|(_, used)| !used)
        .map(|(waiver, _)| waiver)
        .collect()
}

/// Matches a name against a pattern in which only `*` is special.
///
/// Not `globset`: there `?`, `[`, `{` and `\` are special too, so every pattern would have to be
/// escaped around its `*` first, and compiling it can fail.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or("")) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, wanted) in [
            ("get", "get", true),
            ("get", "gets", false),
            ("get*", "gets", true),
            ("*", "", true),
            ("*_x", "a_x", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn a_waived_finding_stays_and_does_not_count() {
        let listed = [json!({"name": "legacy_a"}), json!({"name": "b"})];
        let mut findings = super::super::lint(None, &listed);
        let waiver = |rule: &str, tool: Option<&str>| Waiver {
            rule: rule.to_owned(),
            tool: tool.map(Into::into),
            reason: "old".to_owned(),
        };
        let waivers = [
            waiver("desc-012", Some("legacy_*")),
            waiver("DESC-002", None),
        ];
        let before = findings.len();
        let unused = apply(&waivers, &mut findings);
        assert_eq!(unused, [&waivers[1]]);
        assert_eq!(findings.len(), before);
        let waived: Vec<_> = findings
            .iter()
            .filter(|finding| finding.waived.is_some())
            .collect();
        assert_eq!(waived.len(), 1);
        assert_eq!(waived[0].tool, "legacy_a");
        assert!(!waived[0].counts());
    }
}
