//! A JSON object kept as text, for figures of which there may be one row per run.

use std::borrow::Cow;

use mcptest_json::transcode::JsonText;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The facts behind a gate's figures: a JSON object, kept as compact text.
///
/// A detail can have a row for each of 100,000 runs. As text it takes a tenth of the memory of a
/// tree of values, and it is written to a report without building one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// Serialises a struct or a map. Anything that is not a JSON object gives an empty detail.
    #[must_use]
    pub fn new(object: &impl Serialize) -> Self {
        match serde_json::to_string(object) {
            Ok(text) if text.starts_with('{') => Self(text),
            _ => Self::default(),
        }
    }

    /// The compact JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole object, parsed.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The whole object, parsed, as a map.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The value of one key, parsed.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.to_map().remove(key)
    }
}

impl Default for Detail {
    /// An object without keys.
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl From<Map<String, Value>> for Detail {
    fn from(map: Map<String, Value>) -> Self {
        Self(Value::Object(map).to_string())
    }
}

impl Serialize for Detail {
    /// Writes the object value by value, so that a pretty printer lays it out like the rest.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JsonText(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
        if !text.trim_start().starts_with('{') {
            return Err(D::Error::custom("expected an object"));
        }
        // The text of a pretty-printed report has white space in it. That of a log does not, and
        // may have a row for each of many runs: it is not copied.
        if is_compact(&text) {
            return Ok(Self(text.into_string()));
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
        assert_eq!(detail.as_str(), value.to_string());
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
}
