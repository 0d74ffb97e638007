use serde_json::json;

use super::*;

fn map(text: &str) -> Map {
    Map::load("map.yml", text.as_bytes()).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn read(text: &str, value: &Value) -> Result<Vec<Trace>, FormatError> {
    let input = value.to_string();
    map(text).read(&Input::parse(input.as_bytes()).unwrap())
}

const FULL: &str = "
traces: /runs
test: /case/name
run: /attempt
model: /llm
calls: /steps/*/calls
name: /fn/name
args: /fn/arguments
id: /id
server: /srv
results: /outputs
result_id: /for
is_error: /failed
content: /value
tokens: { input: /usage/0, output: /usage/1, total: /usage/2 }
final: /answer
";

#[test]
fn every_key_finds_its_part() {
    let traces = read(
        FULL,
        &json!({"runs": [{
            "case": {"name": "t"}, "attempt": 2, "llm": "m", "answer": "Done.", "usage": [1, 2, 3],
            "steps": [
                {"calls": [{"id": 1, "srv": "s", "fn": {"name": "f", "arguments": "{\"x\": 1}"}}]},
                {"text": "no calls"},
                {"calls": [{"id": 2, "fn": {"name": "g", "arguments": "{"}}]},
            ],
            "outputs": [{"for": 2, "failed": true, "value": "no"}, {"for": 1, "value": {"y": 1}}],
        }]}),
    )
    .unwrap();
    let trace = &traces[0];
    assert_eq!((trace.test.as_deref(), trace.run), (Some("t"), Some(2)));
    assert_eq!(trace.model.as_deref(), Some("m"));
    assert_eq!(trace.tool_calls[0].full_id(), "s.f");
    assert_eq!(trace.tool_calls[0].args(), Some(&json!({"x": 1})));
    assert_eq!(trace.tool_calls[1].args(), Some(&json!("{")));
    assert_eq!(trace.pair_results(), [Some(1), Some(0)]);
    assert_eq!(trace.tool_results[0].is_error, Some(true));
    assert_eq!(trace.tool_results[1].is_error, None);
    let tokens = trace.conversation.tokens.as_ref().unwrap();
    assert_eq!(
        (tokens.input, tokens.output, tokens.total),
        (Some(1), Some(2), Some(3))
    );
    assert_eq!(trace.final_text().unwrap(), "Done.");
}

#[test]
fn without_results_the_result_is_in_the_call() {
    let map = "{calls: /log, name: /tool, content: /out, is_error: /error}";
    let traces = read(map, &json!([
        {"log": [{"tool": "a", "out": "x", "error": null}, {"tool": "b", "error": "broken"}, {"tool": "c"}]},
        {"log": []},
        {"log": null},
    ]))
    .unwrap();
    let errors: Vec<_> = traces[0]
        .results_by_call()
        .into_iter()
        .map(|one| one.and_then(|one| one.is_error))
        .collect();
    assert_eq!(errors, [Some(false), Some(true), None]);
    assert_eq!(traces[0].tool_results.len(), 2);
    assert_eq!(traces.len(), 3);
    assert!(traces[1].tool_calls.is_empty() && traces[1].conversation.tokens.is_none());
}

#[test]
fn an_error_names_the_key_and_what_was_found() {
    let small = "{calls: /log, name: /tool, tokens: {total: /n}}";
    for (value, wanted) in [
        (
            json!({"steps": [], "id": 1}),
            "line 1: `calls` is `/log`: found no `log` in an object with the keys `steps`, `id`",
        ),
        (
            json!({"log": 7}),
            "line 1, at /log: `calls` is `/log`: expected a list or an object, found a number",
        ),
        (
            json!({"log": [{"name": "x"}]}),
            "line 1, at /log/0: `name` is `/tool`: found no `tool` in an object with the keys `name`",
        ),
        (
            json!({"log": [{"tool": 7}]}),
            "line 1, at /log/0/tool: `name` is `/tool`: expected a string, found a number",
        ),
        (
            json!({"log": [], "n": "many"}),
            "line 1, at /n: `tokens.total` is `/n`: expected a whole number, found `\"many\"`",
        ),
    ] {
        assert_eq!(read(small, &value).unwrap_err().to_string(), wanted);
    }
}

#[test]
fn mistakes_in_a_map_are_reported_together_with_their_places() {
    let text = "calls: log\nname: tool\nresult_id: /x\n";
    let shown = Map::load("map.yml", text.as_bytes())
        .unwrap_err()
        .render(false);
    for wanted in [
        "`calls` is not a JSON pointer",
        "`name` is not a JSON pointer",
        "`result_id` needs `results`",
        "map.yml:1:",
        "map.yml:2:",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let shown = Map::load("map.yml", b"{calls: /a, nam: /b}")
        .unwrap_err()
        .render(false);
    assert!(shown.contains("name"), "{shown}");
}
