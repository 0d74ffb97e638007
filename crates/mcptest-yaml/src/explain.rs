//! Wording of the differences between a document and its schema.
//!
//! A general validator reports in the schema's terms ("is not valid under any of the schemas
//! listed"). These messages are in terms of the file: each names its place, what was expected
//! there, and the nearest known word.

use crate::compiled_schema::{CompiledSchema, Keywords, Literal, RuleIndex, RuleKind, TypeSet};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Entry, Node, NodeValue};

/// Words problems of one document.
pub(crate) struct Explain<'a> {
    document: &'a Document,
    schema: &'a CompiledSchema,
    spelling: KeySpelling,
}

/// Returns the way to write a key of another tool, given the key and a test for known keys.
pub type KeySpelling = fn(&str, &dyn Fn(&str) -> bool) -> Option<&'static str>;

impl<'a> Explain<'a> {
    pub(crate) fn new(
        document: &'a Document,
        schema: &'a CompiledSchema,
        spelling: KeySpelling,
    ) -> Self {
        Self {
            document,
            schema,
            spelling,
        }
    }

    pub(crate) fn not_allowed(&self, node: &Node, name: &str) -> Diagnostic {
        self.document
            .error(node.span, format!("{} is not allowed here", subject(name)))
    }

    pub(crate) fn wrong_type(&self, node: &Node, rule: RuleIndex, name: &str) -> Diagnostic {
        let expected = self.expected(rule);
        let diagnostic = self.mismatch(node, &expected, name);
        match self.form(rule, MAX_EXPECTED_DEPTH) {
            // A plain list is no matcher: it might mean its order, or any of its items.
            _ if expected.starts_with("a matcher")
                && matches!(node.value, NodeValue::Sequence(_)) =>
            {
                diagnostic.help("a list that must be equal is written `exact: […]`")
            }
            // Some expectations name their own form: `{max: 30, stop: decided}`.
            Some(form) if !expected.contains('{') => {
                diagnostic.help(format!("its form is `{form}`"))
            }
            _ => diagnostic,
        }
    }

    /// The required keys of the mapping, or of the mappings in the list, that a rule allows:
    /// `[{ name: …, members: […] }]`.
    fn form(&self, rule: RuleIndex, depth: usize) -> Option<String> {
        let below = depth.checked_sub(1)?;
        let keywords = match &self.schema.0[rule].kind {
            // A form beside others would not be the whole truth.
            RuleKind::AnyOf(branches) => {
                let structured = TypeSet::OBJECT.union(TypeSet::ARRAY);
                let mut forms =
                    branches
                        .iter()
                        .filter(|branch| match &self.schema.0[**branch].kind {
                            RuleKind::Keywords(keywords) => keywords.types.overlaps(structured),
                            _ => true,
                        });
                return match (forms.next(), forms.next()) {
                    (Some(only), None) => self.form(*only, below),
                    _ => None,
                };
            }
            RuleKind::Keywords(keywords) => keywords,
            _ => return None,
        };
        if let Some(items) = keywords.items {
            return Some(format!("[{}]", self.form(items, below)?));
        }
        let value = |key: &str| {
            let kind = keywords
                .property(key)
                .map(|property| &self.schema.0[property.rule].kind);
            match kind {
                Some(RuleKind::Keywords(value)) if value.items.is_some() => "[…]",
                Some(RuleKind::Keywords(value)) if !value.properties.is_empty() => "{…}",
                _ => "…",
            }
        };
        let required = keywords
            .required
            .iter()
            .map(|key| format!("{key}: {}", value(key)));
        let required: Vec<String> = required.collect();
        (!required.is_empty()).then(|| format!("{{ {} }}", required.join(", ")))
    }

