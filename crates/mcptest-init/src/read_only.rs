//! Which tools can be called without changing anything.
//!
//! An annotation decides: `readOnlyHint`. Without one, the words of the name decide. In doubt, a
//! tool is not called: a missing test does less harm than a mail that was sent.

use mcptest_catalog::lexical::words;
use serde_json::Value;

/// The reason why a tool is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReadOnly {
    /// Its annotations say that it changes something.
    Marked,
    /// Its annotations contradict each other.
    Contradiction,
    /// It executes its argument: a command, code, SQL.
    Executes,
    /// Nothing shows that it only reads.
    Unmarked,
}

impl NotReadOnly {
    /// The reason, for a list of tools.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Marked => "their annotations say that they change something",
            Self::Contradiction => "their annotations contradict each other",
            Self::Executes => "they run what they are given, and have no `readOnlyHint`",
            Self::Unmarked => {
                "they have no `readOnlyHint`, and their names do not show that they only read"
            }
        }
    }
}

/// Words that begin or end the name of a tool that reads.
const READS: [&str; 46] = [
    "browse",
    "calculate",
    "check",
    "compare",
    "compute",
    "convert",
    "count",
    "describe",
    "details",
    "diff",
    "echo",
    "estimate",
    "explain",
    "fetch",
    "find",
    "get",
    "head",
    "hello",
    "help",
    "info",
    "inspect",
    "list",
    "lookup",
    "measure",
    "parse",
    "ping",
    "preview",
    "query",
    "read",
    "resolve",
    "retrieve",
    "scan",
    "search",
    "show",
    "stat",
    "stats",
    "status",
    "suggest",
    "summarize",
    "tail",
    "translate",
    "validate",
    "verify",
    "version",
    "view",
    "weather",
];

/// Names of arithmetic, which are harmless on numbers alone.
const ARITHMETIC: [&str; 10] = [
    "add", "subtract", "multiply", "divide", "sum", "power", "sqrt", "modulo", "average", "round",
];

/// Words of a name that may change something, wherever they are.
const CHANGES: &str = "accept activate add append apply approve archive assign attach authorize ban block book buy \
    cancel change charge checkin checkout checkpoint claim cleanup clear click clone close commit complete configure \
    confirm connect consume copy create deactivate decline decrement delete deploy destroy disable disconnect dismiss \
    download drag drop edit emit enable enqueue erase eval evict exec execute export fill finalize flush follow force \
    fork generate give grant handle import increment index init initialize insert install invite invoke join kill launch \
    like load lock login logout log make mark merge migrate mkdir modify move mutate mute navigate notify open order \
    overwrite patch pause pay perform pin play poll pop post press print process promote provision publish pull purchase \
    purge push put reboot rebuild receive record redeem refresh register reject release reload remember remove rename \
    reopen replace reply request reserve reset resize restart restore resume retry revert revoke rm rollback rotate run \
    save schedule select send set share shutdown sign sleep spawn stage start stash stop store stream submit subscribe \
    suspend swap switch sync tag take terminate toggle touch trade train transfer trash trigger type unarchive unassign \
    unblock undo uninstall unlock unpin unsubscribe unzip update upgrade upload upsert use visit vote wait wipe withdraw \
    write zip";

/// Verbs that, at the start of a description or in its first sentence, are a reason for doubt.
const CHANGES_IN_TEXT: [&str; 24] = [
    "create",
    "creates",
    "delete",
    "deletes",
    "remove",
    "removes",
    "update",
    "updates",
    "write",
    "writes",
    "send",
    "sends",
    "modify",
    "modifies",
    "overwrite",
    "overwrites",
    "insert",
    "inserts",
    "execute",
    "executes",
    "edit",
    "edits",
    "publish",
    "upload",
];

/// Names of arguments whose value is executed.
const EXECUTED: [&str; 12] = [
    "sql",
    "statement",
    "command",
    "cmd",
    "shell",
    "script",
    "code",
    "javascript",
    "python",
    "cypher",
    "program",
    "mutation",
];

/// Decides whether a tool, as listed, only reads.
///
/// # Errors
/// The reason why the tool is not called.
pub fn only_reads(tool: &Value) -> Result<(), NotReadOnly> {
    let hint = |name: &str| {
        let value = tool.get("annotations")?.get(name)?;
        value.as_bool()
    };
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        // The second hint has a meaning only where the first is false.
        (Some(true), Some(true)) => return Err(NotReadOnly::Contradiction),
        (Some(true), _) => return Ok(()),
        (Some(false), _) | (None, Some(true)) => return Err(NotReadOnly::Marked),
        (None, _) => {}
    }
    if takes(tool, &EXECUTED) {
        return Err(NotReadOnly::Executes);
    }
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    if named_to_read(name, tool) && !described_to_change(tool) {
        Ok(())
    } else {
        Err(NotReadOnly::Unmarked)
    }
}

