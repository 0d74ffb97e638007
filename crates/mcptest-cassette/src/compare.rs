//! Changes between a recording and the current suite.

use std::fmt;

use mcptest_json::equal;
use mcptest_json::text::{one_line, shorten};
use serde::Serialize;
use serde_json::Value;

use crate::format::{Cassette, RecordedCatalog, Subject};

/// The most characters of a string that are shown.
const MAX_SHOWN: usize = 120;

/// A difference between the recording and the current suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CassetteChange {
    /// `prompt`, `system`, `model`, `servers`, `tools`, `schema`, `settings`, `runs` or `test`.
    #[serde(rename = "what")]
    pub aspect: &'static str,
    /// The difference, in one line.
    #[serde(rename = "words")]
    pub message: String,
}

impl fmt::Display for CassetteChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.aspect, self.message)
    }
}

fn change(aspect: &'static str, message: String) -> CassetteChange {
    CassetteChange { aspect, message }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shorten(&one_line(text), MAX_SHOWN))
}

/// Quotes two strings, each from a little before their first difference.
fn quote_difference(recorded: &str, now: &str) -> String {
    const BEFORE: usize = 30;
    let same = recorded
        .chars()
        .zip(now.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let from = |text: &str| {
        let skipped = same.saturating_sub(BEFORE);
        let tail: String = text.chars().skip(skipped).collect();
        quoted(&if skipped > 0 {
            format!("…{tail}")
        } else {
            tail
        })
    };
    format!("was {}, is {}", from(recorded), from(now))
}

/// Returns the changes of the subject. `runs` is the number of runs that are needed.
#[must_use]
pub fn changes(cassette: &Cassette, now: &Subject, runs: u32) -> Vec<CassetteChange> {
    let was = &cassette.subject;
    let mut found = Vec::new();
    if was.test != now.test {
        found.push(change("test", quote_difference(&was.test, &now.test)));
    }
    if was.model != now.model {
        found.push(change("model", quote_difference(&was.model, &now.model)));
    }
    match (&was.system, &now.system) {
        (Some(was), Some(now)) if was != now => {
            found.push(change("system", quote_difference(was, now)))
        }
        (None, Some(now)) => found.push(change(
            "system",
            format!("there was none, is {}", quoted(now)),
        )),
        (Some(was), None) => found.push(change(
            "system",
            format!("was {}, there is none", quoted(was)),
        )),
        _ => {}
    }
    if was.prompt != now.prompt {
        found.push(change("prompt", quote_difference(&was.prompt, &now.prompt)));
    }
    if was.servers != now.servers {
        found.push(change(
            "servers",
            format!("were {}, are {}", list(&was.servers), list(&now.servers)),
        ));
    }
    let mut keys: Vec<&String> = was.settings.keys().chain(now.settings.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (was, is) = (was.settings.get(key), now.settings.get(key));
        if !equal(was.unwrap_or(&Value::Null), is.unwrap_or(&Value::Null)) {
            let shown = |value: Option<&Value>| {
                value.map_or("not set".to_owned(), |value| {
                    shorten(&one_line(&value.to_string()), MAX_SHOWN)
                })
            };
            found.push(change(
                "settings",
                format!("`{key}` was {}, is {}", shown(was), shown(is)),
            ));
        }
    }
    if runs > cassette.planned || runs as usize > cassette.runs.len() {
        let recorded = cassette.runs.len();
        found.push(change(
            "runs",
            format!("{recorded} recorded, {runs} wanted"),
        ));
    }
    found
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", one_line(name)))
        .collect();
    names.join(", ")
}

fn name_of(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the changes of the tools. Only servers on both sides are compared: added and removed
/// servers are changes of the subject.
#[must_use]
pub fn catalog_changes(
    recorded: &[RecordedCatalog],
    now: &[RecordedCatalog],
) -> Vec<CassetteChange> {
    let mut found = Vec::new();
    for is in now {
        let Some(was) = recorded.iter().find(|was| was.server == is.server) else {
            continue;
        };
        let missing_in = |from: &RecordedCatalog, of: &RecordedCatalog| -> Vec<String> {
            let known = |name: &str| from.tools.iter().any(|tool| name_of(tool) == name);
            let names = of.tools.iter().map(name_of).filter(|name| !known(name));
            names.map(str::to_owned).collect()
        };
        let (added, removed) = (missing_in(was, is), missing_in(is, was));
        let server = one_line(&is.server);
        if !added.is_empty() {
            found.push(change(
                "tools",
                format!("`{server}` has {} more: {}", added.len(), list(&added)),
            ));
        }
        if !removed.is_empty() {
            let message = format!("`{server}` no longer has {}", list(&removed));
            found.push(change("tools", message));
        }
        for tool in &is.tools {
            let Some(old) = was.tools.iter().find(|old| name_of(old) == name_of(tool)) else {
                continue;
            };
            found.extend(tool_changes(&server, old, tool));
        }
        let order = |catalog: &RecordedCatalog| -> Vec<String> {
            catalog
                .tools
                .iter()
                .map(|tool| name_of(tool).to_owned())
                .collect()
        };
        if added.is_empty() && removed.is_empty() && order(was) != order(is) {
            found.push(change(
                "tools",
                format!("`{server}` lists them in another order"),
            ));
        }
    }
    found
}

fn tool_changes(server: &str, was: &Value, is: &Value) -> Vec<CassetteChange> {
    let fields = |tool: &Value| tool.as_object().cloned().unwrap_or_default();
    let (was, is) = (fields(was), fields(is));
    let name = one_line(is.get("name").and_then(Value::as_str).unwrap_or_default());
    let mut keys: Vec<&String> = was.keys().chain(is.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut found = Vec::new();
    for key in keys {
        let (old, new) = (
            was.get(key).unwrap_or(&Value::Null),
            is.get(key).unwrap_or(&Value::Null),
        );
        if equal(old, new) {
            continue;
        }
        let aspect = if key.ends_with("Schema") {
            "schema"
        } else {
            "tools"
        };
        let message = match (old, new) {
            (Value::String(old), Value::String(new)) => quote_difference(old, new),
            _ => {
                let differences = mcptest_trace::matcher::differences(old, new, false);
                let places: Vec<String> = differences
                    .iter()
                    .take(5)
                    .map(|one| {
                        if one.pointer.is_empty() {
                            "the root".to_owned()
                        } else {
                            one_line(&one.pointer)
                        }
                    })
                    .collect();
                format!("differs at {}", places.join(", "))
            }
        };
        found.push(change(
            aspect,
            format!("`{server}.{name}`: its {} {message}", one_line(key)),
        ));
    }
    found
}
