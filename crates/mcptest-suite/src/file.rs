//! A suite file as written. The doc comments here are the descriptions in the JSON Schema and in
//! the reference docs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcptest_attack::WrittenAttack;
use mcptest_catalog::discovery::Discovery;
use mcptest_catalog::prices::WrittenPrices;
use mcptest_redact::volatile::Rule;
use mcptest_trace::expect::WrittenExpectation;
use mcptest_trace::fault::WrittenFault;
use mcptest_yaml::ALIAS_OF;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value, json};

pub use crate::agent_file::WrittenAgent;
pub use crate::client_file::ClientFile;
pub use crate::direct_file::{PromptTestFile, ResourceTestFile, ToolTestFile};
use crate::limits::{BudgetFile, TestBudgetFile, WrittenRuns};
pub use crate::providers::{ApiFile, ProviderFile};
use crate::schema_table::GATE_BLOCKS;
pub use crate::script_file::{ScriptCall, ScriptTurn, ScriptUsage};
pub use crate::server_file::{
    AuthFile, AuthGrantFile, IsolationFile, LifecycleFile, ServerFile, TransportFile,
};
pub use crate::state_file::StateCallFile;
pub use crate::tool_file::{FixtureCallFile, SnapshotFile, ToolExpect};
pub use crate::turn_file::TurnFile;
pub use mcptest_yaml::duration::WrittenDuration;
pub use mcptest_yaml::values::{OneOrMany, Scalar};

/// A suite: servers, the agents that use them, and what is expected of both.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-mcptest-expected" = "a suite: a mapping with keys such as `servers:`, `agents:`, `tests:` and `tools:`"))]
pub struct SuiteFile {
    /// The suite's name in reports. Default: the file's name.
    pub name: Option<String>,
    /// A description for readers.
    pub description: Option<String>,
    /// Other suite files, relative to this one. Their servers, agents, tests and tool tests become
    /// part of this suite.
    pub imports: Vec<String>,
    /// Values of `${name}` in this file and the files that it imports.
    pub variables: BTreeMap<String, Value>,
    /// The MCP servers, by name.
    pub servers: BTreeMap<String, ServerFile>,
    /// Agents. An entry is itself a test if no test refers to it, or if it has its own
    /// expectations.
    pub agents: Vec<AgentEntry>,
    /// Tests that refer to an agent by name.
    pub tests: Vec<TestEntry>,
    /// Direct tool calls, without a model.
    pub tools: Vec<ToolTestFile>,
    /// Direct tests of resources, without a model: reading, templates, completion, changes, lists.
    pub resources: Vec<ResourceTestFile>,
    /// Direct tests of prompts, without a model: getting, completion, lists.
    pub prompts: Vec<PromptTestFile>,
    /// The client's answers to what servers ask of clients, in all tests. By default nothing is
    /// offered.
    pub client: Option<ClientFile>,
    /// Faults that a test can inject.
    pub faults: Vec<WrittenFault>,
    /// Attacks that a test can inject: hostile texts in results, errors, descriptions and lists.
    pub attacks: Vec<WrittenAttack>,
    /// Quality requirements for the tool descriptions of a server.
    pub tool_quality: Vec<ToolQualityFile>,
    /// Limits on cost and time.
    pub budget: BudgetFile,
    /// Model providers, by the name before the slash in `provider/model`.
    pub providers: BTreeMap<String, ProviderFile>,
    /// Prices of models in US dollars per million tokens. They override the built-in prices.
    pub prices: WrittenPrices,
    /// Options for running the suite.
    pub run_options: RunOptionsFile,
}

/// The configuration and expectations of an agent, for entries of `agents:` and `tests:`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentFields {
    /// The name, as shown in reports.
    #[schemars(with = "String", length(min = 1))]
    pub name: Option<String>,
    /// A description for readers.
    pub description: Option<String>,
    /// The kind of test.
    pub r#type: Option<TestKind>,
    /// The agent under test, instead of a model in mcptest's own loop: a preset, a command, a
    /// command that speaks ACP, or an address. With a list, the test runs once per agent. In
    /// `tests:` also the name of an entry of `agents:` that this test runs; keys of the test
    /// override those of the entry.
    pub agent: Option<WrittenAgent>,
    /// Model ids; the test runs once per model.
    #[serde(alias = "model")]
    pub models: Option<OneOrMany>,
    /// The servers whose tools are offered to the model.
    #[serde(alias = "server")]
    pub servers: Option<OneOrMany>,
    /// The task for the agent.
    #[serde(alias = "user_prompt")]
    pub prompt: Option<String>,
    /// The messages that the user sends after answers of the agent, in order.
    pub turns: Option<Vec<TurnFile>>,
    /// The system prompt.
    pub system: Option<String>,
    /// The number of runs. Default: 1; 0 counts as 1. `{max: 30, stop: decided}` stops as soon as
    /// no further run can change a verdict.
    pub runs: Option<WrittenRuns>,
    /// Limits on the cost of the test.
    pub budget: Option<TestBudgetFile>,
    /// The maximum number of assistant turns in one run. Default: 10.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_turns: Option<u32>,
    /// The maximum number of tokens that the model may write per turn, passed to the provider.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Assertions on each run, over `tool_calls`, `tool_names`, `tool_results`, `final_response`,
    /// `conversation` and what servers sent by themselves (`client`, `logs`, `progress`).
    pub expect: Vec<WrittenExpectation>,
    /// Calls before each run, in order. If one fails, the run is an error of kind `fixture`.
    pub setup: Option<Vec<StateCallFile>>,
    /// Calls after each run, in order, and what is expected of their answers: the outcome of the
    /// run.
    pub after: Option<Vec<StateCallFile>>,
    /// Calls at the end of each run, in order, whatever its outcome.
    pub teardown: Option<Vec<StateCallFile>>,
    /// The client's answers to what servers ask of clients. Keys override those of the suite's
    /// `client`. An agent under test is itself the client, and answers by itself.
    pub client: Option<ClientFile>,
    /// The script for `builtin/scripted`: a list of runs, each a list of turns. Further runs repeat
    /// the last one.
    pub script: Option<Vec<Vec<ScriptTurn>>>,
    /// Names of entries of `faults:` and `attacks:` to inject. Faults apply in every run; each
    /// attack has the test's runs for itself, unless `injection:` says `mode: together`.
    pub inject: Option<OneOrMany>,
    /// A check that the prompt names no tool and no server.
    pub discovery: Option<Discovery>,
    /// The side of a cassette that is replayed. Default: the suite's.
    pub replay: Option<ReplayFile>,
    /// Tags for selecting tests.
    pub tags: Vec<String>,
}

