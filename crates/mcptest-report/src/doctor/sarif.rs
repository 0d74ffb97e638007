//! `sarif`: findings in SARIF 2.1.0, for code scanning.

use std::io::{self, Write};

use mcptest_catalog::doctor::DoctorReport;
use mcptest_catalog::lint::{RULES, Severity};
use mcptest_json::text::one_line;
use serde_json::{Value, json};

pub(super) fn render(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = RULES
        .into_iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": format!("{}\n\nBad:\n{}\n\nGood:\n{}", rule.why, rule.bad, rule.good)},
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
            .suggestion
            .as_ref()
            .map_or_else(String::new, |hint| format!(". {hint}"));
        let mut result = json!({
            "ruleId": finding.rule,
            "ruleIndex": index,
            "level": level(finding.severity),
            "message": {"text": format!("{}: {}{}", one_line(&finding.tool), one_line(&finding.message), one_line(&hint))},
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": {"uri": uri(file)},
                    "region": {"startLine": server.map_or(1, |server| server.line_of(&finding.tool))}
                },
                "logicalLocations": [{
                    "fullyQualifiedName": format!("{}{}", one_line(&finding.tool), one_line(finding.path.as_deref().unwrap_or_default())),
                    "kind": "function"
                }]
            }]
        });
        if let Some(reason) = &finding.waived {
            result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
        }
        results.push(result);
    }
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "mcptest", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
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

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                out.push(char::from(byte))
            }
            b'\\' => out.push('/'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
