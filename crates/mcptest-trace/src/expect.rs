//! Expectations: a target and a matcher, and the assertion that applying them gives.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::judge::Judge;
use crate::matcher::{Difference, Matcher, Problem, matcher_schema};
use crate::target::{Gap, Selected, Target};
use crate::trace::Node;
use mcptest_json::pointer_join;
use mcptest_json::text::shorten;
use mcptest_json::write;

/// An entry of an `expect:` list as written. Both spellings are one thing:
///
/// ```yaml
/// - target: tool_calls[0].name
///   matcher: { exact: get_invoice }
/// - tool_selection.f1: { ">=": 80 }
/// ```
///
/// In the short one, a plain value means `exact`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WrittenExpectation(pub Value);

impl JsonSchema for WrittenExpectation {
    fn schema_name() -> Cow<'static, str> {
        "Expectation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let matcher = matcher_schema(generator);
        json_schema!({
            "description": "A target and what its value must look like.",
            "x-mcptest-expected": "`target:` with `matcher:`, or `<target>: <matcher>`",
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "target": {"type": "string", "minLength": 1, "description": "The path of the value, such as `tool_calls[0].name`."},
                        "matcher": matcher,
                    },
                    "required": ["target", "matcher"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "x-mcptest-expected": "one `<target>: <matcher>` pair",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "properties": {"target": false, "matcher": false},
                    "additionalProperties": {
                        "x-mcptest-expected": "a matcher, or a plain value that must be equal",
                        "anyOf": [matcher, {"type": ["string", "number", "boolean", "null"]}]
                    }
                }
            ]
        })
    }
}

/// An expectation that is ready to be applied.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// The path of the value.
    pub target: Target,
    /// The matcher that the value must match.
    pub matcher: Matcher,
    /// True for a gate's own default, false for one that the suite has.
    pub default: bool,
}

impl Expectation {
    /// A gate's default. The target is one of the gate's own: keys with dots between.
    #[must_use]
    pub fn default_of(target: &str, matcher: Matcher) -> Self {
        Self {
            target: Target::dotted(target),
            matcher,
            default: true,
        }
    }

    /// Compiles a written expectation; pointers of problems start at `at`.
    ///
    /// # Errors
    /// All problems of its target and matcher.
    pub fn compile(written: &WrittenExpectation, at: &str) -> Result<Self, Vec<Problem>> {
        let Value::Object(map) = &written.0 else {
            return Err(vec![Problem::new(at, "expected `target:` with `matcher:`")]);
        };
        let mut problems = Vec::new();
        let long_form = map.contains_key("target");
        // Pointers are built only where they are needed: most expectations have no problem.
        let (path, path_key, matcher) = if let Some(path) = map.get("target") {
            let matcher = match map.get("matcher") {
                Some(matcher) => Matcher::compile_for_test(matcher, &pointer_join(at, "matcher")),
                None => Err(vec![Problem::new(at, "missing key `matcher`")]),
            };
            (path.as_str().unwrap_or(""), "target", matcher)
        } else {
            let Some((path, value)) = map.iter().next().filter(|_| map.len() == 1) else {
                return Err(vec![Problem::new(
                    at,
                    "expected one `<target>: <matcher>` pair",
                )]);
            };
            let matcher = if value.is_object() {
                Matcher::compile_for_test(value, &pointer_join(at, path))
            } else {
                Ok(Matcher::exact(value.clone()))
            };
            (path.as_str(), path.as_str(), matcher)
        };
        let target = Target::parse(path).map_err(|error| {
            let place = pointer_join(at, path_key);
            let problem = Problem::new(place, format!("`{path}` is not a target: {error}"))
                .help("targets look like `tool_calls[0].args.city`, `tool_names`, `tool_calls[*].name`, `tool[\"name\"].score`");
            if long_form { problem } else { problem.on_key() }
        });
        let matcher = matcher.map_err(|more| problems.extend(more));
        match (target, matcher) {
            (Ok(target), Ok(matcher)) => Ok(Self {
                target,
                matcher,
                default: false,
            }),
            (target, _) => {
                if let Err(problem) = target {
                    problems.insert(0, problem);
                }
                Err(problems)
            }
        }
    }

    /// The judge, for a matcher that asks one.
    #[must_use]
    pub fn judge(&self) -> Option<&Judge> {
        self.matcher.judge()
    }

    /// A problem if it asks a model where only evidence may decide. `owner` names the place.
    #[must_use]
    pub fn refuse_judge(
        &self,
        written: &WrittenExpectation,
        at: &str,
        owner: &str,
    ) -> Option<Problem> {
        self.judge()?;
        let matcher = match written.0.get("matcher") {
            Some(_) => pointer_join(at, "matcher"),
            None => pointer_join(at, self.target.as_str()),
        };
        let key = self.matcher.written().as_object()?.keys().next()?;
        let problem = Problem::new(
            pointer_join(&matcher, key),
            format!("`{key}` asks a model, and {owner} is decided by evidence alone"),
        );
        Some(
            problem
                .on_key()
                .help("judged matchers belong into the test's own `expect:` list"),
        )
    }

