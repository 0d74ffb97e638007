//! The keys of a trace that attacks leave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use mcptest_trace::trace::TraceView;

use crate::carrier::Carrier;
use crate::written::{AttackTarget, Place};

/// The key of a trace with the attacks of its run. An empty list is a run without any; a trace
/// without the key knows nothing of attacks.
pub const ATTACKS_KEY: &str = "attacks";

/// The key of a result that carried an attack's text: the attack's name.
pub const ATTACK_KEY: &str = "attack";

/// The key of a result that mcptest made up instead of passing the call on.
pub const CONTAINED_KEY: &str = "contained";

/// An entry of a trace's `attacks`: an attack as one run had it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InjectedAttack {
    /// The attack's name.
    pub name: String,
    /// The place of its text.
    pub place: Place,
    /// The name of the bundled wording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The way in which the text was written.
    pub carrier: Carrier,
    /// The run's canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<String>,
    /// The texts or calls that it applies to.
    #[serde(skip_serializing_if = "AttackTarget::is_any")]
    pub target: AttackTarget,
    /// The text, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// For texts that no result carries: the number of calls before the model was first offered
    /// the text. Absent if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_after_calls: Option<u64>,
}

/// The attacks of a trace's run; `None` if the trace knows nothing of attacks.
#[must_use]
pub fn injected(trace: &TraceView<'_>) -> Option<Vec<InjectedAttack>> {
    serde_json::from_value(trace.extra(ATTACKS_KEY)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use mcptest_trace::trace::Trace;
    use schemars::schema_for;
    use serde_json::Value;

    use super::*;

    /// The published schema of traces describes what is written.
    #[test]
    fn the_schema_of_traces_has_every_key() {
        let schema = schema_for!(Trace).to_value();
        let own = schema_for!(InjectedAttack).to_value();
        let keys = |value: Option<&Value>| -> Vec<String> {
            let keys = value.and_then(Value::as_object).map(|map| map.keys());
            keys.into_iter().flatten().cloned().collect()
        };
        let written = keys(schema.pointer("/properties/attacks/items/properties"));
        assert_eq!(written, keys(own.get("properties")));
        assert_eq!(written.len(), 8);
        for (key, values) in [("place", "/$defs/Place"), ("carrier", "/$defs/Carrier")] {
            let at = format!("/properties/attacks/items/properties/{key}/enum");
            let listed = schema.pointer(&at).and_then(Value::as_array).unwrap();
            let own = own.pointer(values).unwrap().to_string();
            assert!(
                listed.iter().all(|value| own.contains(&value.to_string())),
                "{own}"
            );
            assert_eq!(listed.len(), own.matches("\"const\"").count());
        }
        let result = schema.pointer("/$defs/ToolResult/properties").unwrap();
        assert!(result.get(ATTACK_KEY).is_some() && result.get(CONTAINED_KEY).is_some());
        assert!(schema["properties"].get(ATTACKS_KEY).is_some());
    }
}
