//! The values that the words of a claim state.

use crate::agreement::{Name, letters};
use crate::dates::{date_at, time_of};
use crate::tokens::{Kind, Token, number};
use crate::values::{Stated, ValueKind};
use crate::verbs::fold;
use crate::words::{
    is_adverb, is_attribute, is_auxiliary, is_first_person, is_noun, is_pastlike, is_preposition,
    month,
};

/// The number of names in one claim that are looked up.
const MAX_NAMES: usize = 10;

/// The values in a claim that name one thing, in lowercase: identifiers, paths, e-mail addresses.
pub(crate) fn names(tokens: &[Token]) -> Vec<Name> {
    stated(tokens)
        .into_iter()
        .filter(|value| {
            matches!(
                value.kind,
                ValueKind::Identifier | ValueKind::Path | ValueKind::Email
            ) || value.kind == ValueKind::Number && value.normal.len() >= 5
        })
        .take(MAX_NAMES)
        .map(Name)
        .collect()
}

/// The quotations and proper names of a claim: "Depot Kassel".
pub(crate) fn marks(tokens: &[Token]) -> Vec<Name> {
    let is_proper = |place: usize| {
        let token = &tokens[place];
        token.is_word()
            && token.is_capitalized()
            && token.text.len() > 2
            && place > 0
            && !tokens[place - 1].is_mark()
            && month(&token.low).is_none()
            && !token.low.ends_with("day")
            && !is_first_person(token)
    };
    // A short path: `envs/stage`
    let is_folder = |place: usize| {
        let token = &tokens[place];
        token.is_word() && token.text.len() >= 6 && token.text.matches('/').count() == 1
    };
    let words = (0..tokens.len())
        .filter(|place| {
            tokens[*place].kind == Kind::Quote || is_proper(*place) || is_folder(*place)
        })
        .map(|place| Stated {
            kind: ValueKind::Quote,
            text: tokens[place].text.clone(),
            normal: letters(&tokens[place].text),
            role: None,
            counted: None,
            money: false,
            measured: false,
            rounded: false,
            percent: false,
            former: false,
            at: place,
        })
        .filter(|value| value.normal.len() > 2);
    let numbers = stated(tokens)
        .into_iter()
        .filter(|value| value.kind == ValueKind::Number && value.normal.len() > 1);
    words.chain(numbers).take(MAX_NAMES).map(Name).collect()
}

/// The values in the words of a claim, without former ones and percentages.
pub(crate) fn stated(tokens: &[Token]) -> Vec<Stated> {
    let mut all = all_stated(tokens);
    all.retain(|value| !value.former && !value.percent);
    all
}

/// All values in the words of a sentence.
pub(crate) fn all_stated(tokens: &[Token]) -> Vec<Stated> {
    let mut found: Vec<Stated> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some((date, length)) = date_at(tokens, at) {
            let text: Vec<&str> = tokens[at..at + length]
                .iter()
                .map(|token| token.text.as_str())
                .collect();
            found.push(Stated {
                kind: ValueKind::Date,
                text: text.join(" ").replace(" ,", ","),
                normal: date,
                role: None,
                counted: None,
                money: false,
                measured: false,
                rounded: false,
                percent: false,
                former: false,
                at,
            });
            at += length;
            // "October 12 to 14"
            let ranged = tokens
                .get(at)
                .is_some_and(|token| token.is_any(&["to", "-", "–", "and", "through", "until"]))
                && tokens
                    .get(at + 1)
                    .is_some_and(|token| token.kind == Kind::Number && token.text.len() <= 2);
            if ranged {
                at += 2;
            }
            continue;
        }
        // "12–14 October"
        let opens_range = tokens[at].kind == Kind::Number
            && tokens
                .get(at + 1)
                .is_some_and(|token| token.is_any(&["to", "-", "–", "and"]))
            && date_at(tokens, at + 2).is_some();
        if opens_range {
            at += 2;
            continue;
        }
        if let Some(value) = value_at(tokens, at, found.last()) {
            found.push(value);
        }
        at += 1;
    }
    found
}

