//! The input of one run of an agent.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use crate::run_folders::RunFolders;

/// A server as the agent starts or reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerLaunch {
    /// A command that the agent starts.
    Stdio {
        /// The server's name.
        name: String,
        /// The program and its arguments.
        argv: Vec<String>,
        /// Variables that the agent gives it.
        env: Vec<(String, String)>,
    },
    /// An address.
    Http {
        /// The server's name.
        name: String,
        /// The address.
        url: String,
        /// The headers that the agent sends.
        headers: Vec<(String, String)>,
    },
}

impl ServerLaunch {
    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio { name, .. } | Self::Http { name, .. } => name,
        }
    }
}

/// The next message of the user, after an answer of the agent.
pub type NextTurn<'a> =
    dyn FnMut(String) -> Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>> + Send + 'a;

/// The input of one run.
pub struct AgentTask<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The model; overrides that of the agent.
    pub model: Option<&'a str>,
    /// The test's name.
    pub test: &'a str,
    /// The run's number.
    pub run: u32,
    /// The servers.
    pub servers: &'a [ServerLaunch],
    /// The further messages of the user: called with each answer, until it gives nothing.
    pub turns: Option<&'a mut NextTurn<'a>>,
    /// The folder of the suite: programs of your own are named from there.
    pub suite_dir: &'a Path,
    /// The folders of the run.
    pub folders: &'a RunFolders,
    /// The variables of mcptest's own environment.
    pub variables: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl fmt::Debug for AgentTask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTask")
            .field("test", &self.test)
            .field("run", &self.run)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}
