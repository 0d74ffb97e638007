//! Whether a document fits a schema, quickly and without words.
//!
//! Nearly every suite that is loaded is right, and explaining what would be wrong costs far more
//! than seeing that nothing is: `shape.rs` tries every branch with all its messages. So this comes
//! first. It knows the same part of JSON Schema, as a table that can be made ahead of time, and
//! says yes only where the other would find nothing; where it says no, the other has the word.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::document::{Node, NodeValue};
use crate::shape::{ALIAS_OF, UNAVAILABLE};

/// A schema as a table of shapes that refer to each other by their places; the first is the whole
/// document's. Borrowed lists, so that a table can be a constant of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Shapes(pub Cow<'static, [Shape]>);

/// What a value must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Whatever there is.
    Anything,
    /// No value fits.
    Nothing,
    /// One of these.
    Values(Cow<'static, [Literal]>),
    /// As one of these shapes.
    AnyOf(Cow<'static, [usize]>),
    /// Something with these properties.
    Plain(Plain),
}

/// A value of a closed set.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A text.
    Text(Cow<'static, str>),
    /// Anything else, as JSON.
    Json(Cow<'static, str>),
}

/// What the keywords of one schema ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plain {
    /// Shapes that must fit too.
    pub all_of: Cow<'static, [usize]>,
    /// The types that fit, one bit each; all of them if the schema does not say.
    pub types: u8,
    /// The keys that are known.
    pub properties: Cow<'static, [Property]>,
    /// What other keys may hold.
    pub additional: Additional,
    /// The keys that must be there.
    pub required: Cow<'static, [Cow<'static, str>]>,
    /// The least and the most keys.
    pub keys: (u64, u64),
    /// The shape of every item.
    pub items: Option<usize>,
    /// The least items.
    pub items_from: u64,
    /// The least number.
    pub minimum: Option<f64>,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// The least characters.
    pub length_from: u64,
}

/// A key that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The key.
    pub name: Cow<'static, str>,
    /// Whether it may be used.
    pub available: bool,
    /// The key that it is another spelling of.
    pub alias_of: Option<Cow<'static, str>>,
    /// The shape of its value.
    pub shape: usize,
}

/// What keys that are not known may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Additional {
    /// Anything.
    Any,
    /// There may be none.
    No,
    /// What has this shape.
    Like(usize),
}

impl Plain {
    /// What a schema without keywords asks for: nothing.
    pub const FREE: Self = Self {
        all_of: Cow::Borrowed(&[]),
        types: u8::MAX,
        properties: Cow::Borrowed(&[]),
        additional: Additional::Any,
        required: Cow::Borrowed(&[]),
        keys: (0, u64::MAX),
        items: None,
        items_from: 0,
        minimum: None,
        maximum: None,
        length_from: 0,
    };
}

impl Shapes {
    /// Whether a document fits.
    #[must_use]
    pub fn fit(&self, root: &Node) -> bool {
        self.node(root, 0)
    }

    fn node(&self, node: &Node, place: usize) -> bool {
        match self.0.get(place) {
            None | Some(Shape::Nothing) => false,
            Some(Shape::Anything) => true,
            Some(Shape::Values(values)) => values.iter().any(|value| is(node, value)),
            Some(Shape::AnyOf(branches)) => branches.iter().any(|branch| self.node(node, *branch)),
            Some(Shape::Plain(plain)) => self.plain(node, plain),
        }
    }

