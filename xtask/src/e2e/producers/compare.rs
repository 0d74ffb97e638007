//! The comparison of a log with what the proxy recorded and with the script.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use mcptest_formats::{Input, detect};
use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use super::{Output, Session};

/// Returns true if the script ends with a request that is refused.
pub fn is_refused(script: &Value) -> bool {
    turns(script)
        .last()
        .is_some_and(|turn| turn.get("status").is_some())
}

fn turns(script: &Value) -> &[Value] {
    script["turns"].as_array().map_or(&[][..], Vec::as_slice)
}

/// Fails unless the log has the same calls, results, errors, tokens and texts.
pub fn check(session: &Session, output: &Output, file: &Path) -> Result<()> {
    let bytes = std::fs::read(file)?;
    let input = Input::parse(&bytes)?;
    let reader = detect(&input)?;
    let found = reader.format().name;
    ensure!(found == output.format, "detected as {found}");
    let traces = reader.read(&input)?;
    ensure!(traces.len() == session.runs, "{} traces", traces.len());
    for trace in &traces {
        calls(session, output, trace)?;
        if output.tokens {
            tokens(session, trace)?;
        }
        let refused = is_refused(&session.script);
        ensure!(
            trace.error.is_some() == refused || !output.errors_of_runs(),
            "{:?}",
            trace.error
        );
        let said = turns(&session.script)
            .last()
            .and_then(|turn| turn["say"].as_str());
        let last = trace.final_text();
        // A model whose arguments are broken gets no further with every agent.
        let broken = session.script.to_string().contains("raw_args");
        ensure!(
            broken || refused || last.as_deref() == said,
            "the last text is {last:?}"
        );
    }
    Ok(())
}

impl Output {
    /// Returns true if the log shows that a run failed. A session file is a log of messages.
    fn errors_of_runs(&self) -> bool {
        self.format != "gemini-cli" || !self.fixture.starts_with("session")
    }
}

/// The calls of the script, with their turns.
fn scripted(script: &Value) -> Vec<(u64, &Value)> {
    let mut all = Vec::new();
    for (number, turn) in (1..).zip(turns(script)) {
        let calls = turn["calls"].as_array();
        all.extend(calls.into_iter().flatten().map(|call| (number, call)));
    }
    all
}

fn calls(session: &Session, output: &Output, trace: &Trace) -> Result<()> {
    let expected = scripted(&session.script);
    ensure!(
        trace.tool_calls.len() == expected.len(),
        "{} calls instead of {}",
        trace.tool_calls.len(),
        expected.len()
    );
    let results = trace.results_by_call();
    for ((call, result), (turn, script)) in trace.tool_calls.iter().zip(&results).zip(expected) {
        let (server, tool) = (&script["server"], &script["tool"]);
        ensure!(*tool == call.name(), "{} instead of {tool}", call.name());
        if output.servers {
            let found = json!(call.server.as_deref());
            ensure!(found == *server, "{tool} is of the server {found}");
        }
        if output.turns {
            ensure!(call.turn == Some(turn), "{tool} is of turn {:?}", call.turn);
        }
        let has_arguments = output.fixture != "output.json";
        let args = script.get("raw_args").unwrap_or(&script["args"]);
        if has_arguments {
            ensure!(call.args() == Some(args), "{tool} has {:?}", call.args());
        }
        if script.get("raw_args").is_some() {
            // Not a call that reaches a server.
            continue;
        }
        let wanted = recorded(session, server, tool, args)
            .with_context(|| format!("the proxy has no call of {tool} with {args}"))?;
        let result = result.with_context(|| format!("{tool} has no result"))?;
        if output.errors {
            ensure!(
                json!(result.is_error) == wanted["is_error"],
                "{tool}: {:?} instead of {}",
                result.is_error,
                wanted["is_error"]
            );
        }
        if has_arguments {
            same_content(result.content(), wanted).with_context(|| format!("{tool} {args}"))?;
        }
    }
    Ok(())
}

/// The result that the proxy recorded for a call.
fn recorded<'s>(
    session: &'s Session,
    server: &Value,
    tool: &Value,
    args: &Value,
) -> Option<&'s Value> {
    let of_server = |trace: &&Value| trace["catalog"][0]["server"] == *server;
    let trace = session.recorded.iter().find(of_server)?;
    let is_it = |call: &&Value| call["name"] == *tool && call["args"] == *args;
    let call = trace["tool_calls"].as_array()?.iter().find(is_it)?;
    let results = trace["tool_results"].as_array()?;
    results
        .iter()
        .find(|result| result["call_id"] == call["id"])
}

/// The text of a result must be that of the server, or the JSON of its structured content.
fn same_content(content: Option<&Value>, wanted: &Value) -> Result<()> {
    let text = |content: &Value| -> String {
        let blocks = content.as_array().cloned().unwrap_or_default();
        blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect()
    };
    let found = content.map(text).unwrap_or_default();
    let expected = text(&wanted["content"]);
    let structured = wanted.get("structured_content");
    let parsed: Option<Value> = serde_json::from_str(&found).ok();
    // Some clients add words to the message of an error.
    let is_error = wanted["is_error"] == true;
    ensure!(
        found == expected
            || (structured.is_some() && parsed.as_ref() == structured)
            || (parsed.is_some() && parsed == serde_json::from_str(&expected).ok())
            || (is_error && found.contains(&expected)),
        "the result is {found:?} instead of {expected:?}"
    );
    Ok(())
}

fn tokens(session: &Session, trace: &Trace) -> Result<()> {
    let log = std::fs::read_to_string(session.folder.join("llm.jsonl"))?;
    let (mut input, mut output) = (0, 0);
    for line in log.lines() {
        let answer: Value = serde_json::from_str(line)?;
        // A title, or another request of the agent for itself.
        if !answer["turn"].is_null() {
            input += answer["usage"]["input"].as_u64().unwrap_or(0);
            output += answer["usage"]["output"].as_u64().unwrap_or(0);
        }
    }
    let runs = u64::try_from(session.runs)?;
    let wanted = (Some(input / runs), Some(output / runs));
    let tokens = trace.conversation.tokens.as_ref();
    let found = tokens.map(|tokens| (tokens.input, tokens.output));
    // A thread that failed reports none.
    let unknown = is_refused(&session.script) && found.is_none();
    ensure!(
        unknown || found == Some(wanted),
        "{found:?} tokens instead of {wanted:?}"
    );
    Ok(())
}
