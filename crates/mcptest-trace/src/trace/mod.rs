//! The recorded run: the evidence that every gate reads.
//!
//! What is not in a trace is unknown, never zero: unreported tokens are no tokens to
//! count, and a result without an error flag leaves it open whether the call failed. Keys that
//! this version does not know are kept.
//!
//! A trace is a view of the text that it was read from. Names, servers, roles and numbers are
//! decoded; arguments, results, contents, catalogs and unknown keys stay slices of the text
//! ([`Raw`]) until something reads them. [`Trace`] is the view that borrows nothing.

mod extra;
mod foreign;
mod json_text;
mod names;
mod observable;
mod pairing;
mod quick;
mod raw;
mod read;
mod schema;
mod write;

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use serde_json::Value;

pub use extra::Extra;
pub use names::ToolName;
pub use observable::{Node, OBSERVABLE_ROOTS, Observable};
pub use raw::Raw;
pub use read::{TraceSyntaxError, Views, is_blank, read, read_sequence, starts_array, views};

use crate::catalog::Tool;
use crate::judgement::Judgement;
use crate::tool_id::{self, KnownServers};
use crate::verdict::RunError;

/// A trace that borrows nothing.
pub type Trace = TraceView<'static>;
/// A tool call that borrows nothing.
pub type ToolCall = ToolCallView<'static>;
/// A tool result that borrows nothing.
pub type ToolResult = ToolResultView<'static>;
/// A conversation that borrows nothing.
pub type Conversation = ConversationView<'static>;
/// A turn that borrows nothing.
pub type Turn = TurnView<'static>;
/// Token usage that borrows nothing.
pub type Tokens = TokensView<'static>;

/// The observable behaviour of an agent in one run.
///
/// ```
/// use mcptest_trace::trace::TraceView;
/// let text = r#"{"tool_calls": [{"name": "get", "server": "http", "args": {"id": 7}}]}"#;
/// let trace = TraceView::parse(text).unwrap();
/// assert_eq!(trace.tool_calls[0].full_id(), "http.get");
/// assert_eq!(trace.tool_calls[0].args().unwrap()["id"], 7);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceView<'a> {
    /// The test it belongs to.
    pub test: Option<Cow<'a, str>>,
    /// The model that acted.
    pub model: Option<Cow<'a, str>>,
    /// The number of the run in its test, from 1.
    pub run: Option<u64>,
    /// Every call, in order.
    pub tool_calls: Vec<ToolCallView<'a>>,
    /// The results, by `call_id` or in the order of the calls; see [`TraceView::pair_results`].
    pub tool_results: Vec<ToolResultView<'a>>,
    /// The conversation and its token usage.
    pub conversation: ConversationView<'a>,
    /// The closing answer as recorded; see [`TraceView::final_text`].
    pub final_response: Option<Cow<'a, str>>,
    /// The tools that were offered.
    pub catalog: Option<Catalog<'a>>,
    /// Ids of offered tools that were inserted as distractors.
    pub distractors: Option<Vec<String>>,
    /// Opinions of models on the run's texts, for judged assertions. Gates do not read them.
    pub judgements: Vec<Judgement>,
    /// Set when the run could not be completed: it is then no evidence about the agent.
    pub error: Option<RunError>,
    /// All other recorded keys.
    pub extra: Extra<'a>,
}

/// One tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCallView<'a> {
    /// Joins the call with its result: any JSON value.
    pub id: Option<Raw<'a>>,
    /// The name as recorded.
    pub raw_name: ToolName<'a>,
    /// The server, where known.
    pub server: Option<Cow<'a, str>>,
    /// The arguments: usually an object. Text that did not parse as JSON is kept as a string.
    pub args: Option<Raw<'a>>,
    /// Set for a call made from inside generated code: the provider's tag for it.
    pub caller: Option<Raw<'a>>,
    /// The assistant turn that made the call, from 1.
    pub turn: Option<u64>,
    /// All other recorded keys.
    pub extra: Extra<'a>,
}

impl<'a> ToolCallView<'a> {
    /// A call by name, for tests and examples.
    #[must_use]
    pub fn new(server: Option<&str>, name: &str) -> Self {
        Self {
            id: None,
            raw_name: name.into(),
            server: server.map(|server| Cow::Owned(server.to_owned())),
            args: None,
            caller: None,
            turn: None,
            extra: Extra::default(),
        }
    }

