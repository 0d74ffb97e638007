//! `mcptest explain`.

use std::fmt::Write as _;

use mcptest_catalog::lint::{self, RULES, Rule};
use mcptest_report::ExitCode;
use mcptest_yaml::suggest;
use serde_json::{Value, json};

use crate::cli::{ExplainArgs, Format};
use crate::columns::wrapped;
use crate::failure::Failure;
use crate::output::Output;

pub fn explain(args: &ExplainArgs, output: &Output) -> Result<ExitCode, Failure> {
    let Some(id) = &args.rule else {
        output.result(&match args.how.format {
            Format::Json => format!("{:#}\n", Value::from(RULES.map(as_json).to_vec())),
            Format::Pretty => list(),
        });
        return Ok(ExitCode::Passed);
    };
    let Some(rule) = lint::find(id) else {
        let near = suggest(&id.to_uppercase(), RULES.iter().map(|rule| rule.id));
        let hint = near.map_or_else(
            || "`mcptest explain` lists the rules".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let id = mcptest_json::text::one_line(id);
        return Err(Failure::Message(format!("there is no rule `{id}`; {hint}")));
    };
    output.result(&match args.how.format {
        Format::Json => format!("{:#}\n", as_json(rule)),
        Format::Pretty => page(rule),
    });
    Ok(ExitCode::Passed)
}

fn list() -> String {
    // Writing to a String cannot fail.
    let mut out = String::new();
    for rule in RULES {
        let _ = writeln!(
            out,
            "{:<8}  {:<8}  {}",
            rule.id,
            rule.severity.as_str(),
            rule.title
        );
    }
    out
}

fn page(rule: &Rule) -> String {
    let smell = rule.smell.map_or_else(String::new, |smell| {
        format!(", counted as smells.{}", smell.as_str())
    });
    let example = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        format!("{value:#}").replace('\n', "\n  ")
    };
    format!(
        "{} ({}{smell})\n{}\n\n{}\n\nbad\n  {}\n\ngood\n  {}\n",
        rule.id,
        rule.severity.as_str(),
        rule.title,
        wrapped(rule.why),
        example(rule.bad),
        example(rule.good),
    )
}

fn as_json(rule: &Rule) -> Value {
    let example = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    json!({
        "id": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "why": rule.why,
        "smell": rule.smell,
        "bad": example(rule.bad),
        "good": example(rule.good)
    })
}
