//! From what is written to what is served: checks a manifest and prepares its answers.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::content::{block_problems, is_base64};
use crate::manifest::{BlockSpec, PromptSpec, ResourceSpec, ResponseSpec, ServerSpec, ToolSpec};
use crate::template::{Builder, Mode, Template, TemplateError};
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
    pub(crate) prompts: Vec<Prompt>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// The entry of `tools/list`.
    pub(crate) wire: Value,
    /// Nothing for a captured tool without a usable name: it is listed but cannot be called.
    pub(crate) name: Option<String>,
    pub(crate) input_schema: Option<Value>,
    /// The members of the result.
    pub(crate) response: Template,
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
        let prompts = each(&spec.prompts, "prompts", |prompt, at| compiler.prompt(prompt, at));
        let names = |names: Vec<&str>, list, key, compiler: &mut Compiler| {
            compiler.unique(&names, list, key);
        };
        let tool_names = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
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
            prompts,
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
                response: echo(name.as_deref().unwrap_or_default()),
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
            prompts: Vec::new(),
        }
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
fn echo(name: &str) -> Template {
    let mut builder = Builder::default();
    builder.raw(br#""content":[{"type":"text","text":"#);
    let mut text = Vec::new();
    crate::jsonrpc::write_json(&mut text, &format!("{name} "));
    // Without the closing quote: the arguments come before it.
    text.pop();
    builder.raw(&text);
    builder.all_arguments_as_text();
    builder.raw(br#""}]"#);
    builder.finish().0
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
        let response = match &spec.response {
            Some(response) => self.response(response, &format!("{at}/response")),
            None => echo(&spec.name),
        };
        Tool {
            wire: wire.into(),
            name: Some(spec.name.clone()),
            input_schema: Some(input_schema),
            response,
        }
    }

    fn schema(&mut self, schema: &Value, at: &str) {
        if let Some((place, message)) = schema_problem(schema) {
            self.problem(format!("{at}{place}"), format!("not a valid JSON Schema: {message}"));
        }
    }

    fn response(&mut self, spec: &ResponseSpec, at: &str) -> Template {
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
            (None, None) => self.problem(at, "an empty response: give it `content` or `structured_content`"),
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
            response: self.finish(builder),
        }
    }
}

fn put<T: Clone + Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.clone().into());
    }
}
