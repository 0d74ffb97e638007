//! The test that a trace belongs to.

use std::collections::{HashMap, HashSet};

use mcptest_suite::Suite;
use mcptest_suite::suite::{AgentTest, Test};

use super::{ScoreError, ScoreSettings};

/// The agent tests of a suite, by name.
pub(super) struct Tests<'a> {
    /// All of them, in the order of the suite.
    pub all: Vec<&'a AgentTest>,
    /// True for the tests that are scored.
    pub selected: Vec<bool>,
    /// The first test of each name.
    places: HashMap<&'a str, usize>,
    /// Direct calls, of which `run --traces` writes traces too.
    direct: HashSet<&'a str>,
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
        let mut places = HashMap::new();
        for (place, test) in all.iter().enumerate() {
            places.entry(test.name.as_str()).or_insert(place);
        }
        let known = || all.iter().map(|test| test.name.clone()).collect();
        let only = match &settings.test {
            Some(name) => match places.get(name.as_str()) {
                Some(place) => Some(*place),
                None => {
                    return Err(ScoreError::UnknownTest {
                        name: name.clone(),
                        known: known(),
                    });
                }
            },
            None => None,
        };
        let is_direct = |test: &&Test| !matches!(test, Test::Agent(_));
        let selected = all
            .iter()
            .map(|test| is_selected(suite, settings, &test.name))
            .collect();
        Ok(Self {
            direct: suite
                .tests
                .iter()
                .filter(is_direct)
                .map(Test::name)
                .collect(),
            all,
            selected,
            places,
            only,
        })
    }

    /// Finds the test of a trace that names one, or none.
    pub fn find(&self, named: Option<&str>) -> Match {
        if let Some(only) = self.only {
            return Match::Test(only);
        }
        match named {
            Some(name) if self.direct.contains(name) => Match::Direct,
            Some(name) => self
                .places
                .get(name)
                .map_or(Match::None, |at| Match::Test(*at)),
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

/// The filter decides about the first test of a name.
fn is_selected(suite: &Suite, settings: &ScoreSettings, name: &str) -> bool {
    let is_it = |test: &&Test| matches!(test, Test::Agent(agent) if agent.name == name);
    let first = suite.tests.iter().find(is_it);
    first.is_some_and(|test| settings.filter.selects(test))
        && settings.test.as_deref().is_none_or(|wanted| wanted == name)
}
