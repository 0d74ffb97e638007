//! `${NAME}` in strings of a suite.

use std::collections::BTreeMap;

use mcptest_yaml::{Diagnostic, Document, Entry, Node, NodeValue, Span};
use serde_json::Value;

use crate::references::{Reference, expand};
use crate::template;

/// The maximum number of inserted bytes: a chain of variables that each use the previous one twice
/// grows exponentially.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The sources of values, in addition to the file's own `variables:`.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Variables of the files that import this one; they override its own.
    pub outer: &'a BTreeMap<String, Value>,
    /// The directory of the file.
    pub config_dir: &'a str,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// The outcome of an interpolation.
#[derive(Default)]
pub(crate) struct Interpolated {
    /// The outer variables and the file's own.
    pub variables: BTreeMap<String, Value>,
    /// Problems, such as names without a value.
    pub problems: Vec<Diagnostic>,
    /// Values that came from the environment, by the variable's name.
    pub from_env: Vec<(String, String)>,
    /// The number of inserted bytes.
    bytes: usize,
}

/// Inserts values in all strings, but not in keys. `variables:` comes first; each entry can use
/// those above it.
///
/// A string that is just `${name}` keeps the value's type; inside a longer string the value is
/// inserted as text. `${name:-default}` has a default; `$${` is a literal `${`, and `$$${price}` a
/// dollar sign and the price, as in mock manifests.
///
/// In the arguments of a direct test and of its fixtures, `${saved.name}` is kept for
/// [`crate::template`], and inserted text that looks like such a reference is escaped.
pub(crate) fn interpolate(document: &mut Document, scope: Scope<'_>) -> Interpolated {
    let original = document.without_values();
    let mut done = Interpolated {
        variables: scope.outer.clone(),
        ..Interpolated::default()
    };
    let NodeValue::Mapping(entries) = &mut document.root_mut().value else {
        return done;
    };
    let own = entries.iter_mut().filter(|entry| entry.key == "variables");
    for entry in own
        .filter_map(|entry| entries_of(&mut entry.value))
        .flatten()
    {
        done.interpolate(&mut entry.value, &original, scope, Mode::Expand);
        if !scope.outer.contains_key(entry.key.as_str()) {
            done.variables
                .insert(entry.key.to_string(), entry.value.to_json());
        }
    }
    for entry in entries.iter_mut().filter(|entry| entry.key != "variables") {
        match &mut entry.value.value {
            NodeValue::Sequence(tests) if DIRECT_TESTS.contains(&entry.key.as_str()) => {
                for test in tests {
                    done.interpolate_direct_test(test, &original, scope);
                }
            }
            NodeValue::Sequence(tests) if ["agents", "tests"].contains(&entry.key.as_str()) => {
                for test in tests {
                    done.interpolate_agent_test(test, &original, scope);
                }
            }
            _ if entry.key == "attacks" => {
                done.interpolate(&mut entry.value, &original, scope, Mode::KeepCanary);
            }
            _ => done.interpolate(&mut entry.value, &original, scope, Mode::Expand),
        }
    }
    done
}

/// The keys of an agent test with calls whose arguments can use saved values.
const HAS_CALLS: [&str; 3] = ["setup", "after", "teardown"];

/// The sections of direct tests.
const DIRECT_TESTS: [&str; 3] = ["tools", "resources", "prompts"];

/// The keys of a direct test that can use saved values.
const HOLDS_SAVED: [&str; 6] = ["args", "uri", "complete", "setup", "trigger", "teardown"];

/// The handling of `${saved.name}`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It is an ordinary name.
    Expand,
    /// It is kept for the run.
    KeepSaved,
    /// It is an ordinary name; `${canary}` is kept for the run.
    KeepCanary,
}

fn entries_of(node: &mut Node) -> Option<&mut Vec<Entry>> {
    match &mut node.value {
        NodeValue::Mapping(entries) => Some(entries),
        _ => None,
    }
}

impl Interpolated {
    fn interpolate_direct_test(&mut self, test: &mut Node, original: &Document, scope: Scope<'_>) {
        let NodeValue::Mapping(fields) = &mut test.value else {
            return self.interpolate(test, original, scope, Mode::Expand);
        };
        for field in fields {
            let holds_saved = HOLDS_SAVED.contains(&field.key.as_str());
            let mode = if holds_saved {
                Mode::KeepSaved
            } else {
                Mode::Expand
            };
            self.interpolate(&mut field.value, original, scope, mode);
        }
    }

    fn interpolate_agent_test(&mut self, test: &mut Node, original: &Document, scope: Scope<'_>) {
        let NodeValue::Mapping(fields) = &mut test.value else {
            return self.interpolate(test, original, scope, Mode::Expand);
        };
        for field in fields {
            match &mut field.value.value {
                NodeValue::Sequence(calls) if HAS_CALLS.contains(&field.key.as_str()) => {
                    for call in calls {
                        self.interpolate_call(call, original, scope);
                    }
                }
                _ => {
                    let mode = match field.key.as_str() {
                        "script" => Mode::KeepCanary,
                        _ => Mode::Expand,
                    };
                    self.interpolate(&mut field.value, original, scope, mode);
                }
            }
        }
    }

