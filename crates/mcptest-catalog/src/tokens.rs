//! Token counts for pricing tool catalogs: `cl100k_base`, embedded.
//!
//! One tokenizer for every model is a convention: each provider has its own. It makes catalogs
//! comparable, and a count is the same on every machine, without a network. The vocabulary is
//! unpacked on first use.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use tiktoken::CoreBpe;

use mcptest_trace::catalog::Tool;
use mcptest_trace::parallel;

/// Lists of this length or more are split over the cores; for shorter ones threads do not pay off.
const SHARED_FROM: usize = 256;

static ENCODING: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::cl100k_base);

/// Unpacks the vocabulary, which takes some milliseconds, in a thread of the caller.
pub fn prepare() {
    LazyLock::force(&ENCODING);
}

/// The number of tokens of a string. Special tokens such as `<|endoftext|>` count as ordinary text.
///
/// ```
/// assert_eq!(mcptest_catalog::tokens::count("hello world"), 2);
/// assert_eq!(mcptest_catalog::tokens::count(""), 0);
/// ```
#[must_use]
pub fn count(text: &str) -> u64 {
    ENCODING.count(text) as u64
}

/// The cost of a tool each time it is offered: its name, its description, and its input schema as
/// compact JSON with the keys in the server's order, counted separately and added. Missing parts
/// cost nothing.
#[must_use]
pub fn of_tool(tool: &Tool) -> u64 {
    price(tool).sum()
}

/// The parts of a tool's cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Price {
    /// Tokens of the name.
    pub name: u64,
    /// Tokens of the description.
    pub description: u64,
    /// Tokens of the input schema.
    pub schema: u64,
}

impl Price {
    /// The total.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.name + self.description + self.schema
    }
}

/// The cost of a tool by part: see [`of_tool`].
#[must_use]
pub fn price(tool: &Tool) -> Price {
    price_of(tool.raw())
}

fn price_of(tool: &Map<String, Value>) -> Price {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map_or(0, count);
    Price {
        name: text("name"),
        description: text("description"),
        schema: tool
            .get("inputSchema")
            .map_or(0, |schema| count(&schema.to_string())),
    }
}

/// The cost of each entry of a `tools/list` result, in order. An entry that is not an object costs
/// nothing.
#[must_use]
pub fn price_list(listed: &[Value]) -> Vec<Price> {
    price_list_on(parallel::threads_for(listed.len(), SHARED_FROM), listed)
}

/// The costs; independent of the number of threads.
fn price_list_on(threads: usize, listed: &[Value]) -> Vec<Price> {
    let price = |entry: &Value| entry.as_object().map_or_else(Price::default, price_of);
    parallel::map(threads, listed.iter().collect(), price)
}

/// The sum over a catalog.
#[must_use]
pub fn of_catalog(tools: &[Tool]) -> u64 {
    tools.iter().map(of_tool).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn tool(value: Value) -> Tool {
        Tool::from_listing(None, &value).unwrap()
    }

    #[test]
    fn counts_are_those_of_cl100k_base() {
        // Published examples of the encoding, and edge cases: spaces, digits in threes,
        // contractions, other scripts, emoji.
        for (text, tokens) in [
            ("tiktoken is great!", 6),
            ("antidisestablishmentarianism", 6),
            ("2 + 2 = 4", 7),
            ("お誕生日おめでとう", 9),
            ("", 0),
            (" ", 1),
            ("1234567", 3),
            ("I'll", 2),
        ] {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn special_tokens_count_as_text() {
        assert!(count("<|endoftext|>") > 1);
    }

    #[test]
    fn a_tool_costs_name_description_and_compact_schema() {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let whole = tool(
            json!({"name": "web_search", "description": "Searches the web.", "inputSchema": schema}),
        );
        assert_eq!(
            of_tool(&whole),
            count("web_search")
                + count("Searches the web.")
                + count(r#"{"type":"object","properties":{"q":{"type":"string"}}}"#)
        );
        assert_eq!(
            of_tool(&tool(json!({"name": "web_search"}))),
            count("web_search")
        );
        assert_eq!(of_tool(&tool(json!({}))), 0);
        assert_eq!(
            of_catalog(&[whole.clone(), whole.clone()]),
            2 * of_tool(&whole)
        );
        assert_eq!(of_catalog(&[]), 0);
    }

    #[test]
    fn the_server_is_not_part_of_the_cost() {
        let listed = json!({"name": "get", "description": "x"});
        let with = Tool::from_listing(Some("a-server-with-a-long-name"), &listed).unwrap();
        assert_eq!(of_tool(&with), of_tool(&tool(listed)));
    }

    #[test]
    fn a_list_costs_what_its_entries_cost() {
        let listed = [
            json!({"name": "a b"}),
            json!(7),
            json!({"description": 3, "inputSchema": null}),
        ];
        let prices = price_list(&listed);
        assert_eq!(
            prices.iter().map(|price| price.sum()).collect::<Vec<_>>(),
            [2, 0, 1]
        );
        assert!(price_list(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn the_number_of_threads_changes_nothing(names in proptest::collection::vec("[a-z_ ]{0,12}", 0..40), threads in 0..9_usize) {
            let listed: Vec<Value> = names.iter().map(|name| json!({"name": name, "inputSchema": {"title": name}})).collect();
            let alone: Vec<Price> = listed.iter().map(|entry| price(&tool(entry.clone()))).collect();
            prop_assert_eq!(price_list_on(threads, &listed), alone);
        }

        #[test]
        fn another_implementation_counts_the_same(text in "\\PC{0,60}|[ \\r\\n\\t'.,0-9a-zA-Zäß日本🙂\u{301}_-]{0,60}") {
            let oracle = tiktoken_rs::cl100k_base_singleton().encode_ordinary(&text).len() as u64;
            prop_assert_eq!(count(&text), oracle);
        }

        #[test]
        fn a_count_is_bounded_by_the_bytes(text in "\\PC{0,80}|[ \\n\\t'0-9a-zA-Z]{0,80}") {
            let tokens = count(&text);
            prop_assert!(tokens <= text.len() as u64);
            prop_assert_eq!(tokens == 0, text.is_empty());
        }
    }
}
