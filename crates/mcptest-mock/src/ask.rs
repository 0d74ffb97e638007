//! Requests of a tool or prompt to the client before it answers: for a form, for a completion by
//! the client's model, for its roots.
//!
//! Up to 2025-11-25 these are requests to the client, sent during the call. From 2026-07-28 on the
//! call ends with `input_required`, and the client repeats the call with the answers and the state
//! that it received. The state identifies the round and has the answers of the rounds before it; a
//! state that was not given out is refused.

use std::sync::atomic::Ordering;

use mcptest_protocol::base64;
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::compile::Ask;
use crate::deferred::Schedule;
use crate::expression::Values;
use crate::jsonrpc::{MISSING_CAPABILITY, RpcError, write_json};
use crate::listed::{Outcome, members};

/// The state of the requests to the client.
pub(crate) enum Asked<'a> {
    /// All are answered.
    Answered(Map<String, Value>),
    /// They are sent during the call: their ids and names.
    Sent(Vec<(Value, String)>),
    /// The call ends with this.
    Ends(Outcome<'a>),
}

/// Sends the next requests to the client.
pub(crate) fn ask_client<'a>(
    rounds: &[Vec<Ask>],
    name: &str,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
    arguments: &Value,
    schedule: &mut Schedule,
) -> Result<Asked<'a>, RpcError> {
    if rounds.is_empty() {
        return Ok(Asked::Answered(Map::new()));
    }
    if !caller.revision.is_stateless() {
        let asks = rounds.iter().flatten();
        return Ok(match send(asks, caller, arguments, None, schedule) {
            Ok(sent) => Asked::Sent(sent),
            Err(refused) => Asked::Ends(refused),
        });
    }
    let invalid = |what: &str| RpcError::invalid_params(format!("Invalid params: {what}"));
    let (current, mut answers) = match params.get("requestState") {
        None => (0, Map::new()),
        Some(given) => given
            .as_str()
            .and_then(|given| read_state(name, given))
            .filter(|(round, _)| *round < rounds.len())
            .ok_or_else(|| invalid("this server gave out no such requestState"))?,
    };
    let given = match params.get("inputResponses") {
        None | Some(Value::Null) => None,
        Some(Value::Object(given)) => Some(given),
        Some(_) => return Err(invalid("inputResponses is not an object")),
    };
    let answered = given.is_some_and(|given| {
        let mut asked = rounds[current]
            .iter()
            .filter(|ask| is_declared(ask, caller));
        asked.all(|ask| given.get(&ask.key).is_some_and(Value::is_object))
    });
    if let Some(given) = given.filter(|_| answered) {
        let of_round = rounds[current].iter().filter_map(|ask| {
            let answer = given.get(&ask.key)?;
            Some((ask.key.clone(), answer.clone()))
        });
        answers.extend(of_round);
    }
    let next = if answered { current + 1 } else { current };
    let Some(round) = rounds.get(next) else {
        return Ok(Asked::Answered(answers));
    };
    let pending = round.iter().filter(|ask| is_declared(ask, caller));
    let requests = requests(pending, arguments, &answers);
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
    write_json(&mut text, &state(name, next, &answers));
    Ok(Asked::Ends(Outcome::input_required(text)))
}

/// Returns true if the client has the capability for a request.
pub(crate) fn is_declared(ask: &Ask, caller: &Caller<'_>) -> bool {
    let capability = caller.capabilities.and_then(|all| all.get(ask.capability));
    capability.is_some_and(Value::is_object)
}

/// The members of `inputRequests`.
pub(crate) fn requests<'k>(
    asks: impl Iterator<Item = &'k Ask>,
    arguments: &Value,
    answers: &Map<String, Value>,
) -> Vec<u8> {
    let answers = Value::Object(answers.clone());
    let values = Values {
        args: arguments,
        answers: &answers,
    };
    let mut requests = Vec::new();
    for ask in asks {
        if !requests.is_empty() {
            requests.push(b',');
        }
        write_json(&mut requests, &ask.key);
        requests.extend_from_slice(b":{");
        ask.members.render_with(values, &mut requests);
        requests.push(b'}');
    }
    requests
}

