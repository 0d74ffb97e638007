//! The recorded run: the evidence that every gate reads.
//!
//! What is not in a trace is unknown, never zero: tokens that nobody reported are no tokens to
//! count, and a result without an error flag says nothing. Keys that this version does not know are
//! kept.

use std::collections::{HashMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalog::Tool;
use crate::judged::Judgement;
use crate::tool_id::{self, KnownServers};
use crate::verdict::RunError;

/// What an agent observably did in one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// The test it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The model that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which of the test's runs it is, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Every call, in order: the ones typed into a turn, several in one turn, and those made from
    /// generated code.
    pub tool_calls: Vec<ToolCall>,
    /// What came back, by `call_id` or in the order of the calls.
    // `results_by_call` pairs them.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool_results: Vec<ToolResult>,
    /// What was said, and what it cost in tokens.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Conversation::is_empty"
    )]
    pub conversation: Conversation,
    /// The closing answer. Without it, the last assistant turn that says something.
    // `final_text` looks at both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_response: Option<String>,
    /// The tools that were offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Vec<Tool>>,
    /// Ids of offered tools that were put in as distractors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distractors: Option<Vec<String>>,
    /// What models made of the run's texts, for judged assertions. Gates do not look at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judgements: Vec<Judgement>,
    /// Set when the run could not be carried through: it is then no evidence about the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Whatever else was recorded.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Joins the call with its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The name as recorded. Usually a text; anything else is a malformed call and stays visible as
    /// such.
    #[serde(default, rename = "name")]
    pub raw_name: Value,
    /// The server, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The arguments: usually an object. Text that did not parse as JSON is kept as that text.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub args: Option<Value>,
    /// Set for a call made from inside generated code: the provider's tag for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Value>,
    /// The assistant turn that made the call, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Whatever else was recorded.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolCall {
    /// A call by name, for tests and examples.
    #[must_use]
    pub fn new(server: Option<&str>, name: &str) -> Self {
        Self {
            raw_name: name.into(),
            server: server.map(Into::into),
            ..Self::default()
        }
    }

    /// The tool's name; empty for a malformed call.
    #[must_use]
    pub fn name(&self) -> &str {
        self.raw_name.as_str().unwrap_or("")
    }

    /// The recorded arguments.
    #[must_use]
    pub fn args(&self) -> Option<&Value> {
        self.args.as_ref()
    }

    /// A recorded key that this version gives no meaning.
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.extra.get(key)
    }

    /// `server.tool`, or the bare name.
    #[must_use]
    pub fn full_id(&self) -> String {
        tool_id::full_id(self.server.as_deref(), self.name())
    }

    /// Whether a tool name written in a suite means this call.
    #[must_use]
    pub fn is(&self, written: &str, servers: &KnownServers) -> bool {
        tool_id::matches(written, self.server.as_deref(), self.name(), servers)
    }
}

/// What a call came back with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call it answers; without it, the call at the same position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Value>,
    /// Whether it is an error; absent is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Everything else: `structured_content`, `error`, `error_kind`, `fault`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResult {
    /// The recorded content blocks.
    #[must_use]
    pub fn content(&self) -> Option<&Value> {
        self.content.as_ref()
    }

    /// Any other recorded key: `structured_content`, `error_kind`, `fault`, …
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.extra.get(key)
    }
}

/// What was said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// The turns, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<Turn>>,
    /// Token usage over the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Whatever else was recorded.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Conversation {
    fn is_empty(&self) -> bool {
        self.turns.is_none() && self.tokens.is_none() && self.extra.is_empty()
    }
}

/// One turn of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// `user`, `assistant`, `tool`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// A text, or content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Whatever else was recorded.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Turn {
    /// The text of the turn: of a string, or of all text blocks.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => blocks
                .iter()
                .filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str()))
                .collect::<Vec<_>>()
                .join("\n"),
            _ => String::new(),
        }
    }
}

