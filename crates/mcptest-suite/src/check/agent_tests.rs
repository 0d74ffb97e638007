//! `agents:` and `tests:`: references and gates of agent tests.

use std::collections::{HashMap, HashSet};

use mcptest_attack::Attack;
use mcptest_catalog::discovery::Discovery;
use mcptest_gate_api::{AttackContext, LoadContext};
use mcptest_trace::fault::Fault;
use mcptest_trace::trace::OBSERVABLE_ROOTS;
use serde_json::Value;

use super::diagnostics::{item_place, key_error, no_script, unknown_name};
use super::{Checker, SCRIPTED};
use crate::file::{AgentFields, Entry, WrittenAgent};
use crate::import::Part;
use crate::options::Purpose;
use crate::suite::{AgentTest, AttackPlan, Test, user_text};

const DEFAULT_MAX_TURNS: u32 = 10;

/// Returns true if an entry has agents under test.
fn has_agent(fields: &AgentFields) -> bool {
    matches!(&fields.agent, Some(WrittenAgent::UnderTest(_)))
}

impl<'a> Checker<'a> {
    /// The faults that a test injects. An unknown name is an error whatever the purpose.
    fn injected(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        base: Option<&AgentFields>,
        judged: bool,
    ) -> Vec<Fault> {
        let own_names = own.inject.iter().flat_map(|names| &names.0);
        let names = own.inject.as_ref().or_else(|| base?.inject.as_ref());
        // Most tests inject nothing, and a suite may have thousands of tests.
        let declared = names.map_or((&[][..], &[][..]), |_| {
            (&self.faults[..], &self.attacks[..])
        });
        let attacks: HashSet<&str> = declared.1.iter().map(Attack::name).collect();
        let faults: HashMap<&str, &Fault> = declared
            .0
            .iter()
            .map(|fault| (fault.name.as_str(), fault))
            .collect();
        let mut unknown = Vec::new();
        for (index, name) in own_names.enumerate() {
            let is_known = faults.contains_key(name.as_str()) || attacks.contains(name.as_str());
            let is_invalid =
                self.invalid_faults.contains(name) || self.invalid_attacks.contains(name);
            if !is_known && !is_invalid {
                unknown.push((index, name));
            }
        }
        let injects_fault = names.is_some_and(|names| {
            let mut names = names.0.iter();
            names.any(|name| !attacks.contains(name.as_str()))
        });
        let injected = names
            .into_iter()
            .flat_map(|names| &names.0)
            .filter_map(|name| faults.get(name.as_str()).copied().cloned())
            .collect();
        self.unknown_injections(part, at, &unknown);
        if !injects_fault && judged && self.options.purpose == Purpose::Run {
            let message =
                "`recovery` without `inject`: there is evidence only if a call times out in a server"
                    .to_owned();
            self.problems
                .push(key_error(part, &format!("{at}/recovery"), message).warning());
        }
        injected
    }

    /// Reports the names in `inject:` that nothing declares.
    fn unknown_injections(&mut self, part: &Part, at: &str, unknown: &[(usize, &String)]) {
        if unknown.is_empty() {
            return;
        }
        let mut known: Vec<&str> = self
            .faults
            .iter()
            .map(|fault| fault.name.as_str())
            .collect();
        known.extend(self.attacks.iter().map(Attack::name));
        known.extend(self.invalid_attacks.iter().map(String::as_str));
        let has_attacks = !self.attacks.is_empty() || !self.invalid_attacks.is_empty();
        let (kind, section) = match (self.faults.is_empty(), !has_attacks) {
            (true, false) => ("attack", "attacks"),
            (false, false) => ("fault or attack", "faults"),
            _ => ("fault", "faults"),
        };
        for (index, name) in unknown {
            let place = item_place(part, at, &["inject"], *index);
            self.problems
                .push(unknown_name(part, &place, kind, name, &known, section));
        }
    }

    /// The attacks that a test injects.
    fn injected_attacks(&self, own: &AgentFields, base: Option<&AgentFields>) -> Vec<Attack> {
        let names = own.inject.as_ref().or_else(|| base?.inject.as_ref());
        let names = names.into_iter().flat_map(|names| &names.0);
        let find = |name: &String| self.attacks.iter().find(|attack| attack.name() == name);
        names.filter_map(find).cloned().collect()
    }

