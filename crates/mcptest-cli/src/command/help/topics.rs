//! The topics of `mcptest help`, printed from the registries that the tables of the documentation
//! are generated from.

use mcptest_agents::presets;
use mcptest_formats::READERS;
use mcptest_gate_api::GateInfo;
use mcptest_report::REPORTERS;
use mcptest_runner::MODELS;
use mcptest_runner::registry::PROVIDERS;
use mcptest_suite::targets::{DIRECT_TARGETS, RUN_TARGETS, STEPS};
use mcptest_trace::schema::trace_schema;
use serde_json::Value;

use crate::authorization;
use crate::cli::exit_codes;
use crate::columns::{rows, wrapped};
use crate::gates::Gates;

/// The text of a topic, or of a gate.
pub fn find(word: &str, gates: Gates) -> Option<String> {
    let parts = match word {
        "gates" => gate_list(gates),
        "matchers" => matchers(gates),
        "targets" => targets(gates),
        "exit-codes" => codes(),
        "models" => models(),
        "traces" => traces(),
        "agents" => agents(),
        "authorization" => authorization(gates),
        "reporters" => reporters(),
        _ => {
            // A block ends with a colon where a suite has it.
            let block = word.trim_end_matches(':');
            one_gate(gates.iter().find(|gate| gate.block == block)?, gates)
        }
    };
    Some(parts.join("\n"))
}

/// A paragraph.
fn paragraph(text: &str) -> String {
    format!("{}\n", wrapped(text))
}

/// A heading with its rows.
fn section<N: AsRef<str>, M: AsRef<str>>(title: &str, of: &[(N, M)]) -> String {
    format!("{title}:\n{}", rows(of))
}

fn example(text: &str) -> String {
    format!("Example:\n{text}\n")
}

fn gate_list(gates: Gates) -> Vec<String> {
    let list: Vec<_> = gates
        .iter()
        .map(|gate| (gate.block, gate.summary))
        .collect();
    vec![
        paragraph(
            "A gate is a block of an agent test. It turns the traces of the test's runs into \
             figures, without any model, and judges them by its `expect:` list or by its default.",
        ),
        section("Gates", &list),
        example("  tool_selection:\n    expected_tool: get_weather\n    min_selection_rate: 0.8"),
        paragraph(
            "`mcptest help GATE` lists the targets and keys of one gate; its page in the \
             documentation has a block to paste and the formulas.",
        ),
    ]
}

fn one_gate(gate: &GateInfo, gates: Gates) -> Vec<String> {
    let targets: Vec<_> = gate
        .targets
        .iter()
        .map(|target| {
            (
                target.name,
                format!("{} ({})", target.doc, target.unit.describe()),
            )
        })
        .collect();
    let schema = mcptest_suite::suite_schema(gates);
    let block = resolve(&schema, &schema["$defs"]["Test"]["properties"][gate.block]);
    vec![
        paragraph(&format!("{}: {}", gate.block, gate.summary)),
        section("Targets", &targets),
        section("Keys", &keys(&schema, block)),
    ]
}

fn matchers(gates: Gates) -> Vec<String> {
    let schema = mcptest_suite::suite_schema(gates);
    vec![
        paragraph(
            "A matcher is a mapping; several keys in it must all hold. A plain value means \
             `exact`. A value that is absent matches nothing but `exists: false`, `not` included.",
        ),
        section("Matchers", &keys(&schema, &schema["$defs"]["Matcher"])),
        example(
            "  expect:\n    - tool_calls[0].name: get_weather\n    - final_response: { regex: \
             \"\\\\bsunny\\\\b\" }",
        ),
    ]
}

/// The names of all matchers.
pub fn matcher_names(gates: Gates) -> Vec<String> {
    let schema = mcptest_suite::suite_schema(gates);
    let names = keys(&schema, &schema["$defs"]["Matcher"]);
    names.into_iter().map(|(name, _)| name).collect()
}

fn targets(gates: Gates) -> Vec<String> {
    let of_gates: Vec<_> = gates
        .iter()
        .map(|gate| {
            let names: Vec<&str> = gate.targets.iter().map(|target| target.name).collect();
            (gate.block, names.join(", "))
        })
        .collect();
    vec![
        paragraph("A target is a path to the value that an assertion checks."),
        section("Steps", &STEPS),
        section("In an agent test", &RUN_TARGETS),
        section(
            "In a direct test (tools, resources, prompts)",
            &DIRECT_TARGETS,
        ),
        section("In the `expect:` list of a gate", &of_gates),
        example("  expect:\n    - tool_calls[*].name: { none: { exact: delete_file } }"),
    ]
}

fn codes() -> Vec<String> {
    vec![
        section("Exit codes", &exit_codes()),
        paragraph("If several apply, the exit code is the first of 130, 4, 2, 1, 3, 0."),
    ]
}

