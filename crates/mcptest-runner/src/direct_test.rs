//! Running one direct test: setup, change, request, teardown.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcptest_agent::ToolReply;
use mcptest_catalog::tokens;
use mcptest_suite::suite::{DirectRequest, DirectTest};
use mcptest_trace::expect::{Assertion, Expectation};
use mcptest_trace::server_messages;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::ask_judges;
use crate::cassette_plans::RunCassette;
use crate::direct_answer::{
    fixture_error, hint_about, missing_capability, take_reply, unlisted_resource,
};
use crate::direct_request::{Answered, Filled, make, subscribe, wait_for_change};
use crate::fixtures::{FixturePhase, FixtureSession};
use crate::run_context::{CaseRef, RunContext};
use crate::sampling::SamplingModels;
use crate::sessions::Session;
use crate::stop_signal::{CALL_GRACE, StopReason, StopSignal, TEARDOWN_GRACE};
use crate::test_client::{Listening, TestClient};

/// The key of a trace with the requests of a direct test that are not tool calls.
const REQUESTS_KEY: &str = "requests";

/// The time for the answer to a `ping`, before which all earlier messages arrive.
const BARRIER_WAIT: Duration = Duration::from_secs(1);

/// The result of a direct test.
pub(crate) struct Called {
    /// The request, and its answer.
    pub trace: Trace,
    /// The assertions; none if the request was not answered.
    pub assertions: Vec<Assertion>,
    /// True if the answer is an error.
    is_error: bool,
}

impl Called {
    /// Returns true if the request did not fail and all assertions hold.
    fn is_good(&self) -> bool {
        self.all_hold() && !self.is_error
    }

    fn all_hold(&self) -> bool {
        self.trace.error.is_none() && !self.assertions.iter().any(Assertion::failed)
    }
}

/// Runs a test. One that is interrupted leaves nothing, but its teardown has run.
pub(crate) async fn direct_test<'a>(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &DirectTest,
    stop: StopSignal<'a>,
) -> Result<Called, StopReason<'a>> {
    let startup = &case.meter.startup;
    let mut session = FixtureSession::new(&context.sessions, test.isolation, startup);
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
    test: &DirectTest,
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
    test: &DirectTest,
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
    test: &DirectTest,
    session: &mut FixtureSession<'_>,
    stopped: &AtomicBool,
) -> Called {
    let mut called = Called {
        trace: Trace::default(),
        assertions: Vec::new(),
        is_error: false,
    };
    if let DirectRequest::Tool { tool, .. } = &test.request {
        called.trace.tool_calls = vec![ToolCall::new(Some(&test.server), tool)];
    }
    let made = async {
        session.client = client_of(context, case, test)?;
        try_request(context, case, test, session, stopped, &mut called).await
    };
    let made = made.await;
    if let Err(error) = made {
        called.trace.error = Some(error);
    }
    if let Some(client) = &session.client {
        let roots = test.expect.iter().map(|one| one.target.root());
        client.finish(&mut called.trace, roots);
    }
    called
}

/// The client of a test that may be asked something, or listens.
fn client_of(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &DirectTest,
) -> Result<Option<Arc<TestClient>>, RunError> {
    let Some(script) = &test.client else {
        return Ok(None);
    };
    let is_task = matches!(test.request, DirectRequest::Tool { task: Some(_), .. });
    let log_level = script.log_level.map(|level| level.as_str());
    let listening = Listening {
        progress: test.expects("progress")
            || test.expects("notifications")
            || test.cancel.is_some(),
        log_level: log_level.or((test.expects("logs") || test.cancel.is_some()).then_some("debug")),
        tasks: is_task,
    };
    // A direct test is always live.
    let models = SamplingModels::open(context, case, script, &RunCassette::Off)?;
    let client = TestClient::new(Arc::clone(script), listening, models);
    Ok(Some(Arc::new(client)))
}

