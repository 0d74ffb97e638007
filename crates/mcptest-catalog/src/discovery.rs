//! Prompts that name no tool (`discovery:`).
//!
//! **Does the prompt give the tool away?** Most agent tests name the tool that should be called,
//! and then check that it was called: that measures execution. A prompt that states only what the
//! user wants measures discovery. `name_free: true` declares such a prompt, and the loader checks
//! it, again when the tools are known: a prompt that names an offered tool or server is a warning
//! that lists the words found, and with `strict: true` an error.
//!
//! # The block
//! ```yaml
//! prompt: Find the current population of Paris and pull the source document for it.
//! discovery: { name_free: true, strict: true }
//! equal_function_sets: { classes: [{ name: search, members: [catalog.search, catalog.web_search] }] }
//! ```
//!
//! This is not a gate: it has no figures. To measure how well the agent found its way, use
//! `tool_selection.recall` of `equal_function_sets`, or `orchestration.discovery`.
//!
//! # The rule
//! A name counts as whole words, in any case, with `_`, `-` and spaces equivalent and `camelCase`
//! split: `get_weather` is found in "Get-Weather", "getWeather" and "get weather", and not in
//! `get_weather_forecast`.
//!
//! Many tools and servers have one ordinary word as their name, such as `search` or `time`. That
//! word in a sentence names nothing ("search for shoes"), so it counts only where it is marked as a
//! name:
//!
//! - in code: `` `search` ``, `search(…)`
//! - in quotes: "search"
//! - qualified by an offered name: `catalog.search`, `catalog/search`, `catalog__search`,
//!   `catalog::search`
//! - followed by "tool" or "server", or after "tool called", "server named" and the like
//!
//! The ordinary words are a list next to this module, together with every name of at most two
//! letters or without any letter. A one-word name that is not on it (`github`, `firecrawl`) counts
//! anywhere.
//!
//! # When not to use it
//! With prompts in languages other than English it still finds names, but has no list of ordinary
//! words.
//!
//! # In Rust
//! ```
//! use mcptest_catalog::discovery::names_in_prompt;
//!
//! let servers = ["catalog", "github"];
//! let tools = ["search", "get_issue"];
//! assert!(names_in_prompt("Search the catalog for open problems.", servers, tools).is_empty());
//! assert_eq!(names_in_prompt("Use the search tool on GitHub.", servers, tools), ["github", "search"]);
//! assert_eq!(names_in_prompt("Please get issue 7.", servers, tools), ["get_issue"]);
//! ```

use schemars::JsonSchema;
use serde::Deserialize;

use mcptest_json::text::one_line;
use mcptest_trace::matcher::Problem;

/// Declares that the prompt names no tool and no server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    /// If true, the prompt must not name tools and servers.
    #[serde(default)]
    pub name_free: bool,
    /// If true, a name in the prompt is an error; else it is a warning.
    #[serde(default)]
    pub strict: bool,
}

impl Discovery {
    /// Checks a prompt against its declaration: at most one problem, with all names found. Its
    /// pointer is that of the block.
    #[must_use]
    pub fn check<'a>(
        self,
        prompt: &str,
        server_names: impl IntoIterator<Item = &'a str>,
        tool_names: impl IntoIterator<Item = &'a str>,
    ) -> Option<Problem> {
        if !self.name_free {
            return None;
        }
        let found = find_names(prompt, server_names, tool_names);
        if found.is_empty() {
            return None;
        }
        let list: Vec<String> = found
            .iter()
            .map(|found| {
                let (kind, name) = (found.kind.as_str(), one_line(&found.name));
                if found.written == found.name {
                    format!("{kind} `{name}`")
                } else {
                    format!("{kind} `{name}` (\"{}\")", one_line(&found.written))
                }
            })
            .collect();
        let problem = Problem::new(
            "/name_free",
            format!(
                "the prompt is declared name-free but names {}",
                list.join(", ")
            ),
        )
        .help("describe the goal, not the tool; or drop `name_free`");
        Some(if self.strict {
            problem
        } else {
            problem.as_warning()
        })
    }
}

/// The kind of thing that a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameKind {
    /// A server of the suite.
    Server,
    /// An offered tool.
    Tool,
}

impl NameKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Tool => "tool",
        }
    }
}

/// A name that a prompt gives away.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundName {
    /// As offered.
    pub name: String,
    /// The kind of thing that has the name.
    pub kind: NameKind,
    /// As the prompt writes it, where it first does.
    pub written: String,
}

