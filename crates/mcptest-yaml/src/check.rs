//! Comparison of a document with a [`CompiledSchema`]: the verdict and the explanation.
//!
//! Both come from the same walk. It reports problems to a [`Sink`]: the verdict stops at the first
//! one without wording it, the explanation words all of them (`explain`) and continues.

use std::ops::ControlFlow;

use crate::compiled_schema::{
    Additional, CompiledSchema, Keywords, Literal, RuleIndex, RuleKind, TypeSet,
};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Entry, Node, NodeValue};
use crate::explain::{Explain, KeySpelling};

/// The rule of the whole document.
const ROOT: RuleIndex = 0;

impl CompiledSchema {
    /// Returns true if a value has no problems.
    #[must_use]
    pub fn fits(&self, value: &Node) -> bool {
        self.fits_rule(value, ROOT)
    }

    /// Every difference between a document and the schema, each with its place.
    #[must_use]
    pub fn problems(&self, document: &Document) -> Vec<Diagnostic> {
        self.problems_with(document, |_, _| None)
    }

    /// The same, with the spellings of keys that other tools use.
    #[must_use]
    pub fn problems_with(&self, document: &Document, spelling: KeySpelling) -> Vec<Diagnostic> {
        let explain = Explain::new(document, self, spelling);
        self.explain(document.root(), ROOT, "", &explain)
    }

    fn fits_rule(&self, node: &Node, rule: RuleIndex) -> bool {
        self.walk(node, rule, "", &mut Verdict).is_continue()
    }

    fn explain(
        &self,
        node: &Node,
        rule: RuleIndex,
        name: &str,
        explain: &Explain<'_>,
    ) -> Vec<Diagnostic> {
        let mut sink = Problems {
            explain,
            found: Vec::new(),
        };
        // This sink never breaks.
        let _ = self.walk(node, rule, name, &mut sink);
        sink.found
    }

    /// Compares one value with one rule. `name` is the key that led to the value.
    fn walk<S: Sink>(
        &self,
        node: &Node,
        rule: RuleIndex,
        name: &str,
        sink: &mut S,
    ) -> ControlFlow<()> {
        // Compiling writes only indexes of the table that it makes.
        match &self.0[rule].kind {
            RuleKind::Anything => ControlFlow::Continue(()),
            RuleKind::Nothing => sink.report(|explain| vec![explain.not_allowed(node, name)]),
            RuleKind::Values(values) if values.iter().any(|value| equals(node, value)) => {
                ControlFlow::Continue(())
            }
            RuleKind::Values(values) => {
                sink.report(|explain| vec![explain.not_in_set(node, values, name)])
            }
            RuleKind::AnyOf(branches) if branches.iter().any(|one| self.fits_rule(node, *one)) => {
                ControlFlow::Continue(())
            }
            RuleKind::AnyOf(branches) => {
                sink.report(|explain| self.no_branch_fits(node, rule, branches, name, explain))
            }
            RuleKind::Keywords(keywords) => self.keywords(node, rule, keywords, name, sink),
        }
    }

