//! Replay: a model and tools that answer what was recorded, and nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_agent::{AssistantTurn, Future, Message, Model, Request, ToolReply, Tools};
use mcptest_json::text::{one_line, shorten};
use mcptest_redact::redact::Redactor;
use mcptest_trace::matcher::{Difference, differences};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::format::{Answer, Asked, CallAnswer, CallExchange, Cassette, Catalog, Fed, RecordedRun};
use crate::record::redacted;
use crate::role::Role;
use crate::scrub::Scrub;
use crate::told;
use mcptest_redact::volatile::{Bindings, Rules};

/// What to do about a request that was not recorded.
pub const REMEDY: &str = "`--record` records anew, `--live` runs without the cassette";

/// How much of a value is shown.
const SHOWN: usize = 200;

/// A cassette ready for replay.
#[derive(Debug)]
pub struct Player {
    cassette: Cassette,
    rules: Arc<Rules>,
    redactor: Arc<Redactor>,
}

impl Player {
    /// Takes a cassette. Its own rules apply, not those of today.
    ///
    /// # Errors
    /// That its rules cannot be used.
    pub fn new(cassette: Cassette, redactor: Arc<Redactor>) -> Result<Arc<Self>, String> {
        let rules = Rules::compile(&cassette.rules)
            .map_err(|error| format!("rule {} of the cassette: {error}", error.index + 1))?;
        Ok(Arc::new(Self {
            cassette,
            rules: Arc::new(rules),
            redactor,
        }))
    }

    /// The cassette.
    #[must_use]
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }

    /// Begins to replay a run.
    ///
    /// # Errors
    /// That it was not recorded.
    pub fn run(self: &Arc<Self>, number: u32) -> Result<Arc<RunReplay>, RunError> {
        let Some(index) = self.cassette.runs.iter().position(|run| run.run == number) else {
            let recorded = self.cassette.runs.len();
            let words = format!(
                "run {number} is not in the cassette, which has {recorded} of them; {REMEDY}"
            );
            return Err(not_recorded(words));
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
                asked: BTreeMap::new(),
                used: vec![false; self.cassette.runs[index].calls.len()],
            }),
        }))
    }
}

/// The other side of the replay did not keep to what was recorded.
fn not_recorded(message: String) -> RunError {
    RunError {
        kind: ErrorKind::Protocol,
        message,
    }
}

/// One run that is being replayed.
#[derive(Debug)]
pub struct RunReplay {
    player: Arc<Player>,
    index: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bindings: Bindings,
    /// How often each role has been asked.
    asked: BTreeMap<String, usize>,
    /// Which of the recorded calls have been made.
    used: Vec<bool>,
}

impl RunReplay {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the counts wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run as recorded.
    #[must_use]
    pub fn recorded(&self) -> &RecordedRun {
        &self.player.cassette.runs[self.index]
    }

    /// What kept the run from beginning, if something did.
    #[must_use]
    pub fn error(&self) -> Option<RunError> {
        self.recorded()
            .error
            .clone()
            .map(|error| self.restored(error))
    }

    /// What the servers listed.
    #[must_use]
    pub fn catalogs(&self) -> &[Catalog] {
        self.player.cassette.catalogs_of(self.recorded())
    }

    /// A model that answers as it did.
    #[must_use]
    pub fn model(self: &Arc<Self>, role: Role) -> Box<dyn Model> {
        Box::new(ReplayModel {
            replay: Arc::clone(self),
            role,
        })
    }

    /// Tools that answer as they did.
    #[must_use]
    pub fn tools(self: &Arc<Self>) -> ReplayTools {
        ReplayTools(Arc::clone(self))
    }

    fn restored<T: Scrub>(&self, thing: T) -> T {
        let mut state = self.state();
        thing.scrubbed(&mut |value| state.bindings.restore(value))
    }

    /// What was fed back, as recorded.
    fn reply_of<'a>(&'a self, fed: &'a Fed) -> Option<&'a ToolReply> {
        match fed {
            Fed::Reply(reply) => Some(reply),
            Fed::Call(index) => match &self.recorded().calls.get(*index)?.answer {
                CallAnswer::Reply(reply) => Some(reply),
                CallAnswer::Error(_) => None,
            },
        }
    }

    fn answer(&self, role: Role, request: &Request<'_>) -> Result<AssistantTurn, RunError> {
        let role = role.to_string();
        let number = {
            let mut state = self.state();
            let asked = state.asked.entry(role.clone()).or_default();
            *asked += 1;
            *asked
        };
        let recorded = self
            .recorded()
            .models
            .get(&role)
            .map_or(&[][..], Vec::as_slice);
        let Some(exchange) = recorded.get(number - 1) else {
            return Err(not_recorded(format!(
                "request {number} to the {role} model was not recorded: the recording of run {} ends after {}; {REMEDY}",
                self.recorded().run,
                recorded.len()
            )));
        };
        if let Some(words) = self.mismatch(&role, request, &exchange.request) {
            return Err(not_recorded(format!(
                "request {number} to the {role} model is not the recorded one: {words}\n{REMEDY}"
            )));
        }
        match &exchange.answer {
            Answer::Turn(turn) => Ok(self.restored(turn.clone())),
            Answer::Error(error) => Err(self.restored(error.clone())),
        }
    }

