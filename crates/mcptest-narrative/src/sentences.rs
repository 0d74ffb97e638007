//! From a closing message to sentences: Markdown off, code left out, lists kept apart from their
//! lead-in.

use crate::tokens::{Kind, Token, tokenize};
use mcptest_json::text::{one_line, shorten};

/// One sentence, list item, heading or table cell.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub tokens: Vec<Token>,
    /// Ends with a question mark.
    pub question: bool,
    /// A Markdown heading.
    pub heading: bool,
    /// Ends with a colon.
    pub label: bool,
    /// An item under a lead-in about what is planned, possible or undone.
    pub unreal: bool,
    /// A list item or a table row.
    pub item: bool,
    /// Under a lead-in about what was done ("What I did:"), or with a check mark.
    pub done: bool,
    /// An item under a lead-in.
    pub led: bool,
    /// With a check mark of its own.
    pub checked: bool,
    /// Under a lead-in about what the agent did: "What I did:", "Done:".
    pub mine: bool,
    /// A table row; its cells are apart by `|`.
    pub row: bool,
    /// The list or table that it is an item of.
    pub list: Option<usize>,
}

impl Sentence {
    /// The sentence as one line for people.
    pub(crate) fn quote(&self) -> String {
        let mut text = String::new();
        for token in &self.tokens {
            let closes = token.is_mark() && token.is_any(&[",", ".", "!", ":", ";", ")", "…"])
                || token.is("'s");
            if !text.is_empty() && !closes && !text.ends_with('(') {
                text.push(' ');
            }
            if token.kind == Kind::Quote {
                text.push_str(&format!("\"{}\"", token.text));
            } else {
                text.push_str(&token.text);
            }
        }
        one_line(&shorten(&text, 200))
    }
}

/// Words in a lead-in after which items state what was done.
#[rustfmt::skip]
const DONE: &[&str] = &[
    "did", "done", "completed", "accomplished", "performed", "taken", "made", "finished", "executed", "changes",
    "actions",
];

/// The words among them that can mean nothing else.
const FINISHED: &[&str] = &[
    "done",
    "completed",
    "accomplished",
    "performed",
    "taken",
    "executed",
];

/// Words in a lead-in to things that may be done or not.
const NEUTRAL: &[&str] = &["steps", "plan", "new", "notes", "features", "release"];

/// Words in a lead-in to words that are not the agent's report.
const DRAFTS: &[&str] = &["draft", "template", "sample", "letter", "wording"];

/// Heads of a column about what was done.
const ACTION_COLUMNS: &[&str] = &[
    "action",
    "actions",
    "change",
    "changes",
    "operation",
    "outcome",
    "done",
];

/// Signs of something done.
const CHECKS: &[char] = &['✅', '✔', '☑', '✓', '🗑', '🎉'];

/// Words in a lead-in ("I was unable to do the following:") after which items are not claims.
#[rustfmt::skip]
const UNREAL: &[&str] = &[
    "can", "could", "will", "would", "should", "may", "might", "must", "shall", "if", "once", "not", "unable",
    "failed", "pending", "planned", "plan", "next", "todo", "to-do", "option", "options", "example", "examples",
    "remaining", "need", "needs", "steps", "please", "upcoming", "suggested", "recommended", "going", "policy",
    "proposed", "potential", "possible", "release", "notes", "version", "changelog", "new", "news", "history",
    "features", "feature", "highlights", "timeline", "law", "act", "instructions", "example", "how",
    "pros", "cons", "benefits", "advantages", "disadvantages", "drawbacks", "risks", "impact", "effects",
];

