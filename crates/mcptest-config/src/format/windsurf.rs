//! `mcp_config.json`: Windsurf.
//!
//! Like `mcp.json`, with `serverUrl` for addresses and `${env:NAME}`.

use super::{Format, no_inputs};
use crate::entry::common;
use crate::template::References;

pub(super) const FORMAT: Format = Format {
    title: "Windsurf",
    files: &["mcp_config.json"],
    key: "mcpServers",
    in_project: false,
    references: References::Editor,
    read: common,
    inputs: no_inputs,
};

#[cfg(test)]
mod tests {
    use crate::testing::described;

    #[test]
    fn addresses_have_another_key() {
        let text = r#"{"mcpServers": {"a": {"serverUrl": "https://example.com/mcp", "headers": {"X-Key": "${env:KEY}"}}}}"#;
        assert_eq!(
            described("mcp_config.json", text),
            ["a: https://example.com/mcp X-Key: {KEY}"]
        );
    }
}