    /// The tool's name; empty for a malformed call.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &str {
        self.raw_name.as_str()
    }

    /// The recorded id.
    #[must_use]
    pub fn id(&self) -> Option<&Value> {
        self.id.as_ref().map(Raw::value)
    }

    /// The recorded arguments.
    #[must_use]
    pub fn args(&self) -> Option<&Value> {
        self.args.as_ref().map(Raw::value)
    }

    /// Sets the arguments.
    pub fn set_args(&mut self, args: Value) {
        self.args = Some(args.into());
    }

    /// The recorded arguments, to change them.
    pub fn args_mut(&mut self) -> Option<&mut Value> {
        self.args.as_mut().map(Raw::value_mut)
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

    /// Returns true if a tool name written in a suite means this call.
    #[must_use]
    #[inline]
    pub fn is(&self, written: &str, servers: &KnownServers) -> bool {
        tool_id::matches(written, self.server.as_deref(), self.name(), servers)
    }

    /// Detaches the call from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> ToolCall {
        ToolCallView {
            id: self.id.map(Raw::into_owned),
            raw_name: self.raw_name.into_owned(),
            server: self.server.map(owned),
            args: self.args.map(Raw::into_owned),
            caller: self.caller.map(Raw::into_owned),
            turn: self.turn,
            extra: self.extra.into_owned(),
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResultView<'a> {
    /// The call it answers: any JSON value. Without it, the call at the same position.
    pub call_id: Option<Raw<'a>>,
    /// Set if the result is an error, unset if not; absent is unknown.
    pub is_error: Option<bool>,
    /// The content blocks.
    pub content: Option<Raw<'a>>,
    /// All other recorded keys: `structured_content`, `error`, `error_kind`, `fault`, …
    pub extra: Extra<'a>,
}

impl ToolResultView<'_> {
    /// The recorded id of the call.
    #[must_use]
    pub fn call_id(&self) -> Option<&Value> {
        self.call_id.as_ref().map(Raw::value)
    }

    /// The recorded content blocks.
    #[must_use]
    pub fn content(&self) -> Option<&Value> {
        self.content.as_ref().map(Raw::value)
    }

    /// Sets the content blocks.
    pub fn set_content(&mut self, content: Value) {
        self.content = Some(content.into());
    }

    /// Any other recorded key: `structured_content`, `error_kind`, `fault`, …
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.extra.get(key)
    }

    /// Detaches the result from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> ToolResult {
        ToolResultView {
            call_id: self.call_id.map(Raw::into_owned),
            is_error: self.is_error,
            content: self.content.map(Raw::into_owned),
            extra: self.extra.into_owned(),
        }
    }
}

/// The conversation of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConversationView<'a> {
    /// The turns, in order.
    pub turns: Option<Vec<TurnView<'a>>>,
    /// Token usage over the whole run.
    pub tokens: Option<TokensView<'a>>,
    /// All other recorded keys.
    pub extra: Extra<'a>,
}

impl ConversationView<'_> {
    fn is_empty(&self) -> bool {
        self.turns.is_none() && self.tokens.is_none() && self.extra.is_empty()
    }

    fn into_owned(self) -> Conversation {
        let turns = self
            .turns
            .map(|turns| turns.into_iter().map(TurnView::into_owned).collect());
        ConversationView {
            turns,
            tokens: self.tokens.map(TokensView::into_owned),
            extra: self.extra.into_owned(),
        }
    }
}

/// One turn of the conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnView<'a> {
    /// `user`, `assistant`, `tool`, …
    pub role: Option<Cow<'a, str>>,
    /// A string, or content blocks.
    pub content: Option<Raw<'a>>,
    /// All other recorded keys.
    pub extra: Extra<'a>,
}

impl TurnView<'_> {
    /// The recorded content.
    #[must_use]
    pub fn content(&self) -> Option<&Value> {
        self.content.as_ref().map(Raw::value)
    }

    /// The text of the turn: of a string, or of all text blocks.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(content) = &self.content else {
            return String::new();
        };
        if let Some(text) = content.plain_str() {
            return text.to_owned();
        }
        match content.value() {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks
                .iter()
                .filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str()))
                .collect::<Vec<_>>()
                .join("\n"),
            _ => String::new(),
        }
    }

    fn into_owned(self) -> Turn {
        TurnView {
            role: self.role.map(owned),
            content: self.content.map(Raw::into_owned),
            extra: self.extra.into_owned(),
        }
    }
}

