//! Opening a connection by `initialize`, by `server/discover`, or by whichever works.

use std::time::Duration;

use mcptest_protocol::{Revision, meta};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};

use crate::connection::{Call, Connection};
use crate::error::{WireError, WireErrorKind};
use crate::http::{Endpoint, HttpServer, HttpTransport};
use crate::jsonrpc::{CallOutcome, Params, RpcError};
use crate::options::{ConnectOptions, Lifecycle, ServerInfo};
use crate::process::ServerCommand;
use crate::time::{Grace, after, show_duration};
use crate::violation::ViolationKind;
use mcptest_http::text::quote;

/// The longest silence after the probe before the server is pinged.
const MAX_PROBE_WAIT: Duration = Duration::from_secs(5);

/// Time for the answer to the ping. Some servers ignore everything before `initialize`, and would
/// block the connection otherwise.
const PING_WAIT: Duration = Duration::from_secs(3);

/// Time for the answer to the probe after the answer to the ping.
const AFTER_PING_WAIT: Duration = Duration::from_secs(1);

/// The error code of 2026-07-28 for an unsupported revision.
const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// Starts the server and connects to it. On failure, no process of the server is left.
pub(crate) async fn open(
    name: &str,
    command: &ServerCommand,
    options: &ConnectOptions,
) -> Result<(Connection, ServerInfo), WireError> {
    let opening = Opening::new(options);
    let connection = Connection::open(name, command, options)?;
    let opened = match options.lifecycle {
        Lifecycle::Initialize => opening.initialize(&connection).await,
        Lifecycle::Discover => opening.discover(&connection).await,
        Lifecycle::Auto => match opening.probe(&connection).await {
            Err(error) if has_exited(&error) => {
                // Some old servers crash on an unknown method.
                connection.log().restarting();
                connection.shutdown(Grace::SHORT).await;
                drop(connection);
                return opening.restart(name, command).await;
            }
            other => other,
        },
    };
    opening.finish(connection, opened).await
}

/// Connects to a server over HTTP once it accepts connections.
pub(crate) async fn open_http(
    name: &str,
    server: &HttpServer,
    options: &ConnectOptions,
) -> Result<(Connection, ServerInfo), WireError> {
    let opening = Opening::new(options);
    let connection = Connection::open_http(name, server, options)?;
    if let Some(endpoint) = connection.endpoint() {
        let ready = endpoint
            .wait_until_ready(opening.remaining(&connection))
            .await;
        if let Err((kind, detail)) = ready {
            let error = connection.failure(kind, &"connecting", detail);
            return opening.finish(connection, Err(error)).await;
        }
    }
    let opened = match (server.transport, options.lifecycle) {
        (HttpTransport::Sse, _) => opening.initialize_over_sse(&connection).await,
        (_, Lifecycle::Initialize) => opening.initialize(&connection).await,
        (_, Lifecycle::Discover) => opening.discover(&connection).await,
        (_, Lifecycle::Auto) => opening.probe(&connection).await,
    };
    let opened = match opened {
        Err(error) if opening.may_be_legacy(&connection) => {
            let other = opening.initialize_over_sse(&connection).await;
            other.map_err(|reason| opening.neither(&connection, error, &reason))
        }
        opened => opened,
    };
    opening.finish(connection, opened).await
}

fn has_exited(error: &WireError) -> bool {
    matches!(
        error.kind,
        WireErrorKind::ServerCrash | WireErrorKind::Transport
    )
}

/// One attempt to connect.
struct Opening<'a> {
    options: &'a ConnectOptions,
    start: Instant,
    deadline: Instant,
}

impl<'a> Opening<'a> {
    fn new(options: &'a ConnectOptions) -> Self {
        Self {
            options,
            start: Instant::now(),
            deadline: after(options.connect_timeout),
        }
    }

    /// Applies the chosen revision to the connection, or shuts it down after a failure.
    async fn finish(
        &self,
        connection: Connection,
        opened: Result<ServerInfo, WireError>,
    ) -> Result<(Connection, ServerInfo), WireError> {
        match opened {
            Ok(info) => {
                connection
                    .log()
                    .connected(info.revision.as_str(), self.start.elapsed());
                let mut state = connection.state();
                state.batches_allowed = info.revision.allows_batches();
                // A stateless call over HTTP is cancelled by closing its stream.
                state.sends_cancelled =
                    connection.endpoint().is_none() || !info.revision.is_stateless();
                drop(state);
                Ok((connection, info))
            }
            Err(error) => {
                connection.log().not_connected(&error, self.start.elapsed());
                connection.shutdown(Grace::SHORT).await;
                Err(error)
            }
        }
    }

