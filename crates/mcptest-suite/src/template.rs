//! Arguments with references to values that are known only while a test runs: `${saved.name}`.
//!
//! There are two steps. When the file is read, every other `${…}` is replaced
//! (`expand_keeping_saved`), and inserted text that looks like a reference is escaped. When the
//! test runs, the saved values are inserted ([`Args::fill`]) and the escapes resolved. So a value
//! from the environment or from a server that contains `${saved.x}` stays as it is.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::references::{Piece, Reference, expand, pieces, reference};

/// The prefix of the names of saved values.
pub(crate) const SAVED: &str = "saved.";

/// Values saved from results, by name.
pub type Saved = BTreeMap<String, Value>;

/// A value that is used but was not saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing was saved as `{name}`")]
pub struct NotSaved {
    /// The name of the value.
    pub name: String,
}

/// The arguments of a call, which may refer to saved values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    value: Value,
    /// True if there is nothing to insert and no escape to resolve.
    plain: bool,
}

impl Args {
    pub(crate) fn new(written: Option<Map<String, Value>>) -> Self {
        let value = Value::Object(written.unwrap_or_default());
        let plain = is_plain(&value);
        Self { value, plain }
    }

    /// The arguments as written.
    #[must_use]
    pub fn written(&self) -> &Value {
        &self.value
    }

    /// The names of the saved values that are used, each with the JSON pointer of the string that
    /// uses it.
    pub(crate) fn uses(&self) -> Vec<(String, String)> {
        let mut uses = Vec::new();
        if self.plain {
            return uses;
        }
        each_string(&self.value, "", &mut |text, at| {
            for piece in pieces(text) {
                if let Piece::Reference(reference) = piece {
                    let name = reference.name.trim_start_matches(SAVED);
                    uses.push((name.to_owned(), at.to_owned()));
                }
            }
        });
        uses
    }

    /// The arguments with saved values inserted; as they are where there is nothing to insert. A
    /// string that is just `${saved.name}` keeps the value's type.
    ///
    /// # Errors
    /// A value that is used was not saved.
    pub fn fill(&self, saved: &Saved) -> Result<Cow<'_, Value>, NotSaved> {
        if self.plain {
            return Ok(Cow::Borrowed(&self.value));
        }
        let mut missing = None;
        let filled = fill(&self.value, &mut |reference| {
            let name = reference.name.strip_prefix(SAVED)?;
            let value = saved.get(name).cloned();
            if value.is_none() {
                missing.get_or_insert_with(|| name.to_owned());
            }
            value
        });
        match missing {
            Some(name) => Err(NotSaved { name }),
            None => Ok(Cow::Owned(filled)),
        }
    }
}

fn fill(value: &Value, resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>) -> Value {
    match value {
        Value::String(text) if text.contains("${") => expand(text, resolve),
        Value::Array(items) => items.iter().map(|item| fill(item, resolve)).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), fill(value, resolve)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Returns true if no string of a value contains a reference or an escape.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains("${"),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(map) => map.values().all(is_plain),
        _ => true,
    }
}

fn each_string(value: &Value, at: &str, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => visit(text, at),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_string(item, &format!("{at}/{index}"), visit);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                each_string(value, &mcptest_json::pointer_join(at, key), visit);
            }
        }
        _ => {}
    }
}

/// Inserts values, but keeps references to saved values in a form that [`Args::fill`] reads.
pub(crate) fn expand_keeping_saved(
    text: &str,
    resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>,
) -> Value {
    // A single reference keeps its type.
    if let Some((only, "")) = text.strip_prefix("${").and_then(reference)
        && !only.name.starts_with(SAVED)
    {
        let mut value = resolve(&only).unwrap_or(Value::Null);
        escape_all(&mut value);
        return value;
    }
    let mut out = String::new();
    // Literal text is collected before it is escaped: a brace may follow a dollar sign from another
    // piece.
    let mut literal = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => literal.push_str(&text),
            Piece::Reference(saved) if saved.name.starts_with(SAVED) => {
                let dollars = literal.len() - literal.trim_end_matches('$').len();
                out.push_str(&escape(&literal));
                out.extend(std::iter::repeat_n('$', dollars));
                out.push_str("${");
                out.push_str(saved.name);
                out.push('}');
                literal.clear();
            }
            Piece::Reference(other) => match resolve(&other) {
                Some(Value::String(value)) => literal.push_str(&value),
                Some(value) => literal.push_str(&value.to_string()),
                None => {}
            },
        }
    }
    out.push_str(&escape(&literal));
    out.into()
}

