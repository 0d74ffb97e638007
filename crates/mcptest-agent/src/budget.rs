//! What models cost, counted as it is spent, and caps that are looked at before every request.
//!
//! [`Books`] hold the accounts of an invocation: one for all of it, one for each suite, one for
//! each test. A [`Metered`] model writes every answer into the accounts it belongs to. Before it
//! asks, it holds in each of them what the request may cost at most: everything that is sent,
//! counted in `cl100k_base` tokens, and as many written tokens as the test allows (or
//! [`UNSAID_OUTPUT`]). The rule is:
//!
//! > A request is sent while what is spent, and what the requests under way may cost, is below
//! every cap.
//!
//! So a cap can be overshot by the cost of one request, however many runs go on at once. A request
//! that must not be sent yet because of others waits for them; if none is under way, the account is
//! stopped, and nothing is sent on it any more. A provider counts with its own tokenizer: what it
//! counts above what was held is known with the answer, and charged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_catalog::prices::{Price, Usd};
use mcptest_catalog::tokens;
use mcptest_trace::verdict::{ErrorKind, RunError};
use tokio::sync::Notify;

use crate::model::{AssistantTurn, Future, Message, Model, Request, Usage};

/// The written tokens that are held for a request of a test without `max_tokens:`.
pub const UNSAID_OUTPUT: u64 = 4096;

/// The most that may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caps {
    /// In dollars.
    pub usd: Option<Usd>,
    /// In tokens, read and written.
    pub tokens: Option<u64>,
}

impl Caps {
    fn any(self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }
}

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spend {
    /// Answered requests.
    pub requests: u64,
    /// What was read and written, as far as providers told.
    pub usage: Usage,
    /// What that cost, as far as prices are known.
    pub usd: Usd,
    /// Requests whose provider did not tell its tokens.
    pub untold: u64,
    /// Requests to models without a price.
    pub unpriced: u64,
    /// Requests to models that cost nothing by nature.
    pub free: u64,
}

/// What may be spent, or is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    usd: Usd,
    tokens: u64,
}

impl Amount {
    fn plus(self, more: Self) -> Self {
        Self {
            usd: self.usd.plus(more.usd),
            tokens: self.tokens.saturating_add(more.tokens),
        }
    }

    fn minus(self, less: Self) -> Self {
        Self {
            usd: self.usd.minus(less.usd),
            tokens: self.tokens.saturating_sub(less.tokens),
        }
    }

    fn is_below(self, caps: Caps) -> bool {
        caps.usd.is_none_or(|cap| self.usd < cap) && caps.tokens.is_none_or(|cap| self.tokens < cap)
    }
}

#[derive(Debug)]
struct Account {
    /// What messages call it: `the suite's budget`.
    words: String,
    caps: Caps,
    spend: Spend,
    /// Counted against the caps: what was told, and what was held where nothing was told.
    charged: Amount,
    /// For requests under way.
    held: Amount,
    under_way: u64,
    stopped: Option<String>,
}

/// Which account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountId(usize);

/// All accounts of an invocation.
#[derive(Debug, Default)]
pub struct Books {
    accounts: Mutex<Vec<Account>>,
    changed: Notify,
}

impl Books {
    /// Opens an account.
    pub fn open(&self, words: impl Into<String>, caps: Caps) -> AccountId {
        let mut accounts = self.accounts();
        accounts.push(Account {
            words: words.into(),
            caps,
            spend: Spend::default(),
            charged: Amount::default(),
            held: Amount::default(),
            under_way: 0,
            stopped: None,
        });
        AccountId(accounts.len() - 1)
    }

    /// What was spent on an account.
    #[must_use]
    pub fn spend(&self, account: AccountId) -> Spend {
        self.accounts()
            .get(account.0)
            .map_or_else(Spend::default, |account| account.spend)
    }

    /// Nothing is sent on an account any more.
    pub fn stop(&self, account: AccountId, why: impl Into<String>) {
        if let Some(account) = self.accounts().get_mut(account.0) {
            account.stopped.get_or_insert_with(|| why.into());
        }
        self.changed.notify_waiters();
    }

    /// Why nothing is sent on one of these accounts any more.
    #[must_use]
    pub fn stopped(&self, accounts: &[AccountId]) -> Option<String> {
        let books = self.accounts();
        accounts
            .iter()
            .find_map(|id| books.get(id.0).and_then(|account| account.stopped.clone()))
    }

