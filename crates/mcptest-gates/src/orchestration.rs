//! Diagnostics of how a run was built (`orchestration:`).
//!
//! **Did the agent use its tools well on the way?** An agent can reach the right ability and still
//! waste calls, send malformed arguments, or fail once and never try again. The block reads the
//! trace and the classes of the test's `equal_function_sets:` block, which must be in the same
//! test. It works well with [`discovery:`](super::discovery), where the prompt names no tool.
//!
//! # The block
//! ```yaml
//! equal_function_sets:
//!   classes:
//!     - { name: search, members: [catalog.search, catalog.web_search] }
//!     - { name: buy, members: [shop.order] }
//! orchestration:
//!   expect:
//!     - orchestration.error_recovery: { ">=": 90 }
//!     - orchestration.efficiency: { ">=": 50 }
//! ```
//!
//! # Output
//! ```text
//! PASS   books: orchestration  discovery 100 · parameterization 67 · syntax 100 · error recovery 100 · efficiency 67 · schema valid unknown
//! ```
//!
//! # Formula
//! Six whole percents; the numerators and denominators of all runs are summed first.
//!
//! | target | percent of … that … | nothing to count |
//! |---|---|---|
//! | `discovery` | declared classes × runs: were reached by a call (recall of `equal_function_sets`) | 0; 100 with no class and no call |
//! | `parameterization` | calls: have arguments that are a non-empty object | 100 |
//! | `syntax` | calls: have a non-empty string as name and an object as arguments | 100 |
//! | `error_recovery` | calls that returned an error: are followed in the same run by a successful call of the same tool (server and name) or of a tool in the same class | 100 |
//! | `efficiency` | calls: were needed, at one per class. Classes × runs that made a call, over their calls, at most 100 | 0 |
//! | `schema_valid` | calls: have arguments that are valid under the tool's input schema | 100 |
//!
//! `discovery` is rounded down, as recall is; the others to the nearest, ties up. One success
//! answers every earlier error of its tool or class. A result without an error flag counts as a
//! success, and a call without a result is neither an error nor a success.
//!
//! `schema_valid` needs the offered tools in the trace (`catalog`); it is `null` when a run has
//! none. A call of a tool that was not offered is not valid, and neither is one whose tool has an
//! invalid schema. Missing arguments count as the empty object that is sent for them.
//! `parameterization` checks only presence, so it works on any trace.
//!
//! When `expect:` is omitted, `orchestration.discovery` must reach 50. A test whose runs made no
//! call at all has the 100s of the last column without evidence for them: `no_evidence`, unless an
//! assertion fails anyway (with classes declared, the default does).
//!
//! # When not to use it
//! `efficiency` takes one call per class as the best possible: for tasks that need several calls of
//! one kind, use `golden_path`. For tools that do not answer, `recovery` shows more than
//! `error_recovery`.
//!
//! # In Rust
//! ```
//! use mcptest_gates::equal_function_sets::Class;
//! use mcptest_gates::orchestration::score_orchestration;
//! use mcptest_trace::tool_id::KnownServers;
//!
//! let classes = [
//!     Class { name: "search".into(), members: vec!["catalog.search".into(), "catalog.web_search".into()] },
//!     Class { name: "fetch".into(), members: vec!["fulfillment.get".into()] },
//! ];
//! let trace = &mcptest_trace::trace::read(r#"{"tool_calls": [
//!     {"server": "catalog", "name": "search", "args": {"q": "Paris"}},
//!     {"server": "catalog", "name": "web_search", "args": {"q": "Paris population"}},
//!     {"server": "fulfillment", "name": "get", "args": {}}
//! ], "tool_results": [{"is_error": true}, {"is_error": false}, {"is_error": false}]}"#).unwrap()[0];
//! let counts = score_orchestration(&classes, trace, &KnownServers::default()).counts;
//! assert_eq!(counts.discovery(), 100);
//! assert_eq!(counts.efficiency(), 67);        // two classes, three calls
//! assert_eq!(counts.error_recovery(), 100);   // the other member of the class succeeded
//! assert_eq!(counts.parameterization(), 67);
//! assert_eq!(counts.syntax(), 100);
//! assert_eq!(counts.schema_valid(), None);    // the offered tools are not recorded
//! ```