/// Token usage. Only reported figures are set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokensView<'a> {
    /// Read by the model.
    pub input: Option<u64>,
    /// Written by the model.
    pub output: Option<u64>,
    /// All of it.
    pub total: Option<u64>,
    /// Cached, reasoning, …
    pub extra: Extra<'a>,
}

impl TokensView<'_> {
    /// Any other recorded figure: `cached`, `reasoning`, …
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.extra.get(key)
    }

    fn into_owned(self) -> Tokens {
        TokensView {
            input: self.input,
            output: self.output,
            total: self.total,
            extra: self.extra.into_owned(),
        }
    }
}

/// A list of offered tools. They are parsed when they are first asked for.
#[derive(Debug, Clone, Default)]
pub struct Catalog<'a> {
    /// An object each. Empty once the tools were built.
    raw: Vec<Raw<'a>>,
    tools: OnceLock<Vec<Tool>>,
}

impl<'a> Catalog<'a> {
    /// Takes the JSON objects of the tools.
    fn from_raw(raw: Vec<Raw<'a>>) -> Self {
        Self {
            raw,
            tools: OnceLock::new(),
        }
    }

    /// The tools, in order.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        self.tools.get_or_init(|| {
            // The reader takes only objects, and any object is a tool.
            let parse = |raw: &Raw<'_>| serde_json::from_value(raw.to_value()).ok();
            self.raw.iter().filter_map(parse).collect()
        })
    }

    /// The tools, to change them.
    pub fn tools_mut(&mut self) -> &mut Vec<Tool> {
        let tools = std::mem::take(self).into_tools();
        *self = Self::from(tools);
        match self.tools.get_mut() {
            Some(tools) => tools,
            None => unreachable!("a built catalog is set"),
        }
    }

    fn into_tools(self) -> Vec<Tool> {
        let _ = self.tools();
        self.tools.into_inner().unwrap_or_default()
    }
}

impl From<Vec<Tool>> for Catalog<'_> {
    fn from(tools: Vec<Tool>) -> Self {
        Self {
            raw: Vec::new(),
            tools: OnceLock::from(tools),
        }
    }
}

impl FromIterator<Tool> for Catalog<'_> {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        Self::from(tools.into_iter().collect::<Vec<_>>())
    }
}

impl Deref for Catalog<'_> {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        self.tools()
    }
}

impl PartialEq for Catalog<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.tools() == other.tools()
    }
}

impl<'a> TraceView<'a> {
    /// The tools that were offered, where recorded.
    #[must_use]
    pub fn catalog(&self) -> Option<&[Tool]> {
        self.catalog.as_ref().map(Catalog::tools)
    }

    /// Sets the tools that were offered.
    pub fn set_catalog(&mut self, tools: Option<Vec<Tool>>) {
        self.catalog = tools.map(Catalog::from);
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

    /// The closing answer: as recorded, else the last assistant turn with text.
    #[must_use]
    pub fn final_text(&self) -> Option<Cow<'_, str>> {
        if let Some(text) = &self.final_response {
            return Some(Cow::Borrowed(text));
        }
        self.conversation
            .turns
            .iter()
            .flatten()
            .rev()
            .filter(|turn| turn.role.as_deref() == Some("assistant"))
            .map(TurnView::text)
            .find(|text| !text.trim().is_empty())
            .map(Cow::Owned)
    }

    /// The root that assertions on a run select from.
    #[must_use]
    pub fn observable(&self) -> Observable<'_> {
        Observable::new(self)
    }

    /// Detaches the trace from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Trace {
        let calls = self.tool_calls.into_iter();
        let results = self.tool_results.into_iter();
        TraceView {
            test: self.test.map(owned),
            model: self.model.map(owned),
            run: self.run,
            tool_calls: calls.map(ToolCallView::into_owned).collect(),
            tool_results: results.map(ToolResultView::into_owned).collect(),
            conversation: self.conversation.into_owned(),
            final_response: self.final_response.map(owned),
            catalog: self.catalog.map(|catalog| Catalog {
                raw: catalog.raw.into_iter().map(Raw::into_owned).collect(),
                tools: catalog.tools,
            }),
            distractors: self.distractors,
            judgements: self.judgements,
            error: self.error,
            extra: self.extra.into_owned(),
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

#[cfg(test)]
mod tests;
