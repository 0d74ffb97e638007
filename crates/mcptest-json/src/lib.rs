//! JSON helpers: comparison by value, one canonical form, JSON pointers.
//!
//! [`text`] makes untrusted text safe to show, [`layout`] and [`transcode`] lay out JSON text,
//! [`mod@write`] writes values.

pub mod layout;
pub mod scan;
pub mod schema;
pub mod surrogates;
pub mod text;
pub mod transcode;
pub mod visible;
pub mod write;

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Deep equality with numbers compared by value: `1` equals `1.0`, and integers beyond 2^53 are
/// compared exactly.
#[must_use]
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

/// Exact comparison of two JSON numbers, whatever mixture of integers and doubles they are.
#[must_use]
pub fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_mixed(a, float(b)),
        (None, Some(b)) => compare_mixed(b, float(a)).reverse(),
        // JSON has no NaN, so doubles always compare.
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(0.0)
}

/// Converting the integer to a double would round it; splitting the double into whole and
/// fractional part does not.
fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // JSON integers have 64 bits: every double of 2^65 or more is larger than any of them, and
    // below that the cast is exact.
    if float >= 3.7e19 {
        return Ordering::Less;
    }
    if float <= -3.7e19 {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    integer.cmp(&(whole as i128)).then_with(|| {
        0.0_f64
            .partial_cmp(&(float - whole))
            .unwrap_or(Ordering::Equal)
    })
}

/// The canonical text of a value: keys sorted, no spaces, whole doubles written as integers.
///
/// This is not RFC 8785, which works in doubles and would make two 64-bit ids equal.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => write_canonical_number(number, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(a, _)| *a);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}", Value::from(key.as_str()));
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        // Writing to a String cannot fail.
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn write_canonical_number(number: &Number, out: &mut String) {
    let float = float(number);
    let _ = if integer(number).is_none()
        && float.fract() == 0.0
        && float.abs() < 9_007_199_254_740_992.0
    {
        write!(out, "{}", float as i64)
    } else {
        write!(out, "{number}")
    };
}

/// The name of the type in JSON Schema.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Appends one step to a JSON pointer.
#[must_use]
pub fn pointer_join(base: &str, step: &str) -> String {
    format!("{base}/{}", step.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_value() {
        assert!(equal(&json!(1), &json!(1.0)));
        assert!(equal(&json!({"a": [1.0, 2]}), &json!({"a": [1, 2.0]})));
        assert!(!equal(
            &json!(9_007_199_254_740_993_u64),
            &json!(9_007_199_254_740_992_u64)
        ));
        assert!(!equal(
            &json!(9_007_199_254_740_993_u64),
            &json!(9_007_199_254_740_992.0)
        ));
        assert!(!equal(&json!(1), &json!("1")));
        assert!(!equal(&json!({"a": 1}), &json!({"a": 1, "b": null})));
    }

    #[test]
    fn numbers_are_ordered_exactly() {
        let order = |a: Value, b: Value| match (a, b) {
            (Value::Number(a), Value::Number(b)) => compare_numbers(&a, &b),
            _ => unreachable!(),
        };
        assert_eq!(order(json!(1), json!(1.5)), Ordering::Less);
        assert_eq!(order(json!(-1), json!(-1.5)), Ordering::Greater);
        assert_eq!(order(json!(u64::MAX), json!(1e300)), Ordering::Less);
        assert_eq!(order(json!(i64::MIN), json!(-1e300)), Ordering::Greater);
        assert_eq!(
            order(json!(u64::MAX), json!(18_446_744_073_709_551_616.0)),
            Ordering::Less
        );
    }

    #[test]
    fn canonical_form_ignores_key_order_and_number_spelling() {
        assert_eq!(
            canonical(&json!({"b": 1.0, "a": [true, null, "x\n"]})),
            r#"{"a":[true,null,"x\n"],"b":1}"#
        );
        assert_ne!(
            canonical(&json!(9_007_199_254_740_993_u64)),
            canonical(&json!(9_007_199_254_740_992_u64))
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-c]{1,2}", inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_form_decides_equality(a in any_json(), b in any_json()) {
            prop_assert!(equal(&a, &a));
            prop_assert_eq!(equal(&a, &b), equal(&b, &a));
            if canonical(&a) == canonical(&b) {
                prop_assert!(equal(&a, &b));
            }
        }

        #[test]
        fn canonical_form_is_json_of_the_same_value(a in any_json()) {
            let back: Value = serde_json::from_str(&canonical(&a)).unwrap();
            prop_assert!(equal(&a, &back), "{a} {back}");
        }
    }
}
