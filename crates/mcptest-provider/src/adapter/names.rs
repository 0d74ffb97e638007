//! The mapping between tool names and the names that a provider accepts.
//!
//! Providers limit the characters and the length of names; MCP servers do not. A valid name is sent
//! unchanged. For any other, a valid name is derived from it, and mapped back in answers.

use std::borrow::Cow;
use std::collections::HashSet;

use mcptest_agent::OfferedTool;

/// The rule for valid names of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRule {
    /// The limit of characters.
    pub max_length: usize,
    /// The valid characters other than ASCII letters, digits and `_`.
    pub extra_characters: &'static [char],
    /// True if a name must start with a letter or `_`.
    pub starts_with_letter: bool,
}

impl NameRule {
    fn allows(&self, character: char) -> bool {
        character.is_ascii_alphanumeric()
            || character == '_'
            || self.extra_characters.contains(&character)
    }

    fn allows_first(&self, character: char) -> bool {
        !self.starts_with_letter || character.is_ascii_alphabetic() || character == '_'
    }

    pub(super) fn is_valid(&self, name: &str) -> bool {
        name.len() <= self.max_length
            && name.chars().all(|c| self.allows(c))
            && name.starts_with(|c| self.allows_first(c))
    }

    /// Derives a valid name from an invalid one. Each `attempt` gives a different name.
    fn derive(&self, name: &str, attempt: u64) -> String {
        let mut made: String = name
            .chars()
            .map(|c| if self.allows(c) { c } else { '_' })
            .collect();
        if !made.starts_with(|c| self.allows_first(c)) {
            made.insert(0, '_');
        }
        // All characters are ASCII here, so bytes are characters.
        if attempt > 0 || made.len() > self.max_length {
            let mark = format!("_{:08x}", digest(name, attempt) & 0xffff_ffff);
            made.truncate(self.max_length.saturating_sub(mark.len()));
            made.push_str(&mark);
        }
        made
    }
}

/// Returns the FNV-1a hash: it only has to separate names, and to be the same on every machine.
fn digest(name: &str, attempt: u64) -> u64 {
    let bytes = name.bytes().chain(attempt.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The offered tools with the names that are sent. They follow from the offer alone, so that
/// request and answer agree.
#[derive(Debug)]
pub(super) struct ToolNames<'a> {
    rule: NameRule,
    /// A tool that is listed twice is here once: providers reject the second, and a call by this
    /// name reaches the first.
    sent: Vec<(String, &'a OfferedTool)>,
}

impl<'a> ToolNames<'a> {
    pub(super) fn new(rule: NameRule, tools: &'a [OfferedTool]) -> Self {
        let valid = tools.iter().map(|tool| tool.wire_name.as_str());
        let mut taken: HashSet<String> = valid
            .filter(|name| rule.is_valid(name))
            .map(str::to_owned)
            .collect();
        let mut seen = HashSet::new();
        let mut sent = Vec::new();
        for tool in tools {
            if !seen.insert(tool.wire_name.as_str()) {
                continue;
            }
            let name = if rule.is_valid(&tool.wire_name) {
                tool.wire_name.clone()
            } else {
                let made = (0..).map(|attempt| rule.derive(&tool.wire_name, attempt));
                // There are more attempts than tools, so one of them is free.
                let free = made
                    .into_iter()
                    .find(|made| !taken.contains(made))
                    .unwrap_or_default();
                taken.insert(free.clone());
                free
            };
            sent.push((name, tool));
        }
        Self { rule, sent }
    }

    /// Returns each tool once, with the name that is sent.
    pub(super) fn tools(&self) -> impl Iterator<Item = (&str, &'a OfferedTool)> {
        self.sent.iter().map(|(name, tool)| (name.as_str(), *tool))
    }

    /// Returns the name to send for a call in the conversation. For a tool that was never offered,
    /// any valid name works.
    pub(super) fn sent_name<'n>(&self, wire_name: &'n str) -> Cow<'n, str> {
        if self.rule.is_valid(wire_name) {
            return Cow::Borrowed(wire_name);
        }
        let known = self
            .sent
            .iter()
            .find(|(_, tool)| tool.wire_name == wire_name);
        Cow::Owned(known.map_or_else(|| self.rule.derive(wire_name, 0), |(name, _)| name.clone()))
    }

    /// Returns the tool's own name for a name in an answer.
    pub(super) fn own_name(&self, sent: &str) -> String {
        let known = self.sent.iter().find(|(name, _)| name == sent);
        known.map_or_else(|| sent.to_owned(), |(_, tool)| tool.wire_name.clone())
    }

    /// Returns true if a tool is offered with this name.
    pub(super) fn offers(&self, sent: &str) -> bool {
        self.sent.iter().any(|(name, _)| name == sent)
    }

    /// Returns true if the provider accepts this name.
    pub(super) fn is_valid(&self, name: &str) -> bool {
        self.rule.is_valid(name)
    }
}

