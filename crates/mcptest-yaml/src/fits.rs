//! Whether a document fits a schema, quickly and without words.
//!
//! Nearly every suite that is loaded is right, and explaining what would be wrong costs far more than seeing that nothing is: [`crate::shape`] tries every
//! branch with all its messages. So this comes first. It reads the same part of JSON Schema, each piece when it is first needed, and says yes only where
//! the other would find nothing; where it says no, the other has the word.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::document::{Node, NodeValue};
use crate::shape::{ALIAS_OF, UNAVAILABLE};

/// Whether the document fits.
pub(crate) fn fits(root: &Node, schema: &Value) -> bool {
    let fitting = Fitting {
        root: schema,
        shapes: RefCell::default(),
        known: RefCell::default(),
    };
    fitting.node(root, &Link::new(schema))
}

/// The most references that are followed from one place, as in the other reading.
const MOST_REFERENCES: usize = 16;

/// A schema that may not have been read yet.
struct Link<'a> {
    schema: &'a Value,
    /// Its place among the shapes, once it has been read.
    shape: Cell<Option<usize>>,
}

impl<'a> Link<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            schema,
            shape: Cell::new(None),
        }
    }
}

/// A schema that has been read.
enum Shape<'a> {
    Anything,
    Nothing,
    Values(Vec<&'a Value>),
    AnyOf(Vec<Link<'a>>),
    Plain(Box<Plain<'a>>),
}

struct Plain<'a> {
    all_of: Vec<Link<'a>>,
    /// The types that fit, one bit each; all of them if the schema does not say.
    types: u8,
    properties: Vec<(&'a str, Property<'a>)>,
    additional: Additional<'a>,
    required: Vec<&'a str>,
    properties_from: u64,
    properties_to: u64,
    items: Option<Link<'a>>,
    items_from: u64,
    minimum: Option<f64>,
    maximum: Option<f64>,
    length_from: u64,
}

struct Property<'a> {
    available: bool,
    alias_of: Option<&'a str>,
    link: Link<'a>,
}

enum Additional<'a> {
    Any,
    No,
    Like(Link<'a>),
}

struct Fitting<'a> {
    root: &'a Value,
    shapes: RefCell<Vec<Rc<Shape<'a>>>>,
    /// Shapes by the address of their schema: many references lead to one definition.
    known: RefCell<HashMap<*const Map<String, Value>, usize>>,
}

impl<'a> Fitting<'a> {
    fn node(&self, node: &Node, link: &Link<'a>) -> bool {
        match &*self.shape(link) {
            Shape::Anything => true,
            Shape::Nothing => false,
            Shape::Values(values) => values.iter().any(|value| is(node, value)),
            Shape::AnyOf(branches) => branches.iter().any(|branch| self.node(node, branch)),
            Shape::Plain(plain) => self.plain(node, plain),
        }
    }

    fn plain(&self, node: &Node, shape: &Plain<'a>) -> bool {
        if types_of(node) & shape.types == 0 || !shape.all_of.iter().all(|part| self.node(node, part)) {
            return false;
        }
        match &node.value {
            NodeValue::Mapping(entries) => {
                let count = entries.len() as u64;
                let has = |key: &str| entries.iter().any(|entry| entry.key == key);
                (shape.properties_from..=shape.properties_to).contains(&count)
                    && shape.required.iter().all(|key| has(key))
                    && entries
                        .iter()
                        .all(|entry| match (find(&shape.properties, &entry.key), &shape.additional) {
                            (Some(property), _) => {
                                let canonical = property.alias_of.and_then(|name| find(&shape.properties, name));
                                property.available
                                    && property.alias_of.is_none_or(|name| !has(name))
                                    && self.node(&entry.value, &canonical.unwrap_or(property).link)
                            }
                            (None, Additional::Any) => true,
                            (None, Additional::No) => false,
                            (None, Additional::Like(link)) => self.node(&entry.value, link),
                        })
            }
            NodeValue::Sequence(items) => {
                items.len() as u64 >= shape.items_from
                    && shape
                        .items
                        .as_ref()
                        .is_none_or(|each| items.iter().all(|item| self.node(item, each)))
            }
            NodeValue::Number(number) => {
                let value = number.as_f64();
                value.is_none_or(|value| {
                    shape.minimum.is_none_or(|least| value >= least) && shape.maximum.is_none_or(|most| value <= most)
                })
            }
            NodeValue::String(text) => shape.length_from == 0 || text.chars().count() as u64 >= shape.length_from,
            NodeValue::Null | NodeValue::Bool(_) => true,
        }
    }