/// Makes the calls and the request. The error is the reason why the request was not answered or
/// could not be judged. Once it is `stopped`, no further call is made.
async fn try_request(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &DirectTest,
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
    let request = Filled::new(&test.request, session)?;
    record_request(test, &request, called);
    let server = session.session(&test.server).await?;
    let client = session.client.clone();
    let listened = match &client {
        Some(_) => Box::pin(listen(test, &request, &server, session, stopped)).await?,
        None => Listened::Quiet,
    };
    let refused = matches!(listened, Listened::Refused(_));
    let answered = match listened {
        Listened::Stopped => return Ok(()),
        Listened::Refused(answered) => *answered,
        Listened::Quiet => make(test, &request, &server, client.as_ref()).await?,
        Listened::Subscribed(subscription) => {
            let making = async {
                if let Some(client) = &client {
                    wait_for_change(test, &request, client).await;
                }
                let answered = make(test, &request, &server, client.as_ref()).await;
                subscription.end().await;
                answered
            };
            Box::pin(making).await?
        }
    };
    let Answered {
        mut seen,
        is_of_tool,
        took,
    } = answered;
    if let Some(client) = &client {
        Box::pin(settle(test, &server, client, &mut seen)).await;
    }
    for key in ["task", "cancellation"] {
        if let Some(value) = seen.get(key) {
            called.trace.extra.insert(key, value.clone());
        }
    }
    let mut seen = Value::Object(seen);
    called.is_error = !seen["error"].is_null() || seen["result"]["is_error"] == true;
    let mut assertions =
        ask_judges::apply(context, case, &test.expect, &seen, &mut called.trace).await;
    // An answer that is an error has no result: the default on the result is no second finding.
    let is_default = |one: &Assertion| one.default && one.failed();
    if assertions
        .iter()
        .any(|one| is_default(one) && one.target == "error")
    {
        assertions.retain(|one| !(is_default(one) && one.target.starts_with("result.")));
    }
    assertions.extend(test.max_duration.map(|max| duration_assertion(max, took)));
    assertions.extend(
        test.max_response_tokens
            .map(|max| token_assertion(max, is_of_tool, &seen)),
    );
    if let Some(kept) = &test.snapshot {
        let others_hold = !assertions.iter().any(Assertion::failed);
        let checked = context.snapshots.check(kept, &seen, others_hold)?;
        if let Some(text) = checked.note {
            context.note(text);
        }
        assertions.push(checked.assertion);
    }
    if called.is_error
        && let Some(failed) = assertions.iter_mut().find(|assertion| assertion.failed())
        && let Some(hint) = match missing_capability(&seen["error"]) {
            Some(hint) => Some(hint),
            None if refused => {
                Some("the server refused the subscription, so the request was not made".to_owned())
            }
            None => Box::pin(hint(&server, test, &request)).await,
        }
    {
        let reason = failed
            .reason
            .take()
            .filter(|reason| reason != "the values differ" && reason != "an object is not null");
        failed.reason =
            Some(reason.map_or_else(|| hint.clone(), |reason| format!("{reason}; {hint}")));
    }
    called.assertions = assertions;
    let saved = session.save(&test.save, &seen);
    record_answer(called, is_of_tool, &mut seen);
    // A value that is missing in a wrong answer is not a second problem.
    if called.all_hold() { saved } else { Ok(()) }
}

/// The outcome of listening for changes.
enum Listened {
    /// The test listens to no change.
    Quiet,
    /// The changes have been caused.
    Subscribed(Box<mcptest_wire::Subscription>),
    /// The server refused the subscription.
    Refused(Box<Answered>),
    /// The test was interrupted.
    Stopped,
}

/// Subscribes, and causes the change.
async fn listen(
    test: &DirectTest,
    request: &Filled<'_>,
    server: &Session,
    session: &mut FixtureSession<'_>,
    stopped: &AtomicBool,
) -> Result<Listened, RunError> {
    let subscription = match subscribe(test, request, server).await? {
        Ok(subscription) => subscription,
        Err(refused) => return Ok(Listened::Refused(Box::new(refused))),
    };
    for (index, call) in test.trigger.iter().enumerate() {
        if stopped.load(Ordering::Relaxed) {
            return Ok(Listened::Stopped);
        }
        session.fixture(FixturePhase::Trigger, index, call).await?;
    }
    Ok(match subscription {
        Some(subscription) => Listened::Subscribed(Box::new(subscription)),
        None => Listened::Quiet,
    })
}

/// Adds the messages of the server to the answer, and waits for those that are expected: until the
/// assertions over them hold.
async fn settle(
    test: &DirectTest,
    server: &Session,
    client: &TestClient,
    seen: &mut Map<String, Value>,
) {
    if test.awaits_messages() {
        // A message that the server has sent before this answer has arrived.
        let ping = server.client.request("ping", None, BARRIER_WAIT);
        let _ = ping.await;
        let over_messages: Vec<&Expectation> = test
            .expect
            .iter()
            .filter(|one| one.judge().is_none())
            .filter(|one| server_messages::ROOTS.contains(&one.target.root()))
            .collect();
        client
            .wait_for(test.wait, |messages| {
                let views = views(messages);
                over_messages.iter().all(|one| one.holds(&views))
            })
            .await;
    }
    if let Value::Object(views) = views(&client.messages()) {
        seen.extend(views);
    }
}

/// All views of messages.
fn views(messages: &[Value]) -> Value {
    let views = server_messages::ROOTS.iter().filter_map(|root| {
        let view = server_messages::view(messages, root)?;
        Some(((*root).to_owned(), view))
    });
    Value::Object(views.collect())
}

