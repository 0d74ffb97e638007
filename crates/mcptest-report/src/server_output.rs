//! The output of servers in a run that did not pass: the text of failed calls, and stderr.

use mcptest_events::RunRecord;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::ToolResult;
use mcptest_trace::verdict::Verdict;
use serde_json::Value;

/// The number of failed calls whose text is shown.
const MAX_CALLS: usize = 3;
/// The number of lines that are shown of a string.
const MAX_LINES: usize = 6;
/// The longest line, in characters.
const MAX_LINE: usize = 240;

/// A title, and the lines below it. Everything is bounded, and safe to print.
pub(crate) type OutputBlock = (String, Vec<String>);

/// The output of the servers in a run that did not pass: the text of each failed call, or of the
/// only call of a direct test, and the end of stderr. Empty for a run that passed.
pub(crate) fn server_output(run: &RunRecord) -> Vec<OutputBlock> {
    if run.verdict == Verdict::Pass {
        return Vec::new();
    }
    let trace = &run.trace;
    let calls: Vec<_> = trace
        .tool_calls
        .iter()
        .zip(trace.results_by_call())
        .collect();
    // A direct test, and not an agent: it has one call, and no conversation.
    let is_direct = trace.model.is_none() && calls.len() == 1;
    let mut words = Vec::new();
    let mut more = 0_usize;
    for (call, result) in calls {
        let Some(result) = result else { continue };
        let failed = result.is_error == Some(true);
        if !failed && !is_direct {
            continue;
        }
        let said = lines_of(&text_of(result), End::Tail);
        if said.is_empty() {
            continue;
        }
        if words.len() == MAX_CALLS {
            more += 1;
            continue;
        }
        let id = one_line(&full_id(call.server.as_deref(), call.name()));
        let verb = if failed { "failed" } else { "answered" };
        words.push((format!("{id} {verb}:"), said));
    }
    if more > 0 {
        words.push((format!("and {more} more failed calls"), Vec::new()));
    }
    words.extend(requests(run));
    words.extend(unanswered(run));
    words.extend(stderr(run));
    words
}

/// The answers to requests of a direct test that are not tool calls.
fn requests(run: &RunRecord) -> Vec<OutputBlock> {
    let requests = run.trace.extra("requests").and_then(Value::as_array);
    let answered = requests.into_iter().flatten().filter_map(|request| {
        let server = request.get("server")?.as_str()?;
        let method = request.get("method")?.as_str()?;
        let (verb, text) = match (request.get("result"), request.get("error")) {
            (Some(result), _) => ("answered", words_of(result)),
            (None, Some(error)) => {
                let code = error.get("code").cloned().unwrap_or_default();
                let message = error.get("message").and_then(Value::as_str);
                (
                    "failed",
                    format!("Error {code}: {}", message.unwrap_or_default()),
                )
            }
            (None, None) => return None,
        };
        let said = lines_of(&text, End::Tail);
        let title = one_line(&format!("{server} {method}"));
        (!said.is_empty()).then(|| (format!("{title} {verb}:"), said))
    });
    answered.take(MAX_CALLS).collect()
}

/// The text of a result, or the result as JSON.
fn words_of(result: &Value) -> String {
    match result.get("text").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => result.to_string(),
    }
}

/// The requests of servers to which the client had no answer.
fn unanswered(run: &RunRecord) -> Vec<OutputBlock> {
    let messages = run.trace.extra("server_messages").and_then(Value::as_array);
    let refused = messages.into_iter().flatten().filter_map(|message| {
        let error = message.get("error")?.get("message")?.as_str()?;
        let server = message.get("server")?.as_str()?;
        let method = message.get("method")?.as_str()?;
        let title = format!("{server} asked for {method}, and got an error:");
        Some((one_line(&title), lines_of(error, End::Tail)))
    });
    refused.take(MAX_CALLS).collect()
}

