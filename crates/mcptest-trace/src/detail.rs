//! A JSON object kept as text, for figures of which there may be one row per run.

use std::borrow::Cow;
use std::io::{self, Read as _, Write};

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use mcptest_json::transcode::JsonText;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Text beyond this size is compressed.
const MAX_PLAIN: usize = 64 << 10;

/// The facts behind a gate's figures: a JSON object, kept as compact text.
///
/// A detail can have a row for each of 100,000 runs. As compressed text it takes about a hundredth
/// of the memory of a tree of values, and it is written to a report without building one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail(Text);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    Plain(String),
    /// An LZ4 frame.
    Packed(Box<[u8]>),
}

impl Detail {
    /// Serialises a struct or a map. Anything that is not a JSON object gives an empty detail.
    #[must_use]
    pub fn new(object: &impl Serialize) -> Self {
        let mut text = TextWriter::default();
        match serde_json::to_writer(&mut text, object) {
            Ok(()) if text.is_object => text.finish().map_or_else(Self::default, Self),
            _ => Self::default(),
        }
    }

    /// The compact JSON text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Packed(frame) => {
                let mut text = String::new();
                // The frame is in memory, and was written by `TextWriter`.
                match FrameDecoder::new(frame.as_ref()).read_to_string(&mut text) {
                    Ok(_) => Cow::Owned(text),
                    Err(_) => Cow::Borrowed("{}"),
                }
            }
        }
    }

    /// Writes the compact JSON text piece by piece.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.0 {
            Text::Plain(text) => out.write_all(text.as_bytes()),
            Text::Packed(frame) => io::copy(&mut FrameDecoder::new(frame.as_ref()), out).map(drop),
        }
    }

    /// The same object without one of its keys. The text is copied piece by piece.
    #[must_use]
    pub fn without_key(&self, key: &str) -> Self {
        let mut writer = WithoutKey {
            out: TextWriter::default(),
            key: format!("\"{key}\""),
            at: At::Start,
            depth: 0,
            string: None,
            held: Vec::new(),
            first: true,
        };
        match self.write_to(&mut writer) {
            Ok(()) => writer.out.finish().map_or_else(Self::default, Self),
            Err(_) => Self::default(),
        }
    }

    /// Returns true if the object has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Text::Plain(text) if text == "{}")
    }

    /// The whole object, parsed.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_default()
    }

    /// The whole object, parsed, as a map.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.text()).unwrap_or_default()
    }

    /// The value of one key, parsed.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.to_map().remove(key)
    }
}

/// Copies the compact text of an object, except for one of its keys.
struct WithoutKey {
    out: TextWriter,
    /// The key in quotes.
    key: String,
    at: At,
    /// The number of open brackets within a value.
    depth: u32,
    /// Set within a string; true after a backslash.
    string: Option<bool>,
    /// The key that is being read.
    held: Vec<u8>,
    /// True before the first entry that is copied.
    first: bool,
}

/// A place in an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Key,
    Value { copied: bool },
}

impl WithoutKey {
    fn byte(&mut self, byte: u8, copy: &mut Vec<u8>) {
        let in_string = self.string.is_some();
        self.string = match (self.string, byte) {
            (Some(false), b'\\') => Some(true),
            (Some(false), b'"') => None,
            (Some(_), _) | (None, b'"') => Some(false),
            (None, _) => None,
        };
        match self.at {
            At::Start => {
                copy.push(byte);
                self.at = At::Key;
            }
            At::Key if in_string => self.held.push(byte),
            At::Key => match byte {
                b':' => {
                    let copied = self.held != self.key.as_bytes();
                    if copied {
                        if !std::mem::take(&mut self.first) {
                            copy.push(b',');
                        }
                        copy.append(&mut self.held);
                        copy.push(b':');
                    }
                    self.held.clear();
                    self.at = At::Value { copied };
                }
                b'}' => copy.push(byte),
                other => self.held.push(other),
            },
            At::Value { copied } => {
                if !in_string {
                    match byte {
                        b',' if self.depth == 0 => {
                            self.at = At::Key;
                            return;
                        }
                        b'}' if self.depth == 0 => {
                            copy.push(byte);
                            return;
                        }
                        b'{' | b'[' => self.depth += 1,
                        b'}' | b']' => self.depth -= 1,
                        _ => {}
                    }
                }
                if copied {
                    copy.push(byte);
                }
            }
        }
    }
}

