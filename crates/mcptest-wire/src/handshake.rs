//! Opening a conversation: `initialize`, `server/discover`, or finding out which.

use std::time::Duration;

use mcptest_protocol::Revision;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};

use crate::connection::{Call, Connection, Grace, after, show_duration};
use crate::error::{WireError, WireErrorKind};
use crate::http::HttpServer;
use crate::jsonrpc::{CallOutcome, RpcError};
use crate::options::{ConnectOptions, Lifecycle, ServerInfo};
use crate::process::ServerCommand;
use crate::violation::ViolationKind;
use mcptest_http::text::quote;

/// Longest silence after the probe before the server is asked whether it is there at all.
const MAX_PROBE_WAIT: Duration = Duration::from_secs(5);

/// How long a silent server may take until it is taken for deaf: some hear nothing before
/// `initialize`, and would keep everybody waiting.
const PING_WAIT: Duration = Duration::from_secs(3);

/// How long a server that is there may still take for its answer to the probe.
const AWAKE_WAIT: Duration = Duration::from_secs(1);

/// The error code of 2026-07-28 for a revision the server does not speak.
const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Starts the server and opens the conversation. On failure nothing of the
/// server is left running.
pub(crate) async fn open(
    name: &str,
    command: &ServerCommand,
    options: &ConnectOptions,
) -> Result<(Connection, ServerInfo), WireError> {
    let opening = Opening {
        options,
        deadline: after(options.connect_timeout),
    };
    let connection = Connection::open(name, command, options)?;
    let opened = match options.lifecycle {
        Lifecycle::Initialize => opening.initialize(&connection).await,
        Lifecycle::Discover => opening.discover(&connection).await,
        Lifecycle::Auto => match opening.probe(&connection).await {
            Err(error) if died(&error) => {
                // Some old servers die of a method they do not know.
                connection.shutdown(Grace::SHORT).await;
                drop(connection);
                return opening.restart(name, command).await;
            }
            other => other,
        },
    };
    finish(connection, opened).await
}

/// Opens the conversation with a server over HTTP, once it is there.
pub(crate) async fn open_http(
    name: &str,
    server: &HttpServer,
    options: &ConnectOptions,
) -> Result<(Connection, ServerInfo), WireError> {
    let opening = Opening {
        options,
        deadline: after(options.connect_timeout),
    };
    let connection = Connection::open_http(name, server, options)?;
    if let Some(endpoint) = connection.endpoint() {
        let ready = endpoint.wait_until_ready(opening.remaining()).await;
        ready.map_err(|(kind, detail)| connection.failure(kind, "connecting", detail))?;
    }
    let opened = match options.lifecycle {
        Lifecycle::Initialize => opening.initialize(&connection).await,
        Lifecycle::Discover => opening.discover(&connection).await,
        Lifecycle::Auto => opening.probe(&connection).await,
    };
    finish(connection, opened).await
}

async fn finish(
    connection: Connection,
    opened: Result<ServerInfo, WireError>,
) -> Result<(Connection, ServerInfo), WireError> {
    match opened {
        Ok(info) => {
            let mut state = connection.state();
            state.batches_allowed = info.revision.allows_batches();
            // There, closing the stream of a call is what gives it up.
            state.sends_cancelled =
                connection.endpoint().is_none() || !info.revision.is_stateless();
            drop(state);
            Ok((connection, info))
        }
        Err(error) => {
            connection.shutdown(Grace::SHORT).await;
            Err(error)
        }
    }
}

fn died(error: &WireError) -> bool {
    matches!(
        error.kind,
        WireErrorKind::ServerCrash | WireErrorKind::Transport
    )
}

struct Opening<'a> {
    options: &'a ConnectOptions,
    deadline: Instant,
}

