//! The mock manifest of a server: its tools, with the answers of the calls that were made.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mcptest_mock::{Manifest, ServerSpec, ToolSpec};
use mcptest_yaml::write::{self, escape_all_references};
use serde_json::{Map, Value, json};

use crate::server_draft::{Outcome, ServerDraft, ToolDraft};
use crate::synthesis;

/// The largest answer that is kept, as JSON.
const MAX_ANSWER: usize = 4096;

/// Bounds of the file, below those of its reader.
const MAX_BYTES: usize = 6 * 1024 * 1024;
const MAX_VALUES: usize = 700_000;
const MAX_DEPTH: usize = 48;

/// A mock manifest.
#[derive(Debug)]
pub struct MockFile {
    /// The text.
    pub text: String,
    /// The tools that it has, by their position in the draft.
    pub tools: BTreeSet<usize>,
}

/// Writes the manifest. `schema` is the path of its JSON Schema, relative to the file.
#[must_use]
pub fn write(draft: &ServerDraft, schema: &str) -> MockFile {
    let mut entries: Vec<(usize, Map<String, Value>)> = Vec::new();
    let mut values = 0;
    let mut bytes = 0;
    for (index, tool) in draft.tools.iter().enumerate() {
        let entry = entry(tool);
        let (size, count) = (json!(entry).to_string().len(), count(&json!(entry)));
        if bytes + 2 * size > MAX_BYTES || values + count > MAX_VALUES {
            continue;
        }
        bytes += 2 * size;
        values += count;
        entries.push((index, entry));
    }
    repair(&mut entries);
    let mut out = String::new();
    let _ = writeln!(out, "# yaml-language-server: $schema={schema}");
    let left_out = draft.tools.len() - entries.len();
    write::comment(&mut out, 0, &intro(draft, left_out));
    out.push_str("mock_server:\n");
    write::entry(&mut out, 2, "name", &draft.name.clone().into());
    if let Some(version) = &draft.version {
        write::entry(&mut out, 2, "version", &version.clone().into());
    }
    if let Some(instructions) = &draft.instructions {
        write::entry(&mut out, 2, "instructions", &instructions.clone().into());
    }
    if entries.is_empty() {
        out.push_str("  tools: []\n");
    } else {
        out.push_str("  tools:\n");
    }
    for (_, entry) in &entries {
        let mut text = String::new();
        write::mapping(&mut text, 6, entry);
        // The first key follows the dash.
        out.push_str("    - ");
        out.push_str(&text[6..]);
    }
    MockFile {
        text: out,
        tools: entries.iter().map(|(index, _)| *index).collect(),
    }
}

fn intro(draft: &ServerDraft, left_out: usize) -> String {
    let title = draft.title.as_deref().unwrap_or(&draft.name);
    let mut text = format!(
        "The tools of {title}, captured by `mcptest init`: a mock server for tests that must not \
         reach the real one. Tools that were called have the answer that they gave; others answer \
         with a made-up value, or with their name and arguments."
    );
    if left_out > 0 {
        let _ = write!(
            text,
            "\nLeft out, because a mock cannot have them: {left_out} tools."
        );
    }
    text
}

/// A tool in the form of a manifest.
fn entry(tool: &ToolDraft) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), tool.name.clone().into());
    for key in ["title", "description"] {
        if let Some(text @ Value::String(_)) = tool.listed.get(key) {
            entry.insert(key.to_owned(), text.clone());
        }
    }
    for (listed, key) in [
        ("inputSchema", "input_schema"),
        ("outputSchema", "output_schema"),
    ] {
        if let Some(schema @ Value::Object(_)) = tool.listed.get(listed)
            && depth(schema) <= MAX_DEPTH
        {
            entry.insert(key.to_owned(), schema.clone());
        }
    }
    if let Some(annotations @ Value::Object(_)) = tool.listed.get("annotations")
        && depth(annotations) <= MAX_DEPTH
    {
        entry.insert("annotations".to_owned(), annotations.clone());
    }
    if let Some(response) = response(tool) {
        entry.insert("response".to_owned(), escape_all_references(&response));
    }
    entry
}

/// The answer of the tool, if it gave one that can be kept, else one that fits its schema.
fn response(tool: &ToolDraft) -> Option<Value> {
    if let Outcome::Answered {
        result,
        private: false,
        ..
    } = &tool.outcome
    {
        let mut kept = Map::new();
        for (from, to) in [
            ("content", "content"),
            ("structuredContent", "structured_content"),
        ] {
            if let Some(value) = result.get(from).filter(|value| !value.is_null()) {
                kept.insert(to.to_owned(), value.clone());
            }
        }
        let kept = Value::Object(kept);
        if kept.to_string().len() <= MAX_ANSWER && depth(&kept) <= MAX_DEPTH {
            return Some(kept);
        }
    }
    let schema = tool.listed.get("outputSchema")?;
    let made = synthesis::object(Some(schema)).ok()?;
    Some(json!({ "structured_content": made }))
}

/// Removes what the mock refuses: first the answer, then schemas, then the tool.
fn repair(entries: &mut Vec<(usize, Map<String, Value>)>) {
    for removed in [
        "response",
        "output_schema",
        "annotations",
        "input_schema",
        "",
    ] {
        let refused = refused(entries);
        if refused.is_empty() {
            return;
        }
        if removed.is_empty() {
            let mut position = 0;
            entries.retain(|_| {
                position += 1;
                !refused.contains(&(position - 1))
            });
            return;
        }
        for (position, (_, entry)) in entries.iter_mut().enumerate() {
            if refused.contains(&position) {
                entry.shift_remove(removed);
            }
        }
    }
}

