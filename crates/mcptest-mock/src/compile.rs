//! Checks a written manifest and prepares its answers.

mod compiled;
mod database;
mod prompts;
mod resources;
mod tools;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mcptest_attack::Attack;
use serde_json::{Map, Value};

use self::database::Tables;
pub use compiled::Manifest;
pub(crate) use compiled::{
    Answer, Ask, Before, Case, CompiledTool, Prompt, Resource, ResourceTemplate, Response,
};

use crate::content::block_problems;
use crate::fault::{FaultError, MockFault};
use crate::manifest::{AskSpec, BlockSpec, ChangedList, ServerSpec};
use crate::template::{Builder, Mode, Template, TemplateError, escape_token};
use crate::validate::schema_problem;

/// The default version of a server.
const DEFAULT_VERSION: &str = "0.0.0";

/// An error in a manifest that has the right shape.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ManifestProblem {
    /// The position, as a JSON pointer into the file.
    pub pointer: String,
    /// The error and a remedy.
    pub message: String,
}

impl Manifest {
    /// Checks a manifest and prepares its answers.
    ///
    /// # Errors
    /// All problems: invalid schemas, duplicate names, invalid templates, content that MCP does not
    /// allow.
    pub fn from_spec(spec: &ServerSpec) -> Result<Self, Vec<ManifestProblem>> {
        let mut compiler = Compiler {
            hidden: hidden_entries(spec),
            updatable: spec.resources.iter().map(|one| one.uri.clone()).collect(),
            ..Compiler::default()
        };
        let database = compiler.database(spec.database.as_ref());
        let tools: Vec<_> = each(&spec.tools, "tools", |tool, at| compiler.tool(tool, at));
        let resources = each(&spec.resources, "resources", |resource, at| {
            compiler.resource(resource, at)
        });
        let resource_templates = each(
            &spec.resource_templates,
            "resource_templates",
            |template, at| compiler.resource_template(template, at),
        );
        let prompts = each(&spec.prompts, "prompts", |prompt, at| {
            compiler.prompt(prompt, at)
        });
        let names = |names: Vec<&str>, list, key, compiler: &mut Compiler| {
            compiler.unique(&names, list, key);
        };
        let tool_names = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
        let fault = compiler.fault(spec.fault.as_deref(), "/mock_server");
        if spec.page_size == Some(0) {
            compiler.problem(
                "/mock_server/page_size",
                "a page must have at least one entry",
            );
        }
        names(tool_names, "tools", "name", &mut compiler);
        let attacks = compiler.attacks(spec);
        let uris = spec.resources.iter().map(|one| one.uri.as_str()).collect();
        names(uris, "resources", "uri", &mut compiler);
        let prompt_names = spec.prompts.iter().map(|one| one.name.as_str()).collect();
        names(prompt_names, "prompts", "name", &mut compiler);
        if !compiler.problems.is_empty() {
            return Err(compiler.problems);
        }
        Ok(Self {
            name: spec.name.clone(),
            version: spec
                .version
                .clone()
                .unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
            instructions: spec.instructions.clone(),
            tools: (!tools.is_empty()).then_some(tools),
            resources,
            resource_templates,
            prompts,
            fault: fault.unwrap_or_default(),
            page_size: spec.page_size.and_then(|size| usize::try_from(size).ok()),
            attacks,
            database,
        })
    }

