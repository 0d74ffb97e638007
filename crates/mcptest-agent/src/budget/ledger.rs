//! The accounts and the reservations in them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_catalog::prices::{Price, Usd};
use mcptest_trace::verdict::{ErrorKind, RunError};
use tokio::sync::Notify;

use crate::model::Usage;

/// The limits of an account. `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendCaps {
    /// In dollars.
    pub usd: Option<Usd>,
    /// In tokens, input and output together.
    pub tokens: Option<u64>,
}

impl SpendCaps {
    fn is_limited(self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }
}

/// The totals of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendTotals {
    /// Answered requests.
    pub requests: u64,
    /// The tokens of all requests whose provider reported them.
    pub usage: Usage,
    /// The cost of those tokens, for models with a known price.
    pub usd: Usd,
    /// Requests whose provider reported no usage.
    pub without_usage: u64,
    /// Requests to models without a known price.
    pub without_price: u64,
    /// Requests to models that are free.
    pub free: u64,
}

/// An amount in dollars and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) usd: Usd,
    pub(super) tokens: u64,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self {
            usd: self.usd.plus(other.usd),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            usd: self.usd.minus(other.usd),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    fn is_below(self, caps: SpendCaps) -> bool {
        caps.usd.is_none_or(|cap| self.usd < cap) && caps.tokens.is_none_or(|cap| self.tokens < cap)
    }
}

#[derive(Debug)]
pub(super) struct Account {
    /// The account's name in messages, such as `the suite's budget`.
    label: String,
    caps: SpendCaps,
    totals: SpendTotals,
    /// The amount that counts against the caps: the reported usage, or the reserved amount where
    /// none was reported.
    charged: Amount,
    /// The amount reserved for requests in flight.
    pub(super) reserved: Amount,
    pub(super) in_flight: u64,
    /// The reason why the account was stopped.
    stopped: Option<String>,
}

/// The handle of an account in its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountId(usize);

/// All accounts of an invocation.
#[derive(Debug, Default)]
pub struct SpendLedger {
    accounts: Mutex<Vec<Account>>,
    changed: Notify,
}

impl SpendLedger {
    /// Opens an account. `label` is its name in messages.
    pub fn open(&self, label: impl Into<String>, caps: SpendCaps) -> AccountId {
        let mut accounts = self.accounts();
        accounts.push(Account {
            label: label.into(),
            caps,
            totals: SpendTotals::default(),
            charged: Amount::default(),
            reserved: Amount::default(),
            in_flight: 0,
            stopped: None,
        });
        AccountId(accounts.len() - 1)
    }

    /// Returns the totals of an account.
    #[must_use]
    pub fn totals(&self, account: AccountId) -> SpendTotals {
        self.accounts()
            .get(account.0)
            .map_or_else(SpendTotals::default, |account| account.totals)
    }

    /// Returns the amount that counts against the caps of an account, in dollars and tokens.
    #[must_use]
    pub fn charged(&self, account: AccountId) -> (Usd, u64) {
        let accounts = self.accounts();
        let charged = accounts.get(account.0).map(|account| account.charged);
        charged.map_or((Usd::ZERO, 0), |charged| (charged.usd, charged.tokens))
    }

    /// Charges accounts for an earlier part of the invocation, which is being resumed.
    pub fn charge_earlier(&self, ids: &[AccountId], usd: Usd, tokens: u64) {
        let mut accounts = self.accounts();
        for id in ids {
            if let Some(account) = accounts.get_mut(id.0) {
                account.charged = account.charged.plus(Amount { usd, tokens });
            }
        }
    }

    /// Charges accounts for a run of an agent that reports its own usage and cost, and stops those
    /// that have reached a cap.
    pub fn charge_reported(&self, ids: &[AccountId], usage: Option<Usage>, usd: Option<Usd>) {
        let amount = Amount {
            usd: usd.unwrap_or_default(),
            tokens: usage.map_or(0, |usage| usage.input.saturating_add(usage.output)),
        };
        let mut accounts = self.accounts();
        for id in ids {
            let Some(account) = accounts.get_mut(id.0) else {
                continue;
            };
            account.charged = account.charged.plus(amount);
            let totals = &mut account.totals;
            totals.requests += 1;
            totals.without_usage += u64::from(usage.is_none());
            totals.without_price += u64::from(usd.is_none());
            totals.usage = totals.usage.plus(usage.unwrap_or_default());
            totals.usd = totals.usd.plus(amount.usd);
        }
        drop(accounts);
        self.stop_if_spent(ids);
    }

    /// Stops those of the accounts that have reached a cap.
    pub fn stop_if_spent(&self, ids: &[AccountId]) {
        let mut accounts = self.accounts();
        for id in ids {
            if let Some(account) = accounts.get_mut(id.0)
                && !account.charged.is_below(account.caps)
            {
                let reason = account.spent_message();
                account.stopped.get_or_insert(reason);
            }
        }
    }

