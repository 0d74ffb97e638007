//! Words that a claim states as the value of an argument: "the priority to high", "bucket
//! acme-logs".
//!
//! A word is compared only where the claim itself shows which argument it is about: it names the
//! argument's key, or it has the form of the only argument of that form. It disagrees only if the
//! whole run does not have it.

use crate::agreement::letters;
use crate::provenance::RunValues;
use crate::recorded::Leaf;
use crate::tokens::{Kind, Token};
use crate::values::{Mismatch, ValueKind};
use crate::verbs::fold;
use crate::words::{
    is_adverb, is_article, is_auxiliary, is_conjunction, is_determiner, is_first_person,
    is_pastlike, is_preposition, month,
};

/// Keys that say nothing about their value.
const VAGUE: [&str; 15] = [
    "mode",
    "kind",
    "format",
    "method",
    "category",
    "language",
    "id",
    "text",
    "body",
    "content",
    "message",
    "type",
    "description",
    "comment",
    "note",
];

/// The auxiliaries of a passive about something done.
const PERFECT: &[&str] = &["has", "have", "been", "was", "were"];

/// Keys of the one whom something is assigned to.
const ASSIGNEES: [&str; 6] = [
    "assignee",
    "owner",
    "reviewer",
    "agent",
    "assigned",
    "responsible",
];

/// Keys of the one whom something is arranged with.
const MET: [&str; 6] = [
    "interviewer",
    "host",
    "doctor",
    "teacher",
    "trainer",
    "stylist",
];

/// Keys of the one whom something goes to.
const RECIPIENTS: [&str; 5] = ["to", "recipient", "payee", "beneficiary", "receiver"];

/// Words of a company's name for what kind of company it is.
const LEGAL_FORMS: [&str; 14] = [
    "gmbh", "inc", "ltd", "llc", "ag", "plc", "corp", "co", "kg", "sa", "bv", "srl", "ab", "oy",
];

/// The words of a claim that disagree with the arguments that they are about.
pub(crate) fn wrong_words(
    tokens: &[Token],
    leaves: &[Vec<Leaf>],
    run: &RunValues<'_>,
) -> Vec<Mismatch> {
    let readable: Vec<&Leaf> = leaves
        .iter()
        .flatten()
        .filter(|leaf| is_readable(leaf))
        .collect();
    if readable.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Mismatch> = Vec::new();
    for at in 0..tokens.len() {
        let stated = keyed(tokens, at, &readable)
            .or_else(|| assigned(tokens, at, &readable))
            .or_else(|| proper(tokens, at));
        let Some((key, words)) = stated else {
            continue;
        };
        // "to Acme Ltd", where a call was given to whom
        let to_whom = key.is_none()
            && tokens[at - 1].is("to")
            && readable.iter().any(|leaf| {
                RECIPIENTS.iter().any(|key| leaf.keys.contains(&fold(key)))
                    && is_proper_name(&leaf.text)
            });
        let own: Vec<&&Leaf> = readable
            .iter()
            .filter(|leaf| match &key {
                Some(key) => leaf.keys.contains(key),
                None if to_whom => RECIPIENTS.iter().any(|key| leaf.keys.contains(&fold(key))),
                None => is_proper_name(&leaf.text),
            })
            .collect();
        let is_said = |leaf: &Leaf| mentions(tokens, &leaf.text);
        // Of one form there may be several: then nothing shows which one is meant.
        if own.is_empty() || key.is_none() && (own.len() > 1 || is_said(own[0])) {
            continue;
        }
        let stated = words.join(" ");
        let agrees = |leaf: &Leaf| {
            let recorded = letters(&leaf.text);
            words.iter().any(|word| {
                let word = letters(word);
                recorded.contains(&word) || word.contains(&recorded)
            })
        };
        // "the random channel": the value of a key that the claim names, where every call has
        // another one.
        let exact = key.is_some() && is_beside(tokens, at, &words);
        let known = leaves.iter().flatten().any(agrees)
            || !exact
                && words
                    .iter()
                    .any(|word| run.has_words(word) || run.has_words(&fold(word)));
        let mismatch = Mismatch {
            kind: ValueKind::Word,
            stated,
            recorded: own.iter().map(|leaf| leaf.text.clone()).collect(),
        };
        if !known && !found.contains(&mismatch) {
            found.push(mismatch);
        }
    }
    found
}