    /// Why a request is not the recorded one.
    fn mismatch(&self, role: &str, request: &Request<'_>, recorded: &Asked) -> Option<String> {
        let redactor = &self.player.redactor;
        let replies: Vec<Value> = match request.messages.last() {
            Some(Message::Results(results)) => results
                .iter()
                .map(|(_, reply)| redacted(redactor, told::reply(reply)))
                .collect(),
            _ => Vec::new(),
        };
        // A live server's fresh values are taken for the recorded ones where they stand in the same
        // places.
        let mut differs = None;
        for (index, (fed, now)) in recorded.results.iter().zip(&replies).enumerate() {
            let was = self.reply_of(fed).map(told::reply).unwrap_or_default();
            if !self.state().bindings.align(&was, now) {
                differs.get_or_insert((index, was, now.clone()));
            }
        }
        let tools = told::digest_of(&redacted(redactor, told::tools(request.tools)));
        let mut conversation = redacted(redactor, told::conversation(request.messages));
        self.state().bindings.denote(&mut conversation);
        let prompt = redactor.text(told::prompt(request).unwrap_or_default());
        let system = request.system.map(|system| redactor.text(system));
        let digest =
            told::request_digest(request, &prompt, system.as_deref(), &tools, &conversation);
        if digest == recorded.digest {
            return None;
        }
        if let Some((index, was, now)) = differs {
            let mut words = format!("result {} of the turn before differs", index + 1);
            words.push_str(&explain(&self.state().bindings, &was, &now));
            return Some(words);
        }
        if recorded.results.len() != replies.len() {
            let (was, now) = (recorded.results.len(), replies.len());
            return Some(format!("{was} results were fed back, now {now}"));
        }
        if tools != recorded.tools {
            return Some("other tools are offered".to_owned());
        }
        let differing = |what: &str, was: Option<&str>, now: Option<&str>| {
            (was != now).then(|| {
                let shown =
                    |text: Option<&str>| shorten(&one_line(text.unwrap_or("nothing")), SHOWN);
                format!(
                    "its {what} differs\n  recorded  {}\n  now       {}",
                    shown(was),
                    shown(now)
                )
            })
        };
        let subject = &self.player.cassette.subject;
        let of_agent = role == Role::Agent.to_string();
        let (was_system, was_prompt) = if of_agent {
            (subject.system.as_deref(), Some(subject.prompt.as_str()))
        } else {
            (recorded.system.as_deref(), recorded.prompt.as_deref())
        };
        let first = request.messages.len() <= 1;
        if first || of_agent {
            let words = differing("prompt", was_prompt, Some(&prompt))
                .or_else(|| differing("system prompt", was_system, system.as_deref()));
            if words.is_some() {
                return words;
            }
        }
        Some("what was said before, or a setting, differs".to_owned())
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

    /// The nearest of the recorded calls: of the same tool, not yet made, with the fewest
    /// differences.
    fn unknown_call(&self, server: &str, tool: &str, args: &Value) -> String {
        let shown = |value: &Value| shorten(&one_line(&value.to_string()), SHOWN);
        let id = format!("{}.{}", one_line(server), one_line(tool));
        let mut words = format!("the call {id} {} was not recorded", shown(args));
        let state = self.state();
        let calls = self.recorded().calls.iter().zip(&state.used);
        let nearest = calls
            .filter(|(call, _)| call.server == server && call.tool == tool)
            .min_by_key(|(call, used)| (**used, differences(&call.args, args, false).len()));
        match nearest {
            Some((call, used)) => {
                words.push_str(&format!(
                    "; the nearest recorded one is {}",
                    shown(&call.args)
                ));
                if *used {
                    words.push_str(", which has been used up");
                }
                words.push_str(&explain(&state.bindings, &call.args, args));
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
                    "none at all".to_owned()
                } else {
                    others.join(", ")
                };
                words.push_str(&format!(
                    "; recorded in run {} are calls of {others}",
                    self.recorded().run
                ));
            }
        }
        format!("{words}\n{REMEDY}")
    }
}

/// The places where two values differ by more than volatile values.
fn explain(bindings: &Bindings, recorded: &Value, now: &Value) -> String {
    let shown = |value: Option<&Value>| match value {
        Some(value) => shorten(&one_line(&value.to_string()), SHOWN),
        None => "nothing".to_owned(),
    };
    let mut words = String::new();
    let differs = |one: &&Difference| match (&one.expected, &one.actual) {
        (Some(recorded), Some(now)) => !bindings.clone().align(recorded, now),
        _ => true,
    };
    for one in differences(recorded, now, false)
        .iter()
        .filter(differs)
        .take(5)
    {
        let place = if one.pointer.is_empty() {
            "/"
        } else {
            one.pointer.as_str()
        };
        words.push_str(&format!(
            "\n  at {}: recorded {}, now {}",
            one_line(place),
            shown(one.expected.as_ref()),
            shown(one.actual.as_ref())
        ));
    }
    words
}

struct ReplayModel {
    replay: Arc<RunReplay>,
    role: Role,
}

impl Model for ReplayModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let answer = self.replay.answer(self.role, &request);
        Box::pin(async move { answer })
    }
}

/// Tools that answer as they did: each recorded call once, found by server, tool and arguments.
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
