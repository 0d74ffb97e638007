//! Reading the entry of a server.

use mcptest_yaml::{Diagnostic, Document, Entry, Node, NodeValue};

use crate::configured_server::{ConfiguredServer, ServerTarget};
use crate::template::{References, Template};

/// The keys of an address, in the order in which they are tried.
const URL_KEYS: [&str; 2] = ["url", "serverUrl"];

/// Reads the entry of a server. Problems are added to the list.
pub(crate) fn read_entry(
    document: &Document,
    references: References,
    entry: &Entry,
    read: ReadEntry,
    problems: &mut Vec<Diagnostic>,
) -> Option<ConfiguredServer> {
    let mut reader = EntryReader {
        document,
        references,
        entry,
        problems,
        unsupported: None,
    };
    reader.server(read)
}

/// Reads the parts of an entry that a format defines.
pub(crate) type ReadEntry = fn(&mut EntryReader<'_>) -> Option<ServerTarget>;

/// An error about a value of another type.
pub(crate) fn expected(document: &Document, node: &Node, what: &str) -> Diagnostic {
    let message = format!("expected {what}, found {}", node.kind());
    document.error(node.span, message)
}

/// The entry as most clients write it.
pub(crate) fn common(entry: &mut EntryReader<'_>) -> Option<ServerTarget> {
    entry.common()
}

/// The entry of one server, with a place for problems.
pub(crate) struct EntryReader<'a> {
    document: &'a Document,
    references: References,
    entry: &'a Entry,
    problems: &'a mut Vec<Diagnostic>,
    /// The first reference that only the client can resolve.
    unsupported: Option<String>,
}

