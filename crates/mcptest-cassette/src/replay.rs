//! Replay: a model and tools that answer from the recording, and reject everything else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_agent::{AssistantTurn, Future, Message, Model, Request, ToolReply, Tools};
use mcptest_json::text::{one_line, shorten};
use mcptest_redact::redact::Redactor;
use mcptest_trace::matcher::{Difference, differences};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::canonical;
use crate::format::{
    CallAnswer, CallExchange, Cassette, FedResult, ModelAnswer, RecordedCatalog, RecordedRequest,
    RecordedRun,
};
use crate::map_strings::{MapStrings, redacted};
use crate::role::ModelRole;
use mcptest_redact::volatile::{Bindings, Rule, RuleError, Rules};

/// The advice for a request that was not recorded.
pub const REMEDY: &str = "`--record` records again, `--live` runs without the cassette";

/// The maximum number of characters of a value that are shown.
const MAX_SHOWN: usize = 200;

/// A cassette whose rules for volatile values cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {} of the cassette: {}", .0.index + 1, .0)]
pub struct InvalidRules(#[source] RuleError);

/// A cassette that is ready for replay.
#[derive(Debug)]
pub struct Player {
    cassette: Cassette,
    rules: Arc<Rules>,
    redactor: Arc<Redactor>,
}

impl Player {
    /// Prepares a cassette. Its own rules for volatile values apply, not those of the suite.
    ///
    /// # Errors
    /// The rules are invalid.
    pub fn new(cassette: Cassette, redactor: Arc<Redactor>) -> Result<Arc<Self>, InvalidRules> {
        let rules = compiled(&cassette.rules).map_err(InvalidRules)?;
        Ok(Arc::new(Self {
            cassette,
            rules,
            redactor,
        }))
    }

    /// Returns the cassette.
    #[must_use]
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }

    /// Starts the replay of a run.
    ///
    /// # Errors
    /// The run was not recorded.
    pub fn run(self: &Arc<Self>, number: u32) -> Result<Arc<RunReplay>, RunError> {
        let Some(index) = self.cassette.index_of_run(number) else {
            let recorded = self.cassette.runs.len();
            return Err(not_recorded(format!(
                "run {number} is not in the cassette, which has {recorded} runs; {REMEDY}"
            )));
        };
        let values = self
            .cassette
            .volatile_of(number)
            .map(|of| of.values.clone());
        Ok(Arc::new(RunReplay {
            player: Arc::clone(self),
            index,
            state: Mutex::new(State {
                bindings: Bindings::new(Arc::clone(&self.rules), values.unwrap_or_default()),
                requests: BTreeMap::new(),
                used: vec![false; self.cassette.runs[index].calls.len()],
            }),
        }))
    }
}

/// The number of rule lists that stay compiled.
const MAX_RULE_LISTS: usize = 8;

/// Returns compiled rules. The cassettes of a suite have the same list as a rule, and compiling it
/// takes longer than the rest of a replay, so the lists that were used last stay compiled.
fn compiled(rules: &[Rule]) -> Result<Arc<Rules>, RuleError> {
    static LISTS: Mutex<Vec<(Vec<Rule>, Arc<Rules>)>> = Mutex::new(Vec::new());
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lists.iter().position(|(list, _)| list == rules);
    let entry = match found {
        Some(index) => lists.remove(index),
        None => (rules.to_vec(), Arc::new(Rules::compile(rules)?)),
    };
    let compiled = Arc::clone(&entry.1);
    lists.insert(0, entry);
    lists.truncate(MAX_RULE_LISTS);
    Ok(compiled)
}

/// Returns the error for a request or call that does not match the recording.
fn not_recorded(message: String) -> RunError {
    RunError {
        kind: ErrorKind::StaleCassette,
        message,
    }
}

/// A run while it is being replayed.
#[derive(Debug)]
pub struct RunReplay {
    player: Arc<Player>,
    index: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bindings: Bindings,
    /// The number of requests by role.
    requests: BTreeMap<String, usize>,
    /// True for each recorded call that has been replayed.
    used: Vec<bool>,
}

impl RunReplay {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another task does not invalidate the counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the run as recorded.
    #[must_use]
    pub fn recorded(&self) -> &RecordedRun {
        &self.player.cassette.runs[self.index]
    }

    /// Returns the error that prevented the run from starting.
    #[must_use]
    pub fn error(&self) -> Option<RunError> {
        self.recorded()
            .error
            .clone()
            .map(|error| self.restored(error))
    }

    /// Returns the tools that the servers listed.
    #[must_use]
    pub fn catalogs(&self) -> &[RecordedCatalog] {
        self.player.cassette.catalogs_of(self.recorded())
    }

