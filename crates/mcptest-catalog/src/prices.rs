//! Prices of tokens, where they are known.
//!
//! `prices.json` next to this file is a dated snapshot of list prices; a suite's `prices:` overrides
//! any line of it and adds others:
//!
//! ```yaml
//! prices:
//!   claude-sonnet-4-5: { input_per_mtok: 3, output_per_mtok: 15, cached_input_per_mtok: 0.3 }
//! ```
//!
//! A model without a price has no cost; prices are never guessed. A dated version of a listed model
//! (`gpt-4o-2024-08-06`, `claude-haiku-4-5-20251001`, `claude-opus-4-5@20251101`, `…-latest`) and a
//! listed model with its provider's prefix (`anthropic/claude-opus-4-5`) have that model's price; a
//! reseller's prefix means another price, which is unknown.
//!
//! Money is counted exactly, in whole units of 10^-18 dollars, and becomes a floating-point number
//! once, at the end: 900 tokens at $3 and 120 at $15 per million are $0.0045 and not
//! $0.0045000000000000005.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;

use mcptest_json::pointer_join;
pub use mcptest_numbers::usd::Usd;
use mcptest_numbers::usd::{self, MAX_DECIMALS, MAX_DOLLARS};
use mcptest_trace::matcher::Problem;
use mcptest_trace::trace::TokensView;

/// Prices of one model in US dollars per million tokens, as written in a suite.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenPrice {
    /// Price of input tokens.
    #[schemars(schema_with = "amount")]
    pub input_per_mtok: Number,
    /// Price of output tokens.
    #[schemars(schema_with = "amount")]
    pub output_per_mtok: Number,
    /// Price of input tokens from the provider's cache. Default: the price of other input tokens.
    #[serde(default)]
    #[schemars(schema_with = "amount")]
    pub cached_input_per_mtok: Option<Number>,
}

/// A suite's `prices:`, by model id.
pub type WrittenPrices = BTreeMap<String, WrittenPrice>;

fn amount(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "number", "minimum": 0, "maximum": MAX_DOLLARS})
}

/// Prices of one model, ready to multiply: in units of 10^-12 dollars per million tokens, which is
/// 10^-18 dollars per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    input: u128,
    output: u128,
    cached_input: u128,
}

impl Price {
    /// Prices of a free model.
    pub const FREE: Self = Self {
        input: 0,
        output: 0,
        cached_input: 0,
    };

    fn compile(written: &WrittenPrice, at: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut read = |key: &str, number: &Number| {
            usd::units(number).unwrap_or_else(|| {
                problems.push(Problem::new(
                    pointer_join(at, key),
                    format!("{number} is not a price: expected a number from 0 to {MAX_DOLLARS} with at most {MAX_DECIMALS} decimals"),
                ));
                0
            })
        };
        let input = read("input_per_mtok", &written.input_per_mtok);
        let price = Self {
            input,
            output: read("output_per_mtok", &written.output_per_mtok),
            cached_input: match &written.cached_input_per_mtok {
                Some(number) => read("cached_input_per_mtok", number),
                None => input,
            },
        };
        if problems.is_empty() {
            Ok(price)
        } else {
            Err(problems)
        }
    }

    /// The maximum cost of this number of tokens, with or without a cache.
    #[must_use]
    pub fn most(&self, input: u64, output: u64) -> Usd {
        let dearest = self.input.max(self.cached_input);
        let input = u128::from(input).saturating_mul(dearest);
        Usd::from_units(input.saturating_add(u128::from(output).saturating_mul(self.output)))
    }

    /// The cost of a run's tokens; `None` if input or output is unknown. `cached_input`, where
    /// reported, is the part of `input` that was read from a cache.
    #[must_use]
    pub fn cost(&self, tokens: &TokensView<'_>) -> Option<Usd> {
        let (input, output) = (tokens.input?, tokens.output?);
        let cached = tokens
            .extra
            .get("cached_input")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(0)
            .min(input);
        let part =
            |count: u64, price: u128| Usd::from_units(u128::from(count).saturating_mul(price));
        Some(
            [
                part(input - cached, self.input),
                part(cached, self.cached_input),
                part(output, self.output),
            ]
            .into_iter()
            .sum(),
        )
    }
}

/// The known prices: the built-in snapshot, overridden by a suite's own.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

/// The built-in prices, parsed when the first price is needed: most suites need none.
struct Snapshot {
    date: String,
    models: BTreeMap<String, Price>,
}