fn value_at(tokens: &[Token], at: usize, previous: Option<&Stated>) -> Option<Stated> {
    let token = &tokens[at];
    let before = at.checked_sub(1).and_then(|place| tokens.get(place));
    let address = token.kind == Kind::Email;
    let former = before.is_some_and(|before| {
        before.is("from") && !address || before.is_any(&["was", "previously", "formerly", "using"])
    }) || before.is_some_and(|before| before.is("on"))
        && at
            .checked_sub(2)
            .is_some_and(|place| tokens[place].is("based"))
        || tokens[at + 1..]
            .iter()
            .take(2)
            .any(|next| next.is_mark() && next.is_any(&["→", "➜", "⇒"]));
    let (kind, normal) = match token.kind {
        Kind::Email => (ValueKind::Email, token.low.clone()),
        Kind::Quote => (ValueKind::Quote, letters(&token.text)),
        // A flag of a command: `-target=a.b`
        Kind::Path if token.low.starts_with('-') => return None,
        Kind::Path => (ValueKind::Path, without_line(&token.low).to_owned()),
        // "5 PM"
        Kind::Number if time_of(&token.low, tokens.get(at + 1)).is_some() => {
            (ValueKind::Time, time_of(&token.low, tokens.get(at + 1))?)
        }
        Kind::Number => (ValueKind::Number, number(&token.text)?),
        // "both alerts"
        Kind::Word
            if token.is("both")
                && tokens[at + 1..]
                    .iter()
                    .take(3)
                    .take_while(|next| is_noun(next) && !is_preposition(next))
                    .any(|next| next.low.len() > 3 && next.low.ends_with('s')) =>
        {
            (ValueKind::Number, "2".to_owned())
        }
        Kind::Word => (ValueKind::Number, number_word(&token.low)?.to_string()),
        Kind::Identifier if time_of(&token.low, tokens.get(at + 1)).is_some() => {
            (ValueKind::Time, time_of(&token.low, tokens.get(at + 1))?)
        }
        Kind::Identifier if measure(&token.text).is_some() => {
            (ValueKind::Number, measure(&token.text)?)
        }
        Kind::Identifier if is_identifier(&token.text) => {
            (ValueKind::Identifier, token.low.clone())
        }
        _ => return None,
    };
    if normal.is_empty() {
        return None;
    }
    let mut role = role_of(tokens, at);
    let continues = before.is_some_and(|before| before.is_any(&[",", "and", "&", "or"]));
    if role.is_none() && continues {
        role = previous
            .filter(|previous| previous.kind == kind)
            .and_then(|previous| previous.role.clone());
    }
    let money = token.text.starts_with(['$', '€', '£'])
        || token.text.ends_with(['$', '€', '£'])
        || tokens
            .get(at + 1)
            .is_some_and(|next| next.is_any(&["dollars", "usd", "euros", "eur"]));
    let next = tokens
        .get(at + 1)
        .filter(|_| kind == ValueKind::Number && !money);
    let counted = next
        .filter(|next| {
            (is_noun(next) && !is_preposition(next) || is_attribute(next))
                && !is_auxiliary(next)
                && !is_adverb(next)
                // "2 refunded, 1 failed"
                && !(is_pastlike(next) && tokens.get(at + 2).is_none_or(Token::is_mark))
        })
        .map(|next| {
            // "3 checked bags"
            let noun = tokens[at + 1..]
                .iter()
                .take(4)
                .take_while(|word| {
                    (is_noun(word) || is_attribute(word))
                        && !is_adverb(word)
                        && !is_preposition(word)
                        && !is_auxiliary(word)
                        && !word.is_any(&["and", "or"])
                })
                .last()
                .unwrap_or(next);
            fold(&noun.low)
        });
    let percent = kind == ValueKind::Number
        && (token.text.ends_with('%')
            || next.is_some_and(|next| next.is_any(&["%", "percent", "percentage"])));
    Some(Stated {
        kind,
        text: token.text.clone(),
        normal,
        role,
        counted,
        money,
        percent,
        former,
        at,
        measured: before.is_some_and(|before| before.is_any(&["to", "for", "at", "of"])),
        // "three points: a, b and c", "5 to 7 days", "within 24 hours"
        rounded: next_is_scale(tokens, at)
            || tokens[at + 1..].iter().take(3).any(|token| token.is(":"))
            || is_span(tokens, at)
            || !has_cents(&token.text)
                && tokens[at.saturating_sub(3)..at].iter().any(|token| {
                    token.is_any(&[
                        "about",
                        "around",
                        "approximately",
                        "roughly",
                        "nearly",
                        "almost",
                        "over",
                        "under",
                        "approx.",
                        "some",
                        "than",
                        "least",
                        "most",
                    ])
                }),
    })
}

/// A path without the number of a line: `src/a.ts:15`.
fn without_line(path: &str) -> &str {
    match path.split_once(':') {
        Some((file, line))
            if file.contains('.') && line.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            file
        }
        _ => path,
    }
}

/// Returns true if a number counts thousands or more, and so is rounded: "1.23 million".
fn next_is_scale(tokens: &[Token], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| {
        next.is_any(&["thousand", "million", "billion", "trillion", "mn", "bn"])
    })
}