    /// Tries `server/discover`, then `initialize`. Fails with a crash if the process exits
    /// meanwhile.
    async fn probe(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        let start = Instant::now();
        let unanswered = match self.probe_answer(connection).await {
            Ok(CallOutcome::Result(result)) => {
                if is_stateless(&result) {
                    return Ok(discovered(connection, result));
                }
                false
            }
            Ok(CallOutcome::Error(_)) => false,
            // Over HTTP, the server survives a failed exchange.
            Err(error) if has_exited(&error) && connection.endpoint().is_none() => {
                return Err(error);
            }
            Err(error) => error.kind == WireErrorKind::Timeout,
        };
        let waited = show_duration(start.elapsed());
        let explain = |error: WireError| {
            error.note(&format!(
                "before that it left server/discover unanswered for {waited}"
            ))
        };
        match self.initialize(connection).await {
            Ok(mut info) => {
                info.probe_unanswered = unanswered;
                Ok(info)
            }
            // A slow server handles the probe before `initialize`, and may then refuse `initialize`
            // because it is stateless. Now that it answers, the probe is repeated.
            Err(refusal) if unanswered && refusal.kind == WireErrorKind::Protocol => {
                match self
                    .ask_discover(connection, self.remaining(connection))
                    .await
                {
                    Ok(CallOutcome::Result(result)) if is_stateless(&result) => {
                        Ok(discovered(connection, result))
                    }
                    _ => Err(explain(refusal)),
                }
            }
            Err(error) if unanswered => Err(explain(error)),
            Err(error) => Err(error),
        }
    }

    /// The answer to the probe. A silent server ignores the probe or is still starting. A `ping`,
    /// which servers should answer at any time, distinguishes the two: a slow server answers the
    /// probe first, so the result does not depend on the load of the machine.
    async fn probe_answer(&self, connection: &Connection) -> Result<CallOutcome, WireError> {
        let third = self.options.connect_timeout / 3;
        // Over HTTP there is no queue.
        if connection.endpoint().is_some() {
            return self
                .ask_discover_twice(connection, MAX_PROBE_WAIT.min(third))
                .await;
        }
        // The last third is left for `initialize`.
        let discover = self.ask_discover_twice(connection, third * 2);
        tokio::pin!(discover);
        if let Ok(answer) = timeout(MAX_PROBE_WAIT.min(third), &mut discover).await {
            return answer;
        }
        let ping = connection.request(Call {
            method: "ping",
            params: Params::None,
            timeout: PING_WAIT.min(third),
            cancel: None,
            notify_cancelled: false,
            action: &"connecting (ping)",
        });
        tokio::select! {
            biased;
            answer = &mut discover => answer,
            pong = ping => {
                pong?;
                timeout(AFTER_PING_WAIT, discover).await.unwrap_or_else(|_| {
                    let action = &"connecting (server/discover)";
                    let detail = "the server answers `ping` but not server/discover";
                    Err(connection.failure(WireErrorKind::Timeout, action, detail))
                })
            }
        }
    }

    /// Starts the server a second time, without the probe that seems to have stopped it. It gets
    /// the full timeout.
    async fn restart(
        &self,
        name: &str,
        command: &ServerCommand,
    ) -> Result<(Connection, ServerInfo), WireError> {
        let second = Opening::new(self.options);
        let connection = Connection::open(name, command, self.options)?;
        let opened = match second.initialize(&connection).await {
            Ok(mut info) => {
                info.restarted_after_probe = true;
                Ok(info)
            }
            Err(error) => Err(error.note(
                "this was its second start: \
                 it exited during the server/discover probe of the first",
            )),
        };
        second.finish(connection, opened).await
    }

    /// Returns true if a server over HTTP refused `initialize` like one of the older transport.
    fn may_be_legacy(&self, connection: &Connection) -> bool {
        self.options.lifecycle != Lifecycle::Discover
            && connection.endpoint().is_some_and(Endpoint::may_be_legacy)
    }

