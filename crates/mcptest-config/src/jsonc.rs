//! JSON with comments and trailing commas, which editors allow, as a tree with positions.

use std::sync::Arc;

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::{Range, Ranged as _};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use mcptest_yaml::{
    Diagnostic, Diagnostics, Document, Entry, Node, NodeValue, Severity, Source, Span,
};

/// The deepest level of a file.
const MAX_DEPTH: usize = 64;

/// Parses a file.
///
/// # Errors
/// The first syntax error, with its place.
pub(crate) fn parse(name: &str, text: &str) -> Result<Document, Diagnostics> {
    let source = Arc::new(Source::new(name, text.to_owned()));
    let fail = |message: String, range: Range| {
        Diagnostics::from(Diagnostic::new(Severity::Error, message).at(&source, span(range)))
    };
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| fail(format!("not valid JSON: {}", error.kind()), error.range()))?;
    let start = Range { start: 0, end: 0 };
    let Some(value) = parsed.value else {
        return Err(fail("the file is empty".to_owned(), start));
    };
    let root = node(&value, 0).map_err(|range| {
        let message = format!("the file has more than {MAX_DEPTH} levels");
        fail(message, range)
    })?;
    Ok(Document::new(source, root))
}

/// The tree of a value, or the place of one that is too deep.
fn node(value: &Value<'_>, depth: usize) -> Result<Node, Range> {
    if depth > MAX_DEPTH {
        return Err(value.range());
    }
    let inner = match value {
        Value::NullKeyword(_) => NodeValue::Null,
        Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
        Value::StringLit(literal) => NodeValue::String(literal.value.as_ref().into()),
        Value::NumberLit(literal) => match serde_json::from_str(literal.value) {
            Ok(number) => NodeValue::Number(number),
            Err(_) => NodeValue::String(literal.value.into()),
        },
        Value::Array(array) => {
            let items = array.elements.iter().map(|item| node(item, depth + 1));
            NodeValue::Sequence(items.collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let entries = object.properties.iter().map(|property| {
                let key_range = match &property.name {
                    ObjectPropName::String(name) => name.range,
                    ObjectPropName::Word(name) => name.range,
                };
                Ok(Entry {
                    key: property.name.as_str().into(),
                    key_span: span(key_range),
                    value: node(&property.value, depth + 1)?,
                })
            });
            NodeValue::Mapping(entries.collect::<Result<_, Range>>()?)
        }
    };
    Ok(Node {
        span: span(value.range()),
        value: inner,
    })
}

fn span(range: Range) -> Span {
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
    fn comments_and_trailing_commas_are_allowed() {
        let text = "// one\n{\n  /* two */ \"a\": [1, 2.5, \"x\\u00e4\",], // three\n  \"b\": {\"c\": null,},\n}\n";
        let document = parse("mcp.json", text).unwrap();
        assert_eq!(
            document.root().to_json(),
            json!({"a": [1, 2.5, "xä"], "b": {"c": null}})
        );
    }

    #[test]
    fn errors_have_a_place() {
        for (text, place) in [
            ("{\n  \"a\": 1\n  \"b\": 2\n}", (2, 9)),
            ("{\"a\": 'x'}", (1, 7)),
            ("", (1, 1)),
            ("[1, 2", (1, 1)),
        ] {
            let problems = parse("mcp.json", text).unwrap_err();
            assert_eq!(problems.0.len(), 1);
            let (file, found) = problems.0[0].location();
            assert_eq!((file, found), (Some("mcp.json"), Some(place)), "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let problems = parse("mcp.json", &deep).unwrap_err();
        assert!(problems.0[0].message.contains("64 levels"), "{problems}");
        assert!(parse("mcp.json", &"[".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_input_is_read_or_refused(text in "[\\[\\]{}\",:/*0-9a-z\\n \\\\]{0,80}") {
            let _ = parse("mcp.json", &text);
        }
    }
}
