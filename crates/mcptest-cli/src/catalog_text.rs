//! The entries that servers list, as text for people and as JSON.

use std::fmt::Write as _;

use mcptest_catalog::doctor::ServerReport;
use mcptest_catalog::saved::split_resources;
use mcptest_json::text::{one_line, shorten};
use serde_json::{Value, json};

/// The number of characters of a description in a list.
const MAX_DESCRIPTION: usize = 72;

/// The name, version and revision of a server, in one line.
pub fn headline(report: &ServerReport) -> String {
    let info = |key: &str| report.server_info.as_ref()?.get(key)?.as_str();
    let own: Vec<&str> = [info("name"), info("version")]
        .into_iter()
        .flatten()
        .collect();
    let mut line = one_line(&report.name);
    if !own.is_empty() {
        let _ = write!(line, "  {}", one_line(&own.join(" ")));
    }
    if let Some(revision) = &report.revision {
        let _ = write!(line, ", speaks {}", one_line(revision));
    }
    line
}

/// The entries of a server, one line each.
pub fn listed(report: &ServerReport) -> String {
    let mut out = format!("{}\n", headline(report));
    if let Some(error) = &report.error {
        let _ = writeln!(out, "  does not start: {}", error.message);
        return out;
    }
    let mut section = |title: &str, entries: &[Value], signature: fn(&Value) -> String| {
        if entries.is_empty() {
            return;
        }
        let _ = writeln!(out, "  {title} ({})", entries.len());
        let rows: Vec<(String, String)> = entries
            .iter()
            .map(|entry| (signature(entry), described(entry)))
            .collect();
        let widths = rows.iter().map(|(name, _)| name.chars().count());
        let width = widths.max().unwrap_or(0).min(48);
        for (name, description) in rows {
            let line = format!("    {name:width$}  {description}");
            let _ = writeln!(out, "{}", line.trim_end());
        }
    };
    let (templates, resources) = split_resources(&report.resources);
    section("tools", &report.listed, tool_signature);
    section("resources", &resources, |entry| text(entry, "uri"));
    section("resource templates", &templates, |entry| {
        text(entry, "uriTemplate")
    });
    section("prompts", &report.prompts, prompt_signature);
    let lists = [&report.listed, &report.resources, &report.prompts];
    let missing = missing_lists(report);
    if missing.is_empty() && lists.iter().all(|list| list.is_empty()) {
        out.push_str("  lists nothing\n");
    }
    out.push_str(&missing);
    out
}

/// The entries of a server with everything that a caller needs to know.
pub fn detailed(report: &ServerReport) -> String {
    let mut out = format!("{}\n", headline(report));
    if let Some(Value::String(instructions)) = &report.instructions {
        paragraph(&mut out, "  instructions: ", instructions);
    }
    for tool in &report.listed {
        let _ = writeln!(out, "\n  {}", tool_signature(tool));
        paragraph(&mut out, "    ", &text_of(tool, "description"));
        arguments(&mut out, tool);
        let hints = hints(tool);
        if !hints.is_empty() {
            let _ = writeln!(out, "    hints: {hints}");
        }
    }
    let (templates, resources) = split_resources(&report.resources);
    let others = [
        ("resource", &resources, "uri"),
        ("resource template", &templates, "uriTemplate"),
        ("prompt", &report.prompts, "name"),
    ];
    for (kind, entries, key) in others {
        for entry in entries {
            let _ = writeln!(out, "\n  {kind} {}", text(entry, key));
            paragraph(&mut out, "    ", &text_of(entry, "description"));
        }
    }
    out
}

/// The lists that a server advertises and does not give, one line each.
fn missing_lists(report: &ServerReport) -> String {
    let missing = report.problems.iter().filter(|it| it.is_missing_list());
    missing
        .map(|problem| format!("  error: {}\n", one_line(&problem.message)))
        .collect()
}

/// The entries of servers, as they were sent.
pub fn machine(reports: &[ServerReport]) -> Value {
    let one = |report: &ServerReport| {
        let (templates, resources) = split_resources(&report.resources);
        json!({
            "name": report.name,
            "error": report.error,
            "server_info": report.server_info,
            "revision": report.revision,
            "instructions": report.instructions,
            "tools": report.listed,
            "resources": resources,
            "resource_templates": templates,
            "prompts": report.prompts,
            "problems": report.problems.iter().filter(|it| it.is_missing_list()).collect::<Vec<_>>(),
        })
    };
    let servers: Vec<Value> = reports.iter().map(one).collect();
    json!({"schema_version": 1, "servers": servers})
}

