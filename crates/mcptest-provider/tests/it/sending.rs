//! Requests through a minimal adapter, with every failure that can happen on the way.

use std::sync::Arc;
use std::time::Duration;

use mcptest_agent::{AssistantTurn, Model, Request};
use mcptest_provider::{
    Adapter, ApiError, ApiErrorKind, Assembler, Provider, ProviderRequest, ProviderSettings,
};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Value, json};

use crate::stand_in::{Answer, Seen, StandIn};

#[derive(Debug)]
pub struct PlainAdapter;

fn error(kind: ApiErrorKind, message: &str) -> ApiError {
    ApiError {
        kind,
        message: message.to_owned(),
        retry_after: None,
    }
}

impl Adapter for PlainAdapter {
    fn path(&self, model: &str, stream: bool) -> String {
        format!("/v1/{model}{}", if stream { "?stream" } else { "" })
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("authorization", format!("Bearer {key}")));
        key.into_iter()
            .chain([("x-dialect", "plain".to_owned())])
            .collect()
    }

    fn body(&self, request: &ProviderRequest<'_>) -> Value {
        json!({"model": request.model, "stream": request.stream, "more": request.body})
    }

    fn turn(&self, _: &ProviderRequest<'_>, answer: &Value) -> Result<AssistantTurn, ApiError> {
        let text = answer["text"].as_str();
        Ok(AssistantTurn {
            text: text
                .ok_or_else(|| error(ApiErrorKind::Malformed, "no text"))?
                .to_owned(),
            ..AssistantTurn::default()
        })
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(Joined::default())
    }

    fn error(&self, status: u16, body: &[u8]) -> ApiError {
        let kind = match status {
            401 => ApiErrorKind::Auth,
            429 => ApiErrorKind::RateLimit,
            503 => ApiErrorKind::Overloaded,
            500.. => ApiErrorKind::Transient,
            _ => ApiErrorKind::Refused,
        };
        error(kind, &String::from_utf8_lossy(body))
    }
}

#[derive(Default)]
struct Joined {
    text: String,
    done: bool,
}

