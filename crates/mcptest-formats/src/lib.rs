//! Readers of the trace formats that other tools write.
//!
//! A [`Reader`] makes native traces of one format. [`READERS`] lists all of them; [`detect`] finds
//! the one that an input belongs to. Detection never guesses: it is an error if no reader or
//! several readers claim an input. All readers follow the same rules, most of them enforced by
//! [`TraceBuilder`]:
//!
//! - Results are joined with calls by id.
//! - A call that is recorded twice is one call.
//! - Usage is counted once per request; missing figures are unknown, not zero.
//! - Arguments that are not valid JSON stay the string that was recorded.
//! - The name of a tool is read from the keys that the format defines, never from similar ones.
//!
//! ```
//! use mcptest_formats::{Input, detect};
//! let text = br#"[{"role": "user", "content": "Hi"},
//!   {"role": "assistant", "content": null, "tool_calls": [
//!     {"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{\"id\": 7}"}}]}]"#;
//! let input = Input::parse(text).unwrap();
//! let reader = detect(&input).unwrap();
//! assert_eq!(reader.format().name, "openai-chat");
//! let traces = reader.read(&input).unwrap();
//! assert_eq!(traces[0].tool_calls[0].args().unwrap()["id"], 7);
//! ```

mod agent_log;
mod builder;
mod content;
mod error;
mod exchange;
mod input;
mod map;
mod otlp;
#[cfg(test)]
mod producer_tests;
mod reader;
mod seen;
mod time;
mod zip;

mod adk;
mod anthropic;
mod atif;
mod bedrock;
mod claude_code;
mod claude_stream;
mod codex;
mod gemini;
mod gemini_cli;
mod inspect;
mod langchain;
mod langsmith;
mod mcp_jsonrpc;
mod mcpchecker;
mod native;
mod openai_chat;
mod openai_responses;
mod opencode;
mod openinference;
mod otel;
mod promptfoo;
mod tau2_bench;
mod tau_bench;
mod vercel;

pub use builder::{Call, Reply, TraceBuilder, Usage};
pub use error::{FormatError, NotClaimed};
pub use input::{Document, Input, MAX_BYTES};
pub use map::{Map, map_schema};
pub use reader::{Detection, Format, Grouping, Reader};

/// All readers: one line per format.
pub static READERS: &[&dyn Reader] = &[
    &native::Native,
    &openai_chat::OpenAiChat,
    &openai_responses::OpenAiResponses,
    &anthropic::Anthropic,
    &gemini::Gemini,
    &bedrock::Bedrock,
    &otel::Otel,
    &openinference::OpenInference,
    &vercel::Vercel,
    &langchain::LangChain,
    &langsmith::LangSmith,
    &inspect::Inspect,
    &tau_bench::TauBench,
    &tau2_bench::Tau2Bench,
    &claude_code::ClaudeCode,
    &claude_stream::ClaudeStream,
    &codex::Codex,
    &gemini_cli::GeminiCli,
    &opencode::OpenCode,
    &adk::Adk,
    &atif::Atif,
    &mcp_jsonrpc::McpJsonRpc,
    &mcpchecker::Mcpchecker,
    &promptfoo::Promptfoo,
];

/// Finds a reader by the name of its format.
///
/// # Errors
/// No format has this name. The error lists all names.
pub fn by_name(name: &str) -> Result<&'static dyn Reader, FormatError> {
    let found = READERS.iter().find(|reader| reader.format().name == name);
    found
        .copied()
        .ok_or_else(|| FormatError::NoSuchFormat(name.to_owned()))
}

/// Finds the one reader that claims an input.
///
/// # Errors
/// No reader claims the input, or several do.
pub fn detect(input: &Input) -> Result<&'static dyn Reader, FormatError> {
    reader::detect_among(READERS, input)
}
