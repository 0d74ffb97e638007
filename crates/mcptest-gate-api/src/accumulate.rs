//! A gate that observes the runs of a test one at a time.

use std::any::Any;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::forecast::{self, BoundsOf, Forecast, HypotheticalRuns};
use crate::{
    Accumulator, Context, Gate, GateOutcome, LoadedGate, ReadingRequest, Run, Score, ToolReference,
};
use mcptest_trace::expect::Expectation;
use mcptest_trace::verdict::Verdict;

/// A block of a suite together with its expectations.
pub(crate) struct Block<G> {
    pub gate: G,
    pub expectations: Vec<Expectation>,
}

/// A block whose kind of gate is not known.
pub(crate) trait AnyBlock: Send + Sync {
    fn expectations(&self) -> &[Expectation];
    fn tool_names(&self) -> Vec<ToolReference>;
    fn reading(&self) -> Option<ReadingRequest>;
    fn start(&self, rows: bool) -> Box<dyn AnyFold + '_>;
    fn resume(&self, json: &str) -> serde_json::Result<Box<dyn AnyFold + '_>>;
}

/// A block and what it has observed.
struct Fold<'a, G: Gate> {
    gate: &'a G,
    accumulator: G::Accumulator,
}

/// A fold whose kind of gate is not known.
pub(crate) trait AnyFold: Send + Sync {
    fn observe(&mut self, context: &Context<'_>, run: &Run<'_>);
    /// Adds an accumulator; false if it belongs to another gate.
    fn merge(&mut self, other: Box<dyn Any>) -> bool;
    fn into_accumulator(self: Box<Self>) -> Box<dyn Any>;
    fn renumber(&mut self, number: &dyn Fn(u64) -> u64);
    fn to_json(&self) -> serde_json::Result<Box<RawValue>>;
    fn finish(self: Box<Self>, context: &Context<'_>) -> Score;
    fn forecast(&self, remaining: u64) -> Option<Forecast>;
    fn hypothetical(&self, next: HypotheticalRuns, remaining: u64) -> Option<BoundsOf>;
}

impl<G: Gate> AnyBlock for Block<G> {
    fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        self.gate.tool_names()
    }

    fn reading(&self) -> Option<ReadingRequest> {
        self.gate.reading()
    }

    fn start(&self, rows: bool) -> Box<dyn AnyFold + '_> {
        let mut accumulator = G::Accumulator::default();
        if !rows {
            accumulator.leave_out_rows();
        }
        Box::new(Fold {
            gate: &self.gate,
            accumulator,
        })
    }

    fn resume(&self, json: &str) -> serde_json::Result<Box<dyn AnyFold + '_>> {
        Ok(Box::new(Fold {
            gate: &self.gate,
            accumulator: serde_json::from_str(json)?,
        }))
    }
}

impl<G: Gate> AnyFold for Fold<'_, G> {
    fn observe(&mut self, context: &Context<'_>, run: &Run<'_>) {
        self.gate.observe(&mut self.accumulator, context, run);
    }

    fn merge(&mut self, other: Box<dyn Any>) -> bool {
        match other.downcast::<G::Accumulator>() {
            Ok(other) => {
                self.accumulator.merge(*other);
                true
            }
            Err(_) => false,
        }
    }

    fn into_accumulator(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.accumulator)
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.accumulator.renumber(number);
    }

    fn to_json(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(&self.accumulator)
    }

    fn finish(self: Box<Self>, context: &Context<'_>) -> Score {
        self.gate.finish(self.accumulator, context)
    }

    fn forecast(&self, remaining: u64) -> Option<Forecast> {
        self.gate.forecast(&self.accumulator, remaining)
    }

    fn hypothetical(&self, next: HypotheticalRuns, remaining: u64) -> Option<BoundsOf> {
        self.gate.hypothetical(&self.accumulator, next, remaining)
    }
}

/// The runs of a test that one gate has observed so far.
///
/// Accumulators of parts of the runs [`merge`](Self::merge) in any order: the outcome is that of
/// all runs observed by one accumulator. The indexes of the runs must be distinct.
pub struct GateAccumulator<'a> {
    gate: &'a LoadedGate,
    fold: Box<dyn AnyFold + 'a>,
    runs: u64,
    /// Once a gate is decided it stays so, whatever follows.
    decided: Option<Verdict>,
}

impl std::fmt::Debug for GateAccumulator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "GateAccumulator({}, {})",
            self.gate.info().block,
            self.runs
        )
    }
}

/// The JSON form of an accumulator.
#[derive(Serialize, Deserialize)]
struct Saved {
    runs: u64,
    observed: Box<RawValue>,
}

