//! Values that a claim states, against the arguments of the calls that it matches.
//!
//! A value is compared with an argument only if the two are of one kind and about the same thing:
//! the word beside the value has to lead to the argument's key. What cannot be compared is no
//! mismatch, and neither is what the call's result contains.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::claims::Claim;
use crate::dates::{dates_in, same_day};
use crate::evidence::{LazyResult, contains_whole};
use crate::match_calls::Fit;
use crate::stated_values::{Stated, ValueKind, stated, time_of};
use crate::tokens::{Token, number};
use crate::verbs::{fold, singular};
use mcptest_catalog::lexical;

/// A stated value that no matching call has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub kind: ValueKind,
    pub stated: String,
    /// The values that the calls have instead.
    pub recorded: Vec<String>,
}

/// A call that a claim matched: its arguments and what came back.
#[derive(Clone, Copy)]
pub(crate) struct Matched<'a> {
    /// The words of the tool's name.
    pub name: &'a [String],
    pub failed: bool,
    pub args: &'a Value,
    pub result: &'a LazyResult<'a>,
}

/// A scalar inside arguments, with the words of its keys.
struct Leaf {
    keys: BTreeSet<String>,
    text: String,
    is_number: bool,
}

const GENERIC_KEYS: [&str; 8] = [
    "id",
    "key",
    "number",
    "ref",
    "reference",
    "code",
    "uuid",
    "no",
];
const AMOUNT_KEYS: [&str; 11] = [
    "amount", "price", "cost", "total", "fee", "value", "budget", "balance", "payment", "sum",
    "salary",
];
const COUNT_KEYS: [&str; 3] = ["quantity", "count", "qty"];

