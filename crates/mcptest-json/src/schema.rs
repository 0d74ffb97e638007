//! Descriptions of generated JSON Schemas.
//!
//! Schemas are generated from doc comments, which are wrapped in the source. A description should
//! have line breaks only where a reader needs them.

use serde_json::Value;

/// Keys whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Joins the wrapped lines of each paragraph in all descriptions of a schema.
pub fn join_description_lines(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if key == "description" => *text = joined(text),
                    _ if DATA.contains(&key.as_str()) => {}
                    _ => join_description_lines(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(join_description_lines),
        _ => {}
    }
}

/// The text with a line break only between paragraphs, before list items and in code blocks.
fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_code = false;
    let mut last_breaks = true;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        let breaks = is_fence || in_code || line.trim().is_empty();
        let is_item = ["- ", "* ", "| "]
            .iter()
            .any(|mark| line.trim_start().starts_with(mark));
        if !out.is_empty() {
            out.push(if breaks || last_breaks || is_item {
                '\n'
            } else {
                ' '
            });
        }
        out.push_str(if breaks { line } else { line.trim() });
        in_code ^= is_fence;
        last_breaks = breaks;
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paragraphs_are_joined_and_lists_and_code_are_not() {
        assert_eq!(
            joined("One line\nand more.\n\nNext\none."),
            "One line and more.\n\nNext one."
        );
        assert_eq!(joined("List:\n- a\n  b\n- c"), "List:\n- a b\n- c");
        assert_eq!(
            joined("See:\n```\na\n  b\n```\nend\nof it"),
            "See:\n```\na\n  b\n```\nend of it"
        );
    }

    #[test]
    fn only_descriptions_of_schemas_are_changed() {
        let mut schema = json!({
            "description": "a\nb",
            "properties": {"description": {"type": "string", "description": "c\nd"}},
            "anyOf": [{"description": "e\nf"}],
            "examples": [{"description": "g\nh"}],
            "title": "i\nj"
        });
        join_description_lines(&mut schema);
        assert_eq!(
            schema,
            json!({
                "description": "a b",
                "properties": {"description": {"type": "string", "description": "c d"}},
                "anyOf": [{"description": "e f"}],
                "examples": [{"description": "g\nh"}],
                "title": "i\nj"
            })
        );
    }
}
