//! The versions of agents under test, for reports.

use std::collections::BTreeMap;

use mcptest_suite::suite::AgentUnderTest;
use tokio::sync::Mutex;

/// The versions of the agents under test. Each is asked once.
#[derive(Default)]
pub(crate) struct AgentVersions(Mutex<BTreeMap<String, Option<String>>>);

impl AgentVersions {
    /// The version of an agent, if it reports one.
    pub async fn of(&self, under_test: &AgentUnderTest) -> Option<String> {
        let agent = &under_test.agent;
        let mut versions = self.0.lock().await;
        if let Some(version) = versions.get(agent.name()) {
            return version.clone();
        }
        let variables = |name: &str| under_test.variables.get(name).cloned();
        let version = mcptest_agents::version(agent, &variables, &std::env::temp_dir()).await;
        versions.insert(agent.name().to_owned(), version.clone());
        version
    }
}
