//! A tool that a block of a test names, with its place in the suite.

use std::sync::Arc;

use mcptest_gate_api::ToolReference;
use mcptest_trace::tool_id::{self, KnownServers};
use mcptest_yaml::{Document, Source, Span};

/// A tool that a block of a test names.
#[derive(Debug, Clone)]
pub struct NamedTool {
    /// The key in the suite, such as `tool_selection.expected_tool`.
    pub(crate) key: String,
    pub(crate) reference: ToolReference,
    pub(crate) source: Arc<Source>,
    pub(crate) span: Span,
    /// True if it was reported when the suite was loaded.
    pub(crate) reported: bool,
}

impl NamedTool {
    /// The name in the block `block` at the pointer `at` of a file.
    pub(crate) fn new(
        block: &str,
        reference: ToolReference,
        document: &Document,
        at: &str,
    ) -> Self {
        Self {
            key: key(block, &reference.pointer),
            span: document.span_at(&format!("{at}{}", reference.pointer)),
            source: Arc::clone(document.source()),
            reference,
            reported: false,
        }
    }

    /// Returns true if a wrong name is a warning, never an error.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.reference.optional
    }

    /// Returns true if the name was reported when the suite was loaded.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Returns true if it means the tool `name` of `server`. A tool whose server is not known may
    /// belong to any.
    #[must_use]
    pub fn means(&self, server: Option<&str>, name: &str, servers: &KnownServers) -> bool {
        let written = self.reference.name.as_str();
        if let Some(wanted) = &self.reference.server {
            return server.is_none_or(|server| server == wanted)
                && (written == name || tool_id::matches(written, Some(wanted), name, servers));
        }
        if tool_id::matches(written, server, name, servers) {
            return true;
        }
        let of_any_server = || {
            let before = written.strip_suffix(name);
            before.is_some_and(|before| before.ends_with('.')) && servers.qualifies(written)
        };
        let by_wire_name = || {
            let split = servers.split_wire_name(name);
            split.is_some_and(|(server, tool)| {
                tool_id::matches(written, Some(server), tool, servers)
            })
        };
        server.is_none() && !name.is_empty() && (of_any_server() || by_wire_name())
    }

    /// Returns true if the name can mean a tool of this server.
    pub(crate) fn concerns(&self, server: &str, servers: &KnownServers) -> bool {
        let written = self.reference.name.as_str();
        match &self.reference.server {
            Some(wanted) => wanted == server,
            None if servers.qualifies(written) => written
                .strip_prefix(server)
                .is_some_and(|rest| rest.starts_with('.')),
            None => true,
        }
    }
}

/// `tool_edges` and `/delegation/0/from` give `tool_edges.delegation[0].from`.
fn key(block: &str, pointer: &str) -> String {
    let mut key = block.to_owned();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            key.push_str(&format!("[{part}]"));
        } else {
            key.push('.');
            key.push_str(part);
        }
    }
    key
}
