//! Checks of an agent as written, and its compilation.

use std::collections::BTreeMap;
use std::time::Duration;

use mcptest_trace::matcher::Problem;
use mcptest_trace::verdict::ErrorKind;
use mcptest_yaml::duration::WrittenDuration;
use mcptest_yaml::suggest;
use regex::Regex;
use serde_json::Value;

use crate::agent::{Agent, AgentKind, Argument, Block, HttpRequest, Output, ServerForm, ToolForm};
use crate::file::{
    AgentFile, ArgumentFile, BlockFile, EachFile, FormatFile, PermissionsFile, TransportFile,
};
use crate::merge::merge;
use crate::presets::{preset, presets};
use crate::rules::{RuleCompiler, escape};
use crate::template::{FILTERS, Template, TemplateError};
use crate::values::{RUN_VALUES, SERVER_VALUES, TOOL_VALUES};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(90);
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

impl Agent {
    /// Checks an agent as written, with its preset under it.
    ///
    /// # Errors
    /// All problems. Pointers start at the written mapping.
    pub fn resolve(file: &AgentFile) -> Result<Self, Vec<Problem>> {
        let base = match &file.preset {
            None => None,
            Some(name) => match preset(name).map(|preset| preset.file()) {
                Some(Ok(base)) => Some(base),
                Some(Err(problems)) => {
                    let message = format!("the preset `{name}` cannot be read: {problems}");
                    return Err(vec![Problem::new("/preset", message)]);
                }
                None => return Err(vec![unknown_preset(name)]),
            },
        };
        let merged = match base {
            Some(base) => merge(file, base),
            None => file.clone(),
        };
        Resolver {
            written: file,
            file: &merged,
            rules: RuleCompiler::default(),
        }
        .resolve()
    }
}

fn unknown_preset(name: &str) -> Problem {
    let known: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    let help = match suggest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the presets are {}", known.join(", ")),
    };
    Problem::new("/preset", format!("unknown preset `{name}`")).help(help)
}

/// The values that a template may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Run,
    Server,
    Tool,
}

struct Resolver<'a> {
    /// The mapping in the suite, for the positions of problems.
    written: &'a AgentFile,
    /// The same with the preset under it.
    file: &'a AgentFile,
    rules: RuleCompiler,
}