#[cfg(test)]
mod tests {
    use mcptest_trace::catalog::Tool;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const RULES: [NameRule; 2] = [
        NameRule {
            max_length: 64,
            extra_characters: &['-'],
            starts_with_letter: false,
        },
        NameRule {
            max_length: 64,
            extra_characters: &['-', '.', ':'],
            starts_with_letter: true,
        },
    ];

    fn offered(names: &[String]) -> Vec<OfferedTool> {
        let tool = |name: &String| OfferedTool {
            wire_name: name.clone(),
            server: "s".into(),
            tool: Tool::from_listing(Some("s"), &json!({"name": name})).unwrap(),
            refusal: None,
        };
        names.iter().map(tool).collect()
    }

    fn sent(rule: NameRule, names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let tools = offered(&names);
        let table = ToolNames::new(rule, &tools);
        table.tools().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn valid_names_are_unchanged_and_derived_ones_readable() {
        assert_eq!(
            sent(RULES[0], &["get-x", "weather.get", "größe"]),
            ["get-x", "weather_get", "gr__e"]
        );
        assert_eq!(
            sent(RULES[1], &["a.b:c-d", "2fast", "-x"]),
            ["a.b:c-d", "_2fast", "_-x"]
        );
        // A derived name never equals a real one, in any order of the list.
        let clash = sent(RULES[0], &["a.b", "a_b", "a:b"]);
        assert_eq!(clash[1], "a_b");
        assert!(
            clash[0].starts_with("a_b_") && clash[2].starts_with("a_b_") && clash[0] != clash[2]
        );
        let long = "x".repeat(80);
        assert_eq!(sent(RULES[0], &[&long])[0].len(), 64);
        assert_eq!(sent(RULES[0], &["", "twice", "twice"]), ["_", "twice"]);
    }

    proptest! {
        #[test]
        fn every_sent_name_is_valid_and_maps_back(
            names in prop::collection::vec(
                prop_oneof!["[a-b._]{0,3}", ".{0,12}", "[a-z]{60,70}"],
                0..12,
            )
        ) {
            for rule in RULES {
                let tools = offered(&names);
                let table = ToolNames::new(rule, &tools);
                let mut out = HashSet::new();
                for (name, tool) in table.tools() {
                    prop_assert!(rule.is_valid(name), "{name}");
                    prop_assert!(out.insert(name.to_owned()), "{name} twice");
                    prop_assert_eq!(table.own_name(name), tool.wire_name.as_str());
                    prop_assert_eq!(table.sent_name(&tool.wire_name), name);
                }
                let different: HashSet<_> = names.iter().collect();
                prop_assert_eq!(out.len(), different.len());
            }
        }

        #[test]
        fn a_call_of_an_unknown_tool_gets_a_valid_name(name in ".{0,100}") {
            for rule in RULES {
                let sent = ToolNames::new(rule, &[]).sent_name(&name).into_owned();
                prop_assert!(rule.is_valid(&sent), "{sent}");
            }
        }
    }
}
