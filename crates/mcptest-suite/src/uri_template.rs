//! URI templates (RFC 6570) of resources, and their expansion.

use iri_string::spec::UriSpec;
use iri_string::template::UriTemplateString;
use iri_string::template::simple_context::{SimpleContext, Value as Part};
use serde_json::{Map, Value};

/// A template that cannot be parsed or expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UriTemplateError(String);

/// A URI template.
#[derive(Debug, Clone)]
pub struct UriTemplate(UriTemplateString);

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// The reason why it is not one.
    pub fn parse(text: &str) -> Result<Self, UriTemplateError> {
        UriTemplateString::try_from(text)
            .map(Self)
            .map_err(|error| UriTemplateError(error.to_string()))
    }

    /// The template as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The names of its variables, each once.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.0.variables() {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    /// True if every use of a variable is in a query (`{?year}`, `{&year}`), where it may be left
    /// out.
    #[must_use]
    pub fn is_optional(&self, variable: &str) -> bool {
        let expressions = self.as_str().split('{').skip(1);
        let mut expressions = expressions.filter_map(|rest| rest.split('}').next());
        !expressions.any(|expression| {
            let names = expression.trim_start_matches(['+', '#', '.', '/', ';']);
            !names.starts_with(['?', '&'])
                && names
                    .split(',')
                    .map(|name| name.split([':', '*']).next().unwrap_or_default())
                    .any(|name| name == variable)
        })
    }

    /// The URI for these values. A variable without a value is left out, as the standard says.
    ///
    /// # Errors
    /// A value of a form that a URI cannot have.
    pub fn expand(&self, values: &Map<String, Value>) -> Result<String, UriTemplateError> {
        let mut context = SimpleContext::new();
        for (name, value) in values {
            context.insert(name.clone(), part(value));
        }
        let expanded = self.0.expand::<UriSpec, _>(&context);
        expanded.map(|uri| uri.to_string()).map_err(|error| {
            UriTemplateError(format!("`{}` cannot be expanded: {error}", self.as_str()))
        })
    }
}

/// The value of a variable: lists and mappings are expanded as the standard says, other values are
/// text.
fn part(value: &Value) -> Part {
    match value {
        Value::Null => Part::Undefined,
        Value::Array(items) => Part::List(items.iter().map(plain_text).collect()),
        Value::Object(map) => {
            let pairs = map.iter();
            Part::Assoc(
                pairs
                    .map(|(key, value)| (key.clone(), plain_text(value)))
                    .collect(),
            )
        }
        other => Part::String(plain_text(other)),
    }
}

/// A value as text: a string as it is, anything else as JSON.
#[must_use]
pub fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expand(template: &str, values: Value) -> String {
        let Value::Object(values) = values else {
            panic!("an object");
        };
        UriTemplate::parse(template)
            .unwrap()
            .expand(&values)
            .unwrap()
    }

    /// Examples of the standard, section 3.2.
    #[test]
    fn templates_are_expanded_as_the_standard_requires() {
        let values = json!({
            "var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": 1024, "y": "768",
            "list": ["red", "green", "blue"], "keys": {"semi": ";", "dot": "."}, "empty": "",
            "undef": null,
        });
        for (template, uri) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{+path}/here", "/foo/bar/here"),
            ("O{undef}X", "OX"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("{/list*}", "/red/green/blue"),
            ("{?x,y}", "?x=1024&y=768"),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{&list}", "&list=red,green,blue"),
            ("{;keys*}", ";semi=%3B;dot=."),
            ("{var:3}", "val"),
            ("{#path}", "#/foo/bar"),
            ("{?empty}", "?empty="),
        ] {
            assert_eq!(expand(template, values.clone()), uri, "{template}");
        }
    }

    #[test]
    fn variables_are_listed_once_and_bad_templates_refused() {
        let template = UriTemplate::parse("note://{id}/{part}{?id,q*}").unwrap();
        assert_eq!(template.variables(), ["id", "part", "q"]);
        assert!(template.is_optional("q"));
        assert!(!template.is_optional("id") && !template.is_optional("part"));
        for bad in ["note://{id", "{}", "{=x}", "a}b"] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