    fn interpolate_call(&mut self, call: &mut Node, original: &Document, scope: Scope<'_>) {
        let NodeValue::Mapping(fields) = &mut call.value else {
            return self.interpolate(call, original, scope, Mode::Expand);
        };
        for field in fields {
            let mode = match field.key.as_str() {
                "args" => Mode::KeepSaved,
                _ => Mode::Expand,
            };
            self.interpolate(&mut field.value, original, scope, mode);
        }
    }

    fn interpolate(&mut self, node: &mut Node, original: &Document, scope: Scope<'_>, mode: Mode) {
        node.replace_strings(&mut |text, span| {
            if !text.contains("${") {
                return None;
            }
            let mut resolve = |reference: &Reference<'_>| {
                // The limit is reported once.
                if self.bytes > MAX_BYTES {
                    return None;
                }
                if mode == Mode::KeepCanary
                    && reference.name == "canary"
                    && !self.variables.contains_key("canary")
                {
                    return Some("${canary}".into());
                }
                let value = self.value_of(reference, original, scope, span)?;
                self.bytes += value
                    .as_str()
                    .map_or_else(|| value.to_string().len(), str::len);
                if self.bytes <= MAX_BYTES {
                    return Some(value);
                }
                let message = format!(
                    "the values of `${{…}}` insert more than {} MiB",
                    MAX_BYTES >> 20
                );
                self.problems.push(original.error(span, message));
                None
            };
            let value = match mode {
                Mode::Expand | Mode::KeepCanary => expand(text, &mut resolve),
                Mode::KeepSaved => template::expand_keeping_saved(text, &mut resolve),
            };
            Some(Node {
                span,
                value: match value {
                    Value::String(text) => NodeValue::String(text.into()),
                    other => Node::from_json(&other, span).value,
                },
            })
        });
    }

    fn value_of(
        &mut self,
        reference: &Reference<'_>,
        original: &Document,
        scope: Scope<'_>,
        span: Span,
    ) -> Option<Value> {
        let name = reference.name;
        if let Some(value) = self.variables.get(name) {
            return Some(value.clone());
        }
        if name == "CONFIG_DIR" {
            return Some(scope.config_dir.into());
        }
        if let Some(value) = (scope.env)(name) {
            self.from_env.push((name.to_owned(), value.clone()));
            return Some(value.into());
        }
        if let Some(default) = reference.default {
            return Some(default.into());
        }
        let unset = original.error(span, format!("`${{{name}}}` is not set"));
        self.problems.push(if name.starts_with(template::SAVED) {
            unset.help("saved values can be used in `args`, `setup` and `teardown` of the direct test that saves them")
        } else {
            unset.help(format!(
                "set the environment variable, define it in `variables:` (above its use), or write a default: `${{{name}:-value}}`"
            ))
            .help("for a literal `${` write `$${`")
        });
        None
    }
}

#[cfg(test)]
mod tests {
    use mcptest_yaml::DocumentLimits;
    use serde_json::json;

    use super::*;

    fn run(text: &str) -> (Value, Vec<String>) {
        let mut document =
            Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default()).unwrap();
        let variables = BTreeMap::from([
            ("count".to_owned(), json!(3)),
            ("city".to_owned(), json!("Paris")),
        ]);
        let scope = Scope {
            outer: &variables,
            config_dir: "/suite",
            env: &|name| (name == "KEY").then(|| "s3cret".to_owned()),
        };
        let messages = interpolate(&mut document, scope)
            .problems
            .iter()
            .map(|problem| format!("{} {:?}", problem.message, problem.location().1))
            .collect();
        (document.root().to_json(), messages)
    }

    #[test]
    fn values_types_defaults_and_escapes() {
        let (value, problems) = run(
            "a: ${count}\nb: in ${city}, ${count} times\nc: ${KEY}\nd: ${CONFIG_DIR}/x\ne: ${NOPE:-no}\nf: $${city}\ng: 'a{2}${3}$'\nh: ${NOPE:-}\ni: $$${count} and $$$${count}\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            value,
            json!({"a": 3, "b": "in Paris, 3 times", "c": "s3cret", "d": "/suite/x", "e": "no", "f": "${city}", "g": "a{2}${3}$", "h": "", "i": "$3 and $${count}"})
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

    #[test]
    fn variables_can_use_those_above_them() {
        let (value, problems) = run(
            "tools: ['${url}', '${city}']\nvariables: {host: '${KEY}.example', url: 'http://${host}/${city}', city: Rome}\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        // The importing file's value overrides the file's own.
        assert_eq!(
            value["tools"],
            json!(["http://s3cret.example/Paris", "Paris"])
        );
        let (_, problems) = run("variables: {a: '${b}', b: 1}\n");
        assert_eq!(problems, ["`${b}` is not set Some((1, 16))"]);
    }

    #[test]
    fn exponential_growth_is_rejected_early() {
        let mut text = "variables:\n  v0: abcdefghij\n".to_owned();
        for number in 1..64 {
            let last = number - 1;
            text.push_str(&format!("  v{number}: ${{v{last}}}${{v{last}}}\n"));
        }
        let (_, problems) = run(&text);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("more than 8 MiB"), "{problems:?}");
    }
}
