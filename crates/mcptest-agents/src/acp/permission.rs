//! Answers to an agent's requests for permission.

use regex::Regex;
use serde_json::{Value, json};

use crate::file::PermissionsFile;

/// The answer to a request for permission. Options are chosen by their kind, never by their place:
/// agents order them differently.
pub(super) fn answer(permissions: &PermissionsFile, call: &Value, params: &Value) -> Value {
    let wanted = match permissions {
        PermissionsFile::Allow => ["allow_once", "allow_always"],
        PermissionsFile::Reject => ["reject_once", "reject_always"],
        PermissionsFile::Tools(tools) => {
            if tools.iter().any(|tool| names(call, tool)) {
                ["allow_once", "allow_always"]
            } else {
                ["reject_once", "reject_always"]
            }
        }
    };
    let options = params["options"].as_array();
    let chosen = wanted.iter().find_map(|kind| {
        options
            .into_iter()
            .flatten()
            .find(|option| option["kind"] == **kind)
    });
    match chosen {
        Some(option) => {
            json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}})
        }
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}

/// Returns true if a call is one of the tool `server.tool`, or of any tool for `server.*`. Each
/// agent has its own form: `mcp__server__tool`, `Tool: server/tool`, `tool (server MCP Server)`.
fn names(call: &Value, tool: &str) -> bool {
    let Some((server, tool)) = tool.split_once('.') else {
        return false;
    };
    let input = &call["rawInput"];
    if input["server"] == server && (tool == "*" || input["tool"] == tool) {
        return true;
    }
    let (server, tool) = (regex::escape(server), regex::escape(tool));
    let pattern = if tool == r"\*" {
        format!(r"(^|[^A-Za-z0-9]){server}([^A-Za-z0-9]|$)")
    } else {
        format!(
            r"(^|[^A-Za-z0-9]){server}[^A-Za-z0-9]+{tool}($|[^A-Za-z0-9_-])|(^|[^A-Za-z0-9_-]){tool}[^A-Za-z0-9_-].*\b{server}($|[^A-Za-z0-9_-])"
        )
    };
    // Both parts are escaped, so the pattern is valid.
    let Ok(pattern) = Regex::new(&pattern) else {
        return false;
    };
    candidates(call).any(|name| pattern.is_match(name))
}

/// The strings of a call that may contain its tool's name.
pub(super) fn candidates(call: &Value) -> impl Iterator<Item = &str> {
    [
        &call["name"],
        &call["title"],
        &call["toolCallId"],
        &call["_meta"]["claudeCode"]["toolName"],
        &call["_meta"]["toolName"],
    ]
    .into_iter()
    .filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &str = r#"[
        {"optionId": "1", "kind": "allow_always"}, {"optionId": "2", "kind": "allow_always"},
        {"optionId": "3", "kind": "allow_once"}, {"optionId": "4", "kind": "reject_once"}]"#;

    fn option(permissions: &PermissionsFile, call: &Value) -> String {
        let options: Value = serde_json::from_str(OPTIONS).unwrap();
        let answer = answer(permissions, call, &json!({"options": options}));
        answer["outcome"]["optionId"]
            .as_str()
            .unwrap_or("cancelled")
            .to_owned()
    }

    #[test]
    fn options_are_chosen_by_kind() {
        let call = json!({"title": "x"});
        assert_eq!(option(&PermissionsFile::Allow, &call), "3");
        assert_eq!(option(&PermissionsFile::Reject, &call), "4");
        let none = json!({"options": [{"optionId": "1", "kind": "allow_once"}]});
        assert_eq!(
            answer(&PermissionsFile::Reject, &call, &none),
            json!({"outcome": {"outcome": "cancelled"}})
        );
    }

    #[test]
    fn tools_are_recognised_in_each_form() {
        let one = PermissionsFile::Tools(vec!["weather.get_weather".into()]);
        for call in [
            json!({"title": "mcp__weather__get_weather"}),
            json!({"title": "Tool: weather/get_weather"}),
            json!({"title": "weather_get_weather"}),
            json!({"title": "get_weather (weather MCP Server)"}),
            json!({"title": "Call", "rawInput": {"server": "weather", "tool": "get_weather"}}),
            json!({"title": "Weather", "toolCallId": "mcp_weather_get_weather-17"}),
        ] {
            let expected = if call["toolCallId"].is_null() {
                "3"
            } else {
                "4"
            };
            assert_eq!(option(&one, &call), expected, "{call}");
        }
        for call in [
            json!({"title": "mcp__weather__get_weather_history"}),
            json!({"title": "mcp__other__get_weather"}),
            json!({"title": "Bash"}),
            json!({"title": "x", "rawInput": {"server": "weather", "tool": "get"}}),
        ] {
            assert_eq!(option(&one, &call), "4", "{call}");
        }
        let all = PermissionsFile::Tools(vec!["weather.*".into()]);
        assert_eq!(option(&all, &json!({"title": "mcp__weather__any"})), "3");
        assert_eq!(option(&all, &json!({"title": "mcp__weatherman__any"})), "4");
    }
}
