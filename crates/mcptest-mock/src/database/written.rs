//! The written form: `database:` of a manifest; `sql:` and `expect_rows:` of a tool.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The tables of the server, and their rows at the start of every session.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSpec {
    /// SQL that creates the tables, indexes, views and triggers: one or several statements of
    /// SQLite.
    pub schema: String,
    /// The rows by table, each a mapping of columns to values. Lists and mappings are stored as
    /// JSON text. No trigger sees them.
    #[serde(default)]
    #[schemars(schema_with = "rows_schema")]
    pub rows: Map<String, Value>,
}

fn rows_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "object"}},
    })
}

/// The statements of a tool: a string, or a list of strings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlSpec {
    /// The statements, in order.
    pub statements: Vec<String>,
    /// True if they are written as a list.
    pub is_list: bool,
}

impl<'de> Deserialize<'de> for SqlSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a statement or a list of statements")]
        enum Written {
            One(String),
            Many(Vec<String>),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::One(statement) => Self {
                statements: vec![statement],
                is_list: false,
            },
            Written::Many(statements) => Self {
                statements,
                is_list: true,
            },
        })
    }
}

impl JsonSchema for SqlSpec {
    fn schema_name() -> Cow<'static, str> {
        "Sql".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let statement = json_schema!({"type": "string", "minLength": 1});
        json_schema!({
            "description": "One statement of SQLite, or a list of statements that are carried out \
                together. `:name` is the argument `name`.",
            "anyOf": [statement, {"type": "array", "items": statement, "minItems": 1}],
        })
    }
}

/// The number of rows that a statement must return or change: a number, or bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowsBound {
    /// Exactly this number.
    #[serde(rename = "==")]
    pub equal: Option<u64>,
    /// At least this number.
    #[serde(rename = ">=")]
    pub at_least: Option<u64>,
    /// More than this number.
    #[serde(rename = ">")]
    pub more_than: Option<u64>,
    /// At most this number.
    #[serde(rename = "<=")]
    pub at_most: Option<u64>,
    /// Less than this number.
    #[serde(rename = "<")]
    pub less_than: Option<u64>,
}

impl RowsBound {
    /// Returns true if a number of rows is within the bounds.
    #[must_use]
    pub fn allows(&self, rows: u64) -> bool {
        self.equal.is_none_or(|bound| rows == bound)
            && self.at_least.is_none_or(|bound| rows >= bound)
            && self.more_than.is_none_or(|bound| rows > bound)
            && self.at_most.is_none_or(|bound| rows <= bound)
            && self.less_than.is_none_or(|bound| rows < bound)
    }
}

impl fmt::Display for RowsBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("", self.equal),
            ("at least ", self.at_least),
            ("more than ", self.more_than),
            ("at most ", self.at_most),
            ("less than ", self.less_than),
        ];
        let parts: Vec<(&str, u64)> = parts
            .into_iter()
            .filter_map(|(words, bound)| Some((words, bound?)))
            .collect();
        let noun = match parts[..] {
            [(_, 1)] => "row",
            _ => "rows",
        };
        let parts: Vec<String> = parts
            .iter()
            .map(|(words, bound)| format!("{words}{bound}"))
            .collect();
        write!(f, "{} {noun}", parts.join(" and "))
    }
}

/// The expected numbers of rows: one bound, or a list with one for each statement.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectRowsSpec(pub Value);

impl<'de> Deserialize<'de> for ExpectRowsSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for ExpectRowsSpec {
    fn schema_name() -> Cow<'static, str> {
        "ExpectRows".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<RowsBound>();
        let number = json_schema!({"type": "integer", "minimum": 0});
        json_schema!({
            "description": "The number of rows that the statement must return or change: a number \
                or bounds such as `{\">=\": 1}`. With several statements, a list with an entry for \
                each; `null` allows any number.",
            "anyOf": [
                number,
                bounds,
                {"type": "array", "items": {"anyOf": [number, bounds, {"type": "null"}]}},
            ],
        })
    }
}

/// Reads one bound: a number or a mapping. `None` allows any number of rows.
pub(crate) fn rows_bound(value: &Value) -> Result<Option<RowsBound>, String> {
    let bound = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => RowsBound {
            equal: Some(
                number
                    .as_u64()
                    .ok_or("the number of rows must be a whole number")?,
            ),
            ..RowsBound::default()
        },
        other => RowsBound::deserialize(other)
            .map_err(|_| "write a number of rows, or bounds such as `{\">=\": 1}`")?,
    };
    if bound == RowsBound::default() {
        return Err("there is no bound: write for example `{\">=\": 1}`".to_owned());
    }
    Ok(Some(bound))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_are_numbers_or_comparisons() {
        let bound = |value: Value| rows_bound(&value).unwrap().unwrap();
        let one = bound(json!(1));
        assert!(one.allows(1) && !one.allows(0) && !one.allows(2));
        assert_eq!(one.to_string(), "1 row");
        let some = bound(json!({">=": 1, "<": 3}));
        assert!(!some.allows(0) && some.allows(1) && some.allows(2) && !some.allows(3));
        assert_eq!(some.to_string(), "at least 1 and less than 3 rows");
        let most = bound(json!({">": 0, "<=": 2}));
        assert!(!most.allows(0) && most.allows(2) && !most.allows(3));
        assert_eq!(rows_bound(&Value::Null), Ok(None));
        for wrong in [
            json!(-1),
            json!(1.5),
            json!({}),
            json!({"~": 1}),
            json!("1"),
        ] {
            assert!(rows_bound(&wrong).is_err(), "{wrong}");
        }
    }
}