async fn hint(server: &Session, test: &DirectTest, request: &Filled<'_>) -> Option<String> {
    match (&test.request, request) {
        (DirectRequest::Read { .. }, Filled::Read { uri }) => {
            unlisted_resource(server, &test.server, uri).await
        }
        _ => hint_about(server, test).await,
    }
}

/// Adds the request to the trace.
fn record_request(test: &DirectTest, request: &Filled<'_>, called: &mut Called) {
    if let (Some(call), Filled::Tool { args, .. }) = (called.trace.tool_calls.first_mut(), request)
    {
        call.set_args(Value::clone(args));
        return;
    }
    let (method, params) = request.recorded();
    let recorded = json!([{"server": test.server, "method": method, "params": params}]);
    called.trace.extra.insert(REQUESTS_KEY, recorded);
}

/// Moves the answer into the trace.
fn record_answer(called: &mut Called, is_of_tool: bool, seen: &mut Value) {
    if !called.trace.tool_calls.is_empty() {
        if is_of_tool {
            called.trace.tool_results = vec![result(take_reply(seen))];
        }
        return;
    }
    if let Some(mut requests) = called.trace.extra.remove(REQUESTS_KEY) {
        let key = match seen["error"].is_null() {
            true => "result",
            false => "error",
        };
        requests[0][key] = seen[key].take();
        called.trace.extra.insert(REQUESTS_KEY, requests);
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

fn token_assertion(max: u64, is_of_tool: bool, seen: &Value) -> Assertion {
    let count = match is_of_tool {
        true => response_tokens(seen),
        false => answer_tokens(seen),
    };
    let why_not = (count > max).then(|| format!("{count} is greater than {max}"));
    Assertion::new("response_tokens", json!({"<=": max}), count.into(), why_not)
}

/// The tokens that a model would read: the text blocks; without one, the structured content; of an
/// error, its message. Images and audio have no count that holds for every model.
fn response_tokens(seen: &Value) -> u64 {
    let message = seen["error"]["message"].as_str();
    let text = message.or_else(|| seen["result"]["text"].as_str());
    match (
        text.unwrap_or_default(),
        seen["result"].get("structuredContent"),
    ) {
        ("", Some(structured)) => tokens::count(&structured.to_string()),
        (text, _) => tokens::count(text),
    }
}

/// The tokens of an answer that is not a tool's: of its text, of a list as compact JSON, of the
/// message of an error.
fn answer_tokens(seen: &Value) -> u64 {
    if let Some(message) = seen["error"]["message"].as_str() {
        return tokens::count(message);
    }
    let result = &seen["result"];
    match result["text"].as_str() {
        Some(text) => tokens::count(text),
        None => tokens::count(&result.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use mcptest_wire::CallOutcome;

    use crate::direct_answer::observe;

    use super::*;

    fn seen_of(result: Value) -> Value {
        observe(CallOutcome::Result(result))
    }

    #[test]
    fn response_tokens_count_the_part_that_is_read() {
        let text =
            json!([{"type": "text", "text": "hello world"}, {"type": "image", "data": "AAAA"}]);
        assert_eq!(response_tokens(&seen_of(json!({"content": text}))), 2);
        // The structured content repeats the text, so it counts only without one.
        assert_eq!(
            response_tokens(&seen_of(
                json!({"content": text, "structuredContent": {"a": 1}})
            )),
            2
        );
        assert_eq!(
            response_tokens(&seen_of(
                json!({"content": [], "structuredContent": {"a": 1}})
            )),
            tokens::count(r#"{"a":1}"#)
        );
        assert_eq!(response_tokens(&seen_of(json!({}))), 0);
        let refused = mcptest_wire::RpcError {
            code: -1,
            message: "hello world".to_owned(),
            data: None,
        };
        assert_eq!(response_tokens(&observe(CallOutcome::Error(refused))), 2);
    }

    #[test]
    fn bounds_are_inclusive() {
        let ms = Duration::from_millis;
        assert!(duration_assertion(ms(5), ms(5)).passed);
        let slow = duration_assertion(ms(5), ms(5) + Duration::from_nanos(1));
        assert!(!slow.passed);
        assert_eq!((slow.actual, slow.matcher), (json!(6), json!({"<=": 5})));
        let short = seen_of(json!({"content": [{"type": "text", "text": "hello world"}]}));
        assert!(token_assertion(2, true, &short).passed);
        assert_eq!(token_assertion(1, true, &short).actual, json!(2));
        let read = json!({"result": {"text": "hello world"}, "error": null});
        assert_eq!(token_assertion(1, false, &read).actual, json!(2));
    }
}
