//! Loading of a manifest file.
//!
//! Two kinds of files are supported: a `mock_server` manifest (YAML or JSON), and a `tools/list`
//! result captured from a real server (JSON). Captured catalogs can be large and are used as they
//! are, so they go through the plain JSON parser.

use std::sync::Arc;

use mcptest_yaml::{Diagnostic, Diagnostics, Document, Severity, Source, Span};
use serde_json::Value;

use crate::compile::{Manifest, ManifestProblem};
use crate::manifest::{ALIASES, ManifestFile};

/// Loads a manifest or a captured `tools/list` result. `name` is the file's name in messages, and
/// the name of a captured catalog's server.
///
/// # Errors
/// All problems of the file, each with its position.
pub fn load(name: &str, bytes: &[u8]) -> Result<Manifest, Diagnostics> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let named_json = extension(name).is_some_and(|it| it.eq_ignore_ascii_case("json"));
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if named_json || matches!(first, Some(b'{' | b'[')) {
        match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(file)) if file.contains_key("mock_server") => {}
            Ok(file) => return captured(name, file),
            Err(error) if named_json => return Err(syntax_error(name, bytes, &error)),
            // YAML may begin with a brace, too.
            Err(_) => {}
        }
    }
    let (file, document) = mcptest_yaml::from_bytes::<ManifestFile>(name, bytes)?;
    Manifest::from_spec(&file.mock_server).map_err(|problems| {
        let diagnostics = problems
            .into_iter()
            .map(|problem| locate(&document, problem));
        Diagnostics(diagnostics.collect())
    })
}

/// Extracts the tools from the usual forms of a capture: the result, the whole reply, the list, or
/// a file of `mcptest catalog save`, which also has the server's name and instructions.
fn captured(name: &str, file: Value) -> Result<Manifest, Diagnostics> {
    let manifest = match file {
        Value::Array(tools) => Some(Manifest::from_captured(stem(name), tools)),
        Value::Object(mut file) => {
            let mut inner = match file.remove("result") {
                Some(Value::Object(result)) => result,
                _ => file,
            };
            match inner.remove("tools") {
                Some(Value::Array(tools)) => {
                    let mut manifest = Manifest::from_captured(stem(name), tools);
                    let text = |value: Option<&Value>| value?.as_str().map(str::to_owned);
                    let info = inner.get("serverInfo");
                    if let Some(name) = text(info.and_then(|info| info.get("name"))) {
                        manifest.name = name;
                    }
                    if let Some(version) = text(info.and_then(|info| info.get("version"))) {
                        manifest.version = version;
                    }
                    manifest.instructions = text(inner.get("instructions"));
                    Some(manifest)
                }
                _ => None,
            }
        }
        _ => None,
    };
    match manifest {
        Some(manifest) => Ok(manifest),
        None => Err(Diagnostic::new(
            Severity::Error,
            "neither a mock manifest nor a captured `tools/list` result",
        )
        .in_file(name, None)
        .help("a manifest has the key `mock_server` at the top")
        .help(
            "a captured result is `{\"tools\": […]}`, `{\"result\": {\"tools\": […]}}` \
             or the list alone",
        )
        .into()),
    }
}

/// Finds the position of a problem, including keys in their alternative form.
fn locate(document: &Document, problem: ManifestProblem) -> Diagnostic {
    let mut pointer = String::new();
    let mut node = document.root();
    for token in problem.pointer.split('/').skip(1) {
        let alias = ALIASES.iter().find(|(canonical, _)| *canonical == token);
        let token = match alias {
            Some((_, alias)) if node.entry(token).is_none() => alias,
            _ => token,
        };
        pointer.push('/');
        pointer.push_str(token);
        node = child(node, token).unwrap_or(node);
    }
    document.diagnostic_at(&pointer, problem.message)
}

fn child<'a>(node: &'a mcptest_yaml::Node, token: &str) -> Option<&'a mcptest_yaml::Node> {
    match &node.value {
        mcptest_yaml::NodeValue::Sequence(items) => items.get(token.parse::<usize>().ok()?),
        _ => node.entry(token).map(|entry| &entry.value),
    }
}

fn syntax_error(name: &str, bytes: &[u8], error: &serde_json::Error) -> Diagnostics {
    // serde_json appends the position to its message; here the source is shown instead.
    let text = error.to_string();
    let message = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    let diagnostic = Diagnostic::new(Severity::Error, format!("not valid JSON: {message}"));
    let Ok(text) = std::str::from_utf8(bytes) else {
        // The column of an error at the end of a line is 0.
        let position = (error.line().max(1), error.column().max(1));
        return diagnostic.in_file(name, Some(position)).into();
    };
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let at = (line_start + error.column().saturating_sub(1)).min(text.len());
    let at = (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let source = Arc::new(Source::new(name, text.to_owned()));
    diagnostic.at(&source, Span { start: at, end: at }).into()
}

fn file_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

fn extension(name: &str) -> Option<&str> {
    file_name(name)
        .rsplit_once('.')
        .map(|(_, extension)| extension)
}

fn stem(name: &str) -> &str {
    let file = file_name(name);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ if file.is_empty() => "mock",
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_split() {
        assert_eq!(stem("servers/git.hub.json"), "git.hub");
        assert_eq!(stem("C:\\x\\github.json"), "github");
        assert_eq!(stem("-"), "-");
        assert_eq!(stem(""), "mock");
        assert_eq!(extension("a.b/c"), None);
        assert_eq!(extension("a/c.JSON"), Some("JSON"));
    }
}
