//! The spec as written, and its checks.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::mutation::{Mutation, MutationKind};
use crate::lexical::words;
use mcptest_json::text::one_line;
use mcptest_trace::catalog::Tool;

/// A benchmark of tool descriptions: a catalog, requests with the correct tools, and edits of
/// descriptions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcptest tool-bench spec")]
pub struct BenchSpec {
    /// The tools as in a `tools/list` result: the result with its `tools`, or the list alone.
    pub catalog: Option<InlineCatalog>,
    /// A file with the tools: a captured `tools/list` result or a mock manifest. A relative path
    /// starts at the spec's folder.
    pub catalog_path: Option<String>,
    /// The requests.
    #[schemars(length(min = 1))]
    pub intents: Vec<IntentSpec>,
    /// The edits to try, one at a time.
    #[serde(default)]
    pub mutations: Vec<MutationSpec>,
}

/// A request and the correct tools for it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentSpec {
    /// The request in the user's words.
    #[schemars(length(min = 1))]
    pub query: String,
    /// The names of the tools that count as a correct pick.
    #[schemars(length(min = 1))]
    pub gold: Vec<String>,
}

/// An edit of one tool's description.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MutationSpec {
    /// The name of the tool.
    pub tool: String,
    /// The kind of edit.
    pub kind: KindSpec,
    /// For `truncate`: the number of characters to keep.
    pub chars: Option<u64>,
    /// For `drop_keyword`: the word to remove.
    pub word: Option<String>,
}

/// Kinds of edits of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindSpec {
    /// Remove the description.
    Blank,
    /// Replace the description by a phrase without content.
    Genericize,
    /// Keep only the first `chars` characters.
    Truncate,
    /// Remove every occurrence of `word`.
    DropKeyword,
}

impl fmt::Display for KindSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank",
            Self::Genericize => "genericize",
            Self::Truncate => "truncate",
            Self::DropKeyword => "drop_keyword",
        })
    }
}

/// Tools written into the spec.
#[derive(Debug, Clone, PartialEq)]
pub struct InlineCatalog(pub Vec<Tool>);

impl<'de> Deserialize<'de> for InlineCatalog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = match Value::deserialize(deserializer)? {
            Value::Object(mut result) => result.remove("tools").unwrap_or(Value::Null),
            list => list,
        };
        let Value::Array(list) = list else {
            return Err(serde::de::Error::custom(
                "expected a list of tools, or a mapping with `tools`",
            ));
        };
        list.iter()
            .map(|tool| {
                Tool::from_listing(None, tool)
                    .ok_or_else(|| serde::de::Error::custom("a tool is a mapping"))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl JsonSchema for InlineCatalog {
    fn schema_name() -> Cow<'static, str> {
        "InlineCatalog".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let tools = || {
            json_schema!({
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string", "description": "The tool's name."},
                        "description": {"type": ["string", "null"], "description": "What the tool does, for the model."},
                    },
                },
            })
        };
        json_schema!({
            "anyOf": [
                tools(),
                {"type": "object", "required": ["tools"], "properties": {"tools": tools()}},
            ],
            "x-mcptest-expected": "a list of tools, or a mapping with `tools`",
        })
    }
}

/// The JSON Schema of the spec file.
#[must_use]
pub fn spec_schema() -> Value {
    let mut schema = SchemaGenerator::default()
        .into_root_schema_for::<BenchSpec>()
        .to_value();
    mcptest_json::schema::join_description_lines(&mut schema);
    schema
}

/// A problem of a spec that fits the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place, as a JSON pointer into the spec.
    pub pointer: String,
    /// The problem.
    pub message: String,
    /// The unknown word, for a suggestion.
    pub unknown_tool: Option<String>,
}

impl Problem {
    fn new(pointer: String, message: impl Into<String>) -> Self {
        Self {
            pointer,
            message: message.into(),
            unknown_tool: None,
        }
    }

