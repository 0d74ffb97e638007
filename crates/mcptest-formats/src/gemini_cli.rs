//! Gemini CLI: `--format gemini-cli`.
//!
//! Checked with Gemini CLI 0.61.0: the output of `-o stream-json` and `-o json`, and session files
//! (`~/.gemini/tmp/*/chats/session-*`; JSON Lines, and the single JSON object of versions before).
//!
//! A tool of a server is `mcp_SERVER_TOOL`. Sessions show both names apart; in the stream, the
//! server ends at the first `_`, as Gemini CLI itself splits such names. Output tokens are those of
//! the answer and of hidden reasoning, which Gemini counts apart. `-o json` has the number of calls
//! of each tool only: calls of different tools have no order, so such a file is rejected.

mod session;
mod stream;

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::agent_log;
use crate::content::string;
use crate::error::FormatError;
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Gemini CLI's logs.
pub(crate) struct GeminiCli;

static FORMAT: Format = Format {
    name: "gemini-cli",
    reads: "the output of `gemini -o stream-json` and `-o json`, and session files of Gemini CLI",
    versions: "Gemini CLI 0.61.0",
    unknown: "offered tools; with `-o json` also arguments, results and turns",
};

impl Reader for GeminiCli {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        match input.documents() {
            [one] if stream::is_summary(&one.value) || session::is_whole(&one.value) => {
                Detection::Match
            }
            [first, ..] if session::is_header(&first.value) => Detection::Match,
            _ => agent_log::detect(input, stream::is_event),
        }
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let documents = input.documents();
        if let [one] = documents
            && stream::is_summary(&one.value)
        {
            return stream::summary(one).map(|trace| vec![trace]);
        }
        let events = agent_log::events(FORMAT.name, input)?;
        let is_session = events
            .first()
            .is_some_and(|first| session::is_header(first.value) || session::is_whole(first.value));
        if is_session {
            return Ok(session::read(events));
        }
        match events.iter().find(|event| stream::is_event(event.value)) {
            Some(_) => Ok(stream::read(events)),
            None => match documents.first() {
                Some(first) => Err(first.wrong(
                    FORMAT.name,
                    &first.value,
                    "expected the events of `-o stream-json`, a session file or the object of `-o \
                     json`",
                )),
                None => Ok(Vec::new()),
            },
        }
    }
}

/// Splits `mcp_server_tool`.
fn split(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.strip_prefix("mcp_")?.split_once('_')?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

/// The content of a failed MCP call: the server's result is JSON in the message.
fn failure(message: &str) -> Value {
    let answer = || {
        let (_, answer) = message
            .strip_prefix("MCP tool '")?
            .split_once(" with response: ")?;
        let answer: Value = serde_json::from_str(answer).ok()?;
        answer
            .pointer("/0/functionResponse/response/content")
            .cloned()
    };
    answer().unwrap_or_else(|| message.into())
}

/// A result without the tags that mark it as untrusted for the model.
fn unwrapped(text: &str) -> &str {
    let inner = text
        .strip_prefix("<untrusted_context>\n")
        .and_then(|rest| rest.strip_suffix("\n</untrusted_context>"));
    inner.unwrap_or(text)
}

/// The error flag of a status.
fn is_error(status: Option<&str>) -> Option<bool> {
    match status? {
        "success" => Some(false),
        "error" | "cancelled" => Some(true),
        _ => None,
    }
}

/// The name, the server and the recorded name of a call.
fn named(call: &Value, key: &str) -> (Value, Option<String>, Vec<(&'static str, Value)>) {
    let recorded = call.get(key).cloned().unwrap_or_default();
    let name = recorded.as_str().unwrap_or_default();
    // `get_weather (weather MCP Server)`
    let shown = string(call, "displayName")
        .and_then(|shown| shown.strip_suffix(" MCP Server)")?.rsplit_once(" ("))
        .filter(|_| name.starts_with("mcp_"))
        .map(|(tool, server)| (server, tool));
    match shown.or_else(|| split(name)) {
        Some((server, tool)) => (
            tool.into(),
            Some(server.to_owned()),
            vec![("wire_name", recorded.clone())],
        ),
        None => (recorded, None, Vec::new()),
    }
}

#[cfg(test)]
mod tests;
