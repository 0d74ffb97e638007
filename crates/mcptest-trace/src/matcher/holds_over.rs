//! Decides a matcher for a number of which only the bounds are known.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::{Comparison, Matcher, Rule, TypeName};
use mcptest_json::compare_numbers;

impl Matcher {
    /// Decides whether every number from `low` to `high` (both included; without `high` there is no
    /// upper end) matches, or none does. `None` if that is open.
    #[must_use]
    pub fn holds_over(&self, low: &Number, high: Option<&Number>) -> Option<bool> {
        all(self.rules.iter().map(|rule| rule.holds_over(low, high)))
    }

    /// Returns true if it is one comparison with a bound, so that a larger number is only ever
    /// better, or only ever worse.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        matches!(
            self.rules.as_slice(),
            [Rule::Compare(
                Comparison::AtLeast | Comparison::Above | Comparison::AtMost | Comparison::Below,
                _
            )]
        )
    }
}

impl Rule {
    fn holds_over(&self, low: &Number, high: Option<&Number>) -> Option<bool> {
        let fixed = high.is_some_and(|high| compare_numbers(low, high) == Ordering::Equal);
        match self {
            Self::Compare(Comparison::Equal, wanted) | Self::Exact(wanted) => {
                equals(wanted, low, high)
            }
            Self::Compare(Comparison::NotEqual, wanted) => {
                equals(wanted, low, high).map(|equal| !equal)
            }
            Self::Compare(comparison, wanted) => compares(*comparison, wanted, low, high),
            Self::Not(matcher) => matcher.holds_over(low, high).map(|held| !held),
            Self::AllOf(matchers) => {
                all(matchers.iter().map(|matcher| matcher.holds_over(low, high)))
            }
            Self::AnyOf(matchers) => {
                let none = all(matchers
                    .iter()
                    .map(|matcher| matcher.holds_over(low, high).map(|held| !held)));
                none.map(|none| !none)
            }
            Self::Exists(wanted) => Some(*wanted),
            Self::Type(TypeName::Number) => Some(true),
            _ if fixed => Some(self.check(Some(&Value::Number(low.clone()))).is_ok()),
            _ => None,
        }
    }
}

/// All of them: `false` as soon as one is, `true` only if all are.
fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut whole = Some(true);
    for part in parts {
        match part {
            Some(false) => return Some(false),
            Some(true) => {}
            None => whole = None,
        }
    }
    whole
}

fn equals(wanted: &Value, low: &Number, high: Option<&Number>) -> Option<bool> {
    // The value is a number: nothing else can equal it.
    let Value::Number(wanted) = wanted else {
        return Some(false);
    };
    let above_low = compare_numbers(wanted, low);
    let above_high = high.map_or(Ordering::Less, |high| compare_numbers(wanted, high));
    match (above_low, above_high) {
        (Ordering::Less, _) | (_, Ordering::Greater) => Some(false),
        (Ordering::Equal, Ordering::Equal) => Some(true),
        _ => None,
    }
}

fn compares(
    comparison: Comparison,
    wanted: &Value,
    low: &Number,
    high: Option<&Number>,
) -> Option<bool> {
    let Value::Number(wanted) = wanted else {
        return Some(false);
    };
    // If both ends meet a bound, all numbers between them do. Without `high`, the upper end is
    // larger than any number.
    let at_low = comparison.holds(compare_numbers(low, wanted));
    let at_high =
        comparison.holds(high.map_or(Ordering::Greater, |high| compare_numbers(high, wanted)));
    (at_low == at_high).then_some(at_low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn holds_over(written: Value, low: u64, high: Option<u64>) -> Option<bool> {
        let high = high.map(Number::from);
        Matcher::compile(&written, "")
            .unwrap()
            .holds_over(&low.into(), high.as_ref())
    }

    #[test]
    fn worked_examples() {
        for (written, low, high, expected) in [
            (json!({">=": 80}), 80, Some(90), Some(true)),
            (json!({">=": 80}), 70, Some(79), Some(false)),
            (json!({">=": 80}), 79, Some(80), None),
            (json!({">": 80}), 70, Some(80), Some(false)),
            (json!({"<=": 3}), 4, None, Some(false)),
            (json!({"<=": 3}), 3, None, None),
            (json!({"<": 3}), 3, None, Some(false)),
            (json!({">=": 3}), 3, None, Some(true)),
            (json!({"==": 5}), 5, Some(5), Some(true)),
            (json!({"==": 5}), 4, Some(6), None),
            (json!({"exact": 5}), 6, None, Some(false)),
            (json!({"!=": 5}), 6, None, Some(true)),
            (json!({"exact": "5"}), 5, Some(5), Some(false)),
            (json!({">=": 1, "<=": 3}), 2, Some(3), Some(true)),
            (json!({">=": 1, "<=": 3}), 4, Some(9), Some(false)),
            (json!({"not": {">=": 80}}), 0, Some(79), Some(true)),
            (
                json!({"any-of": [{"<": 10}, {">": 90}]}),
                20,
                Some(80),
                Some(false),
            ),
            (
                json!({"any-of": [{"<": 10}, {">": 15}]}),
                20,
                Some(80),
                Some(true),
            ),
            (json!({"any-of": [{"<": 10}, {">": 50}]}), 0, Some(80), None),
            (json!({"schema": {"multipleOf": 2}}), 4, Some(4), Some(true)),
            (json!({"schema": {"multipleOf": 2}}), 4, Some(5), None),
            (json!({"type": "number"}), 0, None, Some(true)),
            (json!({"exists": false}), 0, Some(1), Some(false)),
        ] {
            assert_eq!(
                holds_over(written.clone(), low, high),
                expected,
                "{written} in {low}..{high:?}"
            );
        }
    }

    fn matcher() -> impl Strategy<Value = Value> {
        let sign = prop::sample::select(vec![">=", ">", "<=", "<", "==", "!=", "exact"]);
        let leaf = (sign, 0_u64..12).prop_map(|(sign, bound)| json!({sign: bound}));
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|one| json!({"not": one})),
                prop::collection::vec(inner.clone(), 1..3).prop_map(|some| json!({"any-of": some})),
                prop::collection::vec(inner, 1..3).prop_map(|some| json!({"all-of": some})),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_settled_holds_for_every_number_between(written in matcher(), low in 0_u64..12, width in 0_u64..6) {
            let compiled = Matcher::compile(&written, "").unwrap();
            let high = low + width;
            let outcomes: Vec<bool> = (low..=high).map(|n| compiled.check(Some(&n.into())).is_ok()).collect();
            if let Some(settled) = holds_over(written.clone(), low, Some(high)) {
                prop_assert!(outcomes.iter().all(|held| *held == settled), "{}", written);
            } else {
                prop_assert!(width > 0, "one number is always settled: {}", written);
            }
            if let Some(settled) = holds_over(written, low, None) {
                prop_assert!((low..40).all(|n| compiled.check(Some(&n.into())).is_ok() == settled));
            }
        }
    }
}
