//! The server: the page, the state of the report, single records, and the whole report at the end.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mcptest_events::CaseId;
use mcptest_report::{Style, live_page, write_live, write_part};
use percent_encoding::percent_decode_str;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::follow::Source;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
/// The time that answers on their way get when the server ends.
const MAX_DRAIN: Duration = Duration::from_secs(5);

type Answer = Response<Full<Bytes>>;

/// The state that all connections share.
#[derive(Debug)]
pub struct State {
    source: Mutex<Source>,
    style: Style,
    port: u16,
    token: String,
    /// The last time that a page asked.
    asked: Mutex<Option<Instant>>,
    gave_whole: AtomicBool,
}

impl State {
    pub fn new(source: Source, style: Style, port: u16, token: String) -> Self {
        Self {
            source: Mutex::new(source),
            style,
            port,
            token,
            asked: Mutex::default(),
            gave_whole: AtomicBool::new(false),
        }
    }

    /// Returns true if a page asked within this time.
    pub fn is_open(&self, within: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|asked| asked.elapsed() < within)
    }

    /// Returns true if a page got the whole report of a run that has ended.
    pub fn gave_whole(&self) -> bool {
        self.gave_whole.load(Ordering::Acquire)
    }

    fn answer(&self, request: &Request<Incoming>) -> Answer {
        if request.method() != Method::GET {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET");
        }
        if !self.is_own(request.headers()) {
            return refusal(
                StatusCode::FORBIDDEN,
                "this address is for this machine only",
            );
        }
        let query = query(request.uri().query().unwrap_or_default());
        let token = query.get("token").map_or("", String::as_str);
        if !is_equal(token, &self.token) {
            return refusal(
                StatusCode::FORBIDDEN,
                "the token is missing or wrong: open the address that mcptest printed",
            );
        }
        match request.uri().path() {
            "/" => answer(
                HTML,
                live_page(&format!("/data?token={}", self.token)).into(),
            ),
            "/data" => self.data(&query),
            _ => refusal(StatusCode::NOT_FOUND, "no such page"),
        }
    }

    /// Returns true if a request is for this server, and not from another page.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        let is_host = |text: &str| hosts.iter().any(|host| host == text);
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let host = headers.get(HOST).map(text);
        let origin = headers.get(ORIGIN).map(text);
        host.is_some_and(|host| is_host(&host))
            && origin.is_none_or(|origin| origin.strip_prefix("http://").is_some_and(is_host))
    }

    fn data(&self, query: &BTreeMap<String, String>) -> Answer {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let updated = {
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            source.update()
        };
        let (report, state) = match updated {
            Ok(updated) => updated,
            Err(error) => return failure(&error),
        };
        let mut out = Vec::new();
        if query.contains_key("whole") {
            let written = mcptest_report::render("html", &report, self.style, &mut out);
            return match written {
                Ok(()) => {
                    self.gave_whole.store(state.ended, Ordering::Release);
                    answer(HTML, out)
                }
                Err(error) => failure(&error),
            };
        }
        if query.contains_key("part") {
            let id = CaseId {
                suite: query.get("suite").cloned().unwrap_or_default(),
                name: query.get("name").cloned().unwrap_or_default(),
                model: query.get("model").cloned(),
            };
            let run = query.get("run").and_then(|run| run.parse().ok());
            return match write_part(&report, &id, run, &mut out) {
                Ok(true) => answer(JSON, out),
                Ok(false) => refusal(StatusCode::NOT_FOUND, "no such test or run"),
                Err(error) => failure(&error),
            };
        }
        let since = query.get("since").and_then(|since| since.parse().ok());
        if since == Some(state.version) {
            let mut nothing = answer(JSON, Vec::new());
            *nothing.status_mut() = StatusCode::NO_CONTENT;
            return nothing;
        }
        match write_live(&report, state, self.style, &mut out) {
            Ok(()) => answer(JSON, out),
            Err(error) => failure(&error),
        }
    }
}

/// The decoded parameters of an address.
fn query(text: &str) -> BTreeMap<String, String> {
    let decoded = |part: &str| {
        let spaced = part.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Compares two strings in a time that does not depend on where they differ.
fn is_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).map(|(a, b)| a ^ b);
    one.len() == other.len() && differences.fold(0, |all, one| all | one) == 0
}

fn answer(kind: &'static str, body: Vec<u8>) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(CONTENT_TYPE, fixed(kind));
    headers.insert(CACHE_CONTROL, fixed("no-store"));
    headers.insert("x-content-type-options", fixed("nosniff"));
    headers.insert("referrer-policy", fixed("no-referrer"));
    headers.insert("cross-origin-resource-policy", fixed("same-origin"));
    headers.insert("x-frame-options", fixed("DENY"));
    response
}

fn refusal(status: StatusCode, why: &str) -> Answer {
    let mut response = answer("text/plain; charset=utf-8", format!("{why}\n").into_bytes());
    *response.status_mut() = status;
    response
}

fn failure(error: &impl std::fmt::Display) -> Answer {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
}

/// Serves until `stop` is cancelled; answers on their way are finished.
pub fn run(listener: TcpListener, state: &Arc<State>, stop: &CancellationToken) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    // Without a runtime nobody is answered, and the page shows that the server is gone.
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
            return;
        };
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let Ok((stream, _)) = accepted else { continue };
            let (state, stop) = (Arc::clone(state), stop.clone());
            connections.spawn(async move {
                let service = service_fn(|request| {
                    let answer = state.answer(&request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                // A failed connection affects its client only.
                tokio::select! {
                    _ = connection.as_mut() => {}
                    () = stop.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        let _ = connection.await;
                    }
                }
            });
            while connections.try_join_next().is_some() {}
        }
        let drained = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(MAX_DRAIN, drained).await;
    });
}
