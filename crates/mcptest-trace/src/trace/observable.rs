//! The root that assertions on a run select from. It is built as far as a target asks for it.

use std::borrow::Cow;

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::server_messages;

use super::{
    ConversationView, Extra, Raw, TokensView, ToolCallView, ToolResultView, TraceView, TurnView,
    json_text,
};

/// The roots of an [`Observable`], for checking targets at load time.
pub const OBSERVABLE_ROOTS: [&str; 13] = [
    "tool_calls",
    "tool_names",
    "tool_results",
    "final_response",
    "conversation",
    "client",
    "logs",
    "progress",
    "notifications",
    "updates",
    "list_changed",
    "workspace",
    "trace",
];

/// The values that assertions on a run can select.
///
/// Roots: `tool_calls`, `tool_names`, `tool_results` (one per call, in call order; `null` for a
/// call without a result), `final_response`, `conversation`, what servers sent by themselves
/// ([`server_messages`]), `workspace` (the files that an agent under test left, by path:
/// `workspace.files["report.md"]`), and `trace` for keys that this
/// version gives no meaning (a benchmark's `reward`, say). What is unknown is absent.
#[derive(Debug, Clone, Copy)]
pub struct Observable<'t>(&'t TraceView<'t>);

impl<'t> Observable<'t> {
    pub(super) fn new(trace: &'t TraceView<'_>) -> Self {
        Self(trace)
    }

    /// The whole as one value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Node::Root(self.0).to_value()
    }

    fn child(self, key: &str) -> Option<Node<'t>> {
        let trace = self.0;
        Some(match key {
            "tool_calls" => Node::Calls(&trace.tool_calls),
            "tool_names" => Node::Names(&trace.tool_calls),
            "tool_results" => Node::Results(trace.results_by_call()),
            "final_response" => Node::Text(trace.final_text()?),
            "conversation" => Node::Conversation(&trace.conversation),
            "workspace" => Node::Value(trace.extra.get("workspace")?),
            "trace" => Node::Extra(&trace.extra),
            other => {
                let messages = trace.extra.get(server_messages::KEY)?.as_array()?;
                Node::Built(server_messages::view(messages, other)?)
            }
        })
    }
}

/// A place in the evidence that a target steps through.
#[derive(Debug, Clone)]
pub enum Node<'n> {
    /// The root of a trace.
    Root(&'n TraceView<'n>),
    /// A JSON value.
    Value(&'n Value),
    /// The text of a JSON value that was checked and is not parsed. It has no escapes.
    Json(&'n str),
    /// A JSON value that was built from others.
    Built(Value),
    /// A string.
    Text(Cow<'n, str>),
    /// A number.
    Number(u64),
    /// A flag.
    Flag(bool),
    /// An explicit `null`.
    Null,
    /// All calls.
    Calls(&'n [ToolCallView<'n>]),
    /// One call.
    Call(&'n ToolCallView<'n>),
    /// The names of the calls.
    Names(&'n [ToolCallView<'n>]),
    /// The results, one per call.
    Results(Vec<Option<&'n ToolResultView<'n>>>),
    /// One result.
    Result(&'n ToolResultView<'n>),
    /// The conversation.
    Conversation(&'n ConversationView<'n>),
    /// All turns.
    Turns(&'n [TurnView<'n>]),
    /// One turn.
    Turn(&'n TurnView<'n>),
    /// The token usage.
    Tokens(&'n TokensView<'n>),
    /// Keys without a defined meaning.
    Extra(&'n Extra<'n>),
}

impl<'n> From<&'n Value> for Node<'n> {
    fn from(value: &'n Value) -> Self {
        Self::Value(value)
    }
}

impl<'n> From<&'n Observable<'n>> for Node<'n> {
    fn from(observable: &'n Observable<'n>) -> Self {
        Self::Root(observable.0)
    }
}

impl<'n> From<Observable<'n>> for Node<'n> {
    fn from(observable: Observable<'n>) -> Self {
        Self::Root(observable.0)
    }
}

impl<'n> From<&'n Raw<'_>> for Node<'n> {
    fn from(raw: &'n Raw<'_>) -> Self {
        match (raw.built(), raw.json()) {
            (None, Some(text)) if memchr::memchr(b'\\', text.as_bytes()).is_none() => {
                Self::of_text(text)
            }
            _ => Self::Value(raw.value()),
        }
    }
}

impl<'n> Node<'n> {
    /// The value with this text, which was checked and has no escapes.
    fn of_text(text: &'n str) -> Self {
        match json_text::as_str(text) {
            Some(text) => Self::Text(Cow::Borrowed(text)),
            None => Self::Json(text),
        }
    }

