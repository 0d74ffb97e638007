//! Where two structures differ, by JSON pointer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use mcptest_json::{self as json, pointer_join};

/// One place where the values differ. A side without a value there is not set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// JSON pointer to the place.
    pub pointer: String,
    /// The expected value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The value that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
}

/// More differences than this do not help a reader.
const MOST: usize = 50;

/// The differences between two values; with `subset`, keys that only the actual object has are no
/// difference.
#[must_use]
pub fn differences(expected: &Value, actual: &Value, subset: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(expected, actual, subset, "", &mut found);
    found
}

fn walk(expected: &Value, actual: &Value, subset: bool, at: &str, found: &mut Vec<Difference>) {
    if found.len() >= MOST {
        return;
    }
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(seen)) => {
            for (key, value) in wanted {
                let at = pointer_join(at, key);
                match seen.get(key) {
                    Some(other) => walk(value, other, subset, &at, found),
                    None => found.push(Difference {
                        pointer: at,
                        expected: Some(value.clone()),
                        actual: None,
                    }),
                }
            }
            for (key, value) in seen {
                if !subset && !wanted.contains_key(key) {
                    found.push(Difference {
                        pointer: pointer_join(at, key),
                        expected: None,
                        actual: Some(value.clone()),
                    });
                }
            }
        }
        (Value::Array(wanted), Value::Array(seen)) if !subset => {
            for index in 0..wanted.len().max(seen.len()) {
                let at = format!("{at}/{index}");
                match (wanted.get(index), seen.get(index)) {
                    (Some(wanted), Some(seen)) => walk(wanted, seen, subset, &at, found),
                    (wanted, seen) => found.push(Difference {
                        pointer: at,
                        expected: wanted.cloned(),
                        actual: seen.cloned(),
                    }),
                }
            }
        }
        _ => {
            let same = if subset {
                super::contains::is_subset(expected, actual)
            } else {
                json::equal(expected, actual)
            };
            if !same {
                found.push(Difference {
                    pointer: at.to_owned(),
                    expected: Some(expected.clone()),
                    actual: Some(actual.clone()),
                });
            }
        }
    }
    found.truncate(MOST);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_has_its_pointer() {
        let expected = json!({"a": 1, "b": {"c": [1, 2]}, "d/e": "x"});
        let actual = json!({"a": 1.0, "b": {"c": [1, 3, 4]}, "f": true});
        let found: Vec<String> = differences(&expected, &actual, false)
            .into_iter()
            .map(|difference| difference.pointer)
            .collect();
        assert_eq!(found, ["/b/c/1", "/b/c/2", "/d~1e", "/f"]);
        let found = differences(&json!({"a": [2]}), &json!({"a": [1, 2], "z": 0}), true);
        assert_eq!(found, []);
    }

    proptest! {
        #[test]
        fn equal_values_have_no_differences(a in -3_i64..3, b in -3_i64..3) {
            let (left, right) = (json!({"x": [a, {"y": b}]}), json!({"x": [b, {"y": a}]}));
            prop_assert_eq!(differences(&left, &right, false).is_empty(), json::equal(&left, &right));
        }
    }
}
