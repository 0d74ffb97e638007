//! Matchers and expectations. The input is JSON: `[written, value]`.

use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::Matcher;
use serde_json::{Value, json};

use crate::property::assert_printable;

const AT: &str = "/expect/0";

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(Value::Array(parts)) = serde_json::from_slice(input) else {
        return;
    };
    let [written, value] = parts.as_slice() else {
        return;
    };
    match Matcher::compile(written, AT) {
        Err(problems) => {
            assert!(!problems.is_empty(), "rejected without a reason");
            for problem in problems {
                assert!(problem.pointer.starts_with(AT), "{}", problem.pointer);
                assert!(!problem.message.is_empty());
            }
        }
        Ok(matcher) => check(&matcher, written, value),
    }
    if let Ok(expectation) = Expectation::compile(&WrittenExpectation(written.clone()), AT) {
        let assertion = expectation.apply(value, None);
        assert_eq!(assertion.failed(), !expectation.holds(value));
        let _ = expectation.apply(value, Some("a reason"));
    }
}

fn check(matcher: &Matcher, written: &Value, value: &Value) {
    let holds = matcher.check(Some(value)).is_ok();
    assert_eq!(matcher.check(Some(value)).is_ok(), holds, "undecided");
    if let Err(mismatch) = matcher.check(Some(value)) {
        assert!(!mismatch.reason.is_empty(), "a mismatch without a reason");
    }
    let _ = matcher.check(None);
    let opposite = Matcher::compile(&json!({"not": written}), AT);
    let opposite = opposite.unwrap_or_else(|_| panic!("`not` of a valid matcher is not valid"));
    assert_ne!(opposite.check(Some(value)).is_ok(), holds, "`not` agrees");
    if let Value::Number(number) = value
        && let Some(decided) = matcher.holds_over(number, Some(number))
    {
        assert_eq!(decided, holds, "the bounds of one number");
    }
    assert_printable(&matcher.to_string().replace(|c: char| c.is_control(), " "));
}