    /// Returns the messages that servers sent by themselves.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        self.restored(self.recorded().messages.clone())
    }

    /// Returns the answers to the calls after the run.
    #[must_use]
    pub fn after(&self) -> Vec<Value> {
        self.restored(self.recorded().after.clone())
    }

    /// Returns a model that answers from the recording.
    #[must_use]
    pub fn model(self: &Arc<Self>, role: ModelRole) -> Box<dyn Model> {
        Box::new(ReplayModel {
            replay: Arc::clone(self),
            role,
        })
    }

    /// Returns tools that answer from the recording.
    #[must_use]
    pub fn tools(self: &Arc<Self>) -> ReplayTools {
        ReplayTools(Arc::clone(self))
    }

    pub(crate) fn restored<T: MapStrings>(&self, value: T) -> T {
        let mut state = self.state();
        value.with_mapped_strings(&mut |value| state.bindings.restore(value))
    }

    /// Returns the recorded reply of a result that was fed back.
    fn reply_of<'a>(&'a self, fed: &'a FedResult) -> Option<&'a ToolReply> {
        match fed {
            FedResult::Reply(reply) => Some(reply),
            FedResult::Call(index) => match &self.recorded().calls.get(*index)?.answer {
                CallAnswer::Reply(reply) => Some(reply),
                CallAnswer::Error(_) => None,
            },
        }
    }

    fn answer(&self, role: &ModelRole, request: &Request<'_>) -> Result<AssistantTurn, RunError> {
        let role = role.to_string();
        let number = {
            let mut state = self.state();
            let requests = state.requests.entry(role.clone()).or_default();
            *requests += 1;
            *requests
        };
        let recorded = self
            .recorded()
            .models
            .get(&role)
            .map_or(&[][..], Vec::as_slice);
        let Some(exchange) = recorded.get(number - 1) else {
            return Err(not_recorded(format!(
                "request {number} to the {role} model was not recorded: the recording of run {} \
                 ends after {}; {REMEDY}",
                self.recorded().run,
                recorded.len()
            )));
        };
        if let Some(message) = self.mismatch(&role, request, &exchange.request) {
            return Err(not_recorded(format!(
                "request {number} to the {role} model is not the recorded one: {message}\n{REMEDY}"
            )));
        }
        match &exchange.answer {
            ModelAnswer::Turn(turn) => Ok(self.restored(turn.clone())),
            ModelAnswer::Error(error) => Err(self.restored(error.clone())),
        }
    }

    /// Returns the difference between a request and the recorded one.
    fn mismatch(
        &self,
        role: &str,
        request: &Request<'_>,
        recorded: &RecordedRequest,
    ) -> Option<String> {
        let redactor = &self.player.redactor;
        let replies: Vec<Value> = match request.messages.last() {
            Some(Message::Results(results)) => results
                .iter()
                .map(|(_, reply)| redacted(redactor, canonical::reply(reply)))
                .collect(),
            _ => Vec::new(),
        };
        // Volatile values of a live server match the recorded ones in the same positions.
        let mut differs = None;
        for (index, (fed, now)) in recorded.results.iter().zip(&replies).enumerate() {
            let was = self.reply_of(fed).map(canonical::reply).unwrap_or_default();
            if !self.state().bindings.align(&was, now) {
                differs.get_or_insert((index, was, now.clone()));
            }
        }
        let tools = canonical::digest_of(&redacted(redactor, canonical::tools(request.tools)));
        let mut conversation = redacted(redactor, canonical::conversation(request.messages));
        self.state().bindings.denote(&mut conversation);
        let prompt = redactor.text(canonical::prompt(request).unwrap_or_default());
        let system = request.system.map(|system| redactor.text(system));
        let digest =
            canonical::request_digest(request, &prompt, system.as_deref(), &tools, &conversation);
        if digest == recorded.digest {
            return None;
        }
        if let Some((index, was, now)) = differs {
            let mut message = format!("result {} of the turn before differs", index + 1);
            message.push_str(&explain(&self.state().bindings, &was, &now));
            return Some(message);
        }
        if recorded.results.len() != replies.len() {
            let (was, now) = (recorded.results.len(), replies.len());
            return Some(format!("{was} results were fed back, now {now}"));
        }
        if tools != recorded.tools {
            return Some("the offered tools differ".to_owned());
        }
        let differing = |what: &str, was: Option<&str>, now: Option<&str>| {
            (was != now).then(|| {
                let shown =
                    |text: Option<&str>| shorten(&one_line(text.unwrap_or("nothing")), MAX_SHOWN);
                format!(
                    "its {what} differs\n  recorded  {}\n  now       {}",
                    shown(was),
                    shown(now)
                )
            })
        };
        let subject = &self.player.cassette.subject;
        let of_agent = role == ModelRole::Agent.to_string();
        let (was_system, was_prompt) = if of_agent {
            (subject.system.as_deref(), Some(subject.prompt.as_str()))
        } else {
            (recorded.system.as_deref(), recorded.prompt.as_deref())
        };
        let first = request.messages.len() <= 1;
        if first || of_agent {
            let message = differing("prompt", was_prompt, Some(&prompt))
                .or_else(|| differing("system prompt", was_system, system.as_deref()));
            if message.is_some() {
                return message;
            }
        }
        Some("the conversation before it, or a setting, differs".to_owned())
    }

    fn call(&self, server: &str, tool: &str, args: &Value) -> Result<ToolReply, RunError> {
        let redactor = &self.player.redactor;
        let args = redacted(redactor, args.clone());
        let (server, tool) = (redactor.text(server), redactor.text(tool));
        let calls = &self.recorded().calls;
        let found = {
            let mut state = self.state();
            let State { bindings, used, .. } = &mut *state;
            let of_tool = |call: &CallExchange| call.server == server && call.tool == tool;
            let found = (0..calls.len())
                .filter(|index| !used[*index] && of_tool(&calls[*index]))
                .find(|index| bindings.align(&calls[*index].args, &args));
            if let Some(index) = found {
                used[index] = true;
            }
            found
        };
        let Some(index) = found else {
            return Err(not_recorded(self.unknown_call(&server, &tool, &args)));
        };
        match &calls[index].answer {
            CallAnswer::Reply(reply) => Ok(self.restored(reply.as_ref().clone())),
            CallAnswer::Error(error) => Err(self.restored(error.clone())),
        }
    }

    /// Returns the message for a call that was not recorded, with the nearest recorded call: one of
    /// the same tool, preferably not yet replayed, with the fewest differences.
    fn unknown_call(&self, server: &str, tool: &str, args: &Value) -> String {
        let shown = |value: &Value| shorten(&one_line(&value.to_string()), MAX_SHOWN);
        let id = format!("{}.{}", one_line(server), one_line(tool));
        let mut message = format!("the call {id} {} was not recorded", shown(args));
        let state = self.state();
        let calls = self.recorded().calls.iter().zip(&state.used);
        let nearest = calls
            .filter(|(call, _)| call.server == server && call.tool == tool)
            .min_by_key(|(call, used)| (**used, differences(&call.args, args, false).len()));
        match nearest {
            Some((call, used)) => {
                message.push_str(&format!(
                    "; the nearest recorded one is {}",
                    shown(&call.args)
                ));
                if *used {
                    message.push_str(", which has been used up");
                }
                message.push_str(&explain(&state.bindings, &call.args, args));
            }
            None => {
                let mut others: Vec<String> = self
                    .recorded()
                    .calls
                    .iter()
                    .map(|call| format!("{}.{}", one_line(&call.server), one_line(&call.tool)))
                    .collect();
                others.dedup();
                others.truncate(10);
                let others = if others.is_empty() {
                    "no tool".to_owned()
                } else {
                    others.join(", ")
                };
                message.push_str(&format!(
                    "; recorded in run {} are calls of {others}",
                    self.recorded().run
                ));
            }
        }
        format!("{message}\n{REMEDY}")
    }
}

