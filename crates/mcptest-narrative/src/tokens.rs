//! Words, numbers, identifiers, quotes and marks of a line of prose.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters, perhaps with hyphens.
    Word,
    /// Digits: a count, an amount, an ordinal.
    Number,
    /// Something with a digit that is not a number: `PROJ-12`, `2024-05-24`, `K4PZ8Q`.
    Identifier,
    /// An e-mail address.
    Email,
    /// A URL, a path or a file name.
    Path,
    /// A quoted text; `text` is what is inside.
    Quote,
    /// A comma, a full stop, a bracket.
    Mark,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// As written.
    pub text: String,
    /// In lower case.
    pub low: String,
    pub kind: Kind,
}

impl Token {
    fn new(text: &str, kind: Kind) -> Self {
        Self {
            text: text.to_owned(),
            low: text.to_lowercase(),
            kind,
        }
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind != Kind::Quote && self.low == word
    }

    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        self.kind != Kind::Quote && words.contains(&self.low.as_str())
    }

    pub(crate) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    pub(crate) fn is_mark(&self) -> bool {
        self.kind == Kind::Mark
    }

    /// Returns true if it names a thing without being a noun.
    pub(crate) fn is_name(&self) -> bool {
        matches!(
            self.kind,
            Kind::Identifier | Kind::Number | Kind::Path | Kind::Email | Kind::Quote
        )
    }

    /// Returns true if it starts with a capital letter.
    pub(crate) fn is_capitalized(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }
}

const ABBREVIATIONS: [&str; 15] = [
    "e.g", "i.e", "dr", "mr", "mrs", "ms", "vs", "etc", "st", "inc", "approx", "a.m", "p.m", "ltd",
    "jr",
];

/// Cuts a line into tokens. Emphasis marks vanish, contractions come apart ("I've" is two tokens),
/// a full stop is a separate mark only where it ends a sentence.
pub(crate) fn tokenize(line: &str) -> Vec<Token> {
    let chars: Vec<char> = line
        .chars()
        .map(|c| match c {
            '’' | '‘' => '\'',
            '“' | '”' | '«' | '»' => '"',
            c => c,
        })
        .collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if c.is_whitespace() || c == '*' || c == '~' || c == '`' {
            at += 1;
        } else if let Some(end) = quote_end(&chars, at) {
            let inside: String = chars[at + 1..end].iter().filter(|c| **c != '*').collect();
            tokens.push(quoted(inside.trim()));
            at = end + 1;
        } else if is_mark(&chars, at) {
            tokens.push(Token::new(&c.to_string(), Kind::Mark));
            at += 1;
        } else {
            let start = at;
            while at < chars.len() && !ends_chunk(&chars, at) {
                at += 1;
            }
            // Whatever this is, it moves on.
            at = at.max(start + 1);
            // "2,499 €"
            if let [sign @ ('€' | '$' | '£')] = chars[start..at]
                && let Some(last) = tokens.last_mut()
                && last.kind == Kind::Number
            {
                last.text.push(sign);
                last.low.push(sign);
                continue;
            }
            chunk(&chars[start..at], &mut tokens);
            // An abbreviation keeps its full stop to itself.
            if let Some(last) = tokens.last_mut()
                && chars.get(at) == Some(&'.')
                && ABBREVIATIONS.contains(&last.low.as_str())
            {
                last.text.push('.');
                at += 1;
            }
        }
    }
    tokens
}

/// A quotation; one of a single address, path, number or identifier is that.
fn quoted(inside: &str) -> Token {
    let plain = inside.trim_end_matches(['.', ',']);
    let single = !plain.is_empty() && !plain.contains(char::is_whitespace);
    if single {
        let kind = if is_email(plain) {
            Some(Kind::Email)
        } else if is_path(plain) {
            Some(Kind::Path)
        } else if plain.len() <= 40 && number(plain).is_some() {
            Some(Kind::Number)
        } else if plain.len() <= 64
            && plain.contains(char::is_alphabetic)
            && plain.contains(|c: char| c.is_ascii_digit())
        {
            Some(Kind::Identifier)
        } else {
            None
        };
        if let Some(kind) = kind {
            return Token::new(plain.trim_start_matches('#'), kind);
        }
    }
    Token::new(inside, Kind::Quote)
}

