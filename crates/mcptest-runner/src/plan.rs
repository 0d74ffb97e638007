//! The cases of a suite, and the names of their rows.

use mcptest_events::{CaseId, Kind, PlannedCase};
use mcptest_suite::Suite;
use mcptest_suite::suite::{Section, Test};

/// A selection of tests.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Strings; a test is selected if its name contains at least one of them. Empty selects all.
    pub names: Vec<String>,
    /// Tags; a test is selected if it has at least one of them. Empty selects all.
    pub tags: Vec<String>,
}

impl Filter {
    /// Returns true if it selects a test.
    #[must_use]
    pub fn selects(&self, test: &Test) -> bool {
        let (name, tags) = (test.name(), test.tags());
        let named =
            self.names.is_empty() || self.names.iter().any(|word| name.contains(word.as_str()));
        let tagged = self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag));
        named && tagged
    }
}

/// One test with one model: a group of runs that is judged together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Index into the suite's tests.
    pub(crate) test: usize,
    /// The model of an agent test.
    pub(crate) model: Option<String>,
    /// The test's name, with the model if the test has several.
    pub(crate) label: String,
    /// The number of runs.
    pub(crate) runs: u32,
}

impl Case {
    /// The identity of the case. `suite` is the one that it was planned from.
    #[must_use]
    pub fn id(&self, suite: &Suite) -> CaseId {
        CaseId {
            suite: suite.name.clone(),
            name: suite
                .tests
                .get(self.test)
                .map(|test| test.name().to_owned())
                .unwrap_or_default(),
            model: self.model.clone(),
        }
    }

    /// The number of runs.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// The entry in the plan of an invocation. `position` counts the cases of all shards.
    #[must_use]
    pub fn planned(&self, suite: &Suite, position: u64) -> PlannedCase {
        let test = suite.tests.get(self.test);
        PlannedCase {
            id: self.id(suite),
            kind: self.kind(suite),
            label: self.label.clone(),
            runs: self.runs,
            position,
            tags: test.map(|test| test.tags().to_vec()).unwrap_or_default(),
            file: Some(suite.file.display().to_string()),
            line: test.and_then(Test::line),
        }
    }

    /// The kind of test.
    #[must_use]
    pub fn kind(&self, suite: &Suite) -> Kind {
        match suite.tests.get(self.test) {
            Some(Test::Direct(test)) => match test.request.section() {
                Section::Tools => Kind::Tool,
                Section::Resources => Kind::Resource,
                Section::Prompts => Kind::Prompt,
            },
            Some(Test::ToolQuality(_)) => Kind::ToolQuality,
            Some(Test::Agent(_)) | None => Kind::Agent,
        }
    }

    /// The name of a run's row: numbered if there are several.
    pub(crate) fn row(&self, run: u32) -> String {
        row(&self.label, self.runs > 1, u64::from(run))
    }
}

pub(crate) fn row(label: &str, several: bool, run: u64) -> String {
    if several {
        format!("{label} #{run}")
    } else {
        label.to_owned()
    }
}

pub(crate) fn label(name: &str, model: Option<&str>, several_models: bool) -> String {
    match model {
        Some(model) if several_models => format!("{name} [{model}]"),
        _ => name.to_owned(),
    }
}

/// The cases of a suite, in the order of the file; the models of a test in their order.
#[must_use]
pub fn plan(suite: &Suite, filter: &Filter) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, test) in suite
        .tests
        .iter()
        .enumerate()
        .filter(|(_, test)| filter.selects(test))
    {
        match test {
            Test::Agent(test) => cases.extend(test.models.iter().map(|model| Case {
                test: index,
                model: Some(model.clone()),
                label: label(&test.name, Some(model), test.models.len() > 1),
                runs: Suite::runs_of(test),
            })),
            Test::Direct(_) | Test::ToolQuality(_) => cases.push(Case {
                test: index,
                model: None,
                label: test.name().to_owned(),
                runs: 1,
            }),
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_number_of_several_runs_and_the_model_of_several_models() {
        let case = |label: &str, runs| Case {
            test: 0,
            model: None,
            label: label.to_owned(),
            runs,
        };
        assert_eq!(case("weather", 1).row(1), "weather");
        assert_eq!(case("weather", 10).row(3), "weather #3");
        assert_eq!(
            case(&label("weather", Some("gpt-5"), true), 3).row(3),
            "weather [gpt-5] #3"
        );
        assert_eq!(label("weather", Some("gpt-5"), false), "weather");
    }
}
