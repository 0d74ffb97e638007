use mcptest_yaml::{Document, DocumentLimits};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::launch::Launch;
use crate::mock_file;
use crate::server_draft::{CallPolicy, Outcome, RefusedCall};

fn server(name: &str, listed: Vec<Value>) -> ServerDraft {
    let argv = ["python3".to_owned(), "server.py".to_owned()];
    let mut server = ServerDraft {
        name: name.to_owned(),
        mock: format!("{name}-mock"),
        launch: Launch::command(name, &argv, None),
        ..ServerDraft::default()
    };
    server.set_tools(listed, CallPolicy::ReadOnly);
    server
}

fn written(servers: &[ServerDraft], snapshots: bool, attacks: bool) -> SuiteText {
    let mocked: Vec<_> = servers
        .iter()
        .map(|server| mock_file::write(server, "x").tools)
        .collect();
    let mock_files: Vec<String> = servers
        .iter()
        .map(|server| format!("mocks/{}.yml", server.name))
        .collect();
    let attacked = attack_pack::attacked_tool(servers);
    write(&SuiteDraft {
        name: "notes",
        servers,
        mock_files: &mock_files,
        mocked: &mocked,
        snapshots,
        attacked: attacked.as_ref().filter(|_| attacks),
        schema: ".mcptest/suite.schema.json",
    })
}

fn read(text: &str) -> Value {
    Document::parse("mcptest.yml", text.as_bytes(), &DocumentLimits::default())
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
        .root()
        .to_json()
}

fn notes() -> ServerDraft {
    let mut draft = server(
        "notes",
        vec![
            json!({"name": "list_notes", "description": "List the titles of all notes.", "outputSchema": {"type": "object", "required": ["result"], "properties": {"result": {"type": "array"}}}}),
            json!({"name": "read_note", "description": "Read the text of a note.", "inputSchema": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}}),
            json!({"name": "write_note", "description": "Write a note."}),
        ],
    );
    draft.tools[0].outcome = Outcome::Answered {
        args: Map::new(),
        result: json!({"content": [{"type": "text", "text": "milk"}], "structuredContent": {"result": ["milk"]}}),
        no_snapshot: None,
        private: false,
    };
    draft.tools[1].outcome = Outcome::Failed {
        args: json!({"title": "example"}).as_object().unwrap().clone(),
        words: "There is no note\n`example`.".to_owned(),
        answered: true,
    };
    draft.refused = Some(RefusedCall {
        tool: "read_note".to_owned(),
        in_result: true,
        code: None,
    });
    draft
}

