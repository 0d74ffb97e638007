//! A configuration as data, and reading it.

use mcptest_yaml::{Diagnostics, Document, Node, NodeValue};

use crate::configured_server::{ConfiguredServer, Input};
use crate::entry::{expected, read_entry};
use crate::format::{FORMATS, Format, detect, servers_of};

/// The servers of a configuration file.
#[derive(Debug)]
pub struct ClientConfig {
    /// The format of the file.
    pub format: &'static Format,
    /// The servers, in the order of the file.
    pub servers: Vec<ConfiguredServer>,
    /// The values that the client asks its user for.
    pub inputs: Vec<Input>,
}

impl ClientConfig {
    /// Reads a parsed file; its format is recognized by the name and the keys.
    pub(crate) fn of(name: &str, document: &Document) -> Result<Self, Diagnostics> {
        let root = document.root();
        let Some(format) = detect(name, root) else {
            let known: Vec<String> = FORMATS
                .iter()
                .map(|format| format!("`{}` ({})", format.key.replace('/', "."), format.title))
                .collect();
            let problem = document
                .diagnostic_at("", "no servers are configured here")
                .help(format!("expected one of the keys {}", known.join(", ")));
            return Err(problem.into());
        };
        let mut problems = Vec::new();
        let mut servers = Vec::new();
        match servers_of(root, format.key) {
            Some(Node {
                value: NodeValue::Mapping(entries),
                ..
            }) => {
                for entry in entries {
                    let references = format.references;
                    let server =
                        read_entry(document, references, entry, format.read, &mut problems);
                    servers.extend(server);
                }
            }
            Some(other) => problems.push(expected(document, other, "a mapping of server names")),
            None => {}
        }
        if !problems.is_empty() {
            return Err(Diagnostics(problems));
        }
        Ok(Self {
            format,
            servers,
            inputs: (format.inputs)(root),
        })
    }
}
