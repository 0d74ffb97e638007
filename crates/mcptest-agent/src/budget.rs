//! Spending on models: totals per account, and caps that are checked before every request.
//!
//! A [`SpendLedger`] holds the accounts of an invocation: one for the whole invocation, one for
//! each suite, one for each test. A [`MeteredModel`] adds the cost of every answer to the accounts
//! it belongs to. Before it sends a request, it reserves in each account the most that the request
//! can cost: everything that is sent, counted in `cl100k_base` tokens, and the output tokens that
//! the test allows (or [`DEFAULT_OUTPUT_TOKENS`]). The rule is:
//!
//! > A request is sent while the amount spent plus the amount reserved is below every cap.
//!
//! So a cap can be exceeded by the cost of one request at most, no matter how many runs are in
//! progress. A request that does not fit because of other requests waits for them. If no other
//! request is in flight, the account is stopped and sends nothing more. A provider counts with its
//! own tokenizer; if it counts more than was reserved, its count is charged.

mod ledger;
mod metered;
#[cfg(test)]
mod tests;

pub use ledger::{AccountId, SpendCaps, SpendLedger, SpendTotals};
pub use metered::{DEFAULT_OUTPUT_TOKENS, MeteredModel};
