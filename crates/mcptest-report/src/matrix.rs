//! Tests by models: a verdict and one figure for each test and model.

use mcptest_trace::verdict::Verdict;

use mcptest_events::Kind;

use crate::report::{Report, TestReport};

/// One suite's tests that were run with several models.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matrix<'a> {
    pub suite: &'a str,
    /// In the order of their first appearance.
    pub models: Vec<&'a str>,
    /// A test's name, and a cell for each model; `None` if the test did not run with it.
    pub rows: Vec<(&'a str, Vec<Option<Cell>>)>,
}

/// The result of a test with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub verdict: Verdict,
    pub figure: String,
}

/// The matrix of each suite with several models per test.
pub(crate) fn matrices(report: &Report) -> Vec<Matrix<'_>> {
    let mut found: Vec<Matrix<'_>> = Vec::new();
    for test in report.tests.iter().filter(|test| test.kind == Kind::Agent) {
        let Some(model) = test.id.model.as_deref() else {
            continue;
        };
        let at = found
            .iter()
            .position(|matrix| matrix.suite == test.id.suite)
            .unwrap_or_else(|| {
                found.push(Matrix {
                    suite: &test.id.suite,
                    models: Vec::new(),
                    rows: Vec::new(),
                });
                found.len() - 1
            });
        found[at].put(test, model);
    }
    // Tests with one model each, even different ones, have nothing to compare.
    found.retain(|matrix| {
        matrix
            .rows
            .iter()
            .any(|(_, cells)| cells.iter().flatten().count() > 1)
    });
    for matrix in &mut found {
        let width = matrix.models.len();
        for (_, cells) in &mut matrix.rows {
            cells.resize(width, None);
        }
    }
    found
}

impl<'a> Matrix<'a> {
    fn put(&mut self, test: &'a TestReport, model: &'a str) {
        let column = self
            .models
            .iter()
            .position(|known| *known == model)
            .unwrap_or_else(|| {
                self.models.push(model);
                self.models.len() - 1
            });
        let is_free = |cells: &[Option<Cell>]| cells.get(column).is_none_or(Option::is_none);
        // Two suites with the same name may have tests of the same name: they get separate rows.
        let row = self
            .rows
            .iter()
            .position(|(name, cells)| *name == test.id.name && is_free(cells));
        let row = row.unwrap_or_else(|| {
            self.rows.push((&test.id.name, Vec::new()));
            self.rows.len() - 1
        });
        let cells = &mut self.rows[row].1;
        if cells.len() <= column {
            cells.resize(column + 1, None);
        }
        cells[column] = Some(Cell {
            verdict: test.verdict,
            figure: headline(test),
        });
    }
}

/// The figure of a test: the selection rate of its floor, else its selection F1, else the number of
/// runs that passed.
fn headline(test: &TestReport) -> String {
    if test.is_undecided() {
        return "interrupted".to_owned();
    }
    let value = |block: &str, target: &str| {
        let gate = test.gates.iter().find(|gate| gate.block == block)?;
        gate.values.get(target)?.as_u64()
    };
    if let Some(rate) = value("tool_selection", "floor.selection_rate") {
        return format!("{rate}%");
    }
    if let Some(f1) = value("equal_function_sets", "tool_selection.f1") {
        return format!("f1 {f1}");
    }
    format!("{}/{}", test.passed_runs(), test.run_count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{concluded, floor, test};

    #[test]
    fn tests_and_models_keep_their_order() {
        let mut first = test("a", Some("m2"), Verdict::Pass);
        first.gates.push(floor(Verdict::Pass, 90));
        let report = concluded(vec![
            first,
            test("a", Some("m1"), Verdict::Fail),
            test("b", Some("m3"), Verdict::Error),
            test("tool", None, Verdict::Pass),
        ]);
        let cell = |verdict, figure: &str| {
            Some(Cell {
                verdict,
                figure: figure.to_owned(),
            })
        };
        assert_eq!(
            matrices(&report),
            [Matrix {
                suite: "sample",
                models: vec!["m2", "m1", "m3"],
                rows: vec![
                    (
                        "a",
                        vec![cell(Verdict::Pass, "90%"), cell(Verdict::Fail, "0/1"), None]
                    ),
                    ("b", vec![None, None, cell(Verdict::Error, "0/1")]),
                ],
            }]
        );
    }

    #[test]
    fn one_model_per_test_gives_no_matrix() {
        let report = concluded(vec![
            test("a", Some("m1"), Verdict::Pass),
            test("b", Some("m2"), Verdict::Pass),
        ]);
        assert_eq!(matrices(&report), []);
    }
}
