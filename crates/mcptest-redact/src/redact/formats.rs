//! Credentials that are recognised by their format, declared or not.

use super::MASK;

/// The allowed characters after a prefix.
#[derive(Clone, Copy)]
enum Alphabet {
    /// Letters and digits.
    Plain,
    /// Letters, digits, `_` and `-`.
    Url,
    /// Capital letters and digits.
    Capitals,
}

impl Alphabet {
    fn contains(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        }
    }
}

/// A token with its own prefix.
struct Prefixed {
    prefix: &'static str,
    alphabet: Alphabet,
    /// The minimum number of characters after the prefix.
    min: usize,
    /// True if a longer token is something else.
    exact: bool,
    /// True if one character must be a digit: names made of words have none.
    digit: bool,
}

const fn prefixed(prefix: &'static str, alphabet: Alphabet, min: usize) -> Prefixed {
    Prefixed {
        prefix,
        alphabet,
        min,
        exact: false,
        digit: true,
    }
}

const PREFIXED: [Prefixed; 22] = [
    prefixed("sk-", Alphabet::Url, 17),
    prefixed("sk_live_", Alphabet::Plain, 16),
    prefixed("sk_test_", Alphabet::Plain, 16),
    prefixed("rk_live_", Alphabet::Plain, 16),
    prefixed("ghp_", Alphabet::Plain, 30),
    prefixed("gho_", Alphabet::Plain, 30),
    prefixed("ghu_", Alphabet::Plain, 30),
    prefixed("ghs_", Alphabet::Plain, 30),
    prefixed("ghr_", Alphabet::Plain, 30),
    prefixed("github_pat_", Alphabet::Url, 22),
    prefixed("glpat-", Alphabet::Url, 20),
    prefixed("xoxa-", Alphabet::Url, 10),
    prefixed("xoxb-", Alphabet::Url, 10),
    prefixed("xoxo-", Alphabet::Url, 10),
    prefixed("xoxp-", Alphabet::Url, 10),
    prefixed("xoxr-", Alphabet::Url, 10),
    prefixed("xoxs-", Alphabet::Url, 10),
    prefixed("npm_", Alphabet::Plain, 36),
    prefixed("hf_", Alphabet::Plain, 30),
    Prefixed {
        prefix: "AKIA",
        alphabet: Alphabet::Capitals,
        min: 16,
        exact: true,
        digit: false,
    },
    Prefixed {
        prefix: "ASIA",
        alphabet: Alphabet::Capitals,
        min: 16,
        exact: true,
        digit: false,
    },
    Prefixed {
        prefix: "AIza",
        alphabet: Alphabet::Url,
        min: 35,
        exact: true,
        digit: false,
    },
];

/// The formats and their owners, for the documentation.
pub const CREDENTIAL_FORMATS: [(&str, &str); 13] = [
    (
        "`sk-…`, `sk-ant-…`",
        "OpenAI, Anthropic and compatible providers",
    ),
    ("`sk_live_…`, `sk_test_…`, `rk_live_…`", "Stripe"),
    (
        "`ghp_…`, `gho_…`, `ghu_…`, `ghs_…`, `ghr_…`, `github_pat_…`",
        "GitHub",
    ),
    ("`glpat-…`", "GitLab"),
    (
        "`xoxa-…`, `xoxb-…`, `xoxo-…`, `xoxp-…`, `xoxr-…`, `xoxs-…`",
        "Slack",
    ),
    ("`npm_…`", "npm"),
    ("`hf_…`", "Hugging Face"),
    ("`AKIA…`, `ASIA…`", "AWS access key ids"),
    ("`AIza…`", "Google API keys"),
    ("`eyJ….eyJ….…`", "JSON Web Tokens"),
    (
        "`Bearer …`, `Basic …`",
        "credentials of an `Authorization` header",
    ),
    ("`-----BEGIN … PRIVATE KEY-----`", "private keys"),
    ("`scheme://user:password@`", "addresses with a password"),
];

/// Masks everything that has one of the formats; `None` if nothing has.
pub(super) fn mask(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(skipped) = next_candidate(&bytes[at..]) {
        at += skipped;
        match found_at(text, at) {
            Some((start, end)) => {
                out.push_str(&text[done..start]);
                out.push_str(MASK);
                (done, at) = (end, end);
            }
            None => at += 1,
        }
    }
    if done == 0 {
        return None;
    }
    out.push_str(&text[done..]);
    Some(out)
}