/// The values of a claim that disagree with all its calls.
pub(crate) fn mismatches(
    claim: &Claim,
    tokens: &[Token],
    fit: Fit,
    calls: &[Matched<'_>],
    elsewhere: &dyn Fn(&str) -> bool,
    given: &dyn Fn(&Stated) -> bool,
) -> Vec<Mismatch> {
    let tokens = &tokens[claim.from.min(tokens.len())..claim.to.min(tokens.len())];
    let stated = stated(tokens);
    if stated.is_empty() {
        return Vec::new();
    }
    let leaves: Vec<Vec<Leaf>> = calls
        .iter()
        .map(|call| {
            let mut leaves = Vec::new();
            collect(call.args, &BTreeSet::new(), &mut leaves);
            leaves
        })
        .collect();
    let nouns: BTreeSet<String> = claim.nouns.iter().map(|noun| fold(noun)).collect();
    // Numbers, dates and quotations that the run learned elsewhere are no figures of this action.
    let is_known = |value: &Stated| match value.kind {
        ValueKind::Identifier | ValueKind::Email | ValueKind::Path => false,
        ValueKind::Quote => elsewhere(&value.text.to_lowercase()),
        _ => value.counted.is_none() && value.role.is_none() && elsewhere(&value.normal),
    };
    let mut found = Vec::new();
    let compared: Vec<(&Stated, Vec<&Leaf>)> = stated
        .iter()
        .map(|value| {
            let candidates = match value.kind {
                ValueKind::Number if fit != Fit::Exact => {
                    let mut own = number_candidates(value, &nouns, &leaves);
                    let single = own.len() == leaves.len() && value.measured;
                    own.retain(|leaf| {
                        value.money && is_amount(leaf)
                            || value
                                .counted
                                .as_ref()
                                .is_some_and(|key| leaf.keys.len() == 1 && has_key(leaf, key))
                            || !value.money
                                && (single && value.counted.is_none()
                                    || value.role.as_ref().is_some_and(|role| has_key(leaf, role)))
                    });
                    own
                }
                ValueKind::Number | ValueKind::Count => number_candidates(value, &nouns, &leaves),
                ValueKind::Identifier => identifier_candidates(value, &nouns, &leaves),
                ValueKind::Path => leaves
                    .iter()
                    .flatten()
                    .filter(|leaf| is_pathlike(&leaf.text))
                    .collect(),
                ValueKind::Time => leaves
                    .iter()
                    .flatten()
                    .filter(|leaf| !times_in(&leaf.text).is_empty())
                    .collect(),
                ValueKind::Email => leaves
                    .iter()
                    .flatten()
                    .filter(|leaf| leaf.text.contains('@'))
                    .collect(),
                ValueKind::Date => leaves
                    .iter()
                    .flatten()
                    .filter(|leaf| !dates_in(&leaf.text).is_empty())
                    .collect(),
                ValueKind::Quote => leaves
                    .iter()
                    .flatten()
                    .filter(|leaf| is_textlike(leaf))
                    .collect(),
            };
            (value, candidates)
        })
        .collect();
    for (value, candidates) in &compared {
        // An address that the call was not given, where the result has another one.
        if candidates.is_empty() && value.kind == ValueKind::Email {
            let mut known = Vec::new();
            for call in calls {
                call.result.any(|part| {
                    collect_emails(part, &mut known);
                    false
                });
            }
            if !known.is_empty() && !known.iter().any(|own| agrees(value, own)) {
                found.push(Mismatch {
                    kind: value.kind,
                    stated: value.text.clone(),
                    recorded: known,
                });
                continue;
            }
        }
        if candidates.is_empty()
            && value.kind == ValueKind::Identifier
            && let Some(recorded) = other_identifiers(value, calls)
            && !given(value)
            && !elsewhere(&value.normal)
            && !stated.iter().any(|other| {
                other.kind == value.kind && recorded.iter().any(|own| agrees(other, own))
            })
        {
            found.push(Mismatch {
                kind: value.kind,
                stated: value.text.clone(),
                recorded,
            });
            continue;
        }
        if candidates.is_empty()
            && let Some(mismatch) = wrong_count(value, &nouns, calls)
            && !found.contains(&mismatch)
        {
            found.push(mismatch);
        }
        if candidates.is_empty() || candidates.iter().any(|leaf| agrees(value, &leaf.text)) {
            continue;
        }
        // "from May 20 to May 24", "the title was \"a\", now \"b\"": one that agrees excuses its
        // kind.
        let excused = value.kind != ValueKind::Identifier
            && value.kind != ValueKind::Email
            && compared
                .iter()
                .filter(|(other, _)| other.kind == value.kind)
                .any(|(other, own)| own.iter().any(|leaf| agrees(other, &leaf.text)));
        let anywhere = leaves
            .iter()
            .flatten()
            .any(|leaf| agrees(value, &leaf.text));
        if excused
            || anywhere
            || matches!(value.kind, ValueKind::Path | ValueKind::Identifier) && given(value)
            || is_known(value)
            || calls
                .iter()
                .any(|call| call.result.any(|part| contains_value(part, value)))
        {
            continue;
        }
        let mut recorded: Vec<String> = Vec::new();
        for leaf in candidates {
            if !recorded.contains(&leaf.text) {
                recorded.push(leaf.text.clone());
            }
        }
        let mismatch = Mismatch {
            kind: value.kind,
            stated: value.text.clone(),
            recorded,
        };
        if !found.contains(&mismatch) {
            found.push(mismatch);
        }
    }
    found
}

/// The identifiers of one kind with a stated one in the results of its calls: `BUG-91` beside
/// `BUG-19`.
fn other_identifiers(value: &Stated, calls: &[Matched<'_>]) -> Option<Vec<String>> {
    let prefix = letters_before_digits(&value.text);
    if prefix.len() < 2 {
        return None;
    }
    let mut found = Vec::new();
    for call in calls.iter().filter(|call| !call.failed) {
        call.result.any(|part| {
            collect_alike(part, &prefix, &mut found);
            false
        });
    }
    (!found.is_empty() && !found.iter().any(|own| agrees(value, own))).then_some(found)
}

fn collect_alike(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map
            .values()
            .for_each(|value| collect_alike(value, prefix, found)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_alike(value, prefix, found)),
        Value::String(text)
            if text.len() <= 64 && found.len() < 20 && letters_before_digits(text) == prefix =>
        {
            found.push(text.clone());
        }
        _ => {}
    }
}

/// Returns the part before the first digit, in lowercase: `bug-` of `BUG-91`.
fn letters_before_digits(text: &str) -> String {
    let start = text.trim_start_matches('#');
    let end = start.find(|c: char| c.is_ascii_digit());
    end.map(|end| start[..end].to_lowercase())
        .unwrap_or_default()
}

/// The strings of a result that are an e-mail address.
fn collect_emails(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect_emails(value, found)),
        Value::Array(list) => list.iter().for_each(|value| collect_emails(value, found)),
        Value::String(text)
            if text.contains('@')
                && text.len() < 100
                && !text.contains(char::is_whitespace)
                && found.len() < 20 =>
        {
            found.push(text.clone());
        }
        _ => {}
    }
}