    /// A server with captured tools, each listed exactly as captured, valid or not. A tool answers
    /// with its name and arguments, which are checked if the captured schema is usable.
    #[must_use]
    pub fn from_captured(name: &str, tools: Vec<Value>) -> Self {
        let tools = tools.into_iter().map(|wire| {
            let name = wire.get("name").and_then(Value::as_str).map(str::to_owned);
            CompiledTool {
                input_schema: wire.get("inputSchema").cloned(),
                cases: vec![tools::echo(name.as_deref().unwrap_or_default())],
                sql: None,
                ask: Vec::new(),
                task: None,
                hidden: false,
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
            fault: MockFault::None,
            page_size: None,
            attacks: Vec::new(),
            database: None,
        }
    }

    /// The name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The attacks that the manifest declares.
    #[must_use]
    pub fn attacks(&self) -> &[Attack] {
        &self.attacks
    }

    /// Sets the fault of every tool, overriding the manifest.
    #[must_use]
    pub fn with_fault(mut self, fault: MockFault) -> Self {
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

#[derive(Default)]
struct Compiler {
    problems: Vec<ManifestProblem>,
    /// The database of the manifest, for checking statements.
    tables: Tables,
    /// The entries that can be revealed, with their lists.
    hidden: BTreeMap<String, ChangedList>,
    /// The resources that can be updated.
    updatable: BTreeSet<String>,
}

/// The entries that are not listed at first, with their lists.
fn hidden_entries(spec: &ServerSpec) -> BTreeMap<String, ChangedList> {
    let tools = spec.tools.iter().filter(|one| one.hidden);
    let tools = tools.map(|one| (one.name.clone(), ChangedList::Tools));
    let resources = spec.resources.iter().filter(|one| one.hidden);
    let resources = resources.map(|one| (one.uri.clone(), ChangedList::Resources));
    let prompts = spec.prompts.iter().filter(|one| one.hidden);
    let prompts = prompts.map(|one| (one.name.clone(), ChangedList::Prompts));
    prompts.chain(resources).chain(tools).collect()
}

impl Compiler {
    fn problem(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.problems.push(ManifestProblem {
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
                    format!("`{name}` is used twice: it is also the {key} of {list}[{earlier}]"),
                );
            } else {
                first.insert(name, index);
            }
        }
    }

    fn ask(&mut self, rounds: &[BTreeMap<String, AskSpec>], at: &str) -> Vec<Vec<Ask>> {
        let mut compiled = Vec::new();
        for (index, round) in rounds.iter().enumerate() {
            let at = format!("{at}/ask/{index}");
            if round.is_empty() {
                self.problem(
                    &at,
                    "a round needs at least one request: give it a name and a request",
                );
            }
            let asks = round.iter().map(|(key, ask)| {
                let mut builder = Builder::default();
                builder.raw(br#""method":"#);
                builder.plain(&ask.method.as_str().into());
                builder.raw(br#","params":"#);
                let params = Value::Object(ask.params.clone());
                builder.value(
                    &params,
                    Mode::Typed,
                    &format!("{at}/{}/params", escape_token(key)),
                );
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

    fn attacks(&mut self, spec: &ServerSpec) -> Vec<Attack> {
        let names: Vec<&str> = spec.attacks.iter().map(|one| one.name.as_str()).collect();
        self.unique(&names, "attacks", "name");
        let mut compiled = Vec::new();
        for (index, written) in spec.attacks.iter().enumerate() {
            match written.compile() {
                Ok(attack) => compiled.push(attack),
                Err(found) => {
                    for one in found {
                        let at = format!("/mock_server/attacks/{index}{}", one.pointer);
                        let help = one
                            .help
                            .map_or_else(String::new, |help| format!("; {help}"));
                        self.problem(at, format!("{}{help}", one.message));
                    }
                }
            }
        }
        compiled
    }

    fn fault(&mut self, text: Option<&str>, at: &str) -> Option<MockFault> {
        let parsed = text?.parse();
        parsed
            .map_err(|error: FaultError| self.problem(format!("{at}/fault"), error.to_string()))
            .ok()
    }

    fn schema(&mut self, schema: &Value, at: &str) {
        if let Some((pointer, message)) = schema_problem(schema) {
            self.problem(
                format!("{at}{pointer}"),
                format!("not a valid JSON Schema: {message}"),
            );
        }
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
}

fn insert_some<T: Clone + Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.clone().into());
    }
}
