//! Requests of a tool or prompt to the client before it answers: for a form, for a completion by
//! the client's model, for its roots.
//!
//! Up to 2025-11-25 these are requests to the client, sent during the call. From 2026-07-28 on the
//! call ends with `input_required`, and the client repeats the call with the answers and the state
//! that it received. The state identifies the round; an unknown state is refused.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::compile::Ask;
use crate::deferred::Schedule;
use crate::jsonrpc::{MISSING_CAPABILITY, RpcError, write_json};
use crate::listed::{Outcome, members};

/// Sends the next requests to the client; `None` if all are answered and the call can continue.
pub(crate) fn ask_client<'a>(
    rounds: &[Vec<Ask>],
    name: &str,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
    arguments: &Value,
    schedule: &mut Schedule,
) -> Result<Option<Outcome<'a>>, RpcError> {
    if rounds.is_empty() {
        return Ok(None);
    }
    let declared = |ask: &&Ask| {
        let capability = caller.capabilities.and_then(|all| all.get(ask.capability));
        capability.is_some_and(Value::is_object)
    };
    if !caller.revision.is_stateless() {
        for ask in rounds.iter().flatten() {
            if !declared(&ask) {
                let text = format!(
                    "The client does not have the capability {}.",
                    ask.capability
                );
                let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
                return Ok(Some(Outcome::fresh(members(&result))));
            }
            let id = Value::String(format!(
                "ask-{}",
                caller.asks.fetch_add(1, Ordering::Relaxed) + 1
            ));
            let mut frame = br#"{"jsonrpc":"2.0","id":"#.to_vec();
            write_json(&mut frame, &id);
            frame.push(b',');
            ask.members.render(arguments, &mut frame);
            frame.push(b'}');
            schedule.ask(frame, id);
        }
        return Ok(None);
    }
    let invalid = |what: &str| RpcError::invalid_params(format!("Invalid params: {what}"));
    let current = match params.get("requestState") {
        None => 0,
        Some(given) => (0..rounds.len())
            .find(|round| given.as_str() == Some(state(name, *round).as_str()))
            .ok_or_else(|| invalid("this server gave out no such requestState"))?,
    };
    let given = match params.get("inputResponses") {
        None | Some(Value::Null) => None,
        Some(Value::Object(given)) => Some(given),
        Some(_) => return Err(invalid("inputResponses is not an object")),
    };
    let answered = given.is_some_and(|given| {
        let mut asked = rounds[current].iter().filter(declared);
        asked.all(|ask| given.get(&ask.key).is_some_and(Value::is_object))
    });
    let next = if answered { current + 1 } else { current };
    let Some(round) = rounds.get(next) else {
        return Ok(None);
    };
    let mut requests = Vec::new();
    for ask in round.iter().filter(declared) {
        if !requests.is_empty() {
            requests.push(b',');
        }
        write_json(&mut requests, &ask.key);
        requests.extend_from_slice(b":{");
        ask.members.render(arguments, &mut requests);
        requests.push(b'}');
    }
    if requests.is_empty() {
        let required: Map<String, Value> = round
            .iter()
            .map(|ask| (ask.capability.to_owned(), json!({})))
            .collect();
        let error = RpcError::new(
            MISSING_CAPABILITY,
            "The client lacks a capability that this needs",
        );
        return Err(error.with_data(json!({"requiredCapabilities": required})));
    }
    let mut text = br#""inputRequests":{"#.to_vec();
    text.extend_from_slice(&requests);
    text.extend_from_slice(br#"},"requestState":"#);
    write_json(&mut text, &state(name, next));
    Ok(Some(Outcome::input_required(text)))
}

/// The state of a round: its number and a checksum, so that other strings are not accepted.
fn state(name: &str, round: usize) -> String {
    let bytes = name.bytes().chain(round.to_string().into_bytes());
    let checksum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("round-{round}-{checksum:016x}")
}
