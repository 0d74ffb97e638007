//! The client's side of the connections of one test: its answers to servers, and the record of what
//! they sent by themselves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcptest_json::text::{one_line, shorten};
use mcptest_protocol::{Revision, meta};
use mcptest_suite::client::{
    AnswerRule, ClientError, ClientScript, ElicitationAction, ElicitationAnswer, SamplingAnswer,
};
use mcptest_suite::suite::CancelOn;
use mcptest_trace::message_log::MessageLog;
use mcptest_trace::server_messages::{self, sampling_text};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{
    Answering, ClientHandler, Elicitation, RpcError, is_about_stream, not_offered, without_stream,
};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client_tasks::{self, ClientTasks};
use crate::sampling::SamplingModels;

/// The largest number of requests that a server may make of the client in one test.
const MAX_REQUESTS: usize = 1000;

/// The characters of a request that an error shows.
const MAX_ASKED_CHARS: usize = 200;

/// The code of an error without a better one.
const INTERNAL_ERROR: i64 = -32603;

/// The settings of a client in addition to its script.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Listening {
    /// True if servers are asked to report progress.
    pub progress: bool,
    /// The lowest level of log messages that servers are asked for.
    pub log_level: Option<&'static str>,
    /// True if the client declares that it can handle tasks.
    pub tasks: bool,
}

/// The client of one test. All its connections share it.
#[derive(Debug)]
pub(crate) struct TestClient {
    script: Arc<ClientScript>,
    pub listening: Listening,
    models: SamplingModels,
    record: Mutex<Record>,
    requests: AtomicUsize,
    /// The requests of servers that are answered as tasks.
    tasks: Arc<ClientTasks>,
    /// The number of messages so far.
    arrived: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Record {
    log: MessageLog,
    /// The number of requests that each rule has answered.
    sampled: Vec<u32>,
    elicited: Vec<u32>,
    /// The first error of a model, or the first request that no rule answers.
    failure: Option<RunError>,
}

impl Record {
    /// Notes that no rule answers a request: the suite has to say what the client does then.
    fn has_no_answer(&mut self, key: &str, asked: &str) {
        let asked = shorten(&one_line(asked), MAX_ASKED_CHARS);
        self.failure.get_or_insert(RunError {
            kind: ErrorKind::Suite,
            message: format!(
                "the server asked \u{201c}{asked}\u{201d}, and no answer in `{key}` applies; add one \
                 without `when` (`error: no` refuses)"
            ),
        });
    }
}

impl TestClient {
    pub fn new(script: Arc<ClientScript>, listening: Listening, models: SamplingModels) -> Self {
        let length = |rules: Option<usize>| vec![0; rules.unwrap_or(0)];
        let record = Record {
            sampled: length(script.sampling.as_ref().map(Vec::len)),
            elicited: length(script.elicitation.as_ref().map(Vec::len)),
            ..Record::default()
        };
        Self {
            script,
            listening,
            models,
            record: Mutex::new(record),
            requests: AtomicUsize::new(0),
            tasks: Arc::default(),
            arrived: watch::Sender::new(0),
        }
    }

    /// The handler of its connection to a server.
    pub fn for_server(self: &Arc<Self>, server: &str) -> Arc<dyn ClientHandler> {
        Arc::new(ServerConnection {
            client: Arc::clone(self),
            server: server.to_owned(),
        })
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        // A panic elsewhere leaves the record usable.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages so far.
    pub fn messages(&self) -> Vec<Value> {
        self.record().log.messages().to_vec()
    }

    /// Waits until the messages fulfil a condition, at most for this time. Returns true if they do.
    pub async fn wait_for(&self, limit: Duration, mut holds: impl FnMut(&[Value]) -> bool) -> bool {
        let mut arrivals = self.arrived.subscribe();
        let waiting = async {
            loop {
                arrivals.borrow_and_update();
                if holds(self.record().log.messages()) {
                    return true;
                }
                if arrivals.changed().await.is_err() {
                    return false;
                }
            }
        };
        timeout(limit, waiting).await.unwrap_or(false)
    }

    /// Waits for the message on which a call is cancelled.
    pub async fn wait_until(&self, event: CancelOn) {
        let is_it = |message: &Value| match event {
            CancelOn::Progress => is_of(message, "notifications/progress"),
            CancelOn::Log => is_of(message, "notifications/message"),
            CancelOn::Request => server_messages::is_request(message),
        };
        // The call itself has a timeout.
        self.wait_for(Duration::MAX, |messages| messages.iter().any(is_it))
            .await;
    }

    /// Adds the evidence to a trace. `roots` are the targets' roots that the test uses: what was
    /// not kept of these makes the run an error, because it cannot be judged.
    pub fn finish<'r>(&self, trace: &mut Trace, roots: impl Iterator<Item = &'r str>) {
        let mut record = self.record();
        record.log.finish(trace);
        let gap = record.log.gap(roots).map(|message| RunError {
            kind: ErrorKind::Protocol,
            message,
        });
        if let Some(failure) = record.failure.take().or(gap) {
            trace.error.get_or_insert(failure);
        }
    }