impl Assembler for Joined {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), ApiError> {
        match (name, data) {
            (Some("error"), message) => return Err(error(ApiErrorKind::Overloaded, message)),
            (_, "[DONE]") => self.done = true,
            (_, text) => self.text.push_str(text),
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value, ApiError> {
        if self.done {
            Ok(json!({"text": self.text}))
        } else {
            Err(error(ApiErrorKind::Transient, "the stream ended early"))
        }
    }
}

pub fn settings(stand_in: &StandIn) -> ProviderSettings {
    let mut settings = ProviderSettings::new("acme", &stand_in.url("/v1/"));
    settings.key_variables = vec!["ACME_KEY".to_owned()];
    settings.key = Some("sk-secret-1".to_owned());
    settings
}

pub async fn ask(provider: &Arc<Provider>) -> Result<String, RunError> {
    let request = Request {
        system: None,
        messages: &[],
        tools: &[],
        max_tokens: None,
    };
    let model = provider.model("m-1", 7);
    model.next(request).await.map(|turn| turn.text)
}

pub fn open(settings: ProviderSettings) -> Arc<Provider> {
    Arc::new(Provider::new(settings, Box::new(PlainAdapter)).unwrap())
}

/// Requests a turn, with this number of retries.
async fn once(stand_in: &StandIn, retries: u32) -> Result<String, RunError> {
    let mut settings = settings(stand_in);
    settings.retries = retries;
    ask(&open(settings)).await
}

pub fn hello(_: &Seen, _: usize) -> Answer {
    Answer::ok(json!({"text": "hello"}))
}

#[tokio::test]
async fn a_request_has_path_headers_and_body() {
    let stand_in = StandIn::start(hello);
    let mut settings = settings(&stand_in);
    settings.headers = vec![("X-Dialect".to_owned(), "mine".to_owned())];
    settings.body = json!({"temperature": 0}).as_object().unwrap().clone();
    let provider = open(settings);
    for _ in 0..3 {
        assert_eq!(ask(&provider).await.unwrap(), "hello");
    }
    let seen = &stand_in.seen()[0];
    assert_eq!(seen.path, "/v1/m-1");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-secret-1"));
    assert_eq!(seen.header("x-dialect"), Some("mine"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.body,
        json!({"model": "m-1", "stream": false, "more": {"temperature": 0}})
    );
    assert_eq!(stand_in.connections(), 1, "a connection is reused");
}

#[tokio::test]
async fn temporary_refusals_are_retried() {
    let stand_in = StandIn::start(|seen, number| match number {
        0 | 1 => Answer::Json(
            429,
            vec![("retry-after-ms", "1".to_owned())],
            json!("slow down"),
        ),
        2 => Answer::Json(503, vec![("retry-after", "0".to_owned())], json!("busy")),
        3 => Answer::Json(500, vec![("retry-after", "0".to_owned())], json!("oops")),
        _ => hello(seen, number),
    });
    assert_eq!(once(&stand_in, 8).await.unwrap(), "hello");
    assert_eq!(stand_in.seen().len(), 5);
}

#[tokio::test]
async fn permanent_refusals_end_in_a_typed_error() {
    let stand_in = StandIn::start(|_, _| {
        Answer::Json(
            429,
            vec![("retry-after-ms", "1".to_owned())],
            json!("slow down, sk-secret-1"),
        )
    });
    let error = once(&stand_in, 2).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimit);
    let message = "acme answered for m-1 with HTTP 429 Too Many Requests, 3 times: \
                   \"slow down, [redacted]\". ";
    assert!(error.message.starts_with(message), "{}", error.message);
    assert_eq!(stand_in.seen().len(), 3);
}

#[tokio::test]
async fn errors_that_cannot_be_retried_are_sent_once() {
    for (status, kind, part) in [
        (401, ErrorKind::Auth, "Check the key in ACME_KEY"),
        (404, ErrorKind::Provider, "Check the model's id"),
        (400, ErrorKind::Provider, "HTTP 400 Bad Request: \"no\"."),
    ] {
        let stand_in = StandIn::start(move |_, _| Answer::Json(status, Vec::new(), json!("no")));
        let error = once(&stand_in, 8).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(stand_in.seen().len(), 1);
    }
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let stand_in = StandIn::start(hello);
    let mut settings = settings(&stand_in);
    (settings.key, settings.needs_key) = (None, true);
    let error = ask(&open(settings)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(error.message.contains("set ACME_KEY"), "{}", error.message);
    assert_eq!(stand_in.seen().len(), 0);
}

#[tokio::test]
async fn a_lost_connection_is_retried() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
               content-length: 900\r\n\r\n{\"text\": \"he";
    let ended = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"text\": \"he";
    let stand_in = StandIn::start(move |seen, number| match number {
        0 => Answer::Raw(Vec::new()),
        1 => Answer::Raw(cut.into()),
        2 => Answer::Raw(ended.into()),
        _ => hello(seen, number),
    });
    assert_eq!(once(&stand_in, 8).await.unwrap(), "hello");
    let stand_in = StandIn::start(move |_, _| Answer::Raw(cut.into()));
    let error = once(&stand_in, 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transport);
    assert!(
        error.message.contains("was interrupted after"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn an_unreachable_provider_is_reported_with_its_address() {
    let mut settings = ProviderSettings::new("acme", "http://127.0.0.1:1/v1?key=sk-secret-1");
    settings.retries = 1;
    let error = ask(&open(settings)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transport);
    assert!(
        error.message.contains("http://127.0.0.1:1/v1?…, 2 times"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn invalid_answers_are_not_retried() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<hi>";
    let elsewhere = "HTTP/1.1 307 X\r\n\
                     location: http://elsewhere.example/v1?key=sk-secret-1\r\n\
                     content-length: 0\r\n\r\n";
    let deep = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}{}",
        "[".repeat(500),
        "]".repeat(500)
    );
    let packed =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: br\r\n\r\nxx"
            .to_owned();
    for (raw, part) in [
        (
            html.to_owned(),
            "text/html, where JSON must be; it begins: <hi>",
        ),
        (
            elsewhere.to_owned(),
            "a redirect to `http://elsewhere.example/v1?…`, which is not followed",
        ),
        (deep, "recursion limit"),
        (packed, "compressed with br"),
    ] {
        let stand_in = StandIn::start(move |_, _| Answer::Raw(raw.clone().into()));
        let error = once(&stand_in, 8).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Provider);
        assert!(error.message.contains(part), "{}", error.message);
        assert!(!error.message.contains("secret"), "{}", error.message);
        assert_eq!(stand_in.seen().len(), 1);
    }
    let stand_in = StandIn::start(|_, _| Answer::ok(json!({"nothing": 1})));
    assert!(
        once(&stand_in, 8)
            .await
            .unwrap_err()
            .message
            .contains("no text")
    );
}

#[tokio::test]
async fn the_size_of_an_answer_is_limited() {
    let stand_in = StandIn::start(|_, _| {
        let mut raw = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\"".to_vec();
        raw.resize(33 * 1024 * 1024, b'x');
        Answer::Raw(raw)
    });
    let error = once(&stand_in, 0).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Provider);
    assert!(
        error.message.contains("more than 32 MiB"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_missing_answer_is_a_timeout() {
    let stand_in = StandIn::start(|_, _| Answer::Silence);
    let mut settings = settings(&stand_in);
    settings.timeout = Duration::from_millis(50);
    settings.retries = 1;
    let error = ask(&open(settings)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(
        error.message.contains("providers.acme.timeout"),
        "{}",
        error.message
    );
    assert_eq!(stand_in.seen().len(), 2, "a timeout is retried");
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_an_error() {
    let stand_in = StandIn::start(|_, _| {
        Answer::Json(
            429,
            vec![("retry-after", "3600".to_owned())],
            json!("tomorrow"),
        )
    });
    let provider = open(settings(&stand_in));
    let error = ask(&provider).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimit);
    assert!(
        error.message.contains("It asks to wait 3600s"),
        "{}",
        error.message
    );
    // The next request fails without being sent.
    let error = ask(&provider).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimit);
    assert_eq!(stand_in.seen().len(), 1);
}

#[tokio::test]
async fn long_pauses_are_reported() {
    let stand_in = StandIn::start(|_, _| {
        Answer::Json(429, vec![("retry-after", "30".to_owned())], json!("wait"))
    });
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let provider = Provider::new(settings(&stand_in), Box::new(PlainAdapter)).unwrap();
    let provider =
        Arc::new(provider.with_status(Arc::new(move |message| drop(sender.send(message)))));
    tokio::select! {
        outcome = ask(&provider) => panic!("half a minute is over already: {outcome:?}"),
        message = messages.recv() => {
            assert_eq!(
                message.unwrap(),
                "acme asks to wait 30s; requests to it are held until then",
            );
        }
    }
}

fn streaming(stand_in: &StandIn) -> Arc<Provider> {
    let mut settings = settings(stand_in);
    settings.stream = true;
    open(settings)
}

fn parts(parts: &[&str]) -> Vec<String> {
    parts.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn streams() {
    let stand_in = StandIn::start(|_, _| Answer::Stream {
        parts: parts(&[
            ": keep-alive\n\n",
            "data: he",
            "l\r\n\r\nevent: x\ndata: lo\n\n",
            "data: [DONE]\n\n",
        ]),
        cut: false,
    });
    let provider = streaming(&stand_in);
    for _ in 0..2 {
        assert_eq!(ask(&provider).await.unwrap(), "hello");
    }
    assert_eq!(stand_in.seen()[0].path, "/v1/m-1?stream");
    assert_eq!(stand_in.seen()[0].body["stream"], true);
    assert_eq!(stand_in.connections(), 1);
    // A server without streams.
    let stand_in = StandIn::start(hello);
    assert_eq!(ask(&streaming(&stand_in)).await.unwrap(), "hello");
}

#[tokio::test]
async fn truncated_streams_are_retried() {
    let stand_in = StandIn::start(|_, number| {
        let (list, cut): (&[&str], bool) = match number {
            0 => (&["data: he\n\n"], true),
            1 => (&["data: he\n\n"], false),
            2 => (&["data: he\n\n", "data: [DO"], false),
            3 => (&["event: error\ndata: overloaded\n\n"], false),
            _ => (&["data: hello\n\n", "data: [DONE]\n\n"], false),
        };
        Answer::Stream {
            parts: parts(list),
            cut,
        }
    });
    assert_eq!(ask(&streaming(&stand_in)).await.unwrap(), "hello");
    assert_eq!(stand_in.seen().len(), 5);
}

#[tokio::test]
async fn requests_overlap_within_their_limit() {
    for (bound, together) in [(64, 32), (4, 4)] {
        let stand_in = StandIn::start_together(together, hello);
        let mut settings = settings(&stand_in);
        settings.max_concurrency = bound;
        let provider = open(settings);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let provider = provider.clone();
            tasks.spawn(async move { ask(&provider).await.unwrap() });
        }
        assert_eq!(tasks.join_all().await.len(), 100);
        let most = stand_in.max_in_flight();
        assert!((together..=bound as usize).contains(&most), "{most}");
    }
}

#[tokio::test]
async fn one_failure_in_five_is_retried_without_errors() {
    // A fifth is refused or lost, by a fixed pattern.
    let stand_in = StandIn::start(|seen, number| match number % 10 {
        3 => Answer::Json(
            429,
            vec![("retry-after-ms", "1".to_owned())],
            json!("slow down"),
        ),
        7 => Answer::Raw(Vec::new()),
        _ => hello(seen, number),
    });
    let provider = open(settings(&stand_in));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let provider = provider.clone();
        tasks.spawn(async move { ask(&provider).await });
    }
    let lost: Vec<RunError> = tasks
        .join_all()
        .await
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert_eq!(lost, Vec::new());
}