/// Returns true if a name is right beside the word for its key, and not what it was before.
fn is_beside(tokens: &[Token], at: usize, words: &[String]) -> bool {
    let [word] = words else {
        return false;
    };
    let place = match (at.checked_sub(1), tokens.get(at + 1)) {
        (Some(before), _) if tokens[before].text == *word => before,
        (_, Some(next)) if next.text == *word => at + 1,
        _ => return false,
    };
    let from = tokens[place.saturating_sub(3)..place.min(at)]
        .iter()
        .any(|token| token.is_any(&["from", "of", "in", "old", "other"]));
    let named = tokens[place].kind == Kind::Quote
        || is_slug(&tokens[place].low)
        || tokens[place].low.contains(['-', '_', '#']);
    named && !from
}

/// The words of a sentence that are stated as the state of an argument ("the priority is now
/// urgent", "Priority: urgent"), and disagree with it.
pub(crate) fn wrong_states_of(
    tokens: &[Token],
    leaves: &[Vec<Leaf>],
    run: &RunValues<'_>,
) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let token = &tokens[at];
        let Some(from) = state_after(tokens, at).filter(|_| token.is_word()) else {
            continue;
        };
        let key = fold(&token.low);
        let own: Vec<&Leaf> = leaves
            .iter()
            .flatten()
            .filter(|leaf| {
                is_readable(leaf) && leaf.keys.contains(&key) && !leaf.text.trim().contains(' ')
            })
            .collect();
        let words = value_words(tokens, from);
        let [word] = words.as_slice() else {
            continue;
        };
        let agrees = |leaf: &&Leaf| {
            let (recorded, word) = (letters(&leaf.text), letters(word));
            recorded.contains(&word) || word.contains(&recorded)
        };
        if own.is_empty()
            || own.iter().any(agrees)
            || run.has_words(word)
            || run.has_words(&fold(word))
        {
            continue;
        }
        found.push(Mismatch {
            kind: ValueKind::Word,
            stated: word.clone(),
            recorded: own.iter().map(|leaf| leaf.text.clone()).collect(),
        });
    }
    found
}

/// The place of the value after a key: "is now VALUE", ": VALUE".
fn state_after(tokens: &[Token], at: usize) -> Option<usize> {
    let next = tokens.get(at + 1)?;
    if next.is_mark() && next.is_any(&[":", "→", "➜", "⇒"]) {
        return Some(at + 2);
    }
    let after = tokens.get(at + 2)?;
    (next.is_any(&["is", "are"]) && after.is("now")).then_some(at + 3)
}

/// Returns true if a value is a word or a few: no number, path, address or date.
fn is_readable(leaf: &Leaf) -> bool {
    let text = leaf.text.trim();
    !leaf.is_number
        && (2..=40).contains(&text.len())
        && text.split_whitespace().count() <= 4
        && !text.contains(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || " -_'#".contains(c) || c == '/' && is_slug(text))
        && !leaf
            .keys
            .iter()
            .any(|key| VAGUE.iter().any(|known| fold(known) == *key))
}

/// Returns true if a name has parts, like that of a branch: `feature/login`, but not a path.
fn is_slug(text: &str) -> bool {
    text.split('/').count() == 2
        && text.split('/').all(|part| !part.is_empty())
        && !text.contains(['.', ':', '\\', '~'])
        && !text.contains(char::is_whitespace)
}

fn is_proper_name(text: &str) -> bool {
    text.split_whitespace()
        .all(|word| word.starts_with(char::is_uppercase))
        && text.split_whitespace().count() >= 2
}

fn mentions(tokens: &[Token], value: &str) -> bool {
    let said: String = tokens.iter().map(|token| letters(&token.text)).collect();
    said.contains(&letters(value))
}

