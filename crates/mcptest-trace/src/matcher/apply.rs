//! Applying a matcher, with an explanation of every mismatch.

use serde_json::Value;

use super::contains::{contains, lower};
use super::diff::{Difference, differences};
use super::{Comparison, JsonSchema, Matcher, Rule, TypeName};
use mcptest_json as json;
use mcptest_json::text::shorten;

use crate::trace::Node;

/// Why a value does not match.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// In one line.
    pub reason: String,
    /// For structures: where they differ.
    pub differences: Vec<Difference>,
}

impl Mismatch {
    fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            differences: Vec::new(),
        }
    }
}

impl Matcher {
    /// Applies the matcher. `None` is a value that is not there.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn check(&self, actual: Option<&Value>) -> Result<(), Mismatch> {
        self.rules.iter().try_for_each(|rule| rule.check(actual))
    }

    fn holds(&self, actual: &Value) -> bool {
        self.check(Some(actual)).is_ok()
    }

    /// Returns true if the matcher holds for the value at a place. The value is built only if a
    /// rule needs it.
    pub(crate) fn holds_at(&self, place: &Node<'_>) -> bool {
        let mut value = None;
        self.rules.iter().all(|rule| {
            rule.holds_at(place).unwrap_or_else(|| {
                let value = value.get_or_insert_with(|| place.to_value());
                rule.check(Some(value)).is_ok()
            })
        })
    }
}

impl Rule {
    /// Decides without building a value, where that is possible.
    fn holds_at(&self, place: &Node<'_>) -> Option<bool> {
        match self {
            Self::Exists(wanted) => Some(*wanted),
            Self::Exact(Value::String(wanted)) => Some(place.as_str()? == wanted),
            Self::Contains {
                wanted: Value::String(wanted),
                ignore_case: false,
            } => Some(place.as_str()?.contains(wanted.as_str())),
            Self::Regex(regex) => Some(regex.is_match(place.as_str()?)),
            _ => None,
        }
    }

    pub(super) fn check(&self, actual: Option<&Value>) -> Result<(), Mismatch> {
        if let Self::Exists(wanted) = self {
            return match (wanted, actual) {
                (true, None) => Err(Mismatch::because("the value is absent")),
                (false, Some(_)) => Err(Mismatch::because("the value is there")),
                _ => Ok(()),
            };
        }
        let Some(actual) = actual else {
            return Err(Mismatch::because("the value is absent"));
        };
        let require = |fits: bool, reason: &dyn Fn() -> String| {
            if fits {
                Ok(())
            } else {
                Err(Mismatch::because(reason()))
            }
        };
        match self {
            Self::Exact(wanted) | Self::Compare(Comparison::Equal, wanted) => exact(wanted, actual),
            Self::Contains {
                wanted,
                ignore_case: false,
            } => contained(wanted, actual),
            Self::Contains { wanted, .. } => contained(&lower(wanted), &lower(actual)),
            Self::ContainsAll(all) => all.iter().try_for_each(|wanted| contained(wanted, actual)),
            Self::ContainsAny(any) => {
                require(any.iter().any(|wanted| contains(actual, wanted)), &|| {
                    "contains none of these".to_owned()
                })
            }
            Self::Not(matcher) => require(!matcher.holds(actual), &|| {
                format!("must not match: {matcher}")
            }),
            Self::AnyOf(any) => require(any.iter().any(|matcher| matcher.holds(actual)), &|| {
                "matches none of the alternatives".to_owned()
            }),
            Self::AllOf(all) => all
                .iter()
                .try_for_each(|matcher| matcher.check(Some(actual))),
            Self::Any(matcher) => {
                let items = items(actual)?;
                require(items.iter().any(|item| matcher.holds(item)), &|| {
                    format!("none of {} elements matches: {matcher}", items.len())
                })
            }
            Self::Every(matcher) => every(matcher, actual),
            Self::None(matcher) => {
                let found = items(actual)?.iter().position(|item| matcher.holds(item));
                require(found.is_none(), &|| {
                    format!("element {} matches: {matcher}", found.unwrap_or(0))
                })
            }
            Self::Regex(regex) => match actual.as_str() {
                Some(text) => require(regex.is_match(text), &|| format!("`{regex}` is not found")),
                None => Err(Mismatch::because(format!(
                    "a regular expression needs a string, and this is {}",
                    with_article(actual)
                ))),
            },
            Self::Schema(wanted) => schema(wanted, actual),
            Self::Length(matcher) => length(matcher, actual),
            Self::Type(wanted) => require(wanted.fits(actual), &|| {
                format!("this is {}", with_article(actual))
            }),
            Self::Compare(Comparison::NotEqual, wanted) => {
                require(!json::equal(wanted, actual), &|| format!("equals {wanted}"))
            }
            Self::Compare(comparison, wanted) => compare(*comparison, wanted, actual),
            // Handled above, where absence matters.
            Self::Exists(_) => Ok(()),
            // Read from the trace by whoever has one; a value alone has no opinion on itself.
            Self::Judged(_) => Err(Mismatch::because("needs a judgement")),
        }
    }
}

