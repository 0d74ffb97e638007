//! `sarif`: findings in SARIF 2.1.0, for code scanning.

use std::io::{self, Write};

use mcptest_catalog::doctor::DoctorReport;
use mcptest_catalog::lint::{RULES, Severity};
use mcptest_json::text::one_line;
use serde_json::{Value, json};

use crate::uri_path::escaped_path;

pub(super) fn render(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = RULES
        .into_iter()
        .map(|rule| {
            let (why, bad, good) = (rule.why, rule.bad, rule.good);
            let help = format!("{why}\n\nBad:\n{bad}\n\nGood:\n{good}");
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": help},
                "defaultConfiguration": {"level": level(rule.severity)}
            })
        })
        .collect();
    let mut results = Vec::new();
    for finding in report.lint.iter().flat_map(|lint| &lint.findings) {
        let Some(index) = RULES
            .into_iter()
            .position(|rule| finding.rule.as_deref() == Some(rule.id))
        else {
            continue;
        };
        let server = report.server_of(finding);
        let file = server
            .and_then(|server| server.file.as_deref())
            .unwrap_or("mcptest.yml");
        let hint = finding
            .fix
            .as_ref()
            .map_or_else(String::new, |fix| format!(". Fix: {fix}"));
        let (tool, message) = (one_line(&finding.tool), one_line(&finding.message));
        let hint = one_line(&hint);
        let path = one_line(finding.path.as_deref().unwrap_or_default());
        let line = server.map_or(1, |server| server.line_of(&finding.tool));
        let mut result = json!({
            "ruleId": finding.rule,
            "ruleIndex": index,
            "level": level(finding.severity),
            "message": {"text": format!("{tool}: {message}{hint}")},
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": {"uri": uri(file)},
                    "region": {"startLine": line}
                },
                "logicalLocations": [{
                    "fullyQualifiedName": format!("{tool}{path}"),
                    "kind": "function"
                }]
            }]
        });
        if let Some(fix) = &finding.fix {
            result["properties"] = json!({"fix": fix});
        }
        if let Some(reason) = &finding.waived {
            result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
        }
        results.push(result);
    }
    let version = env!("CARGO_PKG_VERSION");
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "mcptest", "version": version, "rules": rules}},
            "results": results
        }]
    });
    writeln!(out, "{sarif:#}")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "error",
        Severity::Warning => "warning",
        Severity::Pass => "none",
    }
}

/// Encodes a path as a relative reference.
fn uri(path: &str) -> String {
    escaped_path(&path.replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_references() {
        assert_eq!(uri("a\\b/c d-ä~.json"), "a/b/c%20d-%C3%A4~.json");
    }
}
