//! Attacks in runs of our own agent loop: poisoned lists, instructions and scripts.

use std::borrow::Cow;

use mcptest_agent::{AssistantTurn, Future, Message, Model, OfferedTool, Request};
use mcptest_attack::{ATTACKS_KEY, AttackRun};
use mcptest_suite::suite::{AgentTest, ScriptTurn};
use mcptest_trace::catalog::Tool;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value, json};

use crate::sessions::RunTools;

/// The attacks of a run.
pub(crate) fn of_run(test: &AgentTest, run: u32) -> AttackRun {
    match test.attacks_of(run) {
        Some(block) => {
            let run = u64::from(block.run);
            AttackRun::new(block.attacks, &test.name, run, &test.servers)
        }
        None => AttackRun::default(),
    }
}

/// Writes the run's attacks into its trace. A test without attacks leaves nothing.
pub(crate) fn record(test: &AgentTest, attacks: &AttackRun, trace: &mut Trace) {
    if !test.attacks.is_empty() {
        // Strings and numbers always have a JSON form.
        let records = serde_json::to_value(attacks.records()).unwrap_or_default();
        trace.extra.insert(ATTACKS_KEY, records);
    }
}

/// The tools that a server lists, with the texts of attacks.
pub(crate) fn poison_list(attacks: &mut AttackRun, server: &str, tools: Vec<Tool>) -> Vec<Tool> {
    if !attacks.changes_lists() {
        return tools;
    }
    let mut result = json!({"tools": tools.iter().map(as_listed).collect::<Vec<_>>()});
    let changes = attacks.on_tools(server, &result, true, true);
    if changes.is_empty() {
        return tools;
    }
    changes.apply(&mut result);
    let listed = result["tools"].as_array().into_iter().flatten();
    listed
        .filter_map(|tool| Tool::from_listing(Some(server), tool))
        .collect()
}

fn as_listed(tool: &Tool) -> Value {
    let mut raw: Map<String, Value> = tool.raw().clone();
    raw.shift_remove("server");
    Value::Object(raw)
}

/// The system prompt with the instructions that attacks add.
pub(crate) fn system(test: &AgentTest, attacks: &mut AttackRun) -> Option<String> {
    let mut system = test.system.clone();
    for server in &test.servers {
        if let Some(text) = attacks.instructions(server) {
            let before = system
                .take()
                .map_or_else(String::new, |text| format!("{text}\n\n"));
            system = Some(format!(
                "{before}Instructions of the server `{server}`:\n{text}"
            ));
        }
    }
    system
}

/// The script with the canary of the run in place of `${canary}`.
pub(crate) fn script<'s>(
    script: &'s [Vec<ScriptTurn>],
    attacks: &AttackRun,
) -> Cow<'s, [Vec<ScriptTurn>]> {
    let Some(canary) = attacks
        .planned()
        .next()
        .map(|planned| planned.canary.clone())
    else {
        return Cow::Borrowed(script);
    };
    let mut script = script.to_vec();
    for turn in script.iter_mut().flatten() {
        if let Some(say) = &mut turn.say {
            *say = say.replace("${canary}", &canary);
        }
        for args in turn.calls.iter_mut().filter_map(|call| call.args.as_mut()) {
            insert(args, &canary);
        }
    }
    Cow::Owned(script)
}

fn insert(value: &mut Value, canary: &str) {
    match value {
        Value::String(text) => *text = text.replace("${canary}", canary),
        Value::Array(items) => items.iter_mut().for_each(|item| insert(item, canary)),
        Value::Object(map) => map.values_mut().for_each(|item| insert(item, canary)),
        _ => {}
    }
}

/// A model whose later requests offer changed tools: a rug pull. Each request counts as a list.
pub(crate) struct ChangingOffer<'a, 't> {
    pub inner: &'a dyn Model,
    pub tools: &'a RunTools<'t>,
    /// The tools as listed.
    pub clean: Vec<OfferedTool>,
}

impl ChangingOffer<'_, '_> {
    /// The tools of this request. The first one has the list that the run began with.
    fn offered(&self, messages: &[Message]) -> Option<Vec<OfferedTool>> {
        let mut asked = 0;
        let mut calls = 0;
        for message in messages {
            if let Message::Assistant(turn) = message {
                asked += 1;
                calls += turn.calls.len() as u64;
            }
        }
        if asked == 0 {
            return None;
        }
        let mut attacks = self.tools.attacks();
        attacks.set_calls(calls);
        let mut servers: Vec<&str> = Vec::new();
        for tool in &self.clean {
            if !servers.contains(&tool.server.as_str()) {
                servers.push(&tool.server);
            }
        }
        let mut offered = self.clean.clone();
        for server in servers {
            let own = self.clean.iter().filter(|tool| tool.server == server);
            let listed: Vec<Tool> = own.map(|tool| tool.tool.clone()).collect();
            for tool in poison_list(&mut attacks, server, listed) {
                let known = offered
                    .iter_mut()
                    .find(|old| old.server == server && old.tool.name() == tool.name());
                match known {
                    Some(known) => known.tool = tool,
                    None => offered.push(OfferedTool {
                        wire_name: tool.name().to_owned(),
                        server: server.to_owned(),
                        tool,
                        refusal: None,
                    }),
                }
            }
        }
        Some(offered)
    }
}

impl Model for ChangingOffer<'_, '_> {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        Box::pin(async move {
            match self.offered(request.messages) {
                Some(tools) => {
                    let request = Request {
                        tools: &tools,
                        ..request
                    };
                    self.inner.next(request).await
                }
                None => self.inner.next(request).await,
            }
        })
    }
}
