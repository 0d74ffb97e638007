//! A checked agent: the preset under the suite's keys, all templates and rules compiled.

use std::collections::BTreeMap;
use std::time::Duration;

use mcptest_trace::verdict::ErrorKind;
use regex::Regex;
use serde_json::Value;

use crate::file::{
    EachFile, FormatFile, KeepFile, PermissionsFile, ServersByFile, StdinFile, StreamFile,
    TransportFile, UsageFile,
};
use crate::rules::{CallRules, Rule, ServerStateRule, TokenRule};
use crate::template::Template;

/// The kind of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentKind {
    /// A command that runs once per prompt.
    Command,
    /// A command that speaks ACP.
    Acp,
    /// An address.
    Http,
}

/// An agent that can be run.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) name: String,
    pub(crate) preset: Option<String>,
    pub(crate) about: Option<String>,
    pub(crate) version: Option<Vec<String>>,
    pub(crate) tested: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) kind: AgentKind,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) http: HttpRequest,
    pub(crate) stdin: StdinFile,
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) blocks: BTreeMap<String, Block>,
    pub(crate) files: Vec<(Template, Template)>,
    pub(crate) servers: Option<ServerForm>,
    pub(crate) tools: Option<ToolForm>,
    pub(crate) servers_by: ServersByFile,
    pub(crate) transport: TransportFile,
    pub(crate) usage: UsageFile,
    pub(crate) mode: Option<Template>,
    pub(crate) permissions: PermissionsFile,
    pub(crate) workspace: Option<String>,
    pub(crate) shared_cache: bool,
    pub(crate) timeout: Duration,
    pub(crate) startup_timeout: Duration,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) call_timeout: Duration,
    pub(crate) keep: KeepFile,
    pub(crate) output: Output,
    pub(crate) errors: Vec<(Regex, ErrorKind)>,
    pub(crate) base_url: Option<String>,
    pub(crate) api_key_env: Option<String>,
}

/// An argument of a command.
#[derive(Debug, Clone)]
pub(crate) enum Argument {
    Text(Template),
    Group {
        when: Option<String>,
        unless: Option<String>,
        each: Option<EachFile>,
        args: Vec<Template>,
    },
}

/// Text with a condition.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) when: Option<String>,
    pub(crate) unless: Option<String>,
    pub(crate) text: Template,
}

/// The form of servers in settings.
#[derive(Debug, Clone)]
pub(crate) struct ServerForm {
    pub(crate) each: Template,
    pub(crate) each_http: Option<Template>,
    pub(crate) join: String,
}

/// The form of allowed tools in settings.
#[derive(Debug, Clone)]
pub(crate) struct ToolForm {
    pub(crate) each: Template,
    pub(crate) all: Template,
    pub(crate) join: String,
}

/// The request of an HTTP agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpRequest {
    pub(crate) url: Option<Template>,
    pub(crate) method: Option<String>,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Option<Value>,
    pub(crate) stream: Option<StreamFile>,
}

/// The rules for an agent's output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    pub(crate) format: FormatFile,
    pub(crate) final_response: Option<Rule>,
    pub(crate) texts: Option<Rule>,
    pub(crate) tokens: Option<TokenRule>,
    pub(crate) cost: Option<Rule>,
    pub(crate) stop: Option<Rule>,
    pub(crate) error: Option<Rule>,
    pub(crate) ended: Option<Rule>,
    pub(crate) servers: Option<ServerStateRule>,
    pub(crate) session: Option<Rule>,
    pub(crate) calls: Option<CallRules>,
    pub(crate) file: Option<Template>,
}

impl Agent {
    /// The name in reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The preset that it is based on.
    #[must_use]
    pub fn preset(&self) -> Option<&str> {
        self.preset.as_deref()
    }

    /// The description for readers.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    /// The version that the preset was tested with.
    #[must_use]
    pub fn tested(&self) -> Option<&str> {
        self.tested.as_deref()
    }

    /// The model, as the agent names it.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The same agent with another model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The kind of agent.
    #[must_use]
    pub fn kind(&self) -> AgentKind {
        self.kind
    }

    /// The folder that is copied to the working directory, as written.
    #[must_use]
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    /// When the folder of a run is kept.
    #[must_use]
    pub fn keep(&self) -> KeepFile {
        self.keep
    }

    /// The limit of a whole run.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns true if it can be given further messages in one run.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        match self.kind {
            AgentKind::Acp => true,
            AgentKind::Command => self.output.session.is_some() && self.uses("session"),
            AgentKind::Http => self.uses("session") || self.uses("history") || self.uses("turn"),
        }
    }

    /// The way in which it reaches its servers.
    #[must_use]
    pub fn transport(&self) -> TransportFile {
        self.transport
    }

    /// Returns true if it can use servers with an address: over ACP, or because its settings have a
    /// form for these.
    pub(crate) fn takes_http_servers(&self) -> bool {
        match (self.kind, self.servers_by) {
            (AgentKind::Http, _) | (AgentKind::Acp, ServersByFile::Session) => true,
            // `url` is a value of one server, for an argument with `each: servers`.
            _ if self.uses("url") => true,
            _ => match &self.servers {
                Some(form) => form.each_http.is_some(),
                None => self.uses("mcp_json") || self.uses("mcp_json_file"),
            },
        }
    }

    /// The variables of mcptest's own environment that it reads. Their values are secrets.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let key = self.api_key_env.as_deref();
        self.pass_env
            .iter()
            .map(String::as_str)
            .chain(key)
            .collect()
    }

    /// Returns true if a template or a condition of the command, the environment, the files or the
    /// request contains the value.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let in_template = |template: &Template| template.references().any(|it| it.name == name);
        self.arguments.iter().any(|argument| match argument {
            Argument::Text(template) => in_template(template),
            Argument::Group {
                when, unless, args, ..
            } => {
                when.as_deref() == Some(name)
                    || unless.as_deref() == Some(name)
                    || args.iter().any(in_template)
            }
        }) || self.env.iter().any(|(_, template)| in_template(template))
            || self
                .files
                .iter()
                .any(|(path, text)| in_template(path) || in_template(text))
            || self.blocks.values().any(|block| {
                block.when.as_deref() == Some(name)
                    || block.unless.as_deref() == Some(name)
                    || in_template(&block.text)
            })
            || self.http.url.as_ref().is_some_and(in_template)
            || self.http.headers.iter().any(|(_, it)| in_template(it))
            || self.http.body.as_ref().is_some_and(|body| {
                strings(body).any(|text| Template::parse(text).is_ok_and(|it| in_template(&it)))
            })
    }
}

/// All strings of a value.
fn strings(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(strings)),
        Value::Object(map) => Box::new(map.values().flat_map(strings)),
        _ => Box::new(std::iter::empty()),
    }
}
