//! Templates of mock answers: what is rendered is JSON. The input is JSON, `[template, arguments]`,
//! or the text of a template.

use mcptest_mock::Template;
use serde_json::{Value, json};

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (template, arguments) = match serde_json::from_str(text) {
        Ok(Value::Array(parts)) if parts.len() == 2 => (parts[0].clone(), parts[1].clone()),
        _ => (
            json!({"text": text}),
            json!({"city": "Paris\n\"\u{1b}", "n": [1, {"a": null}]}),
        ),
    };
    match Template::compile(&template) {
        Err(errors) => assert!(!errors.is_empty(), "rejected without a reason"),
        Ok(compiled) => {
            let mut out = Vec::new();
            compiled.render(&arguments, &mut out);
            if let Err(error) = serde_json::from_slice::<Value>(&out) {
                panic!("{error}: {}", String::from_utf8_lossy(&out));
            }
            if !template.to_string().contains('$') {
                let rendered: Value = serde_json::from_slice(&out).unwrap_or_default();
                assert_eq!(rendered, template, "changed without a reference");
            }
        }
    }
}
