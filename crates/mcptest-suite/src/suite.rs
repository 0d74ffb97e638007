//! The checked suite: all references are resolved, all expressions compiled.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcptest_agents::Agent;
use mcptest_attack::Attack;
use mcptest_catalog::discovery::Discovery;
use mcptest_catalog::distractors::Distractors;
use mcptest_catalog::prices::Prices;
use mcptest_gate_api::LoadedGate;
use mcptest_redact::volatile::Rule;
use mcptest_trace::expect::Expectation;
use mcptest_trace::fault::Fault;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::user_turn::UserTurn;
use serde_json::Value;

use crate::client::ClientScript;
pub use crate::direct::{
    CancelMoment, CancelOn, Completed, DirectRequest, DirectTest, FixtureCall, KnownEntries,
    ListKind, MESSAGE_ROOTS, Section, StoredSnapshot, TaskSettings,
};
pub use crate::file::{
    AuthGrantFile as AuthGrant, IsolationFile as Isolation, LifecycleFile as Lifecycle,
    ReplayFile as Replay, ScriptCall, ScriptTurn, ScriptUsage, TransportFile as Transport,
};
pub use crate::limits::{Budget, TestBudget};
use crate::named_tool::NamedTool;
pub use crate::providers::{ApiFile as Api, DeclaredProvider, Keys};
use crate::state::StateCalls;

/// A suite that can be run or scored.
#[derive(Debug)]
pub struct Suite {
    /// Its name in reports.
    pub name: String,
    /// The file that it was read from.
    pub file: PathBuf,
    /// The servers, by name.
    pub servers: BTreeMap<String, Server>,
    /// The providers that the suite configures, by name.
    pub providers: BTreeMap<String, DeclaredProvider>,
    /// The API keys from the environment.
    pub keys: Keys,
    /// The tests, in the order of the files.
    pub tests: Vec<Test>,
    /// Options for running it.
    pub options: RunOptions,
    /// The built-in prices, overridden by the suite's own.
    pub prices: Prices,
    /// Its limits on cost and time.
    pub budget: Budget,
    /// Values that are redacted in all output.
    pub secrets: Vec<String>,
    /// The folders of its snapshots, one per file of the suite.
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
    /// The names that qualify a tool id: declared servers, and those that tests only mention (a
    /// suite for `score` need not declare them).
    #[must_use]
    pub fn known_servers(&self) -> KnownServers {
        let mut names: BTreeSet<&str> = self.servers.keys().map(String::as_str).collect();
        for test in &self.tests {
            match test {
                Test::Agent(test) => {
                    names.extend(test.all_servers());
                    names.extend((!test.agents.is_empty()).then_some(BUILTIN_SERVER));
                }
                Test::Direct(test) => names.extend(test.called_servers()),
                Test::ToolQuality(test) => names.extend([test.server.as_str()]),
            }
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// The number of runs of a test with each model: its `runs`, for each of its distractor counts
    /// and for each of its attacks.
    #[must_use]
    pub fn runs_of(test: &AgentTest) -> u32 {
        let blocks = test.attack_blocks().len();
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        Self::runs_of_block(test).saturating_mul(blocks)
    }

    /// The canaries of all runs.
    #[must_use]
    pub fn canaries(&self) -> Vec<String> {
        let mut canaries = Vec::new();
        for test in self.agent_tests() {
            for attack in &test.attacks {
                let runs = match attack.fixed_canary() {
                    Some(_) => 1,
                    None => Self::runs_of_block(test),
                };
                let runs = (1..=u64::from(runs)).take(MAX_CANARIES);
                canaries.extend(runs.map(|run| attack.canary(&test.name, run)));
            }
        }
        canaries
    }

    /// The number of runs of a test with each model and with the same attacks.
    #[must_use]
    pub fn runs_of_block(test: &AgentTest) -> u32 {
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
            Test::Direct(_) | Test::ToolQuality(_) => None,
        })
    }
}

/// A server, and the way to reach it.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its address, unless it is a program to start.
    pub http: Option<HttpAddress>,
    /// Program and arguments; empty for a server over HTTP.
    pub argv: Vec<String>,
    /// Environment variables in addition to the inherited ones.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The timeout for each call, if the server has its own.
    pub timeout: Option<Duration>,
    /// The timeout for starting it.
    pub startup_timeout: Duration,
    /// The way to open the connection.
    pub lifecycle: Lifecycle,
    /// The sharing of the process between runs.
    pub isolation: Isolation,
}