impl EntryReader<'_> {
    fn server(&mut self, read: ReadEntry) -> Option<ConfiguredServer> {
        if !matches!(self.entry.value.value, NodeValue::Mapping(_)) {
            let what = "a mapping with `command` or `url`";
            let problem = expected(self.document, &self.entry.value, what);
            self.problems.push(problem);
            return None;
        }
        let target = read(self)?;
        let target = match self.unsupported.take() {
            Some(reason) => ServerTarget::Unsupported { reason },
            None => target,
        };
        let flag = |key: &str, value: bool| {
            let found = self.entry.value.entry(key);
            found.is_some_and(|entry| entry.value.value == NodeValue::Bool(value))
        };
        Some(ConfiguredServer {
            name: self.entry.key.to_string(),
            target,
            disabled: flag("disabled", true) || flag("enabled", false),
        })
    }

    fn common(&mut self) -> Option<ServerTarget> {
        let kind = self.string("type").or_else(|| self.string("transport"));
        if let Some(kind @ ("ws" | "websocket")) = kind.as_deref() {
            return Some(Self::unsupported_transport(kind));
        }
        if self.has("command") {
            return self.command();
        }
        if let Some(key) = URL_KEYS.into_iter().find(|key| self.has(key)) {
            return self.http(key, "headers");
        }
        let message = format!("server `{}` has no `command` and no `url`", self.entry.key);
        let problem = self.document.error(self.entry.key_span, message);
        self.problems.push(problem);
        None
    }

    fn unsupported_transport(kind: &str) -> ServerTarget {
        ServerTarget::Unsupported {
            reason: format!(
                "it uses the transport `{kind}`, which mcptest does not speak (HTTP and \
                 stdio are supported)"
            ),
        }
    }

    fn command(&mut self) -> Option<ServerTarget> {
        let program = self.template("command");
        let args = self.templates("args");
        let env = self.template_pairs("env");
        let env_file = self.optional_template("envFile");
        let cwd = self.optional_template("cwd");
        let program = program?;
        if program
            .as_literal()
            .is_some_and(|text| text.trim().is_empty())
        {
            let at = self.node("command").map(|node| node.span)?;
            let problem = self.document.error(at, "the command is empty");
            self.problems.push(problem);
            return None;
        }
        Some(ServerTarget::Command {
            argv: std::iter::once(program).chain(args).collect(),
            env,
            env_file,
            cwd,
        })
    }

    /// A server with the address under `key`.
    pub(crate) fn http(&mut self, key: &str, headers: &str) -> Option<ServerTarget> {
        let url = self.template(key)?;
        let is_address = |text: &str| {
            let rest = text
                .strip_prefix("http://")
                .or_else(|| text.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        };
        if url.as_literal().is_some_and(|text| !is_address(&text)) {
            let at = self.node(key).map(|node| node.span)?;
            let message = "a URL must start with http:// or https:// and have a host";
            let problem = self.document.error(at, message);
            self.problems.push(problem);
            return None;
        }
        Some(ServerTarget::Http {
            url,
            headers: self.template_pairs(headers),
        })
    }

    /// Returns true if the entry has a key that is not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.node(key)
            .is_some_and(|node| node.value != NodeValue::Null)
    }

    fn node(&self, key: &str) -> Option<&Node> {
        self.entry.value.entry(key).map(|entry| &entry.value)
    }

    /// The string under a key; `None` if it is absent or something else.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        match &self.node(key)?.value {
            NodeValue::String(text) => Some(text.to_string()),
            _ => None,
        }
    }

    /// The strings of a list.
    pub(crate) fn strings(&mut self, key: &str) -> Vec<String> {
        let all = self.templates_as(key, References::None);
        all.iter().filter_map(Template::as_literal).collect()
    }

    /// The strings of a mapping, by key.
    pub(crate) fn pairs(&mut self, key: &str) -> Vec<(String, String)> {
        let all = self.template_pairs(key).into_iter();
        all.filter_map(|(key, value)| Some((key, value.as_literal()?)))
            .collect()
    }

    fn optional_template(&mut self, key: &str) -> Option<Template> {
        self.has(key).then(|| self.template(key)).flatten()
    }

    fn template(&mut self, key: &str) -> Option<Template> {
        let node = self.node(key)?.clone();
        self.parse(&node, self.references)
    }

    fn templates(&mut self, key: &str) -> Vec<Template> {
        self.templates_as(key, self.references)
    }

    fn templates_as(&mut self, key: &str, references: References) -> Vec<Template> {
        let Some(node) = self.node(key).cloned() else {
            return Vec::new();
        };
        match &node.value {
            NodeValue::Null => Vec::new(),
            NodeValue::Sequence(items) => items
                .iter()
                .filter_map(|item| self.parse(item, references))
                .collect(),
            _ => {
                let problem = expected(self.document, &node, "a list of strings");
                self.problems.push(problem);
                Vec::new()
            }
        }
    }

    fn template_pairs(&mut self, key: &str) -> Vec<(String, Template)> {
        let Some(node) = self.node(key).cloned() else {
            return Vec::new();
        };
        match &node.value {
            NodeValue::Null => Vec::new(),
            NodeValue::Mapping(entries) => entries
                .iter()
                .filter_map(|entry| {
                    let value = self.parse(&entry.value, self.references)?;
                    Some((entry.key.to_string(), value))
                })
                .collect(),
            _ => {
                let problem = expected(self.document, &node, "a mapping of strings");
                self.problems.push(problem);
                Vec::new()
            }
        }
    }

    /// Numbers and booleans are strings, as clients pass them on.
    fn parse(&mut self, node: &Node, references: References) -> Option<Template> {
        let text = match &node.value {
            NodeValue::String(text) => text.to_string(),
            NodeValue::Number(number) => number.to_string(),
            NodeValue::Bool(flag) => flag.to_string(),
            NodeValue::Null | NodeValue::Sequence(_) | NodeValue::Mapping(_) => {
                let problem = expected(self.document, node, "a string");
                self.problems.push(problem);
                return None;
            }
        };
        match Template::parse(&text, references) {
            Ok(template) => Some(template),
            Err(reason) => {
                self.unsupported.get_or_insert(reason);
                Some(Template::literal(text))
            }
        }
    }
}
