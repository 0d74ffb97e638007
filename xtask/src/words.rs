//! Checks the language of documentation, messages, help texts and comments.
//!
//! The phrases are in `xtask/words.txt`, each with its replacement. Checked are all Markdown pages
//! (among them the generated command-line reference, which holds every `--help` text), the
//! descriptions in the published schemas, and the comments and messages of all Rust files. In Rust
//! files, lines have at most 100 columns, doc comments begin with a noun or a verb, and the names of
//! functions, tests among them, are read as sentences.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};
use regex::{Regex, RegexBuilder};

use crate::workspace::{self, files};

const PHRASES: &str = include_str!("../words.txt");
const ALLOWED: &str = include_str!("../words-allowed.txt");
/// Longest line of code and comments.
const MAX_COLUMNS: usize = 100;

/// A place where the language is not as it should be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: String,
    line: usize,
    problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.problem)
    }
}

/// Prints every finding. Returns true if there is none.
pub fn run() -> Result<bool> {
    let findings = check()?;
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        println!("{} findings", findings.len());
    }
    Ok(findings.is_empty())
}

/// Checks the whole workspace.
pub fn check() -> Result<Vec<Finding>> {
    let phrases = phrases(PHRASES)?;
    let allowed: BTreeSet<&str> = ALLOWED.lines().map(str::trim).collect();
    let root = workspace::root();
    let mut paths = Vec::new();
    for folder in ["crates", "xtask/src"] {
        paths.extend(files(&root.join(folder), "rs")?);
    }
    paths.extend(files(&root.join("docs"), "md")?);
    paths.extend(files(&root.join("schema"), "json")?);
    for page in ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"] {
        paths.push(root.join(format!("{page}.md")));
    }
    let mut findings = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(&path);
        if is_data(name) {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", name.display()))?;
        let mut problems = of_phrases(&text, &phrases, &allowed);
        if name.extension().is_some_and(|ending| ending == "rs") {
            problems.extend(of_rust(&text));
            problems.extend(of_names(&text, &phrases, &allowed));
        }
        let name = name.display().to_string();
        findings.extend(problems.into_iter().map(|(line, problem)| Finding {
            path: name.clone(),
            line,
            problem,
        }));
    }
    findings.sort();
    Ok(findings)
}

/// Returns true for files that hold data.
fn is_data(name: &Path) -> bool {
    let name = name.to_string_lossy();
    // The tests of this file have findings on purpose.
    name.ends_with("schema_table.rs") || name == file!()
}

/// A phrase and its replacement.
struct Phrase {
    pattern: Regex,
    instead: String,
}

fn phrases(text: &str) -> Result<Vec<Phrase>> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (pattern, instead) = line
                .split_once(" => ")
                .with_context(|| format!("no ` => ` in the line `{line}` of words.txt"))?;
            let pattern = RegexBuilder::new(&pattern.replace(' ', r"\s+"))
                .case_insensitive(true)
                .multi_line(true)
                .build()?;
            Ok(Phrase {
                pattern,
                instead: instead.to_owned(),
            })
        })
        .collect()
}