/// The offered names that a prompt gives away, each once: servers first, then tools, in the order
/// given.
#[must_use]
pub fn names_in_prompt<'a>(
    prompt: &str,
    server_names: impl IntoIterator<Item = &'a str>,
    tool_names: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for found in find_names(prompt, server_names, tool_names) {
        if !names.contains(&found.name) {
            names.push(found.name);
        }
    }
    names
}

/// As [`names_in_prompt`], with what each name belongs to and how it is written.
#[must_use]
pub fn find_names<'a>(
    prompt: &str,
    server_names: impl IntoIterator<Item = &'a str>,
    tool_names: impl IntoIterator<Item = &'a str>,
) -> Vec<FoundName> {
    let servers = server_names
        .into_iter()
        .map(|name| (name, NameKind::Server));
    let tools = tool_names.into_iter().map(|name| (name, NameKind::Tool));
    let mut names: Vec<(&str, NameKind, Vec<String>)> = Vec::new();
    for (name, kind) in servers.chain(tools) {
        let words: Vec<String> = words(name).into_iter().map(|word| word.text).collect();
        // Two servers may offer tools of one name.
        if !words.is_empty()
            && !names
                .iter()
                .any(|(other, of, _)| *other == name && *of == kind)
        {
            names.push((name, kind, words));
        }
    }
    let prompt = Prompt::new(prompt);
    names
        .iter()
        .filter_map(|(name, kind, name_words)| {
            let needs_mark = name_words.len() == 1 && is_ordinary(&name_words[0]);
            let span = prompt
                .occurrences(name, name_words)
                .into_iter()
                .find(|span| !needs_mark || prompt.is_marked(*span, &names))?;
            Some(FoundName {
                name: (*name).to_owned(),
                kind: *kind,
                written: prompt.characters[span.start..span.end].iter().collect(),
            })
        })
        .collect()
}

/// A word in lowercase and its position, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    start: usize,
    end: usize,
}

/// A piece of the prompt, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

/// Splits at everything that is not a letter or digit, and at changes of case: `getJSONData` is
/// get, json, data.
fn words(text: &str) -> Vec<Word> {
    words_of(&text.chars().collect::<Vec<_>>())
}

fn words_of(characters: &[char]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            open = false;
            continue;
        }
        let before = at.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(at + 1);
        let humps = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|c| c.is_lowercase()))
            });
        match words.last_mut().filter(|_| open && !humps) {
            Some(word) => {
                word.text.extend(character.to_lowercase());
                word.end = at + 1;
            }
            None => words.push(Word {
                text: character.to_lowercase().collect(),
                start: at,
                end: at + 1,
            }),
        }
        open = true;
    }
    words
}

struct Prompt {
    characters: Vec<char>,
    words: Vec<Word>,
}

