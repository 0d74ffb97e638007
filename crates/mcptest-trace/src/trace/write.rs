//! Writing traces as JSON: known keys in a fixed order, where set, then the others as recorded.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{
    Catalog, ConversationView, Extra, TokensView, ToolCallView, ToolResultView, TraceView, TurnView,
};

/// Writes an object key by key.
struct Object<M>(M);

impl<M: SerializeMap> Object<M> {
    fn new<S: Serializer<SerializeMap = M>>(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
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

    fn list<T: Serialize>(&mut self, key: &str, items: &[T]) -> Result<(), M::Error> {
        if items.is_empty() {
            return Ok(());
        }
        self.entry(key, items)
    }

    fn end(mut self, extra: &Extra<'_>) -> Result<M::Ok, M::Error> {
        for (key, raw) in extra.iter() {
            self.entry(key, raw)?;
        }
        self.0.end()
    }
}

impl Serialize for TraceView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.optional("test", &self.test)?;
        object.optional("model", &self.model)?;
        object.optional("run", &self.run)?;
        object.entry("tool_calls", &self.tool_calls)?;
        object.list("tool_results", &self.tool_results)?;
        if !self.conversation.is_empty() {
            object.entry("conversation", &self.conversation)?;
        }
        object.optional("final_response", &self.final_response)?;
        object.optional("catalog", &self.catalog)?;
        object.optional("distractors", &self.distractors)?;
        object.list("judgements", &self.judgements)?;
        object.optional("error", &self.error)?;
        object.end(&self.extra)
    }
}

impl Serialize for ToolCallView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.optional("id", &self.id)?;
        object.entry("name", &self.raw_name)?;
        object.optional("server", &self.server)?;
        object.optional("args", &self.args)?;
        object.optional("caller", &self.caller)?;
        object.optional("turn", &self.turn)?;
        object.end(&self.extra)
    }
}

impl Serialize for ToolResultView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.optional("call_id", &self.call_id)?;
        object.optional("is_error", &self.is_error)?;
        object.optional("content", &self.content)?;
        object.end(&self.extra)
    }
}

impl Serialize for ConversationView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.optional("turns", &self.turns)?;
        object.optional("tokens", &self.tokens)?;
        object.end(&self.extra)
    }
}

impl Serialize for TurnView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.optional("role", &self.role)?;
        object.optional("content", &self.content)?;
        object.end(&self.extra)
    }
}

impl Serialize for TokensView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.optional("input", &self.input)?;
        object.optional("output", &self.output)?;
        object.optional("total", &self.total)?;
        object.end(&self.extra)
    }
}

impl Serialize for Catalog<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.tools.get() {
            Some(tools) => tools.serialize(serializer),
            None => self.raw.serialize(serializer),
        }
    }
}
