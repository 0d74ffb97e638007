//! Diagnostics that several checks share, and their places.

use mcptest_trace::matcher::Problem;
use mcptest_yaml::{Diagnostic, Document, NodeValue, suggest};

use super::SCRIPTED;
use crate::import::Part;

/// A problem of an expression at its place in the file.
pub(super) fn place(document: &Document, base: &str, problem: &Problem) -> Diagnostic {
    let pointer = format!("{base}{}", problem.pointer);
    let span = if problem.on_key {
        document.key_span_at(&pointer)
    } else {
        document.span_at(&pointer)
    };
    let diagnostic = document.error(span, problem.message.clone());
    let diagnostic = match &problem.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    };
    if problem.warning {
        diagnostic.warning()
    } else {
        diagnostic
    }
}

pub(super) fn unknown_name(
    part: &Part,
    at: &str,
    what: &str,
    name: &str,
    known: &[&str],
    section: &str,
) -> Diagnostic {
    let diagnostic = part
        .document
        .diagnostic_at(at, format!("unknown {what} `{name}`"));
    match suggest(name, known.iter().copied()) {
        Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
        None if known.is_empty() => diagnostic.help(format!("declare it under `{section}:`")),
        None => diagnostic.help(format!("declared under `{section}:`: {}", listed(known))),
    }
}

/// The first names, and the number of the others: a list of all of them for each unknown name would
/// grow with the square of the suite.
fn listed(names: &[&str]) -> String {
    let shown = &names[..names.len().min(MAX_LISTED)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The names that a message lists.
const MAX_LISTED: usize = 20;

pub(super) fn no_script(part: &Part, at: &str) -> Diagnostic {
    part.document
        .diagnostic_at(at, format!("`{SCRIPTED}` has no `script:`"))
        .help("write `script: [[{calls: [{tool: search, args: {q: x}}]}, {say: \"Done.\"}]]`")
}

pub(super) fn key_error(part: &Part, pointer: &str, message: String) -> Diagnostic {
    part.document
        .error(part.document.key_span_at(pointer), message)
}

/// The pointer of an item that is written as a string or in a list, under any spelling of its key.
pub(super) fn item_place(part: &Part, at: &str, keys: &[&str], index: usize) -> String {
    for key in keys {
        let base = format!("{at}/{key}");
        match part.document.get(&base).map(|node| &node.value) {
            Some(NodeValue::Sequence(_)) => return format!("{base}/{index}"),
            Some(_) => return base,
            None => {}
        }
    }
    at.to_owned()
}

pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns true if a URL has the scheme `http` or `https` and a host.
pub(super) fn has_host(url: &str) -> bool {
    let url = url.trim();
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_need_a_scheme_and_a_host() {
        assert!(has_host(" https://x/v1 "));
        for wrong in ["", "x", "http://", "http:///v1", "ftp://x"] {
            assert!(!has_host(wrong), "{wrong}");
        }
    }
}
