//! Written argument values with alternatives in them, and where recorded ones differ.

use serde_json::{Map, Value};

use super::assign::largest_assignment;
use mcptest_json::{self as json, pointer_join};
use mcptest_trace::matcher::{Difference, Problem};

/// More differences than this do not help a reader.
const MAX_DIFFERENCES: usize = 50;

/// A value to compare with, in which `{one_of: [..]}` matches any of its alternatives.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Literal(Value),
    List(Vec<Pattern>),
    Map(Vec<(String, Pattern)>),
    OneOf(Vec<Pattern>),
}

/// The way structures are compared. Leaves are equal or not in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The same keys, the same elements in the same order.
    Whole,
    /// Keys that only the recorded object has are fine; lists are multisets, of which some elements
    /// may be left over. Elements are compared by the same rule.
    Part,
}

impl Pattern {
    /// Reads a written value; pointers of problems start at `at`.
    pub(super) fn compile(written: &Value, at: &str, problems: &mut Vec<Problem>) -> Self {
        match written {
            Value::Object(map) => match map.get("one_of").filter(|_| map.len() == 1) {
                Some(Value::Array(any)) if !any.is_empty() => Self::OneOf(Self::compile_all(
                    any,
                    &pointer_join(at, "one_of"),
                    problems,
                )),
                Some(_) => {
                    problems.push(
                        Problem::new(
                            pointer_join(at, "one_of"),
                            "`one_of` takes a list of at least one value",
                        )
                        .help("for an argument that really has a key `one_of`, write `match: { name: { exact: … } }`"),
                    );
                    Self::OneOf(Vec::new())
                }
                None => Self::Map(
                    map.iter()
                        .map(|(key, value)| {
                            (
                                key.clone(),
                                Self::compile(value, &pointer_join(at, key), problems),
                            )
                        })
                        .collect(),
                ),
            },
            Value::Array(items) => Self::List(Self::compile_all(items, at, problems)),
            leaf => Self::Literal(leaf.clone()),
        }
    }

    fn compile_all(items: &[Value], at: &str, problems: &mut Vec<Problem>) -> Vec<Self> {
        items
            .iter()
            .enumerate()
            .map(|(index, item)| Self::compile(item, &format!("{at}/{index}"), problems))
            .collect()
    }

    /// As it was written.
    pub(super) fn written(&self) -> Value {
        match self {
            Self::Literal(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::written).collect(),
            Self::Map(entries) => entries
                .iter()
                .map(|(key, pattern)| (key.clone(), pattern.written()))
                .collect::<Map<_, _>>()
                .into(),
            Self::OneOf(any) => {
                serde_json::json!({ "one_of": any.iter().map(Self::written).collect::<Vec<_>>() })
            }
        }
    }

    /// Adds a literal for every key that is not there, in an object or in every alternative that is
    /// one.
    pub(super) fn filled(&self, defaults: &[(&str, &Value)]) -> Self {
        match self {
            Self::Map(entries) => {
                let mut entries = entries.clone();
                for (key, value) in defaults {
                    if !entries.iter().any(|(have, _)| have == key) {
                        entries.push(((*key).to_owned(), Self::Literal((*value).clone())));
                    }
                }
                Self::Map(entries)
            }
            Self::OneOf(any) => {
                Self::OneOf(any.iter().map(|pattern| pattern.filled(defaults)).collect())
            }
            other => other.clone(),
        }
    }

    pub(super) fn fits(&self, actual: &Value, extent: Extent) -> bool {
        match (self, actual) {
            (Self::Literal(wanted), _) => json::equal(wanted, actual),
            (Self::OneOf(any), _) => any.iter().any(|pattern| pattern.fits(actual, extent)),
            (Self::Map(wanted), Value::Object(seen)) => {
                (extent == Extent::Part || wanted.len() == seen.len())
                    && wanted.iter().all(|(key, pattern)| {
                        seen.get(key)
                            .is_some_and(|value| pattern.fits(value, extent))
                    })
            }
            (Self::List(wanted), Value::Array(seen)) => match extent {
                Extent::Whole => {
                    wanted.len() == seen.len()
                        && wanted
                            .iter()
                            .zip(seen)
                            .all(|(pattern, value)| pattern.fits(value, extent))
                }
                Extent::Part => has_all(seen, wanted),
            },
            _ => false,
        }
    }