    pub(crate) fn not_in_set(&self, node: &Node, allowed: &[Literal], name: &str) -> Diagnostic {
        let diagnostic = self.mismatch(node, &one_of(allowed), name);
        let strings = allowed.iter().filter_map(|literal| match literal {
            Literal::String(string) => Some(string.as_ref()),
            Literal::Json(_) => None,
        });
        match &node.value {
            NodeValue::String(string) => match suggest(string, strings) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic,
            },
            _ => diagnostic,
        }
    }

    fn mismatch(&self, node: &Node, expected: &str, name: &str) -> Diagnostic {
        let message = if name.is_empty() {
            format!("expected {expected}")
        } else {
            format!("`{name}` must be {expected}")
        };
        self.document
            .error(node.span, message)
            .label(format!("found {}", found(node)))
    }

    pub(crate) fn empty(&self, node: &Node, rule: RuleIndex, name: &str) -> Diagnostic {
        self.document
            .error(node.span, format!("{} is empty", subject(name)))
            .label(format!("expected {}", self.expected(rule)))
    }

    pub(crate) fn out_of_range(
        &self,
        node: &Node,
        rule: RuleIndex,
        name: &str,
        side: &str,
        limit: f64,
    ) -> Diagnostic {
        self.document
            .error(node.span, format!("{} is {side} {limit}", subject(name)))
            .label(format!("expected {}", self.expected(rule)))
    }

    pub(crate) fn unknown_key(&self, entry: &Entry, keywords: &Keywords, name: &str) -> Diagnostic {
        let known = keywords.properties.iter();
        let canonical: Vec<&str> = known
            .clone()
            .filter(|property| property.alias_of.is_none())
            .map(|property| property.name.as_ref())
            .collect();
        let diagnostic = self.document.error(
            entry.key_span,
            format!("unknown key `{}`{}", entry.key, inside(name)),
        );
        let is_known = |word: &str| known.clone().any(|property| property.name == word);
        if let Some(spelling) = (self.spelling)(&entry.key, &is_known) {
            return diagnostic.label(format!("write {spelling}"));
        }
        match suggest(&entry.key, known.map(|property| property.name.as_ref())) {
            Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
            None if canonical.is_empty() => diagnostic.label("no key is allowed here"),
            None => diagnostic.help(format!("known keys: {}", canonical.join(", "))),
        }
    }

    pub(crate) fn two_spellings(&self, alias: &Entry, canonical: &Entry) -> Diagnostic {
        self.document
            .error(
                alias.key_span,
                format!("`{}` and `{}` mean the same", alias.key, canonical.key),
            )
            .related(canonical.key_span, "the other spelling")
            .help(format!("keep `{}`", canonical.key))
    }

    pub(crate) fn missing_key(
        &self,
        node: &Node,
        required: &str,
        keywords: &Keywords,
        name: &str,
    ) -> Diagnostic {
        // The span of a block mapping may be empty or many lines long: its first key marks it best.
        let span = match &node.value {
            NodeValue::Mapping(entries) => entries.first().map(|entry| entry.key_span),
            _ => None,
        };
        let diagnostic = self.document.error(
            span.unwrap_or(node.span),
            format!("missing key `{required}`{}", inside(name)),
        );
        match keywords.property(required) {
            Some(property) => diagnostic.label(format!(
                "expected `{required}:` with {}",
                self.expected(property.rule)
            )),
            None => diagnostic,
        }
    }

    /// The phrase after "expected".
    fn expected(&self, rule: RuleIndex) -> String {
        self.expected_within(rule, MAX_EXPECTED_DEPTH)
    }

    fn expected_within(&self, rule: RuleIndex, depth: usize) -> String {
        if depth == 0 {
            return "a value".to_owned();
        }
        let rule = &self.schema.0[rule];
        if let Some(phrase) = &rule.expected {
            return phrase.clone().into_owned();
        }
        match &rule.kind {
            RuleKind::Anything | RuleKind::Nothing => "a value".to_owned(),
            RuleKind::Values(values) => one_of(values),
            RuleKind::AnyOf(branches) => {
                let mut phrases: Vec<String> = Vec::new();
                for branch in branches.iter() {
                    let phrase = self.expected_within(*branch, depth - 1);
                    if phrase != NOTHING && !phrases.contains(&phrase) {
                        phrases.push(phrase);
                    }
                }
                join_or(&phrases)
            }
            RuleKind::Keywords(keywords) => self.expected_by_keywords(keywords, depth),
        }
    }

    fn expected_by_keywords(&self, keywords: &Keywords, depth: usize) -> String {
        let base = if keywords.types == TypeSet::ALL {
            "a value".to_owned()
        } else {
            let list = || {
                let items = keywords
                    .items
                    .map(|items| self.expected_within(items, depth - 1));
                match items.as_deref().and_then(|items| items.strip_prefix("a ")) {
                    Some(noun) if noun != "value" && !noun.contains(' ') => {
                        format!("a list of {noun}s")
                    }
                    _ => "a list".to_owned(),
                }
            };
            let phrases: Vec<String> = [
                (TypeSet::STRING, "a string"),
                (TypeSet::INTEGER, "a whole number"),
                (TypeSet::NUMBER, "a number"),
                (TypeSet::ARRAY, ""),
                (TypeSet::OBJECT, "a mapping"),
                (TypeSet::BOOLEAN, "true or false"),
            ]
            .into_iter()
            .filter(|(one, _)| keywords.types.overlaps(*one))
            .map(|(one, phrase)| match one {
                TypeSet::ARRAY => list(),
                _ => phrase.to_owned(),
            })
            .collect();
            join_or(&phrases)
        };
        match (keywords.minimum, keywords.maximum) {
            (Some(min), Some(max)) => format!("{base} from {min} to {max}"),
            (Some(min), None) if min != 0.0 => format!("{base} from {min}"),
            _ => base,
        }
    }
}

