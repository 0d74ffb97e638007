//! Starting a server, taking its catalog, and trying its tools.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use mcptest_catalog::doctor::ServerReport;
use mcptest_init::server_draft::{CallPolicy, Outcome, RefusedCall, ServerDraft};
use mcptest_json::text::one_line;
use mcptest_redact::redact::Redactor;
use mcptest_redact::volatile::BUILTIN;
use mcptest_runner::{Answer, InspectSettings, LiveServer};
use mcptest_suite::suite::Server;
use mcptest_trace::verdict::{ErrorKind, RunError};
use regex::Regex;
use serde_json::{Map, Value};

use super::source::is_downloaded;
use crate::output::Output;
use crate::secrets;

/// The timeout of one call, and the time for all.
const CALL: Duration = Duration::from_secs(10);
const ALL_CALLS: Duration = Duration::from_secs(60);

/// The number of calls in a row without an answer after which no more are made.
const MAX_UNANSWERED: usize = 3;

/// The time after which a clock that shows seconds shows another one.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// A start that took this long may take longer elsewhere.
const SLOW: Duration = Duration::from_secs(8);

/// The way in which tools are tried.
#[derive(Clone, Copy)]
pub struct Trial {
    pub policy: CallPolicy,
    /// True if every answer is requested twice, to know whether it repeats.
    pub twice: bool,
}

/// A captured server.
pub struct Captured {
    pub draft: ServerDraft,
    /// The server's own name, for the name in the suite.
    pub own_name: Option<String>,
    /// The number of tools, resources, templates of resources, and prompts.
    counts: [usize; 4],
    /// `auth:` of the suite, if the server required a token.
    pub auth: Option<Value>,
}

/// Starts a server and captures it. It is ended, whatever happens.
///
/// # Errors
/// The words of the server, or the reason why there is nothing to test.
pub async fn capture(
    label: &str,
    server: &Server,
    trial: Trial,
    settings: &InspectSettings,
    output: &Output,
) -> Result<Captured, RunError> {
    let live = LiveServer::open(label, server, settings).await?;
    let began = Instant::now();
    let captured = examine(label, server, &live, trial, output).await;
    live.close().await;
    let mut captured = captured?;
    if trial.twice {
        // Later, and in another process: what depends on either cannot be a snapshot.
        tokio::time::sleep(NEXT_SECOND.saturating_sub(began.elapsed())).await;
        let live = LiveServer::open(label, server, settings).await?;
        try_again(&mut captured.draft, &live).await;
        live.close().await;
    }
    Ok(captured)
}

async fn examine(
    label: &str,
    server: &Server,
    live: &LiveServer,
    trial: Trial,
    output: &Output,
) -> Result<Captured, RunError> {
    let report = mcptest_runner::inspect(label, live).await;
    let fail = |message: String| RunError {
        kind: ErrorKind::Protocol,
        message,
    };
    if report.listed.is_empty() {
        let problem = report.problems.first();
        return Err(fail(match problem {
            Some(problem) => format!("server `{label}` lists no tools: {}", problem.message),
            None => format!("server `{label}` lists no tools, so there is nothing to test"),
        }));
    }
    let redactor = secrets::redactor(std::iter::empty());
    let mut captured = captured(&report, trial.policy, &redactor);
    let draft = &mut captured.draft;
    if is_downloaded(&server.argv) || live.handshake() > SLOW {
        draft.startup_timeout = Some("2m");
    }
    if draft.tools.is_empty() {
        return Err(fail(format!(
            "server `{label}` lists no usable tool: {}",
            draft.unusable.join("; ")
        )));
    }
    let shown = one_line(draft.title.as_deref().unwrap_or(label));
    let [tools, resources, templates, prompts] = captured.counts;
    let templates = match templates {
        0 => String::new(),
        number => format!("{}, ", counted(number, "resource template")),
    };
    output.status(&format!(
        "{shown}: {}, {}, {templates}{}",
        counted(tools, "tool"),
        counted(resources, "resource"),
        counted(prompts, "prompt")
    ));
    let draft = &mut captured.draft;
    let planned = draft
        .tools
        .iter()
        .filter(|tool| matches!(tool.outcome, Outcome::Planned { .. }))
        .count();
    if planned > 0 {
        let which = match trial.policy {
            CallPolicy::All => "",
            _ => " that only read",
        };
        output.status(&format!("calling {}{which}", counted(planned, "tool")));
    }
    try_tools(draft, live, &redactor).await;
    try_without_arguments(draft, live).await;
    Ok(captured)
}

