//! The budgets of an invocation, a suite and a test, and the spending of each run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcptest_agent::budget::{AccountId, MeteredModel, SpendCaps, SpendLedger};
use mcptest_agent::{Model, Usage};
use mcptest_catalog::prices::{Price, Prices, Usd};
use mcptest_events::RunSpend;
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;
use mcptest_trace::verdict::{ErrorKind, RunError};
use tokio::time::Instant;

use crate::plan::Case;
use crate::sessions::StartupTime;

/// The budget of all suites of an invocation together. A limit that is set here overrides the
/// suite's.
pub struct Budget {
    caps: SpendCaps,
    duration: Option<Duration>,
    ledger: Arc<SpendLedger>,
    account: AccountId,
    started: Instant,
}

impl Budget {
    /// Limits in dollars, tokens and time. The time starts now.
    #[must_use]
    pub fn new(usd: Option<Usd>, tokens: Option<u64>, duration: Option<Duration>) -> Self {
        let ledger = Arc::new(SpendLedger::default());
        let caps = SpendCaps { usd, tokens };
        Self {
            caps,
            duration,
            account: ledger.open("the budget of this invocation", caps),
            ledger,
            started: Instant::now(),
        }
    }
}

/// The time limit of a suite.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    pub at: Instant,
    pub message: String,
}

/// The accounts of one suite.
pub(crate) struct SuiteBudget {
    ledger: Arc<SpendLedger>,
    invocation: AccountId,
    suite: AccountId,
    /// True if the suite or the invocation has a cap in dollars.
    capped_in_dollars: bool,
    cases: Vec<CaseBudget>,
    pub deadline: Option<Deadline>,
}

/// The budget of one case. Its account is opened when a run first asks a model: most direct calls
/// never do.
struct CaseBudget {
    caps: SpendCaps,
    account: OnceLock<AccountId>,
}

/// The spending of one run, and its waiting.
#[derive(Default)]
pub(crate) struct RunMeter {
    account: OnceLock<AccountId>,
    /// The part of it that a cassette answered.
    replayed: OnceLock<AccountId>,
    /// The time that the run waited for servers to start.
    pub startup: StartupTime,
    /// True if a model was asked that counts against budgets.
    is_charged: AtomicBool,
    /// True once only an advisory reading is left to do: the run has its evidence, and a stop ends
    /// the reading, not the run.
    pub reading: AtomicBool,
}

impl SuiteBudget {
    pub fn open(budget: &Budget, suite: &Suite, cases: &[Case]) -> Self {
        let caps = SpendCaps {
            usd: suite.budget.usd.filter(|_| budget.caps.usd.is_none()),
            tokens: suite.budget.tokens.filter(|_| budget.caps.tokens.is_none()),
        };
        let ledger = Arc::clone(&budget.ledger);
        let account = ledger.open("the suite's budget", caps);
        let case_budgets = cases.iter().map(|case| CaseBudget {
            caps: match &suite.tests[case.test] {
                Test::Agent(test) => SpendCaps {
                    usd: test.budget.usd,
                    tokens: test.budget.tokens,
                },
                Test::Direct(_) | Test::ToolQuality(_) => SpendCaps::default(),
            },
            account: OnceLock::new(),
        });
        let deadline = match (budget.duration, suite.budget.duration) {
            (Some(duration), _) => Some((budget.started + duration, "this invocation", duration)),
            (None, Some(duration)) => Some((Instant::now() + duration, "the suite", duration)),
            (None, None) => None,
        };
        Self {
            ledger,
            invocation: budget.account,
            suite: account,
            capped_in_dollars: budget.caps.usd.is_some() || caps.usd.is_some(),
            cases: case_budgets.collect(),
            deadline: deadline.map(|(at, whose, duration)| Deadline {
                at,
                message: format!("the time of {whose} ({}) is over", shown(duration)),
            }),
        }
    }

    /// The accounts that the live requests of a case are charged to.
    fn accounts(&self, case: usize) -> [AccountId; 3] {
        let case = &self.cases[case];
        let own = case
            .account
            .get_or_init(|| self.ledger.open("the test's budget", case.caps));
        [self.invocation, self.suite, *own]
    }

    fn account_of(&self, run: &RunMeter) -> AccountId {
        *run.account
            .get_or_init(|| self.ledger.open("a run", SpendCaps::default()))
    }

    /// Counts the recorded cost of replayed answers, so that the report is that of the recorded
    /// run. No budget is charged: they were paid when they were recorded.
    pub fn count_replay(
        &self,
        run: &RunMeter,
        id: &str,
        prices: &Prices,
        model: Box<dyn Model>,
    ) -> Box<dyn Model> {
        let replayed = *run.replayed.get_or_init(|| {
            self.ledger
                .open("the replayed part of a run", SpendCaps::default())
        });
        let accounts = vec![self.account_of(run), replayed];
        let price = price_of(prices, id);
        Box::new(MeteredModel::new(model, id, price, &self.ledger, accounts))
    }

