//! Decoding of a tree into types, without a JSON value in between.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::document::{Node, NodeValue};

impl<'de> IntoDeserializer<'de, serde_json::Error> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Decodes as `serde_json` decodes the JSON value of the same tree.
impl<'de> Deserializer<'de> for &'de Node {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match &self.value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(value) => visitor.visit_bool(*value),
            NodeValue::Number(number) => number.deserialize_any(visitor),
            NodeValue::String(text) => visitor.visit_borrowed_str(text),
            NodeValue::Sequence(items) => {
                let mut items = SeqDeserializer::new(items.iter());
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            NodeValue::Mapping(entries) => {
                let entries = entries
                    .iter()
                    .map(|entry| (entry.key.as_str(), &entry.value));
                let mut entries = MapDeserializer::new(entries);
                let value = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.value {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match &self.value {
            NodeValue::String(text) => {
                let text: StrDeserializer<'_, Self::Error> = text.as_str().into_deserializer();
                text.deserialize_enum(name, variants, visitor)
            }
            // A variant with content is rare and small.
            _ => de::Deserializer::deserialize_enum(self.to_json(), name, variants, visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::Value;

    use crate::{Document, DocumentLimits};

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    #[derive(Default)]
    struct Everything {
        text: Option<String>,
        count: u8,
        ratio: f64,
        flag: bool,
        any: Value,
        list: Vec<Kind>,
        map: BTreeMap<String, Option<i64>>,
        new: New,
        pair: Option<(u8, String)>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct New(Vec<String>);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Plain,
        Holding(u8),
        Named { x: u8 },
    }

    #[test]
    fn a_tree_decodes_as_its_json_value_does() {
        let texts = [
            "{}",
            "{text: a, count: 3, ratio: 1.5, flag: true, any: {x: [1, null, 2.5, -1]}, \
             list: [plain, {holding: 3}, {named: {x: 1}}], map: {a: 1, b: null}, \
             new: [a, b], pair: [1, x]}",
            "{text: null, ratio: 2, any: 18446744073709551615}",
            "{count: 256}",
            "{count: -1}",
            "{count: 1.5}",
            "{list: [plan]}",
            "{list: [{named: 1}]}",
            "{pair: [1]}",
            "{pair: [1, x, y]}",
            "{more: 1}",
            "{flag: 1}",
            "[1]",
            "~",
        ];
        for text in texts {
            let document =
                Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default()).unwrap();
            let direct = Everything::deserialize(document.root()).ok();
            let through: Option<Everything> =
                serde_json::from_value(document.root().to_json()).ok();
            assert_eq!(direct, through, "{text}");
        }
    }
}
