//! The tools that a test names, compared with the catalogs in its traces.

use std::collections::BTreeSet;

use mcptest_suite::Diagnostic;
use mcptest_suite::suite::AgentTest;
use mcptest_suite::tool_names::UnknownTool;
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::TraceView;

/// The names of a test that no trace has shown to be right, so far.
#[derive(Default)]
pub(super) struct NameTally {
    /// For each name of the test, true if a trace offers or calls the tool. Empty before the first
    /// trace.
    found: Vec<bool>,
    /// True if a trace has no catalog: then nothing is known about names that were not found.
    without_catalog: bool,
    /// The tools of the catalogs that were read, as (server, name).
    offered: BTreeSet<(Option<String>, String)>,
}

impl NameTally {
    /// Reads the catalog of a trace, unless all names are found already.
    pub fn observe(&mut self, test: &AgentTest, trace: &TraceView<'_>, servers: &KnownServers) {
        if self.found.is_empty() {
            self.found = vec![false; test.tool_names.len()];
        }
        if self.without_catalog || self.found.iter().all(|found| *found) {
            return;
        }
        let Some(tools) = trace.catalog() else {
            // A run that could not start has no catalog, and says nothing about names.
            self.without_catalog = trace.error.is_none();
            return;
        };
        let calls = &trace.tool_calls;
        let distractors = trace.distractors.as_deref().unwrap_or_default();
        for (named, found) in test.tool_names.iter().zip(&mut self.found) {
            *found = *found
                || tools
                    .iter()
                    .any(|tool| named.means(tool.server(), tool.name(), servers))
                || distractors.iter().any(|id| named.means(None, id, servers))
                || calls
                    .iter()
                    .any(|call| named.means(call.server.as_deref(), call.name(), servers));
        }
        if self.found.iter().any(|found| !found) {
            let id = |tool: &Tool| (tool.server().map(str::to_owned), tool.name().to_owned());
            self.offered.extend(tools.iter().map(id));
        }
    }

    /// Adds the facts of other traces.
    pub fn merge(&mut self, other: Self) {
        if self.found.is_empty() {
            self.found = other.found;
        } else {
            for (found, other) in self.found.iter_mut().zip(other.found) {
                *found |= other;
            }
        }
        self.without_catalog |= other.without_catalog;
        self.offered.extend(other.offered);
    }

    /// The warnings about names that no catalog lists.
    pub fn warnings(&self, test: &AgentTest) -> Vec<Diagnostic> {
        if self.without_catalog || self.offered.is_empty() {
            return Vec::new();
        }
        let offered: Vec<(Option<&str>, &str)> = self
            .offered
            .iter()
            .map(|(server, name)| (server.as_deref(), name.as_str()))
            .collect();
        let names = test.tool_names.iter().zip(&self.found).enumerate();
        names
            .filter(|(_, (_, found))| !**found)
            .map(|(index, (named, _))| UnknownTool::new(named, index, &offered).warning_of_traces())
            .collect()
    }
}
