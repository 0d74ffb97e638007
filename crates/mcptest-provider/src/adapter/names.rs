//! Tool names that a provider does not take.
//!
//! Providers take names of few characters and a bounded length; MCP servers name their tools as
//! they like. A name that fits goes out as it is. Any other goes out under a name made from it, and
//! comes back as its own.

use std::borrow::Cow;
use std::collections::HashSet;

use mcptest_agent::OfferedTool;

/// What a provider takes as the name of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRule {
    /// The most characters.
    pub most: usize,
    /// What may stand in it beside ASCII letters, digits and `_`.
    pub also: &'static [char],
    /// Whether it must begin with a letter or `_`.
    pub begins_with_letter: bool,
}

impl NameRule {
    fn takes(&self, character: char) -> bool {
        character.is_ascii_alphanumeric() || character == '_' || self.also.contains(&character)
    }

    fn begins(&self, character: char) -> bool {
        !self.begins_with_letter || character.is_ascii_alphabetic() || character == '_'
    }

    pub(super) fn fits(&self, name: &str) -> bool {
        name.len() <= self.most
            && name.chars().all(|c| self.takes(c))
            && name.starts_with(|c| self.begins(c))
    }

    /// A name that fits, made from one that does not: `attempt` makes different ones of it.
    fn made_from(&self, name: &str, attempt: u64) -> String {
        let mut made: String = name
            .chars()
            .map(|c| if self.takes(c) { c } else { '_' })
            .collect();
        if !made.starts_with(|c| self.begins(c)) {
            made.insert(0, '_');
        }
        // Everything in it is ASCII by now, so bytes are characters.
        if attempt > 0 || made.len() > self.most {
            let mark = format!("_{:08x}", digest(name, attempt) & 0xffff_ffff);
            made.truncate(self.most.saturating_sub(mark.len()));
            made.push_str(&mark);
        }
        made
    }
}

/// FNV-1a: it only has to tell names apart, and to be the same everywhere.
fn digest(name: &str, attempt: u64) -> u64 {
    let bytes = name.bytes().chain(attempt.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The offered tools under the names that go out. Follows from the offer alone, so that question
/// and answer agree.
#[derive(Debug)]
pub(super) struct Names<'a> {
    rule: NameRule,
    /// A tool that is listed twice is here once: providers refuse the second, and a call by this
    /// name reaches the first.
    sent: Vec<(String, &'a OfferedTool)>,
}

impl<'a> Names<'a> {
    pub(super) fn new(rule: NameRule, tools: &'a [OfferedTool]) -> Self {
        let fitting = tools.iter().map(|tool| tool.wire_name.as_str());
        let mut taken: HashSet<String> = fitting
            .filter(|name| rule.fits(name))
            .map(str::to_owned)
            .collect();
        let mut seen = HashSet::new();
        let mut sent = Vec::new();
        for tool in tools {
            if !seen.insert(tool.wire_name.as_str()) {
                continue;
            }
            let name = if rule.fits(&tool.wire_name) {
                tool.wire_name.clone()
            } else {
                let made = (0..).map(|attempt| rule.made_from(&tool.wire_name, attempt));
                // There are more attempts than tools, so one is free.
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

    /// Each tool once, with the name that goes out.
    pub(super) fn tools(&self) -> impl Iterator<Item = (&str, &'a OfferedTool)> {
        self.sent.iter().map(|(name, tool)| (name.as_str(), *tool))
    }

    /// The name that goes out for a call of the conversation so far. The model may have called what
    /// was never offered; then any name that the provider takes will do.
    pub(super) fn out<'n>(&self, wire_name: &'n str) -> Cow<'n, str> {
        if self.rule.fits(wire_name) {
            return Cow::Borrowed(wire_name);
        }
        let known = self
            .sent
            .iter()
            .find(|(_, tool)| tool.wire_name == wire_name);
        Cow::Owned(known.map_or_else(
            || self.rule.made_from(wire_name, 0),
            |(name, _)| name.clone(),
        ))
    }

    /// The tool's own name for one that came back.
    pub(super) fn back(&self, sent: &str) -> String {
        let known = self.sent.iter().find(|(name, _)| name == sent);
        known.map_or_else(|| sent.to_owned(), |(_, tool)| tool.wire_name.clone())
    }

    /// Whether a tool is offered under this name.
    pub(super) fn offers(&self, sent: &str) -> bool {
        self.sent.iter().any(|(name, _)| name == sent)
    }

    /// Whether the provider takes this name.
    pub(super) fn fits(&self, name: &str) -> bool {
        self.rule.fits(name)
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
            most: 64,
            also: &['-'],
            begins_with_letter: false,
        },
        NameRule {
            most: 64,
            also: &['-', '.', ':'],
            begins_with_letter: true,
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
        let table = Names::new(rule, &tools);
        table.tools().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn a_name_that_fits_goes_out_as_it_is_and_another_stays_readable() {
        assert_eq!(
            sent(RULES[0], &["get-x", "weather.get", "größe"]),
            ["get-x", "weather_get", "gr__e"]
        );
        assert_eq!(
            sent(RULES[1], &["a.b:c-d", "2fast", "-x"]),
            ["a.b:c-d", "_2fast", "_-x"]
        );
        // A made name never takes the place of a real one, wherever that stands in the list.
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
        fn every_offered_name_fits_and_comes_back_as_its_own(
            names in prop::collection::vec(prop_oneof!["[a-b._]{0,3}", ".{0,12}", "[a-z]{60,70}"], 0..12)
        ) {
            for rule in RULES {
                let tools = offered(&names);
                let table = Names::new(rule, &tools);
                let mut out = HashSet::new();
                for (name, tool) in table.tools() {
                    prop_assert!(rule.fits(name), "{name}");
                    prop_assert!(out.insert(name.to_owned()), "{name} twice");
                    prop_assert_eq!(table.back(name), tool.wire_name.as_str());
                    prop_assert_eq!(table.out(&tool.wire_name), name);
                }
                let different: HashSet<_> = names.iter().collect();
                prop_assert_eq!(out.len(), different.len());
            }
        }

        #[test]
        fn a_call_of_what_was_never_offered_goes_out_under_a_name_that_fits(name in ".{0,100}") {
            for rule in RULES {
                let sent = Names::new(rule, &[]).out(&name).into_owned();
                prop_assert!(rule.fits(&sent), "{sent}");
            }
        }
    }
}
