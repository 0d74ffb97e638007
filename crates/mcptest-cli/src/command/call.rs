//! `mcptest call`.

use mcptest_catalog::call_arguments;
use mcptest_json::text::lines;
use mcptest_report::ExitCode;
use mcptest_runner::{Answer, LiveServer};
use mcptest_yaml::suggest;
use serde_json::{Map, Value, json};

use crate::authorization;
use crate::cli::{CallArgs, Format};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::live_servers::{advise, with_servers};
use crate::output::Output;
use crate::sources::{self, Source};

pub fn call(args: &CallArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let named_elsewhere = args.source.url.is_some() || !args.source.command.is_empty();
    let (server, rest) = match (named_elsewhere, args.words.as_slice()) {
        (true, words) => (None, words),
        (false, [server, rest @ ..]) => (Some(server.as_str()), rest),
        (false, []) => (None, &[][..]),
    };
    let [tool, typed @ ..] = rest else {
        let message = "no tool is named: write `mcptest call SERVER TOOL name=value…`; \
                       `mcptest list` lists servers and tools";
        return Err(Failure::Message(message.to_owned()));
    };
    let base = base_arguments(args.args.as_deref())?;
    let source = sources::one(server, &args.source, gates, output)?;
    let Source::Server { name, server, auth } = source else {
        return Err(Failure::Message("a file has no tools to call".to_owned()));
    };
    let (answer, stderr, hint) = with_servers(args.source.patience.timeout, async |settings| {
        let settings = authorization::settings(&name, &server, auth.as_deref(), settings)?;
        let opened = LiveServer::open(&name, &server, &settings).await;
        let live = opened.map_err(|error| {
            advise(&error, output);
            Failure::Message(error.message)
        })?;
        let outcome = make_call(&live, tool, base, typed, output).await;
        live.close().await;
        outcome
    })?;
    let text = if args.json || args.how.format == Format::Json {
        machine(&answer)
    } else {
        pretty(&answer)
    };
    output.result(&text);
    if !answer.is_error() {
        return Ok(ExitCode::Passed);
    }
    output.error(&format!("`{tool}` of `{name}` answered with an error"));
    if let Some(hint) = hint {
        output.status(&format!("note: {hint}"));
    }
    if !stderr.is_empty() {
        output.status(&format!("the server's stderr:\n  {}", stderr.join("\n  ")));
    }
    Ok(ExitCode::Failed)
}

fn base_arguments(written: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(written) = written else {
        return Ok(Map::new());
    };
    match serde_json::from_str(written) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(other) => Err(Failure::Message(format!(
            "`--args` takes a JSON object, not JSON of type {}",
            mcptest_json::type_name(&other)
        ))),
        Err(error) => Err(Failure::Message(format!(
            "`--args` is not valid JSON: {error}"
        ))),
    }
}

/// The answer, the lines on stderr, and a hint about a tool that is not listed.
async fn make_call(
    live: &LiveServer,
    tool: &str,
    mut arguments: Map<String, Value>,
    typed: &[String],
    output: &Output,
) -> Result<(Answer, Vec<String>, Option<String>), Failure> {
    // A server may refuse to list its tools and answer calls nevertheless.
    let listed = live.tools().await.unwrap_or_default();
    let is_named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(tool);
    let schema = listed
        .iter()
        .find(is_named)
        .and_then(|entry| entry.get("inputSchema"));
    call_arguments::add(&mut arguments, typed, schema)
        .map_err(|error| Failure::Message(error.to_string()))?;
    for name in call_arguments::unknown(&arguments, schema) {
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
        let known = properties.into_iter().flat_map(|all| all.keys());
        let hint = suggest(name, known.map(String::as_str));
        let hint = hint.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        output.warning(&format!("`{tool}` has no argument `{name}`{hint}"));
    }
    let answered = live.call_with_stderr(tool, &Value::Object(arguments)).await;
    let (answer, stderr) = answered.map_err(|error| {
        advise(&error, output);
        Failure::Message(error.message)
    })?;
    let hint = if answer.is_error() {
        live.unlisted(tool).await
    } else {
        None
    };
    Ok((answer, stderr, hint))
}

