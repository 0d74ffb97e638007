//! The test that a trace belongs to.

use std::collections::HashMap;

use mcptest_suite::Suite;
use mcptest_suite::suite::{AgentTest, Test};

use super::{ScoreError, ScoreSettings};

/// The agent tests of a suite, by name.
pub(super) struct Tests<'a> {
    /// All of them, in the order of the suite.
    pub all: Vec<&'a AgentTest>,
    /// True for the tests that are scored.
    pub selected: Vec<bool>,
    /// The destination of the traces that name a test: the first agent test of that name, or a
    /// direct call, of which `run --traces` writes traces too.
    named: HashMap<&'a str, Match>,
    /// The test that all traces belong to.
    only: Option<usize>,
}

/// The destination of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// The agent test at this place.
    Test(usize),
    /// A direct call, which gates do not judge.
    Direct,
    /// No test.
    None,
}

impl<'a> Tests<'a> {
    pub fn new(suite: &'a Suite, settings: &ScoreSettings) -> Result<Self, ScoreError> {
        let all: Vec<&AgentTest> = suite.agent_tests().collect();
        let mut named = HashMap::new();
        for (place, test) in all.iter().enumerate() {
            let found = Match::Test(place);
            named.entry(test.name.as_str()).or_insert(found);
        }
        let known = || all.iter().map(|test| test.name.clone()).collect();
        let only = match &settings.test {
            Some(name) => match named.get(name.as_str()) {
                Some(Match::Test(place)) => Some(*place),
                _ => {
                    return Err(ScoreError::UnknownTest {
                        name: name.clone(),
                        known: known(),
                    });
                }
            },
            None => None,
        };
        let is_direct = |test: &&Test| !matches!(test, Test::Agent(_));
        // The filter decides about the first test of a name.
        let mut first: HashMap<&str, &Test> = HashMap::new();
        for test in suite.tests.iter().filter(|test| !is_direct(test)) {
            first.entry(test.name()).or_insert(test);
        }
        let is_wanted = |name: &str| {
            let selects = |test: &&Test| settings.filter.selects(test);
            first.get(name).is_some_and(selects)
                && settings.test.as_deref().is_none_or(|wanted| wanted == name)
        };
        let selected = all.iter().map(|test| is_wanted(&test.name)).collect();
        let direct = suite.tests.iter().filter(is_direct).map(Test::name);
        named.extend(direct.map(|name| (name, Match::Direct)));
        Ok(Self {
            all,
            selected,
            named,
            only,
        })
    }

    /// Finds the test of a trace that names one, or none.
    pub fn find(&self, named: Option<&str>) -> Match {
        if let Some(only) = self.only {
            return Match::Test(only);
        }
        match named {
            Some(name) => self.named.get(name).copied().unwrap_or(Match::None),
            // With one test there is no choice.
            None if self.all.len() == 1 => Match::Test(0),
            None => Match::None,
        }
    }

    /// The error for a trace without a test. `position` counts from 0.
    pub fn unmatched(&self, position: u64, named: Option<&str>) -> ScoreError {
        ScoreError::UnmatchedTrace {
            position: position + 1,
            named: named.map(Into::into),
            known: self.all.iter().map(|test| test.name.clone()).collect(),
        }
    }
}

/// The place of a model among those of a test: models of the suite in its order, then others by
/// name. It does not depend on the order of the traces.
pub(super) fn model_order<'m>(
    test: &AgentTest,
    model: Option<&'m str>,
) -> (usize, Option<&'m str>) {
    let declared = test.models.iter().position(|it| Some(it.as_str()) == model);
    (declared.unwrap_or(test.models.len()), model)
}