fn properties(tool: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = tool.pointer("/inputSchema/properties");
    properties.and_then(Value::as_object).into_iter().flatten()
}

fn takes(tool: &Value, names: &[&str]) -> bool {
    properties(tool).any(|(name, _)| {
        let words = words(name);
        words
            .last()
            .is_some_and(|last| names.contains(&last.as_str()))
    })
}

fn named_to_read(name: &str, tool: &Value) -> bool {
    let words = words(name);
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return false;
    };
    if words.len() == 1 && ARITHMETIC.contains(&first.as_str()) {
        let is_number = |(_, schema): (&String, &Value)| {
            matches!(
                schema.get("type").and_then(Value::as_str),
                Some("number" | "integer")
            )
        };
        return properties(tool).next().is_some() && properties(tool).all(is_number);
    }
    let changes = |word: &String| CHANGES.split_whitespace().any(|known| known == word);
    let reads = |word: &String| READS.contains(&word.as_str());
    (reads(first) || reads(last)) && !words.iter().any(changes)
}

/// The first sentence of the description has a verb of changing.
fn described_to_change(tool: &Value) -> bool {
    let text = tool.get("description").and_then(Value::as_str);
    let text = text.unwrap_or_default();
    let start: String = text.chars().take(400).collect();
    let sentence = start.split(". ").next().unwrap_or_default();
    words(sentence)
        .iter()
        .any(|word| CHANGES_IN_TEXT.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(name: &str) -> Result<(), NotReadOnly> {
        only_reads(&json!({ "name": name }))
    }

    #[test]
    fn annotations_decide() {
        let tool =
            |annotations: Value| only_reads(&json!({"name": "get_x", "annotations": annotations}));
        assert_eq!(tool(json!({"readOnlyHint": true})), Ok(()));
        assert_eq!(
            only_reads(&json!({"name": "delete_x", "annotations": {"readOnlyHint": true}})),
            Ok(())
        );
        assert_eq!(
            tool(json!({"readOnlyHint": false})),
            Err(NotReadOnly::Marked)
        );
        assert_eq!(
            tool(json!({"destructiveHint": true})),
            Err(NotReadOnly::Marked)
        );
        assert_eq!(
            tool(json!({"readOnlyHint": true, "destructiveHint": true})),
            Err(NotReadOnly::Contradiction)
        );
        // A hint that is not a boolean is ignored.
        assert_eq!(tool(json!({"readOnlyHint": "true"})), Ok(()));
        assert_eq!(tool(json!({"destructiveHint": false})), Ok(()));
    }

    #[test]
    fn names_that_read_are_called() {
        for name in [
            "get_weather",
            "list_notes",
            "read_file",
            "searchIssues",
            "git_status",
            "git_diff",
            "brave_web_search",
            "fetch",
            "get-sum",
            "describe_table",
            "echo",
            "calculate",
            "check_status",
        ] {
            assert_eq!(named(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn every_doubt_is_against_a_call() {
        for name in [
            "create_note",
            "delete",
            "get_or_create_user",
            "find_and_update",
            "search_replace",
            "read_write",
            "checkout",
            "check_out_order",
            "send_status",
            "fetch_and_delete",
            "list_and_purge",
            "run_query",
            "notes",
            "do_it",
            "git_commit",
            "sequentialthinking",
            "",
            "日本",
            "set_info",
            "post_search",
            "get_lock",
            "log_get",
        ] {
            assert_eq!(named(name), Err(NotReadOnly::Unmarked), "{name}");
        }
        let described =
            json!({"name": "get_token", "description": "Creates a token and returns it."});
        assert_eq!(only_reads(&described), Err(NotReadOnly::Unmarked));
        let later = json!({"name": "get_token", "description": "Get the token. It updates daily."});
        assert_eq!(only_reads(&later), Ok(()));
        let sql = json!({"name": "query", "inputSchema": {"properties": {"sql": {}}}});
        assert_eq!(only_reads(&sql), Err(NotReadOnly::Executes));
    }

    #[test]
    fn arithmetic_on_numbers_is_harmless() {
        let add = |kind: &str| {
            only_reads(
                &json!({"name": "add", "inputSchema": {"properties": {"a": {"type": kind}, "b": {"type": "number"}}}}),
            )
        };
        assert_eq!(add("integer"), Ok(()));
        assert_eq!(add("string"), Err(NotReadOnly::Unmarked));
        assert_eq!(named("add"), Err(NotReadOnly::Unmarked));
    }
}
