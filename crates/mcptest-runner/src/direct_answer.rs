//! The answer to a direct request: its value for assertions, and hints about a failure.

use mcptest_agent::{ToolReply, text_of_blocks};
use mcptest_suite::suite::{DirectRequest, DirectTest, ListKind};
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{CallOutcome, Listing, RpcError};
use serde_json::{Map, Value, json};

use crate::agent_calls::task_support;
use crate::sessions::{Session, result_is_error};

/// The value that assertions are applied to: the result as the server sent it, with `is_error` and
/// `text` added, and `error`, which is `null` when there is none.
pub(crate) fn observe(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Result(result) => {
            let is_error = result_is_error(&result);
            let text = result.get("content").map(text_of_blocks);
            let mut result = members(result);
            result.insert("is_error".to_owned(), is_error.into());
            result.insert("text".to_owned(), text.unwrap_or_default().into());
            of_result(result)
        }
        CallOutcome::Error(error) => of_error(&error),
    }
}

/// The answer of a tool as a trace keeps it, taken out of the value that [`observe`] made of it. It
/// is what [`reply`](crate::sessions::reply) makes of the same answer.
pub(crate) fn take_reply(seen: &mut Value) -> ToolReply {
    let error = seen["error"].take();
    if !error.is_null() {
        let message = error["message"].as_str().unwrap_or_default();
        return ToolReply {
            error: Some(error.clone()),
            ..ToolReply::refusal(format!("Error {}: {message}", error["code"]))
        };
    }
    let mut take = |key| Some(seen["result"].get_mut(key)?.take());
    let content = take("content").unwrap_or_else(|| Value::Array(Vec::new()));
    let structured = take("structuredContent");
    ToolReply {
        is_error: seen["result"]["is_error"] == true,
        content,
        structured,
        ..ToolReply::default()
    }
}

/// The value for assertions of an answer that is not a tool's: with `text`, and for a resource with
/// `uri`.
pub(crate) fn observe_other(outcome: CallOutcome, uri: Option<&str>) -> Value {
    match outcome {
        CallOutcome::Result(result) => {
            let text = text_of(&result);
            let mut result = members(result);
            result.insert("text".to_owned(), text.into());
            if let Some(uri) = uri {
                result.insert("uri".to_owned(), uri.into());
            }
            of_result(result)
        }
        CallOutcome::Error(error) => of_error(&error),
    }
}

/// The value for assertions of a list: its entries over all pages, and `pages`.
pub(crate) fn observe_list(kind: ListKind, listed: Result<Listing, RpcError>) -> Value {
    match listed {
        Ok(Listing { items, pages, .. }) => of_result(Map::from_iter([
            (kind.key().to_owned(), items.into()),
            ("pages".to_owned(), pages.into()),
        ])),
        Err(error) => of_error(&error),
    }
}

