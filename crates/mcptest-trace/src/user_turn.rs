//! Further messages of the user in a run (`turns:`), and the first one that was not said.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::expect::{Assertion, Expectation, WrittenExpectation};
use crate::trace::{Observable, TraceView};

/// The key of a trace for the first turn of the user that was not said.
pub const UNSAID_TURN_KEY: &str = "unsaid_turn";

/// A message that the user sends after an answer of the agent.
#[derive(Debug, Clone)]
pub struct UserTurn {
    /// The message.
    pub say: String,
    /// The condition on the run so far; without it, the message is always sent.
    pub when: Option<Expectation>,
}

impl UserTurn {
    /// The turn as data, which [`UserTurn::read`] reads again.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.when {
            Some(when) => json!({
                "say": self.say,
                "when": {"target": when.target.as_str(), "matcher": when.matcher.written()},
            }),
            None => json!({"say": self.say}),
        }
    }

    /// Reads a turn from data; `None` if it is not one.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        let when = match value.get("when") {
            Some(when) => Some(Expectation::compile(&WrittenExpectation(when.clone()), "").ok()?),
            None => None,
        };
        Some(Self {
            say: value.get("say")?.as_str()?.to_owned(),
            when,
        })
    }

    /// Returns the reason why the message is not sent, if its condition does not hold. `index` is
    /// its place in the list, from 0.
    #[must_use]
    pub fn unsaid(&self, index: usize, seen: Observable<'_>) -> Option<UnsaidTurn> {
        let when = self.when.as_ref()?;
        if when.holds(seen) {
            return None;
        }
        let assertion = when.apply(seen, None);
        Some(UnsaidTurn {
            turn: index,
            when: Some(Condition {
                target: assertion.target,
                matcher: assertion.matcher,
                actual: assertion.actual,
            }),
            reason: assertion.reason.unwrap_or_default(),
        })
    }
}

/// The first message of the user that was not sent: the run ended before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnsaidTurn {
    /// Its place in `turns:`, from 0.
    pub turn: usize,
    /// The condition that did not hold; absent if the run ended for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// The reason why it was not sent.
    pub reason: String,
}

/// A condition that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The path of the value.
    pub target: String,
    /// The matcher as written.
    pub matcher: Value,
    /// The value that was found; `null` if there was none.
    #[serde(default)]
    pub actual: Value,
}

impl UnsaidTurn {
    /// A message that was not sent because the run ended without an answer before it.
    #[must_use]
    pub fn without_answer(index: usize, stop_reason: &str) -> Self {
        Self {
            turn: index,
            when: None,
            reason: format!("the run ended before this message (`{stop_reason}`)"),
        }
    }

    /// Reads the message that was not sent in a run.
    #[must_use]
    pub fn of(trace: &TraceView<'_>) -> Option<Self> {
        let value = trace.extra.get(UNSAID_TURN_KEY)?;
        Self::deserialize(value).ok()
    }

    /// The failed assertion that reports show.
    #[must_use]
    pub fn into_assertion(self) -> Assertion {
        let Self { turn, when, reason } = self;
        match when {
            Some(when) => Assertion::new(
                format!("turns[{turn}].when.{}", when.target),
                when.matcher,
                when.actual,
                Some(format!("the user did not continue: {reason}")),
            ),
            None => Assertion::new(
                format!("turns[{turn}].said"),
                json!({"exact": true}),
                false.into(),
                Some(reason),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;

    fn turn(when: Value) -> UserTurn {
        UserTurn {
            say: "Yes.".to_owned(),
            when: Some(Expectation::compile(&WrittenExpectation(when), "").unwrap()),
        }
    }

    #[test]
    fn a_condition_that_does_not_hold_is_explained() {
        let mut trace = Trace {
            final_response: Some("Done.".into()),
            ..Trace::default()
        };
        let asked = turn(json!({"final_response": {"contains": "?"}}));
        let unsaid = asked.unsaid(1, trace.observable()).unwrap();
        trace
            .extra
            .insert(UNSAID_TURN_KEY, serde_json::to_value(&unsaid).unwrap());
        assert_eq!(UnsaidTurn::of(&trace), Some(unsaid.clone()));
        let assertion = unsaid.into_assertion();
        assert!(assertion.failed());
        assert_eq!(assertion.target, "turns[1].when.final_response");
        assert_eq!(assertion.actual, "Done.");
        assert!(
            assertion
                .reason
                .unwrap()
                .starts_with("the user did not continue: ")
        );
        let done = turn(json!({"final_response": "Done."}));
        assert_eq!(done.unsaid(0, trace.observable()), None);
    }

    #[test]
    fn a_turn_survives_as_data() {
        for when in [
            json!({"final_response": "a"}),
            json!({"tool_names": {"length": 2}}),
        ] {
            let written = turn(when).to_value();
            assert_eq!(UserTurn::read(&written).unwrap().to_value(), written);
        }
        let always = json!({"say": "Continue."});
        assert_eq!(UserTurn::read(&always).unwrap().to_value(), always);
        assert!(UserTurn::read(&json!({"say": "x", "when": {"a": {"regex": "("}}})).is_none());
    }

    #[test]
    fn a_run_that_ended_otherwise_is_a_failed_assertion_too() {
        let unsaid = UnsaidTurn::without_answer(0, "max_turns");
        let assertion = unsaid.into_assertion();
        assert_eq!(assertion.target, "turns[0].said");
        assert!(assertion.failed());
        assert!(assertion.reason.unwrap().contains("`max_turns`"));
    }
}