#[test]
fn a_suite_has_direct_calls_and_a_selection_test_per_tool() {
    let suite = written(&[notes()], false, false);
    let value = read(&suite.text);
    assert_eq!(
        value["servers"],
        json!({"notes": {"command": ["python3", "server.py"]}, "notes-mock": {"command": ["mcptest", "mock", "--tools-from", "mocks/notes.yml"]}})
    );
    assert_eq!(
        value["tools"],
        json!([
            {"name": "list_notes answers", "server": "notes", "tool": "list_notes", "tags": ["live"], "expect": [
                {"result.is_error": false},
                {"result.structuredContent": {"schema": {"type": "object", "required": ["result"], "properties": {"result": {"type": "array"}}}}}
            ]},
            {"name": "read_note refuses a call without its arguments", "server": "notes", "tool": "read_note", "tags": ["live"], "expect": [{"result.is_error": true}]}
        ])
    );
    let tests = value["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 3);
    assert_eq!(
        tests[1]["prompt"],
        "Read the text of a note. Use title \"example\"."
    );
    assert_eq!(
        tests[2]["tool_selection"],
        json!({"expected_tool": "write_note", "min_selection_rate": 0.9})
    );
    assert_eq!(
        (suite.selections, suite.ambiguous, suite.direct.len()),
        (3, 0, 2)
    );
    for words in [
        "`read_note` was tried with made-up arguments, and the server answered with an error:",
        "  #     There is no note `example`.",
        "  # - name: read_note answers\n  #   server: notes\n  #   tool: read_note\n  #   args: { title: example }",
        "  # Not called, because they have no `readOnlyHint`, and their names do not show that they only\n  # read: write_note",
        "    # It answered: milk",
    ] {
        assert!(suite.text.contains(words), "{words}\n{}", suite.text);
    }
}

#[test]
fn snapshots_and_attacks_are_added_on_request() {
    let suite = written(&[notes()], true, true);
    let value = read(&suite.text);
    assert_eq!(value["tools"][0]["snapshot"], true);
    assert_eq!(value["imports"], json!(["attacks/starter.yml"]));
    assert_eq!(value["variables"], json!({"attacked_tool": "list_notes"}));
    assert_eq!(
        value["agents"][1]["script"],
        json!([[{"calls": [{"tool": "list_notes", "args": {}}]}, {"say": "This is what I found."}]])
    );
    let attack = value["tests"].as_array().unwrap().last().unwrap();
    assert_eq!(
        attack["inject"].as_array().unwrap().len(),
        attack_pack::names().len()
    );
}

#[test]
fn several_servers_keep_apart() {
    let suite = written(
        &[notes(), server("other", vec![json!({"name": "get_x"})])],
        false,
        false,
    );
    let value = read(&suite.text);
    assert_eq!(value["tests"][0]["name"], "notes: selects list_notes");
    assert_eq!(value["tests"][3]["agent"], "assistant of other");
    assert_eq!(value["servers"].as_object().unwrap().len(), 4);
}

#[test]
fn variables_are_named_in_the_header() {
    let mut draft = notes();
    let argv = ["x".to_owned(), "--token=s3cret".to_owned()];
    draft.launch = Launch::command("notes", &argv, Some("..".to_owned()));
    draft.startup_timeout = Some("2m");
    let suite = written(&[draft], false, false);
    assert!(
        suite
            .text
            .contains("# Set these environment variables before: TOKEN.\n")
    );
    assert!(!suite.text.contains("s3cret"));
    let value = read(&suite.text);
    assert_eq!(
        value["servers"]["notes"],
        json!({"command": ["x", "--token=${TOKEN}"], "cwd": "..", "startup_timeout": "2m"})
    );
}

#[test]
fn a_server_without_calls_has_an_empty_list() {
    let suite = written(&[server("x", vec![json!({"name": "the"})])], false, false);
    let value = read(&suite.text);
    assert_eq!(value["tools"], json!([]));
    assert_eq!((value.get("agents"), value.get("tests")), (None, None));
    assert_eq!(suite.ambiguous, 1);
    assert!(suite.text.contains("`the`:"), "{}", suite.text);
}

#[test]
fn many_tools_are_bounded() {
    let listed = (0..5000)
        .map(|index| json!({"name": format!("get_item_{index}"), "description": format!("Get item {index}.")}));
    let suite = written(&[server("many", listed.collect())], false, false);
    assert_eq!((suite.selections, suite.unselected), (250, 4750));
    assert!(suite.text.len() < 400_000, "{}", suite.text.len());
    read(&suite.text);
}

proptest! {
    #[test]
    fn hostile_words_stay_words(
        name in "\\PC{1,30}|[\\x00-\\x1f\\u{2028}:#{}\\[\\]$ a-z]{1,20}",
        description in "\\PC{0,60}|[\\x00-\\x1f\\u{85}\\u{2028}:#{}\\[\\]$\" a-z\\n]{0,60}",
        failed in any::<bool>(),
    ) {
        let mut draft = server("x", vec![json!({"name": name, "description": description}), json!({"name": "get_other"})]);
        let args = Map::from_iter([(description.clone(), Value::from(name.clone()))]);
        draft.tools[0].outcome = if failed {
            Outcome::Failed { args, words: description.clone(), answered: true }
        } else {
            Outcome::Answered { args, result: json!({"content": [{"type": "text", "text": description}]}), no_snapshot: Some("it changes"), private: false }
        };
        let suite = written(&[draft], true, true);
        let value = read(&suite.text);
        let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        prop_assert_eq!(keys, ["name", "imports", "variables", "servers", "tools", "agents", "tests"]);
        prop_assert_eq!(value["tools"].as_array().map_or(0, Vec::len), usize::from(!failed));
        prop_assert_eq!(value["tests"].as_array().map_or(0, Vec::len), suite.selections + 1);
    }
}