    /// Charges the requests of a model to its run, case, suite and invocation.
    pub fn meter(
        &self,
        case: usize,
        run: &RunMeter,
        id: &str,
        prices: &Prices,
        model: Box<dyn Model>,
    ) -> Result<Box<dyn Model>, RunError> {
        let price = price_of(prices, id);
        if price.is_none() && (self.capped_in_dollars || self.cases[case].caps.usd.is_some()) {
            return Err(RunError {
                kind: ErrorKind::Provider,
                message: format!(
                    "no price is known for model `{id}`, so a cap in dollars cannot hold for it; \
                     add it under `prices:` in the suite"
                ),
            });
        }
        run.is_charged.store(true, Ordering::Relaxed);
        let mut accounts = self.accounts(case).to_vec();
        accounts.push(self.account_of(run));
        Ok(Box::new(MeteredModel::new(
            model,
            id,
            price,
            &self.ledger,
            accounts,
        )))
    }

    /// Charges a run of an agent under test with the usage and cost that it reports.
    pub fn charge_reported(
        &self,
        case: usize,
        run: &RunMeter,
        usage: Option<Usage>,
        usd: Option<Usd>,
    ) {
        run.is_charged.store(true, Ordering::Relaxed);
        let mut accounts = self.accounts(case).to_vec();
        accounts.push(self.account_of(run));
        self.ledger.charge_reported(&accounts, usage, usd);
    }

    /// The spending of a run; `None` if it asked no model.
    pub fn spend_of(&self, run: &RunMeter) -> Option<RunSpend> {
        let account = *run.account.get()?;
        let totals = self.ledger.totals(account);
        let (charged_usd, charged_tokens) = if run.is_charged.load(Ordering::Relaxed) {
            self.ledger.charged(account)
        } else {
            (Usd::ZERO, 0)
        };
        let replayed = run.replayed.get().map(|part| self.ledger.totals(*part));
        Some(RunSpend {
            requests: totals.requests,
            input_tokens: totals.usage.input,
            output_tokens: totals.usage.output,
            cached_input_tokens: totals.usage.cached_input,
            usd: totals.usd,
            unreported: totals.without_usage,
            unpriced: totals.without_price,
            free: totals.free,
            replayed: replayed.as_ref().map_or(0, |part| part.requests),
            replayed_usd: replayed.map_or(Usd::ZERO, |part| part.usd),
            charged_usd,
            charged_tokens,
        })
    }

    /// Charges the budgets for a run that finished before the invocation was resumed. `exceeded`:
    /// the run ended because a budget was spent.
    pub fn restore(&self, case: usize, spend: Option<RunSpend>, exceeded: bool) {
        if let Some(spend) = spend.filter(|spend| spend.requests > 0) {
            let (usd, tokens) = (spend.charged_usd, spend.charged_tokens);
            self.ledger
                .charge_earlier(&self.accounts(case), usd, tokens);
        }
        if exceeded {
            self.ledger.stop_if_spent(&self.accounts(case));
        }
    }

    /// The reason why no further run of a case starts: a budget is spent.
    pub fn stopped(&self, case: usize) -> Option<RunError> {
        let own = self.cases[case].account.get().copied();
        let accounts: Vec<_> = [self.invocation, self.suite]
            .into_iter()
            .chain(own)
            .collect();
        let reason = self.ledger.stopped(&accounts)?;
        Some(RunError {
            kind: ErrorKind::Budget,
            message: format!("never started: {reason}"),
        })
    }

    /// Stops all requests of the suite because its time limit is reached.
    pub fn stop_at(&self, deadline: &Deadline) {
        self.ledger.stop(self.suite, deadline.message.clone());
    }
}

/// The price of a model. A built-in model is free, unless the suite gives it a price.
fn price_of(prices: &Prices, id: &str) -> Option<Price> {
    let free = id.starts_with("builtin/").then_some(Price::FREE);
    prices.find(id).copied().or(free)
}

/// A duration in the largest unit that gives a whole number.
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
    use crate::{Filter, plan, testing};

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
    fn a_resumed_invocation_continues_its_budgets() {
        let budget = Budget::new(None, Some(100), None);
        let folder = tempfile::tempdir().expect("a folder");
        let suite = testing::suite(
            folder.path(),
            "name: s\nservers: { a: { command: [a] } }\ntools: [{ name: t, server: a, tool: b }]\n",
        );
        let cases = plan(&suite, &Filter::default());
        let budget = SuiteBudget::open(&budget, &suite, &cases);
        let spend = |tokens| {
            Some(RunSpend {
                requests: 1,
                charged_tokens: tokens,
                ..RunSpend::default()
            })
        };
        budget.restore(0, spend(60), false);
        assert_eq!(budget.stopped(0), None);
        // The cap is reached, but no request was refused yet.
        budget.restore(0, spend(40), false);
        assert_eq!(budget.stopped(0), None);
        budget.restore(0, None, true);
        assert_eq!(
            budget.stopped(0).map(|error| error.message),
            Some(
                "never started: the budget of this invocation is spent (100 of 100 tokens)"
                    .to_owned()
            )
        );
    }
}
