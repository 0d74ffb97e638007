//! The cost of models: of a run as it is counted, of a case as it is reported.

use mcptest_numbers::usd::Usd;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The cost of models. A number that was not reported is `null`, and so is a sum with such a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spend {
    /// Answered requests.
    pub requests: u64,
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// The part of the tokens read that came from a cache, where providers report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// US dollars, where prices are known. Counted exactly, and rounded once to the nearest double.
    pub usd: Option<f64>,
}

/// The part of a spend that was not spent now: requests that a cassette answered, with the cost
/// that they had when they were recorded. It is not in [`Spend`], because the report of a replay is
/// that of the recorded run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// Answered requests.
    pub requests: u64,
    /// The US dollars that they cost when they were recorded, where prices are known.
    pub usd: Option<f64>,
}

impl Spend {
    /// The sum of all parts; `None` without parts.
    #[must_use]
    pub fn total(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|sum, part| Self {
            requests: sum.requests + part.requests,
            input_tokens: both(sum.input_tokens, part.input_tokens),
            output_tokens: both(sum.output_tokens, part.output_tokens),
            cached_input_tokens: either(sum.cached_input_tokens, part.cached_input_tokens),
            usd: add_usd(sum.usd, part.usd),
        })
    }
}

impl Replayed {
    /// The sum of all parts; `None` without parts.
    #[must_use]
    pub fn total(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|sum, part| Self {
            requests: sum.requests + part.requests,
            usd: add_usd(sum.usd, part.usd),
        })
    }
}

/// The sum of two amounts. Added as decimals: in doubles, 0.1 and 0.2 are not 0.3.
fn add_usd(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (Usd::from_f64(a?)?, Usd::from_f64(b?)?);
    Some(a.plus(b).to_f64())
}

/// The cost of one run, with all that is needed to add it up and to continue budgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpend {
    /// Answered requests.
    pub requests: u64,
    /// Tokens read, as far as providers reported them.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Tokens written, as far as providers reported them.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
    /// The part of the tokens read that came from a cache, where providers report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The price of the tokens, as far as prices are known.
    #[serde(with = "units", skip_serializing_if = "is_nothing")]
    pub usd: Usd,
    /// Requests whose provider did not report tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreported: u64,
    /// Requests to models without a price.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Requests to models that cost nothing by nature.
    #[serde(skip_serializing_if = "is_zero")]
    pub free: u64,
    /// Requests that a cassette answered.
    #[serde(skip_serializing_if = "is_zero")]
    pub replayed: u64,
    /// The price of the replayed requests when they were recorded, as far as prices are known.
    #[serde(with = "units", skip_serializing_if = "is_nothing")]
    pub replayed_usd: Usd,
    /// The dollars that count against budgets.
    #[serde(with = "units", skip_serializing_if = "is_nothing")]
    pub charged_usd: Usd,
    /// The tokens that count against budgets.
    #[serde(skip_serializing_if = "is_zero")]
    pub charged_tokens: u64,
}

impl RunSpend {
    /// The sum of two.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(more.requests),
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            cached_input_tokens: either(self.cached_input_tokens, more.cached_input_tokens),
            usd: self.usd.plus(more.usd),
            unreported: self.unreported.saturating_add(more.unreported),
            unpriced: self.unpriced.saturating_add(more.unpriced),
            free: self.free.saturating_add(more.free),
            replayed: self.replayed.saturating_add(more.replayed),
            replayed_usd: self.replayed_usd.plus(more.replayed_usd),
            charged_usd: self.charged_usd.plus(more.charged_usd),
            charged_tokens: self.charged_tokens.saturating_add(more.charged_tokens),
        }
    }

    /// The reported form. `None` if only built-in models without a price were asked: they cost
    /// nothing.
    #[must_use]
    pub fn reported(self) -> Option<Spend> {
        let complete = self.unreported == 0;
        (self.requests > self.free).then(|| Spend {
            requests: self.requests,
            input_tokens: complete.then_some(self.input_tokens),
            output_tokens: complete.then_some(self.output_tokens),
            cached_input_tokens: self.cached_input_tokens.filter(|_| complete),
            usd: (complete && self.unpriced == 0).then(|| self.usd.to_f64()),
        })
    }

    /// The part that a cassette answered; `None` if there is none, or nothing is reported.
    #[must_use]
    pub fn replayed_part(self) -> Option<Replayed> {
        let is_known = self.unreported == 0 && self.unpriced == 0;
        let reported = self.requests > self.free && self.replayed > 0;
        reported.then(|| Replayed {
            requests: self.replayed,
            usd: is_known.then(|| self.replayed_usd.to_f64()),
        })
    }
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.zip(b).map(|(a, b)| a.saturating_add(b))
}

fn either(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

// serde's attribute passes references to the next two.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_nothing(amount: &Usd) -> bool {
    *amount == Usd::ZERO
}

/// Exact amounts as decimal strings of units: JSON numbers would lose digits.
mod units {
    use super::{Deserialize, Deserializer, Serializer, Usd};

    pub fn serialize<S: Serializer>(amount: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&amount.units())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let units = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Usd::from_units(units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spend_adds_up_exactly_and_the_unknown_stays_unknown() {
        let spend = |usd, input_tokens| Spend {
            requests: 1,
            input_tokens,
            output_tokens: Some(1),
            cached_input_tokens: None,
            usd,
        };
        assert_eq!(Spend::total([]), None);
        let sum =
            Spend::total([spend(Some(0.1), Some(5)), spend(Some(0.2), Some(6))]).expect("a sum");
        assert_eq!(
            (sum.usd, sum.input_tokens, sum.requests),
            (Some(0.3), Some(11), 2)
        );
        let sum = Spend::total([spend(Some(0.1), None), spend(None, Some(6))]).expect("a sum");
        assert_eq!(
            (sum.usd, sum.input_tokens, sum.output_tokens),
            (None, None, Some(2))
        );
    }

    #[test]
    fn unknown_is_not_zero() {
        let known = RunSpend {
            requests: 2,
            input_tokens: 900,
            output_tokens: 120,
            usd: Usd::from_f64(0.0045).expect("an amount"),
            ..RunSpend::default()
        };
        let spend = known.reported().expect("something was spent");
        assert_eq!((spend.usd, spend.input_tokens), (Some(0.0045), Some(900)));
        let unpriced = RunSpend {
            unpriced: 1,
            ..known
        };
        let spend = unpriced.reported().expect("something was spent");
        assert_eq!((spend.usd, spend.output_tokens), (None, Some(120)));
        let unreported = RunSpend {
            unreported: 1,
            ..known
        };
        let spend = unreported.reported().expect("something was spent");
        assert_eq!(
            (spend.usd, spend.input_tokens, spend.output_tokens),
            (None, None, None)
        );
        assert_eq!(RunSpend { free: 2, ..known }.reported(), None);
    }

    #[test]
    fn amounts_keep_every_digit() {
        let spend = RunSpend {
            requests: 1,
            usd: Usd::from_units(u128::from(u64::MAX) * 1000 + 7),
            ..RunSpend::default()
        };
        let text = serde_json::to_string(&spend).expect("it serialises");
        assert_eq!(text, r#"{"requests":1,"usd":"18446744073709551615007"}"#);
        assert_eq!(
            serde_json::from_str::<RunSpend>(&text).expect("it parses"),
            spend
        );
    }
}
