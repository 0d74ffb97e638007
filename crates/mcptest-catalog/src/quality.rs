//! TDQS, the tool description quality score: six heuristics in 0..1, and their mean.
//!
//! | heuristic | figure | 0 | 1 |
//! |---|---|---|---|
//! | `presence` | yes or no | no description, or one that only repeats the name | a description |
//! | `length` | characters / 60, at most 1 | nothing | 60 characters and more |
//! | `parameters` | arguments with a description / arguments | no argument is described, or there is no input schema | all are, or there are none |
//! | `conciseness` | 1 up to 500 characters, then falling by 1 per 1,000 more | no description, or 1,500 characters and more | 1 to 500 characters |
//! | `return_format` | yes or no | no word of return, output or result, and no `outputSchema` | either of them |
//! | `annotations` | 0, ½ or 1 | no `annotations` object | at least one hint, and all hints boolean; ½ for an object that has none or a wrong one |
//!
//! Lengths are in characters, without surrounding whitespace. The formulas are ours: simple enough
//! to be computed by hand, and monotone, so that fixing a finding of the [lint] never lowers a
//! score. Means are exact and rounded once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::lint::{self, ANNOTATION_HINTS, Family, Finding, Severity, Smell};
use mcptest_json::pointer_join;
use mcptest_numbers::ratio::{self, Ratio};
use mcptest_trace::bounds;
use mcptest_trace::catalog::Tool;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::outcome::{GateOutcome, Unit};
use mcptest_trace::verdict::Verdict;

/// The length from which a description is long enough.
const LONG_ENOUGH: u64 = 60;
/// The length up to which a description is concise.
const CONCISE: u64 = 500;
/// The number of further characters after which conciseness is 0.
const FALL: u64 = 1000;

/// The description quality of a catalog.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Quality {
    /// The worst tool's score; `None` for an empty catalog.
    pub min_score: Option<f64>,
    /// The mean over all tools.
    pub mean_score: Option<f64>,
    /// 60 % mean and 40 % worst.
    pub catalog_score: Option<f64>,
    /// `DESC` findings that are critical.
    pub critical_count: u64,
    /// `DESC` findings that are warnings.
    pub warning_count: u64,
    /// `SCH` findings that are critical.
    pub schema_criticals: u64,
    /// `SCH` findings that are warnings.
    pub schema_warnings: u64,
    /// `TOOL` findings: entries that are not valid tools.
    pub malformed_count: u64,
    /// `DESC` findings by smell, every smell with its count.
    pub smells: BTreeMap<&'static str, u64>,
    /// The number of `DESC` findings.
    pub smell_total: u64,
    /// Each tool, in the order of the list.
    pub tools: Vec<ToolQuality>,
    /// The findings of the lint.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// The description quality of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolQuality {
    /// The tool.
    pub name: String,
    /// The mean of the six heuristics.
    pub score: f64,
    /// Score for having a description.
    pub presence: f64,
    /// Score for its length.
    pub length: f64,
    /// The share of arguments with a description.
    pub parameters: f64,
    /// Score for conciseness.
    pub conciseness: f64,
    /// Score for describing the result.
    pub return_format: f64,
    /// Score for annotation hints.
    pub annotations: f64,
}

/// Scores and lints a `tools/list` result.
#[must_use]
pub fn assess(listed: &[Value]) -> Quality {
    let figures: Vec<[Ratio; 6]> = listed.iter().map(heuristics).collect();
    let tools: Vec<ToolQuality> = listed
        .iter()
        .enumerate()
        .zip(&figures)
        .map(|((index, entry), six)| tool_quality(lint::label(index, entry), six))
        .collect();
    let all: Vec<Ratio> = figures.iter().flatten().cloned().collect();
    let mean_score = ratio::mean(&all);
    let min_score = tools.iter().map(|tool| tool.score).reduce(f64::min);
    let catalog_score = figures
        .iter()
        .min_by(|a, b| six_mean(a).total_cmp(&six_mean(b)))
        .and_then(|worst| catalog_score(&all, worst));
    let findings = lint::lint(None, listed);
    let count = |family: Family, severity: Severity| {
        findings
            .iter()
            .filter(|finding| {
                finding.severity == severity
                    && finding
                        .rule
                        .as_deref()
                        .is_some_and(|rule| lint::family(rule) == family)
            })
            .count() as u64
    };
    let mut smells: BTreeMap<&'static str, u64> =
        Smell::ALL.iter().map(|smell| (smell.as_str(), 0)).collect();
    for finding in &findings {
        let smell = finding
            .rule
            .as_deref()
            .and_then(lint::find)
            .and_then(|rule| rule.smell);
        if let Some(smell) = smell {
            *smells.entry(smell.as_str()).or_default() += 1;
        }
    }
    Quality {
        min_score,
        mean_score,
        catalog_score,
        critical_count: count(Family::Description, Severity::Critical),
        warning_count: count(Family::Description, Severity::Warning),
        schema_criticals: count(Family::Schema, Severity::Critical),
        schema_warnings: count(Family::Schema, Severity::Warning),
        malformed_count: count(Family::Tool, Severity::Critical),
        smell_total: smells.values().sum(),
        smells,
        tools,
        findings,
    }
}