/// Token usage. Only what was reported is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// All of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Cached, reasoning, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Trace {
    /// The tools that were offered, where recorded.
    #[must_use]
    pub fn catalog(&self) -> Option<&[Tool]> {
        self.catalog.as_deref()
    }

    /// A recorded key that this version gives no meaning.
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.extra.get(key)
    }

    /// The reported total of tokens.
    #[must_use]
    pub fn total_tokens(&self) -> Option<u64> {
        self.conversation.tokens.as_ref()?.total
    }

    /// For each call, the index of its result: by id where both have one, else by position.
    #[must_use]
    pub fn pair_results(&self) -> Vec<Option<usize>> {
        let mut paired: Vec<Option<usize>> = vec![None; self.tool_calls.len()];
        let mut used = vec![false; self.tool_results.len()];
        // Where an id was given to several calls, results go to them in order.
        let mut calls_by_id: HashMap<&Value, VecDeque<usize>> = HashMap::new();
        for (at, call) in self.tool_calls.iter().enumerate() {
            if let Some(id) = &call.id {
                calls_by_id.entry(id).or_default().push_back(at);
            }
        }
        for (index, result) in self.tool_results.iter().enumerate() {
            let waiting = result
                .call_id
                .as_ref()
                .and_then(|id| calls_by_id.get_mut(id));
            if let Some(call) = waiting.and_then(VecDeque::pop_front) {
                paired[call] = Some(index);
                used[index] = true;
            }
        }
        for (index, call) in self.tool_calls.iter().enumerate() {
            // An id on both sides that does not match is another call's result, not this
            // position's.
            let by_position = self.tool_results.get(index).is_some_and(|result| {
                !used[index] && (result.call_id.is_none() || call.id.is_none())
            });
            if paired[index].is_none() && by_position {
                paired[index] = Some(index);
            }
        }
        paired
    }

    /// The result of each call, in the order of the calls.
    #[must_use]
    pub fn results_by_call(&self) -> Vec<Option<&ToolResult>> {
        self.pair_results()
            .into_iter()
            .map(|index| index.and_then(|index| self.tool_results.get(index)))
            .collect()
    }

    /// The closing answer: as recorded, else the last assistant turn that says something.
    #[must_use]
    pub fn final_text(&self) -> Option<String> {
        if let Some(text) = &self.final_response {
            return Some(text.clone());
        }
        self.conversation
            .turns
            .iter()
            .flatten()
            .rev()
            .filter(|turn| turn.role.as_deref() == Some("assistant"))
            .map(Turn::text)
            .find(|text| !text.trim().is_empty())
    }

    /// Splits wire names (`server__tool`) of calls whose server is not recorded, where it is one of
    /// the known servers.
    pub fn split_wire_names(&mut self, servers: &KnownServers) {
        let from_catalog: KnownServers = self
            .catalog
            .iter()
            .flatten()
            .filter_map(Tool::server)
            .collect();
        let listed = |server: &str, name: &str| {
            let catalog = self.catalog.iter().flatten();
            catalog
                .into_iter()
                .any(|tool| tool.server() == Some(server) && tool.name() == name)
        };
        for call in &mut self.tool_calls {
            let name = call.raw_name.as_str().unwrap_or("");
            let split = match &call.server {
                // Some writers record the server and keep the prefix too.
                Some(server) if !listed(server, name) => name
                    .strip_prefix(server.as_str())
                    .and_then(|rest| rest.strip_prefix("__"))
                    .filter(|tool| !tool.is_empty())
                    .map(|tool| (server.as_str(), tool)),
                Some(_) => None,
                None => servers
                    .split_wire_name(name)
                    .or_else(|| from_catalog.split_wire_name(name)),
            };
            let split = split.map(|(server, tool)| (server.to_owned(), tool.to_owned()));
            if let Some((server, tool)) = split {
                call.server = Some(server);
                call.raw_name = tool.into();
            }
        }
    }

    /// The value that assertions on a run look into.
    ///
    /// Roots: `tool_calls`, `tool_names`, `tool_results` (one per call, in call order; `null` where
    /// nothing came back), `final_response`, `conversation`, and `trace` for keys that this version
    /// gives no meaning (a benchmark's `reward`, say). What is unknown is absent.
    #[must_use]
    pub fn observable(&self) -> Value {
        let mut root = Map::new();
        let calls = self
            .tool_calls
            .iter()
            .map(|call| serde_json::to_value(call).unwrap_or(Value::Null))
            .collect();
        root.insert("tool_calls".into(), Value::Array(calls));
        root.insert(
            "tool_names".into(),
            self.tool_calls
                .iter()
                .map(|call| Value::from(call.name()))
                .collect(),
        );
        root.insert(
            "tool_results".into(),
            self.results_by_call()
                .into_iter()
                .map(|result| serde_json::to_value(result).unwrap_or(Value::Null))
                .collect(),
        );
        if let Some(text) = self.final_text() {
            root.insert("final_response".into(), text.into());
        }
        root.insert(
            "conversation".into(),
            serde_json::to_value(&self.conversation).unwrap_or(Value::Null),
        );
        root.insert("trace".into(), Value::Object(self.extra.clone()));
        Value::Object(root)
    }
}

