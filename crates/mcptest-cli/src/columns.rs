//! Text in lines of at most 100 columns, and rows of two columns.

/// The width of help texts.
const WIDTH: usize = 100;

/// Lines of at most 100 columns.
pub fn wrapped(text: &str) -> String {
    lines(text, WIDTH).join("\n")
}

/// Rows of a name and its meaning, indented by two spaces, the meanings below each other.
pub fn rows<N: AsRef<str>, M: AsRef<str>>(rows: &[(N, M)]) -> String {
    let width = |name: &str| name.chars().count();
    let names = rows.iter().map(|(name, _)| width(name.as_ref()));
    let indent = 2 + names.max().unwrap_or(0) + 2;
    let mut out = String::new();
    for (name, meaning) in rows {
        let name = name.as_ref();
        out.push_str("  ");
        out.push_str(name);
        let mut column = 2 + width(name);
        for line in lines(meaning.as_ref(), WIDTH.saturating_sub(indent)) {
            out.push_str(&" ".repeat(indent - column));
            out.push_str(&line);
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push('\n');
        }
    }
    out
}

/// The text in lines of at most this width. A longer word has its own line.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meanings_are_below_each_other() {
        let long = "word ".repeat(30);
        let text = rows(&[("a", long.as_str()), ("längér", "short"), ("none", "")]);
        let found: Vec<&str> = text.lines().collect();
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|line| line.chars().count() <= 100));
        assert!(found[0].starts_with("  a       word word"));
        assert!(found[1].starts_with("          word"));
        assert_eq!(found[2], "  längér  short");
        assert_eq!(found[3], "  none");
    }

    #[test]
    fn a_long_word_has_its_own_line() {
        let long = "x".repeat(120);
        assert_eq!(wrapped(&format!("a {long} b")), format!("a\n{long}\nb"));
        assert_eq!(wrapped(""), "");
    }
}
