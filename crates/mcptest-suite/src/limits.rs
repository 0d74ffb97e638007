//! How far a suite may go: how often a test runs, and what all of it may cost.

use std::borrow::Cow;
use std::time::Duration;

use mcptest_catalog::prices::Usd;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use crate::duration::WrittenDuration;

/// More runs than this are a slip of the finger.
const MOST_RUNS: u32 = 100_000;

/// Spend and time caps of a suite. They are looked at before every request to a model.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetFile {
    /// The most US dollars that each test may cost with each of its models.
    #[schemars(schema_with = "dollars")]
    pub per_test_usd: Option<Number>,
    /// The most US dollars that the suite may cost. `--max-usd` comes first.
    #[schemars(schema_with = "dollars")]
    pub per_suite_usd: Option<Number>,
    /// The most tokens that models may read and write in the whole suite. `--max-tokens` comes
    /// first.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// The longest that the suite may take. `--max-duration` comes first.
    pub max_duration: Option<WrittenDuration>,
}

/// Spend caps of one test, with each of its models.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TestBudgetFile {
    /// The most US dollars that the test may cost. Comes before the suite's `per_test_usd`.
    #[schemars(schema_with = "dollars")]
    pub usd: Option<Number>,
    /// The most tokens that the model may read and write in all of the test's runs.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
}

fn dollars(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0, "maximum": 1_000_000})
}

/// How often a test runs: a number, or the most runs with a rule for stopping before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenRuns {
    /// The most runs.
    pub max: u32,
    /// When to stop before.
    pub stop: Option<StopFile>,
}

/// The most runs, and when to stop before.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsFields {
    /// The most runs.
    #[schemars(range(min = 1, max = 100_000))]
    max: u32,
    /// When to stop before. Default: never.
    #[serde(default)]
    stop: Option<StopFile>,
}

/// When a test stops before all its runs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopFile {
    /// As soon as no further run can change a verdict of the test.
    Decided,
}

impl<'de> Deserialize<'de> for WrittenRuns {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        match Value::deserialize(deserializer)? {
            fields @ Value::Object(_) => serde_json::from_value(fields)
                .map(|RunsFields { max, stop }| Self { max, stop })
                .map_err(D::Error::custom),
            number => serde_json::from_value(number)
                .map(|max| Self { max, stop: None })
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for WrittenRuns {
    fn schema_name() -> Cow<'static, str> {
        "Runs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<RunsFields>();
        json_schema!({
            "x-mcptest-expected": "a number of runs, or `{max: 30, stop: decided}`",
            "anyOf": [json!({"type": "integer", "minimum": 0, "maximum": MOST_RUNS}), fields]
        })
    }
}

/// Caps on what one test may cost, with each of its models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestBudget {
    /// In dollars.
    pub usd: Option<Usd>,
    /// In tokens.
    pub tokens: Option<u64>,
}

/// Caps on what a suite may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// In dollars, for each test that has no cap of its own.
    pub per_test_usd: Option<Usd>,
    /// In dollars.
    pub usd: Option<Usd>,
    /// In tokens.
    pub tokens: Option<u64>,
    /// In time.
    pub duration: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_a_number_or_a_number_with_a_rule() {
        let runs = |value: Value| serde_json::from_value::<WrittenRuns>(value);
        assert_eq!(
            runs(json!(30)).unwrap(),
            WrittenRuns {
                max: 30,
                stop: None
            }
        );
        let decided = runs(json!({"max": 30, "stop": "decided"})).unwrap();
        assert_eq!((decided.max, decided.stop), (30, Some(StopFile::Decided)));
        assert_eq!(runs(json!({"max": 3})).unwrap().stop, None);
        for wrong in [
            json!("3"),
            json!(-1),
            json!({"stop": "decided"}),
            json!({"max": 3, "stop": "soon"}),
            json!([]),
        ] {
            assert!(runs(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