impl Prompt {
    fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let words = words_of(&characters);
        Self { characters, words }
    }

    fn at(&self, index: usize) -> Option<char> {
        self.characters.get(index).copied()
    }

    fn before(&self, index: usize) -> Option<char> {
        index.checked_sub(1).and_then(|index| self.at(index))
    }

    fn between(&self, start: usize, end: usize) -> &[char] {
        self.characters.get(start..end).unwrap_or_default()
    }

    /// The places where a name occurs as whole words, in order.
    fn occurrences(&self, name: &str, name_words: &[String]) -> Vec<Span> {
        let mut spans = self.spelled(name);
        for window in self.words.windows(name_words.len()) {
            let same = window
                .iter()
                .zip(name_words)
                .all(|(word, wanted)| word.text == *wanted);
            let joined = window
                .windows(2)
                .all(|pair| self.joins(pair[0].end, pair[1].start));
            if let ([first, .., last], true) | ([first @ last], true) = (window, same && joined) {
                let span = Span {
                    start: first.start,
                    end: last.end,
                };
                if self.is_separate_word(span, name_words.len() > 1) && !spans.contains(&span) {
                    spans.push(span);
                }
            }
        }
        spans.sort_by_key(|span| span.start);
        spans
    }

    /// The places where the letters of a name occur, in any case: `GitHub` for `github`, although
    /// its humps make it two words.
    fn spelled(&self, name: &str) -> Vec<Span> {
        let lower = |character: &char| character.to_lowercase().next().unwrap_or(*character);
        let wanted: Vec<char> = name.chars().map(|character| lower(&character)).collect();
        self.characters
            .windows(wanted.len().max(1))
            .enumerate()
            .filter(|(_, window)| window.iter().map(lower).eq(wanted.iter().copied()))
            .map(|(start, window)| Span {
                start,
                end: start + window.len(),
            })
            .filter(|span| {
                let bare = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
                bare(self.before(span.start))
                    && bare(self.at(span.end))
                    && self.is_separate_word(*span, false)
            })
            .collect()
    }

    /// Returns true if two words are parts of one name: joined by case alone, by `_` or `-`, or by
    /// spaces.
    fn joins(&self, end: usize, start: usize) -> bool {
        let glue = self.between(end, start);
        glue.is_empty() || matches!(glue, ['_' | '-']) || glue.iter().all(|c| c.is_whitespace())
    }

    /// Returns true if a piece is not just a part of a longer identifier. `__` and other marks part
    /// it from a server's name in front.
    fn is_separate_word(&self, span: Span, several_words: bool) -> bool {
        let is_part = |mark: Option<char>, beyond: Option<char>| match mark {
            Some(c) if c.is_alphanumeric() => true,
            Some('_') => beyond.is_some_and(|c| c.is_alphanumeric()),
            Some('-') => several_words && beyond.is_some_and(|c| c.is_alphanumeric()),
            _ => false,
        };
        let beyond = span.start.checked_sub(2).and_then(|at| self.at(at));
        !is_part(self.before(span.start), beyond)
            && !is_part(self.at(span.end), self.at(span.end + 1))
    }

    /// Returns true if an ordinary word is written as a name here.
    fn is_marked(&self, span: Span, names: &[(&str, NameKind, Vec<String>)]) -> bool {
        self.is_code(span)
            || self.is_quoted(span)
            || self.is_called_a_tool(span)
            || self.is_qualified(span, names)
    }

    fn is_code(&self, span: Span) -> bool {
        let ticks = |part: &[char]| part.iter().filter(|c| **c == '`').count();
        let inside = ticks(self.between(0, span.start)) % 2 == 1
            && self.between(span.end, self.characters.len()).contains(&'`');
        inside || self.at(span.end) == Some('(')
    }

    fn is_quoted(&self, span: Span) -> bool {
        matches!(
            (self.before(span.start), self.at(span.end)),
            (Some('"'), Some('"'))
                | (Some('\''), Some('\''))
                | (Some('“' | '„' | '”'), Some('”' | '“'))
                | (Some('‘' | '’'), Some('’' | '‘'))
                | (Some('«'), Some('»'))
        )
    }

    fn is_called_a_tool(&self, span: Span) -> bool {
        let is_noun =
            |word: &Word| matches!(word.text.as_str(), "tool" | "tools" | "server" | "servers");
        let spaces = |start, end| {
            let glue = self.between(start, end);
            !glue.is_empty() && glue.iter().all(|c| c.is_whitespace() || *c == '-')
        };
        let mut after = self.words.iter().skip_while(|word| word.start < span.end);
        let mut end = span.end;
        let mut next = after.next();
        // "the search MCP server"
        if let Some(word) = next.filter(|word| word.text == "mcp" && spaces(end, word.start)) {
            end = word.end;
            next = after.next();
        }
        if next.is_some_and(|word| is_noun(word) && spaces(end, word.start)) {
            return true;
        }
        let mut before = self
            .words
            .iter()
            .rev()
            .skip_while(|word| word.end > span.start);
        match (before.next(), before.next()) {
            (Some(called), Some(noun)) => {
                matches!(called.text.as_str(), "called" | "named" | "entitled")
                    && is_noun(noun)
                    && spaces(noun.end, called.start)
                    && spaces(called.end, span.start)
            }
            _ => false,
        }
    }

    /// Returns true if another offered name qualifies it: `catalog.search`, `catalog__search`.
    fn is_qualified(&self, span: Span, names: &[(&str, NameKind, Vec<String>)]) -> bool {
        let is_tie =
            |glue: &[char]| matches!(glue, ['.' | '/' | ':' | '#'] | ['_', '_'] | [':', ':']);
        names.iter().any(|(name, _, words)| {
            self.occurrences(name, words).into_iter().any(|other| {
                (other.end <= span.start && is_tie(self.between(other.end, span.start)))
                    || (span.end <= other.start && is_tie(self.between(span.end, other.start)))
            })
        })
    }
}

/// Returns true if a one-word name is a word that prompts use anyway.
fn is_ordinary(word: &str) -> bool {
    word.chars().count() <= 2
        || !word.chars().any(char::is_alphabetic)
        || ORDINARY.split_whitespace().any(|known| known == word)
}

/// Words of everyday requests that are also names of tools and servers, in order.
const ORDINARY: &str = include_str!("discovery/ordinary_words.txt");

#[cfg(test)]
mod tests;
