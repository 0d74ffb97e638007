//! The names of called tools: as recorded, and with the server split off.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Catalog, TraceView};
use crate::catalog::Tool;
use crate::tool_id::{KnownServers, MCP_PREFIX};

/// The name of a called tool as recorded. Usually a string; anything else is a malformed call and
/// stays visible as such.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolName<'a> {
    /// A string.
    Text(Cow<'a, str>),
    /// Anything else; `null` where no name is recorded.
    Malformed(Box<Value>),
}

impl ToolName<'_> {
    /// The name; empty for a malformed one.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(name) => name,
            Self::Malformed(_) => "",
        }
    }

    /// The name as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(name) => name.as_ref().into(),
            Self::Malformed(value) => value.as_ref().clone(),
        }
    }

    /// Detaches the name from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> ToolName<'static> {
        match self {
            Self::Text(name) => ToolName::Text(Cow::Owned(name.into_owned())),
            Self::Malformed(value) => ToolName::Malformed(value),
        }
    }
}

impl Default for ToolName<'_> {
    fn default() -> Self {
        Self::Malformed(Box::default())
    }
}

impl From<&str> for ToolName<'_> {
    fn from(name: &str) -> Self {
        Self::Text(Cow::Owned(name.to_owned()))
    }
}

impl From<String> for ToolName<'_> {
    fn from(name: String) -> Self {
        Self::Text(Cow::Owned(name))
    }
}

impl From<Value> for ToolName<'_> {
    fn from(name: Value) -> Self {
        match name {
            Value::String(name) => Self::Text(Cow::Owned(name)),
            other => Self::Malformed(Box::new(other)),
        }
    }
}

impl Serialize for ToolName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(name) => serializer.serialize_str(name),
            Self::Malformed(value) => value.serialize(serializer),
        }
    }
}

impl<'a> TraceView<'a> {
    /// Splits wire names (`server__tool`, `mcp__server__tool`) of calls whose server is not
    /// recorded, where it is one of the known servers. The catalog is read only if a name needs it.
    pub fn split_wire_names(&mut self, servers: &KnownServers) {
        let catalog = self.catalog.as_ref();
        let tools = || catalog.map_or(&[][..], Catalog::tools);
        let mut from_catalog: Option<KnownServers> = None;
        for call in &mut self.tool_calls {
            let ToolName::Text(name) = &call.raw_name else {
                continue;
            };
            // Names are short: this is faster than a search that prepares itself.
            if !name.as_bytes().windows(2).any(|pair| pair == b"__") {
                continue;
            }
            let split = match call.server.as_deref() {
                // Some writers record the server and keep the prefix too.
                Some(server) => after_prefix(name, server)
                    .or_else(|| after_prefix(name.strip_prefix(MCP_PREFIX)?, server))
                    .filter(|_| !is_listed(tools(), server, name))
                    .map(|tool| (server.len(), tool.len())),
                None => servers
                    .split_wire_name(name)
                    .or_else(|| {
                        let from_catalog = from_catalog.get_or_insert_with(|| {
                            tools().iter().filter_map(Tool::server).collect()
                        });
                        from_catalog.split_wire_name(name)
                    })
                    .map(|(server, tool)| (server.len(), tool.len())),
            };
            if let Some((server, tool)) = split {
                // The name ends with the server, two underscores and the tool.
                let start = name.len() - tool;
                let tool = ToolName::Text(slice(name, start..name.len()));
                let server = slice(name, start - 2 - server..start - 2);
                call.server = Some(server);
                call.raw_name = tool;
            }
        }
    }
}

/// The rest of a wire name after the server and the two underscores, if it is not empty.
fn after_prefix<'n>(name: &'n str, server: &str) -> Option<&'n str> {
    let rest = name.strip_prefix(server)?.strip_prefix("__")?;
    (!rest.is_empty()).then_some(rest)
}

fn is_listed(tools: &[Tool], server: &str, name: &str) -> bool {
    tools
        .iter()
        .any(|tool| tool.server() == Some(server) && tool.name() == name)
}

/// A part of a string that borrows what the string borrows.
fn slice<'a>(text: &Cow<'a, str>, part: std::ops::Range<usize>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[part]),
        Cow::Owned(text) => Cow::Owned(text[part].to_owned()),
    }
}