impl Server {
    /// A server that is started by a command line, with a suite's defaults.
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

/// A server over HTTP.
#[derive(Clone, Default)]
pub struct HttpAddress {
    /// Its address.
    pub url: String,
    /// Headers for every request.
    pub headers: Vec<(String, String)>,
    /// Its transport.
    pub transport: Transport,
    /// Its authorization by OAuth.
    pub auth: Option<Box<ServerAuth>>,
}

/// Authorization by OAuth. What is absent is discovered.
#[derive(Debug, Clone)]
pub struct ServerAuth {
    /// The way to a token.
    pub grant: AuthGrant,
    /// The client's id, or the address of its metadata document.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<EnvSecret>,
    /// The file with the client's private key.
    pub private_key_file: Option<PathBuf>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The refresh token.
    pub refresh_token: Option<EnvSecret>,
    /// The authorization server.
    pub issuer: Option<String>,
    /// The resource that tokens are for.
    pub resource: Option<String>,
    /// The port of the redirect address.
    pub redirect_port: Option<u16>,
}

/// A secret of the environment, read when the suite is loaded.
#[derive(Clone)]
pub struct EnvSecret {
    /// The name of the variable.
    pub variable: String,
    /// Its value; absent if it is not set.
    pub value: Option<String>,
}

impl std::fmt::Debug for EnvSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvSecret")
            .field("variable", &self.variable)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HttpAddress {
    /// Hides the values of headers and queries, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpAddress")
            .field("headers", &names)
            .field("transport", &self.transport)
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

/// One test.
#[derive(Debug)]
pub enum Test {
    /// An agent, run once or several times per model.
    Agent(Box<AgentTest>),
    /// One request to one server, without a model.
    Direct(Box<DirectTest>),
    /// A quality requirement for the tool descriptions of a server.
    ToolQuality(ToolQualityTest),
}

impl Test {
    /// The test's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Agent(test) => &test.name,
            Self::Direct(test) => &test.name,
            Self::ToolQuality(test) => &test.name,
        }
    }

    /// The test's tags.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        match self {
            Self::Agent(test) => &test.tags,
            Self::Direct(test) => &test.tags,
            Self::ToolQuality(test) => &test.tags,
        }
    }

    /// Its line in the suite file, from 1; `None` if it is in a file that the suite imports.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::Agent(test) => test.line,
            Self::Direct(test) => test.line,
            Self::ToolQuality(test) => test.line,
        }
    }
}

/// An agent under test.
#[derive(Debug, Clone)]
pub struct AgentUnderTest {
    /// Its name in reports, with the model if the suite names one.
    pub label: String,
    /// The agent.
    pub agent: Agent,
    /// The agent as written.
    pub definition: Value,
    /// The folder of the suite file that has it.
    pub dir: PathBuf,
    /// The folder that is copied to its working directory.
    pub workspace: Option<PathBuf>,
    /// The variables of the environment that it reads, as far as they are set.
    pub variables: BTreeMap<String, String>,
}

impl AgentTest {
    /// The agent under test with this label.
    #[must_use]
    pub fn agent(&self, label: &str) -> Option<&AgentUnderTest> {
        self.agents.iter().find(|agent| agent.label == label)
    }
}

/// The server name in traces of tools that an agent under test has by itself, such as its shell.
pub const BUILTIN_SERVER: &str = "agent";

/// An agent test.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentTest {
    /// The name.
    pub name: String,
    /// Its line, as in [`Test::line`].
    pub line: Option<u32>,
    /// Model ids, or the labels of its agents under test; empty only in a suite loaded for scoring.
    pub models: Vec<String>,
    /// The agents under test, if it does not run a model in mcptest's own loop.
    pub agents: Vec<AgentUnderTest>,
    /// The servers whose tools are offered.
    pub servers: Vec<String>,
    /// The task; empty only in a suite loaded for scoring.
    pub prompt: String,
    /// The messages that the user sends after answers, in order.
    pub turns: Vec<UserTurn>,
    /// The calls around each run.
    pub state: StateCalls,
    /// The system prompt.
    pub system: Option<String>,
    /// The number of runs, at least 1.
    pub runs: u32,
    /// True if it stops as soon as no further run can change a verdict.
    pub stops_when_decided: bool,
    /// Limits on its cost with each of its models.
    pub budget: TestBudget,
    /// The maximum number of assistant turns.
    pub max_turns: u32,
    /// The maximum number of tokens per turn.
    pub max_tokens: Option<u32>,
    /// Assertions on each run.
    pub expect: Vec<Expectation>,
    /// True if a run that fails them is left to the `reliability:` gate.
    pub tolerates_failed_runs: bool,
    /// Gates over all runs.
    pub gates: Vec<LoadedGate>,
    /// The tools that its gates and faults name.
    pub tool_names: Vec<NamedTool>,
    /// The script for `builtin/scripted`.
    pub script: Vec<Vec<ScriptTurn>>,
    /// The client's side of its connections, if it is asked something or listens.
    pub client: Option<Arc<ClientScript>>,
    /// The faults that are injected in every run.
    pub faults: Vec<Fault>,
    /// The attacks that are injected.
    pub attacks: Vec<Attack>,
    /// The way in which runs have attacks.
    pub attack_plan: AttackPlan,
    /// The virtual time that an agent waits for a call that never returns:
    /// `recovery.max_detection_ms`.
    pub detection_budget_ms: Option<u64>,
    /// The tools that are added to the offer.
    pub distractors: Option<Distractors>,
    /// The check of the prompt.
    pub discovery: Discovery,
    /// The side of a cassette that is replayed, if the test sets it.
    pub replay: Option<Replay>,
    /// Tags.
    pub tags: Vec<String>,
}

