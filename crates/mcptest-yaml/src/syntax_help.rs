//! Remedies for text that is not valid YAML.
//!
//! The scanner reports the rule that failed, often on a line after the mistake. The remedy names
//! the mistake, with its line, if the text has a usual one.

/// A remedy for a syntax error: `info` is the scanner's message, `at` its byte offset.
pub(crate) fn help(info: &str, text: &str, at: usize) -> Option<String> {
    let before = text.get(..at)?;
    let found = text.get(at..)?.chars().next();
    if info.contains("quoted scalar") && info.contains("trailing content") {
        return Some("put quotes around the whole value, or around nothing".to_owned());
    }
    if info.contains("quoted scalar") {
        return Some(
            "a quote that is opened must be closed, on the same line or indented".to_owned(),
        );
    }
    if info.contains("unexpected character") || info.contains("unknown anchor") {
        let mark = found.filter(|mark| "@`%*".contains(*mark))?;
        return Some(format!("quote a value that begins with `{mark}`"));
    }
    let may_be_open = ["flow", "illegal placement", "did not find"];
    if may_be_open.iter().any(|word| info.contains(word))
        && let Some((bracket, open)) = unclosed(before)
    {
        let (line, column) = place(text, open);
        return Some(format!(
            "the `{bracket}` at line {line}, column {column} is not closed"
        ));
    }
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let earlier = before[..start]
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .last();
    let indent = text[start..].len() - text[start..].trim_start_matches(' ').len();
    if info.contains("mapping values") {
        let key = entry(&text[start..at]);
        if key.contains(": ") {
            return Some("put quotes around a value that contains `: `".to_owned());
        }
        let (number, line) = earlier?;
        return missing_space(number + 1, line).or_else(|| {
            Some(format!(
                "line {} has a value already: indent this key like the keys beside it, by {} spaces",
                number + 1,
                line.len() - entry(line).len()
            ))
        });
    }
    if info.contains("did not find expected") {
        let (number, line) = earlier?;
        let wanted = line.len() - entry(line).len();
        if let Some(missing) = missing_space(number + 1, line) {
            return Some(missing);
        }
        return (wanted != indent).then(|| {
            format!(
                "this line has {indent} spaces before it: a key beside those of line {} has {wanted}",
                number + 1
            )
        });
    }
    None
}

/// A remedy for a line such as `-name: x` or `name:x`.
fn missing_space(number: usize, line: &str) -> Option<String> {
    let line = line.trim();
    let item = line.strip_prefix('-').unwrap_or_default();
    if item.starts_with(|first: char| first.is_alphabetic()) {
        let problem = format!("line {number} has no space after its dash");
        return Some(with_example(problem, &format!("- {item}")));
    }
    let entry = entry(line);
    let (key, value) = entry.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|one| one.is_alphanumeric() || one == '_');
    let joined = value.starts_with(|first: char| !first.is_whitespace() && first != '/');
    (is_key && joined).then(|| {
        let problem = format!("line {number} has no space after its colon");
        with_example(problem, &format!("{key}: {value}"))
    })
}

/// The longest line that a remedy repeats, in bytes.
const MAX_EXAMPLE: usize = 120;

/// The problem with the right line, if that is short and can be printed as it is.
fn with_example(problem: String, line: &str) -> String {
    let is_shown = |one: char| "\"'\\".contains(one) || one.escape_debug().len() == 1;
    if line.len() <= MAX_EXAMPLE && line.chars().all(is_shown) {
        format!("{problem}: write `{line}`")
    } else {
        problem
    }
}

/// A line without its indentation and the dashes of lists.
fn entry(line: &str) -> &str {
    let mut rest = line.trim_start_matches(' ');
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start_matches(' ');
    }
    rest
}

/// The last bracket that is not closed, with its byte offset. Quoted values and comments are
/// skipped.
fn unclosed(text: &str) -> Option<(char, usize)> {
    let mut open = Vec::new();
    let mut previous = ' ';
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let begins = previous.is_whitespace() || "[{,:".contains(previous);
        match letter {
            '"' | '\'' if begins => {
                let mut escaped = false;
                letters.find(|(_, inner)| {
                    let ends = *inner == letter && !escaped;
                    escaped = letter == '"' && *inner == '\\' && !escaped;
                    ends
                });
            }
            '#' if previous.is_whitespace() => {
                letters.find(|(_, inner)| *inner == '\n');
            }
            '[' | '{' if begins => open.push((letter, at)),
            ']' | '}' => {
                open.pop();
            }
            _ => {}
        }
        previous = if letter == '#' { ' ' } else { letter };
    }
    open.pop()
}

/// The line and the column of a byte, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use crate::{Document, DocumentLimits};

    fn message(text: &str) -> String {
        let parsed = Document::parse("y.yml", text.as_bytes(), &DocumentLimits::default());
        parsed.expect_err("must not parse").to_string()
    }

    #[test]
    fn a_remedy_repeats_no_line_that_is_long_or_cannot_be_printed() {
        let long = "x".repeat(1000);
        for name in ["a\u{1b}[31mb", "a\u{202e}b", &long] {
            for text in [
                format!("a:\n  -{name}: x\n   b: y\n"),
                format!("a:\n  - name:{name}\n    b: y\n"),
            ] {
                let message = message(&text);
                assert!(
                    message.contains("line 2 has no space after its"),
                    "{message}"
                );
                assert!(!message.contains("write `"), "{message}");
            }
        }
    }

    #[test]
    fn usual_mistakes_have_a_remedy() {
        let cases = [
            (
                "a: [b, c\nd: 1\n",
                "the `[` at line 1, column 4 is not closed",
            ),
            (
                "a: { b: [\"]\"] # }\nd: 1\n",
                "the `{` at line 1, column 4 is not closed",
            ),
            ("a: \"b\nc: d\n", "a quote that is opened must be closed"),
            (
                "a:\n  -name: x\n   b: y\n",
                "line 2 has no space after its dash: write `- name: x`",
            ),
            (
                "a:\n  - name:x\n    b: y\n",
                "line 2 has no space after its colon: write `name: x`",
            ),
            (
                "a:\n  - name: x: y\n",
                "put quotes around a value that contains `: `",
            ),
            (
                "a:\n  - b: x\n\n     c: y\n",
                "line 2 has a value already: indent this key",
            ),
            (
                "a:\n  - b: x\n   c: y\n",
                "this line has 3 spaces before it",
            ),
            ("a: @b\n", "quote a value that begins with `@`"),
            ("a: *b\n", "quote a value that begins with `*`"),
            ("a: \"b\" c\n", "put quotes around the whole value"),
            ("a:\tb\n", "write a space instead of the tab"),
        ];
        for (text, remedy) in cases {
            let message = message(text);
            assert!(message.contains(remedy), "{text:?}: {message}");
        }
    }

    #[test]
    fn a_tab_after_a_colon_is_reported_at_the_tab() {
        assert!(message("a: 1\nb:\tc\n").contains("y.yml:2:3"));
    }
}
