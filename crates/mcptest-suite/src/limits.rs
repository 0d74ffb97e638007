//! Limits of a suite: the number of runs, and budgets.

use std::borrow::Cow;
use std::time::Duration;

use mcptest_catalog::prices::Usd;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use mcptest_yaml::duration::WrittenDuration;

/// The maximum number of runs: more are a typing error.
const MAX_RUNS: u32 = 100_000;

/// Limits on cost and time of a suite. They are checked before every request to a model.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetFile {
    /// The maximum cost in US dollars of each test with each of its models.
    #[schemars(schema_with = "dollars")]
    pub per_test_usd: Option<Number>,
    /// The maximum cost in US dollars of the suite. `--max-usd` overrides it.
    #[schemars(schema_with = "dollars")]
    pub per_suite_usd: Option<Number>,
    /// The maximum number of input and output tokens of the suite. `--max-tokens` overrides it.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// The maximum duration of the suite. `--max-duration` overrides it.
    pub max_duration: Option<WrittenDuration>,
}

/// Limits on the cost of one test with each of its models.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TestBudgetFile {
    /// The maximum cost in US dollars. Overrides the suite's `per_test_usd`.
    #[schemars(schema_with = "dollars")]
    pub usd: Option<Number>,
    /// The maximum number of input and output tokens in all runs of the test.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
}

fn dollars(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0, "maximum": 1_000_000})
}

/// The number of runs of a test, or a maximum with a rule for stopping early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenRuns {
    /// The maximum number of runs.
    pub max: u32,
    /// The rule for stopping early.
    pub stop: Option<StopFile>,
}

/// A maximum number of runs, and a rule for stopping early.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsFields {
    /// The maximum number of runs.
    #[schemars(range(min = 1, max = 100_000))]
    max: u32,
    /// The rule for stopping early. Default: none.
    #[serde(default)]
    stop: Option<StopFile>,
}

/// A rule for stopping a test before all its runs are made.
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
            "anyOf": [json!({"type": "integer", "minimum": 0, "maximum": MAX_RUNS}), fields]
        })
    }
}

/// Limits on the cost of one test with each of its models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestBudget {
    /// In dollars.
    pub usd: Option<Usd>,
    /// In tokens.
    pub tokens: Option<u64>,
}

/// Limits on cost and time of a suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// In dollars, for each test without its own limit.
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
    fn runs_are_a_number_or_a_maximum_with_a_rule() {
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