    /// Stops an account: no further request is sent on it. The first reason is kept.
    pub fn stop(&self, account: AccountId, reason: impl Into<String>) {
        if let Some(account) = self.accounts().get_mut(account.0) {
            account.stopped.get_or_insert_with(|| reason.into());
        }
        self.changed.notify_waiters();
    }

    /// Returns the reason why one of these accounts was stopped.
    #[must_use]
    pub fn stopped(&self, ids: &[AccountId]) -> Option<String> {
        let accounts = self.accounts();
        ids.iter().find_map(|id| {
            accounts
                .get(id.0)
                .and_then(|account| account.stopped.clone())
        })
    }

    /// Locks the accounts. A panic in another task leaves the numbers consistent, so a poisoned
    /// lock is usable.
    pub(super) fn accounts(&self) -> MutexGuard<'_, Vec<Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if one of these accounts has a cap.
    pub(super) fn is_limited(&self, ids: &[AccountId]) -> bool {
        let accounts = self.accounts();
        ids.iter()
            .filter_map(|id| accounts.get(id.0))
            .any(|account| account.caps.is_limited())
    }

    /// Reserves an amount as soon as every account allows it. `label` names the request in the
    /// message of a refusal.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        accounts: &[AccountId],
        amount: Amount,
        label: impl Fn() -> String,
    ) -> Result<Reservation, RunError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Enabled before the check, so that no change between check and wait is missed.
            changed.as_mut().enable();
            match self.try_reserve(accounts, amount, &label) {
                ReserveOutcome::Reserved(reservation) => return Ok(reservation),
                ReserveOutcome::Refused(message) => {
                    self.changed.notify_waiters();
                    return Err(RunError {
                        kind: ErrorKind::Budget,
                        message,
                    });
                }
                ReserveOutcome::Wait => changed.await,
            }
        }
    }

    fn try_reserve(
        self: &Arc<Self>,
        ids: &[AccountId],
        amount: Amount,
        label: &dyn Fn() -> String,
    ) -> ReserveOutcome {
        let mut accounts = self.accounts();
        let mut must_wait = false;
        for id in ids {
            let Some(account) = accounts.get_mut(id.0) else {
                continue;
            };
            if let Some(reason) = &account.stopped {
                return ReserveOutcome::Refused(format!("{reason}; {} was not sent", label()));
            }
            if account
                .charged
                .plus(account.reserved)
                .is_below(account.caps)
            {
                continue;
            }
            if account.in_flight == 0 {
                let reason = account.spent_message();
                let refusal = format!("{reason}; {} was not sent", label());
                account.stopped = Some(reason);
                return ReserveOutcome::Refused(refusal);
            }
            must_wait = true;
        }
        if must_wait {
            return ReserveOutcome::Wait;
        }
        for id in ids {
            if let Some(account) = accounts.get_mut(id.0) {
                account.reserved = account.reserved.plus(amount);
                account.in_flight += 1;
            }
        }
        ReserveOutcome::Reserved(Reservation {
            ledger: Arc::clone(self),
            accounts: ids.to_vec(),
            amount,
        })
    }
}

impl Account {
    fn spent_message(&self) -> String {
        let mut caps = Vec::new();
        if let Some(cap) = self.caps.usd {
            caps.push(format!("{} of {cap}", self.charged.usd));
        }
        if let Some(cap) = self.caps.tokens {
            caps.push(format!("{} of {cap} tokens", self.charged.tokens));
        }
        format!("{} is spent ({})", self.label, caps.join(", "))
    }
}

enum ReserveOutcome {
    Reserved(Reservation),
    Wait,
    Refused(String),
}

/// An amount that is reserved in some accounts until the request is answered or dropped.
pub(super) struct Reservation {
    ledger: Arc<SpendLedger>,
    accounts: Vec<AccountId>,
    amount: Amount,
}

impl Reservation {
    /// Charges the accounts for an answered request.
    pub(super) fn charge(self, usage: Option<Usage>, price: Option<&Price>) {
        let cost = usage.and_then(|usage| price.and_then(|price| price.cost(&usage.into_tokens())));
        let reported = usage.map(|usage| Amount {
            usd: cost.unwrap_or_default(),
            tokens: usage.input.saturating_add(usage.output),
        });
        let mut accounts = self.ledger.accounts();
        for id in &self.accounts {
            let Some(account) = accounts.get_mut(id.0) else {
                continue;
            };
            // Without a report, the request is assumed to have used all that was reserved.
            account.charged = account.charged.plus(reported.unwrap_or(self.amount));
            let totals = &mut account.totals;
            totals.requests += 1;
            totals.without_usage += u64::from(usage.is_none());
            totals.without_price += u64::from(price.is_none());
            totals.free += u64::from(price == Some(&Price::FREE));
            totals.usage = totals.usage.plus(usage.unwrap_or_default());
            totals.usd = totals.usd.plus(cost.unwrap_or_default());
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut accounts = self.ledger.accounts();
        for id in &self.accounts {
            if let Some(account) = accounts.get_mut(id.0) {
                account.reserved = account.reserved.minus(self.amount);
                account.in_flight -= 1;
            }
        }
        drop(accounts);
        self.ledger.changed.notify_waiters();
    }
}
