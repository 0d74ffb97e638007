//! `.codex/config.toml`: Codex.
//!
//! `[mcp_servers.NAME]` has `command`, `args`, `env`, `env_vars` (names that are passed on) and
//! `cwd`, or `url`, `bearer_token_env_var`, `http_headers` and `env_http_headers`.

use super::{Format, no_inputs};
use crate::configured_server::ServerTarget;
use crate::entry::{EntryReader, common};
use crate::template::{References, Template};

pub(super) const FORMAT: Format = Format {
    title: "Codex",
    files: &[".codex/config.toml"],
    key: "mcp_servers",
    in_project: true,
    references: References::None,
    read,
    inputs: no_inputs,
};

fn read(entry: &mut EntryReader<'_>) -> Option<ServerTarget> {
    if !entry.has("url") {
        let mut target = common(entry)?;
        if let ServerTarget::Command { env, .. } = &mut target {
            for name in entry.strings("env_vars") {
                env.push((name.clone(), Template::variable(name)));
            }
        }
        return Some(target);
    }
    let mut target = entry.http("url", "http_headers")?;
    if let ServerTarget::Http { headers, .. } = &mut target {
        for (header, variable) in entry.pairs("env_http_headers") {
            headers.push((header, Template::variable(variable)));
        }
        if let Some(variable) = entry.string("bearer_token_env_var") {
            let token = Template::variable(variable).prefixed("Bearer ");
            headers.push(("Authorization".to_owned(), token));
        }
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use crate::testing::{described, problems};

    #[test]
    fn tables_of_servers() {
        let text = "model = \"x\"\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs\"]\nenv_vars = [\"KEY\"]\n[mcp_servers.docs.env]\nMODE = \"fast\"\n[mcp_servers.web]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TOKEN\"\nenv_http_headers = { X-Id = \"ID\" }\nenabled = false\n";
        assert_eq!(
            described("/x/.codex/config.toml", text),
            [
                "docs: npx -y docs MODE=fast KEY={KEY}",
                "web: https://example.com/mcp X-Id: {ID} Authorization: Bearer {TOKEN} (disabled)",
            ]
        );
        assert_eq!(
            problems("config.toml", "[mcp_servers.a]\nargs = [\"x\"]\n"),
            ["1:14 server `a` has no `command` and no `url`"]
        );
    }
}