    /// Keeps a message, and returns its index.
    fn keep(&self, server: &str, method: &str, params: Option<Value>) -> Option<usize> {
        let index = self.record().log.add(server, method, params);
        self.arrived.send_modify(|count| *count += 1);
        index
    }

    /// Adds the client's answer to a request that was kept.
    fn answered(&self, index: Option<usize>, answer: &Result<Value, RpcError>) {
        let answer = match answer {
            Ok(answer) => Ok(answer.clone()),
            Err(error) => Err(serde_json::to_value(error).unwrap_or_default()),
        };
        self.record().log.answer(index, answer);
        self.arrived.send_modify(|count| *count += 1);
    }

    fn declared(&self, revision: Revision) -> Value {
        let mut declared = json!({});
        for (name, offered) in [
            ("roots", self.script.roots.is_some()),
            ("sampling", self.script.sampling.is_some()),
            ("elicitation", self.script.elicitation.is_some()),
        ] {
            if offered {
                declared[name] = json!({});
            }
        }
        if self.listening.tasks && revision.is_stateless() {
            declared["extensions"] = json!({ meta::TASKS_EXTENSION: {} });
        }
        if self.script.tasks && revision == Revision::V2025_11_25 {
            let mut requests = json!({});
            if self.script.sampling.is_some() {
                requests["sampling"] = json!({"createMessage": {}});
            }
            if self.script.elicitation.is_some() {
                requests["elicitation"] = json!({"create": {}});
            }
            declared["tasks"] = json!({"list": {}, "cancel": {}, "requests": requests});
        }
        merge(&mut declared, &self.script.capabilities);
        declared
    }

    fn roots(&self) -> Option<Value> {
        let roots = self
            .script
            .roots
            .as_ref()?
            .iter()
            .map(|root| match &root.name {
                Some(name) => json!({"uri": root.uri, "name": name}),
                None => json!({"uri": root.uri}),
            });
        Some(json!({ "roots": roots.collect::<Vec<_>>() }))
    }

    /// The rule that answers a request, which counts as used.
    fn choose<'s, A>(
        rules: &'s [AnswerRule<A>],
        used: &mut [u32],
        params: &Value,
    ) -> Option<(usize, &'s A)> {
        let (index, rule) = rules.iter().enumerate().find(|(index, rule)| {
            let is_left = rule.times.is_none_or(|times| used[*index] < times);
            is_left && rule.applies(params)
        })?;
        used[index] = used[index].saturating_add(1);
        Some((index, &rule.answer))
    }

    fn elicit(&self, params: Option<&Value>, index: Option<usize>) -> Answering {
        let Some(rules) = &self.script.elicitation else {
            return self.now(index, Err(not_offered("elicitation/create")));
        };
        let empty = json!({});
        let seen = params.unwrap_or(&empty);
        let chosen = Self::choose(rules, &mut self.record().elicited, seen);
        match chosen {
            Some((_, ElicitationAnswer::Reply(action, content))) => {
                self.now(index, Ok(reply(*action, content.as_ref(), seen)))
            }
            Some((_, ElicitationAnswer::Error(error))) => self.refuse(index, error),
            None => {
                let asked = seen.get("message").and_then(Value::as_str);
                self.record()
                    .has_no_answer("client.elicitation", asked.unwrap_or_default());
                self.now(index, Err(no_answer("client.elicitation")))
            }
        }
    }

    /// Answers a request for sampling, and calls `done` with the answer.
    fn sample(self: &Arc<Self>, params: Option<&Value>, index: Option<usize>) -> Answering {
        let Some(rules) = &self.script.sampling else {
            return self.now(index, Err(not_offered("sampling/createMessage")));
        };
        let mut seen = params.cloned().unwrap_or_else(|| json!({}));
        if let Value::Object(seen) = &mut seen {
            seen.insert("text".to_owned(), sampling_text(params).into());
        }
        let chosen = {
            let mut record = self.record();
            let chosen = Self::choose(rules, &mut record.sampled, &seen);
            chosen.map(|(rule, answer)| (rule, answer, record.sampled[rule]))
        };
        match chosen {
            Some((_, SamplingAnswer::Result(result), _)) => self.now(index, Ok(result.clone())),
            Some((_, SamplingAnswer::Error(error), _)) => self.refuse(index, error),
            Some((rule, SamplingAnswer::Model(model), number)) => {
                let client = Arc::clone(self);
                let (id, params) = (model.id.clone(), params.cloned());
                Answering::Later(Box::pin(async move {
                    let asked = client.models.answer(rule, number, &id, params.as_ref());
                    let answer = asked.await.map_err(|failed| {
                        if let Some(error) = failed.error {
                            client.record().failure.get_or_insert(error);
                        }
                        RpcError {
                            code: INTERNAL_ERROR,
                            message: failed.message,
                            data: None,
                        }
                    });
                    client.answered(index, &answer);
                    answer
                }))
            }
            None => {
                let asked = sampling_text(params);
                self.record().has_no_answer("client.sampling", &asked);
                self.now(index, Err(no_answer("client.sampling")))
            }
        }
    }

