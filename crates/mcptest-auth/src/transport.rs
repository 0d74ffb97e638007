//! Bounded HTTP requests to authorization servers and for metadata.

use std::pin::Pin;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use mcptest_http::body::{BodyError, describe_status, error_chain, read_all};
use mcptest_http::text::{quote, quote_bytes};
use mcptest_http::{Address, Pool, SendError, without_query};
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::Url;

use crate::url_policy::UrlPolicy;

/// The largest body that is read. Real metadata has a few kilobytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Redirects followed for metadata.
const MAX_REDIRECTS: usize = 3;

/// Characters shown of a body that cannot be used.
const EXCERPT_CHARS: usize = 200;

const AGENT: &str = concat!("mcptest/", env!("CARGO_PKG_VERSION"));

/// A failed exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ExchangeError {
    pub(crate) reason: String,
    /// True if the document does not exist there: another place may have it.
    pub(crate) is_absent: bool,
    /// True if the same exchange may succeed later, and has had no effect.
    pub(crate) is_temporary: bool,
}

impl ExchangeError {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_absent: false,
            is_temporary: false,
        }
    }
}

/// Sends requests to addresses that the policy allows.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    policy: UrlPolicy,
    /// Time for one exchange, from the connection to the end of the body.
    limit: Duration,
}

impl Transport {
    pub(crate) fn new(policy: UrlPolicy, limit: Duration) -> Self {
        Self { policy, limit }
    }

    /// Parses an address and checks that a request may be sent to it.
    ///
    /// # Errors
    /// The reason why not.
    pub(crate) fn check(&self, url: &str) -> Result<Url, String> {
        self.policy.check(url)
    }

    /// Fetches a JSON object. Redirects are followed as far as the policy allows: the request
    /// carries no credential.
    pub(crate) async fn get_object(&self, url: &str) -> Result<Map<String, Value>, ExchangeError> {
        let mut url = self.allowed(url)?;
        for _ in 0..=MAX_REDIRECTS {
            let request = Request::get(url.as_str())
                .header(ACCEPT, HeaderValue::from_static("application/json"))
                .body(Vec::new())
                .map_err(|error| ExchangeError::new(error.to_string()))?;
            let response = self.exchange(&url, request).await?;
            let status = response.status();
            if status.is_redirection() {
                let target = response
                    .headers()
                    .get(LOCATION)
                    .and_then(|value| value.to_str().ok())
                    .and_then(|target| url.join(target).ok())
                    .ok_or_else(|| {
                        let status = describe_status(status);
                        ExchangeError::new(format!("{status} without a target"))
                    })?;
                url = self.allowed(target.as_str()).map_err(|error| {
                    let reason = format!("it redirects to {}", error.reason);
                    ExchangeError { reason, ..error }
                })?;
                continue;
            }
            return object(status, response.body());
        }
        Err(ExchangeError::new(format!(
            "more than {MAX_REDIRECTS} redirects"
        )))
    }

    /// Sends a request that carries credentials; redirects are not followed.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ExchangeError> {
        let url = self.allowed(&request.uri().to_string())?;
        let response = self.exchange(&url, request).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(ExchangeError::new(format!(
                "{}: a redirect is not followed with credentials",
                describe_status(status)
            )));
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(ExchangeError {
                is_temporary: true,
                ..ExchangeError::new(refused(status, response.body()))
            });
        }
        Ok(response)
    }

    fn allowed(&self, url: &str) -> Result<Url, ExchangeError> {
        self.policy.check(url).map_err(|reason| {
            let shown = quote(&without_query(url), 200);
            ExchangeError::new(format!("{shown}, which is not requested: {reason}"))
        })
    }

    async fn exchange(
        &self,
        url: &Url,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, ExchangeError> {
        match timeout(self.limit, exchange(url, request)).await {
            Ok(result) => result,
            Err(_) => Err(ExchangeError::new(format!(
                "no complete answer within {} s",
                self.limit.as_secs_f32()
            ))),
        }
    }
}

async fn exchange(
    url: &Url,
    request: Request<Vec<u8>>,
) -> Result<Response<Vec<u8>>, ExchangeError> {
    let address =
        Address::parse(url.as_str()).map_err(|error| ExchangeError::new(error.to_string()))?;
    let (mut head, body) = request.into_parts();
    head.uri = address
        .path
        .parse()
        .map_err(|_| ExchangeError::new("its path cannot be requested"))?;
    head.headers.insert(HOST, address.authority.clone());
    head.headers
        .insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let request = Request::from_parts(head, Full::new(Bytes::from(body)));
    let sent = Pool::new(&address, 0).send(request).await;
    let (response, _sender) = sent.map_err(|error| match error {
        SendError::Connect(error) => ExchangeError {
            is_temporary: true,
            ..ExchangeError::new(format!("cannot connect: {error}"))
        },
        SendError::Lost(error) => ExchangeError::new(format!(
            "the connection was lost before a response arrived: {}",
            error_chain(&error)
        )),
    })?;
    let (head, mut body) = response.into_parts();
    let body = read_all(&mut body, MAX_BODY_BYTES)
        .await
        .map_err(|unread| {
            let status = describe_status(head.status);
            ExchangeError::new(match unread {
                BodyError::TooLong { .. } => {
                    let limit = MAX_BODY_BYTES / 1024;
                    format!("{status} with more than {limit} KiB, which is the limit")
                }
                BodyError::Interrupted { error, .. } => {
                    format!(
                        "{status}, and the body was interrupted: {}",
                        error_chain(&error)
                    )
                }
            })
        })?;
    Ok(Response::from_parts(head, body))
}

/// The object in a response.
fn object(status: StatusCode, body: &[u8]) -> Result<Map<String, Value>, ExchangeError> {
    if !status.is_success() {
        return Err(ExchangeError {
            is_absent: status.is_client_error(),
            is_temporary: status.is_server_error(),
            ..ExchangeError::new(refused(status, body))
        });
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        // A page for every address, as web applications have it.
        _ => Err(ExchangeError {
            is_absent: true,
            ..ExchangeError::new(format!(
                "{}, but not a JSON object: {}",
                describe_status(status),
                excerpt(body)
            ))
        }),
    }
}

/// A status with the beginning of the body.
pub(crate) fn refused(status: StatusCode, body: &[u8]) -> String {
    let status = describe_status(status);
    match body.trim_ascii() {
        [] => status,
        body => format!("{status}: {}", excerpt(body)),
    }
}

fn excerpt(body: &[u8]) -> String {
    quote_bytes(body.trim_ascii(), EXCERPT_CHARS)
}

impl<'c> AsyncHttpClient<'c> for Transport {
    type Error = ExchangeError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, ExchangeError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        debug_assert_eq!(request.method(), Method::POST);
        Box::pin(self.send(request))
    }
}
