//! References such as `${name}` in strings: parsing and expansion.

use serde_json::Value;

/// `${name}` or `${name:-default}`.
pub(crate) struct Reference<'a> {
    pub name: &'a str,
    pub default: Option<&'a str>,
}

/// A piece of a string: literal text, or a reference.
pub(crate) enum Piece<'a> {
    Text(String),
    Reference(Reference<'a>),
}

/// Replaces references by their values. A string that is just one reference keeps the value's type.
pub(crate) fn expand(
    text: &str,
    resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>,
) -> Value {
    if let Some((reference, "")) = text.strip_prefix("${").and_then(reference) {
        return resolve(&reference).unwrap_or(Value::Null);
    }
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(&text),
            Piece::Reference(reference) => match resolve(&reference) {
                Some(Value::String(value)) => out.push_str(&value),
                Some(value) => out.push_str(&value.to_string()),
                None => {}
            },
        }
    }
    out.into()
}

/// Splits a string into pieces, with escapes resolved.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        // Before a brace, two dollar signs stand for one: an odd number of them ends in a
        // reference.
        let before = rest[..at].trim_end_matches('$');
        let dollars = at - before.len() + 1;
        out.push_str(before);
        out.extend(std::iter::repeat_n('$', dollars / 2));
        if dollars.is_multiple_of(2) {
            out.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        match reference(&rest[at + 2..]) {
            Some((reference, after)) => {
                pieces.push(Piece::Text(std::mem::take(&mut out)));
                pieces.push(Piece::Reference(reference));
                rest = after;
            }
            // Not a reference: ordinary text, such as a regular expression.
            None => {
                out.push_str("${");
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    pieces.push(Piece::Text(out));
    pieces
}

/// Parses `name}` or `name:-default}` at the start of a string; also returns the rest.
pub(crate) fn reference(text: &str) -> Option<(Reference<'_>, &str)> {
    let (inside, after) = text.split_once('}')?;
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    (starts && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
        .then_some((Reference { name, default }, after))
}
