//! `claude_desktop_config.json`: Claude Desktop.
//!
//! Like `mcp.json`, but values are literal, and the file belongs to a user, not to a project.

use super::{Format, no_inputs};
use crate::entry::common;
use crate::template::References;

pub(super) const FORMAT: Format = Format {
    title: "Claude Desktop",
    files: &["claude_desktop_config.json"],
    key: "mcpServers",
    in_project: false,
    references: References::None,
    read: common,
    inputs: no_inputs,
};

#[cfg(test)]
mod tests {
    use crate::testing::described;

    #[test]
    fn values_are_literal() {
        let text = r#"{"globalShortcut": "", "mcpServers": {"a": {"command": "/x/y", "args": ["${HOME}"], "env": {"KEY": "s3cret"}}}}"#;
        assert_eq!(
            described("/x/claude_desktop_config.json", text),
            ["a: /x/y ${HOME} KEY=s3cret"]
        );
    }
}
