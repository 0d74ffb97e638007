//! DESC-010: the description states an action but never says what the tool returns.

use super::{
    Check, Hit, Rule, Severity, Smell, chars, describes_return, description, snippet, wording,
};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-010",
    severity: Severity::Warning,
    title: "the description states an action but never says what the tool returns",
    why: "A model plans the next step based on the result. The rule is coarse: it searches the description for return, output or result as a whole word in any form, and accepts an `outputSchema`. An empty description is DESC-001 alone.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather here. Returns temperature and sky as text.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: Some(Smell::MissingReturnFormat),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    if description(tool).is_empty() || describes_return(tool) {
        return Vec::new();
    }
    vec![
        Hit::new(
            "the description does not mention what the tool returns",
            "add a sentence such as `Returns a list of orders, each with id, total and status.`, or an `outputSchema`",
        )
        .at("/description")
        .fix(fix(tool))
        // The fixes of DESC-001 and DESC-003 replace the whole description.
        .minor_if(chars(description(tool)) < 20 || super::repeats_name(tool)),
    ]
}

/// The longest description that a fix repeats.
const MAX_REPEATED: usize = 160;

fn fix(tool: &Tool) -> String {
    let sentence = wording::returns(tool);
    if chars(description(tool)) > MAX_REPEATED || description(tool).contains('\n') {
        return sentence;
    }
    let text = wording::with_sentence(tool, &sentence);
    snippet::member("description", &text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_words_only() {
        let fires = |text: &str| {
            !check(&Tool::from_listing(None, &json!({"name": "x", "description": text})).unwrap())
                .is_empty()
        };
        for text in [
            "Returns the page.",
            "Writes it to the Output",
            "See the results",
            "the resulting file",
        ] {
            assert!(!fires(text), "{text}");
        }
        for text in [
            "Get a page",
            "Set output_path",
            "The outputDir of it",
            "A resultant force",
            "Find returners",
        ] {
            assert!(fires(text), "{text}");
        }
    }
}
