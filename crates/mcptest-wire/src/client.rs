//! The MCP client: connecting and listing. Calls are in `calls.rs`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::{Action, Call, Connection};
use crate::error::{WireError, WireErrorKind};
use crate::handshake::{self, show_error};
use crate::http::{Endpoint, HttpServer};
use crate::jsonrpc::{CallOutcome, Params, Response, RpcError};
use crate::options::{ConnectOptions, ServerInfo};
use crate::process::ServerCommand;
use crate::state::ServerMessage;
use crate::time::{Grace, after};
use crate::violation::{Violation, ViolationKind};
use mcptest_http::text::quote;

/// A connection to one MCP server. Clones share it; when the last clone is dropped without
/// [`Client::shutdown`], the server is killed.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    info: ServerInfo,
    options: ConnectOptions,
    /// The number of progress tokens so far.
    progress_tokens: AtomicU64,
}

/// All pages of a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Listing {
    /// The items, each exactly as sent.
    pub items: Vec<Value>,
    /// The number of pages.
    pub pages: usize,
    /// The part of the time that was spent on a credential.
    pub credential_wait: Duration,
}

impl Client {
    /// Starts a server and connects to it over its standard streams.
    ///
    /// `name` is for messages only. Must be called within a tokio runtime with I/O and time
    /// enabled; the connection lives as long as that runtime.
    pub async fn connect_stdio(
        name: &str,
        command: &ServerCommand,
        options: &ConnectOptions,
    ) -> Result<Self, WireError> {
        let (connection, info) = handshake::open(name, command, options).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                connection,
                info,
                options: options.clone(),
                progress_tokens: AtomicU64::new(0),
            }),
        })
    }

    /// Connects to a server over streamable HTTP. Waits up to [`ConnectOptions::connect_timeout`]
    /// until its address accepts connections.
    ///
    /// `name` is for messages only. Must be called within a tokio runtime with I/O and time
    /// enabled; the connection lives as long as that runtime.
    pub async fn connect_http(
        name: &str,
        server: &HttpServer,
        options: &ConnectOptions,
    ) -> Result<Self, WireError> {
        let (connection, info) = handshake::open_http(name, server, options).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                connection,
                info,
                options: options.clone(),
                progress_tokens: AtomicU64::new(0),
            }),
        })
    }

    pub(crate) fn options(&self) -> &ConnectOptions {
        &self.inner.options
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.inner.connection.endpoint()
    }

    /// A token that no other request of this connection has.
    pub(crate) fn next_progress_token(&self) -> String {
        let number = self.inner.progress_tokens.fetch_add(1, Ordering::Relaxed) + 1;
        format!("progress-{number}")
    }

    /// The number of messages that the server has sent by itself, to wait for the next one.
    #[must_use]
    pub fn arrivals(&self) -> watch::Receiver<u64> {
        self.inner.connection.state().arrivals()
    }

    /// Waits until messages of the server can arrive outside of requests. Only a connection over
    /// HTTP takes a moment for it: it opens its own stream, which a server may refuse.
    pub async fn wait_until_listening(&self) {
        if let Some(endpoint) = self
            .endpoint()
            .filter(|_| !self.inner.info.revision.is_stateless())
        {
            let limit = self.inner.options.call_timeout;
            let _ = tokio::time::timeout(limit, endpoint.listening().cancelled()).await;
        }
    }

    /// Returns true if the server is reached over HTTP.
    #[must_use]
    pub fn is_over_http(&self) -> bool {
        self.endpoint().is_some()
    }

    /// The name given at connect time.
    #[must_use]
    pub fn name(&self) -> &str {
        self.inner.connection.name()
    }

    /// The server's description of itself.
    #[must_use]
    pub fn server(&self) -> &ServerInfo {
        &self.inner.info
    }

    /// All tools, each exactly as sent, over all pages.
    pub async fn list_tools(&self) -> Result<Vec<Value>, WireError> {
        let tools = self.list("tools/list", "tools").await?;
        if let Some(endpoint) = self
            .endpoint()
            .filter(|_| self.inner.info.revision.is_stateless())
        {
            for (name, error) in endpoint.learn_headers(&tools) {
                let error = quote(&error.to_string(), 300);
                self.record_malformed(
                    &format!("tool `{}`: {error}", quote(&name, 120)),
                    "tools/list",
                );
            }
        }
        Ok(tools)
    }

    /// All pages of a list that the server may refuse, such as `resources/list` with the key
    /// `resources`. An error of the server is an outcome.
    pub async fn list_pages(
        &self,
        method: &str,
        key: &str,
    ) -> Result<Result<Listing, RpcError>, WireError> {
        let action = format!("listing {key} ({method})");
        self.try_list(method, key, &action).await
    }

    /// All resources, each exactly as sent, over all pages.
    pub async fn list_resources(&self) -> Result<Vec<Value>, WireError> {
        self.list("resources/list", "resources").await
    }

    /// All resource templates, each exactly as sent, over all pages.
    pub async fn list_resource_templates(&self) -> Result<Vec<Value>, WireError> {
        self.list("resources/templates/list", "resourceTemplates")
            .await
    }

    /// All prompts, each exactly as sent, over all pages.
    pub async fn list_prompts(&self) -> Result<Vec<Value>, WireError> {
        self.list("prompts/list", "prompts").await
    }

    /// Sends any request. On a stateless connection, adds the `_meta` keys that every request
    /// needs.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Value>,
        timeout: Duration,
    ) -> Result<Response, WireError> {
        let action = format!("sending `{}`", quote(method, 120));
        self.send(method, params.into(), timeout, None, &action)
            .await
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Option<Value>) {
        self.inner.connection.notify(method, params);
    }

    /// The protocol violations so far, in order, up to [`crate::WireLimits::max_violations`].
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let connection = &self.inner.connection;
        let mut violations = connection.state().violations.to_vec();
        if let Some(endpoint) = connection.endpoint() {
            for violation in &mut violations {
                violation.detail = endpoint.mask(&violation.detail);
                violation.text = endpoint.mask(&violation.text);
            }
        }
        violations
    }

    /// The number of violations, including those not kept.
    #[must_use]
    pub fn violation_count(&self) -> u64 {
        self.inner.connection.state().violations.total()
    }

    /// The latest notifications and requests of the server, oldest first, up to
    /// [`crate::WireLimits::max_server_messages`].
    #[must_use]
    pub fn server_messages(&self) -> Vec<ServerMessage> {
        self.inner.connection.state().server_messages()
    }

    /// The number of messages of the server by method.
    #[must_use]
    pub fn server_message_counts(&self) -> BTreeMap<String, u64> {
        self.inner.connection.state().message_counts()
    }

    /// The number of replies that arrived after the caller had stopped waiting.
    #[must_use]
    pub fn late_replies(&self) -> u64 {
        self.inner.connection.state().late_replies
    }

    /// The number of stderr lines so far, for [`stderr_after`](Self::stderr_after).
    #[must_use]
    pub fn stderr_mark(&self) -> u64 {
        self.inner.connection.stderr_mark()
    }

    /// The last stderr lines after a mark, truncated and sanitized.
    #[must_use]
    pub fn stderr_after(&self, mark: u64) -> Vec<String> {
        self.inner.connection.stderr_after(mark)
    }

    /// The last lines of the server's stderr, truncated and sanitized.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.inner.connection.stderr_tail()
    }

    /// Returns true if requests can be sent.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let state = self.inner.connection.state();
        state.closed.is_none() && state.outgoing.is_some()
    }

    /// Ends the session of a server over HTTP, or stops a server that we started with all its
    /// descendants: closes its stdin, waits, sends SIGTERM, waits, and sends SIGKILL. A server that
    /// exits when its stdin closes stops immediately. Calling it again is harmless.
    pub async fn shutdown(&self) {
        self.inner.connection.shutdown(Grace::NORMAL).await;
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        params: Params<'_>,
        timeout: Duration,
        cancel: Option<&CancellationToken>,
        action: Action<'_>,
    ) -> Result<Response, WireError> {
        let params = if self.inner.info.revision.is_stateless() {
            Params::Value(self.with_meta(params.into_value()))
        } else {
            params
        };
        let call = Call {
            method,
            params,
            timeout,
            cancel,
            notify_cancelled: true,
            action,
        };
        self.inner.connection.request(call).await
    }

    /// Adds the `_meta` of a stateless request. Keys that the caller set stay, so that a test can
    /// send wrong ones on purpose.
    fn with_meta(&self, params: Option<Value>) -> Value {
        let inner = &self.inner;
        let mut params = match params {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(other) => return other,
        };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            for (key, value) in handshake::request_meta(&inner.options, inner.info.revision) {
                meta.entry(key).or_insert(value);
            }
        }
        Value::Object(params)
    }

    /// Follows `nextCursor` and collects the items under `key`.
    async fn list(&self, method: &str, key: &str) -> Result<Vec<Value>, WireError> {
        let action = format!("listing {key} ({method})");
        match self.try_list(method, key, &action).await? {
            Ok(listing) => Ok(listing.items),
            Err(error) => {
                let error = show_error(&error);
                Err(self.protocol_error(&action, format!("the server answered with {error}")))
            }
        }
    }

    /// Like [`Self::list`], with an error of the server as outcome. All pages together have the
    /// bounds of one start: its time, and [`crate::WireLimits::max_list_bytes`].
    async fn try_list(
        &self,
        method: &str,
        key: &str,
        action: Action<'_>,
    ) -> Result<Result<Listing, RpcError>, WireError> {
        let limits = &self.inner.options.limits;
        let fail = |detail: String| self.protocol_error(action, detail);
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut cursors: Vec<String> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        let options = &self.inner.options;
        let mut deadline = after(options.connect_timeout.max(options.call_timeout));
        let mut credential_wait = Duration::ZERO;
        loop {
            let params = cursors.last().map(|cursor| json!({ "cursor": cursor }));
            let remaining = deadline.saturating_duration_since(Instant::now());
            let response = self
                .send(
                    method,
                    params.into(),
                    remaining.min(options.call_timeout),
                    None,
                    action,
                )
                .await
                .map_err(|error| match cursors.len() {
                    0 => error,
                    pages => error.note(&format!(
                        "it was page {} of the list, and all pages have one timeout together",
                        pages + 1
                    )),
                })?;
            deadline += response.credential_wait;
            credential_wait += response.credential_wait;
            bytes += response.raw.len();
            if bytes > limits.max_list_bytes {
                let max = limits.max_list_bytes >> 20;
                return Err(fail(format!("the list is larger than {max} MiB")));
            }
            let mut page = match response.outcome {
                CallOutcome::Result(result) => result,
                CallOutcome::Error(error) => return Ok(Err(error)),
            };
            self.check_result_type(&page, action)?;
            match page.get_mut(key).map(Value::take) {
                Some(Value::Array(more)) => items.extend(more),
                _ => {
                    return Err(fail(format!(
                        "the result has no array `{key}`: {}",
                        quote(&page.to_string(), 300)
                    )));
                }
            }
            if items.len() > limits.max_items {
                return Err(fail(format!(
                    "the server lists more than {} items",
                    limits.max_items
                )));
            }
            let listing = |items| Listing {
                items,
                pages: cursors.len() + 1,
                credential_wait,
            };
            let cursor = match page.get_mut("nextCursor").map(Value::take) {
                None | Some(Value::Null) => return Ok(Ok(listing(items))),
                Some(Value::String(cursor)) if cursor.is_empty() => {
                    // Meant as "no more"; following it would restart the list.
                    self.record_malformed("nextCursor is an empty string", method);
                    return Ok(Ok(listing(items)));
                }
                Some(Value::String(cursor)) => cursor,
                Some(other) => {
                    let shown = quote(&other.to_string(), 80);
                    return Err(fail(format!("nextCursor is not a string: {shown}")));
                }
            };
            if !known.insert(cursor.clone()) {
                return Err(fail(format!(
                    "the server repeated the cursor `{}` after {} pages, \
                     so its list would never end",
                    quote(&cursor, 80),
                    cursors.len() + 1
                )));
            }
            cursors.push(cursor);
            if cursors.len() >= limits.max_pages {
                return Err(fail(format!(
                    "the list has more than {} pages",
                    limits.max_pages
                )));
            }
        }
    }

    /// Checks that a stateless result is complete.
    pub(crate) fn check_result_type(
        &self,
        result: &Value,
        action: Action<'_>,
    ) -> Result<(), WireError> {
        if !self.inner.info.revision.is_stateless() {
            return Ok(());
        }
        match result.get("resultType").and_then(Value::as_str) {
            Some("complete") => Ok(()),
            Some("input_required") => Err(self.protocol_error(
                action,
                "the server requires input from the client (resultType \"input_required\"), \
                 which this client does not offer"
                    .to_owned(),
            )),
            Some(other) => {
                let detail = format!("unknown resultType \"{other}\"");
                self.record_malformed(&detail, &action.to_string());
                Ok(())
            }
            None => {
                self.record_malformed("resultType is missing", &action.to_string());
                Ok(())
            }
        }
    }

    /// Checks the form of a result. A malformed one is not an answer that a test or an agent could
    /// be judged by.
    pub(crate) fn check_form(
        &self,
        malformed: fn(&Value) -> Option<String>,
        result: &Value,
        action: Action<'_>,
    ) -> Result<(), WireError> {
        let Some(problem) = malformed(result) else {
            return Ok(());
        };
        let what = if action.to_string().starts_with("calling tool") {
            "tool result"
        } else {
            "result"
        };
        let shown = quote(&result.to_string(), 300);
        self.record_malformed(&problem, &shown);
        Err(self.protocol_error(
            action,
            format!("the {what} is malformed: {problem}: {shown}"),
        ))
    }

    fn record_malformed(&self, detail: &str, text: &str) {
        self.inner.connection.state().violations.record(
            ViolationKind::MalformedResult,
            detail,
            text,
        );
    }

    pub(crate) fn failure(
        &self,
        kind: WireErrorKind,
        action: Action<'_>,
        detail: String,
    ) -> WireError {
        self.inner.connection.failure(kind, action, detail)
    }

    pub(crate) fn protocol_error(&self, action: Action<'_>, detail: String) -> WireError {
        self.inner
            .connection
            .failure(WireErrorKind::Protocol, action, detail)
    }
}