    /// The places where the recorded value differs; none if and only if it fits.
    pub(super) fn differences(&self, actual: &Value, extent: Extent) -> Vec<Difference> {
        let mut found = Vec::new();
        self.walk(actual, extent, "", &mut found);
        found.truncate(MAX_DIFFERENCES);
        found
    }

    fn walk(&self, actual: &Value, extent: Extent, at: &str, found: &mut Vec<Difference>) {
        if found.len() >= MAX_DIFFERENCES {
            return;
        }
        match (self, actual) {
            (Self::Map(wanted), Value::Object(seen)) => {
                for (key, pattern) in wanted {
                    let at = pointer_join(at, key);
                    match seen.get(key) {
                        Some(value) => pattern.walk(value, extent, &at, found),
                        None => found.push(Difference {
                            pointer: at,
                            expected: Some(pattern.written()),
                            actual: None,
                        }),
                    }
                }
                let extra = seen
                    .iter()
                    .filter(|(key, _)| !wanted.iter().any(|(have, _)| have == *key));
                for (key, value) in extra.filter(|_| extent == Extent::Whole) {
                    found.push(Difference {
                        pointer: pointer_join(at, key),
                        expected: None,
                        actual: Some(value.clone()),
                    });
                }
            }
            (Self::List(wanted), Value::Array(seen)) if extent == Extent::Whole => {
                for index in 0..wanted.len().max(seen.len()) {
                    let at = format!("{at}/{index}");
                    match (wanted.get(index), seen.get(index)) {
                        (Some(pattern), Some(value)) => pattern.walk(value, extent, &at, found),
                        (pattern, value) => found.push(Difference {
                            pointer: at,
                            expected: pattern.map(Self::written),
                            actual: value.cloned(),
                        }),
                    }
                }
            }
            _ if self.fits(actual, extent) => {}
            _ => found.push(Difference {
                pointer: at.to_owned(),
                expected: Some(self.written()),
                actual: Some(actual.clone()),
            }),
        }
    }
}

