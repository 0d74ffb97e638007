//! Running one direct tool test: setup, call, teardown.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcptest_agent::ToolReply;
use mcptest_catalog::tokens;
use mcptest_suite::suite::ToolTest;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::ask_judges;
use crate::fixtures::{FixturePhase, FixtureSession};
use crate::run_context::{CaseRef, RunContext};
use crate::sessions::reply;
use crate::stop_signal::{CALL_GRACE, StopReason, StopSignal, TEARDOWN_GRACE};
use crate::tool_answer::{fixture_error, observe, unlisted};

/// The result of a direct tool test.
pub(crate) struct Called {
    /// One call, and its result.
    pub trace: Trace,
    /// The assertions; none if the call was not answered.
    pub assertions: Vec<Assertion>,
}

impl Called {
    /// Returns true if the call did not fail and all assertions hold.
    fn is_good(&self) -> bool {
        let failed = |result: &ToolResult| result.is_error == Some(true);
        self.all_hold() && !self.trace.tool_results.iter().any(failed)
    }

    fn all_hold(&self) -> bool {
        self.trace.error.is_none() && !self.assertions.iter().any(Assertion::failed)
    }
}

/// Runs a test. One that is interrupted leaves nothing, but its teardown has run.
pub(crate) async fn tool_call<'a>(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &ToolTest,
    stop: StopSignal<'a>,
) -> Result<Called, StopReason<'a>> {
    let mut session = FixtureSession::new(&context.sessions, test.isolation, &case.meter.startup);
    let mut called = call_until(context, case, test, stop, &mut session).await;
    let torn_down = tear_down(test, stop, &mut session).await;
    if let Err(error) = torn_down {
        match &mut called {
            // Remains may break the next test, so this must be reported.
            Ok(called) if called.all_hold() => called.trace.error = Some(error),
            _ => context.warn(format!("test `{}`: {}", test.name, error.message)),
        }
    }
    if let Ok(called) = &mut called {
        // An error of the connection has these lines in its message.
        if called.trace.error.is_none() && !called.is_good() {
            let lines = session.stderr(&test.server).await;
            if !lines.is_empty() {
                let by_server = json!({ test.server.as_str(): lines });
                called.trace.extra.insert("stderr", by_server);
            }
        }
        let fixtures = session.take_record();
        if !fixtures.is_empty() {
            called.trace.extra.insert("fixtures", fixtures);
        }
    }
    session.release().await;
    called
}

/// Runs the test without its teardown, until it is interrupted.
async fn call_until<'a>(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &ToolTest,
    stop: StopSignal<'a>,
    session: &mut FixtureSession<'_>,
) -> Result<Called, StopReason<'a>> {
    let stopped = AtomicBool::new(false);
    let mut work = pin!(set_up_and_call(context, case, test, session, &stopped));
    // A test without teardown is dropped by the caller.
    if test.teardown.is_empty() {
        return Ok(work.await);
    }
    tokio::select! {
        biased;
        reason = stop.received() => {
            stopped.store(true, Ordering::Relaxed);
            // No further call starts, but the one in flight may be creating something that
            // teardown removes.
            let _ = timeout(CALL_GRACE, work).await;
            Err(reason)
        }
        called = &mut work => Ok(called),
    }
}

/// Tears the test down, with a time limit once it is interrupted.
async fn tear_down(
    test: &ToolTest,
    stop: StopSignal<'_>,
    session: &mut FixtureSession<'_>,
) -> Result<(), RunError> {
    if test.teardown.is_empty() {
        return Ok(());
    }
    let over = async {
        stop.received().await;
        tokio::time::sleep(TEARDOWN_GRACE).await;
    };
    tokio::select! {
        biased;
        torn_down = Box::pin(session.tear_down(&test.teardown)) => torn_down,
        () = over => Err(fixture_error(format!(
            "teardown did not finish within {} seconds after the test was interrupted; what it \
             removes may still exist",
            TEARDOWN_GRACE.as_secs()
        ))),
    }
}