fn models() -> Vec<String> {
    let providers = PROVIDERS.map(|known| {
        let ids = if known.prefixes.is_empty() {
            format!("{}/…", known.name)
        } else {
            let ids: Vec<_> = known
                .prefixes
                .iter()
                .map(|prefix| format!("{prefix}…"))
                .collect();
            ids.join(", ")
        };
        let key = match known.key_variables {
            [] => "no key".to_owned(),
            variables => format!("key in {}", variables.join(" or ")),
        };
        (known.name, format!("{ids}; {key}; {}", known.base_url))
    });
    vec![
        paragraph(
            "A model id is a built-in model, an id that begins like those of a provider, or \
             `PROVIDER/ID`. Other providers are declared under `providers:` of a suite.",
        ),
        section("Built-in models, without key and network", &MODELS),
        section("Providers", &providers),
        example("  mcptest run --model claude-haiku-4-5 --model ollama/qwen3:4b"),
    ]
}

fn traces() -> Vec<String> {
    let schema = trace_schema();
    let formats: Vec<_> = READERS
        .iter()
        .map(|reader| (reader.format().name, reader.format().reads))
        .collect();
    vec![
        paragraph(
            "A trace is the evidence of one run: a JSON object with its calls, their results and \
             its messages. `mcptest run --traces FILE` writes traces, `mcptest score` judges them. \
             Formats of other tools are detected; `--format NAME` chooses one.",
        ),
        section("Keys of a trace", &keys(&schema, &schema)),
        section("Formats", &formats),
        example("  mcptest score suite.yml --trace runs/ --test 'weather selection'"),
    ]
}

fn agents() -> Vec<String> {
    let list: Vec<_> = presets()
        .iter()
        .map(|preset| (preset.name, preset.about()))
        .collect();
    vec![
        paragraph(
            "A suite can test an agent that you ship instead of mcptest's own loop: a preset, any \
             command, or a product behind HTTP. mcptest gives it the servers through recording \
             proxies, in its own folder.",
        ),
        section("Presets", &list),
        example("  agent: { preset: claude-code }"),
        paragraph(
            "`mcptest agents show NAME` prints a preset, `mcptest agents check NAME` tries it \
             without network and key.",
        ),
    ]
}

fn authorization(gates: Gates) -> Vec<String> {
    let schema = mcptest_suite::suite_schema(gates);
    let grants = schema["$defs"]["AuthGrantFile"]["oneOf"].as_array();
    let grants: Vec<(&str, &str)> = grants
        .into_iter()
        .flatten()
        .filter_map(|grant| Some((grant["const"].as_str()?, grant["description"].as_str()?)))
        .collect();
    vec![
        paragraph(
            "A server with a `url` may require a token. A token of your own goes into `bearer:` or \
             `headers:`; with `auth:`, mcptest obtains tokens by OAuth and replaces them when they \
             end. What is not set is discovered from the server. `mcptest doctor` explains what a \
             server requires, step by step.",
        ),
        section("Types of `auth:`", &grants),
        section(
            "Keys of `auth:`",
            &keys(&schema, &schema["$defs"]["AuthFile"]),
        ),
        section("Variables", &authorization::VARIABLES),
        example(
            "  servers:\n    calendar:\n      url: https://calendar.example.com/mcp\n      auth: { \
             type: client_credentials, client_id: ci, client_secret_env: CALENDAR_SECRET }",
        ),
        paragraph(
            "Commands with `--url` have flags of the same names, and use the login of an address \
             (`mcptest auth login --url URL`) without any flag.",
        ),
    ]
}

fn reporters() -> Vec<String> {
    let list = REPORTERS.map(|(name, what, _)| (name, what));
    vec![
        section("Reporters", &list),
        example("  mcptest run --reporter pretty --reporter junit=report.xml"),
    ]
}

/// The keys of a type in a schema with their descriptions, each once.
fn keys(schema: &Value, part: &Value) -> Vec<(String, String)> {
    let properties = part["properties"].as_object().into_iter().flatten();
    properties
        .filter(|(_, property)| property.get(mcptest_yaml::ALIAS_OF).is_none())
        .map(|(key, property)| {
            let own = property["description"].as_str();
            let of_type = || resolve(schema, property)["description"].as_str();
            (
                key.clone(),
                own.or_else(of_type).unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn resolve<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
    let reference = part.get("$ref").and_then(Value::as_str);
    reference
        .and_then(|path| schema.pointer(path.trim_start_matches('#')))
        .unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::TOPICS;

    #[test]
    fn every_topic_has_its_rows() {
        for (topic, _) in TOPICS {
            let text = find(topic, &[]).unwrap_or_else(|| panic!("{topic}"));
            assert!(text.ends_with('\n'), "{topic}");
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{topic}: {line}");
            }
        }
        let matchers = find("matchers", &[]).unwrap();
        assert!(matchers.contains("\n  regex "), "{matchers}");
        assert!(!matchers.contains("contains_all"), "aliases are left out");
        assert!(find("weather", &[]).is_none());
    }
}
