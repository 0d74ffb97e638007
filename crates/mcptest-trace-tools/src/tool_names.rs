//! One name for each tool, whichever way a trace writes it.

use std::collections::BTreeSet;

use mcptest_trace::tool_id::{KnownServers, full_id};
use mcptest_trace::trace::{ToolCallView, TraceView};

/// A tool as recorded: its server, where known, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordedTool {
    server: Option<String>,
    name: String,
}

impl RecordedTool {
    pub(crate) fn of(call: &ToolCallView<'_>) -> Self {
        Self {
            server: call.server.as_deref().map(ToOwned::to_owned),
            name: call.name().to_owned(),
        }
    }
}

/// The servers that traces name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers(BTreeSet<String>);

impl Servers {
    /// Adds the servers of a trace's calls and of its catalog.
    pub(crate) fn observe(&mut self, trace: &TraceView<'_>) {
        let called = trace
            .tool_calls
            .iter()
            .filter_map(|call| call.server.as_deref());
        let listed = trace.catalog().unwrap_or_default();
        let listed = listed.iter().filter_map(|tool| tool.server());
        for server in called.chain(listed) {
            if !self.0.contains(server) {
                self.0.insert(server.to_owned());
            }
        }
    }

    /// A function that gives a tool its full id. Wire names of known servers are split.
    pub(crate) fn into_ids(self) -> impl Fn(&RecordedTool) -> String {
        let known: KnownServers = self.0.into_iter().collect();
        move |tool| {
            let split = match tool.server {
                Some(_) => None,
                None => known.split_wire_name(&tool.name),
            };
            match split {
                Some((server, name)) => full_id(Some(server), name),
                None => full_id(tool.server.as_deref(), &tool.name),
            }
        }
    }
}