/// Splits a string into sentences.
pub(crate) fn sentences(text: &str) -> Vec<Sentence> {
    let mut all = Vec::new();
    let mut unreal = false;
    let mut done = false;
    let mut in_table = false;
    let mut led = false;
    let mut mine = false;
    // Inside words that the agent offers: "Here is a draft you can send:".
    let mut quoted = false;
    let mut list = 0;
    for line in lines(text) {
        if !line.item && !line.table {
            list += 1;
            unreal = false;
            done = false;
            led = false;
            mine = false;
        }
        quoted &= !line.heading && !line.rule;
        // The head of a table: "| File | Action |".
        let head = line.table && !in_table;
        if head {
            done |= tokenize(&line.text)
                .iter()
                .any(|token| token.is_any(ACTION_COLUMNS));
        }
        in_table = line.table;
        let parts = if line.table {
            vec![row(tokenize(&line.text))]
        } else {
            split(tokenize(&line.text))
        };
        for tokens in parts {
            let last = tokens.iter().rev().find(|token| token.is_mark());
            let ends_with = |mark: &str| tokens.last().is_some_and(|token| token.is(mark));
            all.push(Sentence {
                question: last.is_some_and(|token| token.is("?")) && ends_with("?"),
                heading: line.heading || head,
                // In "Restart the node: ✅" the mark is what follows.
                label: ends_with(":") && !line.checked,
                unreal: (line.item || line.table) && unreal && !line.checked || quoted,
                item: line.item || line.table,
                done: line.checked || (line.item || line.table) && done,
                led: (line.item || line.table) && led,
                checked: line.checked,
                mine: (line.item || line.table) && mine,
                row: line.table,
                list: (line.item || line.table).then_some(list),
                tokens,
            });
        }
        // A heading or a line with a colon at its end leads the items that follow.
        if let Some(last) = all.last()
            && !line.item
            && !line.table
            && (last.label || last.heading)
        {
            // "Steps done:" is not "Next steps:".
            let finished = last.tokens.iter().any(|token| token.is_any(FINISHED));
            unreal = last
                .tokens
                .iter()
                .any(|token| token.is_any(UNREAL) && !(finished && token.is_any(NEUTRAL)));
            done = !unreal && last.tokens.iter().any(|token| token.is_any(DONE));
            led = true;
            let first_person = |token: &Token| token.is_any(&["i", "we"]);
            mine = done
                && (last.tokens.iter().any(first_person) || last.tokens.len() <= 3 && finished);
            quoted |= last.label && last.tokens.iter().any(|token| token.is_any(DRAFTS));
        }
    }
    all.retain(|sentence: &Sentence| sentence.tokens.iter().any(|token| !token.is_mark()));
    all
}

/// A table row without the marks at its ends.
fn row(mut tokens: Vec<Token>) -> Vec<Token> {
    tokens.truncate(LONGEST);
    while tokens.last().is_some_and(|token| token.is("|")) {
        tokens.pop();
    }
    let marks = tokens.iter().take_while(|token| token.is("|")).count();
    tokens.split_off(marks)
}

struct Line {
    text: String,
    item: bool,
    heading: bool,
    table: bool,
    /// A horizontal rule.
    rule: bool,
    /// With a check mark.
    checked: bool,
}

/// Lines without Markdown's marks; code blocks, quotations and open check boxes are gone; a line
/// that continues in lowercase is joined with the next.
fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut open = false;
    for raw in text.lines() {
        let raw = without_tags(&unescape(raw));
        let trimmed = raw.trim();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark));
        if fence.is_some() || mark.is_some() {
            fence = match fence {
                None => mark,
                Some(opened) if mark == Some(opened) => None,
                still => still,
            };
            open = false;
            continue;
        }
        if trimmed.is_empty() || trimmed.starts_with('>') {
            open = false;
            continue;
        }
        if open
            && trimmed.starts_with(char::is_lowercase)
            && let Some(last) = lines.last_mut()
        {
            last.text.push(' ');
            last.text.push_str(trimmed);
            open = is_unfinished(trimmed);
            continue;
        }
        let heading = trimmed.starts_with('#') && trimmed.trim_start_matches('#').starts_with(' ');
        let (item, rest) = strip_bullet(trimmed);
        let item = item || is_labelled(trimmed);
        if rest.starts_with("[ ]") {
            open = false;
            continue;
        }
        lines.push(Line {
            text: rest.trim_start_matches('#').to_owned(),
            item,
            heading,
            table: trimmed.starts_with('|'),
            rule: trimmed.len() >= 3 && trimmed.chars().all(|c| c == '-' || c == '*' || c == '_'),
            checked: !trimmed.contains(['❌', '✗', '✘'])
                && (trimmed.contains(CHECKS)
                    || ["- [x]", "- [X]", "* [x]", "[x]"]
                        .iter()
                        .any(|mark| trimmed.starts_with(mark))),
        });
        open = !heading && is_unfinished(trimmed);
    }
    lines
}