/// An error from reading a saved accumulator.
#[derive(Debug, thiserror::Error)]
#[error("invalid accumulator of `{block}`: {source}")]
pub struct AccumulatorError {
    block: &'static str,
    source: serde_json::Error,
}

impl LoadedGate {
    /// Returns an accumulator that has observed no run.
    #[must_use]
    pub fn accumulator(&self) -> GateAccumulator<'_> {
        self.start(true)
    }

    /// Returns an accumulator that has observed no run and keeps no rows of single runs for the
    /// detail of the outcome. All figures and messages are the same. Merged with one that keeps
    /// rows, none are kept.
    #[must_use]
    pub fn accumulator_without_rows(&self) -> GateAccumulator<'_> {
        self.start(false)
    }

    fn start(&self, rows: bool) -> GateAccumulator<'_> {
        GateAccumulator {
            gate: self,
            fold: self.block.start(rows),
            runs: 0,
            decided: None,
        }
    }

    /// Reads an accumulator that [`GateAccumulator::to_json`] wrote for the same block.
    ///
    /// # Errors
    /// The JSON is not an accumulator of this gate.
    pub fn accumulator_from_json(
        &self,
        json: &str,
    ) -> Result<GateAccumulator<'_>, AccumulatorError> {
        let error = |source| AccumulatorError {
            block: self.info().block,
            source,
        };
        let saved: Saved = serde_json::from_str(json).map_err(error)?;
        Ok(GateAccumulator {
            gate: self,
            fold: self.block.resume(saved.observed.get()).map_err(error)?,
            runs: saved.runs,
            decided: None,
        })
    }

    /// Returns true if fewer than all runs can decide the gate.
    #[must_use]
    pub fn decides_early(&self) -> bool {
        self.block.start(false).forecast(1).is_some()
    }
}

impl GateAccumulator<'_> {
    /// Adds one finished run. A run that ended with an error must not be observed: it is no
    /// evidence about the agent.
    pub fn observe(&mut self, context: &Context<'_>, run: &Run<'_>) {
        self.fold.observe(context, run);
        self.runs += 1;
    }

    /// Adds the runs that another accumulator of the same block has observed.
    ///
    /// # Panics
    /// If the other accumulator belongs to another kind of gate.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        let same = self.fold.merge(other.fold.into_accumulator());
        assert!(same, "accumulators of two gates cannot be merged");
    }

    /// Gives every run another index. The order of the runs must stay the same.
    ///
    /// Runs whose numbers are known only when all of them have been observed are observed with any
    /// indexes in their order, and numbered before [`finish`](Self::finish).
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.fold.renumber(number);
    }

    /// Returns the accumulator as JSON, for another process to merge.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Accumulators are plain data with strings as keys, which always serialises.
        let saved = self.fold.to_json().and_then(|observed| {
            serde_json::to_string(&Saved {
                runs: self.runs,
                observed,
            })
        });
        saved.unwrap_or_default()
    }

    /// The number of observed runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Computes the figures and judges them. Without any run there is no evidence.
    #[must_use]
    pub fn finish(self, context: &Context<'_>) -> GateOutcome {
        if self.runs == 0 {
            return self.gate.outcome_without_runs();
        }
        self.gate.judge_score(self.fold.finish(context))
    }

    /// The verdict that the gate reaches whatever `remaining` or fewer further runs do; `None`
    /// while it depends on them. All runs up to the last observed index must have ended.
    pub fn decided(&mut self, remaining: u64) -> Option<Verdict> {
        if self.decided.is_none() && self.runs > 0 {
            let forecast = self.fold.forecast(remaining)?;
            self.decided = forecast::decide(self.gate.block.expectations(), &forecast);
        }
        self.decided
    }

    /// A lower bound of the further runs that are needed before the gate can be decided, from 1 to
    /// `remaining`. This number of runs can be started together without making one too many.
    #[must_use]
    pub fn least_further_runs(&self, remaining: u64) -> u64 {
        if self.fold.forecast(remaining).is_none() {
            return remaining;
        }
        let hypothetical = |next, remaining| self.fold.hypothetical(next, remaining);
        forecast::least_further_runs(self.gate.block.expectations(), remaining, &hypothetical)
    }

    /// The bounds of every figure after `remaining` or fewer further runs. `None` for a gate that
    /// needs all runs, and before the first run.
    #[must_use]
    pub fn forecast(&self, remaining: u64) -> Option<Forecast> {
        (self.runs > 0).then(|| self.fold.forecast(remaining))?
    }
}
