//! Bounds on the wrong scale: an expectation that the range of its target makes always true or
//! never true, such as `>= 0.9` on a figure from 0 to 100.

use mcptest_json::pointer_join;
use serde_json::Value;

use crate::expect::WrittenExpectation;
use crate::matcher::Problem;
use crate::outcome::Unit;

/// A comparison with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
    Equal,
}

/// Warnings about the bounds of an expectation on a figure of this unit. `at` is the pointer of the
/// expectation.
#[must_use]
pub fn warnings(written: &WrittenExpectation, target: &str, unit: Unit, at: &str) -> Vec<Problem> {
    let Value::Object(map) = &written.0 else {
        return Vec::new();
    };
    let (matcher, at) = match map.get("target") {
        Some(_) => (map.get("matcher"), pointer_join(at, "matcher")),
        None => match map.iter().next() {
            Some((key, matcher)) => (Some(matcher), pointer_join(at, key)),
            None => return Vec::new(),
        },
    };
    let bounds = matcher.map_or_else(Vec::new, |one| bounds(one, &at));
    if unit == Unit::List {
        return bounds
            .into_iter()
            .map(|(_, _, pointer)| of_list(target, pointer))
            .collect();
    }
    let Some((min, max)) = unit.range() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (comparison, bound, pointer) in bounds {
        if let Some(effect) = effect(comparison, bound, min, max) {
            let range = range_text(unit);
            let message = format!("{effect}: `{target}` is {range}");
            let problem = Problem::new(pointer, message).as_warning();
            found.push(match intent(bound, unit) {
                Some(meant) => problem.help(format!("did you mean {meant}?")),
                None => problem,
            });
        }
    }
    found
}

/// The warning about a list that is compared with a number.
fn of_list(target: &str, pointer: String) -> Problem {
    Problem::new(
        pointer,
        format!("no value meets this: `{target}` is a list"),
    )
    .help(format!(
        "compare an item (`{target}[-1]` is the last), or all of them: `every: {{…}}`"
    ))
    .as_warning()
}

/// The comparisons of a matcher, each with the pointer of its number.
fn bounds(matcher: &Value, at: &str) -> Vec<(Comparison, f64, String)> {
    use Comparison::{AtLeast, AtMost, Equal, LessThan, MoreThan};
    let mut found = Vec::new();
    let mut add = |comparison, value: &Value, pointer: String| {
        if let Some(bound) = value.as_f64() {
            found.push((comparison, bound, pointer));
        }
    };
    let Value::Object(rules) = matcher else {
        add(Equal, matcher, at.to_owned());
        return found;
    };
    for (rule, value) in rules {
        let pointer = pointer_join(at, rule);
        match rule.as_str() {
            ">=" => add(AtLeast, value, pointer),
            ">" => add(MoreThan, value, pointer),
            "<=" => add(AtMost, value, pointer),
            "<" => add(LessThan, value, pointer),
            "==" | "exact" => add(Equal, value, pointer),
            "schema" => {
                for (key, limit) in value.as_object().into_iter().flatten() {
                    let comparison = match key.as_str() {
                        "minimum" => AtLeast,
                        "exclusiveMinimum" => MoreThan,
                        "maximum" => AtMost,
                        "exclusiveMaximum" => LessThan,
                        "const" => Equal,
                        _ => continue,
                    };
                    add(comparison, limit, pointer_join(&pointer, key));
                }
            }
            _ => {}
        }
    }
    found
}

/// The effect of a bound that the range makes pointless. On a scale of whole percents, a bound
/// between 0 and 1 only distinguishes zero from everything else.
fn effect(comparison: Comparison, bound: f64, min: f64, max: f64) -> Option<&'static str> {
    const ALWAYS: &str = "this is true for every value";
    const NEVER: &str = "no value meets this";
    const ZERO: &str = "this only distinguishes 0 from all other values";
    let (always, never) = match comparison {
        Comparison::AtLeast => (bound <= min, bound > max),
        Comparison::MoreThan => (bound < min, bound >= max),
        Comparison::AtMost => (bound >= max, bound < min),
        Comparison::LessThan => (bound > max, bound <= min),
        Comparison::Equal => (false, bound < min || bound > max),
    };
    let of_zero = max > 1.0 && max.is_finite() && bound > 0.0 && bound < 1.0;
    match (always, never) {
        (true, _) => Some(ALWAYS),
        (_, true) => Some(NEVER),
        _ if of_zero && comparison == Comparison::Equal => Some(NEVER),
        _ if of_zero => Some(ZERO),
        _ => None,
    }
}

/// The same bound on the scale of the figure, if it was probably meant on the other one.
fn intent(bound: f64, unit: Unit) -> Option<String> {
    let meant = match unit {
        Unit::Percent if bound > 0.0 && bound < 1.0 => bound * 100.0,
        Unit::Fraction if bound > 1.0 && bound <= 100.0 => bound / 100.0,
        _ => return None,
    };
    // 0.07 * 100 is not 7 in doubles.
    let rounded = format!("{meant:.6}");
    let text = rounded.trim_end_matches('0').trim_end_matches('.');
    Some(format!("`{text}`"))
}

