//! Checks of a file that does not fit the schema.

use mcptest_catalog::quality;
use mcptest_gate_api::{GateInfo, LoadContext, LoadedGate, find_in};
use mcptest_trace::expect::WrittenExpectation;
use mcptest_trace::trace::OBSERVABLE_ROOTS;
use mcptest_yaml::Diagnostic;
use serde_json::Value;

use super::DIRECT_ROOTS;
use super::diagnostics::place;
use super::expressions::compile;
use crate::import::InvalidFile;

/// Compiles all expressions outside the places with problems.
pub(crate) fn expressions_of_invalid(
    file: &InvalidFile,
    known_gates: &'static [GateInfo],
) -> Vec<Diagnostic> {
    let document = &file.document;
    let mut problems = Vec::new();
    let touched = |pointer: &str| {
        let extent = document.extent_at(pointer);
        file.problem_spans
            .iter()
            .any(|span| extent.start <= span.start && span.start <= extent.end)
    };
    let root = document.root().to_json();
    let try_expectations =
        |base: &str, list: Option<&Value>, roots: &[&str], problems: &mut Vec<Diagnostic>| {
            for (index, item) in list
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .enumerate()
            {
                let at = format!("{base}/{index}");
                if !touched(&at) {
                    compile(
                        document,
                        &WrittenExpectation(item.clone()),
                        &at,
                        roots,
                        known_gates,
                        problems,
                    );
                }
            }
        };
    for section in ["agents", "tests"] {
        for (index, entry) in list_of(&root, section).iter().enumerate() {
            let at = format!("/{section}/{index}");
            try_expectations(
                &format!("{at}/expect"),
                entry.get("expect"),
                &OBSERVABLE_ROOTS,
                &mut problems,
            );
            let gates: Vec<(String, Value)> = entry
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, _)| find_in(known_gates, key).is_some())
                .map(|(key, block)| (key.clone(), block.clone()))
                .collect();
            // Only checks that do not need the rest of the entry. Invalid blocks are skipped, but a
            // block that needs one of them as its sibling must still see that it exists.
            let context = LoadContext {
                to_run: false,
                runs: None,
                siblings: &gates,
                attacks: Default::default(),
            };
            for (key, block) in gates
                .iter()
                .filter(|(key, _)| !touched(&format!("{at}/{key}")))
            {
                let Some(info) = find_in(known_gates, key) else {
                    continue;
                };
                let (_, found) = LoadedGate::load(info, block, &context);
                let block_at = format!("{at}/{key}");
                problems.extend(
                    found
                        .iter()
                        .map(|problem| place(document, &block_at, problem)),
                );
            }
        }
    }
    for section in ["tools", "resources", "prompts"] {
        for (index, entry) in list_of(&root, section).iter().enumerate() {
            let at = format!("/{section}/{index}/expect");
            let expect = entry.get("expect");
            try_expectations(&at, expect, &DIRECT_ROOTS, &mut problems);
            let assertions = expect.and_then(|expect| expect.get("assertions"));
            try_expectations(
                &format!("{at}/assertions"),
                assertions,
                &DIRECT_ROOTS,
                &mut problems,
            );
        }
    }
    for (index, entry) in list_of(&root, "tool_quality").iter().enumerate() {
        let at = format!("/tool_quality/{index}/expect");
        let list = entry
            .get("expect")
            .and_then(Value::as_array)
            .filter(|_| !touched(&at));
        let written: Vec<_> = list
            .into_iter()
            .flatten()
            .cloned()
            .map(WrittenExpectation)
            .collect();
        if let Err(found) = quality::expectations(&written, &at) {
            problems.extend(found.iter().map(|problem| place(document, "", problem)));
        }
    }
    problems
}

fn list_of<'a>(root: &'a Value, section: &str) -> &'a [Value] {
    root.get(section)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
