//! `agent:`: the agents under test.

use std::collections::{BTreeMap, BTreeSet};

use mcptest_agents::{Agent, AgentFile};
use mcptest_redact::redact::is_secret_variable;
use mcptest_yaml::Node;

use super::Checker;
use super::diagnostics::{item_place, key_error};
use crate::file::{AgentFields, WrittenAgent};
use crate::import::Part;
use crate::options::Purpose;
use crate::suite::AgentUnderTest;

/// The variables that every run of an agent reads. They are not secrets.
const COMMON_VARIABLES: [&str; 3] = ["PATH", "HOME", "XDG_CACHE_HOME"];

impl Checker<'_> {
    /// The agents under test of an entry: its own, else those of the entry that it refers to. With
    /// `models`, each agent runs with each of them.
    pub(super) fn agents_under_test(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        base: Option<&AgentFields>,
        models: &[String],
    ) -> Vec<AgentUnderTest> {
        let written = |fields: &AgentFields| match &fields.agent {
            Some(WrittenAgent::UnderTest(agents)) => agents.clone(),
            _ => Vec::new(),
        };
        let own_agents = written(own);
        let inherited = base.map(written).unwrap_or_default();
        // Those of another entry are checked there.
        let checks = !own_agents.is_empty();
        let files = if checks { own_agents } else { inherited };
        let mut agents: Vec<AgentUnderTest> = Vec::new();
        let mut labels = BTreeSet::new();
        for (index, file) in files.iter().enumerate() {
            let place = item_place(part, at, &["agent"], index);
            let Some(agent) = self.agent(part, &place, file, checks) else {
                continue;
            };
            let written = part.document.get(&place);
            let definition = written.map(Node::to_json).unwrap_or_default();
            let variants: Vec<Agent> = match models {
                [] => vec![agent],
                models => models
                    .iter()
                    .map(|model| agent.clone().with_model(model))
                    .collect(),
            };
            for agent in variants {
                let label = match agent.model() {
                    Some(model) => format!("{}/{model}", agent.name()),
                    None => agent.name().to_owned(),
                };
                if !labels.insert(label.clone()) && checks {
                    let message = format!("two agents of this test are called `{label}`");
                    self.problems.push(
                        key_error(part, &place, message).help("give one of them another `name:`"),
                    );
                }
                agents.push(AgentUnderTest {
                    label,
                    dir: part.dir.clone(),
                    workspace: agent.workspace().map(|folder| part.dir.join(folder)),
                    variables: self.variables_of(&agent),
                    definition: definition.clone(),
                    agent,
                });
            }
        }
        agents
    }

    /// Reports further turns for an agent that takes only one message.
    pub(super) fn can_continue(
        &mut self,
        part: &Part,
        at: &str,
        agents: &[AgentUnderTest],
        has_turns: bool,
    ) {
        let unable = agents.iter().find(|one| !one.agent.can_continue());
        if let (true, Some(one)) = (has_turns, unable) {
            let message = format!("the agent `{}` takes only one message", one.label);
            self.problems
                .push(key_error(part, &format!("{at}/turns"), message).help(
                    "a command needs `output.session` and `{{session}}` in its arguments, an HTTP \
                     agent `{{history}}` or `{{session}}` in its body",
                ));
        }
    }

    /// Reports an entry of `agents:` whose `agent:` is a name.
    pub(super) fn refers_to_no_entry(&mut self, part: &Part, at: &str, fields: &AgentFields) {
        if let Some(name) = fields.agent.as_ref().and_then(WrittenAgent::entry) {
            let message = format!("`agent: {name}` refers to an entry of `agents:`, but is in one");
            self.problems.push(
                part.document
                    .diagnostic_at(&format!("{at}/agent"), message)
                    .help(
                        "write the agent under test, such as `agent: { preset: claude-code }`, or \
                         move the test to `tests:`",
                    ),
            );
        }
    }

    /// The variables of the environment that an agent reads, as far as they are set.
    fn variables_of(&self, agent: &Agent) -> BTreeMap<String, String> {
        agent
            .variables()
            .into_iter()
            .chain(COMMON_VARIABLES)
            .filter_map(|name| Some((name.to_owned(), (self.options.env)(name)?)))
            .collect()
    }

    /// Checks one agent.
    fn agent(&mut self, part: &Part, at: &str, file: &AgentFile, checks: bool) -> Option<Agent> {
        let agent = match Agent::resolve(file) {
            Ok(agent) => agent,
            Err(problems) => {
                if checks {
                    self.add(part, at, &problems);
                }
                return None;
            }
        };
        let secrets = agent
            .variables()
            .into_iter()
            .filter_map(|name| Some((name, (self.options.env)(name)?)))
            .filter(|(name, value)| is_secret_variable(name, value))
            .map(|(_, value)| value);
        self.suite.secrets.extend(secrets);
        if !checks || self.options.purpose != Purpose::Run {
            return Some(agent);
        }
        if let Some(folder) = agent.workspace()
            && !part.dir.join(folder).is_dir()
        {
            let message = format!("the workspace `{folder}` is not a folder");
            let at = format!("{at}/workspace");
            self.problems
                .push(part.document.diagnostic_at(&at, message));
        }
        Some(agent)
    }
}
