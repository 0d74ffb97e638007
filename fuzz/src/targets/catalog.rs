//! Tool catalogs: rules, fixes, prices, comparison and pins of anything that a server lists.

use mcptest_catalog::diff::diff;
use mcptest_catalog::lint::security::{self, Listing};
use mcptest_catalog::lint::{fix, lint};
use mcptest_catalog::pin::PinFile;
use mcptest_catalog::tool_bench::NotMeasured;
use mcptest_catalog::{quality, tokens};
use mcptest_trace::catalog::Tool;
use serde_json::Value;

/// Runs one input: a `tools/list` result, a saved catalog, or a file of pins.
pub(super) fn run(input: &[u8]) {
    let Ok(file) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(pins) = PinFile::parse(text)
    {
        assert_pins(&pins);
    }
    let listed = |key: &str| -> Vec<Value> {
        let list = file.get(key).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let tools = match &file {
        Value::Array(tools) => tools.clone(),
        _ => listed("tools"),
    };
    let (prompts, resources) = (listed("prompts"), listed("resources"));
    let listing = Listing {
        server: Some("server"),
        tools: &tools,
        instructions: file.get("instructions"),
        prompts: &prompts,
        resources: &resources,
    };
    let _ = (lint(Some("server"), &tools), security::lint(&[listing]));
    assert_pins(&PinFile::new([("server", listing)]));
    let priced = tokens::price_list(&tools);
    assert_eq!(priced.len(), tools.len());
    let assessed = quality::assess(&tools);
    let _ = (assessed.values(), assessed.summary());
    let (fixed, _) = fix::fix(&tools);
    let (again, changes) = fix::fix(&fixed);
    assert!(
        again == fixed && changes.is_empty(),
        "a fix of what is fixed: {changes:?}"
    );
    let of = |listed: &[Value]| -> Vec<Tool> {
        let tools = listed.iter();
        tools
            .filter_map(|tool| Tool::from_listing(Some("server"), tool))
            .collect()
    };
    let (old, new) = (of(&tools), of(&fixed));
    let _ = diff(&old, &new, &NotMeasured);
    let mut reordered = old.clone();
    reordered.rotate_left(usize::from(!old.is_empty()));
    assert_unchanged(&old, &reordered);
}

/// Panics if a difference is found between a catalog and itself in another order. A schema that is
/// too large to compare is not equal to anything.
fn assert_unchanged(old: &[Tool], new: &[Tool]) {
    let mut names: Vec<&str> = old.iter().map(Tool::name).collect();
    names.sort_unstable();
    let is_unique = names.windows(2).all(|pair| pair[0] != pair[1]);
    let found = diff(old, new, &NotMeasured);
    if is_unique && found.not_compared_count == 0 {
        assert!(found.is_empty(), "differs from itself: {found:?}");
    }
}

fn assert_pins(pins: &PinFile) {
    let text = pins.to_text();
    match PinFile::parse(&text) {
        Ok(again) => assert_eq!(again.to_text(), text, "differs after it was written"),
        Err(error) => panic!("pins cannot be read back: {error}"),
    }
}
