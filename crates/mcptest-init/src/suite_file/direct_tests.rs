//! Direct tests: the calls that were tried when the suite was written.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mcptest_json::text::shorten;
use mcptest_yaml::write::{self, escape_all_references, escape_references};
use serde_json::{Map, Value, json};

use super::{DirectTest, SuiteDraft, SuiteText, listed, test_name};
use crate::names::Unique;
use crate::server_draft::{Outcome, ServerDraft, ToolDraft, words_of};

/// The properties of a structured answer that a test states.
const MAX_PROPERTIES: usize = 8;

/// The longest quote of an answer.
const MAX_QUOTE: usize = 90;

/// Writes the section `tools:`.
pub(super) fn write(suite: &mut SuiteText, draft: &SuiteDraft<'_>, names: &mut Unique) {
    let out = &mut suite.text;
    out.push('\n');
    write::comment(
        out,
        0,
        "Direct calls: one tool, fixed arguments, no model. Arguments are made up from the \
         schemas, and every call was tried when this file was written. Tools that may change \
         something are not called (`mcptest init --call all` does).",
    );
    let has_tests = draft.servers.iter().any(|server| {
        let answered = |tool: &ToolDraft| matches!(tool.outcome, Outcome::Answered { .. });
        server.refused.is_some() || server.tools.iter().any(answered)
    });
    out.push_str(if has_tests { "tools:\n" } else { "tools: []\n" });
    for (position, server) in draft.servers.iter().enumerate() {
        for (index, tool) in server.tools.iter().enumerate() {
            let Outcome::Answered { args, .. } = &tool.outcome else {
                continue;
            };
            let words = format!("{} answers", tool.name);
            let name = names.name(&test_name(draft, server, &words));
            let test = Call {
                name: &name,
                server,
                tool,
                args,
            };
            test.write(&mut suite.text, 2);
            expectations(&mut suite.text, tool, draft.snapshots);
            suite.direct.push(DirectTest {
                name,
                server: position,
                tool: Some(index),
            });
        }
        refused(suite, draft, position, server, names);
        failed(&mut suite.text, server);
        not_called(&mut suite.text, server);
    }
}

/// The call of a test.
struct Call<'a> {
    name: &'a str,
    server: &'a ServerDraft,
    tool: &'a ToolDraft,
    args: &'a Map<String, Value>,
}

impl Call<'_> {
    fn write(&self, out: &mut String, indent: usize) {
        let name = write::string(&escape_references(self.name));
        let _ = writeln!(out, "{:indent$}- name: {name}", "");
        let inner = indent + 2;
        write::entry(out, inner, "server", &self.server.name.clone().into());
        let tool = escape_references(&self.tool.name);
        write::entry(out, inner, "tool", &tool.into());
        if !self.args.is_empty() {
            let args = escape_all_references(&Value::Object(self.args.clone()));
            write::entry(out, inner, "args", &args);
        }
        let _ = writeln!(out, "{:inner$}tags: [live]", "");
    }
}

/// Writes the expectations of an answer: no error, and the form of structured content.
fn expectations(out: &mut String, tool: &ToolDraft, snapshots: bool) {
    let Outcome::Answered {
        result,
        no_snapshot,
        private,
        ..
    } = &tool.outcome
    else {
        return;
    };
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    if *private {
        write::comment(
            out,
            4,
            "It answered with facts about a machine, which are not kept here.",
        );
    } else if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        let quote = shorten(&words_of(text), MAX_QUOTE);
        write::comment(out, 4, &format!("It answered: {quote}"));
    }
    match no_snapshot {
        None if snapshots && !private => out.push_str("    snapshot: true\n"),
        Some(reason) if snapshots => write::comment(out, 4, &format!("No snapshot: {reason}.")),
        _ => {}
    }
    out.push_str("    expect:\n      - result.is_error: false\n");
    if let Some(schema) = structured_schema(tool, result) {
        let expected = json!({ "schema": escape_all_references(&schema) });
        let mut text = String::new();
        write::entry(&mut text, 8, "result.structuredContent", &expected);
        out.push_str("      - ");
        out.push_str(&text[8..]);
    }
}

