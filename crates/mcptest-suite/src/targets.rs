//! The targets of assertions, described for the documentation and `mcptest help targets`.
//!
//! The figures of gates are not here: each gate lists its own.

/// The steps of a target, with what they select.
pub const STEPS: [(&str, &str); 4] = [
    (".key", "a key of letters, digits, `_`, `-`, `$` and `@`"),
    (
        "[\"any key\"]",
        "any key, in double or single quotes; `\\\"` and `\\\\` are escapes",
    ),
    (
        "[2], [-1]",
        "an element, counted from the front or the back",
    ),
    (
        "[*]",
        "every element of a list, or every value of a mapping, as a list",
    ),
];

/// The values of a run that assertions of an agent test can select.
pub const RUN_TARGETS: [(&str, &str); 9] = [
    (
        "tool_calls[i]",
        "the calls, in order: `.name`, `.server`, `.args`, `.caller`, `.turn`, `.id`",
    ),
    ("tool_names", "the names of the calls, in order"),
    (
        "tool_results[i]",
        "the result of call `i`: `.is_error`, `.content`, `.structured_content`, `.error`; `null` \
         without one",
    ),
    ("final_response", "the closing message"),
    (
        "conversation.turns[i]",
        "the messages, the prompt included: `.role`, `.content`",
    ),
    (
        "conversation.tokens",
        "`.input`, `.output` and `.total`, where every turn reported its usage",
    ),
    (
        "trace.stop_reason",
        "why the run ended: `end`, `max_turns`, `max_tokens`, `withheld`, `malformed_call`, `error`",
    ),
    (
        "trace",
        "other keys of the trace, such as a benchmark's `reward`",
    ),
    (
        "workspace.files[\"path\"]",
        "the text of a file that an agent under test left",
    ),
];

/// The values that assertions of a direct tool test can select.
pub const TOOL_TARGETS: [(&str, &str); 5] = [
    (
        "result.text",
        "the text of all text blocks, joined by line ends",
    ),
    (
        "result.structuredContent",
        "the structured content, as the server sent it",
    ),
    ("result.content[i]", "the content blocks"),
    ("result.is_error", "true if the tool reported an error"),
    (
        "error",
        "the protocol error with `.code` and `.message`, else `null`",
    ),
];

#[cfg(test)]
mod tests {
    use mcptest_trace::target::Target;
    use mcptest_trace::trace::OBSERVABLE_ROOTS;

    use super::*;
    use crate::check::TOOL_ROOTS;

    /// The key that a described target starts with.
    fn root(target: &str) -> &str {
        target.split(['.', '[']).next().unwrap()
    }

    #[test]
    fn every_root_is_described_and_no_other() {
        for (described, roots) in [
            (&RUN_TARGETS[..], &OBSERVABLE_ROOTS[..]),
            (&TOOL_TARGETS[..], &TOOL_ROOTS[..]),
        ] {
            for (target, _) in described {
                assert!(roots.contains(&root(target)), "{target}");
            }
            for known in roots {
                assert!(
                    described.iter().any(|(target, _)| root(target) == *known),
                    "`{known}` is not described"
                );
            }
        }
    }

    #[test]
    fn described_targets_and_steps_parse() {
        let described = RUN_TARGETS.iter().chain(&TOOL_TARGETS);
        for (target, _) in described {
            let text = target.replace("[i]", "[0]");
            assert!(Target::parse(&text).is_ok(), "{target}");
        }
        for step in STEPS.iter().flat_map(|(steps, _)| steps.split(", ")) {
            assert!(
                Target::parse(&format!("tool_calls{step}")).is_ok(),
                "{step}"
            );
        }
    }
}
