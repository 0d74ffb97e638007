//! Templates: strings with values of the run, written `{{name}}` or `{{name|filter}}`.

use std::fmt;

use serde_json::Value;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Reference),
}

/// A value in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    filter: Option<Filter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    Json,
    Toml,
}

/// The names of all filters.
pub(crate) const FILTERS: [&str; 2] = ["json", "toml"];

/// A template that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// `{{name` without its end.
    Unclosed(String),
    /// An unknown filter.
    Filter(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed(text) => write!(
                f,
                "`{text}` is not a value: write `{{{{name}}}}` or `{{{{name|json}}}}`"
            ),
            Self::Filter(name) => write!(f, "unknown filter `{name}`"),
        }
    }
}

impl Template {
    /// Parses a template. `{{` that no name follows is text: JSON settings may contain it.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            literal.push_str(&rest[..start]);
            let inner = &rest[start + 2..];
            if !inner
                .trim_start_matches(' ')
                .starts_with(|c: char| c.is_ascii_alphabetic())
            {
                literal.push('{');
                rest = &rest[start + 1..];
                continue;
            }
            let (reference, length) = reference(inner)?;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Value(reference));
            rest = &inner[length..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { parts })
    }

    /// The values that it contains.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(reference) => Some(reference),
            Part::Text(_) => None,
        })
    }

    /// The value of a template that is just one value without a filter.
    pub(crate) fn only_value(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Value(reference)] if reference.filter.is_none() => Some(&reference.name),
            _ => None,
        }
    }

    /// Inserts the values. A value that is not set (`null`) is an empty string.
    pub(crate) fn render(&self, lookup: &dyn Fn(&str) -> Value) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Value(reference) => {
                    let value = lookup(&reference.name);
                    match (reference.filter, value) {
                        (Some(Filter::Json), value) => text.push_str(&value.to_string()),
                        (Some(Filter::Toml), value) => text.push_str(&toml(&value)),
                        (None, Value::Null) => {}
                        (None, Value::String(value)) => text.push_str(&value),
                        (None, value) => text.push_str(&value.to_string()),
                    }
                }
            }
        }
        text
    }
}

/// Parses the inside of `{{…}}`; gives the length up to its end.
fn reference(inner: &str) -> Result<(Reference, usize), TemplateError> {
    let unclosed = || {
        let shown: String = inner.chars().take(30).collect();
        TemplateError::Unclosed(format!("{{{{{shown}"))
    };
    let end = inner.find("}}").ok_or_else(unclosed)?;
    let content = &inner[..end];
    let (name, filter) = match content.split_once('|') {
        Some((name, filter)) => (name.trim(), Some(filter.trim())),
        None => (content.trim(), None),
    };
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    if !is_name(name) {
        return Err(unclosed());
    }
    let filter = match filter {
        None => None,
        Some("json") => Some(Filter::Json),
        Some("toml") => Some(Filter::Toml),
        Some(other) => return Err(TemplateError::Filter(other.to_owned())),
    };
    let name = name.to_owned();
    Ok((Reference { name, filter }, end + 2))
}

/// Returns true if a value counts as set in a condition.
pub(crate) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// A value in TOML. `null` has no form there and becomes an empty string.
fn toml(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => toml_string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{} = {}", toml_string(key), toml(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// A basic string of TOML: JSON's escapes are valid there, except for DEL, which must be escaped.
fn toml_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn render(text: &str) -> String {
        Template::parse(text).unwrap().render(&|name| match name {
            "prompt" => json!("say \"hi\" {{model}}"),
            "args" => json!(["-a", "b c"]),
            "env" => json!({"K": "v"}),
            _ => Value::Null,
        })
    }

    #[test]
    fn values_are_inserted_once() {
        assert_eq!(render("<{{prompt}}>"), "<say \"hi\" {{model}}>");
        assert_eq!(render("{{ prompt | json }}"), r#""say \"hi\" {{model}}""#);
        assert_eq!(render("{{args}} {{unset}}."), r#"["-a","b c"] ."#);
        assert_eq!(render("args = {{args|toml}}"), r#"args = ["-a", "b c"]"#);
        assert_eq!(render("env = {{env|toml}}"), r#"env = { "K" = "v" }"#);
    }

    #[test]
    fn braces_of_json_are_text() {
        assert_eq!(
            render(r#"{"a":{"b":{{args}}}}"#),
            r#"{"a":{"b":["-a","b c"]}}"#
        );
        assert_eq!(render(r#"{{{args}}}"#), r#"{["-a","b c"]}"#);
        assert_eq!(render("{{}} {{ {{1}} {{\"a\""), "{{}} {{ {{1}} {{\"a\"");
    }

    #[test]
    fn mistakes_are_errors() {
        assert_eq!(
            Template::parse("{{prompt|yaml}}"),
            Err(TemplateError::Filter("yaml".into()))
        );
        for text in ["{{prompt", "{{prompt}", "{{a b}}", "{{a.b}}"] {
            assert!(
                matches!(Template::parse(text), Err(TemplateError::Unclosed(_))),
                "{text}"
            );
        }
    }

    proptest! {
        /// A template without values is its own text.
        #[test]
        fn text_stays(text in "[ -z|~{}]{0,40}") {
            if let Ok(template) = Template::parse(&text)
                && template.references().next().is_none()
            {
                prop_assert_eq!(template.render(&|_| Value::Null), text);
            }
        }

        /// Strings in JSON and TOML are read back as they were.
        #[test]
        fn strings_are_escaped(text in any::<String>()) {
            let template = Template::parse("{{prompt|json}}").unwrap();
            let rendered = template.render(&|_| Value::from(text.as_str()));
            prop_assert_eq!(serde_json::from_str::<String>(&rendered).unwrap(), text);
        }
    }
}