impl Opening<'_> {
    /// `server/discover` first, `initialize` if that leads nowhere. Fails with
    /// a crash if the process ends on the way.
    async fn probe(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        let began = Instant::now();
        let unanswered = match self.ask_patiently(connection).await {
            Ok(CallOutcome::Result(result)) => {
                if is_stateless(&result) {
                    return Ok(discovered(connection, result));
                }
                false
            }
            Ok(CallOutcome::Error(_)) => false,
            // Over HTTP nothing died with one exchange.
            Err(error) if died(&error) && connection.endpoint().is_none() => return Err(error),
            Err(error) => error.kind == WireErrorKind::Timeout,
        };
        let waited = show_duration(began.elapsed());
        let late = |error: WireError| {
            error.note(&format!(
                "before that it left server/discover unanswered for {waited}"
            ))
        };
        match self.initialize(connection).await {
            Ok(mut info) => {
                info.probe_unanswered = unanswered;
                Ok(info)
            }
            // A server that was only slow to start gets to the probe before it gets to
            // `initialize`, and may take the first for its lifecycle and refuse the second. Now
            // that it answers, it can say so.
            Err(refusal) if unanswered && refusal.kind == WireErrorKind::Protocol => {
                match self.ask_discover(connection, self.remaining()).await {
                    Ok(CallOutcome::Result(result)) if is_stateless(&result) => {
                        Ok(discovered(connection, result))
                    }
                    _ => Err(late(refusal)),
                }
            }
            Err(error) if unanswered => Err(late(error)),
            Err(error) => Err(error),
        }
    }

    /// The probe's answer. A server that is silent is deaf to the question, or still starting;
    /// `ping` tells, which servers should answer at any time. One that is only slow gets to the
    /// probe first, and so is judged by its own answer on a busy machine, too.
    async fn ask_patiently(&self, connection: &Connection) -> Result<CallOutcome, WireError> {
        let third = self.options.connect_timeout / 3;
        // Over HTTP nothing stands in a queue.
        if connection.endpoint().is_some() {
            return self
                .ask_discover_twice(connection, MAX_PROBE_WAIT.min(third))
                .await;
        }
        // The last third is for `initialize`.
        let discover = self.ask_discover_twice(connection, third * 2);
        tokio::pin!(discover);
        if let Ok(answer) = timeout(MAX_PROBE_WAIT.min(third), &mut discover).await {
            return answer;
        }
        let ping = connection.request(Call {
            method: "ping",
            params: None,
            timeout: PING_WAIT.min(third),
            cancel: None,
            tell_cancelled: false,
            action: "connecting (ping)",
        });
        tokio::select! {
            biased;
            answer = &mut discover => answer,
            pong = ping => {
                pong?;
                timeout(AWAKE_WAIT, discover).await.unwrap_or_else(|_| {
                    let detail = "the server answers `ping` and not server/discover";
                    Err(connection.failure(WireErrorKind::Timeout, "connecting (server/discover)", detail))
                })
            }
        }
    }

    /// A second start, without the probe that seems to have ended the first. It has all the time of
    /// a start.
    async fn restart(
        &self,
        name: &str,
        command: &ServerCommand,
    ) -> Result<(Connection, ServerInfo), WireError> {
        let again = Self {
            options: self.options,
            deadline: after(self.options.connect_timeout),
        };
        let connection = Connection::open(name, command, self.options)?;
        let opened = match again.initialize(&connection).await {
            Ok(mut info) => {
                info.restarted_after_probe = true;
                Ok(info)
            }
            Err(error) => Err(error.note(
                "this was its second start: the first one ended during the server/discover probe",
            )),
        };
        finish(connection, opened).await
    }

    /// `server/discover` and nothing else.
    async fn discover(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        const ACTION: &str = "connecting (server/discover)";
        let refuse = |detail: String| connection.failure(WireErrorKind::Protocol, ACTION, detail);
        match self
            .ask_discover_twice(connection, self.remaining())
            .await?
        {
            CallOutcome::Result(result) => {
                if is_stateless(&result) {
                    return Ok(discovered(connection, result));
                }
                Err(refuse(format!(
                    "the server supports no stateless revision we know (it lists: {})",
                    quote(&supported_versions(&result).join(", "), 200)
                )))
            }
            CallOutcome::Error(error) if error.code == UNSUPPORTED_PROTOCOL_VERSION => {
                Err(refuse(format!(
                    "the server does not support {} (it lists: {})",
                    Revision::LATEST_STATELESS,
                    quote(&offered_versions(&error).join(", "), 200)
                )))
            }
            CallOutcome::Error(error) => Err(refuse(format!(
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
            params: Some(json!({ "_meta": meta })),
            timeout: wait,
            cancel: None,
            tell_cancelled: false,
            action: "connecting (server/discover)",
        };
        connection.request(call).await.map(|reply| reply.outcome)
    }

    /// Asks again where the refusal of a revision lists that very revision: somebody on the way was
    /// not ready for the first message.
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

    /// The handshake of all revisions but the stateless one.
    async fn initialize(&self, connection: &Connection) -> Result<ServerInfo, WireError> {
        const ACTION: &str = "connecting (initialize)";
        let refuse = |detail: String| connection.failure(WireErrorKind::Protocol, ACTION, detail);
        let mut offer = Revision::LATEST_WITH_INITIALIZE;
        let result = loop {
            match self.ask_initialize(connection, offer).await? {
                CallOutcome::Result(result) => break result,
                CallOutcome::Error(error) => {
                    // A server may refuse a revision and list those it speaks.
                    let other = offered_versions(&error)
                        .into_iter()
                        .filter_map(Revision::from_wire)
                        .filter(|r| !r.is_stateless() && *r < offer)
                        .max();
                    match other {
                        Some(older) => offer = older,
                        None => {
                            let error = show_error(&error);
                            return Err(refuse(format!("the server answered with {error}")));
                        }
                    }
                }
            }
        };
        let revision = match result.get("protocolVersion") {
            Some(Value::String(version)) => match Revision::from_wire(version) {
                Some(revision) if !revision.is_stateless() => revision,
                Some(revision) => {
                    return Err(refuse(format!(
                        "the server answered initialize with revision {revision}, which has no \
                         initialize"
                    )));
                }
                None => {
                    return Err(refuse(format!(
                        "the server chose protocol revision `{}`, which we do not know (known: {})",
                        quote(version, 80),
                        known_revisions()
                    )));
                }
            },
            _ => {
                return Err(refuse(format!(
                    "the answer names no protocolVersion: {}",
                    quote(&result.to_string(), 300)
                )));
            }
        };
        if let Some(endpoint) = connection.endpoint() {
            endpoint.settle(revision);
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
            params: Some(json!({
                "protocolVersion": offer.as_str(),
                "capabilities": self.options.answers.capabilities(),
                "clientInfo": client_info(self.options),
            })),
            timeout: self.remaining(),
            cancel: None,
            tell_cancelled: false,
            action: "connecting (initialize)",
        };
        connection.request(call).await.map(|reply| reply.outcome)
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

fn discovered(connection: &Connection, result: Value) -> ServerInfo {
    if let Some(endpoint) = connection.endpoint() {
        endpoint.settle(Revision::LATEST_STATELESS);
    }
    let info = result
        .get("_meta")
        .and_then(|meta| meta.get(META_SERVER_INFO))
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
    }
}

/// What a stateless request says about its sender.
pub(crate) fn request_meta(options: &ConnectOptions, revision: Revision) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert(META_VERSION.to_owned(), json!(revision.as_str()));
    meta.insert(META_CLIENT_INFO.to_owned(), client_info(options));
    meta.insert(
        META_CLIENT_CAPABILITIES.to_owned(),
        options.answers.capabilities(),
    );
    meta
}

fn client_info(options: &ConnectOptions) -> Value {
    json!({"name": options.client_name, "version": options.client_version})
}

/// Whether an answer to `server/discover` lists the stateless revision that we speak.
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