fn text(entry: &Value, key: &str) -> String {
    let text = entry.get(key).and_then(Value::as_str).unwrap_or("?");
    one_line(text)
}

fn text_of(entry: &Value, key: &str) -> String {
    let text = entry.get(key).and_then(Value::as_str);
    text.unwrap_or_default().trim().to_owned()
}

/// The first sentence of a description or the title, in one line.
fn described(entry: &Value) -> String {
    let description = text_of(entry, "description");
    let first = description.lines().next().unwrap_or_default();
    let first = match first.split_once(". ") {
        Some((sentence, _)) => sentence,
        None => first,
    };
    shorten(&one_line(first.trim_end_matches('.')), MAX_DESCRIPTION)
}

/// `name(city, limit?)`.
fn tool_signature(tool: &Value) -> String {
    let schema = tool.get("inputSchema");
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let required = schema.and_then(|schema| schema.get("required")?.as_array());
    let is_required = |name: &str| {
        let mut names = required.into_iter().flatten().filter_map(Value::as_str);
        names.any(|one| one == name)
    };
    let names = properties.into_iter().flat_map(|all| all.keys());
    let names: Vec<String> = names
        .map(|name| {
            let mark = if is_required(name) { "" } else { "?" };
            format!("{}{mark}", one_line(name))
        })
        .collect();
    format!("{}({})", text(tool, "name"), names.join(", "))
}

fn prompt_signature(prompt: &Value) -> String {
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let names: Vec<String> = arguments
        .into_iter()
        .flatten()
        .map(|argument| {
            let required = argument.get("required").and_then(Value::as_bool) == Some(true);
            let mark = if required { "" } else { "?" };
            format!("{}{mark}", text(argument, "name"))
        })
        .collect();
    format!("{}({})", text(prompt, "name"), names.join(", "))
}

/// One line for each argument: its name, type and description.
fn arguments(out: &mut String, tool: &Value) {
    let properties = tool
        .pointer("/inputSchema/properties")
        .and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let kind = match (schema.get("type"), schema.get("enum")) {
            (_, Some(Value::Array(values))) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                shorten(&values.join(" | "), MAX_DESCRIPTION)
            }
            (Some(Value::String(kind)), _) => kind.clone(),
            (Some(Value::Array(kinds)), _) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                kinds.join(" | ")
            }
            _ => "any".to_owned(),
        };
        let description = text_of(schema, "description");
        let start = format!("    {}: {}", one_line(name), one_line(&kind));
        let _ = match description.as_str() {
            "" => writeln!(out, "{start}"),
            text => writeln!(out, "{start}. {}", shorten(&one_line(text), 200)),
        };
    }
}

/// The annotations that are set, as the protocol names them.
fn hints(tool: &Value) -> String {
    let annotations = tool.get("annotations").and_then(Value::as_object);
    let set = annotations.into_iter().flatten();
    let set: Vec<String> = set
        .filter(|(_, value)| value.is_boolean())
        .map(|(name, value)| format!("{} {value}", one_line(name)))
        .collect();
    set.join(", ")
}

fn paragraph(out: &mut String, start: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let indent = start.chars().count();
    for (index, line) in mcptest_json::text::lines(text).lines().enumerate() {
        let line = if index == 0 {
            format!("{start}{line}")
        } else {
            format!("{:indent$}{line}", "")
        };
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_one_line_each() {
        let mut report = ServerReport::new("notes");
        report.server_info = Some(json!({"name": "Notes\u{1b}[31m", "version": "1.0"}));
        report.revision = Some("2025-11-25".to_owned());
        report.listed = vec![
            json!({"name": "read", "description": "Read a note. Then stop.\nMore", "inputSchema": {"properties": {"title": {"type": "string"}, "n": {}}, "required": ["title"]}}),
            json!("not a tool"),
        ];
        report.resources = vec![json!({"uri": "a://b"}), json!({"uriTemplate": "a://{c}"})];
        report.prompts = vec![
            json!({"name": "p", "arguments": [{"name": "x", "required": true}, {"name": "y"}]}),
        ];
        assert_eq!(
            listed(&report),
            "notes  Notes\\u{1b}[31m 1.0, speaks 2025-11-25\n  tools (2)\n    read(title, n?)  Read a note\n    ?()\n  resources (1)\n    a://b\n  resource templates (1)\n    a://{c}\n  prompts (1)\n    p(x, y?)\n"
        );
        assert!(detailed(&report).contains("    title: string\n    n: any\n"));
        assert_eq!(listed(&ServerReport::new("x")), "x\n  lists nothing\n");
    }
}