    /// The error for a server that has neither transport. Where it requires authorization for the
    /// older one, that is the reason.
    fn neither(
        &self,
        connection: &Connection,
        error: WireError,
        over_sse: &WireError,
    ) -> WireError {
        if over_sse.kind == WireErrorKind::Auth || endpoint_is_legacy(connection) {
            return over_sse.clone();
        }
        error.note(&format!(
            "it has no HTTP+SSE transport either: {}",
            over_sse.detail
        ))
    }

    /// Connects over HTTP+SSE, which has only `initialize`.
    async fn initialize_over_sse(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        const ACTION: &str = "connecting (HTTP+SSE)";
        if let Some(endpoint) = connection.endpoint() {
            let opened = endpoint.open_legacy(self.remaining(connection)).await;
            opened.map_err(|(kind, detail)| connection.failure(kind, &ACTION, detail))?;
        }
        let mut info = self.initialize(connection).await?;
        info.legacy_sse = true;
        Ok(info)
    }

    /// Connects by `server/discover` only.
    async fn discover(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        const ACTION: &str = "connecting (server/discover)";
        let fail = |detail: String| connection.failure(WireErrorKind::Protocol, &ACTION, detail);
        match self
            .ask_discover_twice(connection, self.remaining(connection))
            .await?
        {
            CallOutcome::Result(result) => {
                if is_stateless(&result) {
                    return Ok(discovered(connection, result));
                }
                Err(fail(format!(
                    "the server supports no known stateless revision (it lists: {})",
                    quote(&supported_versions(&result).join(", "), 200)
                )))
            }
            CallOutcome::Error(error) if error.code == UNSUPPORTED_PROTOCOL_VERSION => {
                Err(fail(format!(
                    "the server does not support {} (it lists: {})",
                    Revision::LATEST_STATELESS,
                    quote(&offered_versions(&error).join(", "), 200)
                )))
            }
            CallOutcome::Error(error) => Err(fail(format!(
                "the server answered with {}; a server without server/discover needs the \
                 initialize lifecycle",
                show_error(&error)
            ))),
        }
    }

    async fn ask_discover(
        &self,
        connection: &Connection,
        wait: Duration,
    ) -> Result<CallOutcome, WireError> {
        let meta = request_meta(self.options, Revision::LATEST_STATELESS);
        let call = Call {
            method: "server/discover",
            params: Params::Value(json!({ "_meta": meta })),
            timeout: wait,
            cancel: None,
            notify_cancelled: false,
            action: &"connecting (server/discover)",
        };
        connection.request(call).await.map(|reply| reply.outcome)
    }

    /// Repeats the request once if the server refuses the revision but lists it as supported: a
    /// gateway was not ready for the first message.
    async fn ask_discover_twice(
        &self,
        connection: &Connection,
        wait: Duration,
    ) -> Result<CallOutcome, WireError> {
        let first = self.ask_discover(connection, wait).await?;
        match &first {
            CallOutcome::Error(error)
                if error.code == UNSUPPORTED_PROTOCOL_VERSION
                    && offered_versions(error).contains(&Revision::LATEST_STATELESS.as_str()) =>
            {
                self.ask_discover(connection, wait).await
            }
            _ => Ok(first),
        }
    }

    /// Connects by the handshake of the revisions before the stateless one.
    async fn initialize(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        const ACTION: &str = "connecting (initialize)";
        let fail = |detail: String| connection.failure(WireErrorKind::Protocol, &ACTION, detail);
        let mut offer = Revision::LATEST_WITH_INITIALIZE;
        let result = loop {
            match self.ask_initialize(connection, offer).await? {
                CallOutcome::Result(result) => break result,
                CallOutcome::Error(error) => {
                    // A server may refuse a revision and list those that it supports.
                    let other = offered_versions(&error)
                        .into_iter()
                        .filter_map(Revision::from_wire)
                        .filter(|r| !r.is_stateless() && *r < offer)
                        .max();
                    match other {
                        Some(older) => offer = older,
                        None => {
                            let error = show_error(&error);
                            return Err(fail(format!("the server answered with {error}")));
                        }
                    }
                }
            }
        };
        let revision = match result.get("protocolVersion") {
            Some(Value::String(version)) => match Revision::from_wire(version) {
                Some(revision) if !revision.is_stateless() => revision,
                Some(revision) => {
                    return Err(fail(format!(
                        "the server answered initialize with revision {revision}, which has no \
                         initialize"
                    )));
                }
                None => {
                    return Err(fail(format!(
                        "the server chose protocol revision `{}`, which is unknown (known: {})",
                        quote(version, 80),
                        known_revisions()
                    )));
                }
            },
            _ => {
                return Err(fail(format!(
                    "the answer has no protocolVersion: {}",
                    quote(&result.to_string(), 300)
                )));
            }
        };
        if let Some(endpoint) = connection.endpoint() {
            endpoint.set_revision(revision);
        }
        connection.notify("notifications/initialized", None);
        Ok(server_info(
            connection,
            revision,
            result.get("serverInfo").cloned(),
            &result,
        ))
    }

