//! `.gemini/settings.json`: Gemini CLI.
//!
//! `mcpServers` with `httpUrl` for streamable HTTP (`url` is HTTP+SSE, which the client detects),
//! and `$VAR` or `${VAR}`.

use super::{Format, no_inputs};
use crate::configured_server::ServerTarget;
use crate::entry::{EntryReader, common};
use crate::template::References;

pub(super) const FORMAT: Format = Format {
    title: "Gemini CLI",
    files: &[".gemini/settings.json"],
    key: "mcpServers",
    in_project: true,
    references: References::Plain,
    read,
    inputs: no_inputs,
};

fn read(entry: &mut EntryReader<'_>) -> Option<ServerTarget> {
    if entry.has("httpUrl") {
        return entry.http("httpUrl", "headers");
    }
    common(entry)
}

#[cfg(test)]
mod tests {
    use crate::testing::described;

    #[test]
    fn http_has_its_own_key() {
        let text = r#"{"theme": "x", "mcpServers": {
            "a": {"httpUrl": "https://example.com/mcp"},
            "b": {"command": "x", "env": {"KEY": "$KEY"}},
            "c": {"url": "https://example.com/mcp", "type": "http"}
        }}"#;
        assert_eq!(
            described(".gemini/settings.json", text),
            [
                "a: https://example.com/mcp",
                "b: x KEY={KEY}",
                "c: https://example.com/mcp"
            ]
        );
    }
}
