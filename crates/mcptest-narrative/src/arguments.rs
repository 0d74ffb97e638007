//! Values that a claim states, against the arguments of the calls that it matches.
//!
//! A value is compared with an argument only if the two are of one kind and about the same thing:
//! the word beside the value has to lead to the argument's key. What cannot be compared is no
//! mismatch, and neither is what the call's result contains.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::agreement::{agrees, contains_value};
use crate::claims::Claim;
use crate::dates::{dates_in, times_in};
use crate::evidence::contains_whole;
use crate::match_calls::Fit;
use crate::provenance::RunValues;
use crate::recorded::{Leaf, Matched, collect_emails, is_pathlike, leaves};
use crate::stated_values::stated;
use crate::tokens::{Token, measured, number};
use crate::values::{Mismatch, Stated, ValueKind};
use crate::verbs::{fold, singular};
use crate::word_values::wrong_words;
use mcptest_catalog::lexical;

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

/// The places of a run beside the calls of a claim where a value can be known from.
pub(crate) struct Known<'a> {
    /// Returns true if a result has a value.
    pub elsewhere: &'a dyn Fn(&str) -> bool,
    /// Returns true if another call was given a value.
    pub given: &'a dyn Fn(&Stated) -> bool,
    /// Returns true if a record has a value beside one of those that the calls were given.
    pub is_alias: &'a dyn Fn(&Stated, &[&Leaf]) -> bool,
}

/// The values of a claim that disagree with all its calls.
pub(crate) fn mismatches(
    claim: &Claim,
    tokens: &[Token],
    fit: Fit,
    calls: &[Matched<'_>],
    known: &Known<'_>,
    run: &RunValues<'_>,
) -> Vec<Mismatch> {
    let Known {
        elsewhere,
        given,
        is_alias,
    } = *known;
    let tokens = &tokens[claim.from.min(tokens.len())..claim.to.min(tokens.len())];
    let stated = stated(tokens);
    let leaves: Vec<Vec<Leaf>> = calls.iter().map(|call| leaves(call.args)).collect();
    let nouns: BTreeSet<String> = claim.nouns.iter().map(|noun| fold(noun)).collect();
    // Numbers, dates and quotations that the run learned elsewhere are no figures of this action.
    // "closed #42": the number is the thing itself.
    let is_object = |value: &Stated| {
        value.kind == ValueKind::Number
            && claim.nouns.is_empty()
            && !claim.pronoun
            && value.counted.is_none()
            && !value.money
            && value.normal.len() >= 2
            && (value.at == 0
                || tokens[value.at - 1].is_any(&["and", ","])
                || crate::verbs::verb_of(&tokens[value.at - 1].low).is_some())
    };
    // "to 12 Mill Lane", of an argument that has it
    let is_written = |value: &Stated| {
        let next = tokens.get(value.at + 1);
        value.kind == ValueKind::Number
            && next.is_some_and(|next| {
                let phrase = format!("{} {}", value.text, next.text).to_lowercase();
                leaves
                    .iter()
                    .flatten()
                    .any(|leaf| contains_whole(&leaf.text.to_lowercase(), &phrase))
            })
    };
    let is_known = |value: &Stated| match value.kind {
        // "from the 5th to the 6th": a day of a date
        _ if is_ordinal(&value.text) => true,
        _ if is_written(value) => true,
        _ if is_object(value) => false,
        ValueKind::Identifier | ValueKind::Email | ValueKind::Path => false,
        ValueKind::Quote => elsewhere(&value.text.to_lowercase()),
        ValueKind::Date | ValueKind::Time => !run.is_unknown_time(value),
        _ => value.counted.is_none() && value.role.is_none() && elsewhere(&value.normal),
    };
    let mut found = wrong_words(tokens, &leaves, run);
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
                // "#releases" need not be the channel's id.
                ValueKind::Identifier if !value.normal.contains(|c: char| c.is_ascii_digit()) => {
                    Vec::new()
                }
                ValueKind::Identifier => {
                    let known = elsewhere(&value.normal);
                    identifier_candidates(value, &nouns, &leaves, known)
                }
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
                ValueKind::Quote | ValueKind::Word => leaves
                    .iter()
                    .flatten()
                    .filter(|leaf| is_textlike(leaf))
                    .collect(),
            };
            (value, candidates)
        })
        .collect();
    // An amount of the very action is that of its call, or the sum of several.
    let is_derived = |value: &Stated, candidates: &[&Leaf]| {
        if value.money && fit == Fit::Exact && candidates.iter().all(|leaf| is_amount(leaf)) {
            let own = candidates
                .iter()
                .filter_map(|leaf| leaf.text.parse::<f64>().ok());
            let sum: f64 = own.sum();
            return value
                .normal
                .parse::<f64>()
                .is_ok_and(|value| (value - sum).abs() < 0.006);
        }
        !value.measured && run.is_derived(value)
    };
    for (value, candidates) in &compared {
        let known = found.iter().any(|known| known.stated == value.text);
        if known || is_duration(tokens, value, elsewhere) {
            continue;
        }
        let timed = matches!(value.kind, ValueKind::Date | ValueKind::Time);
        if !(timed && candidates.is_empty()) && run.is_invented(value, calls) {
            found.push(Mismatch {
                kind: value.kind,
                stated: value.text.clone(),
                recorded: recorded_texts(candidates),
            });
            continue;
        }
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
            && let Some(mismatch) = wrong_count(tokens, value, &nouns, fit, calls)
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
        let excused = excused && !is_object(value);
        if excused
            || anywhere
            || is_derived(value, candidates)
            || matches!(value.kind, ValueKind::Path | ValueKind::Identifier) && given(value)
            || is_known(value)
            || calls
                .iter()
                .any(|call| call.result.any(|part| contains_value(part, value)))
        {
            continue;
        }
        if value.kind == ValueKind::Identifier && is_alias(value, candidates) {
            continue;
        }
        let mismatch = Mismatch {
            kind: value.kind,
            stated: value.text.clone(),
            recorded: recorded_texts(candidates),
        };
        if !found.contains(&mismatch) {
            found.push(mismatch);
        }
    }
    found
}

