//! The lint of tool catalogs: one rule, one file, stable ids.
//!
//! Rules check a tool exactly as its server listed it, so a malformed tool gives findings and is
//! never dropped. `DESC` rules are about descriptions, `SCH` rules about the strictness of input
//! schemas, `TOOL` rules about entries that are not valid tools. `SEC` rules are about texts that
//! attack the model: [`security`] applies them, to everything that a server lists.

mod desc_001;
mod desc_002;
mod desc_003;
mod desc_004;
mod desc_005;
mod desc_006;
mod desc_007;
mod desc_008;
mod desc_009;
mod desc_010;
mod desc_011;
mod desc_012;
mod desc_013;
pub mod fix;
pub mod lines;
mod prose;
mod sch_001;
mod sch_002;
mod sch_003;
mod sch_004;
mod schema;
mod sec_001;
mod sec_002;
mod sec_003;
mod sec_004;
mod sec_005;
mod sec_006;
mod sec_007;
mod sec_008;
mod sec_009;
mod sec_010;
mod sec_011;
mod sec_013;
mod sec_014;
pub mod security;
mod snippet;
mod tool_001;
mod tool_002;
mod verbs;
pub mod waivers;
mod wording;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use mcptest_trace::catalog::Tool;

/// The severity of a finding.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing was found.
    Pass,
    /// Imperfect, but workable.
    Warning,
    /// An agent will likely struggle to use the tool.
    Critical,
}

impl Severity {
    /// The name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// A rule: its id, its reason, an example that it flags and one that it accepts, and the check.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// The stable id.
    pub id: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// The problem that it finds, in one line.
    pub title: &'static str,
    /// The reason for the rule, and its exact definition.
    pub why: &'static str,
    /// A tool that it flags, as JSON.
    pub bad: &'static str,
    /// The same tool, corrected.
    pub good: &'static str,
    /// The smell that its findings count as.
    pub smell: Option<Smell>,
    check: Check,
}

/// The check of a rule.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// Applied to a tool.
    Tool(fn(&Tool) -> Vec<Hit>),
    /// Applied to each string that a model reads.
    Text(fn(&security::Text<'_>, &security::Context<'_>) -> Option<Hit>),
    /// Applied to whole catalogs, elsewhere.
    Catalogs,
}

/// A place that a rule flagged.
#[derive(Debug)]
struct Hit {
    path: Option<String>,
    message: String,
    suggestion: String,
    fix: Option<String>,
    weight: u64,
    minor: bool,
    severity: Option<Severity>,
}

impl Hit {
    fn new(message: impl Into<String>, suggestion: impl Into<String>) -> Self {
        Self {
            path: None,
            message: message.into(),
            suggestion: suggestion.into(),
            fix: None,
            weight: 0,
            minor: false,
            severity: None,
        }
    }

    /// Sets the suggestion.
    fn suggest(mut self, suggestion: &str) -> Self {
        suggestion.clone_into(&mut self.suggestion);
        self
    }

    /// Sets a severity that is not the rule's.
    fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// Sets the text that can be pasted.
    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Sets the weight: of several places, the one with the greatest weight is shown.
    fn weight(mut self, weight: usize) -> Self {
        self.weight = u64::try_from(weight).unwrap_or(u64::MAX);
        self
    }

    /// Marks it as minor: not shown by default.
    fn minor_if(mut self, minor: bool) -> Self {
        self.minor = minor;
        self
    }

    fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}

/// All rules, in the order of reports.
pub const RULES: [&Rule; 32] = [
    &desc_001::RULE,
    &desc_002::RULE,
    &desc_003::RULE,
    &desc_004::RULE,
    &desc_005::RULE,
    &desc_006::RULE,
    &desc_007::RULE,
    &desc_008::RULE,
    &desc_009::RULE,
    &desc_010::RULE,
    &desc_011::RULE,
    &desc_012::RULE,
    &desc_013::RULE,
    &sch_001::RULE,
    &sch_002::RULE,
    &sch_003::RULE,
    &sch_004::RULE,
    &tool_001::RULE,
    &tool_002::RULE,
    &sec_001::RULE,
    &sec_002::RULE,
    &sec_003::RULE,
    &sec_004::RULE,
    &sec_005::RULE,
    &sec_006::RULE,
    &sec_007::RULE,
    &sec_008::RULE,
    &sec_009::RULE,
    &sec_010::RULE,
    &sec_011::RULE,
    &sec_013::RULE,
    &sec_014::RULE,
];

/// The rule with this id, in any case.
#[must_use]
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES
        .into_iter()
        .find(|rule| rule.id.eq_ignore_ascii_case(id))
}

