//! Reading traces from JSON.
//!
//! There are two ways in, through the same visitors. The quick one borrows from the text and leaves
//! raw parts unparsed ([`Borrowed`]). The thorough one builds every value ([`Owned`]); it works
//! with any deserializer, and its errors have the exact line and column. A trace that
//! the quick one rejects is read again by the thorough one, so the two cannot disagree about a
//! file.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    Catalog, ConversationView, Extra, Raw, TokensView, ToolCallView, ToolName, ToolResultView,
    Trace, TraceView, TurnView,
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

impl<'a> Iterator for Views<'a> {
    type Item = Result<TraceView<'a>, TraceSyntaxError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.offset..)?;
        let mut quick = serde_json::Deserializer::from_str(rest).into_iter::<BorrowedTrace<'a>>();
        if let Ok(BorrowedTrace(trace)) = quick.next()? {
            self.offset += quick.byte_offset();
            return Some(Ok(trace));
        }
        let mut thorough = serde_json::Deserializer::from_str(rest).into_iter::<Trace>();
        match thorough.next()? {
            Ok(trace) => {
                self.offset += thorough.byte_offset();
                Some(Ok(trace))
            }
            Err(error) => {
                let error = moved(error.into(), &self.text[..self.offset]);
                self.offset = self.text.len();
                Some(Err(error))
            }
        }
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
        match serde_json::from_str(text) {
            Ok(BorrowedTrace(trace)) => Ok(trace),
            Err(_) => Ok(serde_json::from_str::<Trace>(text)?),
        }
    }
}

/// A way to take strings and raw parts from a deserializer.
trait Source<'de, 'a> {
    fn string(text: Text<'de, '_>) -> Cow<'a, str>;
    fn raw<D: Deserializer<'de>>(input: D) -> Result<Raw<'a>, D::Error>;
    fn catalog<D: Deserializer<'de>>(input: D) -> Result<Catalog<'a>, D::Error>;
}

/// A string that a deserializer hands out.
enum Text<'de, 's> {
    Borrowed(&'de str),
    Short(&'s str),
    Owned(String),
}

/// Borrows from the text; only for `serde_json` over a string.
struct Borrowed;
/// Builds every value.
struct Owned;

/// Wraps a trace that is read with [`Borrowed`].
struct BorrowedTrace<'a>(TraceView<'a>);

impl<'de> Source<'de, 'de> for Borrowed {
    fn string(text: Text<'de, '_>) -> Cow<'de, str> {
        match text {
            Text::Borrowed(text) => Cow::Borrowed(text),
            Text::Short(text) => Cow::Owned(text.to_owned()),
            Text::Owned(text) => Cow::Owned(text),
        }
    }

    fn raw<D: Deserializer<'de>>(input: D) -> Result<Raw<'de>, D::Error> {
        let raw = <&RawValue>::deserialize(input)?;
        Raw::from_json(raw.get()).ok_or_else(|| D::Error::custom("not plain"))
    }

    fn catalog<D: Deserializer<'de>>(input: D) -> Result<Catalog<'de>, D::Error> {
        let tools: Vec<Raw<'de>> = read_part::<Self, _, _>(input)?;
        if tools.iter().all(Raw::is_object) {
            Ok(Catalog::from_raw(tools))
        } else {
            Err(D::Error::custom("not a list of objects"))
        }
    }
}

impl<'de> Source<'de, 'static> for Owned {
    fn string(text: Text<'de, '_>) -> Cow<'static, str> {
        Cow::Owned(match text {
            Text::Borrowed(text) => text.to_owned(),
            Text::Short(text) => text.to_owned(),
            Text::Owned(text) => text,
        })
    }

    fn raw<D: Deserializer<'de>>(input: D) -> Result<Raw<'static>, D::Error> {
        Value::deserialize(input).map(Raw::from)
    }

    fn catalog<D: Deserializer<'de>>(input: D) -> Result<Catalog<'static>, D::Error> {
        Vec::<Tool>::deserialize(input).map(Catalog::from)
    }
}

impl<'de> Deserialize<'de> for BorrowedTrace<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_part::<Borrowed, _, _>(deserializer).map(Self)
    }
}

/// A part of a trace, read from a source.
trait Part<'de, 'a, S>: Sized {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error>;
}

fn read_part<'de, 'a, S, T, D>(input: D) -> Result<T, D::Error>
where
    T: Part<'de, 'a, S>,
    D: Deserializer<'de>,
{
    T::read(input)
}

/// Hands a [`Part`] to a sequence or a map.
struct Seed<'a, S, T>(PhantomData<(&'a (), S, T)>);

impl<S, T> Seed<'_, S, T> {
    fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, 'a, S, T: Part<'de, 'a, S>> DeserializeSeed<'de> for Seed<'a, S, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<T, D::Error> {
        T::read(input)
    }
}

/// A part that is the same from any source.
struct Plain<T>(T);

