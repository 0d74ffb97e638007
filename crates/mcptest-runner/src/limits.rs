//! What an invocation, a suite and a test may cost, and what they did cost.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcptest_agent::budget::{AccountId, MeteredModel, SpendCaps, SpendLedger};
use mcptest_agent::{Model, budget};
use mcptest_catalog::prices::{Price, Prices, Usd};
use mcptest_report::model::Spend;
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;
use mcptest_trace::verdict::{ErrorKind, RunError};
use tokio::time::Instant;

use crate::plan::Case;

/// What all suites of an invocation may cost together. What is given here comes before what a suite
/// says.
pub struct Limits {
    caps: SpendCaps,
    duration: Option<Duration>,
    ledger: Arc<SpendLedger>,
    account: AccountId,
    began: Instant,
}

impl Limits {
    /// Caps in dollars, tokens and time; the time runs from now on.
    #[must_use]
    pub fn new(usd: Option<Usd>, tokens: Option<u64>, duration: Option<Duration>) -> Self {
        let ledger = Arc::new(SpendLedger::default());
        let caps = SpendCaps { usd, tokens };
        Self {
            caps,
            duration,
            account: ledger.open("the budget of this invocation", caps),
            ledger,
            began: Instant::now(),
        }
    }
}

/// When everything ends.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    pub at: Instant,
    pub words: String,
}

/// The accounts of one suite.
pub(crate) struct SuiteLimits {
    ledger: Arc<SpendLedger>,
    invocation: AccountId,
    suite: AccountId,
    /// Whether the suite or the invocation has a cap in dollars.
    in_dollars: bool,
    cases: Vec<CaseLimits>,
    pub deadline: Option<Deadline>,
}

/// What one case may cost. Its accounts are opened when it first asks a model: most direct calls
/// never do.
struct CaseLimits {
    caps: SpendCaps,
    accounts: OnceLock<CaseAccounts>,
}

struct CaseAccounts {
    own: AccountId,
    /// What its replayed answers cost when they were recorded. Nobody pays for them again, so no
    /// cap counts them.
    replayed: AccountId,
}

impl SuiteLimits {
    pub fn open(limits: &Limits, suite: &Suite, cases: &[Case]) -> Self {
        let caps = SpendCaps {
            usd: suite.budget.usd.filter(|_| limits.caps.usd.is_none()),
            tokens: suite.budget.tokens.filter(|_| limits.caps.tokens.is_none()),
        };
        let ledger = Arc::clone(&limits.ledger);
        let account = ledger.open("the suite's budget", caps);
        let case_limits = cases.iter().map(|case| CaseLimits {
            caps: match &suite.tests[case.test] {
                Test::Agent(test) => SpendCaps {
                    usd: test.budget.usd,
                    tokens: test.budget.tokens,
                },
                Test::Tool(_) | Test::ToolQuality(_) => SpendCaps::default(),
            },
            accounts: OnceLock::new(),
        });
        let deadline = match (limits.duration, suite.budget.duration) {
            (Some(duration), _) => Some((limits.began + duration, "this invocation", duration)),
            (None, Some(duration)) => Some((Instant::now() + duration, "the suite", duration)),
            (None, None) => None,
        };
        Self {
            ledger,
            invocation: limits.account,
            suite: account,
            in_dollars: limits.caps.usd.is_some() || caps.usd.is_some(),
            cases: case_limits.collect(),
            deadline: deadline.map(|(at, whose, duration)| Deadline {
                at,
                words: format!("the time of {whose} ({}) is over", shown(duration)),
            }),
        }
    }

    fn accounts(&self, case: usize) -> &CaseAccounts {
        let case = &self.cases[case];
        case.accounts.get_or_init(|| CaseAccounts {
            own: self.ledger.open("the test's budget", case.caps),
            replayed: self.ledger.open("a replay", SpendCaps::default()),
        })
    }

    /// Adds up what the replayed answers of a case cost when they were recorded, so that the report
    /// is the recorded run's.
    pub fn count_replay(
        &self,
        case: usize,
        id: &str,
        prices: &Prices,
        model: Box<dyn Model>,
    ) -> Box<dyn Model> {
        let price = price_of(prices, id);
        Box::new(MeteredModel::new(
            model,
            id,
            price,
            &self.ledger,
            vec![self.accounts(case).replayed],
        ))
    }