/// Lists the positions where two values differ, apart from volatile values.
fn explain(bindings: &Bindings, recorded: &Value, now: &Value) -> String {
    let shown = |value: Option<&Value>| match value {
        Some(value) => shorten(&one_line(&value.to_string()), MAX_SHOWN),
        None => "nothing".to_owned(),
    };
    let mut lines = String::new();
    let differs = |one: &&Difference| match (&one.expected, &one.actual) {
        (Some(recorded), Some(now)) => !bindings.clone().align(recorded, now),
        _ => true,
    };
    for one in differences(recorded, now, false)
        .iter()
        .filter(differs)
        .take(5)
    {
        let pointer = if one.pointer.is_empty() {
            "/"
        } else {
            one.pointer.as_str()
        };
        lines.push_str(&format!(
            "\n  at {}: recorded {}, now {}",
            one_line(pointer),
            shown(one.expected.as_ref()),
            shown(one.actual.as_ref())
        ));
    }
    lines
}

struct ReplayModel {
    replay: Arc<RunReplay>,
    role: ModelRole,
}

impl Model for ReplayModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let answer = self.replay.answer(&self.role, &request);
        Box::pin(async move { answer })
    }
}

/// Tools that answer from the recording: each recorded call once, by server, tool and arguments.
#[derive(Debug, Clone)]
pub struct ReplayTools(Arc<RunReplay>);

impl Tools for ReplayTools {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>> {
        let answer = self.0.call(server, tool, args);
        Box::pin(async move { answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str) -> Vec<Rule> {
        vec![Rule {
            name: name.to_owned(),
            pattern: "[0-9]+x".to_owned(),
        }]
    }

    #[test]
    fn equal_rule_lists_are_compiled_once_and_few_are_kept() {
        let first = compiled(&list("first")).unwrap();
        assert!(Arc::ptr_eq(&first, &compiled(&list("first")).unwrap()));
        for number in 0..MAX_RULE_LISTS {
            let other = compiled(&list(&format!("other-{number}"))).unwrap();
            assert!(!Arc::ptr_eq(&first, &other));
        }
        assert!(!Arc::ptr_eq(&first, &compiled(&list("first")).unwrap()));
        assert!(compiled(&list("Not a name")).is_err());
    }
}