impl<'de, S, T: Deserialize<'de>> Part<'de, '_, S> for Plain<T> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        T::deserialize(input).map(Self)
    }
}

impl<'de, 'a, S: Source<'de, 'a>> Part<'de, 'a, S> for Raw<'a> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        S::raw(input)
    }
}

impl<'de, 'a, S: Source<'de, 'a>> Part<'de, 'a, S> for Catalog<'a> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        S::catalog(input)
    }
}

impl<'de, 'a, S, T: Part<'de, 'a, S>> Part<'de, 'a, S> for Option<T> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct OptionVisitor<'a, S, T>(Seed<'a, S, T>);
        impl<'de, 'a, S, T: Part<'de, 'a, S>> Visitor<'de> for OptionVisitor<'a, S, T> {
            type Value = Option<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("option")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
                T::read(input).map(Some)
            }
        }
        input.deserialize_option(OptionVisitor(Seed::<S, T>::new()))
    }
}

impl<'de, 'a, S, T: Part<'de, 'a, S>> Part<'de, 'a, S> for Vec<T> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct ListVisitor<'a, S, T>(Seed<'a, S, T>);
        impl<'de, 'a, S, T: Part<'de, 'a, S>> Visitor<'de> for ListVisitor<'a, S, T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element_seed(Seed::<S, T>::new())? {
                    items.push(item);
                }
                Ok(items)
            }
        }
        input.deserialize_seq(ListVisitor(Seed::<S, T>::new()))
    }
}

impl<'de, 'a, S: Source<'de, 'a>> Part<'de, 'a, S> for Cow<'a, str> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct StringVisitor<S>(PhantomData<S>);
        impl<'de, 'a, S: Source<'de, 'a>> Visitor<'de> for StringVisitor<(&'a (), S)> {
            type Value = Cow<'a, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(S::string(Text::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(S::string(Text::Short(text)))
            }

            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(S::string(Text::Owned(text)))
            }
        }
        input.deserialize_string(StringVisitor::<(&'a (), S)>(PhantomData))
    }
}

