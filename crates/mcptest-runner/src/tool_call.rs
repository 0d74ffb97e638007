//! Carrying out one direct tool test: what prepares it, its call, what cleans up after it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcptest_agent::ToolReply;
use mcptest_catalog::tokens;
use mcptest_suite::suite::ToolTest;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::CallOutcome;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::ending::{CALL_GRACE, End, Ending, TEARDOWN_GRACE};
use crate::event::Event;
use crate::fixtures::{Stage as FixtureStage, Visit};
use crate::judges;
use crate::sessions::{Session, reply};
use crate::stage::{Place, Stage};

/// What a direct tool test left.
pub(crate) struct Called {
    /// One call, and its result.
    pub trace: Trace,
    /// What came of its expectations; nothing if the call was not answered.
    pub assertions: Vec<Assertion>,
}

impl Called {
    fn all_hold(&self) -> bool {
        self.trace.error.is_none() && !self.assertions.iter().any(Assertion::failed)
    }
}

/// Carries out a test. Nothing is left of one that is broken off, but its teardown has run.
pub(crate) async fn tool_call<'a>(
    stage: &Stage,
    place: Place<'_>,
    test: &ToolTest,
    ending: Ending<'a>,
) -> Result<Called, End<'a>> {
    let mut visit = Visit::new(&stage.sessions, test.isolation);
    let mut called = call_until(stage, place, test, ending, &mut visit).await;
    let torn_down = tear_down(test, ending, &mut visit).await;
    if let Err(error) = torn_down {
        match &mut called {
            // What is left behind may break the next test, so it cannot go unsaid.
            Ok(called) if called.all_hold() => called.trace.error = Some(error),
            _ => stage.tell(Event::Warning {
                text: format!("test `{}`: {}", test.name, error.message),
            }),
        }
    }
    if let Ok(called) = &mut called {
        let fixtures = visit.take_record();
        if !fixtures.is_empty() {
            called.trace.extra.insert("fixtures", fixtures);
        }
    }
    visit.release().await;
    called
}

/// The test without its teardown, unless it is broken off.
async fn call_until<'a>(
    stage: &Stage,
    place: Place<'_>,
    test: &ToolTest,
    ending: Ending<'a>,
    visit: &mut Visit<'_>,
) -> Result<Called, End<'a>> {
    let stopped = AtomicBool::new(false);
    let mut work = pin!(set_up_and_call(stage, place, test, visit, &stopped));
    // One that has nothing to clean up is dropped by whoever called.
    if test.teardown.is_empty() {
        return Ok(work.await);
    }
    tokio::select! {
        biased;
        end = ending.come() => {
            stopped.store(true, Ordering::Relaxed);
            // No further call begins, but the one under way may be making what teardown removes.
            let _ = timeout(CALL_GRACE, work).await;
            Err(end)
        }
        called = &mut work => Ok(called),
    }
}

/// Cleans up, in a moment if the test is broken off before or meanwhile.
async fn tear_down(
    test: &ToolTest,
    ending: Ending<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), RunError> {
    if test.teardown.is_empty() {
        return Ok(());
    }
    let over = async {
        ending.come().await;
        tokio::time::sleep(TEARDOWN_GRACE).await;
    };
    tokio::select! {
        biased;
        torn_down = visit.tear_down(&test.teardown) => torn_down,
        () = over => Err(fixture_error(format!(
            "teardown was not through {} seconds after the test was broken off; what it would have removed may be there still",
            TEARDOWN_GRACE.as_secs()
        ))),
    }
}

async fn set_up_and_call(
    stage: &Stage,
    place: Place<'_>,
    test: &ToolTest,
    visit: &mut Visit<'_>,
    stopped: &AtomicBool,
) -> Called {
    let mut called = Called {
        trace: Trace {
            tool_calls: vec![ToolCall::new(Some(&test.server), &test.tool)],
            ..Trace::default()
        },
        assertions: Vec::new(),
    };
    if let Err(error) = try_call(stage, place, test, visit, stopped, &mut called).await {
        called.trace.error = Some(error);
    }
    called
}

/// An error is what kept the call from being answered, or from being judged. Once it is `stopped`,
/// no further call is made.
async fn try_call(
    stage: &Stage,
    place: Place<'_>,
    test: &ToolTest,
    visit: &mut Visit<'_>,
    stopped: &AtomicBool,
    called: &mut Called,
) -> Result<(), RunError> {
    for (index, call) in test.setup.iter().enumerate() {
        if stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        Box::pin(visit.fixture(FixtureStage::Setup, index, call)).await?;
    }
    if stopped.load(Ordering::Relaxed) {
        return Ok(());
    }
    let args = visit.fill(&test.args)?;
    called.trace.tool_calls[0].set_args(args.clone());
    let session = visit.session(&test.server).await?;
    let began = Instant::now();
    let outcome = session.call(&test.tool, &args, test.timeout).await?;
    let took = began.elapsed();
    let short = reply(&outcome);
    let seen = observe(outcome, &short);
    let mut assertions = judges::apply(stage, place, &test.expect, &seen, &mut called.trace).await;
    assertions.extend(test.max_duration.map(|most| duration_assertion(most, took)));
    assertions.extend(
        test.max_response_tokens
            .map(|most| token_assertion(most, &short)),
    );
    if let Some(kept) = &test.snapshot {
        let others_hold = !assertions.iter().any(Assertion::failed);
        let checked = stage.snapshots.check(kept, &seen, others_hold)?;
        if let Some(text) = checked.note {
            stage.tell(Event::Note { text });
        }
        assertions.push(checked.assertion);
    }
    if short.is_error
        && let Some(failed) = assertions.iter_mut().find(|assertion| assertion.failed())
        && let Some(hint) = Box::pin(unlisted(&session, &test.server, &test.tool)).await
    {
        let reason = failed
            .reason
            .take()
            .filter(|reason| reason != "the values differ");
        failed.reason =
            Some(reason.map_or_else(|| hint.clone(), |reason| format!("{reason}; {hint}")));
    }
    called.trace.tool_results = vec![result(short)];
    called.assertions = assertions;
    let saved = visit.save(&test.save, &seen);
    // What a wrong answer does not have is no news.
    if called.all_hold() { saved } else { Ok(()) }
}