/// The phrases in a file, with the numbers of their lines. A phrase may be wrapped over two lines.
fn of_phrases(text: &str, phrases: &[Phrase], allowed: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let mut prose = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in text.lines() {
        starts.push(prose.len());
        let line = line.trim_start();
        let comment = ["///", "//!", "//"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        // A line that is allowed cannot be a part of a wrapped phrase either.
        if !allowed.contains(line) {
            prose.push_str(comment.unwrap_or(line));
        }
        prose.push('\n');
    }
    let mut found = Vec::new();
    for Phrase { pattern, instead } in phrases {
        for groups in pattern.captures_iter(&prose) {
            // A pattern with the group `bad` has alternatives that are right.
            let bad = groups.name("bad");
            let has_group = pattern.capture_names().flatten().any(|name| name == "bad");
            let Some(hit) = bad.or_else(|| groups.get(0).filter(|_| !has_group)) else {
                continue;
            };
            let line = starts.partition_point(|start| *start <= hit.start());
            let words = hit
                .as_str()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            found.push((line, format!("`{words}`: write {instead}")));
        }
    }
    found
}

/// The phrases in the names of functions, read as words.
fn of_names(text: &str, phrases: &[Phrase], allowed: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate();
    let names = lines.filter_map(|(index, line)| {
        let line = line.trim_start();
        let (_, rest) = line.split_once("fn ")?;
        let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        let name = &rest[..end.unwrap_or(rest.len())];
        let is_listed = allowed.contains(line) || line.starts_with("//");
        (!is_listed).then(|| (index + 1, name.replace('_', " ")))
    });
    names
        .flat_map(|(line, words)| {
            let found = of_phrases(&words, phrases, &BTreeSet::new());
            found.into_iter().map(move |(_, problem)| (line, problem))
        })
        .collect()
}

/// The rules for Rust files: the width of lines, and the first word of doc comments.
fn of_rust(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_doc = false;
    let mut in_example = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let doc = trimmed
            .strip_prefix("///")
            .or_else(|| trimmed.strip_prefix("//!"));
        if let Some(doc) = doc {
            let doc = doc.trim_start();
            let first = doc.split_whitespace().next().unwrap_or_default();
            if !in_doc && ["What", "Whether", "How"].contains(&first) {
                let problem =
                    format!("doc comment begins with `{first}`: begin with a noun or a verb");
                found.push((index + 1, problem));
            }
            in_example ^= doc.starts_with("```");
        }
        in_doc = doc.is_some();
        in_example &= in_doc;
        let columns = line.chars().count();
        // rustfmt wraps code. Tables, addresses and examples cannot be wrapped.
        let excepted = in_example
            || !trimmed.starts_with("//")
            || doc.is_some_and(|doc| doc.trim_start().starts_with('|'))
            || line.contains("://");
        if columns > MAX_COLUMNS && !excepted {
            found.push((
                index + 1,
                format!("{columns} columns: wrap at {MAX_COLUMNS}"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let allowed = BTreeSet::from([concat!("// A line that ", "stands in the list is fine.")]);
        let phrases = phrases(PHRASES).unwrap();
        let mut found = of_phrases(text, &phrases, &allowed);
        found.extend(of_rust(text));
        found
            .into_iter()
            .map(|(line, what)| format!("{line}: {what}"))
            .collect()
    }

    #[test]
    fn phrases_are_found_also_over_line_ends() {
        assert_eq!(
            found("/// The error is\n    /// told ANEW.\nfn goes_on() {}\n"),
            [
                "1: `is told`: write is reported, is printed, is shown",
                "2: `ANEW`: write again"
            ]
        );
        assert_eq!(
            found(concat!("// A line that ", "stands in the list is fine.\n")),
            [""; 0]
        );
    }

    #[test]
    fn names_of_functions_are_read_as_sentences() {
        let phrases = phrases(PHRASES).unwrap();
        let text = "#[test]\nfn the_error_is_told_anew() {\n}\nfn is_fine() {}\n";
        let found = of_names(text, &phrases, &BTreeSet::new());
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 2]);
    }

    #[test]
    fn doc_comments_begin_with_a_noun_or_a_verb() {
        assert_eq!(
            found("/// Whether it is so.\n/// What more.\nfn a() {}\n//! How it works.\n").len(),
            2
        );
    }

    #[test]
    fn long_lines_are_found_unless_they_cannot_be_wrapped() {
        let long = "a ".repeat(60);
        assert_eq!(found(&format!("// {long}\n")).len(), 1);
        assert_eq!(found(&format!("// https://example.com/{long}\n")), [""; 0]);
        assert_eq!(
            found(&format!("/// | {long} |\nlet x = \"{long}\";\n")),
            [""; 0]
        );
    }

    #[test]
    fn the_workspace_has_no_findings() {
        let findings: Vec<String> = check().unwrap().iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    #[test]
    fn every_line_that_is_allowed_is_needed() {
        let phrases = phrases(PHRASES).unwrap();
        for line in ALLOWED.lines().filter(|line| !line.starts_with('#')) {
            let found = of_phrases(line, &phrases, &BTreeSet::new());
            assert!(!found.is_empty(), "not needed in words-allowed.txt: {line}");
        }
    }
}