    fn keywords<S: Sink>(
        &self,
        node: &Node,
        rule: RuleIndex,
        keywords: &Keywords,
        name: &str,
        sink: &mut S,
    ) -> ControlFlow<()> {
        for part in keywords.all_of.iter() {
            self.walk(node, *part, name, sink)?;
        }
        if !keywords.types.overlaps(types_of(node)) {
            return sink.report(|explain| vec![explain.wrong_type(node, rule, name)]);
        }
        match &node.value {
            NodeValue::Mapping(entries) => {
                self.mapping(node, entries, rule, keywords, name, sink)?;
            }
            NodeValue::Sequence(items) => {
                if (items.len() as u64) < keywords.min_items {
                    sink.report(|explain| vec![explain.empty(node, rule, name)])?;
                }
                if let Some(each) = keywords.items {
                    for item in items {
                        self.walk(item, each, name, sink)?;
                    }
                }
            }
            NodeValue::Number(number) => {
                let Some(value) = number.as_f64() else {
                    return ControlFlow::Continue(());
                };
                let below = keywords.minimum.filter(|minimum| value < *minimum);
                let above = keywords.maximum.filter(|maximum| value > *maximum);
                if let Some(limit) = below.or(above) {
                    let side = if below.is_some() { "below" } else { "above" };
                    sink.report(|explain| {
                        vec![explain.out_of_range(node, rule, name, side, limit)]
                    })?;
                }
            }
            NodeValue::String(string) => {
                if keywords.min_length > 0 && (string.chars().count() as u64) < keywords.min_length
                {
                    sink.report(|explain| vec![explain.empty(node, rule, name)])?;
                }
            }
            NodeValue::Null | NodeValue::Bool(_) => {}
        }
        ControlFlow::Continue(())
    }

    fn mapping<S: Sink>(
        &self,
        node: &Node,
        entries: &[Entry],
        rule: RuleIndex,
        keywords: &Keywords,
        name: &str,
        sink: &mut S,
    ) -> ControlFlow<()> {
        let find = |key: &str| entries.iter().find(|entry| entry.key == key);
        for entry in entries {
            let Some(property) = keywords.property(&entry.key) else {
                match keywords.additional {
                    Additional::Any => {}
                    Additional::Forbidden => {
                        sink.report(|explain| vec![explain.unknown_key(entry, keywords, name)])?;
                    }
                    Additional::Rule(rule) => self.walk(&entry.value, rule, &entry.key, sink)?,
                }
                continue;
            };
            match property.alias_of.as_deref().and_then(find) {
                Some(canonical) => {
                    sink.report(|explain| vec![explain.two_spellings(entry, canonical)])?;
                }
                None => self.walk(&entry.value, property.rule, &entry.key, sink)?,
            }
        }
        for required in keywords.required.iter() {
            if find(required).is_none() {
                sink.report(|explain| vec![explain.missing_key(node, required, keywords, name)])?;
            }
        }
        let (min, max) = keywords.key_count;
        if !(min..=max).contains(&(entries.len() as u64)) {
            sink.report(|explain| vec![explain.wrong_type(node, rule, name)])?;
        }
        ControlFlow::Continue(())
    }

    /// Explains the branch that the author most likely meant: of those with the right type, the
    /// one with the fewest problems and unknown keys.
    fn no_branch_fits(
        &self,
        node: &Node,
        rule: RuleIndex,
        branches: &[RuleIndex],
        name: &str,
        explain: &Explain<'_>,
    ) -> Vec<Diagnostic> {
        let nearest = branches
            .iter()
            .filter(|branch| self.allows_type(node, **branch))
            .map(|branch| {
                let found = self.explain(node, *branch, name, explain);
                (found.len() + self.unknown_keys(node, *branch), found)
            })
            .min_by_key(|(distance, _)| *distance);
        match nearest {
            // A scalar has no parts to explain: the list of everything that fits helps more.
            Some((_, found))
                if matches!(node.value, NodeValue::Mapping(_) | NodeValue::Sequence(_))
                    || (found.len() == 1 && branches.len() == 2) =>
            {
                found
            }
            _ => vec![explain.wrong_type(node, rule, name)],
        }
    }

    fn allows_type(&self, node: &Node, rule: RuleIndex) -> bool {
        match &self.0[rule].kind {
            RuleKind::Anything | RuleKind::Nothing => true,
            RuleKind::Values(values) => values
                .iter()
                .any(|value| type_of_literal(value).overlaps(types_of(node))),
            RuleKind::AnyOf(branches) => branches
                .iter()
                .any(|branch| self.allows_type(node, *branch)),
            RuleKind::Keywords(keywords) => keywords.types.overlaps(types_of(node)),
        }
    }