    fn now(&self, index: Option<usize>, answer: Result<Value, RpcError>) -> Answering {
        self.answered(index, &answer);
        Answering::Now(answer)
    }

    /// Refuses a request, as the suite says.
    fn refuse(&self, index: Option<usize>, error: &ClientError) -> Answering {
        let error = rpc(error);
        self.answered(index, &Err(error.clone()));
        Answering::Refuse(error)
    }
}

/// The connection of a test's client to one server.
#[derive(Debug)]
struct ServerConnection {
    client: Arc<TestClient>,
    server: String,
}

impl ClientHandler for ServerConnection {
    fn capabilities(&self, revision: Revision) -> Value {
        self.client.declared(revision)
    }

    fn asked(&self, method: &str, params: Option<&Value>) -> Answering {
        let client = &self.client;
        if client.requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            return Answering::End(format!(
                "the server made more than {MAX_REQUESTS} requests of the client during one test"
            ));
        }
        let index = client.keep(&self.server, method, params.cloned());
        if client.script.tasks
            && let Some(answering) = client.tasks.asked(method, params)
        {
            return match answering {
                Answering::Now(answer) => client.now(index, answer),
                Answering::Later(answer) => {
                    let client = Arc::clone(client);
                    Answering::Later(Box::pin(async move {
                        let answer = answer.await;
                        client.answered(index, &answer);
                        answer
                    }))
                }
                other => other,
            };
        }
        let answering = self.answer(method, params, index);
        let can_wait = matches!(method, "sampling/createMessage" | "elicitation/create");
        if client.script.tasks && can_wait && client_tasks::is_wanted(params) {
            return client.tasks.create(params, answering);
        }
        answering
    }

    fn notified(&self, method: &str, params: Option<&Value>) {
        if !is_about_stream(method) {
            self.client
                .keep(&self.server, method, without_stream(params));
        }
    }
}

impl ServerConnection {
    fn answer(&self, method: &str, params: Option<&Value>, index: Option<usize>) -> Answering {
        let client = &self.client;
        match method {
            "sampling/createMessage" => client.sample(params, index),
            "elicitation/create" => client.elicit(params, index),
            "roots/list" => {
                let roots = client.roots().ok_or_else(|| not_offered(method));
                client.now(index, roots)
            }
            _ => client.now(index, Err(not_offered(method))),
        }
    }
}

fn is_of(message: &Value, method: &str) -> bool {
    message.get("method").and_then(Value::as_str) == Some(method)
}

/// The user's reaction to a form. Without content of the suite, an accepted form has its defaults.
fn reply(action: ElicitationAction, content: Option<&Map<String, Value>>, params: &Value) -> Value {
    let is_form = params
        .get("mode")
        .and_then(Value::as_str)
        .is_none_or(|mode| mode == "form");
    match (action, content) {
        (ElicitationAction::Accept, Some(content)) => {
            json!({"action": "accept", "content": content})
        }
        (ElicitationAction::Accept, None) if is_form => Elicitation::Accept.respond(Some(params)),
        // There is no form behind an address.
        (ElicitationAction::Accept, None) => json!({"action": "accept"}),
        (ElicitationAction::Decline, _) => json!({"action": "decline"}),
        (ElicitationAction::Cancel, _) => json!({"action": "cancel"}),
    }
}

fn rpc(error: &ClientError) -> RpcError {
    RpcError {
        code: error.code,
        message: error.message.clone(),
        data: None,
    }
}

/// The error for a request that no rule answers.
fn no_answer(key: &str) -> RpcError {
    RpcError {
        code: INTERNAL_ERROR,
        message: format!("no answer in `{key}` of the suite applies to this request"),
        data: None,
    }
}

/// Adds further members to an object, also within its objects.
fn merge(value: &mut Value, more: &Map<String, Value>) {
    for (key, more) in more {
        match (value.get_mut(key), more) {
            (Some(inner @ Value::Object(_)), Value::Object(more)) => merge(inner, more),
            _ => value[key] = more.clone(),
        }
    }
}
