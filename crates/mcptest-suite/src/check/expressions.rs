//! Expectations: existing targets, and matchers that compile.

use mcptest_gate_api::GateInfo;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::target::Target;
use mcptest_yaml::{Diagnostic, Document, Span, suggest};

use super::diagnostics::{escape, place};

/// The roots whose members are known, with these. Others have what a server or an agent sends.
const KNOWN_MEMBERS: [(&str, &[&str]); 2] = [
    ("client", &["sampling", "elicitation", "roots", "other"]),
    ("cancellation", &["sent", "responsive", "answered", "error"]),
];

/// The members of a `result`, which may have others, too.
const RESULT_MEMBERS: (&str, &[&str]) = (
    "result",
    &[
        "content",
        "structuredContent",
        "text",
        "is_error",
        "isError",
    ],
);

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
        Ok(expectation) => {
            let span = || match written.0.get("target") {
                Some(_) => document.span_at(&format!("{at}/target")),
                None => {
                    document.key_span_at(&format!("{at}/{}", escape(expectation.target.as_str())))
                }
            };
            let problem = if roots.contains(&expectation.target.root()) {
                unknown_member(document, span, &expectation.target)
            } else {
                let span = span();
                Some(unknown_root(document, span, &expectation, roots, gates))
            };
            match problem {
                None => Some(expectation),
                Some(problem) => {
                    problems.push(problem);
                    None
                }
            }
        }
        Err(found) => {
            problems.extend(found.iter().map(|problem| place(document, "", problem)));
            None
        }
    }
}

fn unknown_member(
    document: &Document,
    span: impl FnOnce() -> Span,
    target: &Target,
) -> Option<Diagnostic> {
    let root = target.root();
    let (_, members) = KNOWN_MEMBERS.iter().find(|(known, _)| *known == root)?;
    let member = target.as_str().strip_prefix(root)?.strip_prefix('.')?;
    if members
        .iter()
        .any(|known| target.is_of(&format!("{root}.{known}")))
    {
        return None;
    }
    let member = member.split(['.', '[']).next().unwrap_or(member);
    let diagnostic = document.error(span(), format!("unknown target `{}`", target.as_str()));
    let diagnostic = match suggest(member, members.iter().copied()) {
        Some(near) => diagnostic.label(format!("did you mean `{root}.{near}`?")),
        None => diagnostic,
    };
    Some(diagnostic.help(format!("`{root}` has {}", members.join(", "))))
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
    // `is_error` for `result.is_error`.
    let member_of = KNOWN_MEMBERS
        .iter()
        .chain([&RESULT_MEMBERS])
        .find(|(known, members)| roots.contains(known) && members.contains(&root));
    let near = match member_of {
        Some((known, _)) => Some(format!("{known}.{target}")),
        None => suggest(root, roots.iter().copied()).map(str::to_owned),
    };
    let diagnostic = match near {
        Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    diagnostic.help(format!("a target here starts with {}", roots.join(", ")))
}