    /// The number of the mapping's keys that the rule does not know.
    fn unknown_keys(&self, node: &Node, rule: RuleIndex) -> usize {
        match (&node.value, &self.0[rule].kind) {
            (NodeValue::Mapping(entries), RuleKind::Keywords(keywords))
                if !keywords.properties.is_empty() =>
            {
                entries
                    .iter()
                    .filter(|entry| keywords.property(&entry.key).is_none())
                    .count()
            }
            _ => 0,
        }
    }
}

/// The receiver of problems.
trait Sink {
    /// Takes the problems of one place, and stops the walk with `Break`.
    fn report(&mut self, problems: impl FnOnce(&Explain<'_>) -> Vec<Diagnostic>)
    -> ControlFlow<()>;
}

/// Stops at the first problem.
struct Verdict;

impl Sink for Verdict {
    fn report(&mut self, _: impl FnOnce(&Explain<'_>) -> Vec<Diagnostic>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Collects all problems.
struct Problems<'a> {
    explain: &'a Explain<'a>,
    found: Vec<Diagnostic>,
}

impl Sink for Problems<'_> {
    fn report(
        &mut self,
        problems: impl FnOnce(&Explain<'_>) -> Vec<Diagnostic>,
    ) -> ControlFlow<()> {
        self.found.extend(problems(self.explain));
        ControlFlow::Continue(())
    }
}

fn equals(node: &Node, literal: &Literal) -> bool {
    match (&node.value, literal) {
        (NodeValue::String(string), Literal::String(wanted)) => string == wanted,
        (NodeValue::String(_), _) | (_, Literal::String(_)) => false,
        (_, Literal::Json(wanted)) => node.to_json().to_string() == *wanted,
    }
}

/// The types of a value: a whole number is both an integer and a number.
fn types_of(node: &Node) -> TypeSet {
    match &node.value {
        NodeValue::Number(number) => {
            let whole = number.is_i64()
                || number.is_u64()
                || number.as_f64().is_some_and(|n| n.fract() == 0.0);
            if whole {
                TypeSet::INTEGER.union(TypeSet::NUMBER)
            } else {
                TypeSet::NUMBER
            }
        }
        NodeValue::Null => TypeSet::NULL,
        NodeValue::Bool(_) => TypeSet::BOOLEAN,
        NodeValue::String(_) => TypeSet::STRING,
        NodeValue::Sequence(_) => TypeSet::ARRAY,
        NodeValue::Mapping(_) => TypeSet::OBJECT,
    }
}

fn type_of_literal(literal: &Literal) -> TypeSet {
    let Literal::Json(json) = literal else {
        return TypeSet::STRING;
    };
    match json.as_bytes().first() {
        Some(b'n') => TypeSet::NULL,
        Some(b't' | b'f') => TypeSet::BOOLEAN,
        Some(b'[') => TypeSet::ARRAY,
        Some(b'{') => TypeSet::OBJECT,
        _ => TypeSet::NUMBER,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::DocumentLimits;

    fn definitions() -> Value {
        json!({
            "Text": {"type": "string", "minLength": 2},
            "Loop": {"$ref": "#/$defs/Loop"},
            "Tree": {
                "type": "object",
                "properties": {
                    "left": {"$ref": "#/$defs/Tree"},
                    "value": {"$ref": "#/$defs/Text"},
                },
                "additionalProperties": false,
            },
            "Nested": {"type": "array", "items": {"$ref": "#/$defs/Nested"}},
        })
    }

    /// Schemas that a general validator reads the same way.
    fn standard() -> Vec<Value> {
        vec![
            json!(true),
            json!(false),
            json!({}),
            json!({"$ref": "#/$defs/Text"}),
            json!({"$ref": "#/$defs/Tree"}),
            json!({"$ref": "#/$defs/Nested"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "integer", "minimum": 1, "maximum": 3}),
            json!({"type": "number", "minimum": 0}),
            json!({"const": "a"}),
            json!({"enum": ["ab", 2.5, null]}),
            json!({"oneOf": [{"const": "ab"}, {"const": "cd"}, {"type": "null"}]}),
            json!({"anyOf": [
                {"$ref": "#/$defs/Text"},
                {"type": "array", "items": {"$ref": "#/$defs/Text"}, "minItems": 1},
            ]}),
            json!({"type": "object", "required": ["value"], "minProperties": 1, "maxProperties": 2}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"allOf": [{"type": "object"}, {"required": ["value"]}]}),
        ]
    }

    /// Schemas with our annotations, with keywords that are ignored, or with references that lead
    /// nowhere.
    fn special() -> Vec<Value> {
        vec![
            json!({"$ref": "#/$defs/Loop"}),
            json!({"$ref": "#/$defs/None"}),
            json!({"not": {"required": ["left"]}}),
            json!({"properties": {
                "value": {"type": "string"},
                "word": {"x-mcptest-alias-of": "value"},
            }}),
        ]
    }

    const DOCUMENTS: [&str; 27] = [
        "",
        "a",
        "ab",
        "cd",
        "1",
        "1.0",
        "2.5",
        "4",
        "-1",
        "true",
        "null",
        "[]",
        "[ab]",
        "[a]",
        "[1, ab]",
        "[[], [[]]]",
        "{}",
        "{value: ab}",
        "{value: a}",
        "{value: 1}",
        "{word: ab}",
        "{word: 1}",
        "{word: ab, value: ab}",
        "{left: {left: {value: ab}}}",
        "{left: {left: {value: a}}}",
        "{left: {value: ab, more: 1}}",
        "{a: 1, b: 2, value: 3}",
    ];

    /// Calls `visit` with every pair of a schema and a document.
    fn for_all(schemas: Vec<Value>, mut visit: impl FnMut(&Value, &Document)) {
        for mut schema in schemas {
            if let Value::Object(map) = &mut schema {
                map.insert("$defs".to_owned(), definitions());
            }
            for text in DOCUMENTS {
                let document =
                    Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default()).unwrap();
                visit(&schema, &document);
            }
        }
    }

    #[test]
    fn a_document_fits_exactly_where_there_are_no_problems() {
        let (mut fitting, mut unfitting) = (0, 0);
        let schemas = standard().into_iter().chain(special()).collect();
        for_all(schemas, |schema, document| {
            let text = document.source().text();
            let compiled = CompiledSchema::compile(schema);
            let fits = compiled.fits(document.root());
            let problems = compiled.problems(document);
            assert_eq!(fits, problems.is_empty(), "{text} {schema}");
            let small = compiled.deduplicated();
            assert_eq!(small.fits(document.root()), fits, "{text} {schema}");
            let words = |problems: Vec<Diagnostic>| crate::Diagnostics(problems).to_string();
            let of_small = words(small.problems(document));
            assert_eq!(of_small, words(problems), "{text} {schema}");
            *(if fits { &mut fitting } else { &mut unfitting }) += 1;
        });
        assert!(fitting > 100 && unfitting > 100, "{fitting} {unfitting}");
    }

    #[test]
    fn the_verdict_is_that_of_a_general_validator() {
        for_all(standard(), |schema, document| {
            let expected = jsonschema::is_valid(schema, &document.root().to_json());
            let fits = CompiledSchema::compile(schema).fits(document.root());
            assert_eq!(fits, expected, "{} {schema}", document.source().text());
        });
    }

    #[test]
    fn both_spellings_of_a_key_cannot_be_set() {
        let schema = CompiledSchema::compile(&special()[3]);
        let fits = |text: &str| {
            let document =
                Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default()).unwrap();
            schema.fits(document.root())
        };
        assert!(fits("{word: ab}"));
        assert!(!fits("{word: 1}"));
        assert!(!fits("{word: ab, value: ab}"));
    }
}