async fn set_up_and_call(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &ToolTest,
    session: &mut FixtureSession<'_>,
    stopped: &AtomicBool,
) -> Called {
    let mut called = Called {
        trace: Trace {
            tool_calls: vec![ToolCall::new(Some(&test.server), &test.tool)],
            ..Trace::default()
        },
        assertions: Vec::new(),
    };
    if let Err(error) = try_call(context, case, test, session, stopped, &mut called).await {
        called.trace.error = Some(error);
    }
    called
}

/// Makes the calls. The error is the reason why the call was not answered or could not be judged.
/// Once it is `stopped`, no further call is made.
async fn try_call(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &ToolTest,
    session: &mut FixtureSession<'_>,
    stopped: &AtomicBool,
    called: &mut Called,
) -> Result<(), RunError> {
    for (index, call) in test.setup.iter().enumerate() {
        if stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        Box::pin(session.fixture(FixturePhase::Setup, index, call)).await?;
    }
    if stopped.load(Ordering::Relaxed) {
        return Ok(());
    }
    let args = session.fill(&test.args)?;
    let server = match session.session(&test.server).await {
        Ok(server) => server,
        Err(error) => {
            called.trace.tool_calls[0].set_args(args);
            return Err(error);
        }
    };
    let began = Instant::now();
    let outcome = server.call(&test.tool, &args, test.timeout).await;
    let took = began.elapsed();
    called.trace.tool_calls[0].set_args(args);
    let outcome = outcome?;
    let short = reply(&outcome);
    let seen = observe(outcome, &short);
    let mut assertions =
        ask_judges::apply(context, case, &test.expect, &seen, &mut called.trace).await;
    assertions.extend(test.max_duration.map(|max| duration_assertion(max, took)));
    assertions.extend(
        test.max_response_tokens
            .map(|max| token_assertion(max, &short)),
    );
    if let Some(kept) = &test.snapshot {
        let others_hold = !assertions.iter().any(Assertion::failed);
        let checked = context.snapshots.check(kept, &seen, others_hold)?;
        if let Some(text) = checked.note {
            context.note(text);
        }
        assertions.push(checked.assertion);
    }
    if short.is_error
        && let Some(failed) = assertions.iter_mut().find(|assertion| assertion.failed())
        && let Some(hint) = Box::pin(unlisted(&server, &test.server, &test.tool)).await
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
    let saved = session.save(&test.save, &seen);
    // A value that is missing in a wrong answer is not a second problem.
    if called.all_hold() { saved } else { Ok(()) }
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

/// The time is reported only where it is too long, so that the report of a passing test is the
/// same each time.
fn duration_assertion(max: Duration, took: Duration) -> Assertion {
    let passed = took <= max;
    // Rounded up: a part of a millisecond counts.
    let shown = u64::try_from(took.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let matcher = json!({"<=": u64::try_from(max.as_millis()).unwrap_or(u64::MAX)});
    let actual = if passed { Value::Null } else { shown.into() };
    let why_not = (!passed).then(|| format!("the call took {shown} ms"));
    Assertion::new("duration_ms", matcher, actual, why_not)
}

fn token_assertion(max: u64, short: &ToolReply) -> Assertion {
    let count = response_tokens(short);
    let why_not = (count > max).then(|| format!("{count} is greater than {max}"));
    Assertion::new("response_tokens", json!({"<=": max}), count.into(), why_not)
}

/// The tokens that a model would read: the text blocks; without one, the structured content; of an
/// error, its message. Images and audio have no count that holds for every model.
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

#[cfg(test)]
mod tests {
    use mcptest_wire::CallOutcome;

    use super::*;

    fn reply_of(result: Value) -> ToolReply {
        reply(&CallOutcome::Result(result))
    }

    #[test]
    fn response_tokens_count_the_part_that_is_read() {
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
    fn bounds_are_inclusive() {
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