    async fn ask_initialize(
        &self,
        connection: &Connection,
        offer: Revision,
    ) -> Result<CallOutcome, WireError> {
        let call = Call {
            method: "initialize",
            params: Params::Value(json!({
                "protocolVersion": offer.as_str(),
                "capabilities": self.options.handler.capabilities(offer),
                "clientInfo": client_info(self.options),
            })),
            timeout: self.remaining(connection),
            cancel: None,
            notify_cancelled: false,
            action: &"connecting (initialize)",
        };
        connection.request(call).await.map(|reply| reply.outcome)
    }

    /// The time that is left. Obtaining credentials does not count.
    fn remaining(&self, connection: &Connection) -> Duration {
        let deadline = self.deadline + connection.state().credential_wait;
        deadline.saturating_duration_since(Instant::now())
    }
}

fn endpoint_is_legacy(connection: &Connection) -> bool {
    let endpoint = connection.endpoint();
    endpoint.is_some_and(|endpoint| endpoint.legacy_path().is_some())
}

fn discovered(connection: &Connection, result: Value) -> ServerInfo {
    if let Some(endpoint) = connection.endpoint() {
        endpoint.set_revision(Revision::LATEST_STATELESS);
    }
    let info = result
        .get("_meta")
        .and_then(|meta| meta.get(meta::SERVER_INFO))
        .or_else(|| result.get("serverInfo"))
        .cloned();
    server_info(connection, Revision::LATEST_STATELESS, info, &result)
}

fn server_info(
    connection: &Connection,
    revision: Revision,
    info: Option<Value>,
    result: &Value,
) -> ServerInfo {
    let capabilities = match result.get("capabilities") {
        Some(capabilities @ Value::Object(_)) => capabilities.clone(),
        other => {
            let text = other.map(Value::to_string).unwrap_or_default();
            connection.state().violations.record(
                ViolationKind::MalformedResult,
                "the server's capabilities are not an object",
                &text,
            );
            json!({})
        }
    };
    ServerInfo {
        revision,
        capabilities,
        server_info: info,
        instructions: result
            .get("instructions")
            .and_then(Value::as_str)
            .map(str::to_owned),
        restarted_after_probe: false,
        probe_unanswered: false,
        legacy_sse: false,
    }
}

/// The `_meta` of a stateless request.
pub(crate) fn request_meta(options: &ConnectOptions, revision: Revision) -> Map<String, Value> {
    let mut request_meta = Map::new();
    request_meta.insert(meta::PROTOCOL_VERSION.to_owned(), json!(revision.as_str()));
    request_meta.insert(meta::CLIENT_INFO.to_owned(), client_info(options));
    request_meta.insert(
        meta::CLIENT_CAPABILITIES.to_owned(),
        options.handler.capabilities(revision),
    );
    request_meta
}

fn client_info(options: &ConnectOptions) -> Value {
    json!({"name": options.client_name, "version": options.client_version})
}

/// Returns true if an answer to `server/discover` lists the stateless revision.
fn is_stateless(result: &Value) -> bool {
    supported_versions(result).contains(&Revision::LATEST_STATELESS.as_str())
}

fn supported_versions(result: &Value) -> Vec<&str> {
    strings(result.get("supportedVersions"))
}

/// The revisions listed in an error about an unsupported one.
fn offered_versions(error: &RpcError) -> Vec<&str> {
    strings(error.data.as_ref().and_then(|data| data.get("supported")))
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    value
        .and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn known_revisions() -> String {
    Revision::ALL.map(Revision::as_str).join(", ")
}

/// A JSON-RPC error in one line.
pub(crate) fn show_error(error: &RpcError) -> String {
    format!("error {}: {}", error.code, quote(&error.message, 300))
}