/// The recorded stderr lines by server.
fn stderr(run: &RunRecord) -> Vec<OutputBlock> {
    let Some(recorded) = run.trace.extra("stderr") else {
        return Vec::new();
    };
    let servers = recorded.as_object().into_iter().flatten();
    let tails = servers.filter_map(|(server, lines)| {
        let lines: Vec<&str> = lines.as_array()?.iter().filter_map(Value::as_str).collect();
        let said = lines_of(&lines.join("\n"), End::Head);
        (!said.is_empty()).then(|| (format!("stderr of {}:", one_line(server)), said))
    });
    tails.collect()
}

/// The text of a result: its text parts, or its structured content.
fn text_of(result: &ToolResult) -> String {
    let content = result.content();
    let parts = content.as_ref().and_then(|content| content.as_array());
    let texts: Vec<&str> = parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) if parts.is_empty() => String::new(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// The end of a string that is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Head,
    Tail,
}

/// The lines of a string that are not blank, as many as are shown.
fn lines_of(text: &str, cut: End) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let all: Vec<&str> = lines.collect();
    let kept = match cut {
        End::Tail => &all[..all.len().min(MAX_LINES)],
        End::Head => &all[all.len().saturating_sub(MAX_LINES)..],
    };
    let mut shown: Vec<String> = kept
        .iter()
        .map(|line| shorten(&one_line(line), MAX_LINE))
        .collect();
    let missing = all.len() - kept.len();
    if missing > 0 {
        let note = format!("… {missing} more lines");
        match cut {
            End::Tail => shown.push(note),
            End::Head => shown.insert(0, note),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(verdict: Verdict, trace: Value) -> RunRecord {
        let mut run = crate::samples::run(1, "a", verdict, None);
        run.trace = serde_json::from_value(trace).unwrap();
        run
    }

    #[test]
    fn failed_calls_and_stderr_are_shown_bounded_and_escaped() {
        let long: String = (1..=9).map(|n| format!("line {n}\u{1b}[31m\n")).collect();
        let trace = json!({
            "model": "m",
            "tool_calls": [{"name": "ok"}, {"name": "get", "server": "weather"}],
            "tool_results": [
                {"is_error": false, "content": [{"type": "text", "text": "fine"}]},
                {"is_error": true, "content": [{"type": "text", "text": long}]},
            ],
            "stderr": {"weather": ["one", "two"]},
        });
        let words = server_output(&record(Verdict::Fail, trace.clone()));
        assert_eq!(words.len(), 2, "{words:?}");
        assert_eq!(words[0].0, "weather.get failed:");
        assert_eq!(words[0].1.len(), MAX_LINES + 1);
        assert!(words[0].1.iter().all(|line| !line.contains('\u{1b}')));
        assert_eq!(words[0].1[MAX_LINES], "… 3 more lines");
        let expected = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(words[1], ("stderr of weather:".to_owned(), expected));
        assert_eq!(server_output(&record(Verdict::Pass, trace)), []);
    }

    #[test]
    fn requests_and_unanswered_questions_are_shown() {
        let trace = json!({
            "tool_calls": [],
            "requests": [
                {"server": "docs", "method": "resources/read", "params": {},
                 "result": {"text": "one\ntwo"}},
                {"server": "docs", "method": "prompts/get", "params": {},
                 "error": {"code": -32602, "message": "no\u{1b}[31m"}},
            ],
            "server_messages": [
                {"server": "docs", "method": "roots/list", "answer": {}},
                {"server": "docs", "method": "sampling/createMessage",
                 "error": {"code": -1, "message": "nobody is here"}},
            ],
        });
        let words = server_output(&record(Verdict::Fail, trace));
        let titles: Vec<&str> = words.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "docs resources/read answered:",
                "docs prompts/get failed:",
                "docs asked for sampling/createMessage, and got an error:",
            ]
        );
        assert_eq!(words[0].1, ["one", "two"]);
        assert!(!words[1].1[0].contains('\u{1b}'), "{words:?}");
    }

    #[test]
    fn a_failed_direct_test_shows_the_answer() {
        let trace = json!({
            "tool_calls": [{"name": "get", "server": "weather"}],
            "tool_results": [{"is_error": false, "content": "mild"}],
        });
        let words = server_output(&record(Verdict::Fail, trace));
        let expected = ("weather.get answered:".to_owned(), vec!["mild".to_owned()]);
        assert_eq!(words, [expected]);
    }
}