    fn plain(&self, node: &Node, shape: &Plain) -> bool {
        if types_of(node) & shape.types == 0
            || !shape.all_of.iter().all(|part| self.node(node, *part))
        {
            return false;
        }
        match &node.value {
            NodeValue::Mapping(entries) => {
                let has = |key: &str| entries.iter().any(|entry| entry.key == key);
                (shape.keys.0..=shape.keys.1).contains(&(entries.len() as u64))
                    && shape.required.iter().all(|key| has(key))
                    && entries.iter().all(|entry| {
                        match (shape.property(&entry.key), shape.additional) {
                            (Some(property), _) => {
                                let canonical = property
                                    .alias_of
                                    .as_deref()
                                    .and_then(|name| shape.property(name));
                                property.available
                                    && property.alias_of.as_deref().is_none_or(|name| !has(name))
                                    && self.node(&entry.value, canonical.unwrap_or(property).shape)
                            }
                            (None, Additional::Any) => true,
                            (None, Additional::No) => false,
                            (None, Additional::Like(shape)) => self.node(&entry.value, shape),
                        }
                    })
            }
            NodeValue::Sequence(items) => {
                items.len() as u64 >= shape.items_from
                    && shape
                        .items
                        .is_none_or(|each| items.iter().all(|item| self.node(item, each)))
            }
            NodeValue::Number(number) => {
                let value = number.as_f64();
                value.is_none_or(|value| {
                    shape.minimum.is_none_or(|least| value >= least)
                        && shape.maximum.is_none_or(|most| value <= most)
                })
            }
            NodeValue::String(text) => {
                shape.length_from == 0 || text.chars().count() as u64 >= shape.length_from
            }
            NodeValue::Null | NodeValue::Bool(_) => true,
        }
    }
}

impl Plain {
    fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|known| known.name == name)
    }
}

fn is(node: &Node, value: &Literal) -> bool {
    match (&node.value, value) {
        (NodeValue::String(text), Literal::Text(wanted)) => text == wanted,
        (NodeValue::String(_), _) | (_, Literal::Text(_)) => false,
        (_, Literal::Json(wanted)) => node.to_json().to_string() == *wanted,
    }
}

impl Shapes {
    /// Makes the table of a schema.
    #[must_use]
    pub fn of(schema: &Value) -> Self {
        let mut making = Making {
            root: schema,
            shapes: Vec::new(),
            known: HashMap::new(),
        };
        making.place_of(schema);
        Self(making.shapes.into())
    }
}

impl Shapes {
    /// The same table with every shape once: a table in a program takes its room at every start.
    #[must_use]
    pub fn merged(self) -> Self {
        let mut shapes = self.0.into_owned();
        loop {
            let mut kept: Vec<Shape> = Vec::new();
            let mut places = Vec::new();
            for shape in &shapes {
                let known = kept.iter().position(|one| one == shape);
                places.push(known.unwrap_or(kept.len()));
                if known.is_none() {
                    kept.push(shape.clone());
                }
            }
            if kept.len() == shapes.len() {
                return Self(shapes.into());
            }
            kept.iter_mut().for_each(|shape| shape.renumber(&places));
            shapes = kept;
        }
    }
}

impl Shape {
    /// Refers to the new places of other shapes, by their old ones.
    fn renumber(&mut self, places: &[usize]) {
        let all = |list: &mut Cow<'static, [usize]>| {
            list.to_mut()
                .iter_mut()
                .for_each(|place| *place = places[*place])
        };
        match self {
            Self::Anything | Self::Nothing | Self::Values(_) => {}
            Self::AnyOf(branches) => all(branches),
            Self::Plain(plain) => {
                all(&mut plain.all_of);
                plain.items = plain.items.map(|place| places[place]);
                if let Additional::Like(place) = &mut plain.additional {
                    *place = places[*place];
                }
                for property in plain.properties.to_mut() {
                    property.shape = places[property.shape];
                }
            }
        }
    }
}

/// The most references that are followed from one place, as in the other reading.
const MOST_REFERENCES: usize = 16;

struct Making<'a> {
    root: &'a Value,
    shapes: Vec<Shape>,
    /// Places by the address of the schema: many references lead to one definition, and some lead
    /// back to where they stand.
    known: HashMap<*const Map<String, Value>, usize>,
}

impl<'a> Making<'a> {
    fn place_of(&mut self, schema: &'a Value) -> usize {
        let resolved = self.resolve(schema);
        if let Some(place) = resolved.and_then(|map| self.known.get(&std::ptr::from_ref(map))) {
            return *place;
        }
        let place = self.shapes.len();
        let Some(map) = resolved else {
            let nothing = *schema == Value::Bool(false);
            self.shapes.push(if nothing {
                Shape::Nothing
            } else {
                Shape::Anything
            });
            return place;
        };
        // Taken before it is known what it is, so that what is inside can refer to it.
        self.shapes.push(Shape::Anything);
        self.known.insert(std::ptr::from_ref(map), place);
        self.shapes[place] = self.read(map);
        place
    }

