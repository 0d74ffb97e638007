//! Dates and times of day in several notations.

use crate::tokens::{Kind, Token, number, tokenize};
use crate::words::month;

/// `2024-05-24` and `--05-24` are the same day as far as one can say.
pub(super) fn same_day(left: &str, right: &str) -> bool {
    if left.starts_with("--") || right.starts_with("--") {
        left.len() >= 5 && right.len() >= 5 && left[left.len() - 5..] == right[right.len() - 5..]
    } else {
        left == right
    }
}

/// The dates in a string.
pub(super) fn dates_in(text: &str) -> Vec<String> {
    // Dates are short; a long text is not searched word by word for nothing.
    if !text.contains(|c: char| c.is_ascii_digit()) || text.len() > 20_000 {
        return Vec::new();
    }
    let tokens = tokenize(text);
    let mut dates = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match date_at(&tokens, at) {
            Some((date, length)) => {
                dates.push(date);
                at += length;
            }
            None => at += 1,
        }
    }
    dates
}

/// A date that starts at a token, and how many tokens it takes: `2024-05-24`, "May 24, 2024", "24
/// May 2024", "May 24th".
pub(super) fn date_at(tokens: &[Token], at: usize) -> Option<(String, usize)> {
    let token = tokens.get(at)?;
    if token.kind == Kind::Identifier {
        return Some((iso_date(&token.text)?, 1));
    }
    let day = |token: Option<&Token>| -> Option<u32> {
        let token = token.filter(|token| token.kind == Kind::Number)?;
        number(&token.text)?
            .parse()
            .ok()
            .filter(|day| (1..=31).contains(day))
    };
    let year = |token: Option<&Token>| -> Option<u32> {
        let token = token.filter(|token| token.kind == Kind::Number && token.text.len() == 4)?;
        token
            .text
            .parse()
            .ok()
            .filter(|year| (1000..=9999).contains(year))
    };
    let (month, day, mut length) = if let Some(month) = named_month(token) {
        (month, day(tokens.get(at + 1))?, 2)
    } else {
        let of = usize::from(tokens.get(at + 1).is_some_and(|next| next.is("of")));
        let month = tokens.get(at + 1 + of).and_then(named_month)?;
        (month, day(Some(token))?, 2 + of)
    };
    let comma = usize::from(tokens.get(at + length).is_some_and(|next| next.is(",")));
    let date = match year(tokens.get(at + length + comma)) {
        Some(year) => {
            length += comma + 1;
            format!("{year:04}-{month:02}-{day:02}")
        }
        None => format!("--{month:02}-{day:02}"),
    };
    Some((date, length))
}

/// "May" is a month with its capital only.
fn named_month(token: &Token) -> Option<u32> {
    (token.is_word() && token.is_capitalized()).then(|| month(&token.low))?
}

fn iso_date(text: &str) -> Option<String> {
    let head = text.get(..10)?;
    let rest = &text[10..];
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let (year, month, day) = (head.get(..4)?, head.get(5..7)?, head.get(8..)?);
    let dashed = head.as_bytes().get(4) == Some(&b'-') && head.as_bytes().get(7) == Some(&b'-');
    let whole = rest.is_empty() || rest.starts_with(['T', 't', ' ']);
    let valid = month
        .parse::<u32>()
        .is_ok_and(|month| (1..=12).contains(&month))
        && day.parse::<u32>().is_ok_and(|day| (1..=31).contains(&day));
    (dashed && whole && digits(year) && digits(month) && digits(day) && valid)
        .then(|| head.to_owned())
}

/// A time of day as hours and minutes on a clock of 24 hours: `14:30`, "2:30 pm", `4pm`.
pub(super) fn time_of(text: &str, next: Option<&Token>) -> Option<String> {
    let (digits, half) = match text.strip_suffix("am").or_else(|| text.strip_suffix("pm")) {
        Some(digits) => (digits, &text[digits.len()..]),
        None => (
            text,
            match next {
                Some(next) if next.is_any(&["am", "a.m"]) => "am",
                Some(next) if next.is_any(&["pm", "p.m"]) => "pm",
                _ => "",
            },
        ),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (
            hours,
            minutes.split(':').next().filter(|part| part.len() == 2)?,
        ),
        None if !half.is_empty() => (digits, "00"),
        None => return None,
    };
    let hours: u32 = hours.parse().ok().filter(|hours| *hours < 24)?;
    let minutes: u32 = minutes.parse().ok().filter(|minutes| *minutes < 60)?;
    let hours = match half {
        "pm" if hours < 12 => hours + 12,
        "am" if hours == 12 => 0,
        _ => hours,
    };
    Some(format!("{hours:02}:{minutes:02}"))
}

/// The times of day in a string.
pub(crate) fn times_in(text: &str) -> Vec<String> {
    if !text.contains(':') && !text.contains('m') || text.len() > 20_000 {
        return Vec::new();
    }
    let text = text.to_lowercase();
    // `2024-05-20T10:30:00Z`
    let text: String = text
        .char_indices()
        .map(|(place, c)| {
            let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            let between = digit(text[..place].chars().next_back());
            match c {
                't' | 'z' if between => ' ',
                c => c,
            }
        })
        .collect();
    let parts: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || ",;()[]\"'–—|".contains(c))
        .filter(|part| !part.is_empty())
        .collect();
    let mut found = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let half = match parts.get(place + 1).map(|next| next.trim_end_matches('.')) {
            Some(half @ ("am" | "pm" | "a.m" | "p.m")) => &half[..1],
            _ => "",
        };
        // `10:00-12:00`, `10:00+02:00`, `10:00:00.000`
        for own in part.split('-').take(2) {
            let own = own.split('+').next().unwrap_or(own).trim_end_matches('.');
            let own = match own.split_once('.') {
                Some((time, _)) if time.contains(':') => time,
                _ => own,
            };
            let whole = match half {
                "" => own.to_owned(),
                half => format!("{own}{half}m"),
            };
            found.extend(time_of(&whole, None));
        }
    }
    found
}
