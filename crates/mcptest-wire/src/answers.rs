//! The client's answers to requests of the server: for roots, for user input, for model output.
//!
//! Up to 2025-11-25 a server sends its own requests; from 2026-07-28 on it answers a call with
//! `input_required` and the call is repeated with the answers. Both ask the same questions, so both
//! are answered here. Nothing is offered by default: a server must not get an invented answer.

use mcptest_protocol::Revision;
use serde_json::{Map, Value, json};

use crate::handler::{Answering, ClientHandler};
use crate::jsonrpc::RpcError;

/// The error code for a method that is not offered.
const METHOD_NOT_FOUND: i64 = -32601;

/// The answers offered to servers. The default is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    /// The answer to `roots/list`, as `file://` URLs.
    pub roots: Option<Vec<String>>,
    /// The answer to `elicitation/create`.
    pub elicitation: Option<Elicitation>,
    /// The model's answer to `sampling/createMessage`.
    pub sampling: Option<String>,
}

/// The user's reaction to a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicitation {
    /// Accepts with the defaults of the form; a required field without a default gets the simplest
    /// value that its schema allows.
    Accept,
    /// Declines.
    Decline,
    /// Cancels.
    Cancel,
}

impl Answers {
    /// The capabilities that a client with these answers advertises.
    #[must_use]
    pub fn declared(&self) -> Value {
        let mut capabilities = Map::new();
        if self.roots.is_some() {
            capabilities.insert("roots".to_owned(), json!({}));
        }
        if self.elicitation.is_some() {
            capabilities.insert("elicitation".to_owned(), json!({}));
        }
        if self.sampling.is_some() {
            capabilities.insert("sampling".to_owned(), json!({}));
        }
        Value::Object(capabilities)
    }

    /// The answer to a request, or an error if it is not offered.
    fn answer(&self, method: &str, params: Option<&Value>) -> Result<Value, RpcError> {
        let answer = match method {
            "roots/list" => self.roots.as_ref().map(|roots| {
                let roots: Vec<Value> = roots.iter().map(|uri| json!({"uri": uri})).collect();
                json!({"roots": roots})
            }),
            "elicitation/create" => self.elicitation.map(|action| action.respond(params)),
            "sampling/createMessage" => self.sampling.as_ref().map(|text| {
                json!({
                    "role": "assistant",
                    "content": {"type": "text", "text": text},
                    "model": "mcptest",
                    "stopReason": "endTurn",
                })
            }),
            _ => None,
        };
        answer.ok_or_else(|| not_offered(method))
    }
}

impl ClientHandler for Answers {
    fn capabilities(&self, _: Revision) -> Value {
        self.declared()
    }

    fn asked(&self, method: &str, params: Option<&Value>) -> Answering {
        Answering::Now(self.answer(method, params))
    }

    fn notified(&self, _: &str, _: Option<&Value>) {}
}

/// The error for a request that the client does not offer.
#[must_use]
pub fn not_offered(method: &str) -> RpcError {
    RpcError {
        code: METHOD_NOT_FOUND,
        message: format!("the client does not offer {method}"),
        data: None,
    }
}

impl Elicitation {
    /// The answer to `elicitation/create` with these parameters.
    #[must_use]
    pub fn respond(self, params: Option<&Value>) -> Value {
        // Only forms are offered: there is nobody to visit a URL.
        let is_form = params
            .and_then(|params| params.get("mode")?.as_str())
            .is_none_or(|mode| mode == "form");
        match self {
            Self::Accept if is_form => {
                let schema = params.and_then(|params| params.get("requestedSchema"));
                json!({"action": "accept", "content": filled_in(schema)})
            }
            Self::Accept | Self::Decline => json!({"action": "decline"}),
            Self::Cancel => json!({"action": "cancel"}),
        }
    }
}

