//! The list of targets: one file and one line each.

mod agent_output;
mod cassette;
mod catalog;
mod client_config;
mod duration;
mod event_log;
mod json;
mod json_edit;
mod jsonrpc_client;
mod manifest;
mod map_file;
mod matcher;
mod mock_session;
mod narrative;
mod oauth;
mod partial;
mod redact;
mod report;
mod score;
mod sse;
mod stream;
mod suite;
mod target;
mod template;
mod trace_formats;
mod trace_native;
mod volatile;
mod yaml;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its folders below `fuzz/`.
    pub name: &'static str,
    /// Checks its properties for an input. Panics if one does not hold.
    pub run: fn(&[u8]),
    /// The files that fuzzing starts from, as patterns below the root of the repository. Files of
    /// `fuzz/seeds/<name>` are added.
    pub seeds: &'static [&'static str],
}

const fn target(name: &'static str, run: fn(&[u8]), seeds: &'static [&'static str]) -> Target {
    Target { name, run, seeds }
}

/// Suites of the examples, with and without problems.
const SUITES: &[&str] = &[
    "examples/*.yml",
    "examples/*/*.yml",
    "tests/bad/*/*.yml",
    "tests/docs/*.yml",
    "tests/e2e/*.yml",
    "tests/released/*/*.yml",
];

/// Traces of every reader.
const TRACES: &[&str] = &["crates/mcptest-formats/tests/fixtures/*/*"];

/// Native traces.
const NATIVE_TRACES: &[&str] = &[
    "examples/traces/*.jsonl",
    "tests/docs/*.jsonl",
    "tests/released/*/traces.jsonl",
    "crates/mcptest-formats/tests/expected/*/*.jsonl",
];

/// All targets, by name.
pub static TARGETS: &[Target] = &[
    target(
        "agent_output",
        agent_output::run,
        &["crates/mcptest-agents/tests/fixtures/*.jsonl"],
    ),
    target(
        "cassette",
        cassette::run,
        &[
            "crates/mcptest-cassette/tests/fixtures/*.json",
            "tests/released/*/cassettes/*/*.json",
            "examples/cassettes/cassettes/*/*.json",
        ],
    ),
    target("catalog", catalog::run, &["examples/catalog-diff/*.json"]),
    target("client_config", client_config::run, &[]),
    target("duration", duration::run, &[]),
    target(
        "event_log",
        event_log::run,
        &["tests/released/*/events.jsonl"],
    ),
    target("json", json::run, &["examples/reports/*.json"]),
    target("json_edit", json_edit::run, &[]),
    target("jsonrpc_client", jsonrpc_client::run, &[]),
    target(
        "manifest",
        manifest::run,
        &[
            "crates/mcptest-mock/tests/data/*.yml",
            "examples/servers/*.yml",
            "examples/world/world.yml",
            "examples/features/weather.yml",
        ],
    ),
    target("map_file", map_file::run, &[]),
    target("matcher", matcher::run, &[]),
    target("mock_session", mock_session::run, &[]),
    target("narrative", narrative::run, NATIVE_TRACES),
    target("oauth", oauth::run, &[]),
    target("partial", partial::run, &[]),
    target("redact", redact::run, NATIVE_TRACES),
    target(
        "report",
        report::run,
        &["examples/reports/*.json", "tests/released/*/report.json"],
    ),
    target("score", score::run, NATIVE_TRACES),
    target("sse", sse::run, &["fuzz/seeds/stream_*/*"]),
    target("stream_anthropic", stream::anthropic, &[]),
    target("stream_gemini", stream::gemini, &[]),
    target("stream_openai_chat", stream::openai_chat, &[]),
    target("stream_openai_responses", stream::openai_responses, &[]),
    target("suite", suite::run, SUITES),
    target("target", target::run, &[]),
    target("template", template::run, &[]),
    target("trace_formats", trace_formats::run, TRACES),
    target("trace_native", trace_native::run, NATIVE_TRACES),
    target("volatile", volatile::run, &[]),
    target("yaml", yaml::run, SUITES),
];

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
