//! Claims that a model read in the closing message: reported, marked as judged, never deciding.
//!
//! The runner asks for them after the run and records them in the trace
//! ([`mcptest_trace::claims`]); the gate calls no model.

use serde::{Deserialize, Serialize};

use crate::call_words::CallWords;
use crate::call_words::Effect;
use crate::verbs::fold;
use mcptest_catalog::lexical;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::claims::{CLAIMS_KEY, MAX_CLAIMS, ModelClaims};
use mcptest_trace::trace::TraceView;

/// The reading of a model beside the recorded calls. It changes no figure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Judged {
    /// Always true: a model read this.
    pub judged: bool,
    /// The model, if it is recorded.
    pub model: Option<String>,
    /// The claims, each with its calls.
    pub claims: Vec<JudgedClaim>,
    /// The number of claims without a call that has the words of the action in its name.
    pub without_call: u64,
    /// The reason why the model did not read the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Judged {
    /// The claims without a call, or the reason why the message was not read, for a report.
    pub(crate) fn advisories(&self) -> Vec<String> {
        let model = self.model.as_deref().unwrap_or("a model");
        if let Some(error) = &self.error {
            return vec![format!("`{model}` did not read the message: {error}")];
        }
        let without_call = self.claims.iter().filter(|claim| claim.calls.is_empty());
        without_call
            .map(|claim| {
                format!(
                    "`{model}` reads a claim of `{}` without such a call: “{}”",
                    claim.action, claim.sentence
                )
            })
            .collect()
    }
}

/// A claim that a model read, with the calls that can be it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JudgedClaim {
    /// The action, as the model named it.
    pub action: String,
    /// The words that claim it.
    pub sentence: String,
    /// Ids of the called tools that have the action as their name, or write and have every word of
    /// it in their names, each once.
    pub calls: Vec<String>,
}

/// Compares the claims that a model read, if a trace has some, with the calls. A value of another
/// shape is ignored.
pub(crate) fn judged(trace: &TraceView<'_>, calls: &[CallWords]) -> Option<Judged> {
    let recorded: ModelClaims = serde_json::from_value(trace.extra(CLAIMS_KEY)?.clone()).ok()?;
    let claims: Vec<JudgedClaim> = recorded
        .claims
        .iter()
        .take(MAX_CLAIMS)
        .map(|claim| {
            let action: Vec<String> = lexical::words(&claim.action)
                .iter()
                .map(|word| fold(word))
                .collect();
            let mut ids: Vec<String> = Vec::new();
            for (call, words) in trace.tool_calls.iter().zip(calls) {
                let id = one_line(&call.full_id());
                let is_named = claim.action == call.name() || claim.action == id;
                let is_it = is_named
                    || words.effect != Effect::Reads
                        && !action.is_empty()
                        && action.iter().all(|word| words.has_word(word));
                if is_it && !ids.contains(&id) {
                    ids.push(id);
                }
            }
            JudgedClaim {
                action: one_line(&shorten(&claim.action, 80)),
                sentence: one_line(&shorten(&claim.sentence, 200)),
                calls: ids,
            }
        })
        .collect();
    Some(Judged {
        judged: true,
        model: recorded
            .model
            .as_deref()
            .map(|model| one_line(&shorten(model, 80))),
        without_call: claims.iter().filter(|claim| claim.calls.is_empty()).count() as u64,
        claims,
        error: recorded.error.map(|error| {
            let message = format!("{}: {}", error.kind.as_str(), error.message);
            one_line(&shorten(&message, 300))
        }),
    })
}
