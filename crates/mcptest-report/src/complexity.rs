//! The results of `distractors:` gates, grouped by the `complexity:` of their tests.
//!
//! The figures are those of the gates. Nothing is summed up over tests: a curve of one test does
//! not compare with that of another task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::{Report, TestReport};

/// The `distractors:` results with the same complexity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComplexityGroup {
    /// `serial` or `parallel`; absent for tests that do not state it.
    pub complexity: Option<String>,
    /// The tests, in the order of the report.
    pub tests: Vec<DistractorResult>,
}

/// The result of a `distractors:` gate with the test it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DistractorResult {
    /// The suite it is from.
    pub suite: String,
    /// The test's name.
    pub test: String,
    /// The model.
    pub model: Option<String>,
    /// Right choices in percent, over all runs.
    pub accuracy: u64,
    /// The exact lower bound of the rate of successful runs, in percent.
    pub certified_lower: u64,
    /// The number of runs.
    pub runs: u64,
    /// Runs without any call.
    pub chose_nothing: u64,
    /// The figures at each number of injected distractors.
    pub curve: Vec<CurvePoint>,
}

/// The figures at one number of injected distractors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// The number of injected distractors; absent if it is unknown.
    pub count: Option<u64>,
    /// Right choices in percent.
    pub accuracy: u64,
    /// The number of runs.
    pub runs: u64,
    /// Runs without any call.
    pub chose_nothing: u64,
}

/// The part of a gate's detail that is shown here.
#[derive(Deserialize)]
struct Figures {
    complexity: Option<String>,
    accuracy: u64,
    certified_lower: u64,
    runs: u64,
    chose_nothing: u64,
    curve: Vec<CurvePoint>,
}

/// The results by complexity: `serial`, `parallel`, then those without. Empty if no test states a
/// complexity.
pub(crate) fn groups(report: &Report) -> Vec<ComplexityGroup> {
    groups_of(report.tests.iter())
}

/// The results of some tests by complexity.
pub(crate) fn groups_of<'a>(
    tests: impl IntoIterator<Item = &'a TestReport>,
) -> Vec<ComplexityGroup> {
    let mut groups: Vec<ComplexityGroup> = Vec::new();
    for test in tests {
        for gate in test.gates.iter().filter(|gate| gate.block == "distractors") {
            let Ok(figures) = serde_json::from_str::<Figures>(&gate.detail.text()) else {
                continue;
            };
            let result = DistractorResult {
                suite: test.id.suite.clone(),
                test: test.id.name.clone(),
                model: test.id.model.clone(),
                accuracy: figures.accuracy,
                certified_lower: figures.certified_lower,
                runs: figures.runs,
                chose_nothing: figures.chose_nothing,
                curve: figures.curve,
            };
            let known = groups
                .iter_mut()
                .find(|group| group.complexity == figures.complexity);
            match known {
                Some(group) => group.tests.push(result),
                None => groups.push(ComplexityGroup {
                    complexity: figures.complexity,
                    tests: vec![result],
                }),
            }
        }
    }
    if groups.iter().all(|group| group.complexity.is_none()) {
        return Vec::new();
    }
    groups.sort_by_key(|group| match group.complexity.as_deref() {
        Some("serial") => 0,
        Some("parallel") => 1,
        Some(_) => 2,
        None => 3,
    });
    groups
}

impl ComplexityGroup {
    /// The heading of the group.
    pub(crate) fn name(&self) -> &str {
        self.complexity.as_deref().unwrap_or("not stated")
    }
}

impl DistractorResult {
    /// The test, with its model.
    pub(crate) fn label(&self) -> String {
        match &self.model {
            Some(model) => format!("{} [{model}]", self.test),
            None => self.test.clone(),
        }
    }

    /// Accuracy by count: `0: 100, 4: 93`.
    pub(crate) fn points(&self) -> String {
        let points = self.curve.iter().map(|point| {
            let count = point
                .count
                .map_or_else(|| "?".to_owned(), |count| count.to_string());
            format!("{count}: {}", point.accuracy)
        });
        points.collect::<Vec<String>>().join(", ")
    }

    /// The figures in a line.
    pub(crate) fn line(&self) -> String {
        format!(
            "accuracy {} · by count {} · {} of {} runs chose nothing · certified {}",
            self.accuracy,
            self.points(),
            self.chose_nothing,
            self.runs,
            self.certified_lower
        )
    }
}

#[cfg(test)]
mod tests {
    use mcptest_trace::outcome::GateOutcome;
    use mcptest_trace::verdict::Verdict;
    use serde_json::{Value, json};