    fn unknown(pointer: String, tool: &str) -> Self {
        Self {
            pointer,
            message: format!("there is no tool `{}` in the catalog", one_line(tool)),
            unknown_tool: Some(tool.to_owned()),
        }
    }
}

impl BenchSpec {
    /// Checks that the catalog is either in the spec or in a file.
    #[must_use]
    pub fn source_problem(&self) -> Option<Problem> {
        match (&self.catalog, &self.catalog_path) {
            (Some(_), Some(_)) => Some(Problem::new(
                "/catalog_path".into(),
                "both `catalog` and `catalog_path` are set: keep one of them",
            )),
            (None, None) => Some(Problem::new(
                String::new(),
                "there is no catalog: set `catalog` or `catalog_path`",
            )),
            _ => None,
        }
    }

    /// The mutations, ready to be applied to these tools.
    ///
    /// # Errors
    /// Every mutation of an unknown tool, and every parameter that is missing, unused or invalid.
    pub fn mutations(&self, tools: &[Tool]) -> Result<Vec<Mutation>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut mutations = Vec::new();
        for (index, spec) in self.mutations.iter().enumerate() {
            let at = format!("/mutations/{index}");
            let before = problems.len();
            if !tools.iter().any(|tool| tool.name() == spec.tool) {
                problems.push(Problem::unknown(format!("{at}/tool"), &spec.tool));
            }
            let kind = kind_of(spec, &at, &mut problems);
            if let Some(kind) = kind
                && problems.len() == before
            {
                mutations.push(Mutation {
                    tool: spec.tool.clone(),
                    kind,
                });
            }
        }
        if problems.is_empty() {
            Ok(mutations)
        } else {
            Err(problems)
        }
    }

    /// Warnings: gold tools that are not in the catalog can never be picked.
    #[must_use]
    pub fn doubts(&self, tools: &[Tool]) -> Vec<Problem> {
        let mut doubts = Vec::new();
        for (index, intent) in self.intents.iter().enumerate() {
            for (place, name) in intent.gold.iter().enumerate() {
                if !tools.iter().any(|tool| tool.name() == name) {
                    doubts.push(Problem::unknown(
                        format!("/intents/{index}/gold/{place}"),
                        name,
                    ));
                }
            }
        }
        doubts
    }
}

