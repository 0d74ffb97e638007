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

/// A matcher that the figure meets always or never, unless its value is on the right scale.
#[derive(Debug, Clone, PartialEq)]
struct Bound<'a> {
    test: Test<'a>,
    /// True below an odd number of `not` and `!=`.
    negated: bool,
    /// True for a bound on the items of a list.
    of_items: bool,
    /// The place of the value.
    pointer: String,
}

/// The part of a matcher that decides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Test<'a> {
    /// A comparison with a number.
    Number(Comparison, f64),
    /// Equality with a value that is not a number.
    Value(&'a Value),
    /// A matcher for strings, lists or mappings.
    NoNumber,
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
    let mut found = Vec::new();
    if let Some(matcher) = matcher {
        bounds(matcher, at, (false, false), &mut found);
    }
    let warnings = found
        .into_iter()
        .filter_map(|bound| warning(bound, target, unit));
    warnings.collect()
}

/// The warning about a bound, if the range of the unit makes it pointless.
fn warning(bound: Bound<'_>, target: &str, unit: Unit) -> Option<Problem> {
    let item = target.ends_with(']') || bound.of_items;
    let unit = match (unit, item) {
        (Unit::List, false) => return of_list(bound, target),
        // The items of a list are whole percents.
        (Unit::List, true) => Unit::Percent,
        // Quantifiers are for lists.
        (_, _) if bound.of_items => return None,
        (unit, _) => unit,
    };
    let (min, max) = unit.range()?;
    let (effect, meant) = match bound.test {
        Test::Number(comparison, number) => (
            effect(comparison, number, unit, (min, max))?,
            intent(number, unit),
        ),
        // An undefined figure is null.
        Test::Value(Value::Null) => return None,
        Test::Value(value) => (NEVER, meant_number(value, unit)),
        Test::NoNumber => (NEVER, None),
    };
    let effect = match (effect, bound.negated) {
        (ALWAYS, true) => NEVER,
        (NEVER, true) => ALWAYS,
        (effect, _) => effect,
    };
    let subject = if bound.of_items {
        format!("an item of `{target}`")
    } else {
        format!("`{target}`")
    };
    let message = format!("{effect}: {subject} is {}", range_text(unit));
    let problem = Problem::new(bound.pointer, message).as_warning();
    Some(match meant {
        Some(meant) => problem.help(format!("did you mean {meant}?")),
        None => problem,
    })
}

/// The warning about a list that is compared with a number.
fn of_list(bound: Bound<'_>, target: &str) -> Option<Problem> {
    let Test::Number(..) = bound.test else {
        return None;
    };
    let message = format!("no value meets this: `{target}` is a list");
    let help =
        format!("compare an item (`{target}[-1]` is the last), or all of them: `every: {{…}}`");
    let problem = Problem::new(bound.pointer, message).help(help);
    (!bound.negated).then(|| problem.as_warning())
}

/// Collects the tests of a matcher, each with the pointer of its value. `within` is `negated` and
/// `of_items` of the place.
fn bounds<'a>(matcher: &'a Value, at: String, within: (bool, bool), found: &mut Vec<Bound<'a>>) {
    use Comparison::{AtLeast, AtMost, Equal, LessThan, MoreThan};
    let (negated, of_items) = within;
    let mut add = |test, negated, pointer| {
        found.push(Bound {
            test,
            negated,
            of_items,
            pointer,
        });
    };
    let Value::Object(rules) = matcher else {
        add(equality(matcher), negated, at);
        return;
    };
    for (rule, value) in rules {
        let pointer = pointer_join(&at, rule);
        let comparison = match rule.as_str() {
            ">=" => AtLeast,
            ">" => MoreThan,
            "<=" => AtMost,
            "<" => LessThan,
            "==" | "exact" => {
                add(equality(value), negated, pointer);
                continue;
            }
            "!=" => {
                add(equality(value), !negated, pointer);
                continue;
            }
            "contains" | "icontains" | "contains-all" | "contains_all" | "contains-any"
            | "contains_any" | "regex" | "length" => {
                add(Test::NoNumber, negated, pointer);
                continue;
            }
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
                    if let Some(limit) = limit.as_f64() {
                        let test = Test::Number(comparison, limit);
                        add(test, negated, pointer_join(&pointer, key));
                    }
                }
                continue;
            }
            _ => continue,
        };
        if let Some(bound) = value.as_f64() {
            add(Test::Number(comparison, bound), negated, pointer);
        }
    }
    for (rule, value) in rules {
        let pointer = pointer_join(&at, rule);
        match (rule.as_str(), value) {
            ("not", inner) => bounds(inner, pointer, (!negated, of_items), found),
            ("any" | "every", inner) => bounds(inner, pointer, (negated, true), found),
            ("none", inner) => bounds(inner, pointer, (!negated, true), found),
            ("all-of" | "all_of" | "any-of" | "any_of", Value::Array(parts)) => {
                for (index, part) in parts.iter().enumerate() {
                    let pointer = pointer_join(&pointer, &index.to_string());
                    bounds(part, pointer, within, found);
                }
            }
            _ => {}
        }
    }
}

/// The test that a value is equal to this one.
fn equality(value: &Value) -> Test<'_> {
    match value.as_f64() {
        Some(number) => Test::Number(Comparison::Equal, number),
        None => Test::Value(value),
    }
}

const ALWAYS: &str = "this is true for every value";
const NEVER: &str = "no value meets this";
const ZERO: &str = "this only distinguishes 0 from all other values";

