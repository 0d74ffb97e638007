//! Conditions on a selected value.
//!
//! A matcher is a mapping with one key, or several that must all hold:
//!
//! | matcher | holds when the value |
//! |---|---|
//! | `exact: v` | equals `v` deeply; numbers by value, so `1` is `1.0` |
//! | `contains: v` | text: has the substring; list: has an element equal to `v`, or for a list `v` all of them (a multiset); object: has these keys with these values, nested ones too |
//! | `icontains: v` | the same without regard to case |
//! | `contains-all: [..]`, `contains-any: [..]` | contains every, or at least one, of these |
//! | `not: m` | does not match `m` |
//! | `any-of: [m, ..]`, `all-of: [m, ..]` | matches at least one, or every one |
//! | `any: m`, `every: m`, `none: m` | is a list of which at least one element, every element, or no element matches |
//! | `regex: r` | is a string in which `r` is found (anchor with `^` and `$`) |
//! | `schema: s` | is valid under this JSON Schema |
//! | `length: n` or `length: {">=": n}` | has this many characters, elements or keys |
//! | `type: t` | is a `string`, `number`, `integer`, `boolean`, `array`, `object` or `null` |
//! | `exists: true`, `exists: false` | is there, or is not |
//! | `">="`, `">"`, `"<="`, `"<"` | is a number that compares so |
//! | `"=="`, `"!="` | equals, or differs, as `exact` compares |
//! | `llm-judge: {..}`, `llm-jury: {..}` | is good enough in the eyes of a model, or of enough models: see [`crate::judged`] |
//!
//! A value that is not there matches nothing but `exists: false`, not even `not`: an assertion
//! about something that was never observed must not pass by accident.

mod apply;
mod compile;
mod contains;
mod diff;
mod holds_over;
mod json_schema;
mod pattern;
mod schema;
mod spelling;

pub use apply::Mismatch;
pub use diff::{Difference, differences};
pub use json_schema::JsonSchema;
pub use schema::matcher_schema;
pub use spelling::other_spelling;

pub use crate::problem::Problem;
use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::judge::Judge;

/// A matcher that is ready to be applied, with its written form.
#[derive(Debug, Clone)]
pub struct Matcher {
    written: Value,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
enum Rule {
    Exact(Value),
    Contains { wanted: Value, ignore_case: bool },
    ContainsAll(Vec<Value>),
    ContainsAny(Vec<Value>),
    Not(Matcher),
    AnyOf(Vec<Matcher>),
    AllOf(Vec<Matcher>),
    Any(Matcher),
    Every(Matcher),
    None(Matcher),
    Regex(pattern::Pattern),
    Schema(JsonSchema),
    Length(Box<Matcher>),
    Type(TypeName),
    Exists(bool),
    Compare(Comparison, Value),
    Judged(Box<Judge>),
}

/// The six comparison signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    Above,
    AtMost,
    Below,
    Equal,
    NotEqual,
}

impl Comparison {
    const ALL: [(&'static str, Self); 6] = [
        (">=", Self::AtLeast),
        (">", Self::Above),
        ("<=", Self::AtMost),
        ("<", Self::Below),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
    ];

    fn parse(sign: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == sign)
            .map(|(_, comparison)| *comparison)
    }

    /// The relation of a number to the bound that it violates.
    fn broken_words(self) -> &'static str {
        match self {
            Self::AtLeast => "less than",
            Self::Above => "not more than",
            Self::AtMost => "more than",
            Self::Below => "not less than",
            Self::Equal => "not equal to",
            Self::NotEqual => "equal to",
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::AtLeast => order != Ordering::Less,
            Self::Above => order == Ordering::Greater,
            Self::AtMost => order != Ordering::Greater,
            Self::Below => order == Ordering::Less,
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
        }
    }
}

/// JSON's types, with whole numbers told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypeName {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    Null,
}

impl TypeName {
    const ALL: [(&'static str, Self); 7] = [
        ("string", Self::String),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("boolean", Self::Boolean),
        ("array", Self::Array),
        ("object", Self::Object),
        ("null", Self::Null),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, found)| *found)
    }
}

impl Matcher {
    /// The matcher `{">=": value}`, for default expectations.
    #[must_use]
    pub fn at_least(value: impl Into<Value>) -> Self {
        let value = value.into();
        Self {
            written: serde_json::json!({ ">=": value }),
            rules: vec![Rule::Compare(Comparison::AtLeast, value)],
        }
    }

    /// The matcher `{"<=": value}`, for default expectations.
    #[must_use]
    pub fn at_most(value: u64) -> Self {
        Self {
            written: serde_json::json!({ "<=": value }),
            rules: vec![Rule::Compare(Comparison::AtMost, value.into())],
        }
    }

    /// The matcher `{exact: value}`.
    #[must_use]
    pub fn exact(value: Value) -> Self {
        Self {
            written: Value::Object(serde_json::Map::from_iter([(
                "exact".to_owned(),
                value.clone(),
            )])),
            rules: vec![Rule::Exact(value)],
        }
    }

    /// The judge, for a matcher that asks one.
    #[must_use]
    pub fn judge(&self) -> Option<&Judge> {
        match self.rules.as_slice() {
            [Rule::Judged(judge)] => Some(judge),
            _ => None,
        }
    }

    /// As it was written.
    #[must_use]
    pub fn written(&self) -> &Value {
        &self.written
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value::Object(map) = &self.written else {
            return write!(f, "{}", self.written);
        };
        for (index, (key, value)) in map.iter().enumerate() {
            if index > 0 {
                f.write_str(" and ")?;
            }
            write!(f, "{key} {value}")?;
        }
        Ok(())
    }
}