/// The positions of the entries that the mock refuses.
fn refused(entries: &[(usize, Map<String, Value>)]) -> BTreeSet<usize> {
    let mut refused = BTreeSet::new();
    let mut tools = Vec::new();
    for (position, (_, entry)) in entries.iter().enumerate() {
        match serde_json::from_value::<ToolSpec>(Value::Object(entry.clone())) {
            Ok(tool) => tools.push(tool),
            Err(_) => {
                refused.insert(position);
                tools.push(ToolSpec {
                    name: format!("placeholder {position}"),
                    ..ToolSpec::default()
                });
            }
        }
    }
    let server = ServerSpec {
        name: "draft".to_owned(),
        tools,
        ..ServerSpec::default()
    };
    if let Err(problems) = Manifest::from_spec(&server) {
        let positions = problems.iter().filter_map(|problem| {
            let mut steps = problem
                .pointer
                .split('/')
                .skip_while(|step| *step != "tools");
            steps.nth(1)?.parse::<usize>().ok()
        });
        refused.extend(positions);
    }
    refused
}

fn depth(value: &Value) -> usize {
    // Without recursion: the value may be very deep.
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => {
                open.extend(entries.values().map(|item| (item, depth + 1)));
            }
            _ => {}
        }
    }
    deepest
}

fn count(value: &Value) -> usize {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(entries) => open.extend(entries.values()),
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::server_draft::CallPolicy;

    fn written(listed: Vec<Value>) -> MockFile {
        let mut draft = ServerDraft {
            name: "notes".to_owned(),
            version: Some("1.0".to_owned()),
            instructions: Some("Be kind: ${x}\n# not a comment".to_owned()),
            ..ServerDraft::default()
        };
        draft.set_tools(listed, CallPolicy::None);
        write(&draft, "../.mcptest/mock.schema.json")
    }

    fn loads(file: &MockFile) {
        mcptest_mock::load("mock.yml", file.text.as_bytes())
            .unwrap_or_else(|problems| panic!("{problems}\n{}", file.text));
    }

    #[test]
    fn tools_are_kept_as_listed() {
        let schema = json!({"type": "object", "required": ["title"], "properties": {"title": {"type": "string", "description": "e.g. ${x}: # 'y'"}}});
        let file = written(vec![
            json!({"name": "read", "description": "Line one\nline two", "inputSchema": schema, "annotations": {"readOnlyHint": true}, "icons": []}),
            json!({"name": "odd: \u{202e}name\n", "title": 5}),
        ]);
        loads(&file);
        assert_eq!(file.tools.len(), 2);
        assert!(file.text.starts_with(
            "# yaml-language-server: $schema=../.mcptest/mock.schema.json\n# The tools of notes,"
        ));
        assert!(!file.text.contains("title: 5"));
    }

    #[test]
    fn answers_are_kept_and_made_up() {
        let mut draft = ServerDraft {
            name: "x".to_owned(),
            ..ServerDraft::default()
        };
        draft.set_tools(
            vec![
                json!({"name": "get_a"}),
                json!({"name": "b", "outputSchema": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}}),
                json!({"name": "get_big"}),
                json!({"name": "get_bad"}),
            ],
            CallPolicy::ReadOnly,
        );
        let answered = |result: Value| Outcome::Answered {
            args: Map::new(),
            result,
            no_snapshot: None,
            private: false,
        };
        draft.tools[0].outcome = answered(
            json!({"content": [{"type": "text", "text": "It is ${HOME}."}], "isError": false, "_meta": {}}),
        );
        draft.tools[2].outcome =
            answered(json!({"content": [{"type": "text", "text": "x".repeat(MAX_ANSWER)}]}));
        draft.tools[3].outcome = answered(json!({"content": [{"type": "image"}]}));
        let file = write(&draft, "s.json");
        loads(&file);
        assert!(file.text.contains("It is $${HOME}."), "{}", file.text);
        assert!(
            file.text.contains("structured_content: { city: Paris }"),
            "{}",
            file.text
        );
        assert!(
            !file.text.contains("xxxx") && !file.text.contains("image"),
            "{}",
            file.text
        );
        assert_eq!(file.tools.len(), 4);
    }

    #[test]
    fn what_the_mock_refuses_is_left_out() {
        let mut deep = json!({"type": "string"});
        for _ in 0..200 {
            deep = json!({"type": "object", "properties": {"x": deep}});
        }
        let file = written(vec![
            json!({"name": "bad_schema", "inputSchema": {"type": "objekt"}}),
            json!({"name": "remote", "inputSchema": {"$ref": "https://example.com/x"}}),
            json!({"name": "deep", "inputSchema": deep}),
            json!({"name": "list", "inputSchema": []}),
        ]);
        loads(&file);
        assert_eq!(file.tools.len(), 4);
        assert!(!file.text.contains("objekt") && !file.text.contains("example.com"));
    }

    #[test]
    fn the_size_is_bounded() {
        let long = "word ".repeat(2000);
        let listed =
            (0..5000).map(|index| json!({"name": format!("tool_{index}"), "description": long}));
        let file = written(listed.collect());
        assert!(file.text.len() < 8 * 1024 * 1024);
        assert!(file.tools.len() < 5000 && file.tools.len() > 100);
        assert!(file.text.contains("Left out"));
        loads(&file);
    }

    proptest! {
        #[test]
        fn hostile_strings_load(
            name in "\\PC{1,30}|[\\x00-\\x1f\\u{2028}:#{}\\[\\] a-z]{1,20}",
            description in "\\PC{0,60}|[\\x00-\\x1f\\u{85}\\u{2028}:#{}\\[\\]$\" a-z\\n]{0,60}",
        ) {
            let file = written(vec![json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {description.clone(): {"const": name}}}})]);
            loads(&file);
        }
    }
}