/// The effect of a bound that the range makes pointless. On a scale of whole percents, a bound
/// between 0 and 1 only distinguishes zero from everything else.
fn effect(
    comparison: Comparison,
    bound: f64,
    unit: Unit,
    (min, max): (f64, f64),
) -> Option<&'static str> {
    let (always, never) = match comparison {
        Comparison::AtLeast => (bound <= min, bound > max),
        Comparison::MoreThan => (bound < min, bound >= max),
        Comparison::AtMost => (bound >= max, bound < min),
        Comparison::LessThan => (bound > max, bound <= min),
        Comparison::Equal => {
            let whole = !matches!(unit, Unit::Fraction | Unit::Dollars | Unit::Milliseconds);
            let between = whole && bound.fract() != 0.0;
            (false, bound < min || bound > max || between)
        }
    };
    let of_zero = max > 1.0 && max.is_finite() && bound > 0.0 && bound < 1.0;
    match (always, never) {
        (true, _) => Some(ALWAYS),
        (_, true) => Some(NEVER),
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

/// The number that was probably meant by a value that is none: `true`, `"90 %"` or `">= 90"`.
fn meant_number(value: &Value, unit: Unit) -> Option<String> {
    match value {
        Value::Bool(flag) if unit == Unit::Flag => Some(format!("`{}`", u8::from(*flag))),
        Value::String(text) => {
            let text = text.trim();
            let digits = text.trim_start_matches(['>', '<', '=', '!']);
            let (rule, digits) = (&text[..text.len() - digits.len()], digits.trim());
            let number: f64 = digits
                .strip_suffix('%')
                .unwrap_or(digits)
                .trim()
                .parse()
                .ok()?;
            let number = Value::from(number).to_string();
            let number = number.strip_suffix(".0").unwrap_or(&number);
            Some(if matches!(rule, ">=" | ">" | "<=" | "<" | "==" | "!=") {
                format!("`{{\"{rule}\": {number}}}`")
            } else {
                format!("`{number}`")
            })
        }
        _ => None,
    }
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
        assert_eq!(found(json!({"length": 4}), Unit::List), []);
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
    fn matchers_in_matchers_are_checked() {
        let one = |matcher: Value, unit| {
            let all = found(matcher.clone(), unit);
            let [(pointer, message, help)] = &all[..] else {
                panic!("{matcher}: {all:?}");
            };
            (pointer.clone(), message.clone(), help.clone())
        };
        let (pointer, message, help) = one(json!({"not": {"<": 0.9}}), Unit::Percent);
        assert_eq!(pointer, "/expect/0/t/not/<");
        assert!(message.starts_with(ZERO), "{message}");
        assert_eq!(help.as_deref(), Some("did you mean `90`?"));
        let (_, message, _) = one(json!({"not": {">": 100}}), Unit::Percent);
        assert!(message.starts_with(ALWAYS), "{message}");
        let (pointer, message, _) = one(json!({"!=": 0.9}), Unit::Percent);
        assert_eq!(pointer, "/expect/0/t/!=");
        assert!(message.starts_with(ALWAYS), "{message}");
        let (pointer, ..) = one(json!({"any-of": [{"==": 0}, {">=": 80}]}), Unit::Fraction);
        assert_eq!(pointer, "/expect/0/t/any-of/1/>=");
        let (pointer, message, help) = one(json!({"every": {">=": 0.9}}), Unit::List);
        assert_eq!(pointer, "/expect/0/t/every/>=");
        assert!(
            message.contains("an item of `t` is a whole percent"),
            "{message}"
        );
        assert_eq!(help.as_deref(), Some("did you mean `90`?"));
        let written = WrittenExpectation(json!({"t[3]": {">=": 0.9}}));
        let problems = warnings(&written, "t[3]", Unit::List, "");
        assert!(problems[0].message.contains("`t[3]` is a whole percent"));
    }

    #[test]
    fn values_that_no_figure_has_are_found() {
        let help = |matcher: Value, unit| {
            let all = found(matcher.clone(), unit);
            assert_eq!(all.len(), 1, "{matcher}: {all:?}");
            assert!(all[0].1.starts_with(NEVER), "{all:?}");
            all[0].2.clone()
        };
        let meant = |text: &str| Some(format!("did you mean `{text}`?"));
        assert_eq!(help(json!(true), Unit::Flag), meant("1"));
        assert_eq!(help(json!({"exact": false}), Unit::Flag), meant("0"));
        assert_eq!(help(json!("90 %"), Unit::Percent), meant("90"));
        assert_eq!(help(json!(">= 90"), Unit::Percent), meant("{\">=\": 90}"));
        assert_eq!(help(json!("0.5"), Unit::Fraction), meant("0.5"));
        assert_eq!(help(json!("high"), Unit::Percent), None);
        assert_eq!(help(json!({"contains": "9"}), Unit::Percent), None);
        assert_eq!(help(json!({"==": 0.5}), Unit::Count), None);
        assert_eq!(help(json!({"==": 66.67}), Unit::Percent), None);
        assert_eq!(help(json!(0.5), Unit::Flag), None);
        // An undefined figure is null.
        assert_eq!(found(json!({"exact": null}), Unit::Percent), []);
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
            match effect(comparison, bound.into(), Unit::Percent, (0.0, 100.0)) {
                Some(ALWAYS) => prop_assert!(holds),
                Some(_) => prop_assert!(!holds),
                None => {}
            }
        }
    }
}