    use super::*;
    use crate::model;
    use crate::reporter::{Style, render};
    use crate::samples;

    fn distracted(complexity: Value, accuracy: u64) -> GateOutcome {
        let detail = json!({
            "runs": 4, "accuracy": accuracy, "chose_nothing": 1, "certified_lower": 5,
            "complexity": complexity, "per_run": [],
            "curve": [{"count": 0, "accuracy": 100, "runs": 2, "chose_nothing": 0},
                      {"count": 8, "accuracy": accuracy, "runs": 2, "chose_nothing": 1}],
        });
        let mut gate = samples::floor(Verdict::Pass, 100);
        gate.block = "distractors".to_owned();
        gate.detail = detail.as_object().unwrap().clone().into();
        gate.assertions.clear();
        gate.summary = format!("accuracy {accuracy}");
        gate
    }

    fn sample(complexities: &[Value]) -> Report {
        let tests = complexities.iter().enumerate().map(|(at, complexity)| {
            let mut test = samples::test(&format!("t{at}"), Some("m"), Verdict::Pass);
            test.gates = vec![distracted(complexity.clone(), 90 + at as u64)];
            test
        });
        Report::from(&model::Report::conclude(tests.collect(), false))
    }

    fn rendered(reporter: &str, report: &Report) -> String {
        let mut out = Vec::new();
        render(reporter, report, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn issue_10_every_reporter_groups_by_complexity() {
        let tags = [
            json!("parallel"),
            json!("serial"),
            Value::Null,
            json!("serial"),
        ];
        let report = sample(&tags);
        let found = groups(&report);
        let names: Vec<(&str, usize)> = found
            .iter()
            .map(|group| (group.name(), group.tests.len()))
            .collect();
        assert_eq!(names, [("serial", 2), ("parallel", 1), ("not stated", 1)]);

        let pretty = rendered("pretty", &report);
        let section = "\
distractors by complexity
  serial
    t1 [m]  accuracy 91 · by count 0: 100, 8: 91 · 1 of 4 runs chose nothing · certified 5
    t3 [m]  accuracy 93 · by count 0: 100, 8: 93 · 1 of 4 runs chose nothing · certified 5
  parallel
    t0 [m]  accuracy 90 · by count 0: 100, 8: 90 · 1 of 4 runs chose nothing · certified 5
  not stated
    t2 [m]  accuracy 92 · by count 0: 100, 8: 92 · 1 of 4 runs chose nothing · certified 5
";
        assert!(pretty.contains(section), "{pretty}");

        let json: Value = serde_json::from_str(&rendered("json", &report)).unwrap();
        assert_eq!(json["distractors"][0]["complexity"], "serial");
        assert_eq!(json["distractors"][0]["tests"][1]["test"], "t3");
        assert_eq!(
            json["distractors"][1]["tests"][0]["curve"][1]["accuracy"],
            90
        );
        assert_eq!(json["distractors"][2]["complexity"], Value::Null);
        serde_json::from_value::<model::Report>(json).unwrap();

        let markdown = rendered("markdown", &report);
        let table = "\
### Distractors

| complexity | test | model | accuracy | by count | chose nothing | certified |
|---|---|---|---|---|---|---|
| serial | `t1` | `m` | 91 % | 0: 100, 8: 91 | 1 of 4 | 5 % |
| serial | `t3` | `m` | 93 % | 0: 100, 8: 93 | 1 of 4 | 5 % |
| parallel | `t0` | `m` | 90 % | 0: 100, 8: 90 | 1 of 4 | 5 % |
| not stated | `t2` | `m` | 92 % | 0: 100, 8: 92 | 1 of 4 | 5 % |
";
        assert!(markdown.contains(table), "{markdown}");

        let junit = rendered("junit", &report);
        let properties = "\
    <properties>
      <property name=\"distractors.serial: t1 [m]\" value=\"accuracy 91 · by count 0: 100, 8: 91 \
· 1 of 4 runs chose nothing · certified 5\"/>
      <property name=\"distractors.serial: t3 [m]\"";
        assert!(junit.contains(properties), "{junit}");
    }

    #[test]
    fn without_a_complexity_there_is_nothing_to_group() {
        let report = sample(&[Value::Null, Value::Null]);
        assert_eq!(groups(&report), []);
        for reporter in ["pretty", "json", "markdown", "junit"] {
            let text = rendered(reporter, &report);
            for word in [
                "by complexity",
                "\"distractors\": [",
                "### Distractors",
                "<properties>",
            ] {
                assert!(!text.contains(word), "{text}");
            }
        }
    }
}