/// A quotation is at most this many characters long.
const MAX_QUOTE: usize = 1_000;

fn quote_end(chars: &[char], at: usize) -> Option<usize> {
    let quote = chars[at];
    let boundary = |index: Option<usize>| {
        index
            .and_then(|index| chars.get(index))
            .is_none_or(|c| !c.is_alphanumeric())
    };
    let end = chars.len().min(at + MAX_QUOTE);
    match quote {
        '"' => (at + 1..end).find(|end| chars[*end] == '"'),
        '\'' if boundary(at.checked_sub(1)) => {
            (at + 2..end).find(|end| chars[*end] == '\'' && boundary(Some(end + 1)))
        }
        _ => None,
    }
}

fn is_mark(chars: &[char], at: usize) -> bool {
    match chars[at] {
        ',' | ';' | '!' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '—' | '–' | '…' | '"' | '|'
        | '→' | '➜' | '⇒' => true,
        '-' | ':' | '.' | '>' | '&' | '+' | '=' => chars
            .get(at + 1)
            .is_none_or(|next| next.is_whitespace() || "*_`)]\"'".contains(*next)),
        _ => false,
    }
}

fn ends_chunk(chars: &[char], at: usize) -> bool {
    let next = chars.get(at + 1);
    match chars[at] {
        c if c.is_whitespace() => true,
        // A thousands separator.
        ',' => {
            !(at > 0 && chars[at - 1].is_ascii_digit() && next.is_some_and(char::is_ascii_digit))
        }
        ';' | '!' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '—' | '–' | '…' | '"' | '*' | '`'
        | '|' | '→' | '➜' | '⇒' => true,
        ':' | '.' => next.is_none_or(|next| next.is_whitespace() || "*_`)]\"'".contains(*next)),
        _ => false,
    }
}

fn chunk(chars: &[char], tokens: &mut Vec<Token>) {
    let raw: String = chars.iter().collect();
    // Emphasis with underscores, stray apostrophes, emoji.
    let text = raw.trim_matches(|c: char| {
        c == '_' || c == '\'' || !(c.is_alphanumeric() || "$€£#/.@-%+".contains(c))
    });
    let text = text.trim_end_matches(['-', '.', '/']);
    if text.chars().all(|c| !c.is_alphanumeric()) {
        return;
    }
    let has_digit = text.chars().any(|c| c.is_ascii_digit());
    if is_email(text) {
        tokens.push(Token::new(text, Kind::Email));
    } else if is_path(text) {
        tokens.push(Token::new(text, Kind::Path));
    } else if let Some((from, to)) = range(text) {
        // "€500-1000" is two numbers.
        tokens.push(Token::new(from, Kind::Number));
        tokens.push(Token::new("-", Kind::Mark));
        tokens.push(Token::new(to, Kind::Number));
    } else if let Some((left, right)) = dimensions(text) {
        tokens.push(Token::new(left, Kind::Number));
        tokens.push(Token::new("×", Kind::Mark));
        tokens.push(Token::new(right, Kind::Number));
    } else if text.contains('_') && !has_digit && !text.contains('\'') {
        tokens.push(Token::new(text, Kind::Identifier));
    } else if has_digit {
        let kind = if number(text).is_some() {
            Kind::Number
        } else {
            Kind::Identifier
        };
        tokens.push(Token::new(text.trim_start_matches('#'), kind));
    } else if text.len() > 2 && text.starts_with('#') && !text[1..].starts_with('#') {
        // "#releases" names a channel.
        tokens.push(Token::new(&text[1..], Kind::Identifier));
    } else {
        word(text.trim_matches(|c: char| !c.is_alphanumeric()), tokens);
    }
}