    /// Returns true if the expectation holds. Nothing is explained.
    #[must_use]
    pub fn holds<'n>(&self, root: impl Into<Node<'n>>) -> bool {
        match self.target.find(root) {
            None => self.matcher.check(None).is_ok(),
            Some(Selected::Place(node)) => self.matcher.holds_at(&node),
            Some(Selected::List(list)) => self.matcher.check(Some(&list)).is_ok(),
        }
    }

    /// Applies it. `absent_because` explains a value that is not there.
    #[must_use]
    pub fn apply<'n>(&self, root: impl Into<Node<'n>>, absent_because: Option<&str>) -> Assertion {
        let root = root.into();
        // A figure that is `null` because it is undefined is as good as absent.
        let selected = self
            .target
            .select(root.clone())
            .filter(|value| !(value.is_null() && absent_because.is_some()));
        let outcome = self.matcher.check(selected.as_ref());
        let (reason, diff) = match outcome {
            Ok(()) => (None, Vec::new()),
            Err(mismatch) => {
                let reason = match (&selected, absent_because) {
                    (None, Some(why)) => format!("{}: {why}", mismatch.reason),
                    (None, None) => match self.target.gap(root) {
                        Some(gap) => format!("{}: {}", mismatch.reason, gap_text(&gap)),
                        None => mismatch.reason,
                    },
                    _ => mismatch.reason,
                };
                (Some(reason), mismatch.differences)
            }
        };
        Assertion {
            default: self.default,
            diff,
            ..Assertion::new(
                self.target.as_str(),
                self.matcher.written().clone(),
                selected.unwrap_or(Value::Null),
                reason,
            )
        }
    }
}

/// The number of keys that the explanation of an absent value lists.
const MAX_KEYS: usize = 12;

/// The reason why a path selects nothing: the place where it leaves the value.
fn gap_text((path, gap): &(String, Gap)) -> String {
    let place = match path.is_empty() {
        true => "there".to_owned(),
        false => format!("`{path}`"),
    };
    match gap {
        Gap::Key { known, .. } if known.is_empty() => format!("{place} has no keys"),
        Gap::Key { key, known } => {
            let mut listed: Vec<String> = known
                .iter()
                .take(MAX_KEYS)
                .map(|key| format!("`{key}`"))
                .collect();
            if known.len() > MAX_KEYS {
                listed.push(format!("and {} more", known.len() - MAX_KEYS));
            }
            let key = shorten(key, 60);
            match path.is_empty() {
                true => format!("there is no `{key}`, only {}", listed.join(", ")),
                false => format!("{place} has no `{key}`, only {}", listed.join(", ")),
            }
        }
        Gap::Index { index, length } => {
            let plural = if *length == 1 { "item" } else { "items" };
            format!("{place} has {length} {plural}, so there is no `[{index}]`")
        }
        Gap::Scalar => format!("{place} has no parts"),
    }
}

/// The outcome of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assertion {
    /// The path of the value.
    pub target: String,
    /// The matcher as written.
    pub matcher: Value,
    /// The value that was found; `null` if there was none.
    pub actual: Value,
    /// True if it held.
    pub passed: bool,
    /// True for a gate's own default.
    #[serde(default)]
    pub default: bool,
    /// True for a model's opinion, false for evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// The reason why it has no outcome. It is then neither a pass nor a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The reason why it did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The places where structures differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<Difference>,
}

/// Appends a key, with what is before it, and a flag.
fn flag(key: &str, value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(key.as_bytes());
    let word: &[u8] = if value { b"true" } else { b"false" };
    out.extend_from_slice(word);
}

impl Assertion {
    /// The outcome of an assertion on evidence. It holds unless there is a reason why not.
    #[must_use]
    pub fn new(
        target: impl Into<String>,
        matcher: Value,
        actual: Value,
        why_not: Option<String>,
    ) -> Self {
        Self {
            target: target.into(),
            matcher,
            actual,
            passed: why_not.is_none(),
            default: false,
            judged: false,
            skipped: None,
            reason: why_not,
            diff: Vec::new(),
        }
    }

