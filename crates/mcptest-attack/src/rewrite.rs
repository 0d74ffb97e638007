//! The changes that write an attack's text into an answer of a server.

use serde_json::{Map, Value, json};

use crate::edit::{Change, Edit, Key, apply, get};
use crate::written::AttackTarget;

/// The only argument of an attacker's tool.
pub(crate) const NOTE: &str = "note";

/// The changes of an answer, and the keys that they leave in the recorded result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The changes of `result`, in order.
    pub edits: Vec<Edit>,
    /// Further keys of the recorded result.
    pub marks: Map<String, Value>,
}

impl Changes {
    /// Returns true if nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Adds changes that apply to the result as changed so far. Returns true if there are any.
    pub(crate) fn add(&mut self, changed: &mut Value, edits: Vec<Edit>) -> bool {
        let before = self.edits.len();
        for edit in edits {
            if apply(changed, &edit) {
                self.edits.push(edit);
            }
        }
        self.edits.len() > before
    }

    /// Applies the changes to the `result` of a message.
    pub fn apply(&self, result: &mut Value) {
        for edit in &self.edits {
            apply(result, edit);
        }
    }

    /// Applies the changes to a line with a message, which keeps all its other bytes.
    #[must_use]
    pub fn apply_to_line(&self, line: &[u8]) -> Option<Vec<u8>> {
        let mut text = std::str::from_utf8(line).ok()?.to_owned();
        for edit in &self.edits {
            text = crate::edit::apply_to_text(&text, &edit.clone().below("result"))?;
        }
        Some(text.into_bytes())
    }
}

/// Appends a line to a string.
pub(crate) fn set(path: Vec<Key>, old: &str, text: &str) -> Edit {
    let new = match old {
        "" => text.to_owned(),
        old => format!("{old}\n{text}"),
    };
    Edit {
        path,
        change: Change::Set(new.into()),
    }
}

/// Appends a line to the last text block of a result, and to the first text of its structured
/// content.
pub(crate) fn append(result: &Value, text: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    let block = json!({"type": "text", "text": text});
    // Anything else is not a tool result: a task, or a request for more input.
    if let Some(Value::Array(blocks)) = result.get("content") {
        let last = blocks
            .iter()
            .rposition(|block| block.get("text").is_some_and(Value::is_string));
        edits.push(match last {
            Some(index) => {
                let path = vec!["content".into(), index.into(), "text".into()];
                let old = blocks[index].get("text").and_then(Value::as_str);
                set(path, old.unwrap_or_default(), text)
            }
            None => Edit {
                path: vec!["content".into()],
                change: Change::Push(block),
            },
        });
    }
    if let Some(structured) = result.get("structuredContent") {
        let mut path = vec!["structuredContent".into()];
        if let Some(old) = first_text(structured, &mut path) {
            edits.push(set(path, old, text));
        }
    }
    edits
}

/// The first string of a value, and its path.
fn first_text<'v>(value: &'v Value, path: &mut Vec<Key>) -> Option<&'v str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            path.push(index.into());
            first_text(item, path).or_else(|| {
                path.pop();
                None
            })
        }),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            path.push(key.clone().into());
            first_text(item, path).or_else(|| {
                path.pop();
                None
            })
        }),
        _ => None,
    }
}

/// Appends a line to the texts of a resource that a result or a message embeds.
pub(crate) fn embedded_resource(
    result: &Value,
    target: &AttackTarget,
    server: &str,
    text: &str,
) -> Vec<Edit> {
    let blocks = result.get("content").and_then(Value::as_array);
    let blocks = blocks.into_iter().flatten().enumerate();
    blocks
        .filter_map(|(index, block)| {
            let resource = block.get("resource")?;
            let uri = resource.get("uri").and_then(Value::as_str)?;
            let old = resource.get("text").and_then(Value::as_str)?;
            let path = vec![
                "content".into(),
                index.into(),
                "resource".into(),
                "text".into(),
            ];
            target
                .is_resource(server, uri)
                .then(|| set(path, old, text))
        })
        .collect()
}