impl TypeName {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
            Self::Null => value.is_null(),
        }
    }
}

fn exact(wanted: &Value, actual: &Value) -> Result<(), Mismatch> {
    if json::equal(wanted, actual) {
        return Ok(());
    }
    let structured = |value: &Value| value.is_object() || value.is_array();
    Err(Mismatch {
        reason: if json::type_name(wanted) == json::type_name(actual) {
            "the values differ".to_owned()
        } else {
            format!("{} is not {}", with_article(actual), with_article(wanted))
        },
        differences: if structured(wanted) && structured(actual) {
            differences(wanted, actual, false)
        } else {
            Vec::new()
        },
    })
}

fn contained(wanted: &Value, actual: &Value) -> Result<(), Mismatch> {
    if contains(actual, wanted) {
        return Ok(());
    }
    let mut mismatch = Mismatch::because(match actual {
        Value::String(_) if !wanted.is_string() => {
            format!("a text does not contain {}", with_article(wanted))
        }
        Value::String(_) | Value::Array(_) => {
            format!("does not contain {}", shorten(&wanted.to_string(), 200))
        }
        Value::Object(_) if wanted.is_object() => "lacks some of these keys or values".to_owned(),
        other => format!(
            "{} does not contain {}",
            with_article(other),
            with_article(wanted)
        ),
    });
    if actual.is_object() && wanted.is_object() {
        mismatch.differences = differences(wanted, actual, true);
    }
    Err(mismatch)
}

fn items(actual: &Value) -> Result<&Vec<Value>, Mismatch> {
    actual.as_array().ok_or_else(|| {
        Mismatch::because(format!(
            "a quantifier needs a list, and this is {}",
            with_article(actual)
        ))
    })
}

fn every(matcher: &Matcher, actual: &Value) -> Result<(), Mismatch> {
    for (index, item) in items(actual)?.iter().enumerate() {
        if let Err(mismatch) = matcher.check(Some(item)) {
            return Err(Mismatch {
                reason: format!("element {index}: {}", mismatch.reason),
                differences: mismatch
                    .differences
                    .into_iter()
                    .map(|difference| Difference {
                        pointer: format!("/{index}{}", difference.pointer),
                        ..difference
                    })
                    .collect(),
            });
        }
    }
    Ok(())
}

fn schema(schema: &JsonSchema, actual: &Value) -> Result<(), Mismatch> {
    let validator = schema
        .validator()
        .map_err(|error| Mismatch::because(format!("the schema does not work: {error}")))?;
    let mut errors = validator.iter_errors(actual).take(5).peekable();
    if errors.peek().is_none() {
        return Ok(());
    }
    let reasons: Vec<String> = errors
        .map(|error| {
            let place = error.instance_path().to_string();
            let message = shorten(&error.to_string(), 200);
            if place.is_empty() {
                message
            } else {
                format!("{place}: {message}")
            }
        })
        .collect();
    Err(Mismatch::because(reasons.join("; ")))
}

fn length(matcher: &Matcher, actual: &Value) -> Result<(), Mismatch> {
    let count = match actual {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        other => {
            return Err(Mismatch::because(format!(
                "{} has no length",
                with_article(other)
            )));
        }
    };
    matcher
        .check(Some(&Value::from(count)))
        .map_err(|_| Mismatch::because(format!("the length is {count}")))
}