/// The families of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `DESC`: descriptions and annotations.
    Description,
    /// `SCH`: strictness of input schemas.
    Schema,
    /// `TOOL`: entries that are not valid tools.
    Tool,
    /// `SEC`: texts that attack the model.
    Security,
}

/// The family that an id belongs to.
#[must_use]
pub fn family(rule: &str) -> Family {
    match rule.split_once('-').map(|(family, _)| family) {
        Some("SCH") => Family::Schema,
        Some("TOOL") => Family::Tool,
        Some("SEC") => Family::Security,
        _ => Family::Description,
    }
}

/// The kind of a description problem. Findings are counted by it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Smell {
    /// DESC-001, 006, 007, 013.
    Underspecified,
    /// DESC-002, 008.
    Verbose,
    /// DESC-003, 004.
    Uninformative,
    /// DESC-005.
    Brittle,
    /// DESC-009.
    MissingExamples,
    /// DESC-010.
    MissingReturnFormat,
    /// DESC-012.
    MissingAnnotations,
    /// DESC-011.
    InvalidAnnotation,
}

impl Smell {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 8] = [
        Self::Underspecified,
        Self::Verbose,
        Self::Uninformative,
        Self::Brittle,
        Self::MissingExamples,
        Self::MissingReturnFormat,
        Self::MissingAnnotations,
        Self::InvalidAnnotation,
    ];

    /// The name used in targets and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Underspecified => "underspecified",
            Self::Verbose => "verbose",
            Self::Uninformative => "uninformative",
            Self::Brittle => "brittle",
            Self::MissingExamples => "missing_examples",
            Self::MissingReturnFormat => "missing_return_format",
            Self::MissingAnnotations => "missing_annotations",
            Self::InvalidAnnotation => "invalid_annotation",
        }
    }
}

/// The kind of an entry of a catalog.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A tool.
    #[default]
    Tool,
    /// The instructions of a server.
    Instructions,
    /// A prompt.
    Prompt,
    /// A resource, or a template of resources.
    Resource,
}

impl Entry {
    fn is_tool(&self) -> bool {
        *self == Self::Tool
    }
}

/// One result of the lint for one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Finding {
    /// The server, where the catalog has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's name; `#3` for the third entry of the list if it has none. For entries of
    /// another kind, that kind and its name.
    pub tool: String,
    /// The kind of the entry.
    #[serde(default, skip_serializing_if = "Entry::is_tool")]
    pub entry: Entry,
    /// The entry of the list, from 0.
    pub index: usize,
    /// The rule's id; none for the pass of a clean tool.
    pub rule: Option<String>,
    /// The severity.
    pub severity: Severity,
    /// The problem.
    pub message: String,
    /// The suggested change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// A fix to paste: a fragment of the tool's JSON, or a sentence. Placeholders in angle brackets
    /// mark what only the author knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The place in the tool, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The weight among the places of one rule on one tool.
    #[serde(skip)]
    weight: u64,
    /// True if it is not shown by default: it counts, but few authors would act on it.
    #[serde(skip)]
    minor: bool,
    /// The reason of the waiver that accepts it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

impl Finding {
    fn new(server: Option<&str>, index: usize, tool: String, rule: &Rule, hit: Hit) -> Self {
        Self {
            server: server.map(Into::into),
            tool,
            entry: Entry::Tool,
            index,
            rule: Some(rule.id.to_owned()),
            severity: hit.severity.unwrap_or(rule.severity),
            message: hit.message,
            suggestion: Some(hit.suggestion).filter(|text| !text.is_empty()),
            fix: hit.fix,
            path: hit.path,
            weight: hit.weight,
            minor: hit.minor,
            waived: None,
        }
    }

    /// Returns true if it counts: a rule fired, and no waiver covers it.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.severity != Severity::Pass && self.waived.is_none()
    }
}

/// Returns true if a word, in lowercase, is the base form of a common verb of descriptions.
#[must_use]
pub fn is_common_verb(word: &str) -> bool {
    verbs::is_verb(word)
}

/// The label of an entry: its name, else its position from 1.
#[must_use]
pub fn label(index: usize, listed: &Value) -> String {
    match listed.get("name").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => format!("#{}", index + 1),
    }
}

/// Lints a `tools/list` result, entry by entry. A clean entry gives a single pass.
#[must_use]
pub fn lint(server: Option<&str>, listed: &[Value]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = listed
        .iter()
        .enumerate()
        .flat_map(|(index, entry)| lint_entry(server, index, entry))
        .collect();
    desc_006::borrow_descriptions(listed, &mut findings);
    findings
}