/// A form with its defaults, and with the simplest value for other required fields.
fn filled_in(schema: Option<&Value>) -> Value {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let required: Vec<&str> = schema
        .and_then(|schema| schema.get("required")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut form = Map::new();
    for (name, field) in properties.into_iter().flatten() {
        if let Some(default) = field.get("default") {
            form.insert(name.clone(), default.clone());
        } else if required.contains(&name.as_str()) {
            form.insert(name.clone(), simplest(field));
        }
    }
    Value::Object(form)
}

/// The simplest value that a field of a form allows. Forms are flat, so a part of JSON Schema is
/// enough.
fn simplest(field: &Value) -> Value {
    let first_choice = field
        .get("enum")
        .and_then(|choices| choices.get(0))
        .or_else(|| field.get("oneOf")?.get(0)?.get("const"));
    if let Some(choice) = first_choice {
        return choice.clone();
    }
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => json!(false),
        Some("integer" | "number") => field.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        Some("array") => {
            let min = field
                .get("minItems")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(100);
            let choices = field
                .get("items")
                .map(|items| items.get("enum").or_else(|| items.get("anyOf")));
            let choices = choices
                .flatten()
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let choices = choices.map(|choice| choice.get("const").unwrap_or(choice).clone());
            Value::Array(choices.take(usize::try_from(min).unwrap_or(0)).collect())
        }
        _ => {
            let text = match field.get("format").and_then(Value::as_str) {
                Some("email") => "user@example.com",
                Some("uri") => "https://example.com",
                Some("date") => "2026-01-01",
                Some("date-time") => "2026-01-01T00:00:00Z",
                _ => "text",
            };
            let min = field
                .get("minLength")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(10_000);
            let min = usize::try_from(min).unwrap_or(0);
            json!(format!("{text:x<min$}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Answers {
        Answers {
            roots: Some(vec!["file:///work".to_owned()]),
            elicitation: Some(Elicitation::Accept),
            sampling: Some("Hello.".to_owned()),
        }
    }

    #[test]
    fn nothing_is_offered_by_default() {
        let none = Answers::default();
        assert_eq!(none.declared(), json!({}));
        for method in [
            "roots/list",
            "elicitation/create",
            "sampling/createMessage",
            "x",
        ] {
            let refused = none.answer(method, None).expect_err("refused");
            assert_eq!(refused.code, METHOD_NOT_FOUND);
        }
        assert_eq!(
            all().declared(),
            json!({"roots": {}, "elicitation": {}, "sampling": {}})
        );
    }

    #[test]
    fn a_form_is_accepted_with_its_defaults() {
        let params = json!({"requestedSchema": {
            "properties": {
                "name": {"type": "string", "default": "John"},
                "age": {"type": "integer", "default": 30},
                "omitted": {"type": "string"},
                "mail": {"type": "string", "format": "email"},
                "long": {"type": "string", "minLength": 6},
                "level": {"type": "integer", "minimum": 3},
                "yes": {"type": "boolean"},
                "one": {"oneOf": [{"const": "b"}, {"const": "c"}]},
                "many": {
                    "type": "array", "minItems": 1,
                    "items": {"anyOf": [{"const": "d"}, {"const": "e"}]},
                },
            },
            "required": ["mail", "long", "level", "yes", "one", "many"],
        }});
        assert_eq!(
            all().answer("elicitation/create", Some(&params)).ok(),
            Some(json!({"action": "accept", "content": {
                "name": "John", "age": 30, "mail": "user@example.com", "long": "textxx",
                "level": 3, "yes": false, "one": "b", "many": ["d"],
            }}))
        );
        let address = json!({"mode": "url", "url": "https://example.com"});
        let declined = Some(json!({"action": "decline"}));
        assert_eq!(
            all().answer("elicitation/create", Some(&address)).ok(),
            declined
        );
    }

    #[test]
    fn a_hostile_form_gets_a_bounded_answer() {
        let field = json!({"type": "string", "minLength": u64::MAX});
        assert_eq!(simplest(&field).as_str().map(str::len), Some(10_000));
        assert_eq!(filled_in(Some(&json!({"properties": 3}))), json!({}));
        assert_eq!(filled_in(None), json!({}));
    }
}
