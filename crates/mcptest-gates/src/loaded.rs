//! Gates whose kind the rest of the program does not need to know: read, score, judge.

use serde_json::{Map, Value};

use super::outlook::{Imagined, Lookout, Outlook, Reaches};
use super::{Context, Gate, GateInfo, GateOutcome, LoadContext, Run, Score};
use mcptest_trace::detail::Detail;
use mcptest_trace::expect::Expectation;
use mcptest_trace::matcher::Problem;
use mcptest_trace::verdict::Verdict;

pub(super) trait Scorer: Send + Sync {
    fn score(&self, context: &Context<'_>, runs: &[Run<'_>]) -> Score;
    fn expectations(&self) -> &[Expectation];
    fn lookout(&self) -> Box<dyn Lookout + '_>;
}

pub(super) struct Loaded<G> {
    pub block: G,
    pub expectations: Vec<Expectation>,
}

impl<G: Gate> Scorer for Loaded<G> {
    fn score(&self, context: &Context<'_>, runs: &[Run<'_>]) -> Score {
        self.block.score(context, runs)
    }

    fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    fn lookout(&self) -> Box<dyn Lookout + '_> {
        Box::new(Watched {
            gate: self,
            tally: G::Tally::default(),
        })
    }
}

/// A block that counts runs.
struct Watched<'a, G: Gate> {
    gate: &'a Loaded<G>,
    tally: G::Tally,
}

impl<G: Gate> Lookout for Watched<'_, G> {
    fn count(&mut self, context: &Context<'_>, run: &Run<'_>) {
        self.gate.block.count(&mut self.tally, context, run);
    }

    fn expectations(&self) -> &[Expectation] {
        &self.gate.expectations
    }

    fn outlook(&self, remaining: u64) -> Outlook {
        self.gate.block.outlook(&self.tally, remaining)
    }

    fn imagine(&self, next: Imagined, remaining: u64) -> Option<Reaches> {
        self.gate.block.imagine(&self.tally, next, remaining)
    }
}

/// A block of a test, ready to judge.
pub struct LoadedGate {
    pub(super) info: &'static GateInfo,
    pub(super) scorer: Box<dyn Scorer>,
}

impl std::fmt::Debug for LoadedGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedGate({})", self.info.block)
    }
}

impl LoadedGate {
    /// Reads a written block. Problems have pointers from the block; without an error among them
    /// the gate is there.
    #[must_use]
    pub fn load(
        info: &'static GateInfo,
        written: &Value,
        context: &LoadContext<'_>,
    ) -> (Option<Self>, Vec<Problem>) {
        let (scorer, problems) = (info.load)(written, context);
        (scorer.map(|scorer| Self { info, scorer }), problems)
    }

    /// Which gate it is.
    #[must_use]
    pub fn info(&self) -> &'static GateInfo {
        self.info
    }

    /// Scores and judges the runs that were carried through. Without any, nothing can be said about
    /// the agent.
    #[must_use]
    pub fn judge(&self, context: &Context<'_>, runs: &[Run<'_>]) -> GateOutcome {
        if runs.is_empty() {
            return self.without_runs();
        }
        let score = self.scorer.score(context, runs);
        debug_assert!(
            score.values.iter().map(|(name, _)| *name).eq(self
                .info
                .targets
                .iter()
                .map(|target| target.name)),
            "{} must report exactly its targets, in order",
            self.info.block
        );
        let root = nested(&score.values);
        let mut verdict = Verdict::Pass;
        let mut assertions = Vec::new();
        for expectation in self.scorer.expectations() {
            let target = expectation.target.as_str();
            let why = score
                .absent
                .iter()
                .find(|(name, _)| target.starts_with(name))
                .map(|(_, why)| why.as_str());
            let assertion = expectation.apply(&root, why);
            if !assertion.passed {
                let unjudged = score
                    .undetermined
                    .iter()
                    .any(|name| target.starts_with(name));
                verdict = verdict.max(if unjudged {
                    Verdict::NoEvidence
                } else {
                    Verdict::Fail
                });
            }
            assertions.push(assertion);
        }
        if score.no_evidence.is_some() {
            verdict = verdict.max(Verdict::NoEvidence);
        }
        GateOutcome {
            block: self.info.block.to_owned(),
            verdict,
            values: score
                .values
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            detail: score.detail.into(),
            assertions,
            summary: score.summary,
            findings: score.findings,
            no_evidence: score.no_evidence.filter(|_| verdict == Verdict::NoEvidence),
            status_lines: score.status_lines,
        }
    }

    fn without_runs(&self) -> GateOutcome {
        GateOutcome {
            block: self.info.block.to_owned(),
            verdict: Verdict::NoEvidence,
            values: self
                .info
                .targets
                .iter()
                .map(|target| (target.name.to_owned(), Value::Null))
                .collect(),
            detail: Detail::default(),
            assertions: Vec::new(),
            summary: "no run to judge".to_owned(),
            findings: Vec::new(),
            no_evidence: Some("no run to judge".to_owned()),
            status_lines: Vec::new(),
        }
    }
}

/// `a.b: 1` as `{"a": {"b": 1}}`, so that targets are paths here as everywhere.
fn nested(values: &[(&'static str, Value)]) -> Value {
    let mut root = Map::new();
    for (name, value) in values {
        let mut map = &mut root;
        let mut keys = name.split('.').peekable();
        while let Some(key) = keys.next() {
            if keys.peek().is_none() {
                map.insert(key.to_owned(), value.clone());
                break;
            }
            let entry = map
                .entry(key.to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            match entry {
                Value::Object(inner) => map = inner,
                // Two targets of which one is the other's prefix: the registry test forbids it.
                _ => break,
            }
        }
    }
    Value::Object(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_nest_for_paths() {
        let root = nested(&[("a.b", 1.into()), ("a.c", 2.into()), ("d", 3.into())]);
        assert_eq!(root, serde_json::json!({"a": {"b": 1, "c": 2}, "d": 3}));
    }
}
