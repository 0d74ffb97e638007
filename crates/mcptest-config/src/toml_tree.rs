//! TOML as a tree with positions.

use std::ops::Range;
use std::sync::Arc;

use mcptest_yaml::{
    Diagnostic, Diagnostics, Document, Entry, Node, NodeValue, Severity, Source, Span,
};
use serde_json::Number;
use toml_edit::{Item, Key, TableLike, Value};

/// Parses a file.
///
/// # Errors
/// The first syntax error, with its place.
pub(crate) fn parse(name: &str, text: &str) -> Result<Document, Diagnostics> {
    let source = Arc::new(Source::new(name, text.to_owned()));
    let parsed = toml_edit::Document::parse(text).map_err(|error| {
        let message = error.message().lines().next().unwrap_or("syntax error");
        let place = span(error.span());
        let message = format!("not valid TOML: {message}");
        Diagnostics::from(Diagnostic::new(Severity::Error, message).at(&source, place))
    })?;
    let root = Node {
        span: Span { start: 0, end: 0 },
        value: table(parsed.as_table()),
    };
    Ok(Document::new(source, root))
}

/// Nesting is bounded by the parser.
fn table(table: &dyn TableLike) -> NodeValue {
    let entries = table.iter().filter_map(|(key, item)| {
        let key_span = table.key(key).and_then(Key::span);
        Some(Entry {
            key: key.into(),
            key_span: span(key_span.clone()),
            value: node(item, key_span)?,
        })
    });
    NodeValue::Mapping(entries.collect())
}

fn node(item: &Item, key: Option<Range<usize>>) -> Option<Node> {
    let value = match item {
        Item::None => return None,
        Item::Value(inner) => value(inner),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => {
            let items = tables.iter().map(|inner| Node {
                span: span(inner.span()),
                value: table(inner),
            });
            NodeValue::Sequence(items.collect())
        }
    };
    // A table that dots in keys make has no place of its own.
    Some(Node {
        span: span(item.span().or(key)),
        value,
    })
}

fn value(value: &Value) -> NodeValue {
    match value {
        Value::String(text) => NodeValue::String(text.value().into()),
        Value::Integer(number) => NodeValue::Number((*number.value()).into()),
        Value::Float(number) => Number::from_f64(*number.value()).map_or_else(
            || NodeValue::String(number.value().to_string().into()),
            NodeValue::Number,
        ),
        Value::Boolean(flag) => NodeValue::Bool(*flag.value()),
        Value::Datetime(time) => NodeValue::String(time.value().to_string().into()),
        Value::Array(items) => NodeValue::Sequence(
            items
                .iter()
                .map(|item| Node {
                    span: span(item.span()),
                    value: self::value(item),
                })
                .collect(),
        ),
        Value::InlineTable(inner) => table(inner),
    }
}

fn span(range: Option<Range<usize>>) -> Span {
    let range = range.unwrap_or(0..0);
    Span {
        start: range.start,
        end: range.end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_their_places() {
        let text = "[servers.a]\ncommand = \"x\"\nlist = [1, 2.5, true]\ninline = { k = 1 }\n[servers.b]\n";
        let document = parse("config.toml", text).unwrap();
        assert_eq!(
            document.root().to_json(),
            json!({"servers": {"a": {"command": "x", "list": [1, 2.5, true], "inline": {"k": 1}}, "b": {}}})
        );
        let problem = document.diagnostic_at("/servers/a/command", "here");
        assert_eq!(problem.location().1, Some((2, 11)));
    }

    #[test]
    fn errors_have_a_place() {
        let problems = parse("config.toml", "a = 1\nb = \n").unwrap_err();
        assert_eq!(problems.0[0].location().1.map(|(line, _)| line), Some(2));
        assert!(parse("config.toml", &format!("a = {}", "[".repeat(100_000))).is_err());
    }

    proptest! {
        #[test]
        fn any_input_is_read_or_refused(text in "[\\[\\]{}\"=.#0-9a-z\\n ]{0,80}") {
            let _ = parse("config.toml", &text);
        }
    }
}
