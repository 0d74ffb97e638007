//! Attacks in runs of our own agent loop: poisoned lists, instructions and scripts.

use std::borrow::Cow;

use mcptest_agent::{Future, Offer, ToolReply, Tools};
use mcptest_attack::{ATTACKS_KEY, AttackRun};
use mcptest_suite::suite::{AgentTest, ScriptTurn};
use mcptest_trace::catalog::Tool;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value, json};

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
        if let Some(text) = attacks.instructions(server, None) {
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

/// Tools whose list changes during a run: a rug pull. Each request to the model counts as a list.
pub(crate) struct Relisting<'a> {
    pub inner: &'a dyn Tools,
    /// The tools as listed after this number of calls.
    pub relist: &'a (dyn Fn(u64) -> Option<Offer> + Send + Sync),
}

impl Tools for Relisting<'_> {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>> {
        self.inner.call(server, tool, args)
    }

    fn relist(&self, calls: u64) -> Option<Offer> {
        (self.relist)(calls)
    }
}