/// The key that the word at a place names, and the words that are stated as its value: "to high"
/// after "the priority", the name right after "bucket".
fn keyed(tokens: &[Token], at: usize, readable: &[&Leaf]) -> Option<(Option<String>, Vec<String>)> {
    let token = &tokens[at];
    if !token.is_word() {
        return None;
    }
    let key = fold(&token.low);
    if !readable.iter().any(|leaf| leaf.keys.contains(&key)) {
        return None;
    }
    // "the staging-eu namespace"
    if let Some(before) = at.checked_sub(1).map(|place| &tokens[place])
        && (before.kind == Kind::Quote
            || before.is_word() && is_slug(&before.low)
            || before.is_word() && (before.low.contains('-') || is_name(tokens, at - 1)))
    {
        return Some((Some(key), vec![before.text.clone()]));
    }
    let next = tokens.get(at + 1)?;
    let slug = next.is_word() && is_slug(&next.low);
    if next.kind == Kind::Quote || slug || next.is_word() && next.low.contains('-') {
        return Some((Some(key), vec![next.text.clone()]));
    }
    // "the priority of HD-1 to high", "set priority: high"
    let to = (at + 1..tokens.len().min(at + 7)).find(|place| {
        let token = &tokens[*place];
        token.is("to") || token.is("as") || token.is(":") && *place == at + 1
    })?;
    let between = &tokens[at + 1..to];
    // "the stage has been changed to customer"
    let passive = between.last().is_some_and(is_pastlike);
    if between.iter().any(|token| {
        token.is_mark()
            || is_conjunction(token)
            || is_first_person(token)
            || is_auxiliary(token) && !(passive && token.is_any(PERFECT))
            || token.is("able")
    }) {
        return None;
    }
    let words = value_words(tokens, to + 1);
    (!words.is_empty()).then_some((Some(key), words))
}

/// The words of a value from a place: none if they are not a bare value.
fn value_words(tokens: &[Token], from: usize) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens.iter().skip(from).take(4) {
        if token.kind == Kind::Quote {
            words.push(token.text.clone());
            break;
        }
        if token.is_mark() || is_preposition(token) || is_conjunction(token) {
            break;
        }
        let bare = token.is_word()
            && !is_determiner(token)
            && !is_article(token)
            && !is_auxiliary(token)
            && !is_adverb(token)
            && !token.is_any(&["it", "them", "you", "me", "now", "be", "well"])
            // "as requested"
            && !(is_pastlike(token) && tokens[from - 1].is("as"));
        if !bare {
            return Vec::new();
        }
        words.push(token.text.clone());
    }
    if words.len() > 2 { Vec::new() } else { words }
}

fn is_name(tokens: &[Token], at: usize) -> bool {
    let token = &tokens[at];
    token.is_word()
        && token.is_capitalized()
        && token.text.len() > 2
        && at > 0
        && !tokens[at - 1].is_mark()
        && month(&token.low).is_none()
        && !token.low.ends_with("day")
        && !is_pastlike(token)
        && !is_first_person(token)
}

/// The one whom something was assigned to or arranged with: "assigned the ticket to Dana", "the
/// interview with Hugo".
fn assigned(
    tokens: &[Token],
    at: usize,
    readable: &[&Leaf],
) -> Option<(Option<String>, Vec<String>)> {
    let before = at.checked_sub(1)?;
    let meets = tokens[before].is("with");
    if !(meets || tokens[before].is("to")) || !is_name(tokens, at) {
        return None;
    }
    let assigns = meets
        || tokens[before.saturating_sub(7)..before]
            .iter()
            .any(|token| token.is_any(&["assigned", "reassigned"]));
    let keys = if meets { MET } else { ASSIGNEES };
    let key = keys
        .iter()
        .map(|key| fold(key))
        .find(|key| readable.iter().any(|leaf| leaf.keys.contains(key)))?;
    assigns.then(|| (Some(key), vec![tokens[at].text.clone()]))
}

/// A proper name of two or more words after a preposition: "for Liam Novak".
fn proper(tokens: &[Token], at: usize) -> Option<(Option<String>, Vec<String>)> {
    let before = &tokens[at.checked_sub(1)?];
    if !before.is_any(&["to", "for", "with", "in", "as"]) || !is_name(tokens, at) {
        return None;
    }
    let is_form = |place: usize| {
        tokens[place].is_word() && LEGAL_FORMS.contains(&letters(&tokens[place].text).as_str())
    };
    let words: Vec<String> = (at..tokens.len().min(at + 3))
        .take_while(|place| is_name(tokens, *place) || *place > at && is_form(*place))
        .map(|place| tokens[place].text.clone())
        .collect();
    let telling = |word: &String| !LEGAL_FORMS.contains(&letters(word).as_str());
    (words.len() >= 2).then(|| (None, words.into_iter().filter(telling).collect()))
}
