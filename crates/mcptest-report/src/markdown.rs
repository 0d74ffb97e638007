//! Markdown that stays what it is, whatever the text in it says.

use mcptest_json::text::{one_line, shorten};

/// Longest text in a cell.
const WIDEST: usize = 200;

/// The largest page. A comment on a pull request may have 65,536 characters.
const LARGEST: usize = 60_000;

/// Text from a server or a model, as code: no markup, no mention of a person, no link to an issue,
/// no mathematics.
pub(crate) fn code(text: &str) -> String {
    let text = shorten(&one_line(text), WIDEST);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A blank on both sides is taken off by the reader, and keeps a tick apart from the fence.
    let pad = if text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// The same in a table, where a bar would end the cell even inside of code.
pub(crate) fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Text that stays text outside of code.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for character in one_line(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // No mention, no issue link.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '~' | '!' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}

/// A sentence of ours that quotes names between ticks: those stay code, and the rest stays text,
/// whatever the names are.
pub(crate) fn sentence(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // A tick without another one.
        return plain(text);
    }
    let shown = parts
        .iter()
        .enumerate()
        .map(|(place, part)| match place % 2 {
            1 if !part.is_empty() => cell(part),
            _ => plain(part),
        });
    shown.collect()
}

/// A page that does not outgrow its bounds, and says what it left out.
pub(crate) struct Bounded {
    text: String,
    left_out: Vec<String>,
}

impl Bounded {
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            left_out: Vec::new(),
        }
    }

    /// A line that belongs to the frame of the page: few and short.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The head of a table.
    pub(crate) fn table(&mut self, heads: &[&str]) {
        self.line(&format!("| {} |", heads.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(heads.len())));
    }

    /// Rows of the table whose head is the last line.
    pub(crate) fn rows(&mut self, rows: impl Iterator<Item = Vec<String>>, what: &str) {
        self.entries(rows.map(|cells| format!("| {} |", cells.join(" | "))), what);
    }

    /// Entries as long as there is room; how many `what` were left out is said at the end of the
    /// page.
    pub(crate) fn entries(&mut self, entries: impl Iterator<Item = String>, what: &str) {
        let mut left_out = 0_usize;
        for entry in entries {
            // Once something is left out, all that follows is: a list with holes misleads.
            if left_out == 0 && self.text.len() + entry.len() < LARGEST {
                self.line(&entry);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            self.left_out.push(format!("{left_out} {what}"));
        }
    }

    pub(crate) fn finish(mut self) -> String {
        if !self.left_out.is_empty() {
            let left_out = self.left_out.join(", ");
            self.line("");
            self.line(&format!(
                "Left out for want of room: {left_out}. The JSON report has everything."
            ));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn code_stays_code() {
        assert_eq!(code("get_weather"), "`get_weather`");
        assert_eq!(
            (code("a|b"), cell("a|b")),
            ("`a|b`".to_owned(), "`a\\|b`".to_owned())
        );
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code(""), "`  `");
        assert_eq!(
            code("<img>@you #1\n\u{1b}[0m"),
            "`<img>@you #1\\n\\u{1b}[0m`"
        );
        assert!(code(&"x".repeat(10_000)).chars().count() < 210);
    }

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(
            plain("a|b <img> @all #1 `x`\n"),
            "a\\|b &lt;img&gt; &#64;all &#35;1 \\`x\\`\\\\n"
        );
    }

    #[test]
    fn a_sentence_keeps_its_quoted_names() {
        assert_eq!(
            sentence("`my_tool` has no *type*"),
            "`my_tool` has no \\*type\\*"
        );
        assert_eq!(sentence("`a|b` and `` and #1"), "`a\\|b` and  and &#35;1");
        // A name with a tick in it changes what is code, but nothing becomes markup.
        assert_eq!(
            sentence("`a`<b>` has no type"),
            "\\`a\\`&lt;b&gt;\\` has no type"
        );
        assert_eq!(sentence("`a`<b>`c` x"), "`a`&lt;b&gt;`c` x");
    }

    #[test]
    fn a_page_is_bounded_and_says_what_is_missing() {
        let mut page = Bounded::new();
        page.entries((0..10).map(|_| "x".repeat(9_000)), "tests");
        page.entries(["y".to_owned()].into_iter(), "floors");
        let page = page.finish();
        assert!(page.len() < 61_000);
        assert!(
            page.ends_with("Left out for want of room: 4 tests. The JSON report has everything.\n"),
            "{page}"
        );
        assert!(page.contains("\ny\n"), "there is room for what is short");
    }

    proptest! {
        #[test]
        fn the_fence_is_longer_than_any_run_of_ticks_inside(text in "[`ab |]{0,20}") {
            let shown = code(&text);
            let fence = shown.chars().take_while(|c| *c == '`').count();
            let inside = &shown[fence..shown.len() - fence];
            prop_assert!(shown.ends_with(&"`".repeat(fence)));
            prop_assert!(inside.split(|c| c != '`').all(|run| run.len() < fence));
            prop_assert!(!inside.starts_with('`') && !inside.ends_with('`'));
        }
    }
}