/// Returns true if a page of a list has a tool.
pub(crate) fn has_tool(result: &Value, name: &str) -> bool {
    let tools = result.get("tools").and_then(Value::as_array);
    let mut tools = tools.into_iter().flatten();
    tools.any(|tool| tool.get("name").and_then(Value::as_str) == Some(name))
}

/// Appends a line to the string at a path such as `structured_content.notes[0]`.
pub(crate) fn append_at(result: &Value, at: &str, text: &str) -> Vec<Edit> {
    let mut path: Vec<Key> = Vec::new();
    for part in at.split('.') {
        let (name, indexes) = match part.find('[') {
            Some(open) => part.split_at(open),
            None => (part, ""),
        };
        match (path.is_empty(), name) {
            (true, "structured_content") => path.push("structuredContent".into()),
            (_, name) if !name.is_empty() => path.push(name.to_owned().into()),
            _ => {}
        }
        for index in indexes.split(['[', ']']).filter(|index| !index.is_empty()) {
            match index.parse::<usize>() {
                Ok(index) => path.push(index.into()),
                Err(_) => path.push(index.trim_matches('"').to_owned().into()),
            }
        }
    }
    match get(result, &path).and_then(Value::as_str) {
        Some(old) => vec![set(path, old, text)],
        None => Vec::new(),
    }
}

/// Appends a line to the descriptions of the targeted tools.
pub(crate) fn describe(
    result: &Value,
    target: &AttackTarget,
    server: &str,
    text: &str,
) -> Vec<Edit> {
    targeted(result, target, server)
        .map(|(index, tool)| {
            let tools = || vec![Key::from("tools"), index.into()];
            description(tools(), tool, text)
        })
        .collect()
}

/// Appends a line to the descriptions of the targeted parameters, or else of the first one.
pub(crate) fn describe_parameter(
    result: &Value,
    target: &AttackTarget,
    server: &str,
    text: &str,
) -> Vec<Edit> {
    targeted(result, target, server)
        .filter_map(|(index, tool)| {
            let properties = tool.pointer("/inputSchema/properties")?.as_object()?;
            let (name, parameter) = match &target.parameter {
                Some(wanted) => properties.get_key_value(wanted)?,
                None => properties.iter().next()?,
            };
            let path = vec![
                "tools".into(),
                index.into(),
                "inputSchema".into(),
                "properties".into(),
                name.clone().into(),
            ];
            parameter
                .is_object()
                .then(|| description(path, parameter, text))
        })
        .collect()
}

/// The tools of a list that a target means, with their indexes.
fn targeted<'v>(
    result: &'v Value,
    target: &'v AttackTarget,
    server: &'v str,
) -> impl Iterator<Item = (usize, &'v Value)> {
    let tools = result.get("tools").and_then(Value::as_array);
    tools
        .into_iter()
        .flatten()
        .enumerate()
        .filter(move |(_, tool)| {
            let name = tool.get("name").and_then(Value::as_str);
            name.is_some_and(|name| target.is_tool(server, name))
        })
}

fn description(mut path: Vec<Key>, object: &Value, text: &str) -> Edit {
    match object.get("description").and_then(Value::as_str) {
        Some(old) => {
            path.push("description".into());
            set(path, old, text)
        }
        None => Edit {
            path,
            change: Change::Insert("description".to_owned(), text.into()),
        },
    }
}

/// The attacker's tool, as a server would list it.
pub(crate) fn own_tool(name: &str, text: &str) -> Edit {
    let tool = json!({
        "name": name,
        "description": text,
        "inputSchema": {
            "type": "object",
            "properties": {NOTE: {"type": "string", "description": "The note."}},
            "required": [NOTE]
        }
    });
    Edit {
        path: vec!["tools".into()],
        change: Change::Push(tool),
    }
}