/// For each byte, one bit for every format that has it first, and in the upper half one for every
/// format that has it second.
static STARTS: [u64; 256] = starts();

const fn starts() -> [u64; 256] {
    /// The formats that are not in the table.
    const OTHERS: [&[u8; 2]; 5] = [b"be", b"ba", b"ey", b"--", b":/"];
    let mut starts = [0; 256];
    let mut format = 0;
    while format < PREFIXED.len() + OTHERS.len() {
        let (first, second) = if format < PREFIXED.len() {
            let prefix = PREFIXED[format].prefix.as_bytes();
            (prefix[0], prefix[1])
        } else {
            let [first, second] = *OTHERS[format - PREFIXED.len()];
            // `Bearer` is written in any case. For the others this gives a few more candidates.
            starts[first.to_ascii_uppercase() as usize] |= 1 << format;
            starts[second.to_ascii_uppercase() as usize] |= 1 << (format + 32);
            (first, second)
        };
        starts[first as usize] |= 1 << format;
        starts[second as usize] |= 1 << (format + 32);
        format += 1;
    }
    starts
}

/// The distance to the next position where a secret may begin. Every line of a log and whole
/// reports pass through here, so blocks without a candidate take one branch.
fn next_candidate(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 8;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let mut last = 0;
    let mut clean = 0;
    for block in blocks {
        let mut found = 0;
        for byte in block {
            let this = STARTS[usize::from(*byte)];
            found |= last & (this >> 32);
            last = this;
        }
        if found != 0 {
            break;
        }
        clean += BLOCK;
    }
    // The last byte of a clean block may be the first of a candidate.
    let from = clean.saturating_sub(1);
    let is_candidate =
        |pair: &[u8]| STARTS[usize::from(pair[0])] & (STARTS[usize::from(pair[1])] >> 32) != 0;
    let found = bytes[from..].windows(2).position(is_candidate);
    found.map(|distance| from + distance)
}

/// The range of the secret that is recognised at this position.
fn found_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    match bytes[at] {
        b':' => password(bytes, at),
        b'-' => private_key(text, at),
        b'b' | b'B' if begins(bytes, at) => credentials(bytes, at),
        b'e' if begins(bytes, at) => web_token(bytes, at).map(|end| (at, end)),
        b's' | b'r' | b'g' | b'x' | b'n' | b'h' | b'A' if begins(bytes, at) => {
            let end = PREFIXED
                .iter()
                .find_map(|format| prefixed_at(bytes, at, format));
            end.map(|end| (at, end))
        }
        _ => None,
    }
}

/// Returns true if a word begins here. Before it there may be an escape: `\n`, `%20`.
fn begins(bytes: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| bytes[at]);
    let Some(last) = before(1) else { return true };
    if !last.is_ascii_alphanumeric() && last != b'_' {
        return true;
    }
    let escaped = b"nrtbf".contains(&last) && before(2) == Some(b'\\');
    let hex = |back| before(back).is_some_and(|byte: u8| byte.is_ascii_hexdigit());
    let percent = hex(1) && hex(2) && before(3) == Some(b'%');
    let unicode = (1..=4).all(hex) && before(5) == Some(b'u') && before(6) == Some(b'\\');
    escaped || percent || unicode
}

fn run_of(bytes: &[u8], at: usize, has: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().take_while(|byte| has(**byte)).count()
}

fn prefixed_at(bytes: &[u8], at: usize, format: &Prefixed) -> Option<usize> {
    let rest = bytes[at..].strip_prefix(format.prefix.as_bytes())?;
    let length = run_of(rest, 0, |byte| format.alphabet.contains(byte));
    let token = &rest[..length];
    let long_enough = length >= format.min && !(format.exact && length > format.min);
    let fits = long_enough && (!format.digit || token.iter().any(u8::is_ascii_digit));
    // `AKIA…` in the middle of a longer word is base64 of something else.
    let ends = !format.exact || !rest.get(length).is_some_and(u8::is_ascii_alphanumeric);
    (fits && ends).then(|| at + format.prefix.len() + length)
}

