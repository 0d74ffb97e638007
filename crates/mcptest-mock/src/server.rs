//! The protocol: a pure state machine from messages to replies, without transport, clock and
//! randomness.

use std::io;
use std::sync::atomic::AtomicU64;

use mcptest_protocol::headers::ParamHeader;
use mcptest_protocol::{Revision, meta as meta_keys, query};
use mcptest_redact::redact::Redactor;
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::calls::{CallableTool, call_tool, get_prompt, string_param};
use crate::compile::{CompiledTool, Manifest, Prompt, ResourceTemplate};
use crate::database::{Database, SessionState};
use crate::deferred::{Schedule, TransportEvent};
use crate::fault::FaultState;
use crate::jsonrpc::{
    INVALID_PARAMS, Incoming, PARSE_ERROR, RESOURCE_NOT_FOUND, Replies, Reply, ResultBody,
    RpcError, classify, clip, write_json,
};
use crate::listed::{Listed, Outcome, ResultKind, members};
use crate::log::{self, Answered};
use crate::manifest::LogLevel;
use crate::record::{self, Recorder};
use crate::resources::{complete, read_by_pattern};
use crate::session::{Session, request_revision};

/// The largest number of messages in a batch.
const MAX_BATCH: usize = 1000;

/// The mock server. It serves any number of sessions.
#[derive(Debug)]
pub struct MockServer {
    info: Value,
    capabilities: Value,
    /// The capabilities for 2026-07-28, which delivers some by streams that the mock does not have.
    stateless_capabilities: Value,
    instructions: Option<String>,
    /// The members that 2026-07-28 adds to results, by the kind of result.
    stateless_head: Vec<u8>,
    cacheable_head: Vec<u8>,
    input_required_head: Vec<u8>,
    tools: Option<Listed<CallableTool>>,
    resources: Option<Listed<Vec<u8>>>,
    /// Set if and only if `resources` is.
    patterns: Option<Listed<()>>,
    templates: Vec<ResourceTemplate>,
    prompts: Option<Listed<Prompt>>,
    fault: FaultState,
    logs: bool,
    completes: bool,
    subscribe: bool,
    asks: AtomicU64,
    recorder: Option<Recorder>,
    database: Option<Database>,
    /// The token that enables queries of the database.
    query_token: Option<String>,
}