/// The values of arguments, each once.
fn recorded_texts(leaves: &[&Leaf]) -> Vec<String> {
    let mut recorded: Vec<String> = Vec::new();
    for leaf in leaves {
        if !recorded.contains(&leaf.text) {
            recorded.push(leaf.text.clone());
        }
    }
    recorded
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

/// Returns true if a number is the minutes of a recorded duration: "2 h 14 min" of `02:14:07`.
fn is_duration(tokens: &[Token], value: &Stated, elsewhere: &dyn Fn(&str) -> bool) -> bool {
    let Some(hours) = value.at.checked_sub(2).map(|place| &tokens[place]) else {
        return false;
    };
    let is_unit =
        |place: usize, units: &[&str]| tokens.get(place).is_some_and(|token| token.is_any(units));
    is_unit(value.at - 1, &["h", "hr", "hrs", "hour", "hours"])
        && is_unit(value.at + 1, &["m", "min", "mins", "minute", "minutes"])
        && [
            format!("{:0>2}:{:0>2}", hours.text, value.normal),
            format!("{}:{:0>2}", hours.text, value.normal),
        ]
        .iter()
        .any(|time| elsewhere(time))
}

/// Returns true if a number is one of an order: "5th".
fn is_ordinal(text: &str) -> bool {
    ["st", "nd", "rd", "th"].iter().any(|ending| {
        text.strip_suffix(ending)
            .is_some_and(|own| !own.is_empty() && own.bytes().all(|c| c.is_ascii_digit()))
    })
}

/// A count of things that is not the number of calls, where each call is about one of them:
/// "deleted 3 branches" after one `delete_branch`.
fn wrong_count(
    tokens: &[Token],
    value: &Stated,
    nouns: &BTreeSet<String>,
    fit: Fit,
    calls: &[Matched<'_>],
) -> Option<Mismatch> {
    let counted = value.counted.as_ref()?;
    let stated: usize = value.normal.parse().ok().filter(|stated| *stated < 1_000)?;
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
        // `add_label` with `issue: 7`
        let by_key = || {
            (calls.len() > 1 || fit == Fit::Exact)
                && call.args.as_object().is_some_and(|args| {
                    args.keys().any(|key| {
                        lexical::words(key)
                            .iter()
                            .any(|word| *word == singular(word) && fold(word) == *counted)
                    })
                })
        };
        // Several calls of one tool, with one thing each.
        let by_calls = || calls.len() > 1 && nouns.contains(counted) && fit == Fit::Exact;
        !has_list(call.args) && (by_name() || by_value() || by_key() || by_calls())
    });
    let keyed = calls.len() > 1 && !nouns.contains(counted);
    if value.kind != ValueKind::Number || !(nouns.contains(counted) || keyed) || !one_each {
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
    // A count of the successful ones, or, without failures, of the attempts.
    // "Two of the three files were deleted."
    let part = tokens[..value.at]
        .iter()
        .rev()
        .take(2)
        .any(|token| token.is("of"));
    let failed = calls.iter().any(|call| call.failed);
    let agrees = stated == done.len() || stated == calls.len() && (!failed || part);
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
    leaf.is_number || number(&leaf.text).is_some() || measured(&leaf.text).is_some()
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
    known: bool,
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
    // What the run knows from elsewhere need not be of this call.
    let rest: Vec<_> = all().filter(|leaf| !numeric(leaf) && !known).collect();
    if rest.len() == leaves.len() {
        rest
    } else {
        Vec::new()
    }
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
