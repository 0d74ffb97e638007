//! Attacks: texts of servers are rewritten, and calls that meet a goal do not reach them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_attack::{ATTACKS_KEY, AttackRun, CallAnswer, Changes};
use mcptest_trace::trace::Trace;
use serde_json::{Map, Value};

use crate::distract;

/// The attacks of a run, which all its connections share.
pub(crate) type SharedAttacks = Arc<Mutex<AttackRun>>;

/// The attacks of a run, for as long as they are used.
pub(crate) fn lock(attacks: &SharedAttacks) -> MutexGuard<'_, AttackRun> {
    // A panic elsewhere leaves the counts correct.
    attacks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shares the attacks of a run, if there are any.
pub(crate) fn share(attacks: Option<AttackRun>) -> Option<SharedAttacks> {
    attacks.map(|attacks| Arc::new(Mutex::new(attacks)))
}

/// Writes the attacks of a run into its trace.
pub(crate) fn record(attacks: &AttackRun, trace: &mut Trace) {
    // Strings and numbers always have a JSON form.
    let records = serde_json::to_value(attacks.records()).unwrap_or_default();
    trace.extra.insert(ATTACKS_KEY, records);
}

/// A request whose answer an attack may change.
#[derive(Debug)]
pub(crate) enum TextRequest {
    /// `resources/read` of an address.
    Resource(String),
    /// `prompts/get` of a name.
    Prompt(String),
}

impl TextRequest {
    pub(crate) fn of(method: &str, params: Option<&Value>) -> Self {
        let text = |key: &str| {
            let value = params.and_then(|params| params.get(key)?.as_str());
            value.unwrap_or_default().to_owned()
        };
        match method {
            "prompts/get" => Self::Prompt(text("name")),
            _ => Self::Resource(text("uri")),
        }
    }

    /// The changes of the answer.
    pub(crate) fn changes(&self, attacks: &mut AttackRun, server: &str, result: &Value) -> Changes {
        match self {
            Self::Resource(uri) => attacks.on_resource(server, uri, result),
            Self::Prompt(name) => attacks.on_prompt(server, name, result),
        }
    }
}

/// A rewritten reply.
pub(crate) struct Rewritten {
    /// The line, of which all other bytes are as they were.
    pub line: Vec<u8>,
    /// The message.
    pub message: Value,
    /// Further keys of the recorded result.
    pub marks: Map<String, Value>,
}

/// Rewrites a reply. `None` if no attack changes it.
pub(crate) fn rewrite(
    attacks: &mut AttackRun,
    message: &Value,
    line: &[u8],
    changes: impl FnOnce(&mut AttackRun, &Value) -> Changes,
) -> Option<Rewritten> {
    let changes = changes(attacks, message.get("result")?);
    if changes.is_empty() {
        return None;
    }
    let line = changes.apply_to_line(line)?;
    let mut message = message.clone();
    changes.apply(message.get_mut("result")?);
    Some(Rewritten {
        line,
        message,
        marks: changes.marks,
    })
}

/// The answer to a call that does not reach its server.
pub(crate) fn answer(message: &Value, answer: &CallAnswer) -> Value {
    let mut reply = distract::error_answer(message, &answer.text);
    if let Some(result) = reply.get_mut("result") {
        result["isError"] = answer.is_error.into();
    }
    reply
}
