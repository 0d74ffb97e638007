//! The methods of the protocol: what each request is answered with.

use mcptest_protocol::{Revision, meta as meta_keys, query};
use serde_json::{Map, Value, json};

use super::MockServer;
use crate::callable_tool::respond;
use crate::caller::Caller;
use crate::calls::{call_tool, get_prompt};
use crate::changes;
use crate::database::SessionState;
use crate::deferred::{Continuation, Deferred, Schedule, Work};
use crate::jsonrpc::{
    INVALID_PARAMS, RESOURCE_NOT_FOUND, Reply, ResultBody, RpcError, clip, string_param,
};
use crate::listed::{Outcome, ResultKind, members};
use crate::log;
use crate::manifest::{ChangedList, LogLevel};
use crate::resources::{complete, read_by_pattern};
use crate::server_changes::{Change, MAX_SUBSCRIPTIONS};
use crate::session::{Session, request_revision};

impl MockServer {
    pub(super) fn request(
        &self,
        session: &mut Session,
        (id, method): (&Value, &str),
        params: &Map<String, Value>,
        schedule: &mut Schedule,
    ) -> Result<ResultBody<'_>, RpcError> {
        let revision = request_revision(session, method, params)?;
        let answered = match &self.attacks {
            Some(attacks) if method == "tools/call" => attacks.answer(params),
            _ => None,
        };
        let is_answered = answered.is_some();
        let mut outcome = match (answered, revision) {
            (Some(answered), _) => answered,
            (None, Some(revision))
                if method == "subscriptions/listen" && revision.is_stateless() =>
            {
                self.listen(id, params, schedule)?
            }
            (None, Some(revision)) => self.dispatch(session, revision, method, params, schedule)?,
            (None, None) if method == "initialize" => self.initialize(session, params)?,
            // `ping`, which is allowed before the handshake.
            (None, None) => Outcome::fresh(Vec::new()),
        };
        if let Some(attacks) = &self.attacks {
            // An answer that waits for the client is written by `resume`.
            if !is_answered && schedule.rest.is_none() {
                outcome = attacks.rewrite(method, params, outcome);
            }
            if method == "tools/call"
                && let Some(revision) = revision
                && let Some(notice) = attacks.list_changed()
            {
                if revision.is_stateless() {
                    let caller = self.caller(session, revision, params);
                    changes::apply(&Change::List(ChangedList::Tools), &caller, schedule);
                } else {
                    schedule.send(notice);
                }
            }
        }
        let stateless = method == "server/discover" || revision.is_some_and(Revision::is_stateless);
        let head: &[u8] = match outcome.kind {
            _ if !stateless => &[],
            ResultKind::Complete => &self.stateless_head,
            ResultKind::Cacheable => &self.cacheable_head,
            ResultKind::InputRequired => &self.input_required_head,
            ResultKind::Task => &self.task_head,
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
        let mut capabilities = self.capabilities.clone();
        if revision < Revision::V2025_11_25
            && let Some(capabilities) = capabilities.as_object_mut()
        {
            capabilities.shift_remove("tasks");
        }
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities,
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
            "tools/list" => {
                let tools = self.tools.as_ref().ok_or_else(unknown)?;
                tools.page(params, &session.changes)
            }
            "tools/call" => {
                let tools = self.tools.as_ref().ok_or_else(unknown)?;
                if self.database.is_some() {
                    session.database.get_or_insert_with(SessionState::default);
                }
                let caller = self.caller(session, revision, params);
                call_tool(tools, &self.tasks, &caller, params, schedule)
            }
            "resources/list" => {
                let resources = self.resources.as_ref().ok_or_else(unknown)?;
                resources.page(params, &session.changes)
            }
            "resources/templates/list" => {
                let patterns = self.patterns.as_ref().ok_or_else(unknown)?;
                patterns.page(params, &session.changes)
            }
            "resources/subscribe" | "resources/unsubscribe"
                if self.can_subscribe() && !revision.is_stateless() =>
            {
                let uri = string_param(params, "uri")?;
                self.read(session, revision, uri)?;
                if method == "resources/unsubscribe" {
                    session.subscribed.remove(uri);
                } else if session.subscribed.len() < MAX_SUBSCRIPTIONS && self.watches(uri) {
                    session.subscribed.insert(uri.to_owned());
                }
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
                self.read(session, revision, string_param(params, "uri")?)
            }
            query::METHOD => self.query(session, params).ok_or_else(unknown)?,
            "prompts/list" => {
                let prompts = self.prompts.as_ref().ok_or_else(unknown)?;
                prompts.page(params, &session.changes)
            }
            "prompts/get" => {
                let prompts = self.prompts.as_ref().ok_or_else(unknown)?;
                get_prompt(prompts, &self.caller(session, revision, params), params)
            }
            _ => {
                let caller = self.caller(session, revision, params);
                let tools = self.tools.as_ref();
                let answer = self.tasks.request(tools, &caller, method, params, schedule);
                answer.ok_or_else(unknown)?
            }
        }
    }

    /// Opens a stream of notifications, which stays open.
    fn listen(
        &self,
        id: &Value,
        params: &Map<String, Value>,
        schedule: &mut Schedule,
    ) -> Result<Outcome<'_>, RpcError> {
        let offers = |list| self.changing.contains(&list);
        let watches = |uri: &str| self.watches(uri);
        let (number, first) = self.listeners.open(id, params, offers, watches)?;
        schedule.listener = Some(number);
        schedule.send(first);
        Ok(Outcome::fresh(Vec::new()))
    }

    /// Closes a stream of notifications.
    pub(crate) fn close_listener(&self, number: u64) {
        self.listeners.close(number);
    }

    /// Makes the rest of an answer, after the client has answered what it was asked.
    pub fn resume(&self, deferred: &mut Deferred) {
        let Some(rest) = deferred.rest.take() else {
            return;
        };
        let Continuation {
            work,
            answers,
            context,
            ..
        } = *rest;
        let caller = Caller {
            // In the stateless revision a call ends before the client answers.
            revision: Revision::LATEST_WITH_INITIALIZE,
            log_level: context.log_level,
            capabilities: None,
            asks: &self.asks,
            fault: &self.fault,
            database: self.database.as_ref().zip(context.database.as_ref()),
            changes: &context.changes,
            subscribed: &context.subscribed,
            listeners: &self.listeners,
        };
        let mut schedule = Schedule::default();
        let unknown = || RpcError::internal("Internal error: the tool is unknown");
        let tools = self.tools.as_ref();
        let outcome = match work {
            Work::Call {
                tool,
                params,
                arguments,
            } => tools
                .and_then(|tools| tools.by_name.get(&tool))
                .ok_or_else(unknown)
                .and_then(|tool| {
                    let answers = answers.into();
                    respond(tool, &caller, &params, &arguments, &answers, &mut schedule)
                })
                .map(|outcome| match &self.attacks {
                    Some(attacks) => attacks.rewrite("tools/call", &params, outcome),
                    None => outcome,
                }),
            Work::TaskResult(id) => tools
                .ok_or_else(unknown)
                .and_then(|tools| self.tasks.resume(tools, &caller, &id, answers)),
        };
        let reply = Reply {
            id: Some(deferred.id.clone()),
            outcome: outcome.map(|outcome| ResultBody {
                head: &[],
                members: outcome.members,
            }),
        };
        let mut frame = Vec::new();
        reply.write_to(&mut frame);
        schedule.send(frame);
        deferred.messages = schedule.before;
    }

    /// Returns true if clients may subscribe to any resource.
    fn can_subscribe(&self) -> bool {
        let capability = self.capabilities.get("resources");
        capability.is_some_and(|capability| capability.get("subscribe").is_some())
    }

    /// Returns true if clients may subscribe to a resource.
    fn watches(&self, uri: &str) -> bool {
        let resources = self.resources.as_ref();
        let found = resources.and_then(|resources| resources.by_name.get(uri));
        found.is_some_and(|resource| resource.subscribe)
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
            changes: &session.changes,
            subscribed: &session.subscribed,
            listeners: &self.listeners,
        }
    }

    /// Returns true for a message of the program that started the server, not of its client.
    pub(super) fn is_query(&self, message: &Value) -> bool {
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

    fn read(
        &self,
        session: &Session,
        revision: Revision,
        uri: &str,
    ) -> Result<Outcome<'_>, RpcError> {
        let listed = self
            .resources
            .as_ref()
            .and_then(|resources| resources.by_name.get(uri));
        if let Some(resource) = listed {
            return Ok(Outcome::cacheable(resource.contents(&session.changes, uri)));
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
