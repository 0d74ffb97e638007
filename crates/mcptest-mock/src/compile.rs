//! From what is written to what is served: checks a manifest and prepares its answers.

use std::collections::{BTreeMap, HashMap};

use mcptest_core::protocol::base64::is_base64;
use serde_json::{Map, Value, json};

use crate::content::block_problems;
use crate::fault::Fault;
use crate::manifest::{
    AskSpec, BeforeSpec, BlockSpec, LogLevel, PromptSpec, ResourceSpec, ResourceTemplateSpec, ResponseSpec, ServerSpec,
    ToolSpec,
};
use crate::template::{Builder, Mode, Template, TemplateError, escape_token};
use crate::validate::schema_problem;

/// The version of a server that does not tell one.
const DEFAULT_VERSION: &str = "0.0.0";

/// A checked server: everything that requests can ask for.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    /// Nothing if the server offers no tools at all; a captured catalog may offer an empty list.
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) resource_templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) fault: Fault,
    pub(crate) page_size: Option<usize>,
    pub(crate) subscribe: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// The entry of `tools/list`.
    pub(crate) wire: Value,
    /// Nothing for a captured tool without a usable name: it is listed but cannot be called.
    pub(crate) name: Option<String>,
    pub(crate) input_schema: Option<Value>,
    /// Which answers it has for which arguments. The first that fits wins.
    pub(crate) cases: Vec<Case>,
    pub(crate) ask: Vec<Vec<Ask>>,
    pub(crate) fault: Option<Fault>,
}

impl Tool {
    /// Whether any of its answers logs something.
    pub(crate) fn logs(&self) -> bool {
        let responses = self.cases.iter().flat_map(|case| &case.responses);
        let mut before = responses.flat_map(|response| &response.before);
        before.any(|before| matches!(before, Before::Log(..)))
    }
}

/// A request to the client.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) key: String,
    pub(crate) capability: &'static str,
    /// `"method":…,"params":…`
    pub(crate) members: Template,
}

/// Answers for certain arguments, given one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) when: Option<Map<String, Value>>,
    pub(crate) responses: Vec<Response>,
}

/// One answer of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) before: Vec<Before>,
    pub(crate) answer: Answer,
}

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The members of the result.
    Result(Template),
    /// The code, and an object with the message and the data.
    Error(i32, Template),
}

/// What is sent before an answer.
#[derive(Debug, Clone)]
pub(crate) enum Before {
    Wait(u64),
    /// The members of the notification after the token.
    Progress(Template),
    /// The members of the notification.
    Log(LogLevel, Template),
}

#[derive(Debug, Clone)]
pub(crate) struct ResourceTemplate {
    /// The text between the parts that vary, and their names: one more text than names.
    pub(crate) texts: Vec<String>,
    pub(crate) names: Vec<String>,
    /// The pattern as written.
    pub(crate) pattern: String,
    /// The entry of `resources/templates/list`.
    pub(crate) wire: Value,
    /// The members of an entry of `contents` after the address.
    pub(crate) contents: Template,
    pub(crate) complete: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) uri: String,
    /// The entry of `resources/list`.
    pub(crate) wire: Value,
    /// The entry of `contents`.
    pub(crate) contents: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    /// The entry of `prompts/list`.
    pub(crate) wire: Value,
    pub(crate) required: Vec<String>,
    pub(crate) complete: BTreeMap<String, Vec<String>>,
    pub(crate) ask: Vec<Vec<Ask>>,
    /// The members of the result.
    pub(crate) response: Template,
}

