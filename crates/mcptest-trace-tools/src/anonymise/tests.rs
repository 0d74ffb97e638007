use proptest::prelude::*;
use serde_json::json;

use super::*;

fn anonymised(traces: &[Value]) -> Vec<Value> {
    let mut collector = Collector::new(&[]);
    for trace in traces {
        collector.observe(trace);
    }
    let mut anonymiser = collector.finish();
    let mut traces = traces.to_vec();
    for trace in &mut traces {
        anonymiser.apply(trace);
    }
    traces
}

#[test]
fn values_are_replaced_everywhere_and_consistently() {
    let trace = json!({
        "test": "mia@x.org stays: it is a name",
        "tool_calls": [
            {"id": "mia_li_3668", "name": "find_user", "args": {"first_name": "Mia", "last_name": "Li-Chan", "zip": "78712"}},
            {"id": "c2", "name": "get_user", "args": {"user_id": "mia_li_3668"}}],
        "tool_results": [
            {"call_id": "c2", "content": [{"type": "text",
              "text": "{\"name\":\"Mia Li-Chan\",\"email\":\"Mia@X.org\",\"phone\":4155552671,\"orders\":[\"#W1\"]}"}]}],
        "conversation": {"turns": [{"role": "user", "content": "I am Mia Li-Chan, mia@x.org."}],
                         "tokens": {"total": 78712}},
        "final_response": "Done, Mia. Your account mia_li_3668 (78712) has order #W1."
    });
    let out = &anonymised(&[trace])[0];
    assert_eq!(out["test"], "mia@x.org stays: it is a name");
    assert_eq!(out["tool_calls"][0]["id"], "mia_li_3668");
    let args = json!({"first_name": "First1", "last_name": "Last1", "zip": "00001"});
    assert_eq!(out["tool_calls"][0]["args"], args);
    assert_eq!(out["tool_calls"][1]["args"]["user_id"], "user_1");
    let text = out["tool_results"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    let user: Value = serde_json::from_str(text).unwrap();
    let expected =
        json!({"name": "Person 1", "email": "user1@example.com", "phone": 1, "orders": ["#W1"]});
    assert_eq!(user, expected);
    assert_eq!(
        out["conversation"]["turns"][0]["content"],
        "I am Person 1, user1@example.com."
    );
    assert_eq!(out["conversation"]["tokens"]["total"], 78712);
    let expected = "Done, First1. Your account user_1 (00001) has order #W1.";
    assert_eq!(out["final_response"], expected);
}

#[test]
fn a_value_has_one_placeholder_over_all_traces() {
    let trace =
        |name: &str| json!({"tool_calls": [], "final_response": "ok", "note": {"full_name": name}});
    let out = anonymised(&[trace("Ann Bo"), trace("Cid Du"), trace("ann bo")]);
    let names: Vec<&Value> = out
        .iter()
        .map(|trace| &trace["note"]["full_name"])
        .collect();
    assert_eq!(names, ["Person 1", "Person 2", "Person 1"]);
}

#[test]
fn short_values_and_parts_of_words_are_not_searched_for() {
    let trace = json!({"tool_calls": [{"name": "t", "args": {"first_name": "Al", "last_name": "Mark"}}],
        "final_response": "Al said: Markdown by Mark."});
    let out = &anonymised(&[trace])[0];
    assert_eq!(out["final_response"], "Al said: Markdown by Last1.");
}

#[test]
fn keys_that_the_user_names_are_personal_too() {
    let mut collector = Collector::new(&["loyalty".to_owned()]);
    let mut trace = json!({"tool_calls": [{"name": "t", "args": {"loyalty": "gold-77"}}], "final_response": "gold-77"});
    collector.observe(&trace);
    let mut anonymiser = collector.finish();
    anonymiser.apply(&mut trace);
    assert_eq!(trace["final_response"], "value_1");
    assert_eq!(anonymiser.counts(), [(Kind::Other, 1)]);
}

fn shape(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), shape(value)))
            .collect(),
        Value::String(_) => "string".into(),
        Value::Number(_) => "number".into(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn structure_is_kept_and_a_second_time_changes_nothing(
        email in "[a-z]{1,8}@[a-z]{1,8}\\.(com|org)",
        name in "[A-Z][a-z]{2,8} [A-Z][a-z]{2,8}",
        text in ".{0,40}",
        number in 0..u64::MAX,
    ) {
        let trace = json!({
            "tool_calls": [{"name": "t", "args": {"email": email, "customer_name": name, "n": number, "text": text}}],
            "final_response": format!("{text} {name} <{email}>"),
        });
        let out = anonymised(std::slice::from_ref(&trace));
        prop_assert_eq!(shape(&out[0]), shape(&trace));
        let answer = out[0]["final_response"].as_str().unwrap();
        prop_assert!(!answer.contains(&email), "{}", answer);
        let again = anonymised(&out);
        prop_assert_eq!(&again[0]["tool_calls"][0]["args"]["email"], &out[0]["tool_calls"][0]["args"]["email"]);
    }
}
