//! The parsed tree: JSON values with their positions.

use std::borrow::Cow;
use std::sync::Arc;

use compact_str::CompactString;
use serde_json::{Map, Number, Value};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Source, Span};

/// One value of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its position. For a value reached through an alias: the position of its anchor.
    pub span: Span,
    /// The value.
    pub value: NodeValue,
}

/// The kinds of value, as in JSON; mappings keep the order of the file.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are those of JSON")]
pub enum NodeValue {
    Null,
    Bool(bool),
    Number(Number),
    String(CompactString),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: CompactString,
    /// The position of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Converts the tree to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(value) => Value::Number(value.clone()),
            NodeValue::String(value) => Value::String(value.to_string()),
            NodeValue::Sequence(items) => items.iter().map(Node::to_json).collect(),
            NodeValue::Mapping(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.to_string(), entry.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Builds a node from JSON, with every part of it at `span`: for values that replace a string
    /// of the file.
    #[must_use]
    pub fn from_json(value: &Value, span: Span) -> Self {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Bool(*value),
            Value::Number(value) => NodeValue::Number(value.clone()),
            Value::String(value) => NodeValue::String(value.into()),
            Value::Array(items) => NodeValue::Sequence(
                items
                    .iter()
                    .map(|item| Self::from_json(item, span))
                    .collect(),
            ),
            Value::Object(map) => NodeValue::Mapping(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.into(),
                        key_span: span,
                        value: Self::from_json(value, span),
                    })
                    .collect(),
            ),
        };
        Self { span, value }
    }

    /// The entry of a mapping with this key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            NodeValue::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The name of this kind of value in messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::Sequence(_) => "a list",
            NodeValue::Mapping(_) => "a mapping",
        }
    }

    /// Calls `change` with every string value (not with keys) and replaces those for which it
    /// returns a node.
    pub fn replace_strings(&mut self, change: &mut dyn FnMut(&str, Span) -> Option<Node>) {
        match &mut self.value {
            NodeValue::String(text) => {
                if let Some(new) = change(text, self.span) {
                    *self = new;
                }
            }
            NodeValue::Sequence(items) => {
                for item in items {
                    item.replace_strings(change);
                }
            }
            NodeValue::Mapping(entries) => {
                for entry in entries {
                    entry.value.replace_strings(change);
                }
            }
            _ => {}
        }
    }
}

/// A parsed file.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) source: Arc<Source>,
    pub(crate) root: Node,
}

impl Document {
    /// A document of another syntax than YAML: its text, and the tree that it was parsed into.
    #[must_use]
    pub fn new(source: Arc<Source>, root: Node) -> Self {
        Self { source, root }
    }

    /// The whole tree.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The tree, to change it (variables are inserted before the schema is checked).
    pub fn root_mut(&mut self) -> &mut Node {
        &mut self.root
    }

    /// A document of the same source without its values, which is enough for messages.
    #[must_use]
    pub fn without_values(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            root: Node {
                span: self.root.span,
                value: NodeValue::Null,
            },
        }
    }

    /// The source that it was parsed from.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The value that a JSON pointer names.
    #[must_use]
    pub fn get(&self, pointer: &str) -> Option<&Node> {
        tokens(pointer).try_fold(&self.root, |node, token| {
            step(node, &token).map(|(_, child)| child)
        })
    }

    /// An error at a span.
    #[must_use]
    pub fn error(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, message).at(&self.source, span)
    }

    /// An error at the value that a JSON pointer names; where part of the pointer does not exist,
    /// at the nearest that does.
    #[must_use]
    pub fn diagnostic_at(&self, pointer: &str, message: impl Into<String>) -> Diagnostic {
        self.error(self.span_at(pointer), message)
    }

    /// The place of the value that a JSON pointer names, or of its nearest ancestor that exists.
    #[must_use]
    pub fn span_at(&self, pointer: &str) -> Span {
        self.walk(pointer).1
    }

    /// The place of the key that leads to the value; the value's own place where there is no key
    /// (list items).
    #[must_use]
    pub fn key_span_at(&self, pointer: &str) -> Span {
        self.walk(pointer).0
    }

    /// Everything from the key to the end of the value that a JSON pointer names.
    #[must_use]
    pub fn extent_at(&self, pointer: &str) -> Span {
        let (key_span, node) = self.find(pointer);
        let mut extent = key_span;
        widen(node, &mut extent);
        extent
    }

    /// (place of the last key, place of the value).
    fn walk(&self, pointer: &str) -> (Span, Span) {
        let (key_span, node) = self.find(pointer);
        (key_span, node.span)
    }

    /// The value that a pointer names, or its nearest ancestor that exists, with the place of its
    /// key.
    fn find(&self, pointer: &str) -> (Span, &Node) {
        let mut node = &self.root;
        let mut key_span = node.span;
        for token in tokens(pointer) {
            let Some((span, child)) = step(node, &token) else {
                break;
            };
            key_span = span;
            node = child;
        }
        (key_span, node)
    }
}

/// The keys of a JSON pointer.
fn tokens(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(|token| {
        if token.contains('~') {
            token.replace("~1", "/").replace("~0", "~").into()
        } else {
            token.into()
        }
    })
}

/// The child with this key or index, with the position of the key.
fn step<'a>(node: &'a Node, token: &str) -> Option<(Span, &'a Node)> {
    match &node.value {
        NodeValue::Mapping(_) => node
            .entry(token)
            .map(|entry| (entry.key_span, &entry.value)),
        NodeValue::Sequence(items) => items
            .get(token.parse::<usize>().ok()?)
            .map(|item| (item.span, item)),
        _ => None,
    }
}

fn widen(node: &Node, extent: &mut Span) {
    extent.start = extent.start.min(node.span.start);
    extent.end = extent.end.max(node.span.end);
    match &node.value {
        NodeValue::Sequence(items) => items.iter().for_each(|item| widen(item, extent)),
        NodeValue::Mapping(entries) => {
            for entry in entries {
                extent.end = extent.end.max(entry.key_span.end);
                widen(&entry.value, extent);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DocumentLimits;

    #[test]
    fn a_pointer_names_a_value_or_nothing() {
        let document = Document::parse(
            "t.yml",
            b"a: [x, {b/c: 1, d~e: 2}]\n",
            &DocumentLimits::default(),
        )
        .unwrap();
        let get = |pointer: &str| document.get(pointer).map(Node::to_json);
        assert_eq!(get(""), Some(document.root().to_json()));
        assert_eq!(get("/a/0"), Some(json!("x")));
        assert_eq!(get("/a/1/b~1c"), Some(json!(1)));
        assert_eq!(get("/a/1/d~0e"), Some(json!(2)));
        for nothing in ["/b", "/a/2", "/a/x", "/a/0/y", "/a/1/b"] {
            assert_eq!(get(nothing), None, "{nothing}");
        }
    }
}