/// The phrase for an absent value.
const NOTHING: &str = "nothing";

/// The maximum nesting of an "expected" phrase: a rule may contain itself.
const MAX_EXPECTED_DEPTH: usize = 8;

/// The known words that are compared with an unknown one. A file may have thousands of both.
pub const MAX_CANDIDATES: usize = 1000;

/// The known word nearest to `word`, if one is near enough to be what was meant.
#[must_use]
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .take(MAX_CANDIDATES)
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            let longest = word.chars().count().max(candidate.chars().count());
            (*distance <= (longest / 3).max(1) && *distance < longest)
                || (word.len() > 3 && candidate.starts_with(word))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn subject(name: &str) -> String {
    if name.is_empty() {
        "the file".to_owned()
    } else {
        format!("`{name}`")
    }
}

fn inside(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!(" in `{name}`")
    }
}

fn one_of(allowed: &[Literal]) -> String {
    let phrases: Vec<String> = allowed
        .iter()
        .filter_map(|literal| match literal {
            Literal::Json(json) if json == "null" => None,
            Literal::String(text) | Literal::Json(text) => Some(format!("`{text}`")),
        })
        .collect();
    join_or(&phrases)
}

fn join_or(phrases: &[String]) -> String {
    match phrases {
        [] => NOTHING.to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn found(node: &Node) -> String {
    match &node.value {
        NodeValue::Bool(value) => format!("the boolean `{value}`"),
        NodeValue::Number(value) => format!("the number `{value}`"),
        NodeValue::String(value) => {
            let short: String = value.chars().take(40).collect();
            let dots = if short.len() < value.len() { "…" } else { "" };
            format!("the string `{}{dots}`", short.escape_debug())
        }
        _ => node.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use crate::from_bytes;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Suite {
        name: String,
        #[serde(default)]
        runs: Option<u32>,
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Item {
        server: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Strict,
        Subset,
    }

    fn problems(text: &str) -> String {
        from_bytes::<Suite>("t.yml", text.as_bytes())
            .expect_err("must be rejected")
            .to_string()
    }

    #[test]
    fn all_problems_of_a_file_are_reported_together() {
        let text =
            problems("nmae: x\nruns: many\nitems:\n  - server: 3\n  - sever: a\nmode: strickt\n");
        for (message, place) in [
            ("unknown key `nmae`", "t.yml:1:1"),
            ("did you mean `name`?", "t.yml:1:1"),
            ("missing key `name`", "t.yml:1:1"),
            ("`runs` must be a whole number", "t.yml:2:7"),
            ("`server` must be a string", "t.yml:4:13"),
            ("unknown key `sever`", "t.yml:5:5"),
            ("`mode` must be `strict` or `subset`", "t.yml:6:7"),
            ("did you mean `strict`?", "t.yml:6:7"),
        ] {
            assert!(text.contains(message), "{message} not in\n{text}");
            assert!(text.contains(place), "{place} not in\n{text}");
        }
    }

    #[test]
    fn the_form_of_mappings_is_shown() {
        let text = problems("name: x\nitems: { server: a }\n");
        assert!(
            text.contains("`items` must be a list of mappings"),
            "{text}"
        );
        assert!(text.contains("its form is `[{ server: … }]`"), "{text}");
        assert!(!problems("name: [x]\n").contains("its form"));
    }

    #[test]
    fn a_negative_count_is_rejected() {
        assert!(problems("name: x\nruns: -1\n").contains("`runs` is below 0"));
    }

    #[test]
    fn an_empty_file_is_explained() {
        let text = problems("");
        assert!(text.contains("expected a mapping"), "{text}");
        assert!(text.contains("t.yml:1:1"), "{text}");
    }

    #[test]
    fn a_fitting_file_is_decoded() {
        let (suite, _) = from_bytes::<Suite>(
            "t.yml",
            b"name: x\nruns: 3\nitems: [{server: a}]\nmode: subset",
        )
        .unwrap();
        assert_eq!(suite.items[0].server, "a");
        assert_eq!(suite.runs, Some(3));
    }

    #[test]
    fn only_near_words_are_suggested() {
        assert_eq!(super::suggest("promt", ["prompt", "runs"]), Some("prompt"));
        assert_eq!(super::suggest("xyzzy", ["prompt", "runs"]), None);
    }
}
