//! Reading traces from JSON.
//!
//! There are two readers. The quick one borrows from the text and leaves raw parts unparsed
//! ([`super::quick`]). The thorough one, here, builds every value; it works with any deserializer,
//! and its errors have the exact line and column. A trace that the quick one rejects is read again
//! by the thorough one, so the two cannot disagree about a file.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{
    Catalog, ConversationView, Extra, Raw, TokensView, ToolCallView, ToolName, ToolResultView,
    Trace, TraceView, TurnView, quick,
};
use crate::catalog::Tool;

/// An error in a trace file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TraceSyntaxError {
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// The problem.
    pub message: String,
}

impl TraceSyntaxError {
    /// Returns true if the text ends inside of a trace: more text may complete it.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        // All errors of this kind, and no others, have this prefix in serde_json.
        self.message.starts_with("EOF while parsing")
    }
}

impl From<serde_json::Error> for TraceSyntaxError {
    fn from(error: serde_json::Error) -> Self {
        let message = error.to_string();
        // serde_json appends the position to the message.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        Self {
            line: error.line(),
            column: error.column(),
            message: message[..end].to_owned(),
        }
    }
}

/// Reads traces: one object, an array of them, or JSON Lines (any sequence of objects).
///
/// # Errors
/// The first place that is not a trace.
///
/// ```
/// let text = r#"{"tool_calls": [{"name": "get", "server": "http"}]}"#;
/// let traces = mcptest_trace::trace::read(text).unwrap();
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

/// Reads a sequence of traces, on lines of their own or not: any part of a JSON Lines file that
/// ends with a whole trace.
///
/// # Errors
/// The first place that is not a trace.
pub fn read_sequence(text: &str) -> Result<Vec<Trace>, TraceSyntaxError> {
    let traces: serde_json::Result<_> = serde_json::Deserializer::from_str(text)
        .into_iter::<Trace>()
        .collect();
    Ok(traces?)
}

/// Returns true if the first byte that is not blank opens an array.
#[must_use]
pub fn starts_array(text: &[u8]) -> bool {
    text.iter().find(|byte| !is_json_space(byte)) == Some(&b'[')
}

/// Returns true if there is nothing but JSON's white space.
#[must_use]
pub fn is_blank(text: &[u8]) -> bool {
    text.iter().all(is_json_space)
}

fn is_json_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Reads a sequence of traces, as [`read_sequence`] does, one at a time and as views of the text.
#[must_use]
pub fn views(text: &str) -> Views<'_> {
    Views { text, offset: 0 }
}

/// The iterator of [`views`]. It ends with the first error.
#[derive(Debug, Clone)]
pub struct Views<'a> {
    text: &'a str,
    /// The end of the last trace.
    offset: usize,
}

impl Views<'_> {
    /// The end of the last trace, in bytes.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Views<'a> {
    /// Reads the next trace into its place. A trace is large, so it is not moved.
    pub fn next_into(&mut self, trace: &mut TraceView<'a>) -> Option<Result<(), TraceSyntaxError>> {
        let rest = self.text.get(self.offset..)?;
        *trace = TraceView::default();
        if let Some(end) = quick::read_into(rest, trace) {
            self.offset += end;
            return Some(Ok(()));
        }
        self.read_thoroughly(rest, trace)
    }

    #[cold]
    fn read_thoroughly(
        &mut self,
        rest: &'a str,
        place: &mut TraceView<'a>,
    ) -> Option<Result<(), TraceSyntaxError>> {
        *place = TraceView::default();
        let mut thorough = serde_json::Deserializer::from_str(rest).into_iter::<Trace>();
        match thorough.next()? {
            Ok(trace) => {
                self.offset += thorough.byte_offset();
                *place = trace;
                Some(Ok(()))
            }
            Err(error) => {
                let error = moved(error.into(), &self.text[..self.offset]);
                self.offset = self.text.len();
                Some(Err(error))
            }
        }
    }
}

impl<'a> Iterator for Views<'a> {
    type Item = Result<TraceView<'a>, TraceSyntaxError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut trace = TraceView::default();
        let read = self.next_into(&mut trace)?;
        Some(read.map(|()| trace))
    }
}

/// An error of a part, at its place in the whole.
fn moved(mut error: TraceSyntaxError, before: &str) -> TraceSyntaxError {
    let line_ends = before.bytes().filter(|byte| *byte == b'\n').count();
    if error.line == 1 {
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        error.column += before.len() - line_start;
    }
    error.line += line_ends;
    error
}

impl<'a> TraceView<'a> {
    /// Reads one trace as a view of the text.
    ///
    /// # Errors
    /// The first place that is wrong.
    pub fn parse(text: &'a str) -> Result<Self, TraceSyntaxError> {
        let mut trace = Self::default();
        match quick::read_into(text, &mut trace) {
            Some(end) if is_blank(&text.as_bytes()[end..]) => Ok(trace),
            _ => Ok(serde_json::from_str::<Trace>(text)?),
        }
    }
}

impl<'de> Deserialize<'de> for Raw<'static> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Value::deserialize(input).map(Raw::from)
    }
}

impl<'de> Deserialize<'de> for ToolName<'static> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Value::deserialize(input).map(ToolName::from)
    }
}