/// A number with its noun.
pub fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        several => format!("{several} {noun}s"),
    }
}

/// The catalog without secrets.
fn captured(report: &ServerReport, policy: CallPolicy, redactor: &Redactor) -> Captured {
    let info = |key: &str| {
        let value = report.server_info.as_ref()?.get(key)?;
        value.as_str().map(|text| redactor.text(text))
    };
    let mut draft = ServerDraft {
        title: info("name").map(|name| {
            let version = info("version");
            let title = version.map_or_else(|| name.clone(), |version| format!("{name} {version}"));
            mcptest_json::text::shorten(&one_line(&title), 120)
        }),
        version: info("version").filter(|version| version.len() <= 200),
        instructions: report
            .instructions
            .as_ref()
            .and_then(Value::as_str)
            .map(|text| redactor.text(text)),
        ..ServerDraft::default()
    };
    let mut listed = report.listed.clone();
    for entry in &mut listed {
        redactor.value(entry);
    }
    draft.set_tools(listed, policy);
    let is_template = |entry: &&Value| entry.get("uriTemplate").is_some();
    let templates = report.resources.iter().filter(is_template).count();
    Captured {
        draft,
        own_name: info("name"),
        counts: [
            report.listed.len(),
            report.resources.len() - templates,
            templates,
            report.prompts.len(),
        ],
        auth: None,
    }
}

/// Makes the planned calls, one after the other.
async fn try_tools(draft: &mut ServerDraft, live: &LiveServer, redactor: &Redactor) {
    let began = Instant::now();
    let mut unanswered = 0;
    for tool in &mut draft.tools {
        let Outcome::Planned { args } = &tool.outcome else {
            continue;
        };
        let args = args.clone();
        if began.elapsed() > ALL_CALLS {
            tool.outcome = Outcome::NotTried("the calls before took too long");
            continue;
        }
        if unanswered >= MAX_UNANSWERED {
            tool.outcome = Outcome::NotTried("the calls before were not answered");
            continue;
        }
        let outcome = try_tool(live, &tool.name, args, redactor).await;
        let answered = !matches!(
            &outcome,
            Outcome::Failed {
                answered: false,
                ..
            }
        );
        unanswered = if answered { 0 } else { unanswered + 1 };
        tool.outcome = outcome;
    }
}

async fn try_tool(
    live: &LiveServer,
    tool: &str,
    args: Map<String, Value>,
    redactor: &Redactor,
) -> Outcome {
    let sent = Value::Object(args.clone());
    let answer = match live.call(tool, &sent, Some(CALL)).await {
        Ok(answer) => answer,
        Err(error) => {
            return Outcome::Failed {
                args,
                words: redactor.text(reason(&error.message)),
                answered: false,
            };
        }
    };
    if answer.is_error() {
        return Outcome::Failed {
            args,
            words: redactor.text(&answer.text()),
            answered: true,
        };
    }
    if is_worded_as_error(&answer.text()) {
        return Outcome::Failed {
            args,
            words: redactor.text(&answer.text()),
            answered: true,
        };
    }
    let Answer::Result(mut result) = answer else {
        // A refusal is an error.
        return Outcome::NotTried("it was refused");
    };
    redactor.value(&mut result);
    let text = result.to_string();
    let private = describes_machine(&text, &|name| std::env::var(name).ok());
    let no_snapshot = if private {
        Some("the answer has facts about a machine")
    } else if is_volatile(&text) {
        Some("the answer has a time or an id")
    } else {
        None
    };
    Outcome::Answered {
        args,
        result,
        no_snapshot,
        private,
    }
}

/// The beginning of an answer that is an error, although it is not marked as one.
static WORDED_ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W{0,4}(?:\S{1,60}:\s+)?(?:error|failed|failure|exception|traceback)\b").ok()
});

/// Returns true if the words of an answer are those of an error. Many servers do not mark theirs.
fn is_worded_as_error(text: &str) -> bool {
    WORDED_ERROR
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(text))
}

/// Calls the tools that answered once more.
async fn try_again(draft: &mut ServerDraft, live: &LiveServer) {
    let redactor = secrets::redactor(std::iter::empty());
    for tool in &mut draft.tools {
        let Outcome::Answered {
            args,
            result,
            no_snapshot: no_snapshot @ None,
            ..
        } = &mut tool.outcome
        else {
            continue;
        };
        let again = live
            .call(&tool.name, &Value::Object(args.clone()), Some(CALL))
            .await;
        let same = match again {
            Ok(Answer::Result(mut again)) => {
                redactor.value(&mut again);
                is_same(&again, result)
            }
            _ => false,
        };
        if !same {
            *no_snapshot = Some("two calls gave different answers");
        }
    }
}

