//! The interface between gates and the programs that use them.
//!
//! A [`Gate`] is a block of a suite that observes the runs of a test and computes figures. This
//! crate has the trait, the entry of a gate in a list ([`GateInfo`]), a block that can judge
//! ([`LoadedGate`]), its accumulator ([`GateAccumulator`]), and the tools that gates are made of:
//! tables of runs, digests and forecasts. It also has the mutations of traces, which show that
//! gates can fail.
//!
//! The gates are in `mcptest-gates`. Loading, running and scoring know this crate only, and get
//! the list of gates from the program; so a change to a gate rebuilds the gates and the program,
//! and nothing between them.

mod accumulate;
pub mod digest;
pub mod first_runs;
pub mod forecast;
mod loaded;
pub mod mutate;
mod reading;
pub mod run_list;
pub mod run_rows;
mod tool_reference;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use mcptest_attack::Attack;
use mcptest_catalog::prices::Prices;
use mcptest_json::pointer_join;
use mcptest_trace::bounds;
use mcptest_trace::detail::Detail;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::Problem;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::TraceView;

pub use accumulate::{AccumulatorError, GateAccumulator};
use accumulate::{AnyBlock, Block};
use forecast::{BoundsOf, Forecast, HypotheticalRuns};
pub use loaded::LoadedGate;
pub use mcptest_trace::outcome::{GateOutcome, TargetInfo, Unit};
pub use mcptest_trace::packed_runs;
pub use reading::ReadingRequest;
pub use tool_reference::ToolReference;

/// The facts about a test that its blocks can use when the suite is loaded.
#[derive(Debug, Clone, Copy)]
pub struct LoadContext<'a> {
    /// True if the suite is to be run; else it only scores recorded traces.
    pub to_run: bool,
    /// `runs:` as written.
    pub runs: Option<u32>,
    /// The test's gate blocks as written, this one included.
    pub siblings: &'a [(String, Value)],
    /// The attacks that the test can meet.
    pub attacks: AttackContext<'a>,
}

/// The attacks of a suite, and those that a test injects.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttackContext<'a> {
    /// The suite's attacks; `None` where the rest of the suite is not known.
    pub declared: Option<&'a [Attack]>,
    /// The names of invalid attacks, whose problems are reported elsewhere. Naming one is not a
    /// second problem.
    pub invalid: &'a [String],
    /// The names of those that the test injects.
    pub injected: &'a [String],
}

impl LoadContext<'_> {
    /// Another block of the same test, as written.
    #[must_use]
    pub fn sibling(&self, block: &str) -> Option<&Value> {
        self.siblings
            .iter()
            .find(|(name, _)| name == block)
            .map(|(_, written)| written)
    }
}

/// The facts that a gate needs in addition to the traces.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The name of the test in messages (with the model, if there are several).
    pub label: &'a str,
    /// The suite's servers.
    pub servers: &'a KnownServers,
    /// The model that ran, where known.
    pub model: Option<&'a str>,
    /// The prices of tokens.
    pub prices: &'a Prices,
}

/// One run that ended without an error.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The number of the run, from 1.
    pub index: u64,
    /// The recorded calls and messages.
    pub trace: &'a TraceView<'a>,
    /// True if all of the test's `expect:` assertions held in this run; `None` if it has none.
    pub expectations_held: Option<bool>,
}

impl<'a> Run<'a> {
    /// The runs of a test without `expect:` assertions, numbered from 1.
    #[must_use]
    pub fn number(traces: &'a [TraceView<'a>]) -> Vec<Self> {
        traces
            .iter()
            .zip(1..)
            .map(|(trace, index)| Self {
                index,
                trace,
                expectations_held: None,
            })
            .collect()
    }
}

/// A gate's block as its file defines it.
pub trait Gate: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The block's name in a suite.
    const BLOCK: &'static str;
    /// The subject of its figures, in one line.
    const SUMMARY: &'static str;
    /// Every figure it reports.
    const TARGETS: &'static [TargetInfo];
    /// True if the defaults also hold next to written expectations (for gates whose fields set the
    /// bar).
    const DEFAULTS_ALWAYS: bool = false;

    /// The default expectations.
    fn defaults(&self) -> Vec<Expectation>;

    /// The written `expect:` list.
    fn expect(&self) -> &[WrittenExpectation];

    /// Reads the other blocks of the test that scoring needs, and finds problems that the schema
    /// does not find. Pointers start at the block.
    fn check(&mut self, context: &LoadContext<'_>) -> Vec<Problem> {
        let _ = context;
        Vec::new()
    }

    /// The tools that the block names. One that no server offers is a mistake in the suite.
    fn tool_names(&self) -> Vec<ToolReference> {
        Vec::new()
    }

    /// The request for a model's reading of each run's closing message. It is advisory: no figure
    /// depends on it.
    fn reading(&self) -> Option<ReadingRequest> {
        None
    }

    /// The facts that the gate keeps of the runs it has observed.
    type Accumulator: Accumulator;

    /// Adds the facts of one run.
    fn observe(&self, accumulator: &mut Self::Accumulator, context: &Context<'_>, run: &Run<'_>);

    /// Computes the figures of at least one run.
    fn finish(&self, accumulator: Self::Accumulator, context: &Context<'_>) -> Score;

    /// The bounds of the figures after up to `remaining` further runs, whatever those do. A gate
    /// that needs all runs returns `None`. Before the first run the bounds are not used.
    fn forecast(&self, accumulator: &Self::Accumulator, remaining: u64) -> Option<Forecast> {
        let _ = (accumulator, remaining);
        None
    }

    /// The same bounds if certain runs come first, for figures that good runs only raise and bad
    /// ones only lower. `None` for a gate that a single run may decide.
    fn hypothetical(
        &self,
        accumulator: &Self::Accumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        let _ = (accumulator, next, remaining);
        None
    }
}

