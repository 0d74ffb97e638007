//! Direct tests as written: the entries of `tools:`, `resources:` and `prompts:`.

use std::collections::BTreeMap;

use mcptest_yaml::duration::WrittenDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value};

use crate::client_file::ClientFile;
use crate::server_file::IsolationFile;
use crate::tool_file::{FixtureCallFile, SnapshotFile, ToolExpect};

/// The keys that all direct tests have.
#[derive(Debug)]
pub(crate) struct DirectFields {
    pub name: String,
    pub server: String,
    pub args: Option<Map<String, Value>>,
    pub expect: ToolExpect,
    pub snapshot: SnapshotFile,
    pub setup: Vec<FixtureCallFile>,
    pub trigger: Vec<FixtureCallFile>,
    pub teardown: Vec<FixtureCallFile>,
    pub save: BTreeMap<String, String>,
    pub client: Option<ClientFile>,
    pub wait: Option<WrittenDuration>,
    pub timeout: Option<WrittenDuration>,
    pub isolation: Option<IsolationFile>,
    pub serial: Option<bool>,
    pub tags: Vec<String>,
}

/// Defines an entry: its own keys among those that all direct tests have.
macro_rules! direct_test {
    (
        $(#[$about:meta])*
        $name:ident ($args:literal, $expect:literal)
        {$($(#[$of_key:meta])* $key:ident: $type:ty,)*}
        {$($(#[$of_late:meta])* $late:ident: $late_type:ty,)*}
    ) => {
        $(#[$about])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The name, as shown in reports.
            #[schemars(length(min = 1))]
            pub name: String,
            /// A description for readers.
            #[serde(default)]
            pub description: Option<String>,
            /// The server.
            pub server: String,
            $($(#[$of_key])* #[serde(default)] pub $key: $type,)*
            #[doc = $args]
            #[serde(default)]
            pub args: Option<Map<String, Value>>,
            #[doc = $expect]
            #[serde(default)]
            pub expect: ToolExpect,
            /// Compare the result with a stored snapshot. Default: `false`.
            #[serde(default)]
            pub snapshot: SnapshotFile,
            /// Calls before the test, in order. If one fails, the test has the verdict `error` and
            /// its request is not made.
            #[serde(default)]
            pub setup: Vec<FixtureCallFile>,
            $($(#[$of_late])* #[serde(default)] pub $late: $late_type,)*
            /// Calls that cause the change that the test listens to, in order: after subscribing,
            /// and before the request.
            #[serde(default)]
            pub trigger: Vec<FixtureCallFile>,
            /// Calls after the test, in order, whatever its outcome.
            #[serde(default)]
            pub teardown: Vec<FixtureCallFile>,
            /// Values of the result for `teardown`: a name and a target, such as
            /// `id: result.structuredContent.id`.
            #[serde(default)]
            pub save: BTreeMap<String, String>,
            /// The client's answers to what the server asks. Keys override those of the suite's
            /// `client`.
            #[serde(default)]
            pub client: Option<ClientFile>,
            /// The time that the server has for messages that it sends by itself: assertions over
            /// them are repeated until they hold. Default: 2s.
            #[serde(default)]
            pub wait: Option<WrittenDuration>,
            /// The timeout for the request. Default: the server's.
            #[serde(default)]
            pub timeout: Option<WrittenDuration>,
            /// The sharing of the server process. Default: the server's `isolation`; `run` for a
            /// test that has a `client` or listens to messages of the server.
            #[serde(default)]
            pub isolation: Option<IsolationFile>,
            /// Run the test while no other test uses its servers. Default: `true` with `setup`,
            /// `teardown` or `max_duration_ms`, else `false`.
            #[serde(default)]
            pub serial: Option<bool>,
            /// Tags for selecting tests.
            #[serde(default)]
            pub tags: Vec<String>,
        }

        impl $name {
            /// Takes the keys that all direct tests have.
            pub(crate) fn take_common(&mut self) -> DirectFields {
                DirectFields {
                    name: std::mem::take(&mut self.name),
                    server: std::mem::take(&mut self.server),
                    args: self.args.take(),
                    expect: std::mem::take(&mut self.expect),
                    snapshot: std::mem::take(&mut self.snapshot),
                    setup: std::mem::take(&mut self.setup),
                    trigger: std::mem::take(&mut self.trigger),
                    teardown: std::mem::take(&mut self.teardown),
                    save: std::mem::take(&mut self.save),
                    client: self.client.take(),
                    wait: self.wait.take(),
                    timeout: self.timeout.take(),
                    isolation: self.isolation,
                    serial: self.serial,
                    tags: std::mem::take(&mut self.tags),
                }
            }
        }
    };
}

direct_test! {
    /// A direct tool call and what is expected of its result.
    ToolTestFile (
        "The arguments. `${saved.name}` is a value that `setup` saved.",
        "Assertions over `result` and `error`, and over what the server sent by itself. Default: no error."
    )
    {
        /// The tool.
        #[schemars(with = "String", length(min = 1))]
        tool: Option<String>,
        /// List the tools instead of calling one. The result has all pages: `result.tools`,
        /// `result.pages`.
        list: bool,
    }
    {
        /// Call the tool as a task: `true`, or a mapping with `ttl_ms`.
        task: TaskFile,
        /// Cancel the call after this number of milliseconds.
        cancel_after_ms: Option<u64>,
        /// Cancel the call when the server first reports progress, sends a log message, or asks the
        /// client something.
        cancel_on: Option<CancelOnFile>,
    }
}

direct_test! {
    /// A direct test of resources: reading one, listing them, completing a variable of a template,
    /// being told of a change.
    ResourceTestFile (
        "The values of the template's variables. `${saved.name}` is a value that `setup` saved. With `complete`: those of the other variables.",
        "Assertions over `result` and `error`, and over what the server sent by itself. Default: no error, and with `subscribe` or `trigger` a change."
    )
    {
        /// The URI of the resource to read. `${saved.name}` is a value that `setup` saved.
        #[schemars(with = "String", length(min = 1))]
        uri: Option<String>,
        /// The template of the resource to read, such as `note://{id}`; `args` has the values of
        /// its variables.
        #[schemars(with = "String", length(min = 1))]
        template: Option<String>,
        /// Complete a variable of the template: its name, and what has been typed, such as
        /// `{id: "4"}`.
        complete: Option<BTreeMap<String, Value>>,
        /// List the resources (`true` or `resources`) or the templates (`templates`). The result
        /// has all pages: `result.resources` or `result.resourceTemplates`, and `result.pages`.
        list: ResourceListFile,
    }
    {
        /// Subscribe to the resource before `trigger`, and read it after the change. Default:
        /// `false`.
        subscribe: bool,
    }
}

direct_test! {
    /// A direct test of prompts: getting one, listing them, completing an argument.
    PromptTestFile (
        "The arguments; numbers and the like are sent as text. `${saved.name}` is a value that `setup` saved. With `complete`: the other arguments.",
        "Assertions over `result` and `error`, and over what the server sent by itself. Default: no error, and with `trigger` a change."
    )
    {
        /// The prompt.
        #[schemars(with = "String", length(min = 1))]
        prompt: Option<String>,
        /// Complete an argument of the prompt: its name, and what has been typed, such as
        /// `{language: py}`.
        complete: Option<BTreeMap<String, Value>>,
        /// List the prompts. The result has all pages: `result.prompts`, `result.pages`.
        list: bool,
    }
    {}
}

/// The event on which a call is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelOnFile {
    /// The server reports progress.
    Progress,
    /// The server sends a log message.
    Log,
    /// The server asks the client something.
    Request,
}

/// The `task:` of a tool test: true, false, or settings.
#[derive(Debug, Clone, Default)]
pub struct TaskFile(pub Option<TaskFields>);

/// Settings of a task.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskFields {
    /// The time that the server is asked to keep the task, in milliseconds (2025-11-25 only).
    pub ttl_ms: Option<u64>,
}

impl<'de> Deserialize<'de> for TaskFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self(None)),
            Value::Bool(true) => Ok(Self(Some(TaskFields::default()))),
            other => serde_json::from_value(other)
                .map(|fields| Self(Some(fields)))
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for TaskFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TaskFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<TaskFields>();
        json_schema!({
            "description": "Call the tool as a task.",
            "x-mcptest-expected": "`true`, `false`, or a mapping such as `ttl_ms: 60000`",
            "anyOf": [{"type": "boolean"}, fields]
        })
    }
}

/// The `list:` of a resource test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResourceListFile {
    /// Nothing is listed.
    #[default]
    No,
    /// The resources.
    Resources,
    /// The templates.
    Templates,
}

impl<'de> Deserialize<'de> for ResourceListFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::No),
            Value::Bool(true) => Ok(Self::Resources),
            Value::String(what) if what == "resources" => Ok(Self::Resources),
            Value::String(what) if what == "templates" => Ok(Self::Templates),
            other => Err(D::Error::custom(format!("{other} is not a list"))),
        }
    }
}

impl JsonSchema for ResourceListFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ResourceList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The list to request.",
            "x-mcptest-expected": "`true`, `false`, `resources` or `templates`",
            "enum": [true, false, "resources", "templates"]
        })
    }
}
