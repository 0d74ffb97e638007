//! Values that differ from recorded ones by a slip: a digit changed, two exchanged, one too many.

use crate::values::ValueKind;

/// Returns true if two numbers differ in one digit, in the order of two digits, or by one digit
/// more or less; the decimal point is where it was.
pub(crate) fn is_near_miss(stated: &str, recorded: &str) -> bool {
    if stated == recorded {
        return false;
    }
    let parts = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        (whole.len(), fraction.len())
    };
    let ((whole, fraction), (other, rest)) = (parts(stated), parts(recorded));
    let padded = |text: &str, missing: usize| {
        let mut text = text.to_owned();
        if missing > 0 {
            if !text.contains('.') {
                text.push('.');
            }
            text.extend(std::iter::repeat_n('0', missing));
        }
        text
    };
    let most = fraction.max(rest);
    let left = padded(stated, most - fraction);
    let right = padded(recorded, most - rest);
    whole == other && differs_by_one(&left, &right)
}

/// Returns true if two strings of one length differ in one place, or in two that are exchanged.
fn differs_by_one(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let places: Vec<usize> = (0..left.len())
        .filter(|place| left[*place] != right[*place])
        .take(3)
        .collect();
    match *places.as_slice() {
        [_] => true,
        [one, two] => left[one] == right[two] && left[two] == right[one],
        _ => false,
    }
}

/// Returns true if two days are of one month, or of one day in two months.
pub(crate) fn is_near_date(stated: &str, recorded: &str) -> bool {
    let tail = |date: &str| {
        date.len()
            .checked_sub(5)
            .map(|from| date[from..].to_owned())
    };
    let (Some(left), Some(right)) = (tail(stated), tail(recorded)) else {
        return false;
    };
    left[..2] == right[..2] || left[3..] == right[3..]
}

/// Returns true if an identifier, an address or a path is like a recorded one: of the same form,
/// or with one character changed.
pub(crate) fn is_near_name(kind: ValueKind, stated: &str, recorded: &str) -> bool {
    match kind {
        ValueKind::Identifier => {
            is_same_form(stated, recorded) || stated.len() >= 5 && is_one_edit(stated, recorded)
        }
        ValueKind::Email => {
            recorded.contains('@') && {
                let (name, domain) = stated.split_once('@').unwrap_or((stated, ""));
                let (own, other) = recorded.split_once('@').unwrap_or((recorded, ""));
                name == own || is_one_edit(name, own) || domain == other
            }
        }
        ValueKind::Path => {
            let name = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
            recorded.contains(['/', '.'])
                && (is_one_edit(stated, recorded)
                    || is_same_form(stated, recorded)
                    || is_similar(stated, recorded)
                    || name(stated) == name(recorded)
                        && name(stated).contains('.')
                        && recorded.contains('/')
                        && !stated.contains("://")
                    || is_one_edit(&name(stated), &name(recorded)) && name(stated).len() >= 6)
        }
        _ => false,
    }
}

/// Returns true if two addresses of one folder differ in the middle of a longer name only.
fn is_similar(left: &str, right: &str) -> bool {
    let split = |path: &str| -> Option<(String, String)> {
        let (folder, name) = path.rsplit_once('/')?;
        Some((folder.to_owned(), name.to_owned()))
    };
    let (Some((folder, name)), Some((other, own))) = (split(left), split(right)) else {
        return false;
    };
    let start = name
        .chars()
        .zip(own.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let end = name
        .chars()
        .rev()
        .zip(own.chars().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let longest = name.chars().count().max(own.chars().count());
    folder == other && longest >= 10 && (start + end) * 10 >= longest * 7
}

/// Returns true if two identifiers have the same letters and signs, and as many digits: `INV-071`
/// and `INV-017`.
fn is_same_form(left: &str, right: &str) -> bool {
    left.len() == right.len()
        && left.contains(|c: char| c.is_ascii_digit())
        && left.contains(|c: char| !c.is_ascii_digit())
        && left
            .chars()
            .zip(right.chars())
            .all(|(one, other)| one == other || one.is_ascii_digit() && other.is_ascii_digit())
}

/// Returns true if one character is added, left out, replaced or exchanged with the next.
fn is_one_edit(left: &str, right: &str) -> bool {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().abs_diff(right.len()) > 1 || left == right {
        return false;
    }
    let start = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let end = left[start..]
        .iter()
        .rev()
        .zip(right[start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (one, other) = (left.len() - start - end, right.len() - start - end);
    match (one, other) {
        (0, 1) | (1, 0) | (1, 1) => true,
        (2, 2) => left[start] == right[start + 1] && left[start + 1] == right[start],
        _ => false,
    }
}
