//! The known keys of all objects of a trace, as words.

use mcptest_json::scan::WINDOW;

/// A known key as the word of [`super::Key`].
pub(super) const fn word(key: &str) -> u128 {
    let bytes = key.as_bytes();
    assert!(bytes.len() < WINDOW, "the key is too long");
    let mut word = 0;
    let mut at = bytes.len();
    while at > 0 {
        at -= 1;
        word = word << 8 | bytes[at] as u128;
    }
    word
}

pub const TEST: u128 = word("test");
pub const MODEL: u128 = word("model");
pub const RUN: u128 = word("run");
pub const TOOL_CALLS: u128 = word("tool_calls");
pub const TOOL_RESULTS: u128 = word("tool_results");
pub const CONVERSATION: u128 = word("conversation");
pub const FINAL_RESPONSE: u128 = word("final_response");
pub const CATALOG: u128 = word("catalog");
pub const DISTRACTORS: u128 = word("distractors");
pub const JUDGEMENTS: u128 = word("judgements");
pub const ERROR: u128 = word("error");
pub const ID: u128 = word("id");
pub const NAME: u128 = word("name");
pub const SERVER: u128 = word("server");
pub const ARGS: u128 = word("args");
pub const CALLER: u128 = word("caller");
pub const TURN: u128 = word("turn");
pub const CALL_ID: u128 = word("call_id");
pub const IS_ERROR: u128 = word("is_error");
pub const CONTENT: u128 = word("content");
pub const TURNS: u128 = word("turns");
pub const TOKENS: u128 = word("tokens");
pub const ROLE: u128 = word("role");
pub const INPUT: u128 = word("input");
pub const OUTPUT: u128 = word("output");
pub const TOTAL: u128 = word("total");