/// Returns true if every wanted element has its own recorded element that fits as a part.
fn has_all(seen: &[Value], wanted: &[Pattern]) -> bool {
    if wanted.len() > seen.len() {
        return false;
    }
    if wanted
        .iter()
        .all(|item| matches!(item, Pattern::Literal(_)))
    {
        // Equality of leaves is transitive, so taking the first free one is enough.
        let mut free: Vec<&Value> = seen.iter().collect();
        return wanted.iter().all(|pattern| {
            free.iter()
                .position(|value| pattern.fits(value, Extent::Part))
                .map(|at| free.swap_remove(at))
                .is_some()
        });
    }
    // A part fits several wholes, and alternatives fit several values: an assignment decides.
    let edges: Vec<Vec<usize>> = wanted
        .iter()
        .map(|pattern| {
            (0..seen.len())
                .filter(|at| pattern.fits(&seen[*at], Extent::Part))
                .collect()
        })
        .collect();
    largest_assignment(&edges, seen.len())
        .iter()
        .all(Option::is_some)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pattern(written: Value) -> Pattern {
        let mut problems = Vec::new();
        let pattern = Pattern::compile(&written, "", &mut problems);
        assert_eq!(problems, []);
        pattern
    }

    #[test]
    fn the_table() {
        // (written, recorded, fits as a whole, fits as a part)
        for (written, recorded, whole, part) in [
            (json!({"a": 1}), json!({"a": 1.0}), true, true),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false, true),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1, "c": 2}}),
                false,
                true,
            ),
            (json!({"a": null}), json!({}), false, false),
            (json!({}), json!({"a": null}), false, true),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]}), false, true),
            (json!({"a": [1, 1]}), json!({"a": [1, 2]}), false, false),
            (
                json!({"a": [{"b": 1}]}),
                json!({"a": [{"b": 1, "c": 2}]}),
                false,
                true,
            ),
            (
                json!({"a": [{"b": 1, "c": 3}]}),
                json!({"a": [{"b": 1, "c": 2}]}),
                false,
                false,
            ),
            (
                json!({"a": [[1], {"b": [{"c": 1}]}]}),
                json!({"a": [{"b": [{}, {"c": 1, "d": 2}]}, [2, 1]]}),
                false,
                true,
            ),
            // The first wanted element fits both, the second only the first one.
            (
                json!({"a": [{"b": 1}, {"b": 1, "c": 2}]}),
                json!({"a": [{"b": 1, "c": 2}, {"b": 1}]}),
                false,
                true,
            ),
            // One recorded element does not answer two wanted ones.
            (
                json!({"a": [{"b": 1}, {"c": 2}]}),
                json!({"a": [{"b": 1, "c": 2}, {}]}),
                false,
                false,
            ),
            (
                json!({"city": "Sac"}),
                json!({"city": "Sacramento"}),
                false,
                false,
            ),
            (
                json!({"id": 9_007_199_254_740_993_u64}),
                json!({"id": 9_007_199_254_740_992_u64}),
                false,
                false,
            ),
            (
                json!({"a": {"one_of": [1, 2]}}),
                json!({"a": 2}),
                true,
                true,
            ),
            (
                json!({"a": {"one_of": [1, 2]}}),
                json!({"a": 3}),
                false,
                false,
            ),
            (
                json!({"a": {"one_of": [1]}, "b": 2}),
                json!({"a": 1}),
                false,
                false,
            ),
            (
                json!({"a": {"one_of": [{"x": 1}, 7]}}),
                json!({"a": {"x": 1, "y": 2}}),
                false,
                true,
            ),
            // First come would give the 1 to the alternative and leave nothing for the plain 1.
            (
                json!({"a": [{"one_of": [1, 2]}, 1]}),
                json!({"a": [1, 2]}),
                false,
                true,
            ),
            // Two keys: no alternatives, but an object like any other.
            (
                json!({"a": {"one_of": [1], "x": 2}}),
                json!({"a": {"one_of": [1], "x": 2}}),
                true,
                true,
            ),
            (json!({"a": 1}), json!("{\"a\": 1}"), false, false),
        ] {
            let pattern = pattern(written.clone());
            for (extent, fits) in [(Extent::Whole, whole), (Extent::Part, part)] {
                assert_eq!(
                    pattern.fits(&recorded, extent),
                    fits,
                    "{written} {recorded} {extent:?}"
                );
                let differences = pattern.differences(&recorded, extent);
                assert_eq!(
                    differences.is_empty(),
                    fits,
                    "{written} {recorded} {extent:?} {differences:?}"
                );
            }
            assert_eq!(pattern.written(), written);
        }
    }

    #[test]
    fn one_of_needs_alternatives() {
        for written in [json!({"a": {"one_of": []}}), json!({"a": {"one_of": "x"}})] {
            let mut problems = Vec::new();
            Pattern::compile(&written, "/exact", &mut problems);
            assert_eq!(problems[0].pointer, "/exact/a/one_of");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (0_i64..3).prop_map(Value::from),
            (0_i64..3).prop_map(|n| Value::from(n as f64)),
            "[ab]".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[xy]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The rule of `subset`, by trying every assignment.
    fn is_part(wanted: &Value, actual: &Value) -> bool {
        match (wanted, actual) {
            (Value::Object(wanted), Value::Object(actual)) => wanted
                .iter()
                .all(|(key, value)| actual.get(key).is_some_and(|own| is_part(value, own))),
            (Value::Array(wanted), Value::Array(actual)) => {
                let Some((first, rest)) = wanted.split_first() else {
                    return true;
                };
                (0..actual.len()).any(|at| {
                    let mut others = actual.clone();
                    let taken = others.remove(at);
                    is_part(first, &taken) && is_part(&rest.into(), &others.into())
                })
            }
            _ => json::equal(wanted, actual),
        }
    }

    proptest! {
        #[test]
        fn without_alternatives_it_is_equality_and_the_rule_of_subset(
            wanted in values(),
            actual in values(),
        ) {
            let pattern = pattern(wanted.clone());
            prop_assert_eq!(pattern.fits(&actual, Extent::Whole), json::equal(&wanted, &actual));
            prop_assert_eq!(pattern.fits(&actual, Extent::Part), is_part(&wanted, &actual));
            for extent in [Extent::Whole, Extent::Part] {
                let none = pattern.differences(&actual, extent).is_empty();
                prop_assert_eq!(pattern.fits(&actual, extent), none);
                prop_assert!(pattern.fits(&wanted, extent));
            }
        }
    }
}