/// The roots of [`Trace::observable`], for checking targets at load time.
pub const OBSERVABLE_ROOTS: [&str; 6] = [
    "tool_calls",
    "tool_names",
    "tool_results",
    "final_response",
    "conversation",
    "trace",
];

/// Why a trace file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TraceSyntaxError {
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads traces: one object, an array of them, or JSON Lines (any sequence of objects).
///
/// # Errors
/// The first place that is not a trace.
///
/// ```
/// let traces = mcptest_trace::trace::read(r#"{"tool_calls": [{"name": "get", "server": "http"}]}"#).unwrap();
/// assert_eq!(traces[0].tool_calls[0].full_id(), "http.get");
/// ```
pub fn read(text: &str) -> Result<Vec<Trace>, TraceSyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if starts_array(text.as_bytes()) {
        Ok(serde_json::from_str(text)?)
    } else {
        read_sequence(text)
    }
}

/// Returns true if the first byte that is not blank opens an array.
#[must_use]
pub fn starts_array(text: &[u8]) -> bool {
    text.iter().find(|byte| !is_json_space(byte)) == Some(&b'[')
}

/// Returns true if there is nothing but JSON's white space.
#[must_use]
pub fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| is_json_space(byte))
}

fn is_json_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Reads traces that stand one after the other, on lines of their own or not: any part of a JSON
/// Lines file that ends with a whole trace.
///
/// # Errors
/// The first place that is not a trace.
pub fn read_sequence(text: &str) -> Result<Vec<Trace>, TraceSyntaxError> {
    let traces: serde_json::Result<_> = serde_json::Deserializer::from_str(text)
        .into_iter::<Trace>()
        .collect();
    Ok(traces?)
}

