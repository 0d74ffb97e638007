//! Direct tests: one request to one server, without a model.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcptest_json::text::one_line;
use mcptest_trace::expect::Expectation;
use mcptest_trace::snapshot::Snapshot;
use mcptest_trace::target::Target;
use mcptest_yaml::{Diagnostic, Severity, Source, Span, suggest};

pub use mcptest_trace::server_messages::ROOTS as MESSAGE_ROOTS;

use crate::client::ClientScript;
pub use crate::direct_file::CancelOnFile as CancelOn;
use crate::file::IsolationFile as Isolation;
use crate::template::Args;
use crate::uri_template::UriTemplate;

/// A direct test.
#[derive(Debug)]
#[non_exhaustive]
pub struct DirectTest {
    /// The name.
    pub name: String,
    /// Its line in the suite file; `None` if it is in a file that the suite imports.
    pub line: Option<u32>,
    /// The server.
    pub server: String,
    /// The request.
    pub request: DirectRequest,
    /// Assertions over the answer, and over what the server sent by itself.
    pub expect: Vec<Expectation>,
    /// The maximum duration of the request.
    pub max_duration: Option<Duration>,
    /// The maximum number of tokens of the result.
    pub max_response_tokens: Option<u64>,
    /// The stored result that it is compared with.
    pub snapshot: Option<StoredSnapshot>,
    /// Calls before the test.
    pub setup: Vec<FixtureCall>,
    /// Calls that cause a change, between subscribing and the request.
    pub trigger: Vec<FixtureCall>,
    /// Calls after the test.
    pub teardown: Vec<FixtureCall>,
    /// Values of the result to save, by name.
    pub save: Vec<(String, Target)>,
    /// The client's side, if the test is asked something or listens.
    pub client: Option<Arc<ClientScript>>,
    /// The time for messages that the server sends by itself.
    pub wait: Duration,
    /// The moment at which the call is cancelled.
    pub cancel: Option<CancelMoment>,
    /// The timeout for the request, if the test has its own.
    pub timeout: Option<Duration>,
    /// The sharing of the process, if the test sets it.
    pub isolation: Option<Isolation>,
    /// True if no other test may use its servers meanwhile.
    pub serial: bool,
    /// Tags.
    pub tags: Vec<String>,
    /// The name of a tool, resource or prompt in the request, with its place.
    pub named: Option<NamedPart>,
}

/// A name in a request, with its place in the suite.
#[derive(Debug, Clone)]
pub struct NamedPart {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Span,
}

/// The resources, templates and prompts that a server is known to have.
#[derive(Debug, Clone, Default)]
pub struct KnownEntries {
    /// The URIs of resources.
    pub resources: Vec<String>,
    /// The URI templates.
    pub templates: Vec<String>,
    /// The names of prompts.
    pub prompts: Vec<String>,
}

impl DirectTest {
    /// The servers that it uses, each once.
    #[must_use]
    pub fn servers(&self) -> BTreeSet<&str> {
        self.called_servers().collect()
    }

    /// The server of each of its calls.
    pub fn called_servers(&self) -> impl Iterator<Item = &str> {
        let fixtures = self.setup.iter().chain(&self.trigger).chain(&self.teardown);
        fixtures
            .map(|call| call.server.as_str())
            .chain([self.server.as_str()])
    }

    /// Returns true if an assertion is over messages that the server sends by itself.
    #[must_use]
    pub fn awaits_messages(&self) -> bool {
        let is_late = |root: &str| MESSAGE_ROOTS.contains(&root);
        self.expect.iter().any(|one| is_late(one.target.root()))
    }

