//! The tools that a model is offered, and what it may call them.

use mcptest_core::catalog::Tool;

/// A tool with the name by which the model knows it.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The bare name with one server, `server__tool` with several.
    pub wire_name: String,
    /// The server.
    pub server: String,
    /// The tool as listed.
    pub tool: Tool,
}

/// All offered tools.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    servers: Vec<String>,
    tools: Vec<OfferedTool>,
}

impl Offer {
    /// Builds the offer from each server's list, in the order of the servers.
    #[must_use]
    pub fn new(listed: Vec<(String, Vec<Tool>)>) -> Self {
        let several = listed.len() > 1;
        let servers = listed.iter().map(|(server, _)| server.clone()).collect();
        let tools = listed
            .into_iter()
            .flat_map(|(server, tools)| tools.into_iter().map(move |tool| (server.clone(), tool)))
            .map(|(server, tool)| OfferedTool {
                wire_name: if several {
                    format!("{server}__{}", tool.name())
                } else {
                    tool.name().to_owned()
                },
                server,
                tool,
            })
            .collect();
        Self { servers, tools }
    }

    /// The tools, in order.
    #[must_use]
    pub fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    /// The tool of this wire name.
    #[must_use]
    pub fn find(&self, wire_name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.wire_name == wire_name)
    }

    /// The tool that a suite author means: a wire name, `server.tool`, or a bare name.
    #[must_use]
    pub fn resolve(&self, written: &str) -> Option<&OfferedTool> {
        let full_id = |tool: &&OfferedTool| {
            written
                .strip_prefix(tool.server.as_str())
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|rest| rest == tool.tool.name())
        };
        self.find(written)
            .or_else(|| self.tools.iter().find(full_id))
            .or_else(|| self.tools.iter().find(|tool| tool.tool.name() == written))
    }

    /// How a call by this wire name is recorded when no such tool is offered: with the server, if the name tells it.
    #[must_use]
    pub fn split_unknown<'a>(&'a self, wire_name: &'a str) -> (Option<&'a str>, &'a str) {
        if let [only] = self.servers.as_slice() {
            return (Some(only), wire_name);
        }
        for server in &self.servers {
            let rest = wire_name
                .strip_prefix(server.as_str())
                .and_then(|rest| rest.strip_prefix("__"));
            if let Some(tool) = rest.filter(|tool| !tool.is_empty()) {
                return (Some(server), tool);
            }
        }
        (None, wire_name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offer(servers: &[(&str, &[&str])]) -> Offer {
        Offer::new(
            servers
                .iter()
                .map(|(server, tools)| {
                    let tools = tools
                        .iter()
                        .filter_map(|name| Tool::from_listing(Some(server), &json!({"name": name})));
                    ((*server).to_owned(), tools.collect())
                })
                .collect(),
        )
    }

    #[test]
    fn names_are_bare_with_one_server_and_prefixed_with_several() {
        assert_eq!(offer(&[("a", &["x"])]).tools()[0].wire_name, "x");
        let two = offer(&[("a", &["x"]), ("b", &["x"])]);
        let names: Vec<_> = two.tools().iter().map(|tool| tool.wire_name.as_str()).collect();
        assert_eq!(names, ["a__x", "b__x"]);
        assert_eq!(two.resolve("b.x").unwrap().server, "b");
        assert_eq!(two.resolve("x").unwrap().server, "a");
        assert!(two.resolve("c.x").is_none());
        assert_eq!(two.split_unknown("b__nope"), (Some("b"), "nope"));
        assert_eq!(two.split_unknown("nope"), (None, "nope"));
        assert_eq!(offer(&[("a", &["x"])]).split_unknown("nope"), (Some("a"), "nope"));
    }
}