impl From<serde_json::Error> for TraceSyntaxError {
    fn from(error: serde_json::Error) -> Self {
        let message = error.to_string();
        // The position is told apart; serde appends it to the text too.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        Self {
            line: error.line(),
            column: error.column(),
            message: message[..end].to_owned(),
        }
    }
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// `"args": null` is recorded evidence, unlike a missing key.
fn keep_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trace(value: Value) -> Trace {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn reads_one_object_an_array_and_lines() {
        let one = r#"{"tool_calls": []}"#;
        assert_eq!(read(one).unwrap().len(), 1);
        assert_eq!(read(&format!("[{one},{one}]")).unwrap().len(), 2);
        assert_eq!(read(&format!("{one}\n\n{one}\n{one}\n")).unwrap().len(), 3);
        assert_eq!(read("").unwrap().len(), 0);
        assert_eq!(read("{\n \"tool_calls\": []\n}\n").unwrap().len(), 1);
    }

    #[test]
    fn errors_name_their_line() {
        let error = read("{\"tool_calls\": []}\n{\"tool_calls\": [}\n").unwrap_err();
        assert_eq!(error.line, 2);
        let error = read("{\"tool_cals\": []}").unwrap_err();
        assert!(error.message.contains("tool_calls"), "{error}");
        assert!(!error.message.contains("line"), "{error}");
    }

    #[test]
    fn everything_recorded_is_written_back() {
        let value = json!({
            "test": "t", "model": "m", "run": 1,
            "tool_calls": [{"id": "c1", "name": "f", "server": "s", "args": {"b": 1, "a": 2}, "caller": {"type": "code_execution"}, "turn": 1, "x": true}],
            "tool_results": [{"call_id": "c1", "is_error": false, "content": [], "structured_content": {}}],
            "conversation": {"turns": [{"role": "assistant", "content": "hi"}], "tokens": {"input": 1, "output": 2, "total": 3, "cached": 4}},
            "final_response": "hi", "catalog": [{"server": "s", "name": "f"}], "distractors": ["s.g"], "reward": 1.0
        });
        assert_eq!(serde_json::to_value(trace(value.clone())).unwrap(), value);
    }

    #[test]
    fn missing_is_unknown() {
        let trace = trace(
            json!({"tool_calls": [{"name": "f"}], "conversation": null, "tool_results": null}),
        );
        assert_eq!(trace.total_tokens(), None);
        assert_eq!(trace.final_text(), None);
        assert_eq!(trace.results_by_call(), [None]);
        let seen = trace.observable();
        assert_eq!(seen.get("final_response"), None);
        assert_eq!(seen["conversation"].get("tokens"), None);
        assert_eq!(seen["tool_results"], json!([null]));
        // Known parts of the usage do not make a total.
        let partly = self::trace(
            json!({"tool_calls": [], "conversation": {"tokens": {"input": 5, "output": 6}}}),
        );
        assert_eq!(partly.total_tokens(), None);
    }

    #[test]
    fn results_pair_by_id_then_by_position() {
        let by_id = trace(json!({
            "tool_calls": [{"id": "a", "name": "f"}, {"id": "b", "name": "g"}],
            "tool_results": [{"call_id": "b", "is_error": true}, {"call_id": "a", "is_error": false}]
        }));
        assert_eq!(by_id.pair_results(), [Some(1), Some(0)]);
        let by_position = trace(json!({
            "tool_calls": [{"name": "f"}, {"id": "b", "name": "g"}, {"name": "h"}],
            "tool_results": [{"is_error": true}, {"is_error": false}]
        }));
        assert_eq!(by_position.pair_results(), [Some(0), Some(1), None]);
        let foreign = trace(json!({
            "tool_calls": [{"id": "a", "name": "f"}],
            "tool_results": [{"call_id": "zzz", "is_error": true}]
        }));
        assert_eq!(foreign.pair_results(), [None]);
    }

    #[test]
    fn malformed_names_and_raw_arguments_stay_visible() {
        let trace = trace(json!({"tool_calls": [{"name": 7, "args": "{broken"}, {"args": null}]}));
        assert_eq!(trace.tool_calls[0].name(), "");
        let seen = trace.observable();
        assert_eq!(seen["tool_calls"][0]["name"], json!(7));
        assert_eq!(seen["tool_calls"][0]["args"], json!("{broken"));
        assert_eq!(trace.tool_calls[1].args, Some(Value::Null));
        assert_eq!(trace.tool_calls[0].args, Some(json!("{broken")));
    }

    #[test]
    fn the_final_text_may_come_from_the_turns() {
        let trace = trace(json!({"tool_calls": [], "conversation": {"turns": [
            {"role": "assistant", "content": "first"},
            {"role": "assistant", "content": [{"type": "text", "text": "last"}, {"type": "image"}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "thanks"}
        ]}}));
        assert_eq!(trace.final_text().as_deref(), Some("last"));
    }

    #[test]
    fn wire_names_split_when_the_server_is_known() {
        let mut trace = trace(json!({
            "tool_calls": [{"name": "brave__search"}, {"name": "other__x"}, {"name": "cat__y"}, {"name": "brave__z", "server": "q"},
                {"name": "q__z", "server": "q"}, {"name": "cat__k", "server": "cat"}],
            "catalog": [{"server": "cat", "name": "y"}, {"server": "cat", "name": "cat__k"}]
        }));
        trace.split_wire_names(&["brave"].into_iter().collect());
        let ids: Vec<_> = trace.tool_calls.iter().map(ToolCall::full_id).collect();
        assert_eq!(
            ids,
            [
                "brave.search",
                "other__x",
                "cat.y",
                "q.brave__z",
                "q.z",
                "cat.cat__k"
            ]
        );
    }
}