/// Something in a manifest that has the right shape but makes no sense.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where, as a JSON pointer into the file.
    pub pointer: String,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl Manifest {
    /// Checks a manifest and prepares what it declares.
    ///
    /// # Errors
    /// Every problem: schemas that are none, names given twice, templates that cannot be read, content that MCP does not allow.
    pub fn from_spec(spec: &ServerSpec) -> Result<Self, Vec<Problem>> {
        let mut compiler = Compiler::default();
        let tools: Vec<_> = each(&spec.tools, "tools", |tool, at| compiler.tool(tool, at));
        let resources = each(&spec.resources, "resources", |resource, at| {
            compiler.resource(resource, at)
        });
        let resource_templates = each(&spec.resource_templates, "resource_templates", |template, at| {
            compiler.resource_template(template, at)
        });
        let prompts = each(&spec.prompts, "prompts", |prompt, at| compiler.prompt(prompt, at));
        let names = |names: Vec<&str>, list, key, compiler: &mut Compiler| {
            compiler.unique(&names, list, key);
        };
        let tool_names = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
        let fault = compiler.fault(spec.fault.as_deref(), "/mock_server");
        if spec.page_size == Some(0) {
            compiler.problem("/mock_server/page_size", "a page has at least one entry");
        }
        names(tool_names, "tools", "name", &mut compiler);
        let uris = spec.resources.iter().map(|one| one.uri.as_str()).collect();
        names(uris, "resources", "uri", &mut compiler);
        let prompt_names = spec.prompts.iter().map(|one| one.name.as_str()).collect();
        names(prompt_names, "prompts", "name", &mut compiler);
        if !compiler.problems.is_empty() {
            return Err(compiler.problems);
        }
        Ok(Self {
            name: spec.name.clone(),
            version: spec.version.clone().unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
            instructions: spec.instructions.clone(),
            tools: (!tools.is_empty()).then_some(tools),
            resources,
            resource_templates,
            prompts,
            fault: fault.unwrap_or_default(),
            page_size: spec.page_size.and_then(|size| usize::try_from(size).ok()),
            subscribe: spec.resources.iter().any(|resource| resource.subscribe),
        })
    }

    /// A server with these captured tools, each listed exactly as it is, well-formed or not. A tool answers with its name and
    /// arguments; those are checked if the captured schema can be used.
    #[must_use]
    pub fn from_captured(name: &str, tools: Vec<Value>) -> Self {
        let tools = tools.into_iter().map(|wire| {
            let name = wire.get("name").and_then(Value::as_str).map(str::to_owned);
            Tool {
                input_schema: wire.get("inputSchema").cloned(),
                cases: vec![echo(name.as_deref().unwrap_or_default())],
                ask: Vec::new(),
                fault: None,
                name,
                wire,
            }
        });
        Self {
            name: name.to_owned(),
            version: DEFAULT_VERSION.to_owned(),
            instructions: None,
            tools: Some(tools.collect()),
            resources: Vec::new(),
            resource_templates: Vec::new(),
            prompts: Vec::new(),
            fault: Fault::None,
            page_size: None,
            subscribe: false,
        }
    }

    /// The same server with this fault on every tool, whatever the manifest says.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        for tool in self.tools.iter_mut().flatten() {
            tool.fault = None;
        }
        self
    }
}

fn each<S, T>(specs: &[S], list: &str, mut compile: impl FnMut(&S, &str) -> T) -> Vec<T> {
    specs
        .iter()
        .enumerate()
        .map(|(index, spec)| compile(spec, &format!("/mock_server/{list}/{index}")))
        .collect()
}