fn members(result: Value) -> Map<String, Value> {
    match result {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

fn of_result(result: Map<String, Value>) -> Value {
    Value::Object(Map::from_iter([
        ("result".to_owned(), Value::Object(result)),
        ("error".to_owned(), Value::Null),
    ]))
}

pub(crate) fn of_error(error: &RpcError) -> Value {
    json!({"result": null, "error": error})
}

/// The text of a resource, a prompt or a completion.
fn text_of(result: &Value) -> String {
    let list = |key: &str| {
        result
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let contents = list("contents").filter_map(|item| item.get("text")?.as_str());
    let messages = list("messages").filter_map(|item| item.get("content")?.get("text")?.as_str());
    let values = result.get("completion").and_then(|one| one.get("values"));
    let values = values.and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = contents
        .chain(messages)
        .chain(values.filter_map(Value::as_str))
        .collect();
    texts.join("\n")
}

/// The hint that a server does not list a tool, with the name that was probably meant. Only needed
/// after a call failed.
pub(crate) async fn unlisted(session: &Session, server: &str, tool: &str) -> Option<String> {
    let listed = session.listing().await.ok()?;
    hint(server, "tool", tool, &names(&listed, "name"))
}

/// The hint that a server needs a capability that the suite can offer.
pub(crate) fn missing_capability(error: &Value) -> Option<String> {
    const MISSING_CAPABILITY: i64 = -32021;
    if error.get("code").and_then(Value::as_i64) != Some(MISSING_CAPABILITY) {
        return None;
    }
    let required = error
        .get("data")?
        .get("requiredCapabilities")?
        .as_object()?;
    if required.contains_key("extensions") {
        return Some("the server needs a client with tasks: write `task: true`".to_owned());
    }
    let offered = ["sampling", "elicitation", "roots"];
    let missing = offered
        .into_iter()
        .find(|one| required.contains_key(*one))?;
    Some(format!(
        "the server asks the client something: answer it with `client: {{{missing}: …}}`"
    ))
}

/// The hint about a request that failed: what it names is not listed, or the tool needs a task.
pub(crate) async fn hint_about(session: &Session, test: &DirectTest) -> Option<String> {
    let server = test.server.as_str();
    match &test.request {
        DirectRequest::Tool { tool, task, .. } => {
            if let Some(hint) = unlisted(session, server, tool).await {
                return Some(hint);
            }
            let listed = session.listing().await.ok()?;
            let entry = listed.iter().find(|entry| entry["name"] == *tool)?;
            match (task_support(entry), task) {
                (Some("required"), None) => Some(format!(
                    "tool `{tool}` can only be called as a task: write `task: true`"
                )),
                (None | Some("forbidden"), Some(_)) => Some(format!(
                    "tool `{tool}` does not say that it can be called as a task"
                )),
                _ => None,
            }
        }
        DirectRequest::Prompt { prompt, .. } => {
            let listed = list(session, ListKind::Prompts).await?;
            hint(server, "prompt", prompt, &names(&listed, "name"))
        }
        DirectRequest::Read { .. } => None,
        DirectRequest::Expand { template, .. } => {
            let listed = list(session, ListKind::Templates).await?;
            let known = names(&listed, "uriTemplate");
            hint(server, "resource template", template.as_str(), &known)
        }
        DirectRequest::Complete { .. } | DirectRequest::List(_) => None,
    }
}

/// The hint that a server does not list a resource. An unlisted one may still exist, by a
/// template: then only a similar one is a hint.
pub(crate) async fn unlisted_resource(
    session: &Session,
    server: &str,
    uri: &str,
) -> Option<String> {
    let listed = list(session, ListKind::Resources).await?;
    let known = names(&listed, "uri");
    let hint = hint(server, "resource", uri, &known)?;
    if mcptest_suite::suggest(uri, known.iter().map(String::as_str)).is_some() {
        return Some(hint);
    }
    let templates = list(session, ListKind::Templates).await;
    let has_templates = templates.is_some_and(|templates| !templates.is_empty());
    (!has_templates).then_some(hint)
}

async fn list(session: &Session, kind: ListKind) -> Option<Vec<Value>> {
    let listed = session.client.list_pages(kind.method(), kind.key()).await;
    Some(listed.ok()?.ok()?.items)
}

fn names(listed: &[Value], key: &str) -> Vec<String> {
    let names = listed.iter().filter_map(|entry| entry.get(key)?.as_str());
    names.map(str::to_owned).collect()
}

fn hint(server: &str, what: &str, name: &str, known: &[String]) -> Option<String> {
    if known.iter().any(|one| one == name) {
        return None;
    }
    let message = format!("server `{server}` lists no {what} `{name}`");
    let near = mcptest_suite::suggest(name, known.iter().map(String::as_str));
    Some(match near {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    })
}

/// An error of a test's setup or teardown.
pub(crate) fn fixture_error(message: String) -> RunError {
    RunError {
        kind: ErrorKind::Fixture,
        message,
    }
}

#[cfg(test)]
mod tests {
    use crate::sessions::reply;

    use super::*;

    #[test]
    fn the_trace_keeps_what_the_agent_would_read() {
        let block = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
        let mut outcomes: Vec<CallOutcome> = [
            json!({ "content": block }),
            json!({"content": block, "structuredContent": {"a": 1}, "isError": true}),
            json!({"content": [], "structuredContent": null, "isError": "yes"}),
            json!({"content": "text", "is_error": true, "text": "other"}),
            json!({}),
            json!([1]),
        ]
        .map(CallOutcome::Result)
        .into();
        for data in [None, Some(json!({"a": 1}))] {
            outcomes.push(CallOutcome::Error(RpcError {
                code: -32602,
                message: "wrong \"argument\"".to_owned(),
                data,
            }));
        }
        for outcome in outcomes {
            let short = reply(&outcome);
            let mut seen = observe(outcome);
            let is_error = seen["result"]["is_error"] == true || !seen["error"].is_null();
            assert_eq!(is_error, short.is_error, "{seen}");
            if seen["error"].is_null() {
                assert_eq!(seen["result"]["text"], short.text(), "{seen}");
            }
            assert_eq!(take_reply(&mut seen), short);
        }
    }

    #[test]
    fn answers_have_their_text() {
        let contents = json!({"contents": [
            {"uri": "a:1", "text": "one"}, {"uri": "a:2", "blob": "AA=="}, {"uri": "a:3", "text": "three"},
        ]});
        let seen = observe_other(CallOutcome::Result(contents), Some("a:1"));
        assert_eq!(seen["result"]["text"], "one\nthree");
        assert_eq!(seen["result"]["uri"], "a:1");
        assert_eq!(seen["error"], Value::Null);
        let messages = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Hi"}},
            {"role": "user", "content": {"type": "image", "data": ""}},
        ]});
        let seen = observe_other(CallOutcome::Result(messages), None);
        assert_eq!(seen["result"]["text"], "Hi");
        let completion = json!({"completion": {"values": ["a", "b"]}});
        let seen = observe_other(CallOutcome::Result(completion), None);
        assert_eq!(seen["result"]["text"], "a\nb");
    }

    #[test]
    fn a_missing_capability_has_a_hint() {
        let error = |required: Value| {
            let data = json!({ "requiredCapabilities": required });
            json!({"code": -32021, "message": "", "data": data})
        };
        let hint = missing_capability(&error(json!({"elicitation": {}}))).unwrap();
        assert!(hint.contains("`client: {elicitation: …}`"), "{hint}");
        let hint = missing_capability(&error(json!({"extensions": {"x": {}}}))).unwrap();
        assert!(hint.contains("`task: true`"), "{hint}");
        assert_eq!(missing_capability(&error(json!({"other": {}}))), None);
        assert_eq!(missing_capability(&json!({"code": -32602})), None);
        assert_eq!(missing_capability(&Value::Null), None);
    }

    #[test]
    fn a_name_that_is_not_listed_has_a_hint() {
        let known = ["greet".to_owned(), "part".to_owned()];
        assert_eq!(hint("s", "prompt", "greet", &known), None);
        assert_eq!(
            hint("s", "prompt", "great", &known).unwrap(),
            "server `s` lists no prompt `great`; did you mean `greet`?"
        );
    }
}