fn six_mean(six: &[Ratio; 6]) -> f64 {
    ratio::mean(six).unwrap_or(0.0)
}

/// The mean of all scores has weight three, the worst tool's score weight two; computed as one
/// mean, which is rounded once.
fn catalog_score(all: &[Ratio], worst: &[Ratio; 6]) -> Option<f64> {
    let tools = all.len() / 6;
    let mut weighed = Vec::with_capacity(5 * all.len());
    for _ in 0..3 {
        weighed.extend(all.iter().cloned());
    }
    for _ in 0..2 * tools {
        weighed.extend(worst.iter().cloned());
    }
    ratio::mean(&weighed)
}

fn tool_quality(name: String, six: &[Ratio; 6]) -> ToolQuality {
    let [
        presence,
        length,
        parameters,
        conciseness,
        return_format,
        annotations,
    ] = six.each_ref().map(Ratio::to_f64);
    ToolQuality {
        name,
        score: six_mean(six),
        presence,
        length,
        parameters,
        conciseness,
        return_format,
        annotations,
    }
}

fn heuristics(entry: &Value) -> [Ratio; 6] {
    let nothing = || Ratio::new(0_u8, 1_u8);
    let one_if = |yes: bool| if yes { Ratio::one() } else { nothing() };
    let Some(tool) = Tool::from_listing(None, entry) else {
        return std::array::from_fn(|_| nothing());
    };
    let description = tool.description().unwrap_or("").trim();
    let length = description.chars().count() as u64;
    let parameters = match (tool.input_schema(), lint::documented_arguments(&tool)) {
        (Some(Value::Object(_)), (_, 0)) => Ratio::one(),
        (Some(Value::Object(_)), (documented, all)) => Ratio::new(documented as u64, all as u64),
        _ => nothing(),
    };
    [
        one_if(length > 0 && !lint::repeats_name(&tool)),
        Ratio::new(length.min(LONG_ENOUGH), LONG_ENOUGH),
        parameters,
        if length == 0 {
            nothing()
        } else {
            Ratio::new(FALL.saturating_sub(length.saturating_sub(CONCISE)), FALL)
        },
        one_if(lint::describes_return(&tool)),
        annotations(&tool),
    ]
}

fn annotations(tool: &Tool) -> Ratio {
    let Some(annotations) = tool.raw().get("annotations").and_then(Value::as_object) else {
        return Ratio::new(0_u8, 1_u8);
    };
    let hints: Vec<&Value> = ANNOTATION_HINTS
        .iter()
        .filter_map(|hint| annotations.get(*hint))
        .collect();
    if !hints.is_empty() && hints.iter().all(|hint| hint.is_boolean()) {
        Ratio::one()
    } else {
        Ratio::new(1_u8, 2_u8)
    }
}

/// The block's name in a suite and in reports.
pub const BLOCK: &str = "tool_quality";

/// The targets of a `tool_quality:` block with descriptions, in addition to `tool["name"].score`.
pub const TARGETS: [(&str, &str); 17] = [
    ("min_score", "the worst tool's score, 0..1"),
    ("mean_score", "the mean score, 0..1"),
    ("catalog_score", "60 % mean and 40 % worst, 0..1"),
    ("critical_count", "critical `DESC` findings"),
    ("warning_count", "`DESC` findings that are warnings"),
    ("schema_criticals", "critical `SCH` findings"),
    ("schema_warnings", "`SCH` findings that are warnings"),
    (
        "malformed_count",
        "`TOOL` findings: entries that are not valid tools",
    ),
    (
        "smells.underspecified",
        "findings of DESC-001, 006, 007, 013",
    ),
    ("smells.verbose", "findings of DESC-002, 008"),
    ("smells.uninformative", "findings of DESC-003, 004"),
    ("smells.brittle", "findings of DESC-005"),
    ("smells.missing_examples", "findings of DESC-009"),
    ("smells.missing_return_format", "findings of DESC-010"),
    ("smells.missing_annotations", "findings of DESC-012"),
    ("smells.invalid_annotation", "findings of DESC-011"),
    ("smell_total", "all of these findings"),
];

