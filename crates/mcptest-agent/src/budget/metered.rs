//! A model that spends from accounts.

use std::sync::Arc;

use mcptest_catalog::prices::{Price, Usd};
use mcptest_catalog::tokens;
use mcptest_trace::verdict::RunError;

use super::ledger::{AccountId, Amount, SpendLedger};
use crate::model::{AssistantTurn, Future, Message, Model, Request};

/// The output tokens that are reserved for a request of a test without `max_tokens:`.
pub const DEFAULT_OUTPUT_TOKENS: u64 = 4096;

/// A model that reserves the cost of each request and charges the accounts for each answer.
pub struct MeteredModel {
    model: Box<dyn Model>,
    name: String,
    price: Option<Price>,
    ledger: Arc<SpendLedger>,
    accounts: Vec<AccountId>,
}

impl MeteredModel {
    /// Wraps a model. `name` is the model's name in messages.
    #[must_use]
    pub fn new(
        model: Box<dyn Model>,
        name: impl Into<String>,
        price: Option<Price>,
        ledger: &Arc<SpendLedger>,
        accounts: Vec<AccountId>,
    ) -> Self {
        Self {
            model,
            name: name.into(),
            price,
            ledger: Arc::clone(ledger),
            accounts,
        }
    }

    /// Returns the most that a request can cost.
    fn upper_bound(&self, request: &Request<'_>) -> Amount {
        // Counting tokens takes time, and without a cap the number is unused.
        if !self.ledger.is_limited(&self.accounts) {
            return Amount::default();
        }
        let input = input_tokens(request);
        let output = request.max_tokens.map_or(DEFAULT_OUTPUT_TOKENS, u64::from);
        Amount {
            usd: self
                .price
                .map_or(Usd::ZERO, |price| price.most(input, output)),
            tokens: input.saturating_add(output),
        }
    }
}

impl Model for MeteredModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        Box::pin(async move {
            let amount = self.upper_bound(&request);
            let label = || format!("a request to `{}`", self.name);
            let reservation = self.ledger.reserve(&self.accounts, amount, label).await?;
            let turn = self.model.next(request).await?;
            reservation.charge(turn.usage, self.price.as_ref());
            Ok(turn)
        })
    }
}

/// Estimates the input tokens of a request: every message, call, result and tool in it.
pub(super) fn input_tokens(request: &Request<'_>) -> u64 {
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