fn web_token(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    for part in 0..3 {
        let starts_as_json = bytes[end..].starts_with(b"eyJ");
        let length = run_of(bytes, end, |byte| Alphabet::Url.contains(byte));
        if (part < 2 && (!starts_as_json || length < 8)) || length < 4 {
            return None;
        }
        end += length;
        if part < 2 {
            (bytes.get(end) == Some(&b'.')).then_some(())?;
            end += 1;
        }
    }
    Some(end)
}

/// `Bearer TOKEN` and `Basic BASE64`.
fn credentials(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let scheme = |name: &str| {
        bytes
            .get(at..at + name.len())
            .is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    let (length, is_bearer) = if scheme("bearer") {
        (6, true)
    } else if scheme("basic") {
        (5, false)
    } else {
        return None;
    };
    let mut start = at + length;
    let spaces = run_of(bytes, start, |byte| byte == b' ');
    let encoded = bytes[start..].starts_with(b"%20");
    start += match (spaces, encoded) {
        (0, true) => 3,
        (0, false) => return None,
        (spaces, _) => spaces,
    };
    let has = |byte: u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte);
    let token = run_of(bytes, start, has);
    let token = &bytes[start..start + token];
    let secret = if is_bearer {
        token.len() >= 8 && looks_random(token)
    } else {
        super::encoded::decode_base64(token).is_some_and(|decoded| decoded.contains(&b':'))
    };
    secret.then_some((start, start + token.len()))
}

/// Returns true if a token is not a word of a sentence: it has digits, or capitals inside.
fn looks_random(token: &[u8]) -> bool {
    let capitals_inside =
        token[1..].iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
    token.iter().any(u8::is_ascii_digit) || capitals_inside
}

fn private_key(text: &str, at: usize) -> Option<(usize, usize)> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "PRIVATE KEY-----";
    let head = text[at..].strip_prefix(BEGIN)?;
    let kind = run_of(head.as_bytes(), 0, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    if !head[..kind].ends_with("PRIVATE KEY") || !head[kind..].starts_with("-----") {
        return None;
    }
    let body = at + BEGIN.len() + kind + 5;
    // A truncated key extends to the end of the text.
    let end = text[body..]
        .find(END)
        .map_or(text.len(), |found| body + found + END.len());
    Some((at, end))
}

/// The part between `://` and `@`, if it contains a password.
fn password(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if !bytes[at..].starts_with(b"://") {
        return None;
    }
    let start = at + 3;
    let length = run_of(bytes, start, |byte| {
        !byte.is_ascii_whitespace() && !b"/?#@\"'<>\\".contains(&byte) && byte.is_ascii()
    });
    let (user, end) = (&bytes[start..start + length], start + length);
    let colon = user.iter().position(|byte| *byte == b':')?;
    (colon + 1 < user.len() && bytes.get(end) == Some(&b'@')).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No position is skipped where a format matches.
        #[test]
        fn every_secret_begins_at_a_candidate(
            text in "(sk-|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abopr]-|npm_|hf_|A[KS]IA|AIza|eyJa\\.|[bB][eEaA]arer |basic |-----BEGIN |PRIVATE KEY-----|://u:p@|[A-Za-z0-9]{8,40}|[ :\\-]){0,8}"
        ) {
            let shown = (0..text.len()).find(|at| found_at(&text, *at).is_some());
            prop_assert_eq!(mask(&text).is_some(), shown.is_some());
            if let Some(at) = shown {
                prop_assert_eq!(next_candidate(&text.as_bytes()[at..]), Some(0));
            }
        }

        /// A candidate is found wherever it is in a block or between two.
        #[test]
        fn candidates_are_found_at_every_position(before in 0_usize..40, after in 0_usize..20) {
            let (before, after) = ("q".repeat(before), "q".repeat(after));
            for start in ["sk", "rk", "gh", "gl", "xo", "np", "hf", "AK", "AI", "eyJ", "Ba", "--", ":/"] {
                let text = format!("{before}{start}{after}");
                prop_assert_eq!(next_candidate(text.as_bytes()), Some(before.len()));
            }
            let text = format!("{before}{after}");
            prop_assert_eq!(next_candidate(text.as_bytes()), None);
        }
    }
}