/// Schedules requests to a client of an older revision, and returns their ids and names. `meta` is
/// added to their parameters.
pub(crate) fn send<'a, 'k>(
    asks: impl Iterator<Item = &'k Ask>,
    caller: &Caller<'_>,
    arguments: &Value,
    meta: Option<&Value>,
    schedule: &mut Schedule,
) -> Result<Vec<(Value, String)>, Outcome<'a>> {
    let mut sent = Vec::new();
    for ask in asks {
        if !is_declared(ask, caller) {
            let text = format!(
                "The client does not have the capability {}.",
                ask.capability
            );
            let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
            return Err(Outcome::fresh(members(&result)));
        }
        let number = caller.asks.fetch_add(1, Ordering::Relaxed) + 1;
        let id = Value::String(format!("ask-{number}"));
        let mut request = b"{".to_vec();
        ask.members.render(arguments, &mut request);
        request.push(b'}');
        let frame = match meta {
            None => {
                let mut frame = br#"{"jsonrpc":"2.0","id":"#.to_vec();
                write_json(&mut frame, &id);
                frame.push(b',');
                frame.extend_from_slice(&request[1..]);
                frame
            }
            Some(meta) => {
                let mut request: Value = serde_json::from_slice(&request).unwrap_or_default();
                request["params"]["_meta"] = meta.clone();
                request["jsonrpc"] = "2.0".into();
                request["id"] = id.clone();
                let mut frame = Vec::new();
                write_json(&mut frame, &request);
                frame
            }
        };
        schedule.ask(frame, id.clone());
        sent.push((id, ask.key.clone()));
    }
    Ok(sent)
}

/// The state of a round: its number, the answers of the rounds before it, and a checksum, so that
/// other strings are not accepted.
fn state(name: &str, round: usize, answers: &Map<String, Value>) -> String {
    let mut payload = Vec::new();
    if !answers.is_empty() {
        write_json(&mut payload, answers);
    }
    let payload = base64::encode(&payload);
    let checksum = checksum(name, round, &payload);
    match payload.is_empty() {
        true => format!("round-{round}-{checksum:016x}"),
        false => format!("round-{round}-{checksum:016x}-{payload}"),
    }
}

/// The round and the answers of a state that was given out.
fn read_state(name: &str, state: &str) -> Option<(usize, Map<String, Value>)> {
    let mut parts = state.strip_prefix("round-")?.splitn(3, '-');
    let round = parts.next()?.parse().ok()?;
    let (given, payload) = (parts.next()?, parts.next().unwrap_or_default());
    if given != format!("{:016x}", checksum(name, round, payload)) {
        return None;
    }
    let payload = base64::decode(payload)?;
    if payload.is_empty() {
        return Some((round, Map::new()));
    }
    Some((round, serde_json::from_slice(&payload).ok()?))
}

fn checksum(name: &str, round: usize, payload: &str) -> u64 {
    let bytes = name
        .bytes()
        .chain(round.to_string().into_bytes())
        .chain(payload.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_the_answers_and_cannot_be_made_up() {
        let answers = json!({"a": {"action": "accept", "content": {"x": "-"}}});
        let answers = answers.as_object().unwrap();
        let given = state("order", 1, answers);
        assert_eq!(read_state("order", &given), Some((1, answers.clone())));
        assert_eq!(read_state("other", &given), None);
        assert_eq!(
            read_state("order", &given.replace("round-1", "round-2")),
            None
        );
        assert_eq!(read_state("order", &format!("{given}AA")), None);
        let first = state("order", 0, &Map::new());
        assert_eq!(read_state("order", &first), Some((0, Map::new())));
        for odd in [
            "",
            "round-",
            "round-1",
            "round-1-x-",
            "round-1-0000000000000000",
        ] {
            assert_eq!(read_state("order", odd), None, "{odd}");
        }
    }
}