impl<'de> Deserialize<'de> for Catalog<'static> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Vec::<Tool>::deserialize(input).map(Catalog::from)
    }
}

/// A key of an object: one of the known ones by its place in the list, or another.
enum Key {
    Known(usize),
    Other(String),
}

struct KeySeed(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Key, D::Error> {
        input.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        Ok(match self.0.iter().position(|known| *known == name) {
            Some(place) => Key::Known(place),
            None => Key::Other(name.to_owned()),
        })
    }
}

/// Reads an object with known keys, each at most once, and any others. `$build` makes the result of
/// the known keys (each an `Option` of what was read) and of the others.
macro_rules! object {
    ($view:ident as $expected:literal { $($key:literal => $field:ident: $part:ty,)* }
     $others:ident, $error:ident => $build:expr) => {
        impl<'de> Deserialize<'de> for $view<'static> {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;
                impl<'de> Visitor<'de> for ObjectVisitor {
                    type Value = $view<'static>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        const KNOWN: &[&str] = &[$($key),*];
                        $(let mut $field: Option<$part> = None;)*
                        let mut others: Vec<(Cow<'static, str>, Raw<'static>)> = Vec::new();
                        while let Some(key) = map.next_key_seed(KeySeed(KNOWN))? {
                            match key {
                                Key::Other(key) => {
                                    others.push((Cow::Owned(key), map.next_value()?));
                                }
                                Key::Known(place) => {
                                    let name = KNOWN[place];
                                    $(if name == $key {
                                        if $field.is_some() {
                                            return Err(A::Error::duplicate_field($key));
                                        }
                                        $field = Some(map.next_value()?);
                                        continue;
                                    })*
                                }
                            }
                        }
                        let $others = Extra::from_entries(others);
                        let $error = A::Error::missing_field;
                        let _ = $error;
                        Ok($build)
                    }
                }
                input.deserialize_map(ObjectVisitor)
            }
        }
    };
}

object! {
    TraceView as "struct Trace" {
        "test" => test: Option<Cow<'static, str>>,
        "model" => model: Option<Cow<'static, str>>,
        "run" => run: Option<u64>,
        "tool_calls" => tool_calls: Vec<ToolCallView<'static>>,
        "tool_results" => tool_results: Option<Vec<ToolResultView<'static>>>,
        "conversation" => conversation: Option<ConversationView<'static>>,
        "final_response" => final_response: Option<Cow<'static, str>>,
        "catalog" => catalog: Option<Catalog<'static>>,
        "distractors" => distractors: Option<Vec<String>>,
        "judgements" => judgements: Vec<crate::judgement::Judgement>,
        "error" => error: Option<crate::verdict::RunError>,
    }
    extra, missing => TraceView {
        test: test.flatten(),
        model: model.flatten(),
        run: run.flatten(),
        tool_calls: tool_calls.ok_or_else(|| missing("tool_calls"))?,
        tool_results: tool_results.flatten().unwrap_or_default(),
        conversation: conversation.flatten().unwrap_or_default(),
        final_response: final_response.flatten(),
        catalog: catalog.flatten(),
        distractors: distractors.flatten(),
        judgements: judgements.unwrap_or_default(),
        error: error.flatten(),
        extra,
    }
}

object! {
    ToolCallView as "struct ToolCall" {
        "id" => id: Option<Raw<'static>>,
        "name" => raw_name: ToolName<'static>,
        "server" => server: Option<Cow<'static, str>>,
        // `"args": null` is recorded evidence, unlike a missing key.
        "args" => args: Raw<'static>,
        "caller" => caller: Option<Raw<'static>>,
        "turn" => turn: Option<u64>,
    }
    extra, _missing => {
        let call = ToolCallView {
            id: id.flatten(),
            raw_name: raw_name.unwrap_or_default(),
            server: server.flatten(),
            args,
            caller: caller.flatten(),
            turn: turn.flatten(),
            extra,
        };
        match call.foreign_form() {
            Some(hint) => return Err(A::Error::custom(hint)),
            None => call,
        }
    }
}

object! {
    ToolResultView as "struct ToolResult" {
        "call_id" => call_id: Option<Raw<'static>>,
        "is_error" => is_error: Option<bool>,
        "content" => content: Option<Raw<'static>>,
    }
    extra, _missing => ToolResultView {
        call_id: call_id.flatten(),
        is_error: is_error.flatten(),
        content: content.flatten(),
        extra,
    }
}

object! {
    ConversationView as "struct Conversation" {
        "turns" => turns: Option<Vec<TurnView<'static>>>,
        "tokens" => tokens: Option<TokensView<'static>>,
    }
    extra, _missing => ConversationView {
        turns: turns.flatten(),
        tokens: tokens.flatten(),
        extra,
    }
}

object! {
    TurnView as "struct Turn" {
        "role" => role: Option<Cow<'static, str>>,
        "content" => content: Option<Raw<'static>>,
    }
    extra, _missing => TurnView {
        role: role.flatten(),
        content: content.flatten(),
        extra,
    }
}

object! {
    TokensView as "struct Tokens" {
        "input" => input: Option<u64>,
        "output" => output: Option<u64>,
        "total" => total: Option<u64>,
    }
    extra, _missing => TokensView {
        input: input.flatten(),
        output: output.flatten(),
        total: total.flatten(),
        extra,
    }
}