mod validators;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::equal_function_sets::{
    Class, EqualFunctionSets, SelectionBounds, SelectionCounts, pooled_recall, score_selection,
};
use crate::first_runs::FirstSeen;
use crate::forecast::{BoundsOf, Forecast, HypotheticalRuns};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, Unit};
use mcptest_json::canonical;
use mcptest_json::text::{one_line, shorten};
use mcptest_numbers::percent;
use mcptest_trace::catalog::Tool;
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{ToolCallView, TraceView};

use validators::Validators;

/// Diagnoses how runs were built. Needs an `equal_function_sets:` block in the same test,
/// whose classes it reads.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Orchestration {
    /// Assertions on `orchestration.*`. Default: `orchestration.discovery` is at least 50.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
    /// The classes of the `equal_function_sets:` block beside it.
    #[serde(skip)]
    classes: Vec<Class>,
    /// The compiled schemas of the offered tools.
    #[serde(skip)]
    validators: Validators,
}

/// The counts, before any percent is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OrchestrationCounts {
    /// The selection counts against the classes.
    pub selection: SelectionCounts,
    /// All calls.
    pub calls: u64,
    /// Calls with a non-empty object as arguments.
    pub parameterized: u64,
    /// Calls with a name and an object as arguments.
    pub well_formed: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// Of these, the ones that a later success answers.
    pub recovered: u64,
    /// Calls that would have done: one per class in every run that made a call.
    pub optimal: u64,
    /// Calls that are valid under their tool's schema.
    pub schema_valid: u64,
    /// Runs without a recorded catalog.
    pub without_catalog: u64,
}

impl OrchestrationCounts {
    /// Sums, as pooling over runs does.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            selection: self.selection.plus(other.selection),
            calls: self.calls + other.calls,
            parameterized: self.parameterized + other.parameterized,
            well_formed: self.well_formed + other.well_formed,
            errors: self.errors + other.errors,
            recovered: self.recovered + other.recovered,
            optimal: self.optimal + other.optimal,
            schema_valid: self.schema_valid + other.schema_valid,
            without_catalog: self.without_catalog + other.without_catalog,
        }
    }

    /// Classes reached.
    #[must_use]
    pub fn discovery(self) -> u64 {
        self.selection.recall()
    }

    /// Calls with arguments.
    #[must_use]
    pub fn parameterization(self) -> u64 {
        percent::nearest(self.parameterized, self.calls).unwrap_or(100)
    }

    /// Well-formed calls.
    #[must_use]
    pub fn syntax(self) -> u64 {
        percent::nearest(self.well_formed, self.calls).unwrap_or(100)
    }

    /// The percent of errors that a later call answered.
    #[must_use]
    pub fn error_recovery(self) -> u64 {
        percent::nearest(self.recovered, self.errors).unwrap_or(100)
    }

    /// Calls needed over calls made.
    #[must_use]
    pub fn efficiency(self) -> u64 {
        percent::nearest(self.optimal.min(self.calls), self.calls).unwrap_or(0)
    }

    /// Calls that are valid under their tool's schema; `None` if some run has no
    /// recorded catalog.
    #[must_use]
    pub fn schema_valid(self) -> Option<u64> {
        (self.without_catalog == 0)
            .then(|| percent::nearest(self.schema_valid, self.calls).unwrap_or(100))
    }
}

/// The counts of one run, with the calls that have problems. Calls are numbered from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The counts.
    pub counts: OrchestrationCounts,
    /// Names of classes that were not reached.
    pub missed: Vec<String>,
    /// Calls that are not well formed.
    pub malformed: Vec<u64>,
    /// Errors that nothing answered.
    pub unrecovered: Vec<u64>,
    /// Calls that are not valid under their tool's schema, and why not.
    pub invalid: Vec<(u64, String)>,
}

