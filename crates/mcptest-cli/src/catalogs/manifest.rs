//! The tools of a suite's server that is our own mock, from its manifest.

use std::path::{Path, PathBuf};

use mcptest_suite::suite::{KnownEntries, Server};
use mcptest_yaml::{Document, DocumentLimits, NodeValue};
use serde_json::{Value, json};
use tracing::subscriber::{NoSubscriber, with_default};

use super::of_file;
use crate::files;

/// The tools of our own mock server are in its manifest: it need not be started to know them.
pub fn listing(server: &Server) -> Option<Vec<Value>> {
    let file = manifest(server)?;
    // The log shows the messages of servers, and none is started here.
    let catalog = with_default(NoSubscriber::default(), || of_file(&file)).ok()?;
    let tools = catalog.tools.iter();
    Some(
        tools
            .map(|tool| Value::Object(tool.raw().clone()))
            .collect(),
    )
}

/// The tools of a mock server with their names only. The manifest is parsed, but not loaded:
/// that took 2.1 of the 4.7 ms of `mcptest validate` with ten tests.
pub fn names(server: &Server) -> Option<Vec<Value>> {
    quick_names(&manifest(server)?).or_else(|| listing(server))
}

/// The names of the tools in a manifest. `None` if the file has another form.
fn quick_names(file: &Path) -> Option<Vec<Value>> {
    let bytes = files::read(file).ok()?;
    let name = file.display().to_string();
    let document = Document::parse(&name, &bytes, &DocumentLimits::default()).ok()?;
    let NodeValue::Sequence(tools) = &document.get("/mock_server/tools")?.value else {
        return None;
    };
    let count = tools.len();
    let named = (0..count).map(|index| {
        let node = document.get(&format!("/mock_server/tools/{index}/name"))?;
        match &node.value {
            NodeValue::String(name) => Some(json!({"name": name.as_str()})),
            _ => None,
        }
    });
    named.collect()
}

/// The resources and prompts of a mock server.
pub fn entries(server: &Server) -> Option<KnownEntries> {
    let file = manifest(server)?;
    let bytes = files::read(&file).ok()?;
    let name = file.display().to_string();
    let document = Document::parse(&name, &bytes, &DocumentLimits::default()).ok()?;
    // A captured catalog has tools only.
    document.get("/mock_server")?;
    let listed = |list: &str, keys: [&str; 2]| {
        let items = match document
            .get(&format!("/mock_server/{list}"))
            .map(|node| &node.value)
        {
            Some(NodeValue::Sequence(items)) => items.len(),
            _ => 0,
        };
        let names = (0..items).filter_map(|index| {
            let at = |key: &str| document.get(&format!("/mock_server/{list}/{index}/{key}"));
            match &keys.iter().find_map(|key| at(key))?.value {
                NodeValue::String(name) => Some(name.to_string()),
                _ => None,
            }
        });
        names.collect::<Vec<String>>()
    };
    let templates = ["uri_template", "uriTemplate"];
    let mut known = KnownEntries {
        resources: listed("resources", ["uri", "uri"]),
        templates: listed("resource_templates", templates),
        prompts: listed("prompts", ["name", "name"]),
    };
    known
        .templates
        .extend(listed("resourceTemplates", templates));
    Some(known)
}

/// Returns true if a server is our own mock.
pub fn is_mock(server: &Server) -> bool {
    matches!(server.argv.as_slice(), [program, command, ..]
        if program == "mcptest" && command == "mock")
}

/// The manifest or catalog of a server that is our own mock.
fn manifest(server: &Server) -> Option<PathBuf> {
    let flags = server.argv.get(2..)?;
    if !is_mock(server) {
        return None;
    }
    let file = flags.iter().enumerate().find_map(|(index, flag)| {
        let file = flag.strip_prefix("--tools-from=");
        file.or_else(|| {
            (flag == "--tools-from")
                .then(|| flags.get(index + 1))?
                .map(String::as_str)
        })
    })?;
    Some(server.cwd.join(file))
}