    /// The warning about a resource or prompt that its server does not have. A test that expects an
    /// error may name one on purpose.
    #[must_use]
    pub fn unknown_name(&self, known: &KnownEntries) -> Option<Diagnostic> {
        let expects_error = |one: &Expectation| one.target.root() == "error" && !one.default;
        if self.expect.iter().any(expects_error) {
            return None;
        }
        let of_template = |uri: &str| {
            let fixed = known.templates.iter().map(|one| one.split('{').next());
            fixed.flatten().any(|fixed| uri.starts_with(fixed))
        };
        let (what, name, list) = match &self.request {
            DirectRequest::Read { uri, .. } => {
                let uri = uri.written().get("uri")?.as_str()?;
                // A value that is not known yet.
                if uri.contains("${") || of_template(uri) {
                    return None;
                }
                ("resource", uri, &known.resources)
            }
            DirectRequest::Expand { template, .. } => {
                ("resource template", template.as_str(), &known.templates)
            }
            DirectRequest::Prompt { prompt, .. } => ("prompt", prompt.as_str(), &known.prompts),
            DirectRequest::Complete { of, .. } => match of {
                Completed::Prompt(name) => ("prompt", name.as_str(), &known.prompts),
                Completed::Template(template) => {
                    ("resource template", template.as_str(), &known.templates)
                }
            },
            DirectRequest::Tool { .. } | DirectRequest::List(_) => return None,
        };
        if list.iter().any(|one| one == name) {
            return None;
        }
        let named = self.named.as_ref()?;
        let message = format!(
            "server `{}` has no {what} `{}`",
            self.server,
            one_line(name)
        );
        let warning = Diagnostic::new(Severity::Warning, message).at(&named.source, named.span);
        Some(match suggest(name, list.iter().map(String::as_str)) {
            Some(near) => warning.label(format!("did you mean `{}`?", one_line(near))),
            None if list.is_empty() => warning.help("it has none"),
            None => warning.help(format!("it has {}", one_line(&list.join(", ")))),
        })
    }

    /// Returns true if an assertion has a target with this root.
    #[must_use]
    pub fn expects(&self, root: &str) -> bool {
        self.expect.iter().any(|one| one.target.root() == root)
    }
}

/// A request of a direct test.
#[derive(Debug)]
pub enum DirectRequest {
    /// Calls a tool.
    Tool {
        /// The tool.
        tool: String,
        /// The arguments.
        args: Args,
        /// The settings of a task, if it is called as one.
        task: Option<TaskSettings>,
    },
    /// Reads a resource.
    Read {
        /// The URI, under the key `uri`.
        uri: Args,
        /// True if the client subscribes to it first.
        subscribe: bool,
    },
    /// Reads a resource by a template.
    Expand {
        /// The template.
        template: UriTemplate,
        /// The values of its variables.
        args: Args,
        /// True if the client subscribes to it first.
        subscribe: bool,
    },
    /// Gets a prompt.
    Prompt {
        /// The prompt.
        prompt: String,
        /// The arguments.
        args: Args,
    },
    /// Completes an argument.
    Complete {
        /// The prompt or the template.
        of: Completed,
        /// The name of the argument.
        argument: String,
        /// The text so far, under the name of the argument.
        typed: Args,
        /// The other arguments.
        args: Args,
    },
    /// Lists.
    List(ListKind),
}

/// The thing whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completed {
    /// A prompt.
    Prompt(String),
    /// A resource template.
    Template(String),
}

/// The kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
}

impl ListKind {
    /// The method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The key of the items in the result.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The list that is reported as changed: templates belong to the resources.
    #[must_use]
    pub const fn changed(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// The section of the suite that a direct test is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// `tools:`.
    Tools,
    /// `resources:`.
    Resources,
    /// `prompts:`.
    Prompts,
}

impl DirectRequest {
    /// The section that it belongs to.
    #[must_use]
    pub const fn section(&self) -> Section {
        match self {
            Self::Tool { .. } | Self::List(ListKind::Tools) => Section::Tools,
            Self::Read { .. }
            | Self::Expand { .. }
            | Self::List(ListKind::Resources | ListKind::Templates)
            | Self::Complete {
                of: Completed::Template(_),
                ..
            } => Section::Resources,
            Self::Prompt { .. }
            | Self::List(ListKind::Prompts)
            | Self::Complete {
                of: Completed::Prompt(_),
                ..
            } => Section::Prompts,
        }
    }

    /// True if the client subscribes to a resource.
    #[must_use]
    pub const fn subscribes(&self) -> bool {
        matches!(
            self,
            Self::Read {
                subscribe: true,
                ..
            } | Self::Expand {
                subscribe: true,
                ..
            }
        )
    }
}

/// The settings of a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskSettings {
    /// The time that the server is asked to keep it.
    pub ttl: Option<Duration>,
}

/// The moment at which a call is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelMoment {
    /// This time after it was sent.
    After(Duration),
    /// When the server first sends something by itself.
    On(CancelOn),
}

/// A snapshot and its file.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredSnapshot {
    /// The parts of the result that are stored.
    pub snapshot: Snapshot,
    /// The file.
    pub file: PathBuf,
}

/// A call that prepares a test or cleans up after it.
#[derive(Debug)]
#[non_exhaustive]
pub struct FixtureCall {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Args,
    /// Values of the result to save, by name.
    pub save: Vec<(String, Target)>,
    /// The timeout for the call, if it has its own.
    pub timeout: Option<Duration>,
}