/// The values of a unit, in words.
fn range_text(unit: Unit) -> String {
    match unit.range() {
        Some((min, max)) if max.is_finite() => {
            let whole = if unit == Unit::Percent {
                "a whole percent "
            } else {
                ""
            };
            match unit {
                Unit::Flag => "0 or 1".to_owned(),
                _ => format!("{whole}from {min} to {max}"),
            }
        }
        Some((min, _)) => format!("never less than {min}"),
        None => "any value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found(matcher: Value, unit: Unit) -> Vec<(String, String, Option<String>)> {
        let written = WrittenExpectation(json!({ "t": matcher }));
        let problems = warnings(&written, "t", unit, "/expect/0");
        assert!(problems.iter().all(|problem| problem.warning));
        let all = problems.into_iter();
        all.map(|one| (one.pointer, one.message, one.help))
            .collect()
    }

    #[test]
    fn a_list_is_never_a_number() {
        let [(pointer, message, help)] = &found(json!({">=": 90}), Unit::List)[..] else {
            panic!("one warning");
        };
        assert_eq!(pointer, "/expect/0/t/>=");
        assert_eq!(message, "no value meets this: `t` is a list");
        assert!(help.as_ref().unwrap().contains("`t[-1]`"), "{help:?}");
        assert_eq!(found(json!({"every": {">=": 90}}), Unit::List), []);
        assert_eq!(found(json!({"exact": [100, 50]}), Unit::List), []);
    }

    #[test]
    fn the_probable_intent_is_named() {
        assert_eq!(
            found(json!({">=": 0.9}), Unit::Percent),
            [(
                "/expect/0/t/>=".to_owned(),
                "this only distinguishes 0 from all other values: `t` is a whole percent from 0 \
                 to 100"
                    .to_owned(),
                Some("did you mean `90`?".to_owned())
            )]
        );
        assert_eq!(
            found(json!({">=": 80}), Unit::Fraction),
            [(
                "/expect/0/t/>=".to_owned(),
                "no value meets this: `t` is from 0 to 1".to_owned(),
                Some("did you mean `0.8`?".to_owned())
            )]
        );
        let schema = json!({"schema": {"maximum": 0.07}});
        let help = found(schema, Unit::Percent).remove(0).2;
        assert_eq!(help.as_deref(), Some("did you mean `7`?"));
    }

    #[test]
    fn both_spellings_and_all_comparisons_are_checked() {
        let written = WrittenExpectation(json!({"target": "t", "matcher": {"<": 0}}));
        let problems = warnings(&written, "t", Unit::Count, "/expect/1");
        assert_eq!(problems[0].pointer, "/expect/1/matcher/<");
        assert_eq!(
            problems[0].message,
            "no value meets this: `t` is never less than 0"
        );
        for matcher in [
            json!(2),
            json!({"==": 2}),
            json!({"exact": -1}),
            json!({">": 1}),
        ] {
            assert_eq!(found(matcher.clone(), Unit::Flag).len(), 1, "{matcher}");
        }
    }

    #[test]
    fn reasonable_bounds_raise_nothing() {
        for (matcher, unit) in [
            (json!({">=": 80}), Unit::Percent),
            (json!({">=": 1}), Unit::Percent),
            (json!({"<=": 0}), Unit::Percent),
            (json!(100), Unit::Percent),
            (json!({">=": 0.8}), Unit::Fraction),
            (json!({"==": 1}), Unit::Fraction),
            (json!({">=": 1}), Unit::Flag),
            (json!({"<=": 2000}), Unit::Tokens),
            (json!({"<=": 0.01}), Unit::Dollars),
            (json!({"contains": 0.5}), Unit::List),
            (json!({"exists": true}), Unit::Percent),
        ] {
            assert_eq!(found(matcher.clone(), unit), [], "{matcher}");
        }
    }

    proptest! {
        /// A warning that a bound is always or never true agrees with every value of the range.
        #[test]
        fn effects_agree_with_the_values(bound in -5..200_i32, value in 0..=100_i32, rule in 0..5_usize) {
            use Comparison::{AtLeast, AtMost, Equal, LessThan, MoreThan};
            let comparison = [AtLeast, MoreThan, AtMost, LessThan, Equal][rule];
            let holds = match comparison {
                AtLeast => value >= bound,
                MoreThan => value > bound,
                AtMost => value <= bound,
                LessThan => value < bound,
                Equal => value == bound,
            };
            match effect(comparison, bound.into(), 0.0, 100.0) {
                Some("this is true for every value") => prop_assert!(holds),
                Some(_) => prop_assert!(!holds),
                None => {}
            }
        }
    }
}
