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
pub const RUN_TARGETS: [(&str, &str); 15] = [
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
        "client.sampling[i]",
        "what servers asked of the client, as in a direct test; also `client.elicitation[i]`, \
         `client.roots[i]`",
    ),
    (
        "logs[i]",
        "the log messages of servers: `.level`, `.logger`, `.data`",
    ),
    (
        "progress[i]",
        "the progress that servers reported: `.progress`, `.total`, `.message`",
    ),
    (
        "notifications[i]",
        "all notifications of servers: `.method`, `.params`",
    ),
    ("updates", "the URIs of resources that changed"),
    (
        "list_changed",
        "the lists that changed: `tools`, `resources`, `prompts`",
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

/// The values that assertions of a direct test can select.
pub const DIRECT_TARGETS: [(&str, &str); 27] = [
    (
        "result.text",
        "the text of the answer: of all text blocks, contents or messages, joined by line ends",
    ),
    (
        "result.structuredContent",
        "the structured content of a tool, as the server sent it",
    ),
    ("result.content[i]", "the content blocks of a tool"),
    ("result.is_error", "true if the tool reported an error"),
    (
        "result.contents[i]",
        "the contents of a resource: `.uri`, `.mimeType`, `.text` or `.blob`",
    ),
    (
        "result.messages[i]",
        "the messages of a prompt: `.role`, `.content`",
    ),
    (
        "result.completion",
        "a completion: `.values`, `.total`, `.hasMore`",
    ),
    (
        "result.tools",
        "with `list`: the entries of all pages; also `result.resources`, \
         `result.resourceTemplates`, `result.prompts`",
    ),
    ("result.pages", "with `list`: the number of pages"),
    ("result.uri", "the URI that was read"),
    (
        "error",
        "the protocol error with `.code` and `.message`, else `null`",
    ),
    (
        "client.sampling[i]",
        "a request for an answer of the client's model: its parameters (`.messages`, \
         `.systemPrompt`, `.maxTokens`), `.text` of all messages, and `.answer` or `.error`",
    ),
    (
        "client.elicitation[i]",
        "a form for the user: `.message`, `.requestedSchema`, and `.answer` or `.error`",
    ),
    ("client.roots[i]", "a request for the client's roots"),
    ("client.other[i]", "a request of another kind: `.method`"),
    ("logs[i]", "a log message: `.level`, `.logger`, `.data`"),
    (
        "progress[i]",
        "a report of progress: `.progress`, `.total`, `.message`",
    ),
    (
        "notifications[i]",
        "a notification of any kind: `.method`, `.params`",
    ),
    ("updates", "the URIs of resources that changed"),
    (
        "list_changed",
        "the lists that changed: `tools`, `resources`, `prompts`",
    ),
    (
        "task.status",
        "the last status of a task: `completed`, `failed`, `cancelled`, …",
    ),
    (
        "task.statuses",
        "the statuses of a task in order, such as `[working, completed]`",
    ),
    (
        "task",
        "the task as the server described it last: `.taskId`, `.statusMessage`, `.ttl`",
    ),
    (
        "cancellation.sent",
        "true if the call was cancelled in time",
    ),
    (
        "cancellation.answered",
        "true if the server answered the cancelled call; absent over HTTP and for tasks",
    ),
    (
        "cancellation.error",
        "for a task: the error of `tasks/cancel`, else `null`",
    ),
    (
        "cancellation.responsive",
        "true if the server answers other requests afterwards",
    ),
];

#[cfg(test)]
mod tests {
    use mcptest_trace::target::Target;
    use mcptest_trace::trace::OBSERVABLE_ROOTS;

    use super::*;
    use crate::check::DIRECT_ROOTS;

    /// The key that a described target starts with.
    fn root(target: &str) -> &str {
        target.split(['.', '[']).next().unwrap()
    }

    #[test]
    fn every_root_is_described_and_no_other() {
        for (described, roots) in [
            (&RUN_TARGETS[..], &OBSERVABLE_ROOTS[..]),
            (&DIRECT_TARGETS[..], &DIRECT_ROOTS[..]),
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
        let described = RUN_TARGETS.iter().chain(&DIRECT_TARGETS);
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
