//! Writing traces as JSON: known keys in a fixed order, where set, then the others as recorded.

use mcptest_json::{layout, write};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{
    Catalog, ConversationView, Extra, Raw, TokensView, ToolCallView, ToolName, ToolResultView,
    TraceView, TurnView,
};

impl TraceView<'_> {
    /// The trace as compact JSON: the bytes of [`serde_json::to_string`], in less time.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(4 << 10);
        self.write_json(&mut out);
        // Nothing but JSON text, which is UTF-8, was appended.
        String::from_utf8(out).unwrap_or_default()
    }

    /// Appends the trace as compact JSON. Raw parts are copied without being parsed.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::open(out);
        object.text("test", self.test.as_deref());
        object.text("model", self.model.as_deref());
        object.number("run", self.run);
        object.parts("tool_calls", &self.tool_calls);
        if !self.tool_results.is_empty() {
            object.parts("tool_results", &self.tool_results);
        }
        if !self.conversation.is_empty() {
            object.part("conversation", &self.conversation);
        }
        object.text("final_response", self.final_response.as_deref());
        if let Some(catalog) = &self.catalog {
            if catalog.raw.is_empty() {
                object.entry("catalog", catalog.tools());
            } else {
                object.parts("catalog", &catalog.raw);
            }
        }
        object.optional("distractors", &self.distractors);
        if !self.judgements.is_empty() {
            object.entry("judgements", &self.judgements);
        }
        object.optional("error", &self.error);
        object.close(&self.extra);
    }
}

/// A part of a trace that is written as compact JSON.
trait WriteJson {
    fn write_json(&self, out: &mut Vec<u8>);
}

impl WriteJson for Raw<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        match (self.json(), self.built()) {
            (Some(text), _) if layout::compact(text, out) => {}
            (None, Some(value)) => write::value(value, out),
            _ => write_value(self, out),
        }
    }
}

impl WriteJson for ToolCallView<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::open(out);
        object.optional_part("id", self.id.as_ref());
        match &self.raw_name {
            ToolName::Text(name) => object.text("name", Some(name.as_ref())),
            ToolName::Malformed(name) => object.entry("name", name),
        }
        object.text("server", self.server.as_deref());
        object.optional_part("args", self.args.as_ref());
        object.optional_part("caller", self.caller.as_ref());
        object.number("turn", self.turn);
        object.close(&self.extra);
    }
}

impl WriteJson for ToolResultView<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::open(out);
        object.optional_part("call_id", self.call_id.as_ref());
        object.optional("is_error", &self.is_error);
        object.optional_part("content", self.content.as_ref());
        object.close(&self.extra);
    }
}

impl WriteJson for ConversationView<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::open(out);
        if let Some(turns) = &self.turns {
            object.parts("turns", turns);
        }
        object.optional_part("tokens", self.tokens.as_ref());
        object.close(&self.extra);
    }
}

impl WriteJson for TurnView<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::open(out);
        object.text("role", self.role.as_deref());
        object.optional_part("content", self.content.as_ref());
        object.close(&self.extra);
    }
}

impl WriteJson for TokensView<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::open(out);
        object.number("input", self.input);
        object.number("output", self.output);
        object.number("total", self.total);
        object.close(&self.extra);
    }
}

/// Strings, numbers, lists and maps with string keys can always be written to memory.
fn write_value<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}

/// Writes an object as compact JSON, key by key.
struct JsonObject<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> JsonObject<'o> {
    fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Writes a key that needs no escapes.
    fn key(&mut self, key: &str) {
        self.out
            .extend_from_slice(if self.first { b"\"" } else { b",\"" });
        self.first = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.key(key);
        write_value(value, self.out);
    }

    fn optional<T: Serialize>(&mut self, key: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.entry(key, value);
        }
    }

    fn number(&mut self, key: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.key(key);
            write::number(number, self.out);
        }
    }

    fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.key(key);
            write::string(text, self.out);
        }
    }

    fn part(&mut self, key: &str, part: &impl WriteJson) {
        self.key(key);
        part.write_json(self.out);
    }

    fn optional_part(&mut self, key: &str, part: Option<&impl WriteJson>) {
        if let Some(part) = part {
            self.part(key, part);
        }
    }

    fn parts(&mut self, key: &str, parts: &[impl WriteJson]) {
        self.key(key);
        self.out.push(b'[');
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            part.write_json(self.out);
        }
        self.out.push(b']');
    }

    fn close(self, extra: &Extra<'_>) {
        let mut first = self.first;
        for (key, raw) in extra.iter() {
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            write::string(key, self.out);
            self.out.push(b':');
            raw.write_json(self.out);
        }
        self.out.push(b'}');
    }
}

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
        if !self.tool_results.is_empty() {
            object.entry("tool_results", &self.tool_results)?;
        }
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
        if self.raw.is_empty() {
            return self.tools().serialize(serializer);
        }
        self.raw.serialize(serializer)
    }
}