/// What assertions look into: the result as the server sent it, with `is_error` and `text` beside
/// it, and `error`, which is `null` when there is none.
pub(crate) fn observe(outcome: CallOutcome, short: &ToolReply) -> Value {
    match outcome {
        CallOutcome::Result(result) => {
            let mut result = match result {
                Value::Object(map) => map,
                other => Map::from_iter([("value".to_owned(), other)]),
            };
            result.insert("is_error".to_owned(), short.is_error.into());
            result.insert("text".to_owned(), short.text().into());
            Value::Object(Map::from_iter([
                ("result".to_owned(), Value::Object(result)),
                ("error".to_owned(), Value::Null),
            ]))
        }
        CallOutcome::Error(error) => json!({"result": null, "error": error}),
    }
}

fn result(short: ToolReply) -> ToolResult {
    let mut extra = Map::new();
    if let Some(structured) = short.structured {
        extra.insert("structured_content".to_owned(), structured);
    }
    if let Some(error) = short.error {
        extra.insert("error".to_owned(), error);
    }
    ToolResult {
        call_id: None,
        is_error: Some(short.is_error),
        content: Some(short.content.into()),
        extra: extra.into(),
    }
}

/// A tool that the server does not list, with the one that was probably meant. Asked only where a
/// call was refused.
pub(crate) async fn unlisted(session: &Session, server: &str, tool: &str) -> Option<String> {
    let listed = session.listing().await.ok()?;
    let names: Vec<&str> = listed
        .iter()
        .filter_map(|entry| entry.get("name")?.as_str())
        .collect();
    if names.contains(&tool) {
        return None;
    }
    let words = format!("server `{server}` lists no tool `{tool}`");
    Some(match mcptest_suite::suggest(tool, names) {
        Some(near) => format!("{words}; did you mean `{near}`?"),
        None => words,
    })
}

/// The time is told only where it is too long: a passing report does not change with the weather.
fn duration_assertion(most: Duration, took: Duration) -> Assertion {
    let passed = took <= most;
    // A little over is over: the part of a millisecond counts.
    let shown = u64::try_from(took.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let matcher = json!({"<=": u64::try_from(most.as_millis()).unwrap_or(u64::MAX)});
    let actual = if passed { Value::Null } else { shown.into() };
    let why_not = (!passed).then(|| format!("the call took {shown} ms"));
    Assertion::new("duration_ms", matcher, actual, why_not)
}

fn token_assertion(most: u64, short: &ToolReply) -> Assertion {
    let count = response_tokens(short);
    let why_not = (count > most).then(|| format!("{count} is greater than {most}"));
    Assertion::new(
        "response_tokens",
        json!({"<=": most}),
        count.into(),
        why_not,
    )
}

/// What a model would have to read: the text blocks; without one, the structured content; of an
/// error, its message. Pictures and sounds have no count that holds for every model.
fn response_tokens(short: &ToolReply) -> u64 {
    if let Some(error) = &short.error {
        return error
            .get("message")
            .and_then(Value::as_str)
            .map_or(0, tokens::count);
    }
    match (short.text(), &short.structured) {
        (text, Some(structured)) if text.is_empty() => tokens::count(&structured.to_string()),
        (text, _) => tokens::count(&text),
    }
}

/// An error of a test's own preparation.
pub(crate) fn fixture_error(message: String) -> RunError {
    RunError {
        kind: ErrorKind::Fixture,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply_of(result: Value) -> ToolReply {
        reply(&CallOutcome::Result(result))
    }

    #[test]
    fn response_tokens_are_those_of_what_is_read() {
        let text =
            json!([{"type": "text", "text": "hello world"}, {"type": "image", "data": "AAAA"}]);
        assert_eq!(response_tokens(&reply_of(json!({"content": text}))), 2);
        // The structured content repeats the text, so it counts only without one.
        assert_eq!(
            response_tokens(&reply_of(
                json!({"content": text, "structuredContent": {"a": 1}})
            )),
            2
        );
        assert_eq!(
            response_tokens(&reply_of(
                json!({"content": [], "structuredContent": {"a": 1}})
            )),
            tokens::count(r#"{"a":1}"#)
        );
        assert_eq!(response_tokens(&reply_of(json!({}))), 0);
        let refused = mcptest_wire::RpcError {
            code: -1,
            message: "hello world".to_owned(),
            data: None,
        };
        assert_eq!(response_tokens(&reply(&CallOutcome::Error(refused))), 2);
    }

    #[test]
    fn bounds_include_themselves() {
        let ms = Duration::from_millis;
        assert!(duration_assertion(ms(5), ms(5)).passed);
        let slow = duration_assertion(ms(5), ms(5) + Duration::from_nanos(1));
        assert!(!slow.passed);
        assert_eq!((slow.actual, slow.matcher), (json!(6), json!({"<=": 5})));
        let short = reply_of(json!({"content": [{"type": "text", "text": "hello world"}]}));
        assert!(token_assertion(2, &short).passed);
        assert_eq!(token_assertion(1, &short).actual, json!(2));
    }
}