fn lint_entry(server: Option<&str>, index: usize, entry: &Value) -> Vec<Finding> {
    let finding =
        |rule: &Rule, hit: Hit| Finding::new(server, index, label(index, entry), rule, hit);
    let Some(tool) = Tool::from_listing(None, entry) else {
        return vec![finding(&tool_001::RULE, tool_001::not_an_object(entry))];
    };
    let mut found = Vec::new();
    for rule in RULES {
        if let Check::Tool(check) = rule.check {
            found.extend(check(&tool).into_iter().map(|hit| finding(rule, hit)));
        }
    }
    if found.is_empty() {
        found.push(pass(server, index, entry));
    }
    found
}

/// Drops the passes of tools that have a finding after all.
pub(crate) fn drop_passes(findings: &mut Vec<Finding>) {
    let found: BTreeSet<(Option<String>, usize)> = findings
        .iter()
        .filter(|finding| finding.severity != Severity::Pass && finding.entry == Entry::Tool)
        .map(|finding| (finding.server.clone(), finding.index))
        .collect();
    findings.retain(|finding| {
        finding.severity != Severity::Pass
            || !found.contains(&(finding.server.clone(), finding.index))
    });
}

/// The single result of a clean entry.
fn pass(server: Option<&str>, index: usize, entry: &Value) -> Finding {
    Finding {
        rule: None,
        severity: Severity::Pass,
        ..Finding::new(
            server,
            index,
            label(index, entry),
            &tool_001::RULE,
            Hit::new("no rule fired", ""),
        )
    }
}

/// The description without surrounding whitespace; empty where there is none.
fn description(tool: &Tool) -> &str {
    tool.description().unwrap_or("").trim()
}

/// The length in characters.
fn chars(text: &str) -> usize {
    text.chars().count()
}

/// The four annotation hints of the protocol.
pub(crate) const ANNOTATION_HINTS: [&str; 4] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// Returns true if a description mentions the result, by a coarse test that needs no model.
pub(crate) fn describes_return(tool: &Tool) -> bool {
    tool.raw().get("outputSchema").is_some_and(Value::is_object)
        || whole_words(description(tool)).any(|word| RESULT_WORDS.contains(&word.as_str()))
}

/// Words for a result. Whole words only: `output_path` and `resultant` do not describe one.
const RESULT_WORDS: [&str; 10] = [
    "return",
    "returns",
    "returned",
    "returning",
    "output",
    "outputs",
    "result",
    "results",
    "resulted",
    "resulting",
];

/// The words of a string in lowercase: letters, digits and underscores.
fn whole_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|one: char| !one.is_alphanumeric() && one != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Returns true if a text contains another one as whole words, in any case.
fn mentions(text: &str, wanted: &str) -> bool {
    let (text, wanted) = (text.to_lowercase(), wanted.to_lowercase());
    let is_word = |one: char| one.is_alphanumeric() || one == '_';
    !wanted.is_empty()
        && text.match_indices(&wanted).any(|(start, found)| {
            let before = text[..start].chars().next_back();
            let after = text[start + found.len()..].chars().next();
            // A value such as `>=` has no boundary of words.
            let open_start = !wanted.starts_with(is_word) || !before.is_some_and(is_word);
            let open_end = !wanted.ends_with(is_word) || !after.is_some_and(is_word);
            open_start && open_end
        })
}

/// Returns true if a description only repeats the name (DESC-003).
pub(crate) fn repeats_name(tool: &Tool) -> bool {
    desc_003::repeats(tool)
}