    /// A panic elsewhere leaves numbers that are still right.
    fn accounts(&self) -> MutexGuard<'_, Vec<Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_capped(&self, accounts: &[AccountId]) -> bool {
        let books = self.accounts();
        accounts
            .iter()
            .filter_map(|id| books.get(id.0))
            .any(|account| account.caps.any())
    }

    /// Holds an amount as soon as every account allows it. `words` says what for, if it is refused.
    async fn hold(
        self: &Arc<Self>,
        accounts: &[AccountId],
        most: Amount,
        words: impl Fn() -> String,
    ) -> Result<Hold, RunError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed, so it can be looked first and waited then.
            changed.as_mut().enable();
            match self.try_hold(accounts, most, &words) {
                Attempt::Held(hold) => return Ok(hold),
                Attempt::Refused(message) => {
                    self.changed.notify_waiters();
                    return Err(RunError {
                        kind: ErrorKind::Budget,
                        message,
                    });
                }
                Attempt::Later => changed.await,
            }
        }
    }

    fn try_hold(
        self: &Arc<Self>,
        accounts: &[AccountId],
        most: Amount,
        words: &dyn Fn() -> String,
    ) -> Attempt {
        let mut books = self.accounts();
        let mut later = false;
        for id in accounts {
            let Some(account) = books.get_mut(id.0) else {
                continue;
            };
            if let Some(why) = &account.stopped {
                return Attempt::Refused(format!("{why}; {} was not sent", words()));
            }
            if account.charged.plus(account.held).is_below(account.caps) {
                continue;
            }
            if account.under_way == 0 {
                let why = account.why_spent();
                let refusal = format!("{why}; {} was not sent", words());
                account.stopped = Some(why);
                return Attempt::Refused(refusal);
            }
            later = true;
        }
        if later {
            return Attempt::Later;
        }
        for id in accounts {
            if let Some(account) = books.get_mut(id.0) {
                account.held = account.held.plus(most);
                account.under_way += 1;
            }
        }
        Attempt::Held(Hold {
            books: Arc::clone(self),
            accounts: accounts.to_vec(),
            most,
        })
    }
}

impl Account {
    fn why_spent(&self) -> String {
        let mut caps = Vec::new();
        if let Some(cap) = self.caps.usd {
            caps.push(format!("{} of {cap}", self.charged.usd));
        }
        if let Some(cap) = self.caps.tokens {
            caps.push(format!("{} of {cap} tokens", self.charged.tokens));
        }
        format!("{} is spent ({})", self.words, caps.join(", "))
    }
}

enum Attempt {
    Held(Hold),
    Later,
    Refused(String),
}

/// An amount that is held in some accounts until the answer is there, or nobody waits for it any
/// more.
struct Hold {
    books: Arc<Books>,
    accounts: Vec<AccountId>,
    most: Amount,
}

impl Hold {
    fn settle(self, usage: Option<Usage>, price: Option<&Price>) {
        let cost = usage.and_then(|usage| price.and_then(|price| price.cost(&usage.into_tokens())));
        let told = usage.map(|usage| Amount {
            usd: cost.unwrap_or_default(),
            tokens: usage.input.saturating_add(usage.output),
        });
        let mut books = self.books.accounts();
        for id in &self.accounts {
            let Some(account) = books.get_mut(id.0) else {
                continue;
            };
            // Tokens that nobody told were used all the same.
            account.charged = account.charged.plus(told.unwrap_or(self.most));
            account.spend.requests += 1;
            account.spend.untold += u64::from(usage.is_none());
            account.spend.unpriced += u64::from(price.is_none());
            account.spend.free += u64::from(price == Some(&Price::FREE));
            account.spend.usage = account.spend.usage.plus(usage.unwrap_or_default());
            account.spend.usd = account.spend.usd.plus(cost.unwrap_or_default());
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut books = self.books.accounts();
        for id in &self.accounts {
            if let Some(account) = books.get_mut(id.0) {
                account.held = account.held.minus(self.most);
                account.under_way -= 1;
            }
        }
        drop(books);
        self.books.changed.notify_waiters();
    }
}

/// A model whose requests are held against accounts and whose answers are written into them.
pub struct Metered {
    model: Box<dyn Model>,
    name: String,
    price: Option<Price>,
    books: Arc<Books>,
    accounts: Vec<AccountId>,
}

impl Metered {
    /// `name` is what messages call the model.
    #[must_use]
    pub fn new(
        model: Box<dyn Model>,
        name: impl Into<String>,
        price: Option<Price>,
        books: &Arc<Books>,
        accounts: Vec<AccountId>,
    ) -> Self {
        Self {
            model,
            name: name.into(),
            price,
            books: Arc::clone(books),
            accounts,
        }
    }
}

impl Model for Metered {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        Box::pin(async move {
            // Counting tokens takes time, and without a cap nobody asks for the number.
            let (input, output) = if self.books.is_capped(&self.accounts) {
                (
                    tokens_sent(&request),
                    request.max_tokens.map_or(UNSAID_OUTPUT, u64::from),
                )
            } else {
                (0, 0)
            };
            let most = Amount {
                usd: self
                    .price
                    .map_or(Usd::ZERO, |price| price.most(input, output)),
                tokens: input.saturating_add(output),
            };
            let words = || format!("a request to `{}`", self.name);
            let hold = self.books.hold(&self.accounts, most, words).await?;
            let turn = self.model.next(request).await?;
            hold.settle(turn.usage, self.price.as_ref());
            Ok(turn)
        })
    }
}

/// An estimate of what a model reads: every text, call, result and tool of the request.
fn tokens_sent(request: &Request<'_>) -> u64 {
    let messages = request.messages.iter().map(|message| match message {
        Message::User(text) => tokens::count(text),
        Message::Assistant(turn) => {
            let calls = turn.calls.iter().map(|call| {
                let args = call
                    .args
                    .as_ref()
                    .map_or(0, |args| tokens::count(&args.to_string()));
                tokens::count(&call.wire_name) + args
            });
            tokens::count(&turn.text) + calls.sum::<u64>()
        }
        Message::Results(results) => results
            .iter()
            .map(|(_, reply)| tokens::count(&reply.text()))
            .sum(),
    });
    let tools = request
        .tools
        .iter()
        .map(|offered| tokens::of_tool(&offered.tool));
    request.system.map_or(0, tokens::count) + messages.sum::<u64>() + tools.sum::<u64>()
}

#[cfg(test)]
mod tests;
