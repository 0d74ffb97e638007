//! The checked suite: everything refers to something, every expression is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use mcptest_catalog::prices::Prices;
use mcptest_gates::LoadedGate;
use mcptest_gates::discovery::Discovery;
use mcptest_gates::distractors::Distractors;
use mcptest_redact::volatile::Rule;
use mcptest_trace::expect::Expectation;
use mcptest_trace::fault::Fault;
use mcptest_trace::snapshot::Snapshot;
use mcptest_trace::target::Target;
use mcptest_trace::tool_id::KnownServers;

pub use crate::file::{
    IsolationFile as Isolation, LifecycleFile as Lifecycle, ReplayFile as Replay, ScriptCall,
    ScriptTurn, ScriptUsage,
};
pub use crate::limits::{Budget, TestBudget};
pub use crate::providers::{ApiFile as Api, Keys, Provider};
use crate::template::Args;

/// A suite that can be run or scored.
#[derive(Debug)]
pub struct Suite {
    /// What reports call it.
    pub name: String,
    /// The file it was read from.
    pub file: PathBuf,
    /// The servers, by name.
    pub servers: BTreeMap<String, Server>,
    /// What the suite says about model providers, by name.
    pub providers: BTreeMap<String, Provider>,
    /// The keys of providers that the environment holds.
    pub keys: Keys,
    /// The tests, in the order of the files.
    pub tests: Vec<Test>,
    /// How it runs.
    pub options: RunOptions,
    /// The built-in prices with the suite's own over them.
    pub prices: Prices,
    /// What it may cost.
    pub budget: Budget,
    /// Values that must not appear in any output.
    pub secrets: Vec<String>,
    /// Where the snapshots of its tests are, one folder per file of the suite.
    pub snapshot_folders: Vec<PathBuf>,
}

impl Default for Suite {
    fn default() -> Self {
        Self {
            name: String::new(),
            file: PathBuf::new(),
            servers: BTreeMap::new(),
            providers: BTreeMap::new(),
            keys: Keys::default(),
            tests: Vec::new(),
            options: RunOptions::default(),
            prices: Prices::builtin().clone(),
            budget: Budget::default(),
            secrets: Vec::new(),
            snapshot_folders: Vec::new(),
        }
    }
}

impl Suite {
    /// Names that qualify a tool id: declared servers, and those that tests only mention (a suite
    /// for `score` need not declare them).
    #[must_use]
    pub fn known_servers(&self) -> KnownServers {
        let mentioned = self.tests.iter().flat_map(|test| match test {
            Test::Agent(test) => test.servers.clone(),
            Test::Tool(test) => test.servers().into_iter().map(str::to_owned).collect(),
            Test::ToolQuality(test) => vec![test.server.clone()],
        });
        self.servers.keys().cloned().chain(mentioned).collect()
    }

    /// How many runs a test makes with each model: its `runs`, at each of its counts of
    /// distractors.
    #[must_use]
    pub fn runs_of(test: &AgentTest) -> u32 {
        let counts = test
            .distractors
            .as_ref()
            .map_or(1, |block| block.planned_counts().len());
        test.runs
            .saturating_mul(u32::try_from(counts).unwrap_or(u32::MAX))
    }