/// The expectations of a block without its own.
#[must_use]
pub fn defaults() -> Vec<Expectation> {
    vec![
        Expectation::default_of("min_score", Matcher::at_least(json!(0.5))),
        Expectation::default_of("mean_score", Matcher::at_least(json!(0.7))),
        Expectation::default_of("critical_count", Matcher::at_most(0)),
    ]
}

/// Compiles the `expect:` list of a block; pointers of problems start at `at`.
///
/// # Errors
/// All problems, unknown targets included.
pub fn expectations(
    written: &[WrittenExpectation],
    at: &str,
) -> Result<Vec<Expectation>, Vec<Problem>> {
    if written.is_empty() {
        return Ok(defaults());
    }
    let mut all = Vec::new();
    let mut problems = Vec::new();
    for (index, one) in written.iter().enumerate() {
        let at = pointer_join(at, &index.to_string());
        match Expectation::compile(one, &at) {
            Ok(expectation) if is_target(&expectation) => {
                problems.extend(expectation.refuse_judge(one, &at, "`tool_quality`"));
                all.push(expectation);
            }
            Ok(expectation) => problems.push(unknown(&expectation, one, &at)),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        Ok(all)
    } else {
        Err(problems)
    }
}

/// Warnings about bounds that the range of their target makes pointless; pointers start at `at`.
#[must_use]
pub fn bound_warnings(written: &[WrittenExpectation], at: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, one) in written.iter().enumerate() {
        let at = pointer_join(at, &index.to_string());
        if let Ok(expectation) = Expectation::compile(one, &at) {
            let target = expectation.target.as_str();
            let unit = if target.ends_with("score") {
                Unit::Fraction
            } else {
                Unit::Count
            };
            found.extend(bounds::warnings(one, target, unit, &at));
        }
    }
    found
}

fn is_target(expectation: &Expectation) -> bool {
    match expectation.target.keys().as_deref() {
        Some(["tool", _, "score"]) => true,
        Some(keys) => {
            let path = keys.join(".");
            TARGETS.iter().any(|(name, _)| *name == path)
        }
        None => false,
    }
}

fn unknown(expectation: &Expectation, written: &WrittenExpectation, at: &str) -> Problem {
    let text = expectation.target.as_str();
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let words = format!("`{text}` is not a target of `{BLOCK}`");
    let help = format!("targets: {}, tool[\"name\"].score", names.join(", "));
    if written.0.get("target").is_some() {
        Problem::new(pointer_join(at, "target"), words).help(help)
    } else {
        Problem::new(pointer_join(at, text), words)
            .help(help)
            .on_key()
    }
}

/// Checks a `tools/list` result against a block's expectations. A catalog without tools gives no
/// evidence.
#[must_use]
pub fn judge(expectations: &[Expectation], listed: &[Value]) -> GateOutcome {
    let quality = assess(listed);
    let root = quality.root();
    let mut verdict = Verdict::Pass;
    let mut assertions = Vec::new();
    for expectation in expectations {
        let why = match expectation.target.keys().as_deref() {
            Some(["tool", name, _]) => format!("the server lists no tool `{name}`"),
            _ => "the server lists no tools".to_owned(),
        };
        let assertion = expectation.apply(&root, Some(&why));
        if !assertion.passed {
            verdict = Verdict::Fail;
        }
        assertions.push(assertion);
    }
    let no_evidence = listed
        .is_empty()
        .then(|| "the server lists no tools".to_owned());
    if no_evidence.is_some() {
        verdict = Verdict::NoEvidence;
    }
    let mut detail = Map::new();
    detail.insert("tools".to_owned(), json!(quality.tools));
    let counted: Vec<&Finding> = quality
        .findings
        .iter()
        .filter(|finding| finding.counts())
        .collect();
    detail.insert("findings".to_owned(), json!(counted));
    GateOutcome {
        block: BLOCK.to_owned(),
        verdict,
        values: quality.values(),
        detail: detail.into(),
        assertions,
        summary: quality.summary(),
        findings: counted
            .iter()
            .filter(|finding| finding.severity == Severity::Critical)
            .map(|finding| {
                let rule = finding.rule.as_deref().unwrap_or_default();
                format!("{rule} {}: {}", finding.tool, finding.message)
            })
            .collect(),
        more_findings: 0,
        notes: Vec::new(),
        advisories: Vec::new(),
        no_evidence,
        status_lines: Vec::new(),
    }
}

