//! Validation of arguments against a tool's input schema.

use std::sync::OnceLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};

use crate::jsonrpc::clip;
use crate::template::escape_token;

/// The largest number of problems reported for one call.
const MAX_PROBLEMS: usize = 20;

/// The validation of one tool's arguments; the schema is compiled on the first call.
#[derive(Debug)]
pub(crate) struct ArgumentCheck {
    schema: Option<Value>,
    validator: OnceLock<Option<Validator>>,
}

/// One error in the arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArgumentProblem {
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl ArgumentCheck {
    /// Creates the check. Without a schema, or with an unusable one (captured catalogs may contain
    /// such), all arguments are valid.
    pub(crate) fn new(schema: Option<Value>) -> Self {
        Self {
            schema,
            validator: OnceLock::new(),
        }
    }

    /// The errors in these arguments.
    pub(crate) fn problems(&self, arguments: &Value) -> Vec<ArgumentProblem> {
        let validator = self.validator.get_or_init(|| {
            let schema = self.schema.as_ref()?;
            jsonschema::validator_for(schema).ok()
        });
        match validator {
            Some(validator) if !validator.is_valid(arguments) => {
                let errors = validator.iter_errors(arguments);
                let problems = errors.flat_map(|error| ArgumentProblem::of(&error));
                problems.take(MAX_PROBLEMS).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl ArgumentProblem {
    fn of(error: &jsonschema::ValidationError<'_>) -> Vec<Self> {
        let at = error.instance_path().as_str();
        let member = |name: &str, message: &str| Self {
            pointer: format!("{at}/{}", escape_token(name)),
            message: message.to_owned(),
        };
        match error.kind() {
            // The position of a missing or unexpected member is more helpful than that of its
            // object.
            ValidationErrorKind::Required {
                property: Value::String(name),
            } => vec![member(name, "is required")],
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
                .iter()
                .take(MAX_PROBLEMS)
                .map(|name| member(name, "is not allowed"))
                .collect(),
            _ => vec![Self {
                pointer: at.to_owned(),
                // Without the value, which may have any size.
                message: clip(&error.masked().to_string()).into_owned(),
            }],
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"pointer": clip(&self.pointer), "message": self.message})
    }

    /// One line: the JSON pointer and the error.
    pub(crate) fn line(&self) -> String {
        let pointer = match self.pointer.as_str() {
            "" => "(root)".into(),
            pointer => clip(pointer),
        };
        format!("{pointer}: {}", self.message)
    }
}

/// The error of an unusable schema: the position in it and a message.
pub(crate) fn schema_problem(schema: &Value) -> Option<(String, String)> {
    let error = jsonschema::validator_for(schema).err()?;
    let message = error.to_string();
    Some((
        error.instance_path().as_str().to_owned(),
        clip(&message).into_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_name_their_position() {
        let check = ArgumentCheck::new(Some(json!({
            "type": "object", "required": ["a/b"],
            "maxProperties": 3, "additionalProperties": false,
            "properties": {"a/b": {}, "n": {"type": "array", "items": {"type": "integer"}}}
        })));
        let lines = |arguments: &Value| -> Vec<String> {
            let problems = check.problems(arguments);
            problems.iter().map(ArgumentProblem::line).collect()
        };
        assert_eq!(lines(&json!({"a/b": 1, "n": [1]})), Vec::<String>::new());
        let mut found = lines(&json!({"n": [1, "x"], "z": 1}));
        found.sort();
        assert_eq!(
            found,
            [
                "/a~1b: is required",
                "/n/1: value is not of type \"integer\"",
                "/z: is not allowed",
            ]
        );
        let many = lines(&json!({"a/b": 1, "1": 1, "2": 1, "3": 1}));
        assert!(
            many.contains(&"(root): value has more than 3 properties".to_owned()),
            "{many:?}"
        );
        assert_eq!(
            lines(&json!({"a/b": 1, "n": vec!["x"; 1000]})).len(),
            MAX_PROBLEMS
        );
    }

    #[test]
    fn an_unusable_schema_checks_nothing() {
        for schema in [
            json!({"type": 7}),
            json!("?"),
            json!({"$ref": "http://localhost:9/x"}),
        ] {
            assert!(schema_problem(&schema).is_some(), "{schema}");
            assert!(
                ArgumentCheck::new(Some(schema))
                    .problems(&json!({}))
                    .is_empty()
            );
        }
        assert!(ArgumentCheck::new(None).problems(&json!({})).is_empty());
        assert_eq!(schema_problem(&json!({"type": "object"})), None);
    }
}