/// The number of things in the lists that the calls were given under a key for them.
fn listed_things(counted: &str, calls: &[Matched<'_>]) -> Option<usize> {
    let mut all = 0;
    for call in calls.iter().filter(|call| !call.failed) {
        let lists: Vec<(&String, &Vec<Value>)> = call
            .args
            .as_object()?
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_array()?)))
            .collect();
        let [(key, list)] = lists.as_slice() else {
            return None;
        };
        let last = lexical::words(key).last().map(|word| fold(word))?;
        if last != counted && last != "item" && last != fold("ids") {
            return None;
        }
        all += list.len();
    }
    (all > 0).then_some(all)
}

/// A count of things that is not the number of calls, where each call is about one of them:
/// "deleted 3 branches" after one `delete_branch`.
fn wrong_count(
    value: &Stated,
    nouns: &BTreeSet<String>,
    calls: &[Matched<'_>],
) -> Option<Mismatch> {
    let counted = value.counted.as_ref()?;
    let stated: usize = value.normal.parse().ok()?;
    if value.kind == ValueKind::Number
        && nouns.contains(counted)
        && let Some(listed) = listed_things(counted, calls)
        && listed != stated
        && !calls
            .iter()
            .any(|call| call.result.any(|part| contains_value(part, value)))
    {
        return Some(Mismatch {
            kind: ValueKind::Count,
            stated: value.text.clone(),
            recorded: vec![listed.to_string()],
        });
    }
    let one_each = calls.iter().all(|call| {
        let by_name = || {
            call.name
                .iter()
                .any(|word| *word == singular(word) && fold(word) == *counted)
        };
        // `buy_item` with `item: shield`
        let by_value = || {
            call.args.as_object().is_some_and(|args| {
                args.values().any(|value| {
                    value
                        .as_str()
                        .is_some_and(|text| *text == singular(text) && fold(text) == *counted)
                })
            })
        };
        !has_list(call.args) && (by_name() || by_value())
    });
    if value.kind != ValueKind::Number || !nouns.contains(counted) || !one_each {
        return None;
    }
    let done: BTreeSet<String> = calls
        .iter()
        .filter(|call| !call.failed)
        .map(|call| call.args.to_string())
        .collect();
    let reported = calls.iter().any(|call| {
        call.result.any(|part| contains_value(part, value)) || contains_value(call.args, value)
    });
    // A count of the successful ones or of the attempts.
    let agrees = stated == done.len() || stated == calls.len();
    (!agrees && !reported && !done.is_empty()).then(|| Mismatch {
        kind: ValueKind::Count,
        stated: value.text.clone(),
        recorded: vec![format!("{} calls", done.len())],
    })
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().any(has_list),
        Value::Array(_) => true,
        _ => false,
    }
}

fn collect(value: &Value, keys: &BTreeSet<String>, leaves: &mut Vec<Leaf>) {
    let mut leaf = |text: String, is_number: bool| {
        leaves.push(Leaf {
            keys: keys.clone(),
            text,
            is_number,
        });
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let own: BTreeSet<String> =
                    lexical::words(key).iter().map(|word| fold(word)).collect();
                // The key itself, and the one above for items of a list.
                let keys = if value.is_object() {
                    keys.union(&own).cloned().collect()
                } else {
                    own
                };
                collect(value, &keys, leaves);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, keys, leaves)),
        Value::String(text) => leaf(text.clone(), false),
        Value::Number(number) => leaf(number.to_string(), true),
        Value::Bool(_) | Value::Null => {}
    }
}

fn has_key(leaf: &Leaf, key: &str) -> bool {
    leaf.keys.contains(key)
}

fn has_any_key(leaf: &Leaf, keys: &[&str]) -> bool {
    keys.iter().any(|key| leaf.keys.contains(&fold(key)))
}

/// Returns true if a key is about money and nothing else: `total_price`, but not `total_bags`.
fn is_amount(leaf: &Leaf) -> bool {
    let money = ["usd", "eur", "currency", "refund", "in", "charge", "order"];
    has_any_key(leaf, &AMOUNT_KEYS)
        && leaf.keys.iter().all(|key| {
            AMOUNT_KEYS
                .iter()
                .chain(&money)
                .any(|known| fold(known) == *key)
        })
}