    /// Checks `discovery:` against the tools that the gates of the test name: the tools that are
    /// known before a server is started.
    fn discovery(
        &mut self,
        part: &Part,
        at: &str,
        discovery: Discovery,
        prompt: &str,
        servers: &[String],
        gates: &[(String, Value)],
    ) {
        let mut tools: Vec<String> = Vec::new();
        for (_, block) in gates {
            let classes = block
                .get("classes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let members = classes
                .filter_map(|class| class.get("members")?.as_array())
                .flatten();
            let correct = block
                .get("correct")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let named = members
                .chain(correct)
                .chain(block.get("expected_tool"))
                .filter_map(Value::as_str);
            tools.extend(
                named.map(|id| id.rsplit_once('.').map_or(id, |(_, name)| name).to_owned()),
            );
        }
        let found = discovery.check(
            prompt,
            servers.iter().map(String::as_str),
            tools.iter().map(String::as_str),
        );
        self.add(part, &format!("{at}/discovery"), found.as_slice());
    }

    pub(super) fn is_test_itself(&self, entry: &Entry) -> bool {
        let judged = !entry.gates.is_empty()
            || !entry.fields.expect.is_empty()
            || entry.fields.after.is_some();
        let referred_to = self
            .parts
            .iter()
            .flat_map(|part| &part.file.tests)
            .filter_map(|test| test.0.fields.agent.as_ref()?.entry())
            .any(|name| Some(name) == entry.fields.name.as_deref());
        judged || !referred_to
    }

    pub(super) fn referring_test(&mut self, part: &'a Part, at: &str, entry: &Entry) {
        let mut base = None;
        if let Some(wanted) = entry.fields.agent.as_ref().and_then(WrittenAgent::entry) {
            base = self
                .parts
                .iter()
                .flat_map(|part| &part.file.agents)
                .map(|agent| &agent.0.fields)
                .find(|agent| agent.name.as_deref() == Some(wanted));
            if base.is_none() && self.options.purpose == Purpose::Run {
                let known: Vec<&str> = self
                    .parts
                    .iter()
                    .flat_map(|part| &part.file.agents)
                    .filter_map(|agent| agent.0.fields.name.as_deref())
                    .collect();
                self.problems.push(unknown_name(
                    part,
                    &format!("{at}/agent"),
                    "agent",
                    wanted,
                    &known,
                    "agents",
                ));
                return;
            }
        }
        self.agent_test(part, at, entry, base);
    }

    pub(super) fn agent_test(
        &mut self,
        part: &'a Part,
        at: &str,
        entry: &Entry,
        base: Option<&AgentFields>,
    ) {
        let own = &entry.fields;
        let name = own.name.clone().unwrap_or_default();
        self.name(part, at, &name);
        let run = self.options.purpose == Purpose::Run;
        // Keys of the test override those of its agent.
        let mut models = self.models_of(own, base);
        let agents = self.agents_under_test(part, at, own, base, &models);
        let is_external = has_agent(own) || base.is_some_and(has_agent);
        if is_external {
            models = agents.iter().map(|agent| agent.label.clone()).collect();
        }
        let servers = own
            .servers
            .as_ref()
            .or_else(|| base?.servers.as_ref())
            .map_or_else(Vec::new, |servers| servers.0.clone());
        let prompt = own.prompt.as_ref().or_else(|| base?.prompt.as_ref());
        let script = own.script.as_ref().or_else(|| base?.script.as_ref());
        if run {
            let missing: Vec<&str> = [
                ("model", models.is_empty() && !is_external),
                ("servers", servers.is_empty() && !is_external),
                ("prompt", prompt.is_none()),
            ]
            .iter()
            .filter(|(_, missing)| *missing)
            .map(|(key, _)| *key)
            .collect();
            if !missing.is_empty() {
                let list = missing
                    .iter()
                    .map(|key| format!("`{key}`"))
                    .collect::<Vec<_>>()
                    .join(", ");
                self.problems.push(
                    key_error(
                        part,
                        &format!("{at}/name"),
                        format!("test `{name}` has no {list}"),
                    )
                    .help(
                        "required to run a suite; not required to score traces (`mcptest score`)",
                    ),
                );
            }
            self.references(part, at, own, script.is_some(), is_external);
            let no_script_to_play =
                models.iter().any(|model| model == SCRIPTED) && script.is_none();
            if no_script_to_play && !self.options.models.is_empty() {
                self.problems.push(no_script(part, &format!("{at}/name")));
            } else if no_script_to_play && own.models.is_none() {
                self.problems.push(no_script(part, &format!("{at}/agent")));
            }
        }
        let expect = self.expectations(
            part,
            &format!("{at}/expect"),
            &own.expect,
            &OBSERVABLE_ROOTS,
        );
        let client = self.agent_client(part, at, own, is_external, &expect);
        let turns = self.turns(part, at, own);
        let state = self.state(part, at, own, &servers);
        self.can_continue(part, at, &agents, !turns.is_empty());
        let runs = own.runs.or_else(|| base?.runs);
        let attacks = self.injected_attacks(own, base);
        let names = own.inject.as_ref().or_else(|| base?.inject.as_ref());
        let names = names.into_iter().flat_map(|names| &names.0);
        // An invalid one is injected nevertheless.
        let is_attack = |name: &&String| {
            self.invalid_attacks.contains(name) || attacks.iter().any(|one| one.name() == *name)
        };
        let injected: Vec<String> = names.filter(is_attack).cloned().collect();
        // Taken out for a moment: loading a gate adds problems to the checker.
        let declared = std::mem::take(&mut self.attacks);
        let invalid = std::mem::take(&mut self.invalid_attacks);
        let context = LoadContext {
            to_run: run,
            runs: runs.map(|runs| runs.max),
            siblings: &entry.gates,
            attacks: AttackContext {
                declared: Some(&declared),
                invalid: &invalid,
                injected: &injected,
            },
        };
        let mut gates = Vec::new();
        for (block, _) in &entry.gates {
            gates.extend(self.gate(part, &format!("{at}/{block}"), block, &context));
        }
        self.attacks = declared;
        self.invalid_attacks = invalid;
        let written = |block: &str| {
            entry
                .gates
                .iter()
                .find(|(name, _)| name == block)
                .map(|(_, written)| written)
        };
        let faults = self.injected(part, at, own, base, written("recovery").is_some());
        let tool_names = self.tool_names(part, at, &gates, &faults, &attacks);
        let discovery = own
            .discovery
            .or_else(|| base?.discovery)
            .unwrap_or_default();
        if let Some(prompt) = prompt {
            let text = user_text(prompt, &turns);
            self.discovery(part, at, discovery, &text, &servers, &entry.gates);
        }
        let detection_budget_ms =
            written("recovery").and_then(|block| block.get("max_detection_ms")?.as_u64());
        let distractors =
            written("distractors").and_then(|block| serde_json::from_value(block.clone()).ok());
        let tolerates_failed_runs =
            written("reliability").and_then(|block| block.get("tolerate_failed_runs"));
        let injection = written("injection");
        let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
        let attack_plan = AttackPlan {
            together: injection.and_then(|block| block.get("mode")?.as_str()) == Some("together"),
            baseline: is_true(injection.and_then(|block| block.get("baseline"))),
        };
        // Without a `task:` of its own, `injection:` counts the test's assertions.
        let counts_expect = injection.is_some_and(|block| block.get("task").is_none());
        let stops_when_decided = self.stops_when_decided(part, at, runs, &gates);
        let budget = self.test_budget(part, at, own, base, is_external);
        let in_dollars = budget.usd.is_some() || self.suite.budget.usd.is_some();
        self.judges(part, &format!("{at}/expect"), &own.expect, in_dollars);
        for gate in &gates {
            if let Some(reading) = gate.reading() {
                let at = format!("{at}/{}{}", gate.info().block, reading.at);
                self.reading(part, &at, &reading, &models, in_dollars);
            }
        }
        self.suite.tests.push(Test::Agent(Box::new(AgentTest {
            line: self.line(part, at),
            stops_when_decided,
            budget,
            tolerates_failed_runs: is_true(tolerates_failed_runs) || counts_expect,
            faults,
            attacks,
            attack_plan,
            tool_names,
            detection_budget_ms,
            distractors,
            discovery,
            replay: own.replay.or_else(|| base?.replay),
            name,
            models,
            agents,
            servers,
            prompt: prompt.cloned().unwrap_or_default(),
            turns,
            state,
            system: own
                .system
                .as_ref()
                .or_else(|| base?.system.as_ref())
                .cloned(),
            runs: runs.map_or(1, |runs| runs.max).max(1),
            max_turns: own
                .max_turns
                .or_else(|| base?.max_turns)
                .unwrap_or(DEFAULT_MAX_TURNS),
            max_tokens: own.max_tokens.or_else(|| base?.max_tokens),
            expect,
            gates,
            script: script.cloned().unwrap_or_default(),
            client,
            tags: own.tags.clone(),
        })));
    }

    /// Checks the servers and models that this entry itself names (those of its agent are checked
    /// in the agent).
    pub(super) fn references(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        has_script: bool,
        is_external: bool,
    ) {
        for (index, server) in own
            .servers
            .iter()
            .flat_map(|servers| &servers.0)
            .enumerate()
        {
            if !self.is_declared(server) {
                let place = item_place(part, at, &["servers", "server"], index);
                let known = self.declared();
                self.problems.push(unknown_name(
                    part, &place, "server", server, &known, "servers",
                ));
            }
        }
        // An agent under test knows its models itself.
        let models = own.models.as_ref().filter(|_| !is_external);
        for (index, model) in models.iter().flat_map(|models| &models.0).enumerate() {
            let place = item_place(part, at, &["models", "model"], index);
            if let Err(error) = self.check_model(model) {
                self.problems
                    .push(part.document.diagnostic_at(&place, error.to_string()));
            } else if model == SCRIPTED && !has_script {
                self.problems.push(no_script(part, &place));
            }
        }
        let has_scripted = |models: &[String]| models.iter().any(|model| model == SCRIPTED);
        let other_model = own
            .models
            .as_ref()
            .is_some_and(|models| !has_scripted(&models.0));
        if own.script.is_some() && (is_external || other_model) {
            self.problems.push(
                key_error(
                    part,
                    &format!("{at}/script"),
                    format!("only `{SCRIPTED}` uses a script"),
                )
                .help(format!("set `model: {SCRIPTED}`, or remove the script")),
            );
        }
    }
}