impl Resolver<'_> {
    fn resolve(mut self) -> Result<Agent, Vec<Problem>> {
        let file = self.file;
        let (kind, arguments) = self.kind();
        let blocks = self.blocks();
        let env = file
            .env
            .iter()
            .map(|(name, text)| {
                let at = format!("/env/{}", escape(name));
                (name.clone(), self.template(&at, &text.0, Scope::Run))
            })
            .collect();
        let files = file
            .files
            .iter()
            .map(|(path, text)| {
                let at = format!("/files/{}", escape(path));
                (
                    self.template(&at, path, Scope::Run),
                    self.template(&at, text, Scope::Run),
                )
            })
            .collect();
        let servers = file.servers.as_ref().map(|form| ServerForm {
            each: self.template("/servers/each", &form.each, Scope::Server),
            each_http: form
                .each_http
                .as_ref()
                .map(|text| self.template("/servers/each_http", text, Scope::Server)),
            join: form.join.clone(),
        });
        let tools = file.tools.as_ref().map(|form| ToolForm {
            each: self.template("/tools/each", &form.each, Scope::Tool),
            all: self.template("/tools/all", &form.all, Scope::Server),
            join: form.join.clone(),
        });
        let http = self.http();
        let output = self.output();
        let mode = file
            .mode
            .as_ref()
            .map(|mode| self.template("/mode", mode, Scope::Run));
        let errors = self.errors();
        let timeout = self.duration("/timeout", file.timeout.as_ref());
        let startup_timeout = self.duration("/startup_timeout", file.startup_timeout.as_ref());
        let idle_timeout = self.duration("/idle_timeout", file.idle_timeout.as_ref());
        let call_timeout = self.duration("/call_timeout", file.call_timeout.as_ref());
        self.permissions();
        let agent = Agent {
            name: self.name(),
            preset: file.preset.clone(),
            about: file.about.clone(),
            version: file.version.clone().filter(|argv| !argv.is_empty()),
            tested: file.tested.clone(),
            model: file.model.clone(),
            kind: kind.unwrap_or(AgentKind::Command),
            arguments,
            http,
            stdin: file.stdin.unwrap_or_default(),
            env,
            pass_env: file.pass_env.clone(),
            blocks,
            files,
            servers,
            tools,
            servers_by: file.servers_by.unwrap_or_default(),
            transport: file.transport.unwrap_or(match kind {
                Some(AgentKind::Http) => TransportFile::Http,
                _ => TransportFile::Stdio,
            }),
            usage: file.usage.unwrap_or_default(),
            mode,
            permissions: file.permissions.clone().unwrap_or_default(),
            workspace: file.workspace.clone(),
            shared_cache: file.shared_cache.unwrap_or(false),
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            startup_timeout: startup_timeout.unwrap_or(DEFAULT_STARTUP_TIMEOUT),
            idle_timeout,
            call_timeout: call_timeout.unwrap_or(DEFAULT_CALL_TIMEOUT),
            keep: file.keep.unwrap_or_default(),
            output,
            errors,
            base_url: file.base_url.clone(),
            api_key_env: file.api_key_env.clone(),
        };
        if agent.transport == TransportFile::Http && !agent.takes_http_servers() {
            let message = "the settings of this agent have no form for servers with an address";
            self.problem(Problem::new("/transport", message).help(
                "write `servers: {each_http: …}`, or name `{{mcp_json}}`, `{{mcp_json_file}}` or, \
                 with `each: servers`, `{{url}}`",
            ));
        }
        if agent.kind == AgentKind::Http && file.transport == Some(TransportFile::Stdio) {
            let message = "an agent with an address cannot start a server of the run";
            self.problem(Problem::new("/transport", message));
        }
        if self.rules.problems.is_empty() {
            Ok(agent)
        } else {
            Err(self.rules.problems)
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.rules.problems.push(problem);
    }

    /// The kind, and the command of the agent.
    fn kind(&mut self) -> (Option<AgentKind>, Vec<Argument>) {
        let file = self.file;
        let given: Vec<(&str, AgentKind)> = [
            ("command", AgentKind::Command, file.command.is_some()),
            ("acp", AgentKind::Acp, file.acp.is_some()),
            ("url", AgentKind::Http, file.url.is_some()),
        ]
        .into_iter()
        .filter(|(_, _, given)| *given)
        .map(|(key, kind, _)| (key, kind))
        .collect();
        let kind = match given.as_slice() {
            [(_, kind)] => *kind,
            [] => {
                self.problem(
                    Problem::new("", "the agent has no command and no address").help(
                        "write `preset: NAME` (see `mcptest agents list`), `command: [program, \
                     \"{{prompt}}\"]`, `acp: [program]` or `url: https://…`",
                    ),
                );
                return (None, Vec::new());
            }
            [_, (second, _), ..] => {
                let message = format!("an agent has only one of `{}` and `{second}`", given[0].0);
                self.problem(Problem::new(format!("/{second}"), message).on_key());
                return (None, Vec::new());
            }
        };
        let (key, written) = match kind {
            AgentKind::Command => ("command", file.command.as_deref()),
            AgentKind::Acp => ("acp", file.acp.as_deref()),
            AgentKind::Http => return (Some(kind), Vec::new()),
        };
        let written = written.unwrap_or_default();
        if !matches!(written.first(), Some(ArgumentFile::Text(program)) if !program.is_empty()) {
            let message = format!("`{key}` must begin with a program");
            self.problem(Problem::new(format!("/{key}"), message));
        }
        let arguments = written
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                let at = format!("/{key}/{index}");
                match argument {
                    ArgumentFile::Text(text) => {
                        Argument::Text(self.template(&at, text, Scope::Run))
                    }
                    ArgumentFile::Group(group) => {
                        self.condition_names(&at, group.when.as_deref(), group.unless.as_deref());
                        let scope = match group.each {
                            None => Scope::Run,
                            Some(EachFile::Servers) => Scope::Server,
                            Some(EachFile::Tools) => Scope::Tool,
                        };
                        let args = group.args.iter().enumerate();
                        let args = args.map(|(number, text)| {
                            self.template(&format!("{at}/args/{number}"), text, scope)
                        });
                        Argument::Group {
                            args: args.collect(),
                            when: group.when.clone(),
                            unless: group.unless.clone(),
                            each: group.each,
                        }
                    }
                }
            })
            .collect();
        (Some(kind), arguments)
    }

    fn name(&self) -> String {
        let file = self.file;
        let program = || {
            let argv = file.command.as_ref().or(file.acp.as_ref())?;
            argv.iter().rev().find_map(|argument| match argument {
                ArgumentFile::Text(text) => std::path::Path::new(text)
                    .file_name()
                    .and_then(|name| name.to_str())
                    .filter(|_| !text.contains("{{") && !text.starts_with('-'))
                    .map(str::to_owned),
                ArgumentFile::Group(_) => None,
            })
        };
        let host = || {
            let rest = file.url.as_deref()?.split_once("//")?.1;
            rest.split(['/', '?']).next().map(str::to_owned)
        };
        file.name
            .clone()
            .or_else(|| file.preset.clone())
            .or_else(program)
            .or_else(host)
            .unwrap_or_else(|| "agent".to_owned())
    }

    fn blocks(&mut self) -> BTreeMap<String, Block> {
        let mut blocks = BTreeMap::new();
        for (name, BlockFile { when, unless, text }) in &self.file.blocks {
            let at = format!("/blocks/{}", escape(name));
            if known_values(Scope::Tool).any(|value| value == name) {
                let message = format!("`{name}` is a value of the run");
                self.problem(Problem::new(&at, message).on_key());
            }
            self.condition_names(&at, when.as_deref(), unless.as_deref());
            let text = match Template::parse(text) {
                Ok(template) => {
                    if let Some(inner) = template
                        .references()
                        .find(|it| self.file.blocks.contains_key(&it.name))
                    {
                        let message =
                            format!("a block cannot contain another block (`{}`)", inner.name);
                        self.problem(Problem::new(format!("{at}/text"), message));
                    }
                    self.names(&format!("{at}/text"), &template, Scope::Tool);
                    template
                }
                Err(error) => {
                    self.template_error(&format!("{at}/text"), &error);
                    continue;
                }
            };
            let block = Block {
                when: when.clone(),
                unless: unless.clone(),
                text,
            };
            blocks.insert(name.clone(), block);
        }
        blocks
    }

    fn http(&mut self) -> HttpRequest {
        let file = self.file;
        let url = file
            .url
            .as_ref()
            .map(|url| self.template("/url", url, Scope::Run));
        let headers = file
            .headers
            .iter()
            .map(|(name, text)| {
                let at = format!("/headers/{}", escape(name));
                (name.clone(), self.template(&at, text, Scope::Run))
            })
            .collect();
        if let Some(body) = &file.body {
            self.body("/body", body);
        }
        HttpRequest {
            url,
            method: file.method.clone(),
            headers,
            body: file.body.clone(),
            stream: file.stream,
        }
    }

    fn body(&mut self, at: &str, body: &Value) {
        match body {
            Value::String(text) => {
                self.template(at, text, Scope::Run);
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.body(&format!("{at}/{index}"), item);
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    self.body(&format!("{at}/{}", escape(key)), value);
                }
            }
            _ => {}
        }
    }

    fn output(&mut self) -> Output {
        if let (Some(response), true) = (&self.file.response, self.file.url.is_some()) {
            let at = "/response";
            return Output {
                format: FormatFile::Json,
                final_response: self
                    .rules
                    .value(&format!("{at}/final"), response.r#final.as_ref()),
                tokens: self
                    .rules
                    .tokens(&format!("{at}/tokens"), response.tokens.as_ref()),
                cost: self
                    .rules
                    .value(&format!("{at}/cost"), response.cost.as_ref()),
                error: self
                    .rules
                    .value(&format!("{at}/error"), response.error.as_ref()),
                ended: response
                    .ended
                    .as_ref()
                    .map(|rule| self.rules.rule(&format!("{at}/ended"), rule)),
                session: self
                    .rules
                    .value(&format!("{at}/session"), response.session.as_ref()),
                calls: self
                    .rules
                    .calls(&format!("{at}/calls"), response.calls.as_ref()),
                ..Output::default()
            };
        }
        let file = self.file;
        let Some(output) = &file.output else {
            return Output::default();
        };
        let at = "/output";
        Output {
            format: output.format.unwrap_or_default(),
            final_response: self
                .rules
                .value(&format!("{at}/final"), output.r#final.as_ref()),
            texts: self
                .rules
                .value(&format!("{at}/texts"), output.texts.as_ref()),
            tokens: self
                .rules
                .tokens(&format!("{at}/tokens"), output.tokens.as_ref()),
            cost: self
                .rules
                .value(&format!("{at}/cost"), output.cost.as_ref()),
            stop: self
                .rules
                .value(&format!("{at}/stop"), output.stop.as_ref()),
            error: self
                .rules
                .value(&format!("{at}/error"), output.error.as_ref()),
            ended: output
                .ended
                .as_ref()
                .map(|rule| self.rules.rule(&format!("{at}/ended"), rule)),
            servers: self
                .rules
                .servers(&format!("{at}/servers"), output.servers.as_ref()),
            session: self
                .rules
                .value(&format!("{at}/session"), output.session.as_ref()),
            calls: self
                .rules
                .calls(&format!("{at}/calls"), output.calls.as_ref()),
            file: output
                .file
                .as_ref()
                .map(|path| self.template("/output/file", path, Scope::Run)),
        }
    }

    fn errors(&mut self) -> Vec<(Regex, ErrorKind)> {
        let mut rules = Vec::new();
        for (index, rule) in self.file.errors.iter().enumerate() {
            match Regex::new(&rule.r#match) {
                Ok(pattern) => rules.push((pattern, rule.kind.kind())),
                Err(error) => {
                    let text = error.to_string();
                    let reason = text.lines().last().unwrap_or(&text);
                    let message = format!(
                        "not a valid regular expression: {}",
                        reason.trim_start_matches("error: ")
                    );
                    self.problem(Problem::new(format!("/errors/{index}/match"), message));
                }
            }
        }
        rules
    }

    fn permissions(&mut self) {
        if let Some(PermissionsFile::Tools(tools)) = &self.file.permissions {
            for (index, tool) in tools.iter().enumerate() {
                let valid = tool
                    .split_once('.')
                    .is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
                if !valid {
                    let message = format!("`{tool}` does not name a tool of a server");
                    self.problem(
                        Problem::new(format!("/permissions/{index}"), message)
                            .help("write `server.tool`, or `server.*` for all tools of a server"),
                    );
                }
            }
        }
    }

    fn duration(&mut self, at: &str, written: Option<&WrittenDuration>) -> Option<Duration> {
        match written?.parse() {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.problem(Problem::new(at, error.to_string()));
                None
            }
        }
    }

    /// Parses a template and checks its names.
    fn template(&mut self, at: &str, text: &str, scope: Scope) -> Template {
        match Template::parse(text) {
            Ok(template) => {
                self.names(at, &template, scope);
                template
            }
            Err(error) => {
                self.template_error(at, &error);
                // Never rendered: the problem makes resolving fail.
                Template::parse("").unwrap_or_else(|_| unreachable!("an empty template is valid"))
            }
        }
    }

    fn template_error(&mut self, at: &str, error: &TemplateError) {
        let at = self.place(at);
        let problem = Problem::new(at, error.to_string());
        self.problem(match error {
            TemplateError::Filter(name) => match suggest(name, FILTERS) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("the filters are {}", FILTERS.join(" and "))),
            },
            TemplateError::Unclosed(_) => problem,
        });
    }

    fn names(&mut self, at: &str, template: &Template, scope: Scope) {
        for reference in template.references() {
            self.known(at, &reference.name, scope);
        }
    }

    fn condition_names(&mut self, at: &str, when: Option<&str>, unless: Option<&str>) {
        if let Some(when) = when {
            self.known(&format!("{at}/when"), when, Scope::Server);
        }
        if let Some(unless) = unless {
            self.known(&format!("{at}/unless"), unless, Scope::Server);
        }
    }

    fn known(&mut self, at: &str, name: &str, scope: Scope) {
        let mut known: Vec<&str> = known_values(scope).collect();
        known.extend(self.file.blocks.keys().map(String::as_str));
        if known.contains(&name) {
            return;
        }
        let message = if known_values(Scope::Tool).any(|value| value == name) {
            format!("`{name}` is a value of one server: it is not known here")
        } else {
            format!("unknown value `{name}`")
        };
        let help = match suggest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the values are {}", known.join(", ")),
        };
        let at = self.place(at);
        self.problem(Problem::new(at, message).help(help));
    }

    /// The position of a problem in the suite: the key, or `preset` if the preset has it.
    fn place(&self, at: &str) -> String {
        let written = self.written;
        let mut keys = at.split('/').skip(1);
        let own = match (keys.next(), keys.next()) {
            (Some("env"), Some(key)) => written.env.keys().any(|it| escape(it) == key),
            (Some("files"), Some(key)) => written.files.keys().any(|it| escape(it) == key),
            (Some("blocks"), Some(key)) => written.blocks.keys().any(|it| escape(it) == key),
            (Some("headers"), Some(key)) => written.headers.keys().any(|it| escape(it) == key),
            (Some("command"), _) => written.command.is_some(),
            (Some("acp"), _) => written.acp.is_some(),
            (Some("servers"), _) => written.servers.is_some(),
            (Some("tools"), _) => written.tools.is_some(),
            _ => true,
        };
        if own || written.preset.is_none() {
            at.to_owned()
        } else {
            "/preset".to_owned()
        }
    }
}

fn known_values(scope: Scope) -> impl Iterator<Item = &'static str> {
    let server: &[&str] = if scope == Scope::Run {
        &[]
    } else {
        SERVER_VALUES
    };
    let tool: &[&str] = if scope == Scope::Tool {
        TOOL_VALUES
    } else {
        &[]
    };
    RUN_VALUES.iter().chain(server).chain(tool).copied()
}