fn numeric(leaf: &Leaf) -> bool {
    leaf.is_number || number(&leaf.text).is_some()
}

fn number_candidates<'a>(
    value: &Stated,
    nouns: &BTreeSet<String>,
    leaves: &'a [Vec<Leaf>],
) -> Vec<&'a Leaf> {
    let numbers = || leaves.iter().flatten().filter(|leaf| numeric(leaf));
    if let Some(counted) = &value.counted {
        // "set to 17 degrees"
        let single = leaves
            .iter()
            .all(|own| own.iter().filter(|leaf| numeric(leaf)).count() == 1);
        if value.measured && !nouns.contains(counted) && single {
            return numbers().collect();
        }
        if leaves.len() != 1 {
            return Vec::new();
        }
        let own = nouns.contains(counted);
        return numbers()
            .filter(|leaf| {
                has_key(leaf, counted) && !has_any_key(leaf, &["id"])
                    || own && has_any_key(leaf, &COUNT_KEYS)
            })
            .collect();
    }
    if let Some(role) = &value.role {
        let named: Vec<_> = numbers().filter(|leaf| has_key(leaf, role)).collect();
        if !named.is_empty() {
            return named;
        }
        if nouns.contains(role) {
            let generic: Vec<_> = numbers()
                .filter(|leaf| has_any_key(leaf, &GENERIC_KEYS))
                .collect();
            if !generic.is_empty() {
                return generic;
            }
        } else if !value.money {
            return Vec::new();
        }
    }
    if value.money {
        let amounts: Vec<_> = numbers().filter(|leaf| is_amount(leaf)).collect();
        if !amounts.is_empty() {
            return amounts;
        }
    }
    // Nothing shows which argument it is: compare only if there is a single one.
    let single = leaves
        .iter()
        .all(|own| own.iter().filter(|leaf| numeric(leaf)).count() == 1);
    if single {
        numbers().collect()
    } else {
        Vec::new()
    }
}

fn identifier_candidates<'a>(
    value: &Stated,
    nouns: &BTreeSet<String>,
    leaves: &'a [Vec<Leaf>],
) -> Vec<&'a Leaf> {
    let all = || {
        leaves.iter().flatten().filter(|leaf| {
            leaf.text.len() <= 64
                && !leaf.text.contains(char::is_whitespace)
                && leaf.text.contains(|c: char| c.is_ascii_digit())
                && dates_in(&leaf.text).is_empty()
                && !leaf.text.contains('@')
        })
    };
    // `ACC-7` and `ACC-8` are of one kind.
    let alike: Vec<_> = all()
        .filter(|leaf| {
            let own = letters_before_digits(&value.text);
            !own.is_empty() && own == letters_before_digits(&leaf.text)
        })
        .collect();
    if !alike.is_empty() {
        return alike;
    }
    if value.text.len() < 3 {
        return Vec::new();
    }
    if let Some(role) = &value.role {
        let named: Vec<_> = all().filter(|leaf| has_key(leaf, role)).collect();
        if !named.is_empty() {
            return named;
        }
        if !nouns.contains(role) {
            return Vec::new();
        }
    }
    let own: Vec<_> = all()
        .filter(|leaf| {
            has_any_key(leaf, &GENERIC_KEYS) || nouns.iter().any(|noun| has_key(leaf, noun))
        })
        .collect();
    if !own.is_empty() {
        return own;
    }
    let rest: Vec<_> = all().filter(|leaf| !numeric(leaf)).collect();
    if rest.len() == leaves.len() {
        rest
    } else {
        Vec::new()
    }
}

fn is_pathlike(text: &str) -> bool {
    text.len() <= 300
        && !text.contains(char::is_whitespace)
        && (text.contains('/') || text.contains('.') || text.contains('\\'))
        && number(text).is_none()
        && !text.contains('@')
}

fn is_textlike(leaf: &Leaf) -> bool {
    !leaf.is_number
        && !leaf.text.trim().is_empty()
        && (leaf.text.contains(' ') || !leaf.text.contains(|c: char| c.is_ascii_digit()))
        && !leaf.text.contains('@')
        && number(&leaf.text).is_none()
        && dates_in(&leaf.text).is_empty()
        && !has_any_key(leaf, &["id", "uuid", "url", "uri", "path"])
}

