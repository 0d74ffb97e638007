//! `openmetrics`: the figures of a report in the text format of OpenMetrics 1.0, for a gateway or a
//! file that a collector reads.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mcptest_trace::verdict::Verdict;
use serde_json::Value;

use super::entries::{entries, name};
use super::{RenderError, Style};
use crate::report::{Report, TestReport};

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let tests = labelled(report);
    write_head(out, "mcptest_exit_code", "The exit code of the invocation.")?;
    let code = u8::from(report.exit_code);
    writeln!(out, "mcptest_exit_code {code}")?;
    write_head(out, "mcptest_tests", "The number of tests by verdict.")?;
    for (verdict, count) in [
        ("pass", report.count(Verdict::Pass)),
        ("fail", report.count(Verdict::Fail)),
        ("no_evidence", report.count(Verdict::NoEvidence)),
        ("error", report.count(Verdict::Error)),
        ("interrupted", report.count_interrupted()),
        ("not_run", report.not_run.len()),
    ] {
        writeln!(out, "mcptest_tests{{verdict=\"{verdict}\"}} {count}")?;
    }
    family(
        out,
        &tests,
        ("mcptest_test_passed", "1 if the test passed, else 0."),
        |test| Some(u64::from(test.verdict == Verdict::Pass).to_string()),
    )?;
    family(
        out,
        &tests,
        ("mcptest_test_runs", "The number of runs of the test."),
        |test| Some(test.run_count().to_string()),
    )?;
    family(
        out,
        &tests,
        (
            "mcptest_test_runs_passed",
            "The number of runs that passed.",
        ),
        |test| Some(test.passed_runs().to_string()),
    )?;
    family(
        out,
        &tests,
        ("mcptest_test_tokens", "The tokens of all runs of the test."),
        |test| {
            let counts = test.runs.iter().filter_map(|run| run.tokens());
            let sum = counts.reduce(u64::saturating_add);
            sum.map(|sum| sum.to_string())
        },
    )?;
    family(
        out,
        &tests,
        ("mcptest_test_cost_usd", "The cost of the test's models."),
        |test| Some(number(test.spend?.usd?)),
    )?;
    if report.is_timed() {
        family(
            out,
            &tests,
            ("mcptest_test_duration_seconds", "The duration of the test."),
            |test| Some(number(test.duration_ms() as f64 / 1000.0)),
        )?;
    }
    write_gates(out, &tests)?;
    Ok(writeln!(out, "# EOF")?)
}

/// The tests with the labels of their samples, which are different from each other.
fn labelled(report: &Report) -> Vec<(String, &TestReport)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    entries(report)
        .filter_map(|entry| {
            let test = entry.test?;
            let mut labels = format!(
                "suite=\"{}\",test=\"{}\"",
                value(&test.id.suite),
                value(&test.id.name)
            );
            if let Some(model) = &test.id.model {
                labels.push_str(&format!(",model=\"{}\"", value(model)));
            }
            // Names that were cut may be equal too.
            let count = seen.entry(labels.clone()).or_default();
            *count += 1;
            if *count > 1 {
                labels.push_str(&format!(",nth=\"{count}\""));
            }
            Some((labels, test))
        })
        .collect()
}

/// Writes a family with a sample of each test that has a figure.
fn family(
    out: &mut dyn Write,
    tests: &[(String, &TestReport)],
    (name, help): (&str, &str),
    figure: impl Fn(&TestReport) -> Option<String>,
) -> io::Result<()> {
    write_head(out, name, help)?;
    for (labels, test) in tests {
        if let Some(figure) = figure(test) {
            writeln!(out, "{name}{{{labels}}} {figure}")?;
        }
    }
    Ok(())
}