/// The two numbers of a size: `1200×400`.
fn dimensions(text: &str) -> Option<(&str, &str)> {
    let (left, right) = text.split_once('×').or_else(|| text.split_once('x'))?;
    let plain = |part: &str| part.len() >= 2 && part.bytes().all(|c| c.is_ascii_digit());
    (plain(left) && plain(right)).then_some((left, right))
}

/// The two numbers of a range with a sign of money or a percentage: `$20-30`, `5-7%`.
fn range(text: &str) -> Option<(&str, &str)> {
    let (from, to) = text.split_once(['-', '–'])?;
    let marked = text.starts_with(['$', '€', '£']) || text.ends_with('%');
    (marked && number(from).is_some() && number(to).is_some()).then_some((from, to))
}

fn word(text: &str, tokens: &mut Vec<Token>) {
    let low = text.to_lowercase();
    let apart: &[&str] = match low.as_str() {
        "can't" | "cannot" | "cant" => &["can", "not"],
        "won't" => &["will", "not"],
        "shan't" => &["shall", "not"],
        "let's" => &["let", "us"],
        _ => &[],
    };
    if !apart.is_empty() {
        tokens.extend(apart.iter().map(|part| Token::new(part, Kind::Word)));
        return;
    }
    for (ending, means) in [
        ("n't", "not"),
        ("'ve", "have"),
        ("'ll", "will"),
        ("'re", "are"),
        ("'m", "am"),
        ("'d", "'d"),
        ("'s", "'s"),
    ] {
        if low.ends_with(ending)
            && low.is_ascii()
            && low.len() > ending.len()
            && text.len() == low.len()
        {
            tokens.push(Token::new(&text[..text.len() - ending.len()], Kind::Word));
            tokens.push(Token::new(means, Kind::Word));
            return;
        }
    }
    tokens.push(Token::new(text, Kind::Word));
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, domain)| {
        !name.is_empty() && !domain.contains('@') && domain.trim_end_matches('.').contains('.')
    })
}

fn is_path(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    if low.starts_with("http") && low.contains("//")
        || low.starts_with('/')
        || low.starts_with("./")
        || low.contains('\\')
    {
        return true;
    }
    // `www.acme.org/start`
    let host = low.split('/').next().unwrap_or_default();
    let is_host = host.rsplit_once('.').is_some_and(|(start, end)| {
        start.contains(char::is_alphabetic)
            && (2..=8).contains(&end.len())
            && end.chars().all(|c| c.is_ascii_lowercase())
    });
    if is_host && (low.contains('/') || low.starts_with("www.")) {
        return true;
    }
    if text.matches('/').count() >= 2 && !text.starts_with(|c: char| c.is_ascii_digit()) {
        return true;
    }
    text.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.chars().any(char::is_alphabetic)
            && (1..=5).contains(&ending.len())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
            && ending.chars().any(|c| c.is_ascii_alphabetic())
            && !ABBREVIATIONS.contains(&low.as_str())
    })
}

/// The numbers in a string, in their plain form: `1,204`, `20m`, both of `3/4`; but none of
/// `user2`, `2024-05-24` or `10:30`.
pub(crate) fn numbers_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !(c.is_alphanumeric() || "_.,:/-#@".contains(c))) {
        let word = word.trim_matches(['.', ',', ':', '-', '/', '#']);
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let unit = word.find(char::is_alphabetic).unwrap_or(word.len());
        if let Some(own) = number(word) {
            found.push(own);
        } else if let Some(own) = number(word[..unit].trim_end_matches('-'))
            && (word.len() - unit <= 4 || word[..unit].ends_with('-'))
        {
            found.push(own);
        } else if word.matches('/').count() == 1 {
            found.extend(word.split('/').filter_map(number));
        } else if word.contains(',') {
            found.extend(word.split(',').filter_map(number));
        }
    }
    found
}