/// The number of arguments with a description, and of all arguments.
pub(crate) fn documented_arguments(tool: &Tool) -> (usize, usize) {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let all = schema::properties(root);
    let documented = all
        .iter()
        .filter(|(_, property)| schema::describes(root, property));
    (documented.count(), all.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rules(listed: &Value) -> Vec<String> {
        let tools = std::slice::from_ref(listed);
        let texts = security::lint(&[security::Listing {
            tools,
            ..security::Listing::default()
        }]);
        lint(None, tools)
            .into_iter()
            .chain(texts)
            .filter_map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn the_registry_has_no_gaps_and_its_examples_hold() {
        let mut ids = BTreeSet::new();
        for rule in RULES {
            assert!(ids.insert(rule.id), "{} is listed twice", rule.id);
            assert!(!rule.title.is_empty() && rule.why.len() > 40, "{}", rule.id);
            assert!(find(&rule.id.to_lowercase()).is_some());
            let bad: Value = serde_json::from_str(rule.bad)
                .unwrap_or_else(|error| panic!("{}: {error}", rule.id));
            let good: Value = serde_json::from_str(rule.good)
                .unwrap_or_else(|error| panic!("{}: {error}", rule.id));
            // A single tool cannot have changed since a pin.
            assert!(
                rules(&bad).contains(&rule.id.to_owned()) || matches!(rule.check, Check::Catalogs),
                "{} misses its bad example",
                rule.id
            );
            assert_eq!(
                rules(&good),
                Vec::<String>::new(),
                "the good example of {}",
                rule.id
            );
        }
        let documented = (1..=13)
            .map(|number| format!("DESC-{number:03}"))
            .chain((1..=4).map(|number| format!("SCH-{number:03}")));
        for id in documented {
            assert!(ids.contains(id.as_str()), "{id}");
        }
    }

    #[test]
    fn severities_and_smells_are_as_decided() {
        for rule in RULES {
            let critical = ["DESC-001", "DESC-003", "SCH-003", "TOOL-001", "TOOL-002"]
                .contains(&rule.id)
                || (family(rule.id) == Family::Security
                    && !["SEC-006", "SEC-010", "SEC-014"].contains(&rule.id));
            let wanted = if critical {
                Severity::Critical
            } else {
                Severity::Warning
            };
            assert_eq!(rule.severity, wanted, "{}", rule.id);
        }
        let of = |smell: Smell| -> Vec<&str> {
            RULES
                .into_iter()
                .filter(|rule| rule.smell == Some(smell))
                .map(|rule| rule.id)
                .collect()
        };
        assert_eq!(
            of(Smell::Underspecified),
            ["DESC-001", "DESC-006", "DESC-007", "DESC-013"]
        );
        assert_eq!(of(Smell::Verbose), ["DESC-002", "DESC-008"]);
        assert_eq!(of(Smell::Uninformative), ["DESC-003", "DESC-004"]);
        assert_eq!(of(Smell::Brittle), ["DESC-005"]);
        assert_eq!(of(Smell::MissingExamples), ["DESC-009"]);
        assert_eq!(of(Smell::MissingReturnFormat), ["DESC-010"]);
        assert_eq!(of(Smell::MissingAnnotations), ["DESC-012"]);
        assert_eq!(of(Smell::InvalidAnnotation), ["DESC-011"]);
    }

    #[test]
    fn a_clean_tool_is_one_pass() {
        let clean = json!({
            "name": "now", "description": "Get the current time. Returns an RFC 3339 text.",
            "inputSchema": {"type": "object", "properties": {}}, "annotations": {}
        });
        let findings = lint(Some("clock"), &[clean]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Pass);
        assert_eq!(findings[0].rule, None);
        assert_eq!(findings[0].server.as_deref(), Some("clock"));
    }

    #[test]
    fn malformed_entries_are_findings() {
        let listed = [
            json!("get_weather"),
            json!(null),
            json!({"description": "Get the weather of a city. Returns text."}),
            json!({"name": "a", "description": 7, "inputSchema": [], "annotations": "x"}),
            json!({"name": "b", "description": "Get the weather of a city. Returns text.",
                   "annotations": {"readOnlyHint": null}, "inputSchema": {"properties": {"x": null, "y": {}}, "required": "x"}}),
        ];
        let findings = lint(None, &listed);
        let of = |index: usize| -> Vec<&str> {
            findings
                .iter()
                .filter(|finding| finding.index == index)
                .filter_map(|finding| finding.rule.as_deref())
                .collect()
        };
        assert_eq!(of(0), ["TOOL-001"]);
        assert_eq!(of(1), ["TOOL-001"]);
        assert_eq!(findings[0].tool, "#1");
        assert_eq!(of(2), ["DESC-012", "TOOL-001", "TOOL-002"]);
        assert_eq!(of(3), ["DESC-001", "DESC-012", "TOOL-002"]);
        assert_eq!(
            of(4),
            [
                "DESC-009", "DESC-011", "SCH-001", "SCH-002", "SCH-003", "SCH-003", "TOOL-002"
            ]
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "(one of|string|object|\\PC){0,12}".prop_map(Value::from),
        ];
        let key = prop_oneof![
            Just("name".to_owned()),
            Just("description".to_owned()),
            Just("inputSchema".to_owned()),
            Just("properties".to_owned()),
            Just("type".to_owned()),
            Just("items".to_owned()),
            Just("enum".to_owned()),
            Just("required".to_owned()),
            Just("annotations".to_owned()),
            Just("$ref".to_owned()),
            Just("anyOf".to_owned()),
            "[a-z]{1,3}",
        ];
        leaf.prop_recursive(6, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_catalog_makes_the_lint_panic(listed in prop::collection::vec(any_json(), 0..4)) {
            let findings = lint(None, &listed);
            for index in 0..listed.len() {
                prop_assert!(findings.iter().any(|finding| finding.index == index));
            }
            let (fixed, _) = fix::fix(&listed);
            prop_assert_eq!(fixed.len(), listed.len());
            let quality = crate::quality::assess(&listed);
            for tool in &quality.tools {
                prop_assert!((0.0..=1.0).contains(&tool.score));
            }
        }
    }
}
