//! Written matcher to ready matcher; everything that can be wrong is found here, before anything
//! runs.

use serde_json::Value;

use super::json_schema::JsonSchema;
use super::pattern::Pattern;
use super::{Comparison, Matcher, Problem, Rule, TypeName};
use crate::judge::{self, Judge};
use mcptest_json::pointer_join;

impl Matcher {
    /// Compiles a written matcher.
    ///
    /// # Errors
    /// All problems, each with its pointer from `at`.
    pub fn compile(written: &Value, at: &str) -> Result<Self, Vec<Problem>> {
        let Value::Object(map) = written else {
            return Err(vec![Problem::new(
                at,
                "a matcher is a mapping, such as `exact: value`",
            )]);
        };
        if map.is_empty() {
            return Err(vec![Problem::new(
                at,
                "an empty matcher would match anything",
            )]);
        }
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        for (key, value) in map {
            match rule(key, value, &pointer_join(at, key)) {
                Ok(rule) => rules.push(rule),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() {
            Ok(Self {
                written: written.clone(),
                rules,
            })
        } else {
            Err(problems)
        }
    }
}

impl Matcher {
    /// Compiles the matcher of an expectation, which may ask a judge. A judged matcher must be the
    /// only one, because a part of a matcher could not be skipped.
    ///
    /// # Errors
    /// As [`Matcher::compile`].
    pub fn compile_for_test(written: &Value, at: &str) -> Result<Self, Vec<Problem>> {
        let judged = written.as_object().and_then(|map| {
            map.iter()
                .find(|(key, _)| judge::KEYS.contains(&key.as_str()))
                .filter(|_| map.len() == 1)
        });
        match judged {
            Some((key, value)) => Ok(Self {
                rules: vec![Rule::Judged(Box::new(Judge::compile(
                    key,
                    value,
                    &pointer_join(at, key),
                )?))],
                written: written.clone(),
            }),
            None => Self::compile(written, at),
        }
    }
}

fn rule(key: &str, value: &Value, at: &str) -> Result<Rule, Vec<Problem>> {
    let one = |problem: Problem| vec![problem];
    Ok(match key {
        "exact" => Rule::Exact(value.clone()),
        "contains" | "icontains" => Rule::Contains {
            wanted: value.clone(),
            ignore_case: key == "icontains",
        },
        "contains-all" | "contains_all" => Rule::ContainsAll(list(value, at)?.clone()),
        "contains-any" | "contains_any" => Rule::ContainsAny(list(value, at)?.clone()),
        "not" => Rule::Not(Matcher::compile(value, at)?),
        "any-of" | "any_of" => Rule::AnyOf(matchers(value, at)?),
        "all-of" | "all_of" => Rule::AllOf(matchers(value, at)?),
        "any" => Rule::Any(Matcher::compile(value, at)?),
        "every" => Rule::Every(Matcher::compile(value, at)?),
        "none" => Rule::None(Matcher::compile(value, at)?),
        "regex" => {
            let pattern = value
                .as_str()
                .ok_or_else(|| one(Problem::new(at, "`regex` takes a text")))?;
            Rule::Regex(Pattern::new(pattern).map_err(|error| {
                one(
                    Problem::new(at, format!("not a valid regular expression: {}", last_line(&error)))
                        .help("the syntax is that of Rust's `regex` crate: no look-around, no back-references"),
                )
            })?)
        }
        "schema" => Rule::Schema(JsonSchema::new(value, at)?),
        "length" => Rule::Length(Box::new(length(value, at)?)),
        "type" => Rule::Type(value.as_str().and_then(TypeName::parse).ok_or_else(|| {
            let known: Vec<_> = TypeName::ALL.iter().map(|(name, _)| *name).collect();
            one(Problem::new(
                at,
                format!("`type` takes one of {}", known.join(", ")),
            ))
        })?),
        "exists" => Rule::Exists(
            value
                .as_bool()
                .ok_or_else(|| one(Problem::new(at, "`exists` takes true or false")))?,
        ),
        judged if judge::KEYS.contains(&judged) => {
            return Err(one(Problem::new(
                at,
                format!("`{judged}` must be the only matcher: it cannot be part of another one"),
            )
            .on_key()
            .help("write it as a separate entry in the test's `expect:` list")));
        }
        sign => match Comparison::parse(sign) {
            Some(comparison @ (Comparison::Equal | Comparison::NotEqual)) => {
                Rule::Compare(comparison, value.clone())
            }
            Some(comparison) if value.is_number() => Rule::Compare(comparison, value.clone()),
            Some(_) => {
                return Err(one(Problem::new(
                    at,
                    format!("`{sign}` compares with a number"),
                )));
            }
            None => return Err(one(Problem::new(at, format!("unknown matcher `{key}`")))),
        },
    })
}

fn list<'a>(value: &'a Value, at: &str) -> Result<&'a Vec<Value>, Vec<Problem>> {
    match value {
        Value::Array(items) if !items.is_empty() => Ok(items),
        Value::Array(_) => Err(vec![Problem::new(at, "an empty list would say nothing")]),
        _ => Err(vec![Problem::new(at, "expected a list")]),
    }
}

