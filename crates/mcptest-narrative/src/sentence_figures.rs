//! Figures in sentences about a call, whatever the form of the sentence.
//!
//! "Your alarm is set for 19:50" need not be a claim; but where the only alarm of the run was set
//! for another time, and nothing in the run has 19:50, it is wrong.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::call_words::Effect;
use crate::dates::{dates_in, times_in};
use crate::evidence::contains_whole;
use crate::match_calls::Candidate;
use crate::recorded::{Matched, collect_emails, is_pathlike, leaves};
use crate::run_evidence::Evidence;
use crate::sentences::Sentence;
use crate::stated_values::{all_stated, stated};
use crate::tokens::number;
use crate::values::{Stated, ValueKind};
use crate::verbs::fold;
use crate::word_values::wrong_states_of;
use crate::words::{CONDITIONALS, HEDGES, MODALS, NEGATIONS, REPORTING, SUBORDINATORS};
use mcptest_trace::trace::TraceView;

/// A value of a sentence that is wrong, and the call that it is about.
pub(crate) struct WrongFigure {
    pub call: usize,
    pub kind: ValueKind,
    pub stated: String,
    pub recorded: Vec<String>,
}

/// The number of values and calls of one message that are compared.
pub(crate) const MAX_COMPARED: usize = 1_000;

