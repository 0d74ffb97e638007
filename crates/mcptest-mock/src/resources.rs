//! Resources by address and by pattern, and completions for prompts and patterns.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::calls::text_param;
use crate::compile::{Prompt, ResourceTemplate};
use crate::jsonrpc::{RpcError, clip, write_json};
use crate::listed::{Listed, Outcome, members};

/// How many values a completion may have.
const MAX_COMPLETIONS: usize = 100;

impl ResourceTemplate {
    /// The parts of this address, if it follows the pattern.
    pub(crate) fn parts(&self, uri: &str) -> Option<Value> {
        let mut texts = self.texts.iter();
        let mut rest = uri.strip_prefix(texts.next()?.as_str())?;
        let mut parts = Map::new();
        for (index, (name, text)) in self.names.iter().zip(texts).enumerate() {
            let last = index + 1 == self.names.len();
            let end = if last {
                rest.strip_suffix(text.as_str())?.len()
            } else {
                rest.find(text.as_str())?
            };
            let part = &rest[..end];
            if part.is_empty() || part.contains('/') {
                return None;
            }
            parts.insert(name.clone(), part.into());
            rest = &rest[end + text.len()..];
        }
        Some(parts.into())
    }
}

/// Reads a resource that only a pattern knows.
pub(crate) fn read_by_pattern<'a>(
    templates: &[ResourceTemplate],
    uri: &str,
) -> Option<Outcome<'a>> {
    let (template, parts) = templates
        .iter()
        .find_map(|template| Some((template, template.parts(uri)?)))?;
    let mut contents = br#""contents":[{"uri":"#.to_vec();
    write_json(&mut contents, uri);
    template.contents.render(&parts, &mut contents);
    contents.extend_from_slice(b"}]");
    Some(Outcome::cacheable(contents))
}

/// `completion/complete`: the declared values that begin with what was typed.
pub(crate) fn complete<'a>(
    prompts: Option<&Listed<Prompt>>,
    templates: &[ResourceTemplate],
    params: &Map<String, Value>,
) -> Result<Outcome<'a>, RpcError> {
    let wrong = |what: &str| RpcError::invalid_params(format!("Invalid params: {what}"));
    let reference = params
        .get("ref")
        .and_then(Value::as_object)
        .ok_or_else(|| wrong("ref is not an object"))?;
    let argument = params
        .get("argument")
        .and_then(Value::as_object)
        .ok_or_else(|| wrong("argument is not an object"))?;
    let name = text_param(argument, "name")?;
    let typed = text_param(argument, "value")?;
    let known: &BTreeMap<String, Vec<String>> = match reference.get("type").and_then(Value::as_str)
    {
        Some("ref/prompt") => {
            let prompt = text_param(reference, "name")?;
            let found = prompts.and_then(|prompts| prompts.by_name.get(prompt));
            &found
                .ok_or_else(|| wrong(&format!("unknown prompt {}", clip(prompt))))?
                .complete
        }
        Some("ref/resource") => {
            let uri = text_param(reference, "uri")?;
            let found = templates.iter().find(|template| template.pattern == uri);
            &found
                .ok_or_else(|| wrong(&format!("unknown resource template {}", clip(uri))))?
                .complete
        }
        _ => return Err(wrong("ref.type is neither ref/prompt nor ref/resource")),
    };
    let fitting: Vec<_> = known
        .get(name)
        .into_iter()
        .flatten()
        .filter(|value| value.starts_with(typed))
        .collect();
    let values: Vec<_> = fitting.iter().take(MAX_COMPLETIONS).collect();
    Ok(Outcome::fresh(members(&json!({"completion": {
        "values": values, "total": fitting.len(), "hasMore": fitting.len() > values.len(),
    }}))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn pattern(texts: &[&str], names: &[&str]) -> ResourceTemplate {
        ResourceTemplate {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            pattern: String::new(),
            wire: Value::Null,
            contents: Template::default(),
            complete: BTreeMap::new(),
        }
    }

    #[test]
    fn addresses_follow_patterns() {
        let one = pattern(&["test://", "/data"], &["id"]);
        assert_eq!(one.parts("test://7/data"), Some(json!({"id": "7"})));
        for other in [
            "test://7",
            "test:///data",
            "test://7/8/data",
            "other://7/data",
            "test://",
        ] {
            assert_eq!(one.parts(other), None, "{other}");
        }
        let two = pattern(&["a/", "-", ""], &["x", "y"]);
        assert_eq!(two.parts("a/1-2-3"), Some(json!({"x": "1", "y": "2-3"})));
        assert_eq!(two.parts("a/1-"), None);
    }
}