impl<'de, 'a, S: Source<'de, 'a>> Part<'de, 'a, S> for ToolName<'a> {
    fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct NameVisitor<S>(PhantomData<S>);
        impl<'de, 'a, S: Source<'de, 'a>> Visitor<'de> for NameVisitor<(&'a (), S)> {
            type Value = ToolName<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any valid JSON value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ToolName::Text(S::string(Text::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ToolName::Text(S::string(Text::Short(text))))
            }

            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(ToolName::Text(S::string(Text::Owned(text))))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(ToolName::Malformed(flag.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(ToolName::Malformed(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(ToolName::Malformed(number.into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(ToolName::Malformed(number.into()))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(ToolName::Malformed(Value::Null))
            }

            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(ToolName::Malformed(Value::Null))
            }

            fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
                input.deserialize_any(self)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                let value = Value::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(ToolName::Malformed(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let value = Value::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ToolName::Malformed(value))
            }
        }
        input.deserialize_any(NameVisitor::<(&'a (), S)>(PhantomData))
    }
}

/// A key of an object: one of the known ones by its place in the list, or another.
enum Key<'a> {
    Known(usize),
    Other(Cow<'a, str>),
}

struct KeySeed<'a, S> {
    known: &'static [&'static str],
    source: PhantomData<(&'a (), S)>,
}

impl<'a, S> KeySeed<'a, S> {
    fn key<'de>(&self, text: Text<'de, '_>) -> Key<'a>
    where
        S: Source<'de, 'a>,
    {
        let name = match &text {
            Text::Borrowed(name) => name,
            Text::Short(name) => name,
            Text::Owned(name) => name.as_str(),
        };
        match self.known.iter().position(|known| *known == name) {
            Some(place) => Key::Known(place),
            None => Key::Other(S::string(text)),
        }
    }
}

impl<'de, 'a, S: Source<'de, 'a>> DeserializeSeed<'de> for KeySeed<'a, S> {
    type Value = Key<'a>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Key<'a>, D::Error> {
        input.deserialize_identifier(self)
    }
}

impl<'de, 'a, S: Source<'de, 'a>> Visitor<'de> for KeySeed<'a, S> {
    type Value = Key<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'a>, E> {
        Ok(self.key(Text::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Key<'a>, E> {
        Ok(self.key(Text::Short(text)))
    }

    fn visit_string<E>(self, text: String) -> Result<Key<'a>, E> {
        Ok(self.key(Text::Owned(text)))
    }
}

impl<'de> Deserialize<'de> for Catalog<'static> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Owned::catalog(input)
    }
}

/// Reads an object with known keys, each at most once, and any others. `$build` makes the result of
/// the known keys (each an `Option` of what was read) and of the others.
macro_rules! object {
    ($view:ident as $expected:literal { $($key:literal => $field:ident: $part:ty,)* }
     $others:ident, $error:ident => $build:expr) => {
        impl<'de, 'a, S: Source<'de, 'a>> Part<'de, 'a, S> for $view<'a> {
            fn read<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                struct ObjectVisitor<S>(PhantomData<S>);
                impl<'de, 'a, S: Source<'de, 'a>> Visitor<'de> for ObjectVisitor<(&'a (), S)> {
                    type Value = $view<'a>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        const KNOWN: &[&str] = &[$($key),*];
                        $(let mut $field: Option<$part> = None;)*
                        let mut others: Vec<(Cow<'a, str>, Raw<'a>)> = Vec::new();
                        while let Some(key) = map.next_key_seed(KeySeed::<S> {
                            known: KNOWN,
                            source: PhantomData,
                        })? {
                            match key {
                                Key::Other(key) => {
                                    let raw = map.next_value_seed(Seed::<S, Raw<'a>>::new())?;
                                    others.push((key, raw));
                                }
                                Key::Known(place) => {
                                    let name = KNOWN[place];
                                    $(if name == $key {
                                        if $field.is_some() {
                                            return Err(A::Error::duplicate_field($key));
                                        }
                                        let part = Seed::<S, $part>::new();
                                        $field = Some(map.next_value_seed(part)?);
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
                input.deserialize_map(ObjectVisitor::<(&'a (), S)>(PhantomData))
            }
        }

        impl<'de> Deserialize<'de> for $view<'static> {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                read_part::<Owned, _, _>(input)
            }
        }
    };
}

object! {
    TraceView as "struct Trace" {
        "test" => test: Option<Cow<'a, str>>,
        "model" => model: Option<Cow<'a, str>>,
        "run" => run: Plain<Option<u64>>,
        "tool_calls" => tool_calls: Vec<ToolCallView<'a>>,
        "tool_results" => tool_results: Option<Vec<ToolResultView<'a>>>,
        "conversation" => conversation: Option<ConversationView<'a>>,
        "final_response" => final_response: Option<Cow<'a, str>>,
        "catalog" => catalog: Option<Catalog<'a>>,
        "distractors" => distractors: Plain<Option<Vec<String>>>,
        "judgements" => judgements: Plain<Vec<crate::judged::Judgement>>,
        "error" => error: Plain<Option<crate::verdict::RunError>>,
    }
    extra, missing => TraceView {
        test: test.flatten(),
        model: model.flatten(),
        run: run.and_then(|run| run.0),
        tool_calls: tool_calls.ok_or_else(|| missing("tool_calls"))?,
        tool_results: tool_results.flatten().unwrap_or_default(),
        conversation: conversation.flatten().unwrap_or_default(),
        final_response: final_response.flatten(),
        catalog: catalog.flatten(),
        distractors: distractors.and_then(|ids| ids.0),
        judgements: judgements.map(|list| list.0).unwrap_or_default(),
        error: error.and_then(|error| error.0),
        extra,
    }
}

object! {
    ToolCallView as "struct ToolCall" {
        "id" => id: Option<Raw<'a>>,
        "name" => raw_name: ToolName<'a>,
        "server" => server: Option<Cow<'a, str>>,
        // `"args": null` is recorded evidence, unlike a missing key.
        "args" => args: Raw<'a>,
        "caller" => caller: Option<Raw<'a>>,
        "turn" => turn: Plain<Option<u64>>,
    }
    extra, _missing => ToolCallView {
        id: id.flatten(),
        raw_name: raw_name.unwrap_or_default(),
        server: server.flatten(),
        args,
        caller: caller.flatten(),
        turn: turn.and_then(|turn| turn.0),
        extra,
    }
}

object! {
    ToolResultView as "struct ToolResult" {
        "call_id" => call_id: Option<Raw<'a>>,
        "is_error" => is_error: Plain<Option<bool>>,
        "content" => content: Option<Raw<'a>>,
    }
    extra, _missing => ToolResultView {
        call_id: call_id.flatten(),
        is_error: is_error.and_then(|flag| flag.0),
        content: content.flatten(),
        extra,
    }
}

object! {
    ConversationView as "struct Conversation" {
        "turns" => turns: Option<Vec<TurnView<'a>>>,
        "tokens" => tokens: Option<TokensView<'a>>,
    }
    extra, _missing => ConversationView {
        turns: turns.flatten(),
        tokens: tokens.flatten(),
        extra,
    }
}

object! {
    TurnView as "struct Turn" {
        "role" => role: Option<Cow<'a, str>>,
        "content" => content: Option<Raw<'a>>,
    }
    extra, _missing => TurnView {
        role: role.flatten(),
        content: content.flatten(),
        extra,
    }
}

object! {
    TokensView as "struct Tokens" {
        "input" => input: Plain<Option<u64>>,
        "output" => output: Plain<Option<u64>>,
        "total" => total: Plain<Option<u64>>,
    }
    extra, _missing => TokensView {
        input: input.and_then(|count| count.0),
        output: output.and_then(|count| count.0),
        total: total.and_then(|count| count.0),
        extra,
    }
}