fn matchers(value: &Value, at: &str) -> Result<Vec<Matcher>, Vec<Problem>> {
    let mut compiled = Vec::new();
    let mut problems = Vec::new();
    for (index, item) in list(value, at)?.iter().enumerate() {
        match Matcher::compile(item, &format!("{at}/{index}")) {
            Ok(matcher) => compiled.push(matcher),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        Ok(compiled)
    } else {
        Err(problems)
    }
}

/// A number, or comparisons.
fn length(value: &Value, at: &str) -> Result<Matcher, Vec<Problem>> {
    match value {
        Value::Number(number) if number.is_u64() => Ok(Matcher::exact(value.clone())),
        Value::Object(map) if map.keys().all(|key| Comparison::parse(key).is_some()) => {
            Matcher::compile(value, at)
        }
        _ => Err(vec![Problem::new(
            at,
            "`length` takes a count or comparisons, such as `{\">=\": 1}`",
        )]),
    }
}

fn last_line(text: &str) -> &str {
    text.lines()
        .last()
        .unwrap_or(text)
        .trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(written: Value) -> Vec<(String, String)> {
        Matcher::compile(&written, "/m")
            .expect_err("must be refused")
            .into_iter()
            .map(|problem| (problem.pointer, problem.message))
            .collect()
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        for (written, pointer, words) in [
            (json!({}), "/m", "would match anything"),
            (json!(5), "/m", "a matcher is a mapping"),
            (json!({"regex": "(["}), "/m/regex", "regular expression"),
            (json!({"regex": 3}), "/m/regex", "takes a text"),
            (
                json!({"schema": {"type": "strin"}}),
                "/m/schema/type",
                "JSON Schema",
            ),
            (json!({"schema": 3}), "/m/schema", "mapping"),
            (
                json!({"not": {"regex": "*"}}),
                "/m/not/regex",
                "regular expression",
            ),
            (json!({"any-of": []}), "/m/any-of", "empty list"),
            (
                json!({"any-of": [{"exact": 1}, {"nope": 1}]}),
                "/m/any-of/1/nope",
                "unknown matcher",
            ),
            (json!({"length": "x"}), "/m/length", "count"),
            (json!({"length": {"exact": 1}}), "/m/length", "count"),
            (json!({"type": "strnig"}), "/m/type", "one of"),
            (json!({">=": "80"}), "/m/>=", "number"),
            (json!({"exists": 1}), "/m/exists", "true or false"),
        ] {
            let found = problems(written.clone());
            assert_eq!(found.len(), 1, "{written}: {found:?}");
            assert_eq!(found[0].0, pointer, "{written}: {found:?}");
            assert!(found[0].1.contains(words), "{written}: {found:?}");
        }
    }

    #[test]
    fn all_problems_come_together() {
        assert_eq!(
            problems(json!({"regex": "(", "type": "x", "not": {"nope": 1}})).len(),
            3
        );
    }

    #[test]
    fn a_schema_that_asks_for_the_network_is_refused() {
        let found = problems(json!({"schema": {"$ref": "https://example.com/s.json"}}));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
