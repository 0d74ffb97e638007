//! The texts that a model reads in an entry of a catalog.

use serde_json::Value;

use super::normal::{self, Sentence};

/// The kind of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The name of a tool, prompt or resource.
    Name,
    /// The name of an argument.
    Property,
    /// A value of a schema: a default, an allowed value, an example.
    Value,
    /// A description of an argument or of a part of a result.
    Argument,
    /// Anything else: titles, descriptions, instructions.
    Prose,
}

/// A string that a model reads.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    /// Its place in the entry, as a JSON pointer.
    pub path: String,
    /// Its kind.
    pub role: Role,
    /// As sent.
    pub raw: &'a str,
    /// In normal form, with its lines.
    pub normal: String,
    /// Its sentences, then those of the text with disguises undone.
    pub sentences: Vec<Sentence>,
}

impl<'a> Text<'a> {
    fn new(path: String, role: Role, raw: &'a str) -> Self {
        let normal = normal::normal(raw);
        let plain = match role {
            Role::Name | Role::Property => normal::words_of_name(&normal),
            Role::Value | Role::Argument | Role::Prose => normal.clone(),
        };
        let mut sentences = normal::sentences(&plain);
        if let Some(plain) = normal::undisguised(&plain) {
            sentences.extend(normal::sentences(&plain));
        }
        Self {
            path,
            role,
            raw,
            normal,
            sentences,
        }
    }
}

/// The texts of an entry: a tool, a prompt, a resource, or the instructions of a server.
pub(crate) fn texts(entry: &Value) -> Vec<Text<'_>> {
    let mut found = Vec::new();
    if let Value::String(instructions) = entry {
        found.push(Text::new(String::new(), Role::Prose, instructions));
        return found;
    }
    for (pointer, role) in [
        ("/name", Role::Name),
        ("/title", Role::Prose),
        ("/description", Role::Prose),
        ("/annotations/title", Role::Prose),
        ("/uri", Role::Value),
        ("/uriTemplate", Role::Value),
    ] {
        if let Some(Value::String(text)) = entry.pointer(pointer) {
            found.push(Text::new(pointer.to_owned(), role, text));
        }
    }
    for key in ["inputSchema", "outputSchema"] {
        if let Some(schema) = entry.get(key) {
            schema_texts(format!("/{key}"), schema, &mut found);
        }
    }
    let arguments = entry.get("arguments").and_then(Value::as_array);
    for (index, argument) in arguments.into_iter().flatten().enumerate() {
        for (key, role) in [
            ("name", Role::Property),
            ("title", Role::Argument),
            ("description", Role::Argument),
        ] {
            if let Some(Value::String(text)) = argument.get(key) {
                found.push(Text::new(format!("/arguments/{index}/{key}"), role, text));
            }
        }
    }
    found
}

/// Keys whose strings are syntax, not prose.
const SYNTAX: [&str; 9] = [
    "$ref",
    "$schema",
    "$id",
    "$anchor",
    "$dynamicRef",
    "type",
    "format",
    "pattern",
    "required",
];

/// Keys whose members are named by the author.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Collects the texts of a schema. A list of places takes the place of recursion: a server may
/// nest as deep as it likes.
fn schema_texts<'a>(path: String, schema: &'a Value, found: &mut Vec<Text<'a>>) {
    let mut waiting = vec![(path, "", schema)];
    while let Some((path, key, value)) = waiting.pop() {
        match value {
            Value::String(text) => {
                let role = match key {
                    "title" | "description" | "$comment" => Role::Argument,
                    _ => Role::Value,
                };
                found.push(Text::new(path, role, text));
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate().rev() {
                    waiting.push((joined(&path, &index.to_string()), key, item));
                }
            }
            Value::Object(members) => {
                let is_named = NAMED.contains(&key);
                for (name, member) in members.iter().rev() {
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    let path = joined(&path, &escaped);
                    if is_named {
                        if key == "properties" {
                            found.push(Text::new(path.clone(), Role::Property, name));
                        }
                        waiting.push((path, "", member));
                    } else if !SYNTAX.contains(&name.as_str()) || !is_plain(member) {
                        waiting.push((path, name, member));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The place below another one. Places that are nested absurdly deep have the name of the last
/// sensible one, so that the time stays linear.
fn joined(path: &str, key: &str) -> String {
    if path.len() > MAX_PATH {
        path.to_owned()
    } else {
        format!("{path}/{key}")
    }
}

/// The longest pointer that is continued.
const MAX_PATH: usize = 2000;

/// Returns true for strings and lists of strings.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_string),
        other => !other.is_object(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_string_that_a_model_reads_is_found() {
        let tool = json!({
            "name": "n", "title": "t", "description": "d", "annotations": {"title": "a"},
            "inputSchema": {"type": "object", "required": ["p"], "properties": {
                "p": {"type": "string", "description": "pd", "default": "pf", "enum": ["e1", "e2"], "pattern": "x"},
                "type": {"type": "object", "properties": {"deep": {"$ref": "#/$defs/q"}}}
            }, "$defs": {"q": {"const": "c", "anyOf": [{"title": "qt"}]}}}
        });
        let mut all: Vec<String> = texts(&tool)
            .into_iter()
            .map(|text| format!("{}={}", text.path, text.raw))
            .collect();
        all.sort();
        let schema = "/inputSchema";
        let mut wanted = vec![
            "/annotations/title=a".to_owned(),
            "/description=d".to_owned(),
            "/name=n".to_owned(),
            "/title=t".to_owned(),
            format!("{schema}/$defs/q/anyOf/0/title=qt"),
            format!("{schema}/$defs/q/const=c"),
            format!("{schema}/properties/p/default=pf"),
            format!("{schema}/properties/p/description=pd"),
            format!("{schema}/properties/p/enum/0=e1"),
            format!("{schema}/properties/p/enum/1=e2"),
            format!("{schema}/properties/p=p"),
            format!("{schema}/properties/type/properties/deep=deep"),
            format!("{schema}/properties/type=type"),
        ];
        wanted.sort();
        assert_eq!(all, wanted);
    }

    #[test]
    fn instructions_prompts_and_resources_are_texts() {
        assert_eq!(texts(&json!("Use it well."))[0].raw, "Use it well.");
        let prompt = json!({"name": "p", "arguments": [{"name": "x", "description": "y"}]});
        assert_eq!(texts(&prompt).len(), 3);
        let resource = json!({"uri": "file:///a", "name": "r", "description": "d"});
        assert_eq!(texts(&resource).len(), 3);
        let mut deep = json!({});
        for _ in 0..500 {
            deep = json!({"items": deep});
        }
        let tool = json!({"name": "n", "inputSchema": deep});
        assert_eq!(texts(&tool).len(), 1);
    }
}