/// The answer of a tool without one: its name and the arguments.
fn echo(name: &str) -> Case {
    let mut builder = Builder::default();
    builder.raw(br#""content":[{"type":"text","text":"#);
    let mut text = Vec::new();
    crate::jsonrpc::write_json(&mut text, &format!("{name} "));
    // Without the closing quote: the arguments come before it.
    text.pop();
    builder.raw(&text);
    builder.all_arguments_as_text();
    builder.raw(br#""}]"#);
    Case {
        when: None,
        responses: vec![Response {
            before: Vec::new(),
            answer: Answer::Result(builder.finish().0),
        }],
    }
}

#[derive(Default)]
struct Compiler {
    problems: Vec<Problem>,
}

impl Compiler {
    fn problem(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem {
            pointer: pointer.into(),
            message: message.into(),
        });
    }

    fn template_errors(&mut self, errors: Vec<TemplateError>) {
        for error in errors {
            self.problem(error.pointer, error.message);
        }
    }

    fn unique(&mut self, names: &[&str], list: &str, key: &str) {
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (index, name) in names.iter().enumerate() {
            if let Some(earlier) = first.get(name) {
                self.problem(
                    format!("/mock_server/{list}/{index}/{key}"),
                    format!("`{name}` is given twice: it is also the {key} of {list}[{earlier}]"),
                );
            } else {
                first.insert(name, index);
            }
        }
    }

    fn tool(&mut self, spec: &ToolSpec, at: &str) -> Tool {
        let input_schema = match &spec.input_schema {
            Some(schema) => Value::Object(schema.clone()),
            None => json!({"type": "object"}),
        };
        self.schema(&input_schema, &format!("{at}/input_schema"));
        let mut wire = Map::new();
        wire.insert("name".to_owned(), spec.name.clone().into());
        put(&mut wire, "title", spec.title.as_ref());
        put(&mut wire, "description", spec.description.as_ref());
        wire.insert("inputSchema".to_owned(), input_schema.clone());
        if let Some(schema) = &spec.output_schema {
            let schema = Value::Object(schema.clone());
            self.schema(&schema, &format!("{at}/output_schema"));
            wire.insert("outputSchema".to_owned(), schema);
        }
        put(&mut wire, "annotations", spec.annotations.as_ref());
        let cases = self.cases(spec, at);
        Tool {
            wire: wire.into(),
            name: Some(spec.name.clone()),
            input_schema: Some(input_schema),
            cases,
            ask: self.ask(&spec.ask, at),
            fault: self.fault(spec.fault.as_deref(), at),
        }
    }

    /// Answers under the same `when` belong together; those without one come last.
    fn cases(&mut self, spec: &ToolSpec, at: &str) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        let mut otherwise = Vec::new();
        for (index, response) in spec.responses.iter().enumerate() {
            let compiled = self.response(response, &format!("{at}/responses/{index}"));
            match &response.when {
                None => otherwise.push(compiled),
                Some(when) => match cases.iter_mut().find(|case| case.when.as_ref() == Some(when)) {
                    Some(case) => case.responses.push(compiled),
                    None => cases.push(Case {
                        when: Some(when.clone()),
                        responses: vec![compiled],
                    }),
                },
            }
        }
        if let Some(response) = &spec.response {
            let place = format!("{at}/response");
            if response.when.is_some() {
                self.problem(format!("{place}/when"), "`when` belongs into the list `responses`");
            }
            if !otherwise.is_empty() {
                self.problem(
                    &place,
                    "`responses` already says what to answer: give every entry there a `when`, or leave `response` out",
                );
            }
            otherwise.push(self.response(response, &place));
        }
        cases.push(if otherwise.is_empty() {
            echo(&spec.name)
        } else {
            Case {
                when: None,
                responses: otherwise,
            }
        });
        cases
    }

    fn ask(&mut self, rounds: &[BTreeMap<String, AskSpec>], at: &str) -> Vec<Vec<Ask>> {
        let mut compiled = Vec::new();
        for (index, round) in rounds.iter().enumerate() {
            let at = format!("{at}/ask/{index}");
            if round.is_empty() {
                self.problem(&at, "a round asks for something: give it a name and a request");
            }
            let asks = round.iter().map(|(key, ask)| {
                let mut builder = Builder::default();
                builder.raw(br#""method":"#);
                builder.plain(&ask.method.as_str().into());
                builder.raw(br#","params":"#);
                let params = Value::Object(ask.params.clone());
                builder.value(&params, Mode::Typed, &format!("{at}/{}/params", escape_token(key)));
                Ask {
                    key: key.clone(),
                    capability: ask.method.capability(),
                    members: self.finish(builder),
                }
            });
            let asks = asks.collect();
            compiled.push(asks);
        }
        compiled
    }

    fn fault(&mut self, text: Option<&str>, at: &str) -> Option<Fault> {
        let parsed = text?.parse();
        parsed
            .map_err(|error: String| self.problem(format!("{at}/fault"), error))
            .ok()
    }

    fn schema(&mut self, schema: &Value, at: &str) {
        if let Some((place, message)) = schema_problem(schema) {
            self.problem(format!("{at}{place}"), format!("not a valid JSON Schema: {message}"));
        }
    }

    fn response(&mut self, spec: &ResponseSpec, at: &str) -> Response {
        let before = spec.before.iter().enumerate();
        let before = before
            .filter_map(|(index, before)| self.before(before, &format!("{at}/before/{index}")))
            .collect();
        let answer = match &spec.rpc_error {
            Some(error) => {
                if spec.content.is_some() || spec.structured_content.is_some() || spec.is_error {
                    self.problem(at, "either an `rpc_error` or a result, not both");
                }
                let mut builder = Builder::default();
                let place = format!("{at}/rpc_error");
                builder.raw(br#"{"message":"#);
                let message = Value::String(error.message.clone());
                builder.value(&message, Mode::Text, &format!("{place}/message"));
                if let Some(data) = &error.data {
                    builder.raw(br#","data":"#);
                    builder.value(data, Mode::Typed, &format!("{place}/data"));
                }
                builder.raw(b"}");
                Answer::Error(error.code, self.finish(builder))
            }
            None => Answer::Result(self.result(spec, at)),
        };
        Response { before, answer }
    }

    fn before(&mut self, spec: &BeforeSpec, at: &str) -> Option<Before> {
        let stray = [
            (spec.progress.is_none() && spec.total.is_some(), "total", "progress"),
            (spec.progress.is_none() && spec.message.is_some(), "message", "progress"),
            (spec.log.is_none() && spec.level.is_some(), "level", "log"),
            (spec.log.is_none() && spec.logger.is_some(), "logger", "log"),
        ];
        for (_, key, owner) in stray.into_iter().filter(|(stray, ..)| *stray) {
            self.problem(format!("{at}/{key}"), format!("`{key}` needs `{owner}` beside it"));
        }
        let mut builder = Builder::default();
        match (&spec.progress, &spec.log, spec.wait_ms) {
            (None, None, Some(ms)) => Some(Before::Wait(ms)),
            (Some(progress), None, None) => {
                builder.raw(br#","progress":"#);
                builder.plain(&Value::Number(progress.clone()));
                if let Some(total) = &spec.total {
                    builder.raw(br#","total":"#);
                    builder.plain(&Value::Number(total.clone()));
                }
                if let Some(message) = &spec.message {
                    builder.raw(br#","message":"#);
                    builder.value(&message.clone().into(), Mode::Text, &format!("{at}/message"));
                }
                Some(Before::Progress(self.finish(builder)))
            }
            (None, Some(data), None) => {
                let level = spec.level.unwrap_or_default();
                builder.raw(br#""level":"#);
                builder.plain(&level.as_str().into());
                if let Some(logger) = &spec.logger {
                    builder.raw(br#","logger":"#);
                    builder.plain(&logger.clone().into());
                }
                builder.raw(br#","data":"#);
                builder.value(data, Mode::Typed, &format!("{at}/log"));
                Some(Before::Log(level, self.finish(builder)))
            }
            _ => {
                self.problem(at, "give it exactly one of `progress`, `log` and `wait_ms`");
                None
            }
        }
    }

    fn result(&mut self, spec: &ResponseSpec, at: &str) -> Template {
        let mut builder = Builder::default();
        builder.raw(br#""content":["#);
        match (&spec.content, &spec.structured_content) {
            (Some(blocks), _) => {
                for (index, block) in blocks.iter().enumerate() {
                    if index > 0 {
                        builder.raw(b",");
                    }
                    self.block(&mut builder, block, &format!("{at}/content/{index}"));
                }
            }
            (None, Some(structured)) => {
                // Errors in it are told once, below.
                if let Ok(structured) = Template::compile(structured) {
                    builder.raw(br#"{"type":"text","text":"#);
                    builder.quoted(structured);
                    builder.raw(b"}");
                }
            }
            (None, None) => self.problem(
                at,
                "an empty response: give it `content`, `structured_content` or `rpc_error`",
            ),
        }
        builder.raw(b"]");
        if let Some(structured) = &spec.structured_content {
            builder.raw(br#","structuredContent":"#);
            builder.value(structured, Mode::Typed, &format!("{at}/structured_content"));
        }
        if spec.is_error {
            builder.raw(br#","isError":true"#);
        }
        self.finish(builder)
    }

    fn finish(&mut self, builder: Builder) -> Template {
        let (template, errors) = builder.finish();
        self.template_errors(errors);
        template
    }

    fn block(&mut self, builder: &mut Builder, block: &BlockSpec, at: &str) {
        match &block.0 {
            Value::String(text) => {
                builder.raw(br#"{"type":"text","text":"#);
                builder.value(&Value::String(text.clone()), Mode::Text, at);
                builder.raw(b"}");
            }
            other => {
                for problem in block_problems(other) {
                    self.problem(at, problem);
                }
                builder.value(other, Mode::Block, at);
            }
        }
    }

    fn resource(&mut self, spec: &ResourceSpec, at: &str) -> Resource {
        let mut wire = Map::new();
        wire.insert("uri".to_owned(), spec.uri.clone().into());
        let name = spec.name.as_ref().unwrap_or(&spec.uri);
        wire.insert("name".to_owned(), name.clone().into());
        put(&mut wire, "title", spec.title.as_ref());
        put(&mut wire, "description", spec.description.as_ref());
        put(&mut wire, "mimeType", spec.mime_type.as_ref());
        let mut contents = Map::new();
        contents.insert("uri".to_owned(), spec.uri.clone().into());
        put(&mut contents, "mimeType", spec.mime_type.as_ref());
        put(&mut contents, "text", spec.text.as_ref());
        put(&mut contents, "blob", spec.blob.as_ref());
        match (&spec.text, &spec.blob) {
            (Some(_), None) => {}
            (None, Some(blob)) if is_base64(blob) => {}
            (None, Some(_)) => self.problem(format!("{at}/blob"), "not base64: for plain text use `text`"),
            (None, None) => self.problem(at, "a resource needs `text`, or `blob` in base64"),
            (Some(_), Some(_)) => {
                self.problem(format!("{at}/blob"), "a resource has either `text` or `blob`, not both")
            }
        }
        Resource {
            uri: spec.uri.clone(),
            wire: wire.into(),
            contents: contents.into(),
        }
    }

    fn resource_template(&mut self, spec: &ResourceTemplateSpec, at: &str) -> ResourceTemplate {
        let mut texts = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let mut rest = spec.uri_template.as_str();
        let place = format!("{at}/uri_template");
        while let Some((text, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                self.problem(&place, "a `{` is never closed");
                break;
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(plain) {
                self.problem(&place, "between `{` and `}` stands a name of letters, digits and `_`");
            }
            if !names.is_empty() && text.is_empty() {
                self.problem(&place, "two parts that vary need a text between them");
            }
            if names.iter().any(|other| other == name) {
                self.problem(&place, format!("`{{{name}}}` is there twice"));
            }
            texts.push(text.to_owned());
            names.push(name.to_owned());
            rest = after;
        }
        texts.push(rest.to_owned());
        if names.is_empty() {
            self.problem(&place, "nothing varies in it: declare it under `resources`");
        }
        for name in spec.complete.keys().filter(|name| !names.contains(name)) {
            self.problem(format!("{at}/complete"), format!("the pattern has no `{{{name}}}`"));
        }
        let mut wire = Map::new();
        wire.insert("uriTemplate".to_owned(), spec.uri_template.clone().into());
        let name = spec.name.as_ref().unwrap_or(&spec.uri_template);
        wire.insert("name".to_owned(), name.clone().into());
        put(&mut wire, "title", spec.title.as_ref());
        put(&mut wire, "description", spec.description.as_ref());
        put(&mut wire, "mimeType", spec.mime_type.as_ref());
        let mut builder = Builder::default();
        if let Some(kind) = &spec.mime_type {
            builder.raw(br#","mimeType":"#);
            builder.plain(&kind.clone().into());
        }
        match (&spec.text, &spec.blob) {
            (Some(text), None) => {
                builder.raw(br#","text":"#);
                builder.value(&text.clone().into(), Mode::Text, &format!("{at}/text"));
            }
            (None, Some(blob)) => {
                if !is_base64(blob) {
                    self.problem(format!("{at}/blob"), "not base64: for plain text use `text`");
                }
                builder.raw(br#","blob":"#);
                builder.plain(&blob.clone().into());
            }
            _ => self.problem(at, "a resource template needs either `text`, or `blob` in base64"),
        }
        ResourceTemplate {
            texts,
            names,
            pattern: spec.uri_template.clone(),
            wire: wire.into(),
            contents: self.finish(builder),
            complete: spec.complete.clone(),
        }
    }

    fn prompt(&mut self, spec: &PromptSpec, at: &str) -> Prompt {
        let mut wire = Map::new();
        wire.insert("name".to_owned(), spec.name.clone().into());
        put(&mut wire, "title", spec.title.as_ref());
        put(&mut wire, "description", spec.description.as_ref());
        let arguments = spec.arguments.iter().map(|argument| {
            let mut entry = Map::new();
            entry.insert("name".to_owned(), argument.name.clone().into());
            put(&mut entry, "description", argument.description.as_ref());
            entry.insert("required".to_owned(), argument.required.into());
            Value::Object(entry)
        });
        wire.insert("arguments".to_owned(), arguments.collect());

        let mut builder = Builder::default();
        if let Some(description) = &spec.description {
            builder.raw(br#""description":"#);
            builder.plain(&description.clone().into());
            builder.raw(b",");
        }
        builder.raw(br#""messages":["#);
        for (index, message) in spec.messages.iter().enumerate() {
            builder.raw(if index == 0 { b"{\"role\":\"" } else { b",{\"role\":\"" });
            builder.raw(message.role.as_str().as_bytes());
            builder.raw(br#"","content":"#);
            self.block(
                &mut builder,
                &message.content,
                &format!("{at}/messages/{index}/content"),
            );
            builder.raw(b"}");
        }
        builder.raw(b"]");
        Prompt {
            name: spec.name.clone(),
            wire: wire.into(),
            required: spec
                .arguments
                .iter()
                .filter(|argument| argument.required)
                .map(|argument| argument.name.clone())
                .collect(),
            complete: spec
                .arguments
                .iter()
                .filter_map(|argument| Some((argument.name.clone(), argument.complete.clone()?)))
                .collect(),
            ask: self.ask(&spec.ask, at),
            response: self.finish(builder),
        }
    }
}

fn put<T: Clone + Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.clone().into());
    }
}
