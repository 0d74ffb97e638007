//! Markdown with untrusted strings in it.

use mcptest_json::text::{one_line, shorten};

/// The longest string in a cell, in characters.
const MAX_CELL: usize = 200;

/// The largest page in bytes. A comment on a pull request may have 65,536 characters.
const MAX_PAGE: usize = 60_000;

/// An untrusted string as inline code: no markup, mention, issue link or formula takes effect.
pub(crate) fn code(text: &str) -> String {
    let text = shorten(&one_line(text), MAX_CELL);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Renderers strip one space on both sides; it separates a backtick from the fence.
    let pad = if text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// An untrusted string as inline code in a table, where `|` would end the cell.
pub(crate) fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Escapes an untrusted string outside of code.
#[must_use]
pub fn plain(text: &str) -> String {
    let text = one_line(text);
    let mut out = String::new();
    for (place, character) in text.char_indices() {
        match character {
            // Renderers make links of bare addresses.
            ':' if text[place..].starts_with("://") => out.push_str("&#58;"),
            '.' if ends_with_www(&text[..place]) => out.push_str("&#46;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // They would begin a mention or an issue link.
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

fn ends_with_www(text: &str) -> bool {
    text.len()
        .checked_sub(3)
        .and_then(|start| text.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

/// A sentence with quoted names between backticks: they become code, everything else is escaped.
pub(crate) fn sentence(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // A backtick without a counterpart.
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

/// A page of bounded size that lists the number of omitted entries.
pub(crate) struct Bounded {
    text: String,
    omitted: Vec<String>,
}

impl Bounded {
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            omitted: Vec::new(),
        }
    }

    /// Adds a line unconditionally: for headings and other short lines.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds the head of a table.
    pub(crate) fn table(&mut self, heads: &[&str]) {
        self.line(&format!("| {} |", heads.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(heads.len())));
    }

    /// Adds rows to the table whose head is the last line.
    pub(crate) fn rows(&mut self, rows: impl Iterator<Item = Vec<String>>, what: &str) {
        self.entries(rows.map(|cells| format!("| {} |", cells.join(" | "))), what);
    }

    /// Adds entries while there is room. The end of the page shows how many were omitted, under the
    /// name `what`.
    pub(crate) fn entries(&mut self, entries: impl Iterator<Item = String>, what: &str) {
        let mut omitted = 0_usize;
        for entry in entries {
            // After the first omitted entry all others are omitted: a list with gaps misleads.
            if omitted == 0 && self.text.len() + entry.len() < MAX_PAGE {
                self.line(&entry);
            } else {
                omitted += 1;
            }
        }
        if omitted > 0 {
            self.omitted.push(format!("{omitted} {what}"));
        }
    }

    pub(crate) fn finish(mut self) -> String {
        if !self.omitted.is_empty() {
            let omitted = self.omitted.join(", ");
            self.line("");
            self.line(&format!(
                "Truncated: {omitted}. The JSON report has everything."
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
    fn code_is_fenced() {
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
    fn plain_text_is_escaped() {
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
        // A name with a backtick shifts the code, but nothing becomes markup.
        assert_eq!(
            sentence("`a`<b>` has no type"),
            "\\`a\\`&lt;b&gt;\\` has no type"
        );
        assert_eq!(sentence("`a`<b>`c` x"), "`a`&lt;b&gt;`c` x");
    }

    #[test]
    fn a_page_is_bounded_and_counts_omitted_entries() {
        let mut page = Bounded::new();
        page.entries((0..10).map(|_| "x".repeat(9_000)), "tests");
        page.entries(["y".to_owned()].into_iter(), "floors");
        let page = page.finish();
        assert!(page.len() < 61_000);
        assert!(
            page.ends_with("Truncated: 4 tests. The JSON report has everything.\n"),
            "{page}"
        );
        assert!(page.contains("\ny\n"), "short entries still fit");
    }

    proptest! {
        #[test]
        fn the_fence_is_longer_than_any_backticks_inside(text in "[`ab |]{0,20}") {
            let shown = code(&text);
            let fence = shown.chars().take_while(|c| *c == '`').count();
            let inside = &shown[fence..shown.len() - fence];
            prop_assert!(shown.ends_with(&"`".repeat(fence)));
            prop_assert!(inside.split(|c| c != '`').all(|run| run.len() < fence));
            prop_assert!(!inside.starts_with('`') && !inside.ends_with('`'));
        }
    }

    #[test]
    fn issue_14_bare_addresses_are_no_links() {
        assert_eq!(
            plain("see https://x.example/a or WWW.x.example, 3:1"),
            "see https&#58;//x.example/a or WWW&#46;x.example, 3:1"
        );
    }
}