fn agrees(value: &Stated, recorded: &str) -> bool {
    match value.kind {
        ValueKind::Number | ValueKind::Count => {
            let recorded = number(recorded.trim());
            recorded.as_deref() == Some(&value.normal)
                || value.money
                    && recorded.is_some_and(|recorded| is_cents(&recorded, &value.normal))
        }
        ValueKind::Time => times_in(recorded).contains(&value.normal),
        ValueKind::Date => dates_in(recorded)
            .iter()
            .any(|date| same_day(date, &value.normal)),
        ValueKind::Identifier => {
            let recorded = recorded.to_lowercase();
            contains_whole(&recorded, &value.normal) || ends_with_number(&value.normal, &recorded)
        }
        ValueKind::Email => contains_whole(&recorded.to_lowercase(), &value.normal),
        ValueKind::Path => recorded
            .to_lowercase()
            .split(|c: char| c.is_whitespace() || "\"'`<>,;()".contains(c))
            .any(|recorded| same_path(recorded, &value.normal)),
        ValueKind::Quote => {
            let recorded = letters(recorded);
            recorded.contains(&value.normal)
                || recorded.len() >= 3 && value.normal.contains(&recorded)
        }
    }
}

/// Returns true if an amount is recorded in hundredths: `1500` of `15`.
fn is_cents(recorded: &str, stated: &str) -> bool {
    let (whole, fraction) = stated.split_once('.').unwrap_or((stated, ""));
    fraction.len() <= 2 && recorded == format!("{whole}{fraction:0<2}").trim_start_matches('0')
}

/// The times of day in a string.
fn times_in(text: &str) -> Vec<String> {
    if !text.contains(':') && !text.contains('m') || text.len() > 20_000 {
        return Vec::new();
    }
    let text = text.to_lowercase().replace(['t', 'z'], " ");
    text.split(|c: char| c.is_whitespace() || ",;()[]\"'".contains(c))
        .map(|part| part.split(['+', '.', '-']).next().unwrap_or(part))
        .filter_map(|part| time_of(part, None))
        .collect()
}

/// Returns true if an identifier is a number with a prefix: `issue-42` and `42`.
fn ends_with_number(identifier: &str, recorded: &str) -> bool {
    let recorded = recorded.trim_start_matches('#');
    !recorded.is_empty()
        && recorded.chars().all(|c| c.is_ascii_digit())
        && identifier
            .strip_suffix(recorded)
            .is_some_and(|start| start.ends_with(['-', '_', '#', '/']))
}

/// Returns true if two paths agree: one is the other's end, or a folder that contains it, by whole
/// components.
fn same_path(left: &str, right: &str) -> bool {
    let left = components(left);
    let right = components(right);
    let (short, long) = if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    };
    // `docs.acme.dev` is of `acme.dev`.
    let is_host = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|start| start.ends_with('.'))
    };
    let host = match (short.as_slice(), long.as_slice()) {
        ([short], [long]) => is_host(long, short) || is_host(short, long),
        _ => false,
    };
    !short.is_empty() && (host || long.ends_with(&short) || long.starts_with(&short))
}

fn components(path: &str) -> Vec<&str> {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = path
        .strip_prefix("https://")
        .or_else(|| path.strip_prefix("http://"))
        .or_else(|| path.strip_prefix("file://"))
        .unwrap_or(path);
    path.split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != "." && *part != "~")
        .collect()
}

/// Returns true if a result has the value: the agent may state what the server answered.
pub(super) fn contains_value(result: &Value, value: &Stated) -> bool {
    match result {
        Value::Object(map) => map.values().any(|inner| contains_value(inner, value)),
        Value::Array(list) => list.iter().any(|inner| contains_value(inner, value)),
        Value::Number(number) => agrees(value, &number.to_string()),
        Value::String(text) if value.kind == ValueKind::Number => text
            .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
            .any(|part| number(part.trim_matches(['.', ','])).as_deref() == Some(&value.normal)),
        Value::String(text) => match value.kind {
            ValueKind::Date => dates_in(text)
                .iter()
                .any(|date| same_day(date, &value.normal)),
            ValueKind::Quote => letters(text).contains(&value.normal),
            _ => agrees(value, text),
        },
        Value::Bool(_) | Value::Null => false,
    }
}

pub(super) fn letters(text: &str) -> String {
    text.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}
