//! The values of a run, as templates name them.

use serde_json::{Map, Value, json};

use crate::agent::{Agent, Argument, Block};
use crate::file::{EachFile, PermissionsFile};
use crate::task::ServerLaunch;
use crate::template::{Template, is_set};

/// The values of a run.
pub(crate) const RUN_VALUES: &[&str] = &[
    "prompt",
    "system",
    "model",
    "suite_dir",
    "run_dir",
    "home",
    "cwd",
    "tmp",
    "cache",
    "base_url",
    "api_key",
    "servers",
    "tools",
    "mcp_json",
    "mcp_json_file",
    "run",
    "test",
    "turn",
    "session",
    "history",
    "allow",
    "reject",
    "call_timeout_s",
    "call_timeout_ms",
    "server_start_timeout_s",
    "server_start_timeout_ms",
    "server_timeout_s",
    "server_timeout_ms",
];

/// The values of one server. `tools` and `allowed` are those of the server there.
pub(crate) const SERVER_VALUES: &[&str] = &[
    "name", "command", "args", "argv", "env", "url", "headers", "allowed",
];

/// The values of one allowed tool.
pub(crate) const TOOL_VALUES: &[&str] = &["tool"];

/// The values of one run, and the forms in which an agent wants them.
pub(crate) struct Values<'a> {
    agent: &'a Agent,
    servers: &'a [ServerLaunch],
    run: Map<String, Value>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        servers: &'a [ServerLaunch],
        run: Map<String, Value>,
    ) -> Self {
        let mut values = Self {
            agent,
            servers,
            run,
        };
        values.set("allow", agent.permissions == PermissionsFile::Allow);
        values.set("reject", agent.permissions == PermissionsFile::Reject);
        values.set("mcp_json", mcp_json(servers));
        values
    }

    /// Sets a value of the run.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.run.insert(name.to_owned(), value.into());
    }

    /// A value of the run as text.
    pub(crate) fn text_of(&self, name: &str) -> String {
        match self.value(name, None, None) {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }

    /// Renders a template.
    pub(crate) fn text(&self, template: &Template) -> String {
        template.render(&|name| self.value(name, None, None))
    }

    /// Renders a template, unless it contains a value that is not set, or gives nothing.
    pub(crate) fn text_if_set(&self, template: &Template) -> Option<String> {
        let unset = template
            .references()
            .any(|reference| self.value(&reference.name, None, None).is_null());
        Some(self.text(template)).filter(|text| !unset && !text.is_empty())
    }

    /// Renders the arguments of the command.
    pub(crate) fn argv(&self) -> Vec<String> {
        let mut argv = Vec::new();
        for argument in &self.agent.arguments {
            match argument {
                Argument::Text(template) => argv.push(self.text(template)),
                Argument::Group {
                    when,
                    unless,
                    each,
                    args,
                } => {
                    let mut add = |server: Option<&ServerLaunch>, tool: Option<&str>| {
                        if self.condition(when.as_deref(), unless.as_deref(), server) {
                            let lookup = |name: &str| self.value(name, server, tool);
                            argv.extend(args.iter().map(|arg| arg.render(&lookup)));
                        }
                    };
                    match each {
                        None => add(None, None),
                        Some(EachFile::Servers) => {
                            self.servers
                                .iter()
                                .for_each(|server| add(Some(server), None));
                        }
                        Some(EachFile::Tools) => {
                            for server in self.servers {
                                for tool in self.tool_texts(server) {
                                    add(Some(server), Some(&tool));
                                }
                            }
                        }
                    }
                }
            }
        }
        argv
    }

    /// Renders the body of a request. A string that is just one value keeps the value's type.
    pub(crate) fn body(&self, body: &Value) -> Value {
        match body {
            Value::String(text) => match Template::parse(text) {
                Ok(template) => match template.only_value() {
                    Some(name) => self.value(name, None, None),
                    None => Value::String(self.text(&template)),
                },
                Err(_) => body.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.body(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), self.body(value)))
                .collect(),
            other => other.clone(),
        }
    }

    /// The beginnings of the names of MCP tools.
    pub(crate) fn for_each_server(&self, template: &Template) -> Vec<String> {
        self.servers
            .iter()
            .map(|server| template.render(&|name| self.value(name, Some(server), None)))
            .collect()
    }

    /// A value; `null` if it is not set.
    fn value(&self, name: &str, server: Option<&ServerLaunch>, tool: Option<&str>) -> Value {
        if let Some(block) = self.agent.blocks.get(name) {
            return Value::String(self.block(block, server, tool));
        }
        if let Some(server) = server {
            match name {
                "tools" => return self.join_tools(&[server]),
                "allowed" => return json!(self.allows_all(server.name())),
                "tool" => return tool.map_or(Value::Null, Value::from),
                _ => {}
            }
            let value = server.value(name);
            if !value.is_null() || SERVER_VALUES.contains(&name) {
                return value;
            }
        }
        match name {
            "servers" => self.server_texts(),
            "tools" => self.join_tools(&self.servers.iter().collect::<Vec<_>>()),
            _ => self.run.get(name).cloned().unwrap_or(Value::Null),
        }
    }

    fn condition(
        &self,
        when: Option<&str>,
        unless: Option<&str>,
        server: Option<&ServerLaunch>,
    ) -> bool {
        when.is_none_or(|name| is_set(&self.value(name, server, None)))
            && unless.is_none_or(|name| !is_set(&self.value(name, server, None)))
    }

    fn block(&self, block: &Block, server: Option<&ServerLaunch>, tool: Option<&str>) -> String {
        if self.condition(block.when.as_deref(), block.unless.as_deref(), server) {
            block.text.render(&|name| self.value(name, server, tool))
        } else {
            String::new()
        }
    }

    fn server_texts(&self) -> Value {
        let Some(form) = &self.agent.servers else {
            return mcp_json(self.servers)["mcpServers"].clone();
        };
        let texts: Vec<String> = self
            .servers
            .iter()
            .filter_map(|server| {
                let template = match server {
                    ServerLaunch::Stdio { .. } => Some(&form.each),
                    ServerLaunch::Http { .. } => form.each_http.as_ref(),
                };
                template.map(|it| it.render(&|name| self.value(name, Some(server), None)))
            })
            .collect();
        Value::String(texts.join(&form.join))
    }

    fn join_tools(&self, servers: &[&ServerLaunch]) -> Value {
        let Some(form) = &self.agent.tools else {
            return Value::Null;
        };
        let texts: Vec<String> = servers
            .iter()
            .flat_map(|server| self.tool_texts(server))
            .collect();
        Value::String(texts.join(&form.join))
    }

    /// The allowed tools of a server, in the agent's own form.
    fn tool_texts(&self, server: &ServerLaunch) -> Vec<String> {
        let Some(form) = &self.agent.tools else {
            return Vec::new();
        };
        if self.allows_all(server.name()) {
            return vec![form.all.render(&|name| match name {
                // The form of a tool cannot contain the form of all tools.
                "tools" => Value::Null,
                name => self.value(name, Some(server), None),
            })];
        }
        allowed_tools(&self.agent.permissions, server.name())
            .map(|tool| {
                form.each.render(&|name| match name {
                    "tools" => Value::Null,
                    name => self.value(name, Some(server), Some(tool)),
                })
            })
            .collect()
    }

    fn allows_all(&self, server: &str) -> bool {
        match &self.agent.permissions {
            PermissionsFile::Allow => true,
            PermissionsFile::Reject => false,
            tools => allowed_tools(tools, server).any(|tool| tool == "*"),
        }
    }
}

