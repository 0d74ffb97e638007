//! A gate that observes the runs of a test one at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outlook::Watch;
use super::{Context, GateOutcome, LoadedGate, Run};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;

/// The runs of a test that one gate has observed so far.
///
/// Accumulators of parts of the runs [`merge`](Self::merge) in any order: the outcome is that of
/// all runs observed by one accumulator. The indexes of the runs must be distinct.
pub struct GateAccumulator<'a> {
    gate: &'a LoadedGate,
    early_stop: Option<Watch<'a>>,
    runs: BTreeMap<u64, ObservedRun>,
}

#[derive(Serialize, Deserialize)]
struct ObservedRun {
    trace: Trace,
    expectations_held: Option<bool>,
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
        GateAccumulator {
            gate: self,
            early_stop: Some(self.watch()),
            runs: BTreeMap::new(),
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
        let runs = serde_json::from_str(json).map_err(|source| AccumulatorError {
            block: self.info.block,
            source,
        })?;
        Ok(GateAccumulator {
            gate: self,
            early_stop: None,
            runs,
        })
    }
}

impl GateAccumulator<'_> {
    /// Adds one finished run. A run that ended with an error must not be observed: it is no
    /// evidence about the agent.
    pub fn observe(&mut self, context: &Context<'_>, run: &Run<'_>) {
        if let Some(early_stop) = &mut self.early_stop {
            early_stop.count(context, run);
        }
        let observed = ObservedRun {
            trace: run.trace.clone(),
            expectations_held: run.expectations_held,
        };
        self.runs.insert(run.index, observed);
    }

    /// Adds the runs that another accumulator of the same gate has observed.
    pub fn merge(&mut self, other: Self) {
        self.early_stop = None;
        self.runs.extend(other.runs);
    }

    /// Returns the accumulator as JSON text, for another process to merge.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.runs).unwrap_or_default()
    }

    /// The number of observed runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs.len() as u64
    }

    /// Computes the figures and judges them. Without any run there is no evidence.
    #[must_use]
    pub fn finish(self, context: &Context<'_>) -> GateOutcome {
        let runs: Vec<Run<'_>> = self
            .runs
            .iter()
            .map(|(index, run)| Run {
                index: *index,
                trace: &run.trace,
                expectations_held: run.expectations_held,
            })
            .collect();
        self.gate.judge(context, &runs)
    }

    /// The verdict that the gate reaches whatever `remaining` or fewer further runs do; nothing
    /// while it depends on them. All runs up to the last observed index must have ended.
    pub fn decided(&mut self, remaining: u64) -> Option<Verdict> {
        self.early_stop.as_mut()?.decided(remaining)
    }

    /// A lower bound of the further runs that are needed before the gate can be decided, from 1 to
    /// `remaining`. This number of runs can be started at once without making one too many.
    #[must_use]
    pub fn least_further_runs(&self, remaining: u64) -> u64 {
        self.early_stop.as_ref().map_or(remaining, |early_stop| {
            early_stop.least_further_runs(remaining)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing;

    #[test]
    fn parts_merge_into_the_whole() {
        let gate = testing::load("golden_path", &json!({"calls": ["a"]})).unwrap();
        let traces: Vec<Trace> = ["a", "b", "a"]
            .iter()
            .map(|name| serde_json::from_value(json!({"tool_calls": [{"name": name}]})).unwrap())
            .collect();
        let runs = Run::number(&traces);
        testing::with_context(|context| {
            let mut last = gate.accumulator();
            last.observe(context, &runs[2]);
            let mut parts = gate.accumulator();
            runs[..2]
                .iter()
                .rev()
                .for_each(|run| parts.observe(context, run));
            last.merge(gate.accumulator_from_json(&parts.to_json()).unwrap());
            assert_eq!(last.runs(), 3);
            assert_eq!(last.finish(context), gate.judge(context, &runs));
            assert!(gate.accumulator_from_json("7").is_err());
        });
    }
}