fn machine(answer: &Answer) -> String {
    match answer {
        Answer::Result(result) => format!("{result:#}\n"),
        Answer::Refused(error) => format!("{:#}\n", json!({ "error": error })),
    }
}

fn pretty(answer: &Answer) -> String {
    let result = match answer {
        Answer::Result(result) => result,
        Answer::Refused(error) => {
            let code = error.get("code").map(Value::to_string).unwrap_or_default();
            return lines(&format!("Error {code}: {}\n", answer.text()));
        }
    };
    let mut out = String::new();
    let blocks = result.get("content").and_then(Value::as_array);
    for block in blocks.into_iter().flatten() {
        // The text of a server may steer a terminal.
        out.push_str(lines(&shown_block(block)).trim_end_matches('\n'));
        out.push('\n');
    }
    if let (true, Some(structured)) = (out.is_empty(), result.get("structuredContent")) {
        return lines(&format!("{structured:#}\n"));
    }
    if out.is_empty() {
        out.push_str("(the result is empty)\n");
    }
    out
}

/// A content block as text; data is described.
fn shown_block(block: &Value) -> String {
    let string = |pointer: &str| block.pointer(pointer).and_then(Value::as_str);
    let kind = string("/type").unwrap_or("block");
    match kind {
        "text" => string("/text").unwrap_or_default().to_owned(),
        "image" | "audio" => {
            let encoded = string("/data").map_or(0, str::len);
            let media = string("/mimeType").unwrap_or("of an unknown type");
            format!("[{kind} {media}, {} bytes]", encoded / 4 * 3)
        }
        "resource" => match string("/resource/text") {
            Some(text) => text.to_owned(),
            None => format!("[resource {}]", string("/resource/uri").unwrap_or_default()),
        },
        "resource_link" => format!("[link {}]", string("/uri").unwrap_or_default()),
        _ => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_shown_as_text() {
        let result = |value: Value| pretty(&Answer::Result(value));
        assert_eq!(
            result(json!({"content": [
                {"type": "text", "text": "one\n"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "a://b"},
                {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
                {"type": "new", "x": 1},
            ], "structuredContent": {"a": 1}})),
            "one\n[image image/png, 3 bytes]\n[link a://b]\ninside\n{\"type\":\"new\",\"x\":1}\n"
        );
        assert_eq!(
            result(json!({"structuredContent": {"a": 1}})),
            "{\n  \"a\": 1\n}\n"
        );
        assert_eq!(result(json!({})), "(the result is empty)\n");
        let refused = Answer::Refused(json!({"code": -32602, "message": "no"}));
        assert_eq!(pretty(&refused), "Error -32602: no\n");
    }

    #[test]
    fn a_server_cannot_steer_the_terminal() {
        let hostile = "a\u{1b}[2J\u{7}\u{202e}\u{9b}b\nc\td";
        let blocks = [
            json!({"type": "text", "text": hostile}),
            json!({"type": "resource", "resource": {"uri": "a://b", "text": hostile}}),
            json!({"type": "resource_link", "uri": hostile}),
            json!({"type": "image", "mimeType": hostile}),
        ];
        let is_steering = |one: char| one != '\n' && one != '\t' && one.is_control();
        for block in blocks {
            let shown = pretty(&Answer::Result(json!({"content": [block]})));
            assert!(!shown.contains(is_steering), "{shown:?}");
            assert!(!shown.contains('\u{202e}'), "{shown:?}");
        }
        let refused = Answer::Refused(json!({"code": -1, "message": hostile}));
        let shown = pretty(&refused);
        assert!(!shown.contains(is_steering), "{shown:?}");
        assert!(shown.contains("b\nc"), "{shown:?}");
    }
}