impl Quality {
    fn figure(&self, target: &str) -> Value {
        match target {
            "min_score" => json!(self.min_score),
            "mean_score" => json!(self.mean_score),
            "catalog_score" => json!(self.catalog_score),
            "critical_count" => json!(self.critical_count),
            "warning_count" => json!(self.warning_count),
            "schema_criticals" => json!(self.schema_criticals),
            "schema_warnings" => json!(self.schema_warnings),
            "malformed_count" => json!(self.malformed_count),
            "smell_total" => json!(self.smell_total),
            other => match other
                .strip_prefix("smells.")
                .and_then(|smell| self.smells.get(smell))
            {
                Some(count) => json!(count),
                None => Value::Null,
            },
        }
    }

    /// Tools with their scores; of several tools with the same name, the worst.
    fn scores(&self) -> BTreeMap<&str, f64> {
        let mut scores: BTreeMap<&str, f64> = BTreeMap::new();
        for tool in &self.tools {
            let score = scores.entry(&tool.name).or_insert(tool.score);
            *score = score.min(tool.score);
        }
        scores
    }

    /// Every target under its full name.
    #[must_use]
    pub fn values(&self) -> Map<String, Value> {
        let mut values: Map<String, Value> = TARGETS
            .iter()
            .map(|(name, _)| ((*name).to_owned(), self.figure(name)))
            .collect();
        for (name, score) in self.scores() {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"");
            values.insert(format!("tool[\"{name}\"].score"), json!(score));
        }
        values
    }

    /// The value that targets select from.
    fn root(&self) -> Value {
        let mut root = Map::new();
        for (name, _) in TARGETS {
            match name.split_once('.') {
                Some((outer, inner)) => {
                    let nested = root.entry(outer).or_insert_with(|| json!({}));
                    nested[inner] = self.figure(name);
                }
                None => {
                    root.insert(name.to_owned(), self.figure(name));
                }
            }
        }
        let tools: Map<String, Value> = self
            .scores()
            .into_iter()
            .map(|(name, score)| (name.to_owned(), json!({"score": score})))
            .collect();
        root.insert("tool".to_owned(), Value::Object(tools));
        Value::Object(root)
    }

    /// A summary in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let (Some(mean), Some(min), Some(catalog)) =
            (self.mean_score, self.min_score, self.catalog_score)
        else {
            return "no tools".to_owned();
        };
        let worst = self.tools.iter().find(|tool| tool.score <= min);
        format!(
            "{} {}, mean {mean:.2}, min {min:.2} ({}), catalog {catalog:.2}, {} critical, {} warnings",
            self.tools.len(),
            if self.tools.len() == 1 {
                "tool"
            } else {
                "tools"
            },
            worst.map_or("", |tool| tool.name.as_str()),
            self.critical_count,
            self.warning_count,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn six(entry: Value) -> [f64; 6] {
        heuristics(&entry).each_ref().map(Ratio::to_f64)
    }

    #[test]
    fn scores_match_the_table_of_the_documentation() {
        assert_eq!(six(json!("x")), [0.0; 6]);
        assert_eq!(six(json!({"name": "x"})), [0.0; 6]);
        // An empty object schema has nothing to document.
        assert_eq!(
            six(json!({"name": "x", "inputSchema": {}})),
            [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
        );
        let text = "Get the weather of a city."; // 26 characters
        assert_eq!(
            six(json!({"name": "x", "description": text, "annotations": {},
                       "inputSchema": {"properties": {"a": {"description": "A"}, "b": {}, "c": {}, "d": {}}}})),
            [1.0, 26.0 / 60.0, 0.25, 1.0, 0.0, 0.5]
        );
        assert_eq!(six(json!({"description": "x".repeat(60)}))[1], 1.0);
        for (length, concise) in [
            (500, 1.0),
            (501, 0.999),
            (1000, 0.5),
            (1500, 0.0),
            (9000, 0.0),
        ] {
            assert_eq!(
                six(json!({"description": "ä".repeat(length)}))[3],
                concise,
                "{length}"
            );
        }
        assert_eq!(
            six(json!({"name": "get_user", "description": "Get user"}))[0],
            0.0
        );
        assert_eq!(six(json!({"description": "Outputs text"}))[4], 1.0);
        assert_eq!(
            six(json!({"description": "Say", "outputSchema": {}}))[4],
            1.0
        );
        assert_eq!(six(json!({"annotations": {"readOnlyHint": true}}))[5], 1.0);
        assert_eq!(
            six(json!({"annotations": {"readOnlyHint": true, "destructiveHint": null}}))[5],
            0.5
        );
    }

    #[test]
    fn means_are_exact() {
        let good = json!({"name": "a", "description": "Get the weather of a city, now or at a time. Returns text as a list.",
                          "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        let quality = assess(&[good.clone(), json!({"name": "b"})]);
        assert_eq!(quality.min_score, Some(0.0));
        assert_eq!(quality.mean_score, Some(0.5));
        assert_eq!(quality.catalog_score, Some(0.3));
        let same = assess(&[good.clone(), good.clone(), good]);
        assert_eq!(
            (same.mean_score, same.min_score, same.catalog_score),
            (Some(1.0), Some(1.0), Some(1.0))
        );
    }

    #[test]
    fn an_empty_catalog_is_no_evidence() {
        let outcome = judge(&defaults(), &[]);
        assert_eq!(outcome.verdict, Verdict::NoEvidence);
        assert_eq!(outcome.values["min_score"], Value::Null);
        assert_eq!(outcome.values["smell_total"], json!(0));
        assert!(outcome.no_evidence.is_some());
    }

    #[test]
    fn every_target_is_reported_and_can_be_asserted() {
        let listed = [
            json!({"name": "read \"all\""}),
            json!({"name": "b", "description": "b"}),
        ];
        let outcome = judge(&defaults(), &listed);
        assert_eq!(outcome.verdict, Verdict::Fail);
        for name in outcome.values.keys() {
            let written = WrittenExpectation(
                json!({"target": name, "matcher": {"schema": {"type": "number"}}}),
            );
            let expectations = expectations(&[written], "")
                .unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(
                judge(&expectations, &listed).verdict,
                Verdict::Pass,
                "{name}"
            );
        }
        assert_eq!(outcome.values.len(), TARGETS.len() + 2);
        assert_eq!(outcome.values["critical_count"], json!(3));
        assert_eq!(outcome.values["malformed_count"], json!(2));
    }

    #[test]
    fn unknown_targets_are_problems_and_absent_tools_fail() {
        let compile =
            |target: &str| expectations(&[WrittenExpectation(json!({target: 1}))], "/expect");
        for target in [
            "max_score",
            "tool",
            "tool[\"x\"]",
            "smells",
            "smells.bad",
            "min_score.x",
            "tool[0].score",
        ] {
            let problems = compile(target).unwrap_err();
            assert!(problems[0].message.contains("is not a target"), "{target}");
        }
        let absent = compile("tool[\"x\"].score").unwrap();
        let outcome = judge(&absent, &[json!({"name": "y"})]);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert!(
            outcome.assertions[0]
                .reason
                .as_deref()
                .unwrap()
                .contains("lists no tool `x`")
        );
    }

    proptest! {
        #[test]
        fn longer_is_no_worse_up_to_500(length in 1_usize..500) {
            let at = |length: usize| six(json!({"description": "x".repeat(length)})).iter().sum::<f64>();
            prop_assert!(at(length) <= at(length + 1));
        }

        #[test]
        fn shorter_is_no_worse_above_500(length in 500_usize..3000) {
            let at = |length: usize| six(json!({"description": "x".repeat(length)})).iter().sum::<f64>();
            prop_assert!(at(length + 1) <= at(length));
        }

        #[test]
        fn describing_an_argument_never_lowers_a_score(documented in 0_usize..6, more in 1_usize..4) {
            let at = |documented: usize| {
                let properties: Map<String, Value> = (0..10)
                    .map(|index| (format!("p{index}"), if index < documented { json!({"description": "x"}) } else { json!({}) }))
                    .collect();
                assess(&[json!({"name": "t", "inputSchema": {"properties": properties}})]).mean_score.unwrap()
            };
            prop_assert!(at(documented) < at(documented + more));
        }
    }
}