/// Facts about runs: plain data that merges.
///
/// Merging the accumulators of any split of the runs, in any order, gives the accumulator of all of
/// them. Facts that depend on the order of runs are kept by run index.
pub trait Accumulator: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Adds the facts of another accumulator.
    fn merge(&mut self, other: Self);

    /// Gives every run another index. The order of the runs must stay the same.
    fn renumber(&mut self, number: &dyn Fn(u64) -> u64);

    /// Keeps no rows for the report's detail from now on. The figures must not depend on it.
    fn leave_out_rows(&mut self) {}
}

/// The figures of a gate, before they are judged.
///
/// Gates of all crates build it, with `..Score::default()`; so a new field breaks none of them.
#[derive(Debug, Default)]
pub struct Score {
    /// Every target of the gate; `null` for an undefined figure.
    pub values: Vec<(&'static str, Value)>,
    /// The reasons why figures are undefined.
    pub absent: Vec<(&'static str, String)>,
    /// The facts behind the figures, for the report.
    pub detail: Detail,
    /// A summary in one line.
    pub summary: String,
    /// Set when the figures are good only because nothing was there to judge.
    pub no_evidence: Option<String>,
    /// Targets that are undefined because evidence is missing: an assertion on them cannot be
    /// judged, which is not a failure.
    pub undetermined: Vec<&'static str>,
    /// The first problems, one line each, for readers of a failure.
    pub findings: Vec<String>,
    /// The number of further problems.
    pub more_findings: u64,
    /// The first facts about single runs that are not problems, one line each, for verbose reports.
    pub notes: Vec<String>,
    /// Opinions of a model that was asked, one line each. They decide nothing.
    pub advisories: Vec<String>,
    /// Lines that the command prints on standard error with every reporter.
    pub status_lines: Vec<String>,
}

/// The entry of a gate in the registry.
pub struct GateInfo {
    /// The block's name in a suite.
    pub block: &'static str,
    /// The subject of its figures, in one line.
    pub summary: &'static str,
    /// Every figure it reports.
    pub targets: &'static [TargetInfo],
    /// The block's JSON Schema.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Reads a block.
    load: fn(&Value, &LoadContext<'_>) -> LoadedBlock,
}

impl GateInfo {
    /// The entry of a gate.
    #[must_use]
    pub const fn of<G: Gate>() -> Self {
        Self {
            block: G::BLOCK,
            summary: G::SUMMARY,
            targets: G::TARGETS,
            schema: |generator| generator.subschema_for::<G>(),
            load: |written, context| {
                let mut gate: G = match serde_json::from_value(written.clone()) {
                    Ok(gate) => gate,
                    Err(error) => return (None, vec![Problem::new("", error.to_string())]),
                };
                let mut problems = gate.check(context);
                let expectations = expectations(&gate, &mut problems);
                let usable = problems.iter().all(|problem| problem.warning);
                let block: Option<Box<dyn AnyBlock>> = if usable {
                    Some(Box::new(Block { gate, expectations }))
                } else {
                    None
                };
                (block, problems)
            },
        }
    }
}

/// A block that can score, unless a problem is an error; and all problems.
type LoadedBlock = (Option<Box<dyn AnyBlock>>, Vec<Problem>);

impl std::fmt::Debug for GateInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GateInfo({})", self.block)
    }
}

/// Finds the gate with this block name in a list of gates.
#[must_use]
pub fn find_in(gates: &'static [GateInfo], block: &str) -> Option<&'static GateInfo> {
    gates.iter().find(|gate| gate.block == block)
}

fn expectations<G: Gate>(block: &G, problems: &mut Vec<Problem>) -> Vec<Expectation> {
    let mut all = Vec::new();
    if block.expect().is_empty() || G::DEFAULTS_ALWAYS {
        all.extend(block.defaults());
    }
    for (index, written) in block.expect().iter().enumerate() {
        let at = format!("/expect/{index}");
        match Expectation::compile(written, &at) {
            Ok(expectation) => {
                problems.extend(unknown_target::<G>(&expectation, written, &at));
                problems.extend(wrong_scale::<G>(&expectation, written, &at));
                problems.extend(expectation.refuse_judge(written, &at, &format!("`{}`", G::BLOCK)));
                all.push(expectation);
            }
            Err(more) => problems.extend(more),
        }
    }
    all
}

/// Warnings about bounds that the range of their target makes pointless.
fn wrong_scale<G: Gate>(
    expectation: &Expectation,
    written: &WrittenExpectation,
    at: &str,
) -> Vec<Problem> {
    let text = expectation.target.as_str();
    let of = |target: &&TargetInfo| {
        let rest = text.strip_prefix(target.name);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']')))
    };
    match G::TARGETS.iter().find(of) {
        Some(target) => bounds::warnings(written, text, target.unit, at),
        None => Vec::new(),
    }
}

fn unknown_target<G: Gate>(
    expectation: &Expectation,
    written: &WrittenExpectation,
    at: &str,
) -> Option<Problem> {
    let text = expectation.target.as_str();
    let known = G::TARGETS.iter().any(|target| {
        text.strip_prefix(target.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    });
    if known {
        return None;
    }
    let names: Vec<&str> = G::TARGETS.iter().map(|target| target.name).collect();
    let message = format!("`{text}` is not a target of `{}`", G::BLOCK);
    let help = format!("its targets are {}", names.join(", "));
    Some(if written.0.get("target").is_some() {
        Problem::new(pointer_join(at, "target"), message).help(help)
    } else {
        Problem::new(pointer_join(at, text), message)
            .help(help)
            .on_key()
    })
}
