//! Resources by URI and by pattern, and completions for prompts and patterns.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::compile::{Prompt, Resource, ResourceTemplate};
use crate::jsonrpc::{RpcError, clip, string_param, write_json};
use crate::listed::{Listed, Outcome, members};
use crate::server_changes::ServerChanges;

/// The largest number of values of a completion.
const MAX_COMPLETIONS: usize = 100;

/// A resource that can be read.
#[derive(Debug)]
pub(crate) struct ServedResource {
    /// The members of the result: at first, and after each update.
    contents: Vec<Vec<u8>>,
    /// True if clients may subscribe to it.
    pub(crate) subscribe: bool,
}

impl ServedResource {
    pub(crate) fn new(resource: &Resource) -> Self {
        let contents = resource.contents.iter().map(|contents| {
            let mut text = br#""contents":["#.to_vec();
            write_json(&mut text, contents);
            text.push(b']');
            text
        });
        Self {
            contents: contents.collect(),
            subscribe: resource.subscribe,
        }
    }

    /// The members of the result after the updates so far. The last content stays.
    pub(crate) fn contents(&self, changes: &ServerChanges, uri: &str) -> &[u8] {
        let last = self.contents.len().saturating_sub(1);
        let current = match last {
            0 => 0,
            last => changes.updates_of(uri).min(last),
        };
        self.contents.get(current).map_or(&[], Vec::as_slice)
    }
}

impl ResourceTemplate {
    /// The variables of this URI, if it matches the pattern.
    pub(crate) fn variables(&self, uri: &str) -> Option<Value> {
        let mut literals = self.literals.iter();
        let mut rest = uri.strip_prefix(literals.next()?.as_str())?;
        let mut variables = Map::new();
        for (index, (name, literal)) in self.names.iter().zip(literals).enumerate() {
            let last = index + 1 == self.names.len();
            let end = if last {
                rest.strip_suffix(literal.as_str())?.len()
            } else {
                rest.find(literal.as_str())?
            };
            let value = &rest[..end];
            if value.is_empty() || value.contains('/') {
                return None;
            }
            variables.insert(name.clone(), value.into());
            rest = &rest[end + literal.len()..];
        }
        Some(variables.into())
    }
}

/// Reads a resource by its pattern.
pub(crate) fn read_by_pattern<'a>(
    templates: &[ResourceTemplate],
    uri: &str,
) -> Option<Outcome<'a>> {
    let (template, variables) = templates
        .iter()
        .find_map(|template| Some((template, template.variables(uri)?)))?;
    let mut contents = br#""contents":[{"uri":"#.to_vec();
    write_json(&mut contents, uri);
    template.contents.render(&variables, &mut contents);
    contents.extend_from_slice(b"}]");
    Some(Outcome::cacheable(contents))
}

/// `completion/complete`: the declared values that begin with what was typed.
pub(crate) fn complete<'a>(
    prompts: Option<&Listed<Prompt>>,
    templates: &[ResourceTemplate],
    params: &Map<String, Value>,
) -> Result<Outcome<'a>, RpcError> {
    let invalid = |what: &str| RpcError::invalid_params(format!("Invalid params: {what}"));
    let reference = params
        .get("ref")
        .and_then(Value::as_object)
        .ok_or_else(|| invalid("ref is not an object"))?;
    let argument = params
        .get("argument")
        .and_then(Value::as_object)
        .ok_or_else(|| invalid("argument is not an object"))?;
    let name = string_param(argument, "name")?;
    let typed = string_param(argument, "value")?;
    let known: &BTreeMap<String, Vec<String>> = match reference.get("type").and_then(Value::as_str)
    {
        Some("ref/prompt") => {
            let prompt = string_param(reference, "name")?;
            let found = prompts.and_then(|prompts| prompts.by_name.get(prompt));
            &found
                .ok_or_else(|| invalid(&format!("unknown prompt {}", clip(prompt))))?
                .complete
        }
        Some("ref/resource") => {
            let uri = string_param(reference, "uri")?;
            let found = templates.iter().find(|template| template.pattern == uri);
            &found
                .ok_or_else(|| invalid(&format!("unknown resource template {}", clip(uri))))?
                .complete
        }
        _ => return Err(invalid("ref.type is neither ref/prompt nor ref/resource")),
    };
    let matching: Vec<_> = known
        .get(name)
        .into_iter()
        .flatten()
        .filter(|value| value.starts_with(typed))
        .collect();
    let values: Vec<_> = matching.iter().take(MAX_COMPLETIONS).collect();
    Ok(Outcome::fresh(members(&json!({"completion": {
        "values": values, "total": matching.len(), "hasMore": matching.len() > values.len(),
    }}))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn pattern(literals: &[&str], names: &[&str]) -> ResourceTemplate {
        ResourceTemplate {
            literals: literals
                .iter()
                .map(|literal| (*literal).to_owned())
                .collect(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            pattern: String::new(),
            wire: Value::Null,
            contents: Template::default(),
            complete: BTreeMap::new(),
        }
    }

    #[test]
    fn uris_match_patterns() {
        let one = pattern(&["test://", "/data"], &["id"]);
        assert_eq!(one.variables("test://7/data"), Some(json!({"id": "7"})));
        for other in [
            "test://7",
            "test:///data",
            "test://7/8/data",
            "other://7/data",
            "test://",
        ] {
            assert_eq!(one.variables(other), None, "{other}");
        }
        let two = pattern(&["a/", "-", ""], &["x", "y"]);
        assert_eq!(
            two.variables("a/1-2-3"),
            Some(json!({"x": "1", "y": "2-3"}))
        );
        assert_eq!(two.variables("a/1-"), None);
    }
}