/// A line without tags such as `<answer>`, which some agents write around their message.
fn without_tags(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        plain.push_str(before);
        let end = tag.find('>').filter(|end| {
            let name = tag[1..*end].trim_start_matches('/');
            (1..=24).contains(&name.len())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
                && name.starts_with(|c: char| c.is_ascii_alphabetic())
        });
        match end {
            Some(end) => {
                plain.push(' ');
                rest = &tag[end + 1..];
            }
            None => {
                plain.push('<');
                rest = &tag[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Returns true if a line is a bold label with its value: "**Guests**: 2".
fn is_labelled(line: &str) -> bool {
    let Some((label, rest)) = line
        .strip_prefix("**")
        .and_then(|rest| rest.split_once("**"))
    else {
        return false;
    };
    let value = rest.trim_start().trim_start_matches([':', '–', '—', '-']);
    let marked = label.ends_with(':') || value.len() < rest.trim_start().len();
    label.len() <= 40 && marked && !value.trim().is_empty()
}

/// A line without Markdown's backslashes: `\\$5`, `a\\_b`.
fn unescape(line: &str) -> std::borrow::Cow<'_, str> {
    const MARKS: &str = "$_*#[]()~`>-+.!|";
    if !line.contains('\\') {
        return line.into();
    }
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        let escapes = c == '\\' && letters.peek().is_some_and(|next| MARKS.contains(*next));
        if !escapes {
            plain.push(c);
        }
    }
    plain.into()
}

fn is_unfinished(line: &str) -> bool {
    !line.ends_with(['.', '!', '?', ':', ';', '|', ')'])
}

/// Removes `- `, `* `, `• `, `1. `, `2) `, `[x]` and any symbols before the first
/// word.
fn strip_bullet(line: &str) -> (bool, &str) {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let rest = &line[digits..];
    let (mut item, mut rest) = match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(rest) if (1..=3).contains(&digits) => (true, rest.trim_start()),
        _ => (false, line),
    };
    for bullet in ["- ", "* ", "+ ", "• ", "– ", "— ", "◦ ", "▪ "] {
        if let Some(after) = rest.strip_prefix(bullet) {
            item = true;
            rest = after.trim_start();
        }
    }
    if rest.starts_with("[ ]") {
        return (item, rest);
    }
    for mark in ["[x]", "[X]"] {
        rest = rest.strip_prefix(mark).map_or(rest, str::trim_start);
    }
    let words = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && !c.is_ascii());
    if words.len() < rest.len() {
        item = true;
    }
    (item, words.trim_start())
}

/// No sentence is longer than this many tokens; the rest is read as the next one.
const LONGEST: usize = 200;

/// Cuts at full stops, exclamation marks, question marks and semicolons.
fn split(tokens: Vec<Token>) -> Vec<Vec<Token>> {
    let mut sentences = Vec::new();
    let mut sentence: Vec<Token> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        // "… \"no longer needed.\" Your order …"
        let closes = token.kind == Kind::Quote
            && token.text.ends_with(['.', '!', '?'])
            && tokens.peek().is_some_and(Token::is_capitalized);
        let ends = closes || token.is_mark() && token.is_any(&[".", "!", "?", ";", "…"]);
        sentence.push(token);
        if ends || sentence.len() >= LONGEST {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    sentences.push(sentence);
    sentences.retain(|sentence| sentence.iter().any(|token| !token.is_mark()));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        sentences(text)
            .iter()
            .map(|sentence| {
                let words: Vec<_> = sentence
                    .tokens
                    .iter()
                    .map(|token| token.text.as_str())
                    .collect();
                words.join(" ")
            })
            .collect()
    }

    #[test]
    fn sentences_end_where_they_end() {
        assert_eq!(
            words_of("I sent $1.50 to Dr. No. Was it right? Yes!"),
            ["I sent $1.50 to Dr. No .", "Was it right ?", "Yes !"]
        );
        assert_eq!(
            words_of("He said \"Stop. Now.\" and left."),
            ["He said Stop. Now. and left ."]
        );
        assert_eq!(
            words_of("The reason is \"no need.\" Your order is fine."),
            ["The reason is no need.", "Your order is fine ."]
        );
    }

    #[test]
    fn markdown_is_taken_off() {
        assert_eq!(
            words_of(
                "## Done\n- **Created** it\n1. ✅ Sent\n- [x] Ok\n- [ ] Not yet\n> quoted\n```\ncode\n```\n| a | b |"
            ),
            ["Done", "Created it", "Sent", "Ok", "a | b"]
        );
    }

    #[test]
    fn wrapped_lines_are_one() {
        assert_eq!(
            words_of("I created\nthe issue\nThen more"),
            ["I created the issue", "Then more"]
        );
    }

    #[test]
    fn items_know_their_lead_in() {
        let all = sentences("I can do the following:\n- Issue created\nDone:\n- Issue created\n");
        let unreal: Vec<_> = all.iter().map(|sentence| sentence.unreal).collect();
        assert_eq!(unreal, [false, true, false, false]);
        assert!(all[0].label);
    }

    #[test]
    fn an_unclosed_code_block_hides_the_rest() {
        assert_eq!(words_of("a\n```\nI created the issue"), ["a"]);
    }
}
