//! One attempt: a request and its response, as JSON or as a stream.

use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, LOCATION};
use hyper::{Method, Response, StatusCode};
use mcptest_agent::AssistantTurn;
use mcptest_http::body::{BodyError, content_type, error_chain, read_all, read_excerpt};
use mcptest_http::sse::Parser;
use mcptest_http::text::quote;
use mcptest_http::{Pool, SendError, Sender, without_query};
use mcptest_redact::redact::Redactor;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::adapter::{Adapter, ApiErrorKind, ProviderRequest};
use crate::retry_after::retry_after;
use crate::send_failure::{FailureCause, SendFailure};
use crate::settings::ProviderSettings;
use crate::{TARGET, millis};

/// The longest silence within a stream.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// The largest answer. Long answers have some hundred kilobytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A request that can be sent several times.
pub(crate) struct OutgoingRequest<'a> {
    pub settings: &'a ProviderSettings,
    pub adapter: &'a dyn Adapter,
    pub pool: &'a Pool,
    pub headers: &'a HeaderMap,
    pub redactor: &'a Redactor,
    pub request: &'a ProviderRequest<'a>,
    pub path: &'a str,
    pub body: Bytes,
}

impl OutgoingRequest<'_> {
    /// Sends the request once, within the timeout.
    pub(crate) async fn attempt(&self, attempt: u32) -> Result<AssistantTurn, SendFailure> {
        let provider = self.settings.name.as_str();
        let model = self.request.model;
        tracing::debug!(
            target: TARGET,
            provider,
            model,
            attempt,
            bytes = self.body.len(),
            "request sent"
        );
        self.trace_body("request body", &self.body);
        let started = Instant::now();
        let outcome = match timeout(self.settings.timeout, self.send()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SendFailure {
                cause: FailureCause::Timeout(started.elapsed()),
                message: format!("no complete answer within {:?}", self.settings.timeout),
                retry_after: None,
            }),
        };
        let ms = millis(started.elapsed());
        match &outcome {
            Ok(turn) => tracing::debug!(
                target: TARGET,
                provider,
                model,
                attempt,
                ms,
                input_tokens = turn.usage.map(|usage| usage.input),
                output_tokens = turn.usage.map(|usage| usage.output),
                calls = turn.calls.len(),
                "turn received"
            ),
            Err(failure) => tracing::debug!(
                target: TARGET,
                provider,
                model,
                attempt,
                ms,
                "no turn received: {}",
                self.redactor.text(&failure.message)
            ),
        }
        outcome
    }

    fn trace_body(&self, title: &str, body: &[u8]) {
        tracing::trace!(
            target: TARGET,
            provider = self.settings.name,
            "{title}: {}",
            self.redactor.text(&String::from_utf8_lossy(body))
        );
    }

    async fn send(&self) -> Result<AssistantTurn, SendFailure> {
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| {
            let message = format!("`{}` is not a valid path", quote(self.path, 200));
            SendFailure::answered(ApiErrorKind::Refused, None, message)
        })?;
        request.headers_mut().clone_from(self.headers);
        let started = Instant::now();
        let (mut response, sender) =
            self.pool.send(request).await.map_err(|error| match error {
                SendError::Connect(error) => SendFailure::not_connected(&error),
                SendError::Lost(error) => SendFailure::connection(format!(
                    "the connection was lost before a response came: {}",
                    error_chain(&error)
                )),
            })?;
        let status = response.status();
        tracing::debug!(
            target: TARGET,
            provider = self.settings.name,
            status = status.as_u16(),
            ms = millis(started.elapsed()),
            "response started"
        );
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        if !status.is_success() {
            let requested = retry_after(response.headers(), SystemTime::now());
            let body = read_excerpt(response.body_mut()).await;
            self.pool.give_back(sender);
            self.trace_body("response body", &body);
            let error = self.adapter.error(status.as_u16(), &body);
            let mut failure = SendFailure::from_api(error, status);
            failure.retry_after = requested.or(failure.retry_after);
            return Err(failure);
        }
        match content_type(&response).as_deref() {
            Some("text/event-stream") => self.read_stream(response, sender).await,
            Some(kind) if kind == "application/json" || kind.ends_with("+json") => {
                self.read_whole(response, sender).await
            }
            // Some servers send no type; then it is assumed to be the requested one.
            None if self.settings.stream => self.read_stream(response, sender).await,
            None => self.read_whole(response, sender).await,
            Some(other) => {
                let body = read_excerpt(response.body_mut()).await;
                self.trace_body("response body", &body);
                let message = format!(
                    "it answered with {}, where JSON must be; it begins: {}",
                    quote(other, 80),
                    quote(&String::from_utf8_lossy(&body), 200)
                );
                Err(malformed(message))
            }
        }
    }

    async fn read_whole(
        &self,
        mut response: Response<Incoming>,
        sender: Sender,
    ) -> Result<AssistantTurn, SendFailure> {
        let body = read_all(response.body_mut(), MAX_BYTES)
            .await
            .map_err(|error| match error {
                BodyError::Interrupted { read, error } => SendFailure::connection(format!(
                    "the answer was interrupted after {} bytes: {}",
                    read.len(),
                    error_chain(&error)
                )),
                BodyError::TooLong { .. } => too_long(),
            })?;
        self.pool.give_back(sender);
        self.trace_body("response body", &body);
        // The JSON reader rejects answers that are nested too deeply.
        let answer: Value = serde_json::from_slice(&body).map_err(|error| {
            if error.is_eof() {
                return SendFailure::connection(format!(
                    "the answer was interrupted after {} bytes",
                    body.len()
                ));
            }
            malformed(format!(
                "it is not valid JSON ({error}): {}",
                quote(&String::from_utf8_lossy(&body), 200)
            ))
        })?;
        self.turn(&answer, response.status())
    }

    async fn read_stream(
        &self,
        mut response: Response<Incoming>,
        sender: Sender,
    ) -> Result<AssistantTurn, SendFailure> {
        let status = response.status();
        let started = Instant::now();
        let silence = MAX_SILENCE.min(self.settings.timeout);
        let mut assembler = self.adapter.assembler();
        let mut parser = Parser::new(MAX_BYTES);
        let mut events = Vec::new();
        let mut bytes = 0;
        let mut count = 0_usize;
        loop {
            let frame = match timeout(silence, response.body_mut().frame()).await {
                Err(_) => {
                    return Err(SendFailure {
                        cause: FailureCause::Timeout(silence),
                        message: format!("the stream was silent for {silence:?}"),
                        retry_after: None,
                    });
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(SendFailure::connection(format!(
                        "the stream was interrupted: {}",
                        error_chain(&error)
                    )));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            bytes += data.len();
            if bytes > MAX_BYTES {
                return Err(too_long());
            }
            parser.push(data, &mut events).map_err(|_| too_long())?;
            for event in events.drain(..) {
                count += 1;
                self.trace_body("stream event", &event.data);
                let name = Some(event.kind.as_str()).filter(|kind| !kind.is_empty());
                let data = std::str::from_utf8(&event.data)
                    .map_err(|_| malformed("an event that is not UTF-8"))?;
                assembler
                    .event(name, data)
                    .map_err(|error| SendFailure::from_api(error, status))?;
            }
        }
        tracing::debug!(
            target: TARGET,
            provider = self.settings.name,
            bytes,
            events = count,
            ms = millis(started.elapsed()),
            "stream ended"
        );
        if parser.is_mid_event() {
            return Err(SendFailure::connection(
                "the stream ended in the middle of an event",
            ));
        }
        let answer = assembler
            .finish()
            .map_err(|error| SendFailure::from_api(error, status))?;
        self.pool.give_back(sender);
        self.turn(&answer, status)
    }

    fn turn(&self, answer: &Value, status: StatusCode) -> Result<AssistantTurn, SendFailure> {
        self.adapter
            .turn(self.request, answer)
            .map_err(|error| SendFailure::from_api(error, status))
    }
}

fn malformed(message: impl Into<String>) -> SendFailure {
    SendFailure::answered(ApiErrorKind::Malformed, None, message)
}

fn too_long() -> SendFailure {
    malformed(format!(
        "an answer of more than {} MiB, which is the limit",
        MAX_BYTES >> 20
    ))
}

/// Rejects a redirect: a request with a key goes only to the address in the suite.
fn redirected(response: &Response<Incoming>) -> SendFailure {
    let target = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok());
    let message = match target {
        Some(target) => format!(
            "a redirect to `{}`, which is not followed; set it as `base_url` if it is correct",
            quote(&without_query(target), 200)
        ),
        None => "a redirect without an address".to_owned(),
    };
    SendFailure::answered(ApiErrorKind::Refused, Some(response.status()), message)
}