impl MockServer {
    /// Prepares the answers.
    #[must_use]
    pub fn new(manifest: Manifest) -> Self {
        let info = json!({"name": manifest.name, "version": manifest.version});
        let logs = manifest.tools.iter().flatten().any(CompiledTool::logs);
        let completes = !manifest
            .prompts
            .iter()
            .all(|prompt| prompt.complete.is_empty())
            || !manifest
                .resource_templates
                .iter()
                .all(|one| one.complete.is_empty());
        let page_size = manifest.page_size;
        let tools = manifest.tools.map(|tools| {
            let tools = tools.into_iter().map(|tool| {
                let served = CallableTool::new(
                    tool.input_schema,
                    tool.cases,
                    tool.sql,
                    tool.ask,
                    tool.fault,
                );
                (tool.wire, tool.name, served)
            });
            Listed::new("tools", tools.collect(), page_size)
        });
        let has_resources =
            !manifest.resources.is_empty() || !manifest.resource_templates.is_empty();
        let resources = has_resources.then(|| {
            let resources = manifest.resources.into_iter().map(|resource| {
                let mut contents = br#""contents":["#.to_vec();
                write_json(&mut contents, &resource.contents);
                contents.push(b']');
                (resource.wire, Some(resource.uri), contents)
            });
            Listed::new("resources", resources.collect(), page_size)
        });
        let patterns = has_resources.then(|| {
            let patterns = manifest.resource_templates.iter();
            let patterns = patterns.map(|template| (template.wire.clone(), None, ()));
            Listed::new("resourceTemplates", patterns.collect(), page_size)
        });
        let prompts = (!manifest.prompts.is_empty()).then(|| {
            let prompts = manifest
                .prompts
                .into_iter()
                .map(|prompt| (prompt.wire.clone(), Some(prompt.name.clone()), prompt));
            Listed::new("prompts", prompts.collect(), page_size)
        });
        let mut capabilities = Map::new();
        for (name, declared) in [
            ("tools", tools.is_some()),
            ("resources", resources.is_some()),
            ("prompts", prompts.is_some()),
            ("logging", logs),
            ("completions", completes),
        ] {
            if declared {
                capabilities.insert(name.to_owned(), json!({}));
            }
        }
        let stateless_capabilities = capabilities.clone().into();
        if manifest.subscribe {
            capabilities.insert("resources".to_owned(), json!({"subscribe": true}));
        }
        let meta = json!({meta_keys::SERVER_INFO: info});
        Self {
            stateless_head: head(&json!({"resultType": "complete", "_meta": meta})),
            input_required_head: head(&json!({"resultType": "input_required", "_meta": meta})),
            // Stale at once, so that a client under test requests it as often as from any server.
            cacheable_head: head(&json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "_meta": meta,
            })),
            info,
            capabilities: capabilities.into(),
            stateless_capabilities,
            instructions: manifest.instructions,
            tools,
            resources,
            patterns,
            templates: manifest.resource_templates,
            prompts,
            fault: FaultState::new(manifest.fault),
            logs,
            completes,
            subscribe: manifest.subscribe,
            asks: AtomicU64::new(0),
            recorder: None,
            database: manifest.database,
            query_token: None,
        }
    }

    /// Enables [`query::METHOD`] for clients that send this token.
    #[must_use]
    pub fn with_query_token(mut self, token: Option<String>) -> Self {
        self.query_token = token.filter(|token| !token.is_empty());
        self
    }

    /// Keeps the state of all sessions, also those of other processes, in one file.
    #[must_use]
    pub fn with_state_file(mut self, file: Option<std::path::PathBuf>) -> Self {
        if let Some(file) = file {
            self.database = self.database.map(|database| database.in_file(file));
        }
        self
    }

    /// Returns true if sessions have state.
    pub(crate) fn has_database(&self) -> bool {
        self.database.is_some()
    }

    /// The arguments of a tool that headers repeat over HTTP.
    pub(crate) fn parameter_headers(&self, tool: &str) -> Vec<ParamHeader> {
        let tool = self
            .tools
            .as_ref()
            .and_then(|tools| tools.by_name.get(tool));
        tool.map(|tool| tool.headers.clone()).unwrap_or_default()
    }

    /// Records a message that is not JSON.
    pub(crate) fn record_unreadable(&self, bytes: &[u8]) {
        if let Some(recorder) = &self.recorder {
            recorder.unreadable(bytes);
        }
    }

    /// Writes all messages of clients to `out`, one JSON object per line: `{"seq": 1, "message":
    /// …}`, with `unreadable` instead of `message` if a message is not JSON. Secrets are masked.
    #[must_use]
    pub fn recording(mut self, out: Box<dyn io::Write + Send>, redactor: Redactor) -> Self {
        self.recorder = Some(Recorder::new(out, redactor));
        self
    }

    /// The error because of which the record of messages is not complete.
    #[must_use]
    pub fn record_failure(&self) -> Option<io::Error> {
        let recorder = self.recorder.as_ref()?;
        recorder.failure().map(record::copy)
    }

    /// Waits until a message cannot be recorded.
    pub(crate) async fn record_failed(&self) -> io::Error {
        match &self.recorder {
            Some(recorder) => recorder.failed().await,
            None => std::future::pending().await,
        }
    }

    /// A new connection.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::default()
    }

    /// The number of listed tools.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.tools.as_ref().map_or(0, |tools| tools.length)
    }

    /// The number of listed resources.
    #[must_use]
    pub fn resource_count(&self) -> usize {
        self.resources.as_ref().map_or(0, |listed| listed.length)
    }

    /// The number of listed prompts.
    #[must_use]
    pub fn prompt_count(&self) -> usize {
        self.prompts.as_ref().map_or(0, |listed| listed.length)
    }

    /// Answers one line of the stdio transport: appends the reply with its line end, if there is
    /// one.
    pub fn handle_line(&self, session: &mut Session, line: &[u8], out: &mut Vec<u8>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let written = match serde_json::from_slice::<Value>(line) {
            Ok(message) => self.handle(session, &message).write_to(out),
            Err(error) => {
                self.record_unreadable(line);
                let error = RpcError::new(PARSE_ERROR, format!("Parse error: {error}"));
                Replies::One(Reply::error(None, error)).write_to(out)
            }
        };
        if written {
            out.push(b'\n');
        }
        // Messages of deferred answers that are due at once need no clock.
        session.events.retain_mut(|event| {
            let TransportEvent::Deferred(deferred) = event else {
                return true;
            };
            let messages = &mut deferred.messages;
            if messages.is_empty() || deferred.waiting.is_some() {
                return true;
            }
            let first_ask = messages.iter().position(|message| message.ask.is_some());
            let due = messages
                .iter()
                .take_while(|message| message.wait.is_zero())
                .count();
            let due = due.min(first_ask.map_or(due, |ask| ask + 1));
            for message in messages.drain(..due) {
                out.extend_from_slice(&message.frame);
                out.push(b'\n');
                deferred.waiting = message.ask;
            }
            !messages.is_empty()
        });
    }

    /// Answers one message, or a batch of them.
    #[must_use]
    pub fn handle(&self, session: &mut Session, message: &Value) -> Replies<'_> {
        log::received(message);
        if let Some(recorder) = &self.recorder
            && !self.is_query(message)
        {
            recorder.message(message);
        }
        let refuse = |text| Replies::One(Reply::error(None, RpcError::invalid_request(text)));
        let Value::Array(batch) = message else {
            return match self.handle_one(session, message) {
                Some(reply) => Replies::One(reply),
                None => Replies::None,
            };
        };
        if !session.revision.is_some_and(Revision::allows_batches) {
            return refuse("Invalid request: only revision 2025-03-26 has batches");
        }
        if batch.is_empty() {
            return refuse("Invalid request: the batch is empty");
        }
        if batch.len() > MAX_BATCH {
            return refuse("Invalid request: the batch has more than 1000 messages");
        }
        let replies: Vec<_> = batch
            .iter()
            .filter_map(|message| match classify(message) {
                Incoming::Request {
                    id,
                    method: "initialize",
                    ..
                } => Some(Reply::error(
                    Some(id.clone()),
                    RpcError::invalid_request("Invalid request: initialize cannot be in a batch"),
                )),
                _ => self.handle_one(session, message),
            })
            .collect();
        if replies.is_empty() {
            Replies::None
        } else {
            Replies::Batch(replies)
        }
    }

    fn handle_one(&self, session: &mut Session, message: &Value) -> Option<Reply<'_>> {
        match classify(message) {
            Incoming::Response { id } => {
                session
                    .events
                    .extend(id.cloned().map(TransportEvent::Answered));
                None
            }
            Incoming::Notification { method, params } => {
                log::notification(method);
                let id = params.and_then(|params| params.get("requestId"));
                if let ("notifications/cancelled", Some(id)) = (method, id) {
                    session.events.push(TransportEvent::Cancelled(id.clone()));
                }
                None
            }
            Incoming::Invalid { id, error } => {
                log::invalid_message(&error);
                Some(Reply::error(id.cloned(), error))
            }
            Incoming::Request { id, method, params } => {
                let nothing = Map::new();
                let params = params.unwrap_or(&nothing);
                let mut schedule = Schedule::default();
                let outcome = self.request(session, method, params, &mut schedule);
                let reply = Reply {
                    id: Some(id.clone()),
                    outcome,
                };
                if schedule.is_immediate() {
                    let answered = match reply.as_error() {
                        Some(error) => Answered::Error(error),
                        None => Answered::Result,
                    };
                    log::request(method, id, &answered);
                    return Some(reply);
                }
                log::request(method, id, &Answered::Deferred);
                let deferred = schedule.deferred(id.clone(), || {
                    let mut frame = Vec::new();
                    reply.write_to(&mut frame);
                    frame
                });
                session.events.push(TransportEvent::Deferred(deferred));
                None
            }
        }
    }

    fn request(
        &self,
        session: &mut Session,
        method: &str,
        params: &Map<String, Value>,
        schedule: &mut Schedule,
    ) -> Result<ResultBody<'_>, RpcError> {
        let revision = request_revision(session, method, params)?;
        let outcome = match revision {
            Some(revision) => self.dispatch(session, revision, method, params, schedule)?,
            None if method == "initialize" => self.initialize(session, params)?,
            // `ping`, which is allowed before the handshake.
            None => Outcome::fresh(Vec::new()),
        };
        let stateless = method == "server/discover" || revision.is_some_and(Revision::is_stateless);
        let head: &[u8] = match outcome.kind {
            _ if !stateless => &[],
            ResultKind::Complete => &self.stateless_head,
            ResultKind::Cacheable => &self.cacheable_head,
            ResultKind::InputRequired => &self.input_required_head,
        };
        Ok(ResultBody {
            head,
            members: outcome.members,
        })
    }

    fn initialize(
        &self,
        session: &mut Session,
        params: &Map<String, Value>,
    ) -> Result<Outcome<'_>, RpcError> {
        let Some(requested) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(RpcError::invalid_params(
                "Invalid params: protocolVersion is not a string",
            ));
        };
        let revision = Revision::from_wire(requested)
            .filter(|revision| !revision.is_stateless())
            .unwrap_or(Revision::LATEST_WITH_INITIALIZE);
        log::initialized(revision.as_str());
        session.revision = Some(revision);
        session.capabilities = params.get("capabilities").cloned();
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": self.capabilities,
            "serverInfo": self.info,
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.clone().into();
        }
        Ok(Outcome::fresh(members(&result)))
    }

    fn dispatch(
        &self,
        session: &mut Session,
        revision: Revision,
        method: &str,
        params: &Map<String, Value>,
        schedule: &mut Schedule,
    ) -> Result<Outcome<'_>, RpcError> {
        let unknown = || RpcError::method_not_found(method);
        match method {
            "ping" if !revision.is_stateless() => Ok(Outcome::fresh(Vec::new())),
            "server/discover" => Ok(self.discover()),
            "tools/list" => self.tools.as_ref().ok_or_else(unknown)?.page(params),
            "tools/call" => {
                let tools = self.tools.as_ref().ok_or_else(unknown)?;
                if self.database.is_some() {
                    session.database.get_or_insert_with(SessionState::default);
                }
                let caller = self.caller(session, revision, params);
                call_tool(tools, &caller, params, schedule)
            }
            "resources/list" => self.resources.as_ref().ok_or_else(unknown)?.page(params),
            "resources/templates/list" => self.patterns.as_ref().ok_or_else(unknown)?.page(params),
            "resources/subscribe" | "resources/unsubscribe"
                if self.subscribe && !revision.is_stateless() =>
            {
                let uri = string_param(params, "uri")?;
                self.read(revision, uri)?;
                Ok(Outcome::fresh(Vec::new()))
            }
            "completion/complete" if self.completes => {
                complete(self.prompts.as_ref(), &self.templates, params)
            }
            "logging/setLevel" if self.logs && !revision.is_stateless() => {
                let level = string_param(params, "level")?;
                let level = LogLevel::parse(level).ok_or_else(|| {
                    RpcError::invalid_params(format!("Unknown log level: {}", clip(level)))
                })?;
                session.log_level = Some(level);
                Ok(Outcome::fresh(Vec::new()))
            }
            "resources/read" => {
                self.resources.as_ref().ok_or_else(unknown)?;
                self.read(revision, string_param(params, "uri")?)
            }
            query::METHOD => self.query(session, params).ok_or_else(unknown)?,
            "prompts/list" => self.prompts.as_ref().ok_or_else(unknown)?.page(params),
            "prompts/get" => {
                let prompts = self.prompts.as_ref().ok_or_else(unknown)?;
                get_prompt(prompts, &self.caller(session, revision, params), params)
            }
            _ => Err(unknown()),
        }
    }

    /// The sender of a request, from the session or, if stateless, from the request itself.
    fn caller<'a>(
        &'a self,
        session: &'a Session,
        revision: Revision,
        params: &'a Map<String, Value>,
    ) -> Caller<'a> {
        let meta = |key: &str| params.get("_meta").and_then(|meta| meta.get(key));
        let (log_level, capabilities) = if revision.is_stateless() {
            let level = meta(meta_keys::LOG_LEVEL)
                .and_then(Value::as_str)
                .and_then(LogLevel::parse);
            (level, meta(meta_keys::CLIENT_CAPABILITIES))
        } else {
            let level = session.log_level.unwrap_or(LogLevel::Debug);
            (Some(level), session.capabilities.as_ref())
        };
        Caller {
            revision,
            log_level,
            capabilities,
            asks: &self.asks,
            fault: &self.fault,
            database: self.database.as_ref().zip(session.database.as_ref()),
        }
    }

    /// Returns true for a message of the program that started the server, not of its client.
    fn is_query(&self, message: &Value) -> bool {
        self.query_token.is_some()
            && message.get("method").and_then(Value::as_str) == Some(query::METHOD)
    }

    /// The rows of a query; `None` unless the client has the token.
    fn query(
        &self,
        session: &mut Session,
        params: &Map<String, Value>,
    ) -> Option<Result<Outcome<'_>, RpcError>> {
        let token = self.query_token.as_deref()?;
        let given = params.get("token").and_then(Value::as_str)?;
        let database = self.database.as_ref().filter(|_| given == token)?;
        Some(string_param(params, "sql").and_then(|sql| {
            let state = session.database.get_or_insert_with(SessionState::default);
            let arguments = params.get("args").unwrap_or(&Value::Null);
            let rows = state.with(database, |database| database.query(sql, arguments));
            let rows = rows.map_err(|error| RpcError::invalid_params(error.to_string()))?;
            Ok(Outcome::fresh(members(&json!({"rows": rows}))))
        }))
    }

    fn read(&self, revision: Revision, uri: &str) -> Result<Outcome<'_>, RpcError> {
        let listed = self
            .resources
            .as_ref()
            .and_then(|resources| resources.by_name.get(uri));
        if let Some(contents) = listed {
            return Ok(Outcome::cacheable(contents.as_slice()));
        }
        read_by_pattern(&self.templates, uri).ok_or_else(|| {
            RpcError::new(
                not_found_code(revision),
                format!("Resource not found: {}", clip(uri)),
            )
            .with_data(json!({"uri": clip(uri)}))
        })
    }

    fn discover(&self) -> Outcome<'_> {
        let mut result = json!({
            "supportedVersions": Revision::ALL.map(Revision::as_str),
            "capabilities": self.stateless_capabilities,
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.clone().into();
        }
        Outcome::cacheable(members(&result))
    }
}

/// The code for a resource that does not exist (SEP-2164 changed it to "invalid params").
fn not_found_code(revision: Revision) -> i32 {
    if revision.is_stateless() {
        INVALID_PARAMS
    } else {
        RESOURCE_NOT_FOUND
    }
}

/// The members of an object with a trailing comma, so that others can follow.
fn head(object: &Value) -> Vec<u8> {
    let mut text = members(object);
    text.push(b',');
    text
}