/// Counts one run.
#[must_use]
pub fn score_orchestration(
    classes: &[Class],
    trace: &TraceView<'_>,
    servers: &KnownServers,
) -> Diagnosis {
    diagnose(classes, trace, servers, &Validators::default())
}

fn diagnose(
    classes: &[Class],
    trace: &TraceView<'_>,
    servers: &KnownServers,
    validators: &Validators,
) -> Diagnosis {
    let calls = &trace.tool_calls;
    let selection = score_selection(classes, calls, servers);
    let mut diagnosis = Diagnosis {
        counts: OrchestrationCounts {
            selection: selection.counts,
            calls: calls.len() as u64,
            optimal: if calls.is_empty() {
                0
            } else {
                classes.len() as u64
            },
            ..OrchestrationCounts::default()
        },
        missed: selection.missed,
        ..Diagnosis::default()
    };
    shape(&mut diagnosis, calls);
    recovery(&mut diagnosis, classes, trace, servers);
    match trace.catalog() {
        Some(catalog) => validity(&mut diagnosis, catalog, calls, validators),
        None => diagnosis.counts.without_catalog = 1,
    }
    diagnosis
}

fn shape(diagnosis: &mut Diagnosis, calls: &[ToolCallView<'_>]) {
    for (call, number) in calls.iter().zip(1..) {
        let args = call.args().and_then(Value::as_object);
        if args.is_some_and(|args| !args.is_empty()) {
            diagnosis.counts.parameterized += 1;
        }
        if args.is_some() && !call.name().is_empty() {
            diagnosis.counts.well_formed += 1;
        } else {
            diagnosis.malformed.push(number);
        }
    }
}

fn recovery(
    diagnosis: &mut Diagnosis,
    classes: &[Class],
    trace: &TraceView<'_>,
    servers: &KnownServers,
) {
    let calls = &trace.tool_calls;
    let results = trace.results_by_call();
    let failed = |index: usize| results[index].is_some_and(|result| result.is_error == Some(true));
    let succeeded =
        |index: usize| results[index].is_some_and(|result| result.is_error != Some(true));
    let memberships: Vec<Vec<bool>> = calls
        .iter()
        .map(|call| {
            classes
                .iter()
                .map(|class| class.has(call, servers))
                .collect()
        })
        .collect();
    let answers = |one: usize, other: usize| {
        let same = calls[one].server == calls[other].server
            && calls[one].raw_name == calls[other].raw_name;
        same || memberships[one]
            .iter()
            .zip(&memberships[other])
            .any(|(a, b)| *a && *b)
    };
    for index in (0..calls.len()).filter(|index| failed(*index)) {
        diagnosis.counts.errors += 1;
        if (index + 1..calls.len()).any(|later| succeeded(later) && answers(index, later)) {
            diagnosis.counts.recovered += 1;
        } else {
            diagnosis.unrecovered.push(index as u64 + 1);
        }
    }
}

fn validity(
    diagnosis: &mut Diagnosis,
    catalog: &[Tool],
    calls: &[ToolCallView<'_>],
    validators: &Validators,
) {
    let empty = Value::Object(Map::new());
    for (call, number) in calls.iter().zip(1..) {
        let args = match call.args() {
            None | Some(Value::Null) => &empty,
            Some(args) => args,
        };
        let mut reason = Some("the tool was not offered".to_owned());
        for tool in offered(catalog, call) {
            reason = match tool.input_schema() {
                None => None,
                Some(schema) => match validators.get(schema).as_ref() {
                    Ok(validator) if validator.is_valid(args) => None,
                    Ok(validator) => Some(complaint(validator, args)),
                    Err(invalid) => Some(invalid.clone()),
                },
            };
            if reason.is_none() {
                break;
            }
        }
        match reason {
            None => diagnosis.counts.schema_valid += 1,
            Some(reason) => diagnosis.invalid.push((number, reason)),
        }
    }
}

/// The first problem, the same for any order of keys.
fn complaint(validator: &jsonschema::Validator, args: &Value) -> String {
    let sorted = serde_json::from_str(&canonical(args)).unwrap_or_default();
    let first = validator.iter_errors(&sorted).next().map(|error| {
        let place = error.instance_path().to_string();
        format!("{place}{}{error}", if place.is_empty() { "" } else { ": " })
    });
    shorten(&first.unwrap_or_else(|| "not valid".to_owned()), 200)
}

/// The offered tools that a call can mean: one, unless the call or the catalog lacks the
/// server.
fn offered<'a>(catalog: &'a [Tool], call: &'a ToolCallView<'a>) -> impl Iterator<Item = &'a Tool> {
    catalog.iter().filter(|tool| {
        tool.name() == call.name()
            && !call.name().is_empty()
            && match (tool.server(), call.server.as_deref()) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            }
    })
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OrchestrationAccumulator {
    counts: OrchestrationCounts,
    runs: u64,
    /// Classes that were not reached.
    missed: FirstSeen,
    rows: RunRows,
}