    fn shape(&self, link: &Link<'a>) -> Rc<Shape<'a>> {
        let place = link.shape.get().unwrap_or_else(|| {
            let place = self.read(link.schema);
            link.shape.set(Some(place));
            place
        });
        Rc::clone(&self.shapes.borrow()[place])
    }

    /// Reads a schema, unless it is known, and says where it is.
    fn read(&self, schema: &'a Value) -> usize {
        let resolved = self.resolve(schema);
        if let Some(place) = resolved.and_then(|map| self.known.borrow().get(&std::ptr::from_ref(map)).copied()) {
            return place;
        }
        let shape = match resolved {
            None if *schema == Value::Bool(false) => Shape::Nothing,
            None => Shape::Anything,
            Some(map) => self.read_map(map),
        };
        let mut shapes = self.shapes.borrow_mut();
        shapes.push(Rc::new(shape));
        let place = shapes.len() - 1;
        if let Some(map) = resolved {
            self.known.borrow_mut().insert(std::ptr::from_ref(map), place);
        }
        place
    }

    fn read_map(&self, map: &'a Map<String, Value>) -> Shape<'a> {
        let mut values = Vec::new();
        if self.values(map, &mut values) {
            return Shape::Values(values);
        }
        if let Some(branches) = branches(map) {
            return Shape::AnyOf(branches.iter().map(Link::new).collect());
        }
        let mut plain = Plain {
            all_of: Vec::new(),
            types: u8::MAX,
            properties: Vec::new(),
            additional: Additional::Any,
            required: Vec::new(),
            properties_from: 0,
            properties_to: u64::MAX,
            items: None,
            items_from: 0,
            minimum: None,
            maximum: None,
            length_from: 0,
        };
        for (key, value) in map {
            match key.as_str() {
                "allOf" => plain.all_of = value.as_array().into_iter().flatten().map(Link::new).collect(),
                "type" => plain.types = types_named(value),
                "properties" => {
                    plain.properties = value
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(name, property)| (name.as_str(), read_property(property)))
                        .collect();
                }
                "additionalProperties" => {
                    plain.additional = match value {
                        Value::Bool(false) => Additional::No,
                        Value::Object(_) => Additional::Like(Link::new(value)),
                        _ => Additional::Any,
                    }
                }
                "required" => {
                    let names = value.as_array().into_iter().flatten();
                    plain.required = names.filter_map(Value::as_str).collect();
                }
                "minProperties" => plain.properties_from = value.as_u64().unwrap_or(0),
                "maxProperties" => plain.properties_to = value.as_u64().unwrap_or(u64::MAX),
                "items" => plain.items = Some(Link::new(value)),
                "minItems" => plain.items_from = value.as_u64().unwrap_or(0),
                "minimum" => plain.minimum = value.as_f64(),
                "maximum" => plain.maximum = value.as_f64(),
                "minLength" => plain.length_from = value.as_u64().unwrap_or(0),
                _ => {}
            }
        }
        Shape::Plain(Box::new(plain))
    }

    /// The values of a closed set; false if it is none.
    fn values(&self, map: &'a Map<String, Value>, found: &mut Vec<&'a Value>) -> bool {
        const NULL: &Value = &Value::Null;
        if let Some(only) = map.get("const") {
            found.push(only);
            return true;
        }
        if let Some(several) = map.get("enum").and_then(Value::as_array) {
            found.extend(several);
            return true;
        }
        let Some(branches) = branches(map) else {
            return false;
        };
        branches.iter().all(|branch| match self.resolve(branch) {
            Some(branch) if branch.get("type").and_then(Value::as_str) == Some("null") => {
                found.push(NULL);
                true
            }
            Some(branch) => self.values(branch, found),
            None => false,
        })
    }

    fn resolve(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
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

fn read_property(schema: &Value) -> Property<'_> {
    Property {
        available: schema.get(UNAVAILABLE).is_none(),
        alias_of: schema.get(ALIAS_OF).and_then(Value::as_str),
        link: Link::new(schema),
    }
}

fn find<'s, 'a>(properties: &'s [(&'a str, Property<'a>)], name: &str) -> Option<&'s Property<'a>> {
    properties
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, property)| property)
}

fn branches(map: &Map<String, Value>) -> Option<&Vec<Value>> {
    map.get("anyOf").or_else(|| map.get("oneOf")).and_then(Value::as_array)
}

fn is(node: &Node, value: &Value) -> bool {
    match (&node.value, value) {
        (NodeValue::String(text), Value::String(wanted)) => text == wanted,
        (NodeValue::String(_), _) | (_, Value::String(_)) => false,
        _ => node.to_json() == *value,
    }
}

const INTEGER: u8 = 1;
const NUMBER: u8 = 2;

/// The bits of the types that a value has: a whole number is a number too.
fn types_of(node: &Node) -> u8 {
    match &node.value {
        NodeValue::Number(number) => {
            let whole = number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|n| n.fract() == 0.0);
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
                let document = Document::parse("t.yml", text.as_bytes(), &Limits::default()).unwrap();
                let fit = fits(document.root(), &schema);
                assert_eq!(fit, check_in_words(&document, &schema).is_empty(), "{text} {schema}");
                *(if fit { &mut yes } else { &mut no }) += 1;
            }
        }
        assert!(yes > 100 && no > 100, "{yes} {no}");
    }
}
