//! The tools that the blocks of a test name, compared with the tools that its servers offer.
//!
//! A name that no server offers is a mistake in the suite: an agent cannot call such a tool, and
//! must not be blamed for it.

use std::cell::OnceCell;

use mcptest_catalog::distractors::plan_injection;
use mcptest_json::text::one_line;
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id::{self, KnownServers};
use mcptest_yaml::{Diagnostic, MAX_CANDIDATES, Severity, suggest};

pub use crate::named_tool::NamedTool;
use crate::suite::{AgentTest, BUILTIN_SERVER};

/// The largest number of offered tools in a message.
const MAX_OFFERED: usize = 8;

/// A name that means no offered tool.
#[derive(Debug, Clone)]
pub struct UnknownTool<'a> {
    /// The name.
    pub named: &'a NamedTool,
    /// Its index among the names of the test.
    pub index: usize,
    near: Option<String>,
    offered: String,
}

impl<'a> UnknownTool<'a> {
    /// The name at this index, and the tools that are offered instead, as (server, name).
    #[must_use]
    pub fn new(named: &'a NamedTool, index: usize, offered: &[(Option<&str>, &str)]) -> Self {
        let written = named.reference.name.as_str();
        let full_id = |(server, name): &(Option<&str>, &str)| tool_id::full_id(*server, name);
        // The right tool on the wrong server is nearer than any other name.
        let elsewhere = offered.iter().position(|(_, name)| {
            let before = written.strip_suffix(name);
            !name.is_empty()
                && before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        });
        let near = match elsewhere {
            Some(place) => Some(full_id(&offered[place])),
            None => {
                let bare = offered.iter().map(|(_, name)| *name);
                // Ids are compared behind the names, and only as many as are compared at all: a
                // suite may have thousands of wrong names, and a server of tools.
                let ids = offered
                    .len()
                    .min(MAX_CANDIDATES.saturating_sub(offered.len()));
                let ids: Vec<String> = offered[..ids].iter().map(full_id).collect();
                suggest(written, bare.chain(ids.iter().map(String::as_str))).map(ToOwned::to_owned)
            }
        };
        let several = offered.iter().any(|(server, _)| *server != offered[0].0);
        let mut names: Vec<String> = offered
            .iter()
            .take(MAX_OFFERED)
            .map(|tool| match several {
                true => format!("`{}`", one_line(&full_id(tool))),
                false => format!("`{}`", one_line(tool.1)),
            })
            .collect();
        if offered.len() > MAX_OFFERED {
            names.push(format!("and {} more", offered.len() - MAX_OFFERED));
        }
        Self {
            named,
            index,
            near: near.map(|near| one_line(&near).to_string()),
            offered: if names.is_empty() {
                "no tools are offered".to_owned()
            } else {
                format!("offered: {}", names.join(", "))
            },
        }
    }

    fn subject(&self, nobody: &str) -> String {
        let NamedTool { key, reference, .. } = self.named;
        let tool = tool_id::full_id(reference.server.as_deref(), &reference.name);
        format!(
            "`{key}` names the tool `{}`, which {nobody}",
            one_line(&tool)
        )
    }

    /// The problem in one line, with the place in the file and a similar name.
    #[must_use]
    pub fn message(&self) -> String {
        let (line, column) = self.named.source.line_column(self.named.span.start);
        let file = self.named.source.name();
        let subject = self.subject("no server of the test offers");
        let near = self.near.as_ref();
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("{file}:{line}:{column}: {subject}{hint} ({})", self.offered)
    }

    /// The warning at its place in the file.
    #[must_use]
    pub fn warning(&self) -> Diagnostic {
        self.diagnostic("no server of the test offers")
    }

    /// The warning about traces whose catalogs lack the tool.
    #[must_use]
    pub fn warning_of_traces(&self) -> Diagnostic {
        self.diagnostic("no catalog in the traces of the test lists")
    }

    fn diagnostic(&self, nobody: &str) -> Diagnostic {
        let diagnostic = Diagnostic::new(Severity::Warning, self.subject(nobody))
            .at(&self.named.source, self.named.span)
            .help(self.offered.clone());
        match &self.near {
            Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
            None => diagnostic,
        }
    }
}

impl AgentTest {
    /// The names that mean none of the offered tools. The tools of the servers in `unlisted` are
    /// not known: a name that may mean one of them is not reported.
    #[must_use]
    pub fn unknown_tools(
        &self,
        tools: &[Tool],
        unlisted: &[&str],
        servers: &KnownServers,
    ) -> Vec<UnknownTool<'_>> {
        let offered: Vec<(Option<&str>, &str)> = tools
            .iter()
            .map(|tool| (tool.server(), tool.name()))
            .collect();
        let fakes = OnceCell::new();
        let is_distractor = |named: &NamedTool| {
            let fakes = fakes.get_or_init(|| self.possible_distractors(tools));
            fakes
                .iter()
                .any(|fake| named.means(fake.server(), fake.name(), servers))
        };
        let is_unknown = |named: &NamedTool| {
            let listed = !unlisted.iter().any(|server| {
                // Distractors are made of the tools of all servers.
                self.distractors.is_some() || named.concerns(server, servers)
            });
            listed
                && !self.is_of_agent(named)
                && !offered
                    .iter()
                    .any(|(server, name)| named.means(*server, name, servers))
                && !is_distractor(named)
        };
        self.tool_names
            .iter()
            .enumerate()
            .filter(|(_, named)| is_unknown(named))
            .map(|(index, named)| UnknownTool::new(named, index, &offered))
            .collect()
    }

    /// Returns true if a name means a tool that an agent under test has by itself. These are not
    /// listed by any server.
    fn is_of_agent(&self, named: &NamedTool) -> bool {
        let tool = &named.reference;
        let full_id = tool_id::full_id(tool.server.as_deref(), &tool.name);
        let server = full_id.split_once('.').map(|(server, _)| server);
        !self.agents.is_empty() && server == Some(BUILTIN_SERVER)
    }

    /// The distractors of all runs.
    fn possible_distractors(&self, tools: &[Tool]) -> Vec<Tool> {
        let Some(block) = &self.distractors else {
            return Vec::new();
        };
        let schedule = block.schedule(&self.name, self.runs);
        schedule
            .iter()
            // A source that names no offered tool is reported as such.
            .filter_map(|run| plan_injection(block, tools, run.count, run.seed).ok())
            .flatten()
            .collect()
    }

    /// Marks a name as reported.
    pub fn mark_reported(&mut self, index: usize) {
        if let Some(named) = self.tool_names.get_mut(index) {
            named.reported = true;
        }
    }
}