impl Accumulator for OrchestrationAccumulator {
    fn merge(&mut self, other: Self) {
        self.counts = self.counts.plus(other.counts);
        self.runs += other.runs;
        self.missed.merge(other.missed);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.missed.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

impl Diagnosis {
    fn row(&self, calls: &[ToolCallView<'_>]) -> DiagnosisRow<'_> {
        let tool = |number: u64| {
            let index = usize::try_from(number)
                .ok()
                .and_then(|it| it.checked_sub(1));
            let call = index.and_then(|index| calls.get(index));
            call.map_or_else(String::new, ToolCallView::full_id)
        };
        let listed = |numbers: &[u64]| -> Vec<ListedCall> {
            let calls = numbers.iter().map(|number| ListedCall {
                call: *number,
                tool: tool(*number),
            });
            calls.collect()
        };
        let invalid = self.invalid.iter().map(|(number, reason)| InvalidCall {
            call: *number,
            tool: tool(*number),
            reason,
        });
        let counts = &self.counts;
        DiagnosisRow {
            discovery: counts.discovery(),
            parameterization: counts.parameterization(),
            syntax: counts.syntax(),
            error_recovery: counts.error_recovery(),
            efficiency: counts.efficiency(),
            schema_valid: counts.schema_valid(),
            calls: counts.calls,
            errors: counts.errors,
            missed: &self.missed,
            malformed: listed(&self.malformed),
            unrecovered: listed(&self.unrecovered),
            invalid: invalid.collect(),
        }
    }
}

/// A row of the report's detail.
#[derive(Serialize)]
struct DiagnosisRow<'a> {
    discovery: u64,
    parameterization: u64,
    syntax: u64,
    error_recovery: u64,
    efficiency: u64,
    schema_valid: Option<u64>,
    calls: u64,
    errors: u64,
    missed: &'a [String],
    malformed: Vec<ListedCall>,
    unrecovered: Vec<ListedCall>,
    invalid: Vec<InvalidCall<'a>>,
}

#[derive(Serialize)]
struct ListedCall {
    call: u64,
    tool: String,
}

#[derive(Serialize)]
struct InvalidCall<'a> {
    call: u64,
    tool: String,
    reason: &'a str,
}

impl Gate for Orchestration {
    const BLOCK: &'static str = "orchestration";
    const SUMMARY: &'static str = "Discovery, parameterization, syntax, error recovery, efficiency and schema validity of the recorded calls.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "orchestration.discovery",
            Unit::Percent,
            "Declared classes that a call reached.",
        ),
        TargetInfo::new(
            "orchestration.parameterization",
            Unit::Percent,
            "Calls whose arguments are a non-empty object.",
        ),
        TargetInfo::new(
            "orchestration.syntax",
            Unit::Percent,
            "Calls with a name and an object as arguments.",
        ),
        TargetInfo::new(
            "orchestration.error_recovery",
            Unit::Percent,
            "Failed calls that a later call of the same tool or class made good.",
        ),
        TargetInfo::new(
            "orchestration.efficiency",
            Unit::Percent,
            "Calls needed (one per class) over calls made.",
        ),
        TargetInfo::new(
            "orchestration.schema_valid",
            Unit::Percent,
            "Calls that are valid under their tool's input schema, when the offered tools are known.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "orchestration.discovery",
            Matcher::at_least(50),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, context: &LoadContext<'_>) -> Vec<Problem> {
        let Some(written) = context.sibling(EqualFunctionSets::BLOCK) else {
            return vec![
                Problem::new(
                    "",
                    "`orchestration` needs an `equal_function_sets` block in the same test",
                )
                .help("discovery, error recovery and efficiency are measured against its classes"),
            ];
        };
        // If that block is invalid, its own problems show it.
        if let Ok(block) = serde_json::from_value::<EqualFunctionSets>(written.clone()) {
            self.classes = block.classes;
        }
        Vec::new()
    }

    type Accumulator = OrchestrationAccumulator;

    fn observe(
        &self,
        accumulator: &mut OrchestrationAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let diagnosis = diagnose(&self.classes, run.trace, context.servers, &self.validators);
        accumulator.counts = accumulator.counts.plus(diagnosis.counts);
        accumulator.runs += 1;
        for (at, class) in diagnosis.missed.iter().enumerate() {
            accumulator.missed.add(run.index, at, class);
        }
        if accumulator.rows.are_kept() {
            let row = diagnosis.row(&run.trace.tool_calls);
            accumulator.rows.push(run.index, &row);
        }
    }

    fn finish(&self, accumulator: OrchestrationAccumulator, _: &Context<'_>) -> Score {
        let OrchestrationAccumulator {
            counts,
            missed,
            rows,
            ..
        } = accumulator;
        let missed = missed.names();
        let schema_valid = counts.schema_valid();
        let mut summary = format!(
            "discovery {} · parameterization {} · syntax {} · error recovery {} · efficiency {} · \
             schema valid {}",
            counts.discovery(),
            counts.parameterization(),
            counts.syntax(),
            counts.error_recovery(),
            counts.efficiency(),
            schema_valid.map_or_else(|| "unknown".to_owned(), |percent| percent.to_string()),
        );
        if !missed.is_empty() {
            summary.push_str(&format!(" · missed: {}", one_line(&missed.join(", "))));
        }
        let mut detail = DetailBuilder::default();
        detail.entry("missed", &missed);
        detail.entry("calls", &counts.calls);
        detail.entry("errors", &counts.errors);
        detail.entry("recovered", &counts.recovered);
        rows.write("per_run", "index", &mut detail);
        let mut score = Score {
            values: vec![
                ("orchestration.discovery", counts.discovery().into()),
                (
                    "orchestration.parameterization",
                    counts.parameterization().into(),
                ),
                ("orchestration.syntax", counts.syntax().into()),
                (
                    "orchestration.error_recovery",
                    counts.error_recovery().into(),
                ),
                ("orchestration.efficiency", counts.efficiency().into()),
                ("orchestration.schema_valid", schema_valid.into()),
            ],
            detail: detail.into(),
            summary,
            no_evidence: (counts.calls == 0).then(|| "no tool was called in any run".to_owned()),
            ..Score::default()
        };
        if schema_valid.is_none() {
            score.absent.push((
                "orchestration.schema_valid",
                "the trace does not list the offered tools".to_owned(),
            ));
        }
        score
    }

    /// Pooled over calls, of which a run can make any number, a percent can still become anything;
    /// discovery is pooled over classes.
    fn forecast(&self, accumulator: &OrchestrationAccumulator, remaining: u64) -> Option<Forecast> {
        let OrchestrationAccumulator { counts, runs, .. } = accumulator;
        let bounds = SelectionBounds::new(counts.selection, *runs, self.classes.len(), remaining);
        Some(Forecast {
            bounds: vec![("orchestration.discovery", bounds.recall)],
            may_lack_evidence: counts.calls == 0,
        })
    }

    fn hypothetical(
        &self,
        accumulator: &OrchestrationAccumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        let OrchestrationAccumulator { counts, runs, .. } = accumulator;
        let discovery = pooled_recall(counts.selection, *runs, self.classes.len())?;
        Some(vec![(
            "orchestration.discovery",
            discovery.after(next).bounds(remaining),
        )])
    }
}

#[cfg(test)]
mod tests;
