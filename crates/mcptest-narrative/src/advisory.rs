//! Claims that a model read in the closing message: reported, marked as judged, never deciding.
//!
//! The runner records them in the trace under [`CLAIMS_KEY`]; the gate calls no model.

use serde::{Deserialize, Serialize};

use crate::match_calls::CallWords;
use crate::match_calls::Effect;
use crate::verbs::fold;
use mcptest_catalog::lexical;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::trace::TraceView;

/// The key of a trace that holds the claims that a model read: `{"model": ID, "claims": [{"action":
/// "create_issue", "sentence": "…"}]}`.
pub const CLAIMS_KEY: &str = "narrative_claims";

/// The number of claims of one run that are reported.
const MAX_CLAIMS: usize = 100;

/// The claims that a model read in a closing message, as a trace records them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelClaims {
    /// The model that read the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The claims, in the order of the message.
    #[serde(default)]
    pub claims: Vec<ModelClaim>,
}

impl ModelClaims {
    /// The claims that a model read.
    #[must_use]
    pub fn new(model: Option<String>, claims: Vec<ModelClaim>) -> Self {
        Self { model, claims }
    }
}

/// One claim that a model read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelClaim {
    /// The action, named like a tool: `create_issue`.
    pub action: String,
    /// The words that claim it.
    #[serde(default)]
    pub sentence: String,
}

impl ModelClaim {
    /// A claim of an action in a sentence.
    #[must_use]
    pub fn new(action: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            sentence: sentence.into(),
        }
    }
}

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
}

/// A claim that a model read, with the calls that can be it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JudgedClaim {
    /// The action, as the model named it.
    pub action: String,
    /// The words that claim it.
    pub sentence: String,
    /// Ids of the tools whose names have every word of the action, each once.
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
                let is_it = words.effect != Effect::Reads
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
    })
}
