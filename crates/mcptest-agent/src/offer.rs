//! The tools that a model is offered, and the names by which it calls them.

use mcptest_trace::catalog::Tool;

/// A tool with the name that the model sees.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The bare name with one server, `server__tool` with several.
    pub wire_name: String,
    /// The server.
    pub server: String,
    /// The tool as listed.
    pub tool: Tool,
    /// The error result of every call, for a distractor: a tool that no server has.
    pub refusal: Option<String>,
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
        let mut offer = Self {
            servers: listed.iter().map(|(server, _)| server.clone()).collect(),
            tools: Vec::new(),
        };
        for (server, tools) in listed {
            for tool in tools {
                offer.add(server.clone(), tool, None);
            }
        }
        offer
    }

    fn add(&mut self, server: String, tool: Tool, refusal: Option<String>) {
        let wire_name = if self.servers.len() > 1 {
            format!("{server}__{}", tool.name())
        } else {
            tool.name().to_owned()
        };
        self.tools.push(OfferedTool {
            wire_name,
            server,
            tool,
            refusal,
        });
    }

    /// Adds distractors (tools that no server has) and reorders all tools: `order` maps the number
    /// of tools to the old index of each new position.
    pub fn inject(
        &mut self,
        distractors: Vec<Tool>,
        refusal: fn(&str) -> String,
        order: impl Fn(usize) -> Vec<usize>,
    ) {
        for distractor in distractors {
            let server = self.server_of(&distractor);
            let answer = refusal(distractor.name());
            self.add(server, distractor, Some(answer));
        }
        let mut old: Vec<Option<OfferedTool>> = std::mem::take(&mut self.tools)
            .into_iter()
            .map(Some)
            .collect();
        self.tools = order(old.len())
            .into_iter()
            .filter_map(|index| old.get_mut(index)?.take())
            .collect();
    }

    /// Adds distractors, each with its error result, and sorts all tools by these wire names. Tools
    /// that are not listed come last.
    pub fn inject_in_order(&mut self, distractors: Vec<(Tool, String)>, order: &[String]) {
        for (distractor, answer) in distractors {
            let server = self.server_of(&distractor);
            self.add(server, distractor, Some(answer));
        }
        let mut old: Vec<Option<OfferedTool>> = std::mem::take(&mut self.tools)
            .into_iter()
            .map(Some)
            .collect();
        for name in order {
            let named = |tool: &&mut Option<OfferedTool>| {
                tool.as_ref().is_some_and(|tool| tool.wire_name == *name)
            };
            self.tools
                .extend(old.iter_mut().find(named).and_then(Option::take));
        }
        self.tools.extend(old.into_iter().flatten());
    }

    /// Returns the server that a distractor names, or else the first server.
    fn server_of(&self, distractor: &Tool) -> String {
        let server = distractor
            .server()
            .or(self.servers.first().map(String::as_str));
        server.unwrap_or_default().to_owned()
    }

    /// Returns the tools, in order.
    #[must_use]
    pub fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    /// Returns the tool with this wire name.
    #[must_use]
    pub fn find(&self, wire_name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.wire_name == wire_name)
    }

    /// Splits the wire name of a tool that is not offered into server and tool. The server is
    /// `None` if it does not follow from the name.
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
                    let tools = tools.iter().filter_map(|name| {
                        Tool::from_listing(Some(server), &json!({"name": name}))
                    });
                    ((*server).to_owned(), tools.collect())
                })
                .collect(),
        )
    }

    #[test]
    fn distractors_join_the_offer_in_the_requested_order() {
        let mut offer = offer(&[("a", &["x", "y"])]);
        let fake = Tool::from_listing(Some("a"), &json!({"name": "x_v2"}))
            .into_iter()
            .collect();
        offer.inject(
            fake,
            |name| format!("not {name}"),
            |count| (0..count).rev().collect(),
        );
        let names: Vec<_> = offer
            .tools()
            .iter()
            .map(|tool| (tool.wire_name.as_str(), tool.refusal.as_deref()))
            .collect();
        assert_eq!(
            names,
            [("x_v2", Some("not x_v2")), ("y", None), ("x", None)]
        );
        let order: Vec<String> = offer
            .tools()
            .iter()
            .map(|tool| tool.wire_name.clone())
            .collect();
        let mut again = super::tests::offer(&[("a", &["x", "y"])]);
        let fake = offer.tools()[0].tool.clone();
        again.inject_in_order(vec![(fake, "not x_v2".to_owned())], &order);
        let again: Vec<_> = again
            .tools()
            .iter()
            .map(|tool| (tool.wire_name.as_str(), tool.refusal.as_deref()))
            .collect();
        assert_eq!(again, names);
    }

    #[test]
    fn names_are_bare_with_one_server_and_prefixed_with_several() {
        assert_eq!(offer(&[("a", &["x"])]).tools()[0].wire_name, "x");
        let two = offer(&[("a", &["x"]), ("b", &["x"])]);
        let names: Vec<_> = two
            .tools()
            .iter()
            .map(|tool| tool.wire_name.as_str())
            .collect();
        assert_eq!(names, ["a__x", "b__x"]);
        assert_eq!(two.split_unknown("b__nope"), (Some("b"), "nope"));
        assert_eq!(two.split_unknown("nope"), (None, "nope"));
        assert_eq!(
            offer(&[("a", &["x"])]).split_unknown("nope"),
            (Some("a"), "nope")
        );
    }
}