    /// The agent tests, in order.
    pub fn agent_tests(&self) -> impl Iterator<Item = &AgentTest> {
        self.tests.iter().filter_map(|test| match test {
            Test::Agent(test) => Some(test.as_ref()),
            Test::Tool(_) | Test::ToolQuality(_) => None,
        })
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where it is, if it is not a program to start.
    pub http: Option<HttpAddress>,
    /// Program and arguments; empty for a server over HTTP.
    pub argv: Vec<String>,
    /// Variables on top of the inherited environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The time allowed for each call, if the server has its own.
    pub timeout: Option<Duration>,
    /// The time allowed until it is ready.
    pub startup_timeout: Duration,
    /// How the connection is opened.
    pub lifecycle: Lifecycle,
    /// Whether runs share the process.
    pub isolation: Isolation,
}

impl Server {
    /// A server that is started by a command line, with everything else as a suite's default.
    #[must_use]
    pub fn command(argv: Vec<String>, cwd: PathBuf) -> Self {
        Self {
            http: None,
            argv,
            env: Vec::new(),
            cwd,
            timeout: None,
            startup_timeout: Duration::from_secs(30),
            lifecycle: Lifecycle::default(),
            isolation: Isolation::default(),
        }
    }
}

/// A server over streamable HTTP.
#[derive(Clone)]
pub struct HttpAddress {
    /// Its address.
    pub url: String,
    /// What is sent with every request.
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for HttpAddress {
    /// Values of headers and queries may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpAddress")
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// One test.
#[derive(Debug)]
pub enum Test {
    /// An agent, run once or several times per model.
    Agent(Box<AgentTest>),
    /// A direct tool call.
    Tool(Box<ToolTest>),
    /// A bar for the descriptions of a server's tools.
    ToolQuality(ToolQualityTest),
}

impl Test {
    /// The test's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Agent(test) => &test.name,
            Self::Tool(test) => &test.name,
            Self::ToolQuality(test) => &test.name,
        }
    }
}

/// An agent test.
#[derive(Debug)]
pub struct AgentTest {
    /// The name.
    pub name: String,
    /// Model ids; empty only in a suite that is loaded for scoring.
    pub models: Vec<String>,
    /// The servers whose tools are offered.
    pub servers: Vec<String>,
    /// The task; empty only in a suite that is loaded for scoring.
    pub prompt: String,
    /// The system prompt.
    pub system: Option<String>,
    /// At least 1.
    pub runs: u32,
    /// Whether it stops as soon as no further run can change a verdict.
    pub stops_when_decided: bool,
    /// What it may cost with each of its models.
    pub budget: TestBudget,
    /// The most assistant turns.
    pub max_turns: u32,
    /// The most tokens per turn.
    pub max_tokens: Option<u32>,
    /// Assertions on each run.
    pub expect: Vec<Expectation>,
    /// Whether a run on which they do not hold is left to the `reliability:` gate.
    pub tolerates_failed_runs: bool,
    /// Gates over all runs.
    pub gates: Vec<LoadedGate>,
    /// What `builtin/scripted` plays.
    pub script: Vec<Vec<ScriptTurn>>,
    /// The faults that strike in every run.
    pub faults: Vec<Fault>,
    /// How long an agent waits for a call that never comes back, in virtual time:
    /// `recovery.max_detection_ms`.
    pub detection_budget_ms: Option<u64>,
    /// The tools that are put into the offer.
    pub distractors: Option<Distractors>,
    /// The promise about the prompt.
    pub discovery: Discovery,
    /// Which side of a cassette is replayed, if the test says.
    pub replay: Option<Replay>,
    /// Labels.
    pub tags: Vec<String>,
}

/// A direct tool test.
#[derive(Debug)]
pub struct ToolTest {
    /// The name.
    pub name: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Args,
    /// Assertions over `result` and `error`.
    pub expect: Vec<Expectation>,
    /// The longest the call may take.
    pub max_duration: Option<Duration>,
    /// The most tokens of the answer.
    pub max_response_tokens: Option<u64>,
    /// The kept answer that it is held against.
    pub snapshot: Option<KeptAnswer>,
    /// Calls made before.
    pub setup: Vec<FixtureCall>,
    /// Calls made afterwards.
    pub teardown: Vec<FixtureCall>,
    /// What of the answer is saved, by name.
    pub save: Vec<(String, Target)>,
    /// The time allowed for the call, if the test has its own.
    pub timeout: Option<Duration>,
    /// Whether it shares the process, if it does not leave that to the server.
    pub isolation: Option<Isolation>,
    /// Whether nothing else talks to its servers meanwhile.
    pub serial: bool,
    /// Labels.
    pub tags: Vec<String>,
}

impl ToolTest {
    /// The servers that it talks to, each once.
    #[must_use]
    pub fn servers(&self) -> BTreeSet<&str> {
        let fixtures = self.setup.iter().chain(&self.teardown);
        fixtures
            .map(|call| call.server.as_str())
            .chain([self.server.as_str()])
            .collect()
    }
}

/// A snapshot and where it is.
#[derive(Debug)]
pub struct KeptAnswer {
    /// What of the answer is kept.
    pub snapshot: Snapshot,
    /// The file.
    pub file: PathBuf,
}

/// A call that prepares a test or cleans up after it.
#[derive(Debug)]
pub struct FixtureCall {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Args,
    /// What of the answer is saved, by name.
    pub save: Vec<(String, Target)>,
    /// The time allowed for the call, if it has its own.
    pub timeout: Option<Duration>,
}

/// A bar for the descriptions of a server's tools.
#[derive(Debug)]
pub struct ToolQualityTest {
    /// The name.
    pub name: String,
    /// The server.
    pub server: String,
    /// Assertions over the quality figures.
    pub expect: Vec<Expectation>,
    /// Labels.
    pub tags: Vec<String>,
}

/// How a suite runs.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The time allowed for each call, where neither the server nor the test says otherwise.
    pub timeout: Duration,
    /// Runs at once, if the suite says.
    pub jobs: Option<u32>,
    /// What a test without evidence counts as.
    pub no_evidence: NoEvidence,
    /// The folder of recorded runs, if the suite says.
    pub cassettes: Option<PathBuf>,
    /// Which side of a cassette is replayed.
    pub replay: Replay,
    /// The suite's own rules for volatile values.
    pub normalise: Vec<Rule>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            jobs: None,
            no_evidence: NoEvidence::Keep,
            cassettes: None,
            replay: Replay::default(),
            normalise: Vec::new(),
        }
    }
}

/// What a test without evidence counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEvidence {
    /// Its own verdict.
    Keep,
    /// A pass.
    Pass,
    /// A failure.
    Fail,
}
