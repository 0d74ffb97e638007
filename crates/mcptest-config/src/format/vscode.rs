//! `.vscode/mcp.json`: VS Code. The same under `mcp` in `settings.json`.
//!
//! `servers` maps names to programs and addresses; `inputs` are values that VS Code asks for and
//! inserts for `${input:id}`. Here they are variables of the environment: `${input:api-key}` is
//! `API_KEY`.

use mcptest_yaml::{Node, NodeValue};

use super::Format;
use crate::configured_server::Input;
use crate::entry::common;
use crate::template::{References, input_variable};

pub(super) const FORMAT: Format = Format {
    title: "VS Code",
    files: &[".vscode/mcp.json"],
    key: "servers",
    in_project: true,
    references: References::Editor,
    read: common,
    inputs,
};

pub(super) const SETTINGS: Format = Format {
    title: "VS Code settings",
    files: &[".vscode/settings.json"],
    key: "mcp/servers",
    in_project: true,
    references: References::Editor,
    read: common,
    inputs: |root| {
        let mcp = root.entry("mcp").map(|entry| &entry.value);
        mcp.map(inputs).unwrap_or_default()
    },
};

fn inputs(root: &Node) -> Vec<Input> {
    let Some(NodeValue::Sequence(inputs)) = root.entry("inputs").map(|entry| &entry.value.value)
    else {
        return Vec::new();
    };
    let input = |node: &Node| {
        let string = |key: &str| match &node.entry(key)?.value.value {
            NodeValue::String(text) => Some(text.to_string()),
            _ => None,
        };
        let password = node
            .entry("password")
            .is_some_and(|entry| entry.value.value == NodeValue::Bool(true));
        Some(Input {
            variable: input_variable(&string("id")?),
            description: string("description"),
            password,
        })
    };
    inputs.iter().filter_map(input).collect()
}

#[cfg(test)]
mod tests {
    use crate::read;
    use crate::testing::described;

    const CONFIG: &str = r#"{
        // VS Code allows comments
        "inputs": [
            {"type": "promptString", "id": "github-token", "description": "Token", "password": true},
            {"type": "promptString", "id": "region"}, 5
        ],
        "servers": {
            "github": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "server-github"],
                "env": {"GITHUB_TOKEN": "${input:github-token}"},
                "cwd": "${workspaceFolder}/sub",
            },
            "remote": {"type": "http", "url": "https://example.com/${input:region}/mcp"},
            "dev": {"command": "x", "args": ["${command:pick}"]}, // asks
        },
    }"#;

    #[test]
    fn inputs_are_variables() {
        assert_eq!(
            described(".vscode/mcp.json", CONFIG),
            [
                "github: npx -y server-github GITHUB_TOKEN={GITHUB_TOKEN} in <project>/sub",
                "remote: https://example.com/{REGION}/mcp",
                "dev: cannot: `${command:…}` is known to the client alone: mcptest cannot resolve it",
            ]
        );
        let config = read(".vscode/mcp.json", CONFIG.as_bytes()).unwrap();
        let inputs: Vec<_> = config
            .inputs
            .iter()
            .map(|input| (input.variable.as_str(), input.password))
            .collect();
        assert_eq!(inputs, [("GITHUB_TOKEN", true), ("REGION", false)]);
        assert_eq!(config.inputs[0].description.as_deref(), Some("Token"));
    }

    #[test]
    fn settings_have_it_too() {
        let text = r#"{"editor.tabSize": 2, "mcp": {"inputs": [{"id": "k"}], "servers": {"a": {"command": "x", "args": ["${input:k}"]}}}}"#;
        assert_eq!(described("User/settings.json", text), ["a: x {K}"]);
    }
}
