//! JSON text that is serialised value by value.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

/// JSON text that is parsed and serialised value by value, without building a tree. So a pretty
/// printer lays it out like everything else.
///
/// ```
/// # use mcptest_json::transcode::JsonText;
/// let pretty = serde_json::to_string_pretty(&JsonText(r#"{"a":[1]}"#)).unwrap();
/// assert_eq!(pretty, "{\n  \"a\": [\n    1\n  ]\n}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'a>(pub &'a str);

impl Serialize for JsonText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = serde_json::Deserializer::from_str(self.0);
        text.disable_recursion_limit();
        text.deserialize_any(Transcode(serializer))
            .map_err(serde::ser::Error::custom)
    }
}

/// Hands each parsed value on to a serializer.
struct Transcode<S>(S);

impl<'de, S: Serializer> Visitor<'de> for Transcode<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<S::Ok, E> {
        self.0.serialize_bool(value).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<S::Ok, E> {
        self.0.serialize_u64(value).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<S::Ok, E> {
        self.0.serialize_i64(value).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<S::Ok, E> {
        self.0.serialize_f64(value).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<S::Ok, E> {
        self.0.serialize_str(value).map_err(E::custom)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_unit().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<S::Ok, A::Error> {
        let mut list = self.0.serialize_seq(None).map_err(A::Error::custom)?;
        while let Some(()) = items.next_element_seed(Element(&mut list))? {}
        list.end().map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<S::Ok, A::Error> {
        let mut map = self.0.serialize_map(None).map_err(A::Error::custom)?;
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            map.serialize_key(&key).map_err(A::Error::custom)?;
            entries.next_value_seed(Entry(&mut map))?;
        }
        map.end().map_err(A::Error::custom)
    }
}

/// The next item of a list.
struct Element<'a, S>(&'a mut S);

impl<'de, S: serde::ser::SerializeSeq> DeserializeSeed<'de> for Element<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let item = Parsed::new(deserializer);
        self.0.serialize_element(&item).map_err(D::Error::custom)
    }
}

/// The value of the current key.
struct Entry<'a, S>(&'a mut S);

impl<'de, S: serde::ser::SerializeMap> DeserializeSeed<'de> for Entry<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = Parsed::new(deserializer);
        self.0.serialize_value(&value).map_err(D::Error::custom)
    }
}

/// A deserializer that serialises its value, once.
struct Parsed<D>(Cell<Option<D>>);

impl<D> Parsed<D> {
    fn new(deserializer: D) -> Self {
        Self(Cell::new(Some(deserializer)))
    }
}

impl<'de, D: Deserializer<'de>> Serialize for Parsed<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(deserializer) = self.0.take() else {
            return Err(serde::ser::Error::custom("a value was serialised twice"));
        };
        deserializer
            .deserialize_any(Transcode(serializer))
            .map_err(serde::ser::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_laid_out_like_a_tree_of_values() {
        let text =
            r#"{"z":[1,-2,0.1,18446744073709551615,1E2],"a":{"t":"\u0041\t"},"n":null,"y":true}"#;
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            serde_json::to_string_pretty(&[JsonText(text)]).unwrap(),
            serde_json::to_string_pretty(&[value]).unwrap()
        );
        assert!(serde_json::to_string(&JsonText("{")).is_err());
    }

    #[test]
    fn text_may_be_nested_deeply() {
        let text = format!("{}{}", "[".repeat(400), "]".repeat(400));
        assert_eq!(serde_json::to_string(&JsonText(&text)).unwrap(), text);
    }
}