#[derive(Deserialize)]
struct WrittenSnapshot {
    date: String,
    models: WrittenPrices,
}

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    let written: Option<WrittenSnapshot> = serde_json::from_str(include_str!("prices.json")).ok();
    // A test checks the snapshot; an invalid one would mean that no price is known.
    let (date, models) = written.map_or_else(Default::default, |written| {
        let models = Prices::default()
            .with(&written.models)
            .unwrap_or_default()
            .own;
        (written.date, models)
    });
    Snapshot { date, models }
});

impl Prices {
    /// The built-in snapshot.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: Prices = Prices {
            own: BTreeMap::new(),
        };
        &BUILTIN
    }

    /// The day of the snapshot, `YYYY-MM-DD`.
    #[must_use]
    pub fn date(&self) -> &'static str {
        &SNAPSHOT.date
    }

    /// The models that the snapshot has a price for.
    pub fn models() -> impl Iterator<Item = &'static str> {
        SNAPSHOT.models.keys().map(String::as_str)
    }

    /// These prices, overridden by a suite's own.
    ///
    /// # Errors
    /// Every invalid amount; pointers start at the mapping.
    pub fn with(&self, overrides: &WrittenPrices) -> Result<Self, Vec<Problem>> {
        let mut prices = self.clone();
        let mut problems = Vec::new();
        for (model, written) in overrides {
            match Price::compile(written, &pointer_join("", model)) {
                Ok(price) => {
                    prices.own.insert(model.clone(), price);
                }
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() {
            Ok(prices)
        } else {
            Err(problems)
        }
    }

    /// The price of a model.
    ///
    /// ```
    /// # use mcptest_catalog::prices::Prices;
    /// let prices = Prices::builtin();
    /// assert_eq!(prices.find("gpt-4o-2024-08-06"), prices.find("gpt-4o"));
    /// assert!(prices.find("gpt-4o-mini-of-my-own").is_none());
    /// ```
    #[must_use]
    pub fn find(&self, model: &str) -> Option<&Price> {
        let bare = without_provider(model);
        [model, without_version(model), bare, without_version(bare)]
            .iter()
            .find_map(|id| self.own.get(*id).or_else(|| SNAPSHOT.models.get(*id)))
    }
}

fn without_provider(model: &str) -> &str {
    ["anthropic/", "openai/", "google/", "gemini/", "models/"]
        .iter()
        .find_map(|provider| model.strip_prefix(provider))
        .unwrap_or(model)
}

/// Strips `-20251001`, `@20251101`, `-2024-08-06` or `-latest`.
fn without_version(model: &str) -> &str {
    if let Some(base) = model.strip_suffix("-latest") {
        return base;
    }
    let is_date = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, wanted)| {
                if wanted == b'0' {
                    byte.is_ascii_digit()
                } else {
                    byte == wanted
                }
            })
    };
    for shape in ["-00000000", "@00000000", "-0000-00-00"] {
        let at = model.len().saturating_sub(shape.len());
        if at > 0 && model.is_char_boundary(at) && is_date(&model[at..], shape) {
            return &model[..at];
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn tokens(value: Value) -> mcptest_trace::trace::Tokens {
        serde_json::from_value(value).unwrap()
    }

    fn with(value: Value) -> Result<Prices, Vec<Problem>> {
        Prices::builtin().with(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn the_snapshot_is_complete_and_dated() {
        let raw: Value = serde_json::from_str(include_str!("prices.json")).unwrap();
        let prices = Prices::builtin();
        assert_eq!(
            SNAPSHOT.models.len(),
            raw["models"].as_object().unwrap().len()
        );
        assert!(SNAPSHOT.models.len() > 40);
        assert_eq!(prices.date(), raw["date"]);
        assert_eq!(prices.date().len(), 10);
        for (model, price) in &SNAPSHOT.models {
            assert!(
                price.input > 0 && price.output >= price.input && price.cached_input <= price.input,
                "{model} has an implausible price"
            );
            assert_eq!(
                without_version(without_provider(model)),
                model,
                "a listed id must be a base id"
            );
        }
    }

    #[test]
    fn cost_is_exact() {
        let price = Prices::builtin().find("claude-sonnet-4-5").unwrap();
        let cost = |value| price.cost(&tokens(value)).map(Usd::to_f64);
        // In doubles, 0.0027 + 0.0018 is not 0.0045.
        assert_eq!(cost(json!({"input": 900, "output": 120})), Some(0.0045));
        assert_eq!(cost(json!({"input": 0, "output": 0})), Some(0.0));
        assert_eq!(
            cost(json!({"input": 1_000_000, "output": 1_000_000})),
            Some(18.0)
        );
        assert_eq!(
            cost(json!({"input": 1_000_000, "output": 0, "cached_input": 500_000})),
            Some(1.65)
        );
        assert_eq!(
            cost(json!({"input": 10, "output": 0, "cached_input": 99})),
            Some(0.000_003)
        );
        assert_eq!(cost(json!({"input": 900})), None);
        assert_eq!(cost(json!({"total": 900})), None);
        let huge = cost(json!({"input": u64::MAX, "output": u64::MAX})).unwrap();
        assert!(huge.is_finite() && huge > 3e14);
    }

    #[test]
    fn without_a_cached_price_cached_tokens_cost_as_others() {
        let prices = with(json!({"m": {"input_per_mtok": 2, "output_per_mtok": 3}})).unwrap();
        let cost = prices.find("m").unwrap().cost(&tokens(
            json!({"input": 1_000_000, "output": 0, "cached_input": 1_000_000}),
        ));
        assert_eq!(cost.map(Usd::to_f64), Some(2.0));
    }

    #[test]
    fn only_versions_and_provider_prefixes_are_the_same_model() {
        let prices = Prices::builtin();
        for id in [
            "claude-haiku-4-5-20251001",
            "claude-haiku-4-5@20251001",
            "anthropic/claude-haiku-4-5",
            "anthropic/claude-haiku-4-5-20251001",
            "claude-haiku-4-5-latest",
        ] {
            assert_eq!(prices.find(id), prices.find("claude-haiku-4-5"), "{id}");
            assert!(prices.find(id).is_some());
        }
        for id in [
            "",
            "claude",
            "gpt-4o-mini-tuned",
            "openrouter/anthropic/claude-haiku-4-5",
            "builtin/scripted",
            "-20251001",
            "Größe-2024-08-06",
            "gpt-4o-2024-8-6",
        ] {
            assert!(prices.find(id).is_none(), "{id}");
        }
    }

    #[test]
    fn a_suite_overrides_and_adds() {
        let prices = with(json!({
            "gpt-4o": {"input_per_mtok": 1, "output_per_mtok": 2},
            "openrouter/x": {"input_per_mtok": 0, "output_per_mtok": 0.000001},
        }))
        .unwrap();
        let one = tokens(json!({"input": 1_000_000, "output": 0}));
        assert_eq!(
            prices
                .find("gpt-4o-2024-08-06")
                .unwrap()
                .cost(&one)
                .map(Usd::to_f64),
            Some(1.0)
        );
        let written = tokens(json!({"input": 5, "output": 1}));
        assert_eq!(
            prices
                .find("openrouter/x")
                .unwrap()
                .cost(&written)
                .map(Usd::to_f64),
            Some(1e-12)
        );
        assert_eq!(prices.date(), Prices::builtin().date());
    }

    #[test]
    fn invalid_prices_are_rejected_with_their_place() {
        let problems =
            with(json!({"a/b": {"input_per_mtok": -1, "output_per_mtok": 1e-13, "cached_input_per_mtok": 1e7}}))
                .unwrap_err();
        let places: Vec<_> = problems
            .iter()
            .map(|problem| problem.pointer.as_str())
            .collect();
        assert_eq!(
            places,
            [
                "/a~1b/input_per_mtok",
                "/a~1b/output_per_mtok",
                "/a~1b/cached_input_per_mtok"
            ]
        );
        assert!(serde_json::from_value::<WrittenPrice>(json!({"input_per_mtok": 1})).is_err());
        assert!(
            serde_json::from_value::<WrittenPrice>(
                json!({"input_per_mtok": 1, "output_per_mtok": 1, "x": 1})
            )
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn a_sum_of_costs_is_the_cost_of_the_sum(a in 0_u64..1 << 40, b in 0_u64..1 << 40, out in 0_u64..1 << 40) {
            let price = Prices::builtin().find("gpt-5.4-mini").unwrap();
            let cost = |input: u64, output: u64| price.cost(&tokens(json!({"input": input, "output": output}))).unwrap();
            let sum: Usd = [cost(a, 0), cost(b, out)].into_iter().sum();
            prop_assert_eq!(sum, cost(a + b, out));
            prop_assert!(sum.to_f64().is_finite());
            prop_assert!(sum >= cost(a, out));
            let cached = price.cost(&tokens(json!({"input": a, "output": out, "cached_input": a / 2}))).unwrap();
            prop_assert!(price.most(a, out) >= cached.max(cost(a, out)));
        }
    }
}