/// The number of a measure: `4` of `4gb`, `17` of `17°C`.
pub(crate) fn measured(text: &str) -> Option<String> {
    let unit = text.find(|c: char| c.is_alphabetic() || c == '°')?;
    let letters = text[unit..].chars();
    let plain = letters.clone().all(|c| c.is_alphabetic() || c == '°');
    (unit > 0 && plain && letters.count() <= 3)
        .then(|| number(&text[..unit]))
        .flatten()
}

/// The plain decimal digits of a number as people write it: `$1,250.00` is `1250`, `3rd` is `3`.
pub(crate) fn number(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['$', '€', '£', '#', '+']);
    let text = text.trim_end_matches(['%', '€', '$', '£']);
    let text = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| text.strip_suffix(ending))
        .unwrap_or(text);
    let (negative, text) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let groups: Vec<&str> = whole.split(',').collect();
    let grouped = groups.len() == 1
        || (groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3));
    let digits = groups.concat();
    let all_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if !grouped || digits.is_empty() || !all_digits(&digits) || !all_digits(fraction) {
        return None;
    }
    let whole = digits.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = fraction.trim_end_matches('0');
    let sign = if negative { "-" } else { "" };
    Some(if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    })
}

/// A string in which escaped line breaks, tabs and quotation marks are spaces: `a\\nb`.
pub(crate) fn unescaped(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains("\\n") || text.contains("\\t") || text.contains("\\\"") {
        let text = text.replace("\\n", " \n").replace("\\t", "  ");
        std::borrow::Cow::Owned(text.replace("\\\"", " \""))
    } else {
        std::borrow::Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(line: &str) -> Vec<String> {
        tokenize(line).into_iter().map(|token| token.text).collect()
    }

    fn kind(line: &str) -> Kind {
        tokenize(line)[0].kind
    }

    #[test]
    fn contractions_come_apart() {
        assert_eq!(words_of("I've sent it."), ["I", "have", "sent", "it", "."]);
        assert_eq!(
            words_of("I didn’t, I can't, I won't"),
            [
                "I", "did", "not", ",", "I", "can", "not", ",", "I", "will", "not"
            ]
        );
        assert_eq!(words_of("the user's file"), ["the", "user", "'s", "file"]);
    }

    #[test]
    fn things_with_dots_and_commas_stay_whole() {
        assert_eq!(
            words_of("Sent $10,519.50 to a.b@x.org, see report.md."),
            [
                "Sent",
                "$10,519.50",
                "to",
                "a.b@x.org",
                ",",
                "see",
                "report.md",
                "."
            ]
        );
        assert_eq!(
            words_of("At 10:30, e.g. today"),
            ["At", "10:30", ",", "e.g.", "today"]
        );
        assert_eq!(
            words_of("**Done:** `x_y` — ok"),
            ["Done", ":", "x_y", "—", "ok"]
        );
    }

    #[test]
    fn kinds() {
        assert_eq!(kind("PROJ-12"), Kind::Identifier);
        assert_eq!(kind("#42"), Kind::Number);
        assert_eq!(kind("2024-05-24"), Kind::Identifier);
        assert_eq!(kind("a@b.co"), Kind::Email);
        assert_eq!(kind("https://x.org/a"), Kind::Path);
        assert_eq!(kind("notes.txt"), Kind::Path);
        assert_eq!(kind("\"Flaky CI\""), Kind::Quote);
        assert_eq!(kind("'Flaky CI' now"), Kind::Quote);
        assert_eq!(kind("one-way"), Kind::Word);
    }

    #[test]
    fn numbers_as_written_by_people() {
        for (text, digits) in [
            ("1,250.00", Some("1250")),
            ("$50", Some("50")),
            ("3rd", Some("3")),
            ("007", Some("7")),
            ("-1.50", Some("-1.5")),
            ("20%", Some("20")),
            ("0", Some("0")),
            ("1,2", None),
            ("10:30", None),
            ("A1", None),
            ("", None),
        ] {
            assert_eq!(number(text).as_deref(), digits, "{text}");
        }
    }
}