/// Returns true if a figure is exact to the hundredth: "an invoice over €1,580.00".
fn has_cents(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    digits
        .rsplit_once('.')
        .is_some_and(|(_, cents)| cents.len() == 2 && cents.bytes().all(|c| c.is_ascii_digit()))
}

/// The number of a measure: `20` of `20m`, `26` of `26°C`, `17` of `17A`.
fn measure(text: &str) -> Option<String> {
    let unit = text.find(|c: char| c.is_alphabetic() || c == '°')?;
    let letters = text[unit..].chars();
    let plain = letters.clone().all(|c| c.is_alphabetic() || c == '°');
    let written = text[unit..].len() > 3
        && text[..unit].ends_with('-')
        && text[unit..].chars().all(|c| c.is_ascii_lowercase());
    (unit > 0 && plain && (letters.count() <= 3 || written))
        .then(|| number(text[..unit].trim_end_matches('-')))
        .flatten()
}

/// Returns true if a number is a usual time: "5 to 7 business days", "within 24 hours".
fn is_span(tokens: &[Token], at: usize) -> bool {
    let timed = tokens[at + 1..]
        .iter()
        .take(4)
        .any(|token| token.is_any(&["days", "hours", "weeks", "months", "minutes", "business"]));
    let ranged = tokens
        .get(at + 1)
        .is_some_and(|next| next.is_any(&["to", "-", "–"]))
        && tokens
            .get(at + 2)
            .is_some_and(|next| next.kind == Kind::Number)
        || at > 1
            && tokens[at - 1].is_any(&["to", "-", "–"])
            && tokens[at - 2].kind == Kind::Number;
    let within = at > 0
        && tokens[at - 1].is_any(&["within", "in"])
        && tokens[..at]
            .iter()
            .any(|token| token.is_any(&["will", "within"]));
    timed && (ranged || within)
}

/// A small number as a word, from two.
fn number_word(word: &str) -> Option<usize> {
    let words = [
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    ];
    Some(words.iter().position(|known| *known == word)? + 2)
}

/// The noun that a value belongs to: "order" of "order with ID 43".
fn role_of(tokens: &[Token], at: usize) -> Option<String> {
    let skipped = [
        "#", "number", "no", "id", "ids", "of", "to", "is", "the", "a", "an", ":", "=", "with",
        "(", "as", "at", "has", "been", "set", "new", "updated", "changed", "number:", "code",
        "for", "was", "were", "reached", "stood",
    ];
    let place = (0..at)
        .rev()
        .take(6)
        .find(|place| !tokens[*place].is_any(&skipped))?;
    let token = &tokens[place];
    let own = is_noun(token)
        && !is_preposition(token)
        && !is_pastlike(token)
        && !token.is_any(&["and", "or", "i", "we"]);
    own.then(|| fold(&token.low))
}

/// The name of a publication: `10.1000/182a`.
fn is_doi(text: &str) -> bool {
    let registrant = text
        .strip_prefix("10.")
        .and_then(|rest| rest.split_once('/'));
    registrant.is_some_and(|(own, rest)| {
        own.len() >= 4 && own.bytes().all(|c| c.is_ascii_digit()) && !rest.is_empty()
    })
}

/// A name for one thing: `PROJ-12`, `K4PZ8Q`, but not `10:30`, `24-hour` or `5kg`.
fn is_identifier(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let starts_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let lower = text
        .chars()
        .filter(|c| c.is_alphabetic())
        .all(char::is_lowercase);
    let measure = starts_with_digit && (letters <= 3 || lower && text.contains('-'));
    // `web:1.9.0` names an image, `10:30` a time.
    let image = text.split_once(':').is_some_and(|(name, version)| {
        name.contains(char::is_alphabetic)
            && version.split('.').count() >= 3
            && version
                .split('.')
                .all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    });
    let time = text.contains(':') && !image;
    let version = text.starts_with(['v', 'V'])
        && text[1..].starts_with(|c: char| c.is_ascii_digit())
        && text.matches('.').count() == 1;
    // A commit.
    let hash = text.len() >= 7 && letters > 0 && text.chars().all(|c| c.is_ascii_hexdigit());
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let address = letters == 0 && matches!(text.split('.').count(), 3 | 4);
    let phone = letters == 0 && digits >= 7 && text.contains('-') && !text.contains(':');
    phone
        || address
        || hash
        || text.len() >= 2
            && letters > 0
            && (!text.contains('/') || is_doi(text))
            && !measure
            && !time
            && !version
            && !text.starts_with(['$', '€', '£', '~'])
}