/// The reason of an error, without the message before it, which another call may have caused.
fn reason(message: &str) -> &str {
    let (reason, _) = message
        .split_once("; its last message")
        .unwrap_or((message, ""));
    reason
}

/// Variables whose values say where and as whom mcptest runs.
const MACHINE: [&str; 5] = ["HOME", "PWD", "HOSTNAME", "LOGNAME", "TMPDIR"];

/// Returns true if JSON has the home folder or another value of this machine.
fn describes_machine(text: &str, env: &dyn Fn(&str) -> Option<String>) -> bool {
    let values = MACHINE.iter().filter_map(|name| env(name));
    // Short values are in texts that have nothing to do with them.
    let mut long = values.filter(|value| value.len() >= 5);
    long.any(|value| text.contains(&value)) || text.contains("MCPTEST_SESSION")
}

/// A time of day.
static CLOCK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b\d{1,2}:\d{2}(?::\d{2})?\b").ok());

/// Returns true if JSON has a value that differs from call to call.
fn is_volatile(text: &str) -> bool {
    let has_clock = CLOCK.as_ref().is_some_and(|clock| clock.is_match(text));
    has_clock
        || BUILTIN
            .iter()
            .any(|(_, pattern, _)| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text)))
}

/// Returns true if two results are equal, apart from what a snapshot leaves out.
fn is_same(one: &Value, other: &Value) -> bool {
    let answer = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.shift_remove("_meta");
        }
        value
    };
    mcptest_json::equal(&answer(one), &answer(other))
}

/// Calls a tool that reads without its required arguments: servers refuse that, each in its way.
async fn try_without_arguments(draft: &mut ServerDraft, live: &LiveServer) {
    let Some(tool) = draft.refusable().map(|tool| tool.name.clone()) else {
        return;
    };
    let empty = Value::Object(Map::new());
    // Twice: a test is written only for what repeats.
    let mut refusals = Vec::new();
    for _ in 0..2 {
        let Ok(answer) = live.call(&tool, &empty, Some(CALL)).await else {
            return;
        };
        if !answer.is_error() {
            return;
        }
        let code = match &answer {
            Answer::Refused(error) => error.get("code").and_then(Value::as_i64),
            Answer::Result(_) => None,
        };
        refusals.push(RefusedCall {
            tool: tool.clone(),
            in_result: matches!(answer, Answer::Result(_)),
            code,
        });
    }
    if let [first, second] = refusals.as_slice()
        && first == second
        && (first.in_result || first.code.is_some())
    {
        draft.refused = Some(first.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_about_a_machine_are_found() {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ann".to_owned()),
            "LOGNAME" => Some("ann".to_owned()),
            _ => None,
        };
        assert!(describes_machine("{\"text\": \"/home/ann/notes\"}", &env));
        assert!(!describes_machine("{\"text\": \"ann has a cat\"}", &env));
        assert!(describes_machine("MCPTEST_SESSION=1", &|_| None));
    }

    #[test]
    fn times_and_ids_are_volatile() {
        for text in [
            "created at 12:33:04 PM",
            "2026-11-18T10:00:00Z",
            "00000000-0000-4000-8000-000000000000",
        ] {
            assert!(is_volatile(text), "{text}");
        }
        for text in ["The sum is 5.", "{\"a\":12}", "1:2", "{\"temperature\":33}"] {
            assert!(!is_volatile(text), "{text}");
        }
    }

    #[test]
    fn errors_are_recognized_by_their_words() {
        for text in [
            "Error searching libraries: TypeError",
            ".: Error - EISDIR",
            "❌ Failed to connect",
            "**Error:** no",
            "Traceback (most recent call last)",
        ] {
            assert!(is_worded_as_error(text), "{text}");
        }
        for text in [
            "No errors found",
            "The error log is empty",
            "",
            "5 failed jobs",
        ] {
            assert!(!is_worded_as_error(text), "{text}");
        }
    }

    #[test]
    fn a_reason_has_no_older_message() {
        assert_eq!(
            reason("no reply within 10s; its last message: {\"x\""),
            "no reply within 10s"
        );
        assert_eq!(reason("crashed"), "crashed");
    }
}
