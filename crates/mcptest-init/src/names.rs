//! Names of servers, tests and files.

use std::collections::BTreeSet;

/// Parts of names that say only that something is an MCP server.
const PREFIXES: [&str; 4] = ["mcp-server-", "server-", "mcp-", "modelcontextprotocol-"];
const SUFFIXES: [&str; 5] = [
    "-demo-server",
    "-mcp-server",
    "-server-mcp",
    "-mcp",
    "-server",
];

/// The longest name.
const MAX_CHARACTERS: usize = 40;

/// The name of a server in a suite: lowercase letters, digits, `-` and `_`.
#[must_use]
pub fn server_name(text: &str) -> String {
    // Of `@scope/server-x` and `servers/x` the last part is the name.
    let last = text
        .rsplit(['/', '\\'])
        .find(|part| !part.trim().is_empty());
    let last = last.unwrap_or_default();
    // A version is not part of the name: `server@1.2`.
    let last = match last.get(1..).and_then(|rest| rest.find('@')) {
        Some(at) => &last[..=at],
        None => last,
    };
    let mut name = slug(last);
    for ending in ["-py", "-js", "-ts", "-mjs"] {
        if last.ends_with(&ending.replacen('-', ".", 1)) {
            name = name.strip_suffix(ending).unwrap_or(&name).to_owned();
        }
    }
    // Both separators are in use: `word_mcp_server`.
    let dashed = name.replace('_', "-");
    let prefix = PREFIXES.iter().find(|prefix| dashed.starts_with(**prefix));
    let start = prefix.map_or(0, |prefix| prefix.len());
    let suffix = SUFFIXES.iter().find(|suffix| {
        dashed
            .get(start..)
            .is_some_and(|rest| rest.ends_with(**suffix))
    });
    let end = name.len() - suffix.map_or(0, |suffix| suffix.len());
    let short = name
        .get(start..end)
        .unwrap_or(&name)
        .trim_matches(['-', '_']);
    if short.is_empty() {
        "server".to_owned()
    } else {
        short.to_owned()
    }
}

/// Lowercase letters, digits, `-` and `_`.
#[must_use]
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c.to_ascii_lowercase()),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
        if out.len() >= MAX_CHARACTERS {
            break;
        }
    }
    out.trim_matches('-').to_owned()
}

/// Names that are used once.
#[derive(Debug, Default)]
pub struct Unique(BTreeSet<String>);

impl Unique {
    /// The name, or with a number if it is taken.
    pub fn name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}-{number}");
            number += 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for (text, expected) in [
            ("@modelcontextprotocol/server-everything", "everything"),
            ("mcp-servers/everything", "everything"),
            ("mcp-server-time", "time"),
            ("time-mcp-server", "time"),
            ("word_mcp_server", "word"),
            ("mcp-server", "server"),
            ("My Notes!", "my-notes"),
            ("server@1.2", "server"),
            ("@scope/pkg@latest", "pkg"),
            ("server.py", "server"),
            ("weather_server.py", "weather"),
            ("日本", "server"),
            ("", "server"),
            ("mcp", "mcp"),
            ("a: b\nc", "a-b-c"),
        ] {
            assert_eq!(server_name(text), expected, "{text}");
        }
        assert_eq!(server_name(&"x".repeat(500)).len(), MAX_CHARACTERS);
    }

    #[test]
    fn taken_names_get_a_number() {
        let mut names = Unique::default();
        let found = ["a", "a", "b", "a"].map(|name| names.name(name));
        assert_eq!(found, ["a", "a-2", "b", "a-3"]);
    }

    proptest! {
        #[test]
        fn every_name_is_plain(text in "\\PC*") {
            let name = server_name(&text);
            prop_assert!(!name.is_empty());
            prop_assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c)), "{}", name);
        }
    }
}