fn compare(comparison: Comparison, wanted: &Value, actual: &Value) -> Result<(), Mismatch> {
    let (Value::Number(wanted), Value::Number(actual)) = (wanted, actual) else {
        let hint = if matches!(
            actual,
            Value::Array(_) | Value::String(_) | Value::Object(_)
        ) {
            "; did you mean `length`?"
        } else {
            ""
        };
        return Err(Mismatch::because(format!(
            "{} cannot be compared with a number{hint}",
            with_article(actual)
        )));
    };
    if comparison.holds(json::compare_numbers(actual, wanted)) {
        Ok(())
    } else {
        Err(Mismatch::because(format!(
            "{actual} is {} {wanted}",
            comparison.broken_words()
        )))
    }
}

fn with_article(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) | Value::Object(_) => format!("an {}", json::type_name(value)),
        other => format!("a {}", json::type_name(other)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn matches(written: Value, actual: Value) -> bool {
        Matcher::compile(&written, "")
            .unwrap()
            .check(Some(&actual))
            .is_ok()
    }

    /// (matcher, values that match, values that do not)
    #[test]
    fn the_table() {
        for (written, good, bad) in [
            (
                json!({"exact": "a"}),
                vec![json!("a")],
                vec![json!("ab"), json!(null)],
            ),
            (
                json!({"exact": {"a": 1}}),
                vec![json!({"a": 1.0})],
                vec![json!({"a": 1, "b": 2}), json!({})],
            ),
            (
                json!({"contains": "b"}),
                vec![json!("abc"), json!(["b", "c"])],
                vec![json!("xyz"), json!(["abc"]), json!(5), json!({"b": 1})],
            ),
            (
                json!({"contains": ["a", "a"]}),
                vec![json!(["a", "b", "a"])],
                vec![json!(["a", "b"]), json!("aa")],
            ),
            (
                json!({"contains": {"a": {"b": 1}}}),
                vec![
                    json!({"a": {"b": 1, "c": 2}, "d": 3}),
                    json!([{"a": {"b": 1}}]),
                ],
                vec![json!({"a": {"c": 1}}), json!([{"a": {"b": 1, "c": 2}}])],
            ),
            (
                json!({"contains": {"city": "Sac"}}),
                vec![json!({"city": "Sac"})],
                vec![json!({"city": "Sacramento"})],
            ),
            (
                json!({"contains": {"tags": ["x"]}}),
                vec![json!({"tags": ["y", "x"]})],
                vec![json!({"tags": ["y"]})],
            ),
            (
                json!({"icontains": "PARIS"}),
                vec![json!("in paris"), json!(["Paris"])],
                vec![json!("London")],
            ),
            (
                json!({"contains-all": ["a", "b"]}),
                vec![json!("ab"), json!(["b", "a"])],
                vec![json!("a"), json!(["a"])],
            ),
            (
                json!({"contains-any": ["a", "b"]}),
                vec![json!("xb"), json!(["a"])],
                vec![json!("c")],
            ),
            (
                json!({"not": {"contains": "refund"}}),
                vec![json!(["get"]), json!([])],
                vec![json!(["refund"])],
            ),
            (
                json!({"any-of": [{"exact": 1}, {"exact": 2}]}),
                vec![json!(1), json!(2)],
                vec![json!(3)],
            ),
            (
                json!({"all-of": [{">": 1}, {"<": 3}]}),
                vec![json!(2)],
                vec![json!(1), json!(3)],
            ),
            (
                json!({"any": {">": 3}}),
                vec![json!([1, 4])],
                vec![json!([1]), json!([]), json!(4)],
            ),
            (
                json!({"every": {">": 3}}),
                vec![json!([4, 5]), json!([])],
                vec![json!([4, 1]), json!("x"), json!([null])],
            ),
            (
                json!({"none": {">": 3}}),
                vec![json!([1]), json!([])],
                vec![json!([4]), json!(1)],
            ),
            (
                json!({"regex": "^ab+$"}),
                vec![json!("abb")],
                vec![json!("xabb"), json!(5)],
            ),
            (
                json!({"schema": {"minimum": 80}}),
                vec![json!(80), json!(100)],
                vec![json!(79)],
            ),
            (
                json!({"schema": {"type": "object", "required": ["id"]}}),
                vec![json!({"id": 1})],
                vec![json!({}), json!(1)],
            ),
            (
                json!({"length": 2}),
                vec![json!("äb"), json!([1, 2]), json!({"a": 1, "b": 2})],
                vec![json!("a"), json!(2)],
            ),
            (
                json!({"length": {">=": 1}}),
                vec![json!("a")],
                vec![json!(""), json!([])],
            ),
            (
                json!({"type": "integer"}),
                vec![json!(1), json!(1.0)],
                vec![json!(1.5), json!("1")],
            ),
            (json!({"type": "null"}), vec![json!(null)], vec![json!(0)]),
            (json!({"exists": true}), vec![json!(null), json!(0)], vec![]),
            (
                json!({">=": 80}),
                vec![json!(80), json!(80.5)],
                vec![json!(79), json!("90"), json!(null)],
            ),
            (json!({">": 80}), vec![json!(81)], vec![json!(80)]),
            (json!({"<=": 80}), vec![json!(80)], vec![json!(81)]),
            (json!({"<": 80}), vec![json!(79)], vec![json!(80)]),
            (json!({"==": 1}), vec![json!(1.0)], vec![json!(2)]),
            (
                json!({"!=": "x"}),
                vec![json!("y"), json!(1)],
                vec![json!("x")],
            ),
            (
                json!({">=": 1, "<=": 3}),
                vec![json!(2)],
                vec![json!(0), json!(4)],
            ),
        ] {
            for value in good {
                assert!(
                    matches(written.clone(), value.clone()),
                    "{written} must match {value}"
                );
            }
            for value in bad {
                assert!(
                    !matches(written.clone(), value.clone()),
                    "{written} must not match {value}"
                );
            }
        }
    }

    #[test]
    fn what_is_absent_matches_only_its_absence() {
        for written in [
            json!({"not": {"exact": 1}}),
            json!({"!=": 1}),
            json!({"none": {"exact": 1}}),
            json!({"exact": null}),
            json!({"exists": true}),
        ] {
            let mismatch = Matcher::compile(&written, "")
                .unwrap()
                .check(None)
                .unwrap_err();
            assert!(mismatch.reason.contains("absent"), "{written}");
        }
        assert!(
            Matcher::compile(&json!({"exists": false}), "")
                .unwrap()
                .check(None)
                .is_ok()
        );
        assert!(!matches(json!({"exists": false}), json!(null)));
    }

    #[test]
    fn structures_show_where_they_differ() {
        let matcher = Matcher::compile(&json!({"exact": {"a": {"b": 1}, "c": 2}}), "").unwrap();
        let mismatch = matcher
            .check(Some(&json!({"a": {"b": 3}, "c": 2})))
            .unwrap_err();
        assert_eq!(mismatch.differences.len(), 1);
        assert_eq!(mismatch.differences[0].pointer, "/a/b");
        let matcher = Matcher::compile(&json!({"every": {"contains": {"x": 1}}}), "").unwrap();
        let mismatch = matcher
            .check(Some(&json!([{"x": 1}, {"x": 2}])))
            .unwrap_err();
        assert_eq!(mismatch.differences[0].pointer, "/1/x");
    }

    proptest! {
        #[test]
        fn not_turns_every_outcome_round(number in -5_i64..5, bound in -5_i64..5) {
            for sign in [">=", ">", "<=", "<", "==", "!="] {
                let plain = matches(json!({sign: bound}), json!(number));
                prop_assert_eq!(plain, !matches(json!({"not": {sign: bound}}), json!(number)));
            }
        }

        #[test]
        fn contained_multisets_ignore_order(mut items in prop::collection::vec(0_u8..4, 0..6), extra in prop::collection::vec(0_u8..4, 0..3)) {
            let wanted = json!(items);
            items.extend(extra);
            items.reverse();
            let found = matches(json!({"contains": wanted}), json!(items));
            prop_assert!(found);
        }

        #[test]
        fn quantifiers_agree(items in prop::collection::vec(0_i64..6, 0..6)) {
            let items = json!(items);
            let any = matches(json!({"any": {">": 3}}), items.clone());
            let none = matches(json!({"none": {">": 3}}), items.clone());
            let every_not = matches(json!({"every": {"<=": 3}}), items);
            prop_assert_eq!(any, !none);
            prop_assert_eq!(none, every_not);
        }
    }
}
