//! Changes of JSON text in place: the text changes as the value does, and no other byte. The input
//! is a message, and on a line before it the path of the change as a JSON list.

use mcptest_attack::edit::{Change, Edit, Key, apply, apply_to_text};
use serde_json::{Value, json};

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Some((path, message)) = text.split_once('\n') else {
        return;
    };
    let Ok(Value::Array(path)) = serde_json::from_str(path) else {
        return;
    };
    let Ok(value) = serde_json::from_str::<Value>(message) else {
        return;
    };
    let path: Vec<Key> = path
        .iter()
        .filter_map(|step| match step {
            Value::String(name) => Some(name.clone().into()),
            other => Some(usize::try_from(other.as_u64()?).ok()?.into()),
        })
        .collect();
    for change in [
        Change::Set(json!("new \"value\"\n")),
        Change::Push(json!({"type": "text"})),
        Change::Insert("added".to_owned(), json!([1])),
    ] {
        let edit = Edit {
            path: path.clone(),
            change,
        };
        let mut expected = value.clone();
        let is_applied = apply(&mut expected, &edit);
        let changed = apply_to_text(message, &edit);
        assert_eq!(changed.is_some(), is_applied, "{edit:?}");
        if let Some(changed) = changed {
            let read = serde_json::from_str::<Value>(&changed);
            assert_eq!(read.ok(), Some(expected), "{edit:?}: {changed}");
        }
    }
}
