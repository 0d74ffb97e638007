//! Hostile strings through every reporter.

use mcptest_trace::verdict::Verdict;
use serde_json::json;

use super::{REPORTERS, Style, render};
use crate::Report;
use crate::samples;

/// Strings that would do harm where they are not escaped.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\u{1b}[31mred\u{1b}]0;title\u{7}",
    "\u{202e}txt.exe",
    "]]></system-out><failure/>",
    "```\n# @everyone https://example.com/x #1",
    "::error file=a::b\r\n::stop-commands::x",
    "a\" } # EOF\nmcptest_exit_code 0",
    "\u{9b}2J\u{2028}\u{feff}\u{7f}",
];

/// A report with this string in every field that a server or a model controls.
fn report_with(text: &str) -> Report {
    let mut test = samples::test(text, Some(text), Verdict::Fail);
    let mut gate = samples::floor(Verdict::Fail, 50);
    gate.summary = text.to_owned();
    gate.findings = vec![text.to_owned()];
    gate.notes = vec![text.to_owned()];
    gate.advisories = vec![text.to_owned()];
    test.gates.push(gate);
    test.suite = text.to_owned();
    test.tags = vec![text.to_owned()];
    let run = &mut test.runs[0];
    let value = json!(text);
    run.assertions = vec![samples::assertion(text, value.clone(), value, false)];
    run.trace = serde_json::from_value(json!({
        "model": text,
        "tool_calls": [{"name": text, "server": text, "args": {"x": text}}],
        "tool_results": [{"is_error": true, "content": [{"type": "text", "text": text}]}],
        "final_response": text,
        "stderr": {"server": [text]},
    }))
    .unwrap();
    let mut broken = samples::test(text, None, Verdict::Error);
    if let Some(error) = &mut broken.runs[0].error {
        error.message = text.to_owned();
    }
    let mut nothing = samples::test(text, None, Verdict::NoEvidence);
    nothing.no_evidence = Some(text.to_owned());
    samples::concluded(vec![test, broken, nothing])
}

fn rendered(name: &str, report: &Report) -> String {
    let mut out = Vec::new();
    render(name, report, Style::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn nothing_hostile_survives_in_any_reporter() {
    let is_hostile = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}')
    };
    for text in HOSTILE {
        let report = report_with(text);
        for (name, ..) in REPORTERS {
            let shown = rendered(name, &report);
            // JSON keeps every character of the evidence.
            if name != "json" {
                let found = shown.chars().find(|c| is_hostile(*c));
                assert_eq!(found, None, "{name}: {text:?}");
            }
            if ![
                "json", "html", "pretty", "markdown", "pr", "agent", "tap", "github",
            ]
            .contains(&name)
                && name != "openmetrics"
            {
                assert!(!shown.contains("<script"), "{name}: {text:?}");
            }
            assert_eq!(shown, rendered(name, &report), "{name} is not stable");
        }
    }
}

#[test]
fn a_megabyte_is_bounded() {
    let report = report_with(&"x<\u{1b}`".repeat(250_000));
    for (name, ..) in REPORTERS {
        if ["json", "html", "pretty", "junit", "markdown"].contains(&name) {
            continue;
        }
        let size = rendered(name, &report).len();
        assert!(size < 64_000, "{name}: {size}");
    }
}

#[test]
fn reports_for_machines_keep_the_verdict() {
    let report = report_with(HOSTILE[0]);
    let code = u8::from(report.exit_code);
    for (name, wanted) in [
        ("agent", format!("(exit {code})")),
        ("ndjson", format!("\"exit_code\":{code}")),
        ("sarif", format!("\"exitCode\": {code}")),
        ("ctrf", format!("\"exitCode\": {code}")),
        ("openmetrics", format!("mcptest_exit_code {code}\n")),
        ("pr", "## mcptest: error".to_owned()),
        ("tap", "not ok 1".to_owned()),
        ("github", "::error ".to_owned()),
        ("gitlab", "\"severity\": \"critical\"".to_owned()),
    ] {
        let shown = rendered(name, &report);
        assert!(shown.contains(&wanted), "{name}: {shown}");
    }
}
