//! `mcptest agents-md`: how a coding agent writes and repairs suites. Names and codes come from the
//! registries.

use mcptest_report::ExitCode;
use mcptest_suite::targets::{DIRECT_TARGETS, RUN_TARGETS};
use mcptest_trace::verdict::Verdict;
use serde_json::json;

use crate::cli::{TOPICS, exit_codes};
use crate::command::help::matcher_names;
use crate::gates::Gates;
use crate::output::Output;

const TEMPLATE: &str = include_str!("agents_md/template.md");

pub fn agents_md(gates: Gates, output: &Output) -> ExitCode {
    output.result(&text(gates));
    ExitCode::Passed
}

fn text(gates: Gates) -> String {
    let code = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let gate_list: Vec<String> = gates
        .iter()
        .map(|gate| format!("- `{}`: {}", gate.block, gate.summary))
        .collect();
    let codes: Vec<String> = exit_codes()
        .iter()
        .map(|(code, meaning)| format!("| {code} | {meaning} |"))
        .collect();
    let matchers = matcher_names(gates);
    let matchers: Vec<&str> = matchers.iter().map(String::as_str).collect();
    let verdicts = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::NoEvidence,
        Verdict::Error,
    ]
    .map(|verdict| json!(verdict).as_str().unwrap_or_default().to_owned());
    let verdicts: Vec<&str> = verdicts.iter().map(String::as_str).collect();
    [
        ("{topics}", code(&TOPICS.map(|(topic, _)| topic))),
        (
            "{run_targets}",
            code(&RUN_TARGETS.map(|(target, _)| target)),
        ),
        (
            "{direct_targets}",
            code(&DIRECT_TARGETS.map(|(target, _)| target)),
        ),
        ("{matchers}", code(&matchers)),
        ("{gates}", gate_list.join("\n")),
        ("{exit_codes}", codes.join("\n")),
        ("{verdicts}", code(&verdicts)),
    ]
    .iter()
    .fold(TEMPLATE.to_owned(), |text, (place, value)| {
        text.replace(place, value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled_and_the_text_stays_short() {
        let text = text(&[]);
        for place in [
            "{topics}",
            "{run_targets}",
            "{direct_targets}",
            "{matchers}",
            "{gates}",
            "{exit_codes}",
            "{verdicts}",
        ] {
            assert!(TEMPLATE.contains(place), "{place}");
            assert!(!text.contains(place), "{place}");
        }
        assert!(
            text.contains("`contains-all`") && text.contains("| 130 |"),
            "{text}"
        );
        assert!(text.lines().count() <= 120);
    }
}
