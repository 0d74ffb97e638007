//! `${NAME}` in texts of a suite.

use std::collections::BTreeMap;

use mcptest_yaml::{Diagnostic, Document, Node, NodeValue};
use serde_json::Value;

/// Where names get their values from.
pub(crate) struct Scope<'a> {
    /// `variables:` of this suite and of those that import it; the importing file's come first.
    pub variables: &'a BTreeMap<String, Value>,
    /// The directory of the file.
    pub config_dir: &'a str,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// A value that came from the environment, by the variable's name.
pub(crate) type FromEnv = (String, String);

/// Puts values in, everywhere but in keys. Gives the problems, and what was taken from the environment.
///
/// A text that is nothing but one `${name}` takes the variable's value with its type; inside a longer text it is put in as text.
/// `${name:-default}` has a default; `$${` is a literal `${`.
pub(crate) fn interpolate(document: &mut Document, scope: &Scope<'_>) -> (Vec<Diagnostic>, Vec<FromEnv>) {
    let mut problems = Vec::new();
    let mut from_env = Vec::new();
    let original = document.clone();
    document.root_mut().replace_strings(&mut |text, span| {
        if !text.contains("${") {
            return None;
        }
        let mut resolve = |reference: &Reference<'_>| -> Option<Value> {
            if let Some(value) = scope.variables.get(reference.name) {
                return Some(value.clone());
            }
            if reference.name == "CONFIG_DIR" {
                return Some(scope.config_dir.into());
            }
            if let Some(value) = (scope.env)(reference.name) {
                from_env.push((reference.name.to_owned(), value.clone()));
                return Some(value.into());
            }
            if let Some(default) = reference.default {
                return Some(default.into());
            }
            problems.push(
                original
                    .error(span, format!("`${{{}}}` is not set", reference.name))
                    .help(format!(
                        "set the environment variable, name it in `variables:`, or give a default: `${{{}:-value}}`",
                        reference.name
                    ))
                    .help("for the literal text write `$${`"),
            );
            None
        };
        Some(Node {
            span,
            value: match expand(text, &mut resolve) {
                Value::String(text) => NodeValue::String(text),
                other => Node::from_json(&other, span).value,
            },
        })
    });
    (problems, from_env)
}

struct Reference<'a> {
    name: &'a str,
    default: Option<&'a str>,
}

fn expand(text: &str, resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>) -> Value {
    if let Some((reference, "")) = text.strip_prefix("${").and_then(reference) {
        return resolve(&reference).unwrap_or(Value::Null);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at]);
            out.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        match reference(&rest[at + 2..]) {
            Some((reference, after)) => {
                match resolve(&reference) {
                    Some(Value::String(value)) => out.push_str(&value),
                    Some(value) => out.push_str(&value.to_string()),
                    None => {}
                }
                rest = after;
            }
            // Not a name in braces: an ordinary text, such as a regular expression.
            None => {
                out.push_str("${");
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    out.into()
}

/// `NAME}` or `NAME:-default}` at the start of a text, with what follows.
fn reference(text: &str) -> Option<(Reference<'_>, &str)> {
    let (inside, after) = text.split_once('}')?;
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    (starts && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
        .then_some((Reference { name, default }, after))
}

#[cfg(test)]
mod tests {
    use mcptest_yaml::Limits;
    use serde_json::json;

    use super::*;

    fn run(text: &str) -> (Value, Vec<String>) {
        let mut document = Document::parse("t.yml", text.as_bytes(), &Limits::default()).unwrap();
        let variables = BTreeMap::from([("count".to_owned(), json!(3)), ("city".to_owned(), json!("Paris"))]);
        let scope = Scope {
            variables: &variables,
            config_dir: "/suite",
            env: &|name| (name == "KEY").then(|| "s3cret".to_owned()),
        };
        let (problems, _) = interpolate(&mut document, &scope);
        let messages = problems
            .iter()
            .map(|problem| format!("{} {:?}", problem.message, problem.location().1))
            .collect();
        (document.root().to_json(), messages)
    }

    #[test]
    fn values_types_defaults_and_escapes() {
        let (value, problems) = run(
            "a: ${count}\nb: in ${city}, ${count} times\nc: ${KEY}\nd: ${CONFIG_DIR}/x\ne: ${NOPE:-no}\nf: $${city}\ng: 'a{2}${3}$'\nh: ${NOPE:-}\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            value,
            json!({"a": 3, "b": "in Paris, 3 times", "c": "s3cret", "d": "/suite/x", "e": "no", "f": "${city}", "g": "a{2}${3}$", "h": ""})
        );
    }

    #[test]
    fn an_unset_name_is_an_error_at_its_place() {
        let (_, problems) = run("a: x\nb: [ok, 'see ${NOPE}', '${args.x}']\n");
        assert_eq!(
            problems,
            [
                "`${NOPE}` is not set Some((2, 9))",
                "`${args.x}` is not set Some((2, 24))"
            ]
        );
    }
}