    /// The value as a string, if it is one.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Value(value) => value.as_str(),
            _ => None,
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn child(&self, key: &str) -> Option<Self> {
        let raw = |raw: &'n Option<Raw<'n>>| raw.as_ref().map(Self::from);
        let text = |text: &'n Option<Cow<'n, str>>| {
            let text = text.as_deref()?;
            Some(Self::Text(Cow::Borrowed(text)))
        };
        let extra = |extra: &'n Extra<'n>| extra.raw(key).map(Self::from);
        match self {
            Self::Root(trace) => Observable(trace).child(key),
            Self::Built(value) => value.get(key).cloned().map(Self::Built),
            Self::Value(value) => {
                let map = value.as_object()?;
                let found = map.get(key);
                // As MCP spells it; here, a result always has the other spelling.
                let other = || map.get("is_error").filter(|_| key == "isError");
                found.or_else(other).map(Self::Value)
            }
            Self::Json(text) => {
                let found = json_text::child(text, key);
                let other = || json_text::child(text, "is_error").filter(|_| key == "isError");
                found.or_else(other).map(Self::of_text)
            }
            Self::Call(call) => match key {
                "id" => raw(&call.id),
                "name" => Some(Self::name(call)),
                "server" => text(&call.server),
                "args" => raw(&call.args),
                "caller" => raw(&call.caller),
                "turn" => call.turn.map(Self::Number),
                _ => extra(&call.extra),
            },
            Self::Result(result) => match key {
                "call_id" => raw(&result.call_id),
                "is_error" | "isError" => result.is_error.map(Self::Flag),
                "content" => raw(&result.content),
                _ => extra(&result.extra),
            },
            Self::Conversation(conversation) => match key {
                "turns" => conversation.turns.as_deref().map(Self::Turns),
                "tokens" => conversation.tokens.as_ref().map(Self::Tokens),
                _ => extra(&conversation.extra),
            },
            Self::Turn(turn) => match key {
                "role" => text(&turn.role),
                "content" => raw(&turn.content),
                _ => extra(&turn.extra),
            },
            Self::Tokens(tokens) => match key {
                "input" => tokens.input.map(Self::Number),
                "output" => tokens.output.map(Self::Number),
                "total" => tokens.total.map(Self::Number),
                _ => extra(&tokens.extra),
            },
            Self::Extra(entries) => extra(entries),
            Self::Text(_)
            | Self::Number(_)
            | Self::Flag(_)
            | Self::Null
            | Self::Calls(_)
            | Self::Names(_)
            | Self::Results(_)
            | Self::Turns(_) => None,
        }
    }

    /// The number of items of a list; `None` for anything else.
    #[must_use]
    pub fn list_length(&self) -> Option<usize> {
        match self {
            Self::Value(Value::Array(items)) => Some(items.len()),
            Self::Json(text) => json_text::items(text).map(Iterator::count),
            Self::Built(Value::Array(items)) => Some(items.len()),
            Self::Calls(calls) | Self::Names(calls) => Some(calls.len()),
            Self::Results(results) => Some(results.len()),
            Self::Turns(turns) => Some(turns.len()),
            _ => None,
        }
    }

    /// An item of a list.
    #[must_use]
    pub fn item(&self, place: usize) -> Option<Self> {
        match self {
            Self::Value(Value::Array(items)) => items.get(place).map(Self::Value),
            Self::Json(text) => json_text::items(text)?.nth(place).map(Self::of_text),
            Self::Built(Value::Array(items)) => items.get(place).cloned().map(Self::Built),
            Self::Calls(calls) => calls.get(place).map(Self::Call),
            Self::Names(calls) => {
                let name = calls.get(place)?.name();
                Some(Self::Text(Cow::Borrowed(name)))
            }
            Self::Results(results) => {
                let result = *results.get(place)?;
                Some(result.map_or(Self::Null, Self::Result))
            }
            Self::Turns(turns) => turns.get(place).map(Self::Turn),
            _ => None,
        }
    }

