//! Random changes of inputs: bytes, parts of other inputs, JSON values of other types, repeated and
//! missing keys. A number gives the same input on every machine.

use mcptest_numbers::random::SplitMix64 as Random;
use serde_json::{Value, json};

/// The largest input that is made.
const MAX_BYTES: usize = 64 * 1024;

/// An input of the repository. It is parsed once, not for each change.
#[derive(Debug)]
pub struct Known {
    bytes: Vec<u8>,
    /// The JSON documents; `None` if there is anything else, or nothing.
    documents: Option<Vec<Value>>,
}

impl From<Vec<u8>> for Known {
    fn from(bytes: Vec<u8>) -> Self {
        let documents = documents(&bytes);
        Self { bytes, documents }
    }
}

/// Makes the input with this number from others.
#[must_use]
pub fn mutated(inputs: &[Known], seed: u64, number: u64) -> Vec<u8> {
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = Random::new(start.wrapping_add(number));
    let Some(known) = pick(inputs, &mut random) else {
        return Vec::new();
    };
    let mut bytes = Vec::new();
    // Changes of values keep the input JSON, so that it gets far into the readers.
    let mut is_changed = false;
    if random.below(4) > 0
        && let Some(values) = &known.documents
    {
        bytes = with_changed_values(values.clone(), inputs, &mut random);
        is_changed = true;
    } else {
        bytes.extend(&known.bytes);
    }
    if !is_changed || random.below(3) == 0 {
        for _ in 0..=random.below(6) {
            change_bytes(&mut bytes, inputs, &mut random);
        }
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

/// A random input. Of two, mostly the shorter one is taken: in the time of one long input, many
/// short ones reach more.
fn pick<'i>(inputs: &'i [Known], random: &mut Random) -> Option<&'i Known> {
    let mut one = || inputs.get(random.below(inputs.len().max(1) as u64) as usize);
    let (first, second) = (one()?, one()?);
    let takes_shorter = random.below(8) > 0;
    let is_shorter = second.bytes.len() < first.bytes.len();
    Some(if takes_shorter && is_shorter {
        second
    } else {
        first
    })
}

fn change_bytes(bytes: &mut Vec<u8>, inputs: &[Known], random: &mut Random) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let end = (at + random.below(64) as usize).min(bytes.len());
    match random.below(6) {
        0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        1 => drop(bytes.drain(at..end)),
        2 => bytes.truncate(at),
        3 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        4 => {
            let other = pick(inputs, random).map_or(&[][..], |known| &known.bytes);
            let from = random.below(other.len() as u64 + 1) as usize;
            let to = (from + random.below(256) as usize).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        _ => {
            let tokens: [&[u8]; 10] = [
                b"null",
                b"[]",
                b"{}",
                b"\"\"",
                b"1e308",
                b"-1",
                b"\n",
                b"[[[[[[[[",
                b"\xe2\x80\xae",
                b"\x1b[31m",
            ];
            let token = tokens[random.below(tokens.len() as u64) as usize];
            bytes.splice(at..at, token.iter().copied());
        }
    }
}

/// The JSON documents of an input; `None` if there is anything else, or nothing.
fn documents(bytes: &[u8]) -> Option<Vec<Value>> {
    let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(bytes)
        .into_iter()
        .collect();
    documents.ok().filter(|documents| !documents.is_empty())
}

/// The text of documents with a few changed values.
fn with_changed_values(mut values: Vec<Value>, inputs: &[Known], random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(4) {
        let at = random.below(values.len() as u64) as usize;
        let donor = match random.below(3) {
            0 => pick(inputs, random)
                .and_then(|known| known.documents.as_deref())
                .and_then(|other| {
                    let at = random.below(other.len() as u64) as usize;
                    Some(any_part(other.get(at)?, random).clone())
                }),
            _ => None,
        };
        let donor = donor.unwrap_or_else(|| odd_value(random));
        if let Some(value) = values.get_mut(at) {
            change_value(value, donor, random);
        }
    }
    let mut text = Vec::new();
    for value in values {
        text.extend(value.to_string().into_bytes());
        text.push(b'\n');
    }
    text
}

fn odd_value(random: &mut Random) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(0.5),
        5 => json!(""),
        6 => json!("\u{1b}[31m\u{202e}"),
        7 => json!([]),
        8 => json!({}),
        _ => json!([[{"type": "tool_use"}], {"role": "assistant"}]),
    }
}

/// A random part of a value.
fn any_part<'v>(value: &'v Value, random: &mut Random) -> &'v Value {
    let child = match value {
        Value::Array(items) if !items.is_empty() => {
            items.get(random.below(items.len() as u64) as usize)
        }
        Value::Object(map) if !map.is_empty() => {
            map.values().nth(random.below(map.len() as u64) as usize)
        }
        _ => None,
    };
    match child {
        Some(child) if random.below(4) > 0 => any_part(child, random),
        _ => value,
    }
}

/// Changes a random part of a value: replaces it, removes it, repeats it or renames its key.
fn change_value(value: &mut Value, donor: Value, random: &mut Random) {
    let deeper = random.below(5) > 0;
    match value {
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len() as u64) as usize;
            match (deeper, random.below(4)) {
                (true, _) => {
                    if let Some(item) = items.get_mut(at) {
                        change_value(item, donor, random);
                    }
                }
                (false, 0) => drop(items.remove(at)),
                (false, 1) => items.push(donor),
                (false, 2) => items.reverse(),
                (false, _) => {
                    let copy = items.get(at).cloned().unwrap_or_default();
                    items.insert(at, copy);
                }
            }
        }
        Value::Object(map) if !map.is_empty() => {
            let at = random.below(map.len() as u64) as usize;
            let Some(key) = map.keys().nth(at).cloned() else {
                return;
            };
            match (deeper, random.below(3)) {
                (true, _) => {
                    if let Some(inner) = map.get_mut(&key) {
                        change_value(inner, donor, random);
                    }
                }
                (false, 0) => drop(map.remove(&key)),
                (false, 1) => drop(map.insert(key, donor)),
                (false, _) => {
                    let inner = map.remove(&key).unwrap_or_default();
                    map.insert(format!("{key}s"), inner);
                }
            }
        }
        other => *other = donor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Vec<Known> {
        vec![
            br#"{"tool_calls":[{"name":"get","args":{"id":7}}]}"#.to_vec().into(),
            // As long as the other: shorter inputs are preferred.
            b"key: [a, b]\nother: {c: [d, e], f: g}\nlast: [1, 2]\n"
                .to_vec()
                .into(),
        ]
    }

    #[test]
    fn the_same_number_is_the_same_input() {
        let make = |number| mutated(&inputs(), 7, number);
        assert_eq!(make(3), make(3));
        let different: std::collections::BTreeSet<Vec<u8>> = (0..100).map(make).collect();
        assert!(different.len() > 60, "{}", different.len());
    }

    #[test]
    fn many_inputs_stay_json_and_many_do_not() {
        let all: Vec<Vec<u8>> = (0..200)
            .map(|number| mutated(&inputs(), 1, number))
            .collect();
        let json = all
            .iter()
            .filter(|input| documents(input).is_some())
            .count();
        assert!((40..180).contains(&json), "{json}");
    }

    #[test]
    fn nothing_gives_something() {
        let _ = mutated(&[], 1, 1);
        let _ = mutated(&[Vec::new().into()], 1, 2);
    }
}
