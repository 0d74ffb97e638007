//! A block of a suite, ready to observe and judge runs.

use serde_json::{Map, Value};

use crate::accumulate::AnyBlock;
use crate::{
    Context, GateInfo, GateOutcome, LoadContext, ReadingRequest, Run, Score, ToolReference,
};
use mcptest_trace::detail::Detail;
use mcptest_trace::matcher::Problem;
use mcptest_trace::verdict::Verdict;

/// A block of a test, ready to judge.
pub struct LoadedGate {
    info: &'static GateInfo,
    pub(crate) block: Box<dyn AnyBlock>,
}

impl std::fmt::Debug for LoadedGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedGate({})", self.info.block)
    }
}

impl LoadedGate {
    /// Reads a written block. The pointers of problems start at the block. The gate is returned
    /// unless a problem is an error.
    #[must_use]
    pub fn load(
        info: &'static GateInfo,
        written: &Value,
        context: &LoadContext<'_>,
    ) -> (Option<Self>, Vec<Problem>) {
        let (block, problems) = (info.load)(written, context);
        (block.map(|block| Self { info, block }), problems)
    }

    /// The entry of the registry.
    #[must_use]
    pub fn info(&self) -> &'static GateInfo {
        self.info
    }

    /// The tools that the block names.
    #[must_use]
    pub fn tool_names(&self) -> Vec<ToolReference> {
        self.block.tool_names()
    }

    /// The request for a model's reading of each run's closing message.
    #[must_use]
    pub fn reading(&self) -> Option<ReadingRequest> {
        self.block.reading()
    }

    /// Observes all runs and judges them.
    #[must_use]
    pub fn judge(&self, context: &Context<'_>, runs: &[Run<'_>]) -> GateOutcome {
        let mut accumulator = self.accumulator();
        for run in runs {
            accumulator.observe(context, run);
        }
        accumulator.finish(context)
    }

    /// Applies the expectations to the figures.
    pub(crate) fn judge_score(&self, score: Score) -> GateOutcome {
        debug_assert!(
            score.values.iter().map(|(name, _)| *name).eq(self
                .info
                .targets
                .iter()
                .map(|target| target.name)),
            "{} must report exactly its targets, in order",
            self.info.block
        );
        let names: Vec<&'static str> = score.values.iter().map(|(name, _)| *name).collect();
        let mut root = nested(score.values);
        let mut verdict = Verdict::Pass;
        let mut assertions = Vec::new();
        for expectation in self.block.expectations() {
            let target = &expectation.target;
            let why = score
                .absent
                .iter()
                .find(|(name, _)| target.is_of(name))
                .map(|(_, why)| why.as_str());
            let assertion = expectation.apply(&root, why);
            if !assertion.passed {
                let undetermined = score.undetermined.iter().any(|name| target.is_of(name));
                verdict = verdict.max(if undetermined {
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
            values: names
                .into_iter()
                .map(|name| (name.to_owned(), take(&mut root, name)))
                .collect(),
            detail: score.detail,
            assertions,
            summary: score.summary,
            findings: score.findings,
            more_findings: score.more_findings,
            notes: score.notes,
            advisories: score.advisories,
            no_evidence: score.no_evidence.filter(|_| verdict == Verdict::NoEvidence),
            status_lines: score.status_lines,
        }
    }

    pub(crate) fn outcome_without_runs(&self) -> GateOutcome {
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
            more_findings: 0,
            notes: Vec::new(),
            advisories: Vec::new(),
            no_evidence: Some("no run to judge".to_owned()),
            status_lines: Vec::new(),
        }
    }
}

/// Turns `a.b: 1` into `{"a": {"b": 1}}`, so that targets are paths here as everywhere.
fn nested(values: Vec<(&'static str, Value)>) -> Value {
    let mut root = Map::new();
    for (name, value) in values {
        let mut map = &mut root;
        let mut keys = name.split('.').peekable();
        while let Some(key) = keys.next() {
            if keys.peek().is_none() {
                map.insert(key.to_owned(), value);
                break;
            }
            let entry = map
                .entry(key.to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            match entry {
                Value::Object(inner) => map = inner,
                // Two targets of which one is the other's prefix: a test of the registry forbids
                // it.
                _ => break,
            }
        }
    }
    Value::Object(root)
}

/// Takes a value out of those that [`nested`] has combined.
fn take(root: &mut Value, name: &str) -> Value {
    let mut keys = name.split('.');
    let found = keys.try_fold(root, |value, key| value.get_mut(key));
    found.map(Value::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use crate::{Accumulator, Gate, TargetInfo, Unit};
    use mcptest_trace::expect::{Expectation, WrittenExpectation};

    /// A gate with two figures, of which the name of one begins with that of the other.
    #[derive(Deserialize, JsonSchema)]
    struct Costs {
        expect: Vec<WrittenExpectation>,
    }

    #[derive(Default, Serialize, Deserialize)]
    struct Nothing;

    impl Accumulator for Nothing {
        fn merge(&mut self, _: Self) {}

        fn renumber(&mut self, _: &dyn Fn(u64) -> u64) {}
    }

    impl Gate for Costs {
        const BLOCK: &'static str = "costs";
        const SUMMARY: &'static str = "Costs.";
        const TARGETS: &'static [TargetInfo] = &[
            TargetInfo::new("costs.cost", Unit::Count, "All."),
            TargetInfo::new("costs.cost_per_correct", Unit::Count, "Each."),
        ];

        fn defaults(&self) -> Vec<Expectation> {
            Vec::new()
        }

        fn expect(&self) -> &[WrittenExpectation] {
            &self.expect
        }

        type Accumulator = Nothing;

        fn observe(&self, _: &mut Nothing, _: &Context<'_>, _: &Run<'_>) {}

        fn finish(&self, _: Nothing, _: &Context<'_>) -> Score {
            Score::default()
        }
    }

    #[test]
    fn issue_10_reasons_and_verdicts_belong_to_whole_names() {
        static INFO: GateInfo = GateInfo::of::<Costs>();
        let block = serde_json::json!({"expect": [
            {"costs.cost_per_correct": {">=": 1}},
            {"costs.cost": {">=": 1}},
        ]});
        let context = LoadContext {
            to_run: true,
            runs: None,
            siblings: &[],
            attacks: Default::default(),
        };
        let gate = LoadedGate::load(&INFO, &block, &context).0.unwrap();
        let figures = || Costs::TARGETS.iter().map(|target| target.name);
        let outcome = gate.judge_score(Score {
            values: figures().map(|name| (name, Value::Null)).collect(),
            absent: vec![("costs.cost", "there is no price".to_owned())],
            undetermined: vec!["costs.cost"],
            ..Score::default()
        });
        let reason = |at: usize| outcome.assertions[at].reason.clone().unwrap_or_default();
        assert!(!reason(0).contains("no price"), "{}", reason(0));
        assert!(reason(1).contains("no price"), "{}", reason(1));
        // The longer name is not undetermined, so its assertion fails.
        assert_eq!(outcome.verdict, Verdict::Fail);
    }

    #[test]
    fn values_nest_for_paths() {
        let mut root = nested(vec![("a.b", 1.into()), ("a.c", 2.into()), ("d", 3.into())]);
        assert_eq!(root, serde_json::json!({"a": {"b": 1, "c": 2}, "d": 3}));
        assert_eq!(
            (take(&mut root, "a.c"), take(&mut root, "d")),
            (2.into(), 3.into())
        );
    }
}
