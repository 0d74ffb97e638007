//! The protocol: a pure state machine from messages to replies, without transport, clock and
//! randomness.

mod dispatch;

use std::io;
use std::sync::atomic::AtomicU64;

use mcptest_attack::AttackRun;
use mcptest_protocol::headers::ParamHeader;
use mcptest_protocol::{Revision, meta as meta_keys};
use mcptest_redact::redact::Redactor;
use serde_json::{Map, Value, json};

use crate::attacks::Attacks;
use crate::callable_tool::CallableTool;
use crate::compile::{CompiledTool, Manifest, Prompt, ResourceTemplate};
use crate::database::Database;
use crate::deferred::{Schedule, TransportEvent};
use crate::fault::FaultState;
use crate::jsonrpc::{Incoming, PARSE_ERROR, Replies, Reply, RpcError, classify};
use crate::listed::{Entry, Listed, members};
use crate::log::{self, Answered};
use crate::manifest::ChangedList;
use crate::record::{self, Recorder};
use crate::resources::ServedResource;
use crate::server_changes::{Change, Listeners};
use crate::session::Session;
use crate::tasks::TaskStore;

/// The largest number of messages in a batch.
const MAX_BATCH: usize = 1000;

/// The mock server. It serves any number of sessions.
#[derive(Debug)]
pub struct MockServer {
    info: Value,
    capabilities: Value,
    /// The capabilities for 2026-07-28.
    stateless_capabilities: Value,
    instructions: Option<String>,
    /// The members that 2026-07-28 adds to results, by the kind of result.
    stateless_head: Vec<u8>,
    cacheable_head: Vec<u8>,
    input_required_head: Vec<u8>,
    task_head: Vec<u8>,
    tools: Option<Listed<CallableTool>>,
    resources: Option<Listed<ServedResource>>,
    /// Set if and only if `resources` is.
    patterns: Option<Listed<()>>,
    templates: Vec<ResourceTemplate>,
    prompts: Option<Listed<Prompt>>,
    fault: FaultState,
    attacks: Option<Attacks>,
    logs: bool,
    completes: bool,
    /// The lists that may change.
    changing: Vec<ChangedList>,
    tasks: TaskStore,
    listeners: Listeners,
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
        let changing = changing_lists(&manifest);
        let tools = manifest.tools.map(|tools| {
            let tools = tools.into_iter().map(|mut tool| Entry {
                wire: tool.wire.take(),
                name: tool.name.clone(),
                hidden: tool.hidden,
                item: CallableTool::new(tool),
            });
            Listed::new(("tools", ChangedList::Tools), tools.collect(), page_size)
        });
        let tasks = TaskStore::new(tools.as_ref());
        let has_resources =
            !manifest.resources.is_empty() || !manifest.resource_templates.is_empty();
        let can_subscribe = manifest.resources.iter().any(|one| one.subscribe);
        let resources = has_resources.then(|| {
            let resources = manifest.resources.into_iter().map(|resource| Entry {
                name: Some(resource.uri.clone()),
                hidden: resource.hidden,
                item: ServedResource::new(&resource),
                wire: resource.wire,
            });
            let key = ("resources", ChangedList::Resources);
            Listed::new(key, resources.collect(), page_size)
        });
        let patterns = has_resources.then(|| {
            let patterns = manifest.resource_templates.iter().map(|template| Entry {
                wire: template.wire.clone(),
                name: None,
                item: (),
                hidden: false,
            });
            let key = ("resourceTemplates", ChangedList::Resources);
            Listed::new(key, patterns.collect(), page_size)
        });
        let prompts = (!manifest.prompts.is_empty()).then(|| {
            let prompts = manifest.prompts.into_iter().map(|prompt| Entry {
                wire: prompt.wire.clone(),
                name: Some(prompt.name.clone()),
                hidden: prompt.hidden,
                item: prompt,
            });
            Listed::new(
                ("prompts", ChangedList::Prompts),
                prompts.collect(),
                page_size,
            )
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
        for list in &changing {
            if let Some(capability) = capabilities.get_mut(list.as_str()) {
                capability["listChanged"] = true.into();
            }
        }
        if let Some(capability) = capabilities.get_mut("resources").filter(|_| can_subscribe) {
            capability["subscribe"] = true.into();
        }
        let mut stateless_capabilities = capabilities.clone();
        if tasks.enabled {
            let call = json!({"tools": {"call": {}}});
            let declared = json!({"list": {}, "cancel": {}, "requests": call});
            capabilities.insert("tasks".to_owned(), declared);
            let extension = json!({ meta_keys::TASKS_EXTENSION: {} });
            stateless_capabilities.insert("extensions".to_owned(), extension);
        }
        let meta = json!({meta_keys::SERVER_INFO: info});
        Self {
            stateless_head: head(&json!({"resultType": "complete", "_meta": meta})),
            input_required_head: head(&json!({"resultType": "input_required", "_meta": meta})),
            task_head: head(&json!({"resultType": "task", "_meta": meta})),
            // Stale immediately, so that a client under test requests it as often as from any
            // server.
            cacheable_head: head(&json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "_meta": meta,
            })),
            info,
            capabilities: capabilities.into(),
            stateless_capabilities: stateless_capabilities.into(),
            instructions: manifest.instructions,
            tools,
            resources,
            patterns,
            templates: manifest.resource_templates,
            prompts,
            fault: FaultState::new(manifest.fault),
            attacks: None,
            logs,
            completes,
            changing,
            tasks,
            listeners: Listeners::default(),
            asks: AtomicU64::new(0),
            recorder: None,
            database: manifest.database,
            query_token: None,
        }
    }

    /// Adds the attacks of a run: those of its manifest, or others.
    #[must_use]
    pub fn with_attacks(mut self, run: AttackRun) -> Self {
        if run.is_empty() {
            return self;
        }
        let name = self.info["name"].as_str().unwrap_or_default().to_owned();
        let attacks = Attacks::new(run, name);
        if attacks.changes_lists && self.tools.is_some() {
            let declared = json!({"listChanged": true});
            self.capabilities["tools"] = declared.clone();
            self.stateless_capabilities["tools"] = declared;
            if !self.changing.contains(&ChangedList::Tools) {
                self.changing.push(ChangedList::Tools);
            }
        }
        self.attacks = Some(attacks);
        self
    }

    /// Enables [`query::METHOD`](mcptest_protocol::query::METHOD) for clients that send this token.
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

    /// The arguments of a tool that are repeated in HTTP headers.
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

    /// The error that made the record of messages incomplete.
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
        // Messages of deferred answers that are due immediately need no clock.
        session.events.retain_mut(|event| {
            let TransportEvent::Deferred(deferred) = event else {
                return true;
            };
            if deferred.listener.is_none() && deferred.is_done() {
                return true;
            }
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
            !deferred.is_done()
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
            Incoming::Response { id, result } => {
                let answered = |id| TransportEvent::Answered(id, result.cloned());
                session.events.extend(id.cloned().map(answered));
                None
            }
            Incoming::Notification { method, params } => {
                log::notification(method);
                let id = params.and_then(|params| params.get("requestId"));
                if let ("notifications/cancelled", Some(id)) = (method, id) {
                    self.listeners.close_request(id);
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
                let outcome = self.request(session, (id, method), params, &mut schedule);
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
}

/// The lists that answers can change.
fn changing_lists(manifest: &Manifest) -> Vec<ChangedList> {
    let tools = manifest.tools.iter().flatten();
    let mut lists: Vec<ChangedList> = tools
        .flat_map(CompiledTool::changes)
        .filter_map(|change| match change {
            Change::List(list) | Change::Reveal(list, _) => Some(*list),
            Change::Updated(_) => None,
        })
        .collect();
    lists.sort_unstable();
    lists.dedup();
    lists
}

/// The members of an object with a trailing comma, so that others can follow.
fn head(object: &Value) -> Vec<u8> {
    let mut text = members(object);
    text.push(b',');
    text
}