/// The kind with its parameter: the one that it needs and no other.
fn kind_of(spec: &MutationSpec, at: &str, problems: &mut Vec<Problem>) -> Option<MutationKind> {
    if spec.chars.is_some() && spec.kind != KindSpec::Truncate {
        let message = format!("`chars` belongs to `truncate`, not to `{}`", spec.kind);
        problems.push(Problem::new(format!("{at}/chars"), message));
    }
    if spec.word.is_some() && spec.kind != KindSpec::DropKeyword {
        let message = format!("`word` belongs to `drop_keyword`, not to `{}`", spec.kind);
        problems.push(Problem::new(format!("{at}/word"), message));
    }
    match (spec.kind, spec.chars, &spec.word) {
        (KindSpec::Blank, ..) => Some(MutationKind::Blank),
        (KindSpec::Genericize, ..) => Some(MutationKind::Genericize),
        (KindSpec::Truncate, Some(chars), _) => Some(MutationKind::Truncate { chars }),
        (KindSpec::DropKeyword, _, Some(word)) => match words(word).as_slice() {
            [word] => Some(MutationKind::DropKeyword { word: word.clone() }),
            found => {
                let count = if found.is_empty() {
                    "no word"
                } else {
                    "several words"
                };
                let message = format!("`word` must be one word; `{}` is {count}", one_line(word));
                problems.push(Problem::new(format!("{at}/word"), message));
                None
            }
        },
        (KindSpec::Truncate, None, _) => {
            problems.push(Problem::new(
                format!("{at}/kind"),
                "`truncate` needs `chars`: the number of characters to keep",
            ));
            None
        }
        (KindSpec::DropKeyword, _, None) => {
            problems.push(Problem::new(
                format!("{at}/kind"),
                "`drop_keyword` needs `word`: the word to remove",
            ));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> BenchSpec {
        serde_json::from_value(value).unwrap()
    }

    fn with_mutations(mutations: Value) -> (BenchSpec, Vec<Tool>) {
        let spec = spec(json!({
            "catalog": [{"name": "a"}],
            "intents": [{"query": "x", "gold": ["a", "b"]}],
            "mutations": mutations,
        }));
        let tools = spec.catalog.clone().unwrap().0;
        (spec, tools)
    }

    #[test]
    fn a_catalog_is_a_result_or_a_list() {
        let intents = json!([{"query": "x", "gold": ["a"]}]);
        let list = spec(json!({"catalog": [{"name": "a"}], "intents": intents}));
        let result = spec(
            json!({"catalog": {"tools": [{"name": "a"}], "nextCursor": "n"}, "intents": intents}),
        );
        assert_eq!(list.catalog, result.catalog);
        for bad in [
            json!({"tool": []}),
            json!(3),
            json!(["a"]),
            json!({"tools": {}}),
        ] {
            assert!(
                serde_json::from_value::<BenchSpec>(json!({"catalog": bad, "intents": intents}))
                    .is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_catalog_comes_from_one_place() {
        let intents = json!([{"query": "x", "gold": ["a"]}]);
        let problem = |value| spec(value).source_problem().map(|problem| problem.pointer);
        assert_eq!(problem(json!({"catalog": [], "intents": intents})), None);
        assert_eq!(
            problem(json!({"catalog_path": "x", "intents": intents})),
            None
        );
        assert_eq!(problem(json!({"intents": intents})).as_deref(), Some(""));
        assert_eq!(
            problem(json!({"catalog": [], "catalog_path": "x", "intents": intents})).as_deref(),
            Some("/catalog_path")
        );
    }

    #[test]
    fn every_invalid_mutation_is_reported_with_its_place() {
        let (spec, tools) = with_mutations(json!([
            {"tool": "zz", "kind": "blank"},
            {"tool": "a", "kind": "truncate"},
            {"tool": "a", "kind": "truncate", "chars": 3, "word": "x"},
            {"tool": "a", "kind": "drop_keyword"},
            {"tool": "a", "kind": "drop_keyword", "word": "two words"},
            {"tool": "a", "kind": "drop_keyword", "word": "!"},
            {"tool": "a", "kind": "blank", "chars": 3},
        ]));
        let problems = spec.mutations(&tools).unwrap_err();
        let places: Vec<&str> = problems
            .iter()
            .map(|problem| problem.pointer.as_str())
            .collect();
        assert_eq!(
            places,
            [
                "/mutations/0/tool",
                "/mutations/1/kind",
                "/mutations/2/word",
                "/mutations/3/kind",
                "/mutations/4/word",
                "/mutations/5/word",
                "/mutations/6/chars",
            ]
        );
        assert_eq!(problems[0].unknown_tool.as_deref(), Some("zz"));
    }

    #[test]
    fn unknown_keys_are_rejected() {
        let intents = json!([{"query": "x", "gold": ["a"]}]);
        for bad in [
            json!({"catalog": [], "intents": intents, "more": 1}),
            json!({"catalog": [], "intents": [{"query": "x", "gold": ["a"], "more": 1}]}),
            json!({"catalog": [], "intents": intents, "mutations": [{"tool": "a", "kind": "blank", "more": 1}]}),
            json!({"catalog": [], "intents": intents, "mutations": [{"tool": "a", "kind": "shout"}]}),
        ] {
            assert!(
                serde_json::from_value::<BenchSpec>(bad.clone()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_missing_gold_tool_is_a_warning() {
        let (spec, tools) = with_mutations(json!([]));
        let doubts = spec.doubts(&tools);
        assert_eq!(doubts.len(), 1);
        assert_eq!(doubts[0].pointer, "/intents/0/gold/1");
    }
}
