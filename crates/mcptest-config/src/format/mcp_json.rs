//! `.mcp.json` and `mcp.json`: Claude Code, and what most clients accept.
//!
//! `mcpServers` maps names to `command`, `args` and `env`, or to `type: http`, `url` and
//! `headers`. `${VAR}` and `${VAR:-default}` are variables of the environment.

use super::{Format, no_inputs};
use crate::entry::common;
use crate::template::References;

pub(super) const FORMAT: Format = Format {
    title: "mcp.json",
    files: &[".mcp.json", "mcp.json"],
    key: "mcpServers",
    in_project: true,
    references: References::Shell,
    read: common,
    inputs: no_inputs,
};

#[cfg(test)]
mod tests {
    use crate::testing::{described, problems};

    #[test]
    fn programs_addresses_and_references() {
        let text = r#"{"mcpServers": {
            "a": {"command": "npx", "args": ["-y", "pkg", "${DIR:-.}"], "env": {"KEY": "${KEY}", "N": 1}},
            "b": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "c": {"type": "ws", "url": "wss://example.com/ws"},
            "d": {"command": "x", "disabled": true}
        }}"#;
        assert_eq!(
            described(".mcp.json", text),
            [
                "a: npx -y pkg {DIR:-.} KEY={KEY} N=1",
                "b: https://example.com/mcp Authorization: Bearer {TOKEN}",
                "c: cannot: it uses the transport `ws`, which mcptest does not speak (HTTP and stdio are supported)",
                "d: x (disabled)",
            ]
        );
    }

    #[test]
    fn every_problem_has_its_place() {
        let text = "{\"mcpServers\": {\n\"a\": {\"args\": [1]},\n\"b\": 5,\n\"c\": {\"command\": [\"x\"], \"env\": {\"K\": []}},\n\"d\": {\"command\": \"\"},\n\"e\": {\"url\": \"ftp://x\"}}}";
        assert_eq!(
            problems("mcp.json", text),
            [
                "2:1 server `a` has no `command` and no `url`",
                "3:6 expected a mapping with `command` or `url`, found a number",
                "4:18 expected a string, found a list",
                "4:38 expected a string, found a list",
                "5:18 the command is empty",
                "6:14 a URL must start with http:// or https:// and have a host",
            ]
        );
        assert_eq!(
            problems("mcp.json", "{\"mcpServers\": []}"),
            ["1:16 expected a mapping of server names, found a list"]
        );
        assert_eq!(
            problems("mcp.json", "{}"),
            ["1:1 no servers are configured here"]
        );
    }
}
