//! Recorded JSON that stays as it was written until something reads it.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// One JSON value of a trace: a slice of the text that it was read from, or a built value.
///
/// The slice is parsed on the first call of [`Raw::value`], and then kept beside it.
#[derive(Clone)]
pub struct Raw<'a> {
    /// The JSON text. Empty for a value that was built.
    text: Cow<'a, str>,
    value: OnceLock<Box<Value>>,
}

impl<'a> Raw<'a> {
    /// Wraps JSON text that certainly is readable as a value.
    pub(super) fn from_plain(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            value: OnceLock::new(),
        }
    }

    /// Parses JSON text. `None` if it is not readable as a value.
    pub(super) fn parsed(text: &'a str) -> Option<Self> {
        let value = serde_json::from_str(text).ok()?;
        Some(Self {
            text: Cow::Borrowed(text),
            value: OnceLock::from(Box::new(value)),
        })
    }

    /// The value. It is parsed once.
    #[must_use]
    pub fn value(&self) -> &Value {
        // The reader rejects text that does not parse.
        self.value
            .get_or_init(|| Box::new(serde_json::from_str(&self.text).unwrap_or_default()))
    }

    /// The value, to change it.
    pub fn value_mut(&mut self) -> &mut Value {
        let value = std::mem::replace(self, Self::from(Value::Null)).into_value();
        *self = Self::from(value);
        match self.value.get_mut() {
            Some(value) => value,
            None => unreachable!("a built value is set"),
        }
    }

    /// A copy of the value. Text that was not read before is parsed and stays text.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self.value.get() {
            Some(value) => value.as_ref().clone(),
            // The reader rejects text that does not parse.
            None => serde_json::from_str(&self.text).unwrap_or_default(),
        }
    }

    /// Takes the value out.
    #[must_use]
    pub fn into_value(self) -> Value {
        let _ = self.value();
        self.value.into_inner().map_or(Value::Null, |value| *value)
    }

    /// The string between the quotes, where it can be had without parsing.
    #[must_use]
    pub fn plain_str(&self) -> Option<&str> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        (!inner.contains('\\')).then_some(inner)
    }

    /// The JSON text, if the value was read from one.
    pub(super) fn json(&self) -> Option<&str> {
        (!self.text.is_empty()).then_some(self.text.as_ref())
    }

    /// The value, if it was read before or built.
    pub(super) fn built(&self) -> Option<&Value> {
        self.value.get().map(AsRef::as_ref)
    }

    /// Returns true if the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        if self.text.is_empty() {
            self.value().is_object()
        } else {
            self.text.starts_with('{')
        }
    }

    /// Detaches the value from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Raw<'static> {
        Raw {
            text: Cow::Owned(self.text.into_owned()),
            value: self.value,
        }
    }
}

impl From<Value> for Raw<'_> {
    fn from(value: Value) -> Self {
        Self {
            text: Cow::Borrowed(""),
            value: OnceLock::from(Box::new(value)),
        }
    }
}

impl From<&str> for Raw<'_> {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

impl From<String> for Raw<'_> {
    fn from(text: String) -> Self {
        Value::from(text).into()
    }
}

impl PartialEq<Value> for Raw<'_> {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Equal text is equal JSON; different text may be too.
        (!self.text.is_empty() && self.text == other.text) || self.value() == other.value()
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.value(), f)
    }
}

impl fmt::Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.value(), f)
    }
}

/// Writes the value, so that spaces and escapes come out the same however it was written.
impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value.get() {
            Some(value) => value.serialize(serializer),
            None => self.to_value().serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::quick::read_raw;
    use super::*;

    #[test]
    fn a_value_is_parsed_on_demand_and_can_be_changed() {
        let mut raw = read_raw(r#"{"b": 1, "a": [2.50]}"#).unwrap();
        assert_eq!(raw.value(), &json!({"b": 1, "a": [2.5]}));
        raw.value_mut()["b"] = json!(7);
        assert_eq!(serde_json::to_string(&raw).unwrap(), r#"{"b":7,"a":[2.5]}"#);
        assert_eq!(raw.clone().into_value(), json!({"b": 7, "a": [2.5]}));
        assert_eq!(raw.clone(), raw.into_owned());
    }

    #[test]
    fn equality_is_that_of_values() {
        let raw = |text: &'static str| read_raw(text).unwrap();
        assert_eq!(raw(r#"{"a":1,"b":2}"#), raw(r#"{ "b": 2, "a": 1 }"#));
        assert_eq!(raw(r#""\u0061""#), raw(r#""a""#));
        assert_ne!(raw("1"), raw("1.0"));
        assert_eq!(raw("1"), Raw::from(json!(1)));
        assert_eq!(raw(r#""x\"y""#).plain_str(), None);
        assert_eq!(raw(r#""x y""#).plain_str(), Some("x y"));
    }

    #[test]
    fn text_without_a_readable_value_is_rejected() {
        for text in [
            r#"["\ud800"]"#,
            "[1e999]",
            &"9".repeat(400),
            &"[".repeat(200),
        ] {
            let closed = format!("{text}{}", "]".repeat(200));
            let text = if text.starts_with("[[") {
                &closed
            } else {
                text
            };
            assert!(read_raw(text).is_none(), "{text}");
        }
        assert!(read_raw(r#"["\ud83d\ude00", 1e3, "3e5"]"#).is_some());
        let wide = format!("[{}[]]", "[],".repeat(500));
        assert!(read_raw(&wide).is_some());
    }

    proptest! {
        #[test]
        fn plain_text_parses(text in r#"[\[\]{}",:\\ue0-9dD8.a-]{0,12}|("[\\ud8-9a]{0,9}")|[0-9e.]{1,5}"#) {
            let skipped = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            let parsed = serde_json::from_str::<Value>(&text);
            if let Ok(raw) = skipped {
                let trimmed = raw.get();
                prop_assert_eq!(read_raw(trimmed).map(Raw::into_value), parsed.ok());
            } else {
                prop_assert!(read_raw(&text).is_none());
            }
        }
    }
}