/// The part of the output schema that is short enough to read and that the answer meets.
fn structured_schema(tool: &ToolDraft, result: &Value) -> Option<Value> {
    let declared = tool.listed.get("outputSchema")?;
    let structured = result.get("structuredContent")?.as_object()?;
    let required = declared.get("required").and_then(Value::as_array);
    let names: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| structured.contains_key(*name))
        .take(MAX_PROPERTIES)
        .collect();
    if names.is_empty() {
        return None;
    }
    let mut properties = Map::new();
    for name in &names {
        let property = declared.get("properties").and_then(|all| all.get(*name));
        if let Some(kind) = property.and_then(|property| property.get("type")) {
            properties.insert((*name).to_owned(), json!({ "type": kind }));
        }
    }
    let mut schema = json!({"type": "object", "required": names});
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    let validator = jsonschema::validator_for(&schema).ok()?;
    validator
        .is_valid(&Value::Object(structured.clone()))
        .then_some(schema)
}

/// The call without required arguments, if the server refused it.
fn refused(
    suite: &mut SuiteText,
    draft: &SuiteDraft<'_>,
    position: usize,
    server: &ServerDraft,
    names: &mut Unique,
) {
    let Some(refused) = &server.refused else {
        return;
    };
    let Some(tool) = server.tools.iter().find(|tool| tool.name == refused.tool) else {
        return;
    };
    let words = format!("{} refuses a call without its arguments", tool.name);
    let name = names.name(&test_name(draft, server, &words));
    let call = Call {
        name: &name,
        server,
        tool,
        args: &Map::new(),
    };
    call.write(&mut suite.text, 2);
    let expected = match (refused.in_result, refused.code) {
        (false, Some(code)) => format!("error.code: {code}"),
        _ => "result.is_error: true".to_owned(),
    };
    let _ = writeln!(suite.text, "    expect:\n      - {expected}");
    suite.direct.push(DirectTest {
        name,
        server: position,
        tool: None,
    });
}

/// Calls that failed, as comments that can be completed.
fn failed(out: &mut String, server: &ServerDraft) {
    for tool in &server.tools {
        let Outcome::Failed {
            args,
            words,
            answered,
        } = &tool.outcome
        else {
            continue;
        };
        let shown = crate::server_draft::quoted(&tool.name);
        let said = if *answered {
            "and the server answered with an error"
        } else {
            "and there was no answer"
        };
        let words = if words.trim().is_empty() {
            "(without a message)".to_owned()
        } else {
            words_of(words)
        };
        out.push('\n');
        write::comment(
            out,
            2,
            &format!(
                "{shown} was tried with made-up arguments, {said}:\n    {words}\nWrite arguments \
                 that fit your server, and remove the marks:"
            ),
        );
        let name = format!(
            "{} answers",
            shorten(&mcptest_json::text::one_line(&tool.name), 80)
        );
        let call = Call {
            name: &name,
            server,
            tool,
            args,
        };
        let mut text = String::new();
        call.write(&mut text, 0);
        for line in text.lines() {
            let _ = writeln!(out, "  # {line}");
        }
    }
}

/// The tools that were not called, by reason.
fn not_called(out: &mut String, server: &ServerDraft) {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for tool in &server.tools {
        let reason = match &tool.outcome {
            Outcome::NotCalled(doubt) => doubt.reason().to_owned(),
            Outcome::NotTried(reason) => (*reason).to_owned(),
            Outcome::NoArguments(reason) => {
                format!("no arguments could be made up ({reason})")
            }
            _ => continue,
        };
        reasons.entry(reason).or_default().push(&tool.name);
    }
    for (reason, names) in reasons {
        let words = format!(
            "Not called, because {}: {}",
            words_of(&reason),
            listed(&names)
        );
        out.push('\n');
        write::comment(out, 2, &words);
    }
    if !server.unusable.is_empty() {
        let words = format!("Left out: {}.", shorten(&server.unusable.join("; "), 600));
        out.push('\n');
        write::comment(out, 2, &words);
    }
}
