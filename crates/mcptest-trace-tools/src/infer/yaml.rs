//! The inferred suite as YAML with comments.

use std::fmt::Write as _;

use mcptest_json::text::one_line;
use mcptest_yaml::write;
use serde_json::Value;

use super::{InferredSuite, InferredTest, Mode, Supported};

/// The figures that the traces reach, by test and target.
pub trait Bounds {
    /// The figure of a target; `None` if it is not known.
    fn figure(&self, test: &str, target: &str) -> Option<f64>;
}

impl<F: Fn(&str, &str) -> Option<f64>> Bounds for F {
    fn figure(&self, test: &str, target: &str) -> Option<f64> {
        self(test, target)
    }
}

impl InferredSuite {
    /// The suite as YAML. Bounds are the figures that the traces reach; without them, the gates
    /// have their defaults.
    #[must_use]
    pub fn to_yaml(&self, bounds: &dyn Bounds) -> String {
        let traces: usize = self.tests.iter().map(|test| test.traces).sum();
        let mut out = format!(
            "# A starter suite, inferred by `mcptest trace infer` from {}.\n\
             # It describes what these traces have in common: review each part before you rely on it.\n",
            counted(traces),
        );
        if self.failed_runs > 0 {
            let runs = self.failed_runs;
            let _ = writeln!(out, "# Not used: {runs} runs that could not be completed.");
        }
        out.push_str("tests:\n");
        for test in &self.tests {
            test.write(&mut out, bounds);
        }
        out
    }
}

impl InferredTest {
    fn write(&self, out: &mut String, bounds: &dyn Bounds) {
        let of_all = |part: usize| format!("{part} of {}", counted(self.traces));
        let _ = writeln!(
            out,
            "  - name: {}  # {}",
            string(&self.name),
            counted(self.traces)
        );
        if let Some(tokens) = self.max_tokens {
            let _ = writeln!(
                out,
                "    expect:\n      \
                 - conversation.tokens.total: {{ \"<=\": {tokens} }}  # the largest of {}",
                counted(self.traces)
            );
        }
        self.write_classes(out, bounds, &of_all);
        if let Some(path) = &self.golden_path {
            let calls: Vec<String> = path.part.iter().map(|tool| string(tool)).collect();
            let _ = writeln!(out, "    golden_path:");
            let _ = writeln!(
                out,
                "      calls: [{}]  # exactly so in {}",
                calls.join(", "),
                of_all(path.traces)
            );
            if let Some(penalty) = bounds.figure(&self.name, "golden_path.penalty") {
                // Down: the traces themselves must reach it.
                let penalty = (penalty * 10_000.0).floor() / 10_000.0;
                let _ = writeln!(
                    out,
                    "      expect:\n        - golden_path.penalty: {{ \">=\": {penalty} }}  # the most wasteful of these traces"
                );
            }
        }
        self.write_trajectory(out, &of_all);
        if !self.dependencies.is_empty() || !self.order.is_empty() {
            let _ = writeln!(out, "    trajectory_axes:");
            edges(
                out,
                "dependencies",
                ("producer", "consumer"),
                &self.dependencies,
                &of_all,
            );
            edges(out, "order", ("first", "second"), &self.order, &of_all);
        }
        let parts = [
            self.classes.is_empty(),
            self.golden_path.is_none(),
            self.trajectory.is_none(),
        ];
        if parts.iter().all(|absent| *absent) {
            let _ = writeln!(out, "    # The traces have no call in common.");
        }
    }

    fn write_classes(
        &self,
        out: &mut String,
        bounds: &dyn Bounds,
        of_all: &dyn Fn(usize) -> String,
    ) {
        if self.classes.is_empty() {
            return;
        }
        let _ = writeln!(out, "    equal_function_sets:\n      classes:");
        for Supported { part, traces } in &self.classes {
            let members: Vec<String> = part.members.iter().map(|tool| string(tool)).collect();
            let _ = writeln!(
                out,
                "        - {{ name: {}, members: [{}] }}  # {}",
                string(&part.name),
                members.join(", "),
                of_all(*traces),
            );
        }
        if let Some(f1) = bounds.figure(&self.name, "tool_selection.f1") {
            let _ = writeln!(
                out,
                "      expect:\n        - tool_selection.f1: {{ \">=\": {f1} }}  # these traces reach {f1}"
            );
        }
    }

    fn write_trajectory(&self, out: &mut String, of_all: &dyn Fn(usize) -> String) {
        let Some(reference) = &self.trajectory else {
            return;
        };
        let meaning = match reference.mode {
            _ if reference.calls.is_empty() => "no calls",
            Mode::Strict => "the same calls in the same order",
            Mode::ExactSet => "the same calls",
            Mode::Superset => "at least these calls",
        };
        let all = of_all(self.traces);
        let _ = writeln!(out, "    trajectory:");
        let _ = writeln!(
            out,
            "      mode: {}  # {meaning} in {all}",
            reference.mode.name()
        );
        let none = if reference.calls.is_empty() {
            " []"
        } else {
            ""
        };
        let _ = writeln!(out, "      calls:{none}");
        for call in &reference.calls {
            let _ = writeln!(out, "        - name: {}", string(&call.tool));
            if !call.args.is_empty() {
                let args = flow(&Value::Object(call.args.clone()));
                let _ = writeln!(out, "          args: {{ subset: {args} }}");
            }
            if !call.varying.is_empty() {
                let names = one_line(&call.varying.join(", "));
                let _ = writeln!(out, "          # different in each trace or call: {names}");
            }
        }
    }
}

fn edges(
    out: &mut String,
    axis: &str,
    (first, second): (&str, &str),
    edges: &[Supported<super::Edge>],
    of_all: &dyn Fn(usize) -> String,
) {
    if edges.is_empty() {
        return;
    }
    let _ = writeln!(out, "      {axis}:");
    for Supported { part, traces } in edges {
        let _ = writeln!(
            out,
            "        - {{ {first}: {}, {second}: {} }}  # {}",
            string(&part.first),
            string(&part.second),
            of_all(*traces)
        );
    }
}

fn counted(traces: usize) -> String {
    format!("{traces} trace{}", if traces == 1 { "" } else { "s" })
}

/// A recorded value in flow style. A suite expands `${…}`, so a recorded one is escaped.
fn flow(value: &Value) -> String {
    write::flow(&write::escape_all_references(value))
}

/// A recorded string, quoted unless it is a plain word.
fn string(text: &str) -> String {
    write::string(&write::escape_references(text))
}
