//! `.cursor/mcp.json`: Cursor.
//!
//! Like `mcp.json`, with `${env:NAME}`, `${workspaceFolder}` and `${userHome}`, and `envFile`.

use super::{Format, no_inputs};
use crate::entry::common;
use crate::template::References;

pub(super) const FORMAT: Format = Format {
    title: "Cursor",
    files: &[".cursor/mcp.json"],
    key: "mcpServers",
    in_project: true,
    references: References::Editor,
    read: common,
    inputs: no_inputs,
};

#[cfg(test)]
mod tests {
    use crate::testing::described;

    #[test]
    fn references_of_editors() {
        let text = r#"{"mcpServers": {
            "a": {"command": "python", "args": ["${workspaceFolder}/server.py"], "env": {"KEY": "${env:KEY}"}, "envFile": "${userHome}/.env"},
            "b": {"url": "http://127.0.0.1:3000/mcp"}
        }}"#;
        assert_eq!(
            described(".cursor/mcp.json", text),
            [
                "a: python <project>/server.py KEY={KEY} env file <home>/.env",
                "b: http://127.0.0.1:3000/mcp"
            ]
        );
    }
}