    /// Puts a model of a case on the case's accounts.
    pub fn meter(
        &self,
        case: usize,
        id: &str,
        prices: &Prices,
        model: Box<dyn Model>,
    ) -> Result<Box<dyn Model>, RunError> {
        let price = price_of(prices, id);
        if price.is_none() && (self.in_dollars || self.cases[case].caps.usd.is_some()) {
            return Err(RunError {
                kind: ErrorKind::Provider,
                message: format!(
                    "no price is known for model `{id}`, so a cap in dollars cannot hold for it; add it under `prices:` in the suite"
                ),
            });
        }
        let accounts = vec![self.invocation, self.suite, self.accounts(case).own];
        Ok(Box::new(MeteredModel::new(
            model,
            id,
            price,
            &self.ledger,
            accounts,
        )))
    }

    /// Why no further run of a case is started: its budget is spent.
    pub fn stopped(&self, case: usize) -> Option<RunError> {
        let own = self.cases[case].accounts.get().map(|accounts| accounts.own);
        let accounts: Vec<_> = [self.invocation, self.suite]
            .into_iter()
            .chain(own)
            .collect();
        let why = self.ledger.stopped(&accounts)?;
        Some(RunError {
            kind: ErrorKind::Budget,
            message: format!("never started: {why}"),
        })
    }

    /// The time is over: nothing is sent any more.
    pub fn time_is_over(&self, deadline: &Deadline) {
        self.ledger.stop(self.suite, deadline.words.clone());
    }

    /// What a case cost. Nothing if only built-in models without a price were asked: they cost
    /// nothing, and nobody wonders.
    pub fn spend(&self, case: usize) -> Option<Spend> {
        let accounts = self.cases[case].accounts.get()?;
        spend(self.ledger.totals(accounts.own))
            .or_else(|| spend(self.ledger.totals(accounts.replayed)))
    }
}

/// A built-in model costs nothing, unless the suite gives it a price.
fn price_of(prices: &Prices, id: &str) -> Option<Price> {
    let free = id.starts_with("builtin/").then_some(Price::FREE);
    prices.find(id).copied().or(free)
}

fn spend(spend: budget::SpendTotals) -> Option<Spend> {
    (spend.requests > spend.free).then(|| Spend {
        requests: spend.requests,
        input_tokens: (spend.without_usage == 0).then_some(spend.usage.input),
        output_tokens: (spend.without_usage == 0).then_some(spend.usage.output),
        cached_input_tokens: spend
            .usage
            .cached_input
            .filter(|_| spend.without_usage == 0),
        usd: (spend.without_usage == 0 && spend.without_price == 0).then(|| spend.usd.to_f64()),
    })
}

/// A duration as people write it.
fn shown(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        _ if !millis.is_multiple_of(1000) || millis == 0 => format!("{millis}ms"),
        _ if !millis.is_multiple_of(60_000) => format!("{}s", millis / 1000),
        _ => format!("{}m", millis / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written() {
        for (millis, text) in [
            (0, "0ms"),
            (500, "500ms"),
            (1500, "1500ms"),
            (2000, "2s"),
            (90_000, "90s"),
            (600_000, "10m"),
        ] {
            assert_eq!(shown(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn what_is_unknown_is_not_zero() {
        let usage = mcptest_agent::Usage {
            input: 900,
            output: 120,
            ..mcptest_agent::Usage::default()
        };
        let told = budget::SpendTotals {
            requests: 2,
            usage,
            usd: Usd::from_f64(0.0045).unwrap_or_default(),
            ..budget::SpendTotals::default()
        };
        let known = spend(told).expect("something was spent");
        assert_eq!((known.usd, known.input_tokens), (Some(0.0045), Some(900)));
        let unpriced = spend(budget::SpendTotals {
            without_price: 1,
            ..told
        })
        .expect("something was spent");
        assert_eq!((unpriced.usd, unpriced.output_tokens), (None, Some(120)));
        let untold = spend(budget::SpendTotals {
            without_usage: 1,
            ..told
        })
        .expect("something was spent");
        assert_eq!(
            (untold.usd, untold.input_tokens, untold.output_tokens),
            (None, None, None)
        );
        assert_eq!(spend(budget::SpendTotals { free: 2, ..told }), None);
    }
}
