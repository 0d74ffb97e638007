//! Expectations: existing targets, and matchers that compile.

use mcptest_gate_api::GateInfo;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_yaml::{Diagnostic, Document, Span, suggest};

use super::diagnostics::{escape, place};

/// Compiles one expectation and checks that its target has a root that exists.
pub(super) fn compile(
    document: &Document,
    written: &WrittenExpectation,
    at: &str,
    roots: &[&str],
    gates: &[GateInfo],
    problems: &mut Vec<Diagnostic>,
) -> Option<Expectation> {
    match Expectation::compile(written, at) {
        Ok(expectation) if roots.contains(&expectation.target.root()) => Some(expectation),
        Ok(expectation) => {
            let span = if written.0.get("target").is_some() {
                document.span_at(&format!("{at}/target"))
            } else {
                document.key_span_at(&format!("{at}/{}", escape(expectation.target.as_str())))
            };
            problems.push(unknown_root(document, span, &expectation, roots, gates));
            None
        }
        Err(found) => {
            problems.extend(found.iter().map(|problem| place(document, "", problem)));
            None
        }
    }
}

fn unknown_root(
    document: &Document,
    span: Span,
    expectation: &Expectation,
    roots: &[&str],
    gates: &[GateInfo],
) -> Diagnostic {
    let root = expectation.target.root();
    let target = expectation.target.as_str();
    let owner = gates.iter().find(|gate| {
        gate.targets
            .iter()
            .any(|known| expectation.target.is_of(known.name))
    });
    let diagnostic = document.error(span, format!("unknown target `{target}`"));
    if let Some(owner) = owner {
        return diagnostic.help(format!(
            "this target belongs in the `expect:` list of `{}:`",
            owner.block
        ));
    }
    let diagnostic = match suggest(root, roots.iter().copied()) {
        Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    diagnostic.help(format!("a target here starts with {}", roots.join(", ")))
}