/// Writes every figure of every gate.
fn write_gates(out: &mut dyn Write, tests: &[(String, &TestReport)]) -> io::Result<()> {
    let help = "A figure of a gate, under the name that suites assert.";
    write_head(out, "mcptest_gate_figure", help)?;
    for (labels, test) in tests {
        let mut seen = std::collections::BTreeSet::new();
        for gate in &test.gates {
            for (target, figure) in &gate.values {
                let figure = match figure {
                    Value::Number(figure) => figure.as_f64().map(number),
                    _ => None,
                };
                let sample = format!(
                    "gate=\"{}\",figure=\"{}\"",
                    value(&gate.block),
                    value(target)
                );
                if let Some(figure) = figure
                    && seen.insert(sample.clone())
                {
                    writeln!(out, "mcptest_gate_figure{{{labels},{sample}}} {figure}")?;
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn write_head(out: &mut dyn Write, name: &str, help: &str) -> io::Result<()> {
    writeln!(out, "# TYPE {name} gauge")?;
    if let Some(unit) = ["seconds", "usd"]
        .iter()
        .find(|unit| name.ends_with(&format!("_{unit}")))
    {
        writeln!(out, "# UNIT {name} {unit}")?;
    }
    writeln!(out, "# HELP {name} {help}")
}

/// Escapes an untrusted label value.
pub(crate) fn value(untrusted: &str) -> String {
    name(untrusted).replace('\\', r"\\").replace('"', "\\\"")
}

pub(crate) fn number(figure: f64) -> String {
    serde_json::Number::from_f64(figure).map_or_else(|| "NaN".to_owned(), |it| it.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn the_figures_of_a_report() {
        let mut gated = samples::test("a \"quoted\" \\", Some("m"), Verdict::Fail);
        gated.gates.push(samples::floor(Verdict::Fail, 50));
        let report = samples::concluded(vec![gated.clone(), gated]);
        assert_eq!(
            rendered(render, &report),
            r#"# TYPE mcptest_exit_code gauge
# HELP mcptest_exit_code The exit code of the invocation.
mcptest_exit_code 1
# TYPE mcptest_tests gauge
# HELP mcptest_tests The number of tests by verdict.
mcptest_tests{verdict="pass"} 0
mcptest_tests{verdict="fail"} 2
mcptest_tests{verdict="no_evidence"} 0
mcptest_tests{verdict="error"} 0
mcptest_tests{verdict="interrupted"} 0
mcptest_tests{verdict="not_run"} 0
# TYPE mcptest_test_passed gauge
# HELP mcptest_test_passed 1 if the test passed, else 0.
mcptest_test_passed{suite="sample",test="a \"quoted\" \\",model="m"} 0
mcptest_test_passed{suite="sample",test="a \"quoted\" \\",model="m",nth="2"} 0
# TYPE mcptest_test_runs gauge
# HELP mcptest_test_runs The number of runs of the test.
mcptest_test_runs{suite="sample",test="a \"quoted\" \\",model="m"} 1
mcptest_test_runs{suite="sample",test="a \"quoted\" \\",model="m",nth="2"} 1
# TYPE mcptest_test_runs_passed gauge
# HELP mcptest_test_runs_passed The number of runs that passed.
mcptest_test_runs_passed{suite="sample",test="a \"quoted\" \\",model="m"} 0
mcptest_test_runs_passed{suite="sample",test="a \"quoted\" \\",model="m",nth="2"} 0
# TYPE mcptest_test_tokens gauge
# HELP mcptest_test_tokens The tokens of all runs of the test.
mcptest_test_tokens{suite="sample",test="a \"quoted\" \\",model="m"} 1000
mcptest_test_tokens{suite="sample",test="a \"quoted\" \\",model="m",nth="2"} 1000
# TYPE mcptest_test_cost_usd gauge
# UNIT mcptest_test_cost_usd usd
# HELP mcptest_test_cost_usd The cost of the test's models.
# TYPE mcptest_gate_figure gauge
# HELP mcptest_gate_figure A figure of a gate, under the name that suites assert.
mcptest_gate_figure{suite="sample",test="a \"quoted\" \\",model="m",gate="tool_selection",figure="floor.selection_rate"} 50.0
mcptest_gate_figure{suite="sample",test="a \"quoted\" \\",model="m",gate="tool_selection",figure="floor.pass_hat_k"} 50.0
mcptest_gate_figure{suite="sample",test="a \"quoted\" \\",model="m",gate="tool_selection",figure="floor.passed"} 0.0
mcptest_gate_figure{suite="sample",test="a \"quoted\" \\",model="m",nth="2",gate="tool_selection",figure="floor.selection_rate"} 50.0
mcptest_gate_figure{suite="sample",test="a \"quoted\" \\",model="m",nth="2",gate="tool_selection",figure="floor.pass_hat_k"} 50.0
mcptest_gate_figure{suite="sample",test="a \"quoted\" \\",model="m",nth="2",gate="tool_selection",figure="floor.passed"} 0.0
# EOF
"#
        );
    }
}