/// The number of runs of a test whose canaries are known before they are made.
const MAX_CANARIES: usize = 10_000;

/// The way in which the runs of a test have its attacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttackPlan {
    /// True if all attacks apply in every run.
    pub together: bool,
    /// True if the runs are also made without attack.
    pub baseline: bool,
}

/// The attacks of one run.
#[derive(Debug, Clone, Copy)]
pub struct RunAttacks<'a> {
    /// The attacks.
    pub attacks: &'a [Attack],
    /// The number of the run among those with the same attacks, from 1.
    pub run: u32,
}

impl AgentTest {
    /// The blocks of its runs: the attacks of each. A test without attacks has one block.
    #[must_use]
    pub fn attack_blocks(&self) -> Vec<&[Attack]> {
        let mut blocks: Vec<&[Attack]> = if self.attack_plan.together || self.attacks.is_empty() {
            vec![&self.attacks]
        } else {
            self.attacks.chunks(1).collect()
        };
        if self.attack_plan.baseline && !self.attacks.is_empty() {
            blocks.push(&[]);
        }
        blocks
    }

    /// The attacks of a run (from 1); `None` if the test has no attacks at all.
    #[must_use]
    pub fn attacks_of(&self, run: u32) -> Option<RunAttacks<'_>> {
        if self.attacks.is_empty() {
            return None;
        }
        let runs = Suite::runs_of_block(self).max(1);
        let at = run.saturating_sub(1);
        let blocks = self.attack_blocks();
        let block = blocks
            .get((at / runs) as usize)
            .copied()
            .unwrap_or_default();
        Some(RunAttacks {
            attacks: block,
            run: at % runs + 1,
        })
    }

    /// The isolation of its sessions. A test with calls around its runs, or with its own
    /// client, has its own sessions in every run, so that concurrent runs do not see each other's
    /// state and messages.
    #[must_use]
    pub fn isolation(&self) -> Option<Isolation> {
        (!self.state.is_empty() || self.client.is_some()).then_some(Isolation::Run)
    }

    /// The servers that its runs use, each once: those that are offered, and those of the calls
    /// around the run.
    #[must_use]
    pub fn all_servers(&self) -> BTreeSet<&str> {
        let calls = self.state.all().map(|call| call.server.as_str());
        self.servers
            .iter()
            .map(String::as_str)
            .chain(calls)
            .collect()
    }

    /// All texts of the user: the prompt and the further messages, one per line.
    #[must_use]
    pub fn user_text(&self) -> Cow<'_, str> {
        user_text(&self.prompt, &self.turns)
    }
}

/// The prompt and the further messages, one per line.
pub(crate) fn user_text<'a>(prompt: &'a str, turns: &[UserTurn]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(prompt);
    for turn in turns {
        let text = text.to_mut();
        text.push('\n');
        text.push_str(&turn.say);
    }
    text
}

/// A quality requirement for the tool descriptions of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolQualityTest {
    /// The name.
    pub name: String,
    /// Its line, as in [`Test::line`].
    pub line: Option<u32>,
    /// The server.
    pub server: String,
    /// Assertions over the quality figures.
    pub expect: Vec<Expectation>,
    /// Tags.
    pub tags: Vec<String>,
}

/// Options for running a suite.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// The timeout for each call, unless the server or the test sets its own.
    pub timeout: Duration,
    /// The maximum number of concurrent runs, if the suite sets it.
    pub jobs: Option<u32>,
    /// The verdict of a test without evidence.
    pub no_evidence: NoEvidence,
    /// The folder of recorded runs, if the suite sets it.
    pub cassettes: Option<PathBuf>,
    /// The side of a cassette that is replayed.
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

/// The verdict of a test without evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEvidence {
    /// `no_evidence`.
    Keep,
    /// A pass.
    Pass,
    /// A failure.
    Fail,
}