fn escape_all(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape(text),
        Value::Array(items) => items.iter_mut().for_each(escape_all),
        Value::Object(map) => map.values_mut().for_each(escape_all),
        _ => {}
    }
}

/// Doubles the dollar signs before each brace.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let dollars = at + 1 - rest[..at].trim_end_matches('$').len();
        out.push_str(&rest[..=at]);
        out.extend(std::iter::repeat_n('$', dollars));
        out.push('{');
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Both steps, with one variable and one saved value.
    fn both(text: &str, variable: &Value, saved: &Value) -> Result<Value, NotSaved> {
        let kept = expand_keeping_saved(text, &mut |reference| {
            (reference.name == "v").then(|| variable.clone())
        });
        let args = Args::new(json!({"x": kept}).as_object().cloned());
        args.fill(&Saved::from([("id".to_owned(), saved.clone())]))
            .map(Cow::into_owned)
            .map(|mut filled| filled["x"].take())
    }

    #[test]
    fn saved_values_keep_their_type_unless_inside_a_longer_string() {
        let id = json!({"n": 7});
        assert_eq!(both("${saved.id}", &json!(1), &id), Ok(id.clone()));
        assert_eq!(
            both("a ${saved.id} ${v}", &json!(1), &id),
            Ok(json!("a {\"n\":7} 1"))
        );
        assert_eq!(
            both("$$${saved.id}", &json!(1), &json!("7")),
            Ok(json!("$7"))
        );
        assert_eq!(
            both("$${saved.id}", &json!(1), &id),
            Ok(json!("${saved.id}"))
        );
        assert_eq!(
            both("${v}", &json!(["${saved.id}"]), &id),
            Ok(json!(["${saved.id}"]))
        );
        assert_eq!(
            both("$${v} a{2}${3}", &json!(1), &id),
            Ok(json!("${v} a{2}${3}"))
        );
        assert_eq!(
            both("${saved.other}", &json!(1), &id),
            Err(NotSaved {
                name: "other".to_owned()
            })
        );
    }

    #[test]
    fn uses_are_found_with_their_pointers() {
        let args = Args::new(
            json!({"a": ["${saved.x}", "$${saved.y}"], "b/c": {"d": "${saved.z} ${saved.x}"}})
                .as_object()
                .cloned(),
        );
        let uses = args.uses();
        let uses: Vec<(&str, &str)> = uses
            .iter()
            .map(|(name, at)| (name.as_str(), at.as_str()))
            .collect();
        assert_eq!(uses, [("x", "/a/0"), ("z", "/b~1c/d"), ("x", "/b~1c/d")]);
        assert_eq!(
            Args::new(None).fill(&Saved::new()),
            Ok(Cow::Owned(json!({})))
        );
    }

    proptest! {
        /// A variable and a saved value are inserted unchanged in any context.
        #[test]
        fn inserted_values_are_never_expanded_again(variable in "[${}a]{0,6}", saved in "[${}a]{0,6}", between in "[{}a]{0,3}") {
            let text = format!("{between}${{v}}{between}${{saved.id}}{between}${{v}}");
            let wanted = format!("{between}{variable}{between}{saved}{between}{variable}");
            prop_assert_eq!(both(&text, &json!(variable), &json!(saved)), Ok(json!(wanted)));
        }

        /// A string without saved values expands here as it does elsewhere.
        #[test]
        fn both_steps_together_equal_the_ordinary_expansion(text in "[${}va]{0,12}", variable in "[${}a]{0,4}") {
            let mut resolve = |reference: &Reference<'_>| Some(if reference.name == "v" { json!(variable) } else { json!("-") });
            let ordinary = expand(&text, &mut resolve);
            let kept = expand_keeping_saved(&text, &mut resolve);
            let args = Args::new(json!({"x": kept}).as_object().cloned());
            let filled = args.fill(&Saved::new());
            prop_assert_eq!(filled, Ok(Cow::Owned(json!({"x": ordinary}))));
        }
    }
}