    /// Appends the assertion as compact JSON: the bytes of [`serde_json::to_string`].
    ///
    /// # Errors
    /// None in memory.
    pub fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let Self {
            target,
            matcher,
            actual,
            passed,
            default,
            judged,
            skipped,
            reason,
            diff,
        } = self;
        out.extend_from_slice(b"{\"target\":");
        write::string(target, out);
        out.extend_from_slice(b",\"matcher\":");
        write::value(matcher, out);
        out.extend_from_slice(b",\"actual\":");
        write::value(actual, out);
        flag(",\"passed\":", *passed, out);
        flag(",\"default\":", *default, out);
        if *judged {
            flag(",\"judged\":", true, out);
        }
        for (key, text) in [(",\"skipped\":", skipped), (",\"reason\":", reason)] {
            if let Some(text) = text {
                out.extend_from_slice(key.as_bytes());
                write::string(text, out);
            }
        }
        if !diff.is_empty() {
            out.extend_from_slice(b",\"diff\":");
            serde_json::to_writer(&mut *out, diff)?;
        }
        out.push(b'}');
        Ok(())
    }

    /// Returns true if it was applied and did not hold.
    #[must_use]
    pub fn failed(&self) -> bool {
        !self.passed && self.skipped.is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile(written: Value) -> Result<Expectation, Vec<Problem>> {
        Expectation::compile(&WrittenExpectation(written), "/expect/0")
    }

    #[test]
    fn assertions_are_written_as_serde_writes_them() {
        let root = json!({"a": {"b": [1, "x\n"]}, "long": "y".repeat(60)});
        for written in [
            json!({"a.b[1]": "x\n"}),
            json!({"a": {"exact": {"b": [2, "x"]}}}),
            json!({"long": {"contains": "\"z\""}}),
            json!({"gone": 1}),
        ] {
            let mut assertion = compile(written).unwrap().apply(&root, None);
            for round in 0..4 {
                let mut out = Vec::new();
                assertion.write_json(&mut out).unwrap();
                let expected = serde_json::to_string(&assertion).unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), expected);
                assertion.judged = round % 2 == 0;
                assertion.default = round > 1;
                assertion.skipped = (round == 2).then(|| "off\t".to_owned());
            }
        }
    }

    #[test]
    fn an_absent_path_lists_what_is_there() {
        let root = json!({"result": {"content": [{"type": "text"}], "is_error": false}});
        let reason = |target: &str| {
            let expectation = compile(json!({ target: {"contains": "x"} })).unwrap();
            expectation.apply(&root, None).reason.unwrap()
        };
        for (target, expected) in [
            (
                "result.txt",
                "`result` has no `txt`, only `content`, `is_error`",
            ),
            ("reslt", "there is no `reslt`, only `result`"),
            (
                "result.content[0].text",
                "`result.content[0]` has no `text`, only `type`",
            ),
            (
                "result.content[2]",
                "`result.content` has 1 item, so there is no `[2]`",
            ),
            ("result.is_error.x", "`result.is_error` has no parts"),
        ] {
            assert_eq!(reason(target), format!("the value is absent: {expected}"));
        }
        // Hostile evidence has many keys.
        let many: Value = (0..1000).map(|key| (format!("k{key}"), json!(1))).collect();
        let expectation = compile(json!({"x": {"contains": "x"}})).unwrap();
        let reason = expectation.apply(&many, None).reason.unwrap();
        assert!(reason.ends_with("and 988 more"), "{reason}");
    }

    #[test]
    fn an_error_flag_may_be_spelled_as_in_mcp() {
        let expectation = compile(json!({"result.isError": true})).unwrap();
        assert!(expectation.holds(&json!({"result": {"is_error": true}})));
        assert!(!expectation.holds(&json!({"result": {"is_error": false}})));
        assert!(!expectation.holds(&json!({"result": {"isError": false, "is_error": true}})));
    }

    #[test]
    fn both_spellings_and_the_plain_value() {
        let seen = json!({"a": {"b": 5}});
        for written in [
            json!({"target": "a.b", "matcher": {"exact": 5}}),
            json!({"a.b": {">=": 5}}),
            json!({"a.b": 5}),
        ] {
            assert!(compile(written).unwrap().apply(&seen, None).passed);
        }
        let failed = compile(json!({"a.b": 6})).unwrap().apply(&seen, None);
        assert!(!failed.passed);
        assert_eq!(failed.actual, json!(5));
        assert_eq!(failed.matcher, json!({"exact": 6}));
    }

    #[test]
    fn problems_of_target_and_matcher_come_together() {
        let problems = compile(json!({"target": "a..b", "matcher": {"regex": "("}})).unwrap_err();
        let places: Vec<_> = problems
            .iter()
            .map(|problem| problem.pointer.as_str())
            .collect();
        assert_eq!(places, ["/expect/0/target", "/expect/0/matcher/regex"]);
        assert!(compile(json!({"a": 1, "b": 2})).is_err());
        assert!(compile(json!({"target": "a"})).is_err());
    }

    #[test]
    fn absent_has_a_reason() {
        let expectation = compile(json!({"a.cost": {"<=": 1}})).unwrap();
        let assertion = expectation.apply(
            &json!({"a": {"cost": null}}),
            Some("no price is known for model `x`"),
        );
        assert!(!assertion.passed);
        assert_eq!(
            assertion.reason.as_deref(),
            Some("the value is absent: no price is known for model `x`")
        );
    }
}
