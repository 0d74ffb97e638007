//! Traces of all sorts, for properties that must hold for every gate.

use std::sync::LazyLock;

use mcptest_attack::{Attack, WrittenAttack};
use mcptest_gates::AttackContext;
use mcptest_trace::trace::Trace;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Two attacks, whose goals some of the runs meet.
static ATTACKS: LazyLock<Vec<Attack>> = LazyLock::new(|| {
    let attack = |name: &str, goal: Value| {
        let target = json!({"tool": "search"});
        let attack = json!({"name": name, "target": target, "payload": "plain-ask", "goal": goal});
        let written: WrittenAttack = serde_json::from_value(attack).expect("an attack");
        written.compile().expect("a good attack")
    };
    vec![
        attack("deletes", json!({"call": {"tool": "delete_note"}})),
        attack(
            "finds",
            json!({"calls": [{"tool": "find"}, {"tool": "create_note"}]}),
        ),
    ]
});

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = ATTACKS.iter().map(|attack| attack.name().to_owned());
    names.collect()
});

/// The attacks of all tests.
pub fn attacks() -> AttackContext<'static> {
    AttackContext {
        declared: Some(&ATTACKS),
        invalid: &[],
        injected: &NAMES,
    }
}

/// A short run over five tools, some of them failing or changed by a fault, with or without tokens.
pub fn trace() -> impl Strategy<Value = Trace> {
    let tool = prop::sample::select(vec![
        "search",
        "find",
        "create_note",
        "delete_note",
        "weather_now",
    ]);
    let args = prop::collection::btree_map("[p-s]", 0_i64..3, 0..4);
    let call = (tool, args, prop::option::of(any::<bool>()), any::<bool>());
    let text = prop::sample::select(vec![
        "",
        "I created the note.",
        "Done.",
        "I will search.",
        "The note was deleted.",
    ]);
    let parts = (
        prop::collection::vec(call, 0..6),
        prop::collection::vec(text, 0..4),
        prop::option::of(0_u64..1000),
        0_usize..4,
    );
    parts.prop_map(|(calls, texts, tokens, offered)| {
        let mut results = Vec::new();
        let calls: Vec<Value> = calls
            .into_iter()
            .map(|(name, args, is_error, faulted)| {
                let mut result = json!({});
                if let Some(is_error) = is_error {
                    result["is_error"] = is_error.into();
                    if is_error && faulted {
                        result["error_kind"] = "timeout".into();
                        result["fault"] = "hung".into();
                    }
                }
                results.push(result);
                json!({"name": name, "server": "a", "args": args})
            })
            .collect();
        let turns: Vec<Value> = texts.iter().map(|text| json!({"role": "assistant", "content": text})).collect();
        let mut trace = json!({
            "tool_calls": calls, "tool_results": results, "conversation": {"turns": turns}, "distractors": ["a.weather_now"],
        });
        if let Some(tokens) = tokens {
            trace["conversation"]["tokens"] = json!({"total": tokens, "input": tokens, "output": 0});
        }
        // Nothing, or the first of these tools.
        let tools = [
            json!({"name": "search", "inputSchema": {"required": ["p"]}}),
            json!({"name": "find", "server": "a", "description": "Finds things."}),
        ];
        if let Some(count) = offered.checked_sub(1) {
            trace["catalog"] = tools[..count].to_vec().into();
        }
        serde_json::from_value(trace).expect("a trace")
    })
}