    /// Every item of a list, or every value of an object; `None` for anything else.
    #[must_use]
    pub fn each(&self) -> Option<Vec<Self>> {
        if let Some(length) = self.list_length() {
            if let Self::Json(text) = self {
                return Some(json_text::items(text)?.map(Self::of_text).collect());
            }
            return Some((0..length).filter_map(|place| self.item(place)).collect());
        }
        match self {
            Self::Json(text) => {
                let mut map: IndexMap<&str, Self> = IndexMap::new();
                for (key, text) in json_text::entries(text)? {
                    map.insert(key, Self::of_text(text));
                }
                Some(map.into_values().collect())
            }
            Self::Value(Value::Object(map)) => Some(map.values().map(Self::Value).collect()),
            Self::Built(Value::Object(map)) => {
                Some(map.values().cloned().map(Self::Built).collect())
            }
            Self::Root(_) => {
                let children = OBSERVABLE_ROOTS.iter().filter_map(|root| self.child(root));
                Some(children.collect())
            }
            Self::Extra(extra) => Some(extra.iter().map(|(_, raw)| Self::from(raw)).collect()),
            Self::Call(_)
            | Self::Result(_)
            | Self::Conversation(_)
            | Self::Turn(_)
            | Self::Tokens(_) => {
                let keys = self.keys();
                Some(keys.iter().filter_map(|key| self.child(key)).collect())
            }
            _ => None,
        }
    }

    /// Returns true if the value has neither keys nor items.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        match self {
            Self::Text(_) | Self::Number(_) | Self::Flag(_) | Self::Null => true,
            Self::Value(value) => !value.is_object() && !value.is_array(),
            Self::Json(text) => !text.starts_with(['{', '[']),
            Self::Built(value) => !value.is_object() && !value.is_array(),
            _ => false,
        }
    }

    /// The keys that are there, in the order in which they are written.
    #[must_use]
    pub fn present_keys(&self) -> Vec<String> {
        match self {
            Self::Value(value) => keys_of(value),
            Self::Built(value) => keys_of(value),
            Self::Json(text) => {
                let keys = json_text::entries(text).into_iter().flatten();
                let keys: IndexSet<&str> = keys.map(|(key, _)| key).collect();
                keys.into_iter().map(str::to_owned).collect()
            }
            Self::Root(trace) => match Observable(trace).to_value() {
                Value::Object(map) => map.into_iter().map(|(key, _)| key).collect(),
                _ => Vec::new(),
            },
            _ => {
                let keys = self.keys().into_iter();
                let present = keys.filter(|key| self.child(key).is_some());
                present.map(str::to_owned).collect()
            }
        }
    }

    /// The keys of a recorded object, in the order in which they are written.
    fn keys(&self) -> Vec<&'n str> {
        let (known, extra): (&[&str], &'n Extra<'n>) = match self {
            Self::Call(call) => (
                &["id", "name", "server", "args", "caller", "turn"],
                &call.extra,
            ),
            Self::Result(result) => (&["call_id", "is_error", "content"], &result.extra),
            Self::Conversation(conversation) => (&["turns", "tokens"], &conversation.extra),
            Self::Turn(turn) => (&["role", "content"], &turn.extra),
            Self::Tokens(tokens) => (&["input", "output", "total"], &tokens.extra),
            _ => return Vec::new(),
        };
        let known = known.iter().copied();
        known.chain(extra.iter().map(|(key, _)| key)).collect()
    }

    /// The JSON value of the place.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Value(value) => (*value).clone(),
            // The reader rejects text that does not parse.
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
            Self::Built(value) => value.clone(),
            Self::Text(text) => text.as_ref().into(),
            Self::Number(number) => (*number).into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Null => Value::Null,
            Self::Call(call) => json(call),
            Self::Result(result) => json(result),
            Self::Conversation(conversation) => json(conversation),
            Self::Turn(turn) => json(turn),
            Self::Tokens(tokens) => json(tokens),
            Self::Extra(extra) => Value::Object(extra.to_map()),
            Self::Root(_) => OBSERVABLE_ROOTS
                .iter()
                .filter_map(|root| Some(((*root).to_owned(), self.child(root)?.to_value())))
                .collect::<Map<_, _>>()
                .into(),
            Self::Calls(_) | Self::Names(_) | Self::Results(_) | Self::Turns(_) => {
                let items = self.each().unwrap_or_default();
                items.iter().map(Self::to_value).collect()
            }
        }
    }

    fn name(call: &'n ToolCallView<'n>) -> Self {
        match &call.raw_name {
            super::ToolName::Text(name) => Self::Text(Cow::Borrowed(name)),
            super::ToolName::Malformed(value) => Self::Value(value),
        }
    }
}

fn keys_of(value: &Value) -> Vec<String> {
    let map = value.as_object().into_iter().flatten();
    map.map(|(key, _)| key.clone()).collect()
}

/// Parts of a trace always have a JSON value.
fn json(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}
