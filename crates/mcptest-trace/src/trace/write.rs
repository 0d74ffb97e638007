//! Writing traces as JSON: known keys in a fixed order, where set, then the others as recorded.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::canonical::is_canonical;
use super::{
    Catalog, ConversationView, Extra, Raw, TokensView, ToolCallView, ToolResultView, TraceView,
    TurnView,
};

impl TraceView<'_> {
    /// The trace as compact JSON: the bytes of [`serde_json::to_string`], in less time. Raw parts
    /// that are already written as a serializer would write them are copied.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A trace consists of strings, numbers, lists and maps with string keys.
        serde_json::to_string(&Part(self, Raws::Copied)).unwrap_or_default()
    }
}

/// The treatment of raw parts.
#[derive(Clone, Copy)]
enum Raws {
    /// Written value by value, for any serializer.
    Parsed,
    /// Copied where the compact form is the same.
    Copied,
}

/// A part of a trace, and the treatment of the raw parts in it.
struct Part<'p, T>(&'p T, Raws);

impl<T: Write> Serialize for Part<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer, self.1)
    }
}

/// A type that can be a [`Part`].
trait Write {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error>;
}

impl<T: Write> Write for Vec<T> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|item| Part(item, raws)))
    }
}

impl Write for Raw<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        if let (Raws::Copied, Some(text)) = (raws, self.json())
            && is_canonical(text)
            && let Ok(copied) = serde_json::from_str::<&RawValue>(text)
        {
            return copied.serialize(serializer);
        }
        self.serialize(serializer)
    }
}

/// Writes an object key by key.
struct Object<M>(M, Raws);

impl<M: SerializeMap> Object<M> {
    fn new<S: Serializer<SerializeMap = M>>(serializer: S, raws: Raws) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(|map| Self(map, raws))
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), M::Error> {
        self.0.serialize_entry(key, value)
    }

    fn optional<T: Serialize>(&mut self, key: &str, value: &Option<T>) -> Result<(), M::Error> {
        match value {
            Some(value) => self.entry(key, value),
            None => Ok(()),
        }
    }

    /// A part that may have raw parts.
    fn part<T: Write>(&mut self, key: &str, part: &Option<T>) -> Result<(), M::Error> {
        match part {
            Some(part) => self.entry(key, &Part(part, self.1)),
            None => Ok(()),
        }
    }

    fn list<T: Serialize>(&mut self, key: &str, items: &[T]) -> Result<(), M::Error> {
        if items.is_empty() {
            return Ok(());
        }
        self.entry(key, items)
    }

    fn end(mut self, extra: &Extra<'_>) -> Result<M::Ok, M::Error> {
        for (key, raw) in extra.iter() {
            let part = Part(raw, self.1);
            self.entry(key, &part)?;
        }
        self.0.end()
    }
}

impl Write for TraceView<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer, raws)?;
        object.optional("test", &self.test)?;
        object.optional("model", &self.model)?;
        object.optional("run", &self.run)?;
        object.entry("tool_calls", &Part(&self.tool_calls, raws))?;
        if !self.tool_results.is_empty() {
            object.entry("tool_results", &Part(&self.tool_results, raws))?;
        }
        if !self.conversation.is_empty() {
            object.entry("conversation", &Part(&self.conversation, raws))?;
        }
        object.optional("final_response", &self.final_response)?;
        object.part("catalog", &self.catalog)?;
        object.optional("distractors", &self.distractors)?;
        object.list("judgements", &self.judgements)?;
        object.optional("error", &self.error)?;
        object.end(&self.extra)
    }
}

impl Write for ToolCallView<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer, raws)?;
        object.part("id", &self.id)?;
        object.entry("name", &self.raw_name)?;
        object.optional("server", &self.server)?;
        object.part("args", &self.args)?;
        object.part("caller", &self.caller)?;
        object.optional("turn", &self.turn)?;
        object.end(&self.extra)
    }
}

impl Write for ToolResultView<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer, raws)?;
        object.part("call_id", &self.call_id)?;
        object.optional("is_error", &self.is_error)?;
        object.part("content", &self.content)?;
        object.end(&self.extra)
    }
}

impl Write for ConversationView<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer, raws)?;
        object.part("turns", &self.turns)?;
        object.part("tokens", &self.tokens)?;
        object.end(&self.extra)
    }
}

impl Write for TurnView<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer, raws)?;
        object.optional("role", &self.role)?;
        object.part("content", &self.content)?;
        object.end(&self.extra)
    }
}

impl Write for TokensView<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer, raws)?;
        object.optional("input", &self.input)?;
        object.optional("output", &self.output)?;
        object.optional("total", &self.total)?;
        object.end(&self.extra)
    }
}

impl Write for Catalog<'_> {
    fn write<S: Serializer>(&self, serializer: S, raws: Raws) -> Result<S::Ok, S::Error> {
        if self.raw.is_empty() {
            return self.tools().serialize(serializer);
        }
        self.raw.write(serializer, raws)
    }
}

macro_rules! written_as_parts {
    ($($view:ident,)*) => {$(
        impl Serialize for $view<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write(serializer, Raws::Parsed)
            }
        }
    )*};
}

written_as_parts! {
    TraceView,
    ToolCallView,
    ToolResultView,
    ConversationView,
    TurnView,
    TokensView,
    Catalog,
}