    fn places_of(&mut self, schemas: &'a [Value]) -> Cow<'static, [usize]> {
        schemas.iter().map(|schema| self.place_of(schema)).collect()
    }

    fn read(&mut self, map: &'a Map<String, Value>) -> Shape {
        let mut values = Vec::new();
        if self.values(map, &mut values) {
            return Shape::Values(values.into());
        }
        if let Some(branches) = branches(map) {
            return Shape::AnyOf(self.places_of(branches));
        }
        let list = |value: &'a Value| value.as_array().map_or(&[][..], Vec::as_slice);
        let mut plain = Plain::FREE;
        for (key, value) in map {
            match key.as_str() {
                "allOf" => plain.all_of = self.places_of(list(value)),
                "type" => plain.types = types_named(value),
                "properties" => {
                    let properties = value.as_object().into_iter().flatten();
                    plain.properties = properties
                        .map(|(name, schema)| self.property(name, schema))
                        .collect();
                }
                "additionalProperties" => {
                    plain.additional = match value {
                        Value::Bool(false) => Additional::No,
                        Value::Object(_) => Additional::Like(self.place_of(value)),
                        _ => Additional::Any,
                    }
                }
                "required" => {
                    let names = list(value).iter().filter_map(Value::as_str);
                    plain.required = names.map(|name| Cow::Owned(name.to_owned())).collect();
                }
                "minProperties" => plain.keys.0 = value.as_u64().unwrap_or(0),
                "maxProperties" => plain.keys.1 = value.as_u64().unwrap_or(u64::MAX),
                "items" => plain.items = Some(self.place_of(value)),
                "minItems" => plain.items_from = value.as_u64().unwrap_or(0),
                "minimum" => plain.minimum = value.as_f64(),
                "maximum" => plain.maximum = value.as_f64(),
                "minLength" => plain.length_from = value.as_u64().unwrap_or(0),
                _ => {}
            }
        }
        if plain == Plain::FREE {
            Shape::Anything
        } else {
            Shape::Plain(plain)
        }
    }

    fn property(&mut self, name: &str, schema: &'a Value) -> Property {
        let alias_of = schema.get(ALIAS_OF).and_then(Value::as_str);
        Property {
            name: Cow::Owned(name.to_owned()),
            available: schema.get(UNAVAILABLE).is_none(),
            alias_of: alias_of.map(|name| Cow::Owned(name.to_owned())),
            shape: self.place_of(schema),
        }
    }

    /// The values of a closed set; false if it is none.
    fn values(&self, map: &Map<String, Value>, found: &mut Vec<Literal>) -> bool {
        if let Some(only) = map.get("const") {
            found.push(literal(only));
            return true;
        }
        if let Some(several) = map.get("enum").and_then(Value::as_array) {
            found.extend(several.iter().map(literal));
            return true;
        }
        let Some(branches) = branches(map) else {
            return false;
        };
        branches.iter().all(|branch| match self.resolve(branch) {
            Some(branch) if branch.get("type").and_then(Value::as_str) == Some("null") => {
                found.push(literal(&Value::Null));
                true
            }
            Some(branch) => self.values(branch, found),
            None => false,
        })
    }

    fn resolve<'s>(&self, schema: &'s Value) -> Option<&'s Map<String, Value>>
    where
        'a: 's,
    {
        let mut schema = schema;
        for _ in 0..MOST_REFERENCES {
            let map = schema.as_object()?;
            let Some(reference) = map.get("$ref").and_then(Value::as_str) else {
                return Some(map);
            };
            schema = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }
}

fn literal(value: &Value) -> Literal {
    match value {
        Value::String(text) => Literal::Text(text.clone().into()),
        other => Literal::Json(other.to_string().into()),
    }
}

fn branches(map: &Map<String, Value>) -> Option<&Vec<Value>> {
    map.get("anyOf")
        .or_else(|| map.get("oneOf"))
        .and_then(Value::as_array)
}

const INTEGER: u8 = 1;
const NUMBER: u8 = 2;

/// The bits of the types that a value has: a whole number is a number too.
fn types_of(node: &Node) -> u8 {
    match &node.value {
        NodeValue::Number(number) => {
            let whole = number.is_i64()
                || number.is_u64()
                || number.as_f64().is_some_and(|n| n.fract() == 0.0);
            if whole { INTEGER | NUMBER } else { NUMBER }
        }
        NodeValue::Null => 4,
        NodeValue::Bool(_) => 8,
        NodeValue::String(_) => 16,
        NodeValue::Sequence(_) => 32,
        NodeValue::Mapping(_) => 64,
    }
}

fn types_named(written: &Value) -> u8 {
    let bit = |name: &Value| match name.as_str() {
        Some("integer") => INTEGER,
        Some("number") => NUMBER,
        Some("null") => 4,
        Some("boolean") => 8,
        Some("string") => 16,
        Some("array") => 32,
        Some("object") => 64,
        // Nothing has a type that is not known.
        _ => 0,
    };
    match written {
        Value::String(_) => bit(written),
        Value::Array(names) => names.iter().fold(0, |bits, name| bits | bit(name)),
        _ => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::shape::check_in_words;
    use crate::{Document, Limits};

    use super::*;

    /// Both readings, over every value for every schema.
    #[test]
    fn it_says_yes_exactly_where_nothing_is_wrong() {
        let definitions = json!({
            "Text": {"type": "string", "minLength": 2},
            "Loop": {"$ref": "#/$defs/Loop"},
            "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}, "value": {"$ref": "#/$defs/Text"}}, "additionalProperties": false}
        });
        let schemas = [
            json!(true),
            json!(false),
            json!({}),
            json!({"$ref": "#/$defs/Text"}),
            json!({"$ref": "#/$defs/Loop"}),
            json!({"$ref": "#/$defs/Tree"}),
            json!({"$ref": "#/$defs/None"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "integer", "minimum": 1, "maximum": 3}),
            json!({"type": "number", "minimum": 0}),
            json!({"const": "a"}),
            json!({"enum": ["ab", 1, null]}),
            json!({"oneOf": [{"const": "ab"}, {"const": "cd"}, {"type": "null"}]}),
            json!({"anyOf": [{"$ref": "#/$defs/Text"}, {"type": "array", "items": {"$ref": "#/$defs/Text"}, "minItems": 1}]}),
            json!({"type": "object", "required": ["value"], "minProperties": 1, "maxProperties": 2}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"allOf": [{"type": "object"}, {"required": ["value"]}, {"not": {"required": ["left"]}}]}),
            json!({"properties": {"value": {"type": "string"}, "word": {"x-mcptest-alias-of": "value"}, "late": {"x-mcptest-unavailable": "later", "not": {}}}}),
        ];
        let texts = [
            "",
            "a",
            "ab",
            "cd",
            "1",
            "1.0",
            "2.5",
            "4",
            "-1",
            "true",
            "null",
            "[]",
            "[ab]",
            "[a]",
            "[1, ab]",
            "{}",
            "{value: ab}",
            "{value: a}",
            "{value: 1}",
            "{word: ab}",
            "{word: 1}",
            "{word: ab, value: ab}",
            "{late: 1}",
            "{left: {left: {value: ab}}}",
            "{left: {left: {value: a}}}",
            "{left: {value: ab, more: 1}}",
            "{a: 1, b: 2, value: 3}",
            "{a: 1}",
        ];
        let (mut yes, mut no) = (0, 0);
        for schema in &schemas {
            let mut schema = schema.clone();
            if let Value::Object(map) = &mut schema {
                map.insert("$defs".to_owned(), definitions.clone());
            }
            for text in texts {
                let document =
                    Document::parse("t.yml", text.as_bytes(), &Limits::default()).unwrap();
                let shapes = Shapes::of(&schema);
                let fit = shapes.fit(document.root());
                assert_eq!(shapes.merged().fit(document.root()), fit, "{text} {schema}");
                assert_eq!(
                    fit,
                    check_in_words(&document, &schema).is_empty(),
                    "{text} {schema}"
                );
                *(if fit { &mut yes } else { &mut no }) += 1;
            }
        }
        assert!(yes > 100 && no > 100, "{yes} {no}");
    }
}