/// The typed values of a sentence that the run does not have, where a call that the sentence is
/// about has another value of the same type.
pub(crate) fn wrong_figures(
    trace: &TraceView<'_>,
    candidates: &[Candidate<'_>],
    evidence: &Evidence<'_>,
    sentence: &Sentence,
    room: &mut usize,
) -> Vec<WrongFigure> {
    if *room == 0 {
        return Vec::new();
    }
    if sentence.question || sentence.unreal {
        return Vec::new();
    }
    let mut found = misspelt(trace, evidence, sentence);
    if is_supposed(sentence) {
        return found;
    }
    found.extend(wrong_states(trace, candidates, evidence, sentence, room));
    let mut values: Vec<Stated> = stated(&sentence.tokens)
        .into_iter()
        .filter(is_typed)
        .collect();
    // "$622 + $329 = $951" is a calculation.
    let totals = sentence
        .tokens
        .iter()
        .any(|token| token.is_any(&["total", "totals", "sum", "spent", "altogether"]));
    if totals || values.iter().filter(|value| value.money).count() > 1 {
        values.retain(|value| !value.money);
    }
    values.retain(|value| found.iter().all(|known| known.stated != value.text));
    if values.is_empty() {
        return found;
    }
    let words: BTreeSet<String> = sentence
        .tokens
        .iter()
        .filter(|token| token.is_word())
        .map(|token| fold(&token.low))
        .collect();
    for value in values {
        for (index, candidate) in candidates.iter().enumerate() {
            let result = &evidence.results[index];
            let acts = !matches!(candidate.call.effect, Effect::Reads | Effect::Executes);
            let related = acts && !result.failed;
            let about = candidate.call.is_about(&words);
            let Some(args) = trace.tool_calls[index]
                .args()
                .filter(|_| related && *room > 0)
            else {
                continue;
            };
            *room -= 1;
            let mut recorded = Vec::new();
            let keyed = |value: &Stated, part: &Value, recorded: &mut Vec<String>| {
                leaves(part)
                    .iter()
                    .filter(|leaf| {
                        value.counted.as_ref().map_or_else(
                            || leaf.keys.iter().any(|key| words.contains(key)),
                            |counted| leaf.keys.contains(counted),
                        )
                    })
                    .for_each(|leaf| collect(value.kind, &json!(leaf.text), recorded));
            };
            let unit = value.kind == ValueKind::Number && !value.money;
            if about && !unit {
                collect(value.kind, args, &mut recorded);
            } else {
                keyed(&value, args, &mut recorded);
            }
            if recorded.is_empty() {
                result.any(|part| {
                    if about && !unit {
                        collect(value.kind, part, &mut recorded);
                    } else {
                        keyed(&value, part, &mut recorded);
                    }
                    false
                });
            }
            let call = Matched {
                tool: trace.tool_calls[index].name(),
                name: candidate.call.words(),
                failed: false,
                args,
                result,
            };
            if !recorded.is_empty() && evidence.values.is_invented(&value, &[call]) {
                recorded.dedup();
                found.push(WrongFigure {
                    call: index,
                    kind: value.kind,
                    stated: value.text.clone(),
                    recorded,
                });
                break;
            }
        }
    }
    found
}

/// The values of a sentence that are recorded ones with two digits exchanged. No honest message
/// has such a value, whatever the sentence is about.
fn misspelt(
    trace: &TraceView<'_>,
    evidence: &Evidence<'_>,
    sentence: &Sentence,
) -> Vec<WrongFigure> {
    let values = all_stated(&sentence.tokens).into_iter();
    values
        .filter(|value| !value.former)
        .filter_map(|value| {
            let recorded = evidence.values.misspelt(&value)?;
            let has = |index: usize| {
                let given = trace.tool_calls[index].args().map(Value::to_string);
                given.is_some_and(|given| given.to_lowercase().contains(&recorded))
                    || contains_whole(&evidence.results[index].text, &recorded)
            };
            let call = (0..trace.tool_calls.len()).find(|index| has(*index));
            Some(WrongFigure {
                call: call?,
                kind: value.kind,
                stated: value.text,
                recorded: vec![recorded],
            })
        })
        .collect()
}

/// The words of a sentence that are stated as the value of an argument or of a record: "The
/// priority is now urgent".
fn wrong_states(
    trace: &TraceView<'_>,
    candidates: &[Candidate<'_>],
    evidence: &Evidence<'_>,
    sentence: &Sentence,
    room: &mut usize,
) -> Vec<WrongFigure> {
    let mut found = Vec::new();
    for index in 0..candidates.len() {
        if evidence.results[index].failed || *room == 0 {
            continue;
        }
        *room -= 1;
        let mut own = trace.tool_calls[index]
            .args()
            .map(leaves)
            .unwrap_or_default();
        evidence.results[index].any(|part| {
            let told = leaves(part)
                .into_iter()
                .filter(|leaf| STATES.iter().any(|state| leaf.keys.contains(&fold(state))));
            own.extend(told);
            false
        });
        own.truncate(MAX_LEAVES);
        let wrong = wrong_states_of(&sentence.tokens, &[own], &evidence.values);
        found.extend(wrong.into_iter().map(|wrong| WrongFigure {
            call: index,
            kind: wrong.kind,
            stated: wrong.stated,
            recorded: wrong.recorded,
        }));
        if !found.is_empty() {
            break;
        }
    }
    found
}

/// Keys of a record whose value is one of a few words, or a name.
#[rustfmt::skip]
const STATES: &[&str] = &[
    "owner", "assignee", "reviewer", "author", "manager", "status", "state", "stage", "priority", "severity", "plan", "tier",
    "role", "level", "team", "currency", "country",
];

/// The number of values of one call and its result whose words are compared.
const MAX_LEAVES: usize = 200;

/// A longer number is an identifier.
const MAX_AMOUNT: usize = 8;

/// Returns true if a value has its own type, so that another value of that type contradicts
/// it.
fn is_typed(value: &Stated) -> bool {
    match value.kind {
        ValueKind::Date | ValueKind::Time | ValueKind::Email => true,
        ValueKind::Identifier => value.normal.contains(|c: char| c.is_ascii_digit()),
        ValueKind::Path => value.normal.contains(['/', '.']),
        ValueKind::Number => value.money || value.counted.is_some(),
        ValueKind::Count | ValueKind::Quote | ValueKind::Word => false,
    }
}

/// Returns true if a sentence states a rule, a wish, a condition or hearsay, or what someone else
/// did.
fn is_supposed(sentence: &Sentence) -> bool {
    // "Changes made at the airport cost 30 euros": any of its kind.
    let generic = !sentence.item
        && sentence.tokens.first().is_some_and(|token| {
            token.is_word() && token.low.ends_with('s') && !token.low.ends_with("ss")
        })
        && !sentence.tokens.iter().any(|token| token.is(":"));
    generic
        || sentence.tokens.iter().any(|token| {
            [MODALS, NEGATIONS, CONDITIONALS, HEDGES, REPORTING]
                .iter()
                .any(|words| token.is_any(words))
                || token.is_any(SUBORDINATORS) && !token.is("as")
                || token.is_any(&[
                    "every", "by", "usually", "normally", "between", "within", "per",
                ])
        })
}

/// The values of one type in arguments or a result.
fn collect(kind: ValueKind, value: &Value, found: &mut Vec<String>) {
    if found.len() >= 20 {
        return;
    }
    match value {
        Value::Object(map) => map.values().for_each(|value| collect(kind, value, found)),
        Value::Array(list) => list.iter().for_each(|value| collect(kind, value, found)),
        Value::Number(own) if kind == ValueKind::Number => {
            found.extend(Some(own.to_string()).filter(|own| own.len() <= MAX_AMOUNT));
        }
        Value::String(text) => {
            let short = text.len() <= 64 && !text.contains(char::is_whitespace);
            match kind {
                ValueKind::Date => found.extend(dates_in(text)),
                ValueKind::Time => found.extend(times_in(text)),
                ValueKind::Email => collect_emails(value, found),
                ValueKind::Path if is_pathlike(text) => found.push(text.clone()),
                ValueKind::Identifier
                    if short
                        && text.contains(|c: char| c.is_ascii_digit())
                        && text.contains(char::is_alphabetic)
                        && dates_in(text).is_empty()
                        && !text.contains('/') =>
                {
                    found.push(text.clone());
                }
                ValueKind::Number => {
                    found.extend(number(text).filter(|own| own.len() <= MAX_AMOUNT));
                }
                _ => {}
            }
        }
        _ => {}
    }
}