/// The side of a cassette that is replayed; the other side is live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayFile {
    /// Both: no server is started and no model is called.
    #[default]
    Both,
    /// The model's answers; servers are live.
    Model,
    /// The tools' results; the model is live.
    Tools,
}

/// The kind of test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// An agent run.
    Agent,
}

/// A quality requirement for the tool descriptions of a server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolQualityFile {
    /// The name, as shown in reports.
    #[schemars(length(min = 1))]
    pub name: String,
    /// A description for readers.
    #[serde(default)]
    pub description: Option<String>,
    /// The server whose tool descriptions are checked.
    pub server: String,
    /// Assertions over the quality figures. Default: `min_score >= 0.50`, `mean_score >= 0.70` and
    /// `critical_count <= 0`.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
    /// Tags for selecting tests.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Options for running the suite.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunOptionsFile {
    /// The timeout for each tool call. Default: 30s. `--timeout` overrides it.
    pub timeout: Option<WrittenDuration>,
    /// The maximum number of concurrent runs. Default: 8; 16 for direct calls to a shared server;
    /// 64 for runs whose model is called over HTTP and whose servers are shared. `--jobs` overrides
    /// it.
    #[schemars(range(min = 1, max = 1024))]
    pub jobs: Option<u32>,
    /// The verdict of a test without evidence. Default: `no_evidence`, with exit code 3.
    pub no_evidence: Option<NoEvidenceFile>,
    /// The folder of recorded runs, relative to this file. Default: `cassettes`. `--cassettes`
    /// overrides it.
    #[schemars(with = "String", length(min = 1))]
    pub cassettes: Option<String>,
    /// The side of a cassette that is replayed. Default: `both`. `--replay` overrides it.
    pub replay: Option<ReplayFile>,
    /// Rules that find values that differ in every run; cassettes hold placeholders for them. These
    /// rules take precedence over the built-in ones (`uuid`, `timestamp`, `date`, `id`, `epoch`).
    pub normalise: Vec<Rule>,
}

/// The verdict of a test without evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoEvidenceFile {
    /// It passes.
    Pass,
    /// It fails.
    Fail,
}

/// Alternative spellings of keys: (spelling, canonical).
const ALIASES: [(&str, &str); 3] = [
    ("model", "models"),
    ("server", "servers"),
    ("user_prompt", "prompt"),
];

/// An entry of `agents:`.
#[derive(Debug)]
pub struct AgentEntry(pub Entry);

/// An entry of `tests:`.
#[derive(Debug)]
pub struct TestEntry(pub Entry);

/// The fields of an entry, and its gate blocks as written.
///
/// The gates come from a list that the program passes in, so the struct cannot have fields for
/// them; they are separated by name before the other keys are decoded.
#[derive(Debug)]
pub struct Entry {
    /// All other keys.
    pub fields: AgentFields,
    /// The gate blocks, in the order of the file.
    pub gates: Vec<(String, Value)>,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = Map::deserialize(deserializer)?;
        let mut gates = Vec::new();
        map.retain(|key, value| {
            let is_gate = GATE_BLOCKS.contains(&key.as_str());
            if is_gate {
                gates.push((key.clone(), value.clone()));
            }
            !is_gate
        });
        let fields = serde_json::from_value(Value::Object(map)).map_err(D::Error::custom)?;
        Ok(Self { fields, gates })
    }
}

impl<'de> Deserialize<'de> for AgentEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Entry::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for TestEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Entry::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for AgentEntry {
    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        entry_schema(
            generator,
            "An agent: a test itself, or referred to by tests.",
            &["type"],
        )
    }
}

impl JsonSchema for TestEntry {
    fn schema_name() -> Cow<'static, str> {
        "Test".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        entry_schema(generator, "A test of an agent.", &[])
    }
}

fn entry_schema(generator: &mut SchemaGenerator, description: &str, without: &[&str]) -> Schema {
    let mut schema = AgentFields::json_schema(generator);
    schema.insert("description".into(), description.into());
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return schema;
    };
    for name in without {
        properties.shift_remove(*name);
    }
    for (alias, canonical) in ALIASES {
        let mut property = properties.get(canonical).cloned().unwrap_or_default();
        property[ALIAS_OF] = canonical.into();
        properties.insert(alias.to_owned(), property);
    }
    let clashes: Vec<Value> = ALIASES
        .iter()
        .map(|(alias, canonical)| json!({"not": {"required": [alias, canonical]}}))
        .collect();
    schema.insert("required".into(), json!(["name"]));
    schema.insert("allOf".into(), clashes.into());
    schema
}