/// The tools of a server that a list of permissions names.
pub(crate) fn allowed_tools<'p>(
    permissions: &'p PermissionsFile,
    server: &'p str,
) -> impl Iterator<Item = &'p str> {
    let tools: &[String] = match permissions {
        PermissionsFile::Tools(tools) => tools,
        _ => &[],
    };
    tools
        .iter()
        .filter_map(move |tool| tool.strip_prefix(server)?.strip_prefix('.'))
}

/// The servers in the form that most agents read.
pub(crate) fn mcp_json(servers: &[ServerLaunch]) -> Value {
    let entries: Map<String, Value> = servers
        .iter()
        .map(|server| {
            let entry = match server {
                ServerLaunch::Stdio { .. } => json!({
                    "type": "stdio",
                    "command": server.value("command"),
                    "args": server.value("args"),
                    "env": server.value("env"),
                }),
                ServerLaunch::Http { .. } => json!({
                    "type": "http",
                    "url": server.value("url"),
                    "headers": server.value("headers"),
                }),
            };
            (server.name().to_owned(), entry)
        })
        .collect();
    json!({"mcpServers": entries})
}

impl ServerLaunch {
    /// A value of the server; `null` if it has none of this name.
    fn value(&self, name: &str) -> Value {
        let pairs = |pairs: &[(String, String)]| -> Value {
            pairs
                .iter()
                .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
                .collect::<Map<_, _>>()
                .into()
        };
        match (self, name) {
            (_, "name") => json!(self.name()),
            (Self::Stdio { argv, .. }, "command") => json!(argv.first()),
            (Self::Stdio { argv, .. }, "args") => json!(argv.get(1..).unwrap_or_default()),
            (Self::Stdio { argv, .. }, "argv") => json!(argv),
            (Self::Stdio { env, .. }, "env") => pairs(env),
            (Self::Http { url, .. }, "url") => json!(url),
            (Self::Http { headers, .. }, "headers") => pairs(headers),
            _ => Value::Null,
        }
    }
}