impl Write for WithoutKey {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut copy = Vec::new();
        for byte in text {
            self.byte(*byte, &mut copy);
        }
        if !copy.is_empty() {
            self.out.write_all(&copy)?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Builds a detail key by key.
///
/// ```
/// use mcptest_trace::detail::{Detail, DetailBuilder};
/// let mut detail = DetailBuilder::default();
/// detail.entry("runs", &2);
/// detail.list("rows", |each| {
///     each(b"{\"index\":1}");
///     each(b"{\"index\":2}");
/// });
/// assert_eq!(Detail::from(detail).text(), r#"{"runs":2,"rows":[{"index":1},{"index":2}]}"#);
/// ```
#[derive(Default)]
pub struct DetailBuilder {
    text: TextWriter,
    started: bool,
    failed: bool,
}

impl DetailBuilder {
    fn write(&mut self, text: &[u8]) {
        self.failed |= self.text.write_all(text).is_err();
    }

    fn key(&mut self, key: &str) {
        self.write(if self.started { b"," } else { b"{" });
        self.started = true;
        self.failed |= serde_json::to_writer(&mut self.text, key).is_err();
        self.write(b":");
    }

    /// Adds a key and its value.
    pub fn entry(&mut self, key: &str, value: &impl Serialize) {
        self.key(key);
        self.failed |= serde_json::to_writer(&mut self.text, value).is_err();
    }

    /// Adds a key and a list. Its items are compact JSON text, which is not checked.
    pub fn list(&mut self, key: &str, items: impl FnOnce(&mut dyn FnMut(&[u8]))) {
        self.key(key);
        self.write(b"[");
        let mut started = false;
        items(&mut |item| {
            if std::mem::replace(&mut started, true) {
                self.write(b",");
            }
            self.write(item);
        });
        self.write(b"]");
    }
}

impl From<DetailBuilder> for Detail {
    fn from(mut builder: DetailBuilder) -> Self {
        if !builder.started || builder.failed {
            return Self::default();
        }
        builder.write(b"}");
        builder.text.finish().map_or_else(Self::default, Self)
    }
}

/// Collects JSON text, and compresses it once it is large.
#[derive(Default)]
struct TextWriter {
    /// True if the text begins as an object does.
    is_object: bool,
    plain: Vec<u8>,
    packed: Option<FrameEncoder<Vec<u8>>>,
}

impl TextWriter {
    fn finish(self) -> Option<Text> {
        match self.packed {
            None => {
                let mut text = String::from_utf8(self.plain).ok()?;
                text.shrink_to_fit();
                Some(Text::Plain(text))
            }
            Some(mut frame) => {
                frame.write_all(&self.plain).ok()?;
                let frame = frame.finish().ok()?;
                Some(Text::Packed(frame.into_boxed_slice()))
            }
        }
    }
}

impl Write for TextWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.plain.is_empty() && self.packed.is_none() {
            self.is_object = text.starts_with(b"{");
        }
        self.plain.extend_from_slice(text);
        if self.plain.len() > MAX_PLAIN {
            let frame = self
                .packed
                .get_or_insert_with(|| FrameEncoder::new(Vec::new()));
            frame.write_all(&self.plain)?;
            self.plain.clear();
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Default for Detail {
    /// An object without keys.
    fn default() -> Self {
        Self(Text::Plain("{}".to_owned()))
    }
}

impl From<Map<String, Value>> for Detail {
    fn from(map: Map<String, Value>) -> Self {
        Self::new(&map)
    }
}

impl Serialize for Detail {
    /// Writes the object value by value, so that a pretty printer lays it out like the rest.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JsonText(&self.text()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
        if !text.trim_start().starts_with('{') {
            return Err(D::Error::custom("expected an object"));
        }
        // The text of a pretty-printed report has white space in it. That of a log does not.
        if is_compact(&text) {
            let mut writer = TextWriter::default();
            writer
                .write_all(text.as_bytes())
                .map_err(D::Error::custom)?;
            return Ok(writer.finish().map_or_else(Self::default, Self));
        }
        Ok(Self::new(&JsonText(&text)))
    }
}

/// Returns true if valid JSON has no white space between its parts.
fn is_compact(json: &str) -> bool {
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => return false,
            b'"' => {
                // To the end of the string; an escaped quote does not end it.
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    true
}

impl JsonSchema for Detail {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Map::<String, Value>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Map::<String, Value>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_detail_is_laid_out_like_a_tree_of_values() {
        let value = json!({
            "z": [1, -2, 0.1, 18_446_744_073_709_551_615_u64, 1e300],
            "a": {"text": "tab\t “quoted” \u{1}", "empty": {}, "list": []},
            "none": null, "yes": true,
        });
        let detail = Detail::new(&value);
        assert_eq!(detail.text(), value.to_string());
        assert_eq!(
            serde_json::to_string_pretty(&json!({"detail": &value})).unwrap(),
            serde_json::to_string_pretty(&std::collections::BTreeMap::from([("detail", &detail)]))
                .unwrap()
        );
        assert_eq!(detail.to_value(), value);
        assert_eq!(detail.get("yes"), Some(json!(true)));
        assert_eq!(detail.get("other"), None);
        let pretty = serde_json::to_string_pretty(&detail).unwrap();
        assert_eq!(serde_json::from_str::<Detail>(&pretty).unwrap(), detail);
        assert_eq!(serde_json::from_value::<Detail>(value).unwrap(), detail);
        assert!(serde_json::from_str::<Detail>("[1]").is_err());
        for (text, compact) in [
            (r#"{"a b\" c":[1,"x y"]}"#, true),
            (r#"{"a": 1}"#, false),
            ("{}\n", false),
        ] {
            assert_eq!(is_compact(text), compact, "{text}");
        }
    }

    #[test]
    fn a_key_is_left_out_wherever_it_is() {
        let rows: Value = (0..5000)
            .map(|n| json!({"rows": n, "é": "]}\\\",:{["}))
            .collect();
        for value in [
            json!({"rows": rows, "a": {"rows": [1]}, "b": "x\"rows\":"}),
            json!({"a": [{}, [[]], "}"], "rows": {"x": "]}\""}, "z": null}),
            json!({"a": 1, "rows": "text,"}),
            json!({"rows": 1}),
            json!({}),
            json!({"big": rows, "rows": rows, "row": -1.5e300, "\"rows\"": 1}),
        ] {
            let mut expected = value.as_object().unwrap().clone();
            expected.shift_remove("rows");
            let detail = Detail::new(&value).without_key("rows");
            assert_eq!(detail, Detail::from(expected));
        }
    }

    #[test]
    fn a_large_detail_is_compressed_and_reads_the_same() {
        for rows in [10, 5000] {
            let value =
                json!({"rows": (0..rows).map(|n| json!({"n": n, "é": "x"})).collect::<Value>()});
            let detail = Detail::new(&value);
            assert_eq!(matches!(detail.0, Text::Packed(_)), rows == 5000);
            assert_eq!(detail.text(), value.to_string());
            assert_eq!(detail.to_value(), value);
            let mut written = Vec::new();
            detail.write_to(&mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), value.to_string());
            let read: Detail = serde_json::from_str(&format!("{value:#}")).unwrap();
            assert_eq!(read, detail);
        }
        assert_eq!(Detail::new(&[1, 2]), Detail::default());
    }
}
